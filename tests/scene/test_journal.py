"""Listeners of scenes and crowds receive every change and every move before it takes effect."""

import copy
import threading

import numpy as np
import pytest

import pycct
from pycct import reference

BOTH = pytest.mark.parametrize("package", [pycct, reference], ids=["compiled", "reference"])
DT = 1 / 60


class Recorder:
    """A listener that stores its calls: it copies arrays and notes actors by their ids."""

    def __init__(self):
        self.entries = []

    def __call__(self, target, name, arguments):
        who = getattr(target, "id", None)
        self.entries.append((who, name, {key: self.plain(value) for key, value in arguments.items()}))

    def plain(self, value):
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, list):
            return [self.plain(v) for v in value]
        return ("id", value.id) if hasattr(value, "id") else value

    @property
    def names(self):
        return [name for _, name, _ in self.entries]


def level(package):
    scene = package.Scene()
    scene.add(package.Plane((0, 0, 1)))
    lift = scene.add(package.Box((1, 1, 0.1)), (0, 0, 0.1), body="kinematic", behavior=package.Behavior.CAN_RIDE)
    post = scene.add_obstacle(package.Capsule(0.3, 1.0), (3, 0, 0.8))
    heroes = [package.CharacterController(scene, (k, 0.1 * k, 1.2), collide=True) for k in range(3)]
    return scene, lift, post, heroes


def happenings(package, scene, lift, post, heroes):
    """Changes of every kind."""
    rng = np.random.default_rng(2)
    for step in range(12):
        with scene.edit():
            lift.move_to((0, 0, 0.1 + 0.02 * step))
            scene.move_actors([post.id], [(3, 0.05 * step, 0.8)], [(0, 0, 0, 1)])
        for hero in heroes:
            hero.move((0.06, 0, -0.05), DT, min_distance=0.001, mask=1)
        package.separate(heroes, DT)
        package.move_many(heroes, rng.uniform(-0.05, 0.05, (3, 3)), DT)
    post.layer = 2
    lift.behavior = package.Behavior.CAN_SLIDE
    heroes[0].radius = 0.3
    heroes[0].set(radius=0.35, height=0.9, position=(0, 2, 1.2))
    heroes[0].snap_to_ground(3.0)
    heroes[1].position = (5, 5, 1)
    heroes[1].foot_position = (5, 4, 0.01)
    heroes[1].resize(0.8)
    heroes[2].teleport((7, 0, 0.5))
    heroes[2].unstick(0.05)
    proxy = heroes[2].add_proxy(layer=4)
    heroes[2].move((0.1, 0, -0.1), DT)
    late = package.CharacterController(scene, (9, 9, 1), radius=0.2)
    late.restore(heroes[0].save())
    late.remove()
    scene.remove(lift)
    scene.add(package.Box((1, 1, 0.1)), (0, 0, 0.1), id=lift.id)
    scene.shift_origin((1, 2, 0))
    heroes[2].remove()
    assert proxy.scene is None
    for hero in heroes[:2]:
        hero.move((0.06, 0, -0.05), DT)


def replayed(package, entries):
    """The same scene after a replay of the record."""
    scene, _, _, heroes = level(package)
    alive = {h.id: h for h in heroes}

    def found(value):
        if isinstance(value, tuple) and value[:1] == ("id",):
            return scene.actor(value[1]) or scene.character(value[1])
        return [found(v) for v in value] if isinstance(value, list) else value

    editing = []
    for who, name, arguments in entries:
        arguments = {key: found(value) for key, value in arguments.items()}
        target = scene if who is None else scene.actor(who) or scene.character(who)
        if name == "edit":
            editing.append(scene.edit())
            editing[-1].__enter__()
        elif name == "end_edit":
            editing.pop().__exit__(None, None, None)
        elif name == "set":
            for key, value in arguments.items():
                setattr(target, key, value)
        elif name == "CharacterController":
            made = package.CharacterController(scene, **arguments)
            alive[made.id] = made
        elif name in ("separate", "move_many"):
            getattr(package, name)(**arguments)
        else:
            getattr(target, name)(**arguments)
    return scene, list(alive.values())


