# cython: language_level=3
"""Many scenes that a crowd's members live in."""


cdef class Worlds:
    cdef object __weakref__
    cdef readonly tuple scenes
    cdef object indices(self, object world, Py_ssize_t n)
