"""Signed distance between two convex shapes. See the header."""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t

from pycct.geometry.closest cimport closest_pair, point_segment_parameter, segment_segment, segment_segment_here
from pycct.convex.polytope cimport (
    FEATURE_EDGE, FEATURE_FACE, FEATURE_INDEX, FEATURE_VERTEX, convex_shape, edge_ends, edge_sides, face_corner,
    face_normal, face_planes, face_size, feature_normal, feature_of, polytope, polytope_load, pose, public_feature,
    support, vertex_at,
)
from pycct.geometry.types cimport SHAPE_CAPSULE, SHAPE_SPHERE
from pycct.geometry.vec cimport (
    f_clamp, f_max, m3_mul, m3_tmul, mat3, q_matrix, q_rotate, v3, v3_across, v3_add, v3_cross, v3_dot, v3_is_zero,
    v3_len, v3_len2, v3_lerp, v3_lex, v3_madd, v3_max_abs, v3_neg, v3_scale, v3_sub, vec3,
)

# Share of the scale of the pair. At a smaller distance, the direction between the closest points
# has lost its digits, and the faces decide instead.
cdef double TOUCHING = 1e-10
# Share of the scale. An axis must be better by this to replace an earlier one: faces before edges,
# A before B, and equal faces always in the same order.
cdef double AXIS_TIE = 1e-10
# Of the size: poses of equal shapes that differ by less are ordered by what differs by more, if
# anything does.
cdef double SAME_POSE = 1e-9
cdef int MAX_ITERATIONS = 100
cdef enum:
    MAX_FACES = 512
    MAX_EDGES = 768


cdef struct simplex:
    int32_t n
    vec3[4] w           # points of A - B
    int32_t[4] ia       # the vertices they come from
    int32_t[4] ib
    double[4] l         # weights of the closest point


cdef inline double _pair_scale(const polytope* a, const polytope* b) noexcept nogil:
    return a.extent + b.extent


# ---------------------------------------------------------------- apart: GJK

cdef inline vec3 _on_segment(vec3 a, vec3 b, double* l) noexcept nogil:
    """Point of segment ab nearest to the origin; weights in l."""
    cdef vec3 d = v3_sub(b, a)
    cdef double l2 = v3_len2(d)
    cdef double t = f_clamp(-v3_dot(a, d) / l2, 0.0, 1.0) if l2 > 0.0 else 0.0
    l[0] = 1.0 - t
    l[1] = t
    if t == 0.0:
        return a
    if t == 1.0:
        return b
    return v3_madd(a, d, t)


cdef vec3 _on_triangle(vec3 a, vec3 b, vec3 c, double* l) noexcept nogil:
    """The same on a triangle; degenerate ones fall back to their sides."""
    cdef vec3 n = v3_cross(v3_sub(b, a), v3_sub(c, a))
    cdef double n2 = v3_len2(n)
    cdef double u = v3_dot(v3_cross(b, c), n), v = v3_dot(v3_cross(c, a), n), w = v3_dot(v3_cross(a, b), n)
    cdef double best, d
    cdef double[2] k
    cdef vec3 p, q
    if u > 0.0 and v > 0.0 and w > 0.0 and n2 > 0.0:
        d = u + v + w
        l[0] = u / d
        l[1] = v / d
        l[2] = w / d
        return v3_scale(n, v3_dot(a, n) / n2)
    p = _on_segment(a, b, l)
    l[2] = 0.0
    best = v3_len2(p)
    q = _on_segment(a, c, k)
    d = v3_len2(q)
    if d < best:
        best = d
        p = q
        l[0] = k[0]
        l[1] = 0.0
        l[2] = k[1]
    q = _on_segment(b, c, k)
    if v3_len2(q) < best:
        p = q
        l[0] = 0.0
        l[1] = k[0]
        l[2] = k[1]
    return p


cdef inline bint _origin_inside(const vec3* w) noexcept nogil:
    """Whether the tetrahedron has volume and contains the origin."""
    cdef vec3 ab = v3_sub(w[1], w[0]), ac = v3_sub(w[2], w[0]), ad = v3_sub(w[3], w[0])
    cdef double volume = v3_dot(v3_cross(ab, ac), ad)
    cdef double d = -v3_dot(v3_cross(ab, ac), w[0])
    cdef double b = -v3_dot(v3_cross(ac, ad), w[0])
    cdef double c = -v3_dot(v3_cross(ad, ab), w[0])
    cdef double a = volume - b - c - d
    if volume > 0.0:
        return a >= 0.0 and b >= 0.0 and c >= 0.0 and d >= 0.0
    if volume < 0.0:
        return a <= 0.0 and b <= 0.0 and c <= 0.0 and d <= 0.0
    return False


