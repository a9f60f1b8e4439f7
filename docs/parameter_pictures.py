"""Draw the effect of each parameter of a character, from moves of the library.

    python docs/parameter_pictures.py [folder] [name ...]

The program writes one picture for each parameter (default: all of them into docs/parameters). Every
capsule marks the end of a move. The scene is grey, the path blue (paler at its start), and the end
dark blue. Axes are in metres and to scale.
"""
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Circle, Polygon

from pycct import Behavior, Box, CharacterController, ConvexHull, Mesh, Plane, Scene

DT = 1 / 60
BLUE, DARK, RED, GREEN, GREY = "tab:blue", "#0b3c6f", "tab:red", "tab:green", "0.72"
DOWN = (0.0, 0.0, -0.02)
DEEP = 3.0  # half depth of prisms, metres


# ---------------------------------------------------------------- worlds


def world(*things):
    """A scene with a floor at z = 0 and objects.

    (x, z) polygons or (shape, position, more) tuples.
    """
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for thing in things:
        if isinstance(thing, list):
            scene.add(prism(thing))
        else:
            shape, position, *more = thing
            scene.add(shape, position=position, **(more[0] if more else {}))
    return scene


def prism(corners):
    """A convex polygon in x and z, extruded along y."""
    return ConvexHull([(x, y, z) for x, z in corners for y in (-DEEP, DEEP)])


def block(x0, x1, z0, z1):
    """Corners of an upright rectangle."""
    return [(x0, z0), (x1, z0), (x1, z1), (x0, z1)]


def ramp(x0, x1, degrees, z0=0.0):
    """Corners of a wedge that rises from (x0, z0)."""
    return [(x0, z0), (x1, z0), (x1, z0 + (x1 - x0) * math.tan(math.radians(degrees)))]


def walk(hero, displacement, moves):
    """Positions before and after each of several equal moves."""
    places = [hero.position]
    for _ in range(moves):
        hero.move(displacement, DT)
        places.append(hero.position)
    return places


def stand(scene, x=0.0, **parameters):
    """A character that has come to rest at x."""
    parameters = {"radius": 0.4, "height": 1.0} | parameters
    hero = CharacterController(scene, **parameters)
    hero.foot_position = (x, parameters.pop("y", 0.0), 0.0)
    return hero


# ---------------------------------------------------------------- drawing


def axes_of(view):
    """Coordinates that a view shows."""
    return (0, 2) if view == "side" else (0, 1)


def flat(point, view):
    """Project a point into a view."""
    i, j = axes_of(view)
    return point[i], point[j]


def corners_of(actor):
    """World corners of a box or hull."""
    shape = actor.shape
    if isinstance(shape, Box):
        hx, hy, hz = shape.half_extents
        local = [(sx * hx, sy * hy, sz * hz) for sx in (-1, 1) for sy in (-1, 1) for sz in (-1, 1)]
    else:
        local = [tuple(v) for v in shape.vertices]
    qx, qy, qz, qw = actor.rotation
    out = []
    for x, y, z in local:
        tx, ty, tz = 2 * (qy * z - qz * y), 2 * (qz * x - qx * z), 2 * (qx * y - qy * x)
        out.append((x + qw * tx + qy * tz - qz * ty + actor.position[0],
                    y + qw * ty + qz * tx - qx * tz + actor.position[1],
                    z + qw * tz + qx * ty - qy * tx + actor.position[2]))
    return out


def draw_world(axes, scene, view, colours=None):
    """Draw all shapes of a scene."""
    for actor in [*scene.actors, *scene.obstacles]:
        colour = (colours or {}).get(actor.id, GREY)
        if isinstance(actor.shape, Plane):
            if view == "side":
                axes.axhspan(-50, 0, color="0.85", zorder=0)
            continue
        if isinstance(actor.shape, Mesh):
            points = [flat(v, view) for v in actor.shape.vertices]
            for a, b, c in actor.shape.triangles:
                axes.add_patch(Polygon([points[a], points[b], points[c]], closed=True, facecolor=colour,
                                       edgecolor="0.35", linewidth=1.2, zorder=1))
            continue
        points = [flat(p, view) for p in corners_of(actor)]
        ring = hull2(points)
        axes.add_patch(Polygon(ring, closed=True, facecolor=colour, edgecolor="0.4", linewidth=0.8, zorder=1))


