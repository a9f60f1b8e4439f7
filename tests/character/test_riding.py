"""Characters on moving ground that carries them: RULES 7, MOVE 13."""

import math

import pytest
from small_worlds import DT, HALF, OFFSET, RADIUS, REST, about_y, about_z, flat, hero_in, near, steps, world

from pycct import Behavior, Box, Capsule, CharacterController, CollisionFlags, Scene, Sphere

RIDE, SLIDE, OWN = Behavior.CAN_RIDE, Behavior.CAN_SLIDE, Behavior.USER_DEFINED_RIDE
DOWN = CollisionFlags.DOWN
GRAVITY = (0.0, 0.0, -0.02)


def platform(scene, position=(0, 0, -0.5), half=(2, 2, 0.5), kind="kinematic", behavior=RIDE, **more):
    """A box that moves; its top is at z = 0 by default."""
    if kind == "obstacle":
        return scene.add_obstacle(Box(half), position=position, behavior=behavior, **more)
    return scene.add(Box(half), position=position, body=kind, behavior=behavior, **more)


def standing(kind="kinematic", x=0.0, y=0.0, behavior=RIDE, half=(2, 2, 0.5), **more):
    """A hero that has settled on a platform."""
    scene = Scene()
    lift = platform(scene, half=half, kind=kind, behavior=behavior)
    hero = hero_in(scene, x, y, **more)
    assert hero.move(GRAVITY, DT) == DOWN
    assert hero.state.standing_on is lift
    return scene, lift, hero


MOVERS = ["kinematic", "dynamic", "obstacle"]


# --- lifts


@pytest.mark.parametrize("kind", MOVERS)
@pytest.mark.parametrize("asked", [(0, 0, -1e-4), GRAVITY, (0.01, 0, -0.02)])
def test_a_lift_up_down_and_reversing(kind, asked):
    _, lift, hero = standing(kind)
    before = 0.0
    for k in range(1, 160):
        z = 0.9 * math.sin(k / 11)
        lift.move_to((0, 0, z - 0.5))
        flags = hero.move(asked, DT)
        assert flags & DOWN or z > before, (k, flags)
        # The gap stays at the contact offset: the character neither sinks in nor floats.
        assert hero.position == pytest.approx((asked[0] * k, 0, z + REST), abs=1e-9)
        assert hero.grounded and hero.state.standing_on is lift
        assert hero.state.platform_delta == pytest.approx((0, 0, z - before), abs=1e-9)
        before = z


@pytest.mark.parametrize("kind", MOVERS)
def test_up_at_once_and_down_as_part_of_the_motion(kind):
    # RULES 7.3: a lift carries up even under a low ceiling, and carries down as far as nothing
    # blocks.
    scene, lift, hero = standing(kind)
    stop = scene.add(Box((0.2, 5, 0.1)), position=(0.3, 0, -0.5))
    lift.move_to((0, 0, -1.5))
    hero.move((0, 0, 0), DT)
    # The beam below stops the round bottom, and the lift moves on.
    assert -0.4 + HALF - RADIUS < hero.position[2] < REST
    assert hero.state.standing_on is stop


def test_a_lift_that_runs_into_a_ceiling_shows_as_an_overlap():
    scene, lift, hero = standing()
    scene.add(Box((3, 3, 0.5)), position=(0, 0, 2 * HALF + 0.1 + 0.5))
    for k in range(1, 30):
        lift.move_to((0, 0, -0.5 + 0.02 * k))
        hero.move(GRAVITY, DT)
        assert all(math.isfinite(c) for c in hero.position)
    assert hero.state.overlap > 0.2
    assert abs(hero.position[0]) < 1 and abs(hero.position[1]) < 1


