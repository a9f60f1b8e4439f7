"""State of a character: hits, ground, size, saves, explanations, warnings."""

import copy
import gc
import logging
import math
import pickle
import struct
import weakref
import zlib

import numpy as np
import pytest
from small_worlds import (
    DT,
    HALF,
    HEIGHT,
    LIMIT,
    OFFSET,
    RADIUS,
    REST,
    flat,
    floor,
    hero_in,
    quad,
    seen,
    slope,
    steps,
    wall_at,
    world,
)

import pycct
from pycct import (
    Behavior,
    Box,
    Capsule,
    CharacterController,
    ClimbingMode,
    CollisionFlags,
    Mesh,
    NonWalkableMode,
    Pass,
    Rules,
    Scene,
    Sphere,
)

GRAVITY = (0.0, 0.0, -0.02)
SIDES, UP, DOWN = CollisionFlags.SIDES, CollisionFlags.UP, CollisionFlags.DOWN


def room():
    """Floor with triangle data, a wall at x = 1, a step, a lift, an obstacle."""
    scene = Scene()
    scene.add(flat(triangle_data=[70, 71]), user_data="floor")
    scene.add(Box((0.5, 9, 9)), position=(1.5, 0, 0), user_data="wall")
    scene.add(Box((0.5, 0.5, 0.1)), position=(-1.5, 0, 0.1), user_data="step")
    scene.add(Box((1, 1, 0.5)), position=(-5, 0, -0.4), body="kinematic", behavior=Behavior.CAN_RIDE, user_data="lift")
    scene.add_obstacle(Box((1, 1, 0.5)), position=(-9, 0, -0.4), user_data="post")
    return scene


# --- State, hits and ground


def test_state_before_the_first_move():
    hero = hero_in(floor())
    s = hero.state
    assert (s.standing_on, s.ground_triangle, s.velocity, s.platform_delta) == (None, None, (0, 0, 0), (0, 0, 0))
    assert not (s.on_controller or s.on_obstacle or s.moving_up or s.sliding)
    assert s.overlap == 0 and hero.hits == [] and hero.ground is None and not hero.grounded
    assert hero.flags == 0 and not (hero.hit_sides or hero.hit_up or hero.hit_down)
    assert hero.explain_last() is None


def test_state_of_a_move():
    scene = room()
    ground = scene.actors[0]
    hero = hero_in(scene)
    flags = hero.move((0.7, 0.2, -0.05), 0.5)
    assert flags == SIDES | DOWN == hero.flags and hero.hit_sides and hero.hit_down and not hero.hit_up
    s = hero.state
    assert s.standing_on is ground and s.ground_triangle in (0, 1)
    assert s.velocity == hero.velocity == pytest.approx((2 * (1 - RADIUS - OFFSET), 0.4, 0), abs=0.02)
    assert s.contact_point_height == pytest.approx(0, abs=1e-9)
    assert not (s.on_controller or s.on_obstacle or s.moving_up or s.sliding)
    # The next move does not change a State object.
    hero.move((0, 0, 0.3), 0.5)
    assert s.standing_on is ground and hero.state.moving_up and hero.state.standing_on is None
    assert hero.velocity == pytest.approx((0, 0, 0.6)) and hero.state.ground_triangle is None
    hero.move((0.1, 0, 0), 0)
    assert hero.velocity == (0, 0, 0)
    assert "standing on" in repr(s) and "iterations" in repr(hero.stats)


@pytest.mark.parametrize(("x", "what"), [(0, "floor"), (-1.5, "step"), (-5, "lift"), (-9, "post")])
def test_ground(x, what):
    scene = room()
    hero = hero_in(scene, x, 0.1, 2.0)
    steps(hero, (0, 0, -0.2), 10)
    g = hero.ground
    other = g.actor or g.obstacle
    assert other.user_data == what and hero.grounded and hero.state.standing_on is other
    assert (g.obstacle is not None) == (what == "post") == hero.state.on_obstacle
    assert g.normal == pytest.approx((0, 0, 1)) == g.face_normal
    assert g.point[:2] == pytest.approx((x, 0.1)) and g.distance == pytest.approx(OFFSET) and g.walkable
    assert g.point[2] == pytest.approx(hero.position[2] - HALF - OFFSET)
    assert (g.data in (70, 71)) == (what == "floor") and (g.triangle in (0, 1)) == (what == "floor")
    assert hero.state.contact_point_height == pytest.approx(g.point[2])


@pytest.mark.parametrize(("degrees", "walkable"), [(10, True), (44, True), (46, False), (80, False)])
def test_the_triangle_decides_whether_ground_is_walkable(degrees, walkable):
    hero = hero_in(world(slope(degrees, -20, 20)), z=20 * math.tan(math.radians(degrees)) + 3, slope_limit=LIMIT)
    g = hero.probe_ground(10)
    assert g.walkable == walkable
    assert g.face_normal == pytest.approx((-math.sin(math.radians(degrees)), 0, math.cos(math.radians(degrees))))
    # The contact normal at an edge may have any direction; the triangle decides.
    step = hero_in(world((Box((1, 1, 1)), (1.3, 0, 0))), z=4)
    g = step.probe_ground(10)
    assert g.normal[2] < 0.75 and (g.face_normal == pytest.approx((0, 0, 1))) and g.walkable


