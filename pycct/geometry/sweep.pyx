# cython: language_level=3
"""Time of impact of spheres and capsules. See the header.

The positions at which a capsule touches a triangle form the triangle swept along the capsule's axis
(a prism), inflated by the radius. A capsule's time of impact is therefore that of a sphere at the
capsule's first centre against the prism's faces, edges and vertices (RULES 3; SWEEP 4.2 to 4.4 move
only one point of the axis and miss contacts).

Each equation is solved about the point of closest approach, where its terms are no larger than the
radius, so distant starts cost no digits.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport uint32_t, uint64_t

from pycct.geometry.closest cimport (
    closest_pair,
    longest_edge,
    point_segment,
    segment_box,
    segment_segment,
    segment_triangle,
    within_edge,
)
from pycct.geometry.aabb4 cimport aabb4_box, aabb4_overlap_mask, lowest_bit
from pycct.geometry.tolerances cimport COORDINATE_ROUNDING, FACING_TIE, PARALLEL2
from pycct.geometry.vec cimport (
    f_max,
    f_min,
    q_rotate,
    q_unrotate,
    v3,
    v3_add,
    v3_cross,
    v3_dot,
    v3_is_zero,
    v3_len,
    v3_len2,
    v3_lex,
    v3_madd,
    v3_max_abs,
    v3_neg,
    v3_scale,
    v3_sub,
    v3_unit,
)

cdef double NO_HIT = 1e300

# A motion that passes less than half of this times the radius below the surface is no hit: rolling
# exactly along an edge must not stop at every rounding error.
cdef double GRAZE = 1e-12

# Squared sine below which the cross product of two edges has lost too many digits.
cdef double NARROW2 = 1e-6

# Overlaps up to this share of the radius, and up to the rounding of the coordinates, are touches.
cdef double TOUCH = 1e-9

# Rejecting tests leave a margin of this share of a squared distance, and of that to the corners.
cdef double SURELY = 1.000001
cdef double SURELY_FAR = 1e-18
# Rejecting tests leave a margin of this share of the coordinates.
cdef double SURELY_AHEAD = 1e-14
# Rejecting tests use no directions with a smaller squared sine.
cdef double CROSSING2 = 1e-6

# Up to this many triangles are tested without their boxes.
cdef enum:
    FEW = 3

# Over a face at a smaller slope, a sphere can pass an edge within GRAZE, or within the rounding of
# a distant start, and still sink into the surface behind it.
cdef double SHALLOW = 1e-3


# The corners of a triangle, twice: edge k goes from one to the next. Loops over edges keep the code
# small, because the processor's first cache does not hold all of it.
cdef struct corners:
    const vec3* at[6]


cdef inline corners corners_of(const triangle* t) noexcept nogil:
    cdef corners c
    c.at = [&t.a, &t.b, &t.c, &t.a, &t.b, &t.c]
    return c


cdef double sphere_point(vec3 centre, vec3 dir, double radius, vec3 p, double limit) noexcept nogil:
    cdef vec3 m = v3_sub(centre, p)
    cdef double nearest = -v3_dot(m, dir)
    cdef double disc, t
    cdef vec3 w
    if nearest <= 0.0:
        return NO_HIT
    w = v3_madd(m, dir, nearest)
    disc = radius * radius - v3_len2(w)
    if disc <= GRAZE * radius * radius:
        return NO_HIT
    t = nearest - sqrt(disc)
    if t < 0.0:
        t = 0.0
    return t if t <= limit else NO_HIT


cdef double sphere_segment(vec3 centre, vec3 dir, double radius, vec3 a, vec3 b, double limit) noexcept nogil:
    cdef vec3 e = v3_sub(b, a)
    cdef double l2 = v3_len2(e)
    cdef vec3 m, m_perp, d_perp, w
    cdef double de, me, k, nearest, disc, t, s, u
    cdef bint inside
    if l2 <= 0.0:
        return sphere_point(centre, dir, radius, a, limit)
    m = v3_sub(centre, a)
    # Sure misses first: most edges are passed at a distance.
    w = v3_cross(dir, e)
    k = v3_len2(w)
    s = v3_dot(w, m)
    if k > CROSSING2 * l2 and s * s > k * (radius * radius * SURELY + SURELY_FAR * v3_len2(m)):
        return NO_HIT
    de = v3_dot(dir, e)
    me = v3_dot(m, e)
    d_perp = v3_madd(dir, e, -de / l2)
    k = v3_len2(d_perp)
    if k <= PARALLEL2:
        t = sphere_point(centre, dir, radius, a, limit)
        u = sphere_point(centre, dir, radius, b, limit)
        return t if t < u else u
    m_perp = v3_madd(m, e, -me / l2)
    nearest = -v3_dot(m_perp, d_perp) / k
    w = v3_madd(m_perp, d_perp, nearest)
    disc = radius * radius - v3_len2(w)
    if disc <= GRAZE * radius * radius:
        return NO_HIT
    t = v3_len2(m_perp) - radius * radius
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
        u = sphere_point(centre, dir, radius, a, limit)
        s = -me
    elif s > l2:
        u = sphere_point(centre, dir, radius, b, limit)
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


cdef inline double _entry(double x, double rate, double high) noexcept nogil:
    """Time from which on x, growing by rate, is in [0, high]; NO_HIT: never."""
    if x < 0.0:
        return -x / rate if rate > 0.0 else NO_HIT
    if x > high:
        return (high - x) / rate if rate < 0.0 else NO_HIT
    return 0.0


cdef inline double _exit(double x, double rate, double high) noexcept nogil:
    """Time after which x, growing by rate, is not in [0, high] any more."""
    if rate > 0.0:
        return (high - x) / rate
    return -x / rate if rate < 0.0 else NO_HIT


cdef inline double _face_entry(vec3 dir, const triangle* t, double x, double y, double z) noexcept nogil:
    """Time until a point is over a triangle; NO_HIT: never.

    x, y, z: distance of the point inside of its edges, times their lengths.
    """
    cdef double dx = v3_dot(v3_cross(v3_sub(t.b, t.a), dir), t.n)
    cdef double dy = v3_dot(v3_cross(v3_sub(t.c, t.b), dir), t.n)
    cdef double dz = v3_dot(v3_cross(v3_sub(t.a, t.c), dir), t.n)
    cdef double late = f_max(_entry(x, dx, NO_HIT), f_max(_entry(y, dy, NO_HIT), _entry(z, dz, NO_HIT)))
    if late > _exit(x, dx, NO_HIT) or late > _exit(y, dy, NO_HIT) or late > _exit(z, dz, NO_HIT):
        return NO_HIT
    return late


cdef inline bint _is_over(vec3 q, const triangle* t, double* x, double* y, double* z) noexcept nogil:
    """Whether a point is over a triangle.

    X, y, z: distance inside of its edges, times their lengths.
    """
    x[0] = v3_dot(v3_cross(v3_sub(t.b, t.a), v3_sub(q, t.a)), t.n)
    y[0] = v3_dot(v3_cross(v3_sub(t.c, t.b), v3_sub(q, t.b)), t.n)
    z[0] = v3_dot(v3_cross(v3_sub(t.a, t.c), v3_sub(q, t.c)), t.n)
    return x[0] >= 0.0 and y[0] >= 0.0 and z[0] >= 0.0


cdef inline double _sphere_face(vec3 centre, vec3 dir, double radius, const triangle* t, double h, double nd,
                                double limit, bint* over) noexcept nogil:
    """Sphere against the front of a triangle's inside; h: height of the centre, nd = dot(n, dir).

    ``over``: whether the sphere hits the face where it hits the plane. If it sinks below the plane
    beside the face and slips over it within SHALLOW, the time is that of reaching the face; the
    edges return the exact time, if any.
    """
    cdef double distance, x, y, z
    over[0] = False
    if nd >= 0.0 or h < 0.0:
        return NO_HIT
    distance = (h - radius) / -nd
    if distance < 0.0:
        distance = 0.0
    if distance > limit:
        return NO_HIT
    if _is_over(v3_madd(centre, dir, distance), t, &x, &y, &z):
        over[0] = True
        return distance
    if nd < -SHALLOW:
        return NO_HIT
    distance += _face_entry(dir, t, x, y, z)
    return distance if distance <= limit and h + nd * distance > -radius else NO_HIT


cdef inline double _sphere_edges(vec3 centre, vec3 dir, double radius, const corners* c, double limit) noexcept nogil:
    cdef double best = NO_HIT
    cdef int k
    for k in range(3):
        best = f_min(best, sphere_segment(centre, dir, radius, c.at[k][0], c.at[k + 1][0], f_min(best, limit)))
    return best


cdef inline double _sphere_parallelogram(vec3 centre, vec3 dir, double radius, vec3 corner, vec3 e, vec3 axis,
                                         double limit) noexcept nogil:
    """Sphere against the inside of the face corner + alpha e - beta axis, from either side."""
    cdef vec3 m = v3_cross(e, axis)
    cdef double m2 = v3_len2(m)
    cdef double e2 = v3_len2(e)
    cdef double whole2 = e2 * v3_len2(axis)
    cdef double length, h, nd, distance, x, y, dx, dy, late
    cdef vec3 rel
    if m2 <= PARALLEL2 * whole2 or m2 == 0.0:
        return NO_HIT
    if m2 < NARROW2 * whole2:
        # Exactly perpendicular to e, however narrow the face.
        m = v3_cross(e, v3_madd(axis, e, -v3_dot(axis, e) / e2))
        m2 = v3_len2(m)
    length = sqrt(m2)
    h = v3_dot(m, v3_sub(centre, corner)) / length
    nd = v3_dot(m, dir) / length
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
    rel = v3_sub(v3_madd(centre, dir, distance), corner)
    # Solving rel = alpha e - beta axis + gamma m for alpha and beta, times m2.
    x = v3_dot(v3_cross(rel, axis), m)
    y = v3_dot(v3_cross(rel, e), m)
    if 0.0 <= x <= m2 and 0.0 <= y <= m2:
        return distance
    if fabs(nd) > SHALLOW:
        return NO_HIT
    # As for a triangle, see _sphere_face.
    dx = v3_dot(v3_cross(dir, axis), m)
    dy = v3_dot(v3_cross(dir, e), m)
    late = f_max(_entry(x, dx, m2), _entry(y, dy, m2))
    if late > _exit(x, dx, m2) or late > _exit(y, dy, m2):
        return NO_HIT
    distance += late
    return distance if distance <= limit and fabs(h) - fabs(nd) * distance > -radius else NO_HIT


cdef double capsule_segment_time(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 a, vec3 b,
                                 double limit) noexcept nogil:
    cdef vec3 axis = v3_sub(p1, p0)
    cdef double best, distance
    best = _sphere_parallelogram(p0, dir, radius, a, v3_sub(b, a), axis, limit)
    distance = sphere_segment(p0, dir, radius, a, b, f_min(best, limit))
    if distance < best:
        best = distance
    distance = sphere_segment(p1, dir, radius, a, b, f_min(best, limit))
    if distance < best:
        best = distance
    distance = sphere_segment(p0, dir, radius, a, v3_sub(a, axis), f_min(best, limit))
    if distance < best:
        best = distance
    distance = sphere_segment(p0, dir, radius, b, v3_sub(b, axis), f_min(best, limit))
    return distance if distance < best else best


cdef inline bint _is_parallel(vec3 axis, vec3 dir) noexcept nogil:
    """Whether a capsule's axis is parallel to its motion, or has no length."""
    cdef double axis2 = v3_len2(axis)
    return axis2 <= 0.0 or v3_len2(v3_cross(axis, dir)) <= PARALLEL2 * axis2


