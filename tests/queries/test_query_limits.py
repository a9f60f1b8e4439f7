"""Planes as query shapes, inclusive limits, ties, unusual pairs of shapes, and growing buffers."""

import itertools
import math

import brute
import numpy as np
import pytest
import worlds

import pycct
from pycct.queries.shape_pairs import distance_between

# --- Planes as query shapes


def cloud_of(shape, place, rotation, scale):
    """Points and a radius: their grown hull is the shape in the scene."""
    place, scale = np.asarray(place, float), np.asarray(scale, float)
    radius = 0.0
    if isinstance(shape, pycct.Sphere):
        points, radius = np.zeros((1, 3)), shape.radius * scale[0]
    elif isinstance(shape, pycct.Capsule):
        points, radius = np.array([(0, 0, -shape.height / 2), (0, 0, shape.height / 2)]), shape.radius * scale[0]
    elif isinstance(shape, pycct.Box):
        points = np.array(list(itertools.product((-1, 1), repeat=3))) * shape.half_extents
    elif isinstance(shape, pycct.Triangle):
        points = np.array(shape.vertices)
    elif isinstance(shape, pycct.Heightfield):
        mesh = shape.to_mesh()
        points = mesh.vertices[np.unique(mesh.triangles)]
    elif isinstance(shape, pycct.Mesh):
        points = shape.vertices[np.unique(shape.triangles)]
    else:
        points = shape.vertices
    return brute.rotate(rotation, points * scale) + place, radius


@pytest.mark.parametrize("seed", range(3))
def test_a_plane_measures_the_lowest_point_of_every_shape(seed):
    """Distance, sign and side, from the corners of each shape; a radius counts downwards."""
    rng = np.random.default_rng(seed)
    told = dict.fromkeys(("apart", "inside", "swept"), 0)
    for p in worlds.placings(rng):
        if isinstance(p["shape"], pycct.Plane):
            continue
        scene = pycct.Scene()
        actor = scene.add(**p)
        cloud, radius = cloud_of(p["shape"], p["position"], p["rotation"], p["scale"])
        for _ in range(6):
            normal = rng.normal(size=3)
            normal /= np.linalg.norm(normal)
            # The plane is above and below the lowest point.
            low = float((cloud @ normal).min()) - radius
            offset = low + rng.uniform(-2, 2)
            plane = pycct.Plane(tuple(normal), 0.0)
            place = tuple(normal * offset)
            near = scene.closest_points(plane, place)
            assert near.distance == pytest.approx(low - offset, abs=1e-9)
            assert np.abs(np.add(near.normal, normal)).max() < 1e-9
            assert np.dot(near.position, normal) == pytest.approx(low, abs=1e-9)
            assert np.dot(near.point, normal) == pytest.approx(offset, abs=1e-9)
            gaps = np.linalg.norm(cloud - near.position, axis=1)
            assert gaps.min() == pytest.approx(radius, abs=1e-9)
            assert scene.overlap(plane, place) == ([actor] if low < offset else [])
            ways = scene.penetration(plane, place)
            if low < offset:
                told["inside"] += 1
                assert ways[0].depth == pytest.approx(offset - low, abs=1e-9)
                assert np.abs(np.add(ways[0].direction, normal)).max() < 1e-9
                assert scene.sweep(plane, place, normal, 5).overlapping
                continue
            told["apart"] += 1
            assert ways == []
            way = rng.normal(size=3)
            way /= np.linalg.norm(way)
            hit = scene.sweep(plane, place, way, 50)
            if way @ normal <= 0:
                assert hit is None
            elif (low - offset) / (way @ normal) < 49:
                told["swept"] += 1
                assert hit.distance == pytest.approx((low - offset) / (way @ normal), abs=1e-8)
                assert np.abs(np.add(hit.normal, normal)).max() < 1e-9
    assert all(n > 5 for n in told.values()), told


