# cython: language_level=3
"""Sensors without Python. See the header."""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

from pycct.character.parameters cimport turn_from_z
from pycct.geometry.ray cimport direction_of, ray, ray_of, ray_triangle
from pycct.geometry.trigonometry cimport cosine, sine
from pycct.geometry.types cimport SHAPE_HEIGHTFIELD, SHAPE_MESH, SHAPE_PLANE, STATUS_OK, triangle
from pycct.geometry.vec cimport (
    aabb,
    box_centre,
    box_grow,
    box_half,
    box_of,
    box_union,
    f_max,
    f_min,
    q_rotate,
    quat,
    v3,
    v3_dot,
    v3_len,
    v3_len2,
    v3_madd,
    v3_max_abs,
    v3_neg,
    v3_scale,
    v3_sub,
    vec3,
)
from pycct.queries.query_kernels cimport (
    query_cast,
    query_hit,
    query_items_in,
    query_no_hit,
    query_offer_triangle,
    query_ray_item,
    query_scratch,
    query_shape,
    query_shape_ray,
    query_view,
)
from pycct.world.candidates cimport candidates, candidates_add, candidates_cut, collider, triangle_data


cdef enum:
    NEAREST = 16        # neighbours that one turn finds
    NEAR_OBJECTS = 256  # objects that one look-up finds
    FEW_RAYS = 4        # so few are cast without a look-up


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


cdef inline int _kind_of(int32_t layer_index, const collider* p) noexcept nogil:
    if layer_index == 2:
        return SEEN_CHARACTER
    if p.obstacle:
        return SEEN_OBSTACLE
    return SEEN_MOVING if layer_index == 1 else SEEN_STATIC


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
    item = &v.layers[h.layer_index].items[h.item]
    _put_byte(&c[FIELD_KIND], i, _kind_of(h.layer_index, item))
    _put_long(&c[FIELD_ID], i, item.id)
    _put_int(&c[FIELD_TRIANGLE], i, h.tri)
    if c[FIELD_DATA].data != NULL:
        triangle_data(item, h.tri, &data)
        _put_long(&c[FIELD_DATA], i, data)


# ---------------------------------------------------------------- rays

# An object near the origin of a fan, in a sphere.
cdef struct near_object:
    int32_t layer_index
    int32_t item
    vec3 centre     # from the origin
    double radius
    double nearest    # square of the centre's distance, less that of the radius


cdef int32_t _objects_near(const query_view* v, vec3 origin, double reach, near_object* found) noexcept nogil:
    """Moving actors, obstacles and characters that rays may meet; -1: too many."""
    cdef int32_t[NEAR_OBJECTS] items
    cdef const collider* p
    cdef near_object* o
    cdef aabb box = box_grow(box_of(origin, origin), reach + 1e-9 * (reach + v3_max_abs(origin)))
    cdef int32_t layer_index, k, count, n = 0
    for layer_index in range(1, 3):
        count = query_items_in(v, layer_index, box, items, NEAR_OBJECTS - n)
        if count > NEAR_OBJECTS - n:
            return -1
        for k in range(count):
            o = &found[n]
            n += 1
            p = &v.layers[layer_index].items[items[k]]
            o.layer_index = layer_index
            o.item = items[k]
            if p.kind == SHAPE_PLANE:
                o.centre = v3(0.0, 0.0, 0.0)
                o.radius = 1e300
                o.nearest = -1e300
                continue
            o.centre = v3_sub(box_centre(p.bounds), origin)
            o.radius = v3_len(box_half(p.bounds))
            # Rounding of all sums below is a small share of these.
            o.radius += 1e-9 * (o.radius + v3_len(o.centre) + v3_max_abs(origin))
            o.nearest = v3_len2(o.centre) - o.radius * o.radius - 1e-9 * v3_len2(o.centre)
    return n


cdef inline bint _may_meet(const near_object* o, vec3 d, double limit) noexcept nogil:
    """Whether a ray enters the sphere within a distance."""
    cdef double along = v3_dot(o.centre, d)
    return along * along >= o.nearest and along + o.radius >= 0.0 and along - o.radius <= limit


