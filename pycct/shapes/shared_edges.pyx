# cython: language_level=3
"""See the header. A counting sort by the smaller vertex brings equal edges together."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.shapes.primitives cimport mesh_data

# A vertex at which more edges start is left out: comparing all pairs of them would take too long.
cdef enum:
    MOST_AT_VERTEX = 64


cdef inline int32_t _lower(int32_t a, int32_t b) noexcept nogil:
    return a if a < b else b


cdef int mark_shared_edges(mesh_data* m, uint8_t* shared) noexcept nogil:
    cdef int64_t n = 3 * <int64_t>m.n_triangles, i, j
    cdef int32_t* end = <int32_t*>calloc(<size_t>m.n_vertices + 1, sizeof(int32_t))
    cdef int32_t* edges = <int32_t*>malloc(<size_t>(n + 1) * sizeof(int32_t))
    cdef const int32_t* t = m.triangles
    cdef int32_t v, first, e, f
    if end == NULL or edges == NULL:
        free(end)
        free(edges)
        return STATUS_NO_MEMORY
    for i in range(n):
        end[_lower(t[i], t[_next(i)]) + 1] += 1
    for v in range(m.n_vertices):
        end[v + 1] += end[v]
    # Each place moves up to the end of its vertex.
    for i in range(n):
        v = _lower(t[i], t[_next(i)])
        edges[end[v]] = <int32_t>i
        end[v] += 1
    first = 0
    for v in range(m.n_vertices):
        if end[v] - first <= MOST_AT_VERTEX:
            for i in range(first, end[v]):
                e = edges[i]
                for j in range(first, i):
                    f = edges[j]
                    # One end is v, so that equal sums are equal other ends.
                    if <int64_t>t[e] + t[_next(e)] == <int64_t>t[f] + t[_next(f)]:
                        shared[e // 3] |= 1 << (e % 3)
                        shared[f // 3] |= 1 << (f % 3)
        first = end[v]
    free(end)
    free(edges)
    m.shared = shared
    return STATUS_OK


cdef inline int64_t _next(int64_t i) noexcept nogil:
    """The other corner of edge i."""
    return i - 2 if i % 3 == 2 else i + 1
