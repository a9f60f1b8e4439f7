# cython: language_level=3
"""Vectors, quaternions, 3x3 matrices and boxes: small C structs, inline, without the GIL.

Every sum is written in one fixed order (x, then y, then z), because the results
of the package are promised to the bit.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy


cdef struct vec3:
    double x
    double y
    double z


cdef struct quat:       # x, y, z, w; unit length
    double x
    double y
    double z
    double w


cdef struct mat3:       # rows
    vec3 r0
    vec3 r1
    vec3 r2


cdef struct aabb:       # lo <= hi on every axis, or empty when lo > hi
    vec3 lo
    vec3 hi


cdef inline vec3 v3(double x, double y, double z) noexcept nogil:
    cdef vec3 r
    r.x = x
    r.y = y
    r.z = z
    return r


cdef inline vec3 v3_load(const double* p) noexcept nogil:
    return v3(p[0], p[1], p[2])


cdef inline void v3_store(double* p, vec3 a) noexcept nogil:
    p[0] = a.x
    p[1] = a.y
    p[2] = a.z


cdef inline vec3 v3_add(vec3 a, vec3 b) noexcept nogil:
    return v3(a.x + b.x, a.y + b.y, a.z + b.z)


cdef inline vec3 v3_sub(vec3 a, vec3 b) noexcept nogil:
    return v3(a.x - b.x, a.y - b.y, a.z - b.z)


cdef inline vec3 v3_neg(vec3 a) noexcept nogil:
    return v3(-a.x, -a.y, -a.z)


cdef inline vec3 v3_scale(vec3 a, double k) noexcept nogil:
    return v3(a.x * k, a.y * k, a.z * k)


cdef inline vec3 v3_mul(vec3 a, vec3 b) noexcept nogil:
    """Product component by component."""
    return v3(a.x * b.x, a.y * b.y, a.z * b.z)


cdef inline vec3 v3_madd(vec3 a, vec3 b, double k) noexcept nogil:
    """a + b * k"""
    return v3(a.x + b.x * k, a.y + b.y * k, a.z + b.z * k)


cdef inline vec3 v3_lerp(vec3 a, vec3 b, double t) noexcept nogil:
    """a + (b - a) * t"""
    return v3(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t)


cdef inline double v3_dot(vec3 a, vec3 b) noexcept nogil:
    return a.x * b.x + a.y * b.y + a.z * b.z


cdef inline vec3 v3_cross(vec3 a, vec3 b) noexcept nogil:
    return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


cdef inline double v3_len2(vec3 a) noexcept nogil:
    return v3_dot(a, a)


cdef inline double v3_len(vec3 a) noexcept nogil:
    return sqrt(v3_dot(a, a))


cdef inline double v3_dist2(vec3 a, vec3 b) noexcept nogil:
    return v3_len2(v3_sub(a, b))


cdef inline vec3 v3_unit(vec3 a) noexcept nogil:
    """Unit vector; a magnitude <= 1e-9 gives the zero vector (RULES 1)."""
    cdef double m = v3_len(a)
    if m <= 1e-9:
        return v3(0.0, 0.0, 0.0)
    return v3(a.x / m, a.y / m, a.z / m)


cdef inline vec3 v3_across(vec3 axis) noexcept nogil:
    """A unit vector at right angles to axis: from the coordinate axis most across it."""
    cdef double x = fabs(axis.x), y = fabs(axis.y), z = fabs(axis.z)
    cdef double length
    cdef vec3 u
    if x <= y and x <= z:
        u = v3(0.0, axis.z, -axis.y)
    elif y <= z:
        u = v3(-axis.z, 0.0, axis.x)
    else:
        u = v3(axis.y, -axis.x, 0.0)
    length = v3_len(u)
    return v3_scale(u, 1.0 / length) if length > 0.0 else v3(0.0, 0.0, 1.0)


cdef inline vec3 v3_along(vec3 a, vec3 axis) noexcept nogil:
    """Part of a along the unit vector axis."""
    return v3_scale(axis, v3_dot(a, axis))


cdef inline vec3 v3_reject(vec3 a, vec3 axis) noexcept nogil:
    """Part of a at right angles to the unit vector axis."""
    return v3_sub(a, v3_along(a, axis))


cdef inline double f_min(double a, double b) noexcept nogil:
    return a if a < b else b


cdef inline double f_max(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double f_clamp(double x, double lo, double hi) noexcept nogil:
    return lo if x < lo else (hi if x > hi else x)


cdef inline vec3 v3_min(vec3 a, vec3 b) noexcept nogil:
    return v3(f_min(a.x, b.x), f_min(a.y, b.y), f_min(a.z, b.z))


cdef inline vec3 v3_max(vec3 a, vec3 b) noexcept nogil:
    return v3(f_max(a.x, b.x), f_max(a.y, b.y), f_max(a.z, b.z))


cdef inline vec3 v3_abs(vec3 a) noexcept nogil:
    return v3(fabs(a.x), fabs(a.y), fabs(a.z))


cdef inline double v3_max_abs(vec3 a) noexcept nogil:
    """Largest magnitude of a component."""
    return f_max(fabs(a.x), f_max(fabs(a.y), fabs(a.z)))


cdef inline bint v3_is_zero(vec3 a) noexcept nogil:
    return a.x == 0.0 and a.y == 0.0 and a.z == 0.0


cdef inline bint v3_has_no_bits(vec3 a) noexcept nogil:
    """v3_is_zero without branches, for a vector that is zero nearly always."""
    cdef uint64_t[3] bits
    memcpy(bits, &a, sizeof(vec3))
    # The sign of a zero does not count.
    return ((bits[0] | bits[1] | bits[2]) << 1) == 0


cdef inline bint v3_finite(vec3 a) noexcept nogil:
    # x - x is 0 for a finite number and NaN otherwise.
    return (a.x - a.x) == 0.0 and (a.y - a.y) == 0.0 and (a.z - a.z) == 0.0


cdef inline int v3_lex(vec3 a, vec3 b) noexcept nogil:
    """-1, 0 or 1: lexicographic order by x, y, z."""
    if a.x != b.x:
        return -1 if a.x < b.x else 1
    if a.y != b.y:
        return -1 if a.y < b.y else 1
    if a.z != b.z:
        return -1 if a.z < b.z else 1
    return 0


cdef inline vec3 q_rotate(quat q, vec3 v) noexcept nogil:
    """v turned by the unit quaternion q."""
    cdef vec3 u = v3(q.x, q.y, q.z)
    cdef vec3 t = v3_scale(v3_cross(u, v), 2.0)
    return v3_add(v3_madd(v, t, q.w), v3_cross(u, t))


cdef inline quat q_conj(quat q) noexcept nogil:
    cdef quat r
    r.x = -q.x
    r.y = -q.y
    r.z = -q.z
    r.w = q.w
    return r


cdef inline vec3 q_unrotate(quat q, vec3 v) noexcept nogil:
    """v turned back by the unit quaternion q."""
    return q_rotate(q_conj(q), v)


cdef inline quat q_mul(quat a, quat b) noexcept nogil:
    """The rotation b followed by the rotation a."""
    cdef quat r
    r.x = a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y
    r.y = a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x
    r.z = a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w
    r.w = a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z
    return r


cdef inline bint q_is_identity(quat q) noexcept nogil:
    return q.x == 0.0 and q.y == 0.0 and q.z == 0.0


cdef inline mat3 q_matrix(quat q) noexcept nogil:
    """The matrix that turns column vectors as q does."""
    cdef mat3 m
    m.r0 = v3(1.0 - 2.0 * (q.y * q.y + q.z * q.z), 2.0 * (q.x * q.y - q.w * q.z), 2.0 * (q.x * q.z + q.w * q.y))
    m.r1 = v3(2.0 * (q.x * q.y + q.w * q.z), 1.0 - 2.0 * (q.x * q.x + q.z * q.z), 2.0 * (q.y * q.z - q.w * q.x))
    m.r2 = v3(2.0 * (q.x * q.z - q.w * q.y), 2.0 * (q.y * q.z + q.w * q.x), 1.0 - 2.0 * (q.x * q.x + q.y * q.y))
    return m


cdef inline vec3 m3_mul(mat3 m, vec3 v) noexcept nogil:
    return v3(v3_dot(m.r0, v), v3_dot(m.r1, v), v3_dot(m.r2, v))


cdef inline vec3 m3_tmul(mat3 m, vec3 v) noexcept nogil:
    """Transpose of m times v (the inverse, for a rotation)."""
    return v3(m.r0.x * v.x + m.r1.x * v.y + m.r2.x * v.z,
              m.r0.y * v.x + m.r1.y * v.y + m.r2.y * v.z,
              m.r0.z * v.x + m.r1.z * v.y + m.r2.z * v.z)


cdef inline aabb box_of(vec3 lo, vec3 hi) noexcept nogil:
    cdef aabb r
    r.lo = lo
    r.hi = hi
    return r


cdef inline aabb box_union(aabb a, aabb b) noexcept nogil:
    return box_of(v3_min(a.lo, b.lo), v3_max(a.hi, b.hi))


cdef inline aabb box_grow(aabb a, double k) noexcept nogil:
    return box_of(v3(a.lo.x - k, a.lo.y - k, a.lo.z - k), v3(a.hi.x + k, a.hi.y + k, a.hi.z + k))


cdef inline bint box_overlap(aabb a, aabb b) noexcept nogil:
    """True when the boxes share a point (touching counts)."""
    return (a.lo.x <= b.hi.x and b.lo.x <= a.hi.x and a.lo.y <= b.hi.y and b.lo.y <= a.hi.y
            and a.lo.z <= b.hi.z and b.lo.z <= a.hi.z)


cdef inline bint box_inside(aabb inner, aabb outer) noexcept nogil:
    return (inner.lo.x >= outer.lo.x and inner.hi.x <= outer.hi.x and inner.lo.y >= outer.lo.y
            and inner.hi.y <= outer.hi.y and inner.lo.z >= outer.lo.z and inner.hi.z <= outer.hi.z)


cdef inline vec3 box_centre(aabb a) noexcept nogil:
    return v3_scale(v3_add(a.lo, a.hi), 0.5)


cdef inline vec3 box_half(aabb a) noexcept nogil:
    return v3_scale(v3_sub(a.hi, a.lo), 0.5)
