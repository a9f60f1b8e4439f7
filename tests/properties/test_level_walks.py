"""Walks through level files that others made, two-sided, with `robust`.

The files are not part of the repository; without them the tests are skipped.
"""

import math

import goldens
import numpy as np
import pytest

from pycct import Capsule, Crowd, Scene, load_level

FILES = {"obstacle_world.stl": "z", "stadium.obj": "z", "avian_demo.glb": "y", "bridges.glb": "y", "room.glb": "y"}
CAPSULE = Capsule(0.3, 1.2)
HALF, STEP, SPEED, DT = 0.9, 0.3, 0.083, 1 / 60
SIZE = {"radius": 0.3, "height": 1.2, "contact_offset": 0.02, "step_offset": STEP, "slope_limit": math.cos(math.pi / 4)}


def depths(scene, places):
    """Depth of a capsule at each place, 0 where it is free."""
    found = scene.penetration_many(CAPSULE, places)
    depth = np.zeros(len(places))
    np.maximum.at(depth, np.repeat(np.arange(len(places)), np.diff(found.first)), found.depth)
    return depth


def free_places(rng, scene, mesh, count):
    """Places a little above what is nearly level, in proportion to its area."""
    a, b, c = (np.asarray(mesh.vertices)[np.asarray(mesh.triangles)[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    area = np.linalg.norm(n, axis=1)
    weight = np.where(np.abs(n[:, 2]) > 0.8 * area, area, 0.0)
    found = np.empty((0, 3))
    while len(found) < count:
        k = rng.choice(len(area), size=4 * count, p=weight / weight.sum())
        u = rng.random((4 * count, 2))
        u = np.where(u.sum(1, keepdims=True) > 1, 1 - u, u)
        p = a[k] + u[:, :1] * (b[k] - a[k]) + u[:, 1:] * (c[k] - a[k]) + (0, 0, HALF + 0.03)
        found = np.concatenate([found, p[depths(scene, p) == 0]])
    return found[:count]


def walk(name, ticks, count, seed):
    mesh, _ = load_level(goldens.LEVELS / name, up=FILES[name], two_sided=True)
    scene, rng = Scene(), np.random.default_rng(seed)
    scene.add(mesh)
    crowd = Crowd(scene, free_places(rng, scene, mesh, count), rules="robust", collide=False, **SIZE)
    heading, fall, lowest = rng.uniform(0, 2 * math.pi, count), np.zeros(count), np.asarray(mesh.vertices)[:, 2].min()
    for _ in range(ticks):
        heading += rng.normal(0, 0.1, count) + np.where(rng.random(count) < 0.02, rng.uniform(-2, 2, count), 0)
        fall = np.where(crowd.grounded, -0.02, np.maximum(fall - 9.81 * DT * DT, -0.4))
        d = np.stack([np.cos(heading) * SPEED, np.sin(heading) * SPEED, fall], -1)
        before = np.array(crowd.positions)
        crowd.move(d, DT)
        after = np.array(crowd.positions)
        yield scene, before, d, after
        if (lost := np.flatnonzero(after[:, 2] < lowest - 5)).size:
            crowd.teleport(lost, free_places(rng, scene, mesh, lost.size))
            fall[lost] = 0


@pytest.mark.skipif(not goldens.LEVELS.exists(), reason="third-party levels are not part of the repository")
@pytest.mark.parametrize("ticks,count", [(40, 40), pytest.param(600, 200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_a_crowd_walks_through_a_level_without_a_fault(name, ticks, count):
    for scene, before, d, after in walk(name, ticks, count, seed=3):
        assert depths(scene, after).max() < 0.01
        # Nothing is between the centres before and after the move.
        assert scene.visible_many(before, after).all()
        assert (np.linalg.norm(after - before, axis=1) <= np.linalg.norm(d, axis=1) + STEP + 1e-6).all()
