"""Distances and first contacts without any formula of the package.

Arrays are (3, n). A distance is the smallest over candidate pairs of points on both shapes, so it
is never too small, whatever the rounding. Distances alone decide about a path: along a straight
path the distance between two convex sets is a convex function, so golden section finds its smallest
value.
"""
import numpy as np

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def length(a):
    return np.sqrt(dot(a, a))


def ratio(x, y):
    """x / y, and 0 if y is 0."""
    return np.divide(x, y, out=np.zeros(np.broadcast(x, y).shape, np.result_type(x, y)), where=y != 0)


def rotate(q, v):
    """v rotated by the unit quaternions q (4, n)."""
    t = 2 * cross(q[:3], v)
    return v + q[3] * t + cross(q[:3], t)


def unrotate(q, v):
    return rotate(np.stack([-q[0], -q[1], -q[2], q[3]]), v)


def point_segment(p, a, b):
    d = b - a
    t = np.clip(ratio(dot(p - a, d), dot(d, d)), 0, 1)
    return length(p - (a + d * t))


def segment_segment(p0, p1, q0, q1):
    best = np.minimum(np.minimum(point_segment(p0, q0, q1), point_segment(p1, q0, q1)),
                      np.minimum(point_segment(q0, p0, p1), point_segment(q1, p0, p1)))
    u, v, r = p1 - p0, q1 - q0, q0 - p0
    n = cross(u, v)
    n2 = dot(n, n)
    s = np.clip(ratio(dot(cross(r, v), n), n2), 0, 1)
    t = np.clip(ratio(dot(cross(r, u), n), n2), 0, 1)
    return np.minimum(best, length(p0 + u * s - (q0 + v * t)))


def _weights(x, a, b, c):
    """Barycentric weights of x, clamped to the triangle."""
    u, v, r = b - a, c - a, x - a
    n = cross(u, v)
    n2 = dot(n, n)
    i = np.clip(ratio(dot(cross(r, v), n), n2), 0, 1)
    j = np.clip(ratio(dot(cross(u, r), n), n2), 0, 1)
    k = np.maximum(i + j, 1)
    return i / k, j / k


def point_triangle(p, a, b, c):
    i, j = _weights(p, a, b, c)
    best = length(p - (a + (b - a) * i + (c - a) * j))
    for x, y in ((a, b), (b, c), (c, a)):
        best = np.minimum(best, point_segment(p, x, y))
    return best


def segment_triangle(p0, p1, a, b, c):
    best = np.minimum(point_triangle(p0, a, b, c), point_triangle(p1, a, b, c))
    for x, y in ((a, b), (b, c), (c, a)):
        best = np.minimum(best, segment_segment(p0, p1, x, y))
    n = cross(b - a, c - a)
    d = p1 - p0
    x = p0 + d * np.clip(ratio(dot(a - p0, n), dot(d, n)), 0, 1)
    return np.minimum(best, point_triangle(x, a, b, c))


def point_box(p, half):
    return length(p - np.clip(p, -half, half))


def segment_box(p0, p1, half):
    """The solid box [-half, half]."""
    d = p1 - p0
    best = np.minimum(point_box(p0, half), point_box(p1, half))
    enter, leave = np.zeros_like(best), np.ones_like(best)
    apart = np.zeros(best.shape, bool)
    with np.errstate(all="ignore"):
        for i in range(3):
            x, y = (-half[i] - p0[i]) / d[i], (half[i] - p0[i]) / d[i]
            still = d[i] == 0
            apart |= still & (abs(p0[i]) > half[i])
            enter = np.where(still, enter, np.maximum(enter, np.minimum(x, y)))
            leave = np.where(still, leave, np.minimum(leave, np.maximum(x, y)))
    best = np.where(~apart & (enter <= leave), 0, best)
    # On a path, the middle of the crossing is a point of the segment and need not be exact.
    middle = p0 + d * np.clip((enter + leave) / 2, 0, 1)
    best = np.minimum(best, point_box(middle, half))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for sj in (-1, 1):
            for sk in (-1, 1):
                q0, q1 = -half.copy(), half.copy()
                q0[j] = q1[j] = sj * half[j]
                q0[k] = q1[k] = sk * half[k]
                best = np.minimum(best, segment_segment(p0, p1, q0, q1))
    return best


def segment_polyhedron(p0, p1, triangles):
    """A solid of outward triangles, (m, 3, 3) for all rows: 0 inside."""
    inside = np.ones(p0.shape[1], bool)
    best = np.full(p0.shape[1], np.inf, p0.dtype)
    for a, b, c in np.asarray(triangles, p0.dtype)[..., None]:
        best = np.minimum(best, segment_triangle(p0, p1, a, b, c))
        inside &= dot(p0 - a, cross(b - a, c - a)) <= 0
    return np.where(inside, 0, best)


def smallest_on_path(distance, end, steps=56):
    """Smallest value of distance(t), convex in t, for t in [0, end] (n,); its t."""
    lo, hi = np.zeros_like(end), end.copy()
    x, y = hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo)
    fx, fy = distance(x), distance(y)
    for _ in range(steps):
        left = fx <= fy
        hi, lo = np.where(left, y, hi), np.where(left, lo, x)
        new = np.where(left, hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo))
        fn = distance(new)
        x, y, fx, fy = (np.where(left, new, y), np.where(left, x, new), np.where(left, fn, fy), np.where(left, fx, fn))
    t = np.where(fx <= fy, x, y)
    best = np.minimum(fx, fy)
    for edge in (np.zeros_like(end), end):
        f = distance(edge)
        t, best = np.where(f < best, edge, t), np.minimum(best, f)
    return best, t


def first_contact(distance, radius, end, steps=70):
    """First t in [0, end] with distance(t) <= radius, NaN without one."""
    best, t = smallest_on_path(distance, end)
    lo, hi = np.zeros_like(end), t
    for _ in range(steps):
        mid = (lo + hi) / 2
        touches = distance(mid) <= radius
        lo, hi = np.where(touches, lo, mid), np.where(touches, mid, hi)
    hi = np.where(distance(np.zeros_like(end)) <= radius, 0, hi)
    return np.where(best <= radius, hi, np.nan)
