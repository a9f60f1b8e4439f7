# cython: language_level=3
"""Contact manifolds between two convex shapes (CONTACT; RULES 10)."""
from libc.stdint cimport int32_t

from pycct.convex.distance cimport core_pair, distance_result
from pycct.convex.polytope cimport convex_shape, polytope, pose
from pycct.geometry.vec cimport vec3


cdef enum:
    MAX_CONTACTS = 32


# One normal for all; each point is on B, and point + distance * normal is on A.
cdef struct manifold:
    vec3 normal                         # unit, from B towards A
    int32_t count
    vec3[MAX_CONTACTS] points
    double[MAX_CONTACTS] distances      # along the normal, < 0: penetrating


# Contacts of the polytopes in their common frame; core as core_distance gave it, the distance no
# larger than cutoff. Contacts farther apart than cutoff are left out.
cdef void build_manifold(const polytope* a, const polytope* b, const core_pair* core, double cutoff,
                         manifold* out) noexcept nogil
# Locations move from B to A, the normal turns.
cdef void flip_manifold(manifold* m) noexcept nogil
# The whole, in world space: False when farther apart than max_distance or cutoff (nothing set).
# `nearest` may be NULL.
cdef bint shape_contacts(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         double max_distance, double cutoff, manifold* out, distance_result* nearest) noexcept nogil
