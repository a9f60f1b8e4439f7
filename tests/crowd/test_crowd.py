"""Crowd and move_many: the moves of single controllers, for any number of threads."""

import copy
import ctypes
import gc
import logging
import math
import os
import pickle
import random
import struct
import threading
import zlib

import numpy as np
import pytest
import reports

import pycct
from pycct import CharacterController, Crowd, reference
from pycct.args import save_format as saves

DT = 1 / 60
MODULES = (pycct, reference)


def terrain(module, n=16):
    """Hills, some too steep."""
    x, y = np.meshgrid(np.arange(n + 1) - n / 2, np.arange(n + 1) - n / 2, indexing="ij")
    z = 0.9 * np.sin(x * 0.9) * np.cos(y * 0.7) + 0.3 * np.sin(x * 2.1 + y)
    vertices = np.stack([x, y, z], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    a = (i * (n + 1) + j).ravel()
    triangles = np.concatenate([np.stack([a, a + n + 1, a + n + 2], -1), np.stack([a, a + n + 2, a + 1], -1)])
    return module.Mesh(vertices.tolist(), triangles.tolist(), triangle_data=list(range(len(triangles))))


def world(module=pycct):
    """A scene with every kind of actor; returns the lift and the post, too."""
    scene = module.Scene()
    scene.add(terrain(module))
    scene.add(module.Box((3, 3, 0.2)), position=(4, 4, 1))
    for k in range(4):
        scene.add(module.Box((0.5, 1, 0.1 + 0.1 * k)), position=(-2 - 0.6 * k, 2, 0.8))
    scene.add(module.Sphere(0.7), position=(-3, -3, 0.6), body="dynamic")
    scene.add(module.Capsule(0.4, 1.0), position=(2, -4, 0.5))
    lift = scene.add(module.Box((1.5, 1.5, 0.2)), position=(0, 0, 1.2), body="kinematic", behavior=1)
    post = scene.add_obstacle(module.Box((0.5, 0.5, 1.5)), position=(1, 3, 1))
    return scene, lift, post


def starts(n, seed=1, span=6.0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-span, span, (n, 2)), rng.uniform(1.5, 2.5, n)])


def ways(n, steps, seed=2, speed=0.12):
    rng = np.random.default_rng(seed)
    course = rng.uniform(0, 7, n) + rng.normal(0, 0.3, (steps, n)).cumsum(0)
    down = np.where(rng.random((steps, n)) < 0.1, 0.15, -0.1)
    return np.stack([np.cos(course) * speed, np.sin(course) * speed, down], -1)


def varied(n, seed=3):
    """Parameters of n characters, most of them different."""
    rng = np.random.default_rng(seed)
    return {
        "radius": rng.choice([0.3, 0.4, 0.45], n),
        "height": rng.choice([0.0, 0.8, 1.0], n),
        "step_offset": rng.choice([0.0, 0.3, 0.5], n),
        "slope_limit": rng.choice([0.0, 0.707, 0.9], n),
        "climbing_mode": [["easy", "constrained"][k] for k in rng.integers(0, 2, n)],
        "non_walkable_mode": [["prevent_climbing", "force_sliding"][k] for k in rng.integers(0, 2, n)],
        "rules": [["physx", "document", "robust"][k] for k in rng.integers(0, 3, n)],
        "overlap_recovery": rng.random(n) < 0.8,
        "up": np.where(rng.random((n, 1)) < 0.8, [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]),
        "layer": rng.choice([1, 2], n),
        "surface": [pycct.Behavior(int(b)) for b in rng.integers(0, 3, n)],
    }


def heroes_of(scene, places, parameters, module=pycct, **same):
    columns = {k: list(v) if not hasattr(v, "tolist") else v.tolist() for k, v in parameters.items()}
    return [
        module.CharacterController(scene, tuple(p), **{k: v[i] for k, v in columns.items()}, **same)
        for i, p in enumerate(np.asarray(places).tolist())
    ]


def told(crowd):
    """All public results of a crowd, as bytes."""
    names = ("positions", "foot_positions", "flags", "grounded", "ground_normals", "standing_on", "velocities", "ids")
    return {name: getattr(crowd, name).tobytes() for name in names}


def columns(rows):
    """A structured array as lists, because NumPy leaves the gaps between fields undefined."""
    return [rows[name].tolist() for name in rows.dtype.names]


def happen(k, lift, post):
    """Move the actors of the scene by one tick."""
    lift.move_to((0.3 * math.sin(0.2 * k), 0, 1.2 + 0.4 * math.sin(0.15 * k)))
    post.move_to((1 + 0.3 * math.sin(0.1 * k), 3, 1), (0, 0, math.sin(0.05 * k), math.cos(0.05 * k)))


# --- the moves of single controllers


@pytest.fixture
def keep_triangles():
    """Set the largest crowd that keeps triangles; larger ones keep only their numbers."""
    module = pytest.importorskip("pycct.crowd.crowd")
    before = module._keep_triangles(0)
    yield module._keep_triangles
    module._keep_triangles(before)


@pytest.mark.parametrize("triangles", [0, 1000])
@pytest.mark.parametrize(("collide", "order"), [(False, "simultaneous"), (False, "sequential"), (True, "sequential")])
def test_equal_to_single_controllers(collide, order, triangles, keep_triangles):
    keep_triangles(triangles)
    n, steps = 120, 60
    scenes = [world(), world()]
    parameters = varied(n)
    crowd = Crowd(scenes[0][0], starts(n), order=order, collide=collide, **parameters)
    heroes = heroes_of(scenes[1][0], starts(n), parameters, collide=collide)
    met = rides = 0
    for k, way in enumerate(ways(n, steps)):
        for _, lift, post in scenes:
            happen(k, lift, post)
        flags = crowd.move(way, DT, threads=1 + k % 3)
        for hero, d in zip(heroes, way, strict=True):
            hero.move(d, DT)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]
        assert flags.tolist() == [int(h.flags) for h in heroes]
        met += sum(h.controller is not None for hero in heroes for h in hero.hits)
        rides += sum(hero.state.platform_delta != (0, 0, 0) for hero in heroes)
    assert (met > 50) == collide
    assert rides > 10
    assert crowd.foot_positions.tolist() == [list(h.foot_position) for h in heroes]
    assert crowd.velocities.tolist() == [list(h.velocity) for h in heroes]
    assert crowd.grounded.tolist() == [h.grounded for h in heroes]
    assert crowd.ground_normals.tolist() == [list(h.ground.normal if h.ground else (0, 0, 0)) for h in heroes]
    below = [h.state.standing_on for h in heroes]
    actors = [b.id if isinstance(b, pycct.Actor) else -1 for b in below]
    assert crowd.standing_on.tolist() == actors
    assert len(set(actors)) > 3
    assert crowd.ids.tolist() == [h.id for h in heroes]


def test_hits_and_stats_are_those_of_single_controllers():
    n = 60
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n), radius=0.35)
    heroes = heroes_of(scene, starts(n), {}, radius=0.35)
    for way in ways(n, 30):
        crowd.move(way, DT, threads=2, record_hits=True, record_stats=True)
        hits = crowd.hits
        expected = []
        for i, (hero, d) in enumerate(zip(heroes, way, strict=True)):
            hero.move(d, DT)
            expected += [(i, h) for h in hero.hits]
        assert hits["index"].tolist() == [i for i, _ in expected]
        assert hits["id"].tolist() == crowd.ids[hits["index"]].tolist()
        for row, (_, h) in zip(hits, expected, strict=True):
            ids = [-1 if x is None else x.id for x in (h.actor, h.controller, h.obstacle)]
            assert [row["actor"], row["controller"], row["obstacle"]] == ids
            assert row["triangle"] == (-1 if h.triangle is None else h.triangle)
            assert (row["data"] if row["has_data"] else None) == h.data
            assert tuple(row["position"]) == h.position and tuple(row["normal"]) == h.normal
            assert tuple(row["direction"]) == h.direction
            assert (row["length"], row["distance"]) == (h.length, h.distance)
            assert pycct.Pass(row["pass_"]) == h.pass_
            assert row["dynamic"] == h.dynamic
        stats = crowd.stats
        for name in ("iterations", "recoveries"):
            assert stats[name].tolist() == [getattr(h.stats, name) for h in heroes]
        assert stats["fixes"].tolist() == [int(h.stats.fixes) for h in heroes]
    assert len(crowd.hits) and crowd.hits["has_data"].any()
    # The gaps between fields are zero, too.
    for _ in range(20):
        junk = np.full((n, stats.itemsize), 0xAB, np.uint8)
        del junk
        assert crowd.stats.tobytes() == crowd.stats.view(np.uint8).tobytes() == stats.view(np.uint8).tobytes()
        assert not stats.view(np.uint8).reshape(n, -1)[:, -4:].any()


@pytest.mark.parametrize("module", [pycct, reference], ids=["compiled", "reference"])
def test_hits_are_refused_unless_the_last_move_recorded_them(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    crowd = module.Crowd(scene, [(0, 0, 0.91), (3, 0, 0.91)])
    down = np.tile((0, 0, -0.1), (2, 1))

    def refused(crowd):
        with pytest.raises(RuntimeError, match="record_hits=True"):
            crowd.hits

    assert len(crowd.hits) == 0  # never moved
    crowd.move(down, DT, record_hits=True)
    assert len(crowd.hits) == 2
    for unrecorded in (lambda: crowd.move(down, DT), lambda: crowd.run([down], DT)):
        unrecorded()
        refused(crowd)
        crowd.move(down, DT, record_hits=True)
        assert len(crowd.hits) == 2
    for forgets in (
        lambda: crowd.add([(6, 0, 0.91)]),
        lambda: crowd.remove(2),
        lambda: crowd.restore(crowd.save()),
    ):
        forgets()
        assert len(crowd.hits) == 0
        crowd.move(np.tile((0, 0, -0.1), (len(crowd), 1)), DT, record_hits=True)
        assert len(crowd.hits) == len(crowd)
    # Elsewhere the characters meet no others, and that is no error.
    crowd.teleport([0, 1], [(0, 0, 9), (3, 0, 9)])
    crowd.move(down, DT, record_hits=True)
    assert crowd.hits.shape == (0,)


def test_hits_are_kept_only_on_request():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(5))
    for way in ways(5, 15):
        crowd.move(way, DT, record_hits=True)
    assert len(crowd.hits)
    crowd.teleport(0, (0, 0, 9))
    crowd.move(np.zeros((5, 3)), DT)
    with pytest.raises(RuntimeError):
        crowd.hits


