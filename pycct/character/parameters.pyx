# cython: language_level=3
"""Shared by CharacterController, Crowd and move_many. See the header."""
import sys
from typing import NamedTuple

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pycct.args.values cimport (
    FARTHEST,
    as_behavior,
    as_bits,
    as_bool,
    as_float,
    as_not_negative,
    as_positive,
    as_unit,
    as_vec3,
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
from pycct.shapes.primitives cimport Box, Capsule, Shape, Sphere, Triangle
from pycct.geometry.tolerances cimport is_below_limit
from pycct.geometry.types cimport SHAPE_BOX, SHAPE_CAPSULE, SHAPE_SPHERE, triangle
from pycct.geometry.vec cimport f_max, quat, v3_add, v3_dot, v3_finite, v3_len, v3_madd, v3_max_abs, v3_scale, v3_sub
from pycct.world.candidates cimport (
    GROUP_PLANE,
    GROUP_TRIANGLES,
    OWNER_CONTROLLER,
    candidate_group,
    candidates,
    collider,
)

from pycct.runtime.enums import Behavior, ClimbingMode, NonWalkableMode, Rules
from pycct.queries.shape_pairs import ContactManifold, capsule_contacts

SHORTEST = 1e-100
SEPARATION_SPEED = 4.0
SMALLEST_GAP = 1e-9
cdef dict CLIMBING = {"easy": CLIMBING_EASY, "constrained": CLIMBING_CONSTRAINED}
cdef dict NON_WALKABLE = {"prevent_climbing": NON_WALKABLE_PREVENT_CLIMBING,
                          "force_sliding": NON_WALKABLE_FORCE_SLIDING}
cdef dict RULE_SETS = {"physx": Rules.PHYSX, "document": Rules.DOCUMENT, "robust": Rules.ROBUST}


cdef double as_time(object value) except? -1.0:
    cdef double time = as_not_negative(value, "dt")
    if 0.0 < time < SHORTEST:
        raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {time}")
    return time


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
        raise TypeError(f"unexpected keyword argument {name!r}")
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


# Compilers turn this expression into one load. A loop stays a loop at -Os, which doubles the time
# of saves and hashes.
cdef inline uint64_t _load_word(const uint8_t* at) noexcept nogil:
    return (<uint64_t>at[0] | <uint64_t>at[1] << 8 | <uint64_t>at[2] << 16 | <uint64_t>at[3] << 24
            | <uint64_t>at[4] << 32 | <uint64_t>at[5] << 40 | <uint64_t>at[6] << 48 | <uint64_t>at[7] << 56)


cdef inline void _store_half(uint8_t* at, uint32_t bits) noexcept nogil:
    at[0], at[1], at[2], at[3] = <uint8_t>bits, <uint8_t>(bits >> 8), <uint8_t>(bits >> 16), <uint8_t>(bits >> 24)


cdef bint little_endian = sys.byteorder == "little"


cdef inline void _field_doubles(cursor* c, double* x, int n) noexcept nogil:
    """n numbers that follow one another."""
    cdef int k
    if little_endian:
        if c.loads:
            memcpy(x, c.at, <size_t>n * 8)
        else:
            memcpy(c.at, x, <size_t>n * 8)
        c.at += 8 * n
        return
    for k in range(n):
        field_double(c, x + k)


cdef void field_double(cursor* c, double* x) noexcept nogil:
    cdef uint64_t bits
    if c.loads:
        bits = _load_word(c.at)
        memcpy(x, &bits, 8)
    else:
        memcpy(&bits, x, 8)
        _store_half(c.at, <uint32_t>bits)
        _store_half(c.at + 4, <uint32_t>(bits >> 32))
    c.at += 8


cdef void field_int64(cursor* c, int64_t* x) noexcept nogil:
    field_double(c, <double*>x)


cdef void field_int32(cursor* c, int32_t* x) noexcept nogil:
    cdef uint32_t bits
    if c.loads:
        bits = <uint32_t>c.at[0] | <uint32_t>c.at[1] << 8 | <uint32_t>c.at[2] << 16 | <uint32_t>c.at[3] << 24
        memcpy(x, &bits, 4)
    else:
        memcpy(&bits, x, 4)
        _store_half(c.at, bits)
    c.at += 4


cdef inline void _field_flag(cursor* c, bint* x) noexcept nogil:
    if c.loads:
        x[0] = c.at[0] != 0
    else:
        c.at[0] = x[0] != 0
    c.at += 1


cdef inline void _field_vec3(cursor* c, vec3* v) noexcept nogil:
    field_double(c, &v.x)
    field_double(c, &v.y)
    field_double(c, &v.z)


cdef void parameters_bytes(cursor* c, controller_params* p) noexcept nogil:
    _field_vec3(c, &p.up)
    field_double(c, &p.radius)
    field_double(c, &p.height)
    field_double(c, &p.contact_offset)
    field_double(c, &p.step_offset)
    field_double(c, &p.slope_limit)
    field_double(c, &p.invisible_wall_height)
    field_double(c, &p.max_jump_height)
    field_int32(c, &p.climbing)
    field_int32(c, &p.non_walkable)
    _field_flag(c, &p.overlap_recovery)
    _field_flag(c, &p.prevent_vertical_sliding)
    _field_flag(c, &p.collide)
    field_int32(c, <int32_t*>&p.layer)
    field_int32(c, <int32_t*>&p.mask)
    field_int32(c, <int32_t*>&p.rules)
    field_int32(c, <int32_t*>&p.surface)


cdef void state_bytes(cursor* c, controller_state* s) noexcept nogil:
    cdef ground_contact none
    cdef ground_contact* g = &s.ground
    if not c.loads and not g.touching:
        # Equal characters have equal bytes, whatever their history.
        memset(&none, 0, sizeof(ground_contact))
        none.id = none.triangle = -1
        g = &none
    # Members that follow one another in the struct: position to wanted, touched_point to
    # side_normal, normal and point, touched_min to overlap.
    _field_doubles(c, &s.position.x, 12)
    _field_doubles(c, &s.touched_point.x, 18)
    _field_doubles(c, &g.normal.x, 6)
    _field_doubles(c, &g.face_normal.x, 3)
    _field_doubles(c, &s.touched_min, 4)
    _field_doubles(c, &g.distance, 1)
    _field_doubles(c, &s.steep_climb, 1)
    field_int32(c, &s.flags)
    field_int32(c, <int32_t*>&s.marks)
    field_int64(c, &s.touched_actor)
    field_int64(c, &s.touched_obstacle)
    field_int64(c, &s.touched_controller)
    _field_flag(c, &g.touching)
    field_int32(c, &g.owner)
    field_int64(c, &g.id)
    field_int32(c, &g.triangle)
    _field_flag(c, &g.has_data)
    field_int64(c, &g.data)
    _field_flag(c, &g.has_face)


cdef uint64_t mix64(uint64_t h, uint64_t x) noexcept nogil:
    h = (h ^ x) + 0x9E3779B97F4A7C15u
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu
    return h ^ (h >> 31)


cdef inline uint64_t _mix_bytes(uint64_t h, const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Mix bytes into a hash, eight at a time, padded with zeros."""
    cdef uint64_t word
    cdef int k
    while at + 8 <= end:
        h = mix64(h, _load_word(at))
        at += 8
    word = 0
    for k in range(<int>(end - at)):
        word |= <uint64_t>at[k] << (8 * k)
    return mix64(h, word)


cdef uint64_t parameters_hash(const controller_params* p, uint64_t version) noexcept nogil:
    cdef uint8_t[512] room
    cdef cursor c
    c.at = room
    c.loads = False
    parameters_bytes(&c, <controller_params*>p)
    return _mix_bytes(version, room, c.at)


cdef uint64_t character_hash(uint64_t parameters, int64_t id, int32_t group, int32_t home,
                             const controller_state* s) noexcept nogil:
    cdef uint8_t[512] room
    cdef cursor c
    c.at = room
    c.loads = False
    state_bytes(&c, <controller_state*>s)
    return _mix_bytes(mix64(mix64(parameters, <uint64_t>id), <uint64_t>group | <uint64_t>home << 32), room, c.at)


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


cdef bint state_makes_sense(const controller_state* s) noexcept nogil:
    cdef const ground_contact* g = &s.ground
    cdef vec3 rest = v3_scale(s.position, 0.0)
    # 0 * x is 0 for every finite x.
    rest.x += s.touched_min * 0.0 + s.touched_max * 0.0 + s.contact_height * 0.0 + s.overlap * 0.0
    rest.x += g.distance * 0.0 + s.steep_climb * 0.0
    return (v3_finite(rest) and v3_finite(s.velocity) and v3_finite(s.touched_point) and v3_finite(s.touched_local)
            and v3_finite(s.displacement) and v3_finite(s.wanted) and v3_finite(s.platform_delta)
            and v3_finite(s.separation)
            and v3_finite(s.down_normal) and v3_finite(s.side_normal) and v3_finite(g.normal) and v3_finite(g.point)
            and v3_finite(g.face_normal)
            and v3_max_abs(s.position) <= FARTHEST and 0 <= s.flags <= 7 and 0 <= g.owner <= 2)


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


class Contacts(NamedTuple):
    """Contact of a character with one object: an element of `CharacterController.contacts`.

    Attributes
    ----------
    other : Actor, Obstacle, CharacterController or CrowdMember
        The touched object.
    triangle : int or None
        Index in the mesh or heightfield, in the order of your triangles.
    manifold : ContactManifold
        Points on the other object, normal towards the character.
    """

    other: object
    triangle: object
    manifold: object


cdef object _true_shape(object shape, const collider* item):
    """A solid shape with the scale of its actor."""
    cdef vec3 k = item.scale
    if item.plain:
        return shape
    if item.kind == SHAPE_SPHERE:
        return Sphere(item.radius)
    if item.kind == SHAPE_CAPSULE and item.radius > 0.0:
        return Capsule(item.radius, (<Shape>shape).height_ * k.x)
    if item.kind == SHAPE_BOX:
        return Box((item.a.x * abs(k.x), item.a.y * abs(k.y), item.a.z * abs(k.z)))
    return shape.scaled(from_vec3(k))


cdef double contact_reach(const controller_params* p, object max_distance) except? -1.0:
    cdef double reach = 1.01 * p.contact_offset + 1e-6
    if max_distance is not None:
        reach = as_not_negative(max_distance, "max_distance")
        # A larger distance would not be a query about contacts.
        if reach > p.height + 2.0 * p.radius:
            raise ValueError(f"max_distance must not exceed the character's height "
                             f"{p.height + 2.0 * p.radius}, got {reach}")
    return reach


cdef object _plane_contacts(const controller_params* p, vec3 position, vec3 normal, double offset, double reach):
    """Contacts with a half space, or None: those with the upper face of an endless box."""
    cdef double size = p.height + 2.0 * p.radius + reach, large = 8.0 * size
    # Relative to the character, and no deeper than its size; both only shift the result.
    cdef double level = offset - v3_dot(normal, position)
    cdef double deeper = f_max(level - size, 0.0)
    cdef vec3 point
    if level < -size:
        return None
    found = capsule_contacts(Capsule(p.radius, p.height), ((0.0, 0.0, 0.0), z_to(p.up)), [Box((large, large, large))],
                             [(from_vec3(v3_scale(normal, level - deeper - large)), z_to(normal))], reach)
    if not found:
        return None
    there = found[0][1]
    here = ContactManifold(from_vec3(normal))
    for where, distance in zip(there.points_on_b.tolist(), there.distances.tolist()):
        point = v3_madd(v3_add(as_vec3(where, "point"), position), normal, deeper)
        here.add(from_vec3(point), distance - deeper)
    return here


cdef list contacts_around(Scene scene, Snapshot snap, const controller_params* p, vec3 position,
                          const move_scratch* scratch, double reach, object filter):
    cdef const candidates* c = &scratch.around
    cdef const candidate_group* g
    cdef const triangle* t
    cdef const collider* item
    cdef int32_t i, k
    cdef list found = [], shapes = [], poses = [], planes = []
    for i in range(c.n_groups):
        g = &c.groups[i]
        other = other_of(scene, g.owner, g.id)
        if other is None:
            continue
        if g.kind == GROUP_PLANE:
            m = _plane_contacts(p, position, g.q0, g.radius, reach)
            if m is not None:
                planes.append(((g.owner, g.id, -1), other, m))
        elif g.owner == OWNER_CONTROLLER:
            found.append(((g.owner, g.id, -1), other))
            shapes.append(other.shape)
            # The pose of the query: a crowd may move meanwhile.
            poses.append((from_vec3(v3_scale(v3_add(g.q0, g.q1), 0.5)), z_to(as_vec3(other.up, "up"))))
        elif g.kind == GROUP_TRIANGLES and not g.closed:
            for k in range(g.first, g.first + g.count):
                t = &c.tris[k]
                found.append(((g.owner, g.id, c.source[k]), other))
                shapes.append(Triangle(from_vec3(t.a), from_vec3(t.b), from_vec3(t.c)))
                poses.append(None)
        else:
            item = &snap.fixed.data.items[g.item] if g.part == 0 else &snap.moving.data.items[g.item]
            found.append(((g.owner, g.id, -1), other))
            shapes.append(_true_shape(other.shape, item))
            poses.append((from_vec3(item.position), from_quat(item.rotation)))
    me = Capsule(p.radius, p.height)
    touching = planes + [(*found[n], m) for n, m in capsule_contacts(me, (from_vec3(position), z_to(p.up)), shapes,
                                                                     poses, reach)]
    if filter is not None:
        touching = [row for row in touching if filter(row[1])]
    touching.sort(key=_first)
    return [Contacts(other, key[2] if key[2] >= 0 else None, m) for key, other, m in touching]


def _first(row):
    return row[0]
