"""How a character moves: RULES 2 to 7, tested by public results only."""

import math

import brute
import numpy as np
import pytest

from pycct import (
    Box,
    Capsule,
    CharacterController,
    CollisionFlags,
    ConvexHull,
    Heightfield,
    Mesh,
    Pass,
    Plane,
    Rules,
    Scene,
    Sphere,
    Triangle,
)

SIDES, UP, DOWN = CollisionFlags.SIDES, CollisionFlags.UP, CollisionFlags.DOWN
DT = 1 / 60
RADIUS, HEIGHT, OFFSET = 0.4, 1.0, 0.01
REST = HEIGHT / 2 + RADIUS + OFFSET  # height of the centre over the floor it stands on
LIMIT = math.cos(math.radians(45))


def quad(a, b, c, d):
    """Two triangles; corners counter-clockwise seen from the front."""
    return Mesh([a, b, c, d], [(0, 1, 2), (0, 2, 3)])


def flat(size=50, z=0.0):
    return quad((-size, -size, z), (size, -size, z), (size, size, z), (-size, size, z))


def slope(degrees, x0=0.0, x1=20.0, width=20.0):
    """A slope that rises along +x from (x0, 0)."""
    t = math.tan(math.radians(degrees))
    return quad((x0, -width, 0), (x1, -width, (x1 - x0) * t), (x1, width, (x1 - x0) * t), (x0, width, 0))


def wall_at(x, low=-5.0, high=5.0, width=20.0):
    """One sheet, seen from -x."""
    return quad((x, width, low), (x, -width, low), (x, -width, high), (x, width, high))


def world(*shapes):
    scene = Scene()
    for s in shapes:
        if isinstance(s, tuple):
            scene.add(s[0], position=s[1])
        else:
            scene.add(s)
    return scene


def hero_in(scene, x=0.0, y=0.0, z=REST, **more):
    return CharacterController(scene, (x, y, z), RADIUS, HEIGHT, contact_offset=OFFSET, slope_limit=LIMIT, **more)


def steps(hero, displacement, count):
    """Flags of each of many equal moves."""
    return [hero.move(displacement, DT) for _ in range(count)]


# --- free motion


def test_free_motion_is_exactly_the_displacement():
    hero = hero_in(Scene())
    start = np.array(hero.position)
    assert hero.move((0.1, -0.2, -0.3), 0.5) == CollisionFlags.NONE
    np.testing.assert_allclose(hero.position, start + np.array((0.1, -0.2, -0.3)), atol=1e-15)
    np.testing.assert_allclose(hero.velocity, (0.2, -0.4, -0.6), atol=1e-14)
    assert hero.hits == [] and not hero.grounded and hero.ground is None


def test_foot_position_is_below_by_the_contact_offset_too():
    hero = hero_in(Scene(), z=5)
    assert hero.foot_position == pytest.approx((0, 0, 5 - REST))
    hero.foot_position = (1, 2, 3)
    assert hero.position == pytest.approx((1, 2, 3 + REST))


# --- the floor


FLOORS = {
    "mesh": lambda: flat(),
    "plane": lambda: Plane((0, 0, 1)),
    "box": lambda: (Box((50, 50, 1)), (0, 0, -1)),
    "hull": lambda: (ConvexHull([(x, y, z) for x in (-50, 50) for y in (-50, 50) for z in (-1, 1)]), (0, 0, -1)),
    "triangle": lambda: Triangle((-99, -99, 0), (99, -99, 0), (0, 99, 0)),
}


@pytest.mark.parametrize("kind", FLOORS)
def test_walks_straight_and_level_on_any_floor(kind):
    hero = hero_in(world(FLOORS[kind]()))
    for k in range(120):
        assert hero.move((0.05, 0.02, -0.03), DT) == DOWN
        assert hero.position == pytest.approx((0.05 * (k + 1), 0.02 * (k + 1), REST), abs=1e-9)
    assert hero.grounded and hero.ground.walkable
    assert hero.ground.normal == pytest.approx((0, 0, 1))
    assert hero.ground.distance == pytest.approx(OFFSET)


@pytest.mark.parametrize("kind", FLOORS)
def test_falls_and_rests_the_contact_offset_above(kind):
    hero = hero_in(world(FLOORS[kind]()), z=10)
    steps(hero, (0, 0, -0.7), 20)
    assert hero.position[2] == pytest.approx(REST, abs=1e-9)


@pytest.mark.parametrize("fall", [50.0, 1000.0, 1e5])
def test_a_fast_fall_meets_the_floor(fall):
    # SWEEP 3.3 grows its window in one direction only and misses the floor.
    hero = hero_in(world(flat()), z=fall / 2)
    assert hero.move((0.1, 0, -fall), DT) & DOWN
    assert hero.position[2] == pytest.approx(REST, abs=1e-9 * fall)


def test_a_fast_run_meets_the_wall():
    hero = hero_in(world(flat(5000), wall_at(900)))
    assert hero.move((5000, 0, -0.1), DT) & SIDES
    assert hero.position[0] == pytest.approx(900 - RADIUS - OFFSET, abs=1e-6)


