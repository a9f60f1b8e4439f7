"""What a crowd sees: ``python bench/bench_sensors.py [--quick] [--threads 2] [--rounds 9]``.

4,096 characters in 16 groups and 100 moving platforms in `dungeon`. The table contains the time of
one look by the clock, the processor time of all threads, and the processor time of one ray, cell or
neighbour; all are medians. Target of the first row: 50 ms on two cores.
"""
import argparse
import statistics
import time

import numpy as np

import pycct
from scenes import SCENES

GROUPS, PLATFORMS = 16, 100
BOTH = {"lidar": pycct.Lidar(32, 15.0), "scan": pycct.HeightScan((11, 11), 0.2, 2.0)}
SENSORS = {
    "32 rays of 15 m and 11 x 11 heights": (BOTH, 32 + 121),
    "32 rays of 15 m": ({"lidar": BOTH["lidar"]}, 32),
    "11 x 11 heights, 0.2 m apart": ({"scan": BOTH["scan"]}, 121),
    "11 x 11 heights, 0.5 m apart": ({"scan": pycct.HeightScan((11, 11), 0.5, 2.0)}, 121),
    "16 x 12 depths, 30 m": ({"depth": pycct.DepthGrid(16, 12, 1.5, reach=30.0)}, 192),
    "8 neighbours in 10 m": ({"near": pycct.Neighbours(8, 10.0)}, 8),
    "feet": ({"feet": pycct.Feet()}, 1),
}


def crowd_in(meshes, starts, n):
    """A crowd in groups, on its feet, in a level with platforms."""
    rng = np.random.default_rng(6)
    scene = pycct.Scene()
    for vertices, triangles in meshes:
        scene.add(pycct.Mesh(vertices, triangles))
    places = starts[rng.integers(0, len(starts), PLATFORMS)] + rng.uniform(-2, 2, (PLATFORMS, 3)) * [1, 1, 0.2]
    platforms = [scene.add(pycct.Box((0.8, 0.8, 0.1)), position=place, body="kinematic") for place in places]
    crowd = pycct.Crowd(scene, starts[np.arange(n) % len(starts)], group=np.arange(n) * GROUPS // n,
                        contact_offset=0.02, step_offset=0.4)
    return scene, platforms, crowd


def measure(name, crowd, sensors, values, yaw, threads, rounds):
    """Measure looks and print a row."""
    watch = pycct.Sensors(crowd, sensors, dtype=np.float32)
    clock, cpu = [], []
    for k in range(rounds + 2):
        wall, start = time.perf_counter(), time.process_time()
        watch.look(yaw, threads=threads)
        if k >= 2:
            clock.append(1e3 * (time.perf_counter() - wall))
            cpu.append(1e3 * (time.process_time() - start))
    each = 1e6 * statistics.median(cpu) / (len(crowd) * values)
    print(f"| {name} | {threads} | {statistics.median(clock):.1f} | {statistics.median(cpu):.1f} | {each:.0f} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    n = 512 if given.quick else 4096
    level = SCENES["dungeon"]()
    _scene, _platforms, crowd = crowd_in(*level[:2], n)
    yaw = np.random.default_rng(7).uniform(-3, 3, n)
    print(f"{n} characters in {GROUPS} groups, {PLATFORMS} platforms, dungeon\n")
    print("| sensors | threads | clock, ms | cpu, ms | ns a value |\n|---|---:|---:|---:|---:|")
    for name, (sensors, values) in SENSORS.items():
        for threads in sorted({1, given.threads}):
            measure(name, crowd, sensors, values, yaw, threads, given.rounds)


if __name__ == "__main__":
    main()
