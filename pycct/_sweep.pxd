# cython: language_level=3
"""Time of impact of spheres and capsules: linear and quadratic equations, no iteration.

A capsule is given by its sphere centres p0, p1 and its radius; it moves along the
unit vector ``dir``. Times are distances along ``dir``. ``NO_HIT`` (a huge number)
says that nothing is touched within ``limit``. All functions are pure.
"""
from libc.stdint cimport int32_t

from pycct._types cimport sweep_hit, triangle
from pycct._vec cimport quat, vec3

cdef double NO_HIT

# Sphere against a point, a segment (with its ends), the inside of a triangle or
# parallelogram: distance at which it is first touched, else NO_HIT. A sphere that
# starts inside gets 0 where it moves further in and NO_HIT where it moves out.
cdef double sphere_point(vec3 centre, vec3 dir, double radius, vec3 p, double limit) noexcept nogil
cdef double sphere_segment(vec3 centre, vec3 dir, double radius, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against one triangle; no culling, no overlap test (RULES 3).
cdef double capsule_triangle_time(vec3 p0, vec3 p1, double radius, vec3 dir, const triangle* t, double limit) noexcept nogil
# Capsule against a segment with its ends (the axis of another capsule).
cdef double capsule_segment_time(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against the solid box [-half, half] at (position, rotation): True when
# hit within limit; an overlap at the start gives distance 0, overlapping.
cdef bint capsule_box(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 half, vec3 position, quat rotation,
                      double limit, sweep_hit* hit) noexcept nogil
