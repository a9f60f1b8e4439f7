"""Obstacles, other characters and proxies: RULES 8, MOVE 3.2.6."""

import copy
import gc
import math
import weakref

import numpy as np
import pytest
from small_worlds import (
    DT,
    HEIGHT,
    OFFSET,
    RADIUS,
    REST,
    about_y,
    about_z,
    flat,
    floor,
    hero_in,
    seen,
    steps,
    told_of_hits,
    world,
)

from pycct import Behavior, Box, Capsule, CharacterController, CollisionFlags, Obstacle, Scene, Sphere, separate

SIDES, DOWN = CollisionFlags.SIDES, CollisionFlags.DOWN
GRAVITY = (0.0, 0.0, -0.02)
MEET = 2 * RADIUS + OFFSET  # how near two upright characters come


def pair(gap=2.0, scene=None, one=None, two=None):
    """Two characters on a floor, the second at x = gap."""
    scene = scene or floor()
    a = hero_in(scene, **{"collide": True, "step_offset": 0, **(one or {})})
    b = hero_in(scene, gap, **{"collide": True, "step_offset": 0, **(two or {})})
    return scene, a, b


def stops_at(hero, length=10.0):
    hero.move((length, 0, 0), DT)
    return hero.position[0]


# --- obstacles


@pytest.mark.parametrize(
    ("shape", "turn", "face"),
    [
        (Box((0.5, 1, 2)), 0.0, 0.5),
        (Box((0.5, 0.5, 2)), math.pi / 4, math.sqrt(0.5)),
        (Capsule(0.6, 3.0), 0.0, 0.6),
    ],
)
def test_obstacles_stand_in_the_way_move_and_go(shape, turn, face):
    scene = floor()
    post = scene.add_obstacle(shape, position=(3, 0, 1.5), rotation=about_z(turn))
    assert isinstance(post, Obstacle) and scene.obstacles == [post] and post not in scene.actors
    hero = hero_in(scene, step_offset=0)
    assert stops_at(hero) == pytest.approx(3 - face - RADIUS - OFFSET, abs=1e-9)
    (hit,) = hero.hits
    assert hit.obstacle is hit.other is post and hit.actor is None and hit.controller is None
    assert hit.triangle is None and hit.data is None
    assert hit.normal == pytest.approx((-1, 0, 0), abs=1e-9)
    post.move_to((5, 0, 1.5))
    assert stops_at(hero) == pytest.approx(5 - face - RADIUS - OFFSET, abs=1e-9)
    scene.remove(post)
    assert scene.obstacles == []
    assert hero.move((10, 0, 0), DT) == CollisionFlags.NONE


def test_obstacles_take_only_boxes_and_capsules():
    scene = Scene()
    for shape in (Sphere(1), flat(1)):
        with pytest.raises((TypeError, ValueError), match="shape"):
            scene.add_obstacle(shape)
    assert scene.obstacles == []


@pytest.mark.parametrize(("layer", "mask", "met"), [(1, 1, True), (2, 1, False), (6, 4, True), (0, 0xFFFFFFFF, False)])
def test_obstacles_by_layer_and_mask(layer, mask, met):
    scene = Scene()
    scene.add_obstacle(Box((0.5, 5, 5)), position=(3, 0, 0), layer=layer)
    hero = hero_in(scene, mask=mask, step_offset=0)
    assert (stops_at(hero) < 3) == met


@pytest.mark.parametrize("degrees", [30, 60])
@pytest.mark.parametrize("mode", ["prevent_climbing", "force_sliding"])
def test_an_obstacle_is_never_too_steep(degrees, mode):
    # RULES 2: an obstacle has no triangle, so it has no slope.
    turn = about_y(-math.radians(degrees))
    found = {}
    for kind in ("obstacle", "static"):
        scene = Scene()
        if kind == "obstacle":
            scene.add_obstacle(Box((6, 6, 0.5)), rotation=turn)
        else:
            scene.add(Box((6, 6, 0.5)), rotation=turn)
        hero = hero_in(scene, z=4, non_walkable_mode=mode)
        steps(hero, (0, 0, -0.1), 60)
        found[kind] = hero
    hero = found["obstacle"]
    assert hero.state.on_obstacle and not hero.state.sliding and hero.ground.walkable == (degrees < 45)
    assert hero.position[0] == 0 and hero.grounded
    static = found["static"]
    assert (static.state.sliding or static.position[0] < -0.5) == (degrees > 45)


