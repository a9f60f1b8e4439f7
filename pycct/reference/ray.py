"""Rays against shapes, and the first object that a ray meets. Twin of `pycct.geometry.ray`."""

from functools import cmp_to_key
from math import sqrt
from typing import NamedTuple

from pycct.reference.candidates import SURFACES
from pycct.reference.closest import point_segment
from pycct.reference.shapes import Box, ConvexHull
from pycct.reference.types import BOX, CAPSULE, PLANE, SPHERE
from pycct.reference.vec import (
    ZERO,
    add,
    dot,
    len2,
    length,
    lex,
    madd,
    max_abs,
    mul,
    neg,
    q_rotate,
    q_unrotate,
    scale,
    sub,
    vabs,
)


class RayHit(NamedTuple):
    """What a ray meets on one object."""

    distance: float
    overlapping: bool
    normal: tuple
    point: tuple
    face: object  # Face of a surface, or None
    facing: float
    corners: tuple  # order of hits at the same distance
    part: int  # 0 static, 1 moving, 2 characters
    item: object


def direction_of(v):
    """Unit vector of any vector but zero, scaled first."""
    m = max_abs(v)
    v = (v[0] / m, v[1] / m, v[2] / m)
    m = length(v)
    return (v[0] / m, v[1] / m, v[2] / m)


def ray_triangle(origin, d, t, two_sided):
    """Return (distance, whether the back is hit), or None.

    The corners are projected along the ray onto the plane across its largest axis.
    """
    m = vabs(d)
    kz = 0 if m[0] >= m[1] and m[0] >= m[2] else (1 if m[1] >= m[2] else 2)
    kx, ky = (kz + 1) % 3, (kz + 2) % 3
    # The projected corners keep their sense of rotation, seen along the ray.
    if d[kz] < 0.0:
        kx, ky = ky, kx
    sx, sy = d[kx] / d[kz], d[ky] / d[kz]
    a, b, c = sub(t.a, origin), sub(t.b, origin), sub(t.c, origin)
    ax, ay = a[kx] - sx * a[kz], a[ky] - sy * a[kz]
    bx, by = b[kx] - sx * b[kz], b[ky] - sy * b[kz]
    cx, cy = c[kx] - sx * c[kz], c[ky] - sy * c[kz]
    u, v, w = bx * cy - by * cx, cx * ay - cy * ax, ax * by - ay * bx
    total = u + v + w
    if total == 0.0:
        return None
    back = total > 0.0
    if back:
        if not two_sided or u < 0.0 or v < 0.0 or w < 0.0:
            return None
    elif u > 0.0 or v > 0.0 or w > 0.0:
        return None
    # The plane is more exact, unless the triangle is so thin that its normal and its projection
    # face opposite ways.
    nd = dot(t.n, d)
    if nd != 0.0 and (nd > 0.0) == back:
        distance = dot(t.n, a) / nd
    else:
        distance = (u * a[kz] + v * b[kz] + w * c[kz]) / total / d[kz]
    return (distance, back) if distance >= 0.0 else None


def ray_capsule(origin, d, a, b, radius):
    """Return (distance, normal, whether the ray starts inside), or None."""
    if point_segment(origin, a, b).dist2 < radius * radius:
        return 0.0, neg(d), True
    best = normal = None
    e, m = sub(b, a), sub(origin, a)
    l2 = len2(e)
    # The side of the cylinder, if the ray enters it between the ends.
    if l2 > 0.0:
        across = madd(d, e, -dot(d, e) / l2)
        k = len2(across)
        if k > 1e-18:
            start = madd(m, e, -dot(m, e) / l2)
            nearest = -dot(start, across) / k
            disc = radius * radius - len2(madd(start, across, nearest))
            if disc > 0.0:
                distance = nearest - sqrt(disc / k)
                if distance >= 0.0 and 0.0 <= dot(m, e) + dot(d, e) * distance <= l2:
                    w = madd(start, across, distance)
                    best, normal = distance, scale(w, 1.0 / sqrt(len2(w)))
    for end in (a, b):
        m = sub(origin, end)
        nearest = -dot(m, d)
        if nearest <= 0.0:
            continue
        disc = radius * radius - len2(madd(m, d, nearest))
        if disc <= 0.0:
            continue
        distance = nearest - sqrt(disc)
        if distance >= 0.0 and (best is None or distance < best):
            w = madd(m, d, distance)
            best, normal = distance, scale(w, 1.0 / sqrt(len2(w)))
    return None if best is None else (best, normal, False)


def ray_box(origin, d, low, high):
    """Return (distance, normal, whether it starts inside) for the box [low, high], or None."""
    if all(lo < x < hi for lo, x, hi in zip(low, origin, high, strict=True)):
        return 0.0, neg(d), True
    enter, leave, face = -1e300, 1e300, 0
    for i in range(3):
        if d[i] == 0.0:
            if origin[i] < low[i] or origin[i] > high[i]:
                return None
            continue
        near, far = (low[i] - origin[i]) / d[i], (high[i] - origin[i]) / d[i]
        if d[i] < 0.0:
            near, far = far, near
        if near > enter:
            enter, face = near, i
        if far < leave:
            leave = far
    if not 0.0 <= enter <= leave:
        return None
    normal = [0.0, 0.0, 0.0]
    normal[face] = -1.0 if d[face] > 0.0 else 1.0
    return enter, tuple(normal), False


