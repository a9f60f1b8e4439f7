"""``python -m pycct demo``: walk characters through a level; summary, picture and numbers."""
from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pycct.cli.demo.level import build_level
from pycct.cli.progress import Progress
from pycct.view import Tracks, open_page, to_glb

if TYPE_CHECKING:
    from pycct.cli.demo.walkers import TourSummary

__all__ = ["add_parser", "run", "table"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser(
        "demo",
        help="walk 64 characters through a level; picture, numbers, summary",
        description="Walks characters through a level of stairs, ramps, kerbs, pillars, passages, terrain and ledges, "
        "prints what they did and writes paths.png, demo.npz, demo.glb and level.obj.",
    )
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--characters", type=_at_least_one, default=64, metavar="N", help="default: %(default)s")
    parser.add_argument("--seconds", type=_positive, default=20.0, metavar="S", help="default: %(default)s")
    parser.add_argument("--view", action="store_true", help="open the walk in the browser")
    parser.add_argument("--no-picture", action="store_true", help="leave out paths.png (needs matplotlib)")


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= 86400.0:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 86400")
    return value


def run(args: argparse.Namespace) -> int:
    """Walk, print, write.

    Parameters
    ----------
    args : argparse.Namespace
        ``out``, ``characters``, ``seconds``, ``no_picture``, ``view``.

    Returns
    -------
    int
        0, or 1 if the folder cannot be written.
    """
    from pycct.cli.demo import walkers as demo_walkers

    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"cannot write to {args.out}: {error.strerror}", file=sys.stderr)
        return 1

    level = build_level()
    frames = max(1, round(args.seconds / demo_walkers.DT))
    print(
        f"level: {len(level.triangles)} triangles; {args.characters} characters walk for {args.seconds:g} s "
        f"at 60 Hz ({frames * args.characters} moves)"
    )
    began = time.perf_counter()
    with Progress(frames, "walking") as progress:
        walked = demo_walkers.walk(level, args.characters, args.seconds, progress.update)
    took = time.perf_counter() - began

    rows = demo_walkers.summarise(walked, level)
    print()
    print(table(rows))
    print()
    print(
        f"{np.median(walked.microseconds):.2f} microseconds per move (median over the frames); "
        f"{args.seconds:g} s of walking took {took:.1f} s"
    )

    written = [args.out / "demo.npz", args.out / "level.obj"]
    np.savez_compressed(written[0], **_numbers(walked, rows, level))
    written[1].write_text(level.wavefront(), encoding="utf-8")
    written.append(args.out / "demo.glb")
    tracks = _tracks(walked, level)
    to_glb(tracks, written[-1])
    if not args.no_picture:
        try:
            from pycct.cli.demo.picture import draw
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "matplotlib":
                raise
            print("no picture: matplotlib is missing (pip install matplotlib, or pip install 'pycct[plot]')")
        else:
            written.insert(0, args.out / "paths.png")
            draw(level, walked, written[0])
    if args.view:
        written.append(open_page(tracks))
    print("written: " + ", ".join(str(path) for path in written))
    return 0


def table(rows: Sequence[TourSummary]) -> str:
    """Format the summary for a terminal; the last row is the total."""
    head = ("tour", "characters", "walked m", "steps climbed", "jumps", "falls", "deepest m")
    cells = [
        (r.name, f"{r.characters}", f"{r.walked:.1f}", f"{r.steps_climbed}", f"{r.jumps}", f"{r.falls}",
         f"{r.deepest_fall:.2f}" if r.falls else "-")
        for r in rows
    ]
    widths = [max(len(row[k]) for row in (head, *cells)) for k in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)])

    rule = "-" * len(line(head))
    return "\n".join([line(head), rule, *map(line, cells[:-1]), rule, line(cells[-1])])


def _tracks(walked: Any, level: Any) -> Tracks:
    """What the animated glTF shows."""
    from pycct.cli.demo import walkers as demo_walkers

    frames, n = walked.positions.shape[:2]
    return Tracks(np.arange(frames) * demo_walkers.DT, level.vertices[level.triangles], np.arange(n), walked.positions,
                  np.full(n, demo_walkers.RADIUS), np.full(n, demo_walkers.HEIGHT),
                  slope_limit=demo_walkers.SLOPE_LIMIT)


def _numbers(walked: Any, rows: Sequence[TourSummary], level: Any) -> dict[str, Any]:
    """Return all arrays of the .npz file."""
    from pycct.cli.demo import walkers as demo_walkers

    falls, steps = demo_walkers.falls_and_steps(walked, level)
    total = rows[-1]
    return {
        "positions": walked.positions,
        "displacements": walked.displacements,
        "flags": walked.flags,
        "grounded": walked.grounded,
        "jumped": walked.jumped,
        "tours": walked.tours,
        "tour_names": np.array([tour.name for tour in demo_walkers.TOURS]),
        "microseconds": walked.microseconds,
        "falls": falls,
        "steps_climbed": steps,
        "walked": np.float64(total.walked),
        "dt": np.float64(demo_walkers.DT),
        "radius": np.float64(demo_walkers.RADIUS),
        "height": np.float64(demo_walkers.HEIGHT),
        "vertices": level.vertices,
        "triangles": level.triangles,
    }