@pytest.mark.parametrize("per_move", [0.3, 1.0, 5.0])
def test_fast_lifts(per_move):
    scene = Scene()
    lift = platform(scene, (0, 0, -5.0), half=(2, 2, 5.0))
    hero = hero_in(scene)
    hero.move(GRAVITY, DT)
    for k in [1, 2, 3, 2, 1, 0]:
        lift.move_to((0, 0, -5 + k * per_move))
        hero.move(GRAVITY, DT)
        assert hero.position == pytest.approx((0, 0, k * per_move + REST), abs=1e-9)


# --- translation and rotation


@pytest.mark.parametrize("kind", MOVERS)
@pytest.mark.parametrize("asked", [(0, 0, -1e-4), GRAVITY])
def test_carried_aside_and_round_corners(kind, asked):
    _, lift, hero = standing(kind, 0.5, -0.3)
    for k in range(1, 200):
        place = (3 * math.sin(k / 20), 2 * math.sin(k / 13), 0.5 * math.sin(k / 17))
        lift.move_to((place[0], place[1], place[2] - 0.5))
        hero.move(asked, DT)
        assert hero.position == pytest.approx((0.5 + place[0], -0.3 + place[1], place[2] + REST), abs=1e-9)


@pytest.mark.parametrize("kind", MOVERS)
@pytest.mark.parametrize(("turns", "x", "up"), [(360, 2.0, 0.0), (90, 1.0, 0.3), (40, 3.0, -0.2), (-120, 2.5, 0.0)])
def test_keeps_its_place_on_a_turntable(kind, turns, x, up):
    # After a full turn, the distance to the axis is within 1 cm; only rounding is lost.
    _, table, hero = standing(kind, x, 0.0, half=(5, 5, 0.5))
    for k in range(1, abs(turns) + 1):
        angle = 2 * math.pi * k / turns
        table.move_to((0, 0, up * k / abs(turns) - 0.5), about_z(angle))
        assert hero.move(GRAVITY, DT) & DOWN
        assert math.hypot(*hero.position[:2]) == pytest.approx(x, abs=1e-6)
    assert hero.position == pytest.approx((x, 0, up + REST), abs=1e-6)


def test_the_place_on_a_turntable_for_another_up():
    scene = Scene()
    table = scene.add(Box((5, 0.5, 5)), position=(0, -0.5, 0), body="kinematic", behavior=RIDE)
    hero = CharacterController(scene, (2, REST, 0), RADIUS, 1.0, up=(0, 1, 0))
    hero.move((0, -0.1, 0), DT)
    for k in range(1, 61):
        a = math.pi * k / 60
        table.move_to((0, -0.5, 0), (0, math.sin(a), 0, math.cos(a)))
        hero.move((0, -0.01, 0), DT)
    assert hero.position == pytest.approx((2, REST, 0), abs=1e-6)


@pytest.mark.parametrize("kind", MOVERS)
def test_a_plank_that_tilts_carries_by_the_remembered_point(kind):
    # MOVE 13: the contact point in the platform's frame decides, not the platform's centre.
    _, plank, hero = standing(kind, 1.5, 0.0, half=(3, 3, 0.5))
    for k in range(1, 21):
        plank.move_to((0, 0, -0.5), about_y(-math.radians(k)))
        hero.move(GRAVITY, DT)
    # Turned about y, the side with x > 0 rises.
    assert hero.position[2] > REST + 0.3
    assert hero.grounded and hero.state.standing_on is plank


def test_walking_on_a_moving_platform_adds_up():
    _, train, hero = standing(half=(20, 2, 0.5))
    for k in range(1, 60):
        train.move_to((0.2 * k, 0, -0.5))
        hero.move((-0.05, 0.01, -0.02), DT)
        assert hero.position == pytest.approx((0.15 * k, 0.01 * k, REST), abs=1e-9)
    assert hero.velocity == pytest.approx((0.15 / DT, 0.01 / DT, 0), abs=1e-6)