def test_queries_equal_those_of_single_controllers():
    n = 40
    scene, _, _ = world()
    parameters = varied(n)
    for collide in (False, True):
        crowd = Crowd(scene, starts(n, span=3), order="sequential", collide=collide, **parameters)
        for way in ways(n, 12):
            crowd.move(way, DT)
        path = crowd.positions.copy()
        fits = crowd.can_resize(1.3, threads=2)
        below = crowd.probe_ground(0.8, threads=2)
        snapped = crowd.snap_to_ground(0.8, threads=2)
        after = crowd.positions.copy()
        touching = crowd.contacts(0.05)
        crowd.remove(range(n))
        heroes = heroes_of(scene, path, parameters, collide=collide)
        assert fits.tolist() == [h.can_resize(1.3) for h in heroes]
        assert 3 < fits.sum() < n
        for i, hero in enumerate(heroes):
            ground = hero.probe_ground(0.8)
            assert below.hit[i] == (ground is not None)
            if ground is None:
                assert (below.distance[i], below.actor[i], below.triangle[i]) == (0.8, -1, -1)
                continue
            assert below.distance[i] == ground.distance
            assert tuple(below.normal[i]) == ground.normal and tuple(below.point[i]) == ground.point
            assert tuple(below.face_normal[i]) == ground.face_normal
            assert below.walkable[i] == ground.walkable
            assert below.actor[i] == (-1 if ground.actor is None else ground.actor.id)
            assert below.triangle[i] == (-1 if ground.triangle is None else ground.triangle)
        if not collide:
            assert snapped.tolist() == [h.snap_to_ground(0.8) for h in heroes]
            assert after.tolist() == [list(h.position) for h in heroes]
            assert snapped.any()
            found = [h.contacts(0.05) for h in heroes]
            assert [[c[:2] for c in some] for some in touching] == [[c[:2] for c in some] for some in found]
            assert sum(map(len, found)) > n
            one = next(k for k, some in enumerate(found) if some)
            assert touching[one][0].manifold.distances.tolist() == found[one][0].manifold.distances.tolist()
        for hero in heroes:
            hero.remove()


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
@pytest.mark.parametrize("collide", [False, True])
def test_can_resize_accepts_indices(collide, module):
    n = 120 if module is pycct else 12
    scene, _, _ = world(module)
    crowd = module.Crowd(scene, starts(n, span=3), order="sequential", collide=collide, group=[i % 2 for i in range(n)])
    for way in ways(n, 3):
        crowd.move(way, DT)
    before = crowd.save()
    everybody = crowd.can_resize(1.6)
    rng = np.random.default_rng(5)
    for k in (1, 5, n - 1, n):
        some = rng.permutation(n)[:k]
        for threads in (1, 2):
            fits = crowd.can_resize(1.6, threads=threads, indices=some)
            assert fits.dtype == bool and fits.tolist() == everybody[some].tolist()
    assert module is reference or 3 < everybody.sum() < n
    assert crowd.can_resize(1.6, indices=3).tolist() == [everybody[3]]
    assert crowd.can_resize(1.6, indices=[]).shape == (0,)
    for bad, error in (([n], ValueError), ([-n - 1], ValueError), ([0, 0], ValueError), ([0.5], TypeError)):
        with pytest.raises(error, match="indices"):
            crowd.can_resize(1.6, indices=bad)
    assert crowd.save() == before and crowd.can_resize(1.6).tolist() == everybody.tolist()


def test_grounds_describe_the_last_move():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(20))
    hero = CharacterController(scene, starts(20)[7])
    for way in ways(20, 20):
        crowd.move(way, DT)
        hero.move(way[7], DT)
        grounds = crowd.ground
        assert grounds.hit[7] == hero.grounded
        if hero.grounded:
            assert grounds.distance[7] == hero.ground.distance
            assert grounds.triangle[7] == (-1 if hero.ground.triangle is None else hero.ground.triangle)
    assert grounds.hit.tolist() == crowd.grounded.tolist()


# --- any number of threads, any split


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("collide", [False, True])
def test_any_number_of_threads(order, collide):
    n, steps = 400, 25
    results = []
    for threads in (1, 2, 8):
        scene, lift, post = world()
        crowd = Crowd(scene, starts(n), order=order, collide=collide)
        for k, way in enumerate(ways(n, steps)):
            happen(k, lift, post)
            crowd.move(way, DT, threads=threads, record_hits=True)
        results.append((told(crowd), columns(crowd.hits), crowd.save(), crowd.state_hash()))
    assert results[0] == results[1] == results[2]


def test_a_crowd_that_does_not_collide_may_be_split():
    n, steps = 150, 20
    scene, _, _ = world()
    whole = Crowd(scene, starts(n))
    parts = [Crowd(scene, starts(n)[a:b]) for a, b in ((0, 1), (1, 40), (40, 150))]
    for way in ways(n, steps):
        flags = whole.move(way, DT, threads=2)
        pieces = np.split(way, [1, 40])
        assert flags.tolist() == [
            f for part, d in zip(parts, pieces, strict=True) for f in part.move(d, DT, threads=3).tolist()
        ]
    assert whole.positions.tolist() == [p for part in parts for p in part.positions.tolist()]


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_run_equals_many_moves(order, collide):
    n, steps = 150, 12
    scene, _, _ = world()
    path = ways(n, steps)
    groups = [k % 3 for k in range(n)]
    # Two crowds in one scene, with different groups.
    crowds = [Crowd(scene, starts(n), order=order, collide=collide, group=[g + 3 * k for g in groups]) for k in (0, 1)]
    one = []
    for way in path:
        crowds[0].move(way, DT, threads=2)
        one.append(crowds[0].positions.tolist())
    for threads in (1, 2):
        again = Crowd(scene, starts(n), order=order, collide=collide, group=[g + 9 + 3 * threads for g in groups])
        assert again.run(path, DT, threads=threads).tolist() == one
        assert again.velocities.tolist() == crowds[0].velocities.tolist()
    assert crowds[1].run(path.astype(np.float32), DT).shape == (steps, n, 3)
    assert crowds[1].run(path[:0], DT).shape == (0, n, 3)


# --- characters that meet


def test_simultaneous_characters_meet_others_at_the_start_of_the_step():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1), 0))
    # The second character blocks the first. In either order, the first stops.
    for order in ("simultaneous", "sequential"):
        crowd = Crowd(scene, [(0.9, 0, 0.91), (0, 0, 0.91)], collide=True, order=order)
        crowd.move([(1, 0, 0), (0.6, 0, 0)], DT)
        second = crowd.positions[1, 0]
        assert second < 0.2 if order == "simultaneous" else second > 0.5
        crowd.remove([0, 1])


def test_order_of_making_does_not_matter_when_simultaneous():
    # The same characters in reverse order: the same positions, unless one is exactly above another.
    n, steps = 30, 20
    ends = []
    for turn in (1, -1):
        scene = world()[0]
        crowd = Crowd(scene, starts(n, span=2.5)[::turn], collide=True)
        for way in ways(n, steps):
            crowd.move(way[::turn], DT)
        ends.append(crowd.positions[::turn].tolist())
    # Sums over neighbours follow the order of ids.
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


def test_overlapping_characters_separate_by_half_the_overlap_each():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1), 0))
    crowd = Crowd(scene, [(0, 0, 0.92), (0.7, 0, 0.92)], collide=True, contact_offset=0.02)
    still = np.zeros((2, 3))
    crowd.move(still, 1.0)
    crowd.move(still, 1.0)
    apart = crowd.positions[1] - crowd.positions[0]
    assert apart[0] == pytest.approx(0.8, abs=1e-9)
    assert crowd.positions[0, 0] == pytest.approx(-0.05, abs=1e-9)
    # Each character moves by at most 2 m/s.
    slow = Crowd(scene, [(10, 0, 0.92), (10.4, 0, 0.92)], collide=True, contact_offset=0.02)
    slow.move(still, 0.01)
    slow.move(still, 0.01)
    assert slow.positions[0, 0] == pytest.approx(10 - 0.02, abs=1e-9)
    # An inactive character accumulates no push.
    lazy = Crowd(scene, [(20, 0, 0.92), (20.7, 0, 0.92)], collide=True, contact_offset=0.02)
    for _ in range(5):
        lazy.move(still, 1.0, active=[False, False])
    lazy.move(still, 1.0)
    assert lazy.positions[0, 0] == pytest.approx(20 - 0.05, abs=1e-9)


