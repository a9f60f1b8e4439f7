"""The fixes of 'robust': each corrects one fault of PhysX and changes nothing else."""

import itertools
import math

import goldens
import numpy as np
import pytest
import reports
from reports import C0, RIDES, Lab, about, block, box, floor, gap, grid, ledge, long_floor, quad, ramp

from pycct import Box, Capsule, CharacterController, ConvexHull, Crowd, Mesh, Plane, Rules, Scene, Sphere

CO = C0["co"]
FIXES = [b for b in Rules if b & Rules.ROBUST and b & (b - 1) == 0]


def deepest(hero):
    """Depth of a character in anything, by a query."""
    return max((p.depth for p in hero.scene.penetration(hero.shape, *hero.pose)), default=0.0)


# --- A scene for each fix, in which PhysX shows the fault and the fix alone corrects it


def held_from_behind(lab):
    wall = quad((0.5, -9, -1), (0.5, 9, -1), (0.5, 9, 4), (0.5, -9, 4))
    w = lab.walker(lab.scene(wall), (0, 0, 0))
    w.walk([(0.05, 0, 0)] * 8)
    got = w.walk([(-0.05, 0, 0)])
    return got.end[0] > 0.36, got.fixes


def climbs_what_leans_over(lab):
    got = lab.walker(lab.scene(floor(), ledge(0.8, -1e-7)), (0, 0, 0.05), r=0.45, h=0.9, co=0.05, so=0.45).walk(
        [(0.05, 0, -0.05)] * 60
    )
    return got.top > 0.5, got.fixes


def stopped_by_a_lintel(lab):
    got = lab.walker(lab.scene(*gap(2.0)), (0, 0, 0.08), h=1.1, co=0.08, so=0.5).walk([(0.05, 0, -0.02)] * 60)
    return got.end[0] < 1, got.fixes


def climbs_without_gravity(lab):
    got = lab.walker(lab.scene(long_floor(), ramp(1, 60, 6.0)), (0, 0, CO), so=0.0).walk([(0.05, 0, 0)] * 100)
    return got.top > 1, got.fixes


def rests_on_a_moving_slope(lab):
    scene = lab.scene(floor())
    lab.add(scene, ramp(1, 60, 6.0), body="kinematic")
    w = lab.walker(scene, (2, 0, 2.3), so=0.0, non_walkable_mode="force_sliding")
    got = w.walk([(0, 0, -0.08)] * 100)
    return got.end[2] > 1, got.fixes


def told_of_a_ceiling(lab):
    scene = lab.scene(floor(), box((-9, -9, 2.0), (9, 9, 3)))
    got = lab.walker(scene, (0, 0, CO)).walk([(0.01, 0, -0.01)] * 5)
    return any(f & 2 for f in got.flags), got.fixes


def left_by_a_lift(lab):
    scene = Scene()
    lift = lab.add(scene, block((1.5, 1.5, 0.1), (0, 0, -0.1)), **RIDES)
    w = lab.walker(scene, (0, 0, CO))
    got = w.walk([(0, 0, 0)] * 40, before=lambda k: lab.move_to(lift, (0, 0, -0.1 - 0.04 * max(0, k - 1))))
    return got.end[2] > -1, got.fixes


def invaded_at_rest(lab):
    scene = lab.scene(floor())
    wall = lab.add(scene, block((0.5, 3, 2), (0.9, 0, 2)), body="kinematic")
    w = lab.walker(scene, (0, 0, CO))
    got = w.walk([(0, 0, 0)] * 20, before=lambda k: lab.move_to(wall, (0.9 - 0.02 * k, 0, 2)))
    return got.end[0] > -0.2, got.fixes


def rises_by_rounding(lab):
    lab = Lab(lab.rules, turn=about((1, 2, 3), 77))
    w = lab.walker(lab.scene(floor(), box((0.6, -5, 0), (5, 5, 0.4))), (0, 0, CO), so=0.5)
    got = w.walk([(0.05, 0.03, 1e-10)] * 40)
    return got.end[0] < 0.6, got.fixes


