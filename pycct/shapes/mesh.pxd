# cython: language_level=3
"""Triangle meshes."""
from libc.stdint cimport int32_t

from pycct.geometry.vec cimport aabb
from pycct.shapes.primitives cimport Shape, mesh_data

# Largest coordinate of a vertex of a mesh or heightfield.
cdef double FARTHEST_VERTEX


cdef class Mesh(Shape):
    cdef mesh_data data_
    cdef object vertices_       # arrays that data_ points into
    cdef object shared_         # array of data_.shared; None: unknown
    cdef object data_array
    cdef object mask_array
    cdef object nodes_          # array that the tree points into, if it is not the mesh's own
    cdef bint borrowed          # whether there is such an array


# One integer per triangle as an array, copied; None stays None.
cdef object numbers_per_triangle(object values, str name, int32_t n, object dtype)
# For files: a mesh over external arrays with unchecked contents. Their shapes and types must be
# right, and the bounds finite.
cdef Mesh mesh_over(tuple arrays, object nodes, object data, object mask, bint two_sided, aabb bounds)
# Checks all indices and numbers of such a mesh; reads everything.
cdef bint mesh_sound(Mesh mesh) except -1
cdef double span_of(aabb bounds) noexcept
cdef object bytes_at(char* at, Py_ssize_t n)
