# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from pycct.character.gathering cimport drop_proxy, face_met, has_fix, set_ground
from pycct.character.move_types cimport (
    CAN_RIDE,
    FIX_KEEP_RIDE,
    FIX_SHEET_EDGES,
    RULE_RIDE_WHOLE,
    TOUCH_OBSTACLE,
    USER_DEFINED_RIDE,
    controller_state,
    move_job,
)
from pycct.geometry.sweep cimport capsule_cast, capsule_cast_of
from pycct.geometry.tolerances cimport ALMOST_ZERO
from pycct.geometry.types cimport BODY_STATIC, STATUS_NEED_ANSWER, STATUS_OK
from pycct.geometry.vec cimport (
    f_max,
    f_min,
    v3,
    v3_add,
    v3_along,
    v3_dot,
    v3_madd,
    v3_max_abs,
    v3_scale,
    v3_sub,
    vec3,
)
from pycct.world.candidates cimport (
    ASK_BEHAVIOR,
    ASK_FILTER,
    OWNER_ACTOR,
    OWNER_OBSTACLE,
    book_answer,
    broadphase_layer,
    candidate_group,
    candidates,
    candidates_cast,
    candidates_cut,
    candidates_gather,
    capsule_bounds,
    collider,
    place_point,
    unplace_point,
    world_hit,
)


# Largest gap that FIX_KEEP_RIDE counts as standing: this many contact offsets, but at least this
# share of the radius.
cdef double STANDING_GAP = 2.0
cdef double STANDING_SHARE = 1e-3


cdef const collider* _find(const broadphase_layer* part, int64_t id) noexcept nogil:
    """The item with that id; items are sorted by id."""
    cdef int32_t lo = 0, hi = part.n - 1, mid
    while lo <= hi:
        mid = (lo + hi) >> 1
        if part.items[mid].id == id:
            return &part.items[mid]
        if part.items[mid].id < id:
            lo = mid + 1
        else:
            hi = mid - 1
    return NULL


cdef bint _still_there(move_job* m, const collider* item) noexcept nogil:
    """Whether the character can still collide with its platform.

    May set m.status to STATUS_NEED_ANSWER.
    """
    cdef uint32_t value
    if item == NULL or not item.layer & m.world.mask:
        return False
    if not m.world.filters:
        return True
    if not book_answer(&m.scratch.book, ASK_FILTER, OWNER_OBSTACLE if item.obstacle else OWNER_ACTOR, item.id, &value):
        m.status = STATUS_NEED_ANSWER
        return False
    return value != 0


cdef const collider* _look_below(move_job* m) noexcept nogil:
    """The moving body below the centre, within half the height (RULES 7.2)."""
    cdef candidates* c = &m.scratch.around
    cdef controller_state* s = m.s
    cdef vec3 down = v3_scale(m.p.up, -1.0)
    cdef double reach = 0.5 * m.p.height + m.p.radius
    cdef capsule_cast ray
    cdef world_hit hit
    cdef const collider* item
    candidates_cut(c, 0, 0)
    m.status = candidates_gather(c, m.world.moving, 1,
                                 capsule_bounds(s.position, v3_madd(s.position, down, reach), 0.0), m.world.mask, NULL)
    if m.status != STATUS_OK:
        return NULL
    if m.p.proxy >= 0:
        drop_proxy(c, 0, m.p.proxy)
    ray = capsule_cast_of(s.position, s.position, 0.0, down, reach, False, True)
    if not candidates_cast(c, &ray, 0xF, &hit):
        if m.scratch.book.needs_answer:
            m.status = STATUS_NEED_ANSWER
        return NULL
    item = &m.world.moving.items[c.groups[hit.group].item]
    s.touched_point = hit.base.point
    s.touched_local = unplace_point(item, hit.base.point)
    if item.obstacle:
        s.touched_obstacle = item.id
    else:
        s.touched_actor = item.id
    return item


