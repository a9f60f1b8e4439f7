# cython: language_level=3
"""Closest points between points, segments, triangles and boxes. See the header."""
from libc.math cimport sqrt

from pycct._vec cimport (
    f_clamp,
    f_max,
    v3,
    v3_cross,
    v3_dist2,
    v3_dot,
    v3_len2,
    v3_lerp,
    v3_madd,
    v3_neg,
    v3_sub,
    vec3,
)

# Below this squared sine two segments count as nearly parallel and their end
# points are tried as well: the interior solution has lost half its digits.
cdef double NEARLY_PARALLEL2 = 1e-6

# A triangle is degenerate when its cross product is no longer than this times
# its longest edge squared (RULES 3).
cdef double DEGENERATE = 1e-12

# Below this ratio of cross product to longest edge squared a triangle's plain cross
# product has lost too many digits.
cdef double SLIVER = 1e-3


cdef inline closest_pair _pair(vec3 on_a, vec3 on_b, double s, double t) noexcept nogil:
    cdef closest_pair r
    r.on_a = on_a
    r.on_b = on_b
    r.dist2 = v3_dist2(on_a, on_b)
    r.s = s
    r.t = t
    return r


cdef double point_segment_parameter(vec3 p, vec3 a, vec3 b) noexcept nogil:
    cdef vec3 d = v3_sub(b, a)
    cdef double l2 = v3_len2(d)
    if l2 <= 0.0:
        return 0.0
    return f_clamp(v3_dot(v3_sub(p, a), d) / l2, 0.0, 1.0)


cdef closest_pair point_segment(vec3 p, vec3 a, vec3 b) noexcept nogil:
    cdef double t = point_segment_parameter(p, a, b)
    return _pair(p, v3_lerp(a, b, t), 0.0, t)


cdef closest_pair segment_segment(vec3 p0, vec3 p1, vec3 q0, vec3 q1) noexcept nogil:
    cdef vec3 d1 = v3_sub(p1, p0)
    cdef vec3 d2 = v3_sub(q1, q0)
    cdef vec3 r = v3_sub(p0, q0)
    cdef vec3 m
    cdef double a = v3_len2(d1)
    cdef double e = v3_len2(d2)
    cdef double b, c, f, s, t, denom
    cdef closest_pair best, other
    if a <= 0.0:
        t = point_segment_parameter(p0, q0, q1)
        return _pair(p0, v3_lerp(q0, q1, t), 0.0, t)
    if e <= 0.0:
        s = point_segment_parameter(q0, p0, p1)
        return _pair(v3_lerp(p0, p1, s), q0, s, 0.0)
    b = v3_dot(d1, d2)
    c = v3_dot(d1, r)
    f = v3_dot(d2, r)
    denom = a * e - b * b
    s = f_clamp((b * f - c * e) / denom, 0.0, 1.0) if denom > 0.0 else 0.0
    t = (b * s + f) / e
    if t < 0.0:
        t = 0.0
        s = f_clamp(-c / a, 0.0, 1.0)
    elif t > 1.0:
        t = 1.0
        s = f_clamp((b - c) / a, 0.0, 1.0)
    best = _pair(v3_madd(p0, d1, s), v3_madd(q0, d2, t), s, t)
    if denom > NEARLY_PARALLEL2 * a * e:
        return best
    # The same by cross products, which lose half as many digits to the small angle.
    m = v3_cross(d1, d2)
    denom = v3_len2(m)
    if denom > 0.0:
        s = f_clamp(v3_dot(m, v3_cross(d2, r)) / denom, 0.0, 1.0)
        t = f_clamp((b * s + f) / e, 0.0, 1.0)
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


cdef vec3 triangle_normal(vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef vec3 u = v3_sub(b, a)
    cdef vec3 v = v3_sub(c, a)
    cdef vec3 w = v3_sub(c, b)
    cdef double u2 = v3_len2(u)
    cdef double v2 = v3_len2(v)
    cdef double longest2 = f_max(u2, f_max(v2, v3_len2(w)))
    cdef vec3 n = v3_cross(u, v)
    cdef double m = sqrt(v3_len2(n))
    if m <= DEGENERATE * longest2 or m == 0.0:
        return v3(0.0, 0.0, 0.0)
    if m < SLIVER * longest2:
        # Exactly across the longest edge, however thin the triangle.
        if u2 == longest2:
            w = u
        else:
            if v2 == longest2:
                w = v
            v = v3_neg(u)
        # Here v leads from w to the third vertex, up to a multiple of w.
        n = v3_cross(w, v3_madd(v, w, -v3_dot(v, w) / longest2))
        m = sqrt(v3_len2(n))
    return v3(n.x / m, n.y / m, n.z / m)


cdef inline bint _inside(vec3 x, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil:
    """True when x, taken along n, falls into the triangle."""
    return (v3_dot(v3_cross(v3_sub(b, a), v3_sub(x, a)), n) >= 0.0
            and v3_dot(v3_cross(v3_sub(c, b), v3_sub(x, b)), n) >= 0.0
            and v3_dot(v3_cross(v3_sub(a, c), v3_sub(x, c)), n) >= 0.0)


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
        # The end nearer to the plane, when it lies over the face, is the answer
        # if the segment does not cross the plane.
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


cdef inline double _slope(vec3 p0, vec3 d, double t, vec3 half) noexcept nogil:
    """Half the derivative by t of the squared distance from p0 + d t to the box."""
    return (d.x * _excess(p0.x + d.x * t, half.x) + d.y * _excess(p0.y + d.y * t, half.y)
            + d.z * _excess(p0.z + d.z * t, half.z))


cdef inline int _breaks(double* ts, int n, double x, double d, double h) noexcept nogil:
    """Add the parameters in (0, 1) at which x + d t crosses -h and h."""
    cdef double t
    if d != 0.0:
        t = (h - x) / d
        if 0.0 < t < 1.0:
            ts[n] = t
            n += 1
        t = (-h - x) / d
        if 0.0 < t < 1.0:
            ts[n] = t
            n += 1
    return n


cdef closest_pair segment_box(vec3 p0, vec3 p1, vec3 half) noexcept nogil:
    # The squared distance is convex and piecewise quadratic in t: find the piece
    # on which its slope changes sign, and solve there.
    cdef vec3 d = v3_sub(p1, p0)
    cdef double[7] ts
    cdef int n = 0, i, j
    cdef double lo = 0.0, g_lo, g, t, x
    cdef vec3 on_a
    g_lo = _slope(p0, d, 0.0, half)
    if g_lo >= 0.0:
        t = 0.0
    elif _slope(p0, d, 1.0, half) <= 0.0:
        t = 1.0
        # Inside the box the slope is zero over a whole stretch: take its start.
        if v3_dist2(p1, point_box(p1, half)) == 0.0:
            n = -1
    else:
        n = -1
    if n == -1:
        n = _breaks(ts, 0, p0.x, d.x, half.x)
        n = _breaks(ts, n, p0.y, d.y, half.y)
        n = _breaks(ts, n, p0.z, d.z, half.z)
        for i in range(1, n):
            x = ts[i]
            j = i - 1
            while j >= 0 and ts[j] > x:
                ts[j + 1] = ts[j]
                j -= 1
            ts[j + 1] = x
        ts[n] = 1.0
        t = 1.0
        for i in range(n + 1):
            g = _slope(p0, d, ts[i], half)
            if g >= 0.0:
                t = lo + (ts[i] - lo) * (g_lo / (g_lo - g))
                break
            lo = ts[i]
            g_lo = g
    on_a = v3_madd(p0, d, t)
    return _pair(on_a, point_box(on_a, half), t, 0.0)
