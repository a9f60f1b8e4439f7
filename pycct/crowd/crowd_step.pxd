# cython: language_level=3
"""Many characters at once, without Python: what a crowd keeps, its step, its questions.

Work is handed out by ranges of characters. A character reads its own record, the
scene and the picture of its neighbours, and writes its own record only, so that
threads and splits have no say in what comes out.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pycct.world.candidates cimport broadphase_layer
from pycct.character.move_types cimport (
    candidate_cache,
    controller_params,
    controller_state,
    ground_contact,
    hit_log,
    compact_cache,
    move_scratch,
    move_stats,
)
from pycct.spatial.character_grid cimport shared_grid
from pycct.args.vector_rows cimport vector_rows
from pycct.geometry.vec cimport vec3


# A collision, as Crowd.hits() tells it: field by field that of _crowd_records.HITS.
cdef struct hit_row:
    int64_t index
    int64_t id
    int64_t actor
    int64_t controller
    int64_t obstacle
    int64_t triangle
    int64_t data
    vec3 position
    vec3 normal
    vec3 direction
    double length
    double distance
    double along
    uint8_t sweep_pass
    uint8_t dynamic
    uint8_t has_data


# What is below, as Crowd.probe_ground tells it: that of _crowd_records.GROUND.
cdef struct ground_row:
    int64_t actor
    int64_t controller
    int64_t obstacle
    int64_t triangle
    int64_t data
    vec3 normal
    vec3 face_normal
    vec3 point
    double distance
    uint8_t hit
    uint8_t walkable
    uint8_t has_data


# What a thread has to itself.
cdef struct crowd_thread:
    move_scratch scratch
    hit_log log                 # of one move
    hit_row* hits               # since the step began
    int64_t n_hits
    int64_t room_hits
    int64_t failed              # first character that could not move, -1: none
    int status                  # why


# A world that members live in, as one call sees it.
cdef struct crowd_world:
    const broadphase_layer* fixed
    const broadphase_layer* moving
    shared_grid* neighbours     # the scene's
    shared_grid picture         # where everybody was when the step began
    bint is_met                 # a member that lives in it may meet others


# Structure of arrays; each has room for ``room`` characters, in the order of their ids.
cdef struct crowd_data:
    int64_t n
    int64_t room
    controller_state* states
    candidate_cache* near       # near candidates, each with its own; NULL: there are too many for that
    compact_cache* kept            # ... then by number
    int64_t* ids                # rising
    int32_t* rows               # of the parameter table
    int32_t* groups
    int32_t* slots              # in the scene's neighbours, -1: meets nobody
    controller_params* table    # one row for all that are equal
    int32_t* homes              # the world of each; NULL: all live in the first
    crowd_world* worlds
    int32_t n_worlds
    int64_t colliding           # how many have a slot
    double pace                 # microseconds that a move took last


# One step of a crowd, or several.
cdef struct crowd_step:
    crowd_data* crowd
    crowd_thread* threads
    bint sequential
    vector_rows ways
    const uint8_t* active       # NULL: all
    Py_ssize_t active_stride
    double dt
    double min_distance
    double* positions           # (n, 3)
    uint8_t* flags              # (n,)
    move_stats* costs           # (n,), NULL: nobody asked
    bint record_hits
    # Several steps:
    int64_t steps
    Py_ssize_t step_stride      # of ways, from step to step
    double* path                # (steps, n, 3)


# A question of all characters.
cdef struct crowd_question:
    crowd_data* crowd
    crowd_thread* threads
    double reach                # how far down; or the height asked for
    bint snaps                  # go down onto what is found
    ground_row* ground          # (n,)
    uint8_t* answers            # (n,): who fits, who went down


cdef enum:
    CHUNK = 32      # characters handed to a thread at a time, at the least: some 50 us of work
    FEW = 96        # a call with fewer moves is done before another thread has begun
    MANY = 512      # for so many, one that sleeps is surely worth waking


# Crowds of no more than so many characters keep their near triangles: some KiB each, and a tenth faster.
cdef int64_t few_enough() noexcept nogil
cdef void set_few_enough(int64_t n) noexcept nogil

cdef int crowd_reserve(crowd_data* c, int64_t room) noexcept nogil
# Forget what is near a character: it has changed.
cdef void near_forget(crowd_data* c, int64_t i) noexcept nogil
# Give back the memory of what is near a character.
cdef void near_free(crowd_data* c, int64_t i) noexcept nogil
cdef void crowd_free(crowd_data* c) noexcept nogil
cdef void thread_free(crowd_thread* t) noexcept nogil
# Tell the scene's neighbours where a character is, or that it meets nobody any more.
cdef int crowd_publish(crowd_data* c, int64_t i) noexcept nogil
cdef int crowd_publish_all(crowd_data* c) noexcept nogil
# Take a character out of its scene's neighbours; nothing when it meets nobody.
cdef void crowd_withdraw(crowd_data* c, int64_t i) noexcept nogil
# Pictures of the neighbours in all worlds whose members may meet others.
cdef int crowd_freeze(crowd_data* c) noexcept nogil
# The world of a character.
cdef inline crowd_world* world_of(const crowd_data* c, int64_t i) noexcept nogil:
    return c.worlds if c.homes == NULL else &c.worlds[c.homes[i]]

# All steps; the characters that could not move stay, and are told by the threads' ``failed``.
cdef int crowd_move(crowd_step* s, int threads) noexcept nogil
cdef int crowd_separate(crowd_step* s, int threads) noexcept nogil
cdef void crowd_probe(crowd_question* q, int threads) noexcept nogil
cdef void crowd_can_resize(crowd_question* q, int threads) noexcept nogil
cdef void ground_row_fill(ground_row* r, const controller_params* p, const ground_contact* g,
                          double distance) noexcept nogil
# Sum of the members' hashes modulo 2**64; ``of_rows``: the hashes of the rows of parameters.
cdef uint64_t crowd_hash(const crowd_data* c, const uint64_t* of_rows) noexcept nogil
