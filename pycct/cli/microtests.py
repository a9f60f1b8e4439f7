"""Command ``python -m pycct microtests``: the sweep/slide controller's microtests."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pycct.cube_world.microtests import run_microtests, table, verify_determinism


def add_parser(subparsers: Any) -> None:
    """Add the sub-command ``microtests`` to a command line."""
    parser = subparsers.add_parser("microtests", help="run the sweep/slide controller's microtests T01 to T10")
    parser.add_argument("ids", nargs="*", metavar="ID", help="which microtests, T01 to T10 (default: all)")
    parser.add_argument("--evidence", metavar="DIR",
                        help="write pictures, log excerpts and verdicts there (needs matplotlib)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run, print the table, write evidence; return 1 if a test fails, 2 for wrong arguments."""
    try:
        outcomes = run_microtests(args.ids or None)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    same = verify_determinism()
    print(table(outcomes))
    print(f"determinism: {'same hashes' if same else 'FAILED'}")
    if args.evidence:
        from pycct.cube_world.report import write_evidence

        try:
            for path in write_evidence(outcomes, args.evidence):
                print(path)
        except (ImportError, OSError) as error:
            print(f"evidence not written: {error}", file=sys.stderr)
            return 2
    return 0 if same and all(o.passed for o in outcomes) else 1
