"""The plain Python reference and the compiled package agree to the last bit.

Both are given the same scenes, controllers and displacements, move by move from the
same place and each with its own memory. What is compared is everything a user can
see after a move: position, flags, velocity, hits, ground, state.
"""

import math
import pickle
import random

import goldens
import numpy as np
import pytest

import pycct
from pycct import reference
from pycct.character.response import respond, slide, slide_crease
from pycct.reference import response
from pycct.reference.values import as_unit

RECORDINGS = sorted(p for d in (goldens.OWN, goldens.THIRD_PARTY) if d.is_dir() for p in d.glob("*.json.gz"))
RECORDINGS = {p.name.removesuffix(".json.gz"): p for p in RECORDINGS if not p.name.startswith("query_")}
# One move in so many is compared when tests must be fast.
SAMPLE = 401


def plain(value):
    """The id of an actor."""
    return None if value is None else value.id


def told_of_hit(hit):
    """A hit of a move, as values."""
    who = (plain(hit.actor), plain(hit.controller), plain(hit.obstacle), hit.dynamic)
    where = (hit.triangle, hit.data, hit.position, hit.normal, hit.direction)
    return who, where, hit.length, hit.distance, hit.time, hit.region, hit.pass_


def told_of_ground(ground):
    """What is below, as values."""
    if ground is None:
        return None
    who = (plain(ground.actor), plain(ground.controller), plain(ground.obstacle))
    where = (ground.triangle, ground.data, ground.normal, ground.face_normal, ground.point)
    return who, where, ground.distance, bool(ground.walkable)


def told_of_state(state):
    """What a character remembers, as values."""
    switches = (state.on_controller, state.on_obstacle, state.moving_up, state.sliding)
    numbers = (state.overlap, state.contact_point_height, state.velocity, state.displacement, state.platform_delta)
    return plain(state.standing_on), *map(bool, switches), *numbers, state.ground_triangle


def seen(hero):
    """All that a user can see of a controller after a move, as values that compare exactly."""
    return {
        "position": hero.position,
        "flags": int(hero.flags),
        "velocity": hero.velocity,
        "foot_position": hero.foot_position,
        "hits": [told_of_hit(h) for h in hero.hits],
        "ground": told_of_ground(hero.ground),
        "state": told_of_state(hero.state),
        "recoveries": hero.stats.recoveries,
        "iterations": hero.stats.iterations,
        "fixes": int(hero.stats.fixes),
    }


def told_of_explanation(told):
    """An explanation, as values."""
    events = [(e.kind, e.pass_, e.position, e.vector, e.hit and told_of_hit(e.hit)) for e in told.events]
    return told.displacement, told.start, told.end, told.flags, events, told.notes


def differences(a, b):
    """The parts in which two pictures differ; repr tells 0.0 from -0.0."""
    return {key: (a[key], b[key]) for key in a if repr(a[key]) != repr(b[key])}


MODULES = (pycct, reference)
HAPPENINGS = ("moves", "hits", "recoveries", "experiments", "rides", "fixes", "on user geometry")


def in_both(monkeypatch, make):
    """What ``make`` gives in the compiled package and in the reference."""
    made = []
    for module in MODULES:
        monkeypatch.setattr(goldens, "pycct", module)
        made.append(make(module))
    return made


class Both:
    """One recorded scene and some of its controllers, in both."""

    def __init__(self, record, indices, monkeypatch, **extra):
        self.record = record
        self.monkeypatch = monkeypatch
        self.asked = goldens.displacements(record)
        self.scenes = in_both(monkeypatch, lambda module: goldens.scene_of(record))
        together = {"collide": True} if record["scene"].get("together") else {}
        scenes = dict(zip(MODULES, self.scenes, strict=True))
        extra |= together | goldens.behavior_of(record)
        self.heroes = {
            index: in_both(monkeypatch, lambda m, index=index: goldens.controller_of(scenes[m], record, index, **extra))
            for index in indices
        }

    def animate(self, step):
        for scene in self.scenes:
            goldens.animate(scene, self.record, step)

    def put(self, index, position):
        for hero in self.heroes[index]:
            hero.position = position

    def compare(self, index, step):
        moves = self.record["scene"]["moves"]
        want = tuple(self.asked[index, step])
        for module, hero in zip(MODULES, self.heroes[index], strict=True):
            self.monkeypatch.setattr(goldens, "pycct", module)
            hero.move(want, moves["dt"], min_distance=moves["min_dist"])
        assert not differences(*map(seen, self.heroes[index])), (index, step)


