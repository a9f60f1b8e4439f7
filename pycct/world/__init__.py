"""Colliders as the kernels see them, and the candidates of a move.

`candidates` gathers the triangles and colliders near a character and casts against them.
`broadphase` holds layers of colliders, each with a tree.

May import `runtime`, `geometry`, `args`, `spatial`, `convex` and `shapes`.
"""
