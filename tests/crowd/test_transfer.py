"""Members that move between crowds, and saves with lifts and doors."""

import struct
import zlib

import numpy as np
import pytest

import pycct
from pycct import reference
from pycct.args import save_format as saves

BOTH = pytest.mark.parametrize("package", [pycct, reference], ids=["compiled", "reference"])
DT = 1 / 60


def level(package):
    """A floor, a lift that carries, a door, an obstacle that moves, a crate."""
    scene = package.Scene()
    scene.add(package.Plane((0, 0, 1)))
    ride = package.Behavior.CAN_RIDE
    lift = scene.add(package.Box((2, 2, 0.1)), (0, 0, 0.1), body="kinematic", behavior=ride)
    door = scene.add(package.Box((0.1, 3, 2)), (3, 0, 1), body="kinematic")
    post = scene.add_obstacle(package.Capsule(0.3, 1.0), (0, 3, 0.8))
    crate = scene.add(package.Box((0.3, 0.3, 0.3)), (-3, 0, 0.3), body="dynamic")
    return scene, [lift, door, post, crate]


def happen(scene, things, k):
    lift, door, post, crate = things
    lift.move_to((0.02 * k, 0, 0.1 + 0.03 * (k % 20)))
    door.move_to((3, 0.1 * k, 1), (0, 0, 0.6, 0.8) if k % 3 else (0, 0, 0, 1))
    door.layer = 1 if k % 7 < 4 else 2
    post.move_to((0.03 * k, 3, 0.8))
    crate.move_to((-3 + 0.01 * k, 0, 0.3))
    crate.behavior = k % 3


def crowd_of(package, scene, n=12, **more):
    rng = np.random.default_rng(n)
    places = np.c_[rng.uniform(-2, 2, (n, 2)), np.full(n, 1.3)]
    return package.Crowd(scene, places, radius=0.3, collide=True, mask=1, **more)


def walk(crowd, steps, seed=0):
    ways = np.random.default_rng(seed).uniform(-0.08, 0.08, (len(steps), 200, 3)) - (0, 0, 0.05)
    for way, k in zip(ways, steps, strict=True):
        yield k, way[: len(crowd)]


def everything(scene, *crowds):
    actors = [(a.id, a.position, a.rotation, a.layer, int(a.behavior)) for a in scene.actors + scene.obstacles]
    return actors, [(c.state_hash(), c.positions.tolist(), c.flags.tolist(), c.save()) for c in crowds]


# --- lifts and doors ----------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_restore_and_the_same_calls_give_the_same_bits(package, order):
    scene, things = level(package)
    crowd = crowd_of(package, scene, order=order)
    for k, way in walk(crowd, range(10)):
        happen(scene, things, k)
        crowd.move(way, DT)
    data = crowd.save(moving=True)
    before = everything(scene, crowd)
    ends = []
    for _ in range(2):
        for k, way in walk(crowd, range(10, 30), seed=1):
            happen(scene, things, k)
            crowd.move(way, DT)
        ends.append(everything(scene, crowd))
        crowd.restore(data)
        assert everything(scene, crowd) == before
    assert ends[0] == ends[1]
    assert crowd.save(moving=True) == data != crowd.save()


@BOTH
def test_without_moving_actors_the_scene_stays(package):
    scene, things = level(package)
    crowd = crowd_of(package, scene, 3)
    data = crowd.save()
    things[0].move_to((0, 0, 5))
    crowd.restore(data)
    assert things[0].position == (0, 0, 5)


def test_both_packages_write_the_same_bytes():
    written = []
    for package in (pycct, reference):
        scene, things = level(package)
        crowd = crowd_of(package, scene)
        heroes = [package.CharacterController(scene, (k, -4, 1)) for k in range(3)]
        for k, way in walk(crowd, range(5)):
            happen(scene, things, k)
            crowd.move(way, DT)
            for hero in heroes:
                hero.move((0.03, 0, -0.1), DT)
        heroes[0].add_proxy()
        found = [crowd.save(moving=True), package.save_many(heroes), package.save_many(heroes, moving=True)]
        found += [crowd.extract(crowd.ids[[5, 2]]), crowd.save()]
        written.append(found)
    assert written[0] == written[1]


