"""Geometric kernels: closest points, times of impact, penetration.

Every function has a twin with the suffix ``_many``. The first takes single values and returns
tuples of floats. The second takes arrays with one case per row and returns arrays; an argument
given once serves all rows. Both run the same code and return the same bits. Lengths are metres, or
any one unit. All functions release the GIL.

The classes below describe the target of a capsule. A capsule is given by the centres of its two
spheres and its radius. A sphere is a capsule with equal centres, and a segment or a point is a
target of radius 0.

Every function raises ``TypeError`` for values that are not numbers, and ``ValueError`` for a wrong
shape, for numbers that are not finite and for impossible sizes. The message starts with the name of
the argument.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.geometry import array_loops as _kernels

__all__ = [
    "BoxAt",
    "CapsuleAt",
    "ClosestPoints",
    "ClosestPointsMany",
    "HullAt",
    "Penetration",
    "PenetrationMany",
    "PlaneAt",
    "SphereAt",
    "SweepHit",
    "SweepHitMany",
    "TriangleAt",
    "overlap",
    "overlap_many",
    "penetration",
    "penetration_many",
    "point_segment",
    "point_segment_many",
    "point_triangle",
    "point_triangle_many",
    "segment_box",
    "segment_box_many",
    "segment_segment",
    "segment_segment_many",
    "segment_triangle",
    "segment_triangle_many",
    "sweep",
    "sweep_many",
]

Vector = tuple[float, float, float]
Array = NDArray[np.float64]

# Directions and quaternions are normalised if their length is this near to 1.
UNIT_TOLERANCE = 1e-3


class CapsuleAt(NamedTuple):
    """A capsule in world space.

    Parameters
    ----------
    p0, p1 : (3,) or (n, 3)
        The centres of its end spheres. Equal centres make a sphere.
    radius : float or (n,)
        Above 0. A target may have radius 0 and is then a segment.
    """

    p0: ArrayLike
    p1: ArrayLike
    radius: ArrayLike


class TriangleAt(NamedTuple):
    """A triangle; a, b, c run counter-clockwise seen from its front.

    A degenerate triangle (cross product <= 1e-12 times the longest edge squared, RULES 3) is never
    touched.

    Parameters
    ----------
    a, b, c : (3,) or (n, 3)
        Its vertices.
    """

    a: ArrayLike
    b: ArrayLike
    c: ArrayLike


class SphereAt(NamedTuple):
    """A sphere.

    Parameters
    ----------
    centre : (3,) or (n, 3)
    radius : float or (n,)
        0 makes it a point.
    """

    centre: ArrayLike
    radius: ArrayLike


class BoxAt(NamedTuple):
    """A solid box.

    Parameters
    ----------
    half_extents : (3,) or (n, 3)
        Half its size along its own axes, above 0.
    position : (3,) or (n, 3)
        Its centre.
    rotation : (4,) or (n, 4)
        Quaternion x, y, z, w.
    """

    half_extents: ArrayLike
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (0.0, 0.0, 0.0, 1.0)


class PlaneAt(NamedTuple):
    """The half space dot(normal, x) <= offset.

    Parameters
    ----------
    normal : (3,) or (n, 3)
        Unit, out of the solid.
    offset : float or (n,)
    """

    normal: ArrayLike
    offset: ArrayLike


class HullAt(NamedTuple):
    """A solid convex polyhedron.

    Parameters
    ----------
    triangles : (m, 3, 3)
        Its closed surface, counter-clockwise seen from outside; the same for all rows.
    position : (3,) or (n, 3)
        World position of its origin.
    rotation : (4,) or (n, 4)
        Quaternion x, y, z, w.
    """

    triangles: ArrayLike
    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (0.0, 0.0, 0.0, 1.0)


Target = TriangleAt | SphereAt | CapsuleAt | BoxAt | PlaneAt | HullAt

# Index of the compiled loop for each kind of target.
_TARGET_KINDS: tuple[type, ...] = (TriangleAt, SphereAt, CapsuleAt, BoxAt, PlaneAt, HullAt)


class ClosestPoints(NamedTuple):
    """Closest points of two shapes; a is the first argument and b the second."""

    distance: float
    point_a: Vector
    point_b: Vector
    s: float  #: where on the segment a: 0 at its start, 1 at its end; 0 for a point
    t: float  #: where on the segment b; 0 for other figures


class ClosestPointsMany(NamedTuple):
    """Closest points, one pair per row. See `ClosestPoints`."""

    distance: Array  #: (n,)
    point_a: Array  #: (n, 3)
    point_b: Array  #: (n, 3)
    s: Array  #: (n,)
    t: Array  #: (n,)


class SweepHit(NamedTuple):
    """The first contact of a motion."""

    time: float  #: share of the motion, 0 to 1
    distance: float  #: length of that share
    normal: Vector  #: unit, out of the target; against the motion when overlapping
    point: Vector  #: on the target
    overlapping: bool  #: closer than touching when the motion began; time is 0


class SweepHitMany(NamedTuple):
    """First contacts, one per row; rows without a contact have NaN and False. See `SweepHit`."""

    hit: NDArray[np.bool_]  #: (n,)
    time: Array  #: (n,)
    distance: Array  #: (n,)
    normal: Array  #: (n, 3)
    point: Array  #: (n, 3)
    overlapping: NDArray[np.bool_]  #: (n,)


class Penetration(NamedTuple):
    """The shortest exit: moving the capsule by direction * depth ends the overlap."""

    direction: Vector
    depth: float


class PenetrationMany(NamedTuple):
    """Exits, one per row; rows without overlap have False, 0 and 0. See `Penetration`."""

    overlapping: NDArray[np.bool_]  #: (n,)
    direction: Array  #: (n, 3)
    depth: Array  #: (n,)


def _array(name: str, value: ArrayLike) -> Array:
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected real numbers, got {raw.dtype}")
    array = raw.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: must be finite")
    return array


def _column(name: str, value: ArrayLike, width: int, many: bool) -> Array:
    """Return value as (width,), or as (n, width) if many; width 1 means plain numbers."""
    array = _array(name, value)
    if width == 1:
        array = array[..., None]
    elif many and array.shape == (0,):
        array = array.reshape(0, width)
    if array.ndim not in ((1, 2) if many else (1,)) or array.shape[-1] != width:
        single = "a number" if width == 1 else f"({width},)"
        several = ("(n,)" if width == 1 else f"(n, {width})") if many else ""
        expected = f"{single} or {several}" if several else single
        raise ValueError(f"{name}: expected {expected}, got shape {np.shape(value)}")
    return array


def _positive(name: str, array: Array, or_zero: bool = False) -> Array:
    if (array < 0).any() or (not or_zero and (array == 0).any()):
        raise ValueError(f"{name}: must be {'0 or more' if or_zero else 'above 0'}")
    return array


def _unit(name: str, array: Array) -> Array:
    length: Array = np.sqrt((array * array).sum(-1, keepdims=True))
    if (abs(length - 1) > UNIT_TOLERANCE).any():
        raise ValueError(f"{name}: must have length 1")
    unit: Array = array / length
    return unit


def _rows(columns: dict[str, Array]) -> Array:
    """Concatenate the columns to (n, sum of widths); columns given once are repeated."""
    n = 1
    size = ""
    for name, array in columns.items():
        if array.ndim == 2:
            if size and len(array) != n:
                raise ValueError(f"{name}: has {len(array)} rows, {size} has {n}")
            n, size = len(array), size or name
    rows = np.empty((n, sum(array.shape[-1] for array in columns.values())))
    at = 0
    for array in columns.values():
        rows[:, at:at + array.shape[-1]] = array
        at += array.shape[-1]
    return rows


# Rows of a batch in one call of a compiled loop: some 30 ms.
PART = 1 << 16


def _parts(rows: Array) -> Iterator[slice]:
    """Yield the rows of a batch in parts, so that Ctrl-C stops a long one between two of them."""
    for first in range(0, len(rows), PART):
        yield slice(first, first + PART)


def _closest(kind: int, many: bool, **figures: ArrayLike) -> Array:
    columns = {name: _column(name, value, 3, many) for name, value in figures.items()}
    if "half_extents" in columns:
        _positive("half_extents", columns["half_extents"], or_zero=True)
    rows = _rows(columns)
    out = np.empty((len(rows), 9))
    for part in _parts(rows):
        _kernels.closest(kind, rows[part], out[part])
    return out


def _one_pair(out: Array) -> ClosestPoints:
    r = out[0].tolist()
    return ClosestPoints(r[6], (r[0], r[1], r[2]), (r[3], r[4], r[5]), r[7], r[8])


def _pairs(out: Array) -> ClosestPointsMany:
    return ClosestPointsMany(out[:, 6].copy(), out[:, 0:3].copy(), out[:, 3:6].copy(), out[:, 7].copy(),
                             out[:, 8].copy())


def point_segment(p: ArrayLike, a: ArrayLike, b: ArrayLike) -> ClosestPoints:
    """Closest points of the point p and the segment ab, all (3,)."""
    return _one_pair(_closest(0, False, p=p, a=a, b=b))


def point_segment_many(p: ArrayLike, a: ArrayLike, b: ArrayLike) -> ClosestPointsMany:
    """`point_segment` row by row: (n, 3) or (3,) each."""
    return _pairs(_closest(0, True, p=p, a=a, b=b))


def segment_segment(p0: ArrayLike, p1: ArrayLike, q0: ArrayLike, q1: ArrayLike) -> ClosestPoints:
    """Closest points of the segments p0 p1 and q0 q1, all (3,)."""
    return _one_pair(_closest(1, False, p0=p0, p1=p1, q0=q0, q1=q1))


def segment_segment_many(p0: ArrayLike, p1: ArrayLike, q0: ArrayLike, q1: ArrayLike) -> ClosestPointsMany:
    """`segment_segment` row by row: (n, 3) or (3,) each."""
    return _pairs(_closest(1, True, p0=p0, p1=p1, q0=q0, q1=q1))


def point_triangle(p: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> ClosestPoints:
    """Closest points of the point p and the triangle abc, all (3,).

    The triangle counts from both sides and may be degenerate.
    """
    return _one_pair(_closest(2, False, p=p, a=a, b=b, c=c))


def point_triangle_many(p: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> ClosestPointsMany:
    """`point_triangle` row by row: (n, 3) or (3,) each."""
    return _pairs(_closest(2, True, p=p, a=a, b=b, c=c))


def segment_triangle(p0: ArrayLike, p1: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> ClosestPoints:
    """Closest points of the segment p0 p1 and the triangle abc, all (3,).

    The triangle counts from both sides and may be degenerate.
    """
    return _one_pair(_closest(3, False, p0=p0, p1=p1, a=a, b=b, c=c))


def segment_triangle_many(
    p0: ArrayLike, p1: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike
) -> ClosestPointsMany:
    """`segment_triangle` row by row: (n, 3) or (3,) each."""
    return _pairs(_closest(3, True, p0=p0, p1=p1, a=a, b=b, c=c))


def segment_box(p0: ArrayLike, p1: ArrayLike, half_extents: ArrayLike) -> ClosestPoints:
    """Closest points of the segment p0 p1 and the box [-half_extents, half_extents], all (3,).

    A segment that enters the box has distance 0.
    """
    return _one_pair(_closest(4, False, p0=p0, p1=p1, half_extents=half_extents))


def segment_box_many(p0: ArrayLike, p1: ArrayLike, half_extents: ArrayLike) -> ClosestPointsMany:
    """`segment_box` row by row: (n, 3) or (3,) each."""
    return _pairs(_closest(4, True, p0=p0, p1=p1, half_extents=half_extents))


_NO_SURFACE = np.empty((0, 3, 3))


def _placed(
    capsule: CapsuleAt, motion: ArrayLike, target: Target, many: bool
) -> tuple[int, Array, Array]:
    """Return the kind of the target, rows for the compiled loops, and the hull's triangles."""
    if not isinstance(capsule, CapsuleAt):
        raise TypeError(f"capsule: expected a CapsuleAt, got {type(capsule).__name__}")
    if not isinstance(target, _TARGET_KINDS):
        raise TypeError(f"target: expected one of {', '.join(kind.__name__ for kind in _TARGET_KINDS)}, "
                        f"got {type(target).__name__}")
    columns = {
        "capsule.p0": _column("capsule.p0", capsule.p0, 3, many),
        "capsule.p1": _column("capsule.p1", capsule.p1, 3, many),
        "capsule.radius": _positive("capsule.radius", _column("capsule.radius", capsule.radius, 1, many)),
        "motion": _column("motion", motion, 3, many),
    }
    surface = _NO_SURFACE
    for field, value in zip(target._fields, target, strict=True):
        name = f"target.{field}"
        if field == "triangles":
            surface = np.ascontiguousarray(_array(name, value))
            if surface.ndim != 3 or surface.shape[1:] != (3, 3) or len(surface) < 4:
                raise ValueError(f"{name}: expected (m, 3, 3) with m of 4 or more, got shape {surface.shape}")
            continue
        width = {"radius": 1, "offset": 1, "rotation": 4}.get(field, 3)
        column = _column(name, value, width, many)
        if field == "radius":
            _positive(name, column, or_zero=True)
        elif field == "half_extents":
            _positive(name, column)
        elif field in ("rotation", "normal"):
            column = _unit(name, column)
        columns[name] = column
    return _TARGET_KINDS.index(type(target)), _rows(columns), surface


