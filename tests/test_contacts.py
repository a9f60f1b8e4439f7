"""What a character touches, as contact manifolds."""

import math

import pytest
from places import flat, wall_at

import pycct


def leaning(**more):
    """A character on a floor, pressed against the face x = 1 of a box."""
    scene = pycct.Scene()
    scene.add(flat())
    scene.add(pycct.Box((0.5, 2.5, 1)), (2, 0, 0), scale=(2, 2, 2))
    hero = pycct.CharacterController(scene, (0.5, 0.7, 0.92), contact_offset=0.02, **more)
    for _ in range(5):
        hero.move((0.08, 0, -0.05), 1 / 60)
    return hero


def test_floor_and_wall_are_touched():
    floor, wall = leaning().contacts()
    assert floor.triangle is not None and wall.triangle is None
    assert math.dist(floor.manifold.normal, (0, 0, 1)) < 1e-12
    assert math.dist(floor.manifold.points_on_b[0], (0.58, 0.7, 0)) < 1e-9
    assert floor.manifold.distances[0] == pytest.approx(0.02, abs=1e-9)
    # The cylinder leans against the wall with its whole length.
    assert math.dist(wall.manifold.normal, (-1, 0, 0)) < 1e-12
    assert sorted(round(float(p[2]), 9) for p in wall.manifold.points_on_b) == [0.42, 1.42]


def test_distances_run_along_the_normal_and_the_nearest_is_the_gap():
    hero = leaning()
    low, high = hero.position[2] - 0.5, hero.position[2] + 0.5
    for c in hero.contacts(0.3):
        gaps = []
        for p, d in zip(c.manifold.points_on_b, c.manifold.distances, strict=True):
            z = min(max(p[2], low), high)
            gaps.append(math.dist(p, (*hero.position[:2], z)) - hero.radius)
            assert d >= gaps[-1] - 1e-9
        assert min(c.manifold.distances) == pytest.approx(min(gaps), abs=1e-9)


def test_in_the_air_nothing_is_touched():
    hero = leaning()
    hero.teleport((0, 0, 5))
    assert hero.contacts() == []
    with pytest.raises(ValueError, match="max_distance"):
        hero.contacts(-1)
    with pytest.raises(ValueError, match="max_distance"):
        hero.contacts(1e9)


def test_filter_mask_and_other_characters():
    hero = leaning(collide=True)
    other = pycct.CharacterController(hero.scene, (0.58, -0.12, 0.92), contact_offset=0.02, collide=True)
    assert [c.other for c in hero.contacts()][-1] is other
    hero.filter = lambda x: x is other
    assert [c.other for c in hero.contacts()] == [other]
    hero.filter = None
    hero.mask = 0
    assert hero.contacts() == []


def test_every_kind_of_shape():
    scene = pycct.Scene()
    scene.add(wall_at(0.5))
    scene.add(pycct.Sphere(0.5), (-0.91, 0, 1))
    scene.add(pycct.Capsule(0.25, 1), (0, 0.91, 1), scale=(2, 2, 2))
    scene.add(pycct.ConvexHull([(0, 0, 0), (1, 0, 0), (0, -1, 0), (0, 0, 1)]), (0, -0.41, 0.5), scale=(1, 1, 2))
    scene.add(pycct.Plane((0, 0, 1)))
    hero = pycct.CharacterController(scene, (0, 0, 0.91))
    ids = [c.other.id for c in hero.contacts(0.02)]
    assert ids == [1, 2, 3]  # the wall is 0.1 m away, planes are left out
    assert 0 in [c.other.id for c in hero.contacts(0.2)]
