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
            (p, d[:, :2], 1.0, "directions"), (p, np.zeros((2, 5, 3)), 1.0, "directions"), (p, d, np.nan, "distances")):
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


def test_values_of_each_origin_hold_for_its_rays(scene):
    rng = np.random.default_rng(7)
    p, d = rng.uniform(-9, 9, (30, 3)), rng.normal(size=(30, 6, 3))
    masks, ids, reach = rng.integers(0, 8, 30), rng.integers(-1, 22, 30), rng.uniform(1, 25, 30)
    fan = scene.raycast_many(p, d, reach, masks, exclude=ids)
    each = scene.raycast_many(p, d, *(np.repeat(x[:, None], 6, axis=1) for x in (reach, masks)),
                              exclude=np.repeat(ids[:, None], 6, axis=1))  # fmt: skip
    assert fan.hit.any()
    for x, y in zip(fan, each, strict=True):
        assert x.tobytes() == y.tobytes()
    with pytest.raises(ValueError, match=r"distances .*\(30, 6\) or \(30,\)"):
        scene.raycast_many(p, d, reach[:6])


def test_directions_that_all_origins_share(scene):
    rng = np.random.default_rng(8)
    p, d = rng.uniform(-9, 9, (30, 3)), rng.normal(size=(5, 3))
    shared, full = scene.raycast_many(p, d, 20.0), scene.raycast_many(p, np.broadcast_to(d, (30, 5, 3)), 20.0)
    pairs = scene.raycast_many(p[:5], d, 20.0)
    assert shared.hit.shape == (30, 5) and pairs.hit.shape == (5,)
    for x, y, z in zip(shared, full, pairs, strict=True):
        assert x.tobytes() == y.tobytes()
        assert np.array_equal(z, x[np.arange(5), np.arange(5)])
    assert scene.raycast_many(p[:5, None], d, 20.0).hit.shape == (5, 5)
    assert scene.sweep_many(pycct.Sphere(0.2), p, d, 20.0).hit.shape == (30, 5)


def crowded():
    """A scene with an actor, two controllers and a crowd of three groups; and all groups by id."""
    rng = np.random.default_rng(9)
    scene = pycct.Scene()
    scene.add(pycct.Box((0.5, 0.5, 0.5)), (0, 0, 3))
    heroes = [pycct.CharacterController(scene, position=tuple(x)) for x in rng.uniform(-4, 4, (2, 3))]
    groups = np.arange(40) % 3
    crowd = pycct.Crowd(scene, rng.uniform(-6, 6, (40, 3)), group=groups)
    group_of = {hero.id: 0 for hero in heroes} | dict(zip(crowd.ids.tolist(), groups.tolist(), strict=True))
    return scene, (heroes, crowd), group_of


@pytest.mark.parametrize("what", [*ALL, "visible_many", "overlap_many", "penetration_many"])
def test_rows_see_characters_of_their_group_only(what):
    scene, _kept, group_of = crowded()
    rng = np.random.default_rng(10)
    n = 300
    p, d, reach = rng.uniform(-6, 6, (n, 3)), rng.normal(size=(n, 3)), rng.uniform(0, 12, n)
    ball = pycct.Sphere(0.6)
    given = {
        "raycast_many": (p, d, reach), "visible_many": (p, p + d), "sweep_many": (ball, p, d, reach),
        "closest_points_many": (ball, p, reach), "overlap_many": (ball, p), "penetration_many": (ball, p),
    }[what]  # fmt: skip
    groups = rng.integers(-1, 4, n)
    got = getattr(scene, what)(*given, include="all", group=groups, threads=2)
    seen = 0
    for i in range(n):
        row = [x if isinstance(x, pycct.Shape) else x[i:i + 1] for x in given]

        def allowed(who, i=i):
            return groups[i] < 0 or isinstance(who, pycct.Actor) or group_of[who.id] == groups[i]

        one = getattr(scene, what)(*row, include="all", filter=allowed)
        if what == "visible_many":
            assert got[i] == one[0]
            continue
        assert got.hit[i] == one.hit[0]
        if what in ("overlap_many", "penetration_many"):
            span = slice(got.first[i], got.first[i + 1])
            assert got.actor[span].tolist() == one.actor.tolist()
            assert got.controller[span].tolist() == one.controller.tolist()
            seen += len(one.controller)
        else:
            assert all(x[i].tobytes() == y[0].tobytes() for x, y in zip(got, one, strict=True))
            seen += got.controller[i] >= 0
    assert seen > 10 or what == "visible_many"
    for bad, kind in (("a", TypeError), (1.5, TypeError), (-2, ValueError), (2**31, ValueError), ([1, 2], ValueError)):
        with pytest.raises(kind, match="group"):
            getattr(scene, what)(*given, include="all", group=bad)