@BOTH
def test_actors_that_are_gone_come_back_first(package):
    scene, things = level(package)
    crowd = crowd_of(package, scene, 3)
    lift = things[0]
    data = crowd.save(moving=True)
    scene.remove(lift)
    late = scene.add(package.Sphere(1), (50, 0, 0), body="kinematic")
    before = everything(scene, crowd)
    with pytest.raises(ValueError, match=f"data moves actor {lift.id}, but the scene has no moving actor"):
        crowd.restore(data)
    assert everything(scene, crowd) == before
    again = scene.add(lift.shape, (9, 9, 9), body="kinematic", id=lift.id)
    crowd.restore(data)
    assert again.position == (0, 0, 0.1) and late.position == (50, 0, 0)


@BOTH
def test_proxies_follow_their_owners_only(package):
    scene, _ = level(package)
    hero = package.CharacterController(scene, (9, 9, 1))
    proxy = hero.add_proxy()
    crowd = crowd_of(package, scene, 2)
    data = crowd.save(moving=True)
    hero.teleport((9, 8, 1))
    crowd.restore(data)
    assert proxy.position == hero.position == (9, 8, 1)


@BOTH
def test_a_listener_receives_restored_actors(package):
    scene, things = level(package)
    crowd = crowd_of(package, scene, 2)
    data = crowd.save(moving=True)
    happen(scene, things, 5)
    heard = []
    scene.journal = lambda target, name, arguments: heard.append((target, name, sorted(arguments)))
    crowd.journal = lambda target, name, arguments: heard.append((target, name, sorted(arguments)))
    crowd.restore(data)
    assert heard[:2] == [(crowd, "restore", ["data"]), (scene, "move_actors", ["ids", "positions", "rotations"])]
    assert {target.id for target, name, _ in heard[2:] if name == "set"} == {things[1].id, things[3].id}


# --- teams of controllers


@BOTH
def test_teams_are_saved_and_restored(package):
    scene, things = level(package)
    heroes = [package.CharacterController(scene, (k, 0.2 * k, 1.3), collide=True, radius=0.3) for k in range(4)]

    def go(steps):
        for k in steps:
            happen(scene, things, k)
            package.move_many(heroes, np.full((4, 3), (0.03, 0.02, -0.06)), DT)
            package.separate(heroes, DT)
        return everything(scene), [hero.state_hash() for hero in heroes], [hero.save() for hero in heroes]

    go(range(8))
    data = package.save_many(heroes, moving=True)
    first = go(range(8, 20))
    heroes[1].radius = 0.2
    package.restore_many(heroes, data)
    assert package.save_many(heroes, moving=True) == data
    assert go(range(8, 20)) == first
    # Without the actors, in another scene: the ground of a character becomes the one at its index.
    twin, _ = level(package)
    twin.add(package.Sphere(1), (0, 0, -50))
    others = [package.CharacterController(twin) for _ in heroes]
    package.restore_many(others, package.save_many(heroes))
    assert [h.position for h in others] == [h.position for h in heroes]


@BOTH
def test_a_character_on_another_stands_on_its_replacement(package):
    scene = package.Scene()
    scene.add(package.Plane((0, 0, 1)))
    pair = [package.CharacterController(scene, (0, 0, z), collide=True) for z in (0.91, 2.75)]
    for _ in range(20):
        pair[1].move((0, 0, -0.05), DT)
    assert pair[1].state.standing_on is pair[0] and pair[1].ground.controller is pair[0]
    twin = package.Scene()
    for _ in range(9):
        twin.add(package.Plane((0, 0, 1)))
    others = [package.CharacterController(twin) for _ in pair]
    package.restore_many(others, package.save_many(pair))
    assert others[1].state.standing_on is others[0] and others[1].ground.controller is others[0]


