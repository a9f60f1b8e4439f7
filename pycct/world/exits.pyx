# cython: language_level=3
"""Ways out of the candidates of overlap recovery. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from pycct.geometry.closest cimport point_segment, segment_segment, segment_triangle
from pycct.geometry.exits cimport (
    REACH,
    crosses_face,
    hull_edge,
    hull_exit,
    hull_faces,
    is_no_push,
    surface_add,
    surface_contact,
    surface_meets,
    surface_passes,
    surface_sum,
)
from pycct.geometry.overlap cimport overlaps_triangles, push_along_normals, push_from_triangles, push_out
from pycct.geometry.sweep cimport triangle_order
from pycct.geometry.types cimport SHAPE_BOX, SHAPE_HEIGHTFIELD, SHAPE_HULL, SHAPE_MESH, triangle
from pycct.geometry.vec cimport f_min, m3_mul, v3, v3_dot, v3_len2, v3_lex, v3_load, v3_mul, v3_scale, v3_sub, vec3
from pycct.shapes.convex_edges cimport field_convex_edges, mesh_convex_edges
from pycct.world.candidates cimport (
    GROUP_BOX,
    GROUP_CAPSULE,
    GROUP_PLANE,
    GROUP_SPHERE,
    GROUP_TRIANGLES,
    box_triangles,
    candidate_group,
    candidates,
    collider,
    group_order,
    group_push,
)


cdef inline int _swapped(int bits) noexcept nogil:
    """Bits of the edges of a mirrored triangle, which has its corners in the other order."""
    return (bits & 2) | (bits & 1) << 2 | bits >> 2


cdef int _convex_bits(const candidates* c, const collider* p, int32_t tri, int edges) noexcept nogil:
    """Bits of the convex edges of a candidate among ``edges`` (RULES_2 3)."""
    cdef int bits
    if p.kind != SHAPE_MESH and p.kind != SHAPE_HEIGHTFIELD:
        return edges
    if p.mirrored:
        edges = _swapped(edges)
    if p.kind == SHAPE_MESH:
        bits = mesh_convex_edges(p.mesh, c.spot[tri], edges)
    else:
        bits = field_convex_edges(p.field, c.spot[tri], edges)
    return _swapped(bits) if p.mirrored else bits


cdef inline push_out _push_along(vec3 dir, double depth) noexcept nogil:
    cdef push_out r
    r.overlapping = depth > 0.0
    r.dir = dir
    r.depth = depth
    r.tri = -1
    r.excursion = 0.0
    return r


cdef bint _carries_through(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double reach,
                           vec3 push) noexcept nogil:
    """Whether a push carries an end or the centre of the axis through a triangle within reach."""
    cdef int32_t i
    for i in range(g.first, g.first + g.count):
        if surface_passes(p0, p1, reach, push, &c.tris[i], g.two_sided):
            return True
    return False


cdef push_out _leave_surface(candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double radius) noexcept nogil:
    """The way out of RULES 7.5; along normals only where exits across edges lead through a face."""
    cdef const triangle* tris = c.tris + g.first
    cdef push_out r = push_from_triangles(p0, p1, radius, tris, g.count, g.two_sided, c.depths)
    if r.overlapping and _carries_through(c, g, p0, p1, REACH * radius, v3_scale(r.dir, r.depth)):
        return push_along_normals(p0, p1, radius, tris, g.count, g.two_sided, c.depths)
    return r


cdef push_out _push_from_surface(candidates* c, const candidate_group* g, const collider* p, vec3 p0, vec3 p1,
                                 double radius, bint first) noexcept nogil:
    """The way out of a mesh or heightfield (RULES_2 3), with the protection of RULES 7.5."""
    cdef surface_contact meets
    cdef vec3 lo = v3(0.0, 0.0, 0.0), hi = v3(0.0, 0.0, 0.0), push
    cdef double m, reach = REACH * radius
    cdef push_out old
    cdef int32_t i
    cdef int convex
    for i in range(g.first, g.first + g.count):
        if surface_meets(p0, p1, radius, &c.tris[i], g.two_sided, &meets):
            convex = _convex_bits(c, p, i, meets.edges) if meets.edges else 0
            surface_add(p0, p1, radius, &c.tris[i], &meets, convex, &lo, &hi)
    push = surface_sum(lo, hi)
    if is_no_push(push):
        if first:
            # PhysX leaves a capsule whose axis crosses a triangle there; it falls through later.
            old = _leave_surface(c, g, p0, p1, radius)
            if old.overlapping and old.depth >= radius:
                return old
        return _push_along(v3(0.0, 0.0, 0.0), 0.0)
    # A push that leads farther than the search looked is not taken either.
    m = v3_len2(push)
    if m > reach * reach or _carries_through(c, g, p0, p1, reach, push):
        return _leave_surface(c, g, p0, p1, radius)
    m = sqrt(m)
    return _push_along(v3_scale(push, 1.0 / m), m)


cdef push_out _push_from_hull(const candidates* c, const candidate_group* g, const collider* p, vec3 p0, vec3 p1,
                              double radius) noexcept nogil:
    """The way out of a hull along its separating axes (RULES_2 4)."""
    cdef const triangle* tris = c.tris + g.first
    cdef hull_exit best
    cdef const int32_t* edge
    cdef vec3 e, factors = v3_mul(p.hull_scale, p.scale)
    cdef int32_t i
    if not hull_faces(p0, p1, radius, tris, g.count, &best):
        return _push_along(v3(0.0, 0.0, 0.0), 0.0)
    for i in range(p.hull.n_edges):
        edge = p.hull.edges + 2 * i
        e = v3_sub(v3_load(p.hull.vertices + 3 * edge[1]), v3_load(p.hull.vertices + 3 * edge[0]))
        # PhysX transforms edges as it does normals.
        e = v3(e.x / factors.x, e.y / factors.y, e.z / factors.z)
        hull_edge(p0, p1, e if p.plain else m3_mul(p.matrix, e), tris, g.count, &best)
    return _push_along(best.dir, radius - best.separation)


cdef push_out recovery_push(candidates* c, const candidate_group* g, const collider* p, vec3 p0, vec3 p1,
                            double radius, bint first, bint by_depth) noexcept nogil:
    if g.kind != GROUP_TRIANGLES or g.flat or p.kind == SHAPE_BOX:
        return group_push(c, g, p0, p1, radius)
    if p.kind == SHAPE_HULL:
        return _push_from_hull(c, g, p, p0, p1, radius)
    if by_depth:
        return _leave_surface(c, g, p0, p1, radius)
    return _push_from_surface(c, g, p, p0, p1, radius, first)


cdef bint is_crossed(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1) noexcept nogil:
    cdef int32_t i
    if not is_surface(g):
        return False
    for i in range(g.first, g.first + g.count):
        if crosses_face(p0, p1, &c.tris[i], g.two_sided):
            return True
    return False


cdef bint _is_near_solid(const triangle* tris, int32_t n, vec3 p0, vec3 p1, double reach) noexcept nogil:
    cdef int32_t i
    for i in range(n):
        if f_min(v3_dot(tris[i].n, p0), v3_dot(tris[i].n, p1)) - tris[i].d >= reach:
            return False
    return True


cdef bint is_near(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double reach) noexcept nogil:
    cdef triangle[12] box
    if g.kind == GROUP_SPHERE:
        return point_segment(g.q0, p0, p1).dist2 < (reach + g.radius) * (reach + g.radius)
    if g.kind == GROUP_CAPSULE:
        return segment_segment(p0, p1, g.q0, g.q1).dist2 < (reach + g.radius) * (reach + g.radius)
    if g.kind == GROUP_PLANE:
        return f_min(v3_dot(g.q0, p0), v3_dot(g.q0, p1)) - g.radius < reach
    if g.kind == GROUP_BOX:
        box_triangles(g, box)
        return _is_near_solid(box, 12, p0, p1, reach)
    if g.closed:
        return _is_near_solid(c.tris + g.first, g.count, p0, p1, reach)
    return overlaps_triangles(p0, p1, reach, c.tris + g.first, g.count)


cdef int32_t _smallest(const candidates* c, const candidate_group* g, vec3 p0, vec3 p1, double reach) noexcept nogil:
    """The smallest triangle by its corners among those within reach of the axis; -1: none."""
    cdef const triangle* t
    cdef int32_t i, best = -1
    for i in range(g.first, g.first + g.count):
        t = &c.tris[i]
        if best >= 0 and triangle_order(t, &c.tris[best]) >= 0:
            continue
        if g.closed or segment_triangle(p0, p1, t.a, t.b, t.c, t.n).dist2 < reach * reach:
            best = i
    return best


cdef int place_order(const candidates* c, const candidate_group* g, const collider* p, const candidate_group* h,
                     const collider* q, vec3 p0, vec3 p1, double reach) noexcept nogil:
    cdef int k
    if g.kind != GROUP_TRIANGLES or h.kind != GROUP_TRIANGLES:
        return group_order(c, g, -1, h, -1)
    k = v3_lex(p.bounds.lo, q.bounds.lo)
    if k == 0:
        k = v3_lex(p.bounds.hi, q.bounds.hi)
    if k == 0:
        k = group_order(c, g, _smallest(c, g, p0, p1, reach), h, _smallest(c, h, p0, p1, reach))
    return k
