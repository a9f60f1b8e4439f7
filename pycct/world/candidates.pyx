# cython: language_level=3
"""Candidates and the nearest hit among them. See the header."""
from libc.math cimport fabs
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from pycct.spatial.bvh cimport box32, box32_around, bvh_collect
from pycct.shapes.heightfield_cells cimport field_cells, field_data, field_triangle
from pycct.geometry.closest cimport point_segment, segment_segment, triangle_normal
from pycct.geometry.aabb4 cimport (
    BLOCK,
    LANES,
    STRIDE,
    aabb4_box,
    aabb4_floats,
    aabb4_overlap_mask,
    aabb4_place,
    lowest_bit,
)
from pycct.geometry.open_edges cimport cast_open_edges, open_edge_time
from pycct.geometry.overlap cimport (
    overlaps_triangles,
    push_from_capsule,
    push_from_plane,
    push_from_polytope,
    push_from_sphere,
    push_from_triangles,
)
from pycct.geometry.sweep cimport (
    capsule_box,
    capsule_cast_set,
    cast_capsule,
    cast_plane,
    cast_sphere,
    cast_selected,
    hits_same_face,
    is_unique_hit,
    aabb4_in_reach,
    aabb4_path,
    latest_candidate,
    overlaps_at_start,
    triangle_aid,
    triangle_aid_of,
    triangle_order,
    triangles_in_reach,
)
from pycct.runtime.growth cimport one_more
from pycct.runtime.prefetch cimport prefetch
from pycct.geometry.box_faces cimport BOX_FACES
from pycct.geometry.tolerances cimport DEPTH_TIE, is_below_limit
from pycct.geometry.types cimport (
    BODY_KINEMATIC,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HEIGHTFIELD,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    STATUS_NO_MEMORY,
    STATUS_OK,
)
from pycct.geometry.vec cimport (
    box_centre,
    box_grow,
    box_half,
    box_of,
    box_overlap,
    box_union,
    f_max,
    f_min,
    m3_mul,
    m3_tmul,
    q_rotate,
    v3,
    v3_add,
    v3_dist2,
    v3_dot,
    v3_is_zero,
    v3_lex,
    v3_load,
    v3_max,
    v3_min,
    v3_mul,
    v3_scale,
    v3_sub,
)

# A centre this share of the radius behind a triangle is behind it, whatever the rounding.
cdef double SURELY_BEHIND = 1e-6

# Bits of the edges of a triangle without an open edge.
cdef enum:
    ALL_SHARED = 7

# With more candidates than this, a prefetch of all of them does not pay.
cdef enum:
    FETCHED = 64


cdef void candidates_init(candidates* c) noexcept nogil:
    c.groups = NULL
    c.block = NULL
    c.tris = NULL
    c.source = NULL
    c.spot = NULL
    c.aids = NULL
    c.boxes = NULL
    c.picked = NULL
    c.touched = NULL
    c.depths = NULL
    c.places = NULL
    c.items = NULL
    c.n_groups = c.n_one_sided = c.capacity_groups = 0
    c.n_tris = c.capacity_tris = c.capacity_places = c.capacity_items = 0
    c.tested = 0
    c.mask = 0xFFFFFFFF
    c.hints[0] = c.hints[1] = c.hints[2] = c.hints[3] = -1
    c.turn = c.n_unseen = 0
    c.filter = NULL


cdef void candidates_free(candidates* c) noexcept nogil:
    free(c.groups)
    free(c.block)
    free(c.places)
    free(c.items)
    candidates_init(c)


cdef void candidates_cut(candidates* c, int32_t n_groups, int32_t n_tris) noexcept nogil:
    c.n_groups = n_groups
    if c.n_one_sided > n_groups:
        c.n_one_sided = n_groups
    c.n_tris = n_tris
    if n_tris == 0:
        c.hints[0] = c.hints[1] = c.hints[2] = c.hints[3] = -1


cdef int _reserve_groups(candidates* c, int32_t more) noexcept nogil:
    cdef int32_t capacity
    cdef void* p
    if c.n_groups + more <= c.capacity_groups:
        return STATUS_OK
    capacity = 2 * c.capacity_groups + more + 8
    p = realloc(c.groups, <size_t>capacity * sizeof(candidate_group))
    if p == NULL:
        return STATUS_NO_MEMORY
    c.groups = <candidate_group*>p
    c.capacity_groups = capacity
    return STATUS_OK


cdef inline void* _carve(char** at, size_t size, const void* old, size_t n_bytes) noexcept nogil:
    """Return the next ``size`` bytes of a block, starting with a copy of the old ones."""
    cdef void* p = at[0]
    if n_bytes > 0:
        memcpy(p, old, n_bytes)
    at[0] += size
    return p


cdef int candidates_reserve(candidates* c, int32_t more) noexcept nogil:
    cdef size_t capacity, n = <size_t>c.n_tris
    cdef char* at
    cdef void* block
    if c.n_tris + more <= c.capacity_tris:
        return STATUS_OK
    # In whole strides, so that every part of the block is aligned.
    capacity = (<size_t>c.capacity_tris + n + <size_t>more + STRIDE - 1) // STRIDE * STRIDE
    # One block for all, with the first data of casts in front: fewer pages.
    block = malloc(aabb4_floats(<int32_t>capacity) * sizeof(float) + (capacity + 2) * sizeof(toi_candidate)
                   + capacity * (sizeof(triangle) + sizeof(triangle_aid) + 3 * sizeof(int32_t) + sizeof(double)))
    if block == NULL:
        return STATUS_NO_MEMORY
    at = <char*>block
    c.boxes = <float*>_carve(&at, aabb4_floats(<int32_t>capacity) * sizeof(float), c.boxes,
                             aabb4_floats(c.n_tris) * sizeof(float))
    c.aids = <triangle_aid*>_carve(&at, capacity * sizeof(triangle_aid), c.aids, n * sizeof(triangle_aid))
    c.source = <int32_t*>_carve(&at, capacity * sizeof(int32_t), c.source, n * sizeof(int32_t))
    c.tris = <triangle*>_carve(&at, capacity * sizeof(triangle), c.tris, n * sizeof(triangle))
    c.touched = <toi_candidate*>_carve(&at, (capacity + 2) * sizeof(toi_candidate), NULL, 0)
    c.picked = <int32_t*>_carve(&at, capacity * sizeof(int32_t), NULL, 0)
    c.spot = <int32_t*>_carve(&at, capacity * sizeof(int32_t), c.spot, n * sizeof(int32_t))
    c.depths = <double*>_carve(&at, capacity * sizeof(double), NULL, 0)
    free(c.block)
    c.block = block
    c.capacity_tris = <int32_t>capacity
    return STATUS_OK


