"""Convex hulls: exact decisions about the shape, tolerant merging of faces.

The points are shifted and scaled to whole numbers below 2^52, so that the side of a plane is
decided without error (in float64 where its error bound allows, else in integers). Quickhull then
builds a closed, convex triangulation for any input. Afterwards, triangles that lie in one plane
within TOLERANCE become one face.
"""
cimport cython
from libc.math cimport fabs, floor, frexp, ldexp, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from pycct.convex.outline cimport as_points, outline_build, outline_item
from pycct.geometry.vec cimport v3, v3_cross, v3_dot, v3_len, v3_load, v3_scale, v3_sub, vec3

# Share of the diagonal. Coordinates rounded to float32 move by up to 2^-24 of the largest one, and
# the fourth corner of a square by up to four times that out of the plane of the other three: 1e-7
# merges such faces. It is also below the resolution of any character (1 mm on 10 km).
TOLERANCE = 1e-7
# Upper limit of the tolerance, as a share of the solid's thickness, so that faces still bound it.
THIN = 1e-3
# Most points before faces are merged. Hulls with more points never end below 255 vertices in
# practice.
cdef int32_t MAX_WORK = 2048


# Placeholder for the points of tables that are filled afterwards.
cdef object EMPTY = object()


cdef struct qface:
    int32_t v[3]
    int32_t nb[3]           # face across the edge v[i] -> v[i + 1]
    bint alive
    bint seen               # visible from the point being added
    int32_t head            # list of points outside this face, -1: none
    int32_t far_point       # the farthest of them
    double far_distance
    vec3 n                  # unit normal
    int32_t region


@cython.final
cdef class _Work:
    """Memory of one build; freed with the object."""
    cdef double* p          # whole numbers
    cdef int32_t n
    cdef qface* faces
    cdef int32_t n_faces    # used slots
    cdef int32_t cap_faces
    cdef int32_t* next_point
    cdef int32_t* at_vertex
    cdef double tolerance

    def __dealloc__(self):
        free(self.p)
        free(self.faces)
        free(self.next_point)
        free(self.at_vertex)

    cdef inline vec3 point(self, int32_t i) noexcept:
        return v3_load(self.p + 3 * i)

    cdef int side(self, int32_t a, int32_t b, int32_t c, int32_t d) except -2:
        """1: d is in front of the triangle abc, 0: in its plane, -1: behind; exact."""
        cdef vec3 o = self.point(a)
        cdef vec3 u = v3_sub(self.point(b), o)
        cdef vec3 v = v3_sub(self.point(c), o)
        cdef vec3 w = v3_sub(self.point(d), o)
        # The differences are exact. Error bound of the sum below: Shewchuk's orient3d, stage A.
        cdef double xy = u.x * v.y, yx = u.y * v.x, yz = u.y * v.z, zy = u.z * v.y, zx = u.z * v.x, xz = u.x * v.z
        cdef double det = (yz - zy) * w.x + (zx - xz) * w.y + (xy - yx) * w.z
        cdef double bound = ((fabs(yz) + fabs(zy)) * fabs(w.x) + (fabs(zx) + fabs(xz)) * fabs(w.y)
                             + (fabs(xy) + fabs(yx)) * fabs(w.z)) * 8e-16
        if det > bound:
            return 1
        if -det > bound:
            return -1
        ux, uy, uz = <int64_t>u.x, <int64_t>u.y, <int64_t>u.z
        vx, vy, vz = <int64_t>v.x, <int64_t>v.y, <int64_t>v.z
        wx, wy, wz = <int64_t>w.x, <int64_t>w.y, <int64_t>w.z
        exact = (uy * vz - uz * vy) * wx + (uz * vx - ux * vz) * wy + (ux * vy - uy * vx) * wz
        return (exact > 0) - (exact < 0)

    cdef int32_t new_face(self, int32_t a, int32_t b, int32_t c) except -1:
        cdef int32_t i
        cdef qface* f
        cdef double m
        for i in range(self.n_faces):
            if not self.faces[i].alive:
                break
        else:
            i = self.n_faces
            if i == self.cap_faces:
                raise ValueError("points have more than 255 hull vertices")
            self.n_faces += 1
        f = &self.faces[i]
        f.v[0] = a
        f.v[1] = b
        f.v[2] = c
        f.nb[0] = f.nb[1] = f.nb[2] = -1
        f.alive = True
        f.seen = False
        f.head = f.far_point = -1
        f.far_distance = 0.0
        f.region = -1
        f.n = v3_cross(v3_sub(self.point(b), self.point(a)), v3_sub(self.point(c), self.point(a)))
        m = v3_len(f.n)
        f.n = v3_scale(f.n, 1.0 / m) if m > 0.0 else v3(0.0, 0.0, 0.0)
        return i

    cdef inline double height(self, int32_t f, int32_t p) noexcept:
        """Distance of a point in front of a face."""
        return v3_dot(self.faces[f].n, v3_sub(self.point(p), self.point(self.faces[f].v[0])))

    cdef void hand_out(self, int32_t p, int32_t* faces, int32_t count) noexcept:
        """Add the point to the list of the face that it is farthest in front of, or drop it."""
        cdef int32_t k, best = -1
        cdef double d, best_d = self.tolerance
        for k in range(count):
            d = self.height(faces[k], p)
            if d > best_d:
                best_d = d
                best = faces[k]
        if best < 0:
            return
        self.next_point[p] = self.faces[best].head
        self.faces[best].head = p
        if (best_d > self.faces[best].far_distance
                or (best_d == self.faces[best].far_distance and p < self.faces[best].far_point)):
            self.faces[best].far_distance = best_d
            self.faces[best].far_point = p


