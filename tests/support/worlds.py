"""Random scenes, and their answers from every actor and triangle separately."""

import numpy as np

import pycct


def unit(rng, n=None):
    """Random unit quaternions."""
    q = rng.normal(size=4 if n is None else (n, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def soup(rng, n=40, size=1.0, span=3.0):
    """Vertices and triangles of a random mesh, some of whose triangles share edges."""
    centres = rng.uniform(-span, span, (n, 1, 3))
    points = (centres + rng.normal(size=(n, 3, 3)) * size).reshape(-1, 3)
    triangles = np.arange(3 * n).reshape(-1, 3)
    triangles[1::4, 0] = triangles[0::4, 1]
    triangles[1::4, 1] = triangles[0::4, 0]
    return points, triangles


def terrain(rng, n=8, step=1.0, rough=0.4):
    """A heightfield about the origin with holes and mixed diagonals."""
    return pycct.Heightfield(
        rng.normal(size=(n, n + 2)) * rough,
        (step, 0.7 * step),
        diagonal=rng.integers(0, 2, (n - 1, n + 1)),
        holes=rng.random((n - 1, n + 1)) < 0.1,
        row_axis="y" if rng.random() < 0.5 else "x",
        triangle_data=rng.integers(-5, 5, 2 * (n - 1) * (n + 1)),
        triangle_mask=rng.integers(1, 8, 2 * (n - 1) * (n + 1)),
    )


def shapes(rng):
    """One of every shape, with its scale."""
    v, t = soup(rng)
    free = rng.uniform(0.4, 1.8, 3) * rng.choice([-1, 1], 3)
    even = np.full(3, rng.uniform(0.5, 1.5))
    hull = pycct.ConvexHull(rng.normal(size=(rng.integers(4, 20), 3)) * 0.7)
    data, mask = rng.integers(-9, 9, len(t)), rng.integers(1, 8, len(t))
    return [
        (pycct.Mesh(v, t, False, data, mask), free),
        (pycct.Mesh(v * 0.5, t, True, data), rng.uniform(0.4, 1.8, 3)),
        (pycct.Mesh(v * 0.7, t), (1, 1, 1)),
        (terrain(rng), free),
        (terrain(rng), (1, 1, 1)),
        (pycct.Box(rng.uniform(0.2, 1, 3)), free),
        (pycct.Box(rng.uniform(0.2, 1, 3)), (1, 1, 1)),
        (pycct.Sphere(rng.uniform(0.2, 1)), even),
        (pycct.Capsule(rng.uniform(0.2, 0.6), rng.uniform(0, 1)), even),
        (hull, free),
        (hull.scaled(rng.uniform(0.5, 1.5, 3)), (1, 1, 1)),
        (hull.scaled((1, 1, 0)), (1, 1, 1)),
        (pycct.ConvexHull([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1.2, 0]]), (1, 1, 1)),
        (pycct.Triangle(*rng.normal(size=(3, 3))), free),
        (pycct.Plane(rng.normal(size=3), -4.0), (1, 1, 1)),
    ]


def placings(rng, span=5.0, copies=1):
    """Keyword arguments of `Scene.add` for a random world."""
    found = []
    for _ in range(copies):
        for shape, scale in shapes(rng):
            still = isinstance(shape, pycct.Plane)
            turned = rng.random() < 0.7
            found.append({
                "shape": shape,
                "position": (0, 0, 0) if still else tuple(rng.uniform(-span, span, 3)),
                "rotation": tuple(unit(rng)) if turned else (0, 0, 0, 1),
                "scale": tuple(scale),
                "body": rng.choice(["static", "kinematic", "dynamic"]),
                "layer": int(rng.integers(1, 8)),
            })
    return found


def scene_of(placed):
    """A scene of these placings; ids count them."""
    scene = pycct.Scene()
    for p in placed:
        scene.add(**p)
    return scene


def askers(rng):
    """Every shape that can be a query shape."""
    hull = pycct.ConvexHull(rng.normal(size=(12, 3)) * 0.5)
    return {
        "sphere": pycct.Sphere(0.35),
        "capsule": pycct.Capsule(0.3, 0.9),
        "box": pycct.Box((0.3, 0.5, 0.2)),
        "hull": hull,
        "flat hull": hull.scaled((1, 0, 1.3)),
        "triangle": pycct.Triangle((0, 0, 0), (0.8, 0.1, 0), (0.1, 0.6, 0.3)),
        "plane": pycct.Plane((0.2, -0.3, 1.0), -12.0),
    }


def single_triangles(shape):
    """Index of each triangle of a mesh or heightfield, and a mesh of that triangle alone."""
    mesh = shape.to_mesh() if isinstance(shape, pycct.Heightfield) else shape
    for k, corners in enumerate(mesh.triangles):
        if len(set(corners.tolist())) == 3:
            yield k, pycct.Mesh(mesh.vertices[corners], [[0, 1, 2]], mesh.two_sided)


def split(placed, mask):
    """The scene as one scene for each object: (actor, triangle or -1, scene, surface?)."""
    for actor, p in enumerate(placed):
        if not p["layer"] & mask:
            continue
        shape = p["shape"]
        if isinstance(shape, (pycct.Mesh, pycct.Heightfield)):
            layers = shape.triangle_mask
            for k, one in single_triangles(shape):
                if layers is None or int(layers[k]) & mask:
                    yield actor, k, scene_of([{**p, "shape": one}]), True
        else:
            yield actor, -1, scene_of([p]), False
