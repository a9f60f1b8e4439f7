"""The geometry toolbox: every formula of SWEEP, for one case or for many.

A vector argument is three numbers or an array of shape ``(n, 3)``. Arguments broadcast: an argument
that is given once serves all rows. One case returns floats and tuples, and many cases return
float64 arrays. Lengths are in metres. Each function raises `TypeError` for values that are not
numbers, and `ValueError` for a wrong shape, for a number that is not finite and for an impossible
size. The message names the argument.

A capsule is a `CapsuleAt`: the centres of its end spheres, ``p0`` below and ``p1`` above, and its
radius. Its height is the distance between the two centres, as everywhere in pycct. Its total height
is longer by twice the radius. Its feet are its lowest point here (SWEEP 1.2). The ``foot_position``
of a `CharacterController` is lower by the contact offset.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import kernels
from pycct.args.plain import as_float
from pycct.geometry import trigonometry
from pycct.geometry.array_loops import triangle_normals
from pycct.kernels import BoxAt, CapsuleAt, PlaneAt, SphereAt, TriangleAt
from pycct.runtime.enums import Region

__all__ = [
    "BOTTOM_PARAMETER",
    "EPSILON_DISTANCE",
    "EPSILON_DOT",
    "EPSILON_NORMAL",
    "NEAR_PARALLEL",
    "NEAR_PERPENDICULAR",
    "STEP_DOWN_HEIGHT",
    "TOP_PARAMETER",
    "WINDOW_EPSILON",
    "Region",
    "Transform",
    "arc",
    "axis_parameter",
    "capsule_axis",
    "capsule_bounds",
    "capsule_centre",
    "capsule_direction",
    "capsule_feet",
    "capsule_from_centre",
    "capsule_from_feet",
    "capsule_half_height",
    "capsule_head",
    "capsule_height",
    "capsule_total_height",
    "classify_parameter",
    "classify_region",
    "closest_on_segment",
    "cosine",
    "filter_by_window",
    "is_facing",
    "is_normal",
    "is_parallel",
    "is_perpendicular",
    "orient_for_ground",
    "orient_for_overlap",
    "orient_for_sweep",
    "orient_for_wall",
    "overlap_contact_point",
    "penetration_depth",
    "plane_distance",
    "point_in_triangle",
    "same_distance",
    "scale_depth",
    "sine",
    "sweep_contact_point",
    "swept_bounds",
    "triangle_normal",
    "vertical_window",
    "world_to_wow",
    "wow_to_world",
]

Array = NDArray[np.float64]
Up = (0.0, 0.0, 1.0)


# ---------------------------------------------------------------- arguments and results

def _numbers(name: str, value: ArrayLike) -> Array:
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be numbers") from None
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, not {given.dtype}")
    array: Array = given.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def _vectors(name: str, value: ArrayLike, columns: int = 3) -> Array:
    array = _numbers(name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != columns:
        raise ValueError(f"{name} must have shape ({columns},) or (n, {columns}), got {array.shape}")
    return array


def _lengths(name: str, value: ArrayLike, least: float = 0.0, strict: bool = False) -> Array:
    array = _numbers(name, value)
    if array.ndim > 1:
        raise ValueError(f"{name} must be one number or have shape (n,), got {array.shape}")
    if (array <= least).any() if strict else (array < least).any():
        raise ValueError(f"{name} must be {'>' if strict else '>='} {least:g}")
    return array


def _units(name: str, value: ArrayLike) -> Array:
    array = _vectors(name, value)
    largest = np.abs(array).max(axis=-1, keepdims=True)
    if (largest == 0.0).any():
        raise ValueError(f"{name} must not be zero")
    array = array / largest
    return np.asarray(array / _norm(array)[..., None])


def _capsule(capsule: CapsuleAt) -> tuple[Array, Array, Array]:
    if not isinstance(capsule, tuple) or len(capsule) != 3:
        raise TypeError(f"capsule must be a CapsuleAt, not {type(capsule).__name__}")
    p0, p1 = _vectors("p0", capsule[0]), _vectors("p1", capsule[1])
    radius = _lengths("radius", capsule[2], strict=True)
    _check_rows(p0=p0, p1=p1, radius=radius[..., None])
    return p0, p1, radius


def _check_rows(**arrays: Array) -> None:
    """Check that all arrays have the same number of rows, or one row."""
    rows = {name: a.shape[0] for name, a in arrays.items() if a.ndim == 2}
    if len(set(rows.values())) > 1:
        raise ValueError("the numbers of rows differ: " + ", ".join(f"{k} has {n}" for k, n in rows.items()))


def _dot(a: Array, b: Array) -> Array:
    product = a * b
    return np.asarray(product[..., 0] + product[..., 1] + product[..., 2])


def _norm(a: Array) -> Array:
    return np.asarray(np.sqrt(_dot(a, a)))


def _out(value: Any) -> Any:
    """Return tuples and floats for one case."""
    array = np.asarray(value)
    if array.ndim == 0:
        return array.item()
    if array.ndim == 1 and array.shape[0] == 3:
        return tuple(array.tolist())
    return array


def _scalars(value: Any, single: bool) -> Any:
    array = np.asarray(value)
    return array.item() if single else array


# ---------------------------------------------------------------- capsules (SWEEP 1)

def capsule_from_feet(feet: ArrayLike, radius: ArrayLike, total_height: ArrayLike, up: ArrayLike = Up) -> CapsuleAt:
    """The capsule that stands on a point (SWEEP 1.2).

    Parameters
    ----------
    feet : (3,) or (n, 3)
        Its lowest point; without a contact offset.
    radius : float or (n,)
        Above 0.
    total_height : float or (n,)
        Cylinder and both caps. Below twice the radius the capsule becomes a sphere.
    up : (3,) or (n, 3)

    Returns
    -------
    CapsuleAt
    """
    f, u = _vectors("feet", feet), _units("up", up)
    r = _lengths("radius", radius, strict=True)
    h = _lengths("total_height", total_height)
    _check_rows(feet=f, up=u, radius=r[..., None], total_height=h[..., None])
    cylinder = np.maximum(h - 2.0 * r, 0.0)
    p0 = f + u * r[..., None]
    p1 = p0 + u * cylinder[..., None]
    p0 = np.broadcast_to(p0, p1.shape).copy()
    return CapsuleAt(_out(p0), _out(p1), _scalars(r, p1.ndim == 1) if r.ndim == 0 else r)


def capsule_from_centre(centre: ArrayLike, radius: ArrayLike, height: ArrayLike, up: ArrayLike = Up) -> CapsuleAt:
    """The capsule about a centre; ``height`` is the distance of the sphere centres."""
    c, u = _vectors("centre", centre), _units("up", up)
    r, h = _lengths("radius", radius, strict=True), _lengths("height", height)
    _check_rows(centre=c, up=u, radius=r[..., None], height=h[..., None])
    half = u * (0.5 * h)[..., None]
    return CapsuleAt(_out(c - half), _out(c + half), r.item() if r.ndim == 0 else r)


def capsule_axis(capsule: CapsuleAt) -> Any:
    """``p1 - p0``."""
    p0, p1, _ = _capsule(capsule)
    return _out(p1 - p0)


def capsule_height(capsule: CapsuleAt) -> Any:
    """Distance of the sphere centres, the length of the cylinder."""
    p0, p1, _ = _capsule(capsule)
    return _out(_norm(p1 - p0))


def capsule_total_height(capsule: CapsuleAt) -> Any:
    """Cylinder and both caps."""
    p0, p1, r = _capsule(capsule)
    return _out(_norm(p1 - p0) + 2.0 * r)


def capsule_half_height(capsule: CapsuleAt) -> Any:
    """Half of the total height."""
    p0, p1, r = _capsule(capsule)
    return _out((_norm(p1 - p0) + 2.0 * r) * 0.5)


def capsule_centre(capsule: CapsuleAt) -> Any:
    """The middle of the axis."""
    p0, p1, _ = _capsule(capsule)
    return _out((p0 + p1) * 0.5)


def capsule_direction(capsule: CapsuleAt) -> Any:
    """Unit vector from p0 to p1; zero if the capsule is a sphere."""
    p0, p1, _ = _capsule(capsule)
    return _out(_unit_or_zero(p1 - p0))


def _unit_or_zero(v: Array) -> Array:
    largest = np.abs(v).max(axis=-1, keepdims=True)
    scaled = np.divide(v, largest, out=np.zeros_like(v), where=largest > 0.0)
    length = _norm(scaled)[..., None]
    return np.asarray(np.divide(scaled, length, out=np.zeros_like(v), where=length > 0.0))


def capsule_feet(capsule: CapsuleAt, up: ArrayLike = Up) -> Any:
    """The lowest point along ``up``, without a contact offset: the input of `capsule_from_feet`."""
    p0, p1, r = _capsule(capsule)
    u = _units("up", up)
    low = np.where((_dot(p0, u) <= _dot(p1, u))[..., None], p0, p1)
    return _out(low - u * r[..., None])


def capsule_head(capsule: CapsuleAt, up: ArrayLike = Up) -> Any:
    """The highest point along ``up``."""
    p0, p1, r = _capsule(capsule)
    u = _units("up", up)
    high = np.where((_dot(p0, u) > _dot(p1, u))[..., None], p0, p1)
    return _out(high + u * r[..., None])


def capsule_bounds(capsule: CapsuleAt) -> tuple[Any, Any]:
    """Corners (lo, hi) of the bounding box (SWEEP 1.3)."""
    p0, p1, r = _capsule(capsule)
    grow = r[..., None]
    return _out(np.minimum(p0, p1) - grow), _out(np.maximum(p0, p1) + grow)


# ---------------------------------------------------------------- before the sweep (SWEEP 3)

def swept_bounds(
    capsule: CapsuleAt, direction: ArrayLike, distance: ArrayLike, inflation: ArrayLike | None = None
) -> tuple[Any, Any]:
    """Box around the path of a capsule (SWEEP 3.1).

    Parameters
    ----------
    capsule : CapsuleAt
    direction : (3,) or (n, 3)
        Any length but zero.
    distance : float or (n,)
    inflation : float or (n,), optional
        Added on every side; the default is max(0.001, 0.01 radius).

    Returns
    -------
    lo, hi
    """
    p0, p1, r = _capsule(capsule)
    step = _units("direction", direction) * _lengths("distance", distance)[..., None]
    _check_rows(p0=p0, direction=step)
    more = np.maximum(0.001, 0.01 * r) if inflation is None else _lengths("inflation", inflation)
    grow = (r + more)[..., None]
    lo = np.minimum(np.minimum(p0, p1), np.minimum(p0 + step, p1 + step)) - grow
    hi = np.maximum(np.maximum(p0, p1), np.maximum(p0 + step, p1 + step)) + grow
    return _out(lo), _out(hi)


# SWEEP 3.3 names STEP_DOWN_HEIGHT without a value: the default step offset of MOVE 1.1.
STEP_DOWN_HEIGHT = 0.5
WINDOW_EPSILON = 0.05
# A direction with at least this vertical part counts as up or down.
STEEP = 0.5


def vertical_window(
    capsule: CapsuleAt,
    direction: ArrayLike,
    distance: ArrayLike,
    step_down: float = STEP_DOWN_HEIGHT,
    epsilon: float = WINDOW_EPSILON,
    up: ArrayLike = Up,
) -> tuple[Any, Any]:
    """Heights (lo, hi) along ``up`` that a sweep can touch (SWEEP 3.3).

    SWEEP extends the window upwards by the motion and downwards by the step only, so a fast fall
    misses the floor. This function extends it by the motion in both directions, and by the step as
    well if the motion points down.
    """
    p0, p1, r = _capsule(capsule)
    u = _units("up", up)
    d = _units("direction", direction)
    rise = _dot(d, u)
    travel = rise * _lengths("distance", distance)
    step = _lengths("step_down", step_down)
    more = _lengths("epsilon", epsilon)
    h0, h1 = _dot(p0, u), _dot(p1, u)
    lo = np.minimum(h0, h1) - r + np.minimum(travel, 0.0) - np.where(rise < -STEEP, step, 0.0) - more
    hi = np.maximum(h0, h1) + r + np.maximum(travel, 0.0) + more
    return _out(lo), _out(hi)


def filter_by_window(triangles: ArrayLike, window: tuple[float, float], up: ArrayLike = Up) -> NDArray[np.bool_]:
    """Return which triangles reach into a vertical window.

    Parameters
    ----------
    triangles : (n, 3, 3)
        Corners.
    window : (lo, hi)
        As from `vertical_window`.
    up : (3,)

    Returns
    -------
    (n,) array of bool
    """
    t = _numbers("triangles", triangles)
    if t.ndim != 3 or t.shape[1:] != (3, 3):
        raise ValueError(f"triangles must have shape (n, 3, 3), got {t.shape}")
    lo, hi = window
    h = _dot(t, _units("up", up))
    return np.asarray((h.max(axis=1) >= lo) & (h.min(axis=1) <= hi))


# ---------------------------------------------------------------- regions (SWEEP 6)

def axis_parameter(capsule: CapsuleAt, point: ArrayLike) -> Any:
    """Parameter of a point on the axis.

    0 at p0, 1 at p1, outside of 0 to 1 beyond them (SWEEP 6.2.2).
    """
    p0, p1, _ = _capsule(capsule)
    p = _vectors("point", point)
    axis = p1 - p0
    l2 = _dot(axis, axis)
    along = _dot(p - p0, axis)
    return _out(np.divide(along, l2, out=np.zeros(np.broadcast(along, l2).shape), where=l2 > 0.0))


def classify_region(capsule: CapsuleAt, point: ArrayLike) -> Any:
    """Region of a capsule by the contact point (SWEEP 6.2).

    Each cap includes one radius of the cylinder. If the radius is more than half the axis, the caps
    meet and SIDE is never returned; use `classify_parameter` for such capsules.

    Returns
    -------
    Region, or (n,) array of their names
    """
    p0, p1, r = _capsule(capsule)
    length = _norm(p1 - p0)
    t = np.asarray(axis_parameter(capsule, point))
    threshold = np.divide(r, length, out=np.zeros(np.broadcast(r, length).shape), where=length > 0.0)
    # The order matters: a point near both ends is at the bottom (SWEEP 6.2.3).
    region = np.where(t < threshold, "bottom", np.where(t > 1.0 - threshold, "top", "side"))
    region = np.where(t > 1.0 + threshold, "top", region)
    region = np.where(length > 0.0, region, "sphere")
    return Region(region.item()) if region.ndim == 0 else region


BOTTOM_PARAMETER = 0.1
TOP_PARAMETER = 0.9


def classify_parameter(t: ArrayLike, bottom: float = BOTTOM_PARAMETER, top: float = TOP_PARAMETER) -> Any:
    """Region of a capsule by the parameter on its axis (SWEEP 6.3).

    Parameters
    ----------
    t : float or (n,)
        As from `axis_parameter`.
    bottom, top : float
        Shares of the axis: the bottom ends at the first one, and the top starts at the second one.

    Returns
    -------
    Region, or (n,) array of their names
    """
    x = _numbers("t", t)
    if not bottom < top:
        raise ValueError(f"bottom must be < top, got {bottom} and {top}")
    region = np.where(x <= bottom, "bottom", np.where(x >= top, "top", "side"))
    return Region(region.item()) if region.ndim == 0 else region


# ---------------------------------------------------------------- normals (SWEEP 7)

def _flip_where(normal: Array, wrong: NDArray[np.bool_]) -> Any:
    return _out(np.where(wrong[..., None], -normal, normal))


def orient_for_sweep(normal: ArrayLike, direction: ArrayLike) -> Any:
    """A surface normal, flipped against the motion (SWEEP 7.1)."""
    n, d = _vectors("normal", normal), _vectors("direction", direction)
    return _flip_where(n, _dot(n, d) > 0.0)


def orient_for_overlap(normal: ArrayLike, capsule: CapsuleAt, point: ArrayLike) -> Any:
    """A surface normal, flipped to point from the geometry to the capsule (SWEEP 7.2).

    Parameters
    ----------
    normal : (3,) or (n, 3)
    capsule : CapsuleAt
    point : (3,) or (n, 3)
        Closest point on the geometry.

    Notes
    -----
    SWEEP measures from the capsule's centre, which flips the normal into the wall near the end of a
    long axis. This function measures from the point of the axis nearest to ``point``. If that point
    is on the axis, the normal stays.
    """
    n, p = _vectors("normal", normal), _vectors("point", point)
    nearest = np.asarray(closest_on_segment(p, capsule.p0, capsule.p1))
    return _flip_where(n, _dot(n, nearest - p) < 0.0)


def orient_for_ground(normal: ArrayLike, up: ArrayLike = Up) -> Any:
    """A ground normal, flipped upwards (SWEEP 7.3); for ground only, see `orient_for_wall`."""
    n, u = _vectors("normal", normal), _vectors("up", up)
    return _flip_where(n, _dot(n, u) < 0.0)


def orient_for_wall(normal: ArrayLike, direction: ArrayLike) -> Any:
    """A normal of a wall or ceiling, flipped against the motion, never upwards (SWEEP 7.4)."""
    return orient_for_sweep(normal, direction)


# ---------------------------------------------------------------- contacts (SWEEP 8, 9)

def sweep_contact_point(
    capsule: CapsuleAt,
    motion: ArrayLike,
    time: ArrayLike,
    target: TriangleAt | SphereAt | CapsuleAt | BoxAt | PlaneAt,
) -> Any:
    """Contact point of a capsule at the time of impact: the closest point on the target.

    SWEEP 8.1.2 derives the point from the normal alone, with a cosine scaled by a length. Along the
    cylinder, a normal does not determine the position of the contact on the axis.

    Parameters
    ----------
    capsule : CapsuleAt
        At the start.
    motion : (3,) or (n, 3)
        Whole displacement.
    time : float or (n,)
        Share of the displacement at impact, 0 to 1.
    target : TriangleAt, SphereAt, CapsuleAt, BoxAt or PlaneAt
    """
    p0, p1, _ = _capsule(capsule)
    step = _vectors("motion", motion) * _lengths("time", time)[..., None]
    a, b = p0 + step, p1 + step
    single = a.ndim == 1
    if isinstance(target, TriangleAt):
        point = kernels.segment_triangle_many(*_pair(a, b), target.a, target.b, target.c).point_b
    elif isinstance(target, SphereAt):
        c = _vectors("centre", target.centre)
        on_axis = np.asarray(closest_on_segment(c, _out(a), _out(b)))
        point = c + _unit_or_zero(on_axis - c) * _lengths("radius", target.radius)[..., None]
    elif isinstance(target, CapsuleAt):
        pair = kernels.segment_segment_many(*_pair(a, b), target.p0, target.p1)
        point = pair.point_b + _unit_or_zero(pair.point_a - pair.point_b) * _lengths("radius", target.radius)[..., None]
    elif isinstance(target, BoxAt):
        frame = Transform(target.position, target.rotation)
        local = _pair(frame.point_to_local(_out(a)), frame.point_to_local(_out(b)))
        pair = kernels.segment_box_many(*local, target.half_extents)
        point = np.asarray(frame.point_to_world(pair.point_b))
    elif isinstance(target, PlaneAt):
        n = _units("normal", target.normal)
        low = np.where((_dot(a, n) <= _dot(b, n))[..., None], a, b)
        point = low - n * (_dot(low, n) - _numbers("offset", target.offset))[..., None]
    else:
        raise TypeError(f"target must be a TriangleAt, SphereAt, CapsuleAt, BoxAt or PlaneAt, "
                        f"not {type(target).__name__}")
    point = np.asarray(point)
    return _out(point[0] if single and point.ndim == 2 and point.shape[0] == 1 else point)


def _pair(a: Any, b: Any) -> tuple[Array, Array]:
    return np.atleast_2d(np.asarray(a)), np.atleast_2d(np.asarray(b))


def overlap_contact_point(closest_on_geometry: ArrayLike) -> Any:
    """The contact point of an overlap is the closest point on the geometry (SWEEP 8.2)."""
    return _out(_vectors("closest_on_geometry", closest_on_geometry))


def penetration_depth(radius: ArrayLike, on_axis: ArrayLike, on_geometry: ArrayLike) -> Any:
    """Penetration depth of a capsule, from the closest points.

    0 without a penetration (SWEEP 9.1).
    """
    r = _lengths("radius", radius, strict=True)
    gap = _norm(_vectors("on_geometry", on_geometry) - _vectors("on_axis", on_axis))
    return _out(np.maximum(r - gap, 0.0))


def scale_depth(depth: ArrayLike, direction: ArrayLike, scale: ArrayLike) -> Any:
    """World depth of a depth that was measured in the frame of scaled geometry (SWEEP 9.2).

    Parameters
    ----------
    depth : float or (n,)
        Along ``direction``, in the geometry's frame.
    direction : (3,) or (n, 3)
        In the geometry's frame.
    scale : float, (3,) or (n, 3)
        Factors along its axes.

    Notes
    -----
    SWEEP multiplies by one factor, which fails for uneven and for negative scale: the world length
    depends on the direction and is never negative.
    """
    d = _numbers("depth", depth)
    s = _numbers("scale", scale)
    s = _vectors("scale", np.broadcast_to(s, (3,)) if s.ndim == 0 else s)
    return _out(d * _norm(_units("direction", direction) * s))


# ---------------------------------------------------------------- frames (SWEEP 12)

class Transform(NamedTuple):
    """A scaled, rotated and translated frame (SWEEP 12).

    world = position + rotation * (scale * local).

    Scale may be uneven and negative, never zero. Directions follow the scale, and normals follow
    its inverse transpose; with uneven scale both differ.

    Parameters
    ----------
    position : (3,)
    rotation : (4,)
        Unit quaternion (x, y, z, w).
    scale : (3,) or float
    """

    position: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (0.0, 0.0, 0.0, 1.0)
    scale: ArrayLike = (1.0, 1.0, 1.0)

    def _parts(self) -> tuple[Array, Array, Array]:
        p = _vectors("position", self.position)
        q = _vectors("rotation", self.rotation, 4)
        s = np.broadcast_to(_numbers("scale", self.scale), (3,))
        if p.ndim != 1 or q.ndim != 1:
            raise ValueError("a Transform has one position and one rotation")
        if (s == 0.0).any():
            raise ValueError(f"scale must not be zero on any axis, got {tuple(s.tolist())}")
        m = np.sqrt((q * q).sum())
        if abs(m - 1.0) > kernels.UNIT_TOLERANCE:
            raise ValueError(f"rotation must be a unit quaternion, its length is {m}")
        x, y, z, w = (q / m).tolist()
        r = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])
        return p, r, s

    def matrix(self) -> Array:
        """The (4, 4) matrix from local column vectors to world ones."""
        p, r, s = self._parts()
        m = np.eye(4)
        m[:3, :3] = r * s
        m[:3, 3] = p
        return m

    def point_to_world(self, local: ArrayLike) -> Any:
        """World point of a local point (SWEEP 12.2)."""
        p, r, s = self._parts()
        return _out(_turn(r, _vectors("local", local) * s) + p)

    def point_to_local(self, world: ArrayLike) -> Any:
        """Local point of a world point (SWEEP 12.1)."""
        p, r, s = self._parts()
        return _out(_turn(r.T, _vectors("world", world) - p) / s)

    def direction_to_world(self, local: ArrayLike) -> Any:
        """A direction or displacement with its length scaled (SWEEP 12.3)."""
        _, r, s = self._parts()
        return _out(_turn(r, _vectors("local", local) * s))

    def direction_to_local(self, world: ArrayLike) -> Any:
        """The inverse of `direction_to_world` (SWEEP 12.3)."""
        _, r, s = self._parts()
        return _out(_turn(r.T, _vectors("world", world)) / s)

    def normal_to_world(self, local: ArrayLike) -> Any:
        """A unit normal, by the inverse transpose (SWEEP 12.4).

        Outward stays outward in mirrors.
        """
        _, r, s = self._parts()
        return _out(_unit_or_zero(_turn(r, _vectors("local", local) / s)))

    def normal_to_local(self, world: ArrayLike) -> Any:
        """The inverse of `normal_to_world`."""
        _, r, s = self._parts()
        return _out(_unit_or_zero(_turn(r.T, _vectors("world", world)) * s))


def _turn(r: Array, v: Array) -> Array:
    return np.stack([_dot(v, r[0]), _dot(v, r[1]), _dot(v, r[2])], axis=-1)


def wow_to_world(v: ArrayLike) -> Any:
    """Convert X north, Y west, Z up to X east, Y north, Z up (SWEEP 12.5)."""
    a = _vectors("v", v)
    return _out(np.stack([-a[..., 1], a[..., 0], a[..., 2]], axis=-1))


def world_to_wow(v: ArrayLike) -> Any:
    """Convert X east, Y north, Z up to X north, Y west, Z up (SWEEP 12.5)."""
    a = _vectors("v", v)
    return _out(np.stack([a[..., 1], -a[..., 0], a[..., 2]], axis=-1))


# ---------------------------------------------------------------- triangles (SWEEP appendix A)

def closest_on_segment(point: ArrayLike, a: ArrayLike, b: ArrayLike) -> Any:
    """Closest point on a segment (SWEEP A.2); ``a`` if the segment has no length.

    SWEEP compares the length with a squared one.
    """
    p, x, y = _vectors("point", point), _vectors("a", a), _vectors("b", b)
    _check_rows(point=p, a=x, b=y)
    if p.ndim == x.ndim == y.ndim == 1:
        return kernels.point_segment(p, x, y).point_b
    return kernels.point_segment_many(p, x, y).point_b


def triangle_normal(a: ArrayLike, b: ArrayLike, c: ArrayLike, degenerate: ArrayLike = (0.0, 0.0, 0.0)) -> Any:
    """Unit normal of a triangle; a, b, c run counter-clockwise seen from its front (SWEEP A.3).

    Parameters
    ----------
    a, b, c : (3,) or (n, 3)
    degenerate : (3,)
        Result for a triangle without area, whose cross product is at most 1e-12 times its longest
        edge squared. SWEEP returns (0, 0, 1), which is a floor; zero is safer.
    """
    x, y, z = _vectors("a", a), _vectors("b", b), _vectors("c", c)
    _check_rows(a=x, b=y, c=z)
    rows = np.broadcast_arrays(*np.broadcast_arrays(x, y, z))
    normal = triangle_normals(*(np.ascontiguousarray(np.atleast_2d(r)) for r in rows))
    normal[~normal.any(axis=1)] = _vectors("degenerate", degenerate)
    return _out(normal[0] if rows[0].ndim == 1 else normal)


def point_in_triangle(point: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Any:
    """Whether the projection of a point along the normal is inside a triangle (SWEEP A.1).

    Edges are included. The result is False for a triangle without area, where SWEEP divides by
    zero.
    """
    p, x, y, z = _vectors("point", point), _vectors("a", a), _vectors("b", b), _vectors("c", c)
    _check_rows(point=p, a=x, b=y, c=z)
    n = np.asarray(triangle_normal(x, y, z))
    inside = (
        (_dot(np.cross(y - x, p - x), n) >= 0.0)
        & (_dot(np.cross(z - y, p - y), n) >= 0.0)
        & (_dot(np.cross(x - z, p - z), n) >= 0.0)
        & (_dot(n, n) > 0.0)
    )
    return _out(inside)


def plane_distance(point: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Any:
    """Signed distance of a point from a triangle's plane, positive in front (SWEEP A.4)."""
    p, x = _vectors("point", point), _vectors("a", a)
    return _out(_dot(p - x, np.asarray(triangle_normal(a, b, c))))