def test_hits_have_distance_time_and_region():
    scene = world((Box((0.5, 9, 0.2)), (1.5, 0, -HALF + 0.1)), (Box((0.5, 9, 0.2)), (-1.5, 0, HALF - 0.1)))
    hero = hero_in(scene, z=0, step_offset=0)
    hero.move((2, 0, 0), DT)
    low = hero.hits[0]
    hero.teleport((0, 0, 0))
    hero.move((-2, 0, 0), DT)
    high = hero.hits[0]
    assert (low.region, high.region) == ("bottom", "top")
    assert low.distance == pytest.approx(high.distance) and low.time == pytest.approx(low.distance / 2)
    for hit in (low, high):
        # The centre at that time touches the surface.
        centre = np.array(hit.direction) * hit.distance
        d = np.subtract(hit.position, centre)
        axis = np.clip(d[2], -HEIGHT / 2, HEIGHT / 2)
        assert np.linalg.norm(d - (0, 0, axis)) == pytest.approx(RADIUS, abs=1e-9)
        assert repr(hit).startswith("<Hit")
    middle = hero_in(world((Sphere(0.3), (1.5, 0, 0))), z=0, step_offset=0)
    middle.move((2, 0, 0), DT)
    assert middle.hits[0].region == "side" and middle.hits[0].pass_ is Pass.SIDE


def test_time_is_a_little_over_one_within_the_contact_offset():
    hero = hero_in(world(wall_at(1.0)), step_offset=0)
    hero.move((1 - RADIUS - 0.5 * OFFSET, 0, 0), DT)
    assert hero.hits[0].time > 1 and hero.hits[0].distance == pytest.approx(1 - RADIUS)


def test_sliding_overlap_and_on_controller():
    hero = hero_in(world(slope(60, -20, 20)), z=20 * math.tan(math.radians(60)) + 1.2)
    steps(hero, (0, 0, -0.1), 15)
    assert hero.state.sliding and not hero.ground.walkable
    crushed = hero_in(world((Box((1, 5, 5)), (-1.3, 0, 0)), (Box((1, 5, 5)), (1.3, 0, 0))), z=0)
    crushed.move((0, 0.1, 0), DT)
    # The correction by the contact offset out of one wall leads into the other.
    assert crushed.state.overlap == pytest.approx(2 * 0.1 + OFFSET)


def test_stats_count():
    hero = hero_in(room())
    hero.move((0, 0, 0), DT)
    assert (hero.stats.iterations, hero.stats.recoveries) == (0, 0) and hero.stats.full_updates == 1
    steps(hero, (0.01, 0, -0.01), 2)
    assert hero.stats.full_updates == 0 and 3 <= hero.stats.iterations <= 4 and hero.stats.triangles_tested > 0


# --- Position


def test_position_and_foot_position():
    scene = room()
    hero = hero_in(scene, -5, z=REST + 0.1)
    hero.move((0, 0, -0.1), DT)
    standing = hero.state.standing_on
    assert standing.user_data == "lift"
    hero.position = (1, 2, 3)
    assert hero.position == (1, 2, 3) and hero.state.standing_on is standing and hero.grounded
    assert hero.foot_position == pytest.approx((1, 2, 3 - REST))
    hero.foot_position = (0, 0, 0)
    assert hero.position == pytest.approx((0, 0, REST)) and hero.state.standing_on is standing
    hero.teleport((0, 0, 5))
    assert hero.position == (0, 0, 5) and hero.state.standing_on is None and not hero.grounded and hero.ground is None
    assert hero.hits == [] and hero.flags == 0 and hero.velocity == (0, 0, 0) and hero.explain_last() is None
    for bad in ((1, 2), (math.nan, 0, 0), "abc", None, (1e13, 0, 0)):
        for name in ("position", "foot_position"):
            before = hero.save()
            with pytest.raises((ValueError, TypeError), match=name):
                setattr(hero, name, bad)
            assert hero.save() == before


def test_foot_position_for_any_up():
    up = np.array((1, -2, 0.5)) / np.linalg.norm((1, -2, 0.5))
    hero = CharacterController(Scene(), (1, 2, 3), 0.3, 0.8, up=up * 7, contact_offset=0.05)
    assert hero.up == pytest.approx(tuple(up))
    assert hero.foot_position == pytest.approx(tuple(np.array((1, 2, 3)) - up * (0.4 + 0.3 + 0.05)))
    hero.foot_position = (0, 0, 0)
    assert hero.position == pytest.approx(tuple(up * 0.75))
    # The pose rotates the shape, whose axis is z, along up.
    place, turn = hero.pose
    x, y, z, w = turn
    axis = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert place == hero.position and axis == pytest.approx(tuple(up))
    assert (hero.shape.radius, hero.shape.height) == (0.3, 0.8) and isinstance(hero.shape, Capsule)


@pytest.mark.parametrize("up", [(0, 0, 1), (0, 0, -1), (0, 1, 0), (-1, 0, 0), (1e-7, 0, -1)])
def test_pose_of_special_ups(up):
    x, y, z, w = CharacterController(Scene(), up=up).pose[1]
    assert x * x + y * y + z * z + w * w == pytest.approx(1)
    axis = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert axis == pytest.approx(tuple(np.array(up) / np.linalg.norm(up)), abs=1e-6)


