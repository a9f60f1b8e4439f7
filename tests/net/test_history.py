"""History: a rewound query is the query of that tick."""

import math

import numpy as np
import pytest

from pycct import Box, Capsule, ConvexHull, Crowd, Mesh, Plane, Scene, Sphere, Worlds
from pycct.net import History
from pycct.net.history import between_rotations

DT = 1 / 60


def turn(angle):
    return (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))


class Game:
    """A crowd between walls, a lift, a turning bar and a sphere; members come, go and crouch."""

    def __init__(self, n=30, seed=0, movers=True, **parameters):
        self.rng = np.random.default_rng(seed)
        self.scene = Scene()
        self.scene.add(Plane((0, 0, 1)))
        for x in (-4, 3):
            self.scene.add(Box((0.2, 3, 1.5)), position=(x, 0, 1.5), layer=2)
        self.scene.add(Mesh([(0, -9, 0), (0, -3, 0), (0, -6, 4)], [(0, 1, 2)], two_sided=True, triangle_data=[77]))
        self.lift = self.bar = None
        if movers:
            self.lift = self.scene.add(Box((1, 1, 0.1)), position=(0, 5, 0.1), body="kinematic", behavior=1)
            self.bar = self.scene.add(Box((3, 0.2, 1)), position=(0, 0, 1), body="kinematic")
            self.ball = self.scene.add(Sphere(0.7), position=(5, 5, 1), body="dynamic", layer=4)
        places = np.c_[self.rng.uniform(-8, 8, (n, 2)), np.full(n, 1.2)]
        self.crowd = Crowd(self.scene, places, radius=self.rng.uniform(0.2, 0.5, n), height=self.rng.uniform(0, 1.2, n),
                           layer=self.rng.choice([1, 2], n), group=self.rng.integers(0, 2, n), step_offset=0.2,
                           **parameters)
        self.way = self.rng.uniform(-0.1, 0.1, (400, 3))
        self.ticks = 0

    def tick(self):
        self.ticks += 1
        t = self.ticks
        if self.lift is not None:
            self.scene.move_actors(
                [self.lift.id, self.bar.id], [(0, 5, 0.1 + 0.03 * t), (0.02 * t, 0, 1)], [turn(0), turn(0.3 * t)])
            if t == 7:
                self.scene.remove(self.ball)
        if t % 5 == 0:
            self.crowd.remove([int(self.rng.integers(len(self.crowd)))])
        if t % 3 == 0:
            self.crowd.add([(*self.rng.uniform(-8, 8, 2), 1.2)])
        if t % 4 == 0:
            self.crowd.set([2, 5], radius=float(self.rng.uniform(0.2, 0.5)))
        n = len(self.crowd)
        self.crowd.move(np.c_[self.way[self.crowd.ids, :2], np.full(n, -0.05)], DT)