@BOTH
def test_bad_teams(package):
    scene, _ = level(package)
    hero, other = package.CharacterController(scene), package.CharacterController(scene, (5, 0, 0))
    elsewhere = package.CharacterController(package.Scene())
    data = package.save_many([hero, other])
    assert package.save_many([]) and package.restore_many([], package.save_many([])) is None
    for bad in (hero, {hero}, "x", None):
        with pytest.raises(TypeError, match="controllers must be a list or tuple"):
            package.save_many(bad)
    with pytest.raises(TypeError, match="CharacterControllers, not int"):
        package.save_many([hero, 1])
    with pytest.raises(ValueError, match="different"):
        package.restore_many([hero, hero], data)
    with pytest.raises(ValueError, match="of one scene"):
        package.save_many([hero, elsewhere], moving=True)
    with pytest.raises(ValueError, match="must not be empty"):
        package.save_many([], moving=True)
    with pytest.raises(TypeError, match="moving must be True or False"):
        package.save_many([hero], moving=1)
    with pytest.raises(ValueError, match="data is of 2 controllers, but controllers are 1"):
        package.restore_many([hero], data)
    with pytest.raises(ValueError, match="not a saved team"):
        package.restore_many([hero], hero.save())
    with pytest.raises(ValueError, match="not a saved character"):
        hero.restore(data)
    with pytest.raises(TypeError, match="data must be bytes"):
        package.restore_many([hero], 5)
    other.remove()
    before = hero.save()
    hero.teleport((7, 7, 7))
    with pytest.raises(RuntimeError, match="removed"):
        package.restore_many([hero, other], data)
    assert hero.position == (7, 7, 7) and hero.save() != before


# --- extract and insert -----------------------------------------------------------------


@BOTH
def test_members_that_left_and_returned_make_no_difference(package):
    ends = []
    for travels in (False, True):
        scene, things = level(package)
        crowd = crowd_of(package, scene, 10, group=[k % 2 for k in range(10)])
        rng = np.random.default_rng(6)
        for k, way in walk(crowd, range(15)):
            happen(scene, things, k)
            crowd.move(way, DT)
            if travels:
                gone = rng.choice(crowd.ids, 4, replace=False)
                data = crowd.extract(gone)
                assert len(crowd) == 6 and not set(gone) & set(crowd.ids.tolist())
                assert crowd.insert(data).tolist() == sorted(gone)
        ends.append(everything(scene, crowd))
    assert ends[0] == ends[1]


@BOTH
def test_members_move_to_another_crowd_and_another_scene(package):
    scene, _ = level(package)
    crowd = crowd_of(package, scene, 8, order="sequential")
    for _, way in walk(crowd, range(4)):
        crowd.move(way, DT)
    whole = crowd.state_hash()
    other = package.Crowd(level(package)[0], [], radius=0.1)
    moved = crowd.ids[[1, 6, 3]].tolist()
    hashes = [crowd.state_hash()]
    data = crowd.extract(moved)
    assert other.insert(data).tolist() == sorted(moved)
    assert other.ids.tolist() == sorted(moved) and (crowd.state_hash() + other.state_hash()) % 2**64 == whole
    assert other.order == "simultaneous" and other.add([(0, 0, 9)])[0] > max(moved)
    assert other.get("radius").tolist() == [0.3, 0.3, 0.3, 0.1]
    assert hashes[0] == whole
    # `insert` accepts a whole save, too.
    third = package.Crowd(level(package)[0], [])
    assert third.insert(crowd.save(moving=True)).tolist() == crowd.ids.tolist()
    assert third.state_hash() == crowd.state_hash()


@BOTH
def test_ids_that_are_taken_are_refused(package):
    scene, _ = level(package)
    crowd = crowd_of(package, scene, 4)
    data = crowd.save()
    with pytest.raises(ValueError, match=f"data has id {crowd.ids[0]}, which something in this scene has"):
        crowd.insert(data)
    other = package.Crowd(scene, [])
    with pytest.raises(ValueError, match="which something in this scene has"):
        other.insert(data)
    gone = int(crowd.ids[1])
    part = crowd.extract(gone)
    scene.add(package.Sphere(1), (0, 0, 99), id=gone)
    with pytest.raises(ValueError, match="which something in this scene has"):
        crowd.insert(part)
    assert len(crowd) == 3


