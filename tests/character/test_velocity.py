"""Velocity and displacement of a move: what recovery, separation and platforms count for."""

import random

import numpy as np
import pytest
from small_worlds import DT

import pycct
from pycct import reference

BOTH = pytest.mark.parametrize("module", [pycct, reference], ids=["compiled", "reference"])
DOWN = (0.0, 0.0, -0.02)


def overlapping_pair(module, gap=0.5):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    pair = [module.CharacterController(scene, (x, 0, 0.91), collide=True) for x in (0.0, gap)]
    for hero in pair:
        hero.move(DOWN, DT)
    return scene, pair


@BOTH
def test_velocity_excludes_separation(module):
    _, pair = overlapping_pair(module)
    module.separate(pair, DT)
    for hero, way in zip(pair, (-1, 1), strict=True):
        x = hero.position[0]
        hero.move(DOWN, DT)
        assert abs(hero.position[0] - x) == pytest.approx(2.0 * DT)
        assert hero.velocity == pytest.approx((0, 0, 0), abs=1e-12)
        assert hero.state.displacement == pytest.approx((way * 2.0 * DT, 0, 0), abs=1e-12)
        assert hero.state.velocity == hero.velocity


@BOTH
def test_own_motion_counts_along_and_across_the_separation(module):
    for way in ((0.01, 0.02), (-0.01, 0.0), (0.03, -0.03)):
        _, pair = overlapping_pair(module)
        module.separate(pair, DT)
        pair[1].move((*way, -0.02), DT)
        assert pair[1].velocity == pytest.approx((way[0] / DT, way[1] / DT, 0), abs=1e-9)
        assert pair[1].state.displacement == pytest.approx((way[0] + 2.0 * DT, way[1], 0), abs=1e-12)


@BOTH
def test_a_blocked_separation_is_not_subtracted(module):
    scene, pair = overlapping_pair(module)
    scene.add(module.Box((0.5, 5, 5)), (1.42, 0, 0))
    module.separate(pair, DT)
    pair[1].move(DOWN, DT)
    assert pair[1].state.displacement == pytest.approx((0.01, 0, 0), abs=1e-9)
    assert pair[1].velocity == pytest.approx((0, 0, 0), abs=1e-7)


@BOTH
@pytest.mark.parametrize("rules", ["physx", "robust"])
def test_velocity_excludes_recovery(module, rules):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    door = scene.add(module.Box((0.5, 5, 5)), (-2, 0, 0), body="kinematic")
    hero = module.CharacterController(scene, (0, 0, 0.91), rules=rules)
    hero.move(DOWN, DT)
    door.move_to((-0.8, 0, 0))
    x = hero.position[0]
    hero.move((0, 0.01, -0.02), DT)
    assert hero.position[0] - x > 0.1
    assert hero.velocity[0] == pytest.approx(0, abs=1e-9)
    assert hero.state.displacement[0] == pytest.approx(hero.position[0] - x, abs=1e-12)


@BOTH
def test_velocity_includes_the_platform(module):
    scene = module.Scene()
    lift = scene.add(module.Box((2, 2, 0.5)), body="kinematic", behavior=module.Behavior.CAN_RIDE)
    hero = module.CharacterController(scene, (0, 0, 1.42))
    hero.move(DOWN, DT)
    lift.move_to((0.05, 0, 0.02))
    hero.move(DOWN, DT)
    assert hero.velocity == pytest.approx((0.05 / DT, 0, 0.02 / DT), abs=1e-6)
    assert hero.state.displacement == pytest.approx((0.05, 0, 0.02), abs=1e-9)


@BOTH
def test_arrays_of_a_crowd(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    crowd = module.Crowd(scene, [(0, 0, 0.91), (0.6, 0, 0.91), (5, 0, 0.91)], collide=True)
    before = np.array(crowd.positions)
    crowd.move(np.tile(DOWN, (3, 1)), DT)
    crowd.move(np.tile((0.0, 0.01, -0.02), (3, 1)), DT)
    moved = np.array(crowd.displacements)
    assert moved[0, 0] < -0.02 and moved[1, 0] > 0.02 and moved[2, 0] == 0.0
    np.testing.assert_allclose(crowd.velocities, np.tile((0.0, 0.01 / DT, 0.0), (3, 1)), atol=1e-9)
    np.testing.assert_allclose(np.array(crowd.positions) - before, moved, atol=1e-12)
    crowd.move(np.zeros((3, 3)), DT, active=[True, False, True])
    assert crowd.displacements[1].tolist() == moved[1].tolist()


def test_members_and_saves_have_the_displacement():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    crowd = pycct.Crowd(scene, [(0, 0, 0.91), (0.6, 0, 0.91)], collide=True)
    for _ in range(2):
        crowd.move(np.tile(DOWN, (2, 1)), DT)
    shown = crowd.displacements.copy()
    assert [crowd.member(i).displacement for i in crowd.ids] == [tuple(row) for row in shown.tolist()]
    data = crowd.save()
    crowd.move(np.ones((2, 3)), DT)
    crowd.restore(data)
    assert crowd.displacements.tolist() == shown.tolist()
    with pytest.raises(ValueError, match="read-only"):
        crowd.displacements[0] = 0


def test_random_moves_agree_with_the_reference():
    draw = random.Random(5)
    for rules in ("physx", "robust", "document"):
        worlds = []
        for module in (pycct, reference):
            scene = module.Scene()
            scene.add(module.Plane((0, 0, 1)))
            scene.add(module.Box((0.3, 3, 2)), (1.5, 0, 1))
            door = scene.add(module.Box((0.4, 0.4, 1)), (0, 0, 1), body="kinematic")
            heroes = [
                module.CharacterController(scene, (0.3 * k, 0.2 * k, 0.9), collide=True, rules=rules) for k in range(4)
            ]
            worlds.append((module, door, heroes))
        for _ in range(60):
            place = [draw.uniform(-0.5, 0.5), draw.uniform(-0.5, 0.5), 1]
            ways = [[draw.uniform(-0.1, 0.1), draw.uniform(-0.1, 0.1), draw.uniform(-0.1, 0.02)] for _ in range(4)]
            seen = []
            for module, door, heroes in worlds:
                door.move_to(place)
                for hero, way in zip(heroes, ways, strict=True):
                    hero.move(way, DT)
                module.separate(heroes, DT)
                seen.append([(h.position, h.velocity, h.state.displacement, h.save()) for h in heroes])
            assert seen[0] == seen[1]