cdef double capsule_triangle_time(vec3 p0, vec3 p1, double radius, vec3 dir, const triangle* t,
                                  double limit) noexcept nogil:
    cdef capsule_cast q = capsule_cast_of(p0, p1, radius, dir, limit, False, False)
    cdef int32_t over
    return _capsule_triangle(&q, _is_parallel(q.axis, dir), False, t, limit, &over)


cdef inline bint _beyond_edge(vec3 p0, vec3 axis, vec3 a, vec3 b, vec3 c, vec3 m, double m2,
                              double radius2) noexcept nogil:
    """Whether a whole axis is surely farther than a radius out along m than all corners.

    m should be perpendicular to the edge ab, away from c. Rounding may give any m, which makes no
    result wrong.
    """
    cdef vec3 rel = v3_sub(p0, a)
    cdef double s = v3_dot(m, rel)
    cdef double threshold = (radius2 * SURELY + SURELY_FAR * v3_len2(rel)) * m2
    s = f_min(s, s + v3_dot(m, axis))
    if (s <= 0.0) | (s * s <= threshold):
        return False
    s -= f_max(0.0, f_max(v3_dot(m, v3_sub(b, a)), v3_dot(m, v3_sub(c, a))))
    return (s > 0.0) & (s * s > threshold)


cdef inline bint _passes_edge(vec3 p0, vec3 axis, double radius2, vec3 dir, vec3 a, vec3 b, vec3 c) noexcept nogil:
    """Whether a motion surely passes a triangle beside the edge from a to b."""
    cdef vec3 e = v3_sub(b, a)
    cdef vec3 m = v3_cross(dir, e)
    cdef double m2 = v3_len2(m)
    # Nearly along the edge, m is rounding and not perpendicular to the motion any more.
    return m2 > CROSSING2 * v3_len2(e) and _beyond_edge(p0, axis, a, b, c, m, m2, radius2)