def test_the_contact_offset_keeps_the_gap_and_no_more():
    for offset in (0.0, 0.001, 0.1):
        hero = CharacterController(world(flat()), (0, 0, 3), RADIUS, HEIGHT, contact_offset=offset)
        steps(hero, (0, 0, -0.5), 10)
        assert hero.position[2] - HEIGHT / 2 - RADIUS == pytest.approx(offset, abs=1e-12)


def test_never_advances_backwards():
    # A wall is nearer than the contact offset: the character stays and is not pushed off (RULES 5).
    hero = hero_in(world(flat()), z=REST - 0.004)
    assert hero.move((0, 0, -0.1), DT) == DOWN
    assert hero.position[2] == REST - 0.004


def test_contact_point_is_the_closest_point_at_impact():
    # SWEEP 8.1.2 scales a cosine by a length.
    hero = hero_in(world((Sphere(1.0), (0.3, 0, 0))), z=5)
    hero.move((0, 0, -9), DT)
    hit = hero.hits[0]
    assert math.dist(hit.position, (0.3, 0, 0)) == pytest.approx(1.0, abs=1e-12)
    bottom = np.array((0, 0, 5 - hit.distance - HEIGHT / 2))
    assert math.dist(hit.position, bottom) == pytest.approx(RADIUS, abs=1e-12)
    np.testing.assert_allclose(hit.normal, (bottom - hit.position) / RADIUS, atol=1e-12)


def test_normal_of_a_wall_met_near_the_end_of_a_long_axis():
    # SWEEP 7.2 turns the normal by the capsule's centre, so the normal would point into this wedge.
    wedge = quad((1, 3, 3), (1, -3, 3), (9, -3, 9), (9, 3, 9))
    hero = CharacterController(world(wedge), (0, 0, 5), 0.2, 8.0, step_offset=0)
    assert hero.move((3, 0, 0), DT) & SIDES
    assert np.dot(hero.hits[0].normal, (1, 0, 0)) < 0


# --- steps


@pytest.mark.parametrize("kind", ["box", "mesh"])
@pytest.mark.parametrize("height", [0.1, 0.3, 0.45])
def test_climbs_a_step_up_to_the_step_offset(kind, height):
    step = (Box((2, 5, height / 2)), (3, 0, height / 2))
    if kind == "mesh":
        step = quad((1, -5, height), (5, -5, height), (5, 5, height), (1, 5, height))
        step = Mesh(
            np.vstack([step.vertices, [(1, 5, 0), (1, -5, 0), (1, -5, height), (1, 5, height)]]),
            [(0, 1, 2), (0, 2, 3), (4, 5, 6), (4, 6, 7)],
        )
    hero = hero_in(world(flat(), step), step_offset=0.5)
    flags = steps(hero, (0.05, 0, -0.05), 60)
    assert hero.position == pytest.approx((3, 0, REST + height), abs=1e-6)
    assert not any(f & SIDES for f in flags)


@pytest.mark.parametrize(("mode", "height"), [("easy", 1.0), ("easy", 3.0), ("constrained", 0.6), ("constrained", 1.0)])
def test_stops_at_a_step_higher_than_the_step_offset(mode, height):
    # With 'easy' climbing, the round bottom rolls up a little more than the step offset.
    scene = world(flat(), (Box((2, 5, height / 2)), (3, 0, height / 2)))
    hero = hero_in(scene, step_offset=0.5, climbing_mode=mode)
    flags = steps(hero, (0.05, 0, -0.05), 60)
    # The lifted round bottom may overhang the edge: then the DOWN pass ends at the edge.
    assert 1 - RADIUS - OFFSET - 1e-9 <= hero.position[0] <= 1 - RADIUS
    assert hero.position[2] == pytest.approx(REST, abs=1e-6)
    assert flags[-1] == SIDES | DOWN


def test_walks_up_a_staircase_and_down_again():
    stairs = [(Box((0.2, 3, 0.1 * (k + 1))), (1.2 + 0.4 * k, 0, 0.1 * (k + 1))) for k in range(10)]
    hero = hero_in(world(flat(), *stairs), step_offset=0.3)
    steps(hero, (0.05, 0, -0.05), 95)
    assert hero.position[2] == pytest.approx(REST + 2.0, abs=1e-6)
    steps(hero, (-0.05, 0, -0.05), 200)
    assert hero.position[2] == pytest.approx(REST, abs=1e-6)
    assert hero.position[0] == pytest.approx(-0.05 * 105, abs=1e-6)


def test_a_step_without_headroom_is_not_climbed():
    # The ceiling leaves 0.1 m for the lift, and the step needs 0.3 m (MOVE 6.2.4).
    ceiling = (Box((9, 9, 0.5)), (0, 0, 2 * REST + 0.1 + 0.5))
    hero = hero_in(world(flat(), (Box((2, 5, 0.15)), (3, 0, 0.15)), ceiling), step_offset=0.5)
    steps(hero, (0.05, 0, -0.05), 60)
    # The character stands on the floor, where its round bottom meets the edge.
    assert hero.position[0] < 1
    assert hero.position[2] < REST + 0.11


