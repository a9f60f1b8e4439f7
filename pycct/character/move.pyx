# cython: language_level=3
"""One move. See the header; rule numbers are those of RULES and its documents."""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memmove

from pycct.character.gathering cimport (
    begin_job,
    face_met,
    gather_moving,
    half_of,
    has_fix,
    set_ground,
    turned_against,
)
from pycct.character.move_types cimport (
    ANY_RULE,
    CAN_SLIDE,
    CLIMBING_CONSTRAINED,
    CLIMBING_EASY,
    CLIMBS_STEEP,
    COLLISION_DOWN,
    COLLISION_SIDES,
    COLLISION_UP,
    FIX_ALMOST_LEVEL,
    FIX_BACK_FACES,
    FIX_CREASES,
    FIX_KEEP_RIDE,
    FIX_KINEMATIC_RECOVERY,
    FIX_LOWER_STEP,
    FIX_MOVING_SLOPES,
    FIX_OVERHANGS,
    FIX_ROUND_SLOPES,
    FIX_SHEET_EDGES,
    FIX_SLIDE_LENGTH,
    FIX_STATIC_RECOVERY,
    FIX_STEEP_ASIDE,
    FIX_STEEP_CLIMB,
    FIX_STEP_IS_NO_JUMP,
    HIT_NON_WALKABLE,
    IS_MOVING_UP,
    MAX_UNSEEN,
    NON_WALKABLE_FORCE_SLIDING,
    NORMALIZE_RESPONSE,
    PASSES_BACK_FACE,
    PASS_DOWN,
    PASS_SENSOR,
    PASS_SIDE,
    PASS_UP,
    RULE_CULL_PARALLEL,
    RULE_FORCE_SLIDE_HORIZONTAL,
    RULE_JUMP_VOLUME_UP,
    RULE_NORMALIZE_EXPERIMENT,
    RULE_RECOVERY_SWEEP_AFTER,
    RULE_SENSOR_DECIDES,
    RULE_SIDE_CHECK_AT_ONCE,
    RULE_STEEP_FACING_DOWN,
    RULE_STEP_BACK_IN_EXPERIMENT,
    STATUS_CACHE_MISS,
    STATUS_TOO_FAR,
    TOUCH_OBSTACLE,
    TOUCH_OTHER_CONTROLLER,
    TRACE_DONE,
    TRACE_EXPERIMENT,
    TRACE_FREE,
    TRACE_HIT,
    TRACE_OUT_OF_TURNS,
    TRACE_OVERLAP,
    TRACE_PASS,
    TRACE_RIDE,
    TRACE_TOO_STEEP_ASIDE,
    TRACE_TOO_STEEP_BELOW,
    TRACE_TURNED_BACK,
    VALIDATE_TRIANGLE_DOWN,
    VALIDATE_TRIANGLE_SIDE,
    WALK_EXPERIMENT,
    candidate_cache,
    compact_cache,
    controller_params,
    controller_state,
    decomposition,
    free_place,
    hit_log,
    hit_record,
    move_job,
    move_scratch,
    move_stats,
    move_world,
    trace_event,
    trace_log,
)
from pycct.character.recovery cimport RECOVERS, gather_around, recover, recovered_kinds
from pycct.character.response cimport collision_response
from pycct.character.riding cimport keep_ride, ride, rise_from_below
from pycct.geometry.closest cimport point_segment_parameter
from pycct.geometry.overlap cimport push_out
from pycct.geometry.sweep cimport (
    NO_HIT,
    PASSED_OVERLAP,
    capsule_cast,
    capsule_cast_set,
    capsule_triangle_time,
    facing_distances,
    is_behind_nearest,
)
from pycct.runtime.growth cimport one_more
from pycct.geometry.tolerances cimport ALMOST_ZERO, COORDINATE_ROUNDING, MOTION_SHARE, is_below_limit
from pycct.geometry.types cimport (
    BODY_DYNAMIC,
    BODY_KINEMATIC,
    BODY_STATIC,
    STATUS_NEED_ANSWER,
    STATUS_NOT_FINITE,
    STATUS_NO_MEMORY,
    STATUS_OK,
    triangle,
)
from pycct.geometry.vec cimport (
    aabb,
    box_half,
    box_inside,
    box_of,
    box_union,
    f_max,
    f_min,
    q_unrotate,
    v3,
    v3_abs,
    v3_add,
    v3_along,
    v3_cross,
    v3_dist2,
    v3_dot,
    v3_finite,
    v3_has_no_bits,
    v3_is_zero,
    v3_len,
    v3_len2,
    v3_madd,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_reject,
    v3_scale,
    v3_sub,
    v3_unit,
    vec3,
)
from pycct.world.candidates cimport (
    ASK_BEHAVIOR,
    GROUP_BOX,
    GROUP_PLANE,
    GROUP_SPHERE,
    GROUP_TRIANGLES,
    OWNER_ACTOR,
    OWNER_OBSTACLE,
    book_answer,
    candidate_group,
    candidates,
    candidates_cast,
    candidates_cast_again,
    candidates_cut,
    candidates_expand,
    candidates_gather,
    candidates_hint,
    candidates_hinted,
    candidates_keep,
    candidates_deepest,
    candidates_overlap,
    candidates_overlap_one,
    candidates_set_groups,
    candidates_top,
    capsule_bounds,
    collider,
    compact_free,
    group_recovers,
    hinted,
    only_one_sided,
    only_triangles,
    triangle_data,
    unplace_point,
    wall_rule,
    world_hit,
)


# Collision iterations of a pass that slides (MOVE 1.1; PhysX's MAX_ITER).
cdef int MAX_ITERATIONS = 10
# Most normals in FIX_CREASES: a SIDE pass has MAX_ITERATIONS.
cdef enum:
    MAX_PLANES = 10
# Further iterations after the first DOWN collision with something to slide on (MOVE 7.2.3k).
cdef int SLIDE_ITERATIONS = 9
# The cached volume is the temporal box times this factor, across up and along it. MOVE 1.1
# VOLUME_GROWTH and RULES 4 have 1.5; the cache changes no result, and this factor saves a tenth of
# the time. Characters move farther aside than up.
cdef double VOLUME_GROWTH = 2.5
cdef double VOLUME_GROWTH_UP = 1.7
# A smaller factor if candidates are expanded for each move (6 % less time for 10,000 characters).
cdef double LAID_OUT_GROWTH = 1.9
cdef double LAID_OUT_GROWTH_UP = 1.6
# A box that would contain more triangles than this grows by the smaller factor. Such casts spend
# most of their time with triangles that are far away.
cdef double DENSE = 400.0
cdef double DENSE_GROWTH = 1.5
# Shift along the side motion, as a share of the growth (RULES 4).
cdef double VOLUME_SHIFT = 0.9
# A pass ends if its direction turns by a right angle or more from its start. The margin decides
# cases that are random in float32 (RULES 5).
cdef double TURNED_BACK = 1e-6
# A motion whose cosine with up is larger than this moves away from all triangles whose normals rise
# more.
cdef double FACES_UP = 1e-3
cdef double STRAIGHT = 1.0 - 1e-8
cdef double STRAIGHT2 = 1.0 - 2e-8
# Metres by which heights of candidates along another up direction may be uncertain.
cdef double TURNED_FAR = 0.02
# A motion of at least this share of the coordinates (squared) is accurate to ten digits.
cdef double KNOWN2 = 1e-10
# A contact normal that rises more than this turns a motion upwards.
cdef double ALMOST_LEVEL = 1e-9
# Top of a plane, metres: higher than any step. A finite number, because states are saved (RULES_2
# 1).
cdef double ENDLESS = 1e100
# A face whose normal rises or falls by less is upright: it lifts nobody.
cdef double NEARLY_UPRIGHT = 0.05
# A motion that sinks into a plane by a smaller share of its length follows it.
cdef double INTO_PLANE = 1e-6
# All kinds of bodies, obstacles and other characters, as recovered_kinds returns them.
cdef int ANY_BODY = 0xF
# Fixes without which a sweep may lead into a triangle that it sees.
cdef uint32_t SEES_ALL = FIX_BACK_FACES | FIX_SHEET_EDGES | FIX_STATIC_RECOVERY
# Coordinates, as a multiple of the radius, below which rounding is far less than a touch.
cdef double FREE_FAR = 1e6
# Number of parts of the step offset in FIX_LOWER_STEP.
cdef int STEP_PARTS = 8
# Largest number of cached triangles and shapes of a short move.
cdef int32_t SHORT_MOVE = 5


cdef inline decomposition _decompose(vec3 displacement, vec3 up, double step_offset,
                                     bint standing_on_moving) noexcept nogil:
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


cdef decomposition decompose(vec3 displacement, vec3 up, double step_offset, bint standing_on_moving) noexcept nogil:
    return _decompose(displacement, up, step_offset, standing_on_moving)


cdef aabb temporal_box(const controller_params* p, vec3 centre, vec3 direction) noexcept nogil:
    """Bounds of everything that a motion may touch (RULES 4)."""
    cdef vec3 half = half_of(p)
    cdef vec3 end = v3_add(centre, direction)
    cdef vec3 low
    cdef aabb box = box_of(v3_sub(v3_min(centre, end), half), v3_add(v3_max(centre, end), half))
    if p.max_jump_height > 0.0:
        low = v3_madd(centre, p.up, p.max_jump_height if p.rules & RULE_JUMP_VOLUME_UP else -p.max_jump_height)
        box = box_union(box, box_of(v3_sub(low, half), v3_add(low, half)))
    return box


