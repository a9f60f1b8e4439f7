"""Every public call with any argument works or raises an intended error, and never crashes.

One call at a time with arguments by hypothesis, then random programs whose callbacks go on calling.
A seed of a program that failed is kept in `KEPT`.
"""

import contextlib
import copy
import faulthandler
import inspect
import math
import pickle
import random
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pycct
from pycct import kernels, toolbox

# What a call may raise. KeyError: an id of nothing; ImportError: no trimesh. ZeroDivisionError
# would be a mistake, say.
MEANT = (ValueError, TypeError, RuntimeError, KeyError, OverflowError, AttributeError, OSError)
MEANT += (MemoryError, ImportError)
# A call or program takes no longer, seconds: else the process ends and tells where it was.
HANG = 300

BOX = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
TERRAIN = [(i, j, (i * j) % 3 / 4) for i in range(4) for j in range(4)]
FACES = [f for i in range(3) for j in range(3) for a in [4 * i + j] for f in [(a, a + 4, a + 5), (a, a + 5, a + 1)]]
TURNS = [(0, 0, 0, 1), (0.5, 0.5, 0.5, 0.5), (0, 0, 0.6, 0.8)]


def junk():
    """What is no argument of anything, made anew each time."""
    return [
        None,
        True,
        "",
        "abc",
        "\0",
        b"",
        b"\x00" * 40,
        (),
        [],
        {},
        {1, 2, 3},
        object(),
        type,
        len,
        1j,
        math.nan,
        math.inf,
        -math.inf,
        -1,
        0,
        2**31,
        2**32,
        2**63,
        -(2**63),
        10**400,
        5e-324,
        -0.0,
        1e-160,
        1e12,
        -1e12,
        1e154,
        1e308,
        (math.nan, 0, 0),
        (0, 0, math.inf),
        (1e308, 1e308, 1e308),
        (1e12, -1e12, 1e12),
        (5e-324, 0, 0),
        (1e-200, 1e-200, -1e-200),
        (0, 0, 0),
        (1, 2),
        (1, 2, 3, 4),
        [1, "2", 3],
        [[1, 2, 3]],
        range(3),
        iter((1.0, 2.0, 3.0)),
        np.zeros(3),
        np.zeros(3, np.float32),
        np.zeros(3, complex),
        np.zeros(3, object),
        np.zeros(6)[::2],
        np.zeros(6)[::-2],
        np.zeros((0, 3)),
        np.zeros((4, 3)),
        np.zeros((3, 4)).T,
        np.full((4, 3), np.nan),
        np.full((4, 3), 1e308),
        np.zeros((4, 4)),
        np.array("x"),
        np.array(1.0),
        np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
        memoryview(b"abcdefgh"),
        bytearray(24),
        Odd(),
        Recursive(),
        Lying(3),
        *own_things(),
    ]


class Odd:
    """An object whose every method fails."""

    def __float__(self):
        raise Boom

    __len__ = __iter__ = __index__ = __bool__ = __float__

    def __getitem__(self, i):
        raise Boom


class Recursive(list):
    """A list with itself in it."""

    def __init__(self):
        super().__init__()
        self.extend([self, 1.0, 2.0])


class Lying(list):
    """A list that is not as long as it says."""

    def __init__(self, n):
        super().__init__([1.0] * 3)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.clear()
        return 1.0


class Boom(Exception):
    """What our own callbacks raise."""


def own_things():
    """Objects of the package, some of them unfinished or already gone."""
    scene = pycct.Scene()
    floor = scene.add(pycct.Plane((0, 0, 1)))
    gone = scene.add(pycct.Sphere(1))
    scene.remove(gone)
    hero = pycct.CharacterController(scene, (0, 0, 1))
    hero.move((0.1, 0, -0.5), 1 / 60)
    removed = pycct.CharacterController(scene)
    removed.remove()
    world = pycct.CubeWorld()
    world.add((0, 0, 0))
    kinds = (pycct.Box, pycct.Mesh, pycct.Actor, pycct.CharacterController, pycct.SweepSlideController)
    return [scene, floor, gone, hero, removed, world, hero.save(), *(k.__new__(k) for k in kinds)]