cdef vec3 _reduce(simplex* s, bint* inside) noexcept nogil:
    """Nearest point of the simplex to the origin; drops the unused corners."""
    cdef vec3 v, best_v
    cdef double[4] l
    cdef double[3] k
    cdef double best, d
    cdef int32_t i, n
    inside[0] = False
    if s.n == 1:
        s.l[0] = 1.0
        return s.w[0]
    if s.n == 2:
        best_v = _on_segment(s.w[0], s.w[1], l)
    elif s.n == 3:
        best_v = _on_triangle(s.w[0], s.w[1], s.w[2], l)
    else:
        if _origin_inside(s.w):
            inside[0] = True
            return v3(0.0, 0.0, 0.0)
        # The newest corner (3) is always part of it.
        best_v = _on_triangle(s.w[0], s.w[1], s.w[3], k)
        best = v3_len2(best_v)
        l[0], l[1], l[2], l[3] = k[0], k[1], 0.0, k[2]
        v = _on_triangle(s.w[0], s.w[2], s.w[3], k)
        d = v3_len2(v)
        if d < best:
            best = d
            best_v = v
            l[0], l[1], l[2], l[3] = k[0], 0.0, k[1], k[2]
        v = _on_triangle(s.w[1], s.w[2], s.w[3], k)
        d = v3_len2(v)
        if d < best:
            best_v = v
            l[0], l[1], l[2], l[3] = 0.0, k[0], k[1], k[2]
    n = 0
    for i in range(s.n):
        if l[i] > 0.0:
            s.w[n] = s.w[i]
            s.ia[n] = s.ia[i]
            s.ib[n] = s.ib[i]
            s.l[n] = l[i]
            n += 1
    s.n = n
    return best_v


# 1: apart, s and v set; 0: touching or overlapping; -1: farther than limit.
cdef int _gjk(const polytope* a, const polytope* b, vec3 shift, double limit, simplex* s, vec3* closest) noexcept nogil:
    """Nearest points of A and of B moved by shift."""
    cdef double scale = _pair_scale(a, b)
    cdef double touching2, vv, new_vv, vw, m
    cdef vec3 v, w, centre
    cdef simplex old
    cdef int32_t ia, ib, i
    cdef bint inside, known
    cdef int _
    centre = v3_sub(a.centre, v3_add(b.centre, shift))
    touching2 = TOUCHING * scale
    touching2 = touching2 * touching2
    s.ia[0] = support(a, v3_neg(centre))
    s.ib[0] = support(b, centre)
    s.w[0] = v3_sub(vertex_at(a, s.ia[0]), v3_add(vertex_at(b, s.ib[0]), shift))
    s.n = 1
    s.l[0] = 1.0
    v = s.w[0]
    vv = v3_len2(v)
    for _ in range(MAX_ITERATIONS):
        if vv <= touching2:
            return 0
        ia = support(a, v3_neg(v))
        ib = support(b, v)
        known = False
        for i in range(s.n):
            if s.ia[i] == ia and s.ib[i] == ib:
                known = True
        if known:
            break
        w = v3_sub(vertex_at(a, ia), v3_add(vertex_at(b, ib), shift))
        vw = v3_dot(v, w)
        m = sqrt(vv)
        if vw > limit * m:
            return -1
        if vv - vw <= 1e-14 * vv + 1e-16 * scale * m:
            break
        old = s[0]
        s.w[s.n] = w
        s.ia[s.n] = ia
        s.ib[s.n] = ib
        s.n += 1
        w = _reduce(s, &inside)
        if inside:
            return 0
        new_vv = v3_len2(w)
        if not new_vv < vv:
            s[0] = old
            break
        v = w
        vv = new_vv
    closest[0] = v
    return 1


cdef void _from_simplex(const polytope* a, const polytope* b, const simplex* s, core_pair* out) noexcept nogil:
    cdef int32_t i
    out.on_a = v3_scale(vertex_at(a, s.ia[0]), s.l[0])
    out.on_b = v3_scale(vertex_at(b, s.ib[0]), s.l[0])
    for i in range(1, s.n):
        out.on_a = v3_madd(out.on_a, vertex_at(a, s.ia[i]), s.l[i])
        out.on_b = v3_madd(out.on_b, vertex_at(b, s.ib[i]), s.l[i])
    out.feature_a = feature_of(a, s.ia, s.n)
    out.feature_b = feature_of(b, s.ib, s.n)


cdef void _sharpen(const polytope* a, const polytope* b, vec3 v, core_pair* out) noexcept nogil:
    """Distance and direction.

    A face defines the direction with more digits than two near points. A shape with two faces is
    flat, and the face towards the other shape counts.
    """
    cdef double m = sqrt(v3_len2(v))
    cdef vec3 n
    out.distance = m
    out.n = v3_scale(v, 1.0 / m)
    if out.feature_a & FEATURE_FACE and a.n_faces > 0:
        n = v3_neg(face_normal(a, out.feature_a & FEATURE_INDEX))
        if a.n_faces == 2 and v3_dot(n, out.n) < 0.0:
            out.feature_a ^= 1
            n = v3_neg(n)
    elif out.feature_b & FEATURE_FACE and b.n_faces > 0:
        n = face_normal(b, out.feature_b & FEATURE_INDEX)
        if b.n_faces == 2 and v3_dot(n, out.n) < 0.0:
            out.feature_b ^= 1
            n = v3_neg(n)
    else:
        return
    # The tables merge nearly coplanar triangles into one face: only then do the two differ.
    if v3_dot(n, out.n) > 1.0 - 1e-12:
        out.n = n


# ---------------------------------------------------------------- overlapping: separating axes

cdef struct best_axis:
    double depth
    vec3 n              # from B towards A
    int32_t face_a      # the face, or -1
    int32_t face_b
    int32_t edge_a      # the pair of edges
    int32_t edge_b


cdef struct axis_work:
    vec3[MAX_FACES] normal
    double[MAX_FACES] offset
    double[MAX_FACES] centre_depth  # depth of the other one's centre below the face
    int32_t[MAX_FACES] deepest      # a vertex of the other one far below, -1: unknown
    double[MAX_FACES] depth         # how far