def test_sequential_crowds_separate_on_request():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0), (0.7, 0, 0)], collide=True, order="sequential")
    still = np.zeros((2, 3))
    crowd.move(still, 1.0)
    crowd.move(still, 1.0)
    assert crowd.positions[0, 0] == 0
    crowd.separate(1.0)
    crowd.move(still, 1.0)
    assert crowd.positions[0, 0] == pytest.approx(-0.05)


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_groups_never_meet(order):
    n, groups = 12, 20
    scene, _, _ = world()
    places = np.tile(starts(n, span=2), (groups, 1))
    path = ways(n, 15)
    crowd = Crowd(scene, places, collide=True, order=order, group=np.repeat(np.arange(groups), n))
    alone = Crowd(scene, starts(n, span=2), collide=True, order=order, group=10**6)
    total = 0
    for way in path:
        crowd.move(np.tile(way, (groups, 1)), DT, threads=2, record_hits=True)
        alone.move(way, DT, record_hits=True)
        hits = crowd.hits
        met = hits[hits["controller"] >= 0]
        ids = crowd.ids.tolist()
        assert all(ids.index(c) // n == i // n for i, c in zip(met["index"], met["controller"], strict=True))
        total += len(met)
    assert total
    ends = crowd.positions.reshape(groups, n, 3)
    assert (ends == alone.positions).all()
    crowd.set(range(n), group=5)
    crowd.teleport(range(n), crowd.positions[5 * n : 6 * n] + np.array([0.9, 0, 0]))
    assert crowd.get("group").tolist()[: 2 * n] == [5] * n + [1] * n
    for way in path:
        crowd.move(np.tile(way, (groups, 1)), DT)
    # The sixth group now has a second member.
    assert (crowd.positions[5 * n : 6 * n] != crowd.positions[6 * n : 7 * n]).any()


def test_crowds_and_single_controllers_meet():
    scene = pycct.Scene()
    floor = scene.add(pycct.Plane((0, 0, 1), 0))
    for order in ("simultaneous", "sequential"):
        crowd = Crowd(scene, [(0, 0, 0.91), (5, 0, 0.91)], collide=True, order=order)
        asked = []
        hero = CharacterController(scene, (1.5, 0, 0.91), collide=True)
        hero.filter = lambda other, asked=asked: not asked.append(other)
        hero.move((-3, 0, 0), DT)
        assert hero.position[0] == pytest.approx(0.81)
        met = next(h.controller for h in hero.hits if h.controller)
        assert met == crowd.member(crowd.ids[0]) and met in asked
        assert (met.position, met.radius, met.index, met.crowd) == ((0, 0, 0.91), 0.4, 0, crowd)
        assert scene.character(met.id) == met and hash(met) == hash(crowd.member(met.id))
        assert [c.other for c in hero.contacts()] == [floor, met]
        crowd.move([(2, 0, 0), (0, 0, 0)], DT, record_hits=True)
        assert crowd.positions[0, 0] == pytest.approx(0.0, abs=1e-9)
        assert hero.id in crowd.hits["controller"]
        assert crowd.contacts(indices=[0])[0][-1].other is hero
        # Other groups do not meet single controllers.
        crowd.set([0], group=7)
        crowd.move([(2, 0, 0), (0, 0, 0)], DT)
        assert crowd.positions[0, 0] == pytest.approx(2.0)
        crowd.remove([0])
        assert met.index == -1 and crowd.member(met.id) is None and scene.character(met.id) is None
        with pytest.raises(RuntimeError, match="removed"):
            met.position
        hero.remove()
        crowd.remove([0])


def test_two_crowds_meet_and_removed_members_are_gone():
    scene = pycct.Scene()
    one = Crowd(scene, [(0, 0, 0)], collide=True)
    other = Crowd(scene, [(2, 0, 0)], collide=True)
    assert set(scene.crowds) == {one, other}
    other.move([(-5, 0, 0)], DT)
    assert other.positions[0, 0] == pytest.approx(0.81)
    del one
    gc.collect()
    other.move([(-5, 0, 0)], DT)
    assert other.positions[0, 0] == pytest.approx(-4.19)
    assert scene.crowds == [other]


def test_masks_decide_who_meets():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0), (1, 0, 0)], collide=True, layer=[1, 2], mask=[2, 2])
    crowd.move([(1, 0, 0), (0, 0, 0)], DT)
    assert crowd.positions[0, 0] == 1
    crowd.teleport([0], (0, 0, 0))
    crowd.set([1], mask=3)
    crowd.move([(1, 0, 0), (0, 0, 0)], DT)
    assert crowd.positions[0, 0] == pytest.approx(0.19)
    crowd.teleport([0], (0, 0, 0))
    crowd.set([1], collide=False)
    crowd.move([(1, 0, 0), (0, 0, 0)], DT)
    assert crowd.positions[0, 0] == 1


# --- members


def test_ids_stay_and_are_never_used_twice():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(6))
    single = CharacterController(scene)
    first = int(crowd.ids[0])
    assert crowd.ids.tolist() == list(range(first, first + 6)) and single.id == first + 6
    crowd.remove([1, 4])
    assert (crowd.add(starts(2, seed=9)) - first).tolist() == [7, 8]
    assert (crowd.ids - first).tolist() == [0, 2, 3, 5, 7, 8]
    assert CharacterController(scene).id == first + 9
    assert len(crowd) == 6
    assert crowd.member(first + 5).index == 3
    crowd.remove(range(6))
    assert len(crowd) == 0
    assert crowd.move(np.empty((0, 3)), DT).tolist() == []
    assert crowd.add([(0, 0, 0)]).tolist() == [first + 10]


@pytest.mark.parametrize("triangles", [0, 1000])
@pytest.mark.parametrize("collide", [False, True])
def test_members_move_alike_when_others_come_and_go(collide, triangles, keep_triangles):
    keep_triangles(triangles)
    n = 50
    scene, _, _ = world()
    parameters = varied(n)
    crowd = Crowd(scene, starts(n), order="sequential", collide=collide, group=1, **parameters)
    twin = Crowd(scene, starts(n), order="sequential", collide=collide, group=2, **parameters)
    path = ways(n, 30)
    here = np.arange(n)
    first = int(crowd.ids[0])
    rng = np.random.default_rng(4)
    for k, way in enumerate(path):
        if k % 5 == 3:
            gone = rng.choice(len(here), 3, replace=False)
            # In the other crowd, the same members stand aside instead.
            twin.teleport(here[gone], starts(3) + np.array([1000.0 * (k + 1), 0, 0]))
            twin.set(here[gone], collide=False)
            crowd.remove(gone)
            here = np.delete(here, gone)
        if k % 7 == 2:
            crowd.add([(500 + k, 0, 0)], radius=0.2)
        extra = len(crowd) - len(here)
        crowd.move(np.concatenate([way[here], np.zeros((extra, 3))]), DT, threads=2)
        twin.move(way, DT)
        assert (crowd.positions[: len(here)] == twin.positions[here]).all()
        assert (crowd.ids[: len(here)] - first).tolist() == here.tolist()
        assert crowd.flags[: len(here)].tolist() == twin.flags[here].tolist()
        if extra:
            crowd.remove(len(here) + np.arange(extra))
    assert len(crowd) == n - 18


@pytest.mark.parametrize("triangles", [0, 1000])
def test_a_crowd_moves_on_after_its_ground_is_replaced(triangles, keep_triangles):
    # The members remember numbers of triangles, and the new ground has far fewer of them.
    keep_triangles(triangles)
    fine, coarse = (reports.grid((0, 0), (30, 30), (k, k)) for k in (300, 1))
    n = 64
    at = np.column_stack([np.linspace(2, 28, n), np.linspace(28, 2, n), np.full(n, 1.0)])
    way = np.tile([0.05, -0.02, -0.05], (n, 1))
    ends = []
    for grounds in ((fine, coarse, fine, coarse), (coarse,) * 4):
        scene = pycct.Scene()
        crowd = Crowd(scene, at)
        for ground in grounds:
            actor = scene.add(pycct.Mesh(ground.vertices, ground.triangles))
            for _ in range(3):
                crowd.move(way, DT, threads=2)
            scene.remove(actor)
        ends.append(crowd.positions.copy())
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_a_crowd_that_grows_large_moves_alike(keep_triangles):
    ends = []
    for most in (1000, 60):
        keep_triangles(most)
        crowd = Crowd(world()[0], starts(50))
        for way in ways(50, 8):
            crowd.move(way, DT)
        crowd.add(starts(30, seed=8))
        for way in ways(80, 8):
            crowd.move(way, DT)
        crowd.remove(range(0, 80, 2))
        for way in ways(40, 8):
            crowd.move(way, DT)
        ends.append(told(crowd))
    assert ends[0] == ends[1]


def test_parameters_of_future_members():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0)] * 2, radius=0.3, height=[0.5, 0.6], group=4)
    crowd.add([(1, 0, 0)])
    crowd.add([(2, 0, 0)] * 2, radius=[0.1, 0.2], height=2.0, group=[1, 2])
    assert crowd.get("radius").tolist() == [0.3, 0.3, 0.3, 0.1, 0.2]
    assert crowd.get("height").tolist() == [0.5, 0.6, 1.0, 2.0, 2.0]
    assert crowd.get("group").tolist() == [4, 4, 4, 1, 2]
    assert crowd.get("up").tolist() == [[0, 0, 1]] * 5
    assert crowd.get("rules").tolist() == [pycct.Rules.PHYSX] * 5
    assert crowd.get("collide").dtype == bool and crowd.get("mask").tolist() == [0xFFFFFFFF] * 5


def test_three_ups():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0)] * 3, up=(0, 0, 2))
    assert crowd.get("up").tolist() == [[0, 0, 1]] * 3
    crowd.set([0, 1, 2], up=[(1, 0, 0), (0, 1, 0), (0, 0, 1)])
    assert crowd.get("up").tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    crowd.set([0, 1, 2], up=np.array([0.0, 3.0, 0.0]))
    assert crowd.get("up").tolist() == [[0, 1, 0]] * 3


def test_set_and_resize_do_what_single_controllers_do():
    n = 20
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n))
    heroes = heroes_of(scene, starts(n), {})
    rng = random.Random(7)
    for k, way in enumerate(ways(n, 40)):
        some = rng.sample(range(n), 4)
        if k % 8 == 1:
            radii = [0.2, 0.3, 0.4, 0.5]
            crowd.set(some, radius=radii, step_offset=0.2, mask=0xFFFFFFFF)
            for i, r in zip(some, radii, strict=True):
                heroes[i].radius, heroes[i].step_offset = r, 0.2
        if k % 8 == 3:
            crowd.resize(some, [0.2, 0.5, 1.0, 1.5])
            for i, h in zip(some, [0.2, 0.5, 1.0, 1.5], strict=True):
                heroes[i].resize(h)
        if k % 8 == 5:
            crowd.set(some, position=crowd.positions[some] + [0, 0, 0.25], rules="robust")
            for i in some:
                x, y, z = heroes[i].position
                heroes[i].position, heroes[i].rules = (x, y, z + 0.25), "robust"
        if k % 8 == 7:
            crowd.teleport(some, (0, 0, 3.5))
            for i in some:
                heroes[i].teleport((0, 0, 3.5))
        crowd.move(way, DT)
        for hero, d in zip(heroes, way, strict=True):
            hero.move(d, DT)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]
        assert crowd.flags.tolist() == [int(h.flags) for h in heroes]


