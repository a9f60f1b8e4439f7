"""What a level consists of, and what looks wrong about it."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.geometry.array_loops import flipped_count, triangle_normals

__all__ = ["LevelReport", "inspected", "places_of", "report_on"]

Array = NDArray[np.float64]

# What looks like a mistake of unit or axis: a middle edge this long or a level this small,
# metres; a share of the area; how much more area must face along one axis than the others.
LONG_EDGE = 30.0
SHORT_EDGE = 0.005
SMALL_LEVEL = 1.0
LARGE_LEVEL = 20_000.0
FLOOR_SHARE = 0.2
FLOOR_RATIO = 1.5
# A level this high, metres, that is no terrain: its height is more than this share of its length.
TALL_LEVEL = 300.0
TALL_SHARE = 0.25
# Floors lie low: where they lie above this share of the height, the level hangs upside down.
FLOOR_HEIGHT = 0.55
# Triangles that face an axis within 45 degrees count as its floor.
FLOOR_COSINE = math.sqrt(0.5)

# Triangles looked at together, so that memory does not grow with their number.
BLOCK = 1 << 16
# Odd numbers that mix the bits of three coordinates.
FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
# Names in the text of a report.
LISTED = 8
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class LevelReport:
    """What a level consists of, and what looks wrong about it.

    Attributes
    ----------
    path : str
        The file, or '' for arrays.
    triangles, vertices : int
        As loaded.
    lower, upper : tuple of 3 floats
        Corners of the bounding box, metres, z up.
    degenerate : int
        Triangles without area; they are kept in the numbering and touch nothing.
    duplicate : int
        Triangles that repeat an earlier one (same corners, any order).
    flipped : int
        Fewest triangles to turn over so that neighbours face the same side.
    open_edges : int
        Edges of one triangle only; 0 for a closed surface.
    largest_edge, smallest_edge : float
        Metres; the smallest of those with a length.
    warnings : tuple of str
        Suspected mistakes, in words.
    nodes : tuple of str
        Names of the nodes that the triangles belong to, in the order of the file.
    materials : tuple of str
        Names of materials; `Mesh.triangle_data` contains their indices. The last name is '' if a
        triangle has no material.
    triangle_node : (triangles,) array of int32, or None
        For each triangle the index of its node in `nodes`; None for arrays.
    """

    path: str
    triangles: int
    vertices: int
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]
    degenerate: int
    duplicate: int
    flipped: int
    open_edges: int
    largest_edge: float
    smallest_edge: float
    warnings: tuple[str, ...] = field(default=())
    nodes: tuple[str, ...] = field(default=())
    materials: tuple[str, ...] = field(default=())
    triangle_node: NDArray[np.int32] | None = field(default=None, repr=False, compare=False)

    @property
    def size(self) -> tuple[float, float, float]:
        """Extent along x, y and z, metres."""
        x, y, z = (b - a for a, b in zip(self.lower, self.upper, strict=True))
        return x, y, z

    def __str__(self) -> str:
        def at(v: tuple[float, float, float]) -> str:
            return "(" + ", ".join(f"{x:.6g}" for x in v) + ")"

        lines = [
            self.path or "arrays",
            f"  triangles      {self.triangles}",
            f"  vertices       {self.vertices}",
            f"  bounds         {at(self.lower)} to {at(self.upper)} m",
            f"  size           {at(self.size)} m",
            f"  degenerate     {self.degenerate}",
            f"  duplicate      {self.duplicate}",
            f"  flipped        {self.flipped}",
            f"  open edges     {self.open_edges}",
            f"  largest edge   {self.largest_edge:.6g} m",
            f"  smallest edge  {self.smallest_edge:.6g} m",
        ]
        for title, names in (("nodes", self.nodes), ("materials", self.materials)):
            if names:
                lines.append(f"  {title:14} {len(names)}: {_listed(names)}")
        lines += [f"  warning: {w}" for w in self.warnings]
        return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> str:
    """The first names, in one line; control characters would reach the terminal."""
    shown = ["".join(c if c.isprintable() else "?" for c in name[:40]) for name in names[:LISTED]]
    return ", ".join(shown) + (", ..." if len(names) > LISTED else "")


def report_on(vertices: ArrayLike, triangles: ArrayLike, path: str = "") -> LevelReport:
    """Look over a mesh (z up, metres).

    Parameters
    ----------
    vertices : (n, 3) array of floats
    triangles : (m, 3) array of integers
    path : str
        To be named in the report.

    Returns
    -------
    LevelReport
    """
    return inspected(vertices, triangles, path)


def inspected(vertices: ArrayLike, triangles: ArrayLike, path: str = "", turn: Array | None = None,
              two_sided: bool = False) -> LevelReport:
    """Look over a mesh that `turn` brought to z up; suggestions are in the file's axes."""
    v = np.ascontiguousarray(vertices, dtype=np.float64)
    t = np.ascontiguousarray(triangles)
    if t.dtype != np.int32:
        t = t.astype(np.int64)
    if v.ndim != 2 or v.shape[1] != 3 or len(v) == 0:
        raise ValueError(f"vertices must have shape (n, 3), got {v.shape}")
    if t.ndim != 2 or t.shape[1] != 3 or len(t) == 0:
        raise ValueError(f"triangles must have shape (m, 3), got {t.shape}")
    if t.min() < 0 or t.max() >= len(v):
        raise ValueError(f"triangles must hold indices from 0 to {len(v) - 1}")
    surface = _surface_of(v, t)
    place = places_of(v)[t]
    solid = place if not surface.flat.any() else place[~surface.flat]
    del place
    duplicate, flipped, open_edges = _neighbourhood(solid)
    edges = surface.edges
    return LevelReport(
        path=path,
        triangles=len(t),
        vertices=len(v),
        lower=tuple(surface.lower.tolist()),
        upper=tuple(surface.upper.tolist()),
        degenerate=int(surface.flat.sum()),
        duplicate=duplicate,
        flipped=flipped,
        open_edges=open_edges,
        largest_edge=float(edges.max()) if edges.size else 0.0,
        smallest_edge=float(edges.min()) if edges.size else 0.0,
        warnings=tuple(_suspicions(surface, flipped, len(t), np.eye(3) if turn is None else turn, two_sided)),
    )


