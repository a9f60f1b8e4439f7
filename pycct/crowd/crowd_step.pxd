# cython: language_level=3
"""The step and the queries of a crowd, without Python.

Threads receive ranges of characters. A step of a character reads its own record, the scene and the
snapshot of the neighbours, and writes its own record only. Results therefore do not depend on
threads and ranges.
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


# A collision, with the fields of crowd.records.HITS.
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


# The ground below, with the fields of crowd.records.GROUND.
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


# Memory of one thread.
cdef struct crowd_thread:
    move_scratch scratch
    hit_log log                 # of one move
    hit_row* hits               # hits since the start of the step
    int64_t n_hits
    int64_t capacity_hits
    int64_t failed              # first character that could not move, -1: none
    int status                  # its status


# A world of members, for one call.
cdef struct crowd_world:
    const broadphase_layer* fixed
    const broadphase_layer* moving
    shared_grid* neighbours     # grid of the scene
    shared_grid picture         # positions of all characters at the start of the step
    bint is_met                 # a member of this world may collide with others


# Structure of arrays with capacity for ``capacity`` characters, in the order of their ids.
cdef struct crowd_data:
    int64_t n
    int64_t capacity
    controller_state* states
    candidate_cache* near       # candidate caches, one for each; NULL: the crowd is too large
    compact_cache* compact            # compact caches, in that case
    int64_t* ids                # ascending
    int32_t* rows               # rows of the parameter table
    int32_t* groups
    int32_t* slots              # slots in the scene's grid, -1: does not collide
    controller_params* table    # one row for all equal characters
    int32_t* homes              # world of each; NULL: all belong to the first
    crowd_world* worlds
    int32_t n_worlds
    int64_t colliding           # number of characters with a slot
    double pace                 # microseconds of a move in the last call


# One step of a crowd, or several.
cdef struct crowd_step:
    crowd_data* crowd
    crowd_thread* threads
    bint sequential
    vector_rows displacements
    const uint8_t* active       # NULL: all
    Py_ssize_t active_stride
    double dt
    double min_distance
    const double* yielding      # (n,) weights for the separation, NULL: half the overlap each
    double* positions           # (n, 3)
    uint8_t* flags              # (n,)
    move_stats* costs           # (n,), NULL: not requested
    bint record_hits
    # Several steps:
    int64_t steps
    Py_ssize_t step_stride      # of ways, from step to step
    double* path                # (steps, n, 3)


# A query about all characters.
cdef struct crowd_question:
    crowd_data* crowd
    crowd_thread* threads
    double reach                # length of the search downwards, or the requested height
    bint snaps                  # move down onto the ground
    ground_row* ground          # (n,)
    uint8_t* answers            # (n,): fits, or has moved down


cdef enum:
    CHUNK = 32      # smallest portion of characters for a thread: some 50 us of work
    FEW = 96        # a call with fewer moves ends before another thread has started
    WORTH_WAKING = 512      # a call with this many is long enough to wake a thread


# Crowds up to this size keep expanded triangles: some KiB each, and a tenth faster.
cdef int64_t few_enough() noexcept nogil
cdef void set_few_enough(int64_t n) noexcept nogil

cdef int crowd_reserve(crowd_data* c, int64_t capacity) noexcept nogil
# Empty the cache of a character that has changed.
cdef void near_forget(crowd_data* c, int64_t i) noexcept nogil
# Free the cache of a character.
cdef void near_free(crowd_data* c, int64_t i) noexcept nogil
cdef void crowd_free(crowd_data* c) noexcept nogil
cdef void thread_free(crowd_thread* t) noexcept nogil
# Publish the position of a character in the scene's grid, or remove it if it does not collide any
# more.
cdef int crowd_publish(crowd_data* c, int64_t i) noexcept nogil
cdef int crowd_publish_all(crowd_data* c) noexcept nogil
# Remove a character from the scene's grid, if it is there.
cdef void crowd_withdraw(crowd_data* c, int64_t i) noexcept nogil
# Build snapshots of the grids of all worlds with colliding members.
cdef int crowd_freeze(crowd_data* c) noexcept nogil
# The world of a character.
cdef inline crowd_world* world_of(const crowd_data* c, int64_t i) noexcept nogil:
    return c.worlds if c.homes == NULL else &c.worlds[c.homes[i]]

# Make all steps. Characters whose move failed stay, and the threads' ``failed`` report them.
cdef int crowd_move(crowd_step* s, int threads) noexcept nogil
cdef int crowd_separate(crowd_step* s, int threads) noexcept nogil
# Ask about all members. The caller holds the GIL, and Ctrl-C stops a long call, except one that
# snaps.
cdef int crowd_probe(crowd_question* q, int threads) except -1
cdef int crowd_can_resize(crowd_question* q, int threads) except -1
cdef void ground_row_fill(ground_row* r, const controller_params* p, const ground_contact* g,
                          double distance) noexcept nogil
# Sum of the members' hashes modulo 2**64; ``of_rows``: the hashes of the rows of parameters.
cdef uint64_t crowd_hash(const crowd_data* c, const uint64_t* of_rows) noexcept nogil