# --- ground probe and snap (MOVE 12)


def test_probe_ground_reaches_its_distance():
    hero = hero_in(floor(), z=HALF + 1.0)
    before = hero.save()
    assert hero.probe_ground(0.999) is None
    g = hero.probe_ground(1.001)
    assert g.distance == pytest.approx(1.0) and g.point == pytest.approx((0, 0, 0)) and g.walkable
    hero.position = (0, 0, HALF - 0.1)
    g = hero.probe_ground(0)
    assert g.distance == 0 and g.normal == pytest.approx((0, 0, 1))
    hero.position = (0, 0, HALF + 1.0)
    assert hero.save() == before and hero.hits == [] and not hero.grounded
    for bad in (-1, math.nan, math.inf, "x", None):
        with pytest.raises((ValueError, TypeError), match="max_distance"):
            hero.probe_ground(bad)
        with pytest.raises((ValueError, TypeError), match="max_distance"):
            hero.snap_to_ground(bad)


def test_snap_goes_straight_down_to_the_contact_offset():
    hero = hero_in(floor(), 0.3, z=REST + 0.2)
    assert not hero.snap_to_ground(0.1)
    assert hero.position == (0.3, 0, REST + 0.2) and not hero.grounded
    assert hero.snap_to_ground(0.3)
    assert hero.position == pytest.approx((0.3, 0, REST), abs=1e-12)
    assert hero.grounded and hero.ground.distance == pytest.approx(OFFSET)
    # MOVE 12.2.2: the character is already at the ground.
    assert not hero.snap_to_ground(0.3)
    hero.position = (0.3, 0, REST - 0.005)
    assert not hero.snap_to_ground(0.3) and hero.position[2] == REST - 0.005


def test_snap_refuses_ground_too_steep():
    hero = hero_in(world(slope(60, -20, 20)), z=20 * math.tan(math.radians(60)) + 1.2)
    start = hero.position
    assert hero.probe_ground(5) is not None and not hero.snap_to_ground(5) and hero.position == start


def test_snap_keeps_a_walker_on_the_ground_down_a_ramp():
    hero = hero_in(world(slope(30, -20, 20)), z=20 * math.tan(math.radians(30)) + 1.0)
    assert hero.snap_to_ground(2)
    for _ in range(60):
        hero.move((-0.1, 0, 0), DT)
        assert hero.snap_to_ground(0.2)
        assert hero.grounded


# --- size


def test_resize_keeps_the_feet():
    hero = hero_in(floor())
    hero.move(GRAVITY, DT)
    foot = hero.foot_position
    for height in (2.0, 0.0, 0.4, 1.0):
        hero.resize(height)
        assert hero.height == height and hero.foot_position == pytest.approx(foot)
        assert hero.move(GRAVITY, DT) == DOWN
        assert hero.foot_position == pytest.approx(foot) and hero.stats.recoveries == 0
    # A size that is set as a parameter keeps the centre.
    hero.height = 0.5
    assert hero.position == pytest.approx((0, 0, REST))
    for bad in (-1, math.nan, "x", 1e13):
        before = hero.save()
        with pytest.raises((ValueError, TypeError), match="height"):
            hero.resize(bad)
        assert hero.save() == before
    with pytest.raises(ValueError, match="step_offset"):
        hero_in(floor(), step_offset=1.5).resize(0.2)


def test_can_resize_tests_the_added_volume():
    ceiling = (Box((5, 5, 0.5)), (0, 0, 2 * HALF + 0.3 + 0.5))
    hero = hero_in(world(flat(), ceiling))
    hero.move(GRAVITY, DT)
    before = hero.save()
    assert hero.can_resize(1.0) and hero.can_resize(0) and hero.can_resize(HEIGHT + 0.28)
    assert not hero.can_resize(HEIGHT + 0.31) and not hero.can_resize(5)
    assert hero.save() == before
    hero.mask = 0
    assert hero.can_resize(5)
    hero.mask = 0xFFFFFFFF
    # Present overlaps do not count.
    hero.scene.add(Box((1, 1, 0.3)), position=(0, 0, 0))
    assert hero.can_resize(HEIGHT + 0.2)


@pytest.mark.parametrize("kind", ["static", "kinematic", "dynamic", "obstacle", "controller"])
def test_can_resize_sees_everything_the_character_meets(kind):
    scene = Scene()
    if kind == "obstacle":
        scene.add_obstacle(Box((5, 5, 0.5)), position=(0, 0, REST + HALF + 0.5 + 0.5))
    elif kind == "controller":
        other = hero_in(scene, z=REST + 2 * HALF + 0.5, collide=True)
    else:
        scene.add(Box((5, 5, 0.5)), position=(0, 0, REST + HALF + 0.5 + 0.5), body=kind)
    hero = hero_in(scene, collide=True)
    assert hero.can_resize(HEIGHT + 0.4) and not hero.can_resize(HEIGHT + 0.6)
    if kind == "controller":
        other.collide = False
        assert hero.can_resize(9)


