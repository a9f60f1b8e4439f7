# cython: language_level=3
"""The movement core. See the header; rule numbers are those of RULES and its documents."""
cimport cython
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pycct._closest cimport point_segment_parameter
from pycct._convert cimport as_float, as_not_negative, as_positive, as_unit, as_vec3, from_vec3, raise_status
from pycct._overlap cimport push_out
from pycct._neighbours cimport character, shared_add, shared_collect, shared_remove, shared_update
from pycct._scene cimport Actor, Scene, Snapshot
from pycct._shapes cimport Capsule
from pycct._sweep cimport capsule_cast, capsule_cast_of
from pycct._types cimport BODY_DYNAMIC, BODY_KINEMATIC, BODY_STATIC, SHAPE_MESH, STATUS_NEED_ANSWER, STATUS_NO_MEMORY, STATUS_NOT_FINITE, STATUS_OK
from pycct._vec cimport (
    box_grow,
    box_half,
    box_inside,
    box_of,
    box_union,
    f_max,
    f_min,
    v3,
    v3_add,
    v3_along,
    v3_dot,
    v3_finite,
    v3_is_zero,
    v3_len,
    v3_madd,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_reject,
    v3_scale,
    v3_sub,
    v3_unit,
)
from pycct._world cimport (
    ASK_BEHAVIOR,
    ASK_FILTER,
    OWNER_ACTOR,
    OWNER_CONTROLLER,
    OWNER_OBSTACLE,
    RECOVER_USER,
    answer,
    book_add,
    book_answer,
    book_free,
    candidate_group,
    candidates_add_character,
    candidates_cast,
    candidates_cut,
    candidates_deepest,
    candidates_free,
    candidates_gather,
    candidates_init,
    capsule_bounds,
    group_push,
    group_recovers,
    place_point,
    placed,
    unplace_point,
    wall_rule,
    world_hit,
)

import weakref

from pycct._enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Rules

# Collision iterations of a pass that slides (MOVE 1.1; PhysX's MAX_ITER).
cdef int MAX_ITERATIONS = 10
# Bit of Behavior (pycct/_enums.py).
cdef enum:
    CAN_RIDE = 1
    CAN_SLIDE = 2
    USER_DEFINED_RIDE = 4
# Further iterations after the first DOWN collision with something to slide on (MOVE 7.2.3k).
cdef int SLIDE_ITERATIONS = 9
# The cached volume is the temporal box times this (MOVE 1.1 VOLUME_GROWTH) ...
cdef double VOLUME_GROWTH = 1.5
# ... shifted along the side motion by this share of the growth (RULES 4).
cdef double VOLUME_SHIFT = 0.9
# A side vector is zero when no component is larger (RULES 6; MOVE 1.2 EPSILON_DISTANCE).
cdef double ALMOST_ZERO = 1e-6
# A pass stops when its direction turns by a right angle or more from where it set
# out; the margin settles what float32 leaves to chance (RULES 5).
cdef double TURNED_BACK = 1e-6
# A sum of pushes no longer than this is nothing (MOVE 9.2.3 EPSILON_DISTANCE).
cdef double EPSILON_DISTANCE = 1e-6
# Corrections of one overlap recovery (RULES 7.5).
cdef int MAX_RECOVERIES = 4
# Bodies that overlap recovery moves out of, one bit per body_kind (MOVE 9.3).
cdef int RECOVERS = (1 << BODY_STATIC) | (1 << BODY_KINEMATIC)


# Everything that one move reads and writes.
cdef struct move_job:
    const controller_params* p
    controller_state s
    const move_world* world
    move_scratch* scratch
    move_stats* stats
    wall_rule walls
    vec3 half_axis              # from the centre to the upper sphere
    vec3 side                   # unit side direction of this moveCharacter, or zero
    bint first_query            # of this move: moving things must be looked up anew
    bint standing_on_moving
    int status


cdef void scratch_init(move_scratch* s) noexcept nogil:
    memset(s, 0, sizeof(move_scratch))
    candidates_init(&s.cache.near)
    candidates_init(&s.around)


cdef void scratch_free(move_scratch* s) noexcept nogil:
    candidates_free(&s.cache.near)
    candidates_free(&s.around)
    free(s.log.records)
    free(s.others)
    book_free(&s.book)
    scratch_init(s)


cdef decomposition decompose(vec3 displacement, vec3 up, double step_offset, bint standing_on_moving) noexcept nogil:
    """MOVE 4.2 with RULES 6."""
    cdef decomposition d
    cdef double rise = v3_dot(displacement, up)
    cdef vec3 along = v3_scale(up, rise)
    cdef vec3 zero = v3(0.0, 0.0, 0.0)
    d.side_vector = v3_sub(displacement, along)
    d.is_moving_up = rise > 0.0
    d.up_vector = along if d.is_moving_up else zero
    d.down_vector = zero if d.is_moving_up else along
    d.has_side_movement = standing_on_moving or v3_max_abs(d.side_vector) > ALMOST_ZERO
    d.step_offset = 0.0 if d.is_moving_up and not standing_on_moving else step_offset
    if d.has_side_movement:
        d.up_vector = v3_madd(d.up_vector, up, d.step_offset)
    return d


cdef aabb temporal_box(const controller_params* p, vec3 centre, vec3 direction) noexcept nogil:
    """All that a motion may touch (RULES 4)."""
    cdef double k = p.radius + p.contact_offset
    cdef vec3 half = v3(k + fabs(p.up.x) * 0.5 * p.height, k + fabs(p.up.y) * 0.5 * p.height,
                        k + fabs(p.up.z) * 0.5 * p.height)
    cdef vec3 end = v3_add(centre, direction)
    cdef vec3 low
    cdef aabb box = box_of(v3_sub(v3_min(centre, end), half), v3_add(v3_max(centre, end), half))
    if p.max_jump_height > 0.0:
        low = v3_madd(centre, p.up, p.max_jump_height if p.rules & RULE_JUMP_VOLUME_UP else -p.max_jump_height)
        box = box_union(box, box_of(v3_sub(low, half), v3_add(low, half)))
    return box


cdef aabb cached_volume(const controller_params* p, aabb temporal, vec3 side) noexcept nogil:
    """The box for which candidates are fetched, so that the next moves find them there (RULES 4)."""
    cdef vec3 half = box_half(temporal)
    cdef vec3 growth = v3_scale(half, VOLUME_GROWTH - 1.0)
    cdef vec3 shift = v3_scale(side, VOLUME_SHIFT * fabs(v3_dot(side, growth)))
    cdef aabb box = box_of(v3_add(v3_sub(temporal.lo, growth), shift), v3_add(v3_add(temporal.hi, growth), shift))
    return box_union(box, temporal)


cdef vec3 collision_response(vec3 target, vec3 position, vec3 direction, vec3 normal, double bump, double friction,
                             bint normalize) noexcept nogil:
    """The new target after a collision (MOVE 8.2)."""
    cdef vec3 reflected = v3_unit(v3_madd(direction, normal, -2.0 * v3_dot(direction, normal)))
    cdef vec3 along = v3_scale(normal, v3_dot(reflected, normal))
    cdef vec3 across = v3_sub(reflected, along)
    cdef double amplitude = v3_len(v3_sub(target, position))
    cdef vec3 r = position
    if bump != 0.0:
        r = v3_madd(r, v3_unit(along) if normalize else along, bump * amplitude)
    if friction != 0.0:
        r = v3_madd(r, v3_unit(across) if normalize else across, friction * amplitude)
    return r


cdef inline bint _too_steep(const controller_params* p, vec3 normal) noexcept nogil:
    """A normal that faces down is not too steep (RULES 6, 9 row 4)."""
    cdef double c = v3_dot(normal, p.up)
    return c < p.slope_limit and (c >= 0.0 or p.rules & RULE_STEEP_FACING_DOWN)


cdef void _drop_proxy(candidates* c, int32_t first, int64_t proxy) noexcept nogil:
    """The actor that follows the character is never met by it."""
    cdef int32_t i, n = first
    for i in range(first, c.n_groups):
        if c.groups[i].owner != OWNER_ACTOR or c.groups[i].id != proxy:
            c.groups[n] = c.groups[i]
            n += 1
    c.n_groups = n


