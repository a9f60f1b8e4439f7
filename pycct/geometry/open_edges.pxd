# cython: language_level=3
"""Open edges of one-sided triangles that face away from a motion (Rules.FIX_SHEET_EDGES)."""
from libc.stdint cimport int32_t

from pycct.geometry.sweep cimport capsule_cast, triangle_aid
from pycct.geometry.types cimport sweep_hit, triangle


# When a motion away from the front of triangle i meets one of its open edges; NO_HIT: never. The
# triangles from ``first`` to before ``last`` are those of its shape. ``aid`` remembers which edges
# are shared.
cdef double open_edge_time(const capsule_cast* q, const triangle* tris, int32_t first, int32_t last, int32_t i,
                           triangle_aid* aid, double limit) noexcept nogil
# The first open edge of the n triangles ``which`` of one shape that a cast meets within the limit.
cdef bint cast_open_edges(const capsule_cast* q, const triangle* tris, const int32_t* source, triangle_aid* aids,
                          int32_t first, int32_t last, const int32_t* which, int32_t n, double limit,
                          sweep_hit* hit) noexcept nogil
