"""Crowds from outside: scene queries, contacts, members, and arrays that the caller keeps."""

import copy
import gc
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import pycct
from pycct import CharacterController, Crowd, CrowdMember, Scene, reference

DT = 1 / 60
DOWN = (0, 0, -1)
both = pytest.mark.parametrize("module", [pycct, reference], ids=["compiled", "reference"])


def starts(n, seed=1, span=8.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-span, span, (n, 3))


def looks(n, seed=3):
    """Parameters of n characters that differ in every public property."""
    rng = np.random.default_rng(seed)
    return {
        "radius": rng.choice([0.3, 0.4, 0.5], n),
        "height": rng.choice([0.0, 0.8, 1.0], n),
        "up": rng.choice([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]], n),
        "layer": rng.choice([1, 2, 4], n),
        "step_offset": np.full(n, 0.2),
    }


def singles(scene, crowd):
    """Single controllers with the parameters of a crowd's characters."""
    names = ("radius", "height", "up", "layer", "step_offset")
    table = {name: crowd.get(name).tolist() for name in names}
    return [
        CharacterController(scene, tuple(place), **{name: table[name][i] for name in names})
        for i, place in enumerate(crowd.positions.tolist())
    ]


NUMBERS = ("hit", "distance", "position", "normal", "triangle", "first", "direction", "depth", "on_shape", "on_actor")


def answers(scene, include="characters", mask=0xFFFFFFFF, n=150, reach=10.0):
    """Results of many queries: (bytes, ids of characters)."""
    rng = np.random.default_rng(5)
    start, way = rng.uniform(-reach, reach, (n, 3)), rng.normal(size=(n, 3))
    more = {"include": include, "mask": mask}
    found = [scene.raycast_many(start, way, 20.0, **more)]
    for shape in (pycct.Sphere(0.6), pycct.Box((0.5, 0.7, 0.4)), pycct.Capsule(0.3, 1.0)):
        found += [scene.sweep_many(shape, start, way, 9.0, **more), scene.overlap_many(shape, start, **more),
                  scene.penetration_many(shape, start, **more), scene.closest_points_many(shape, start, 5.0, **more)]
    bits = [np.asarray(getattr(r, name)).tobytes() for r in found for name in NUMBERS if hasattr(r, name)]
    return bits, np.concatenate([r.controller for r in found])


def same_as_singles(crowd, **more):
    """Return whether queries see a crowd like single controllers at the same positions."""
    bits, ids = answers(crowd.scene, **more)
    other = Scene()
    heroes = singles(other, crowd)
    expected, theirs = answers(other, **more)
    number = {hero.id: int(crowd.ids[i]) for i, hero in enumerate(heroes)}
    number[-1] = -1
    assert bits == expected
    assert ids.tolist() == [number[k] for k in theirs.tolist()]
    return ids


# --- queries


def test_every_query_returns_the_member():
    scene = Scene()
    floor = scene.add(pycct.Box((5, 5, 1)), (0, 0, -1))
    crowd = Crowd(scene, [(1, 1, 1), (-3, 1, 1)], radius=0.4, height=1.0)
    near, far = crowd.member(crowd.ids[0]), crowd.member(crowd.ids[1])
    assert scene.raycast((1, 1, 5), DOWN, 9).actor is floor
    for include in ("all", "characters"):
        hit = scene.raycast((1, 1, 5), DOWN, 9, include=include)
        assert type(hit.controller) is CrowdMember and hit.controller == near and hit.actor is None
        assert hit.distance == pytest.approx(5 - 1.9, abs=1e-12)
        ball = pycct.Sphere(0.5)
        assert scene.sweep(ball, (-3, 5, 1), (0, -1, 0), 9, include=include).controller == far
        assert scene.penetration(ball, (1.5, 1, 1), include=include)[0].controller == near
        assert scene.closest_points(ball, (2, 1, 1.2), include=include).controller == near
    assert scene.raycast((3, 3, 5), DOWN, 9, include="characters") is None
    assert scene.raycast((3, 3, 5), DOWN, 9, include="all").actor is floor
    assert scene.overlap(ball, (1, 1, 0.3), include="all") == [floor, near]
    assert scene.overlap(ball, (1, 1, 0.3), include="characters") == [near]
    assert scene.overlap(ball, (1, 1, 0.3)) == [floor]
    many = scene.raycast_many([[1, 1, 5], [3, 3, 5], [-3, 1, 5]], DOWN, 9, include="all")
    assert many.controller.tolist() == [near.id, -1, far.id] and many.actor.tolist() == [-1, floor.id, -1]


def test_the_filter_receives_members():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (0, 0, 3), (20, 0, 0)])
    asked = []

    def not_the_upper(who):
        asked.append(who)
        return who.position[2] < 2

    hit = scene.raycast((0, 0, 9), DOWN, 20, include="characters", filter=not_the_upper)
    assert hit.controller == crowd.member(crowd.ids[0])
    ids = [m.id for m in asked]
    assert len(set(ids)) == len(ids) and {*crowd.ids[:2].tolist()} <= {*ids}
    assert all(type(m) is CrowdMember for m in asked)


