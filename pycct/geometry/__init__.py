"""Pure functions of values: vectors, closest points, sweeps, overlaps, rays.

Every function here is `noexcept nogil`, takes values and returns values. The headers `vec`,
`types`, `closest` and `sweep` form the C-level API. `aabb4` tests four boxes at a time.
`array_loops` runs the kernels over rows of numbers for `pycct.kernels` and `pycct.toolbox`.

May import `runtime`.
"""