cdef int32_t _farthest(_Work w, int32_t a, int32_t b, int32_t c, double* distance) noexcept:
    """Point farthest from point a (b < 0), line ab (c < 0) or plane abc; the first of equals."""
    cdef int32_t i, best = 0
    cdef double d, best_d = -1.0, m
    cdef vec3 o = w.point(a), u, n
    if b >= 0:
        u = v3_sub(w.point(b), o)
        u = v3_scale(u, 1.0 / v3_len(u))
    if c >= 0:
        n = v3_cross(u, v3_sub(w.point(c), o))
        m = v3_len(n)
        n = v3_scale(n, 1.0 / m)
    for i in range(w.n):
        if b < 0:
            d = v3_len(v3_sub(w.point(i), o))
        elif c < 0:
            d = v3_len(v3_cross(u, v3_sub(w.point(i), o)))
        else:
            d = fabs(v3_dot(n, v3_sub(w.point(i), o)))
        if d > best_d:
            best_d = d
            best = i
    distance[0] = best_d
    return best


cdef int _add_point(_Work w, int32_t start, int32_t p, int32_t* stack, int32_t* fresh) except -1:
    """Replace the faces that see p by faces from their outline to p. `start` is one of them."""
    cdef int32_t top = 1, n_seen = 1, n_fresh = 0, i, k, f, g, q, nxt, slot
    cdef qface* face
    cdef list seen = [start]
    stack[0] = start
    w.faces[start].seen = True
    while top > 0:
        top -= 1
        f = stack[top]
        for i in range(3):
            g = w.faces[f].nb[i]
            if w.faces[g].seen:
                continue
            if w.side(w.faces[g].v[0], w.faces[g].v[1], w.faces[g].v[2], p) > 0:
                w.faces[g].seen = True
                seen.append(g)
                stack[top] = g
                top += 1
    n_seen = <int32_t>len(seen)
    for k in range(n_seen):
        f = seen[k]
        for i in range(3):
            g = w.faces[f].nb[i]
            if w.faces[g].seen:
                continue
            q = w.faces[f].v[i]
            nxt = w.faces[f].v[(i + 1) % 3]
            slot = w.new_face(q, nxt, p)
            w.faces[slot].nb[0] = g
            face = &w.faces[g]
            if face.v[0] == nxt and face.v[1] == q:
                face.nb[0] = slot
            elif face.v[1] == nxt and face.v[2] == q:
                face.nb[1] = slot
            else:
                face.nb[2] = slot
            w.at_vertex[q] = slot
            fresh[n_fresh] = slot
            n_fresh += 1
    for k in range(n_fresh):
        f = fresh[k]
        g = w.at_vertex[w.faces[f].v[1]]
        w.faces[f].nb[1] = g
        w.faces[g].nb[2] = f
    for k in range(n_seen):
        f = seen[k]
        q = w.faces[f].head
        while q >= 0:
            nxt = w.next_point[q]
            if q != p:
                w.hand_out(q, fresh, n_fresh)
            q = nxt
    for k in range(n_seen):
        w.faces[<int32_t>seen[k]].alive = False
        w.faces[<int32_t>seen[k]].seen = False
    return 0


