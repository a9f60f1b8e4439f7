"""Lines of sight, and heights of terrain."""

import numpy as np
import pytest
import worlds

import pycct
from pycct import reference


def scene_of(module, seed=1):
    rng = np.random.default_rng(seed)
    scene = module.Scene()
    v, t = worlds.soup(rng, n=60, span=6.0)
    scene.add(module.Mesh(v, t, two_sided=seed % 2 == 0, triangle_mask=np.arange(60) % 3 + 1))
    for _ in range(6):
        scene.add(module.Sphere(0.6), tuple(rng.uniform(-4, 4, 3)), layer=4)
    scene.add(module.Box((1, 1, 1)), (0, 0, 0), body="kinematic")
    scene.add(module.ConvexHull(rng.normal(size=(8, 3))), (3, 0, 0))
    return scene


def points(seed, n):
    rng = np.random.default_rng(seed)
    return rng.uniform(-6, 6, (n, 3)), rng.uniform(-6, 6, (n, 3))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 3, 5])
def test_visible_is_a_raycast_without_a_hit(seed, mask):
    scene, n = scene_of(pycct, seed), 400
    a, b = points(seed, n)
    hit = scene.raycast_many(a, b - a, np.sqrt(((b - a) ** 2).sum(axis=1)), mask).hit
    seen = scene.visible_many(a, b, mask)
    assert seen.dtype == np.bool_ and seen.any() and not seen.all()
    assert (seen == ~hit).all()
    assert (seen == scene.visible_many(a, b, mask, threads=2)).all()
    assert [scene.visible(*pair, mask) for pair in zip(a, b, strict=True)] == seen.tolist()
    fan = scene.visible_many(a[:20], np.broadcast_to(b[:5], (20, 5, 3)), mask)
    assert fan.shape == (20, 5) and fan[3, 2] == scene.visible(a[3], b[2], mask)
    assert (scene.visible_many(a[0], b, mask) == [scene.visible(a[0], p, mask) for p in b]).all()
    assert (scene.visible_many(a, b[0], mask) == [scene.visible(p, b[0], mask) for p in a]).all()
    out = np.zeros(n, bool)
    assert scene.visible_many(a, b, mask, out=out) is out and (out == seen).all()


