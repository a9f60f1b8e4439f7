# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from pycct.character.gathering cimport drop_proxy, face_met, gather_others, has_fix, set_ground, turned_against
from pycct.character.move_types cimport (
    CAN_RIDE,
    FIX_KEEP_RIDE,
    FIX_KINEMATIC_RECOVERY,
    FIX_SHEET_EDGES,
    RULE_RIDE_WHOLE,
    STATUS_CACHE_MISS,
    TOUCH_OBSTACLE,
    USER_DEFINED_RIDE,
    controller_state,
    move_job,
)
from pycct.character.recovery cimport RECOVERS
from pycct.geometry.overlap cimport push_out
from pycct.geometry.sweep cimport capsule_cast, capsule_cast_of
from pycct.geometry.tolerances cimport ALMOST_ZERO, MOTION_SHARE
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
    GROUP_BOX,
    OWNER_ACTOR,
    OWNER_OBSTACLE,
    book_answer,
    broadphase_layer,
    candidate_group,
    candidates,
    candidates_cast,
    candidates_cut,
    candidates_gather,
    candidates_set_groups,
    capsule_bounds,
    collider,
    group_order,
    group_overlaps,
    group_push,
    place_point,
    unplace_point,
    world_hit,
)


# Largest gap that FIX_KEEP_RIDE counts as standing: this many contact offsets, but at least this
# share of the radius.
cdef double STANDING_GAP = 2.0
cdef double STANDING_SHARE = 1e-3
# An exit that rises more than this, as a cosine, leads up from a character below.
cdef double FROM_BELOW = 0.5


cdef const collider* _find(const broadphase_layer* layer, int64_t id) noexcept nogil:
    """The item with that id; items are sorted by id."""
    cdef int32_t lo = 0, hi = layer.n - 1, mid
    while lo <= hi:
        mid = (lo + hi) >> 1
        if layer.items[mid].id == id:
            return &layer.items[mid]
        if layer.items[mid].id < id:
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


cdef bint _ray_below(move_job* m, const capsule_cast* ray, int32_t owner, world_hit* hit) noexcept nogil:
    """The first moving thing of an owner that a ray meets; hit.group is its place in scratch.around.

    May set m.status.
    """
    cdef candidates* c = &m.scratch.around
    cdef const candidate_group* g
    cdef uint32_t value
    cdef int32_t i, n = 0
    candidates_cut(c, 0, 0)
    m.status = candidates_gather(c, m.world.moving, 1,
                                 capsule_bounds(ray.p0, v3_madd(ray.p0, ray.dir, ray.limit), 0.0), m.world.mask, NULL)
    if m.status != STATUS_OK:
        return False
    if m.p.proxy >= 0:
        drop_proxy(c, 0, m.p.proxy)
    # Obstacles have no triangles, so that those of the others stay where they are.
    for i in range(c.n_groups):
        if c.groups[i].owner == owner:
            c.groups[n] = c.groups[i]
            n += 1
    candidates_set_groups(c, n)
    if owner == OWNER_OBSTACLE:
        candidates_cut(c, n, 0)
    # Solids are solid: the centre may be inside.
    hit.group = -1
    for i in range(n):
        g = &c.groups[i]
        if (g.closed or g.kind == GROUP_BOX) and group_overlaps(c, g, ray.p0, ray.p0, 0.0):
            if m.world.filters:
                if not book_answer(&m.scratch.book, ASK_FILTER, g.owner, g.id, &value):
                    m.status = STATUS_NEED_ANSWER
                    return False
                if value == 0:
                    continue
            if hit.group < 0 or group_order(c, g, -1, &c.groups[hit.group], -1) < 0:
                hit.group = i
    if hit.group >= 0:
        hit.base.distance = 0.0
        hit.base.point = ray.p0
        return True
    if candidates_cast(c, ray, 0xF, hit):
        return True
    if m.scratch.book.needs_answer:
        m.status = STATUS_NEED_ANSWER
    return False


cdef capsule_cast _ray_of(const move_job* m) noexcept nogil:
    """The ray from the centre down to the bottom of the capsule (RULES 7.2)."""
    return capsule_cast_of(m.s.position, m.s.position, 0.0, v3_scale(m.p.up, -1.0), 0.5 * m.p.height + m.p.radius,
                           False, True)


cdef const collider* _remember(move_job* m, const world_hit* hit) noexcept nogil:
    """Remember the moving thing that the ray met (RULES 7.2), and return it."""
    cdef const collider* item = &m.world.moving.items[m.scratch.around.groups[hit.group].item]
    m.s.touched_point = hit.base.point
    m.s.touched_local = unplace_point(item, hit.base.point)
    if item.obstacle:
        m.s.touched_obstacle = item.id
    else:
        m.s.touched_actor = item.id
    return item


cdef const collider* _look_below(move_job* m, double* distance) noexcept nogil:
    """The moving body below the centre, within half the height (RULES 7.2), and its distance."""
    cdef capsule_cast ray = _ray_of(m)
    cdef world_hit hit
    # RULES_2 6: a shape comes before an obstacle.
    if not _ray_below(m, &ray, OWNER_ACTOR, &hit) and (
            m.status != STATUS_OK or not _ray_below(m, &ray, OWNER_OBSTACLE, &hit)):
        return NULL
    distance[0] = hit.base.distance
    return _remember(m, &hit)