cdef inline double _width(const polytope* a, const polytope* b, vec3 n) noexcept nogil:
    """Distance that A must move along n to leave B."""
    return (v3_dot(vertex_at(b, support(b, n)), n)
            - v3_dot(vertex_at(a, support(a, v3_neg(n))), n))


cdef void _face_axes(const polytope* p, const polytope* q, bint p_is_a, double tie, best_axis* best,
                     axis_work* work) noexcept nogil:
    """Faces of p against the vertices of q."""
    cdef int32_t i, f, k, e, g, first = 0
    cdef vec3 m, probe = q.centre
    cdef double d, depth, smallest = 1e300
    cdef int32_t[6] order
    if p.n_faces == 0:
        return
    order[0], order[1], order[2], order[3], order[4], order[5] = 1, 4, 2, 5, 0, 3
    face_planes(p, work.normal, work.offset)
    for i in range(p.n_faces):
        f = order[i] if p.boxlike else i
        work.deepest[f] = -1
        depth = work.offset[f] - v3_dot(work.normal[f], q.centre)
        work.centre_depth[f] = depth
        if depth < smallest - tie:
            smallest = depth
            first = i
    # The face nearest to q's centre comes first: it is often the result, and always a good bound.
    for i in range(-1, p.n_faces):
        k = first if i < 0 else i
        f = order[k] if p.boxlike else k
        m = work.normal[f]
        d = work.offset[f]
        # A point of q that is deep enough below the face decides it.
        if i == first or work.centre_depth[f] >= best.depth or d - v3_dot(m, probe) >= best.depth:
            continue
        # So does the deepest vertex below a neighbour, which is nearly this face's own.
        if not p.flat and not p.boxlike:
            for e in range(p.h.face_start[f], p.h.face_start[f + 1]):
                g = p.h.edge_faces[2 * p.h.face_edges[e]] + p.h.edge_faces[2 * p.h.face_edges[e] + 1] - f
                if work.deepest[g] >= 0:
                    depth = d - v3_dot(m, vertex_at(q, work.deepest[g]))
                    if depth >= best.depth:
                        work.deepest[f] = work.deepest[g]
                        work.depth[f] = depth
                        break
            if work.deepest[f] >= 0:
                continue
        k = support(q, v3_neg(m))
        depth = d - v3_dot(m, vertex_at(q, k))
        work.deepest[f] = k
        work.depth[f] = depth
        if depth < best.depth - tie:
            best.depth = depth
            best.n = v3_neg(m) if p_is_a else m
            best.face_a = f if p_is_a else -1
            best.face_b = -1 if p_is_a else f
            best.edge_a = best.edge_b = -1
            probe = vertex_at(q, k)


cdef int32_t _edges_worth_trying(const polytope* p, const polytope* q, const axis_work* work, double best,
                                 int32_t* out) noexcept nogil:
    """Edges of p whose axes can beat the best depth.

    Along the arc of axes of an edge, the depth is at least that of any point of q below the edge.
    That depth is smallest at an end of the arc, on a face.
    """
    cdef int32_t e, left, right, n = 0
    for e in range(p.n_edges):
        edge_sides(p, e, &left, &right)
        # Beside the edge of a flat shape the arc is half a turn.
        if left >= 0 and p.n_faces > 2:
            if work.centre_depth[left] >= best and work.centre_depth[right] >= best:
                continue
            if (work.deepest[left] >= 0 and work.depth[left] >= best and work.offset[right]
                    - v3_dot(work.normal[right], vertex_at(q, work.deepest[left])) >= best):
                continue
            if (work.deepest[right] >= 0 and work.depth[right] >= best and work.offset[left]
                    - v3_dot(work.normal[left], vertex_at(q, work.deepest[right])) >= best):
                continue
        out[n] = e
        n += 1
    return n