def rays(rng, n, span=9.0):
    o = np.c_[rng.uniform(-span, span, (n, 2)), rng.uniform(0.2, 2.5, n)]
    d = rng.normal(size=(n, 3)) * (1, 1, 0.2)
    d[: n // 8] = (0, 0, -1)
    d[n // 8: n // 4] = (1, 0, 0)
    return o, d, rng.uniform(0, 20, n)


def same_hits(a, b):
    for name, x, y in zip(a._fields, a, b, strict=True):
        assert np.array_equal(x, y), (name, np.flatnonzero((x != y).reshape(len(x), -1).any(axis=1)))


@pytest.mark.parametrize("movers", [True, False])
@pytest.mark.parametrize("up", [(0, 0, 1), (0, 0.6, 0.8)])
def test_a_rewound_query_has_the_bits_of_the_live_one(movers, up):
    game = Game(movers=movers, up=up)
    history = History(game.crowd, ticks=8)
    rng = np.random.default_rng(1)
    shapes = [Sphere(0.3), Box((0.2, 0.3, 0.4)), Capsule(0.3, 0.6),
              ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])]
    seen = {}
    for tick in range(100, 112):
        game.tick()
        history.store(tick)
        o, d, reach = rays(rng, 60)
        look = game.scene
        seen[tick] = (
            o, d, reach,
            {mask: look.raycast_many(o, d, reach, mask, include="all") for mask in (0xFFFFFFFF, 1, 2, 5, 0)},
            [look.sweep(s, o[k], d[k], reach[k], include="all") for k, s in enumerate(shapes)],
            [look.overlap_many(s, [o[k]], include="all") for k, s in enumerate(shapes)],
            game.crowd.ids.copy(), game.crowd.positions.copy(),
        )
    assert history.ticks == list(range(104, 112)) and len(history) == 8
    mixed = []
    for tick in history.ticks:
        o, d, reach, by_mask, sweeps, overlaps, ids, places = seen[tick]
        for mask, hits in by_mask.items():
            same_hits(history.raycast_many(tick, o, d, reach, mask), hits)
        for k, s in enumerate(shapes):
            now, then = history.sweep(tick, s, o[k], d[k], reach[k]), sweeps[k]
            assert (now is None) == (then is None)
            if now is not None:
                one, two = ((h.distance, h.time, *h.position, *h.normal, h.overlapping) for h in (now, then))
                # `up` is normalised again, which may change the last bits.
                assert one == two if up == (0, 0, 1) else np.allclose(one, two, rtol=0, atol=1e-12)
                assert now.actor == (-1 if then.actor is None else then.actor.id)
                assert now.controller == (-1 if then.controller is None else then.controller.id)
            actors, members = history.overlap(tick, s, o[k])
            assert sorted(actors) == sorted(a for a in overlaps[k].actor.tolist() if a >= 0)
            assert sorted(members) == sorted(a for a in overlaps[k].controller.tolist() if a >= 0)
        assert np.array_equal(history.ids(tick), ids)
        assert np.array_equal(history.positions(tick), places)
        mixed.append((tick, o, d, reach, by_mask[0xFFFFFFFF]))
    # All ticks in one batch, in any order.
    order = rng.permutation(60 * len(mixed))
    batch = history.raycast_many(
        np.repeat([m[0] for m in mixed], 60)[order], *(np.concatenate([m[k] for m in mixed])[order] for k in (1, 2, 3)))
    same_hits(batch, type(batch)(*(np.concatenate(c)[order] for c in zip(*(m[4] for m in mixed), strict=True))))
    assert (batch.controller >= 0).sum() > 20 and (batch.actor >= 0).sum() > 20


def test_between_two_ticks_it_is_the_scene_of_interpolated_poses():
    """Brute force: a scene and a crowd of their own for each moment."""
    game = Game(seed=3)
    history = History(game.crowd, ticks=6)
    for tick in range(0, 24, 3):
        for _ in range(3):
            game.tick()
        history.store(tick)
    rng = np.random.default_rng(2)
    n_members = n_actors = 0
    for tick in rng.uniform(history.ticks[0], history.ticks[-1], 25):
        before = max(t for t in history.ticks if t <= tick)
        after = min(t for t in history.ticks if t > tick)
        share = (tick - before) / (after - before)
        scene = Scene()
        for actor in game.scene.actors:
            if actor.body == "static":
                scene.add(actor.shape, actor.position, actor.rotation, layer=actor.layer)
        ids_a, ids_b = history.ids(before), history.ids(after)
        both = [k for k in ids_a.tolist() if k in set(ids_b.tolist())]
        assert history.ids(tick).tolist() == both
        a, b = history.positions(before, both), history.positions(after, both)
        places = a + (b - a) * share
        assert np.array_equal(history.positions(tick, both), places)
        ids, p, r = history.poses(before)
        more, p2, r2 = history.poses(after)
        names = {}
        for k, number in enumerate(ids.tolist()):
            if number in more:
                j = more.tolist().index(number)
                q = r[k] + (r2[j] * (-1 if r[k] @ r2[j] < 0 else 1) - r[k]) * share
                q /= math.sqrt(q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + q[3] ** 2)
                shape = {game.lift.id: Box((1, 1, 0.1)), game.bar.id: Box((3, 0.2, 1))}.get(number)
                shape = shape or Sphere(0.7)
                twin = scene.add(shape, p[k] + (p2[j] - p[k]) * share, q, layer=4 if isinstance(shape, Sphere) else 1)
                names[twin.id] = number
        at = [ids_a.tolist().index(k) for k in both]
        sizes = history._rows[history._row[(history._first + history.ticks.index(before)) % 6, at]]
        crowd = Crowd(scene, places, radius=sizes[:, 0], height=sizes[:, 1], step_offset=0.0,
                      layer=sizes[:, 5].astype(int))
        o, d, reach = rays(rng, 80)
        live = scene.raycast_many(o, d, reach, include="all")
        got = history.raycast_many(tick, o, d, reach)
        assert np.allclose(got.distance, live.distance, rtol=0, atol=1e-9)
        members = dict(zip(crowd.ids.tolist(), both, strict=True))
        assert got.controller.tolist() == [members.get(k, -1) for k in live.controller.tolist()]
        assert [k for k in got.actor.tolist() if k in ids] == [names[k] for k in live.actor.tolist() if k in names]
        n_members += (got.controller >= 0).sum()
        n_actors += np.isin(got.actor, ids).sum()
    assert n_members > 100 and n_actors > 50


