"""Publishing only changes gives the bits of publishing everything, for any readers meanwhile."""

import copy
import gc
import threading

import numpy as np
import pytest
import worlds

import pycct

DOWN = (0, 0, -1)


def fresh(scene):
    """The same scene, published as a whole."""
    return copy.deepcopy(scene)


def questions(scene, rng, n=60):
    start, way = rng.uniform(-7, 7, (n, 3)), rng.normal(size=(n, 3))
    capsule, box = pycct.Capsule(0.3, 0.9), pycct.Box((0.3, 0.5, 0.2))
    r = [scene.raycast_many(start, way, 9.0, mask=5), scene.sweep_many(capsule, start, way, 4.0),
         scene.sweep_many(box, start, way, 4.0), scene.closest_points_many(capsule, start, 3.0),
         scene.overlap_many(box, start)]
    assert r[0].hit.any()
    names = ("hit", "distance", "position", "normal", "actor", "triangle", "data")
    return [np.asarray(getattr(x, name)).tobytes() for x in r for name in names if hasattr(x, name)]


def walk(scene, rng, moves=25):
    states = []
    for _ in range(3):
        hero = pycct.CharacterController(scene, position=rng.uniform(-4, 4, 3), step_offset=0.4)
        for _ in range(moves):
            hero.move(rng.normal(size=3) * 0.1, 1 / 60)
            states.append((hero.position, hero.velocity, hero.flags, hero.stats.iterations,
                           [(h.triangle, h.position, h.normal) for h in hero.hits]))
        hero.remove()
    return states


def change(scene, rng):
    """A few changes of any kind, then a query (or none)."""
    actors = scene.actors + scene.obstacles
    for _ in range(rng.integers(1, 6)):
        what = rng.integers(9)
        actor = actors[rng.integers(len(actors))] if actors else None
        if what == 0 and len(actors) > 20:
            scene.remove(actor)
            actors.remove(actor)
        elif what == 1:
            p = worlds.placings(rng)[rng.integers(15)]
            actors.append(scene.add(**p))
        elif what == 2 and actor is not None:
            actor.layer = int(rng.integers(1, 8))
        elif what == 3:
            actors.append(scene.add_obstacle(pycct.Box((0.4, 0.5, 0.6)), rng.uniform(-5, 5, 3)))
        elif what == 4 and actors:
            some = rng.permutation(len(actors))[: rng.integers(1, len(actors))]
            scene.move_actors([actors[k].id for k in some], rng.uniform(-5, 5, (len(some), 3)),
                              worlds.unit(rng, len(some)) if rng.random() < 0.5 else None)
        elif what == 5:
            # Far away and back: boxes grow, and shrink again.
            actor.move_to(rng.uniform(-500, 500, 3))
        elif what == 6:
            # Added and removed without a query between.
            scene.remove(scene.add(pycct.Sphere(0.5), rng.uniform(-5, 5, 3), body="kinematic"))
        else:
            actor.move_to(rng.uniform(-5, 5, 3), worlds.unit(rng))


@pytest.mark.parametrize("seed", range(6))
def test_the_same_as_publishing_everything(seed):
    rng = np.random.default_rng(seed)
    scene = worlds.scene_of(worlds.placings(rng, copies=int(rng.integers(0, 5))))
    for k in range(60):
        if rng.random() < 0.3:
            with scene.edit():
                change(scene, rng)
                change(scene, rng)
        else:
            change(scene, rng)
        if rng.random() < 0.7:
            scene.raycast((0, 0, 9), DOWN, 20)
        if k % 6 == 5:
            again = fresh(scene)
            place = int(rng.integers(2**31))
            if len(scene.actors):
                assert questions(scene, np.random.default_rng(place)) == questions(again, np.random.default_rng(place))
            assert walk(scene, np.random.default_rng(place)) == walk(again, np.random.default_rng(place))


