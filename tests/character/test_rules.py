"""RULES 9, row by row: where the documents and PhysX differ, and the right value for each.

Each row is one bit of `Rules`. A check receives an implementation (the compiled core, then the
reference) and the rules: none of the bits, and the bit of the row alone.
"""

import math

import numpy as np
import pytest
from small_worlds import DT, HALF, OFFSET, RADIUS, REST
from test_pitfalls import FLOOR, MODULES, Api, corners, slid, slope

import pycct
from pycct import Behavior, Rules, reference

STEEP = math.radians(60)
SIDES, UP, DOWN = 1, 2, 4


@pytest.fixture(params=[m.__name__ for m in MODULES])
def api(request):
    return Api(next(m for m in MODULES if m.__name__ == request.param))


def sliding_hero(api, rules, **more):
    """A character that slides down a slope of 60 degrees."""
    more = {"non_walkable_mode": "force_sliding", "rules": rules, **more}
    hero = api.hero(api.scene(slope(60, -20, 20)), z=20 * math.tan(STEEP) + 2, **more)
    for _ in range(12):
        hero.move((0, 0, -0.2), DT)
    assert hero.state.sliding
    return hero


def moved(hero, displacement):
    start = hero.position
    hero.move(displacement, DT)
    return np.subtract(hero.position, start)


def step_before_a_wall(api, rules, wall, **more):
    """A 0.2 m step at x = 0.45, a wall behind it; climbing constrained, step offset 0.5 m."""
    scene = api.scene(
        FLOOR, ("Box", (2, 5, 0.1), {"position": (2.45, 0, 0.1)}), ("Box", (1, 5, 5), {"position": (wall + 1, 0, 0)})
    )
    return api.hero(scene, climbing_mode="constrained", rules=rules, **more)


def test_the_presets():
    assert int(Rules.PHYSX) == 0 and int(Rules.DOCUMENT) == (1 << 13) - 1
    some = Rules.FORCE_SLIDE_HORIZONTAL | Rules.NORMALIZE_EXPERIMENT
    for name in ("physx", "document"):
        for m in MODULES:
            hero = Api(m).hero(Api(m).scene(FLOOR), rules=name)
            assert hero.rules == Rules[name.upper()]
            hero.rules = some
            assert hero.rules == some


def test_row_1_the_motion_of_the_experiment_with_force_sliding(api):
    # PhysX moves by the vertical component: down the slope, and not along it. In the documents the
    # horizontal component remains: along the slope only.
    down = (math.sin(STEEP) + 1) * 0.2
    d = moved(sliding_hero(api, Rules.PHYSX), (0, 0.1, -0.2))
    assert d == pytest.approx((-down * math.cos(STEEP), 0, -down * math.sin(STEEP)), abs=1e-9)
    hero = sliding_hero(api, Rules.PHYSX)
    hero.rules = Rules.FORCE_SLIDE_HORIZONTAL
    assert moved(hero, (0, 0.1, -0.2)) == pytest.approx((0, 0.1, 0), abs=1e-9)


def test_row_2_the_contact_that_the_sensor_decides_by(api):
    # Small moves approach the step, and the sensor meets the wall behind. The wall is too steep,
    # but the ground below the character is low. In the documents the sensor's contact, high up on
    # the wall, forbids the step.
    hero = step_before_a_wall(api, Rules.PHYSX, 0.8, x=-0.2)
    for _ in range(60):
        hero.move((0.02, 0, -0.02), DT)
    assert hero.position[0] == pytest.approx(0.8 - RADIUS - OFFSET, abs=1e-9)
    # The character's round bottom is on the edge of the step.
    assert hero.position[2] == pytest.approx(REST + 0.2, abs=0.02)
    hero = step_before_a_wall(api, Rules.SENSOR_DECIDES, 0.8, x=-0.2)
    for _ in range(60):
        hero.move((0.02, 0, -0.02), DT)
    assert hero.position[2] == pytest.approx(REST, abs=1e-9) and hero.position[0] < 0.2


def test_row_3_when_the_side_slope_is_checked(api):
    # One move climbs the step and meets the wall: right after the SIDE pass the last contact is the
    # wall's.
    hero = step_before_a_wall(api, Rules.PHYSX, 1.0)
    assert hero.move((0.9, 0, -0.02), DT) == SIDES | DOWN
    assert hero.position == pytest.approx((1 - RADIUS - OFFSET, 0, REST + 0.2), abs=1e-9)
    hero = step_before_a_wall(api, Rules.SIDE_CHECK_AT_ONCE, 1.0)
    assert hero.move((0.9, 0, -0.02), DT) == SIDES | DOWN
    assert hero.position[2] == pytest.approx(REST, abs=1e-9) and hero.position[0] < 0.45