def same_columns(ours, theirs):
    assert ours._fields == theirs._fields
    for x, y in zip(ours, theirs, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_batches_of_the_plain_twin_have_the_same_bits(seed):
    ours, theirs = scene_of(pycct, seed), scene_of(reference, seed)
    rng = np.random.default_rng(seed + 20)
    n = 40
    p, q = points(seed + 21, n)
    reach, masks, ids = rng.uniform(0, 9, n), rng.integers(1, 8, n), rng.integers(-1, 9, n)
    turns = rng.normal(size=(n, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    given = {"exclude": ids}
    rows = reach, masks
    same_columns(ours.raycast_many(p, q - p, *rows, **given), theirs.raycast_many(p, q - p, *rows, **given))
    same_columns(ours.raycast_many(p, q[:3], reach, 5), theirs.raycast_many(p, q[:3], reach, 5))
    # Points of contact with boxes and hulls are found otherwise.
    along = ["hit", "distance", "time", "overlapping"]
    for x, y in ((pycct.Sphere(0.4), reference.Sphere(0.4)), (pycct.Capsule(0.3, 0.8), reference.Capsule(0.3, 0.8))):
        same_columns(ours.sweep_many(x, p, q - p, reach, turns, masks, fields=along, **given),
                     theirs.sweep_many(y, p, q - p, reach, turns, masks, fields=along, **given))
        same_columns(ours.overlap_many(x, p, turns, masks, **given), theirs.overlap_many(y, p, turns, masks, **given))
        same_columns(ours.penetration_many(x, p, turns, 7, **given), theirs.penetration_many(y, p, turns, 7, **given))
    some = theirs.raycast_many(p, q - p, 5.0, fields=["normal"])
    same_columns(ours.raycast_many(p, q - p, 5.0, fields=["normal"]), some)


@pytest.mark.parametrize("seed", range(3))
def test_the_plain_twin_agrees(seed):
    ours, theirs = scene_of(pycct, seed), scene_of(reference, seed)
    a, b = points(seed + 9, 60)
    assert (ours.visible_many(a, b) == theirs.visible_many(a, b)).all()
    for p, q in zip(a, b, strict=True):
        x, y = ours.raycast(p, q - p, 9.0, 5), theirs.raycast(p, q - p, 9.0, 5)
        assert (x is None) == (y is None)
        if x is not None:
            for name in ("distance", "position", "normal", "overlapping", "triangle", "mask"):
                assert getattr(x, name) == getattr(y, name)
            assert x.actor.id == y.actor.id
        xs, ys = ours.raycast_all(p, q - p, 9.0, 5), theirs.raycast_all(p, q - p, 9.0, 5)
        for name in ("distance", "position", "normal", "overlapping", "triangle", "mask", "id"):
            assert [getattr(x, name) for x in xs] == [getattr(y, name) for y in ys]


def test_the_ends_may_be_left_out():
    scene = pycct.Scene()
    crowd = pycct.Crowd(scene, [(0, 0, 0), (5, 0, 0), (2, 0, 0)])
    a, b, c = crowd.ids.tolist()
    line = (0, 0, 0), (5, 0, 0)
    assert scene.visible(*line)
    assert not scene.visible(*line, include="all", exclude=(a, b))
    crowd.teleport(2, [(2, 3, 0)])
    assert not scene.visible(*line, include="all") and not scene.visible(*line, include="all", exclude=a)
    assert scene.visible(*line, include="all", exclude=(a, b)) and scene.visible(*line, include="all", exclude=(b, a))
    p = crowd.positions
    many = scene.visible_many(p, p[[1, 2, 0]], include="all", exclude=(crowd.ids, crowd.ids[[1, 2, 0]]))
    assert many.tolist() == [True, True, True]
    assert scene.visible_many(p, p[[1, 2, 0]], include="all", exclude=crowd.ids).tolist() == [False] * 3
    assert scene.visible(*line, include="all", filter=lambda other: other.id == c)


def test_a_line_without_length():
    scene = pycct.Scene()
    scene.add(pycct.Box((1, 1, 1)))
    assert scene.visible((3, 0, 0), (3, 0, 0)) and not scene.visible((0, 0, 0), (0, 0, 0))
    assert scene.visible_many([(3, 0, 0), (0, 0, 0)], [(3, 0, 0), (0, 0, 0)]).tolist() == [True, False]


def test_wrong_lines():
    scene = scene_of(pycct)
    a, b = points(1, 4)
    frozen = np.zeros(4, bool)
    frozen.flags.writeable = False
    for arguments, options, error, name in (
        ((a, b[:3]), {}, ValueError, "b"),
        ((a[:, :2], b), {}, ValueError, "a"),
        ((a * np.nan, b), {}, ValueError, "a"),
        ((a, b * 1e13), {}, ValueError, "b"),
        ((a, "b"), {}, TypeError, "b"),
        ((a, b), {"exclude": 1.5}, TypeError, "exclude"),
        ((a, b), {"exclude": (1, 2, 3)}, ValueError, "exclude"),
        ((a, b), {"exclude": [1, 2, 3]}, ValueError, "exclude"),
        ((a, b), {"out": frozen}, ValueError, "out"),
        ((a, b), {"out": np.zeros(4)}, TypeError, "out"),
        ((a, b), {"threads": 0}, ValueError, "threads"),
        ((a, b), {"mask": -1}, ValueError, "mask"),
        ((a, b), {"include": "nobody"}, ValueError, "include"),
        ((a, b), {"filter": 3}, TypeError, "filter"),
    ):
        with pytest.raises(error, match=name):
            scene.visible_many(*arguments, **options)
    for arguments, options, error, name in (
        (((0, 0), (1, 1, 1)), {}, ValueError, "a"),
        (((0, 0, 0), (np.nan, 1, 1)), {}, ValueError, "b"),
        (((0, 0, 0), (1, 1, 1)), {"exclude": "x"}, TypeError, "exclude"),
        (((0, 0, 0), (1, 1, 1)), {"exclude": (1, 2, 3)}, ValueError, "exclude"),
        (((0, 0, 0), (1, 1, 1)), {"exclude": 2**63}, ValueError, "exclude"),
    ):
        with pytest.raises(error, match=name):
            scene.visible(*arguments, **options)


@pytest.mark.parametrize("diagonal", [0, 1, "mixed"])
@pytest.mark.parametrize("row_axis", ["x", "y"])
def test_a_sample_is_on_the_surface(diagonal, row_axis):
    rng = np.random.default_rng(2)
    heights = rng.uniform(-1, 1, (6, 9))
    cut = rng.integers(0, 2, (5, 8)) if diagonal == "mixed" else diagonal
    holes = rng.uniform(size=(5, 8)) < 0.15
    made = [
        m.Heightfield(heights, (0.7, 1.3), row_axis=row_axis, diagonal=cut, holes=holes) for m in (pycct, reference)
    ]
    field = made[0]
    scene = pycct.Scene()
    scene.add(field)
    (dx, dy), (rows, columns) = field.spacing, (6, 9)
    ends = ((rows - 1) * dx, (columns - 1) * dy) if row_axis == "x" else ((columns - 1) * dx, (rows - 1) * dy)
    x, y = rng.uniform(-0.2, ends[0] + 0.2, 300), rng.uniform(-0.2, ends[1] + 0.2, 300)
    h, n = field.sample(x, y)
    for k in range(300):
        hit = scene.raycast((x[k], y[k], 5.0), (0, 0, -1), 10.0)
        assert (hit is None) == np.isnan(h[k])
        if hit is not None:
            assert h[k] == pytest.approx(5.0 - hit.distance, abs=1e-12)
            assert tuple(n[k]) == pytest.approx(hit.normal, abs=1e-12)
        one = field.sample(x[k], y[k])
        assert (one[0] == h[k] or np.isnan(h[k])) and one[1] == tuple(n[k])
    h2, n2 = made[1].sample(x, y)
    assert h2.tobytes() == h.tobytes() and n2.tobytes() == n.tobytes()
    # At the samples themselves, and on the last rows and columns.
    solid = pycct.Heightfield(heights, (0.7, 1.3), row_axis=row_axis, diagonal=cut)
    i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    px, py = (i * dx, j * dy) if row_axis == "x" else (j * dx, i * dy)
    h, n = solid.sample(px, py)
    assert h.shape == (6, 9) and n.shape == (6, 9, 3) and np.abs(h - heights).max() < 1e-12
    assert (h[:-1, :-1] == heights[:-1, :-1]).all()


def test_wrong_places():
    field = pycct.Heightfield(np.zeros((3, 3)))
    assert np.isnan(field.sample(-0.1, 1.0)[0]) and field.sample(-0.1, 1.0)[1] == (0.0, 0.0, 0.0)
    for x, y, error, name in (
        (np.nan, 0, ValueError, "x"),
        (0, [np.inf], ValueError, "y"),
        ("a", 0, TypeError, "x"),
        ([0, 1], [0, 1, 2], ValueError, "shape"),
        (0, 1j, TypeError, "y"),
    ):
        with pytest.raises(error, match=name):
            field.sample(x, y)