def both_play(record, every, monkeypatch, **extra):
    """Number of moves compared; each starts where the recording has it."""
    tracks = record["trajectories"]
    together = record["scene"].get("together")
    animated = "animation" in record["scene"]
    # Every trajectory starts from the shapes' own poses; those alone in a still scene may share it.
    groups = [[track] for track in tracks] if animated and not together else [tracks]
    if every > 1 and (together or animated):
        # Few steps, all of them: what carries or crowds a character is what the steps before left.
        every = 1
        groups = groups[:1]
        n_steps = 60
    else:
        n_steps = record["scene"]["moves"]["n_steps"]
    compared = counter = 0
    for group in groups:
        both = Both(record, [t["controller"] for t in group], monkeypatch, **extra)
        for step in range(n_steps):
            both.animate(step)
            for track in group:
                both.put(track["controller"], track["steps"][step]["from"])
                counter += 1
                if counter % every == 0:
                    both.compare(track["controller"], step)
                    compared += 1
    return compared


def load(name):
    record = goldens.load(RECORDINGS[name])
    if any("half_extents" in c for c in record["scene"]["controllers"]):
        pytest.skip("of box-shaped controllers")
    levels = [s["obj"] for s in record["scene"]["shapes"] if "obj" in s]
    if not all((goldens.LEVELS / obj).exists() for obj in levels):
        pytest.skip("its level is not part of the repository")
    return record


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_sample_of_recorded_moves(name, monkeypatch):
    assert both_play(load(name), SAMPLE, monkeypatch) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_all_recorded_moves(name, monkeypatch):
    assert both_play(load(name), 1, monkeypatch) > 0


# --- random worlds --------------------------------------------------------------


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def direction(rng):
    while True:
        v = [rng.uniform(-1, 1) for _ in range(3)]
        if 0.01 < math.sqrt(dot(v, v)) <= 1:
            return v


def rotation(rng):
    """Often none: what stands upright meets what is level."""
    if rng.random() < 0.4:
        return (0.0, 0.0, 0.0, 1.0)
    q = [rng.gauss(0, 1) for _ in range(4)]
    m = math.sqrt(sum(x * x for x in q))
    return tuple(x / m for x in q)


def grid_mesh(rng):
    """Arguments of a bumpy mesh of 72 triangles about the origin; some have no area."""
    n = 7
    step = rng.choice([0.5, 0.8, 1.5])
    rough = rng.choice([0.0, 0.2, 0.6])
    v = [
        (step * (i - 3), step * (j - 3), rough * rng.uniform(-1, 1) if rng.random() < 0.7 else 0.0)
        for i in range(n)
        for j in range(n)
    ]
    t = []
    for i in range(n - 1):
        for j in range(n - 1):
            k = i * n + j
            t += [(k, k + n, k + n + 1), (k, k + n + 1, k + 1)]
    if rng.random() < 0.3:
        t.append((0, 1, 2))
    if rng.random() < 0.2:
        t = [tuple(reversed(c)) for c in t]
    return np.array(v), np.array(t)


def soup_mesh(rng):
    """Arguments of a mesh of unconnected triangles."""
    v, t = [], []
    for k in range(20):
        c = [rng.uniform(-2, 2) for _ in range(3)]
        v += [[c[i] + rng.uniform(-1, 1) for i in range(3)] for _ in range(3)]
        t.append((3 * k, 3 * k + 1, 3 * k + 2))
    return np.array(v), np.array(t)