def test_unused_parameters_are_dropped():
    # Ten thousand different values pass through a crowd of two; it moves like a new one.
    scene, _, _ = world()
    crowd = Crowd(scene, starts(2))
    for k in range(10_000):
        crowd.set([k % 2], radius=0.2 + k * 1e-5)
    fresh = Crowd(scene, starts(2), radius=crowd.get("radius"))
    for way in ways(2, 10):
        crowd.move(way, DT)
        fresh.move(way, DT)
    assert told(crowd)["positions"] == told(fresh)["positions"]
    assert len(crowd.save()) == len(fresh.save())


def test_active_masks():
    n = 40
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n))
    heroes = heroes_of(scene, starts(n), {})
    rng = np.random.default_rng(5)
    for way in ways(n, 20):
        active = rng.random(n) < 0.5
        flags = crowd.move(way, DT, active=active, threads=2, record_stats=True)
        for hero, d, on in zip(heroes, way, active, strict=True):
            if on:
                hero.move(d, DT)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]
        assert flags.tolist() == [int(h.flags) if on else 0 for h, on in zip(heroes, active, strict=True)]
        assert (crowd.stats["iterations"][~active] == 0).all()
    strided = np.zeros((n, 2), bool)
    strided[:, 1] = active
    before = crowd.positions.copy()
    crowd.move(way, DT, active=strided[:, 1])
    assert ((crowd.positions != before).any(1) <= active).all()


# --- arrays


def test_displacements_of_any_float_type_and_stride():
    n = 25
    scene, _, _ = world()
    way = (ways(n, 1)[0] * 1024).round() / 1024  # the same in float16
    shapes = [
        way,
        way.astype(np.float32),
        way.astype(np.float16),
        way.astype(np.longdouble),
        way.astype(">f8"),
        np.asfortranarray(way),
        np.repeat(way, 2, axis=0)[::2],
        np.repeat(way.astype(np.float32), 3, axis=1)[:, ::3],
        way[::-1].copy()[::-1],
        np.frombuffer(b"x" + way.tobytes(), np.uint8)[1:].view(np.float64).reshape(n, 3),
        way.tolist(),
        tuple(map(tuple, way.tolist())),
    ]
    shapes[0].flags.writeable = False
    ends = []
    for shape in shapes:
        crowd = Crowd(scene, starts(n))
        crowd.move(shape, DT)
        ends.append((crowd.positions.tobytes(), crowd.flags.tobytes()))
    assert len(set(ends)) == 1
    crowd.move(np.broadcast_to(np.array([0.0, 0.0, -0.1]), (n, 3)), DT)
    crowd.move(np.zeros((n, 3), int), DT)


def test_out():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(30))
    out = np.zeros((30, 2), np.uint8)
    for way in ways(30, 5):
        assert crowd.move(way, DT, out=out[:, 1]) is not None
        assert out[:, 1].tolist() == crowd.flags.tolist()
    assert out[:, 1].any() and not out[:, 0].any()
    flags = crowd.move(way, DT)
    kept = flags.copy()
    crowd.move(-way, DT)
    assert flags.tolist() == kept.tolist()


def test_views_are_read_only_and_overwritten_by_the_next_move():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(10))
    names = ("positions", "foot_positions", "flags", "grounded", "ground_normals", "standing_on", "velocities", "ids")
    views = {name: getattr(crowd, name) for name in names}
    path = ways(10, 20)
    for way in path:
        crowd.move(way, DT)
    for name, view in views.items():
        assert view is getattr(crowd, name)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
    fresh = Crowd(scene, starts(10))
    for way in path:
        fresh.move(way, DT)
    for name, view in views.items():
        if name != "ids":
            assert view.tolist() == getattr(fresh, name).tolist(), name
    # Old views remain valid after changes of the crowd, and after its end.
    old = views["positions"].copy()
    crowd.add([(0, 0, 9)])
    crowd.move(np.zeros((11, 3)), DT)
    assert views["positions"].tolist() == old.tolist()
    assert crowd.positions.shape == (11, 3)
    del crowd
    gc.collect()
    assert views["positions"].tolist() == old.tolist()


# --- bytes


@pytest.mark.parametrize("collide", [False, True])
def test_restored_crowds_move_on_to_the_bit(collide):
    n = 60
    scene, lift, post = world()
    crowd = Crowd(scene, starts(n), collide=collide, group=[k % 2 for k in range(n)], **varied(n))
    path = ways(n, 30)
    for k in range(10):
        happen(k, lift, post)
        crowd.move(path[k], DT)
    data = crowd.save()
    assert isinstance(data, bytes)
    before = told(crowd)
    ends = []
    for _ in range(2):
        for k in range(10, 25):
            happen(k, lift, post)
            crowd.move(path[k], DT, threads=2)
        ends.append((told(crowd), crowd.state_hash(), crowd.save()))
        # Moves between save and restore change nothing.
        crowd.remove([3, 5])
        crowd.add([(0, 0, 3)])
        crowd.set(0, radius=0.11, group=9)
        crowd.restore(data)
        assert told(crowd) == before
        assert crowd.save() == data
    assert ends[0] == ends[1]
    # Ids continue after all previous ones.
    assert crowd.add([(0, 0, 3)])[0] > crowd.ids[:-1].max() + 1


def test_saves_of_other_crowds():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(5), order="sequential", radius=0.2)
    data = crowd.save()
    other = Crowd(scene, starts(2))
    with pytest.raises(ValueError, match="ids"):
        other.restore(data)
    assert len(other) == 2
    single = CharacterController(scene)
    ids = crowd.ids.tolist()
    crowd.remove(range(5))
    other.restore(data)
    assert other.ids.tolist() == ids and other.order == "sequential" and other.get("radius").tolist() == [0.2] * 5
    other.add([(0, 0, 0)])
    assert other.get("radius")[5] == 0.2
    elsewhere = Crowd(pycct.Scene(), [])
    elsewhere.restore(data)
    assert elsewhere.ids.tolist() == ids and elsewhere.add([(0, 0, 0)]).tolist() == [ids[-1] + 1]
    with pytest.raises(ValueError, match="not a saved crowd"):
        other.restore(single.save())
    with pytest.raises(ValueError, match="not a saved character"):
        single.restore(data)
    with pytest.raises(TypeError, match="data"):
        other.restore("text")


def test_damaged_saves_do_no_harm():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(4), collide=True, group=[0, 0, 1, 1])
    for way in ways(4, 10):
        crowd.move(way, DT)
    good = crowd.save()
    for end in range(len(good)):
        with pytest.raises(ValueError, match="data"):
            crowd.restore(good[:end])
    for k in range(0, len(good), 3):
        with pytest.raises(ValueError, match="data"):
            crowd.restore(good[:k] + bytes([good[k] ^ 0x55]) + good[k + 1 :])
    assert crowd.save() == good
    old = good[:8] + struct.pack("<I", 99) + good[12:]
    with pytest.raises(ValueError, match="results version 99"):
        crowd.restore(old)
    # Forged data with a right checksum: restore raises, or the crowd still moves.
    head, body = good[: saves.HEADER.size], good[saves.HEADER.size :]
    rng = np.random.default_rng(1)
    specials = [struct.pack("<d", v) for v in (math.nan, math.inf, 1e308, -1e308, 1e-320, -1.0, 1e13)]
    specials += [b"\xff" * 8, b"\x7f" * 8, bytes(8)]
    taken = refused = 0
    for trial in range(1200):
        forged = bytearray(body)
        for _ in range(int(rng.integers(1, 4))):
            if trial % 2:
                forged[int(rng.integers(len(body)))] = int(rng.integers(256))
            else:
                k = int(rng.integers((len(body) - 8) // 4)) * 4
                forged[k : k + 8] = specials[int(rng.integers(len(specials)))]
        data = head[:-4] + struct.pack("<I", zlib.crc32(bytes(forged))) + bytes(forged)
        before = crowd.save()
        try:
            crowd.restore(data)
        except ValueError:
            assert crowd.save() == before
            refused += 1
            continue
        taken += 1
        for _ in range(2):
            try:
                crowd.move(np.full((len(crowd), 3), -0.05), DT)
            except (ValueError, FloatingPointError):
                pass
            assert np.isfinite(crowd.positions).all()
        crowd.save()
        try:
            crowd.add([(0, 0, 0)])
        except ValueError:
            pass
        crowd.remove(range(len(crowd)))
        crowd.restore(good)
    assert taken > 100 and refused > 100


def test_pickle_and_copies():
    scene, _, _ = world()
    crowd = Crowd(scene, starts(12), collide=True, radius=0.3)
    crowd.move(ways(12, 1)[0], DT)
    again = pickle.loads(pickle.dumps(crowd))
    deep = copy.deepcopy(crowd)
    shallow = copy.copy(crowd)
    assert again.scene is not scene and deep.scene is not scene and shallow.scene is scene
    for twin in (again, deep):
        assert twin.save() == crowd.save()
        assert twin.scene.character(int(crowd.ids[3])) == twin.member(int(crowd.ids[3]))
    # In the same scene the copies have new ids.
    assert not set(shallow.ids) & set(crowd.ids)
    assert shallow.positions.tolist() == crowd.positions.tolist()
    shallow.remove(range(12))
    for way in ways(12, 10, seed=5):
        ends = {(twin.move(way, DT).tobytes(), twin.state_hash()) for twin in (crowd, again, deep)}
        assert len(ends) == 1


def test_the_hash_changes_with_every_position():
    places = np.arange(15.0).reshape(5, 3)
    first = Crowd(pycct.Scene(), places).state_hash()
    assert isinstance(first, int) and 0 <= first < 2**64
    seen = {first}
    for i in range(5):
        for axis in range(3):
            moved = places.copy()
            moved[i, axis] = np.nextafter(moved[i, axis], 100)
            seen.add(Crowd(pycct.Scene(), moved).state_hash())
    assert len(seen) == 16
    for other in (-places, places[::-1], places[:4]):
        assert Crowd(pycct.Scene(), other).state_hash() != first


def test_the_hash_depends_on_the_results_version(monkeypatch):
    crowd = reference.Crowd(reference.Scene(), [(1, 2, 3)])
    compiled = Crowd(pycct.Scene(), [(1, 2, 3)])
    first = crowd.state_hash()
    assert first == compiled.state_hash()
    monkeypatch.setattr("pycct.reference.core.RESULTS_VERSION", 99)
    assert crowd.state_hash() != first
    monkeypatch.setattr("pycct.crowd.crowd.RESULTS_VERSION", 99)
    assert compiled.state_hash() == crowd.state_hash()


# --- the scene


def test_the_scene_may_change_between_moves():
    n = 40
    scene, lift, _ = world()
    crowd = Crowd(scene, starts(n), group=1)
    heroes = heroes_of(scene, starts(n), {})
    added = None
    for k, way in enumerate(ways(n, 40)):
        if k == 10:
            added = scene.add(pycct.Box((20, 20, 0.2)), position=(0, 0, 1.0))
        if k == 20:
            added.move_to((0, 0, 0.5))
        if k == 25:
            added.layer = 2
            crowd.set(range(0, n, 2), mask=1)
            for hero in heroes[::2]:
                hero.mask = 1
        if k == 30:
            scene.remove(added)
            scene.remove(lift)
        crowd.move(way, DT, threads=2)
        for hero, d in zip(heroes, way, strict=True):
            hero.move(d, DT)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]


def test_shift_origin():
    n = 30
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n), collide=True)
    twin = Crowd(world()[0], starts(n), collide=True)
    feet = crowd.foot_positions
    path = ways(n, 12)
    for k, way in enumerate(path):
        if k == 6:
            crowd.move(np.zeros((n, 3)), DT, record_hits=True)
            twin.move(np.zeros((n, 3)), DT, record_hits=True)
            scene.shift_origin((512, -256, 64))
            np.testing.assert_allclose(
                crowd.hits["position"], twin.hits["position"] - np.array([512, -256, 64]), atol=1e-12
            )
        crowd.move(way, DT)
        twin.move(way, DT)
    np.testing.assert_allclose(crowd.positions, twin.positions - np.array([512, -256, 64]), atol=1e-9)
    assert crowd.flags.tolist() == twin.flags.tolist()
    assert feet is crowd.foot_positions
    place = crowd.positions.tolist()
    with pytest.raises(ValueError, match="offset"):
        scene.shift_origin((1e12, 0, 0))
    assert crowd.positions.tolist() == place


