"""``python -m pycct walk``: walk a character over a level file and print why it stopped."""
from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pycct import Capsule, CharacterController, CollisionFlags, Mesh, Pass, Scene
from pycct.cli.options import add_level, positive, read_level, takes_negative_numbers, vector
from pycct.toolbox import cosine

__all__ = ["Walk", "add_parser", "run", "walk"]

Vector = tuple[float, float, float]

DT = 1.0 / 60.0
GRAVITY = 9.81
# Horizontal distance to the goal at which the walk ends, metres.
ARRIVED = 0.1
# A character has stopped if, in PATIENCE seconds, it comes nearer to its goal by less than this
# share of its speed.
PROGRESS = 0.05
PATIENCE = 1.0


class Walk(NamedTuple):
    """Result of a walk.

    Attributes
    ----------
    arrived : bool
    reason : str
        Why the walk ended.
    path : list of (3,)
        Foot positions, step by step.
    """

    arrived: bool
    reason: str
    path: list[Vector]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "walk",
        help="walk a character over a level file; print why it stopped",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Places the feet of a character at --start, lets it fall to the ground and walk straight\n"
        "--towards a goal, and prints why it stopped: arrived, wall, slope, step, ceiling, drop.\n"
        "Coordinates are metres, z up, after --up and --scale.",
        epilog="examples:\n  python -m pycct walk dungeon.obj --up y --start 20,-5,10 --towards 25,-5,10\n"
        "  python -m pycct walk town.glb --start 0,0,1 --towards 30,0,0 --plot walk.png --rules document",
    )
    takes_negative_numbers(parser)
    add_level(parser)
    parser.add_argument("--start", type=vector, required=True, metavar="X,Y,Z", help="start of the feet")
    parser.add_argument("--towards", type=vector, required=True, metavar="X,Y,Z",
                        help="goal; its height does not matter")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the path from above and from the side "
                                                                  "(needs matplotlib)")
    parser.add_argument("--rules", choices=("physx", "document", "robust"), default="physx",
                        help="default: %(default)s")
    parser.add_argument("--radius", type=positive, default=0.4, metavar="M", help="default: %(default)s")
    parser.add_argument("--height", type=positive, default=1.0, metavar="M",
                        help="distance of the sphere centres; default: %(default)s")
    parser.add_argument("--step-offset", type=positive, default=0.5, metavar="M", help="default: %(default)s")
    parser.add_argument("--slope", type=positive, default=45.0, metavar="DEGREES",
                        help="steepest walkable slope; default: %(default)s")
    parser.add_argument("--speed", type=positive, default=4.0, metavar="M/S", help="default: %(default)s")
    parser.add_argument("--seconds", type=positive, default=60.0, metavar="S",
                        help="longest duration; default: %(default)s")


def _slope(normal: Sequence[float]) -> float:
    return math.degrees(math.acos(max(-1.0, min(1.0, normal[2]))))


def _place(v: Sequence[float]) -> str:
    return "(" + ", ".join(f"{x:.2f}" for x in v) + ")"


def _why_stuck(scene: Scene, hero: CharacterController, heading: Vector, slope: float) -> str:
    """Return the obstacle as text, from the hits of the last move and the surroundings."""
    hits = [h for h in hero.hits if h.pass_ in (Pass.SIDE, Pass.SENSOR)]
    hits = [h for h in hits if h.normal[0] * heading[0] + h.normal[1] * heading[1] < -1e-3] or hits
    if not hits:
        if hero.flags & CollisionFlags.UP:
            return "stopped: a shape above holds it down"
        if hero.state.sliding:
            return f"stopped: the ground is steeper than {slope:g} degrees, and it slides back"
        return "stopped: no hit of the last move explains why"
    hit = hits[0]
    where = f"triangle {hit.triangle} at {_place(hit.position)}"
    feet = hero.foot_position[2]
    angle = _slope(hit.normal)
    if slope < angle < 89.0:
        return f"stopped by a slope: {where} rises at {angle:.1f} degrees, but {slope:g} is the limit"
    if angle > 91.0:
        return f"stopped by an overhang: {where}, {hit.position[2] - feet:.2f} m above its feet"
    top = _top_of_step(scene, hero, heading)
    # A hit level with the feet means that the ray started inside of a taller obstacle and found the
    # floor.
    if top is not None and top > feet + hero.contact_offset:
        rise = top - feet
        if rise > hero.step_offset:
            return f"stopped by a step: {where} is {rise:.2f} m high, but the step offset is {hero.step_offset:g} m"
        return f"stopped by a step of {rise:.2f} m: {where}; its top has no space to stand"
    return f"stopped by a wall: {where}"