def test_overlapping_obstacles_and_characters_are_ignored():
    # RULES 5, 9 row 12: recovery resolves overlaps with static and kinematic shapes only.
    scene = Scene()
    # Without a ride, the ray does not lift the character out (RULES_2 6).
    scene.add_obstacle(Box((1, 1, 1)), position=(0.5, 0, REST), behavior=Behavior.USER_DEFINED_RIDE)
    hero_in(scene, 0.1, collide=True)
    hero = hero_in(scene, collide=True, step_offset=0)
    hero.move((-0.3, 0, 0), DT)
    assert hero.position == (-0.3, 0, REST) and hero.stats.recoveries == 0 and hero.hits == []


def test_queries_do_not_see_obstacles():
    scene = Scene()
    scene.add_obstacle(Box((1, 1, 1)))
    assert scene.overlap(Sphere(1), (0, 0, 0)) == []
    assert scene.penetration(Sphere(1), (0, 0, 0)) == []
    assert scene.sweep(Sphere(0.1), (0, 0, 5), (0, 0, -1), 10) is None


def test_the_ground_may_be_an_obstacle():
    scene = Scene()
    post = scene.add_obstacle(Box((1, 1, 1)), position=(0, 0, -1))
    hero = hero_in(scene)
    hero.move(GRAVITY, DT)
    ground = hero.ground
    assert ground.obstacle is post and ground.actor is None and ground.controller is None and ground.triangle is None
    assert ground.normal == pytest.approx((0, 0, 1)) and ground.distance == pytest.approx(OFFSET)
    assert hero.state.on_obstacle and hero.state.standing_on is post and not hero.state.on_controller
    assert hero.probe_ground(1).obstacle is post


# --- characters


def test_characters_stop_at_each_other():
    _, a, b = pair()
    assert a.move((10, 0, 0), DT) == SIDES
    assert a.position[0] == pytest.approx(2 - MEET, abs=1e-9)
    (hit,) = a.hits
    assert hit.controller is hit.other is b and hit.actor is None and hit.obstacle is None and hit.triangle is None
    assert hit.normal == pytest.approx((-1, 0, 0), abs=1e-9)
    b.move((-10, 0, 0), DT)
    assert b.position[0] == pytest.approx(2, abs=1e-9)


@pytest.mark.parametrize("kinds", [(False, True), (True, False), (False, False)])
def test_both_must_collide(kinds):
    _, a, _ = pair(one={"collide": kinds[0]}, two={"collide": kinds[1]})
    assert stops_at(a) == pytest.approx(10)


@pytest.mark.parametrize("la", [1, 2, 3])
@pytest.mark.parametrize("ma", [1, 2, 0xFFFFFFFF])
@pytest.mark.parametrize("lb", [1, 2])
@pytest.mark.parametrize("mb", [1, 2, 3])
def test_each_ones_layer_must_meet_the_others_mask(la, ma, lb, mb):
    _, a, b = pair(scene=Scene(), one={"layer": la, "mask": ma}, two={"layer": lb, "mask": mb})
    met = bool(la & mb) and bool(lb & ma)
    assert (stops_at(a) < 2) == met
    a.teleport((0, 0, REST))
    b.move((-10, 0, 0), DT)
    assert (b.position[0] > 0) == met


def test_parameters_set_later_count_in_the_next_move():
    _, a, b = pair()
    for name, value, met in (
        ("collide", False, False),
        ("collide", True, True),
        ("layer", 2, True),
        ("mask", 2, False),  # a is on layer 1
        ("mask", 3, True),
        ("layer", 0, False),
        ("layer", 1, True),
    ):
        setattr(b, name, value)
        a.teleport((0, 0, REST))
        assert (stops_at(a) < 2) == met, (name, value)
    # Nothing in the scene has changed since, but the move must look up its candidates again.
    for b_at in ((2, 0.5, REST), (1.5, 0, REST), (2, 5, REST), (2, 0, REST)):
        b.position = b_at
        a.teleport((0, 0, REST))
        a.move((4, 0, 0), DT)
        assert [h.controller for h in a.hits][:1] == ([b] if b_at[1] < 1 else [])
    b.radius = 0.8
    a.teleport((0, 0, REST))
    assert stops_at(a) == pytest.approx(2 - 0.8 - RADIUS - OFFSET, abs=1e-9)
    b.remove()
    a.teleport((0, 0, REST))
    assert stops_at(a) == pytest.approx(10)