def hull2(points):
    """Convex outline of points in the plane, counter-clockwise."""
    points = sorted(set(points))

    def half(points):
        chain = []
        for p in points:
            while len(chain) > 1 and ((chain[-1][0] - chain[-2][0]) * (p[1] - chain[-2][1])
                                      - (chain[-1][1] - chain[-2][1]) * (p[0] - chain[-2][0])) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return half(points) + half(points[::-1])


def draw_capsule(axes, hero, position, view, colour=BLUE, alpha=1.0, fill=0.0, zorder=3):
    """The outline of a character at a position."""
    r, h = hero.radius, hero.height
    x, y = flat(position, view)
    if view == "top":
        axes.add_patch(Circle((x, y), r, facecolor=(*matplotlib.colors.to_rgb(colour), fill),
                              edgecolor=(*matplotlib.colors.to_rgb(colour), alpha), linewidth=1.3, zorder=zorder))
        return
    ux, uz = flat(hero.up, view)
    start = math.atan2(uz, ux)
    points = []
    for k in range(37):
        angle = start - math.pi / 2 + k * math.pi / 36
        points.append((x + ux * h / 2 + r * math.cos(angle), y + uz * h / 2 + r * math.sin(angle)))
    for k in range(37):
        angle = start + math.pi / 2 + k * math.pi / 36
        points.append((x - ux * h / 2 + r * math.cos(angle), y - uz * h / 2 + r * math.sin(angle)))
    axes.add_patch(Polygon(points, closed=True, facecolor=(*matplotlib.colors.to_rgb(colour), fill),
                           edgecolor=(*matplotlib.colors.to_rgb(colour), alpha), linewidth=1.3, zorder=zorder))


def draw_way(axes, hero, places, view="side", every=None, colour=BLUE, dark=DARK):
    """Draw capsules along a path, and the line of their centres."""
    n = len(places) - 1
    every = every or max(1, n // 5)
    shown = [i for i in range(0, n, every) if math.dist(places[i], places[-1]) > 0.12]
    for i in shown:
        draw_capsule(axes, hero, places[i], view, colour, alpha=0.25 + 0.45 * i / n)
    axes.plot(*zip(*[flat(p, view) for p in places], strict=True), color=colour, linewidth=1.4, zorder=4)
    draw_capsule(axes, hero, places[-1], view, dark, fill=0.18, zorder=5)


def frame(axes, title, x, y, note=None, good=None):
    """Set limits, equal scale, the title (the argument) and a note below."""
    axes.set(xlim=x, ylim=y, aspect="equal")
    # The height fits the panel, with space for title and note.
    width, n = axes.figure.get_figwidth(), len(axes.figure.axes)
    axes.figure.set_figheight(min((width / n - 0.4) * (y[1] - y[0]) / (x[1] - x[0]), 4.2) + 0.85)
    axes.set_title(title, fontsize=10, family="monospace")
    axes.tick_params(labelsize=7, length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if note:
        axes.set_xlabel(note, fontsize=9, color={True: "tab:green", False: "tab:red", None: "0.2"}[good])


def say(axes, text, at, to=None, colour="0.15", size=8, ha="center"):
    """Draw a text with an arrow."""
    if to is None:
        axes.text(*at, text, fontsize=size, color=colour, ha=ha, va="center", zorder=8,
                  bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75})
    else:
        axes.annotate(text, xy=to, xytext=at, fontsize=size, color=colour, ha=ha, va="center", zorder=8,
                      arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 0.9},
                      bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75})


def measure(axes, a, b, text, side=0.08, colour=RED, size=9):
    """Draw a double arrow between two points, with its name."""
    axes.annotate("", xy=b, xytext=a, arrowprops={"arrowstyle": "<->", "color": colour, "linewidth": 1.1,
                                                  "shrinkA": 0, "shrinkB": 0}, zorder=8)
    x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    upright = abs(a[0] - b[0]) < abs(a[1] - b[1])
    axes.text(x + (side if upright else 0), y + (0 if upright else side), text, fontsize=size, color=colour,
              ha=("left" if side > 0 else "right") if upright else "center",
              va="center" if upright else ("bottom" if side > 0 else "top"), zorder=9,
              bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8})


def panels(n, width=4.2):
    """A figure with n panels in a row."""
    figure, axes = plt.subplots(1, n, figsize=(width * n, 3), layout="constrained")
    return figure, list(axes) if n > 1 else [axes]


# ---------------------------------------------------------------- one picture a parameter


