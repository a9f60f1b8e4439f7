"""The scene: edits, moves of many actors, shifts of the origin, lifetimes, memory."""

import gc
import threading
import weakref

import numpy as np
import pytest
import worlds
from memory import needs_proc, resident

import pycct

DOWN = (0, 0, -1)


def flat(size=10.0):
    return pycct.Mesh([[-size, -size, 0], [size, -size, 0], [size, size, 0], [-size, size, 0]], [[0, 1, 2], [0, 2, 3]])


def test_edit_shows_all_changes_at_once():
    scene = pycct.Scene()
    a = scene.add(pycct.Box((1, 1, 1)))
    before = scene.timestamp
    with scene.edit() as same:
        assert same is scene
        b = scene.add(pycct.Box((1, 1, 1)), (10, 0, 0))
        scene.remove(a)
        with scene.edit():
            c = scene.add(pycct.Box((1, 1, 1)), (20, 0, 0))
        # All readers still see the scene before the edit.
        assert scene.raycast((0, 0, 5), DOWN, 9).actor is a
        assert scene.raycast((10, 0, 5), DOWN, 9) is None and scene.raycast((20, 0, 5), DOWN, 9) is None
        assert scene.actors == [b, c]
    assert scene.raycast((0, 0, 5), DOWN, 9) is None
    assert scene.raycast((10, 0, 5), DOWN, 9).actor is b and scene.raycast((20, 0, 5), DOWN, 9).actor is c
    assert scene.timestamp == before + 1
    with pytest.raises(KeyError), scene.edit():
        scene.remove(b)
        raise KeyError
    assert scene.raycast((10, 0, 5), DOWN, 9) is None and scene.timestamp == before + 2
    with scene.edit():
        pass
    assert scene.timestamp == before + 2


def test_an_edit_in_a_fresh_scene_and_readers_meanwhile():
    scene = pycct.Scene()
    inside, done = threading.Event(), threading.Event()
    seen = []

    def read():
        inside.wait()
        seen.append(scene.raycast((0, 0, 5), DOWN, 9))
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    with scene.edit():
        scene.add(pycct.Box((1, 1, 1)))
        inside.set()
        # A reader does not wait for the edit.
        assert done.wait(10)
    reader.join()
    assert seen == [None]
    assert scene.raycast((0, 0, 5), DOWN, 9) is not None


def test_timestamp_counts_static_changes_only():
    scene = pycct.Scene()
    t = scene.timestamp
    floor = scene.add(flat())
    assert scene.timestamp == t + 1
    lift = scene.add(pycct.Box((1, 1, 1)), body="kinematic")
    lift.move_to((3, 0, 0))
    assert scene.timestamp == t + 1
    floor.move_to((0, 0, -1))
    assert scene.timestamp == t + 2
    scene.remove(floor)
    assert scene.timestamp == t + 3


def test_move_actors():
    scene = pycct.Scene()
    boxes = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body="kinematic") for k in range(50)]
    ids = np.array([b.id for b in boxes])
    places = np.stack([np.arange(50.0), np.full(50, 7.0), np.zeros(50)], 1)
    scene.move_actors(ids, places)
    assert [b.position for b in boxes] == [tuple(p) for p in places]
    assert scene.raycast((3, 7, 5), DOWN, 9).actor is boxes[3] and scene.raycast((3, 0, 5), DOWN, 9) is None
    turn = (0, 0, np.sin(0.3), np.cos(0.3))
    scene.move_actors(ids[::-2], places[::-2].astype(np.float32), turn)
    assert np.allclose(boxes[49].rotation, turn) and boxes[48].rotation == (0, 0, 0, 1)
    scene.move_actors([], np.zeros((0, 3)))
    was = [b.position for b in boxes]
    for error, name, arguments in [
        (ValueError, "ids", ([999], [[0, 0, 0]])),
        (ValueError, "ids", ([ids[0], ids[0]], [[0, 0, 0], [1, 1, 1]])),
        (TypeError, "ids", ([[1]], [[0, 0, 0]])),
        (TypeError, "ids", ([0.5], [[0, 0, 0]])),
        (ValueError, "positions", ([ids[0]], [[0, 0, np.nan]])),
        (ValueError, "positions", ([ids[0]], [0, 0, 0])),
        (ValueError, "positions", ([ids[0]], [[0, 0, 1e13]])),
        (ValueError, "rotations", ([ids[0]], [[0, 0, 0]], [[1, 1, 1, 1]])),
        (ValueError, "rotations", ([ids[0]], [[0, 0, 0]], [[0, 0, 0, 1]] * 2)),
    ]:
        with pytest.raises(error, match=name):
            scene.move_actors(*arguments)
    assert [b.position for b in boxes] == was


