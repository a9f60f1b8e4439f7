"""The demo: characters climb, jump and pass as the level needs, and the command reports it."""
import io
import subprocess
import sys

import numpy as np
import pytest

from pycct import CollisionFlags
from pycct.__main__ import COMMANDS, main
from pycct.cli.demo.level import RISER, STEPS, build_level
from pycct.cli.demo.walkers import DT, HALF_HEIGHT, RADIUS, STEP_OFFSET, TOURS, Walk, falls_and_steps, summarise, walk
from pycct.cli.progress import Progress


@pytest.fixture(scope="module")
def level():
    return build_level()


@pytest.fixture(scope="module")
def walked(level):
    return walk(level)


def feet(walked):
    return walked.positions - [0, 0, HALF_HEIGHT]


def of_tour(walked, name):
    return walked.tours == next(k for k, tour in enumerate(TOURS) if tour.name == name)


def feature(level, name):
    return next(f for f in level.features if f.name == name)


# --- the walk -------------------------------------------------------------------------------------


def test_walk_is_the_same_to_the_bit_every_time(level):
    first, second = walk(level, 16, 3.0), walk(level, 16, 3.0)
    assert np.array_equal(first.positions, second.positions)
    assert np.array_equal(first.flags, second.flags)


def test_a_character_walks_the_same_with_fewer_beside_it(level, walked):
    fewer = walk(level, 8, 2.0)
    assert np.array_equal(fewer.positions, walked.positions[: len(fewer.positions), :8])


def test_nobody_leaves_the_level_or_sinks_into_it(level, walked):
    assert np.isfinite(walked.positions).all()
    radius = RADIUS
    assert np.all(np.abs(walked.positions[..., 0]) < 22 - radius + 0.01)
    assert np.all(np.abs(walked.positions[..., 1]) < 15 - radius + 0.01)
    on_terrain = feature(level, "terrain").contains(walked.positions)
    assert feet(walked)[~on_terrain, 2].min() > -0.01
    assert feet(walked)[..., 2].min() > -1.5


def test_everybody_starts_on_the_ground_in_the_clear(level, walked):
    start = walked.positions[0]
    x, y, z, _ = level.raster(0.1)
    for px, py, _ in start:
        near = (np.abs(x[None, :] - px) < 0.45) & (np.abs(y[:, None] - py) < 0.45)
        assert np.all(z[near] == 0)
    assert np.all((walked.flags[0] & int(CollisionFlags.SIDES)) == 0)


def test_every_place_that_can_be_reached_is_visited(level, walked):
    out_of_reach = {"too low 1.5 m", "gap 0.5 m", "ramp 50°", "ramp 60°"}
    for f in level.features:
        visitors = f.contains(walked.positions).any(axis=0).sum()
        assert (visitors == 0) == (f.name in out_of_reach), (f.name, visitors)


def test_stairs_are_climbed_step_by_step(level, walked):
    _, steps = falls_and_steps(walked, level)
    assert np.all(steps[of_tour(walked, "stairs, ledges")] >= STEPS)
    climbers = of_tour(walked, "stairs, ledges")
    assert np.all(feet(walked)[:, climbers, 2].max(axis=0) > RISER * STEPS)


def test_ledges_and_balcony_are_falls(level, walked):
    falls, _ = falls_and_steps(walked, level)
    fallers = falls[:, 0].astype(int)
    down_the_ledges = np.isin(fallers, np.flatnonzero(of_tour(walked, "stairs, ledges")))
    # From 3 m down to the plaza in four drops.
    assert np.all(np.bincount(fallers[down_the_ledges])[of_tour(walked, "stairs, ledges").nonzero()[0]] >= 4)
    assert falls[:, 2].max() > 2.5


def test_ramps_under_the_limit_are_walked_and_those_over_it_are_not(level, walked):
    for name, tour in (("ramp 30°", "ramp 30°, kerbs"), ("ramp 40°", "ramp 40°, balcony")):
        on_ramp = feature(level, name).contains(walked.positions[1:, of_tour(walked, tour)])
        assert on_ramp.any(axis=0).all(), name
        assert walked.grounded[:, of_tour(walked, tour)][on_ramp].mean() > 0.95
    refused = of_tour(walked, "ramps too steep")
    assert feet(walked)[:, refused, 2].max() < STEP_OFFSET


def test_tunnel_is_passed_and_what_is_too_small_is_not(level, walked):
    through = of_tour(walked, "tunnel, gaps")
    x = walked.positions[:, through, 0]
    for name in ("tunnel 2 m", "gap 1 m"):
        inside = feature(level, name).contains(walked.positions[:, through])
        assert inside.any(axis=0).all(), name
    assert x.max() > feature(level, "tunnel 2 m").high[0] + 0.5


def test_kerb_higher_than_a_step_is_only_crossed_by_a_jump(level, walked):
    low, high = feature(level, "kerbs").low, feature(level, "kerbs").high
    kerb = next(t for t in level.treads if t[4] == 0.5 and low[0] <= t[0] and t[3] <= high[1])
    pos = walked.positions[1:]
    over = (pos[..., 0] > kerb[0]) & (pos[..., 0] < kerb[1]) & (pos[..., 1] > kerb[2]) & (pos[..., 1] < kerb[3])
    crossers = np.flatnonzero(over.any(axis=0))
    assert len(crossers) >= 4
    for i in crossers:
        assert walked.jumped[: np.argmax(over[:, i]) + 1, i].any()


# --- counting -------------------------------------------------------------------------------------