def test_a_lift_carries_a_crowd():
    scene = pycct.Scene()
    lift = scene.add(pycct.Box((5, 5, 0.5)), position=(0, 0, -0.5), body="kinematic", behavior=pycct.Behavior.CAN_RIDE)
    crowd = Crowd(scene, [(x, 0, 0.92) for x in range(-3, 4)])
    for _ in range(3):
        crowd.move(np.full((7, 3), [0, 0, -0.02]), DT)
    before = crowd.positions.copy()
    assert (crowd.standing_on == lift.id).all()
    for k in range(1, 11):
        lift.move_to((0.05 * k, 0, -0.5 + 0.03 * k))
        crowd.move(np.full((7, 3), [0, 0, -0.02]), DT, threads=2)
    np.testing.assert_allclose(crowd.positions - before, np.tile([0.5, 0, 0.3], (7, 1)), atol=1e-9)
    assert crowd.get("up").shape == (7, 3)


# --- guards


def test_a_second_thread_gets_an_error():
    n = 3000
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n))
    path = ways(n, 40)
    begun = threading.Event()
    done = []

    def go():
        begun.set()
        done.append(crowd.run(path, DT, threads=2).shape)

    thread = threading.Thread(target=go)
    thread.start()
    begun.wait()
    refused = 0
    while not done:
        for use in (
            lambda: crowd.move(path[0], DT),
            lambda: crowd.positions,
            lambda: crowd.set(0, radius=0.3),
            lambda: crowd.add([(0, 0, 0)]),
            lambda: crowd.remove(0),
            lambda: crowd.save(),
            lambda: crowd.hits,
            lambda: crowd.state_hash(),
        ):
            if done:
                break
            try:
                use()
            except RuntimeError as problem:
                assert "in use" in str(problem)
                refused += 1
            else:
                # The error comes before the run starts or after its end.
                break
    thread.join()
    assert refused > 0
    crowd.positions


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_crowd_goes_on_in_a_forked_child():
    n = 300
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n), collide=True)
    path = ways(n, 6)
    for way in path[:3]:
        crowd.move(way, DT, threads=3)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for way in path[3:]:
                crowd.move(way, DT, threads=3)
            os.write(write, struct.pack("<Q", crowd.state_hash()))
        finally:
            os._exit(0)
    for way in path[3:]:
        crowd.move(way, DT, threads=3)
    os.waitpid(child, 0)
    assert struct.unpack("<Q", os.read(read, 8))[0] == crowd.state_hash()
    os.close(read)
    os.close(write)


def bad_calls(crowd, n):
    """Return (argument, error, call)."""
    ok = np.zeros((n, 3))
    nan, far = ok.copy(), ok.copy()
    nan[1, 2], far[0, 0] = math.nan, 2e12
    return [
        ("displacements", ValueError, lambda: crowd.move(ok[1:], DT)),
        ("displacements", ValueError, lambda: crowd.move(ok[:, :2], DT)),
        ("displacements", ValueError, lambda: crowd.move(ok.ravel(), DT)),
        ("displacements", ValueError, lambda: crowd.move(nan, DT)),
        ("displacements", ValueError, lambda: crowd.move(nan.astype(np.float32), DT)),
        ("displacements", ValueError, lambda: crowd.move(far, DT)),
        ("displacements", ValueError, lambda: crowd.move((far * 1e6).astype(np.longdouble), DT)),
        ("displacements", TypeError, lambda: crowd.move(ok.astype(complex), DT)),
        ("displacements", TypeError, lambda: crowd.move(ok.astype(str), DT)),
        ("displacements", TypeError, lambda: crowd.move(ok.astype(bool), DT)),
        ("displacements", TypeError, lambda: crowd.move([[1], [1, 2], 3], DT)),
        ("displacements", (TypeError, ValueError), lambda: crowd.move(None, DT)),
        ("dt", ValueError, lambda: crowd.move(ok, -1.0)),
        ("dt", ValueError, lambda: crowd.move(ok, math.nan)),
        ("dt", ValueError, lambda: crowd.move(ok, 1e-200)),
        ("dt", TypeError, lambda: crowd.move(ok, "1")),
        ("active", ValueError, lambda: crowd.move(ok, DT, active=[True])),
        ("active", TypeError, lambda: crowd.move(ok, DT, active=[1] * n)),
        ("threads", ValueError, lambda: crowd.move(ok, DT, threads=0)),
        ("threads", TypeError, lambda: crowd.move(ok, DT, threads=1.5)),
        ("record_hits", TypeError, lambda: crowd.move(ok, DT, record_hits=1)),
        ("record_stats", TypeError, lambda: crowd.move(ok, DT, record_stats=None)),
        ("min_distance", ValueError, lambda: crowd.move(ok, DT, min_distance=-1)),
        ("out", ValueError, lambda: crowd.move(ok, DT, out=np.zeros(n + 1, np.uint8))),
        ("out", TypeError, lambda: crowd.move(ok, DT, out=np.zeros(n))),
        ("out", TypeError, lambda: crowd.move(ok, DT, out=[0] * n)),
        ("out", ValueError, lambda: crowd.move(ok, DT, out=crowd.flags)),
        ("displacements", ValueError, lambda: crowd.run(ok, DT)),
        ("displacements", ValueError, lambda: crowd.run(np.zeros((2, n, 2)), DT)),
        ("displacements", ValueError, lambda: crowd.run([ok, nan], DT)),
        ("threads", ValueError, lambda: crowd.run([ok], DT, threads=0)),
        ("indices", ValueError, lambda: crowd.teleport([n], [(0, 0, 0)])),
        ("indices", ValueError, lambda: crowd.teleport([-n - 1], [(0, 0, 0)])),
        ("indices", ValueError, lambda: crowd.teleport([-1, n - 1], [(0, 0, 0)] * 2)),
        ("indices", TypeError, lambda: crowd.remove(True)),
        ("indices", TypeError, lambda: crowd.remove(slice("a"))),
        ("indices", ValueError, lambda: crowd.remove(slice(0, 1, 0))),
        ("indices", ValueError, lambda: crowd.teleport([1, 1], [(0, 0, 0)] * 2)),
        ("indices", ValueError, lambda: crowd.teleport([[0, 1]], [(0, 0, 0)] * 2)),
        ("indices", ValueError, lambda: crowd.remove([2**63])),
        ("indices", TypeError, lambda: crowd.remove([0.0])),
        ("indices", ValueError, lambda: crowd.remove(np.zeros(n + 1, bool))),
        ("indices", TypeError, lambda: crowd.remove(None)),
        ("indices", ValueError, lambda: crowd.set(n, radius=1)),
        ("positions", ValueError, lambda: crowd.teleport([0], [(0, 0)])),
        ("positions", ValueError, lambda: crowd.teleport([0], [(0, 0, math.inf)])),
        ("positions", ValueError, lambda: crowd.add([(0, 0, 2e12)])),
        ("positions", ValueError, lambda: crowd.set([0], position=(0, math.nan, 0))),
        ("radius", ValueError, lambda: crowd.set([0, 1], radius=[0.3, -1])),
        ("radius", ValueError, lambda: crowd.set([0, 1], radius=[0.3])),
        ("radius", ValueError, lambda: crowd.set([0, 1], radius=math.nan)),
        ("step_offset", ValueError, lambda: crowd.set([0, 1], step_offset=[0.1, 9])),
        ("rules", ValueError, lambda: crowd.set([0], rules="mine")),
        ("rules", TypeError, lambda: crowd.set([0], rules=3)),
        ("group", ValueError, lambda: crowd.set([0], group=-1)),
        ("group", TypeError, lambda: crowd.set([0], group=1.0)),
        ("group", ValueError, lambda: crowd.set([0, 1], group=[1, 2, 3])),
        ("filter", TypeError, lambda: crowd.set([0], filter=len)),
        ("up", ValueError, lambda: crowd.set([0], up=(0, 0, 0))),
        ("layer", ValueError, lambda: crowd.set([0], layer=-1)),
        ("slope_limit", ValueError, lambda: crowd.add([(0, 0, 0)], slope_limit=2)),
        ("height", ValueError, lambda: crowd.resize([0], -1)),
        ("height", ValueError, lambda: crowd.resize([0, 1], [1.0])),
        ("height", ValueError, lambda: crowd.can_resize(math.nan)),
        ("max_distance", ValueError, lambda: crowd.probe_ground(-1)),
        ("max_distance", TypeError, lambda: crowd.snap_to_ground("1")),
        ("threads", ValueError, lambda: crowd.probe_ground(1, threads=-3)),
        ("dt", ValueError, lambda: crowd.separate(-1)),
        ("name", ValueError, lambda: crowd.get("speed")),
    ]


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_bad_arguments_are_named_and_change_nothing(module):
    n = 4
    scene = world(module)[0]
    crowd = module.Crowd(scene, starts(n), collide=True)
    crowd.move(ways(n, 1)[0], DT)
    before = crowd.save()
    for name, error, call in bad_calls(crowd, n):
        with pytest.raises(error, match=name):
            call()
        assert crowd.save() == before, name


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_bad_arguments_of_the_constructor(module):
    scene = module.Scene()
    for name, error, call in [
        ("scene", TypeError, lambda: module.Crowd(None, [(0, 0, 0)])),
        ("positions", ValueError, lambda: module.Crowd(scene, (0, 0, 0))),
        ("positions", ValueError, lambda: module.Crowd(scene, [(0, 0, math.nan)])),
        ("positions", TypeError, lambda: module.Crowd(scene, ["abc"])),
        ("order", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], order="random")),
        ("group", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], group=2**31)),
        ("radius", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], radius=0)),
        ("radius", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], radius=[1, 2])),
        ("height", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], height=[-1])),
        ("step_offset", ValueError, lambda: module.Crowd(scene, [(0, 0, 0)], step_offset=5)),
        ("collide", TypeError, lambda: module.Crowd(scene, [(0, 0, 0)], collide=1)),
        ("on_hit", TypeError, lambda: module.Crowd(scene, [(0, 0, 0)], on_hit=print)),
        ("filter", TypeError, lambda: module.Crowd(scene, [], filter=[])),
        ("speed", TypeError, lambda: module.Crowd(scene, [(0, 0, 0)], speed=1)),
    ]:
        with pytest.raises(error, match=name):
            call()
    assert not scene.crowds
    # The failed constructor leaves no character in the scene.
    hero = module.CharacterController(scene, (-2, 0, 0), collide=True)
    hero.move((4, 0, 0), DT)
    assert hero.position == (2, 0, 0)


