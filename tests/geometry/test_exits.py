"""Ways out of meshes and hulls by RULES_2 3 and 4, and their order by RULES_2 10."""

import math
import random

import pytest

import pycct
from pycct import reference
from pycct.reference.candidates import Group, Placed, recovery_push


def push(shape, p0, p1, radius):
    """The push out of one shape at the origin."""
    item = Placed(reference.Scene().add(shape))
    r = recovery_push(Group(item, [t for t, _ in item.all_faces()]), p0, p1, radius, True)
    return tuple(x * r.depth for x in r.dir) if r.overlapping else None


def test_two_walls_push_along_each_axis():
    # A wall at x = 0.3 that faces -x, and a second one 20 degrees off.
    c, s = math.cos(math.radians(20)), math.sin(math.radians(20))
    corners = [(0.3, -3.0, -3.0), (0.3, -3.0, 3.0), (0.3, 3.0, 0.0)]
    corners += [(0.3 * c - y * s, 0.3 * s + y * c, z) for _, y, z in corners]
    walls = reference.Mesh(corners, [(0, 1, 2), (3, 4, 5)])
    x, y, z = push(walls, (0.0, 0.0, -0.5), (0.0, 0.0, 0.5), 0.42)
    assert x == pytest.approx(-0.12, abs=1e-9) and y == pytest.approx(-0.12 * s, abs=1e-9) and abs(z) < 1e-12


def test_a_hull_is_left_along_a_separating_axis():
    half = 0.3
    cube = reference.ConvexHull([(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)])
    assert push(cube, (0.5, 0.5, 0.5), (0.5, 0.5, 1.5), 0.42) == pytest.approx((0, 0, 0.22), abs=1e-9)


def test_the_flags_of_convex_edges():
    # Two triangles that share the edge from (0, 0, 0) to (0, 1, 0): flat, a ridge, a valley.
    for height, convex in ((0.0, False), (-0.5, True), (0.5, False)):
        roof = reference.Mesh([(0, 0, 0), (0, 1, 0), (-1, 0, height), (1, 0, height)], [(0, 1, 2), (1, 0, 3)])
        shared = [i for i in range(3) if {(0, 0, 0), (0, 1, 0)} == {roof._faces[0][1][i], roof._faces[0][1][i - 2]}]
        flags = roof.convex_edges()
        assert bool(flags[0] >> shared[0] & 1) is convex
        assert bin(flags[0]).count("1") == 2 + convex


RADIUS, OFFSET, HEIGHT = 0.4, 0.02, 1.0


def recovered(module, shapes, position, **more):
    """The position after a short move down that begins inside of something."""
    scene = module.Scene()
    for name, arguments, pose in shapes:
        scene.add(getattr(module, name)(*arguments), **pose)
    hero = module.CharacterController(scene, position, RADIUS, HEIGHT, contact_offset=OFFSET, step_offset=0, **more)
    hero.move((0, 0, -0.001), 0.01)
    return hero


@pytest.mark.parametrize("module", [pycct, reference], ids=["core", "reference"])
def test_moves_leave_hulls_and_surfaces_in_that_way(module):
    half = 0.3
    cube = [(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)]
    hero = recovered(module, [("ConvexHull", (cube,), {})], (0.5, 0.5, 1.0))
    assert hero.position == pytest.approx((0.5, 0.5, 1.22), abs=1e-9)
    c, s = math.cos(math.radians(20)), math.sin(math.radians(20))
    corners = [(0.3, -3.0, -3.0), (0.3, -3.0, 3.0), (0.3, 3.0, 0.0)]
    corners += [(0.3 * c - y * s, 0.3 * s + y * c, z) for _, y, z in corners]
    hero = recovered(module, [("Mesh", (corners, [(0, 1, 2), (3, 4, 5)]), {})], (0, 0, 0))
    assert hero.position == pytest.approx((-0.12, -0.12 * s, 0.0), abs=1e-9)


@pytest.mark.parametrize("module", [pycct, reference], ids=["core", "reference"])
def test_a_round_ends_with_its_last_shape(module):
    # Two walls that leave too little room push in turns, the less deep one first.
    walls = [("Box", ((1, 5, 5),), {"position": (x, 0, 0)}) for x in (-1.3, 1.35)]
    hero = recovered(module, walls, (0, 0, 0))
    assert hero.stats.recoveries == 4 and hero.position[0] == pytest.approx(0.12, abs=1e-9)
    # A kinematic body that is near and free comes last, and no second round follows.
    hero = recovered(module, [*walls, ("Sphere", (0.3,), {"position": (0, 0, -1.5), "body": "kinematic"})], (0, 0, 0))
    assert hero.stats.recoveries == 2 and hero.position[0] == pytest.approx(0.12, abs=1e-9)
    # One that overlaps pushes after the walls, and again after them in the next round.
    hero = recovered(module, [*walls, ("Sphere", (0.3,), {"position": (0, 0, -1.0), "body": "kinematic"})], (0, 0, 0))
    assert hero.stats.recoveries == 4 and hero.position[2] > 0.1
    # One that is far away does not count.
    far = ("Sphere", (0.3,), {"position": (0, 0, -1.8), "body": "kinematic"})
    assert recovered(module, [*walls, far], (0, 0, 0)).stats.recoveries == 4