def test_a_plane_reports_the_same_one_of_equally_low_points():
    """Geometry, not order, decides among corners, ends of a capsule and vertices."""
    down, up = pycct.Plane((0, 0, 1), 0.0), (0, 0, -5)

    def met(shape, **where):
        scene = pycct.Scene()
        scene.add(shape, **where)
        return scene.closest_points(down, up)

    assert met(pycct.Box((1, 2, 3))).position == (1, 2, -3)
    assert met(pycct.Box((1, 2, 3)), scale=(-1, 1, 1)).position == (1, 2, -3)
    half = math.sqrt(0.5)
    level = (half, 0, 0, half)
    ends = met(pycct.Capsule(0.5, 2), rotation=level).position
    assert ends == pytest.approx((0, 1, -0.5), abs=1e-12) or ends == pytest.approx((0, -1, -0.5), abs=1e-12)
    for order in itertools.permutations(range(4)):
        v = np.array([(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0)], float)[list(order)]
        back = [order.index(k) for k in range(4)]
        mesh = pycct.Mesh(v, [[back[0], back[1], back[2]], [back[0], back[2], back[3]]])
        assert met(mesh).position == (0, 0, 0) and met(mesh).triangle == 0
        mesh = pycct.Mesh(v, [[back[1], back[2], back[3]], [back[0], back[1], back[3]]])
        assert met(mesh).position == (0, 0, 0) and met(mesh).triangle == 1
        assert met(pycct.ConvexHull(v)).position == (0, 0, 0)
        # The order of the placed vertices decides, whatever their order in the hull.
        assert met(pycct.ConvexHull(v), scale=(-1, 1, 1)).position == (-2, 0, 0)
        assert met(pycct.ConvexHull(v), scale=(-1, -1, 1)).position == (-2, -2, 0)
        assert met(pycct.ConvexHull(v), rotation=(0, 0, 1, 0)).position == pytest.approx((-2, -2, 0), abs=1e-12)


def test_a_capsule_is_as_low_as_its_lower_end():
    plane = pycct.Plane((0, 0, 1), 0.0)
    scene = pycct.Scene()
    scene.add(pycct.Capsule(0.5, 2), position=(0, 0, 3))
    assert scene.closest_points(plane, (0, 0, 0)).distance == 1.5
    assert scene.sweep(plane, (0, 0, 0), (0, 0, 1), 9).distance == 1.5
    assert scene.overlap(plane, (0, 0, 1.5)) == [] and len(scene.overlap(plane, (0, 0, 1.5000001))) == 1
    (way,) = scene.penetration(plane, (0, 0, 2))
    assert way.depth == 0.5 and way.direction == (0, 0, -1)


# --- Limits


def things():
    """Shapes whose lowest point is at the height 0 above the origin."""
    quad = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)
    cube = np.array(list(itertools.product((-1, 1), (-1, 1), (0, 2))), float)
    return {
        "sphere": (pycct.Sphere(1), (0, 0, 1)),
        "capsule": (pycct.Capsule(0.5, 1), (0, 0, 1)),
        "box": (pycct.Box((1, 1, 0.5)), (0, 0, 0.5)),
        "hull": (pycct.ConvexHull(cube), (0, 0, 0)),
        "flat hull": (pycct.ConvexHull(quad), (0, 0, 0)),
        "segment hull": (pycct.ConvexHull(quad[:2]), (0, 1, 0)),
        "triangle": (pycct.Triangle((-1, 1, 0), (1, 1, 0), (0, -1, 0)), (0, 0, 0)),
        "mesh": (pycct.Mesh(quad, [[0, 2, 1], [0, 3, 2]]), (0, 0, 0)),
        "heightfield": (pycct.Heightfield(np.zeros((3, 3)), 1.0, two_sided=True), (-1, -1, 0)),
        "plane": (pycct.Plane((0, 0, -1), 0.0), (0, 0, 0)),
    }


ASKERS = {
    "ray": None,
    "sphere": pycct.Sphere(0.5),
    "capsule": pycct.Capsule(0.25, 0.5),
    "box": pycct.Box((0.25, 0.25, 0.5)),
    "hull": pycct.ConvexHull(list(itertools.product((-0.25, 0.25), (-0.25, 0.25), (-0.5, 0.5)))),
    "plane": pycct.Plane((0, 0, 1), 0.5),
}


