"""More faults that users of other controllers reported: ground, platforms, lifts, walls, crowds.

Each test plays the kind of a report (R47 to R89) with `robust` and with numbers of its own.
"""

import math

import numpy as np
import pytest
from reports import RIDES, about

from pycct import Box, Capsule, CharacterController, ConvexHull, Crowd, Mesh, Plane, Scene, Sphere, separate

R, H, CO = 0.35, 1.1, 0.02
HALF = R + H / 2
DT = 1 / 60


def hero_on(scene, foot=(0, 0, 0), **more):
    more = {"radius": R, "height": H, "contact_offset": CO, "step_offset": 0.3, "rules": "robust"} | more
    hero = CharacterController(scene, **more)
    hero.foot_position = foot
    return hero


def level(*bodies):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for shape, position in bodies:
        scene.add(shape, position=position)
    return scene


def quad(*corners, two_sided=False):
    return Mesh(corners, [(0, 1, 2), (0, 2, 3)], two_sided=two_sided)


def depth(hero):
    return max((p.depth for p in hero.scene.penetration(hero.shape, *hero.pose)), default=0.0)


def positions(hero, displacement, count, before=None):
    path = []
    for k in range(count):
        if before is not None:
            before(k)
        hero.move(displacement, DT)
        path.append(hero.position)
    return np.array(path)


# --- ground


@pytest.mark.parametrize("degrees", [0, 12, 28])
@pytest.mark.parametrize("fall", ["gravity", "constant", "walking"])
def test_r47_grounded_does_not_alternate(degrees, fall):
    k = math.tan(math.radians(degrees))
    scene = Scene()
    scene.add(quad((-30, -30, -30 * k), (30, -30, 30 * k), (30, 30, 30 * k), (-30, 30, -30 * k)))
    hero = hero_on(scene, (0, 0, 0.05 + R / math.cos(math.radians(degrees)) - R))
    speed, seen, path = 0.0, [], []
    for _ in range(700):
        speed = -9.81 / 60 if fall == "constant" else (0.0 if hero.grounded else speed) - 9.81 / 60
        hero.move((0, 0.02 if fall == "walking" else 0, speed / 60), DT)
        seen.append(hero.grounded)
        path.append(hero.position)
    path = np.array(path[100:])
    assert all(seen[100:]) and np.ptp(path[:, 2]) < 1e-6 and np.ptp(path[:, 0]) < 1e-6


@pytest.mark.parametrize("aside", [0.0, 0.04])
def test_r48_a_jump_is_in_the_air_from_its_first_frame(aside):
    hero = hero_on(level())
    for _ in range(5):
        hero.move((0, 0, -0.02), DT)
    speed, heights, grounded = 4.4, [], []
    for _ in range(60):
        hero.move((aside, 0, speed / 60), DT)
        heights.append(hero.foot_position[2])
        grounded.append(hero.grounded)
        speed -= 9.81 / 60
    high = np.array(heights) > 0.04
    assert high[:50].all() and not np.array(grounded)[high].any() and grounded[-1]


@pytest.mark.parametrize("degrees", [12, 33, 42])
def test_r84_a_displacement_along_the_slope_keeps_the_ground(degrees):
    a = math.radians(degrees)
    scene = Scene()
    scene.add(
        quad(
            (-30, -9, -30 * math.tan(a)),
            (30, -9, 30 * math.tan(a)),
            (30, 9, 30 * math.tan(a)),
            (-30, 9, -30 * math.tan(a)),
        )
    )
    hero = hero_on(scene, (0, 0, 0.1))
    for _ in range(30):
        hero.move((0, 0, -0.02), DT)
    for _ in range(90):
        before = np.array(hero.position)
        hero.move((0.04 * math.cos(a), 0, 0.04 * math.sin(a)), DT)
        hero.snap_to_ground(0.1)
        assert hero.grounded and np.linalg.norm(hero.position - before) == pytest.approx(0.04, abs=1e-3)


# --- platforms and lifts