@pytest.mark.parametrize("record_hits", [False, True])
def test_a_cause_that_moves_a_character_too_far_leaves_it_in_place(record_hits):
    # Positions and displacements are near; a platform or a recovery leads far away.
    scene = pycct.Scene()
    lift = scene.add(pycct.Box((2e11, 5, 0.5)), body="kinematic", behavior=pycct.Behavior.CAN_RIDE)
    riders = Crowd(scene, [(9e10, 0, 1.5)])
    riders.move([(0, 0, -0.5)], DT, record_hits=record_hits)
    riders.move([(0, 0, -0.1)], DT, record_hits=record_hits)
    lift.move_to((9.5e11, 0, 0))
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)), (0, 0, 1e12))
    for crowd in (riders, Crowd(scene, [(0, 0, 0)])):
        before = crowd.save()
        with pytest.raises(ValueError, match="displacements must not lead beyond"):
            crowd.move([(0, 0, -0.1)], DT, record_hits=record_hits)
        assert crowd.save() == before
        crowd.restore(before)


def test_too_far_changes_nothing():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0), (9e11, 0, 0), (5, 0, 0)], collide=True)
    before = crowd.save()
    with pytest.raises(ValueError, match="displacements must not lead beyond"):
        crowd.move([(1, 0, 0), (5e11, 0, 0), (1, 0, 0)], DT, record_hits=True)
    assert crowd.save() == before
    assert crowd.positions.tolist() == [[0, 0, 0], [9e11, 0, 0], [5, 0, 0]]
    with pytest.raises(ValueError, match="displacements must not lead beyond"):
        crowd.run(np.full((3, 3, 3), [4e10, 0, 0]), DT)
    assert crowd.save() == before
    hero = CharacterController(scene, (5, 3, 0), collide=True)
    hero.move((0, -6, 0), DT)
    assert hero.position[1] == pytest.approx(0.81)


def still(scene):
    """Return whether the scene contains only static actors."""
    return all(a.body == "static" for a in scene.actors) and not scene.obstacles


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("triangles", [0, 1000])
def test_a_state_changed_in_place_is_the_one_that_is_copied(collide, triangles, keep_triangles):
    """Infallible moves happen in place.

    The crowd copies its states first if something moves or hits are recorded.
    """
    keep_triangles(triangles)
    n, steps = 80, 30
    crowds = []
    for k in range(4):
        scene = pycct.Scene()
        scene.add(terrain(pycct))
        scene.add(pycct.Box((3, 3, 0.2)), position=(4, 4, 1))
        if k == 1:
            scene.add(pycct.Box((1, 1, 1)), position=(1e6, 0, 0), body="kinematic")
        else:
            # The members have the same ids.
            scene.remove(scene.add(pycct.Box((1, 1, 1))))
        crowds.append(Crowd(scene, starts(n), collide=collide, **varied(n)))
    assert [still(crowd.scene) for crowd in crowds] == [True, False, True, True]
    rng = np.random.default_rng(4)
    for k, way in enumerate(ways(n, steps)):
        active = rng.random(n) < 0.9
        threads = 1 + k % 3
        crowds[0].move(way, DT, active, threads)
        crowds[1].move(way, DT, active, threads)
        crowds[2].move(way, DT, active, threads, record_hits=True)
        crowds[3].move(way, DT, active, threads, record_hits=k % 2 == 0, record_stats=True)
        for crowd in crowds[1:]:
            assert told(crowd) == told(crowds[0])
    assert len(crowds[2].hits)
    assert len({crowd.state_hash() for crowd in crowds}) == 1
    # One run of several ticks gives the same.
    path = ways(n, 10, seed=8)
    ends = [crowd.run(path, DT, threads=2).tobytes() for crowd in crowds]
    assert len(set(ends)) == 1 and len({crowd.state_hash() for crowd in crowds}) == 1


NEAR = 1e11  # up to here a character moves in place


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("record_hits", [False, True])
@pytest.mark.parametrize("moving", [False, True])
def test_far_from_the_origin_as_single_controllers(order, record_hits, moving):
    """Positions near the bound for moves in place, and near the largest coordinate."""
    places, way = [], []
    for at in (0.0, NEAR * (1 - 1e-9), NEAR, np.nextafter(NEAR, np.inf), NEAR * (1 + 1e-9), 5e11, 9.9e11):
        for go in (1.0, NEAR / 2, np.nextafter(NEAR, 0), NEAR, np.nextafter(NEAR, np.inf), 9e11):
            for sign in (1.0, -1.0):
                if abs(at + sign * go) <= 1e12:
                    places.append((at, 4.0 * len(places), 0.0))
                    way.append((sign * go, 0.0, 0.0))
    scenes = [pycct.Scene(), pycct.Scene()]
    for scene in scenes:
        scene.add(pycct.Plane((0, 0, 1), -5))
        if moving:
            scene.add(pycct.Box((1, 1, 1)), (0, -1e6, 0), body="kinematic")
    crowd = Crowd(scenes[0], places, order=order)
    heroes = heroes_of(scenes[1], places, {})
    for sign in (1, -1):
        flags = crowd.move(sign * np.array(way), DT, threads=2, record_hits=record_hits)
        for hero, d in zip(heroes, way, strict=True):
            hero.move(tuple(sign * x for x in d), DT)
        assert crowd.positions.tolist() == [list(h.position) for h in heroes]
        assert crowd.velocities.tolist() == [list(h.velocity) for h in heroes]
        assert flags.tolist() == [int(h.flags) for h in heroes]
    assert abs(crowd.positions).max() > 9e11


def far_failures():
    """Positions and displacements; only the last character would leave the world."""
    yield [(0, 0, 0), (9e11, 0, 0)], [(1, 0, 0), (2e11, 0, 0)]
    yield [(0, 0, 0), (0, 9.5e11, 0)], [(1, 0, 0), (0, 9e10, 0)]
    yield [(0, 0, 0), (-5e11, 0, 0)], [(NEAR / 2, 0, 0), (-9e11, 0, 0)]
    yield [(0, 0, 0), (0, 0, 1e12)], [(0, 0, 1), (0, 0, 1e4)]
    yield [(0, 0, 0), (2e11, 0, 0)], [(1e12, 0, 0), (1e12, 0, 0)]


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("record_hits", [False, True])
def test_a_member_that_would_go_too_far_keeps_all_in_place(collide, order, record_hits):
    for places, way in far_failures():
        scene = pycct.Scene()
        scene.add(pycct.Box((1, 1, 1)), (3, 0, 0))
        crowd = Crowd(scene, [*places, (2, 9, 0)], collide=collide, order=order)
        way = np.array([*way, (0.1, 0, 0)])
        crowd.move(np.zeros((3, 3)), DT)
        views = {name: getattr(crowd, name) for name in ("positions", "velocities", "grounded", "flags", "standing_on")}
        scene.overlap(pycct.Sphere(1), (0, 0, 0), include="characters")
        before, shown = crowd.save(), told(crowd)
        out = np.full(3, 77, np.uint8)
        for threads in (1, 2):
            with pytest.raises(ValueError, match="displacements must not lead beyond"):
                crowd.move(way, DT, threads=threads, record_hits=record_hits, out=out)
            with pytest.raises(ValueError, match="displacements must not lead beyond"):
                crowd.run(way[None], DT, threads=threads)
            assert crowd.save() == before and told(crowd) == shown and out.tolist() == [77] * 3
        for name, view in views.items():
            assert view is getattr(crowd, name)
        assert crowd.positions.tolist()[:2] == [list(map(float, p)) for p in places]
        hit = scene.raycast((2, 9, 5), (0, 0, -1), 9, include="characters")
        assert hit.controller == crowd.member(crowd.ids[2])
        # The others can move without it.
        crowd.move(way, DT, active=[False, False, True], record_hits=record_hits)
        assert crowd.positions[2].tolist() == [2.1, 9, 0]