def test_masks_meet_the_layers_of_members():
    crowd = Crowd(Scene(), starts(60), **looks(60))
    everybody = same_as_singles(crowd)
    for mask in (1, 2, 6):
        ids = same_as_singles(crowd, mask=mask)
        layer = dict(zip(crowd.ids.tolist(), crowd.get("layer").tolist(), strict=True))
        seen = {layer[k] for k in ids[ids >= 0].tolist()}
        assert seen and all(bits & mask for bits in seen) and len(ids) <= len(everybody)
    assert (answers(crowd.scene, mask=8)[1] == -1).all()


def test_queries_see_a_crowd_after_every_change():
    n = 40
    scene = Scene()
    scene.add(pycct.Plane((0, 0, 1), -9))
    crowd = Crowd(scene, starts(n), **looks(n))
    rng = np.random.default_rng(9)
    assert (same_as_singles(crowd) >= 0).mean() > 0.1

    def saved():
        data = crowd.save()
        crowd.move(rng.normal(size=(len(crowd), 3)), DT)
        crowd.restore(data)

    def failed():
        before = crowd.save()
        with pytest.raises(ValueError, match="displacements"):
            crowd.move(np.full((len(crowd), 3), 1e12), DT)
        assert crowd.save() == before

    for happen in (
        lambda: crowd.move(rng.normal(size=(n, 3)), DT),
        lambda: crowd.move(rng.normal(size=(n, 3)), DT, threads=2, record_hits=True),
        lambda: crowd.run(rng.normal(size=(4, n, 3)), DT),
        lambda: crowd.move(rng.normal(size=(n, 3)), DT, active=rng.random(n) < 0.5),
        lambda: crowd.teleport([3, 7], [(1, 1, 1), (-2, 0, 3)]),
        lambda: crowd.set([0, 1, 2], radius=0.6, layer=4, up=(0, 1, 0)),
        lambda: crowd.set([5], position=(0, 0, 2)),
        lambda: crowd.resize(np.arange(0, n, 3), 0.4),
        lambda: crowd.remove([1, 8, 30]),
        lambda: crowd.add(starts(9, 4), radius=0.2, step_offset=0.1),
        saved,
        failed,
        lambda: crowd.snap_to_ground(5.0),
        lambda: scene.shift_origin((1, -1, 0.5)),
        lambda: crowd.remove(range(len(crowd) - 2)),
        lambda: crowd.remove(range(len(crowd))),
        lambda: crowd.add(starts(12, 5)),
    ):
        happen()
        same_as_singles(crowd)


def test_queries_distinguish_crowds_and_single_controllers():
    scene = Scene()
    at = [(4.0 * k, 0, 0) for k in range(12)]
    crowds, who = [], []
    for first, last in ((0, 3), (3, 3), (3, 4), (4, 4), (4, 9), (9, 9)):
        crowds.append(Crowd(scene, at[first:last] or np.empty((0, 3))))
        who += [crowds[-1].member(k) for k in crowds[-1].ids]
    heroes = [CharacterController(scene, p) for p in at[9:]]
    who += heroes
    for p, one in zip(at, who, strict=True):
        hit = scene.raycast((p[0], 0, 9), DOWN, 20, include="characters")
        assert hit.controller == one and hit.controller.id == one.id
    found = scene.raycast_many(np.array(at) + np.array([0, 0, 9]), DOWN, 20, include="all")
    assert found.controller.tolist() == [one.id for one in who]
    assert len({one.id for one in who}) == 12
    del crowds[0], who, one, hit
    gc.collect()
    found = scene.raycast_many(np.array(at) + np.array([0, 0, 9]), DOWN, 20, include="all")
    assert found.hit.tolist() == [False] * 3 + [True] * 9


def test_a_result_outlives_its_member():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (5, 0, 0)])
    hit = scene.raycast((5, 0, 9), DOWN, 20, include="characters")
    crowd.remove(1)
    assert hit.controller.id == 1 and hit.position == pytest.approx((5, 0, 0.9))
    for name in ("position", "velocity", "pose", "radius", "height", "up", "layer", "mask", "group", "shape"):
        with pytest.raises(RuntimeError, match="removed from its crowd"):
            getattr(hit.controller, name)
    assert scene.raycast((5, 0, 9), DOWN, 20, include="characters") is None


# --- other threads