@dataclass
class _Surface:
    """Sums over triangles: which are degenerate, lengths of edges, area by the axis it faces."""

    flat: NDArray[np.bool_]
    edges: Array
    lower: Array
    upper: Array
    area: float
    # Area that faces along +x, +y, +z and -x, -y, -z; its moment from the lower corner.
    facing: Array
    moment: Array


def _surface_of(v: Array, t: NDArray[np.integer[Any]]) -> _Surface:
    """Look at every triangle once, in blocks."""
    used = np.zeros(len(v), bool)
    used[t] = True
    if used.all():
        lower, upper = v.min(0), v.max(0)
    else:
        lower, upper = v[used].min(0), v[used].max(0)
    flat, edges = np.empty(len(t), bool), np.empty((len(t), 3))
    found = _Surface(flat, edges, lower, upper, 0.0, np.zeros((2, 3)), np.zeros((2, 3)))
    for start in range(0, len(t), BLOCK):
        part = slice(start, start + BLOCK)
        a, b, c = (v[t[part, k]] for k in range(3))
        normals = triangle_normals(a, b, c)
        found.flat[part] = ~normals.any(axis=1)
        one, two = b - a, c - a
        for k, side in enumerate((one, c - b, two)):
            found.edges[part, k] = np.sqrt(np.einsum("ij,ij->i", side, side))
        cross = np.stack([one[:, 1] * two[:, 2] - one[:, 2] * two[:, 1], one[:, 2] * two[:, 0] - one[:, 0] * two[:, 2],
                          one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]], 1)
        area = 0.5 * np.sqrt(np.einsum("ij,ij->i", cross, cross))
        found.area += float(area.sum())
        middle = (a + b + c) / 3.0 - lower
        for k, sign in enumerate((1.0, -1.0)):
            weight = np.where(sign * normals > FLOOR_COSINE, area[:, None], 0.0)
            found.facing[k] += weight.sum(0)
            found.moment[k] += (weight * middle).sum(0)
    found.edges = found.edges[found.edges > 0.0]
    return found


