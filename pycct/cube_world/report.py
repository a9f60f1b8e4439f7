"""Evidence of the microtests (SLIDE 7.3): two pictures, a log excerpt and the verdict of each.

No other module of the package needs matplotlib, except the demo and the walk plot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pycct.cube_world.microtests import Outcome, Track

# Half the width of a picture around the runner, metres.
REACH = 3.0
# Lines of an excerpt before and after the key moment.
EXCERPT = 40


def _corners(box: tuple[Any, Any, Any]) -> np.ndarray:
    """Return the eight corners of a box, given by centre, half extents and rotation."""
    centre, half, (x, y, z, w) = box
    turn = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    corners: np.ndarray = np.asarray(centre) + (signs * np.asarray(half)) @ turn.T
    return corners


def _outline(points: np.ndarray) -> np.ndarray:
    """Return the convex outline of points in the plane, counter-clockwise."""
    order = sorted(map(tuple, np.round(points, 9)))
    chains = []
    for sequence in (order, order[::-1]):
        chain: list[tuple[float, float]] = []
        for p in sequence:
            while len(chain) >= 2 and (
                (chain[-1][0] - chain[-2][0]) * (p[1] - chain[-2][1])
                - (chain[-1][1] - chain[-2][1]) * (p[0] - chain[-2][0]) <= 0
            ):
                chain.pop()
            chain.append(p)
        chains.append(chain[:-1])
    return np.array(chains[0] + chains[1])


def _draw(track: Track, index: int, title: str, path: Path) -> None:
    """Draw one picture from the side and one from above.

    Marks: path (orange), capsule and skin, closest pair (green to red), ground normal (arrow), hit
    of the first sweep (cross).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, FancyBboxPatch, Polygon

    runner = track.runner
    feet = track.positions[index]
    radius, half = runner.radius, runner.half_height
    middle = np.array([feet[0], feet[1] + radius + half, feet[2]])
    ids = runner.world.query(middle - REACH, middle + REACH)
    path_so_far = np.array(track.positions[: index + 1])
    figure = Figure(figsize=(10, 5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    # From the side (x, y), cut at the runner's z, and from above (x, z), cut at its middle.
    for n, (i, j, cut, label) in enumerate(((0, 1, 2, "side: x, y"), (0, 2, 1, "above: x, z"))):
        axes = figure.add_subplot(1, 2, n + 1)
        axes.set_title(label)
        axes.set_aspect("equal")
        for id in ids:
            corners = _corners(runner.world.box(id))
            lo, hi = corners[:, cut].min(), corners[:, cut].max()
            near = lo <= middle[cut] + (half + radius if cut == 1 else radius) and hi >= middle[cut] - (
                half + radius if cut == 1 else radius)
            axes.add_patch(Polygon(_outline(corners[:, [i, j]]), facecolor="#c8d4e3" if near else "#f1f3f6",
                                   edgecolor="#8899aa", linewidth=0.6, zorder=2 if near else 1))
        axes.plot(path_so_far[:, i], path_so_far[:, j], color="#d08020", linewidth=1, zorder=4)
        skin = runner.skin_width
        if cut == 2:
            for grow, style in ((0.0, "-"), (skin, ":")):
                r = radius + grow
                axes.add_patch(FancyBboxPatch((feet[0] - r + r, feet[1] + radius), 0.0, 2 * half + 1e-9,
                                              boxstyle=f"round,pad={r}", facecolor="none", edgecolor="#207040",
                                              linestyle=style, zorder=5))
        else:
            for grow, style in ((0.0, "-"), (skin, ":")):
                axes.add_patch(Circle((feet[0], feet[2]), radius + grow, facecolor="none", edgecolor="#207040",
                                      linestyle=style, zorder=5))
        pair, arrow, mark = track.hooks[index]
        if pair is not None:
            (a, b, _) = pair
            axes.plot([a[i], b[i]], [a[j], b[j]], color="#c03030", linewidth=1, zorder=6)
            axes.plot(a[i], a[j], "o", color="#20a040", markersize=4, zorder=6)
            axes.plot(b[i], b[j], "o", color="#c03030", markersize=4, zorder=6)
        if arrow is not None:
            (a, b) = arrow
            axes.annotate("", (a[i] + 0.5 * (b[i] - a[i]), a[j] + 0.5 * (b[j] - a[j])), (a[i], a[j]),
                          arrowprops={"arrowstyle": "->", "color": "#3050c0"}, zorder=6)
        if mark is not None and mark.hit_point is not None:
            axes.plot(mark.hit_point[i], mark.hit_point[j], "x", color="black", markersize=7, zorder=7)
        axes.set_xlim(middle[i] - REACH, middle[i] + REACH)
        axes.set_ylim(middle[j] - REACH, middle[j] + REACH)
    figure.savefig(path, dpi=80)


def _excerpt(track: Track) -> list[str]:
    """Return the log lines around the key moment, found by their frame numbers.

    A short log is returned whole.
    """
    lines = track.lines
    if len(lines) <= 2 * EXCERPT:
        return lines
    # The recording starts after the frames in which the runner settled.
    frame = track.runner.frame - (len(track.positions) - 1) + track.key
    mark = f"[HASH] frame={frame} "
    at = next((i for i, line in enumerate(lines) if line.startswith(mark)), len(lines) - 1)
    return lines[max(0, at - EXCERPT): at + EXCERPT]


def write_evidence(outcomes: Sequence[Outcome], directory: str | os.PathLike[str]) -> Iterable[Path]:
    """Write the evidence of microtests.

    Parameters
    ----------
    outcomes : sequence of Outcome
        From `pycct.cube_world.microtests.run_microtests`.
    directory : path
        Folder, created if it does not exist.

    Returns
    -------
    list of Path
        For each microtest and each of its recorded runs: ``T01-setup.png``, ``T01-key.png``,
        ``T01.log``;
        and one ``T01.json`` with the verdict and its thresholds.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    import matplotlib  # noqa: F401  (an early and plain error when it is missing)

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in outcomes:
        for n, track in enumerate(outcome.tracks):
            name = outcome.id if len(outcome.tracks) == 1 else f"{outcome.id}-{n + 1}"
            for moment, index in (("setup", 0), ("key", min(track.key, len(track.positions) - 1))):
                path = folder / f"{name}-{moment}.png"
                _draw(track, index, f"{outcome.id} {outcome.title}: {moment}, frame {index}", path)
                written.append(path)
            path = folder / f"{name}.log"
            path.write_text("\n".join(_excerpt(track)) + "\n", encoding="utf-8")
            written.append(path)
        path = folder / f"{outcome.id}.json"
        path.write_text(json.dumps({
            "id": outcome.id, "title": outcome.title, "setup": outcome.setup, "expected": outcome.expected,
            "measured": outcome.measured, "thresholds": outcome.thresholds, "passed": outcome.passed,
        }, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written