def test_recovery_resolves_growing_into_a_ceiling():
    hero = hero_in(world(flat(), (Box((5, 5, 0.5)), (0, 0, 2 * HALF + 0.3 + 0.5))))
    hero.resize(2.0)
    hero.move((0.05, 0, -0.02), DT)
    assert all(math.isfinite(c) for c in hero.position) and hero.state.overlap > 0


def test_unstick_gets_farther_away():
    hero = hero_in(world((Box((5, 5, 1)), (0, 0, -1))), z=REST - 0.3)
    hits, velocity = hero.hits, hero.velocity
    assert hero.unstick(0.5)
    assert hero.position == pytest.approx((0, 0, REST + 0.5))
    assert hero.hits == hits and hero.velocity == velocity
    assert not hero.unstick(0.2) and hero.unstick(0.7)
    assert not hero_in(Scene()).unstick()
    with pytest.raises(ValueError, match="margin"):
        hero.unstick(-1)
    # No move does it by itself.
    lone = hero_in(world((Box((5, 5, 1)), (0, 0, -1))), z=REST - 0.3, overlap_recovery=False)
    steps(lone, (0, 0, 0.001), 30)
    assert lone.position[2] == pytest.approx(REST - 0.27)


# --- parameters, subclasses, removal


def test_every_argument_is_an_attribute():
    scene = floor()
    given = {
        "radius": 0.3,
        "height": 1.2,
        "up": (0, 1, 0),
        "step_offset": 0.4,
        "contact_offset": 0.02,
        "slope_limit": 0.8,
        "climbing_mode": ClimbingMode.CONSTRAINED,
        "non_walkable_mode": NonWalkableMode.FORCE_SLIDING,
        "rules": Rules.DOCUMENT,
        "overlap_recovery": False,
        "prevent_vertical_sliding": True,
        "invisible_wall_height": 1.0,
        "max_jump_height": 2.0,
        "layer": 4,
        "mask": 8,
        "collide": True,
        "on_hit": print,
        "behavior": print,
        "filter": print,
        "surface": Behavior.CAN_SLIDE,
        "user_data": "me",
    }
    hero = CharacterController(scene, position=(1, 2, 3), **given)
    twin = CharacterController(scene, position=(1, 2, 3))
    for name, value in given.items():
        assert getattr(hero, name) == value
        setattr(twin, name, value)
        assert getattr(twin, name) == value
    assert twin.save() == hero.save() and hero.scene is scene and hero.position == (1, 2, 3)
    with pytest.raises(AttributeError):
        hero.scene = Scene()


def test_subclasses():
    class Hero(CharacterController):
        def __init__(self, scene, name):
            super().__init__(scene, (0, 0, REST))
            self.name = name
            self.moves = 0

        def move(self, displacement, dt, **more):
            self.moves += 1
            return super().move(displacement, dt, **more)

        def probe_ground(self, max_distance):
            raise AssertionError("not called by the core")

        @property
        def position(self):
            raise AssertionError("not called by the core")

        ask = filter = behavior = publish = watch = None

    hero = Hero(floor(), "ann")
    assert hero.move(GRAVITY, DT) == DOWN and hero.moves == 1
    assert hero.snap_to_ground(1) is False
    assert "Hero" in repr(type(hero)) and hero.name == "ann"
    assert hero.scene.characters == [hero]
    twin = copy.copy(hero)
    assert type(twin) is Hero and twin.name == "ann" and twin.moves == 1 and twin.save() == hero.save()


def test_remove_is_final():
    scene = floor()
    hero = hero_in(scene, collide=True)
    hero.move(GRAVITY, DT)
    before = hero.save(), hero.position
    hero.remove()
    assert scene.characters == [] and scene.character(hero.id) is None
    for call in (
        lambda: hero.move(GRAVITY, DT),
        lambda: hero.probe_ground(1),
        lambda: hero.explain(GRAVITY, DT),
        lambda: hero.resize(2),
        lambda: hero.restore(before[0]),
        lambda: hero.add_proxy(),
        lambda: hero.unstick(),
        lambda: hero.remove(),
    ):
        with pytest.raises(RuntimeError, match="removed"):
            call()
    assert (hero.save(), hero.position) == before


def test_no_step_may_leave_the_bounds_of_the_world():
    hero = hero_in(Scene(), x=9e11)
    before = seen(hero)
    with pytest.raises(ValueError, match="displacement"):
        hero.move((9e11, 0, 0), DT)
    assert seen(hero) == before
    hero.move((-9e11, 0, 0), DT)
    assert hero.position[0] == 0


# --- save, restore, copy, pickle


def trail(hero, moves):
    out = []
    for d in moves:
        hero.move(d, DT)
        out.append(seen(hero)[:4])
    return out


