"""Timeline: late inputs give the bits that they would have given in time."""

import math

import numpy as np
import pytest

from pycct import Box, Crowd, Plane, Scene, Worlds
from pycct.net import Timeline
from pycct.net.simulation import DT, STEP, Arena


class World:
    """Members between lifts, ferries and doors, and a door that is an obstacle."""

    def __init__(self, n=8, collide=False, **options):
        self.arena = Arena(5, things=20)
        lift, _, _ = self.arena.tracks[0]
        starts = np.add(lift, [(0.3 * (k % 3) - 0.3, 0.3 * (k // 3) - 0.3, 1.3 + 2 * (k % 2)) for k in range(n)])
        self.crowd = Crowd(self.arena.scene, starts, step_offset=STEP, radius=0.3, collide=collide)
        self.door = self.arena.scene.add_obstacle(Box((0.05, 2, 2)), np.add(lift, (0, 1.0, 0)).tolist())
        self.home = np.array(self.door.position)
        self.timeline = Timeline(self.crowd, default=(0.0, 0.0, -0.03), **options)

    def tick(self):
        self.arena.pose(self.timeline.tick)
        angle = 0.01 * self.timeline.tick
        place = np.add(self.home, (0, 0.02 * self.timeline.tick, 0))
        self.door.move_to(place, (0, 0, math.sin(angle), math.cos(angle)))
        self.timeline.advance(DT)


def inputs(n, ticks, seed=1):
    """(tick, member, displacement): each member has one for most ticks."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(n, 3)) * (0.06, 0.06, 0)
    return [(t, m, way[m] + rng.normal(size=3) * 0.01 + (0, 0, -0.05)) for t in range(ticks) for m in range(n)
            if rng.random() < 0.9]


def in_time(given, ticks, **more):
    world = World(**more)
    ids = world.crowd.ids
    for t in range(ticks):
        for tick, member, d in given:
            if tick == t:
                world.timeline.input(t, [ids[member]], [d])
        world.tick()
    return world


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("seed", range(1))
def test_any_order_of_arrival_gives_the_same_bits(seed, collide):
    ticks = 40
    given = inputs(8, ticks, seed)
    more = {"collide": collide}
    if collide:
        more["before"] = lambda crowd, tick, dt: crowd.separate(dt)
    right = in_time(given, ticks, **more)
    rng = np.random.default_rng(seed + 100)
    arrival = [(t + int(rng.integers(-2, 12)), k) for k, (t, _, _) in enumerate(given)]
    world = World(**more)
    ids = world.crowd.ids
    moved = 0
    for now in range(ticks + 12):
        todo = [k for at, k in arrival if max(at, 0) == now]
        rng.shuffle(todo)
        for k in todo:
            tick, member, d = given[k]
            if tick < world.timeline.tick:
                moved += len(world.timeline.correct(tick, [ids[member]], [d]))
            else:
                world.timeline.input(tick, [ids[member]], [d])
        if now < ticks:
            world.tick()
    assert moved > 100
    assert np.array_equal(world.crowd.positions, right.crowd.positions)
    assert world.crowd.state_hash() == right.crowd.state_hash()
    assert world.crowd.save(moving=True) == right.crowd.save(moving=True)
    # The lift has carried somebody.
    assert world.crowd.positions[:, 2].max() > 1.3


def test_platforms_that_have_been_moved_for_the_next_tick_stay_there():
    given = inputs(8, 40)
    right, world = in_time(given, 40), World()
    ids = world.crowd.ids
    for t in range(50):
        world.arena.pose(min(t, 39))
        place = world.arena.movers[0].position
        for tick, member, d in given:
            if tick == t - 10:
                world.timeline.correct(tick, [ids[member]], [d])
        assert world.arena.movers[0].position == place
        if t < 40:
            world.tick()
    assert world.crowd.state_hash() == right.crowd.state_hash()


def test_many_late_inputs_in_one_call():
    given = inputs(8, 30)
    right, world = in_time(given, 30), World()
    ids = world.crowd.ids
    for _ in range(30):
        world.tick()
    changed = world.timeline.correct([t for t, _, _ in given], [ids[m] for _, m, _ in given], [d for _, _, d in given])
    assert set(changed) == set(ids) and world.crowd.state_hash() == right.crowd.state_hash()


def test_who_ended_elsewhere():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    crowd = Crowd(scene, [(0, 0, 0.91), (5, 0, 0.91), (9, 0, 0.91)])
    timeline = Timeline(crowd, start=10)
    for _ in range(8):
        timeline.input(timeline.tick, crowd.ids, [(0.01, 0, -0.02)] * 3)
        timeline.advance(DT)
    a, b, c = crowd.ids.tolist()
    before = crowd.positions.copy()
    assert timeline.correct(13, [b, c], [(0.01, 0.5, -0.02), (0.01, 0, -0.02)]).tolist() == [b]
    assert crowd.positions[1] - before[1] == pytest.approx((0, 0.5, 0)) and np.array_equal(crowd.positions[[0, 2]],
                                                                                          before[[0, 2]])
    assert timeline.correct(13, [b], [(0.01, 0.5, -0.02)]).tolist() == []
    # Back to what it was.
    assert timeline.correct(13, [b], [(0.01, 0, -0.02)]).tolist() == [b]
    assert np.array_equal(crowd.positions, before)
    # A tick to come.
    assert timeline.correct(19, [a], [(0, 1, 0)]).tolist() == []
    timeline.advance(DT)
    timeline.advance(DT)
    assert crowd.positions[0, 1] == 1.0


def test_a_callback_that_raises_leaves_everything_as_it_was():
    calls = []

    def before(crowd, tick, dt):
        calls.append(tick)
        if len(calls) == 9:
            raise RuntimeError("enough")

    crowd = Crowd(Scene(), [(0, 0, 0)])
    timeline = Timeline(crowd, before=before)
    for _ in range(6):
        timeline.input(timeline.tick, crowd.ids, [(0, 0, 1)])
        timeline.advance(DT)
    saved = crowd.save()
    with pytest.raises(RuntimeError, match="enough"):
        timeline.correct(2, crowd.ids, [(1, 0, 1)])
    assert crowd.save() == saved and calls == [0, 1, 2, 3, 4, 5, 2, 3, 4]
    assert timeline.correct(5, crowd.ids, [(1, 0, 1)]).tolist() == crowd.ids.tolist()
    assert crowd.positions.tolist() == [[1, 0, 6]]


def test_the_ring_and_changes_from_outside():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (5, 0, 0)])
    timeline = Timeline(crowd, ticks=4)
    for _ in range(10):
        timeline.advance(DT)
    assert timeline.ticks == [6, 7, 8, 9] and timeline.tick == 10
    with pytest.raises(ValueError, match="tick must be >= 6"):
        timeline.correct(5, crowd.ids, np.zeros((2, 3)))
    crowd.teleport([0], [(0, 9, 0)])
    with pytest.raises(ValueError, match="has been changed"):
        timeline.correct(8, crowd.ids, np.ones((2, 3)))
    assert crowd.positions[0].tolist() == [0, 9, 0]
    timeline.advance(DT)
    assert timeline.ticks == [10]
    new = int(crowd.add([(7, 0, 0)])[0])
    timeline.advance(DT)
    assert timeline.ticks == [11]
    assert timeline.correct(11, [new], [(0, 0, 1)]).tolist() == [new]
    # Inputs for one that leaves before their tick are dropped.
    timeline.input(12, [new], [(0, 0, 1)])
    crowd.remove([2])
    timeline.advance(DT)
    assert crowd.positions.tolist() == [[0, 9, 0], [5, 0, 0]]


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda t, i: t.input(0, [i], [(0, 0, 0)]), ValueError, "correct"),
    (lambda t, i: t.input(0.5, [i], [(0, 0, 0)]), TypeError, "tick"),
    (lambda t, i: t.input(10**6, [i], [(0, 0, 0)]), ValueError, "tick must be <="),
    (lambda t, i: t.input(9, [99], [(0, 0, 0)]), KeyError, "99"),
    (lambda t, i: t.input(9, [i, i], [(0, 0, 0)] * 2), ValueError, "ids must be different"),
    (lambda t, i: t.input(9, [i], [(0, 0)]), ValueError, "displacements"),
    (lambda t, i: t.input(9, [i], [(0, 0, math.nan)]), ValueError, "displacements must be finite, row 0"),
    (lambda t, i: t.advance(0), ValueError, "dt"),
    (lambda t, i: t.advance("x"), TypeError, "dt"),
    (lambda t, i: t.correct(2, [99], [(0, 0, 0)]), KeyError, "99"),
    (lambda t, i: t.correct(-1, [i], [(0, 0, 0)]), ValueError, "tick must be >= 0"),
    (lambda t, i: t.correct([2, 2], [i, i], [(0, 0, 0)] * 2), ValueError, "ids must be different"),
    (lambda t, i: t.correct([2, 10**6], [i, i], [(0, 0, 1)] * 2), ValueError, "tick must be <="),
    (lambda t, i: t.correct(2, [i], [(0, math.inf, 0)]), ValueError, "displacements must be finite"),
])  # fmt: skip
def test_bad_input_is_named_and_changes_nothing(call, error, match):
    crowd = Crowd(Scene(), [(0, 0, 0)])
    timeline = Timeline(crowd)
    for _ in range(5):
        timeline.advance(DT)
    before = crowd.save()
    with pytest.raises(error, match=match):
        call(timeline, int(crowd.ids[0]))
    assert crowd.save() == before and timeline.tick == 5 and timeline.ticks == [0, 1, 2, 3, 4]


def test_bad_timelines():
    crowd = Crowd(Scene(), [(0, 0, 0)])
    for name, bad, error in (("ticks", 0, ValueError), ("ticks", 1.5, TypeError), ("start", 0.5, TypeError),
                             ("default", (0, 0), ValueError), ("before", 3, TypeError), ("threads", -1, ValueError)):
        with pytest.raises(error, match=name):
            Timeline(crowd, **{name: bad})
    with pytest.raises(TypeError, match="crowd"):
        Timeline(None)
    with pytest.raises(ValueError, match="Worlds"):
        Timeline(Crowd(Worlds([Scene()]), [(0, 0, 0)]))
