# cython: language_level=3
"""The expanding polygon: outline of points in a plane, best corners first.

The builder starts from two distant points and repeatedly adds the point that is farthest outside. A
builder that reaches its capacity therefore contains the corners of the largest outline.
"""
from libc.stdint cimport int32_t

from pycct.geometry.vec cimport vec3


cdef struct outline_item:
    int32_t point
    int32_t edge        # edge from corner `edge` to the next one
    double distance     # outside of that edge


# Corners of the outline of n points seen along the unit `normal`, counter-clockwise, as indices in
# `out` (capacity >= 2); returns their number. Points at most `tolerance` outside an edge are
# dropped. The lexicographically smaller point wins ties. `scratch` has room for n items. n >= 1.
cdef int32_t outline_build(const double* points, int32_t n, vec3 normal, int32_t capacity, double tolerance,
                           int32_t* out, outline_item* scratch) noexcept nogil
# A fresh (n, 3) float64 array from any (n, 3) numbers; ValueError names `points`.
cdef object as_points(points)