def shape_recipe(rng):
    """(name of the class, arguments, keywords) of a shape."""
    kinds = [
        "Mesh",
        "Mesh",
        "Soup",
        "Heightfield",
        "Box",
        "Box",
        "Sphere",
        "Capsule",
        "ConvexHull",
        "Triangle",
        "Plane",
    ]
    kind = rng.choice(kinds)
    if kind in ("Mesh", "Soup", "Heightfield"):
        options = {"two_sided": rng.random() < 0.3}
        if kind == "Heightfield":
            args = ([[rng.uniform(-0.4, 0.4) for _ in range(5)] for _ in range(6)], rng.choice([0.7, (0.5, 1.1)]))
            options |= {"row_axis": rng.choice("xy"), "diagonal": rng.choice([0, 1])}
            if rng.random() < 0.5:
                options |= {"holes": np.array([[rng.random() < 0.1 for _ in range(4)] for _ in range(5)])}
                options |= {"diagonal": np.array([[rng.choice([0, 1]) for _ in range(4)] for _ in range(5)])}
            n = 40
        else:
            args = grid_mesh(rng) if kind == "Mesh" else soup_mesh(rng)
            n = len(args[1])
        if rng.random() < 0.5:
            options["triangle_data"] = np.arange(n) * 7
        if rng.random() < 0.2:
            options["triangle_mask"] = np.array([rng.choice([1, 2, 3]) for _ in range(n)])
        return kind.replace("Soup", "Mesh"), args, options
    if kind == "Box":
        return kind, ([rng.choice([0.1, 0.25, rng.uniform(0.1, 2)]) for _ in range(3)],), {}
    if kind == "Sphere":
        return kind, (rng.uniform(0.1, 1.2),), {}
    if kind == "Capsule":
        return kind, (rng.uniform(0.1, 0.6), rng.choice([0.0, rng.uniform(0, 2)])), {}
    if kind == "ConvexHull":
        n = rng.choice([4, 5, 8, 20])
        return kind, ([[rng.uniform(-1, 1) for _ in range(3)] for _ in range(n)],), {}
    if kind == "Triangle":
        return kind, tuple([rng.uniform(-2, 2) for _ in range(3)] for _ in range(3)), {}
    return kind, ((rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), 1.0), rng.uniform(-2, 0)), {}


def placing(rng, kind):
    """Keywords of Scene.add."""
    scale = (1.0, 1.0, 1.0)
    if rng.random() < 0.3 and kind != "Plane":
        k = rng.uniform(0.5, 2)
        scale = (k, k, k)
        if kind not in ("Sphere", "Capsule"):
            scale = tuple(rng.choice([-1, 1]) * rng.uniform(0.5, 2) for _ in range(3))
    return {
        "position": somewhere(rng),
        "rotation": rotation(rng),
        "scale": scale,
        "body": rng.choice(["static", "static", "kinematic", "kinematic", "dynamic"]),
        "layer": rng.choice([1, 1, 1, 2, 3]),
        "behavior": rng.choice([0, 1, 1, 2, 3, 4]),
    }


def somewhere(rng):
    return [rng.uniform(-2.5, 2.5) for _ in range(3)]


def even(other):
    """A filter: whatever has an even number."""
    return other.id % 2 == 0


def by_number(other):
    """A behaviour callback."""
    return other.id % 8


def some_rules(rng):
    return pycct.Rules(rng.getrandbits(13) | rng.getrandbits(11) << 16)


def controller_recipe(rng):
    """Keywords of a controller."""
    radius = rng.choice([0.1, 0.4, 0.5, 1.0])
    return {
        "position": somewhere(rng),
        "radius": radius,
        "height": rng.choice([0.0, 0.5, 1.0, 1.7]),
        "step_offset": rng.choice([0.0, 0.3, 0.5]) * min(1.0, radius),
        "contact_offset": rng.choice([0.0, 0.01, 0.05, 0.1]),
        "slope_limit": rng.choice([0.0, 0.5, 0.707, 0.9]),
        "climbing_mode": rng.choice(["easy", "constrained"]),
        "non_walkable_mode": rng.choice(["prevent_climbing", "force_sliding"]),
        "rules": rng.choice(["physx", "document", "robust", "robust", some_rules(rng)]),
        "overlap_recovery": rng.random() < 0.8,
        "prevent_vertical_sliding": rng.random() < 0.3,
        "invisible_wall_height": rng.choice([0.0, 0.0, 0.0, 0.5]),
        "max_jump_height": rng.choice([0.0, 0.0, 1.0]),
        "layer": rng.choice([1, 1, 2]),
        "mask": rng.choice([0xFFFFFFFF, 0xFFFFFFFF, 1]),
        "collide": rng.random() < 0.7,
        "filter": rng.choice([None, None, None, even]),
        "behavior": rng.choice([None, None, by_number]),
        "surface": rng.choice([0, 2]),
    }


