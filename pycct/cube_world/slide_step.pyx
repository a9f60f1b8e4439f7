# cython: language_level=3
"""The sweep/slide controller's arithmetic. See the header."""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pycct.geometry.closest cimport closest_pair, segment_box
from pycct.cube_world.cubes cimport candidate, cube_grid, free_box, grid_solid, grid_visit
from pycct.geometry.overlap cimport push_from_polytope, push_out
from pycct.geometry.sweep cimport NO_HIT, capsule_box, sphere_segment
from pycct.geometry.types cimport STATUS_NOT_FINITE, STATUS_OK, sweep_hit, triangle
from pycct.geometry.vec cimport (
    aabb,
    box_grow,
    box_of,
    box_overlap,
    box_union,
    f_clamp,
    f_max,
    f_min,
    q_rotate,
    q_unrotate,
    v3,
    v3_add,
    v3_cross,
    v3_dot,
    v3_finite,
    v3_is_zero,
    v3_len,
    v3_len2,
    v3_madd,
    v3_max_abs,
    v3_neg,
    v3_scale,
    v3_sub,
    v3_unit,
    vec3,
)

# A motion that approaches more slowly than this, per metre, is parallel.
cdef double ALONGSIDE = 1e-9
# Overlaps up to this depth are rounding.
cdef double DEPTH_ROUNDING = 1e-9
# A hit leaves this much more than the skin, so that the next motion along the surface does not
# graze the edges of the next cube by rounding.
cdef double CLEARANCE = 1e-7
# Below this distance, the segment counts as inside and defines no direction.
cdef double NO_DIRECTION = 1e-7
# A smaller component of a motion counts as zero, because its inverse would not be finite.
cdef double NO_MOTION = 1e-150
# Long sweeps are divided into pieces of this length, nearest first.
cdef double PIECE = 8.0
# Normals with a larger dot product are one plane (flush cubes).
cdef double SAME_PLANE = 1.0 - 1e-9
# Smallest gap above the skin for a snap.
cdef double SNAP_LEAST = 1e-5
# A frame counts as stuck below this share of the desired motion.
cdef double STUCK_SHARE = 1e-3
# Largest number of consecutive solid cells that an escape counts.
cdef int ESCAPE_CELLS = 16


# ---------------------------------------------------------------- one box

cdef inline double _inverse(double d) noexcept nogil:
    """1 / d; 0 for a component that counts as zero."""
    return 1.0 / d if fabs(d) > NO_MOTION else 0.0


cdef inline double _slab(vec3 start, vec3 inverse, vec3 lo, vec3 hi, double limit, int* axis) noexcept nogil:
    cdef double enter = 0.0, leave = limit, a, b
    axis[0] = -1
    if inverse.x != 0.0:
        a = ((lo.x if inverse.x > 0.0 else hi.x) - start.x) * inverse.x
        b = ((hi.x if inverse.x > 0.0 else lo.x) - start.x) * inverse.x
        if a >= enter:
            enter = a
            axis[0] = 0
        leave = f_min(leave, b)
    elif start.x < lo.x or start.x > hi.x:
        return NO_HIT
    if inverse.y != 0.0:
        a = ((lo.y if inverse.y > 0.0 else hi.y) - start.y) * inverse.y
        b = ((hi.y if inverse.y > 0.0 else lo.y) - start.y) * inverse.y
        if a > enter or (a == enter and axis[0] < 0):
            enter = a
            axis[0] = 1
        leave = f_min(leave, b)
    elif start.y < lo.y or start.y > hi.y:
        return NO_HIT
    if inverse.z != 0.0:
        a = ((lo.z if inverse.z > 0.0 else hi.z) - start.z) * inverse.z
        b = ((hi.z if inverse.z > 0.0 else lo.z) - start.z) * inverse.z
        if a > enter or (a == enter and axis[0] < 0):
            enter = a
            axis[0] = 2
        leave = f_min(leave, b)
    elif start.z < lo.z or start.z > hi.z:
        return NO_HIT
    # leave 0: it touches the box and moves away.
    return enter + 0.0 if enter <= leave and leave > 0.0 else NO_HIT


cdef double slab_time(vec3 start, vec3 delta, vec3 lo, vec3 hi, double limit, int* axis) noexcept nogil:
    # SLIDE 3.5 divides by sign(0) = 0. Without motion along an axis, the point is inside that slab
    # always or never.
    return _slab(start, v3(_inverse(delta.x), _inverse(delta.y), _inverse(delta.z)), lo, hi, limit, axis)


cdef inline vec3 _clamped(vec3 p, vec3 lo, vec3 hi) noexcept nogil:
    return v3(f_clamp(p.x, lo.x, hi.x), f_clamp(p.y, lo.y, hi.y), f_clamp(p.z, lo.z, hi.z))


cdef inline double _escape(vec3 p, vec3 lo, vec3 hi, const int* cells, vec3* normal) noexcept nogil:
    """Shortest exit from [lo, hi] along an axis; cells: solid cells behind each face, or NULL."""
    cdef double best, d
    best = hi.y - p.y + (cells[0] if cells != NULL else 0)
    normal[0] = v3(0.0, 1.0, 0.0)
    d = p.x - lo.x + (cells[1] if cells != NULL else 0)
    if d < best:
        best = d
        normal[0] = v3(-1.0, 0.0, 0.0)
    d = hi.x - p.x + (cells[2] if cells != NULL else 0)
    if d < best:
        best = d
        normal[0] = v3(1.0, 0.0, 0.0)
    d = p.z - lo.z + (cells[3] if cells != NULL else 0)
    if d < best:
        best = d
        normal[0] = v3(0.0, 0.0, -1.0)
    d = hi.z - p.z + (cells[4] if cells != NULL else 0)
    if d < best:
        best = d
        normal[0] = v3(0.0, 0.0, 1.0)
    d = p.y - lo.y + (cells[5] if cells != NULL else 0)
    if d < best:
        best = d
        normal[0] = v3(0.0, -1.0, 0.0)
    return best


cdef inline bint _passes(double m, double n, double d, double e, double radius2) noexcept nogil:
    """Whether a point moving from (m, n) along (d, e) surely misses the disc about the origin.

    The disc is the edge's endless cylinder, seen along the edge. This test rejects most edges.
    """
    cdef double across = m * e - n * d
    return (across * across > radius2 * (d * d + e * e) * (1.0 + 1e-9)
            or (m * d + n * e >= 0.0 and m * m + n * n > radius2))


