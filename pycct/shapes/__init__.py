"""Shapes that users create, and the files that store them.

`primitives` defines the base class and the convex shapes, `mesh` and `heightfield` those with many
triangles. `heightfield_cells` turns cells into triangles, and `cooked_file` reads and writes scenes
that open by memory mapping.

May import `runtime`, `geometry`, `args`, `spatial` and `convex`.
"""