cdef int _look_fan(const sensor_plan* p, const sensor_member* m, const look_frame* f, const query_view* v,
                   query_scratch* s, int64_t row) noexcept nogil:
    cdef near_object[NEAR_OBJECTS] near
    cdef query_view fixed = v[0]
    cdef query_shape q
    cdef query_hit h
    cdef vec3 ahead = f.view if p.tilts else f.ahead, top = f.top if p.tilts else m.up, d
    cdef vec3 origin = v3_madd(m.feet, m.up, p.height)
    cdef int32_t k, i, n = -1
    cdef int status
    if p.n >= FEW_RAYS:
        # One look-up for all rays.
        n = _objects_near(v, origin, p.reach, near)
    if n >= 0:
        fixed.layers[1] = fixed.layers[2] = NULL
    query_shape_ray(&q, origin)
    for k in range(p.n):
        d = direction_of(v3_madd(v3_madd(v3_scale(ahead, p.base[3 * k]), f.left, p.base[3 * k + 1]), top,
                                 p.base[3 * k + 2]))
        status = query_cast(&fixed, &q, d, p.reach, s, &h)
        for i in range(n):
            if status == STATUS_OK and _may_meet(&near[i], d, h.distance if h.found else p.reach):
                status = query_ray_item(v, &q, d, p.reach, s, near[i].layer_index, near[i].item, &h)
        if status != STATUS_OK:
            return status
        _put_hit(p, row * p.n + k, v, &h)
        if p.columns[FIELD_DEPTH].data != NULL:
            _put_float(&p.columns[FIELD_DEPTH], row * p.n + k,
                       (h.distance if h.found else p.reach) * v3_dot(d, ahead))
    return STATUS_OK


# ---------------------------------------------------------------- height scans

# A grid of rays that lead down from one plane.
cdef struct scan_grid:
    const sensor_plan* p
    const sensor_member* m
    const look_frame* f
    vec3 down
    ray vertical            # along down, from the feet
    query_hit* hits         # of each cell


cdef inline vec3 _cell_origin(const scan_grid* g, int32_t k) noexcept nogil:
    return v3_madd(v3_madd(v3_madd(g.m.feet, g.f.ahead, g.p.base[2 * k]), g.f.left, g.p.base[2 * k + 1]), g.m.up,
                   g.p.height)


cdef aabb _scan_box(const scan_grid* g) noexcept nogil:
    """A box around all rays."""
    cdef int32_t rows = g.p.cells_ahead, columns = g.p.cells_aside
    cdef int32_t[4] corners
    cdef aabb box
    cdef vec3 p
    cdef int k
    corners[0], corners[1], corners[2], corners[3] = 0, columns - 1, (rows - 1) * columns, rows * columns - 1
    for k in range(4):
        p = _cell_origin(g, corners[k])
        box = box_of(p, p) if k == 0 else box_union(box, box_of(p, p))
    box = box_union(box, box_of(v3_madd(box.lo, g.down, g.p.reach), v3_madd(box.hi, g.down, g.p.reach)))
    return box_grow(box, 1e-9 * (1.0 + v3_max_abs(box.lo) + v3_max_abs(box.hi)))


cdef inline void _cells_between(double lo, double hi, int32_t n, double spacing, int32_t* first,
                                int32_t* last) noexcept nogil:
    """Numbers of the cells of one axis at lo to hi, metres from the middle."""
    cdef double a = lo / spacing + 0.5 * (n - 1) - 1e-6, b = hi / spacing + 0.5 * (n - 1) + 1e-6
    first[0] = 0 if a <= 0.0 else (n if a > n else <int32_t>a)
    last[0] = n - 1 if b >= n - 1 else (-1 if b < 0.0 else <int32_t>b)


cdef double _project(const scan_grid* g, const vec3* corners, int n, double* x, double* y) noexcept nogil:
    """Metres ahead and left of the feet of each corner; returns a margin for rounding, metres."""
    cdef double margin = v3_max_abs(g.m.feet) + g.p.reach
    cdef vec3 q
    cdef int k
    for k in range(n):
        q = v3_sub(corners[k], g.m.feet)
        x[k], y[k] = v3_dot(q, g.f.ahead), v3_dot(q, g.f.left)
        margin = f_max(margin, v3_max_abs(q))
    return 1e-9 * (1.0 + margin)


cdef bint _cells_below(const scan_grid* g, const double* x, const double* y, int n, double margin,
                       int32_t* cells) noexcept nogil:
    """First and last row, first and last column of the cells whose rays can meet these corners' hull."""
    cdef double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300
    cdef int k
    for k in range(n):
        x0, x1, y0, y1 = f_min(x0, x[k]), f_max(x1, x[k]), f_min(y0, y[k]), f_max(y1, y[k])
    _cells_between(x0 - margin, x1 + margin, g.p.cells_ahead, g.p.step_ahead, &cells[0], &cells[1])
    _cells_between(y0 - margin, y1 + margin, g.p.cells_aside, g.p.step_aside, &cells[2], &cells[3])
    return cells[0] <= cells[1] and cells[2] <= cells[3]