def test_many_small_displacements_that_lead_too_far_in_one_run():
    crowd = Crowd(pycct.Scene(), [(0, 0, 0), (0.95e11, 5, 0)])
    before = crowd.save()
    with pytest.raises(ValueError, match="displacements must not lead beyond"):
        crowd.run(np.full((12, 2, 3), (0.9e11, 0, 0)), DT, threads=2)
    assert crowd.save() == before and crowd.positions.tolist() == [[0, 0, 0], [0.95e11, 5, 0]]
    path = crowd.run(np.full((10, 2, 3), (0.9e11, 0, 0)), DT)
    assert path[-1, :, 0].tolist() == crowd.positions[:, 0].tolist() == pytest.approx([9e11, 9.95e11])


def test_uninitialised_objects():
    with pytest.raises(RuntimeError, match="not initialised"):
        Crowd.__new__(Crowd).positions
    with pytest.raises(RuntimeError, match="once"):
        Crowd(pycct.Scene(), []).__init__(pycct.Scene(), [])
    with pytest.raises(TypeError, match="CrowdMember"):
        pycct.CrowdMember()
    for name in ("position", "index", "radius", "shape"):
        with pytest.raises(RuntimeError, match="CrowdMember"):
            getattr(pycct.CrowdMember.__new__(pycct.CrowdMember), name)


def test_the_defaults_are_those_of_single_controllers():
    scene = pycct.Scene()
    crowd = Crowd(scene, [(0, 0, 0)])
    hero = CharacterController(scene)
    names = (
        "radius height up step_offset contact_offset slope_limit climbing_mode non_walkable_mode rules "
        "overlap_recovery prevent_vertical_sliding invisible_wall_height max_jump_height layer mask collide surface"
    ).split()
    for name in names:
        value = crowd.get(name)[0]
        assert (tuple(value) if name == "up" else value) == getattr(hero, name), name


def test_displacements_changed_by_others_during_a_move_do_no_harm():
    n = 2000
    scene, _, _ = world()
    crowd = Crowd(scene, starts(n))
    way = ways(n, 1)[0].copy()
    stop = []

    def spoil():
        while not stop:
            way[:] = math.nan
            way[:] = 0.0

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        for _ in range(60):
            try:
                crowd.move(way, DT, threads=2)
            except ValueError as problem:
                assert "displacements" in str(problem)
            assert np.isfinite(crowd.positions).all()
    finally:
        stop.append(1)
        thread.join()


# --- memory


NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]


libc = ctypes.CDLL(None) if os.name == "posix" else None
has_mallinfo = hasattr(libc, "mallinfo2")
if has_mallinfo:
    libc.mallinfo2.restype = Info


def allocated():
    """Return the number of bytes that malloc has handed out."""
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


@pytest.mark.skipif(not has_mallinfo, reason="asks glibc")
@pytest.mark.parametrize("collide", [False, True])
def test_memory_does_not_grow_once_warm(collide):
    n = 200
    scene, _, _ = world()
    places = starts(n)
    crowd = Crowd(scene, places, collide=collide)
    path = ways(n, 30)
    out = np.zeros(n, np.uint8)
    crowd.velocities

    def growth(threads):
        before = allocated()
        crowd.teleport(range(n), places)
        for way in path:
            crowd.move(way, DT, threads=threads, out=out, record_hits=True)
        return allocated() - before

    growth(1), growth(1)
    assert [growth(1) for _ in range(10)] == [0] * 10
    # Chance decides which thread moves which character. Each thread has its own memory, which grows
    # once, perhaps late. A leak grows in every lap.
    assert sum(growth(2) != 0 for _ in range(40)) < 10


