"""Heightfields: the documented layout, and the same bits as the mesh of the same triangles."""

import pickle

import numpy as np
import pytest
import worlds

import pycct

DOWN = (0, 0, -1)


def triangle_under(field, x, y, **more):
    scene = pycct.Scene()
    scene.add(field)
    hit = scene.raycast((x, y, 100), DOWN, 200, **more)
    return None if hit is None else (hit.triangle, hit.position[2])


def test_layout_as_documented():
    h = np.arange(12.0).reshape(3, 4)
    by_x = pycct.Heightfield(h, (2, 3))
    # Sample (i, j) at (2 i, 3 j).
    assert by_x.bounds == ((0, 0, 0), (4, 9, 11))
    assert triangle_under(by_x, 2, 3)[1] == h[1, 1]
    by_y = pycct.Heightfield(h, (2, 3), row_axis="y")
    # Sample (i, j) at (2 j, 3 i).
    assert by_y.bounds == ((0, 0, 0), (6, 6, 11))
    assert triangle_under(by_y, 4, 3)[1] == h[1, 2]
    # Cell (1, 2) is number 1 * 3 + 2; its triangles are 10 and 11.
    flat = pycct.Heightfield(np.zeros((3, 4)))
    assert triangle_under(flat, 1.9, 2.1)[0] == 10 and triangle_under(flat, 1.1, 2.9)[0] == 11
    cut = pycct.Heightfield(np.zeros((3, 4)), diagonal=1)
    assert triangle_under(cut, 1.1, 2.1)[0] == 10 and triangle_under(cut, 1.9, 2.9)[0] == 11
    # Rows along y: first index along y.
    flat = pycct.Heightfield(np.zeros((3, 4)), row_axis="y")
    assert triangle_under(flat, 2.1, 1.9)[0] == 10 and triangle_under(flat, 2.9, 1.1)[0] == 11


def test_the_diagonal_decides_ridge_or_valley():
    h = np.array([[0.0, 1], [1, 0]])
    assert triangle_under(pycct.Heightfield(h, diagonal=0), 0.5, 0.5)[1] == 0
    assert triangle_under(pycct.Heightfield(h, diagonal=1), 0.5, 0.5)[1] == 1


def test_holes_are_holes_and_keep_the_numbering():
    holes = np.zeros((2, 2), bool)
    holes[0, 1] = True
    field = pycct.Heightfield(np.zeros((3, 3)), holes=holes, triangle_data=np.arange(8) * 10)
    assert triangle_under(field, 0.5, 1.4) is None and triangle_under(field, 0.5, 1.6) is None
    assert triangle_under(field, 1.6, 1.4)[0] == 6
    scene = pycct.Scene()
    scene.add(field)
    assert scene.raycast((1.6, 1.4, 1), DOWN, 2).data == 60
    hero = pycct.CharacterController(scene, position=(0.5, 1.5, 1), radius=0.3, height=0.5)
    for _ in range(60):
        hero.move((0, 0, -0.1), 1 / 60)
    assert hero.position[2] < -3


def test_met_from_above_only_unless_two_sided():
    scene = pycct.Scene()
    scene.add(pycct.Heightfield(np.zeros((2, 2))))
    scene.add(pycct.Heightfield(np.zeros((2, 2)), two_sided=True), (5, 0, 0))
    assert scene.raycast((0.5, 0.5, -1), (0, 0, 1), 2) is None
    assert scene.raycast((5.5, 0.5, -1), (0, 0, 1), 2).normal == (0, 0, -1)


def everything(scene, shape, places, ways):
    """All answers' columns."""
    return [
        *scene.sweep_many(shape, places, ways, 4.0, mask=0b11),
        *scene.penetration_many(shape, places),
        *scene.overlap_many(shape, places, mask=0b10)[:4],
        *scene.closest_points_many(shape, places, 2.0),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_same_bits_as_its_mesh_in_questions_and_moves(seed):
    rng = np.random.default_rng(seed)
    field = worlds.terrain(rng, 9)
    mesh = field.to_mesh()
    assert np.array_equal(mesh.triangle_data, field.triangle_data)
    for scale, turn in (((1, 1, 1), (0, 0, 0, 1)), ((1.3, -0.7, 0.9), worlds.unit(rng))):
        one, two = pycct.Scene(), pycct.Scene()
        for scene, shape in ((one, field), (two, mesh)):
            scene.add(shape, (-4, -3, 0), turn, scale)
        places, ways = rng.uniform(-5, 5, (200, 3)), rng.normal(size=(200, 3))
        a, b = (s.raycast_many(places, ways, 9.0, 0b11) for s in (one, two))
        assert a.hit.any()
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y)
        for shape in worlds.askers(rng).values():
            for x, y in zip(everything(one, shape, places, ways), everything(two, shape, places, ways), strict=True):
                assert np.array_equal(x, y)
        heroes = [pycct.CharacterController(s, position=(0, 0, 4), radius=0.3, height=0.8) for s in (one, two)]
        for _ in range(200):
            step = rng.uniform(-0.15, 0.15, 3) - (0, 0, 0.05)
            flags = [h.move(tuple(step), 1 / 60) for h in heroes]
            assert flags[0] == flags[1] and heroes[0].position == heroes[1].position
            assert [h.triangle for h in heroes[0].hits] == [h.triangle for h in heroes[1].hits]
            assert [h.data for h in heroes[0].hits] == [h.data for h in heroes[1].hits]