def climbs_small_triangles(lab):
    t = math.tan(math.radians(60))
    slope = grid((1, -5), (4, 5), (60, 10), lambda x, y: (x - 1) * t)
    got = lab.walker(lab.scene(long_floor(), slope), (0.6, 0, CO), climbing_mode="easy").walk([(0.01, 0, -0.01)] * 300)
    return got.top > 1, got.fixes


def walks_into_a_sheet(lab):
    sheet = quad((-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2))
    w = lab.walker(lab.scene(floor(), sheet), (-3, -0.1, CO), so=0.3)
    got = w.walk([(0.05, 0, -0.02)] * 60)
    return got.top > 0.2, got.fixes


def climbs_a_ball(lab):
    scene = lab.scene(long_floor())
    scene.add(Sphere(2.0), position=(0, 0, -1.0))
    w = lab.walker(scene, (-4, 0.03, CO), so=0.2, climbing_mode="easy")
    got = w.walk([(0.05, 0, -0.05)] * 110)
    return got.top > 0.25, got.fixes


def slides_farther_than_asked(lab):
    w = lab.walker(lab.scene(ramp(1, 75, 40.0)), (4, 0, 12), so=0.0, non_walkable_mode="force_sliding")
    got = w.walk([(0.03, 0, -0.5)] * 10)
    return np.linalg.norm(got.steps, axis=1).max() > 0.51, got.fixes


def freezes_below_a_wall_that_leans_over(lab):
    scene = lab.scene(long_floor())
    scene.add(ConvexHull([(x, y, z) for y in (-50, 50) for x, z in ((3, 0), (0, 3), (9, 0), (9, 3))]))
    got = lab.walker(scene, (0.5, 0, CO), climbing_mode="easy").walk([(0.035, 0.035, -0.02)] * 100)
    return got.end[1] < 3.1, got.fixes


def rests_inside_a_plate(lab):
    scene = lab.scene(floor())
    scene.add(Box((0.5, 2, 0.02)), position=(0.68, 0, 1.1))
    w = lab.walker(scene, (0, 0, CO))
    got = w.walk([(0, 0, -0.01)] * 8)
    return deepest(w.hero) > 0.1 and w.hero.state.overlap == 0, got.fixes


FAULTS = {
    Rules.FIX_BACK_FACES: held_from_behind,
    Rules.FIX_OVERHANGS: climbs_what_leans_over,
    Rules.FIX_LOWER_STEP: stopped_by_a_lintel,
    Rules.FIX_STEEP_ASIDE: climbs_without_gravity,
    Rules.FIX_MOVING_SLOPES: rests_on_a_moving_slope,
    Rules.FIX_STEP_IS_NO_JUMP: told_of_a_ceiling,
    Rules.FIX_KEEP_RIDE: left_by_a_lift,
    Rules.FIX_KINEMATIC_RECOVERY: invaded_at_rest,
    Rules.FIX_ALMOST_LEVEL: rises_by_rounding,
    Rules.FIX_STEEP_CLIMB: climbs_small_triangles,
    Rules.FIX_SHEET_EDGES: walks_into_a_sheet,
    Rules.FIX_ROUND_SLOPES: climbs_a_ball,
    Rules.FIX_SLIDE_LENGTH: slides_farther_than_asked,
    Rules.FIX_CREASES: freezes_below_a_wall_that_leans_over,
    Rules.FIX_STATIC_RECOVERY: rests_inside_a_plate,
}


def test_every_fix_has_its_scene():
    assert set(FAULTS) == set(FIXES) and sum(FIXES) == Rules.ROBUST
    assert Rules.ROBUST & Rules.DOCUMENT == 0


@pytest.mark.parametrize("bit", FAULTS, ids=lambda b: b.name)
def test_a_fix_alone_corrects_its_fault(bit):
    faulty, fixes = FAULTS[bit](Lab(Rules.PHYSX))
    assert faulty and fixes == 0
    faulty, fixes = FAULTS[bit](Lab(bit))
    assert not faulty and fixes == bit
    faulty, fixes = FAULTS[bit](Lab("robust"))
    assert not faulty and fixes & bit
    faulty, fixes = FAULTS[bit](Lab(Rules.ROBUST & ~bit))
    assert not fixes & bit