def moves(seed=1, count=80):
    d = np.random.default_rng(seed).normal(size=(count, 3)) * (0.2, 0.1, 0.02) - (0, 0, 0.04)
    d[::13, 2] = 0.25
    return [tuple(map(float, v)) for v in d]


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
@pytest.mark.parametrize("climbing", ["easy", "constrained"])
@pytest.mark.parametrize("mode", ["prevent_climbing", "force_sliding"])
def test_a_restored_character_repeats_the_moves_to_the_bit(rules, climbing, mode):
    scene = room()
    scene.add(
        slope(55, -3.5, -1.5).__class__([(-3, -5, 0), (-1, -5, 3), (-1, 5, 3), (-3, 5, 0)], [(0, 1, 2), (0, 2, 3)])
    )
    hero = hero_in(scene, z=2, rules=rules, climbing_mode=climbing, non_walkable_mode=mode, collide=True)
    for seed in range(4):
        trail(hero, moves(seed, 15))
        kept = hero.save()
        there = trail(hero, moves(seed + 50))
        hero.restore(kept)
        assert hero.save() == kept and hero.hits == [] and hero.explain_last() is None
        assert trail(hero, moves(seed + 50)) == there
        # Another character repeats the moves as well.
        hero.restore(kept)
        hero.collide = False
        other = hero_in(scene)
        other.restore(kept)
        other.collide = False
        assert [t[1:] for t in trail(other, moves(seed + 50))] == [t[1:] for t in trail(hero, moves(seed + 50))]
        other.remove()
        hero.collide = True


def test_a_save_holds_the_pending_separation():
    scene = floor()
    a, b = hero_in(scene, collide=True), hero_in(scene, 0.5, collide=True)
    pycct.separate([a, b], 1.0)
    kept = a.save()
    a.move((0, 0, 0), DT)
    there = a.position
    assert there[0] < -0.1
    a.restore(kept)
    a.move((0, 0, 0), DT)
    assert a.position == there


