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
from pycct._scene cimport Scene, Snapshot
from pycct._sweep cimport capsule_cast, capsule_cast_of
from pycct._types cimport BODY_DYNAMIC, BODY_KINEMATIC, BODY_STATIC, SHAPE_MESH, STATUS_NO_MEMORY, STATUS_NOT_FINITE, STATUS_OK
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
    candidate_group,
    candidates_cast,
    candidates_cut,
    candidates_deepest,
    candidates_free,
    candidates_gather,
    candidates_init,
    capsule_bounds,
    placed,
    unplace_point,
    wall_rule,
    world_hit,
)

from pycct._enums import ClimbingMode, CollisionFlags, NonWalkableMode, Pass

# Collision iterations of a pass that slides (MOVE 1.1; PhysX's MAX_ITER).
cdef int MAX_ITERATIONS = 10
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
# Corrections of one overlap recovery (RULES 7.5).
cdef int MAX_RECOVERIES = 4
# Bodies that overlap recovery moves out of, one bit per body_kind (MOVE 9.3).
cdef int RECOVERS = (1 << BODY_STATIC) | (1 << BODY_KINEMATIC)


# Everything that one move reads and writes.
cdef struct move_job:
    const controller_params* p
    controller_state s
    const world_part* fixed
    const world_part* moving
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
        low = v3_madd(centre, p.up, -p.max_jump_height)
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


cdef inline bint _too_steep(vec3 normal, vec3 up, double slope_limit) noexcept nogil:
    """A normal that faces down is not too steep (RULES 6)."""
    cdef double c = v3_dot(normal, up)
    return 0.0 <= c < slope_limit


cdef int _update_candidates(move_job* m, aabb temporal) noexcept nogil:
    """Make sure that all shapes that touch the temporal box are at hand (RULES 4, SWEEP 11)."""
    cdef candidate_cache* c = &m.scratch.cache
    cdef int status
    if c.valid and c.fixed_version == m.fixed.version and box_inside(temporal, c.bounds):
        if m.first_query and c.moving_version != m.moving.version:
            candidates_cut(&c.near, c.fixed_groups, c.fixed_tris)
            c.valid = False
            status = candidates_gather(&c.near, m.moving, 1, c.bounds, m.p.mask, &m.walls)
            if status != STATUS_OK:
                return status
            c.moving_version = m.moving.version
            c.valid = True
            m.stats.partial_updates += 1
        m.first_query = False
        return STATUS_OK
    c.valid = False
    c.bounds = cached_volume(m.p, temporal, m.side)
    candidates_cut(&c.near, 0, 0)
    status = candidates_gather(&c.near, m.fixed, 0, c.bounds, m.p.mask, &m.walls)
    if status != STATUS_OK:
        return status
    c.fixed_version = m.fixed.version
    c.fixed_groups = c.near.n_groups
    c.fixed_tris = c.near.n_tris
    status = candidates_gather(&c.near, m.moving, 1, c.bounds, m.p.mask, &m.walls)
    if status != STATUS_OK:
        return status
    c.moving_version = m.moving.version
    c.valid = True
    m.first_query = False
    m.stats.full_updates += 1
    return STATUS_OK


