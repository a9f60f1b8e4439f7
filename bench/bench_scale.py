"""Measure speed and memory of large scenes and crowds: ``python bench/bench_scale.py [--quick]``.

The scene is rolling ground with two triangles on each square metre: ten thousand, a million and ten
million triangles. The program measures 256 walking characters (warm: candidates stay in the cache)
and 10,000 scattered ones. It then measures 10,000 colliding characters with four neighbours within
2 m on average, beside the same without collisions, the memory of each of 100,000, and the build of
a mesh of a million triangles on one and two threads. It needs an installed pycct.
"""
import argparse
import gc
import platform
import time

import numpy as np

import pycct
from peer import memory_mib
from scenes import CONTACT_OFFSET, DOWN, DT, HALF_HEIGHT, HEIGHT, MIN_DISTANCE, RADIUS, SLOPE_LIMIT, SPEED, STEP_OFFSET

LOOK = {"radius": RADIUS, "height": HEIGHT, "contact_offset": CONTACT_OFFSET, "step_offset": STEP_OFFSET,
        "slope_limit": SLOPE_LIMIT}


def height(x, y):
    """Return the height of the `terrain` workload, without its steepest steps."""
    k = 2 * np.pi
    return (4.0 * np.sin(k * x / 41) * np.cos(k * y / 37 + 0.7)
            + 1.6 * np.sin(k * x / 17 + 1.1) * np.sin(k * y / 19 + 0.3)
            + 0.35 * np.sin(k * x / 6.1 + k * y / 7.3))


def ground(triangles):
    """Return the side of a square of 1 m cells with about that many triangles, and its arrays."""
    side = round((triangles / 2) ** 0.5)
    line = np.arange(side + 1) - side / 2
    x, y = np.meshgrid(line, line, indexing="ij")
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).ravel().astype(np.int32)
    faces = np.empty((2 * side * side, 3), np.int32)
    faces[0::2] = np.stack([corner, corner + side + 1, corner + side + 2], -1)
    faces[1::2] = np.stack([corner, corner + side + 2, corner + 1], -1)
    return side, np.stack([x, y, height(x, y)], -1).reshape(-1, 3), faces


def scattered(n, side, seed):
    """Return positions a little above the ground."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(-0.5 * side + 2, 0.5 * side - 2, (n, 2))
    return np.column_stack([at, height(*at.T) + HALF_HEIGHT + 0.25])


def courses(n, moves, seed):
    """Return displacements (moves, n, 3) on a turning course that stays on the ground."""
    rng = np.random.default_rng(seed)
    heading, rate = rng.uniform(0, 2 * np.pi, n), rng.choice([-1, 1], n) * rng.uniform(2.0, 4.0, n)
    course = heading + rate * DT * np.arange(moves)[:, None]
    return np.stack([np.cos(course) * SPEED * DT, np.sin(course) * SPEED * DT, np.full_like(course, -DOWN)], -1)


def timed(call):
    """Return seconds by the clock and of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def microseconds(crowd, path, runs, threads=(1,)):
    """Return (clock, processor) per move for each number of threads.

    Each figure is the best of some rounds over the path, in turn and all from the same positions,
    after a warm-up round.
    """
    places = crowd.positions.copy()
    best = [[] for _ in threads]
    for turn in range(runs + 1):
        for k, many in enumerate(threads):
            crowd.teleport(np.arange(len(crowd)), places)
            wall = cpu = 0.0
            for way in path:
                w, c, _ = timed(lambda way=way, many=many: crowd.move(way, DT, threads=many, min_distance=MIN_DISTANCE))
                wall, cpu = wall + w, cpu + c
            if turn:
                best[k].append((wall, cpu))
    each = 1e6 / (len(path) * len(crowd))
    return [(min(b[0] for b in rounds) * each, min(b[1] for b in rounds) * each) for rounds in best]


def row(what, *figures):
    print(f"  {what:<44}" + "".join(f"{figure:>14}" for figure in figures), flush=True)


