"""Time of impact of spheres and capsules: linear and quadratic equations, no iteration (RULES 3).

A capsule is given by its sphere centres p0, p1 and its radius. It moves along the unit vector
``dir``. Times are distances along ``dir``; ``NO_HIT`` means no contact within ``limit``.

The positions at which a capsule touches a triangle form the triangle swept along the capsule's axis
(a prism), inflated by the radius. A capsule's time of impact is therefore that of a sphere at the
capsule's first centre against the prism's faces, edges and vertices (SWEEP 4.2 to 4.4 move only one
point of the axis and miss contacts).
"""

from math import sqrt
from typing import NamedTuple

from pycct.reference.closest import point_segment, segment_box, segment_segment, segment_triangle
from pycct.reference.tolerances import COORDINATE_ROUNDING, FACING_TIE, PARALLEL2
from pycct.reference.vec import (
    add,
    cross,
    dot,
    f_max,
    f_min,
    is_zero,
    len2,
    length,
    lex,
    madd,
    max_abs,
    neg,
    q_rotate,
    q_unrotate,
    scale,
    sub,
    unit,
)

NO_HIT = 1e300
# A motion that passes less than half of this times the radius below the surface is no hit: rolling
# exactly along an edge must not stop at every rounding error.
GRAZE = 1e-12
# Overlaps up to this share of the radius, and up to the rounding of the coordinates, are touches.
TOUCH = 1e-9
# Squared sine below which the cross product of two edges has lost too many digits.
NARROW2 = 1e-6
# Over a face at a smaller slope, a sphere can pass an edge within GRAZE, or within the rounding of
# a distant start, and still sink into the surface behind it.
SHALLOW = 1e-3

# A candidate is a triangle touched at most this (times max(1, distance)) after the first one of its
# shape (RULES 3).
CANDIDATE_WINDOW = 1e-3
# Distance behind the leading sphere's surface up to which triangles count if the axis is parallel
# to the motion (RULES 3).
TRAILING_SLACK = 0.002
# Distance from the path of the leading sphere beyond which such a motion ignores a triangle
# (RULES_2 7).
LEAD_SLACK = 1e-4
# Below this distance, closest points define no direction, and the triangle's normal is used (RULES
# 3).
SHORTEST_NORMAL = 1e-3
# ... or, of exact casts, than this share of the radius.
SHORTEST_SHARE = 1e-3
# A triangle is nearer than another one if its squared distance is below this share of the other.
SURELY_NEARER = 1.0 - 1e-9
# Exact casts touch two triangles at once within these shares of the way and the coordinates:
# rounding.
SAME_TIME = 1e-12
SAME_PLACE = 1e-15


class Face(NamedTuple):
    """A triangle in world space, counter-clockwise seen from outside."""

    a: tuple
    b: tuple
    c: tuple
    n: tuple  # unit normal
    d: float  # dot(n, a)
    source: int  # the user's index in the mesh, -1: none


class SweepHit(NamedTuple):
    """Result of a sweep."""

    distance: float  # along the direction; 0 for an overlap
    overlapping: bool  # closer than the radius at the start
    normal: tuple  # unit, out of the shape; against the direction for an overlap
    point: tuple  # on the surface of the shape
    face: Face | None
    by_rim: bool = False  # only CapsuleCast.meets_rims or meets_back_rims makes it a hit


class CapsuleCast(NamedTuple):
    """A capsule in motion."""

    p0: tuple
    p1: tuple
    dir: tuple
    radius: float
    limit: float  # longest distance of interest
    lead: float  # dot(leading sphere's centre, dir)
    parallel: bool  # the axis is parallel to the motion, or has no length
    trailing_rule: bool  # ignore triangles behind the leading sphere (moves yes, queries no)
    culls: bool  # ignore triangles whose normal points along the motion
    culls_parallel: bool  # also those perpendicular to the motion (RULES 9 row 8)
    inside: float  # a nearer axis overlaps: the radius, minus rounding
    # For Rules.FIX_BACK_FACES. Not None: overlaps with one-sided triangles from behind are ignored,
    # and the set records them: "overlap", or "back" for an overlap with a culled triangle.
    passed: set | None = None
    passing: bool = False  # all overlaps are passed over
    exact: bool = False  # the triangle that is touched first decides, not one that faces more and is touched soon after
    keeps_parallel: bool = False  # open triangles count as parallel to the motion whatever the rounding
    meets_rims: bool = False  # triangles whose planes are parallel to axis and motion are met by their edges
    meets_back_rims: bool = False  # culled triangles that the centre is in front of are met by their open edges


