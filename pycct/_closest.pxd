# cython: language_level=3
"""Closest points between points, segments, triangles and boxes.

All functions are pure, take values and give values, and stand for degenerate,
parallel, zero-length and zero-area input alike.
"""
from pycct._vec cimport vec3


# Closest points of two figures.
cdef struct closest_pair:
    vec3 on_a
    vec3 on_b
    double dist2        # squared distance
    double s            # parameter on the first segment, 0 to 1 (0 for a point)
    double t            # parameter on the second segment, 0 to 1 (0 for none)


# Parameter in [0, 1] of the point of segment ab nearest to p; 0 when a == b.
cdef double point_segment_parameter(vec3 p, vec3 a, vec3 b) noexcept nogil
cdef closest_pair point_segment(vec3 p, vec3 a, vec3 b) noexcept nogil
cdef closest_pair segment_segment(vec3 p0, vec3 p1, vec3 q0, vec3 q1) noexcept nogil
cdef vec3 point_triangle(vec3 p, vec3 a, vec3 b, vec3 c) noexcept nogil
# n: the triangle's unit normal, zero for a degenerate triangle.
cdef closest_pair segment_triangle(vec3 p0, vec3 p1, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil
# The solid box [-half, half]; a segment that enters it has distance 0.
cdef closest_pair segment_box(vec3 p0, vec3 p1, vec3 half) noexcept nogil
cdef vec3 point_box(vec3 p, vec3 half) noexcept nogil
# Unit normal of a triangle, zero when it is degenerate (cross product <= 1e-12
# times the longest edge squared, RULES 3).
cdef vec3 triangle_normal(vec3 a, vec3 b, vec3 c) noexcept nogil
