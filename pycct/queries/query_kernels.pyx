# cython: language_level=3
"""Queries of a scene. See the header."""
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from pycct.runtime.growth cimport one_more
from pycct.spatial.bvh cimport (
    bvh_ray,
    bvh_walk,
    bvh_node,
    bvh_walk_boxes,
    bvh_walk_mask,
    bvh_walk_near,
    bvh_walk_next,
    bvh_walk_ray,
    bvh_walk_ray_start,
    bvh_walk_start,
)
from pycct.geometry.aabb4 cimport lowest_bit
from pycct.geometry.closest cimport (
    closest_pair,
    point_segment,
    point_segment_parameter,
    segment_segment,
    segment_triangle,
    triangle_normal,
    within_ends,
)
from pycct.convex.distance cimport core_distance, core_pair
from pycct.shapes.heightfield_cells cimport FIELD_TILE, field_cells, field_tile, field_tile_boxes
from pycct.geometry.overlap cimport overlaps_triangles, push_from_polytope, push_out
from pycct.convex.polytope_cast cimport cast_body_of, cast_polytopes
from pycct.convex.polytope cimport (
    convex_shape,
    face_corner,
    face_normal,
    face_size,
    polytope,
    polytope_load,
    support,
    vertex_at,
)
from pycct.geometry.tolerances cimport DEPTH_TIE, FACING_TIE
from pycct.geometry.ray cimport ray, ray_set, ray_box, ray_capsule, ray_plane, ray_polytope, ray_triangle
from pycct.shapes.primitives cimport mesh_usable
from pycct.geometry.sweep cimport (
    NO_HIT,
    capsule_box,
    capsule_cast,
    exact_cast_of,
    cast_capsule,
    cast_plane,
    cast_sphere,
    cast_triangles,
    latest_candidate,
    toi_candidate,
    triangle_order,
)
from pycct.geometry.types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HEIGHTFIELD,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
    STATUS_NO_MEMORY,
    STATUS_OK,
    sweep_hit,
    triangle,
)
from pycct.geometry.vec cimport (
    aabb,
    box_grow,
    box_of,
    box_overlap,
    box_union,
    f_max,
    f_min,
    m3_mul,
    m3_tmul,
    mat3,
    q_is_identity,
    q_matrix,
    q_rotate,
    q_unrotate,
    quat,
    v3,
    v3_abs,
    v3_add,
    v3_cross,
    v3_dist2,
    v3_dot,
    v3_is_zero,
    v3_len,
    v3_lerp,
    v3_lex,
    v3_madd,
    v3_max,
    v3_max_abs,
    v3_mul,
    v3_neg,
    v3_scale,
    v3_sub,
    vec3,
)
from pycct.world.candidates cimport (
    candidates,
    candidates_add,
    candidates_cut,
    candidates_free,
    candidates_init,
    candidates_reserve,
    capsule_bounds,
    group_overlaps,
    group_push,
    heightfield_triangle,
    is_flat_hull,
    local_box,
    mesh_triangle,
    place_point,
    unplace_point,
    collider,
    broadphase_layer,
)

cdef enum:
    FEW_CELLS = 32          # of a heightfield: so few are looked at without a walk through its tree
    FEW_COLLIDERS = 2       # so few are cast at without a walk through the tree of their layer

# Most pushes of one exit from a surface (RULES 7.5).
cdef int SURFACE_PUSHES = 4
# Triangles are gathered up to this many times the excursion of the pushes that were seen.
cdef double FARTHER = 1.25
# Two unit normals with a shorter sum are opposite.
cdef double OPPOSITE = 1e-9
# Share of their size below which two axes count as crossing, as in distances of convex shapes.
cdef double CROSSING = 1e-10
# Distance below which two points define a direction worse than the face that one of them is on, m.
cdef double FACE_NEAR = 1e-3


cdef void query_init(query_scratch* s) noexcept nogil:
    candidates_init(&s.near)
    s.work = NULL
    s.touches = NULL
    s.n_touches = s.capacity_touches = 0
    s.hits = NULL
    s.n_hits = s.capacity_hits = 0


cdef void query_free(query_scratch* s) noexcept nogil:
    candidates_free(&s.near)
    free(s.work)
    free(s.touches)
    free(s.hits)
    s.work = NULL
    s.touches = NULL
    s.hits = NULL


# ---------------------------------------------------------------- query shape

cdef void _body_faces(polytope_work* w, vec3 position) noexcept nogil:
    """The faces of the body as triangles in the world."""
    cdef int32_t f, k
    cdef triangle* t
    cdef vec3 n
    w.n_faces = 0
    for f in range(w.body.n_faces):
        n = face_normal(&w.body, f)
        for k in range(1, face_size(&w.body, f) - 1):
            t = &w.faces[w.n_faces]
            t.a = v3_add(vertex_at(&w.body, face_corner(&w.body, f, 0)), position)
            t.b = v3_add(vertex_at(&w.body, face_corner(&w.body, f, k)), position)
            t.c = v3_add(vertex_at(&w.body, face_corner(&w.body, f, k + 1)), position)
            t.n = n
            t.d = v3_dot(n, t.a)
            w.n_faces += 1


cdef int _need_work(query_scratch* s) noexcept nogil:
    if s.work == NULL:
        s.work = <polytope_work*>malloc(sizeof(polytope_work))
    return STATUS_NO_MEMORY if s.work == NULL else STATUS_OK


cdef int query_shape_place(query_shape* q, const convex_shape* shape, vec3 position, quat rotation, query_scratch* s,
                           bint casts) noexcept nogil:
    cdef int32_t i
    cdef vec3 p
    cdef bint is_round = shape.kind == SHAPE_SPHERE or shape.kind == SHAPE_CAPSULE
    q.shape = shape
    q.position = position
    q.rotation = rotation
    q.radius = shape.radius
    q.kind = ASK_ROUND if is_round else ASK_POLYTOPE
    q.normal = v3(0.0, 0.0, 0.0)
    q.offset = 0.0
    if is_round:
        q.p0 = v3_add(q_rotate(rotation, shape.a), position)
        q.p1 = v3_add(q_rotate(rotation, shape.b), position)
        q.box = capsule_bounds(q.p0, q.p1, q.radius)
        return STATUS_OK
    if _need_work(s) != STATUS_OK:
        return STATUS_NO_MEMORY
    polytope_load(&s.work.body, shape, q_matrix(rotation), v3(0.0, 0.0, 0.0), not q_is_identity(rotation))
    # The fast path for two boxes needs the first in a frame of its own axes; here all data is in
    # the world's.
    s.work.body.boxlike = False
    p = v3_add(vertex_at(&s.work.body, 0), position)
    q.box = box_of(p, p)
    for i in range(1, s.work.body.n):
        p = v3_add(vertex_at(&s.work.body, i), position)
        q.box = box_union(q.box, box_of(p, p))
    # Rounding of the corners.
    q.box = box_grow(q.box, 1e-9 * v3_max_abs(v3_max(v3_abs(q.box.lo), v3_abs(q.box.hi))))
    q.p0 = v3_add(vertex_at(&s.work.body, 0), position)
    q.p1 = v3_add(vertex_at(&s.work.body, s.work.body.n - 1), position)
    if casts:
        cast_body_of(&s.work.cast, &s.work.body)
    _body_faces(s.work, position)
    return STATUS_OK


cdef void query_shape_ray(query_shape* q, vec3 origin) noexcept nogil:
    q.kind = ASK_RAY
    q.shape = NULL
    q.position = q.p0 = q.p1 = origin
    q.radius = 0.0
    q.box = box_of(origin, origin)


cdef void query_shape_halfspace(query_shape* q, vec3 normal, double offset) noexcept nogil:
    q.kind = ASK_HALFSPACE
    q.shape = NULL
    q.normal = normal
    q.offset = offset
    q.position = q.p0 = q.p1 = v3_scale(normal, offset)
    q.radius = 0.0
    q.box = box_of(v3(-1e30, -1e30, -1e30), v3(1e30, 1e30, 1e30))


# ---------------------------------------------------------------- results

cdef inline void _no_hit(query_hit* h) noexcept nogil:
    h.found = False
    h.distance = NO_HIT
    h.overlapping = False
    h.normal = h.point = h.own_point = h.a = h.b = h.c = v3(0.0, 0.0, 0.0)
    h.layer_index = h.item = h.tri = -1
    h.facing = 0.0


cdef inline bint _before(const query_view* v, const query_hit* x, const query_hit* y) noexcept nogil:
    """Whether x is the better result."""
    cdef int k
    if not y.found:
        return True
    if x.distance != y.distance:
        return x.distance < y.distance
    if x.overlapping != y.overlapping:
        return x.overlapping
    if x.facing != y.facing:
        return x.facing > y.facing
    k = v3_lex(x.a, y.a)
    if k == 0:
        k = v3_lex(x.b, y.b)
    if k == 0:
        k = v3_lex(x.c, y.c)
    if k != 0:
        return k < 0
    # Only the order of adding distinguishes them.
    if x.layer_index != y.layer_index:
        return x.layer_index < y.layer_index
    if x.item != y.item:
        return v.layers[x.layer_index].items[x.item].id < v.layers[y.layer_index].items[y.item].id
    return x.tri < y.tri


