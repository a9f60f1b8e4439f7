# cython: language_level=3
"""Overlap and penetration of a capsule with one shape. See the header."""
from libc.math cimport sqrt

from pycct.geometry.closest cimport closest_pair, point_segment, segment_segment, segment_triangle
from pycct.geometry.sweep cimport triangle_order
from pycct.geometry.tolerances cimport DEPTH_TIE, PARALLEL2
from pycct.geometry.vec cimport (
    v3_across,
    f_max,
    f_min,
    v3,
    v3_add,
    v3_cross,
    v3_dist2,
    v3_dot,
    v3_len,
    v3_len2,
    v3_madd,
    v3_neg,
    v3_scale,
    v3_sub,
)

# Most pushes out of a mesh in one correction (RULES 7.5).
cdef int MESH_PUSHES = 4
# Below this share of the radius, closest points define no reliable direction.
cdef double NO_DIRECTION = 1e-9


cdef inline push_out _apart() noexcept nogil:
    cdef push_out r
    r.overlapping = False
    r.dir = v3(0.0, 0.0, 0.0)
    r.depth = 0.0
    r.tri = -1
    r.excursion = 0.0
    return r


cdef inline push_out _push(vec3 dir, double depth) noexcept nogil:
    cdef push_out r
    r.overlapping = True
    r.dir = dir
    r.depth = depth
    r.tri = -1
    r.excursion = 0.0
    return r


cdef push_out _push_round(closest_pair near, double sum, vec3 fallback) noexcept nogil:
    cdef vec3 v
    cdef double d
    if near.dist2 >= sum * sum:
        return _apart()
    v = v3_sub(near.on_a, near.on_b)
    d = sqrt(near.dist2)
    if d <= NO_DIRECTION * sum:
        return _push(fallback, sum)
    return _push(v3_scale(v, 1.0 / d), sum - d)


cdef push_out push_from_sphere(vec3 p0, vec3 p1, double radius, vec3 centre, double other) noexcept nogil:
    cdef closest_pair near = point_segment(centre, p0, p1)
    cdef vec3 swap = near.on_a
    near.on_a = near.on_b
    near.on_b = swap
    return _push_round(near, radius + other, v3_across(v3_sub(p1, p0)))


cdef push_out push_from_capsule(vec3 p0, vec3 p1, double radius, vec3 q0, vec3 q1, double other) noexcept nogil:
    cdef vec3 a = v3_sub(p1, p0)
    cdef vec3 b = v3_sub(q1, q0)
    cdef vec3 m = v3_cross(a, b)
    # If the axes cross, the exit is perpendicular to both.
    if v3_len2(m) <= PARALLEL2 * v3_len2(a) * v3_len2(b):
        m = v3_across(a if v3_len2(a) > 0.0 else b)
    else:
        m = v3_scale(m, 1.0 / v3_len(m))
    return _push_round(segment_segment(p0, p1, q0, q1), radius + other, m)


cdef push_out push_from_plane(vec3 p0, vec3 p1, double radius, vec3 normal, double offset) noexcept nogil:
    cdef double low = f_min(v3_dot(normal, p0), v3_dot(normal, p1)) - offset
    if low >= radius:
        return _apart()
    return _push(normal, radius - low)


cdef double support_of(const triangle* tris, int32_t n, vec3 u) noexcept nogil:
    cdef double best = v3_dot(tris[0].a, u), x
    cdef int32_t i
    for i in range(n):
        x = f_max(v3_dot(tris[i].a, u), f_max(v3_dot(tris[i].b, u), v3_dot(tris[i].c, u)))
        if x > best:
            best = x
    return best


cdef inline void _try_edge(const triangle* tris, int32_t n, vec3 p0, vec3 p1, vec3 e, double* best,
                           vec3* dir) noexcept nogil:
    cdef vec3 axis = v3_sub(p1, p0)
    cdef vec3 u = v3_cross(e, axis)
    cdef double m2 = v3_len2(u)
    cdef double x
    if m2 <= PARALLEL2 * v3_len2(e) * v3_len2(axis) or m2 == 0.0:
        return
    # The lower end counts: if edge and axis are nearly parallel, u is not exactly perpendicular to
    # them.
    u = v3_scale(u, 1.0 / sqrt(m2))
    x = f_min(v3_dot(u, p0), v3_dot(u, p1)) - support_of(tris, n, u)
    if x > best[0]:
        best[0] = x
        dir[0] = u
    u = v3_neg(u)
    x = f_min(v3_dot(u, p0), v3_dot(u, p1)) - support_of(tris, n, u)
    if x > best[0]:
        best[0] = x
        dir[0] = u