@BOTH
def test_records_can_be_replayed(package):
    scene, *rest = level(package)
    recorder = scene.journal = Recorder()
    assert scene.journal is recorder
    happenings(package, scene, *rest)
    scene.journal = None
    again, _alive = replayed(package, recorder.entries)
    assert [c.id for c in again.characters] == [c.id for c in scene.characters]
    assert [c.state_hash() for c in again.characters] == [c.state_hash() for c in scene.characters]
    assert [(a.id, a.position, a.layer) for a in again.actors] == [(a.id, a.position, a.layer) for a in scene.actors]
    expected = "set resize teleport unstick add_proxy CharacterController restore remove add shift_origin"
    assert set(expected.split()) < set(recorder.names)


def test_both_implementations_send_the_same_records():
    told = []
    for package in (pycct, reference):
        scene, *rest = level(package)
        scene.journal = Recorder()
        happenings(package, scene, *rest)
        told.append(scene.journal.entries)
    ours, theirs = told
    assert [(who, name) for who, name, _ in ours] == [(who, name) for who, name, _ in theirs]
    for (_, name, a), (_, _, b) in zip(ours, theirs, strict=True):
        assert list(a) == list(b), name
        for key in a:
            if key not in ("shape", "data"):
                assert np.array_equal(a[key], b[key]) or a[key] == b[key], (name, key)


def crowd_of(package, n=6):
    scene = package.Scene()
    scene.add(package.Plane((0, 0, 1)))
    return package.Crowd(scene, [(k, 0, 1) for k in range(n)], collide=True)


def change(crowd):
    """Changes of every kind for a crowd of six."""
    way = np.full((6, 3), (0.03, 0.01, -0.05))
    crowd.move(way, DT, active=np.arange(6) % 2 == 0, min_distance=0.001)
    crowd.add([(0, 9, 1)], radius=0.3, group=2)
    crowd.remove(1)
    crowd.set([0, 2], radius=[0.3, 0.35], position=(0, 3, 1), group=1)
    crowd.teleport([3], (4, 4, 1))
    crowd.resize(4, 0.7)
    crowd.separate(DT)
    crowd.snap_to_ground(2.0)
    crowd.run(np.tile(way, (3, 1, 1)), DT)
    data = crowd.save()
    crowd.move(way, DT)
    crowd.restore(data)
    crowd.scene.shift_origin((1, 0, 0))
    crowd.move(way, DT)


@BOTH
def test_records_of_a_crowd_can_be_replayed(package):
    crowd, twin = crowd_of(package), crowd_of(package)
    scene_heard = crowd.scene.journal = Recorder()
    recorder = crowd.journal = Recorder()
    change(crowd)
    expected = "move add remove set teleport resize separate snap_to_ground run move restore shift_origin move"
    assert recorder.names == expected.split()
    # Only the crowd's own listener receives changes of the crowd.
    assert scene_heard.names == ["shift_origin"]
    for _, name, arguments in recorder.entries:
        getattr(twin.scene if name == "shift_origin" else twin, name)(**arguments)
    assert twin.state_hash() == crowd.state_hash() and twin.ids.tolist() == crowd.ids.tolist()


def test_crowds_of_both_implementations_send_the_same_records():
    told = []
    for package in (pycct, reference):
        crowd = crowd_of(package)
        crowd.journal = Recorder()
        change(crowd)
        told.append(crowd.journal.entries)
    for (_, name, a), (_, other, b) in zip(*told, strict=True):
        assert name == other and list(a) == list(b)
        for key in a:
            assert np.array_equal(a[key], b[key]), (name, key)


@BOTH
def test_the_listener_of_a_scene_receives_new_crowds(package):
    scene = package.Scene()
    recorder = scene.journal = Recorder()
    package.Crowd(scene, [(0, 0, 1)], radius=0.3, order="sequential")
    assert recorder.names == ["Crowd"]
    told = recorder.entries[0][2]
    assert told["positions"].tolist() == [[0, 0, 1]] and told["radius"] == 0.3 and told["order"] == "sequential"