# The half plane left of an edge, in metres ahead and left of the feet, and a margin for rounding:
# rise * y >= base + slope * x.
cdef struct scan_edge:
    double rise
    double base
    double slope


cdef bint _edges_of(const double* x, const double* y, double margin, bint two_sided, scan_edge* e) noexcept nogil:
    """The edges of a triangle seen from above; False: no ray meets it.

    A triangle that is nearly upright gets edges that every cell passes.
    """
    cdef double area, dx, dy, side
    cdef int k, j
    area = (x[1] - x[0]) * (y[2] - y[0]) - (y[1] - y[0]) * (x[2] - x[0])
    side = 0.0
    for k in range(3):
        j = k + 1 if k < 2 else 0
        side += fabs(x[j] - x[k]) + fabs(y[j] - y[k])
    if fabs(area) <= 4.0 * margin * (side + margin):
        for k in range(3):
            e[k].rise, e[k].base, e[k].slope = 0.0, -1.0, 0.0
        return True
    if area < 0.0 and not two_sided:
        return False
    side = 1.0 if area > 0.0 else -1.0
    for k in range(3):
        j = k + 1 if k < 2 else 0
        dx, dy = side * (x[j] - x[k]), side * (y[j] - y[k])
        e[k].rise = dx
        e[k].slope = dy
        e[k].base = dx * y[k] - dy * x[k] - margin * (fabs(dx) + fabs(dy))
    return True


cdef inline void _row_between(const scan_grid* g, const scan_edge* e, double x, int32_t* first,
                              int32_t* last) noexcept nogil:
    """Narrow the columns of a row to those that lie left of all edges."""
    cdef double lo = -1e300, hi = 1e300, nearest
    cdef int32_t a, b
    cdef int k
    for k in range(3):
        nearest = e[k].base + e[k].slope * x
        if e[k].rise > 0.0:
            lo = f_max(lo, nearest / e[k].rise)
        elif e[k].rise < 0.0:
            hi = f_min(hi, nearest / e[k].rise)
        elif nearest > 0.0:
            last[0] = -1
            return
    _cells_between(lo, hi, g.p.cells_aside, g.p.step_aside, &a, &b)
    first[0] = max(first[0], a)
    last[0] = min(last[0], b)


cdef void _draw_triangle(const scan_grid* g, const query_view* v, int32_t layer_index, int32_t item, const triangle* t,
                         bint two_sided, int32_t tri) noexcept nogil:
    cdef int32_t[4] cells
    cdef vec3[3] corners
    cdef scan_edge[3] edges
    cdef query_shape q
    cdef query_hit* h
    cdef ray r = g.vertical
    cdef int32_t i, j, k, first, last
    cdef double[3] x
    cdef double[3] y
    cdef double distance, nearest, margin, top = -1e300
    cdef bint back
    corners[0], corners[1], corners[2] = t.a, t.b, t.c
    margin = _project(g, corners, 3, x, y)
    if not _cells_below(g, x, y, 3, margin, cells) or not _edges_of(x, y, margin, two_sided, edges):
        return
    # No hit is higher than the highest corner.
    for k in range(3):
        top = f_max(top, v3_dot(v3_sub(corners[k], g.m.feet), g.m.up))
    nearest = g.p.height - top - margin
    for i in range(cells[0], cells[1] + 1):
        first, last = cells[2], cells[3]
        _row_between(g, edges, g.p.base[2 * i * g.p.cells_aside], &first, &last)
        for j in range(first, last + 1):
            k = i * g.p.cells_aside + j
            h = &g.hits[k]
            if h.found and nearest > h.distance:
                continue
            r.origin = _cell_origin(g, k)
            distance = ray_triangle(&r, t, two_sided, &back)
            if distance <= (h.distance if h.found else g.p.reach):
                query_shape_ray(&q, r.origin)
                query_offer_triangle(v, &q, g.down, layer_index, item, t, tri, distance, back, h)


