"""Worlds: one crowd in many scenes moves like one crowd in each scene."""
import copy
import pickle

import numpy as np
import pytest

from pycct import Box, CharacterController, Crowd, Mesh, Plane, Scene, Worlds, reference

DT = 1 / 60


def ground(extra=()):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for position in extra:
        scene.add(Box((0.3, 0.3, 1.0)), position=position)
    return scene


def rough(seed):
    """A scene with its own triangles, boxes and lift."""
    rng = np.random.default_rng(seed)
    k = 9
    x, y = np.meshgrid(np.linspace(-8, 8, k), np.linspace(-8, 8, k), indexing="ij")
    vertices = np.column_stack([x.ravel(), y.ravel(), rng.uniform(0, 0.8, k * k)])
    cell = np.arange(k * k).reshape(k, k)
    a, b, c, d = (m.ravel() for m in (cell[:-1, :-1], cell[1:, :-1], cell[1:, 1:], cell[:-1, 1:]))
    scene = Scene()
    scene.add(Mesh(vertices, np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])))
    for _ in range(6):
        scene.add(Box(rng.uniform(0.2, 0.8, 3)), position=(*rng.uniform(-5, 5, 2), 0.6))
    lift = scene.add(Box((1, 1, 0.2)), position=(0, 0, 1), body="kinematic")
    return scene, lift


def population(seed, worlds, n):
    rng = np.random.default_rng(seed)
    places = np.column_stack([rng.uniform(-5, 5, (n, 2)), rng.uniform(2, 3, n)])
    return places, rng.integers(0, worlds, n), rng.normal(0, 0.06, (40, n, 3)) - (0, 0, 0.06)


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("n, threads", [(60, 1), (60, 2), (700, 2)])
def test_members_move_as_in_a_crowd_of_their_own_world(order, collide, n, threads):
    count = 5
    pairs, again = [rough(k) for k in range(count)], [rough(k) for k in range(count)]
    worlds = Worlds([scene for scene, _ in pairs])
    places, home, ways = population(3, count, n)
    crowd = Crowd(worlds, places, world=home, collide=collide, order=order)
    alone = [Crowd(scene, places[home == k], collide=collide, order=order) for k, (scene, _) in enumerate(again)]
    for step, way in enumerate(ways):
        height = 1.0 + 0.02 * step
        worlds.move_actors(np.arange(count), [lift.id for _, lift in pairs], [(0, 0, height)] * count)
        flags = crowd.move(way, DT, threads=threads)
        for k, single in enumerate(alone):
            again[k][1].move_to((0, 0, height))
            assert np.array_equal(single.move(way[home == k], DT), flags[home == k])
            for name in ("positions", "velocities", "grounded", "ground_normals", "standing_on"):
                assert np.array_equal(getattr(single, name), getattr(crowd, name)[home == k]), name
    assert len({p.tobytes() for p in crowd.positions}) == n