def pushed_out(shape, place, mesh, where):
    """The way out by hand: four times out of the triangle that is entered most, and the sum."""
    singles = []
    for _, single in worlds.single_triangles(mesh):
        singles.append(pycct.Scene())
        singles[-1].add(single, *where)
    total = np.zeros(3)
    for _ in range(4):
        found = [p for s in singles for p in s.penetration(shape, place + total)]
        deepest = max(found, key=lambda p: p.depth, default=None)
        if deepest is None or deepest.depth < 1e-12:
            break
        total += deepest.depth * np.array(deepest.direction)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_a_way_out_sees_the_triangles_that_it_leads_to(seed):
    """A mesh and a heightfield of the same terrain push alike, however far that leads."""
    rng = np.random.default_rng(seed)
    field = worlds.terrain(rng, 9)
    mesh = field.to_mesh()
    shapes = {**worlds.askers(rng), "long": pycct.Capsule(0.1, 3.0), "wide": pycct.Box((1.5, 0.1, 0.1))}
    far = 0
    for scale, turn in (((1, 1, 1), (0, 0, 0, 1)), ((1.3, -0.7, 0.9), worlds.unit(rng))):
        where = (-4, -3, 0), turn, scale
        one, two = pycct.Scene(), pycct.Scene()
        one.add(field, *where)
        two.add(mesh, *where)
        places = rng.uniform(-3, 3, (300, 3))
        for name in set(shapes) - {"plane"}:
            a, b = (s.penetration_many(shapes[name], places) for s in (one, two))
            for x, y in zip(a, b, strict=True):
                assert np.array_equal(x, y), name
            if name in ("box", "wide", "hull", "sphere"):
                rows = np.flatnonzero(a.hit)
                for k in np.argsort(-a.depth)[:3]:
                    place = places[rows[k]]
                    total = pushed_out(shapes[name], place, mesh, where)
                    assert np.allclose(total, a.depth[k] * a.direction[k], atol=1e-9), (name, place)
                    far += a.depth[k] > 0.3
    assert far > 5


def test_walls_for_steep_cells_are_those_of_the_mesh():
    rng = np.random.default_rng(1)
    field = pycct.Heightfield(rng.normal(size=(8, 8)), two_sided=True)
    scenes = [pycct.Scene(), pycct.Scene()]
    scenes[0].add(field)
    scenes[1].add(field.to_mesh())
    heroes = [pycct.CharacterController(s, position=(3, 3, 4), radius=0.3, height=0.8, invisible_wall_height=1.0)
              for s in scenes]
    for _ in range(150):
        step = tuple(rng.uniform(-0.15, 0.15, 3) - (0, 0, 0.05))
        assert heroes[0].move(step, 1 / 60) == heroes[1].move(step, 1 / 60)
        assert heroes[0].position == heroes[1].position


def test_small_against_its_mesh():
    n = 400
    field = pycct.Heightfield(np.random.default_rng(0).normal(size=(n, n)))
    assert field.nbytes < 6 * field.triangle_count
    assert field.to_mesh().nbytes > 12 * field.nbytes


def test_pickle_keeps_everything():
    field = worlds.terrain(np.random.default_rng(5))
    back = pickle.loads(pickle.dumps(field))
    for name in ("heights", "holes", "diagonal", "triangle_data", "triangle_mask"):
        assert np.array_equal(getattr(field, name), getattr(back, name))
    assert (back.spacing, back.row_axis, back.two_sided, back.bounds) == (
        field.spacing, field.row_axis, field.two_sided, field.bounds)
    plain = pickle.loads(pickle.dumps(pycct.Heightfield(np.zeros((2, 3)), diagonal=1)))
    assert plain.diagonal == 1 and not plain.holes.any()


def test_arrays_are_copied_and_locked():
    h = np.zeros((2, 2))
    field = pycct.Heightfield(h)
    h[:] = 9
    assert field.heights.max() == 0
    with pytest.raises(ValueError):
        field.heights[0, 0] = 1
    with pytest.raises(TypeError):
        field.__init__(h)


@pytest.mark.parametrize(("name", "arguments", "error"), [
    ("heights", ([[0, 0]],), ValueError),
    ("heights", (np.zeros(4),), ValueError),
    ("heights", ([[0, np.nan], [0, 0]],), ValueError),
    ("heights", ([[0, 1e31], [0, 0]],), ValueError),
    ("heights", ([["a", "b"], ["c", "d"]],), TypeError),
    ("heights", ([[1], [1, 2]],), TypeError),
    ("spacing", (np.zeros((2, 2)), 0), ValueError),
    ("spacing", (np.zeros((2, 2)), (1, -1)), ValueError),
    ("spacing", (np.zeros((2, 2)), (1, 1, 1)), ValueError),
    ("spacing", (np.zeros((2, 2)), "wide"), TypeError),
    ("spacing", (np.zeros((2, 2)), 1e30), ValueError),
])
def test_bad_grid(name, arguments, error):
    with pytest.raises((error, ValueError) if name == "spacing" else error, match=name):
        pycct.Heightfield(*arguments)


@pytest.mark.parametrize(("name", "value", "error"), [
    ("row_axis", "z", ValueError),
    ("diagonal", 2, ValueError),
    ("diagonal", np.zeros((3, 3), int), ValueError),
    ("diagonal", 0.5, TypeError),
    ("holes", np.zeros((2, 2), int), TypeError),
    ("holes", np.zeros((3, 3), bool), ValueError),
    ("two_sided", 1, TypeError),
    ("triangle_data", np.zeros(3, int), ValueError),
    ("triangle_data", np.zeros(8), TypeError),
    ("triangle_mask", np.full(8, -1), ValueError),
])
def test_bad_options(name, value, error):
    with pytest.raises(error, match=name):
        pycct.Heightfield(np.zeros((3, 3)), **{name: value})