def _swept(capsule: CapsuleAt, motion: ArrayLike, target: Target, cull: bool, many: bool) -> SweepHitMany:
    kind, rows, surface = _placed(capsule, motion, target, many)
    out = np.full((len(rows), 9), np.nan)
    out[:, :2] = 0
    for part in _parts(rows):
        _kernels.sweep(kind, rows[part], surface, bool(cull), out[part])
    length = np.sqrt((rows[:, 7:10] ** 2).sum(-1))
    distance = out[:, 2].copy()
    time = np.divide(distance, length, out=distance.copy(), where=length > 0)
    return SweepHitMany(out[:, 0] > 0, np.minimum(time, 1.0), distance, out[:, 3:6].copy(), out[:, 6:9].copy(),
                        out[:, 1] > 0)


def sweep(capsule: CapsuleAt, motion: ArrayLike, target: Target, *, cull: bool = False) -> SweepHit | None:
    """Find the first contact of a moving capsule with a target (RULES 3, 7.6).

    Parameters
    ----------
    capsule : CapsuleAt
        The moving capsule at its start.
    motion : (3,)
        The whole displacement. A zero motion finds only an overlap.
    target : TriangleAt, SphereAt, CapsuleAt, BoxAt, PlaneAt or HullAt
        The shape to hit.
    cull : bool
        Treat a triangle as a character's move does (RULES 2, 3): ignore it if its normal points
        along the motion and, where the capsule's axis is parallel to the motion, if it is behind
        the leading sphere by more than the radius + 0.002. Ignore a plane if its normal points
        along the motion. Without ``cull``, a triangle counts from both sides.

    Returns
    -------
    SweepHit or None
        None without a contact. A motion that passes less than 1e-12 of the radius below a surface
        does not touch it.

    Notes
    -----
    A triangle whose plane contains both the motion and the capsule's axis, within 1e-9, can be
    overlapped but not hit (RULES 2). Among the faces of a hull that are touched within 1e-3 of the
    first one, the face most opposed to the motion decides normal and point, and the first face
    decides the distance (RULES 3).
    """
    found = _swept(capsule, motion, target, cull, False)
    if not found.hit[0]:
        return None
    x, y, z = found.normal[0].tolist()
    u, v, w = found.point[0].tolist()
    return SweepHit(float(found.time[0]), float(found.distance[0]), (x, y, z), (u, v, w), bool(found.overlapping[0]))


