"""Threads that move while others change the scene, forks, and memory."""

import gc
import math
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import memory
import numpy as np
import pytest
from memory import needs_proc, resident

import pycct
from pycct import Behavior, Box, Capsule, CharacterController, ConvexHull, Heightfield, Plane, Scene, Sphere

ROOT = Path(pycct.__file__).parent.parent
DT = 1 / 60
HALF = 12.0
WITHOUT_GIL = pycct.show_config(file=None)["gil"] == "off"


def arena():
    """A closed room: a floor of hills, walls and a lid; and a few lifts."""
    rng = np.random.default_rng(4)
    scene = Scene()
    n = 25
    scene.add(Heightfield(rng.normal(size=(n, n)) * 0.15, (2 * HALF / (n - 1),) * 2), position=(-HALF, -HALF, 0))
    scene.add(Plane((0, 0, 1)), position=(0, 0, -2))
    scene.add(Plane((0, 0, -1)), position=(0, 0, 8))
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        half = (0.5 if x else HALF + 1, 0.5 if y else HALF + 1, 6)
        scene.add(Box(half), position=(x * (HALF + 0.5), y * (HALF + 0.5), 2))
    for k in range(6):
        scene.add(Box((0.8, 0.8, 0.1)), position=(-9 + 3.5 * k, 4, 0.5), body="kinematic", behavior=Behavior.CAN_RIDE)
    return scene


def inside(position):
    x, y, z = position
    return math.isfinite(x + y + z) and max(abs(x), abs(y)) < HALF + 0.01 and -2 < z < 8


class Load:
    """Jobs that run until a stop event, or for a number of rounds; it keeps their errors."""

    def __init__(self, scene):
        self.scene = scene
        self.wrong = []
        self.moves = 0
        self.changes = 0
        self.counting = threading.Lock()
        self.stop = threading.Event()

    def check(self, good, *what):
        if not good:
            self.wrong.append(what)

    def count(self, moves=0, changes=0):
        with self.counting:
            self.moves += moves
            self.changes += changes

    def walker(self, seed):
        """Move controllers, some against those of other threads; remove and add some."""
        rng = random.Random(seed)

        def hero():
            return CharacterController(
                self.scene,
                (rng.uniform(-8, 8), rng.uniform(-8, 8), 4),
                radius=rng.uniform(0.2, 0.5),
                height=rng.uniform(0, 1.2),
                step_offset=0.3,
                collide=rng.random() < 0.5,
                rules=rng.choice(["physx", "robust", "document"]),
                on_hit=(lambda hit: hit.other) if rng.random() < 0.3 else None,
                filter=(lambda other: True) if rng.random() < 0.3 else None,
            )

        heroes = [hero() for _ in range(6)]

        def step(k):
            for h in heroes:
                a = rng.uniform(0, 7)
                h.move((0.12 * math.cos(a), 0.12 * math.sin(a), 0.2 if rng.random() < 0.02 else -0.08), DT)
                self.check(inside(h.position), "outside", h.position)
                if rng.random() < 0.05:
                    self.check(len(h.hits) < 200, "hits")
                    h.probe_ground(1.0)
                    h.restore(h.save())
            if k % 40 == 39:
                heroes[rng.randrange(6)].remove()
                heroes[:] = [h if h in self.scene.characters else hero() for h in heroes]
            self.count(moves=6)

        return step

    def crowd(self, seed):
        """Moves a crowd of its own, in two threads."""
        rng = np.random.default_rng(seed)
        places = np.column_stack([rng.uniform(-8, 8, (40, 2)), np.full(40, 4.0)])
        crowd = pycct.Crowd(self.scene, places, radius=0.3, height=0.8, step_offset=0.3, collide=True)

        def step(k):
            d = np.column_stack([rng.normal(size=(40, 2)) * 0.1, np.full(40, -0.08)])
            crowd.move(d, DT, threads=2)
            self.check(all(map(inside, crowd.positions.tolist())), "crowd outside")
            self.count(moves=40)

        return step

    def changer(self, seed):
        """Adds, moves and removes actors and obstacles."""
        rng = random.Random(seed)
        hull = ConvexHull(np.random.default_rng(1).normal(size=(12, 3)) * 0.5)
        shapes = [Box((0.4, 0.3, 0.5)), Sphere(0.5), Capsule(0.3, 0.6), hull]
        mine = []

        def step(k):
            what = rng.random()
            place = (rng.uniform(-9, 9), rng.uniform(-9, 9), rng.uniform(0, 1))
            if len(mine) < 20 or what < 0.1:
                if rng.random() < 0.2:
                    mine.append(self.scene.add_obstacle(shapes[0], place))
                else:
                    body = rng.choice(["static", "kinematic", "kinematic", "dynamic"])
                    mine.append(self.scene.add(rng.choice(shapes), place, body=body))
            elif what < 0.2:
                self.scene.remove(mine.pop(rng.randrange(len(mine))))
            elif what < 0.3:
                with self.scene.edit():
                    for actor in mine[:5]:
                        actor.move_to(place)
            elif what < 0.4:
                some = rng.sample(mine, 4)
                self.scene.move_actors([a.id for a in some], [(rng.uniform(-9, 9), rng.uniform(-9, 9), 0.5)] * 4)
            else:
                actor = rng.choice(mine)
                actor.move_to(place, (0, 0, 0, 1))
                actor.layer = 1 + 2 * (k & 1)
            self.count(changes=1)

        return step

    def asker(self, seed):
        """Query the scene, characters included."""
        rng = random.Random(seed)
        ball = Sphere(0.4)

        def step(k):
            at = (rng.uniform(-9, 9), rng.uniform(-9, 9), 5)
            hit = self.scene.raycast(at, (0, 0, -1), 20, include="all")
            self.check(hit is not None and hit.position[2] >= -2.001, "no floor")
            self.scene.overlap_many(ball, [at, (0, 0, 0)], include="all")
            self.scene.sweep(ball, at, (0, 0, -1), 20)
            list(self.scene.actors), self.scene.characters

        return step

    def run(self, jobs, rounds=None, seconds=None):
        def work(job):
            k = 0
            try:
                while not self.stop.is_set() and (rounds is None or k < rounds):
                    job(k)
                    k += 1
            except BaseException as e:
                self.wrong.append(repr(e))
                self.stop.set()

        crew = [threading.Thread(target=work, args=(job,)) for job in jobs]
        for t in crew:
            t.start()
        if seconds is not None:
            self.stop.wait(seconds)
            self.stop.set()
        for t in crew:
            t.join()
        return self