cdef int _quickhull(_Work w, int32_t a, int32_t b, int32_t c, int32_t d) except -1:
    cdef int32_t first[4]
    cdef int32_t i, k, f, best, p, added = 4
    cdef int32_t corners[12]
    if w.side(a, b, c, d) > 0:
        b, c = c, b
    corners[:] = [a, b, c, b, a, d, c, b, d, a, c, d]
    for k in range(4):
        first[k] = w.new_face(corners[3 * k], corners[3 * k + 1], corners[3 * k + 2])
    for k in range(4):
        for i in range(3):
            for f in range(4):
                for p in range(3):
                    if (w.faces[first[f]].v[p] == w.faces[first[k]].v[(i + 1) % 3]
                            and w.faces[first[f]].v[(p + 1) % 3] == w.faces[first[k]].v[i]):
                        w.faces[first[k]].nb[i] = first[f]
    for i in range(w.n):
        if i != a and i != b and i != c and i != d:
            w.hand_out(i, first, 4)
    cdef int32_t* scratch = <int32_t*>malloc(2 * w.cap_faces * sizeof(int32_t))
    if scratch == NULL:
        raise MemoryError
    try:
        while True:
            best = -1
            for f in range(w.n_faces):
                if w.faces[f].alive and w.faces[f].far_point >= 0:
                    if best < 0 or w.faces[f].far_distance > w.faces[best].far_distance or (
                            w.faces[f].far_distance == w.faces[best].far_distance
                            and w.faces[f].far_point < w.faces[best].far_point):
                        best = f
            if best < 0:
                return 0
            p = w.faces[best].far_point
            if w.side(w.faces[best].v[0], w.faces[best].v[1], w.faces[best].v[2], p) <= 0:
                # Only a sliver with a badly rounded normal gets here; it gains nothing from the
                # point.
                w.faces[best].head = w.faces[best].far_point = -1
                continue
            added += 1
            if added > MAX_WORK:
                raise ValueError("points have more than 255 hull vertices")
            _add_point(w, best, p, scratch, scratch + w.cap_faces)
    finally:
        free(scratch)


cdef list _alive(_Work w):
    """Faces, the largest first; equal ones are ordered by their vertices."""
    cdef int32_t f
    out = []
    for f in range(w.n_faces):
        if w.faces[f].alive:
            a, b, c = w.faces[f].v[0], w.faces[f].v[1], w.faces[f].v[2]
            area = v3_len(v3_cross(v3_sub(w.point(b), w.point(a)), v3_sub(w.point(c), w.point(a))))
            out.append((-area, min(a, b, c), max(a, b, c), a + b + c, f))
    out.sort()
    return [item[4] for item in out]


cdef bint _in_plane(_Work w, int32_t seed, int32_t f, double tolerance) except? -1:
    cdef int32_t i
    if v3_dot(w.faces[seed].n, w.faces[f].n) <= 0.0:
        return False
    for i in range(3):
        if tolerance > 0.0:
            if fabs(w.height(seed, w.faces[f].v[i])) > tolerance:
                return False
        elif w.side(w.faces[seed].v[0], w.faces[seed].v[1], w.faces[seed].v[2], w.faces[f].v[i]) != 0:
            return False
    return True


cdef double _off_line(_Work w, int32_t a, int32_t b, int32_t p) noexcept:
    cdef vec3 u = v3_sub(w.point(b), w.point(a))
    return v3_len(v3_cross(v3_scale(u, 1.0 / v3_len(u)), v3_sub(w.point(p), w.point(a))))