def size():
    """Names of lengths, on a resting character. The contact offset is ten times the default."""
    scene = world()
    hero = stand(scene, contact_offset=0.1, step_offset=0.3)
    hero.position = (0, 0, 1.4)
    walk(hero, (0, 0, -0.05), 20)
    figure, (axes,) = panels(1, 5.6)
    draw_world(axes, scene, "side")
    x, _, z = hero.position
    draw_capsule(axes, hero, hero.position, "side", DARK, fill=0.12)
    for end in (-0.5, 0.5):
        axes.add_patch(Circle((x, z + end), hero.radius, fill=False, linestyle=":", edgecolor="0.5", zorder=4))
        axes.plot(x, z + end, ".", color=DARK, zorder=6)
    axes.plot(x, z, "o", color=RED, zorder=7, markersize=5)
    axes.plot(*flat(hero.foot_position, "side"), "o", color=RED, zorder=7, markersize=5)
    say(axes, "position", (0.95, z), (x, z), RED, 9)
    say(axes, "foot_position", (0.98, -0.22), flat(hero.foot_position, "side"), RED, 9)
    measure(axes, (x - 0.62, z - 0.5), (x - 0.62, z + 0.5), "height 1.0", -0.06)
    measure(axes, (x, z + 0.5), (x + 0.4, z + 0.5), "radius 0.4", 0.05)
    measure(axes, (x + 0.62, 0), (x + 0.62, 0.1), "contact_offset 0.1", 0.06)
    measure(axes, (x - 1.4, z - 0.9), (x - 1.4, z + 0.9), "1.8 in all", -0.06, "0.3")
    for level in (z - 0.9, z - 0.5, z + 0.5, z + 0.9):
        axes.plot([x - 1.5, x], [level, level], color="0.7", linewidth=0.6, linestyle="--", zorder=2)
    frame(axes, "position, radius, height, contact_offset", (-2.2, 1.9), (-0.4, 2.15))
    return figure, [hero.position]


def position():
    """Setting the position against teleporting, on a lift that has risen."""
    figure, axes = panels(2)
    ends = []
    for ax, how in zip(axes, ("position = ...", "teleport(...)"), strict=True):
        scene = world()
        lift = scene.add(Box((1.2, 2, 0.1)), position=(0, 0, 0.1), body="kinematic", behavior=Behavior.CAN_RIDE)
        hero = stand(scene, -0.6)
        hero.position = (-0.6, 0, 1.2)
        walk(hero, DOWN, 10)
        before = hero.position
        if how.startswith("position"):
            hero.position = (0.6, 0, before[2])
        else:
            hero.teleport((0.6, 0, before[2]))
        put = hero.position
        lift.move_to((0.8, 0, 0.1))
        hero.move((0, 0, -0.001), DT)
        draw_world(ax, scene, "side")
        ax.add_patch(Polygon(block(-1.2, 1.2, 0, 0.2), closed=True, fill=False, linestyle=":", edgecolor="0.5"))
        draw_capsule(ax, hero, before, "side", BLUE, 0.4)
        draw_capsule(ax, hero, put, "side", BLUE, 0.8)
        draw_capsule(ax, hero, hero.position, "side", DARK, fill=0.18)
        ax.annotate("", xy=(put[0] - 0.45, 1.0), xytext=(before[0] + 0.45, 1.0),
                    arrowprops={"arrowstyle": "->", "color": BLUE})
        kept = hero.position[0] > 1.2
        frame(ax, f"hero.{how}", (-1.9, 2.7), (-0.3, 2.3), "still rides: it is carried 0.8 m with the tram" if kept
              else "the ride is forgotten: it is not carried", None)
        ends.append(hero.position)
    return figure, ends


def radius():
    """A gap of one metre, from above."""
    figure, axes = panels(2)
    ends = []
    for ax, r in zip(axes, (0.3, 0.6), strict=True):
        scene = world((Box((0.3, 1, 1)), (2, 1.5, 1)), (Box((0.3, 1, 1)), (2, -1.5, 1)))
        hero = stand(scene, radius=r)
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "top")
        draw_way(ax, hero, places, "top", every=16)
        measure(ax, (2, -0.5), (2, 0.5), "", 0.07)
        say(ax, "1 m", (2.9, 1.0), (2.03, 0.3), RED, 9)
        through = hero.position[0] > 3
        frame(ax, f"radius={r}", (-0.9, 4.8), (-1.7, 1.7), "fits through the gap" if through else "is too wide",
              through)
        ends.append(hero.position)
    return figure, ends