cdef void _edge_axes(const polytope* a, const polytope* b, double scale, best_axis* best, const axis_work* wa,
                     const axis_work* wb) noexcept nogil:
    cdef int32_t[MAX_EDGES] ea
    cdef int32_t[MAX_EDGES] eb
    # Directions of B's edges, and the normals of their faces.
    cdef vec3[MAX_EDGES] dbs
    cdef vec3[MAX_EDGES] nbl
    cdef vec3[MAX_EDGES] nbr
    cdef int32_t na, nb, i, j, u, v, al, ar, bl, br
    cdef vec3 da, db, pa, pb, n, nal, nar, zero = v3(0.0, 0.0, 0.0)
    cdef double left, right, m, depth, slack, sign, tie = AXIS_TIE * scale
    cdef bint b_has_sides = True
    cdef int up, down
    na = _edges_worth_trying(a, b, wa, best.depth, ea)
    nb = _edges_worth_trying(b, a, wb, best.depth, eb)
    # A looser test only admits more axes; each is measured exactly before it counts.
    slack = 1e-12 * scale
    for j in range(nb):
        edge_ends(b, eb[j], &u, &v)
        dbs[j] = v3_sub(vertex_at(b, v), vertex_at(b, u))
        edge_sides(b, eb[j], &bl, &br)
        if bl >= 0:
            nbl[j] = wb.normal[bl]
            nbr[j] = wb.normal[br]
        else:
            b_has_sides = False
    for i in range(na):
        edge_ends(a, ea[i], &u, &v)
        edge_sides(a, ea[i], &al, &ar)
        pa = vertex_at(a, u)
        da = v3_sub(vertex_at(a, v), pa)
        nal = wa.normal[al] if al >= 0 else zero
        nar = wa.normal[ar] if ar >= 0 else zero
        for j in range(nb):
            db = dbs[j]
            # da x db is an outward axis of both edges if it is between the normals of the faces
            # beside each; signs decide that here, with one branch for all of them.
            left = v3_dot(nal, db)
            right = v3_dot(nar, db)
            up = (left >= -slack) & (right <= slack)
            down = (left <= slack) & (right >= -slack)
            if b_has_sides:
                left = v3_dot(nbl[j], da)
                right = v3_dot(nbr[j], da)
                up &= (left >= -slack) & (right <= slack)
                down &= (left <= slack) & (right >= -slack)
            if not (up | down):
                continue
            sign = 1.0 if up else -1.0
            n = v3_cross(da, db)
            m = v3_len2(n)
            if m <= 1e-28 * v3_len2(da) * v3_len2(db) or m <= 0.0:
                continue
            n = v3_scale(n, sign / sqrt(m))
            edge_ends(b, eb[j], &u, &v)
            pb = vertex_at(b, u)
            # n points out of A here; along it, B's edge is below A's by the depth.
            depth = v3_dot(n, v3_sub(pa, pb))
            if depth >= best.depth - tie:
                continue
            n = v3_neg(n)
            depth = _width(a, b, n)
            if depth < best.depth - tie:
                best.depth = depth
                best.n = n
                best.face_a = best.face_b = -1
                best.edge_a = ea[i]
                best.edge_b = eb[j]


cdef int32_t _unique_support(const polytope* p, vec3 d, double tolerance) noexcept nogil:
    """The vertex farthest along d, or -1 if others are as far within tolerance."""
    cdef int32_t i, k = support(p, d)
    cdef double threshold = v3_dot(vertex_at(p, k), d) - tolerance
    for i in range(p.n):
        if i != k and v3_dot(vertex_at(p, i), d) >= threshold:
            return -1
    return k


cdef void _penetration(const polytope* a, const polytope* b, core_pair* out) noexcept nogil:
    """Both cores share a point (or nearly); at least one has faces."""
    cdef best_axis best
    cdef axis_work wa, wb
    cdef double scale = _pair_scale(a, b)
    best.depth = 1e300
    best.n = v3(0.0, 0.0, 1.0)
    best.face_a = best.face_b = best.edge_a = best.edge_b = -1
    _face_axes(a, b, True, AXIS_TIE * scale, &best, &wa)
    _face_axes(b, a, False, AXIS_TIE * scale, &best, &wb)
    if a.n_edges > 0 and b.n_edges > 0:
        _edge_axes(a, b, scale, &best, &wa, &wb)
    _witnesses(a, b, &best, out)


cdef inline int32_t _box_edge(int32_t vertex, int axis) noexcept nogil:
    """Number of the edge along an axis at a corner of the unit cube."""
    if axis == 0:
        return vertex >> 1
    if axis == 1:
        return 4 + ((vertex & 1) | (vertex >> 2 << 1))
    return 8 + (vertex & 3)


cdef inline double _apart_along(double along, double tie) noexcept nogil:
    """How far apart two centres are along an axis, towards its positive side where rounding decides
    the side.
    """
    return along if along >= -tie else -along


cdef inline void _box_face(best_axis* best, double depth, double tie, vec3 axis, double along, int32_t face,
                           bint of_a) noexcept nogil:
    """One axis of a box; `along`: B's centre minus A's on it."""
    cdef bint positive = along >= -tie
    if depth >= best.depth - tie:
        return
    best.depth = depth
    # From B towards A.
    best.n = v3_neg(axis) if positive else axis
    if of_a:
        best.face_a = face if positive else face + 3
        best.face_b = -1
    else:
        best.face_b = face + 3 if positive else face
        best.face_a = -1


# Two boxes in the frame of the first one.
cdef struct box_pair:
    double[3][3] r          # rotation of B; its columns are B's axes
    double[3][3] m          # absolute values of the rotation
    double[3] t             # centre of B
    double[3] h             # half extents of A
    double[3] k             # half extents of B
    double tie
    double touching         # a gap of at most this much counts as a touch
    double limit
    double apart            # largest gap along an axis so far


