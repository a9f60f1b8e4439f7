# cython: language_level=3
"""Ways out of meshes, heightfields and hulls as PhysX takes them. See the header."""
from libc.math cimport sqrt

from pycct.geometry.closest cimport segment_triangle
from pycct.geometry.overlap cimport support_of
from pycct.geometry.tolerances cimport PARALLEL2
from pycct.geometry.vec cimport (
    f_max,
    f_min,
    v3,
    v3_add,
    v3_cross,
    v3_dot,
    v3_len,
    v3_len2,
    v3_madd,
    v3_neg,
    v3_scale,
    v3_sub,
)

REACH = 2.0
NO_PUSH = 1e-5
# Up to this distance the axis counts as crossing a triangle, metres.
cdef double CROSSING = 1e-3
# The axis is longer by this at both ends where it meets edges, metres.
cdef double LONGER = 0.01
# Slack of barycentric coordinates of the rays from the ends of the axis.
cdef double BARYCENTRIC_SLACK = 1e-3
# Slack of the ends of an edge, square metres.
cdef double EDGE_SLACK = 1e-3
# Barycentric distance from an edge within which a closest point is on it.
cdef double ON_EDGE = 1e-7
# ... and from the edge opposite of the first corner.
cdef double ON_LAST_EDGE = 1e-4


cdef inline void _barycentric(vec3 x, const triangle* t, double* u, double* v) noexcept nogil:
    """Coordinates of a point of the triangle's plane: x = a + u (b - a) + v (c - a)."""
    cdef vec3 e1 = v3_sub(t.b, t.a), e2 = v3_sub(t.c, t.a), m = v3_cross(e1, e2), r
    cdef double m2 = v3_len2(m)
    u[0] = v[0] = 0.0
    if m2 == 0.0:
        return
    r = v3_sub(x, t.a)
    u[0] = v3_dot(v3_cross(r, e2), m) / m2
    v[0] = v3_dot(v3_cross(e1, r), m) / m2


cdef inline int _edges_at(vec3 x, const triangle* t) noexcept nogil:
    """Bits of the triangle's edges that a closest point is on; 0: inside the face."""
    cdef double u, v
    _barycentric(x, t, &u, &v)
    if u <= ON_EDGE:
        if v <= ON_EDGE:
            return 1 | 4
        return 2 | 4 if v >= 1.0 - ON_EDGE else 4
    if v <= ON_EDGE:
        return 1 | 2 if u >= 1.0 - ON_EDGE else 1
    return 2 if u + v >= 1.0 - ON_LAST_EDGE else 0


cdef inline double _interval_overlap(vec3 p0, vec3 p1, double radius, const triangle* t, vec3 w) noexcept nogil:
    """Overlap of the intervals of the capsule and the triangle along w; negative if apart."""
    cdef double x = v3_dot(p0, w), y = v3_dot(p1, w)
    cdef double lo = f_min(x, y) - radius, hi = f_max(x, y) + radius
    cdef double a = v3_dot(t.a, w), b = v3_dot(t.b, w), c = v3_dot(t.c, w)
    return f_min(hi - f_min(a, f_min(b, c)), f_max(a, f_max(b, c)) - lo)


cdef inline vec3 _corner(const triangle* t, int k) noexcept nogil:
    return t.a if k == 0 else (t.b if k == 1 else t.c)


cdef bint surface_meets(vec3 p0, vec3 p1, double radius, const triangle* t, bint two_sided,
                        surface_contact* r) noexcept nogil:
    r.centre = v3_scale(v3_add(p0, p1), 0.5)
    r.n = t.n
    if v3_dot(v3_sub(r.centre, t.a), r.n) < 0.0:
        if not two_sided:
            return False
        r.n = v3_neg(r.n)
    r.near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    if r.near.dist2 >= radius * radius:
        return False
    r.crossing = not r.near.dist2 > CROSSING * CROSSING
    r.edges = ALL_CONVEX if r.crossing else _edges_at(r.near.on_b, t)
    return True


