"""Measure cooked files: ``python bench/bench_cooked.py [--quick] [--folder F]``.

The program measures building, saving and loading a mesh of ten million triangles, and the memory of
four worker processes that load it and walk about. It needs an installed pycct. Times are wall
clock.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import pycct


def ground(cells):
    """Return vertices and triangles of a rolling grid, 1 m a cell."""
    x, y = np.meshgrid(np.arange(cells + 1.0), np.arange(cells + 1.0), indexing="ij")
    z = 2.0 * np.sin(x * 0.11) * np.cos(y * 0.07) + np.random.default_rng(0).normal(size=x.shape) * 0.1
    i, j = np.meshgrid(np.arange(cells), np.arange(cells), indexing="ij")
    a = (i * (cells + 1) + j).ravel()
    b, c, d = a + cells + 1, a + cells + 2, a + 1
    triangles = np.stack([np.stack([a, b, c], 1), np.stack([a, c, d], 1)], 1).reshape(-1, 3)
    return np.stack([x, y, z], -1).reshape(-1, 3), triangles


def memory():
    """Return Rss, Pss, private and file-backed memory of this process, MiB."""
    with open("/proc/self/smaps_rollup") as f:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in f if line.endswith("kB\n")}
    return {"rss": kib["Rss"] / 1024, "pss": kib["Pss"] / 1024,
            "private": (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024}


def report(label, m):
    """Format one line of memory."""
    print(f"  {label:34s} {m['rss']:9.1f} {m['pss']:9.1f} {m['private']:9.1f}", flush=True)


def work(path, number, cells):
    """Run one worker: load, signal, walk about, wait for the others, report memory."""
    before = memory()
    start = time.perf_counter()
    scene = pycct.Scene.load(path)
    opened = time.perf_counter() - start
    start = time.perf_counter()
    scene.raycast((cells / 2, cells / 2, 50), (0, 0, -1), 100)
    first = time.perf_counter() - start
    loaded = memory()
    # Each worker visits the whole scene.
    rng = np.random.default_rng(number)
    scene.raycast_many(np.column_stack([rng.uniform(0, cells, (300_000, 2)), np.full(300_000, 50.0)]), (0, 0, -1), 100)
    hero = pycct.CharacterController(scene, position=(cells / 2, cells / 2, 5))
    for _ in range(2000):
        hero.move((0.08, 0.03, -0.05), 1 / 60)
    print("ready", flush=True)
    sys.stdin.readline()
    now = memory()
    print(f"{opened} {first} {before['rss']} {before['pss']} {before['private']} {loaded['rss']} {loaded['pss']} "
          f"{loaded['private']} {now['rss']} {now['pss']} {now['private']}", flush=True)
    sys.stdin.readline()


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="400 thousand triangles instead of ten million")
    parser.add_argument("--folder", help="where to put the file (default: the system's for temporary files)")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker[0], int(args.worker[1]), int(args.worker[2]))
        return
    cells = 447 if args.quick else 2237
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = os.path.join(folder, "scene.cooked")
        vertices, triangles = ground(cells)
        start = time.perf_counter()
        mesh = pycct.Mesh(vertices, triangles)
        built = time.perf_counter() - start
        scene = pycct.Scene()
        scene.add(mesh)
        start = time.perf_counter()
        scene.save(path)
        saved = time.perf_counter() - start
        size = os.path.getsize(path)
        print(f"{len(triangles)} triangles: built in {built:.2f} s, saved in {saved:.2f} s, "
              f"{size / 2**20:.0f} MiB, {size / len(triangles):.1f} bytes a triangle")
        del vertices, triangles, mesh, scene
        opens = []
        for _ in range(5):
            start = time.perf_counter()
            again = pycct.Scene.load(path)
            opens.append(time.perf_counter() - start)
            del again
        start = time.perf_counter()
        pycct.Scene.load(path, verify=True)
        verified = time.perf_counter() - start
        print(f"opened in {min(opens) * 1e3:.2f} ms (worst of five {max(opens) * 1e3:.2f}), "
              f"verified in {verified:.2f} s")
        workers = [subprocess.Popen([sys.executable, __file__, "--worker", path, str(k), str(cells)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for k in range(4)]
        for w in workers:
            if w.stdout.readline() != "ready\n":
                raise SystemExit("a worker failed")
        rows = []
        for w in workers:
            w.stdin.write("\n")
            w.stdin.flush()
            rows.append([float(x) for x in w.stdout.readline().split()])
        for w in workers:
            w.stdin.write("\n")
            w.stdin.flush()
            w.wait()
    print("\nfour workers, MiB                        rss       pss   private")
    for k, row in enumerate(rows):
        print(f" worker {k}: opened in {row[0] * 1e3:.2f} ms, first question after {row[1] * 1e3:.2f} ms more")
        for label, at in (("python and pycct", 2), ("loaded, one question", 5), ("walked all over", 8)):
            report(label, dict(zip(("rss", "pss", "private"), row[at:at + 3], strict=True)))
    print(f"  {'all four together (sum of pss)':34s} {'':9s} {sum(r[9 - 0] for r in rows):9.1f} "
          f"{sum(r[10] for r in rows):9.1f}")


if __name__ == "__main__":
    main()