cdef inline void _offer(const query_view* v, query_hit* best, query_hit* one, vec3 dir, const triangle* t,
                        int32_t tri) noexcept nogil:
    one.found = True
    one.tri = tri
    if t != NULL:
        one.facing = fabs(v3_dot(t.n, dir))
        one.a, one.b, one.c = t.a, t.b, t.c
    else:
        one.facing = fabs(v3_dot(one.normal, dir))
        one.a, one.b, one.c = one.point, one.normal, one.own_point
    if _before(v, one, best):
        best[0] = one[0]


cdef inline void _from_sweep(query_hit* h, const sweep_hit* s) noexcept nogil:
    h.distance = s.distance
    h.overlapping = s.overlapping
    h.normal = s.normal
    h.point = s.point


cdef inline double _smallest_scale(const collider* p) noexcept nogil:
    return f_min(fabs(p.scale.x), f_min(fabs(p.scale.y), fabs(p.scale.z)))


cdef inline vec3 _box_half(const collider* p) noexcept nogil:
    return v3(p.a.x * fabs(p.scale.x), p.a.y * fabs(p.scale.y), p.a.z * fabs(p.scale.z))


cdef inline triangle _own_triangle(const collider* p) noexcept nogil:
    """The world triangle of a Triangle; its normal is zero when it has no area."""
    cdef triangle t
    t.a = place_point(p, p.a)
    t.b = place_point(p, p.c if p.mirrored else p.b)
    t.c = place_point(p, p.b if p.mirrored else p.c)
    t.n = triangle_normal(t.a, t.b, t.c)
    t.d = v3_dot(t.n, t.a)
    return t


cdef void _load_item(polytope* out, const collider* p, vec3 origin) noexcept nogil:
    """A sphere, capsule, box, hull or triangle as a polytope about the origin."""
    cdef convex_shape s
    cdef triangle t
    s.radius = 0.0
    s.a = s.b = s.c = v3(0.0, 0.0, 0.0)
    s.hull = p.hull
    s.extra = p.extra
    s.kind = p.kind
    if p.kind == SHAPE_SPHERE or p.kind == SHAPE_CAPSULE:
        s.radius = p.radius
        s.a = v3_sub(p.a, origin)
        s.b = v3_sub(p.b, origin)
        polytope_load(out, &s, p.matrix, v3_sub(p.position, origin), p.kind == SHAPE_SPHERE)
        return
    if p.kind == SHAPE_TRIANGLE:
        t = _own_triangle(p)
        _load_triangle(out, &t, origin)
        return
    s.a = _box_half(p) if p.kind == SHAPE_BOX else v3_mul(p.hull_scale, p.scale)
    polytope_load(out, &s, p.matrix, v3_sub(p.position, origin), True)


cdef inline void _load_triangle(polytope* out, const triangle* t, vec3 origin) noexcept nogil:
    cdef convex_shape s
    cdef mat3 none
    s.kind = SHAPE_TRIANGLE
    s.radius = 0.0
    s.a = v3_sub(t.a, origin)
    s.b = v3_sub(t.b, origin)
    s.c = v3_sub(t.c, origin)
    none.r0 = none.r1 = none.r2 = origin
    polytope_load(out, &s, none, origin, False)


cdef int _faces_of(const collider* p, candidates* c) noexcept nogil:
    """The triangles of a hull, box or triangle, in c.tris."""
    candidates_cut(c, 0, 0)
    return candidates_add(c, p, 0, 0, p.bounds, NULL)


# ---------------------------------------------------------------- casts

cdef struct cast_job:
    const query_view* v
    const query_shape* q
    query_scratch* s
    vec3 dir
    double asked        # requested distance
    double limit        # shrinks to the best distance so far
    int status
    ray ray             # ASK_RAY
    capsule_cast cast   # round
    query_hit* best
    int32_t layer_index
    int32_t item
    bint all            # a ray that records every triangle in s.hits


cdef inline query_hit _fresh(const cast_job* j) noexcept nogil:
    cdef query_hit h
    _no_hit(&h)
    h.layer_index = j.layer_index
    h.item = j.item
    return h


cdef inline void _took(cast_job* j) noexcept nogil:
    if j.best.found and j.best.distance < j.limit:
        j.limit = j.best.distance
        j.cast.limit = j.limit
    if j.v.first_only and j.best.found:
        # Nothing is near enough any more.
        j.limit = j.cast.limit = -1.0


cdef void _record(cast_job* j, query_hit* h) noexcept nogil:
    """Append a hit of a ray that looks for all."""
    cdef query_scratch* s = j.s
    cdef void* more = one_more(s.hits, sizeof(query_hit), s.n_hits, &s.capacity_hits, 16)
    if more == NULL:
        j.status = STATUS_NO_MEMORY
        return
    s.hits = <query_hit*>more
    s.hits[s.n_hits] = h[0]
    s.n_hits += 1


cdef inline void _offer_triangle(cast_job* j, query_hit* h, const triangle* t, int32_t tri) noexcept nogil:
    """A triangle that a ray or polytope meets."""
    cdef query_hit none
    if j.all:
        none.found = False
        _offer(j.v, &none, h, j.dir, t, tri)
        _record(j, h)
        return
    _offer(j.v, j.best, h, j.dir, t, tri)
    _took(j)


cdef void _polytope_contact(cast_job* j, query_hit* h, const collider* p, const triangle* t) noexcept nogil:
    """Contact of the body at the end of its path with an item or a triangle."""
    cdef polytope_work* w = j.s.work
    cdef core_pair pair
    cdef vec3 end = v3_madd(j.q.position, j.dir, h.distance)
    if t != NULL:
        _load_triangle(&w.other, t, end)
    else:
        _load_item(&w.other, p, end)
    core_distance(&w.body, &w.other, 1e300, &pair)
    h.point = v3_add(pair.on_b, end)


cdef inline double _horizon(const cast_job* j) noexcept nogil:
    """Distance up to which triangles of a surface still matter."""
    return j.cast.limit if j.q.kind == ASK_ROUND else j.limit


cdef void _begin_surface(cast_job* j) noexcept nogil:
    """Start the casts against the triangles of one surface."""
    candidates_cut(&j.s.near, 0, 0)
    if j.q.kind == ASK_ROUND:
        j.cast.limit = f_min(j.asked, latest_candidate(&j.cast, j.limit))
        j.cast.culls = False


cdef inline bint _faces_away(const cast_job* j, const triangle* t, bint two_sided) noexcept nogil:
    """Whether the motion meets the back of a one-sided triangle (RULES 2)."""
    return not two_sided and v3_dot(t.n, j.dir) > FACING_TIE


cdef void _gather(cast_job* j, const triangle* t, bint two_sided, int32_t tri) noexcept nogil:
    """Record a triangle if a round shape touches it early enough for a candidate (RULES 3)."""
    cdef candidates* c = &j.s.near
    cdef sweep_hit one
    cdef toi_candidate touched
    # Casts that do not cull keep triangles that are parallel to the motion, whatever the rounding.
    if _faces_away(j, t, two_sided):
        return
    if not cast_triangles(&j.cast, t, 1, two_sided, False, &touched, &c.tested, &one):
        return
    if candidates_reserve(c, 1) != STATUS_OK:
        j.status = STATUS_NO_MEMORY
        return
    c.tris[c.n_tris] = t[0]
    c.source[c.n_tris] = tri
    c.n_tris += 1
    j.cast.limit = f_min(j.cast.limit, latest_candidate(&j.cast, one.distance))


cdef void _end_surface(cast_job* j, bint two_sided) noexcept nogil:
    """Choose the winning triangle.

    As in moves, PhysX queries prefer the one most opposed to the motion.
    """
    cdef candidates* c = &j.s.near
    cdef query_hit h
    cdef sweep_hit one
    if j.q.kind != ASK_ROUND:
        return
    j.cast.limit = j.asked
    if cast_triangles(&j.cast, c.tris, c.n_tris, two_sided, False, c.touched, &c.tested, &one) and (
            one.distance <= j.limit):
        h = _fresh(j)
        _from_sweep(&h, &one)
        _offer(j.v, j.best, &h, j.dir, &c.tris[one.tri], c.source[one.tri])
    j.cast.limit = j.limit
    j.cast.culls = True
    _took(j)


