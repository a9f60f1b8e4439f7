"""Convex shapes as polytopes. See the header."""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t

from pycct.geometry.closest cimport triangle_normal
from pycct.geometry.types cimport SHAPE_BOX, SHAPE_CAPSULE, SHAPE_SPHERE, SHAPE_TRIANGLE
from pycct.geometry.vec cimport (
    f_max, m3_mul, m3_tmul, mat3, v3, v3_abs, v3_add, v3_cross, v3_dist2, v3_dot, v3_is_zero, v3_len2,
    v3_load, v3_max_abs, v3_mul, v3_neg, v3_scale, v3_sub, vec3,
)

# A factor this much smaller than the largest one is zero: the reciprocals that carry the
# normals would leave the range of float64.
cdef double FLATTENED = 1e-100
# Faces whose cosines with a direction differ by less look along it alike: the order of faces
# decides, not rounding.
cdef double ALIKE = 1e-9

# The unit cube. Vertex number: bit 0, 1, 2 set when x, y, z is positive. Faces: +X, +Y, +Z,
# -X, -Y, -Z. Edges: four along x, four along y, four along z, so that number // 4 is the axis.
cdef hull_data _cube
cdef hull_extra _cube_extra
cdef double[24] _cube_vertices
cdef double[24] _cube_planes
cdef int32_t[24] _cube_edges
cdef int32_t[24] _cube_edge_faces
cdef int32_t[7] _cube_face_start
cdef int32_t[24] _cube_face_vertices
cdef int32_t[24] _cube_face_edges
cdef int32_t[9] _cube_vertex_start
cdef int32_t[24] _cube_vertex_faces
cdef int32_t[24] _cube_vertex_edges
cdef int32_t[12] _cube_outline


def _fill_cube():
    cdef int i, k
    corners = [[1.0 if i >> k & 1 else -1.0 for k in range(3)] for i in range(8)]
    edges = [(i, i | 1 << axis) for axis in range(3) for i in range(8) if not i >> axis & 1]
    faces = []
    for face in range(6):
        axis, positive = face % 3, face < 3
        u, v = 1 << (axis + 1) % 3, 1 << (axis + 2) % 3
        base = 1 << axis if positive else 0
        loop = [base, base | u, base | u | v, base | v]
        faces.append(loop if positive else [loop[0], loop[3], loop[2], loop[1]])
    for i in range(8):
        for k in range(3):
            _cube_vertices[3 * i + k] = corners[i][k]
    for face, loop in enumerate(faces):
        for k in range(3):
            _cube_planes[4 * face + k] = (1.0 if face < 3 else -1.0) if face % 3 == k else 0.0
        _cube_planes[4 * face + 3] = 1.0
        _cube_face_start[face] = 4 * face
        for k in range(4):
            a, b = loop[k], loop[(k + 1) % 4]
            edge = edges.index((min(a, b), max(a, b)))
            _cube_face_vertices[4 * face + k] = a
            _cube_face_edges[4 * face + k] = edge
            _cube_edge_faces[2 * edge + (0 if a < b else 1)] = face
    _cube_face_start[6] = 24
    for e, (a, b) in enumerate(edges):
        _cube_edges[2 * e] = a
        _cube_edges[2 * e + 1] = b
    for i in range(8):
        _cube_vertex_start[i] = 3 * i
        at = [face for face in range(6) if i in faces[face]]
        at_edges = [e for e, ends in enumerate(edges) if i in ends]
        for k in range(3):
            _cube_vertex_faces[3 * i + k] = at[k]
            _cube_vertex_edges[3 * i + k] = at_edges[k]
    _cube_vertex_start[8] = 24
    for k in range(3):
        # Seen along an axis: the corners of the negative face, turned round.
        loop = faces[k + 3]
        for i in range(4):
            _cube_outline[4 * k + i] = loop[(4 - i) % 4]
        _cube_extra.outline_start[k + 1] = 4 * (k + 1)
    _cube_extra.outline_start[0] = 0
    _cube.dimension = 3
    _cube.n_vertices = 8
    _cube.n_edges = 12
    _cube.n_faces = 6
    _cube.vertices = _cube_vertices
    _cube.planes = _cube_planes
    _cube.edges = _cube_edges
    _cube.edge_faces = _cube_edge_faces
    _cube.face_start = _cube_face_start
    _cube.face_vertices = _cube_face_vertices
    _cube.face_edges = _cube_face_edges
    _cube_extra.vertex_face_start = _cube_vertex_start
    _cube_extra.vertex_faces = _cube_vertex_faces
    _cube_extra.vertex_edge_start = _cube_vertex_start
    _cube_extra.vertex_edges = _cube_vertex_edges
    _cube_extra.outline_vertices = _cube_outline


