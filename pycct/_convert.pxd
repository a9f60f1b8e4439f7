# cython: language_level=3
"""From Python values to C structs, with errors that name the argument."""
from pycct._vec cimport quat, vec3


cdef vec3 as_vec3(object value, str name) except *
cdef double as_float(object value, str name) except? -1.0
cdef double as_positive(object value, str name) except? -1.0
cdef double as_not_negative(object value, str name) except? -1.0
# A rotation (x, y, z, w): normalised when its length is within 1e-3 of 1, else refused.
cdef quat as_quat(object value, str name) except *
cdef vec3 as_unit(object value, str name) except *
# A contiguous float64 array of shape (n, columns), finite, copied; n >= least.
cdef object as_table(object value, str name, int columns, int least)
cdef tuple from_vec3(vec3 v)
cdef tuple from_quat(quat q)
cdef int raise_status(int code) except -1
