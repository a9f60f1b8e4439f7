"""Broadphase structures: the tree of boxes and the grid of characters.

`bvh` builds, refits and walks trees over triangles and colliders. `character_grid` finds the
characters near a character.

May import `runtime`, `geometry` and `args`.
"""
