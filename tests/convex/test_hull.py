"""Convex hulls: closed, convex, merged, and the same whatever the order of the points."""
import itertools
import pickle

import numpy as np
import pytest

from pycct import ConvexHull, HullTables, Scene, reference

CUBE = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else q[:, ::-1]


def prism(n, height=1.0):
    angle = np.arange(n) * 2 * np.pi / n
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([np.c_[ring, np.full(n, z)] for z in (0.0, height)])


def sphere(rng, n):
    p = rng.normal(size=(n, 3))
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def signature(hull):
    return (hull.dimension, hull.vertices.tobytes(), hull.planes.tobytes(), hull.edges.tobytes(),
            hull.edge_faces.tobytes(), hull.faces, hull.triangles.tobytes(), hull.outlines)


def check(hull, points):
    """Everything that any solid hull must satisfy."""
    points = np.asarray(points, dtype=float)
    scale = max(hull.extent, np.abs(points).max() * 1e-6)
    planes, vertices, faces, edges = hull.planes, hull.vertices, hull.faces, hull.edges
    given = {tuple(p) for p in points + 0.0}
    assert all(tuple(v) in given for v in vertices)
    assert vertices.tolist() == sorted(vertices.tolist())
    assert np.allclose(np.linalg.norm(planes[:, :3], axis=1), 1, atol=1e-14)
    gap = points @ planes[:, :3].T - planes[:, 3]
    assert gap.max() <= 1e-9 * scale
    assert np.all(np.abs(gap.max(axis=0)) <= 1e-9 * scale)          # every plane touches
    assert len(vertices) - len(edges) + len(faces) == 2             # Euler
    directed = [(loop[k], loop[(k + 1) % len(loop)]) for loop in faces for k in range(len(loop))]
    assert len(set(directed)) == len(directed) == 2 * len(edges)
    assert {(v, u) for u, v in directed} == set(directed)
    for e, ((u, v), (f, g)) in enumerate(zip(edges.tolist(), hull.edge_faces.tolist(), strict=True)):
        assert u < v
        assert (u, v) in zip(faces[f], faces[f][1:] + faces[f][:1], strict=True)
        assert (v, u) in zip(faces[g], faces[g][1:] + faces[g][:1], strict=True)
        assert e in hull.face_edges[f] and e in hull.face_edges[g]
        assert e in hull.vertex_edges[u] and e in hull.vertex_edges[v]
    for f, loop in enumerate(faces):
        assert loop[0] == min(loop) and len(loop) >= 3
        n, d = planes[f, :3], planes[f, 3]
        p = vertices[list(loop)]
        assert np.abs(p @ n - d).max() <= 1e-6 * scale
        turn = np.cross(np.roll(p, -1, axis=0) - p, np.roll(p, -2, axis=0) - np.roll(p, -1, axis=0)) @ n
        assert turn.min() >= -1e-6 * scale * scale
        assert turn.sum() > 0
        assert all(f in hull.vertex_faces[v] for v in loop)
    assert faces == sorted(faces)
    assert hull.volume > 0
    fans = [(loop[0], loop[k], loop[k + 1]) for loop in faces for k in range(1, len(loop) - 1)]
    assert hull.triangles.tolist() == [list(t) for t in fans]


def brute_force(points):
    """Corners and volume from all planes through three points; points in general position."""
    corners, volume = set(), 0.0
    centre = points.mean(axis=0)
    for i, j, k in itertools.combinations(range(len(points)), 3):
        n = np.cross(points[j] - points[i], points[k] - points[i])
        side = (points - points[i]) @ n
        side[[i, j, k]] = 0.0
        if side.max() <= 0 or side.min() >= 0:
            corners |= {i, j, k}
            volume += abs(n @ (centre - points[i])) / 6
    return corners, volume


@pytest.mark.parametrize("seed", range(8))
def test_small_sets_against_all_planes(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(5, 24), 3))
    hull = HullTables(points)
    check(hull, points)
    corners, volume = brute_force(points)
    assert {tuple(v) for v in hull.vertices} == {tuple(points[i]) for i in corners}
    assert hull.volume == pytest.approx(volume, rel=1e-12)
    assert all(len(f) == 3 for f in hull.faces)


def test_cube():
    hull = HullTables(CUBE)
    check(hull, CUBE)
    assert (hull.dimension, len(hull.vertices), len(hull.edges), len(hull.faces)) == (3, 8, 12, 6)
    assert hull.volume == 1.0
    assert {tuple(p) for p in hull.planes} == {
        tuple([*(s * np.eye(3)[k] + 0.0), 0.5]) for k in range(3) for s in (-1, 1)}
    assert [len(f) for f in hull.faces] == [4] * 6
    assert hull.faces[0][:2] == (0, 1)
    assert [len(o) for o in hull.outlines] == [4, 4, 4]


