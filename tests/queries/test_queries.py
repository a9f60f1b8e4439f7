"""Scene queries equal a test of every actor, are exact, and do not depend on how they are made."""

import itertools
import threading

import numpy as np
import pytest
import worlds

import pycct
from pycct.queries.shape_pairs import distance_between

MASK = 0b101
SAME_TIME = 1e-11  # of the way: triangles of one surface touched this early are touched at once


def questions(rng, n, reach=9.0):
    """Positions, unit directions, lengths and rotations; some start inside of shapes."""
    places = rng.uniform(-7, 7, (n, 3))
    ways = rng.normal(size=(n, 3))
    ways[n // 2 :] = rng.uniform(-2, 2, (n - n // 2, 3)) - places[n // 2 :]
    ways[: n // 8] = np.eye(3)[rng.integers(0, 3, n // 8)] * rng.choice([-1, 1], (n // 8, 1))
    return places, ways, rng.uniform(0, reach, n), worlds.unit(rng, n)


def ask(scene, shape, places, ways, lengths, turns, mask=0xFFFFFFFF, **more):
    if shape is None:
        return scene.raycast_many(places, ways, lengths, mask, **more)
    return scene.sweep_many(shape, places, ways, lengths, turns, mask, **more)


def brute_nearest(placed, shape, q, mask):
    """Distance, actor and triangle of each query, by the rules alone."""
    n = len(q[0])
    rows = [[] for _ in range(n)]
    for actor, tri, scene, surface in worlds.split(placed, mask):
        h = ask(scene, shape, *q)
        normal = None
        if surface:
            # The facing of the triangle towards the motion, from a ray against its plane.
            mesh = scene.actors[0]
            normal = world_normal(mesh)
        for i in np.flatnonzero(h.hit):
            unit = q[1][i] / np.linalg.norm(q[1][i])
            facing = abs(normal @ unit) if surface else None
            rows[i].append((h.distance[i], actor, tri, facing, bool(h.overlapping[i]), surface))
    best = []
    round_ = isinstance(shape, (pycct.Sphere, pycct.Capsule))
    for hits in rows:
        if not hits:
            best.append(None)
            continue
        d = min(h[0] for h in hits)
        touched = [h for h in hits if h[0] == d]
        named = set()
        for actor in {h[1] for h in touched}:
            own = [h for h in hits if h[1] == actor]
            if not own[0][5]:
                named.add((actor, -1))
                continue
            first = min(h[0] for h in own)
            inside = any(h[4] for h in own)
            if round_ and not inside:
                own = [h for h in own if h[0] <= first + SAME_TIME * max(1.0, h[0])]
            elif inside:
                own = [h for h in own if h[4]]
            else:
                own = [h for h in own if h[0] == first]
            most = max(h[3] for h in own)
            named |= {(actor, h[2]) for h in own if h[3] >= most - 1e-9}
        best.append((d, named))
    return best


def world_normal(actor):
    v = actor.shape.vertices * actor.scale
    q = np.array(actor.rotation)
    t = 2 * np.cross(q[:3], v)
    v = v + q[3] * t + np.cross(q[:3], t)
    n = np.cross(v[1] - v[0], v[2] - v[0])
    return n / np.linalg.norm(n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("who", ["ray", "sphere", "capsule", "box", "hull", "flat hull", "triangle", "plane"])
def test_nearest_hit_equals_a_test_of_every_actor(who, seed):
    rng = np.random.default_rng([seed, 1])
    placed = worlds.placings(rng)
    shape = None if who == "ray" else worlds.askers(rng)[who]
    q = questions(rng, 200)
    got = ask(worlds.scene_of(placed), shape, *q, MASK)
    want = brute_nearest(placed, shape, q, MASK)
    assert got.hit.sum() > 12
    for i, w in enumerate(want):
        assert bool(got.hit[i]) == (w is not None), i
        if w is not None:
            assert got.distance[i] == w[0], (i, got.distance[i], w)
            if who != "plane":
                assert (got.actor[i], got.triangle[i]) in w[1], (i, w, got.actor[i], got.triangle[i])


@pytest.mark.parametrize("who", ["sphere", "capsule", "box", "hull", "flat hull", "triangle", "plane"])
def test_overlap_equals_a_test_of_every_actor(who):
    rng = np.random.default_rng(5)
    placed = worlds.placings(rng, span=3.0)
    shape = worlds.askers(rng)[who]
    places, _, _, turns = questions(rng, 200)
    places = places * 0.6
    got = worlds.scene_of(placed).overlap_many(shape, places, turns, MASK)
    want = [set() for _ in places]
    for actor, _, scene, _ in worlds.split(placed, MASK):
        for i in np.flatnonzero(scene.overlap_many(shape, places, turns).hit):
            want[i].add(actor)
    assert got.hit.sum() > 20
    for i, w in enumerate(want):
        assert got.actor[got.first[i] : got.first[i + 1]].tolist() == sorted(w)
        assert bool(got.hit[i]) == bool(w)


@pytest.mark.parametrize("who", ["sphere", "capsule", "box", "hull", "flat hull", "triangle", "plane"])
def test_closest_points_equal_a_test_of_every_actor(who):
    rng = np.random.default_rng(6)
    placed = worlds.placings(rng, span=4.0)
    shape = worlds.askers(rng)[who]
    places, _, _, turns = questions(rng, 60)
    reach = rng.uniform(0.5, 6, 60)
    reach[::7] = np.inf
    got = worlds.scene_of(placed).closest_points_many(shape, places, reach, turns, MASK)
    least = np.full(60, np.inf)
    for _, _, scene, _ in worlds.split(placed, MASK):
        one = scene.closest_points_many(shape, places, reach, turns)
        least = np.where(one.hit & (one.distance < least), one.distance, least)
    assert np.array_equal(got.hit, least < np.inf)
    assert got.hit.sum() > 20 and (got.distance[got.hit] <= reach[got.hit]).all()
    assert np.array_equal(got.distance[got.hit], least[got.hit])
    if who != "plane":
        assert (got.distance < 0).any() and (got.distance > 0).any()
    real = np.isfinite(got.distance)
    gap = (got.point - got.position)[real]
    assert np.allclose(gap, (got.distance[:, None] * got.normal)[real], atol=1e-7)
    assert real.all() or who == "plane"


@pytest.mark.parametrize("who", ["ray", "sphere", "capsule", "box", "hull", "triangle"])
def test_results_do_not_depend_on_the_order_of_adding_or_on_storage(who):
    rng = np.random.default_rng(7)
    placed = worlds.placings(rng)
    shape = None if who == "ray" else worlds.askers(rng)[who]
    q = questions(rng, 150)
    one = ask(worlds.scene_of(placed), shape, *q)
    order = rng.permutation(len(placed))
    mixed = []
    for k in order:
        p = dict(placed[k])
        if isinstance(p["shape"], pycct.Mesh):
            m = p["shape"]
            p["shape"] = shuffled(rng, m)
        mixed.append(p)
    two = ask(worlds.scene_of(mixed), shape, *q)
    for name in ("hit", "distance", "position", "normal", "overlapping"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert np.array_equal(one.actor[one.hit], order[two.actor[two.hit]])


def shuffled(rng, mesh):
    """The same mesh with its triangles and vertices in another order."""
    v, t = mesh.vertices, mesh.triangles
    p = rng.permutation(len(v))
    where = np.argsort(p)
    t = where[t][rng.permutation(len(t))]
    turn = rng.integers(0, 3, len(t))
    t = np.stack([np.roll(row, k) for row, k in zip(t, turn, strict=True)])
    return pycct.Mesh(v[p], t, mesh.two_sided)


@pytest.mark.parametrize("who", ["box", "hull", "flat hull", "triangle", "sphere", "capsule"])
def test_a_cast_shape_touches_at_its_distance_and_nothing_before(who):
    # The oracle is distance_between: another algorithm (GJK and penetration) without a sweep.
    rng = np.random.default_rng(11)
    shape = worlds.askers(rng)[who]
    targets = [
        pycct.Box((0.5, 0.3, 0.7)), pycct.ConvexHull(rng.normal(size=(15, 3))), pycct.Sphere(0.6),
        pycct.Capsule(0.4, 0.8), pycct.Triangle(*rng.normal(size=(3, 3))),
    ]
    checked = missed = 0
    for target, _ in itertools.product(targets, range(40)):
        place, turn = rng.uniform(-1, 1, 3), worlds.unit(rng)
        start, way, mine = rng.normal(size=3) * 3, rng.normal(size=3), worlds.unit(rng)
        way /= np.linalg.norm(way)
        if rng.random() < 0.6:
            way = (place - start + rng.normal(size=3) * 0.5) / np.linalg.norm(place - start)
            way /= np.linalg.norm(way)
        scene = pycct.Scene()
        scene.add(target, place, turn)

        def gap(t, start=start, way=way, mine=mine, target=target, place=place, turn=turn):
            return distance_between(shape, target, (start + way * t, mine), (place, turn)).distance

        hit = scene.sweep(shape, start, way, 8.0, mine)
        if isinstance(target, pycct.Triangle):
            a, b, c = (np.array(p) for p in target.vertices)
            n = np.cross(b - a, c - a)
            u = 2 * np.cross(turn[:3], n)
            if (n + turn[3] * u + np.cross(turn[:3], u)) @ way > 0:
                assert hit is None
                continue
        if hit is None:
            missed += 1
            assert min(gap(t) for t in np.linspace(0, 8, 60)) > -1e-7
        elif hit.overlapping:
            assert gap(0.0) < 1e-9 and hit.distance == 0.0
        else:
            checked += 1
            assert abs(gap(hit.distance)) < 1e-8, (hit, gap(hit.distance))
            assert all(gap(hit.distance * k) > -1e-9 for k in np.linspace(0, 0.999, 25))
            # The shape that is hit is behind the normal, and the point is on both surfaces.
            assert np.dot(hit.normal, way) < 1e-9
            dot = pycct.Sphere(1e-9)
            at = (hit.position, (0, 0, 0, 1))
            assert distance_between(dot, target, at, (place, turn)).distance < 1e-7
            end = (start + way * hit.distance, mine)
            assert distance_between(dot, shape, at, end).distance < 1e-7
    assert checked > 50 and missed > 20


def test_batches_equal_single_queries_to_the_bit():
    rng = np.random.default_rng(12)
    scene = worlds.scene_of(worlds.placings(rng))
    places, ways, lengths, turns = questions(rng, 60)
    for name, shape in {"ray": None, **worlds.askers(rng)}.items():
        many = ask(scene, shape, places, ways, lengths, turns)
        for i in range(len(places)):
            if shape is None:
                one = scene.raycast(places[i], ways[i], lengths[i])
            else:
                one = scene.sweep(shape, places[i], ways[i], lengths[i], turns[i])
            assert bool(many.hit[i]) == (one is not None), name
            if one is None:
                assert (many.actor[i], many.triangle[i], many.time[i]) == (-1, -1, 1.0)
                assert many.distance[i] == lengths[i]
                continue
            assert (one.distance, one.time) == (many.distance[i], many.time[i])
            assert one.position == tuple(many.position[i]) and one.normal == tuple(many.normal[i])
            assert one.actor.id == many.actor[i] and one.overlapping == many.overlapping[i]
            assert (-1 if one.triangle is None else one.triangle) == many.triangle[i]
            assert (0 if one.data is None else one.data) == many.data[i]
            assert (0xFFFFFFFF if one.mask is None else one.mask) == many.mask[i]
        if shape is None:
            continue
        outs, near = scene.penetration_many(shape, places, turns), scene.closest_points_many(shape, places, 3.0, turns)
        for i in range(len(places)):
            rows = slice(outs.first[i], outs.first[i + 1])
            singles = scene.penetration(shape, places[i], turns[i])
            assert [p.actor.id for p in singles] == outs.actor[rows].tolist()
            assert [p.depth for p in singles] == outs.depth[rows].tolist()
            assert [p.direction for p in singles] == [tuple(d) for d in outs.direction[rows]]
            one = scene.closest_points(shape, places[i], 3.0, turns[i])
            assert bool(near.hit[i]) == (one is not None)
            if one is not None:
                assert (one.distance, one.point, one.position, one.normal) == (
                    near.distance[i], tuple(near.point[i]), tuple(near.position[i]), tuple(near.normal[i]))


@pytest.mark.parametrize("who", ["sphere", "capsule", "box", "hull"])
def test_the_way_out_of_a_solid_leads_out(who):
    rng = np.random.default_rng(13)
    shape = worlds.askers(rng)[who]
    solids = [pycct.Box((0.6, 0.4, 0.8)), pycct.ConvexHull(rng.normal(size=(15, 3))), pycct.Sphere(0.7),
              pycct.Capsule(0.5, 0.6), pycct.Plane((0.1, 0.2, 1), 0.3)]
    seen = 0
    for solid, _ in itertools.product(solids, range(40)):
        scene = pycct.Scene()
        scene.add(solid, rng.uniform(-0.4, 0.4, 3), worlds.unit(rng))
        place, turn = rng.uniform(-0.6, 0.6, 3), worlds.unit(rng)
        out = scene.penetration(shape, place, turn)
        assert [p.actor for p in out] == scene.overlap(shape, place, turn)
        for actor, direction, depth in out:
            seen += 1
            assert depth > 0 and abs(np.linalg.norm(direction) - 1) < 1e-12
            there = place + np.array(direction) * (depth + 1e-7)
            assert scene.overlap(shape, there, turn) == []
            # The exit is the shortest: a slightly shorter one does not suffice.
            if depth > 1e-3:
                assert scene.overlap(shape, place + np.array(direction) * (depth - 1e-4), turn) == [actor]
            near = scene.closest_points(shape, place, 1.0, turn)
            assert abs(near.distance + depth) < 1e-7
    assert seen > 60


def test_solids_are_solid_for_rays_and_surfaces_are_not():
    scene = pycct.Scene()
    for k, solid in enumerate([pycct.Box((1, 1, 1)), pycct.Sphere(1), pycct.Capsule(1, 1),
                               pycct.ConvexHull(np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]))]):
        scene.add(solid, (10 * k, 0, 0))
        hit = scene.raycast((10 * k, 0.1, 0), (0, 0, 1), 5)
        assert (hit.distance, hit.overlapping, hit.normal) == (0, True, (0, 0, -1))
    plane = scene.add(pycct.Plane((0, 0, 1), -5))
    assert scene.raycast((100, 0, -7), (0, 0, 1), 5).actor is plane
    assert scene.raycast((100, 0, -4), (0, 0, 1), 5) is None
    mesh = pycct.Scene()
    mesh.add(pycct.Mesh([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], [[0, 1, 2]]))
    assert mesh.raycast((0, 0, 1), (0, 0, -1), 5).distance == 1
    assert mesh.raycast((0, 0, -1), (0, 0, 1), 5) is None
    assert mesh.raycast((0, 0, 1), (0, 0, -1), 1).distance == 1
    assert mesh.raycast((0, 0, 1), (0, 0, -1), 0.999) is None


def test_no_ray_slips_between_two_triangles():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(300, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    hull = pycct.ConvexHull(points[:200])
    # Rays from inside aim at all vertices, edges and faces of a closed surface.
    scene = pycct.Scene()
    from pycct.convex.hull import HullTables

    tables = HullTables(points[:200])
    scene.add(pycct.Mesh(tables.vertices, tables.triangles[:, ::-1]))
    a, b = tables.vertices[tables.edges[:, 0]], tables.vertices[tables.edges[:, 1]]
    shares = rng.random((len(a), 1))
    aims = np.concatenate([tables.vertices, a + (b - a) * shares, (a + b) / 2])
    origins = rng.uniform(-0.2, 0.2, (len(aims), 3))
    for _ in range(5):
        assert scene.raycast_many(origins, aims - origins, 3.0).hit.all()
        origins = rng.uniform(-0.3, 0.3, (len(aims), 3))
    assert hull.vertices.shape[0] == len(tables.vertices)


def test_mask_of_actors_and_of_triangles():
    floor = pycct.Mesh([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], [[0, 1, 2], [0, 2, 3]],
                       triangle_data=[70, 80], triangle_mask=[0b01, 0b10])
    scene = pycct.Scene()
    scene.add(floor, layer=0b11)
    down = (0, 0, -1)
    one, two = scene.raycast((0.5, -0.5, 1), down, 2), scene.raycast((-0.5, 0.5, 1), down, 2)
    assert (one.triangle, one.data, one.mask) == (0, 70, 1) and (two.triangle, two.data, two.mask) == (1, 80, 2)
    assert scene.raycast((0.5, -0.5, 1), down, 2, mask=0b10) is None
    assert scene.raycast((0.5, -0.5, 1), down, 2, mask=0b100) is None
    box = pycct.Box((0.1, 0.1, 0.1))
    assert scene.sweep(box, (0.5, -0.5, 1), down, 2, mask=2) is None
    assert scene.overlap(box, (0.5, -0.5, 0), mask=2) == [] and len(scene.overlap(box, (0.5, -0.5, 0), mask=1)) == 1
    assert scene.penetration(pycct.Sphere(0.2), (0.5, -0.5, 0.1), mask=2) == []
    assert scene.closest_points(box, (0.5, -0.5, 1), 0.95, mask=2) is None
    # A character walks only on triangles of its mask.
    for mask, falls in ((0b01, False), (0b10, True)):
        hero = pycct.CharacterController(scene, position=(0.5, -0.3, 1.0), mask=mask, radius=0.1, height=0.5)
        for _ in range(40):
            hero.move((0, 0, -0.05), 1 / 60)
        assert (hero.position[2] < -0.5) == falls


def test_the_filter_runs_once_for_each_actor_and_may_fail():
    rng = np.random.default_rng(8)
    scene = worlds.scene_of(worlds.placings(rng))
    q = questions(rng, 80)
    box = pycct.Box((0.3, 0.3, 0.3))
    asked = []

    def even(actor):
        asked.append(actor.id)
        return actor.id % 2 == 0

    got = scene.sweep_many(box, *q[:3], q[3], filter=even)
    assert len(asked) == len(set(asked)) and got.hit.any()
    half = pycct.Scene()
    kept = [half.add(a.shape, a.position, a.rotation, a.scale) for a in scene.actors if a.id % 2 == 0]
    want = half.sweep_many(box, *q[:3], q[3])
    assert np.array_equal(got.distance, want.distance) and np.array_equal(got.hit, want.hit)
    assert len(kept) > 3
    one = scene.raycast(q[0][0], q[1][0], 50.0, filter=lambda a: False)
    assert one is None

    def fails(actor):
        raise KeyError("mine")

    for call in (lambda: scene.raycast((0, 0, 20), (0, 0, -1), 40, filter=fails),
                 lambda: scene.overlap(box, (0, 0, 0), filter=fails),
                 lambda: scene.closest_points(box, (0, 0, 0), filter=fails),
                 lambda: scene.overlap_many(box, q[0], filter=fails)):
        with pytest.raises(KeyError, match="mine"):
            call()


def test_include_names_characters():
    scene = pycct.Scene()
    floor = scene.add(pycct.Box((5, 5, 1)), (0, 0, -1))
    hero = pycct.CharacterController(scene, position=(1, 1, 1), radius=0.4, height=1.0)
    down = (0, 0, -1)
    assert scene.raycast((1, 1, 5), down, 9).actor is floor
    hit = scene.raycast((1, 1, 5), down, 9, include="all")
    assert hit.controller is hero and hit.actor is None and abs(hit.distance - (5 - 1.9)) < 1e-12
    assert scene.raycast((3, 3, 5), down, 9, include="characters") is None
    assert scene.raycast((3, 3, 5), down, 9, include="all").actor is floor
    ball = pycct.Sphere(0.5)
    assert scene.overlap(ball, (1, 1, 0.3), include="all") == [floor, hero]
    assert scene.overlap(ball, (1, 1, 0.3), include="characters") == [hero]
    assert scene.penetration(ball, (1.5, 1, 1), include="characters")[0].controller is hero
    assert scene.closest_points(ball, (3, 1, 1), include="characters").controller is hero
    many = scene.raycast_many([[1, 1, 5], [3, 3, 5]], down, 9, include="all")
    assert many.controller.tolist() == [hero.id, -1] and many.actor.tolist() == [-1, floor.id]
    with pytest.raises(ValueError, match="include"):
        scene.raycast((1, 1, 5), down, 9, include="everything")
    with pytest.raises(TypeError, match="exclude"):
        scene.raycast((1, 1, 5), down, 9, exclude="all")


def test_obstacles_are_not_seen():
    scene = pycct.Scene()
    scene.add_obstacle(pycct.Box((1, 1, 1)))
    assert scene.raycast((0, 0, 5), (0, 0, -1), 9) is None
    assert scene.overlap(pycct.Box((1, 1, 1)), (0, 0, 0)) == []
    assert scene.closest_points(pycct.Box((1, 1, 1)), (0, 0, 0)) is None


def test_a_plane_as_query_shape_is_a_half_space():
    scene = pycct.Scene()
    mesh = scene.add(pycct.Mesh([[0, 0, 1], [1, 0, 2], [0, 1, 3]], [[0, 1, 2]], triangle_data=[9]))
    floor = pycct.Plane((0, 0, 1), 0)
    hit = scene.sweep(floor, (0, 0, -4), (0, 0, 1), 9)
    assert (hit.distance, hit.position, hit.normal, hit.actor) == (5, (0, 0, 1), (0, 0, -1), mesh)
    assert (hit.triangle, hit.data) == (0, 9)
    assert scene.sweep(floor, (0, 0, -4), (0, 0, -1), 9) is None
    assert scene.overlap(floor, (0, 0, 0.9)) == [] and scene.overlap(floor, (0, 0, 1.1)) == [mesh]
    (actor, direction, depth), = scene.penetration(floor, (0, 0, 1.5))
    assert actor is mesh and direction == (0, 0, -1) and depth == 0.5
    assert scene.closest_points(floor, (0, 0, -1)).distance == 2
    other = scene.add(pycct.Plane((0, 0, -1), -5))
    assert scene.sweep(floor, (0, 0, -4), (0, 0, 1), 20, filter=lambda a: a is other).distance == 9
    tilted = scene.add(pycct.Plane((1, 0, 0), -1000))
    assert tilted in scene.overlap(floor, (0, 0, -4))


def test_resting_shapes_slide_along_and_land_again():
    scene = pycct.Scene()
    scene.add(pycct.Box((5, 5, 1)), (0, 0, -1))
    scene.add(pycct.Mesh([[-9, 20, 0], [9, 20, 0], [9, 40, 0], [-9, 40, 0]], [[0, 1, 2], [0, 2, 3]]))
    box = pycct.Box((0.5, 0.5, 0.5))
    for y in (0, 30):
        assert scene.sweep(box, (0, y, 0.5), (1, 0, 0), 2) is None
        hit = scene.sweep(box, (0, y, 0.5), (0, 0, -1), 2)
        assert (hit.distance, hit.normal, hit.overlapping) == (0, (0, 0, 1), False)
        assert scene.sweep(box, (0, y, 0.5), (0, 0, 1), 2) is None
        assert scene.overlap(box, (0, y, 0.5)) == []
    # A flat shape lands flat on a flat surface.
    hit = scene.sweep(pycct.Triangle((0, 0, 0), (1, 0, 0), (0, 1, 0)), (0, 30, 2), (0, 0, -1), 5)
    assert hit.distance == 2 and hit.normal == (0, 0, 1)
    hit = scene.sweep(box, (0, 30, 3), (0.1, 0, -1), 5)
    assert abs(hit.position[2]) < 1e-12


def test_sizes_from_a_micrometre_to_a_thousand_kilometres():
    for k in (1e-6, 1e-3, 1e3, 1e6):
        rng = np.random.default_rng(2)
        scene, small = pycct.Scene(), pycct.Scene()
        hull = rng.normal(size=(12, 3))
        for s, factor in ((scene, k), (small, 1.0)):
            s.add(pycct.Box((factor, factor, factor)), (4 * factor, 0, 0))
            s.add(pycct.ConvexHull(hull * factor), (-4 * factor, 0, 0))
            s.add(pycct.Mesh(hull * factor, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], True), (0, 0, 4 * factor))
        places, ways, lengths, turns = questions(rng, 40)
        for shape in ("box", "ray", "capsule"):
            big = {"box": pycct.Box((0.4 * k, 0.3 * k, 0.2 * k)), "ray": None, "capsule": pycct.Capsule(0.3 * k, k)}
            one = {"box": pycct.Box((0.4, 0.3, 0.2)), "ray": None, "capsule": pycct.Capsule(0.3, 1.0)}
            a = ask(scene, big[shape], places * k, ways, lengths * k, turns)
            b = ask(small, one[shape], places, ways, lengths, turns)
            assert np.array_equal(a.hit, b.hit)
            assert np.allclose(a.distance / k, b.distance, rtol=1e-9, atol=1e-9)


def test_far_from_the_origin_boxes_keep_their_digits():
    scene = pycct.Scene()
    far = np.array([4e6, -3e6, 5e5])
    scene.add(pycct.Box((1, 1, 1)), far)
    hit = scene.sweep(pycct.Box((0.5, 0.5, 0.5)), far + np.array((0, 0, 4)), (0, 0, -1), 9)
    assert hit.distance == 2.5
    assert abs(scene.closest_points(pycct.Box((0.5, 0.5, 0.5)), far + np.array((3, 0, 0))).distance - 1.5) < 1e-9


def test_query_shapes_must_be_valid():
    scene = pycct.Scene()
    floor = pycct.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    box = pycct.Box((1, 1, 1))
    with pytest.raises(TypeError, match="shape"):
        scene.sweep(floor, (0, 0, 0), (0, 0, 1), 1)
    with pytest.raises(TypeError, match="shape"):
        scene.overlap(pycct.Heightfield(np.zeros((2, 2))), (0, 0, 0))
    with pytest.raises(TypeError, match="shape"):
        scene.closest_points("box", (0, 0, 0))
    nan = float("nan")
    bad = [
        (ValueError, "origin", lambda: scene.raycast((nan, 0, 0), (0, 0, 1), 1)),
        (ValueError, "origin", lambda: scene.raycast((1e13, 0, 0), (0, 0, 1), 1)),
        (ValueError, "direction", lambda: scene.raycast((0, 0, 0), (0, 0, 0), 1)),
        (ValueError, "distance", lambda: scene.raycast((0, 0, 0), (0, 0, 1), -1)),
        (ValueError, "distance", lambda: scene.raycast((0, 0, 0), (0, 0, 1), float("inf"))),
        (ValueError, "mask", lambda: scene.raycast((0, 0, 0), (0, 0, 1), 1, mask=-1)),
        (TypeError, "filter", lambda: scene.raycast((0, 0, 0), (0, 0, 1), 1, filter=3)),
        (ValueError, "rotation", lambda: scene.sweep(box, (0, 0, 0), (0, 0, 1), 1, (0, 0, 0, 2))),
        (ValueError, "max_distance", lambda: scene.closest_points(box, (0, 0, 0), -1)),
        (ValueError, "max_distance", lambda: scene.closest_points(box, (0, 0, 0), nan)),
        (ValueError, "origins", lambda: scene.raycast_many((0, 0, 0), (0, 0, 1), 1)),
        (ValueError, "origins", lambda: scene.raycast_many([[0, 0, nan]], (0, 0, 1), 1)),
        (ValueError, "directions", lambda: scene.raycast_many([[0, 0, 0]], [[0, 0, 0]], 1)),
        (ValueError, "directions", lambda: scene.raycast_many([[0, 0, 0]], [[0, 1]] * 2, 1)),
        (ValueError, "distances", lambda: scene.raycast_many([[0, 0, 0]], (0, 0, 1), [1, 2])),
        (ValueError, "distances", lambda: scene.raycast_many([[0, 0, 0]], (0, 0, 1), -1)),
        (TypeError, "distances", lambda: scene.raycast_many([[0, 0, 0]], (0, 0, 1), "far")),
        (ValueError, "rotations", lambda: scene.overlap_many(box, [[0, 0, 0]], (1, 1, 1, 1))),
        (TypeError, "positions", lambda: scene.overlap_many(box, [["a", "b", "c"]])),
        (ValueError, "max_distance", lambda: scene.closest_points_many(box, [[0, 0, 0]], -1)),
        (TypeError, "shape", lambda: scene.sweep_many(floor, [[0, 0, 0]], (0, 0, 1), 1)),
    ]
    for error, name, call in bad:
        with pytest.raises(error, match=name):
            call()


def test_batches_of_no_rows_and_of_odd_arrays():
    scene = pycct.Scene()
    scene.add(pycct.Box((1, 1, 1)))
    none = np.zeros((0, 3))
    box = pycct.Box((1, 1, 1))
    assert scene.raycast_many(none, none, 1.0).hit.shape == (0,)
    assert scene.overlap_many(box, none).first.tolist() == [0]
    assert scene.closest_points_many(box, none).distance.shape == (0,)
    wide = np.zeros((4, 6), np.float32)
    wide[:, 4] = 5
    got = scene.raycast_many(wide[:, 0:6:2], (0, 0, -1), 10)
    assert got.hit.all()
    strided = np.zeros((8, 3))[::2]
    strided[:, 2] = 5
    assert (scene.raycast_many(strided, [0, 0, -1], 10).distance == 4).all()
    assert (scene.raycast_many(strided.astype(np.int32), [0, 0, -1], np.full(4, 10)).distance == 4).all()
    empty = pycct.Scene()
    assert not empty.raycast_many(strided, (0, 0, -1), 10).hit.any()
    assert empty.sweep(box, (0, 0, 0), (0, 0, 1), 1e300) is None and empty.overlap(box, (0, 0, 0)) == []


def test_queries_from_many_threads_while_the_scene_changes():
    rng = np.random.default_rng(9)
    scene = worlds.scene_of(worlds.placings(rng))
    q = questions(rng, 100)
    box = pycct.Box((0.4, 0.4, 0.4))
    want = scene.sweep_many(box, *q[:3], q[3], mask=0xFF)
    stop, wrong = threading.Event(), []
    lift = scene.add(pycct.Sphere(0.5), layer=0x100, body="kinematic")

    def reader():
        while not stop.is_set():
            got = scene.sweep_many(box, *q[:3], q[3], mask=0xFF)
            if not np.array_equal(got.distance, want.distance):
                wrong.append(got)
            scene.overlap(box, q[0][0])

    threads = [threading.Thread(target=reader) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(300):
        lift.move_to((k * 0.01, 0, 0))
        extra = scene.add(pycct.Box((1, 1, 1)), (k % 5, 0, 0), layer=0x100)
        scene.remove(extra)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong
