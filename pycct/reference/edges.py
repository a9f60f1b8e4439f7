"""Convex edges of meshes and heightfields (RULES_2 3).

The flags of a triangle are three bits: 1 for the edge from its first to its second corner, 2 for
the next edge, 4 for the last one. The corners are in the shape's own order, the smallest first.
"""

from pycct.reference.vec import dot, sub

ALL_CONVEX = 7
# Normals with at least this product make no convex edge: of a mesh (the cosine of 0.1 rad), and of
# a heightfield.
FLAT_MESH = 0.9950041652780258
FLAT_FIELD = 0.999
# Triangles with a product below this are folded back onto one another.
FOLDED_PRODUCT = -0.999
# An edge of more triangles than this is not convex.
MOST_AT_EDGE = 16


def _opposite(corners, p, q):
    """The corner that is not on the edge."""
    return next(c for c in corners if c != p and c != q)


def _lies_below(one, other, p, q):
    """Whether the corner of one triangle opposite the edge pq lies below the other's plane."""
    return dot(other[1], sub(_opposite(one[0], p, q), p)) < 0.0


def _is_convex(one, other, p, q, flat):
    """Whether the edge pq of two triangles, each as (corners, normal), is convex."""
    product = dot(one[1], other[1])
    if _lies_below(one, other, p, q) or _lies_below(other, one, p, q):
        return product < flat
    return product < FOLDED_PRODUCT


def _edge_of_many(rows, p, q, flat):
    """The edge of three and more triangles is convex only between pairs of double-sided ones."""
    first = rows[0]
    second = None
    double = False
    for row in rows[1:]:
        if set(row[0]) == set(first[0]):
            double = double or dot(first[1], row[1]) < FOLDED_PRODUCT
        elif second is None:
            second = row
        elif set(row[0]) == set(second[0]):
            double = double or dot(second[1], row[1]) < FOLDED_PRODUCT
        else:
            return False
    return second is not None and double and dot(first[1], second[1]) < flat


def convex_edges(faces, flat):
    """Flags by triangle number of (number, corners, normal) rows of one shape."""
    by_edge = {}
    for number, corners, normal in faces:
        for i in range(3):
            p, q = corners[i], corners[(i + 1) % 3]
            by_edge.setdefault((p, q) if p < q else (q, p), []).append((number, i, corners, normal))
    flags = {number: 0 for number, _, _ in faces}
    for (p, q), users in by_edge.items():
        if len(users) > MOST_AT_EDGE:
            continue
        # Equal triangles count once. The order is one of geometry, never that of the input.
        rows = sorted({corners: (corners, normal) for _, _, corners, normal in users}.values())
        if len(rows) == 1:
            convex = True
        elif len(rows) == 2:
            convex = _is_convex(*rows, p, q, flat)
        else:
            convex = _edge_of_many(rows, p, q, flat)
        if convex:
            for number, i, _, _ in users:
                flags[number] |= 1 << i
    return flags
