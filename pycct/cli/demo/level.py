"""The level of the demo: stairs, ledges, ramps, kerbs, pillars, passages and terrain.

The level consists of closed solids (every edge is between exactly two triangles, normals point
outwards). Their tops meet without gaps, so nothing can fall through. Lengths are metres, z is up,
and the plaza is at z = 0. Coordinates are multiples of 1/1024 m, so they are the same on every
machine, whatever its sine function.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["WALL_HEIGHT", "Feature", "Level", "Passage", "build_level"]

QUANTUM = 1.0 / 1024.0
WALL_HEIGHT = 3.0
RISER, TREAD, STEPS = 0.25, 0.375, 12
DECK_HEIGHT = 2.0
TERRAIN_CELL = 0.5

# Corners 0-3 below, 4-7 above, each ring counterclockwise seen from above.
_BOX_TRIANGLES = np.array(
    [
        [0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4],
        [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6], [3, 0, 4], [3, 4, 7],
    ]
)


@dataclass(frozen=True)
class Feature:
    """A named part of the level.

    Attributes
    ----------
    name : str
        Short name for the picture.
    low, high : tuple of two floats
        Rectangle (x, y) of the part, m.
    label : tuple of two floats
        Position of the name in the picture, m.
    """

    name: str
    low: tuple[float, float]
    high: tuple[float, float]
    label: tuple[float, float]

    def contains(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which `points` (..., 2 or 3), m, are over the rectangle."""
        xy = points[..., :2]
        inside: NDArray[np.bool_] = np.all((xy >= self.low) & (xy <= self.high), axis=-1)
        return inside


@dataclass(frozen=True)
class Passage:
    """Free space with walls on both sides: `low` to `high` is empty and fits exactly.

    Attributes
    ----------
    name : str
        Short name.
    along : int
        Axis to walk along: 0 for x, 1 for y.
    low, high : tuple of three floats
        The empty box, m.
    roofed : bool
        Whether a ceiling closes it above; without one, the height has no meaning.
    """

    name: str
    along: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    roofed: bool


@dataclass
class Level:
    """Triangles with their names.

    Attributes
    ----------
    vertices : ndarray, (n, 3) float64
        m.
    triangles : ndarray, (m, 3) int32
        Counterclockwise seen from outside.
    solid : ndarray, (m,) int32
        Index of the closed solid of each triangle.
    part : ndarray, (m,) int32
        Index into `part_names`.
    part_names : tuple of str
        Kinds of solids: "plaza", "wall", "stairs", "roof", ...
    treads : ndarray, (k, 5) float64
        Level surfaces that count as steps: x low, x high, y low, y high, z.
    features, passages : tuples
        Named places.
    """

    vertices: NDArray[np.float64]
    triangles: NDArray[np.int32]
    solid: NDArray[np.int32]
    part: NDArray[np.int32]
    part_names: tuple[str, ...]
    treads: NDArray[np.float64]
    features: tuple[Feature, ...]
    passages: tuple[Passage, ...]

    def corners(self, part: str) -> NDArray[np.float64]:
        """Triangles of one part, (k, 3, 3), m."""
        chosen = self.triangles[self.part == self.part_names.index(part)]
        return np.asarray(self.vertices[chosen])

    def normals(self) -> NDArray[np.float64]:
        """Outward unit normals, (m, 3)."""
        a, b, c = (self.vertices[self.triangles[:, k]] for k in range(3))
        n = np.cross(b - a, c - a)
        return np.asarray(n / np.linalg.norm(n, axis=1, keepdims=True), dtype=np.float64)

    def raster(self, cell: float, leave_out: tuple[str, ...] = ()) -> tuple[NDArray[np.float64], ...]:
        """Heights seen from above.

        Parameters
        ----------
        cell : float
            Edge of a square, m.
        leave_out : tuple of str
            Parts that are invisible.

        Returns
        -------
        x, y : ndarray
            Cell centres, m.
        z, normal_z : ndarray, (len(y), len(x))
            Height of the highest surface at each centre, and the vertical part of its normal; NaN
            without a surface.
        """
        low, high = self.vertices[:, :2].min(axis=0), self.vertices[:, :2].max(axis=0)
        x, y = (np.arange(low[k] + cell / 2, high[k], cell) for k in range(2))
        z = np.full((len(y), len(x)), np.nan)
        upright = np.full_like(z, np.nan)
        hidden = [self.part_names.index(name) for name in leave_out]
        normals = self.normals()
        for t in np.flatnonzero((normals[:, 2] > 0) & ~np.isin(self.part, hidden)):
            corners, n = self.vertices[self.triangles[t]], normals[t]
            i0, i1 = np.searchsorted(x, [corners[:, 0].min(), corners[:, 0].max()])
            j0, j1 = np.searchsorted(y, [corners[:, 1].min(), corners[:, 1].max()])
            if i0 == i1 or j0 == j1:
                continue
            px, py = x[None, i0:i1], y[j0:j1, None]
            inside = np.ones((j1 - j0, i1 - i0), dtype=bool)
            for k in range(3):
                (ax, ay, _), (bx, by, _) = corners[k], corners[(k + 1) % 3]
                inside &= (bx - ax) * (py - ay) - (by - ay) * (px - ax) >= -1e-12
            height = corners[0, 2] - (n[0] * (px - corners[0, 0]) + n[1] * (py - corners[0, 1])) / n[2]
            window = z[j0:j1, i0:i1]
            higher = inside & ~(height <= window)
            window[higher] = height[higher]
            upright[j0:j1, i0:i1][higher] = n[2]
        return x, y, z, upright

    def wavefront(self) -> str:
        """The level as the text of a Wavefront OBJ file, one object for each part."""
        lines = ["# pycct demo level; metres, z up"]
        lines += ["v {:.10g} {:.10g} {:.10g}".format(*v) for v in self.vertices]
        for index, name in enumerate(self.part_names):
            lines.append("o " + name.replace(" ", "_"))
            lines += ["f {} {} {}".format(*(t + 1)) for t in self.triangles[self.part == index]]
        return "\n".join(lines) + "\n"


