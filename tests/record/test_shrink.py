"""A shrunk recording is a small test that passes by itself."""

import numpy as np
import pytest

from pycct import Box, Crowd, Mesh, Plane, Scene
from pycct.record import record, shrink

DT = 1 / 60


def test_a_recording_shrinks_to_a_test(tmp_path):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Mesh([(3, -9, 0), (3, 9, 0), (3, 9, 4), (3, -9, 4), (9, 0, 0)], [(0, 1, 2), (0, 2, 3), (0, 1, 4)],
                   two_sided=True))
    lift = scene.add(Box((1, 1, 0.1)), (-8, 0, 0.1), body="kinematic")
    crowd = Crowd(scene, [(0, y, 0.91) for y in np.arange(6.0) - 3], step_offset=0.3)
    with record(tmp_path / "r", scene, crowd):
        for tick in range(80):
            lift.move_to((-8, 0, 0.1 + 0.01 * tick))
            crowd.move(np.tile((0.05, 0.0, -0.02), (6, 1)), DT)
    case = shrink(tmp_path / "r", lambda scene, crowd: bool((crowd.flags & 1).any()), tmp_path / "test_case.py")
    assert len(case.members) == 1 and len(case.ticks) == 1 and len(case.actors) == 1
    assert case.actors[0]["shape"].triangle_count == 1
    text = (tmp_path / "test_case.py").read_text()
    space = {}
    exec(compile(text, "test_case.py", "exec"), space)
    space["test_recording"]()
    with pytest.raises(ValueError, match="predicate must hold"):
        shrink(tmp_path / "r", lambda scene, crowd: False, tmp_path / "x.py")
