"""Batches: threads, the caller's arrays, selected fields, and values of each row."""
import numpy as np
import pytest
import worlds

import pycct

N = 700


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(1)
    made = pycct.Scene()
    v, t = worlds.soup(rng, n=300, span=10.0)
    made.add(pycct.Mesh(v, t, two_sided=True, triangle_data=np.arange(300), triangle_mask=np.arange(300) % 3 + 1))
    for _ in range(20):
        made.add(pycct.Sphere(0.6), tuple(rng.uniform(-8, 8, 3)), layer=4)
    made.add(pycct.Box((1, 1, 1)), (0, 0, 0), body="kinematic")
    return made


def questions(seed=2, n=N):
    rng = np.random.default_rng(seed)
    return rng.uniform(-9, 9, (n, 3)), rng.normal(size=(n, 3)), rng.uniform(0, 25, n)


def asked(scene, what, **options):
    p, d, reach = questions()
    if what == "raycast_many":
        return scene.raycast_many(p, d, reach, **options)
    shape = pycct.Capsule(0.2, 0.5)
    if what == "sweep_many":
        return scene.sweep_many(shape, p, d, reach, **options)
    return scene.closest_points_many(shape, p, reach, **options)


ALL = ("raycast_many", "sweep_many", "closest_points_many")


@pytest.mark.parametrize("what", ALL)
def test_threads_give_the_same_bits(scene, what):
    one, two = asked(scene, what), asked(scene, what, threads=2)
    assert one.hit.any() and not one.hit.all()
    for x, y in zip(one, two, strict=True):
        assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize("what", ALL)
def test_fields_and_out_equal_the_whole_result(scene, what):
    whole = asked(scene, what)
    for name in whole._fields:
        some = asked(scene, what, fields=[name])
        assert [f for f in some._fields if getattr(some, f) is not None] == [name]
        assert getattr(some, name).tobytes() == getattr(whole, name).tobytes()
    out = {name: np.empty_like(getattr(whole, name)) for name in whole._fields}
    again = asked(scene, what, out=out)
    for name in whole._fields:
        assert getattr(again, name) is out[name]
        assert out[name].tobytes() == getattr(whole, name).tobytes()
    # An earlier result, and float32 in every second row of a larger array.
    third = asked(scene, what, out=again)
    assert all(x is y for x, y in zip(third, again, strict=True))
    table = np.full((N, 2, 3), 7.0, np.float32)
    single = {"normal": table[:, 0], "distance": np.empty(2 * N, np.float32)[::2]}
    got = asked(scene, what, out=single)
    assert got.hit is None and got.normal is single["normal"]
    assert np.array_equal(single["normal"], whole.normal.astype(np.float32))
    assert np.array_equal(single["distance"], whole.distance.astype(np.float32))
    assert (table[:, 1] == 7.0).all()


def test_inputs_may_have_any_type_and_stride(scene):
    p, d, reach = questions()
    whole = scene.raycast_many(p, d, reach)
    wide = np.zeros((N, 5, 2))
    wide[:, 1:4, 0] = p
    other = scene.raycast_many(wide[:, 1:4, 0], np.asfortranarray(d), reach)
    for x, y in zip(whole, other, strict=True):
        assert x.tobytes() == y.tobytes()
    p32, d32 = p.astype(np.float32), d.astype(np.float32)
    single = scene.raycast_many(p32, d32, reach.astype(np.float32))
    double = scene.raycast_many(p32.astype(float), d32.astype(float), reach.astype(np.float32).astype(float))
    swapped = scene.raycast_many(p32.astype(">f8"), d32.astype(">f4"), reach.astype(np.float32))
    for x, y, z in zip(single, double, swapped, strict=True):
        assert x.tobytes() == y.tobytes() == z.tobytes()


