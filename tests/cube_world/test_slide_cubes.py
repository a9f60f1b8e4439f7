"""CubeWorld: ids, hashing, queries, bulk changes, memory."""

import pickle
import threading

import numpy as np
import pytest

from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld


def matrix(q):
    x, y, z, w = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])


def test_add_query_remove():
    world = CubeWorld()
    cube = world.add((3, -2, 5))
    assert cube in world and world.cell(cube) == (3, -2, 5) and world.solid((3, -2, 5))
    assert world.box(cube) == ((3.5, -1.5, 5.5), (0.5, 0.5, 0.5), (0.0, 0.0, 0.0, 1.0))
    assert world.query((0, -9, 0), (9, 9, 9)) == [cube]
    assert world.add((3, -2, 5)) == cube and len(world) == 1
    world.remove(cube)
    assert cube not in world and len(world) == 0 and world.query((0, -9, 0), (9, 9, 9)) == []
    with pytest.raises(KeyError):
        world.remove(cube)


def test_touching_counts_in_a_query():
    world = CubeWorld()
    cube = world.add((0, 0, 0))
    assert world.query((1, 1, 1), (2, 2, 2)) == [cube]
    assert world.query((-1, -1, -1), (0, 0, 0)) == [cube]
    assert world.query((1.0000001, 0, 0), (2, 2, 2)) == []


def test_ids_are_ordered_by_cell_and_boxes_come_after():
    world = CubeWorld()
    cells = [(x, y, z) for x in (-5, 0, 7) for y in (-3, 0, 2) for z in (-1, 0, 4)]
    ids = [world.add(c) for c in cells]
    assert ids == sorted(ids) and all(i >= 0 for i in ids)
    assert world.add_box((0, 0, 0), (1, 1, 1)) > max(ids)


def test_ids_do_not_depend_on_the_order_of_insertion():
    boxes = [((i, 0, 0), (0.5, 0.25, 0.5), (0, np.sin(i / 2), 0, np.cos(i / 2))) for i in range(5)]
    a, b = CubeWorld(), CubeWorld()
    first = [a.add_box(*box) for box in boxes]
    second = [b.add_box(*box) for box in reversed(boxes)][::-1]
    assert first == second and len(set(first)) == 5


def test_equal_boxes_are_one_box():
    world = CubeWorld()
    assert world.add_box((0, 0, 0), (1, 1, 1)) == world.add_box((-0.0, 0.0, 0), (1.0, 1, 1), (0, 0, 0, 1))
    assert len(world) == 1


def test_queries_agree_with_brute_force():
    rng = np.random.default_rng(5)
    world, known = CubeWorld(), {}
    for _ in range(700):
        if rng.random() < 0.6:
            cell = tuple(int(v) for v in rng.integers(-9, 9, 3))
            known[world.add(cell)] = (np.array(cell), np.array(cell) + 1)
        else:
            centre, half = rng.uniform(-9, 9, 3), rng.uniform(0.01, 1, 3) ** 3 * 6
            q = rng.normal(size=4)
            q = np.array([0, 0, 0, 1.0]) if rng.random() < 0.3 else q / np.linalg.norm(q)
            reach = np.abs(matrix(q)) @ half
            known[world.add_box(centre, half, q)] = (centre - reach, centre + reach)
        if rng.random() < 0.3:
            gone = list(known)[rng.integers(len(known))]
            world.remove(gone)
            del known[gone]
    assert len(world) == len(known)
    for k in range(150):
        lo = rng.uniform(-12, 12, 3)
        hi = lo + rng.uniform(0, 1, 3) ** 2 * (30 if k % 5 == 0 else 4)
        if k % 7 == 0:
            lo, hi = np.floor(lo), np.ceil(hi)
        # Bounds of turned boxes are rounded: leave out what lies within a hair of the border.
        sure = sorted(i for i, (a, b) in known.items() if (a <= hi - 1e-9).all() and (b >= lo + 1e-9).all())
        maybe = {i for i, (a, b) in known.items() if (a <= hi + 1e-9).all() and (b >= lo - 1e-9).all()}
        found = world.query(lo, hi)
        assert found == sorted(set(found))
        assert set(sure) <= set(found) <= maybe
        cubes = [i for i, (a, b) in known.items() if i < 1 << 60 and (a <= hi).all() and (b >= lo).all()]
        assert sorted(cubes) == [i for i in found if i < 1 << 60]


