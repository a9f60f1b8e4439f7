"""Distances by brute force, independent of the library; the tests compare with them.

A capsule is an axis segment p0-p1 and a radius. The distance from a point on a segment to a convex
set is a convex function of its parameter, so a ternary search finds the minimum. Everything is
plain NumPy.
"""

import itertools

import numpy as np

STEPS = 60  # steps of the ternary search: (2/3)^60 of the axis; the distance is flat at its minimum


def rotate(q, v):
    """Vectors v rotated by the unit quaternion (x, y, z, w)."""
    u = np.asarray(q[:3], float)
    t = 2 * np.cross(u, v)
    return v + q[3] * t + np.cross(u, t)


def nearest_on_triangles(points, tris):
    """Closest points (k, 3) on triangles (k, 3, 3) to points (k, 3)."""
    a, b, c = tris[:, 0], tris[:, 1], tris[:, 2]
    n = np.cross(b - a, c - a)
    n2 = np.maximum((n * n).sum(1), 1e-300)
    flat = points - ((points - a) * n).sum(1)[:, None] * n / n2[:, None]
    u = (np.cross(b - a, flat - a) * n).sum(1)
    v = (np.cross(c - b, flat - b) * n).sum(1)
    w = (np.cross(a - c, flat - c) * n).sum(1)
    inside = (u >= 0) & (v >= 0) & (w >= 0)
    best = np.where(inside[:, None], flat, np.inf)
    nearest = np.where(inside, np.linalg.norm(points - np.where(inside[:, None], flat, points), axis=1), np.inf)
    for s, e in ((a, b), (b, c), (c, a)):
        d = e - s
        t = np.clip(((points - s) * d).sum(1) / np.maximum((d * d).sum(1), 1e-300), 0, 1)
        q = s + t[:, None] * d
        r = np.linalg.norm(points - q, axis=1)
        best = np.where((r < nearest)[:, None], q, best)
        nearest = np.minimum(nearest, r)
    return best


def _search(p0, p1, nearest):
    """Minimise |p(t) - nearest(p(t))| for pairs of segment and convex set.

    Returns distances, axis points and set points.
    """
    p0, p1 = np.atleast_2d(np.asarray(p0, float)), np.atleast_2d(np.asarray(p1, float))
    k = len(nearest(p0))

    def at(t):
        p = p0 + t[:, None] * (p1 - p0)
        q = nearest(p)
        return np.linalg.norm(p - q, axis=1), p, q

    lo, hi = np.zeros(k), np.ones(k)
    for _ in range(STEPS):
        s, e = lo + (hi - lo) / 3, hi - (hi - lo) / 3
        left = at(s)[0] <= at(e)[0]
        lo, hi = np.where(left, lo, s), np.where(left, e, hi)
    ends = [at(np.zeros(k)), at((lo + hi) / 2), at(np.ones(k))]
    pick = np.argmin([e[0] for e in ends], axis=0)
    which = np.arange(k)
    return tuple(np.array([e[j] for e in ends])[pick, which] for j in range(3))


def segment_triangles(p0, p1, tris):
    """Distance of a segment, or of one segment each, to each triangle (k,), and the pairs of
    points.
    """
    tris = np.asarray(tris, float)
    return _search(p0, p1, lambda x: nearest_on_triangles(np.broadcast_to(x, (len(tris), 3)), tris))


def segment_box(p0, p1, half, position=(0, 0, 0), rotation=(0, 0, 0, 1)):
    """Distance of a segment to a solid box, and the pair of points."""
    back = (-rotation[0], -rotation[1], -rotation[2], rotation[3])
    half, position = np.asarray(half, float), np.asarray(position, float)
    a, b = rotate(back, np.asarray(p0) - position), rotate(back, np.asarray(p1) - position)
    d, p, q = _search(a, b, lambda x: np.clip(x, -half, half))
    return d[0], rotate(rotation, p[0]) + position, rotate(rotation, q[0]) + position


def segment_segment(p0, p1, q0, q1):
    """Distance of two segments, and the pair of points."""
    q0, q1 = np.asarray(q0, float), np.asarray(q1, float)
    e = q1 - q0
    e2 = max(float(e @ e), 1e-300)
    d, p, q = _search(p0, p1, lambda x: q0 + np.clip((x - q0) @ e / e2, 0, 1)[:, None] * e)
    return d[0], p[0], q[0]


def triangles_of(mesh, position=(0, 0, 0), rotation=(0, 0, 0, 1), scale=(1, 1, 1)):
    """World triangles (m, 3, 3) of a placed mesh, outward also when the scale mirrors."""
    v = rotate(rotation, np.asarray(mesh.vertices) * np.asarray(scale, float)) + np.asarray(position, float)
    t = v[np.asarray(mesh.triangles)]
    return t[:, ::-1] if np.prod(scale) < 0 else t


def capsule_axis(position, height, up=(0, 0, 1)):
    """Lower and upper end of an upright capsule's axis."""
    half = np.asarray(up, float) * height / 2
    return np.asarray(position, float) - half, np.asarray(position, float) + half


def gap(hero, tris):
    """Smallest distance between a character's surface and any of the triangles; < 0: overlap."""
    p0, p1 = capsule_axis(hero.position, hero.height, hero.up)
    return float(segment_triangles(p0, p1, tris)[0].min()) - hero.radius


def hull_triangles(points):
    """Triangles that cover a hull's surface: every triple with all points on one side.

    O(n^4), for small hulls.
    """
    points = np.asarray(points, float)
    middle = points.mean(0)
    faces = []
    for i, j, k in itertools.combinations(range(len(points)), 3):
        n = np.cross(points[j] - points[i], points[k] - points[i])
        size = np.linalg.norm(n)
        if size < 1e-12:
            continue
        side = (points - points[i]) @ n / size
        if (side <= 1e-6).all() or (side >= -1e-6).all():
            faces.append((i, j, k) if (middle - points[i]) @ n < 0 else (i, k, j))
    return points[np.array(faces)]
