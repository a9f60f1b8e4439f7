# cython: language_level=3
"""See the header.

A one-sided sheet ends in edges that no other triangle of its shape has. A character in front of the
sheet that walks away from its front meets no face, only these edges. A closed mesh and the inside
of a terrain have none, and each triangle is searched for them once.
"""
from libc.stdint cimport int32_t

from pycct.geometry.sweep cimport (
    NO_HIT,
    capsule_cast,
    capsule_segment_time,
    clearance_inside,
    describe_contact,
    overlaps_at_start,
    triangle_aid,
    triangle_order,
)
from pycct.geometry.tolerances cimport FACING_TIE
from pycct.geometry.types cimport sweep_hit, triangle
from pycct.geometry.vec cimport f_max, f_min, v3_cross, v3_dot, v3_len, v3_len2, v3_sub, vec3

# An edge this share farther away than the motion leads is out of reach, whatever the rounding.
cdef double SURELY_SHORT = 1.000001


cdef inline bint _same(vec3 a, vec3 b) noexcept nogil:
    return a.x == b.x and a.y == b.y and a.z == b.z


cdef inline bint _has(const triangle* t, vec3 p) noexcept nogil:
    return _same(t.a, p) or _same(t.b, p) or _same(t.c, p)


cdef bint _is_shared(const triangle* tris, int32_t first, int32_t last, int32_t i, vec3 a, vec3 b) noexcept nogil:
    """Whether another triangle of the shape has both corners of an edge of triangle i."""
    cdef int32_t k
    for k in range(first, last):
        if k != i and _has(&tris[k], a) and _has(&tris[k], b):
            return True
    return False


cdef double open_edge_time(const capsule_cast* q, const triangle* tris, int32_t first, int32_t last, int32_t i,
                           triangle_aid* aid, double limit) noexcept nogil:
    cdef const triangle* t = &tris[i]
    cdef const vec3* corner[4]
    cdef double h0 = v3_dot(t.n, v3_sub(q.p0, t.a)), h1 = h0 + v3_dot(t.n, q.axis), low = f_min(h0, h1)
    cdef double lead, out, far, best = NO_HIT
    cdef vec3 inward
    cdef int k
    # Only from the front, and not where the face holds the capsule off or is just touched.
    if h0 + h1 < 0.0 or low >= clearance_inside(q) - FACING_TIE * v3_len(q.axis):
        return NO_HIT
    corner = [&t.a, &t.b, &t.c, &t.a]
    for k in range(3):
        if aid.shared & (1 << k):
            continue
        inward = v3_cross(t.n, v3_sub(corner[k + 1][0], corner[k][0]))
        lead = v3_dot(inward, q.dir)
        # The motion leads over the edge into the triangle, from outside.
        if lead <= 0.0:
            continue
        out = v3_dot(inward, v3_sub(q.p0, corner[k][0]))
        far = out + v3_dot(inward, q.axis)
        if f_min(out, far) > 0.0:
            continue
        far = f_max(out, far) + lead * limit
        if far < 0.0 and far * far > SURELY_SHORT * q.radius * q.radius * v3_len2(inward):
            continue
        if _is_shared(tris, first, last, i, corner[k][0], corner[k + 1][0]):
            aid.shared |= 1 << k
            continue
        if best == NO_HIT and overlaps_at_start(q, t, low, aid):
            return NO_HIT
        best = f_min(best, capsule_segment_time(q.p0, q.p1, q.radius, q.dir, corner[k][0], corner[k + 1][0],
                                                f_min(best, limit)))
    return best


cdef bint cast_open_edges(const capsule_cast* q, const triangle* tris, const int32_t* source, triangle_aid* aids,
                          int32_t first, int32_t last, const int32_t* which, int32_t n, double limit,
                          sweep_hit* hit) noexcept nogil:
    cdef double best = NO_HIT, distance
    cdef int32_t i, k, order, met = -1
    for k in range(n):
        i = which[k]
        if v3_dot(tris[i].n, q.dir) <= 0.0:
            continue
        distance = open_edge_time(q, tris, first, last, i, &aids[i], f_min(best, limit))
        if distance >= NO_HIT:
            continue
        if distance == best:
            order = triangle_order(&tris[i], &tris[met])
            if order > 0 or (order == 0 and source[i] > source[met]):
                continue
        best = distance
        met = i
    if met < 0:
        return False
    hit.tri = met
    hit.overlapping = False
    hit.by_rim = True
    describe_contact(q, &tris[met], best, hit)
    return True
