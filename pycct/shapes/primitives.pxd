# cython: language_level=3
"""Shapes: immutable values with all data that a scene needs."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pycct.spatial.bvh cimport bvh, bvh_block
from pycct.shapes.heightfield_cells cimport field_data
from pycct.convex.hull cimport HullTables
from pycct.convex.polytope cimport convex_shape
from pycct.geometry.types cimport hull_data
from pycct.geometry.vec cimport aabb, vec3


# A triangle mesh in its own frame. Triangles are sorted by the leaves of the tree, and each is
# rotated so that its lexicographically smallest vertex comes first. Degenerate triangles are
# omitted.
cdef struct mesh_data:
    int32_t n_vertices
    int32_t n_triangles         # triangles in the tree
    int32_t n_given             # triangles of the user
    bint two_sided
    const double* vertices      # (n_vertices, 3)
    const int32_t* triangles    # (n_triangles, 3)
    const double* normals       # (n_triangles, 3) unit
    const int32_t* source       # (n_triangles) the user's index
    const int32_t* given        # (n_given, 3) the user's triangles
    const int64_t* data         # one per triangle of the user, or NULL
    const uint32_t* mask        # one per triangle of the user, or NULL: its layers
    const uint8_t* shared       # (n_triangles) bit k: another one has both corners of edge k; or NULL: unknown
    const bvh_block* blocks     # the triangles again, eight at a time, for rejection
    bvh tree                    # with a check if the arrays come from a file
    aabb bounds


# Whether triangle k (in the order of the leaves) is usable. A walk of the tree has checked its
# results; a loop over all triangles must check.
cdef inline bint mesh_usable(const mesh_data* m, int32_t k) noexcept nogil:
    return m.tree.check == NULL or m.tree.check(m.tree.owner, k)


cdef class Shape:
    cdef readonly int kind      # shape_kind
    cdef vec3 a                 # box: half extents; triangle: first vertex; plane: normal
    cdef vec3 b
    cdef vec3 c
    cdef double radius_
    cdef double height_         # capsule; plane: offset
    cdef aabb bounds_           # in the shape's own frame; huge for a plane
    cdef int fresh(self) except -1
    cdef const hull_data* hull(self) noexcept
    cdef const mesh_data* mesh(self) noexcept
    cdef const field_data* field(self) noexcept


cdef class Sphere(Shape):
    pass


cdef class Capsule(Shape):
    pass


cdef class Box(Shape):
    pass


cdef class Triangle(Shape):
    pass


cdef class Plane(Shape):
    cdef int _set(self, vec3 normal, double offset) except -1


cdef class ConvexHull(Shape):
    cdef readonly object tables     # HullTables, shared by scaled copies
    cdef vec3 scale_
    cdef int _set(self, HullTables tables, vec3 scale) except -1
    cdef const hull_data* _tables(self) except NULL


# The unit normal keeps its bits.
cdef Plane plane_over(vec3 normal, double offset)
cdef ConvexHull hull_over(HullTables tables, vec3 scale)


# Whether a shape is a convex body, and its plain values. They point into the shape.
cdef bint convex_values(Shape s, convex_shape* out) noexcept
