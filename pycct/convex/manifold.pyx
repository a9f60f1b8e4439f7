"""Contact manifolds between two convex shapes. See the header.

All pairs use one scheme: the face of each shape most opposed to the other along the normal, the
edges of one face clipped against the sides of the other, and the corners that project onto the
other's face. A segment (capsule axis, hull of dimension 1) is clipped as a single edge. Points and
pairs of segments have one contact, the closest pair.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from pycct.convex.distance cimport (
    core_distance, finish, load_pair, round_distance, swap_result, swapped_order,
)
from pycct.convex.hull cimport HULL_MAX_VERTICES
from pycct.convex.outline cimport outline_build, outline_item
from pycct.convex.polytope cimport best_face_at, face_corner, face_normal, face_offset, face_size, vertex_at
from pycct.geometry.types cimport SHAPE_CAPSULE
from pycct.geometry.vec cimport (
    m3_mul, mat3, q_matrix, v3_add, v3_cross, v3_dist2, v3_dot, v3_len, v3_len2, v3_lerp, v3_madd, v3_neg, v3_scale,
    v3_sub, vec3,
)

# A face is unusable if the normal is nearly in it: less than 3 degrees (CONTACT).
cdef double NEARLY_PARALLEL = 0.05
# The closest pair is added if no contact is as near, within this (m; CONTACT), or this share of the
# scale for shapes below a metre; otherwise the smallest ones would lose it.
cdef double CLOSE_ENOUGH = 1e-4
# Share of the scale: a point on a side plane counts as inside. If a corner is nearest to an edge,
# both meet exactly in the projection, so this decides often and must not depend on rounding.
cdef double ON_EDGE = 1e-9
# Share of the scale: contacts this near are one; edges that cross at a flat angle spread ON_EDGE
# that far.
cdef double SAME_POINT = 1e-7
cdef enum:
    MAX_CORNERS = HULL_MAX_VERTICES + 1
    MAX_WORK = 512      # two 255-gons give 510 at most


cdef struct contact_work:
    int32_t n
    double[3 * MAX_WORK] points     # on B, in the layout of the outline builder
    double[MAX_WORK] distances


cdef struct face_sides:
    const polytope* p
    int32_t face
    int32_t size
    vec3 normal
    double offset
    double facing       # cosine between its normal and the direction to the other shape
    # By _raise: corners, and the planes on the sides along the direction.
    vec3[MAX_CORNERS + 1] corner    # the first one again at the end
    vec3[MAX_CORNERS] side          # outward
    double[MAX_CORNERS] length      # of side


cdef inline void _add(contact_work* w, vec3 point, double distance) noexcept nogil:
    if w.n < MAX_WORK:
        w.points[3 * w.n] = point.x
        w.points[3 * w.n + 1] = point.y
        w.points[3 * w.n + 2] = point.z
        w.distances[w.n] = distance
        w.n += 1


cdef void _find(face_sides* s, const polytope* p, vec3 direction, int32_t feature) noexcept nogil:
    """The face at the feature most opposed to the other shape, and its corners."""
    cdef int32_t k
    s.p = p
    s.face = best_face_at(p, direction, feature)
    s.size = face_size(p, s.face)
    s.normal = face_normal(p, s.face)
    s.offset = face_offset(p, s.face, s.normal)
    s.facing = v3_dot(s.normal, direction)
    for k in range(s.size):
        s.corner[k] = vertex_at(p, face_corner(p, s.face, k))
    s.corner[s.size] = s.corner[0]


cdef void _raise(face_sides* s, vec3 direction) noexcept nogil:
    """Planes on the sides of the face, for _clip and _projects_inside."""
    cdef int32_t k
    for k in range(s.size):
        # Outward, because corners run counter-clockwise around the face's normal.
        s.side[k] = v3_cross(v3_sub(s.corner[k + 1], s.corner[k]), direction)
        s.length[k] = v3_len(s.side[k])


cdef inline double _height(const face_sides* s, vec3 p) noexcept nogil:
    """Distance from the face to p along the direction the face was chosen for."""
    return (v3_dot(s.normal, p) - s.offset) / s.facing


cdef bint _clip(const face_sides* s, vec3 p, vec3 q, double tolerance, double* enter, double* exit) noexcept nogil:
    """Part of segment pq that projects onto the raised face, as fractions."""
    cdef int32_t k
    cdef double dp, dq, t, limit
    enter[0] = 0.0
    exit[0] = 1.0
    for k in range(s.size):
        limit = tolerance * s.length[k]
        dp = v3_dot(s.side[k], v3_sub(p, s.corner[k]))
        dq = v3_dot(s.side[k], v3_sub(q, s.corner[k]))
        if dp <= limit:
            if dq > limit:
                t = dp / (dp - dq)
                t = t if t > 0.0 else 0.0
                exit[0] = t if t < exit[0] else exit[0]
        elif dq <= limit:
            t = dp / (dp - dq)
            t = t if t < 1.0 else 1.0
            enter[0] = t if t > enter[0] else enter[0]
        else:
            return False
    return enter[0] < exit[0] or (enter[0] == exit[0] and v3_dist2(p, q) <= 0.0)


cdef bint _projects_inside(const face_sides* s, vec3 p, double tolerance) noexcept nogil:
    """Whether p is inside the raised face; the other face's edges find points on its rim."""
    cdef int32_t k
    for k in range(s.size):
        if v3_dot(s.side[k], v3_sub(p, s.corner[k])) > -tolerance * s.length[k]:
            return False
    return True