_fill_cube()


cdef inline void _put(polytope* p, int32_t i, vec3 v, int32_t number, vec3 position) noexcept nogil:
    if p.turned:
        v = v3_add(m3_mul(p.rotation, v), position)
    p.x[i] = v.x
    p.y[i] = v.y
    p.z[i] = v.z
    if number >= 0:
        p.ids[i] = number


cdef void _load_triangle(polytope* p, const convex_shape* s, vec3 position) noexcept nogil:
    """Three corners; a triangle without area becomes its longest side, or a point."""
    cdef vec3 n = triangle_normal(s.a, s.b, s.c)
    cdef double ab = v3_dist2(s.a, s.b), bc = v3_dist2(s.b, s.c), ca = v3_dist2(s.c, s.a)
    if not v3_is_zero(n):
        _put(p, 0, s.a, 0, position)
        _put(p, 1, s.b, 1, position)
        _put(p, 2, s.c, 2, position)
        p.n = 3
        p.flat_normal = m3_mul(p.rotation, n) if p.turned else n
        return
    p.n = 2
    if ab >= bc and ab >= ca:
        _put(p, 0, s.a, 0, position)
        _put(p, 1, s.b, 1, position)
    elif bc >= ca:
        _put(p, 0, s.b, 1, position)
        _put(p, 1, s.c, 2, position)
    else:
        _put(p, 0, s.a, 0, position)
        _put(p, 1, s.c, 2, position)
    if f_max(ab, f_max(bc, ca)) <= 0.0:
        p.n = 1


cdef void _load_flattened(polytope* p, const convex_shape* s, vec3 scale, vec3 position, int zeros) noexcept nogil:
    """A hull scaled by zero along one, two or three axes."""
    cdef int axis
    cdef int32_t i, k, count, lo = 0, hi = 0
    cdef vec3 v
    cdef bint reverse
    if zeros == 3:
        _put(p, 0, v3(0.0, 0.0, 0.0), 0, position)
        p.n = 1
        return
    if zeros == 2:
        axis = 0 if scale.x != 0.0 else (1 if scale.y != 0.0 else 2)
        for i in range(1, p.h.n_vertices):
            if p.h.vertices[3 * i + axis] < p.h.vertices[3 * lo + axis]:
                lo = i
            if p.h.vertices[3 * i + axis] > p.h.vertices[3 * hi + axis]:
                hi = i
        _put(p, 0, v3_mul(v3_load(p.h.vertices + 3 * lo), scale), lo, position)
        _put(p, 1, v3_mul(v3_load(p.h.vertices + 3 * hi), scale), hi, position)
        p.n = 2 if lo != hi else 1
        return
    axis = 0 if scale.x == 0.0 else (1 if scale.y == 0.0 else 2)
    reverse = (scale.y * scale.z if axis == 0 else (scale.z * scale.x if axis == 1 else scale.x * scale.y)) < 0.0
    count = p.extra.outline_start[axis + 1] - p.extra.outline_start[axis]
    for i in range(count):
        k = p.extra.outline_vertices[p.extra.outline_start[axis] + (count - 1 - i if reverse else i)]
        _put(p, i, v3_mul(v3_load(p.h.vertices + 3 * k), scale), k, position)
    p.n = count
    v = v3(1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)
    p.flat_normal = m3_mul(p.rotation, v) if p.turned else v


