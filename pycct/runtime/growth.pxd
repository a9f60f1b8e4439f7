# cython: language_level=3
"""Arrays in C memory that grow by one row."""
from libc.stdint cimport int32_t
from libc.stdlib cimport realloc


cdef inline void* one_more(void* rows, size_t size, int32_t n, int32_t* capacity, int32_t extra) noexcept nogil:
    """Return rows with space for row n; NULL without memory, with the old rows unchanged.

    A full array doubles and gets `spare` rows. Arrays end at 2^30 rows, so that no index overflows.
    """
    cdef int32_t wider
    cdef void* p
    if n < capacity[0]:
        return rows
    if capacity[0] >= 2**30 - extra:
        return NULL
    wider = 2 * capacity[0] + extra
    p = realloc(rows, <size_t>wider * size)
    if p != NULL:
        capacity[0] = wider
    return p