def good(name, pool):
    """Arguments that a parameter of that name takes."""
    rng = pool.rng

    def vector(size=3.0):
        return tuple(rng.uniform(-size, size) for _ in range(3))

    if name.endswith("s") and name[:-1] in ("position", "origin", "direction", "displacement", "wish_velocitie"):
        return [vector() for _ in range(4)]
    if name in ("filter", "on_hit", "behavior") and rng.random() < 0.8:
        return pool.callback
    if name in ("shape", "a", "b", "capsule"):
        return rng.choice(pool.shapes)
    values = {
        "scene": lambda: rng.choice(pool.scenes),
        "actor": lambda: rng.choice(pool.actors),
        "controllers": lambda: rng.sample(pool.heroes, 2),
        "runners": lambda: pool.runners,
        "wish_velocities": lambda: [vector() for _ in pool.runners],
        "world": lambda: pool.cubes,
        "other": lambda: rng.choice(pool.heroes),
        "ids": lambda: [a.id for a in rng.sample(pool.actors, 2)],
        "id": lambda: rng.choice([0, 1, 2, 3, 99]),
        "rotation": lambda: rng.choice(TURNS),
        "rotations": lambda: rng.choice(TURNS),
        "poses_a": lambda: None,
        "poses_b": lambda: None,
        "pose_a": lambda: (vector(), rng.choice(TURNS)),
        "pose_b": lambda: (vector(), rng.choice(TURNS)),
        "pose_capsule": lambda: (vector(), rng.choice(TURNS)),
        "shapes": lambda: rng.sample(pool.shapes, 2),
        "poses": lambda: [None, None],
        "scale": lambda: rng.choice([(1, 1, 1), (2, 2, 2), (-1, 1, 1), (0.5, 2, 1)]),
        "half_extents": lambda: rng.choice([(1, 1, 1), (0.1, 2, 3)]),
        "points": lambda: BOX,
        "vertices": lambda: TERRAIN,
        "triangles": lambda: FACES,
        "heights": lambda: [[0.1, 0.2, 0], [0.2, 0.3, 0.1], [0, 0, 0.5]],
        "spacing": lambda: (1, 1),
        "body": lambda: rng.choice(["static", "kinematic", "dynamic"]),
        "include": lambda: rng.choice(["actors", "characters", "all"]),
        "rules": lambda: rng.choice(["physx", "document", "robust"]),
        "climbing_mode": lambda: rng.choice(["easy", "constrained"]),
        "non_walkable_mode": lambda: rng.choice(["prevent_climbing", "force_sliding"]),
        "mask": lambda: rng.choice([0xFFFFFFFF, 1, 2, None]),
        "layer": lambda: rng.choice([1, 2, 3]),
        "surface": lambda: pycct.Behavior.CAN_RIDE,
        "data": lambda: rng.choice(pool.heroes).save(),
        "dt": lambda: 1 / 60,
        "up": lambda: rng.choice([(0, 0, 1), (0, 1, 0), (1, 1, 1)]),
        "normal": lambda: rng.choice([(0, 0, 1), (0.6, 0, 0.8)]),
        "direction": lambda: rng.choice([(0, 0, -1), (1, 0, 0), (1, 1, -1)]),
        "position": lambda: vector(),
        "displacement": lambda: vector(rng.choice([0.1, 1, 30])),
        "cell": lambda: (rng.randrange(3), 0, 1),
        "cells": lambda: [(0, 0, 0), (1, 0, 0)],
        "occupancy": lambda: np.ones((2, 2, 2), bool),
        "threads": lambda: rng.choice([1, 2, 8]),
        "slope_limit": lambda: 0.707,
        "path": lambda: "no-such-file.obj",
        "file": lambda: None,
        "capacity": lambda: 16,
    }
    if name in values:
        return values[name]()
    flags = ("collide", "overlap_recovery", "prevent_vertical_sliding", "two_sided", "jump", "standing_on_moving")
    if name in flags:
        return rng.random() < 0.5
    return rng.choice([0.0, 0.25, 1.0, vector()])