# 1: apart; 0: touching or overlapping, best set; -1: certainly farther than limit.
cdef inline int _box_edge_axes(const polytope* a, const polytope* b, box_pair* x, best_axis* best) noexcept nogil:
    """The nine cross products of an axis of A and an axis of B."""
    cdef double d, depth, len2, along
    cdef int i, j, i1, i2, j1, j2
    cdef vec3 v
    for i in range(3):
        i1 = i + 1 if i < 2 else 0
        i2 = 3 - i - i1
        for j in range(3):
            len2 = 1.0 - x.r[i][j] * x.r[i][j]
            if len2 <= 1e-24:
                continue
            j1 = j + 1 if j < 2 else 0
            j2 = 3 - j - j1
            # Axis i x column j: components -r[i2][j] along i1 and r[i1][j] along i2.
            along = x.t[i2] * x.r[i1][j] - x.t[i1] * x.r[i2][j]
            d = x.h[i1] * x.m[i2][j] + x.h[i2] * x.m[i1][j] + x.k[j1] * x.m[i][j2] + x.k[j2] * x.m[i][j1] - fabs(along)
            # Cheap first: the length is at most 1.
            if d >= 0.0 and d >= best.depth - x.tie:
                continue
            depth = d / sqrt(len2)
            if d >= 0.0 and depth >= best.depth - x.tie:
                continue
            v = v3_cross(v3(1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0),
                         v3(x.r[0][j], x.r[1][j], x.r[2][j]))
            v = v3_scale(v, 1.0 / v3_len(v))
            v = v3_neg(v) if v3_dot(v, b.centre) >= -x.tie else v
            # In full along the rounded axis, so that rounding can only make it deeper.
            if d >= 0.0 or len2 < 1e-6:
                depth = _width(a, b, v)
            if -depth > x.apart:
                x.apart = -depth
                if x.apart > x.limit:
                    return -1
                if x.apart > x.touching and x.limit > 1e100:
                    return 1
            if depth < best.depth - x.tie:
                best.depth = depth
                best.n = v
                best.face_a = best.face_b = -1
                best.edge_a = _box_edge(support(a, v3_neg(v)), i)
                best.edge_b = _box_edge(support(b, v), j)
    return 1 if x.apart > x.touching else 0


# 1: apart; 0: touching or overlapping, best set; -1: certainly farther than limit.
cdef int _boxes(const polytope* a, const polytope* b, double limit, best_axis* best) noexcept nogil:
    """The fifteen axes of two boxes, a at the origin with its axes those of the frame."""
    cdef box_pair x
    cdef double[3] tb
    cdef double scale = _pair_scale(a, b), depth
    cdef int i, j, n
    cdef vec3 v
    cdef int[3] order
    order[0], order[1], order[2] = 1, 2, 0
    x.limit = limit
    x.tie = AXIS_TIE * scale
    x.touching = TOUCHING * scale
    x.r[0][0], x.r[0][1], x.r[0][2] = b.rotation.r0.x, b.rotation.r0.y, b.rotation.r0.z
    x.r[1][0], x.r[1][1], x.r[1][2] = b.rotation.r1.x, b.rotation.r1.y, b.rotation.r1.z
    x.r[2][0], x.r[2][1], x.r[2][2] = b.rotation.r2.x, b.rotation.r2.y, b.rotation.r2.z
    x.t[0], x.t[1], x.t[2] = b.centre.x, b.centre.y, b.centre.z
    x.h[0], x.h[1], x.h[2] = a.half.x, a.half.y, a.half.z
    x.k[0], x.k[1], x.k[2] = b.half.x, b.half.y, b.half.z
    for i in range(3):
        for j in range(3):
            x.m[i][j] = fabs(x.r[i][j])
    best.depth = 1e300
    best.face_a = best.face_b = best.edge_a = best.edge_b = -1
    x.apart = -1e300
    for n in range(3):
        i = order[n]
        depth = x.h[i] + x.k[0] * x.m[i][0] + x.k[1] * x.m[i][1] + x.k[2] * x.m[i][2] - _apart_along(x.t[i], x.tie)
        x.apart = -depth if -depth > x.apart else x.apart
        _box_face(best, depth, x.tie, v3(1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0),
                  x.t[i], i, True)
    if x.apart > limit:
        return -1
    for n in range(3):
        j = order[n]
        v = v3(x.r[0][j], x.r[1][j], x.r[2][j])
        tb[j] = x.t[0] * v.x + x.t[1] * v.y + x.t[2] * v.z
        depth = x.k[j] + x.h[0] * x.m[0][j] + x.h[1] * x.m[1][j] + x.h[2] * x.m[2][j] - _apart_along(tb[j], x.tie)
        x.apart = -depth if -depth > x.apart else x.apart
        _box_face(best, depth, x.tie, v, tb[j], j, False)
    if x.apart > limit:
        return -1
    if x.apart > x.touching and limit > 1e100:
        return 1
    return _box_edge_axes(a, b, &x, best)


cdef bint _over_face(const polytope* p, int32_t f, vec3 x, double tolerance) noexcept nogil:
    """Whether a point in the plane of a face lies in the face."""
    cdef vec3 n = face_normal(p, f), c, e, side
    cdef int32_t k, size = face_size(p, f)
    for k in range(size):
        c = vertex_at(p, face_corner(p, f, k))
        e = v3_sub(vertex_at(p, face_corner(p, f, k + 1 if k + 1 < size else 0)), c)
        side = v3_cross(e, n)
        if v3_dot(side, v3_sub(x, c)) > tolerance * v3_len(e):
            return False
    return True


