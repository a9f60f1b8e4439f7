"""Draw the contacts of each pair of shapes, from the library's own output.

    python docs/contact_pictures.py [folder]

The program writes one picture for each pair (default: docs/contacts). A is blue and B is grey. Red
dots are the contacts on B, red lines lead to the implied points on A, and the green arrow is the
normal.
"""
import itertools
import math
import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from pycct.convex.hull import HullTables
from pycct.queries.shape_pairs import contacts_between
from pycct.shapes.primitives import Box, Capsule, ConvexHull, Sphere, Triangle

KINDS = ("sphere", "capsule", "box", "triangle", "hull")
CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def prism(n, radius, height):
    """Corners of an upright prism."""
    angle = np.arange(n) * 2 * np.pi / n
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([np.c_[ring, np.full(n, z)] for z in (-height / 2, height / 2)])


def turned(axis, angle):
    """Return a quaternion."""
    axis = np.array(axis, dtype=float)
    return (*(axis / np.linalg.norm(axis) * math.sin(angle / 2)), math.cos(angle / 2))


def matrix(q):
    """The rotation matrix of a quaternion."""
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


# The upper shape of each kind with its pose above z = 0, the lower one with its top at z = 0.
UPPER = {
    "sphere": (Sphere(0.6), ((0.1, 0.2, 0.55), (0, 0, 0, 1))),
    "capsule": (Capsule(0.35, 1.4), ((0.2, 0.1, 0.36), turned((1, 0.3, 0), math.pi / 2 - 0.04))),
    "box": (Box((0.7, 0.5, 0.4)), ((0.3, 0.2, 0.36), turned((0, 0, 1), 0.5))),
    "triangle": (Triangle((-0.9, -0.6, 0), (1.0, -0.5, 0.05), (0.1, 1.0, 0)),
                 ((0.2, 0.1, 0.05), turned((0, 0, 1), 2.0))),
    "hull": (ConvexHull(prism(7, 0.8, 0.8)), ((0.3, 0.2, 0.37), turned((0, 0, 1), 0.3))),
}
LOWER = {
    "sphere": (Sphere(0.7), ((0, 0, -0.7), (0, 0, 0, 1))),
    "capsule": (Capsule(0.5, 1.6), ((0, 0, -0.5), turned((0, 1, 0), math.pi / 2))),
    "box": (Box((1.0, 0.8, 0.4)), ((0, 0, -0.4), (0, 0, 0, 1))),
    "triangle": (Triangle((-1.2, -1, 0), (1.3, -0.9, 0), (0, 1.4, 0)), ((0, 0, 0), (0, 0, 0, 1))),
    "hull": (ConvexHull(prism(5, 1.1, 0.8)), ((0, 0, -0.4), (0, 0, 0, 1))),
}


def polygons(shape, pose):
    """Return the faces of a shape."""
    r, t = matrix(pose[1]), np.array(pose[0])
    if isinstance(shape, Sphere | Capsule):
        half = getattr(shape, "height", 0.0) / 2
        u = np.linspace(0, 2 * np.pi, 19)
        v = np.concatenate([np.linspace(-np.pi / 2, 0, 7), np.linspace(0, np.pi / 2, 7)])
        shift = np.repeat([-half, half], 7)
        grid = np.stack([shape.radius * np.outer(np.cos(v), np.cos(u)), shape.radius * np.outer(np.cos(v), np.sin(u)),
                         np.repeat((shape.radius * np.sin(v) + shift)[:, None], len(u), axis=1)], axis=2)
        grid = grid @ r.T + t
        return [[grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]]
                for i in range(len(v) - 1) for j in range(len(u) - 1)]
    if isinstance(shape, Triangle):
        return [np.array(shape.vertices) @ r.T + t]
    corners = CUBE * shape.half_extents if isinstance(shape, Box) else shape.vertices
    tables = HullTables(corners)
    return [tables.vertices[list(f)] @ r.T + t for f in tables.faces]


def draw(upper, lower, path):
    """Draw one picture and return the number of contacts."""
    (a, pose_a), (b, pose_b) = UPPER[upper], LOWER[lower]
    m = contacts_between(a, b, pose_a, pose_b)
    figure = plt.figure(figsize=(4, 3.6))
    axes = figure.add_subplot(projection="3d", proj_type="ortho", computed_zorder=False)
    for shape, pose, colour in ((b, pose_b, "0.6"), (a, pose_a, "tab:blue")):
        axes.add_collection3d(Poly3DCollection(polygons(shape, pose), facecolor=colour, edgecolor=colour, alpha=0.18,
                                               linewidth=0.5, zorder=1))
    on_b, on_a = m.points_on_b, m.points_on_a
    for p, q in zip(on_b, on_a, strict=True):
        axes.plot(*np.array([p, q]).T, color="red", linewidth=1, zorder=3)
    axes.scatter(*on_b.T, color="red", s=18, depthshade=False, zorder=4)
    axes.quiver(*on_b.mean(axis=0), *(0.8 * np.array(m.normal)), color="tab:green", arrow_length_ratio=0.2, zorder=5)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), zlim=(-1.3, 1.3))
    axes.set_box_aspect((1, 1, 1), zoom=1.45)
    axes.view_init(24, -62)
    axes.set_axis_off()
    axes.set_title(f"{upper} on {lower}: {m.count} contact{'s' if m.count > 1 else ''}", fontsize=9, y=0.93)
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)
    return m.count


def main():
    """Draw all fifteen."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "contacts"
    folder.mkdir(parents=True, exist_ok=True)
    for lower, upper in itertools.combinations_with_replacement(KINDS, 2):
        count = draw(lower, upper, folder / f"{lower}_{upper}.png")
        print(f"{lower} on {upper}: {count}")


if __name__ == "__main__":
    main()