cdef double _edges_time(vec3 p, double radius, vec3 dir, vec3 lo, vec3 hi, double limit) noexcept nogil:
    """Sphere against the edges of a box that belong to a face opposed to the motion."""
    cdef double best = NO_HIT, t, x, y, z
    cdef double radius2 = radius * radius
    cdef int i
    for i in range(4):
        y = hi.y if i & 1 else lo.y
        z = hi.z if i & 2 else lo.z
        if (((dir.y <= 0.0 if i & 1 else dir.y >= 0.0) or (dir.z <= 0.0 if i & 2 else dir.z >= 0.0))
                and not _passes(p.y - y, p.z - z, dir.y, dir.z, radius2)):
            t = sphere_segment(p, dir, radius, v3(lo.x, y, z), v3(hi.x, y, z), f_min(best, limit))
            best = f_min(best, t)
        x = hi.x if i & 1 else lo.x
        if (((dir.x <= 0.0 if i & 1 else dir.x >= 0.0) or (dir.z <= 0.0 if i & 2 else dir.z >= 0.0))
                and not _passes(p.x - x, p.z - z, dir.x, dir.z, radius2)):
            t = sphere_segment(p, dir, radius, v3(x, lo.y, z), v3(x, hi.y, z), f_min(best, limit))
            best = f_min(best, t)
        y = hi.y if i & 2 else lo.y
        if (((dir.x <= 0.0 if i & 1 else dir.x >= 0.0) or (dir.y <= 0.0 if i & 2 else dir.y >= 0.0))
                and not _passes(p.x - x, p.y - y, dir.x, dir.y, radius2)):
            t = sphere_segment(p, dir, radius, v3(x, y, lo.z), v3(x, y, hi.z), f_min(best, limit))
            best = f_min(best, t)
    return best


cdef double upright_box_time(vec3 p, double reach, double radius, vec3 dir, vec3 lo, vec3 hi, double limit,
                             vec3* normal) noexcept nogil:
    cdef double d2
    return _upright_time(p, reach, radius, dir, v3(_inverse(dir.x), _inverse(dir.y), _inverse(dir.z)), lo, hi, limit,
                         &d2, normal)


cdef inline double _upright_time(vec3 p, double reach, double radius, vec3 dir, vec3 inverse, vec3 lo, vec3 hi,
                                 double limit, double* start2, vec3* normal) noexcept nogil:
    # The positions of the lower centre at which the capsule touches the box form the box, extended
    # downwards by the axis, with edges and corners rounded by the radius. start2: squared distance
    # from the axis to the box at the start.
    cdef vec3 c, off
    cdef double d2, t
    cdef int axis
    lo.y -= reach
    off = v3_sub(p, _clamped(p, lo, hi))
    d2 = v3_len2(off)
    start2[0] = d2
    if d2 < radius * radius:
        if d2 > NO_DIRECTION * NO_DIRECTION:
            normal[0] = v3_scale(off, 1.0 / sqrt(d2))
        else:
            _escape(p, lo, hi, NULL, normal)
        return 0.0 if v3_dot(normal[0], dir) < -ALONGSIDE else NO_HIT
    # The distance to a convex shape that does not shrink at first never shrinks.
    if v3_dot(off, dir) >= 0.0:
        return NO_HIT
    t = _slab(p, inverse, v3(lo.x - radius, lo.y - radius, lo.z - radius),
              v3(hi.x + radius, hi.y + radius, hi.z + radius), limit, &axis)
    if t >= NO_HIT:
        return NO_HIT
    c = v3_madd(p, dir, t)
    if axis == 0 and lo.y <= c.y <= hi.y and lo.z <= c.z <= hi.z:
        normal[0] = v3(-1.0 if dir.x > 0.0 else 1.0, 0.0, 0.0)
        return t
    if axis == 1 and lo.x <= c.x <= hi.x and lo.z <= c.z <= hi.z:
        normal[0] = v3(0.0, -1.0 if dir.y > 0.0 else 1.0, 0.0)
        return t
    if axis == 2 and lo.x <= c.x <= hi.x and lo.y <= c.y <= hi.y:
        normal[0] = v3(0.0, 0.0, -1.0 if dir.z > 0.0 else 1.0)
        return t
    # The path does not cross the inside of a face, so it can only hit an edge or a corner.
    t = _edges_time(p, radius, dir, lo, hi, limit)
    if t < NO_HIT:
        c = v3_madd(p, dir, t)
        off = v3_sub(c, _clamped(c, lo, hi))
        normal[0] = v3_scale(off, 1.0 / v3_len(off))
        if v3_dot(normal[0], dir) >= -ALONGSIDE:
            return NO_HIT
    return t


cdef inline vec3 _level_point(vec3 p, double reach, vec3 lo, vec3 hi) noexcept nogil:
    """Point of the axis nearest to the box: the middle of the part at the height of the box."""
    return v3(p.x, 0.5 * (f_clamp(lo.y, p.y, p.y + reach) + f_clamp(hi.y, p.y, p.y + reach)), p.z)


cdef vec3 upright_box_point(vec3 p, double reach, vec3 lo, vec3 hi) noexcept nogil:
    return _clamped(_level_point(p, reach, lo, hi), lo, hi)


cdef box_overlap_result upright_box_overlap(vec3 p, double reach, double radius, vec3 lo, vec3 hi) noexcept nogil:
    return _upright_overlap(p, reach, radius, lo, hi, NULL)


cdef box_overlap_result _upright_overlap(vec3 p, double reach, double radius, vec3 lo, vec3 hi,
                                         const int* cells) noexcept nogil:
    cdef box_overlap_result r
    cdef vec3 low = v3(lo.x, lo.y - reach, lo.z)
    cdef vec3 off = v3_sub(p, _clamped(p, low, hi))
    cdef double d2 = v3_len2(off), d
    r.on_segment = _level_point(p, reach, lo, hi)
    r.on_box = _clamped(r.on_segment, lo, hi)
    r.hit = d2 < radius * radius
    r.normal = v3(0.0, 0.0, 0.0)
    r.depth = 0.0
    if not r.hit:
        return r
    if d2 > NO_DIRECTION * NO_DIRECTION:
        d = sqrt(d2)
        r.normal = v3_scale(off, 1.0 / d)
        r.depth = radius - d
    else:
        r.depth = radius + _escape(p, low, hi, cells, &r.normal)
    return r


