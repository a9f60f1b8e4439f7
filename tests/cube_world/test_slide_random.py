"""Random play: whatever the field of cubes and the input, some things never happen."""

import math

import numpy as np
import pytest

from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld

DT = 1 / 60
SIZE = 14       # cells inside the arena, on each axis


def arena(rng):
    """A closed room of cubes, one thick, random cubes inside; its occupancy with a rim of 1."""
    solid = rng.random((SIZE + 2, SIZE + 2, SIZE + 2)) < rng.uniform(0.02, 0.4)
    for axis in range(3):
        edge = np.moveaxis(solid, axis, 0)
        edge[0] = edge[-1] = True
    solid[6:9, 6:10, 6:9] = False
    world = CubeWorld()
    world.add_array(solid)
    return world, solid


def depths(positions, solid, radius, reach):
    """Deepest overlap of upright capsules with the cubes of an array, by plain arithmetic."""
    deepest = np.zeros(len(positions))
    p = positions + np.array((0, radius, 0))
    for dx in (-1, 0, 1):
        for dz in (-1, 0, 1):
            for dy in range(-1, math.ceil(reach) + 2):
                cell = np.floor(p).astype(int) + np.array((dx, dy, dz))
                inside = ((cell >= 0) & (cell < solid.shape[0])).all(axis=1)
                c = np.where(inside[:, None], cell, 0)
                there = inside & solid[c[:, 0], c[:, 1], c[:, 2]]
                lo = c - np.array((0.0, reach, 0.0))
                off = p - np.clip(p, lo, c + 1.0)
                gap = np.sqrt((off**2).sum(axis=1))
                deepest = np.maximum(deepest, np.where(there, radius - gap, 0.0))
    return deepest


def play(seed, frames, **knobs):
    rng = np.random.default_rng(seed)
    world, solid = arena(rng)
    runner = SweepSlideController(world, (7.5, 6.5, 7.5), **knobs)
    assert runner.overlaps() == []
    skin, radius, reach = runner.skin_width, runner.radius, 2 * runner.half_height
    positions = np.empty((frames, 3))
    wish = (0.0, 0.0, 0.0)
    jumps = rng.random(frames) < 0.05
    turns = rng.random((frames // 20 + 1, 3))
    before = runner.feet
    for i in range(frames):
        if i % 20 == 0:
            a, b, c = turns[i // 20]
            speed = 100.0 if c < 0.3 else 10.0 * b
            wish = (speed * math.cos(6.2832 * a), 0.0, speed * math.sin(6.2832 * a))
        fall = abs(runner.velocity[1])
        pushes = runner.depenetrations
        after = runner.step(wish, DT, jumps[i])
        asked = math.hypot(math.hypot(wish[0], wish[2]), max(fall, 7.0) + 20 * DT) * DT
        # That far and no farther, but for skin, snap and a depenetration that is counted.
        assert (math.dist(before, after) <= asked + skin + runner.snap_distance + 1e-9
                or runner.depenetrations > pushes), (seed, i)
        positions[i] = before = after
    assert np.isfinite(positions).all()
    # Nobody has left the closed room: no tunnelling at 100 m/s.
    assert (positions > 1 - 1e-9).all() and (positions < SIZE + 1).all(), seed
    assert depths(positions, solid, radius, reach).max() <= skin, seed
    return runner


@pytest.mark.parametrize("seed", range(6))
def test_random_play(seed):
    play(seed, 1500)


@pytest.mark.parametrize("knobs", [
    {"radius": 0.45, "half_height": 0.0}, {"radius": 0.1, "half_height": 0.8}, {"skin_width": 0.0},
    {"radius": 0.2, "skin_width": 0.2}, {"max_bumps": 1}, {"max_clip_planes": 1}, {"overclip": 1.0},
    {"merge_faces": False}, {"hysteresis": False, "flatten_walls": False}, {"step_height": 3.0},
], ids=str)
def test_random_play_with_other_knobs(knobs):
    play(20, 1500, **knobs)


def test_no_bump_passes_through_anything():
    """Every piece of every slide, sampled: the true capsule is free all along."""
    rng = np.random.default_rng(3)
    world, solid = arena(rng)
    runner = SweepSlideController(world, (7.5, 6.5, 7.5))
    pieces = []
    for i in range(1500):
        if i % 10 == 0:
            a = rng.uniform(0, 2 * math.pi)
            wish = (100 * math.cos(a), 0, 100 * math.sin(a))
        runner.step(wish, DT, rng.random() < 0.1)
        for b in runner.slide_iterations:
            start, delta = np.array(b.feet_pos), np.array(b.delta) * b.t
            pieces.append(start + np.outer(np.linspace(0, 1, 40), delta))
    samples = np.concatenate(pieces)
    assert len(samples) > 50000
    assert depths(samples, solid, runner.radius, 2 * runner.half_height).max() <= 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_random_play_among_turned_boxes(seed):
    rng = np.random.default_rng(100 + seed)
    world = CubeWorld()
    world.add_array(np.ones((40, 1, 40), bool), (-20, -1, -20))
    for _ in range(60):
        q = rng.normal(size=4)
        world.add_box(rng.uniform((-9, 0, -9), (9, 3, 9)), rng.uniform(0.1, 1.5, 3), q / np.linalg.norm(q))
    runner = SweepSlideController(world, (0, 9, 0))
    for i in range(800):
        if i % 20 == 0:
            a, speed = rng.uniform(0, 2 * math.pi), 100 if rng.random() < 0.2 else rng.uniform(0, 8)
            wish = (speed * math.cos(a), 0, speed * math.sin(a))
        feet = runner.step(wish, DT, rng.random() < 0.05)
        assert all(math.isfinite(v) for v in feet)
        assert runner.penetration <= runner.skin_width
        if max(abs(feet[0]), abs(feet[2])) > 15:
            runner.teleport((0, 9, 0))
        else:
            assert feet[1] > -1e-9


@pytest.mark.slow
def test_random_play_a_million_steps():
    for seed in range(1000, 1050):
        play(seed, 20000)