@pytest.mark.parametrize("own", [0.0, 0.02, -0.03])
def test_r50_a_platform_does_not_carry_its_rider_through_a_wall(own):
    scene = level((Box((0.5, 6, 3)), (4.0, 0, 3)))
    deck = scene.add(Box((2.5, 2.5, 0.2)), position=(0, 0, 0.3), **RIDES)
    hero = hero_on(scene, (0, 0, 0.5))
    path = positions(hero, (own, 0, -0.02), 110, lambda k: deck.move_to((0.04 * (k + 1), 0, 0.3)))
    assert path[:, 0].max() < 3.5 - R + 1e-6 and depth(hero) < 1e-6
    assert own < 0 or path[-1, 0] == pytest.approx(3.5 - R - CO, abs=0.003)
    assert np.abs(path[5:, 2] - path[5, 2]).max() < 1e-3 or own < 0


@pytest.mark.parametrize("thick", [0.05, 0.6])
@pytest.mark.parametrize("speed", [0.015, 0.2])
@pytest.mark.parametrize("fall", [0.0, -0.02])
def test_r51_a_lift_that_presses_its_rider_into_a_ceiling_is_reported(thick, speed, fall):
    scene = level((Box((4, 4, thick)), (0, 0, 2.6 + thick)))
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), **RIDES)
    hero = hero_on(scene)
    top, worst = 0.0, 0.0
    while top < 1.25:
        top += speed
        lift.move_to((0, 0, top - 0.1))
        hero.move((0, 0, fall), DT)
        assert hero.position[2] < 2.6 and hero.position[2] > top
        worst = max(worst, hero.state.overlap)
    assert worst > 0.05
    for _ in range(80):
        top -= 0.01
        lift.move_to((0, 0, top - 0.1))
        hero.move((0, 0, -0.02), DT)
    assert hero.state.overlap == 0 and hero.foot_position[2] == pytest.approx(top, abs=0.03)


@pytest.mark.parametrize("speed", [0.03, 0.2])
@pytest.mark.parametrize("displacement", [(0, 0, 0), (0, 0, -0.03), (0.01, 0, -0.02), (0, 0, -0.14)])
def test_r53_a_one_sided_platform_lifts_its_rider(speed, displacement):
    scene = Scene()
    deck = scene.add(quad((-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)), **RIDES)
    hero = hero_on(scene)
    for k in range(50):
        deck.move_to((0, 0, speed * (k + 1)))
        hero.move(displacement, DT)
        assert hero.position[2] - HALF > speed * (k + 1) - 1e-6


def test_r56_the_carry_of_a_turntable_is_steady():
    scene = Scene()
    table = scene.add(Box((4, 4, 0.2)), position=(0, 0, -0.2), **RIDES)
    for distance in (0.6, 1.7, 3.1):
        hero = hero_on(scene, (distance, 0, 0))
        table.move_to((0, 0, -0.2), (0, 0, 0, 1))
        hero.move((0, 0, -0.02), DT)
        for k in range(1, 121):
            table.move_to((0, 0, -0.2), about((0, 0, 1), 1.5 * k))
            hero.move((0, 0, -0.02), DT)
            chord = 2 * math.hypot(*hero.position[:2]) * math.sin(math.radians(0.75))
            assert np.linalg.norm(hero.state.platform_delta) == pytest.approx(chord, abs=2e-4)


def test_r57_a_platform_that_is_put_elsewhere_takes_nobody_through_a_wall():
    scene = level((Box((0.3, 30, 3)), (8, 0, 3)))
    deck = scene.add(Box((2, 2, 0.2)), position=(0, 0, 0.2), **RIDES)
    for teleports in (False, True):
        deck.move_to((0, 0, 0.2))
        hero = hero_on(scene, (0, 0, 0.4))
        hero.move((0, 0, -0.02), DT)
        if teleports:
            hero.teleport(hero.position)
        deck.move_to((20, 0, 0.2))
        hero.move((0, 0, -0.02), DT)
        assert hero.position[0] < (1e-9 if teleports else 7.7)


@pytest.mark.parametrize("speed", [2.5, 5.0])
@pytest.mark.parametrize("adds", [False, True])
def test_r80_jumps_on_a_rising_lift_do_not_fall_through(speed, adds):
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), **RIDES)
    hero = hero_on(scene)
    rise = 0.0
    for k in range(400):
        top = speed / 60 * (k + 1)
        lift.move_to((0, 0, top - 0.1))
        if hero.grounded:
            rise = 4.5 + adds * speed if k % 7 == 0 else 0.0
        rise -= 9.81 / 60
        hero.move((0, 0, rise / 60), DT)
        assert hero.position[2] - HALF > top - 1e-6


