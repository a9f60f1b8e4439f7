# cython: language_level=3
"""Queries of a scene: the loops over the shapes that a query can meet.

C structs only; the caller keeps the world alive. Every result is that of a test of each shape and
triangle, to the bit: trees only reject, and geometry decides ties.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pycct.convex.polytope_cast cimport cast_body
from pycct.convex.polytope cimport convex_shape, polytope
from pycct.geometry.types cimport triangle
from pycct.geometry.vec cimport aabb, quat, vec3
from pycct.world.candidates cimport candidates, collider, broadphase_layer

cdef enum:
    QUERY_PARTS = 3         # static actors, moving actors, characters
    QUERY_FACES = 512


cdef enum query_shape_kind:
    ASK_RAY = 0
    ASK_ROUND = 1           # sphere or capsule
    ASK_POLYTOPE = 2        # box, hull, triangle
    ASK_HALFSPACE = 3       # plane


# The query shape, placed in the world.
cdef struct query_shape:
    int32_t kind            # asker_kind
    const convex_shape* shape   # of a round shape or polytope
    vec3 position           # also the origin of the frame of polytopes
    quat rotation
    vec3 p0                 # round: ends of the axis
    vec3 p1
    double radius
    vec3 normal             # half space
    double offset
    aabb box                # in the world; not for a half space


cdef struct query_view:
    const broadphase_layer* layers[QUERY_PARTS]        # NULL: not included
    const uint8_t* allowed[QUERY_PARTS]         # one per item, or NULL: all
    uint32_t mask
    int64_t exclude                             # id of an item that is passed over, -1: none
    int64_t exclude_too                         # another one
    const int32_t* groups                       # of the characters; NULL: unknown
    int64_t group                               # characters of other groups are passed over, -1: none is
    bint obstacles                              # obstacles are met as well
    bint first_only                             # any hit will do: the first one that is found


# Result of rays, sweeps and closest points.
cdef struct query_hit:
    bint found
    double distance
    bint overlapping
    vec3 normal             # out of the shape that was hit
    vec3 point              # on the shape that was hit
    vec3 own_point          # on the query shape (closest points only)
    int32_t layer_index
    int32_t item
    int32_t tri             # in the order of the user's triangles, -1: none
    # Order of results at the same distance.
    double facing
    vec3 a
    vec3 b
    vec3 c


# One touched shape, and the exit.
cdef struct query_touch:
    int32_t layer_index
    int32_t item
    vec3 direction
    double depth


# Large: only for polytope queries.
cdef struct polytope_work:
    polytope body           # about the position of the query shape
    polytope other
    cast_body cast
    cast_body other_cast
    triangle faces[QUERY_FACES]     # of the body, in the world
    int32_t n_faces


# Scratch memory of one thread, which grows.
cdef struct query_scratch:
    candidates near
    polytope_work* work
    query_touch* touches
    int32_t n_touches
    int32_t capacity_touches
    query_hit* hits         # of query_ray_all
    int32_t n_hits
    int32_t capacity_hits


cdef void query_init(query_scratch* s) noexcept nogil
cdef void query_free(query_scratch* s) noexcept nogil
# Places the shape at a pose and prepares the work for a polytope. Status.
cdef int query_shape_place(query_shape* q, const convex_shape* shape, vec3 position, quat rotation, query_scratch* s,
                           bint casts) noexcept nogil
cdef void query_shape_ray(query_shape* q, vec3 origin) noexcept nogil
cdef void query_shape_halfspace(query_shape* q, vec3 normal, double offset) noexcept nogil
# Nearest hit along the unit vector dir. Status; hit.found reports a hit.
cdef int query_cast(const query_view* v, const query_shape* q, vec3 dir, double limit, query_scratch* s,
                    query_hit* hit) noexcept nogil
# The parts of a cast, for callers that know what is near. ``hit`` holds the best hit so far.
cdef void query_no_hit(query_hit* hit) noexcept nogil
# Casts a ray at one item. Status.
cdef int query_ray_item(const query_view* v, const query_shape* q, vec3 dir, double limit, query_scratch* s,
                        int32_t layer_index, int32_t item, query_hit* hit) noexcept nogil
# Offers the triangle ``tri`` of an item, which the ray meets at ``distance``, from behind if
# ``back``.
cdef void query_offer_triangle(const query_view* v, const query_shape* q, vec3 dir, int32_t layer_index, int32_t item,
                               const triangle* t, int32_t tri, double distance, bint back,
                               query_hit* hit) noexcept nogil
# Items of one part that a query may meet in a box: their number, at most ``room`` are written.
cdef int32_t query_items_in(const query_view* v, int32_t layer_index, aabb box, int32_t* items,
                            int32_t capacity) noexcept nogil
# All hits along a ray, in s.hits, the nearest first: each triangle, and each solid once. Status.
cdef int query_ray_all(const query_view* v, const query_shape* q, vec3 dir, double limit,
                       query_scratch* s) noexcept nogil
# Appends a touch. Status.
cdef int query_note(query_scratch* s, const query_touch* touch) noexcept nogil
# All touched shapes, in s.touches; with exits if requested. Status.
cdef int query_touches(const query_view* v, const query_shape* q, bint ways_out, query_scratch* s) noexcept nogil
# Nearest pair of points within max_distance; negative distance for an overlap. Status.
cdef int query_closest(const query_view* v, const query_shape* q, double max_distance, query_scratch* s,
                       query_hit* hit) noexcept nogil
# Marks the items (one byte each) that a cast or a search within reach can meet.
cdef void query_mark(const query_view* v, const query_shape* q, vec3 dir, double limit, bint near,
                     uint8_t** marks) noexcept nogil