def height():
    """A lintel 1.7 m above the floor."""
    figure, axes = panels(2)
    ends = []
    for ax, h in zip(axes, (0.8, 1.0), strict=True):
        scene = world(block(1.6, 2.4, 1.75, 2.4))
        hero = stand(scene, height=h, step_offset=0.1)
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=20)
        measure(ax, (-0.65, 0), (-0.65, 1.75), "1.75", -0.06)
        through = hero.position[0] > 3
        frame(ax, f"height={h}", (-1.4, 4.7), (-0.2, 2.5), f"{h + 0.8:.1f} m tall, lifts 0.1 m: passes" if through
              else f"{h + 0.8:.1f} m tall, lifts 0.1 m: stops", through)
        ends.append(hero.position)
    return figure, ends


def up():
    """The same scene with two up directions."""
    figure, axes = panels(2)
    ends = []
    for ax, (direction, start, motion) in zip(axes, [((0, 0, 1), (0.6, 0, 0.91), (0.03, 0, -0.02)),
                                                     ((-1, 0, 0), (3.09, 0, 0.6), (0.02, 0, 0.03))], strict=True):
        scene = world(block(4, 5, 0, 4), block(3.75, 4, 2.0, 2.5), block(2.0, 2.5, 0, 0.25))
        hero = CharacterController(scene, position=start, up=direction)
        places = walk(hero, motion, 70)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=14)
        x, z = flat(places[0], "side")
        ux, uz = flat(direction, "side")
        ax.annotate("up", xy=(x + 1.5 * ux, z + 1.5 * uz), xytext=(x + 0.95 * ux, z + 0.95 * uz), color=RED, fontsize=9,
                    ha="center", va="center", arrowprops={"arrowstyle": "->", "color": RED})
        frame(ax, f"up={direction}", (-0.3, 4.9), (-0.2, 3.8), "floor and walls change places", None)
        ends.append(hero.position)
    return figure, ends


def stairs(n, rise, run, x0):
    """Blocks of a staircase."""
    return [block(x0 + i * run, x0 + n * run, i * rise, (i + 1) * rise) for i in range(n)]


def step_offset():
    """The same stairs of 0.3 m with three step offsets."""
    figure, axes = panels(3, 3.6)
    ends = []
    for ax, s in zip(axes, (0.0, 0.2, 0.4), strict=True):
        scene = world(*stairs(4, 0.3, 0.6, 1.2))
        hero = stand(scene, step_offset=s, climbing_mode="constrained")
        places = walk(hero, (0.04, 0, -0.02), 85)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=14)
        measure(ax, (2.3, 0.6), (2.3, 0.9), "0.3", -0.04)
        climbed = hero.foot_position[2] > 1
        frame(ax, f"step_offset={s}", (-0.7, 3.6), (-0.2, 3.1), "climbs" if climbed
              else "is held by the first step", climbed)
        ends.append(hero.position)
    return figure, ends


def headroom():
    """The UP pass lifts the head as well."""
    figure, axes = panels(2)
    ends = []
    for ax, s in zip(axes, (0.1, 0.5), strict=True):
        scene = world(block(1.6, 2.4, 1.95, 2.4))
        hero = stand(scene, step_offset=s)
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=20)
        lifted = (places[-1][0], 0, places[-1][2] + s)
        through = hero.position[0] > 3
        if not through:
            draw_capsule(ax, hero, lifted, "side", RED, 0.8)
            say(ax, "lifted by the step", (3.3, 1.35), (lifted[0] + 0.38, 1.85), RED)
        measure(ax, (-0.65, 0), (-0.65, 1.95), "1.95", -0.06)
        frame(ax, f"step_offset={s}", (-1.4, 4.7), (-0.2, 2.7), "1.8 + 0.1 m fit below 1.95 m" if through
              else "1.8 + 0.5 m do not", through)
        ends.append(hero.position)
    return figure, ends


def contact_offset():
    """The gap to floor and wall."""
    figure, axes = panels(2)
    ends = []
    for ax, c in zip(axes, (0.02, 0.15), strict=True):
        scene = world(block(1.6, 2.4, 0, 2.2))
        hero = stand(scene, contact_offset=c)
        hero.position = (0, 0, 1.2)
        walk(hero, (0, 0, -0.05), 20)
        places = walk(hero, (0.05, 0, -0.02), 60)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=60)
        x, _, z = hero.position
        measure(ax, (x + 0.4, z - 0.2), (1.6, z - 0.2), f"{1.6 - x - 0.4:.2f}", 0.07)
        say(ax, f"{hero.position[2] - 0.9:.2f}", (x - 0.75, 0.3), (x, hero.position[2] - 0.9 - c / 2), RED, 9)
        frame(ax, f"contact_offset={c}", (-0.7, 2.5), (-0.2, 2.3), "stops this far from everything")
        ends.append(hero.position)
    return figure, ends


