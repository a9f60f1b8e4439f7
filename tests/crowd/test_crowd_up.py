"""``up`` of one move: as if it was set before, for single characters and for members of crowds."""

import copy

import numpy as np
import pytest

import pycct
from pycct import reference

DT = 1 / 60


def planet(module, n=24, radius=12.0, **options):
    """A ball of triangles, and characters on it."""
    turn, rise = np.meshgrid(np.linspace(0, 2 * np.pi, n, endpoint=False), np.linspace(0, np.pi, n // 2 + 1))
    points = radius * np.stack([np.cos(turn) * np.sin(rise), np.sin(turn) * np.sin(rise), np.cos(rise)], axis=-1)
    faces = []
    for i in range(n // 2):
        for j in range(n):
            a, b = i * n + j, i * n + (j + 1) % n
            faces += [(a, a + n, b), (b, a + n, b + n)]
    scene = module.Scene()
    scene.add(module.Mesh(points.reshape(-1, 3), faces))
    ways = np.random.default_rng(5).normal(size=(7, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    return scene, ways, (radius + 0.95) * ways, {"step_offset": 0.2, "contact_offset": 0.02, **options}


def walk_of(crowd, ticks, ask):
    """Positions of a walk around the planet."""
    path = []
    for tick in range(ticks):
        tops = crowd.positions / np.linalg.norm(crowd.positions, axis=1)[:, None]
        aside = np.cross(tops, np.roll(tops, 1 + tick // 30, axis=1))
        ask(crowd, 0.06 * aside - 0.03 * tops, tops * (1 + tick))
        path.append(crowd.positions.copy())
    return np.array(path)


def moved(crowd, d, tops):
    crowd.move(d, DT, up=tops)


def set_before(crowd, d, tops):
    crowd.set(slice(None), up=tops)
    crowd.move(d, DT)


@pytest.mark.parametrize("module", [pycct, reference])
@pytest.mark.parametrize(
    "options",
    [{}, {"rules": "robust"}, {"invisible_wall_height": 0.4}, {"collide": True},
     {"non_walkable_mode": "force_sliding"}],
)
def test_up_of_a_move_is_up_set_before_it(module, options):
    scene, _, places, given = planet(module, **options)
    one = module.Crowd(scene, places, **given)
    path = walk_of(one, 20 if module is reference else 150, moved)
    scene, _, places, given = planet(module, **options)
    other = module.Crowd(scene, places, **given)
    assert path.tobytes() == walk_of(other, len(path), set_before).tobytes()
    assert np.array_equal(one.get("up"), other.get("up")) and np.array_equal(one.foot_positions, other.foot_positions)
    if module is pycct:
        assert one.state_hash() == other.state_hash() and one.save() == other.save()


def test_single_characters_walk_around_a_planet_as_a_crowd_does():
    scene, _, places, given = planet(pycct)
    crowd = pycct.Crowd(scene, places, **given)
    heroes = [pycct.CharacterController(scene, position=tuple(p), **given) for p in places]
    twins = [reference.CharacterController(planet(reference)[0], position=tuple(p), **given) for p in places]
    for tick in range(60):
        tops = crowd.positions / np.linalg.norm(crowd.positions, axis=1)[:, None]
        d = 0.06 * np.cross(tops, np.roll(tops, 1, axis=1)) - 0.03 * tops
        crowd.move(d, DT, up=tops)
        for k, hero in enumerate(heroes):
            hero.move(d[k], DT, up=tops[k])
            assert hero.position == tuple(crowd.positions[k]) and hero.up == tuple(crowd.get("up")[k])
            if tick < 8:
                twins[k].move(d[k], DT, up=tops[k])
                assert twins[k].position == hero.position and twins[k].up == hero.up
    assert np.linalg.norm(crowd.positions, axis=1).max() < 13.2 and crowd.grounded.all()


def test_the_cache_survives_another_up():
    scene, _, places, given = planet(pycct)
    hero = pycct.CharacterController(scene, position=tuple(places[0]), **given)
    full = 0
    for _ in range(200):
        top = np.array(hero.position) / np.linalg.norm(hero.position)
        hero.move(0.02 * np.cross(top, (0, 0, 1)) - 0.02 * top, DT, up=top)
        full += hero.stats.full_updates
    assert full < 30


@pytest.mark.parametrize("module", [pycct, reference])
def test_one_up_for_all_and_inactive_members(module):
    scene, _, places, given = planet(module)
    crowd = module.Crowd(scene, places, **given)
    crowd.move(np.zeros((7, 3)), DT, up=(0, 3, 0))
    assert crowd.get("up").tolist() == [[0, 1, 0]] * 7
    active = np.arange(7) % 2 == 0
    crowd.move(np.zeros((7, 3)), DT, active, up=np.tile((2.0, 0, 0), (7, 1)))
    assert crowd.get("up").tolist() == [[1, 0, 0] if on else [0, 1, 0] for on in active]
    crowd.add([(0, 0, 14)])
    crowd.remove([0])
    crowd.set([1], up=(0, 0, -1))
    assert crowd.get("up").tolist() == [[0, 1, 0], [0, 0, -1], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    crowd.move(np.zeros((7, 3)), DT, up=(0, 0, 1))
    assert crowd.get("up").tolist() == [[0, 0, 1]] * 7
    saved = crowd.save()
    other = copy.deepcopy(crowd)
    other.restore(saved)
    assert other.get("up").tolist() == [[0, 0, 1]] * 7 and other.save() == saved


@pytest.mark.parametrize("module", [pycct, reference])
def test_an_impossible_up_changes_nothing(module):
    scene, _, places, given = planet(module)
    crowd = module.Crowd(scene, places, **given)
    hero = module.CharacterController(scene, position=tuple(places[0]), **given)
    for bad, kind in (
        ((0, 0, 0), ValueError), (np.zeros((7, 3)), ValueError), (np.full((7, 3), np.nan), ValueError),
        (np.ones((6, 3)), ValueError), ("up", TypeError), ((1, 2), ValueError), (np.ones((7, 3), complex), TypeError),
    ):  # fmt: skip
        with pytest.raises(kind, match="up"):
            crowd.move(np.ones((7, 3)), DT, up=bad)
    for bad, kind in (((0, 0, 0), ValueError), ((0, 0, np.inf), ValueError), ("abc", TypeError), ((1, 2), ValueError)):
        with pytest.raises(kind, match="up"):
            hero.move((1, 0, 0), DT, up=bad)
    with pytest.raises(ValueError, match="beyond"):
        hero.position = (9e11, 0, 0)
        hero.move((9e11, 0, 0), DT, up=(1, 0, 0))
    assert hero.up == (0, 0, 1) and crowd.get("up").tolist() == [[0, 0, 1]] * 7
    assert np.array_equal(crowd.positions, places)


def test_a_journal_hears_of_the_new_up():
    scene, _, places, given = planet(pycct)
    crowd = pycct.Crowd(scene, places, **given)
    hero = pycct.CharacterController(scene, position=tuple(places[0]), **given)
    heard = []
    scene.journal = crowd.journal = lambda target, name, arguments: heard.append((target, name, arguments))
    hero.move((0, 0, 0), DT, up=(3, 0, 0))
    crowd.move(np.zeros((7, 3)), DT, np.arange(7) == 2, up=(0, 1, 0))
    assert [name for _, name, _ in heard] == ["move", "set", "move"]
    assert heard[0][2]["up"] == (3.0, 0.0, 0.0)
    assert heard[1][2]["indices"].tolist() == [2] and heard[1][2]["up"].tolist() == [[0, 1, 0]]
