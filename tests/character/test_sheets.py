"""Moves against the edges of sheets, flat hulls, and hulls that are lines."""

import itertools
import math

import numpy as np
import pytest

import pycct
from pycct import reference

SHEET = [(-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2)]


def world(module, turn=(0, 0, 0, 1), two_sided=True):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    scene.add(module.Mesh(SHEET, [(0, 1, 2), (0, 2, 3)], two_sided=two_sided), rotation=turn)
    return scene


def walk(scene, module, rules, angle, y=0.1, steps=120):
    hero = module.CharacterController(scene, rules=rules, radius=0.3, height=1.2, contact_offset=0.02, step_offset=0.3)
    hero.foot_position = (-3, y, 0)
    top = recoveries = 0
    for _ in range(steps):
        hero.move((0.05 * math.cos(angle), 0.05 * math.sin(angle), -0.02), 1 / 60)
        top = max(top, hero.foot_position[2])
        recoveries += hero.stats.recoveries
    return hero, top, recoveries


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize("angle", [0, 1e-13, -1e-12, 1e-11, 1e-10, 9e-10, 1.1e-9, 1e-8])
def test_a_sheet_stops_a_character_that_walks_in_its_plane(module, angle):
    """Robust: around the edge, never up, without overlap, as beside the plane."""
    hero, top, recoveries = walk(world(module), module, "robust", angle)
    assert top == 0 and recoveries == 0
    beside, _, _ = walk(world(module), module, "robust", 1e-7)
    assert math.dist(hero.position, beside.position) < 1e-4
    assert hero.position[0] > 2.5 and hero.position[1] > 0.3


def test_a_fix_that_is_off_leaves_physx_as_it_is():
    """PhysX walks into the sheet and is lifted out of it; no recording contradicts this."""
    _, top, recoveries = walk(world(pycct), pycct, "physx", 0)
    assert top > 1 and recoveries > 5
    hero, _, _ = walk(world(pycct), pycct, "physx", 1e-7)
    assert hero.stats.fixes == 0
    _, again, _ = walk(world(pycct), pycct, pycct.Rules.ROBUST & ~pycct.Rules.FIX_SHEET_EDGES, 0)
    assert again > 1


@pytest.mark.parametrize("rules", ["robust", pycct.Rules.FIX_SHEET_EDGES])
def test_a_character_in_the_plane_falls_onto_the_upper_edge(rules):
    """A DOWN pass and a ray down in the plane of the sheet meet its upper edge."""
    heroes = []
    for module in (pycct, reference):
        scene = world(module)
        hero = module.CharacterController(scene, rules=rules, radius=0.3, height=1.2, contact_offset=0.02,
                                          slope_limit=0.0)
        hero.foot_position = (0, 0, 3)
        below = hero.probe_ground(2.0)
        assert below is not None and below.distance == pytest.approx(1.02, abs=1e-9)
        for _ in range(60):
            hero.move((0, 0, -0.05), 1 / 60)
        assert hero.foot_position[2] == pytest.approx(2.0, abs=1e-6)
        heroes.append(hero)
    assert heroes[0].position == heroes[1].position


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
def test_thin_shapes_in_both_implementations(rules):
    """Core and reference agree on walks near sheets, flat hulls, lines and points.

    Half of the sheets are one-sided.
    """
    rng = np.random.default_rng(12)
    moved = 0
    for _ in range(12):
        scenes = [module.Scene() for module in (pycct, reference)]
        for module, scene in zip((pycct, reference), scenes, strict=True):
            scene.add(module.Plane((0, 0, 1)))
        for _ in range(8):
            where = {"position": (*rng.uniform(-1.5, 1.5, 2), 0.5)}
            if rng.random() < 0.5:
                q = rng.normal(size=4)
                where["rotation"] = tuple(q / np.linalg.norm(q))
            if rng.random() < 0.5:
                where["scale"] = tuple(rng.uniform(0.5, 1.5, 3) * rng.choice([-1, 1], 3))
            points = rng.uniform(-1, 1, (rng.integers(1, 5), 3))
            flat = rng.choice([0, 1, 1], 3) if rng.random() < 0.5 else (1, 1, 1)
            kind, two_sided = rng.integers(3), bool(rng.random() < 0.5)
            for module, scene in zip((pycct, reference), scenes, strict=True):
                if kind == 0:
                    shape = module.Mesh(SHEET, [(0, 1, 2), (0, 2, 3)], two_sided=two_sided)
                else:
                    shape = module.ConvexHull(points.tolist()).scaled(tuple(float(k) for k in flat))
                scene.add(shape, **where)
        heroes = [module.CharacterController(scene, rules=rules, position=(-2.5, 0.0, 0.92), radius=0.3, height=1.2,
                                             contact_offset=0.02) for module, scene in
                  zip((pycct, reference), scenes, strict=True)]
        for k in range(30):
            way = (0.08, 0.0, -0.02) if k < 15 else (*rng.uniform(-0.1, 0.1, 2), -0.02)
            for hero in heroes:
                hero.move(way, 1 / 60)
            assert heroes[0].position == heroes[1].position
            assert heroes[0].stats.recoveries == heroes[1].stats.recoveries
            assert heroes[0].stats.fixes == heroes[1].stats.fixes
            moved += 1
    assert moved == 360