def test_characters_meet_others_at_their_current_positions():
    _, a, b = pair()
    for _ in range(20):
        b.move((0.05, 0, -0.01), DT)
        a.move((0.5, 0, -0.01), DT)
        assert b.position[0] - a.position[0] >= MEET - 1e-9
    assert a.position[0] == pytest.approx(3 - MEET, abs=1e-9)


def test_no_character_meets_a_collected_one():
    _, a, b = pair()
    assert stops_at(a) < 2
    del b
    gc.collect()
    a.teleport((0, 0, REST))
    assert stops_at(a) == pytest.approx(10)


def test_characters_of_other_scenes_are_never_met():
    _, a, _ = pair(gap=50)
    pair(gap=2)
    assert stops_at(a) == pytest.approx(10)


def test_a_character_does_not_meet_itself():
    hero = hero_in(Scene(), collide=True)
    for _ in range(10):
        assert hero.move((0.1, 0.05, -0.02), DT) == CollisionFlags.NONE
    assert hero.position == pytest.approx((1.0, 0.5, REST - 0.2))


def test_the_filter_receives_characters_too():
    _, a, b = pair()
    asked = []

    def no(other):
        asked.append(other)
        return other is not b

    a.filter = no
    assert stops_at(a) == pytest.approx(10)
    assert asked.count(b) == 1


def test_many_characters_meet_as_a_test_of_all_pairs_says():
    # Candidates come from a grid of cells, which must find characters of any size at any place.
    rng = np.random.default_rng(5)
    scene = Scene()
    crowd = []
    for k in range(150):
        spread = 4.0 if k % 3 else 400.0
        crowd.append(
            CharacterController(
                scene, rng.uniform(-spread, spread, 3), rng.choice([0.05, 0.3, 2.5]), rng.choice([0, 1, 6]),
                collide=True, step_offset=0, layer=1 << int(rng.integers(3)), mask=int(rng.integers(1, 8)),
            )
        )  # fmt: skip
    met = 0
    for k, hero in enumerate(crowd):
        d = rng.normal(size=3) * (0.5, 5.0)[k % 2]
        alone = Scene()
        twin = CharacterController(
            alone, hero.position, hero.radius, hero.height, step_offset=0, slope_limit=hero.slope_limit
        )
        for other in crowd:
            if other is not hero and other.layer & hero.mask and hero.layer & other.mask:
                # Obstacles lift a character that starts inside; characters do not (RULES_2 6).
                alone.add_obstacle(
                    Capsule(other.radius, other.height), position=other.position, behavior=Behavior.USER_DEFINED_RIDE
                )
        twin.move(d, DT)
        hero.move(d, DT)
        assert hero.position == twin.position, k
        assert len(hero.hits) == len(twin.hits)
        met += len(hero.hits)
    assert met > 30


@pytest.mark.parametrize("slides", [False, True])
@pytest.mark.parametrize("by", ["surface", "behavior"])
def test_a_character_on_a_head_stands_or_slides_off(slides, by):
    scene = world(flat())
    allowed = Behavior.CAN_SLIDE if slides else Behavior.NONE
    lower = hero_in(scene, collide=True, surface=allowed if by == "surface" else 0)
    upper = hero_in(scene, 0.15, z=4, collide=True, behavior=(lambda other: allowed) if by == "behavior" else None)
    steps(upper, (0, 0, -0.1), 60)
    if slides:
        assert upper.position[0] > 2 * RADIUS - 0.02
        assert upper.position[2] == pytest.approx(REST, abs=1e-6)
        assert not upper.state.on_controller
    else:
        # The height at which the lower one's round head meets the round bottom.
        rise = math.sqrt((2 * RADIUS) ** 2 - 0.15**2)
        assert upper.position[0] == 0.15
        assert upper.position[2] == pytest.approx(REST + HEIGHT + rise + OFFSET, abs=1e-3)
        assert upper.state.on_controller and upper.state.standing_on is lower and upper.grounded
        assert upper.ground.controller is lower and upper.ground.actor is None
        assert upper.flags == DOWN
        assert upper.probe_ground(0.1).controller is lower


