# cython: language_level=3
"""Ways out of meshes, heightfields and hulls as PhysX takes them (RULES_2 3 and 4).

Pure functions over one triangle or one edge. ``pycct.world.exits`` has the loops over shapes.
"""
from pycct.geometry.closest cimport closest_pair
from pycct.geometry.types cimport triangle
from pycct.geometry.vec cimport vec3


cdef enum:
    ALL_CONVEX = 7


# Triangles and shapes within this many radii of the axis count in a recovery.
cdef double REACH
# A shorter push is no overlap, metres.
cdef double NO_PUSH


# How a capsule meets one triangle (RULES_2 3a).
cdef struct surface_contact:
    closest_pair near
    vec3 n              # normal on the capsule's side
    vec3 centre         # of the capsule
    bint crossing       # the axis crosses the triangle
    int edges           # bits of the edges whose convexity decides


# False: no contact with the triangle.
cdef bint surface_meets(vec3 p0, vec3 p1, double radius, const triangle* t, bint two_sided,
                        surface_contact* r) noexcept nogil
# Adds the pushes of one contact to their bounds lo <= 0 <= hi. convex: bits of the convex edges
# among those of the contact.
cdef void surface_add(vec3 p0, vec3 p1, double radius, const triangle* t, const surface_contact* r, int convex,
                      vec3* lo, vec3* hi) noexcept nogil
# The push of all contacts (RULES_2 3d).
cdef vec3 surface_sum(vec3 lo, vec3 hi) noexcept nogil
# Whether the push carries an end or the centre of the axis through the triangle, within reach.
cdef bint surface_passes(vec3 p0, vec3 p1, double reach, vec3 push, const triangle* t, bint two_sided) noexcept nogil
# Whether the axis crosses the inside of a face, with the centre in front of it.
cdef bint crosses_face(vec3 p0, vec3 p1, const triangle* t, bint two_sided) noexcept nogil
# Whether a push is no overlap.
cdef bint is_no_push(vec3 push) noexcept nogil


# The axis of least overlap with a hull so far.
cdef struct hull_exit:
    double separation
    vec3 dir


# The faces of a hull; False: one of them is too far away for an overlap.
cdef bint hull_faces(vec3 p0, vec3 p1, double radius, const triangle* tris, int n, hull_exit* r) noexcept nogil
# One edge of the hull.
cdef void hull_edge(vec3 p0, vec3 p1, vec3 e, const triangle* tris, int n, hull_exit* r) noexcept nogil
