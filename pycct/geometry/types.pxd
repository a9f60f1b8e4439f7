# cython: language_level=3
"""Structs and enums that the compiled modules share.

A function that can fail returns a ``status``. Only ``pycct.args.values.raise_status`` turns a
status into an exception.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.geometry.vec cimport aabb, mat3, quat, vec3


cdef enum status:
    STATUS_OK = 0
    STATUS_NEED_ANSWER = 1  # no error: a callback must answer, then the move restarts
    STATUS_NO_MEMORY = -1
    STATUS_NOT_FINITE = -2
    STATUS_TOO_DEEP = -3


cdef enum shape_kind:
    SHAPE_SPHERE = 0
    SHAPE_CAPSULE = 1
    SHAPE_BOX = 2
    SHAPE_TRIANGLE = 3
    SHAPE_HULL = 4
    SHAPE_PLANE = 5
    SHAPE_MESH = 6
    SHAPE_HEIGHTFIELD = 7


cdef enum body_kind:
    BODY_STATIC = 0
    BODY_KINEMATIC = 1
    BODY_DYNAMIC = 2


# A triangle in world space, prepared for sweeps. Its vertices are rotated (winding kept) so that
# the lexicographically smallest comes first. The user's order of vertices therefore changes no bit
# of any result.
cdef struct triangle:
    vec3 a
    vec3 b
    vec3 c
    vec3 n              # unit normal, counter-clockwise seen from outside
    double d            # dot(n, a)


# Result of a sweep.
cdef struct sweep_hit:
    double distance     # along the unit direction; 0 if overlapping
    bint overlapping    # closer than the radius at the start
    vec3 normal         # unit, out of the shape; minus the direction if overlapping
    vec3 point          # on the surface of the shape
    int32_t tri         # index in the array of triangles, -1: none
    bint by_rim         # only capsule_cast.meets_rims or meets_back_rims makes it a hit; of triangles only


# Tables of a convex hull. Coordinates are packed x, y, z. Faces are convex polygons,
# counter-clockwise seen from outside, with coplanar triangles merged. A hull of dimension 2 has two
# faces (front and back); dimension 0 or 1 has none.
cdef struct hull_data:
    int32_t dimension           # 0 point, 1 segment, 2 polygon, 3 solid
    int32_t n_vertices
    int32_t n_edges
    int32_t n_faces
    int32_t n_triangles
    const double* vertices      # (n_vertices, 3)
    const int32_t* edges        # (n_edges, 2) vertex indices, first < second
    const int32_t* edge_faces   # (n_edges, 2) the two faces of each edge
    const double* planes        # (n_faces, 4) unit outward normal, offset = dot(normal, point)
    const int32_t* face_start   # (n_faces + 1) first corner of each face in face_vertices / face_edges
    const int32_t* face_vertices
    const int32_t* face_edges   # edge from a corner to the next one
    const int32_t* triangles    # (n_triangles, 3) each face as a fan from its first corner
    const int32_t* triangle_face
