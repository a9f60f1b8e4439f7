"""Shards as Ray actors: the hash of one crowd through kills, errors, and a clean shutdown."""

import os
import signal
import time

import numpy as np
import pytest
from test_shard import DT, lift_at, people, town

from pycct import Box, Crowd, Scene
from pycct.sharding import Grid

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install pycct[ray]")
from pycct.sharding.ray import ShardedCrowd  # noqa: E402


@pytest.fixture(scope="module")
def cooked(tmp_path_factory):
    scene, actor = town()
    path = tmp_path_factory.mktemp("cooked") / "town.cooked"
    scene.save(path)
    return path, actor


def test_the_hash_of_one_crowd_through_kills(cooked):
    path, _ = cooked
    rng = np.random.default_rng(4)
    scene, actor = town()
    whole = Crowd(scene, **people(rng, 50, 7.0))
    with ShardedCrowd(path, whole.save(), shards=2, cut=Grid(8.0), max_motion=1.5, keyframe=7) as sharded:
        processes = sharded.processes
        assert len(set(processes)) == 2 and os.getpid() not in processes
        for tick in range(1, 41):
            if tick in (12, 25):
                sharded.kill(tick % 2)
            way = np.column_stack([-0.03 * whole.positions[:, :2], np.full(50, -0.1)])
            assert sharded.tick(whole.ids, way, DT, moving=lift_at(actor, tick)) == whole.state_hash()
            scene.move_actors(*lift_at(actor, tick))
            whole.move(way, DT)
        assert sharded.hash() == whole.state_hash()
        assert (sharded.positions() == whole.positions).all()
        assert sharded.processes != processes
        origins, ways = rng.uniform(-7, 7, (200, 3)), rng.normal(size=(200, 3))
        found = sharded.raycast_many(origins, ways, 9.0)
        right = scene.raycast_many(origins, ways, 9.0, include="all")
        assert (found["hit"] == right.hit).all() and right.hit.sum() > 50
        for name in ("distance", "position", "normal", "actor", "controller"):
            assert (found[name][right.hit] == getattr(right, name)[right.hit]).all(), name
        last = sharded.processes
        with pytest.raises(ValueError, match="is missing"):
            sharded.tick(whole.ids[1:], np.zeros((49, 3)), DT)
        with pytest.raises(ValueError, match="finite"):
            sharded.tick(whole.ids, np.full((50, 3), np.nan), DT)
        with pytest.raises(ValueError, match="shape"):
            sharded.raycast_many(np.zeros(3), np.zeros(3), 1.0)
    for _ in range(100):
        if not any(alive(p) for p in last):
            break
        time.sleep(0.1)
    assert not any(alive(p) for p in last) and not ray.is_initialized()
    sharded.close()


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_wrong_arguments(cooked):
    path, _ = cooked
    data = Crowd(town()[0], [(0, 0, 2)]).save()
    for more, word in (({"shards": 0}, "shards"), ({"keyframe": 0}, "keyframe"), ({"timeout": 0}, "timeout"),
                       ({"cells": [[(0, 0)]]}, "cells must name 2"), ({"max_motion": 99.0}, "cells of at least")):
        with pytest.raises(ValueError, match=word):
            ShardedCrowd(path, data, cut=Grid(8.0), **({"shards": 2} | more))
    with pytest.raises(ValueError, match="saved crowd"):
        ShardedCrowd(path, b"nothing", cut=Grid(8.0))
    assert not ray.is_initialized()


def test_a_motion_longer_than_the_halo_is_named_and_undone(tmp_path):
    """A lift carries characters farther than max_motion; the tick raises, and has not happened."""
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.1)), (0, 0, -0.1), body="kinematic", behavior=1)
    scene.save(tmp_path / "lift.cooked")
    whole = Crowd(scene, [(0, 0, 0.92), (0.9, 0.3, 0.92)], collide=True)
    still = np.full((2, 3), (0, 0, -0.02))
    with ShardedCrowd(tmp_path / "lift.cooked", whole.save(), cut=Grid(16), max_motion=0.5, keyframe=3) as sharded:
        for tick in range(1, 9):
            if tick in (4, 6):
                with pytest.raises(RuntimeError, match=r"character \d+ moved") as raised:
                    sharded.tick(whole.ids, still, DT, moving=([lift.id], [(3, 0, -0.1)]))
                assert type(raised.value) is RuntimeError
            moving = [lift.id], [(0.05 * tick, 0, -0.1)]
            assert sharded.tick(whole.ids, still, DT, moving=moving) == whole.state_hash()
            scene.move_actors(*moving)
            whole.move(still, DT)
        assert sharded.hash() == whole.state_hash()


def ended(processes):
    """Whether these processes end within ten seconds."""
    for _ in range(100):
        if not any(alive(p) for p in processes):
            return True
        time.sleep(0.1)
    return False