@pytest.mark.parametrize("body", ["static", "kinematic"])
def test_actors_in_their_thousands_that_come_move_and_go(body):
    rng = np.random.default_rng(1)
    scene = pycct.Scene()
    ball = pycct.Sphere(0.3)
    alive = {}
    for round_ in range(40):
        for _ in range(rng.integers(0, 60)):
            a = scene.add(ball, rng.uniform(-20, 20, 3), body=body)
            alive[a.id] = a
        for a in rng.permutation(list(alive))[: rng.integers(0, 40)].tolist():
            scene.remove(alive.pop(a))
        some = rng.permutation(list(alive))[: int(len(alive) * rng.choice([0, 0.02, 0.2, 1.0]))]
        places = rng.uniform(-20, 20, (len(some), 3)) * (1 if round_ % 5 else 30)
        scene.move_actors(some.astype(int), places)
        start = rng.uniform(-20, 20, (200, 3))
        found = scene.overlap_many(pycct.Sphere(2.0), start)
        centres = np.array([a.position for a in alive.values()]).reshape(-1, 3)
        ids = np.array(list(alive))
        for k, p in enumerate(start):
            near = np.linalg.norm(centres - p, axis=1) if len(ids) else np.empty(0)
            assert found.actor[found.first[k] : found.first[k + 1]].tolist() == sorted(ids[near < 2.3].tolist())


def test_a_query_keeps_its_snapshot():
    """A snapshot with a reader is not reused."""
    scene = pycct.Scene()
    lifts = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body="kinematic") for k in range(200)]
    seen = []

    def slow(actor):
        # The query starts before the ray cast: many publications happen in between.
        for k in range(6):
            lifts[100].move_to((100, 5 + k, 0))
            lifts[3 + k].move_to((3 + k, 7, 0))
            seen.append(scene.raycast((100, 5 + k, 5), DOWN, 9) is not None)
        return True

    hit = scene.raycast((100, 0, 5), DOWN, 9, filter=slow)
    assert hit.actor is lifts[100] and hit.distance == pytest.approx(4.6)
    assert len(seen) >= 6 and all(seen)
    assert scene.raycast((100, 0, 5), DOWN, 9) is None


def test_readers_in_other_threads_see_whole_snapshots():
    """A row of lifts moves up and down as one; no reader sees only some of them moved."""
    scene = pycct.Scene()
    lifts = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body="kinematic") for k in range(100)]
    for k in range(500):
        scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 50, 0), body="kinematic")
    ids = [a.id for a in lifts]
    start = np.column_stack([np.arange(100), np.zeros(100), np.full(100, 9.0)])
    stop = threading.Event()
    torn = []

    def read():
        while not stop.is_set():
            d = scene.raycast_many(start, DOWN, 20.0).distance
            if len(set(d.tolist())) != 1:
                torn.append(d)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for r in readers:
        r.start()
    for k in range(300):
        scene.move_actors(ids, np.column_stack([np.arange(100), np.zeros(100), np.full(100, float(k % 4))]))
        scene.raycast((0, 0, 9), DOWN, 1)
    stop.set()
    for r in readers:
        r.join()
    assert torn == []


