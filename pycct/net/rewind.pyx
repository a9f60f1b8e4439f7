# cython: language_level=3
"""Rays against the members of past ticks: the loops of `pycct.net.history`.

The test of a ray and a capsule is the one of the queries of a scene, so that a rewound ray has the
bits of a live one.
"""
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pycct.geometry.ray cimport ray_capsule
from pycct.geometry.sweep cimport NO_HIT
from pycct.geometry.vec cimport v3_add, v3_dot, v3_len2, v3_load, v3_madd, v3_scale, v3_store, v3_sub, vec3

__all__ = ["offer_members"]

# Columns of a row of parameters, as in `pycct.net.history`.
cdef enum:
    COLUMN_RADIUS = 0
    COLUMN_HEIGHT = 1
    COLUMN_UP = 2
    COLUMN_LAYER = 5
    COLUMN_GROUP = 6
    COLUMNS = 7

# A ray visits cells that it misses by this share of a cell, so that rounding misses no cell.
cdef double SLACK = 1e-6


# The ring of a `History` and its grids. A tick has `room` members at most.
cdef struct ring:
    int64_t size            # slots of the ring
    int64_t capacity
    const int64_t* ids      # (size, room)
    const double* places    # (size, room, 3), m
    const int32_t* row      # (size, room), the row of parameters of each member
    const double* rows      # (n, COLUMNS)
    double largest          # radius of a ball about its centre that contains any member, m
    # Grids of single ticks, then grids of the motion from each tick to the next one.
    const double* grid      # (2, size, 5): low x, low y, cells per metre, columns, lines
    const int32_t* starts   # (2, size, n_starts), first entry of each cell
    int64_t n_starts
    const int32_t* entries  # (2, size, n_entries, 2), members of the first and of the second tick
    int64_t n_entries
    const int64_t* outside  # (2, size, 2), range of entries of members outside of the grid


# One ray, and the best hit so far.
cdef struct shot:
    vec3 origin
    vec3 dir                # unit
    double reach            # m
    int64_t slot
    int64_t after           # slot of the second tick
    double share            # of the second tick, from 0 to 1
    int64_t exclude         # id of a member that is not seen
    double distance         # of the best hit, or `reach`
    bint hit
    bint inside
    double facing           # cosine of the best hit's normal to the ray, without its sign
    vec3 normal
    int64_t member          # id of the best member; -1: the best hit is something else


# Members that rays see.
cdef struct selection:
    uint32_t mask
    bint has_group
    int64_t group


cdef inline bint _is_better(const shot* s, double distance, bint inside, double facing, vec3 normal,
                            int64_t member) noexcept nogil:
    """Return whether a hit precedes the best one.

    Equal distances are decided by what contains the start, then by the normal that faces the ray
    most, then by the smallest normal and id. Anything else than a member wins a full tie.
    """
    if not s.hit or distance != s.distance:
        return not s.hit or distance < s.distance
    if inside != s.inside:
        return inside
    if facing != s.facing:
        return facing > s.facing
    if s.member < 0:
        return False
    if normal.x != s.normal.x:
        return normal.x < s.normal.x
    if normal.y != s.normal.y:
        return normal.y < s.normal.y
    if normal.z != s.normal.z:
        return normal.z < s.normal.z
    return member < s.member


