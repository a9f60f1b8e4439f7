# cython: language_level=3
"""Recursive lock. See the header."""
from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    NOWAIT_LOCK,
    PY_LOCK_ACQUIRED,
    PY_LOCK_INTR,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_get_thread_ident,
    PyThread_release_lock,
)

cimport cython

cdef extern from "pythread.h":
    int PyThread_acquire_lock_timed(PyThread_type_lock gate, long long microseconds, int interruptible) nogil


@cython.final
cdef class Lock:
    """Recursive lock for ``with``. A signal can interrupt the wait."""

    def __cinit__(self):
        self.gate = PyThread_allocate_lock()
        if self.gate == NULL:
            raise MemoryError("pycct: out of memory")

    def __dealloc__(self):
        if self.gate != NULL:
            if self.depth > 0:
                PyThread_release_lock(self.gate)
            PyThread_free_lock(self.gate)

    cdef bint mine(self) noexcept:
        cdef bint found
        with cython.critical_section(self):
            found = self.depth > 0 and self.owner == <unsigned long>PyThread_get_thread_ident()
        return found

    cdef int take(self) except -1:
        cdef unsigned long me = <unsigned long>PyThread_get_thread_ident()
        cdef bint again = False
        cdef int got
        with cython.critical_section(self):
            if self.depth > 0 and self.owner == me:
                self.depth += 1
                again = True
        if again:
            return 0
        if not PyThread_acquire_lock(self.gate, NOWAIT_LOCK):
            while True:
                with nogil:
                    got = PyThread_acquire_lock_timed(self.gate, -1, 1)
                if got == PY_LOCK_ACQUIRED:
                    break
                if got == PY_LOCK_INTR:
                    PyErr_CheckSignals()
        with cython.critical_section(self):
            self.owner = me
            self.depth = 1
        return 0

    cdef int give(self, int times) except -1:
        cdef bint last
        with cython.critical_section(self):
            self.depth -= times
            last = self.depth == 0
            if last:
                self.owner = 0
        if last:
            PyThread_release_lock(self.gate)
        return 0

    def __enter__(self):
        self.take()

    def __exit__(self, *problem):
        self.give(1)
        return False
