# cython: language_level=3
"""Loops over rows of numbers, for ``pycct.kernels``, ``pycct.toolbox`` and the level report.

A row of ``placed`` contains a capsule (p0, p1, radius), its motion and the numbers of the target,
in the order of the classes of ``pycct.kernels``. The callers validate the input.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from pycct.geometry.box_faces cimport BOX_FACES
from pycct.geometry.closest cimport (
    closest_pair,
    point_segment,
    point_triangle,
    segment_box,
    segment_segment,
    segment_triangle,
    triangle_normal,
)
from pycct.geometry.overlap cimport (
    overlaps_triangles,
    push_from_capsule,
    push_from_plane,
    push_from_polytope,
    push_from_sphere,
    push_from_triangles,
    push_out,
)
from pycct.geometry.sweep cimport (
    capsule_box,
    capsule_cast,
    capsule_cast_of,
    cast_capsule,
    cast_plane,
    cast_sphere,
    cast_triangles,
    toi_candidate,
)
from pycct.geometry.types cimport sweep_hit, triangle
from pycct.geometry.vec cimport (
    q_rotate,
    q_unrotate,
    quat,
    v3,
    v3_add,
    v3_dist2,
    v3_dot,
    v3_is_zero,
    v3_len,
    v3_lex,
    v3_load,
    v3_neg,
    v3_scale,
    v3_store,
    v3_sub,
    vec3,
)

cdef enum closest_kind:
    POINT_SEGMENT = 0
    SEGMENT_SEGMENT = 1
    POINT_TRIANGLE = 2
    SEGMENT_TRIANGLE = 3
    SEGMENT_BOX = 4

cdef enum target_kind:
    TARGET_TRIANGLE = 0
    TARGET_SPHERE = 1
    TARGET_CAPSULE = 2
    TARGET_BOX = 3
    TARGET_PLANE = 4
    TARGET_HULL = 5

# Columns where the motion and the target of a row start.
cdef enum:
    MOTION = 7
    TARGET = 10


cdef quat _quat(const double* p) noexcept nogil:
    cdef quat q
    q.x = p[0]
    q.y = p[1]
    q.z = p[2]
    q.w = p[3]
    return q


cdef triangle _triangle(vec3 a, vec3 b, vec3 c) noexcept nogil:
    """Return a triangle with the lexicographically smallest vertex first."""
    cdef triangle t
    if v3_lex(b, a) < 0 and v3_lex(b, c) <= 0:
        a, b, c = b, c, a
    elif v3_lex(c, a) < 0 and v3_lex(c, b) < 0:
        a, b, c = c, a, b
    t.a = a
    t.b = b
    t.c = c
    t.n = triangle_normal(a, b, c)
    t.d = v3_dot(t.n, a)
    return t


cdef void _box_triangles(vec3 half, triangle* tris) noexcept nogil:
    cdef vec3[3] v
    cdef int i, j, corner
    for i in range(12):
        for j in range(3):
            corner = BOX_FACES[i // 2][j + i % 2 if j > 0 else 0]
            v[j] = v3(half.x if corner & 1 else -half.x, half.y if corner & 2 else -half.y,
                      half.z if corner & 4 else -half.z)
        tris[i] = _triangle(v[0], v[1], v[2])


cdef closest_pair _closest_row(int kind, const double* p) noexcept nogil:
    cdef closest_pair r
    cdef vec3 a = v3_load(p), b = v3_load(p + 3), c = v3_load(p + 6)
    if kind == POINT_SEGMENT:
        return point_segment(a, b, c)
    if kind == SEGMENT_SEGMENT:
        return segment_segment(a, b, c, v3_load(p + 9))
    if kind == POINT_TRIANGLE:
        r.on_a = a
        r.on_b = point_triangle(a, b, c, v3_load(p + 9))
        r.dist2 = v3_dist2(r.on_a, r.on_b)
        r.s = r.t = 0.0
        return r
    if kind == SEGMENT_TRIANGLE:
        return segment_triangle(a, b, c, v3_load(p + 9), v3_load(p + 12),
                                triangle_normal(c, v3_load(p + 9), v3_load(p + 12)))
    return segment_box(a, b, c)


def closest(int kind, const double[:, ::1] rows, double[:, ::1] out):
    """Fill rows of out: point on a, point on b, distance, s, t."""
    cdef Py_ssize_t i
    cdef closest_pair r
    with nogil:
        for i in range(rows.shape[0]):
            r = _closest_row(kind, &rows[i, 0])
            v3_store(&out[i, 0], r.on_a)
            v3_store(&out[i, 3], r.on_b)
            out[i, 6] = sqrt(r.dist2)
            out[i, 7] = r.s
            out[i, 8] = r.t


# Triangles of the target and scratch memory, reused for all rows.
cdef struct workspace:
    triangle* tris
    int32_t n
    toi_candidate* touched
    double* depths


cdef workspace _workspace(const double[:, :, ::1] surface) except *:
    cdef workspace w
    cdef Py_ssize_t i, n = max(surface.shape[0], 12)
    w.n = <int32_t>surface.shape[0]
    w.tris = <triangle*>malloc(n * sizeof(triangle))
    w.touched = <toi_candidate*>malloc(n * sizeof(toi_candidate))
    w.depths = <double*>malloc(n * sizeof(double))
    if w.tris == NULL or w.touched == NULL or w.depths == NULL:
        _release(&w)
        raise MemoryError
    for i in range(w.n):
        w.tris[i] = _triangle(v3_load(&surface[i, 0, 0]), v3_load(&surface[i, 1, 0]), v3_load(&surface[i, 2, 0]))
    return w


cdef void _release(workspace* w) noexcept nogil:
    free(w.tris)
    free(w.touched)
    free(w.depths)


cdef bint _sweep_row(int kind, const double* p, bint cull, workspace* w, sweep_hit* hit) noexcept nogil:
    cdef vec3 p0 = v3_load(p), p1 = v3_load(p + 3), motion = v3_load(p + MOTION), dir
    cdef vec3 position
    cdef quat rotation
    cdef double length = v3_len(motion)
    cdef const double* t = p + TARGET
    cdef capsule_cast q
    cdef push_out r
    cdef int64_t tested = 0
    dir = v3_scale(motion, 1.0 / length) if length > 0.0 else motion
    if kind == TARGET_BOX:
        return capsule_box(p0, p1, p[6], dir, v3_load(t), v3_load(t + 3), _quat(t + 6), length, hit)
    if kind == TARGET_HULL:
        position = v3_load(t)
        rotation = _quat(t + 3)
        p0 = q_unrotate(rotation, v3_sub(p0, position))
        p1 = q_unrotate(rotation, v3_sub(p1, position))
        dir = q_unrotate(rotation, dir)
        r = push_from_polytope(p0, p1, p[6], w.tris, w.n, False)
        if r.overlapping:
            # The solid also counts from inside, deep below all faces (RULES 7.6).
            hit.distance = 0.0
            hit.overlapping = True
            hit.normal = v3_neg(dir)
            hit.point = p0
        else:
            q = capsule_cast_of(p0, p1, p[6], dir, length, False, True)
            if not cast_triangles(&q, w.tris, w.n, False, False, w.touched, &tested, hit):
                return False
        hit.normal = q_rotate(rotation, hit.normal)
        hit.point = v3_add(q_rotate(rotation, hit.point), position)
        return True
    q = capsule_cast_of(p0, p1, p[6], dir, length, cull, cull)
    if kind == TARGET_SPHERE:
        return cast_sphere(&q, v3_load(t), t[3], hit)
    if kind == TARGET_CAPSULE:
        return cast_capsule(&q, v3_load(t), v3_load(t + 3), t[6], hit)
    if kind == TARGET_PLANE:
        return cast_plane(&q, v3_load(t), t[3], hit)
    w.tris[0] = _triangle(v3_load(t), v3_load(t + 3), v3_load(t + 6))
    if v3_is_zero(w.tris[0].n):
        return False
    return cast_triangles(&q, w.tris, 1, not cull, False, w.touched, &tested, hit)


def sweep(int kind, const double[:, ::1] collider, const double[:, :, ::1] surface, bint cull, double[:, ::1] out):
    """Fill rows of out: hit, overlapping, distance, normal, point."""
    cdef Py_ssize_t i
    cdef sweep_hit hit
    cdef workspace w = _workspace(surface)
    with nogil:
        for i in range(collider.shape[0]):
            if _sweep_row(kind, &collider[i, 0], cull, &w, &hit):
                out[i, 0] = 1.0
                out[i, 1] = 1.0 if hit.overlapping else 0.0
                out[i, 2] = hit.distance
                v3_store(&out[i, 3], hit.normal)
                v3_store(&out[i, 6], hit.point)
    _release(&w)


cdef push_out _push_row(int kind, const double* p, workspace* w) noexcept nogil:
    cdef vec3 p0 = v3_load(p), p1 = v3_load(p + 3), position
    cdef quat rotation
    cdef const double* t = p + TARGET
    cdef push_out r
    if kind == TARGET_SPHERE:
        return push_from_sphere(p0, p1, p[6], v3_load(t), t[3])
    if kind == TARGET_CAPSULE:
        return push_from_capsule(p0, p1, p[6], v3_load(t), v3_load(t + 3), t[6])
    if kind == TARGET_PLANE:
        return push_from_plane(p0, p1, p[6], v3_load(t), t[3])
    if kind == TARGET_TRIANGLE:
        w.tris[0] = _triangle(v3_load(t), v3_load(t + 3), v3_load(t + 6))
        if v3_is_zero(w.tris[0].n):
            r.overlapping = False
            r.dir = w.tris[0].n
            r.depth = 0.0
            return r
        return push_from_triangles(p0, p1, p[6], w.tris, 1, True, w.depths)
    if kind == TARGET_BOX:
        _box_triangles(v3_load(t), w.tris)
        w.n = 12
        t += 3
    position = v3_load(t)
    rotation = _quat(t + 3)
    r = push_from_polytope(q_unrotate(rotation, v3_sub(p0, position)), q_unrotate(rotation, v3_sub(p1, position)),
                           p[6], w.tris, w.n, False)
    r.dir = q_rotate(rotation, r.dir)
    return r


def penetration(int kind, const double[:, ::1] collider, const double[:, :, ::1] surface, double[:, ::1] out):
    """Fill rows of out: overlapping, direction, depth."""
    cdef Py_ssize_t i
    cdef push_out r
    cdef workspace w = _workspace(surface)
    with nogil:
        for i in range(collider.shape[0]):
            r = _push_row(kind, &collider[i, 0], &w)
            if r.overlapping:
                out[i, 0] = 1.0
                v3_store(&out[i, 1], r.dir)
                out[i, 4] = r.depth
    _release(&w)


cdef bint _overlap_row(int kind, const double* p, workspace* w) noexcept nogil:
    cdef const double* t = p + TARGET
    cdef vec3 position
    cdef quat rotation
    if kind == TARGET_TRIANGLE:
        w.tris[0] = _triangle(v3_load(t), v3_load(t + 3), v3_load(t + 6))
        return (not v3_is_zero(w.tris[0].n)
                and overlaps_triangles(v3_load(p), v3_load(p + 3), p[6], w.tris, 1))
    if kind == TARGET_BOX:
        position = v3_load(t + 3)
        rotation = _quat(t + 6)
        return segment_box(q_unrotate(rotation, v3_sub(v3_load(p), position)),
                           q_unrotate(rotation, v3_sub(v3_load(p + 3), position)), v3_load(t)).dist2 < p[6] * p[6]
    return _push_row(kind, p, w).overlapping


def overlap(int kind, const double[:, ::1] collider, const double[:, :, ::1] surface, double[:, ::1] out):
    """Fill rows of out: overlapping."""
    cdef Py_ssize_t i
    cdef workspace w = _workspace(surface)
    with nogil:
        for i in range(collider.shape[0]):
            out[i, 0] = 1.0 if _overlap_row(kind, &collider[i, 0], &w) else 0.0
    _release(&w)


def triangle_normals(const double[:, ::1] a, const double[:, ::1] b, const double[:, ::1] c):
    """Return unit normals of triangles, zero for triangles without area; three arrays (n, 3)."""
    cdef Py_ssize_t n = a.shape[0], i
    cdef double[:, ::1] out
    if a.shape[1] != 3 or b.shape[1] != 3 or c.shape[1] != 3 or b.shape[0] != n or c.shape[0] != n:
        raise ValueError("a, b and c must have shape (n, 3)")
    result = np.zeros((n, 3))
    out = result
    with nogil:
        for i in range(n):
            v3_store(&out[i, 0], triangle_normal(v3_load(&a[i, 0]), v3_load(&b[i, 0]), v3_load(&c[i, 0])))
    return result


def flipped_count(const int32_t[:, ::1] neighbours, const uint8_t[::1] agrees, Py_ssize_t n):
    """Return the smallest number of triangles to flip so that neighbours agree, over all pieces.

    neighbours: pairs of triangles that share an edge; agrees: whether both use the edge in opposite
    directions, as neighbours with the same front side do; n: number of triangles.
    """
    cdef Py_ssize_t m = neighbours.shape[0], i, j, k, head, tail, one, other, total = 0
    cdef int32_t[::1] first, link, queue
    cdef int8_t[::1] side
    first = np.full(n, -1, np.int32)
    link = np.full(2 * m, -1, np.int32)
    queue = np.empty(n, np.int32)
    side = np.zeros(n, np.int8)
    with nogil:
        for i in range(2 * m):
            k = neighbours[i // 2, i % 2]
            link[i] = first[k]
            first[k] = <int32_t>i
        for i in range(n):
            if side[i] != 0:
                continue
            side[i] = 1
            queue[0] = <int32_t>i
            head = 0
            tail = 1
            one = other = 0
            while head < tail:
                k = queue[head]
                head += 1
                if side[k] > 0:
                    one += 1
                else:
                    other += 1
                j = first[k]
                while j >= 0:
                    if side[neighbours[j // 2, 1 - j % 2]] == 0:
                        side[neighbours[j // 2, 1 - j % 2]] = side[k] if agrees[j // 2] else -side[k]
                        queue[tail] = neighbours[j // 2, 1 - j % 2]
                        tail += 1
                    j = link[j]
            total += one if one < other else other
    return total
