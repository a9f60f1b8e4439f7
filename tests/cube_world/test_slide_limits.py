"""More overlaps than one iteration keeps, and jumps below ceilings lower than one frame's rise."""

import math

import numpy as np
import pytest

from pycct.cube_world import microtests as mt
from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld

KEPT = 64  # overlaps that one iteration pushes out of
DT = 1 / 60
HALF = 0.004  # of the small boxes


def posts(depths, angles):
    """A world of small boxes at given depths inside of an upright capsule of radius 0.3."""
    world = CubeWorld()
    for depth, angle in zip(depths, angles, strict=True):
        # The near face of a turned box looks at the axis.
        away = 0.3 - depth + HALF
        turn = (0, -math.sin(angle / 2), 0, math.cos(angle / 2))
        world.add_box((away * math.cos(angle), 0.9, away * math.sin(angle)), (HALF, HALF, HALF), turn)
    return world


def first_push(world):
    """Push and number of overlaps of the first iteration."""
    runner = SweepSlideController(world, (0, 0, 0), radius=0.3, half_height=0.6)
    push = runner.depen_iterations[0]
    return tuple(push.push), push.overlaps


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [1, 40, KEPT - 1, KEPT, KEPT + 1, 100, 300])
def test_of_more_overlaps_than_are_kept_the_deepest_count(seed, number):
    """The push out of many boxes uses the deepest 64 of them, in any order of adding."""
    rng = np.random.default_rng(seed)
    depths = rng.permutation(np.linspace(0.02, 0.2, number))
    angles = rng.uniform(-0.7, 0.7, number)
    push, overlaps = first_push(posts(depths, angles))
    assert overlaps == number
    deepest = np.sort(np.argsort(-depths, kind="stable")[:KEPT])
    want, _ = first_push(posts(depths[deepest], angles[deepest]))
    assert push == want
    # Away from the boxes, by at least the deepest of them.
    assert push[0] < -0.1 * depths.max()
    if number > KEPT:
        shallow = np.sort(np.argsort(depths, kind="stable")[:KEPT])
        assert first_push(posts(depths[shallow], angles[shallow]))[0] != want


def test_of_equally_deep_overlaps_the_first_ones_count():
    angles = np.linspace(-0.6, 0.6, 90)
    depths = np.full(90, 0.1)
    push, overlaps = first_push(posts(depths, angles))
    assert overlaps == 90
    # Depths that are equal but for rounding: let the first 64 be deeper by far more than that.
    deeper = depths + np.where(np.arange(90) < KEPT, 1e-9, 0)
    assert first_push(posts(deeper, angles))[0] == pytest.approx(push, abs=0.05)


def test_all_overlaps_are_listed():
    depths, angles = np.linspace(0.02, 0.2, 150), np.linspace(-0.7, 0.7, 150)
    world = CubeWorld()
    runner = SweepSlideController(world, (0, 0, 0), radius=0.3, half_height=0.6)
    for depth, angle in zip(depths, angles, strict=True):
        away = 0.3 - depth + HALF
        world.add_box((away * math.cos(angle), 0.9, away * math.sin(angle)), (HALF, HALF, HALF),
                      (0, -math.sin(angle / 2), 0, math.cos(angle / 2)))
    found = runner.overlaps()
    assert len(found) == 150
    assert sorted(o.depth for o in found) == pytest.approx(list(depths), abs=1e-9)
    # The way out leads away from each box.
    assert all(o.normal[0] < 0 for o in found)


@pytest.mark.parametrize("gap", [0.0, 1e-6, 0.001, 0.01, 0.03, 0.05])
@pytest.mark.parametrize("dt", [1 / 60, 1 / 20])
def test_a_jump_below_a_ceiling_lower_than_one_frames_rise(gap, dt):
    """The head stops at the ceiling in the first frame; the runner falls, and can jump again."""
    world = CubeWorld()
    mt.floor(world, 6)
    runner = SweepSlideController(world, (0.5, 0.03, 0.5), radius=0.3, half_height=0.6)
    for _ in range(3):
        runner.step((0, 0, 0), dt)
    skin, head = runner.skin_width, 1.8
    low = runner.feet[1]
    world.add_box((0.5, low + head + skin + gap + 0.5, 0.5), (3, 0.5, 3))
    rise = runner.config["jump_speed"] * dt
    assert rise > 0.05
    for _ in range(3):
        for _ in range(60):
            runner.step((0, 0, 0), dt)
        assert runner.grounded and runner.feet[1] == pytest.approx(low, abs=1e-6)
        runner.step((0, 0, 0), dt, jump=True)
        assert runner.feet[1] <= low + gap + 1e-6
        assert runner.velocity[1] <= 0 and not runner.rising
        heights = [runner.step((0, 0, 0), dt)[1] for _ in range(30)]
        assert max(heights) <= low + gap + 1e-6 and min(heights) >= low - 1e-6
        assert runner.grounded and runner.overlaps() == []
    # It still walks.
    for _ in range(30):
        runner.step((1, 0, 0), dt)
    assert runner.feet[0] > 0.5 + 25 * dt


@pytest.mark.parametrize("gap", [0.02, 0.05])
def test_a_jump_below_a_low_ceiling_while_walking(gap):
    """Below the ceiling a jump takes no speed along the floor."""
    world = CubeWorld()
    mt.floor(world, 12)
    world.add_box((0, 0.03 + 1.8 + 0.03 + gap + 0.5, 0), (12, 0.5, 12))
    runner = SweepSlideController(world, (-5, 0.03, 0.5), radius=0.3, half_height=0.6)
    for _ in range(3):
        runner.step((0, 0, 0))
    for k in range(60):
        before = runner.feet[0]
        runner.step((3, 0, 0), DT, jump=k % 10 == 0)
        assert runner.feet[0] - before == pytest.approx(0.05, abs=1e-3)
        assert runner.feet[1] <= 0.03 + gap + 1e-3
