"""Environment steps per second: ``python bench/bench_rl.py [--envs 4096] [--levels 1024] [--threads
2] [--seconds 4]``.

The first table measures ``pycct/Goal-v0`` with sensing, rewards and resets: with 30 rays of 15 m
and without rays, with one thread and with the given number. A step of a batch counts as many steps
as there are environments. `cpu us` is the time that all threads of the process compute for a step
of one environment. Other processes disturb it less than the clock. CartPole in Gymnasium's
``SyncVectorEnv`` follows, and MiniGrid where it is installed.

The second table compares ``Worlds`` with one scene that holds the same levels side by side. Members
wander in both, moved by turns.
"""
import argparse
import statistics
import time

import gymnasium as gym
import numpy as np

import pycct
import pycct.rl
from pycct.rl import CrowdVectorEnv


def measure(envs, seconds):
    """(steps per second, microseconds of computing a step), medians over rounds of 20 batches."""
    envs.reset(seed=0)
    n = envs.num_envs
    rng = np.random.default_rng(0)
    continuous = isinstance(envs.single_action_space, gym.spaces.Box)
    rates, costs = [], []
    begun = time.perf_counter()
    while len(rates) < 3 or time.perf_counter() - begun < seconds:
        if continuous:
            actions = rng.uniform(-1.0, 1.0, envs.action_space.shape).astype(np.float32)
        else:
            actions = rng.integers(0, envs.single_action_space.n, n)
        clock, cpu = time.perf_counter(), time.process_time()
        for _ in range(20):
            envs.step(actions)
        rates.append(20 * n / (time.perf_counter() - clock))
        costs.append(1e6 * (time.process_time() - cpu) / (20 * n))
    return statistics.median(rates), statistics.median(costs)


def environments(given):
    print("| environments | number | threads | steps/s | cpu us |\n|---|---:|---:|---:|---:|")
    for rays in (30, 0):
        for threads in sorted({1, given.threads}):
            envs = CrowdVectorEnv("Goal", given.envs, levels=given.levels, threads=threads, rays=rays, reach=15.0,
                                  autoreset_mode="SameStep")
            rate, cost = measure(envs, given.seconds)
            print(f"| Goal, {rays} rays | {given.envs} | {threads} | {rate:,.0f} | {cost:.2f} |", flush=True)
            assert envs.lost == 0
    peers = [("CartPole-v1", 64)]
    try:
        import minigrid  # noqa: F401

        peers.append(("MiniGrid-Empty-8x8-v0", 64))
    except ImportError:
        print("| MiniGrid | not installed | | | |")
    for name, n in peers:
        envs = gym.make_vec(name, num_envs=n, vectorization_mode="sync")
        rate, cost = measure(envs, given.seconds)
        print(f"| {name}, SyncVectorEnv | {n} | 1 | {rate:,.0f} | {cost:.2f} |", flush=True)


def wander(rng, steps, n):
    """(steps, n, 3) motions: 4 m/s in directions that change twice a second, held down."""
    angle = np.repeat(rng.uniform(0.0, 2.0 * np.pi, (steps // 10 + 1, n)), 10, axis=0)[:steps]
    return np.stack([0.2 * np.cos(angle), 0.2 * np.sin(angle), np.full(angle.shape, -0.1)], axis=2)


def worlds(given):
    n, count = given.envs, given.levels
    levels = [pycct.rl.generate("rooms", seed) for seed in range(count)]
    home = np.arange(n) % count
    spots = [levels[h].spots[(i // count) % len(levels[h].spots)] for i, h in enumerate(home)]
    places = np.array(spots) + np.array((0, 0, 0.935))
    look = {"radius": 0.3, "height": 1.0, "step_offset": 0.4, "contact_offset": 0.01, "rules": "robust"}
    scenes = [pycct.Scene() for _ in levels]
    for scene, level in zip(scenes, levels, strict=True):
        level.build(scene)
    row = int(np.ceil(np.sqrt(count)))
    offsets = np.array([(64.0 * (k % row), 64.0 * (k // row), 0.0) for k in range(count)])
    whole = pycct.Scene()
    with whole.edit():
        for level, offset in zip(levels, offsets, strict=True):
            whole.add(level.mesh(), position=offset)
    crowds = {
        "Worlds": pycct.Crowd(pycct.Worlds(scenes), places, world=home, **look),
        "side by side in one scene": pycct.Crowd(whole, places + offsets[home], **look),
    }
    ways = wander(np.random.default_rng(1), 200, n)
    spent = {name: [] for name in crowds}
    for k, way in enumerate(ways):
        for name, crowd in crowds.items():
            cpu = time.process_time()
            crowd.move(way, 0.05)
            if k >= 20:
                spent[name].append(time.process_time() - cpu)
    ratio = statistics.median(a / b for a, b in zip(*spent.values(), strict=True))
    triangles = [len(level.triangles) for level in levels]
    size = f"{np.mean(triangles):.0f} triangles a level, at most {max(triangles)}"
    print(f"\n{n} members, {count} levels, one thread; {size}\n")
    print("| members live in | cpu us per move |\n|---|---:|")
    for name, times in spent.items():
        print(f"| {name} | {1e6 * statistics.median(times) / n:.2f} |")
    print(f"\nWorlds take {ratio:.2f} times as long.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--levels", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    environments(given)
    worlds(given)


if __name__ == "__main__":
    main()
