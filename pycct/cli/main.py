"""Command line: ``python -m pycct COMMAND``.

A command is a module of this package with ``add_parser(subparsers)``, which adds its options, and
``run(args)``, which returns the exit code. Only the module of the requested command is imported.
"""
from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from pycct import __version__

# Command: module and summary.
COMMANDS = {
    "demo": ("pycct.cli.demo.main", "walk 64 characters through a level; picture, numbers, summary"),
    "microtests": ("pycct.cli.microtests", "run the sweep/slide controller's microtests T01 to T10"),
    "info": ("pycct.cli.info", "print the contents of level files, and suspected mistakes"),
    "walk": ("pycct.cli.walk", "walk a character over a level file; print why it stopped"),
    "replay": ("pycct.cli.replay", "replay, verify, explain and shrink a recording"),
    "view": ("pycct.cli.view", "show a recording or a level in the browser"),
    "play": ("pycct.cli.play", "walk through a level in the browser, and try parameters"),
    "raycast": ("pycct.cli.raycast", "cast a ray into a level file"),
    "net": ("pycct.cli.net", "simulate a server, its players and the network"),
    "shards": ("pycct.cli.shards", "run one world in several processes and compare the hashes"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; the default is the arguments of the process.

    Returns
    -------
    int
        Exit code: 0 for success, 1 for input that makes no sense, 2 for wrong usage. `walk` returns
        3 if the character was stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="python -m pycct", description="Kinematic character controller.")
    parser.add_argument("--version", action="version", version=f"pycct {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    requested = next((a for a in arguments if not a.startswith("-")), None)
    modules = {}
    for name, (module, summary) in COMMANDS.items():
        if name == requested:
            modules[name] = importlib.import_module(module)
            modules[name].add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    args = parser.parse_args(arguments)
    try:
        return int(modules[args.command].run(args))
    except BrokenPipeError:
        # The reader of the output has closed it.
        sys.stderr.close()
        return 1
    except ValueError as e:
        print(f"pycct: {e}", file=sys.stderr)
        return 1