# ---------------------------------------------------------------- tolerances (MOVE 1.2)

EPSILON_DISTANCE = 1e-6


def same_distance(a: ArrayLike, b: ArrayLike, tolerance: float = EPSILON_DISTANCE) -> Any:
    """Whether two distances are the same."""
    return _out(np.abs(_numbers("a", a) - _numbers("b", b)) <= tolerance)


EPSILON_NORMAL = 1e-5


def is_normal(v: ArrayLike, tolerance: float = EPSILON_NORMAL) -> Any:
    """Whether a vector has length 1."""
    return _out(np.abs(_norm(_vectors("v", v)) - 1.0) <= tolerance)


EPSILON_DOT = 1e-4


def is_facing(a: ArrayLike, b: ArrayLike, tolerance: float = EPSILON_DOT) -> Any:
    """Whether two unit vectors oppose each other.

    Their dot product is below 0 by more than rounding.
    """
    return _out(_dot(_units("a", a), _units("b", b)) < -tolerance)


NEAR_PARALLEL = 0.999


def is_parallel(a: ArrayLike, b: ArrayLike, tolerance: float = NEAR_PARALLEL) -> Any:
    """Whether two directions are parallel, in either sense."""
    return _out(np.abs(_dot(_units("a", a), _units("b", b))) >= tolerance)