# --- one-sided sheets, met at an edge in front of them, by a motion away from the front --------

# Two rectangles side by side in the plane y = 0, with the normal y.
LEFT = [(-1, 0, -1), (1, 0, -1), (1, 0, 3), (-1, 0, 3)]
RIGHT = [(1, 0, -1), (3, 0, -1), (3, 0, 3), (1, 0, 3)]
FRONT_Y = [(0, 2, 1), (0, 3, 2)]
TURNS = {"z": (0, 0, 0, 1), "x": (0, math.sqrt(0.5), 0, math.sqrt(0.5)), "-z": (1, 0, 0, 0),
         "oblique": (0.1, -0.3, 0.2, math.sqrt(0.86))}


def turned(q, v):
    """The vector v turned by the quaternion q."""
    u, w = np.array(q[:3]), q[3]
    return np.array(v) + 2.0 * np.cross(u, np.cross(u, v) + w * np.array(v))


def sheets(module, kind="one", two_sided=False, turn=(0, 0, 0, 1)):
    """A floor, and one sheet or two side by side: welded, in one mesh, or two actors."""
    scene = module.Scene()
    scene.add(module.Plane(tuple(turned(turn, (0, 0, 1)).tolist())))
    right = [tuple(k + 4 for k in t) for t in FRONT_Y]
    meshes = {
        "one": [(LEFT, FRONT_Y)],
        "welded": [([*LEFT, RIGHT[1], RIGHT[2]], [*FRONT_Y, (1, 5, 4), (1, 2, 5)])],
        "copied": [([*LEFT, *RIGHT], [*FRONT_Y, *right])],
        "actors": [(LEFT, FRONT_Y), (RIGHT, FRONT_Y)],
    }[kind]
    for vertices, triangles in meshes:
        scene.add(module.Mesh(vertices, triangles, two_sided=two_sided), rotation=turn)
    return scene


def stroll(scene, module, angle, start=(-3, 0), steps=75, turn=(0, 0, 0, 1), **changes):
    """The path in the frame of the sheets, the highest foot, and what recovery did."""
    given = {"rules": "robust", "radius": 0.3, "height": 1.2, "contact_offset": 0.02, "step_offset": 0.3, **changes}
    hero = module.CharacterController(scene, up=tuple(turned(turn, (0, 0, 1)).tolist()), **given)
    hero.foot_position = tuple(turned(turn, (*start, 0)).tolist())
    way = tuple(turned(turn, (0.05 * math.cos(angle), 0.05 * math.sin(angle), -0.02)).tolist())
    back = (-turn[0], -turn[1], -turn[2], turn[3])
    path, recovered = [], 0.0
    for _ in range(steps):
        hero.move(way, 1 / 60)
        path.append(turned(back, hero.foot_position))
        recovered = max(recovered, hero.stats.recoveries, hero.state.overlap)
    path = np.array(path)
    return path, path[:, 2].max(), recovered


@pytest.mark.parametrize("y", [0.0, 1e-12, 0.01, 0.1, 0.2, 0.28])
@pytest.mark.parametrize("step_offset", [0.0, 0.1, 0.5])
def test_in_front_a_one_sided_sheet_stops_as_a_two_sided_one(y, step_offset):
    one, two = sheets(pycct), sheets(pycct, two_sided=True)
    for angle, contact_offset in itertools.product((1e-12, 1e-9, 1e-6, 1e-3, 0.02, 0.1), (0.001, 0.02, 0.1)):
        look = {"start": (-3, y), "step_offset": step_offset, "contact_offset": contact_offset}
        path, top, recovered = stroll(one, pycct, angle, **look)
        assert top < 1e-12 and recovered == 0
        around, _, _ = stroll(two, pycct, angle, **look)
        assert np.array_equal(path, around)
    # The grid contains walks that the edge stops: this one ends beside the sheet.
    assert path[-1, 1] > 0.29


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("y", [0.0, 0.1])
def test_a_sheet_is_met_by_its_edge_whatever_is_up(turn, y):
    q = TURNS[turn]
    for angle in (1e-6, 0.01, 0.05):
        paths = []
        for module in (pycct, reference):
            path, top, recovered = stroll(sheets(module, turn=q), module, angle, (-3, y), 50, q)
            assert top < 1e-9 and recovered == 0
            paths.append(path)
        assert np.array_equal(*paths)
        # Rounding decides where a walk straight onto the edge turns, also at a two-sided sheet.
        expected, _, _ = stroll(sheets(pycct), pycct, angle, (-3, y), 50)
        assert np.abs(paths[0] - expected).max() < 0.02
        assert (np.hypot(np.maximum(0, -1 - paths[0][:, 0]), paths[0][:, 1]) >= 0.3).all()