@pytest.mark.parametrize("n", [3, 5, 8, 31, 100, 127])
def test_prism(n):
    points = prism(n)
    hull = HullTables(points)
    check(hull, points)
    assert len(hull.faces) == n + 2
    assert len(hull.vertices) == 2 * n
    assert sorted(len(f) for f in hull.faces)[-2:] == [n, n] if n > 3 else True
    assert hull.volume == pytest.approx(n / 2 * np.sin(2 * np.pi / n), rel=1e-12)


@pytest.mark.parametrize("n", [4, 10, 100, 255])
def test_points_on_a_sphere_are_all_corners(n):
    points = sphere(np.random.default_rng(n), n)
    hull = HullTables(points)
    check(hull, points)
    assert len(hull.vertices) == n


def test_many_points_with_few_corners():
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.uniform(-0.5, 0.5, size=(20000, 3)), CUBE])
    hull = HullTables(points)
    check(hull, points)
    assert len(hull.vertices) == 8 and len(hull.faces) == 6


def test_too_many_corners():
    for n in (256, 5000):
        with pytest.raises(ValueError, match="points"):
            HullTables(sphere(np.random.default_rng(0), n))
    ring = prism(256)[:256]
    with pytest.raises(ValueError, match="points"):
        HullTables(ring)
    assert len(HullTables(prism(255)[:255]).vertices) == 255


def test_grid_of_points_on_the_faces_of_a_box():
    line = np.linspace(-1, 1, 9)
    grid = np.array([p for p in itertools.product(line, repeat=3) if max(map(abs, p)) == 1])
    rng = np.random.default_rng(3)
    for turn in (np.eye(3), rotation(rng), rotation(rng)):
        for dtype in (np.float64, np.float32):
            points = (grid @ turn.T).astype(dtype)
            hull = HullTables(points)
            check(hull, points)
            assert len(hull.faces) == 6
            assert len(hull.vertices) == 8
            assert hull.volume == pytest.approx(8, rel=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_float32_solids_keep_their_faces(seed):
    """Coordinates rounded to float32 leave faces coplanar only to 1e-7; they must still merge."""
    rng = np.random.default_rng(seed)
    points = CUBE * rng.uniform(0.3, 3, size=3) @ rotation(rng).T
    hull = HullTables(points.astype(np.float32))
    check(hull, points.astype(np.float32))
    assert len(hull.faces) == 6 and len(hull.vertices) == 8
    points = prism(12) @ rotation(rng).T
    hull = HullTables(points.astype(np.float32))
    check(hull, points.astype(np.float32))
    assert len(hull.faces) == 14 and len(hull.vertices) == 24


@pytest.mark.parametrize("seed", range(6))
def test_order_and_repetition_change_nothing(seed):
    rng = np.random.default_rng(seed)
    sets = [
        CUBE, prism(9), sphere(rng, 60), (CUBE @ rotation(rng).T).astype(np.float32),
        rng.integers(-2, 3, size=(60, 3)).astype(float), rng.normal(size=(300, 3)),
        np.c_[rng.normal(size=(40, 2)), np.zeros(40)], np.outer(rng.normal(size=9), [1.0, 2.0, 3.0]),
    ]
    for points in sets:
        first = signature(HullTables(points))
        for _ in range(4):
            other = points[rng.permutation(len(points))]
            other = np.concatenate([other, other[rng.integers(len(other), size=7)]])
            assert signature(HullTables(other)) == first


def test_minus_zero_is_zero():
    square = [(0.0, 0.0, 0.0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)]
    minus = [tuple(-0.0 if c == 0 else c for c in p) for p in square]
    assert signature(HullTables(square)) == signature(HullTables(minus)) == signature(HullTables(square + minus))


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e100])
@pytest.mark.parametrize("seed", range(4))
def test_any_size(scale, seed):
    rng = np.random.default_rng(seed)
    for points in (CUBE @ rotation(rng).T, prism(7) @ rotation(rng).T, sphere(rng, 40)):
        hull = HullTables(points * scale)
        assert hull.faces == HullTables(points).faces
        assert hull.volume == pytest.approx(HullTables(points).volume * scale**3, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_far_from_the_origin(seed):
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-1e6, 1e6, size=3)
    for points in (CUBE, CUBE @ rotation(rng).T, prism(7), sphere(rng, 40)):
        hull = HullTables(points + centre)
        check(hull, points + centre)
        assert len(hull.faces) == len(HullTables(points).faces)
        assert hull.volume == pytest.approx(HullTables(points).volume, rel=1e-8)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("noise", [1e-16, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4])
