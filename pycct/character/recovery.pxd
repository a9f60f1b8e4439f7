# cython: language_level=3
"""Overlap recovery: moving a character out of overlapping shapes."""
from pycct.character.move_types cimport (
    RULE_RECOVER_USER_GEOMETRY,
    controller_params,
    controller_state,
    move_job,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.geometry.types cimport BODY_KINEMATIC, BODY_STATIC
from pycct.geometry.vec cimport vec3
from pycct.world.candidates cimport RECOVER_USER


cdef enum:
    # Bodies that recovery moves out of, one bit for each body_kind (MOVE 9.3).
    RECOVERS = (1 << BODY_STATIC) | (1 << BODY_KINEMATIC)


cdef inline int recovered_kinds(const controller_params* p) noexcept nogil:
    """The kinds of bodies that recovery moves out of, as bits."""
    if not p.overlap_recovery:
        return 0
    return RECOVERS | (1 << RECOVER_USER) if p.rules & RULE_RECOVER_USER_GEOMETRY else RECOVERS


# Fills scratch.around with the candidates of recovery, without a cache.
cdef int gather_around(move_job* m, vec3 position, double radius) noexcept nogil
# Overlap recovery (RULES 7.5, MOVE 9); changes the position.
cdef int recover(move_job* m, vec3* position) noexcept nogil
# Overlap recovery with a radius grown by ``margin`` (RULES 7.5), on request.
cdef int unstick(const controller_params* p, controller_state* state, const move_world* world, move_scratch* scratch,
                 double margin, move_stats* stats) noexcept nogil
