"""Measure distances and contacts between two shapes, beside coal.

    python bench/bench_contacts.py [--pairs 4000] [--rounds 7]

Each pair of shapes has random poses near one another, divided into separated and penetrating.
Kernel times are for one thread without the GIL: the least processor time of several rounds, divided
by the pairs. 'call' is one call from Python. coal (pip install coal) has no batch, so its column is
one call from Python too; without coal the column is empty. Hulls have 32 corners on a sphere.
"""
import argparse
import itertools
import time

import numpy as np

from pycct.convex.hull import HullTables
from pycct.queries.shape_pairs import _run_kernels, contacts_between, distance_between, distance_between_many
from pycct.shapes.primitives import Box, Capsule, ConvexHull, Sphere, Triangle

try:
    import coal
except ImportError:
    coal = None

KINDS = ("sphere", "capsule", "box", "triangle", "hull")
HEADER = ("pair", "state", "distance ns", "contacts ns", "culled ns", "call ns", "contacts call ns", "coal call ns")


def least(action, rounds):
    """Return the least processor time of several calls, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        action()
        times.append(time.thread_time() - start)
    return min(times)


def quaternions(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def ball(rng, n):
    p = rng.normal(size=(n, 3))
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def matrix(q):
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def make(rng, kind):
    """Return a shape and its counterpart in coal."""
    if kind == "sphere":
        return Sphere(0.7), coal and coal.Sphere(0.7)
    if kind == "capsule":
        return Capsule(0.4, 1.0), coal and coal.Capsule(0.4, 1.0)
    if kind == "box":
        return Box((0.6, 0.5, 0.7)), coal and coal.Box(1.2, 1.0, 1.4)
    if kind == "triangle":
        corners = np.array([(-0.7, -0.5, 0.0), (0.8, -0.4, 0.1), (0.0, 0.9, -0.1)])
        return Triangle(*corners), coal and convex(corners)
    points = ball(rng, 32)
    return ConvexHull(points), coal and convex(points)


def convex(points):
    tables = HullTables(points)
    vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    vertices.extend(list(tables.vertices))
    triangles.extend([coal.Triangle(*map(int, t)) for t in tables.triangles])
    return coal.Convex(vertices, triangles)


def kernel_time(shapes, poses, contacts, rounds, limit=np.inf):
    """Return nanoseconds per pair without the GIL; the cost of the call itself is subtracted."""
    empty = least(lambda: _run_kernels(*shapes, *poses, 0, contacts, limit), rounds)
    full = least(lambda: _run_kernels(*shapes, *poses, 5, contacts, limit), rounds)
    return (full - empty) / 5 / len(poses[1][0]) * 1e9


def call_time(function, shapes, poses, rounds):
    """Return nanoseconds per call from Python."""
    return least(lambda: [function(*shapes, *p) for p in poses], rounds) / len(poses) * 1e9


def peer_time(shapes, poses, rounds):
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    frames = [[coal.Transform3s(matrix(q), np.array(p)) for p, q in pair] for pair in poses]

    def action():
        for here, there in frames:
            result.clear()
            coal.distance(shapes[0], here, shapes[1], there, request, result)

    return least(action, rounds) / len(poses) * 1e9


def measure(rng, kind_a, kind_b, n, rounds):
    """Return rows of the table for one pair."""
    shapes, peers = zip(make(rng, kind_a), make(rng, kind_b), strict=True)
    for state, near, far in (("separated", 1.0, 2.6), ("penetrating", 0.2, 1.4)):
        positions = ball(rng, 4 * n) * rng.uniform(near, far, size=(4 * n, 1))
        qa, qb = quaternions(rng, 4 * n), quaternions(rng, 4 * n)
        distance = distance_between_many(*shapes, (np.zeros((1, 3)), qa), (positions, qb)).distance
        chosen = np.flatnonzero(distance > 0 if state == "separated" else distance < 0)[:n]
        if len(chosen) < n // 4:
            continue
        arrays = (np.zeros((1, 3)), qa[chosen]), (positions[chosen], qb[chosen])
        poses = [(((0.0, 0.0, 0.0), tuple(qa[i].tolist())), (tuple(positions[i].tolist()), tuple(qb[i].tolist())))
                 for i in chosen]
        yield [
            f"{kind_a} {kind_b}",
            state,
            kernel_time(shapes, arrays, False, rounds),
            kernel_time(shapes, arrays, True, rounds),
            kernel_time(shapes, arrays, False, rounds, 0.01) if state == "separated" else None,
            call_time(distance_between, shapes, poses, rounds),
            call_time(contacts_between, shapes, poses, rounds),
            peer_time(peers, poses, rounds) if coal else None,
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for kind_a, kind_b in itertools.combinations_with_replacement(KINDS, 2):
        for row in measure(rng, kind_a, kind_b, options.pairs, options.rounds):
            cells = row[:2] + ["" if x is None else f"{x:.0f}" for x in row[2:]]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