def test_who_is_left_out():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (3, 0, 0), (6, 0, 0), (9, 0, 0)], layer=[1, 1, 2, 2], group=[0, 1, 0, 1])
    history = History(crowd)
    history.store(0)
    me, one, two, three = crowd.ids.tolist()

    def shoot(**more):
        hit = history.raycast(0, (0, 0, 0), (1, 0, 0), 20, **more)
        return None if hit is None else hit.controller

    assert shoot() == me and shoot(exclude=me) == one
    assert shoot(exclude=me, mask=2) == two and shoot(exclude=me, group=0) == two
    assert shoot(exclude=me, group=1, mask=2) == three and shoot(mask=4) is None
    batch = history.raycast_many(0, [(0, 0, 0)] * 2, (1, 0, 0), 20, exclude=[me, one])
    assert batch.controller.tolist() == [one, me]
    assert history.sweep(0, Sphere(0.1), (0, 0, 0), (1, 0, 0), 20, exclude=me).controller == one
    assert history.sweep(0, Sphere(0.1), (0, 0, 0), (1, 0, 0), 20, exclude=me, group=0).controller == two
    assert history.overlap(0, Sphere(20), (0, 0, 0), exclude=me, mask=2)[1].tolist() == [two, three]


def test_who_came_later_is_absent_and_who_left_is_there():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (5, 0, 0)])
    history = History(crowd)
    history.store(0)
    gone = int(crowd.ids[1])
    crowd.remove([1])
    new = int(crowd.add([(5, 0, 0)])[0])
    history.store(1)

    def at(tick):
        hit = history.raycast(tick, (5, 0, 5), (0, 0, -1), 10)
        return None if hit is None else hit.controller

    assert [at(0), at(0.5), at(1)] == [gone, None, new]
    assert np.isnan(history.positions(1, [gone])).all() and np.isnan(history.positions(0.5, [gone, new])).all()
    with pytest.raises(KeyError, match="999"):
        history.positions(0, [999])


def test_a_door_is_where_it_was():
    scene = Scene()
    door = scene.add(Box((0.1, 1, 1)), position=(2, 0, 0), body="kinematic")
    crowd = Crowd(scene, [(5, 0, 0)])
    history = History(crowd)
    history.store(0)
    door.move_to((2, 0, 10))
    history.store(10)
    scene.remove(door)
    history.store(20)
    shots = history.raycast_many([0, 0.5, 9, 10, 20], [(0, 0, 0)] * 5, (1, 0, 0), 20)
    assert shots.actor.tolist() == [door.id, door.id, -1, -1, -1]
    assert shots.controller.tolist() == [-1, -1, *crowd.ids.tolist() * 3]
    assert history.poses(5)[1].tolist() == [[2, 0, 5]] and len(history.poses(20)[0]) == 0
    # A second query of the same tick uses its index.
    assert history.raycast(0, (0, 0, 0), (1, 0, 0), 20).actor == door.id


def test_a_ray_that_ends_in_a_wall_meets_nobody_behind_it():
    scene = Scene()
    wall = scene.add(Box((0.1, 5, 5)), position=(2, 0, 0))
    crowd = Crowd(scene, [(4, 0, 0)])
    history = History(crowd)
    history.store(3)
    hit = history.raycast(3, (0, 0, 0), (2, 0, 0), 20)
    assert (hit.actor, hit.controller, hit.position, hit.time) == (wall.id, -1, (1.9, 0.0, 0.0), 1.9 / 20)
    scene.remove(wall)
    assert history.raycast(3, (0, 0, 0), (2, 0, 0), 20).controller == crowd.ids[0]


