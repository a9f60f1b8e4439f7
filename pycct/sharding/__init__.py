"""One world on several processes or machines, with the same bits as in one process.

`Grid` cuts the ground plane into cells, and a `Shard` owns the characters in its cells. This folder
contains no transport: `Shard.begin` returns bytes and `Shard.finish` takes them.
`pycct.sharding.ray` runs shards as Ray actors (``pip install pycct[ray]``).

Imports the public modules of pycct only.
"""

from pycct.sharding.grid import Grid
from pycct.sharding.shard import Shard

__all__ = ["Grid", "Shard"]