def test_fans_are_rays_from_repeated_origins(scene):
    rng = np.random.default_rng(3)
    p, d = rng.uniform(-9, 9, (40, 3)), rng.normal(size=(40, 8, 3))
    fan = scene.raycast_many(p, d, 20.0)
    flat = scene.raycast_many(np.repeat(p, 8, axis=0), d.reshape(-1, 3), 20.0)
    assert fan.hit.shape == (40, 8) and fan.normal.shape == (40, 8, 3)
    for x, y in zip(fan, flat, strict=True):
        assert x.tobytes() == y.tobytes()
    shared = scene.raycast_many(p, d[:1], 20.0)
    each = scene.raycast_many(p[:, None], np.broadcast_to(d[:1], (40, 8, 3)), 20.0)
    for x, y in zip(shared, each, strict=True):
        assert x.tobytes() == y.tobytes()
    out = {"distance": np.empty((40, 8), np.float32)}
    scene.raycast_many(p, d, np.full((40, 8), 20.0), out=out)
    assert np.array_equal(out["distance"], fan.distance.astype(np.float32))


def test_mask_and_exclude_apply_to_each_row(scene):
    p, d, reach = questions()
    masks = np.random.default_rng(4).integers(0, 8, N)
    rows = scene.raycast_many(p, d, reach, masks)
    ids = np.random.default_rng(5).integers(-1, 22, N)
    gone = scene.raycast_many(p, d, reach, exclude=ids)
    for i in range(0, N, 3):
        one = scene.raycast_many(p[i:i + 1], d[i:i + 1], reach[i], int(masks[i]))
        for x, y in zip(rows, one, strict=True):
            assert x[i:i + 1].tobytes() == y.tobytes()
        one = scene.raycast(p[i], d[i], reach[i], filter=lambda a, i=i: a.id != ids[i])
        assert gone.hit[i] == (one is not None) and (one is None or gone.distance[i] == one.distance)
    assert (gone.actor != ids)[ids >= 0].all()


def test_a_character_does_not_see_itself():
    made = pycct.Scene()
    heroes = [pycct.CharacterController(made, position=(x, 0, 5), radius=0.4, height=1.0) for x in (0, 3, 6)]
    ids = [h.id for h in heroes]
    p = [h.position for h in heroes]
    hit = made.raycast_many(p, (1, 0, 0), 10.0, include="characters", exclude=ids)
    assert hit.hit.tolist() == [True, True, False]
    assert hit.controller.tolist() == [ids[1], ids[2], -1]
    assert np.allclose(hit.distance[:2], 2.6)