cdef double _axis_to_surface(vec3 s0, vec3 s1, double radius, vec3 p, vec3 direction) noexcept nogil:
    """Distance from a point of a capsule's axis along a direction to the capsule's surface."""
    cdef vec3 d = v3_sub(s1, s0), m
    cdef double length, k, sin2, t, s, b, c
    if radius <= 0.0:
        return 0.0
    length = v3_len(d)
    d = v3_scale(d, 1.0 / length)
    k = v3_dot(d, direction)
    sin2 = 1.0 - k * k
    s = v3_dot(v3_sub(p, s0), d)
    t = radius / sqrt(sin2) if sin2 > 1e-12 else 1e6 * (radius + length)
    if 0.0 <= s + k * t <= length:
        return t
    m = v3_sub(p, s0 if s + k * t < 0.0 else s1)
    b = v3_dot(m, direction)
    c = b * b - v3_len2(m) + radius * radius
    return sqrt(c if c > 0.0 else 0.0) - b


cdef void _segment_face(const polytope* p, const polytope* segment, vec3 direction, int32_t feature, bint face_on_b,
                        double tolerance, contact_work* w) noexcept nogil:
    """A segment with a radius against the face of p; direction: from p to the segment."""
    cdef face_sides s
    cdef vec3 s0 = vertex_at(segment, 0), s1 = vertex_at(segment, 1), x
    cdef double enter, exit, h, reach
    cdef int k
    _find(&s, p, direction, feature)
    if s.facing < NEARLY_PARALLEL:
        return
    _raise(&s, direction)
    if not _clip(&s, s0, s1, tolerance, &enter, &exit):
        return
    for k in range(2):
        x = v3_lerp(s0, s1, enter if k == 0 else exit)
        h = _height(&s, x)
        reach = _axis_to_surface(s0, s1, segment.radius, x, v3_neg(direction))
        _add(w, v3_madd(x, direction, -h if face_on_b else -reach), h - reach)