def under_load(**how):
    load = Load(arena())
    crowds = [load.crowd(90 + i) for i in range(2)] if hasattr(pycct, "Crowd") else []
    load.run(
        [load.walker(i) for i in range(8)] + crowds + [load.changer(50), load.changer(51), load.asker(70)],
        **how,
    )
    assert load.wrong == []
    return load


def test_threads_move_while_others_change_the_world():
    load = under_load(rounds=1000)
    assert load.moves >= 8 * 6 * 1000 and load.changes == 2000


@pytest.mark.slow
def test_threads_move_while_others_change_the_world_for_a_minute():
    load = under_load(seconds=60)
    print(f"{load.moves} moves, {load.changes} changes")
    assert load.moves > 10_000 and load.changes > 1000


def test_a_shared_controller_raises_and_is_never_torn():
    """The second thread gets RuntimeError and changes nothing; every completed move counts."""
    scene = Scene()
    hero = CharacterController(scene, position=(0, 0, 0))
    done = []
    refused = []

    def work():
        for _ in range(3000):
            try:
                hero.move((0.5, 0.25, 0), DT)
                done.append(1)
            except RuntimeError as e:
                assert "in use" in str(e)
                refused.append(1)

    crew = [threading.Thread(target=work) for _ in range(4)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    assert len(done) + len(refused) == 12_000
    assert hero.position == (0.5 * len(done), 0.25 * len(done), 0)


class Meanwhile:
    """A thread that counts whenever it gets the GIL, which nobody has to give away unasked."""

    def __enter__(self):
        self.count = 0
        self.stop = False
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        while self.count == 0:
            time.sleep(0.001)
        return self

    def work(self):
        while not self.stop:
            self.count += 1
            time.sleep(0)

    def __exit__(self, *_):
        self.stop = True
        sys.setswitchinterval(self.interval)
        self.thread.join()


def dense(x, rows, side=1.0):
    """A wall of many triangles that faces -x."""
    y, z = np.meshgrid(np.linspace(-side, side, rows), np.linspace(-side, side, rows), indexing="ij")
    k = np.arange(rows * rows).reshape(rows, rows)
    a, b, c, d = k[:-1, :-1].ravel(), k[1:, :-1].ravel(), k[1:, 1:].ravel(), k[:-1, 1:].ravel()
    vertices = np.column_stack([np.full(rows * rows, x), y.ravel(), z.ravel()])
    return pycct.Mesh(vertices, np.concatenate([np.column_stack([a, c, b]), np.column_stack([a, d, c])]))


@pytest.mark.skipif(WITHOUT_GIL, reason="a build without the GIL")
def test_brief_moves_keep_the_gil():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    hero = CharacterController(scene, (0, 0, 0.91), radius=0.4, height=1.0)
    hero.move((0.001, 0, -0.001), DT)
    with Meanwhile() as others:
        for k in range(10_000):
            before = others.count
            hero.move((0.001 * (-1) ** k, 0, -0.001), DT)
            assert others.count == before


def others_layer():
    """Moves that see next to nothing and moves that see much, in turn."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(dense(0.45, 120), (0, 0, 1), layer=2)
    hero = CharacterController(scene, (0, 0, 0.91), radius=0.4, height=1.0, mask=1)

    def move():
        hero.move((-0.001, 0, -0.001), DT, mask=1)
        return lambda: hero.move((0.001, 0, -0.001), DT, mask=3)

    return move


def deep_inside():
    """Recovery looks farther around than the move did before."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(dense(1.7, 150, 2.0), (0, 0, 1))
    hero = CharacterController(scene, (0, 0, 1.01), radius=1.0, height=0.0, contact_offset=0.01, step_offset=0.0)

    def move():
        hero.teleport((0, 0, 1.01))
        hero.move((-0.001, 0, -0.001), DT)
        hero.position = (0, 0, 0.9)
        return lambda: hero.move((-0.001, 0, -0.001), DT)

    return move


def crushed():
    """The fix looks around all that moves at the end of a move."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(dense(0.78, 150), (0, 0, 1))
    scene.add(Box((0.1, 0.1, 0.1)), (0, 30, 0.1), body="kinematic")
    hero = CharacterController(scene, (0, 0, 0.91), radius=0.4, height=1.0, rules="robust")

    def move():
        hero.move((0.001, 0, -0.001), DT)
        return lambda: hero.move((-0.001, 0, -0.001), DT)

    return move


@pytest.mark.skipif(WITHOUT_GIL, reason="a build without the GIL")
@pytest.mark.parametrize("case", [others_layer, deep_inside, crushed], ids=lambda f: f.__name__)
def test_moves_that_must_look_around_give_the_gil_away(case):
    move = case()
    with Meanwhile() as others:
        for k in range(1000):
            heavy = move()
            before = others.count
            heavy()
            if others.count != before:
                break
            # The other thread must be awake before the move is over.
            time.sleep(0.001 * (k % 10))
        else:
            pytest.fail("nobody else got the GIL")


def test_a_second_thread_is_refused_while_a_callback_waits():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    inside_callback, go_on = threading.Event(), threading.Event()

    def wait(hit):
        inside_callback.set()
        go_on.wait(60)

    hero = CharacterController(scene, position=(0, 0, 1), on_hit=wait)
    mover = threading.Thread(target=hero.move, args=((0, 0, -1), DT))
    mover.start()
    assert inside_callback.wait(60)
    before = hero.position
    calls = [
        lambda: hero.move((1, 0, 0), DT),
        lambda: hero.teleport((5, 5, 5)),
        lambda: setattr(hero, "position", (5, 5, 5)),
        lambda: setattr(hero, "radius", 0.3),
        lambda: hero.resize(2.0),
        lambda: hero.restore(hero.save()),
        lambda: hero.probe_ground(1),
        lambda: hero.unstick(),
        lambda: hero.explain((1, 0, 0), DT),
        hero.remove,
        lambda: pycct.separate([hero], DT),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="in use"):
            call()
    assert hero.position == before and hero.radius == 0.4
    go_on.set()
    mover.join()
    assert hero.position[2] < before[2]
    hero.on_hit = None
    hero.move((1, 0, 0), DT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_after_use():
    """In the child scenes, controllers and threads go on working; all in a process of its own."""
    script = """
import os, sys, threading
sys.path[:0] = sys.argv[1:]
import numpy as np
import pycct
from test_load import Load, arena

load = Load(arena())
load.run([load.walker(i) for i in range(3)] + [load.changer(9), load.asker(8)], rounds=30)
crowds = []
if hasattr(pycct, "Crowd"):
    crowds = [pycct.Crowd(load.scene, [(i, 0, 4) for i in range(8)], radius=0.3, height=0.8)]
hero = pycct.CharacterController(load.scene, (0, 0, 4), collide=True)
def go_on():
    for c in crowds:
        c.move(np.full((8, 3), -0.05), 1 / 60, threads=2)
    for _ in range(20):
        hero.move((0.05, 0.02, -0.1), 1 / 60)
    return hero.position, [c.positions.tolist() for c in crowds]
for c in crowds:
    c.move(np.full((8, 3), -0.05), 1 / 60, threads=2)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    code = 1
    try:
        os.write(writer, repr(go_on()).encode())
        again = Load(load.scene)
        again.run([again.walker(i + 5) for i in range(3)] + [again.changer(19)], rounds=20)
        code = 0 if not (load.wrong or again.wrong) else 2
    finally:
        os._exit(code)
os.close(writer)
told = b""
while True:
    part = os.read(reader, 65536)
    if not part:
        break
    told += part
_, status = os.waitpid(child, 0)
assert status == 0, status
assert told.decode() == repr(go_on())
assert not load.wrong
print("alive")
"""
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent), str(Path(memory.__file__).parent)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.strip() == "alive", (done.returncode, done.stdout, done.stderr)


def make_controllers(scene, count):
    for k in range(count):
        hero = CharacterController(scene, (k % 7 - 3, 0, 1), collide=k % 2 == 0, user_data=[k])
        if k % 10 == 0:
            hero.user_data.append(hero)  # a cycle
        if k % 5 == 0:
            hero.move((0.1, 0, -1), DT)
            hero.hits, hero.ground, hero.state
        if k % 50 == 0:
            hero.add_proxy()
            hero.remove()


def make_scenes(count):
    field = Heightfield(np.zeros((4, 4)))
    for k in range(count):
        scene = Scene()
        scene.add(field, position=(0, 0, -1))
        scene.add(pycct.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, k)], [(0, 1, 2)]))
        lift = scene.add(Box((1, 1, 0.1)), body="kinematic", user_data=[scene])
        hero = CharacterController(scene, (0, 0, 2), collide=True)
        hero.add_proxy()
        hero.move((0, 0, -1.5), DT)
        lift.move_to((0, 0, 0.3))
        hero.move((0, 0, -0.1), DT)
        scene.raycast((0, 0, 9), (0, 0, -1), 20, include="all")


def flat(make, warm, count, slack):
    """Memory must not grow by more than so many bytes, once it has settled."""

    def rounds(n):
        # Without the GIL the collector comes seldom, and garbage in cycles would pile up meanwhile.
        for _ in range(n):
            make(warm)
            gc.collect()

    rounds(2)
    start = resident()
    rounds(count // warm)
    grown = resident() - start
    assert grown < slack, f"{grown / count:.1f} bytes each"


@needs_proc
@pytest.mark.parametrize(("warm", "count"), [(2_000, 20_000), pytest.param(5_000, 1_000_000, marks=pytest.mark.slow)])
def test_controllers_leave_memory_flat(warm, count):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    # 100 bytes each would be 2 MB and 100 MB.
    flat(lambda n: make_controllers(scene, n), warm, count, 1_500_000)
    assert len(scene) == 1 and scene.characters == []


@needs_proc
@pytest.mark.parametrize(("warm", "count"), [(100, 600), pytest.param(500, 10_000, marks=pytest.mark.slow)])
def test_scenes_leave_memory_flat(warm, count):
    flat(make_scenes, warm, count, 2_000_000)
