"""``python -m pycct info``: what a level file holds, and what looks wrong about it."""
from __future__ import annotations

import argparse

from pycct.cli.options import add_level, read_level

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "info",
        help="what a level file holds, and what looks wrong about it",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Reads a level file as a scene would and prints its size, its triangles without area, its\n"
        "repeated and its flipped ones, and suspected mistakes of unit or axis.",
        epilog="examples:\n  python -m pycct info town.glb\n  python -m pycct info dungeon.obj --up y --scale 0.01",
    )
    add_level(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report.

    Parameters
    ----------
    args : argparse.Namespace
        ``level``, ``up``, ``scale``, ``two_sided``.

    Returns
    -------
    int
        Exit code: 0, or 1 when the file cannot be read.
    """
    level = read_level(args)
    if level is None:
        return 1
    print(level[1])
    return 0