@pytest.mark.parametrize("speed", [0.012, 0.08])
def test_r89_a_ceiling_that_comes_down_is_reported_and_lets_go(speed):
    scene = level()
    lid = scene.add(Box((3, 3, 0.5)), position=(0, 0, 2.9), body="kinematic")
    hero = hero_on(scene)
    low, worst = 2.4, 0.0
    while low > 1.1:
        low -= speed
        lid.move_to((0, 0, low + 0.5))
        hero.move((0, 0, -0.02), DT)
        worst = max(worst, hero.state.overlap)
        assert hero.foot_position[2] > -0.05
    assert worst > 0.1
    while low < 2.4:
        low += speed
        lid.move_to((0, 0, low + 0.5))
        hero.move((0, 0, -0.02), DT)
    before = hero.position
    hero.move((0.05, 0, -0.02), DT)
    assert hero.state.overlap == 0 and hero.position[0] - before[0] == pytest.approx(0.05)


@pytest.mark.parametrize("height", [1.95, 2.1, 2.4])
@pytest.mark.parametrize("speed", [3.5, 4.7, 5.5, 6.2, 7.5])
def test_r54_a_one_way_platform_throws_nobody(height, speed):
    scene = level((quad((-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)), (0, 0, height)))
    hero = hero_on(scene)
    rise, landed = speed, False
    for _ in range(110):
        before = hero.position[2]
        hero.move((0, 0, rise / 60), DT)
        assert hero.position[2] - before < max(0.0, rise / 60) + 0.02
        landed = landed or hero.grounded
        rise = -0.5 if hero.grounded else rise - 9.81 / 60
    foot = hero.foot_position[2]
    assert landed and (abs(foot) < 0.03 or abs(foot - height) < 0.03)


# --- walls, overhangs, fences


@pytest.mark.parametrize("lean", [40, 52])
@pytest.mark.parametrize("step", [0.0, 0.3])
@pytest.mark.parametrize("displacement", [(0.05, 0, -0.02), (0.2, 0, -0.02), (0.04, 0.03, -0.02), (0.05, 0, 0.03)])
def test_r68_an_overhang_stops_and_lets_go(lean, step, displacement):
    k = math.tan(math.radians(lean))
    under = ConvexHull([(x, y, z) for y in (-40, 40) for x, z in ((1, 2.7), (3, 2.7 - 2 / k), (8, 2.7), (8, 0.2))])
    hero = hero_on(level((under, (0, 0, 0))), (-1, 0, 0), step_offset=step)
    path = positions(hero, displacement, 200)
    assert depth(hero) < 1e-6 and np.ptp(path[-30:, 0]) < 1e-3
    assert np.diff(path[:, 2]).max() < max(0.0, displacement[2]) + 1e-6 + (step if displacement[2] <= 0 else 0)
    assert displacement[2] > 0 or np.abs(path[-30:, 2] - HALF - CO).max() < CO
    back = positions(hero, (-0.05, 0, -0.02), 20)
    assert back[-1, 0] < path[-1, 0] - 0.9


@pytest.mark.parametrize("degrees", [12, 25, 33])
@pytest.mark.parametrize("heading", [25, 50, 75])
def test_r70_a_ramp_below_a_ceiling_is_no_trap(degrees, heading):
    t = math.tan(math.radians(degrees))
    scene = Scene()
    ground = [(-20, -9, 0), (1, -9, 0), (1, 90, 0), (-20, 90, 0), (21, -9, 20 * t), (21, 90, 20 * t)]
    scene.add(Mesh(ground, [(0, 1, 2), (0, 2, 3), (1, 4, 5), (1, 5, 2)]))
    scene.add(quad((-20, -9, 2.5), (-20, 90, 2.5), (21, 90, 2.5), (21, -9, 2.5), two_sided=True))
    a = math.radians(heading)
    d = (0.05 * math.cos(a), 0.05 * math.sin(a), -0.02)
    hero = hero_on(scene, (-0.5, 0, 0))
    path = positions(hero, d, 320)
    assert path[-1, 1] - path[-150, 1] > 0.9 * 149 * d[1] and depth(hero) < 1e-6