# --- Without an applied fix: PhysX's result to the bit


def told(hero):
    """All results and state of a move, for comparison."""
    g = hero.ground
    return (
        hero.position,
        int(hero.flags),
        hero.velocity,
        hero.grounded,
        None if g is None else (g.normal, g.point, g.triangle, g.actor, g.walkable),
        [(h.actor, h.triangle, h.position, h.normal, h.pass_) for h in hero.hits],
        str(hero.state),
    )


def jumble(rng):
    """Meshes, boxes and spheres, some of them moving; small triangles and large."""
    scene = Scene()
    scene.add(Mesh(*(lambda p: (p.vertices, p.triangles))(grid((-6, -6), (6, 6), (24, 24), hills))))
    movers = []
    for _ in range(25):
        place = rng.uniform((-4, -4, 0), (4, 4, 1.5))
        q = rng.normal(size=4) if rng.random() < 0.5 else np.array((0, 0, rng.normal(), rng.normal()))
        body = rng.choice(["static", "static", "kinematic"])
        shape = (Box(rng.uniform(0.1, 0.8, 3)), Sphere(rng.uniform(0.1, 0.6)), Capsule(0.3, 0.5))[rng.integers(3)]
        actor = scene.add(shape, place, q / np.linalg.norm(q), body=body, behavior=int(rng.integers(2)))
        if body == "kinematic":
            movers.append((actor, place, rng.uniform(-0.03, 0.03, 3)))
    return scene, movers


def hills(x, y):
    return 0.3 * np.sin(1.3 * x) * np.cos(1.7 * y) + 0.4 * (np.abs(x - y) < 0.3)


@pytest.mark.parametrize("seed", range(6))
def test_a_move_without_a_fix_is_the_same_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    scene, movers = jumble(rng)
    c = {
        "radius": 0.3,
        "height": 1.0,
        "contact_offset": 0.02,
        "step_offset": float(rng.choice([0.0, 0.3, 0.5])),
        "climbing_mode": ["easy", "constrained"][seed % 2],
        "non_walkable_mode": ["prevent_climbing", "force_sliding"][seed // 2 % 2],
    }
    robust = CharacterController(scene, (0, 0, 3), rules="robust", **c)
    physx = CharacterController(scene, (0, 0, 3), rules="physx", **c)
    fired = same = 0
    d = np.zeros(3)
    for k in range(1500):
        for actor, place, v in movers:
            actor.move_to(place + v * (k % 60))
        if k % 8 == 0:
            d = rng.uniform((-0.12, -0.12, -0.1), (0.12, 0.12, 0.03)) * (rng.random() > 0.1)
        if k % 100 == 0:
            robust.teleport(rng.uniform((-4, -4, 1), (4, 4, 3)))
        physx.restore(robust.save())
        physx.rules = "physx"
        robust.move(tuple(d), 1 / 60)
        physx.move(tuple(d), 1 / 60)
        assert not physx.stats.fixes
        if robust.stats.fixes:
            fired += 1
        else:
            same += 1
            assert told(robust) == told(physx), k
    assert same > 800
    assert fired > 0


FEW = ("ramp_46", "stairs_0.45", "boxes", "platform_lift_down", "level_dungeon", "y_up")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in FEW else pytest.mark.slow)
        for n in goldens.names()
        if not n.startswith(("query", "box_controller", "crowd"))
    ],
)
def test_recordings_where_no_fix_applied(name, monkeypatch):
    record = goldens.load(goldens.path_of(name))
    if "box controllers" in goldens.needs(record):
        pytest.skip("box controllers")
    fired = []
    one_move = goldens.one_move

    def watched(hero, *rest):
        got = one_move(hero, *rest)
        fired.append(int(hero.stats.fixes))
        return got

    monkeypatch.setattr(goldens, "one_move", watched)
    physx = [row for rows in goldens.play(record) for row in rows]
    assert not any(fired)
    fired.clear()
    robust = [row for rows in goldens.play(record, rules="robust") for row in rows]
    for a, b, fixes in zip(physx, robust, fired, strict=True):
        assert fixes or a == b


