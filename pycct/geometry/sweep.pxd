# cython: language_level=3
"""Time of impact of spheres and capsules: linear and quadratic equations, no iteration.

A capsule is given by its sphere centres p0, p1 and its radius; it moves along the
unit vector ``dir``. Times are distances along ``dir``. ``NO_HIT`` (a huge number)
says that nothing is touched within ``limit``. All functions are pure.
"""
from libc.stdint cimport int16_t, int32_t, int64_t

from pycct.geometry.closest cimport longest_edge
from pycct.geometry.aabb4 cimport aabb4_box, aabb4_reach2, aabb4_slack
from pycct.geometry.types cimport sweep_hit, triangle
from pycct.geometry.vec cimport (
    aabb,
    f_max,
    f_min,
    quat,
    v3_add,
    v3_dot,
    v3_len2,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_scale,
    v3_sub,
    vec3,
)

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


# By which end's sphere a capsule touches the inside of a triangle.
cdef enum end_over:
    OVER_NONE = 0       # neither, or not known
    OVER_FIRST = 1      # p0
    OVER_LAST = 2       # p1


# A capsule in motion, as every sweep against many things needs it.
cdef struct capsule_cast:
    vec3 p0
    vec3 p1
    vec3 dir            # unit
    vec3 axis           # from p0 to p1
    double radius
    double limit        # longest distance of interest
    double slack        # what rounding may add to a distance from a plane
    double size         # largest coordinate where it begins
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


# One triangle on the way to a shape's hit: as triangles_in_reach notes it, then, if touched, as a candidate.
cdef struct toi_candidate:
    double distance     # noted: the height of the axis above the plane, where it is lowest; touched: when
    double facing       # noted: dot(normal, dir); touched: |dot(normal, dir)|
    int32_t tri
    int32_t mark        # noted: seen from its back, all signs turned; touched: end_over


# What is known of a triangle, or likely. Changes speed, never a result.
cdef struct triangle_aid:
    float edges2        # squared lengths of two of its edges, or a little more
    int16_t longest     # its longest_edge
    int16_t side        # the edge beyond which it was ruled out last: the first to look at


cdef inline triangle_aid triangle_aid_of(const triangle* t) noexcept nogil:
    cdef triangle_aid r
    r.edges2 = <float>(1.000001 * (v3_len2(v3_sub(t.b, t.a)) + v3_len2(v3_sub(t.c, t.a))))
    r.longest = longest_edge(t.a, t.b, t.c)
    r.side = 0
    return r


cdef inline void capsule_cast_set(capsule_cast* q, vec3 p0, vec3 p1, double radius, vec3 dir, double limit,
                                  bint trailing_rule, bint culls) noexcept nogil:
    q.p0 = p0
    q.p1 = p1
    q.dir = dir
    q.axis = v3_sub(p1, p0)
    q.radius = radius
    q.limit = limit
    q.slack = 1e-9 * (radius + limit)
    q.size = f_max(v3_max_abs(p0), v3_max_abs(p1))
    q.trailing_rule = trailing_rule
    q.hint = -1
    q.culls = culls
    q.culls_parallel = False
    q.passing = False
    q.passed = NULL


cdef inline capsule_cast capsule_cast_of(vec3 p0, vec3 p1, double radius, vec3 dir, double limit,
                                         bint trailing_rule, bint culls) noexcept nogil:
    cdef capsule_cast q
    capsule_cast_set(&q, p0, p1, radius, dir, limit, trailing_rule, culls)
    return q


# The triangles of one shape (RULES 3): the smallest distance, the triangle that
# wins, its normal and point. ``touched`` has room for n entries and is overwritten.
# Overlapping triangles are passed over when ``skip_overlaps``. False: nothing hit.
# ``tested`` is raised by the number of triangles that were really looked at.
cdef bint cast_triangles(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided,
                         bint skip_overlaps, toi_candidate* touched, int64_t* tested,
                         sweep_hit* hit) noexcept nogil
# The second half of that: only the n triangles that triangles_in_reach noted in ``touched``.
# q.limit, q.hint and q.passed do not count, the arguments do. ``known``: the first of them is what finds_face says.
# ``source``: of two that are the same to the bit, the one with the lower number is told; NULL: one of them. ``aids``:
# one for each of tris, or NULL.
cdef bint cast_selected(const capsule_cast* q, const triangle* tris, const int32_t* source, triangle_aid* aids,
                        int32_t n, bint two_sided, bint skip_overlaps, double limit, int32_t hint, bint known,
                        int* passed, toi_candidate* touched, int64_t* tested, sweep_hit* hit) noexcept nogil
# As triangles_in_reach, among triangles that are all one-sided and whose boxes stand in lanes; those that face away do
# not count, nor does ``but``, -1: none. ``touched`` needs room for one more than there are. -1: where q.passed wants to
# know of overlaps with what faces away, there may be one.
cdef int32_t aabb4_in_reach(const capsule_cast* q, const triangle* tris, const float* boxes, int32_t n, int32_t but,
                            double limit, toi_candidate* touched) noexcept nogil
# Whether a cast finds the inside of a triangle, and that before anything else of it; ``found`` tells how, but for tri.
cdef bint hits_same_face(const capsule_cast* q, const triangle* t, toi_candidate* found) noexcept nogil
# Whether nothing in ``touched``, all else that is in reach up to ``limit``, can have a say beside that; then the hit is
# filled in.
cdef bint is_unique_hit(const capsule_cast* q, const triangle* tris, triangle_aid* aids, int32_t n,
                        const toi_candidate* touched, const toi_candidate* found, double limit,
                        sweep_hit* hit) noexcept nogil
