# cython: language_level=3
"""Rows of three numbers in somebody else's array, read where they are."""
from libc.stdint cimport int64_t

from pycct.geometry.vec cimport vec3


# Numbers that the caller owns: (n, 3) of float64 or float32, of any stride.
cdef struct vector_rows:
    const char* data
    Py_ssize_t stride
    Py_ssize_t inner
    bint single


cdef vec3 row_load(const vector_rows* r, int64_t i) noexcept nogil
# False for what is not a number, too.
cdef inline bint within(vec3 v, double limit) noexcept nogil:
    return -limit <= v.x <= limit and -limit <= v.y <= limit and -limit <= v.z <= limit


# First row that is not finite or has a component larger than ``limit``, -1: none.
cdef int64_t rows_check(const vector_rows* r, int64_t n, double limit) noexcept nogil

# An array of float64 or float32 that C can read, whatever its strides.
cdef object as_numbers(object value, str name)
# Rows of three, checked: finite, no component larger than FARTHEST; n < 0: any number of them. The array that comes
# back must outlive the rows.
cdef object as_vectors(object value, str name, Py_ssize_t n, vector_rows* rows)
# Integers of 64 bits, of no dimension or of one. KeyError for an id that is larger.
cdef object as_ids(object value)
# The argument ``out`` for n flags.
cdef int as_flags(object out, Py_ssize_t n) except -1
