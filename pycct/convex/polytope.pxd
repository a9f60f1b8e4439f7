# cython: language_level=3
"""The five convex shapes as one: a polytope inflated by a radius, in a common frame.

A sphere is a point, a capsule a segment, and a box the scaled unit cube. A hull that is scaled by
zero along an axis is the outline seen along that axis. The distance and manifold code reads
corners, faces, edges and their numbers from this struct.
"""
from libc.stdint cimport int32_t

from pycct.convex.hull cimport HULL_MAX_VERTICES, hull_extra
from pycct.geometry.types cimport SHAPE_CAPSULE, SHAPE_TRIANGLE, hull_data
from pycct.geometry.vec cimport m3_tmul, mat3, quat, v3, vec3


# A convex shape in its own frame, as plain values.
cdef struct convex_shape:
    int32_t kind                # shape_kind: SHAPE_SPHERE .. SHAPE_HULL
    double radius               # sphere, capsule; else 0
    vec3 a                      # capsule: sphere centre; triangle: corner; box: half extents; hull: scale
    vec3 b
    vec3 c
    const hull_data* hull       # hull only; its owner keeps it alive
    const hull_extra* extra


cdef struct pose:
    vec3 position
    quat rotation


# Shapes from values, for callers without shape objects. Large coordinates belong in the pose.
cdef inline convex_shape convex_capsule(vec3 p0, vec3 p1, double radius) noexcept nogil:
    cdef convex_shape s
    s.kind = SHAPE_CAPSULE
    s.radius = radius
    s.a = p0
    s.b = p1
    s.c = v3(0.0, 0.0, 0.0)
    s.hull = NULL
    s.extra = NULL
    return s


cdef inline convex_shape convex_triangle(vec3 a, vec3 b, vec3 c) noexcept nogil:
    cdef convex_shape s = convex_capsule(a, b, 0.0)
    s.kind = SHAPE_TRIANGLE
    s.c = c
    return s


# Feature codes: the top two of 16 bits are the kind, the rest the number.
cdef enum:
    FEATURE_VERTEX = 0
    FEATURE_EDGE = 0x4000
    FEATURE_FACE = 0x8000
    FEATURE_INDEX = 0x3FFF


# A face normal is computed on first use.
cdef struct polytope:
    int32_t kind
    int32_t n                   # vertices
    int32_t n_faces
    int32_t n_edges
    bint flat                   # its vertices are the corners of one polygon (or a segment, a point)
    bint mirrored               # tables have the opposite orientation
    bint boxlike                # unit cube tables
    bint scaled                 # by another factor than 1
    const hull_data* h          # not flat
    const hull_extra* extra
    vec3 inverse_scale          # for normals of the tables
    mat3 rotation               # into the common frame
    bint turned                 # rotation is not the identity
    vec3 origin                 # of the shape in the common frame
    vec3 flat_normal            # of face 0 of a flat polygon
    vec3 centre                 # a point inside
    vec3 half                   # boxlike: half extents
    double extent               # about its size
    double radius
    double[HULL_MAX_VERTICES + 1] x
    double[HULL_MAX_VERTICES + 1] y
    double[HULL_MAX_VERTICES + 1] z
    int32_t[HULL_MAX_VERTICES + 1] ids      # flat: number of each vertex in its shape


# Fill p. rotation/position take the shape into the common frame; turned = False: they are the
# identity.
cdef void polytope_load(polytope* p, const convex_shape* s, mat3 rotation, vec3 position, bint turned) noexcept nogil

cdef inline vec3 vertex_at(const polytope* p, int32_t i) noexcept nogil:
    cdef vec3 r
    r.x = p.x[i]
    r.y = p.y[i]
    r.z = p.z[i]
    return r