cdef double polytope_separation(vec3 p0, vec3 p1, const triangle* tris, int32_t n, vec3* dir) noexcept nogil:
    # The faces of (surface - segment) are the surface's own faces and those that an edge and the
    # segment span. The largest signed distance to any of them is the result.
    cdef double best = -1e300, x
    cdef int32_t i
    dir[0] = v3(0.0, 0.0, 1.0)
    for i in range(n):
        x = f_min(v3_dot(tris[i].n, p0), v3_dot(tris[i].n, p1)) - tris[i].d
        if x > best:
            best = x
            dir[0] = tris[i].n
    if v3_dist2(p0, p1) > 0.0:
        for i in range(n):
            _try_edge(tris, n, p0, p1, v3_sub(tris[i].b, tris[i].a), &best, dir)
            _try_edge(tris, n, p0, p1, v3_sub(tris[i].c, tris[i].b), &best, dir)
            _try_edge(tris, n, p0, p1, v3_sub(tris[i].a, tris[i].c), &best, dir)
    return best


cdef closest_pair _nearest_of(vec3 p0, vec3 p1, const triangle* tris, int32_t n) noexcept nogil:
    cdef closest_pair near, nearest
    cdef int32_t i
    nearest.dist2 = 1e300
    for i in range(n):
        near = segment_triangle(p0, p1, tris[i].a, tris[i].b, tris[i].c, tris[i].n)
        if near.dist2 < nearest.dist2:
            nearest = near
    return nearest


cdef push_out push_from_polytope(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                 bint flat) noexcept nogil:
    cdef double sep, d2
    cdef vec3 dir
    cdef closest_pair nearest
    cdef int32_t i
    if n <= 0:
        return _apart()
    # The faces are too far away for an overlap, so the edges need no test.
    for i in range(n):
        if f_min(v3_dot(tris[i].n, p0), v3_dot(tris[i].n, p1)) - tris[i].d >= radius:
            return _apart()
    sep = polytope_separation(p0, p1, tris, n, &dir)
    if sep >= radius:
        return _apart()
    # What lies beside a flat shape is separated from it by none of its faces.
    if sep <= NO_DIRECTION * radius and not flat:
        return _push(dir, radius - sep)
    nearest = _nearest_of(p0, p1, tris, n)
    d2 = nearest.dist2
    if d2 >= radius * radius:
        return _apart()
    d2 = sqrt(d2)
    if d2 <= NO_DIRECTION * radius:
        return _push(dir, radius - sep)
    return _push(v3_scale(v3_sub(nearest.on_a, nearest.on_b), 1.0 / d2), radius - d2)


cdef inline void _try_exit(vec3 p0, vec3 axis, vec3 e, vec3 a, vec3 third, double* best, vec3* dir) noexcept nogil:
    """Exit from a triangle across one edge: along edge x axis, away from the third vertex."""
    cdef vec3 u = v3_cross(e, axis)
    cdef double m2 = v3_len2(u), x, y
    if m2 <= PARALLEL2 * v3_len2(e) * v3_len2(axis) or m2 == 0.0:
        return
    u = v3_scale(u, 1.0 / sqrt(m2))
    x = v3_dot(u, a)
    y = v3_dot(u, third)
    if y > x:
        u = v3_neg(u)
        x = -x
    x = x - v3_dot(u, p0)
    if x < best[0]:
        best[0] = x
        dir[0] = u


