"""Rules of moves that later recordings of PhysX showed, each with its smallest input (RULES_2)."""

import math

import numpy as np
import pytest
from small_worlds import DT, quad, world

import pycct
from pycct import (
    Behavior,
    Box,
    CharacterController,
    CollisionFlags,
    Crowd,
    Mesh,
    Plane,
    Scene,
    reference,
    separate,
)
from pycct.reference.candidates import Placed, WallRule, gather

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


# --- RULES_2 5


def bent_floor(shift):
    """A level triangle and one that bends down from its edge, in both orders."""
    v = [(-3, -3, 0), (0, -3, 0), (0, 3, 0), (3, 0, -1.5)]
    t = [(0, 1, 2), (1, 3, 2)]
    return Mesh(v, t if shift == 0 else t[::-1])


@pytest.mark.parametrize("shift", [0, 1])
def test_a_shape_that_overlaps_without_recovery_is_left_out_whole(shift):
    ends = []
    for rules in ("physx", "robust"):
        more = {"overlap_recovery": False, "step_offset": 0, "rules": rules}
        hero = CharacterController(world(bent_floor(shift)), (-0.35, 0, 0.89), 0.4, 1.0, **more)
        hero.move((0, 0, -0.5), DT)
        ends.append(hero.position[2])
    # FIX_BACK_FACES leaves out only the triangle that overlaps.
    assert ends == pytest.approx([0.39, 0.7036], abs=1e-4)


def test_a_dynamic_body_that_overlaps_is_left_out_whole():
    scene = Scene()
    scene.add(bent_floor(0), body="dynamic", behavior=Behavior.USER_DEFINED_RIDE)
    hero = CharacterController(scene, (-0.35, 0, 0.89), 0.4, 1.0, step_offset=0)
    hero.move((0, 0, -0.5), DT)
    assert hero.position == pytest.approx((-0.35, 0, 0.39))


# --- RULES_2 6


def ram(rules="physx", **more):
    scene = Scene()
    item = scene.add(Box((1, 1, 0.5)), body="kinematic", **more)
    hero = CharacterController(scene, (0, 0, 0.9), 0.4, 1.0, contact_offset=0.02, step_offset=0.2, rules=rules)
    return item, hero


@pytest.mark.parametrize("rules", ["physx", "robust"])
def test_the_ray_lifts_out_of_moving_actors(rules):
    item, hero = ram(rules)
    assert hero.move((0.05, 0, 0), DT) == DOWN
    assert hero.position == pytest.approx((0.05, 0, 1.42))
    assert hero.state.platform_delta == pytest.approx((0, 0, 0.5))
    assert hero.state.standing_on is item


def test_the_ray_lifts_by_the_half_height_from_inside():
    scene = Scene()
    scene.add(Box((1, 1, 2)), body="kinematic")
    hero = CharacterController(scene, (0, 0, 0), 0.4, 1.0, overlap_recovery=False)
    hero.move((0, 0, 0), DT)
    assert hero.position == pytest.approx((0, 0, 0.9))


def test_the_ray_lifts_nobody_with_a_user_defined_ride_nor_by_the_document():
    assert lifted(*ram(behavior=Behavior.USER_DEFINED_RIDE)) == 0
    assert lifted(*ram("document")) == 0
    assert lifted(*ram()) == pytest.approx(0.5)


def lifted(item, hero):
    hero.move((0.05, 0, 0), DT)
    return hero.state.platform_delta[2]


@pytest.mark.parametrize("inside", [False, True])
def test_a_shape_comes_before_an_obstacle(inside):
    scene = Scene()
    top = 2.0 if inside else 0.7
    obstacle = scene.add_obstacle(Box((1, 1, top)))
    hero = CharacterController(scene, (0, 0, 0.9), 0.4, 1.0, contact_offset=0.02, step_offset=0.2)
    hero.move((0, 0, 0), DT)
    assert hero.state.platform_delta[2] == pytest.approx(0.9 if inside else 0.7)
    hero.teleport((0, 0, 0.9))
    box = scene.add(Box((1, 1, 0.5)), body="kinematic")
    hero.move((0, 0, 0), DT)
    assert hero.state.platform_delta[2] == pytest.approx(0.5)
    scene.remove(box)
    assert obstacle.shape.half_extents[2] == top


# --- RULES_2 7