cdef void _load_tables(polytope* p, const convex_shape* s, vec3 scale, vec3 position) noexcept nogil:
    """A box or a hull."""
    cdef double m = v3_max_abs(scale)
    cdef int zeros
    cdef int32_t i
    if fabs(scale.x) <= FLATTENED * m:
        scale.x = 0.0
    if fabs(scale.y) <= FLATTENED * m:
        scale.y = 0.0
    if fabs(scale.z) <= FLATTENED * m:
        scale.z = 0.0
    zeros = (scale.x == 0.0) + (scale.y == 0.0) + (scale.z == 0.0)
    if zeros > 0:
        _load_flattened(p, s, scale, position, zeros)
        p.boxlike = False
        return
    p.n = p.h.n_vertices
    for i in range(p.n):
        _put(p, i, v3_mul(v3_load(p.h.vertices + 3 * i), scale), -1, position)
    if p.h.dimension < 2:
        for i in range(p.n):
            p.ids[i] = i
        return
    p.flat = False
    p.scaled = scale.x != 1.0 or scale.y != 1.0 or scale.z != 1.0
    p.mirrored = (scale.x < 0.0) != ((scale.y < 0.0) != (scale.z < 0.0))
    p.inverse_scale = v3(m / scale.x, m / scale.y, m / scale.z)
    p.n_faces = p.h.n_faces
    p.n_edges = p.h.n_edges


cdef void polytope_load(polytope* p, const convex_shape* s, mat3 rotation, vec3 position, bint turned) noexcept nogil:
    cdef int32_t i
    cdef vec3 sum_, lo, hi, v
    p.kind = s.kind
    p.radius = s.radius
    p.rotation = rotation
    p.turned = turned
    p.origin = position
    p.flat = True
    p.mirrored = False
    p.boxlike = False
    p.n_faces = -1
    p.h = NULL
    p.extra = NULL
    if s.kind == SHAPE_SPHERE:
        _put(p, 0, v3(0.0, 0.0, 0.0), 0, position)
        p.n = 1
    elif s.kind == SHAPE_CAPSULE:
        _put(p, 0, s.a, 0, position)
        _put(p, 1, s.b, 1, position)
        p.n = 2 if v3_dist2(s.a, s.b) > 0.0 else 1
    elif s.kind == SHAPE_TRIANGLE:
        _load_triangle(p, s, position)
    elif s.kind == SHAPE_BOX:
        p.h = &_cube
        p.extra = &_cube_extra
        p.boxlike = True
        _load_tables(p, s, s.a, position)
    else:
        p.h = s.hull
        p.extra = s.extra
        _load_tables(p, s, s.a, position)
    if p.n_faces < 0:
        p.n_faces = 2 if p.n > 2 else 0
        p.n_edges = p.n if p.n > 2 else p.n - 1
    if p.boxlike:
        p.centre = position
        p.half = v3_abs(s.a)
        p.extent = 2.0 * (fabs(s.a.x) + fabs(s.a.y) + fabs(s.a.z))
        return
    lo = hi = sum_ = vertex_at(p, 0)
    for i in range(1, p.n):
        v = vertex_at(p, i)
        sum_ = v3_add(sum_, v)
        lo = v3(v.x if v.x < lo.x else lo.x, v.y if v.y < lo.y else lo.y, v.z if v.z < lo.z else lo.z)
        hi = v3(v.x if v.x > hi.x else hi.x, v.y if v.y > hi.y else hi.y, v.z if v.z > hi.z else hi.z)
    p.centre = v3_scale(sum_, 1.0 / p.n)
    v = v3_sub(hi, lo)
    p.extent = v.x + v.y + v.z


cdef vec3 face_normal(const polytope* p, int32_t f) noexcept nogil:
    cdef vec3 n
    cdef double m
    if p.flat:
        return p.flat_normal if f == 0 else v3_neg(p.flat_normal)
    n = v3_load(p.h.planes + 4 * f)
    if p.scaled and not p.boxlike:
        n = v3_mul(n, p.inverse_scale)
        m = v3_max_abs(n)
        n = v3_scale(n, 1.0 / m)
        n = v3_scale(n, 1.0 / sqrt(v3_len2(n)))
    return m3_mul(p.rotation, n) if p.turned else n