def sweep_many(capsule: CapsuleAt, motion: ArrayLike, target: Target, *, cull: bool = False) -> SweepHitMany:
    """`sweep` row by row: each field of capsule and target, and motion, once or n times."""
    return _swept(capsule, motion, target, cull, True)


def _pushed(capsule: CapsuleAt, target: Target, many: bool) -> PenetrationMany:
    kind, rows, surface = _placed(capsule, (0.0, 0.0, 0.0), target, many)
    out = np.zeros((len(rows), 5))
    for part in _parts(rows):
        _kernels.penetration(kind, rows[part], surface, out[part])
    return PenetrationMany(out[:, 0] > 0, out[:, 1:4].copy(), out[:, 4].copy())


def penetration(capsule: CapsuleAt, target: Target) -> Penetration | None:
    """Find the shortest translation of a capsule out of a target; None without an overlap.

    Parameters
    ----------
    capsule : CapsuleAt
    target : TriangleAt, SphereAt, CapsuleAt, BoxAt, PlaneAt or HullAt
        The exit from a triangle is to the side of the capsule's centre (RULES 7.5), from either
        side. If the centre is in the plane, the exit is along the normal.
    """
    found = _pushed(capsule, target, False)
    if not found.overlapping[0]:
        return None
    x, y, z = found.direction[0].tolist()
    return Penetration((x, y, z), float(found.depth[0]))


def penetration_many(capsule: CapsuleAt, target: Target) -> PenetrationMany:
    """`penetration` row by row: each field of capsule and target once or n times."""
    return _pushed(capsule, target, True)


def _overlaps(capsule: CapsuleAt, target: Target, many: bool) -> NDArray[Any]:
    kind, rows, surface = _placed(capsule, (0.0, 0.0, 0.0), target, many)
    out = np.empty((len(rows), 1))
    for part in _parts(rows):
        _kernels.overlap(kind, rows[part], surface, out[part])
    return out[:, 0] > 0


def overlap(capsule: CapsuleAt, target: Target) -> bool:
    """Whether a capsule overlaps a target; a triangle counts from both sides (RULES 7.6)."""
    return bool(_overlaps(capsule, target, False)[0])


def overlap_many(capsule: CapsuleAt, target: Target) -> NDArray[np.bool_]:
    """`overlap` row by row: each field of capsule and target once or n times."""
    return _overlaps(capsule, target, True)
