"""Separation by weights: which one of two characters gives way, and a crowd at a door."""

import numpy as np
import pytest

import pycct
from pycct import reference

BOTH = pytest.mark.parametrize("module", [pycct, reference], ids=["compiled", "reference"])
DT = 1 / 60
LIMIT = 4 * DT


def field(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    return scene


def moved(crowd, weights, ways=None, rest=None):
    """How far each member is moved by a separation after a move with these ways."""
    n = len(crowd)
    fall = np.tile((0.0, 0.0, -0.02), (n, 1))
    crowd.move(fall if ways is None else np.asarray(ways) + fall, DT)
    crowd.separate(DT, yielding=weights)
    before = np.array(crowd.positions)
    crowd.move(fall if rest is None else rest, DT)
    return np.array(crowd.positions) - before


@BOTH
def test_the_larger_weight_takes_the_whole_push(module):
    for weights, first, second in (([0, 1], 0, 1), ([7.5, 2], -1, 0), ([1e-9, 0], -1, 0)):
        crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.75, 0, 0.91)], collide=True)
        ways = moved(crowd, weights)
        assert ways[:, 0] == pytest.approx([first * LIMIT, second * LIMIT], abs=1e-9)
        assert ways[:, 1:] == pytest.approx(np.zeros((2, 2)), abs=1e-9)


@BOTH
def test_a_gap_is_kept(module):
    crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.85, 0, 0.91)], collide=True)
    for _ in range(10):
        moved(crowd, [1, 0])
    assert crowd.positions[1, 0] == 0.85
    assert crowd.positions[0, 0] == pytest.approx(0.85 - 0.8 - 0.12, abs=1e-9)
    # Without weights only overlapping characters separate.
    assert moved(crowd, None)[:, 0] == pytest.approx([0, 0], abs=1e-12)


@BOTH
def test_equal_weights_share_an_overlap(module):
    places = [(0, 0, 0.91), (0.5, 0.1, 0.91), (0.3, 0.6, 0.91), (0, 0, 1.3)]
    states = []
    for weights in (None, np.ones(4), [3.0] * 4, np.zeros(4, np.float32)):
        crowd = module.Crowd(field(module), places, collide=True)
        for _ in range(2):
            crowd.move(np.tile((0.01, 0.0, -0.02), (4, 1)), DT)
            crowd.separate(DT, yielding=weights)
        states.append(crowd.positions.tolist())
    assert states[0] == states[1] == states[2] == states[3]


@BOTH
def test_the_larger_id_keeps_a_gap_if_weights_are_equal(module):
    crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.85, 0, 0.91)], collide=True)
    for _ in range(10):
        moved(crowd, [2, 2])
    assert crowd.positions[:, 0].tolist() == pytest.approx([0, 0.92], abs=1e-9)


@BOTH
def test_the_one_behind_gives_way_whatever_the_weights_are(module):
    for weights in ([0, 1], [1, 0]):
        crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.85, 0, 0.91)], collide=True)
        ways = moved(crowd, weights, [(0.01, 0, 0)] * 2)
        assert ways[0, 0] < -0.05 and ways[1, 0] == pytest.approx(0, abs=1e-12)


@BOTH
def test_inactive_members_want_to_go_nowhere(module):
    crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.85, 0, 0.91)], collide=True)
    crowd.move(np.tile((0.01, 0.0, -0.02), (2, 1)), DT)
    crowd.move(np.zeros((2, 3)), DT, active=[False, False])
    crowd.separate(DT, yielding=[0, 1])
    x = np.array(crowd.positions[:, 0])
    crowd.move(np.tile((0.0, 0.0, -0.02), (2, 1)), DT)
    assert (crowd.positions[:, 0] - x).tolist() == pytest.approx([0, LIMIT], abs=1e-9)


@BOTH
def test_one_on_the_head_of_another_stays(module):
    crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.05, 0, 2.72)], collide=True)
    for _ in range(30):
        moved(crowd, [0, 1])
    assert crowd.positions[1].tolist() == pytest.approx([0.05, 0, 2.72], abs=0.02)


@BOTH
def test_those_outside_of_the_crowd_count_as_equal(module):
    scene = field(module)
    crowd = module.Crowd(scene, [(0, 0, 0.91)], collide=True)
    hero = module.CharacterController(scene, (0.6, 0, 0.91), collide=True)
    assert moved(crowd, [5])[0, 0] == pytest.approx(-LIMIT / 2, abs=1e-9)
    module.separate([hero], DT, yielding=[3])
    x = hero.position[0]
    hero.move((0, 0, -0.02), DT)
    assert hero.position[0] - x == pytest.approx(LIMIT / 2, abs=1e-9)