def test_nearly_coplanar(noise, seed):
    """Noise on, below and above the merging tolerance: always a closed convex solid."""
    rng = np.random.default_rng(seed)
    line = np.linspace(-1, 1, 4)
    grid = np.array([p for p in itertools.product(line, repeat=3) if max(map(abs, p)) == 1])
    points = grid * rng.uniform(0.01, 1, size=3) @ rotation(rng).T + rng.normal(size=grid.shape) * noise
    hull = HullTables(points)
    check(hull, points)


@pytest.mark.parametrize("seed", range(20))
def test_shallow_dome(seed):
    """A dome about as high as the tolerance: merging must not leave a hole or a dent."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(-1, 1, size=(60, 2))
    height = 10.0 ** rng.uniform(-9, -5)
    dome = np.c_[p, height * (1 - (p**2).sum(axis=1) / 2)]
    points = np.concatenate([dome, CUBE * 2 - [0, 0, 1]])
    check(HullTables(points), points)


def test_integer_lattice_has_big_faces():
    points = np.array(list(itertools.product(range(5), repeat=3)), dtype=float)
    hull = HullTables(points)
    check(hull, points)
    assert len(hull.vertices) == 8 and hull.volume == 64
    octahedron = points[np.abs(points - 2).sum(axis=1) <= 2]
    hull = HullTables(octahedron)
    check(hull, octahedron)
    assert len(hull.vertices) == 6 and len(hull.faces) == 8


def test_plane_figures():
    rng = np.random.default_rng(0)
    flat = np.concatenate([rng.uniform(-1, 1, size=(50, 2)), [(-1, -1), (1, -1), (-1, 1), (1, 1), (0, -1)]])
    points = np.c_[flat, np.zeros(len(flat))] @ rotation(rng).T + [3, 4, 5]
    for p in (points, points.astype(np.float32)):
        hull = HullTables(p)
        assert hull.dimension == 2 and hull.volume == 0
        assert len(hull.vertices) == 4 and len(hull.edges) == 4 and len(hull.faces) == 2
        assert hull.faces[0] == (hull.faces[1][0], *hull.faces[1][:0:-1])
        assert np.allclose(hull.planes[0, :3], -hull.planes[1, :3])
        assert (p @ hull.planes[:, :3].T - hull.planes[:, 3]).max() <= 1e-9
        assert sorted(map(sorted, hull.edge_faces.tolist())) == [[0, 1]] * 4
        assert len(hull.triangles) == 4
        v = hull.vertices[list(hull.faces[0])]
        assert np.cross(v[1] - v[0], v[2] - v[0]) @ hull.planes[0, :3] > 0


def test_lines_and_points():
    hull = HullTables(np.outer([0.3, -1, 2, 0.5], [1.0, 2.0, 3.0]))
    assert hull.dimension == 1
    assert hull.vertices.tolist() == [[-1, -2, -3], [2, 4, 6]]
    assert hull.edges.tolist() == [[0, 1]] and hull.faces == [] and hull.edge_faces.tolist() == [[-1, -1]]
    hull = HullTables([(1, 2, 3)] * 4)
    assert hull.dimension == 0 and hull.vertices.tolist() == [[1, 2, 3]]
    assert len(hull.edges) == 0 and len(hull.planes) == 0 and hull.outlines == ((0,), (0,), (0,))


def test_outlines_are_the_flattened_hull():
    rng = np.random.default_rng(5)
    points = sphere(rng, 80)
    hull = HullTables(points)
    for axis in range(3):
        flat = hull.vertices.copy()
        flat[:, axis] = 0
        loop = hull.outlines[axis]
        side = np.array([np.cross(flat[loop[(k + 1) % len(loop)]] - flat[v], flat - flat[v])[:, axis]
                         for k, v in enumerate(loop)])
        assert side.min() >= -1e-12         # all on the left of every edge
        assert (side > 1e-9).all(axis=0).sum() == len(flat) - len(loop)


@pytest.mark.parametrize("bad", [
    [], [[]], [1, 2, 3], [[1, 2]], [[1, 2, 3, 4]], "abc", None, [[1, 2, "x"]], [[1, 2, 3], [4, 5]],
    [[np.nan, 0, 0]], [[np.inf, 0, 0]], np.zeros((0, 3)), np.zeros((2, 3), complex), [[1e300, 0, 0], [-1e300, 0, 0]],
    object(), {"a": 1},
])
def test_bad_points_are_named(bad):
    with pytest.raises(ValueError, match="points"):
        HullTables(bad)


@pytest.mark.parametrize(("points", "dimension", "how"), [
    ([(1, 2, 3)] * 5, 0, "all coincide"),
    ([(0, 0, 0), (1, 1, 1), (0.25, 0.25, 0.25), (1, 1, 1)], 1, "lie on one line"),
    ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0.5, 0.5, 0)], 2, "lie in one plane"),
    ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1e-12)], 2, "lie in one plane"),
])
@pytest.mark.parametrize("hull_type", [ConvexHull, reference.ConvexHull])
def test_a_solid_on_demand(points, dimension, how, hull_type):
    assert hull_type(points).dimension == dimension
    with pytest.raises(ValueError, match=f"^points must span a solid, but they {how}$"):
        hull_type(points, solid=True)
    assert hull_type(CUBE, solid=True).dimension == 3


def test_tables_of_a_shape_are_shared_by_its_scales():
    hull = ConvexHull(CUBE)
    tables = hull.tables
    assert isinstance(tables, HullTables) and signature(tables) == signature(HullTables(CUBE))
    check(tables, CUBE)
    assert hull.scaled((2, 0, -1)).tables is tables
    assert np.array_equal(hull.scaled((2, 0, -1)).vertices, tables.vertices * [2, 0, -1])
    with pytest.raises(AttributeError):
        hull.tables = tables


@pytest.mark.parametrize("noise", [1e-7, 2e-7, 5e-7, 1e-6, 1e-5])
def test_the_faces_of_a_thin_solid_bound_it(noise):
    """Merging moves a plane by a share of the thickness at most, so queries by planes still hit."""
    rng = np.random.default_rng(9)
    solids = 0
    for _ in range(60):
        hull = ConvexHull(rng.normal(size=(10, 3)) * [1, 1, noise])
        if hull.dimension < 3:
            continue
        solids += 1
        assert hull.tables.volume > 0 and max(map(len, hull.tables.faces)) < len(hull.vertices)
        scene = Scene()
        scene.add(hull)
        middle = hull.vertices.mean(axis=0)
        for way in sphere(rng, 4):
            assert scene.raycast(tuple(middle - 5 * way), tuple(way), 10) is not None
    assert solids >= 2


def test_no_face_of_a_thin_solid_has_all_its_corners():
    flat = ConvexHull([(1, -1, -2e-7), (0, -1, 1e-7), (-1, 2, 2e-7), (1, -2, 2e-7)])
    assert sorted(map(sorted, flat.tables.faces)) == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(
    ("place", "forge"),
    [
        (1, lambda vertices: vertices[:, :2]),
        (1, lambda vertices: np.zeros((4, 0))),
        (1, lambda vertices: vertices[0]),
        (2, lambda planes: planes[:, :1]),
        (2, lambda planes: np.zeros((4, 0))),
        (3, lambda starts: starts[:0]),
        (3, lambda starts: starts[:, None]),
        (3, lambda starts: starts - 10**6),
        (4, lambda corners: corners + 10**6),
        (4, lambda corners: corners[None]),
        (4, lambda corners: corners[:-1]),
    ],
)
@pytest.mark.parametrize("of", [lambda hull: hull, lambda hull: hull.tables], ids=["hull", "tables"])
def test_a_forged_pickle_of_a_hull_is_refused(of, place, forge):
    make, record = of(ConvexHull(CUBE)).__reduce__()[:2]
    # A hull's record has the same behind what tells the rest of it.
    whole = [list(r) if isinstance(r, tuple) else r for r in record]
    inner = next((r for r in whole if isinstance(r, list) and len(r) >= 6), whole)
    assert make(*record) is not None
    inner[place] = forge(inner[place])
    with pytest.raises(ValueError, match="hull"):
        make(*(tuple(r) if isinstance(r, list) else r for r in whole))


@pytest.mark.parametrize("scale", [(1, 1, 1), (1, 2, -3)])
def test_a_pickled_hull_has_the_same_faces(scale):
    """Its corners alone may give others, once points that decided where a face lies are gone."""
    rng = np.random.default_rng(10)
    for k in range(40):
        hull = ConvexHull(rng.normal(size=(30, 3)) * [1, 1, 10.0 ** -(k % 8)] + 1e-8 * rng.normal(size=(30, 3)))
        hull = hull.scaled(scale)
        again = pickle.loads(pickle.dumps(hull))
        assert again.tables.faces == hull.tables.faces and again.scale == hull.scale
        assert np.array_equal(again.tables.planes, hull.tables.planes)
        assert np.array_equal(again.vertices, hull.vertices)