def test_shift_origin_moves_the_coordinates_not_the_world():
    rng = np.random.default_rng(4)
    placed = [p for p in worlds.placings(rng)]
    scene = worlds.scene_of(placed)
    scene.add_obstacle(pycct.Box((1, 1, 1)), (3, 3, 3))
    q = rng.uniform(-6, 6, (100, 3)), rng.normal(size=(100, 3))
    before = scene.raycast_many(*q, 9.0)
    scene.shift_origin((512, -256, 64))
    after = scene.raycast_many(q[0] - (512, -256, 64), q[1], 9.0)
    assert np.array_equal(before.hit, after.hit) and np.allclose(before.distance, after.distance, atol=1e-9)
    assert scene.obstacles[0].position == (3 - 512, 3 + 256, 3 - 64)
    where = [a.position for a in scene.actors]
    with pytest.raises(ValueError, match="offset"):
        scene.shift_origin((1e12, 0, 0))
    assert [a.position for a in scene.actors] == where


def test_shift_origin_takes_characters_along_and_they_ride_on():
    tracks = []
    for shift in (False, True):
        scene = pycct.Scene()
        lift = scene.add(pycct.Box((2, 2, 0.5)), (0, 0, -0.5), body="kinematic", behavior=pycct.Behavior.CAN_RIDE)
        scene.add(flat(50), (0, 0, -4))
        hero = pycct.CharacterController(scene, position=(0, 0, 1.2), radius=0.4, height=1.0)
        origin, track = np.zeros(3), []
        for k in range(80):
            if shift and k == 40:
                scene.shift_origin((1024, -512, 256))
                origin = np.array((1024, -512, 256))
                assert hero.state.standing_on is lift
                assert np.allclose(np.add(hero.ground.point, origin), (0, 0, 0), atol=1e-6) or k > 0
            lift.move_to(np.array((0.02 * k, 0, -0.5)) - origin)
            hero.move((0, 0, -0.05), 1 / 60)
            track.append(np.add(hero.position, origin))
        assert hero.state.standing_on is lift
        tracks.append(track)
    assert np.allclose(tracks[0], tracks[1], atol=1e-9)
    assert tracks[0][-1][0] > 1.0


def test_queries_read_the_snapshot_of_their_start():
    scene = pycct.Scene()
    box = scene.add(pycct.Box((1, 1, 1)))
    seen = []

    def moves_it(actor):
        actor.move_to((100, 0, 0))
        seen.append(actor)
        return True

    # The filter changes the scene; the query keeps its snapshot.
    hit = scene.raycast((0, 0, 5), DOWN, 9, filter=moves_it)
    assert hit.actor is box and hit.distance == 4 and seen == [box]
    assert scene.raycast((0, 0, 5), DOWN, 9) is None


def test_removing_the_ground_of_a_controller():
    scene = pycct.Scene()
    floor = scene.add(pycct.Box((2, 2, 0.5)), (0, 0, -0.5), body="kinematic", behavior=pycct.Behavior.CAN_RIDE)
    hero = pycct.CharacterController(scene, position=(0, 0, 1.2), radius=0.4, height=1.0)
    for _ in range(20):
        hero.move((0, 0, -0.05), 1 / 60)
    assert hero.state.standing_on is floor
    scene.remove(floor)
    assert floor.scene is None
    z = hero.position[2]
    hero.move((0, 0, -0.05), 1 / 60)
    assert hero.position[2] < z and hero.state.standing_on is None
    with pytest.raises(ValueError, match="actor"):
        scene.remove(floor)
    with pytest.raises(RuntimeError):
        floor.move_to((0, 0, 0))
    # Previous results remain valid.
    assert floor.position == (0, 0, -0.5)