def test_after_whatever_fails_the_next_tick_has_the_hash(cooked):
    """Wrong calls, shards that do not answer and shards that are lost twice cost time only."""
    path, _ = cooked
    rng = np.random.default_rng(6)
    scene, actor = town()
    whole = Crowd(scene, **people(rng, 30, 6.0))
    n, tick = len(whole), 0

    def both(sharded):
        nonlocal tick
        tick += 1
        way = np.column_stack([-0.03 * whole.positions[:, :2], np.full(n, -0.1)])
        assert sharded.tick(whole.ids, way, DT, moving=lift_at(actor, tick)) == whole.state_hash()
        scene.move_actors(*lift_at(actor, tick))
        whole.move(way, DT)

    with ShardedCrowd(path, whole.save(), shards=2, cut=Grid(8.0), max_motion=1.5, keyframe=5, timeout=30) as sharded:
        good = {"ids": whole.ids, "displacements": np.zeros((n, 3)), "dt": DT}
        for bad, error in (({"displacements": np.full((n, 3), 9.0)}, "max_motion"), ({"dt": np.nan}, "dt"),
                           ({"dt": "x"}, "dt"), ({"threads": 0}, "threads"), ({"ids": whole.ids[1:]}, "shape"),
                           ({"moving": ([10**9], [(0, 0, 0)])}, "10+"), ({"moving": (1, 2, 3, 4)}, "argument")):
            both(sharded)
            with pytest.raises((ValueError, TypeError), match=error) as raised:
                sharded.tick(**{**good, **bad})
            assert type(raised.value) in (ValueError, TypeError)
            both(sharded)
        # A shard that hangs: its tick fails, and the next one has a new process in its place.
        hanging = sharded.processes[1]
        os.kill(hanging, signal.SIGSTOP)
        sharded.timeout = 2.0
        with pytest.raises(TimeoutError, match="did not answer within 2 s"):
            sharded.tick(**good)
        sharded.timeout = 60.0
        os.kill(hanging, signal.SIGCONT)
        both(sharded)
        hanging = sharded.processes[0]
        os.kill(hanging, signal.SIGSTOP)
        sharded.timeout = 1.0
        with pytest.raises(TimeoutError):
            sharded.positions()
        with pytest.raises(TimeoutError):
            sharded.tick(**good)
        sharded.timeout = 60.0
        both(sharded)
        assert hanging not in sharded.processes and ended([hanging])
        # All at once, and again as soon as they are back.
        sharded.kill(0)
        sharded.kill(1)
        both(sharded)
        os.kill(sharded.processes[1], signal.SIGKILL)
        both(sharded)
        assert sharded.hash() == whole.state_hash()
        with pytest.raises(ValueError, match="index"):
            sharded.kill(2)
        last = sharded.processes
    assert ended(last) and not ray.is_initialized()
    for call in (sharded.hash, sharded.positions, lambda: sharded.kill(0), lambda: sharded.tick(**good)):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_start_that_fails_leaves_nothing_behind(cooked):
    path, _ = cooked
    data = Crowd(town()[0], [(0, 0, 2)], radius=0.9).save()
    before = children()
    with pytest.raises(ValueError, match="max_radius"):
        ShardedCrowd(path, data, shards=2, cut=Grid(8.0), max_radius=0.5)
    with pytest.raises(TypeError, match="cut"):
        ShardedCrowd(path, data, shards=2, cut=8.0)
    assert not ray.is_initialized()
    assert ended(children() - before)


def children():
    """Processes below this one."""
    below, found = {os.getpid()}, set()
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            try:
                with open(f"/proc/{folder}/stat") as f:
                    found.add((int(folder), int(f.read().rsplit(")", 1)[1].split()[1])))
            except OSError:
                continue
    for _ in range(8):
        below |= {child for child, parent in found if parent in below}
    return below - {os.getpid()}


def test_rays_of_any_length_and_nobody_to_meet(cooked):
    path, _ = cooked
    scene, _ = town()
    nobody = Crowd(scene, np.empty((0, 3)))
    rng = np.random.default_rng(5)
    origins, ways = rng.uniform(-40, 40, (300, 3)), rng.normal(size=(300, 3))
    ways[:60] = np.eye(3)[rng.integers(0, 3, 60)] * rng.choice([-1, 1], (60, 1))
    origins[:30] = np.round(origins[:30] / 8) * 8
    with ShardedCrowd(path, nobody.save(), shards=2, cut=Grid(8.0), max_motion=1.5) as sharded:
        assert sharded.hash() == nobody.state_hash() == 0
        assert sharded.tick([], np.empty((0, 3)), DT) == 0 and sharded.positions().shape == (0, 3)
        for reach in (0.0, 3.0, 1e6, 1e15):
            found = sharded.raycast_many(origins, ways, reach)
            right = scene.raycast_many(origins, ways, reach, include="all")
            assert (found["hit"] == right.hit).all()
            for name in ("distance", "position", "normal", "actor", "controller"):
                assert (found[name][right.hit] == getattr(right, name)[right.hit]).all(), (name, reach)
        for bad in (-1.0, np.nan, np.inf, [1.0, 2.0]):
            with pytest.raises(ValueError, match="max_distance"):
                sharded.raycast_many(origins, ways, bad)
        with pytest.raises(ValueError, match="direction"):
            sharded.raycast_many(origins, ways * 0, 3.0)
        assert sharded.raycast_many(np.empty((0, 3)), np.empty((0, 3)), 3.0)["hit"].shape == (0,)
