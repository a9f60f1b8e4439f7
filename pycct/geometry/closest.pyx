# cython: language_level=3
"""Closest points between points, segments, triangles and boxes. See the header."""
from libc.math cimport sqrt

from pycct.geometry.vec cimport (
    f_clamp,
    f_max,
    v3,
    v3_cross,
    v3_dist2,
    v3_dot,
    v3_len2,
    v3_lerp,
    v3_madd,
    v3_sub,
    vec3,
)

# A triangle is degenerate if its cross product is at most this times its longest edge squared
# (RULES 3).
cdef double DEGENERATE = 1e-12

# Below this ratio of cross product to longest edge squared, the plain cross product of a triangle
# has lost too many digits.
cdef double SLIVER = 1e-3

# 2 ** 27 + 1 splits a double into halves whose products are exact.
cdef double SPLIT = 134217729.0


cdef closest_pair point_segment(vec3 p, vec3 a, vec3 b) noexcept nogil:
    cdef double t = point_segment_parameter(p, a, b)
    return _pair(p, v3_lerp(a, b, t), 0.0, t)


cdef closest_pair segment_segment(vec3 p0, vec3 p1, vec3 q0, vec3 q1) noexcept nogil:
    return segment_segment_here(p0, p1, q0, q1)


cdef closest_pair nearly_parallel(vec3 p0, vec3 p1, vec3 q0, vec3 q1, closest_pair best) noexcept nogil:
    # Cross products lose half as many digits to a small angle.
    cdef vec3 d1 = v3_sub(p1, p0)
    cdef vec3 d2 = v3_sub(q1, q0)
    cdef vec3 r = v3_sub(p0, q0)
    cdef vec3 m = v3_cross(d1, d2)
    cdef double s, t, denom = v3_len2(m)
    cdef closest_pair other
    if denom > 0.0:
        s = f_clamp(v3_dot(m, v3_cross(d2, r)) / denom, 0.0, 1.0)
        t = f_clamp((v3_dot(d1, d2) * s + v3_dot(d2, r)) / v3_len2(d2), 0.0, 1.0)
        best = _pair(v3_madd(p0, d1, s), v3_madd(q0, d2, t), s, t)
    t = point_segment_parameter(p0, q0, q1)
    other = _pair(p0, v3_lerp(q0, q1, t), 0.0, t)
    if other.dist2 < best.dist2:
        best = other
    t = point_segment_parameter(p1, q0, q1)
    other = _pair(p1, v3_lerp(q0, q1, t), 1.0, t)
    if other.dist2 < best.dist2:
        best = other
    s = point_segment_parameter(q0, p0, p1)
    other = _pair(v3_lerp(p0, p1, s), q0, s, 0.0)
    if other.dist2 < best.dist2:
        best = other
    s = point_segment_parameter(q1, p0, p1)
    other = _pair(v3_lerp(p0, p1, s), q1, s, 1.0)
    if other.dist2 < best.dist2:
        best = other
    return best


cdef struct _exact:     # hi + lo, with hi the nearest double
    double hi
    double lo


cdef inline _exact _difference(double a, double b) noexcept nogil:
    """The exact difference a - b (Knuth's two-sum)."""
    cdef _exact r
    cdef double t
    r.hi = a - b
    t = r.hi - a
    r.lo = (a - (r.hi - t)) - (b + t)
    return r


cdef inline _exact _product(double a, double b) noexcept nogil:
    """The exact product a * b (Dekker's product)."""
    cdef _exact r
    cdef double t = SPLIT * a, a1 = t - (t - a), a2 = a - a1, b1, b2
    t = SPLIT * b
    b1 = t - (t - b)
    b2 = b - b1
    r.hi = a * b
    r.lo = a2 * b2 - (((r.hi - a1 * b1) - a2 * b1) - a1 * b2)
    return r


cdef inline double _determinant(_exact a, _exact b, _exact c, _exact d) noexcept nogil:
    """a * b - c * d, accurate to the last digits despite cancellation."""
    cdef _exact p = _product(a.hi, b.hi), q = _product(c.hi, d.hi), r = _difference(p.hi, q.hi)
    return r.hi + (r.lo + (p.lo - q.lo) + (a.hi * b.lo + a.lo * b.hi) - (c.hi * d.lo + c.lo * d.hi))


