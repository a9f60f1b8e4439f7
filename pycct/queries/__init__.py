"""Questions to the world: rays, sweeps, overlaps, penetrations, closest points.

`query_kernels` answers one query without the GIL, `scene_queries` converts arguments and results
for `Scene`, and `shape_pairs` compares two shapes without a scene.

May import all lower layers: `runtime` to `world`.
"""
