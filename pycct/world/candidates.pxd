# cython: language_level=3
"""Surroundings of a move: colliders, the candidates near a capsule, and the nearest hit among them.

C structs only; the caller keeps the shapes alive.
"""
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pycct.spatial.bvh cimport bvh
from pycct.shapes.heightfield_cells cimport field_data
from pycct.convex.hull cimport hull_extra
from pycct.geometry.aabb4 cimport LANES, aabb4_place
from pycct.spatial.character_grid cimport character
from pycct.geometry.overlap cimport push_out
from pycct.shapes.primitives cimport mesh_data
from pycct.geometry.sweep cimport capsule_cast, toi_candidate, triangle_aid
from pycct.geometry.types cimport hull_data, sweep_hit, triangle
from pycct.geometry.vec cimport aabb, f_max, mat3, quat, vec3


# One shape in the world.
cdef struct collider:
    int32_t kind            # shape_kind
    int32_t body            # body_kind
    uint32_t layer
    uint32_t behavior
    int64_t id
    vec3 position
    quat rotation
    vec3 scale
    mat3 matrix             # of the rotation
    bint obstacle           # 'user' geometry: analytic, no triangles
    bint plain              # no rotation, no scale: only translated
    bint mirrored           # the scale mirrors the triangles
    aabb bounds             # in the world
    vec3 a                  # box: half extents; triangle: corner; plane: world normal; capsule: world end of the axis
    vec3 b                  # triangle: corner; capsule: world end of the axis
    vec3 c                  # triangle: corner
    double radius           # world radius of a sphere or capsule
    double offset           # world offset of a plane
    const mesh_data* mesh
    const field_data* field
    const hull_data* hull
    const hull_extra* extra
    vec3 hull_scale         # of the hull's own tables


# Immutable once published.
cdef struct broadphase_layer:
    int32_t n
    collider* items
    bvh tree                # over the bounded items; ``order`` contains indices of items
    int32_t n_endless
    int32_t* endless        # items without bounds: always candidates
    uint64_t version        # never used twice
    uint64_t timestamp      # of the scene at its publication


cdef enum group_kind:
    GROUP_TRIANGLES = 0
    GROUP_SPHERE = 1
    GROUP_CAPSULE = 2
    GROUP_PLANE = 3
    GROUP_BOX = 4           # a box obstacle


cdef enum owner_kind:
    OWNER_ACTOR = 0
    OWNER_CONTROLLER = 1
    OWNER_OBSTACLE = 2


# Bit of ``recovers`` for obstacles and controllers; those below are body_kinds.
cdef enum:
    RECOVER_USER = 3


cdef enum question:
    ASK_FILTER = 0          # does the character collide with it?
    ASK_BEHAVIOR = 1        # riding and sliding on it?


# The candidates of one shape, adjacent in memory.
cdef struct candidate_group:
    int64_t id              # of the actor, obstacle or controller
    int32_t item            # index in its layer, or of the character
    int32_t layer_index            # 0 static, 1 moving, 2 characters
    int32_t owner           # owner_kind
    uint32_t behavior
    int32_t kind            # group_kind
    int32_t body            # body_kind
    bint closed             # the triangles bound a solid (box, hull)
    bint flat               # ... which has no volume: the front and the back of one polygon
    bint two_sided
    const uint8_t* shared   # mesh_data.shared, if it is right for these triangles; NULL: unknown
    int32_t first           # range of triangles
    int32_t count
    vec3 q0                 # sphere, capsule: ends of the axis; plane: normal; box: centre
    vec3 q1                 # box: half extents
    double radius           # plane: offset
    quat rotation           # box


# Replacement of too steep triangles by invisible walls; height 0: none.
cdef struct wall_rule:
    double height
    double slope_limit
    vec3 up


# Result of a callback about a candidate during this move.
cdef struct answer:
    int32_t owner           # owner_kind
    int32_t question
    int64_t id
    uint32_t value


# Results known so far. A move that needs another one records the question, ends with
# STATUS_NEED_ANSWER and starts again.
cdef struct callback_answers:
    answer* answers
    int32_t n
    int32_t capacity
    bint needs_answer
    answer pending