cdef void _cast_triangle(cast_job* j, const triangle* t, bint two_sided, int32_t tri) noexcept nogil:
    """A triangle of a surface."""
    cdef query_hit h
    cdef const query_shape* q = j.q
    cdef polytope_work* w = j.s.work
    cdef double x
    cdef bint back
    if q.kind == ASK_ROUND:
        _gather(j, t, two_sided, tri)
        return
    h = _fresh(j)
    if q.kind == ASK_RAY:
        x = ray_triangle(&j.ray, t, two_sided, &back)
        if x > j.limit:
            return
        h.distance = x
        h.normal = v3_neg(t.n) if back else t.n
        h.point = v3_madd(q.p0, j.dir, x)
    else:
        if _faces_away(j, t, two_sided):
            return
        _load_triangle(&w.other, t, q.position)
        if w.other.n_faces == 0:
            return
        cast_body_of(&w.other_cast, &w.other)
        if not cast_polytopes(&w.cast, &w.other_cast, j.dir, j.limit, &h.distance, &h.normal, &h.overlapping):
            return
        _polytope_contact(j, &h, NULL, t)
    _offer_triangle(j, &h, t, tri)


cdef inline vec3 _local_motion(const collider* p, vec3 dir) noexcept nogil:
    """A direction in the shape's frame, as long there as a metre in the world is."""
    if p.plain:
        return dir
    dir = m3_tmul(p.matrix, dir)
    return v3(dir.x / p.scale.x, dir.y / p.scale.y, dir.z / p.scale.z)


cdef void _ray_at_mesh(cast_job* j, const collider* p) noexcept nogil:
    cdef bvh_walk w
    cdef bvh_ray r
    cdef int32_t first, k, tri
    cdef uint32_t bits
    cdef triangle t
    cdef query_hit h
    cdef double x
    cdef bint back
    # Places in the world round to shares of their distance from its origin.
    x = 1e-15 * (v3_max_abs(p.position) + v3_max_abs(j.q.p0))
    if not p.plain:
        x /= _smallest_scale(p)
    bvh_walk_ray_start(&w, &r, &p.mesh.tree, unplace_point(p, j.q.p0), _local_motion(p, j.dir), x,
                       not p.mesh.two_sided)
    while bvh_walk_ray(&w, &r, p.mesh.blocks, j.limit, &first, &bits):
        while bits:
            k = first + lowest_bit(bits)
            bits &= bits - 1
            tri = p.mesh.source[k]
            if p.mesh.mask != NULL and not p.mesh.mask[tri] & j.v.mask:
                continue
            if not mesh_triangle(p, k, &t):
                continue
            x = ray_triangle(&j.ray, &t, p.mesh.two_sided, &back)
            if x > j.limit:
                continue
            h = _fresh(j)
            h.distance = x
            h.normal = v3_neg(t.n) if back else t.n
            h.point = v3_madd(j.q.p0, j.dir, x)
            _offer_triangle(j, &h, &t, tri)


cdef void _cast_mesh(cast_job* j, const collider* p) noexcept nogil:
    cdef bvh_walk w
    cdef int32_t first, k, tri
    cdef uint32_t bits
    cdef triangle t
    if j.q.kind == ASK_RAY:
        _ray_at_mesh(j, p)
        return
    bvh_walk_start(&w, &p.mesh.tree, local_box(p, j.q.box), _local_motion(p, j.dir))
    _begin_surface(j)
    while bvh_walk_boxes(&w, p.mesh.blocks, _horizon(j), &first, &bits):
        while bits:
            k = first + lowest_bit(bits)
            bits &= bits - 1
            tri = p.mesh.source[k]
            if p.mesh.mask != NULL and not p.mesh.mask[tri] & j.v.mask:
                continue
            if mesh_triangle(p, k, &t):
                _cast_triangle(j, &t, p.mesh.two_sided, tri)
    _end_surface(j, p.mesh.two_sided)


cdef void _cast_heightfield(cast_job* j, const collider* p) noexcept nogil:
    cdef bvh_walk w
    cdef bvh_node[2] boxes
    cdef uint32_t bits
    cdef int32_t first, count, k, tri, i, m, i0, i1, j0, j1
    cdef int which, half, lane
    cdef triangle t
    bvh_walk_start(&w, &p.field.tree, local_box(p, j.q.box), _local_motion(p, j.dir))
    _begin_surface(j)
    while bvh_walk_next(&w, _horizon(j), &first, &count):
        for k in range(first, first + count):
            field_tile(p.field, p.field.tree.order[k], &i0, &i1, &j0, &j1)
            field_tile_boxes(p.field, i0, i1, j0, j1, boxes)
            for half in range(2):
                bits = bvh_walk_mask(&w, &boxes[half], _horizon(j))
                while bits:
                    lane = lowest_bit(bits)
                    bits &= bits - 1
                    i = i0 + 2 * half + lane // FIELD_TILE
                    m = j0 + lane % FIELD_TILE
                    if i > i1 or m > j1:
                        continue
                    for which in range(2):
                        tri = 2 * (i * (p.field.columns - 1) + m) + which
                        if p.field.mask != NULL and not p.field.mask[tri] & j.v.mask:
                            continue
                        if heightfield_triangle(p, i, m, which, &t):
                            _cast_triangle(j, &t, p.field.two_sided, tri)
    _end_surface(j, p.field.two_sided)


cdef void _true_normal(query_hit* h, const query_shape* q, vec3 dir) noexcept nogil:
    """From the contact to the axis, also for thin shapes (the limit of RULES 3 is for moves)."""
    cdef vec3 step = v3_scale(dir, h.distance)
    cdef vec3 n = v3_sub(point_segment(h.point, v3_add(q.p0, step), v3_add(q.p1, step)).on_b, h.point)
    cdef double length = v3_len(n)
    if length > 0.0:
        h.normal = v3_scale(n, 1.0 / length)


cdef int _cast_faces(cast_job* j, const collider* p) noexcept nogil:
    """A ray or round shape against a hull (or, for a ray, none of the simpler shapes)."""
    cdef candidates* c = &j.s.near
    cdef const query_shape* q = j.q
    cdef query_hit h
    cdef sweep_hit one
    cdef toi_candidate touched
    cdef bint inside
    cdef int32_t i
    cdef double x
    cdef capsule_cast cast = j.cast
    cdef int status = _faces_of(p, c)
    if status != STATUS_OK or c.n_tris == 0:
        return status
    h = _fresh(j)
    if q.kind == ASK_RAY:
        if is_flat_hull(p):
            for i in range(c.n_tris):
                x = ray_triangle(&j.ray, &c.tris[i], False, &inside)
                if x < h.distance:
                    h.distance = x
                    h.normal = c.tris[i].n
        else:
            h.distance = ray_polytope(q.p0, j.dir, c.tris, c.n_tris, &h.normal, &h.overlapping)
        if h.distance > j.limit:
            return STATUS_OK
        h.point = v3_madd(q.p0, j.dir, h.distance)
        _offer(j.v, j.best, &h, j.dir, NULL, -1)
        _took(j)
        return STATUS_OK
    if push_from_polytope(q.p0, q.p1, q.radius, c.tris, c.n_tris, is_flat_hull(p)).overlapping:
        h.distance = 0.0
        h.overlapping = True
        h.normal = v3_neg(j.dir)
        h.point = v3_scale(v3_add(q.p0, q.p1), 0.5)
        _offer(j.v, j.best, &h, j.dir, NULL, -1)
        _took(j)
        return STATUS_OK
    # Outside: the nearest of the visible faces; without one the motion leads away.
    for i in range(c.n_tris):
        if not cast_triangles(&cast, &c.tris[i], 1, False, True, &touched, &c.tested, &one):
            continue
        _from_sweep(&h, &one)
        _true_normal(&h, q, j.dir)
        _offer(j.v, j.best, &h, j.dir, &c.tris[i], -1)
        _took(j)
        cast.limit = j.limit
    return STATUS_OK


cdef void _cast_at_round(cast_job* j, const collider* p) noexcept nogil:
    """Polytope against a sphere or capsule: the reversed problem."""
    cdef polytope_work* w = j.s.work
    cdef capsule_cast back
    cdef query_hit h = _fresh(j)
    cdef sweep_hit one
    cdef toi_candidate touched
    cdef int32_t i
    if w.n_faces == 0:
        # A segment or point: a capsule without a radius.
        back = exact_cast_of(j.q.p0, j.q.p1, 0.0, j.dir, j.limit)
        if cast_capsule(&back, p.a, p.b, p.radius, &one):
            _from_sweep(&h, &one)
            _offer(j.v, j.best, &h, j.dir, NULL, -1)
            _took(j)
        return
    if push_from_polytope(p.a, p.b, p.radius, w.faces, w.n_faces, w.cast.flat).overlapping:
        h.distance = 0.0
        h.overlapping = True
        h.normal = v3_neg(j.dir)
        h.point = v3_scale(v3_add(p.a, p.b), 0.5)
        _offer(j.v, j.best, &h, j.dir, NULL, -1)
        _took(j)
        return
    back = exact_cast_of(p.a, p.b, p.radius, v3_neg(j.dir), j.limit)
    for i in range(w.n_faces):
        if not cast_triangles(&back, &w.faces[i], 1, False, True, &touched, &j.s.near.tested, &one):
            continue
        h.distance = one.distance
        h.normal = v3_neg(one.normal)
        h.point = v3_madd(one.point, j.dir, one.distance)
        _offer(j.v, j.best, &h, j.dir, NULL, -1)
        _took(j)
        back.limit = j.limit


