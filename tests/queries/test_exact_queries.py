"""Queries are exact: the first contact, edges of thin shapes, and inclusive limits."""

import itertools
import math

import brute
import numpy as np
import pytest
import worlds

import pycct
from pycct import reference

UNIT = np.eye(3)


def turned(axis, angle):
    """The unit quaternion of a turn."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return (*(axis * math.sin(angle / 2)), math.cos(angle / 2))


def plate(corners, module=pycct, **more):
    """A mesh of one quadrangle."""
    return module.Mesh(np.asarray(corners, float), [[0, 1, 2], [0, 2, 3]], **more)


def scene_with(shape, module=pycct, **where):
    scene = module.Scene()
    scene.add(shape, **where)
    return scene


def axis_of(shape, place, rotation=(0, 0, 0, 1)):
    """Ends of the axis of a sphere or capsule."""
    half = brute.rotate(np.asarray(rotation, float), np.array([[0, 0, getattr(shape, "height", 0.0) / 2]]))[0]
    return np.asarray(place, float) - half, np.asarray(place, float) + half


def gaps_along(shape, place, way, rotation, distances, tris, radius):
    """Distance of a shape from triangles at each of these distances along its motion."""
    p0, p1 = axis_of(shape, place, rotation)
    steps = np.repeat(np.outer(distances, way), len(tris), axis=0)
    every = np.tile(tris, (len(distances), 1, 1))
    gaps = brute.segment_triangles(p0 + steps, p1 + steps, every)[0]
    return gaps.reshape(len(distances), -1).min(1) - radius


# --- The triangle that is touched


def layers(gap, tilt, size=9.0, module=pycct, two_sided=False):
    """A level floor, and above it a slightly steeper roof, which faces a fall less."""
    v = [(x, y, 0.0) for x, y in ((-size, -size), (size, -size), (size, size), (-size, size))]
    v += [(x, y, gap + tilt * x / size) for x, y, _ in v]
    return module.Mesh(np.array(v), [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]], two_sided=two_sided)


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize(("height", "gap"), [(1.9, 1e-4), (50, 0.03), (1000, 0.6), (1000, 1e-5), (2e5, 1e-3)])
@pytest.mark.parametrize("height_of_capsule", [None, 1.0])
def test_the_roof_is_touched_and_not_the_floor_below_it(module, height, gap, height_of_capsule):
    shape = module.Sphere(0.5) if height_of_capsule is None else module.Capsule(0.5, height_of_capsule)
    scene = scene_with(layers(gap, gap / 3, module=module), module)
    hit = scene.sweep(shape, (0.1, 0.2, height), (0, 0, -1), 2 * height)
    assert hit.triangle in (2, 3)
    slope = gap / 3 / 9
    normal = np.array([-slope, 0, 1]) / math.hypot(1, slope)
    assert np.abs(np.subtract(hit.normal, normal)).max() < 1e-9
    assert hit.position[2] == pytest.approx(gap + slope * hit.position[0], abs=1e-15 * height + 1e-12)


@pytest.mark.parametrize("module", [pycct, reference])
def test_the_named_triangle_is_touched_and_the_point_lies_on_it(module):
    """Random meshes from far away: brute force finds the named triangle at the distance."""
    rng = np.random.default_rng(11)
    named = 0
    for _ in range(10 if module is pycct else 4):
        v, t = worlds.soup(rng, 12)
        scene = scene_with(module.Mesh(v, t, two_sided=True), module)
        radius, height = rng.uniform(0.05, 0.8), rng.choice([0.0, rng.uniform(0.1, 2)])
        shape = module.Capsule(radius, height)
        turn = worlds.unit(rng)
        for far in (3.0, 60.0, 900.0):
            way = rng.normal(size=3)
            way /= np.linalg.norm(way)
            place = rng.uniform(-2, 2, 3) - far * way
            hit = scene.sweep(shape, place, way, 2 * far, rotation=turn)
            if hit is None or hit.overlapping:
                continue
            named += 1
            p0, p1 = axis_of(shape, place + way * hit.distance, turn)
            gaps, on_axis, on_triangle = brute.segment_triangles(p0, p1, v[t])
            near = 1e-13 * far + 1e-9
            assert gaps.min() == pytest.approx(radius, abs=near)
            assert gaps[hit.triangle] == pytest.approx(radius, abs=near)
            assert np.abs(on_triangle[hit.triangle] - hit.position).max() < 1e-4
            normal = (on_axis[hit.triangle] - on_triangle[hit.triangle]) / gaps[hit.triangle]
            assert np.abs(normal - hit.normal).max() < 1e-3 and normal @ hit.normal > 0
    assert named > (10 if module is pycct else 4)


@pytest.mark.parametrize("module", [pycct, reference])
def test_the_normal_of_a_thin_shape_is_that_of_the_contact(module):
    """A rule of moves uses the triangle's own normal below a millimetre; queries do not."""
    cube = module.Mesh(*box_mesh((1, 1, 1)))
    for radius in (1e-2, 1e-4, 1e-6):
        hit = scene_with(cube, module).sweep(module.Sphere(radius), (3, 0, 1 + radius * 0.6), (-1, 0, 0), 5)
        assert np.abs(np.subtract(hit.normal, (0.8, 0, 0.6))).max() < 1e-6
        assert hit.distance == pytest.approx(2 - 0.8 * radius, abs=1e-12)