cdef inline bint _passes_by(vec3 p0, vec3 axis, double radius, vec3 dir, const triangle* t) noexcept nogil:
    """Whether a motion surely passes a triangle beside one of its edges."""
    cdef double radius2 = radius * radius
    cdef corners c = corners_of(t)
    cdef int k
    for k in range(3):
        if _passes_edge(p0, axis, radius2, dir, c.at[k][0], c.at[k + 1][0], c.at[k + 2][0]):
            return True
    return False


cdef double _capsule_triangle(const capsule_cast* q, bint parallel, bint between, const triangle* t, double limit,
                              int32_t* over) noexcept nogil:
    """``between``: known not to pass beside an edge. ``over``: an end_over, the kind of contact."""
    cdef double nd = v3_dot(t.n, q.dir)
    cdef double h0 = v3_dot(v3_sub(q.p0, t.a), t.n)
    cdef double h1 = v3_dot(v3_sub(q.p1, t.a), t.n)
    cdef double low = f_min(h0, h1), radius = q.radius
    cdef double best, distance
    cdef bint last, face = False
    cdef vec3 p0, p1, axis, dir, lead
    cdef corners c
    cdef int k
    over[0] = OVER_NONE
    # The triangle cannot be touched before its plane.
    if low >= radius:
        if nd >= 0.0 or low - radius > -nd * limit:
            return NO_HIT
    elif f_max(h0, h1) <= -radius and nd <= 0.0:
        return NO_HIT
    p0 = q.p0
    p1 = q.p1
    axis = q.axis
    dir = q.dir
    if parallel:
        # The leading end sphere passes every point that the rest passes.
        last = v3_dot(axis, dir) > 0.0
        h0 = h1 if last else h0
        lead = p1 if last else p0
        best = _sphere_face(lead, dir, radius, t, h0, nd, limit, &face)
        if face:
            over[0] = OVER_LAST if last else OVER_FIRST
        if best < NO_HIT and h0 >= radius and best <= (h0 - radius) / -nd:
            return best
        if not between and _passes_by(p0, axis, radius, dir, t):
            over[0] = OVER_NONE
            return NO_HIT
        c = corners_of(t)
        distance = _sphere_edges(lead, dir, radius, &c, f_min(best, limit))
        if distance < best:
            over[0] = OVER_NONE
            best = distance
        return best
    last = h0 > h1
    best = _sphere_face(p1 if last else p0, dir, radius, t, low, nd, limit, &face)
    if best < NO_HIT and low >= radius and best <= (low - radius) / -nd:
        # Hit at the plane: no earlier contact is possible.
        if face:
            over[0] = OVER_LAST if last else OVER_FIRST
        return best
    if not between and _passes_by(p0, axis, radius, dir, t):
        return NO_HIT
    distance = _sphere_face(p0 if last else p1, dir, radius, t, h0 if last else h1, nd, f_min(best, limit), &face)
    if distance < best:
        best = distance
    if best < NO_HIT and low >= radius and best <= (low - radius) / -nd:
        return best
    # The sides of the prism, then the edges of its two ends, then those between.
    c = corners_of(t)
    for k in range(3):
        best = f_min(best, _sphere_parallelogram(p0, dir, radius, c.at[k][0], v3_sub(c.at[k + 1][0], c.at[k][0]), axis,
                                                 f_min(best, limit)))
    best = f_min(best, _sphere_edges(p0, dir, radius, &c, f_min(best, limit)))
    best = f_min(best, _sphere_edges(p1, dir, radius, &c, f_min(best, limit)))
    for k in range(3):
        best = f_min(best, sphere_segment(p0, dir, radius, c.at[k][0], v3_sub(c.at[k][0], axis), f_min(best, limit)))
    return best


cdef inline vec3 _away(closest_pair near, vec3 dir) noexcept nogil:
    """Unit vector from the second closest point to the first; -dir if both are equal."""
    if near.dist2 <= 0.0:
        return v3_neg(dir)
    return v3_scale(v3_sub(near.on_a, near.on_b), 1.0 / sqrt(near.dist2))


cdef inline double _inside(vec3 p0, vec3 p1, double radius) noexcept nogil:
    """The distance below which an axis overlaps.

    Exact touch does not, despite rounding (RULES 3, 5).
    """
    return f_max(0.0, radius * (1.0 - TOUCH) - COORDINATE_ROUNDING * f_max(v3_max_abs(p0), v3_max_abs(p1)))


cdef double clearance_inside(const capsule_cast* q) noexcept nogil:
    return _inside(q.p0, q.p1, q.radius)


cdef inline double _axis(vec3 v, int i) noexcept nogil:
    return v.x if i == 0 else (v.y if i == 1 else v.z)


cdef inline double _sphere_box_face(vec3 centre, vec3 dir, double radius, vec3 half, int i,
                                    double limit) noexcept nogil:
    """Sphere against the inside of the face across axis i that faces the motion.

    As _sphere_face.
    """
    cdef int j = (i + 1) % 3, k = (i + 2) % 3
    cdef double nd = fabs(_axis(dir, i)), dj = _axis(dir, j), dk = _axis(dir, k)
    cdef double h = (_axis(centre, i) if _axis(dir, i) < 0.0 else -_axis(centre, i)) - _axis(half, i)
    cdef double distance, x, y, late
    if h < 0.0:
        return NO_HIT
    distance = (h - radius) / nd
    if distance < 0.0:
        distance = 0.0
    if distance > limit:
        return NO_HIT
    x = _axis(centre, j) + dj * distance + _axis(half, j)
    y = _axis(centre, k) + dk * distance + _axis(half, k)
    if 0.0 <= x <= 2.0 * _axis(half, j) and 0.0 <= y <= 2.0 * _axis(half, k):
        return distance
    if nd > SHALLOW:
        return NO_HIT
    late = f_max(_entry(x, dj, 2.0 * _axis(half, j)), _entry(y, dk, 2.0 * _axis(half, k)))
    if late > _exit(x, dj, 2.0 * _axis(half, j)) or late > _exit(y, dk, 2.0 * _axis(half, k)):
        return NO_HIT
    distance += late
    return distance if distance <= limit and h - nd * distance > -radius else NO_HIT