def _top_of_step(scene: Scene, hero: CharacterController, heading: Vector) -> float | None:
    """Height of the obstacle ahead, if its top is between foot and head height and walkable."""
    total = hero.height + 2.0 * hero.radius
    ahead = 1.05 * hero.radius + hero.contact_offset
    x, y, z = hero.foot_position
    ray = scene.raycast((x + heading[0] * ahead, y + heading[1] * ahead, z + total), (0.0, 0.0, -1.0), total)
    return None if ray is None or ray.distance == 0.0 or ray.normal[2] < 0.1 else ray.position[2]


def walk(
    mesh: Mesh,
    start: Vector,
    towards: Vector,
    *,
    rules: Literal["physx", "document", "robust"] = "physx",
    radius: float = 0.4,
    height: float = 1.0,
    step_offset: float = 0.5,
    slope: float = 45.0,
    speed: float = 4.0,
    seconds: float = 60.0,
) -> Walk:
    """Walk straight over a mesh.

    Parameters
    ----------
    mesh : Mesh
        z up, metres.
    start, towards : (3,) floats
        Feet at the start; the goal, whose height does not matter.
    rules, radius, height, step_offset
        As for `CharacterController`.
    slope : float
        Steepest walkable slope, degrees.
    speed : float
        Metres a second.
    seconds : float
        Longest duration.

    Returns
    -------
    Walk
    """
    scene = Scene()
    scene.add(mesh)
    floor = mesh.bounds[0][2]
    limit = cosine(math.radians(min(slope, 89.9)))
    hero = CharacterController(
        scene, position=(0.0, 0.0, 0.0), radius=radius, height=height, step_offset=step_offset, slope_limit=limit,
        rules=rules,
    )
    hero.foot_position = start
    inside = scene.penetration(Capsule(radius, height), hero.position)
    path = [hero.foot_position]
    if inside and inside[0].depth > 0.5 * radius:
        return Walk(False, f"cannot start: {_place(start)} is inside the level, {inside[0].depth:.2f} m deep", path)
    fall = 0.0
    started = False
    nearest, patience = math.inf, 0.0
    for step in range(int(seconds / DT)):
        x, y, z = hero.foot_position
        dx, dy = towards[0] - x, towards[1] - y
        left = math.hypot(dx, dy)
        # A character in the air above the goal has not arrived.
        if started and left <= ARRIVED and hero.hit_down:
            return Walk(True, f"arrived at {_place((x, y, z))} after {step * DT:.1f} s", path)
        if z < floor - 10.0:
            return Walk(False, _why_fell(path), path)
        fall += GRAVITY * DT
        stride = min(speed * DT, left) if started else 0.0
        heading = (dx / left, dy / left, 0.0) if left > 0.0 else (0.0, 0.0, 0.0)
        flags = hero.move((heading[0] * stride, heading[1] * stride, -fall * DT), DT)
        path.append(hero.foot_position)
        if flags & CollisionFlags.DOWN:
            fall = 0.0
            if not started:
                started = True
                continue
        if not started:
            continue
        remaining = math.hypot(towards[0] - hero.foot_position[0], towards[1] - hero.foot_position[1])
        if remaining < nearest - PROGRESS * speed * DT * PATIENCE or not hero.hit_down:
            nearest, patience = min(nearest, remaining), 0.0
        else:
            patience += DT
            if patience >= PATIENCE:
                return Walk(False, _why_stuck(scene, hero, heading, slope) + f"; {remaining:.2f} m remain", path)
    return Walk(False, f"gave up after {seconds:g} s at {_place(hero.foot_position)}", path)