cdef bint cast_sphere(const capsule_cast* q, vec3 centre, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_capsule(const capsule_cast* q, vec3 q0, vec3 q1, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_plane(const capsule_cast* q, vec3 normal, double offset, sweep_hit* hit) noexcept nogil
# Order of triangles by their vertices: -1, 0 or 1.
cdef int triangle_order(const triangle* s, const triangle* t) noexcept nogil
# A bound on the distance of a candidate when the first of its shape is hit at ``first``.
cdef double latest_candidate(double first) noexcept nogil


cdef inline aabb swept_box(const capsule_cast* q) noexcept nogil:
    """Around the whole motion, and a little more."""
    cdef vec3 way = v3_scale(q.dir, q.limit)
    cdef double pad = q.radius + q.slack + 1e-14 * q.size
    cdef aabb box
    box.lo.x = f_min(q.p0.x, q.p1.x) + f_min(way.x, 0.0) - pad
    box.lo.y = f_min(q.p0.y, q.p1.y) + f_min(way.y, 0.0) - pad
    box.lo.z = f_min(q.p0.z, q.p1.z) + f_min(way.z, 0.0) - pad
    box.hi.x = f_max(q.p0.x, q.p1.x) + f_max(way.x, 0.0) + pad
    box.hi.y = f_max(q.p0.y, q.p1.y) + f_max(way.y, 0.0) + pad
    box.hi.z = f_max(q.p0.z, q.p1.z) + f_max(way.z, 0.0) + pad
    return box


cdef inline bint _reaches(const aabb* box, const triangle* t) noexcept nogil:
    return not (f_min(t.a.x, f_min(t.b.x, t.c.x)) > box.hi.x or f_max(t.a.x, f_max(t.b.x, t.c.x)) < box.lo.x
                or f_min(t.a.y, f_min(t.b.y, t.c.y)) > box.hi.y or f_max(t.a.y, f_max(t.b.y, t.c.y)) < box.lo.y
                or f_min(t.a.z, f_min(t.b.z, t.c.z)) > box.hi.z or f_max(t.a.z, f_max(t.b.z, t.c.z)) < box.lo.z)


cdef inline bint is_plane_ahead(double low, double rate, double reach, double limit) noexcept nogil:
    """Whether a plane is surely not touched within the limit, from ``low`` above it and rising by ``rate`` a metre.

    Who asks of one plane twice asks here twice: where corners are far away, rounding exceeds what ``reach`` spares."""
    return low - reach + rate * limit > 0.0


cdef inline int32_t triangles_in_reach(const capsule_cast* q, const triangle* tris, int32_t first, const int32_t* which,
                                       int32_t n, bint two_sided, double limit, int* passed,
                                       toi_candidate* touched) noexcept nogil:
    """Note those of the triangles that their planes cannot rule out; returns how many they are.

    ``which`` are the numbers of those to look at, counted from ``first`` on as those noted are; NULL: the
    first n, and their boxes decide too. Speed comes from not looking: inline, since most find none."""
    cdef int32_t i, k, m = 0
    cdef double nd, h0, h1, low, high, rate
    cdef const triangle* t
    cdef aabb box
    cdef bint boxed = False, turned
    for k in range(n):
        i = k if which == NULL else which[k] - first
        t = &tris[i]
        nd = v3_dot(t.n, q.dir)
        if nd > 0.0 and not two_sided and q.culls and passed == NULL:
            continue
        h0 = v3_dot(t.n, v3_sub(q.p0, t.a))
        h1 = h0 + v3_dot(t.n, q.axis)
        rate = nd
        turned = False
        if nd > 0.0:
            if two_sided:
                rate = nd = -nd
                h0 = -h0
                h1 = -h1
                turned = True
            elif q.culls:
                # Not met, but whether it is overlapped counts.
                rate = 0.0
        low = f_min(h0, h1)
        high = f_max(h0, h1)
        # Before the plane is reached nothing can be touched; the slack keeps
        # rounding of this test out of the answer.
        if is_plane_ahead(low, rate, q.radius + q.slack, limit) or (high < -(q.radius + q.slack) and rate <= 0.0):
            continue
        if which == NULL:
            if not boxed:
                box = swept_box(q)
                boxed = True
            if not _reaches(&box, t):
                continue
        touched[m].distance = low
        touched[m].facing = nd
        touched[m].tri = i
        touched[m].mark = turned
        m += 1
    return m


cdef inline aabb4_box aabb4_path(const capsule_cast* q, double limit) noexcept nogil:
    """Where a capsule comes by up to the limit, and a little more."""
    cdef vec3 way = v3_scale(q.dir, limit), lo = v3_min(q.p0, q.p1), hi = v3_max(q.p0, q.p1)
    cdef double far = aabb4_slack(q.size + limit) + q.slack
    cdef aabb4_box box
    lo = v3_min(lo, v3_add(lo, way))
    hi = v3_max(hi, v3_add(hi, way))
    box.lo = [<float>(lo.x - far), <float>(lo.y - far), <float>(lo.z - far)]
    box.hi = [<float>(hi.x + far), <float>(hi.y + far), <float>(hi.z + far)]
    box.reach2 = aabb4_reach2(q.radius + q.slack)
    return box