cdef vec3 _sliver_cross(vec3 a, vec3 b, vec3 c) noexcept nogil:
    """Cross product of b - a and c - a, with the digits that plain doubles lose in slivers."""
    cdef _exact ux = _difference(b.x, a.x), uy = _difference(b.y, a.y), uz = _difference(b.z, a.z)
    cdef _exact vx = _difference(c.x, a.x), vy = _difference(c.y, a.y), vz = _difference(c.z, a.z)
    return v3(_determinant(uy, vz, uz, vy), _determinant(uz, vx, ux, vz), _determinant(ux, vy, uy, vx))


cdef vec3 triangle_normal(vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef vec3 u = v3_sub(b, a)
    cdef vec3 v = v3_sub(c, a)
    cdef double longest2 = f_max(v3_len2(u), f_max(v3_len2(v), v3_dist2(c, b)))
    cdef vec3 n = v3_cross(u, v)
    cdef double m = sqrt(v3_len2(n))
    if m <= DEGENERATE * longest2 or m == 0.0:
        return v3(0.0, 0.0, 0.0)
    if m < SLIVER * longest2:
        n = _sliver_cross(a, b, c)
        m = sqrt(v3_len2(n))
        if m == 0.0:
            return n
    return v3(n.x / m, n.y / m, n.z / m)


cdef inline bint _inside(vec3 x, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil:
    """True if the projection of x along n is inside the triangle."""
    cdef vec3 u = v3_sub(b, a)
    cdef vec3 v = v3_sub(c, b)
    cdef vec3 w = v3_sub(a, c)
    return (v3_dot(v3_cross(u, v3_sub(x, a)), n) >= 0.0
            and v3_dot(v3_cross(v, v3_sub(x, b)), n) >= 0.0
            and v3_dot(v3_cross(w, v3_sub(x, c)), n) >= 0.0
            and within_ends(x, a, b, c))


cdef vec3 point_triangle(vec3 p, vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef vec3 n = triangle_normal(a, b, c)
    cdef closest_pair best, other
    if (n.x != 0.0 or n.y != 0.0 or n.z != 0.0) and _inside(p, a, b, c, n):
        return v3_madd(p, n, -v3_dot(v3_sub(p, a), n))
    best = point_segment(p, a, b)
    other = point_segment(p, b, c)
    if other.dist2 < best.dist2:
        best = other
    other = point_segment(p, c, a)
    if other.dist2 < best.dist2:
        best = other
    return best.on_b


cdef closest_pair segment_triangle(vec3 p0, vec3 p1, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil:
    cdef closest_pair best, other
    cdef double h0, h1, t
    cdef vec3 x
    cdef bint found = False
    if n.x != 0.0 or n.y != 0.0 or n.z != 0.0:
        h0 = v3_dot(v3_sub(p0, a), n)
        h1 = v3_dot(v3_sub(p1, a), n)
        if (h0 <= 0.0 <= h1 or h1 <= 0.0 <= h0) and h0 != h1:
            t = h0 / (h0 - h1)
            x = v3_lerp(p0, p1, t)
            if _inside(x, a, b, c, n):
                return _pair(x, x, t, 0.0)
        # If the nearer end projects into the face and the segment does not cross the plane, that
        # end is the closest point.
        if _inside(p0, a, b, c, n):
            best = _pair(p0, v3_madd(p0, n, -h0), 0.0, 0.0)
            found = True
            if (0.0 <= h0 <= h1) or (h1 <= h0 <= 0.0):
                return best
        if _inside(p1, a, b, c, n):
            other = _pair(p1, v3_madd(p1, n, -h1), 1.0, 0.0)
            if (0.0 <= h1 <= h0) or (h0 <= h1 <= 0.0):
                return other
            if not found or other.dist2 < best.dist2:
                best = other
                found = True
    other = segment_segment(p0, p1, a, b)
    if not found or other.dist2 < best.dist2:
        best = other
    other = segment_segment(p0, p1, b, c)
    if other.dist2 < best.dist2:
        best = other
    other = segment_segment(p0, p1, c, a)
    if other.dist2 < best.dist2:
        best = other
    best.t = 0.0
    return best


cdef vec3 point_box(vec3 p, vec3 half) noexcept nogil:
    return v3(f_clamp(p.x, -half.x, half.x), f_clamp(p.y, -half.y, half.y), f_clamp(p.z, -half.z, half.z))


cdef inline double _excess(double x, double h) noexcept nogil:
    return x - h if x > h else (x + h if x < -h else 0.0)


cdef inline double _slope(vec3 p, vec3 d, vec3 half, int face) noexcept nogil:
    """Half the rate of change of the squared distance to the box at p along d.

    face: axis of the face that contains p, -1 for none. That axis is skipped, because the rounding
    of p would outweigh the other axes.
    """
    return ((0.0 if face == 0 else d.x * _excess(p.x, half.x)) + (0.0 if face == 1 else d.y * _excess(p.y, half.y))
            + (0.0 if face == 2 else d.z * _excess(p.z, half.z)))


cdef struct _break:
    double t
    int face    # axis perpendicular to the face


cdef inline int _breaks(_break* ts, int n, double x, double d, double h, int face) noexcept nogil:
    """Add the parameters in (0, 1) at which x + d t crosses -h and h."""
    cdef double t
    if d != 0.0:
        t = (h - x) / d
        if 0.0 < t < 1.0:
            ts[n].t = t
            ts[n].face = face
            n += 1
        t = (-h - x) / d
        if 0.0 < t < 1.0:
            ts[n].t = t
            ts[n].face = face
            n += 1
    return n


cdef inline void _add_part(double x, double d, double middle, double h, double* numerator,
                           double* denominator) noexcept nogil:
    """Add one axis to numerator and denominator of t, if the piece at ``middle`` is outside the box
    on it.
    """
    if middle > h:
        numerator[0] += d * (h - x)
        denominator[0] += d * d
    elif middle < -h:
        numerator[0] += d * (-h - x)
        denominator[0] += d * d


cdef closest_pair segment_box(vec3 p0, vec3 p1, vec3 half) noexcept nogil:
    # The squared distance is convex and piecewise quadratic in t. Find the piece on which its slope
    # changes sign, and solve there.
    cdef vec3 d = v3_sub(p1, p0)
    cdef _break[6] ts
    cdef _break b
    cdef int n, i, j
    cdef double lo = 0.0, hi = 1.0, middle, t, numerator = 0.0, denominator = 0.0
    cdef vec3 on_a
    if _slope(p0, d, half, -1) >= 0.0:
        t = 0.0
    elif _slope(p1, d, half, -1) < 0.0:
        t = 1.0
    else:
        n = _breaks(ts, 0, p0.x, d.x, half.x, 0)
        n = _breaks(ts, n, p0.y, d.y, half.y, 1)
        n = _breaks(ts, n, p0.z, d.z, half.z, 2)
        for i in range(1, n):
            b = ts[i]
            j = i - 1
            while j >= 0 and ts[j].t > b.t:
                ts[j + 1] = ts[j]
                j -= 1
            ts[j + 1] = b
        for i in range(n):
            if _slope(v3_madd(p0, d, ts[i].t), d, half, ts[i].face) >= 0.0:
                hi = ts[i].t
                break
            lo = ts[i].t
        # The faces of this piece decide; slopes at the ends of the piece may be rounding only.
        middle = 0.5 * (lo + hi)
        _add_part(p0.x, d.x, p0.x + d.x * middle, half.x, &numerator, &denominator)
        _add_part(p0.y, d.y, p0.y + d.y * middle, half.y, &numerator, &denominator)
        _add_part(p0.z, d.z, p0.z + d.z * middle, half.z, &numerator, &denominator)
        # Inside the box the slope is zero over a whole interval; the result is its start.
        t = f_clamp(numerator / denominator, lo, hi) if denominator > 0.0 else lo
    on_a = v3_madd(p0, d, t)
    return _pair(on_a, point_box(on_a, half), t, 0.0)
