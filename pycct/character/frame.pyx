# cython: language_level=3
"""See the header."""
from pycct.character.move cimport move_controller, move_compact
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport v3_len, v3_len2, v3_reject, v3_sub

# Consecutive moves without the desired side motion after which a character is stuck (MOVE 14.7).
cdef int STUCK_MOVES = 10
# Metres.
cdef double EPSILON_DISTANCE = 1e-6
# Ratio of squares: surely more than once and less than twice as long.
cdef double PLAINLY = 3.9


cdef inline void _watch(const controller_params* p, const move_frame* now, move_frame* next_) noexcept nogil:
    """Count moves without progress, and record other warnings."""
    cdef vec3 moved, asked_aside
    cdef double bound
    cdef uint32_t wrong = 0
    next_.issued_warnings = now.issued_warnings
    next_.pending_warnings = 0
    next_.stuck_moves = now.stuck_moves
    if next_.cost.iterations == 0:
        return
    next_.stuck_moves = 0
    moved = v3_sub(next_.state.position, now.state.position)
    # Almost all moves are clearly fine.
    if (v3_len2(moved) <= PLAINLY * v3_len2(next_.asked)
            and v3_len2(v3_reject(moved, p.up)) > PLAINLY * EPSILON_DISTANCE * EPSILON_DISTANCE):
        return
    asked_aside = v3_reject(next_.asked, p.up)
    if next_.cost.recoveries == 0:
        bound = (2.0 * v3_len(next_.asked) + v3_len(now.state.separation) + p.step_offset
                 + 2.0 * v3_len(next_.state.platform_delta))
        if v3_len(moved) > bound:
            wrong |= WARNED_FAR
    if v3_len(asked_aside) > EPSILON_DISTANCE and v3_len(v3_reject(moved, p.up)) < EPSILON_DISTANCE:
        next_.stuck_moves = now.stuck_moves + 1
        if next_.stuck_moves > STUCK_MOVES:
            wrong |= WARNED_STUCK
    next_.pending_warnings = wrong & ~now.issued_warnings


cdef int frame_advance(const controller_params* p, const move_frame* now, move_frame* next_, const move_world* world,
                       move_scratch* scratch, compact_cache* cache, hit_log* log, vec3 displacement, double dt,
                       double min_distance) noexcept nogil:
    cdef int status
    next_.state = now.state
    scratch.log = log
    if cache != NULL:
        status = move_compact(p, &next_.state, world, cache, scratch, displacement, dt, min_distance, &next_.cost)
    else:
        status = move_controller(p, &next_.state, world, scratch, displacement, dt, min_distance, &next_.cost)
    if status != STATUS_OK:
        return status
    next_.asked = displacement
    next_.asked_dt = dt
    next_.asked_least = min_distance
    next_.asked_mask = world.mask
    _watch(p, now, next_)
    return STATUS_OK


cdef void mark_warned(move_frame* now, move_frame* next_, uint32_t what) noexcept nogil:
    now.issued_warnings |= what
    next_.issued_warnings |= what
    next_.pending_warnings &= ~what