# Scratch memory of one controller or thread: grows, never shrinks.
cdef struct candidates:
    candidate_group* groups
    int32_t n_groups
    int32_t n_one_sided     # the first groups that are one-sided triangles, up to another one
    int32_t capacity_groups
    void* block             # memory of all data of triangles
    triangle* tris
    int32_t* source         # the user's index of each triangle, -1: invisible wall or no mesh
    float* boxes            # of the triangles, slightly larger, in blocks (see aabb4)
    int32_t* picked         # indices of triangles
    # After a cast with ``passed``: number of triangles in ``picked`` that face away and that the
    # end of the motion may overlap; -1: any may.
    int32_t n_unseen
    # Place of each in its mesh's leaves, or number in its heightfield; of walls -1; undefined
    # elsewhere.
    int32_t* spot
    triangle_aid* aids
    toi_candidate* touched
    double* depths
    int32_t n_tris
    int32_t capacity_tris
    int32_t* places
    int32_t capacity_places
    int32_t* items
    int32_t capacity_items
    int64_t tested          # number of tested triangles
    uint32_t mask           # of the last gathering: layers of triangles to see
    int32_t[4] hints        # triangle that the last cast of each kind hit, -1: none (SWEEP 10.3)
    int32_t turn            # kind of the next cast: the pass of a move
    callback_answers* filter     # NULL: no filter


# The triangles of the hints, by their places in the world.
cdef struct hinted:
    int32_t[4] item             # -1: none
    int32_t[4] spot


# The candidates of one layer as indices: the cache of a character in a large crowd. One block of
# memory, which only grows.
cdef struct compact_group:
    int32_t item
    int32_t count           # spots of a mesh or heightfield; otherwise -1: the whole item


cdef struct compact_candidates:
    bint whole              # False: contains no usable data
    int32_t n_groups
    int32_t n_spots
    int32_t capacity            # capacity of ``block`` in numbers
    int32_t* block          # the groups, then their spots


cdef struct world_hit:
    sweep_hit base          # base.tri: index in candidates.tris
    int32_t group


cdef void candidates_init(candidates* c) noexcept nogil
cdef void candidates_free(candidates* c) noexcept nogil
# Reserves memory for more triangles. Status.
cdef int candidates_reserve(candidates* c, int32_t more) noexcept nogil
cdef void candidates_cut(candidates* c, int32_t n_groups, int32_t n_tris) noexcept nogil
# The hints among the first n_tris triangles, which belong to a layer; and their restoration, where
# found.
cdef hinted candidates_hinted(const candidates* c, const broadphase_layer* layer, int32_t n_tris) noexcept nogil
cdef void candidates_hint(candidates* c, const broadphase_layer* layer, const hinted* what) noexcept nogil
# Adds everything that touches the box; mask chooses layers. Returns a status.
cdef int candidates_gather(candidates* c, const broadphase_layer* layer, int32_t layer_index, aabb box, uint32_t mask,
                           const wall_rule* walls) noexcept nogil
# Adds one item, on any layer.
cdef int candidates_add(candidates* c, const collider* p, int32_t item, int32_t layer_index, aabb box,
                        const wall_rule* walls) noexcept nogil
# Stores the candidates of one layer as indices, and expands them again: the same candidates to the
# bit, while the layer is the same. Candidates with invisible walls are not stored.
cdef int candidates_keep(const candidates* c, const broadphase_layer* layer,
                         compact_candidates* compact) noexcept nogil
cdef int candidates_expand(candidates* c, const broadphase_layer* layer, int32_t layer_index,
                           const compact_candidates* compact) noexcept nogil
# Prefetches the data of the expansion: the triangles, or, once those have arrived, their corners.
cdef void compact_prefetch(const compact_candidates* compact, const broadphase_layer* layer,
                           bint corners) noexcept nogil
cdef void compact_free(compact_candidates* compact) noexcept nogil
# Adds another controller's capsule.
cdef int candidates_add_character(candidates* c, const character* who, int32_t index) noexcept nogil
# Looks up an answer; False if it is unknown, and the book then records the question.
cdef bint book_answer(callback_answers* book, int32_t question, int32_t owner, int64_t id,
                      uint32_t* value) noexcept nogil
cdef int book_add(callback_answers* book, const answer* a) noexcept nogil
cdef void book_free(callback_answers* book) noexcept nogil
# The nearest hit. Overlaps with bodies outside of ``recovers`` (a bit per body_kind, bit 3:
# obstacles and controllers) are ignored. The caller checks c.filter.needs_answer afterwards.
cdef bint candidates_cast(candidates* c, const capsule_cast* q, int recovers, world_hit* hit) noexcept nogil
# The same for the cheap case: the face of the one-sided triangle of the last cast of its kind is
# hit again, and nothing else counts. False: unknown.
cdef bint candidates_cast_again(candidates* c, const capsule_cast* q, world_hit* hit) noexcept nogil
# Order of two hits by geometry, then by id: -1, 0 or 1; a triangle index of -1 means the group's
# first.
cdef int group_order(const candidates* c, const candidate_group* g, int32_t g_tri, const candidate_group* h,
                     int32_t h_tri) noexcept nogil
# Whether the capsule may overlap any of the candidates: false only if it overlaps none. One-sided
# triangles count from their front.
cdef bint candidates_overlap(candidates* c, const broadphase_layer* fixed, const broadphase_layer* moving, vec3 p0,
                             vec3 p1, double radius) noexcept nogil