class World:
    """The same random world in both."""

    def __init__(self, rng):
        self.rng = rng
        self.scenes = [module.Scene() for module in MODULES]
        for k in range(rng.randint(2, 7)):
            name, args, keywords = shape_recipe(rng)
            where = placing(rng, name)
            if k == 0:
                # Something to stand on.
                where |= {"position": (0.0, 0.0, -1.0), "rotation": (0.0, 0.0, 0.0, 1.0), "layer": 1}
            for module, scene in zip(MODULES, self.scenes, strict=True):
                scene.add(getattr(module, name)(*args, **keywords), **where)
        for _ in range(rng.choice([0, 0, 1, 3])):
            name = rng.choice(["Box", "Capsule"])
            args = ([rng.uniform(0.2, 1) for _ in range(3)],) if name == "Box" else (rng.uniform(0.2, 1), 0.7)
            where = {"position": somewhere(rng), "rotation": rotation(rng), "behavior": rng.choice([0, 1, 1, 3])}
            for module, scene in zip(MODULES, self.scenes, strict=True):
                scene.add_obstacle(getattr(module, name)(*args), **where)
        self.up = rng.choice([(0, 0, 1), (0, 0, 1), (0, 1, 0), direction(rng)])
        self.pairs = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            recipe = controller_recipe(rng)
            scenes = zip(MODULES, self.scenes, strict=True)
            self.pairs.append([m.CharacterController(scene, up=self.up, **recipe) for m, scene in scenes])
            if rng.random() < 0.2:
                for hero in self.pairs[-1]:
                    hero.add_proxy(layer=1)
        self.up = self.pairs[0][0].up
        self.walks = rng.random() < 0.7

    def change(self):
        """Move, remove or re-layer something that moves."""
        rng = self.rng
        for actor in [*self.scenes[0].actors, *self.scenes[0].obstacles]:
            twins = [scene.actor(actor.id) for scene in self.scenes]
            what = rng.random()
            if actor.body == "static" and what < 0.995:
                continue
            turned = rng.random() < 0.3
            if what < 0.5:
                place = tuple(x + rng.uniform(-0.1, 0.1) for x in actor.position)
                turn = rotation(rng) if turned else None
                for twin in twins:
                    twin.move_to(place, turn)
            elif what > 0.99 and not any(actor is pair[0].proxy for pair in self.pairs):
                for scene, twin in zip(self.scenes, twins, strict=True):
                    scene.remove(twin)
            elif what > 0.97:
                for twin in twins:
                    twin.layer = 2

    def displacement(self, step):
        rng, up = self.rng, self.up
        if not self.walks:
            size = rng.choice([1e-4, 0.02, 0.1, 0.5, 0.5, 3.0])
            if rng.random() < 0.1:
                return tuple(-size * u for u in up)
            return tuple(x * size for x in direction(rng))
        # Some steps the same way, falling at first.
        if step % 10 == 0:
            self.way = [rng.choice([0.02, 0.1, 0.3]) * x for x in direction(rng)]
        fall = -0.5 if step % 10 < 3 else -0.1
        return tuple(x - dot(self.way, up) * u + fall * u for x, u in zip(self.way, up, strict=True))

    def step(self, step, count):
        rng = self.rng
        want = self.displacement(step)
        least = rng.choice([0.0, 0.0, 1e-3])
        mask = rng.choice([None, None, None, 1])
        self.change()
        if rng.random() < 0.5:
            for module, heroes in zip(MODULES, zip(*self.pairs, strict=True), strict=True):
                module.separate(heroes, 1 / 60)
        for pair in self.pairs:
            if step % 10 == 9 or max(map(abs, pair[0].position)) > 3:
                high = rng.uniform(-1, 2.5)
                place = tuple(rng.uniform(-2, 2) * (1 - abs(u)) + high * u for u in self.up)
                for hero in pair:
                    hero.teleport(place)
            for hero in pair:
                hero.move(want, 1 / 60, min_distance=least, mask=mask)
            a, b = map(seen, pair)
            assert not differences(a, b), step
            state = pair[0].state
            count["moves"] += 1
            count["hits"] += bool(a["hits"])
            count["recoveries"] += a["recoveries"]
            count["experiments"] += state.sliding
            count["rides"] += state.platform_delta != (0, 0, 0)
            count["fixes"] += a["fixes"] != 0
            count["on user geometry"] += state.on_controller or state.on_obstacle

    def ask(self):
        """Put a question to both, or have both do something besides moving."""
        rng = self.rng
        number = rng.uniform(0, 1.5)
        want = tuple(direction(rng))
        asked = {
            "probe": lambda scene, hero, module: told_of_ground(hero.probe_ground(number)),
            "snap": lambda scene, hero, module: hero.snap_to_ground(number),
            "can_resize": lambda scene, hero, module: hero.can_resize(number),
            "resize": lambda scene, hero, module: hero.resize(number),
            "unstick": lambda scene, hero, module: hero.unstick(0.1 * number),
            "explain": lambda scene, hero, module: told_of_explanation(hero.explain(want, 1 / 60)),
            "explain_last": lambda scene, hero, module: (t := hero.explain_last()) and told_of_explanation(t),
        }
        if rng.random() < 0.02 and not any(hero.proxy for hero, _ in self.pairs):
            for scene in self.scenes:
                scene.shift_origin(tuple(0.1 * x for x in want))
            assert not any(differences(*map(seen, pair)) for pair in self.pairs)
        name = rng.choice(sorted(asked))
        pair = rng.choice(self.pairs)
        a, b = (asked[name](*x) for x in zip(self.scenes, pair, MODULES, strict=True))
        assert repr(a) == repr(b), name
        assert not differences(*map(seen, pair)), name