cdef void _box_triangles(const free_box* b, triangle* out) noexcept nogil:
    """The twelve triangles of a box about the origin, in its own frame."""
    cdef vec3 h = b.half
    cdef int axis, n = 0
    cdef double s
    cdef vec3 u, v, c
    for axis in range(3):
        for s in (-1.0, 1.0):
            if axis == 0:
                c = v3(s * h.x, 0.0, 0.0)
                u = v3(0.0, h.y, 0.0)
                v = v3(0.0, 0.0, s * h.z)
                out[n].n = v3(s, 0.0, 0.0)
            elif axis == 1:
                c = v3(0.0, s * h.y, 0.0)
                u = v3(0.0, 0.0, h.z)
                v = v3(s * h.x, 0.0, 0.0)
                out[n].n = v3(0.0, s, 0.0)
            else:
                c = v3(0.0, 0.0, s * h.z)
                u = v3(h.x, 0.0, 0.0)
                v = v3(0.0, s * h.y, 0.0)
                out[n].n = v3(0.0, 0.0, s)
            out[n].a = v3_sub(v3_sub(c, u), v)
            out[n].b = v3_sub(v3_add(c, u), v)
            out[n].c = v3_add(v3_add(c, u), v)
            out[n].d = v3_dot(out[n].n, c)
            out[n + 1] = out[n]
            out[n + 1].b = out[n].c
            out[n + 1].c = v3_add(v3_sub(c, u), v)
            n += 2


cdef box_overlap_result _turned_overlap(vec3 p, double reach, double radius, const free_box* b) noexcept nogil:
    cdef box_overlap_result r
    cdef vec3 a0 = q_unrotate(b.rotation, v3_sub(p, b.centre))
    cdef vec3 a1 = q_unrotate(b.rotation, v3_sub(v3(p.x, p.y + reach, p.z), b.centre))
    cdef closest_pair near = segment_box(a0, a1, b.half)
    cdef triangle[12] tris
    cdef push_out push
    cdef double d
    r.on_segment = v3_add(q_rotate(b.rotation, near.on_a), b.centre)
    r.on_box = v3_add(q_rotate(b.rotation, near.on_b), b.centre)
    r.hit = near.dist2 < radius * radius
    r.normal = v3(0.0, 0.0, 0.0)
    r.depth = 0.0
    if not r.hit:
        return r
    if near.dist2 > NO_DIRECTION * NO_DIRECTION:
        d = sqrt(near.dist2)
        r.normal = v3_scale(q_rotate(b.rotation, v3_sub(near.on_a, near.on_b)), 1.0 / d)
        r.depth = radius - d
    else:
        _box_triangles(b, tris)
        push = push_from_polytope(a0, a1, radius, tris, 12, False)
        r.normal = q_rotate(b.rotation, push.dir)
        r.depth = push.depth
    return r


cdef box_overlap_result candidate_overlap(const cube_grid* g, vec3 p, double reach, double radius,
                                          const candidate* c) noexcept nogil:
    cdef int[6] cells
    cdef box_overlap_result r
    if c.box != NULL:
        if c.box.turned:
            return _turned_overlap(p, reach, radius, c.box)
        return _upright_overlap(p, reach, radius, c.lo, c.hi, NULL)
    r = _upright_overlap(p, reach, radius, c.lo, c.hi, NULL)
    if not r.hit or r.depth < radius:
        return r
    # Deep inside: a face with a solid cell behind it is no exit.
    _solid_runs(g, c, cells)
    return _upright_overlap(p, reach, radius, c.lo, c.hi, cells)


cdef void _solid_runs(const cube_grid* g, const candidate* c, int* cells) noexcept nogil:
    """Count the solid cells that follow a cube up, to -x, +x, -z, +z and down."""
    cdef int64_t x = <int64_t>c.lo.x, y = <int64_t>c.lo.y, z = <int64_t>c.lo.z
    cells[0] = _solid_run(g, x, y, z, 0, 1, 0)
    cells[1] = _solid_run(g, x, y, z, -1, 0, 0)
    cells[2] = _solid_run(g, x, y, z, 1, 0, 0)
    cells[3] = _solid_run(g, x, y, z, 0, 0, -1)
    cells[4] = _solid_run(g, x, y, z, 0, 0, 1)
    cells[5] = _solid_run(g, x, y, z, 0, -1, 0)


cdef int _solid_run(const cube_grid* g, int64_t x, int64_t y, int64_t z, int dx, int dy, int dz) noexcept nogil:
    cdef int n = 0
    while n < ESCAPE_CELLS and grid_solid(g, x + (n + 1) * dx, y + (n + 1) * dy, z + (n + 1) * dz):
        n += 1
    return n


# ---------------------------------------------------------------- sweep through the grid

# Hits that may still win: within the tie of the smallest distance, and none of them both farther
# and with a higher id than another.
cdef enum:
    FRONT_CAP = 16

cdef struct _contender:
    double distance
    vec3 normal
    vec3 point
    int64_t id
    bint face

cdef struct _cast:
    const cube_grid* g
    bint merge              # ignore edges between flush cubes
    vec3 p
    double reach
    double radius
    vec3 dir
    vec3 inverse            # inverse of each component of dir
    double limit            # largest distance of interest
    double length
    double tie              # m
    double true_radius
    bint overlapped         # a box is closer than true_radius at the start
    bint again              # second round: the front could not store all contenders
    bint overflow
    bint has_before
    aabb before             # bounds of the previous piece
    double best
    int n
    _contender[FRONT_CAP] front
    int64_t count
    int64_t lowest
    int64_t highest


cdef void _cast_add(_cast* s, double distance, vec3 normal, vec3 point, int64_t id, bint face) noexcept nogil:
    cdef int i, n = 0
    if distance < s.best:
        s.best = distance
        s.limit = f_min(s.length, distance + s.tie)
    for i in range(s.n):
        # The new hit loses against one that is as near and has a lower id.
        if s.front[i].distance <= distance and s.front[i].id < id:
            return
    for i in range(s.n):
        if s.front[i].distance > s.best + s.tie or (distance <= s.front[i].distance and id < s.front[i].id):
            continue
        s.front[n] = s.front[i]
        n += 1
    if n == FRONT_CAP:
        s.overflow = True
        # Only the distance is certain now; the second round finds the lowest id.
        n -= 1
    s.front[n].distance = distance
    s.front[n].normal = normal
    s.front[n].point = point
    s.front[n].id = id
    s.front[n].face = face
    s.n = n + 1