cdef double _capsule_box_time(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 half, double limit) noexcept nogil:
    """In the frame of the box, with the capsule outside of it."""
    cdef double latest = 0.0, best, distance, low, d, h
    cdef int i, j, k, face = -1
    cdef double[3] q
    cdef vec3 c, a, b
    # The box cannot be touched before each of the planes that face the motion. If the last of them
    # is hit inside its face, that is the result.
    for i in range(3):
        d = _axis(dir, i)
        h = _axis(half, i)
        if d < 0.0:
            low = f_min(_axis(p0, i), _axis(p1, i)) - h - radius
        elif d > 0.0:
            low = -f_max(_axis(p0, i), _axis(p1, i)) - h - radius
        else:
            if (f_min(_axis(p0, i), _axis(p1, i)) - h >= radius or f_max(_axis(p0, i), _axis(p1, i)) + h <= -radius):
                return NO_HIT
            continue
        if low >= 0.0:
            distance = low / fabs(d)
            if distance > limit:
                return NO_HIT
            if distance >= latest:
                latest = distance
                face = i
    if face >= 0:
        d = _axis(dir, face)
        if d < 0.0:
            c = p0 if _axis(p0, face) <= _axis(p1, face) else p1
        else:
            c = p0 if _axis(p0, face) >= _axis(p1, face) else p1
        c = v3_madd(c, dir, latest)
        j = (face + 1) % 3
        k = (face + 2) % 3
        if fabs(_axis(c, j)) <= _axis(half, j) and fabs(_axis(c, k)) <= _axis(half, k):
            return latest
        # An axis parallel to the face hits it with its whole length.
        if _axis(p0, face) == _axis(p1, face):
            c = v3_madd(p1, dir, latest)
            if fabs(_axis(c, j)) <= _axis(half, j) and fabs(_axis(c, k)) <= _axis(half, k):
                return latest
    best = NO_HIT
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        q[i] = -_axis(half, i)
        for face in range(4):
            q[j] = _axis(half, j) if face & 1 else -_axis(half, j)
            q[k] = _axis(half, k) if face & 2 else -_axis(half, k)
            # An edge between two faces that look away is hit last.
            if ((_axis(dir, j) > 0.0) == (q[j] > 0.0) and _axis(dir, j) != 0.0
                    and (_axis(dir, k) > 0.0) == (q[k] > 0.0) and _axis(dir, k) != 0.0):
                continue
            a = v3(q[0], q[1], q[2])
            b = a
            if i == 0:
                b.x = half.x
            elif i == 1:
                b.y = half.y
            else:
                b.z = half.z
            distance = capsule_segment_time(p0, p1, radius, dir, a, b, f_min(best, limit))
            if distance < best:
                best = distance
    # An end sphere against the inside of a face whose plane was not the last.
    for i in range(3):
        if _axis(dir, i) != 0.0:
            distance = f_min(_sphere_box_face(p0, dir, radius, half, i, f_min(best, limit)),
                             _sphere_box_face(p1, dir, radius, half, i, f_min(best, limit)))
            if distance < best:
                best = distance
    return best


cdef bint capsule_box(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 half, vec3 position, quat rotation,
                      double limit, sweep_hit* hit) noexcept nogil:
    cdef vec3 a = q_unrotate(rotation, v3_sub(p0, position))
    cdef vec3 b = q_unrotate(rotation, v3_sub(p1, position))
    cdef vec3 d = q_unrotate(rotation, dir)
    cdef closest_pair near = segment_box(a, b, half)
    cdef double distance, inside = _inside(p0, p1, radius)
    hit.tri = -1
    if near.dist2 < inside * inside:
        hit.distance = 0.0
        hit.overlapping = True
        hit.normal = v3_neg(dir)
        hit.point = v3_add(q_rotate(rotation, near.on_b), position)
        return True
    distance = _capsule_box_time(a, b, radius, d, half, limit)
    if distance >= NO_HIT:
        return False
    near = segment_box(v3_madd(a, d, distance), v3_madd(b, d, distance), half)
    hit.distance = distance
    hit.overlapping = False
    hit.normal = q_rotate(rotation, _away(near, d))
    hit.point = v3_add(q_rotate(rotation, near.on_b), position)
    return True


# A candidate is a triangle touched at most this (times max(1, distance)) after the first one of its
# shape (RULES 3).
cdef double CANDIDATE_WINDOW = 1e-3
# Distance behind the leading sphere's surface up to which triangles count if the axis is parallel
# to the motion (RULES 3).
cdef double TRAILING_SLACK = 0.002
# Distance from the path of the leading sphere beyond which such a motion ignores a triangle
# (RULES_2 7).
cdef double LEAD_SLACK = 1e-4
# Below this distance, closest points define no direction, and the triangle's normal is used (RULES
# 3).
cdef double SHORTEST_NORMAL = 1e-3
# ... or, of exact casts, than this share of the radius.
cdef double SHORTEST_SHARE = 1e-3
# A triangle is nearer than another one if its squared distance is below this share of the other.
cdef double SURELY_NEARER = 1.0 - 1e-9
# Exact casts touch two triangles at once within these shares of the way and the coordinates:
# rounding.
cdef double SAME_TIME = 1e-12
cdef double SAME_PLACE = 1e-15


cdef int triangle_order(const triangle* s, const triangle* t) noexcept nogil:
    cdef int k = v3_lex(s.a, t.a)
    if k == 0:
        k = v3_lex(s.b, t.b)
    if k == 0:
        k = v3_lex(s.c, t.c)
    return k


cdef inline triangle _flipped(const triangle* t) noexcept nogil:
    cdef triangle r
    r.a = t.a
    r.b = t.c
    r.c = t.b
    r.n = v3_neg(t.n)
    r.d = -t.d
    return r


cdef inline double _same_time(const capsule_cast* q, double first) noexcept nogil:
    """How much later than ``first`` an exact cast touches what it touches at the same time."""
    return SAME_TIME * (q.radius + first) + SAME_PLACE * q.size


cdef double latest_candidate(const capsule_cast* q, double first) noexcept nogil:
    """Largest distance d with d <= first + window * max(1, d), and a little more."""
    if q.exact:
        return first + 2.0 * _same_time(q, first)
    if first < 1.0 - CANDIDATE_WINDOW:
        return first + CANDIDATE_WINDOW * 1.001
    return first / (1.0 - CANDIDATE_WINDOW) * 1.000001