def test_an_exact_touch_overlaps_nothing():
    # A distance that is less than the radius only by rounding is a touch in all rule sets. It ends
    # no pass, and no character gets through.
    lab = Lab("physx")
    for off in (0.0, 1e-16, 3e-16, -1e-16, 1e-13):
        scene = lab.scene(box((1, -3, 0), (4, 3, 3)))
        w = lab.walker(scene, (0.7 + off, 0, 0.5), co=0.0, so=0.0)
        got = w.walk([(0.05, 0.05, 0)] * 3 + [(-0.05, 0, 0)])
        assert abs(got.feet[3][0] - 0.7 - off) < 1e-9 and abs(got.feet[3][1] - 0.15) < 1e-6
        assert abs(got.end[0] - 0.65 - off) < 1e-9
    for obstacle in (Box((1.5, 3, 1.5)), None):
        scene = Scene()
        if obstacle is not None:
            scene.add_obstacle(obstacle, position=(2.5, 0, 1.5))
        else:
            scene.add(Sphere(1.5), (2.5, 0, 1.4))
        w = lab.walker(scene, (0.7 + 3e-16, 0, 0.5), co=0.0, so=0.0)
        got = w.walk([(0.05, 0, 0)] * 5)
        assert abs(got.end[0] - 0.7) < 1e-9


def test_the_module_of_reports_finds_its_files():
    lab = Lab(turn=about((1, 2, 3), 77), shift=(4, 5, 6), scale=3.0)
    p = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    np.testing.assert_allclose(lab.back(lab.out(p)), p, atol=1e-12)
    assert reports.clearance(floor(), lab.walker(lab.scene(floor()), (0, 0, 0.25))) == pytest.approx(0.25)


def test_a_crush_from_above_is_reported():
    # The DOWN pass ignores triangles behind the leading sphere; only the fix tests the end of the
    # move.
    told = {}
    without = Rules.ROBUST & ~(Rules.FIX_KINEMATIC_RECOVERY | Rules.FIX_STATIC_RECOVERY)
    for rules in ("physx", "robust", without):
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        press = scene.add(Box((3, 3, 1)), position=(0, 0, 4), body="kinematic")
        hero = CharacterController(scene, position=(0, 0, 0.91), rules=rules)
        for k in range(40):
            press.move_to((0, 0, 4 - 0.05 * k))
            hero.move((0, 0, -0.05), 1 / 60)
        told[rules] = hero.state.overlap
        assert abs(hero.position[0]) < 1e-9 and hero.position[2] < 1
    assert told["robust"] > 0.5
    assert told["physx"] == told[without] == 0.0


@pytest.mark.parametrize("climbing", ["easy", "constrained"])
@pytest.mark.parametrize("kind", ["ball", "log", "obstacle", "trunk"])
def test_no_round_shape_is_climbed_higher_than_a_step(kind, climbing):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    if kind == "ball":
        scene.add(Sphere(0.5), position=(0, 0, 0.5))
    elif kind == "log":
        scene.add(Capsule(0.3, 0.2), position=(0, 0, 0.4))
    elif kind == "obstacle":
        scene.add_obstacle(Box((0.3, 0.3, 0.25)), position=(0, 0, 0.25))
    else:
        scene.add(Capsule(0.3, 10.0), position=(0, 0, 2), rotation=about((0, 1, 0), 30))
    if kind == "obstacle" and climbing == "easy":
        pytest.skip("easy climbing slides over the edges of boxes")
    hero = CharacterController(
        scene, radius=0.3, height=1.2, contact_offset=0.02, step_offset=0.2, climbing_mode=climbing, rules="robust"
    )
    hero.foot_position = (-2, 0.03, 0)
    for _ in range(80):
        hero.move((0.05, 0, -0.03), 1 / 60)
        assert hero.foot_position[2] < 0.25


