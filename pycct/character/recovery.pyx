# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, uint32_t

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
from pycct.geometry.overlap cimport push_out
from pycct.geometry.tolerances cimport EPSILON_DISTANCE
from pycct.geometry.types cimport STATUS_NEED_ANSWER, STATUS_NOT_FINITE, STATUS_OK
from pycct.geometry.vec cimport aabb, box_grow, v3, v3_add, v3_finite, v3_len, v3_madd, v3_sub, vec3
from pycct.world.candidates cimport (
    ASK_FILTER,
    book_answer,
    candidates,
    candidates_cut,
    candidates_deepest,
    candidates_gather,
    capsule_bounds,
    group_order,
    group_push,
    group_recovers,
)


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


cdef int recover(move_job* m, vec3* position) noexcept nogil:
    """Recovery: out of the deepest overlap, up to four times (RULES 7.5)."""
    cdef candidates* c = &m.scratch.around
    cdef double radius = m.p.radius + m.p.contact_offset
    cdef vec3 p0, p1
    cdef push_out push
    cdef int32_t group
    cdef int status, recovers = recovered_kinds(m.p)
    cdef int _turn
    m.s.overlap = 0.0
    if m.p.rules & RULE_RECOVERY_SUM:
        status = _recover_at_once(m, position)
        if status != STATUS_OK:
            return status
    else:
        for _turn in range(MAX_RECOVERIES):
            status = gather_around(m, position[0], radius)
            if status != STATUS_OK:
                return status
            p0 = v3_sub(position[0], m.half_axis)
            p1 = v3_add(position[0], m.half_axis)
            push = candidates_deepest(c, p0, p1, radius, recovers, &group)
            if m.scratch.book.needs_answer:
                return STATUS_NEED_ANSWER
            if not push.overlapping:
                return STATUS_OK
            position[0] = v3_madd(position[0], push.dir, push.depth)
            m.stats.recoveries += 1
    # Any remaining depth means that the character is crushed.
    status = gather_around(m, position[0], radius)
    if status != STATUS_OK:
        return status
    push = candidates_deepest(c, v3_sub(position[0], m.half_axis), v3_add(position[0], m.half_axis), m.p.radius,
                              recovers, &group)
    if m.scratch.book.needs_answer:
        return STATUS_NEED_ANSWER
    if push.overlapping:
        m.s.overlap = push.depth
    return STATUS_OK


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
