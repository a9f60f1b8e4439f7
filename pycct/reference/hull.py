"""Convex hulls: exact decisions about the shape, tolerant merging of faces.

The points are shifted and scaled to whole numbers below 2^52, so that integers decide the side of a
plane without error. Quickhull then builds a closed, convex triangulation for any input. Afterwards,
triangles that lie in one plane within TOLERANCE become one face.
"""

from math import floor, frexp, ldexp, sqrt

import numpy as np

from pycct.reference.outline import outline
from pycct.reference.vec import ZERO, cross, dot, length, neg, scale, sub

MAX_VERTICES = 255
# Share of the diagonal; the compiled hull module documents the choice.
TOLERANCE = 1e-7
# Upper limit of the tolerance, as a share of the solid's thickness, so that faces still bound it.
THIN = 1e-3
# Most points before faces are merged. Hulls with more points never end below 255 vertices in
# practice.
MAX_WORK = 2048
TOO_MANY = "points have more than 255 hull vertices"


class _Face:
    """A triangle of the growing hull."""

    def __init__(self, slot, v, n):
        self.slot = slot  # free slots are reused: equal faces are visited in slot order
        self.v = v  # three vertices
        self.n = n  # unit normal
        self.neighbour = [None, None, None]  # across the edge v[i] -> v[i + 1]
        self.alive = True
        self.seen = False  # visible from the point being added
        self.outside = []  # points in front of the face, the latest first
        self.far_point = -1
        self.far_distance = 0.0
        self.region = -1


class _Work:
    """A hull under construction."""

    def __init__(self, points, tolerance):
        self.p = points
        self.tolerance = tolerance
        self.faces = []

    def side(self, a, b, c, d):
        """1: d is in front of the triangle abc, 0: in its plane, -1: behind; exact."""
        o = [int(x) for x in self.p[a]]
        u, v, w = ([int(x) - y for x, y in zip(self.p[i], o, strict=True)] for i in (b, c, d))
        det = dot(cross(u, v), w)
        return (det > 0) - (det < 0)

    def new_face(self, a, b, c):
        slot = next((f.slot for f in self.faces if not f.alive), len(self.faces))
        if slot == len(self.faces):
            if slot == 4 * MAX_WORK:
                raise ValueError(TOO_MANY)
            self.faces.append(None)
        n = cross(sub(self.p[b], self.p[a]), sub(self.p[c], self.p[a]))
        m = length(n)
        f = _Face(slot, (a, b, c), scale(n, 1.0 / m) if m > 0.0 else ZERO)
        self.faces[slot] = f
        return f

    def height(self, f, i):
        """Distance of a point in front of a face."""
        return dot(f.n, sub(self.p[i], self.p[f.v[0]]))

    def hand_out(self, i, faces):
        """Add the point to the list of the face that it is farthest in front of, or drop it."""
        best = None
        best_d = self.tolerance
        for f in faces:
            d = self.height(f, i)
            if d > best_d:
                best_d = d
                best = f
        if best is None:
            return
        best.outside.insert(0, i)
        if best_d > best.far_distance or (best_d == best.far_distance and i < best.far_point):
            best.far_distance = best_d
            best.far_point = i


def _farthest(p, a, b=None, c=None):
    """(distance, point) farthest from point a, line ab or plane abc; the first of equals."""
    o = p[a]
    if b is not None:
        u = sub(p[b], o)
        u = scale(u, 1.0 / length(u))
    if c is not None:
        n = cross(u, sub(p[c], o))
        n = scale(n, 1.0 / length(n))
    best = 0
    best_d = -1.0
    for i, x in enumerate(p):
        if b is None:
            d = length(sub(x, o))
        elif c is None:
            d = length(cross(u, sub(x, o)))
        else:
            d = abs(dot(n, sub(x, o)))
        if d > best_d:
            best_d = d
            best = i
    return best_d, best


def _add_point(w, start, p):
    """Replace the faces that see p by faces from their outline to p; ``start`` is one of them."""
    seen = [start]
    stack = [start]
    start.seen = True
    while stack:
        f = stack.pop()
        for g in f.neighbour:
            if not g.seen and w.side(*g.v, p) > 0:
                g.seen = True
                seen.append(g)
                stack.append(g)
    fresh = []
    at_vertex = {}
    for f in seen:
        for i in range(3):
            g = f.neighbour[i]
            if g.seen:
                continue
            q = f.v[i]
            after = f.v[(i + 1) % 3]
            new = w.new_face(q, after, p)
            new.neighbour[0] = g
            if g.v[0] == after and g.v[1] == q:
                g.neighbour[0] = new
            elif g.v[1] == after and g.v[2] == q:
                g.neighbour[1] = new
            else:
                g.neighbour[2] = new
            at_vertex[q] = new
            fresh.append(new)
    for f in fresh:
        g = at_vertex[f.v[1]]
        f.neighbour[1] = g
        g.neighbour[2] = f
    for f in seen:
        for q in f.outside:
            if q != p:
                w.hand_out(q, fresh)
    for f in seen:
        f.alive = False
        f.seen = False