def _why_fell(path: list[Vector]) -> str:
    """Return the place where the last fall started."""
    k = len(path) - 1
    while k > 0 and path[k - 1][2] - path[k][2] > 1e-6:
        k -= 1
    if k == 0:
        return f"fell out of the level from the start: there is no ground below {_place(path[0])}"
    return f"fell out of the level: the ground ends at {_place(path[k])}"


def run(args: argparse.Namespace) -> int:
    """Walk and print the result.

    Parameters
    ----------
    args : argparse.Namespace
        As `add_parser` defines them.

    Returns
    -------
    int
        Exit code: 0 if the character arrived, 1 if the file cannot be read, 3 if it stopped before.
    """
    level = read_level(args)
    if level is None:
        return 1
    mesh, report = level
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    try:
        result = walk(
            mesh, args.start, args.towards, rules=args.rules, radius=args.radius, height=args.height,
            step_offset=args.step_offset, slope=args.slope, speed=args.speed, seconds=args.seconds,
        )
    except ValueError as e:
        print(f"pycct: {e}", file=sys.stderr)
        return 1
    print(result.reason)
    if args.plot is not None:
        try:
            _plot(args.plot, mesh, result, args.towards)
        except ImportError:
            print("pycct: --plot needs matplotlib: pip install pycct[plot]", file=sys.stderr)
            return 1
        except (OSError, ValueError) as e:
            print(f"pycct: cannot write {args.plot}: {e}", file=sys.stderr)
            return 1
        print(f"path drawn in {args.plot}")
    return 0 if result.arrived else 3


def _plot(file: Path, mesh: Mesh, result: Walk, towards: Vector) -> None:
    """Draw the path from above and from the side, over the triangles around it."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    track_points = np.array(result.path)
    lo, hi = np.minimum(track_points.min(0), towards) - 3.0, np.maximum(track_points.max(0), towards) + 3.0
    corners = mesh.vertices[mesh.triangles]
    near = ((corners.max(1) >= lo) & (corners.min(1) <= hi)).all(1)
    corners = corners[near]
    along = np.array([towards[0] - track_points[0, 0], towards[1] - track_points[0, 1]])
    length = float(np.hypot(*along))
    along = along / length if length > 0.0 else np.array([1.0, 0.0])
    figure = Figure(figsize=(9, 9), layout="constrained")
    FigureCanvasAgg(figure)
    above, side = figure.subplots(2, 1)

    def project(points: np.ndarray, from_side: bool) -> np.ndarray:
        if from_side:
            return np.stack([(points[..., :2] - track_points[0, :2]) @ along, points[..., 2]], -1)
        return points[..., :2]

    for axes, from_side, names in ((above, False, ("x", "y")), (side, True, ("along the path", "z"))):
        flat = project(corners, from_side)
        lines = np.concatenate([flat, flat[:, :1]], 1)
        axes.add_collection(LineCollection(list(lines), colors="0.8", linewidths=0.4))
        track = project(track_points, from_side)
        axes.plot(track[:, 0], track[:, 1], color="tab:blue")
        axes.plot(*track[0], "o", color="tab:green", label="start")
        axes.plot(*track[-1], "s", color="tab:red", label="end")
        if not from_side:
            axes.plot(towards[0], towards[1], "x", color="k", label="goal")
        axes.set_xlabel(names[0] + " (m)")
        axes.set_ylabel(names[1] + " (m)")
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.1)
        axes.legend(loc="best", fontsize="small")
    above.set_title(result.reason, fontsize="small", wrap=True)
    figure.savefig(file, dpi=120)