def test_row_4_faces_that_look_down(api):
    # A block is a little higher than the step, and its front overhangs: too steep in the documents
    # only.
    front = corners((1.3, 5, 0), (1.3, -5, 0), (1.0, -5, 0.35), (1.0, 5, 0.35))
    top = corners((1.0, -5, 0.35), (9, -5, 0.35), (9, 5, 0.35), (1.0, 5, 0.35))
    for rules, height in ((Rules.PHYSX, 0.35), (Rules.STEEP_FACING_DOWN, 0.0)):
        scene = api.scene(FLOOR, front, top)
        hero = api.hero(scene, 0.3, climbing_mode="constrained", step_offset=0.3, rules=rules)
        for _ in range(80):
            hero.move((0.02, 0, -0.02), DT)
        assert hero.position[2] == pytest.approx(REST + height, abs=1e-6)


def test_row_5_single_corrections_or_their_sum(api):
    # The character is 0.19 m inside of two flush boxes alike.
    for rules, height in ((Rules.PHYSX, 0.0), (Rules.RECOVERY_SUM, 0.2)):
        scene = api.scene(("Box", (1, 5, 1), {"position": (-1, 0, -1)}), ("Box", (1, 5, 1), {"position": (1, 0, -1)}))
        hero = api.hero(scene, z=REST - 0.2, rules=rules)
        assert hero.move((0, 0, -0.1), DT) == DOWN
        assert hero.position == pytest.approx((0, 0, REST + height), abs=1e-9)


def test_row_6_unit_vectors_in_the_response(api):
    # In the recovery sweep only, or in the DOWN pass as well.
    assert slid(api, rules=Rules.PHYSX) == pytest.approx((math.sin(STEEP) + 1) * 0.2 * math.cos(STEEP), abs=1e-9)
    assert slid(api, rules=Rules.NORMALIZE_EXPERIMENT) == pytest.approx(2 * 0.2 * math.cos(STEEP), abs=1e-9)


def roof_in_the_air(api, rules, *below):
    """A character in the air beside a roof of 60 degrees, whose eaves are 0.5 m above the feet."""
    t = math.tan(STEEP)
    roof = corners((1.1, -9, 0.5), (3, -9, 0.5 + 1.9 * t), (3, 9, 0.5 + 1.9 * t), (1.1, 9, 0.5))
    return api.hero(api.scene(roof, *below), 0.3, z=HALF, rules=rules)


def test_row_7_the_step_in_the_experiments_way_down(api):
    # The step leads onto the roof, which is too steep; the rerun goes without it, below the eaves.
    # The rerun lowers by the displacement or, in the documents, by the step as well, which it never
    # climbed.
    eaves = 1.1 - RADIUS - OFFSET
    for rules, z in ((Rules.PHYSX, HALF - 0.01), (Rules.STEP_BACK_IN_EXPERIMENT, HALF - 0.51)):
        hero = roof_in_the_air(api, rules)
        assert hero.move((0.5, 0, -0.01), DT) == SIDES
        assert hero.position == pytest.approx((eaves, 0, z), abs=1e-9)


def test_row_8_faces_along_the_motion(api):
    # A motion along the face overlaps it from the side: recovery resolves it unless the face is
    # culled.
    wall = corners((1, 20, -5), (1, -20, -5), (1, -20, 5), (1, 20, 5))
    for rules, x in ((Rules.PHYSX, 1 - RADIUS - OFFSET), (Rules.CULL_PARALLEL, 1 - RADIUS + 0.1)):
        hero = api.hero(api.scene(wall), x=1 - RADIUS + 0.1, step_offset=0, rules=rules)
        hero.move((0, 0.1, 0), DT)
        assert hero.position[0] == pytest.approx(x, abs=1e-9)


def test_row_9_the_place_of_the_recovery_sweep(api):
    # In the documents it comes after the rerun, without the unit vectors that row 6 gives the
    # recovery sweep.
    assert slid(api, rules=Rules.RECOVERY_SWEEP_AFTER) == pytest.approx(
        2 * math.sin(STEEP) * 0.2 * math.cos(STEEP), abs=1e-9
    )


def test_row_9_the_condition_of_the_recovery_sweep(api):
    # In the documents the height of the steep face does not matter: here the ground of the
    # experiment is low.
    t = math.tan(STEEP)
    low = corners((0.5, -9, -0.5), (0.8, -9, -0.5 + 0.3 * t), (0.8, 9, -0.5 + 0.3 * t), (0.5, 9, -0.5))
    for rules in (Rules.PHYSX, Rules.RECOVERY_SWEEP_AFTER):
        hero = roof_in_the_air(api, rules, low)
        hero.move((0.5, 0, -0.3), DT)
        assert hero.ground.actor is hero.scene.actors[1] and hero.ground.face_normal[2] == pytest.approx(0.5)
        # PhysX calls it an UP pass.
        again = [h for h in hero.hits if h.pass_.name == "UP" and h.direction[2] < 0]
        assert bool(again) == (rules == Rules.RECOVERY_SWEEP_AFTER)