def test_occupancy_array():
    rng = np.random.default_rng(2)
    solid = rng.random((16, 256, 16)) < 0.4
    world = CubeWorld()
    assert world.add_array(solid, origin=(-8, -3, 5)) == solid.sum() == world.n_cubes
    assert world.add_array(solid, origin=(-8, -3, 5)) == 0
    for x, y, z in rng.integers(0, 16, (200, 3)):
        assert world.solid((x - 8, y - 3, z + 5)) == solid[x, y, z]
    assert not world.solid((-9, 0, 5)) and not world.solid((8, 0, 5))
    # Any dtype, any layout, any stride.
    assert CubeWorld().add_array(np.asfortranarray(solid.astype(np.float32))[::2, ::-1]) == solid[::2].sum()
    assert world.remove_array(solid[:4], origin=(-8, -3, 5)) == solid[:4].sum()
    assert world.n_cubes == solid[4:].sum()


def test_add_many_gives_the_ids_of_add():
    cells = np.array([(0, 0, 0), (5, -7, 3), (0, 0, 0), (-524288, 524287, 0)])
    world = CubeWorld()
    ids = world.add_many(cells)
    assert ids.tolist() == [world.add(tuple(c)) for c in cells.tolist()] and len(world) == 3
    assert world.query((-6e5, 5e5, -1), (-5e5, 6e5, 1)) == [ids[3]]


def test_a_million_cubes_take_at_most_64_mb():
    rng = np.random.default_rng(1)
    world = CubeWorld()
    world.add_many(rng.integers(-500000, 500000, (1000000, 3)))
    assert len(world) > 999000 and world.nbytes <= 64 * 2**20
    dense = CubeWorld()
    dense.add_array(np.ones((100, 100, 100), bool))
    assert len(dense) == 1000000 and dense.nbytes <= 2**20


def test_churn_does_not_grow_the_world():
    world = CubeWorld()
    for i in range(6000):
        cube = world.add((i % 2000 * 4, i % 7 * 4, 0))
        box = world.add_box((i % 50, 0, 0), (0.5, 0.5, 0.5))
        world.remove(cube)
        world.remove(box)
    assert len(world) == 0 and world.nbytes < 2**20


def test_pickle_keeps_ids():
    world = CubeWorld()
    world.add_many([(1, 2, 3), (-4, 0, 9)])
    world.add_box((0.1, 0.2, 0.3), (1, 2, 3), (0.1, 0.7, 0.5, 0.5))
    assert pickle.loads(pickle.dumps(world)).ids() == world.ids()


@pytest.mark.parametrize("cell", [(0, 0), (0, 0, 0.5), (0, 0, float("nan")), (0, 0, 524288), (0, 0, -524289), "abc",
                                  None, (0, 0, 2**70), (0, 0, "1"), {1, 2, 3}, (0, 0, float("inf"))])
def test_bad_cells_are_refused(cell):
    world = CubeWorld()
    with pytest.raises((TypeError, ValueError), match="cell"):
        world.add(cell)
    assert len(world) == 0


@pytest.mark.parametrize(("centre", "half", "rotation", "name"), [
    ((0, 0, float("nan")), (1, 1, 1), (0, 0, 0, 1), "centre"),
    ((0, 0, 1e9), (1, 1, 1), (0, 0, 0, 1), "centre"),
    ((0, 0, 0), (1, 0, 1), (0, 0, 0, 1), "half_extents"),
    ((0, 0, 0), (1, -1, 1), (0, 0, 0, 1), "half_extents"),
    ((0, 0, 0), (1, 1e300, 1), (0, 0, 0, 1), "half_extents"),
    ((0, 0, 0), (1, 1, 1), (0, 0, 0, 0), "rotation"),
    ((0, 0, 0), (1, 1, 1), (0, 0, 0, 5), "rotation"),
    ((0, 0, 0), (1, 1, 1), (0, 0, 1), "rotation"),
])
def test_bad_boxes_are_refused(centre, half, rotation, name):
    world = CubeWorld()
    with pytest.raises(ValueError, match=name):
        world.add_box(centre, half, rotation)
    assert len(world) == 0