@pytest.mark.parametrize("what", things())
@pytest.mark.parametrize("who", ASKERS)
def test_limits_are_inclusive(who, what):
    """A result at the limit counts, and one just beyond does not, for every pair of shapes."""
    shape, place = things()[what]
    scene = pycct.Scene()
    scene.add(shape, place)
    asker = ASKERS[who]
    start, gap = (0, 0.0, -4), 4.0 if asker is None else 3.5
    if asker is None:
        if what == "segment hull":
            return  # a line has no surface
        assert scene.raycast(start, (0, 0, 1), gap).distance == gap
        assert scene.raycast(start, (0, 0, 1), np.nextafter(gap, 0)) is None
        assert scene.raycast_many([start] * 2, (0, 0, 1), [gap, np.nextafter(gap, 0)]).hit.tolist() == [True, False]
        return
    hit = scene.sweep(asker, start, (0, 0, 1), gap)
    assert hit is not None and hit.distance == gap and hit.time == 1.0
    assert scene.sweep(asker, start, (0, 0, 1), np.nextafter(gap, 0)) is None
    many = scene.sweep_many(asker, [start] * 2, (0, 0, 1), [gap, np.nextafter(gap, 0)])
    assert many.hit.tolist() == [True, False]
    # Rounding affects distances of polytopes; a search up to the reported distance finds the
    # result.
    least = scene.closest_points(asker, start).distance
    assert least == pytest.approx(gap, abs=1e-15 if isinstance(asker, (pycct.Box, pycct.ConvexHull)) else 0)
    near = scene.closest_points(asker, start, least)
    assert near is not None and near.distance == least
    assert scene.closest_points(asker, start, np.nextafter(least, 0)) is None
    many = scene.closest_points_many(asker, [start] * 2, [least, np.nextafter(least, 0)])
    assert many.hit.tolist() == [True, False]
    # A touch is no overlap, but it is near.
    touch = (0, 0, start[2] + gap)
    assert scene.overlap(asker, touch) == [] and scene.penetration(asker, touch) == []
    assert scene.closest_points(asker, touch, 0.0).distance == 0.0
    deeper = (0, 0, start[2] + gap + 0.125)
    assert len(scene.overlap(asker, deeper)) == 1
    assert scene.closest_points(asker, deeper, 0.0).distance <= 0


@pytest.mark.parametrize("who", [w for w in ASKERS if w not in ("ray", "plane")])
def test_geometry_decides_among_equally_near_actors(who):
    """Two planes, boxes, spheres and meshes at the same distance, added in both orders."""
    shape = pycct.Box((0.5, 0.5, 0.5)) if who == "box" else ASKERS[who]
    wide = {"sphere": 0.5, "capsule": 0.25, "box": 0.5, "hull": 0.25}[who]
    wall = np.array([(0, -1, -1), (0, 1, -1), (0, 1, 1), (0, -1, 1)], float)
    pairs = [
        [(pycct.Plane((1, 0, 0), -2.0), {}), (pycct.Plane((-1, 0, 0), -2.0), {})],
        [(pycct.Box((1, 1, 1)), {"position": (-3, 0, 0)}), (pycct.Box((1, 1, 1)), {"position": (3, 0, 0)})],
        [(pycct.Sphere(1), {"position": (-3, 0, 0)}), (pycct.Sphere(1), {"position": (3, 0, 0)})],
        [(pycct.Mesh(wall, [[0, 1, 2], [0, 2, 3]]), {"position": (-2, 0, 0)}),
         (pycct.Mesh(wall, [[0, 2, 1], [0, 3, 2]]), {"position": (2, 0, 0)})],
    ]
    for left, right in pairs:
        places = []
        for order in ((left, right), (right, left)):
            scene = pycct.Scene()
            for thing, where in order:
                scene.add(thing, **where)
            near = scene.closest_points(shape, (0, 0, 0))
            assert near.distance == 2 - wide
            assert scene.closest_points(shape, (0, 0, 0), 2 - wide).position == near.position
            places.append((near.position, near.normal, near.point))
        assert places[0] == places[1]
        assert places[0][0][0] == pytest.approx(-2.0)


def test_geometry_decides_among_equal_hits_of_a_cast():
    for kind in (pycct.Box((1, 1, 1)), pycct.Sphere(1), pycct.ConvexHull(list(itertools.product((-1, 1), repeat=3)))):
        for who in (pycct.Sphere(0.5), pycct.Capsule(0.5, 1), pycct.Box((3, 0.5, 0.5))):
            told = set()
            for order in ((-2, 2), (2, -2)):
                scene = pycct.Scene()
                for x in order:
                    scene.add(kind, (x, 0, 0))
                reach = isinstance(who, pycct.Box)
                hit = scene.sweep(who, (0, 0, 5), (0, 0, -1), 10)
                if hit is None:
                    assert not reach
                    continue
                told.add((hit.distance, hit.position, hit.normal, hit.actor.position))
            assert len(told) <= 1


# --- Unusual pairs of shapes