@pytest.mark.slow
@pytest.mark.skipif(not has_mallinfo, reason="asks glibc")
@pytest.mark.parametrize("collide", [False, True])
def test_a_hundred_thousand_characters_take_at_most_a_kibibyte_each(collide):
    n = 100_000
    scene = pycct.Scene()
    scene.add(terrain(pycct, 120))
    gc.collect()
    before = allocated()
    crowd = Crowd(scene, starts(n, span=58) + np.array([0.0, 0, 1]), collide=collide, group=np.arange(n) // 100)
    for way in ways(n, 6):
        crowd.move(way, DT, threads=2)
    assert (allocated() - before) / n < 1024


# --- move_many


@pytest.mark.parametrize("triangles", [0, 1000])
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_move_many_is_a_loop(collide, threads, triangles, keep_triangles):
    keep_triangles(triangles)
    n = 150
    scenes = [world(), world()]
    parameters = varied(n)
    team = heroes_of(scenes[0][0], starts(n), parameters, collide=collide)
    heroes = heroes_of(scenes[1][0], starts(n), parameters, collide=collide)
    order = np.random.default_rng(3).permutation(n)
    out = np.zeros(n, np.uint8)
    for k, way in enumerate(ways(n, 20)):
        for _, lift, post in scenes:
            happen(k, lift, post)
        flags = pycct.move_many([team[i] for i in order], way[order], DT, threads=threads)
        for i in order:
            heroes[i].move(way[i], DT)
        assert [h.position for h in team] == [h.position for h in heroes]
        assert flags.tolist() == [int(heroes[i].flags) for i in order]
        assert [h.velocity for h in team] == [h.velocity for h in heroes]
        assert [h.save() for h in team[:5]] == [h.save() for h in heroes[:5]]
        assert [[(x.position, x.normal) for x in h.hits] for h in team] == [
            [(x.position, x.normal) for x in h.hits] for h in heroes
        ]
    assert str(team[3].explain_last()).splitlines()[1:] == str(heroes[3].explain_last()).splitlines()[1:]
    assert pycct.move_many(tuple(team), way, DT, out=out, min_distance=1e-3) is out
    assert out.tolist() == [int(h.flags) for h in team]


@pytest.mark.parametrize("threads", [1, 2])
def test_candidates_of_a_team_follow_every_change(threads, keep_triangles):
    # Large teams, small teams and single moves in turn; walls; other parameters; another world.
    n = 130
    scenes = [world(), world()]
    team, heroes = (heroes_of(scene, starts(n), varied(n)) for scene, _, _ in scenes)
    rng = np.random.default_rng(5)
    for k, way in enumerate(ways(n, 60)):
        for _, lift, post in scenes:
            happen(k, lift, post)
        if k % 7 == 3:
            for scene, _, _ in scenes:
                scene.add(pycct.Box((0.4, 0.4, 0.4)), position=(k / 10 - 3, 1, 1.2))
        for i in rng.integers(0, n, 6).tolist():
            name, value = (
                ("invisible_wall_height", (0.0, 2.0)[k % 2]),
                ("mask", (0xFFFFFFFF, 2)[k % 2]),
                ("radius", (0.3, 0.4)[k % 2]),
                ("height", (0.5, 1.0)[k % 2]),
            )[i % 4]
            for group in (team, heroes):
                setattr(group[i], name, value)
            if i % 5 == 0:
                for group in (team, heroes):
                    group[i].teleport(tuple(starts(1, seed=k)[0].tolist()))
        keep_triangles((0, 1000)[k // 3 % 2])
        if k % 5 == 4:
            flags = [int(hero.move(d, DT)) for hero, d in zip(team, way, strict=True)]
        else:
            flags = pycct.move_many(team, way, DT, threads=threads).tolist()
        assert flags == [int(hero.move(d, DT)) for hero, d in zip(heroes, way, strict=True)]
        assert [hero.save() for hero in team] == [hero.save() for hero in heroes]


@pytest.mark.parametrize("row", [0, 1, 31, 32, 33, 95, 96, 150, 198, 199])
def test_a_team_with_an_invalid_controller_does_not_move(row):
    # Threads may have started before the call finds the invalid controller.
    n = 200
    scene, _, _ = world()
    team = heroes_of(scene, starts(n), {})
    way = ways(n, 1)[0]
    gone = CharacterController(scene)
    gone.remove()
    asked = way.copy()
    asked[row] = 9e11, 0, 0

    class Hero(CharacterController):
        pass

    unmade = Hero.__new__(Hero)
    before = [hero.save() for hero in team]
    for wrong, error, what in (
        (None, TypeError, "controllers"),
        (team[(row + 7) % n], ValueError, "different"),
        (gone, RuntimeError, "removed"),
        (unmade, RuntimeError, "initialised"),
    ):
        with pytest.raises(error, match=what):
            pycct.move_many([*team[:row], wrong, *team[row + 1 :]], way, DT, threads=2)
    team[row].position = (9e11, 0, 5)
    with pytest.raises(ValueError, match=f"row {row} "):
        pycct.move_many(team, asked, DT, threads=2)
    team[row].restore(before[row])
    assert [hero.save() for hero in team] == before
    # All controllers are free.
    twins = heroes_of(world()[0], starts(n), {})
    flags = pycct.move_many(team, way, DT, threads=2).tolist()
    assert flags == [int(hero.move(d, DT)) for hero, d in zip(twins, way, strict=True)]
    assert [hero.position for hero in team] == [hero.position for hero in twins]


@pytest.mark.parametrize("triangles", [0, 1000])
def test_a_team_of_several_scenes(triangles, keep_triangles):
    keep_triangles(triangles)
    n = 210
    for where in ([0] * n, [0] * 50 + [1] * 100 + [0] * 60, [0, 1, 2] * 70):
        teams = []
        for _ in range(2):
            scenes = [world()[0], world()[0], pycct.Scene()]
            scenes[1].add(pycct.Box((9, 9, 0.3)), (0, 0, 0.2))
            # First few candidates are near, then many.
            scenes[2].add(pycct.Box((20, 20, 1)))
            scenes[2].add(terrain(pycct), (8, 0, 0))
            heroes = [CharacterController(scenes[k], p) for k, p in zip(where, starts(n).tolist(), strict=True)]
            heroes[3].on_hit = heroes[140].on_hit = lambda hit: None
            heroes[150].add_proxy(layer=0)
            teams.append(heroes)
        for way in ways(n, 25):
            flags = pycct.move_many(teams[0], way, DT, threads=2).tolist()
            assert flags == [int(hero.move(d, DT)) for hero, d in zip(teams[1], way, strict=True)]
            assert [h.position for h in teams[0]] == [h.position for h in teams[1]]
            assert [len(h.hits) for h in teams[0]] == [len(h.hits) for h in teams[1]]
        assert teams[0][150].proxy.position == teams[0][150].position


def test_a_team_warns_once_of_each(caplog):
    scene = pycct.Scene()
    scene.add(pycct.Box((50, 50, 1)), (0, 0, -1))
    scene.add(pycct.Box((0.1, 50, 5)), (5, 0, 5))
    team = [CharacterController(scene, (4.4, k, 0.95)) for k in range(3)]
    single = CharacterController(scene, (4.4, -5, 0.95))
    with caplog.at_level("WARNING", "pycct"):
        for _ in range(40):
            pycct.move_many(team, np.tile((0.3, 0, -0.01), (3, 1)), DT)
            single.move((0.3, 0, -0.01), DT)
    told = [record.getMessage() for record in caplog.records]
    assert [sum(repr(hero) in line for line in told) for hero in (*team, single)] == [1] * 4
    assert all("11 moves" in line for line in told)


def test_move_many_calls_callbacks():
    n = 120
    scene, lift, _ = world()
    seen = []
    team = heroes_of(scene, starts(n, span=4), {})
    team[5].on_hit = lambda hit: seen.append(hit.other)
    team[7].filter = lambda other: other is not lift
    team[9].behavior = lambda other: pycct.Behavior.CAN_SLIDE
    proxy = team[11].add_proxy(layer=0)
    twin = Crowd(scene, starts(n, span=4))
    for way in ways(n, 15):
        pycct.move_many(team, way, DT, threads=2)
        twin.move(way, DT)
    plain = [k for k in range(n) if k not in (7, 9)]
    assert [list(team[k].position) for k in plain] == twin.positions[plain].tolist()
    assert seen
    assert proxy.position == team[11].position
    # The caller gets a callback's exception; controllers without callbacks have not moved.
    team[5].on_hit = lambda hit: 1 / 0
    before = [h.position for h in team]
    with pytest.raises(ZeroDivisionError):
        pycct.move_many(team, np.full((n, 3), [0, 0, -0.5]), DT)
    assert [h.position for h in team] == before
    team[5].on_hit = lambda hit: team[0].move((0, 0, 0), DT)
    with pytest.raises(RuntimeError, match="in use"):
        pycct.move_many(team, np.full((n, 3), [0, 0, -0.5]), DT)
    team[5].on_hit = None
    pycct.move_many(team, np.zeros((n, 3)), DT)


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_move_many_refuses_bad_input(module):
    scene = module.Scene()
    team = [module.CharacterController(scene) for _ in range(3)]
    ok = np.zeros((3, 3))
    for name, error, call in [
        ("controllers", TypeError, lambda: module.move_many(team[0], ok, DT)),
        ("controllers", TypeError, lambda: module.move_many([team[0], None, team[1]], ok, DT)),
        ("controllers", ValueError, lambda: module.move_many([team[0], team[0], team[1]], ok, DT)),
        ("displacements", ValueError, lambda: module.move_many(team, ok[:2], DT)),
        ("displacements", ValueError, lambda: module.move_many(team, ok + math.nan, DT)),
        ("dt", ValueError, lambda: module.move_many(team, ok, -1)),
        ("threads", ValueError, lambda: module.move_many(team, ok, DT, threads=0)),
        ("out", ValueError, lambda: module.move_many(team, ok, DT, out=np.zeros(2, np.uint8))),
        ("min_distance", ValueError, lambda: module.move_many(team, ok, DT, min_distance=math.inf)),
    ]:
        with pytest.raises(error, match=name):
            call()
    team[1].remove()
    with pytest.raises(RuntimeError, match="removed"):
        module.move_many(team, ok, DT)
    assert module.move_many([], np.empty((0, 3)), DT).tolist() == []
    # The other controllers are free again.
    team[0].move((1, 0, 0), DT)
    assert team[0].position == (1, 0, 0)


def test_move_many_moves_nobody_when_one_move_fails():
    scene = pycct.Scene()
    team = [CharacterController(scene), CharacterController(scene, (9e11, 0, 0))]
    with pytest.raises(ValueError, match="row 1"):
        pycct.move_many(team, [(1, 0, 0), (5e11, 0, 0)], DT)
    assert [h.position for h in team] == [(0, 0, 0), (9e11, 0, 0)]
    # The controllers before the failed one do not move, either.
    team.insert(0, CharacterController(scene, (5, 0, 0), collide=True, on_hit=lambda hit: None))
    with pytest.raises(ValueError, match="row 2"):
        pycct.move_many(team, [(1, 0, 0), (1, 0, 0), (5e11, 0, 0)], DT)
    assert [h.position for h in team] == [(5, 0, 0), (0, 0, 0), (9e11, 0, 0)]


def test_a_team_that_does_not_move_warns_of_nothing(caplog):
    scene = pycct.Scene()
    scene.add(pycct.Box((50, 50, 1)), (0, 0, -1))
    scene.add(pycct.Box((0.1, 50, 5)), (5, 0, 5))
    team = [CharacterController(scene, (4.4, 0, 0.95)), CharacterController(scene, (9e11, 0, 0))]
    push = (0.3, 0, -0.01)
    with caplog.at_level("WARNING", "pycct"):
        while not caplog.records:
            with pytest.raises(ValueError, match="row 1"):
                pycct.move_many(team, [push, (5e11, 0, 0)], DT)
            assert not caplog.records
            team[0].move(push, DT)


def test_move_many_moves_nobody_when_a_warning_raises():
    # The warning comes before any move takes effect.
    class Refuses(logging.Filter):
        def filter(self, record):
            raise KeyError("no")

    scene = pycct.Scene()
    scene.add(pycct.Box((50, 50, 1)), (0, 0, -1))
    scene.add(pycct.Box((0.1, 50, 5)), (5, 0, 5))
    team = [CharacterController(scene, at) for at in ((0, 0, 0.95), (4.4, 0, 0.95), (0, 3, 0.95))]
    way = np.array([(0.02, 0, -0.01), (0.3, 0, -0.01), (0.02, 0, -0.01)])
    refuses = Refuses()
    logger = logging.getLogger("pycct")
    logger.addFilter(refuses)
    try:
        with pytest.raises(KeyError):
            for _ in range(100):
                before = [hero.save() for hero in team]
                pycct.move_many(team, way, DT)
    finally:
        logger.removeFilter(refuses)
    assert [hero.save() for hero in team] == before
    pycct.move_many(team, way, DT)
    assert [hero.save() for hero in team] != before


def test_move_many_checks_displacements_that_a_callback_changed():
    scene = pycct.Scene()
    scene.add(pycct.Box((50, 50, 1)), (0, 0, -1))
    way = np.array([(0.02, 0, -0.5), (0.02, 0, -0.5)])

    def spoils(_):
        way[1] = math.nan

    team = [CharacterController(scene, (k, 0, 1), on_hit=spoils) for k in range(2)]
    before = team[1].save()
    with pytest.raises(ValueError, match="displacements were changed"):
        pycct.move_many(team, way, DT)
    assert team[1].save() == before


# --- the reference


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("collide", [False, True])
def test_the_reference_moves_alike(order, collide):
    n = 10
    rng = np.random.default_rng(11)
    groups = rng.integers(0, 2, n).tolist()
    parameters = {k: v for k, v in varied(n, 5).items() if k != "surface"}
    worlds = [world(module) for module in MODULES]
    crowds = [
        module.Crowd(w[0], starts(n, span=1.5), order=order, collide=collide, group=groups, **parameters)
        for module, w in zip(MODULES, worlds, strict=True)
    ]
    met = 0
    for k, way in enumerate(ways(n, 14, speed=0.2)):
        active = rng.random(n) < 0.9
        hits = []
        for (_, lift, post), crowd in zip(worlds, crowds, strict=True):
            happen(k, lift, post)
            crowd.move(way, DT, active=active, record_hits=True, record_stats=True)
            hits.append(crowd.hits)
            if k == 5:
                crowd.remove([2])
                crowd.add([(0, 0, 3)], radius=0.2, group=1)
                crowd.set([0, 1], radius=[0.2, 0.25], group=0)
                crowd.teleport([4], (0.2, 0.3, 2.5))
                crowd.resize([3], 0.7)
            if k == 8:
                crowd.snap_to_ground(0.7)
                crowd.separate(DT)
            if k == 10:
                crowd.restore(crowd.save())
        ours, theirs = crowds
        assert told(ours) == told(theirs)
        assert ours.state_hash() == theirs.state_hash()
        assert ours.save() == theirs.save()
        a, b = hits
        assert a.dtype == b.dtype and columns(a) == columns(b)
        for name in ("iterations", "recoveries", "fixes"):
            assert ours.stats[name].tolist() == theirs.stats[name].tolist()
        for question in (lambda c: c.ground, lambda c: c.probe_ground(0.9)):
            for x, y in zip(question(ours), question(theirs), strict=True):
                assert x.tolist() == y.tolist()
        assert ours.can_resize(1.4).tolist() == theirs.can_resize(1.4).tolist()
        met += (a["controller"] >= 0).sum()
    assert (met > 0) == collide
    # Each restores the other's saves.
    crowds[0].restore(crowds[1].save())
    crowds[1].restore(crowds[0].save())
    assert crowds[0].save() == crowds[1].save()
    for crowd in crowds:
        assert crowd.add([(9, 9, 9)]).tolist() == [21]


def test_the_reference_moves_teams_alike():
    teams = [heroes_of(world(module)[0], starts(8), {}, module=module, collide=True) for module in MODULES]
    for way in ways(8, 8):
        flags = [module.move_many(team, way, DT).tolist() for module, team in zip(MODULES, teams, strict=True)]
        assert flags[0] == flags[1]
        assert [h.position for h in teams[0]] == [h.position for h in teams[1]]