def test_damaged_data_is_refused_and_changes_nothing():
    hero = hero_in(room(), z=2)
    trail(hero, moves(count=20))
    good = hero.save()
    before = seen(hero)
    rng = np.random.default_rng(0)
    bad = [b"", b"x", good[:-1], good + b"\0", b"X" + good[1:], good[: len(good) // 2], bytes(len(good)), good * 2]
    for _ in range(200):
        k = int(rng.integers(len(good)))
        bad.append(good[:k] + bytes([good[k] ^ (1 << int(rng.integers(8)))]) + good[k + 1 :])
    for data in bad:
        with pytest.raises(ValueError, match="data"):
            hero.restore(data)
        assert seen(hero) == before
    for data in (None, "text", 3, [1, 2], {}):
        with pytest.raises(TypeError, match="data"):
            hero.restore(data)
        assert seen(hero) == before
    hero.restore(bytearray(good))
    hero.restore(memoryview(good))


def test_data_of_another_version_is_refused():
    hero = hero_in(floor())
    data = hero.save()
    other = data[:8] + struct.pack("<I", struct.unpack_from("<I", data, 8)[0] + 1) + data[12:]
    with pytest.raises(ValueError, match="version"):
        hero.restore(other)


def test_forged_data_with_a_right_checksum_does_no_harm():
    # For any bytes, restoring raises or gives a character that moves.
    scene = room()
    hero = hero_in(scene, z=2)
    trail(hero, moves(count=20))
    good = hero.save()
    head, body = good[:20], good[20:]
    rng = np.random.default_rng(1)
    taken = 0
    specials = [
        struct.pack("<d", v) for v in (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 1e13, 4e11)
    ] + [b"\xff" * 8, b"\x7f" * 8, bytes(8), bytes([2] * 8)]
    for trial in range(1500):
        forged = bytearray(body)
        for _ in range(int(rng.integers(1, 4))):
            if trial % 2:
                k = int(rng.integers(len(body)))
                forged[k] = int(rng.integers(256))
            else:
                k = int(rng.integers((len(body) - 8) // 4)) * 4
                forged[k : k + 8] = specials[int(rng.integers(len(specials)))]
        data = head[:16] + struct.pack("<I", zlib.crc32(bytes(forged))) + bytes(forged)
        before = hero.save()
        try:
            hero.restore(data)
        except (ValueError, TypeError):
            assert hero.save() == before
            continue
        taken += 1
        hero.state, hero.ground, hero.hits, hero.flags, hero.rules, hero.pose, repr(hero)
        for d in ((0, 0, 0), (0.1, 0, -0.1)):
            try:
                hero.move(d, DT)
            except (ValueError, FloatingPointError):
                pass
            assert all(math.isfinite(c) for c in hero.position)
        hero.save()
        hero.restore(good)
    assert taken > 100


def test_copies_are_in_the_same_scene():
    scene = room()
    hero = hero_in(scene, z=2, user_data=["mine"], filter=len, on_hit=None)
    hero.filter = None
    trail(hero, moves(count=20))
    twin = copy.copy(hero)
    assert twin.scene is scene and twin.id != hero.id and twin.save() == hero.save()
    assert twin.user_data is hero.user_data and scene.characters == [hero, twin]
    assert [t[1:4] for t in trail(twin, moves(7))] == [t[1:4] for t in trail(hero, moves(7))]


def test_deep_copies_and_pickles_contain_the_scene_once():
    scene = room()
    a = hero_in(scene, z=2, user_data="a")
    b = hero_in(scene, -5, z=2, user_data="b")
    for h in (a, b):
        trail(h, moves(count=20))
    for remake in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        c, d = remake([a, b])
        assert c.scene is d.scene and c.scene is not scene and c.user_data == "a"
        assert c.save() == a.save() and d.save() == b.save()
        assert len(c.scene) == len(scene)
        now = a.save(), b.save()
        assert [t[1:4] for t in trail(c, moves(7))] == [t[1:4] for t in trail(copy.copy(a), moves(7))]
        assert (a.save(), b.save()) == now
        # Pickles name actors by id.
        if d.state.standing_on is not None:
            assert d.state.standing_on in c.scene.actors
    assert len(pickle.dumps([a, b])) < 1.5 * len(pickle.dumps([a]))


class Player:
    """A game's own object that refers to a character and is its user data."""

    def __init__(self, scene):
        self.hits = 0
        self.hero = hero_in(scene, user_data=self, on_hit=self.on_hit, behavior=self.behavior, filter=self.filter)

    def on_hit(self, hit):
        self.hits += 1

    def behavior(self, other):
        return other.behavior

    def filter(self, other):
        return other.user_data != "wall"


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_user_data_that_refers_to_the_character_is_copied_with_it(remake):
    scene = room()
    player = Player(scene)
    scene.actors[0].user_data = player
    player.hero.add_proxy(user_data=player.hero)
    player.hero.move((0.1, 0, -0.02), DT)
    for again in (remake(player), remake(player.hero).user_data, remake(scene).actors[0].user_data):
        hero = again.hero
        assert again is not player and hero.user_data is again and hero.on_hit.__self__ is again
        assert hero.scene is not scene and hero.scene.actors[0].user_data is again
        assert hero.proxy.user_data is hero and hero.scene.characters == [hero]
        assert hero.save() == player.hero.save() and again.hits == player.hits > 0
        hero.move((2, 0, -0.02), DT)
        assert hero.position[0] == pytest.approx(2.1) and again.hits == 2 * player.hits


def test_a_copied_scene_has_its_proxies_and_copies_never_share_one():
    scene = room()
    a, b = hero_in(scene), hero_in(scene, 0, 3)
    a.add_proxy(), b.add_proxy()
    for h in (a, b):
        h.move((0, 0, -0.02), DT)
    c, d = copy.deepcopy([a, b])
    assert c.scene is d.scene is not scene and [h.proxy.id for h in (c, d)] == [h.proxy.id for h in (a, b)]
    # The copies make the originals' moves, and their proxies follow.
    for h, twin in ((a, c), (b, d)):
        assert [t[1:4] for t in trail(twin, moves(7, 30))] == [t[1:4] for t in trail(h, moves(7, 30))]
        assert twin.proxy.position == twin.position != twin.proxy.scene.actors[0].position
    # In the same scene the proxy remains with its owner.
    e = copy.copy(a)
    assert e.proxy is None and a.proxy is not None


def test_pickling_names_callbacks_that_cannot_be_pickled():
    hero = hero_in(floor(), filter=lambda other: True)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(hero)
    assert hero.move(GRAVITY, DT) == DOWN


# --- explanations


def test_explain_describes_a_move_and_changes_nothing():
    scene = room()
    hero = hero_in(scene, z=2)
    for d in moves(3, 120):
        before = seen(hero)
        told = hero.explain(d, DT)
        assert seen(hero) == before
        assert told.start == hero.position and told.displacement == d
        flags = hero.move(d, DT)
        assert told.end == hero.position and told.flags == flags
        assert told.moved == pytest.approx(tuple(np.subtract(told.end, told.start)))
        hits = [e.hit for e in told.events if e.kind == "hit" and e.pass_ is not Pass.SENSOR]
        assert [h.position for h in hits] == [h.position for h in hero.hits]
        last = hero.explain_last()
        assert str(last) == str(told) and last.notes == []
        assert [(e.kind, e.pass_, e.position, e.vector) for e in last.events] == [
            (e.kind, e.pass_, e.position, e.vector) for e in told.events
        ]


def test_explanations_name_what_was_hit_and_why_it_stopped():
    scene = room()
    hero = hero_in(scene, climbing_mode="constrained")
    hero.move((0.9, 0.2, -0.05), DT)
    text = str(hero.explain_last())
    assert "SIDE pass" in text and "DOWN pass" in text and "UP pass" in text
    assert repr(scene.actors[1]) in text and "triangle" in text and "normal (-1, 0, 0)" in text
    assert "no contact" in text and "iteration limit" in text
    # On moving ground.
    lift = scene.actors[3]
    hero.teleport((-5, 0, REST + 0.1))
    hero.move((0, 0, -0.1), DT)
    lift.move_to((-5, 0.1, -0.4))
    assert "carried by the platform: (0, 0.1, 0)" in str(hero.explain(GRAVITY, DT))
    # A slope that is too steep, with its rerun.
    steep = hero_in(world(slope(60, -20, 20)), z=20 * math.tan(math.radians(60)) + 1.2)
    steps(steep, (0, 0, -0.1), 15)
    text = str(steep.explain_last())
    assert "too steep" in text and "walk experiment" in text
    # Motion too short, deflected backwards, and a start inside.
    hero.teleport((0, 0, REST))
    assert "the pass ends" in str(hero.explain((0, 0, -0.05), DT, min_distance=0.1))
    corner = hero_in(world(quad((1, 3, -3), (1, -3, -3), (1, -3, 3), (1, 3, 3))), step_offset=0)
    corner.move((3, 0, 0), DT)
    assert "hits" in str(corner.explain_last())
    inside = hero_in(world((Box((5, 5, 1)), (0, 0, -1))), z=REST - 0.3)
    inside.move(GRAVITY, DT)
    assert "starts in an overlap: recovery moves it by (0, 0, 0.3)" in str(inside.explain_last())
    inside.on_hit = print
    assert inside.explain_last() is not None
    aside = hero_in(world(flat(), (Box((2, 5, 0.2)), (3, 0, 0.2))), 0.55, climbing_mode="constrained", step_offset=0.3)
    steps(aside, (0.02, 0, -0.02), 20)
    text = str(aside.explain_last())
    assert "the triangle aside" in text and "higher than the step offset" in text


def test_explain_last_uses_the_mask_and_filter_of_the_call():
    scene = room()
    wall = scene.actors[1]
    hero = hero_in(scene)
    for more in ({"mask": 0}, {"filter": lambda other: other is not wall}, {"min_distance": 1.0}):
        hero.teleport((0, 0, REST))
        hero.move((0.9, 0, -0.05), DT, **more)
        told = hero.explain_last()
        assert told.end == hero.position and told.notes == []


def test_explain_last_reports_when_the_move_would_end_elsewhere_now():
    scene = room()
    hero = hero_in(scene)
    hero.move((0.9, 0, -0.05), DT)
    scene.remove(scene.actors[1])
    told = hero.explain_last()
    assert told.end != hero.position and any("changed" in n for n in told.notes) and "note:" in str(told)


def test_a_move_that_fails_leaves_the_one_before():
    scene = room()
    hero = hero_in(scene)

    def fails(_):
        raise KeyError("no")

    # Enough failures that each of the buffers of a state takes its turn.
    for k in range(5):
        hero.move((0.3, 0.02 * k, -0.05), DT)
        before = str(hero.explain_last()), hero.save(), [str(hit) for hit in hero.hits], hero.position
        for name in ("on_hit", "filter", "behavior"):
            setattr(hero, name, fails)
            with pytest.raises(KeyError):
                hero.move((-0.2, 0.1, -0.05), DT)
            setattr(hero, name, None)
            assert (str(hero.explain_last()), hero.save(), [str(hit) for hit in hero.hits], hero.position) == before


def test_explain_last_after_the_origin_has_moved():
    scene = room()
    hero = hero_in(scene)
    hero.move((0.9, 0, -0.05), DT)
    scene.shift_origin((100, 0, 8))
    told = hero.explain_last()
    assert told.notes == [] and told.end == pytest.approx(hero.position, abs=1e-9)
    assert told.start == pytest.approx((-100, 0, REST - 8))


def test_riders_ride_on_after_the_origin_has_moved():
    places = []
    for shift in ((0, 0, 0), (64, -32, 16)):
        scene = room()
        lift = scene.actors[3]
        hero = hero_in(scene, -5, z=REST + 0.1)
        hero.move((0, 0, -0.1), DT)
        scene.shift_origin(shift)
        x, y, z = lift.position
        lift.move_to((x + 0.25, y, z + 0.125))
        hero.move(GRAVITY, DT)
        assert hero.state.standing_on is lift and hero.state.platform_delta == pytest.approx((0.25, 0, 0.125))
        places.append(np.add(hero.position, shift))
    assert places[0] == pytest.approx(places[1], abs=1e-9)


def test_explanations_with_callbacks():
    scene = room()
    asked, hits = [], []
    hero = hero_in(
        scene, filter=lambda o: asked.append(o) or True, behavior=lambda o: asked.append(o) or 0, on_hit=hits.append
    )
    told = hero.explain((0.9, 0, -0.05), DT)
    # Explaining calls neither filter nor on_hit: nothing happens.
    assert asked and not hits and told.flags == SIDES | DOWN


# --- warnings, once per cause


def warned(caplog):
    out = [r.getMessage() for r in caplog.records if r.name == "pycct"]
    caplog.clear()
    return out


def test_stuck_is_logged_once(caplog):
    caplog.set_level(logging.WARNING, "pycct")
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    steps(hero, (0.1, 0, -0.02), 10)
    assert warned(caplog) == []
    steps(hero, (0.1, 0, -0.02), 30)
    (text,) = warned(caplog)
    assert "stuck" in text and "explain_last" in text
    steps(hero, (-0.1, 0, -0.02), 5)
    hero.position = (1 - RADIUS - OFFSET, 0, REST)
    steps(hero, (0.1, 0, -0.02), 30)
    assert warned(caplog) == []


@pytest.mark.parametrize(
    "d", [(0, 0, 0), (0, 0, -0.02), (1e-9, 0, -0.02)], ids=["nothing", "gravity", "next to nothing"]
)
def test_the_idle_are_not_stuck(caplog, d):
    caplog.set_level(logging.WARNING, "pycct")
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    steps(hero, d, 50)
    assert warned(caplog) == []


def test_slow_characters_are_not_stuck(caplog):
    caplog.set_level(logging.WARNING, "pycct")
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    for k in range(60):
        hero.move((0.1, 0.001 if k % 9 == 8 else 0, -0.02), DT)
    assert warned(caplog) == []


def test_legal_moves_log_no_surprise(caplog):
    # MOVE 14.5 as RULES corrects it: the bound includes step, ride and recovery.
    caplog.set_level(logging.WARNING, "pycct")
    scene = room()
    lift = scene.actors[3]
    hero = hero_in(scene, z=2)
    trail(hero, moves(5, 150))
    hero.teleport((-5, 0, REST + 0.1))
    hero.move((0, 0, -0.1), DT)
    for k in range(1, 20):
        lift.move_to((-5, 0.5 * k, -0.4 + 0.5 * k))
        hero.move((0, 0, -0.001), DT)
    hero.teleport((-1.5, 0, REST - 0.2))
    hero.move((0.001, 0, -0.001), DT)
    assert [w for w in warned(caplog) if "stuck" not in w] == []


def test_nothing_is_printed_without_a_log_handler(capsys):
    hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
    steps(hero, (0.1, 0, -0.02), 40)
    out = capsys.readouterr()
    assert out.out == "" and out.err == ""


def test_warnings_change_no_move(caplog):
    def run(level):
        caplog.set_level(level, "pycct")
        hero = hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET)
        steps(hero, (0.1, 0, -0.02), 40)
        return hero.save()

    assert run(logging.WARNING) == run(logging.CRITICAL)


# --- guards (MOVE 14)


@pytest.mark.parametrize("d", [(0, 0, 0), (-0.0, 0.0, -0.0)])
def test_a_displacement_of_zero(d):
    hero = hero_in(world(flat()))
    hero.move((0.1, 0, -0.1), DT)
    at = hero.position
    assert hero.move(d, DT) == CollisionFlags.NONE
    assert hero.position == at and hero.velocity == (0, 0, 0) and hero.stats.iterations == 0 and hero.hits == []


@pytest.mark.parametrize("size", [1e-30, 1e-160, 5e-324, 1e-12])
@pytest.mark.parametrize("way", [(1, 0, 0), (0, 0, -1), (0, 0, 1), (1, 1, -1)])
@pytest.mark.parametrize("mode", ["easy", "constrained"])
def test_tiny_displacements(size, way, mode):
    # Against floor and wall, and free: no error, no jump, and only finite numbers.
    for hero in (
        hero_in(world(flat(), wall_at(1.0)), x=1 - RADIUS - OFFSET, climbing_mode=mode),
        hero_in(Scene(), climbing_mode=mode),
    ):
        start = hero.position
        for _ in range(20):
            hero.move(tuple(size * c for c in way), DT)
            assert math.dist(start, hero.position) <= 1e-10
            assert all(math.isfinite(c) for c in (*hero.position, *hero.velocity))
            assert all(math.isfinite(c) for h in hero.hits for c in (*h.position, *h.normal, *h.direction, h.time))


def test_tiny_displacements_add_up():
    # RULES 1: min_distance is 0 by default.
    hero = hero_in(world(flat()))
    for _ in range(1000):
        hero.move((1e-5, 0, -1e-5), DT)
    assert hero.position == pytest.approx((0.01, 0, REST), abs=1e-9)
    lazy = hero_in(world(flat()))
    for _ in range(1000):
        lazy.move((1e-5, 0, -1e-5), DT, min_distance=0.001)
    assert lazy.position[0] == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("axis", range(3))
def test_values_that_are_not_finite_are_refused(bad, axis):
    hero = hero_in(world(flat()))
    hero.move((0.1, 0, -0.1), DT)
    before = seen(hero)
    d = [0.1, 0.1, -0.1]
    d[axis] = bad
    for call in (lambda: hero.move(d, DT), lambda: hero.explain(d, DT), lambda: hero.teleport(d)):
        with pytest.raises(ValueError, match="finite"):
            call()
        assert seen(hero) == before


def test_huge_displacements_end():
    hero = hero_in(world(flat(1e4), wall_at(900)), non_walkable_mode="force_sliding", climbing_mode="constrained")
    for d in ((1e6, 1e3, -1e6), (-1e11, 0, -1), (1e11, 1e11, -1e11), (0, 0, 1e11)):
        hero.move(d, DT)
        assert all(math.isfinite(c) for c in hero.position)
        assert hero.stats.iterations < 100
        hero.teleport((0, 0, 2))


def test_every_pass_ends_after_a_bounded_number_of_iterations():
    # MOVE 14.4: the number of iterations stays below the safety limit of 100.
    most = dict.fromkeys((0, Behavior.CAN_SLIDE), 0)
    for seed in range(1, 9):
        rng = np.random.default_rng(seed)
        v = rng.uniform(-3, 3, (300, 3))
        scene = world(Mesh(v, np.arange(300).reshape(-1, 3), two_sided=True))
        for slides in most:
            hero = hero_in(
                scene, non_walkable_mode="force_sliding", climbing_mode="constrained", behavior=lambda o, s=slides: s
            )
            for _ in range(300):
                hero.move(rng.normal(size=3) * 0.5, DT)
                most[slides] = max(most[slides], hero.stats.iterations)
                if max(map(abs, hero.position)) > 3:
                    hero.teleport(rng.uniform(-2, 2, 3))
    assert all(10 < n < 100 for n in most.values())


def test_state_objects_hold_no_scene_alive_by_themselves():
    scene = room()
    hero = hero_in(scene)
    hero.move(GRAVITY, DT)
    gone = weakref.ref(scene)
    stats = hero.stats
    del hero, scene
    gc.collect()
    assert gone() is None and stats.iterations >= 1