def test_the_ring_forgets_the_oldest_and_what_it_is_told_to():
    game = Game(n=5)
    history = History(game.crowd, ticks=4)
    for tick in range(10):
        game.tick()
        history.store(tick)
    before = history.positions(7).copy()
    history.forget(8)
    assert history.ticks == [6, 7]
    with pytest.raises(ValueError, match="from 6 to 7"):
        history.positions(8)
    game.crowd.teleport(np.arange(len(game.crowd)), game.crowd.positions + 5)
    history.store(8)
    assert history.positions(8)[0, 0] == game.crowd.positions[0, 0] and np.array_equal(history.positions(7), before)
    history.forget(-5)
    assert history.ticks == [] and len(history) == 0
    history.store(1)
    assert history.ticks == [1]


def test_a_far_member_and_an_empty_crowd():
    scene = Scene()
    crowd = Crowd(scene, np.c_[np.arange(50.0) * 2, np.zeros((50, 2))])
    history = History(crowd)
    crowd.teleport([7], [(1e6, -1e6, 0)])
    history.store(0)
    assert history.raycast(0, (1e6, -1e6, 50), (0, 0, -1), 100).controller == crowd.ids[7]
    assert history.raycast(0, (20, 0, 50), (0, 0, -1), 100).controller == crowd.ids[10]
    assert history.raycast(0, (-1e5, 0, 0), (1, 0, 0), 1e6).controller == crowd.ids[0]
    crowd.remove(np.arange(50))
    history.store(1)
    assert history.raycast(1, (20, 0, 50), (0, 0, -1), 100) is None
    assert history.raycast(0.5, (20, 0, 50), (0, 0, -1), 100) is None
    assert history.raycast_many(0, np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0)).hit.shape == (0,)
    assert history.raycast_many([], [], [], []).hit.shape == (0,)


def test_memory_of_members_and_ticks():
    crowd = Crowd(Scene(), np.random.default_rng(0).uniform(0, 100, (1000, 3)))
    history = History(crowd, ticks=64)
    for tick in range(200):
        if tick % 10 == 0:
            crowd.set([tick], radius=0.3 + 0.0001 * tick)
        history.store(tick)
    assert history.nbytes / 64 / 1000 < 48


def test_parameters_that_change_for_ever_take_no_more_memory():
    crowd = Crowd(Scene(), np.zeros((100, 3)))
    history = History(crowd, ticks=4)
    for tick in range(300):
        crowd.set(np.arange(100), radius=0.3 + 1e-6 * (100 * tick + np.arange(100)))
        history.store(tick)
        hit = history.raycast(tick, (0, 0, 5), (0, 0, -1), 10)
        assert abs(hit.distance - (4.5 - crowd.get("radius").max())) < 1e-9
    assert len(history._rows) < 20000


def test_nlerp_goes_the_short_way_and_keeps_the_length():
    a, b = np.array([turn(0.2)]), -np.array([turn(0.6)])
    half = between_rotations(a, b, 0.5)
    assert np.allclose(half, [turn(0.4)], atol=1e-12)
    assert np.array_equal(between_rotations(a, b, 0.0), a)


