"""More faults that users of other controllers reported: origin shifts, rollback, numbers, threads.

Each test plays the kind of a report (R59 to R77) with `robust` and with numbers of its own.
"""

import math
import threading
import time

import numpy as np
import pytest
from reports import RIDES, about

from pycct import (
    Box,
    Capsule,
    CharacterController,
    ConvexHull,
    Crowd,
    CubeWorld,
    Heightfield,
    Mesh,
    Plane,
    Scene,
    SweepSlideController,
    contacts_between,
    distance_between,
)
from pycct.slide import clip_velocity_multi_plane

C0 = {"radius": 0.3, "height": 1.2, "contact_offset": 0.02, "step_offset": 0.3, "rules": "robust"}
DT = 1 / 60


def hero_on(scene, foot, **more):
    hero = CharacterController(scene, **(C0 | more))
    hero.foot_position = foot
    return hero


def box_mesh(lo, hi):
    corners = [(x, y, z) for x in (lo[0], hi[0]) for y in (lo[1], hi[1]) for z in (lo[2], hi[2])]
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Mesh(corners, [t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])


# --- origin shifts and rollback


PLACE = np.array([4096.0, -2048.0, 64.0])


def _at(x, y, z):
    return np.add(PLACE, (x, y, z))


def _shifted_run(every, offset, mirror):
    """Play 240 frames; return places without the shifts, and what the second character reports."""
    scene = Scene()
    rough = 0.15 * np.sin(np.add.outer(0.9 * np.arange(41), 0.7 * np.arange(41)))
    scene.add(Heightfield(rough), position=_at(-20, -20, 0))
    lift = scene.add(Box((1, 1, 0.1)), position=_at(5, 0, 0.3), **RIDES)
    block = scene.add_obstacle(Box((0.5, 0.5, 0.5)), position=_at(-5, 2, 0.5))
    scene.add(box_mesh((0, 0, 0), (1, 2, 1.5)), position=_at(-6, -6, 0), scale=mirror)
    rider = hero_on(scene, _at(5, 0, 0.45))
    walker = hero_on(scene, _at(-8, 1.7, 0.4))
    crowd = Crowd(scene, PLACE + [(0.9 * k, -9, 1.6) for k in range(6)], **C0)
    shift = np.zeros(3)
    places, told = [], []
    for k in range(240):
        if every and k and k % every == 0:
            scene.shift_origin(offset)
            shift += offset
        lift.move_to(_at(5 + 0.01 * k, 0, 0.3 + 0.012 * k) - shift)
        block.move_to(_at(-5 + 0.01 * k, 2, 0.5) - shift)
        if k == 100:
            walker.teleport(_at(-8, -5.5, 1.7) - shift)
        rider.move((0.004, 0, 0.1 - 0.004 * k if 60 <= k < 80 else -0.04), DT)
        walker.move((0.05, 0.002, -0.05), DT)
        a = 0.02 * k
        crowd.move(np.tile((0.03 * math.cos(a), 0.03 * math.sin(a), -0.05), (6, 1)), DT)
        places.append(np.concatenate([np.array([rider.position, walker.position]) + shift, crowd.positions + shift]))
        ground = [] if walker.ground is None else [np.add(walker.ground.point, shift)]
        hits = [np.add(h.position, shift) for h in walker.hits]
        told.append(np.array([rider.state.platform_delta, walker.velocity, *ground, *hits]))
    return np.array(places), told


@pytest.mark.parametrize("every, offset", [(30, (512.0, -256.0, 8.0)), (7, (-64.0, 32.0, 0.5)), (1, (1.0, 2.0, -0.25))])
@pytest.mark.parametrize("mirror", [(1, 1, 1), (-1, 1, 1)])
def test_r59_an_origin_shift_changes_no_path(every, offset, mirror):
    places, told = _shifted_run(0, offset, mirror)
    shifted, shifted_told = _shifted_run(every, offset, mirror)
    assert np.abs(places - shifted).max() < 1e-6
    for one, other in zip(told, shifted_told, strict=True):
        assert one.shape == other.shape and np.abs(one - other).max() < 1e-6
    # The lift carries its rider, the walker meets the obstacle, and the crowd walks.
    assert places[-1, 0, 2] - places[0, 0, 2] > 2
    assert max(len(t) for t in told) > 3
    assert np.abs(np.diff(places[:, 2:], axis=0)).max() > 0.02