def inside_radius(p0, p1, radius):
    """The distance below which an axis overlaps.

    Exact touch does not, despite rounding (RULES 3, 5).
    """
    return f_max(0.0, radius * (1.0 - TOUCH) - COORDINATE_ROUNDING * f_max(max_abs(p0), max_abs(p1)))


def capsule_cast(p0, p1, radius, direction, limit, trailing_rule, culls):
    """A moving capsule, with the test whether its axis is parallel to the motion (RULES 3)."""
    axis = sub(p1, p0)
    axis2 = len2(axis)
    lead = f_max(dot(p0, direction), dot(p1, direction))
    parallel = axis2 <= 0.0 or len2(cross(axis, direction)) <= PARALLEL2 * axis2
    inside = inside_radius(p0, p1, radius)
    return CapsuleCast(p0, p1, direction, radius, limit, lead, parallel, trailing_rule, culls, False, inside)


def exact_cast(p0, p1, radius, direction, limit):
    """As queries cast: no rule of moves, what is touched first and nothing else."""
    cast = capsule_cast(p0, p1, radius, direction, limit, False, True)
    return cast._replace(exact=True, meets_rims=True, keeps_parallel=True)


# --- spheres ------------------------------------------------------------------


def sphere_point(centre, direction, radius, p, limit):
    """Sphere against a point. A start inside returns 0 if it moves further in, else NO_HIT.

    The equation is solved about the point of closest approach, where its terms are no larger than
    the radius, so distant starts cost no digits. (SWEEP 4.3.5 falls back to the later root, the
    time at which an overlap ends: RULES 9.)
    """
    m = sub(centre, p)
    nearest = -dot(m, direction)
    if nearest <= 0.0:
        return NO_HIT
    w = madd(m, direction, nearest)
    disc = radius * radius - len2(w)
    if disc <= GRAZE * radius * radius:
        return NO_HIT
    t = nearest - sqrt(disc)
    if t < 0.0:
        t = 0.0
    return t if t <= limit else NO_HIT


def sphere_segment(centre, direction, radius, a, b, limit):
    """Sphere against a segment with its ends."""
    e = sub(b, a)
    l2 = len2(e)
    if l2 <= 0.0:
        return sphere_point(centre, direction, radius, a, limit)
    m = sub(centre, a)
    de = dot(direction, e)
    me = dot(m, e)
    d_perp = madd(direction, e, -de / l2)
    k = len2(d_perp)
    if k <= PARALLEL2:
        t = sphere_point(centre, direction, radius, a, limit)
        u = sphere_point(centre, direction, radius, b, limit)
        return t if t < u else u
    m_perp = madd(m, e, -me / l2)
    nearest = -dot(m_perp, d_perp) / k
    w = madd(m_perp, d_perp, nearest)
    disc = radius * radius - len2(w)
    if disc <= GRAZE * radius * radius:
        return NO_HIT
    t = len2(m_perp) - radius * radius
    inside = t < 0.0
    if inside:
        t = 0.0
    elif nearest <= 0.0:
        return NO_HIT
    else:
        # nearest - sqrt(disc / k), without the loss of digits at a shallow angle.
        t = t / (nearest * k + sqrt(disc * k))
        if t > limit:
            return NO_HIT
    # Position on the segment where the endless cylinder is entered. Beyond an end only the sphere
    # about that end can be hit first.
    s = me + de * t
    if s < 0.0:
        u = sphere_point(centre, direction, radius, a, limit)
        s = -me
    elif s > l2:
        u = sphere_point(centre, direction, radius, b, limit)
        s = l2 - me
    elif inside and nearest <= 0.0:
        return NO_HIT
    else:
        return t
    if u < NO_HIT or s * de <= 0.0:
        return u
    # The motion passed the end within GRAZE and may still sink into the cylinder.
    s = s / de
    return s if t < s < nearest and s <= limit else NO_HIT


