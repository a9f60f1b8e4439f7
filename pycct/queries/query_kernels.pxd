# cython: language_level=3
"""Questions to the world: the loops over what a shape can meet. C structs only; whoever
calls keeps the world alive.

Every answer is that of testing each shape and each triangle, to the bit: trees decide
only what to look at, and answers that tie are put in order by geometry.
"""
from libc.stdint cimport int32_t, uint8_t, uint32_t

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


# The shape that asks, placed in the world.
cdef struct query_shape:
    int32_t kind            # asker_kind
    const convex_shape* shape   # of a round shape or polytope
    vec3 position           # also the origin of the frame in which polytopes are computed
    quat rotation
    vec3 p0                 # round: ends of the axis
    vec3 p1
    double radius
    vec3 normal             # half space
    double offset
    aabb box                # in the world; not of a half space


cdef struct query_view:
    const broadphase_layer* parts[QUERY_PARTS]        # NULL: not asked
    const uint8_t* allowed[QUERY_PARTS]         # one per item, or NULL: all
    uint32_t mask


# What rays, sweeps and closest points find.
cdef struct query_hit:
    bint found
    double distance
    bint overlapping
    vec3 normal             # out of what was met
    vec3 point              # on what was met
    vec3 own_point          # on the shape that asks (closest points only)
    int32_t part
    int32_t item
    int32_t tri             # as the user counts it, -1: none
    # The order of answers at the same distance.
    double facing
    vec3 a
    vec3 b
    vec3 c


# One shape that is touched, and the way out.
cdef struct query_touch:
    int32_t part
    int32_t item
    vec3 direction
    double depth


# Big: only for who asks as a polytope.
cdef struct polytope_work:
    polytope body           # about the asker's position
    polytope other
    cast_body cast
    cast_body other_cast
    triangle faces[QUERY_FACES]     # of the body, in the world
    int32_t n_faces


# Scratch memory of one thread: grows.
cdef struct query_scratch:
    candidates near
    polytope_work* work
    query_touch* touches
    int32_t n_touches
    int32_t room_touches


cdef void query_init(query_scratch* s) noexcept nogil
cdef void query_free(query_scratch* s) noexcept nogil
# The shape at a pose; status. Fills in what depends on the pose and, for a polytope, the work.
cdef int query_shape_place(query_shape* q, const convex_shape* shape, vec3 position, quat rotation, query_scratch* s,
                           bint casts) noexcept nogil
cdef void query_shape_ray(query_shape* q, vec3 origin) noexcept nogil
cdef void query_shape_halfspace(query_shape* q, vec3 normal, double offset) noexcept nogil
# Nearest hit along the unit vector dir. Status; hit.found tells.
cdef int query_cast(const query_view* v, const query_shape* q, vec3 dir, double limit, query_scratch* s,
                    query_hit* hit) noexcept nogil
# Append a touch. Status.
cdef int query_note(query_scratch* s, const query_touch* touch) noexcept nogil
# All shapes touched, in s.touches; with the ways out when asked. Status.
cdef int query_touches(const query_view* v, const query_shape* q, bint ways_out, query_scratch* s) noexcept nogil
# Nearest pair of points within max_distance; negative distance when it enters. Status.
cdef int query_closest(const query_view* v, const query_shape* q, double max_distance, query_scratch* s,
                       query_hit* hit) noexcept nogil
# Mark the items (one byte each) that a cast, or a look around within reach, may meet.
cdef void query_mark(const query_view* v, const query_shape* q, vec3 dir, double limit, bint near,
                     uint8_t** marks) noexcept nogil