@BOTH
def test_controllers_give_way_too(module):
    scene = field(module)
    heroes = [module.CharacterController(scene, (0.75 * k, 0, 0.91), collide=True) for k in range(2)]
    module.separate([*heroes, heroes[0]], DT, yielding=[1, 0, 9])
    for hero in heroes:
        hero.move((0, 0, -0.02), DT)
    assert heroes[0].position[0] == pytest.approx(-LIMIT, abs=1e-9) and heroes[1].position[0] == 0.75
    assert heroes[0].velocity == pytest.approx((0, 0, 0), abs=1e-9)


@BOTH
def test_a_sum_of_pushes_is_limited(module):
    places = [(0, 0, 0.91), (0.6, 0.2, 0.91), (0.6, -0.2, 0.91), (0.7, 0, 0.91)]
    crowd = module.Crowd(field(module), places, collide=True, group=[0, 0, 0, 0])
    way = moved(crowd, [1, 0, 0, 0])[0]
    assert np.hypot(way[0], way[1]) == pytest.approx(LIMIT, abs=1e-9)


@BOTH
@pytest.mark.parametrize(
    ("bad", "error"),
    [([1], ValueError), ([1, 2, 3], ValueError), (1.0, ValueError), ([1, float("nan")], ValueError),
     ([1, -1], ValueError), ([[1, 2]], ValueError), ([1, float("inf")], ValueError), (["a", "b"], TypeError)],
)  # fmt: skip
def test_invalid_weights(module, bad, error):
    crowd = module.Crowd(field(module), [(0, 0, 0.91), (0.5, 0, 0.91)], collide=True)
    crowd.move(np.zeros((2, 3)), DT)
    before = crowd.save()
    with pytest.raises(error):
        crowd.separate(DT, yielding=bad)
    assert crowd.save() == before


def test_empty_crowds_and_lists():
    pycct.Crowd(field(pycct), []).separate(DT, yielding=[])
    pycct.separate([], DT, yielding=[])
    with pytest.raises(TypeError, match="positional"):
        pycct.separate([], DT, [])


def test_the_journal_receives_weights():
    scene = field(pycct)
    log = []
    crowd = pycct.Crowd(scene, [(0, 0, 0.91), (0.5, 0, 0.91)], collide=True)
    crowd.journal = lambda target, name, arguments: log.append(arguments)
    crowd.separate(DT, yielding=[1, 2])
    crowd.separate(DT)
    assert log[0]["yielding"].tolist() == [1, 2] and log[1]["yielding"] is None
    heroes = [pycct.CharacterController(scene, (0, 5, 1)) for _ in range(2)]
    scene.journal = crowd.journal
    pycct.separate([heroes[1], heroes[0]], DT, yielding=[4, 3])
    assert log[2]["controllers"] == heroes[::-1] and log[2]["yielding"].tolist() == [4, 3]


def door(module, width=1.2):
    scene = field(module)
    for side in (-1, 1):
        scene.add(module.Box((10, 0.1, 2)), ((10 + width / 2) * side, 0, 2))
    return scene


def walk_through(module, places, weights, *, width=1.2, seconds=30.0, threads=1, by_distance=False, n_ticks=None):
    """Walk to the door and on; return the crowd and the ticks until all have passed."""
    crowd = module.Crowd(door(module, width), places, radius=0.4, collide=True)
    ticks = int(seconds / DT) if n_ticks is None else n_ticks
    for tick in range(ticks):
        goal = np.where(crowd.positions[:, 1:2] < 0, (0, 0.3), (0, 12))
        way = goal - crowd.positions[:, :2]
        length = np.linalg.norm(way, axis=1, keepdims=True)
        way *= 2.0 * DT / np.maximum(length, 2.0 * DT)
        crowd.move(np.c_[way, np.full(len(places), -0.05)], DT, threads=threads)
        crowd.separate(DT, yielding=length[:, 0] if by_distance else weights)
        if n_ticks is None and (crowd.positions[:, 1] > 0.5).all():
            return crowd, tick
    return crowd, ticks


ROWS = [(x, -1.5 - y, 0.91) for y in range(4) for x in range(-2, 3)]


def scattered(seed):
    draw = np.random.default_rng(seed)
    places = []
    while len(places) < 20:
        one = (draw.uniform(-4, 4), draw.uniform(-7, -0.7), 0.91)
        if all(np.hypot(one[0] - x, one[1] - y) > 0.85 for x, y, _ in places):
            places.append(one)
    return places


def test_without_weights_the_door_is_blocked():
    crowd, _ = walk_through(pycct, ROWS, None)
    assert (crowd.positions[:, 1] > 0.5).sum() < 10


@pytest.mark.parametrize("how", ["rank", "reversed", "random", "equal", "two classes", "distance"])
def test_twenty_pass_a_door(how):
    weights = {"rank": np.arange(20), "reversed": np.arange(20)[::-1], "random": np.random.default_rng(1).random(20)}
    weights |= {"equal": np.ones(20), "two classes": np.arange(20) % 2}
    _, ticks = walk_through(pycct, ROWS, weights.get(how), by_distance=how == "distance")
    assert ticks < 20 / DT