def ray_polytope(origin, d, faces):
    """Return (distance, normal, whether the ray starts inside) for a closed surface, or None."""
    enter, leave, normal = -1e300, 1e300, neg(d)
    within = bool(faces)
    for t in faces:
        h, nd = dot(t.n, sub(origin, t.a)), dot(t.n, d)
        if h >= 0.0:
            within = False
            if nd > 0.0 or (nd == 0.0 and h > 0.0):
                return None
        if nd < 0.0:
            if h / -nd > enter:
                enter, normal = h / -nd, t.n
        elif nd > 0.0 and -h / nd < leave:
            leave = -h / nd
    if within:
        return 0.0, neg(d), True
    return (enter, normal, False) if 0.0 <= enter <= leave else None


def _solid(item, origin, d):
    """Return (distance, normal, whether the ray starts inside) for a solid, or None."""
    if item.kind in (SPHERE, CAPSULE):
        # A hull that is a segment or a point has no surface.
        return ray_capsule(origin, d, item.q0, item.q1, item.radius)
    if item.kind == PLANE:
        h, nd = dot(item.normal, origin) - item.offset, dot(item.normal, d)
        if h < 0.0:
            return 0.0, neg(d), True
        return (h / -nd, item.normal, False) if nd < 0.0 else None
    if item.kind == BOX or isinstance(item.shape, Box):
        half = mul(item.shape.half_extents, vabs(item.scale))
        q = item.rotation
        if q[:3] == ZERO:
            # The faces are where the triangles of the box are, so that a ray in a face stays in it.
            found = ray_box(origin, d, sub(item.position, half), add(item.position, half))
        else:
            found = ray_box(q_unrotate(q, sub(origin, item.position)), q_unrotate(q, d), neg(half), half)
        if found is None or found[2]:
            return None if found is None else (0.0, neg(d), True)
        return found[0], q_rotate(q, found[1]), False
    faces = [t for t, _ in item.all_faces()]
    if not item.flat:
        return ray_polytope(origin, d, faces)
    best = None
    for t in faces:
        found = ray_triangle(origin, d, t, False)
        if found is not None and (best is None or found[0] < best[0]):
            best = (found[0], t.n, False)
    return best


def _hits(item, part, origin, d, mask):
    """Yield the hits of one object."""
    shape = item.shape
    solid = item.kind in (SPHERE, CAPSULE, PLANE, BOX) or isinstance(shape, (Box, ConvexHull))
    if not solid:
        layers = shape._mask if isinstance(shape, SURFACES) else None
        for t, _ in item.all_faces():
            if layers is not None and not layers[t.source] & mask:
                continue
            found = ray_triangle(origin, d, t, item.two_sided)
            if found is not None:
                time, back = found
                yield RayHit(time, False, neg(t.n) if back else t.n, madd(origin, d, time), t, abs(dot(t.n, d)),
                             (t.a, t.b, t.c), part, item)
        return
    found = _solid(item, origin, d)
    if found is not None:
        time, normal, inside = found
        point = madd(origin, d, time)
        yield RayHit(time, inside, normal, point, None, abs(dot(normal, d)), (point, normal, ZERO), part, item)


def _before(x, y):
    """Whether x is the better hit: nearer, from within, facing the ray more, smaller corners."""
    if x.distance != y.distance:
        return x.distance < y.distance
    if x.overlapping != y.overlapping:
        return x.overlapping
    if x.facing != y.facing:
        return x.facing > y.facing
    for p, q in zip(x.corners, y.corners, strict=True):
        k = lex(p, q)
        if k != 0:
            return k < 0
    if x.part != y.part:
        return x.part < y.part
    if x.item.id != y.item.id:
        return x.item.id < y.item.id
    return (-1 if x.face is None else x.face.source) < (-1 if y.face is None else y.face.source)


def all_hits(items, origin, d, reach, mask):
    """Return all hits of a ray along the unit vector d among (part, item), the nearest first."""
    found = []
    for part, item in items:
        if item.layer & mask:
            found += [hit for hit in _hits(item, part, origin, d, mask) if hit.distance <= reach]
    return sorted(found, key=cmp_to_key(lambda x, y: -1 if _before(x, y) else int(_before(y, x))))


def first_hit(items, origin, d, reach, mask):
    """Return the first hit of a ray along the unit vector d among (part, item), or None."""
    best = None
    for part, item in items:
        if not item.layer & mask:
            continue
        for hit in _hits(item, part, origin, d, mask):
            if hit.distance <= reach and (best is None or _before(hit, best)):
                best = hit
    return best
