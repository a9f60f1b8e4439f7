# cython: language_level=3
"""Rays against shapes. See the header."""
from libc.math cimport sqrt

from pycct.geometry.closest cimport point_segment
from pycct.geometry.vec cimport v3, v3_abs, v3_dot, v3_len, v3_len2, v3_madd, v3_max_abs, v3_scale, v3_sub


cdef inline double _axis(vec3 v, int k) noexcept nogil:
    return v.x if k == 0 else (v.y if k == 1 else v.z)


cdef vec3 direction_of(vec3 v) noexcept nogil:
    cdef double m = v3_max_abs(v)
    v = v3(v.x / m, v.y / m, v.z / m)
    m = v3_len(v)
    return v3(v.x / m, v.y / m, v.z / m)


cdef ray ray_of(vec3 origin, vec3 dir) noexcept nogil:
    cdef ray r
    ray_set(&r, origin, dir)
    return r


cdef void ray_set(ray* r, vec3 origin, vec3 dir) noexcept nogil:
    cdef vec3 m = v3_abs(dir)
    r.origin = origin
    r.dir = dir
    r.kz = 0 if m.x >= m.y and m.x >= m.z else (1 if m.y >= m.z else 2)
    r.kx = (r.kz + 1) % 3
    r.ky = (r.kz + 2) % 3
    # The projected corners keep their sense of rotation, seen along the ray.
    if _axis(dir, r.kz) < 0.0:
        r.kx, r.ky = r.ky, r.kx
    r.sx = _axis(dir, r.kx) / _axis(dir, r.kz)
    r.sy = _axis(dir, r.ky) / _axis(dir, r.kz)


cdef double ray_triangle(const ray* r, const triangle* t, bint two_sided, bint* back) noexcept nogil:
    cdef vec3 a = v3_sub(t.a, r.origin), b = v3_sub(t.b, r.origin), c = v3_sub(t.c, r.origin)
    cdef double az = _axis(a, r.kz), bz = _axis(b, r.kz), cz = _axis(c, r.kz)
    cdef double ax = _axis(a, r.kx) - r.sx * az, ay = _axis(a, r.ky) - r.sy * az
    cdef double bx = _axis(b, r.kx) - r.sx * bz, by = _axis(b, r.ky) - r.sy * bz
    cdef double cx = _axis(c, r.kx) - r.sx * cz, cy = _axis(c, r.ky) - r.sy * cz
    cdef double u = bx * cy - by * cx, v = cx * ay - cy * ax, w = ax * by - ay * bx
    cdef double sum_ = u + v + w, nd, distance
    if sum_ == 0.0:
        return NO_HIT
    back[0] = sum_ > 0.0
    if back[0]:
        if not two_sided or u < 0.0 or v < 0.0 or w < 0.0:
            return NO_HIT
    elif u > 0.0 or v > 0.0 or w > 0.0:
        return NO_HIT
    # The plane is more exact, unless the triangle is so thin that its normal and its projection
    # face opposite ways.
    nd = v3_dot(t.n, r.dir)
    if nd != 0.0 and (nd > 0.0) == back[0]:
        distance = v3_dot(t.n, a) / nd
    else:
        distance = (u * az + v * bz + w * cz) / sum_ / _axis(r.dir, r.kz)
    return distance if distance >= 0.0 else NO_HIT


cdef double ray_capsule(vec3 origin, vec3 dir, vec3 a, vec3 b, double radius, vec3* normal,
                        bint* inside) noexcept nogil:
    cdef vec3 e = v3_sub(b, a), m = v3_sub(origin, a), w, d_perp, m_perp, end, centre
    cdef double l2 = v3_len2(e), k, nearest, disc, distance, s, best = NO_HIT
    cdef int i
    inside[0] = point_segment(origin, a, b).dist2 < radius * radius
    if inside[0]:
        normal[0] = v3(-dir.x, -dir.y, -dir.z)
        return 0.0
    # The side of the cylinder, if the ray enters it between the ends.
    if l2 > 0.0:
        d_perp = v3_madd(dir, e, -v3_dot(dir, e) / l2)
        k = v3_len2(d_perp)
        if k > 1e-18:
            m_perp = v3_madd(m, e, -v3_dot(m, e) / l2)
            nearest = -v3_dot(m_perp, d_perp) / k
            w = v3_madd(m_perp, d_perp, nearest)
            disc = radius * radius - v3_len2(w)
            if disc > 0.0:
                distance = nearest - sqrt(disc / k)
                s = v3_dot(m, e) + v3_dot(dir, e) * distance
                if distance >= 0.0 and 0.0 <= s <= l2:
                    best = distance
                    w = v3_madd(m_perp, d_perp, distance)
                    normal[0] = v3_scale(w, 1.0 / sqrt(v3_len2(w)))
    for i in range(2):
        end = b if i else a
        m = v3_sub(origin, end)
        nearest = -v3_dot(m, dir)
        if nearest <= 0.0:
            continue
        w = v3_madd(m, dir, nearest)
        disc = radius * radius - v3_len2(w)
        if disc <= 0.0:
            continue
        distance = nearest - sqrt(disc)
        if 0.0 <= distance < best:
            best = distance
            centre = v3_madd(m, dir, distance)
            normal[0] = v3_scale(centre, 1.0 / sqrt(v3_len2(centre)))
    return best


