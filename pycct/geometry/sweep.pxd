# cython: language_level=3
"""Time of impact of spheres and capsules: linear and quadratic equations, no iteration.

A capsule is given by its sphere centres p0, p1 and its radius. It moves along the unit vector
``dir``. Times are distances along ``dir``. ``NO_HIT`` (a huge number) means no contact within
``limit``. All functions are pure.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t

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

# Sphere against a point, a segment (with its ends), the inside of a triangle or parallelogram:
# distance of the first contact, else NO_HIT. A sphere that starts inside returns 0 if it moves
# further in, and NO_HIT if it moves out.
cdef double sphere_point(vec3 centre, vec3 dir, double radius, vec3 p, double limit) noexcept nogil
cdef double sphere_segment(vec3 centre, vec3 dir, double radius, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against one triangle; no culling, no overlap test (RULES 3).
cdef double capsule_triangle_time(vec3 p0, vec3 p1, double radius, vec3 dir, const triangle* t,
                                  double limit) noexcept nogil
# Capsule against a segment with its ends (the axis of another capsule).
cdef double capsule_segment_time(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 a, vec3 b, double limit) noexcept nogil
# Capsule against the solid box [-half, half] at (position, rotation): True for a hit within limit;
# an overlap at the start returns distance 0, overlapping.
cdef bint capsule_box(vec3 p0, vec3 p1, double radius, vec3 dir, vec3 half, vec3 position, quat rotation,
                      double limit, sweep_hit* hit) noexcept nogil


# The end sphere with which a capsule touches the inside of a triangle.
cdef enum end_over:
    OVER_NONE = 0       # neither, or unknown
    OVER_FIRST = 1      # p0
    OVER_LAST = 2       # p1


# A moving capsule, prepared for sweeps against many shapes.
cdef struct capsule_cast:
    vec3 p0
    vec3 p1
    vec3 dir            # unit
    vec3 axis           # from p0 to p1
    double radius
    double limit        # longest distance of interest
    double slack        # largest rounding error of a distance from a plane
    double size         # largest coordinate at the start
    bint trailing_rule  # ignore triangles behind the leading sphere (moves yes, queries no; RULES 3)
    bint exact          # the first triangle wins, not a more opposed one a little later (queries)
    bint meets_rims     # triangles whose planes are parallel to axis and motion are met by their edges
    bint meets_back_rims    # culled triangles that the centre is in front of are met by their open edges
    bint culls          # ignore triangles whose normal points along the motion
    bint culls_parallel     # also those perpendicular to the motion (RULES 9 row 8)
    bint passing        # with ``passed``: ignore all overlaps
    int32_t hint        # cast_triangles: first triangle to test, -1: none. Changes speed, never a result
    bint watches        # with ``passed``: a triangle may face away from the motion
    # Not NULL: overlaps with one-sided triangles that the centre is behind are passed over, and
    # passed_bits report them.
    int* passed


cdef enum passed_bit:
    PASSED_OVERLAP = 1  # an overlap was ignored
    PASSED_BACK = 2     # a culled triangle is overlapped, with the centre behind it, or with ``passing``


# One triangle during the search for a hit: as triangles_in_reach stores it, then, if touched, as a
# candidate.
cdef struct toi_candidate:
    double distance     # stored: lowest height of the axis above the plane; touched: the distance
    double facing       # stored: dot(normal, dir); touched: |dot(normal, dir)|
    int32_t tri
    int32_t mark        # stored: seen from its back, all signs flipped; touched: end_over


# Smallest squared distances of overlapped triangles from the axis, by the side that the axis is on;
# for triangles that the axis crosses, from the centre. Each starts with NO_HIT.
cdef struct facing_distances:
    double front
    double back
    double crossed_front
    double crossed_back


# Data that accelerates tests of a triangle. It changes speed, never a result.
cdef struct triangle_aid:
    float edges2        # squared lengths of two of its edges, or slightly more
    int8_t longest      # its longest_edge
    int8_t shared       # bit k: another triangle of its shape has edge k; 0: unknown
    int16_t side        # edge that rejected it last: the first one to test


cdef inline triangle_aid triangle_aid_of(const triangle* t) noexcept nogil:
    cdef triangle_aid r
    r.edges2 = <float>(1.000001 * (v3_len2(v3_sub(t.b, t.a)) + v3_len2(v3_sub(t.c, t.a))))
    r.longest = longest_edge(t.a, t.b, t.c)
    r.shared = 0
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
    q.exact = False
    q.meets_rims = False
    q.meets_back_rims = False
    q.hint = -1
    q.culls = culls
    q.culls_parallel = False
    q.passing = False
    q.watches = True
    q.passed = NULL


cdef inline capsule_cast capsule_cast_of(vec3 p0, vec3 p1, double radius, vec3 dir, double limit,
                                         bint trailing_rule, bint culls) noexcept nogil:
    cdef capsule_cast q
    capsule_cast_set(&q, p0, p1, radius, dir, limit, trailing_rule, culls)
    return q


cdef inline capsule_cast exact_cast_of(vec3 p0, vec3 p1, double radius, vec3 dir, double limit) noexcept nogil:
    """As queries cast: no rule of moves, what is touched first and nothing else."""
    cdef capsule_cast q
    capsule_cast_set(&q, p0, p1, radius, dir, limit, False, True)
    q.exact = True
    q.meets_rims = True
    return q


# The triangles of one shape (RULES 3): the smallest distance, the triangle that
# wins, its normal and point. ``touched`` has room for n entries and is overwritten.
# Overlapping triangles are passed over when ``skip_overlaps``. False: nothing hit.
# ``tested`` is raised by the number of triangles that were really looked at.
cdef bint cast_triangles(const capsule_cast* q, const triangle* tris, int32_t n, bint two_sided,
                         bint skip_overlaps, toi_candidate* touched, int64_t* tested,
                         sweep_hit* hit) noexcept nogil
# The second half of a cast: only the n triangles that triangles_in_reach stored in ``touched``.
# Arguments replace q.limit, q.hint and q.passed. ``known``: result of hits_same_face for the first
# of them. ``source``: of two equal triangles, the one with the lower number is returned; NULL:
# either. ``aids``: one for each triangle, or NULL.
cdef bint cast_selected(const capsule_cast* q, const triangle* tris, const int32_t* source, triangle_aid* aids,
                        int32_t n, bint two_sided, bint skip_overlaps, double limit, int32_t hint, bint known,
                        int* passed, toi_candidate* touched, int64_t* tested, sweep_hit* hit) noexcept nogil
# Like triangles_in_reach, for one-sided triangles with boxes in blocks of four. Triangles that face
# away and ``but`` (-1: none) do not count. ``touched`` needs room for one more than there are. If
# q.passed is set, ``unseen`` receives the triangles that face away and that the capsule may overlap
# at the end of the motion, although it meets nothing. Returns -1 if the general cast must record
# what is passed.
cdef int32_t aabb4_in_reach(const capsule_cast* q, const triangle* tris, const float* boxes, int32_t n, int32_t but,
                            double limit, toi_candidate* touched, int32_t* unseen,
                            int32_t* n_unseen) noexcept nogil
# Whether a cast hits the inside of a triangle before anything else of it; ``found`` describes the
# hit, except tri.
cdef bint hits_same_face(const capsule_cast* q, const triangle* t, toi_candidate* found) noexcept nogil
# Whether no other triangle in ``touched``, which contains all in reach up to ``limit``, can change
# the result; then the hit is filled in.
cdef bint is_unique_hit(const capsule_cast* q, const triangle* tris, triangle_aid* aids, int32_t n,
                        const toi_candidate* touched, const toi_candidate* found, double limit,
                        sweep_hit* hit) noexcept nogil
cdef bint cast_sphere(const capsule_cast* q, vec3 centre, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_capsule(const capsule_cast* q, vec3 q0, vec3 q1, double radius, sweep_hit* hit) noexcept nogil
cdef bint cast_plane(const capsule_cast* q, vec3 normal, double offset, sweep_hit* hit) noexcept nogil
# Whether the capsule overlaps the triangle at its start. ``low``: lowest height of its axis above
# the plane.
cdef bint overlaps_at_start(const capsule_cast* q, const triangle* t, double low, triangle_aid* aid) noexcept nogil
# Add one-sided triangles to the distances, and return whether the capsule is behind the nearest
# triangle that it overlaps. Outside of a closed solid it is not.
cdef bint is_behind_nearest(const capsule_cast* q, const triangle* tris, int32_t n, facing_distances* d) noexcept nogil
# The distance from a triangle below which a capsule overlaps it.
cdef double clearance_inside(const capsule_cast* q) noexcept nogil
# Contact with an edge of a triangle that faces away, at a distance.
cdef void describe_contact(const capsule_cast* q, const triangle* t, double distance, sweep_hit* hit) noexcept nogil
# Order of triangles by their vertices: -1, 0 or 1.
cdef int triangle_order(const triangle* s, const triangle* t) noexcept nogil
# A bound on the distance of a candidate when the first of its shape is hit at ``first``.
cdef double latest_candidate(const capsule_cast* q, double first) noexcept nogil


cdef inline aabb swept_box(const capsule_cast* q) noexcept nogil:
    """Bounds of the whole motion, with a margin."""
    cdef vec3 motion = v3_scale(q.dir, q.limit)
    cdef double pad = q.radius + q.slack + 1e-14 * q.size
    cdef aabb box
    box.lo.x = f_min(q.p0.x, q.p1.x) + f_min(motion.x, 0.0) - pad
    box.lo.y = f_min(q.p0.y, q.p1.y) + f_min(motion.y, 0.0) - pad
    box.lo.z = f_min(q.p0.z, q.p1.z) + f_min(motion.z, 0.0) - pad
    box.hi.x = f_max(q.p0.x, q.p1.x) + f_max(motion.x, 0.0) + pad
    box.hi.y = f_max(q.p0.y, q.p1.y) + f_max(motion.y, 0.0) + pad
    box.hi.z = f_max(q.p0.z, q.p1.z) + f_max(motion.z, 0.0) + pad
    return box


cdef inline bint _reaches(const aabb* box, const triangle* t) noexcept nogil:
    return not (f_min(t.a.x, f_min(t.b.x, t.c.x)) > box.hi.x or f_max(t.a.x, f_max(t.b.x, t.c.x)) < box.lo.x
                or f_min(t.a.y, f_min(t.b.y, t.c.y)) > box.hi.y or f_max(t.a.y, f_max(t.b.y, t.c.y)) < box.lo.y
                or f_min(t.a.z, f_min(t.b.z, t.c.z)) > box.hi.z or f_max(t.a.z, f_max(t.b.z, t.c.z)) < box.lo.z)


cdef inline bint is_plane_ahead(double low, double rate, double reach, double limit) noexcept nogil:
    """Whether a motion, ``low`` above a plane and rising by ``rate``, surely misses it.

    All tests of a plane use this function: for distant corners, rounding exceeds the margin of
    ``reach``.
    """
    return low - reach + rate * limit > 0.0


cdef inline int32_t triangles_in_reach(const capsule_cast* q, const triangle* tris, int32_t first, const int32_t* which,
                                       int32_t n, bint two_sided, double limit, int* passed,
                                       toi_candidate* touched) noexcept nogil:
    """Record the triangles that their planes do not reject; return their number.

    ``which`` contains the indices of the triangles to test, relative to ``first`` like the recorded
    ones; NULL: the first n, and their boxes decide too. Inline, because most calls find none.
    """
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
                # Not hit, but an overlap counts.
                rate = 0.0
        low = f_min(h0, h1)
        high = f_max(h0, h1)
        # No contact is possible before the plane is reached; the slack keeps rounding of this test
        # out of the result.
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
    """Bounds of the path of a capsule up to the limit, with a margin."""
    cdef vec3 motion = v3_scale(q.dir, limit), lo = v3_min(q.p0, q.p1), hi = v3_max(q.p0, q.p1)
    cdef double far = aabb4_slack(q.size + limit) + q.slack
    cdef aabb4_box box
    lo = v3_min(lo, v3_add(lo, motion))
    hi = v3_max(hi, v3_add(hi, motion))
    box.lo = [<float>(lo.x - far), <float>(lo.y - far), <float>(lo.z - far)]
    box.hi = [<float>(hi.x + far), <float>(hi.y + far), <float>(hi.z + far)]
    box.reach2 = aabb4_reach2(q.radius + q.slack)
    return box
