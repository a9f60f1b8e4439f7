"""For authoritative servers: queries of past ticks, validation of claimed movement, rollback.

The package imports the public modules of pycct and NumPy only. It opens no sockets and defines
no protocol. `history` answers queries of past ticks, `audit` validates claimed positions,
`timeline` applies late inputs, and `selftest` simulates a network in one process. `checks` converts
arguments, and `ghosts` repeats claimed ways for the audit.

Examples
--------
>>> from pycct import Crowd, Plane, Scene
>>> from pycct.net import History
>>> scene = Scene()
>>> floor = scene.add(Plane((0, 0, 1)))
>>> crowd = Crowd(scene, [(0, 0, 0.91), (5, 0, 0.91)])
>>> history = History(crowd, ticks=64)
>>> for tick in range(3):
...     flags = crowd.move([(0, 0, 0), (0, 0.5, 0)], 1 / 60)
...     history.store(tick)
>>> history.raycast(0.5, (0, 0.75, 0.91), (1, 0, 0), 10).controller in crowd.ids
True
"""

from __future__ import annotations

from pycct.net.audit import Audit, Reason, Verdicts
from pycct.net.history import History, RewindHit
from pycct.net.timeline import Timeline

__all__ = ["Audit", "History", "Reason", "RewindHit", "Timeline", "Verdicts"]