cdef void _witnesses(const polytope* a, const polytope* b, const best_axis* axis, core_pair* out) noexcept nogil:
    """Points and features of the axis of least depth."""
    cdef best_axis best = axis[0]
    cdef double scale = _pair_scale(a, b), gap
    cdef int32_t k, u, v, x, y
    cdef simplex s
    cdef vec3 closest, shift
    cdef closest_pair pair
    out.n = best.n
    out.distance = -best.depth
    if best.edge_a >= 0:
        edge_ends(a, best.edge_a, &u, &v)
        edge_ends(b, best.edge_b, &x, &y)
        # Moved apart along the axis, the two edges are the nearest features.
        shift = v3_scale(best.n, -(best.depth + scale))
        pair = segment_segment(vertex_at(a, u), vertex_at(a, v), v3_add(vertex_at(b, x), shift),
                               v3_add(vertex_at(b, y), shift))
        out.on_a = pair.on_a
        out.on_b = v3_sub(pair.on_b, shift)
        out.feature_a = FEATURE_EDGE | best.edge_a
        out.feature_b = FEATURE_EDGE | best.edge_b
        # Nearly parallel edges need not be nearest where their lines are; then the general case
        # applies.
        if v3_max_abs(v3_madd(v3_sub(out.on_a, out.on_b), best.n, best.depth)) <= 1e-8 * scale:
            return
    elif best.face_a >= 0:
        k = _unique_support(b, best.n, 1e-9 * scale)
        if k >= 0:
            out.feature_a = FEATURE_FACE | best.face_a
            out.feature_b = FEATURE_VERTEX | k
            out.on_b = vertex_at(b, k)
            out.on_a = v3_madd(out.on_b, best.n, -best.depth)
            # Another axis may be as good as the face's but for a tie; then the corner lies beside
            # the face.
            if _over_face(a, best.face_a, out.on_a, 1e-9 * scale):
                return
    else:
        k = _unique_support(a, v3_neg(best.n), 1e-9 * scale)
        if k >= 0:
            out.feature_a = FEATURE_VERTEX | k
            out.feature_b = FEATURE_FACE | best.face_b
            out.on_a = vertex_at(a, k)
            out.on_b = v3_madd(out.on_a, best.n, best.depth)
            if _over_face(b, best.face_b, out.on_b, 1e-9 * scale):
                return
    # An edge or face lies flat on the face: part the two a little and ask for the nearest points.
    gap = 0.001 * scale
    shift = v3_scale(best.n, -(best.depth + gap))
    if _gjk(a, b, shift, 1e300, &s, &closest) == 1:
        _from_simplex(a, b, &s, out)
    else:
        u = support(a, v3_neg(best.n))
        v = support(b, best.n)
        s.n = 1
        s.l[0] = 1.0
        s.ia[0] = u
        s.ib[0] = v
        _from_simplex(a, b, &s, out)
    if best.face_a >= 0:
        out.on_a = v3_madd(out.on_b, best.n, -best.depth)
        if a.n_faces == 2 and out.feature_a & FEATURE_FACE:
            out.feature_a = FEATURE_FACE | best.face_a
    else:
        out.on_b = v3_madd(out.on_a, best.n, best.depth)
    if a.n_faces == 2 and out.feature_a & FEATURE_FACE:
        out.feature_a = FEATURE_FACE | (0 if v3_dot(face_normal(a, 0), best.n) <= 0.0 else 1)
    if b.n_faces == 2 and out.feature_b & FEATURE_FACE:
        out.feature_b = FEATURE_FACE | (0 if v3_dot(face_normal(b, 0), best.n) >= 0.0 else 1)


# ---------------------------------------------------------------- points and segments

cdef vec3 _axis_of_touching_lines(vec3 da, vec3 db, vec3 towards_a) noexcept nogil:
    """Direction that separates two crossing segments: perpendicular to both."""
    cdef vec3 n = v3_cross(da, db)
    cdef double m = v3_len2(n)
    if m > 1e-20 * v3_len2(da) * v3_len2(db):
        n = v3_scale(n, 1.0 / sqrt(m))
        return v3_neg(n) if v3_dot(n, towards_a) < 0.0 else n
    return v3_across(da if v3_len2(da) >= v3_len2(db) else db)


cdef inline bint _surely_apart(double v2, vec3 da, vec3 db) noexcept nogil:
    """Whether two points at the squared distance v2 on such segments surely do not touch.

    A quick test.
    """
    return v2 > 8.0 * TOUCHING * TOUCHING * (v3_len2(da) + v3_len2(db)) and v2 > 1e-280


cdef inline void _from_nearest(closest_pair p, vec3 a0, vec3 a1, vec3 b0, vec3 b1, core_pair* out) noexcept nogil:
    """Distance, direction and features of two segments or points nearest at p.

    s and t of a point are 0.
    """
    cdef vec3 v = v3_sub(p.on_a, p.on_b)
    cdef double v2 = v3_len2(v)
    cdef double m = sqrt(v2)
    out.on_a = p.on_a
    out.on_b = p.on_b
    out.distance = m
    # Vertex 0 or 1 at the ends, the edge between them; no unpredictable branch.
    out.feature_a = ((p.s > 0.0) & (p.s < 1.0)) * FEATURE_EDGE | FEATURE_VERTEX | (p.s == 1.0)
    out.feature_b = ((p.t > 0.0) & (p.t < 1.0)) * FEATURE_EDGE | FEATURE_VERTEX | (p.t == 1.0)
    if _surely_apart(v2, v3_sub(a1, a0), v3_sub(b1, b0)):
        out.n = v3_scale(v, 1.0 / m)
    else:
        out.n = _direction_of_near(v, m, a0, a1, b0, b1)


cdef vec3 _direction_of_near(vec3 v, double m, vec3 a0, vec3 a1, vec3 b0, vec3 b1) noexcept nogil:
    cdef double scale = v3_max_abs(v3_sub(a1, a0)) + v3_max_abs(v3_sub(b1, b0))
    if m > TOUCHING * scale and m > 1e-150:
        return v3_scale(v, 1.0 / m)
    return _axis_of_touching_lines(v3_sub(a1, a0), v3_sub(b1, b0), v3_sub(v3_add(a0, a1), v3_add(b0, b1)))


