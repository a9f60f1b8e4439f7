# cython: language_level=3
"""Shared by CharacterController, Crowd and move_many.

Parameters, and creation and shift of a state.
"""
from libc.stdint cimport int32_t, int64_t

from pycct.character.move_types cimport controller_params, controller_state, ground_contact
from pycct.spatial.character_grid cimport character
from pycct.scene.scene cimport Scene
from pycct.geometry.vec cimport quat, vec3

# A shorter dt would make the velocity overflow, seconds.
cdef double SHORTEST
# Largest speed of two characters that are separated, m/s (RULES 8, RULES_2 2).
cdef double SEPARATION_SPEED
# A smaller gap to the ground is rounding, metres.
cdef double SMALLEST_GAP


cdef double as_time(object value) except? -1.0
# Sets one parameter by its Python name; parameters_check checks that they fit together.
cdef int parameter_set(controller_params* p, str name, object value) except -1
cdef object parameter_get(const controller_params* p, str name)
cdef int parameters_check(const controller_params* p) except -1
# Checks parameters from bytes: ValueError if no controller can have them.
cdef int parameters_loaded(controller_params* p) except -1

# The state of a new character.
cdef void state_forget(controller_state* st, vec3 position) noexcept nogil
# The same state in coordinates whose origin is shifted by the offset.
cdef void state_shift(controller_state* s, vec3 offset, vec3 up) noexcept nogil
cdef double foot_below(const controller_params* p) noexcept nogil
cdef character character_of(const controller_params* p, vec3 position, int64_t id, int32_t group) noexcept nogil
cdef bint is_walkable(const controller_params* p, const ground_contact* g) noexcept nogil
# Way down to the ground that was found (MOVE 12.2); 0: the character stands on it; negative: there
# is none to stand on.
cdef double gap_to_close(const controller_params* p, const ground_contact* found) noexcept nogil
# Go down by that gap, >= 0, onto what was found, which becomes the ground.
cdef void snapped(controller_state* s, const controller_params* p, const ground_contact* found,
                  double gap) noexcept nogil

# The actor, obstacle or character of that id, or None.
cdef object other_of(Scene scene, int32_t owner, int64_t id)
# Shortest rotation (x, y, z, w) that turns z to the unit vector up.
cdef quat turn_from_z(vec3 up) noexcept nogil
cdef tuple z_to(vec3 up)
