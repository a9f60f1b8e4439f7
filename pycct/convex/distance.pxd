# cython: language_level=3
"""Signed distance between two convex shapes, with points, normals and features.

The distance of the cores (point, segment, polytope) comes first, and the radii are subtracted
afterwards, which is exact outside and inside. Separate cores: GJK. Overlapping cores: every face
and every pair of edges that can be a face of the Minkowski difference, pruned by the best depth so
far. All computations use the frame of one of the two shapes, so that distance from the origin costs
no digits. The functions allocate no memory; two hulls of 255 corners take some 100 KB of stack.
"""
from libc.stdint cimport int32_t

from pycct.convex.polytope cimport convex_shape, polytope, pose
from pycct.geometry.vec cimport vec3


# Closest points of two cores in the common frame; features by the polytopes' own numbers.
cdef struct core_pair:
    double distance     # < 0: depth
    vec3 on_a
    vec3 on_b
    vec3 n              # unit, from B towards A: moving A along it separates both
    int32_t feature_a
    int32_t feature_b
    bint beyond         # farther apart than the limit: nothing else is set


# Result of distance_between, in world space.
cdef struct distance_result:
    double distance
    vec3 point_a        # on A's surface; point_a - point_b = distance * normal
    vec3 point_b
    vec3 normal         # unit, from B towards A
    vec3 normal_a       # outward surface normals at the points
    vec3 normal_b
    int32_t feature_a   # codes as in polytope.pxd
    int32_t feature_b


# Distance of two cores; `limit`: give up if it is certainly larger.
cdef void core_distance(const polytope* a, const polytope* b, double limit, core_pair* out) noexcept nogil

# True if B goes first: higher kinds first, equal kinds in an order of their values, so that swapped
# arguments repeat the same computation.
cdef bint swapped_order(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb) noexcept nogil
# Fill both polytopes in the frame of a.
cdef void load_pair(polytope* a, polytope* b, const convex_shape* sa, const pose* pa, const convex_shape* sb,
                    const pose* pb) noexcept nogil
# Two spheres or capsules, in any order of arguments.
cdef void round_distance(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         distance_result* out) noexcept nogil
# Subtracts the radii and transforms into the world (in the order of the polytopes).
cdef void finish(const polytope* a, const polytope* b, const core_pair* core, const pose* frame,
                 distance_result* out) noexcept nogil
cdef void swap_result(distance_result* r) noexcept nogil
# The whole computation: False if farther apart than max_distance (result not set).
cdef bint shape_distance(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         double max_distance, distance_result* out) noexcept nogil