@pytest.mark.parametrize("sides", [6, 8])
@pytest.mark.parametrize("heading", [4, 30, 65, 84])
def test_r70_a_tunnel_is_no_trap(sides, heading):
    ring = [(1.45 * math.cos(2 * math.pi * k / sides), 1.45 * math.sin(2 * math.pi * k / sides)) for k in range(sides)]
    vertices = [(x, y, z) for x, z in ring for y in (-9, 90)]
    faces = []
    for k in range(sides):
        i, j = 2 * k, 2 * ((k + 1) % sides)
        faces += [(i, i + 1, j + 1), (i, j + 1, j)]
    scene = Scene()
    scene.add(Mesh(vertices, faces, two_sided=True))
    a = math.radians(heading)
    d = (0.05 * math.sin(a), 0.05 * math.cos(a), -0.02)
    hero = hero_on(scene, (0, 0, min(z for _, z in ring) + 0.15))
    path = positions(hero, d, 260)
    assert path[-1, 1] - path[-150, 1] > 0.9 * 149 * d[1]


@pytest.mark.parametrize("lean", [3, 12, 27, 48, 58])
@pytest.mark.parametrize("heading", [3, 20, 50, 83])
@pytest.mark.parametrize("solid", [True, False])
def test_r70_a_wall_that_leans_over_is_walked_along(lean, heading, solid):
    k = 3.2 * math.tan(math.radians(lean))
    scene = level()
    if solid:
        scene.add(ConvexHull([(x, y, z) for y in (-9, 90) for x, z in ((2, 0), (2 - k, 3.2), (9, 0), (9, 3.2))]))
    else:
        scene.add(quad((2, -9, 0), (2, 90, 0), (2 - k, 90, 3.2), (2 - k, -9, 3.2), two_sided=True))
    a = math.radians(heading)
    d = (0.05 * math.sin(a), 0.05 * math.cos(a), -0.02)
    hero = hero_on(scene, (0.8 - k * 2 / 3.2, 0, 0))
    path = positions(hero, d, 210)
    assert path[-1, 1] - path[60, 1] > 0.9 * 149 * d[1] and depth(hero) < 1e-6


@pytest.mark.parametrize("thick", [0.03, 0.12])
@pytest.mark.parametrize("deep", [0.04, 0.16, 0.3])
@pytest.mark.parametrize("kind", ["box", "two-sided"])
def test_r82_unstick_stays_on_its_side_of_a_fence(thick, deep, kind):
    fence = Box((thick / 2, 5, 1.5))
    if kind == "two-sided":
        fence = quad(
            (-thick / 2, -5, -1.5), (-thick / 2, 5, -1.5), (-thick / 2, 5, 1.5), (-thick / 2, -5, 1.5), two_sided=True
        )
    hero = hero_on(level((fence, (1, 0, 1.5))))
    hero.teleport((1 - thick / 2 - R + deep, 0, HALF + CO))
    hero.unstick()
    for _ in range(2):
        hero.move((0, 0, -0.02), DT)
    assert hero.position[0] < 1 - thick / 2 and depth(hero) < 1e-6 and hero.foot_position[2] > -0.01