cdef object _merge(_Work w, list order, double tolerance):
    """Faces as [(seed, loop of vertices)], or None if a merged face is not convex."""
    cdef int32_t f, g, i, region = 0, seed
    cdef vec3 n, u
    for f in order:
        w.faces[f].region = -1
    seeds = []
    for seed in order:
        if w.faces[seed].region >= 0:
            continue
        w.faces[seed].region = region
        stack = [seed]
        while stack:
            f = stack.pop()
            for i in range(3):
                g = w.faces[f].nb[i]
                if w.faces[g].region < 0 and _in_plane(w, seed, g, tolerance):
                    w.faces[g].region = region
                    stack.append(g)
        seeds.append(seed)
        region += 1

    after = [{} for _ in seeds]     # boundary of each region: vertex -> next vertex
    for f in order:
        for i in range(3):
            if w.faces[w.faces[f].nb[i]].region != w.faces[f].region:
                ring = after[w.faces[f].region]
                if w.faces[f].v[i] in ring:
                    return None
                ring[w.faces[f].v[i]] = w.faces[f].v[(i + 1) % 3]
    loops = []
    around = {}                     # vertex -> number of faces around it
    for ring in after:
        if len(ring) < 3:
            return None
        v = start = min(ring)
        loop = []
        while True:
            loop.append(v)
            around[v] = around.get(v, 0) + 1
            v = ring.get(v, -1)
            if v == start:
                break
            if v < 0 or len(loop) > len(ring):
                return None
        if len(loop) != len(ring):
            return None             # a hole
        loops.append(loop)

    # A vertex of only two faces lies on their common edge; it is removed if it is in line.
    keep = {v for v, count in around.items() if count > 2}
    for loop in loops:
        if sum(v in keep for v in loop) < 3:
            keep.update(loop)
    for loop in loops:
        corners = [k for k, v in enumerate(loop) if v in keep and around[v] > 2]
        for k, at in enumerate(corners):
            to = corners[(k + 1) % len(corners)]
            chain = loop[at + 1:to] if to > at else loop[at + 1:] + loop[:to]
            if not chain:
                continue
            a, b = min(loop[at], loop[to]), max(loop[at], loop[to])
            if a == b or any(v in keep for v in chain) or any(_off_line(w, a, b, v) > 4.0 * tolerance for v in chain):
                keep.update(chain)
    faces = []
    for seed, loop in zip(seeds, loops):
        loop = [v for v in loop if v in keep]
        if len(loop) < 3:
            return None
        n = w.faces[seed].n
        for k in range(len(loop)):
            a, b, c = loop[k], loop[(k + 1) % len(loop)], loop[(k + 2) % len(loop)]
            u = v3_cross(v3_sub(w.point(c), w.point(a)), n)
            if v3_dot(u, v3_sub(w.point(b), w.point(a))) < -4.0 * tolerance * v3_len(u) and tolerance > 0.0:
                return None
        faces.append((seed, loop))
    return faces


cdef object _faces_of_solid(_Work w, int32_t a, int32_t b, int32_t c, int32_t d):
    """Merged faces [(unit normal, loop)] of a solid."""
    cdef int32_t seed
    cdef vec3 n
    _quickhull(w, a, b, c, d)
    order = _alive(w)
    for factor in (1.0, 0.1, 0.01, 1e-4, 0.0):
        faces = _merge(w, order, w.tolerance * factor)
        if faces is not None and len({v for _, loop in faces for v in loop}) <= HULL_MAX_VERTICES:
            break
    else:
        raise ValueError("points have more than 255 hull vertices")
    out = []
    for seed, loop in faces:
        n = w.faces[seed].n
        out.append(((n.x, n.y, n.z), loop))
    return out


cdef object _faces_of_polygon(_Work w, int32_t a, int32_t b, int32_t c):
    """Front and back [(unit normal, loop)] of points in a plane."""
    cdef vec3 n = v3_cross(v3_sub(w.point(b), w.point(a)), v3_sub(w.point(c), w.point(a)))
    cdef int32_t capacity = HULL_MAX_VERTICES + 1
    cdef int32_t out[HULL_MAX_VERTICES + 2]
    cdef int32_t i, count
    cdef outline_item* scratch = <outline_item*>malloc(w.n * sizeof(outline_item))
    if scratch == NULL:
        raise MemoryError
    n = v3_scale(n, 1.0 / v3_len(n))
    count = outline_build(w.p, w.n, n, capacity, w.tolerance, out, scratch)
    free(scratch)
    if count > HULL_MAX_VERTICES:
        raise ValueError("points have more than 255 hull vertices")
    loop = [out[i] for i in range(count)]
    # The start may be almost in line and then ends on an edge.
    changed = True
    while changed and len(loop) > 3:
        changed = False
        corners = zip(loop, loop[1:] + loop[:1], loop[2:] + loop[:2])
        worst = min((_off_line(w, min(u, v), max(u, v), p), p) for u, p, v in corners)
        if worst[0] <= w.tolerance:
            loop.remove(worst[1])
            changed = True
    return [((n.x, n.y, n.z), loop), ((-n.x, -n.y, -n.z), list(reversed(loop)))]