class Meddler:
    """An object that changes a scene when it is collected."""

    def __init__(self, act):
        self.act = act
        self.me = self

    def __del__(self):
        self.act()


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("kind", ["move", "add", "remove"])
def test_a_change_by_a_finalizer_while_publishing_is_not_lost(kind, looks):
    old = gc.get_threshold()
    for allocations in range(1, 26):
        scene = pycct.Scene()
        crates = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body="kinematic") for k in range(50)]
        floor = scene.add(pycct.Box((5, 5, 1)), (0, 30, 0))
        scene.raycast((0, 0, 5), DOWN, 9)
        done = []

        def act(scene=scene, crates=crates, done=done):
            if kind == "move":
                crates[7].move_to((7, 9, 0))
            elif kind == "add":
                scene.add(pycct.Box((0.4, 0.4, 0.4)), (7, 9, 0), body="kinematic")
            else:
                scene.remove(crates[7])
            if looks:
                scene.raycast((0, 0, 5), DOWN, 9)
            done.append(1)

        gc.collect()
        floor.move_to((0, 31, 0))
        if allocations % 2:
            scene.add(pycct.Box((0.4, 0.4, 0.4)), (70, 0, 0), body="kinematic")
        crates[3].move_to((3, 5, 0))
        Meddler(act)
        # The collector runs after a number of allocations, and sometimes within a publication.
        gc.set_threshold(allocations)
        try:
            scene.raycast((0, 0, 5), DOWN, 9)
        finally:
            gc.set_threshold(*old)
        gc.collect()
        assert done
        at_new, at_old = scene.raycast((7, 9, 5), DOWN, 9), scene.raycast((7, 0, 5), DOWN, 9)
        assert (at_new is not None) == (kind != "remove")
        assert (at_old is None) == (kind != "add")
        assert questions(scene, np.random.default_rng(0)) == questions(fresh(scene), np.random.default_rng(0))


@pytest.mark.parametrize("act", ["look", "change", "change and look"])
def test_a_finalizer_during_the_first_snapshot(act):
    """A scene without a snapshot has no older one to return."""
    old = gc.get_threshold()
    looked = 0
    for allocations in range(1, 30):
        scene = pycct.Scene()
        crates = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body="kinematic") for k in range(20)]
        for k in range(20):
            scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 20, 0))
        seen, done = [], []

        def meddle(scene=scene, crates=crates, seen=seen, done=done):
            if "change" in act:
                crates[7].move_to((7, 9, 0))
                scene.add(pycct.Box((0.4, 0.4, 0.4)), (7, 30, 0))
            if "look" in act:
                seen.append(scene.raycast((3, 20, 5), DOWN, 9))
            done.append(1)

        gc.collect()
        Meddler(meddle)
        gc.set_threshold(allocations)
        try:
            hit = scene.raycast((3, 0, 5), DOWN, 9)
        finally:
            gc.set_threshold(*old)
        gc.collect()
        assert done and hit.actor is crates[3] and all(h is not None for h in seen)
        looked += len(seen)
        moved = "change" in act
        assert (scene.raycast((7, 9, 5), DOWN, 9) is not None) == moved
        assert (scene.raycast((7, 0, 5), DOWN, 9) is None) == moved
        assert (scene.raycast((7, 30, 5), DOWN, 9) is not None) == moved
        assert questions(scene, np.random.default_rng(0)) == questions(fresh(scene), np.random.default_rng(0))
    assert looked == (29 if "look" in act else 0)


CHANGES = {
    "add": lambda scene, a: scene.add(pycct.Box((0.4, 0.4, 0.4)), (7, 9, 0)),
    "add an obstacle": lambda scene, a: scene.add_obstacle(pycct.Box((0.4, 0.4, 0.4)), (7, 9, 0)),
    "remove": lambda scene, a: scene.remove(a),
    "move": lambda scene, a: a.move_to((7, 9, 0)),
    "hide": lambda scene, a: setattr(a, "layer", 0x100),
    "move many": lambda scene, a: scene.move_actors([a.id, a.id + 1], [(7, 9, 0), (8, 9, 0)]),
    "edit": lambda scene, a: edit_and_move(scene, a),
}


def edit_and_move(scene, actor):
    with scene.edit():
        actor.move_to((7, 9, 0))
        scene.raycast((0, 0, 5), DOWN, 9)