cdef inline closest_pair _nearest(vec3 a0, vec3 a1, int32_t na, vec3 b0, vec3 b1, int32_t nb) noexcept nogil:
    cdef closest_pair p
    # A point needs only its projection; two points not even that.
    p.s = 0.0 if na == 1 else point_segment_parameter(b0, a0, a1)
    p.t = 0.0 if nb == 1 else point_segment_parameter(a0, b0, b1)
    p.on_a = a0 if na == 1 else v3_lerp(a0, a1, p.s)
    p.on_b = b0 if nb == 1 else v3_lerp(b0, b1, p.t)
    p.dist2 = 0.0
    return p


cdef void _segments(const polytope* a, const polytope* b, core_pair* out) noexcept nogil:
    """Cores of one or two points."""
    cdef vec3 a0 = vertex_at(a, 0), a1 = vertex_at(a, a.n - 1), b0 = vertex_at(b, 0), b1 = vertex_at(b, b.n - 1)
    if a.n == 1 or b.n == 1:
        _from_nearest(_nearest(a0, a1, a.n, b0, b1, b.n), a0, a1, b0, b1, out)
    else:
        _from_nearest(segment_segment(a0, a1, b0, b1), a0, a1, b0, b1, out)


cdef void core_distance(const polytope* a, const polytope* b, double limit, core_pair* out) noexcept nogil:
    cdef simplex s
    cdef vec3 v
    cdef best_axis best
    cdef int status
    out.beyond = False
    if a.n <= 2 and b.n <= 2:
        _segments(a, b, out)
        out.beyond = out.distance > limit
        return
    if a.boxlike and b.boxlike:
        status = _boxes(a, b, limit, &best)
        if status < 0:
            out.beyond = True
            return
        if status == 0:
            _witnesses(a, b, &best, out)
            return
    status = _gjk(a, b, v3(0.0, 0.0, 0.0), limit, &s, &v)
    if status < 0:
        out.beyond = True
    elif status > 0:
        _from_simplex(a, b, &s, out)
        _sharpen(a, b, v, out)
        out.beyond = out.distance > limit
    else:
        _penetration(a, b, out)


# ---------------------------------------------------------------- shapes in the world

cdef double _size_of(const convex_shape* s) noexcept nogil:
    """About how large a shape is."""
    cdef double size = f_max(s.radius, f_max(v3_max_abs(s.a), f_max(v3_max_abs(s.b), v3_max_abs(s.c))))
    cdef double largest = 0.0
    cdef int32_t i
    if s.hull == NULL:
        return size
    # a is the scale.
    for i in range(3 * s.hull.n_vertices):
        largest = f_max(largest, fabs(s.hull.vertices[i]))
    return size * largest


cdef int _clear_order(vec3 a, vec3 b, double tolerance) noexcept nogil:
    """As v3_lex, but components that differ by no more than the tolerance are the same."""
    if fabs(a.x - b.x) > tolerance:
        return -1 if a.x < b.x else 1
    if fabs(a.y - b.y) > tolerance:
        return -1 if a.y < b.y else 1
    if fabs(a.z - b.z) > tolerance:
        return -1 if a.z < b.z else 1
    return 0


cdef bint swapped_order(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb) noexcept nogil:
    cdef int c
    if a.kind != b.kind:
        return a.kind < b.kind
    if a.radius != b.radius:
        return a.radius < b.radius
    c = v3_lex(a.a, b.a)
    if c == 0:
        c = v3_lex(a.b, b.b)
    if c == 0:
        c = v3_lex(a.c, b.c)
    if c == 0 and a.hull != b.hull:
        c = _compare_hulls(a, b)
    # Of the same shape twice the poses decide: by what rounding cannot change, as long as anything
    # is left of that.
    if c == 0:
        c = _clear_order(pa.position, pb.position, SAME_POSE * _size_of(a))
    if c == 0:
        c = _clear_order(v3(pa.rotation.x, pa.rotation.y, pa.rotation.z),
                         v3(pb.rotation.x, pb.rotation.y, pb.rotation.z), SAME_POSE)
    if c == 0:
        c = v3_lex(pa.position, pb.position)
    if c == 0:
        c = v3_lex(v3(pa.rotation.x, pa.rotation.y, pa.rotation.z), v3(pb.rotation.x, pb.rotation.y, pb.rotation.z))
    if c == 0:
        return pa.rotation.w < pb.rotation.w
    return c < 0


cdef int _compare_hulls(const convex_shape* a, const convex_shape* b) noexcept nogil:
    cdef int32_t i
    if a.hull.n_vertices != b.hull.n_vertices:
        return -1 if a.hull.n_vertices < b.hull.n_vertices else 1
    for i in range(3 * a.hull.n_vertices):
        if a.hull.vertices[i] != b.hull.vertices[i]:
            return -1 if a.hull.vertices[i] < b.hull.vertices[i] else 1
    return 0