cdef push_out _push_from_triangle(vec3 p0, vec3 p1, double radius, const triangle* t, bint two_sided,
                                  bint across) noexcept nogil:
    cdef vec3 centre = v3_scale(v3_add(p0, p1), 0.5)
    cdef double side = v3_dot(t.n, centre) - t.d
    cdef double h0, h1, d, exit
    cdef vec3 n = t.n, axis, dir
    cdef closest_pair near
    if side <= 0.0:
        if not two_sided:
            return _apart()
        if side < 0.0:
            n = v3_neg(n)
    h0 = v3_dot(v3_sub(p0, t.a), n)
    h1 = v3_dot(v3_sub(p1, t.a), n)
    if f_min(h0, h1) >= radius:
        return _apart()
    near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    if near.dist2 >= radius * radius:
        return _apart()
    d = sqrt(near.dist2)
    if d > NO_DIRECTION * radius:
        return _push(v3_scale(v3_sub(near.on_a, near.on_b), 1.0 / d), radius - d)
    axis = v3_sub(p1, p0)
    exit = -f_min(h0, h1)
    dir = n
    if across:
        _try_exit(p0, axis, v3_sub(t.b, t.a), t.a, t.c, &exit, &dir)
        _try_exit(p0, axis, v3_sub(t.c, t.b), t.b, t.a, &exit, &dir)
        _try_exit(p0, axis, v3_sub(t.a, t.c), t.c, t.b, &exit, &dir)
    return _push(dir, radius + exit)


cdef double _deepest_triangle(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n, bint two_sided,
                              bint across, double* depths, int32_t* winner) noexcept nogil:
    cdef double deepest = 0.0
    cdef int32_t i
    for i in range(n):
        depths[i] = _push_from_triangle(p0, p1, radius, &tris[i], two_sided, across).depth
        if depths[i] > deepest:
            deepest = depths[i]
    winner[0] = -1
    if deepest > 0.0:
        for i in range(n):
            if depths[i] >= deepest - DEPTH_TIE and depths[i] > 0.0:
                if winner[0] < 0 or triangle_order(&tris[i], &tris[winner[0]]) < 0:
                    winner[0] = i
    return deepest


cdef bint _leave_triangles(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n, bint two_sided,
                           bint across, double* depths, vec3* total, int32_t* decided,
                           double* excursion) noexcept nogil:
    """Add up to four pushes, ``across`` edges if allowed; raise ``excursion`` to the farthest place.

    False if an exit across an edge failed.
    """
    cdef push_out r
    cdef vec3 a, b
    cdef int32_t winner
    cdef int round_
    cdef bint crossed = False
    cdef double deepest
    total[0] = v3(0.0, 0.0, 0.0)
    decided[0] = -1
    for round_ in range(MESH_PUSHES):
        a = v3_add(p0, total[0])
        b = v3_add(p1, total[0])
        excursion[0] = f_max(excursion[0], v3_len(total[0]))
        deepest = _deepest_triangle(a, b, radius, tris, n, two_sided, across, depths, &winner)
        # A remainder of rounding size needs no push.
        if deepest <= (1e-12 * radius if round_ > 0 else 0.0):
            break
        # The axis crosses a triangle, and a second one after the exit from the first.
        if deepest >= radius:
            if crossed and across:
                return False
            crossed = True
        r = _push_from_triangle(a, b, radius, &tris[winner], two_sided, across)
        total[0] = v3_madd(total[0], r.dir, r.depth)
        if decided[0] < 0:
            decided[0] = winner
    return True


cdef push_out push_from_triangles(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                  bint two_sided, double* depths) noexcept nogil:
    cdef vec3 total
    cdef int32_t decided
    cdef double excursion = 0.0
    # Exits across edges can lead from triangle to triangle along a surface without end. The second
    # attempt therefore uses normals only.
    if not _leave_triangles(p0, p1, radius, tris, n, two_sided, True, depths, &total, &decided,
                            &excursion):
        _leave_triangles(p0, p1, radius, tris, n, two_sided, False, depths, &total, &decided, &excursion)
    return _sum_of_pushes(total, decided, excursion)


cdef push_out push_along_normals(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                 bint two_sided, double* depths) noexcept nogil:
    cdef vec3 total
    cdef int32_t decided
    cdef double excursion = 0.0
    _leave_triangles(p0, p1, radius, tris, n, two_sided, False, depths, &total, &decided, &excursion)
    return _sum_of_pushes(total, decided, excursion)


cdef push_out _sum_of_pushes(vec3 total, int32_t decided, double excursion) noexcept nogil:
    cdef push_out r
    cdef double m = v3_len(total)
    if decided < 0 or m <= 0.0:
        r = _apart()
    else:
        r = _push(v3_scale(total, 1.0 / m), m)
        r.tri = decided
    r.excursion = excursion
    return r


cdef bint overlaps_triangles(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n) noexcept nogil:
    cdef int32_t i
    for i in range(n):
        if segment_triangle(p0, p1, tris[i].a, tris[i].b, tris[i].c, tris[i].n).dist2 < radius * radius:
            return True
    return False