def test_a_wall_stops_the_rider_not_the_platform():
    scene, train, hero = standing(half=(20, 2, 0.5))
    scene.add(Box((0.5, 5, 5)), position=(2.5, 0, 0))
    for k in range(1, 60):
        train.move_to((0.1 * k, 0, -0.5))
        hero.move(GRAVITY, DT)
    # The lifted character leans over no edge: the wall is upright.
    assert hero.position == pytest.approx((2 - RADIUS - OFFSET, 0, REST), abs=1e-9)


def test_a_jump_from_a_lift_leaves_it_and_keeps_no_memory():
    _, lift, hero = standing()
    hero.move((0, 0, 1.5), DT)
    assert hero.state.standing_on is None
    lift.move_to((0.5, 0, -0.5))
    hero.move((0, 0, 0), DT)
    assert hero.position == pytest.approx((0, 0, REST + 1.5), abs=1e-12)


def test_a_jump_from_a_moving_lift_keeps_its_step():
    # RULES 6: an upward motion cancels the step unless the ground moves.
    for moving in (False, True):
        scene, lift, hero = standing()
        scene.add(Box((0.5, 2, 0.1)), position=(1.0, 0, 0.1))
        if moving:
            lift.move_to((0, 0, -0.49))
        hero.move((0.4, 0, 0.001), DT)
        if moving:
            assert hero.position[0] == pytest.approx(0.4, abs=1e-9)
        else:
            assert hero.position[0] < 0.35


# --- who carries whom


@pytest.mark.parametrize("kind", MOVERS)
@pytest.mark.parametrize("by", ["flags", "callback"])
@pytest.mark.parametrize(
    ("allowed", "aside", "down"),
    [(Behavior.NONE, 0.0, -0.3), (RIDE, 0.2, -0.3), (OWN, 0.0, 0.0), (RIDE | OWN, 0.0, 0.0), (SLIDE, 0.0, -0.3)],
)
def test_the_behavior_of_the_ground_decides(kind, by, allowed, aside, down):
    # RULES 7.3: always down, aside with CAN_RIDE, never with USER_DEFINED_RIDE.
    if by == "flags":
        _, lift, hero = standing(kind, behavior=allowed)
    else:
        # The callback's answer replaces the flags of the actor.
        _, lift, hero = standing(kind, behavior=RIDE if not allowed & RIDE else OWN, x=0.0)
        hero.behavior = lambda other: allowed
    lift.move_to((0.2, 0, -0.8))
    hero.move((0, 0, 0), DT)
    assert hero.position == pytest.approx((aside, 0, REST + down), abs=1e-9)
    delta = hero.state.platform_delta
    assert delta == pytest.approx((aside, 0, down), abs=1e-9)


def test_obstacles_carry_aside_by_default_and_shapes_do_not():
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.5)), position=(0, 0, -0.5), body="kinematic")
    post = scene.add_obstacle(Box((2, 2, 0.5)), position=(10, 0, -0.5))
    for actor, x, carried in ((lift, 0.0, 0.0), (post, 10.0, 0.3)):
        hero = hero_in(scene, x)
        hero.move(GRAVITY, DT)
        actor.move_to((x + 0.3, 0, -0.5))
        hero.move(GRAVITY, DT)
        assert hero.position[0] == pytest.approx(x + carried, abs=1e-9)


def test_behavior_may_change_while_it_stands_there():
    _, lift, hero = standing(behavior=0)
    for k, (flags, carried) in enumerate([(0, 0.0), (RIDE, 0.1), (0, 0.1), (OWN, 0.1), (RIDE, 0.2)]):
        lift.behavior = flags
        lift.move_to((0.1 * (k + 1), 0, -0.5))
        hero.move(GRAVITY, DT)
        assert hero.position[0] == pytest.approx(carried, abs=1e-9)


