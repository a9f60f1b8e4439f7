"""Shards as Ray actors: the hash of one crowd through kills, errors, and a clean shutdown."""

import os
import time

import numpy as np
import pytest
from test_shard import DT, lift_at, people, town

from pycct import Crowd
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