class Busy:
    """A crowd that another thread moves up and down as one, 1 m per move."""

    def __init__(self, scene, n=2500, moves=40, **more):
        side = int(np.ceil(np.sqrt(n)))
        self.at = np.column_stack([2.0 * (np.arange(n) % side), 2.0 * (np.arange(n) // side), np.zeros(n)])
        self.crowd = Crowd(scene, self.at, radius=0.4, height=1.0, step_offset=0.2, **more)
        way = np.zeros((moves, n, 3))
        way[::2, :, 2], way[1::2, :, 2] = 1.0, -1.0
        self.way, self.problem = way, []
        self.stop = threading.Event()

    def one_by_one(self):
        k = 0
        while not self.stop.is_set() or k % 2:
            self.crowd.move(self.way[k % 2], DT, threads=1 + k % 2)
            k += 1

    def at_a_stretch(self):
        while not self.stop.is_set():
            self.crowd.run(self.way, DT, threads=2)

    def work(self, job):
        try:
            job()
        except BaseException as e:
            self.problem.append(e)

    def __call__(self, name):
        self.thread = threading.Thread(target=self.work, args=(getattr(self, name),))
        return self

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        if not self.problem:
            return
        raise self.problem[0]


@pytest.mark.parametrize("how", ["one_by_one", "at_a_stretch"])
@pytest.mark.parametrize("asked", ["before", "meanwhile"])
def test_queries_see_a_moving_crowd_as_a_whole(how, asked):
    """All members are at the end of the same move, for any thread and time of the query."""
    scene = Scene()
    busy = Busy(scene)
    start, ids = busy.at + np.array([0, 0, 9.0]), busy.crowd.ids.tolist()
    if asked == "before":
        scene.raycast(start[0], DOWN, 20, include="characters")
    seen = set()
    with busy(how):
        for _ in range(40):
            found = scene.raycast_many(start, DOWN, 20, include="characters")
            assert found.hit.all() and found.controller.tolist() == ids
            places = set(found.distance.tolist())
            assert len(places) == 1
            seen |= places
    # Up or down, and not between.
    assert {round(d, 6) for d in seen} <= {round(9 - 0.9, 6), round(8 - 0.9, 6)}
    found = scene.raycast_many(start, DOWN, 20, include="characters")
    np.testing.assert_allclose(found.distance, 9 - 0.9, rtol=0, atol=1e-9)


def test_state_of_a_member_is_refused_while_its_crowd_moves():
    scene = Scene()
    busy = Busy(scene)
    member = busy.crowd.member(busy.crowd.ids[17])
    assert member.position == tuple(busy.at[17])
    number = member.id
    refused = dict.fromkeys(("position", "velocity", "flags", "pose"), 0)
    shape = member.shape
    with busy("at_a_stretch"):
        end = time.monotonic() + 20
        while min(refused.values()) < 3 and time.monotonic() < end:
            for name in refused:
                try:
                    getattr(member, name)
                except RuntimeError as problem:
                    assert "in use" in str(problem)
                    refused[name] += 1
            # Parameters that moves do not change remain readable.
            assert (member.radius, member.height, member.up, member.layer) == (0.4, 1.0, (0, 0, 1), 1)
            assert (member.group, member.index, member.id) == (0, 17, number)
            assert (member.shape.radius, member.mask, member.surface) == (shape.radius, 0xFFFFFFFF, pycct.Behavior(0))
    assert min(refused.values()) >= 3
    assert member.position == pytest.approx(tuple(busy.at[17]), abs=1e-9)
    assert member.pose[0] == member.position


def test_contacts_of_a_single_character_with_a_moving_crowd():
    """Contacts come from published positions, or raise; never from a place between."""
    scene = Scene()
    busy = Busy(scene, n=900, collide=True)
    hero = CharacterController(scene, (0.85, 0, 0), radius=0.4, height=1.0, collide=True, step_offset=0.2)
    calm = hero.contacts(0.1)
    assert [c.other for c in calm] == [busy.crowd.member(busy.crowd.ids[0])]
    told = 0
    with busy("one_by_one"):
        for _ in range(200):
            for c in hero.contacts(0.1):
                assert c.other.crowd is busy.crowd
                assert np.isfinite(c.manifold.distances).all()
                # The neighbour, down or up.
                if c.other == calm[0].other:
                    told += 1
                    assert min(c.manifold.distances) == pytest.approx(0.05, abs=1e-9)
    assert told
    assert [c.other for c in hero.contacts(0.1)] == [calm[0].other]


# --- contacts


def test_contacts_of_a_crowd():
    scene = Scene()
    floor = scene.add(pycct.Box((20, 20, 1)), (0, 0, -1))
    crowd = Crowd(scene, [(0, 0, 0.91), (0.85, 0, 0.91), (9, 9, 0.91), (5, 5, 5)], radius=0.4, height=1.0, collide=True)
    crowd.move(np.full((4, 3), (0, 0, -0.01)), DT)
    hero = CharacterController(scene, (9, 9.85, 0.91), radius=0.4, height=1.0, collide=True)
    touching = crowd.contacts(0.1)
    a, b, c, _ = (crowd.member(k) for k in crowd.ids)
    assert [[t.other for t in some] for some in touching] == [[floor, b], [floor, a], [floor, hero], []]
    side = touching[0][1].manifold
    assert side.normal == pytest.approx((-1, 0, 0), abs=1e-9)
    np.testing.assert_allclose(side.distances, 0.05, rtol=0, atol=1e-9)
    assert touching[1][1].manifold.normal == pytest.approx((1, 0, 0), abs=1e-9)
    assert [t.other for t in hero.contacts(0.1)] == [floor, c] or [t.other for t in hero.contacts(0.1)] == [c]
    # Contacts of some members, in the order of the indices.
    some = crowd.contacts(0.1, indices=[2, 0])
    assert [[t.other for t in row] for row in some] == [[floor, hero], [floor, b]]
    assert crowd.contacts(0.1, indices=[]) == []
    # The indices follow members that come, go and move.
    crowd.teleport(1, (3, 3, 0.9))
    assert [t.other for t in crowd.contacts(0.1)[0]] == [floor]
    crowd.remove(0)
    assert [[t.other for t in some] for some in crowd.contacts(0.1)] == [[floor], [floor, hero], []]
    crowd.set([0], position=(9, 8.15, 0.9))
    assert [t.other for t in crowd.contacts(0.1)[0]] == [floor, c]


def test_contacts_do_not_change_a_crowd():
    n = 50
    crowd, twin = (Crowd(Scene(), starts(n, span=3), collide=True, **looks(n)) for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(10):
        way = rng.normal(size=(n, 3)) * 0.1
        before = crowd.save()
        crowd.contacts(0.2)
        assert crowd.save() == before
        crowd.move(way, DT)
        twin.move(way, DT)
    assert crowd.positions.tobytes() == twin.positions.tobytes()
    for bad, error in ((-1, ValueError), (float("nan"), ValueError), ("1", TypeError), (1e9, ValueError)):
        with pytest.raises(error, match="max_distance"):
            crowd.contacts(bad)
    for bad, error in (([n], ValueError), ([-n - 1], ValueError), ([0, 0], ValueError), ([0.5], TypeError)):
        with pytest.raises(error, match="indices"):
            crowd.contacts(0.1, indices=bad)


# --- arrays

ARRAYS = ("positions", "foot_positions", "velocities", "flags", "grounded", "ground_normals", "standing_on", "ids")


@pytest.mark.parametrize("held", [False, True])
def test_arrays_are_current_after_every_change(held):
    """Existing arrays are updated, and new ones come from the same state."""
    n = 30
    crowds = []
    for _ in range(2):
        scene = Scene()
        scene.add(pycct.Plane((0, 0, 1), -1))
        scene.add(pycct.Box((3, 3, 0.5)), (0, 0, -1))
        crowds.append(Crowd(scene, starts(n, span=4), radius=0.3, step_offset=0.2))
    crowd, fresh = crowds
    rng = np.random.default_rng(2)
    for happen in (
        lambda c, r: c.move(r.normal(size=(n, 3)) * 0.3, DT),
        lambda c, r: c.resize(np.arange(0, n, 2), r.uniform(0.3, 1.5, n // 2)),
        lambda c, r: c.resize([1], 2.0),
        lambda c, r: c.remove([0, 4, 29]),
        lambda c, r: c.move(r.normal(size=(n - 3, 3)) * 0.3, DT, threads=2),
        lambda c, r: c.add(r.uniform(-3, 3, (40, 3)), height=0.5),
        lambda c, r: c.move(r.normal(size=(n + 37, 3)) * 0.3, DT),
        lambda c, r: c.set([2, 3], position=[(1, 1, 1), (0, 0, 5)], radius=0.5),
        lambda c, r: c.teleport([8], [(0, 0, 3)]),
        lambda c, r: c.restore(c.save()),
        lambda c, r: c.scene.shift_origin((0.5, 0, 0)),
        lambda c, r: c.remove(np.arange(60)),
        lambda c, r: c.resize(range(7), 0.1),
        lambda c, r: c.move(r.normal(size=(7, 3)) * 0.3, DT, record_hits=True),
    ):
        seed = int(rng.integers(2**31))
        for c in (crowd, fresh):
            happen(c, np.random.default_rng(seed))
        if held:
            crowd.scene.overlap(pycct.Sphere(1), (0, 0, 0), include="characters")
            for name in ARRAYS:
                getattr(crowd, name)
    for name in ARRAYS:
        assert getattr(crowd, name).tobytes() == getattr(fresh, name).tobytes(), name
    states = [crowd.member(k) for k in crowd.ids]
    assert crowd.positions.tolist() == [list(m.position) for m in states]
    assert crowd.velocities.tolist() == [list(m.velocity) for m in states]
    assert crowd.flags.tolist() == [int(m.flags) for m in states]
    foot = crowd.positions[:, 2] - 0.5 * crowd.get("height") - crowd.get("radius") - crowd.get("contact_offset")
    np.testing.assert_allclose(crowd.foot_positions[:, 2], foot, rtol=0, atol=1e-12)
    same_as_singles(crowd)


def test_views_from_before_a_change_in_number_keep_their_values():
    crowd = Crowd(Scene(), starts(10))
    scene_views = {name: getattr(crowd, name) for name in ARRAYS}
    kept = {name: view.copy() for name, view in scene_views.items()}
    crowd.remove([0, 3])
    crowd.move(np.ones((8, 3)), DT)
    crowd.add(starts(100, 2))
    crowd.move(np.ones((108, 3)), DT)
    for name, view in scene_views.items():
        assert view.tobytes() == kept[name].tobytes()
        assert len(getattr(crowd, name)) == 108


class Asks:
    """A sequence of numbers that reads a crowd while a call of that crowd reads the sequence."""

    def __init__(self, scene, numbers):
        self.scene, self.numbers, self.seen = scene, numbers, []

    def __array__(self, dtype=None, copy=None):
        self.seen.append(self.scene.overlap(pycct.Sphere(50.0), (0, 0, 0), include="characters"))
        return self.numbers


@pytest.mark.parametrize("call", ["move", "run", "add", "teleport"])
def test_the_first_query_may_come_from_within_a_call(call):
    scene = pycct.Scene()
    crowd = pycct.Crowd(scene, np.arange(9.0).reshape(3, 3), radius=0.2, height=0.5)
    asks = Asks(scene, np.zeros((1, 3, 3)) if call == "run" else np.ones((3, 3)))
    if call == "move":
        crowd.move(asks, 1 / 60)
    elif call == "run":
        crowd.run(asks, 1 / 60)
    elif call == "add":
        crowd.add(asks)
    else:
        crowd.teleport([0, 1, 2], asks)
    members = [crowd.member(i) for i in crowd.ids[:3]]
    assert asks.seen and all(list(seen) == members for seen in asks.seen)
    assert len(scene.overlap(pycct.Sphere(50.0), (0, 0, 0), include="characters")) == len(crowd)


def test_a_callback_may_read_the_data_of_every_hit():
    scene = pycct.Scene()
    scene.add(pycct.Box((9, 9, 1)), (0, 0, -1), user_data="floor")
    crowd = pycct.Crowd(scene, [(1.0, 0, 0.6)], radius=0.3, height=0.5, collide=True)
    hero = pycct.CharacterController(scene, (0, 0, 0.6), radius=0.3, height=0.5, collide=True)
    seen = []
    hero.filter = lambda other: seen.append(other.user_data) or True
    hero.on_hit = lambda hit: seen.append(hit.other.user_data)
    for _ in range(30):
        hero.move((0.05, 0, -0.01), 1 / 60)
    assert set(seen) == {"floor", None} and len(crowd) == 1


@both
def test_members_read_and_write_a_list_of_user_data(module):
    scene = module.Scene()
    crowd = module.Crowd(scene, [(0, 0, 1), (3, 0, 1), (6, 0, 1)])
    _, second, third = crowd.ids.tolist()
    assert crowd.user_data == [None] * 3 and isinstance(crowd.user_data, list)
    crowd.user_data = ["a", "b", "c"]
    crowd.user_data[1] = "B"
    crowd.member(third).user_data = "C"
    assert crowd.user_data == ["a", "B", "C"] and crowd.member(second).user_data == "B"
    crowd.remove(0)
    crowd.add([(9, 0, 1)])
    assert crowd.user_data == ["B", "C", None]
    # Restored members keep their user data; members that return have none.
    saved = crowd.save()
    data = crowd.extract(second)
    assert crowd.user_data == ["C", None]
    crowd.insert(data)
    assert crowd.user_data == [None, "C", None]
    crowd.restore(saved)
    assert crowd.user_data == [None, "C", None]
    for wrong, error in ((["x"], ValueError), ("abc", TypeError), (3, TypeError)):
        with pytest.raises(error, match="user_data"):
            crowd.user_data = wrong
    assert crowd.user_data == [None, "C", None]


def test_a_list_of_user_data_of_another_length_is_corrected():
    crowd = pycct.Crowd(pycct.Scene(), np.zeros((3, 3)))
    crowd.user_data.clear()
    assert crowd.member(crowd.ids[2]).user_data is None and crowd.user_data == [None] * 3
    crowd.user_data.extend("abcd")
    crowd.remove(1)
    assert crowd.user_data == [None] * 2


def test_pickles_and_copies_of_a_crowd_have_its_user_data():
    crowd = pycct.Crowd(pycct.Scene(), np.zeros((2, 3)))
    crowd.user_data[:] = [["x"], crowd]
    again = pickle.loads(pickle.dumps(crowd))
    assert again.user_data == [["x"], again]
    deep = copy.deepcopy(crowd)
    assert deep.user_data == [["x"], deep] and deep.user_data[0] is not crowd.user_data[0]
    assert copy.copy(crowd).user_data == [["x"], crowd]


@both
def test_stats_are_refused_unless_the_last_move_recorded_them(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    crowd = module.Crowd(scene, [(0, 0, 0.91), (3, 0, 0.91)])
    down = np.tile((0, 0, -0.1), (2, 1))
    assert not crowd.stats["iterations"].any()  # never moved
    crowd.move(down, 0.1, record_stats=True)
    assert crowd.stats["iterations"].all()
    for unrecorded in (lambda: crowd.move(down, 0.1, record_hits=True), lambda: crowd.run([down], 0.1)):
        unrecorded()
        with pytest.raises(RuntimeError, match="record_stats=True"):
            crowd.stats
        crowd.move(down, 0.1, record_stats=True)
        assert crowd.stats["iterations"].all()
    crowd.add([(6, 0, 0.91)])
    assert not crowd.stats["iterations"].any()


@both
@pytest.mark.parametrize(
    ("indices", "chosen"),
    [
        (1, [1]),
        (-1, [4]),
        ([-2, 0], [3, 0]),
        (slice(1, None, 2), [1, 3]),
        (slice(None, None, -2), [4, 2, 0]),
        (np.array([True, False, False, True, False]), [0, 3]),
        ([False] * 5, []),
        (slice(9, 3), []),
        (np.array([-5, 4], np.int8), [0, 4]),
    ],
)
def test_indices_choose_as_in_numpy(module, indices, chosen):
    scene = module.Scene()
    crowd = module.Crowd(scene, [(k, 0, 1) for k in range(5)])
    ids = crowd.ids[chosen].tolist()
    crowd.teleport(indices, [(k, 9, 1) for k in range(len(chosen))])
    assert crowd.positions[chosen].tolist() == [[k, 9, 1] for k in range(len(chosen))]
    crowd.set(indices, radius=[0.2 + 0.1 * k for k in range(len(chosen))])
    assert crowd.get("radius")[chosen].tolist() == [0.2 + 0.1 * k for k in range(len(chosen))]
    crowd.resize(indices, 0.5)
    assert (crowd.get("height") == 0.5).nonzero()[0].tolist() == sorted(chosen)
    assert crowd.can_resize(0.9, indices=indices).shape == (len(chosen),)
    crowd.remove(indices)
    assert len(crowd) == 5 - len(chosen) and not set(crowd.ids.tolist()) & set(ids)


def test_an_interrupted_run_keeps_whole_ticks_and_reports_their_number():
    scene = Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    for collide in (False, True):
        crowd, twin = (Crowd(scene, [(2 * k, 0, 0.91) for k in range(4)], collide=collide, group=g) for g in (1, 2))
        way = np.full((4, 3), (0.001, 0, -0.02))
        ways = np.broadcast_to(way, (400_000, 4, 3))

        def stop(number, frame):
            raise InterruptedError("stop")

        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(InterruptedError) as error:
                crowd.run(ways, DT)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        ticks = error.value.ticks
        assert 0 < ticks < len(ways)
        twin.run(ways[:ticks], DT)
        assert crowd.positions.tolist() == twin.positions.tolist()
        assert crowd.velocities.tolist() == twin.velocities.tolist()
        crowd.move(way, DT)


def test_a_journal_receives_the_ticks_of_an_interrupted_run():
    scene = Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    crowd, twin = (Crowd(scene, [(2 * k, 0, 0.91) for k in range(4)], group=g) for g in (1, 2))
    ways = np.broadcast_to(np.full((4, 3), (0.001, 0, -0.02)), (400_000, 4, 3))
    log = []

    def listen(target, name, arguments):
        log.append((name, len(arguments["displacements"]), crowd.positions[0, 0], crowd.velocities[0, 0]))

    def stop(number, frame):
        raise InterruptedError("stop")

    crowd.journal = listen
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(InterruptedError) as error:
            crowd.run(ways, DT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    ticks = error.value.ticks
    assert {name for name, *_ in log} == {"run"} and sum(n for _, n, _, _ in log) == ticks > 1
    # The listener sees the crowd as it is before its ticks.
    assert log[0][2:] == (0.0, 0.0)
    made = 0
    for _, n, x, speed in log:
        assert x == pytest.approx(0.001 * made) and (made == 0 or speed == pytest.approx(0.06))
        made += n
    twin.run(ways[:ticks], DT)
    assert crowd.positions.tolist() == twin.positions.tolist()


def test_a_journal_that_raises_during_a_run_keeps_the_ticks_so_far():
    crowd, twin = (Crowd(Scene(), [(0, 0, 0)]) for _ in range(2))
    ways = np.full((50_000, 1, 3), 0.001)
    told = []

    def listen(target, name, arguments):
        told.append(len(arguments["displacements"]))
        if len(told) == 3:
            raise InterruptedError("enough")

    crowd.journal = listen
    with pytest.raises(InterruptedError, match="enough") as error:
        crowd.run(ways, DT)
    assert error.value.ticks == sum(told[:2])
    crowd.journal = None
    twin.run(ways[: error.value.ticks], DT)
    assert crowd.positions.tolist() == twin.positions.tolist()
    crowd.move([(0, 0, 0)], DT)


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_batches_of_queries_return_nothing(threads):
    rng = np.random.default_rng(1)
    corners = rng.uniform(-5, 5, (3000, 3))
    scene = Scene()
    scene.add(pycct.Mesh(corners, np.arange(3000).reshape(-1, 3)))
    shape, places = pycct.ConvexHull(rng.normal(size=(60, 3))), rng.uniform(-5, 5, (200_000, 3))
    eyes = pycct.Sensors(Crowd(scene, places[:3000]), {"all": pycct.Lidar(2000, 9.0)})
    worlds, rays = pycct.Worlds([scene]), rng.normal(size=(2000, 3))
    tall, many = Crowd(scene, places[:50_000], height=2.0), rng.uniform(-5, 5, (1_000_000, 3))

    def stop(number, frame):
        raise InterruptedError("stop")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for ask in (
            lambda: scene.sweep_many(shape, places, (1, 0, 0), 5.0, threads=threads),
            lambda: scene.closest_points_many(shape, places, threads=threads),
            lambda: scene.penetration_many(shape, places),
            lambda: scene.overlap_many(shape, places, filter=lambda actor: True),
            lambda: eyes.look(threads=threads),
            lambda: worlds.ray_distances(places[:3000], rays, 9.0, world=0, threads=threads),
            lambda: pycct.distance_between_many(shape, shape, (places, None)),
            lambda: pycct.contacts_between_many(shape, shape, (0.1 * places, None)),
            lambda: pycct.kernels.point_triangle_many(many, many + 1.0, many[::-1], (0, 0, 1)),
            lambda: tall.contacts(),
            lambda: tall.can_resize(3.0, threads=threads),
            lambda: tall.probe_ground(50.0, threads=threads),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(InterruptedError):
                ask()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@both
def test_arguments_that_were_misread_are_refused(module):
    with pytest.raises(TypeError):
        module.Scene("town.cooked")
    with pytest.raises(TypeError):
        module.Scene(gravity=9.8)
    scene = module.Scene()
    box = scene.add(module.Box((1, 1, 1)))
    for wrong in ("a", 1.0, None, True):
        for ask in (scene.actor, scene.character):
            with pytest.raises(TypeError, match="id"):
                ask(wrong)
    assert scene.actor(np.int64(box.id)) is box and scene.actor(10**40) is None
    crowd = module.Crowd(scene, [(0, 0, 9)])
    for wrong in ("a", 1.0, None, True):
        with pytest.raises(TypeError, match="id"):
            crowd.member(wrong)
    assert crowd.member(10**40) is None and crowd.member(np.int64(crowd.ids[0])).id == crowd.ids[0]
    with pytest.raises(ValueError, match="surface"):
        module.CharacterController(scene, surface=99)
    with pytest.raises(ValueError, match="behavior"):
        box.behavior = 8
    with pytest.raises(TypeError, match="mask"):
        module.CharacterController(scene, mask=1.0)
    with pytest.raises(TypeError, match="mask"):
        scene.overlap(module.Sphere(1), (0, 0, 9), mask=1.0)


def test_huge_numbers_are_named_and_not_printed():
    scene, huge = Scene(), 10**5000
    crowd = Crowd(scene, np.zeros((2, 3)))
    for name, call in (
        ("radius", lambda: CharacterController(scene, radius=huge)),
        ("mask", lambda: CharacterController(scene, mask=huge)),
        ("surface", lambda: crowd.set(0, surface=huge)),
        ("group", lambda: crowd.set(0, group=huge)),
        ("world", lambda: crowd.add([(0, 0, 0)], world=huge)),
        ("indices", lambda: crowd.remove(huge)),
        ("indices", lambda: crowd.remove([huge])),
        ("climbing_mode", lambda: CharacterController(scene, climbing_mode="x" * 10_000)),
        ("order", lambda: Crowd(scene, [], order="x" * 10_000)),
        ("rotations, row 1", lambda: scene.move_actors([0, 1], np.zeros((2, 3)), [(0, 0, 0, 1), (0, 0, 0, 2)])),
        ("row 1", lambda: scene.move_actors([0, 1], [(0, 0, 0), (0, np.nan, 0)])),
    ):
        with pytest.raises((TypeError, ValueError), match=name) as error:
            call()
        assert len(str(error.value)) < 300


def test_empty_batches_work_everywhere():
    scene = Scene()
    scene.add(pycct.Box((1, 1, 1)), body="kinematic")
    crowd, ball = Crowd(scene, []), pycct.Sphere(1)
    assert crowd.move([], DT).shape == (0,) and crowd.run(np.zeros((3, 0, 3)), DT).shape == (3, 0, 3)
    crowd.move([], DT, record_hits=True, record_stats=True)
    assert crowd.hits.shape == crowd.stats.shape == crowd.ground.hit.shape == (0,) and crowd.user_data == []
    assert crowd.contacts() == [] and crowd.probe_ground(1).hit.shape == (0,) and crowd.can_resize(1).shape == (0,)
    crowd.set([], radius=0.5), crowd.remove([]), crowd.teleport([], []), crowd.resize([], 1), crowd.separate(DT)
    assert crowd.add([]).shape == crowd.index_of([]).shape == (0,)
    assert crowd.insert(crowd.extract([])).shape == (0,)
    scene.move_actors([], np.zeros((0, 3)))
    none = np.zeros((0, 3))
    assert scene.raycast_many(none, none, []).hit.shape == scene.sweep_many(ball, none, none, []).hit.shape == (0,)
    assert scene.closest_points_many(ball, none).hit.shape == scene.overlap_many(ball, none).hit.shape == (0,)
    assert scene.penetration_many(ball, none).hit.shape == (0,)
    assert len(pycct.move_many([], [], DT)) == 0
    pycct.separate([], DT)


def test_a_proxy_that_the_scene_removed_is_gone():
    scene = Scene()
    hero = CharacterController(scene)
    scene.remove(hero.add_proxy())
    assert hero.proxy is None and scene.actors == []
    hero.move((0.1, 0, 0), DT)
    again = hero.add_proxy()
    assert hero.proxy is again and again.position == hero.position
    scene.remove(again)
    number = hero.id
    del hero
    gc.collect()
    assert scene.character(number) is None


@pytest.mark.parametrize("module", [pycct, reference])
def test_get_fills_arrays_of_the_caller(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    places = np.column_stack([np.arange(5.0) * 3, np.zeros(5), np.full(5, 0.91)]) + 1 / 3
    crowd = module.Crowd(scene, places, radius=[0.2, 0.3, 0.1, 0.25, 0.7], group=[0, 1, 2, 300, 4], mask=0xFFFFFFFF)
    crowd.move(np.full((5, 3), -0.01), 1 / 60)
    names = ("positions", "foot_positions", "velocities", "ground_normals", "grounded", "standing_on", "flags", "ids")
    for name in names:
        x = crowd.get(name)
        assert np.array_equal(x, getattr(crowd, name)) and x.flags.writeable
        assert not np.shares_memory(x, getattr(crowd, name))
    for name in ("positions", "radius", "up", "velocities"):
        x = crowd.get(name)
        single = crowd.get(name, "float32")
        assert single.dtype == np.float32 and np.array_equal(single, x.astype(np.float32))
        table = np.zeros((10, *x.shape[1:]), np.float32)
        assert crowd.get(name, out=table[::2]) is not None
        assert np.array_equal(table[::2], single) and not table[1::2].any()
    for kind in (np.int32, np.int64, np.uint16, np.float32, np.float64):
        assert crowd.get("group", kind).tolist() == [0, 1, 2, 300, 4]
    assert crowd.get("mask", np.uint32).tolist() == [0xFFFFFFFF] * 5
    assert crowd.get("collide", np.uint8).tolist() == [0] * 5
    out = np.full(5, 7.0)
    frozen = np.full(5, 7.0)
    frozen.flags.writeable = False
    for options, kind, word in (
        ({"dtype": np.int32}, TypeError, "dtype"), ({"dtype": "nothing"}, TypeError, "dtype"),
        ({"out": np.zeros(5, np.int64)}, TypeError, "out"), ({"out": [1.0] * 5}, TypeError, "out"),
        ({"out": np.zeros(4)}, ValueError, "out"), ({"out": frozen}, ValueError, "out"),
        ({"out": out, "dtype": np.float32}, TypeError, "out"), ({"out": np.broadcast_to(1.0, 5)}, ValueError, "out"),
    ):  # fmt: skip
        with pytest.raises(kind, match=word):
            crowd.get("radius", **options)
    for name, kind in (("group", np.uint8), ("group", bool), ("mask", np.int32), ("mask", np.float32), ("ids", object)):
        if kind is object:
            assert crowd.get(name, kind).tolist() == crowd.ids.tolist()
            continue
        with pytest.raises(TypeError, match="dtype"):
            crowd.get(name, kind)
    assert out.tolist() == [7.0] * 5 and frozen.tolist() == [7.0] * 5
    for bad in ("nobody", None, "_places", 3):
        with pytest.raises(ValueError, match="name"):
            crowd.get(bad)