def _quickhull(w, a, b, c, d):
    if w.side(a, b, c, d) > 0:
        b, c = c, b
    first = [w.new_face(*v) for v in ((a, b, c), (b, a, d), (c, b, d), (a, c, d))]
    for f in first:
        for i in range(3):
            for g in first:
                for k in range(3):
                    if g.v[k] == f.v[(i + 1) % 3] and g.v[(k + 1) % 3] == f.v[i]:
                        f.neighbour[i] = g
    for i in range(len(w.p)):
        if i not in (a, b, c, d):
            w.hand_out(i, first)
    added = 4
    while True:
        best = None
        for f in w.faces:
            if f.alive and f.far_point >= 0:
                if best is None or (f.far_distance, -f.far_point) > (best.far_distance, -best.far_point):
                    best = f
        if best is None:
            return
        p = best.far_point
        if w.side(*best.v, p) <= 0:
            # Only a sliver with a badly rounded normal gets here; it gains nothing from the point.
            best.outside = []
            best.far_point = -1
            continue
        added += 1
        if added > MAX_WORK:
            raise ValueError(TOO_MANY)
        _add_point(w, best, p)


def _alive(w):
    """Faces, the largest first; equal ones are ordered by their vertices."""
    out = []
    for f in w.faces:
        if f.alive:
            a, b, c = f.v
            area = length(cross(sub(w.p[b], w.p[a]), sub(w.p[c], w.p[a])))
            out.append((-area, min(f.v), max(f.v), a + b + c, f.slot))
    out.sort()
    return [w.faces[item[4]] for item in out]


def _in_plane(w, seed, f, tolerance):
    if dot(seed.n, f.n) <= 0.0:
        return False
    if tolerance > 0.0:
        return all(abs(w.height(seed, v)) <= tolerance for v in f.v)
    return all(w.side(*seed.v, v) == 0 for v in f.v)


def _off_line(p, a, b, i):
    u = sub(p[b], p[a])
    return length(cross(scale(u, 1.0 / length(u)), sub(p[i], p[a])))


def _regions(faces, w, tolerance):
    """Assign to each face the region of the largest face in its plane, and return the seeds."""
    for f in faces:
        f.region = -1
    seeds = []
    for seed in faces:
        if seed.region >= 0:
            continue
        seed.region = len(seeds)
        stack = [seed]
        while stack:
            f = stack.pop()
            for g in f.neighbour:
                if g.region < 0 and _in_plane(w, seed, g, tolerance):
                    g.region = seed.region
                    stack.append(g)
        seeds.append(seed)
    return seeds


def _boundary(ring):
    """The closed loop of {vertex: next vertex}, or None if it is not one loop."""
    start = min(ring)
    loop = []
    v = start
    while True:
        loop.append(v)
        v = ring.get(v, -1)
        if v == start:
            break
        if v < 0 or len(loop) > len(ring):
            return None
    return loop if len(loop) == len(ring) else None


def _merge(w, faces, tolerance):
    """Faces as [(unit normal, loop of vertices)], or None if a merged face is not convex."""
    seeds = _regions(faces, w, tolerance)
    rings = [{} for _ in seeds]
    for f in faces:
        for i in range(3):
            if f.neighbour[i].region != f.region:
                ring = rings[f.region]
                if f.v[i] in ring:
                    return None
                ring[f.v[i]] = f.v[(i + 1) % 3]
    loops = []
    around = {}  # vertex -> number of faces around it
    for ring in rings:
        loop = _boundary(ring) if len(ring) >= 3 else None
        if loop is None:
            return None
        for v in loop:
            around[v] = around.get(v, 0) + 1
        loops.append(loop)

    # A vertex of only two faces lies on their common edge; it is removed if it is in line.
    keep = {v for v, count in around.items() if count > 2}
    for loop in loops:
        if len([v for v in loop if v in keep]) < 3:
            keep.update(loop)
    for loop in loops:
        corners = [k for k, v in enumerate(loop) if v in keep and around[v] > 2]
        for k, at in enumerate(corners):
            to = corners[(k + 1) % len(corners)]
            chain = loop[at + 1 : to] if to > at else loop[at + 1 :] + loop[:to]
            if not chain:
                continue
            a, b = min(loop[at], loop[to]), max(loop[at], loop[to])
            if a == b or any(v in keep or _off_line(w.p, a, b, v) > 4.0 * tolerance for v in chain):
                keep.update(chain)
    merged = []
    for seed, loop in zip(seeds, loops, strict=True):
        loop = [v for v in loop if v in keep]
        if len(loop) < 3:
            return None
        for k in range(len(loop)):
            a, b, c = (w.p[loop[(k + i) % len(loop)]] for i in range(3))
            u = cross(sub(c, a), seed.n)
            if dot(u, sub(b, a)) < -4.0 * tolerance * length(u) and tolerance > 0.0:
                return None
        merged.append((seed.n, loop))
    return merged