cdef aabb _volume(const controller_params* p, aabb temporal, vec3 side, double across, double up) noexcept nogil:
    cdef vec3 half = box_half(temporal)
    cdef vec3 growth = v3(half.x * (across + up * fabs(p.up.x)), half.y * (across + up * fabs(p.up.y)),
                          half.z * (across + up * fabs(p.up.z)))
    cdef vec3 shift = v3_scale(side, VOLUME_SHIFT * fabs(v3_dot(side, growth)))
    cdef aabb box = box_of(v3_add(v3_sub(temporal.lo, growth), shift), v3_add(v3_add(temporal.hi, growth), shift))
    return box_union(box, temporal)


cdef aabb cached_volume(const controller_params* p, aabb temporal, vec3 side, bint laid_out) noexcept nogil:
    """The box of the candidate cache, which serves the next moves too (RULES 4)."""
    cdef double across = (LAID_OUT_GROWTH if laid_out else VOLUME_GROWTH) - 1.0
    return _volume(p, temporal, side, across,
                   (LAID_OUT_GROWTH_UP if laid_out else VOLUME_GROWTH_UP) - 1.0 - across)


cdef inline double _size(aabb box) noexcept nogil:
    return (box.hi.x - box.lo.x) * (box.hi.y - box.lo.y) * (box.hi.z - box.lo.z)


cdef aabb _next_volume(move_job* m, aabb temporal) noexcept nogil:
    """The box of the candidate cache; a smaller one where the last box contained many triangles."""
    cdef const candidate_cache* c = m.cache
    cdef vec3 side = v3_unit(m.side)
    cdef aabb box = cached_volume(m.p, temporal, side, m.scratch.expand_each_move)
    if c.fixed_tris * _size(box) > DENSE * _size(c.bounds):
        return _volume(m.p, temporal, side, DENSE_GROWTH - 1.0, 0.0)
    return box


cdef inline bint _too_steep(const controller_params* p, vec3 normal) noexcept nogil:
    """A normal that faces down is not too steep (RULES 6, 9 row 4)."""
    cdef double c = v3_dot(normal, p.up)
    return is_below_limit(c, p.slope_limit) and (c >= 0.0 or p.rules & RULE_STEEP_FACING_DOWN)


cdef bint _steep_aside(move_job* m) noexcept nogil:
    """Whether a triangle aside is too steep to climb."""
    if m.s.marks & VALIDATE_TRIANGLE_SIDE:
        if _too_steep(m.p, m.s.side_normal):
            return True
        if v3_dot(m.s.side_normal, m.p.up) < 0.0 and has_fix(m, FIX_OVERHANGS):
            return True
    if m.moving_aside and is_below_limit(v3_dot(m.aside_normal, m.p.up), m.p.slope_limit):
        if has_fix(m, FIX_MOVING_SLOPES):
            return True
    if m.round_aside and is_below_limit(v3_dot(m.round_aside_normal, m.p.up), m.p.slope_limit):
        return has_fix(m, FIX_ROUND_SLOPES)
    return False


cdef inline bint _round_is_steep(const move_job* m, double bottom) noexcept nogil:
    """Whether a shape without faces below is too steep, and higher than a step."""
    return m.round_below and m.round_max - bottom > m.p.step_offset and _too_steep(m.p, m.round_below_normal)


cdef bint _steep_below(move_job* m, double bottom) noexcept nogil:
    """Whether the ground is too steep, and higher than a step."""
    if (m.s.marks & VALIDATE_TRIANGLE_DOWN and m.s.touched_max - bottom > m.p.step_offset
            and _too_steep(m.p, m.s.down_normal)):
        return True
    if (m.moving_below and m.below_max - bottom > m.p.step_offset and _too_steep(m.p, m.below_normal)
            and has_fix(m, FIX_MOVING_SLOPES)):
        return True
    if _round_is_steep(m, bottom) and has_fix(m, FIX_ROUND_SLOPES):
        return True
    if m.s.marks & CLIMBS_STEEP and m.s.steep_climb > 0.0:
        bottom -= m.s.steep_climb
        if ((m.s.marks & VALIDATE_TRIANGLE_DOWN and m.s.touched_max - bottom > m.p.step_offset
                and _too_steep(m.p, m.s.down_normal))
                or (m.p.rules & FIX_MOVING_SLOPES and m.moving_below and m.below_max - bottom > m.p.step_offset
                    and _too_steep(m.p, m.below_normal))
                or (m.p.rules & FIX_ROUND_SLOPES and _round_is_steep(m, bottom))):
            return has_fix(m, FIX_STEEP_CLIMB)
    return False


cdef void _count_steep_climb(move_job* m, double gained, bint jumps) noexcept nogil:
    """FIX_STEEP_CLIMB: the climb of the last moves without walkable ground."""
    cdef controller_state* s = m.s
    cdef double c = v3_dot(s.ground.face_normal, m.p.up)
    cdef bint faced = s.ground.has_face or m.p.rules & FIX_ROUND_SLOPES
    if jumps or (s.ground.touching and not (faced and c >= 0.0 and is_below_limit(c, m.p.slope_limit))):
        s.marks &= ~<uint32_t>CLIMBS_STEEP
        s.steep_climb = 0.0
    elif s.ground.touching or s.marks & CLIMBS_STEEP:
        s.marks |= CLIMBS_STEEP
        s.steep_climb = f_max(0.0, s.steep_climb + gained)


cdef inline vec3 _level(move_job* m, vec3 displacement) noexcept nogil:
    """FIX_ALMOST_LEVEL: remove a rise that is only rounding."""
    if m.p.rules & FIX_ALMOST_LEVEL and v3_dot(displacement, m.p.up) > 0.0:
        return _without_rounding(m, displacement)
    return displacement


cdef vec3 _without_rounding(move_job* m, vec3 displacement) noexcept nogil:
    cdef double rise, length
    rise = v3_dot(displacement, m.p.up)
    length = v3_len(displacement)
    if 0.0 < rise <= MOTION_SHARE * length and has_fix(m, FIX_ALMOST_LEVEL):
        # Slightly more than the rise, because this sum is rounded too.
        return v3_madd(displacement, m.p.up, -2.0 * rise - COORDINATE_ROUNDING * length)
    return displacement


cdef bint _is_lintel(move_job* m, const capsule_cast* cast, const world_hit* hit) noexcept nogil:
    """Whether a capsule without the lift of the UP pass would miss the hit of the SIDE pass.

    A triangle that stops it with and without the lift stops it with each lower one too: heights and
    distances of contact form a convex set. May leave a question of the filter in the book.
    """
    cdef candidates* near = &m.cache.near
    cdef candidates one
    cdef world_hit other
    cdef capsule_cast low
    cdef int passed = 0
    # Lowering brings a capsule no farther from a point that is not above its upper sphere centre.
    if v3_dot(v3_sub(hit.base.point, v3_madd(cast.p0, cast.dir, hit.base.distance)), m.p.up) <= m.p.height - m.lifted:
        return False
    low = cast[0]
    low.p0 = v3_madd(cast.p0, m.p.up, -m.lifted)
    low.p1 = v3_madd(cast.p1, m.p.up, -m.lifted)
    low.limit = hit.base.distance + MOTION_SHARE * (hit.base.distance + m.p.radius)
    if hit.base.tri < 0:
        one = near[0]
        one.groups = &near.groups[hit.group]
        candidates_set_groups(&one, 1)
        one.filter = NULL
        return not candidates_cast(&one, &low, ANY_BODY, &other)
    if capsule_triangle_time(low.p0, low.p1, low.radius, low.dir, &near.tris[hit.base.tri], low.limit) <= low.limit:
        return False
    if low.passed != NULL:
        low.passed = &passed
    near.turn = PASS_SENSOR
    if not candidates_cast(near, &low, ANY_BODY, &other):
        return True
    return (other.base.overlapping or other.base.tri < 0
            or capsule_triangle_time(cast.p0, cast.p1, cast.radius, cast.dir, &near.tris[other.base.tri],
                                     low.limit) > low.limit)


cdef inline bint _is_in(const aabb* region, vec3 p) noexcept nogil:
    return (region.lo.x <= p.x <= region.hi.x and region.lo.y <= p.y <= region.hi.y
            and region.lo.z <= p.z <= region.hi.z)


cdef void _measure_safe_region(const move_job* m, candidate_cache* c) noexcept nogil:
    """Compute the region of the centre, slightly smaller than the bounds to allow for rounding."""
    cdef vec3 half = v3_madd(m.half, m.half, MOTION_SHARE)
    half = v3_madd(half, v3_add(v3_abs(c.bounds.lo), v3_abs(c.bounds.hi)), COORDINATE_ROUNDING)
    c.half = m.half
    c.safe_region = box_of(v3_add(c.bounds.lo, half), v3_sub(c.bounds.hi, half))
    # A jump reaches farther.
    c.has_safe_region = m.p.max_jump_height <= 0.0


cdef double _top_of(const candidates* c, vec3 up) noexcept nogil:
    """Largest height along up of the triangles: of their boxes, if these have a side along up."""
    cdef double top = -NO_HIT
    cdef const triangle* t
    cdef int32_t i
    if v3_max_abs(up) == 1.0:
        return candidates_top(c, up, top)
    for i in range(c.n_tris):
        t = &c.tris[i]
        top = f_max(top, f_max(v3_dot(t.a, up), f_max(v3_dot(t.b, up), v3_dot(t.c, up))))
    return top


cdef void _look_around(const move_job* m, candidate_cache* c) noexcept nogil:
    """Compute the height of the candidates, and whether a motion straight up could hit any."""
    cdef const triangle* t
    cdef vec3 o = m.s.position
    cdef double radius2 = 0.0, least_cosine = 1.0
    cdef int32_t i
    c.up = c.looked_up = m.p.up
    c.looked_from = o
    c.top = c.looked_top = NO_HIT
    c.looked_radius = 0.0
    c.least_rise = -2.0
    c.open_above = False
    if not only_triangles(&c.near):
        return
    c.top = _top_of(&c.near, m.p.up)
    c.looked_top = c.top - v3_dot(o, m.p.up)
    for i in range(c.near.n_tris):
        t = &c.near.tris[i]
        least_cosine = f_min(least_cosine, v3_dot(t.n, m.p.up))
        radius2 = f_max(radius2, f_max(v3_dist2(t.a, o), f_max(v3_dist2(t.b, o), v3_dist2(t.c, o))))
    c.looked_radius = sqrt(radius2)
    if only_one_sided(&c.near):
        c.least_rise = least_cosine
        c.open_above = least_cosine >= FACES_UP