def slope_limit():
    """Ramps of 30 and 50 degrees under two limits."""
    figure, axes = panels(2, 4.6)
    ends = []
    for ax, degrees in zip(axes, (45, 60), strict=True):
        top = 1.04 + 1.8 * math.tan(math.radians(50))
        scene = world(ramp(0.8, 2.6, 30), [(2.6, 0), (4.4, 0), (4.4, top), (2.6, 1.04)])
        hero = stand(scene, slope_limit=math.cos(math.radians(degrees)), step_offset=0.1)
        places = walk(hero, (0.04, 0, -0.03), 95)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=16)
        say(ax, "30°", (2.2, 0.35))
        say(ax, "50°", (3.9, 1.0))
        over = hero.foot_position[2] > 1.5
        frame(ax, f"slope_limit={math.cos(math.radians(degrees)):.3f}  (cos {degrees}°)", (-0.7, 4.4), (-0.2, 4.6),
              "climbs both" if over else "climbs 30°, is held at 50°", None)
        ends.append(hero.position)
    return figure, ends


def climbing_mode():
    """A crate of 0.7 m, with a step offset of 0.5."""
    figure, axes = panels(2)
    ends = []
    for ax, mode in zip(axes, ("easy", "constrained"), strict=True):
        scene = world(block(1.4, 3.4, 0, 0.7))
        hero = stand(scene, climbing_mode=mode, step_offset=0.5)
        places = walk(hero, (0.05, 0, -0.03), 50)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=9)
        ax.plot([-0.7, 1.4], [0.5, 0.5], color=RED, linestyle="--", linewidth=1, zorder=6)
        say(ax, "step offset 0.5", (-0.05, 0.6), None, RED)
        measure(ax, (3.0, 0), (3.0, 0.7), "0.7", 0.06)
        over = hero.foot_position[2] > 0.5
        frame(ax, f'climbing_mode="{mode}"', (-0.7, 3.4), (-0.2, 2.8), "the round bottom rolls over the edge" if over
              else "nothing higher than the step is climbed", None)
        ends.append(hero.position)
    return figure, ends


def non_walkable_mode():
    """A character placed on a slope of 60 degrees."""
    figure, axes = panels(2)
    ends = []
    for ax, mode in zip(axes, ("prevent_climbing", "force_sliding"), strict=True):
        scene = world([(0.6, 0), (2.9, 0), (2.9, 2.3 * math.tan(math.radians(60)))])
        hero = stand(scene, non_walkable_mode=mode, step_offset=0.1)
        hero.position = (1.55, 0, 3.2)
        places = walk(hero, (0, 0, -0.04), 75)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=12)
        say(ax, "60°", (2.5, 1.2))
        slid = hero.position[0] < 0.8
        frame(ax, f'non_walkable_mode="{mode}"', (-1.2, 3.2), (-0.2, 4.2), "slides down" if slid
              else "stands, but does not climb", None)
        ends.append(hero.position)
    return figure, ends


def rules():
    """A door with too little headroom for the step, by two rule sets."""
    figure, axes = panels(2)
    ends = []
    for ax, name in zip(axes, ("physx", "robust"), strict=True):
        scene = world(block(1.6, 2.4, 1.9, 2.4))
        hero = stand(scene, rules=name)
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=20)
        measure(ax, (-0.65, 0), (-0.65, 1.9), "1.9", -0.06)
        through = hero.position[0] > 3
        frame(ax, f'rules="{name}"', (-1.3, 4.7), (-0.2, 2.6), "tries lower steps and passes" if through
              else "the step lifts the head into the lintel", through)
        ends.append(hero.position)
    return figure, ends


