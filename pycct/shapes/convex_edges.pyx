# cython: language_level=3
"""Convex edges of meshes and heightfields. See the header."""
from libc.stdint cimport int32_t

from pycct.geometry.closest cimport triangle_normal
from pycct.geometry.vec cimport box_of, v3, v3_add, v3_dot, v3_lex, v3_load, v3_scale, v3_sub, vec3
from pycct.shapes.heightfield_cells cimport field_data, field_triangle
from pycct.shapes.primitives cimport mesh_data
from pycct.spatial.bvh cimport bvh_walk, bvh_walk_next, bvh_walk_start

# Normals with at least this product make no convex edge: of a mesh (the cosine of 0.1 rad), and of
# a heightfield.
cdef double FLAT_MESH = 0.9950041652780258
cdef double FLAT_FIELD = 0.999
# Triangles with a product below this are folded back onto one another.
cdef double FOLDED_PRODUCT = -0.999
# An edge of more triangles than this is not convex.
cdef enum:
    MOST_AT_EDGE = 16


# A triangle that has the edge.
cdef struct edge_user:
    vec3[3] corner
    vec3 normal


# The different triangles at the edge pq; ``total`` counts equal ones too.
cdef struct edge_users:
    vec3 p
    vec3 q
    edge_user[MOST_AT_EDGE] rows
    int n
    int total


cdef inline bint _same(vec3 a, vec3 b) noexcept nogil:
    return a.x == b.x and a.y == b.y and a.z == b.z


cdef inline bint _has(const vec3* corner, vec3 x) noexcept nogil:
    return _same(corner[0], x) or _same(corner[1], x) or _same(corner[2], x)


cdef void _add(edge_users* e, const vec3* corner, vec3 normal) noexcept nogil:
    """Add a triangle if it has the edge."""
    cdef edge_user* row
    cdef int i
    if not (_has(corner, e.p) and _has(corner, e.q)):
        return
    e.total += 1
    if e.total > MOST_AT_EDGE:
        return
    for i in range(e.n):
        row = &e.rows[i]
        if _same(row.corner[0], corner[0]) and _same(row.corner[1], corner[1]) and _same(row.corner[2], corner[2]):
            return
    row = &e.rows[e.n]
    row.corner[0], row.corner[1], row.corner[2] = corner[0], corner[1], corner[2]
    row.normal = normal
    e.n += 1


cdef inline bint _lies_below(const edge_user* one, const edge_user* other, vec3 p, vec3 q) noexcept nogil:
    """Whether the corner of one triangle opposite the edge pq lies below the other's plane."""
    cdef int k = 0
    while k < 2 and (_same(one.corner[k], p) or _same(one.corner[k], q)):
        k += 1
    return v3_dot(other.normal, v3_sub(one.corner[k], p)) < 0.0


cdef inline bint _same_corners(const edge_user* one, const edge_user* other) noexcept nogil:
    return (_has(other.corner, one.corner[0]) and _has(other.corner, one.corner[1])
            and _has(other.corner, one.corner[2]))


cdef int _order(const edge_user* one, const edge_user* other) noexcept nogil:
    cdef int k = v3_lex(one.corner[0], other.corner[0])
    if k == 0:
        k = v3_lex(one.corner[1], other.corner[1])
    return k if k != 0 else v3_lex(one.corner[2], other.corner[2])


cdef void _sort(edge_users* e) noexcept nogil:
    """The order of the triangles is one of geometry, never that of the input."""
    cdef edge_user row
    cdef int i, k
    for i in range(1, e.n):
        row = e.rows[i]
        k = i
        while k > 0 and _order(&row, &e.rows[k - 1]) < 0:
            e.rows[k] = e.rows[k - 1]
            k -= 1
        e.rows[k] = row