cdef double ray_plane(vec3 origin, vec3 dir, vec3 normal, double offset, bint* inside) noexcept nogil:
    cdef double h = v3_dot(normal, origin) - offset, nd = v3_dot(normal, dir)
    inside[0] = h < 0.0
    if inside[0]:
        return 0.0
    return h / -nd if nd < 0.0 else NO_HIT


cdef double ray_box(vec3 origin, vec3 dir, vec3 low, vec3 high, vec3* normal, bint* inside) noexcept nogil:
    cdef double[3] o
    cdef double[3] d
    cdef double[3] lo
    cdef double[3] hi
    cdef double enter = -1e300, leave = 1e300, near, far
    cdef int i, face = 0
    o[0], o[1], o[2] = origin.x, origin.y, origin.z
    d[0], d[1], d[2] = dir.x, dir.y, dir.z
    lo[0], lo[1], lo[2] = low.x, low.y, low.z
    hi[0], hi[1], hi[2] = high.x, high.y, high.z
    inside[0] = lo[0] < o[0] < hi[0] and lo[1] < o[1] < hi[1] and lo[2] < o[2] < hi[2]
    normal[0] = v3(-dir.x, -dir.y, -dir.z)
    if inside[0]:
        return 0.0
    for i in range(3):
        # A ray that lies in a face meets the faces beside it, as it meets the triangles of a mesh
        # at their edges.
        if d[i] == 0.0:
            if o[i] < lo[i] or o[i] > hi[i]:
                return NO_HIT
            continue
        near = ((lo[i] if d[i] > 0.0 else hi[i]) - o[i]) / d[i]
        far = ((hi[i] if d[i] > 0.0 else lo[i]) - o[i]) / d[i]
        if near > enter:
            enter = near
            face = i
        if far < leave:
            leave = far
    if not 0.0 <= enter <= leave:
        return NO_HIT
    normal[0] = v3(0.0, 0.0, 0.0)
    if face == 0:
        normal.x = -1.0 if d[0] > 0.0 else 1.0
    elif face == 1:
        normal.y = -1.0 if d[1] > 0.0 else 1.0
    else:
        normal.z = -1.0 if d[2] > 0.0 else 1.0
    return enter


cdef double ray_polytope(vec3 origin, vec3 dir, const triangle* tris, int n, vec3* normal, bint* inside) noexcept nogil:
    cdef double enter = -1e300, leave = 1e300, h, nd, distance
    cdef int i
    cdef bint within = n > 0
    normal[0] = v3(-dir.x, -dir.y, -dir.z)
    inside[0] = False
    for i in range(n):
        h = v3_dot(tris[i].n, v3_sub(origin, tris[i].a))
        nd = v3_dot(tris[i].n, dir)
        if h >= 0.0:
            within = False
            # In the plane of a face it may still meet the faces beside it.
            if nd > 0.0 or (nd == 0.0 and h > 0.0):
                return NO_HIT
        if nd < 0.0:
            distance = h / -nd
            if distance > enter:
                enter = distance
                normal[0] = tris[i].n
        elif nd > 0.0 and -h / nd < leave:
            leave = -h / nd
    inside[0] = within
    if within:
        normal[0] = v3(-dir.x, -dir.y, -dir.z)
        return 0.0
    return enter if 0.0 <= enter <= leave else NO_HIT
