"""``python -m pycct play``: walk through a level in the browser, and try parameters."""
from __future__ import annotations

import argparse
import sys

from pycct import Mesh, Scene
from pycct.cli.options import add_level, add_server, positive, read_level, takes_negative_numbers, vector
from pycct.view import Game

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "play",
        help="walk through a level in the browser, and try parameters",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Serves a page (needs viser: pip install 'pycct[view]') until it is interrupted. A click on the\n"
        "ground walks there, a click with Shift puts the character there. Buttons jump and crouch;\n"
        "sliders set radius, height, step offset, slope limit, contact offset and rule set at once.",
        epilog="examples:\n  python -m pycct play\n  python -m pycct play dungeon.obj --up y --start 20,-5,10",
    )
    takes_negative_numbers(parser)
    add_level(parser, optional="the level of the demo")
    parser.add_argument("--start", type=vector, metavar="X,Y,Z",
                        help="start of the feet; default: the highest ground at the middle of the level")
    parser.add_argument("--seconds", type=positive, default=float("inf"), metavar="S", help="end after this time")
    add_server(parser)


def run(args: argparse.Namespace) -> int:
    """Serve the page.

    Parameters
    ----------
    args : argparse.Namespace
        ``level``, ``up``, ``scale``, ``two_sided``, ``nodes``, ``start``, ``seconds``, ``host``,
        ``port``, ``no_browser``.

    Returns
    -------
    int
        0, or 1 when the level cannot be read or the page cannot be served.
    """
    scene = Scene()
    if args.level is None:
        from pycct.cli.demo.level import build_level

        built = build_level()
        scene.add(Mesh(built.vertices, built.triangles))
    else:
        level = read_level(args)
        if level is None:
            return 1
        scene.add(level[0])
    try:
        game = Game(scene, args.start or _top(scene), args.host, args.port, not args.no_browser)
    except (OSError, ImportError) as problem:
        print(f"pycct: {problem}", file=sys.stderr)
        return 1
    game.run(args.seconds)
    game.close()
    return 0


def _top(scene: Scene) -> tuple[float, float, float]:
    """The highest ground at the middle of the level, or the middle of its top."""
    low, high = scene.actors[0].bounds
    x, y, z = (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[2]
    hit = scene.raycast((x, y, z + 1.0), (0, 0, -1), z - low[2] + 2.0)
    return (x, y, z) if hit is None else hit.position