cdef bint _changes_obstacle(move_job* m, int64_t id) noexcept nogil:
    """Whether another obstacle is nearest below, after the remembered one has moved (RULES_2 11).

    May set m.status.
    """
    cdef capsule_cast ray = _ray_of(m)
    cdef world_hit hit
    if not _ray_below(m, &ray, OWNER_OBSTACLE, &hit) or m.scratch.around.groups[hit.group].id == id:
        return False
    _remember(m, &hit)
    return True


cdef vec3 ride(move_job* m, vec3 displacement) noexcept nogil:
    """Move with the platform (RULES 7.2 and 7.3, MOVE 13); return the remaining displacement."""
    cdef controller_state* s = m.s
    cdef const collider* item = NULL
    cdef vec3 now, delta, along
    cdef double distance = 0.0
    cdef bint looked = False
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
        looked = True
        item = _look_below(m, &distance)
        if m.status != STATUS_OK:
            return displacement
    if item == NULL or item.body == BODY_STATIC:
        return displacement
    m.carried = True
    now = place_point(item, s.touched_local)
    delta = v3_sub(now, s.touched_point)
    if (item.obstacle and not looked and v3_max_abs(delta) > ALMOST_ZERO and not m.p.rules & RULE_RIDE_WHOLE
            and (_changes_obstacle(m, item.id) or m.status != STATUS_OK)):
        return displacement
    behavior = item.behavior
    if m.world.asks_behavior and not book_answer(
            &m.scratch.book, ASK_BEHAVIOR, OWNER_OBSTACLE if item.obstacle else OWNER_ACTOR, item.id, &behavior):
        m.status = STATUS_NEED_ANSWER
        return displacement
    s.touched_point = now
    if m.p.rules & RULE_RIDE_WHOLE:
        s.position = v3_add(s.position, delta)
        s.platform_delta = delta
        m.standing_on_moving = v3_max_abs(delta) > ALMOST_ZERO
        return displacement
    if looked:
        # RULES_2 6: the feet go up to what the ray met.
        delta = v3_scale(m.p.up, 0.5 * m.p.height + m.p.radius - distance)
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
    cast.meets_rims = cast.meets_back_rims = (m.p.rules & FIX_SHEET_EDGES) != 0
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
    set_ground(&s.ground, c, &hit, g, item, turned_against(face_met(c, &hit, g, down), down))
    s.ground.distance = f_min(hit.base.distance, m.p.contact_offset)
    return STATUS_OK


cdef int rise_from_below(move_job* m) noexcept nogil:
    """FIX_KINEMATIC_RECOVERY: move up from characters that rose into this one, up to what is above."""
    cdef candidates* c = &m.scratch.around
    cdef vec3 p0 = v3_sub(m.s.position, m.half_axis), p1 = v3_add(m.s.position, m.half_axis)
    cdef double radius = m.p.radius * (1.0 - MOTION_SHARE), rise = 0.0, steep
    cdef push_out push
    cdef capsule_cast cast
    cdef world_hit hit
    cdef uint32_t value
    cdef int32_t i
    cdef int status
    candidates_cut(c, 0, 0)
    status = gather_others(m, c, capsule_bounds(p0, p1, radius))
    if status != STATUS_OK:
        return status
    for i in range(c.n_groups):
        push = group_push(c, &c.groups[i], p0, p1, radius)
        steep = v3_dot(push.dir, m.p.up)
        # A character beside this one is left to the separation.
        if not push.overlapping or steep < FROM_BELOW:
            continue
        if m.world.filters:
            if not book_answer(&m.scratch.book, ASK_FILTER, c.groups[i].owner, c.groups[i].id, &value):
                return STATUS_NEED_ANSWER
            if value == 0:
                continue
        # The distance grows at least as fast as at the start of the way.
        rise = f_max(rise, push.depth / steep)
    if rise <= 0.0 or not has_fix(m, FIX_KINEMATIC_RECOVERY):
        return STATUS_OK
    if m.world.cache_only:
        return STATUS_CACHE_MISS
    candidates_cut(c, 0, 0)
    status = candidates_gather(
        c, m.world.fixed, 0, capsule_bounds(p0, v3_madd(p1, m.p.up, rise + m.p.contact_offset), m.p.radius),
        m.world.mask, NULL)
    if status != STATUS_OK:
        return status
    cast = capsule_cast_of(p0, p1, m.p.radius, m.p.up, rise + m.p.contact_offset, True, True)
    if candidates_cast(c, &cast, RECOVERS, &hit):
        rise = f_min(rise, f_max(0.0, hit.base.distance - m.p.contact_offset))
    elif m.scratch.book.needs_answer:
        return STATUS_NEED_ANSWER
    m.s.position = v3_madd(m.s.position, m.p.up, rise)
    m.cache.has_safe_region = False
    return STATUS_OK
