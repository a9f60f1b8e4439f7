# cython: language_level=3
"""Questions about the surroundings of a character that move nothing."""
from pycct.character.move_types cimport (
    controller_params,
    controller_state,
    ground_contact,
    move_scratch,
    move_world,
)
from pycct.geometry.vec cimport vec3


# What a character meets below, at most ``reach`` away (MOVE 12.1).
cdef int probe_below(const controller_params* p, const controller_state* state, const move_world* world,
                     move_scratch* scratch, double reach, ground_contact* found) noexcept nogil
# 1: the segment from p0 to p1, grown by the radius, touches something the character meets; 0: not;
# else a status.
cdef int touches_anything(const controller_params* p, const move_world* world, move_scratch* scratch, vec3 p0, vec3 p1,
                          double radius, bint* touches) noexcept nogil
# Everything within ``reach`` of the capsule into scratch.around, whatever the filter.
cdef int gather_near(const controller_params* p, const controller_state* state, const move_world* world,
                     move_scratch* scratch, double reach) noexcept nogil