def _entry(x, rate, high):
    """Time from which on x, growing by rate, is in [0, high]; NO_HIT: never."""
    if x < 0.0:
        return -x / rate if rate > 0.0 else NO_HIT
    if x > high:
        return (high - x) / rate if rate < 0.0 else NO_HIT
    return 0.0


def _exit(x, rate, high):
    """Time after which x, growing by rate, is not in [0, high] any more."""
    if rate > 0.0:
        return (high - x) / rate
    return -x / rate if rate < 0.0 else NO_HIT


def _face_entry(direction, t, x, y, z):
    """Time until a point is over a triangle; NO_HIT: never.

    x, y, z: distance of the point inside of its edges, times their lengths.
    """
    dx = dot(cross(sub(t.b, t.a), direction), t.n)
    dy = dot(cross(sub(t.c, t.b), direction), t.n)
    dz = dot(cross(sub(t.a, t.c), direction), t.n)
    late = f_max(_entry(x, dx, NO_HIT), f_max(_entry(y, dy, NO_HIT), _entry(z, dz, NO_HIT)))
    if late > _exit(x, dx, NO_HIT) or late > _exit(y, dy, NO_HIT) or late > _exit(z, dz, NO_HIT):
        return NO_HIT
    return late


def _sphere_face(centre, direction, radius, t, h, nd, limit):
    """Sphere against the front of a triangle's inside; h: height of the centre, nd = dot(n, dir).

    If the sphere sinks below the plane beside the face and slips over it within SHALLOW, the time
    is that of reaching the face; the edges return the exact time, if any.
    """
    if nd >= 0.0 or h < 0.0:
        return NO_HIT
    distance = (h - radius) / -nd
    if distance < 0.0:
        distance = 0.0
    if distance > limit:
        return NO_HIT
    q = madd(centre, direction, distance)
    x = dot(cross(sub(t.b, t.a), sub(q, t.a)), t.n)
    y = dot(cross(sub(t.c, t.b), sub(q, t.b)), t.n)
    z = dot(cross(sub(t.a, t.c), sub(q, t.c)), t.n)
    if x >= 0.0 and y >= 0.0 and z >= 0.0:
        return distance
    if nd < -SHALLOW:
        return NO_HIT
    distance += _face_entry(direction, t, x, y, z)
    return distance if distance <= limit and h + nd * distance > -radius else NO_HIT


def _sphere_edges(centre, direction, radius, t, limit):
    """Sphere against the three edges of a triangle."""
    best = sphere_segment(centre, direction, radius, t.a, t.b, limit)
    distance = sphere_segment(centre, direction, radius, t.b, t.c, f_min(best, limit))
    if distance < best:
        best = distance
    distance = sphere_segment(centre, direction, radius, t.c, t.a, f_min(best, limit))
    return distance if distance < best else best


def _sphere_parallelogram(centre, direction, radius, corner, e, axis, limit):
    """Sphere against the inside of the face corner + alpha e - beta axis, from either side."""
    m = cross(e, axis)
    m2 = len2(m)
    e2 = len2(e)
    whole2 = e2 * len2(axis)
    if m2 <= PARALLEL2 * whole2 or m2 == 0.0:
        return NO_HIT
    if m2 < NARROW2 * whole2:
        # Exactly perpendicular to e, however narrow the face.
        m = cross(e, madd(axis, e, -dot(axis, e) / e2))
        m2 = len2(m)
    size = sqrt(m2)
    h = dot(m, sub(centre, corner)) / size
    nd = dot(m, direction) / size
    if h < 0.0:
        if nd <= 0.0:
            return NO_HIT
        distance = (-h - radius) / nd
    else:
        if nd >= 0.0:
            return NO_HIT
        distance = (h - radius) / -nd
    if distance < 0.0:
        distance = 0.0
    if distance > limit:
        return NO_HIT
    rel = sub(madd(centre, direction, distance), corner)
    # Solving rel = alpha e - beta axis + gamma m for alpha and beta, times m2.
    x = dot(cross(rel, axis), m)
    y = dot(cross(rel, e), m)
    if 0.0 <= x <= m2 and 0.0 <= y <= m2:
        return distance
    if abs(nd) > SHALLOW:
        return NO_HIT
    # As for a triangle, see _sphere_face.
    dx = dot(cross(direction, axis), m)
    dy = dot(cross(direction, e), m)
    late = f_max(_entry(x, dx, m2), _entry(y, dy, m2))
    if late > _exit(x, dx, m2) or late > _exit(y, dy, m2):
        return NO_HIT
    distance += late
    return distance if distance <= limit and abs(h) - abs(nd) * distance > -radius else NO_HIT


