"""Generated levels: the same bits for a seed, a solution that can be walked, wrong arguments."""
import hashlib
import subprocess
import sys

import numpy as np
import pytest

from pycct import CharacterController, CollisionFlags, Scene
from pycct.rl.draws import Draws, circle, draw_below, draw_bits, draw_uniform
from pycct.rl.levels import GRAVITY, JUMP_SPEED, KINDS, PERIOD, SPEED, TICK, generate

NAMES = sorted(KINDS)
# Of levels 0 to 9 of each kind, see `digest`.
DIGESTS = {
    "maze": "1207f714f8a209fe", "parkour": "154c6f22046f7889", "rooms": "089d5e7cbb540af7",
    "terrain": "6e830ca449cd0970",
}


def digest(kind):
    found = hashlib.sha256()
    for seed in range(10):
        level = generate(kind, seed)
        for array in (level.vertices, level.triangles, level.spots, level.exits, level.remaining, level.goal,
                      *(mover.poses for mover in level.movers)):
            found.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        found.update(repr(level.course).encode())
    return found.hexdigest()[:16]


class Walker:
    """A controller that walks, jumps and falls as the characters of environments do."""

    def __init__(self, level, spot):
        self.scene = Scene()
        actors = level.build(self.scene)[1:]
        self.movers = [(actor.id, mover) for actor, mover in zip(actors, level.movers, strict=True)]
        x, y, z = level.spots[spot].tolist()
        self.hero = CharacterController(self.scene, radius=0.3, height=1.0, step_offset=0.4, contact_offset=0.01,
                                        rules="robust")
        self.hero.foot_position = x, y, z + 0.125
        self.fall = 0.0
        self.tick = 0

    def move(self, x, y, jump):
        self.tick += 1
        if self.movers:
            poses = np.array([mover.poses[self.tick % PERIOD] for _, mover in self.movers])
            self.scene.move_actors([id for id, _ in self.movers], poses[:, :3], poses[:, 3:])
        self.fall = 0.0 if self.hero.grounded and self.fall <= 0.0 else self.fall - GRAVITY * TICK
        down = -3.0 if self.hero.grounded and self.fall <= 0.0 else self.fall
        if jump:
            down = self.fall = JUMP_SPEED
        flags = self.hero.move((x, y, down * TICK), TICK)
        if flags & CollisionFlags.UP:
            self.fall = min(self.fall, 0.0)


def walk(level, spot):
    """Follow the route; the number of moves, or the waypoint that was not reached."""
    walker = Walker(level, spot)
    hero = walker.hero
    for waypoint in level.route(spot):
        waiting = True
        for _ in range(2 * PERIOD + 60):
            x, y, z = hero.foot_position
            dx, dy = waypoint.position[0] - x, waypoint.position[1] - y
            distance = float(np.sqrt(dx * dx + dy * dy))
            jump = False
            if waiting and hero.grounded:
                # Windows may reach over the end of the period.
                first, end = waypoint.window
                waiting = (walker.tick - first) % PERIOD >= end - first
                jump = not waiting and waypoint.jump
            if not waiting and not jump and hero.grounded and distance < 0.15 and abs(z - waypoint.position[2]) < 0.6:
                break
            step = 0.0 if waiting else min(SPEED * TICK / max(distance, 1e-9), 1.0)
            walker.move(dx * step, dy * step, jump)
        else:
            return waypoint
    return walker.tick


@pytest.mark.parametrize("kind", NAMES)
def test_a_seed_gives_the_same_bits_everywhere(kind):
    assert digest(kind) == DIGESTS[kind]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("seed", range(8))
def test_the_solution_can_be_walked(kind, seed):
    level = generate(kind, seed)
    for spot in range(len(level.spots)):
        assert isinstance(walk(level, spot), int), (kind, seed, spot)


@pytest.mark.slow
@pytest.mark.parametrize("kind, sizes", [("rooms", (2, 3, 5)), ("maze", (2, 6, 9)), ("terrain", (4, 12, 20)),
                                         ("parkour", (1, 6, 12))])
def test_the_solution_of_many_levels_can_be_walked(kind, sizes):
    for size in sizes:
        for seed in range(100, 160):
            level = generate(kind, seed, size)
            for spot in range(0, len(level.spots), 3):
                assert isinstance(walk(level, spot), int), (size, seed, spot)


@pytest.mark.parametrize("part", ["gap", "ledge", "drop", "lift", "rotor", "low", "stairs"])
def test_each_part_of_a_course_can_be_walked(part, monkeypatch):
    monkeypatch.setattr("pycct.rl.levels.PARTS", (part,))
    for seed in range(6):
        level = generate("parkour", seed, 3)
        assert isinstance(walk(level, 0), int), seed