cdef inline bint _has_looked_up(const move_job* m) noexcept nogil:
    """Whether the data about candidates above is valid for the character's up direction."""
    return m.cache.up.x == m.p.up.x and m.cache.up.y == m.p.up.y and m.cache.up.z == m.p.up.z


cdef void _turn_cache(move_job* m) noexcept nogil:
    """Adapt the cache to another up direction: heights and invisible walls are along it."""
    cdef candidate_cache* c = m.cache
    cdef double turned, rise
    if m.p.invisible_wall_height > 0.0:
        c.valid = False
        return
    # No height above the place of the last look, and no cosine, changes by more than this.
    turned = v3_len(v3_sub(m.p.up, c.looked_up))
    rise = turned * c.looked_radius
    if rise > TURNED_FAR:
        _look_around(m, c)
        return
    c.up = m.p.up
    if c.looked_top < NO_HIT:
        c.top = c.looked_top + v3_dot(c.looked_from, m.p.up) + rise
    c.open_above = c.least_rise - turned >= FACES_UP


cdef inline bint _is_free(const move_job* m, vec3 motion, double length2, vec3 target, bint rises) noexcept nogil:
    """True if the motion provably hits nothing.

    It stays above every candidate, or rises vertically from upward-facing triangles.
    """
    cdef const candidate_cache* c = m.cache
    cdef double gain = v3_dot(motion, m.p.up)
    cdef double lowest = v3_dot(target, m.p.up) - f_max(gain, 0.0)
    # If overlaps and open edges count, the motion must not even touch candidates below.
    if (rises and c.open_above and gain > 0.0 and gain * gain >= STRAIGHT2 * length2
            and (not m.p.rules & (FIX_BACK_FACES | FIX_SHEET_EDGES)
                 or lowest > c.top + m.above - m.p.contact_offset)):
        return True
    return lowest > c.top + m.above


cdef inline void _set_back(const move_job* m) noexcept nogil:
    """The position changed without a motion, so it may be outside of the cached volume."""
    m.cache.has_safe_region = False


cdef inline bint _at_hand(const move_job* m, vec3 end) noexcept nogil:
    """Whether the cache contains everything that a motion may touch, in a convex region."""
    return not m.first_query and m.cache.has_safe_region and _is_in(&m.cache.safe_region, end)


cdef inline bint _is_around(const candidate_cache* c, const move_world* world, vec3 centre, vec3 end) noexcept nogil:
    """Whether the cache contains all static candidates of a motion, in a convex region."""
    return (c.has_safe_region and c.valid and c.fixed_version == world.fixed.version and c.mask == world.mask
            and world.others == NULL and _is_in(&c.safe_region, centre) and _is_in(&c.safe_region, end))


cdef inline bint _is_still_around(const move_job* m, vec3 centre, vec3 end) noexcept nogil:
    """The same at the start of a move, also for moving candidates.

    In a convex region the ends suffice.
    """
    cdef const candidate_cache* c = m.cache
    return (c.moving_version == m.world.moving.version
            and c.half.x == m.half.x and c.half.y == m.half.y and c.half.z == m.half.z
            and _is_around(c, m.world, centre, end))


cdef int _update_candidates(move_job* m, vec3 centre, vec3 end) noexcept nogil:
    """Make sure that the cache contains everything that a motion may touch (RULES 4, SWEEP 11)."""
    cdef candidate_cache* c = m.cache
    if m.first_query:
        if _is_still_around(m, centre, end):
            m.first_query = False
            return STATUS_OK
    elif c.has_safe_region and _is_in(&c.safe_region, end):
        return STATUS_OK
    return _fetch(m, temporal_box(m.p, centre, v3_sub(end, centre)))


cdef int _fetch(move_job* m, aabb temporal) noexcept nogil:
    cdef candidate_cache* c = m.cache
    cdef hinted before
    cdef wall_rule walls
    cdef int status
    walls.height = m.p.invisible_wall_height
    walls.slope_limit = m.p.slope_limit
    walls.up = m.p.up
    if (c.valid and c.fixed_version == m.world.fixed.version and c.mask == m.world.mask
            and box_inside(temporal, c.bounds)):
        if m.first_query and (c.moving_version != m.world.moving.version or m.world.others != NULL):
            candidates_cut(&c.near, c.fixed_groups, c.fixed_tris)
            c.valid = False
            status = gather_moving(m, &c.near, c.bounds, &walls)
            if status != STATUS_OK:
                return status
            c.moving_version = m.world.moving.version
            c.valid = True
            _look_around(m, c)
            m.stats.partial_updates += 1
        m.first_query = False
        _measure_safe_region(m, c)
        return STATUS_OK
    if m.world.cache_only:
        return STATUS_CACHE_MISS
    if m.n_unseen > 0:
        # They are indices into the candidates.
        m.n_unseen = -1
    # The last hit is likely to be hit again.
    before = candidates_hinted(&c.near, m.world.fixed,
                               c.fixed_tris if c.valid and c.fixed_version == m.world.fixed.version else 0)
    c.valid = False
    c.bounds = _next_volume(m, temporal)
    _measure_safe_region(m, c)
    candidates_cut(&c.near, 0, 0)
    status = candidates_gather(&c.near, m.world.fixed, 0, c.bounds, m.world.mask, &walls)
    if status != STATUS_OK:
        return status
    c.fixed_version = m.world.fixed.version
    c.timestamp = m.world.fixed.timestamp
    c.mask = m.world.mask
    c.fixed_groups = c.near.n_groups
    c.fixed_tris = c.near.n_tris
    candidates_hint(&c.near, m.world.fixed, &before)
    status = gather_moving(m, &c.near, c.bounds, &walls)
    if status != STATUS_OK:
        return status
    c.moving_version = m.world.moving.version
    c.valid = True
    _look_around(m, c)
    m.first_query = False
    m.stats.full_updates += 1
    return STATUS_OK


cdef int _log_hit(hit_log* log, const hit_record* r) noexcept nogil:
    cdef void* p = one_more(log.records, sizeof(hit_record), log.n, &log.capacity, 4)
    if p == NULL:
        return STATUS_NO_MEMORY
    log.records = <hit_record*>p
    log.records[log.n] = r[0]
    log.n += 1
    return STATUS_OK


cdef int _trace(move_job* m, int32_t kind, int32_t sweep_pass, vec3 position, vec3 vector,
                const hit_record* hit) noexcept nogil:
    """Trace an event, if requested."""
    cdef trace_log* log = m.world.trace
    cdef trace_event* e
    cdef void* p = one_more(log.events, sizeof(trace_event), log.n, &log.capacity, 32)
    if p == NULL:
        return STATUS_NO_MEMORY
    log.events = <trace_event*>p
    e = &log.events[log.n]
    e.kind = kind
    e.sweep_pass = sweep_pass
    e.position = position
    e.vector = vector
    e.record = -1
    if hit != NULL:
        e.hit = hit[0]
        e.record = m.scratch.log.n - 1
    log.n += 1
    return STATUS_OK


cdef int _note_hit(move_job* m, const world_hit* hit, const collider* item, int sweep_pass, vec3 position,
                   vec3 direction, double length) noexcept nogil:
    """Log a hit, if requested."""
    cdef const candidate_group* g = &m.cache.near.groups[hit.group]
    cdef vec3 axis = v3_madd(position, direction, hit.base.distance)
    cdef hit_record record
    cdef int status
    record.owner = g.owner
    record.sweep_pass = sweep_pass
    record.id = g.id
    record.dynamic = g.owner == OWNER_ACTOR and g.body == BODY_DYNAMIC
    record.triangle = m.cache.near.source[hit.base.tri] if hit.base.tri >= 0 else -1
    record.data = 0
    record.has_data = triangle_data(item, record.triangle, &record.data)
    record.position = hit.base.point
    record.normal = hit.base.normal
    record.direction = direction
    record.length = length
    record.distance = hit.base.distance
    record.along = point_segment_parameter(hit.base.point, v3_sub(axis, m.half_axis), v3_add(axis, m.half_axis))
    if not m.world.silent and sweep_pass != PASS_SENSOR:
        status = _log_hit(m.scratch.log, &record)
        if status != STATUS_OK:
            return status
    if m.world.trace != NULL:
        return _trace(m, TRACE_HIT, sweep_pass, position, direction, &record)
    return STATUS_OK


