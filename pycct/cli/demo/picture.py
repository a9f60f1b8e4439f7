"""Picture of the demo: paths over a plan of the level, and three cuts. Needs matplotlib."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LightSource, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle
from numpy.typing import NDArray

from pycct.cli.demo.level import WALL_HEIGHT, Level
from pycct.cli.demo.walkers import HALF_HEIGHT, SLOPE_LIMIT, TOURS, Walk, falls_and_steps

__all__ = ["draw"]

CELL = 0.05  # m of level for each pixel of the plan's background
# Sheet, left margin and scale in inches (for one metre).
SHEET, MARGIN, SCALE = (16.0, 16.1), 0.75, 0.33
CUT_HEIGHTS = (-0.4, WALL_HEIGHT + 0.8)
INK, SOFT, PAPER = "#26221c", "#6f675b", "#fbf9f5"
STEEP, ROOF, SOLID, MASONRY = "#cf8f86", "#8d8577", "#cfc6b4", "#857c6d"
# Eight hues that differ on the pale ground, also for most colour-blind eyes.
COLOURS = ("#0b6fb3", "#d95f02", "#1b8a5a", "#b3203a", "#7b3fa0", "#8a5a12", "#c2348f", "#0f8f9c")
HEIGHTS = LinearSegmentedColormap.from_list("heights", ["#a9c4b4", "#f1ece0", "#e9dfc6", "#dac9a2", "#c2aa7c"])


def draw(level: Level, walked: Walk, path: Path) -> None:
    """Draw the paths of a walk.

    Parameters
    ----------
    level : Level
        The ground.
    walked : Walk
        The paths.
    path : Path
        PNG file to write.
    """
    figure = Figure(figsize=SHEET, dpi=110, facecolor=PAPER)
    FigureCanvasAgg(figure)
    falls, steps = falls_and_steps(walked, level)
    frames, n = walked.grounded.shape
    left = MARGIN / SHEET[0]
    figure.text(left, 1 - 0.45 / SHEET[1], "Paths through the demo level", fontsize=21, weight="bold", color=INK)
    figure.text(
        left, 1 - 0.75 / SHEET[1],
        f"{n} characters, {frames / 60:.3g} s at 60 Hz: {steps.sum()} steps climbed, {len(falls)} falls deeper than "
        "a step (0.4 m). Plan and cuts are to one scale, in metres.",
        fontsize=12.5, color=SOFT,
    )
    _plan(_axes(figure, (MARGIN, 4.75), (-22.6, 22.6), (-15.6, 15.6)), level, walked, falls)
    _cut(
        _axes(figure, (MARGIN, 2.35), (-22.6, 3.4), CUT_HEIGHTS), level, walked, 0, 11.0, (8.5, 14.0),
        "Cut A, west to east at y = 11: up the stairs (12 steps of 0.25 m), over the balcony, down the ledges",
    )
    _cut(
        _axes(figure, (MARGIN, 0.3), (-9.4, 2.8), CUT_HEIGHTS), level, walked, 1, -20.0, (-21.5, -18.5),
        "Cut B, south to north at x = -20: 30° ramp, walked",
    )
    _cut(
        _axes(figure, (MARGIN + 13.8 * SCALE, 0.3), (-9.4, 2.8), CUT_HEIGHTS), level, walked, 1, -12.5, (-14.0, -11.0),
        "Cut C, likewise at x = -12.5: 50° ramp, refused",
    )
    _legend(figure, walked)
    figure.savefig(path, facecolor=PAPER)


def _axes(figure: Any, corner: tuple[float, float], x: tuple[float, float], y: tuple[float, float]) -> Any:
    """Add axes at the sheet's scale, with the lower left corner `corner` inches into the sheet."""
    size = (x[1] - x[0]) * SCALE, (y[1] - y[0]) * SCALE
    axes = figure.add_axes(
        (corner[0] / SHEET[0], corner[1] / SHEET[1], size[0] / SHEET[0], size[1] / SHEET[1]), xlim=x, ylim=y
    )
    axes.set_facecolor("white")
    return axes


