"""``python -m pycct replay``: print, verify, explain and shrink a recording."""
from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from pycct.record import Recording, replay, shrink

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "replay",
        help="replay, verify, explain and shrink a recording",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Prints what a recording of pycct.record holds. With --verify it is replayed and compared.",
        epilog="examples:\n  python -m pycct replay walk.pycctrec --verify --threads 2\n"
        "  python -m pycct replay walk.pycctrec --explain 120 7\n"
        "  python -m pycct replay walk.pycctrec --shrink mygame.checks:is_stuck --out test_stuck.py",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="recording")
    parser.add_argument("--verify", action="store_true", help="replay everything; name the first difference")
    parser.add_argument("--explain", nargs=2, type=int, metavar=("TICK", "ID"), help="explain a character's move")
    parser.add_argument("--shrink", metavar="MODULE:FUNCTION", help="reduce it while FUNCTION(scene, crowd) holds")
    parser.add_argument("--out", type=Path, default=Path("test_recording.py"), metavar="FILE",
                        help="test that --shrink writes; default: %(default)s")
    parser.add_argument("--glb", type=Path, metavar="OUT", help="write an animated glTF")
    parser.add_argument("--html", type=Path, metavar="OUT", help="write a page for the browser")
    parser.add_argument("--view", action="store_true", help="show it in the browser, with a timeline")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    """Do what the options ask for.

    Parameters
    ----------
    args : argparse.Namespace
        ``file``, ``verify``, ``explain``, ``shrink``, ``out``, ``glb``, ``html``, ``view``,
        ``threads``.

    Returns
    -------
    int
        0; 1 when the file cannot be read or the replay differs.
    """
    try:
        recording = replay(args.file)
    except OSError as problem:
        print(f"pycct: {problem}", file=sys.stderr)
        return 1
    code = 0
    with recording:
        ids, _ = recording.members()
        print(f"{args.file}: {recording.ticks} ticks, {recording.moves} moves, {len(recording.keyframes)} keyframes, "
              f"{len(recording.scene)} actors, {len(ids)} characters at the start")
        if args.verify:
            difference = recording.verify(args.threads)
            if difference is None:
                print("replay: equal to the bit")
            else:
                who = "the state" if difference.member is None else f"character {difference.member}"
                print(f"replay: differs first in tick {difference.tick}: {who}, {difference.field}")
                code = 1
        if args.explain is not None:
            tick, id = args.explain
            try:
                print(recording.explain(tick, id))
            except KeyError as problem:
                raise ValueError(problem.args[0]) from None
        _write(args, recording)
        if args.view:
            from pycct.view import view

            view(recording).wait()
    if args.shrink is not None:
        case = shrink(args.file, _function(args.shrink), args.out)
        print(f"{args.out}: {len(case.ticks)} ticks, {len(case.members)} characters, {len(case.actors)} actors")
    return code


def _write(args: argparse.Namespace, recording: Recording) -> None:
    """Write pictures."""
    if args.glb is None and args.html is None:
        return
    from pycct.view import sample, to_glb, to_html

    tracks = sample(recording)
    if args.glb is not None:
        to_glb(tracks, args.glb)
        print(f"written: {args.glb}")
    if args.html is not None:
        to_html(tracks, args.html, title=args.file.name)
        print(f"written: {args.html}")


def _function(name: str) -> Any:
    module, colon, function = name.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), function) if colon else None
    except (ImportError, AttributeError) as problem:
        raise ValueError(f"--shrink: {problem}") from None
    if not callable(found):
        raise ValueError(f"--shrink must be MODULE:FUNCTION, got {name!r}")
    return found
