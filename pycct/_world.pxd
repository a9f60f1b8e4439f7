# cython: language_level=3
"""What a move sees: shapes placed in the world, the candidates near a capsule, the
nearest hit among them. C structs only; whoever calls keeps the shapes alive.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct._bvh cimport bvh
from pycct._overlap cimport push_out
from pycct._shapes cimport mesh_data
from pycct._sweep cimport capsule_cast, touched_triangle
from pycct._types cimport hull_data, sweep_hit, triangle
from pycct._vec cimport aabb, mat3, quat, vec3


# One shape in the world.
cdef struct placed:
    int32_t kind            # shape_kind
    int32_t body            # body_kind
    uint32_t layer
    uint32_t behavior
    int64_t id
    vec3 position
    quat rotation
    vec3 scale
    mat3 matrix             # of the rotation
    bint plain              # no rotation, no scale: only moved
    bint mirrored           # the scale turns triangles inside out
    aabb bounds             # in the world
    vec3 a                  # box: half extents; triangle: corner; plane: world normal; capsule: world end of the axis
    vec3 b                  # triangle: corner; capsule: world end of the axis
    vec3 c                  # triangle: corner
    double radius           # world radius of a sphere or capsule
    double offset           # world offset of a plane
    const mesh_data* mesh
    const hull_data* hull
    vec3 hull_scale         # of the hull's own tables


# Immutable once published.
cdef struct world_part:
    int32_t n
    placed* items
    bvh tree                # over the bounded items; ``order`` holds indices of items
    int32_t n_endless
    int32_t* endless        # items without bounds: always candidates
    uint64_t version        # never used twice


cdef enum group_kind:
    GROUP_TRIANGLES = 0
    GROUP_SPHERE = 1
    GROUP_CAPSULE = 2
    GROUP_PLANE = 3


# The candidates of one shape, side by side.
cdef struct candidate_group:
    int64_t id              # of the actor
    int32_t item            # index in its part
    int32_t part            # 0 static, 1 moving
    int32_t kind            # group_kind
    int32_t body            # body_kind
    bint closed             # the triangles bound a solid (box, hull)
    bint two_sided
    int32_t first           # range of triangles
    int32_t count
    vec3 q0                 # sphere, capsule: ends of the axis; plane: normal
    vec3 q1
    double radius           # plane: offset


# How triangles too steep to walk on become invisible walls; height 0: they do not.
cdef struct wall_rule:
    double height
    double slope_limit
    vec3 up


# Scratch memory of one controller or thread: grows, never shrinks.
cdef struct candidates:
    candidate_group* groups
    int32_t n_groups
    int32_t room_groups
    triangle* tris
    int32_t* source         # index of each triangle as the user gave it, -1: invisible wall or no mesh
    touched_triangle* touched
    double* depths
    int32_t n_tris
    int32_t room_tris
    int32_t* places
    int32_t room_places
    int32_t* items
    int32_t room_items
    int64_t tested          # triangles looked at


cdef struct world_hit:
    sweep_hit base          # base.tri: index in candidates.tris
    int32_t group


cdef void candidates_init(candidates* c) noexcept nogil
cdef void candidates_free(candidates* c) noexcept nogil
cdef void candidates_cut(candidates* c, int32_t n_groups, int32_t n_tris) noexcept nogil
# Add what touches the box; mask picks layers. Returns a status.
cdef int candidates_gather(candidates* c, const world_part* part, int32_t part_index, aabb box, uint32_t mask,
                           const wall_rule* walls) noexcept nogil
# Add one item, whatever its layer.
cdef int candidates_add(candidates* c, const placed* p, int32_t item, int32_t part_index, aabb box,
                        const wall_rule* walls) noexcept nogil
# The nearest hit; overlaps with bodies outside of ``recovers`` (a bit per body_kind) are passed over.
cdef bint candidates_cast(candidates* c, const capsule_cast* q, int recovers, world_hit* hit) noexcept nogil
# The shape that is overlapped deepest, of the bodies in ``recovers``; group -1: none.
cdef push_out candidates_deepest(candidates* c, vec3 p0, vec3 p1, double radius, int recovers,
                                 int32_t* group) noexcept nogil
cdef push_out group_push(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil
# True when the capsule touches the shape; solids are solid, triangles count from both sides.
cdef bint group_overlaps(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil
cdef vec3 place_point(const placed* p, vec3 local) noexcept nogil
cdef vec3 unplace_point(const placed* p, vec3 world) noexcept nogil
cdef aabb capsule_bounds(vec3 p0, vec3 p1, double radius) noexcept nogil