def random_moves(seed, worlds, steps):
    """Play random worlds in both; how often what happened."""
    rng = random.Random(seed)
    count = dict.fromkeys(HAPPENINGS, 0)
    for number in range(worlds):
        world = World(rng)
        for step in range(steps):
            try:
                world.step(step, count)
                for _ in range(3):
                    world.ask()
            except AssertionError as e:
                raise AssertionError(f"seed {seed}, world {number}, step {step}") from e
    return count


def test_random_moves():
    count = random_moves(2, 90, 10)
    # The worlds are such that much happens.
    assert count["moves"] > 400
    assert all(n >= 5 for n in count.values()), count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_random_moves(seed):
    assert random_moves(seed, 100, 20)["moves"] > 2000


def test_questions_to_the_world():
    """Compiled queries use different algorithms by shape; results agree up to rounding."""
    rng = random.Random(3)
    met = entered = 0
    for _ in range(60):
        world = World(rng)
        for _ in range(10):
            where, way, turn = somewhere(rng), direction(rng), rotation(rng)
            radius, height, reach = rng.uniform(0.05, 0.6), rng.choice([0.0, rng.uniform(0, 1)]), rng.uniform(0, 3)
            hits, touched, ways_out = [], [], []
            for scene, module in zip(world.scenes, MODULES, strict=True):
                shape = module.Capsule(radius, height)
                hits.append(scene.sweep(shape, where, way, reach, turn))
                touched.append([a.id for a in scene.overlap(shape, where, turn)])
                ways_out.append([(a.id, depth) for a, _, depth in scene.penetration(shape, where, turn)])
            assert (hits[0] is None) == (hits[1] is None)
            if hits[0] is not None:
                met += 1
                # Of several that are overlapped each may name another.
                assert hits[0].actor.id == hits[1].actor.id or hits[0].overlapping
                assert hits[0].distance == pytest.approx(hits[1].distance, abs=1e-9)
            assert touched[0] == touched[1]
            entered += len(ways_out[0])
            assert dict(ways_out[0]) == pytest.approx(dict(ways_out[1]), abs=1e-9)
    assert met > 50 and entered > 50


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("order", ["sequential", "simultaneous"])
def test_crowd_is_a_loop(order, collide):
    """A crowd moves as single characters do, one after another or all from where the step began."""
    rng = random.Random(8)
    scenes = [module.Scene() for module in MODULES]
    for module, scene in zip(MODULES, scenes, strict=True):
        scene.add(module.Box((9, 9, 1)), position=(0, 0, -1))
        scene.add(module.Box((0.5, 3, 0.1)), position=(1, 0, 0))
    places = [(rng.uniform(-2, 2), rng.uniform(-2, 2), 1.0) for _ in range(8)]
    radii = [rng.choice([0.3, 0.4]) for _ in places]
    crowd = reference.Crowd(scenes[1], places, radius=radii, collide=collide, order=order)
    heroes = [pycct.CharacterController(scenes[0], p, r, collide=collide) for p, r in zip(places, radii, strict=True)]
    met = 0
    for _ in range(15):
        ways = [(rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1), -0.1) for _ in heroes]
        flags = crowd.move(ways, 1 / 60)
        if order == "simultaneous":
            # Each moves while the others stand where the step began.
            began = [hero.position for hero in heroes]
            ends = []
            for k, hero in enumerate(heroes):
                hero.move(ways[k], 1 / 60)
                ends.append(hero.position)
                hero.position = began[k]
            for hero, end in zip(heroes, ends, strict=True):
                hero.position = end
            if collide:
                pycct.separate(heroes, 1 / 60)
        else:
            for hero, way in zip(heroes, ways, strict=True):
                hero.move(way, 1 / 60)
        met += sum(h.controller is not None for hero in heroes for h in hero.hits)
        assert [tuple(p) for p in crowd.positions.tolist()] == [hero.position for hero in heroes]
        assert flags.tolist() == [int(hero.flags) for hero in heroes]
        assert crowd.grounded.tolist() == [hero.grounded for hero in heroes]
    assert (met > 0) == collide


