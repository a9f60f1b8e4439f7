# cython: language_level=3
"""Triangles of a grid of heights, made on demand.

Samples form ``rows`` rows of ``columns``. Sample (i, j) has its height along local z. Rows follow
one another along x and columns along y (row axis x), or the other way round (row axis y). Cell (i,
j) is between the samples (i, j) and (i + 1, j + 1). Its number is i * (columns - 1) + j, and its
triangles are 2 * number and 2 * number + 1.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pycct.spatial.bvh cimport bvh, bvh_node
from pycct.geometry.vec cimport aabb, vec3

cdef enum:
    FIELD_TILE = 4          # cells along a side of a tile, the unit of the tree


cdef struct field_data:
    int32_t rows
    int32_t columns
    bint rows_along_y
    bint two_sided
    double row_step             # m, between rows
    double column_step
    const double* heights       # (rows, columns)
    const uint8_t* cells        # (rows - 1, columns - 1) bit 0: diagonal; bit 1: hole; or NULL
    uint8_t diagonal            # for all cells, if ``cells`` is NULL
    const int64_t* data         # one per triangle, or NULL
    const uint32_t* mask        # one per triangle, or NULL
    int32_t tile_columns
    bint checked                # heights may be corrupt: cells outside of the bounds count as holes
    bvh tree                    # over tiles; order: tile row * tile_columns + tile column
    aabb bounds


# Corners of triangle 0 or 1 of a cell, in the field's own frame, counter-clockwise seen from above,
# the lexicographically smallest first. False: a hole.
cdef bint field_triangle(const field_data* f, int32_t i, int32_t j, int which, vec3* a, vec3* b, vec3* c) noexcept nogil
cdef vec3 field_point(const field_data* f, int32_t i, int32_t j) noexcept nogil
# Height and normal at a place of the field's own frame. False: outside, a hole, or no number.
cdef bint field_sample(const field_data* f, double x, double y, double* height, vec3* normal) noexcept nogil
# Cells i0..i1, j0..j1 (inclusive) that a box can touch. False: none.
cdef bint field_cells(const field_data* f, aabb box, int32_t* i0, int32_t* i1, int32_t* j0, int32_t* j1) noexcept nogil
# Cells of a tile.
cdef void field_tile(const field_data* f, int32_t tile, int32_t* i0, int32_t* i1, int32_t* j0,
                     int32_t* j1) noexcept nogil
# The boxes of a tile's cells, as two nodes that are in no tree. Each node holds two rows of four
# cells. Lanes without a cell have inverted boxes.
cdef void field_tile_boxes(const field_data* f, int32_t i0, int32_t i1, int32_t j0, int32_t j1,
                           bvh_node* boxes) noexcept nogil
# A check (bvh_check) for the tree of a field, which owns it.
cdef bint field_check_tile(const void* field, int32_t place) noexcept nogil
cdef inline int32_t field_tile_columns(int32_t columns) noexcept nogil:
    return (columns - 2) // FIELD_TILE + 1
# Bounds and tree; the arrays must be set. Returns a status.
cdef int field_build(field_data* f) noexcept nogil
