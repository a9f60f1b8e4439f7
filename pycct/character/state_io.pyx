# cython: language_level=3
"""Bytes and hashes of parameters and states. See the header."""
import sys

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pycct.args.values cimport FARTHEST
from pycct.character.move_types cimport controller_params, controller_state, ground_contact
from pycct.character.parameters cimport parameters_loaded
from pycct.geometry.vec cimport v3_max_abs, vec3

from pycct.args import save_format as saves

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
    # Members that follow one another in the struct: four vectors from position, touched_point to
    # side_normal, normal and point, touched_min to overlap. Copies of a constant size need no call.
    if not little_endian:
        _field_doubles(c, &s.position.x, 12)
        _field_doubles(c, &s.touched_point.x, 18)
        _field_doubles(c, &g.normal.x, 6)
        _field_doubles(c, &g.face_normal.x, 3)
        _field_doubles(c, &s.touched_min, 4)
        _field_doubles(c, &g.distance, 1)
        _field_doubles(c, &s.steep_climb, 1)
    elif c.loads:
        memcpy(&s.position.x, c.at, 12 * 8)
        memcpy(&s.touched_point.x, c.at + 12 * 8, 18 * 8)
        memcpy(&g.normal.x, c.at + 30 * 8, 6 * 8)
        memcpy(&g.face_normal.x, c.at + 36 * 8, 3 * 8)
        memcpy(&s.touched_min, c.at + 39 * 8, 4 * 8)
        memcpy(&g.distance, c.at + 43 * 8, 8)
        memcpy(&s.steep_climb, c.at + 44 * 8, 8)
        c.at += 45 * 8
    else:
        memcpy(c.at, &s.position.x, 12 * 8)
        memcpy(c.at + 12 * 8, &s.touched_point.x, 18 * 8)
        memcpy(c.at + 30 * 8, &g.normal.x, 6 * 8)
        memcpy(c.at + 36 * 8, &g.face_normal.x, 3 * 8)
        memcpy(c.at + 39 * 8, &s.touched_min, 4 * 8)
        memcpy(c.at + 43 * 8, &g.distance, 8)
        memcpy(c.at + 44 * 8, &s.steep_climb, 8)
        c.at += 45 * 8
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
    cdef uint8_t[512] buffer
    cdef cursor c
    c.at = buffer
    c.loads = False
    parameters_bytes(&c, <controller_params*>p)
    return _mix_bytes(version, buffer, c.at)


cdef uint64_t character_hash(uint64_t parameters, int64_t id, int32_t group, int32_t home,
                             const controller_state* s) noexcept nogil:
    cdef uint8_t[512] buffer
    cdef cursor c
    c.at = buffer
    c.loads = False
    state_bytes(&c, <controller_state*>s)
    return _mix_bytes(mix64(mix64(parameters, <uint64_t>id), <uint64_t>group | <uint64_t>home << 32), buffer, c.at)


cdef inline double _zero_sum(const double* x, int n) noexcept nogil:
    """Return 0 if all n numbers are finite, else NaN."""
    # 0 * x is 0 for every finite x. Two sums, because each addition waits for the one before.
    cdef double even = 0.0, odd = 0.0
    cdef int k
    for k in range(0, n - 1, 2):
        even += x[k] * 0.0
        odd += x[k + 1] * 0.0
    return even + odd + x[n - 1] * 0.0


cdef bint state_makes_sense(const controller_state* s) noexcept nogil:
    cdef const ground_contact* g = &s.ground
    # Members that follow one another in the struct, as in state_bytes.
    cdef double rest = _zero_sum(&s.position.x, 12) + _zero_sum(&s.touched_point.x, 18) + _zero_sum(&g.normal.x, 6)
    rest += _zero_sum(&g.face_normal.x, 3) + _zero_sum(&s.touched_min, 4) + g.distance * 0.0 + s.steep_climb * 0.0
    return rest == 0.0 and v3_max_abs(s.position) <= FARTHEST and 0 <= s.flags <= 7 and 0 <= g.owner <= 2


cdef bytes controller_bytes(controller_params* p, controller_state* st):
    cdef bytearray body = bytearray(saves.BODY)
    cdef uint8_t[::1] fields = body
    cdef cursor c
    c.at = &fields[0]
    c.loads = False
    parameters_bytes(&c, p)
    state_bytes(&c, st)
    return saves.seal(body)


cdef int controller_from_bytes(controller_params* p, controller_state* st, object data) except -1:
    cdef const uint8_t[::1] body = saves.unseal(data)
    cdef cursor c
    memset(p, 0, sizeof(controller_params))
    memset(st, 0, sizeof(controller_state))
    c.at = <uint8_t*>&body[0]
    c.loads = True
    parameters_bytes(&c, p)
    state_bytes(&c, st)
    parameters_loaded(p)
    if not state_makes_sense(st):
        raise ValueError("data is damaged: its state makes no sense")
    return 0