def test_rays_and_capsules_by_brute_force():
    rng = np.random.default_rng(5)
    n = 400
    scene = Scene()
    o, d = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    p, up = o + d * rng.uniform(0, 3, (n, 1)) + rng.normal(size=(n, 3)) * 0.4, rng.normal(size=(n, 3))
    crowd = Crowd(scene, p, radius=0.5, height=rng.choice([0.0, 1.0], n), up=up, layer=1 << (np.arange(n) % 32))
    crowd.set(np.arange(n), group=np.arange(n))
    history = History(crowd)
    history.store(0)
    # Each ray sees one member.
    hits = [history.raycast(0, o[k], d[k], 6.0, group=k) for k in range(n)]
    distance = np.array([np.inf if hit is None else hit.distance for hit in hits])
    inside = [hit is not None and hit.overlapping for hit in hits]
    assert [hit.controller for hit in hits if hit is not None] == crowd.ids[distance < np.inf].tolist()
    for k in range(n):
        t = np.linspace(0, 6, 6001)
        w = o[k] + d[k] * t[:, None] - p[k]
        axis = crowd.get("up")[k]
        h = 0.5 * crowd.get("height")[k]
        gap = np.linalg.norm(w - np.clip(w @ axis, -h, h)[:, None] * axis, axis=1)
        first = t[np.argmax(gap < 0.5)] if (gap < 0.5).any() else np.inf
        assert first == np.inf or abs(distance[k] - first) <= 2e-3
        assert distance[k] < np.inf or gap.min() > 0.5 - 1e-5
        assert inside[k] == (gap[0] < 0.5)


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda h: h.store(5), ValueError, "newest stored tick 5"),
    (lambda h: h.store(4), ValueError, "newest stored tick 5"),
    (lambda h: h.store(5.5), TypeError, "tick"),
    (lambda h: h.store(True), TypeError, "tick"),
    (lambda h: h.store(10**5000), ValueError, "tick"),
    (lambda h: h.forget("a"), TypeError, "tick"),
    (lambda h: h.raycast(6, (0, 0, 0), (1, 0, 0), 1), ValueError, "tick must be from 4 to 5, got 6"),
    (lambda h: h.raycast(3.9, (0, 0, 0), (1, 0, 0), 1), ValueError, "tick must be from 4 to 5"),
    (lambda h: h.raycast(math.nan, (0, 0, 0), (1, 0, 0), 1), ValueError, "tick must be finite"),
    (lambda h: h.raycast("4", (0, 0, 0), (1, 0, 0), 1), TypeError, "tick"),
    (lambda h: h.raycast(4, (0, 0, math.nan), (1, 0, 0), 1), ValueError, "origin must be finite"),
    (lambda h: h.raycast(4, (0, 0), (1, 0, 0), 1), ValueError, "origin must have shape"),
    (lambda h: h.raycast(4, (0, 0, 0), (0, 0, 0), 1), ValueError, "direction must not be zero"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), -1), ValueError, "distance must be >= 0"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), 10**400), ValueError, "distance must be finite"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), 1, mask=-1), ValueError, "mask"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), 1, mask=1.0), TypeError, "mask"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), 1, exclude="a"), TypeError, "exclude"),
    (lambda h: h.raycast(4, (0, 0, 0), (1, 0, 0), 1, group=0.5), TypeError, "group"),
    (lambda h: h.raycast_many([4, 9], [(0, 0, 0)] * 2, (1, 0, 0), 1), ValueError, "row 1 is 9"),
    (lambda h: h.raycast_many([4, math.nan], [(0, 0, 0)] * 2, (1, 0, 0), 1), ValueError, "ticks must be finite, row 1"),
    (lambda h: h.raycast_many(4, [(0, 0, 0)], (1, 0, 0), [1, 2]), ValueError, "distances must have shape"),
    (lambda h: h.raycast_many(4, [(0, 0, 0)], (1, 0, 0), -2), ValueError, "distances must be >= 0, row 0"),
    (lambda h: h.raycast_many(4, [(0, 0, 0)], (1, 0, 0), 2, exclude=[1, 2]), ValueError, "exclude"),
    (lambda h: h.sweep(4, Sphere(1), (0, 0, 0), (0, 0, 0), 1), ValueError, "direction"),
    (lambda h: h.sweep(4, Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]), (0, 0, 0), (1, 0, 0), 1),
     (TypeError, ValueError), "shape|[Mm]esh"),
    (lambda h: h.overlap(4, Sphere(1), (0, 0, 0), (0, 0, 0, 2)), ValueError, "rotation"),
    (lambda h: h.positions(4, [0.5]), TypeError, "ids"),
    (lambda h: h.positions(4, [[0]]), ValueError, "ids"),
])  # fmt: skip
def test_bad_input_is_named_and_changes_nothing(call, error, match):
    crowd = Crowd(Scene(), [(0, 0, 0)])
    history = History(crowd)
    history.store(4)
    history.store(5)
    with pytest.raises(error, match=match):
        call(history)
    assert history.ticks == [4, 5] and history.raycast(4.5, (0, 0, 5), (0, 0, -1), 9).controller == crowd.ids[0]


def test_bad_histories():
    crowd = Crowd(Scene(), [(0, 0, 0)])
    for bad, error in ((1, ValueError), (0, ValueError), (1.5, TypeError), (1 << 40, ValueError)):
        with pytest.raises(error, match="ticks"):
            History(crowd, ticks=bad)
    with pytest.raises(TypeError, match="crowd"):
        History(Scene())
    with pytest.raises(ValueError, match="Worlds"):
        History(Crowd(Worlds([Scene()]), [(0, 0, 0)]))
    with pytest.raises(ValueError, match="no tick is stored"):
        History(crowd).positions(0)