def test_the_lift_is_taken_back():
    # CHAR never takes the lift back; a walk in the air would then climb by the step in every move.
    hero = hero_in(Scene(), z=5, step_offset=0.5)
    hero.move((0.1, 0, 0), DT)
    assert hero.position == pytest.approx((0.1, 0, 5), abs=1e-12)


def test_a_jump_does_not_climb():
    # RULES 6: an upward motion cancels the step, on a static floor too (MOVE 13.3.3 calls it
    # moving).
    hero = hero_in(world(flat(), (Box((2, 5, 0.15)), (3, 0, 0.15))), x=0.4, step_offset=0.5)
    hero.move((0, 0, -0.1), DT)
    assert hero.state.standing_on is not None
    assert hero.move((0.4, 0, 0.001), DT) & SIDES
    assert hero.position[0] < 0.75


# --- walls


@pytest.mark.parametrize("degrees", [0, 10, 45, 80])
def test_slides_along_a_wall_with_the_component_along_it(degrees):
    a = math.radians(degrees)
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    hero.move((0.1 * math.cos(a), 0.1 * math.sin(a), -0.02), DT)
    # The gap is measured along the motion, so a slanting motion ends nearer, but never inside the
    # wall.
    assert 1 - RADIUS - OFFSET - 1e-9 <= hero.position[0] < 1 - RADIUS
    assert hero.position[1:] == pytest.approx((0.1 * math.sin(a), REST), abs=1e-9)
    assert hero.flags == SIDES | DOWN


@pytest.mark.parametrize("inner", [60, 90, 120])
def test_a_corner_holds(inner):
    a = math.radians(inner / 2)
    walls = [Plane((-math.sin(a), s * math.cos(a), 0), -1.0) for s in (-1, 1)]
    hero = hero_in(world(flat(), *walls))
    steps(hero, (0.2, 0.01, -0.02), 40)
    x, y, _ = hero.position
    for s in (-1, 1):
        gap = -x * math.sin(a) + s * y * math.cos(a) + 1.0 - RADIUS
        assert -1e-9 < gap < OFFSET + 0.02
    # The character may still creep within the contact offset, and no farther.
    settled = hero.position
    steps(hero, (0.2, 0, -0.02), 200)
    assert math.dist(settled, hero.position) < 2 * OFFSET


def test_round_shapes_are_slid_round():
    for shape in (Sphere(1.0), Capsule(1.0, 4.0)):
        hero = hero_in(world(flat(), (shape, (3, 0.2, REST))), step_offset=0)
        steps(hero, (0.1, 0, -0.02), 80)
        assert hero.position[0] > 3
        assert abs(hero.position[1] - 0.2) >= 1 + RADIUS - 1e-6
        assert hero.position[2] == pytest.approx(REST, abs=1e-6)


def test_leaving_a_wall_is_never_held_back():
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    steps(hero, (0.1, 0, -0.02), 5)
    hero.move((-0.1, 0, -0.02), DT)
    assert hero.position[0] == pytest.approx(1 - RADIUS - OFFSET - 0.1, abs=1e-12)


# --- slopes


MODES = [(c, n) for c in ("easy", "constrained") for n in ("prevent_climbing", "force_sliding")]


@pytest.mark.parametrize(("climbing", "non_walkable"), MODES)
@pytest.mark.parametrize("degrees", [10, 30, 44])
def test_walks_up_and_down_a_walkable_slope(climbing, non_walkable, degrees):
    hero = hero_in(world(flat(), slope(degrees)), x=-1, climbing_mode=climbing, non_walkable_mode=non_walkable)
    steps(hero, (0.05, 0, -0.05), 100)
    t = math.tan(math.radians(degrees))
    assert hero.position[0] == pytest.approx(4, abs=0.1)
    assert hero.position[2] > REST + 0.9 * t * 4 - 0.2
    assert hero.ground.walkable and not hero.state.sliding
    steps(hero, (-0.05, 0, -0.1), 130)
    assert hero.position[2] == pytest.approx(REST, abs=1e-6)


@pytest.mark.parametrize(("climbing", "non_walkable"), MODES)
@pytest.mark.parametrize("degrees", [46, 60, 80])
def test_does_not_climb_a_slope_that_is_too_steep(climbing, non_walkable, degrees):
    hero = hero_in(world(flat(), slope(degrees)), x=-1, climbing_mode=climbing, non_walkable_mode=non_walkable)
    steps(hero, (0.05, 0, -0.05), 200)
    # The character may gain the step offset and no more.
    assert hero.position[2] <= REST + 0.5 + 1e-6
    assert hero.position[0] < 1