class Pool:
    """Objects that calls are made on, and callbacks that make calls."""

    def __init__(self, rng):
        self.rng = rng
        self.depth = 0
        mesh = pycct.Mesh(TERRAIN, FACES, triangle_data=list(range(18)))
        hull = pycct.ConvexHull(BOX)
        self.shapes = [
            mesh,
            hull,
            hull.scaled((0.5, 1, 0.25)),
            pycct.Box((1, 1, 0.5)),
            pycct.Sphere(0.7),
            pycct.Capsule(0.3, 0.8),
            pycct.Triangle((0, 0, 0), (2, 0, 0), (0, 2, 0)),
            pycct.Heightfield([[0.1, 0.2, 0], [0.2, 0.3, 0.1], [0, 0, 0.5]]),
            pycct.Plane((0, 0, 1)),
        ]
        self.scenes = [pycct.Scene(), pycct.Scene()]
        s = self.scenes[0]
        self.actors = [s.add(pycct.Plane((0, 0, 1))), s.add(mesh, (-2, -2, 0)), s.add(self.shapes[3], body="kinematic")]
        self.actors += [s.add(hull, (3, 0, 0)), s.add_obstacle(self.shapes[5], (0, 3, 1))]
        self.heroes = [pycct.CharacterController(s, (k, 0, 2), collide=k != 1) for k in range(4)]
        self.heroes.append(pycct.CharacterController(self.scenes[1]))
        self.cubes = pycct.CubeWorld()
        self.cubes.add_many([(x, 0, z) for x in range(5) for z in range(5)])
        self.runners = [
            pycct.SweepSlideController(self.cubes, (2, 1, 2)),
            pycct.SweepSlideController(self.cubes, (3, 1, 3)),
        ]
        self.found = []
        if hasattr(pycct, "Crowd"):
            self.crowds = [pycct.Crowd(s, [(k, 1, 2) for k in range(5)], radius=0.3, height=0.5)]
        else:
            self.crowds = []

    def callback(self, *what):
        """A callback that calls something, reads its argument, and returns anything."""
        rng = self.rng
        self.found += what
        if self.depth < 3 and rng.random() < 0.7:
            self.step()
        if rng.random() < 0.05:
            raise Boom
        return rng.choice([True, True, True, False, None, 0, 1, pycct.Behavior.CAN_RIDE, "x", -1, 1 << 40])

    def targets(self):
        return [
            *self.scenes,
            *self.actors,
            *self.heroes,
            *self.runners,
            *self.crowds,
            *self.shapes,
            self.cubes,
            pycct,
            pycct,
        ]

    def value(self, name):
        if self.rng.random() < 0.15:
            return self.rng.choice(junk())
        return good(name, self)

    def arguments(self, call):
        """Positional and named arguments of a call, by the names of its parameters."""
        rng = self.rng
        args, named = [], {}
        for p in parameters(call):
            if p.kind is p.VAR_KEYWORD:
                if rng.random() < 0.3:
                    named["include"] = self.value("include")
            elif p.kind is p.VAR_POSITIONAL:
                continue
            elif p.default is not p.empty and rng.random() < 0.6:
                if p.kind is not p.KEYWORD_ONLY:
                    break
            elif p.kind is p.KEYWORD_ONLY:
                named[p.name] = self.value(p.name)
            else:
                args.append(self.value(p.name))
        return args, named

    def step(self):
        """One call, attribute, copy or assignment; errors that are meant are nothing."""
        rng = self.rng
        self.depth += 1
        try:
            thing = rng.choice(self.found) if self.found and rng.random() < 0.2 else rng.choice(self.targets())
            names = public(thing)
            what = rng.random()
            if what < 0.06:
                rng.choice([copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), repr, hash])(thing)
                return
            if not names:
                return
            name = rng.choice(names)
            attribute = getattr(thing, name)
            if callable(attribute):
                if name == "edit":
                    with attribute():
                        self.step()
                    return
                args, named = self.arguments(attribute)
                self.keep(attribute(*args, **named))
            elif thing is not pycct and what < 0.5:
                setattr(thing, name, self.value(name))
        except (*MEANT, Boom):
            pass
        except IndexError as e:
            assert "index must be" in str(e)
        finally:
            self.depth -= 1

    def keep(self, result):
        """Go on with what a call gave."""
        for one in result if isinstance(result, list | tuple) else [result]:
            if isinstance(one, pycct.CharacterController):
                self.heroes.append(one)
            elif isinstance(one, pycct.Actor):
                self.actors.append(one)
            elif isinstance(one, pycct.Shape):
                self.shapes.append(one)
            elif type(one).__module__.startswith("pycct"):
                self.found.append(one)
        # Old ones go, so that use after their end is met too.
        for line, longest in ((self.heroes, 9), (self.actors, 20), (self.shapes, 20), (self.found, 30)):
            del line[: max(0, len(line) - longest)]

    def healthy(self):
        """The process has kept its senses: known answers are still right."""
        for h in self.heroes:
            try:
                assert all(math.isfinite(x) and abs(x) <= 1.1e12 for x in h.position), h.position
            except RuntimeError:
                assert h.scene is None
        scene = pycct.Scene()
        scene.add(pycct.Plane((0, 0, 1)))
        hero = pycct.CharacterController(scene, (0, 0, 1), radius=0.25, height=0.5, contact_offset=0.125)
        hero.move((0, 0, -3), 1 / 64)
        assert hero.position == (0, 0, 0.625)