def test_on_a_head_nothing_is_too_steep():
    scene = world(flat())
    lower = hero_in(scene, collide=True)
    upper = hero_in(scene, 0.35, z=4, collide=True, non_walkable_mode="force_sliding")
    steps(upper, (0, 0, -0.1), 60)
    assert upper.state.on_controller and not upper.state.sliding and upper.position[0] == 0.35
    assert upper.state.standing_on is lower


def test_a_character_on_a_head_falls_when_the_other_leaves():
    scene = world(flat())
    lower = hero_in(scene, collide=True)
    upper = hero_in(scene, z=4, collide=True)
    steps(upper, (0, 0, -0.1), 60)
    top = upper.position[2]
    lower.remove()
    upper.move((0, 0, -0.1), DT)
    assert upper.position[2] == pytest.approx(top - 0.1) and upper.state.standing_on is None


# --- separation


def test_overlapping_characters_separate_by_half_the_overlap_each():
    _, a, b = pair(gap=0.75)
    separate([a, b], 1.0)
    # A call of `separate` moves nobody at once.
    assert a.position == (0, 0, REST) and b.position == (0.75, 0, REST)
    a.move((0, 0, 0), DT)
    b.move((0, 0, 0), DT)
    assert a.position == pytest.approx((-0.025, 0, REST)) and b.position == pytest.approx((0.775, 0, REST))
    # The push lasts for one move.
    a.move((0, 0, 0), DT)
    assert a.position[0] == pytest.approx(-0.025)


def test_separation_is_no_faster_than_two_metres_a_second_each():
    _, a, b = pair(gap=0.1)
    separate([a, b], 0.01)
    a.move((0, 0, 0), DT)
    b.move((0, 0, 0), DT)
    assert (a.position[0], b.position[0]) == pytest.approx((-0.02, 0.12))
    separate([a, b], 0)
    a.move((0, 0, 0), DT)
    assert a.position[0] == pytest.approx(-0.02)


@pytest.mark.parametrize("up", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3)])
def test_separation_is_horizontal_and_spreads_stacked_characters(up):
    scene = Scene()
    up = np.array(up) / np.linalg.norm(up)
    a = CharacterController(scene, (0, 0, 0), up=up, collide=True)
    b = CharacterController(scene, up * 0.3, up=up, collide=True)
    separate([a, b], 1.0)
    for hero in (a, b):
        hero.move((0, 0, 0), DT)
    d = np.subtract(b.position, a.position)
    assert np.dot(d, up) == pytest.approx(0.3)
    assert np.linalg.norm(d - np.dot(d, up) * up) == pytest.approx(2 * 0.4)


def test_ids_decide_the_direction_at_equal_positions():
    ends = []
    for order in (1, -1):
        _, a, b = pair(gap=0.0)
        separate([a, b][::order], 1.0)
        for hero in (b, a)[::order]:
            hero.move((0, 0, 0), DT)
        ends.append((a.position, b.position))
        assert math.dist(a.position, b.position) == pytest.approx(2 * RADIUS)
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "two", [{"collide": False}, {"layer": 2}, {"mask": 2}], ids=["no collide", "other layer", "other mask"]
)
def test_only_characters_that_meet_separate(two):
    _, a, b = pair(gap=0.5, one={"mask": 1}, two=two)
    separate([a, b], 1.0)
    for hero in (a, b):
        hero.move((0, 0, 0), DT)
    assert a.position == (0, 0, REST) and b.position == (0.5, 0, REST)


def test_separate_needs_no_partners_and_adds_up_pushes():
    scene, a, b = pair(gap=0.7)
    c = hero_in(scene, 0, 0.7, collide=True)
    separate(iter([a]), 1.0)
    for hero in (a, b, c):
        hero.move((0, 0, 0), DT)
    assert a.position == pytest.approx((-0.05, -0.05, REST)) and b.position[0] == 0.7 and c.position[1] == 0.7


def test_a_character_named_twice_is_pushed_once():
    _, a, b = pair(gap=0.7)
    separate([a, a, b], 1.0)
    a.move((0, 0, 0), DT)
    assert a.position[0] == pytest.approx(-0.05)


def test_a_wall_holds_the_push():
    scene, a, b = pair(gap=0.5)
    scene.add(Box((0.5, 5, 5)), position=(-0.5 - RADIUS - OFFSET, 0, 0))
    separate([a, b], 1.0)
    a.move((0, 0, 0), DT)
    assert a.position[0] == pytest.approx(0, abs=1e-9) and a.hit_sides


