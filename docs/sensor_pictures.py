"""Draw every sensor from what the library computes.

    python docs/sensor_pictures.py [folder] [name ...]

Writes one picture per sensor (default: all of them into docs/sensors).
"""
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle

from pycct import (
    Box,
    Crowd,
    DepthGrid,
    Feet,
    Heightfield,
    HeightScan,
    Lidar,
    Mesh,
    Neighbours,
    Plane,
    Scene,
    Seen,
    Sensors,
    Sphere,
)

DT = 1 / 60
FEET = 0.91
COLOURS = {Seen.NOTHING: "0.75", Seen.STATIC: "0.35", Seen.MOVING: "tab:orange", Seen.OBSTACLE: "tab:green",
           Seen.CHARACTER: "tab:blue"}
WALLS = [((-4, 0), (0.2, 4)), ((4, 0), (0.2, 4)), ((0, -4), (4, 0.2)), ((0, 4), (4, 0.2)), ((2, 1.5), (0.2, 1.2))]


def room():
    """A room with a platform, an obstacle and three characters."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for (x, y), (a, b) in WALLS:
        scene.add(Box((a, b, 1.5)), position=(x, y, 1.5))
    scene.add(Box((0.5, 0.5, 0.6)), position=(-1.8, 2.2, 0.6), body="kinematic")
    scene.add_obstacle(Box((0.4, 0.4, 0.8)), position=(1.6, -2, 0.8))
    return scene, Crowd(scene, [(0, 0, FEET), (-2.4, -1.2, FEET), (-0.4, -2.6, FEET)])


def lidar():
    """48 rays from the middle of the room; returns the figure and how often each kind was met."""
    _scene, crowd = room()
    seen = Sensors(crowd, {"l": Lidar(48, 6.0, fields=["distance", "kind"])}).look()
    figure, ax = plt.subplots(figsize=(6, 6))
    for (x, y), (a, b) in WALLS:
        ax.add_patch(Rectangle((x - a, y - b), 2 * a, 2 * b, color="0.8"))
    ax.add_patch(Rectangle((-2.3, 1.7), 1, 1, color="navajowhite"))
    ax.add_patch(Rectangle((1.2, -2.4), 0.8, 0.8, color="honeydew"))
    for x, y, _z in crowd.positions.tolist():
        ax.add_patch(Circle((x, y), 0.4, color="lightsteelblue"))
    for angle, distance, kind in zip(Lidar(48, 6.0).angles, seen["l.distance"][0], seen["l.kind"][0], strict=True):
        x, y = distance * np.cos(angle), distance * np.sin(angle)
        ax.plot([0, x], [0, y], color=COLOURS[kind], linewidth=0.8)
        ax.plot([x], [y], "o", color=COLOURS[kind], markersize=4)
    for kind, colour in COLOURS.items():
        ax.plot([], [], "o", color=colour, label=kind.name.lower())
    ax.legend(loc="upper center", frameon=False, ncols=5, fontsize=8)
    ax.set(aspect="equal", xlim=(-4.6, 4.6), ylim=(-4.6, 5.4), xlabel="x, m", ylabel="y, m")
    figure.tight_layout()
    return figure, ({kind: int((seen["l.kind"][0] == kind).sum()) for kind in Seen},)


def stairs():
    """Five steps along x, and a pit."""
    scene = Scene()
    vertices, triangles = [], []
    for x0, x1, z in [(-4, 0, 0.0), *((0.5 * k, 0.5 * k + 0.5, 0.2 * k + 0.2) for k in range(5)), (2.5, 5, 1.0)]:
        n = len(vertices)
        vertices += [(x0, -3, z), (x1, -3, z), (x1, 3, z), (x0, 3, z)]
        triangles += [(n, n + 1, n + 2), (n, n + 2, n + 3)]
    scene.add(Mesh(vertices, triangles, two_sided=True))
    scene.add(Box((0.4, 0.4, 0.25)), position=(-1.2, 1.0, 0.25))
    return scene


def height_scan():
    """A grid in front of stairs, turned; returns the figure, the lowest and the highest cell."""
    crowd = Crowd(stairs(), [(-0.6, 0, FEET)])
    yaw = 0.4
    sensor = HeightScan((11, 11), 0.25, 1.0)
    heights = Sensors(crowd, {"s": sensor}).look(yaw)["s.height"][0]
    figure = plt.figure(figsize=(7, 5.5))
    ax = figure.add_subplot(projection="3d")
    ahead, aside = np.array(sensor.offsets).T
    x = -0.6 + ahead * np.cos(yaw) - aside * np.sin(yaw)
    y = ahead * np.sin(yaw) + aside * np.cos(yaw)
    points = ax.scatter(x, y, heights.ravel(), c=heights.ravel(), cmap="viridis", depthshade=False)
    for a, b, c in zip(x, y, heights.ravel(), strict=True):
        ax.plot([a, a], [b, b], [-0.2, c], color="0.85", linewidth=0.6)
    ax.plot([-0.6], [0], [0], "k^")
    figure.colorbar(points, label="height above the feet, m", shrink=0.6)
    ax.set(xlabel="x, m", ylabel="y, m", zlabel="z, m")
    ax.view_init(28, -120)
    return figure, (float(heights.min()), float(heights.max()))


def depth_grid():
    """What a member sees of a terrain; returns the figure and the depths."""
    rng = np.random.default_rng(5)
    scene = Scene()
    k = np.arange(40)
    hills = 1.6 * np.sin(k[:, None] / 4.0) * np.cos(k[None] / 5.0)
    scene.add(Heightfield(hills, 1.0), position=(-5, -20, -1.5))
    for x, y in rng.uniform((4, -8), (28, 8), (14, 2)):
        scene.add(Sphere(0.8), position=(x, y, 0.6))
        scene.add(Box((0.15, 0.15, 1.0)), position=(x, y, -0.6))
    crowd = Crowd(scene, [(0, 0, 2.2)])
    depth = Sensors(crowd, {"d": DepthGrid(160, 100, 1.4, reach=30.0)}).look(pitch=-0.12)["d.depth"][0]
    figure, ax = plt.subplots(figsize=(7.5, 4.4))
    image = ax.imshow(depth, cmap="magma_r", vmax=30)
    figure.colorbar(image, label="depth, m")
    ax.set(xlabel="column", ylabel="row")
    figure.tight_layout()
    return figure, (depth,)


def neighbours():
    """The three nearest members of each; returns the figure and the ids."""
    rng = np.random.default_rng(3)
    crowd = Crowd(Scene(), np.column_stack([rng.uniform(-6, 6, (16, 2)), np.zeros(16)]), group=np.arange(16) % 2)
    crowd.move(np.column_stack([rng.normal(0, 0.03, (16, 2)), np.zeros(16)]), DT)
    seen = Sensors(crowd, {"n": Neighbours(3, 4.0)}).look()
    figure, ax = plt.subplots(figsize=(6, 6))
    for i, (x, y, _z) in enumerate(crowd.positions.tolist()):
        colour = ("tab:blue", "tab:orange")[i % 2]
        ax.add_patch(Circle((x, y), 0.4, color=colour, alpha=0.3))
        for number, (dx, dy, _dz) in zip(seen["n.id"][i], seen["n.position"][i], strict=True):
            if number >= 0:
                ax.annotate("", (x + 0.8 * dx, y + 0.8 * dy), (x, y), arrowprops={"arrowstyle": "->", "color": colour})
    ax.set(aspect="equal", xlim=(-7, 7), ylim=(-7, 7), xlabel="x, m", ylabel="y, m")
    figure.tight_layout()
    return figure, (seen["n.id"], crowd.ids)


def feet():
    """Ground normals along a walk over hills; returns the figure and the kinds of ground."""
    scene = Scene()
    k = np.arange(60)
    hills = np.broadcast_to(0.5 * np.sin(k[:, None] / 3.0), (60, 8))
    scene.add(Heightfield(hills, 0.25, diagonal=0))
    scene.add(Box((0.95, 3, 0.1)), position=(8.25, 0.9, -0.2), body="kinematic")
    crowd = Crowd(scene, [(0.6, 0.9, 2.0)])
    sensors = Sensors(crowd, {"f": Feet()})
    walk, kinds = [], []
    for _ in range(330):
        crowd.move([(0.04, 0, -0.06)], DT)
        seen = sensors.look()
        walk.append((*crowd.foot_positions[0, [0, 2]], *seen["f.normal"][0, [0, 2]]))
        kinds.append(Seen(seen["f.kind"][0]))
    figure, ax = plt.subplots(figsize=(8, 3))
    ax.plot(0.25 * k, hills[:, 0], color="0.5")
    ax.add_patch(Rectangle((7.3, -0.3), 1.9, 0.2, color="navajowhite"))
    for (x, z, a, b), kind in list(zip(walk, kinds, strict=True))[::6]:
        ax.plot([x, x + 0.5 * a], [z, z + 0.5 * b], color=COLOURS[kind], linewidth=1)
        ax.plot([x], [z], ".", color=COLOURS[kind])
    ax.set(aspect="equal", xlabel="x, m", ylabel="z, m", ylim=(-0.8, 1.4))
    figure.tight_layout()
    return figure, (kinds,)


PICTURES = {"lidar": lidar, "height_scan": height_scan, "depth_grid": depth_grid, "neighbours": neighbours,
            "feet": feet}


def main():
    """Write the pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "sensors"
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PICTURES:
        figure, _ = PICTURES[name]()
        figure.savefig(folder / f"{name}.png", dpi=80)
        plt.close(figure)


if __name__ == "__main__":
    main()