# Whether the capsule may overlap triangle i, a one-sided one from its front.
cdef bint candidates_overlap_one(candidates* c, int32_t i, vec3 p0, vec3 p1, double radius) noexcept nogil
# The deepest overlap among the bodies in ``recovers``; group -1: none.
cdef push_out candidates_deepest(candidates* c, vec3 p0, vec3 p1, double radius, int recovers,
                                 int32_t* group) noexcept nogil
cdef push_out group_push(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil
# The twelve triangles of the box of an obstacle.
cdef void box_triangles(const candidate_group* g, triangle* tris) noexcept nogil
# Whether the user's filter allows the group; also False if the filter must run first.
cdef bint group_may_be_met(candidates* c, const candidate_group* g) noexcept nogil
# Prefetches the data of a move.
cdef void candidates_prefetch(const candidates* c) noexcept nogil
# True if the capsule touches the shape; solids are solid, triangles count from both sides.
cdef bint group_overlaps(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil
cdef vec3 place_point(const collider* p, vec3 local) noexcept nogil
# Whether any triangle of a placed hull has an area; if none has, it is the segment between its
# ends.
cdef bint hull_has_faces(const collider* p) noexcept nogil
cdef void hull_ends(const collider* p, vec3* a, vec3* b) noexcept nogil
cdef vec3 unplace_point(const collider* p, vec3 world) noexcept nogil
# A box in the shape's frame around a box in the world.
cdef aabb local_box(const collider* p, aabb box) noexcept nogil
# Triangle k of a mesh (in the order of its leaves), or a cell's triangle of a heightfield, in the
# world; False: without area, or in a hole.
cdef bint mesh_triangle(const collider* p, Py_ssize_t k, triangle* t) noexcept nogil
cdef bint heightfield_triangle(const collider* p, int32_t i, int32_t j, int which, triangle* t) noexcept nogil
# The user's data of a triangle (in the user's order) of a mesh or heightfield; False: none.
cdef bint triangle_data(const collider* p, int32_t tri, int64_t* data) noexcept nogil
# The layers of such a triangle; all without a mask.
cdef uint32_t triangle_mask(const collider* p, int32_t tri) noexcept nogil
cdef aabb capsule_bounds(vec3 p0, vec3 p1, double radius) noexcept nogil


cdef inline bint is_flat_hull(const collider* p) noexcept nogil:
    """Whether a hull has no volume: its triangles are the front and the back of one polygon."""
    return p.hull.dimension < 3 or p.hull_scale.x == 0.0 or p.hull_scale.y == 0.0 or p.hull_scale.z == 0.0


cdef inline bint group_recovers(const candidate_group* g, int recovers) noexcept nogil:
    """Whether an overlap with the group counts."""
    return (recovers >> (g.body if g.owner == OWNER_ACTOR else RECOVER_USER)) & 1


cdef inline float float_below(double x) noexcept nogil:
    """A float slightly below or equal to x."""
    return <float>(x - fabs(x) * 1.2e-7 - 1e-37)


cdef inline float float_above(double x) noexcept nogil:
    return <float>(x + fabs(x) * 1.2e-7 + 1e-37)


cdef inline double candidates_top(const candidates* c, vec3 up, double top) noexcept nogil:
    """Largest height along up of the boxes of the triangles, at least ``top``."""
    # Index of the highest corner of a box.
    cdef int x = 3 * LANES if up.x > 0.0 else 0
    cdef int y = 4 * LANES if up.y > 0.0 else LANES
    cdef int z = 5 * LANES if up.z > 0.0 else 2 * LANES
    cdef const float* b
    cdef int32_t i
    for i in range(c.n_tris):
        b = aabb4_place(c.boxes, i)
        top = f_max(top, up.x * b[x] + up.y * b[y] + up.z * b[z])
    return top


cdef inline bint only_triangles(const candidates* c) noexcept nogil:
    """Whether all candidates are triangles."""
    cdef int32_t i
    for i in range(c.n_groups):
        if c.groups[i].kind != GROUP_TRIANGLES:
            return False
    return True


cdef inline bint only_one_sided(const candidates* c) noexcept nogil:
    """Whether all candidates are one-sided triangles."""
    return c.n_one_sided == c.n_groups


cdef inline void candidates_count_one_sided(candidates* c) noexcept nogil:
    """Count on, after groups were added."""
    cdef int32_t i = c.n_one_sided
    while i < c.n_groups and c.groups[i].kind == GROUP_TRIANGLES and not c.groups[i].two_sided:
        i += 1
    c.n_one_sided = i


cdef inline void candidates_set_groups(candidates* c, int32_t n_groups) noexcept nogil:
    """End a removal of single groups: these are left, in their order."""
    c.n_groups = n_groups
    c.n_one_sided = 0
    candidates_count_one_sided(c)