def test_a_dense_crowd_comes_apart():
    rng = np.random.default_rng(2)
    scene = floor()
    crowd = [hero_in(scene, *rng.uniform(-1, 1, 2), collide=True) for _ in range(12)]

    def overlap():
        return max(2 * RADIUS - math.dist(a.position[:2], b.position[:2]) for a in crowd for b in crowd if a.id < b.id)

    assert overlap() > 0.3
    for _ in range(250):
        separate(crowd, DT)
        for hero in crowd:
            hero.move((0, 0, -0.01), DT)
    assert overlap() < 0.01
    assert all(h.position[2] == pytest.approx(REST, abs=1e-6) for h in crowd)


def test_bad_calls_of_separate_change_nothing():
    _, a, b = pair(gap=0.5)
    gone = hero_in(a.scene, collide=True)
    gone.remove()
    before = a.save(), b.save()
    for bad, dt, error in (
        ([a, b, None], 1.0, TypeError),
        (None, 1.0, TypeError),
        ([a, b], -1, ValueError),
        ([a, b], math.nan, ValueError),
        ([a, b], "x", TypeError),
        ([a, b, gone], 1.0, RuntimeError),
    ):
        with pytest.raises(error):
            separate(bad, dt)
        assert (a.save(), b.save()) == before


# --- proxies


def test_queries_and_others_see_a_proxy_and_its_owner_never_does():
    scene = floor()
    owner, other = hero_in(scene, step_offset=0), hero_in(scene, -3, step_offset=0)
    plain = hero_in(floor(), step_offset=0)
    proxy = owner.add_proxy(layer=4, user_data="me")
    assert owner.proxy is proxy and proxy in scene.actors and proxy.body == "kinematic"
    assert proxy.layer == 4 and proxy.user_data == "me" and proxy.shape.radius == RADIUS
    for d in [(0.1, 0.05, -0.02)] * 30 + [(0, 0, 0.3), (0, 0, -0.1), (0, 0, -0.1), (0, 0, -0.3)]:
        assert owner.move(d, DT) == plain.move(d, DT)
        assert owner.position == plain.position == proxy.position
        assert [h.actor.id for h in owner.hits] == [h.actor.id for h in plain.hits]
        assert owner.state.overlap == 0 and owner.stats.recoveries == 0
    assert [a for a in scene.overlap(Sphere(0.1), owner.position, mask=4)] == [proxy]
    hit = scene.sweep(Sphere(0.1), (*owner.position[:2], 9), (0, 0, -1), 20)
    assert hit.actor is proxy
    other.position = (owner.position[0] - 2, *owner.position[1:])
    assert stops_at(other) == pytest.approx(owner.position[0] - MEET, abs=1e-9)
    assert other.hits[0].actor is proxy
    # A mask without the proxy's layer does not meet it.
    other.mask = 1
    other.position = (owner.position[0] - 2, *owner.position[1:])
    assert other.move((4, 0, 0), DT) == CollisionFlags.NONE


def test_a_proxy_follows_every_way_to_move():
    scene = floor()
    owner = hero_in(scene)
    proxy = owner.add_proxy()
    for act in (
        lambda: owner.move((0.3, 0, -0.1), DT),
        lambda: owner.teleport((1, 2, 3)),
        lambda: setattr(owner, "position", (4, 5, 6)),
        lambda: setattr(owner, "foot_position", (0, 0, 0.2)),
        lambda: owner.snap_to_ground(1.0),
        lambda: owner.resize(1.6),
        lambda: owner.restore(owner.save()),
    ):
        act()
        assert proxy.position == owner.position
    scene.remove(scene.actors[0])


def test_a_proxy_has_the_size_and_stance_of_its_owner():
    scene = floor()
    owner = hero_in(scene)
    owner.add_proxy(layer=2)
    owner.resize(2.5)
    owner.radius = 0.7
    owner.up = (0, 1, 0)
    proxy = owner.proxy
    assert (proxy.shape.radius, proxy.shape.height) == (0.7, 2.5)
    assert scene.actor(proxy.id) is proxy and proxy.layer == 2
    x, y, z = owner.position
    assert scene.overlap(Sphere(0.01), (x, y + 1.9, z), mask=2) == [proxy]
    assert scene.overlap(Sphere(0.01), (x, y, z + 1.0), mask=2) == []


