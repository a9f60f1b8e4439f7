"""Each failure mode of SLIDE 8 appears without its mitigation, and not with the defaults."""

import logging
import math
from itertools import pairwise

import numpy as np
import pytest

from pycct.cube_world import microtests as mt
from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld

DT = 1 / 60


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("pycct.slide").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("pycct.slide").setLevel(logging.NOTSET)


def play(runner, wish, frames):
    positions = [runner.feet]
    for _ in range(frames):
        positions.append(runner.step(wish))
    return np.array(positions)


def settle(world, feet, **knobs):
    runner = SweepSlideController(world, feet, **knobs)
    for _ in range(3):
        runner.step((0, 0, 0))
    return runner


def test_tunneling():
    """Position behind the wall; mitigation: continuous sweeps (ccd)."""
    def end(**knobs):
        world = CubeWorld()
        mt.floor(world, 40)
        mt.wall_x(world, 20)
        return play(settle(world, (0.9, 0.03, 0.5), **knobs), (100, 0, 0), 20)[-1][0]

    assert end(ccd=False) > 21
    assert end() < 20 - 0.3


def test_jitter():
    """Position oscillates against a wall; mitigation: hysteresis."""
    def swing(**knobs):
        world = CubeWorld()
        mt.floor(world)
        mt.wall_x(world, 3)
        positions = play(settle(world, (2.5, 0.03, 0.5), **knobs), (5, 0, 0), 120)[60:]
        return np.abs(np.diff(positions[:, 0])).max()

    # A surface that pushes back as hard as it is pushed.
    assert swing(overclip=2.0, hysteresis=False) > 0.05
    assert swing(overclip=2.0) < 1e-3
    assert swing() < 1e-3


def test_stuck():
    """No motion with input held; mitigation: depenetration after stuck frames."""
    def moved(**knobs):
        world = CubeWorld()
        mt.floor(world)
        runner = settle(world, (0.5, 0.03, 0.5), **knobs)
        # Somebody builds a pillar where it stands: only one way is open to a capsule in a box.
        world.add_box((0.8, 1.0, 0.5), (0.5, 1.0, 3.0))
        positions = play(runner, (4, 0, 0), 40)
        return runner, np.abs(positions[-1] - positions[0]).max()

    runner, distance = moved(stuck_frames_limit=None)
    assert distance < 1e-6 and runner.stuck_frames == 40 and runner.penetration > 0.1
    runner, distance = moved()
    assert distance > 0.1 and runner.penetration == 0 and runner.depenetrations == 1


def test_teleport():
    """A large motion in one frame; mitigation: clamped pushes."""
    def jump(**knobs):
        world = CubeWorld()
        world.add((0, -1, 0))
        runner = settle(world, (0.5, 0.03, 0.5), **knobs)
        before = runner.feet
        world.add_box((0.5, 0.9, 0.5), (20.0, 20.0, 20.0))
        runner.depenetrate()
        return math.dist(before, runner.feet)

    assert jump(max_depen_clamp=1e6) > 15
    assert jump() <= 4.0


def test_wall_climb():
    """Height gained by pushing against a wall; mitigation: walls have no upward part."""
    def gain(**knobs):
        world = CubeWorld()
        mt.floor(world)
        mt.ramp(world, 60)
        return play(settle(world, (-1.5, 0.03, 0), **knobs), (6, 0, 0), 90)[:, 1].max() - 0.03

    assert gain(flatten_walls=False) > 0.25
    assert gain() < 1e-3


def test_ground_flicker():
    """Grounded toggles; mitigation: grace time."""
    def toggles(**knobs):
        world = CubeWorld()
        for k in range(30):
            world.add_box((-10 + k, -0.5, 0), (0.25, 0.5, 3))
        runner = settle(world, (-9.9, 0.05, 0), **knobs)
        states = []
        for _ in range(240):
            runner.step((4, 0, 0))
            states.append(runner.grounded)
        return sum(a != b for a, b in pairwise(states))

    assert toggles(ground_grace_time=0.0) > 10
    assert toggles() == 0


def test_ground_flicker_probe_too_short():
    """The other cause: a probe that ends at the skin, on a floor that is not quite level."""
    def off_surface(**knobs):
        world = CubeWorld()
        rng = np.random.default_rng(1)
        for k in range(60):
            height = rng.uniform(0, 0.008)
            world.add_box((-10 + 0.4 * k, height - 0.5, 0), (0.2, 0.5, 3))
        runner = settle(world, (-9.5, 0.05, 0), step_height=0.0, ground_grace_time=0.0, **knobs)
        states = []
        for _ in range(150):
            runner.step((4, 0, 0))
            states.append(runner.grounded)
        return states.count(False)

    without = off_surface(ground_probe_margin=0.0)
    assert off_surface() < without


def test_corner_snag():
    """Stops at the seams of cubes; mitigation: flush faces are merged, or the skin is kept."""
    def stops(skin, **knobs):
        world = CubeWorld()
        mt.floor(world, 20)
        mt.wall_z(world, 2, half=20)
        # It has come as near as nothing to floor and wall, then its skin grows.
        runner = settle(world, (-15.3, 0.0, 1.7), skin_width=0.0, **knobs)
        runner.configure(skin_width=skin)
        progress = np.diff(play(runner, (5, 0, 1), 120)[:, 0])
        return (progress < 0.5 * 5 * DT).sum()

    assert stops(0.03, merge_faces=False) >= 10
    assert stops(0.03) == 0
    # And who keeps the skin never comes so near.
    assert stops(0.0, merge_faces=False) == 0


def test_max_iterations_hit():
    """The slide runs out of bumps; mitigation: more of them."""
    def exhausted(**knobs):
        rng = np.random.default_rng(4)
        world = CubeWorld()
        world.add_array(rng.random((16, 4, 16)) < 0.3)
        mt.floor(world, 20)
        runner = SweepSlideController(world, (8, 5, 8), **knobs)
        n, way = 0, 0.0
        for i in range(600):
            if i % 20 == 0:
                a = rng.uniform(0, 2 * math.pi)
                wish = (20 * math.cos(a), 0, 20 * math.sin(a))
            before = runner.feet
            way += math.dist(before, runner.step(wish, DT, True))
            n += runner.bumps_exhausted
            if max(abs(runner.feet[0] - 8), abs(runner.feet[2] - 8)) > 8:
                runner.teleport((8, 5, 8))
        return n, way

    n, way = exhausted(max_bumps=1)
    assert n > 100
    most, further = exhausted()
    assert most == 0 and further > way