@pytest.mark.parametrize("allowed", [Behavior.NONE, SLIDE])
@pytest.mark.parametrize("by", ["flags", "callback"])
@pytest.mark.parametrize("kind", ["static", "kinematic", "dynamic", "obstacle"])
def test_sliding_on_the_ground(kind, by, allowed):
    # RULES 5: without CAN_SLIDE the DOWN pass ends at the contact.
    scene = Scene()
    flags = allowed if by == "flags" else Behavior.NONE
    if kind == "obstacle":
        scene.add_obstacle(Capsule(1.0, 2.0), position=(0, 0, -2), behavior=flags)
    else:
        scene.add(Sphere(1.0), position=(0, 0, -1), body=kind, behavior=flags)
    hero = hero_in(scene, 0.3, 0.0, 1.5, behavior=(lambda other: allowed) if by == "callback" else None)
    steps(hero, (0, 0, -0.2), 60)
    if allowed:
        assert hero.position[0] > RADIUS + 1.0 and hero.position[2] < -1
    else:
        assert hero.position[0] == 0.3 and hero.grounded


def test_sliding_grants_nine_more_iterations_once():
    # MOVE 7.2.3k: on a long smooth slope each collision takes one iteration.
    scene = world(flat())
    hero = hero_in(scene, behavior=lambda other: SLIDE)
    hero.move((0, 0, -0.5), DT)
    # The second move has no motion left.
    assert hero.stats.iterations <= 2
    hero.behavior = None
    hero.move((0, 0, -0.5), DT)
    assert hero.stats.iterations == 1


# --- The ground is gone


def drop_platform(scene, lift, hero, how):
    if how == "removed":
        scene.remove(lift)
    elif how == "filtered":
        hero.filter = lambda other: other is not lift
    elif how == "layer":
        lift.layer = 2
    elif how == "mask":
        hero.mask = 2


@pytest.mark.parametrize("kind", ["static", *MOVERS])
@pytest.mark.parametrize("how", ["removed", "filtered", "layer", "mask"])
def test_falls_in_the_next_move_after_the_ground_is_gone(kind, how):
    scene, lift, hero = standing(kind, mask=1)
    hero.move(GRAVITY, DT)
    if kind != "static":
        lift.move_to((0.4, 0, -0.4))
    drop_platform(scene, lift, hero, how)
    assert hero.move((0, 0, -0.3), DT) == CollisionFlags.NONE
    assert hero.position == pytest.approx((0, 0, REST - 0.3), abs=1e-12)
    assert not hero.grounded and hero.state.standing_on is None
    assert hero.state.platform_delta == (0, 0, 0)


@pytest.mark.parametrize("how", ["mask", "filter"])
def test_falls_when_one_move_leaves_the_ground_out(how):
    _, lift, hero = standing()
    lift.move_to((0.4, 0, -0.5))
    more = {"mask": 2} if how == "mask" else {"filter": lambda other: False}
    hero.move((0, 0, -0.3), DT, **more)
    assert hero.position == pytest.approx((0, 0, REST - 0.3), abs=1e-12)
    # The next move meets the platform again: the ray lifts the character out (RULES_2 6).
    hero.move(GRAVITY, DT)
    assert hero.state.platform_delta[2] > 0.2 and hero.position[2] == pytest.approx(REST, abs=1e-9)


@pytest.mark.parametrize("kind", ["static", *MOVERS])
@pytest.mark.parametrize("callback", ["on_hit", "filter", "behavior"])
def test_falls_in_the_next_move_when_a_callback_removes_the_ground(kind, callback):
    # A move keeps the snapshot of its start.
    scene, lift, hero = standing(kind)
    left = []

    def take_away(what):
        if not left:
            left.append(what)
            scene.remove(lift)
        return True

    setattr(hero, callback, take_away)
    assert hero.move(GRAVITY, DT) == DOWN
    assert left and hero.position[2] == pytest.approx(REST, abs=1e-9)
    assert hero.move(GRAVITY, DT) == CollisionFlags.NONE
    assert hero.position[2] == pytest.approx(REST - 0.02, abs=1e-12)


