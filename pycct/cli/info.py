"""``python -m pycct info``: contents and suspected mistakes of level files and cooked scenes."""
from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from pycct import Mesh, Scene
from pycct.cli.options import add_level, read_level
from pycct.levels import FORMATS, report_on

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "info",
        help="what level files hold, and what looks wrong about them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Reads level files as a scene would and prints of each its size, nodes and materials, its\n"
        "triangles without area, its repeated and its flipped ones, and suspected mistakes of unit or axis.\n"
        "Other files are opened as cooked scenes (Scene.save), whose actors and shapes are counted.",
        epilog="examples:\n  python -m pycct info town.glb\n  python -m pycct info dungeon.obj --up y --scale 0.01\n"
        "  python -m pycct info *.glb town.scene",
    )
    add_level(parser, several=True)


def run(args: argparse.Namespace) -> int:
    """Print the reports.

    Parameters
    ----------
    args : argparse.Namespace
        ``levels``, ``up``, ``scale``, ``two_sided``, ``nodes``.

    Returns
    -------
    int
        Exit code: 0, or 1 when a file cannot be read; the others are reported all the same.
    """
    code = 0
    for path in args.levels:
        if path.suffix.lower().lstrip(".") in FORMATS or path.is_dir():
            level = read_level(args, path)
            text = None if level is None else str(level[1])
        else:
            text = cooked(path)
        if text is None:
            code = 1
        else:
            print(text)
    return code


def cooked(path: Path) -> str | None:
    """The report on a cooked scene, or None when it cannot be read; then why is on stderr."""
    try:
        scene = Scene.load(path, verify=True)
    except (OSError, ValueError) as e:
        print(f"pycct: {e} (neither a level file, .{', .'.join(FORMATS)}, nor a cooked scene)", file=sys.stderr)
        return None
    actors = scene.actors
    kinds = Counter(type(a.shape).__name__ for a in actors)
    shapes = {id(a.shape): a.shape for a in actors}
    lines = [
        str(path),
        "  cooked scene",
        f"  actors         {len(actors)}" + "".join(f", {n} {kind}" for kind, n in sorted(kinds.items())),
        f"  obstacles      {len(scene.obstacles)}",
        f"  shapes         {len(shapes)}",
        f"  triangles      {scene.triangle_count}",
    ]
    if actors:
        bounds = [a.bounds for a in actors]
        lower, upper = ([f(b[side][k] for b in bounds) for k in range(3)] for side, f in ((0, min), (1, max)))
        lines.append("  bounds         " + " to ".join(
            "(" + ", ".join(f"{x:.6g}" for x in corner) + ")" for corner in (lower, upper)) + " m")
    for shape in shapes.values():
        if isinstance(shape, Mesh) and shape.triangle_count and not shape.two_sided:
            flipped = report_on(shape.vertices, shape.triangles).flipped
            if flipped:
                user = next(a.id for a in actors if a.shape is shape)
                lines.append(f"  warning: {flipped} of {shape.triangle_count} triangles of the mesh of actor {user} "
                             "face another side than their neighbours: two_sided=True makes them solid from both")
    return "\n".join(lines)