@pytest.mark.parametrize("what", ["overlap_many", "penetration_many"])
def test_touches_take_fields_and_arrays(scene, what):
    p, _, _ = questions()
    ball = pycct.Sphere(0.7)
    ask = getattr(scene, what)
    whole = ask(ball, p)
    names = [name for name in whole._fields if getattr(whole, name) is not None]
    for name in names:
        some = ask(ball, p, fields=[name], threads=2)
        assert [f for f in some._fields if getattr(some, f) is not None] == [name]
        assert np.array_equal(getattr(some, name), getattr(whole, name))
    k = len(whole.actor)
    out = {name: np.empty((len(p) + (name == "first")) if name in ("hit", "first") else (k + 7, *x.shape[1:]),
                          np.float32 if x.dtype == float else x.dtype)
           for name in names for x in [getattr(whole, name)]}  # fmt: skip
    got = ask(ball, p, out=out)
    for name in names:
        x = getattr(got, name)
        assert np.shares_memory(x, out[name])
        assert np.array_equal(x, getattr(whole, name).astype(x.dtype))
    kept = out["actor"].copy()
    for bad, kind in (
        ({"actor": np.empty(k - 1, np.int64)}, ValueError), ({"actor": np.empty(k, np.int32)}, TypeError),
        ({"hit": np.empty(3, bool)}, ValueError), ({"first": np.empty(len(p), np.int64)}, ValueError),
        ({"nobody": np.empty(k)}, ValueError), ({"actor": out["actor"], "controller": out["actor"]}, ValueError),
        ({"actor": np.broadcast_to(np.int64(0), k)}, ValueError), ({"actor": [1]}, TypeError),
    ):  # fmt: skip
        with pytest.raises(kind, match="out"):
            ask(ball, p, out=bad)
    with pytest.raises(ValueError, match="fields"):
        ask(ball, p, fields=["hit"], out={"actor": out["actor"]})
    with pytest.raises(ValueError, match="fields"):
        ask(ball, p, fields=["nobody"])
    assert np.array_equal(out["actor"], kept)


@pytest.mark.parametrize("what", [*ALL, "overlap_many", "penetration_many"])
def test_batches_over_worlds_take_the_same_options(what):
    rng = np.random.default_rng(11)
    scenes = [crowded() for _ in range(3)]
    worlds = pycct.Worlds([scene for scene, _, _ in scenes])
    n = 120
    p, d, reach = rng.uniform(-6, 6, (n, 3)), rng.normal(size=(n, 3)), rng.uniform(0, 12, n)
    ball = pycct.Sphere(0.6)
    given = {
        "raycast_many": (p, d, reach), "sweep_many": (ball, p, d, reach), "closest_points_many": (ball, p, reach),
        "overlap_many": (ball, p), "penetration_many": (ball, p),
    }[what]  # fmt: skip
    homes, groups, ids = rng.integers(0, 3, n), rng.integers(-1, 4, n), rng.integers(-1, 20, n)
    masks = rng.integers(0, 2, n)
    chosen = {"mask": masks, "world": homes, "include": "all", "group": groups, "exclude": ids}
    whole = getattr(worlds, what)(*given, **chosen, threads=2)
    for i in range(n):
        row = [x if isinstance(x, pycct.Shape) else x[i:i + 1] for x in given]
        one = getattr(scenes[homes[i]][0], what)(
            *row, mask=int(masks[i]), include="all", group=int(groups[i]), exclude=int(ids[i])
        )
        assert whole.hit[i] == one.hit[0]
        if hasattr(whole, "first"):
            assert whole.controller[whole.first[i]:whole.first[i + 1]].tolist() == one.controller.tolist()
        else:
            assert all(x[i].tobytes() == y[0].tobytes() for x, y in zip(whole, one, strict=True))
    some = getattr(worlds, what)(*given, **chosen, fields=["hit"])
    assert np.array_equal(some.hit, whole.hit) and some.actor is None
    out = {"hit": np.zeros(n, bool), "controller": np.zeros_like(whole.controller)}
    got = getattr(worlds, what)(*given, **chosen, out=out)
    assert np.array_equal(out["hit"], whole.hit) and np.array_equal(out["controller"], whole.controller)
    assert got.hit is out["hit"] or np.shares_memory(got.hit, out["hit"])
    assert got.actor is None
    with pytest.raises((ValueError, TypeError), match="out"):
        getattr(worlds, what)(*given, mask=masks, world=homes, out={"hit": np.zeros(n, float)})


def test_one_world_with_as_many_origins_as_directions():
    scene = crowded()[0]
    worlds = pycct.Worlds([scene, crowded()[0]])
    rng = np.random.default_rng(12)
    p, d = rng.uniform(-6, 6, (6, 3)), rng.normal(size=(4, 3))
    got = worlds.raycast_many(p, d, 9.0, world=[0, 0, 0, 0, 1, 1], include="all")
    whole = scene.raycast_many(p, d[None], 9.0, include="all")
    assert got.hit.shape == (6, 4)
    assert got.distance.tobytes() == whole.distance.tobytes()


def test_answers_may_overwrite_ids_and_masks(scene):
    p, d, reach = questions()
    ids, masks = np.random.default_rng(13).integers(-1, 22, N + 1), np.full(N + 1, 7, np.uint32)
    want = scene.raycast_many(p, d, reach, masks[:N], exclude=ids[:N])
    out = {"actor": ids[1:], "mask": masks[1:]}
    got = scene.raycast_many(p, d, reach, masks[:N], exclude=ids[:N], out=out)
    assert np.array_equal(got.actor, want.actor) and np.array_equal(got.mask, want.mask)


def test_batches_need_directions(scene):
    several = pycct.Worlds([scene])
    for many in (scene, several):
        more = {"world": 0} if many is several else {}
        with pytest.raises(TypeError, match="directions"):
            many.raycast_many([(0, 0, 5)] * 2, None, 9.0, **more)
        with pytest.raises(TypeError, match="directions"):
            many.sweep_many(pycct.Sphere(0.3), [(0, 0, 5)] * 2, None, 9.0, **more)