cdef int _draw_solid(const scan_grid* g, const query_view* v, query_scratch* s, int32_t layer_index,
                     int32_t item) noexcept nogil:
    """A shape that is no surface: a ray for each cell below its bounds."""
    cdef const collider* c = &v.layers[layer_index].items[item]
    cdef int32_t[4] cells
    cdef vec3[8] corners
    cdef double[8] x
    cdef double[8] y
    cdef double margin
    cdef query_shape q
    cdef int32_t i, j, k
    cdef int status
    cells[0], cells[1], cells[2], cells[3] = 0, g.p.cells_ahead - 1, 0, g.p.cells_aside - 1
    for k in range(8):
        corners[k] = v3(c.bounds.hi.x if k & 1 else c.bounds.lo.x, c.bounds.hi.y if k & 2 else c.bounds.lo.y,
                        c.bounds.hi.z if k & 4 else c.bounds.lo.z)
    if c.kind != SHAPE_PLANE:
        margin = _project(g, corners, 8, x, y)
        if not _cells_below(g, x, y, 8, margin, cells):
            return STATUS_OK
    for i in range(cells[0], cells[1] + 1):
        for j in range(cells[2], cells[3] + 1):
            k = i * g.p.cells_aside + j
            query_shape_ray(&q, _cell_origin(g, k))
            status = query_ray_item(v, &q, g.down, g.p.reach, s, layer_index, item, &g.hits[k])
            if status != STATUS_OK:
                return status
    return STATUS_OK


cdef int _draw(const scan_grid* g, const query_view* v, query_scratch* s, aabb box, int32_t layer_index,
               int32_t item) noexcept nogil:
    """Draw one object into the grid."""
    cdef const collider* p = &v.layers[layer_index].items[item]
    cdef candidates* c = &s.near
    cdef int32_t k
    cdef int status
    if p.kind != SHAPE_MESH and p.kind != SHAPE_HEIGHTFIELD:
        return _draw_solid(g, v, s, layer_index, item)
    c.mask = v.mask
    candidates_cut(c, 0, 0)
    status = candidates_add(c, p, item, layer_index, box, NULL)
    if status != STATUS_OK or c.n_groups == 0:
        return status
    for k in range(c.n_tris):
        _draw_triangle(g, v, layer_index, item, &c.tris[k], c.groups[0].two_sided, c.source[k])
    return STATUS_OK


cdef int _look_down(const sensor_plan* p, const sensor_member* m, const look_frame* f, const query_view* v,
                    query_scratch* s, query_hit* hits, int64_t row) noexcept nogil:
    cdef scan_grid g
    cdef query_shape q
    cdef query_hit h
    cdef int32_t[NEAR_OBJECTS] items
    cdef aabb box
    cdef int32_t k, layer_index, n
    cdef bint draws = p.n <= SCAN_CELLS
    cdef int status
    g.p = p
    g.m = m
    g.f = f
    g.down = direction_of(v3_neg(m.up))
    g.vertical = ray_of(m.feet, g.down)
    g.hits = hits
    box = _scan_box(&g)
    for layer_index in range(3):
        # Objects beyond the room of the list: a ray for each cell.
        draws = draws and query_items_in(v, layer_index, box, items, 0) <= NEAR_OBJECTS
    if not draws:
        for k in range(p.n):
            query_shape_ray(&q, _cell_origin(&g, k))
            status = query_cast(v, &q, g.down, p.reach, s, &h)
            if status != STATUS_OK:
                return status
            _put_hit(p, row * p.n + k, v, &h)
        return STATUS_OK
    for k in range(p.n):
        query_no_hit(&hits[k])
    for layer_index in range(3):
        n = query_items_in(v, layer_index, box, items, NEAR_OBJECTS)
        for k in range(n):
            status = _draw(&g, v, s, box, layer_index, items[k])
            if status != STATUS_OK:
                return status
    for k in range(p.n):
        _put_hit(p, row * p.n + k, v, &hits[k])
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
    cdef double nearest = -1.0
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
                if d2 > p.reach * p.reach or d2 < nearest or (d2 == nearest and i <= least_who):
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
                nearest = far[n - 1]
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
    v.groups = NULL
    v.group = -1
    for i in range(first, last):
        m = &j.members[i]
        f = _frame_of(m)
        v.layers[0] = j.worlds[m.world].fixed
        v.layers[1] = j.worlds[m.world].moving
        v.layers[2] = j.companies[m.company].layer
        v.exclude = m.id
        v.exclude_too = m.proxy
        for k in range(j.n_plans):
            p = &j.plans[k]
            v.mask = p.mask
            if p.what == SENSOR_FAN:
                status = _look_fan(p, m, &f, &v, s, i)
            elif p.what == SENSOR_SCAN:
                status = _look_down(p, m, &f, &v, s, j.hits + worker * SCAN_CELLS, i)
            elif p.what == SENSOR_NEIGHBOURS:
                _look_around(p, j.members, &j.companies[m.company], m, i)
            else:
                _look_at_feet(p, m, i)
            if status != STATUS_OK:
                j.status[worker] = status
                return