@pytest.mark.parametrize("lean", [2, 20, 45, 60])
@pytest.mark.parametrize("two_sided", [False, True])
def test_walks_along_walls_that_lean_over(lean, two_sided):
    over = 3 * math.tan(math.radians(lean))
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    if two_sided:
        corners = [(3, -50, 0), (3, 50, 0), (3 - over, 50, 3), (3 - over, -50, 3)]
        scene.add(Mesh(corners, [(0, 1, 2), (0, 2, 3)], two_sided=True))
    else:
        scene.add(ConvexHull([(x, y, z) for y in (-50, 50) for x, z in ((3, 0), (3 - over, 3), (9, 0), (9, 3))]))
    for heading in (15, 45, 80):
        a = math.radians(heading)
        hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02, rules="robust")
        hero.foot_position = (0, 0, 0)
        for _ in range(150):
            hero.move((0.05 * math.sin(a), 0.05 * math.cos(a), -0.02), 1 / 60)
        assert hero.position[1] > 0.9 * 150 * 0.05 * math.cos(a)


def test_a_long_move_climbs_stairs():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for i in range(5):
        scene.add(Box((5, 5, 0.05 * (i + 1))), position=(1 + 0.15 * i + 5, 0, 0.05 * (i + 1)))
    hero = CharacterController(scene, radius=0.5, height=1.0, step_offset=0.2, rules="robust")
    hero.foot_position = (0, 0, 0)
    for _ in range(5):
        hero.move((3, 0, -0.02), 1 / 60)
    assert hero.position[0] > 2


def test_snapping_within_the_contact_offset_grounds():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02)
    hero.teleport((0, 0, 0.92))
    assert not hero.grounded
    assert not hero.snap_to_ground(0.1)
    assert hero.grounded and hero.position == (0, 0, 0.92)
    crowd = Crowd(scene, [(0, 0, 0.92), (0, 0, 0.95), (0, 0, 2.0)], radius=0.3, height=1.2, contact_offset=0.02)
    assert list(crowd.snap_to_ground(0.1)) == [False, True, False]
    assert list(crowd.grounded) == [True, True, False]


def test_stays_grounded_uphill_along_the_slope():
    a = math.radians(30)
    scene = Scene()
    scene.add(Plane((-math.sin(a), 0, math.cos(a))))
    hero = CharacterController(scene, (0, 0, 1.2), radius=0.3, height=1.2, contact_offset=0.02)
    hero.move((0, 0, -1), 1 / 60)
    for _ in range(60):
        hero.move((0.05 * math.cos(a), 0, 0.05 * math.sin(a)), 1 / 60)
        hero.snap_to_ground(0.1)
        assert hero.grounded


# --- FIX_BACK_FACES passes only who comes from behind


@pytest.mark.parametrize("overlap", [0.0005, 0.05, 0.2])
@pytest.mark.parametrize("lean", [0, 30, 55])
def test_a_short_way_off_a_front_does_not_open_it(lean, overlap):
    # The front of a sheet through the x axis leans back from who stands at y > 0.
    k = math.tan(math.radians(lean))
    scene = Scene()
    scene.add(Mesh([(-9, 9 * k, -9), (9, 9 * k, -9), (9, -9 * k, 9), (-9, -9 * k, 9)], [(0, 2, 1), (0, 3, 2)]))
    n = (0, math.cos(math.radians(lean)), math.sin(math.radians(lean)))
    for leaving in ((0, 0.0001, 0), (0.03, 0.0001, 0), (0, 0, 0.05), (0, 0.0001, 0.01)):
        hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02, rules="robust")
        hero.teleport((0, (0.3 + 0.6 * n[2] - overlap) / n[1], 0))
        for d in [leaving] * 2 + [(0, -0.04, 0)] * 40:
            hero.move(d, 1 / 60)
            assert hero.position[1] * n[1] + hero.position[2] * n[2] > 0.25