def _plan(axes: Any, level: Level, walked: Walk, falls: NDArray[np.float64]) -> None:
    """Draw the level from above with all paths."""
    x, y, z, upright = level.raster(CELL, leave_out=("roof", "wall"))
    extent = (x[0] - CELL / 2, x[-1] + CELL / 2, y[0] - CELL / 2, y[-1] + CELL / 2)
    seen = ~np.isnan(z)
    shown = LightSource(azdeg=315, altdeg=45).shade(
        np.where(seen, z, 0.0), cmap=HEIGHTS, vmin=-1.3, vmax=3.4, vert_exag=2.0, dx=CELL, dy=CELL, blend_mode="soft"
    )
    _tint(shown, seen & (upright < SLOPE_LIMIT), STEEP, 0.8)
    shown[~seen] = (0, 0, 0, 0)
    axes.imshow(shown, origin="lower", extent=extent, interpolation="antialiased", aspect="equal", zorder=0)

    (low, high), = _outlines(level, "terrain")[1]
    east, north = (np.flatnonzero((axis > low[k]) & (axis < high[k])) for k, axis in enumerate((x, y)))
    axes.contour(
        x[east], y[north], z[np.ix_(north, east)], levels=np.arange(-1.5, 4.0, 0.5), colors=SOFT, linewidths=0.5,
        alpha=0.7, zorder=1,
    )
    axes.add_patch(Rectangle(low, *(high - low), fill=False, ec=SOFT, lw=0.8, ls=(0, (4, 3)), zorder=1))
    for part in level.part_names:
        if part in ("terrain", "plaza", "roof"):
            continue
        filled = part in ("wall", "tunnel wall", "slot wall", "pillars")
        for outline in _outlines(level, part)[0]:
            axes.add_patch(Polygon(outline, fill=filled, fc=MASONRY, ec=INK if filled else SOFT, lw=0.7, zorder=1))

    for i, path in enumerate(walked.positions.transpose(1, 0, 2)):
        axes.plot(path[:, 0], path[:, 1], color=COLOURS[walked.tours[i]], lw=0.9, alpha=0.65, zorder=2)
    start = walked.positions[0]
    axes.scatter(start[:, 0], start[:, 1], s=16, c=[COLOURS[t] for t in walked.tours], ec=PAPER, lw=0.6, zorder=4)
    axes.scatter(falls[:, 3], falls[:, 4], marker="x", s=26, c=INK, lw=1.1, zorder=5)
    for outline in _outlines(level, "roof")[0]:
        axes.add_patch(Polygon(outline, fill=False, hatch="////", ec=ROOF, lw=1.0, alpha=0.8, zorder=3))

    for feature in level.features:
        axes.text(
            *feature.label, feature.name, fontsize=10.5, ha="center", va="center", color=INK, zorder=6,
            bbox={"boxstyle": "round,pad=0.22", "fc": PAPER, "ec": "none", "alpha": 0.88},
        )
    for text, xs, ys in (
        ("A", (-21.7, 2.6), (11.0, 11.0)), ("B", (-20.0, -20.0), (-9.4, 2.6)), ("C", (-12.5, -12.5), (-9.4, 2.6))
    ):
        axes.plot(xs, ys, color=INK, lw=0.9, ls=(0, (8, 3, 1, 3)), zorder=3)
        axes.text(
            xs[1], ys[1], text, fontsize=11, weight="bold", color=PAPER, ha="center", va="center", zorder=6,
            bbox={"boxstyle": "circle,pad=0.18", "fc": INK, "ec": "none"},
        )
    axes.set_xlabel("x, m (east)", color=SOFT)
    axes.set_ylabel("y, m (north)", color=SOFT)
    _frame(axes, 5)