def _faces_of_solid(w, a, b, c, d):
    _quickhull(w, a, b, c, d)
    order = _alive(w)
    for factor in (1.0, 0.1, 0.01, 1e-4, 0.0):
        faces = _merge(w, order, w.tolerance * factor)
        if faces is not None and len({v for _, loop in faces for v in loop}) <= MAX_VERTICES:
            return faces
    raise ValueError(TOO_MANY)


def _faces_of_polygon(p, tolerance, a, b, c):
    """Front and back face of points in a plane."""
    n = cross(sub(p[b], p[a]), sub(p[c], p[a]))
    n = scale(n, 1.0 / length(n))
    loop = outline(p, n, MAX_VERTICES + 1, tolerance)
    if len(loop) > MAX_VERTICES:
        raise ValueError(TOO_MANY)
    # The start may be almost in line and then ends on an edge.
    while len(loop) > 3:
        corners = zip(loop, loop[1:] + loop[:1], loop[2:] + loop[:2], strict=True)
        off, flat = min((_off_line(p, min(u, v), max(u, v), x), x) for u, x, v in corners)
        if off > tolerance:
            break
        loop.remove(flat)
    return [(n, loop), (neg(n), loop[::-1])]


def _diagonal(p):
    sum2 = 0.0
    for k in range(3):
        lo = min(x[k] for x in p)
        hi = max(x[k] for x in p)
        sum2 += (hi - lo) * (hi - lo)
    return sqrt(sum2)


def _whole_numbers(points):
    """The points, shifted and scaled by a power of two to whole numbers below 2^52."""
    lo = [min(p[k] for p in points) for k in range(3)]
    hi = [max(p[k] for p in points) for k in range(3)]
    extent = max(h - x for x, h in zip(lo, hi, strict=True))
    if extent - extent != 0.0 or extent > 1e150 or 0.0 < extent < 1e-150:
        raise ValueError("points must have an extent between 1e-150 and 1e150")
    e = frexp(extent)[1]
    return [tuple(float(floor(ldexp(p[k] - lo[k], 52 - e) + 0.5)) for k in range(3)) for p in points]


def _hull_faces(points):
    """(dimension, faces as [(unit normal, loop)], point indices if there are no faces)."""
    p = _whole_numbers(points)
    reach, a = _farthest(p, 0)
    if reach <= 0.0:
        return 0, [], [0]
    reach, b = _farthest(p, a)
    tolerance = TOLERANCE * _diagonal(p)
    off, c = _farthest(p, a, b)
    if off <= tolerance:
        return 1, [], [min(a, b), max(a, b)]
    off, d = _farthest(p, a, b, c)
    if off <= tolerance:
        return 2, _faces_of_polygon(p, tolerance, a, b, c), []
    return 3, _faces_of_solid(_Work(p, min(tolerance, THIN * off)), a, b, c, d), []


class HullTables:
    """Convex hull of points: corners, and the faces cut into fans of triangles.

    Parameters
    ----------
    points : array_like, shape (n, 3)
        Points, metres. At most 255 of them may be corners of the hull.
    """

    def __init__(self, points):
        given = as_points(points)
        # Distinct points in lexicographic order; adding 0.0 turned -0.0 into 0.0.
        points = sorted({tuple(p) for p in given.tolist()})
        self.dimension, faces, rest = _hull_faces(points)
        used = sorted({v for _, loop in faces for v in loop} | set(rest))
        number = {v: k for k, v in enumerate(used)}
        loops = []
        for _, loop in faces:
            loop = [number[v] for v in loop]
            first = loop.index(min(loop))
            loops.append(loop[first:] + loop[:first])
        loops.sort()
        self.vertices = [points[v] for v in used]
        self.faces = [tuple(loop) for loop in loops]
        self.triangles = [(loop[0], loop[k], loop[k + 1]) for loop in loops for k in range(1, len(loop) - 1)]


def as_points(points):
    """Return a fresh (n, 3) float64 array of finite numbers; ValueError names ``points``."""
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "biuf":
            array = np.asarray(points, dtype=np.float64) if array.dtype.kind == "O" else None
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != 2 or array.shape[1] != 3:
        raise ValueError("points must be numbers of shape (n, 3)")
    if array.shape[0] == 0:
        raise ValueError("points must not be empty")
    if array.shape[0] > 0x3FFFFFFF:
        raise ValueError("points must be fewer than 2**30")
    array = np.array(array, dtype=np.float64, order="C") + 0.0
    if not np.isfinite(array).all():
        raise ValueError("points must be finite")
    return array