def odd_mesh(rng):
    """Triangles over few corners: edges of one, two and many triangles, doubled and folded ones."""
    corners = [tuple(rng.choice((-1.0, 0.0, 0.5, 1.0)) for _ in range(3)) for _ in range(8)]
    triangles = [tuple(rng.sample(range(8), 3)) for _ in range(rng.randint(2, 14))]
    triangles += [t[::-1] for t in triangles if rng.random() < 0.2]
    if rng.random() < 0.1:
        # More triangles at one edge than are looked at.
        triangles += [(triangles[0][0], triangles[0][1], rng.randrange(8)) for _ in range(20)]
    return ("Mesh", (corners, triangles, rng.random() < 0.3), odd_pose(rng))


def odd_field(rng):
    rows, columns = rng.randint(2, 5), rng.randint(2, 5)
    heights = [[rng.choice((0.0, 0.3, rng.random())) for _ in range(columns)] for _ in range(rows)]
    pose = odd_pose(rng)
    pose["position"] = tuple(x - 1.0 for x in pose["position"])
    return ("Heightfield", (heights, (0.7, 0.9)), pose)


def odd_hull(rng):
    points = [tuple(rng.uniform(-0.7, 0.7) for _ in range(3)) for _ in range(rng.randint(4, 9))]
    return ("ConvexHull", (points,), odd_pose(rng))


def odd_pose(rng):
    pose = {"position": tuple(rng.uniform(-0.3, 0.3) for _ in range(3))}
    if rng.random() < 0.5:
        turn = [rng.gauss(0, 1) for _ in range(4)]
        pose["rotation"] = tuple(x / math.hypot(*turn) for x in turn)
    if rng.random() < 0.5:
        pose["scale"] = tuple(rng.choice((-1, 1)) * rng.uniform(0.6, 1.5) for _ in range(3))
    if rng.random() < 0.3:
        pose["body"] = "kinematic"
    return pose


@pytest.mark.parametrize("seed", range(4))
def test_core_and_reference_push_alike(seed):
    rng = random.Random(seed)
    pushed = 0
    for _ in range(250):
        shapes = [rng.choice((odd_mesh, odd_mesh, odd_field, odd_hull))(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        position = tuple(rng.uniform(-0.6, 0.6) for _ in range(3))
        core, ours = (recovered(module, shapes, position) for module in (pycct, reference))
        found = [(h.position, h.state.overlap, h.stats.recoveries) for h in (core, ours)]
        assert found[0] == found[1], (shapes, position)
        pushed += core.stats.recoveries > 0
    assert pushed > 120


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_shapes_and_triangles_does_not_matter(seed):
    rng = random.Random(10 + seed)
    for _ in range(150):
        shapes = [rng.choice((odd_mesh, odd_field, odd_hull))(rng) for _ in range(3)]
        position = tuple(rng.uniform(-0.6, 0.6) for _ in range(3))
        before = recovered(pycct, shapes, position).position
        turned = []
        for name, arguments, pose in shapes:
            if name == "Mesh":
                corners, triangles, two_sided = arguments
                arguments = (corners, [(b, c, a) for a, b, c in reversed(triangles)], two_sided)
            turned.insert(0, (name, arguments, pose))
        assert recovered(pycct, turned, position).position == before, (shapes, position)


@pytest.mark.parametrize("rules", ["physx", "robust"])
@pytest.mark.parametrize("module", [pycct, reference], ids=["core", "reference"])
def test_no_exit_across_an_edge_leads_through_a_wall(module, rules):
    # In a closed room whose floor the axis crosses, near a wall. The exit across the edge of the
    # floor is the shortest one of the floor, and ends behind the wall.
    x, y, z = 1.238, 0.744, 1.056
    corners = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    inwards = [(0, 3, 1), (0, 2, 3), (4, 7, 6), (4, 5, 7), (0, 5, 4), (0, 1, 5)]
    inwards += [(2, 7, 3), (2, 6, 7), (0, 6, 2), (0, 4, 6), (1, 7, 5), (1, 3, 7)]
    scene = module.Scene()
    scene.add(module.Mesh(corners, inwards))
    more = {"contact_offset": 0.1, "step_offset": 0.1, "rules": rules}
    hero = module.CharacterController(scene, (-0.753, 0.502, -0.921), 0.3, 1.0, **more)
    hero.move((0.01, 0, -0.01), 0.01)
    assert hero.position == pytest.approx((-0.743, y - 0.4, 0.9 - z), abs=1e-9)
