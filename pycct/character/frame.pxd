# cython: language_level=3
"""A frame: the state of a controller after a move, the arguments of that move, and its warnings."""
from libc.stdint cimport int32_t, uint32_t

from pycct.character.move_types cimport (
    controller_params,
    controller_state,
    hit_log,
    compact_cache,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.geometry.vec cimport vec3

# Motions up to this length count as zero (MOVE 1.2 EPSILON_DISTANCE), metres.
cdef double EPSILON_DISTANCE

# Warnings about a move (MOVE 14.5 and 14.7 as RULES corrects them).
cdef enum warning:
    WARNED_FAR = 1          # it moved farther than the displacement
    WARNED_STUCK = 2        # no side motion in many moves


cdef struct move_frame:
    controller_state state
    uint32_t issued_warnings           # warnings that have been issued
    int32_t stuck_moves     # number of consecutive moves
    uint32_t pending_warnings         # warnings about this move, not issued yet
    uint32_t asked_mask
    vec3 asked              # the displacement
    double asked_dt         # < 0: no move led to this frame
    double asked_least
    move_stats cost


# Moves from one frame to the next and logs the hits. ``cache``, unless NULL, replaces the cache of
# the scratch (see move_compact). After a failure ``next_`` is undefined.
cdef int frame_advance(const controller_params* p, const move_frame* now, move_frame* next_, const move_world* world,
                       move_scratch* scratch, compact_cache* cache, hit_log* log, vec3 displacement, double dt,
                       double min_distance) noexcept nogil
# An issued warning is not issued again, whether the move takes effect or not.
cdef void mark_warned(move_frame* now, move_frame* next_, uint32_t what) noexcept nogil
