"""Convex solids: hulls, outlines, distances, contact manifolds, casts.

`hull` builds convex hulls and their tables, `polytope` is the common view of boxes, triangles and
hulls, `distance` computes closest points of two solids, `manifold` their contacts, and
`polytope_cast` the time of impact of two polytopes.

May import `runtime`, `geometry`, `args` and `spatial`.
"""