# Vertex farthest along d; of equal ones the first. By eights: without a branch for each vertex, in
# vector registers.
cdef inline int32_t support(const polytope* p, vec3 d) noexcept nogil:
    cdef int32_t i, k, n, best = 0
    cdef double v, m
    cdef double[8] vs
    cdef double m0, m1, m2, m3
    if p.boxlike:
        if p.turned:
            d = m3_tmul(p.rotation, d)
        return (1 if d.x > 0.0 else 0) | (2 if d.y > 0.0 else 0) | (4 if d.z > 0.0 else 0)
    m = p.x[0] * d.x + p.y[0] * d.y + p.z[0] * d.z
    n = p.n & ~7
    for i in range(0, n, 8):
        for k in range(8):
            vs[k] = p.x[i + k] * d.x + p.y[i + k] * d.y + p.z[i + k] * d.z
        m0 = vs[0] if vs[0] > vs[4] else vs[4]
        m1 = vs[1] if vs[1] > vs[5] else vs[5]
        m2 = vs[2] if vs[2] > vs[6] else vs[6]
        m3 = vs[3] if vs[3] > vs[7] else vs[7]
        m0 = m0 if m0 > m2 else m2
        m1 = m1 if m1 > m3 else m3
        m0 = m0 if m0 > m1 else m1
        if m0 > m:
            m = m0
            for k in range(8):
                if vs[k] == m:
                    best = i + k
                    break
    for i in range(n, p.n):
        v = p.x[i] * d.x + p.y[i] * d.y + p.z[i] * d.z
        if v > m:
            m = v
            best = i
    return best


# Outward unit normal of a face, in the common frame.
cdef vec3 face_normal(const polytope* p, int32_t f) noexcept nogil
# Number of corners of a face, and the k-th of them, counter-clockwise from outside.
cdef inline int32_t face_size(const polytope* p, int32_t f) noexcept nogil:
    return p.n if p.flat else p.h.face_start[f + 1] - p.h.face_start[f]


cdef inline int32_t face_corner(const polytope* p, int32_t f, int32_t k) noexcept nogil:
    if p.flat:
        return k if f == 0 else p.n - 1 - k
    if p.mirrored:
        return p.h.face_vertices[p.h.face_start[f + 1] - 1 - k]
    return p.h.face_vertices[p.h.face_start[f] + k]


# Offset of a face along its normal: no vertex of it lies in front.
cdef double face_offset(const polytope* p, int32_t f, vec3 normal) noexcept nogil
# Both for all faces.
cdef void face_planes(const polytope* p, vec3* normals, double* offsets) noexcept nogil
# Ends of an edge, and the faces left and right of it seen from outside (-1: none).
cdef inline void edge_ends(const polytope* p, int32_t e, int32_t* u, int32_t* v) noexcept nogil:
    if p.flat:
        u[0] = e
        v[0] = e + 1 if e + 1 < p.n else 0
    else:
        u[0] = p.h.edges[2 * e]
        v[0] = p.h.edges[2 * e + 1]


cdef inline void edge_sides(const polytope* p, int32_t e, int32_t* left, int32_t* right) noexcept nogil:
    if p.flat:
        left[0] = 0 if p.n > 2 else -1
        right[0] = 1 if p.n > 2 else -1
    elif p.mirrored:
        left[0] = p.h.edge_faces[2 * e + 1]
        right[0] = p.h.edge_faces[2 * e]
    else:
        left[0] = p.h.edge_faces[2 * e]
        right[0] = p.h.edge_faces[2 * e + 1]


# The face whose normal is nearest to the direction, among all / among those at the given feature.
# Ties, within 1e-9: boxes y, then z, then x; else the lower number. -1 without faces.
cdef int32_t best_face(const polytope* p, vec3 direction) noexcept nogil
cdef int32_t best_face_at(const polytope* p, vec3 direction, int32_t feature) noexcept nogil
# Feature code (with indices of the polytope) of the smallest feature with the given 1 to 3
# vertices.
cdef int32_t feature_of(const polytope* p, const int32_t* vertices, int32_t count) noexcept nogil
# The same code with the user's numbers of the shape.
cdef int32_t public_feature(const polytope* p, int32_t feature) noexcept nogil
# Outward unit normal of a feature; zero without one (a point, the inside of a segment).
cdef vec3 feature_normal(const polytope* p, int32_t feature) noexcept nogil