def test_refused_calls_change_nothing(scene):
    p, d, reach = questions(n=4)
    good = {"distance": np.full(4, 5.0), "hit": np.zeros(4, bool)}
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    both = np.zeros(8)
    cases = [
        ({"fields": "distance"}, TypeError, "fields"), ({"fields": 3}, TypeError, "fields"),
        ({"fields": ["distances"]}, ValueError, "fields"), ({"fields": [1]}, ValueError, "fields"),
        ({"out": 3}, TypeError, "out"), ({"out": {"x": np.zeros(4)}}, ValueError, "out"),
        ({"out": {**good, "normal": np.zeros((4, 2))}}, ValueError, r"out\['normal'\].*shape"),
        ({"out": {**good, "normal": np.zeros((3, 3))}}, ValueError, r"out\['normal'\].*shape"),
        ({"out": {**good, "normal": [[0.0] * 3] * 4}}, TypeError, r"out\['normal'\]"),
        ({"out": {**good, "time": np.zeros(4, np.float16)}}, TypeError, r"out\['time'\]"),
        ({"out": {**good, "actor": np.zeros(4)}}, TypeError, r"out\['actor'\]"),
        ({"out": {**good, "time": frozen}}, ValueError, "writeable"),
        ({"out": {**good, "time": np.broadcast_to(np.zeros(1), 4)}}, ValueError, "writeable|contiguous"),
        ({"out": {"distance": both[:4], "time": both[2:6]}}, ValueError, "overlap"),
        ({"out": {**good, "normal": p}}, ValueError, "share memory with origins"),
        ({"out": {**good, "normal": d}}, ValueError, "share memory with directions"),
        ({"out": good, "fields": ["distance"]}, ValueError, "hit"),
        ({"exclude": 1.5}, TypeError, "exclude"), ({"exclude": [1, 2]}, ValueError, "exclude"),
        ({"exclude": -2}, ValueError, "exclude"), ({"mask": np.array([1.0] * 4)}, TypeError, "mask"),
        ({"mask": np.array([1, 2])}, ValueError, "mask"), ({"mask": np.array([-1, 2, 3, 4])}, ValueError, "mask"),
        ({"threads": 0}, ValueError, "threads"), ({"threads": 1.5}, TypeError, "threads"),
    ]
    for options, error, match in cases:
        if "out" not in options and options.get("fields") is None:
            options = {**options, "out": good}
        with pytest.raises(error, match=match):
            scene.raycast_many(p, d, reach, **options)
    bad = p.copy()
    bad[3, 1] = np.nan
    for origins, directions, lengths, match in (
            (bad, d, 1.0, "origins"), (p, bad, 1.0, "directions"), (p, d * 0, 1.0, "directions"),
            (p * 1e13, d, 1.0, "origins"), (p, d, -1.0, "distances"), (p, d, [1.0, 2.0], "distances"),
            (p, d[:3], 1.0, "directions"), (p, np.zeros((2, 5, 3)), 1.0, "directions"), (p, d, np.nan, "distances")):
        with pytest.raises(ValueError, match=match):
            scene.raycast_many(origins, directions, lengths, out=good)
    assert (good["distance"] == 5.0).all() and not good["hit"].any()


def test_a_row_of_a_large_batch_equals_that_of_a_small_one():
    """Scattered rows, rows at one position and rows in a line."""
    rng = np.random.default_rng(11)
    scene = worlds.scene_of(worlds.placings(rng, copies=2))
    n = 5000
    origins = rng.uniform(-8, 8, (n, 3))
    aims = rng.normal(size=(n, 3))
    masks = rng.integers(1, 4, n).astype(np.uint32)
    exclude = rng.integers(-1, 9, n)
    for threads in (1, 2):
        for name, ask in (
            ("ray", lambda k, **o: scene.raycast_many(origins[k], aims[k], 9.0, mask=masks[k],
                                                      exclude=exclude[k], **o)),
            ("sweep", lambda k, **o: scene.sweep_many(pycct.Sphere(0.2), origins[k], aims[k], 9.0, mask=masks[k], **o)),
            ("closest", lambda k, **o: scene.closest_points_many(pycct.Capsule(0.2, 0.5), origins[k], 9.0, **o)),
        ):
            whole = ask(slice(None), threads=threads)
            parts = [ask(slice(k, k + 1000)) for k in range(0, n, 1000)]
            for field, column in zip(whole._fields, whole, strict=True):
                want = np.concatenate([getattr(part, field) for part in parts])
                assert column.tobytes() == want.tobytes(), (name, field)
    # All rows at one position, at two positions, and along a line.
    for places in (np.zeros((n, 3)), np.where(rng.random((n, 1)) < 0.5, 0.0, 1e-200),
                   np.outer(rng.permutation(n), (1e-3, 0, 0))):
        places = np.broadcast_to(places, (n, 3))
        whole = scene.raycast_many(places, aims, 9.0)
        parts = [scene.raycast_many(places[k : k + 1000], aims[k : k + 1000], 9.0) for k in range(0, n, 1000)]
        assert whole.distance.tobytes() == np.concatenate([part.distance for part in parts]).tobytes()


