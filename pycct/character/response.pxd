# cython: language_level=3
"""Collision responses: the remaining motion after a collision. Pure functions."""
from pycct.geometry.vec cimport vec3


# The new target (MOVE 8.2): the remaining motion, reflected at the normal and split into a bounce
# (bump) and a slide (friction).
cdef vec3 collision_response(vec3 target, vec3 position, vec3 direction, vec3 normal, double bump, double friction,
                             bint normalize) noexcept nogil
# The motion without its part along the unit normal (MOVE 8.3).
cdef vec3 slide_response(vec3 motion, vec3 normal) noexcept nogil
# The motion along the crease of two planes; zero if they are parallel (MOVE 8.4, 14.3).
cdef vec3 crease_response(vec3 motion, vec3 first, vec3 second) noexcept nogil