cdef inline void _forget_touched(move_job* m) noexcept nogil:
    """RULES 5: a pass that starts forgets the contacts of the one before."""
    m.s.marks &= ~<uint32_t>(VALIDATE_TRIANGLE_DOWN | TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
    m.s.touched_actor = m.s.touched_obstacle = m.s.touched_controller = -1
    m.moving_below = m.round_below = False


cdef inline bint _is_clear(const move_job* m, vec3 direction, vec3 target, double min_distance,
                           bint rises) noexcept nogil:
    """Whether a pass surely starts and hits nothing, given complete candidates."""
    cdef double length2 = v3_len2(direction)
    # Motions near rounding, and those too long for the region, take the general path.
    return (length2 > 1.000001 * min_distance * min_distance and KNOWN2 * m.far * m.far < length2 <= m.far * m.far
            and _is_free(m, direction, length2, target, rises))


cdef inline bint _try_unobstructed_pass(move_job* m, vec3 direction, double min_distance,
                                        int sweep_pass) noexcept nogil:
    """Make an unobstructed pass directly; False: nothing is done, and _sweep_test must run."""
    cdef vec3 target = v3_add(m.s.position, direction)
    if (m.world.trace != NULL or not _at_hand(m, target) or not _has_looked_up(m)
            or not _is_clear(m, direction, target, min_distance, sweep_pass == PASS_UP)):
        return False
    _forget_touched(m)
    m.stats.iterations += 1
    m.s.position = target
    return True


cdef double _round_top(const candidate_group* g, vec3 up) noexcept nogil:
    """Highest point of a shape without faces, along up."""
    cdef vec3 u
    if g.kind == GROUP_BOX:
        u = q_unrotate(g.rotation, up)
        return v3_dot(g.q0, up) + (fabs(u.x) * g.q1.x + fabs(u.y) * g.q1.y + fabs(u.z) * g.q1.z)
    if g.kind == GROUP_SPHERE:
        return v3_dot(g.q0, up) + g.radius
    return f_max(v3_dot(g.q0, up), v3_dot(g.q1, up)) + g.radius


cdef vec3 _along_crease(move_job* m, const vec3* planes, int n, vec3 normal, vec3 position, vec3 before,
                        vec3 target) noexcept nogil:
    """FIX_CREASES: the new target if a response goes into a plane that was met before.

    ``before`` is the remaining motion before the response to ``normal``.
    """
    cdef vec3 remaining = v3_sub(target, position), crease
    cdef double size = v3_len(remaining)
    cdef int i, k
    for i in range(n):
        if v3_dot(remaining, planes[i]) < -INTO_PLANE * size and has_fix(m, FIX_CREASES):
            crease = v3_unit(v3_cross(planes[i], normal))
            remaining = v3_scale(crease, v3_dot(before, crease))
            size = v3_len(remaining)
            for k in range(n):
                # A third plane ends the motion.
                if (v3_dot(remaining, planes[k]) < -INTO_PLANE * size
                        and not (planes[k].x == planes[i].x and planes[k].y == planes[i].y
                                 and planes[k].z == planes[i].z)):
                    remaining = v3(0.0, 0.0, 0.0)
                    break
            return v3_add(position, remaining)
    return target


cdef inline double _above_floor(move_job* m, vec3 direction, const world_hit* hit, double advance) noexcept nogil:
    """FIX_CREASES: the advance of a motion that something overhead turned down onto a floor.

    The contact offset along the motion is less than the contact offset above the floor.
    """
    cdef double sinks = -v3_dot(direction, hit.base.normal), above
    if v3_dot(direction, m.p.up) >= 0.0 or v3_dot(hit.base.normal, m.p.up) <= 0.0 or sinks <= 0.0:
        return advance
    above = hit.base.distance - m.p.contact_offset / sinks
    return f_max(0.0, above) if above < advance and has_fix(m, FIX_CREASES) else advance


cdef bint _lowers_onto_floor(move_job* m, vec3 position, vec3 direction, double* advance, vec3* normal) noexcept nogil:
    """FIX_CREASES: whether a motion that leads down would end less than the contact offset above a floor.

    Then the advance and the normal are those of the floor. May set m.status.
    """
    cdef candidates* near = &m.cache.near
    cdef capsule_cast cast
    cdef world_hit hit
    cdef double sinks = -v3_dot(direction, m.p.up), drop = sinks * advance[0]
    cdef int passed = 0
    capsule_cast_set(&cast, v3_sub(position, m.half_axis), v3_add(position, m.half_axis), m.p.radius,
                     v3_scale(m.p.up, -1.0), drop + m.p.contact_offset, True, True)
    cast.meets_rims = cast.meets_back_rims = (m.p.rules & FIX_SHEET_EDGES) != 0
    if m.p.rules & FIX_BACK_FACES:
        cast.passed = &passed
        cast.passing = m.passing
    near.turn = PASS_DOWN
    if not candidates_cast(near, &cast, recovered_kinds(m.p), &hit):
        if m.scratch.book.needs_answer:
            m.status = STATUS_NEED_ANSWER
        return False
    if (hit.base.overlapping or hit.base.distance - m.p.contact_offset >= drop * (1.0 - MOTION_SHARE)
            or not has_fix(m, FIX_CREASES)):
        return False
    advance[0] = f_max(0.0, hit.base.distance - m.p.contact_offset) / sinks
    normal[0] = hit.base.normal
    return True


cdef inline void _stand_on(move_job* m, const world_hit* hit, const candidate_group* g, const collider* item,
                           const triangle* t, vec3 face) noexcept nogil:
    """Record the ground of the DOWN pass."""
    cdef controller_state* s = m.s
    cdef vec3 up = m.p.up
    cdef double h
    if t == NULL and g.kind != GROUP_PLANE:
        m.round_below = True
        m.round_below_normal = hit.base.normal
        m.round_max = _round_top(g, up)
    if g.owner == OWNER_ACTOR:
        s.marks &= ~<uint32_t>(TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)
        s.touched_actor = g.id
        s.touched_point = hit.base.point
        s.touched_local = unplace_point(item, hit.base.point)
        if g.body == BODY_STATIC and t != NULL:
            s.marks |= VALIDATE_TRIANGLE_DOWN
            s.down_normal = face
            h = v3_dot(t.a, up)
            s.touched_min = s.touched_max = h
            h = v3_dot(t.b, up)
            s.touched_min = f_min(s.touched_min, h)
            s.touched_max = f_max(s.touched_max, h)
            h = v3_dot(t.c, up)
            s.touched_min = f_min(s.touched_min, h)
            s.touched_max = f_max(s.touched_max, h)
        elif t != NULL:
            m.moving_below = True
            m.below_normal = face
            m.below_max = f_max(v3_dot(t.a, up), f_max(v3_dot(t.b, up), v3_dot(t.c, up)))
        elif g.kind == GROUP_PLANE:
            # RULES_2 1: a plane is one face without an end.
            if g.body == BODY_STATIC:
                s.marks |= VALIDATE_TRIANGLE_DOWN
                s.down_normal = face
                s.touched_min = -ENDLESS
                s.touched_max = ENDLESS
            else:
                m.moving_below = True
                m.below_normal = face
                m.below_max = ENDLESS
    elif g.owner == OWNER_OBSTACLE:
        s.marks |= TOUCH_OBSTACLE
        s.touched_obstacle = g.id
        if s.touched_actor < 0:
            s.touched_point = hit.base.point
            s.touched_local = unplace_point(item, hit.base.point)
    else:
        s.marks |= TOUCH_OTHER_CONTROLLER
        s.touched_controller = g.id
    set_ground(&s.ground, &m.cache.near, hit, g, item, face)
    s.ground.distance = f_min(hit.base.distance, m.p.contact_offset)


cdef bint _came_from_behind(const candidates* near, const capsule_cast* cast) noexcept nogil:
    """FIX_BACK_FACES: whether the capsule is behind the nearest one-sided triangle that it overlaps."""
    cdef facing_distances d
    cdef const candidate_group* g
    cdef bint behind = False
    cdef int32_t i
    d.front = d.back = d.crossed_front = d.crossed_back = NO_HIT
    for i in range(near.n_groups):
        g = &near.groups[i]
        if g.kind == GROUP_TRIANGLES and not g.closed and not g.two_sided:
            behind = is_behind_nearest(cast, near.tris + g.first, g.count, &d)
    return behind


cdef void _note_unseen(move_job* m, const candidates* near) noexcept nogil:
    """Record the triangles that face away from a sweep and that its end may overlap."""
    cdef int32_t i, k, n = m.n_unseen
    if n < 0:
        return
    if near.n_unseen < 0:
        m.n_unseen = -1
        return
    for k in range(near.n_unseen):
        i = 0
        while i < n and m.unseen[i] != near.picked[k]:
            i += 1
        if i == MAX_UNSEEN:
            m.n_unseen = -1
            return
        if i == n:
            m.unseen[n] = near.picked[k]
            n += 1
    m.n_unseen = n


cdef bint _sweep_test(move_job* m, vec3 displacement, int max_iterations, double min_distance, int sweep_pass,
                      int* collisions) noexcept nogil:
    """doSweepTest (MOVE 7.2, RULES 5): move along, and slide along obstacles.

    Returns whether a motion was tried; m.status reports a failure.
    """
    cdef controller_state* s = m.s
    cdef candidates* near = &m.cache.near
    cdef vec3 position = s.position, target, remaining, direction, normal, p0, p1, before
    cdef vec3[MAX_PLANES] planes            # normals of what stopped it without an advance
    cdef int n_planes = 0
    cdef double length, asked, advance
    cdef bint moved = False, upright, sliding, struck, faced, upright_face
    cdef bint on_steep = False, was_on_steep    # a too steep triangle deflected this motion
    cdef int passed
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const candidate_group* g
    cdef const collider* item
    cdef const triangle* t
    cdef vec3 face
    cdef double h
    cdef uint32_t behavior
    cdef int recovers = recovered_kinds(m.p)
    collisions[0] = 0
    if v3_is_zero(displacement):
        return False
    _forget_touched(m)
    asked = v3_len(displacement)
    target = v3_add(position, displacement)
    if m.world.trace != NULL:
        _trace(m, TRACE_PASS, sweep_pass, position, displacement, NULL)
    while max_iterations > 0:
        max_iterations -= 1
        remaining = v3_sub(target, position)
        if not _at_hand(m, target):
            m.status = _update_candidates(m, position, target)
            if m.status != STATUS_OK:
                return moved
        length = v3_len(remaining)
        if length <= min_distance:
            if m.world.trace != NULL:
                _trace(m, TRACE_DONE, sweep_pass, position, remaining, NULL)
            break
        direction = v3_scale(remaining, 1.0 / length)
        if v3_dot(direction, displacement) <= TURNED_BACK * asked:
            if m.world.trace != NULL:
                _trace(m, TRACE_TURNED_BACK, sweep_pass, position, direction, NULL)
            break
        moved = True
        m.stats.iterations += 1
        p0 = v3_sub(position, m.half_axis)
        p1 = v3_add(position, m.half_axis)
        capsule_cast_set(&cast, p0, p1, m.p.radius, direction, length + m.p.contact_offset, True, True)
        if m.p.rules & RULE_CULL_PARALLEL:
            cast.culls_parallel = True
        cast.meets_rims = cast.meets_back_rims = (m.p.rules & FIX_SHEET_EDGES) != 0
        if m.p.rules & FIX_BACK_FACES:
            passed = 0
            cast.passed = &passed
            cast.passing = m.passing
            # On the way down, no triangle faces away if all normals rise.
            cast.watches = not (sweep_pass == PASS_DOWN and m.cache.open_above and _has_looked_up(m)
                                and v3_dot(direction, m.p.up) <= -STRAIGHT)
        near.turn = sweep_pass
        struck = candidates_cast(near, &cast, recovers, &hit)
        if m.p.rules & FIX_BACK_FACES:
            if passed:
                m.passed = m.passed or m.passing or _came_from_behind(near, &cast)
                if m.passed and not m.passing and struck and hit.base.overlapping:
                    # The motion before this one came through from behind: this one passes all.
                    m.passing = cast.passing = True
                    struck = candidates_cast(near, &cast, recovers, &hit)
                if passed & PASSED_OVERLAP:
                    has_fix(m, FIX_BACK_FACES)
            if near.n_unseen != 0 and m.starts_free and sweep_pass != PASS_SENSOR:
                _note_unseen(m, near)
        if not struck and m.scratch.book.needs_answer:
            m.status = STATUS_NEED_ANSWER
            return moved
        if (sweep_pass == PASS_SIDE and m.p.rules & FIX_CREASES and v3_dot(direction, m.p.up) < -INTO_PLANE
                and not (struck and hit.base.overlapping)):
            advance = f_min(length, hit.base.distance - m.p.contact_offset) if struck else length
            if advance > 0.0 and _lowers_onto_floor(m, position, direction, &advance, &normal):
                position = v3_madd(position, direction, advance)
                before = v3_sub(target, position)
                target = collision_response(target, position, direction, normal, 0.0, 1.0,
                                            (s.marks & NORMALIZE_RESPONSE) != 0)
                if advance > 0.0:
                    n_planes = 0
                target = _along_crease(m, planes, n_planes, normal, position, before, target)
                planes[n_planes] = normal
                n_planes += 1
                continue
            if m.status != STATUS_OK:
                return moved
        if not struck:
            if m.world.trace != NULL:
                _trace(m, TRACE_FREE, sweep_pass, position, v3_sub(target, position), NULL)
            if on_steep:
                m.raised += f_max(0.0, v3_dot(v3_sub(target, position), m.p.up))
            position = target
            break
        if hit.base.overlapping:
            before = position
            m.n_unseen = -1
            m.status = recover(m, &position)
            _set_back(m)
            m.recovered = v3_add(m.recovered, v3_sub(position, before))
            if m.world.trace != NULL:
                _trace(m, TRACE_OVERLAP, sweep_pass, before, v3_sub(position, before), NULL)
            collisions[0] += 1
            s.position = position
            return moved
        g = &near.groups[hit.group]
        item = NULL
        if g.layer_index < 2:
            item = &m.world.fixed.items[g.item] if g.layer_index == 0 else &m.world.moving.items[g.item]
        t = &near.tris[hit.base.tri] if hit.base.tri >= 0 else NULL
        face = face_met(near, &hit, g, direction)
        if hit.base.tri >= 0 and hit.base.by_rim:
            has_fix(m, FIX_SHEET_EDGES)
            face = turned_against(face, direction)
        upright = sliding = False
        was_on_steep = on_steep
        if sweep_pass == PASS_DOWN:
            behavior = g.behavior
            if m.world.asks_behavior and not book_answer(&m.scratch.book, ASK_BEHAVIOR, g.owner, g.id, &behavior):
                m.status = STATUS_NEED_ANSWER
                return moved
            sliding = (behavior & CAN_SLIDE) != 0
            _stand_on(m, &hit, g, item, t, face)
        elif sweep_pass == PASS_SIDE or sweep_pass == PASS_SENSOR:
            faced = t != NULL or g.kind == GROUP_PLANE
            if g.owner == OWNER_ACTOR and g.body == BODY_STATIC and faced:
                s.marks |= VALIDATE_TRIANGLE_SIDE
                s.side_normal = face
                if m.p.prevent_vertical_sliding and v3_dot(face, m.p.up) < 0.0:
                    upright = True
            elif g.owner == OWNER_ACTOR and faced:
                m.moving_aside = True
                m.aside_normal = face
            elif not faced:
                m.round_aside = True
                m.round_aside_normal = hit.base.normal
            if sweep_pass == PASS_SIDE:
                h = v3_dot(face, m.p.up)
                # An upright face lifts nobody; its edge does, and may be that of a step.
                upright_face = faced and fabs(h) <= NEARLY_UPRIGHT
                on_steep = (not upright_face and (faced or m.p.rules & FIX_ROUND_SLOPES != 0)
                            and is_below_limit(h, m.p.slope_limit))
                if m.p.rules & FIX_LOWER_STEP and m.lifted > 0.0 and not m.lintel:
                    m.lintel = _is_lintel(m, &cast, &hit)
                    if m.scratch.book.needs_answer:
                        m.status = STATUS_NEED_ANSWER
                        return moved
        if not m.world.silent or m.world.trace != NULL:
            m.status = _note_hit(m, &hit, item, sweep_pass, position, direction, length)
            if m.status != STATUS_OK:
                return moved
        if sliding and collisions[0] == 0:
            max_iterations += SLIDE_ITERATIONS
        collisions[0] += 1
        s.contact_height = v3_dot(hit.base.point, m.p.up)
        advance = hit.base.distance - m.p.contact_offset
        if sweep_pass == PASS_SIDE and m.p.rules & FIX_CREASES and advance > 0.0:
            advance = _above_floor(m, direction, &hit, advance)
        if advance > 0.0:
            position = v3_madd(position, direction, advance)
            if was_on_steep:
                m.raised += f_max(0.0, v3_dot(direction, m.p.up) * advance)
        if max_iterations == 0 and m.world.trace == NULL:
            break
        normal = hit.base.normal
        if upright or ((s.marks & WALK_EXPERIMENT) and m.p.non_walkable != NON_WALKABLE_FORCE_SLIDING):
            normal = v3_unit(v3_reject(normal, m.p.up))
        before = v3_sub(target, position)
        target = collision_response(target, position, direction, normal, 0.0, 1.0, (s.marks & NORMALIZE_RESPONSE) != 0)
        if sweep_pass == PASS_SIDE and m.p.rules & FIX_CREASES:
            if advance > 0.0:
                n_planes = 0
            target = _along_crease(m, planes, n_planes, normal, position, before, target)
            planes[n_planes] = normal
            n_planes += 1
        if max_iterations == 0 and m.world.trace != NULL:
            _trace(m, TRACE_OUT_OF_TURNS, sweep_pass, position, v3_sub(target, position), NULL)
    s.position = position
    return moved


cdef int _move_character(move_job* m, vec3 displacement, double min_distance) noexcept nogil:
    """moveCharacter (MOVE 6.2, RULES 6): the passes up, aside and down. Returns collision flags."""
    cdef controller_state* s = m.s
    cdef const controller_params* p = m.p
    cdef vec3 up = p.up, saved, recovered, down, start = s.position
    cdef double rise = v3_dot(displacement, up)
    cdef double start_height = v3_dot(s.position, up)
    cdef double bottom = start_height - (0.5 * p.height + p.radius)
    cdef double gained, drop, left
    cdef bint experiment = (s.marks & WALK_EXPERIMENT) != 0
    cdef bint handles_slopes = p.slope_limit > 0.0, constrained, on_user
    cdef int flags = 0, collisions = 0, iterations
    cdef decomposition d = _decompose(displacement, up, m.step, m.standing_on_moving)
    m.lifted = 0.0
    m.raised = 0.0
    m.lintel = m.moving_below = m.moving_aside = m.round_below = m.round_aside = False
    s.marks &= ~<uint32_t>(HIT_NON_WALKABLE | IS_MOVING_UP | NORMALIZE_RESPONSE)
    if experiment and p.rules & RULE_NORMALIZE_EXPERIMENT:
        s.marks |= NORMALIZE_RESPONSE
    s.ground.touching = False
    if d.is_moving_up:
        s.marks |= IS_MOVING_UP
    m.side = d.side_vector
    # One query for the whole move, including the step (MOVE 5.2).
    m.status = _update_candidates(m, s.position, v3_add(s.position, displacement))
    if m.status != STATUS_OK:
        return 0

    if not experiment:
        iterations = MAX_ITERATIONS
        if p.prevent_vertical_sliding or v3_max_abs(d.side_vector) > ALMOST_ZERO:
            iterations = 1
        if (not _try_unobstructed_pass(m, d.up_vector, min_distance, PASS_UP)
                and _sweep_test(m, d.up_vector, iterations, min_distance, PASS_UP, &collisions) and collisions > 0):
            flags |= COLLISION_UP
            gained = v3_dot(s.position, up) - start_height
            d.step_offset = f_min(d.step_offset, gained)
            if not (rise > 0.0 and gained < rise * (1.0 - MOTION_SHARE)) and has_fix(m, FIX_STEP_IS_NO_JUMP):
                flags &= ~COLLISION_UP
        m.lifted = v3_dot(s.position, up) - start_height
        if m.status != STATUS_OK:
            return 0

    s.marks &= ~<uint32_t>VALIDATE_TRIANGLE_SIDE
    if (not _try_unobstructed_pass(m, d.side_vector, min_distance, PASS_SIDE)
            and _sweep_test(m, d.side_vector, MAX_ITERATIONS, min_distance, PASS_SIDE, &collisions) and collisions > 0):
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
            recovered = m.recovered
            _sweep_test(m, v3_scale(v3_unit(d.side_vector), p.radius), 1, min_distance, PASS_SENSOR, &collisions)
            s.position = saved
            m.recovered = recovered
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
        if handles_slopes:
            on_user = (s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)) != 0
            if (constrained and (not on_user or p.rules & FIX_ROUND_SLOPES)
                    and not p.rules & RULE_SIDE_CHECK_AT_ONCE and s.contact_height > bottom + d.step_offset
                    and _steep_aside(m) and (not on_user or has_fix(m, FIX_ROUND_SLOPES))):
                s.marks |= HIT_NON_WALKABLE
                if m.world.trace != NULL:
                    _trace(m, TRACE_TOO_STEEP_ASIDE, PASS_DOWN, s.position, s.side_normal, NULL)
                if not experiment:
                    return flags
    if m.status != STATUS_OK:
        return 0

    on_user = (s.marks & (TOUCH_OTHER_CONTROLLER | TOUCH_OBSTACLE)) != 0
    if (handles_slopes and rise <= 0.0
            and ((_round_is_steep(m, bottom) and has_fix(m, FIX_ROUND_SLOPES)) if on_user
                 else _steep_below(m, bottom))):
        s.marks |= HIT_NON_WALKABLE
        if m.world.trace != NULL:
            _trace(m, TRACE_TOO_STEEP_BELOW, PASS_DOWN, s.position, s.down_normal, NULL)
        if not experiment:
            return flags
        if p.rules & RULE_RECOVERY_SWEEP_AFTER:
            return flags
        s.marks |= NORMALIZE_RESPONSE
        gained = v3_dot(s.position, up) - start_height
        drop = f_max(0.0, gained) + fabs(rise)
        if p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            left = f_max(0.0, m.longest - v3_len(v3_sub(s.position, start)))
            if drop > left * (1.0 + MOTION_SHARE) and has_fix(m, FIX_SLIDE_LENGTH):
                drop = left
        if drop < min_distance:
            min_distance = drop / MAX_ITERATIONS
        # PhysX calls this motion down an UP pass, and hits are reported as such.
        _sweep_test(m, v3_scale(up, -drop), MAX_ITERATIONS, min_distance, PASS_UP, &collisions)
        if not p.rules & RULE_NORMALIZE_EXPERIMENT:
            s.marks &= ~<uint32_t>NORMALIZE_RESPONSE
        return flags

    if (m.raised > MOTION_SHARE * v3_len(d.side_vector) and not s.ground.touching and not experiment and handles_slopes
            and rise <= 0.0 and v3_dot(s.position, up) - start_height > MOTION_SHARE * v3_len(d.side_vector)
            and has_fix(m, FIX_STEEP_ASIDE)):
        s.marks |= HIT_NON_WALKABLE
        if m.world.trace != NULL:
            _trace(m, TRACE_TOO_STEEP_ASIDE, PASS_SIDE, s.position, s.side_normal, NULL)
    return flags


