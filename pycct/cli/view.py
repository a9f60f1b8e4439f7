"""``python -m pycct view``: a recording, a level file or a cooked scene in the browser."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pycct import Scene
from pycct.cli.options import add_level, read_level
from pycct.levels import FORMATS
from pycct.record import replay
from pycct.view import view

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "view",
        help="show a recording or a level in the browser",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Writes a page with everything in it and opens it. Nothing listens on the network.",
        epilog="examples:\n  python -m pycct view walk.pycctrec\n  python -m pycct view town.glb --up y\n"
        "  python -m pycct view walk.pycctrec --out walk.html",
    )
    add_level(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="page to write instead of opening one")


def run(args: argparse.Namespace) -> int:
    """Write the page, and open it.

    Parameters
    ----------
    args : argparse.Namespace
        ``level``, ``up``, ``scale``, ``two_sided``, ``nodes``, ``out``.

    Returns
    -------
    int
        0, or 1 when the file cannot be read.
    """
    path = args.level
    try:
        if path.suffix.lower().lstrip(".") in FORMATS or path.is_dir():
            level = read_level(args, path)
            if level is None:
                return 1
            what = Scene()
            what.add(level[0])
            page = view(what, open_browser=args.out is None)
        else:
            with path.open("rb") as file:
                recorded = file.read(8) == b"pycctrec"
            if recorded:
                with replay(path) as recording:
                    page = view(recording, open_browser=args.out is None)
            else:
                page = view(Scene.load(path), open_browser=args.out is None)
    except OSError as problem:
        print(f"pycct: {problem}", file=sys.stderr)
        return 1
    if args.out is not None:
        args.out.write_bytes(page.read_bytes())
        page.unlink()
        page = args.out
    print(f"written: {page}")
    return 0
