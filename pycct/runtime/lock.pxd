# cython: language_level=3
"""A lock that its holder may take again."""
from cpython.pythread cimport PyThread_type_lock


# Unlike threading.RLock, what one thread took can be given back in another: by the finalizer of who forgot it.
cdef class Lock:
    cdef PyThread_type_lock gate
    cdef unsigned long owner    # thread that holds it
    cdef int depth              # how often; 0: nobody does
    cdef int take(self) except -1
    cdef int give(self, int times) except -1
    cdef bint mine(self) noexcept
