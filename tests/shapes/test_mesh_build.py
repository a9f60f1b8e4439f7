"""Any number of threads builds the same mesh tree, which contains every triangle once."""

import copy
import pickle

import numpy as np
import pytest

import pycct
from pycct import Mesh, Scene, Sphere

DOWN = (0, 0, -1)
UP = np.array([0, 0, 1.0])
PIECE = 1 << 16  # most triangles of a part that one thread builds by itself
THREADS = (1, 2, 3, 8)


def scattered(n, seed=0):
    """Random small triangles, at most one above each cell of a square; none covers another."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(n)))
    cell = rng.permutation(side * side)[:n]
    corner = np.stack([cell // side, cell % side, np.zeros(n)], -1) + 0.5
    corner[:, 2] = rng.uniform(-3, 3, n)
    turn = np.array([[-0.4, -0.4, 0], [0.4, -0.4, 0.1], [0, 0.4, 0.2]])
    return (corner[:, None] + turn).reshape(-1, 3), np.arange(3 * n).reshape(n, 3)


def cooked(tmp_path, mesh):
    """Bytes of a cooked scene with this mesh: vertices, triangles, normals, tree and order."""
    scene = Scene()
    scene.add(mesh)
    path = tmp_path / "mesh.cooked"
    scene.save(path)
    return path.read_bytes()


def rays(mesh, start):
    scene = Scene()
    scene.add(mesh)
    return scene.raycast_many(start, DOWN, 100.0)


def middles(vertices, triangles):
    return vertices[triangles].mean(1)


@pytest.mark.parametrize("n", [*range(1, 10), 63, 64, 65, 1000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 7])
def test_the_tree_is_the_same_for_any_number_of_threads(tmp_path, n):
    vertices, triangles = scattered(n, n)
    alone = cooked(tmp_path, Mesh(vertices, triangles))
    for threads in THREADS:
        assert cooked(tmp_path, Mesh(vertices, triangles, threads=threads)) == alone, threads


@pytest.mark.parametrize("n", [*range(1, 10), 63, 64, 65, 1000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 7])
def test_every_triangle_is_found(n):
    vertices, triangles = scattered(n, n)
    mesh = Mesh(vertices, triangles, triangle_data=np.arange(n) * 7, threads=2)
    centre = middles(vertices, triangles)
    hit = rays(mesh, centre + 10 * UP)
    assert hit.hit.all()
    assert hit.triangle.tolist() == list(range(n))
    assert hit.data.tolist() == [7 * k for k in range(n)]
    np.testing.assert_allclose(hit.distance, 10.0, rtol=0, atol=1e-9)
    # And nothing where there is nothing.
    assert not rays(mesh, [[-1.0, -1.0, 50.0], [0.01, 0.01, 50.0]]).hit.any()


def test_sweeps_give_the_same_bits():
    vertices, triangles = scattered(3 * PIECE, 5)
    rng = np.random.default_rng(6)
    start, way = rng.uniform(0, 400, (300, 3)) * [1, 1, 0] + [0, 0, 8], rng.normal(size=(300, 3))
    way[:, 2] = -abs(way[:, 2])
    found = []
    for threads in (1, 2, 5):
        scene = Scene()
        scene.add(Mesh(vertices, triangles, threads=threads))
        r = scene.sweep_many(pycct.Capsule(0.4, 1.0), start, way, 30.0)
        assert r.hit.mean() > 0.5
        found.append([np.asarray(x).tobytes() for x in (r.hit, r.distance, r.position, r.normal, r.triangle)])
    assert found[0] == found[1] == found[2]


def test_triangles_without_area_are_dropped(tmp_path):
    """Wherever they stand: first, last, whole chunks of them."""
    n = 30_000
    vertices, triangles = scattered(n, 7)
    rng = np.random.default_rng(8)
    for gone in (
        np.arange(n) < 1,
        np.arange(n) >= n - 1,
        (np.arange(n) >= 8192) & (np.arange(n) < 16384),
        rng.random(n) < 0.5,
        np.arange(n) > 3,
    ):
        given = triangles.copy()
        given[gone, 2] = given[gone, rng.integers(0, 2, gone.sum())]
        meshes = [Mesh(vertices, given, triangle_data=np.arange(n), threads=k) for k in (1, 2, 4)]
        centre = middles(vertices, triangles)
        for mesh in meshes:
            assert mesh.n_degenerate == gone.sum()
            assert mesh.triangle_count == n
        hit = rays(meshes[1], centre + 10 * UP)
        assert hit.hit.tolist() == (~gone).tolist()
        assert hit.triangle[~gone].tolist() == np.flatnonzero(~gone).tolist()
        assert hit.data[~gone].tolist() == np.flatnonzero(~gone).tolist()
        files = {cooked(tmp_path, mesh) for mesh in meshes}
        assert len(files) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_but_triangles_without_area(threads):
    vertices = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    mesh = Mesh(vertices, [[0, 1, 2]] * 20_000, threads=threads)
    assert mesh.n_degenerate == mesh.triangle_count == 20_000
    scene = Scene()
    scene.add(mesh)
    assert scene.raycast((1, 0, 5), DOWN, 9) is None
    assert not scene.overlap(Sphere(5), (0, 0, 0))
    hero = pycct.CharacterController(scene, (0, 0, 1))
    hero.move((0, 0, -3), 1 / 60)
    assert hero.position == (0, 0, -2)


def deep(kind):
    """Vertices and triangles whose tree cannot be parted by place, or only one at a time."""
    if kind == "one place":
        n = PIECE + 4464
        return np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.tile([[0, 1, 2]], (n, 1))
    if kind == "two places":
        n = PIECE + 4464
        both = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
        return np.concatenate([both, both + 5 * UP[::-1]]), np.tile([[0, 1, 2], [3, 4, 5]], (n // 2, 1))
    if kind == "ever closer":
        # Each is a quarter as far out as the one before: the first bin takes all but one, again and
        # again.
        away = 4.0 ** -np.arange(60.0) * 1e11
    else:
        # Many of each, from far out to near.
        away = np.repeat(4.0 ** np.arange(20.0), 4000)
    corner = np.zeros((len(away), 3, 3))
    corner[:, :, 0] = away[:, None] + np.multiply.outer(away, [0, 0.5, 0.0])
    corner[:, :, 1] = np.multiply.outer(away, [0, 0, 0.5])
    return corner.reshape(-1, 3), np.arange(3 * len(away)).reshape(-1, 3)


@pytest.mark.parametrize("kind", ["one place", "two places", "ever closer", "many ever closer"])
def test_trees_that_would_be_too_deep(tmp_path, kind):
    vertices, triangles = deep(kind)
    n = len(triangles)
    one, two = (Mesh(vertices, triangles, threads=threads) for threads in (1, 2))
    # The file tells whether the trees are alike; opening it checks each node.
    assert cooked(tmp_path, one) == cooked(tmp_path, two)
    assert Scene.load(tmp_path / "mesh.cooked", verify=True).actors[0].shape.triangle_count == n
    size = abs(vertices[triangles]).max((1, 2))
    centre = middles(vertices, triangles)[(size > 1e-3) & (size < 1e6)][:100]
    assert len(centre) > 10
    a, b = rays(one, centre + UP), rays(two, centre + UP)
    assert a.hit.all() and a.distance.tobytes() == b.distance.tobytes()
    # Coinciding triangles tie: the ray reports the first.
    first = {tuple(c): k for k, c in reversed(list(enumerate(middles(vertices, triangles).tolist())))}
    assert a.triangle.tolist() == b.triangle.tolist() == [first[tuple(c)] for c in centre.tolist()]


@pytest.mark.parametrize(("value", "error"), [
    (0, ValueError), (-1, ValueError), (-(10**30), ValueError), (1.0, TypeError), ("2", TypeError), (None, TypeError),
    (True, TypeError), ([1], TypeError),
])
def test_threads_must_make_sense(value, error):
    vertices, triangles = scattered(4)
    with pytest.raises(error, match="threads"):
        Mesh(vertices, triangles, threads=value)
    with pytest.raises(TypeError):
        Mesh(vertices, triangles, False, None, None, 2)


def test_more_threads_than_there_can_be(tmp_path):
    vertices, triangles = scattered(PIECE + 5)
    assert cooked(tmp_path, Mesh(vertices, triangles, threads=10**9)) == cooked(tmp_path, Mesh(vertices, triangles))
    assert Mesh(vertices, triangles, threads=np.int64(2)).triangle_count == PIECE + 5


def test_copies_are_built_alike(tmp_path):
    vertices, triangles = scattered(2 * PIECE)
    mesh = Mesh(vertices, triangles, threads=2)
    want = cooked(tmp_path, mesh)
    assert cooked(tmp_path, pickle.loads(pickle.dumps(mesh))) == want
    assert cooked(tmp_path, copy.deepcopy(mesh)) == want
