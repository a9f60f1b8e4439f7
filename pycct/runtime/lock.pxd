# cython: language_level=3
"""Recursive lock: the thread that holds it may acquire it again."""
from cpython.pythread cimport PyThread_type_lock


# Unlike threading.RLock, another thread may release it: the finalizer of an abandoned ``edit``
# does.
cdef class Lock:
    cdef PyThread_type_lock gate
    cdef unsigned long owner    # thread that holds the lock
    cdef int depth              # acquisitions by that thread; 0: free
    cdef int take(self) except -1
    cdef int give(self, int times) except -1
    cdef bint mine(self) noexcept
