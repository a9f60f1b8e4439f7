"""Queries with shapes beside coal and trimesh: ``python bench/bench_queries.py [--quick]``.

Sweeps, overlaps, penetrations and closest points in `terrain`, `dungeon` and `navmesh`, and the
same queries of a heightfield beside the mesh of its triangles. All are called from Python by turns,
in processor time of this process; the table holds medians in us a query. Peers that are not
installed are left out: coal (overlap of a capsule, one call a query), trimesh with rtree and open3d
(closest points of many places in one call). bench_rays.py measures rays.
"""
import argparse
import statistics
import time

import numpy as np

import pycct
from scenes import SCENES

try:
    import coal
except ImportError:
    coal = None
try:
    import rtree  # noqa: F401  trimesh needs it for closest points
    import trimesh
except ImportError:
    trimesh = None
try:
    import open3d
except ImportError:
    open3d = None

SPHERE, CAPSULE = pycct.Sphere(0.25), pycct.Capsule(0.4, 1.0)


def questions(starts, n, seed=3):
    """Places near the ground, directions, lengths."""
    rng = np.random.default_rng(seed)
    places = starts[rng.integers(0, len(starts), n)] + rng.uniform(-3, 3, (n, 3)) * [1, 1, 0.3]
    ways = rng.normal(size=(n, 3)) * [1, 1, 0.4]
    return places, ways / np.linalg.norm(ways, axis=1)[:, None], rng.uniform(1, 10, n)


def queries(scene, places, ways, lengths):
    """Name and call of each kind of query."""
    return {
        "sweep sphere": lambda: scene.sweep_many(SPHERE, places, ways, lengths),
        "sweep capsule": lambda: scene.sweep_many(CAPSULE, places, ways, lengths),
        "overlap sphere": lambda: scene.overlap_many(SPHERE, places),
        "overlap capsule": lambda: scene.overlap_many(CAPSULE, places),
        "penetration capsule": lambda: scene.penetration_many(CAPSULE, places),
        "closest sphere": lambda: scene.closest_points_many(SPHERE, places),
        "closest capsule": lambda: scene.closest_points_many(CAPSULE, places),
    }


def coal_overlap(vertices, triangles, places):
    """A call for each place, against one tree."""
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(vertices))
    points = coal.StdVec_Vec3s()
    faces = coal.StdVec_Triangle()
    points.extend([np.asarray(p, float) for p in vertices])
    faces.extend([coal.Triangle(*map(int, t)) for t in triangles])
    model.addSubModel(points, faces)
    model.endModel()
    capsule, still, place = coal.Capsule(0.4, 1.0), coal.Transform3s(), coal.Transform3s()
    request, result = coal.CollisionRequest(), coal.CollisionResult()

    def run():
        for p in places:
            place.setTranslation(p)
            result.clear()
            coal.collide(model, still, capsule, place, request, result)

    return run


def peers(meshes, places):
    """Calls of the libraries that are installed, by the query they answer."""
    offsets = np.cumsum([0] + [len(v) for v, _ in meshes[:-1]])
    vertices = np.concatenate([v for v, _ in meshes])
    triangles = np.concatenate([t + k for (_, t), k in zip(meshes, offsets, strict=True)])
    found = {}
    if coal is not None:
        found["overlap capsule", "coal"] = coal_overlap(vertices, triangles, places)
    if trimesh is not None:
        mesh = trimesh.Trimesh(vertices, triangles, process=False)
        found["closest sphere", "trimesh"] = lambda: trimesh.proximity.closest_point(mesh, places)
    if open3d is not None:
        level = open3d.t.geometry.RaycastingScene()
        level.add_triangles(vertices.astype(np.float32), triangles.astype(np.uint32))
        single = places.astype(np.float32)
        found["closest sphere", "open3d"] = lambda: level.compute_closest_points(single)
    return found


def spent(call):
    """Processor time of a call, seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(title, calls, n, rounds):
    """Measure calls by turns and print their medians, us a query."""
    took = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            took[name].append(spent(call))
    for name, times in took.items():
        print(f"  {title:12s} {name:32s} {statistics.median(times) / n * 1e6:9.3f}", flush=True)


def heightfields(n, rounds):
    """A heightfield of 80,000 triangles, and the mesh of the same triangles."""
    rng = np.random.default_rng(1)
    x = np.arange(201) * 0.5
    heights = 2 * np.sin(x[:, None] / 7) * np.cos(x / 5) + rng.uniform(-0.05, 0.05, (201, 201))
    field = pycct.Heightfield(heights, 0.5)
    starts = np.stack([*np.meshgrid(x[10:-10], x[10:-10], indexing="ij"), heights[10:-10, 10:-10]], -1).reshape(-1, 3)
    places, ways, lengths = questions(np.add(starts, (0, 0, 1)), n)
    calls = {}
    for kind, shape in (("heightfield", field), ("mesh", field.to_mesh())):
        scene = pycct.Scene()
        scene.add(shape)
        calls[f"raycast, {kind}"] = lambda scene=scene: scene.raycast_many(places, ways, lengths)
        for name, call in queries(scene, places, ways, lengths).items():
            calls[f"{name}, {kind}"] = call
    compare("heightfield", dict(sorted(calls.items())), n, rounds)


def single_calls(scene, places, ways, rounds):
    """One query a call, from Python."""
    rows = [(tuple(map(float, p)), tuple(map(float, d))) for p, d in zip(places[:1000], ways, strict=False)]
    compare("one a call", {
        "raycast": lambda: [scene.raycast(p, d, 15.0) for p, d in rows],
        "sweep sphere": lambda: [scene.sweep(SPHERE, p, d, 3.0) for p, d in rows],
        "overlap sphere": lambda: [scene.overlap(SPHERE, p) for p, _ in rows],
    }, len(rows), rounds)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer queries and rounds")
    quick = parser.parse_args().quick
    n, rounds = (2_000, 3) if quick else (20_000, 7)
    print(f"{n:,} queries, medians of {rounds} rounds, us a query")
    for level in ("terrain", "dungeon", "navmesh"):
        made = SCENES[level]()
        if made is None:
            continue
        meshes, starts = made[0], np.asarray(made[1])
        scene = pycct.Scene()
        for vertices, triangles in meshes:
            scene.add(pycct.Mesh(vertices, triangles))
        places, ways, lengths = questions(starts, n)
        compare(level, queries(scene, places, ways, lengths), n, rounds)
        few = places[:200 if quick else 2000]
        for (name, peer), call in peers(meshes, few).items():
            compare(level, {f"{name}, {peer}": call}, len(few), min(rounds, 3))
        if level == "terrain":
            single_calls(scene, places, ways, rounds)
    heightfields(n, rounds)


if __name__ == "__main__":
    main()