cdef inline double _below_zero(double x) noexcept nogil:
    """The smaller of x and 0, which compilers translate without a branch."""
    return 0.5 * (x - fabs(x))


# The end of a capsule's axis that is nearer to a plane, and its direction from there.
cdef struct foot_of_axis:
    vec3 end                    # start of that end
    vec3 axis                   # from there to the other end
    vec3 motion                    # the motion
    double rise                 # of the axis away from the plane, >= 0
    double low                  # sure lower bound of the distance from the plane
    double apart2               # sure lower bound of the rest of a squared distance to the triangle


cdef inline bint _clear_of_edge(const foot_of_axis* f, vec3 a, vec3 b, vec3 n) noexcept nogil:
    """Whether the axis surely stays outside of the radius of a triangle beside this edge."""
    cdef vec3 m = v3_cross(v3_sub(b, a), n)
    cdef double m2 = v3_len2(m), along = v3_dot(m, f.axis)
    # Smallest distance of the near end outside of the edge.
    cdef double s = v3_dot(m, v3_sub(f.end, a)) + _below_zero(v3_dot(m, f.motion))
    # Farther up, the axis is nearer only where it approaches faster than it rises.
    s += _below_zero(along) * (f.low * f.rise * m2 + s * along < 0.0)
    return (s > 0.0) & (s * s > f.apart2 * m2)


cdef inline bint _clear_of_edges(const capsule_cast* q, const triangle* t, double low, double limit, bint below,
                                 triangle_aid* aid) noexcept nogil:
    """Whether the axis surely stays outside of the radius of a triangle up to the limit.

    The axis is on one side of its plane, at least ``low`` away from it; or ``low`` is 0.
    """
    cdef foot_of_axis f
    cdef corners c
    cdef int k
    f.rise = v3_dot(t.n, q.axis)
    if below:
        f.rise = -f.rise
    f.end = q.p0
    f.axis = q.axis
    if f.rise < 0.0:
        f.rise = -f.rise
        f.end = q.p1
        f.axis = v3_neg(q.axis)
    f.motion = v3_scale(q.dir, limit)
    f.low = low
    # A corner may be outside of an edge by rounding, a share of the measured lengths.
    f.apart2 = ((q.radius * q.radius - low * low) * SURELY
                + 4.0 * SURELY_FAR * (v3_len2(v3_sub(f.end, t.a)) + limit * limit + aid.edges2))
    c = corners_of(t)
    k = aid.side
    if _clear_of_edge(&f, c.at[k][0], c.at[k + 1][0], t.n):
        return True
    for k in range(k + 1, k + 3):
        if _clear_of_edge(&f, c.at[k][0], c.at[k + 1][0], t.n):
            aid.side = k % 3
            return True
    return False


cdef inline bint _stays_beside(const capsule_cast* q, const triangle* t, double nd, double low, double limit,
                               double slack, triangle_aid* aid) noexcept nogil:
    """Whether a capsule that sinks towards a plane surely misses the triangle within the limit.

    ``low`` is the height of the start of its axis. The part of the plane that it can touch is small
    until it has sunk in deep.
    """
    if nd > 0.0:
        return False
    low += nd * limit - slack
    return low > 0.0 and _clear_of_edges(q, t, low, limit, False, aid)


cdef bint _overlaps(const capsule_cast* q, const triangle* t, double low, triangle_aid* aid,
                    closest_pair* near) noexcept nogil:
    """Whether the capsule overlaps the triangle at its start; then near is valid.

    ``low``: as triangles_in_reach stores it.
    """
    cdef double h0, h1, inside
    cdef bint below = low <= 0.0
    if below:
        h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
        h1 = h0 + v3_dot(t.n, q.axis)
        low = f_max(0.0, -f_max(h0, h1))
    if low >= q.radius:
        return False
    if _clear_of_edges(q, t, low, 0.0, below, aid):
        return False
    near[0] = segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n)
    inside = _inside(q.p0, q.p1, q.radius)
    return near.dist2 < inside * inside


cdef bint overlaps_at_start(const capsule_cast* q, const triangle* t, double low, triangle_aid* aid) noexcept nogil:
    cdef closest_pair near
    return _overlaps(q, t, low, aid, &near)


cdef inline bint _is_behind(const capsule_cast* q, const triangle* t) noexcept nogil:
    """Whether the centre of the capsule is behind the triangle; in the arithmetic of _planes_in_reach."""
    cdef double h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
    return h0 + (h0 + v3_dot(t.n, q.axis)) < 0.0


cdef bint is_behind_nearest(const capsule_cast* q, const triangle* tris, int32_t n, facing_distances* d) noexcept nogil:
    cdef double inside = _inside(q.p0, q.p1, q.radius), key
    cdef vec3 centre = v3_scale(v3_add(q.p0, q.p1), 0.5)
    cdef const triangle* t
    cdef closest_pair near
    cdef double* best
    cdef bint behind
    cdef int32_t i
    for i in range(n):
        t = &tris[i]
        key = v3_dot(t.n, v3_sub(q.p0, t.a))
        if f_max(key, key + v3_dot(t.n, q.axis)) <= -q.radius or f_min(key, key + v3_dot(t.n, q.axis)) >= q.radius:
            continue
        near = segment_triangle(q.p0, q.p1, t.a, t.b, t.c, t.n)
        if near.dist2 >= inside * inside:
            continue
        if near.dist2 > 0.0:
            key = near.dist2
            behind = v3_dot(t.n, v3_sub(near.on_a, t.a)) < 0.0
            best = &d.back if behind else &d.front
        else:
            # Of several triangles that the axis crosses, the nearest one to the centre decides.
            key = v3_len2(v3_sub(near.on_a, centre))
            behind = _is_behind(q, t)
            best = &d.crossed_back if behind else &d.crossed_front
        best[0] = f_min(best[0], key)
    if f_min(d.crossed_back, d.crossed_front) < NO_HIT:
        return d.crossed_back < d.crossed_front * SURELY_NEARER
    return d.back < d.front * SURELY_NEARER


