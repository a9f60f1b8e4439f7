"""Fixed and growing buffers of the compiled code, each filled beyond its first size.

Other tests fill the buffers of queries (test_query_limits.py), of convex shapes (test_manifold.py,
test_hull.py), of hits, answers and explanations (test_crowd_buffers.py), and of overlaps, bumps,
clip planes, depenetrations and positions in the cube grid (test_slide_limits.py,
test_slide_buffers.py).
"""

import numpy as np
import pytest

import pycct
from pycct import CubeWorld, SweepSlideController

CONTACT = 0.02


def floor():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    return scene


def dense(n, span, height=0.0):
    """A mesh of 2 n n triangles in a square."""
    x = np.linspace(-span, span, n + 1)
    v = np.stack([*np.meshgrid(x, x, indexing="ij"), np.full((n + 1, n + 1), height)], -1).reshape(-1, 3)
    i, j = (k.ravel() for k in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    a = i * (n + 1) + j
    b = a + n + 1
    return v, np.stack([a, b, b + 1, a, b + 1, a + 1], -1).reshape(-1, 3)


def test_a_crowd_of_as_many_parameters_as_members():
    """The table of parameters grows by a row for each member, and drops unused rows."""
    n = 300
    radii = 0.2 + 0.001 * np.arange(n)
    places = np.column_stack([np.arange(n) * 2.0, np.zeros(n), np.full(n, 1.5)])
    crowd = pycct.Crowd(floor(), places, radius=radii, height=1.0)
    for turn in range(3):
        # New rows each time; the old ones go.
        radii = radii + 0.0001 * turn
        crowd.set(np.arange(n), radius=radii)
        for _ in range(10):
            crowd.move(np.tile((0.01, 0.0, -0.2), (n, 1)), 1 / 60)
        assert np.array_equal(crowd.get("radius"), radii)
        feet = crowd.positions[:, 2] - 0.5 - radii
        assert np.abs(feet - crowd.get("contact_offset")).max() < 0.01


def test_batches_of_controllers_grow_and_shrink():
    """`move_many` keeps its jobs and its threads' memory for the next call."""
    scene = floor()
    one = [pycct.CharacterController(scene, (2.0 * k, 0, 1.0), 0.3, 1.2) for k in range(400)]
    other = [pycct.CharacterController(scene, (2.0 * k, 0, 1.0), 0.3, 1.2) for k in range(400)]
    for n, threads in ((2, 1), (400, 1), (3, 2), (400, 2), (150, 3), (400, 1)):
        pycct.move_many(one[:n], [(0.01, 0.02, -0.05)] * n, 1 / 60, threads=threads)
        for hero in other[:n]:
            hero.move((0.01, 0.02, -0.05), 1 / 60)
        assert [h.position for h in one] == [h.position for h in other]


def test_a_crowd_with_more_threads_than_before():
    n = 600
    places = np.column_stack([np.arange(n) * 0.7, np.zeros(n), np.full(n, 0.93)])
    crowds = [pycct.Crowd(floor(), places, radius=0.3, height=1.2, collide=True) for _ in range(2)]
    rng = np.random.default_rng(1)
    for threads in (1, 2, 4, 3, 8):
        ways = rng.normal(size=(n, 3)) * (0.1, 0.1, 0.02)
        crowds[0].move(ways, 1 / 60, threads=threads)
        crowds[1].move(ways, 1 / 60, threads=1)
        assert np.array_equal(crowds[0].positions, crowds[1].positions)


def test_caches_of_a_large_crowd_grow_with_what_is_near():
    """Members of a large crowd walk from one triangle onto thousands, and back."""
    n = 2100
    scene = pycct.Scene()
    v, t = dense(40, 1.0)
    scene.add(pycct.Mesh([(-90, -90, 0), (-1, -90, 0), (-1, 90, 0), (-90, 90, 0)], [(0, 1, 2), (0, 2, 3)]))
    scene.add(pycct.Mesh(v, t))
    rng = np.random.default_rng(2)
    places = np.column_stack([rng.uniform(-2.5, -2, n), rng.uniform(-0.5, 0.5, n), np.full(n, 0.93)])
    crowd = pycct.Crowd(scene, places, radius=0.3, height=1.2, contact_offset=CONTACT)
    some = [int(k) for k in rng.integers(0, n, 12)]
    heroes = [pycct.CharacterController(scene, tuple(places[k]), 0.3, 1.2, contact_offset=CONTACT) for k in some]
    for way in [(0.4, 0, -0.05)] * 6 + [(-0.4, 0, -0.05)] * 6 + [(0.4, 0, -0.05)] * 6:
        crowd.move(np.tile(way, (n, 1)), 1 / 60)
        for hero in heroes:
            hero.move(way, 1 / 60)
        assert [tuple(crowd.positions[k]) for k in some] == [h.position for h in heroes]


def test_a_move_past_more_cells_of_characters_than_are_fetched_at_once():
    """A long move beside hundreds of characters ends at the one that blocks it."""
    ends = []
    for side in ([-3, 3], []):
        scene = floor()
        places = [(0.7 * k, y, 0.92) for k in range(300) for y in side] + [(200.0, 0.1, 0.92), (-5, 0, 0.92)]
        everybody = [pycct.CharacterController(scene, p, 0.3, 1.2, contact_offset=CONTACT, collide=True)
                     for p in places]
        everybody[-1].move((206.0, 0.0, -0.01), 1 / 60)
        ends.append(everybody[-1].position)
    assert ends[0] == ends[1]
    assert 199.0 < ends[0][0] < 199.5


def test_as_many_characters_as_grow_the_grid_twice():
    """Pairs of characters, 700 of them: each one that walks is stopped by its partner."""
    n = 700
    rng = np.random.default_rng(3)
    cells = rng.permutation(2500)[:n]
    centre = np.column_stack([cells % 50 * 4.0, cells // 50 * 4.0, np.full(n, 0.92)])
    scene = floor()
    crowd = pycct.Crowd(scene, np.concatenate([centre, np.add(centre, (1.0, 0, 0))]), radius=0.3, height=1.2,
                        contact_offset=CONTACT, collide=True)
    ways = np.zeros((2 * n, 3))
    ways[:n, 0] = 0.9
    crowd.move(ways, 1 / 60)
    walked = crowd.positions[:n, 0] - centre[:, 0]
    assert np.abs(walked - (1.0 - 0.6 - CONTACT)).max() < 1e-3
    # Most leave, and their places are taken by others.
    crowd.remove(crowd.ids[: n // 2])
    crowd.add(np.subtract(centre[: n // 2], (1.0, 0, 0)))
    ways = np.zeros((len(crowd.positions), 3))
    assert len(ways) == 2 * n
    crowd.move(ways, 1 / 60)


def boxes_by_id(n):
    """Each box is nearer than the one before by less than the tie, and has a higher id."""
    scratch = CubeWorld()
    boxes = []
    for k in range(n):
        # Ids of boxes are hashes from 2**62 to 2**63: try heights until one is in the right range.
        for turn in range(10_000):
            box = (2.5 - 1e-9 * k, 0.5, 0.0), (0.5, 2.0 + 0.001 * turn, 2.0)
            if (scratch.add_box(*box) - 2**62) // (2**62 // n) == k:
                boxes.append(box)
                break
    return boxes


@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("backwards", [False, True])
def test_boxes_that_are_equally_near_beyond_the_list_of_contenders(n, backwards):
    """Of 40 boxes within the tie, each nearer than the one before, the lowest id decides."""
    world = CubeWorld()
    boxes = boxes_by_id(n)
    assert len(boxes) == n
    ids = [world.add_box(*box) for box in (reversed(boxes) if backwards else boxes)]
    runner = SweepSlideController(world, (0, 0, 0), radius=0.3, half_height=0.6)
    hit = runner.sweep((3.0, 0.0, 0.0))
    assert hit.hit_id == min(ids)
    assert hit.distance == pytest.approx(1.7 - runner.config["skin_width"], abs=1e-6)


@pytest.mark.slow
def test_a_mesh_of_more_pieces_than_the_first_list_of_them():
    """A tree of more than a million triangles has more than 16 subtrees of at most 65,536."""
    n = 1100
    v, t = dense(n, 50.0)
    scene = pycct.Scene()
    scene.add(pycct.Mesh(v, t, threads=2))
    rng = np.random.default_rng(4)
    at = np.column_stack([rng.uniform(-49.9, 49.9, (20000, 2)), np.ones(20000)])
    got = scene.raycast_many(at, (0, 0, -1), 2.0)
    assert got.hit.all()
    i, j = (((at[:, k] + 50.0) / 100.0 * n).astype(int) for k in range(2))
    assert (np.abs(got.triangle // 2 - (i * n + j)) <= n + 1).all()
    assert np.mean(got.triangle // 2 == i * n + j) > 0.999
