"""Closest points between points, segments, triangles and boxes (SWEEP 5, RULES 3).

All functions take and return values. They accept degenerate, parallel, zero-length and zero-area
input.
"""

from math import sqrt
from typing import NamedTuple

from pycct.reference.vec import (
    ZERO,
    cross,
    dist2,
    dot,
    f_clamp,
    f_max,
    is_zero,
    len2,
    lerp,
    madd,
    sub,
)

# Below this squared sine two segments count as nearly parallel, and the end points are tried as
# well, because the interior solution has lost half its digits.
NEARLY_PARALLEL2 = 1e-6
# A triangle is degenerate if its cross product is at most this times its longest edge squared
# (RULES 3).
DEGENERATE = 1e-12
# Below this ratio of cross product to longest edge squared, the plain cross product of a triangle
# has lost too many digits.
SLIVER = 1e-3
# 2 ** 27 + 1 splits a double into halves whose products are exact.
SPLIT = 134217729.0


class Pair(NamedTuple):
    """Closest points of two shapes."""

    on_a: tuple
    on_b: tuple
    dist2: float  # squared distance
    s: float  # parameter on the first segment, 0 to 1 (0 for a point)
    t: float  # parameter on the second segment, 0 to 1 (0 for none)


def _pair(on_a, on_b, s, t):
    return Pair(on_a, on_b, dist2(on_a, on_b), s, t)


def _nearer(best, other):
    """The nearer of two pairs; the first of equal ones."""
    return other if other.dist2 < best.dist2 else best


def point_segment_parameter(p, a, b):
    """Parameter in [0, 1] of the point of segment ab nearest to p; 0 when a == b (SWEEP 5.1)."""
    d = sub(b, a)
    l2 = len2(d)
    if l2 <= 0.0:
        return 0.0
    return f_clamp(dot(sub(p, a), d) / l2, 0.0, 1.0)


def point_segment(p, a, b):
    """Closest points of a point and a segment."""
    t = point_segment_parameter(p, a, b)
    return _pair(p, lerp(a, b, t), 0.0, t)


def segment_segment(p0, p1, q0, q1):
    """Closest points of two segments (SWEEP 5.2)."""
    d1 = sub(p1, p0)
    d2 = sub(q1, q0)
    r = sub(p0, q0)
    a = len2(d1)
    e = len2(d2)
    if a <= 0.0:
        t = point_segment_parameter(p0, q0, q1)
        return _pair(p0, lerp(q0, q1, t), 0.0, t)
    if e <= 0.0:
        s = point_segment_parameter(q0, p0, p1)
        return _pair(lerp(p0, p1, s), q0, s, 0.0)
    b = dot(d1, d2)
    c = dot(d1, r)
    f = dot(d2, r)
    denom = a * e - b * b
    s = f_clamp((b * f - c * e) / denom, 0.0, 1.0) if denom > 0.0 else 0.0
    t = (b * s + f) / e
    if t < 0.0:
        t = 0.0
        s = f_clamp(-c / a, 0.0, 1.0)
    elif t > 1.0:
        t = 1.0
        s = f_clamp((b - c) / a, 0.0, 1.0)
    best = _pair(madd(p0, d1, s), madd(q0, d2, t), s, t)
    if denom > NEARLY_PARALLEL2 * a * e:
        return best
    # Cross products lose half as many digits to a small angle.
    m = cross(d1, d2)
    denom = len2(m)
    if denom > 0.0:
        s = f_clamp(dot(m, cross(d2, r)) / denom, 0.0, 1.0)
        t = f_clamp((b * s + f) / e, 0.0, 1.0)
        best = _pair(madd(p0, d1, s), madd(q0, d2, t), s, t)
    t = point_segment_parameter(p0, q0, q1)
    best = _nearer(best, _pair(p0, lerp(q0, q1, t), 0.0, t))
    t = point_segment_parameter(p1, q0, q1)
    best = _nearer(best, _pair(p1, lerp(q0, q1, t), 1.0, t))
    s = point_segment_parameter(q0, p0, p1)
    best = _nearer(best, _pair(lerp(p0, p1, s), q0, s, 0.0))
    s = point_segment_parameter(q1, p0, p1)
    return _nearer(best, _pair(lerp(p0, p1, s), q1, s, 1.0))


def _difference(a, b):
    """The exact difference a - b (Knuth's two-sum), as the nearest double and the rest."""
    hi = a - b
    t = hi - a
    return hi, (a - (hi - t)) - (b + t)


def _product(a, b):
    """The exact product a * b (Dekker's product), as the nearest double and the rest."""
    t = SPLIT * a
    a1 = t - (t - a)
    a2 = a - a1
    t = SPLIT * b
    b1 = t - (t - b)
    b2 = b - b1
    hi = a * b
    return hi, a2 * b2 - (((hi - a1 * b1) - a2 * b1) - a1 * b2)


def _determinant(a, b, c, d):
    """The value a * b - c * d, accurate to the last digits despite cancellation."""
    p, p_lo = _product(a[0], b[0])
    q, q_lo = _product(c[0], d[0])
    r, r_lo = _difference(p, q)
    return r + (r_lo + (p_lo - q_lo) + (a[0] * b[1] + a[1] * b[0]) - (c[0] * d[1] + c[1] * d[0]))


def _sliver_cross(a, b, c):
    """Cross product of b - a and c - a, with the digits that plain doubles lose in slivers."""
    ux, uy, uz = (_difference(x, y) for x, y in zip(b, a, strict=True))
    vx, vy, vz = (_difference(x, y) for x, y in zip(c, a, strict=True))
    return (_determinant(uy, vz, uz, vy), _determinant(uz, vx, ux, vz), _determinant(ux, vy, uy, vx))