@pytest.mark.parametrize("replacement", ["another lift", "an obstacle", "nothing"])
def test_r61_a_state_saved_on_a_removed_lift_rides_nothing_else(replacement):
    scene = Scene()
    lift = scene.add(Box((1, 1, 0.1)), position=(0, 0, -0.1), **RIDES)
    hero = hero_on(scene, (0, 0, 0.02))
    for _ in range(5):
        hero.move((0, 0, -0.02), DT)
    assert hero.state.standing_on is lift
    saved = hero.save()
    scene.remove(lift)
    hero.move((0, 0, -0.02), DT)
    hero.restore(saved)
    other = None
    if replacement == "another lift":
        other = scene.add(Box((1, 1, 0.1)), position=(0, 0, -3.1), **RIDES)
        other.move_to((0.5, 0.25, -3.0))
    elif replacement == "an obstacle":
        other = scene.add_obstacle(Box((1, 1, 0.1)), position=(0, 0, -3.1))
        other.move_to((0.5, 0.25, -3.0))
    before = hero.position
    hero.move((0, 0, -0.05), DT)
    assert hero.position == pytest.approx(np.add(before, (0, 0, -0.05)), abs=1e-9)
    assert hero.state.standing_on is None and hero.state.platform_delta == (0, 0, 0)


@pytest.mark.parametrize("back", [1, 8, 13])
@pytest.mark.parametrize("last_first", [False, True])
def test_r61_replayed_frames_have_the_same_bits(back, last_first):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    lift = scene.add(Box((1, 1, 0.1)), position=(0, 0, -0.05), **RIDES)
    ram = scene.add(Box((0.5, 1, 1)), position=(-4, 0, 1), **RIDES)
    heroes = [hero_on(scene, (0.2, 0, 0.07), collide=True), hero_on(scene, (-2, 0.1, 0.02), collide=True)]
    crowd = Crowd(scene, [(0.8 * k - 2, 3, 1) for k in range(6)], collide=True, **C0)

    def play(k):
        lift.move_to((0, 0, -0.05 + 0.5 * (1 - math.cos(0.05 * k))))
        ram.move_to((-4 + 1.5 * (1 - math.cos(0.04 * k)), 0, 1))
        heroes[0].move((0.01 * math.sin(0.1 * k), 0.01, -0.05), DT)
        heroes[1].move((0.02 * math.cos(0.05 * k), 0, -0.05), DT)
        crowd.move(np.tile((0.02 * math.sin(0.07 * k), -0.02 * math.cos(0.03 * k), -0.05), (6, 1)), DT)
        crowd.separate(DT)
        return [h.state_hash() for h in heroes] + [crowd.state_hash()]

    saves, hashes = {}, {}
    for k in range(200):
        saves[k] = [h.save() for h in heroes] + [crowd.save()]
        hashes[k] = play(k)
        if k % 10 == 9 and k >= back:
            first = k - back + 1
            lift.move_to((0, 0, -0.05 + 0.5 * (1 - math.cos(0.05 * (first - 1)))))
            ram.move_to((-4 + 1.5 * (1 - math.cos(0.04 * (first - 1))), 0, 1))
            pairs = list(zip([*heroes, crowd], saves[first], strict=True))
            for who, data in reversed(pairs) if last_first else pairs:
                who.restore(data)
            for j in range(first, k + 1):
                assert play(j) == hashes[j], (k, j)