@pytest.mark.slow
@pytest.mark.parametrize("width", [1.0, 1.2, 1.5, 1.7, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_scattered_characters_pass_doors_of_many_widths(width, seed):
    weights = np.random.default_rng(seed + 100).permutation(20)
    _, ticks = walk_through(pycct, scattered(seed), weights, width=width)
    assert ticks < 30 / DT


# Start and weights of crowds that blocked the door.
STRAIGHT = [("rows", "rank"), (1, "random"), (2, "random")]


def walk_straight(places, goals, weights, *, seconds=30.0, collide=True, threads=1):
    """Walk straight to goals behind the wall; return which members have passed, and the crowd."""
    crowd = pycct.Crowd(door(pycct), places, radius=0.4, collide=collide)
    passed = np.zeros(len(places), bool)
    for _ in range(int(seconds / DT)):
        way = goals - crowd.positions[:, :2]
        way *= 2.0 * DT / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 2.0 * DT)
        crowd.move(np.c_[way, np.full(len(places), -0.05)], DT, threads=threads)
        crowd.separate(DT, yielding=weights)
        passed |= crowd.positions[:, 1] > 0.5
        if passed.all():
            break
    return passed, crowd


@pytest.mark.parametrize(("start", "how"), STRAIGHT)
def test_straight_ways_through_a_door(start, how):
    """A member between two at the wall steps back, and so they do not block the door for ever."""
    places = ROWS if start == "rows" else scattered(start)
    weights = np.arange(20.0) if how == "rank" else np.random.default_rng(1003).random(20)
    goals = np.c_[np.random.default_rng(7).uniform(-0.15, 0.15, 20), np.full(20, 5.0)]
    assert walk_straight(places, goals, weights, collide=False)[0].all()
    assert walk_straight(places, goals, weights)[0].all()


def test_threads_do_not_matter():
    draw = np.random.default_rng(2)
    places = [(x, -1.5 - 0.83 * y, 0.91) for y in range(40) for x in np.arange(-6, 6.5, 0.83)]
    weights = draw.random(len(places))
    one, _ = walk_through(pycct, places, weights, threads=1, n_ticks=40)
    two, _ = walk_through(pycct, places, weights, threads=3, n_ticks=40)
    assert one.state_hash() == two.state_hash()


def test_the_order_of_members_does_not_matter():
    order = np.random.default_rng(3).permutation(20)
    weights = np.arange(20.0)
    one, _ = walk_through(pycct, ROWS, weights, n_ticks=300)
    two, _ = walk_through(pycct, [ROWS[k] for k in order], weights[order], n_ticks=300)
    np.testing.assert_allclose(two.positions, one.positions[order], atol=1e-9)


def test_the_reference_agrees():
    weights = np.random.default_rng(4).permutation(20)
    one, _ = walk_through(pycct, ROWS, weights, n_ticks=90)
    two, _ = walk_through(reference, ROWS, weights, n_ticks=90)
    assert one.positions.tolist() == two.positions.tolist() and one.save() == two.save()


def test_saved_crowds_go_on_alike():
    weights = np.arange(20.0)
    crowd, _ = walk_through(pycct, ROWS, weights, n_ticks=100)
    data = crowd.save()
    hashes = []
    for _ in range(2):
        crowd.restore(data)
        for _ in range(20):
            crowd.separate(DT, yielding=weights)
            crowd.move(np.tile((0.0, 0.03, -0.02), (20, 1)), DT)
        hashes.append(crowd.state_hash())
    assert hashes[0] == hashes[1]


@BOTH
def test_two_that_meet_head_on_pass_each_other(module):
    for weights in ([0, 1], [1, 0]):
        crowd = module.Crowd(field(module), [(-1.5, 0, 0.91), (1.5, 0, 0.91)], collide=True)
        for _ in range(150):
            crowd.move([(2 * DT, 0, -0.02), (-2 * DT, 0, -0.02)], DT)
            crowd.separate(DT, yielding=weights)
        assert crowd.positions[0, 0] > 1.5 and crowd.positions[1, 0] < -1.5
        # The one with priority stays on its way.
        assert abs(crowd.positions[weights.index(0), 1]) < 0.1


@BOTH
def test_one_that_stands_in_the_way_steps_aside(module):
    crowd = module.Crowd(field(module), [(-1.5, 0, 0.91), (0, 0.1, 0.91)], collide=True)
    for _ in range(180):
        crowd.move([(2 * DT, 0, -0.02), (0, 0, -0.02)], DT)
        crowd.separate(DT, yielding=[0, 1])
    assert crowd.positions[0, 0] > 1.5 and abs(crowd.positions[1, 0]) < 0.3 and crowd.positions[1, 1] > 0.5