class _Builder:
    """Collects closed solids."""

    def __init__(self) -> None:
        self.vertices: list[NDArray[np.float64]] = []
        self.triangles: list[NDArray[np.int64]] = []
        self.parts: list[str] = []
        self.treads: list[tuple[float, float, float, float, float]] = []
        self.count = 0

    def solid(self, part: str, vertices: object, triangles: object) -> None:
        v = np.round(np.asarray(vertices, dtype=np.float64) / QUANTUM) * QUANTUM
        self.vertices.append(v)
        self.triangles.append(np.asarray(triangles, dtype=np.int64) + self.count)
        self.parts.append(part)
        self.count += len(v)

    def box(self, part: str, low: tuple[float, float, float], high: tuple[float, float, float]) -> None:
        (x0, y0, z0), (x1, y1, z1) = low, high
        ring = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        self.solid(part, [(*p, z0) for p in ring] + [(*p, z1) for p in ring], _BOX_TRIANGLES)

    def step(self, part: str, low: tuple[float, float], high: tuple[float, float], z: float) -> None:
        """Add a box that stands on the plaza and whose top counts as a step."""
        self.box(part, (*low, 0.0), (*high, z))
        self.treads.append((low[0], high[0], low[1], high[1], z))

    def ramp(self, part: str, x: tuple[float, float], y_top: float, height: float, degrees: float) -> None:
        """Add a wedge that climbs towards +y and reaches `height` at `y_top`."""
        (x0, x1), y0 = x, y_top - height / math.tan(math.radians(degrees))
        vertices = [(x0, y0, 0), (x1, y0, 0), (x1, y_top, 0), (x0, y_top, 0), (x1, y_top, height), (x0, y_top, height)]
        triangles = [[0, 2, 1], [0, 3, 2], [0, 1, 4], [0, 4, 5], [1, 2, 4], [3, 0, 5], [2, 3, 5], [2, 5, 4]]
        self.solid(part, vertices, triangles)

    def pillar(self, part: str, centre: tuple[float, float], radius: float, height: float, sides: int) -> None:
        """Add an upright prism over a regular polygon; 4 `sides` make a square along the axes."""
        turn = math.pi / sides
        ring = [
            (centre[0] + radius * math.cos(turn * (2 * k + 1)), centre[1] + radius * math.sin(turn * (2 * k + 1)))
            for k in range(sides)
        ]
        below, above = range(sides), range(sides, 2 * sides)
        triangles = [[below[0], below[k + 1], below[k]] for k in range(1, sides - 1)]
        triangles += [[above[0], above[k], above[k + 1]] for k in range(1, sides - 1)]
        for k in range(sides):
            m = (k + 1) % sides
            triangles += [[below[k], below[m], above[m]], [below[k], above[m], above[k]]]
        self.solid(part, [(*p, 0.0) for p in ring] + [(*p, height) for p in ring], triangles)

    def terrain(self, part: str, low: tuple[float, float], high: tuple[float, float], bottom: float) -> None:
        """Add rolling ground that meets z = 0 on its border, closed by walls and a bottom."""
        nx, ny = (round((high[k] - low[k]) / TERRAIN_CELL) for k in range(2))
        x, y = np.meshgrid(
            low[0] + TERRAIN_CELL * np.arange(nx + 1), low[1] + TERRAIN_CELL * np.arange(ny + 1), indexing="ij"
        )
        z = _terrain_height(x - low[0], y - low[1])
        z = z * _fade(x - low[0]) * _fade(high[0] - x) * _fade(y - low[1]) * _fade(high[1] - y)
        index = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
        a, b, c, d = (m.ravel() for m in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]))
        faces = [np.stack([a, b, c], -1), np.stack([a, c, d], -1)]
        # Border vertices, counterclockwise; their copies at the bottom; one point in the middle of
        # the bottom.
        rim = np.concatenate([index[:-1, 0], index[-1, :-1], index[:0:-1, -1], index[0, :0:-1]])
        base = len(x.ravel()) + np.arange(len(rim))
        after, base_after = np.roll(rim, -1), np.roll(base, -1)
        middle = np.full(len(rim), base[-1] + 1)
        closing = (rim, base, base_after), (rim, base_after, after), (middle, base_after, base)
        faces += [np.stack(corners, -1) for corners in closing]
        top = np.stack([x, y, z], -1).reshape(-1, 3)
        foot = top[rim] * [1, 1, 0] + [0, 0, bottom]
        centre = [[(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, bottom]]
        self.solid(part, np.concatenate([top, foot, centre]), np.concatenate(faces))


def _fade(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth fade from 0 at the border to 1 at 2.5 m inside."""
    t = np.clip(distance / 2.5, 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


def _terrain_height(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Height of the hills, m.

    Long waves, a hollow, and a knoll that only its west side makes walkable.
    """
    waves = 0.5 * np.sin(x * 0.75 + 0.4) * np.sin(y * 0.65 + 1.0) + 0.15 * np.sin(1.7 * x + 0.9 * y)
    dx, dy = x - 11.0, y - 10.0
    knoll = 2.8 * np.exp(-dx * dx / np.where(dx < 0, 20.0, 3.0) - dy * dy / 3.5)
    hollow = -1.5 * np.exp(-((x - 5.0) ** 2 + (y - 5.0) ** 2) / 5.0)
    return np.asarray(waves + knoll + hollow)


def _obstacles(b: _Builder, features: list[Feature]) -> None:
    """Add the ramps with their deck, the kerbs and the pillars."""
    # Four ramps to one deck: two below the slope limit of 45 degrees, two above it.
    for x0, degrees in ((-21.5, 30), (-17.75, 40), (-14.0, 50), (-10.25, 60)):
        b.ramp(f"ramp {degrees}", (x0, x0 + 3.0), -4.0, DECK_HEIGHT, degrees)
        run = DECK_HEIGHT / math.tan(math.radians(degrees))
        features.append(Feature(f"ramp {degrees}°", (x0, -4 - run), (x0 + 3, -4), (x0 + 1.5, -8.2)))
    b.box("deck", (-22.0, -4.0, 0), (-6.75, -1.0, DECK_HEIGHT))
    features.append(Feature("deck", (-22, -4), (-6.75, -1), (-14, -0.3)))

    # Kerbs across the plaza: two lower than a step of 0.4 m, one higher.
    for y0, z in ((0.0, 0.1875), (2.5, 0.375), (5.0, 0.5)):
        b.step("kerbs", (-4.0, y0), (3.0, y0 + 1.0), z)
    features.append(Feature("kerbs", (-4, 0), (3, 6), (-0.5, 7.0)))

    # Pillars, alternating round and square.
    for i in range(4):
        for j in range(3):
            sides, radius = ((12, 0.5), (4, 0.625))[(i + j) % 2]
            b.pillar("pillars", (-3.0 + 2.5 * i, -13.0 + 2.75 * j), radius, WALL_HEIGHT, sides)
    features.append(Feature("pillars", (-3.75, -14), (5.25, -6.5), (0.75, -5.9)))


def _passages(b: _Builder, features: list[Feature], passages: list[Passage]) -> None:
    """Add the tunnels and the wall with slots."""
    # Two passages, each under a roof: a person of 1.8 m fits into one, and the other is too low.
    # Then a wall with two slots.
    x0, x1 = 10.0, 17.0
    for y0, y1 in ((-13.25, -12.5), (-10.9375, -10.1875), (-8.625, -7.875)):
        b.box("tunnel wall", (x0, y0, 0), (x1, y1, 2.5))
    for name, y0, y1, ceiling in (("tunnel 2 m", -12.5, -10.9375, 2.0), ("too low 1.5 m", -10.1875, -8.625, 1.5)):
        b.box("roof", (x0, y0, ceiling), (x1, y1, 2.5))
        passages.append(Passage(name, 0, (x0, y0, 0), (x1, y1, ceiling), True))
        features.append(Feature(name, (x0, y0), (x1, y1), ((x0 + x1) / 2, (y0 + y1) / 2)))
    edges = (-7.875, -6.25, -5.25, -4.0, -3.5, -1.5)
    for y0, y1 in zip(edges[::2], edges[1::2], strict=True):
        b.box("slot wall", (13.25, y0, 0), (13.75, y1, 2.5))
    for name, y0, y1 in (("gap 1 m", edges[1], edges[2]), ("gap 0.5 m", edges[3], edges[4])):
        passages.append(Passage(name, 0, (13.25, y0, 0), (13.75, y1, 2.5), False))
        features.append(Feature(name, (13.25, y0), (13.75, y1), (15.4, (y0 + y1) / 2)))


def build_level() -> Level:
    """Build the demo level: 44 by 30 m between four walls.

    Returns
    -------
    Level
        The same numbers at every call.
    """
    b = _Builder()
    features: list[Feature] = []
    passages: list[Passage] = []

    # Ground: two slabs that leave the terrain's square open, and four walls.
    b.box("plaza", (-22, -15, -1), (6, 15, 0))
    b.box("plaza", (6, -15, -1), (22, -1, 0))
    b.terrain("terrain", (6, -1), (22, 15), -4.0)
    b.box("wall", (-22.5, -15.5, -1), (-22, 15.5, WALL_HEIGHT))
    b.box("wall", (22, -15.5, -4), (22.5, 15.5, WALL_HEIGHT))
    b.box("wall", (-22, -15.5, -1), (22, -15, WALL_HEIGHT))
    b.box("wall", (-22, 15, -4), (22, 15.5, WALL_HEIGHT))
    features.append(Feature("terrain", (6, -1), (22, 15), (17.5, 13.8)))
    features.append(Feature("plaza", (-5, -5), (6, 8), (-1, -3.2)))

    # Stairs up to a balcony, ledges down from it.
    x = -20.0
    for k in range(STEPS):
        b.step("stairs", (x, 9.0), (x + TREAD, 13.0), RISER * (k + 1))
        x += TREAD
    features.append(Feature("stairs", (-20, 9), (x, 13), (-18, 8.2)))
    b.step("balcony", (x, 8.5), (-10.0, 14.0), RISER * STEPS)
    features.append(Feature("balcony", (x, 8.5), (-10, 14), (-12.8, 14.5)))
    for x0, z in ((-10.0, 2.0), (-7.5, 1.25), (-5.0, 0.625)):
        b.box("ledges", (x0, 8.5, 0), (x0 + 2.5, 14.0, z))
    features.append(Feature("ledges", (-10, 8.5), (-2.5, 14), (-6.2, 14.5)))

    _obstacles(b, features)
    _passages(b, features, passages)

    names = tuple(dict.fromkeys(b.parts))
    per_solid = [len(t) for t in b.triangles]
    return Level(
        vertices=np.concatenate(b.vertices),
        triangles=np.concatenate(b.triangles).astype(np.int32),
        solid=np.repeat(np.arange(len(per_solid)), per_solid).astype(np.int32),
        part=np.repeat([names.index(part) for part in b.parts], per_solid).astype(np.int32),
        part_names=names,
        treads=np.array(b.treads),
        features=tuple(features),
        passages=tuple(passages),
    )