def test_a_thin_plate_is_not_opened_by_its_far_side():
    # The far side of the plate is nearer than the radius, and the centre is behind it.
    v = [(x, y, z) for x in (-5, 5) for y in (-0.1, 0) for z in (-3, 3)]
    plate = Mesh(v, [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6)])
    for depth in (0.05, 0.15, 0.25):
        scene = Scene()
        scene.add(plate)
        hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02, rules="robust", step_offset=0)
        hero.teleport((0, 0.3 - depth, 0))
        for d in [(0.01, -0.0001, 0), (0.01, 0.0001, 0)] + [(0, -0.04, 0)] * 30:
            hero.move(d, 1 / 60)
        assert hero.position[1] > 0


def test_who_comes_from_behind_still_turns_back_halfway():
    scene = Scene()
    scene.add(Mesh([(-9, 0, -9), (9, 0, -9), (9, 0, 9), (-9, 0, 9)], [(0, 2, 1), (0, 3, 2)]))
    hero = CharacterController(scene, (0, -0.5, 0), radius=0.3, height=1.2, contact_offset=0.02, rules="robust")
    for speed in [0.04] * 17 + [-0.04] * 17:
        hero.move((0, speed, 0), 1 / 60)
    assert hero.position[1] == pytest.approx(-0.5, abs=1e-9)


# --- FIX_STATIC_RECOVERY: where a move ends


@pytest.mark.parametrize("displacement", [(0, 0, 0), (0, 0, -0.01), (0, 0, 0.003)])
@pytest.mark.parametrize("solid", ["box", "hull", "mesh", "two-sided mesh", "ball", "obstacle"])
def test_no_move_ends_inside_without_a_report(solid, displacement):
    half = np.array((0.6, 2, 0.05))
    corners = half * [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    shape = {
        "hull": lambda: ConvexHull(corners),
        "mesh": lambda: Mesh(corners, faces),
        "two-sided mesh": lambda: Mesh(corners, faces, two_sided=True),
        "ball": lambda: Sphere(0.6),
    }.get(solid, lambda: Box(half))()
    for depth in (0.01, 0.1, 0.25):
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        add = scene.add_obstacle if solid == "obstacle" else scene.add
        add(shape, position=(0.9 - depth, 0, 1.0))
        hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02, rules="robust")
        hero.teleport((0, 0, 0.92))
        for _ in range(3):
            hero.move(displacement, 1 / 60)
        met = scene.penetration(hero.shape, *hero.pose, include="all")
        inside = max((p.depth for p in met if p.controller != hero), default=0.0)
        assert inside < 1e-3 or hero.state.overlap == pytest.approx(inside, rel=1e-3)
        # Recovery moves out of bodies; obstacles are left to the game, as in PhysX.
        assert inside < 1e-3 or solid == "obstacle"


def test_dynamic_bodies_are_reported_and_not_left():
    scene = Scene()
    scene.add(Box((0.6, 2, 0.05)), position=(0.7, 0, 1.0), body="dynamic")
    hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02, rules="robust", step_offset=0)
    hero.teleport((0, 0, 1.0))
    hero.move((0, 0, 0), 1 / 60)
    assert hero.position == (0, 0, 1.0) and hero.state.overlap == pytest.approx(0.2)


# --- FIX_KINEMATIC_RECOVERY: characters on characters


def space_between(a, b):
    """Distance of two upright capsules of radius 0.3 and height 1.0; below zero they overlap."""
    x, y, z = np.abs(np.subtract(a, b))
    return math.hypot(x, y, max(0.0, z - 1.0)) - 0.6


@pytest.mark.parametrize("speed", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("below_first", [True, False])
def test_characters_on_characters_stay_apart_on_a_lift(speed, below_first):
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), body="kinematic", behavior=1)
    more = {"radius": 0.3, "height": 1.0, "contact_offset": 0.02, "collide": True, "rules": "robust"}
    heroes = [CharacterController(scene, **more) for _ in range(3)]
    for k, hero in enumerate(heroes):
        hero.foot_position = (0.04 * k, 0, 1.66 * k)
    for t in range(1, 121):
        lift.move_to((0, 0, -0.1 + speed * t))
        for hero in heroes if below_first else heroes[::-1]:
            hero.move((0, 0, -0.02), 1 / 60)
        assert heroes[0].position[2] > speed * t + 0.8 - 1e-6
        for low, high in itertools.pairwise(heroes):
            # If the upper one moves first, the lower one rises into it, and reports that.
            depth = -space_between(low.position, high.position)
            assert depth < 1e-6 or (not below_first and depth < speed + 0.02 and low.state.overlap > 0.9 * depth)