cdef inline bint _inner_edge(const cube_grid* g, const candidate* c, vec3 n) noexcept nogil:
    """Whether the touched edge or corner of a cube is in a face of the union of cubes.

    If the normal leans towards a solid cell, that neighbour is nearer along the whole path and is
    tested itself, so the edge between the two does not count. Otherwise a capsule closer than the
    skin would snag on it.
    """
    cdef int64_t x = <int64_t>c.lo.x, y = <int64_t>c.lo.y, z = <int64_t>c.lo.z
    return ((n.x != 0.0 and grid_solid(g, x + (1 if n.x > 0.0 else -1), y, z))
            or (n.z != 0.0 and grid_solid(g, x, y, z + (1 if n.z > 0.0 else -1)))
            or (n.y != 0.0 and grid_solid(g, x, y + (1 if n.y > 0.0 else -1), z)))


cdef void _cast_visit(void* context, const candidate* c) noexcept nogil:
    cdef _cast* s = <_cast*>context
    cdef double t, start2
    cdef vec3 normal, point, a0, a1
    cdef sweep_hit hit
    cdef closest_pair near
    cdef box_overlap_result over
    cdef bint face
    if s.has_before and box_overlap(box_of(c.lo, c.hi), s.before):
        return
    s.count += 1
    if c.id < s.lowest:
        s.lowest = c.id
    if c.id > s.highest:
        s.highest = c.id
    if c.box == NULL or not c.box.turned:
        t = _upright_time(s.p, s.reach, s.radius, s.dir, s.inverse, c.lo, c.hi, s.limit, &start2, &normal)
        if start2 < s.true_radius * s.true_radius:
            s.overlapped = True
        if t >= NO_HIT or t > s.limit:
            return
        face = v3_max_abs(normal) > SAME_PLANE
        if s.merge and not face and c.box == NULL and _inner_edge(s.g, c, normal):
            return
        point = upright_box_point(v3_madd(s.p, s.dir, t), s.reach, c.lo, c.hi)
    else:
        a0 = s.p
        a1 = v3(s.p.x, s.p.y + s.reach, s.p.z)
        near = segment_box(q_unrotate(c.box.rotation, v3_sub(a0, c.box.centre)),
                           q_unrotate(c.box.rotation, v3_sub(a1, c.box.centre)), c.box.half)
        if near.dist2 < s.true_radius * s.true_radius:
            s.overlapped = True
        if near.dist2 < s.radius * s.radius:
            over = _turned_overlap(s.p, s.reach, s.radius, c.box)
            if v3_dot(over.normal, s.dir) >= -ALONGSIDE:
                return
            t = 0.0
            normal = over.normal
            point = over.on_box
        else:
            if not capsule_box(a0, a1, s.radius, s.dir, c.box.half, c.box.centre, c.box.rotation, s.limit, &hit):
                return
            t = hit.distance
            normal = hit.normal
            point = hit.point
            if v3_dot(normal, s.dir) >= -ALONGSIDE:
                return
        face = v3_max_abs(q_unrotate(c.box.rotation, normal)) > SAME_PLANE
    if not s.again:
        _cast_add(s, t, normal, point, c.id, face)
    elif t <= s.best + s.tie and (s.n == 0 or c.id < s.front[0].id):
        s.n = 1
        s.front[0].distance = t
        s.front[0].normal = normal
        s.front[0].point = point
        s.front[0].id = c.id
        s.front[0].face = face


cdef inline aabb _bounds_at(const _cast* s, double t) noexcept nogil:
    cdef vec3 p = v3_madd(s.p, s.dir, t)
    return box_of(v3(p.x - s.radius, p.y - s.radius, p.z - s.radius),
                  v3(p.x + s.radius, p.y + s.reach + s.radius, p.z + s.radius))


cdef void _cast_run(const cube_grid* g, _cast* s) noexcept nogil:
    # The margin keeps rounding of the bounds out of the result.
    cdef double slack = 1e-6 + s.tie
    cdef double at, end = s.length, next
    cdef int axis
    cdef vec3 lo, hi
    cdef aabb span
    if s.length <= PIECE:
        grid_visit(g, box_grow(box_union(_bounds_at(s, 0.0), _bounds_at(s, s.length)), slack), _cast_visit, s)
        return
    # Bounds within which the capsule can touch anything.
    lo = v3(g.bounds.lo.x - s.radius - slack, g.bounds.lo.y - s.reach - s.radius - slack,
            g.bounds.lo.z - s.radius - slack)
    hi = v3(g.bounds.hi.x + s.radius + slack, g.bounds.hi.y + s.radius + slack, g.bounds.hi.z + s.radius + slack)
    at = slab_time(s.p, s.dir, lo, hi, s.length, &axis)
    if at >= NO_HIT:
        return
    end = slab_time(v3_madd(s.p, s.dir, s.length), v3_neg(s.dir), lo, hi, s.length, &axis)
    end = s.length - (end if end < NO_HIT else 0.0)
    while True:
        next = f_min(at + PIECE, s.length)
        span = box_grow(box_union(_bounds_at(s, at), _bounds_at(s, next)), slack)
        grid_visit(g, span, _cast_visit, s)
        # All boxes up to this distance have been tested, with their ties.
        if s.best <= next or next > end or next >= s.length:
            return
        s.has_before = True
        s.before = span
        at = next


cdef bint grid_sweep(const cube_grid* g, vec3 p, double reach, double radius, vec3 delta, double tie, bint merge,
                     slide_hit* hit, int64_t* counts, double true_radius, bint* overlapped) noexcept nogil:
    cdef _cast s
    cdef double length = v3_len(delta)
    cdef int i, winner = 0
    hit.t = 1.0
    hit.distance = length
    hit.normal = v3(0.0, 0.0, 0.0)
    hit.point = v3_add(p, delta)
    hit.id = -1
    hit.face = False
    if length <= 0.0:
        return False
    s.g = g
    s.merge = merge
    s.p = p
    s.reach = reach
    s.radius = radius
    s.dir = v3(delta.x / length, delta.y / length, delta.z / length)
    s.inverse = v3(_inverse(s.dir.x), _inverse(s.dir.y), _inverse(s.dir.z))
    s.length = length
    s.limit = length
    s.tie = tie * length
    s.true_radius = true_radius
    s.overlapped = False
    s.again = False
    s.overflow = False
    s.has_before = False
    s.best = NO_HIT
    s.n = 0
    s.count = 0
    s.lowest = 0x7FFFFFFFFFFFFFFF
    s.highest = -1
    _cast_run(g, &s)
    if counts != NULL:
        counts[0] = s.count
        counts[1] = s.lowest if s.count else -1
        counts[2] = s.highest
    if overlapped != NULL:
        overlapped[0] = s.overlapped
    if s.n == 0:
        return False
    if s.overflow:
        s.again = True
        s.has_before = False
        s.n = 0
        _cast_run(g, &s)
    for i in range(1, s.n):
        if s.front[i].id < s.front[winner].id:
            winner = i
    # The lowest id among the ties decides the plane, and the nearest one the distance.
    hit.distance = s.best
    hit.t = s.best / length
    hit.normal = s.front[winner].normal
    hit.id = s.front[winner].id
    hit.face = s.front[winner].face
    hit.point = s.front[winner].point
    return True


