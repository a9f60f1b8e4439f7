"""Rays beside embreex: ``python bench/bench_rays.py [--quick]``, with pycct and embreex installed.

Random rays of 200 m, and fans of 32 rays from one origin, 15 m and 200 m long, in `terrain`,
`dungeon` and `navmesh`. Both libraries answer by turns, in processor time of this process, from
Python; the table holds medians, and the ratio pycct / embreex. Single calls follow.
"""
import argparse
import statistics
import time

import numpy as np

import pycct
from scenes import SCENES

try:
    from embreex import rtcore_scene
    from embreex.mesh_construction import TriangleMesh
except ImportError:
    rtcore_scene = None

FAN = 32


def rays(meshes, starts, n, seed=5):
    """Name, origins, directions and length of each kind of rays."""
    rng = np.random.default_rng(seed)
    corners = np.concatenate([v for v, _ in meshes])
    low, high = corners.min(0), corners.max(0)
    origins = rng.uniform(low, high + np.array([0, 0, 2]), (n, 3))
    directions = rng.normal(size=(n, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    k = n // FAN
    centres = starts[rng.integers(0, len(starts), k)] + rng.uniform(-0.5, 0.5, (k, 3)) * [1, 1, 0.1]
    angles = np.arange(FAN) * 2 * np.pi / FAN + rng.uniform(0, 2 * np.pi, (k, 1))
    down = np.broadcast_to(rng.uniform(-0.2, 0.05, (k, 1)), angles.shape)
    fans = np.stack([np.cos(angles), np.sin(angles), down], -1)
    fans = (fans / np.linalg.norm(fans, axis=2)[..., None]).reshape(-1, 3)
    centres = np.repeat(centres, FAN, axis=0)
    return (("random, 200 m", origins, directions, 200.0), ("fans, 15 m", centres, fans, 15.0),
            ("fans, 200 m", centres, fans, 200.0))


def spent(call, *arguments):
    """Processor time of a call, seconds."""
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def repeat(call, calls, *arguments):
    """Call several times."""
    for _ in range(calls):
        call(*arguments)


def each(call, rows, length):
    """One call a ray."""
    for origin, direction in rows:
        call(origin, direction, length)


def embree(meshes):
    """The same level for embreex, or None without it."""
    if rtcore_scene is None:
        return None
    peer = rtcore_scene.EmbreeScene()
    for vertices, triangles in meshes:
        TriangleMesh(peer, vertices.astype(np.float32), triangles.astype(np.int32))
    return peer


def measure(name, meshes, starts, n, rounds):
    """Measure one level and print its rows."""
    scene = pycct.Scene()
    for vertices, triangles in meshes:
        scene.add(pycct.Mesh(vertices, triangles))
    peer = embree(meshes)
    for kind, origins, directions, length in rays(meshes, starts, n):
        reach = np.full(len(origins), length, np.float32)
        single = origins.astype(np.float32), directions.astype(np.float32), reach
        own, other = [], []
        for _ in range(rounds):
            own.append(spent(scene.raycast_many, origins, directions, length))
            if peer is not None:
                other.append(spent(peer.run, *single))
        mine = statistics.median(own) / len(origins) * 1e6
        line = f"  {name:9s} {kind:15s} {mine:8.3f}"
        if peer is not None:
            theirs = statistics.median(other) / len(origins) * 1e6
            line += f" {theirs:9.3f} {mine / theirs:7.2f}"
        print(line)
    for rows in (1, 32, 256, 4096):
        calls = max(1, 20_000 // rows)
        batch = scene.raycast_many, calls, origins[:rows], directions[:rows], length
        took = min(spent(repeat, *batch) for _ in range(rounds)) / calls * 1e6
        print(f"  {name:9s} {f'{rows} rows a call':15s} {took:8.2f} us a call")
    singles = [(tuple(map(float, o)), tuple(map(float, d))) for o, d in zip(origins[:2000], directions, strict=False)]
    took = min(spent(each, scene.raycast, singles, length) for _ in range(rounds)) / len(singles) * 1e6
    print(f"  {name:9s} {'single calls':15s} {took:8.2f} us a call")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rays and rounds")
    quick = parser.parse_args().quick
    n, rounds = (20_000, 3) if quick else (200_000, 7)
    print(f"{n:,} rays, medians of {rounds} rounds, us per ray")
    print("                              pycct   embreex   ratio")
    for name in ("terrain", "dungeon", "navmesh"):
        made = SCENES[name]()
        if made is not None:
            measure(name, made[0], made[1], n, rounds)


if __name__ == "__main__":
    main()