@pytest.mark.parametrize("degrees", [46, 60, 80])
def test_on_a_steep_slope_force_sliding_slides_and_prevent_climbing_goes_nowhere_but_down(degrees):
    t = math.tan(math.radians(degrees))
    found = {}
    for mode in ("prevent_climbing", "force_sliding"):
        hero = hero_in(world(slope(degrees, -20, 20)), x=0, z=20 * t + 2 + RADIUS, non_walkable_mode=mode)
        steps(hero, (0, 0, -0.5), 20)
        landed = hero.position
        assert hero.state.sliding
        assert not hero.ground.walkable
        steps(hero, (0, 0, -0.2), 20)
        found[mode] = (landed, hero.position)
    landed, now = found["force_sliding"]
    assert now[0] < landed[0] - 0.3
    assert now[2] < landed[2] - 0.3
    landed, now = found["prevent_climbing"]
    assert now[2] <= landed[2] + 1e-9


def test_force_sliding_walks_on_with_the_vertical_part_only():
    # RULES 9 row 1: MOVE 3.2.5 keeps the horizontal component, and would walk on uphill.
    scene = world(slope(60, -20, 20))
    hero = hero_in(scene, z=20 * math.tan(math.radians(60)) + 2, non_walkable_mode="force_sliding")
    steps(hero, (0, 0, -0.3), 20)
    x, y, z = hero.position
    hero.move((0.05, 0.05, -0.1), DT)
    assert hero.state.sliding
    assert hero.position[0] < x
    assert hero.position[1] == pytest.approx(y, abs=1e-9)
    assert hero.position[2] < z


def test_the_walk_experiment_starts_where_the_move_began():
    # MOVE 3.2.5 takes its backup after the first run has moved, which counts the move twice. Here a
    # ledge under the feet is too steep, and the way aside in the air is free.
    hero = hero_in(world(slope(60, -20, 20)), z=20 * math.tan(math.radians(60)) + 3)
    steps(hero, (0, 0, -0.3), 20)
    y = hero.position[1]
    hero.move((0, 0.1, -0.01), DT)
    assert hero.state.sliding
    assert hero.position[1] == pytest.approx(y + 0.1, abs=1e-9)


def test_a_normal_that_faces_down_is_not_too_steep():
    # RULES 9 row 4: an overhang beside the character starts no walk experiment.
    overhang = quad((1, 5, 0), (1, -5, 0), (-2, -5, 6), (-2, 5, 6))
    hero = hero_in(world(flat(), overhang), climbing_mode="constrained")
    steps(hero, (0.05, 0, -0.02), 60)
    assert hero.flags & SIDES
    assert not hero.state.sliding
    # The overhang presses the character down a little, within the contact offset.
    assert REST - OFFSET < hero.position[2] <= REST


@pytest.mark.parametrize("rules", [Rules.PHYSX, Rules.STEEP_FACING_DOWN])
def test_an_overhang_aside_is_steep_only_by_the_document(rules):
    # RULES 9 row 4: on a walkable slope the round bottom touches higher than the step, so a side
    # normal that counts as too steep would start the walk experiment.
    t = math.tan(math.radians(20))
    overhang = quad((-20, 1 + 20 * t, -20), (20, 1 + 20 * t, -20), (20, 1 - 20 * t, 20), (-20, 1 - 20 * t, 20))
    hero = hero_in(
        world(slope(40, -20, 20), overhang),
        x=-20,
        y=-1,
        z=2,
        step_offset=0.05,
        climbing_mode="constrained",
        rules=rules,
    )
    steps(hero, (0, 0, -0.1), 30)
    assert hero.grounded
    seen = []
    for _ in range(60):
        flags = hero.move((0, 0.05, -0.02), DT)
        seen.append((bool(flags & SIDES), hero.state.sliding))
    assert any(sides for sides, _ in seen)
    assert any(sliding for _, sliding in seen) == (rules is Rules.STEEP_FACING_DOWN)


def test_slope_limit_zero_switches_slopes_off():
    hero = hero_in(world(flat(), slope(70)), x=-1)
    hero.slope_limit = 0
    steps(hero, (0.05, 0, -0.005), 400)
    assert hero.position[2] > REST + 3
    assert not hero.state.sliding


def test_round_shapes_are_never_too_steep():
    # RULES 2: round shapes have no triangles.
    hero = hero_in(world((Sphere(2), (1.7, 0, 0))), z=3, non_walkable_mode="force_sliding")
    steps(hero, (0, 0, -0.2), 30)
    assert hero.flags == DOWN
    assert hero.ground.normal[2] < LIMIT
    assert not hero.state.sliding
    assert hero.ground.triangle is None


def test_the_same_ball_of_triangles_is_too_steep():
    k = 48
    a, b = np.meshgrid(np.linspace(0, 2 * np.pi, k), np.linspace(0, np.pi, k), indexing="ij")
    v = 2 * np.stack([np.cos(a) * np.sin(b), np.sin(a) * np.sin(b), np.cos(b)], -1).reshape(-1, 3)
    i = np.arange(k * k).reshape(k, k)
    q = np.stack([i[:-1, :-1], i[:-1, 1:], i[1:, 1:], i[1:, :-1]], -1).reshape(-1, 4)
    ball = Mesh(v, np.concatenate([q[:, :3], q[:, [0, 2, 3]]]))
    hero = hero_in(world((ball, (2.1, 0, 0))), z=3, non_walkable_mode="force_sliding", step_offset=0.02)
    steps(hero, (0, 0, -0.2), 40)
    assert hero.position[2] < -2