def overlap_recovery():
    """A move that begins inside a wall."""
    figure, axes = panels(2)
    ends = []
    for ax, on in zip(axes, (True, False), strict=True):
        scene = world(block(1.0, 2.0, 0, 2.2))
        hero = stand(scene, 0.75, overlap_recovery=on)
        start = hero.position
        places = walk(hero, (0.05, 0, -0.02), 30)
        draw_world(ax, scene, "side")
        draw_capsule(ax, hero, start, "side", RED, 0.9)
        draw_way(ax, hero, places, every=10)
        out = hero.position[0] < 1
        say(ax, "start", (0.3, 2.25), (start[0], 1.8), RED)
        frame(ax, f"overlap_recovery={on}", (-0.6, 3.2), (-0.2, 2.5), "is put out of the wall, and stays out" if out
              else "walks on through the wall", out)
        ends.append(hero.position)
    return figure, ends


def prevent_vertical_sliding():
    """A jump against a slanted ceiling."""
    figure, axes = panels(2)
    ends = []
    for ax, on in zip(axes, (False, True), strict=True):
        scene = world([(-1.8, 4.2), (1.4, 2.35), (1.4, 4.2)])
        hero = stand(scene, 0.6, prevent_vertical_sliding=on)
        places = walk(hero, (0, 0, 0.08), 26)
        draw_world(ax, scene, "side")
        draw_way(ax, hero, places, every=6)
        slid = hero.position[0] < 0.4
        frame(ax, f"prevent_vertical_sliding={on}", (-1.8, 2.2), (-0.2, 4.2), "slides up along the ceiling" if slid
              else "stops below it", None)
        ends.append(hero.position)
    return figure, ends


def hill(x0, x1, degrees, top=None):
    """A mesh: level ground up to x0, then a slope; only meshes have invisible walls."""
    rise = (x1 - x0) * math.tan(math.radians(degrees))
    xz = [(-3, 0.0), (x0, 0.0), (x1, rise), (x1 + 2, rise)]
    vertices = [(x, y, z) for x, z in xz for y in (-DEEP, DEEP)]
    triangles = []
    for i in range(len(xz) - 1):
        a, b, c, d = 2 * i, 2 * i + 1, 2 * i + 2, 2 * i + 3
        triangles += [(a, c, d), (a, d, b)]
    return Mesh(vertices, triangles)


def invisible_wall_height():
    """A jump onto a slope that is too steep to walk on."""
    figure, axes = panels(2)
    ends = []
    for ax, h in zip(axes, (0.0, 3.0), strict=True):
        scene = Scene()
        scene.add(hill(1.2, 3.0, 60))
        hero = stand(scene, -0.9, invisible_wall_height=h, step_offset=0.2)
        places = walk(hero, (0.035, 0, 0.05), 36) + walk(hero, (0.035, 0, -0.05), 50)
        rise = 1.8 * math.tan(math.radians(60))
        ax.fill_between([-3, 1.2, 3, 5], [0, 0, rise, rise], -1, color=GREY, zorder=1)
        draw_way(ax, hero, places, every=10)
        if h:
            ax.plot([1.2, 1.2], [0, h], color=RED, linestyle="--", linewidth=1.5, zorder=6)
            say(ax, "wall that nobody sees", (2.3, 3.35), (1.22, 2.9), RED)
        say(ax, "60°", (2.6, 1.2))
        held = hero.position[0] < 1
        frame(ax, f"invisible_wall_height={h}", (-1.5, 3.4), (-0.2, 3.8), "cannot jump onto it" if held
              else "jumps onto the steep part", None)
        ends.append(hero.position)
    return figure, ends


def max_jump_height():
    """The volume of the candidate cache, in a fall beside a steep slope."""
    figure, axes = panels(2)
    ends = []
    for ax, j in zip(axes, (0.0, 2.0), strict=True):
        scene = Scene()
        scene.add(hill(1.2, 2.2, 60))
        hero = stand(scene, invisible_wall_height=2.0, max_jump_height=j)
        hero.position = (0, 0, 4.6)
        start = hero.position
        hero.move((0, 0, -0.1), DT)
        (x0, _, z0), (x1, _, z1) = hero.stats.cache_bounds
        updates = hero.stats.full_updates
        places = [start, hero.position]
        for _ in range(45):
            hero.move((0, 0, -0.1), DT)
            places.append(hero.position)
            updates += hero.stats.full_updates
        rise = math.tan(math.radians(60))
        ax.fill_between([-3, 1.2, 2.2, 5], [0, 0, rise, rise], -2, color=GREY, zorder=1)
        draw_way(ax, hero, places, every=14)
        ax.add_patch(Polygon(block(x0, x1, z0, z1), closed=True, fill=False, linestyle="--", edgecolor=RED, zorder=6))
        say(ax, "looked up by\nthe first move", (2.1, 5.2), (x1, 4.9), RED)
        frame(ax, f"max_jump_height={j}", (-1.8, 3.4), (-0.4, 6.3), f"the fall looks the world up {updates} times")
        ends.append((hero.position, updates))
    return figure, ends