# --- capsules -----------------------------------------------------------------


def capsule_segment_time(p0, p1, radius, direction, a, b, limit):
    """Capsule against a segment with its ends (the axis of another capsule)."""
    axis = sub(p1, p0)
    best = _sphere_parallelogram(p0, direction, radius, a, sub(b, a), axis, limit)
    for centre, start, end in ((p0, a, b), (p1, a, b), (p0, a, sub(a, axis)), (p0, b, sub(b, axis))):
        distance = sphere_segment(centre, direction, radius, start, end, f_min(best, limit))
        if distance < best:
            best = distance
    return best


def capsule_triangle_time(p0, p1, radius, direction, t, limit):
    """Capsule against one triangle; no culling, no overlap test (RULES 3)."""
    axis = sub(p1, p0)
    axis2 = len2(axis)
    nd = dot(t.n, direction)
    h0 = dot(sub(p0, t.a), t.n)
    h1 = dot(sub(p1, t.a), t.n)
    low = f_min(h0, h1)
    # The triangle cannot be touched before its plane.
    if low >= radius:
        if nd >= 0.0 or low - radius > -nd * limit:
            return NO_HIT
    elif f_max(h0, h1) <= -radius and nd <= 0.0:
        return NO_HIT
    if axis2 <= 0.0 or len2(cross(axis, direction)) <= PARALLEL2 * axis2:
        # The leading end sphere passes every point that the rest passes.
        if dot(axis, direction) > 0.0:
            lead, h = p1, h1
        else:
            lead, h = p0, h0
        best = _sphere_face(lead, direction, radius, t, h, nd, limit)
        if best < NO_HIT and h >= radius and best <= (h - radius) / -nd:
            return best
        distance = _sphere_edges(lead, direction, radius, t, f_min(best, limit))
        return distance if distance < best else best
    # The two ends of the prism: the lower first.
    if h0 <= h1:
        lower, h_lower, upper, h_upper = p0, h0, p1, h1
    else:
        lower, h_lower, upper, h_upper = p1, h1, p0, h0
    best = _sphere_face(lower, direction, radius, t, h_lower, nd, limit)
    if best < NO_HIT and low >= radius and best <= (low - radius) / -nd:
        return best  # hit at the plane: no earlier contact is possible
    distance = _sphere_face(upper, direction, radius, t, h_upper, nd, f_min(best, limit))
    if distance < best:
        best = distance
    if best < NO_HIT and low >= radius and best <= (low - radius) / -nd:
        return best
    # The sides of the prism, then the edges of its two ends, then those between.
    for corner, end in ((t.a, t.b), (t.b, t.c), (t.c, t.a)):
        distance = _sphere_parallelogram(p0, direction, radius, corner, sub(end, corner), axis, f_min(best, limit))
        if distance < best:
            best = distance
    for centre in (p0, p1):
        distance = _sphere_edges(centre, direction, radius, t, f_min(best, limit))
        if distance < best:
            best = distance
    for corner in (t.a, t.b, t.c):
        distance = sphere_segment(p0, direction, radius, corner, sub(corner, axis), f_min(best, limit))
        if distance < best:
            best = distance
    return best


def _away(near, direction):
    """Unit vector from the second closest point to the first; -direction if both are equal."""
    if near.dist2 <= 0.0:
        return neg(direction)
    return scale(sub(near.on_a, near.on_b), 1.0 / sqrt(near.dist2))