def test_a_proxy_goes_with_its_owner():
    scene = Scene()
    owner = hero_in(scene)
    proxy = owner.add_proxy()
    with pytest.raises(RuntimeError, match="proxy"):
        owner.add_proxy()
    owner.remove()
    assert proxy.scene is None and scene.actors == []


def test_no_proxy_stays_behind_without_its_owner():
    # The scene keeps the owner alive as long as it contains the proxy.
    scene = Scene()
    owner = hero_in(scene)
    proxy, id = owner.add_proxy(), owner.id
    del owner
    gc.collect()
    owner = scene.character(id)
    assert scene.characters == [owner] and owner.proxy is proxy
    owner.remove()
    assert scene.actors == [] and scene.characters == []
    # After the proxy is gone, nothing keeps the owner alive.
    owner = hero_in(scene)
    scene.remove(owner.add_proxy())
    owner.move((0, 0, 0), DT)
    del owner
    gc.collect()
    assert scene.characters == []
    # A scene with both is collected.
    owner = hero_in(scene)
    owner.add_proxy()
    gone = weakref.ref(owner)
    del owner, proxy, scene
    gc.collect()
    assert gone() is None


def test_two_owners_meet_the_proxy_of_the_other_once():
    # A character with collide and a proxy has the same capsule twice, at the same place.
    _, a, b = pair()
    b.add_proxy()
    assert stops_at(a) == pytest.approx(2 - MEET, abs=1e-9)
    assert a.hits[0].other in (b, b.proxy)


def test_a_proxy_stays_away_from_recovery_ride_probe_and_resize_of_its_owner():
    scene = Scene()
    owner = hero_in(scene, z=5)
    owner.add_proxy()
    assert owner.probe_ground(2) is None and not owner.snap_to_ground(2)
    assert owner.can_resize(3.0) and not owner.unstick()
    owner.move((0.1, 0, -0.1), DT)
    owner.move((0, 0, 0), DT)
    assert owner.position == pytest.approx((0.1, 0, 4.9)) and owner.state.standing_on is None
    assert owner.state.platform_delta == (0, 0, 0)


def test_a_copy_does_not_share_the_proxy():
    scene = floor()
    owner = hero_in(scene, step_offset=0)
    proxy = owner.add_proxy()
    twin = copy.copy(owner)
    assert twin.proxy is None
    twin.move((1.0, 0, 0), DT)
    assert proxy.position == owner.position
    # The copy starts inside the proxy and recovers from it, as any other character would.
    assert twin.stats.recoveries > 0
    kept = owner.save()
    owner.move((0.5, 0, -0.1), DT)
    owner.restore(kept)
    owner.move((0.5, 0, -0.1), DT)
    assert owner.stats.recoveries == 0 and owner.position[0] == pytest.approx(0.5)


# --- dynamic bodies


def test_dynamic_bodies_are_met_but_never_left_by_force():
    scene = world(flat())
    crate = scene.add(Box((0.5, 0.5, 1)), position=(2, 0, 1), body="dynamic", user_data="crate")
    hero = hero_in(scene, step_offset=0)
    hero.move((3, 0, -0.01), DT)
    hit = next(h for h in hero.hits if h.actor is crate)
    # An engine needs these values to push the body.
    assert hit.dynamic and hit.direction == pytest.approx((1, 0, 0)) and hit.length == pytest.approx(3)
    assert hit.position[0] == pytest.approx(1.5) and hit.normal == pytest.approx((-1, 0, 0))
    assert hit.distance == pytest.approx(1.5 - RADIUS)
    assert not any(h.dynamic for h in hero.hits if h.actor is not crate)
    crate.move_to(hero.position)
    start = hero.position
    hero.move((-0.2, 0, -0.01), DT)
    assert hero.stats.recoveries == 0 and hero.position[0] == pytest.approx(start[0] - 0.2)
    assert scene.overlap(Sphere(0.1), crate.position) == [crate]


def test_others_change_nothing_for_a_character_without_collide():
    alone, among = hero_in(world(flat())), hero_in(world(flat()))
    for k in range(5):
        hero_in(among.scene, 0.5 * k, collide=True)
    for k in range(30):
        d = (0.1, 0.02 * math.sin(k), -0.02)
        alone.move(d, DT)
        among.move(d, DT)
        assert alone.position == among.position
        assert [h[3:] for h in told_of_hits(alone)] == [h[3:] for h in told_of_hits(among)]
    assert seen(alone)[1:4] == seen(among)[1:4]
