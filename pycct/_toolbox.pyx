# cython: language_level=3
"""Loops of the toolbox and of the level report that need speed, or the bits of the core."""
import numpy as np

from libc.stdint cimport int8_t, int32_t, uint8_t

from pycct._closest cimport triangle_normal
from pycct._vec cimport v3_load, v3_store


def triangle_normals(const double[:, ::1] a, const double[:, ::1] b, const double[:, ::1] c):
    """Unit normals of triangles, zero where there is no area; three arrays (n, 3)."""
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
    """Fewest triangles to turn over so that neighbours agree, piece by piece of a surface.

    neighbours: pairs of triangles that share an edge; agrees: whether they run it in opposite
    directions, as neighbours that face the same side do; n: number of triangles.
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