def mask():
    """A pane of glass on a layer of its own, from above."""
    figure, axes = panels(2)
    ends = []
    for ax, bits in zip(axes, (0b11, 0b01), strict=True):
        scene = world((Box((0.08, 1.3, 1)), (2, 0, 1), {"layer": 0b10}))
        hero = stand(scene, mask=bits)
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "top", {1: "#bfe3e8"})
        draw_way(ax, hero, places, "top", every=16)
        say(ax, "layer=0b10", (2, 1.5))
        held = hero.position[0] < 2
        frame(ax, f"mask={bits:#04b}", (-0.8, 4.7), (-1.5, 1.7), "sees the pane" if held else "does not see it", None)
        ends.append(hero.position)
    return figure, ends


def collide():
    """Two characters walking towards each other, from above."""
    figure, axes = panels(2)
    ends = []
    for ax, on in zip(axes, (True, False), strict=True):
        scene = world()
        one, two = stand(scene, 0.0, collide=on), stand(scene, 4.0, collide=on)
        first, second = [one.position], [two.position]
        for _ in range(50):
            one.move((0.05, 0, -0.02), DT)
            two.move((-0.05, 0, -0.02), DT)
            first.append(one.position)
            second.append(two.position)
        draw_way(ax, one, first, "top", every=12)
        draw_way(ax, two, second, "top", every=12, colour="tab:orange", dark="#8a4500")
        met = one.position[0] < two.position[0]
        frame(ax, f"collide={on}", (-0.8, 4.8), (-1, 1), "stop at each other" if met
              else "walk through each other", None)
        ends.append(one.position)
    return figure, ends


