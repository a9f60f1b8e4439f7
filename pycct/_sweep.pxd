# cython: language_level=3
"""Time of impact of spheres and capsules: linear and quadratic equations, no iteration.

A capsule is given by its sphere centres p0, p1 and its radius; it moves along the
unit vector ``dir``. Times are distances along ``dir``. ``NO_HIT`` (a huge number)
says that nothing is touched within ``limit``. All functions are pure.
"""
from libc.stdint cimport int32_t, int64_t

from pycct._types cimport sweep_hit, triangle
from pycct._vec cimport aabb, f_max, f_min, quat, v3_dot, v3_sub, vec3

cdef double NO_HIT

# Sphere against a point, a segment (with its ends), the inside of a triangle or
# parallelogram: distance at which it is first touched, else NO_HIT. A sphere that
# starts inside gets 0 where it moves further in and NO_HIT where it moves out.
cdef double sphere_point(vec3 centre, vec3 dir, double radius, vec3 p, double limit) noexcept nogil
cdef double sphere_segment(vec3 centre, vec3 dir, double radius, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against one triangle; no culling, no overlap test (RULES 3).
cdef double capsule_triangle_time(vec3 p0, vec3 p1, double radius, vec3 dir, const triangle* t,
                                  double limit) noexcept nogil
# Capsule against a segment with its ends (the axis of another capsule).
cdef double capsule_segment_time(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against the solid box [-half, half] at (position, rotation): True when
# hit within limit; an overlap at the start gives distance 0, overlapping.
cdef bint capsule_box(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 half, vec3 position, quat rotation,
                      double limit, sweep_hit* hit) noexcept nogil


# A capsule in motion, as every sweep against many things needs it.
cdef struct capsule_cast:
    vec3 p0
    vec3 p1
    vec3 dir            # unit
    vec3 axis           # from p0 to p1
    double radius
    double limit        # longest distance of interest
    double slack        # what rounding may add to a distance from a plane
    aabb swept          # around the whole motion, and a little more
    bint parallel       # the axis is parallel to the motion, or has no length
    bint trailing_rule  # ignore what lies behind the leading sphere (moves yes, queries no; RULES 3)
    bint culls          # ignore triangles whose normal goes along with the motion
    bint culls_parallel     # ... or is at right angles to it (RULES 9 row 8)
    bint passing        # with ``passed``: all overlaps are passed over
    int32_t hint        # cast_triangles: look at this one first, -1: none. Changes speed, never a result
    # Not NULL: overlaps with one-sided triangles from behind are passed over, and
    # passed_bits tell what was.
    int* passed


cdef enum passed_bit:
    PASSED_OVERLAP = 1  # an overlap was passed over
    PASSED_BACK = 2     # a culled triangle is overlapped


# One touched triangle on the way to a shape's hit.
cdef struct touched_triangle:
    double distance
    double facing       # |dot(normal, dir)|
    int32_t tri


cdef void capsule_cast_set(capsule_cast* q, vec3 p0, vec3 p1, double radius, vec3 dir, double limit,
                           bint trailing_rule, bint culls) noexcept nogil
cdef capsule_cast capsule_cast_of(vec3 p0, vec3 p1, double radius, vec3 dir, double limit,
                                  bint trailing_rule, bint culls) noexcept nogil

# The triangles of one shape (RULES 3): the smallest distance, the triangle that
# wins, its normal and point. ``touched`` has room for n entries and is overwritten.
# Overlapping triangles are passed over when ``skip_overlaps``. False: nothing hit.
# ``tested`` is raised by the number of triangles that were really looked at.
cdef bint cast_triangles(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided,
                         bint skip_overlaps, touched_triangle* touched, int64_t* tested,
                         sweep_hit* hit) noexcept nogil
# The second half of that: only the n triangles that triangles_in_reach noted in ``touched``.
# q.limit, q.hint and q.passed do not count, the arguments do.
cdef bint cast_selected(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided, bint skip_overlaps,
                        double limit, int32_t hint, int* passed, touched_triangle* touched, int64_t* tested,
                        sweep_hit* hit) noexcept nogil
cdef bint cast_sphere(const capsule_cast* q, vec3 centre, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_capsule(const capsule_cast* q, vec3 q0, vec3 q1, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_plane(const capsule_cast* q, vec3 normal, double offset, sweep_hit* hit) noexcept nogil
# Order of triangles by their vertices: -1, 0 or 1.
cdef int triangle_order(const triangle* s, const triangle* t) noexcept nogil
# A bound on the distance of a candidate when the first of its shape is hit at ``first``.
cdef double latest_candidate(double first) noexcept nogil


cdef inline bint _box_reaches(const capsule_cast* q, const triangle* t) noexcept nogil:
    return not (f_min(t.a.x, f_min(t.b.x, t.c.x)) > q.swept.hi.x or f_max(t.a.x, f_max(t.b.x, t.c.x)) < q.swept.lo.x
                or f_min(t.a.y, f_min(t.b.y, t.c.y)) > q.swept.hi.y
                or f_max(t.a.y, f_max(t.b.y, t.c.y)) < q.swept.lo.y
                or f_min(t.a.z, f_min(t.b.z, t.c.z)) > q.swept.hi.z
                or f_max(t.a.z, f_max(t.b.z, t.c.z)) < q.swept.lo.z)


cdef inline int32_t triangles_in_reach(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided,
                                       double limit, int* passed, touched_triangle* touched) noexcept nogil:
    """Note the triangles that cannot be ruled out by their plane or their box; returns how many they are.

    Speed comes from not looking: most passes of most moves find none. Inline, so that
    those cost no call either."""
    cdef int32_t i, m = 0
    cdef double nd, h0, h1, low, high
    cdef const triangle* t
    for i in range(n):
        t = &tris[i]
        nd = v3_dot(t.n, q.dir)
        if nd > 0.0 and not two_sided and q.culls and passed == NULL:
            continue
        h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
        h1 = h0 + v3_dot(t.n, q.axis)
        if nd > 0.0:
            if two_sided:
                nd = -nd
                h0 = -h0
                h1 = -h1
            elif q.culls:
                # Not met, but whether it is overlapped counts.
                nd = 0.0
        low = f_min(h0, h1)
        high = f_max(h0, h1)
        # Before the plane is reached nothing can be touched; the slack keeps
        # rounding of this test out of the answer.
        if low - q.radius > q.slack - nd * limit or (high < -(q.radius + q.slack) and nd <= 0.0):
            continue
        if _box_reaches(q, t):
            touched[m].tri = i
            m += 1
    return m
