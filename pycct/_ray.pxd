# cython: language_level=3
"""Rays against shapes: pure functions of values.

``dir`` is a unit vector, times are distances along it, ``NO_HIT`` of _sweep says that
nothing is met. Solids are solid: a ray that starts inside one meets it at 0.
"""
from pycct._sweep cimport NO_HIT
from pycct._types cimport hull_data, triangle
from pycct._vec cimport vec3


# From the front only, or from both sides. Watertight: a ray cannot slip between two triangles
# that share an edge.
cdef double ray_triangle(vec3 origin, vec3 dir, const triangle* t, bint two_sided) noexcept nogil
# normal: out of the solid, where it is met; inside is set when the ray starts in it.
cdef double ray_capsule(vec3 origin, vec3 dir, vec3 a, vec3 b, double radius, vec3* normal, bint* inside) noexcept nogil
cdef double ray_plane(vec3 origin, vec3 dir, vec3 normal, double offset, bint* inside) noexcept nogil
# The solid box [-half, half], ray in its frame.
cdef double ray_box(vec3 origin, vec3 dir, vec3 half, vec3* normal, bint* inside) noexcept nogil
# A closed convex surface given by all of its triangles.
cdef double ray_polytope(vec3 origin, vec3 dir, const triangle* tris, int n, vec3* normal, bint* inside) noexcept nogil