def neighbours(crowd, reach=2.0):
    """Return the mean number of other characters within reach of a character."""
    p = crowd.positions
    cells = {}
    for i, key in enumerate(map(tuple, np.floor(p[:, :2] / reach).astype(int).tolist())):
        cells.setdefault(key, []).append(i)
    total = 0
    for (a, b), mine in cells.items():
        around = [j for da in (-1, 0, 1) for db in (-1, 0, 1) for j in cells.get((a + da, b + db), ())]
        far = np.linalg.norm(p[mine][:, None] - p[around][None], axis=2)
        total += int((far < reach).sum()) - len(mine)
    return total / len(p)


def bytes_each(n, triangles):
    """Return resident memory of a crowd per character, after some moves."""
    side, vertices, faces = ground(triangles)
    scene = pycct.Scene()
    scene.add(pycct.Mesh(vertices, faces))
    del vertices, faces
    places, path = scattered(n, side, 3), courses(n, 3, 4)
    pycct.Crowd(scene, places[:10], **LOOK).move(path[0][:10], DT)
    gc.collect()
    before = memory_mib()
    crowd = pycct.Crowd(scene, places, **LOOK)
    for way in path:
        crowd.move(way, DT)
    after = memory_mib()
    return None if before is None else (after - before) * 2**20 / len(crowd)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no ten million triangles, fewer moves")
    quick = parser.parse_args().quick
    worlds = (10_000, 1_000_000) if quick else (10_000, 1_000_000, 10_000_000)
    moves, runs = (30, 1) if quick else (120, 3)
    print(f"pycct {pycct.__version__}, Python {platform.python_version()}, {platform.machine()}\n")

    # Memory is measured first, while the allocator has nothing to reuse.
    print("memory" + " " * 40 + "   bytes each")
    each = bytes_each(100_000, 100_000)
    row("100,000 characters, warm", "-" if each is None else f"{each:.0f}")

    print("\nus per move, one thread" + " " * 23 + "        clock       cpu us")
    for triangles in worlds:
        side, vertices, faces = ground(triangles)
        scene = pycct.Scene()
        scene.add(pycct.Mesh(vertices, faces, threads=2))
        n = len(faces)
        del vertices, faces
        crowd = pycct.Crowd(scene, scattered(256, min(side, 200), 1), **LOOK)
        ((wall, cpu),) = microseconds(crowd, courses(256, moves, 2), runs)
        row(f"{n:,} triangles: 256 warm", f"{wall:.2f}", f"{cpu:.2f}")
        crowd = pycct.Crowd(scene, scattered(10_000, side, 1), **LOOK)
        ((wall, cpu),) = microseconds(crowd, courses(10_000, max(moves // 4, 8), 2), runs)
        row(f"{n:,} triangles: 10,000 scattered", f"{wall:.2f}", f"{cpu:.2f}")
        del crowd, scene

    print("\n10,000 characters, four neighbours each" + " " * 7 + "        clock       cpu us   neighbours")
    # Four in a circle of 2 m are one on pi square metres. Slopes and the edge remove one in six.
    side = (10_000 * np.pi * 0.84) ** 0.5
    scene = pycct.Scene()
    scene.add(pycct.Mesh(*ground(100_000)[1:]))
    path = courses(10_000, max(moves // 4, 8), 2)
    for collide, order in ((False, "simultaneous"), (True, "simultaneous"), (True, "sequential")):
        crowd = pycct.Crowd(scene, scattered(10_000, side + 4, 1), collide=collide, order=order, **LOOK)
        several = (1, 2) if order == "simultaneous" else (1,)
        for threads, (wall, cpu) in zip(several, microseconds(crowd, path, runs, several), strict=True):
            what = f"colliding, {order}" if collide else "alone"
            what += f", {threads} thread{'s' * (threads > 1)}"
            row(what, f"{wall:.2f}", f"{cpu:.2f}", f"{neighbours(crowd):.1f}")

    print("\nbuilding a million triangles" + " " * 18 + "      clock s        cpu s")
    _, vertices, faces = ground(1_000_000)
    for threads in (1, 2):
        best = min(timed(lambda t=threads: pycct.Mesh(vertices, faces, threads=t))[:2] for _ in range(runs + 1))
        row(f"{threads} thread{'s' * (threads > 1)}", f"{best[0]:.3f}", f"{best[1]:.3f}")


if __name__ == "__main__":
    main()
