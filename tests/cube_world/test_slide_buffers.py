"""The fixed buffers of a slide, each one filled: bumps, clip planes, depenetrations, positions."""

import math

import numpy as np
import pytest

from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld
from pycct.slide import clip_velocity_multi_plane

MOST_BUMPS, MOST_PLANES, MOST_DEPENS, MOST_FRAMES = 32, 16, 32, 120
DT = 0.1
WISH = (20.0, 0.0, 80.0)


def round_wall(facets, turn, radius=6.0):
    """A floor, and turned boxes whose inner faces form part of a polygon around the y axis."""
    world = CubeWorld()
    world.add_array(np.ones((40, 1, 40), bool), (-20, -1, -20))
    for k in range(facets):
        a = turn * k
        away = radius + 0.5
        rotation = (0, -math.sin(a / 2), 0, math.cos(a / 2))
        world.add_box((away * math.cos(a), 1.0, away * math.sin(a)), (0.5, 1.5, 0.55 * radius * turn), rotation)
    return world


def slid(world, **knobs):
    """The runner after one long step along the wall."""
    runner = SweepSlideController(world, (5.0, 0.03, -1.0), radius=0.3, half_height=0.6, flatten_walls=False, **knobs)
    for _ in range(3):
        runner.step((0, 0, 0), DT)
    assert runner.grounded
    runner.step(WISH, DT)
    return runner


def planes_of(runner):
    """Clip planes in the order of their hits; each bump goes on with the wish, clipped by them."""
    c = runner.config
    bumps = runner.slide_iterations
    ends = [b.feet_pos for b in bumps[1:]]
    planes, left, velocity = [], 1.0, np.array(WISH)
    for bump, end in zip(bumps, ends, strict=False):
        assert np.allclose(bump.delta, velocity * DT * left, rtol=1e-9, atol=1e-9)
        left *= 1.0 - math.dist(bump.feet_pos, end) / bump.remain
        if len(planes) < c["max_clip_planes"] and all(np.dot(p, bump.normal) < 1 - 1e-9 for p in planes):
            planes.append(bump.normal)
        velocity = np.array(clip_velocity_multi_plane(WISH, planes, c["overclip"], c["stop_epsilon"]))
    return planes


@pytest.mark.parametrize("most", [1, 2, MOST_BUMPS - 1, MOST_BUMPS])
def test_a_slide_of_as_many_bumps_as_are_recorded(most):
    """The bumps of a slide with fewer are the first ones of a slide with all of them."""
    world = round_wall(60, math.radians(1.5))
    runner = slid(world, max_bumps=most, max_clip_planes=MOST_PLANES)
    bumps = runner.slide_iterations
    assert len(bumps) == runner.bumps == most and runner.bumps_exhausted
    assert bumps == slid(world, max_bumps=MOST_BUMPS, max_clip_planes=MOST_PLANES).slide_iterations[:most]
    planes_of(runner)
    assert runner.overlaps() == []
    # What follows the bumps in memory is whole.
    assert runner.depen_iterations == () and runner.frame == 4


@pytest.mark.parametrize("most", [1, 2, 5, MOST_PLANES - 1, MOST_PLANES])
def test_a_slide_along_more_planes_than_the_list_holds(most):
    """Planes beyond the list do not clip; the character stops at the first of them."""
    world = round_wall(60, math.radians(1.5))
    runner = slid(world, max_bumps=MOST_BUMPS, max_clip_planes=most)
    planes = planes_of(runner)
    assert len(planes) == most
    seen = {b.normal for b in runner.slide_iterations}
    assert len(seen) == most + 1 and runner.bumps_exhausted
    longer = slid(world, max_bumps=MOST_BUMPS, max_clip_planes=min(most + 1, MOST_PLANES))
    assert longer.slide_iterations[:most] == runner.slide_iterations[:most]
    if most < MOST_PLANES:
        assert longer.feet[2] > runner.feet[2] + 0.1


@pytest.mark.parametrize("most", [0, 1, MOST_DEPENS - 1, MOST_DEPENS])
@pytest.mark.parametrize("rounds", [1, MOST_DEPENS - 1, MOST_DEPENS, MOST_DEPENS + 1])
def test_as_many_rounds_of_a_depenetration_as_are_recorded(most, rounds):
    """Each round pushes by the clamp; too few rounds fail, and the character stays."""
    world = CubeWorld()
    runner = SweepSlideController(world, (0.0, 0.0, 0.0), radius=0.4, half_height=0.6, max_depen_iters=most,
                                  max_depen_clamp=0.01, min_depen_dist=0.0)
    assert runner.depen_iterations == ()
    world.add_box((1.4 - 0.01 * (rounds - 0.5), 0.9, 0.0), (1.0, 3.0, 9.0))
    assert runner.depenetrate() == (rounds <= most)
    done = runner.depen_iterations
    assert len(done) == min(rounds, most)
    full = [d.push for d in done[:rounds - 1]]
    assert np.allclose(np.reshape(full, (-1, 3)), (-0.01, 0, 0), rtol=0, atol=1e-12)
    assert all(d.overlaps == 1 for d in done)
    if rounds <= most:
        assert done[-1].push == pytest.approx((-0.005, 0, 0), abs=1e-8)
        assert runner.feet[0] <= -0.01 * (rounds - 0.5) and runner.overlaps() == []
    else:
        assert runner.depen_failed and runner.feet == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("frames", [2, 3, MOST_FRAMES - 1, MOST_FRAMES])
def test_the_ring_of_recent_positions_goes_round(frames):
    """The jitter score is the variance of the last positions, at every frame of three rounds."""
    world = CubeWorld()
    world.add_array(np.ones((40, 1, 40), bool), (-20, -1, -20))
    runner = SweepSlideController(world, (0.5, 0.03, 0.5), jitter_frames=frames)
    twin = SweepSlideController(world, (0.5, 0.03, 0.5), jitter_frames=frames)
    places = [runner.feet]
    for k in range(3 * frames + 1):
        wish = (3 * math.cos(0.11 * k), 0.0, 2 * math.sin(0.07 * k * k))
        places.append(runner.step(wish, 1 / 60))
        twin.step(wish, 1 / 60)
        want = np.var(np.array(places[-frames:]), axis=0).sum()
        assert runner.jitter_score == pytest.approx(want, rel=1e-6, abs=1e-15)
        if k == frames + 1:
            # The ring is part of what is saved, its beginning too.
            twin.restore(runner.save())
    assert twin.jitter_score == runner.jitter_score and twin.save() == runner.save()