cdef int _gather_others(move_job* m, candidates* c, aabb box) noexcept nogil:
    """Other controllers in the box, in the order of their ids (RULES 8)."""
    cdef move_scratch* k = m.scratch
    cdef int32_t n, i
    cdef void* p
    cdef int status
    if m.world.others == NULL:
        return STATUS_OK
    n = shared_collect(m.world.others, box, &m.world.self, k.others, k.room_others)
    while n > k.room_others:
        # Room for more: others may come by while the lock is open.
        p = realloc(k.others, <size_t>(2 * <int64_t>n) * sizeof(character))
        if p == NULL:
            return STATUS_NO_MEMORY
        k.others = <character*>p
        k.room_others = 2 * n
        n = shared_collect(m.world.others, box, &m.world.self, k.others, k.room_others)
    for i in range(n):
        status = candidates_add_character(c, &k.others[i], i)
        if status != STATUS_OK:
            return status
    return STATUS_OK


cdef int _gather_moving(move_job* m, candidates* c, aabb box, const wall_rule* walls) noexcept nogil:
    """Kinematic and dynamic actors, obstacles, other controllers."""
    cdef int32_t first = c.n_groups
    cdef int status = candidates_gather(c, m.world.moving, 1, box, m.world.mask, walls)
    if status != STATUS_OK:
        return status
    if m.p.proxy >= 0:
        _drop_proxy(c, first, m.p.proxy)
    return _gather_others(m, c, box)


cdef int _update_candidates(move_job* m, aabb temporal) noexcept nogil:
    """Make sure that all shapes that touch the temporal box are at hand (RULES 4, SWEEP 11)."""
    cdef candidate_cache* c = &m.scratch.cache
    cdef int status
    if (c.valid and c.fixed_version == m.world.fixed.version and c.mask == m.world.mask
            and box_inside(temporal, c.bounds)):
        if m.first_query and (c.moving_version != m.world.moving.version or m.world.others != NULL):
            candidates_cut(&c.near, c.fixed_groups, c.fixed_tris)
            c.valid = False
            status = _gather_moving(m, &c.near, c.bounds, &m.walls)
            if status != STATUS_OK:
                return status
            c.moving_version = m.world.moving.version
            c.valid = True
            m.stats.partial_updates += 1
        m.first_query = False
        return STATUS_OK
    c.valid = False
    c.bounds = cached_volume(m.p, temporal, m.side)
    candidates_cut(&c.near, 0, 0)
    status = candidates_gather(&c.near, m.world.fixed, 0, c.bounds, m.world.mask, &m.walls)
    if status != STATUS_OK:
        return status
    c.fixed_version = m.world.fixed.version
    c.mask = m.world.mask
    c.fixed_groups = c.near.n_groups
    c.fixed_tris = c.near.n_tris
    status = _gather_moving(m, &c.near, c.bounds, &m.walls)
    if status != STATUS_OK:
        return status
    c.moving_version = m.world.moving.version
    c.valid = True
    m.first_query = False
    m.stats.full_updates += 1
    return STATUS_OK


cdef inline int _recovers(const controller_params* p) noexcept nogil:
    """The kinds of things that overlap recovery moves out of, as bits."""
    if not p.overlap_recovery:
        return 0
    return RECOVERS | (1 << RECOVER_USER) if p.rules & RULE_RECOVER_USER_GEOMETRY else RECOVERS


cdef int _gather_around(move_job* m, vec3 position, double radius) noexcept nogil:
    """All that recovery may have to leave: looked up anew, so that no cache has a say."""
    cdef candidates* c = &m.scratch.around
    # Leaving a mesh takes several pushes: look that far around.
    cdef aabb box = box_grow(capsule_bounds(v3_sub(position, m.half_axis), v3_add(position, m.half_axis), radius),
                             radius)
    cdef int status
    candidates_cut(c, 0, 0)
    status = candidates_gather(c, m.world.fixed, 0, box, m.world.mask, NULL)
    if status == STATUS_OK:
        status = _gather_moving(m, c, box, NULL)
    return status


cdef int _recover_at_once(move_job* m, vec3* position) noexcept nogil:
    """One sum over all overlaps (RULES 9 row 5, MOVE 9.2)."""
    cdef candidates* c = &m.scratch.around
    cdef vec3 p0 = v3_sub(position[0], m.half_axis), p1 = v3_add(position[0], m.half_axis)
    cdef vec3 total = v3(0.0, 0.0, 0.0)
    cdef push_out push
    cdef int32_t i
    cdef uint32_t value
    cdef int recovers = _recovers(m.p)
    cdef int status = _gather_around(m, position[0], m.p.radius + m.p.contact_offset)
    if status != STATUS_OK:
        return status
    for i in range(c.n_groups):
        if not group_recovers(&c.groups[i], recovers):
            continue
        push = group_push(c, &c.groups[i], p0, p1, m.p.radius)
        if not push.overlapping:
            continue
        if m.world.filters:
            if not book_answer(&m.scratch.book, ASK_FILTER, c.groups[i].owner, c.groups[i].id, &value):
                return STATUS_NEED_ANSWER
            if value == 0:
                continue
        total = v3_madd(total, push.dir, push.depth + m.p.contact_offset)
        m.stats.recoveries += 1
    if v3_len(total) > EPSILON_DISTANCE:
        position[0] = v3_add(position[0], total)
    return STATUS_OK


cdef int _recover(move_job* m, vec3* position) noexcept nogil:
    """Overlap recovery: out of what is overlapped deepest, up to four times (RULES 7.5)."""
    cdef candidates* c = &m.scratch.around
    cdef double radius = m.p.radius + m.p.contact_offset
    cdef vec3 p0, p1
    cdef push_out push
    cdef int32_t group
    cdef int status, recovers = _recovers(m.p)
    cdef int turn
    m.s.overlap = 0.0
    if m.p.rules & RULE_RECOVERY_SUM:
        status = _recover_at_once(m, position)
        if status != STATUS_OK:
            return status
    else:
        for turn in range(MAX_RECOVERIES):
            status = _gather_around(m, position[0], radius)
            if status != STATUS_OK:
                return status
            p0 = v3_sub(position[0], m.half_axis)
            p1 = v3_add(position[0], m.half_axis)
            push = candidates_deepest(c, p0, p1, radius, recovers, &group)
            if m.scratch.book.asking:
                return STATUS_NEED_ANSWER
            if not push.overlapping:
                return STATUS_OK
            position[0] = v3_madd(position[0], push.dir, push.depth)
            m.stats.recoveries += 1
    # What is left: more than nothing means that the character is crushed.
    status = _gather_around(m, position[0], radius)
    if status != STATUS_OK:
        return status
    push = candidates_deepest(c, v3_sub(position[0], m.half_axis), v3_add(position[0], m.half_axis), m.p.radius,
                              recovers, &group)
    if m.scratch.book.asking:
        return STATUS_NEED_ANSWER
    if push.overlapping:
        m.s.overlap = push.depth
    return STATUS_OK


cdef int _log_hit(hit_log* log, const hit_record* r) noexcept nogil:
    cdef void* p
    cdef int32_t room
    if log.n == log.room:
        room = 2 * log.room + 16
        p = realloc(log.records, <size_t>room * sizeof(hit_record))
        if p == NULL:
            return STATUS_NO_MEMORY
        log.records = <hit_record*>p
        log.room = room
    log.records[log.n] = r[0]
    log.n += 1
    return STATUS_OK


