"""Triggers: actors that block nobody, and who entered and left them."""

import copy
import pickle
import random

import numpy as np
import pytest

import pycct
from pycct import reference

BOTH = pytest.mark.parametrize("module", [pycct, reference], ids=["compiled", "reference"])
DT = 1 / 60


def ground(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    return scene


def told(events):
    """Events as lists."""
    return tuple(rows.tolist() for rows in events)


@BOTH
def test_a_walk_through_a_trigger(module):
    scene = ground(module)
    zone = scene.add(module.Box((1, 1, 1)), (3.01, 0, 1), trigger=True)
    hero = module.CharacterController(scene, (0, 0, 0.91))
    pair = [zone.id, hero.id]
    entered, left = [], []
    for tick in range(120):
        hero.move((0.05, 0, -0.02), DT)
        events = scene.triggers()
        entered += [(tick, *row) for row in events.entered.tolist()]
        left += [(tick, *row) for row in events.left.tolist()]
        x = hero.position[0]
        assert events.inside.tolist() == ([pair] if abs(x - 3.01) < 1.4 else [])
    assert hero.position[0] == pytest.approx(6.0)
    assert entered == [(32, *pair)] and left == [(88, *pair)]


@BOTH
def test_arrays_and_flags(module):
    scene = ground(module)
    zone = scene.add(module.Sphere(1), trigger=True)
    assert zone.trigger is True and scene.actors[0].trigger is False and "trigger" in repr(zone)
    assert scene.actor(zone.id) is zone and zone in scene.actors and len(scene) == 2
    events = scene.triggers()
    for rows in (events.entered, events.left, events.inside, events[0]):
        assert rows.shape == (0, 2) and rows.dtype == np.int64
    for bad in (1, None, "yes", np.ones(2, bool)):
        with pytest.raises(TypeError, match="trigger"):
            scene.add(module.Sphere(1), trigger=bad)
    with pytest.raises(AttributeError):
        zone.trigger = False
    assert len(scene) == 2


@BOTH
def test_no_call_while_nothing_changes_reports_anything_twice(module):
    scene = ground(module)
    scene.add(module.Sphere(1), trigger=True)
    hero = module.CharacterController(scene, (0, 0, 0.91))
    first = scene.triggers()
    assert told(first)[:2] == ([[1, hero.id]], [])
    assert told(scene.triggers()) == ([], [], [[1, 2]])


@BOTH
def test_triggers_block_nobody(module):
    scene = ground(module)
    zone = scene.add(module.Box((0.2, 3, 3)), (1, 0, 0), trigger=True, body="kinematic")
    hero = module.CharacterController(scene, (0, 0, 0.91))
    for _ in range(40):
        assert hero.move((0.05, 0, -0.02), DT) == module.CollisionFlags.DOWN
    assert hero.position[0] == pytest.approx(2.0)
    zone.move_to((2, 0, 0))
    hero.move((0, 0, -0.02), DT)
    assert hero.position[0] == pytest.approx(2.0) and hero.state.overlap == 0.0
    hero.teleport((2, 0, 6))
    assert hero.move((0, 0, -2), DT) == module.CollisionFlags(0)
    assert not hero.can_resize(0.5) or hero.can_resize(3.0)
    assert hero.probe_ground(9).actor is scene.actors[0]


@BOTH
def test_a_trigger_never_carries(module):
    scene = ground(module)
    lift = scene.add(module.Box((2, 2, 0.5)), (0, 0, 0.2), trigger=True, body="kinematic", behavior=1)
    hero = module.CharacterController(scene, (0, 0, 0.91))
    hero.move((0, 0, -0.02), DT)
    lift.move_to((0.5, 0, 0.4))
    hero.move((0, 0, -0.02), DT)
    assert hero.position == pytest.approx((0, 0, 0.91))


@BOTH
def test_changes_of_triggers_invalidate_no_cache(module):
    scene = ground(module)
    before = scene.timestamp
    zone = scene.add(module.Sphere(1), trigger=True)
    zone.move_to((1, 0, 0))
    zone.layer = 2
    scene.remove(zone)
    assert scene.timestamp == before


def test_queries_and_sensors_ignore_triggers():
    scene = pycct.Scene()
    zone = scene.add(pycct.Box((1, 1, 1)), trigger=True)
    moving = scene.add(pycct.Sphere(1), trigger=True, body="dynamic")
    ball = pycct.Sphere(0.5)
    assert scene.raycast((-5, 0, 0), (1, 0, 0), 10) is None
    assert scene.raycast_all((-5, 0, 0), (1, 0, 0), 10, include="all") == []
    assert scene.visible((-5, 0, 0), (5, 0, 0))
    assert scene.sweep(ball, (-5, 0, 0), (1, 0, 0), 10) is None
    assert scene.overlap(ball, (0, 0, 0)) == [] and scene.penetration(ball, (0, 0, 0)) == []
    assert scene.closest_points(ball, (3, 0, 0)) is None
    assert not scene.raycast_many([(-5, 0, 0)], (1, 0, 0), 10).hit.any()
    assert not scene.overlap_many(ball, [(0, 0, 0)]).hit.any()
    crowd = pycct.Crowd(scene, [(-3, 0, 0)])
    eye = pycct.Sensors(crowd, {"ahead": pycct.Lidar(1, 9.0)})
    assert np.asarray(eye.look()["ahead.distance"]).min() == 9.0
    with scene.edit():
        zone.move_to((0, 5, 0))
    assert moving.bounds[1][0] == pytest.approx(1)


@BOTH
def test_masks_exclude_characters(module):
    scene = ground(module)
    zone = scene.add(module.Sphere(1), trigger=True, layer=4)
    hero = module.CharacterController(scene, (0, 0, 0.91), mask=3)
    assert told(scene.triggers()) == ([], [], [])
    hero.mask = 7
    assert scene.triggers().entered.tolist() == [[zone.id, hero.id]]
    zone.layer = 8
    assert scene.triggers().left.tolist() == [[zone.id, hero.id]]


@BOTH
def test_removal_counts_as_leaving(module):
    scene = ground(module)
    zones = [scene.add(module.Sphere(1), trigger=True) for _ in range(2)]
    heroes = [module.CharacterController(scene, (0, 0, 0.91)) for _ in range(2)]
    crowd = module.Crowd(scene, [(0, 0, 0.91), (0.1, 0, 0.91)])
    everyone = [heroes[0].id, heroes[1].id, *crowd.ids.tolist()]
    assert scene.triggers().entered.tolist() == [[z.id, c] for z in zones for c in everyone]
    scene.remove(zones[0])
    assert told(scene.triggers())[:2] == ([], [[zones[0].id, c] for c in everyone])
    heroes[0].remove()
    crowd.remove(1)
    assert scene.triggers().left.tolist() == [[zones[1].id, everyone[0]], [zones[1].id, everyone[3]]]
    again = scene.add(module.Sphere(1), trigger=True, id=zones[0].id)
    assert again.id == zones[0].id
    assert scene.triggers().entered.tolist() == [[again.id, everyone[1]], [again.id, everyone[2]]]


def test_a_collected_character_has_left():
    scene = ground(pycct)
    zone = scene.add(pycct.Sphere(1), trigger=True)
    hero = pycct.CharacterController(scene, (0, 0, 0.91))
    crowd = pycct.Crowd(scene, [(0, 0, 0.91)])
    gone = [[zone.id, hero.id], [zone.id, int(crowd.ids[0])]]
    assert scene.triggers().entered.tolist() == gone
    del hero, crowd
    assert scene.triggers().left.tolist() == gone


@BOTH
def test_all_shapes(module):
    shapes = {
        "box": module.Box((1, 1, 1)),
        "sphere": module.Sphere(1),
        "capsule": module.Capsule(0.5, 1),
        "hull": module.ConvexHull([(-1, -1, -1), (1, -1, -1), (0, 1, -1), (0, 0, 1)]),
        "plane": module.Plane((0, 0, 1)),
        "triangle": module.Triangle((-2, -2, 0), (2, -2, 0), (0, 2, 0)),
        "mesh": module.Mesh([(-2, -2, 0), (2, -2, 0), (0, 2, 0)], [(0, 1, 2)]),
    }
    for name, shape in shapes.items():
        scene = module.Scene()
        zone = scene.add(shape, trigger=True)
        near = module.CharacterController(scene, (0, 0, 0.2))
        far = module.CharacterController(scene, (0, 0, 9))
        assert scene.triggers().inside.tolist() == [[zone.id, near.id]] != [[zone.id, far.id]], name
    # A plane is solid, the inside of a mesh is not.
    deep = ground(module)
    half = deep.add(module.Plane((0, 0, 1)), trigger=True)
    hero = module.CharacterController(deep, (0, 0, -50))
    assert deep.triggers().inside.tolist() == [[half.id, hero.id]]


@BOTH
def test_rotation_and_scale(module):
    scene = module.Scene()
    turned = (0, 0, np.sqrt(0.5), np.sqrt(0.5))
    zone = scene.add(module.Box((1, 0.1, 1)), (0, 0, 0), turned, (3, 1, 1), trigger=True)
    inside = module.CharacterController(scene, (0, 2.9, 0))
    beside = module.CharacterController(scene, (2.9, 0, 0))
    assert beside.id > inside.id and scene.triggers().inside.tolist() == [[zone.id, inside.id]]


@BOTH
def test_pickles_and_copies_keep_the_flag(module):
    scene = ground(module)
    zone = scene.add(module.Box((1, 1, 1)), (0, 0, 1), trigger=True, body="kinematic")
    hero = module.CharacterController(scene, (0, 0, 0.91))
    scene.triggers()
    for remake in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        twin = remake(scene)
        assert [a.trigger for a in twin.actors] == [False, True] and twin.actor(zone.id).body == "kinematic"
        assert told(twin.triggers()) == ([], [], [])
        other = module.CharacterController(twin, (0, 0, 0.91))
        assert twin.triggers().entered.tolist() == [[zone.id, other.id]]
    again = pickle.loads(pickle.dumps(hero))
    assert again.scene.triggers().entered.tolist() == [[zone.id, again.id]]
    assert told(scene.triggers()) == ([], [], [[zone.id, hero.id]])


def test_cooked_scenes_keep_the_flag(tmp_path):
    scene = ground(pycct)
    scene.add(pycct.Box((1, 1, 1)), trigger=True, user_data="zone")
    scene.add_obstacle(pycct.Box((1, 1, 1)), (9, 0, 0))
    scene.save(tmp_path / "level.cooked")
    twin = pycct.Scene.load(tmp_path / "level.cooked", verify=True)
    assert [a.trigger for a in twin.actors] == [False, True] and twin.actors[1].user_data == "zone"
    assert len(twin.obstacles) == 1 and not twin.obstacles[0].trigger
    hero = pycct.CharacterController(twin, (0, 0, 0.91))
    assert twin.triggers().entered.tolist() == [[1, hero.id]]


@BOTH
def test_saved_moving_actors_include_moving_triggers(module):
    scene = ground(module)
    zone = scene.add(module.Sphere(1), trigger=True, body="kinematic")
    fixed = scene.add(module.Sphere(1), (5, 0, 0), trigger=True)
    crowd = module.Crowd(scene, [(0, 0, 0.91)])
    data = crowd.save(moving=True)
    assert scene.triggers().entered.tolist() == [[zone.id, int(crowd.ids[0])]]
    zone.move_to((9, 0, 0))
    fixed.move_to((20, 0, 0))
    assert scene.triggers().left.tolist() == [[zone.id, int(crowd.ids[0])]]
    crowd.restore(data)
    assert zone.position == (0, 0, 0) and fixed.position == (20, 0, 0)
    assert scene.triggers().entered.tolist() == [[zone.id, int(crowd.ids[0])]]


@BOTH
def test_shift_of_the_origin_changes_nothing(module):
    scene = ground(module)
    zone = scene.add(module.Sphere(1), (40, 0, 1), trigger=True)
    hero = module.CharacterController(scene, (40, 0, 0.91))
    assert len(scene.triggers().entered) == 1
    scene.shift_origin((32, 0, 0))
    assert told(scene.triggers()) == ([], [], [[zone.id, hero.id]])


@BOTH
def test_the_journal_receives_the_flag(module):
    scene = module.Scene()
    log = []
    scene.journal = lambda target, name, arguments: log.append((name, arguments))
    zone = scene.add(module.Sphere(1), trigger=True)
    scene.add(module.Sphere(1))
    scene.triggers()
    zone.move_to((1, 0, 0))
    assert [name for name, _ in log] == ["add", "add", "move_to"]
    assert [arguments.get("trigger") for _, arguments in log] == [True, False, None]


def test_worlds_have_triggers_of_their_own():
    scenes = [ground(pycct) for _ in range(2)]
    zones = [scene.add(pycct.Sphere(1), (3 * k, 0, 0), trigger=True) for k, scene in enumerate(scenes)]
    crowd = pycct.Crowd(pycct.Worlds(scenes), [(0, 0, 0.91), (3, 0, 0.91), (3, 0, 0.91)], world=[0, 0, 1])
    assert scenes[0].triggers().inside.tolist() == [[zones[0].id, int(crowd.ids[0])]]
    assert scenes[1].triggers().inside.tolist() == [[zones[1].id, int(crowd.ids[2])]]


def random_story(module, seed, order, threads):
    """Events of random walkers; ``order`` permutes the members."""
    draw = random.Random(seed)
    places = [(draw.uniform(-4, 4), draw.uniform(-4, 4), 0.91) for _ in range(30)]
    ways = np.array([(draw.uniform(-0.2, 0.2), draw.uniform(-0.2, 0.2), -0.02) for _ in range(30)])
    scene = ground(module)
    lift = None
    for k in range(6):
        shape = [module.Box((0.7, 0.4, 0.5)), module.Sphere(0.8), module.Capsule(0.3, 1.0)][k % 3]
        lift = scene.add(shape, (draw.uniform(-4, 4), draw.uniform(-4, 4), 0.5), trigger=True, layer=1 + k % 2)
    crowd = module.Crowd(scene, [places[k] for k in order], mask=[1 + k % 3 for k in order], collide=True)
    number = {int(id): k for id, k in zip(crowd.ids, order, strict=True)}
    story = []
    for tick in range(20):
        crowd.move(ways[list(order)], DT, threads=threads)
        lift.move_to((0.2 * tick - 2, 0, 0.5))
        events = scene.triggers()
        story.append([sorted((t, number[c]) for t, c in rows.tolist()) for rows in events])
    return story


def test_threads_and_order_do_not_matter():
    order = list(range(30))
    first = random_story(pycct, 3, order, 1)
    assert sum(len(events[0]) for events in first) > 10
    assert random_story(pycct, 3, order, 2) == first
    assert random_story(pycct, 3, order[::-1], 2) == first


@pytest.mark.parametrize("seed", range(4))
def test_the_reference_agrees(seed):
    order = list(range(30))
    assert random_story(pycct, seed, order, 1) == random_story(reference, seed, order, 1)