def _cut(
    axes: Any, level: Level, walked: Walk, along: int, at: float, band: tuple[float, float], title: str
) -> None:
    """Draw the outline of the level in the plane `at`, and the feet within `band` of that plane."""
    across = 1 - along
    x, y, z, _ = level.raster(CELL, leave_out=("roof", "wall"))
    position, profile = (x, z[np.searchsorted(y, at)]) if along == 0 else (y, z[:, np.searchsorted(x, at)])
    axes.fill_between(position, profile, CUT_HEIGHTS[0], color=SOLID, lw=0, zorder=0)
    axes.plot(position, profile, color=SOFT, lw=0.9, zorder=1)
    feet = walked.positions - [0, 0, HALF_HEIGHT]
    for i, path in enumerate(feet.transpose(1, 0, 2)):
        inside = (path[:, across] >= band[0]) & (path[:, across] <= band[1])
        seen = np.where(inside[:, None], path, np.nan)
        axes.plot(seen[:, along], seen[:, 2], color=COLOURS[walked.tours[i]], lw=0.9, alpha=0.7, zorder=2)
    axes.set_title(title, fontsize=10.5, loc="left", color=INK)
    _frame(axes, 2)


def _legend(figure: Any, walked: Walk) -> None:
    """Label the colours and signs."""
    tours = [
        Line2D([], [], color=COLOURS[k], lw=2.4, label=tour.name)
        for k, tour in enumerate(TOURS)
        if (walked.tours == k).any()
    ]
    signs = [
        Line2D([], [], marker="o", ls="", ms=5, mfc=SOFT, mec=PAPER, label="start"),
        Line2D([], [], marker="x", ls="", ms=6, mec=INK, mew=1.2, label="fall: ground lost here"),
        Patch(fc=STEEP, ec="none", label="too steep to walk (over 45°)"),
        Patch(fc="none", ec=ROOF, hatch="////", label="roof over a passage"),
    ]
    kind: dict[str, Any] = {
        "frameon": False, "fontsize": 11.5, "labelcolor": INK, "handlelength": 1.8, "title_fontsize": 12.5,
        "alignment": "left", "loc": "upper left",
    }
    top, x = 4.05 / SHEET[1], (MARGIN + 28.2 * SCALE) / SHEET[0]
    figure.legend(handles=tours, title="Tours", bbox_to_anchor=(x, top), **kind)
    figure.legend(handles=signs, title="Signs", bbox_to_anchor=(x + 2.6 / SHEET[0], top), **kind)


def _tint(image: NDArray[np.float64], where: NDArray[np.bool_], colour: str, share: float) -> None:
    """Mix a colour into part of an RGBA image."""
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    image[where, :3] = image[where, :3] * (1 - share) + rgb * share


def _outlines(level: Level, part: str) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Plan views of the solids of one part.

    Corners counterclockwise (for convex solids), and (low, high).
    """
    index = level.part_names.index(part)
    outlines, boxes = [], []
    for solid in np.unique(level.solid[level.part == index]):
        corners = np.unique(level.vertices[level.triangles[level.solid == solid], :2].reshape(-1, 2), axis=0)
        boxes.append(np.array([corners.min(axis=0), corners.max(axis=0)]))
        arm = corners - corners.mean(axis=0)
        outlines.append(corners[np.argsort(np.arctan2(arm[:, 1], arm[:, 0]))])
    return outlines, boxes


def _frame(axes: Any, step: int) -> None:
    """Format axes with a tick every `step` metres."""
    for which in (axes.xaxis, axes.yaxis):
        low, high = which.get_view_interval()
        which.set_ticks(np.arange(np.ceil(low / step) * step, high + 1e-9, step))
    axes.tick_params(colors=SOFT, labelsize=9.5, length=3)
    for spine in axes.spines.values():
        spine.set_color(SOFT)
        spine.set_linewidth(0.6)