def _sphere_box_face(centre, direction, radius, half, i, limit):
    """Sphere against the inside of the face across axis i that faces the motion.

    As _sphere_face.
    """
    j = (i + 1) % 3
    k = (i + 2) % 3
    nd = abs(direction[i])
    dj = direction[j]
    dk = direction[k]
    h = (centre[i] if direction[i] < 0.0 else -centre[i]) - half[i]
    if h < 0.0:
        return NO_HIT
    distance = (h - radius) / nd
    if distance < 0.0:
        distance = 0.0
    if distance > limit:
        return NO_HIT
    x = centre[j] + dj * distance + half[j]
    y = centre[k] + dk * distance + half[k]
    if 0.0 <= x <= 2.0 * half[j] and 0.0 <= y <= 2.0 * half[k]:
        return distance
    if nd > SHALLOW:
        return NO_HIT
    late = f_max(_entry(x, dj, 2.0 * half[j]), _entry(y, dk, 2.0 * half[k]))
    if late > _exit(x, dj, 2.0 * half[j]) or late > _exit(y, dk, 2.0 * half[k]):
        return NO_HIT
    distance += late
    return distance if distance <= limit and h - nd * distance > -radius else NO_HIT


def _capsule_box_time(p0, p1, radius, direction, half, limit):
    """In the frame of the box, with the capsule outside of it."""
    # The box cannot be touched before each of the planes that face the motion. If the last of them
    # is hit inside its face, that is the result.
    latest = 0.0
    face = -1
    for i in range(3):
        d = direction[i]
        if d < 0.0:
            low = f_min(p0[i], p1[i]) - half[i] - radius
        elif d > 0.0:
            low = -f_max(p0[i], p1[i]) - half[i] - radius
        else:
            if f_min(p0[i], p1[i]) - half[i] >= radius or f_max(p0[i], p1[i]) + half[i] <= -radius:
                return NO_HIT
            continue
        if low >= 0.0:
            distance = low / abs(d)
            if distance > limit:
                return NO_HIT
            if distance >= latest:
                latest = distance
                face = i
    if face >= 0:
        j = (face + 1) % 3
        k = (face + 2) % 3
        if direction[face] < 0.0:
            c = p0 if p0[face] <= p1[face] else p1
        else:
            c = p0 if p0[face] >= p1[face] else p1
        c = madd(c, direction, latest)
        if abs(c[j]) <= half[j] and abs(c[k]) <= half[k]:
            return latest
        # An axis parallel to the face hits it with its whole length.
        if p0[face] == p1[face]:
            c = madd(p1, direction, latest)
            if abs(c[j]) <= half[j] and abs(c[k]) <= half[k]:
                return latest
    best = NO_HIT
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        for signs in range(4):
            q = [0.0, 0.0, 0.0]
            q[i] = -half[i]
            q[j] = half[j] if signs & 1 else -half[j]
            q[k] = half[k] if signs & 2 else -half[k]
            # An edge between two faces that look away is hit last.
            if (
                (direction[j] > 0.0) == (q[j] > 0.0)
                and direction[j] != 0.0
                and (direction[k] > 0.0) == (q[k] > 0.0)
                and direction[k] != 0.0
            ):
                continue
            a = tuple(q)
            q[i] = half[i]
            distance = capsule_segment_time(p0, p1, radius, direction, a, tuple(q), f_min(best, limit))
            if distance < best:
                best = distance
    # An end sphere against the inside of a face whose plane was not the last.
    for i in range(3):
        if direction[i] != 0.0:
            limit_now = f_min(best, limit)
            distance = f_min(
                _sphere_box_face(p0, direction, radius, half, i, limit_now),
                _sphere_box_face(p1, direction, radius, half, i, limit_now),
            )
            if distance < best:
                best = distance
    return best


def capsule_box(p0, p1, radius, direction, half, position, rotation, limit):
    """Capsule against the solid box [-half, half] at (position, rotation): SweepHit or None."""
    a = q_unrotate(rotation, sub(p0, position))
    b = q_unrotate(rotation, sub(p1, position))
    d = q_unrotate(rotation, direction)
    near = segment_box(a, b, half)
    inside = inside_radius(p0, p1, radius)
    if near.dist2 < inside * inside:
        return SweepHit(0.0, True, neg(direction), add(q_rotate(rotation, near.on_b), position), None)
    distance = _capsule_box_time(a, b, radius, d, half, limit)
    if distance >= NO_HIT:
        return None
    near = segment_box(madd(a, d, distance), madd(b, d, distance), half)
    point = add(q_rotate(rotation, near.on_b), position)
    return SweepHit(distance, False, q_rotate(rotation, _away(near, d)), point, None)


# --- whole shapes -------------------------------------------------------------


def triangle_order(s, t):
    """Order of triangles by their vertices: -1, 0 or 1."""
    return lex(s.a, t.a) or lex(s.b, t.b) or lex(s.c, t.c)


