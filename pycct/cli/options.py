"""Options that the commands for level files share."""
from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from pycct import Mesh
from pycct.levels import AXES, LevelReport, load_level


def takes_negative_numbers(parser: argparse.ArgumentParser) -> None:
    """Make ``--start -1,2,3`` a value; argparse would take it for an option."""
    parser._negative_number_matcher = re.compile(r"^-(\d|\.\d)")


def vector(text: str) -> tuple[float, float, float]:
    """Parse three numbers with commas between them."""
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be three numbers like 1.5,0,-2, not {text!r}") from None
    if not all(abs(c) < 1e12 for c in (x, y, z)):
        raise argparse.ArgumentTypeError(f"must be finite and within 1e12 m, got {text!r}")
    return x, y, z


def positive(text: str) -> float:
    """Parse a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
    if not 0.0 < value < 1e12:
        raise argparse.ArgumentTypeError(f"must be more than 0, got {text}")
    return value


def add_level(parser: argparse.ArgumentParser, several: bool = False, optional: str | None = None) -> None:
    """Add the options for reading one or several levels; ``optional`` names the default."""
    kinds = "an .obj, .ply, .stl, .gltf or .glb file"
    if several:
        parser.add_argument("levels", type=Path, metavar="LEVEL", nargs="+", help=f"{kinds}, or a cooked scene")
    elif optional is not None:
        parser.add_argument("level", type=Path, metavar="LEVEL", nargs="?", help=f"{kinds}; default: {optional}")
    else:
        parser.add_argument("level", type=Path, metavar="LEVEL", help=kinds)
    parser.add_argument("--up", choices=list(AXES), help="the file's axis that points up; default: y for glTF, else z")
    parser.add_argument("--scale", type=positive, default=1.0, help="metres in a unit of the file; default: 1")
    parser.add_argument("--two-sided", action=argparse.BooleanOptionalAction,
                        help="triangles are solid from both sides; default: as in the file")
    parser.add_argument("--nodes", action="append", metavar="PATTERN",
                        help="read only nodes (objects) with such a name, like '*-col'; repeatable")


def read_level(args: argparse.Namespace, path: Path | None = None) -> tuple[Mesh, LevelReport] | None:
    """Return the level of the arguments, or None after an error on stderr."""
    try:
        return load_level(path or args.level, up=args.up, scale=args.scale, two_sided=args.two_sided, nodes=args.nodes)
    except (OSError, ValueError, ImportError) as e:
        print(f"pycct: {e}", file=sys.stderr)
        return None


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options for serving a page."""
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="address to listen on; default: %(default)s, for browsers of this machine only")
    parser.add_argument("--port", type=int, default=8080, metavar="N",
                        help="first port to try; default: %(default)s")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
