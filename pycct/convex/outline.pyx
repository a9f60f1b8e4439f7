"""The expanding polygon builder (CONTACT, 'Capsule vs Convex')."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

import numpy as np

from pycct.geometry.vec cimport (
    v3, v3_cross, v3_dist2, v3_dot, v3_finite, v3_len2, v3_lex, v3_load, v3_max_abs, v3_scale, v3_sub, vec3,
)


cdef inline vec3 _edge_normal(vec3 a, vec3 b, vec3 normal) noexcept nogil:
    """Unit normal of edge ab, outward for a polygon counter-clockwise around `normal`."""
    cdef vec3 n = v3_cross(v3_sub(b, a), normal)
    cdef double m = sqrt(v3_len2(n))
    return v3_scale(n, 1.0 / m) if m > 0.0 else v3(0.0, 0.0, 0.0)


cdef inline bint _better(double d, vec3 p, double best, vec3 best_p) noexcept nogil:
    return d > best or (d == best and v3_lex(p, best_p) < 0)


cdef int32_t outline_build(const double* points, int32_t n, vec3 normal, int32_t capacity, double tolerance,
                           int32_t* out, outline_item* scratch) noexcept nogil:
    cdef int32_t i, k, count, left, best, edge, point, after
    cdef double d, d2, best_d
    cdef vec3 p, a, b, n_0, n_1, first

    # Distances are measured in the plane, without the part along the normal.
    best = 0
    for i in range(1, n):
        if v3_lex(v3_load(points + 3 * i), v3_load(points + 3 * best)) < 0:
            best = i
    first = v3_load(points + 3 * best)
    for k in range(2):
        # The farthest point from the reference becomes the next reference.
        best = 0
        best_d = -1.0
        for i in range(n):
            p = v3_load(points + 3 * i)
            d = v3_len2(v3_cross(v3_sub(p, first), normal))
            if _better(d, p, best_d, v3_load(points + 3 * best)):
                best = i
                best_d = d
        out[k] = best
        first = v3_load(points + 3 * best)
    if sqrt(best_d) <= tolerance or best_d <= 0.0:
        return 1

    a = v3_load(points + 3 * out[0])
    b = v3_load(points + 3 * out[1])
    n_0 = _edge_normal(a, b, normal)
    left = 0
    for i in range(n):
        d = v3_dot(n_0, v3_sub(v3_load(points + 3 * i), a))
        if d > tolerance or d < -tolerance:
            scratch[left].point = i
            scratch[left].edge = 0 if d > 0.0 else 1
            scratch[left].distance = d if d > 0.0 else -d
            left += 1
    count = 2
    while count < capacity and left > 0:
        best = 0
        for i in range(1, left):
            if _better(scratch[i].distance, v3_load(points + 3 * scratch[i].point),
                       scratch[best].distance, v3_load(points + 3 * scratch[best].point)):
                best = i
        point = scratch[best].point
        edge = scratch[best].edge
        left -= 1
        scratch[best] = scratch[left]
        for i in range(count, edge + 1, -1):
            out[i] = out[i - 1]
        out[edge + 1] = point
        count += 1
        after = out[edge + 2 if edge + 2 < count else 0]
        p = v3_load(points + 3 * point)
        a = v3_load(points + 3 * out[edge])
        n_0 = _edge_normal(a, p, normal)
        n_1 = _edge_normal(p, v3_load(points + 3 * after), normal)
        i = 0
        while i < left:
            if scratch[i].edge > edge:
                scratch[i].edge += 1
            elif scratch[i].edge == edge:
                b = v3_sub(v3_load(points + 3 * scratch[i].point), p)
                d = v3_dot(n_0, b)
                d2 = v3_dot(n_1, b)
                if d <= tolerance and d2 <= tolerance:
                    left -= 1
                    scratch[i] = scratch[left]
                    continue
                if d2 > d:
                    scratch[i].edge = edge + 1
                    scratch[i].distance = d2
                else:
                    scratch[i].distance = d
            i += 1
    return count


def expanding_polygon(points, normal, capacity=255):
    """Return the corners of the largest outline with a limited number of points.

    The points are seen along `normal`. The builder starts with two distant points and repeatedly
    adds the one that is farthest outside of the polygon so far. It never returns points inside or
    on an edge.

    Parameters
    ----------
    points : array_like, shape (n, 3)
        Points (m); their height along `normal` does not matter.
    normal : sequence of 3 floats
        Direction of the view; any length but 0.
    capacity : int, default 255
        Most corners to return, at least 2.

    Returns
    -------
    numpy.ndarray of int32, shape (k,)
        Indices into `points`, counter-clockwise around `normal`; k <= `capacity`. One index if all
        points coincide (seen along `normal`), two if they are in one line.

    Raises
    ------
    ValueError
        If `points` is empty or not (n, 3), a number is not finite, `normal` is zero or `capacity`
        is below 2.

    Notes
    -----
    The result does not depend on the order of the points: the lexicographically smaller one wins
    ties. Points at most 1e-12 of the extent outside of an edge count as on it. CONTACT, 'Capsule vs
    Convex'.
    """
    cdef double[:, ::1] view = as_points(points)
    cdef int32_t n = <int32_t>view.shape[0]
    cdef vec3 v
    cdef double m
    try:
        x, y, z = normal
        v = v3(x, y, z)
    except (TypeError, ValueError):
        raise ValueError("normal must be three numbers") from None
    m = v3_max_abs(v)
    if not v3_finite(v) or m == 0.0:
        raise ValueError("normal must be finite and not zero")
    v = v3(v.x / m, v.y / m, v.z / m)
    v = v3_scale(v, 1.0 / sqrt(v3_len2(v)))
    if capacity < 2:
        raise ValueError("capacity must be at least 2")
    cdef int32_t max_corners = min(<object>n + 2, capacity)
    cdef int32_t* out = <int32_t*>malloc((max_corners + 2) * sizeof(int32_t))
    cdef outline_item* scratch = <outline_item*>malloc(n * sizeof(outline_item))
    cdef int32_t i, count
    if out == NULL or scratch == NULL:
        free(out)
        free(scratch)
        raise MemoryError
    cdef double extent2 = 0.0
    for i in range(1, n):
        m = v3_dist2(v3_load(&view[0, 0]), v3_load(&view[i, 0]))
        extent2 = m if m > extent2 else extent2
    count = outline_build(&view[0, 0], n, v, max_corners, 1e-12 * sqrt(extent2), out, scratch)
    result = np.empty(count, dtype=np.int32)
    cdef int32_t[::1] r = result
    for i in range(count):
        r[i] = out[i]
    free(out)
    free(scratch)
    return result


cdef object as_points(points):
    """A fresh, contiguous (n, 3) float64 array of finite numbers; ValueError names `points`."""
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "biuf":
            array = np.asarray(points, dtype=np.float64) if array.dtype.kind == "O" else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None or array.ndim != 2 or array.shape[1] != 3:
        raise ValueError("points must be numbers of shape (n, 3)")
    if array.shape[0] == 0:
        raise ValueError("points must not be empty")
    if array.shape[0] > 0x3FFFFFFF:
        raise ValueError("points must be fewer than 2**30")
    # Adding 0.0 turns -0.0 into 0.0, so that equal points have equal bits.
    array = np.array(array, dtype=np.float64, order="C") + 0.0
    if not np.isfinite(array).all():
        raise ValueError("points must be finite")
    return array