def places_of(vertices: Array) -> NDArray[np.int32]:
    """Number the places of vertices in the order in which they first appear."""
    bits = (vertices + 0.0).view(np.uint64)                  # no negative zeros
    key = np.zeros(len(bits), np.uint64)
    for column, factor in enumerate(FACTORS):
        key ^= bits[:, column] * np.uint64(factor)
        key ^= key >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
    order = np.argsort(key)
    key = key[order]
    if not (key[1:] == key[:-1]).any():
        return np.arange(len(bits), dtype=np.int32)
    rows = bits[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    if (new[1:] & (key[1:] == key[:-1])).any():
        # Different places with the same key: sort by the places themselves.
        order = np.lexsort(bits.T)
        rows = bits[order]
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    first = np.minimum.reduceat(order, np.flatnonzero(new))
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    place = np.empty(len(rows), np.int32)
    place[order] = rank[group]
    return place


def _without_repeats(corners: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """Triangles without those that repeat an earlier one, and how many those are."""
    ordered = np.sort(corners, axis=1).astype(np.int64)
    most = int(ordered.max()) + 1
    key = ordered[:, 0] * most + ordered[:, 1]
    if most**3 >= 2**63:
        key = np.unique(key, return_inverse=True)[1].astype(np.int64)
        if len(key) * most >= 2**63:
            raise ValueError("it has too many triangles")
    key = key * most + ordered[:, 2]
    del ordered
    in_order = np.sort(key)
    repeats = int((in_order[1:] == in_order[:-1]).sum())
    if not repeats:
        return corners, 0
    first = np.unique(key, return_index=True)[1]
    return corners[np.sort(first)], repeats


def _neighbourhood(corners: NDArray[np.int32]) -> tuple[int, int, int]:
    """Repeated and flipped triangles, and open edges; corners by place."""
    if len(corners) == 0:
        return 0, 0, 0
    corners, repeats = _without_repeats(corners)
    n = len(corners)
    start = corners.reshape(-1).astype(np.int64)
    end = corners[:, [1, 2, 0]].reshape(-1).astype(np.int64)
    forward = start < end
    key = np.minimum(start, end)
    key *= int(corners.max()) + 1
    key += np.maximum(start, end, out=end)
    del start, end
    order = np.argsort(key).astype(np.int32)
    key = key[order]
    fresh = np.ones(len(key) + 1, bool)
    np.not_equal(key[1:], key[:-1], out=fresh[1:-1])
    del key
    runs = np.flatnonzero(fresh)
    counts = np.diff(runs)
    # Edges of three triangles and more do not say which of them is turned over.
    two = runs[:-1][counts == 2]
    one, other = order[two], order[two + 1]
    pairs = np.stack([one // 3, other // 3], 1).astype(np.int32)
    agrees = (forward[one] != forward[other]).astype(np.uint8)
    apart = pairs[:, 0] != pairs[:, 1]
    if not apart.all():
        pairs, agrees = np.ascontiguousarray(pairs[apart]), np.ascontiguousarray(agrees[apart])
    return repeats, int(flipped_count(pairs, agrees, n)), int((counts == 1).sum())


def _suspicions(surface: _Surface, flipped: int, n: int, turn: Array, two_sided: bool) -> list[str]:
    """Suspected mistakes of unit, axis and side, in words."""
    found = _unit_suspicions(surface)
    total = surface.area
    if total > 0.0:
        both = surface.facing.sum(0) / total
        other = max((0, 1), key=lambda k: float(both[k]))
        down, up = float(surface.facing[1, 2]) / total, float(surface.facing[0, 2]) / total
        # Walls face two axes alike; floor and ceiling face one.
        if both[other] > FLOOR_RATIO * max(both[2], both[1 - other]):
            direction = np.zeros(3)
            direction[other] = _sign_of_up(surface, other)
            axis = np.rint(turn.T @ direction)
            k = int(np.abs(axis).argmax())
            name = AXES[k] if axis[k] > 0.0 else "-" + AXES[k]
            found.append(f"most of its area faces along {AXES[k]}, not up: is its up axis another (up={name!r})?")
        elif down > FLOOR_SHARE and down > 2.0 * up and not two_sided:
            found.append("more of its area faces down than up: are its triangles inside out (two_sided=True makes "
                         "them solid from both sides), or is it upside down?")
    if flipped > 0 and not two_sided:
        found.append(f"{flipped} of {n} triangles face another side than their neighbours: characters fall or walk "
                     "through them from behind; two_sided=True makes them solid from both sides")
    return found


def _sign_of_up(surface: _Surface, axis: int) -> float:
    """Which way along an axis is up: where the floors face, or else away from where they lie."""
    plus, minus = surface.facing[:, axis].tolist()
    if max(plus, minus) > FLOOR_RATIO * min(plus, minus):
        return 1.0 if plus > minus else -1.0
    # A solid has as much area on top as below. Walls and towers rise from floors.
    height = float(surface.upper[axis] - surface.lower[axis])
    level = float(surface.moment[:, axis].sum()) / (plus + minus)
    return -1.0 if level > FLOOR_HEIGHT * height else 1.0


def _unit_suspicions(surface: _Surface) -> list[str]:
    """Suspected mistakes of unit."""
    size = surface.upper - surface.lower
    middle = float(np.median(surface.edges)) if surface.edges.size else 0.0
    longest, height = float(size.max()), float(size[2])
    tall = height > TALL_LEVEL and height > TALL_SHARE * longest
    if middle > LONG_EDGE or longest > LARGE_LEVEL or tall:
        return [f"very large: {longest:.6g} m across, {height:.6g} m high, middle edge {middle:.6g} m; are its units "
                f"millimetres (scale=0.001: {0.001 * longest:.4g} m across) or centimetres (scale=0.01: "
                f"{0.01 * longest:.4g} m across)?"]
    if longest < SMALL_LEVEL or (0.0 < middle < SHORT_EDGE):
        return [f"very small: {longest:.6g} m across, middle edge {middle:.6g} m; "
                "is one of its units more than a metre (scale)?"]
    return []