@pytest.mark.parametrize("kind", ["welded", "copied", "actors"])
def test_two_sheets_side_by_side_are_one(kind):
    """The seam stops no character in front, and none that comes through from behind."""
    pair, whole = sheets(pycct, kind), sheets(pycct, kind, two_sided=True)
    for y, angle in itertools.product((0.0, 0.02, 0.1, 0.28), (1e-9, 1e-3, 0.02, 0.1)):
        path, top, recovered = stroll(pair, pycct, angle, (-3, y), 140)
        assert top < 1e-12 and recovered == 0
        around, _, _ = stroll(whole, pycct, angle, (-3, y), 140)
        assert np.array_equal(path, around)
    for x, y, angle in itertools.product((0.2, 0.7, 0.95, 1.0, 1.1, 1.6), (-0.6, -0.35, -0.1),
                                         (0.01, 0.05, 0.3, 0.8, 1.5, 2.0, 2.8, 3.1)):
        path, top, _ = stroll(pair, pycct, angle, (x, y), 100)
        assert top < 1e-12
        ways = 0.05 * np.arange(1, 101)[:, None] * [math.cos(angle), math.sin(angle)]
        assert np.abs(path[:, :2] - (x, y) - ways).max() < 1e-9


def test_a_corner_of_walls_is_open_from_behind():
    """Edges that two triangles share stop nobody who comes through the walls from behind."""
    corners = [(0, 0, -1), (5, 0, -1), (5, 0, 3), (0, 0, 3), (0, 5, -1), (0, 5, 3)]
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    scene.add(pycct.Mesh(corners, [(0, 2, 1), (0, 3, 2), (0, 4, 5), (0, 5, 3)]))
    through = 0
    for y, angle in itertools.product((-0.5, -0.3, 0.05, 0.15, 0.2, 0.25, 0.3, 0.5), (0.2, 0.5, 0.8)):
        if y < 0 and angle < 0.8:
            continue
        path, _, _ = stroll(scene, pycct, angle, (-1.5, y), 80)
        ways = 0.05 * np.arange(1, 81)[:, None] * [math.cos(angle), math.sin(angle)]
        assert np.abs(path[:, :2] - (-1.5, y) - ways).max() < 1e-9
        through += path[-1].min() >= -1e-12
    assert through > 15


@pytest.mark.parametrize("module", [pycct, reference])
def test_a_corner_of_walls_lifts_nobody_who_enters_it_from_outside(module):
    """A pass that comes through one wall from behind passes over the other in the same move."""
    corners = [(0, 0, -1), (5, 0, -1), (5, 0, 3), (0, 0, 3), (0, 5, -1), (0, 5, 3)]
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    scene.add(module.Mesh(corners, [(0, 2, 1), (0, 3, 2), (0, 4, 5), (0, 5, 3)]))
    for y, angle in ((-0.6, 0.2), (-0.6, 0.5), (-0.2, 0.2), (0.0, 0.001), (0.0, 0.05), (0.1, 0.001), (0.1, 0.05)):
        path, top, _ = stroll(scene, module, angle, (-1.5, y), 50)
        assert top < 1e-9
        assert path[-1, 0] > 0.5


