# cython: language_level=3
"""A controller at the end of a move, what the move was asked, and what looked wrong with it."""
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

# Motions no longer than this are none (MOVE 1.2 EPSILON_DISTANCE), metres.
cdef double EPSILON_DISTANCE

# What a move can be warned of (MOVE 14.5 and 14.7 as RULES corrects them).
cdef enum warning:
    WARNED_FAR = 1          # it led farther than asked
    WARNED_STUCK = 2        # for many moves it has not come aside


cdef struct move_frame:
    controller_state state
    uint32_t issued_warnings           # warnings that were given
    int32_t stuck_moves     # in a row
    uint32_t pending_warnings         # warnings that this move is worth
    uint32_t asked_mask
    vec3 asked              # the displacement
    double asked_dt         # < 0: no move led here
    double asked_least
    move_stats cost


# Makes the move that leads from one moment to the next, and writes its hits to the log. ``kept``, unless NULL, takes
# the place of what the scratch has near (see move_kept). In ``next_`` nothing makes sense when it fails.
cdef int frame_advance(const controller_params* p, const move_frame* now, move_frame* next_, const move_world* world,
                       move_scratch* scratch, compact_cache* kept, hit_log* log, vec3 displacement, double dt,
                       double min_distance) noexcept nogil
# A warning that was given is not given again, whether the move takes effect or not.
cdef void mark_warned(move_frame* now, move_frame* next_, uint32_t what) noexcept nogil