cdef bint _is_convex_of_many(edge_users* e, double flat) noexcept nogil:
    """The edge of three and more triangles is convex only between pairs of double-sided ones."""
    cdef int i, second = -1
    cdef bint double_sided = False
    _sort(e)
    for i in range(1, e.n):
        if _same_corners(&e.rows[i], &e.rows[0]):
            double_sided = double_sided or v3_dot(e.rows[0].normal, e.rows[i].normal) < FOLDED_PRODUCT
        elif second < 0:
            second = i
        elif _same_corners(&e.rows[i], &e.rows[second]):
            double_sided = double_sided or v3_dot(e.rows[second].normal, e.rows[i].normal) < FOLDED_PRODUCT
        else:
            return False
    return second >= 0 and double_sided and v3_dot(e.rows[0].normal, e.rows[second].normal) < flat


cdef bint _is_convex(edge_users* e, double flat) noexcept nogil:
    cdef double product
    if e.total > MOST_AT_EDGE:
        return False
    if e.n <= 1:
        return True
    if e.n > 2:
        return _is_convex_of_many(e, flat)
    product = v3_dot(e.rows[0].normal, e.rows[1].normal)
    if (_lies_below(&e.rows[0], &e.rows[1], e.p, e.q) or _lies_below(&e.rows[1], &e.rows[0], e.p, e.q)):
        return product < flat
    return product < FOLDED_PRODUCT


cdef void _start(edge_users* e, vec3 p, vec3 q) noexcept nogil:
    e.p, e.q = p, q
    e.n = e.total = 0


cdef void _find_in_mesh(edge_users* e, const mesh_data* m) noexcept nogil:
    """The triangles at an edge: their boxes contain its middle."""
    cdef bvh_walk w
    cdef vec3[3] corner
    cdef vec3 middle = v3_scale(v3_add(e.p, e.q), 0.5)
    cdef const int32_t* t
    cdef int32_t i, first, count
    cdef int k
    bvh_walk_start(&w, &m.tree, box_of(middle, middle), v3(0.0, 0.0, 0.0))
    while bvh_walk_next(&w, 0.0, &first, &count):
        for i in range(first, first + count):
            t = m.triangles + 3 * <Py_ssize_t>i
            for k in range(3):
                corner[k] = v3_load(m.vertices + 3 * <Py_ssize_t>t[k])
            _add(e, corner, v3_load(m.normals + 3 * <Py_ssize_t>i))


cdef int mesh_convex_edges(const mesh_data* m, int32_t place, int edges) noexcept nogil:
    cdef edge_users e
    cdef const int32_t* t = m.triangles + 3 * <Py_ssize_t>place
    cdef int k, bits = 0
    for k in range(3):
        if edges & (1 << k):
            _start(&e, v3_load(m.vertices + 3 * <Py_ssize_t>t[k]), v3_load(m.vertices + 3 * <Py_ssize_t>t[(k + 1) % 3]))
            _find_in_mesh(&e, m)
            if _is_convex(&e, FLAT_MESH):
                bits |= 1 << k
    return bits


cdef void _add_cell(edge_users* e, const field_data* f, int32_t i, int32_t j) noexcept nogil:
    """The two triangles of a cell, if there is such a cell."""
    cdef vec3[3] corner
    cdef int which
    if not (0 <= i < f.rows - 1 and 0 <= j < f.columns - 1):
        return
    for which in range(2):
        if field_triangle(f, i, j, which, &corner[0], &corner[1], &corner[2]):
            _add(e, corner, triangle_normal(corner[0], corner[1], corner[2]))


cdef int field_convex_edges(const field_data* f, int32_t tri, int edges) noexcept nogil:
    cdef edge_users e
    cdef vec3[3] corner
    cdef int32_t cell = tri >> 1, i = cell // (f.columns - 1), j = cell % (f.columns - 1)
    cdef int k, bits = 0
    if not field_triangle(f, i, j, tri & 1, &corner[0], &corner[1], &corner[2]):
        return 0
    for k in range(3):
        if edges & (1 << k):
            _start(&e, corner[k], corner[(k + 1) % 3])
            # Only these cells share an edge with the triangle.
            _add_cell(&e, f, i, j)
            _add_cell(&e, f, i - 1, j)
            _add_cell(&e, f, i + 1, j)
            _add_cell(&e, f, i, j - 1)
            _add_cell(&e, f, i, j + 1)
            if _is_convex(&e, FLAT_FIELD):
                bits |= 1 << k
    return bits
