"""Contact manifolds of a character and the surfaces around it."""

import math

import pytest
from small_worlds import flat, wall_at

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
    # The whole length of the cylinder touches the wall.
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
    assert ids == [1, 2, 3, 4]  # the wall is 0.1 m away
    assert 0 in [c.other.id for c in hero.contacts(0.2)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("gap", [0.5, 0.005, -0.2, -5])
@pytest.mark.parametrize("normal", [(0, 0, 1), (0.28, -0.96, 0), (-2 / 3, 1 / 3, 2 / 3)])
@pytest.mark.parametrize("up", [(0, 0, 1), (0, 1, 0), (0.6, 0, 0.8), (-0.48, 0.64, 0.6), (0, 0.002, 1), (0, 0, -1)])
def test_a_plane_is_touched_as_the_face_of_a_large_box_is(up, normal, gap):
    foot = [0.7 * n for n in normal]  # of the origin on the plane
    lowest = 0.5 * abs(dot(up, normal)) / math.hypot(*up) + 0.4
    at = [f + n * (lowest + gap) for f, n in zip(foot, normal, strict=True)]
    # The rotation turns z to the normal.
    turn = (-normal[1], normal[0], 0.0, 1.0 + normal[2])
    turn = [t / math.hypot(*turn) for t in turn]
    beneath = [f - 20 * n for f, n in zip(foot, normal, strict=True)]
    told = []
    for shape in (pycct.Plane(normal, 0.7), pycct.Box((20, 20, 20))):
        scene = pycct.Scene()
        floor = scene.add(shape, **({"position": beneath, "rotation": turn} if isinstance(shape, pycct.Box) else {}))
        hero = pycct.CharacterController(scene, at, up=up, radius=0.4, height=1.0)
        (touch,) = hero.contacts(0.6)
        assert touch.other is floor and touch.triangle is None
        told.append(touch.manifold)
        ((again,),) = pycct.Crowd(scene, [at], up=up, radius=0.4, height=1.0).contacts(0.6)
        assert again.other is floor and again.manifold.points_on_b.tolist() == touch.manifold.points_on_b.tolist()
        assert len(hero.contacts()) == (gap < 0.01)
    plane, box = told
    assert math.dist(plane.normal, normal) < 1e-12 and math.dist(box.normal, normal) < 1e-12
    assert min(plane.distances) == pytest.approx(gap, abs=1e-12)
    assert sorted(plane.distances) == pytest.approx(sorted(box.distances), abs=1e-9)
    for p in plane.points_on_b:
        assert dot(p, normal) == pytest.approx(0.7, abs=1e-12)
        assert min(math.dist(p, q) for q in box.points_on_b) < 1e-9


def test_a_plane_is_touched_wherever_the_character_is():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    hero = pycct.CharacterController(scene, (9e11, -9e11, -9e11))
    (touch,) = hero.contacts()
    assert touch.manifold[0] == ((9e11, -9e11, 0.0), -9e11 - 0.9)
    hero.teleport((9e11, -9e11, 0.9))
    (touch,) = hero.contacts()
    point, distance = touch.manifold[0]
    assert (*point, distance) == pytest.approx((9e11, -9e11, 0, 0), rel=0, abs=1e-12)


def test_planes_are_filtered_and_seen_by_mask_like_everything():
    scene = pycct.Scene()
    ground = scene.add(pycct.Plane((0, 0, 1)), layer=2)
    hero = pycct.CharacterController(scene, (0, 0, 0.91))
    assert [c.other for c in hero.contacts()] == [ground]
    hero.filter = lambda other: False
    assert hero.contacts() == []
    hero.filter = None
    hero.mask = 1
    assert hero.contacts() == []
    sphere = pycct.CharacterController(scene, (5, 0, 0.41), height=0, step_offset=0.1)
    assert [c.manifold.count for c in sphere.contacts()] == [1]