@pytest.mark.parametrize("body", ["static", "kinematic"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_finalizer_that_queries_during_a_change_hides_nothing(change, body):
    """A query may publish half of a change; the change is counted at its end."""
    old = gc.get_threshold()
    for allocations in range(1, 20):
        scene = pycct.Scene()
        crates = [scene.add(pycct.Box((0.4, 0.4, 0.4)), (k, 0, 0), body=body) for k in range(20)]
        scene.raycast((0, 0, 5), DOWN, 9)
        looks = []
        gc.collect()
        Meddler(lambda scene=scene, looks=looks: looks.append(scene.raycast((7, 9, 5), DOWN, 9, mask=0xFF)))
        gc.set_threshold(allocations)
        try:
            CHANGES[change](scene, crates[7])
        finally:
            gc.set_threshold(*old)
        gc.collect()
        assert len(looks) == 1
        there, here = scene.raycast((7, 9, 5), DOWN, 9, mask=0xFF), scene.raycast((7, 0, 5), DOWN, 9, mask=0xFF)
        assert (there is None) == (change in ("remove", "hide", "add an obstacle"))
        assert (here is None) == (change not in ("add", "add an obstacle"))
        hero = pycct.CharacterController(scene, (7, 9, 3))
        hero.move((0, 0, -9), 1 / 60)
        assert (hero.position[2] < -4) == (change in ("remove", "hide"))


def test_every_change_is_counted_once():
    """The timestamp counts changes of static actors, for caches; the next query sees any change."""
    scene = pycct.Scene()
    box = pycct.Box((0.4, 0.4, 0.4))
    fixed, lift = scene.add(box), scene.add(box, (5, 0, 0), body="kinematic")
    spot = scene.add_obstacle(box, (9, 0, 0))
    for steps, act in (
        (1, lambda: fixed.move_to((0, 0, 1))),
        (1, lambda: setattr(fixed, "layer", 3)),
        (0, lambda: lift.move_to((5, 0, 1))),
        (0, lambda: setattr(lift, "layer", 3)),
        (0, lambda: spot.move_to((9, 0, 1))),
        (0, lambda: scene.raycast((0, 0, 5), DOWN, 9)),
        (1, lambda: scene.add(box, (20, 0, 0))),
        (0, lambda: scene.add(box, (25, 0, 0), body="dynamic")),
        (1, lambda: scene.remove(scene.actors[2])),
        (0, lambda: scene.remove(lift)),
        (0, lambda: scene.remove(spot)),
        (1, lambda: scene.move_actors([fixed.id], [(0, 0, 2)])),
        (1, lambda: edit_and_move(scene, fixed)),
    ):
        before = scene.timestamp
        act()
        assert scene.timestamp - before == steps
        assert questions_or_none(scene) == questions_or_none(fresh(scene))
    assert scene.raycast((7, 9, 5), DOWN, 9).actor is fixed


def questions_or_none(scene):
    start = np.column_stack([np.linspace(-1, 26, 55), np.zeros(55), np.full(55, 9.0)])
    found = scene.raycast_many(start, DOWN, 20.0)
    return found.hit.tolist(), found.distance.tolist(), found.actor.tolist()


def test_motion_far_away_keeps_caches_valid():
    """Only the changed layer is published: cached candidates among static actors remain valid."""
    scene = pycct.Scene()
    n = 12
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    at = np.stack([x, y, np.zeros_like(x)], -1).reshape(-1, 3)
    corner = (x * n + y)[:-1, :-1].ravel()
    ground = scene.add(pycct.Mesh(at, np.concatenate([np.stack([corner, corner + n, corner + n + 1], -1),
                                                      np.stack([corner, corner + n + 1, corner + 1], -1)])))
    lift = scene.add(pycct.Box((0.4, 0.4, 0.4)), (200, 0, 0), body="kinematic")
    hero = pycct.CharacterController(scene, (5, 5, 0.91))
    for _ in range(3):
        hero.move((0, 0, -0.01), 1 / 60)
    for k in range(5):
        lift.move_to((200 + k, 0, 0))
        scene.raycast((0, 0, 5), DOWN, 9)
        hero.move((0, 0, -0.01), 1 / 60)
        assert hero.stats.timestamp == scene.timestamp
        assert hero.stats.full_updates == 0
        assert scene.raycast((200 + k, 0, 5), DOWN, 9).actor is lift
    ground.move_to((0, 0, 0))
    hero.move((0, 0, -0.01), 1 / 60)
    assert hero.stats.full_updates == 1


def wait_for(scene, seconds=20):
    """Return whether another thread can change the scene."""
    done = threading.Event()

    def change():
        scene.add(pycct.Box((1, 1, 1)), (50, 0, 0))
        done.set()

    threading.Thread(target=change, daemon=True).start()
    return done.wait(seconds)


def test_an_edit_that_is_never_entered_locks_nothing():
    scene = pycct.Scene()
    edit = scene.edit()
    assert wait_for(scene)
    del edit
    assert wait_for(scene)


def test_an_edit_that_is_forgotten_ends():
    scene = pycct.Scene()
    before = scene.timestamp
    edit = scene.edit()
    edit.__enter__()
    edit.__enter__()
    scene.add(pycct.Box((1, 1, 1)))
    assert scene.raycast((0, 0, 5), DOWN, 9) is None
    del edit
    gc.collect()
    assert scene.raycast((0, 0, 5), DOWN, 9) is not None and scene.timestamp == before + 1
    assert wait_for(scene)

    def generator():
        with scene.edit():
            yield scene.add(pycct.Box((1, 1, 1)), (20, 0, 0))

    g = generator()
    next(g)
    del g
    gc.collect()
    assert wait_for(scene) and scene.raycast((20, 0, 5), DOWN, 9) is not None


def test_an_edit_of_a_thread_that_has_ended_ends_with_its_last_reference():
    scene = pycct.Scene()
    left = []

    def begin(kept):
        edit = scene.edit()
        edit.__enter__()
        scene.add(pycct.Box((1, 1, 1)))
        kept += [edit, kept]    # a cycle: the collector's thread ends it

    thread = threading.Thread(target=begin, args=(left,))
    thread.start()
    thread.join()
    assert scene.raycast((0, 0, 5), DOWN, 9) is None
    del left, thread
    gc.collect()
    assert wait_for(scene) and scene.raycast((0, 0, 5), DOWN, 9) is not None


def test_an_inner_edit_survives_a_forgotten_outer_one():
    scene = pycct.Scene()
    outer = scene.edit()
    outer.__enter__()
    with scene.edit():
        scene.add(pycct.Box((1, 1, 1)))
        del outer
        gc.collect()
        assert scene.raycast((0, 0, 5), DOWN, 9) is None
        assert not wait_for(scene, 0.2)
    assert scene.raycast((0, 0, 5), DOWN, 9) is not None
    assert wait_for(scene)


def test_an_edit_cannot_be_ended_by_another_thread():
    scene = pycct.Scene()
    edit = scene.edit()
    edit.__enter__()
    scene.add(pycct.Box((1, 1, 1)))
    caught = []

    def end():
        try:
            edit.__exit__(None, None, None)
        except RuntimeError as problem:
            caught.append(problem)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert len(caught) == 1 and scene.raycast((0, 0, 5), DOWN, 9) is None
    edit.__exit__(None, None, None)
    assert scene.raycast((0, 0, 5), DOWN, 9) is not None and wait_for(scene)


def test_scenes_are_collected_in_cycles():
    import weakref

    for _ in range(3):
        scene = pycct.Scene()
        actor = scene.add(pycct.Box((1, 1, 1)), body="kinematic")
        actor.user_data = [scene, actor, scene.edit()]
        hero = pycct.CharacterController(scene, position=(0, 0, 3), user_data=actor)
        hero.move((0, 0, -0.1), 1 / 60)
        gone = weakref.ref(scene)
        del scene, actor, hero
        gc.collect()
        assert gone() is None