def test_all_hits_along_a_ray_are_those_of_every_triangle_and_solid(scene):
    """The nearest hit equals `raycast`, the others follow by distance, and no solid comes twice."""
    p, d, reach = questions(seed=5, n=200)
    counts = []
    for row in range(200):
        for mask in (0xFFFFFFFF, 1, 4):
            ray = p[row], d[row], reach[row]
            hits = scene.raycast_all(*ray, mask=mask)
            first = scene.raycast(*ray, mask=mask)
            counts.append(len(hits))
            assert (first is None) == (not hits)
            if hits:
                assert repr(hits[0]) == repr(first)
            assert [h.distance for h in hits] == sorted(h.distance for h in hits)
            assert all(h.distance <= reach[row] for h in hits)
            solids = [h.actor.id for h in hits if h.triangle is None]
            assert len(solids) == len(set(solids))
    assert max(counts) > 3 and min(counts) == 0


def test_all_hits_of_a_pile_of_sheets():
    """More hits than the first buffer: each sheet once, from its front.

    A shared edge hits both sides.
    """
    made = pycct.Scene()
    heights = np.arange(200) * 0.25
    v = np.concatenate([[(-5, -5, z), (5, -5, z), (5, 5, z), (-5, 5, z)] for z in heights])
    t = np.concatenate([[(4 * k, 4 * k + 1, 4 * k + 2), (4 * k, 4 * k + 2, 4 * k + 3)] for k in range(200)])
    made.add(pycct.Mesh(v, t))
    made.add(pycct.Sphere(1.0), (1.0, 0.5, 20.0), body="kinematic")
    made.add(pycct.Plane((0, 0, 1)), (0, 0, -1))
    down = made.raycast_all((1.0, 0.5, 100), (0, 0, -1), 200)
    assert [h.triangle for h in down if h.triangle is not None] == list(range(398, -1, -2))
    assert [h.distance for h in down if h.triangle is None] == [79.0, 101.0]
    assert made.raycast_all((1.0, 0.5, -0.5), (0, 0, 1), 200)[0].distance == pytest.approx(19.5)
    assert len(made.raycast_all((0, 0, 100), (0, 0, -1), 200)) == 400 + 1
    assert made.raycast_all((1.0, 0.5, 20), (0, 0, -1), 0.1)[0].overlapping
    assert made.raycast_all((1.0, 0.5, 100), (0, 0, -1), 200, filter=lambda a: False) == []
    for bad in (((0, 0, float("nan")), (0, 0, 1), 1), ((0, 0, 0), (0, 0, 0), 1), ((0, 0, 0), (0, 0, 1), -1)):
        with pytest.raises(ValueError):
            made.raycast_all(*bad)


@pytest.mark.parametrize("ask", ["overlap_many", "penetration_many"])
def test_touches_take_threads_masks_and_exclude(scene, ask):
    """The same rows for any number of threads; a mask and an excluded id for each row."""
    n = 900
    p, _, _ = questions(seed=6, n=n)
    turns = np.random.default_rng(7).normal(size=(n, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    masks = (np.arange(n) % 5 + 1).astype(np.uint32)
    call = getattr(scene, ask)
    everything = call(pycct.Capsule(0.8, 1.0), p, turns)
    exclude = np.full(n, -1)
    for i in range(0, n, 3):
        if everything.hit[i]:
            exclude[i] = everything.actor[everything.first[i]]
    for threads in (1, 2, 3):
        got = call(pycct.Capsule(0.8, 1.0), p, turns, mask=masks, threads=threads, exclude=exclude)
        for i in range(n):
            one = call(pycct.Capsule(0.8, 1.0), p[i : i + 1], turns[i], mask=int(masks[i]), exclude=int(exclude[i]))
            rows = slice(got.first[i], got.first[i + 1])
            assert got.actor[rows].tolist() == one.actor.tolist()
            assert exclude[i] < 0 or exclude[i] not in one.actor
            if ask == "penetration_many":
                assert got.depth[rows].tobytes() == one.depth.tobytes()
                assert got.direction[rows].tobytes() == one.direction.tobytes()
    for bad in ({"mask": np.ones(3, int)}, {"exclude": np.zeros(n)}, {"threads": 0}, {"exclude": [-2] * n}):
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            call(pycct.Sphere(0.5), p, **bad)