# ---------------------------------------------------------------- clipping

cdef vec3 clip_velocity(vec3 velocity, vec3 normal, double overbounce, double stop_epsilon) noexcept nogil:
    cdef double backoff = v3_dot(velocity, normal) * overbounce
    cdef vec3 r = v3_madd(velocity, normal, -backoff)
    cdef vec3 z = r
    if fabs(z.x) < stop_epsilon:
        z.x = 0.0
    if fabs(z.y) < stop_epsilon:
        z.y = 0.0
    if fabs(z.z) < stop_epsilon:
        z.z = 0.0
    # Dropping a small component must not turn the motion back into the plane: on a nearly level
    # ramp that component is the whole climb.
    return r if v3_dot(z, normal) < f_min(0.0, v3_dot(r, normal)) else z


cdef vec3 clip_velocity_planes(vec3 velocity, const vec3* planes, int n, double overbounce,
                               double stop_epsilon) noexcept nogil:
    # SLIDE 4.4 tries creases before all single planes, and from a vector that it has overwritten.
    # At an obtuse corner that stops a character that could continue along the second wall.
    cdef int i, j, k
    cdef vec3 r, crease
    cdef bint fits = True
    cdef double slack = ALONGSIDE * v3_len(velocity)
    for i in range(n):
        if v3_dot(velocity, planes[i]) < 0.0:
            fits = False
    if fits:
        return velocity
    for i in range(n):
        if v3_dot(velocity, planes[i]) >= 0.0:
            continue
        r = clip_velocity(velocity, planes[i], overbounce, stop_epsilon)
        fits = True
        for j in range(n):
            if j != i and v3_dot(r, planes[j]) < -slack:
                fits = False
                break
        if fits:
            return r
    for i in range(n):
        for j in range(i + 1, n):
            # Parallel planes (flush cubes, opposite walls) have no crease.
            crease = v3_unit(v3_cross(planes[i], planes[j]))
            if v3_is_zero(crease):
                continue
            r = v3_scale(crease, v3_dot(crease, velocity))
            fits = True
            for k in range(n):
                if k != i and k != j and v3_dot(r, planes[k]) < -slack:
                    fits = False
                    break
            if fits:
                return r
    return v3(0.0, 0.0, 0.0)


cdef inline vec3 _without_wall(const slide_config* c, vec3 velocity, vec3 normal) noexcept nogil:
    """Remove the part of a velocity that drives it into a wall.

    A slanted wall then neither lifts nor presses down the character.
    """
    cdef vec3 h
    cdef double into
    if fabs(normal.y) >= c.walkable_y or (normal.y < 0.0 and velocity.y > 0.0) or normal.y == 0.0:
        return velocity
    h = v3_unit(v3(normal.x, 0.0, normal.z))
    into = v3_dot(velocity, h)
    return v3_madd(velocity, h, -into * c.overclip) if into < 0.0 else velocity


# ---------------------------------------------------------------- slide

cdef inline vec3 _centre0(const slide_config* c, vec3 feet) noexcept nogil:
    return v3(feet.x, feet.y + c.radius, feet.z)


cdef void slide_move(const cube_grid* g, slide_runner* r, vec3* velocity, double dt) noexcept nogil:
    cdef const slide_config* c = &r.config
    cdef slide_trace* tr = &r.trace
    cdef vec3[PLANES_CAP] planes
    cdef vec3 original = velocity[0], delta
    cdef double left = 1.0, full = v3_len(velocity[0]) * dt, length, advance, approach
    cdef double epsilon = c.stop_epsilon * f_min(1.0, v3_len(velocity[0]))
    cdef int bump, n_planes = 0, i
    cdef int64_t[3] counts
    cdef bint overlapped, known
    cdef bump_record* b
    if not c.ccd:
        if full > 0.0:
            r.state.feet = v3_madd(r.state.feet, velocity[0], dt)
            _push_out(g, r)
        return
    for bump in range(c.max_bumps):
        delta = v3_scale(velocity[0], dt * left)
        length = v3_len(delta)
        # The limit is a share of the step, not a length, so slow characters move too.
        if length <= c.stop_epsilon * full or length <= 0.0:
            return
        b = &tr.bumps[bump]
        b.start = r.state.feet
        b.delta = delta
        b.remain = length
        tr.n_bumps = bump + 1
        grid_sweep(g, _centre0(c, r.state.feet), 2.0 * c.half_height, c.radius + c.skin, delta, c.tie_epsilon,
                   c.merge_faces, &b.hit, counts, c.radius - DEPTH_ROUNDING, &overlapped)
        if bump == 0:
            tr.candidates = counts[0]
            tr.first_id = counts[1]
            tr.last_id = counts[2]
            if not overlapped:
                r.state.has_safe = True
                r.state.last_safe = r.state.feet
        b.t = b.hit.t
        if b.hit.id < 0:
            r.state.feet = v3_add(r.state.feet, delta)
            return
        tr.n_hits += 1
        approach = -v3_dot(b.hit.normal, delta) / length
        advance = f_max(0.0, b.hit.distance - CLEARANCE / f_max(approach, 1e-3))
        r.state.feet = v3_madd(r.state.feet, delta, advance / length)
        left *= 1.0 - advance / length
        if c.flatten_walls:
            original = _without_wall(c, original, b.hit.normal)
        known = False
        for i in range(n_planes):
            if v3_dot(planes[i], b.hit.normal) > SAME_PLANE:
                known = True
        if not known and n_planes < c.max_planes:
            planes[n_planes] = b.hit.normal
            n_planes += 1
        velocity[0] = clip_velocity_planes(original, planes, n_planes, c.overclip, epsilon)
        # A motion that was turned back would only oscillate.
        if v3_is_zero(velocity[0]) or (c.hysteresis and v3_dot(velocity[0], original) <= 0.0):
            velocity[0] = v3(0.0, 0.0, 0.0)
            r.state.wedged = n_planes >= 2 and original.y < 0.0
            return
    tr.exhausted = left > c.stop_epsilon


# ---------------------------------------------------------------- ground