def test_row_10_where_the_jump_widens_the_volume(api):
    # No result depends on the volume (RULES 4); the number of lookups does.
    if api.module is not pycct or pycct.CharacterController is reference.CharacterController:
        pytest.skip("the reference looks everything up anew in each move")
    for rules, down, up in ((Rules.PHYSX, 0, 1), (Rules.JUMP_VOLUME_UP, 1, 0)):
        for way, looked_up in ((-7.0, down), (7.0, up)):
            hero = api.hero(api.scene(FLOOR), z=50, max_jump_height=8.0, step_offset=0, rules=rules)
            hero.move((0, 0, way / 400), DT)
            assert hero.stats.full_updates == 1
            hero.move((0, 0, way), DT)
            assert hero.stats.full_updates == looked_up
            assert hero.position[2] == pytest.approx(50 + way * 1.0025)


def test_row_11_riding_whole_or_split(api):
    # The ground allows no ride: it carries down, not aside. In the documents it carries all the
    # way, through walls too.
    for rules, x in ((Rules.PHYSX, 0.0), (Rules.RIDE_WHOLE, 0.2)):
        scene = api.scene(("Box", (3, 3, 0.5), {"position": (0, 0, -0.5), "body": "kinematic"}))
        lift = scene.actors[0]
        hero = api.hero(scene, rules=rules)
        hero.move((0, 0, -0.1), DT)
        lift.move_to((0.2, 0, -0.6))
        hero.move((0, 0, -0.01), DT)
        assert hero.position == pytest.approx((x, 0, REST - 0.1), abs=1e-9)
        assert hero.state.platform_delta == pytest.approx((x, 0, -0.1), abs=1e-9)


@pytest.mark.parametrize("kind", ["obstacle", "controller"])
def test_row_12_overlapping_obstacles_and_characters(api, kind):
    for rules in (Rules.PHYSX, Rules.RECOVER_USER_GEOMETRY):
        scene = api.module.Scene()
        if kind == "obstacle":
            # Without a ride, the ray does not lift the character out (RULES_2 6).
            ride = Behavior.USER_DEFINED_RIDE
            scene.add_obstacle(api.module.Box((5, 5, 1)), position=(0, 0, -1), behavior=ride)
            right = REST
        else:
            other = api.hero(scene, z=0.4 - 2 * HALF, collide=True)
            right = other.position[2] + 2 * HALF + OFFSET
        hero = api.hero(scene, z=REST - 0.2 if kind == "obstacle" else 0.2, collide=True, rules=rules)
        start = hero.position[2]
        flags = hero.move((0, 0, -0.1), DT)
        if rules == Rules.PHYSX:
            assert flags == 0 and hero.position[2] == start - 0.1
        else:
            assert flags == DOWN and hero.position[2] == pytest.approx(right, abs=1e-9)


def test_row_13_flags_of_passes_that_never_moved(api):
    # In the documents a collision alone sets a flag, and PhysX needs motion too. The two cannot
    # differ here: a collision counts only after a motion has started, so the bit never changes a
    # result.
    rng = np.random.default_rng(8)
    scene = api.scene(
        FLOOR,
        slope(50, 1, 6),
        ("Box", (1, 1, 0.3), {"position": (-2, 0, 0.2)}),
        ("Sphere", 0.8, {"position": (0, 2, 0.3)}),
        ("Box", (9, 9, 1), {"position": (0, 0, 3.5)}),
    )
    one = api.hero(scene, rules=Rules.PHYSX, climbing_mode="constrained")
    two = api.hero(scene, rules=Rules.FLAGS_BY_COLLISION, climbing_mode="constrained")
    met = set()
    for _ in range(250):
        d = rng.normal(size=3) * rng.choice([1e-8, 0.01, 0.2, 1.0]) - (0, 0, 0.03)
        least = float(rng.choice([0.0, 0.02]))
        flags = one.move(d, DT, min_distance=least)
        assert two.move(d, DT, min_distance=least) == flags and one.position == two.position
        met.add(int(flags))
        if max(abs(c) for c in one.position) > 4:
            one.teleport((0, 0, 1.2))
            two.teleport((0, 0, 1.2))
    assert {0, 1, 4, 5} <= met
