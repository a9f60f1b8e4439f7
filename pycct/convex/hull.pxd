# cython: language_level=3
"""Convex hulls of points, with the tables for collisions.

`hull_data` (in `pycct.geometry.types`) is the kernels' view. `HullTables` owns the memory; users of
a copy of `data` must keep the object alive.
"""
from libc.stdint cimport int32_t

from pycct.geometry.types cimport hull_data


cdef enum:
    HULL_MAX_VERTICES = 255


# Tables beyond hull_data, in the same block of memory.
cdef struct hull_extra:
    const int32_t* vertex_face_start    # (n_vertices + 1) into vertex_faces
    const int32_t* vertex_faces         # faces around each vertex, ascending
    const int32_t* vertex_edge_start    # (n_vertices + 1) into vertex_edges
    const int32_t* vertex_edges         # edges at each vertex, ascending
    int32_t outline_start[4]            # of the outline seen along x, y, z in outline_vertices
    const int32_t* outline_vertices     # corners of the hull flattened along an axis, counter-clockwise around it


cdef class HullTables:
    cdef hull_data data
    cdef hull_extra extra
    cdef double extent_                 # diagonal of the bounding box of the points
    cdef double volume_                 # m^3, 0 below dimension 3
    cdef void* _block
    cdef int _fill(self, double[:, ::1] points, int dimension, list faces, list rest, object extent) except -1


# Raises ValueError that names `points`.
cdef HullTables build_hull(object points)
# For files: the data of the same tables, to the bit, without building the hull: dimension, vertices
# (n, 3), planes (faces, 4), corners of each face (faces + 1), vertex of each corner, extent.
cdef tuple hull_record(HullTables tables)
# Raises ValueError if the record is not that of a closed hull.
cdef HullTables hull_again(int dimension, object vertices, object planes, object starts, object corners, double extent)
