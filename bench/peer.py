"""Shared part of the peers' processes: load a workload, run it on request, answer in JSON lines.

A peer module has ``NAME``, ``version()`` and a class ``Peer(meshes, positions, displacements, dt)``
with ``run(clock, record=None)``. The method makes all moves once, between ``clock.start()`` and
``clock.stop()``. The optional ``THREADS`` of the class is the number of threads. `record` is None
or
an array (T + 1, n, 3) for positions (z up); the time of a recording run does not count.
"""
from __future__ import annotations

import gc
import importlib
import json
import sys
import time

import numpy as np

from scenes import load


def memory_mib(what="VmRSS"):
    """Return resident memory of this process, its peak so far (VmHWM), MiB; None without /proc."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what + ":"))
    except OSError:
        return None


class Clock:
    """Wall-clock and processor nanoseconds between starts and stops."""

    def __init__(self):
        self.wall = self.cpu = 0

    def start(self):
        self._cpu, self._wall = time.process_time_ns(), time.perf_counter_ns()

    def stop(self):
        self.wall += time.perf_counter_ns() - self._wall
        self.cpu += time.process_time_ns() - self._cpu


def main(module, path):
    peer_module = importlib.import_module(module)
    meshes, positions, displacements, dt = load(path)
    n, frames, _ = displacements.shape
    before = memory_mib()
    began = time.perf_counter()
    peer = peer_module.Peer(meshes, positions, displacements, dt)
    built = time.perf_counter() - began
    record = np.empty((frames + 1, n, 3))
    record[0] = positions
    peer.run(Clock(), record)
    after = memory_mib()
    walked = np.linalg.norm(np.diff(record[..., :2], axis=0), axis=2).sum(axis=0)
    answer({
        "name": peer_module.NAME,
        "version": peer_module.version(),
        "threads": getattr(peer_module.Peer, "THREADS", 1),
        "moves": n * frames,
        "walked_m": float(walked.mean()),
        "asked_m": float(np.linalg.norm(displacements[..., :2], axis=2).sum(axis=1).mean()),
        "finite": bool(np.isfinite(record).all()),
        "build_s": built,
        "world_mib": None if before is None else after - before,
    })
    gc.collect()
    gc.disable()
    for line in sys.stdin:
        if line.strip() != "run":
            break
        clock = Clock()
        peer.run(clock)
        answer({
            "us": clock.wall / (n * frames) / 1e3,
            "cpu_us": clock.cpu / (n * frames) / 1e3,
            "peak_mib": memory_mib("VmHWM"),
        })


def answer(message):
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