def test_a_steep_triangle_no_higher_than_the_step_is_walkable():
    # RULES 6: a triangle is too steep only if its top is more than the step offset above the feet.
    for top, sliding in ((0.3, False), (0.9, True)):
        t = top / math.tan(math.radians(60))
        kerb = quad((0, -5, 0), (t, -5, top), (t, 5, top), (0, 5, 0))
        hero = hero_in(world(flat(), kerb), x=-0.1, z=REST + 0.7, step_offset=0.5)
        hero.move((0, 0, -1), DT)
        assert hero.hits[0].actor is hero.scene.actors[1]
        hero.move((0, 0, -0.1), DT)
        assert hero.state.sliding == sliding


def test_constrained_climbing_never_climbs_higher_than_the_step():
    # MOVE 3.2.2: with 'easy' climbing, the lift lets a character reach a steep face higher than the
    # step.
    scene = world(flat(), slope(50))
    tops = {}
    for mode in ("easy", "constrained"):
        hero = hero_in(scene, x=-1, climbing_mode=mode, step_offset=0.4)
        top = 0.0
        for k in range(200):
            hero.move((0.15 if k % 2 else 0.05, 0, -0.02), DT)
            top = max(top, hero.position[2] - REST)
        tops[mode] = top
    assert tops["constrained"] <= 0.4 + 1e-9
    assert tops["constrained"] <= tops["easy"] + 1e-9


def test_the_sensor_sees_steep_faces_that_small_steps_miss_and_costs_no_side_motion():
    # RULES 9 row 2; CHAR restores a position from before the SIDE pass and loses the motion.
    hero = hero_in(world(flat()), climbing_mode="constrained")
    for _ in range(50):
        hero.move((0.01, 0, -0.01), DT)
    assert hero.position[0] == pytest.approx(0.5, abs=1e-9)
    assert all(h.pass_ is not Pass.SENSOR for h in hero.hits)


def test_walk_experiment_does_not_take_back_a_lift_it_never_had():
    # RULES 9 row 7: MOVE 6.2.6 lowers by the step although the UP pass was skipped. At a steep
    # roof's edge the character must not drop by the step offset beyond its displacement.
    roof = slope(60, -5, 0.0)
    hero = hero_in(world(roof), x=-2, z=10, step_offset=0.5)
    steps(hero, (0, 0, -0.3), 30)
    assert hero.state.sliding
    for _ in range(40):
        before = hero.position
        hero.move((-0.02, 0, -0.01), DT)
        assert before[2] - hero.position[2] < 0.2


# --- ceilings


def test_a_ceiling_stops_a_jump():
    hero = hero_in(world(flat(), (Box((9, 9, 1)), (0, 0, 3 + 1))))
    assert hero.move((0, 0, 5), DT) == UP
    assert hero.position[2] == pytest.approx(3 - REST, abs=1e-9)


def ceiling_slope(degrees):
    """A slanted ceiling, seen from below, lower towards +x."""
    t = math.tan(math.radians(degrees))
    return quad((-9, 9, 3 + 9 * t), (9, 9, 3 - 9 * t), (9, -9, 3 - 9 * t), (-9, -9, 3 + 9 * t))


def test_slides_up_along_a_slanted_ceiling_unless_forbidden():
    x = {}
    for forbidden in (False, True):
        hero = hero_in(world(ceiling_slope(30)), z=0, prevent_vertical_sliding=forbidden)
        hero.move((0, 0, 4), DT)
        assert hero.flags & UP
        x[forbidden] = hero.position[0]
    assert x[False] < -0.3
    assert x[True] == 0


def test_prevent_vertical_sliding_keeps_a_side_motion_level():
    z = {}
    for forbidden in (False, True):
        hero = hero_in(world(ceiling_slope(60)), z=0.4, step_offset=0, prevent_vertical_sliding=forbidden)
        start = hero.position[2]
        assert hero.move((4, 0, 0), DT) & SIDES
        z[forbidden] = hero.position[2] - start
    assert z[False] < -0.1
    assert z[True] == pytest.approx(0, abs=1e-9)


# --- any up


@pytest.mark.parametrize("seed", range(8))
def test_moves_are_the_same_for_any_up(seed):
    # A rotated world, up and motion give the rotated result.
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    shapes = [flat(), slope(30, 2, 6), (Box((1, 1, 0.2)), (-3, 0, 0.2)), wall_at(7), (Sphere(0.7), (0, 3, 0.5))]
    level, turned = Scene(), Scene()
    for s in shapes:
        shape, position = s if isinstance(s, tuple) else (s, (0, 0, 0))
        level.add(shape, position=position)
        turned.add(shape, position=brute.rotate(q, np.array(position, float)), rotation=q)
    a = hero_in(level, z=1.5)
    up = brute.rotate(q, np.array((0, 0, 1.0)))
    b = CharacterController(
        turned, brute.rotate(q, np.array(a.position)), RADIUS, HEIGHT, up, contact_offset=OFFSET, slope_limit=LIMIT
    )
    for _ in range(60):
        d = np.append(rng.normal(size=2) * 0.1, -0.05)
        flags = a.move(d, DT), b.move(brute.rotate(q, d), DT)
        assert flags[0] == flags[1]
        np.testing.assert_allclose(b.position, brute.rotate(q, np.array(a.position)), atol=1e-6)
        b.position = brute.rotate(q, np.array(a.position))
    assert a.grounded