def made_walk(points, grounded, jumped=None):
    """A walk of one character whose feet are at `points`."""
    positions = np.array(points, float)[:, None] + [0, 0, HALF_HEIGHT]
    frames = len(points) - 1
    return Walk(
        positions=positions,
        displacements=np.diff(positions, axis=0),
        flags=np.zeros((frames, 1), np.uint8),
        grounded=np.array(grounded, bool).reshape(-1, 1),
        jumped=np.array(jumped if jumped is not None else [False] * frames, bool).reshape(-1, 1),
        tours=np.zeros(1, int),
        microseconds=np.ones(frames),
    )


def test_a_drop_deeper_than_a_step_is_a_fall(level):
    for drop, expected in ((0.35, 0), (0.45, 1), (2.0, 1)):
        w = made_walk([(-8, 11, 2), (-7.4, 11, 2 - drop / 2), (-7, 11, 2 - drop)], [False, True])
        w.grounded[:] = [[False], [True]]
        falls, _ = falls_and_steps(w, level)
        assert len(falls) == expected
    assert falls[0] == pytest.approx([0, 1, 2.0, -8, 11])


def test_landing_from_a_jump_is_no_fall_and_no_step(level):
    w = made_walk([(0, -1, 0), (0, -0.5, 0.5), (0, 0.5, 0.2)], [False, True], [True, False])
    falls, steps = falls_and_steps(w, level)
    assert len(falls) == 0 and steps.tolist() == [0]
    w.jumped[:] = False
    assert falls_and_steps(w, level)[1].tolist() == [1]


def test_the_same_stairs_up_are_steps_and_down_are_none(level):
    stairs = feature(level, "stairs")
    up = [(stairs.low[0] - 0.5, 11, 0.0)]
    up += [(t[0] + 0.2, 11, t[4]) for t in level.treads if stairs.low[0] <= t[0] < stairs.high[0]]
    assert len(up) == STEPS + 1
    assert falls_and_steps(made_walk(up, [True] * STEPS), level)[1].tolist() == [STEPS]
    assert falls_and_steps(made_walk(up[::-1], [True] * STEPS), level)[1].tolist() == [0]


def test_a_ramp_is_no_step(level):
    ramp = feature(level, "ramp 40°")
    y = np.linspace(ramp.low[1] - 0.5, ramp.high[1] + 0.5, 60)
    z = np.clip((y - ramp.low[1]) / (ramp.high[1] - ramp.low[1]), 0, 1) * 2
    w = made_walk([(ramp.low[0] + 1.5, a, b) for a, b in zip(y, z, strict=True)], [True] * 59)
    assert falls_and_steps(w, level)[1].tolist() == [0]


def test_summary_adds_up(level, walked):
    rows = summarise(walked, level)
    assert [r.name for r in rows] == [t.name for t in TOURS] + ["all"]
    total = rows[-1]
    assert total.characters == 64 == sum(r.characters for r in rows[:-1])
    assert total.walked == pytest.approx(sum(r.walked for r in rows[:-1]))
    for what in ("steps_climbed", "jumps", "falls"):
        assert getattr(total, what) == sum(getattr(r, what) for r in rows[:-1]) > 0
    assert total.deepest_fall == max(r.deepest_fall for r in rows[:-1])
    # At most 5 m/s for 20 s; a level that stops people costs something.
    assert 0.5 * 64 * 20 * 3.2 < total.walked < 64 * 20 * 5.0


# --- the command line -----------------------------------------------------------------------------


def test_demo_writes_picture_numbers_and_level(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "new" / "folder"
    assert main(["demo", "--out", str(out), "--seconds", "1.5", "--characters", "9"]) == 0
    printed = capsys.readouterr()
    assert "microseconds per move" in printed.out and "steps climbed" in printed.out
    assert printed.err == ""
    assert (out / "paths.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (out / "level.obj").stat().st_size > 10_000
    with np.load(out / "demo.npz") as z:
        assert z["positions"].shape == (91, 9, 3)
        assert z["displacements"].shape == (90, 9, 3)
        assert z["flags"].shape == z["grounded"].shape == (90, 9)
        assert float(z["dt"]) == DT
        again = walk(build_level(), 9, 1.5)
        assert np.array_equal(z["positions"], again.positions)


def test_demo_without_matplotlib_says_how_to_get_it_and_goes_on(tmp_path):
    code = "import sys; sys.modules['matplotlib'] = None; from pycct.__main__ import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["demo", "--out", str(tmp_path), "--seconds", "0.1", "--characters", "1"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo.glb", "demo.npz", "level.obj"]


def test_demo_says_when_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file"), "--seconds", "0.1", "--characters", "1"]) == 1
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["--characters=0", "--characters=x", "--seconds=-1", "--seconds=nan", "--seconds=0"])
def test_demo_refuses_senseless_arguments(bad, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", bad])
    assert stop.value.code == 2
    assert bad.partition("=")[0] in capsys.readouterr().err


def test_no_command_or_an_unknown_one_is_an_error(capsys):
    for arguments in ([], ["dance"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "demo" in capsys.readouterr().err


def test_help_lists_all_commands_and_imports_none():
    code = "import sys; from pycct.__main__ import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
    code += f"assert not any('pycct.' + name in sys.modules for name in {tuple(COMMANDS)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in COMMANDS:
        assert name in done.stdout


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_draws_on_a_terminal_only():
    silent, seen = io.StringIO(), Terminal()
    for stream in (silent, seen):
        with Progress(10, "walking", stream) as progress:
            progress.update(10)
    assert silent.getvalue() == ""
    assert "100%" in seen.getvalue() and seen.getvalue().endswith("\n")