cdef int _reserve_items(candidates* c, int32_t n) noexcept nogil:
    cdef void* p
    if n <= c.capacity_items:
        return STATUS_OK
    p = realloc(c.items, <size_t>(2 * <int64_t>n) * sizeof(int32_t))
    if p == NULL:
        return STATUS_NO_MEMORY
    c.items = <int32_t*>p
    c.capacity_items = 2 * n
    return STATUS_OK


cdef int32_t _collect(candidates* c, const bvh* tree, const box32* box) noexcept nogil:
    """Fill c.places; the number found, or a negative status."""
    cdef int32_t found = bvh_collect(tree, box, c.places, c.capacity_places)
    cdef void* p
    if found > c.capacity_places:
        p = realloc(c.places, <size_t>(2 * <int64_t>found) * sizeof(int32_t))
        if p == NULL:
            return STATUS_NO_MEMORY
        c.places = <int32_t*>p
        c.capacity_places = 2 * found
        found = bvh_collect(tree, box, c.places, c.capacity_places)
    return found


cdef vec3 place_point(const collider* p, vec3 local) noexcept nogil:
    """Transform a point from the shape's frame to the world; every vertex uses this function."""
    if p.plain:
        return v3_add(local, p.position)
    return v3_add(m3_mul(p.matrix, v3_mul(local, p.scale)), p.position)


cdef vec3 unplace_point(const collider* p, vec3 world) noexcept nogil:
    cdef vec3 v = v3_sub(world, p.position)
    if p.plain:
        return v
    v = m3_tmul(p.matrix, v)
    return v3(v.x / p.scale.x, v.y / p.scale.y, v.z / p.scale.z)


cdef aabb capsule_bounds(vec3 p0, vec3 p1, double radius) noexcept nogil:
    return box_grow(box_of(v3_min(p0, p1), v3_max(p0, p1)), radius)


cdef aabb local_box(const collider* p, aabb box) noexcept nogil:
    """A box in the shape's frame around a box in the world."""
    cdef vec3 centre, half, h
    if p.plain:
        return box_of(v3_sub(box.lo, p.position), v3_sub(box.hi, p.position))
    centre = unplace_point(p, box_centre(box))
    h = box_half(box)
    half = v3(
        (fabs(p.matrix.r0.x) * h.x + fabs(p.matrix.r1.x) * h.y + fabs(p.matrix.r2.x) * h.z) / fabs(p.scale.x),
        (fabs(p.matrix.r0.y) * h.x + fabs(p.matrix.r1.y) * h.y + fabs(p.matrix.r2.y) * h.z) / fabs(p.scale.y),
        (fabs(p.matrix.r0.z) * h.x + fabs(p.matrix.r1.z) * h.y + fabs(p.matrix.r2.z) * h.z) / fabs(p.scale.z))
    # Rounding of the transformation and its inverse.
    half = v3(half.x + 1e-9 * (fabs(centre.x) + half.x), half.y + 1e-9 * (fabs(centre.y) + half.y),
              half.z + 1e-9 * (fabs(centre.z) + half.z))
    return box_of(v3_sub(centre, half), v3_add(centre, half))