NEAR_PERPENDICULAR = 0.001


def is_perpendicular(a: ArrayLike, b: ArrayLike, tolerance: float = NEAR_PERPENDICULAR) -> Any:
    """Whether two directions are perpendicular."""
    return _out(np.abs(_dot(_units("a", a), _units("b", b))) <= tolerance)


def sine(x: float) -> float:
    """Sine of an angle, the same bits on every machine.

    Parameters
    ----------
    x : float
        Radians. The error is below 1e-15 up to 1e6; larger angles are first taken modulo the double
        that is closest to 2 pi.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `x` is not a finite number.
    """
    return trigonometry.sine(as_float(x, "x"))


def cosine(x: float) -> float:
    """Cosine of an angle, with the accuracy of `sine`.

    Parameters
    ----------
    x : float
        Radians.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `x` is not a finite number.
    """
    return trigonometry.cosine(as_float(x, "x"))


def arc(y: float, x: float) -> float:
    """Angle of the point (x, y), the same bits on every machine.

    Parameters
    ----------
    y, x : float
        The origin has angle 0, and -0.0 counts as 0.0.

    Returns
    -------
    float
        Radians, -pi to pi. The error is below 1e-15.

    Raises
    ------
    TypeError, ValueError
        If `y` or `x` is not a finite number.
    """
    return trigonometry.arc(as_float(y, "y"), as_float(x, "x"))