def box_mesh(half):
    """Vertices and outward triangles of a box."""
    x, y, z = half
    v = [(x if i & 1 else -x, y if i & 2 else -y, z if i & 4 else -z) for i in range(8)]
    quads = [(0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)]
    return np.array(v, float), [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]


# --- The edges of sheets


SHEET = np.array([(-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2)], float)


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize("two_sided", [False, True])
def test_a_capsule_meets_the_edge_of_a_sheet_that_its_axis_and_motion_are_parallel_to(module, two_sided):
    scene = scene_with(plate(SHEET, module, two_sided=two_sided), module)
    for y in (0.0, 0.1, -0.1, 0.299):
        hit = scene.sweep(module.Capsule(0.3, 1), (-5, y, 1), (1, 0, 0), 10)
        assert hit.distance == pytest.approx(4 - math.sqrt(0.09 - y * y), abs=1e-12)
        assert np.abs(np.subtract(hit.position, (-1, 0, hit.position[2]))).max() < 1e-12
        hit = scene.sweep(module.Capsule(0.3, 1), (0, y, 5), (0, 0, -1), 10)
        assert hit.distance == pytest.approx(2.5 - math.sqrt(0.09 - y * y), abs=1e-12)
    assert scene.sweep(module.Capsule(0.3, 1), (-5, 0.3, 1), (1, 0, 0), 10) is None


@pytest.mark.parametrize("module", [pycct, reference])
def test_sheets_and_capsules_that_are_nearly_parallel(module):
    """A tilted capsule meets the edge at the distance that brute force finds, in any rotation."""
    rng = np.random.default_rng(4)
    met = 0
    for k in range(18 if module is pycct else 6):
        q = worlds.unit(rng) if k % 3 else np.array([0, 0, 0, 1.0])
        tilt = rng.choice([0.0, 1e-13, 1e-11, 1e-9, 1e-6, 1e-3])
        tris = brute.rotate(q, SHEET)[[[0, 1, 2], [0, 2, 3]]]
        scene = scene_with(plate(brute.rotate(q, SHEET), module, two_sided=True), module)
        radius, height = 0.3, rng.uniform(0.1, 2)
        angle = rng.uniform(0, 2 * math.pi)
        way = np.array([math.cos(angle), tilt * rng.normal(), math.sin(angle)])
        way = brute.rotate(q, way[None] / np.linalg.norm(way))[0]
        place = brute.rotate(q, np.array([[0.2, rng.uniform(-0.29, 0.29), 0.9]]))[0] - 5 * way
        lean = turned((0, 1, 0), rng.uniform(0, 3))
        spin = np.array(lean) if not k % 3 else quaternion_product(q, lean)
        shape = module.Capsule(radius, height)
        hit = scene.sweep(shape, place, way, 10, rotation=spin)
        assert hit is not None
        met += 1
        # The capsule touches there, and nothing before.
        times = hit.distance * np.append((0, 0.5, 0.9, 0.99, 0.999, 0.999999), 1)
        gaps = gaps_along(shape, place, way, spin, times, tris, radius)
        assert gaps[-1] == pytest.approx(0, abs=1e-8) and (gaps > -1e-9).all()
    assert met >= 6


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize("two_sided", [False, True])
def test_the_edge_of_a_sheet_that_is_turned_and_moved(module, two_sided):
    """Rounding does not decide whether a one-sided sheet is seen from behind."""
    rng = np.random.default_rng(8)
    for _ in range(60 if module is pycct else 15):
        q, shift = worlds.unit(rng), rng.normal(size=3) * 10 ** rng.uniform(-1, 2)
        scene = scene_with(plate(brute.rotate(q, SHEET) + shift, module, two_sided=two_sided), module)
        radius = rng.uniform(0.05, 0.6)
        y = radius * rng.uniform(-0.99, 0.99)
        way = tuple(brute.rotate(q, UNIT[:1])[0])
        place = tuple(brute.rotate(q, np.array([[-5, y, 1]]))[0] + shift)
        for shape in (module.Capsule(radius, rng.uniform(0.01, 1.5)), module.Sphere(radius)):
            hit = scene.sweep(shape, place, way, 20, rotation=tuple(q))
            assert hit.distance == pytest.approx(4 - math.sqrt(radius**2 - y * y), abs=1e-9)