cdef bint _is_far_from_lead(const capsule_cast* q, const triangle* t) noexcept nogil:
    """Whether a triangle is beyond the reach of the leading sphere, in a motion along the axis.

    RULES_2 7 compares the sphere around its corners with the path of the leading sphere. Only
    overlaps with the rest of the capsule are that far.
    """
    cdef vec3 centre = v3_scale(v3_add(t.a, v3_add(t.b, t.c)), 1.0 / 3.0)
    cdef vec3 apart = v3_sub(centre, q.p0 if v3_dot(q.p0, q.dir) >= v3_dot(q.p1, q.dir) else q.p1)
    cdef double corner2
    apart = v3_madd(apart, q.dir, -f_min(f_max(v3_dot(apart, q.dir), 0.0), q.limit))
    corner2 = f_max(v3_len2(v3_sub(t.a, centre)), f_max(v3_len2(v3_sub(t.b, centre)), v3_len2(v3_sub(t.c, centre))))
    return sqrt(v3_len2(apart)) - q.radius - LEAD_SLACK > sqrt(corner2)


cdef bint cast_triangles(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided,
                         bint skip_overlaps, toi_candidate* touched, int64_t* tested,
                         sweep_hit* hit) noexcept nogil:
    n = triangles_in_reach(q, tris, 0, NULL, n, two_sided, q.limit, q.passed, touched)
    if n == 0:
        return False
    return cast_selected(q, tris, NULL, NULL, n, two_sided, skip_overlaps, q.limit, q.hint, False, q.passed, touched,
                         tested, hit)


cdef inline bint _comes_first(const triangle* tris, const int32_t* source, int32_t i, int32_t k) noexcept nogil:
    """Whether candidate i is the first of two equal ones.

    By its corners, for twins by the user's index.
    """
    cdef int order = triangle_order(&tris[i], &tris[k])
    return order < 0 or (order == 0 and source != NULL and source[i] < source[k])


cdef int32_t _winner(const capsule_cast* q, const triangle* tris, const int32_t* source, toi_candidate* touched,
                     int32_t count, double first) noexcept nogil:
    """Which of the candidates it is (RULES 3); in three rounds, so that their order does not
    matter.
    """
    cdef double best_facing = -1.0, best_distance = NO_HIT
    cdef int32_t i, winner = -1
    for i in range(count):
        if touched[i].distance > first + (_same_time(q, first) if q.exact
                                          else CANDIDATE_WINDOW * f_max(1.0, touched[i].distance)):
            touched[i].tri = -1
        elif touched[i].facing > best_facing:
            best_facing = touched[i].facing
    for i in range(count):
        if (touched[i].tri >= 0 and touched[i].facing >= best_facing - FACING_TIE
                and touched[i].distance < best_distance):
            best_distance = touched[i].distance
    for i in range(count):
        if (touched[i].tri >= 0 and touched[i].facing >= best_facing - FACING_TIE
                and touched[i].distance <= best_distance + FACING_TIE):
            if winner < 0 or _comes_first(tris, source, touched[i].tri, touched[winner].tri):
                winner = i
    return winner


cdef inline bint _foot_on_face(vec3 p0, vec3 p1, const triangle* t, int longest, int32_t over, vec3* on_a,
                               vec3* on_b) noexcept nogil:
    """The closest points if one end over the triangle is nearest, as from segment_triangle.

    Else False.
    """
    cdef double h0 = v3_dot(v3_sub(p0, t.a), t.n)
    cdef double h1 = v3_dot(v3_sub(p1, t.a), t.n)
    cdef corners c = corners_of(t)
    if over == OVER_FIRST and 0.0 < h0 <= h1 and within_edge(p0, c.at[longest][0], c.at[longest + 1][0]):
        on_a[0] = p0
        on_b[0] = v3_madd(p0, t.n, -h0)
        return True
    if over == OVER_LAST and 0.0 < h1 < h0 and within_edge(p1, c.at[longest][0], c.at[longest + 1][0]):
        on_a[0] = p1
        on_b[0] = v3_madd(p1, t.n, -h1)
        return True
    return False


cdef inline void _describe(const capsule_cast* q, const triangle* t, int longest, double distance, int32_t over,
                           sweep_hit* hit) noexcept nogil:
    """Contact of a triangle with its longest_edge at a distance; over: an end_over."""
    cdef vec3 p0 = v3_madd(q.p0, q.dir, distance), p1 = v3_madd(q.p1, q.dir, distance), apart
    cdef closest_pair near
    cdef double length
    if not _foot_on_face(p0, p1, t, longest, over, &near.on_a, &near.on_b):
        near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    apart = v3_sub(near.on_a, near.on_b)
    length = v3_len(apart)
    hit.distance = distance
    hit.point = near.on_b
    hit.normal = t.n if length < (SHORTEST_SHARE * q.radius if q.exact else SHORTEST_NORMAL) else v3_scale(
        apart, 1.0 / length)


cdef void describe_contact(const capsule_cast* q, const triangle* t, double distance, sweep_hit* hit) noexcept nogil:
    cdef triangle turned = _flipped(t)
    _describe(q, &turned, longest_edge(turned.a, turned.b, turned.c), distance, OVER_NONE, hit)


cdef inline int32_t _planes_in_reach(const capsule_cast* q, const triangle* tris, int32_t first, uint64_t bits,
                                     double limit, toi_candidate* touched, int32_t m, bint watches,
                                     int32_t* unseen, int32_t* n_unseen) noexcept nogil:
    """Record the marked triangles that face the motion and are in reach.

    The lowest bit belongs to ``first``. ``watches``: also record the others in ``unseen``.
    """
    cdef double nd, h0, h1, low, high, reach = q.radius + q.slack
    cdef const triangle* t
    cdef int32_t i, n = n_unseen[0]
    while bits != 0:
        i = first + lowest_bit(bits)
        bits &= bits - 1
        t = &tris[i]
        nd = v3_dot(t.n, q.dir)
        h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
        h1 = h0 + v3_dot(t.n, q.axis)
        low = f_min(h0, h1)
        high = f_max(h0, h1)
        touched[m].distance = low
        touched[m].facing = nd
        touched[m].tri = i
        touched[m].mark = False
        # Always written, and counted if it faces and is in reach (is_plane_ahead): no branch to
        # mispredict.
        m += f_max(nd, f_max(low - reach + nd * limit, -reach - high)) <= 0.0
        if watches:
            # It faces away, and the capsule starts at or behind it and reaches it: all three terms
            # are negative.
            unseen[n] = i
            n += f_max(-nd, f_max(low - reach, -reach - high - nd * limit)) < 0.0
    if watches:
        n_unseen[0] = n
    return m


