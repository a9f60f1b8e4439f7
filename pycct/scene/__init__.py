"""The changeable world: actors, obstacles, characters, and the snapshots that moves read.

`Scene` accepts changes under a lock. A move or query reads an immutable `Snapshot`, which the first
reader after a change publishes.

May import all lower layers: `runtime` to `queries`.
"""