cdef void _cast_halfspace(cast_job* j, const collider* p) noexcept nogil:
    cdef query_hit h = _fresh(j)
    cdef double nd = v3_dot(j.q.normal, j.dir), low
    cdef int32_t tri = -1
    cdef vec3 point
    low = _lowest_of(p, j.q.normal, j.v.mask, &point, &tri)
    if low >= NO_HIT:
        return
    if low < j.q.offset:
        h.distance = 0.0
        h.overlapping = True
        h.normal = v3_neg(j.dir)
    elif nd <= 0.0:
        return
    else:
        h.distance = (low - j.q.offset) / nd
        h.normal = v3_neg(j.q.normal)
    if h.distance > j.limit:
        return
    h.point = point
    _offer(j.v, j.best, &h, j.dir, NULL, tri)
    _took(j)


cdef inline bint _cast_at_plane(cast_job* j, const collider* p, query_hit* h) noexcept nogil:
    """Cast a polytope against a plane: its lowest vertex decides."""
    cdef const polytope* body = &j.s.work.body
    cdef vec3 lowest = vertex_at(body, support(body, v3_neg(p.a)))
    cdef double low = v3_dot(p.a, lowest) + (v3_dot(p.a, j.q.position) - p.offset)
    cdef double nd = v3_dot(p.a, j.dir)
    if low < 0.0:
        h.distance = 0.0
        h.overlapping = True
        h.normal = v3_neg(j.dir)
    elif nd >= 0.0 or low > -nd * j.limit:
        return False
    else:
        h.distance = low / -nd
        h.normal = p.a
    h.point = v3_madd(v3_add(lowest, j.q.position), j.dir, h.distance)
    return True


cdef inline double _ray_at_box(const collider* p, vec3 origin, vec3 dir, vec3* normal, bint* inside) noexcept nogil:
    """Cast a ray at a box; the normal is in the frame of the box."""
    cdef vec3 half = _box_half(p)
    if p.rotation.x == 0.0 and p.rotation.y == 0.0 and p.rotation.z == 0.0:
        # The faces are where the triangles of the box are, so that a ray in a face stays in it.
        return ray_box(origin, dir, v3_sub(p.position, half), v3_add(p.position, half), normal, inside)
    return ray_box(q_unrotate(p.rotation, v3_sub(origin, p.position)), q_unrotate(p.rotation, dir), v3_neg(half), half,
                   normal, inside)


cdef int _cast_item(cast_job* j, const collider* p) noexcept nogil:
    cdef const query_shape* q = j.q
    cdef polytope_work* w = j.s.work
    cdef query_hit h
    cdef sweep_hit one
    cdef capsule_cast cast
    cdef triangle t
    cdef vec3 n
    if q.kind == ASK_HALFSPACE:
        _cast_halfspace(j, p)
        return STATUS_OK
    if p.kind == SHAPE_MESH:
        _cast_mesh(j, p)
        return j.status
    if p.kind == SHAPE_HEIGHTFIELD:
        _cast_heightfield(j, p)
        return j.status
    if p.kind == SHAPE_TRIANGLE:
        t = _own_triangle(p)
        if not v3_is_zero(t.n):
            _begin_surface(j)
            _cast_triangle(j, &t, False, -1)
            _end_surface(j, False)
        return j.status
    h = _fresh(j)
    if q.kind == ASK_RAY:
        if p.kind == SHAPE_HULL:
            return _cast_faces(j, p)
        if p.kind == SHAPE_SPHERE or p.kind == SHAPE_CAPSULE:
            h.distance = ray_capsule(q.p0, j.dir, p.a, p.b, p.radius, &h.normal, &h.overlapping)
        elif p.kind == SHAPE_PLANE:
            h.distance = ray_plane(q.p0, j.dir, p.a, p.offset, &h.overlapping)
            h.normal = v3_neg(j.dir) if h.overlapping else p.a
        else:
            h.distance = _ray_at_box(p, q.p0, j.dir, &n, &h.overlapping)
            h.normal = v3_neg(j.dir) if h.overlapping else q_rotate(p.rotation, n)
        if h.distance > j.limit:
            return STATUS_OK
        h.point = v3_madd(q.p0, j.dir, h.distance)
    elif q.kind == ASK_ROUND:
        if p.kind == SHAPE_HULL:
            return _cast_faces(j, p)
        if p.kind == SHAPE_SPHERE:
            if not cast_sphere(&j.cast, p.position, p.radius, &one):
                return STATUS_OK
        elif p.kind == SHAPE_CAPSULE:
            if not cast_capsule(&j.cast, p.a, p.b, p.radius, &one):
                return STATUS_OK
        elif p.kind == SHAPE_PLANE:
            # A solid also counts for a motion out of it.
            cast = j.cast
            cast.culls = False
            if not cast_plane(&cast, p.a, p.offset, &one):
                return STATUS_OK
        elif not capsule_box(q.p0, q.p1, q.radius, j.dir, _box_half(p), p.position, p.rotation, j.limit, &one):
            return STATUS_OK
        _from_sweep(&h, &one)
    elif (p.kind == SHAPE_SPHERE or p.kind == SHAPE_CAPSULE) and p.radius > 0.0:
        _cast_at_round(j, p)
        return STATUS_OK
    elif p.kind == SHAPE_PLANE:
        if not _cast_at_plane(j, p, &h):
            return STATUS_OK
    else:
        _load_item(&w.other, p, q.position)
        cast_body_of(&w.other_cast, &w.other)
        if not cast_polytopes(&w.cast, &w.other_cast, j.dir, j.limit, &h.distance, &h.normal, &h.overlapping):
            return STATUS_OK
        _polytope_contact(j, &h, p, NULL)
    _offer(j.v, j.best, &h, j.dir, NULL, -1)
    _took(j)
    return STATUS_OK


cdef inline bint _asked(const query_view* v, int32_t layer_index, int32_t item) noexcept nogil:
    cdef const collider* p = &v.layers[layer_index].items[item]
    return ((p.layer & v.mask) != 0 and (not p.obstacle or v.obstacles) and p.id != v.exclude
            and p.id != v.exclude_too
            and (v.group < 0 or layer_index != 2 or v.groups[item] == v.group)
            and (v.allowed[layer_index] == NULL or v.allowed[layer_index][item] != 0))


cdef int query_cast(const query_view* v, const query_shape* q, vec3 dir, double limit, query_scratch* s,
                    query_hit* hit) noexcept nogil:
    cdef cast_job j
    cdef const broadphase_layer* layer
    cdef bvh_walk w
    cdef int32_t k, i, first, count
    cdef int status = STATUS_OK
    _no_hit(hit)
    s.near.mask = v.mask
    j.v = v
    j.q = q
    j.s = s
    j.dir = dir
    j.limit = j.asked = limit
    j.status = STATUS_OK
    j.best = hit
    j.all = False
    if q.kind == ASK_RAY:
        ray_set(&j.ray, q.p0, dir)
    else:
        j.cast = exact_cast_of(q.p0, q.p1, q.radius, dir, limit)
    for k in range(QUERY_PARTS):
        layer = v.layers[k]
        if layer == NULL or layer.n == 0:
            continue
        j.layer_index = k
        if q.kind == ASK_HALFSPACE:
            for i in range(layer.n):
                j.item = i
                if _asked(v, k, i):
                    _cast_item(&j, &layer.items[i])
            continue
        for i in range(layer.n_endless):
            j.item = layer.endless[i]
            if _asked(v, k, j.item):
                status = _cast_item(&j, &layer.items[j.item])
                if status != STATUS_OK:
                    return status
        if layer.tree.n_items <= FEW_COLLIDERS:
            # Their own trees rule out as fast.
            for i in range(layer.tree.n_items):
                j.item = layer.tree.order[i]
                if j.item >= 0 and _asked(v, k, j.item):
                    status = _cast_item(&j, &layer.items[j.item])
                    if status != STATUS_OK:
                        return status
            continue
        bvh_walk_start(&w, &layer.tree, q.box, dir)
        while bvh_walk_next(&w, j.limit, &first, &count):
            for i in range(first, first + count):
                j.item = layer.tree.order[i]
                if _asked(v, k, j.item):
                    status = _cast_item(&j, &layer.items[j.item])
                    if status != STATUS_OK:
                        return status
    return STATUS_OK


# ---------------------------------------------------------------- parts of a cast

cdef void query_no_hit(query_hit* hit) noexcept nogil:
    _no_hit(hit)


