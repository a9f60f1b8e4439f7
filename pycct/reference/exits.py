"""Recovery as PhysX does it: pushes out of meshes, heightfields and hulls (RULES_2 3 and 4)."""

from math import sqrt

from pycct.reference.closest import segment_triangle
from pycct.reference.overlap import APART, _push, _support, push_along_normals, push_from_triangles
from pycct.reference.tolerances import PARALLEL2
from pycct.reference.vec import (
    ZERO,
    add,
    cross,
    dot,
    f_max,
    f_min,
    len2,
    length,
    madd,
    neg,
    scale,
    sub,
)

# Up to this distance the axis counts as crossing a triangle, metres.
CROSSING = 1e-3
# The axis is longer by this at both ends where it meets edges, metres.
LONGER = 0.01
# Slack of barycentric coordinates of the rays from the ends of the axis.
BARYCENTRIC_SLACK = 1e-3
# Slack of the ends of an edge, square metres.
EDGE_SLACK = 1e-3
# Triangles and shapes within this many radii of the axis count in a recovery.
REACH = 2.0
# A shorter push is no overlap, metres.
NO_PUSH = 1e-5
# Barycentric distance from an edge within which a closest point is on it.
ON_EDGE = 1e-7
# ... and from the edge opposite of the first corner.
ON_LAST_EDGE = 1e-4


def _barycentric(x, t):
    """Coordinates (u, v) of a point of the triangle's plane: x = a + u (b - a) + v (c - a)."""
    e1 = sub(t.b, t.a)
    e2 = sub(t.c, t.a)
    m = cross(e1, e2)
    m2 = len2(m)
    if m2 == 0.0:
        return 0.0, 0.0
    r = sub(x, t.a)
    return dot(cross(r, e2), m) / m2, dot(cross(e1, r), m) / m2


def _edges_at(x, t):
    """Bits of the triangle's edges that a closest point is on; 0: inside the face."""
    u, v = _barycentric(x, t)
    if u <= ON_EDGE:
        if v <= ON_EDGE:
            return 1 | 4
        return 2 | 4 if v >= 1.0 - ON_EDGE else 4
    if v <= ON_EDGE:
        return 1 | 2 if u >= 1.0 - ON_EDGE else 1
    return 2 if u + v >= 1.0 - ON_LAST_EDGE else 0


def _interval_overlap(p0, p1, radius, t, w):
    """Overlap of the intervals of the capsule and the triangle along w; negative if apart."""
    x, y = dot(p0, w), dot(p1, w)
    lo, hi = f_min(x, y) - radius, f_max(x, y) + radius
    a, b, c = dot(t.a, w), dot(t.b, w), dot(t.c, w)
    return f_min(hi - f_min(a, f_min(b, c)), f_max(a, f_max(b, c)) - lo)


def _edges(t):
    return ((t.a, t.b), (t.b, t.c), (t.c, t.a))


def _crossing_direction(p0, p1, radius, t, n, convex, side):
    """RULES_2 3b for an axis that crosses the triangle; None: something separates them."""
    best = _interval_overlap(p0, p1, radius, t, n)
    if best < 0.0:
        return None
    w = n
    axis = sub(p1, p0)
    for i, (p, q) in enumerate(_edges(t)):
        if not convex & (1 << i):
            continue
        e = sub(q, p)
        u = cross(axis, e)
        m2 = len2(u)
        if m2 <= PARALLEL2 * len2(e) * len2(axis) or m2 == 0.0:
            continue
        u = scale(u, 1.0 / sqrt(m2))
        overlap = _interval_overlap(p0, p1, radius, t, u)
        if overlap < 0.0:
            return None
        if overlap < best:
            best = overlap
            w = u
    return neg(w) if dot(w, side) < 0.0 else w


def _ray_time(p, w, t, n):
    """Distance from p along -w to the front of the triangle, or None."""
    slope = dot(n, w)
    if slope <= 0.0:
        return None
    distance = dot(sub(p, t.a), n) / slope
    if distance < 0.0:
        return None
    u, v = _barycentric(madd(p, w, -distance), t)
    inside = u >= -BARYCENTRIC_SLACK and v >= -BARYCENTRIC_SLACK and u + v <= 1.0 + BARYCENTRIC_SLACK
    return distance if inside else None


def _edge_time(s0, s1, p, q, w):
    """Distance along w from the edge pq to the segment, or None."""
    e = sub(q, p)
    plane = cross(e, w)
    m2 = len2(plane)
    h0, h1 = dot(plane, sub(s0, p)), dot(plane, sub(s1, p))
    if m2 == 0.0 or h0 * h1 > 0.0 or h0 == h1:
        return None
    x = madd(s0, sub(s1, s0), h0 / (h0 - h1))
    distance = dot(cross(e, sub(x, p)), plane) / m2
    if distance < 0.0:
        return None
    on_edge = madd(x, w, -distance)
    return distance if dot(sub(p, on_edge), sub(q, on_edge)) < EDGE_SLACK else None