cdef bint _crossing_direction(vec3 p0, vec3 p1, double radius, const triangle* t, vec3 n, int convex, vec3 side,
                              vec3* w) noexcept nogil:
    """RULES_2 3b for an axis that crosses the triangle; False: something separates them."""
    cdef double best = _interval_overlap(p0, p1, radius, t, n), overlap, m2
    cdef vec3 axis = v3_sub(p1, p0), e, u
    cdef int k
    if best < 0.0:
        return False
    w[0] = n
    for k in range(3):
        if not convex & (1 << k):
            continue
        e = v3_sub(_corner(t, (k + 1) % 3), _corner(t, k))
        u = v3_cross(axis, e)
        m2 = v3_len2(u)
        if m2 <= PARALLEL2 * v3_len2(e) * v3_len2(axis) or m2 == 0.0:
            continue
        u = v3_scale(u, 1.0 / sqrt(m2))
        overlap = _interval_overlap(p0, p1, radius, t, u)
        if overlap < 0.0:
            return False
        if overlap < best:
            best = overlap
            w[0] = u
    if v3_dot(w[0], side) < 0.0:
        w[0] = v3_neg(w[0])
    return True


cdef bint _ray_time(vec3 p, vec3 w, const triangle* t, vec3 n, double* distance) noexcept nogil:
    """Distance from p along -w to the front of the triangle; False: the ray misses it."""
    cdef double slope = v3_dot(n, w), u, v
    if slope <= 0.0:
        return False
    distance[0] = v3_dot(v3_sub(p, t.a), n) / slope
    if distance[0] < 0.0:
        return False
    _barycentric(v3_madd(p, w, -distance[0]), t, &u, &v)
    return u >= -BARYCENTRIC_SLACK and v >= -BARYCENTRIC_SLACK and u + v <= 1.0 + BARYCENTRIC_SLACK


cdef bint _edge_time(vec3 s0, vec3 s1, vec3 p, vec3 q, vec3 w, double* distance) noexcept nogil:
    """Distance along w from the edge pq to the segment; False: it misses the edge."""
    cdef vec3 e = v3_sub(q, p), plane = v3_cross(e, w), x, on_edge
    cdef double m2 = v3_len2(plane), h0 = v3_dot(plane, v3_sub(s0, p)), h1 = v3_dot(plane, v3_sub(s1, p))
    if m2 == 0.0 or h0 * h1 > 0.0 or h0 == h1:
        return False
    x = v3_madd(s0, v3_sub(s1, s0), h0 / (h0 - h1))
    distance[0] = v3_dot(v3_cross(e, v3_sub(x, p)), plane) / m2
    if distance[0] < 0.0:
        return False
    on_edge = v3_madd(x, w, -distance[0])
    return v3_dot(v3_sub(p, on_edge), v3_sub(q, on_edge)) < EDGE_SLACK


cdef inline void _take(double s, vec3 w, vec3* lo, vec3* hi) noexcept nogil:
    """Add the push of one distance."""
    cdef vec3 x = v3(-s * w.x, -s * w.y, -s * w.z)
    lo[0] = v3(f_min(lo.x, x.x), f_min(lo.y, x.y), f_min(lo.z, x.z))
    hi[0] = v3(f_max(hi.x, x.x), f_max(hi.y, x.y), f_max(hi.z, x.z))


cdef void surface_add(vec3 p0, vec3 p1, double radius, const triangle* t, const surface_contact* r, int convex,
                      vec3* lo, vec3* hi) noexcept nogil:
    cdef vec3 axis = v3_sub(p1, p0), reach = v3(0.0, 0.0, 0.0), s0, s1, w, along, middle
    cdef double size = v3_len(axis), distance
    cdef int k
    if size > 0.0:
        reach = v3_scale(axis, LONGER / size)
    s0, s1 = v3_sub(p0, reach), v3_add(p1, reach)
    if r.crossing:
        middle = v3_scale(v3_add(t.a, v3_add(t.b, t.c)), 1.0 / 3.0)
        if not _crossing_direction(p0, p1, radius, t, r.n, convex, v3_sub(r.centre, middle), &w):
            return
        along = v3_neg(w)
    else:
        w = r.n
        if r.edges & convex:
            w = v3_scale(v3_sub(r.near.on_a, r.near.on_b), 1.0 / sqrt(r.near.dist2))
        along = w
    for k in range(3):
        if _edge_time(s0, s1, _corner(t, k), _corner(t, (k + 1) % 3), along, &distance):
            if r.crossing:
                _take(-(radius + distance), w, lo, hi)
            elif distance < radius:
                _take(distance - radius, w, lo, hi)
    if _ray_time(p0, w, t, r.n, &distance) and distance < radius:
        _take(distance - radius, w, lo, hi)
    if _ray_time(p1, w, t, r.n, &distance) and distance < radius:
        _take(distance - radius, w, lo, hi)