# --- invisible walls and max_jump_height


def test_invisible_walls_stop_where_a_steep_slope_would_be_walked_onto():
    scene = world(flat(), slope(60, 1, 5))
    plain, walled = hero_in(scene), hero_in(scene, invisible_wall_height=3.0)
    steps(plain, (0.05, 0, -0.02), 60)
    steps(walled, (0.05, 0, -0.02), 60)
    assert walled.position[0] == pytest.approx(1 - RADIUS - OFFSET, abs=1e-6)
    assert plain.position[0] > walled.position[0] + 0.05
    # An invisible wall is no triangle of the mesh (RULES 2).
    hit = next(h for h in walled.hits if h.pass_ is Pass.SIDE)
    assert hit.triangle is None and hit.actor is scene.actors[1]


def test_no_invisible_wall_on_walkable_slopes():
    hero = hero_in(world(flat(), slope(40, 1, 5)), invisible_wall_height=3.0)
    steps(hero, (0.05, 0, -0.02), 60)
    assert hero.position[0] > 2


def test_invisible_walls_are_never_recovered_from():
    # RULES 2: overlap recovery uses the mesh alone.
    hero = hero_in(world(flat(), slope(60, 1, 5)), x=0.9, z=REST + 1.0, invisible_wall_height=5.0)
    start = hero.position
    hero.move((0, 0.1, 0), DT)
    assert math.dist(start, hero.position) < 0.11


def test_max_jump_height_finds_the_walls_of_slopes_far_below():
    # The wall rises from a slope far below the volume of the move.
    scene = world(slope(60, 1, 1.5))
    hero = hero_in(scene, x=-0.2, z=6.0, invisible_wall_height=9.0, max_jump_height=8.0)
    assert hero.move((2, 0, 0), DT) & SIDES
    assert hero.position[0] == pytest.approx(1 - RADIUS - OFFSET, abs=1e-6)


# --- overlap recovery


