"""Measure threads: ``python bench/bench_threads.py [--quick] [--pythons PYTHON ...]``.

The same moves run as a Crowd, as a team of single controllers (``move_many``), each with one and
two threads, and as single moves from a ThreadPoolExecutor whose one or two workers share the
controllers. Other interpreters with an installed pycct get one table each; without the GIL single
moves scale too.
"""
import argparse
import platform
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

import pycct
from scenes import CONTACT_OFFSET, HEIGHT, MIN_DISTANCE, RADIUS, SLOPE_LIMIT, STEP_OFFSET, dungeon, terrain

LOOK = {"radius": RADIUS, "height": HEIGHT, "contact_offset": CONTACT_OFFSET, "step_offset": STEP_OFFSET,
        "slope_limit": SLOPE_LIMIT}
SCENES = {"terrain": terrain, "dungeon": dungeon}
DT = 1 / 60
COPIES = 16  # of the 256 characters of a workload, for calls of five milliseconds and more
THREADS = (1, 2)


class Crowd:
    def __init__(self, scene, places, threads):
        self.crowd, self.places, self.threads = pycct.Crowd(scene, places, **LOOK), places, threads

    def again(self):
        self.crowd.teleport(np.arange(len(self.crowd)), self.places)

    def frame(self, way, _rows):
        self.crowd.move(way, DT, threads=self.threads, min_distance=MIN_DISTANCE)

    def ends(self):
        return self.crowd.positions.copy()

    def close(self):
        pass


class Team:
    def __init__(self, scene, places, threads):
        self.heroes = [pycct.CharacterController(scene, tuple(p), **LOOK) for p in places.tolist()]
        self.places, self.threads = places, threads

    def again(self):
        for hero, place in zip(self.heroes, self.places.tolist(), strict=True):
            hero.teleport(place)

    def frame(self, way, _rows):
        pycct.move_many(self.heroes, way, DT, threads=self.threads, min_distance=MIN_DISTANCE)

    def ends(self):
        return np.array([hero.position for hero in self.heroes])

    def close(self):
        pass


class Executor(Team):
    """Each worker moves its share of the controllers, one call of ``move`` after another."""

    def __init__(self, scene, places, threads):
        super().__init__(scene, places, threads)
        self.pool = ThreadPoolExecutor(threads)
        cuts = np.linspace(0, len(places), threads + 1).astype(int).tolist()
        self.shares = [range(a, b) for a, b in pairwise(cuts)]

    def some(self, share, rows):
        for i in share:
            self.heroes[i].move(rows[i], DT, min_distance=MIN_DISTANCE)

    def frame(self, _way, rows):
        list(self.pool.map(self.some, self.shares, [rows] * len(self.shares)))

    def close(self):
        self.pool.shutdown()


def measure(jobs, path, rows, runs):
    """Return (clock, processor) us per move of each job, ratios of rounds, and end positions.

    Each time is the best of some rounds, in turn, after a warm-up. The ratio is the median over the
    rounds of the time of the first job to that of each job.
    """
    walls, cpus = [[] for _ in jobs], [[] for _ in jobs]
    for turn in range(runs + 1):
        for k in range(len(jobs)) if turn % 2 else reversed(range(len(jobs))):
            jobs[k].again()
            wall, cpu = time.perf_counter(), time.process_time()
            for way, row in zip(path, rows, strict=True):
                jobs[k].frame(way, row)
            walls[k].append(time.perf_counter() - wall)
            cpus[k].append(time.process_time() - cpu)
    each = 1e6 / (len(path) * path.shape[1])
    return [(min(wall[1:]) * each, min(cpu[1:]) * each,
             statistics.median(a / b for a, b in zip(walls[0][1:], wall[1:], strict=True)), job.ends())
            for job, wall, cpu in zip(jobs, walls, cpus, strict=True)]


def here(quick):
    """Print the table of this interpreter."""
    gil = "without the GIL" if not getattr(sys, "_is_gil_enabled", lambda: True)() else "with the GIL"
    print(f"Python {platform.python_version()} {gil}, pycct {pycct.__version__}, {platform.machine()}")
    head = f"{'scene':<9} {'how':<28} {'threads':>7} {'us/move':>8} {'cpu us':>8} {'x one thread':>13}"
    print(head + "\n" + "-" * len(head))
    frames, runs = (20, 1) if quick else (60, 7)
    for name, make in SCENES.items():
        meshes, places, ways = make()
        scene = pycct.Scene()
        for vertices, triangles in meshes:
            scene.add(pycct.Mesh(vertices, triangles))
        places = np.tile(places, (COPIES, 1))
        path = np.ascontiguousarray(np.tile(ways[:, :frames], (COPIES, 1, 1)).swapaxes(0, 1))
        rows = [[tuple(d) for d in way] for way in path.tolist()]
        expected = None
        for kind, what in ((Crowd, "Crowd"), (Team, "move_many"), (Executor, "move, ThreadPoolExecutor")):
            jobs = [kind(scene, places, threads) for threads in THREADS]
            for threads, (wall, cpu, times, ends) in zip(THREADS, measure(jobs, path, rows, runs), strict=True):
                print(f"{name:<9} {what:<28} {threads:>7} {wall:>8.3f} {cpu:>8.3f} {times:>13.2f}", flush=True)
                expected = ends if expected is None else expected
                if not np.array_equal(ends, expected):
                    raise AssertionError(f"{what} with {threads} threads ends elsewhere")
            for job in jobs:
                job.close()
    print()


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer moves")
    parser.add_argument("--pythons", nargs="+", help="interpreters that have pycct (default: this one)")
    args = parser.parse_args()
    if not args.pythons:
        here(args.quick)
        return 0
    failed = 0
    for python in args.pythons:
        failed |= subprocess.run([python, __file__] + ["--quick"] * args.quick, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