# Not of the package's own making, or made for tests of its own.
SKIP = {"register", "mro"}


def public(thing):
    if thing is pycct:
        return [n for n in pycct.__all__ if callable(getattr(pycct, n))]
    if not type(thing).__module__.startswith("pycct"):
        return []
    return [n for n in dir(type(thing)) if not n.startswith("_") and n not in SKIP]


NO_ARGUMENTS = ()


def parameters(call):
    """Of a class: those of its constructor, which its documentation lists."""
    if inspect.isclass(call):
        if call.__doc__ and call.__name__ in CONSTRUCTORS:
            names = CONSTRUCTORS[call.__name__]
            kind = inspect.Parameter
            return [
                kind(n, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if k < 2 else None) for k, n in enumerate(names)
            ]
    try:
        return list(inspect.signature(call).parameters.values())
    except (ValueError, TypeError):
        return NO_ARGUMENTS


CONSTRUCTORS = {
    "Box": ["half_extents"],
    "Sphere": ["radius"],
    "Capsule": ["radius", "height"],
    "ConvexHull": ["points"],
    "Plane": ["normal", "offset"],
    "Triangle": ["vertices", "vertices", "vertices"],
    "Mesh": ["vertices", "triangles", "two_sided", "triangle_data", "triangle_mask"],
    "Heightfield": ["heights", "spacing", "diagonal", "holes"],
    "Scene": [],
    "CubeWorld": [],
    "CharacterController": [
        *(
            "scene",
            "position",
            "radius",
            "height",
            "up",
            "step_offset",
            "contact_offset",
            "slope_limit",
            "climbing_mode",
        ),
        *("non_walkable_mode", "rules", "overlap_recovery", "prevent_vertical_sliding", "invisible_wall_height"),
        *("max_jump_height", "layer", "mask", "collide", "on_hit", "behavior", "filter", "surface", "user_data"),
    ],
    "Crowd": ["scene", "positions", "radius", "height"],
    "SweepSlideController": ["world", "feet", "radius", "half_height"],
    "ContactManifold": ["normal"],
    "Actor": [],
    "Obstacle": [],
    "Shape": [],
}


@pytest.fixture(autouse=True)
def watched(tmp_path, monkeypatch):
    """Files, if any, go to a folder of their own; warnings are not what is tested."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    faulthandler.cancel_dump_traceback_later()


def calls():
    """Every public function, class and method, and every attribute that can be set, by name."""
    pool = Pool(random.Random(0))
    found = {}
    for module in (pycct, kernels, toolbox):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not (inspect.isclass(value) and issubclass(value, (tuple, int, str))):
                found[f"{module.__name__}.{name}"] = None
    for thing in pool.targets():
        if thing is not pycct:
            for name in public(thing):
                found[f"{type(thing).__name__}.{name}"] = None
    return sorted(found)


def one_call(name, rng, how_bad):
    """Make that call; each argument is junk with that probability."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    pool = Pool(rng)
    plain = pool.value
    pool.value = lambda parameter: rng.choice(junk()) if rng.random() < how_bad else plain(parameter)
    owner, attribute = name.rsplit(".", 1)
    if owner.startswith("pycct"):
        thing = {"pycct": pycct, "pycct.kernels": kernels, "pycct.toolbox": toolbox}[owner]
    else:
        thing = rng.choice([t for t in pool.targets() if type(t).__name__ == owner])
    try:
        value = getattr(thing, attribute)
        if callable(value):
            args, named = pool.arguments(value)
            value(*args, **named)
        else:
            setattr(thing, attribute, pool.value(attribute))
            getattr(thing, attribute)
    except MEANT as e:
        assert type(e) is not SystemError
        assert str(e) or isinstance(e, MemoryError | OSError), f"{e!r} says nothing"
    except IndexError as e:
        assert "index must be" in str(e)
    except Boom:
        pass
    pool.healthy()