cdef double face_offset(const polytope* p, int32_t f, vec3 normal) noexcept nogil:
    cdef int32_t k
    cdef double d, best
    if p.boxlike:
        return (p.half.x if f % 3 == 0 else (p.half.y if f % 3 == 1 else p.half.z)) + v3_dot(normal, p.origin)
    if not p.flat and not p.scaled:
        return p.h.planes[4 * f + 3] + v3_dot(normal, p.origin)
    best = v3_dot(vertex_at(p, face_corner(p, f, 0)), normal)
    for k in range(1, face_size(p, f)):
        d = v3_dot(vertex_at(p, face_corner(p, f, k)), normal)
        best = d if d > best else best
    return best


cdef void face_planes(const polytope* p, vec3* normals, double* offsets) noexcept nogil:
    cdef int32_t f
    for f in range(p.n_faces):
        normals[f] = face_normal(p, f)
        offsets[f] = face_offset(p, f, normals[f])


cdef int32_t best_face(const polytope* p, vec3 direction) noexcept nogil:
    cdef int32_t f, best = -1
    cdef double d, best_d = -2.0
    cdef vec3 own, m
    if p.n_faces == 0:
        return -1
    if p.flat:
        return 0 if v3_dot(direction, p.flat_normal) >= -ALIKE else 1
    if p.boxlike:
        own = direction
        if p.turned:
            own = m3_tmul(p.rotation, direction)
        m = v3_abs(own)
        if m.y >= m.z - ALIKE and m.y >= m.x - ALIKE:
            return 1 if own.y >= 0.0 else 4
        if m.z >= m.x - ALIKE:
            return 2 if own.z >= 0.0 else 5
        return 0 if own.x >= 0.0 else 3
    for f in range(p.n_faces):
        d = v3_dot(face_normal(p, f), direction)
        if d > best_d + ALIKE:
            best_d = d
            best = f
    return best


cdef int32_t best_face_at(const polytope* p, vec3 direction, int32_t feature) noexcept nogil:
    cdef int32_t k, f, best = -1, index = feature & FEATURE_INDEX, left, right
    cdef double d, best_d = -2.0
    if p.flat or p.boxlike:
        return best_face(p, direction)
    if feature & FEATURE_FACE:
        return index
    if feature & FEATURE_EDGE:
        edge_sides(p, index, &left, &right)
        # Tables, not sides, so that a mirrored hull decides as its original does.
        left, right = p.h.edge_faces[2 * index], p.h.edge_faces[2 * index + 1]
        if left < 0:
            return -1
        d = v3_dot(face_normal(p, left), direction) - v3_dot(face_normal(p, right), direction)
        return left if d >= -ALIKE else right
    for k in range(p.extra.vertex_face_start[index], p.extra.vertex_face_start[index + 1]):
        f = p.extra.vertex_faces[k]
        d = v3_dot(face_normal(p, f), direction)
        if d > best_d + ALIKE:
            best_d = d
            best = f
    return best


cdef inline bint _face_has(const polytope* p, int32_t f, int32_t v) noexcept nogil:
    cdef int32_t k
    for k in range(p.h.face_start[f], p.h.face_start[f + 1]):
        if p.h.face_vertices[k] == v:
            return True
    return False


cdef int32_t feature_of(const polytope* p, const int32_t* vertices, int32_t count) noexcept nogil:
    cdef int32_t k, e, f, u, v, i
    cdef int32_t[3] w
    # Without repetitions.
    w[0] = vertices[0]
    i = 1
    for k in range(1, count):
        if vertices[k] != w[0] and (i == 1 or vertices[k] != w[1]):
            w[i] = vertices[k]
            i += 1
    if i == 1:
        return FEATURE_VERTEX | w[0]
    if p.flat:
        if i == 2:
            u = w[0] if w[0] < w[1] else w[1]
            v = w[0] + w[1] - u
            if v == u + 1:
                return FEATURE_EDGE | u
            if u == 0 and v == p.n - 1:
                return FEATURE_EDGE | v
        return FEATURE_FACE
    if p.h.dimension < 2:
        return FEATURE_EDGE
    if i == 2:
        for k in range(p.extra.vertex_edge_start[w[0]], p.extra.vertex_edge_start[w[0] + 1]):
            e = p.extra.vertex_edges[k]
            if p.h.edges[2 * e] == w[1] or p.h.edges[2 * e + 1] == w[1]:
                return FEATURE_EDGE | e
    for k in range(p.extra.vertex_face_start[w[0]], p.extra.vertex_face_start[w[0] + 1]):
        f = p.extra.vertex_faces[k]
        if _face_has(p, f, w[1]) and (i == 2 or _face_has(p, f, w[2])):
            return FEATURE_FACE | f
    # No face holds all: the closest point lies on an edge or corner and the rest is rounding.
    if i == 3:
        return feature_of(p, w, 2)
    return FEATURE_VERTEX | w[0]


