# cython: language_level=3
"""Time of impact of two convex polytopes. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from pycct.convex.polytope cimport edge_ends, edge_sides, face_normal, face_offset, polytope, vertex_at
from pycct.geometry.vec cimport v3, v3_cross, v3_dot, v3_len2, v3_neg, v3_scale, v3_sub

# Squared sine below which two edges are parallel and make no face.
cdef double EDGES_PARALLEL2 = 1e-16
# A motion along a face within this neither enters nor leaves it.
cdef double ALONG = 1e-12
# Of the size: how deep such a motion may lie below the face and still only touch.
cdef double TOUCH = 1e-12


cdef void cast_body_of(cast_body* out, const polytope* p) noexcept nogil:
    cdef int32_t i, u, v, left, right
    out.p = p
    out.n_faces = p.n_faces
    out.n_edges = p.n_edges
    out.flat = p.flat or p.h.dimension < 3
    out.size = p.extent
    for i in range(p.n_faces):
        out.normal[i] = face_normal(p, i)
        out.offset[i] = face_offset(p, i, out.normal[i])
    for i in range(p.n_edges):
        edge_ends(p, i, &u, &v)
        edge_sides(p, i, &left, &right)
        out.base[i] = vertex_at(p, u)
        out.along[i] = v3_sub(vertex_at(p, v), out.base[i])
        # A segment's edge has no faces: every direction across it will do.
        out.left[i] = v3_cross(out.normal[left], out.along[i]) if left >= 0 else v3(0.0, 0.0, 0.0)
        out.right[i] = v3_cross(out.along[i], out.normal[right]) if right >= 0 else v3(0.0, 0.0, 0.0)


cdef struct passage:
    vec3 dir
    double touch        # m
    double limit
    double enter
    double leave
    double gap          # largest distance to any face at the start
    vec3 normal
    bint miss


cdef inline void _pass(passage* w, vec3 n, double gap) noexcept nogil:
    """Take one face of the difference into account: n points out of B, gap > 0: apart along it."""
    cdef double rate = v3_dot(n, w.dir), toi
    if gap > w.gap:
        w.gap = gap
    if rate < -ALONG:
        toi = gap / -rate
        if toi > w.enter:
            w.enter = toi
            w.normal = n
        if toi > w.limit:
            w.miss = True
    elif rate > ALONG:
        if gap > 0.0:
            w.miss = True
        elif -gap / rate < w.leave:
            w.leave = -gap / rate
    elif gap >= -w.touch:
        w.miss = True


cdef inline double _lowest(const polytope* p, vec3 n) noexcept nogil:
    cdef int32_t i
    cdef double best = v3_dot(n, vertex_at(p, 0)), x
    for i in range(1, p.n):
        x = v3_dot(n, vertex_at(p, i))
        if x < best:
            best = x
    return best


cdef inline double _gap(const cast_body* a, const cast_body* b, vec3 n) noexcept nogil:
    """How far A lies from B along n; negative: how deep it is in."""
    return _lowest(a.p, n) + _lowest(b.p, v3_neg(n))


cdef void _rims(passage* w, const cast_body* a, const cast_body* b, const cast_body* flat, vec3 plane) noexcept nogil:
    """The rims of a flat shape in the plane, which bound a difference that is flat itself."""
    cdef int32_t i
    cdef vec3 n
    cdef double m
    for i in range(flat.n_edges):
        n = v3_cross(flat.along[i], plane)
        m = v3_len2(n)
        if m > 0.0:
            n = v3_scale(n, 1.0 / sqrt(m))
            _pass(w, n, _gap(a, b, n))
            _pass(w, v3_neg(n), _gap(a, b, v3_neg(n)))


cdef bint cast_polytopes(const cast_body* a, const cast_body* b, vec3 dir, double limit, double* toi,
                         vec3* normal, bint* overlapping) noexcept nogil:
    cdef passage w
    cdef int32_t i, j
    cdef vec3 n, plane
    cdef double m, x, y, u, v
    cdef bint flat
    if a.p.n <= 2 and b.p.n <= 2:
        return False        # two lines: they meet nowhere or by chance
    w.dir = dir
    w.touch = TOUCH * (a.size + b.size)
    w.limit = limit
    w.enter = -1e300
    w.leave = 1e300
    w.gap = -1e300
    w.normal = v3_neg(dir)
    w.miss = False
    for i in range(b.n_faces):
        _pass(&w, b.normal[i], _lowest(a.p, b.normal[i]) - b.offset[i])
        if w.miss:
            return False
    for i in range(a.n_faces):
        _pass(&w, v3_neg(a.normal[i]), _lowest(b.p, a.normal[i]) - a.offset[i])
        if w.miss:
            return False
    for i in range(a.n_edges):
        for j in range(b.n_edges):
            n = v3_cross(a.along[i], b.along[j])
            # n out of B lies between the normals of the faces beside B's edge, and -n of A's;
            # or the other way about.
            x = v3_dot(n, b.left[j])
            y = v3_dot(n, b.right[j])
            if x * y < 0.0:
                continue
            u = v3_dot(n, a.left[i])
            v = v3_dot(n, a.right[i])
            if u * v < 0.0:
                continue
            m = v3_len2(n)
            if m <= EDGES_PARALLEL2 * v3_len2(a.along[i]) * v3_len2(b.along[j]) or m <= 0.0:
                continue
            n = v3_scale(n, 1.0 / sqrt(m))
            if x <= 0.0 and y <= 0.0 and u >= 0.0 and v >= 0.0:
                _edges(&w, a, b, n, v3_sub(a.base[i], b.base[j]))
            if x >= 0.0 and y >= 0.0 and u <= 0.0 and v <= 0.0:
                _edges(&w, a, b, v3_neg(n), v3_sub(a.base[i], b.base[j]))
            if w.miss:
                return False
    flat = a.flat and b.flat
    if flat:
        # Where the difference is flat as well, its rim decides.
        plane = a.normal[0] if a.n_faces > 0 else b.normal[0]
        _rims(&w, a, b, a, plane)
        _rims(&w, a, b, b, plane)
        if w.miss:
            return False
    overlapping[0] = w.gap < 0.0
    if overlapping[0]:
        toi[0] = 0.0
        normal[0] = v3_neg(dir)
        return True
    if not (w.enter >= 0.0 and (w.enter < w.leave or (flat and w.enter <= w.leave + w.touch))):
        return False
    toi[0] = w.enter
    normal[0] = w.normal
    return True


cdef inline void _edges(passage* w, const cast_body* a, const cast_body* b, vec3 n, vec3 between) noexcept nogil:
    """The face that two edges span. Measured in full only where it may change the answer."""
    cdef double gap = v3_dot(n, between), rate = v3_dot(n, w.dir)
    if gap <= w.gap and ((rate < -ALONG and gap / -rate <= w.enter) or (rate > ALONG and -gap / rate >= w.leave)):
        return
    _pass(w, n, _gap(a, b, n))
