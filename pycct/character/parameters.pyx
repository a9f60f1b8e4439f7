# cython: language_level=3
"""Shared by CharacterController, Crowd and move_many. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from pycct.args.values cimport (
    FARTHEST,
    as_behavior,
    as_bits,
    as_bool,
    as_float,
    as_not_negative,
    as_positive,
    as_unit,
    from_quat,
    from_vec3,
    short,
)
from pycct.character.move_types cimport (
    CLIMBING_CONSTRAINED,
    CLIMBING_EASY,
    NON_WALKABLE_FORCE_SLIDING,
    NON_WALKABLE_PREVENT_CLIMBING,
)
from pycct.geometry.tolerances cimport is_below_limit
from pycct.geometry.vec cimport f_max, quat, v3_add, v3_dot, v3_len, v3_madd, v3_scale, v3_sub
from pycct.world.candidates cimport OWNER_CONTROLLER

from pycct.runtime.enums import Behavior, ClimbingMode, NonWalkableMode, Rules

SHORTEST = 1e-100
SEPARATION_SPEED = 4.0
SMALLEST_GAP = 1e-9
cdef dict CLIMBING = {"easy": CLIMBING_EASY, "constrained": CLIMBING_CONSTRAINED}
cdef dict NON_WALKABLE = {"prevent_climbing": NON_WALKABLE_PREVENT_CLIMBING,
                          "force_sliding": NON_WALKABLE_FORCE_SLIDING}
cdef dict RULE_SETS = {"physx": Rules.PHYSX, "document": Rules.DOCUMENT, "robust": Rules.ROBUST}


cdef double as_time(object value) except? -1.0:
    cdef double seconds = as_not_negative(value, "dt")
    if 0.0 < seconds < SHORTEST:
        raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {seconds}")
    return seconds


cdef int _as_mode(object value, dict modes, object enum, str name) except -1:
    if isinstance(value, enum):
        value = value.value
    if not isinstance(value, str) or value not in modes:
        raise ValueError(f"{name} must be one of {sorted(modes)}, not {short(value)}")
    return modes[value]


cdef uint32_t _as_rules(object value) except? 0:
    if isinstance(value, str):
        if value not in RULE_SETS:
            raise ValueError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {short(value)}")
        return <uint32_t>int(RULE_SETS[value])
    if not isinstance(value, Rules):
        raise TypeError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {short(value)}")
    return as_bits(value, "rules")


cdef double _as_slope_limit(object value) except? -1.0:
    cdef double x = as_float(value, "slope_limit")
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"slope_limit must be a cosine from 0 to 1, got {x}")
    return x


cdef int parameter_set(controller_params* p, str name, object value) except -1:
    if name == "radius":
        p.radius = as_positive(value, name)
    elif name == "height":
        p.height = as_not_negative(value, name)
    elif name == "up":
        p.up = as_unit(value, name)
    elif name == "step_offset":
        p.step_offset = as_not_negative(value, name)
    elif name == "contact_offset":
        p.contact_offset = as_not_negative(value, name)
    elif name == "slope_limit":
        p.slope_limit = _as_slope_limit(value)
    elif name == "climbing_mode":
        p.climbing = _as_mode(value, CLIMBING, ClimbingMode, name)
    elif name == "non_walkable_mode":
        p.non_walkable = _as_mode(value, NON_WALKABLE, NonWalkableMode, name)
    elif name == "rules":
        p.rules = _as_rules(value)
    elif name == "collide":
        p.collide = as_bool(value, name)
    elif name == "surface":
        p.surface = as_behavior(value, name)
    elif name == "overlap_recovery":
        p.overlap_recovery = as_bool(value, name)
    elif name == "prevent_vertical_sliding":
        p.prevent_vertical_sliding = as_bool(value, name)
    elif name == "invisible_wall_height":
        p.invisible_wall_height = as_not_negative(value, name)
    elif name == "max_jump_height":
        p.max_jump_height = as_not_negative(value, name)
    elif name == "layer":
        p.layer = as_bits(value, name)
    elif name == "mask":
        p.mask = as_bits(value, name)
    else:
        raise TypeError(f"unexpected keyword argument {short(name)}")
    return 0


cdef object parameter_get(const controller_params* p, str name):
    if name == "up":
        return from_vec3(p.up)
    if name == "climbing_mode":
        return ClimbingMode.CONSTRAINED if p.climbing == CLIMBING_CONSTRAINED else ClimbingMode.EASY
    if name == "non_walkable_mode":
        if p.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            return NonWalkableMode.FORCE_SLIDING
        return NonWalkableMode.PREVENT_CLIMBING
    if name == "rules":
        return Rules(p.rules)
    if name == "surface":
        return Behavior(p.surface)
    return {
        "radius": p.radius, "height": p.height, "step_offset": p.step_offset, "contact_offset": p.contact_offset,
        "slope_limit": p.slope_limit, "invisible_wall_height": p.invisible_wall_height,
        "max_jump_height": p.max_jump_height, "layer": p.layer, "mask": p.mask, "collide": bool(p.collide),
        "overlap_recovery": bool(p.overlap_recovery), "prevent_vertical_sliding": bool(p.prevent_vertical_sliding),
    }[name]


cdef int parameters_check(const controller_params* p) except -1:
    """Check the conditions between parameters."""
    cdef double size = f_max(f_max(p.radius, p.height), f_max(p.contact_offset, p.invisible_wall_height))
    if f_max(size, p.max_jump_height) > FARTHEST:
        raise ValueError(f"radius, height, contact_offset, invisible_wall_height and max_jump_height "
                         f"must not exceed {FARTHEST:g} m")
    if p.step_offset > p.height + 2.0 * p.radius:
        raise ValueError(f"step_offset must not exceed the character's height {p.height + 2.0 * p.radius}, "
                         f"got {p.step_offset}")
    return 0


cdef int parameters_loaded(controller_params* p) except -1:
    """The checks of the constructor."""
    p.radius = as_positive(p.radius, "data: radius")
    p.height = as_not_negative(p.height, "data: height")
    p.contact_offset = as_not_negative(p.contact_offset, "data: contact_offset")
    p.step_offset = as_not_negative(p.step_offset, "data: step_offset")
    p.slope_limit = _as_slope_limit(p.slope_limit)
    p.invisible_wall_height = as_not_negative(p.invisible_wall_height, "data: invisible_wall_height")
    p.max_jump_height = as_not_negative(p.max_jump_height, "data: max_jump_height")
    if not 0.999999 <= v3_len(p.up) <= 1.000001 or p.climbing not in (0, 1) or p.non_walkable not in (0, 1):
        raise ValueError("data is damaged: its parameters make no sense")
    return parameters_check(p)


cdef void state_forget(controller_state* st, vec3 position) noexcept nogil:
    memset(st, 0, sizeof(controller_state))
    st.position = position
    st.touched_actor = st.touched_obstacle = st.touched_controller = -1
    st.ground.id = -1
    st.ground.triangle = -1


cdef void state_shift(controller_state* s, vec3 offset, vec3 up) noexcept nogil:
    cdef double rise = v3_dot(offset, up)
    s.position = v3_sub(s.position, offset)
    s.touched_point = v3_sub(s.touched_point, offset)
    s.touched_min -= rise
    s.touched_max -= rise
    s.contact_height -= rise
    s.ground.point = v3_sub(s.ground.point, offset)


cdef double foot_below(const controller_params* p) noexcept nogil:
    """Half the whole height plus the contact offset, as in PhysX (RULES 1)."""
    return 0.5 * p.height + p.radius + p.contact_offset


cdef character character_of(const controller_params* p, vec3 position, int64_t id, int32_t group) noexcept nogil:
    """The character as others see it."""
    cdef character c
    cdef vec3 half = v3_scale(p.up, 0.5 * p.height)
    c.id = id
    c.p0 = v3_sub(position, half)
    c.p1 = v3_add(position, half)
    c.radius = p.radius
    c.layer = p.layer
    c.mask = p.mask
    c.behavior = p.surface
    c.group = group
    return c


cdef bint is_walkable(const controller_params* p, const ground_contact* g) noexcept nogil:
    return not is_below_limit(v3_dot(g.face_normal, p.up), p.slope_limit)


cdef double gap_to_close(const controller_params* p, const ground_contact* found) noexcept nogil:
    cdef double gap
    if not found.touching or not is_walkable(p, found):
        return -1.0
    gap = found.distance - p.contact_offset
    return gap if gap > SMALLEST_GAP else 0.0


cdef void snapped(controller_state* s, const controller_params* p, const ground_contact* found,
                  double gap) noexcept nogil:
    s.ground = found[0]
    if gap > 0.0:
        s.position = v3_madd(s.position, p.up, -gap)
        s.ground.distance = p.contact_offset


cdef object other_of(Scene scene, int32_t owner, int64_t id):
    return scene.character(id) if owner == OWNER_CONTROLLER else scene.actor(id)


cdef quat turn_from_z(vec3 up) noexcept nogil:
    cdef quat q
    cdef double w = 1.0 + up.z, m
    if w < 1e-9:
        q.x, q.y, q.z, q.w = 1.0, 0.0, 0.0, 0.0
        return q
    m = sqrt(up.x * up.x + up.y * up.y + w * w)
    q.x, q.y, q.z, q.w = -up.y / m, up.x / m, 0.0, w / m
    return q


cdef tuple z_to(vec3 up):
    return from_quat(turn_from_z(up))
