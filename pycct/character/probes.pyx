# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from pycct.character.gathering cimport begin_job, face_met, gather_moving, set_ground, turned_against
from pycct.character.move_types cimport (
    FIX_SHEET_EDGES,
    controller_params,
    controller_state,
    ground_contact,
    move_job,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.character.recovery cimport gather_around
from pycct.geometry.sweep cimport capsule_cast, capsule_cast_of
from pycct.geometry.types cimport STATUS_NEED_ANSWER, STATUS_OK
from pycct.geometry.vec cimport aabb, box_union, v3_add, v3_madd, v3_scale, v3_sub, vec3
from pycct.world.candidates cimport (
    ASK_FILTER,
    book_answer,
    candidate_group,
    candidates,
    candidates_cast,
    candidates_cut,
    candidates_gather,
    capsule_bounds,
    collider,
    group_overlaps,
    world_hit,
)


cdef int probe_below(const controller_params* p, const controller_state* state, const move_world* world,
                     move_scratch* scratch, double reach, ground_contact* found) noexcept nogil:
    cdef move_job m
    cdef move_stats stats
    cdef controller_state now = state[0]
    cdef candidates* c = &scratch.around
    cdef vec3 down = v3_scale(p.up, -1.0), low, high
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const candidate_group* g
    cdef const collider* item = NULL
    cdef aabb box
    cdef int status
    memset(found, 0, sizeof(ground_contact))
    begin_job(&m, p, &now, world, scratch, &stats)
    low = v3_sub(m.s.position, m.half_axis)
    high = v3_add(m.s.position, m.half_axis)
    box = box_union(capsule_bounds(low, high, p.radius), capsule_bounds(v3_madd(low, down, reach), high, p.radius))
    candidates_cut(c, 0, 0)
    status = candidates_gather(c, world.fixed, 0, box, world.mask, NULL)
    if status == STATUS_OK:
        status = gather_moving(&m, c, box, NULL)
    if status != STATUS_OK:
        return status
    cast = capsule_cast_of(low, high, p.radius, down, reach, True, True)
    cast.meets_rims = cast.meets_back_rims = (p.rules & FIX_SHEET_EDGES) != 0
    if not candidates_cast(c, &cast, 0xF, &hit):
        return STATUS_NEED_ANSWER if scratch.book.needs_answer else STATUS_OK
    g = &c.groups[hit.group]
    if g.layer_index < 2:
        item = &world.fixed.items[g.item] if g.layer_index == 0 else &world.moving.items[g.item]
    set_ground(found, c, &hit, g, item, turned_against(face_met(c, &hit, g, down), down))
    if hit.base.overlapping:
        found.normal = p.up
    return STATUS_OK


cdef int touches_anything(const controller_params* p, const move_world* world, move_scratch* scratch, vec3 p0, vec3 p1,
                          double radius, bint* touches) noexcept nogil:
    cdef move_job m
    cdef move_stats stats
    cdef controller_state nowhere
    cdef candidates* c = &scratch.around
    cdef aabb box = capsule_bounds(p0, p1, radius)
    cdef uint32_t value
    cdef int32_t i
    cdef int status
    memset(&nowhere, 0, sizeof(controller_state))
    begin_job(&m, p, &nowhere, world, scratch, &stats)
    touches[0] = False
    candidates_cut(c, 0, 0)
    status = candidates_gather(c, world.fixed, 0, box, world.mask, NULL)
    if status == STATUS_OK:
        status = gather_moving(&m, c, box, NULL)
    if status != STATUS_OK:
        return status
    for i in range(c.n_groups):
        if group_overlaps(c, &c.groups[i], p0, p1, radius):
            if world.filters:
                if not book_answer(&scratch.book, ASK_FILTER, c.groups[i].owner, c.groups[i].id, &value):
                    return STATUS_NEED_ANSWER
                if value == 0:
                    continue
            touches[0] = True
            return STATUS_OK
    return STATUS_OK


cdef int gather_near(const controller_params* p, const controller_state* state, const move_world* world,
                     move_scratch* scratch, double reach) noexcept nogil:
    cdef controller_state now = state[0]
    cdef move_job m
    cdef move_stats stats
    begin_job(&m, p, &now, world, scratch, &stats)
    return gather_around(&m, state.position, p.radius + reach)