def test_pickled_characters_go_on_alike():
    rng = random.Random(12)
    for _ in range(10):
        world = World(rng)
        count = dict.fromkeys(HAPPENINGS, 0)
        for step in range(4):
            world.step(step, count)
        pairs = [pickle.loads(pickle.dumps(pair)) for pair in world.pairs if pair[0].proxy is None]
        for pair in pairs:
            for _ in range(3):
                want = tuple(0.2 * x for x in direction(rng))
                for hero in pair:
                    hero.move(want, 1 / 60)
                assert not differences(*map(seen, pair))


@pytest.mark.parametrize("module", MODULES)
def test_overlap_before_touch(module):
    """Next to an overlapped triangle, an exactly touched one does not count, in any order."""
    vertices = [(-2, -2, 0), (2, -2, 0), (0, 2, 0), (0.5, -1, 0.4), (1.5, -1, 0.9), (0.5, 1, 0.4)]
    told = []
    for triangles in ([(0, 1, 2), (3, 4, 5)], [(3, 4, 5), (0, 1, 2)]):
        scene = module.Scene()
        scene.add(module.Mesh(vertices, triangles))
        hero = module.CharacterController(scene, (0, 0, 1), radius=1.0, height=0.0, step_offset=0.0)
        ground = hero.probe_ground(0.5)
        told.append((triangles[ground.triangle], ground.distance, ground.point))
    assert told[0] == told[1]
    assert told[0][0] == (3, 4, 5) and told[0][1] == 0.0


def test_responses():
    """The kernels of MOVE 8.2 to 8.4, those that no rule set uses too."""
    rng = random.Random(5)
    for _ in range(2000):
        target, place, way, first = (tuple(direction(rng)) for _ in range(4))
        second = rng.choice([first, tuple(x + 1e-5 * rng.uniform(-1, 1) for x in first), tuple(direction(rng))])
        unit_way, unit_first, unit_second = (as_unit(v, "v") for v in (way, first, second))
        bump, friction, normalize = rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 1.0]), rng.random() < 0.5
        ours = response.collision_response(target, place, unit_way, unit_first, bump, friction, normalize)
        assert repr(respond(target, place, way, first, bump, friction, normalize)) == repr(ours)
        assert repr(slide(way, first)) == repr(response.slide_response(way, unit_first))
        assert repr(slide_crease(way, first, second)) == repr(response.crease_response(way, unit_first, unit_second))


