# cython: language_level=3
"""Sensors without Python. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

from pycct.character.parameters cimport turn_from_z
from pycct.geometry.ray cimport direction_of
from pycct.geometry.trigonometry cimport cosine, sine
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport q_rotate, quat, v3, v3_dot, v3_len2, v3_madd, v3_neg, v3_scale, v3_sub, vec3
from pycct.queries.query_kernels cimport (
    query_cast,
    query_hit,
    query_scratch,
    query_shape,
    query_shape_ray,
    query_view,
)
from pycct.world.candidates cimport collider, triangle_data


cdef enum:
    NEAREST = 16    # neighbours that one turn finds


# Axes of a member's look.
cdef struct look_frame:
    vec3 ahead      # level, turned by yaw
    vec3 left
    vec3 view       # turned by yaw and pitch
    vec3 top        # at right angles to view and left


cdef look_frame _frame_of(const sensor_member* m) noexcept nogil:
    cdef look_frame f
    cdef quat q = turn_from_z(m.up)
    cdef double s = sine(m.yaw), c = cosine(m.yaw)
    f.ahead = q_rotate(q, v3(c, s, 0.0))
    f.left = q_rotate(q, v3(-s, c, 0.0))
    s, c = sine(m.pitch), cosine(m.pitch)
    f.view = v3_madd(v3_scale(f.ahead, c), m.up, s)
    f.top = v3_madd(v3_scale(m.up, c), f.ahead, -s)
    return f


# ---------------------------------------------------------------- results

cdef inline void _put_float(const sensor_column* c, int64_t i, double x) noexcept nogil:
    if c.data != NULL:
        if c.single:
            (<float*>c.data)[i] = <float>x
        else:
            (<double*>c.data)[i] = x


cdef inline void _put_vector(const sensor_column* c, int64_t i, vec3 v) noexcept nogil:
    cdef float* f
    cdef double* d
    if c.data != NULL:
        if c.single:
            f = <float*>c.data + 3 * i
            f[0] = <float>v.x
            f[1] = <float>v.y
            f[2] = <float>v.z
        else:
            d = <double*>c.data + 3 * i
            d[0] = v.x
            d[1] = v.y
            d[2] = v.z


cdef inline void _put_byte(const sensor_column* c, int64_t i, int x) noexcept nogil:
    if c.data != NULL:
        (<uint8_t*>c.data)[i] = <uint8_t>x


cdef inline void _put_long(const sensor_column* c, int64_t i, int64_t x) noexcept nogil:
    if c.data != NULL:
        (<int64_t*>c.data)[i] = x


cdef inline void _put_int(const sensor_column* c, int64_t i, int32_t x) noexcept nogil:
    if c.data != NULL:
        (<int32_t*>c.data)[i] = x


cdef inline int _kind_of(int32_t part, const collider* p) noexcept nogil:
    if part == 2:
        return SEEN_CHARACTER
    if p.obstacle:
        return SEEN_OBSTACLE
    return SEEN_MOVING if part == 1 else SEEN_STATIC


cdef void _put_hit(const sensor_plan* p, int64_t i, const query_view* v, const query_hit* h) noexcept nogil:
    """Every field of a ray except depth."""
    cdef const sensor_column* c = p.columns
    cdef const collider* item
    cdef int64_t data = 0
    _put_float(&c[FIELD_DISTANCE], i, h.distance if h.found else p.reach)
    _put_float(&c[FIELD_HEIGHT], i, p.height - h.distance if h.found else p.none)
    _put_vector(&c[FIELD_NORMAL], i, h.normal)
    if not h.found:
        _put_byte(&c[FIELD_KIND], i, SEEN_NOTHING)
        _put_long(&c[FIELD_ID], i, -1)
        _put_int(&c[FIELD_TRIANGLE], i, -1)
        _put_long(&c[FIELD_DATA], i, 0)
        return
    item = &v.parts[h.part].items[h.item]
    _put_byte(&c[FIELD_KIND], i, _kind_of(h.part, item))
    _put_long(&c[FIELD_ID], i, item.id)
    _put_int(&c[FIELD_TRIANGLE], i, h.tri)
    if c[FIELD_DATA].data != NULL:
        triangle_data(item, h.tri, &data)
        _put_long(&c[FIELD_DATA], i, data)


# ---------------------------------------------------------------- rays

cdef int _look_fan(const sensor_plan* p, const sensor_member* m, const look_frame* f, const query_view* v,
                   query_scratch* s, int64_t row) noexcept nogil:
    cdef query_shape ray
    cdef query_hit h
    cdef vec3 ahead = f.view if p.tilts else f.ahead, top = f.top if p.tilts else m.up, d
    cdef int32_t k
    cdef int status
    query_shape_ray(&ray, v3_madd(m.feet, m.up, p.height))
    for k in range(p.n):
        d = direction_of(v3_madd(v3_madd(v3_scale(ahead, p.base[3 * k]), f.left, p.base[3 * k + 1]), top,
                                 p.base[3 * k + 2]))
        status = query_cast(v, &ray, d, p.reach, s, &h)
        if status != STATUS_OK:
            return status
        _put_hit(p, row * p.n + k, v, &h)
        if p.columns[FIELD_DEPTH].data != NULL:
            _put_float(&p.columns[FIELD_DEPTH], row * p.n + k,
                       (h.distance if h.found else p.reach) * v3_dot(d, ahead))
    return STATUS_OK


cdef int _look_down(const sensor_plan* p, const sensor_member* m, const look_frame* f, const query_view* v,
                    query_scratch* s, int64_t row) noexcept nogil:
    cdef query_shape ray
    cdef query_hit h
    cdef vec3 down = direction_of(v3_neg(m.up))
    cdef int32_t k
    cdef int status
    for k in range(p.n):
        query_shape_ray(&ray, v3_madd(v3_madd(v3_madd(m.feet, f.ahead, p.base[2 * k]), f.left, p.base[2 * k + 1]),
                                      m.up, p.height))
        status = query_cast(v, &ray, down, p.reach, s, &h)
        if status != STATUS_OK:
            return status
        _put_hit(p, row * p.n + k, v, &h)
    return STATUS_OK


# ---------------------------------------------------------------- members

cdef void _look_around(const sensor_plan* p, const sensor_member* members, const sensor_company* company,
                       const sensor_member* m, int64_t row) noexcept nogil:
    """The k nearest members of the group; what was found so far is in the rows, nearest first."""
    cdef const sensor_column* c = p.columns
    cdef const sensor_member* other
    cdef int32_t[NEAREST] found
    cdef double[NEAREST] far
    cdef double d2
    cdef int32_t i, k, n, start = 0
    cdef int64_t at = row * p.n
    cdef double least = -1.0
    cdef int32_t least_who = -1
    cdef bint more = True
    # NEAREST at a time: each turn finds those beyond the last one of the turn before.
    while start < p.n:
        n = 0
        if more:
            for i in range(company.n):
                other = &members[company.who[i]]
                if other == m:
                    continue
                d2 = v3_len2(v3_sub(other.position, m.position))
                if d2 > p.reach * p.reach or d2 < least or (d2 == least and i <= least_who):
                    continue
                # The order of members is that of ids, so that an equal one comes later.
                if n == NEAREST and d2 >= far[n - 1]:
                    continue
                k = n if n < NEAREST else NEAREST - 1
                while k > 0 and far[k - 1] > d2:
                    far[k] = far[k - 1]
                    found[k] = found[k - 1]
                    k -= 1
                far[k] = d2
                found[k] = i
                if n < NEAREST:
                    n += 1
            if n > 0:
                least = far[n - 1]
                least_who = found[n - 1]
            more = n == NEAREST
        for k in range(NEAREST):
            if start + k >= p.n:
                break
            i = <int32_t>(start + k)
            if k < n:
                other = &members[company.who[found[k]]]
                _put_long(&c[FIELD_ID], at + i, other.id)
                _put_vector(&c[FIELD_POSITION], at + i, v3_sub(other.position, m.position))
                _put_vector(&c[FIELD_VELOCITY], at + i, v3_sub(other.velocity, m.velocity))
                _put_float(&c[FIELD_DISTANCE], at + i, sqrt(far[k]))
            else:
                _put_long(&c[FIELD_ID], at + i, -1)
                _put_vector(&c[FIELD_POSITION], at + i, v3(0.0, 0.0, 0.0))
                _put_vector(&c[FIELD_VELOCITY], at + i, v3(0.0, 0.0, 0.0))
                _put_float(&c[FIELD_DISTANCE], at + i, p.reach)
        start += NEAREST


cdef void _look_at_feet(const sensor_plan* p, const sensor_member* m, int64_t row) noexcept nogil:
    cdef const sensor_column* c = p.columns
    _put_vector(&c[FIELD_NORMAL], row, m.ground_normal)
    _put_float(&c[FIELD_DISTANCE], row, m.ground_distance)
    _put_byte(&c[FIELD_WALKABLE], row, m.walkable)
    _put_byte(&c[FIELD_KIND], row, m.ground_kind)
    _put_long(&c[FIELD_ID], row, m.ground_id)
    _put_int(&c[FIELD_TRIANGLE], row, m.ground_triangle)
    _put_long(&c[FIELD_DATA], row, m.ground_data)


cdef void sensors_look(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef const sensor_job* j = <const sensor_job*>context
    cdef const sensor_plan* p
    cdef const sensor_member* m
    cdef query_view v
    cdef query_scratch* s = &j.scratch[worker]
    cdef look_frame f
    cdef int64_t i
    cdef int32_t k
    cdef int status = j.status[worker]
    if status != STATUS_OK:
        return
    v.allowed[0] = v.allowed[1] = v.allowed[2] = NULL
    v.first_only = False
    v.obstacles = True
    for i in range(first, last):
        m = &j.members[i]
        f = _frame_of(m)
        v.parts[0] = j.worlds[m.world].fixed
        v.parts[1] = j.worlds[m.world].moving
        v.parts[2] = j.companies[m.company].layer
        v.exclude = m.id
        v.exclude_too = m.proxy
        for k in range(j.n_plans):
            p = &j.plans[k]
            v.mask = p.mask
            if p.what == SENSOR_FAN:
                status = _look_fan(p, m, &f, &v, s, i)
            elif p.what == SENSOR_SCAN:
                status = _look_down(p, m, &f, &v, s, i)
            elif p.what == SENSOR_NEIGHBOURS:
                _look_around(p, j.members, &j.companies[m.company], m, i)
            else:
                _look_at_feet(p, m, i)
            if status != STATUS_OK:
                j.status[worker] = status
                return