def calls_of(package, scene, lift, post, heroes):
    hero = heroes[0]
    return [
        lambda: scene.add(package.Sphere(1)),
        lambda: scene.add_obstacle(package.Box((1, 1, 1))),
        lambda: lift.move_to((0, 0, 9)),
        lambda: setattr(lift, "layer", 8),
        lambda: setattr(post, "behavior", 1),
        lambda: scene.move_actors([lift.id], [(0, 0, 9)]),
        lambda: scene.shift_origin((1, 1, 1)),
        lambda: package.CharacterController(scene),
        lambda: package.Crowd(scene, [(0, 0, 0)]),
        lambda: hero.move((1, 0, 0), DT),
        lambda: package.move_many(heroes, np.ones((3, 3)), DT),
        lambda: package.separate(heroes, DT),
        lambda: setattr(hero, "radius", 0.2),
        lambda: setattr(hero, "position", (9, 9, 9)),
        lambda: setattr(hero, "foot_position", (9, 9, 9)),
        lambda: hero.set(radius=0.2, height=0.4),
        lambda: hero.teleport((9, 9, 9)),
        lambda: hero.resize(0.5),
        lambda: hero.snap_to_ground(9),
        lambda: hero.unstick(),
        lambda: hero.add_proxy(),
        lambda: hero.restore(heroes[2].save()),
        lambda: hero.remove(),
        lambda: scene.remove(lift),
    ]


@BOTH
def test_listeners_run_before_the_change_and_may_stop_it(package):
    scene, lift, post, heroes = level(package)
    heroes[0].move((0, 0, 0.2), DT)

    def picture():
        actors = [(a.id, a.position, a.layer, int(a.behavior)) for a in scene.actors + scene.obstacles]
        return actors, [c.state_hash() for c in scene.characters], len(scene.crowds), heroes[0].proxy

    before = picture()
    heard = []

    def listener(target, name, arguments):
        heard.append(name)
        assert picture() == before
        raise KeyError(name)

    calls = calls_of(package, scene, lift, post, heroes)
    scene.journal = listener
    for call in calls:
        with pytest.raises(KeyError):
            call()
        assert picture() == before
    assert len(heard) == len(calls)
    with pytest.raises(KeyError), scene.edit():
        pass
    scene.journal = None
    for call in calls:
        call()
    assert len(heard) == len(calls) + 1 and picture() != before


@BOTH
def test_a_crowd_as_its_listener_sees_it(package):
    crowd = crowd_of(package)
    crowd.move(np.full((6, 3), (0.02, 0, -0.05)), DT, record_hits=True)
    before = crowd.state_hash(), crowd.save(), crowd.positions.tolist()
    heard = []

    def listener(target, name, arguments):
        heard.append(name)
        # The listener may read.
        assert (crowd.state_hash(), crowd.save(), crowd.positions.tolist()) == before
        assert crowd.ids.tolist() == [1, 2, 3, 4, 5, 6] and crowd.get("radius").tolist() == [0.4] * 6
        assert crowd.probe_ground(1.0).hit.all() and crowd.index_of(2) == 1
        raise KeyError(name)

    crowd.journal = listener
    way = np.full((6, 3), 0.1)
    calls = [
        lambda: crowd.move(way, DT),
        lambda: crowd.run(way[None], DT),
        lambda: crowd.add([(0, 0, 0)]),
        lambda: crowd.remove(0),
        lambda: crowd.set(0, radius=0.1),
        lambda: crowd.teleport(0, (0, 0, 9)),
        lambda: crowd.resize(0, 0.2),
        lambda: crowd.separate(DT),
        lambda: crowd.snap_to_ground(1),
        lambda: crowd.restore(before[1]),
        lambda: crowd.scene.shift_origin((1, 1, 1)),
    ]
    for call in calls:
        with pytest.raises(KeyError):
            call()
    assert len(heard) == len(calls)
    crowd.journal = None
    assert (crowd.state_hash(), crowd.save(), crowd.positions.tolist()) == before


def test_a_listener_must_not_change_its_crowd():
    crowd = crowd_of(pycct)
    crowd.journal = lambda target, name, arguments: target.teleport(0, (0, 0, 5))
    with pytest.raises(RuntimeError, match="listener must not change"):
        crowd.move(np.zeros((6, 3)), DT)
    crowd.journal = lambda target, name, arguments: setattr(target, "journal", None)
    with pytest.raises(RuntimeError, match="listener must not change"):
        crowd.move(np.zeros((6, 3)), DT)
    crowd.journal = None
    crowd.move(np.zeros((6, 3)), DT)


