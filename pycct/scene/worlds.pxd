# cython: language_level=3
"""Many scenes for the members of one crowd."""


cdef class Worlds:
    cdef object __weakref__
    cdef readonly tuple scenes
    cdef object indices(self, object world, Py_ssize_t n)