def test_a_dropped_scene_lives_as_long_as_its_controllers():
    scene = pycct.Scene()
    scene.add(flat())
    hero = pycct.CharacterController(scene, position=(0, 0, 1.2), radius=0.4, height=1.0)
    ghost = weakref.ref(scene)
    del scene
    gc.collect()
    assert ghost() is hero.scene
    for _ in range(40):
        hero.move((0.05, 0, -0.05), 1 / 60)
    assert 0.89 < hero.position[2] < 0.95
    del hero
    gc.collect()
    assert ghost() is None


def test_hits_and_actors_keep_what_they_need():
    def make():
        scene = pycct.Scene()
        scene.add(flat(), user_data="floor")
        return scene.raycast((0, 0, 5), DOWN, 9)

    hit = make()
    gc.collect()
    assert hit.actor.user_data == "floor" and hit.actor.scene is not None
    assert hit.actor.scene.raycast((0, 0, 5), DOWN, 9).distance == 5


def test_one_mesh_in_many_scenes_and_threads():
    mesh = flat()
    wrong = []

    def work(k):
        for i in range(50):
            scene = pycct.Scene()
            scene.add(mesh, (0, 0, k + i))
            if scene.raycast((0.3, 0.2, 100), DOWN, 200).distance != 100 - k - i:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@needs_proc
def test_ten_thousand_scenes_leave_memory_flat():
    shapes = [flat(), pycct.Box((1, 1, 1)), pycct.ConvexHull(np.random.default_rng(0).normal(size=(9, 3))),
              pycct.Heightfield(np.zeros((4, 4)))]
    ball = pycct.Sphere(0.3)

    def make():
        scene = pycct.Scene()
        for s in shapes:
            scene.add(s, body="kinematic" if s is shapes[1] else "static")
        scene.raycast((0, 0, 5), DOWN, 9)
        scene.overlap(ball, (0, 0, 0))
        hero = pycct.CharacterController(scene, position=(0, 0, 2), radius=0.4, height=1.0)
        hero.move((0, 0, -0.1), 1 / 60)

    for _ in range(1000):
        make()
    gc.collect()
    start = resident()
    for _ in range(10_000):
        make()
    gc.collect()
    assert resident() - start < 4_000_000


@needs_proc
def test_queries_and_shapes_leave_memory_flat():
    rng = np.random.default_rng(1)
    scene = worlds.scene_of(worlds.placings(rng))
    askers = list(worlds.askers(rng).values())
    places = rng.uniform(-5, 5, (50, 3))

    def all_questions():
        for shape in askers:
            scene.sweep_many(shape, places, (0, 0, -1), 5.0, filter=lambda a: True)
            scene.penetration_many(shape, places)
            scene.closest_points_many(shape, places)
            for p in places[:5]:
                scene.sweep(shape, p, DOWN, 5)
                scene.overlap(shape, p, filter=lambda a: a.id > 3)
        worlds.terrain(rng)
        pycct.Mesh(*worlds.soup(rng))

    for _ in range(20):
        all_questions()
    gc.collect()
    start = resident()
    for _ in range(100):
        all_questions()
    gc.collect()
    assert resident() - start < 2_000_000


def test_a_mesh_takes_no_more_than_100_bytes_a_triangle():
    n = 300
    field = pycct.Heightfield(np.random.default_rng(0).normal(size=(n + 1, n + 1)))
    mesh = field.to_mesh()
    full = pycct.Mesh(mesh.vertices, mesh.triangles, False, np.arange(2 * n * n), np.ones(2 * n * n, int))
    assert full.nbytes <= 100 * full.triangle_count