cdef object _whole_numbers(double[:, ::1] points, _Work w):
    """Fill w.p; return the exponent of the scale."""
    cdef Py_ssize_t i
    cdef int k, e
    cdef double lo[3]
    cdef double hi[3]
    cdef double extent = 0.0
    for k in range(3):
        lo[k] = hi[k] = points[0, k]
        for i in range(points.shape[0]):
            lo[k] = points[i, k] if points[i, k] < lo[k] else lo[k]
            hi[k] = points[i, k] if points[i, k] > hi[k] else hi[k]
        extent = hi[k] - lo[k] if hi[k] - lo[k] > extent else extent
    if extent - extent != 0.0 or extent > 1e150 or (extent > 0.0 and extent < 1e-150):
        raise ValueError("points must have an extent between 1e-150 and 1e150")
    frexp(extent, &e)
    w.n = <int32_t>points.shape[0]
    w.p = <double*>malloc(3 * w.n * sizeof(double))
    if w.p == NULL:
        raise MemoryError
    for i in range(w.n):
        for k in range(3):
            w.p[3 * i + k] = floor(ldexp(points[i, k] - lo[k], 52 - e) + 0.5)
    return None


cdef object _hull_faces(double[:, ::1] points):
    """(dimension, faces as [(unit normal, loop)], point indices if there are no faces)."""
    cdef _Work w = _Work()
    cdef int32_t a, b, c, d
    cdef double reach, off
    _whole_numbers(points, w)
    a = _farthest(w, 0, -1, -1, &reach)
    if reach <= 0.0:
        return 0, [], [0]
    b = _farthest(w, a, -1, -1, &reach)
    w.tolerance = TOLERANCE * _diagonal(w.p, w.n)
    c = _farthest(w, a, b, -1, &off)
    if off <= w.tolerance:
        return 1, [], [min(a, b), max(a, b)]
    d = _farthest(w, a, b, c, &off)
    if off <= w.tolerance:
        return 2, _faces_of_polygon(w, a, b, c), []
    w.cap_faces = 4 * MAX_WORK
    w.faces = <qface*>calloc(w.cap_faces, sizeof(qface))
    w.next_point = <int32_t*>malloc(w.n * sizeof(int32_t))
    w.at_vertex = <int32_t*>malloc(w.n * sizeof(int32_t))
    if w.faces == NULL or w.next_point == NULL or w.at_vertex == NULL:
        raise MemoryError
    w.tolerance = min(w.tolerance, THIN * off)
    return 3, _faces_of_solid(w, a, b, c, d), []


cdef double _diagonal(const double* p, Py_ssize_t n) noexcept:
    cdef double lo, hi, sum2 = 0.0
    cdef Py_ssize_t i
    cdef int k
    for k in range(3):
        lo = hi = p[k]
        for i in range(n):
            lo = p[3 * i + k] if p[3 * i + k] < lo else lo
            hi = p[3 * i + k] if p[3 * i + k] > hi else hi
        sum2 += (hi - lo) * (hi - lo)
    return sqrt(sum2)


