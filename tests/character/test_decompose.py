"""A displacement becomes three passes: MOVE 4.2-4.3 and 6.2-6.3 with RULES 6."""

import math

import numpy as np
import pytest

import pycct
from pycct import Box, CharacterController, CollisionFlags, Mesh, Pass, Plane, Scene, Sphere, decompose_movement

STEP = 0.5


def split(displacement, **more):
    return decompose_movement(displacement, (0, 0, 1), STEP, **more)


# --- MOVE 4.3, row by row


def test_row_moving_forward_on_ground():
    d = split((3, 4, -0.25))
    assert d == {
        "up_vector": (0, 0, STEP),
        "side_vector": (3, 4, 0),
        "down_vector": (0, 0, -0.25),
        "step_offset": STEP,
        "is_moving_up": False,
        "has_side_movement": True,
    }


def test_row_jumping_cancels_the_step():
    d = split((3, 4, 0.25))
    assert d == {
        "up_vector": (0, 0, 0.25),
        "side_vector": (3, 4, 0),
        "down_vector": (0, 0, 0),
        "step_offset": 0,
        "is_moving_up": True,
        "has_side_movement": True,
    }


def test_row_falling_keeps_the_step():
    # The table's row 'Falling' prints an up vector of 0. 4.2.7 gives a falling character that moves
    # aside its step, as when walking, and PhysX does the same.
    assert split((0.1, 0, -9)) == {
        "up_vector": (0, 0, STEP),
        "side_vector": (0.1, 0, 0),
        "down_vector": (0, 0, -9),
        "step_offset": STEP,
        "is_moving_up": False,
        "has_side_movement": True,
    }
    # A motion straight down has no lift.
    assert split((0, 0, -9))["up_vector"] == (0, 0, 0)


def test_row_standing_still_is_not_lifted_but_its_step_stays():
    d = split((0, 0, -0.25))
    assert d == {
        "up_vector": (0, 0, 0),
        "side_vector": (0, 0, 0),
        "down_vector": (0, 0, -0.25),
        "step_offset": STEP,
        "is_moving_up": False,
        "has_side_movement": False,
    }


def test_row_on_moving_platform_is_lifted_even_without_side_motion():
    d = split((0, 0, -0.25), standing_on_moving=True)
    assert d["has_side_movement"] is True
    assert d["up_vector"] == (0, 0, STEP)
    assert d["down_vector"] == (0, 0, -0.25)
    assert d["step_offset"] == STEP
    # A jump from the platform keeps the step too (MOVE 4.2.6).
    d = split((0, 0, 0.25), standing_on_moving=True)
    assert d["up_vector"] == (0, 0, 0.25 + STEP)
    assert d["step_offset"] == STEP
    assert d["is_moving_up"] is True


# --- the thresholds


def test_side_is_zero_by_component_not_by_length():
    # RULES 6: a vector is zero when every component is at most 1e-6.
    assert not split((1e-6, 1e-6, 0))["has_side_movement"]
    assert split((1.01e-6, 0, 0))["has_side_movement"]
    assert split((0, -1.01e-6, 0))["has_side_movement"]
    assert not split((-1e-6, 0, 0))["has_side_movement"]


def test_the_side_vector_itself_is_never_dropped():
    assert split((1e-7, 0, 0))["side_vector"] == (1e-7, 0, 0)


def test_level_motion_is_not_moving_up():
    d = split((1, 0, 0))
    assert d["is_moving_up"] is False
    assert d["down_vector"] == (0, 0, 0)
    assert d["step_offset"] == STEP


def test_a_displacement_of_zero_has_no_passes():
    d = split((0, 0, 0))
    assert d["up_vector"] == d["side_vector"] == d["down_vector"] == (0, 0, 0)
    assert d["has_side_movement"] is False


@pytest.mark.parametrize("seed", range(20))
def test_components_add_up_for_any_up(seed):
    rng = np.random.default_rng(seed)
    up = rng.normal(size=3)
    displacement = rng.normal(size=3)
    d = decompose_movement(displacement, 7 * up, STEP)
    unit = up / np.linalg.norm(up)
    lift = d["step_offset"] if d["has_side_movement"] else 0
    total = np.array(d["up_vector"]) + d["side_vector"] + d["down_vector"] - lift * unit
    np.testing.assert_allclose(total, displacement, atol=1e-14)
    assert abs(np.dot(d["side_vector"], unit)) < 1e-14
    for part in ("up_vector", "down_vector"):
        np.testing.assert_allclose(np.cross(d[part], unit), 0, atol=1e-14)
    assert np.dot(d["up_vector"], unit) >= 0 >= np.dot(d["down_vector"], unit)


