"""Measure level streaming: ``python bench/bench_streaming.py [--quick]``.

The scene contains a thousand chunk meshes of five thousand triangles. A loader thread builds, adds
and removes chunks while another thread moves a character. The program prints the longest moves with
and without the loader: in processor time of the moving thread (publishing, lookups) and by the
clock (which adds waiting for the scene's lock, the GIL and a processor). It needs an installed
pycct.
"""
import argparse
import sys
import threading
import time

import numpy as np

import pycct

SIDE = 50           # cells along a chunk: 5,000 triangles
WIDE = 32           # chunks along a row


def heights(k):
    """Return vertices of a chunk; all chunks have the same triangles."""
    x, y = np.meshgrid(np.arange(SIDE + 1.0), np.arange(SIDE + 1.0), indexing="ij")
    z = 0.3 * np.sin((x + 7 * k) * 0.3) * np.cos(y * 0.2)
    return np.stack([x, y, z], -1).reshape(-1, 3)


def grid():
    """Return triangles of a chunk."""
    i, j = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    a = (i * (SIDE + 1) + j).ravel()
    return np.concatenate([np.stack([a, a + SIDE + 1, a + SIDE + 2], 1), np.stack([a, a + SIDE + 2, a + 1], 1)])


def place(k):
    """Return the position of chunk k."""
    return (SIDE * (k % WIDE), SIDE * (k // WIDE), 0)


def summary(label, cpu, wall):
    """Format one line."""
    c, w = np.sort(cpu) * 1e6, np.sort(wall) * 1e6
    n = len(c)
    at = [int(n * q) for q in (0.5, 0.999, 0.9999)]
    print(f"  {label:28s} {n:8d} " + " ".join(f"{x:9.1f}" for x in (*c[at], c[-1], *w[at], w[-1])), flush=True)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 chunks, one second")
    quick = parser.parse_args().quick
    chunks, seconds = (100, 1.0) if quick else (1000, 10.0)
    triangles = grid()
    scene = pycct.Scene()
    placed = [scene.add(pycct.Mesh(heights(k), triangles), place(k)) for k in range(chunks)]

    def move(until):
        """Move until a time; return the times of all moves."""
        hero = pycct.CharacterController(scene, position=(25, 25, 3), step_offset=0.4)
        cpu, wall = [], []
        k = 0
        end = time.perf_counter() + until
        while time.perf_counter() < end:
            k += 1
            turn = k * 0.01
            d = (0.08 * np.cos(turn), 0.08 * np.sin(turn), -0.05)
            d = (float(d[0]), float(d[1]), d[2])
            c, w = time.thread_time(), time.perf_counter()
            hero.move(d, 1 / 60)
            wall.append(time.perf_counter() - w)
            cpu.append(time.thread_time() - c)
        return np.array(cpu), np.array(wall)

    stop = threading.Event()
    streamed = [0]

    def load():
        """Replace one chunk after another."""
        k = 1
        while not stop.is_set():
            mesh = pycct.Mesh(heights(streamed[0]), triangles)
            at = 1 + k % (chunks - 1)      # never the chunk of the character
            with scene.edit():
                scene.remove(placed[at])
                placed[at] = scene.add(mesh, place(at))
            k += 1
            streamed[0] += 1

    print(f"{chunks} chunks of {len(triangles)} triangles; us per move\n"
          f"  {'':28s} {'moves':>8s}      cpu: median, 99.9, 99.99 %, worst       clock: the same")
    move(0.2)
    summary("nobody else", *move(seconds))
    loader = threading.Thread(target=load)
    loader.start()
    start = time.perf_counter()
    cpu, wall = move(seconds)
    passed = time.perf_counter() - start
    stop.set()
    loader.join()
    summary("with a loader", cpu, wall)
    print(f"  the loader streamed {streamed[0] / passed:.0f} chunks a second; the interpreter's switch interval is "
          f"{sys.getswitchinterval() * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
