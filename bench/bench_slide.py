"""Measure a step of the sweep/slide controller: ``python bench/bench_slide.py``.

Each scene is a 16 x 256 x 16 chunk of cubes. Times are the minimum of several rounds of ``run``,
which releases the GIL once for all its steps, divided by the steps. They are processor time of the
calling thread, which other programs disturb least. Lines with more than one thread are by the
clock.
"""

import time

import numpy as np

from pycct.cube_world.controller import SweepSlideController, step_many
from pycct.cube_world.cubes import CubeWorld

DT = 1.0 / 60.0


def best(action, rounds=7, clock=time.thread_time):
    """Return the least seconds of several calls."""
    times = []
    for _ in range(rounds):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)


def chunk(carve=None):
    """Return a full chunk with a part carved out."""
    solid = np.ones((16, 256, 16), dtype=bool)
    if carve is not None:
        solid[carve] = False
    world = CubeWorld()
    world.add_array(solid)
    return world


def wander(n, speed=4.5, seed=1):
    """Return wishes that change direction every 40 frames, with occasional jumps."""
    rng = np.random.default_rng(seed)
    angle = np.repeat(rng.uniform(0, 2 * np.pi, n // 40 + 1), 40)[:n]
    wish = np.zeros((n, 3))
    wish[:, 0] = speed * np.cos(angle)
    wish[:, 2] = speed * np.sin(angle)
    return wish, rng.random(n) < 0.02


def corridors():
    """Return corridors, one cube wide and two high, through the full chunk."""
    solid = np.ones((16, 256, 16), dtype=bool)
    solid[1:15, 128:130, 1:15:4] = False
    solid[1:15:4, 128:130, 1:15] = False
    world = CubeWorld()
    world.add_array(solid)
    return world


def noise(share=0.25, seed=3):
    """Return random cubes."""
    world = CubeWorld()
    world.add_array(np.random.default_rng(seed).random((16, 256, 16)) < share)
    return world


def main():
    """Print the table."""
    n = 20000
    wish, jump = wander(n)
    top = (slice(1, 15), slice(253, 256), slice(1, 15))
    scenes = [
        ("on top of the full chunk, inside its rim", chunk(top), (8, 253.5, 8)),
        ("in corridors through the full chunk", corridors(), (1.5, 128.1, 1.5)),
        ("shaft of one cube in the full chunk", chunk((slice(8, 9), slice(100, 103), slice(8, 9))), (8.5, 100.1, 8.5)),
        ("cubes at random, a quarter of the cells", noise(), (8, 257, 8)),
    ]
    print(f"{'scene':45s} {'ns/step':>8s} {'contacts/step':>14s}")
    for name, world, feet in scenes:
        def play(world=world, feet=feet):
            SweepSlideController(world, feet).run(wish, DT, jump)

        runner = SweepSlideController(world, feet)
        hits = 0
        for k in range(500):
            runner.step(wish[k], DT, jump[k])
            hits += runner.bumps
        print(f"{name:45s} {best(play) / n * 1e9:8.0f} {hits / 500:14.2f}")
    world = scenes[1][1]
    runner = SweepSlideController(world, (1.5, 128.1, 1.5))

    def single():
        for _ in range(20000):
            runner.step((3.0, 0.0, 1.0), DT)

    print(f"{'one call of step() from Python':45s} {best(single) / 20000 * 1e9:8.0f}")
    runners = [SweepSlideController(world, (1.5 + 4 * (k % 3), 128.1, 1.5)) for k in range(1000)]
    for threads in (1, 2):
        def many(threads=threads):
            for k in range(20):
                step_many(runners, wish[k * 1000:(k + 1) * 1000], DT, threads=threads)

        print(f"{f'step_many, 1000 runners, {threads} thread(s)':45s} "
              f"{best(many, clock=time.thread_time if threads == 1 else time.perf_counter) / 20000 * 1e9:8.0f}")


if __name__ == "__main__":
    main()