@pytest.mark.parametrize("name", calls())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32 - 1), how_bad=st.sampled_from([0.0, 0.3, 1.0]))
def test_one_call(name, seed, how_bad):
    one_call(name, random.Random(seed), how_bad)


@pytest.mark.slow
@pytest.mark.parametrize("name", calls())
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32 - 1), how_bad=st.sampled_from([0.0, 0.3, 1.0]))
def test_one_call_many_times(name, seed, how_bad):
    one_call(name, random.Random(seed), how_bad)


def one_bad_argument(name, bad_values):
    """Make that call with each argument in turn replaced by bad values, and all others good."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    pool = Pool(random.Random(0))
    owner, attribute = name.rsplit(".", 1)
    if owner.startswith("pycct"):
        thing = {"pycct": pycct, "pycct.kernels": kernels, "pycct.toolbox": toolbox}[owner]
    else:
        thing = next(t for t in pool.targets() if type(t).__name__ == owner)
    if not callable(getattr(thing, attribute)):
        return
    kind = inspect.Parameter
    taken = [p for p in parameters(getattr(thing, attribute)) if p.kind not in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]
    for bad in taken:
        for value in bad_values:
            # Another argument that fails first would hide it: the optional ones come and go.
            for chance in (0.0, 0.0, 0.2, 0.5):
                args, named = [], {}
                for p in taken:
                    if p is bad or p.default is p.empty or pool.rng.random() < chance:
                        given = value if p is bad else good(p.name, pool)
                        if p.kind is kind.POSITIONAL_ONLY:
                            args.append(given)
                        else:
                            named[p.name] = given
                with contextlib.suppress(*MEANT, Boom, IndexError):
                    getattr(thing, attribute)(*args, **named)
    pool.healthy()


@pytest.mark.parametrize("name", calls())
def test_none_for_each_argument(name):
    one_bad_argument(name, [None])


@pytest.mark.slow
@pytest.mark.parametrize("name", calls())
def test_junk_for_each_argument(name):
    one_bad_argument(name, junk())


def program(seed, steps):
    faulthandler.dump_traceback_later(HANG, exit=True)
    pool = Pool(random.Random(seed))
    for h in pool.heroes:
        h.on_hit = h.filter = h.behavior = pool.callback
    for _ in range(steps):
        pool.step()
    pool.healthy()


# Seeds of programs that once failed.
KEPT = [17188108]


@pytest.mark.parametrize("seed", KEPT)
def test_programs_that_failed_once(seed):
    program(seed, 60)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_programs(seed):
    program(seed, 60)


@pytest.mark.slow
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_many_programs(seed):
    program(seed, 60)


def test_recursion_through_callbacks():
    """A callback that moves another character whose callback moves the first, and so on."""
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    heroes = [pycct.CharacterController(scene, (3 * k, 0, 1)) for k in range(3)]

    def around(hit):
        for h in heroes:
            h.move((0, 0, -1), 1 / 60)

    for h in heroes:
        h.on_hit = around
    with pytest.raises(RuntimeError, match="in use"):
        heroes[0].move((0, 0, -1), 1 / 60)
    assert [h.position for h in heroes] == [(3.0 * k, 0, 1) for k in range(3)]

    def deeper(other):
        fresh = pycct.CharacterController(scene, (0, 0, 1), filter=deeper)
        return fresh.move((0, 0, -1), 1 / 60) != 0

    with pytest.raises(RecursionError):
        pycct.CharacterController(scene, (0, 0, 1), filter=deeper).move((0, 0, -1), 1 / 60)
    heroes[0].on_hit = None
    assert heroes[0].move((0, 0, -1), 1 / 60) == pycct.CollisionFlags.DOWN