cdef inline bint _is_plain(const move_job* m) noexcept nogil:
    """Whether the fast path applies: no callbacks, nothing moves, no differences of RULES 9."""
    return (m.p.rules & ANY_RULE == 0 and m.p.climbing == CLIMBING_EASY and m.world.trace == NULL
            and m.world.others == NULL and m.world.moving.n == 0 and not m.world.filters
            and not m.world.asks_behavior)


cdef inline bint _is_too_far(const move_job* m, vec3 position) noexcept nogil:
    return m.world.farthest > 0.0 and v3_max_abs(position) > m.world.farthest


cdef bint _flat_ground_fast_path(move_job* m, vec3 displacement, double min_distance) noexcept nogil:
    """_move_character over ground that no candidate rises above.

    The character moves up and aside without contact, then down onto the face of the last move. The
    result has the same bits, at half the cost. False: nothing is done, and the general path must
    run.
    """
    cdef controller_state* s = m.s
    cdef const controller_params* p = m.p
    cdef candidates* near = &m.cache.near
    cdef vec3 start = s.position
    cdef double start_height = v3_dot(start, p.up), length, bottom
    cdef decomposition d
    cdef vec3 lifted, beside, down, end, direction, reach
    cdef capsule_cast cast
    cdef world_hit hit
    cdef const candidate_group* g
    cdef const triangle* t
    # Most other moves end here, by the cache of the last move.
    if start_height + p.step_offset <= m.cache.top + m.above:
        return False
    d = _decompose(displacement, p.up, p.step_offset, False)
    if d.is_moving_up or not d.has_side_movement:
        return False
    m.side = d.side_vector
    lifted = v3_add(s.position, d.up_vector)
    beside = v3_add(lifted, d.side_vector)
    down = v3_madd(d.down_vector, p.up, -d.step_offset)
    # No part of the move goes farther than this.
    reach = v3_madd(v3_add(v3_abs(d.side_vector), v3_abs(d.down_vector)), v3_abs(p.up), d.step_offset)
    if m.first_query and _is_still_around(m, v3_sub(s.position, reach), v3_add(s.position, reach)):
        m.first_query = False
    else:
        m.status = _update_candidates(m, s.position, v3_add(s.position, displacement))
        if (m.status != STATUS_OK
                or not (_at_hand(m, lifted) and _at_hand(m, beside) and _at_hand(m, v3_add(beside, down))
                        and _has_looked_up(m))):
            return False
    if not (_is_clear(m, d.up_vector, lifted, min_distance, True)
            and _is_clear(m, d.side_vector, beside, min_distance, False)):
        return False
    direction = v3_sub(v3_add(beside, down), beside)
    length = v3_len(direction)
    if length <= min_distance or v3_len2(down) <= KNOWN2 * m.far * m.far:
        return False
    direction = v3_scale(direction, 1.0 / length)
    capsule_cast_set(&cast, v3_sub(beside, m.half_axis), v3_add(beside, m.half_axis), p.radius, direction,
                     length + p.contact_offset, True, True)
    # On the way down, no triangle faces away if all normals rise.
    if p.rules & FIX_SHEET_EDGES:
        cast.meets_back_rims = not m.cache.open_above
    near.turn = PASS_DOWN
    if not candidates_cast_again(near, &cast, &hit):
        return False
    g = &near.groups[hit.group]
    t = &near.tris[hit.base.tri]
    bottom = start_height - (0.5 * p.height + p.radius)
    # Sliding ground and steep ground take the general path.
    if g.behavior & CAN_SLIDE or (p.slope_limit > 0.0 and _too_steep(p, t.n) and (p.rules & FIX_STEEP_CLIMB or f_max(
            v3_dot(t.a, p.up), f_max(v3_dot(t.b, p.up), v3_dot(t.c, p.up))) - bottom > p.step_offset)):
        return False
    end = beside
    if hit.base.distance > p.contact_offset:
        end = v3_madd(beside, direction, hit.base.distance - p.contact_offset)
    if _is_too_far(m, end):
        return False
    if not m.world.silent:
        m.status = _note_hit(m, &hit, &m.world.fixed.items[g.item], PASS_DOWN, beside, direction, length)
        if m.status != STATUS_OK:
            return False
    _forget_touched(m)
    s.marks &= ~<uint32_t>(HIT_NON_WALKABLE | IS_MOVING_UP | NORMALIZE_RESPONSE | VALIDATE_TRIANGLE_SIDE)
    _stand_on(m, &hit, g, &m.world.fixed.items[g.item], t, t.n)
    s.contact_height = v3_dot(hit.base.point, p.up)
    s.position = end
    if p.rules > ANY_RULE:
        if p.rules & FIX_STEEP_CLIMB:
            _count_steep_climb(m, v3_dot(v3_sub(s.position, start), p.up), False)
        if p.rules & FIX_BACK_FACES:
            # No overlap: the move started above all candidates.
            s.marks &= ~<uint32_t>PASSES_BACK_FACE
            if m.cache.open_above and _meets_only_static(m):
                # None of them faces a motion up, so the motion down has seen all.
                _note_free(m)
    s.platform_delta = v3(0.0, 0.0, 0.0)
    s.overlap = 0.0
    s.flags = COLLISION_DOWN
    m.stats.iterations = 3
    return True