cdef int32_t public_feature(const polytope* p, int32_t feature) noexcept nogil:
    cdef int32_t index = feature & FEATURE_INDEX
    if not p.flat or feature & FEATURE_FACE or p.kind == SHAPE_SPHERE:
        return feature
    if feature & FEATURE_EDGE:
        if p.kind == SHAPE_TRIANGLE and p.n == 2:
            # The longest side stands for the triangle: ab, bc or ca.
            return FEATURE_EDGE | (2 if p.ids[0] == 0 and p.ids[1] == 2 else p.ids[0])
        return feature
    return FEATURE_VERTEX | p.ids[index]


cdef vec3 _unit_or_zero(vec3 v) noexcept nogil:
    cdef double m = sqrt(v3_len2(v))
    return v3_scale(v, 1.0 / m) if m > 1e-9 else v3(0.0, 0.0, 0.0)


cdef vec3 _rim_normal(const polytope* p, int32_t u, int32_t v, vec3 face) noexcept nogil:
    """In the plane, out of a polygon that runs u -> v counter-clockwise around `face`."""
    cdef vec3 d = v3_sub(vertex_at(p, v), vertex_at(p, u))
    cdef double m = v3_max_abs(d)
    return _unit_or_zero(v3_cross(v3_scale(d, 1.0 / m), face)) if m > 0.0 else d


cdef vec3 feature_normal(const polytope* p, int32_t feature) noexcept nogil:
    cdef int32_t index = feature & FEATURE_INDEX, u, v, left, right, k, e
    cdef vec3 n, sum_
    cdef double m
    if p.n_faces == 0:
        # The end of a segment looks along it.
        if p.n == 2 and not feature & FEATURE_EDGE:
            n = v3_sub(vertex_at(p, index), vertex_at(p, 1 - index))
            m = v3_max_abs(n)
            return _unit_or_zero(v3_scale(n, 1.0 / m)) if m > 0.0 else n
        return v3(0.0, 0.0, 0.0)
    if feature & FEATURE_FACE:
        return face_normal(p, index)
    if feature & FEATURE_EDGE:
        edge_ends(p, index, &u, &v)
        edge_sides(p, index, &left, &right)
        if p.flat or p.h.dimension == 2:
            return _rim_normal(p, u, v, face_normal(p, left))
        return _unit_or_zero(v3_add(face_normal(p, left), face_normal(p, right)))
    sum_ = v3(0.0, 0.0, 0.0)
    if p.flat:
        u = index - 1 if index > 0 else p.n - 1
        v = index + 1 if index + 1 < p.n else 0
        return _unit_or_zero(v3_add(_rim_normal(p, u, index, p.flat_normal), _rim_normal(p, index, v, p.flat_normal)))
    if p.h.dimension == 2:
        for k in range(p.extra.vertex_edge_start[index], p.extra.vertex_edge_start[index + 1]):
            e = p.extra.vertex_edges[k]
            edge_ends(p, e, &u, &v)
            edge_sides(p, e, &left, &right)
            sum_ = v3_add(sum_, _rim_normal(p, u, v, face_normal(p, left)))
        return _unit_or_zero(sum_)
    for k in range(p.extra.vertex_face_start[index], p.extra.vertex_face_start[index + 1]):
        sum_ = v3_add(sum_, face_normal(p, p.extra.vertex_faces[k]))
    return _unit_or_zero(sum_)
