"""The sweep/slide controller for worlds of cubes.

`cubes` stores the grid, `slide_step` runs one step, `controller` is its Python face, `records` are
the results, `microtests` and `report` run and document the tests T01 to T10.

May import `runtime`, `geometry` and `args` only.
"""
