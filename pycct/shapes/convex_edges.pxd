# cython: language_level=3
"""Convex edges of meshes and heightfields (RULES_2 3), found when recovery needs them.

Edge 0 of a triangle leads from its first to its second corner, edge 1 on to the third one, and edge
2 back. The corners are in the shape's own order, the smallest first. Nothing is stored: overlap
recovery is rare, and needs few edges.
"""
from libc.stdint cimport int32_t

from pycct.shapes.heightfield_cells cimport field_data
from pycct.shapes.primitives cimport mesh_data


# Bits of the convex edges of a triangle among ``edges``. A triangle of a mesh has its place in the
# leaves, one of a heightfield has its number.
cdef int mesh_convex_edges(const mesh_data* m, int32_t place, int edges) noexcept nogil
cdef int field_convex_edges(const field_data* f, int32_t tri, int edges) noexcept nogil
