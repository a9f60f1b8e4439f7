"""Vectors as tuples, quaternions (x, y, z, w), boxes (lo, hi).

Every sum has one fixed order (x, then y, then z), because the compiled package does the same
arithmetic in the same order, and tests compare both bit for bit. The module therefore uses no
sum(), hypot or power, and only the two minimum and maximum functions below.
"""

from math import sqrt

ZERO = (0.0, 0.0, 0.0)


def f_min(a, b):
    """The smaller number; the second of two equal ones (-0.0 and 0.0 are equal)."""
    return a if a < b else b


def f_max(a, b):
    """The larger number; the second of two equal ones."""
    return a if a > b else b


def f_clamp(x, lo, hi):
    """The number, clamped to lo and hi."""
    return lo if x < lo else (hi if x > hi else x)


def add(a, b):
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def sub(a, b):
    """Difference."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def neg(a):
    """The opposite vector."""
    return (-a[0], -a[1], -a[2])


def scale(a, k):
    """Vector times number."""
    return (a[0] * k, a[1] * k, a[2] * k)


def mul(a, b):
    """Product component by component."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


def madd(a, b, k):
    """The sum a + b * k."""
    return (a[0] + b[0] * k, a[1] + b[1] * k, a[2] + b[2] * k)


def lerp(a, b, t):
    """The point a + (b - a) * t."""
    return (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t)


def dot(a, b):
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """Vector product."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def len2(a):
    """Squared length."""
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]


def length(a):
    """Length."""
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


def dist2(a, b):
    """Squared distance of two points."""
    return len2(sub(a, b))


def unit(a):
    """Unit vector; a magnitude <= 1e-9 gives the zero vector (RULES 1)."""
    m = length(a)
    if m <= 1e-9:
        return ZERO
    return (a[0] / m, a[1] / m, a[2] / m)


def along(a, axis):
    """Part of a along the unit vector axis."""
    return scale(axis, dot(a, axis))


def reject(a, axis):
    """Part of a perpendicular to the unit vector axis."""
    return sub(a, along(a, axis))


def across(axis):
    """A unit vector perpendicular to axis, from the coordinate axis most perpendicular to it."""
    x, y, z = vabs(axis)
    if x <= y and x <= z:
        u = (0.0, axis[2], -axis[1])
    elif y <= z:
        u = (-axis[2], 0.0, axis[0])
    else:
        u = (axis[1], -axis[0], 0.0)
    m = length(u)
    return scale(u, 1.0 / m) if m > 0.0 else (0.0, 0.0, 1.0)


def vmin(a, b):
    """Smaller components."""
    return (f_min(a[0], b[0]), f_min(a[1], b[1]), f_min(a[2], b[2]))


def vmax(a, b):
    """Larger components."""
    return (f_max(a[0], b[0]), f_max(a[1], b[1]), f_max(a[2], b[2]))


def vabs(a):
    """Magnitudes of the components."""
    return (abs(a[0]), abs(a[1]), abs(a[2]))


def max_abs(a):
    """Largest magnitude of a component."""
    return f_max(abs(a[0]), f_max(abs(a[1]), abs(a[2])))


def is_zero(a):
    """True if every component is exactly zero."""
    return a[0] == 0.0 and a[1] == 0.0 and a[2] == 0.0


def is_finite(a):
    """True if every component is finite."""
    # x - x is 0 for a finite number and NaN otherwise.
    return a[0] - a[0] == 0.0 and a[1] - a[1] == 0.0 and a[2] - a[2] == 0.0


def lex(a, b):
    """-1, 0 or 1: lexicographic order by x, y, z."""
    return (a > b) - (a < b)


def q_rotate(q, v):
    """The vector rotated by the unit quaternion q."""
    u = (q[0], q[1], q[2])
    t = scale(cross(u, v), 2.0)
    return add(madd(v, t, q[3]), cross(u, t))


def q_conj(q):
    """The inverse rotation."""
    return (-q[0], -q[1], -q[2], q[3])


def q_unrotate(q, v):
    """The vector rotated by the inverse of the unit quaternion q."""
    return q_rotate(q_conj(q), v)


def q_mul(a, b):
    """The rotation b followed by the rotation a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


def q_is_identity(q):
    """True if q is the identity."""
    return q[0] == 0.0 and q[1] == 0.0 and q[2] == 0.0


def q_matrix(q):
    """Three rows: the rotation matrix of q for column vectors."""
    x, y, z, w = q
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


def m3_mul(m, v):
    """Matrix times column vector."""
    return (dot(m[0], v), dot(m[1], v), dot(m[2], v))


def m3_tmul(m, v):
    """Transpose of m times v (the inverse, for a rotation)."""
    return (
        m[0][0] * v[0] + m[1][0] * v[1] + m[2][0] * v[2],
        m[0][1] * v[0] + m[1][1] * v[1] + m[2][1] * v[2],
        m[0][2] * v[0] + m[1][2] * v[1] + m[2][2] * v[2],
    )


def box_union(a, b):
    """The smallest box around two boxes."""
    return (vmin(a[0], b[0]), vmax(a[1], b[1]))


def box_grow(a, k):
    """The box grown by k on every side."""
    lo, hi = a
    return ((lo[0] - k, lo[1] - k, lo[2] - k), (hi[0] + k, hi[1] + k, hi[2] + k))


def box_overlap(a, b):
    """True if the boxes share a point (touching counts)."""
    (al, ah), (bl, bh) = a, b
    return (
        al[0] <= bh[0] and bl[0] <= ah[0]
        and al[1] <= bh[1] and bl[1] <= ah[1]
        and al[2] <= bh[2] and bl[2] <= ah[2]
    )  # fmt: skip


def box_inside(inner, outer):
    """True if the outer box contains the whole inner box."""
    (il, ih), (ol, oh) = inner, outer
    return (
        il[0] >= ol[0] and ih[0] <= oh[0]
        and il[1] >= ol[1] and ih[1] <= oh[1]
        and il[2] >= ol[2] and ih[2] <= oh[2]
    )  # fmt: skip


def box_centre(a):
    """Centre of a box."""
    return scale(add(a[0], a[1]), 0.5)


def box_half(a):
    """Half the length of each side."""
    return scale(sub(a[1], a[0]), 0.5)
