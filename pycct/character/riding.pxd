# cython: language_level=3
"""Riding: moving with the platform below."""
from pycct.character.move_types cimport move_job
from pycct.geometry.vec cimport vec3


# Moves the character with its platform (RULES 7.2 and 7.3, MOVE 13); returns the remaining
# displacement.
cdef vec3 ride(move_job* m, vec3 displacement) noexcept nogil
# FIX_KEEP_RIDE: keeps a moving platform that the DOWN pass just missed.
cdef int keep_ride(move_job* m) noexcept nogil
# FIX_KINEMATIC_RECOVERY: moves up from the characters below that it overlaps.
cdef int rise_from_below(move_job* m) noexcept nogil
