# cython: language_level=3
"""Rows of three numbers in an array of the caller, read in place."""
from libc.stdint cimport int64_t

from pycct.geometry.vec cimport vec3


# An array of the caller: shape (n, 3), float64 or float32, any strides.
cdef struct vector_rows:
    const char* data
    Py_ssize_t stride
    Py_ssize_t inner
    bint single


cdef vec3 row_load(const vector_rows* r, int64_t i) noexcept nogil
# Also False for NaN.
cdef inline bint within(vec3 v, double limit) noexcept nogil:
    return -limit <= v.x <= limit and -limit <= v.y <= limit and -limit <= v.z <= limit


# First row that is not finite or has a component larger than ``limit``; -1: none.
cdef int64_t rows_check(const vector_rows* r, int64_t n, double limit) noexcept nogil

# A float64 or float32 array that C can read, with any strides.
cdef object as_numbers(object value, str name)
# Rows of three numbers, finite and at most FARTHEST; n < 0: any number of rows. The returned array
# must outlive ``rows``.
cdef object as_vectors(object value, str name, Py_ssize_t n, vector_rows* rows)
# None, or a contiguous float64 array of n weights >= 0.
cdef object as_weights(object value, str name, Py_ssize_t n)
# 64-bit integers with no or one dimension. KeyError for a larger id.
cdef object as_ids(object value)
# Checks the argument ``out`` for n flags.
cdef int as_flags(object out, Py_ssize_t n) except -1