def test_a_fan_has_the_open_edges_of_its_outline(tmp_path):
    """A disc of 90 triangles stops a character like a two-sided one, also in a loaded scene."""
    angle = np.linspace(0, 2 * math.pi, 91)[:-1]
    points = [(0, 0, 1), *np.c_[2 * np.cos(angle), 0 * angle, 1 + 2 * np.sin(angle)].tolist()]
    fan = [(0, 1 + (k + 1) % 90, 1 + k) for k in range(90)]
    scenes = []
    for module, two_sided in ((pycct, False), (pycct, True), (reference, False)):
        scene = module.Scene()
        scene.add(module.Plane((0, 0, 1)))
        scene.add(module.Mesh(points, fan, two_sided=two_sided))
        scenes.append((scene, module))
    scenes[0][0].save(tmp_path / "fan.cct")
    scenes.append((pycct.Scene.load(tmp_path / "fan.cct"), pycct))
    for y, way in ((0.0, 1e-9), (0.05, 0.01), (0.1, 0.05), (0.2, 0.02)):
        paths = [stroll(scene, module, way, (-4, y), 70) for scene, module in scenes]
        for path, top, recovered in paths:
            assert top < 1e-12 and recovered == 0
            assert np.array_equal(path, paths[0][0])
        assert paths[0][0][-1, 0] < -2.3 or paths[0][0][-1, 1] > 0.28


def test_a_head_meets_the_lower_edge_of_a_sheet_that_leans():
    """A jump below a one-sided sheet that faces up a little ends at its lower edge."""
    for lean in (1e-9, 1e-3, 0.05):
        ends = []
        for module, two_sided in ((pycct, False), (reference, False), (pycct, True)):
            scene = module.Scene()
            scene.add(module.Plane((0, 0, 1)))
            tilted = [(-1, 0, 2.2), (1, 0, 2.2), (1, -2 * lean, 4.2), (-1, -2 * lean, 4.2)]
            scene.add(module.Mesh(tilted, FRONT_Y, two_sided=two_sided))
            hero = module.CharacterController(scene, rules="robust", radius=0.3, height=1.2, contact_offset=0.02)
            hero.foot_position = (0, 0.05, 0)
            for _ in range(20):
                hero.move((0, 0, 0.05), 1 / 60)
            assert hero.foot_position[1] > 0.2 and hero.state.overlap == 0
            ends.append(hero.position)
        assert ends[0] == ends[1] and math.dist(ends[0], ends[2]) < 1e-9


def test_a_crowd_meets_open_edges_as_single_characters_do():
    scene = sheets(pycct, "actors")
    places = [(-3, y, 0.92) for y in (0.0, 0.05, 0.1, 0.2, -0.1, -0.25)]
    look = {"rules": "robust", "radius": 0.3, "height": 1.2, "contact_offset": 0.02, "step_offset": 0.3}
    ways = np.array([(0.05 * math.cos(a), 0.05 * math.sin(a), -0.02) for a in (1e-9, 0.01, 0.05, 0.02, 0.05, 0.1)])
    crowd = pycct.Crowd(scene, places, **look)
    heroes = [pycct.CharacterController(scene, position=p, **look) for p in places]
    met = 0
    for _ in range(90):
        crowd.move(ways, 1 / 60)
        for hero, way in zip(heroes, ways.tolist(), strict=True):
            hero.move(way, 1 / 60)
            met += pycct.Rules.FIX_SHEET_EDGES in pycct.Rules(hero.stats.fixes)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]
    assert met > 50


@pytest.mark.parametrize("shape", ["mesh", "heightfield", "box"])
def test_edges_that_triangles_share_are_not_open(shape):
    """On hills and around a closed box, the rule of open edges takes part in no move."""
    rng = np.random.default_rng(31)
    scene = pycct.Scene()
    if shape == "box":
        scene.add(pycct.Plane((0, 0, 1)))
        points = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 2)]
        scene.add(pycct.Mesh(points, [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7),
                                      (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]))
        start = np.c_[rng.uniform(-3, 3, (40, 2)), np.full(40, 0.92)]
        start = start[np.abs(start[:, :2]).max(1) > 1.4]
    else:
        hills = pycct.Heightfield(rng.uniform(0, 1.2, (17, 17)), 1.0)
        scene.add(hills if shape == "heightfield" else hills.to_mesh())
        start = np.c_[rng.uniform(4, 12, (40, 2)), np.full(40, 2.2)]
    crowd = pycct.Crowd(scene, start, rules="robust", radius=0.3, height=1.2, contact_offset=0.02)
    plain = pycct.Crowd(scene, start, rules=pycct.Rules.ROBUST & ~pycct.Rules.FIX_SHEET_EDGES, radius=0.3, height=1.2,
                        contact_offset=0.02)
    for frame in range(120):
        if frame % 12 == 0:
            angle = rng.uniform(0, 2 * math.pi, len(start))
            ways = np.c_[0.05 * np.cos(angle), 0.05 * np.sin(angle), np.full(len(start), -0.05)]
        crowd.move(ways, 1 / 60)
        plain.move(ways, 1 / 60)
        assert np.array_equal(crowd.positions, plain.positions)
