"""Rules of moves that new recordings of PhysX showed, each with its smallest input (RULES_2)."""

import math

import numpy as np
import pytest
from small_worlds import DT, quad, world

from pycct import CharacterController, CollisionFlags, Crowd, Mesh, Plane, Scene, separate

SIDES, DOWN = CollisionFlags.SIDES, CollisionFlags.DOWN


# --- RULES_2 2


def overlapping_pair(**more):
    scene = Scene()
    more = {"collide": True, "step_offset": 0, "overlap_recovery": False, **more}
    return [CharacterController(scene, (x, 0, 0), **more) for x in (0, 0.4)]


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
def test_separation_shares_four_metres_a_second(rules):
    a, b = overlapping_pair(rules=rules)
    separate([a, b], DT)
    for hero in (a, b):
        hero.move((0, 0, 0), DT)
    assert (a.position[0], b.position[0]) == pytest.approx((-2 * DT, 0.4 + 2 * DT))


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_separation_of_a_crowd_shares_four_metres_a_second(order):
    crowd = Crowd(Scene(), [(0, 0, 0), (0.4, 0, 0)], order=order, collide=True, step_offset=0)
    crowd.separate(DT)
    crowd.move(np.zeros((2, 3)), DT)
    assert crowd.positions[:, 0] == pytest.approx((-2 * DT, 0.4 + 2 * DT))


# --- RULES_2 8


@pytest.mark.parametrize("below", [0.0, 0.9e-6, 1.1e-6])
@pytest.mark.parametrize("two_sided", [False, True])
def test_a_slope_at_the_limit_is_walkable(below, two_sided):
    # A slope of 3 in 5.
    ramp = quad((0, -9, 0), (20, -9, 15), (20, 9, 15), (0, 9, 0), two_sided=two_sided)
    limit = ramp_normal(ramp)[2] + below
    hero = CharacterController(world(ramp), (5, 0, 5), slope_limit=limit, step_offset=0.1)
    hero.move((0, 0, -2), DT)
    start = hero.position[0]
    for _ in range(10):
        hero.move((0.05, 0, -0.02), DT)
    walks = below < 1e-6
    assert (hero.position[0] > start + 0.2) is walks
    if walks:
        assert hero.ground.walkable


def ramp_normal(mesh):
    a, b, c = (np.array(mesh.vertices)[i] for i in np.array(mesh.triangles)[0])
    n = np.cross(b - a, c - a)
    return n / np.linalg.norm(n)


# --- RULES_2 1


def leaning(normal):
    """A plane through the origin, and the same plane as two large triangles."""
    n = np.array(normal)
    along = np.cross(n, (0, 0, 1))
    along *= 50 / np.linalg.norm(along)
    over = np.cross(n, along)
    corners = [-along - over, along - over, along + over, -along + over]
    return Plane(normal), Mesh(corners, [(0, 1, 2), (0, 2, 3)])


def test_a_steep_plane_is_not_climbed():
    plane, _ = leaning((-math.sin(math.radians(60)), 0, 0.5))
    hero = CharacterController(
        world(plane), (-0.3637, 0, 0.71), 0.4, 1.0, step_offset=0.2, contact_offset=0.02, slope_limit=math.sqrt(0.5)
    )
    assert hero.move((0.1, 0, -0.05), DT) == SIDES | DOWN
    # PhysX has (-0.361, 0, 0.695).
    assert hero.position == pytest.approx((-0.3606, 0, 0.6954), abs=1e-4)


@pytest.mark.parametrize("climbing", ["easy", "constrained"])
@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
@pytest.mark.parametrize("degrees", [40, 50, 70, 90, 110])
def test_a_plane_moves_like_two_large_triangles(degrees, rules, climbing):
    a = math.radians(degrees)
    shapes = leaning((-math.sin(a), 0, math.cos(a)))
    paths = []
    for shape in shapes:
        hero = CharacterController(
            world(shape), (-2, 0, 1.5), 0.4, 1.0, rules=rules, climbing_mode=climbing, prevent_vertical_sliding=True
        )
        path = []
        for k in range(60):
            flags = hero.move((0.05, 0.01 * math.sin(k), -0.05), DT)
            path.append((*hero.position, int(flags)))
        paths.append(path)
    assert np.allclose(paths[0], paths[1], atol=1e-9)


def test_a_kinematic_plane_has_slopes_where_the_fix_for_moving_slopes_applies():
    plane, mesh = leaning((-math.sin(1), 0, math.cos(1)))
    ends = []
    for shape in (plane, mesh):
        scene = Scene()
        scene.add(shape, body="kinematic")
        hero = CharacterController(scene, (-2, 0, 1.5), rules="robust", step_offset=0.2)
        for _ in range(60):
            hero.move((0.05, 0, -0.05), DT)
        ends.append(hero.position)
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)
