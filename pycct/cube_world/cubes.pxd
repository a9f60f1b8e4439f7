# cython: language_level=3
"""A world of unit cubes and free boxes with two spatial hashes.

Cubes are stored in bricks of 4 x 4 x 4 cells, one bit a cell, so a solid chunk of a voxel game
costs a quarter of a byte per cube and fits the first-level cache. A cube's id is its cell as one
number; a box's id is a digest of its geometry. No id depends on the order of insertion, so 'the
lower id wins' is a geometric rule.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t

from pycct.geometry.vec cimport aabb, quat, vec3


cdef enum:
    CELL_LIMIT = 524288         # cells run from -CELL_LIMIT to CELL_LIMIT - 1 on each axis
    BOX_LEVELS = 21             # level k holds boxes whose bounds are at most 2**k m wide


# One slot of the open-addressed brick table.
cdef struct brick:
    uint64_t key                # packed brick coordinates + 1; 0: empty slot
    uint64_t bits               # bit (x & 3) << 4 | (y & 3) << 2 | (z & 3): the cell is solid


cdef struct free_box:
    vec3 centre
    vec3 half                   # half extents, > 0
    quat rotation               # unit length
    aabb bounds
    int64_t id
    int32_t next                # next box of the same hash bucket, -1: last
    int32_t level               # its cell edge is 2**level m
    bint turned                 # rotation is not the identity


# Data of all queries. It belongs to one ``_Grid`` object and does not change while that object has
# users.
cdef struct cube_grid:
    brick* bricks               # (n_slots)
    int64_t n_slots             # power of two, 0 at first
    int32_t shift               # 64 - log2(n_slots)
    int64_t n_used              # slots with a key
    int64_t n_cubes
    free_box* boxes             # (box_capacity), the first n_boxes used, in no order
    int32_t n_boxes
    int32_t box_capacity
    int32_t* buckets            # (n_buckets) first box of each bucket, -1: none
    int64_t n_buckets           # power of two, 0 at first
    int32_t level_count[BOX_LEVELS]
    aabb bounds                 # contains every cube and box (does not shrink); empty: lo > hi


# Argument of a visitor.
cdef struct candidate:
    int64_t id
    vec3 lo                     # the cube, the unrotated box, or the bounds of a rotated one
    vec3 hi
    const free_box* box         # NULL for a cube


ctypedef void (*visitor)(void* context, const candidate* c) noexcept nogil

# Calls ``visit`` once for every cube and free box whose bounds touch ``span``, in no particular
# order. The span must be finite.
cdef void grid_visit(const cube_grid* g, aabb span, visitor visit, void* context) noexcept nogil
cdef bint grid_solid(const cube_grid* g, int64_t x, int64_t y, int64_t z) noexcept nogil


cdef inline int64_t cell_id(int64_t x, int64_t y, int64_t z) noexcept nogil:
    """The cell as one number >= 0, in lexicographic order of x, y, z."""
    return ((x + CELL_LIMIT) << 40) | ((y + CELL_LIMIT) << 20) | (z + CELL_LIMIT)


cdef inline bint is_cell_id(int64_t id) noexcept nogil:
    return 0 <= id < (<int64_t>1 << 60)


cdef inline int64_t floor_int(double x) noexcept nogil:
    cdef int64_t i = <int64_t>x
    return i - 1 if x < <double>i else i


cdef class _Grid:
    cdef cube_grid data
    cdef Py_ssize_t users       # moves in flight that read this grid


cdef class CubeWorld:
    cdef _Grid _grid
    cdef dict _box_index        # id -> position in _grid.data.boxes
    cdef readonly unsigned long long revision
    cdef object __weakref__

    # Acquire and release a snapshot of the world. The caller holds the GIL (or is attached to the
    # interpreter) in both calls, and may release it in between.
    cdef _Grid acquire(self)
    cdef void release(self, _Grid grid) noexcept
    cdef int _make_writable(self) except -1
    cdef void _put(self, int64_t x, int64_t y, int64_t z) noexcept
    cdef object _array(self, occupancy, origin, bint adding)
    cdef int64_t _insert_box(self, free_box b) except -1
    cdef bint _has(self, id) except -1
