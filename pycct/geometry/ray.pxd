# cython: language_level=3
"""Rays against shapes: pure functions of values.

``dir`` is a unit vector. Times are distances along it, and ``NO_HIT`` means no hit. Solids are
solid:
a ray that starts inside one hits it at distance 0.
"""
from pycct.geometry.sweep cimport NO_HIT
from pycct.geometry.types cimport hull_data, triangle
from pycct.geometry.vec cimport vec3


# A ray and the shear that aligns it with its dominant axis.
cdef struct ray:
    vec3 origin
    vec3 dir
    int kx
    int ky
    int kz
    double sx
    double sy


# Unit vector of any vector but zero, scaled first: huge and tiny ones keep their direction.
cdef vec3 direction_of(vec3 v) noexcept nogil
cdef ray ray_of(vec3 origin, vec3 dir) noexcept nogil
# The same in place: a copy of what was just written number by number would wait for the memory.
cdef void ray_set(ray* r, vec3 origin, vec3 dir) noexcept nogil
# Hits the front, where the corners run counter-clockwise, or both sides. The test is watertight:
# each corner is projected along the ray once, and the sign of a product of two projections is
# exact, so no ray passes between triangles that share an edge or a corner. back: the ray hits the
# back side.
cdef double ray_triangle(const ray* r, const triangle* t, bint two_sided, bint* back) noexcept nogil
# normal: out of the solid, at the hit. inside: the ray starts in the solid.
cdef double ray_capsule(vec3 origin, vec3 dir, vec3 a, vec3 b, double radius, vec3* normal, bint* inside) noexcept nogil
cdef double ray_plane(vec3 origin, vec3 dir, vec3 normal, double offset, bint* inside) noexcept nogil
# The solid box between the corners lo and hi, with the ray in its frame.
cdef double ray_box(vec3 origin, vec3 dir, vec3 low, vec3 high, vec3* normal, bint* inside) noexcept nogil
# A closed convex surface, given by all of its triangles.
cdef double ray_polytope(vec3 origin, vec3 dir, const triangle* tris, int n, vec3* normal, bint* inside) noexcept nogil
