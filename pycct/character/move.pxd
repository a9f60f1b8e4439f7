# cython: language_level=3
"""One move: doSweepTest, moveCharacter, move.

A move is a pure function of the controller's parameters and state, of its surroundings and of the
displacement. It changes the state only if it succeeds.
"""
from pycct.character.move_types cimport (
    compact_cache,
    controller_params,
    controller_state,
    decomposition,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.geometry.vec cimport aabb, vec3


cdef decomposition decompose(vec3 displacement, vec3 up, double step_offset, bint standing_on_moving) noexcept nogil
cdef aabb temporal_box(const controller_params* p, vec3 centre, vec3 direction) noexcept nogil
# The volume of the candidate cache; smaller if candidates are expanded for each move.
cdef aabb cached_volume(const controller_params* p, aabb temporal, vec3 side, bint laid_out) noexcept nogil

# Moves; ``state`` is changed in place, and stays unchanged unless STATUS_OK is returned.
cdef int move_controller(const controller_params* p, controller_state* state, const move_world* world,
                         move_scratch* scratch, vec3 displacement, double dt, double min_distance,
                         move_stats* stats) noexcept nogil

# The same for characters that share scratch memory: ``cache`` replaces its cache. Zeroed memory is
# an empty cache. The bits are those of move_controller.
cdef int move_compact(const controller_params* p, controller_state* state, const move_world* world,
                      compact_cache* cache, move_scratch* scratch, vec3 displacement, double dt, double min_distance,
                      move_stats* stats) noexcept nogil
cdef void compact_cache_free(compact_cache* cache) noexcept nogil

# Whether a move likely takes less than half a microsecond: all candidates are cached, and they are
# few. With world.cache_only it takes no longer, or ends early with STATUS_CACHE_MISS.
cdef bint move_is_short(const controller_state* state, const move_world* world, const move_scratch* scratch,
                        vec3 displacement) noexcept nogil