def test_a_motion_along_the_axis_ignores_triangles_beyond_the_leading_sphere():
    steep = Mesh([(3.5, 0.5, -0.1329), (4, 0.5, 0.4812), (4, 0.5, 0.1812)], [(0, 1, 2)])
    start = (3.1847, 0.637, 0.2665)
    hero = CharacterController(world(steep), start, 0.4, 1.0, contact_offset=0.02, step_offset=0)
    # 0.06 m inside.
    assert hero.scene.penetration(hero.shape, *hero.pose)[0].depth > 0.05
    hero.move((0, 0, 0.1), DT)
    assert hero.position == pytest.approx((*start[:2], start[2] + 0.1))


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_wall_on_the_first_edge_has_the_other_diagonal(first, mirrored, two_sided):
    # A vertical triangle; the wall on its level edge meets a corner of one half only.
    corners = [(0.0, -2.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 1.0)]
    order = [(first + k) % 3 for k in range(3)]
    ends = []
    for package in (pycct, reference):
        scene = package.Scene()
        mesh = package.Mesh(corners, [order], two_sided=two_sided)
        scene.add(mesh, scale=(-1 if mirrored else 1, 1, 1))
        path = []
        for y in np.linspace(-2, 2, 9):
            hero = package.CharacterController(scene, (1, y, 0.8), 0.3, 0.6, invisible_wall_height=0.5)
            for _ in range(6):
                hero.move((-0.2, 0.03, -0.02), DT)
                path.append(hero.position)
        ends.append(path)
    assert ends[0] == ends[1]
    walls = WallRule(0.5, 0.7, (0, 0, 1))
    faces = gather([Placed(a) for a in scene.actors], ((-9, -9, -9), (9, 9, 9)), 0xFFFFFFFF, walls)[0].faces
    diagonals = {frozenset(p) for f in faces for p in ((f.a, f.b), (f.b, f.c), (f.c, f.a))}
    if mirrored:
        order = [order[0], order[2], order[1]]
    for k in range(3):
        p, q = corners[order[k]], corners[order[(k + 1) % 3]]
        up = {p: (*p[:2], p[2] + 0.5), q: (*q[:2], q[2] + 0.5)}
        given = frozenset((q, up[p])) if k == 0 else frozenset((p, up[q]))
        assert given in diagonals, k


# --- RULES_2 11


def test_another_obstacle_that_is_nearest_after_an_update_is_remembered():
    ends = []
    for order in (1, -1):
        scene = Scene()
        low = scene.add_obstacle(Box((1, 1, 0.3)), position=(0, 0, 0))
        high = scene.add_obstacle(Box((1, 1, 0.3)), position=(0, 0, -0.1))
        hero = CharacterController(scene, (0, 0, 1.25), 0.4, 1.0, contact_offset=0.02, step_offset=0.2)
        hero.move((0, 0, -0.1), DT)
        assert hero.state.standing_on is low
        # One lift sinks and moves aside; the other rises through it.
        for item, to in [(low, (0.05, 0, -0.05)), (high, (0, 0.05, 0.1))][::order]:
            item.move_to(to)
        hero.move((0.01, 0, -0.02), DT)
        assert hero.state.platform_delta == (0, 0, 0)
        assert hero.state.standing_on is high
        ends.append(hero.position)
    assert ends[0] == ends[1]
    assert ends[0] == pytest.approx((0.01, 0, 1.32))


# --- RULES_2 9

# Outward normal and diagonal of each face of a box.
BOX_DIAGONALS = {
    "-x": ((-1, 0, 0), (0, 1, 1)),
    "+x": ((1, 0, 0), (0, 1, -1)),
    "-y": ((0, -1, 0), (1, 0, -1)),
    "+y": ((0, 1, 0), (1, 0, 1)),
    "-z": ((0, 0, -1), (1, 1, 0)),
    "+z": ((0, 0, 1), (1, -1, 0)),
}


def turn_of(normal, diagonal, to_normal, to_diagonal):
    """The quaternion that turns a face and its diagonal into others."""
    def frame(n, d):
        n, d = (np.array(v, float) / np.linalg.norm(v) for v in (n, d))
        return np.stack([n, d, np.cross(n, d)], 1)

    m = frame(to_normal, to_diagonal) @ frame(normal, diagonal).T
    # The eigenvector of the rotation, by Bar-Itzhack.
    k = np.array([[m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
                  [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
                  [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
                  [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], np.trace(m)]])
    return tuple(np.linalg.eigh(k)[1][:, -1])


@pytest.mark.parametrize("side", BOX_DIAGONALS)
@pytest.mark.parametrize("api", [pycct, reference], ids=["core", "reference"])
def test_the_diagonal_of_a_face_decides_whether_it_is_climbed(api, side):
    # A face stands on one corner, tilted by 60 degrees. Cut across, its lower triangle ends below
    # the step height and is climbed. Cut upwards, both of its triangles are too high.
    half, slope = 0.35, math.radians(60)
    normal, uphill = (-math.sin(slope), 0, math.cos(slope)), (math.cos(slope), 0, math.sin(slope))
    heights = []
    for diagonal in ((0, 1, 0), uphill):
        scene = api.Scene()
        scene.add(api.Plane((0, 0, 1)))
        middle = half * math.sqrt(2) * np.array(uphill) - half * np.array(normal)
        scene.add(api.Box((half, half, half)), position=tuple(middle),
                  rotation=turn_of(*BOX_DIAGONALS[side], normal, diagonal))
        hero = api.CharacterController(scene, (-0.5, 0.03, 0.72), 0.2, 1.0, contact_offset=0.02, step_offset=0.5,
                                       slope_limit=math.cos(math.radians(45)))
        for _ in range(30):
            hero.move((0.02, 0, -0.02), DT)
        heights.append(hero.position[2])
    assert heights[0] > 0.9 and heights[1] < 0.75