cdef void _face_face(const polytope* a, const polytope* b, const core_pair* core, double tolerance,
                     contact_work* w) noexcept nogil:
    cdef vec3 n = core.n, to_b = v3_neg(core.n), p, q
    cdef face_sides fa, fb
    cdef double enter, exit, h
    cdef int32_t k
    _find(&fa, a, to_b, core.feature_a)
    _find(&fb, b, n, core.feature_b)
    if fa.facing >= NEARLY_PARALLEL:
        _raise(&fa, to_b)
    if fb.facing >= NEARLY_PARALLEL:
        _raise(&fb, n)
        for k in range(fa.size):
            p = fa.corner[k]
            q = fa.corner[k + 1]
            if _clip(&fb, p, q, tolerance, &enter, &exit):
                h = _height(&fb, v3_lerp(p, q, enter))
                _add(w, v3_madd(v3_lerp(p, q, enter), n, -h), h)
                # The end of an edge is the start of the next.
                if exit < 1.0:
                    h = _height(&fb, v3_lerp(p, q, exit))
                    _add(w, v3_madd(v3_lerp(p, q, exit), n, -h), h)
        if fa.facing >= NEARLY_PARALLEL:
            for k in range(fb.size):
                p = fb.corner[k]
                if _projects_inside(&fa, p, tolerance):
                    _add(w, p, _height(&fa, p))
    elif fa.facing >= NEARLY_PARALLEL:
        # Reversed roles: B's face is perpendicular, so its edges are clipped against A's face.
        for k in range(fb.size):
            p = fb.corner[k]
            q = fb.corner[k + 1]
            if _clip(&fa, p, q, tolerance, &enter, &exit):
                _add(w, v3_lerp(p, q, enter), _height(&fa, v3_lerp(p, q, enter)))
                if exit < 1.0:
                    _add(w, v3_lerp(p, q, exit), _height(&fa, v3_lerp(p, q, exit)))


cdef void _drop_repeated(contact_work* w, double tolerance) noexcept nogil:
    cdef int32_t i, j, n = 0
    cdef double dx, dy, dz, d = tolerance
    for i in range(w.n):
        for j in range(n):
            dx = w.points[3 * i] - w.points[3 * j]
            dy = w.points[3 * i + 1] - w.points[3 * j + 1]
            dz = w.points[3 * i + 2] - w.points[3 * j + 2]
            if -d <= dx <= d and -d <= dy <= d and -d <= dz <= d:
                if w.distances[i] < w.distances[j]:
                    w.distances[j] = w.distances[i]
                break
        else:
            w.points[3 * n] = w.points[3 * i]
            w.points[3 * n + 1] = w.points[3 * i + 1]
            w.points[3 * n + 2] = w.points[3 * i + 2]
            w.distances[n] = w.distances[i]
            n += 1
    w.n = n


cdef inline void _keep(manifold* m, const contact_work* w, int32_t i) noexcept nogil:
    m.points[m.count].x = w.points[3 * i]
    m.points[m.count].y = w.points[3 * i + 1]
    m.points[m.count].z = w.points[3 * i + 2]
    m.distances[m.count] = w.distances[i]
    m.count += 1


cdef void _keep_best(manifold* m, const contact_work* w, int32_t capacity, int32_t deepest,
                     double tolerance) noexcept nogil:
    """Too many contacts: keep the largest outline, and the deepest one."""
    cdef int32_t[MAX_CONTACTS + 2] chosen
    cdef outline_item[MAX_WORK] scratch
    cdef int32_t i, k, count
    cdef bint found = False
    count = outline_build(w.points, w.n, m.normal, capacity, tolerance, chosen, scratch)
    for i in range(count):
        found = found or w.distances[chosen[i]] <= w.distances[deepest] + tolerance
    if not found:
        if count == capacity:
            count = outline_build(w.points, w.n, m.normal, capacity - 1, tolerance, chosen, scratch)
        chosen[count] = deepest
        count += 1
    for k in range(count):
        _keep(m, w, chosen[k])