cdef int query_ray_item(const query_view* v, const query_shape* q, vec3 dir, double limit, query_scratch* s,
                        int32_t layer_index, int32_t item, query_hit* hit) noexcept nogil:
    cdef cast_job j
    s.near.mask = v.mask
    j.v = v
    j.q = q
    j.s = s
    j.dir = dir
    j.limit = j.asked = hit.distance if hit.found and hit.distance < limit else limit
    j.status = STATUS_OK
    j.best = hit
    j.all = False
    ray_set(&j.ray, q.p0, dir)
    j.layer_index = layer_index
    j.item = item
    return _cast_item(&j, &v.layers[layer_index].items[item])


cdef void query_offer_triangle(const query_view* v, const query_shape* q, vec3 dir, int32_t layer_index, int32_t item,
                               const triangle* t, int32_t tri, double distance, bint back,
                               query_hit* hit) noexcept nogil:
    cdef query_hit h
    _no_hit(&h)
    h.layer_index = layer_index
    h.item = item
    h.distance = distance
    h.normal = v3_neg(t.n) if back else t.n
    h.point = v3_madd(q.p0, dir, distance)
    _offer(v, hit, &h, dir, t, tri)


cdef int32_t query_items_in(const query_view* v, int32_t layer_index, aabb box, int32_t* items,
                            int32_t capacity) noexcept nogil:
    cdef const broadphase_layer* layer = v.layers[layer_index]
    cdef bvh_walk w
    cdef int32_t i, item, first, count, n = 0
    if layer == NULL or layer.n == 0:
        return 0
    for i in range(layer.n_endless):
        if _asked(v, layer_index, layer.endless[i]):
            if n < capacity:
                items[n] = layer.endless[i]
            n += 1
    if layer.tree.n_items <= FEW_COLLIDERS:
        for i in range(layer.tree.n_items):
            item = layer.tree.order[i]
            if item >= 0 and _asked(v, layer_index, item) and box_overlap(layer.items[item].bounds, box):
                if n < capacity:
                    items[n] = item
                n += 1
        return n
    bvh_walk_start(&w, &layer.tree, box, v3(0.0, 0.0, 0.0))
    while bvh_walk_next(&w, 0.0, &first, &count):
        for i in range(first, first + count):
            item = layer.tree.order[i]
            if _asked(v, layer_index, item) and box_overlap(layer.items[item].bounds, box):
                if n < capacity:
                    items[n] = item
                n += 1
    return n


cdef int _record_item(cast_job* j, int32_t item) noexcept nogil:
    """Every triangle of an item, or the nearest hit of a solid."""
    cdef int status
    j.item = item
    if not _asked(j.v, j.layer_index, item):
        return STATUS_OK
    _no_hit(j.best)
    j.limit = j.asked
    status = _cast_item(j, &j.v.layers[j.layer_index].items[item])
    if status == STATUS_OK and j.best.found:
        _record(j, j.best)
    return j.status if status == STATUS_OK else status


cdef void _sink(const query_view* v, query_hit* hits, int32_t i, int32_t n) noexcept nogil:
    """Restore the heap below place i: the farthest hit on top."""
    cdef query_hit one = hits[i]
    cdef int32_t k
    while 2 * i + 1 < n:
        k = 2 * i + 1
        if k + 1 < n and _before(v, &hits[k], &hits[k + 1]):
            k += 1
        if not _before(v, &one, &hits[k]):
            break
        hits[i] = hits[k]
        i = k
    hits[i] = one


