# cython: language_level=3
"""Closest points between points, segments, triangles and boxes.

All functions are pure, and take and return values. They accept degenerate, parallel, zero-length
and zero-area input.
"""
from pycct.geometry.vec cimport f_clamp, v3_dist2, v3_dot, v3_len2, v3_lerp, v3_madd, v3_sub, vec3


# Closest points of two shapes.
cdef struct closest_pair:
    vec3 on_a
    vec3 on_b
    double dist2        # squared distance
    double s            # parameter on the first segment, 0 to 1 (0 for a point)
    double t            # parameter on the second segment, 0 to 1 (0 for none)


cdef inline closest_pair _pair(vec3 on_a, vec3 on_b, double s, double t) noexcept nogil:
    cdef closest_pair r
    r.on_a = on_a
    r.on_b = on_b
    r.dist2 = v3_dist2(on_a, on_b)
    r.s = s
    r.t = t
    return r


# Parameter in [0, 1] of the point of segment ab nearest to p; 0 when a == b.
cdef inline double point_segment_parameter(vec3 p, vec3 a, vec3 b) noexcept nogil:
    cdef vec3 d = v3_sub(b, a)
    cdef double l2 = v3_len2(d)
    if l2 <= 0.0:
        return 0.0
    return f_clamp(v3_dot(v3_sub(p, a), d) / l2, 0.0, 1.0)


# The longest edge of a triangle: 0 from a to b, 1 from b to c, 2 from c to a. The first of equal
# edges counts.
cdef inline int longest_edge(vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef double u2 = v3_dist2(b, a), v2 = v3_dist2(c, b), w2 = v3_dist2(a, c)
    if u2 >= v2 and u2 >= w2:
        return 0
    return 1 if v2 >= w2 else 2


# Whether the projection of x on an edge is between its ends.
cdef inline bint within_edge(vec3 x, vec3 a, vec3 b) noexcept nogil:
    cdef vec3 u = v3_sub(b, a)
    cdef double along = v3_dot(v3_sub(x, a), u)
    return 0.0 <= along <= v3_len2(u)


# The same for a triangle's longest edge. Beyond the sharp end of a sliver, rounding makes two edges
# one line, so the products do not show on which side of them x is.
cdef inline bint within_ends(vec3 x, vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef int k = longest_edge(a, b, c)
    if k == 0:
        return within_edge(x, a, b)
    return within_edge(x, b, c) if k == 1 else within_edge(x, c, a)


cdef closest_pair point_segment(vec3 p, vec3 a, vec3 b) noexcept nogil
cdef closest_pair segment_segment(vec3 p0, vec3 p1, vec3 q0, vec3 q1) noexcept nogil
cdef vec3 point_triangle(vec3 p, vec3 a, vec3 b, vec3 c) noexcept nogil
# n: unit normal of the triangle, zero for a degenerate triangle.
cdef closest_pair segment_triangle(vec3 p0, vec3 p1, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil
# The solid box [-half, half]. A segment that enters it has distance 0.
cdef closest_pair segment_box(vec3 p0, vec3 p1, vec3 half) noexcept nogil
cdef vec3 point_box(vec3 p, vec3 half) noexcept nogil
# Unit normal of a triangle, zero if it is degenerate (cross product <= 1e-12 times the longest edge
# squared, RULES 3).
cdef vec3 triangle_normal(vec3 a, vec3 b, vec3 c) noexcept nogil


# For segment_segment: the nearer pair of ``best`` and the pairs for nearly parallel segments.
cdef closest_pair nearly_parallel(vec3 p0, vec3 p1, vec3 q0, vec3 q1, closest_pair best) noexcept nogil


# segment_segment as an inline function, for hot loops.
cdef inline closest_pair segment_segment_here(vec3 p0, vec3 p1, vec3 q0, vec3 q1) noexcept nogil:
    cdef vec3 d1 = v3_sub(p1, p0)
    cdef vec3 d2 = v3_sub(q1, q0)
    cdef vec3 r = v3_sub(p0, q0)
    cdef double a = v3_len2(d1)
    cdef double e = v3_len2(d2)
    cdef double b, c, f, s, t, denom
    cdef closest_pair best
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
    # Below this squared sine the solution has lost half its digits, so the end points are tried as
    # well.
    if denom > 1e-6 * a * e:
        return best
    return nearly_parallel(p0, p1, q0, q1, best)