def test_a_sequential_crowd_stays_apart_on_a_lift():
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), body="kinematic", behavior=1)
    more = {"radius": 0.3, "height": 1.0, "contact_offset": 0.02, "collide": True, "rules": "robust"}
    crowd = Crowd(scene, [(0, 0, 0.82), (0.03, 0, 2.48)], order="sequential", **more)
    for t in range(1, 121):
        lift.move_to((0, 0, -0.1 + 0.04 * t))
        crowd.move([(0, 0, -0.02)] * 2, 1 / 60)
        assert space_between(*crowd.positions) > -1e-6


def test_a_character_that_is_lifted_by_another_stays_below_the_ceiling():
    scene = Scene()
    scene.add(Box((3, 3, 0.5)), position=(0, 0, 4.5))
    lift = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), body="kinematic", behavior=1)
    more = {"radius": 0.3, "height": 1.0, "contact_offset": 0.02, "collide": True, "rules": "robust"}
    low, high = (CharacterController(scene, (0, 0, z), **more) for z in (0.82, 2.46))
    for t in range(1, 61):
        lift.move_to((0, 0, -0.1 + 0.02 * t))
        low.move((0, 0, -0.02), 1 / 60)
        high.move((0, 0, -0.02), 1 / 60)
        assert high.position[2] + 0.8 < 4.0 + 1e-6
    assert max(low.state.overlap, high.state.overlap) > 0.1


# --- FIX_LOWER_STEP and FIX_CREASES


@pytest.mark.parametrize("step", [0.0, 0.2])
@pytest.mark.parametrize("co", [0.02, 0.1])
@pytest.mark.parametrize("slope", [8, 20, 35])
def test_a_sloping_ceiling_presses_nobody_into_the_floor(slope, co, step):
    low = 1.75 - 2 * math.tan(math.radians(slope))
    ceiling = [(0.5, -9, 1.95), (2.5, -9, low + 0.2), (2.5, 30, low + 0.2), (0.5, 30, 1.95)]
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Mesh(ceiling, [(0, 2, 1), (0, 3, 2)], two_sided=True))
    for heading in (0, 30, 70):
        hero = CharacterController(scene, radius=0.3, height=1.2, contact_offset=co, step_offset=step, rules="robust")
        hero.foot_position = (-0.5, 0, 0)
        a = math.radians(heading)
        path = []
        for _ in range(260):
            hero.move((0.04 * math.cos(a), 0.04 * math.sin(a), -0.02), 1 / 60)
            path.append(hero.foot_position)
        path = np.array(path)
        assert path[:, 2].min() > -0.01 and deepest(hero) < 1e-6
        assert np.ptp(path[-30:, 0]) < 1e-3 and np.ptp(path[-30:, 2]) < 1e-3


def test_no_attempt_with_a_lower_step_ends_inside():
    rng = np.random.default_rng(19)
    for _ in range(1500):
        v = rng.uniform((-0.6, -0.6, 0), (0.6, 0.6, 2.2), (3, 3, 3)) * (1, 1, 1) + rng.uniform(-0.4, 0.4, (3, 1, 3))
        scene = Scene()
        scene.add(Mesh(v.reshape(-1, 3), np.arange(9).reshape(3, 3), two_sided=True))
        hero = CharacterController(scene, (0, 0, 0.95), radius=0.3, height=1.2, contact_offset=0.02, rules="robust")
        if deepest(hero) > 0:
            continue
        for _ in range(3):
            hero.move((*rng.uniform(-0.08, 0.08, 2), -0.004), 1 / 60)
            if hero.stats.fixes & Rules.FIX_LOWER_STEP and not hero.stats.recoveries:
                assert deepest(hero) < 1e-4