cdef bint _overlaps_from_behind(const capsule_cast* q, const triangle* tris, const int32_t* which,
                                int32_t n) noexcept nogil:
    """Whether the capsule overlaps one of these triangles, with its centre behind it."""
    cdef const triangle* t
    cdef triangle_aid aid
    cdef closest_pair near
    cdef double h0, h1
    cdef int32_t k
    for k in range(n):
        t = &tris[which[k]]
        h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
        h1 = h0 + v3_dot(t.n, q.axis)
        if h0 + h1 < 0.0 and f_max(h0, h1) > -q.radius - q.slack:
            aid = triangle_aid_of(t)
            if _overlaps(q, t, f_min(h0, h1), &aid, &near):
                return True
    return False


cdef inline uint64_t _without(uint64_t bits, int32_t i) noexcept nogil:
    """Clear bit i, if there is one."""
    return bits & ~(<uint64_t>(<uint32_t>i < 64) << (i & 63))


cdef inline int32_t _lanes_in_reach(const capsule_cast* q, const triangle* tris, const float* boxes, int32_t n,
                                    int32_t but, double limit, toi_candidate* touched, bint watches,
                                    int32_t* unseen, int32_t* n_unseen) noexcept nogil:
    cdef aabb4_box path
    cdef int32_t first = 0, m = 0
    n_unseen[0] = 0
    if n <= FEW:
        # For few triangles, testing all planes is faster.
        m = _planes_in_reach(q, tris, 0, _without((<uint64_t>1 << n) - 1, but), limit, touched, 0, watches,
                             unseen, n_unseen)
    else:
        path = aabb4_path(q, limit)
        while first < n:
            m = _planes_in_reach(q, tris, first,
                                 _without(aabb4_overlap_mask(boxes, first, n, &path), but - first), limit, touched,
                                 m, watches, unseen, n_unseen)
            first += 64
    return -1 if watches and n_unseen[0] > 0 and _overlaps_from_behind(q, tris, unseen, n_unseen[0]) else m


cdef int32_t aabb4_in_reach(const capsule_cast* q, const triangle* tris, const float* boxes, int32_t n, int32_t but,
                            double limit, toi_candidate* touched, int32_t* unseen,
                            int32_t* n_unseen) noexcept nogil:
    # Separate, so that other calls skip it.
    if not (q.passed != NULL or q.meets_back_rims) or not (q.watches or q.passing):
        return _lanes_in_reach(q, tris, boxes, n, but, limit, touched, False, unseen, n_unseen)
    return -1 if q.passing else _lanes_in_reach(q, tris, boxes, n, but, limit, touched, True, unseen, n_unseen)


cdef bint hits_same_face(const capsule_cast* q, const triangle* t, toi_candidate* found) noexcept nogil:
    cdef double nd = v3_dot(t.n, q.dir), h0, h1, low, x, y, z
    cdef bint last, leads
    if nd >= -SHALLOW:
        return False
    h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
    # Consistent with _planes_in_reach: it would reject the same triangles.
    if is_plane_ahead(f_min(h0, h0 + v3_dot(t.n, q.axis)), nd, q.radius + q.slack, q.limit):
        return False
    # As in _capsule_triangle and _sphere_face.
    h1 = v3_dot(v3_sub(q.p1, t.a), t.n)
    low = f_min(h0, h1)
    if low < q.radius or low - q.radius > -nd * q.limit:
        return False
    last = h0 > h1
    # It rarely matters whether they are parallel.
    leads = v3_dot(q.axis, q.dir) > 0.0
    if last != leads and _is_parallel(q.axis, q.dir):
        last = leads
    found.distance = ((h1 if last else h0) - q.radius) / -nd
    if found.distance > q.limit:
        return False
    found.facing = -nd
    found.mark = OVER_LAST if last else OVER_FIRST
    return _is_over(v3_madd(q.p1 if last else q.p0, q.dir, found.distance), t, &x, &y, &z)


cdef bint is_unique_hit(const capsule_cast* q, const triangle* tris, triangle_aid* aids, int32_t n,
                        const toi_candidate* touched, const toi_candidate* found, double limit,
                        sweep_hit* hit) noexcept nogil:
    cdef double ahead = q.slack + SURELY_AHEAD * q.size
    cdef const triangle* t
    cdef int32_t k
    for k in range(n):
        t = &tris[touched[k].tri]
        if (not _stays_beside(q, t, touched[k].facing, touched[k].distance, limit, ahead, &aids[touched[k].tri])
                and not _passes_by(q.p0, q.axis, q.radius, q.dir, t)):
            return False
    hit.tri = found.tri
    hit.overlapping = False
    hit.by_rim = False
    _describe(q, &tris[hit.tri], aids[hit.tri].longest, found.distance, found.mark, hit)
    return True