@pytest.mark.parametrize("seed", range(6))
def test_r83_who_begins_inside_something_comes_out_or_reports_it(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        shape = [
            Box(rng.uniform(0.05, 0.6, 3)),
            Sphere(rng.uniform(0.2, 0.6)),
            Capsule(0.3, 0.7),
            ConvexHull(rng.uniform(-0.5, 0.5, (10, 3))),
        ][rng.integers(4)]
        q = rng.normal(size=4)
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        scene.add(shape, position=(rng.uniform(0.4, 0.7), 0, 1.0), rotation=tuple(q / np.linalg.norm(q)))
        hero = hero_on(scene, (0, 0, 0))
        begin = depth(hero)
        for idle in range(8):
            before = np.array(hero.position)
            hero.move((0, 0, -0.02) if idle < 4 else (-0.04, 0, -0.02), DT)
            assert np.linalg.norm(hero.position - before) < begin + 0.12
            if idle == 3:
                assert depth(hero) < 1e-3 or hero.state.overlap > 0
        assert depth(hero) < 1e-3 or hero.state.overlap > 0


@pytest.mark.parametrize("turn", [0, 17, 63, 126])
def test_r85_nobody_drifts_along_a_wall(turn):
    scene = level()
    scene.add(
        Box((0.5, 4, 2)),
        position=(2 * math.cos(math.radians(turn)), 2 * math.sin(math.radians(turn)), 2),
        rotation=about((0, 0, 1), turn),
    )
    hero = hero_on(scene)
    n = np.array((math.cos(math.radians(turn)), math.sin(math.radians(turn)), 0))
    path = positions(hero, tuple(0.05 * n - (0, 0, 0.02)), 300)
    rest = positions(hero, (0, 0, -0.02), 60)
    along = path @ (-n[1], n[0], 0)
    assert np.ptp(along[60:]) < 1e-6 and np.ptp(rest, axis=0).max() < 1e-9


# --- sizes and other characters


@pytest.mark.parametrize("radius,height", [(0.3, 0.0), (1.7, 0.0), (2.5, 10.0), (0.03, 2.5), (0.4, 1e-9)])
def test_r87_capsules_of_any_proportion_walk_and_climb(radius, height):
    scene = level()
    rise, tread = 0.3 * min(radius, 0.5), 1.5 * max(radius, 0.3)
    for k in range(4):
        scene.add(
            Box((tread * 4, 20, rise * (k + 1) / 2)), position=(3 * radius + tread * (k + 4), 0, rise * (k + 1) / 2)
        )
    hero = hero_on(scene, radius=radius, height=height, step_offset=min(2 * rise, height + 2 * radius))
    start = hero.position
    hero.move((0.02, 0, -0.02), DT)
    assert hero.position[0] - start[0] == pytest.approx(0.02) and hero.grounded
    path = positions(hero, (0.05, 0, -0.02), int((4 * radius + 5 * tread) / 0.05))
    assert hero.foot_position[2] == pytest.approx(4 * rise, abs=0.02) and np.diff(path[:, 0]).min() > -1e-9


@pytest.mark.parametrize("mode", ["easy", "constrained"])
@pytest.mark.parametrize("height", [0.15, 1.0])
def test_r74_running_into_somebody_moves_neither_back_nor_up(mode, height):
    scene = level()
    hero = hero_on(scene, collide=True, climbing_mode=mode)
    other = hero_on(scene, (2, 0.03, 0), collide=True, radius=0.3, height=height)
    stays = other.position
    last = hero.position[0]
    for _ in range(70):
        hero.move((0.05, 0, -0.02), DT)
        assert hero.position[0] > last - 1e-9 and other.position == stays
        assert hero.foot_position[2] < 0.35
        last = hero.position[0]


@pytest.mark.parametrize("count", [2, 4, 7])
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_r75_characters_in_the_same_place_part(count, order):
    scene = level()
    more = {"radius": 0.3, "height": 1.2, "contact_offset": 0.02, "rules": "robust", "collide": True}
    crowd = Crowd(scene, [(0, 0, 0.92)] * count, order=order, **more)
    for _ in range(260):
        if order == "sequential":
            crowd.separate(DT)
        crowd.move([(0, 0, -0.02)] * count, DT)
    apart = np.linalg.norm(crowd.positions[:, None, :2] - crowd.positions[None, :, :2], axis=-1)
    assert (apart[~np.eye(count, dtype=bool)] > 0.599).all()
    assert np.abs(crowd.foot_positions[:, 2]).max() < 0.03


def test_r75_controllers_in_the_same_place_part():
    scene = level()
    heroes = [hero_on(scene, collide=True) for _ in range(3)]
    for _ in range(260):
        separate(heroes, DT)
        for hero in heroes:
            hero.move((0, 0, -0.02), DT)
    p = np.array([hero.position for hero in heroes])
    assert min(np.linalg.norm(p[i] - p[k]) for i in range(3) for k in range(i)) > 2 * R - 1e-3
    assert np.abs(p[:, 2] - HALF - CO).max() < 0.03