cdef ground_result _probe(const cube_grid* g, const slide_config* c, vec3 feet, double radius,
                          double distance) noexcept nogil:
    cdef ground_result r
    cdef slide_hit hit
    cdef double less = c.radius - radius
    cdef double reach = distance + less / c.walkable_y
    r.hit = grid_sweep(g, _centre0(c, feet), 0.0, radius, v3(0.0, -reach, 0.0), c.tie_epsilon, c.merge_faces,
                       &hit, NULL, 0.0, NULL)
    r.walkable = False
    r.face = False
    r.normal = v3(0.0, 0.0, 0.0)
    r.distance = distance
    r.id = -1
    if not r.hit:
        return r
    r.normal = hit.normal
    r.face = hit.face
    r.id = hit.id
    r.walkable = hit.normal.y >= c.walkable_y
    # The probe is thinner than the capsule, so it falls farther: on a plane by (difference of the
    # radii) / normal.y.
    r.distance = f_max(0.0, hit.distance - less / f_max(hit.normal.y, c.walkable_y))
    return r


cdef ground_result slide_probe(const cube_grid* g, const slide_config* c, vec3 feet, double distance) noexcept nogil:
    return _probe(g, c, feet, c.radius * c.probe_scale, distance)


cdef void _snap(const cube_grid* g, slide_runner* r, double gap) noexcept nogil:
    """Snap down by at most the gap; a sweep of the whole capsule stops at skin distance."""
    cdef slide_hit hit
    cdef double reach = gap + r.config.skin + CLEARANCE
    cdef double down = gap
    if grid_sweep(g, _centre0(&r.config, r.state.feet), 2.0 * r.config.half_height, r.config.radius + r.config.skin,
                  v3(0.0, -reach, 0.0), r.config.tie_epsilon, r.config.merge_faces, &hit, NULL, 0.0, NULL):
        down = f_min(gap, hit.distance - CLEARANCE)
    if down > 0.0:
        r.state.feet.y -= down
        r.trace.snapped = True
        r.trace.snap_distance = down


cdef inline bint _within(const ground_result* r, double gap) noexcept nogil:
    """Whether walkable ground is within a gap along its normal, like the skin on a slope."""
    return r.walkable and r.distance * r.normal.y <= gap + DEPTH_ROUNDING


cdef void _update_ground(const cube_grid* g, slide_runner* r, double dt) noexcept nogil:
    cdef slide_state* s = &r.state
    cdef const slide_config* c = &r.config
    cdef double near = c.skin + c.probe_margin
    cdef double down = c.step_height + c.skin / c.walkable_y
    cdef double reach = near / c.walkable_y
    cdef ground_result probe, below
    cdef bint ledge = False
    if s.rising:
        s.on_surface = False
        s.ground.hit = False
        s.ground.walkable = False
        s.ground.id = -1
    else:
        # A character that was on the ground in the last frame follows it down a step (SLIDE 5.4).
        probe = slide_probe(g, c, s.feet, f_max(reach, down) if s.grounded else reach)
        if s.grounded and probe.walkable and probe.distance > c.skin / probe.normal.y + SNAP_LEAST:
            _snap(g, r, probe.distance - c.skin / probe.normal.y)
            probe = slide_probe(g, c, s.feet, reach)
        elif s.grounded and probe.hit and not probe.walkable:
            # Rolling over the edge of a step: the edge is too steep to stand on, but a snap would
            # reach the ground.
            below = _probe(g, c, s.feet, 0.0, down)
            ledge = below.walkable
        s.ground = probe
        s.on_surface = _within(&probe, near)
    if s.on_surface:
        s.grounded = True
        s.since_grounded = 0.0
        s.ground_normal = s.ground.normal
        s.velocity.y = 0.0
        s.carry = v3(0.0, 0.0, 0.0)
    elif not ledge:
        s.since_grounded += dt
        if s.since_grounded > c.grace_time:
            s.grounded = False


# ---------------------------------------------------------------- depenetration

cdef struct _overlap_entry:
    double depth
    candidate what

cdef struct _overlaps:
    const cube_grid* g
    vec3 p
    double reach
    double radius
    double slack
    int32_t n
    int32_t total
    _overlap_entry[OVERLAPS_CAP] found


cdef void _overlaps_visit(void* context, const candidate* c) noexcept nogil:
    """Keep overlaps sorted: deepest first, then the lower id."""
    cdef _overlaps* o = <_overlaps*>context
    cdef box_overlap_result r = candidate_overlap(o.g, o.p, o.reach, o.radius, c)
    cdef int32_t i
    if not r.hit or r.depth <= o.slack:
        return
    o.total += 1
    i = o.n
    if i == OVERLAPS_CAP:
        i -= 1
        if r.depth < o.found[i].depth or (r.depth == o.found[i].depth and c.id > o.found[i].what.id):
            return
    else:
        o.n += 1
    while i > 0 and (o.found[i - 1].depth < r.depth
                     or (o.found[i - 1].depth == r.depth and o.found[i - 1].what.id > c.id)):
        o.found[i] = o.found[i - 1]
        i -= 1
    o.found[i].depth = r.depth
    o.found[i].what = c[0]


cdef void _find_overlaps(const cube_grid* g, const slide_config* c, vec3 feet, double radius, double slack,
                         _overlaps* o) noexcept nogil:
    o.g = g
    o.p = _centre0(c, feet)
    o.reach = 2.0 * c.half_height
    o.radius = radius
    o.slack = slack
    o.n = 0
    o.total = 0
    grid_visit(g, box_of(v3(feet.x - radius, o.p.y - radius, feet.z - radius),
                         v3(feet.x + radius, o.p.y + o.reach + radius, feet.z + radius)), _overlaps_visit, o)


cdef bint slide_overlaps(const cube_grid* g, const slide_config* c, vec3 feet, double radius,
                         double slack) noexcept nogil:
    cdef _overlaps o
    o.g = g
    o.reach = 2.0 * c.half_height
    o.radius = radius
    o.slack = slack
    return not _free_at(&o, _centre0(c, feet))


cdef bint _free_at(const _overlaps* o, vec3 p) noexcept nogil:
    cdef _overlaps there
    there.g = o.g
    there.p = p
    there.reach = o.reach
    there.radius = o.radius
    there.slack = o.slack
    there.n = 0
    there.total = 0
    grid_visit(o.g, box_of(v3(p.x - o.radius, p.y - o.radius, p.z - o.radius),
                           v3(p.x + o.radius, p.y + o.reach + o.radius, p.z + o.radius)), _any_visit, &there)
    return there.n == 0


