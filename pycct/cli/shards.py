"""Command ``python -m pycct shards``: one world in several processes, compared with one crowd."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pycct import Crowd, Mesh, Scene

CELL = 64.0
DT = 1 / 60


def add_parser(subparsers: Any) -> None:
    """Add the sub-command ``shards`` to a command line."""
    parser = subparsers.add_parser("shards", help="run one world in several processes and compare the hashes")
    parser.add_argument("--characters", type=int, default=2000, metavar="N", help="number of characters")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2], metavar="S", help="numbers of shards")
    parser.add_argument("--ticks", type=int, default=100, metavar="T", help="ticks of each run")
    parser.add_argument("--kill", type=int, default=0, metavar="K", help="shards to kill during each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(run=run)


def terrain(side: float, rng: np.random.Generator) -> Scene:
    """Hills of 2 m cells, up to 1 m high."""
    n = int(side / 2) + 3
    x = np.arange(n) * 2.0 - side / 2 - 2
    height = rng.integers(0, 257, (n, n)) / 256.0
    points = np.stack([*np.meshgrid(x, x, indexing="ij"), height], axis=-1).reshape(-1, 3)
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).reshape(-1)
    scene = Scene()
    scene.add(Mesh(points, np.concatenate([np.stack([a, a + n, a + n + 1], 1), np.stack([a, a + n + 1, a + 1], 1)])))
    return scene


def headings(rng: np.random.Generator, n: int) -> np.ndarray:
    """Displacements at 3 m/s in random directions, and down."""
    way = rng.integers(-256, 257, (n, 2)) / 256.0
    way *= 3 * DT / np.maximum(np.sqrt((way * way).sum(1, keepdims=True)), 1e-9)
    return np.column_stack([way, np.full(n, -0.08)])


def run(args: argparse.Namespace) -> int:
    """Compare the hashes of every tick.

    The exit code is 1 when one differs, and 2 when Ray is missing or an argument is wrong.
    """
    if args.characters < 1 or args.ticks < 1 or min(args.shards) < 1 or args.kill < 0:
        print("--characters, --ticks and --shards must be at least 1, --kill at least 0", file=sys.stderr)
        return 2
    try:
        from pycct.sharding.ray import ShardedCrowd
    except ImportError as e:
        print(e, file=sys.stderr)
        return 2
    from pycct.sharding import Grid

    rng = np.random.default_rng(args.seed)
    # 0.25 characters per square metre.
    side = max(2.0 * np.sqrt(args.characters), 2 * CELL)
    scene = terrain(side, rng)
    start = np.column_stack([rng.uniform(-side / 2, side / 2, (args.characters, 2)), np.full(args.characters, 2.2)])
    crowd = Crowd(scene, start, radius=0.4, collide=True)
    data = crowd.save()
    ways = [headings(rng, args.characters) for _ in range(max(1, args.ticks // 30) + 1)]
    expected, began = [], time.perf_counter()
    for tick in range(args.ticks):
        expected.append(crowd.state_hash())
        crowd.move(ways[tick // 30], DT)
    expected.append(crowd.state_hash())
    alone = (time.perf_counter() - began) / args.ticks * 1e3
    print(f"{args.characters} characters, {args.ticks} ticks; one Crowd, one thread: {alone:.2f} ms per tick")
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.cooked"
        scene.save(path)
        for count in args.shards:
            kills = {int(k): i % count for i, k in enumerate(np.linspace(0, args.ticks, args.kill + 2)[1:-1])}
            with ShardedCrowd(path, data, shards=count, cut=Grid(CELL), keyframe=50, timeout=300) as sharded:
                ids, found = sharded.ids, []
                began = time.perf_counter()
                for tick in range(args.ticks):
                    if tick in kills:
                        sharded.kill(kills[tick])
                    found.append(sharded.tick(ids, ways[tick // 30], DT))
                each = (time.perf_counter() - began) / args.ticks * 1e3
                found.append(sharded.hash())
            same = found == expected
            wrong = wrong or not same
            print(f"{count} shards: {each:.2f} ms per tick, {len(kills)} kills, "
                  f"{'the same hash at every tick' if same else 'ANOTHER HASH'}")
    return 1 if wrong else 0