cdef bint _sweep_test(move_job* m, vec3 direction, int max_iterations, double min_distance, int sweep_pass,
                      int* collisions) noexcept nogil:
    """doSweepTest (MOVE 7.2, RULES 5): move along, slide where something is in the way.

    Returns whether a motion was tried; m.status tells of a failure."""
    cdef controller_state* s = &m.s
    cdef candidates* near = &m.scratch.cache.near
    cdef vec3 position = s.position, target, way, normal, axis
    cdef double length, asked
    cdef bint moved = False, upright, sliding
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const candidate_group* g
    cdef const placed* item
    cdef const triangle* t
    cdef hit_record record
    cdef vec3 face
    cdef double h
    cdef uint32_t behavior
    cdef int recovers = _recovers(m.p)
    collisions[0] = 0
    if v3_is_zero(direction):
        return False
    # RULES 5: a pass that sets out forgets what the one before touched.
    s.marks &= ~<uint32_t>(VALIDATE_TRIANGLE_DOWN | TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
    s.touched_actor = s.touched_obstacle = s.touched_controller = -1
    asked = v3_len(direction)
    target = v3_add(position, direction)
    while max_iterations > 0:
        max_iterations -= 1
        way = v3_sub(target, position)
        m.status = _update_candidates(m, temporal_box(m.p, position, way))
        if m.status != STATUS_OK:
            return moved
        length = v3_len(way)
        if length <= min_distance:
            break
        way = v3_scale(way, 1.0 / length)
        if v3_dot(way, direction) <= TURNED_BACK * asked:
            break
        moved = True
        m.stats.iterations += 1
        cast = capsule_cast_of(v3_sub(position, m.half_axis), v3_add(position, m.half_axis), m.p.radius, way,
                               length + m.p.contact_offset, True, True)
        if m.p.rules & RULE_CULL_PARALLEL:
            cast.culls_parallel = True
        if not candidates_cast(near, &cast, recovers, &hit):
            if m.scratch.book.asking:
                m.status = STATUS_NEED_ANSWER
                return moved
            position = target
            break
        if hit.base.overlapping:
            m.status = _recover(m, &position)
            collisions[0] += 1
            s.position = position
            return moved
        g = &near.groups[hit.group]
        item = NULL
        if g.part < 2:
            item = &m.world.fixed.items[g.item] if g.part == 0 else &m.world.moving.items[g.item]
        t = &near.tris[hit.base.tri] if hit.base.tri >= 0 else NULL
        face = hit.base.normal
        if t != NULL:
            face = v3_scale(t.n, -1.0) if g.two_sided and v3_dot(t.n, way) > 0.0 else t.n
        upright = sliding = False
        record.owner = g.owner
        record.sweep_pass = sweep_pass
        record.id = g.id
        record.dynamic = g.owner == OWNER_ACTOR and g.body == BODY_DYNAMIC
        record.triangle = near.source[hit.base.tri] if t != NULL else -1
        record.has_data = record.triangle >= 0 and item.kind == SHAPE_MESH and item.mesh.data != NULL
        record.data = item.mesh.data[record.triangle] if record.has_data else 0
        record.position = hit.base.point
        record.normal = hit.base.normal
        record.direction = way
        record.length = length
        record.distance = hit.base.distance
        axis = v3_madd(position, way, hit.base.distance)
        record.along = point_segment_parameter(hit.base.point, v3_sub(axis, m.half_axis), v3_add(axis, m.half_axis))
        if sweep_pass == PASS_DOWN:
            behavior = g.behavior
            if m.world.asks_behavior and not book_answer(&m.scratch.book, ASK_BEHAVIOR, g.owner, g.id, &behavior):
                m.status = STATUS_NEED_ANSWER
                return moved
            sliding = (behavior & CAN_SLIDE) != 0
            if g.owner == OWNER_ACTOR:
                s.marks &= ~<uint32_t>(TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
                s.touched_actor = g.id
                s.touched_point = hit.base.point
                s.touched_local = unplace_point(item, hit.base.point)
                if g.body == BODY_STATIC and t != NULL:
                    s.marks |= VALIDATE_TRIANGLE_DOWN
                    s.down_normal = face
                    h = v3_dot(t.a, m.p.up)
                    s.touched_min = s.touched_max = h
                    h = v3_dot(t.b, m.p.up)
                    s.touched_min = f_min(s.touched_min, h)
                    s.touched_max = f_max(s.touched_max, h)
                    h = v3_dot(t.c, m.p.up)
                    s.touched_min = f_min(s.touched_min, h)
                    s.touched_max = f_max(s.touched_max, h)
            elif g.owner == OWNER_OBSTACLE:
                s.marks |= TOUCH_OBSTACLE
                s.touched_obstacle = g.id
                if s.touched_actor < 0:
                    s.touched_point = hit.base.point
                    s.touched_local = unplace_point(item, hit.base.point)
            else:
                s.marks |= TOUCH_OTHER_CONTROLLER
                s.touched_controller = g.id
            s.ground.touching = True
            s.ground.normal = hit.base.normal
            s.ground.point = hit.base.point
            s.ground.owner = g.owner
            s.ground.id = g.id
            s.ground.triangle = record.triangle
            s.ground.has_data = record.has_data
            s.ground.data = record.data
            s.ground.has_face = t != NULL
            s.ground.face_normal = face
            s.ground.distance = f_min(hit.base.distance, m.p.contact_offset)
        elif sweep_pass == PASS_SIDE or sweep_pass == PASS_SENSOR:
            if g.owner == OWNER_ACTOR and g.body == BODY_STATIC and t != NULL:
                s.marks |= VALIDATE_TRIANGLE_SIDE
                s.side_normal = face
                if m.p.prevent_vertical_sliding and v3_dot(face, m.p.up) < 0.0:
                    upright = True
        if sweep_pass != PASS_SENSOR:
            m.status = _log_hit(&m.scratch.log, &record)
            if m.status != STATUS_OK:
                return moved
        if sliding and collisions[0] == 0:
            max_iterations += SLIDE_ITERATIONS
        collisions[0] += 1
        s.contact_height = v3_dot(hit.base.point, m.p.up)
        if hit.base.distance > m.p.contact_offset:
            position = v3_madd(position, way, hit.base.distance - m.p.contact_offset)
        normal = hit.base.normal
        if upright or ((s.marks & WALK_EXPERIMENT) and m.p.non_walkable != NON_WALKABLE_FORCE_SLIDING):
            normal = v3_unit(v3_reject(normal, m.p.up))
        target = collision_response(target, position, way, normal, 0.0, 1.0, (s.marks & NORMALIZE_RESPONSE) != 0)
    s.position = position
    return moved


cdef int _move_character(move_job* m, vec3 displacement, double min_distance) noexcept nogil:
    """moveCharacter (MOVE 6.2, RULES 6): the passes up, aside and down. Returns collision flags."""
    cdef controller_state* s = &m.s
    cdef const controller_params* p = m.p
    cdef vec3 up = p.up, saved, down
    cdef double rise = v3_dot(displacement, up)
    cdef double start_height = v3_dot(s.position, up)
    cdef double bottom = start_height - (0.5 * p.height + p.radius)
    cdef double gained, recover
    cdef bint experiment = (s.marks & WALK_EXPERIMENT) != 0
    cdef bint handles_slopes = p.slope_limit > 0.0, constrained
    cdef int flags = 0, collisions = 0, iterations
    cdef decomposition d = decompose(displacement, up, p.step_offset, m.standing_on_moving)
    s.marks &= ~<uint32_t>(HIT_NON_WALKABLE | IS_MOVING_UP | NORMALIZE_RESPONSE)
    if experiment and p.rules & RULE_NORMALIZE_EXPERIMENT:
        s.marks |= NORMALIZE_RESPONSE
    s.ground.touching = False
    if d.is_moving_up:
        s.marks |= IS_MOVING_UP
    m.side = v3_unit(d.side_vector)
    # One query for the whole move, the step included (MOVE 5.2).
    m.status = _update_candidates(m, temporal_box(p, s.position, displacement))
    if m.status != STATUS_OK:
        return 0

    if not experiment:
        iterations = MAX_ITERATIONS
        if p.prevent_vertical_sliding or v3_max_abs(d.side_vector) > ALMOST_ZERO:
            iterations = 1
        if _sweep_test(m, d.up_vector, iterations, min_distance, PASS_UP, &collisions) and collisions > 0:
            flags |= COLLISION_UP
            gained = v3_dot(s.position, up) - start_height
            d.step_offset = f_min(d.step_offset, gained)
        if m.status != STATUS_OK:
            return 0

    s.marks &= ~<uint32_t>VALIDATE_TRIANGLE_SIDE
    if _sweep_test(m, d.side_vector, MAX_ITERATIONS, min_distance, PASS_SIDE, &collisions) and collisions > 0:
        flags |= COLLISION_SIDES
    if m.status != STATUS_OK:
        return 0

    constrained = p.climbing == CLIMBING_CONSTRAINED
    if (p.rules & RULE_SIDE_CHECK_AT_ONCE and handles_slopes and constrained and s.marks & VALIDATE_TRIANGLE_SIDE
            and _too_steep(p, s.side_normal) and s.contact_height > bottom + d.step_offset):
        s.marks |= HIT_NON_WALKABLE
        if not experiment:
            return flags

    if constrained and (p.rules & RULE_SENSOR_DECIDES or not s.marks & VALIDATE_TRIANGLE_SIDE):
        if v3_len(d.side_vector) < p.radius:
            saved = s.position
            _sweep_test(m, v3_scale(v3_unit(d.side_vector), p.radius), 1, min_distance, PASS_SENSOR, &collisions)
            s.position = saved
            if m.status != STATUS_OK:
                return 0
            if (p.rules & RULE_SENSOR_DECIDES and handles_slopes and collisions > 0
                    and s.marks & VALIDATE_TRIANGLE_SIDE and _too_steep(p, s.side_normal)
                    and s.contact_height > bottom + d.step_offset):
                s.marks |= HIT_NON_WALKABLE

    down = d.down_vector
    if d.has_side_movement and (not experiment or p.rules & RULE_STEP_BACK_IN_EXPERIMENT):
        down = v3_madd(down, up, -d.step_offset)
    iterations = 1
    if experiment and p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
        iterations = MAX_ITERATIONS
    if _sweep_test(m, down, iterations, min_distance, PASS_DOWN, &collisions) and collisions > 0:
        if rise <= 0.0:
            flags |= COLLISION_DOWN
        if handles_slopes and not s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE):
            if (constrained and not p.rules & RULE_SIDE_CHECK_AT_ONCE and s.marks & VALIDATE_TRIANGLE_SIDE
                    and _too_steep(p, s.side_normal) and s.contact_height > bottom + d.step_offset):
                s.marks |= HIT_NON_WALKABLE
                if not experiment:
                    return flags
    if m.status != STATUS_OK:
        return 0

    if (handles_slopes and not s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
            and s.marks & VALIDATE_TRIANGLE_DOWN and rise <= 0.0
            and s.touched_max - bottom > p.step_offset and _too_steep(p, s.down_normal)):
        s.marks |= HIT_NON_WALKABLE
        if not experiment:
            return flags
        if p.rules & RULE_RECOVERY_SWEEP_AFTER:
            return flags
        s.marks |= NORMALIZE_RESPONSE
        gained = v3_dot(s.position, up) - start_height
        recover = f_max(0.0, gained) + fabs(rise)
        if recover < min_distance:
            min_distance = recover / MAX_ITERATIONS
        # PhysX calls this motion down an UP pass; hits are reported as such.
        _sweep_test(m, v3_scale(up, -recover), MAX_ITERATIONS, min_distance, PASS_UP, &collisions)
        if not p.rules & RULE_NORMALIZE_EXPERIMENT:
            s.marks &= ~<uint32_t>NORMALIZE_RESPONSE
    return flags


cdef const placed* _find(const world_part* part, int64_t id) noexcept nogil:
    """The item of that id; items stand in the order of ids."""
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


cdef bint _still_there(move_job* m, const placed* item) noexcept nogil:
    """Whether a remembered thing may still be met; may set m.status to STATUS_NEED_ANSWER."""
    cdef uint32_t value
    if item == NULL or not item.layer & m.world.mask:
        return False
    if not m.world.filters:
        return True
    if not book_answer(&m.scratch.book, ASK_FILTER, OWNER_OBSTACLE if item.obstacle else OWNER_ACTOR, item.id, &value):
        m.status = STATUS_NEED_ANSWER
        return False
    return value != 0


cdef const placed* _look_below(move_job* m) noexcept nogil:
    """What stands below the centre, no farther than half the height: moving things only (RULES 7.2)."""
    cdef candidates* c = &m.scratch.around
    cdef controller_state* s = &m.s
    cdef vec3 down = v3_scale(m.p.up, -1.0)
    cdef double reach = 0.5 * m.p.height + m.p.radius
    cdef capsule_cast ray
    cdef world_hit hit
    cdef const placed* item
    candidates_cut(c, 0, 0)
    m.status = candidates_gather(c, m.world.moving, 1, capsule_bounds(s.position, v3_madd(s.position, down, reach), 0.0),
                                 m.world.mask, NULL)
    if m.status != STATUS_OK:
        return NULL
    if m.p.proxy >= 0:
        _drop_proxy(c, 0, m.p.proxy)
    ray = capsule_cast_of(s.position, s.position, 0.0, down, reach, False, True)
    if not candidates_cast(c, &ray, 0xF, &hit):
        if m.scratch.book.asking:
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


cdef vec3 _ride(move_job* m, vec3 displacement) noexcept nogil:
    """Be carried by what one stands on (RULES 7.2 and 7.3, MOVE 13); the displacement that is left to make."""
    cdef controller_state* s = &m.s
    cdef const placed* item = NULL
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


cdef int move_controller(const controller_params* p, controller_state* state, const move_world* world,
                         move_scratch* scratch, vec3 displacement, double dt, double min_distance,
                         move_stats* stats) noexcept nogil:
    """Controller::move (MOVE 3.2, RULES 7)."""
    cdef move_job m
    cdef vec3 start = state.position, carried, whole
    cdef int64_t tested = scratch.cache.near.tested
    cdef double recover
    cdef int flags, collisions
    memset(&m, 0, sizeof(move_job))
    memset(stats, 0, sizeof(move_stats))
    m.p = p
    m.s = state[0]
    m.world = world
    m.scratch = scratch
    m.stats = stats
    m.walls.height = p.invisible_wall_height
    m.walls.slope_limit = p.slope_limit
    m.walls.up = p.up
    m.half_axis = v3_scale(p.up, 0.5 * p.height)
    m.first_query = True
    m.s.overlap = 0.0
    scratch.log.n = 0
    scratch.book.asking = False
    scratch.cache.near.filter = scratch.around.filter = &scratch.book if world.filters else NULL
    displacement = v3_add(displacement, m.s.separation)
    m.s.separation = v3(0.0, 0.0, 0.0)
    displacement = _ride(&m, displacement)
    if m.status != STATUS_OK:
        return m.status
    carried = m.s.position
    whole = displacement
    flags = _move_character(&m, displacement, min_distance)
    if m.status == STATUS_OK and m.s.marks & HIT_NON_WALKABLE:
        # Once more from where it stood after riding, as the walk experiment (MOVE 3.2.5, RULES 7.4).
        m.s.marks |= WALK_EXPERIMENT
        m.s.position = carried
        if p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            displacement = v3_along(whole, p.up)
            if p.rules & RULE_FORCE_SLIDE_HORIZONTAL:
                displacement = v3_sub(whole, displacement)
        flags = _move_character(&m, displacement, min_distance)
        if (m.status == STATUS_OK and p.rules & RULE_RECOVERY_SWEEP_AFTER and m.s.marks & VALIDATE_TRIANGLE_DOWN
                and _too_steep(p, m.s.down_normal)):
            recover = v3_dot(m.s.position, p.up) - v3_dot(carried, p.up)
            recover = f_max(0.0, recover) + fabs(v3_dot(whole, p.up))
            _sweep_test(&m, v3_scale(p.up, -recover), MAX_ITERATIONS, min_distance, PASS_UP, &collisions)
        m.s.marks &= ~<uint32_t>(WALK_EXPERIMENT | NORMALIZE_RESPONSE)
    stats.triangles_tested = scratch.cache.near.tested - tested
    if m.status != STATUS_OK:
        return m.status
    if not v3_finite(m.s.position):
        return STATUS_NOT_FINITE
    m.s.flags = flags
    m.s.velocity = v3_scale(v3_sub(m.s.position, start), 1.0 / dt) if dt > 0.0 else v3(0.0, 0.0, 0.0)
    state[0] = m.s
    return STATUS_OK


# ---------------------------------------------------------------------------
# The Python side

cdef tuple FLAGS = tuple([CollisionFlags(i) for i in range(8)])
cdef tuple PASSES = (Pass.UP, Pass.SIDE, Pass.DOWN, Pass.SENSOR)
cdef dict CLIMBING = {"easy": CLIMBING_EASY, "constrained": CLIMBING_CONSTRAINED}
cdef dict NON_WALKABLE = {"prevent_climbing": NON_WALKABLE_PREVENT_CLIMBING,
                          "force_sliding": NON_WALKABLE_FORCE_SLIDING}
# A displacement or position component may not be larger, metres (see Scene).
cdef double FARTHEST = 1e12
# A shorter time would make the velocity overflow, seconds.
cdef double SHORTEST = 1e-100


cdef vec3 _as_place(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > FARTHEST:
        raise ValueError(f"{name} must not exceed {FARTHEST:g} m, got {from_vec3(v)}")
    return v


cdef bint _as_bool(object value, str name) except -1:
    if value is True or value is False:
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {value!r}")


cdef int _as_mode(object value, dict modes, object enum, str name) except -1:
    if isinstance(value, enum):
        value = value.value
    if not isinstance(value, str) or value not in modes:
        raise ValueError(f"{name} must be one of {sorted(modes)}, not {value!r}")
    return modes[value]


cdef uint32_t _as_bits(object value, str name) except? 0:
    try:
        bits = int(value)
        if bits != value:
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if not 0 <= bits <= 0xFFFFFFFF:
        raise ValueError(f"{name} must fit into 32 bits, got {bits}")
    return <uint32_t>bits


cdef dict RULE_SETS = {"physx": Rules.PHYSX, "document": Rules.DOCUMENT}


cdef uint32_t _as_rules(object value) except? 0:
    if isinstance(value, str):
        if value not in RULE_SETS:
            raise ValueError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
        return <uint32_t>int(RULE_SETS[value])
    if not isinstance(value, Rules):
        raise TypeError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
    return _as_bits(value, "rules")


cdef object _as_callback(object value, str name):
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


cdef int _check(const controller_params* p) except -1:
    """What must hold between parameters."""
    if p.step_offset > p.height + 2.0 * p.radius:
        raise ValueError(f"step_offset must not exceed the character's height {p.height + 2.0 * p.radius}, "
                         f"got {p.step_offset}")
    return 0


def decompose_movement(displacement, up=(0.0, 0.0, 1.0), step_offset=0.5, standing_on_moving=False):
    """Split a displacement into the three passes (MOVE 4.2, RULES 6).

    Parameters
    ----------
    displacement : (3,) floats
        Metres.
    up : (3,) floats
        Any length but zero.
    step_offset : float
        Metres, >= 0.
    standing_on_moving : bool
        The character stands on something that moves.

    Returns
    -------
    dict
        up_vector, side_vector, down_vector (tuples of floats, metres), step_offset
        (0 when cancelled by a jump), is_moving_up, has_side_movement.
    """
    cdef decomposition d = decompose(as_vec3(displacement, "displacement"), as_unit(up, "up"),
                                     as_not_negative(step_offset, "step_offset"),
                                     _as_bool(standing_on_moving, "standing_on_moving"))
    return {
        "up_vector": from_vec3(d.up_vector),
        "side_vector": from_vec3(d.side_vector),
        "down_vector": from_vec3(d.down_vector),
        "step_offset": d.step_offset,
        "is_moving_up": bool(d.is_moving_up),
        "has_side_movement": bool(d.has_side_movement),
    }


@cython.final
cdef class Hit:
    """One collision of a move."""

    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object obstacle
    cdef readonly object triangle
    cdef readonly object data
    cdef hit_record r

    @property
    def other(self):
        """The actor, controller or obstacle that was hit; None when it is gone."""
        if self.actor is not None:
            return self.actor
        return self.controller if self.controller is not None else self.obstacle

    @property
    def dynamic(self):
        """True for a dynamic body, which is yours to push: at position, along direction."""
        return bool(self.r.dynamic)

    @property
    def position(self):
        """Point of contact, metres."""
        return from_vec3(self.r.position)

    @property
    def normal(self):
        """Unit normal, out of what was hit."""
        return from_vec3(self.r.normal)

    @property
    def direction(self):
        """Unit direction of the motion that hit."""
        return from_vec3(self.r.direction)

    @property
    def length(self):
        """How long the motion still was, metres."""
        return self.r.length

    @property
    def distance(self):
        """How far along the direction the hit is, metres."""
        return self.r.distance

    @property
    def pass_(self):
        """The pass (Pass) of the move."""
        return PASSES[self.r.sweep_pass]

    def __repr__(self):
        return (f"<Hit: {self.other!r}, triangle {self.triangle}, pass {self.pass_.name}, position {self.position}, "
                f"normal {self.normal}>")


@cython.final
cdef class Ground:
    """What a character stands on."""

    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object obstacle
    cdef readonly object triangle
    cdef readonly object data
    cdef readonly bint walkable
    cdef ground_contact g

    @property
    def normal(self):
        """Unit contact normal."""
        return from_vec3(self.g.normal)

    @property
    def face_normal(self):
        """Unit normal of the triangle below; the contact normal where there is none."""
        return from_vec3(self.g.face_normal)

    @property
    def point(self):
        """Point of contact, metres."""
        return from_vec3(self.g.point)

    @property
    def distance(self):
        """Gap between the capsule and the ground, metres."""
        return self.g.distance

    def __repr__(self):
        what = self.actor if self.actor is not None else self.controller or self.obstacle
        return (f"<Ground: {what!r}, triangle {self.triangle}, normal {self.normal}, "
                f"walkable {bool(self.walkable)}>")


@cython.final
cdef class State:
    """What a character remembers of its last move."""

    cdef readonly object standing_on
    cdef readonly bint on_controller
    cdef readonly bint on_obstacle
    cdef readonly bint moving_up
    cdef readonly bint sliding
    cdef readonly double overlap
    cdef readonly double contact_point_height
    cdef readonly object ground_triangle
    cdef vec3 velocity_
    cdef vec3 platform_delta_

    @property
    def velocity(self):
        """What was really travelled / dt, m/s."""
        return from_vec3(self.velocity_)

    @property
    def platform_delta(self):
        """How far what it stands on carried it, metres."""
        return from_vec3(self.platform_delta_)

    def __repr__(self):
        return (f"<State: standing on {self.standing_on!r}, moving_up {bool(self.moving_up)}, "
                f"sliding {bool(self.sliding)}, overlap {self.overlap:.3g}>")


@cython.final
cdef class MoveStats:
    """What the last move cost."""

    cdef readonly int64_t iterations
    cdef readonly int64_t full_updates
    cdef readonly int64_t partial_updates
    cdef readonly int64_t triangles_tested
    cdef readonly int64_t recoveries

    def __repr__(self):
        return (f"<MoveStats: {self.iterations} iterations, {self.full_updates} full and {self.partial_updates} "
                f"partial updates, {self.triangles_tested} triangles tested, {self.recoveries} recoveries>")


cdef class CharacterController:
    """A capsule that walks, slides, steps and falls through a scene by PhysX's rules.

    Parameters
    ----------
    scene : Scene
        The world.
    position : (3,) floats
        Centre of the capsule, metres.
    radius : float
        Of the capsule, metres, > 0.
    height : float
        Distance between the centres of its two spheres, metres, >= 0.
    up : (3,) floats
        Up direction, any length but zero; the capsule stands along it.
    step_offset : float
        Highest step that is climbed, metres; at most the character's whole height.
    contact_offset : float
        Gap kept between capsule and world, metres.
    slope_limit : float
        Cosine of the steepest walkable angle, 0 to 1; 0 switches slopes off.
    climbing_mode : {'easy', 'constrained'} or ClimbingMode
        'constrained' never climbs higher than the step offset.
    non_walkable_mode : {'prevent_climbing', 'force_sliding'} or NonWalkableMode
        On slopes that are too steep: stand but do not climb, or slide down.
    rules : {'physx', 'document'} or Rules
        The rule set (RULES 9).
    overlap_recovery : bool
        Move out of static and kinematic shapes found overlapping.
    prevent_vertical_sliding : bool
        Do not slide up or down along ceilings.
    invisible_wall_height : float
        When > 0, triangles too steep to walk on become walls of this height, metres.
    max_jump_height : float
        Widens the volume that is looked up downwards, metres (for invisible walls).
    layer, mask : int
        Bit sets: the layer others see it on, the layers it sees.
    collide : bool
        Meet other controllers that have it too, where each one's layer meets the
        other's mask.
    on_hit : callable, optional
        ``on_hit(hit)`` for each collision of a move, before the move takes effect.
    behavior : callable, optional
        ``behavior(other) -> Behavior``: what may be done on an actor, obstacle or
        controller; the default is the other's own flags.
    filter : callable, optional
        ``filter(other) -> bool``: whether it may be met; asked at most once per thing
        and move, and only about what would be met.
    surface : Behavior
        What other characters may do on this one.
    user_data : object
        Yours.

    Notes
    -----
    ``foot_position`` is half the whole height plus the contact offset below the
    centre, as PhysX has it (RULES 1).

    Thread safety: a controller belongs to one thread at a time; a second one that
    moves it gets RuntimeError. Different controllers may share a scene freely; a move
    releases the GIL.
    """

    def __cinit__(self, *args, **kwargs):
        scratch_init(&self.scratch)
        memset(&self.st, 0, sizeof(controller_state))
        memset(&self.last, 0, sizeof(move_stats))
        self.busy = 0
        self.removed = False
        self.slot = -1
        self.id = -1
        self.scratch.cache.valid = False

    def __dealloc__(self):
        if self.slot >= 0 and self.scene is not None:
            shared_remove(&self.scene.neighbours.shared, self.slot)
        scratch_free(&self.scratch)

    def __init__(self, scene, position=(0.0, 0.0, 0.0), radius=0.4, height=1.0, up=(0.0, 0.0, 1.0), step_offset=0.5,
                 contact_offset=0.01, slope_limit=0.707, climbing_mode="easy", non_walkable_mode="prevent_climbing",
                 rules="physx", overlap_recovery=True, prevent_vertical_sliding=False, invisible_wall_height=0.0,
                 max_jump_height=0.0, layer=1, mask=0xFFFFFFFF, collide=False, on_hit=None, behavior=None,
                 filter=None, surface=Behavior.NONE, user_data=None):
        cdef controller_params p
        cdef vec3 place
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        memset(&p, 0, sizeof(controller_params))
        place = _as_place(position, "position")
        p.radius = as_positive(radius, "radius")
        p.height = as_not_negative(height, "height")
        p.up = as_unit(up, "up")
        p.step_offset = as_not_negative(step_offset, "step_offset")
        p.contact_offset = as_not_negative(contact_offset, "contact_offset")
        p.slope_limit = _as_slope_limit(slope_limit)
        p.climbing = _as_mode(climbing_mode, CLIMBING, ClimbingMode, "climbing_mode")
        p.non_walkable = _as_mode(non_walkable_mode, NON_WALKABLE, NonWalkableMode, "non_walkable_mode")
        p.rules = _as_rules(rules)
        p.collide = _as_bool(collide, "collide")
        p.surface = _as_bits(surface, "surface")
        p.proxy = -1
        p.overlap_recovery = _as_bool(overlap_recovery, "overlap_recovery")
        p.prevent_vertical_sliding = _as_bool(prevent_vertical_sliding, "prevent_vertical_sliding")
        p.invisible_wall_height = as_not_negative(invisible_wall_height, "invisible_wall_height")
        p.max_jump_height = as_not_negative(max_jump_height, "max_jump_height")
        p.layer = _as_bits(layer, "layer")
        p.mask = _as_bits(mask, "mask")
        on_hit = _as_callback(on_hit, "on_hit")
        behavior = _as_callback(behavior, "behavior")
        filter = _as_callback(filter, "filter")
        _check_size(&p)
        _check(&p)
        if self.scene is not None:
            raise RuntimeError("a CharacterController is initialised once")
        self.scene = scene
        self.params = p
        self.on_hit_ = on_hit
        self.behavior_ = behavior
        self.filter_ = filter
        self.user_data = user_data
        _forget(&self.st, place)
        with self.scene.lock:
            self.id = self.scene.next_character
            self.scene.next_character += 1
            self.scene.characters_[self.id] = weakref.ref(self, _Unlist(scene, self.id))
        self.publish()

    cdef character as_character(self) noexcept:
        """How others see it."""
        cdef character c
        cdef vec3 half = v3_scale(self.params.up, 0.5 * self.params.height)
        c.id = self.id
        c.p0 = v3_sub(self.st.position, half)
        c.p1 = v3_add(self.st.position, half)
        c.radius = self.params.radius
        c.layer = self.params.layer
        c.mask = self.params.mask
        c.behavior = self.params.surface
        c.group = 0
        return c

    cdef int publish(self) except -1:
        """Tell others where it is."""
        cdef character c = self.as_character()
        if self.params.collide:
            if self.slot < 0:
                self.slot = shared_add(&self.scene.neighbours.shared, &c)
                if self.slot < 0:
                    raise_status(self.slot)
            else:
                shared_update(&self.scene.neighbours.shared, self.slot, &c)
        elif self.slot >= 0:
            shared_remove(&self.scene.neighbours.shared, self.slot)
            self.slot = -1
        if self.proxy_ is not None:
            self.proxy_.move_to(from_vec3(self.st.position))
        return 0

    cdef int answer(self, object filter) except -1:
        """Ask the user what the move wants to know."""
        cdef answer a = self.scratch.book.wanted
        cdef object other = _other(self.scene, a.owner, a.id)
        a.value = 0
        if other is not None:
            if a.question == ASK_FILTER:
                a.value = 1 if filter(other) else 0
            else:
                said = self.behavior_(other)
                a.value = _as_bits(0 if said is None else said, "the answer of behavior")
        raise_status(book_add(&self.scratch.book, &a))
        return 0

    cdef int enter(self) except -1:
        """Take the controller for this thread; RuntimeError when another has it."""
        with cython.critical_section(self):
            if self.scene is None:
                raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
            if self.removed:
                raise RuntimeError("the controller has been removed")
            if self.busy:
                raise RuntimeError("the controller is in use by another thread")
            self.busy = 1
        return 0

    cdef void leave(self) noexcept:
        self.busy = 0

    def move(self, displacement, dt, *, min_distance=0.0, mask=None, filter=None):
        """Move by a displacement, sliding along what is in the way.

        Parameters
        ----------
        displacement : (3,) floats
            Wanted motion, metres, gravity included.
        dt : float
            Time that passes, seconds, >= 0; for the velocity.
        min_distance : float
            A motion no longer than this is not begun, metres.
        mask : int, optional
            Layers to see in this move; the default is the character's mask.
        filter : callable, optional
            For this move, instead of the character's filter.

        Returns
        -------
        CollisionFlags
            SIDES 1, UP 2, DOWN 4.

        Raises
        ------
        ValueError, TypeError
            An argument makes no sense; nothing has changed.
        RuntimeError
            Another thread moves the controller, a callback of its own move does, or it
            has been removed.

        Notes
        -----
        What a callback raises reaches the caller, and the controller stays as it was.
        """
        cdef vec3 d = _as_place(displacement, "displacement")
        cdef double time = as_not_negative(dt, "dt"), least = as_not_negative(min_distance, "min_distance")
        cdef Snapshot snap
        cdef move_world w
        cdef controller_state trial
        cdef move_stats cost
        cdef int status
        w.mask = self.params.mask if mask is None else _as_bits(mask, "mask")
        if filter is None:
            filter = self.filter_
        elif not callable(filter):
            raise TypeError(f"filter must be callable or None, not {type(filter).__name__}")
        self.enter()
        try:
            snap = self.scene.snapshot()
            w.fixed = &snap.fixed.data
            w.moving = &snap.moving.data
            w.others = NULL
            if self.params.collide:
                w.others = &self.scene.neighbours.shared
                w.self = self.as_character()
                w.self.mask = w.mask
            w.filters = filter is not None
            w.asks_behavior = self.behavior_ is not None
            self.scratch.book.n = 0
            while True:
                trial = self.st
                with nogil:
                    status = move_controller(&self.params, &trial, &w, &self.scratch, d, time, least, &cost)
                if status != STATUS_NEED_ANSWER:
                    break
                self.answer(filter)
            raise_status(status)
            if self.on_hit_ is not None:
                for hit in _hits(self.scene, &self.scratch.log):
                    self.on_hit_(hit)
            self.st = trial
            self.last = cost
            if self.slot >= 0 or self.proxy_ is not None:
                self.publish()
        finally:
            self.leave()
        return FLAGS[self.st.flags]

    @property
    def position(self):
        """Centre of the capsule, metres. Set: moved without forgetting what it stands on."""
        return from_vec3(self.st.position)

    @position.setter
    def position(self, value):
        cdef vec3 p = _as_place(value, "position")
        self.enter()
        try:
            self.st.position = p
            self.publish()
        finally:
            self.leave()

    cdef double _foot(self) noexcept:
        return 0.5 * self.params.height + self.params.radius + self.params.contact_offset

    @property
    def foot_position(self):
        """Half the whole height plus the contact offset below the centre, metres. Settable."""
        return from_vec3(v3_madd(self.st.position, self.params.up, -self._foot()))

    @foot_position.setter
    def foot_position(self, value):
        cdef vec3 p = _as_place(value, "foot_position")
        self.enter()
        try:
            self.st.position = v3_madd(p, self.params.up, self._foot())
            self.publish()
        finally:
            self.leave()

    def teleport(self, position):
        """Put the character elsewhere; it forgets what it stands on.

        Parameters
        ----------
        position : (3,) floats
            Centre of the capsule, metres.
        """
        cdef vec3 p = _as_place(position, "position")
        self.enter()
        try:
            _forget(&self.st, p)
            self.scratch.log.n = 0
            self.publish()
        finally:
            self.leave()

    def remove(self):
        """Take the character out of the scene; it cannot be moved any more."""
        self.enter()
        try:
            self.removed = True
            if self.slot >= 0:
                shared_remove(&self.scene.neighbours.shared, self.slot)
                self.slot = -1
            self.scene.characters_.pop(self.id, None)
            if self.proxy_ is not None and self.proxy_.scene_ is not None:
                self.scene.remove(self.proxy_)
            self.proxy_ = None
            scratch_free(&self.scratch)
        finally:
            self.leave()

    def add_proxy(self, layer=1, user_data=None):
        """Give the character a kinematic capsule actor that follows it after each move (MOVE 3.2.6).

        Questions to the world and other characters see it; its owner never meets it.

        Parameters
        ----------
        layer : int
            Of the actor.
        user_data : object
            Of the actor.

        Returns
        -------
        Actor
        """
        if self.proxy_ is not None and self.proxy_.scene_ is not None:
            raise RuntimeError("the controller has a proxy already")
        shape = Capsule(self.params.radius, self.params.height)
        self.enter()
        try:
            self.proxy_ = self.scene.add(shape, from_vec3(self.st.position), _z_to(self.params.up), body="kinematic",
                                         layer=layer, user_data=user_data)
            self.params.proxy = self.proxy_.id
            self.scratch.cache.valid = False
        finally:
            self.leave()
        return self.proxy_

    @property
    def proxy(self):
        """The actor that follows the character, or None."""
        return self.proxy_

    @property
    def shape(self):
        """The capsule (Capsule), its axis along local z."""
        return Capsule(self.params.radius, self.params.height)

    @property
    def pose(self):
        """(position, rotation) that puts ``shape`` where the character is."""
        return from_vec3(self.st.position), _z_to(self.params.up)

    @property
    def collision_flags(self):
        """Where the last move collided (CollisionFlags)."""
        return FLAGS[self.st.flags]

    @property
    def hit_sides(self):
        """The last move hit something aside."""
        return (self.st.flags & COLLISION_SIDES) != 0

    @property
    def hit_up(self):
        """The last move hit something above."""
        return (self.st.flags & COLLISION_UP) != 0

    @property
    def hit_down(self):
        """The last move hit something below."""
        return (self.st.flags & COLLISION_DOWN) != 0

    @property
    def velocity(self):
        """What the last move really travelled / dt, m/s; zero when dt was 0."""
        return from_vec3(self.st.velocity)

    @property
    def grounded(self):
        """The last move ended on something below."""
        return bool(self.st.ground.touching)

    @property
    def ground(self):
        """What the last move ended on (Ground), or None."""
        cdef Ground r
        cdef ground_contact* g = &self.st.ground
        if not g.touching:
            return None
        r = Ground.__new__(Ground)
        r.g = g[0]
        other = _other(self.scene, g.owner, g.id)
        r.actor = other if g.owner == OWNER_ACTOR else None
        r.controller = other if g.owner == OWNER_CONTROLLER else None
        r.obstacle = other if g.owner == OWNER_OBSTACLE else None
        r.triangle = g.triangle if g.triangle >= 0 else None
        r.data = g.data if g.has_data else None
        r.walkable = v3_dot(g.face_normal, self.params.up) >= self.params.slope_limit
        return r

    @property
    def state(self):
        """What the character remembers of its last move (State)."""
        cdef State r = State.__new__(State)
        r.standing_on = None
        if self.st.touched_actor >= 0:
            r.standing_on = self.scene.actor(self.st.touched_actor)
        elif self.st.touched_obstacle >= 0:
            r.standing_on = self.scene.actor(self.st.touched_obstacle)
        elif self.st.touched_controller >= 0:
            r.standing_on = self.scene.character(self.st.touched_controller)
        r.on_controller = (self.st.marks & TOUCH_OTHER_CONTROLLER) != 0
        r.on_obstacle = (self.st.marks & TOUCH_OBSTACLE) != 0
        r.moving_up = (self.st.marks & IS_MOVING_UP) != 0
        r.sliding = (self.st.marks & HIT_NON_WALKABLE) != 0
        r.overlap = self.st.overlap
        r.contact_point_height = self.st.contact_height
        r.ground_triangle = self.st.ground.triangle if self.st.ground.triangle >= 0 else None
        r.velocity_ = self.st.velocity
        r.platform_delta_ = self.st.platform_delta
        return r

    @property
    def hits(self):
        """Collisions of the last move (list of Hit), in the order in which they happened."""
        return _hits(self.scene, &self.scratch.log)

    @property
    def stats(self):
        """What the last move cost (MoveStats)."""
        cdef MoveStats r = MoveStats.__new__(MoveStats)
        r.iterations = self.last.iterations
        r.full_updates = self.last.full_updates
        r.partial_updates = self.last.partial_updates
        r.triangles_tested = self.last.triangles_tested
        r.recoveries = self.last.recoveries
        return r

    cdef int _set(self, controller_params p) except -1:
        """Take over changed parameters."""
        _check_size(&p)
        _check(&p)
        self.enter()
        try:
            self.params = p
            self.scratch.cache.valid = False
            self.publish()
        finally:
            self.leave()
        return 0

    @property
    def radius(self):
        """Radius of the capsule, metres. Set: the centre stays."""
        return self.params.radius

    @radius.setter
    def radius(self, value):
        cdef controller_params p = self.params
        p.radius = as_positive(value, "radius")
        self._set(p)

    @property
    def height(self):
        """Distance between the sphere centres, metres. Set: the centre stays."""
        return self.params.height

    @height.setter
    def height(self, value):
        cdef controller_params p = self.params
        p.height = as_not_negative(value, "height")
        self._set(p)

    @property
    def up(self):
        """Unit up direction. Settable, any length but zero."""
        return from_vec3(self.params.up)

    @up.setter
    def up(self, value):
        cdef controller_params p = self.params
        p.up = as_unit(value, "up")
        self._set(p)

    @property
    def step_offset(self):
        """Highest step that is climbed, metres. Settable."""
        return self.params.step_offset

    @step_offset.setter
    def step_offset(self, value):
        cdef controller_params p = self.params
        p.step_offset = as_not_negative(value, "step_offset")
        self._set(p)

    @property
    def contact_offset(self):
        """Gap kept between capsule and world, metres. Settable."""
        return self.params.contact_offset

    @contact_offset.setter
    def contact_offset(self, value):
        cdef controller_params p = self.params
        p.contact_offset = as_not_negative(value, "contact_offset")
        self._set(p)

    @property
    def slope_limit(self):
        """Cosine of the steepest walkable angle; 0 switches slopes off. Settable."""
        return self.params.slope_limit

    @slope_limit.setter
    def slope_limit(self, value):
        cdef controller_params p = self.params
        p.slope_limit = _as_slope_limit(value)
        self._set(p)

    @property
    def climbing_mode(self):
        """ClimbingMode. Settable, by name too."""
        return ClimbingMode.CONSTRAINED if self.params.climbing == CLIMBING_CONSTRAINED else ClimbingMode.EASY

    @climbing_mode.setter
    def climbing_mode(self, value):
        cdef controller_params p = self.params
        p.climbing = _as_mode(value, CLIMBING, ClimbingMode, "climbing_mode")
        self._set(p)

    @property
    def non_walkable_mode(self):
        """NonWalkableMode. Settable, by name too."""
        if self.params.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            return NonWalkableMode.FORCE_SLIDING
        return NonWalkableMode.PREVENT_CLIMBING

    @non_walkable_mode.setter
    def non_walkable_mode(self, value):
        cdef controller_params p = self.params
        p.non_walkable = _as_mode(value, NON_WALKABLE, NonWalkableMode, "non_walkable_mode")
        self._set(p)

    @property
    def rules(self):
        """The rule set, as Rules flags. Settable, by name too."""
        return Rules(self.params.rules)

    @rules.setter
    def rules(self, value):
        cdef controller_params p = self.params
        p.rules = _as_rules(value)
        self._set(p)

    @property
    def collide(self):
        """Whether it meets other controllers. Settable."""
        return bool(self.params.collide)

    @collide.setter
    def collide(self, value):
        cdef controller_params p = self.params
        p.collide = _as_bool(value, "collide")
        self._set(p)

    @property
    def surface(self):
        """What other characters may do on this one (Behavior). Settable."""
        return Behavior(self.params.surface)

    @surface.setter
    def surface(self, value):
        cdef controller_params p = self.params
        p.surface = _as_bits(value, "surface")
        self._set(p)

    @property
    def on_hit(self):
        """Called with each Hit of a move before the move takes effect. Settable."""
        return self.on_hit_

    @on_hit.setter
    def on_hit(self, value):
        self.on_hit_ = _as_callback(value, "on_hit")

    @property
    def behavior(self):
        """Asked what the character may do on something; instead of its own flags. Settable."""
        return self.behavior_

    @behavior.setter
    def behavior(self, value):
        self.behavior_ = _as_callback(value, "behavior")

    @property
    def filter(self):
        """Asked whether an actor, obstacle or controller may be met. Settable."""
        return self.filter_

    @filter.setter
    def filter(self, value):
        self.filter_ = _as_callback(value, "filter")

    @property
    def overlap_recovery(self):
        """Move out of static and kinematic shapes found overlapping. Settable."""
        return bool(self.params.overlap_recovery)

    @overlap_recovery.setter
    def overlap_recovery(self, value):
        cdef controller_params p = self.params
        p.overlap_recovery = _as_bool(value, "overlap_recovery")
        self._set(p)

    @property
    def prevent_vertical_sliding(self):
        """Do not slide up or down along ceilings. Settable."""
        return bool(self.params.prevent_vertical_sliding)

    @prevent_vertical_sliding.setter
    def prevent_vertical_sliding(self, value):
        cdef controller_params p = self.params
        p.prevent_vertical_sliding = _as_bool(value, "prevent_vertical_sliding")
        self._set(p)

    @property
    def invisible_wall_height(self):
        """Height of the walls that too steep triangles become, metres; 0: none. Settable."""
        return self.params.invisible_wall_height

    @invisible_wall_height.setter
    def invisible_wall_height(self, value):
        cdef controller_params p = self.params
        p.invisible_wall_height = as_not_negative(value, "invisible_wall_height")
        self._set(p)

    @property
    def max_jump_height(self):
        """How far the volume that is looked up reaches down, metres. Settable."""
        return self.params.max_jump_height

    @max_jump_height.setter
    def max_jump_height(self, value):
        cdef controller_params p = self.params
        p.max_jump_height = as_not_negative(value, "max_jump_height")
        self._set(p)

    @property
    def layer(self):
        """Bit set: the layer on which others see the character. Settable."""
        return self.params.layer

    @layer.setter
    def layer(self, value):
        cdef controller_params p = self.params
        p.layer = _as_bits(value, "layer")
        self._set(p)

    @property
    def mask(self):
        """Bit set: the layers that the character sees. Settable."""
        return self.params.mask

    @mask.setter
    def mask(self, value):
        cdef controller_params p = self.params
        p.mask = _as_bits(value, "mask")
        self._set(p)

    def __repr__(self):
        return (f"<{type(self).__name__} at {self.position}, radius {self.params.radius}, "
                f"height {self.params.height}>")


cdef void _forget(controller_state* st, vec3 position) noexcept:
    """The state of a character that has just appeared."""
    memset(st, 0, sizeof(controller_state))
    st.position = position
    st.touched_actor = st.touched_obstacle = st.touched_controller = -1
    st.ground.id = -1
    st.ground.triangle = -1


cdef object _other(Scene scene, int32_t owner, int64_t id):
    """The actor, obstacle or controller of that id, or None."""
    return scene.character(id) if owner == OWNER_CONTROLLER else scene.actor(id)


cdef list _hits(Scene scene, const hit_log* log):
    cdef int32_t i
    cdef Hit h
    cdef list result = []
    for i in range(log.n):
        h = Hit.__new__(Hit)
        h.r = log.records[i]
        other = _other(scene, h.r.owner, h.r.id)
        h.actor = other if h.r.owner == OWNER_ACTOR else None
        h.controller = other if h.r.owner == OWNER_CONTROLLER else None
        h.obstacle = other if h.r.owner == OWNER_OBSTACLE else None
        h.triangle = h.r.triangle if h.r.triangle >= 0 else None
        h.data = h.r.data if h.r.has_data else None
        result.append(h)
    return result


cdef tuple _z_to(vec3 up):
    """Shortest rotation (x, y, z, w) that turns z to the unit vector up."""
    cdef double w = 1.0 + up.z, m
    if w < 1e-9:
        return (1.0, 0.0, 0.0, 0.0)
    m = sqrt(up.x * up.x + up.y * up.y + w * w)
    return (-up.y / m, up.x / m, 0.0, w / m)


class _Unlist:
    """Takes a dead controller off its scene's list; holds neither alive."""

    __slots__ = ("id", "scene")

    def __init__(self, scene, id):
        self.scene = weakref.ref(scene)
        self.id = id

    def __call__(self, _):
        scene = self.scene()
        if scene is not None:
            _unlist(scene, self.id)


cdef _unlist(Scene scene, int64_t id):
    scene.characters_.pop(id, None)


cdef double _as_slope_limit(object value) except? -1.0:
    cdef double x = as_float(value, "slope_limit")
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"slope_limit must be a cosine from 0 to 1, got {x}")
    return x


cdef int _check_size(const controller_params* p) except -1:
    cdef double size = f_max(f_max(p.radius, p.height), f_max(p.contact_offset, p.invisible_wall_height))
    if f_max(size, p.max_jump_height) > FARTHEST:
        raise ValueError(f"radius, height, contact_offset, invisible_wall_height and max_jump_height "
                         f"must not exceed {FARTHEST:g} m")
    return 0