cdef int query_ray_all(const query_view* v, const query_shape* q, vec3 dir, double limit,
                       query_scratch* s) noexcept nogil:
    cdef cast_job j
    cdef query_hit best, swap
    cdef const broadphase_layer* layer
    cdef bvh_walk w
    cdef int32_t k, i, first, count
    cdef int status = STATUS_OK
    s.n_hits = 0
    s.near.mask = v.mask
    j.v = v
    j.q = q
    j.s = s
    j.dir = dir
    j.limit = j.asked = limit
    j.status = STATUS_OK
    j.best = &best
    j.all = True
    ray_set(&j.ray, q.p0, dir)
    for k in range(QUERY_PARTS):
        layer = v.layers[k]
        if layer == NULL or layer.n == 0:
            continue
        j.layer_index = k
        for i in range(layer.n_endless):
            status = _record_item(&j, layer.endless[i])
            if status != STATUS_OK:
                return status
        bvh_walk_start(&w, &layer.tree, q.box, dir)
        while bvh_walk_next(&w, limit, &first, &count):
            for i in range(first, first + count):
                status = _record_item(&j, layer.tree.order[i])
                if status != STATUS_OK:
                    return status
    for i in range(s.n_hits // 2 - 1, -1, -1):
        _sink(v, s.hits, i, s.n_hits)
    for i in range(s.n_hits - 1, 0, -1):
        swap = s.hits[0]
        s.hits[0] = s.hits[i]
        s.hits[i] = swap
        _sink(v, s.hits, 0, i)
    return STATUS_OK


# ---------------------------------------------------------------- touching

cdef double _lowest_of(const collider* p, vec3 n, uint32_t mask, vec3* point, int32_t* tri) noexcept nogil:
    """Least dot(n, x) over a shape, NO_HIT for an empty one; with point and triangle."""
    cdef double best = NO_HIT, x
    cdef int32_t k, i, m
    cdef int which
    cdef vec3 c, h, local
    cdef triangle t
    tri[0] = -1
    if p.kind == SHAPE_SPHERE or p.kind == SHAPE_CAPSULE:
        c = p.a if v3_dot(n, p.a) <= v3_dot(n, p.b) else p.b
        point[0] = v3_madd(c, n, -p.radius)
        return v3_dot(n, c) - p.radius
    if p.kind == SHAPE_PLANE:
        # Endless, unless it faces exactly the other way.
        point[0] = v3_scale(p.a, p.offset)
        return -p.offset if v3_len(v3_add(n, p.a)) <= OPPOSITE else -INFINITY
    if p.kind == SHAPE_BOX:
        h = _box_half(p)
        local = m3_tmul(p.matrix, n)
        c = v3(-h.x if local.x > 0.0 else h.x, -h.y if local.y > 0.0 else h.y, -h.z if local.z > 0.0 else h.z)
        point[0] = v3_add(m3_mul(p.matrix, c), p.position)
        return v3_dot(n, point[0])
    if p.kind == SHAPE_HULL:
        for k in range(p.hull.n_vertices):
            c = place_point(p, v3_mul(v3(p.hull.vertices[3 * k], p.hull.vertices[3 * k + 1],
                                         p.hull.vertices[3 * k + 2]), p.hull_scale))
            x = v3_dot(n, c)
            if x < best or (x == best and v3_lex(c, point[0]) < 0):
                best = x
                point[0] = c
        return best
    if p.kind == SHAPE_TRIANGLE:
        t = _own_triangle(p)
        if not v3_is_zero(t.n):
            _lower(&t, n, -1, &best, point, tri)
    elif p.kind == SHAPE_MESH:
        for k in range(p.mesh.n_triangles):
            if (mesh_usable(p.mesh, k) and (p.mesh.mask == NULL or p.mesh.mask[p.mesh.source[k]] & mask)
                    and mesh_triangle(p, k, &t)):
                _lower(&t, n, p.mesh.source[k], &best, point, tri)
    else:
        for i in range(p.field.rows - 1):
            for m in range(p.field.columns - 1):
                for which in range(2):
                    k = 2 * (i * (p.field.columns - 1) + m) + which
                    if ((p.field.mask == NULL or p.field.mask[k] & mask)
                            and heightfield_triangle(p, i, m, which, &t)):
                        _lower(&t, n, k, &best, point, tri)
    return best


cdef inline void _lower(const triangle* t, vec3 n, int32_t k, double* best, vec3* point, int32_t* tri) noexcept nogil:
    cdef vec3[3] c
    cdef double x
    cdef int i
    c[0], c[1], c[2] = t.a, t.b, t.c
    for i in range(3):
        x = v3_dot(n, c[i])
        if x < best[0] or (x == best[0] and (v3_lex(c[i], point[0]) < 0 or (
                v3_lex(c[i], point[0]) == 0 and k < tri[0]))):
            best[0] = x
            point[0] = c[i]
            tri[0] = k


cdef int query_note(query_scratch* s, const query_touch* touch) noexcept nogil:
    cdef void* more = one_more(s.touches, sizeof(query_touch), s.n_touches, &s.capacity_touches, 16)
    if more == NULL:
        return STATUS_NO_MEMORY
    s.touches = <query_touch*>more
    s.touches[s.n_touches] = touch[0]
    s.n_touches += 1
    return STATUS_OK


cdef inline int _note(query_scratch* s, int32_t layer_index, int32_t item, vec3 direction, double depth) noexcept nogil:
    cdef query_touch t
    t.layer_index = layer_index
    t.item = item
    t.direction = direction
    t.depth = depth
    return query_note(s, &t)


cdef push_out _polytope_from_triangle(const polytope_work* w, polytope* other, const triangle* t, bint two_sided,
                                      vec3 at) noexcept nogil:
    """Exit of the body, moved to ``at``, from one triangle, to the side of its centre."""
    cdef push_out r
    cdef core_pair pair
    cdef vec3 n = t.n
    cdef double side = v3_dot(n, v3_sub(v3_add(w.body.centre, at), t.a)), low
    r.overlapping = False
    r.depth = 0.0
    r.dir = n
    r.tri = -1
    if side <= 0.0:
        if not two_sided or side == 0.0:
            return r
        n = v3_neg(n)
    _load_triangle(other, t, at)
    core_distance(&w.body, other, 0.0, &pair)
    if pair.beyond or pair.distance >= 0.0:
        return r
    r.overlapping = True
    r.dir = pair.n
    r.depth = -pair.distance
    if v3_dot(pair.n, n) < 0.0:
        low = v3_dot(n, vertex_at(&w.body, support(&w.body, v3_neg(n)))) - v3_dot(n, v3_sub(t.a, at))
        r.dir = n
        r.depth = -low
    return r


cdef inline int _gather_surface(candidates* c, const collider* p, int32_t item, int32_t layer_index,
                                aabb box) noexcept nogil:
    candidates_cut(c, 0, 0)
    return candidates_add(c, p, item, layer_index, box, NULL)


cdef int _polytope_from_surface(const query_shape* q, query_scratch* s, const collider* p, int32_t item,
                                int32_t layer_index, push_out* result) noexcept nogil:
    """Up to four successive pushes, the deepest triangle's first, added up (RULES 7.5).

    Each push sees the triangles around the place that the former pushes led to.
    """
    cdef candidates* c = &s.near
    cdef push_out best
    cdef vec3 total = v3(0.0, 0.0, 0.0), at
    cdef double deepest
    cdef int turn, status
    cdef int32_t i, winner
    cdef bint any_ = False, two_sided = c.groups[0].two_sided
    cdef double size = s.work.body.extent
    best.overlapping = False
    best.depth = 0.0
    best.dir = total
    best.tri = -1
    for turn in range(SURFACE_PUSHES):
        at = v3_add(q.position, total)
        if turn > 0:
            status = _gather_surface(c, p, item, layer_index, box_of(v3_add(q.box.lo, total), v3_add(q.box.hi, total)))
            if status != STATUS_OK:
                return status
        deepest = 0.0
        for i in range(c.n_tris):
            c.depths[i] = _polytope_from_triangle(s.work, &s.work.other, &c.tris[i], two_sided, at).depth
            deepest = f_max(deepest, c.depths[i])
        # A remainder of rounding size needs no push.
        if deepest <= (1e-12 * size if turn > 0 else 0.0):
            break
        winner = -1
        for i in range(c.n_tris):
            if c.depths[i] >= deepest - DEPTH_TIE and c.depths[i] > 0.0 and (
                    winner < 0 or triangle_order(&c.tris[i], &c.tris[winner]) < 0):
                winner = i
        best = _polytope_from_triangle(s.work, &s.work.other, &c.tris[winner], two_sided, at)
        any_ = True
        total = v3_madd(total, best.dir, best.depth)
    best.overlapping = any_ and not v3_is_zero(total)
    if best.overlapping:
        best.depth = v3_len(total)
        best.dir = v3_scale(total, 1.0 / best.depth)
    result[0] = best
    return STATUS_OK


cdef int _round_from_surface(const query_shape* q, query_scratch* s, const collider* p, int32_t item,
                             int32_t layer_index, push_out* result) noexcept nogil:
    """The way out of a mesh or heightfield that sees every triangle that its pushes lead to."""
    cdef candidates* c = &s.near
    cdef double seen = 0.0
    cdef int status
    while True:
        result[0] = group_push(c, &c.groups[0], q.p0, q.p1, q.radius)
        if not result.excursion > seen:
            return STATUS_OK
        seen = FARTHER * result.excursion
        status = _gather_surface(c, p, item, layer_index, box_grow(q.box, seen))
        if status != STATUS_OK:
            return status


cdef inline bint _triangle_touched(const query_shape* q, query_scratch* s, const triangle* t) noexcept nogil:
    cdef core_pair pair
    if q.kind == ASK_ROUND:
        return overlaps_triangles(q.p0, q.p1, q.radius, t, 1)
    _load_triangle(&s.work.other, t, q.position)
    core_distance(&s.work.body, &s.work.other, 0.0, &pair)
    return not pair.beyond and pair.distance < 0.0


cdef bint _mesh_touched(const query_view* v, const query_shape* q, query_scratch* s, const collider* p) noexcept nogil:
    """Whether the shape touches any triangle of a mesh; the search ends at the first one."""
    cdef bvh_walk w
    cdef int32_t first, k
    cdef uint32_t bits
    cdef triangle t
    bvh_walk_near(&w, &p.mesh.tree, local_box(p, q.box), _smallest_scale(p))
    while bvh_walk_boxes(&w, p.mesh.blocks, 0.0, &first, &bits):
        while bits:
            k = first + lowest_bit(bits)
            bits &= bits - 1
            if p.mesh.mask != NULL and not p.mesh.mask[p.mesh.source[k]] & v.mask:
                continue
            if mesh_triangle(p, k, &t) and _triangle_touched(q, s, &t):
                return True
    return False


cdef bint _heightfield_touched(const query_view* v, const query_shape* q, query_scratch* s,
                               const collider* p) noexcept nogil:
    """Whether the shape touches any triangle of a heightfield; the search ends at the first one."""
    cdef bvh_walk w
    cdef bvh_node[2] boxes
    cdef uint32_t bits
    cdef int32_t first, count, k, tri, i, m, i0, i1, j0, j1
    cdef int which, half, lane
    cdef triangle t
    cdef aabb box = local_box(p, q.box)
    if not field_cells(p.field, box, &i0, &i1, &j0, &j1):
        return False
    if (i1 - i0 + 1) * <int64_t>(j1 - j0 + 1) <= FEW_CELLS:
        # So few need no tree.
        for i in range(i0, i1 + 1):
            for m in range(j0, j1 + 1):
                for which in range(2):
                    tri = 2 * (i * (p.field.columns - 1) + m) + which
                    if p.field.mask != NULL and not p.field.mask[tri] & v.mask:
                        continue
                    if heightfield_triangle(p, i, m, which, &t) and _triangle_touched(q, s, &t):
                        return True
        return False
    bvh_walk_near(&w, &p.field.tree, box, _smallest_scale(p))
    while bvh_walk_next(&w, 0.0, &first, &count):
        for k in range(first, first + count):
            field_tile(p.field, p.field.tree.order[k], &i0, &i1, &j0, &j1)
            field_tile_boxes(p.field, i0, i1, j0, j1, boxes)
            for half in range(2):
                bits = bvh_walk_mask(&w, &boxes[half], 0.0)
                while bits:
                    lane = lowest_bit(bits)
                    bits &= bits - 1
                    i = i0 + 2 * half + lane // FIELD_TILE
                    m = j0 + lane % FIELD_TILE
                    if i > i1 or m > j1:
                        continue
                    for which in range(2):
                        tri = 2 * (i * (p.field.columns - 1) + m) + which
                        if p.field.mask != NULL and not p.field.mask[tri] & v.mask:
                            continue
                        if heightfield_triangle(p, i, m, which, &t) and _triangle_touched(q, s, &t):
                            return True
    return False


cdef bint _polytope_touches(const query_shape* q, query_scratch* s, const candidates* c) noexcept nogil:
    cdef int32_t i
    for i in range(c.n_tris):
        if _triangle_touched(q, s, &c.tris[i]):
            return True
    return False


cdef int _touch_item(const query_view* v, const query_shape* q, bint ways_out, query_scratch* s, int32_t layer_index,
                     int32_t item) noexcept nogil:
    cdef const collider* p = &v.layers[layer_index].items[item]
    cdef candidates* c = &s.near
    cdef push_out push
    cdef core_pair pair
    cdef double low
    cdef vec3 point
    cdef int32_t tri
    cdef int status
    push.dir = v3(0.0, 0.0, 0.0)
    push.depth = 0.0
    push.overlapping = False
    if q.kind == ASK_HALFSPACE:
        low = _lowest_of(p, q.normal, v.mask, &point, &tri)
        if low < q.offset:
            # An endless half space has no exit.
            return _note(s, layer_index, item, v3_neg(q.normal), q.offset - low)
        return STATUS_OK
    if q.kind == ASK_POLYTOPE and p.kind == SHAPE_PLANE:
        point = v3_add(vertex_at(&s.work.body, support(&s.work.body, v3_neg(p.a))), q.position)
        low = v3_dot(p.a, point) - p.offset
        return _note(s, layer_index, item, p.a, -low) if low < 0.0 else STATUS_OK
    if q.kind == ASK_POLYTOPE and p.kind <= SHAPE_HULL and p.kind != SHAPE_TRIANGLE:
        _load_item(&s.work.other, p, q.position)
        core_distance(&s.work.body, &s.work.other, s.work.other.radius, &pair)
        if not pair.beyond and pair.distance - s.work.other.radius < 0.0:
            return _note(s, layer_index, item, pair.n, s.work.other.radius - pair.distance)
        return STATUS_OK
    if not ways_out and (p.kind == SHAPE_MESH or p.kind == SHAPE_HEIGHTFIELD):
        if _mesh_touched(v, q, s, p) if p.kind == SHAPE_MESH else _heightfield_touched(v, q, s, p):
            return _note(s, layer_index, item, push.dir, push.depth)
        return STATUS_OK
    status = _gather_surface(c, p, item, layer_index, q.box)
    if status != STATUS_OK or c.n_groups == 0:
        return status
    if ways_out and (q.kind != ASK_ROUND or p.kind == SHAPE_MESH or p.kind == SHAPE_HEIGHTFIELD):
        if q.kind == ASK_ROUND:
            status = _round_from_surface(q, s, p, item, layer_index, &push)
        else:
            status = _polytope_from_surface(q, s, p, item, layer_index, &push)
        if status != STATUS_OK:
            return status
    elif q.kind == ASK_ROUND:
        if ways_out:
            push = group_push(c, &c.groups[0], q.p0, q.p1, q.radius)
        else:
            push.overlapping = group_overlaps(c, &c.groups[0], q.p0, q.p1, q.radius)
    else:
        push.overlapping = _polytope_touches(q, s, c)
    return _note(s, layer_index, item, push.dir, push.depth) if push.overlapping else STATUS_OK


cdef int query_touches(const query_view* v, const query_shape* q, bint ways_out, query_scratch* s) noexcept nogil:
    cdef const broadphase_layer* layer
    cdef bvh_walk w
    cdef int32_t k, i, item, first, count
    cdef int status
    s.n_touches = 0
    s.near.mask = v.mask
    for k in range(QUERY_PARTS):
        layer = v.layers[k]
        if layer == NULL or layer.n == 0:
            continue
        if q.kind == ASK_HALFSPACE:
            for i in range(layer.n):
                if _asked(v, k, i):
                    status = _touch_item(v, q, ways_out, s, k, i)
                    if status != STATUS_OK or (v.first_only and s.n_touches > 0):
                        return status
            continue
        for i in range(layer.n_endless):
            if _asked(v, k, layer.endless[i]):
                status = _touch_item(v, q, ways_out, s, k, layer.endless[i])
                if status != STATUS_OK or (v.first_only and s.n_touches > 0):
                    return status
        if layer.tree.n_items <= FEW_COLLIDERS:
            for i in range(layer.tree.n_items):
                item = layer.tree.order[i]
                if item >= 0 and _asked(v, k, item) and box_overlap(layer.items[item].bounds, q.box):
                    status = _touch_item(v, q, ways_out, s, k, item)
                    if status != STATUS_OK or (v.first_only and s.n_touches > 0):
                        return status
            continue
        bvh_walk_start(&w, &layer.tree, q.box, v3(0.0, 0.0, 0.0))
        while bvh_walk_next(&w, 0.0, &first, &count):
            for i in range(first, first + count):
                item = layer.tree.order[i]
                if _asked(v, k, item) and box_overlap(layer.items[item].bounds, q.box):
                    status = _touch_item(v, q, ways_out, s, k, item)
                    if status != STATUS_OK or (v.first_only and s.n_touches > 0):
                        return status
    return STATUS_OK


# ---------------------------------------------------------------- closest points

cdef struct near_job:
    const query_view* v
    const query_shape* q
    query_scratch* s
    double limit
    query_hit* best
    int32_t layer_index
    int32_t item
    bint has_body       # s.work.body is the query shape
    bint is_point       # sphere
    vec3 p0             # round: ends of the axis, relative to the position
    vec3 p1


cdef void _near_loaded(near_job* j, const triangle* t, int32_t tri) noexcept nogil:
    """The body and s.work.other."""
    cdef polytope_work* w = j.s.work
    cdef core_pair pair
    cdef double radii = w.body.radius + w.other.radius
    cdef query_hit h
    # A pair exactly at the limit must not be lost to rounding: the geometric key decides ties.
    core_distance(&w.body, &w.other, j.limit + radii + 1e-9 * (fabs(j.limit) + radii + w.body.extent), &pair)
    if pair.beyond or pair.distance - radii > j.limit:
        return
    _no_hit(&h)
    h.layer_index = j.layer_index
    h.item = j.item
    h.distance = pair.distance - radii
    h.overlapping = h.distance < 0.0
    h.normal = pair.n
    h.own_point = v3_add(v3_madd(pair.on_a, pair.n, -w.body.radius), j.q.position)
    h.point = v3_add(v3_madd(pair.on_b, pair.n, w.other.radius), j.q.position)
    _offer(j.v, j.best, &h, pair.n, t, tri)
    j.limit = f_min(j.limit, j.best.distance)


cdef inline bint _is_over(vec3 x, vec3 a, vec3 b, vec3 c, vec3 n) noexcept nogil:
    """Whether the projection of x along n is inside the triangle."""
    return (v3_dot(v3_cross(v3_sub(b, a), v3_sub(x, a)), n) >= 0.0
            and v3_dot(v3_cross(v3_sub(c, b), v3_sub(x, b)), n) >= 0.0
            and v3_dot(v3_cross(v3_sub(a, c), v3_sub(x, c)), n) >= 0.0
            and within_ends(x, a, b, c))


cdef inline closest_pair _point_to_triangle(vec3 p, vec3 a, vec3 b, vec3 c, vec3 n, double h) noexcept nogil:
    """segment_triangle for a segment that is a point, at height h above the plane."""
    cdef closest_pair best
    cdef vec3 x
    cdef double d2
    best.s = best.t = 0.0
    best.on_a = p
    if _is_over(p, a, b, c, n):
        best.on_b = v3_madd(p, n, -h)
        best.dist2 = v3_dist2(p, best.on_b)
        return best
    best.on_b = v3_lerp(a, b, point_segment_parameter(p, a, b))
    best.dist2 = v3_dist2(p, best.on_b)
    x = v3_lerp(b, c, point_segment_parameter(p, b, c))
    d2 = v3_dist2(p, x)
    if d2 < best.dist2:
        best.on_b = x
        best.dist2 = d2
    x = v3_lerp(c, a, point_segment_parameter(p, c, a))
    d2 = v3_dist2(p, x)
    if d2 < best.dist2:
        best.on_b = x
        best.dist2 = d2
    return best


cdef inline void _near_pair(near_job* j, const closest_pair* near, double d, double other, vec3 n,
                            const triangle* t, int32_t tri) noexcept nogil:
    """Closest points of two axes, relative to the shape's position, as a result."""
    cdef query_hit h
    cdef double radius = j.q.radius
    h.distance = d - radius - other
    if h.distance > j.limit:
        return
    h.layer_index = j.layer_index
    h.item = j.item
    h.overlapping = h.distance < 0.0
    h.normal = n
    h.own_point = v3_add(v3_madd(near.on_a, n, -radius), j.q.position)
    h.point = v3_add(v3_madd(near.on_b, n, other), j.q.position)
    _offer(j.v, j.best, &h, n, t, tri)
    j.limit = f_min(j.limit, j.best.distance)


cdef inline double _touching_size(const near_job* j, vec3 a) noexcept nogil:
    """Axes nearer than this count as crossing; their exits are those of polytopes."""
    return CROSSING * (v3_max_abs(j.p0) + v3_max_abs(j.p1) + v3_max_abs(a))


cdef void _near_round_triangle(near_job* j, const triangle* t, int32_t tri) noexcept nogil:
    """Round shape and triangle in closed form."""
    cdef vec3 a = v3_sub(t.a, j.q.position), b, c, n = t.n
    cdef double h0 = v3_dot(n, v3_sub(j.p0, a)), h1 = h0, low = fabs(h0), d
    cdef closest_pair near
    if not j.is_point:
        h1 = v3_dot(n, v3_sub(j.p1, a))
        low = f_min(low, fabs(h1)) if (h0 > 0.0) == (h1 > 0.0) else 0.0
    # The plane is farther than the limit, by more than rounding. An axis that crosses the triangle
    # may have a longer way out than its radius.
    if low > _touching_size(j, a) and low - j.q.radius > j.limit + 1e-9 * (fabs(j.limit) + j.q.radius + v3_max_abs(a)):
        return
    b = v3_sub(t.b, j.q.position)
    c = v3_sub(t.c, j.q.position)
    if j.is_point:
        near = _point_to_triangle(j.p0, a, b, c, n, h0)
    else:
        near = segment_triangle(j.p0, j.p1, a, b, c, n)
    d = sqrt(near.dist2)
    if d <= _touching_size(j, a):
        _near_triangle(j, t, tri)
        return
    if d - j.q.radius > j.limit:
        return
    # Close to a face, its normal has more digits than the difference of two points.
    low = v3_dot(n, v3_sub(near.on_a, near.on_b))
    if d < FACE_NEAR and fabs(low) > d * (1.0 - 1e-12):
        n = n if low > 0.0 else v3_neg(n)
    else:
        n = v3_scale(v3_sub(near.on_a, near.on_b), 1.0 / d)
    _near_pair(j, &near, d, 0.0, n, t, tri)


cdef bint _near_round(near_job* j, const collider* p) noexcept nogil:
    """Two round shapes in closed form; False: their axes cross."""
    cdef vec3 a = v3_sub(p.a, j.q.position), b = v3_sub(p.b, j.q.position)
    cdef closest_pair near = segment_segment(j.p0, j.p1, a, b)
    cdef double d = sqrt(near.dist2)
    if d <= _touching_size(j, a):
        return False
    _near_pair(j, &near, d, p.radius, v3_scale(v3_sub(near.on_a, near.on_b), 1.0 / d), NULL, -1)
    return True


cdef void _need_body(near_job* j) noexcept nogil:
    """Load the query shape as a polytope; those that are none are loaded once they need it."""
    if not j.has_body:
        polytope_load(&j.s.work.body, j.q.shape, q_matrix(j.q.rotation), v3(0.0, 0.0, 0.0), True)
        j.has_body = True


cdef void _near_triangle(near_job* j, const triangle* t, int32_t tri) noexcept nogil:
    _need_body(j)
    _load_triangle(&j.s.work.other, t, j.q.position)
    _near_loaded(j, t, tri)


cdef inline void _near_face(near_job* j, const triangle* t, int32_t tri) noexcept nogil:
    if j.q.kind == ASK_ROUND:
        _near_round_triangle(j, t, tri)
    else:
        _near_triangle(j, t, tri)


cdef void _near_mesh(near_job* j, const collider* p) noexcept nogil:
    cdef bvh_walk w
    cdef int32_t first, k, tri
    cdef uint32_t bits
    cdef triangle t
    bvh_walk_near(&w, &p.mesh.tree, local_box(p, j.q.box), _smallest_scale(p))
    while bvh_walk_boxes(&w, p.mesh.blocks, f_max(j.limit, 0.0), &first, &bits):
        while bits:
            k = first + lowest_bit(bits)
            bits &= bits - 1
            tri = p.mesh.source[k]
            if p.mesh.mask != NULL and not p.mesh.mask[tri] & j.v.mask:
                continue
            if mesh_triangle(p, k, &t):
                _near_face(j, &t, tri)


cdef void _near_heightfield(near_job* j, const collider* p) noexcept nogil:
    cdef bvh_walk w
    cdef int32_t first, count, k, tri, i, m, i0, i1, j0, j1
    cdef uint32_t bits
    cdef int which, half, lane
    cdef bvh_node[2] boxes
    cdef triangle t
    bvh_walk_near(&w, &p.field.tree, local_box(p, j.q.box), _smallest_scale(p))
    while bvh_walk_next(&w, f_max(j.limit, 0.0), &first, &count):
        for k in range(first, first + count):
            field_tile(p.field, p.field.tree.order[k], &i0, &i1, &j0, &j1)
            field_tile_boxes(p.field, i0, i1, j0, j1, boxes)
            for half in range(2):
                bits = bvh_walk_mask(&w, &boxes[half], f_max(j.limit, 0.0))
                while bits:
                    lane = lowest_bit(bits)
                    bits &= bits - 1
                    i = i0 + 2 * half + lane // FIELD_TILE
                    m = j0 + lane % FIELD_TILE
                    if i > i1 or m > j1:
                        continue
                    for which in range(2):
                        tri = 2 * (i * (p.field.columns - 1) + m) + which
                        if p.field.mask != NULL and not p.field.mask[tri] & j.v.mask:
                            continue
                        if heightfield_triangle(p, i, m, which, &t):
                            _near_face(j, &t, tri)


cdef void _near_item(near_job* j, const collider* p) noexcept nogil:
    cdef int32_t tri = -1
    cdef triangle t
    cdef query_hit h
    cdef vec3 point
    cdef double low
    cdef const polytope* body = &j.s.work.body
    if j.q.kind == ASK_HALFSPACE:
        low = _lowest_of(p, j.q.normal, j.v.mask, &point, &tri)
        if low >= NO_HIT or low - j.q.offset > j.limit:
            return
        _no_hit(&h)
        h.layer_index = j.layer_index
        h.item = j.item
        h.distance = low - j.q.offset
        h.overlapping = h.distance < 0.0
        h.normal = v3_neg(j.q.normal)
        h.point = point
        h.own_point = v3_madd(point, j.q.normal, -h.distance) if h.distance > -INFINITY else point
        _offer(j.v, j.best, &h, h.normal, NULL, tri)
        j.limit = f_min(j.limit, j.best.distance)
        return
    if p.kind == SHAPE_PLANE:
        _need_body(j)
        point = v3_add(vertex_at(body, support(body, v3_neg(p.a))), j.q.position)
        low = v3_dot(p.a, point) - p.offset - body.radius
        if low > j.limit:
            return
        _no_hit(&h)
        h.layer_index = j.layer_index
        h.item = j.item
        h.distance = low
        h.overlapping = low < 0.0
        h.normal = p.a
        h.own_point = v3_madd(point, p.a, -body.radius)
        h.point = v3_madd(h.own_point, p.a, -low)
        _offer(j.v, j.best, &h, p.a, NULL, -1)
        j.limit = f_min(j.limit, j.best.distance)
        return
    if p.kind == SHAPE_MESH:
        _near_mesh(j, p)
        return
    if p.kind == SHAPE_HEIGHTFIELD:
        _near_heightfield(j, p)
        return
    if p.kind == SHAPE_TRIANGLE:
        t = _own_triangle(p)
        if not v3_is_zero(t.n):
            _near_face(j, &t, -1)
        return
    if j.q.kind == ASK_ROUND and (p.kind == SHAPE_SPHERE or p.kind == SHAPE_CAPSULE) and _near_round(j, p):
        return
    _need_body(j)
    _load_item(&j.s.work.other, p, j.q.position)
    _near_loaded(j, NULL, -1)


cdef int query_closest(const query_view* v, const query_shape* q, double max_distance, query_scratch* s,
                       query_hit* hit) noexcept nogil:
    cdef near_job j
    cdef const broadphase_layer* layer
    cdef bvh_walk w
    cdef int32_t k, i, first, count
    _no_hit(hit)
    if _need_work(s) != STATUS_OK:
        return STATUS_NO_MEMORY
    j.has_body = q.kind != ASK_ROUND
    j.is_point = False
    if q.kind == ASK_ROUND:
        j.is_point = q.shape.kind == SHAPE_SPHERE
        j.p0 = q_rotate(q.rotation, q.shape.a)
        j.p1 = q_rotate(q.rotation, q.shape.b)
    j.v = v
    j.q = q
    j.s = s
    j.limit = max_distance
    j.best = hit
    for k in range(QUERY_PARTS):
        layer = v.layers[k]
        if layer == NULL or layer.n == 0:
            continue
        j.layer_index = k
        if q.kind == ASK_HALFSPACE:
            for i in range(layer.n):
                j.item = i
                if _asked(v, k, i):
                    _near_item(&j, &layer.items[i])
            continue
        for i in range(layer.n_endless):
            j.item = layer.endless[i]
            if _asked(v, k, j.item):
                _near_item(&j, &layer.items[j.item])
        if layer.tree.n_items <= FEW_COLLIDERS:
            for i in range(layer.tree.n_items):
                j.item = layer.tree.order[i]
                if j.item >= 0 and _asked(v, k, j.item):
                    _near_item(&j, &layer.items[j.item])
            continue
        bvh_walk_near(&w, &layer.tree, q.box, 1.0)
        while bvh_walk_next(&w, f_max(j.limit, 0.0), &first, &count):
            for i in range(first, first + count):
                j.item = layer.tree.order[i]
                if _asked(v, k, j.item):
                    _near_item(&j, &layer.items[j.item])
    return STATUS_OK


# ---------------------------------------------------------------- objects for a filter

cdef void query_mark(const query_view* v, const query_shape* q, vec3 dir, double limit, bint near,
                     uint8_t** marks) noexcept nogil:
    cdef const broadphase_layer* layer
    cdef bvh_walk w
    cdef int32_t k, i, item, first, count
    for k in range(QUERY_PARTS):
        layer = v.layers[k]
        if layer == NULL or layer.n == 0:
            continue
        if q.kind == ASK_HALFSPACE:
            for i in range(layer.n):
                if _asked(v, k, i):
                    marks[k][i] = 1
            continue
        for i in range(layer.n_endless):
            if _asked(v, k, layer.endless[i]):
                marks[k][layer.endless[i]] = 1
        if near:
            bvh_walk_near(&w, &layer.tree, q.box, 1.0)
        else:
            bvh_walk_start(&w, &layer.tree, q.box, dir)
        while bvh_walk_next(&w, limit, &first, &count):
            for i in range(first, first + count):
                item = layer.tree.order[i]
                if _asked(v, k, item):
                    marks[k][item] = 1