cdef inline bint _meets_only_static(const move_job* m) noexcept nogil:
    """Whether everything that the move can meet is static, and solid to it."""
    return (m.world.moving.n == 0 and m.world.others == NULL and not m.world.filters
            and m.p.invisible_wall_height <= 0.0 and m.p.overlap_recovery)


cdef inline void _note_free(const move_job* m) noexcept nogil:
    """The position is a free_place."""
    cdef free_place* free = &m.cache.free
    free.position = m.s.position
    free.half_axis = m.half_axis
    free.radius = m.p.radius
    free.version = m.world.fixed.version
    free.mask = m.world.mask


cdef inline bint _is_free_place(const move_job* m) noexcept nogil:
    """Whether the position is a known free_place, in the same scene."""
    cdef const free_place* free = &m.cache.free
    return (free.position.x == m.s.position.x and free.position.y == m.s.position.y
            and free.position.z == m.s.position.z and free.radius == m.p.radius
            and free.half_axis.x == m.half_axis.x and free.half_axis.y == m.half_axis.y
            and free.half_axis.z == m.half_axis.z and free.version == m.world.fixed.version
            and free.mask == m.world.mask)


cdef bint _stays_free(const move_job* m) noexcept nogil:
    """Whether the end surely overlaps nothing because the start does not.

    No sweep leads into a triangle that it sees, so only the others are tested.
    """
    cdef candidates* near = &m.cache.near
    cdef vec3 p0 = v3_sub(m.s.position, m.half_axis), p1 = v3_add(m.s.position, m.half_axis)
    cdef double radius = m.p.radius * (1.0 - 0.5 * MOTION_SHARE)
    cdef int32_t k
    if not m.starts_free or m.n_unseen < 0:
        return False
    for k in range(m.n_unseen):
        if candidates_overlap_one(near, m.unseen[k], p0, p1, radius):
            return False
    return True