def quaternion_product(a, b):
    x, y, z, w = a
    p, q, r, s = b
    out = np.array([w * p + x * s + y * r - z * q, w * q - x * r + y * s + z * p,
                    w * r + x * q - y * p + z * s, w * s - x * p - y * q - z * r])
    return out / np.linalg.norm(out)


# --- Flat hulls


FLAT = np.array([(-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2)], float)


def flat_hulls(module):
    """The same polygon in three representations."""
    solid = module.ConvexHull([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (0, 2)])
    return [module.ConvexHull(FLAT), solid.scaled((1, 0, 1)), module.ConvexHull(FLAT * (2, 1, 0.5)).scaled((0.5, 3, 2))]


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize("tilt", [0.0, -1e-11, 1e-9, 1e-6, 1e-2])
def test_shapes_in_the_plane_of_a_flat_hull_are_beside_it(module, tilt):
    tris = FLAT[[[0, 1, 2], [0, 2, 3]]]
    places = ((-5, 0, 1), (-1.31, 0, 1), (-1.29, 0, 1), (0.5, 0, 1), (-1.2, 0.1, 1), (3, 0, 9), (0, 0.31, 1))
    half = brute.rotate(turned((1, 0, 0), tilt), np.array([(0, 0, 0.5)]))[0]
    for hull, height in itertools.product(flat_hulls(module), (None, 1.0)):
        scene = scene_with(hull, module)
        shape = module.Sphere(0.3) if height is None else module.Capsule(0.3, height)
        turn = turned((1, 0, 0), tilt)
        axis = np.zeros(3) if height is None else half
        centres = np.repeat(np.array(places, float), 2, axis=0)
        gaps = brute.segment_triangles(centres - axis, centres + axis, np.tile(tris, (len(places), 1, 1)))[0]
        for place, gap in zip(places, gaps.reshape(-1, 2).min(1) - 0.3, strict=True):
            assert bool(scene.overlap(shape, place, turn)) == (gap < 0), place
            ways = scene.penetration(shape, place, turn)
            assert len(ways) == (gap < 0)
            if place[0] == 0.5:
                assert ways[0].depth == pytest.approx(0.3, abs=2 * abs(tilt)) and abs(ways[0].direction[1]) > 0.99
            elif ways:
                assert ways[0].depth == pytest.approx(-gap, abs=1e-9)
        hit = scene.sweep(shape, (-5, 0, 1), (1, 0, 0), 10, rotation=turn)
        assert hit is not None and not hit.overlapping
        assert hit.distance == pytest.approx(3.7, abs=1e-9 + abs(tilt))
        inside = scene.sweep(shape, (0, 0, 1), (1, 0, 0), 10, rotation=turn)
        assert inside.overlapping and inside.distance == 0


@pytest.mark.parametrize("module", [pycct, reference])
def test_a_character_beside_a_flat_hull_stays_where_it_is(module):
    scene = scene_with(module.ConvexHull(FLAT * (1, 1, 2)), module)
    scene.add(module.Plane((0, 0, 1)))
    for rules in ("physx", "document", "robust"):
        hero = module.CharacterController(scene, position=(-1.5, 0, 0.9), radius=0.3, height=1.2, rules=rules)
        hero.foot_position = (-1.5, 0, 0.0)
        start = hero.position
        hero.unstick()
        assert hero.position == pytest.approx(start, abs=0.11)
        for _ in range(5):
            hero.move((0, 0, -0.02), 1 / 60)
        assert hero.position[:2] == (-1.5, 0)


# --- Hulls that are a segment or a point


