"""``python -m pycct replay``."""

from pycct import Box, Crowd, Plane, Scene
from pycct.cli.main import main
from pycct.record import record


def stops(scene, crowd):
    return bool((crowd.flags & 1).any())


def test_replay_prints_verifies_explains_and_shrinks(tmp_path, capsys):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((0.1, 5, 1)), (1, 0, 1))
    crowd = Crowd(scene, [(0, 0, 0.91)])
    path = str(tmp_path / "r")
    with record(path, scene, crowd):
        for _ in range(20):
            crowd.move([(0.05, 0, -0.01)], 1 / 60)
    test = tmp_path / "test_case.py"
    assert main(["replay", path, "--verify", "--explain", "15", str(crowd.ids[0]),
                 "--shrink", f"{__name__}:stops", "--out", str(test)]) == 0
    text = capsys.readouterr().out
    assert "20 ticks, 20 moves" in text and "equal to the bit" in text and "hits <Actor 1" in text
    assert test.exists()
    assert main(["replay", path, "--explain", "15", "99"]) == 1
    assert main(["replay", str(tmp_path / "none")]) == 1
    (tmp_path / "text").write_text("text")
    assert main(["replay", str(tmp_path / "text")]) == 1
    assert "not a recording" in capsys.readouterr().err