cdef void _test(const ring* g, const selection* seen, shot* s, const int32_t* pairs, int64_t n) noexcept nogil:
    """Test a ray against the members of a cell."""
    cdef int64_t k, at
    cdef double along, ball, half, distance, facing
    cdef const double* row
    cdef vec3 p, w, up, normal
    cdef bint inside
    for k in range(n):
        at = s.slot * g.capacity + pairs[2 * k]
        p = v3_load(g.places + 3 * at)
        if s.share != 0.0:
            w = v3_load(g.places + 3 * (s.after * g.capacity + pairs[2 * k + 1]))
            p = v3_add(p, v3_scale(v3_sub(w, p), s.share))
        # A ball that contains any member rejects most of them.
        w = v3_sub(p, s.origin)
        along = v3_dot(w, s.dir)
        ball = g.largest + 1e-9 * fabs(along)
        if (v3_len2(w) - along * along * (1.0 - 1e-12) > ball * ball or along < -ball
                or along > s.distance + ball):
            continue
        row = g.rows + COLUMNS * g.row[at]
        if (g.ids[at] == s.exclude or not (<int64_t>row[COLUMN_LAYER] & seen.mask)
                or seen.has_group and <int64_t>row[COLUMN_GROUP] != seen.group):
            continue
        up, half = v3_load(row + COLUMN_UP), 0.5 * row[COLUMN_HEIGHT]
        distance = ray_capsule(s.origin, s.dir, v3_madd(p, up, -half), v3_madd(p, up, half), row[COLUMN_RADIUS],
                               &normal, &inside)
        if distance > s.reach or distance == NO_HIT:
            continue
        facing = fabs(v3_dot(normal, s.dir))
        if _is_better(s, distance, inside, facing, normal, g.ids[at]):
            s.hit, s.distance, s.inside, s.facing = True, distance, inside, facing
            s.normal, s.member = normal, g.ids[at]


cdef inline int64_t _cell(double x, int64_t count) noexcept nogil:
    """Return the cell of a coordinate in cells, the first or last one for those outside."""
    if not x > 0.0:
        return 0
    return <int64_t>x if x < <double>count else count - 1


cdef inline void _clip(double o, double d, double count, double* enter, double* leave) noexcept nogil:
    """Clip a ray to the cells along one axis; a ray that misses them gets an empty range."""
    cdef double a, b
    if d == 0.0:
        if not -SLACK <= o <= count + SLACK:
            leave[0] = -INFINITY
        return
    a, b = (-SLACK - o) / d, (count + SLACK - o) / d
    enter[0] = max(enter[0], min(a, b))
    leave[0] = min(leave[0], max(a, b))


cdef void _visit(const ring* g, const selection* seen, shot* s) noexcept nogil:
    """Test a ray against the members of all cells that it passes, in the order of its way."""
    cdef int64_t base = (g.size if s.after != s.slot else 0) + s.slot
    cdef const double* grid = g.grid + 5 * base
    cdef const int32_t* starts = g.starts + base * g.n_starts
    cdef const int32_t* entries = g.entries + 2 * base * g.n_entries
    cdef double enter = 0.0, leave = s.distance, rate = grid[2], ou, ov, du, dv, a, b
    cdef int64_t nu = <int64_t>grid[3], nv = <int64_t>grid[4], lines = nv, u, v, last, step = 1, cell, low, high
    cdef bint swapped
    _test(g, seen, s, entries + 2 * g.outside[2 * base], g.outside[2 * base + 1] - g.outside[2 * base])
    ou, ov = (s.origin.x - grid[0]) * rate, (s.origin.y - grid[1]) * rate
    du, dv = s.dir.x * rate, s.dir.y * rate
    # March along the axis on which the ray is faster.
    swapped = fabs(dv) > fabs(du)
    if swapped:
        ou, ov, du, dv, nu, nv = ov, ou, dv, du, nv, nu
    _clip(ou, du, <double>nu, &enter, &leave)
    _clip(ov, dv, <double>nv, &enter, &leave)
    if enter > leave + SLACK:
        return
    leave = max(leave, enter)
    step = -1 if du < 0.0 else 1
    u = _cell(ou + du * enter - step * SLACK, nu)
    last = _cell(ou + du * leave + step * SLACK, nu)
    while True:
        # The part of the ray in this column: from a to b.
        a, b = enter, leave
        if du != 0.0:
            a = max(enter, ((u if step > 0 else u + 1) - step * SLACK - ou) / du)
            b = min(leave, ((u + 1 if step > 0 else u) + step * SLACK - ou) / du)
            if a > s.distance:
                return
        low = _cell(min(ov + dv * a, ov + dv * b) - SLACK, nv)
        high = _cell(max(ov + dv * a, ov + dv * b) + SLACK, nv)
        for v in range(low, high + 1):
            cell = v * lines + u if swapped else u * lines + v
            if starts[cell + 1] > starts[cell]:
                _test(g, seen, s, entries + 2 * starts[cell], starts[cell + 1] - starts[cell])
        if u == last:
            return
        u += step