def test_a_platform_that_comes_back_is_met_again():
    scene, lift, hero = standing()
    scene.remove(lift)
    steps(hero, (0, 0, -0.1), 3)
    again = platform(scene, (0, 0, -1.5))
    steps(hero, (0, 0, -0.2), 10)
    assert hero.state.standing_on is again and again.id != lift.id
    again.move_to((0.3, 0, -1.5))
    hero.move(GRAVITY, DT)
    assert hero.position == pytest.approx((0.3, 0, REST - 1), abs=1e-9)


# --- Contacts that do not carry


@pytest.mark.parametrize("kind", MOVERS)
def test_a_wall_that_is_merely_brushed_drags_nobody_along(kind):
    scene = world(flat())
    wall = platform(scene, (1.5, 0, 2), half=(0.5, 30, 2), kind=kind)
    hero = hero_in(scene)
    for _ in range(30):
        hero.move((0.05, 0, -0.02), DT)
    assert hero.hit_sides and hero.position[0] == pytest.approx(1 - RADIUS - OFFSET, abs=1e-9)
    for k in range(1, 20):
        wall.move_to((1.5 + 0.02 * k, 0.1 * k, 2 + 0.05 * k))
        hero.move((0.01, 0, -0.02), DT)
    assert hero.position[1:] == pytest.approx((0, REST), abs=1e-9)


def test_a_wall_brushed_in_the_air_drags_nobody_along():
    scene = Scene()
    wall = platform(scene, (1.5, 0, 0), half=(0.5, 30, 30))
    hero = hero_in(scene, z=5)
    for k in range(1, 40):
        wall.move_to((1.5, 0.1 * k, 0.1 * k))
        hero.move((0.05, 0, -0.01), DT)
    assert hero.hit_sides
    assert hero.position[1] == 0.0
    assert hero.position[2] == pytest.approx(5 - 0.39, abs=1e-9)
    assert hero.state.standing_on is None


@pytest.mark.parametrize("behavior", [Behavior.NONE, RIDE])
def test_static_actors_that_move_carry_nobody(behavior):
    # RULES 7.2.
    _, block, hero = standing("static", behavior=behavior)
    block.move_to((0.3, 0, -0.5))
    hero.move(GRAVITY, DT)
    assert hero.position == pytest.approx((0, 0, REST), abs=1e-9)
    block.move_to((0.3, 0, -0.9))
    hero.move((0, 0, 0), DT)
    assert hero.position[2] == pytest.approx(REST, abs=1e-9)
    assert hero.state.platform_delta == (0, 0, 0)


def test_static_actors_under_a_character_behind_the_ray_carry_nobody_either():
    # RULES 7.2 casts its ray against moving actors only.
    scene = Scene()
    block = scene.add(Box((2, 2, 0.5)), position=(0, 0, -0.5), behavior=RIDE)
    hero = hero_in(scene, z=REST - 0.1)
    block.move_to((1.0, 0, -0.6))
    hero.move((0, 0, 0), DT)
    assert hero.position == (0, 0, REST - 0.1)


def test_another_character_carries_nobody():
    # RULES 7.2 covers shapes and obstacles only; a head that moves away leaves the upper character
    # behind.
    scene = world(flat())
    lower = hero_in(scene, collide=True, surface=RIDE)
    upper = hero_in(scene, z=REST + 2 * HALF + OFFSET, collide=True)
    upper.move(GRAVITY, DT)
    assert upper.state.on_controller and upper.state.standing_on is lower
    lower.move((0.1, 0, 0), DT)
    upper.move((0, 0, -1e-3), DT)
    assert upper.position[0] == 0.0


# --- remembering


@pytest.mark.parametrize("kind", MOVERS)
def test_a_move_of_zero_forgets_nothing(kind):
    # RULES 5: a direction that is exactly zero clears nothing.
    _, lift, hero = standing(kind)
    for _ in range(5):
        assert hero.move((0, 0, 0), DT) == CollisionFlags.NONE
        assert hero.state.standing_on is lift
        # The move keeps its ground, too: the last move ended there.
        assert hero.grounded and hero.ground.point == pytest.approx((0, 0, 0), abs=1e-9)
    lift.move_to((0.2, 0.1, -0.3))
    hero.move((0, 0, 0), DT)
    assert hero.position == pytest.approx((0.2, 0.1, REST + 0.2), abs=1e-9)


