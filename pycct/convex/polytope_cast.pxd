# cython: language_level=3
"""Time of impact of two convex polytopes, without iteration.

The positions of A at which it overlaps B form a convex polytope (the Minkowski
difference). Its faces are known: those of B, those of A turned about, and one for each
edge of A and edge of B that can touch each other. So the time of impact is that of a
point that moves into a set of half spaces. The distance to each is measured with all
corners of both, so the answer never lies behind a face: exact but for rounding, some
1e-14 of the size, and 1e-8 of it where two edges are parallel within 1e-8 and no face
stands in for them.
"""
from libc.stdint cimport int32_t

from pycct.convex.polytope cimport polytope
from pycct.geometry.vec cimport vec3

cdef enum:
    CAST_FACES = 512
    CAST_EDGES = 768


# A polytope (without its radius) prepared for casts.
cdef struct cast_body:
    const polytope* p
    int32_t n_faces
    int32_t n_edges
    bint flat                       # one polygon, segment or point
    double size
    vec3[CAST_FACES] normal
    double[CAST_FACES] offset       # largest dot(normal, corner)
    vec3[CAST_EDGES] base           # one end of each edge
    vec3[CAST_EDGES] along          # to the other end
    vec3[CAST_EDGES] left           # along the faces beside it, away from the edge
    vec3[CAST_EDGES] right


cdef void cast_body_of(cast_body* out, const polytope* p) noexcept nogil
# A moves along the unit vector dir; 0 <= time <= limit. normal: unit, out of B. A start
# inside gives time 0, overlapping and minus dir. Passing by within a touch is no hit.
cdef bint cast_polytopes(const cast_body* a, const cast_body* b, vec3 dir, double limit, double* toi,
                         vec3* normal, bint* overlapping) noexcept nogil
