"""The same to the bit, whatever the order of storage, the state of the cache and the tree."""

import itertools

import numpy as np
import pytest
import worlds

import pycct
from pycct import Box, Capsule, CharacterController, ConvexHull, Mesh, Plane, Scene, Sphere, reference

DT = 1 / 60


def hills(seed=0, n=24, size=12.0):
    """Terrain with boxes of triangles on it: vertices and triangles."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.linspace(-size, size, n), np.linspace(-size, size, n), indexing="ij")
    z = rng.normal(size=x.shape) * 0.35
    v = np.stack([x, y, z], -1).reshape(-1, 3)
    i = np.arange(n * n).reshape(n, n)
    q = np.stack([i[:-1, :-1], i[1:, :-1], i[1:, 1:], i[:-1, 1:]], -1).reshape(-1, 4)
    t = np.concatenate([q[:, [0, 1, 2]], q[:, [0, 2, 3]]])
    corners = np.array(list(itertools.product((-1, 1), repeat=3)))
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    for _ in range(25):
        place = rng.uniform(-size, size, 3) * (1, 1, 0.05)
        k = len(v)
        v = np.vstack([v, corners * rng.uniform(0.2, 1.2, 3) + place])
        t = np.vstack(
            [t, [[k + f[a] for a in (0, 1, 2)] for f in faces], [[k + f[a] for a in (0, 2, 3)] for f in faces]]
        )
    return v, t


def walkers(scene, seed=5, count=6, **more):
    rng = np.random.default_rng(seed)
    modes = itertools.cycle(itertools.product(("easy", "constrained"), ("prevent_climbing", "force_sliding")))
    return [
        CharacterController(scene, (*rng.uniform(-8, 8, 2), 4), 0.35, 1.1, climbing_mode=c, non_walkable_mode=n, **more)
        for _, (c, n) in zip(range(count), modes, strict=False)
    ]


def displacements(seed=9, count=250, walkers=6):
    rng = np.random.default_rng(seed)
    d = rng.normal(size=(count, walkers, 3)) * (0.1, 0.1, 0.02)
    d[:, :, 2] -= 0.1
    d[:, :, :2] += np.sin(np.arange(count) / 9)[:, None, None] * 0.1
    d[::17, :, 2] = 0.2
    d[5::23] *= 8
    return d


def bring_back(hero, around=(0.0, 0.0, 0.0)):
    """A character that left the level drops in again, at a place that depends on its position."""
    x, y, z = np.subtract(hero.position, around).tolist()
    if max(abs(x), abs(y)) > 9 or z < -3:
        hero.teleport(np.add(around, (x % 7 - 3.5, y % 7 - 3.5, 2.5)))


def track(heroes, moves, each=lambda hero: None, full_updates=None, around=(0.0, 0.0, 0.0)):
    """All that can be seen of every move."""
    seen = []
    for row in moves:
        for hero, d in zip(heroes, row, strict=True):
            bring_back(hero, around)
            each(hero)
            flags = hero.move(d, DT)
            assert full_updates is None or hero.stats.full_updates == full_updates
            hits = [(h.position, h.normal, h.direction, h.length, h.distance, h.pass_) for h in hero.hits]
            ground = hero.ground and (hero.ground.normal, hero.ground.point, hero.ground.face_normal)
            seen.append((hero.position, int(flags), hits, ground, hero.state.overlap, hero.velocity))
    return seen


def same(a, b):
    for k, (p, q) in enumerate(zip(a, b, strict=True)):
        assert p == q, (k, p, q)


def mesh_world(v, t, **more):
    scene = Scene()
    scene.add(Mesh(v, t, **more))
    return scene


@pytest.fixture(scope="module")
def plain():
    v, t = hills()
    return v, t, track(walkers(mesh_world(v, t)), displacements())


def test_the_walk_is_worth_comparing(plain):
    # Else all of this would pass in an empty world.
    seen = plain[2]
    assert sum(len(s[2]) for s in seen) > 400
    flags = [s[1] for s in seen]
    assert all(any(f & bit for f in flags) for bit in (1, 4))
    assert len({s[0] for s in seen}) > 400


def test_order_of_triangles(plain):
    v, t, want = plain
    for order in (slice(None, None, -1), np.random.default_rng(1).permutation(len(t))):
        same(want, track(walkers(mesh_world(v, t[order])), displacements()))


def test_triangle_indices_follow_the_order_given(plain):
    v, t, _ = plain
    order = np.random.default_rng(2).permutation(len(t))
    a, b = walkers(mesh_world(v, t), count=1)[0], walkers(mesh_world(v, t[order]), count=1)[0]
    compared = 0
    for d in displacements(walkers=1)[:, 0]:
        a.move(d, DT)
        b.move(d, DT)
        for p, q in zip(a.hits, b.hits, strict=True):
            assert order[q.triangle] == p.triangle
            compared += 1
    assert compared > 50


def test_which_vertex_of_a_triangle_comes_first(plain):
    v, t, want = plain
    turned = np.stack([np.roll(row, k % 3) for k, row in enumerate(t)])
    same(want, track(walkers(mesh_world(v, turned)), displacements()))


def test_order_of_vertices_and_unused_and_repeated_ones(plain):
    v, t, want = plain
    order = np.random.default_rng(3).permutation(len(v))
    back = np.argsort(order)
    same(want, track(walkers(mesh_world(v[order], back[t])), displacements()))
    # Every triangle with vertices of its own, and some that none uses.
    same(
        want,
        track(
            walkers(mesh_world(np.vstack([v[t].reshape(-1, 3), [[99, 99, 99]]]), np.arange(3 * len(t)).reshape(-1, 3))),
            displacements(),
        ),
    )


def test_types_and_layout_of_the_arrays(plain):
    v, t, want = plain
    for tt in (t.astype(np.uint16), np.asfortranarray(t), t.tolist()):
        same(want, track(walkers(mesh_world(np.asfortranarray(v), tt)), displacements()))


def test_triangles_without_area_change_nothing(plain):
    v, t, want = plain
    dirt = np.array([(k, k, (k * 7) % len(v)) for k in range(0, len(v), 3)])
    same(want, track(walkers(mesh_world(v, np.vstack([dirt, t, dirt]))), displacements()))


SHAPES = [
    (lambda: Plane((0, 0, 1), -0.2), (0, 0, 0), "static"),
    (lambda: Sphere(1.1), (1, 1, 0), "static"),
    (lambda: Sphere(0.7), (-3, 1, 0.4), "kinematic"),
    (lambda: Capsule(0.6, 3), (2, -3, 0.2), "static"),
    (lambda: Box((1, 2, 0.3)), (-2, -2, 0), "static"),
    (lambda: Box((1, 2, 0.3)), (-1.5, -3, 0.1), "kinematic"),
    (lambda: Box((2, 0.5, 0.9)), (4, 4, 0), "dynamic"),
    (lambda: ConvexHull(np.random.default_rng(4).normal(size=(30, 3))), (0, 4, 0), "static"),
    (lambda: Mesh(*hills(1, 10, 6.0)), (0, 0, 0.1), "static"),
    (lambda: Mesh(*hills(2, 10, 6.0), two_sided=True), (0.3, 0, -0.1), "static"),
]


def shape_world(order):
    scene = Scene()
    for k in order:
        make, place, body = SHAPES[k]
        turn = np.array([0.1 * k, -0.05 * k, 0.07 * k, 1.0]) if k else np.array([0, 0, 0, 1.0])
        scene.add(make(), position=place, rotation=turn / np.linalg.norm(turn), body=body)
    return scene


@pytest.mark.parametrize("seed", range(4))
def test_order_of_adding_shapes(seed):
    order = np.random.default_rng(seed).permutation(len(SHAPES))
    d = displacements(seed=20 + seed)
    a = track(walkers(shape_world(range(len(SHAPES))), seed=seed), d)
    same(a, track(walkers(shape_world(order), seed=seed), d))
    assert sum(len(s[2]) for s in a) > 300


def test_shapes_that_came_and_went_leave_no_trace():
    d = displacements(seed=31)
    a = track(walkers(shape_world(range(len(SHAPES)))), d)
    scene = Scene()
    gone = [scene.add(Sphere(3), position=(k, k, 0)) for k in range(-5, 6)]
    for k in reversed(range(len(SHAPES))):
        make, place, body = SHAPES[k]
        turn = np.array([0.1 * k, -0.05 * k, 0.07 * k, 1.0]) if k else np.array([0, 0, 0, 1.0])
        scene.add(make(), position=place, rotation=turn / np.linalg.norm(turn), body=body)
        if gone:
            scene.remove(gone.pop())
    for actor in gone:
        scene.remove(actor)
    same(a, track(walkers(scene), d))


def test_two_equal_shapes_in_one_place_are_as_one():
    # A tie between two shapes is settled by geometry, and they have the same: which id is
    # named may differ, the motion may not.
    d = displacements(seed=33)
    a = track(walkers(shape_world(range(len(SHAPES)))), d)
    # Each again: overlaps of the second copy are as deep as those of the first.
    b = track(walkers(shape_world([*range(len(SHAPES)), *range(len(SHAPES))])), d)
    same(a, b)


# --- caches


def cool(hero):
    """Make a controller forget its candidates, and nothing else."""
    hero.radius = hero.radius


def test_a_setter_really_cools_the_cache():
    scene = shape_world(range(len(SHAPES)))
    hero = walkers(scene, count=1)[0]
    for _ in range(60):
        hero.move((0, 0, -0.1), DT)
    hero.move((0, 0, -0.01), DT)
    assert hero.stats.full_updates == 0
    cool(hero)
    hero.move((0, 0, -0.01), DT)
    assert hero.stats.full_updates > 0


@pytest.mark.parametrize(
    "more",
    [{}, {"rules": "robust"}, {"invisible_wall_height": 1.5, "max_jump_height": 2.0}, {"overlap_recovery": False}],
)
@pytest.mark.parametrize("seed", range(3))
def test_cold_and_warm_cache(seed, more):
    d = displacements(seed=40 + seed)
    v, t = hills(seed)
    for make in (lambda: mesh_world(v, t), lambda: shape_world(range(len(SHAPES)))):
        scene = make()
        warm = track(walkers(scene, seed=seed, **more), d)
        scene = make()
        same(warm, track(walkers(scene, seed=seed, **more), d, each=cool))


@pytest.mark.parametrize("seed", range(4))
def test_a_place_that_is_known_to_be_free_changes_no_result(seed):
    # After a move that ended free, `robust` tests only the triangles that may have been passed. A
    # new character with the same state knows nothing, and tests all.
    rng = np.random.default_rng(70 + seed)
    v, t = hills(seed)
    scene = mesh_world(v, t)
    for _ in range(40):
        # Plates that are solid from one side: characters pass them from behind.
        corner = (*rng.uniform(-8, 8, 2), rng.uniform(0, 2))
        scene.add(Mesh(corner + np.vstack([np.zeros(3), rng.normal(size=(2, 3))]), [(0, 1, 2)]))
    for hero in walkers(scene, seed=seed, rules="robust"):
        step = np.zeros(3)
        for k in range(90):
            if k % 10 == 0:
                step = rng.normal(size=3) * rng.choice([0.02, 0.08, 0.4])
                step[2] = -abs(step[2])
            if k % 15 == 14:
                # A body that appears inside of the character, and a character that grows.
                if k % 2:
                    scene.add(Box((0.1, 0.3, 0.2)), position=np.add(hero.position, (0.35, 0.1, 0.2)))
                else:
                    hero.radius = 0.2 + 0.005 * k
            other = CharacterController(
                scene, hero.position, hero.radius, 1.1, climbing_mode=hero.climbing_mode,
                non_walkable_mode=hero.non_walkable_mode, rules="robust",
            )
            other.restore(hero.save())
            assert hero.move(step, DT) == other.move(step, DT)
            assert hero.position == other.position and hero.state.overlap == other.state.overlap
            assert hero.stats.fixes == other.stats.fixes
            other.remove()


def test_a_cache_filled_elsewhere_and_by_another_motion():
    # The cached volume depends on the move that filled it: no result may.
    scene = shape_world(range(len(SHAPES)))
    d = displacements(seed=50, count=60)
    rng = np.random.default_rng(0)
    scouts = walkers(scene)

    def wander(hero):
        # Another move from the same place first, then back, with all that it remembered undone.
        place = hero.position
        hero.teleport(place)
        hero.move(rng.normal(size=3) * rng.choice([0.01, 0.3, 3.0]), DT)
        hero.teleport(place)

    want = track(walkers(scene), d, each=lambda hero: hero.teleport(hero.position))
    same(want, track(scouts, d, each=wander))


def test_a_changed_world_is_seen_at_once():
    # RULES 4: a warm cache never hides what was added, moved or removed, static or not.
    for body in ("static", "kinematic", "dynamic"):
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        hero = CharacterController(scene, (0, 0, 0.91))
        hero.move((0.01, 0, -0.01), DT)
        hero.move((0.01, 0, -0.01), DT)
        x = hero.position[0]
        wall = scene.add(Box((0.1, 3, 3)), position=(x + 0.6, 0, 3), body=body)
        hero.move((0.5, 0, -0.01), DT)
        assert hero.position[0] == pytest.approx(x + 0.09, abs=1e-6)
        wall.move_to((x + 0.7, 0, 3))
        hero.move((0.5, 0, -0.01), DT)
        assert hero.position[0] == pytest.approx(x + 0.19, abs=1e-6)
        wall.layer = 2
        hero.mask = 1
        hero.move((0.05, 0, -0.01), DT)
        assert hero.position[0] == pytest.approx(x + 0.24, abs=1e-6)
        wall.layer = 1
        hero.position = (x, 0, 0.91)
        hero.move((0.5, 0, -0.01), DT)
        assert hero.position[0] == pytest.approx(x + 0.19, abs=1e-6)
        scene.remove(wall)
        hero.move((0.5, 0, -0.01), DT)
        assert hero.position[0] == pytest.approx(x + 0.69, abs=1e-6)


def floors(seed, place=(0.0, 0.0, 0.0)):
    """Level ground of tiles: some are missing, doubled, slightly lower, or a step higher."""
    rng = np.random.default_rng(seed)
    v, t = [], []
    x = -12.0
    while x < 12.0:
        wide = rng.choice([0.3, 1.0, 4.0])
        y = -12.0
        while y < 12.0:
            long = rng.choice([0.5, 2.0, 6.0])
            if rng.random() < 0.97:
                layers = 1 + (rng.random() < 0.2)
                for drop in rng.choice([0.0, 0.0004, 0.002, -0.15], layers, p=[0.9, 0.04, 0.04, 0.02]):
                    k = len(v)
                    v += [(x, y, -drop), (x + wide, y, -drop), (x + wide, y + long, -drop), (x, y + long, -drop)]
                    t += [(k, k + 1, k + 2), (k, k + 2, k + 3)]
            y += long
        x += wide
    return np.array(v) + place, np.array(t)


@pytest.mark.parametrize("rules", ["physx", "robust"])
@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (2000.3, -700.1, 55.7)])
@pytest.mark.parametrize("seed", range(4))
def test_a_lift_far_away_changes_nothing(seed, place, rules):
    # Where nothing can move, moves over level ground take a shorter way (_walks_on).
    v, t = floors(seed, place)
    seen = []
    for lift in (False, True):
        scene = mesh_world(v, t)
        if lift:
            scene.add(Box((1, 1, 1)), (place[0] + 500, 0, 0), body="kinematic")
        heroes = [
            CharacterController(scene, position=np.add(place, (k - 3, 0.3 * k, 1.0)), radius=0.4, height=1.0,
                                contact_offset=offset, step_offset=step, slope_limit=slope, rules=rules)
            for k, (offset, step, slope) in enumerate(itertools.product((0.02, 0.0), (0.4, 0.1, 0.0), (0.7071, 0.0)))
        ]  # fmt: skip
        d = np.random.default_rng(seed).normal(size=(250, len(heroes), 3)) * (0.04, 0.04, 0.01) - (0, 0, 0.05)
        d[:, :, 0] += 0.08 * np.sin(np.arange(250) / 20)[:, None]
        d[::19] *= 20
        d[7::31] = 0
        d[::23, :, 2] = 0.1
        seen.append(track(heroes, d, around=place))
    same(*seen)
    assert sum(s[1] & 4 for s in seen[0]) > 4000


@pytest.mark.parametrize("rules", ["physx", "robust"])
@pytest.mark.parametrize("seed", range(6))
def test_a_plane_far_below_changes_nothing(seed, rules):
    # Triangles are looked at in another way where there is nothing else, even where faces are met
    # from behind.
    rng = np.random.default_rng(seed)
    v, t = worlds.soup(rng, 60, 1.5, 4.0)
    floor_v, floor_t = floors(seed)
    where = rng.uniform((-3, -3, -1), (3, 3, 5), (8, 3))
    d = rng.normal(size=(150, 8, 3)) * 0.1 - (0, 0, 0.04)
    seen = []
    for plane in (False, True):
        above = np.add(v, (0, 0, 1.5))
        scene = mesh_world(np.concatenate([floor_v, above]), np.concatenate([floor_t, t + len(floor_v)]))
        scene.add(Mesh(np.add(v, 1.0), t))
        if plane:
            scene.add(Plane((0, 0, 1), -1000.0))
        heroes = [CharacterController(scene, position=p, radius=0.4, height=1.0, step_offset=0.3, rules=rules,
                                      overlap_recovery=k % 4 != 0) for k, p in enumerate(where)]  # fmt: skip
        moves = track(heroes, d, around=(0, 0, 2))
        seen.append((moves, [hero.save() for hero in heroes]))
    same(seen[0][0], seen[1][0])
    assert seen[0][1] == seen[1][1]


def test_the_cache_is_used():
    # MOVE 5.2.7 compares the grown box with the cached one, so it never hits.
    v, t = hills()
    hero = walkers(mesh_world(v, t), count=1)[0]
    full = []
    for _ in range(100):
        hero.move((0.02, 0.01, -0.03), DT)
        full.append(hero.stats.full_updates)
    assert sum(f > 0 for f in full) < 40


# --- tree against brute force


def forget(hero):
    hero.teleport(hero.position)


def test_of_twins_the_first_is_told():
    # Whatever the cache remembers, and wherever the tree keeps them: it was the one that the last
    # cast had found.
    n = 6
    v = [(x, y, 0.0) for x in range(n) for y in range(n)]
    corners = [i * n + j for i in range(n - 1) for j in range(n - 1)]
    t = [f for a in corners for f in ((a, a + n, a + n + 1), (a, a + n + 1, a + 1))]
    rng = np.random.default_rng(1)
    for _ in range(60):
        hops = [(*map(float, rng.uniform(-0.6, 0.6, 2)), -0.05) for _ in range(4)]
        seen = []
        for module, each in ((pycct, lambda hero: None), (pycct, forget), (reference, forget)):
            scene = module.Scene()
            scene.add(module.Mesh(v, t + t[::-1]))
            hero = module.CharacterController(scene, (2.5, 2.4, 0.92), radius=0.4, height=1.0)
            told = []
            for hop in hops:
                each(hero)
                hero.move(hop, DT)
                told.append(hero.ground and hero.ground.triangle)
            assert all(k < len(t) for k in told)
            seen.append(told)
        assert seen[0] == seen[1] == seen[2]


def test_a_face_at_the_end_of_a_motion_is_found_whatever_was_found_last():
    # Corners so far away that the plane is a rounding nearer in one way of computing it than in
    # another.
    v = [
        (-0.5806045924430472, 1.3677166846647095, -0.7196182474809019),
        (-71164479.87120944, -1642751806.2109625, -525039099.659992),
        (403330079.5144289, 315441139.00437474, -278314698.17732686),
        (92455690.20729592, 375386047.55171394, 45842560.33492178),
        (-1780208389.290675, 5528567893.715391, 3732099017.093319),
        (-227105655.55769888, 506947086.7326813, 404359743.4565203),
        (-1179130218.6624122, -438185770.5316257, 988741498.0396528),
        (-75573918915.33421, -96191524634.55232, 38733066902.988045),
    ]
    floor = [
        (-196181118511.15997, -137326782957.81197, -2.0), (196181118511.15997, -196181118511.15997, -2.0),
        (176563006660.04398, 196181118511.15997, -2.0), (-196181118511.15997, 196181118511.15997, -2.0),
    ]  # fmt: skip
    scene = mesh_world(v, [(2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 4, 0), (6, 5, 0), (7, 6, 0), (1, 7, 0)])
    scene.add(Mesh(floor, [(0, 1, 2), (0, 2, 3)]))
    warm, cold = (
        CharacterController(scene, (-1.6173308461425813, 1.7314891604650633, -0.9), radius=0.5, height=1.2,
                            step_offset=0.3, contact_offset=0.0)
        for _ in range(2)
    )  # fmt: skip
    warm.move((1.900862744469209e-07, 2.101228037555196e-07, 0), DT)
    cold.restore(warm.save())
    flags = [hero.move((1.4998818094783818e-07, 2.4039120193374235e-07, 0), DT) for hero in (warm, cold)]
    assert flags[0] == flags[1] == 0
    assert warm.position == cold.position
    assert not warm.hits and not cold.hits


def see_everything(hero):
    """Fill the cache by a motion so long that its volume holds the whole world.

    It passes over the world and down beside it, meeting nothing. The move that follows
    finds its volume inside and searches no tree: it tests every triangle of every shape,
    by brute force."""
    place = hero.position
    hero.teleport((-4000, -4000, 3000))
    hero.move((8000, 8000, -6000), DT)
    hero.teleport(place)


@pytest.mark.parametrize("more", [{}, {"invisible_wall_height": 1.5}])
@pytest.mark.parametrize("kind", ["mesh", "shapes", "one actor per triangle"])
def test_tree_and_brute_force(kind, more):
    v, t = hills(7, 14, 9.0)
    scene = shape_world(range(len(SHAPES))) if kind == "shapes" else mesh_world(v, t)
    if kind == "one actor per triangle":
        scene = Scene()
        for row in t:
            scene.add(Mesh(v[row], [(0, 1, 2)]))
    d = displacements(seed=60, count=150)
    tree = track(walkers(scene, **more), d, each=forget)
    same(tree, track(walkers(scene, **more), d, each=see_everything, full_updates=0))
    assert sum(len(s[2]) for s in tree) > 200