def unusual(rng):
    """Thin, flat, long, tiny and huge shapes, a line and a point, as (shape, points, radius)."""
    def hull(points, scale=(1, 1, 1)):
        shape = pycct.ConvexHull(points).scaled(scale)
        return shape, np.asarray(shape.vertices, float), 0.0

    ball = rng.normal(size=(10, 3)) * 0.4
    thin = rng.uniform(-1, 1, (6, 3)) * (1, 1, 1e-6)
    return [
        (pycct.Sphere(0.3), np.zeros((1, 3)), 0.3),
        (pycct.Sphere(1e-4), np.zeros((1, 3)), 1e-4),
        (pycct.Capsule(1e-3, 2), np.array([(0, 0, -1), (0, 0, 1)], float), 1e-3),
        (pycct.Capsule(0.4, 0.7), np.array([(0, 0, -0.35), (0, 0, 0.35)], float), 0.4),
        (pycct.Box((0.5, 0.4, 0.3)), np.array(list(itertools.product((-0.5, 0.5), (-0.4, 0.4), (-0.3, 0.3)))), 0.0),
        (pycct.Box((1, 1e-5, 0.7)), np.array(list(itertools.product((-1, 1), (-1e-5, 1e-5), (-0.7, 0.7)))), 0.0),
        hull(ball), hull(ball, (1, 0, 1)), hull(ball, (0, 0, 1.5)), hull(ball, (0, 0, 0)), hull(thin),
        hull(rng.normal(size=(2, 3))), hull(rng.normal(size=(1, 3))), hull(rng.normal(size=(3, 3))),
        hull(rng.normal(size=(4, 3)) * (1, 0, 1)),
    ]


def separated(a, b):
    """Distance of two convex sets of corners by Wolfe's algorithm; 0 if they meet."""
    points = (a[:, None] - b[None]).reshape(-1, 3)
    x = points[np.argmin((points**2).sum(1))]
    hold = [x]
    for _ in range(200):
        p = points[np.argmin(points @ x)]
        if x @ x - x @ p <= 1e-15 * max(1.0, float(x @ x)):
            return float(np.linalg.norm(x))
        hold.append(p)
        while True:
            s = np.array(hold)
            # The nearest point of their affine hull, with its weights.
            m = np.zeros((len(s) + 1,) * 2)
            m[:-1, :-1], m[-1, :-1], m[:-1, -1] = s @ s.T, 1, 1
            w = np.linalg.lstsq(m, np.array([0.0] * len(s) + [1.0]), rcond=None)[0][:-1]
            if (w > 1e-14).all():
                break
            old = np.linalg.lstsq(np.vstack([s.T, np.ones(len(s))]), np.append(x, 1.0), rcond=None)[0]
            drop = [o / (o - n) if n <= 1e-14 and o > n else np.inf for o, n in zip(old, w, strict=True)]
            k = int(np.argmin(drop))
            x = s.T @ (old + min(drop[k], 1.0) * (w - old)) if np.isfinite(drop[k]) else x
            hold.pop(k)
        x = s.T @ w
        if np.linalg.norm(x) < 1e-12:
            return 0.0
    return float(np.linalg.norm(x))


@pytest.mark.parametrize("seed", range(4))
def test_distances_of_unusual_pairs_equal_brute_force(seed):
    """Distance, overlap and time of impact of thin, flat, long and degenerate shapes."""
    rng = np.random.default_rng(100 + seed)
    shapes = unusual(rng)
    counts = dict.fromkeys(("apart", "overlapping", "swept"), 0)
    for (a, pa, ra), (b, pb, rb) in itertools.product(shapes, shapes):
        q, spin = worlds.unit(rng), worlds.unit(rng)
        place = rng.normal(size=3) * rng.choice([0.3, 1.5])
        ca, cb = brute.rotate(q, pa) + place, brute.rotate(spin, pb)
        core = separated(ca, cb)
        scene = pycct.Scene()
        scene.add(b, rotation=spin)
        d = distance_between(a, b, (place, q), (np.zeros(3), spin))
        near = scene.closest_points(a, place, rotation=q)
        assert near.distance == pytest.approx(d.distance, abs=1e-9)
        if core > 1e-7:
            assert d.distance == pytest.approx(core - ra - rb, abs=1e-7)
        apart = core - ra - rb
        if apart > 1e-7:
            counts["apart"] += 1
            assert d.distance > 0 and not scene.overlap(a, place, q) and not scene.penetration(a, place, q)
            # The normal and the difference of the points both lead from B to A.
            assert np.abs(np.subtract(d.point_a, d.point_b) - d.distance * np.array(d.normal)).max() < 1e-7
            assert (ca @ d.normal).min() - ra >= (cb @ d.normal).max() + rb + d.distance - 1e-7
            assert (ca @ near.normal).min() - ra >= (cb @ near.normal).max() + rb + d.distance - 1e-7
        elif apart < -1e-7 or (core == 0 and ra + rb == 0 and d.distance < -1e-7):
            counts["overlapping"] += 1
            assert d.distance < 0 and scene.overlap(a, place, q)
            (way,) = scene.penetration(a, place, q)
            assert way.depth == pytest.approx(-d.distance, abs=1e-6)
            out = np.array(way.direction) * way.depth
            assert separated(ca + out, cb) >= ra + rb - 1e-6
            continue
        else:
            continue
        aim = cb.mean(0) - ca.mean(0)
        if np.linalg.norm(aim) < 1e-6:
            continue
        hit = scene.sweep(a, place, aim, 20, rotation=q)
        if len(pa) <= 2 and len(pb) <= 2 and ra + rb == 0:
            continue  # two lines meet by chance only
        unit = aim / np.linalg.norm(aim)
        if hit is not None:
            counts["swept"] += 1
            assert separated(ca + unit * hit.distance, cb) == pytest.approx(ra + rb, abs=1e-6)
            for part in (0.25, 0.75, 0.999):
                assert separated(ca + unit * hit.distance * part, cb) > ra + rb - 1e-7
            assert np.dot(hit.normal, unit) < 1e-7
        else:
            for part in np.linspace(0, 1, 40):
                assert separated(ca + aim * 2 * part, cb) > ra + rb - 1e-6
    assert counts["apart"] > 50 and counts["overlapping"] > 10 and counts["swept"] > 20, counts


# --- Buffers that must grow


def test_queries_that_touch_more_than_their_first_buffers_contain():
    """One call has more touches, leaves, candidates and triangles than any first allocation."""
    rng = np.random.default_rng(2)
    scene = pycct.Scene()
    ball = pycct.Sphere(0.2)
    centres = rng.uniform(-3, 3, (700, 3))
    for c in centres:
        scene.add(ball, tuple(c), body="kinematic" if c[0] > 0 else "static")
    v = np.array([(x / 5 - 4, y / 5 - 4, 0) for x in range(41) for y in range(41)])
    t = [c for i in range(40) for j in range(40) for c in
         ((41 * i + j, 41 * i + 41 + j, 41 * i + 42 + j), (41 * i + j, 41 * i + 42 + j, 41 * i + j + 1))]
    mesh = scene.add(pycct.Mesh(v, t, two_sided=True))
    for reach in (0.05, 0.5, 2.5, 9.0):
        for shape in (pycct.Sphere(reach), pycct.Box((reach, reach, reach))):
            got = scene.overlap(shape, (0, 0, 0))
            if isinstance(shape, pycct.Sphere):
                want = np.linalg.norm(centres, axis=1) < reach + 0.2
            else:
                want = np.linalg.norm(centres - np.clip(centres, -reach, reach), axis=1) < 0.2
            assert [a.id for a in got] == [*np.flatnonzero(want), mesh.id]
            assert [p.actor.id for p in scene.penetration(shape, (0, 0, 0.001))][:-1] == [
                a.id for a in scene.overlap(shape, (0, 0, 0.001))][:-1]
    rows = scene.overlap_many(pycct.Sphere(1.0), centres)
    for k in range(0, 700, 7):
        near = np.flatnonzero(np.linalg.norm(centres - centres[k], axis=1) < 1.2)
        assert [i for i in rows.actor[rows.first[k] : rows.first[k + 1]] if i != mesh.id] == near.tolist()


