"""The expanding polygon (CONTACT, 'Capsule vs Convex'): outline of points in a plane.

The builder starts from two distant points and repeatedly adds the point that is farthest outside. A
builder that reaches its capacity therefore contains the corners of the largest outline.
"""

from math import sqrt

from pycct.reference.vec import ZERO, cross, dot, len2, lex, scale, sub


def _edge_normal(a, b, normal):
    """Unit normal of edge ab, outward for a polygon counter-clockwise around ``normal``."""
    n = cross(sub(b, a), normal)
    m = sqrt(len2(n))
    return scale(n, 1.0 / m) if m > 0.0 else ZERO


def _better(d, p, best, best_p):
    """Whether a point is farther out; the lexicographically smaller of equal points wins."""
    return d > best or (d == best and lex(p, best_p) < 0)


def outline(points, normal, capacity, tolerance):
    """Corners of the outline of points seen along a unit normal, counter-clockwise, as indices.

    Points at most ``tolerance`` outside an edge are dropped.
    """
    best = 0
    for i in range(1, len(points)):
        if lex(points[i], points[best]) < 0:
            best = i
    reference = points[best]
    out = []
    for _ in range(2):
        # The farthest point from the reference becomes the next reference.
        best = 0
        best_d = -1.0
        for i, p in enumerate(points):
            d = len2(cross(sub(p, reference), normal))
            if _better(d, p, best_d, points[best]):
                best = i
                best_d = d
        out.append(best)
        reference = points[best]
    if sqrt(best_d) <= tolerance or best_d <= 0.0:
        return out[:1]

    a = points[out[0]]
    n = _edge_normal(a, points[out[1]], normal)
    left = []  # [point, edge that it is outside of, distance]
    for i, p in enumerate(points):
        d = dot(n, sub(p, a))
        if d > tolerance or d < -tolerance:
            left.append([i, 0, d] if d > 0.0 else [i, 1, -d])
    while len(out) < capacity and left:
        best = 0
        for i in range(1, len(left)):
            if _better(left[i][2], points[left[i][0]], left[best][2], points[left[best][0]]):
                best = i
        point, edge, _ = left[best]
        left[best] = left[-1]
        left.pop()
        out.insert(edge + 1, point)
        after = out[edge + 2 if edge + 2 < len(out) else 0]
        p = points[point]
        n_0 = _edge_normal(points[out[edge]], p, normal)
        n_1 = _edge_normal(p, points[after], normal)
        i = 0
        while i < len(left):
            if left[i][1] > edge:
                left[i][1] += 1
            elif left[i][1] == edge:
                b = sub(points[left[i][0]], p)
                d = dot(n_0, b)
                d2 = dot(n_1, b)
                if d <= tolerance and d2 <= tolerance:
                    left[i] = left[-1]
                    left.pop()
                    continue
                if d2 > d:
                    left[i][1] = edge + 1
                    left[i][2] = d2
                else:
                    left[i][2] = d
            i += 1
    return out