def sunk_worlds():
    rng = np.random.default_rng(3)
    yield "floor", world(flat()), (0, 0, REST - 0.3)
    yield "box", world(flat(), (Box((1, 1, 1)), (1.2, 0, 1))), (0, 0, REST)
    yield "corner", world(flat(), (Box((1, 5, 2)), (1.3, 0, 2)), (Box((5, 1, 2)), (0, 1.3, 2))), (0, 0, REST)
    yield "sphere", world(flat(), (Sphere(1), (1.2, 0, 1))), (0, 0, REST)
    yield "capsule", world((Capsule(0.5, 2), (0.6, 0, 1))), (0, 0, 1)
    points = rng.normal(size=(20, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    yield "hull", world(ConvexHull(points)), (0.1, 0.2, 1.6)
    yield "slope", world(slope(30, -20, 20)), (0, 0, 20 * math.tan(math.radians(30)) + 0.7)


@pytest.mark.parametrize(("name", "scene", "place"), list(sunk_worlds()), ids=lambda v: v if isinstance(v, str) else "")
def test_overlap_recovery_ends_free(name, scene, place):
    hero = hero_in(scene, *place)
    shape = Capsule(RADIUS, HEIGHT)
    assert scene.penetration(shape, hero.position), "the test must begin inside"
    hero.move((0, 0, -0.01), DT)
    hero.move((0, 0, -0.01), DT)
    assert all(p.depth < 1e-9 for p in scene.penetration(shape, hero.position))
    assert hero.state.overlap == 0
    assert math.dist(place, hero.position) < 2


def test_overlap_recovery_leaves_the_contact_offset():
    hero = hero_in(world((Box((5, 5, 1)), (0, 0, -1))), z=REST - 0.2)
    hero.move((0, 0, -0.1), DT)
    assert hero.position[2] == pytest.approx(REST, abs=1e-9)
    assert hero.stats.recoveries == 1


def test_recovery_corrects_one_shape_at_a_time():
    # RULES 9 row 5: MOVE 9.2 adds up the corrections of all overlaps. Two flush boxes side by side,
    # sunk into equally: the sum would move the character up twice as far.
    scene = world((Box((1, 5, 1)), (-1, 0, -1)), (Box((1, 5, 1)), (1, 0, -1)))
    hero = hero_in(scene, z=REST - 0.2)
    hero.move((0, 0, -0.1), DT)
    assert hero.position[2] == pytest.approx(REST, abs=1e-9)


def test_a_crush_between_two_walls_is_reported():
    scene = world((Box((1, 5, 5)), (-1.3, 0, 0)), (Box((1, 5, 5)), (1.3, 0, 0)))
    hero = hero_in(scene, z=0)
    hero.move((0, 0.1, 0), DT)
    assert hero.state.overlap > 0.05
    assert all(math.isfinite(x) for x in hero.position)


@pytest.mark.parametrize("rules", ["physx", "robust", "document"])
def test_a_body_on_the_head_does_not_carry_along_the_ground(rules):
    # The body presses the axis through the ground. The smallest exit across each triangle's edge
    # led into the next triangle (RULES 7.5): up to 13 m in a move, through walls. No body here
    # reaches 1.6 m far.
    rng = np.random.default_rng(4)
    scene = Scene()
    scene.add(Heightfield(rng.normal(size=(41, 41)) * 0.15, (1, 1)), position=(-20, -20, 0))
    shapes = [Box((0.4, 0.3, 0.5)), Sphere(0.5), Capsule(0.3, 0.6), ConvexHull(rng.normal(size=(12, 3)) * 0.4)]
    bodies = [scene.add(shape, (0, 0, 50 + 5 * k), body="kinematic") for k, shape in enumerate(shapes)]
    hero = CharacterController(scene, (0, 0, 1), radius=0.3, height=0.8, step_offset=0.3, rules=rules)
    farthest = 0.0
    for k in range(500):
        hero.teleport((*rng.uniform(-8, 8, 2), 1.0))
        for _ in range(3):
            hero.move((0, 0, -0.3), DT)
        body = bodies[k % 4]
        for _ in range(3):
            start = hero.position
            body.move_to(tuple(np.add(start, rng.normal(size=3) * 0.3 + (0, 0, 0.3))), (0, 0, 0, 1))
            hero.move((*rng.normal(size=2) * 0.1, -0.08), DT)
            farthest = max(farthest, math.dist(start[:2], hero.position[:2]))
        body.move_to((0, 0, 50 + 5 * (k % 4)), (0, 0, 0, 1))
    assert 0.5 < farthest < 1.6


def test_out_of_the_ground_upwards_where_no_edge_is_an_exit():
    # The axis crosses a ridge near its edge, and beyond the edge it crosses the next triangle.
    ground = Mesh([(-4, -4, 0), (4, -4, 0), (4, 4, 0), (-4, 4, 0), (0.1, 0.1, 0.05)],
                  [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])
    hero = CharacterController(world(ground), (0.15, 0.12, 0.2), radius=0.3, height=0.8, step_offset=0.3)
    hero.move((0, 0, -0.01), DT)
    assert math.dist(hero.position[:2], (0.15, 0.12)) < 0.1
    assert hero.position[2] > 0.7 and hero.state.overlap == 0
    # At the rim of a surface, the exit across the edge remains the shortest.
    rim = Mesh([(-4, -4, 0), (0, -4, 0), (0, 4, 0), (-4, 4, 0)], [(0, 1, 2), (0, 2, 3)])
    hero = CharacterController(world(rim), (-0.05, 0, 0.2), radius=0.3, height=0.8, step_offset=0.3)
    hero.move((0, 0, -0.01), DT)
    assert hero.position[0] == pytest.approx(0.3 + OFFSET, abs=0.05) and hero.position[2] < 0.3


def test_without_recovery_overlaps_are_passed_through():
    hero = hero_in(world((Box((5, 5, 1)), (0, 0, -1))), z=REST - 0.2, overlap_recovery=False)
    hero.move((0, 0, -0.1), DT)
    assert hero.stats.recoveries == 0
    assert hero.position[2] == pytest.approx(REST - 0.3, abs=1e-12)


# --- faces: culling, sheets, two-sided meshes


def test_back_faces_are_passed_through():
    hero = hero_in(world(wall_at(1.0)), x=3, step_offset=0)
    assert hero.move((-4, 0, 0), DT) == CollisionFlags.NONE
    assert hero.position[0] == pytest.approx(-1)
    # The same sheets stop a motion that comes from the front.
    assert hero.move((4, 0, 0), DT) == SIDES


def test_back_faces_do_not_count_as_overlap():
    hero = hero_in(world(wall_at(1.0)), x=1.1, step_offset=0)
    start = hero.position
    hero.move((-0.1, 0, 0), DT)
    assert hero.position == pytest.approx((start[0] - 0.1, 0, REST), abs=1e-12)
    assert hero.stats.recoveries == 0


def test_a_face_exactly_along_the_motion_is_kept():
    # RULES 2: dot(normal, direction) > 0 culls, == 0 does not (SWEEP 4.2.1 culls both). Recovery
    # from a sheet that overlaps from the side works although the motion is along it.
    hero = hero_in(world(wall_at(1.0)), x=1 - RADIUS + 0.1, step_offset=0)
    hero.move((0, 0.1, 0), DT)
    assert hero.stats.recoveries > 0
    assert hero.position[0] == pytest.approx(1 - RADIUS - OFFSET, abs=1e-9)


def test_an_edge_of_a_face_along_the_motion_can_be_hit():
    # A vertical sheet in the plane y = 0, its edge ahead, the motion in its plane.
    sheet = quad((1, 0, -3), (5, 0, -3), (5, 0, 3), (1, 0, 3))
    hero = CharacterController(world(sheet), (0, 0.1, 0), RADIUS, 0.0, step_offset=0, up=(0, 0, 1))
    assert hero.move((2, 0, 0), DT) & SIDES
    assert hero.hits[0].position == pytest.approx((1, 0, 0), abs=1e-9)


def test_the_top_edge_of_a_one_sheet_wall_is_never_hit_from_above():
    # RULES 2: motion and axis are both in its plane.
    hero = hero_in(world(wall_at(0.0, 0, 1)), x=0.0, z=3)
    assert hero.move((0, 0, -1.2), DT) == CollisionFlags.NONE
    assert hero.position[2] == pytest.approx(1.8)
    # The character lands on a wall of a finite thickness.
    hero = hero_in(world((Box((0.01, 5, 0.5)), (0, 0, 0.5))), x=0.0, z=3)
    assert hero.move((0, 0, -1.2), DT) == DOWN
    assert hero.position[2] == pytest.approx(1 + REST, abs=1e-6)


def test_triangles_behind_the_leading_sphere_are_ignored_up_and_down():
    # RULES 3: a triangle that is behind the leading sphere by more than radius + 2 mm is no overlap
    # of a motion along the axis: the character may rise out of a waist-high sheet.
    table = flat(5, 0.0)  # seen from above, the capsule pierces it
    hero = hero_in(world(table), z=0.45, overlap_recovery=True, step_offset=0)
    hero.move((0, 0, 0.2), DT)
    assert hero.stats.recoveries == 0
    assert hero.position[2] == pytest.approx(0.65)
    # A motion aside has no such rule: recovery resolves the overlap.
    hero = hero_in(world(table), z=0.45, step_offset=0)
    hero.move((0.2, 0, 0), DT)
    assert hero.stats.recoveries > 0
    assert hero.position[2] == pytest.approx(REST, abs=1e-9)


def test_two_sided_meshes_stop_from_both_sides():
    sheet = wall_at(1.0)
    both = Mesh(sheet.vertices, sheet.triangles, two_sided=True)
    for x, d in ((-1, 4), (3, -4)):
        hero = hero_in(world(both), x=x, step_offset=0)
        assert hero.move((d, 0, 0), DT) == SIDES
        side = math.copysign(1, d)
        assert hero.position[0] == pytest.approx(1 - side * (RADIUS + OFFSET), abs=1e-9)
        assert hero.hits[0].normal == pytest.approx((-side, 0, 0), abs=1e-9)


@pytest.mark.parametrize("flip", [False, True])
def test_two_sided_floors_and_slopes_have_a_normal_that_faces_the_character(flip):
    # RULES 2: normals turn against the motion before culling, slope and ceiling tests.
    def sided(mesh):
        t = np.array(mesh.triangles)
        return Mesh(mesh.vertices, t[:, ::-1] if flip else t, two_sided=True)

    hero = hero_in(world(sided(flat()), sided(slope(60, 1, 9))), climbing_mode="constrained")
    steps(hero, (0.05, 0, -0.02), 20)
    assert hero.flags & DOWN
    assert hero.ground.walkable and hero.ground.face_normal == pytest.approx((0, 0, 1))
    steps(hero, (0.05, 0, -0.05), 100)
    assert hero.position[2] <= REST + 0.5 + 1e-6


# --- numbers that stay sane


def test_positions_stay_finite_in_a_storm_of_triangles():
    rng = np.random.default_rng(11)
    v = rng.uniform(-4, 4, (600, 3))
    scene = world(Mesh(v, np.arange(600).reshape(-1, 3)))
    hero = hero_in(scene, non_walkable_mode="force_sliding", climbing_mode="constrained")
    for _ in range(600):
        hero.move(rng.normal(size=3) * rng.choice([1e-9, 1e-3, 0.1, 5]), DT)
        assert all(math.isfinite(x) for x in hero.position)
        if max(map(abs, hero.position)) > 6:
            hero.teleport(rng.uniform(-3, 3, 3))


def test_degenerate_triangles_touch_nothing():
    clean = flat()
    rng = np.random.default_rng(4)
    rows = []
    points = list(map(tuple, clean.vertices))
    for _ in range(50):
        p = rng.uniform(-2, 2, 3) * (1, 1, 0)
        k = len(points)
        points += [tuple(p), tuple(p + np.array((0.5, 0, 0))), tuple(p + np.array((1, 0, 0))), tuple(p)]
        rows += [(k, k + 1, k + 2), (k, k, k + 1), (k, k + 1, k + 3)]
    dirty = Mesh(points, [*clean.triangles.tolist(), *rows])
    assert dirty.n_degenerate == 150
    a, b = hero_in(world(clean), z=2), hero_in(world(dirty), z=2)
    for _ in range(100):
        d = (*rng.normal(size=2) * 0.1, -0.05)
        assert a.move(d, DT) == b.move(d, DT)
        assert a.position == b.position
