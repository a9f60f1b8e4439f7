"""Shapes that users create, and the files that store them.

`primitives` defines the shape classes, `heightfield_cells` turns cells into triangles, and
`cooked_file` reads and writes scenes that open by memory mapping.

May import `runtime`, `geometry`, `args`, `spatial` and `convex`.
"""