@pytest.mark.parametrize("far", [1e6, 1e9, 1e11])
@pytest.mark.parametrize("side", [0.0, 3.0])
def test_r72_one_far_vertex_changes_nothing_near(far, side):
    n = 20
    grid = [(x, y, 0.0) for x in range(-n // 2, n // 2 + 1) for y in range(-n // 2, n // 2 + 1)]
    faces = []
    for i in range(n):
        for j in range(n):
            a = i * (n + 1) + j
            faces += [(a, a + n + 1, a + n + 2), (a, a + n + 2, a + 1)]
    far_one = len(grid)
    grid += [(far, side, -1.0), (far, far, -1.0), (-far, far, -far)]
    scene = Scene()
    scene.add(Mesh(grid, [*faces, (far_one, far_one + 1, far_one + 2)]))
    rng = np.random.default_rng(3)
    capsule = Capsule(0.3, 1.2)
    for x, y in rng.uniform(-8, 8, (200, 2)):
        assert scene.overlap(capsule, (x, y, 0.85))
        assert not scene.overlap(capsule, (x, y, 0.92))
        hit = scene.raycast((x, y, 2.0), (0, 0, -1), 5.0)
        assert hit is not None and abs(hit.distance - 2.0) < 1e-9
    hero = hero_on(scene, (-7, 0.3, 0.02))
    for k in range(280):
        hero.move((0.05, 0.001, -0.05), DT)
        assert hero.foot_position == pytest.approx((-7 + 0.05 * (k + 1), 0.3 + 0.001 * (k + 1), 0), abs=1e-9)
        assert hero.grounded


# --- heights, slabs, planes


@pytest.mark.parametrize("radius, height, step", [(0.2, 1.4, 0.5), (0.3, 0.9, 0.6), (0.15, 0.4, 0.35)])
def test_r66_the_step_offset_bounds_every_change_of_size(radius, height, step):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    hero = hero_on(scene, (0, 0, 0.02), radius=radius, height=height, step_offset=step)
    hero.move((0, 0, -0.02), DT)
    before = hero.save()
    for change, name in (
        (lambda: hero.resize(0), "height"),
        (lambda: setattr(hero, "height", step - 2 * radius - 0.01 if step > 2 * radius else -0.1), "height"),
        (lambda: setattr(hero, "radius", 0.0), "radius"),
        (lambda: setattr(hero, "step_offset", height + 2 * radius + 0.01), "step_offset"),
    ):
        if name == "height" and step <= 2 * radius:
            continue
        with pytest.raises(ValueError, match=name):
            change()
        assert hero.save() == before
    foot = hero.foot_position
    hero.step_offset = min(step, 0.1)
    hero.resize(0)
    assert hero.foot_position == pytest.approx(foot, abs=1e-9)
    for _ in range(60):
        hero.move((0.02, 0, -0.02), DT)
        assert hero.foot_position[2] > -1e-9 and hero.grounded
    assert hero.foot_position[0] == pytest.approx(1.2, abs=1e-9)
    hero.resize(height)
    assert hero.foot_position == pytest.approx((1.2, 0, foot[2]), abs=1e-9)


def test_r66_crouching_in_a_jump_keeps_the_foot():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    hero = hero_on(scene, (0, 0, 0.02), radius=0.2, height=1.4)
    speed, other = 5.0, 0.4
    for k in range(90):
        if k in (10, 50):
            foot = hero.foot_position
            hero.resize(other)
            assert hero.foot_position == pytest.approx(foot, abs=1e-9)
            other = 1.4
        hero.move((0, 0, speed * DT), DT)
        speed = 0.0 if hero.grounded else speed - 9.81 * DT
        assert hero.foot_position[2] > -1e-9
    assert hero.grounded and hero.height == 1.4


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("radius", [0.3, 0.4])
@pytest.mark.parametrize("power", range(5))
def test_r62_faces_at_powers_of_sixteen_stop_a_character(sign, radius, power):
    face = 2.0 * 16.0**power
    for co in (0.0, 0.02):
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        scene.add(Box((0.5, 3, 2)), position=(sign * (face + 0.5), 0, 2))
        hero = hero_on(scene, (sign * (face - 2), 0.1, 0.02), radius=radius, contact_offset=co)
        deepest = 0.0
        for _ in range(200):
            hero.move((sign * 0.05, 0, -0.02), DT)
            deepest = max([deepest, *(p.depth for p in scene.penetration(hero.shape, *hero.pose))])
        assert deepest < 1e-6
        assert abs(hero.position[0]) == pytest.approx(face - radius - co, abs=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("radius", [0.3, 0.4])
@pytest.mark.parametrize("power", range(5))
def test_r62_cubes_at_powers_of_sixteen_stop_a_character(sign, radius, power):
    face = 2 * 16**power
    cell = face if sign > 0 else -face - 1
    world = CubeWorld()
    for x in range(-3, 4):
        for z in range(-3, 4):
            world.add((sign * face + x, -1, z))
    for y in range(4):
        for z in range(-3, 4):
            world.add((cell, y, z))
    runner = SweepSlideController(world, (sign * (face - 1.5), 0.05, 0.5), radius=radius)
    deepest = 0.0
    for _ in range(200):
        runner.step((sign * 4.0, 0, 0), DT)
        deepest = max(deepest, runner.penetration)
    assert deepest < 1e-6
    assert abs(runner.feet[0]) == pytest.approx(face - radius - runner.skin_width, abs=1e-4)


@pytest.mark.parametrize("top", [0.5, 0.1, 0.3, 1 / 3, 0.7])
@pytest.mark.parametrize("heading", [0.0, 45.0, 203.0])
def test_r64_a_character_exactly_on_slabs_walks(top, heading):
    scene = Scene()
    for x in range(13):
        for y in range(13):
            scene.add(Box((0.5, 0.5, top / 2)), position=(x - 6, y - 6, top / 2))
    hero = hero_on(scene, (0.1, 0.2, top), contact_offset=0.0, step_offset=0.0)
    start = hero.position
    way = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0]) * 0.05
    for k in range(60):
        hero.move(tuple(way), DT)
        assert hero.position == pytest.approx(np.add(start, (k + 1) * way), abs=1e-9)
    for k in range(60, 70):
        hero.move(tuple(np.add(way, (0, 0, -0.01))), DT)
        assert hero.position == pytest.approx(np.add(start, (k + 1) * way), abs=1e-9)
        assert hero.grounded


@pytest.mark.parametrize("top", [0.5, 0.1, 0.3, 1 / 3, 0.7])
def test_r64_a_runner_exactly_on_slabs_walks(top):
    world = CubeWorld()
    for x in range(-6, 7):
        for z in range(-6, 7):
            world.add_box((x, top / 2, z), (0.5, top / 2, 0.5))
    for how in ("slide", "step"):
        runner = SweepSlideController(world, (0.1, top, 0.2), skin_width=0.03)
        heights = []
        for _ in range(60):
            if how == "step":
                runner.step((2.0, 0, 1.0), DT)
                assert runner.grounded
            else:
                runner.sweep_and_slide((2.0, 0, 1.0), DT)
            heights.append(runner.feet[1])
        assert runner.feet[0] == pytest.approx(2.1, abs=1e-6) and runner.feet[2] == pytest.approx(1.2, abs=1e-6)
        assert max(heights) - min(heights) < 1e-6 and -1e-6 <= heights[0] - top <= 0.03 + 1e-6


@pytest.mark.parametrize("degrees", [10, 20, 45, 60, 89])
def test_r65_two_walls_leave_their_crease(degrees):
    a = math.radians(degrees)
    first, second = np.array([0.0, 0, 1]), np.array([-math.sin(a), 0, -math.cos(a)])
    out = np.array(clip_velocity_multi_plane((1, 0.5, -0.01), [tuple(first), tuple(second)]))
    assert out == pytest.approx((0, 0.5, 0), abs=0.01)
    floor = clip_velocity_multi_plane((1, -3, 0), [(0, 1, 0), (-1, 0, 0)])
    assert np.linalg.norm(floor) < 0.01
    assert clip_velocity_multi_plane((1, -3, 2), [(0, 1, 0), (-1, 0, 0)]) == pytest.approx((0, 0, 2), abs=0.01)


def test_r65_no_result_leads_into_a_plane_or_is_faster():
    rng = np.random.default_rng(65)
    for _ in range(3000):
        planes = rng.normal(size=(rng.integers(1, 5), 3))
        planes /= np.linalg.norm(planes, axis=1)[:, None]
        v = rng.normal(size=3) * rng.uniform(0.1, 20)
        out = np.array(clip_velocity_multi_plane(v, planes))
        size = np.linalg.norm(v)
        assert (planes @ out).min() > -1e-6 * size and np.linalg.norm(out) <= size * 1.0011


@pytest.mark.parametrize("degrees", [13, 20, 38])
def test_r65_a_runner_rests_in_a_crease_and_comes_out(degrees):
    world = CubeWorld()
    world.add_box((0, -0.5, 0), (20, 0.5, 20))
    turn = about((0, 1, 0), degrees)
    world.add_box((4, 1, 0), (1, 1, 6), turn)
    world.add_box((0, 1, 4), (6, 1, 1), turn)
    runner = SweepSlideController(world, (0, 0.05, 0))
    for _ in range(240):
        runner.step((3.0, 0, 3.0), DT)
    rest = np.array(runner.feet)
    for _ in range(60):
        runner.step((3.0, 0, 3.0), DT)
        assert np.linalg.norm(runner.feet - rest) < 0.002
    for _ in range(60):
        runner.step((-2.0, 0, -2.0), DT)
    assert np.linalg.norm((runner.feet - rest)[[0, 2]]) > 2.5


# --- distances


def test_r71_distances_and_contacts_of_capsules():
    still = (0, 0, 0, 1)
    inside = distance_between(Capsule(1.0, math.sqrt(27.0)), Box((10, 10, 10)), ((-4.5, -4.5, -4.5), _z_to((1, 1, 1))))
    # The way out through a face at -10: from -3, and the radius.
    assert inside.distance == pytest.approx(-8, abs=1e-9)
    over = distance_between(Capsule(0.15, 1.0), Box((0.1, 0.1, 0.1)), ((0, 0, 0.85), _z_to((1, 0, 0))))
    assert over.distance == pytest.approx(0.85 - 0.1 - 0.15, abs=1e-12)
    beside = contacts_between(Capsule(0.25, 20.0), Box((1, 1, 1)), ((2, 2, 0), _z_to((1, 0, 0))))
    assert beside.count == 2 and beside.distances == pytest.approx([0.75, 0.75], abs=1e-9)
    crossed = distance_between(
        Capsule(0.1, 2.0), Capsule(0.1, 2.0), ((1, 0, 0), _z_to((1, 0, 0))), ((1, 1, 0), still)
    )
    assert crossed.distance == pytest.approx(0.8, abs=1e-12)
    assert crossed.point_a == pytest.approx((1, 0.1, 0)) and crossed.point_b == pytest.approx((1, 0.9, 0))
    edge = ConvexHull([(0, -1, 0), (0, 1, 0), (-1, 0, -0.5)])
    near = contacts_between(Capsule(0.25, 1.0), edge, ((0.2, 0, 0.1), _z_to((0, 1, 0))))
    assert near.count >= 1 and min(near.distances) == pytest.approx(math.hypot(0.2, 0.1) - 0.25, abs=1e-9)
    touch = distance_between(Capsule(0.5, 1.0), Box((1, 1, 1)), ((0.4, 0.3, 2.0), still))
    assert touch.distance == pytest.approx(0, abs=1e-12)
    assert touch.point_b == pytest.approx((0.4, 0.3, 1), abs=1e-9)


def _z_to(axis):
    """The rotation that turns the axis of a capsule to a direction."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    across = np.cross((0, 0, 1.0), axis)
    if np.linalg.norm(across) < 1e-12:
        return (0, 0, 0, 1)
    return about(across, math.degrees(math.acos(axis[2])))


def test_r71_distance_of_two_boxes_agrees_with_projections():
    rng = np.random.default_rng(71)
    for _ in range(40):
        a, b = rng.uniform(0.3, 1.2, (2, 3))
        qa, qb = (rng.normal(size=4) for _ in range(2))
        qa, qb = qa / np.linalg.norm(qa), qb / np.linalg.norm(qb)
        pb = rng.normal(size=3)
        pb *= rng.uniform(3.2, 4.5) / np.linalg.norm(pb)
        ra, rb = _matrix(qa), _matrix(qb)
        x = pb.copy()
        for _ in range(20000):
            y = ra @ np.clip(ra.T @ x, -a, a)
            x, last = pb + rb @ np.clip(rb.T @ (y - pb), -b, b), x
            if np.abs(x - last).max() < 1e-15:
                break
        got = distance_between(Box(a), Box(b), ((0, 0, 0), tuple(qa)), (tuple(pb), tuple(qb)))
        assert got.distance == pytest.approx(np.linalg.norm(x - y), abs=1e-7)


def _matrix(q):
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_r71_boxes_that_touch_have_distance_zero():
    rng = np.random.default_rng(17)
    for _ in range(300):
        a, b = rng.uniform(0.2, 2, (2, 3))
        axis, sign = rng.integers(3), rng.choice((-1, 1))
        shift = rng.uniform(-0.9, 0.9, 3) * (a + b)
        shift[axis] = sign * (a[axis] + b[axis])
        q = rng.normal(size=4)
        q /= np.linalg.norm(q)
        place = tuple(_matrix(q) @ shift)
        one = distance_between(Box(a), Box(b), ((0, 0, 0), tuple(q)), (place, tuple(q)))
        other = distance_between(Box(b), Box(a), (place, tuple(q)), ((0, 0, 0), tuple(q)))
        assert abs(one.distance) < 1e-12 and one.distance == other.distance


# --- threads


def test_r77_a_scene_may_change_while_characters_move_in_threads():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.09), **RIDES)
    heroes = [hero_on(scene, (0.9 * k - 3, 0.4 * k, 0.05)) for k in range(8)]
    end = time.monotonic() + 1.0
    errors, low = [], []

    def walk(mine):
        k = 0
        try:
            while time.monotonic() < end:
                k += 1
                for j, hero in enumerate(mine):
                    hero.move((0.03 * math.cos(0.05 * k + j), 0.03 * math.sin(0.04 * k), -0.05), DT)
                    low.append(hero.foot_position[2])
        except Exception as e:
            errors.append(e)

    def edit():
        k = 0
        try:
            while time.monotonic() < end:
                k += 1
                lift.move_to((0, 0, -0.09 + 0.3 * (1 - math.cos(0.05 * k))))
                wall = scene.add(box_mesh((-4, 5, 0), (4, 5.2, 2)))
                assert scene.raycast((0, 4, 1), (0, 1, 0), 3.0) is not None
                scene.remove(wall)
        except Exception as e:
            errors.append(e)

    jobs = (walk, (heroes[:4],)), (walk, (heroes[4:],)), (edit, ())
    threads = [threading.Thread(target=f, args=a) for f, a in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(low) > 100 and min(low) > -1e-6


def test_r77_one_character_in_two_threads_stays_whole():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    hero = hero_on(scene, (0, 0, 0.02))
    hero.move((0, 0, -0.02), DT)
    start = hero.position
    made, errors = [0, 0], []

    def walk(who):
        for _ in range(3000):
            try:
                hero.move((0.01, 0, -0.02), DT)
                made[who] += 1
            except RuntimeError:
                pass
            except Exception as e:
                errors.append(e)

    threads = [threading.Thread(target=walk, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and sum(made) > 0
    assert hero.position == pytest.approx(np.add(start, (0.01 * sum(made), 0, 0)), abs=1e-6)