def test_an_idle_move_in_the_air_is_not_grounded():
    scene, lift, hero = standing()
    hero.move((0, 0, 0.5), DT)
    hero.move((0, 0, 0), DT)
    assert not hero.grounded and hero.ground is None
    # The same holds for a character whose platform has gone.
    steps(hero, (0, 0, -0.3), 3)
    assert hero.grounded
    scene.remove(lift)
    hero.move((0, 0, 0), DT)
    assert not hero.grounded and hero.state.standing_on is None


def test_a_short_motion_aside_without_gravity_forgets():
    # RULES 5: a pass forgets the contacts of the pass before. Without a step (1e-7 is no side
    # motion) and without gravity, no DOWN pass finds them again.
    _, lift, hero = standing()
    hero.move((1e-7, 0, 0), DT)
    assert hero.state.standing_on is None
    lift.move_to((0.2, 0, -0.5))
    hero.move((0, 0, 0), DT)
    assert hero.position[0] == pytest.approx(1e-7, abs=1e-15)


def test_position_set_keeps_and_teleport_forgets():
    for forget in (False, True):
        _, lift, hero = standing()
        if forget:
            hero.teleport((0.5, 0, REST))
        else:
            hero.position = (0.5, 0, REST)
        assert (hero.state.standing_on is None) == forget
        lift.move_to((0.3, 0, -0.5))
        hero.move((0, 0, 0), DT)
        assert hero.position[0] == pytest.approx(0.5 if forget else 0.8, abs=1e-9)


@pytest.mark.parametrize("kind", MOVERS)
def test_the_ray_finds_ground_that_rises_into_a_character_without_memory(kind):
    # RULES 7.2: from the centre, half the height long.
    scene = Scene()
    lift = platform(scene, (0, 0, -0.5), kind=kind)
    hero = hero_in(scene, z=HALF - 0.05)
    hero.move((0, 0, 0), DT)
    assert hero.state.standing_on is lift
    lift.move_to((0.2, 0, -0.5))
    hero.move((0, 0, 0), DT)
    assert hero.position[0] == pytest.approx(0.2, abs=1e-9)
    # A ray that does not reach the platform finds nothing.
    far = hero_in(scene, 0.2, z=HALF + 0.001)
    far.move((0, 0, 0), DT)
    assert far.state.standing_on is None


def test_the_platform_under_the_ray_is_taken_from_the_nearest():
    scene = Scene()
    platform(scene, (0, 0, -1.0))
    upper = platform(scene, (0, 0, -0.5), half=(1, 1, 0.2))
    hero = hero_in(scene, z=HALF - 0.35)
    hero.move((0, 0, 0), DT)
    assert hero.state.standing_on is upper


def test_a_displacement_of_rounding_is_no_motion():
    # RULES 7.3: ground is moving if a component of its motion exceeds 1e-6; otherwise a jump would
    # keep its step.
    scene, lift, hero = standing()
    scene.add(Box((0.5, 2, 0.1)), position=(1.0, 0, 0.1))
    lift.move_to((0, 0, -0.5 + 5e-7))
    hero.move((0.4, 0, 0.001), DT)
    assert hero.position[0] < 0.35


def test_restored_riders_ride_on():
    _, lift, hero = standing("kinematic", 1.0, 0.0)
    kept = hero.save()
    lift.move_to((0.3, 0, -0.3), about_z(0.2))
    hero.move(GRAVITY, DT)
    there = hero.position
    assert not near(there, (1, 0, REST), 0.1)
    hero.restore(kept)
    assert hero.position == pytest.approx((1, 0, REST)) and hero.state.standing_on is lift
    hero.move(GRAVITY, DT)
    assert hero.position == there
