"""Measure scenes: ``python bench/bench_world.py [--quick]``.

The program measures building meshes, publishing moved actors, and queries, each as the best of a
few runs in processor time of this thread, which other programs disturb least. It needs an installed
pycct.
"""
import argparse
import time

import numpy as np

import pycct


def best(call, runs):
    """Return the least processor time of some calls in seconds, and the last result."""
    least, result = float("inf"), None
    for _ in range(runs):
        start = time.thread_time()
        result = call()
        least = min(least, time.thread_time() - start)
    return least, result


def terrain(n):
    """Return a rolling heightfield of n by n cells."""
    x, y = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij")
    rough = np.random.default_rng(0).normal(size=x.shape) * 0.1
    return pycct.Heightfield(2.0 * np.sin(x * 0.11) * np.cos(y * 0.07) + rough)


def soup(n):
    """Return loose triangles in a cube."""
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 100, (n, 1, 3)) + rng.normal(size=(n, 3, 3))
    return corners.reshape(-1, 3), np.arange(3 * n).reshape(-1, 3)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller worlds, fewer runs")
    quick = parser.parse_args().quick
    side, runs, n = (200, 2, 5_000) if quick else (700, 5, 50_000)
    field = terrain(side)
    grid = field.to_mesh()
    print("building                      triangles   Mtriangles/s   bytes/triangle")
    meshes = {"terrain mesh": (np.array(grid.vertices), np.array(grid.triangles)),
              "loose triangles": soup(2 * side * side)}
    for name, (v, t) in meshes.items():
        seconds, mesh = best(lambda v=v, t=t: pycct.Mesh(v, t), runs)
        print(f"  {name:26s} {len(t):10d} {len(t) / seconds / 1e6:14.2f} {mesh.nbytes / len(t):16.1f}")
    seconds, again = best(lambda: terrain(side), runs)
    print(f"  {'heightfield':26s} {field.triangle_count:10d} {field.triangle_count / seconds / 1e6:14.2f} "
          f"{again.nbytes / field.triangle_count:16.1f}")

    scene = pycct.Scene()
    scene.add(grid)
    rng = np.random.default_rng(2)
    lifts = [scene.add(pycct.Box((0.5, 0.5, 0.2)), (*rng.uniform(0, side, 2), 3), body="kinematic") for _ in range(500)]
    ids = np.array([a.id for a in lifts])
    places = np.concatenate([rng.uniform(0, side, (500, 2)), np.full((500, 1), 3.0)], 1)

    def publish():
        scene.move_actors(ids, places)
        scene.raycast((0, 0, 50), (0, 0, -1), 1.0)

    seconds, _ = best(publish, 5 * runs)
    print(f"\n500 moved lifts, one publish: {seconds * 1e6:.0f} us")
    crowded = pycct.Scene()
    many = [crowded.add(pycct.Box((0.5, 0.5, 0.2)), (*rng.uniform(0, side, 2), 3), body="kinematic")
            for _ in range(20_000)]
    look = (0, 0, 50), (0, 0, -1), 1.0
    for n_moved in (0, 1, 500, 20_000):
        some = np.array([a.id for a in many[:n_moved]], dtype=int)
        to = np.column_stack([rng.uniform(0, side, (n_moved, 2)), np.full(n_moved, 3.0)])

        def publish_some(some=some, to=to):
            crowded.move_actors(some, to)
            start = time.thread_time()
            crowded.raycast(*look)
            return time.thread_time() - start

        took = min(publish_some() for _ in range(10 * runs))
        print(f"{n_moved} moved of 20,000, publish and one question: {took * 1e6:.0f} us")
    seconds, _ = best(lambda: (crowded.remove(many.pop()), crowded.raycast(*look)), 5 * runs)
    print(f"one of 20,000 taken out, the same: {seconds * 1e6:.0f} us")

    start = np.concatenate([rng.uniform(5, side - 5, (n, 2)), rng.uniform(1, 6, (n, 1))], 1)
    ways = rng.normal(size=(n, 3))
    print("\nquestions, many at once           us each    share that hit")
    shapes = {"sphere": pycct.Sphere(0.4), "capsule": pycct.Capsule(0.4, 1.0), "box": pycct.Box((0.4, 0.4, 0.8)),
              "hull of 20": pycct.ConvexHull(rng.normal(size=(20, 3)) * 0.4)}
    asks = {"raycast down": lambda: scene.raycast_many(start, (0, 0, -1), 20.0),
            "raycast 100 m": lambda: scene.raycast_many(start, ways * (1, 1, 0.05), 100.0)}
    for name, shape in shapes.items():
        asks[f"sweep {name} 2 m"] = lambda shape=shape: scene.sweep_many(shape, start, ways, 2.0)
    for name, shape in shapes.items():
        asks[f"overlap {name}"] = lambda shape=shape: scene.overlap_many(shape, start)
    asks["penetration capsule"] = lambda: scene.penetration_many(shapes["capsule"], start)
    asks["closest points capsule 2 m"] = lambda: scene.closest_points_many(shapes["capsule"], start, 2.0)
    for name, ask in asks.items():
        seconds, r = best(ask, runs)
        print(f"  {name:30s} {seconds / n * 1e6:9.2f} {r.hit.mean():14.2f}")
    seconds, _ = best(lambda: [scene.raycast(p, (0, 0, -1), 20.0) for p in map(tuple, start[:5000].tolist())], runs)
    print(f"  {'raycast down, one by one':30s} {seconds / 5000 * 1e6:9.2f}")


if __name__ == "__main__":
    main()