@BOTH
def test_bad_extracts_and_inserts(package):
    scene, _ = level(package)
    crowd = crowd_of(package, scene, 4)
    first = int(crowd.ids[0])
    before = everything(scene, crowd)
    with pytest.raises(KeyError, match="99"):
        crowd.extract([first, 99])
    with pytest.raises(ValueError, match="different"):
        crowd.extract([first, first])
    for call in (crowd.extract, crowd.index_of):
        with pytest.raises(TypeError, match="ids"):
            call(np.array([first], object))
        with pytest.raises(KeyError, match="18446744073709551616"):
            call([2**64])
    for bad in ("x", 1.5, [[first]]):
        with pytest.raises((TypeError, ValueError), match="ids must be"):
            crowd.extract(bad)
    for bad in (b"", b"x" * 100, package.save_many([])):
        with pytest.raises(ValueError, match="not a saved crowd"):
            crowd.insert(bad)
    with pytest.raises(TypeError, match="data must be bytes"):
        crowd.insert(None)
    assert everything(scene, crowd) == before
    assert len(package.Crowd(package.Scene(), []).insert(crowd.extract([]))) == 0
    assert everything(scene, crowd) == before


def test_large_crowds_merge_too():
    """More than 2,000 members keep candidates as numbers."""
    scene, _ = level(pycct)
    crowd = crowd_of(pycct, scene, 1900)
    ways = np.random.default_rng(3).uniform(-0.05, 0.05, (6, 2100, 3)) - (0, 0, 0.05)
    crowd.move(ways[0][:1900], DT)
    twin_scene, _ = level(pycct)
    twin = crowd_of(pycct, twin_scene, 1900)
    twin.move(ways[0][:1900], DT)
    for c in (crowd, twin):
        c.add([(30 + k, 0, 1) for k in range(200)])
    data = crowd.extract(crowd.ids[::3])
    crowd.insert(data)
    for way in ways[1:]:
        crowd.move(way, DT, threads=2)
        twin.move(way, DT)
    assert crowd.state_hash() == twin.state_hash()


def test_damaged_bytes_change_nothing():
    """Any bytes raise an error or give a crowd that moves."""
    rng = np.random.default_rng(5)
    scene, things = level(pycct)
    crowd = crowd_of(pycct, scene, 5)
    heroes = [pycct.CharacterController(scene, (k, -4, 1)) for k in range(3)]
    empty = pycct.Crowd(level(pycct)[0], [])
    refused = 0
    for data, use, magic in (
        (crowd.save(moving=True), crowd.restore, saves.CROWD_MAGIC),
        (crowd.save(moving=True), empty.insert, saves.CROWD_MAGIC),
        (pycct.save_many(heroes, moving=True), lambda d: pycct.restore_many(heroes, d), saves.TEAM_MAGIC),
    ):
        body = data[saves.HEADER.size :]
        for cut in (0, 1, 19, 20, 200, len(body) - 73, len(body) - 1):
            with pytest.raises(ValueError):
                use(saves.seal(body[:cut], magic))
        for _ in range(400):
            spoiled = bytearray(body)
            for at in rng.integers(0, len(body), rng.integers(1, 4)):
                spoiled[at] = rng.integers(256)
            try:
                use(saves.seal(spoiled, magic))
            except ValueError:
                refused += 1
            if len(empty):
                empty.remove(range(len(empty)))
        use(data)
    assert refused > 100
    happen(scene, things, 3)
    crowd.move(np.full((5, 3), (0, 0, -0.05)), DT)


def test_a_checksum_guards_the_moving_part():
    scene, _ = level(pycct)
    crowd = crowd_of(pycct, scene, 1)
    data = bytearray(crowd.save(moving=True))
    data[-1] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        crowd.restore(bytes(data))
    data[16:20] = struct.pack("<I", zlib.crc32(bytes(data[20:])))
    crowd.restore(bytes(data))