cdef vec3 ride(move_job* m, vec3 displacement) noexcept nogil:
    """Move with the platform (RULES 7.2 and 7.3, MOVE 13); return the remaining displacement."""
    cdef controller_state* s = m.s
    cdef const collider* item = NULL
    cdef vec3 now, delta, along
    cdef uint32_t behavior
    s.platform_delta = v3(0.0, 0.0, 0.0)
    m.standing_on_moving = False
    if s.touched_actor >= 0:
        item = _find(m.world.moving, s.touched_actor)
        if item == NULL:
            item = _find(m.world.fixed, s.touched_actor)
        if not _still_there(m, item):
            if m.status != STATUS_OK:
                return displacement
            s.touched_actor = -1
            item = NULL
    if s.touched_actor < 0 and s.touched_obstacle >= 0:
        item = _find(m.world.moving, s.touched_obstacle)
        if not _still_there(m, item):
            if m.status != STATUS_OK:
                return displacement
            s.touched_obstacle = -1
            item = NULL
    if item == NULL and m.world.moving.n > 0:
        item = _look_below(m)
        if m.status != STATUS_OK:
            return displacement
    if item == NULL or item.body == BODY_STATIC:
        return displacement
    m.carried = True
    behavior = item.behavior
    if m.world.asks_behavior and not book_answer(
            &m.scratch.book, ASK_BEHAVIOR, OWNER_OBSTACLE if item.obstacle else OWNER_ACTOR, item.id, &behavior):
        m.status = STATUS_NEED_ANSWER
        return displacement
    now = place_point(item, s.touched_local)
    delta = v3_sub(now, s.touched_point)
    s.touched_point = now
    if m.p.rules & RULE_RIDE_WHOLE:
        s.position = v3_add(s.position, delta)
        s.platform_delta = delta
        m.standing_on_moving = v3_max_abs(delta) > ALMOST_ZERO
        return displacement
    if behavior & USER_DEFINED_RIDE or v3_max_abs(delta) <= ALMOST_ZERO:
        return displacement
    m.standing_on_moving = True
    along = v3_along(delta, m.p.up)
    s.platform_delta = along
    if v3_dot(delta, m.p.up) > 0.0:
        s.position = v3_add(s.position, along)
    else:
        displacement = v3_add(displacement, along)
    if behavior & CAN_RIDE:
        displacement = v3_add(displacement, v3_sub(delta, along))
        s.platform_delta = delta
    return displacement


cdef int keep_ride(move_job* m) noexcept nogil:
    """FIX_KEEP_RIDE: keep a moving platform that the DOWN pass just missed."""
    cdef candidates* c = &m.scratch.around
    cdef controller_state* s = m.s
    cdef vec3 down = v3_scale(m.p.up, -1.0)
    cdef double reach = f_max(STANDING_GAP * m.p.contact_offset, STANDING_SHARE * m.p.radius)
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const collider* item
    cdef const candidate_group* g
    cdef int status
    candidates_cut(c, 0, 0)
    status = candidates_gather(
        c, m.world.moving, 1,
        capsule_bounds(v3_madd(v3_sub(s.position, m.half_axis), down, reach), v3_add(s.position, m.half_axis),
                       m.p.radius), m.world.mask, NULL)
    if status != STATUS_OK:
        return status
    if m.p.proxy >= 0:
        drop_proxy(c, 0, m.p.proxy)
    cast = capsule_cast_of(v3_sub(s.position, m.half_axis), v3_add(s.position, m.half_axis), m.p.radius, down, reach,
                           True, True)
    cast.meets_rims = (m.p.rules & FIX_SHEET_EDGES) != 0
    if not candidates_cast(c, &cast, 0, &hit):
        return STATUS_NEED_ANSWER if m.scratch.book.needs_answer else STATUS_OK
    has_fix(m, FIX_KEEP_RIDE)
    g = &c.groups[hit.group]
    item = &m.world.moving.items[g.item]
    s.touched_point = hit.base.point
    s.touched_local = unplace_point(item, hit.base.point)
    if item.obstacle:
        s.touched_obstacle = item.id
        s.marks |= TOUCH_OBSTACLE
    else:
        s.touched_actor = item.id
    set_ground(&s.ground, c, &hit, g, item, face_met(c, &hit, g, down))
    s.ground.distance = f_min(hit.base.distance, m.p.contact_offset)
    return STATUS_OK