def test_windows_are_when_lifts_stand(monkeypatch):
    """A lift is below while the window to enter it is open, and above while the one to leave is."""
    monkeypatch.setattr("pycct.rl.levels.PARTS", ("lift",))
    for seed in range(6):
        level = generate("parkour", seed, 2)
        tops = [mover.poses[:, 2] + mover.half[2] for mover in level.movers]
        timed = [waypoint for waypoint in level.course if waypoint.window != (0, PERIOD)]
        assert len(timed) == 2 * len(tops) == 4
        for k, waypoint in enumerate(timed):
            for tick in range(*waypoint.window):
                assert tops[k // 2][tick % PERIOD] == waypoint.position[2]


@pytest.mark.parametrize("kind", NAMES)
def test_levels(kind):
    levels = [generate(kind, seed) for seed in range(30)]
    assert len({level.vertices.tobytes() for level in levels}) > 25
    for level in levels:
        assert 50 < len(level.triangles) < 700
        assert np.isfinite(level.vertices).all()
        assert (level.onward >= 0).all()
        goal = level.cell(level.goal)
        assert level.onward[goal] == goal
        assert level.remaining[goal] == 0.0
        # Each step of the way is shorter.
        others = np.flatnonzero(level.onward != np.arange(len(level.onward)))
        assert (level.remaining[level.onward[others]] < level.remaining[others]).all()
        assert level.route()[-1].position == tuple(level.goal.tolist())
        assert len(level.plan) > 0
        for mover in level.movers:
            lengths = (mover.poses[:, 3:] ** 2).sum(axis=1)
            assert np.abs(lengths - 1.0).max() < 1e-15


def test_dungeons_have_all_that_they_promise():
    """Count stairs, ramps, bridges, doors, rough ground and pillars in a view from above."""
    heights = set()
    for seed in range(40):
        level = generate("rooms", seed)
        heights |= set((level.plan[:, 4] % 1.0).tolist())
    assert {0.0, 0.25, 0.5, 0.75} <= heights             # stairs
    assert {0.125, 0.375} <= heights                     # ramps
    parts = {len(level.movers) > 0 for level in (generate("parkour", seed) for seed in range(20))}
    assert parts == {True, False} or parts == {True}


@pytest.mark.parametrize("kind, seed, size, problem, word", [
    ("castle", 0, None, ValueError, "kind"),
    (3, 0, None, ValueError, "kind"),
    ("rooms", -1, None, ValueError, "seed"),
    ("rooms", 2**63, None, ValueError, "seed"),
    ("rooms", 0.0, None, TypeError, "seed"),
    ("rooms", True, None, TypeError, "seed"),
    ("rooms", 0, 1, ValueError, "size"),
    ("maze", 0, 17, ValueError, "size"),
    ("terrain", 0, 8.0, TypeError, "size"),
])
def test_wrong_arguments(kind, seed, size, problem, word):
    with pytest.raises(problem, match=word):
        generate(kind, seed, size)


def test_draws():
    """Random numbers are functions of their keys: alone, in an array, and in any order."""
    seeds = np.arange(1000)
    values = draw_uniform(seeds, 3, 1)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert 0.45 < values.mean() < 0.55
    assert draw_uniform(17, 3, 1) == values[17]
    assert np.array_equal(draw_uniform(seeds[::-1], 3, 1)[::-1], values)
    assert not np.array_equal(draw_uniform(seeds, 3, 2), values)
    assert draw_bits(0).dtype == np.uint64
    assert np.bincount(draw_below(5, seeds)).min() > 150
    assert draw_below(np.array([1, 2, 3]), 7).shape == (3,)
    first, again = Draws(4, 5), Draws(4, 5)
    assert [first.below(1000) for _ in range(50)] == [again.below(1000) for _ in range(50)]
    assert sorted(Draws(3).shuffled(list(range(20)))) == list(range(20))


@pytest.mark.parametrize("n", [1, 3, 4, 16, 30, 256])
def test_circle(n):
    points = circle(n)
    # Angles of the C library's functions are rounded to 4.4e-16.
    turn = 2.0 * np.pi * np.arange(n) / n
    assert np.abs(points - np.column_stack([np.cos(turn), np.sin(turn)])).max() < 1e-15
    assert not points.flags.writeable


def test_import_of_pycct_leaves_gymnasium_alone():
    code = "import sys, pycct; sys.exit('gymnasium' in sys.modules or 'pycct.rl' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