def triangle_normal(a, b, c):
    """Unit normal of a triangle, zero if it is degenerate (RULES 3; SWEEP A.1 divides by zero)."""
    u = sub(b, a)
    v = sub(c, a)
    longest2 = f_max(len2(u), f_max(len2(v), dist2(c, b)))
    n = cross(u, v)
    m = sqrt(len2(n))
    if m <= DEGENERATE * longest2 or m == 0.0:
        return ZERO
    if m < SLIVER * longest2:
        n = _sliver_cross(a, b, c)
        m = sqrt(len2(n))
        if m == 0.0:
            return n
    return (n[0] / m, n[1] / m, n[2] / m)


def _inside(x, a, b, c, n):
    """True if the projection of x along n is inside the triangle."""
    u = sub(b, a)
    v = sub(c, b)
    w = sub(a, c)
    if not (
        dot(cross(u, sub(x, a)), n) >= 0.0 and dot(cross(v, sub(x, b)), n) >= 0.0 and dot(cross(w, sub(x, c)), n) >= 0.0
    ):
        return False
    # Beyond the sharp end of a sliver, rounding makes two edges one line. The ends of the longest
    # edge are still exact.
    u2 = len2(u)
    v2 = len2(v)
    w2 = len2(w)
    if u2 >= v2 and u2 >= w2:
        return 0.0 <= dot(sub(x, a), u) <= u2
    if v2 >= w2:
        return 0.0 <= dot(sub(x, b), v) <= v2
    return 0.0 <= dot(sub(x, c), w) <= w2


def point_triangle(p, a, b, c):
    """Point of a triangle nearest to p."""
    n = triangle_normal(a, b, c)
    if not is_zero(n) and _inside(p, a, b, c, n):
        return madd(p, n, -dot(sub(p, a), n))
    best = point_segment(p, a, b)
    best = _nearer(best, point_segment(p, b, c))
    return _nearer(best, point_segment(p, c, a)).on_b


def segment_triangle(p0, p1, a, b, c, n):
    """Closest points of a segment and a triangle with unit normal n (zero: degenerate).

    The search is complete, unlike that of SWEEP 5.3.3: the crossing, the ends against the face, and
    the segment against the edges (RULES 9).
    """
    best = None
    if not is_zero(n):
        h0 = dot(sub(p0, a), n)
        h1 = dot(sub(p1, a), n)
        if (h0 <= 0.0 <= h1 or h1 <= 0.0 <= h0) and h0 != h1:
            t = h0 / (h0 - h1)
            x = lerp(p0, p1, t)
            if _inside(x, a, b, c, n):
                return _pair(x, x, t, 0.0)
        # If the nearer end projects into the face and the segment does not cross the plane, that
        # end is the closest point.
        if _inside(p0, a, b, c, n):
            best = _pair(p0, madd(p0, n, -h0), 0.0, 0.0)
            if 0.0 <= h0 <= h1 or h1 <= h0 <= 0.0:
                return best
        if _inside(p1, a, b, c, n):
            other = _pair(p1, madd(p1, n, -h1), 1.0, 0.0)
            if 0.0 <= h1 <= h0 or h0 <= h1 <= 0.0:
                return other
            best = other if best is None else _nearer(best, other)
    other = segment_segment(p0, p1, a, b)
    best = other if best is None else _nearer(best, other)
    best = _nearer(best, segment_segment(p0, p1, b, c))
    best = _nearer(best, segment_segment(p0, p1, c, a))
    return best._replace(t=0.0)


def point_box(p, half):
    """Point of the solid box [-half, half] nearest to p."""
    return (
        f_clamp(p[0], -half[0], half[0]),
        f_clamp(p[1], -half[1], half[1]),
        f_clamp(p[2], -half[2], half[2]),
    )


def _excess(x, h):
    return x - h if x > h else (x + h if x < -h else 0.0)


def _slope(p, d, half, face):
    """Half the rate of change of the squared distance to the box at p along d.

    face: axis of the face that contains p, None for none. That axis is skipped, because the
    rounding of p would outweigh the other axes.
    """
    parts = [0.0 if i == face else d[i] * _excess(p[i], half[i]) for i in range(3)]
    return parts[0] + parts[1] + parts[2]


def segment_box(p0, p1, half):
    """Closest points of a segment and the solid box [-half, half]; distance 0 if it enters.

    The squared distance is convex and piecewise quadratic along the segment. The function finds the
    piece on which its slope changes sign, and solves there.
    """
    d = sub(p1, p0)
    if _slope(p0, d, half, None) >= 0.0:
        t = 0.0
    elif _slope(p1, d, half, None) < 0.0:
        t = 1.0
    else:
        # Parameters where the segment crosses the planes of the faces.
        ends = []
        for i in range(3):
            if d[i] != 0.0:
                ends += [(x, i) for x in ((half[i] - p0[i]) / d[i], (-half[i] - p0[i]) / d[i]) if 0.0 < x < 1.0]
        lo = 0.0
        hi = 1.0
        for end, face in sorted(ends):
            if _slope(madd(p0, d, end), d, half, face) >= 0.0:
                hi = end
                break
            lo = end
        # The faces of this piece decide; slopes at the ends of the piece may be rounding only.
        middle = 0.5 * (lo + hi)
        numerator = denominator = 0.0
        for i in range(3):
            x = p0[i] + d[i] * middle
            if x > half[i] or x < -half[i]:
                numerator += d[i] * ((half[i] if x > half[i] else -half[i]) - p0[i])
                denominator += d[i] * d[i]
        # Inside the box the slope is zero over a whole interval; the result is its start.
        t = f_clamp(numerator / denominator, lo, hi) if denominator > 0.0 else lo
    on_a = madd(p0, d, t)
    return _pair(on_a, point_box(on_a, half), t, 0.0)
