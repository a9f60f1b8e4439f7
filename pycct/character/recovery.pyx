# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from pycct.character.gathering cimport begin_job, gather_moving
from pycct.character.move_types cimport (
    RULE_RECOVERY_SUM,
    STATUS_CACHE_MISS,
    controller_params,
    controller_state,
    move_job,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.geometry.exits cimport NO_PUSH, REACH
from pycct.geometry.overlap cimport push_out
from pycct.geometry.tolerances cimport DEPTH_TIE, EPSILON_DISTANCE
from pycct.geometry.types cimport STATUS_NEED_ANSWER, STATUS_NOT_FINITE, STATUS_OK
from pycct.geometry.vec cimport aabb, box_grow, v3, v3_add, v3_finite, v3_len, v3_madd, v3_sub, vec3
from pycct.world.candidates cimport (
    ASK_FILTER,
    book_answer,
    candidate_group,
    candidates,
    candidates_cut,
    candidates_deepest,
    candidates_gather,
    capsule_bounds,
    collider,
    group_may_be_met,
    group_order,
    group_push,
    group_recovers,
)
from pycct.world.exits cimport is_crossed, is_near, is_surface, place_order, recovery_push


# Corrections of one recovery (RULES 7.5).
cdef int MAX_RECOVERIES = 4


cdef inline aabb _surroundings(const move_job* m, vec3 position, double radius) noexcept nogil:
    """Bounds of possible overlaps: a mesh takes several pushes, so twice the radius."""
    return box_grow(capsule_bounds(v3_sub(position, m.half_axis), v3_add(position, m.half_axis), radius), radius)


cdef int gather_around(move_job* m, vec3 position, double radius) noexcept nogil:
    """Look up all candidates of recovery again, independent of any cache."""
    cdef candidates* c = &m.scratch.around
    cdef aabb box = _surroundings(m, position, radius)
    cdef int status
    if m.world.cache_only:
        return STATUS_CACHE_MISS
    candidates_cut(c, 0, 0)
    status = candidates_gather(c, m.world.fixed, 0, box, m.world.mask, NULL)
    if status == STATUS_OK:
        status = gather_moving(m, c, box, NULL)
    return status


cdef int _recover_at_once(move_job* m, vec3* position) noexcept nogil:
    """One sum over all overlaps (RULES 9 row 5, MOVE 9.2), ordered by their geometry."""
    cdef candidates* c = &m.scratch.around
    cdef vec3 p0 = v3_sub(position[0], m.half_axis), p1 = v3_add(position[0], m.half_axis)
    cdef vec3 total = v3(0.0, 0.0, 0.0)
    cdef push_out push, next_push, last_push
    cdef int32_t i, next_, last = -1
    cdef uint32_t value
    cdef int recovers = recovered_kinds(m.p)
    cdef int status = gather_around(m, position[0], m.p.radius + m.p.contact_offset)
    if status != STATUS_OK:
        return status
    while True:
        # The next one in order: the order of storage must not change the last bits of the sum.
        next_ = -1
        for i in range(c.n_groups):
            if not group_recovers(&c.groups[i], recovers):
                continue
            push = group_push(c, &c.groups[i], p0, p1, m.p.radius)
            if not push.overlapping:
                continue
            if last >= 0 and group_order(c, &c.groups[i], push.tri, &c.groups[last], last_push.tri) <= 0:
                continue
            if next_ < 0 or group_order(c, &c.groups[i], push.tri, &c.groups[next_], next_push.tri) < 0:
                next_ = i
                next_push = push
        if next_ < 0:
            break
        last = next_
        last_push = next_push
        if m.world.filters:
            if not book_answer(&m.scratch.book, ASK_FILTER, c.groups[last].owner, c.groups[last].id, &value):
                return STATUS_NEED_ANSWER
            if value == 0:
                continue
        total = v3_madd(total, last_push.dir, last_push.depth + m.p.contact_offset)
        m.stats.recoveries += 1
    if v3_len(total) > EPSILON_DISTANCE:
        position[0] = v3_add(position[0], total)
    return STATUS_OK


# A shape that has pushed in the current round.
cdef struct pushed_shape:
    int32_t owner
    int64_t id


# One step of a round: the shape with the shortest way out, if any overlaps.
cdef struct round_step:
    push_out push
    int32_t group           # -1: none
    bint free               # some shape of the step is near and does not overlap


cdef inline const collider* _collider_of(const move_job* m, const candidate_group* g) noexcept nogil:
    if g.layer_index >= 2:
        return NULL
    return &m.world.fixed.items[g.item] if g.layer_index == 0 else &m.world.moving.items[g.item]


cdef inline bint _waits(const candidate_group* g, bint moving, int recovers, const pushed_shape* done,
                        int n_done) noexcept nogil:
    """Whether a shape is still to come in this half of the round."""
    cdef int i
    if moving == (g.layer_index == 0) or not group_recovers(g, recovers):
        return False
    for i in range(n_done):
        if done[i].owner == g.owner and done[i].id == g.id:
            return False
    return True


cdef int _next_push(move_job* m, vec3 position, bint moving, bint by_depth, const pushed_shape* done, int n_done,
                    round_step* step) noexcept nogil:
    """The shortest way out among the shapes that wait; surfaces come before solids.

    Ways equal within 1e-9 go by geometry.
    """
    cdef candidates* c = &m.scratch.around
    cdef const candidate_group* g
    cdef vec3 p0 = v3_sub(position, m.half_axis), p1 = v3_add(position, m.half_axis)
    cdef double radius = m.p.radius + m.p.contact_offset, smallest = 0.0
    cdef push_out push
    cdef int32_t i, n = 0                   # n: overlaps of surfaces, or of solids
    cdef int recovers = recovered_kinds(m.p)
    cdef bint surfaces = False
    step.group = -1
    step.free = False
    for i in range(c.n_groups):
        g = &c.groups[i]
        if not _waits(g, moving, recovers, done, n_done) or not is_near(c, g, p0, p1, REACH * radius):
            continue
        push = recovery_push(c, g, _collider_of(m, g), p0, p1, radius, not m.pushed_out, by_depth)
        if not push.depth > 0.0:
            step.free = True
        elif group_may_be_met(c, g):
            if is_surface(g) and not surfaces:
                surfaces = True
                n = 0
            if is_surface(g) != surfaces:
                continue
            n += 1
            if n == 1 or push.depth < smallest:
                smallest = push.depth
                step.push = push
                step.group = i
        if m.scratch.book.needs_answer:
            return STATUS_NEED_ANSWER
    if n < 2:
        return STATUS_OK
    step.group = -1
    for i in range(c.n_groups):
        g = &c.groups[i]
        if (is_surface(g) != surfaces or not _waits(g, moving, recovers, done, n_done)
                or not is_near(c, g, p0, p1, REACH * radius)):
            continue
        push = recovery_push(c, g, _collider_of(m, g), p0, p1, radius, not m.pushed_out, by_depth)
        if not push.depth > 0.0 or push.depth > smallest + DEPTH_TIE or not group_may_be_met(c, g):
            continue
        if step.group < 0 or place_order(c, g, _collider_of(m, g), &c.groups[step.group],
                                         _collider_of(m, &c.groups[step.group]), p0, p1, REACH * radius) < 0:
            step.push = push
            step.group = i
    return STATUS_OK


cdef int _recover_in_rounds(move_job* m, vec3* position, bint by_depth) noexcept nogil:
    """Rounds over all near shapes, static ones first; each overlapped one pushes at once (RULES_2 10)."""
    cdef candidates* c = &m.scratch.around
    cdef double radius = m.p.radius + m.p.contact_offset
    cdef pushed_shape[4] done               # MAX_RECOVERIES
    cdef round_step step
    cdef int n_pushes = 0, n_done, half
    cdef bint overlapped = True             # the last shape of the round
    cdef int status = gather_around(m, position[0], radius)
    while status == STATUS_OK and overlapped and n_pushes < MAX_RECOVERIES:
        overlapped = False
        for half in range(2):
            n_done = 0
            while n_pushes < MAX_RECOVERIES:
                status = _next_push(m, position[0], half == 1, by_depth, done, n_done, &step)
                if status != STATUS_OK:
                    return status
                if step.group < 0:
                    overlapped = overlapped and not step.free
                    break
                overlapped = True
                done[n_done].owner = c.groups[step.group].owner
                done[n_done].id = c.groups[step.group].id
                n_done += 1
                n_pushes += 1
                position[0] = v3_madd(position[0], step.push.dir, step.push.depth)
                m.stats.recoveries += 1
                m.pushed_out = True
                status = gather_around(m, position[0], radius)
                if status != STATUS_OK:
                    return status
    return status


cdef bint _is_held(move_job* m, vec3 position) noexcept nogil:
    """Whether the axis crosses the inside of a face that recovery moves out of."""
    cdef candidates* c = &m.scratch.around
    cdef vec3 p0 = v3_sub(position, m.half_axis), p1 = v3_add(position, m.half_axis)
    cdef int32_t i
    cdef int recovers = recovered_kinds(m.p)
    for i in range(c.n_groups):
        if (group_recovers(&c.groups[i], recovers) and is_crossed(c, &c.groups[i], p0, p1)
                and group_may_be_met(c, &c.groups[i])):
            return True
    return False


cdef int recover(move_job* m, vec3* position) noexcept nogil:
    """Recovery: rounds of up to four pushes (RULES_2 10), or one sum (RULES 9 row 5)."""
    cdef candidates* c = &m.scratch.around
    cdef push_out push
    cdef int32_t group
    cdef vec3 start = position[0]
    cdef int64_t before = m.stats.recoveries
    cdef bint first = not m.pushed_out
    cdef int status, left, recovers = recovered_kinds(m.p)
    m.s.overlap = 0.0
    if m.p.rules & RULE_RECOVERY_SUM:
        status = _recover_at_once(m, position)
        if status == STATUS_OK:
            status = gather_around(m, position[0], m.p.radius + m.p.contact_offset)
    else:
        status = _recover_in_rounds(m, position, False)
        if status == STATUS_OK and first and m.pushed_out and _is_held(m, position[0]):
            # The ways of PhysX lead along the surface (RULES_2 3).
            m.pushed_out = False
            m.stats.recoveries = before
            position[0] = start
            status = _recover_in_rounds(m, position, True)
    if status != STATUS_OK:
        return status
    left = MAX_RECOVERIES if m.stats.recoveries == before else 0
    while True:
        push = candidates_deepest(c, v3_sub(position[0], m.half_axis), v3_add(position[0], m.half_axis), m.p.radius,
                                  recovers, &group)
        if m.scratch.book.needs_answer:
            return STATUS_NEED_ANSWER
        if not push.overlapping:
            return STATUS_OK
        if left == 0 or push.depth > NO_PUSH:
            # Any remaining depth means that the character is crushed.
            m.s.overlap = push.depth
            return STATUS_OK
        # PhysX takes this for no overlap, but sweeps begin inside.
        left -= 1
        m.pushed_out = True
        m.stats.recoveries += 1
        position[0] = v3_madd(position[0], push.dir, push.depth)
        status = gather_around(m, position[0], m.p.radius + m.p.contact_offset)
        if status != STATUS_OK:
            return status


cdef int unstick(const controller_params* p, controller_state* state, const move_world* world, move_scratch* scratch,
                 double margin, move_stats* stats) noexcept nogil:
    cdef controller_params grown = p[0]
    cdef controller_state now = state[0]
    cdef move_job m
    cdef vec3 position = state.position
    cdef int status
    grown.contact_offset = p.contact_offset + margin
    grown.overlap_recovery = True
    begin_job(&m, &grown, &now, world, scratch, stats)
    status = recover(&m, &position)
    if status != STATUS_OK:
        return status
    if not v3_finite(position):
        return STATUS_NOT_FINITE
    state.position = position
    state.overlap = m.s.overlap
    return STATUS_OK