def test_bad_arrays_are_refused():
    world = CubeWorld()
    for bad in (np.ones((2, 2)), np.ones((2, 2, 2, 2))):
        with pytest.raises(ValueError, match="occupancy"):
            world.add_array(bad)
    with pytest.raises(TypeError, match="occupancy"):
        world.add_array(np.full((2, 2, 2), "x"))
    with pytest.raises(ValueError, match="occupancy"):
        world.add_array(np.ones((2, 2, 2)), origin=(524287, 0, 0))
    with pytest.raises(ValueError, match="cells"):
        world.add_many([(0, 0)])
    with pytest.raises(TypeError, match="cells"):
        world.add_many([(0.0, 0.0, 0.0)])
    with pytest.raises(ValueError, match="cells"):
        world.add_many([(0, 0, 2**40)])
    assert world.add_array(np.ones((0, 3, 3))) == 0 and world.add_many([]).shape == (0,) and len(world) == 0


@pytest.mark.parametrize("id", [-1, 2**60 - 1, 2**62, 2**100, -2**100])
def test_unknown_ids(id):
    world = CubeWorld()
    world.add((0, 0, 0))
    assert id not in world
    with pytest.raises(KeyError):
        world.remove(id)
    with pytest.raises(KeyError):
        world.box(id)


def test_id_of_the_wrong_type():
    for bad in ("x", 1.5, None, True):
        with pytest.raises(TypeError, match="id"):
            CubeWorld().remove(bad)


def test_huge_queries_end():
    world = CubeWorld()
    ids = [world.add((0, 0, 0)), world.add((-524288, -524288, -524288)), world.add_box((500000, 0, 0), (1, 1, 1))]
    assert world.query((-1e300, -1e300, -1e300), (1e300, 1e300, 1e300)) == sorted(ids)
    with pytest.raises(ValueError, match="lo"):
        world.query((1, 0, 0), (0, 0, 0))


def test_boxes_of_every_size_are_found():
    world = CubeWorld()
    ids = [world.add_box((0, 0, 0), (s, s, s)) for s in (1e-6, 0.3, 0.5, 0.51, 1, 7, 1000, 262144)]
    assert world.query((0, 0, 0), (0, 0, 0)) == sorted(ids)
    assert world.query((900, 900, 900), (901, 901, 901)) == sorted(ids[6:])


def test_changing_the_world_while_others_move_in_it():
    world = CubeWorld()
    world.add_array(np.ones((32, 1, 32), bool), (-16, -1, -16))
    runners = [SweepSlideController(world, (0.5 * i, 1, 0)) for i in range(4)]
    wishes = np.zeros((4000, 3))
    wishes[:, 0] = np.where(np.arange(4000) // 50 % 2, 3, -3)
    stop = threading.Event()

    def build():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            # Far from the runners: they must not notice, whatever the table does meanwhile.
            world.add_many(rng.integers(100, 400, (500, 3)))
            box = world.add_box(rng.uniform(100, 400, 3), (1, 1, 1))
            world.remove(box)

    builder = threading.Thread(target=build)
    builder.start()
    try:
        results = [None] * 4

        def move(i):
            results[i] = runners[i].run(wishes)[1]

        movers = [threading.Thread(target=move, args=(i,)) for i in range(4)]
        for m in movers:
            m.start()
        for m in movers:
            m.join()
    finally:
        stop.set()
        builder.join()
    quiet = CubeWorld()
    quiet.add_array(np.ones((32, 1, 32), bool), (-16, -1, -16))
    for i in range(4):
        assert (SweepSlideController(quiet, (0.5 * i, 1, 0)).run(wishes)[1] == results[i]).all()
