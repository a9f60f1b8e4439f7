"""Recordings of a scene and its characters that replay to the bit.

What lives here imports the public modules of pycct and NumPy only. `blocks` is the file format,
`values` turns arguments of calls into bytes, `recorder` writes, `player` replays, and `shrinking`
reduces a recording to a test.

Examples
--------
>>> import pathlib, tempfile
>>> from pycct import Crowd, Plane, Scene
>>> from pycct.record import record, replay
>>> scene = Scene()
>>> floor = scene.add(Plane((0, 0, 1)))
>>> crowd = Crowd(scene, [(0, 0, 0.91), (5, 0, 0.91)])
>>> path = pathlib.Path(tempfile.mkdtemp()) / "walk.pycctrec"
>>> with record(path, scene, crowd):
...     for _ in range(10):
...         flags = crowd.move([(0.1, 0, -0.01), (0, 0.1, -0.01)], 1 / 60)
>>> recording = replay(path)
>>> recording.ticks, recording.verify() is None
(10, True)
>>> recording.seek(10)
>>> recording.crowd.positions.tolist() == crowd.positions.tolist()
True
"""

from __future__ import annotations

from pycct.record.player import Difference, Recording, replay
from pycct.record.recorder import record
from pycct.record.shrinking import shrink

__all__ = ["Difference", "Recording", "record", "replay", "shrink"]