cdef inline mat3 _transpose_times(mat3 a, mat3 b) noexcept nogil:
    """Transpose of a times b."""
    cdef mat3 r
    cdef vec3 c0 = m3_tmul(a, v3(b.r0.x, b.r1.x, b.r2.x))
    cdef vec3 c1 = m3_tmul(a, v3(b.r0.y, b.r1.y, b.r2.y))
    cdef vec3 c2 = m3_tmul(a, v3(b.r0.z, b.r1.z, b.r2.z))
    r.r0 = v3(c0.x, c1.x, c2.x)
    r.r1 = v3(c0.y, c1.y, c2.y)
    r.r2 = v3(c0.z, c1.z, c2.z)
    return r


cdef void load_pair(polytope* a, polytope* b, const convex_shape* sa, const pose* pa, const convex_shape* sb,
                    const pose* pb) noexcept nogil:
    cdef mat3 ra = q_matrix(pa.rotation)
    cdef mat3 relative = _transpose_times(ra, q_matrix(pb.rotation))
    cdef vec3 position = m3_tmul(ra, v3_sub(pb.position, pa.position))
    polytope_load(a, sa, ra, v3(0.0, 0.0, 0.0), False)
    polytope_load(b, sb, relative, position, True)


cdef void finish(const polytope* a, const polytope* b, const core_pair* core, const pose* frame,
                 distance_result* out) noexcept nogil:
    cdef mat3 r = q_matrix(frame.rotation)
    cdef vec3 na = v3_neg(core.n), nb = core.n, n
    if a.kind != SHAPE_SPHERE and a.kind != SHAPE_CAPSULE:
        n = feature_normal(a, core.feature_a)
        na = n if not v3_is_zero(n) else na
    if b.kind != SHAPE_SPHERE and b.kind != SHAPE_CAPSULE:
        n = feature_normal(b, core.feature_b)
        nb = n if not v3_is_zero(n) else nb
    out.distance = core.distance - a.radius - b.radius
    out.point_a = v3_add(m3_mul(r, v3_madd(core.on_a, core.n, -a.radius)), frame.position)
    out.point_b = v3_add(m3_mul(r, v3_madd(core.on_b, core.n, b.radius)), frame.position)
    out.normal = m3_mul(r, core.n)
    out.normal_a = m3_mul(r, na)
    out.normal_b = m3_mul(r, nb)
    out.feature_a = public_feature(a, core.feature_a)
    out.feature_b = public_feature(b, core.feature_b)


cdef void swap_result(distance_result* r) noexcept nogil:
    r.point_a, r.point_b = r.point_b, r.point_a
    r.normal_a, r.normal_b = r.normal_b, r.normal_a
    r.feature_a, r.feature_b = r.feature_b, r.feature_a
    r.normal = v3_neg(r.normal)


cdef inline bint _opposite(vec3 a, vec3 b) noexcept nogil:
    return a.x == -b.x and a.y == -b.y and a.z == -b.z


cdef inline void _round_in_order(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                                 distance_result* out) noexcept nogil:
    cdef core_pair core
    cdef closest_pair p
    cdef vec3 a0, a1, b0, b1, t
    cdef int32_t na = 2, nb = 2
    # Relative to A's centre, with axes of the world.
    t = v3_sub(pb.position, pa.position)
    if a.kind == SHAPE_SPHERE:
        a0 = a1 = v3(0.0, 0.0, 0.0)
        na = 1
    else:
        a1 = q_rotate(pa.rotation, a.b)
        a0 = v3_neg(a1) if _opposite(a.a, a.b) else q_rotate(pa.rotation, a.a)
    if b.kind == SHAPE_SPHERE:
        b0 = b1 = t
        nb = 1
    else:
        b1 = q_rotate(pb.rotation, b.b)
        b0 = v3_neg(b1) if _opposite(b.a, b.b) else q_rotate(pb.rotation, b.a)
        b0 = v3_add(b0, t)
        b1 = v3_add(b1, t)
    if na == 1 or nb == 1:
        p = _nearest(a0, a1, na, b0, b1, nb)
    else:
        p = segment_segment_here(a0, a1, b0, b1)
    _from_nearest(p, a0, a1, b0, b1, &core)
    out.distance = core.distance - a.radius - b.radius
    out.point_a = v3_add(v3_madd(core.on_a, core.n, -a.radius), pa.position)
    out.point_b = v3_add(v3_madd(core.on_b, core.n, b.radius), pa.position)
    out.normal = core.n
    out.normal_a = v3_neg(core.n)
    out.normal_b = core.n
    out.feature_a = core.feature_a
    out.feature_b = core.feature_b


cdef void round_distance(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         distance_result* out) noexcept nogil:
    cdef bint swapped = swapped_order(a, pa, b, pb)
    # One call with exchanged pointers, so that the code above exists once.
    _round_in_order(b if swapped else a, pb if swapped else pa, a if swapped else b, pa if swapped else pb, out)
    if swapped:
        swap_result(out)


cdef bint shape_distance(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         double max_distance, distance_result* out) noexcept nogil:
    cdef polytope p, q
    cdef core_pair core
    if a.kind <= SHAPE_CAPSULE and b.kind <= SHAPE_CAPSULE:
        round_distance(a, pa, b, pb, out)
        return out.distance <= max_distance
    if swapped_order(a, pa, b, pb):
        if not shape_distance(b, pb, a, pa, max_distance, out):
            return False
        swap_result(out)
        return True
    load_pair(&p, &q, a, pa, b, pb)
    core_distance(&p, &q, max_distance + a.radius + b.radius, &core)
    if core.beyond:
        return False
    finish(&p, &q, &core, pa, out)
    return out.distance <= max_distance
