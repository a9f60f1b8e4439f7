"""Rays beside other libraries: ``python bench/bench_rays.py [--quick]``.

Random rays of 200 m, and fans of 32 rays from one origin, 15 m and 200 m long, in `terrain`,
`dungeon` and `navmesh`. All libraries answer by turns, in processor time of this process, from
Python; the table holds medians, and the ratio pycct / peer. Peers that are not installed are left
out: embreex, open3d, trimesh (over embreex) and mujoco. Single calls follow.
"""
import argparse
import statistics
import time

import numpy as np

import pycct
from scenes import SCENES

FAN = 32
SLOW = 2_000    # rays of a peer that answers one ray after another


def rays(meshes, starts, n, seed=5):
    """Name, origins, directions and length of each kind of rays."""
    rng = np.random.default_rng(seed)
    corners = np.concatenate([v for v, _ in meshes])
    low, high = corners.min(0), corners.max(0)
    origins = rng.uniform(low, high + np.array([0, 0, 2]), (n, 3))
    directions = rng.normal(size=(n, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    k = n // FAN
    centres = starts[rng.integers(0, len(starts), k)] + rng.uniform(-0.5, 0.5, (k, 3)) * [1, 1, 0.1]
    angles = np.arange(FAN) * 2 * np.pi / FAN + rng.uniform(0, 2 * np.pi, (k, 1))
    down = np.broadcast_to(rng.uniform(-0.2, 0.05, (k, 1)), angles.shape)
    fans = np.stack([np.cos(angles), np.sin(angles), down], -1)
    fans = (fans / np.linalg.norm(fans, axis=2)[..., None]).reshape(-1, 3)
    centres = np.repeat(centres, FAN, axis=0)
    return (("random, 200 m", origins, directions, 200.0), ("fans, 15 m", centres, fans, 15.0),
            ("fans, 200 m", centres, fans, 200.0))


def spent(call, *arguments):
    """Processor time of a call, seconds."""
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def repeat(call, calls, *arguments):
    """Call several times."""
    for _ in range(calls):
        call(*arguments)


def each(call, rows, length):
    """One call a ray."""
    for origin, direction in rows:
        call(origin, direction, length)


def embree(meshes, rays):
    """embreex: all rays in one call."""
    from embreex import rtcore_scene
    from embreex.mesh_construction import TriangleMesh

    scene = rtcore_scene.EmbreeScene()
    for vertices, triangles in meshes:
        TriangleMesh(scene, vertices.astype(np.float32), triangles.astype(np.int32))
    origins, directions, length = rays
    single = origins.astype(np.float32), directions.astype(np.float32), np.full(len(origins), length, np.float32)
    return lambda: scene.run(*single), len(origins)


def o3d(meshes, rays):
    """open3d: all rays in one call; its rays have no length."""
    import open3d

    scene = open3d.t.geometry.RaycastingScene(nthreads=1)
    for vertices, triangles in meshes:
        scene.add_triangles(vertices.astype(np.float32), triangles.astype(np.uint32))
    origins, directions, _ = rays
    lines = np.concatenate([origins, directions], axis=1).astype(np.float32)
    return lambda: scene.cast_rays(lines, nthreads=1), len(origins)


def over_embree(meshes, rays):
    """trimesh over embreex: triangles of all rays in one call; its rays have no length."""
    import embreex  # noqa: F401  without it, trimesh is hundreds of times slower
    import trimesh

    offsets = np.cumsum([0] + [len(v) for v, _ in meshes[:-1]])
    level = trimesh.Trimesh(np.concatenate([v for v, _ in meshes]),
                            np.concatenate([t + k for (_, t), k in zip(meshes, offsets, strict=True)]), process=False)
    origins, directions, _ = rays
    return lambda: level.ray.intersects_first(origins, directions), len(origins)


def muj(meshes, rays):
    """mujoco: `mj_ray` casts one ray a call."""
    import mujoco

    spec = mujoco.MjSpec()
    for k, (vertices, triangles) in enumerate(meshes):
        spec.add_mesh(name=str(k), uservert=vertices.ravel(), userface=triangles.ravel(),
                      inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=str(k))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    hit = np.zeros(1, np.int32)
    rows = [(o, d) for o, d in zip(*rays[:2], strict=True)][:SLOW]
    return lambda: [mujoco.mj_ray(model, data, o, d, None, 1, -1, hit) for o, d in rows], len(rows)


PEERS = {"embreex": embree, "open3d": o3d, "trimesh": over_embree, "mujoco": muj}


def installed(meshes, rays):
    """Calls of the peers that are installed, and how many rays each call casts."""
    found = {}
    for name, prepare in PEERS.items():
        try:
            found[name] = prepare(meshes, rays)
        except ImportError:
            continue
    return found


def measure(name, meshes, starts, n, rounds):
    """Measure one level and print its rows."""
    scene = pycct.Scene()
    for vertices, triangles in meshes:
        scene.add(pycct.Mesh(vertices, triangles))
    for kind, origins, directions, length in rays(meshes, starts, n):
        own = scene.raycast_many, origins, directions, length
        others = installed(meshes, (origins, directions, length))
        mine, theirs = [], {peer: [] for peer in others}
        for _ in range(rounds):
            mine.append(spent(*own) / len(origins))
            for peer, (call, rows) in others.items():
                theirs[peer].append(spent(call) / rows)
        took = statistics.median(mine)
        line = f"  {name:9s} {kind:15s} {1e6 * took:8.3f}"
        for peer, times in theirs.items():
            other = statistics.median(times)
            line += f"   {peer} {1e6 * other:.3f} ({took / other:.2f})"
        print(line, flush=True)
    for rows in (1, 32, 256, 4096):
        calls = max(1, 20_000 // rows)
        batch = scene.raycast_many, calls, origins[:rows], directions[:rows], length
        took = min(spent(repeat, *batch) for _ in range(rounds)) / calls * 1e6
        print(f"  {name:9s} {f'{rows} rows a call':15s} {took:8.2f} us a call")
    singles = [(tuple(map(float, o)), tuple(map(float, d))) for o, d in zip(origins[:2000], directions, strict=False)]
    took = min(spent(each, scene.raycast, singles, length) for _ in range(rounds)) / len(singles) * 1e6
    print(f"  {name:9s} {'single calls':15s} {took:8.2f} us a call")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rays and rounds")
    quick = parser.parse_args().quick
    n, rounds = (20_000, 3) if quick else (200_000, 7)
    print(f"{n:,} rays, medians of {rounds} rounds, us per ray")
    print("                              pycct   peer (pycct / peer)")
    for name in ("terrain", "dungeon", "navmesh"):
        made = SCENES[name]()
        if made is not None:
            measure(name, made[0], made[1], n, rounds)


if __name__ == "__main__":
    main()
