"""Overlap and penetration (minimum translation) of a capsule with one shape (RULES 7.5, 7.6)."""

from math import sqrt
from typing import NamedTuple

from pycct.reference.closest import point_segment, segment_segment, segment_triangle
from pycct.reference.sweep import Face, triangle_order
from pycct.reference.tolerances import DEPTH_TIE, PARALLEL2
from pycct.reference.vec import (
    ZERO,
    across,
    add,
    cross,
    dist2,
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

# Most pushes out of a mesh in one correction (RULES 7.5).
MESH_PUSHES = 4
# Below this share of the radius, closest points define no reliable direction.
NO_DIRECTION = 1e-9


class PushOut(NamedTuple):
    """Exit of a capsule from a shape."""

    overlapping: bool
    dir: tuple  # unit, direction of the exit
    depth: float  # length of the exit along dir
    face: Face | None  # triangle that decided the exit


APART = PushOut(False, ZERO, 0.0, None)


def _push(direction, depth, face=None):
    return PushOut(True, direction, depth, face)


def _push_round(on_a, on_b, d2, both, fallback):
    if d2 >= both * both:
        return APART
    d = sqrt(d2)
    if d <= NO_DIRECTION * both:
        return _push(fallback, both)
    return _push(scale(sub(on_a, on_b), 1.0 / d), both - d)


def push_from_sphere(p0, p1, radius, centre, other):
    """Exit from a sphere."""
    near = point_segment(centre, p0, p1)
    return _push_round(near.on_b, near.on_a, near.dist2, radius + other, across(sub(p1, p0)))


def push_from_capsule(p0, p1, radius, q0, q1, other):
    """Exit from a capsule. If the axes cross, the exit is perpendicular to both."""
    a = sub(p1, p0)
    b = sub(q1, q0)
    m = cross(a, b)
    if len2(m) <= PARALLEL2 * len2(a) * len2(b):
        m = across(a if len2(a) > 0.0 else b)
    else:
        m = scale(m, 1.0 / length(m))
    near = segment_segment(p0, p1, q0, q1)
    return _push_round(near.on_a, near.on_b, near.dist2, radius + other, m)


def push_from_plane(p0, p1, radius, normal, offset):
    """Exit from the half space below a plane."""
    low = f_min(dot(normal, p0), dot(normal, p1)) - offset
    if low >= radius:
        return APART
    return _push(normal, radius - low)


def _support(faces, u):
    """Largest extent of the surface along u."""
    best = dot(faces[0].a, u)
    for t in faces:
        x = f_max(dot(t.a, u), f_max(dot(t.b, u), dot(t.c, u)))
        if x > best:
            best = x
    return best


def polytope_separation(p0, p1, faces):
    """(distance, direction): the largest separation of a closed convex surface from a segment.

    The distance is <= 0 if the segment enters the surface. The faces of (surface - segment) are the
    surface's own faces and those that an edge and the segment span.
    """
    best = -1e300
    direction = (0.0, 0.0, 1.0)
    for t in faces:
        x = f_min(dot(t.n, p0), dot(t.n, p1)) - t.d
        if x > best:
            best = x
            direction = t.n
    if dist2(p0, p1) > 0.0:
        axis = sub(p1, p0)
        for t in faces:
            for e in (sub(t.b, t.a), sub(t.c, t.b), sub(t.a, t.c)):
                u = cross(e, axis)
                m2 = len2(u)
                if m2 <= PARALLEL2 * len2(e) * len2(axis) or m2 == 0.0:
                    continue
                u = scale(u, 1.0 / sqrt(m2))
                # The lower end counts: if edge and axis are nearly parallel, u is not exactly
                # perpendicular to them.
                for side in (u, neg(u)):
                    x = f_min(dot(side, p0), dot(side, p1)) - _support(faces, side)
                    if x > best:
                        best = x
                        direction = side
    return best, direction


def push_from_polytope(p0, p1, radius, faces, flat=False):
    """Out of a closed convex surface (box, hull) given by all of its triangles.

    ``flat``: they are the front and the back of one polygon, whose sides no normal looks out of.
    """
    if not faces:
        return APART
    # The faces are too far away for an overlap, so the edges need no test.
    for t in faces:
        if f_min(dot(t.n, p0), dot(t.n, p1)) - t.d >= radius:
            return APART
    separation, direction = polytope_separation(p0, p1, faces)
    if separation >= radius:
        return APART
    # What lies beside a flat shape is separated from it by none of its faces.
    if separation <= NO_DIRECTION * radius and not flat:
        return _push(direction, radius - separation)
    nearest = None
    for t in faces:
        near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
        if nearest is None or near.dist2 < nearest.dist2:
            nearest = near
    if nearest.dist2 >= radius * radius:
        return APART
    d = sqrt(nearest.dist2)
    if d <= NO_DIRECTION * radius:
        return _push(direction, radius - separation)
    return _push(scale(sub(nearest.on_a, nearest.on_b), 1.0 / d), radius - d)


def _push_from_triangle(p0, p1, radius, t, two_sided, across):
    """Exit from one triangle of a mesh, to the side of the capsule's centre (RULES 7.5)."""
    centre = scale(add(p0, p1), 0.5)
    side = dot(t.n, centre) - t.d
    n = t.n
    if side <= 0.0:
        if not two_sided:
            return APART
        if side < 0.0:
            n = neg(n)
    h0 = dot(sub(p0, t.a), n)
    h1 = dot(sub(p1, t.a), n)
    if f_min(h0, h1) >= radius:
        return APART
    near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
    if near.dist2 >= radius * radius:
        return APART
    d = sqrt(near.dist2)
    if d > NO_DIRECTION * radius:
        return _push(scale(sub(near.on_a, near.on_b), 1.0 / d), radius - d)
    # The axis crosses the triangle: the exit is along the normal, or across one edge, away from the
    # third vertex.
    axis = sub(p1, p0)
    best = -f_min(h0, h1)
    direction = n
    for start, end, third in ((t.a, t.b, t.c), (t.b, t.c, t.a), (t.c, t.a, t.b)) if across else ():
        e = sub(end, start)
        u = cross(e, axis)
        m2 = len2(u)
        if m2 <= PARALLEL2 * len2(e) * len2(axis) or m2 == 0.0:
            continue
        u = scale(u, 1.0 / sqrt(m2))
        x = dot(u, start)
        if dot(u, third) > x:
            u = neg(u)
            x = -x
        x = x - dot(u, p0)
        if x < best:
            best = x
            direction = u
    return _push(direction, radius + best)


def _leave_triangles(p0, p1, radius, faces, two_sided, across):
    """Add up to four pushes; return (exit, deciding triangle), None if an edge exit failed."""
    total = ZERO
    decided = None
    crossed = False
    for turn in range(MESH_PUSHES):
        a = add(p0, total)
        b = add(p1, total)
        pushes = [(t, _push_from_triangle(a, b, radius, t, two_sided, across)) for t in faces]
        deepest = 0.0
        for _, push in pushes:
            if push.depth > deepest:
                deepest = push.depth
        # A remainder of rounding size needs no push.
        if deepest <= (1e-12 * radius if turn > 0 else 0.0):
            break
        # The axis crosses a triangle, and a second one after the exit from the first.
        if deepest >= radius:
            if crossed and across:
                return None
            crossed = True
        winner = None
        for t, push in pushes:
            if push.depth >= deepest - DEPTH_TIE and push.depth > 0.0:
                if winner is None or triangle_order(t, winner[0]) < 0:
                    winner = (t, push)
        total = madd(total, winner[1].dir, winner[1].depth)
        if decided is None:
            decided = winner[0]
    return total, decided


def push_from_triangles(p0, p1, radius, faces, two_sided):
    """Exit from open triangles (mesh): up to four successive pushes, added up (RULES 7.5)."""
    # Exits across edges can lead from triangle to triangle along a surface without end. The second
    # attempt therefore uses normals only.
    return _sum_of_pushes(
        *(
            _leave_triangles(p0, p1, radius, faces, two_sided, True)
            or _leave_triangles(p0, p1, radius, faces, two_sided, False)
        )
    )


def push_along_normals(p0, p1, radius, faces, two_sided):
    """Like push_from_triangles, without exits across edges."""
    return _sum_of_pushes(*_leave_triangles(p0, p1, radius, faces, two_sided, False))


def _sum_of_pushes(total, decided):
    if decided is None:
        return APART
    m = length(total)
    if m <= 0.0:
        return APART
    return _push(scale(total, 1.0 / m), m, decided)


def overlaps_triangles(p0, p1, radius, faces):
    """True if closer than the radius; triangles count from both sides (RULES 7.6)."""
    for t in faces:
        if segment_triangle(p0, p1, t.a, t.b, t.c, t.n).dist2 < radius * radius:
            return True
    return False