cdef int _find_overlap(move_job* m, int kinds, push_out* push, int32_t* group) noexcept nogil:
    """Find the deepest overlap of the capsule with some kinds of bodies; a touch is none."""
    cdef candidate_cache* c = m.cache
    cdef double radius = m.p.radius * (1.0 - MOTION_SHARE)
    cdef vec3 p0 = v3_sub(m.s.position, m.half_axis), p1 = v3_add(m.s.position, m.half_axis)
    cdef int status
    push.overlapping = False
    # The cache only excludes an overlap, because its depth depends on the triangles beside. The
    # larger radius allows for rounding.
    if (c.valid and m.p.invisible_wall_height <= 0.0 and box_inside(capsule_bounds(p0, p1, m.p.radius), c.bounds)
            and not candidates_overlap(&c.near, m.world.fixed, m.world.moving, p0, p1,
                                       m.p.radius * (1.0 - 0.5 * MOTION_SHARE))):
        if _meets_only_static(m):
            _note_free(m)
        return STATUS_OK
    status = gather_around(m, m.s.position, m.p.radius)
    if status != STATUS_OK:
        return status
    push[0] = candidates_deepest(&m.scratch.around, p0, p1, radius, kinds, group)
    return STATUS_NEED_ANSWER if m.scratch.book.needs_answer else STATUS_OK


cdef int _is_still_inside(move_job* m) noexcept nogil:
    """FIX_BACK_FACES: whether it ends inside one-sided triangles that none of its passes looked at."""
    cdef const candidate_group* g
    cdef push_out push
    cdef int32_t group
    cdef int status = _find_overlap(m, RECOVERS, &push, &group)
    if status == STATUS_OK and push.overlapping:
        g = &m.scratch.around.groups[group]
        m.passed = g.kind == GROUP_TRIANGLES and not g.closed and not g.two_sided
    return status


cdef int _leave_overlaps(move_job* m) noexcept nogil:
    """FIX_KINEMATIC_RECOVERY and FIX_STATIC_RECOVERY: out of bodies in which the move ends.

    The depth that remains in anything is stored.
    """
    cdef push_out push
    cdef vec3 before
    cdef int32_t group
    cdef int kinds = 0, status
    # A character that comes through triangles from behind stays inside until it is through.
    cdef bint reports = m.p.rules & FIX_STATIC_RECOVERY != 0 and not m.passed
    if m.p.overlap_recovery:
        if m.p.rules & FIX_KINEMATIC_RECOVERY:
            kinds |= 1 << BODY_KINEMATIC
        if reports:
            kinds |= 1 << BODY_STATIC
    if _stays_free(m):
        _note_free(m)
        return STATUS_OK
    status = _find_overlap(m, ANY_BODY if reports else kinds, &push, &group)
    if status != STATUS_OK or not push.overlapping:
        return status
    if m.p.rules & FIX_KINEMATIC_RECOVERY and m.world.others != NULL:
        status = rise_from_below(m)
        if status != STATUS_OK:
            return status
    if kinds != 0:
        status = _find_overlap(m, kinds, &push, &group)
        if status != STATUS_OK:
            return status
        if push.overlapping:
            has_fix(m, FIX_STATIC_RECOVERY if m.scratch.around.groups[group].body == BODY_STATIC
                    else FIX_KINEMATIC_RECOVERY)
            before = m.s.position
            status = recover(m, &m.s.position)
            _set_back(m)
            if status != STATUS_OK:
                return status
            m.recovered = v3_add(m.recovered, v3_sub(m.s.position, before))
    if reports:
        status = _find_overlap(m, ANY_BODY, &push, &group)
        push.depth += m.p.radius * MOTION_SHARE
        if status == STATUS_OK and push.overlapping and push.depth > m.s.overlap and has_fix(m, FIX_STATIC_RECOVERY):
            m.s.overlap = push.depth
    return status


cdef double _straight_way(move_job* m, vec3 start, vec3 side, double longest, triangle* blocker,
                          bint* blocked) noexcept nogil:
    """FIX_LOWER_STEP: the free distance aside to the first hit, at most ``longest``.

    Copies the triangle that was hit.
    """
    cdef candidates* near = &m.cache.near
    cdef capsule_cast cast
    cdef world_hit hit
    cdef int passed = 0
    capsule_cast_set(&cast, v3_sub(start, m.half_axis), v3_add(start, m.half_axis), m.p.radius, side,
                     longest + m.p.contact_offset, True, True)
    cast.meets_rims = cast.meets_back_rims = (m.p.rules & FIX_SHEET_EDGES) != 0
    if m.p.rules & FIX_BACK_FACES:
        cast.passed = &passed
        cast.passing = m.passing
    near.turn = PASS_SENSOR
    blocked[0] = False
    if candidates_cast(near, &cast, recovered_kinds(m.p), &hit):
        if (not hit.base.overlapping and hit.base.tri >= 0
                and group_recovers(&near.groups[hit.group], recovered_kinds(m.p))):
            blocker[0] = near.tris[hit.base.tri]
            blocked[0] = True
        return f_min(longest, f_max(0.0, hit.base.distance - m.p.contact_offset))
    if m.scratch.book.needs_answer:
        m.status = STATUS_NEED_ANSWER
    return longest


cdef inline bint _blocks(const move_job* m, const triangle* t, vec3 start, vec3 side, double distance) noexcept nogil:
    """Whether a triangle ends a straight motion aside within a distance and the contact offset."""
    # Sweeps may ignore a triangle whose back the centre faces.
    if v3_dot(t.n, v3_sub(start, t.a)) * v3_dot(t.n, side) >= 0.0:
        return False
    distance += m.p.contact_offset
    return capsule_triangle_time(v3_sub(start, m.half_axis), v3_add(start, m.half_axis), m.p.radius, side, t,
                                 distance) <= distance


cdef int _lower_step(move_job* m, const controller_state* before, vec3 displacement, double min_distance,
                     int flags) noexcept nogil:
    """FIX_LOWER_STEP: moveCharacter again with eighths of the step offset, after a lintel.

    Only where the straight motion leads farther than the move so far. The farthest motion aside
    wins; among equal ones the highest step. Returns collision flags.
    """
    cdef double lifted = m.lifted, tested
    cdef triangle blocker
    cdef bint blocked = False
    cdef vec3 start
    cdef aabb low, high
    cdef hit_log* log = m.scratch.log
    cdef vec3 side = v3_unit(v3_reject(displacement, m.p.up))
    cdef double asked = v3_dot(displacement, side)
    cdef double best = v3_dot(v3_sub(m.s.position, before.position), side), now
    cdef controller_state best_state = m.s[0]
    cdef vec3 recovered = m.recovered
    cdef int32_t n = log.n
    cdef int eighths, again
    cdef push_out push
    cdef int32_t group
    low = temporal_box(m.p, before.position, v3_scale(side, asked))
    high = temporal_box(m.p, v3_madd(before.position, m.p.up, lifted), v3_scale(side, asked))
    for eighths in range(STEP_PARTS - 1, -1, -1):
        if best >= asked * (1.0 - MOTION_SHARE):
            break
        m.step = m.p.step_offset * eighths / STEP_PARTS
        start = v3_madd(before.position, m.p.up, f_min(lifted, m.step))
        # Half of the least improvement allows for rounding.
        tested = best + 0.5 * asked * MOTION_SHARE
        if blocked and _blocks(m, &blocker, start, side, tested):
            continue
        _set_back(m)
        m.status = _fetch(m, box_union(low, high))
        if m.status == STATUS_OK:
            now = _straight_way(m, start, side, asked, &blocker, &blocked)
        if m.status != STATUS_OK:
            return 0
        if now <= best + asked * MOTION_SHARE:
            # A triangle that blocks two heights blocks all heights between them (see _is_lintel).
            if blocked and _blocks(m, &blocker, before.position, side, tested):
                break
            continue
        m.s[0] = before[0]
        m.recovered = v3(0.0, 0.0, 0.0)
        m.pushed_out = False
        again = _move_character(m, displacement, min_distance)
        if m.status != STATUS_OK:
            return 0
        now = v3_dot(v3_sub(m.s.position, before.position), side)
        if m.s.marks & HIT_NON_WALKABLE or now <= best + asked * MOTION_SHARE:
            log.n = n
            continue
        m.status = _find_overlap(m, ANY_BODY, &push, &group)
        if m.status != STATUS_OK:
            return 0
        if not push.overlapping and has_fix(m, FIX_LOWER_STEP):
            best = now
            best_state = m.s[0]
            recovered = m.recovered
            flags = again
            if log.n > n:
                memmove(log.records, log.records + n, <size_t>(log.n - n) * sizeof(hit_record))
            n = log.n - n
        log.n = n
    m.s[0] = best_state
    m.recovered = recovered
    _set_back(m)
    m.step = m.p.step_offset
    return flags