def test_hulls_of_the_most_corners_and_faces():
    """Two hulls of 255 corners fill the tables of faces and edges; a long prism fills one face."""
    rng = np.random.default_rng(3)
    ball = rng.normal(size=(255, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    round_ = pycct.ConvexHull(ball)
    assert len(round_.vertices) == 255
    for place in ((1.5, 0.1, 0.2), (2.5, 0, 0), (0.1, 0, 0)):
        d = distance_between(round_, round_, None, (place, worlds.unit(rng)))
        assert d.distance == pytest.approx(np.linalg.norm(place) - 2, abs=0.06)
    scene = pycct.Scene()
    scene.add(round_)
    for shape, size in ((round_, 1.0), (pycct.Sphere(0.5), 0.5), (pycct.Box((0.5, 0.5, 0.5)), 0.5)):
        hit = scene.sweep(shape, (5, 0, 0), (-1, 0, 0), 10)
        assert hit.distance == pytest.approx(4 - size, abs=0.06)
    ring = [(math.cos(k * math.tau / 127), math.sin(k * math.tau / 127), z) for k in range(127) for z in (-1, 1)]
    prism = pycct.ConvexHull(ring)
    m = pycct.contacts_between(prism, prism, ((0, 0, 2), worlds.unit(rng) * 0 + (0, 0, 0, 1)), None)
    assert m.count == 32 and np.abs(m.distances).max() < 1e-9
    polygon = prism.scaled((1, 1, 0))
    turned = (0, 0, math.sin(0.01), math.cos(0.01))
    m = pycct.contacts_between(polygon, prism, ((0.01, 0, 1), turned), None)
    assert m.count == 32 and np.abs(m.distances).max() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_an_overlap_ends_at_the_first_triangle_and_misses_none(seed):
    """`overlap` returns a mesh or heightfield exactly if `closest_points` finds an overlap."""
    rng = np.random.default_rng(seed)
    scene = pycct.Scene()
    heights = rng.uniform(-1, 1, (30, 40))
    field = pycct.Heightfield(heights, (0.5, 0.5), two_sided=True)
    mesh = field.to_mesh()
    masks = np.where(rng.random(len(mesh.triangles)) < 0.7, 1, 2).astype(np.uint32)
    masked = pycct.Mesh(mesh.vertices, mesh.triangles, two_sided=True, triangle_mask=masks)
    turn = worlds.unit(rng)
    actors = [scene.add(field), scene.add(mesh, (0, 0, 3)), scene.add(masked, (0, 0, 6), turn, scale=(1, 0.5, 2))]
    told = []
    for shape in (pycct.Sphere(0.3), pycct.Capsule(0.2, 1.0), pycct.Box((0.3, 0.1, 0.5)), pycct.Sphere(40.0)):
        for _ in range(40):
            place, turned = rng.uniform((-2, -2, -3), (17, 22, 9)), worlds.unit(rng)
            got = scene.overlap(shape, place, rotation=turned, mask=1)
            for actor in actors:
                near = scene.closest_points(shape, place, 0.0, rotation=turned, mask=1,
                                            filter=lambda other, actor=actor: other is actor)
                assert (actor in got) == (near is not None and near.distance < 0)
                told.append(actor in got)
    assert 100 < sum(told) < len(told) - 100


@pytest.mark.parametrize("seed", range(2))
def test_distances_of_round_shapes_from_triangles_equal_the_general_case(seed):
    """Closed forms of spheres and capsules equal `distance_between` at all distances."""
    rng = np.random.default_rng(seed)
    near, far = 0, 0
    for shape in (pycct.Sphere(0.3), pycct.Capsule(0.2, 0.8), pycct.Capsule(0.05, 3.0)):
        for _ in range(150):
            size = 10.0 ** rng.uniform(-2, 1)
            corners = rng.normal(size=(3, 3)) * size
            place, turn = rng.normal(size=3) * rng.choice([0.1, 0.5, 2.0, 8.0]), worlds.unit(rng)
            for other in (pycct.Mesh(corners, [(0, 1, 2)]), pycct.Sphere(size), pycct.Capsule(size, 0.7 * size)):
                scene = pycct.Scene()
                scene.add(other)
                solid = pycct.Triangle(*corners) if isinstance(other, pycct.Mesh) else other
                got = scene.closest_points(shape, place, rotation=turn)
                want = distance_between(shape, solid, (place, turn), None)
                assert got.distance == pytest.approx(want.distance, abs=1e-9)
                near += got.distance < 0
                far += got.distance > 0
                gap = np.subtract(got.point, got.position)
                assert np.abs(gap - got.distance * np.asarray(got.normal)).max() < 1e-9 * (1 + abs(got.distance))
                if want.distance > 1e-6:
                    assert np.dot(got.normal, want.normal) > 1 - 1e-6
                # The distance itself counts, and no more.
                if got.distance > 0:
                    assert scene.closest_points(shape, place, got.distance, rotation=turn) is not None
                    assert scene.closest_points(shape, place, got.distance * (1 - 1e-9), rotation=turn) is None
    assert near > 100 and far > 100
