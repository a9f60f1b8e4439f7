"""What characters see: patterns of rays and searches around every member of a crowd.

`kinds` defines the sensors (`Lidar`, `HeightScan`, `DepthGrid`, `Neighbours`, `Feet`), `buffers`
checks and creates the arrays, `sensor_kernels` computes them in threads, and `sensors` defines
`Sensors`.

May import all lower layers, the crowd included. `kinds` and `buffers` are plain Python and import
nothing of the package but ``runtime``.
"""