@pytest.mark.parametrize(
    ("arguments", "error", "names"),
    [
        (((1, 2),), ValueError, "displacement"),
        (((1, 2, math.nan),), ValueError, "displacement"),
        (("abc",), TypeError, "displacement"),
        (((1, 0, 0), (0, 0, 0)), ValueError, "up"),
        (((1, 0, 0), (0, 0, math.inf)), ValueError, "up"),
        (((1, 0, 0), (0, 0, 1), -0.1), ValueError, "step_offset"),
        (((1, 0, 0), (0, 0, 1), None), TypeError, "step_offset"),
        (((1, 0, 0), (0, 0, 1), 0.5, 1), TypeError, "standing_on_moving"),
    ],
)
def test_bad_arguments(arguments, error, names):
    with pytest.raises(error, match=names):
        decompose_movement(*arguments)


# --- MOVE 6.3, row by row: vectors, iterations, what is remembered


def box_at(scene, x, y, z, half):
    return scene.add(Box(half), position=(x, y, z))


def floor():
    scene = Scene()
    scene.add(Plane((0, 0, 1), 0))
    return scene


def hero_on(scene, x=0.0, **more):
    more.setdefault("radius", 0.4)
    more.setdefault("height", 1.0)
    hero = CharacterController(scene, **more)
    hero.foot_position = (x, 0, 0)
    return hero


def passes(hero):
    return [h.pass_ for h in hero.hits]


def test_up_pass_lifts_by_the_step_and_down_takes_it_back():
    hero = hero_on(floor())
    z = hero.position[2]
    flags = hero.move((1, 0, -0.1), 1 / 60)
    assert flags == CollisionFlags.DOWN
    assert passes(hero) == [Pass.DOWN]
    assert hero.position == pytest.approx((1, 0, z), abs=1e-9)
    # The DOWN pass covers the lift and the displacement.
    assert hero.hits[0].length == pytest.approx(0.5 + 0.1)


def test_up_pass_lifts_for_the_step_only_with_side_motion():
    scene = floor()
    box_at(scene, 0, 0, 2.1, (5, 5, 0.1))  # a ceiling 0.2 above the head
    hero = hero_on(scene)
    hero.move((0, 0, -0.1), 1 / 60)
    assert Pass.UP not in passes(hero)
    hero.move((0.1, 0, -0.1), 1 / 60)
    assert passes(hero)[0] is Pass.UP


def test_up_pass_goes_once_with_side_motion_and_slides_without():
    # A slanted ceiling deflects the motion to the left, against a wall: two collisions.
    def rise(displacement, **more):
        scene = Scene()
        scene.add(Plane((-0.6, 0, -0.8), -1.6))
        scene.add(Plane((1, 0, 0), -1.0))
        hero = CharacterController(scene, (0, 0, 0), step_offset=0, **more)
        assert hero.move(displacement, 1 / 60) & CollisionFlags.UP
        return hero, passes(hero).count(Pass.UP)

    hero, count = rise((0, 0, 5))
    assert 1 < count <= 10
    assert -0.6 <= hero.position[0] <= -0.59 + 1e-9
    _, count = rise((0.001, 0, 5))
    assert count == 1
    hero, count = rise((0, 0, 5), prevent_vertical_sliding=True)
    assert count == 1
    assert hero.position[0] == 0


def test_up_pass_collision_shortens_the_step():
    # A low ceiling shortens the lift to 0.1 m, so a step of 0.3 m cannot be climbed, and the DOWN
    # pass takes back 0.1 m, not 0.5 m.
    scene = floor()
    box_at(scene, 0, 0, 0.01 + 1.8 + 0.11 + 0.5, (9, 9, 0.5))
    hero = hero_on(scene)
    z = hero.position[2]
    flags = hero.move((0.1, 0, 0), 1 / 60)
    assert flags & CollisionFlags.UP
    assert hero.position == pytest.approx((0.1, 0, z), abs=1e-9)