def test_saves_are_shared():
    """What one saves the other restores, and both go on alike."""
    rng = random.Random(77)
    count = dict.fromkeys(HAPPENINGS, 0)
    for _ in range(20):
        world = World(rng)
        for step in range(6):
            world.step(step, count)
            for compiled, plainly in world.pairs:
                first, second = compiled.save(), plainly.save()
                compiled.restore(second)
                plainly.restore(first)
                assert compiled.save() == second
                assert not differences(seen(compiled), seen(plainly))


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("up", [(0, 0, 1), (0, 1, 0), (0.36, 0.48, 0.8)])
def test_over_the_top_of_a_wall_by_a_hair(up, two_sided):
    """The shortcut above all candidates changes a result by less than the contact offset."""
    up = np.array(up, dtype=float)
    side = np.cross(up, (1.0, 0.2, -0.3))
    side /= np.linalg.norm(side)
    across = np.cross(up, side)
    # A block of one metre, as triangles.
    corners = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-3, 3) for k in (0, 1)]) @ np.array([side, across, up])
    ends = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5)]
    faces = [*ends, (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (1, 5, 7), (1, 7, 3)]
    blocked = set()
    for gap in (-0.03, -1e-3, -1e-6, -1e-9, 0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.0199999, 0.02, 0.0200001, 0.021, 0.1):
        told = []
        for module in MODULES:
            scene = module.Scene()
            scene.add(module.Mesh(corners, faces, two_sided=two_sided))
            start = up * (1.0 + gap + 0.9) - side * 1.1
            hero = module.CharacterController(
                scene, tuple(start), radius=0.4, height=1.0, contact_offset=0.02, step_offset=0.0, up=tuple(up)
            )
            told.append([])
            for way in (side * 0.05, side * 0.3, side * 0.6, up * 0.2, side * 0.9, -up * 0.5, -up * 0.01):
                hero.move(tuple(way), 1 / 60)
                told[-1].append(seen(hero))
        assert told[0] == told[1], gap
        blocked.add(told[0][2]["flags"])
    assert len(blocked) > 1


def squeezed(rng):
    """A character with things in it, and a long way to go: shapes, parameters, displacement."""

    def about(place, size):
        return [x + round(rng.gauss(0, size), 1) for x in place]

    shapes = [("Sphere", (0.5,), {"position": about((0, 0, 1), 0.3), "body": "kinematic"})]
    if rng.random() < 0.5:
        shapes.append(("Capsule", (0.3, 0.6), {"position": about((0, 0, 1), 0.4)}))
    for _ in range(rng.randint(1, 2)):
        middle = about((0, 0, 0), 1)
        corners = [about(middle, 2) for _ in range(3)]
        shapes.append(("Mesh", (corners, [(0, 1, 2)], True), {}))
    parameters = {
        "radius": 0.3,
        "height": 0.8,
        "slope_limit": 0.9,
        "step_offset": rng.choice([0.0, 0.3]),
        "contact_offset": rng.choice([0.01, 0.1]),
        "rules": rng.choice(["physx", "robust", "document", "document"]),
        "climbing_mode": rng.choice(["easy", "constrained"]),
        "non_walkable_mode": rng.choice(["prevent_climbing", "force_sliding"]),
    }
    return shapes, parameters, tuple(about((0, 0, 0), rng.choice([0.3, 1, 3])))


def moved_in(module, shapes, parameters, way):
    scene = module.Scene()
    for kind, arguments, more in shapes:
        scene.add(getattr(module, kind)(*arguments), **more)
    hero = module.CharacterController(scene, (0, 0, 1), **parameters)
    hero.move(way, 1 / 60)
    return hero


def test_a_move_that_starts_over_sees_what_was_at_its_start():
    """The walk experiment or a lower step repeats a move whose first attempt gathered far away."""
    shapes = [
        ("Sphere", (0.5,), {"position": (0, -0.4, 1.2), "body": "kinematic"}),
        ("Mesh", ([(-0.2, 2, 0.8), (1.7, 1.3, -0.3), (3.6, -3.3, -0.5)], [(0, 1, 2)], True), {}),
    ]
    parameters = {"radius": 0.3, "height": 0.8, "step_offset": 0.3, "contact_offset": 0.01, "slope_limit": 0.9,
                  "rules": "document", "climbing_mode": "constrained"}
    for module in MODULES:
        hero = moved_in(module, shapes, parameters, (-1.2, 4.1, -0.1))
        assert hero.position[1] == pytest.approx(0.41) and hero.stats.recoveries == 2


@pytest.mark.slow
def test_moves_that_start_inside_of_things_and_go_far():
    rng = random.Random(8)
    worth = 0
    for _ in range(25_000):
        case = squeezed(rng)
        hero = moved_in(MODULES[0], *case)
        if hero.stats.recoveries and hero.stats.full_updates > 1:
            worth += 1
            assert not differences(seen(hero), seen(moved_in(MODULES[1], *case))), case
    assert worth > 5000