def lines_and_points(module):
    """Hulls without faces: (hull, ends)."""
    solid = module.ConvexHull([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    a, b = np.array((1.0, -1, 0)), np.array((1.0, 1, 0))
    return [
        (module.ConvexHull([a, b]), a, b),
        (module.ConvexHull([a, (a + b) / 2, b]), a, b),
        (module.ConvexHull([a, b]).scaled((1, -0.5, 1)), a * (1, 0.5, 1), b * (1, 0.5, 1)),
        (module.ConvexHull([a]), a, a),
        (solid.scaled((0, 1, 0)), np.array((0, -1.0, 0)), np.array((0, 1.0, 0))),
        (solid.scaled((0, 0, 0)), np.zeros(3), np.zeros(3)),
        # A polygon that a scale flattens across its plane.
        (module.ConvexHull(FLAT).scaled((1, 1, 0)), np.array((-1.0, 0, 0)), np.array((1.0, 0, 0))),
    ]


@pytest.mark.parametrize("module", [pycct, reference])
def test_segments_and_points_are_met(module):
    rng = np.random.default_rng(3)
    counts = {"hit": 0, "inside": 0}
    for hull, a, b in lines_and_points(module):
        for k in range(12):
            where = {} if k < 4 else {"position": tuple(rng.uniform(-1, 1, 3)), "rotation": tuple(worlds.unit(rng)),
                                      "scale": tuple(rng.uniform(0.5, 2, 3) * rng.choice([-1, 1], 3))}
            place = np.array(where.get("position", (0, 0, 0)))
            q = where.get("rotation", (0, 0, 0, 1))
            e0, e1 = (brute.rotate(q, (p * where.get("scale", 1.0))[None])[0] + place for p in (a, b))
            scene = scene_with(hull, module, **where)
            radius, height = rng.uniform(0.1, 0.6), rng.choice([0.0, rng.uniform(0.2, 1)])
            shape = module.Capsule(radius, height)
            turn = worlds.unit(rng)
            aim = e0 + (e1 - e0) * rng.random()
            start = rng.uniform(-3, 3, 3) if k % 4 else aim + rng.uniform(-0.2, 0.2, 3)
            hit = scene.sweep(shape, start, aim - start, 20, rotation=turn)
            p0, p1 = axis_of(shape, start, turn)
            gap = brute.segment_segment(p0, p1, e0, e1)[0] - radius
            assert bool(scene.overlap(shape, start, turn)) == (gap < 0) == hit.overlapping
            found = scene.penetration(shape, start, turn)
            assert [p.depth for p in found] == ([] if gap >= 0 else [pytest.approx(-gap, abs=1e-9)])
            counts["inside" if gap < 0 else "hit"] += 1
            if gap >= 0:
                step = (aim - start) / np.linalg.norm(aim - start) * hit.distance
                assert brute.segment_segment(p0 + step, p1 + step, e0, e1)[0] == pytest.approx(radius, abs=1e-8)
                assert np.linalg.norm(hit.normal) == pytest.approx(1)
            if module is pycct:
                assert scene.closest_points(shape, start, rotation=turn).distance == pytest.approx(gap, abs=1e-9)
    assert counts["hit"] > 50 and counts["inside"] > 4


def test_boxes_and_planes_meet_segments_and_points():
    for hull, a, b in lines_and_points(pycct):
        scene = scene_with(hull)
        box = pycct.Box((0.5, 0.5, 0.5))
        hit = scene.sweep(box, (-5, 0, 0), (1, 0, 0), 10)
        reach = min(a[0], b[0])
        if abs(a[1]) <= 0.5 or abs(b[1]) <= 0.5 or a[1] * b[1] < 0:
            assert hit.distance == pytest.approx(5 + reach - 0.5, abs=1e-12)
        assert scene.closest_points(box, (-5, 0, 0)).distance > 0
        assert scene.overlap(box, tuple((a + b) / 2)) and scene.penetration(box, tuple((a + b) / 2))
        floor = pycct.Plane((0, 1, 0), -3.0)
        assert scene.sweep(floor, (0, 0, 0), (0, 1, 0), 9).distance == pytest.approx(min(a[1], b[1]) + 3)
        # A line has no surface that a ray could meet.
        assert scene.raycast((-5, 0, 0), (1, 0, 0), 20) is None


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
@pytest.mark.parametrize("module", [pycct, reference])
def test_characters_meet_segments(module, rules):
    scene = scene_with(module.ConvexHull([(1, -3, 0.9), (1, 3, 0.9)]), module)
    scene.add(module.Plane((0, 0, 1)))
    hero = module.CharacterController(scene, position=(0, 0, 1), radius=0.3, height=1.2, contact_offset=0.02,
                                      step_offset=0.3, rules=rules)
    hero.foot_position = (0, 0, 0)
    for _ in range(40):
        hero.move((0.05, 0, -0.02), 1 / 60)
    assert hero.position[0] == pytest.approx(1 - 0.32, abs=1e-6)
    # A character also stands on a taut rope.
    hero.foot_position = (1, 0, 1.2)
    for _ in range(40):
        hero.move((0, 0, -0.02), 1 / 60)
    assert hero.foot_position[2] == pytest.approx(0.9, abs=1e-6) and hero.grounded


# --- Rays in the faces of boxes and hulls


def test_a_ray_in_a_face_meets_a_box_as_it_meets_its_mesh():
    """Every ray of a small lattice hits a box, a hull and a mesh of the same cube alike."""
    v, t = box_mesh((1, 1, 1))
    scenes = [scene_with(s) for s in (pycct.Box((1, 1, 1)), pycct.ConvexHull(v), pycct.Mesh(v, t))]
    lattice = [p for p in itertools.product((-2, -1, 0, 1, 2), repeat=3) if max(map(abs, p)) == 2]
    ways = [p for p in itertools.product((-2, -1, 0, 1, 2), repeat=3) if any(p)]
    origins = np.array([o for o in lattice for _ in ways], float)
    directions = np.array([w for _ in lattice for w in ways], float)
    box, hull, mesh = (s.raycast_many(origins, directions, 20.0) for s in scenes)
    wanted = slab(origins, directions)
    assert np.array_equal(box.hit, np.isfinite(wanted)) and np.array_equal(hull.hit, box.hit)
    # At an edge between a visible face and a culled one, rounding decides whether the ray hits a
    # mesh.
    assert (mesh.hit <= box.hit).all() and mesh.hit.sum() > 0.99 * box.hit.sum()
    for got in (box, hull, mesh):
        assert np.allclose(got.distance[got.hit], wanted[got.hit], rtol=0, atol=1e-12)
    in_face = [((2, 1, 0), (-1, 0, 0)), ((0, -1, 2), (0, 0, -1)), ((2, 1, 1), (-1, 0, 0)), ((1, 2, -1), (0, -1, 0)),
               ((2, 2, 1), (-1, -1, 0))]
    for origin, way in in_face:
        hits = [s.raycast(origin, way, 5) for s in scenes]
        assert len({h.distance for h in hits}) == 1 and hits[0].distance > 0
        assert all(np.dot(h.normal, way) < 0 for h in hits)
    # A ray along a face and away from it, or beside it, hits nothing.
    beside = [((2, 1, 0), (1, 0, 0)), ((1, 1, 0), (1, 0, 0)), ((1, 0, 0), (1, 0, 0)), ((2, 1 + 1e-12, 0), (-1, 0, 0))]
    for origin, way in beside:
        assert [s.raycast(origin, way, 5) for s in scenes] == [None] * 3


@pytest.mark.parametrize("module", [pycct, reference])
def test_a_ray_in_a_face_of_a_box_anywhere(module):
    """The faces of a box are where its triangles are, at positions that rounding affects too."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        half, place = rng.uniform(0.1, 3, 3).round(2), rng.uniform(-9, 9, 3).round(2)
        v, t = box_mesh(half)
        shapes = module.Box(tuple(half)), module.ConvexHull(v), module.Mesh(v, t)
        scenes = [scene_with(s, module, position=tuple(place)) for s in shapes]
        across, along = rng.permutation(3)[:2]
        for sign in (-1, 1):
            offset = rng.uniform(-0.9, 0.9, 3) * half
            offset[across] = sign * half[across]
            offset[along] = -half[along] - 2
            way = tuple(UNIT[along].tolist())
            origin = place + offset
            # The corners of the placed mesh, to the bit.
            origin[across] = place[across] + sign * half[across]
            hits = [s.raycast(tuple(origin), way, 5) for s in scenes]
            assert all(h.distance == pytest.approx(2.0, abs=1e-12) for h in hits)
            assert all(h.normal == tuple(-x for x in way) for h in hits)
            beside = origin.copy()
            beside[across] += sign * 1e-12
            assert [s.raycast(tuple(beside), way, 5) for s in scenes] == [None] * 3


def slab(origins, directions, half=1.0):
    """Where rays enter a cube or its surface; inf for a miss, or a start on it that leaves."""
    unit = directions / np.linalg.norm(directions, axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        near = (-np.sign(unit) * half - origins) / unit
        far = (np.sign(unit) * half - origins) / unit
    still = unit == 0
    out = (still & (np.abs(origins) > half)).any(1)
    near, far = np.where(still, -np.inf, near), np.where(still, np.inf, far)
    enter, leave = near.max(1), far.min(1)
    return np.where(out | (enter > leave) | (enter < 0), np.inf, enter)
