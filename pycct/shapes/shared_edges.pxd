# cython: language_level=3
"""Edges that two triangles of a mesh share, found once when the mesh is built."""
from libc.stdint cimport uint8_t

from pycct.shapes.primitives cimport mesh_data


# Sets bit k of ``shared`` for each triangle, in the order of the leaves, if another triangle has
# the same vertices at edge k, and stores the array in the mesh. Status. Edges that are shared only
# by place keep a zero: moves look such triangles up.
cdef int mark_shared_edges(mesh_data* m, uint8_t* shared) noexcept nogil