cdef int _recover(move_job* m, vec3* position) noexcept nogil:
    """Overlap recovery: out of what is overlapped deepest, up to four times (RULES 7.5)."""
    cdef candidates* c = &m.scratch.around
    cdef double radius = m.p.radius + m.p.contact_offset
    cdef vec3 p0, p1
    cdef aabb box
    cdef push_out push
    cdef int32_t group
    cdef int status
    cdef int turn
    m.s.overlap = 0.0
    for turn in range(MAX_RECOVERIES + 1):
        p0 = v3_sub(position[0], m.half_axis)
        p1 = v3_add(position[0], m.half_axis)
        # Leaving a mesh takes several pushes: look that far around, and look anew
        # each time, so that no cache has a say.
        box = box_grow(capsule_bounds(p0, p1, radius), radius)
        candidates_cut(c, 0, 0)
        status = candidates_gather(c, m.fixed, 0, box, m.p.mask, NULL)
        if status == STATUS_OK:
            status = candidates_gather(c, m.moving, 1, box, m.p.mask, NULL)
        if status != STATUS_OK:
            return status
        if turn == MAX_RECOVERIES:
            push = candidates_deepest(c, p0, p1, m.p.radius, RECOVERS, &group)
            if push.overlapping:
                m.s.overlap = push.depth
            return STATUS_OK
        push = candidates_deepest(c, p0, p1, radius, RECOVERS, &group)
        if not push.overlapping:
            return STATUS_OK
        position[0] = v3_madd(position[0], push.dir, push.depth)
        m.stats.recoveries += 1
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
    cdef bint moved = False, upright
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const candidate_group* g
    cdef const placed* item
    cdef const triangle* t
    cdef hit_record record
    cdef double h
    cdef int recovers = RECOVERS if m.p.overlap_recovery else 0
    collisions[0] = 0
    if v3_is_zero(direction):
        return False
    # RULES 5: a pass that sets out forgets what the one before touched.
    s.marks &= ~<uint32_t>(VALIDATE_TRIANGLE_DOWN | TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
    s.touched_actor = -1
    s.touched_triangle = -1
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
        if not candidates_cast(near, &cast, recovers, &hit):
            position = target
            break
        if hit.base.overlapping:
            m.status = _recover(m, &position)
            collisions[0] += 1
            s.position = position
            return moved
        g = &near.groups[hit.group]
        item = &m.fixed.items[g.item] if g.part == 0 else &m.moving.items[g.item]
        t = &near.tris[hit.base.tri] if hit.base.tri >= 0 else NULL
        upright = False
        record.kind = 0
        record.sweep_pass = sweep_pass
        record.actor = g.id
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
            s.marks &= ~<uint32_t>(TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
            s.touched_actor = g.id
            s.touched_triangle = record.triangle
            s.touched_point = hit.base.point
            s.touched_local = unplace_point(item, hit.base.point)
            if g.body == BODY_STATIC and t != NULL:
                s.marks |= VALIDATE_TRIANGLE_DOWN
                s.down_normal = t.n
                if g.two_sided and v3_dot(t.n, way) > 0.0:
                    s.down_normal = v3_scale(t.n, -1.0)
                h = v3_dot(t.a, m.p.up)
                s.touched_min = s.touched_max = h
                h = v3_dot(t.b, m.p.up)
                s.touched_min = f_min(s.touched_min, h)
                s.touched_max = f_max(s.touched_max, h)
                h = v3_dot(t.c, m.p.up)
                s.touched_min = f_min(s.touched_min, h)
                s.touched_max = f_max(s.touched_max, h)
            s.ground.touching = True
            s.ground.normal = hit.base.normal
            s.ground.point = hit.base.point
            s.ground.actor = g.id
            s.ground.triangle = record.triangle
            s.ground.has_data = record.has_data
            s.ground.data = record.data
            s.ground.has_face = t != NULL
            s.ground.face_normal = t.n if t != NULL else hit.base.normal
            if t != NULL and g.two_sided and v3_dot(t.n, way) > 0.0:
                s.ground.face_normal = v3_scale(t.n, -1.0)
            s.ground.distance = f_min(hit.base.distance, m.p.contact_offset)
        elif sweep_pass == PASS_SIDE or sweep_pass == PASS_SENSOR:
            if g.body == BODY_STATIC and t != NULL:
                s.marks |= VALIDATE_TRIANGLE_SIDE
                s.side_normal = t.n
                if g.two_sided and v3_dot(t.n, way) > 0.0:
                    s.side_normal = v3_scale(t.n, -1.0)
                if m.p.prevent_vertical_sliding and v3_dot(s.side_normal, m.p.up) < 0.0:
                    upright = True
        if sweep_pass != PASS_SENSOR:
            m.status = _log_hit(&m.scratch.log, &record)
            if m.status != STATUS_OK:
                return moved
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
    cdef bint handles_slopes = p.slope_limit > 0.0
    cdef int flags = 0, collisions = 0, iterations
    cdef decomposition d = decompose(displacement, up, p.step_offset, m.standing_on_moving)
    s.marks &= ~<uint32_t>(HIT_NON_WALKABLE | IS_MOVING_UP | NORMALIZE_RESPONSE)
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

    if p.climbing == CLIMBING_CONSTRAINED and not s.marks & VALIDATE_TRIANGLE_SIDE:
        if v3_len(d.side_vector) < p.radius:
            saved = s.position
            _sweep_test(m, v3_scale(v3_unit(d.side_vector), p.radius), 1, min_distance, PASS_SENSOR, &collisions)
            s.position = saved
            if m.status != STATUS_OK:
                return 0

    down = d.down_vector
    if d.has_side_movement and not experiment:
        down = v3_madd(down, up, -d.step_offset)
    iterations = 1
    if experiment and p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
        iterations = MAX_ITERATIONS
    if _sweep_test(m, down, iterations, min_distance, PASS_DOWN, &collisions) and collisions > 0:
        if rise <= 0.0:
            flags |= COLLISION_DOWN
        if handles_slopes and not s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE):
            if (s.marks & VALIDATE_TRIANGLE_SIDE and _too_steep(s.side_normal, up, p.slope_limit)
                    and p.climbing == CLIMBING_CONSTRAINED and s.contact_height > bottom + d.step_offset):
                s.marks |= HIT_NON_WALKABLE
                if not experiment:
                    return flags
    if m.status != STATUS_OK:
        return 0

    if (handles_slopes and not s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
            and s.marks & VALIDATE_TRIANGLE_DOWN and rise <= 0.0
            and s.touched_max - bottom > p.step_offset and _too_steep(s.down_normal, up, p.slope_limit)):
        s.marks |= HIT_NON_WALKABLE
        if not experiment:
            return flags
        s.marks |= NORMALIZE_RESPONSE
        gained = v3_dot(s.position, up) - start_height
        recover = f_max(0.0, gained) + fabs(rise)
        if recover < min_distance:
            min_distance = recover / MAX_ITERATIONS
        # PhysX calls this motion down an UP pass; hits are reported as such.
        _sweep_test(m, v3_scale(up, -recover), MAX_ITERATIONS, min_distance, PASS_UP, &collisions)
        s.marks &= ~<uint32_t>NORMALIZE_RESPONSE
    return flags


cdef int move_controller(const controller_params* p, controller_state* state, const world_part* fixed,
                         const world_part* moving, move_scratch* scratch, vec3 displacement, double dt,
                         double min_distance, move_stats* stats) noexcept nogil:
    """Controller::move (MOVE 3.2, RULES 7)."""
    cdef move_job m
    cdef vec3 start = state.position
    cdef int64_t tested = scratch.cache.near.tested
    cdef int flags
    memset(&m, 0, sizeof(move_job))
    memset(stats, 0, sizeof(move_stats))
    m.p = p
    m.s = state[0]
    m.fixed = fixed
    m.moving = moving
    m.scratch = scratch
    m.stats = stats
    m.walls.height = p.invisible_wall_height
    m.walls.slope_limit = p.slope_limit
    m.walls.up = p.up
    m.half_axis = v3_scale(p.up, 0.5 * p.height)
    m.first_query = True
    m.s.overlap = 0.0
    scratch.log.n = 0
    flags = _move_character(&m, displacement, min_distance)
    if m.status == STATUS_OK and m.s.marks & HIT_NON_WALKABLE:
        # Once more from the start, as the walk experiment (MOVE 3.2.5, RULES 7.4).
        m.s.marks |= WALK_EXPERIMENT
        m.s.position = start
        if p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            displacement = v3_along(displacement, p.up)
        flags = _move_character(&m, displacement, min_distance)
        m.s.marks &= ~<uint32_t>WALK_EXPERIMENT
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
    cdef readonly object triangle
    cdef readonly object data
    cdef hit_record r

    @property
    def controller(self):
        """The other character that was hit, or None."""
        return None

    @property
    def obstacle(self):
        """The obstacle that was hit, or None."""
        return None

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
        return (f"<Hit: {self.actor!r}, triangle {self.triangle}, pass {self.pass_.name}, position {self.position}, "
                f"normal {self.normal}>")


@cython.final
cdef class Ground:
    """What a character stands on."""

    cdef readonly object actor
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
        return (f"<Ground: {self.actor!r}, triangle {self.triangle}, normal {self.normal}, "
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
    rules : str
        'physx'.
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

    def __dealloc__(self):
        scratch_free(&self.scratch)

    def __init__(self, scene, position=(0.0, 0.0, 0.0), radius=0.4, height=1.0, up=(0.0, 0.0, 1.0), step_offset=0.5,
                 contact_offset=0.01, slope_limit=0.707, climbing_mode="easy", non_walkable_mode="prevent_climbing",
                 rules="physx", overlap_recovery=True, prevent_vertical_sliding=False, invisible_wall_height=0.0,
                 max_jump_height=0.0, layer=1, mask=0xFFFFFFFF, user_data=None):
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
        if rules != "physx":
            raise ValueError(f"rules must be 'physx', not {rules!r}")
        p.overlap_recovery = _as_bool(overlap_recovery, "overlap_recovery")
        p.prevent_vertical_sliding = _as_bool(prevent_vertical_sliding, "prevent_vertical_sliding")
        p.invisible_wall_height = as_not_negative(invisible_wall_height, "invisible_wall_height")
        p.max_jump_height = as_not_negative(max_jump_height, "max_jump_height")
        p.layer = _as_bits(layer, "layer")
        p.mask = _as_bits(mask, "mask")
        _check_size(&p)
        _check(&p)
        if self.busy:
            raise RuntimeError("the controller is in use by another thread")
        self.scene = scene
        self.params = p
        self.scratch.log.n = 0
        self.user_data = user_data
        self.scratch.cache.valid = False
        memset(&self.st, 0, sizeof(controller_state))
        self.st.position = place
        self.st.touched_actor = -1
        self.st.touched_triangle = -1
        self.st.ground.actor = -1
        self.st.ground.triangle = -1

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

    def move(self, displacement, dt, *, min_distance=0.0):
        """Move by a displacement, sliding along what is in the way.

        Parameters
        ----------
        displacement : (3,) floats
            Wanted motion, metres, gravity included.
        dt : float
            Time that passes, seconds, >= 0; for the velocity.
        min_distance : float
            A motion no longer than this is not begun, metres.

        Returns
        -------
        CollisionFlags
            SIDES 1, UP 2, DOWN 4.

        Raises
        ------
        ValueError, TypeError
            An argument makes no sense; nothing has changed.
        RuntimeError
            Another thread moves the controller, or it has been removed.
        """
        cdef vec3 d = _as_place(displacement, "displacement")
        cdef double time = as_not_negative(dt, "dt"), least = as_not_negative(min_distance, "min_distance")
        cdef Snapshot snap
        cdef int status
        if 0.0 < time < SHORTEST:
            raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {time}")
        self.enter()
        try:
            snap = self.scene.snapshot()
            with nogil:
                status = move_controller(&self.params, &self.st, &snap.fixed.data, &snap.moving.data, &self.scratch,
                                         d, time, least, &self.last)
        finally:
            self.leave()
        if status != STATUS_OK:
            raise_status(status)
        return FLAGS[self.st.flags]

    @property
    def position(self):
        """Centre of the capsule, metres. Set: moved without forgetting what it stands on."""
        return from_vec3(self.st.position)

    @position.setter
    def position(self, value):
        cdef vec3 p = _as_place(value, "position")
        self.enter()
        self.st.position = p
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
        self.st.position = v3_madd(p, self.params.up, self._foot())
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
        memset(&self.st, 0, sizeof(controller_state))
        self.st.position = p
        self.st.touched_actor = -1
        self.st.touched_triangle = -1
        self.st.ground.actor = -1
        self.st.ground.triangle = -1
        self.scratch.log.n = 0
        self.leave()

    def remove(self):
        """Take the character out of the game; it cannot be moved any more."""
        self.enter()
        self.removed = True
        scratch_free(&self.scratch)
        self.leave()

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
        r.actor = self.scene.actor(g.actor)
        r.triangle = g.triangle if g.triangle >= 0 else None
        r.data = g.data if g.has_data else None
        r.walkable = v3_dot(g.face_normal, self.params.up) >= self.params.slope_limit
        return r

    @property
    def state(self):
        """What the character remembers of its last move (State)."""
        cdef State r = State.__new__(State)
        r.standing_on = self.scene.actor(self.st.touched_actor) if self.st.touched_actor >= 0 else None
        r.on_controller = (self.st.marks & TOUCH_OTHER_CONTROLLER) != 0
        r.on_obstacle = (self.st.marks & TOUCH_OBSTACLE) != 0
        r.moving_up = (self.st.marks & IS_MOVING_UP) != 0
        r.sliding = (self.st.marks & HIT_NON_WALKABLE) != 0
        r.overlap = self.st.overlap
        r.contact_point_height = self.st.contact_height
        r.ground_triangle = self.st.ground.triangle if self.st.ground.triangle >= 0 else None
        r.velocity_ = self.st.velocity
        r.platform_delta_ = v3(0.0, 0.0, 0.0)
        return r

    @property
    def hits(self):
        """Collisions of the last move (list of Hit), in the order in which they happened."""
        cdef int32_t i
        cdef Hit h
        cdef list result = []
        for i in range(self.scratch.log.n):
            h = Hit.__new__(Hit)
            h.r = self.scratch.log.records[i]
            h.actor = self.scene.actor(h.r.actor)
            h.triangle = h.r.triangle if h.r.triangle >= 0 else None
            h.data = h.r.data if h.r.has_data else None
            result.append(h)
        return result

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
        self.params = p
        self.scratch.cache.valid = False
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
        """The rule set: 'physx'."""
        return "physx"

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