cdef void _cut(contact_work* w, double cutoff) noexcept nogil:
    """Leave out contacts that are farther apart."""
    cdef int32_t i, n = 0
    for i in range(w.n):
        if w.distances[i] <= cutoff:
            w.points[3 * n] = w.points[3 * i]
            w.points[3 * n + 1] = w.points[3 * i + 1]
            w.points[3 * n + 2] = w.points[3 * i + 2]
            w.distances[n] = w.distances[i]
            n += 1
    w.n = n


cdef void build_manifold(const polytope* a, const polytope* b, const core_pair* core, double cutoff,
                         manifold* out) noexcept nogil:
    cdef contact_work w
    cdef double distance = core.distance - a.radius - b.radius
    cdef double scale = a.extent + b.extent
    cdef double tolerance = ON_EDGE * scale
    cdef int32_t i, capacity, deepest = 0
    cdef bint needs_closest = True
    w.n = 0
    out.normal = core.n
    out.count = 0
    if a.n_faces > 0 and b.n_faces > 0:
        _face_face(a, b, core, tolerance, &w)
    elif a.n_faces > 0 and b.n == 2:
        _segment_face(a, b, v3_neg(core.n), core.feature_a, False, tolerance, &w)
    elif b.n_faces > 0 and a.n == 2:
        _segment_face(b, a, core.n, core.feature_b, True, tolerance, &w)
    # Rounding must not tell contacts at the cutoff from one another.
    _cut(&w, cutoff + tolerance)
    _drop_repeated(&w, SAME_POINT * scale)
    for i in range(1, w.n):
        if w.distances[i] < w.distances[deepest]:
            deepest = i
    if w.n > 0:
        needs_closest = w.distances[deepest] > distance + CLOSE_ENOUGH * (scale if scale < 1.0 else 1.0)
    capacity = MAX_CONTACTS - 1 if needs_closest else MAX_CONTACTS
    if w.n <= capacity:
        for i in range(w.n):
            _keep(out, &w, i)
    else:
        _keep_best(out, &w, capacity, deepest, tolerance)
    if needs_closest:
        out.points[out.count] = v3_madd(core.on_b, core.n, b.radius)
        out.distances[out.count] = distance
        out.count += 1


cdef void flip_manifold(manifold* m) noexcept nogil:
    cdef int32_t i
    for i in range(m.count):
        m.points[i] = v3_madd(m.points[i], m.normal, m.distances[i])
    m.normal = v3_neg(m.normal)


cdef bint shape_contacts(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb,
                         double max_distance, double cutoff, manifold* out, distance_result* nearest) noexcept nogil:
    cdef polytope p, q
    cdef core_pair core
    cdef distance_result r
    cdef mat3 m
    cdef int32_t i
    # Shapes that are farther apart have no contact.
    max_distance = cutoff if cutoff < max_distance else max_distance
    if a.kind <= SHAPE_CAPSULE and b.kind <= SHAPE_CAPSULE:
        round_distance(a, pa, b, pb, &r)
        if nearest != NULL:
            nearest[0] = r
        if r.distance > max_distance:
            return False
        out.normal = r.normal
        out.count = 1
        out.points[0] = r.point_b
        out.distances[0] = r.distance
        return True
    if swapped_order(a, pa, b, pb):
        if not shape_contacts(b, pb, a, pa, max_distance, cutoff, out, nearest):
            return False
        flip_manifold(out)
        if nearest != NULL:
            swap_result(nearest)
        return True
    load_pair(&p, &q, a, pa, b, pb)
    core_distance(&p, &q, max_distance + a.radius + b.radius, &core)
    if core.beyond or core.distance - a.radius - b.radius > max_distance:
        return False
    if nearest != NULL:
        finish(&p, &q, &core, pa, nearest)
    build_manifold(&p, &q, &core, cutoff, out)
    m = q_matrix(pa.rotation)
    out.normal = m3_mul(m, out.normal)
    for i in range(out.count):
        out.points[i] = v3_add(m3_mul(m, out.points[i]), pa.position)
    return True