cdef inline void _prepare_last(candidates* c) noexcept nogil:
    """Compute the box of the next triangle, and the data that accelerates casts."""
    cdef const triangle* t = &c.tris[c.n_tris]
    cdef float* b = aabb4_place(c.boxes, c.n_tris)
    c.aids[c.n_tris] = triangle_aid_of(t)
    if c.n_tris % STRIDE == 0:
        # The rest of the stride is tested too, with no effect.
        memset(b, 0, STRIDE // LANES * BLOCK * sizeof(float))
    b[0] = float_below(f_min(t.a.x, f_min(t.b.x, t.c.x)))
    b[LANES] = float_below(f_min(t.a.y, f_min(t.b.y, t.c.y)))
    b[2 * LANES] = float_below(f_min(t.a.z, f_min(t.b.z, t.c.z)))
    b[3 * LANES] = float_above(f_max(t.a.x, f_max(t.b.x, t.c.x)))
    b[4 * LANES] = float_above(f_max(t.a.y, f_max(t.b.y, t.c.y)))
    b[5 * LANES] = float_above(f_max(t.a.z, f_max(t.b.z, t.c.z)))


cdef inline void _store(candidates* c, vec3 a, vec3 b, vec3 d, vec3 n, int32_t source) noexcept nogil:
    cdef triangle* t = &c.tris[c.n_tris]
    t.a = a
    t.b = b
    t.c = d
    t.n = n
    t.d = v3_dot(n, a)
    c.source[c.n_tris] = source
    _prepare_last(c)
    c.n_tris += 1


cdef inline bint _near(vec3 a, vec3 b, vec3 c, aabb box) noexcept nogil:
    return box_overlap(box_of(v3_min(a, v3_min(b, c)), v3_max(a, v3_max(b, c))), box)


cdef inline void _store_if_near(candidates* c, vec3 a, vec3 b, vec3 d, aabb box, int32_t source) noexcept nogil:
    cdef vec3 n
    if not _near(a, b, d, box):
        return
    n = triangle_normal(a, b, d)
    if not v3_is_zero(n):
        c.spot[c.n_tris] = -1
        _store(c, a, b, d, n, source)


cdef void _store_walls(candidates* c, vec3 a, vec3 b, vec3 d, aabb box, const wall_rule* walls,
                       int first) noexcept nogil:
    """A triangle's edges, extruded upwards, facing outwards (MOVE has none; RULES 2, RULES_2 7).

    ``first`` is the corner that the user lists first: the wall on the edge from there has the other
    diagonal.
    """
    cdef vec3[3] v
    cdef vec3 rise = v3_scale(walls.up, walls.height)
    cdef vec3 p, q
    cdef int i
    v[0], v[1], v[2] = a, b, d
    for i in range(3):
        p = v[i]
        q = v[(i + 1) % 3]
        if i == first:
            _store_if_near(c, p, q, v3_add(p, rise), box, -1)
            _store_if_near(c, v3_add(p, rise), q, v3_add(q, rise), box, -1)
        else:
            _store_if_near(c, p, q, v3_add(q, rise), box, -1)
            _store_if_near(c, p, v3_add(q, rise), v3_add(p, rise), box, -1)


cdef inline bint _face_of(const collider* p, vec3 a, vec3 b, vec3 c, vec3 n, triangle* t) noexcept nogil:
    """Corners and normal in the shape's frame to a triangle in the world."""
    t.a = place_point(p, a)
    t.b = place_point(p, c if p.mirrored else b)
    t.c = place_point(p, b if p.mirrored else c)
    t.n = n if p.plain else triangle_normal(t.a, t.b, t.c)
    t.d = v3_dot(t.n, t.a)
    return not v3_is_zero(t.n)


cdef bint mesh_triangle(const collider* p, Py_ssize_t k, triangle* t) noexcept nogil:
    cdef const mesh_data* m = p.mesh
    cdef const int32_t* v = m.triangles + 3 * k
    return _face_of(p, v3_load(m.vertices + 3 * <Py_ssize_t>v[0]), v3_load(m.vertices + 3 * <Py_ssize_t>v[1]),
                    v3_load(m.vertices + 3 * <Py_ssize_t>v[2]), v3_load(m.normals + 3 * k), t)


cdef bint heightfield_triangle(const collider* p, int32_t i, int32_t j, int which, triangle* t) noexcept nogil:
    cdef vec3 a, b, c
    if not field_triangle(p.field, i, j, which, &a, &b, &c):
        return False
    return _face_of(p, a, b, c, triangle_normal(a, b, c), t)


cdef bint triangle_data(const collider* p, int32_t tri, int64_t* data) noexcept nogil:
    if tri >= 0 and p.kind == SHAPE_MESH and p.mesh.data != NULL:
        data[0] = p.mesh.data[tri]
        return True
    if tri >= 0 and p.kind == SHAPE_HEIGHTFIELD and p.field.data != NULL:
        data[0] = p.field.data[tri]
        return True
    return False


cdef uint32_t triangle_mask(const collider* p, int32_t tri) noexcept nogil:
    if tri >= 0 and p.kind == SHAPE_MESH and p.mesh.mask != NULL:
        return p.mesh.mask[tri]
    if tri >= 0 and p.kind == SHAPE_HEIGHTFIELD and p.field.mask != NULL:
        return p.field.mask[tri]
    return 0xFFFFFFFF


cdef aabb _reach(aabb box, const wall_rule* walls) noexcept nogil:
    """The box, extended downwards by the height of walls that may reach into it."""
    cdef vec3 drop
    if walls == NULL or walls.height <= 0.0:
        return box
    drop = v3_scale(walls.up, -walls.height)
    return box_union(box, box_of(v3_add(box.lo, drop), v3_add(box.hi, drop)))


cdef inline void _add_surface(candidates* c, const triangle* t, bint two_sided, aabb box, aabb reach,
                              const wall_rule* walls, int first, int32_t source) noexcept nogil:
    """One triangle of a mesh or heightfield, or the walls that replace it.

    ``first`` is the corner that the user lists first.
    """
    cdef double rise
    if not _near(t.a, t.b, t.c, reach):
        return
    if walls != NULL and walls.height > 0.0:
        rise = v3_dot(t.n, walls.up)
        if two_sided and rise < 0.0:
            if is_below_limit(-rise, walls.slope_limit):
                _store_walls(c, t.a, t.c, t.b, box, walls, (3 - first) % 3)
                return
            if _near(t.a, t.b, t.c, box):
                _store(c, t.a, t.c, t.b, v3_scale(t.n, -1.0), source)
            return
        if rise >= 0.0 and is_below_limit(rise, walls.slope_limit):
            _store_walls(c, t.a, t.b, t.c, box, walls, first)
            return
        if not _near(t.a, t.b, t.c, box):
            return
    _store(c, t.a, t.b, t.c, t.n, source)


cdef inline int _given_first(const collider* p, int32_t place) noexcept nogil:
    """The corner of mesh_triangle that the user lists first, 0 to 2.

    A mesh stores its triangles with the smallest corner first.
    """
    cdef const int32_t* stored = p.mesh.triangles + 3 * <Py_ssize_t>place
    cdef int32_t first = p.mesh.given[3 * <Py_ssize_t>p.mesh.source[place]]
    if first == stored[1]:
        return 2 if p.mirrored else 1
    if first == stored[2]:
        return 1 if p.mirrored else 2
    return 0


cdef int _add_mesh(candidates* c, const collider* p, aabb box, const wall_rule* walls) noexcept nogil:
    cdef const mesh_data* m = p.mesh
    cdef box32 local
    cdef int32_t found, i
    cdef triangle t
    cdef aabb reach = _reach(box, walls)
    cdef int status
    local = box32_around(local_box(p, reach))
    found = _collect(c, &m.tree, &local)
    if found < 0:
        return found
    status = candidates_reserve(c, 6 * found if walls != NULL and walls.height > 0.0 else found)
    if status != STATUS_OK:
        return status
    for i in range(found):
        if m.mask != NULL and not m.mask[m.source[c.places[i]]] & c.mask:
            continue
        if mesh_triangle(p, c.places[i], &t):
            c.spot[c.n_tris] = c.places[i]
            _add_surface(c, &t, m.two_sided, box, reach, walls, _given_first(p, c.places[i]), m.source[c.places[i]])
    return STATUS_OK


cdef int _add_heightfield(candidates* c, const collider* p, aabb box, const wall_rule* walls) noexcept nogil:
    cdef const field_data* f = p.field
    cdef int32_t i, j, i0, i1, j0, j1, tri
    cdef int which, status
    cdef triangle t
    cdef aabb reach = _reach(box, walls)
    if not field_cells(f, local_box(p, reach), &i0, &i1, &j0, &j1):
        return STATUS_OK
    for i in range(i0, i1 + 1):
        status = candidates_reserve(c, (12 if walls != NULL and walls.height > 0.0 else 2) * (j1 - j0 + 1))
        if status != STATUS_OK:
            return status
        for j in range(j0, j1 + 1):
            for which in range(2):
                tri = 2 * (i * (f.columns - 1) + j) + which
                if f.mask != NULL and not f.mask[tri] & c.mask:
                    continue
                if heightfield_triangle(p, i, j, which, &t):
                    c.spot[c.n_tris] = tri
                    _add_surface(c, &t, f.two_sided, box, reach, walls, 0, tri)
    return STATUS_OK


cdef int _add_box(candidates* c, const collider* p) noexcept nogil:
    cdef vec3[8] corner
    cdef int i
    cdef int status = candidates_reserve(c, 12)
    if status != STATUS_OK:
        return status
    for i in range(8):
        corner[i] = place_point(p, v3(p.a.x if i & 1 else -p.a.x, p.a.y if i & 2 else -p.a.y,
                                      p.a.z if i & 4 else -p.a.z))
    for i in range(6):
        _store_face(c, p.mirrored, corner[BOX_FACES[i][0]], corner[BOX_FACES[i][1]], corner[BOX_FACES[i][2]])
        _store_face(c, p.mirrored, corner[BOX_FACES[i][0]], corner[BOX_FACES[i][2]], corner[BOX_FACES[i][3]])
    return STATUS_OK


cdef inline void _store_face(candidates* c, bint mirrored, vec3 a, vec3 b, vec3 d) noexcept nogil:
    cdef vec3 n
    if mirrored:
        n = triangle_normal(a, d, b)
        if not v3_is_zero(n):
            _store(c, a, d, b, n, -1)
    else:
        n = triangle_normal(a, b, d)
        if not v3_is_zero(n):
            _store(c, a, b, d, n, -1)


cdef inline vec3 _hull_vertex(const collider* p, int32_t i) noexcept nogil:
    return place_point(p, v3_mul(v3_load(p.hull.vertices + 3 * i), p.hull_scale))


cdef bint hull_has_faces(const collider* p) noexcept nogil:
    cdef const int32_t* t
    cdef int32_t i
    for i in range(p.hull.n_triangles):
        t = p.hull.triangles + 3 * i
        if not v3_is_zero(triangle_normal(_hull_vertex(p, t[0]), _hull_vertex(p, t[1]), _hull_vertex(p, t[2]))):
            return True
    return False


cdef vec3 _farthest_vertex(const collider* p, vec3 origin) noexcept nogil:
    """The vertex of a placed hull that is farthest from a point; of equals the first by its coordinates."""
    cdef vec3 v, best = _hull_vertex(p, 0)
    cdef double d, best_d = v3_dist2(best, origin)
    cdef int32_t i
    for i in range(1, p.hull.n_vertices):
        v = _hull_vertex(p, i)
        d = v3_dist2(v, origin)
        if d > best_d or (d == best_d and v3_lex(v, best) < 0):
            best = v
            best_d = d
    return best


cdef void hull_ends(const collider* p, vec3* a, vec3* b) noexcept nogil:
    a[0] = _farthest_vertex(p, _hull_vertex(p, 0))
    b[0] = _farthest_vertex(p, a[0])


cdef int _add_hull(candidates* c, const collider* p) noexcept nogil:
    cdef int32_t i
    cdef const int32_t* t
    cdef int status = candidates_reserve(c, p.hull.n_triangles)
    if status != STATUS_OK:
        return status
    for i in range(p.hull.n_triangles):
        t = p.hull.triangles + 3 * i
        _store_face(c, p.mirrored, _hull_vertex(p, t[0]), _hull_vertex(p, t[1]), _hull_vertex(p, t[2]))
    return STATUS_OK


cdef inline candidate_group* _open_group(candidates* c, const collider* p, int32_t item,
                                         int32_t layer_index) noexcept nogil:
    """Set up the next group except for its triangles; there must be capacity for it."""
    cdef candidate_group* g = &c.groups[c.n_groups]
    g.id = p.id
    g.item = item
    g.layer_index = layer_index
    g.owner = OWNER_OBSTACLE if p.obstacle else OWNER_ACTOR
    g.behavior = p.behavior
    g.body = p.body
    g.kind = GROUP_TRIANGLES
    g.closed = p.kind == SHAPE_BOX or p.kind == SHAPE_HULL
    g.flat = p.kind == SHAPE_HULL and is_flat_hull(p)
    g.two_sided = False
    g.shared = NULL
    g.first = c.n_tris
    g.count = 0
    g.q0 = p.a
    g.q1 = p.b
    g.radius = p.radius
    if p.kind == SHAPE_MESH:
        g.two_sided = p.mesh.two_sided
        # A mask hides neighbours, and a transformation may leave them without area.
        if p.plain and p.mesh.mask == NULL:
            g.shared = p.mesh.shared
    elif p.kind == SHAPE_HEIGHTFIELD:
        g.two_sided = p.field.two_sided
    elif p.kind == SHAPE_SPHERE:
        g.kind = GROUP_SPHERE
        g.q0 = g.q1 = p.position
    elif p.kind == SHAPE_CAPSULE:
        g.kind = GROUP_CAPSULE
    elif p.kind == SHAPE_PLANE:
        g.kind = GROUP_PLANE
        g.radius = p.offset
    elif p.obstacle and p.kind == SHAPE_BOX:
        g.kind = GROUP_BOX
        g.q0 = p.position
        g.q1 = v3(p.a.x * fabs(p.scale.x), p.a.y * fabs(p.scale.y), p.a.z * fabs(p.scale.z))
        g.rotation = p.rotation
    return g


cdef int candidates_add(candidates* c, const collider* p, int32_t item, int32_t layer_index, aabb box,
                        const wall_rule* walls) noexcept nogil:
    cdef candidate_group* g
    cdef int status = _reserve_groups(c, 1)
    if status != STATUS_OK:
        return status
    g = _open_group(c, p, item, layer_index)
    if walls != NULL and walls.height > 0.0:
        # They replace triangles.
        g.shared = NULL
    if g.kind == GROUP_TRIANGLES:
        if p.kind == SHAPE_MESH:
            status = _add_mesh(c, p, box, walls)
        elif p.kind == SHAPE_HEIGHTFIELD:
            status = _add_heightfield(c, p, box, walls)
        elif p.kind == SHAPE_BOX:
            status = _add_box(c, p)
        elif p.kind == SHAPE_HULL:
            status = _add_hull(c, p)
        else:
            status = candidates_reserve(c, 1)
            if status == STATUS_OK:
                _store_face(c, p.mirrored, place_point(p, p.a), place_point(p, p.b), place_point(p, p.c))
        if status != STATUS_OK:
            c.n_tris = g.first
            return status
        g.count = c.n_tris - g.first
        if g.count == 0:
            return STATUS_OK
    c.n_groups += 1
    candidates_count_one_sided(c)
    return STATUS_OK


cdef inline bint _has_spots(const collider* p) noexcept nogil:
    return p.kind == SHAPE_MESH or p.kind == SHAPE_HEIGHTFIELD


cdef inline int32_t _group_of(const candidates* c, int32_t tri) noexcept nogil:
    cdef int32_t i = 0
    while tri >= c.groups[i].first + c.groups[i].count:
        i += 1
    return i


cdef hinted candidates_hinted(const candidates* c, const broadphase_layer* layer, int32_t n_tris) noexcept nogil:
    cdef hinted what
    cdef int32_t k, item
    for k in range(4):
        what.item[k] = what.spot[k] = -1
        if 0 <= c.hints[k] < n_tris:
            item = c.groups[_group_of(c, c.hints[k])].item
            if _has_spots(&layer.items[item]) and c.spot[c.hints[k]] >= 0:
                what.item[k] = item
                what.spot[k] = c.spot[c.hints[k]]
    return what


cdef void candidates_hint(candidates* c, const broadphase_layer* layer, const hinted* what) noexcept nogil:
    cdef const candidate_group* g
    cdef int32_t i, j, k
    for i in range(c.n_groups):
        g = &c.groups[i]
        for k in range(4):
            if what.item[k] == g.item and _has_spots(&layer.items[g.item]):
                for j in range(g.first, g.first + g.count):
                    if c.spot[j] == what.spot[k]:
                        c.hints[k] = j
                        break


cdef int candidates_keep(const candidates* c, const broadphase_layer* layer,
                         compact_candidates* compact) noexcept nogil:
    cdef const candidate_group* g
    cdef compact_group* k
    cdef int32_t i, n = 0, need
    cdef void* p
    compact.whole = False
    for i in range(c.n_groups):
        if _has_spots(&layer.items[c.groups[i].item]):
            n += c.groups[i].count
    need = 2 * c.n_groups + n
    if need > compact.capacity:
        p = realloc(compact.block, <size_t>need * sizeof(int32_t))
        if p == NULL:
            return STATUS_NO_MEMORY
        compact.block = <int32_t*>p
        compact.capacity = need
    compact.n_groups = c.n_groups
    compact.n_spots = n
    n = 2 * c.n_groups
    for i in range(c.n_groups):
        g = &c.groups[i]
        k = <compact_group*>compact.block + i
        k.item = g.item
        k.count = -1
        if _has_spots(&layer.items[g.item]):
            k.count = g.count
            memcpy(compact.block + n, c.spot + g.first, <size_t>g.count * sizeof(int32_t))
            n += g.count
    compact.whole = True
    return STATUS_OK


cdef int candidates_expand(candidates* c, const broadphase_layer* layer, int32_t layer_index,
                           const compact_candidates* compact) noexcept nogil:
    cdef const int32_t* spot = compact.block + 2 * compact.n_groups
    cdef const compact_group* k
    cdef const collider* p
    cdef candidate_group* g
    cdef triangle* t
    cdef int32_t i, j, cell
    cdef int status = _reserve_groups(c, compact.n_groups)
    if status == STATUS_OK:
        status = candidates_reserve(c, compact.n_spots)
    if status != STATUS_OK:
        return status
    for i in range(compact.n_groups):
        k = <const compact_group*>compact.block + i
        p = &layer.items[k.item]
        if k.count < 0:
            status = candidates_add(c, p, k.item, layer_index, p.bounds, NULL)
            if status != STATUS_OK:
                return status
            continue
        # Items added since then may have used up the capacity.
        status = candidates_reserve(c, k.count)
        if status != STATUS_OK:
            return status
        g = _open_group(c, p, k.item, layer_index)
        for j in range(k.count):
            t = &c.tris[c.n_tris]
            if p.kind == SHAPE_MESH:
                mesh_triangle(p, spot[j], t)
                c.source[c.n_tris] = p.mesh.source[spot[j]]
            else:
                cell = spot[j] >> 1
                heightfield_triangle(p, cell // (p.field.columns - 1), cell % (p.field.columns - 1), spot[j] & 1, t)
                c.source[c.n_tris] = spot[j]
            c.spot[c.n_tris] = spot[j]
            _prepare_last(c)
            c.n_tris += 1
        spot += k.count
        g.count = k.count
        c.n_groups += 1
        candidates_count_one_sided(c)
    return STATUS_OK


cdef void compact_prefetch(const compact_candidates* compact, const broadphase_layer* layer,
                           bint corners) noexcept nogil:
    cdef const int32_t* spot = compact.block + 2 * compact.n_groups
    cdef const int32_t* v
    cdef const compact_group* k
    cdef const mesh_data* m
    cdef int32_t i, j
    if not compact.whole:
        return
    for i in range(compact.n_groups):
        k = <const compact_group*>compact.block + i
        if k.count < 0:
            continue
        if layer.items[k.item].kind == SHAPE_MESH:
            m = layer.items[k.item].mesh
            for j in range(k.count):
                v = m.triangles + 3 * <Py_ssize_t>spot[j]
                if corners:
                    prefetch(m.vertices + 3 * <Py_ssize_t>v[0], 3 * sizeof(double))
                    prefetch(m.vertices + 3 * <Py_ssize_t>v[1], 3 * sizeof(double))
                    prefetch(m.vertices + 3 * <Py_ssize_t>v[2], 3 * sizeof(double))
                else:
                    prefetch(v, 3 * sizeof(int32_t))
                    prefetch(m.normals + 3 * <Py_ssize_t>spot[j], 3 * sizeof(double))
                    prefetch(m.source + spot[j], sizeof(int32_t))
        spot += k.count


cdef void compact_free(compact_candidates* compact) noexcept nogil:
    free(compact.block)
    memset(compact, 0, sizeof(compact_candidates))


cdef int candidates_add_character(candidates* c, const character* who, int32_t index) noexcept nogil:
    cdef candidate_group* g
    cdef int status = _reserve_groups(c, 1)
    if status != STATUS_OK:
        return status
    g = &c.groups[c.n_groups]
    g.id = who.id
    g.item = index
    g.layer_index = 2
    g.owner = OWNER_CONTROLLER
    g.behavior = who.behavior
    g.kind = GROUP_CAPSULE
    g.body = BODY_KINEMATIC
    g.closed = False
    g.flat = False
    g.two_sided = False
    g.first = c.n_tris
    g.count = 0
    g.q0 = who.p0
    g.q1 = who.p1
    g.radius = who.radius
    c.n_groups += 1
    candidates_count_one_sided(c)
    return STATUS_OK


cdef bint book_answer(callback_answers* book, int32_t question, int32_t owner, int64_t id,
                      uint32_t* value) noexcept nogil:
    cdef int32_t i
    cdef answer* a
    for i in range(book.n):
        a = &book.answers[i]
        if a.id == id and a.owner == owner and a.question == question:
            value[0] = a.value
            return True
    book.needs_answer = True
    book.pending.question = question
    book.pending.owner = owner
    book.pending.id = id
    return False


cdef int book_add(callback_answers* book, const answer* a) noexcept nogil:
    cdef void* p = one_more(book.answers, sizeof(answer), book.n, &book.capacity, 16)
    if p == NULL:
        return STATUS_NO_MEMORY
    book.answers = <answer*>p
    book.answers[book.n] = a[0]
    book.n += 1
    book.needs_answer = False
    return STATUS_OK


cdef void book_free(callback_answers* book) noexcept nogil:
    free(book.answers)
    book.answers = NULL
    book.n = book.capacity = 0
    book.needs_answer = False


cdef void candidates_prefetch(const candidates* c) noexcept nogil:
    if c.n_groups > 0:
        prefetch(c.groups, <size_t>c.n_groups * sizeof(candidate_group))
    if 0 < c.n_tris <= FETCHED:
        prefetch(c.boxes, aabb4_floats(c.n_tris) * sizeof(float))
        prefetch(c.tris, <size_t>c.n_tris * sizeof(triangle))
        prefetch(c.aids, <size_t>c.n_tris * sizeof(triangle_aid))
        prefetch(c.source, <size_t>c.n_tris * sizeof(int32_t))
        prefetch(c.touched, 3 * sizeof(toi_candidate))


cdef inline bint _may_meet(candidates* c, const candidate_group* g) noexcept nogil:
    """Whether the user's filter allows the group; also False if the filter must run first."""
    cdef uint32_t value
    if c.filter == NULL:
        return True
    return book_answer(c.filter, ASK_FILTER, g.owner, g.id, &value) and value != 0


cdef bint group_may_be_met(candidates* c, const candidate_group* g) noexcept nogil:
    return _may_meet(c, g)


cdef int candidates_gather(candidates* c, const broadphase_layer* layer, int32_t layer_index, aabb box, uint32_t mask,
                           const wall_rule* walls) noexcept nogil:
    cdef box32 query
    cdef int32_t found, i, k
    cdef const collider* p
    cdef aabb reach = _reach(box, walls)
    cdef int status = STATUS_OK
    c.mask = mask
    if layer.n == 0:
        return STATUS_OK
    for i in range(layer.n_endless):
        p = &layer.items[layer.endless[i]]
        if p.layer & mask:
            status = candidates_add(c, p, layer.endless[i], layer_index, box, walls)
            if status != STATUS_OK:
                return status
    query = box32_around(reach)
    found = _collect(c, &layer.tree, &query)
    if found < 0:
        return found
    # Each mesh reuses c.places.
    status = _reserve_items(c, found)
    if status != STATUS_OK:
        return status
    for i in range(found):
        c.items[i] = layer.tree.order[c.places[i]]
    for i in range(found):
        k = c.items[i]
        p = &layer.items[k]
        if (p.layer & mask) and box_overlap(p.bounds, reach):
            status = candidates_add(c, p, k, layer_index, box, walls)
            if status != STATUS_OK:
                break
    return status


cdef int group_order(const candidates* c, const candidate_group* g, int32_t g_tri, const candidate_group* h,
                     int32_t h_tri) noexcept nogil:
    """Order of two hits by geometry, so that no result depends on the order of adding shapes."""
    cdef int k
    if g.kind != h.kind:
        return -1 if g.kind < h.kind else 1
    if g.kind == GROUP_TRIANGLES:
        k = triangle_order(&c.tris[g_tri if g_tri >= 0 else g.first], &c.tris[h_tri if h_tri >= 0 else h.first])
    else:
        k = v3_lex(g.q0, h.q0)
        if k == 0:
            k = v3_lex(g.q1, h.q1)
        if k == 0 and g.radius != h.radius:
            k = -1 if g.radius < h.radius else 1
    if k == 0 and g.id != h.id:
        k = -1 if g.id < h.id else 1
    return k


cdef inline int32_t _pick(candidates* c, const capsule_cast* q) noexcept nogil:
    """Store in c.picked, in order, the triangles whose boxes a capsule comes near.

    Return their number.
    """
    cdef aabb4_box path = aabb4_path(q, q.limit)
    cdef uint64_t bits
    cdef int32_t first = 0, n = 0
    while first < c.n_tris:
        bits = aabb4_overlap_mask(c.boxes, first, c.n_tris, &path)
        while bits != 0:
            c.picked[n] = first + lowest_bit(bits)
            bits &= bits - 1
            n += 1
        first += 64
    return n


cdef inline int32_t _picked_before(const candidates* c, const candidate_group* g, int32_t k,
                                   int32_t n_picked) noexcept nogil:
    """End of the triangles of a group in c.picked, from k on."""
    cdef int32_t last = g.first + g.count
    while k < n_picked and c.picked[k] < last:
        k += 1
    return k


cdef inline int32_t _touched_before(const candidates* c, const candidate_group* g, const toi_candidate* touched,
                                    int32_t k, int32_t n_touched) noexcept nogil:
    """The same in ``touched``."""
    cdef int32_t last = g.first + g.count
    if last == c.n_tris:
        return n_touched
    while k < n_touched and touched[k].tri < last:
        k += 1
    return k


cdef bint _meets_open_edge(candidates* c, const capsule_cast* q, double limit) noexcept nogil:
    """Whether the cast meets an open edge of a triangle in c.picked that faces away."""
    cdef const candidate_group* g
    cdef int32_t i, k
    for k in range(c.n_unseen):
        i = c.picked[k]
        g = &c.groups[_group_of(c, i)]
        if g.shared != NULL and g.shared[c.spot[i]] == ALL_SHARED:
            continue
        if not g.closed and open_edge_time(q, c.tris, g.first, g.first + g.count, i, &c.aids[i], limit) <= limit:
            return True
    return False


cdef inline int32_t _lanes(candidates* c, const capsule_cast* q, int32_t but, double limit,
                           toi_candidate* touched) noexcept nogil:
    """aabb4_in_reach; also -1 if an open edge of a triangle that faces away may be met."""
    cdef int32_t n = aabb4_in_reach(q, c.tris, c.boxes, c.n_tris, but, limit, touched, c.picked, &c.n_unseen)
    return -1 if q.meets_back_rims and n >= 0 and c.n_unseen > 0 and _meets_open_edge(c, q, limit) else n


cdef inline bint _finds_again(candidates* c, const capsule_cast* q, double* limit, toi_candidate* again,
                              int32_t* n, sweep_hit* hit) noexcept nogil:
    """Whether the cast hits the last face of its kind again, and surely nothing else.

    Then the hit is filled in. If only the first part is sure, again.tri is that triangle, c.touched
    contains from the second place on the other possible hits, ``n`` is their number, and ``limit``
    their latest distance; otherwise again.tri is -1. ``n`` is -1 if an overlap with a triangle that
    faces away must be recorded.
    """
    again.tri = c.hints[c.turn]
    if not (0 <= again.tri < c.n_tris and c.filter == NULL and hits_same_face(q, &c.tris[again.tri], again)):
        again.tri = -1
        return False
    limit[0] = f_min(limit[0], latest_candidate(q, again.distance))
    n[0] = _lanes(c, q, again.tri, limit[0], c.touched + 1)
    if n[0] < 0:
        return False
    c.tested += n[0] + 1
    return is_unique_hit(q, c.tris, c.aids, n[0], c.touched + 1, again, limit[0], hit)


cdef bint candidates_cast_again(candidates* c, const capsule_cast* q, world_hit* hit) noexcept nogil:
    cdef toi_candidate again
    cdef double limit = q.limit
    cdef int32_t n
    if not (q.culls and only_one_sided(c) and _finds_again(c, q, &limit, &again, &n, &hit.base)):
        return False
    hit.group = _group_of(c, again.tri)
    return True


cdef bint candidates_cast(candidates* c, const capsule_cast* q, int recovers, world_hit* hit) noexcept nogil:
    cdef capsule_cast now
    cdef const candidate_group* g
    cdef sweep_hit other
    cdef sweep_hit* one = &hit.base     # the first one goes directly into the result
    cdef sweep_hit edge
    cdef bint found = False, struck, keeps, known = False, in_lanes = q.culls and only_one_sided(c), meets_edges = False
    cdef double limit = q.limit
    cdef int* passed
    cdef toi_candidate again
    # The place before belongs to the known triangle, if any.
    cdef toi_candidate* touched = c.touched + 1 if c.n_tris > 0 else NULL
    cdef int32_t i, n, m, near, k = 0, n_picked, hint = c.hints[c.turn]
    if in_lanes:
        if _finds_again(c, q, &limit, &again, &n_picked, one):
            hit.group = _group_of(c, hint)
            return True
        if again.tri < 0:
            n_picked = _lanes(c, q, -1, limit, touched)
            if n_picked == 0:
                return False
        if n_picked < 0:
            in_lanes = False
            limit = q.limit
        elif again.tri < 0:
            c.tested += n_picked
    if not in_lanes:
        n_picked = _pick(c, q)
        c.n_unseen = -1
        meets_edges = q.meets_back_rims and not q.passing
    for i in range(c.n_groups):
        g = &c.groups[i]
        keeps = group_recovers(g, recovers)
        if g.kind == GROUP_TRIANGLES:
            # A solid has its own exit, which needs no triangle seen from its front.
            passed = NULL if g.closed else q.passed
            m = near = k
            if in_lanes:
                k = _touched_before(c, g, touched, m, n_picked)
                known = 0 <= again.tri - g.first < g.count
                if known:
                    # The old entry belonged to earlier groups.
                    m -= 1
                    touched[m] = again
                n = k - m
            else:
                k = _picked_before(c, g, m, n_picked)
                n = triangles_in_reach(q, c.tris, 0, c.picked + m, k - m, g.two_sided, limit, passed, touched)
                m = 0
            struck = n > 0 and cast_selected(q, c.tris, c.source, c.aids, n, g.two_sided, not keeps, limit, hint,
                                             known, passed, touched + m, &c.tested, one)
            if (meets_edges and not (g.closed or g.two_sided or struck and one.overlapping)
                    and cast_open_edges(q, c.tris, c.source, c.aids, g.first, g.first + g.count, c.picked + near,
                                        k - near, limit, &edge) and not (struck and one.distance <= edge.distance)):
                struck = True
                one[0] = edge
        elif g.kind == GROUP_BOX:
            struck = capsule_box(q.p0, q.p1, q.radius, q.dir, g.q1, g.q0, g.rotation, limit, one)
        else:
            now = q[0]
            now.limit = limit
            if g.kind == GROUP_SPHERE:
                struck = cast_sphere(&now, g.q0, g.radius, one)
            elif g.kind == GROUP_CAPSULE:
                struck = cast_capsule(&now, g.q0, g.q1, g.radius, one)
            else:
                struck = cast_plane(&now, g.q0, g.radius, one)
        if not struck or (one.overlapping and not keeps):
            if known and not struck:
                # RULES_2 5 left out the shape of the known triangle, which bounded the rest.
                c.hints[c.turn] = -1
                return candidates_cast(c, q, recovers, hit)
            continue
        if found:
            if one.distance > hit.base.distance:
                continue
            if one.distance == hit.base.distance:
                if one.overlapping != hit.base.overlapping:
                    if hit.base.overlapping:
                        continue
                elif group_order(c, g, one.tri, &c.groups[hit.group], hit.base.tri) > 0:
                    continue
        # The filter runs only for objects that the character would hit.
        if not _may_meet(c, g):
            if c.filter.needs_answer:
                return False
            continue
        found = True
        if one == &other:
            hit.base = other
        hit.group = i
        one = &other
        # Later shapes may still beat this one by a candidate of their own window.
        limit = f_min(limit, latest_candidate(q, hit.base.distance))
    if found:
        c.hints[c.turn] = hit.base.tri
    return found


cdef void box_triangles(const candidate_group* g, triangle* tris) noexcept nogil:
    cdef vec3[8] corner
    cdef int i, k
    for i in range(8):
        corner[i] = v3_add(q_rotate(g.rotation, v3(g.q1.x if i & 1 else -g.q1.x, g.q1.y if i & 2 else -g.q1.y,
                                                   g.q1.z if i & 4 else -g.q1.z)), g.q0)
    for i in range(6):
        for k in range(2):
            tris[2 * i + k].a = corner[BOX_FACES[i][0]]
            tris[2 * i + k].b = corner[BOX_FACES[i][1 + k]]
            tris[2 * i + k].c = corner[BOX_FACES[i][2 + k]]
            tris[2 * i + k].n = triangle_normal(tris[2 * i + k].a, tris[2 * i + k].b, tris[2 * i + k].c)
            tris[2 * i + k].d = v3_dot(tris[2 * i + k].n, tris[2 * i + k].a)


cdef push_out _push_from_box(const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil:
    cdef triangle[12] tris
    box_triangles(g, tris)
    return push_from_polytope(p0, p1, radius, tris, 12, False)


cdef push_out group_push(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil:
    cdef push_out r
    if g.kind == GROUP_SPHERE:
        return push_from_sphere(p0, p1, radius, g.q0, g.radius)
    if g.kind == GROUP_CAPSULE:
        return push_from_capsule(p0, p1, radius, g.q0, g.q1, g.radius)
    if g.kind == GROUP_PLANE:
        return push_from_plane(p0, p1, radius, g.q0, g.radius)
    if g.kind == GROUP_BOX:
        return _push_from_box(g, p0, p1, radius)
    if g.closed:
        return push_from_polytope(p0, p1, radius, c.tris + g.first, g.count, g.flat)
    r = push_from_triangles(p0, p1, radius, c.tris + g.first, g.count, g.two_sided, c.depths)
    if r.tri >= 0:
        r.tri += g.first
    return r


cdef bint group_overlaps(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil:
    if g.kind == GROUP_SPHERE:
        return point_segment(g.q0, p0, p1).dist2 < (radius + g.radius) * (radius + g.radius)
    if g.kind == GROUP_CAPSULE:
        return segment_segment(p0, p1, g.q0, g.q1).dist2 < (radius + g.radius) * (radius + g.radius)
    if g.kind == GROUP_TRIANGLES and not g.closed:
        return overlaps_triangles(p0, p1, radius, c.tris + g.first, g.count)
    return group_push(c, g, p0, p1, radius).overlapping


cdef bint candidates_overlap_one(candidates* c, int32_t i, vec3 p0, vec3 p1, double radius) noexcept nogil:
    cdef const triangle* t = &c.tris[i]
    cdef double h0 = v3_dot(t.n, v3_sub(p0, t.a)), h1 = h0 + v3_dot(t.n, v3_sub(p1, p0))
    cdef capsule_cast q
    if f_min(h0, h1) >= radius or f_max(h0, h1) <= -radius or h0 + h1 < -SURELY_BEHIND * radius:
        return False
    capsule_cast_set(&q, p0, p1, radius, v3(0.0, 0.0, 0.0), 0.0, False, False)
    return overlaps_at_start(&q, t, f_min(h0, h1), &c.aids[i])


cdef bint candidates_overlap(candidates* c, const broadphase_layer* fixed, const broadphase_layer* moving, vec3 p0,
                             vec3 p1, double radius) noexcept nogil:
    cdef aabb box = capsule_bounds(p0, p1, radius)
    cdef capsule_cast q
    cdef aabb4_box here
    cdef uint64_t bits
    cdef const candidate_group* g
    cdef const triangle* t
    cdef double h0, h1
    cdef int32_t i, first = 0
    if c.n_tris > 0:
        capsule_cast_set(&q, p0, p1, radius, v3(0.0, 0.0, 0.0), 0.0, False, False)
        here = aabb4_path(&q, 0.0)
    while first < c.n_tris:
        bits = aabb4_overlap_mask(c.boxes, first, c.n_tris, &here)
        while bits != 0:
            i = first + lowest_bit(bits)
            bits &= bits - 1
            t = &c.tris[i]
            h0 = v3_dot(t.n, v3_sub(p0, t.a))
            h1 = h0 + v3_dot(t.n, q.axis)
            if f_min(h0, h1) >= radius or f_max(h0, h1) <= -radius:
                continue
            g = &c.groups[_group_of(c, i)]
            if g.closed or (h0 + h1 < -SURELY_BEHIND * radius and not g.two_sided):
                continue
            if overlaps_at_start(&q, t, f_min(h0, h1), &c.aids[i]):
                return True
        first += 64
    for i in range(c.n_groups):
        g = &c.groups[i]
        if g.kind == GROUP_TRIANGLES and not g.closed:
            continue
        if g.layer_index == 0 and not box_overlap(fixed.items[g.item].bounds, box):
            continue
        if g.layer_index == 1 and not box_overlap(moving.items[g.item].bounds, box):
            continue
        if group_overlaps(c, g, p0, p1, radius):
            return True
    return False


cdef push_out candidates_deepest(candidates* c, vec3 p0, vec3 p1, double radius, int recovers,
                                 int32_t* group) noexcept nogil:
    cdef push_out best, one
    cdef int32_t i
    cdef double deepest = 0.0
    best.overlapping = False
    best.depth = 0.0
    group[0] = -1
    for i in range(c.n_groups):
        if group_recovers(&c.groups[i], recovers):
            one = group_push(c, &c.groups[i], p0, p1, radius)
            if one.overlapping and one.depth > deepest and _may_meet(c, &c.groups[i]):
                deepest = one.depth
            if c.filter != NULL and c.filter.needs_answer:
                return best
    if deepest <= 0.0:
        return best
    for i in range(c.n_groups):
        if group_recovers(&c.groups[i], recovers):
            one = group_push(c, &c.groups[i], p0, p1, radius)
            if one.overlapping and one.depth >= deepest - DEPTH_TIE and _may_meet(c, &c.groups[i]) and (
                    group[0] < 0
                    or group_order(c, &c.groups[i], one.tri, &c.groups[group[0]], best.tri) < 0):
                best = one
                group[0] = i
            if c.filter != NULL and c.filter.needs_answer:
                best.overlapping = False
                group[0] = -1
                return best
    return best