def flipped(t):
    """The triangle seen from behind."""
    return Face(t.a, t.c, t.b, neg(t.n), -t.d, t.source)


def _overlaps(q, t):
    """Whether the capsule overlaps a triangle at its start."""
    h0 = dot(t.n, q.p0) - t.d
    h1 = dot(t.n, q.p1) - t.d
    if f_min(h0, h1) >= q.inside or f_max(h0, h1) <= -q.inside:
        return False
    return segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n).dist2 < q.inside * q.inside


def _is_behind(q, t):
    """Whether the centre of the capsule is behind the triangle."""
    h0 = dot(t.n, sub(q.p0, t.a))
    return h0 + (h0 + dot(t.n, sub(q.p1, q.p0))) < 0.0


def is_behind_nearest(q, faces):
    """Whether the capsule is behind the nearest one-sided triangle that it overlaps.

    Outside of a closed solid it is not. Of several triangles that the axis crosses, the nearest one
    to the centre decides.
    """
    centre = scale(add(q.p0, q.p1), 0.5)
    best = {}
    for t in faces:
        if not _overlaps(q, t):
            continue
        near = segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n)
        crossed = near.dist2 <= 0.0
        key = len2(sub(near.on_a, centre)) if crossed else near.dist2
        behind = _is_behind(q, t) if crossed else dot(t.n, sub(near.on_a, t.a)) < 0.0
        best[crossed, behind] = f_min(best.get((crossed, behind), NO_HIT), key)
    crossed = any(c for c, _ in best)
    return best.get((crossed, True), NO_HIT) < best.get((crossed, False), NO_HIT) * SURELY_NEARER


def _is_far_from_lead(q, t):
    """Whether a triangle is beyond the reach of the leading sphere, in a motion along the axis.

    RULES_2 7 compares the sphere around its corners with the path of the leading sphere. Only
    overlaps with the rest of the capsule are that far.
    """
    centre = scale(add(t.a, add(t.b, t.c)), 1.0 / 3.0)
    start = q.p0 if dot(q.p0, q.dir) >= dot(q.p1, q.dir) else q.p1
    apart = sub(centre, start)
    apart = madd(apart, q.dir, -f_min(f_max(dot(apart, q.dir), 0.0), q.limit))
    corner2 = f_max(len2(sub(t.a, centre)), f_max(len2(sub(t.b, centre)), len2(sub(t.c, centre))))
    return sqrt(len2(apart)) - q.radius - LEAD_SLACK > sqrt(corner2)


def _window(q, first, distance):
    """Largest delay of a candidate after the first triangle, which is touched at ``first``."""
    if q.exact:
        return SAME_TIME * (q.radius + first) + SAME_PLACE * f_max(max_abs(q.p0), max_abs(q.p1))
    return CANDIDATE_WINDOW * f_max(1.0, distance)


def _axis_in_plane(q, t):
    """Return whether the capsule has an axis, and that axis is parallel to a triangle's plane."""
    axis = unit(sub(q.p1, q.p0))
    return not is_zero(axis) and abs(dot(t.n, axis)) <= FACING_TIE


def _first_touched(q, touched, overlapping):
    """Return the first distance, and how far the triangle that wins faces the motion, and it."""
    first = 0.0
    if not overlapping:
        first = min(distance for distance, _, _ in touched)
        touched = [c for c in touched if c[0] <= first + _window(q, first, c[0])]
    # Three rounds, so that the order of the triangles does not matter: most opposed,
    # then nearest, then the first by its vertices, of twins by its number.
    best_facing = max(facing for _, facing, _ in touched)
    touched = [c for c in touched if c[1] >= best_facing - FACING_TIE]
    best_distance = min(distance for distance, _, _ in touched)
    touched = [c for c in touched if c[0] <= best_distance + FACING_TIE]
    _, opposed, winner = touched[0]
    for _, facing, face in touched:
        order = triangle_order(face, winner)
        if order < 0 or (order == 0 and face.source < winner.source):
            opposed, winner = facing, face
    return first, opposed, winner