def test_scenes_count_their_triangles():
    scene = pycct.Scene()
    scene.add(flat())
    scene.add(flat(), (0, 0, 5))
    scene.add(pycct.Heightfield(np.zeros((3, 3))))
    scene.add(pycct.Box((1, 1, 1)))
    assert scene.triangle_count == 2 + 2 + 8


def test_trees_over_odd_boxes():
    # Boxes at one point, on one line, and of very different sizes.
    rng = np.random.default_rng(0)
    tri = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], float)
    for spread in (np.zeros((2000, 3)), np.arange(2000)[:, None] * np.array([[1.0, 0, 0]]),
                   np.exp(rng.uniform(-60, 60, (2000, 1))) * np.array([[1.0, 0.5, 0.2]]),
                   np.full((2000, 3), 1e29) * rng.uniform(-1, 1, (2000, 3))):
        v = (tri[None] + spread[:, None]).reshape(-1, 3)
        mesh = pycct.Mesh(v, np.arange(6000).reshape(-1, 3), two_sided=True)
        scene = pycct.Scene()
        if np.abs(v).max() < 1e12:
            scene.add(mesh)
            hits = scene.raycast_many(spread[::50] + np.array((0.2, 0.2, 3)), (0, 0, -1), 9.0)
            assert hits.hit.all()
        else:
            with pytest.raises(ValueError, match="shape"):
                scene.add(mesh)
            scene.add(mesh, scale=(1e-25, 1e-25, 1e-25))
            scene.raycast_many(spread[::50] * 1e-25, (0.1, 0.2, -1), 9.0)
    with pytest.raises(ValueError, match="vertices"):
        pycct.Mesh(tri * 1e31, [[0, 1, 2]])


def test_stats_count_the_contents_of_the_cache():
    scene = pycct.Scene()
    scene.add(flat())
    hero = pycct.CharacterController(scene, position=(0, 0, 1.2), radius=0.4, height=1.0)
    assert hero.stats.cache_bounds is None and hero.stats.total_triangles == 0
    hero.move((0.05, 0, -0.05), 1 / 60)
    stats = hero.stats
    lo, hi = stats.cache_bounds
    assert all(a < p < b for a, p, b in zip(lo, hero.position, hi, strict=True))
    assert (stats.static_triangles, stats.total_triangles, stats.timestamp) == (2, 2, scene.timestamp)
    lift = scene.add(pycct.Box((0.2, 0.2, 0.2)), (0.8, 0, 0.2), body="kinematic")
    hero.move((0.05, 0, -0.05), 1 / 60)
    assert (hero.stats.static_triangles, hero.stats.total_triangles) == (2, 14)
    scene.add(flat(), (0, 0, -0.3))
    assert hero.stats.timestamp == scene.timestamp - 1
    hero.move((0.05, 0, -0.05), 1 / 60)
    assert hero.stats.timestamp == scene.timestamp and hero.stats.static_triangles == 4
    assert lift.scene is scene


def test_the_hint_changes_the_work_not_the_result():
    # A character without hints, with an empty cache before each move, walks exactly like one with
    # hints.
    rng = np.random.default_rng(3)
    field = pycct.Heightfield(rng.normal(size=(30, 30)) * 0.15, 0.5)
    tracks, work = [], []
    for forgets in (False, True):
        scene = pycct.Scene()
        scene.add(field)
        hero = pycct.CharacterController(scene, position=(4, 4, 2), radius=0.4, height=1.0)
        steps = np.random.default_rng(4).uniform(-0.08, 0.08, (300, 3)) + np.array((0.01, 0.01, -0.06))
        track, tested = [], 0
        for step in steps:
            if forgets:
                hero.radius = 0.5
                hero.radius = 0.4
                extra = scene.add(pycct.Box((0.1, 0.1, 0.1)), (99, 99, 99))
                scene.remove(extra)
            hero.move(tuple(step), 1 / 60)
            track.append((hero.position, int(hero.flags), [h.triangle for h in hero.hits]))
            tested += hero.stats.triangles_tested
        tracks.append(track)
        work.append(tested)
    assert tracks[0] == tracks[1]
    assert work[0] != work[1]
