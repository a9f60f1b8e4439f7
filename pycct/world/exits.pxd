# cython: language_level=3
"""Ways out of the candidates of overlap recovery, as PhysX takes them (RULES_2 3, 4, 10)."""
from pycct.geometry.overlap cimport push_out
from pycct.geometry.vec cimport vec3
from pycct.world.candidates cimport GROUP_TRIANGLES, candidate_group, candidates, collider


# The way out of one shape. p: its collider, NULL: a character. first: nothing has moved the capsule
# out of anything in this move yet. by_depth: out of surfaces by RULES 7.5.
cdef push_out recovery_push(candidates* c, const candidate_group* g, const collider* p, vec3 p0, vec3 p1,
                            double radius, bint first, bint by_depth) noexcept nogil
# Whether a shape is a mesh, heightfield or triangle.
cdef inline bint is_surface(const candidate_group* g) noexcept nogil:
    return g.kind == GROUP_TRIANGLES and not g.closed


# Whether the axis crosses the inside of a face of a surface.
cdef bint is_crossed(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1) noexcept nogil
# Whether a shape counts in a round of recovery: within reach of the axis.
cdef bint is_near(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double reach) noexcept nogil
# Order of two groups by their geometry near the axis, then by id: -1, 0 or 1.
cdef int place_order(const candidates* c, const candidate_group* g, const collider* p, const candidate_group* h,
                     const collider* q, vec3 p0, vec3 p1, double reach) noexcept nogil