def offer_members(hits, moments, rays, members, grids, double largest, uint32_t mask, group):
    """Replace hits by members that rays meet earlier.

    Parameters
    ----------
    hits : HitArrays
        What else the rays meet; changed in place.
    moments : tuple
        Slots of the first and of the second tick, (n,) int64, the share of the second, (n,), and
        the rows of the rays in the order in which they are tested, (n,) int64: by slot, so that the
        members of a tick stay in the processor's cache.
    rays : tuple
        Origins and unit directions, (n, 3), reaches, (n,), metres, and ids that are not seen, (n,).
    parts : tuple
        Ids, positions, numbers of rows, and rows of parameters of the ring.
    grids : tuple
        Grids, first entries, entries, and ranges of entries outside.
    largest : float
        Radius of a ball that contains any member, metres.
    mask : int
        Layers that are seen.
    group : int or None
        The group that is seen, or all.
    """
    cdef ring g
    cdef selection seen
    cdef const int64_t[::1] slots = moments[0], afters = moments[1], order = moments[3], excluded = rays[3]
    cdef const double[::1] shares = moments[2], reaches = rays[2]
    cdef const double[:, ::1] origins = rays[0], directions = rays[1], rows = members[3]
    cdef const int64_t[:, ::1] ids = members[0]
    cdef const double[:, :, ::1] places = members[1], grid = grids[0]
    cdef const int32_t[:, ::1] row = members[2]
    cdef const int32_t[:, :, ::1] starts = grids[1]
    cdef const int32_t[:, :, :, ::1] entries = grids[2]
    cdef const int64_t[:, :, ::1] outside = grids[3]
    cdef uint8_t[::1] hit = hits.hit.view("u1"), overlapping = hits.overlapping.view("u1")
    cdef double[::1] distance = hits.distance, time = hits.time
    cdef double[:, ::1] position = hits.position, normal = hits.normal
    cdef int64_t[::1] actor = hits.actor, controller = hits.controller, data = hits.data
    cdef int32_t[::1] triangle = hits.triangle
    cdef uint32_t[::1] bits = hits.mask
    cdef int64_t j, k
    cdef shot s
    if ids.shape[1] == 0 or rows.shape[0] == 0 or entries.shape[2] == 0:
        return
    g.size, g.capacity, g.n_starts, g.n_entries = ids.shape[0], ids.shape[1], starts.shape[2], entries.shape[2]
    g.ids, g.places, g.row, g.rows = &ids[0, 0], &places[0, 0, 0], &row[0, 0], &rows[0, 0]
    g.grid, g.starts, g.entries = &grid[0, 0, 0], &starts[0, 0, 0], &entries[0, 0, 0, 0]
    g.outside, g.largest = &outside[0, 0, 0], largest
    seen.mask, seen.has_group, seen.group = mask, group is not None, group or 0
    with nogil:
        for j in range(order.shape[0]):
            k = order[j]
            s.origin, s.dir, s.reach = v3_load(&origins[k, 0]), v3_load(&directions[k, 0]), reaches[k]
            s.slot, s.after, s.share, s.exclude = slots[k], afters[k], shares[k], excluded[k]
            s.hit, s.inside, s.member = hit[k], overlapping[k], -1
            s.distance = distance[k] if s.hit else s.reach
            s.normal = v3_load(&normal[k, 0])
            s.facing = fabs(v3_dot(s.normal, s.dir))
            _visit(&g, &seen, &s)
            if s.member < 0:
                continue
            hit[k], overlapping[k], distance[k] = True, s.inside, s.distance
            time[k] = s.distance / s.reach if s.reach > 0.0 else 0.0
            v3_store(&position[k, 0], v3_madd(s.origin, s.dir, s.distance))
            v3_store(&normal[k, 0], s.normal)
            actor[k], controller[k], triangle[k] = -1, s.member, -1
            data[k], bits[k] = 0, 0xFFFFFFFFu
