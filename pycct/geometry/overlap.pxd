# cython: language_level=3
"""Overlap and penetration (minimum translation) of a capsule with one shape. Pure functions."""
from libc.stdint cimport int32_t

from pycct.geometry.types cimport triangle
from pycct.geometry.vec cimport vec3


# Exit of a capsule from a shape.
cdef struct push_out:
    bint overlapping
    vec3 dir            # unit, direction of the exit
    double depth        # length of the exit along dir, > 0 for an overlap
    int32_t tri         # triangle that decided the exit, -1: none
    double excursion    # farthest of the places between successive pushes, from the start


cdef push_out push_from_sphere(vec3 p0, vec3 p1, double radius, vec3 centre, double other) noexcept nogil
cdef push_out push_from_capsule(vec3 p0, vec3 p1, double radius, vec3 q0, vec3 q1, double other) noexcept nogil
cdef push_out push_from_plane(vec3 p0, vec3 p1, double radius, vec3 normal, double offset) noexcept nogil
# A closed convex surface (box, hull) given by all of its triangles, outward normals. ``flat``: they
# are the front and the back of one polygon, whose sides no normal looks out of.
cdef push_out push_from_polytope(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                 bint flat) noexcept nogil
# Open triangles (mesh): up to four successive pushes, added up (RULES 7.5); across an edge
# only where the axis crosses no other triangle behind it. depths: room for n numbers.
cdef push_out push_from_triangles(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                  bint two_sided, double* depths) noexcept nogil
# The same without exits across edges.
cdef push_out push_along_normals(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n,
                                 bint two_sided, double* depths) noexcept nogil

# Largest extent of triangles along u.
cdef double support_of(const triangle* tris, int32_t n, vec3 u) noexcept nogil
# True when closer than the radius; triangles from both sides (RULES 7.6).
cdef bint overlaps_triangles(vec3 p0, vec3 p1, double radius, const triangle* tris, int32_t n) noexcept nogil
# Largest distance by which a face or an edge of a closed convex surface separates the
# segment from it; <= 0 when the segment enters it. dir: that direction, out of the surface.
cdef double polytope_separation(vec3 p0, vec3 p1, const triangle* tris, int32_t n, vec3* dir) noexcept nogil
