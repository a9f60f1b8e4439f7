# cython: language_level=3
"""From Python values to C structs, with errors that name the argument."""
from libc.stdint cimport uint32_t

from pycct.geometry.vec cimport quat, vec3

# A coordinate in a scene may not be larger than this, metres: beyond it, float64
# itself resolves no better than a millimetre.
cdef double FARTHEST


cdef vec3 as_vec3(object value, str name) except *
cdef double as_float(object value, str name) except? -1.0
cdef double as_positive(object value, str name) except? -1.0
cdef double as_not_negative(object value, str name) except? -1.0
# A rotation (x, y, z, w): normalised when its length is within 1e-3 of 1, else refused.
cdef quat as_quat(object value, str name) except *
cdef vec3 as_unit(object value, str name) except *
# A position within FARTHEST of the origin.
cdef vec3 as_place(object value, str name) except *
cdef uint32_t as_bits(object value, str name) except? 0
# A contiguous float64 array of shape (n, columns), finite, copied; n >= least.
cdef object as_table(object value, str name, int columns, int least)
# repr of a value for an error message: at most 80 letters, whatever the value is.
cdef str short(object value)
cdef tuple from_vec3(vec3 v)
cdef tuple from_quat(quat q)
cdef int raise_status(int code) except -1