def test_another_thread_cannot_enter_during_a_listener():
    crowd = crowd_of(pycct)
    problems = []

    def other():
        for call in (crowd.save, lambda: crowd.move(np.zeros((6, 3)), DT)):
            try:
                call()
            except RuntimeError as problem:
                problems.append(str(problem))

    def listener(target, name, arguments):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    crowd.journal = listener
    crowd.move(np.zeros((6, 3)), DT)
    assert problems == ["the crowd is in use by another thread"] * 2


def test_a_controller_as_its_listener_sees_it():
    scene, _, _, heroes = level(pycct)
    hero = heroes[0]

    def listener(target, name, arguments):
        assert target is hero and hero.save() == data and hero.state_hash() == number and hero.hits is not None
        with pytest.raises(RuntimeError, match="in use"):
            hero.teleport((0, 0, 0))

    data, number = hero.save(), hero.state_hash()
    scene.journal = listener
    hero.move((0.1, 0, 0), DT)


@BOTH
def test_bad_listeners(package):
    crowd = crowd_of(package)
    for target in (crowd, crowd.scene):
        for bad in (1, "x", []):
            with pytest.raises(TypeError, match="journal must be callable or None"):
                target.journal = bad
        assert target.journal is None


@BOTH
def test_listeners_receive_no_bad_arguments(package):
    scene, lift, _post, heroes = level(package)
    recorder = scene.journal = Recorder()
    hero = heroes[0]
    for call in (
        lambda: hero.move((1, 2), DT),
        lambda: hero.move((1, 2, 3), -1),
        lambda: hero.teleport("here"),
        lambda: hero.set(radius=-1),
        lambda: hero.set(colour=1),
        lambda: hero.restore(b""),
        lambda: lift.move_to((1, 2)),
        lambda: scene.add(package.Sphere(1), id=99),
        lambda: scene.move_actors([99], [(0, 0, 0)]),
        lambda: package.move_many(heroes, np.zeros((2, 3)), DT),
        lambda: package.CharacterController(scene, radius=-1),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert recorder.entries == []


@BOTH
def test_listeners_receive_answers_of_callbacks(package):
    scene, lift, post, heroes = level(package)
    hero = heroes[0]
    hero.filter = lambda other: other is not post
    hero.behavior = lambda other: package.Behavior.CAN_RIDE
    recorder = scene.journal = Recorder()
    hero.move((0, 0, -0.5), DT)
    told = [arguments for _, name, arguments in recorder.entries if name == "answer"]
    assert recorder.names[0] == "move" and {a["question"] for a in told} == {"filter", "behavior"}
    assert {"question": "filter", "other": ("id", lift.id), "answer": True} in told
    before = len(recorder.entries)
    hero.probe_ground(1.0)
    hero.can_resize(2.0)
    hero.explain((0, 0, -0.1), DT)
    assert len(recorder.entries) == before
    hero.snap_to_ground(1.0)
    hero.unstick(0.1)
    assert recorder.names[before] == "snap_to_ground" and "answer" in recorder.names[before:]


def test_a_listener_is_not_copied_and_receives_later_controllers():
    scene, _, _, _heroes = level(pycct)
    recorder = scene.journal = Recorder()
    assert copy.copy(scene).journal is None
    late = pycct.CharacterController(scene, (0, 0, 5))
    late.move((0, 0, -0.1), DT)
    scene.journal = None
    late.move((0, 0, -0.1), DT)
    assert recorder.names == ["CharacterController", "move"]


def test_listeners_change_no_result():
    ends = []
    for listener in (None, Recorder()):
        scene, *rest = level(pycct)
        scene.journal = listener
        happenings(pycct, scene, *rest)
        ends.append([c.state_hash() for c in scene.characters])
    assert ends[0] == ends[1]


def test_listeners_receive_controllers_of_several_threads():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    heroes = [pycct.CharacterController(scene, (2 * k, 0, 1)) for k in range(4)]
    heard = []
    scene.journal = lambda target, name, arguments: heard.append((target.id, arguments["displacement"][0]))

    def work(hero):
        for k in range(50):
            hero.move((0.01 * k, 0, -0.02), DT)

    threads = [threading.Thread(target=work, args=(hero,)) for hero in heroes]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for hero in heroes:
        assert [x for id, x in heard if id == hero.id] == [0.01 * k for k in range(50)]