def _contacts(p0, p1, radius, t, two_sided, convex):
    """RULES_2 3a to 3c: (w, [distances]) of one triangle."""
    centre = scale(add(p0, p1), 0.5)
    n = t.n
    height = dot(sub(centre, t.a), n)
    if height < 0.0:
        if not two_sided:
            return None
        n = neg(n)
    near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    if near.dist2 >= radius * radius:
        return None
    axis = sub(p1, p0)
    size = length(axis)
    reach = scale(axis, LONGER / size) if size > 0.0 else ZERO
    s0, s1 = sub(p0, reach), add(p1, reach)
    found = []
    if near.dist2 > CROSSING * CROSSING:
        on = _edges_at(near.on_b, t)
        w = n if not on & convex else scale(sub(near.on_a, near.on_b), 1.0 / sqrt(near.dist2))
        for p, q in _edges(t):
            distance = _edge_time(s0, s1, p, q, w)
            if distance is not None and distance < radius:
                found.append(distance - radius)
    else:
        middle = scale(add(t.a, add(t.b, t.c)), 1.0 / 3.0)
        w = _crossing_direction(p0, p1, radius, t, n, convex, sub(centre, middle))
        if w is None:
            return None
        for p, q in _edges(t):
            distance = _edge_time(s0, s1, p, q, neg(w))
            if distance is not None:
                found.append(-(radius + distance))
    for end in (p0, p1):
        distance = _ray_time(end, w, t, n)
        if distance is not None and distance < radius:
            found.append(distance - radius)
    return w, found


def surface_push(p0, p1, radius, faces, flags, two_sided):
    """RULES_2 3: the push out of a mesh or heightfield."""
    lo = [0.0, 0.0, 0.0]
    hi = [0.0, 0.0, 0.0]
    for t, convex in zip(faces, flags, strict=True):
        contacts = _contacts(p0, p1, radius, t, two_sided, convex)
        if contacts is None:
            continue
        w, found = contacts
        for s in found:
            for i in range(3):
                x = -s * w[i]
                lo[i] = f_min(lo[i], x)
                hi[i] = f_max(hi[i], x)
    return tuple(a + b if a == 0.0 or b == 0.0 else 0.5 * (a + b) for a, b in zip(lo, hi, strict=True))


def _passes(x, push, t, two_sided):
    """Whether a point passes from the front of a triangle to its back."""
    y = add(x, push)
    h0, h1 = dot(sub(x, t.a), t.n), dot(sub(y, t.a), t.n)
    if not (h0 > 0.0 > h1 or (two_sided and h0 < 0.0 < h1)):
        return False
    return segment_triangle(x, y, t.a, t.b, t.c, t.n).dist2 <= 0.0


def carries_through(p0, p1, reach, push, faces, two_sided):
    """Whether a push carries an end or the centre of the axis through a triangle within reach."""
    points = (p0, p1, scale(add(p0, p1), 0.5))
    for t in faces:
        if any(_passes(x, push, t, two_sided) for x in points):
            # Which farther triangles a look-up returns depends on its box.
            if segment_triangle(p0, p1, t.a, t.b, t.c, t.n).dist2 < reach * reach:
                return True
    return False


def leave_surface(p0, p1, radius, faces, two_sided):
    """The way out of RULES 7.5; along normals only where exits across edges lead through a face."""
    out = push_from_triangles(p0, p1, radius, faces, two_sided)
    if out.overlapping and carries_through(p0, p1, REACH * radius, scale(out.dir, out.depth), faces, two_sided):
        return push_along_normals(p0, p1, radius, faces, two_sided)
    return out


def crosses_face(p0, p1, t, two_sided):
    """Whether the axis crosses the inside of a face, with the centre in front of it."""
    if not two_sided and dot(sub(scale(add(p0, p1), 0.5), t.a), t.n) <= 0.0:
        return False
    near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    return near.dist2 <= 0.0 and _edges_at(near.on_b, t) == 0


def push_from_surface(p0, p1, radius, faces, flags, two_sided, first):
    """The way out of a mesh or heightfield (RULES_2 3), with the protection of RULES 7.5.

    ``first``: nothing has moved the capsule out of anything in this move yet.
    """
    push = surface_push(p0, p1, radius, faces, flags, two_sided)
    m2 = len2(push)
    if m2 < NO_PUSH * NO_PUSH:
        if first:
            # PhysX leaves a capsule whose axis crosses a triangle there; it falls through later.
            old = leave_surface(p0, p1, radius, faces, two_sided)
            if old.overlapping and old.depth >= radius:
                return old
        return APART
    # A push that leads farther than the search looked is not taken either.
    reach = REACH * radius
    if m2 > reach * reach or carries_through(p0, p1, reach, push, faces, two_sided):
        return leave_surface(p0, p1, radius, faces, two_sided)
    m = sqrt(m2)
    return _push(scale(push, 1.0 / m), m)


def push_from_hull(p0, p1, radius, faces, edges):
    """The way out of a hull along its separating axes (RULES_2 4)."""
    best = -1e300
    direction = (0.0, 0.0, 1.0)
    for t in faces:
        x = f_min(dot(t.n, p0), dot(t.n, p1)) - t.d
        if x > best:
            best = x
            direction = t.n
    axis = sub(p1, p0)
    if best >= radius:
        return APART
    for e in edges:
        u = cross(axis, e)
        m2 = len2(u)
        if m2 <= PARALLEL2 * len2(e) * len2(axis) or m2 == 0.0:
            continue
        u = scale(u, 1.0 / sqrt(m2))
        for w in (u, neg(u)):
            x = f_min(dot(w, p0), dot(w, p1)) - _support(faces, w)
            if x > best:
                best = x
                direction = w
    return APART if best >= radius else _push(direction, radius - best)