cdef void _any_visit(void* context, const candidate* c) noexcept nogil:
    """Record that an overlap exists."""
    cdef _overlaps* o = <_overlaps*>context
    cdef box_overlap_result r
    if o.n:
        return
    if c.box != NULL and c.box.turned:
        r = _turned_overlap(o.p, o.reach, o.radius, c.box)
    else:
        r = _upright_overlap(o.p, o.reach, o.radius, c.lo, c.hi, NULL)
    if r.hit and r.depth > o.slack:
        o.n = 1


cdef void _choose_exit(const _overlaps* o, vec3 p, const candidate* c, double margin,
                       box_overlap_result* r) noexcept nogil:
    """For an axis inside a box: find the cheapest exit that does not end in another box.

    r contains the cheapest exit of all and keeps it if every exit is blocked, so that no character
    is pushed through its floor.
    """
    cdef int[6] cells
    cdef double[6] costs
    cdef vec3[6] exits
    cdef vec3 a, b, half, centre = v3(0.0, 0.0, 0.0)
    cdef double low, high
    cdef int i, j, k
    cdef bint turned = c.box != NULL and c.box.turned
    if _free_at(o, v3_madd(p, r.normal, r.depth + margin)):
        return
    if turned:
        centre = c.box.centre
        half = c.box.half
        a = q_unrotate(c.box.rotation, v3_sub(p, centre))
        b = q_unrotate(c.box.rotation, v3_sub(v3(p.x, p.y + o.reach, p.z), centre))
    else:
        centre = v3_scale(v3_add(c.lo, c.hi), 0.5)
        half = v3_scale(v3_sub(c.hi, c.lo), 0.5)
        a = v3_sub(p, centre)
        b = v3(a.x, a.y + o.reach, a.z)
    for i in range(6):
        cells[i] = 0
    if c.box == NULL:
        _solid_runs(o.g, c, cells)
    for i in range(3):
        low = f_min(a.x, b.x) if i == 0 else (f_min(a.y, b.y) if i == 1 else f_min(a.z, b.z))
        high = f_max(a.x, b.x) if i == 0 else (f_max(a.y, b.y) if i == 1 else f_max(a.z, b.z))
        exits[2 * i] = v3(1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        exits[2 * i + 1] = v3_neg(exits[2 * i])
        costs[2 * i] = v3_dot(half, exits[2 * i]) - low + o.radius
        costs[2 * i + 1] = v3_dot(half, exits[2 * i]) + high + o.radius
        if turned:
            exits[2 * i] = q_rotate(c.box.rotation, exits[2 * i])
            exits[2 * i + 1] = v3_neg(exits[2 * i])
    costs[0] += cells[2]
    costs[1] += cells[1]
    costs[2] += cells[0]
    costs[3] += cells[5]
    costs[4] += cells[4]
    costs[5] += cells[3]
    for _ in range(6):
        # The cheapest remaining exit; of equal ones up, then the first.
        j = 2
        for k in range(6):
            if costs[k] < costs[j]:
                j = k
        if _free_at(o, v3_madd(p, exits[j], costs[j] + margin)):
            r.normal = exits[j]
            r.depth = costs[j]
            return
        costs[j] = 1e300


cdef vec3 _push_round(const _overlaps* o, double margin, double clamp) noexcept nogil:
    """One round of pushes, deepest first, each one from the position after the former.

    SLIDE 6.2 adds pushes that were all measured at the start, which overshoots where two cubes
    share a face.
    """
    cdef vec3 total = v3(0.0, 0.0, 0.0)
    cdef box_overlap_result r
    cdef double length
    cdef int32_t i
    for i in range(o.n):
        r = candidate_overlap(o.g, v3_add(o.p, total), o.reach, o.radius, &o.found[i].what)
        if r.hit and r.depth > o.slack:
            # Only the deepest overlap searches its exits; its push moves the capsule out of the
            # others too.
            if i == 0 and r.depth >= o.radius:
                _choose_exit(o, v3_add(o.p, total), &o.found[i].what, margin, &r)
            total = v3_madd(total, r.normal, f_min(r.depth + margin, clamp))
    length = v3_len(total)
    if length > clamp:
        total = v3_scale(total, clamp / length)
    return total


cdef bint _push_out(const cube_grid* g, slide_runner* r) noexcept nogil:
    """SLIDE 6.2. True if no overlap deeper than min_depen_dist remains."""
    cdef const slide_config* c = &r.config
    cdef slide_trace* tr = &r.trace
    cdef double min_depth = f_max(c.min_depen_dist, DEPTH_ROUNDING)
    cdef _overlaps o
    cdef vec3 push, feet
    cdef int32_t i
    cdef bint touched = False, free_now = False
    tr.depen_ran = True
    tr.n_depens = 0
    for i in range(c.max_depen_iters + 1):
        _find_overlaps(g, c, r.state.feet, c.radius, min_depth, &o)
        if o.n == 0:
            free_now = True
            break
        if i == c.max_depen_iters:
            break
        touched = True
        push = _push_round(&o, min_depth, c.max_depen_clamp)
        tr.depens[i].push = push
        tr.depens[i].overlaps = o.total
        tr.n_depens = i + 1
        tr.depen_pushed = True
        r.state.feet = v3_add(r.state.feet, push)
    if not free_now:
        return False
    # No deep overlap remains. Now restore the skin where space allows.
    if not touched:
        _find_overlaps(g, c, r.state.feet, c.radius, DEPTH_ROUNDING, &o)
        touched = o.n > 0
    feet = r.state.feet
    for _ in range(c.max_depen_iters):
        _find_overlaps(g, c, feet, c.radius + c.skin, DEPTH_ROUNDING, &o)
        if o.n == 0:
            break
        feet = v3_add(feet, _push_round(&o, CLEARANCE, c.max_depen_clamp))
    _find_overlaps(g, c, feet, c.radius, DEPTH_ROUNDING, &o)
    if o.n == 0 and v3_finite(feet):
        r.state.feet = feet
        tr.depen_pushed = tr.depen_pushed or touched
    return True


cdef void slide_depenetrate(const cube_grid* g, slide_runner* r) noexcept nogil:
    # SLIDE 6.3 with one threshold for pushes and failures: an overlap too shallow for a push does
    # not cause a return to safety.
    cdef slide_state* s = &r.state
    cdef vec3 start = s.feet
    cdef double min_depth = f_max(r.config.min_depen_dist, DEPTH_ROUNDING)
    r.trace.depen_failed = False
    r.trace.depen_reverted = False
    if _push_out(g, r):
        s.has_safe = True
        s.last_safe = s.feet
    else:
        r.trace.depen_failed = True
        if s.has_safe and not slide_overlaps(g, &r.config, s.last_safe, r.config.radius, min_depth):
            s.feet = s.last_safe
            r.trace.depen_reverted = True
        else:
            s.feet = start
    if r.trace.depen_pushed or r.trace.depen_reverted:
        s.depenetrations += 1


# ---------------------------------------------------------------- step

cdef vec3 _ground_velocity(const slide_state* s, vec3 wish) noexcept nogil:
    """The wish, turned along the ground at its own speed."""
    cdef double into = v3_dot(wish, s.ground_normal), speed, length
    cdef vec3 v
    # Downhill only along a face: over a rounded edge the snap leads down.
    if into == 0.0 or (into > 0.0 and not s.ground.face):
        return wish
    v = v3_madd(wish, s.ground_normal, -into)
    length = v3_len(v)
    speed = v3_len(wish)
    return v3_scale(v, speed / length) if length > 0.0 else wish


cdef vec3 _carried(const slide_runner* r, vec3 wish, vec3 v) noexcept nogil:
    """Level speed beyond the wish, which a slope too steep to stand on gains from the fall.

    The wish is renewed in every frame. Without the carried speed, the character would lose the
    gained speed in each frame and creep down a slope.
    """
    cdef const slide_config* c = &r.config
    cdef vec3 carry = r.state.carry, n
    cdef bint slope = False
    cdef double into
    cdef int i
    for i in range(r.trace.n_bumps):
        if r.trace.bumps[i].hit.id < 0:
            continue
        n = r.trace.bumps[i].hit.normal
        if r.trace.bumps[i].hit.face and 0.0 < n.y < c.walkable_y:
            slope = True
        if c.flatten_walls:
            wish = _without_wall(c, wish, n)
        n.y = 0.0
        n = v3_unit(n)
        into = v3_dot(carry, n)
        if into < 0.0:
            carry = v3_madd(carry, n, -into)
    if v3_is_zero(v):
        return v3(0.0, 0.0, 0.0)
    if slope and v.y < 0.0:
        carry = v3(v.x - wish.x, 0.0, v.z - wish.z)
        into = v3_len(carry)
        if into > c.max_fall_speed:
            carry = v3_scale(carry, c.max_fall_speed / into)
    return carry


cdef int slide_step(const cube_grid* g, slide_runner* r, vec3 wish, double dt, bint jump) noexcept nogil:
    cdef slide_state* s = &r.state
    cdef const slide_config* c = &r.config
    cdef slide_trace* tr = &r.trace
    cdef slide_state before
    cdef vec3 start = s.feet, across, v
    cdef double asked_length, went
    cdef bint on_surface
    # Everything but the ring of recent positions, which is written last.
    memcpy(&before, s, <char*>&s.recent - <char*>s)
    tr.n_bumps = 0
    tr.n_hits = 0
    tr.exhausted = False
    tr.candidates = 0
    tr.first_id = -1
    tr.last_id = -1
    tr.n_depens = 0
    tr.depen_ran = False
    tr.depen_pushed = False
    tr.depen_failed = False
    tr.depen_reverted = False
    tr.snapped = False
    tr.snap_distance = 0.0
    tr.was_grounded = s.grounded
    s.frame += 1
    across = v3(wish.x, 0.0, wish.z)
    if (jump or wish.y > 0.0) and (s.grounded or s.wedged) and not s.rising and c.jump_speed > 0.0:
        s.velocity.y = c.jump_speed
        s.rising = True
        s.grounded = False
        s.on_surface = False
        # The jump uses up the grace time, which allows no second jump.
        s.since_grounded = c.grace_time
    on_surface = s.on_surface and not s.rising
    s.wedged = False
    if on_surface:
        v = _ground_velocity(s, across)
    else:
        # Half of the gravity before the motion and half after: the frame moves by its mean
        # velocity, so jumps have the same height at every frame rate.
        v = v3(across.x + s.carry.x, f_max(s.velocity.y - 0.5 * c.gravity * dt, -c.max_fall_speed),
               across.z + s.carry.z)
    slide_move(g, r, &v, dt)
    if on_surface:
        # Running up a ramp does not launch the character into the air.
        s.velocity = v3(v.x, 0.0, v.z)
    else:
        s.carry = _carried(r, across, v)
        s.velocity = v3(v.x, f_max(v.y - 0.5 * c.gravity * dt, -c.max_fall_speed), v.z)
    if s.rising and v.y <= 0.0:
        s.rising = False
    # Stuck: a wish without motion.
    asked_length = v3_len(across) * dt
    went = v3_len(v3_sub(s.feet, start))
    if asked_length > 0.0 and went <= STUCK_SHARE * asked_length:
        s.stuck_frames += 1
        if c.stuck_limit > 0 and s.stuck_frames % (c.stuck_limit + 1) == 0:
            slide_depenetrate(g, r)
    else:
        s.stuck_frames = 0
    _update_ground(g, r, dt)
    if not v3_finite(s.feet) or not v3_finite(s.velocity):
        memcpy(s, &before, <char*>&s.recent - <char*>s)
        return STATUS_NOT_FINITE
    if s.grounded:
        s.frames_grounded += 1
    else:
        s.frames_airborne += 1
    s.recent[s.next_recent] = s.feet
    s.next_recent = (s.next_recent + 1) % c.jitter_frames
    if s.n_recent < c.jitter_frames:
        s.n_recent += 1
    tr.moved = v3_sub(s.feet, start)
    return STATUS_OK


cdef inline uint64_t _hash_word(uint64_t word, uint64_t h) noexcept nogil:
    h = (h ^ word) + <uint64_t>0x9E3779B97F4A7C15ULL
    h = (h ^ (h >> 30)) * <uint64_t>0xBF58476D1CE4E5B9ULL
    h = (h ^ (h >> 27)) * <uint64_t>0x94D049BB133111EBULL
    return h ^ (h >> 31)


cdef inline uint64_t _bits(double x) noexcept nogil:
    cdef uint64_t word
    x = x + 0.0      # one zero, not two
    memcpy(&word, &x, 8)
    return word


cdef uint32_t slide_hash(const slide_state* s) noexcept nogil:
    cdef uint64_t h = _hash_word(s.frame, 0)
    h = _hash_word(_bits(s.feet.x), h)
    h = _hash_word(_bits(s.feet.y), h)
    h = _hash_word(_bits(s.feet.z), h)
    return <uint32_t>(h >> 32)
