"""Moves against sheets in a plane with axis and motion, flat hulls, and hulls that are lines."""

import math

import numpy as np
import pytest

import pycct
from pycct import reference

SHEET = [(-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2)]


def world(module, turn=(0, 0, 0, 1), two_sided=True):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    scene.add(module.Mesh(SHEET, [(0, 1, 2), (0, 2, 3)], two_sided=two_sided), rotation=turn)
    return scene


def walk(scene, module, rules, angle, y=0.1, steps=120):
    hero = module.CharacterController(scene, rules=rules, radius=0.3, height=1.2, contact_offset=0.02, step_offset=0.3)
    hero.foot_position = (-3, y, 0)
    top = recoveries = 0
    for _ in range(steps):
        hero.move((0.05 * math.cos(angle), 0.05 * math.sin(angle), -0.02), 1 / 60)
        top = max(top, hero.foot_position[2])
        recoveries += hero.stats.recoveries
    return hero, top, recoveries


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize("angle", [0, 1e-13, -1e-12, 1e-11, 1e-10, 9e-10, 1.1e-9, 1e-8])
def test_a_sheet_stops_a_character_that_walks_in_its_plane(module, angle):
    """Robust: around the edge, never up, without overlap, as beside the plane."""
    hero, top, recoveries = walk(world(module), module, "robust", angle)
    assert top == 0 and recoveries == 0
    beside, _, _ = walk(world(module), module, "robust", 1e-7)
    assert math.dist(hero.position, beside.position) < 1e-4
    assert hero.position[0] > 2.5 and hero.position[1] > 0.3


def test_a_fix_that_is_off_leaves_physx_as_it_is():
    """PhysX walks into the sheet and is lifted out of it; no recording contradicts this."""
    _, top, recoveries = walk(world(pycct), pycct, "physx", 0)
    assert top > 1 and recoveries > 5
    hero, _, _ = walk(world(pycct), pycct, "physx", 1e-7)
    assert hero.stats.fixes == 0
    _, again, _ = walk(world(pycct), pycct, pycct.Rules.ROBUST & ~pycct.Rules.FIX_SHEET_EDGES, 0)
    assert again > 1


@pytest.mark.parametrize("rules", ["robust", pycct.Rules.FIX_SHEET_EDGES])
def test_a_character_in_the_plane_falls_onto_the_upper_edge(rules):
    """A DOWN pass and a ray down in the plane of the sheet meet its upper edge."""
    heroes = []
    for module in (pycct, reference):
        scene = world(module)
        hero = module.CharacterController(scene, rules=rules, radius=0.3, height=1.2, contact_offset=0.02,
                                          slope_limit=0.0)
        hero.foot_position = (0, 0, 3)
        below = hero.probe_ground(2.0)
        assert below is not None and below.distance == pytest.approx(1.02, abs=1e-9)
        for _ in range(60):
            hero.move((0, 0, -0.05), 1 / 60)
        assert hero.foot_position[2] == pytest.approx(2.0, abs=1e-6)
        heroes.append(hero)
    assert heroes[0].position == heroes[1].position


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
def test_thin_shapes_in_both_implementations(rules):
    """Core and reference agree on walks near sheets, flat hulls, lines and points."""
    rng = np.random.default_rng(12)
    moved = 0
    for _ in range(12):
        scenes = [module.Scene() for module in (pycct, reference)]
        for module, scene in zip((pycct, reference), scenes, strict=True):
            scene.add(module.Plane((0, 0, 1)))
        for _ in range(8):
            where = {"position": (*rng.uniform(-1.5, 1.5, 2), 0.5)}
            if rng.random() < 0.5:
                q = rng.normal(size=4)
                where["rotation"] = tuple(q / np.linalg.norm(q))
            if rng.random() < 0.5:
                where["scale"] = tuple(rng.uniform(0.5, 1.5, 3) * rng.choice([-1, 1], 3))
            points = rng.uniform(-1, 1, (rng.integers(1, 5), 3))
            flat = rng.choice([0, 1, 1], 3) if rng.random() < 0.5 else (1, 1, 1)
            kind = rng.integers(3)
            for module, scene in zip((pycct, reference), scenes, strict=True):
                if kind == 0:
                    shape = module.Mesh(SHEET, [(0, 1, 2), (0, 2, 3)], two_sided=True)
                else:
                    shape = module.ConvexHull(points.tolist()).scaled(tuple(float(k) for k in flat))
                scene.add(shape, **where)
        heroes = [module.CharacterController(scene, rules=rules, position=(-2.5, 0.0, 0.92), radius=0.3, height=1.2,
                                             contact_offset=0.02) for module, scene in
                  zip((pycct, reference), scenes, strict=True)]
        for k in range(30):
            way = (0.08, 0.0, -0.02) if k < 15 else (*rng.uniform(-0.1, 0.1, 2), -0.02)
            for hero in heroes:
                hero.move(way, 1 / 60)
            assert heroes[0].position == heroes[1].position
            assert heroes[0].stats.recoveries == heroes[1].stats.recoveries
            assert heroes[0].stats.fixes == heroes[1].stats.fixes
            moved += 1
    assert moved == 360