def hits():
    """Every collision of a walk, from on_hit."""
    scene = world(block(1.2, 1.8, 0, 0.3), block(3.2, 3.6, 0, 2.4), [(1.9, 3.0), (2.6, 2.15), (2.9, 3.0)])
    told = []
    hero = stand(scene, on_hit=told.append)
    places = walk(hero, (0.05, 0, -0.05), 60)
    figure, (axes,) = panels(1, 6.4)
    draw_world(axes, scene, "side")
    draw_way(axes, hero, places, every=10)
    colours = {"UP": "tab:purple", "SIDE": RED, "DOWN": GREEN}
    for hit in told[:: max(1, len(told) // 60)]:
        x, z = flat(hit.position, "side")
        nx, nz = flat(hit.normal, "side")
        axes.annotate("", xy=(x + 0.3 * nx, z + 0.3 * nz), xytext=(x, z), zorder=7,
                      arrowprops={"arrowstyle": "->", "color": colours[hit.pass_.name], "linewidth": 1})
        axes.plot(x, z, ".", color=colours[hit.pass_.name], markersize=4, zorder=8)
    for name, colour in colours.items():
        axes.plot([], [], color=colour, label=f"{name} pass: {sum(h.pass_.name == name for h in told)} hits")
    axes.legend(fontsize=8, loc="upper left", frameon=False)
    frame(axes, "on_hit=told.append", (-0.7, 4.0), (-0.2, 3.2), "hit.position and hit.normal of each collision")
    return figure, [hero.position, told]


def behavior():
    """A tram that goes two metres, with and without CAN_RIDE."""
    figure, axes = panels(2)
    ends = []
    for ax, allowed in zip(axes, (Behavior.NONE, Behavior.CAN_RIDE), strict=True):
        scene = world()
        tram = scene.add(Box((1.4, 2, 0.15)), position=(0, 0, 0.15), body="kinematic")
        hero = stand(scene, behavior=lambda other, allowed=allowed: allowed)
        hero.position = (0.6, 0, 1.3)
        walk(hero, DOWN, 20)
        places = [hero.position]
        for i in range(60):
            tram.move_to((2 * (i + 1) / 60, 0, 0.15))
            hero.move(DOWN, DT)
            places.append(hero.position)
        draw_world(ax, scene, "side")
        ax.add_patch(Polygon(block(-1.4, 1.4, 0, 0.3), closed=True, fill=False, linestyle=":", edgecolor="0.4",
                             zorder=2))
        ax.annotate("", xy=(1.4, 0.15), xytext=(0.1, 0.15), arrowprops={"arrowstyle": "->", "color": "0.3"}, zorder=3)
        draw_way(ax, hero, places, every=12)
        rides = hero.position[0] > 2
        frame(ax, f"behavior: {allowed.name}", (-1.6, 3.6), (-0.2, 2.4), "rides along" if rides
              else "stays behind: carried up and down only", None)
        ends.append(hero.position)
    return figure, ends


def filter_():
    """A door that collides only if the filter returns True, from above."""
    figure, axes = panels(2)
    ends = []
    for ax, is_open in zip(axes, (False, True), strict=True):
        scene = world((Box((0.1, 0.7, 1)), (2, 0, 1), {"user_data": {"open": is_open}}),
                      (Box((0.2, 0.5, 1)), (2, 1.2, 1)), (Box((0.2, 0.5, 1)), (2, -1.2, 1)))
        hero = stand(scene, filter=lambda other: not (other.user_data and other.user_data["open"]))
        places = walk(hero, (0.05, 0, -0.02), 80)
        draw_world(ax, scene, "top", {1: "#e6c69a"})
        draw_way(ax, hero, places, "top", every=16)
        through = hero.position[0] > 3
        frame(ax, f"filter(door) -> {not is_open}", (-0.8, 4.7), (-1.75, 1.75), "walks through the door" if through
              else "meets the door", None)
        ends.append(hero.position)
    return figure, ends


def surface():
    """Landing on somebody's head."""
    figure, axes = panels(2)
    ends = []
    for ax, allowed in zip(axes, (Behavior.NONE, Behavior.CAN_SLIDE), strict=True):
        scene = world()
        lower = stand(scene, collide=True, surface=allowed)
        upper = stand(scene, collide=True)
        upper.position = (0.15, 0, 4.0)
        places = walk(upper, (0, 0, -0.1), 60)
        draw_world(ax, scene, "side")
        draw_capsule(ax, lower, lower.position, "side", "#8a4500", fill=0.2)
        draw_way(ax, upper, places, every=8)
        slid = upper.position[0] > 0.5
        frame(ax, f"surface=Behavior.{allowed.name}", (-1.6, 2.2), (-0.2, 5.0), "slides off" if slid
              else "stands on the head", None)
        ends.append(upper.position)
    return figure, ends


def min_distance():
    """Two thousand moves of half a millimetre each."""
    figure, axes = panels(2, 4.2)
    ends = []
    for ax, least in zip(axes, (0.0, 0.001), strict=True):
        scene = world()
        hero = stand(scene, step_offset=0.0)
        start = hero.position
        for _ in range(2000):
            hero.move((0.0005, 0, 0), DT, min_distance=least)
        draw_world(ax, scene, "side")
        draw_capsule(ax, hero, start, "side", BLUE, 0.5)
        draw_capsule(ax, hero, hero.position, "side", DARK, fill=0.18)
        went = hero.position[0] - start[0]
        if went > 0.1:
            measure(ax, (start[0], 2.05), (hero.position[0], 2.05), f"{went:.2f}", 0.04)
        frame(ax, f"min_distance={least}", (-0.8, 2.2), (-0.2, 2.4), "2000 moves of 0.5 mm make 1 m" if went > 0.1
              else "none of 2000 moves of 0.5 mm is begun", None)
        ends.append(hero.position)
    return figure, ends


PICTURES = {
    "size": size, "position": position, "radius": radius, "height": height, "up": up, "step_offset": step_offset,
    "headroom": headroom, "contact_offset": contact_offset, "slope_limit": slope_limit, "climbing_mode": climbing_mode,
    "non_walkable_mode": non_walkable_mode, "rules": rules, "overlap_recovery": overlap_recovery,
    "prevent_vertical_sliding": prevent_vertical_sliding, "invisible_wall_height": invisible_wall_height,
    "max_jump_height": max_jump_height, "mask": mask, "collide": collide, "on_hit": hits, "behavior": behavior,
    "filter": filter_, "surface": surface, "min_distance": min_distance,
}


def main():
    """Draw all pictures, or the named ones."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "parameters"
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PICTURES:
        figure, ends = PICTURES[name]()
        figure.savefig(folder / f"{name}.png", dpi=90, bbox_inches="tight", pad_inches=0.08,
                       metadata={"Software": None})
        plt.close(figure)
        print(name, ends if name != "on_hit" else ends[0])


if __name__ == "__main__":
    main()
