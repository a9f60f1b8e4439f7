"""``python -m pycct view``: a recording, a level file or a cooked scene in the browser."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pycct import Scene
from pycct.cli.options import add_level, add_server, read_level
from pycct.levels import FORMATS
from pycct.record import Recording, replay
from pycct.view import to_html, view

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "view",
        help="show a recording or a level in the browser",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Serves a page (needs viser: pip install 'pycct[view]') until it is interrupted.\n"
        "With --out, writes a page with everything in it instead, which needs no server.",
        epilog="examples:\n  python -m pycct view walk.pycctrec\n  python -m pycct view town.glb --up y\n"
        "  python -m pycct view walk.pycctrec --out walk.html",
    )
    add_level(parser)
    add_server(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="page to write instead")


def run(args: argparse.Namespace) -> int:
    """Serve or write the page.

    Parameters
    ----------
    args : argparse.Namespace
        ``level``, ``up``, ``scale``, ``two_sided``, ``nodes``, ``host``, ``port``, ``no_browser``,
        ``out``.

    Returns
    -------
    int
        0, or 1 when the file cannot be read or the page cannot be served.
    """
    try:
        what = _read(args)
        if what is None:
            return 1
        if args.out is not None:
            to_html(what, args.out, title=args.level.name)
            print(f"written: {args.out}")
        else:
            view(what, host=args.host, port=args.port, open_browser=not args.no_browser).wait()
    except (OSError, ImportError) as problem:
        print(f"pycct: {problem}", file=sys.stderr)
        return 1
    return 0


def _read(args: argparse.Namespace) -> Recording | Scene | None:
    """Return what the file contains; None after an error on stderr."""
    path = args.level
    if path.suffix.lower().lstrip(".") in FORMATS or path.is_dir():
        level = read_level(args, path)
        if level is None:
            return None
        scene = Scene()
        scene.add(level[0])
        return scene
    with path.open("rb") as file:
        recorded = file.read(8) == b"pycctrec"
    return replay(path) if recorded else Scene.load(path)