def test_a_jump_is_not_lifted_by_the_step_nor_pulled_back():
    hero = hero_on(Scene())
    x, y, z = hero.position
    hero.move((0.1, 0, 0.2), 1 / 60)
    assert hero.position == pytest.approx((x + 0.1, y, z + 0.2), abs=1e-12)
    assert hero.state.moving_up


def test_side_pass_slides_up_to_ten_times():
    # A corner made of many planes deflects the side pass many times.
    scene = floor()
    for angle in np.linspace(2.2, 4.1, 12):
        scene.add(Plane((math.cos(angle), math.sin(angle), 0), -1.0))
    hero = hero_on(scene, step_offset=0)
    hero.move((20, 3, 0), 1 / 60)
    sides = passes(hero).count(Pass.SIDE)
    assert 2 <= sides <= 10
    assert hero.flags & CollisionFlags.SIDES


def test_down_pass_goes_once():
    # A ball below, off centre: an ordinary DOWN pass stops at it and does not slide on.
    scene = Scene()
    scene.add(Sphere(1.0), position=(0.5, 0, 0))
    hero = CharacterController(scene, (0, 0, 4), step_offset=0)
    flags = hero.move((0, 0, -9), 1 / 60)
    assert flags == CollisionFlags.DOWN
    assert passes(hero) == [Pass.DOWN]
    assert hero.position[0] == 0


def ramp(degrees):
    """A wide slope that rises along +x from the origin to x = 20."""
    s = math.tan(math.radians(degrees))
    return Mesh([(-20, -20, -20 * s), (20, -20, 20 * s), (20, 20, 20 * s), (-20, 20, -20 * s)], [(0, 1, 2), (0, 2, 3)])


def test_down_pass_slides_ten_times_only_in_the_walk_experiment_with_force_sliding():
    def fall(mode):
        scene = Scene()
        scene.add(ramp(60))
        hero = CharacterController(scene, (0, 0, 3), non_walkable_mode=mode, step_offset=0.1)
        for _ in range(4):
            hero.move((0, 0, -1), 1 / 60)
        return hero

    still, slides = fall("prevent_climbing"), fall("force_sliding")
    assert slides.state.sliding and still.state.sliding
    assert passes(slides).count(Pass.DOWN) > 1
    assert slides.position[0] < -0.2
    assert slides.position[2] < still.position[2]


def test_down_pass_remembers_what_it_stands_on():
    scene = floor()
    hero = hero_on(scene)
    hero.move((0.1, 0, -0.1), 1 / 60)
    assert hero.state.standing_on is scene.actors[0]
    hero.move((0, 0, 1), 1 / 60)
    # The UP and SIDE passes remember nothing, and a DOWN pass clears the memory at its start (RULES
    # 5).
    assert hero.state.standing_on is None


def test_up_and_side_passes_remember_nothing():
    scene = Scene()
    wall = box_at(scene, 2, 0, 0, (1, 5, 5))
    hero = CharacterController(scene, (0, 0, 0))
    hero.move((1, 0, 0.5), 1 / 60)
    assert hero.hits[0].actor is wall
    assert hero.state.standing_on is None


def test_a_rising_character_never_gets_the_down_flag():
    # A step onto a ledge while rising touches it from above; the flag stays off (MOVE 6.2.6).
    scene = floor()
    hero = hero_on(scene)
    assert not hero.move((0.1, 0, 0.001), 1 / 60) & CollisionFlags.DOWN


def test_a_flag_needs_motion_and_collision():
    # RULES 9 row 13: a pass without motion raises no flag, even if it touches something.
    scene = floor()
    hero = hero_on(scene)
    assert hero.move((0, 0, 0), 1 / 60) == CollisionFlags.NONE
    assert hero.move((0, 0, -0.01), 1 / 60, min_distance=0.02) == CollisionFlags.NONE
    assert hero.move((0, 0, -0.03), 1 / 60, min_distance=0.02) == CollisionFlags.DOWN


def test_tiny_moves_add_up():
    # min_distance is 0 by default, so a slow character moves (RULES 1).
    hero = hero_on(floor())
    for _ in range(1000):
        hero.move((1e-5, 0, -1e-5), 1 / 60)
    assert hero.position[0] == pytest.approx(0.01, abs=1e-9)


def test_an_upward_component_of_rounding_is_no_jump():
    assert pycct.decompose_movement((1, 0, 0))["is_moving_up"] is False
    assert pycct.decompose_movement((1, 0, 5e-324))["is_moving_up"] is True