def _contact_normal(q, t, near):
    """Return the normal at a contact.

    RULES 3; SWEEP 7.2 orients it by the capsule's centre and fails.
    """
    out = sub(near.on_a, near.on_b)
    size = sqrt(len2(out))
    return t.n if size < (SHORTEST_SHARE * q.radius if q.exact else SHORTEST_NORMAL) else scale(out, 1.0 / size)


def cast_triangles(q, faces, two_sided, skip_overlaps):
    """Cast against the triangles of one shape (RULES 3): SweepHit or None.

    The distance is that of the first triangle. Among all triangles that are hit almost as early,
    the one most opposed to the motion decides the normal.
    """
    touched = []  # (distance, facing, face)
    overlapping = left_out = False
    rim = NO_HIT  # when the first triangle is touched that only meets_rims lets be met
    for face in faces:
        t = face
        nd = dot(t.n, q.dir)
        if nd > 0.0:
            # RULES 2: two-sided triangles turn against the motion, others are culled;
            # one exactly parallel to it is kept. Queries do not let rounding decide.
            if two_sided:
                t = flipped(t)
                nd = -nd
            elif q.culls and not (q.keeps_parallel and nd <= FACING_TIE):
                if q.passed is not None and (q.passing or _is_behind(q, t)) and _overlaps(q, t):
                    q.passed.add("back")
                continue
        elif nd == 0.0 and q.culls_parallel:
            continue
        h0 = dot(t.n, q.p0) - t.d
        h1 = dot(t.n, q.p1) - t.d
        low = f_min(h0, h1)
        # No contact is possible before the plane is reached; the margin keeps rounding of this test
        # out of the result.
        if low - q.radius > -nd * q.limit + 1e-9 * (q.radius + q.limit):
            continue
        if f_max(h0, h1) < -q.radius * (1.0 + 1e-9) and nd <= 0.0:
            continue
        # RULES 3: in a motion along the axis, triangles behind the leading sphere do not count.
        if q.parallel and q.trailing_rule:
            front = f_max(dot(t.a, q.dir), f_max(dot(t.b, q.dir), dot(t.c, q.dir)))
            if front < q.lead - (q.radius + TRAILING_SLACK):
                continue
        # RULES 3: overlapping means strictly closer than the radius.
        if low < q.radius:
            near = segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n)
            if near.dist2 < q.inside * q.inside:
                if q.parallel and q.trailing_rule and _is_far_from_lead(q, t):
                    continue
                if skip_overlaps:
                    # RULES_2 5: the shape gives no hit; in FIX_BACK_FACES this triangle gives none.
                    left_out = left_out or q.passed is None
                    continue
                # FIX_BACK_FACES: one-sided triangles do not stop a character from behind.
                if q.passed is not None and not two_sided and (q.passing or _is_behind(q, t)):
                    q.passed.add("overlap")
                    continue
                # If a triangle overlaps, a touch at distance 0 does not count, in any order.
                if not overlapping:
                    touched.clear()
                overlapping = True
                touched.append((0.0, abs(nd), face))
                continue
        if overlapping or left_out:
            continue
        # RULES 2: with motion and axis both in its plane, a triangle is not met at all.
        along = abs(nd) <= FACING_TIE and _axis_in_plane(q, t)
        # A capsule that only touches the plane slides along it.
        if along and (not q.meets_rims or abs(low) >= q.inside - FACING_TIE * length(sub(q.p1, q.p0))):
            continue
        distance = capsule_triangle_time(q.p0, q.p1, q.radius, q.dir, t, q.limit)
        if distance < NO_HIT:
            touched.append((distance, abs(nd), face))
            if along:
                rim = f_min(rim, distance)
    if left_out or not touched:
        return None
    first, opposed, winner = _first_touched(q, touched, overlapping)
    t = flipped(winner) if two_sided and dot(winner.n, q.dir) > 0.0 else winner
    near = segment_triangle(madd(q.p0, q.dir, first), madd(q.p1, q.dir, first), t.a, t.b, t.c, t.n)
    if overlapping:
        return SweepHit(first, True, neg(q.dir), near.on_b, winner)
    normal = _contact_normal(q, t, near)
    by_rim = rim < NO_HIT and (rim == first or opposed <= FACING_TIE)
    return SweepHit(first, False, normal, near.on_b, winner, by_rim)


