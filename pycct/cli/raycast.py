"""``python -m pycct raycast``: cast a ray into a level file."""
from __future__ import annotations

import argparse
import math

from pycct import Scene
from pycct.cli.options import add_level, positive, read_level, takes_negative_numbers, vector

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "raycast",
        help="cast a ray into a level file",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Casts one ray into a level and prints the distance, point, normal, slope and triangle of the\n"
        "first hit. Triangles are solid from their front. Coordinates are metres, z up, after --up and --scale.",
        epilog="examples:\n  python -m pycct raycast dungeon.obj --up y --origin 10,5,20\n"
        "  python -m pycct raycast town.glb --origin 0,0,1.7 --direction 1,0,0 --distance 50",
    )
    takes_negative_numbers(parser)
    add_level(parser)
    parser.add_argument("--origin", type=vector, required=True, metavar="X,Y,Z", help="start of the ray")
    parser.add_argument("--direction", type=vector, default=(0.0, 0.0, -1.0), metavar="X,Y,Z",
                        help="any length but zero; default: straight down")
    parser.add_argument("--distance", type=positive, default=1000.0, metavar="M", help="length; default: 1000")


def run(args: argparse.Namespace) -> int:
    """Print the hit of the ray.

    Parameters
    ----------
    args : argparse.Namespace
        ``level``, ``up``, ``scale``, ``two_sided``, ``origin``, ``direction``, ``distance``.

    Returns
    -------
    int
        Exit code: 0, or 1 if the file cannot be read.
    """
    if not any(args.direction):
        print("pycct: --direction must not be 0,0,0")
        return 2
    level = read_level(args)
    if level is None:
        return 1
    scene = Scene()
    scene.add(level[0])
    hit = scene.raycast(args.origin, args.direction, args.distance)
    if hit is None:
        print(f"nothing within {args.distance:g} m; bounds of the level are {level[1].lower} to {level[1].upper}")
        return 0
    slope = math.degrees(math.acos(max(-1.0, min(1.0, hit.normal[2]))))
    print(f"distance  {hit.distance:.6g} m")
    print("point     " + ",".join(f"{x:.6g}" for x in hit.position))
    print("normal    " + ",".join(f"{x:.6g}" for x in hit.normal) + f"  (slope {slope:.1f} degrees)")
    print(f"triangle  {hit.triangle}")
    return 0
