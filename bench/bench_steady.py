"""Measure the slowest of very many moves: ``python bench/bench_steady.py [--quick]``.

The program makes a million single moves in `dungeon` and prints percentiles of their processor
time, and the most iterations and triangles of one move. It then makes ten million moves of a crowd
and prints resident memory before and after, which must not grow. It needs an installed pycct.
"""
import argparse
import gc
import platform
import time

import numpy as np

import pycct
from peer import memory_mib
from scenes import CONTACT_OFFSET, HEIGHT, MIN_DISTANCE, RADIUS, SLOPE_LIMIT, STEP_OFFSET, dungeon

LOOK = {"radius": RADIUS, "height": HEIGHT, "contact_offset": CONTACT_OFFSET, "step_offset": STEP_OFFSET,
        "slope_limit": SLOPE_LIMIT}
DT = 1 / 60


def single(scene, places, ways, moves):
    """Return nanoseconds, iterations and triangles of each move; the courses repeat."""
    n, frames, _ = ways.shape
    hero = pycct.CharacterController(scene, **LOOK)
    spent, iterations, tested = (np.empty(moves, np.int64) for _ in range(3))
    rows = [[tuple(d) for d in course] for course in ways.tolist()]
    clock, move = time.thread_time_ns, hero.move
    k = 0
    gc.collect()
    gc.disable()
    try:
        while k < moves:
            i = (k // frames) % n
            hero.teleport(places[i])
            # A small rotation in each round makes all rounds differ.
            turn = 0.1 * (k // (n * frames))
            c, s = np.cos(turn), np.sin(turn)
            course = [(c * x - s * y, s * x + c * y, z) for x, y, z in rows[i]] if turn else rows[i]
            for way in course[: moves - k]:
                began = clock()
                move(way, DT, min_distance=MIN_DISTANCE)
                spent[k] = clock() - began
                stats = hero.stats
                iterations[k], tested[k] = stats.iterations, stats.triangles_tested
                k += 1
    finally:
        gc.enable()
    return spent, iterations, tested


def overhead():
    """Return the nanoseconds between two consecutive readings of the clock."""
    clock = time.thread_time_ns
    return int(np.median([-clock() + clock() for _ in range(10_000)]))


def crowd(scene, places, ways, moves):
    """Return (MiB before, MiB after, us per move) of a warm crowd."""
    n, frames, _ = ways.shape
    path = np.ascontiguousarray(ways.swapaxes(0, 1))
    many = pycct.Crowd(scene, places, **LOOK)

    def once():
        many.teleport(np.arange(n), places)
        for way in path:
            many.move(way, DT, min_distance=MIN_DISTANCE)
            many.positions  # noqa: B018  read it, as a game would

    for _ in range(3):
        once()
    gc.collect()
    before, rounds = memory_mib(), max(1, round(moves / (n * frames)))
    began = time.perf_counter()
    for _ in range(rounds):
        once()
    seconds = time.perf_counter() - began
    gc.collect()
    return before, memory_mib(), seconds * 1e6 / (rounds * n * frames), rounds * n * frames


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the moves")
    share = 10 if parser.parse_args().quick else 1
    print(f"pycct {pycct.__version__}, Python {platform.python_version()}, {platform.machine()}\n")
    meshes, places, ways = dungeon()
    scene = pycct.Scene()
    for vertices, triangles in meshes:
        scene.add(pycct.Mesh(vertices, triangles))

    spent, iterations, tested = single(scene, places, ways, 1_000_000 // share)
    print(f"{len(spent):,} single moves in dungeon (two readings of the clock alone: {overhead()} ns)")
    print(f"  {'':<22} {'median':>10} {'99 %':>10} {'99.9 %':>10} {'99.99 %':>10} {'most':>10}")
    for what, values in (("thread time, us", spent / 1e3), ("iterations", iterations), ("triangles tested", tested)):
        marks = [*np.percentile(values, [50, 99, 99.9, 99.99]), values.max()]
        form = ".2f" if values.dtype.kind == "f" else ".0f"
        print(f"  {what:<22} " + " ".join(f"{m:>10{form}}" for m in marks))

    before, after, each, moves = crowd(scene, places, ways, 10_000_000 // share)
    print(f"\n{moves:,} moves of a crowd of {len(places)}: {each:.2f} us each")
    if before is not None:
        print(f"  resident MiB before {before:.2f}, after {after:.2f}: {after - before:+.2f}")


if __name__ == "__main__":
    main()