def test_few_and_many_members_move_alike():
    """More than 2,000 members keep numbers of triangles instead of triangles."""
    pairs = [rough(k) for k in range(3)]
    worlds = Worlds([scene for scene, _ in pairs])
    places, home, ways = population(5, 3, 100)
    many = 2100
    crowd = Crowd(worlds, np.tile(places, (many // 100, 1)), world=np.tile(home, many // 100))
    few = Crowd(worlds, places, world=home)
    for way in ways:
        few.move(way, DT)
        crowd.move(np.tile(way, (many // 100, 1)), DT, threads=2)
        assert np.array_equal(crowd.positions[-100:], few.positions)


def test_members_meet_only_those_of_their_world():
    worlds = Worlds([ground(), ground()])
    crowd = Crowd(worlds, [(0, 0, 0.91), (2, 0, 0.91), (2, 0, 0.91)], world=[0, 0, 1], collide=True)
    for _ in range(60):
        crowd.move([(0.05, 0, -0.02), (0, 0, -0.02), (0, 0, -0.02)], DT)
    assert crowd.positions[0, 0] < 1.21
    assert crowd.positions[2].tolist()[:2] == [2.0, 0.0]
    # From world 0 to world 1: the path is free until a character blocks it.
    crowd.set(1, world=1)
    for _ in range(60):
        crowd.move([(0.05, 0, -0.02), (0, 0, -0.02), (0, 0, -0.02)], DT)
    assert crowd.positions[0, 0] > 4.0
    assert crowd.get("world").tolist() == [0, 1, 1]


def test_single_controllers_are_met_in_their_scene_alone():
    scenes = [ground(), ground()]
    hero = CharacterController(scenes[1], position=(1.5, 0, 0.91), collide=True)
    crowd = Crowd(Worlds(scenes), [(0, 0, 0.91)] * 2, world=[0, 1], collide=True)
    for _ in range(60):
        crowd.move([(0.05, 0, -0.02)] * 2, DT)
    assert crowd.positions[0, 0] > 2.9
    assert crowd.positions[1, 0] < 0.8
    for _ in range(40):
        hero.move((-0.05, 0, -0.02), DT)
    assert hero.position[0] > 1.4
    assert hero.hits[0].controller.world == 1


def test_a_member_that_changes_world_forgets_the_old_one():
    scene, lift = rough(1)
    crowd = Crowd(Worlds([scene, ground()]), [(0, 0, 2.3)], world=[0])
    for _ in range(30):
        crowd.move([(0, 0, -0.05)], DT)
    assert crowd.standing_on[0] == lift.id
    crowd.set(0, world=1, position=(0, 0, 0.91))
    assert crowd.standing_on[0] == -1
    assert crowd.flags[0] == 0
    assert not crowd.grounded[0]
    fresh = Crowd(ground(), [(0, 0, 0.91)])
    for _ in range(5):
        crowd.move([(0.01, 0, -0.05)], DT)
        fresh.move([(0.01, 0, -0.05)], DT)
        lift.move_to((0, 0, 5))
    assert np.array_equal(crowd.positions, fresh.positions)
    # A member that is set to its own world does not change.
    crowd.set(0, world=1)
    assert crowd.grounded[0]


def test_run_hits_ground_contacts_and_resize_use_the_members_world():
    scenes = [ground(), ground([(1.0, 0, 1.0)]), ground()]
    scenes[2].add(Box((2, 2, 0.1)), position=(0, 0, 2.2))
    worlds = Worlds(scenes)
    start = [(0, 0, 0.91)] * 3
    crowd = Crowd(worlds, start, world=[0, 1, 2])
    path = crowd.run(np.tile((0.02, 0, -0.02), (50, 3, 1)), DT)
    assert path[-1, :, 0].round(1).tolist() == [1.0, 0.3, 1.0]
    crowd.move([(0.02, 0, -0.02)] * 3, DT, record_hits=True)
    sides = crowd.hits[np.abs(crowd.hits["normal"][:, 0]) > 0.9]
    assert sides["index"].tolist() == [1] * len(sides)
    assert len(sides) > 0
    assert crowd.can_resize(1.9).tolist() == [True, True, False]
    assert crowd.can_resize(1.9, indices=[2, 0]).tolist() == [False, True]
    assert crowd.probe_ground(1.0).hit.all()
    touched = [{contact.other for contact in row} for row in crowd.contacts()]
    assert all(next(iter(t)).scene is scenes[k] for k, t in enumerate(touched))
    assert len(touched[1]) == 2
    crowd.teleport([0, 1, 2], [(0, 0, 0.96), (-1, 0, 0.96), (0, 0, 3.25)])
    assert crowd.snap_to_ground(0.1).all()
    assert crowd.positions[:, 2].round(2).tolist() == [0.91, 0.91, 3.21]


def test_queries_see_the_members_of_their_scene():
    scenes = [ground(), ground()]
    crowd = Crowd(Worlds(scenes), [(0, 0, 0.91), (3, 0, 0.91), (5, 0, 0.91)], world=[0, 1, 1])
    hit = scenes[1].raycast((-5, 0, 1), (1, 0, 0), 20, include="all")
    assert hit.controller.index == 1
    assert hit.controller.scene is scenes[1]
    assert scenes[0].raycast((-5, 0, 1), (1, 0, 0), 20, include="characters").controller.index == 0
    first, second = crowd.ids[:2].tolist()
    assert scenes[0].character(first) == crowd.member(first)
    assert scenes[0].character(second) is None
    assert scenes[0].crowds == scenes[1].crowds == [crowd]


def test_ids_are_new_to_all_scenes():
    scenes = [ground(), ground(), ground()]
    heroes = [CharacterController(scenes[1]) for _ in range(5)]
    crowd = Crowd(Worlds(scenes), np.zeros((3, 3)), world=[0, 1, 2])
    assert crowd.ids.min() > max(hero.id for hero in heroes)
    late = CharacterController(scenes[2])
    assert late.id > crowd.ids.max()
    assert crowd.add([(0, 0, 1)], world=2)[0] > late.id
    assert crowd.get("world").tolist() == [0, 1, 2, 2]
    crowd.remove([0, 1])
    assert crowd.get("world").tolist() == [2, 2]


def test_save_restore_copies_and_pickles():
    pairs = [rough(k) for k in range(3)]
    worlds = Worlds([scene for scene, _ in pairs])
    places, home, ways = population(7, 3, 50)
    crowd = Crowd(worlds, places, world=home, collide=True)
    for way in ways[:15]:
        crowd.move(way, DT)
    data = crowd.save()
    then = crowd.positions.copy()
    twins = [copy.copy(crowd), copy.deepcopy(crowd), pickle.loads(pickle.dumps(crowd))]
    assert twins[0].worlds is worlds
    assert all(isinstance(twin.worlds, Worlds) for twin in twins)
    del twins[0]
    for way in ways[15:]:
        crowd.move(way, DT)
        for twin in twins:
            twin.move(way, DT)
            assert np.array_equal(twin.positions, crowd.positions)
            assert np.array_equal(twin.get("world"), home)
    end = crowd.positions.copy()
    crowd.set(np.arange(50), world=0)
    crowd.restore(data)
    assert np.array_equal(crowd.positions, then)
    assert np.array_equal(crowd.get("world"), home)
    for way in ways[15:]:
        crowd.move(way, DT)
    assert np.array_equal(crowd.positions, end)


def test_platforms_transfers_and_journals_use_the_worlds():
    pairs = [rough(k) for k in range(3)]
    worlds = Worlds([scene for scene, _ in pairs])
    lifts = [lift for _, lift in pairs]
    places, home, ways = population(7, 3, 40)
    crowd = Crowd(worlds, places, world=home, collide=True)

    def run(first, last):
        for k in range(first, last):
            worlds.move_actors([0, 1, 2], [lift.id for lift in lifts], [(0, 0, 1 + 0.01 * k)] * 3)
            crowd.move(ways[k], DT)

    run(0, 10)
    data, then = crowd.save(moving=True), [lift.position for lift in lifts]
    run(10, 25)
    end = crowd.state_hash()
    crowd.restore(data)
    assert [lift.position for lift in lifts] == then
    run(10, 25)
    assert crowd.state_hash() == end
    some = crowd.ids[[3, 7, 20]].copy()
    part = crowd.extract(some)
    assert len(crowd) == 37
    crowd.insert(part)
    assert crowd.state_hash() == end
    assert crowd.get("world")[crowd.index_of(some)].tolist() == home[[3, 7, 20]].tolist()
    heard = []
    crowd.journal = lambda who, what, arguments: heard.append((who, what))
    worlds[0].journal = worlds[1].journal = lambda who, what, arguments: heard.append((who, what))
    worlds.move_actors([0, 1], [lifts[0].id, lifts[1].id], [(0, 0, 3)] * 2)
    crowd.set([0], world=1)
    assert heard == [(worlds[0], "move_actors"), (worlds[1], "move_actors"), (crowd, "set")]


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_equals_the_reference(order):
    def run(package):
        scenes = [package.Scene() for _ in range(2)]
        for k, scene in enumerate(scenes):
            scene.add(package.Plane((0, 0, 1)))
            scene.add(package.Box((0.5, 2, 0.15)), position=(1 + k, 0, 0.15))
        lift = scenes[1].add(package.Box((1, 1, 0.2)), position=(-2, 0, 0.2), body="kinematic")
        hero = package.CharacterController(scenes[1], position=(0.9, 0, 1.5), collide=True)
        worlds = package.Worlds(scenes)
        places, home, ways = population(2, 2, 8)
        crowd = package.Crowd(worlds, places * (0.4, 0.4, 0.5), world=home, collide=True, order=order)
        seen = [crowd.ids.tolist(), hero.id]
        for step, way in enumerate(ways[:24]):
            worlds.move_actors([1], [lift.id], [(-2, 0, 0.2 + 0.01 * step)])
            if step == 10:
                crowd.set([0, 3], world=[1, 0], position=[(-2, 0, 1.4), (1, 1, 1.4)])
                data = crowd.save()
            seen.append((crowd.move(way, DT).tolist(), crowd.positions.tolist(), crowd.state_hash()))
        crowd.add([(0, 0, 3)], world=1)
        late = package.CharacterController(scenes[0]).id
        seen += [crowd.get("world").tolist(), crowd.ids.tolist(), late, crowd.save()]
        crowd.restore(data)
        crowd.move(ways[10], DT)
        return [*seen, crowd.save(), crowd.get("world").tolist(), data]

    import pycct

    for compiled, plain in zip(run(pycct), run(reference), strict=True):
        assert compiled == plain


def test_saves_of_other_crowds_are_refused():
    several = Crowd(Worlds([ground(), ground(), ground()]), np.zeros((4, 3)), world=[0, 1, 2, 2])
    fewer = Crowd(Worlds([ground(), ground()]), np.zeros((4, 3)))
    single = Crowd(ground(), np.zeros((4, 3)))
    for crowd, data in ((fewer, several.save()), (single, several.save()), (several, single.save())):
        before = crowd.save()
        with pytest.raises(ValueError, match="worlds"):
            crowd.restore(data)
        assert crowd.save() == before


def test_hash_depends_on_the_world():
    scenes = [ground(), ground()]
    one, other = (Crowd(Worlds(scenes), np.zeros((2, 3)), world=world) for world in ([0, 1], [0, 0]))
    assert one.state_hash() != other.state_hash()


def test_ray_distances():
    pairs = [rough(k) for k in range(4)]
    worlds = Worlds([scene for scene, _ in pairs])
    rng = np.random.default_rng(9)
    origins, home = rng.uniform(-6, 6, (50, 3)), rng.integers(0, 4, 50)
    directions = rng.normal(size=(7, 3))
    found = worlds.ray_distances(origins, directions, 9.0, world=home, threads=2)
    assert np.array_equal(found, worlds.ray_distances(origins, directions, 9.0, world=home))
    for i in range(50):
        for k in range(7):
            hit = pairs[home[i]][0].raycast(origins[i], directions[k], 9.0)
            assert found[i, k] == (9.0 if hit is None else hit.distance)
    assert worlds.ray_distances(origins, directions, 9.0, world=2, mask=2).min() == 9.0
    assert worlds.ray_distances(np.zeros((0, 3)), directions, 9.0, world=[]).shape == (0, 7)
    assert worlds.ray_distances(origins, np.zeros((0, 3)), 9.0, world=1).shape == (50, 0)


def test_queries_of_many_worlds():
    pairs = [rough(k) for k in range(4)]
    scenes = [scene for scene, _ in pairs]
    worlds = Worlds(scenes)
    rng = np.random.default_rng(9)
    n = 40
    places, home = rng.uniform(-6, 6, (n, 3)), rng.integers(0, 4, n)
    directions, reach = rng.normal(size=(n, 3)), rng.uniform(1, 9, n)
    turned = np.tile((0.0, 0.0, 0.6, 0.8), (n, 1))
    box = Box((0.2, 0.3, 0.4))
    asked = {
        "raycast_many": ((), (places, directions, reach)),
        "sweep_many": ((box,), (places, directions, reach, turned)),
        "closest_points_many": ((box,), (places, reach, turned)),
    }
    for name, (shape, columns) in asked.items():
        found = getattr(worlds, name)(*shape, *columns, world=home)
        for k in range(4):
            rows = home == k
            own = getattr(scenes[k], name)(*shape, *(column[rows] for column in columns))
            assert type(own) is type(found)
            for a, b in zip(found, own, strict=True):
                assert a.dtype == b.dtype
                assert np.array_equal(a[rows], b)
    for name in ("overlap_many", "penetration_many"):
        found = getattr(worlds, name)(Box((2, 2, 1)), places, turned, world=home)
        assert found.first[-1] == len(found.actor) > 20
        assert 0 < found.hit.sum() < n
        for i in range(n):
            own = getattr(scenes[home[i]], name)(Box((2, 2, 1)), places[i : i + 1], turned[i : i + 1])
            some = slice(found.first[i], found.first[i + 1])
            assert found.hit[i] == own.hit[0]
            for a, b in zip(found[2:], own[2:], strict=True):
                assert (a is None) == (b is None)
                assert a is None or np.array_equal(a[some], b)
    # One value for all, one world for all, no rows.
    down = worlds.raycast_many(places, (0, 0, -1), 30.0, world=2)
    for a, b in zip(down, scenes[2].raycast_many(places, (0, 0, -1), 30.0), strict=True):
        assert np.array_equal(a, b)
    assert len(worlds.raycast_many(np.zeros((0, 3)), np.zeros((0, 3)), 3.0, world=[]).hit) == 0
    Crowd(worlds, [(0, 0, 50)], world=3)
    with pytest.raises(ValueError, match="directions"):
        worlds.raycast_many(places, directions[:, :2], 3.0, world=home)
    with pytest.raises(ValueError, match="distances"):
        worlds.raycast_many(places, directions, reach[:3], world=home)
    with pytest.raises(ValueError, match="origins"):
        worlds.raycast_many(places[0], directions, 3.0, world=0)
    with pytest.raises(ValueError, match="world"):
        worlds.sweep_many(box, places, directions, 3.0, world=4)
    with pytest.raises(TypeError, match="shape"):
        worlds.sweep_many(3, places, directions, 3.0, world=0)


def test_move_actors():
    pairs = [rough(k) for k in range(4)]
    worlds = Worlds([scene for scene, _ in pairs])
    world = [3, 0, 2]
    worlds.move_actors(world, [pairs[k][1].id for k in world], [(k, 0, 9) for k in world], (0, 0, 1, 0))
    assert [lift.position[2] for _, lift in pairs] == [9, 1, 9, 9]
    assert pairs[3][1].position[0] == 3
    assert pairs[3][1].rotation == (0, 0, 1, 0)


def test_wrong_arguments():
    scenes = [ground(), ground()]
    worlds = Worlds(scenes)
    assert len(worlds) == 2
    assert worlds[1] is scenes[1]
    for wrong, problem in ((scenes[0], TypeError), (3, TypeError), ([], ValueError), ([scenes[0]] * 2, ValueError),
                           ([scenes[0], None], TypeError)):
        with pytest.raises(problem, match="scenes"):
            Worlds(wrong)
    places = np.zeros((2, 3))
    for wrong, problem in ((2, ValueError), (-1, ValueError), ([0, 5], ValueError), ([0], ValueError), (0.0, TypeError),
                           ([0, True], TypeError), (None, TypeError), ("a", TypeError)):
        with pytest.raises(problem, match="world"):
            Crowd(worlds, places, world=wrong)
    crowd = Crowd(worlds, places, world=[0, 1])
    before = crowd.save()
    for wrong in (2, [0, -1], 1.5):
        with pytest.raises((TypeError, ValueError), match="world"):
            crowd.set([0, 1], world=wrong)
        with pytest.raises((TypeError, ValueError), match="world"):
            crowd.add(places, world=wrong)
    assert crowd.save() == before
    with pytest.raises(ValueError, match="world"):
        Crowd(scenes[0], places, world=1)
    with pytest.raises(TypeError, match="Worlds"):
        Crowd([scenes[0]], places)
    for options in ({"world": [0, 1]}, {"world": 2}, {"world": 0.5}):
        with pytest.raises((TypeError, ValueError), match="world"):
            worlds.ray_distances([(0, 0, 1)], [(1, 0, 0)], 3, **options)
    for name, arguments in (("origins", ([(0, 0)], [(1, 0, 0)], 3)), ("directions", ([(0, 0, 1)], [(0, 0, 0)], 3)),
                            ("reach", ([(0, 0, 1)], [(1, 0, 0)], float("nan"))),
                            ("origins", ([(0, np.nan, 1)], [(1, 0, 0)], 3))):
        with pytest.raises(ValueError, match=name):
            worlds.ray_distances(*arguments, world=0)
    lift = rough(0)[1]
    for name, arguments in (("world", ([2], [0], [(0, 0, 0)])), ("ids", ([0], [lift.id + 99], [(0, 0, 0)])),
                            ("positions", ([0], [0], [(0, 0)])), ("ids", ([0], [[0]], [(0, 0, 0)])),
                            ("rotations", ([0], [0], [(0, 0, 0)], [(0, 0, 1)]))):
        with pytest.raises((TypeError, ValueError), match=name):
            worlds.move_actors(*arguments)
    with pytest.raises(ValueError, match="worlds"):
        scenes[0].shift_origin((1, 0, 0))


def test_a_crowd_goes_with_its_members():
    """The scene forgets the positions of a removed crowd."""
    scenes = [ground(), ground()]
    crowd = Crowd(Worlds(scenes), [(1, 0, 0.91)] * 2, world=[0, 1], collide=True)
    hero = CharacterController(scenes[1], position=(0, 0, 0.91), collide=True)
    hero.move((1, 0, 0), DT)
    assert hero.position[0] < 0.3
    del crowd
    hero.move((1, 0, 0), DT)
    assert hero.position[0] > 0.9
    assert scenes[1].crowds == []


def test_a_scene_alone_or_as_the_only_world_is_the_same():
    places, _, ways = population(1, 1, 40)
    crowds = Crowd(rough(0)[0], places), Crowd(Worlds([rough(0)[0]]), places, world=np.zeros(40, int))
    for way in ways:
        assert np.array_equal(crowds[0].move(way, DT), crowds[1].move(way, DT))
    assert np.array_equal(crowds[0].positions, crowds[1].positions)
    assert crowds[0].worlds is None
    assert crowds[1].scene is None