cdef int _move_whole(move_job* m, vec3 displacement, double min_distance) noexcept nogil:
    """The ride, moveCharacter and the walk experiment; returns collision flags."""
    cdef const controller_params* p = m.p
    cdef const move_world* world = m.world
    cdef vec3 start = m.s.position, carried, total
    cdef double drop, rise = 0.0
    cdef bint fixes = p.rules > ANY_RULE
    cdef int flags, collisions
    cdef controller_state before
    m.starts_free = False
    if fixes:
        displacement = _level(m, displacement)
        rise = v3_dot(displacement, p.up)
        # Far from the origin, rounding may exceed what _find_overlap takes for a touch.
        m.starts_free = (m.p.rules & SEES_ALL == SEES_ALL and not m.p.rules & RULE_CULL_PARALLEL
                         and m.far < FREE_FAR * m.p.radius and _meets_only_static(m) and _is_free_place(m))
        if m.s.touched_controller >= 0 and world.others != NULL and p.rules & FIX_KINEMATIC_RECOVERY:
            m.status = rise_from_below(m)
            if m.status != STATUS_OK:
                return 0
    displacement = ride(m, displacement)
    if m.status != STATUS_OK:
        return 0
    if fixes:
        displacement = _level(m, displacement)
    carried = m.s.position
    total = displacement
    if world.trace != NULL and not v3_is_zero(m.s.platform_delta):
        _trace(m, TRACE_RIDE, PASS_UP, start, m.s.platform_delta, NULL)
    if p.rules & FIX_LOWER_STEP:
        before = m.s[0]
    flags = _move_character(m, displacement, min_distance)
    if m.status == STATUS_OK and m.lintel and not m.s.marks & HIT_NON_WALKABLE:
        flags = _lower_step(m, &before, displacement, min_distance, flags)
    if m.status == STATUS_OK and m.s.marks & HIT_NON_WALKABLE:
        # The move starts again after the ride, as the walk experiment (MOVE 3.2.5, RULES 7.4).
        m.s.marks |= WALK_EXPERIMENT
        m.s.position = carried
        m.recovered = v3(0.0, 0.0, 0.0)
        m.pushed_out = False
        _set_back(m)
        m.longest = v3_len(total)
        if p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            displacement = v3_along(total, p.up)
            if p.rules & RULE_FORCE_SLIDE_HORIZONTAL:
                displacement = v3_sub(total, displacement)
        if world.trace != NULL:
            _trace(m, TRACE_EXPERIMENT, PASS_UP, carried, displacement, NULL)
        flags = _move_character(m, displacement, min_distance)
        if (m.status == STATUS_OK and p.rules & RULE_RECOVERY_SWEEP_AFTER and m.s.marks & VALIDATE_TRIANGLE_DOWN
                and _too_steep(p, m.s.down_normal)):
            drop = v3_dot(m.s.position, p.up) - v3_dot(carried, p.up)
            drop = f_max(0.0, drop) + fabs(v3_dot(total, p.up))
            _sweep_test(m, v3_scale(p.up, -drop), MAX_ITERATIONS, min_distance, PASS_UP, &collisions)
        m.s.marks &= ~<uint32_t>(WALK_EXPERIMENT | NORMALIZE_RESPONSE)
    if not fixes:
        return flags
    if p.rules & FIX_STEEP_CLIMB:
        _count_steep_climb(m, v3_dot(v3_sub(m.s.position, carried), p.up), rise > 0.0)
    if p.rules & FIX_BACK_FACES:
        if m.passing and not m.passed and m.status == STATUS_OK:
            m.status = _is_still_inside(m)
        m.s.marks = m.s.marks | PASSES_BACK_FACE if m.passed else m.s.marks & ~<uint32_t>PASSES_BACK_FACE
    if m.status == STATUS_OK and (p.rules & FIX_STATIC_RECOVERY
                                  or (p.rules & FIX_KINEMATIC_RECOVERY
                                      and (world.moving.n > 0 or world.others != NULL))):
        m.status = _leave_overlaps(m)
    if m.status == STATUS_OK and world.moving.n > 0:
        if (p.rules & FIX_KEEP_RIDE and rise <= 0.0 and not m.s.ground.touching
                and m.s.touched_actor < 0 and m.s.touched_obstacle < 0 and m.s.touched_controller < 0
                and (m.carried or m.stats.iterations == 0 or m.stats.recoveries > 0)):
            m.status = keep_ride(m)
    return flags


cdef void _try_whole(move_job* m, vec3 displacement, double min_distance) noexcept nogil:
    """_move_whole and its consequences; the state stays unchanged if m.status reports a failure."""
    cdef controller_state* s = m.s
    cdef controller_state before = s[0]
    m.passing = (s.marks & PASSES_BACK_FACE) != 0
    s.overlap = 0.0
    s.flags = _move_whole(m, displacement, min_distance)
    if m.status == STATUS_OK and not v3_finite(s.position):
        m.status = STATUS_NOT_FINITE
    if m.status == STATUS_OK and _is_too_far(m, s.position):
        m.status = STATUS_TOO_FAR
    if m.status != STATUS_OK:
        s[0] = before
        return
    if (m.stats.iterations == 0 and not s.ground.touching
            and (s.touched_actor >= 0 or s.touched_obstacle >= 0 or s.touched_controller >= 0)):
        # No pass started: the ground is unchanged.
        s.ground.touching = before.ground.touching


cdef inline void _note_motion(const move_job* m, vec3 start, vec3 asked, double dt, bint plain) noexcept nogil:
    """Store the motion of a move, and the velocity without recovery and separation.

    ``plain``: recovery has moved nothing.

    A wall may block a separation. Its length counts as far as the motion along it exceeds that of
    the displacement and the platform.
    """
    cdef controller_state* s = m.s
    cdef vec3 own = v3_sub(s.position, start), direction
    cdef double size, gained
    s.displacement = own
    s.asked = asked
    if not plain and not v3_is_zero(m.recovered):
        own = v3_sub(own, m.recovered)
    if not v3_has_no_bits(s.separation):
        size = v3_len(s.separation)
        direction = v3_scale(s.separation, 1.0 / size)
        gained = v3_dot(v3_sub(v3_sub(own, asked), s.platform_delta), direction)
        own = v3_madd(own, direction, -f_max(0.0, f_min(gained, 2.0 * size - gained)))
        s.separation = v3(0.0, 0.0, 0.0)
    s.velocity = v3_scale(own, 1.0 / dt) if dt > 0.0 else v3(0.0, 0.0, 0.0)


cdef int move_controller(const controller_params* p, controller_state* state, const move_world* world,
                         move_scratch* scratch, vec3 displacement, double dt, double min_distance,
                         move_stats* stats) noexcept nogil:
    """Controller::move (MOVE 3.2, RULES 7)."""
    cdef move_job m
    cdef vec3 start = state.position, total
    cdef int64_t tested
    begin_job(&m, p, state, world, scratch, stats)
    tested = m.cache.near.tested
    scratch.log.n = 0
    total = v3_add(displacement, state.separation)
    if m.cache.valid and not scratch.expand_each_move and not _has_looked_up(&m):
        _turn_cache(&m)
    if _is_plain(&m) and _flat_ground_fast_path(&m, total, min_distance):
        stats.triangles_tested = m.cache.near.tested - tested
        _note_motion(&m, start, displacement, dt, True)
        return STATUS_OK
    if m.status == STATUS_OK:
        m.recovered = v3(0.0, 0.0, 0.0)
        m.longest = 0.0
        _try_whole(&m, total, min_distance)
    stats.triangles_tested = m.cache.near.tested - tested
    if m.status != STATUS_OK:
        return m.status
    _note_motion(&m, start, displacement, dt, False)
    return STATUS_OK


cdef bint move_is_short(const controller_state* state, const move_world* world, const move_scratch* scratch,
                        vec3 displacement) noexcept nogil:
    cdef const candidate_cache* c = &scratch.cache
    return (c.near.n_tris + c.near.n_groups <= SHORT_MOVE and world.moving.n == 0
            and _is_around(c, world, state.position, v3_add(state.position, displacement)))


cdef int move_compact(const controller_params* p, controller_state* state, const move_world* world,
                      compact_cache* cache, move_scratch* scratch, vec3 displacement, double dt, double min_distance,
                      move_stats* stats) noexcept nogil:
    cdef candidate_cache* c = &scratch.cache
    cdef int status
    c.valid = False
    c.free.radius = 0.0
    if (cache.near.whole and cache.fixed_version == world.fixed.version and cache.mask == world.mask
            and p.invisible_wall_height <= 0.0):
        candidates_cut(&c.near, 0, 0)
        status = candidates_expand(&c.near, world.fixed, 0, &cache.near)
        if status != STATUS_OK:
            return status
        c.bounds = cache.bounds
        c.has_safe_region = c.open_above = False
        c.top = NO_HIT
        c.fixed_version = cache.fixed_version
        c.timestamp = cache.timestamp
        # Moving actors are looked up in every move, unless there are none.
        c.moving_version = world.moving.version if world.moving.n == 0 else 0
        c.mask = cache.mask
        c.fixed_groups = c.near.n_groups
        c.fixed_tris = c.near.n_tris
        c.near.hints = cache.hints
        c.valid = True
    scratch.expand_each_move = True
    status = move_controller(p, state, world, scratch, displacement, dt, min_distance, stats)
    scratch.expand_each_move = False
    cache.hints = c.near.hints
    if stats.full_updates > 0:
        cache.near.whole = False
        if c.valid and p.invisible_wall_height <= 0.0:
            candidates_cut(&c.near, c.fixed_groups, c.fixed_tris)
            # Without memory for the cache the next move gathers again.
            candidates_keep(&c.near, world.fixed, &cache.near)
            cache.bounds = c.bounds
            cache.fixed_version = c.fixed_version
            cache.timestamp = c.timestamp
            cache.mask = c.mask
    c.valid = False
    return status


cdef void compact_cache_free(compact_cache* cache) noexcept nogil:
    compact_free(&cache.near)