@cython.final
cdef class HullTables:
    """Convex hull of points: vertices, edges, faces and their neighbours.

    Parameters
    ----------
    points : array_like, shape (n, 3)
        Points (m). At most 255 of them may be corners of the hull.

    Raises
    ------
    ValueError
        If `points` is empty, not (n, 3), not finite, or has more than 255 corners.

    Notes
    -----
    The same points in another order, or with duplicates, return the same tables to the bit. Corners
    are input points, unchanged, in lexicographic order. Points within 1e-7 of the diagonal of one
    plane share a face, and no point is in front of any face. Immutable; safe to share between
    threads.
    """

    def __cinit__(self, points):
        if points is EMPTY:
            return
        array = as_points(points)
        order = np.lexsort((array[:, 2], array[:, 1], array[:, 0]))
        array = array[order]
        if len(array) > 1:
            array = np.ascontiguousarray(array[np.r_[True, (array[1:] != array[:len(array) - 1]).any(axis=1)]])
        dimension, faces, rest = _hull_faces(array)
        self._fill(array, dimension, faces, rest, None)

    def __dealloc__(self):
        free(self._block)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _tables_of_record, hull_record(self)

    cdef int _fill(self, double[:, ::1] points, int dimension, list faces, list rest, object extent) except -1:
        """A face is (normal, loop) or (plane, loop); the default extent is that of the points."""
        used = sorted({v for _, loop in faces for v in loop} | set(rest))
        number = {v: k for k, v in enumerate(used)}
        turned = []
        for normal, loop in faces:
            loop = [number[v] for v in loop]
            first = loop.index(min(loop))
            turned.append((loop[first:] + loop[:first], normal))
        turned.sort()
        faces = [loop for loop, _ in turned]

        outlines = [_outline_along(points, used, axis) for axis in range(3)]
        rows = _adjacency(faces, <int>len(used), dimension, outlines)
        cdef Py_ssize_t n_doubles = 3 * len(used) + 4 * len(faces)
        cdef Py_ssize_t n_ints = sum(len(row) for row in rows)
        self._block = malloc(n_doubles * sizeof(double) + n_ints * sizeof(int32_t))
        if self._block == NULL:
            raise MemoryError
        cdef double* at = <double*>self._block
        cdef Py_ssize_t i, j
        cdef int k3
        cdef double offset, off
        cdef vec3 n
        self.data.vertices = at
        for i in used:
            for k3 in range(3):
                at[k3] = points[i, k3]
            at += 3
        self.data.planes = at
        for _, normal in turned:
            n = v3(normal[0] + 0.0, normal[1] + 0.0, normal[2] + 0.0)
            if len(normal) == 4:
                offset = normal[3]
            else:
                offset = v3_dot(n, v3_load(&points[0, 0]))
                for j in range(points.shape[0]):
                    off = v3_dot(n, v3_load(&points[j, 0]))
                    offset = off if off > offset else offset
            at[0], at[1], at[2], at[3] = n.x, n.y, n.z, offset
            at += 4
        cdef int32_t* ints = <int32_t*>at
        cdef int32_t* start[12]
        for i in range(12):
            start[i] = ints
            for value in rows[i]:
                ints[0] = value
                ints += 1
        self.data.dimension = dimension
        self.data.n_vertices = <int32_t>len(used)
        self.data.n_edges = <int32_t>(len(rows[0]) // 2)
        self.data.n_faces = <int32_t>len(faces)
        self.data.n_triangles = <int32_t>len(rows[6])
        self.data.edges = start[0]
        self.data.edge_faces = start[1]
        self.data.face_start = start[2]
        self.data.face_vertices = start[3]
        self.data.face_edges = start[4]
        self.data.triangles = start[5]
        self.data.triangle_face = start[6]
        self.extra.vertex_face_start = start[7]
        self.extra.vertex_faces = start[8]
        self.extra.vertex_edge_start = start[9]
        self.extra.vertex_edges = start[10]
        self.extra.outline_vertices = start[11]
        self.extra.outline_start[0] = 0
        for k3 in range(3):
            self.extra.outline_start[k3 + 1] = self.extra.outline_start[k3] + <int32_t>len(outlines[k3])
        self.extent_ = _diagonal(&points[0, 0], points.shape[0]) if extent is None else extent
        self.volume_ = _volume(&self.data) if dimension == 3 else 0.0
        return 0

    @property
    def extent(self):
        """Diagonal of the bounding box of the points (m)."""
        return self.extent_

    @property
    def volume(self):
        """Volume (m^3), 0 below dimension 3."""
        return self.volume_

    @property
    def dimension(self):
        """0 point, 1 segment, 2 polygon, 3 solid."""
        return self.data.dimension

    @property
    def vertices(self):
        """Corners in lexicographic order, (n, 3) float64, a copy."""
        return _doubles(self.data.vertices, self.data.n_vertices, 3)

    @property
    def planes(self):
        """Outward unit normal and offset of each face, (n, 4) float64, a copy."""
        return _doubles(self.data.planes, self.data.n_faces, 4)

    @property
    def faces(self):
        """Vertex indices of each face, counter-clockwise from outside, as a list of tuples."""
        return _rows(self.data.face_start, self.data.face_vertices, self.data.n_faces)

    @property
    def face_edges(self):
        """Edge indices of each face, corner to next corner, as a list of tuples."""
        return _rows(self.data.face_start, self.data.face_edges, self.data.n_faces)

    @property
    def edges(self):
        """Vertex indices of each edge, the smaller first, (n, 2) int32, a copy."""
        return _ints(self.data.edges, self.data.n_edges, 2)

    @property
    def edge_faces(self):
        """Faces of each edge, first the one that runs it forwards, (n, 2) int32, a copy; -1 on a
        segment.
        """
        return _ints(self.data.edge_faces, self.data.n_edges, 2)

    @property
    def triangles(self):
        """Faces cut into fans, vertex indices, (n, 3) int32, a copy."""
        return _ints(self.data.triangles, self.data.n_triangles, 3)

    @property
    def triangle_face(self):
        """Face of each triangle, (n,) int32, a copy."""
        return _ints(self.data.triangle_face, self.data.n_triangles, 1)[:, 0]

    @property
    def vertex_faces(self):
        """Faces around each vertex, ascending, as a list of tuples."""
        return _rows(self.extra.vertex_face_start, self.extra.vertex_faces, self.data.n_vertices)

    @property
    def vertex_edges(self):
        """Edges at each vertex, ascending, as a list of tuples."""
        return _rows(self.extra.vertex_edge_start, self.extra.vertex_edges, self.data.n_vertices)

    @property
    def outlines(self):
        """Corners of the hull flattened along x, y and z, counter-clockwise around that axis: three
        tuples.
        """
        return tuple(_rows(self.extra.outline_start, self.extra.outline_vertices, 3))


cdef HullTables build_hull(object points):
    return HullTables(points)


cdef tuple hull_record(HullTables tables):
    cdef const hull_data* h = &tables.data
    starts = _ints(h.face_start, h.n_faces + 1, 1)[:, 0]
    return (h.dimension, tables.vertices, tables.planes, starts, _ints(h.face_vertices, starts[h.n_faces], 1)[:, 0],
            tables.extent_)


cdef HullTables hull_again(int dimension, object vertices, object planes, object starts, object corners, double extent):
    cdef HullTables tables = HullTables.__new__(HullTables, EMPTY)
    cdef Py_ssize_t n
    # A record is untrusted, and all of it is checked.
    vertices = np.ascontiguousarray(vertices, np.float64)
    planes = np.ascontiguousarray(planes, np.float64)
    starts = np.ascontiguousarray(starts, np.int32)
    corners = np.ascontiguousarray(corners, np.int32)
    if not (vertices.ndim == planes.ndim == 2 and starts.ndim == corners.ndim == 1 and vertices.shape[1] == 3
            and planes.shape[1] == 4 and len(starts) >= 1):
        raise ValueError("a hull's tables have other shapes than (n, 3), (faces, 4), (faces + 1,), (corners,)")
    n = len(vertices)
    bounds = starts.tolist()
    loops = [corners[a:b].tolist() for a, b in zip(bounds, bounds[1:])] if bounds[0] == 0 else []
    sides = [side for loop in loops for side in zip(loop, loop[1:] + loop[:1])]
    if not (
        # Solids and polygons are closed: each edge is used once in each direction, and no corner is
        # left over.
        sum(map(len, loops)) == len(corners) and len(loops) == len(planes)
        and all(len(set(loop)) == len(loop) >= 3 for loop in loops)
        and len(set(sides)) == len(sides) and {(v, u) for u, v in sides} == set(sides)
        and {v for v, _ in sides} == (set(range(n)) if dimension >= 2 else set())
        and (0 <= dimension <= 1 and n == dimension + 1 or dimension == 2 and len(loops) == 2 and n <= 255
             or dimension == 3 and 4 <= n <= 255 and n + len(loops) == len(sides) // 2 + 2)
        and np.isfinite(vertices).all() and np.isfinite(planes).all() and 0.0 <= extent < np.inf
    ):
        raise ValueError("a hull is not closed")
    rest = list(range(n)) if dimension < 2 else []
    tables._fill(vertices, dimension, list(zip(planes.tolist(), loops)), rest, extent)
    return tables


def _tables_of_record(dimension, vertices, planes, starts, corners, extent):
    """Pickled HullTables, because hulls of their corners alone could have other faces."""
    return hull_again(dimension, vertices, planes, starts, corners, extent)


cdef list _adjacency(list faces, int n_vertices, int dimension, list outlines):
    """Return the lists of indices of a solid, in the order in which `_fill` stores them."""
    sides = {}                  # (low, high) -> [face that runs low to high, the other]
    for f, loop in enumerate(faces):
        for k, v in enumerate(loop):
            u = loop[(k + 1) % len(loop)]
            sides.setdefault((min(v, u), max(v, u)), [-1, -1])[0 if v < u else 1] = f
    if dimension == 1:
        sides[0, 1] = [-1, -1]
    edges = sorted(sides)
    edge_number = {e: k for k, e in enumerate(edges)}
    triangles = [(loop[0], loop[k], loop[k + 1], f)
                 for f, loop in enumerate(faces) for k in range(1, len(loop) - 1)]
    vertex_faces = [[] for _ in range(n_vertices)]
    vertex_edges = [[] for _ in range(n_vertices)]
    for f, loop in enumerate(faces):
        for v in loop:
            vertex_faces[v].append(f)
    for e, (u, v) in enumerate(edges):
        vertex_edges[u].append(e)
        vertex_edges[v].append(e)

    corners = [v for loop in faces for v in loop]
    return [
        [v for e in edges for v in e],
        [f for e in edges for f in sides[e]],
        _starts(faces),
        corners,
        [edge_number[min(v, loop[(k + 1) % len(loop)]), max(v, loop[(k + 1) % len(loop)])]
         for loop in faces for k, v in enumerate(loop)],
        [v for t in triangles for v in t[:3]],
        [t[3] for t in triangles],
        _starts(vertex_faces),
        [f for row in vertex_faces for f in row],
        _starts(vertex_edges),
        [e for row in vertex_edges for e in row],
        [v for row in outlines for v in row],
    ]


cdef list _starts(list rows):
    total = 0
    out = [0]
    for row in rows:
        total += len(row)
        out.append(total)
    return out


cdef list _outline_along(double[:, ::1] points, list used, int axis):
    """Corners, as indices into `used`, of the points flattened along an axis."""
    cdef int32_t n = <int32_t>len(used)
    cdef double* flat = <double*>malloc(3 * n * sizeof(double))
    cdef outline_item* scratch = <outline_item*>malloc(n * sizeof(outline_item))
    cdef int32_t* out = <int32_t*>malloc((n + 2) * sizeof(int32_t))
    cdef int32_t i, count
    cdef int k
    try:
        if flat == NULL or scratch == NULL or out == NULL:
            raise MemoryError
        for i in range(n):
            for k in range(3):
                flat[3 * i + k] = 0.0 if k == axis else points[used[i], k]
        count = outline_build(flat, n, v3(axis == 0, axis == 1, axis == 2), n + 2,
                              1e-12 * _diagonal(flat, n), out, scratch)
        loop = [out[i] for i in range(count)]
    finally:
        free(flat)
        free(scratch)
        free(out)
    first = loop.index(min(loop))
    return loop[first:] + loop[:first]


cdef double _volume(const hull_data* h) noexcept:
    cdef double six = 0.0
    cdef int32_t i
    cdef vec3 o = v3_load(h.vertices), a, b, c
    for i in range(h.n_triangles):
        a = v3_sub(v3_load(h.vertices + 3 * h.triangles[3 * i]), o)
        b = v3_sub(v3_load(h.vertices + 3 * h.triangles[3 * i + 1]), o)
        c = v3_sub(v3_load(h.vertices + 3 * h.triangles[3 * i + 2]), o)
        six += v3_dot(v3_cross(a, b), c)
    return six / 6.0


cdef object _doubles(const double* p, Py_ssize_t n, Py_ssize_t m):
    out = np.empty((n, m))
    cdef double[:, ::1] view
    if n:
        view = out
        memcpy(&view[0, 0], p, n * m * sizeof(double))
    return out


cdef object _ints(const int32_t* p, Py_ssize_t n, Py_ssize_t m):
    out = np.empty((n, m), dtype=np.int32)
    cdef int32_t[:, ::1] view
    if n:
        view = out
        memcpy(&view[0, 0], p, n * m * sizeof(int32_t))
    return out


cdef list _rows(const int32_t* start, const int32_t* values, Py_ssize_t n):
    cdef Py_ssize_t i
    cdef int32_t k
    return [tuple([values[k] for k in range(start[i], start[i + 1])]) for i in range(n)]