def _is_shared(t, faces, a, b):
    """Whether another triangle of the shape has both corners of an edge."""
    return any(a in (s.a, s.b, s.c) and b in (s.a, s.b, s.c) for s in faces if s is not t)


def _open_edge_time(q, t, faces):
    """When a motion away from the front of a triangle meets one of its open edges.

    A capsule that the face holds off, or that only touches its plane, meets none.
    """
    axis = sub(q.p1, q.p0)
    h0 = dot(t.n, sub(q.p0, t.a))
    h1 = h0 + dot(t.n, axis)
    if h0 + h1 < 0.0 or f_min(h0, h1) >= q.inside - FACING_TIE * length(axis):
        return NO_HIT
    if segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n).dist2 < q.inside * q.inside:
        return NO_HIT
    best = NO_HIT
    for a, b in ((t.a, t.b), (t.b, t.c), (t.c, t.a)):
        # The motion leads over the edge into the triangle, from outside.
        inward = cross(t.n, sub(b, a))
        out = dot(inward, sub(q.p0, a))
        if dot(inward, q.dir) <= 0.0 or f_min(out, out + dot(inward, axis)) > 0.0 or _is_shared(t, faces, a, b):
            continue
        best = f_min(best, capsule_segment_time(q.p0, q.p1, q.radius, q.dir, a, b, f_min(best, q.limit)))
    return best


def cast_open_edges(q, faces):
    """The first open edge of triangles of one shape that face away (FIX_SHEET_EDGES), or None."""
    best, met = NO_HIT, None
    for face in faces:
        if dot(face.n, q.dir) <= 0.0:
            continue
        distance = _open_edge_time(q, face, faces)
        if distance >= NO_HIT or distance > best:
            continue
        if distance == best and (triangle_order(face, met) or face.source - met.source) > 0:
            continue
        best, met = distance, face
    if met is None:
        return None
    t = flipped(met)
    near = segment_triangle(madd(q.p0, q.dir, best), madd(q.p1, q.dir, best), t.a, t.b, t.c, t.n)
    return SweepHit(best, False, _contact_normal(q, t, near), near.on_b, met, True)


def _cast_round(q, q0, q1, radius, distance, overlapping):
    """The hit of a round shape (a segment with a radius)."""
    if distance >= NO_HIT:
        return None
    near = segment_segment(madd(q.p0, q.dir, distance), madd(q.p1, q.dir, distance), q0, q1)
    normal = _away(near, q.dir)
    point = madd(near.on_b, normal, radius)
    return SweepHit(distance, overlapping, neg(q.dir) if overlapping else normal, point, None)


def cast_sphere(q, centre, radius):
    """Capsule against a sphere: a sphere of both radii against the capsule's axis, turned about."""
    both = q.radius + radius
    inside = q.inside + radius
    if point_segment(centre, q.p0, q.p1).dist2 < inside * inside:
        return _cast_round(q, centre, centre, radius, 0.0, True)
    distance = sphere_segment(q.p0, q.dir, both, centre, sub(centre, sub(q.p1, q.p0)), q.limit)
    return _cast_round(q, centre, centre, radius, distance, False)


def cast_capsule(q, q0, q1, radius):
    """Capsule against a capsule."""
    both = q.radius + radius
    inside = q.inside + radius
    if segment_segment(q.p0, q.p1, q0, q1).dist2 < inside * inside:
        return _cast_round(q, q0, q1, radius, 0.0, True)
    distance = capsule_segment_time(q.p0, q.p1, both, q.dir, q0, q1, q.limit)
    return _cast_round(q, q0, q1, radius, distance, False)


def cast_plane(q, normal, offset):
    """Capsule against an endless plane, one face (RULES 2)."""
    h0 = dot(normal, q.p0) - offset
    h1 = dot(normal, q.p1) - offset
    low = f_min(h0, h1)
    nd = dot(normal, q.dir)
    foot = q.p0 if h0 <= h1 else q.p1
    if nd > 0.0 and q.culls:
        return None
    if low < q.inside:
        return SweepHit(0.0, True, neg(q.dir), madd(foot, normal, -low), None)
    if nd >= 0.0 or low - q.radius > -nd * q.limit:
        return None
    distance = f_max(0.0, (low - q.radius) / -nd)
    return SweepHit(distance, False, normal, madd(madd(foot, q.dir, distance), normal, -q.radius), None)