cdef bint cast_selected(const capsule_cast* q, const triangle* tris, const int32_t* source, triangle_aid* aids,
                        int32_t n, bint two_sided, bint skip_overlaps, double limit, int32_t hint, bint known,
                        int* passed, toi_candidate* touched, int64_t* tested, sweep_hit* hit) noexcept nogil:
    cdef int32_t i, k, count = 0, winner = 0, over
    cdef double nd, low, distance, first = NO_HIT, longest = limit, lead, trails, ta, tb, tc, rim = NO_HIT
    cdef const triangle* t
    cdef triangle turned
    cdef toi_candidate swap
    cdef closest_pair near
    cdef vec3 axis
    cdef bint overlapping = False, left_out = False, along
    cdef bint parallel = _is_parallel(q.axis, q.dir)
    cdef double ahead = q.slack + SURELY_AHEAD * q.size, reach = q.radius + q.slack
    cdef triangle_aid* aid
    cdef triangle_aid own
    cdef int base
    lead = f_max(v3_dot(q.p0, q.dir), v3_dot(q.p1, q.dir))
    trails = lead - (q.radius + TRAILING_SLACK) if parallel and q.trailing_rule else -NO_HIT
    if known:
        count = 1
        first = touched[0].distance
        limit = f_min(longest, latest_candidate(q, first))
    elif hint >= 0:
        # The hinted triangle first: if it is hit again, its distance bounds the rest.
        for k in range(1, n):
            if touched[k].tri == hint:
                swap = touched[k]
                touched[k] = touched[0]
                touched[0] = swap
                break
    for k in range(count, n):
        # Entries before this one are results already; those from here on are still to be tested.
        i = touched[k].tri
        low = touched[k].distance
        nd = touched[k].facing
        t = &tris[i]
        if is_plane_ahead(low, nd, reach, limit) and not (nd > 0.0 and q.culls):
            continue
        if aids == NULL:
            own = triangle_aid_of(t)
            aid = &own
        else:
            aid = &aids[i]
        if touched[k].mark:
            turned = _flipped(t)
            t = &turned
        elif nd > 0.0 and q.culls:
            if passed != NULL and (q.passing or _is_behind(q, t)) and _overlaps(q, t, low, aid, &near):
                passed[0] |= PASSED_BACK
            continue
        elif nd == 0.0 and q.culls_parallel:
            continue
        # Skip triangles behind the motion or beyond its end.
        ta = v3_dot(t.a, q.dir)
        tb = v3_dot(t.b, q.dir)
        tc = v3_dot(t.c, q.dir)
        if (f_max(ta, f_max(tb, tc)) < trails) | (f_min(ta, f_min(tb, tc)) - lead > q.radius + limit + ahead):
            continue
        tested[0] += 1
        # The hinted one and the first are likely hit on their faces, and the others are likely
        # missed.
        if i != hint and _stays_beside(q, t, nd, low, limit, ahead, aid):
            continue
        if low < q.radius and _overlaps(q, t, low, aid, &near):
            if parallel and q.trailing_rule and _is_far_from_lead(q, t):
                continue
            if skip_overlaps:
                # RULES_2 5: the shape gives no hit; in FIX_BACK_FACES this triangle gives none.
                left_out |= passed == NULL
                continue
            if passed != NULL and not two_sided and (q.passing or _is_behind(q, t)):
                passed[0] |= PASSED_OVERLAP
                continue
            # If a triangle overlaps, a touch at distance 0 does not count, in any order.
            if not overlapping:
                count = 0
            overlapping = True
            first = limit = 0.0
            touched[count].distance = 0.0
            touched[count].facing = fabs(nd)
            touched[count].tri = i
            touched[count].mark = OVER_NONE
            count += 1
            continue
        if overlapping or left_out:
            continue
        along = False
        if fabs(nd) <= FACING_TIE:
            axis = v3_unit(v3_sub(q.p1, q.p0))
            along = not v3_is_zero(axis) and fabs(v3_dot(t.n, axis)) <= FACING_TIE
            # A capsule that only touches the plane slides along it.
            if along and (not q.meets_rims or fabs(low) >= _inside(q.p0, q.p1, q.radius) - FACING_TIE * v3_len(q.axis)):
                continue
        if count > 0 and _passes_by(q.p0, q.axis, q.radius, q.dir, t):
            continue
        distance = _capsule_triangle(q, parallel, count > 0, t, limit, &over)
        if distance >= NO_HIT:
            continue
        touched[count].distance = distance
        touched[count].facing = fabs(nd)
        touched[count].tri = i
        touched[count].mark = over
        count += 1
        if distance < first:
            first = distance
            limit = f_min(longest, latest_candidate(q, first))
        if along:
            rim = f_min(rim, distance)
    if left_out or count == 0:
        return False
    if count > 1:
        winner = _winner(q, tris, source, touched, count, first)
    hit.tri = touched[winner].tri
    t = &tris[hit.tri]
    if v3_dot(t.n, q.dir) > 0.0 and two_sided:
        turned = _flipped(t)
        t = &turned
        base = longest_edge(t.a, t.b, t.c)
    else:
        base = longest_edge(t.a, t.b, t.c) if aids == NULL else aids[hit.tri].longest
    hit.overlapping = overlapping
    hit.by_rim = not overlapping and rim < NO_HIT and (rim == first or touched[winner].facing <= FACING_TIE)
    # Where it was found over a face, and what counts is the moment at which it was.
    over = touched[winner].mark if touched[winner].distance == first else OVER_NONE
    _describe(q, t, base, first, over, hit)
    if overlapping:
        hit.normal = v3_neg(q.dir)
    return True


cdef inline bint _cast_round(const capsule_cast* q, vec3 q0, vec3 q1, double radius, double distance, bint overlapping,
                             sweep_hit* hit) noexcept nogil:
    """Fill in the hit of a round shape (a segment with a radius)."""
    cdef closest_pair near
    if distance >= NO_HIT:
        return False
    near = segment_segment(v3_madd(q.p0, q.dir, distance), v3_madd(q.p1, q.dir, distance), q0, q1)
    hit.distance = distance
    hit.overlapping = overlapping
    hit.tri = -1
    hit.normal = _away(near, q.dir)
    hit.point = v3_madd(near.on_b, hit.normal, radius)
    if overlapping:
        hit.normal = v3_neg(q.dir)
    return True


cdef bint cast_sphere(const capsule_cast* q, vec3 centre, double radius, sweep_hit* hit) noexcept nogil:
    cdef double sum = q.radius + radius, inside = _inside(q.p0, q.p1, q.radius) + radius
    if point_segment(centre, q.p0, q.p1).dist2 < inside * inside:
        return _cast_round(q, centre, centre, radius, 0.0, True, hit)
    return _cast_round(q, centre, centre, radius,
                       sphere_segment(q.p0, q.dir, sum, centre, v3_sub(centre, v3_sub(q.p1, q.p0)), q.limit),
                       False, hit)


cdef bint cast_capsule(const capsule_cast* q, vec3 q0, vec3 q1, double radius, sweep_hit* hit) noexcept nogil:
    cdef double sum = q.radius + radius, inside = _inside(q.p0, q.p1, q.radius) + radius
    if segment_segment(q.p0, q.p1, q0, q1).dist2 < inside * inside:
        return _cast_round(q, q0, q1, radius, 0.0, True, hit)
    return _cast_round(q, q0, q1, radius, capsule_segment_time(q.p0, q.p1, sum, q.dir, q0, q1, q.limit), False, hit)


cdef bint cast_plane(const capsule_cast* q, vec3 normal, double offset, sweep_hit* hit) noexcept nogil:
    cdef double h0 = v3_dot(normal, q.p0) - offset
    cdef double h1 = v3_dot(normal, q.p1) - offset
    cdef double low = f_min(h0, h1)
    cdef double nd = v3_dot(normal, q.dir)
    cdef vec3 foot = q.p0 if h0 <= h1 else q.p1
    hit.tri = -1
    if nd > 0.0 and q.culls:
        return False
    if low < _inside(q.p0, q.p1, q.radius):
        hit.distance = 0.0
        hit.overlapping = True
        hit.normal = v3_neg(q.dir)
        hit.point = v3_madd(foot, normal, -low)
        return True
    if nd >= 0.0 or low - q.radius > -nd * q.limit:
        return False
    hit.distance = f_max(0.0, (low - q.radius) / -nd)
    hit.overlapping = False
    hit.normal = normal
    hit.point = v3_madd(v3_madd(foot, q.dir, hit.distance), normal, -q.radius)
    return True
