# cython: language_level=3
"""Conversion of Python arguments to C values. Errors name the argument."""
from libc.stdint cimport uint32_t

from pycct.geometry.vec cimport quat, vec3

# Largest coordinate of a scene, metres. Beyond it, float64 resolves no better than a millimetre.
cdef double FARTHEST


cdef vec3 as_vec3(object value, str name) except *
cdef bint as_bool(object value, str name) except -1
cdef double as_float(object value, str name) except? -1.0
cdef double as_positive(object value, str name) except? -1.0
cdef double as_not_negative(object value, str name) except? -1.0
# A rotation (x, y, z, w), normalised; ValueError if its length differs from 1 by more than 1e-3.
cdef quat as_quat(object value, str name) except *
cdef vec3 as_unit(object value, str name) except *
# A position within FARTHEST of the origin.
cdef vec3 as_place(object value, str name) except *
cdef uint32_t as_bits(object value, str name) except? 0
# Bits of Behavior.
cdef uint32_t as_behavior(object value, str name) except? 0
# A contiguous, finite float64 copy of shape (n, columns) with n >= min_rows.
cdef object as_table(object value, str name, int columns, int min_rows)
# repr of a value for an error message, at most 80 characters.
cdef str short(object value)
cdef tuple from_vec3(vec3 v)
cdef tuple from_quat(quat q)
cdef int raise_status(int code) except -1