cdef inline double _sum_of(double a, double b) noexcept nogil:
    return a + b if a == 0.0 or b == 0.0 else 0.5 * (a + b)


cdef vec3 surface_sum(vec3 lo, vec3 hi) noexcept nogil:
    return v3(_sum_of(lo.x, hi.x), _sum_of(lo.y, hi.y), _sum_of(lo.z, hi.z))


cdef bint is_no_push(vec3 push) noexcept nogil:
    return v3_len2(push) < NO_PUSH * NO_PUSH


cdef bint _passes(vec3 x, vec3 push, const triangle* t, bint two_sided) noexcept nogil:
    """Whether a point passes from the front of a triangle to its back."""
    cdef vec3 y = v3_add(x, push)
    cdef double h0 = v3_dot(v3_sub(x, t.a), t.n), h1 = v3_dot(v3_sub(y, t.a), t.n)
    if not (h0 > 0.0 > h1 or (two_sided and h0 < 0.0 < h1)):
        return False
    return segment_triangle(x, y, t.a, t.b, t.c, t.n).dist2 <= 0.0


cdef bint surface_passes(vec3 p0, vec3 p1, double reach, vec3 push, const triangle* t, bint two_sided) noexcept nogil:
    if not (_passes(p0, push, t, two_sided) or _passes(p1, push, t, two_sided)
            or _passes(v3_scale(v3_add(p0, p1), 0.5), push, t, two_sided)):
        return False
    # Which farther triangles a look-up returns depends on its box.
    return segment_triangle(p0, p1, t.a, t.b, t.c, t.n).dist2 < reach * reach


cdef bint crosses_face(vec3 p0, vec3 p1, const triangle* t, bint two_sided) noexcept nogil:
    cdef closest_pair near
    if not two_sided and v3_dot(v3_sub(v3_scale(v3_add(p0, p1), 0.5), t.a), t.n) <= 0.0:
        return False
    near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    return near.dist2 <= 0.0 and _edges_at(near.on_b, t) == 0


cdef bint hull_faces(vec3 p0, vec3 p1, double radius, const triangle* tris, int n, hull_exit* r) noexcept nogil:
    cdef double x
    cdef int i
    r.separation = -1e300
    r.dir = v3(0.0, 0.0, 1.0)
    for i in range(n):
        x = f_min(v3_dot(tris[i].n, p0), v3_dot(tris[i].n, p1)) - tris[i].d
        if x > r.separation:
            r.separation = x
            r.dir = tris[i].n
    return r.separation < radius


cdef inline void _try_axis(vec3 p0, vec3 p1, vec3 w, const triangle* tris, int n, hull_exit* r) noexcept nogil:
    cdef double x = f_min(v3_dot(w, p0), v3_dot(w, p1)) - support_of(tris, n, w)
    if x > r.separation:
        r.separation = x
        r.dir = w


cdef void hull_edge(vec3 p0, vec3 p1, vec3 e, const triangle* tris, int n, hull_exit* r) noexcept nogil:
    cdef vec3 axis = v3_sub(p1, p0), u = v3_cross(axis, e)
    cdef double m2 = v3_len2(u)
    if m2 <= PARALLEL2 * v3_len2(e) * v3_len2(axis) or m2 == 0.0:
        return
    u = v3_scale(u, 1.0 / sqrt(m2))
    _try_axis(p0, p1, u, tris, n, r)
    _try_axis(p0, p1, v3_neg(u), tris, n, r)
