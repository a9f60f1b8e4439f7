"""Actors, obstacles and characters of a scene share one count of ids."""

import copy
import pickle
import threading

import numpy as np
import pytest

from pycct import Box, CharacterController, Crowd, Plane, Scene, Sphere, reference
from pycct.args.save_format import LARGEST_ID

BOTH = pytest.mark.parametrize("pycct", [__import__("pycct"), reference], ids=["compiled", "reference"])
DT = 1 / 60


@BOTH
def test_ids_of_a_scene_are_different(pycct):
    scene = pycct.Scene()
    actor = scene.add(pycct.Sphere(1))
    hero = pycct.CharacterController(scene)
    obstacle = scene.add_obstacle(pycct.Box((1, 1, 1)))
    crowd = pycct.Crowd(scene, [(0, 0, 5), (9, 0, 5)])
    proxy = hero.add_proxy()
    assert [actor.id, hero.id, obstacle.id, *crowd.ids.tolist(), proxy.id] == [0, 1, 2, 3, 4, 5]
    assert scene.actor(hero.id) is None and scene.character(actor.id) is None
    assert scene.actor(2) is obstacle and scene.character(1) is hero


@BOTH
def test_a_removed_actor_comes_back_as_itself(pycct):
    scene = pycct.Scene()
    ground = scene.add(pycct.Plane((0, 0, 1)))
    lift = scene.add(pycct.Box((1, 1, 0.1)), (0, 0, 1), body="kinematic")
    last = scene.add(pycct.Box((1, 1, 0.1)), (9, 0, 1), body="kinematic")
    block = scene.add_obstacle(pycct.Box((1, 1, 1)), (20, 0, 0))
    hero = pycct.CharacterController(scene, (0, 0, 2.01))
    hero.move((0, 0, -0.02), DT)
    assert hero.state.standing_on is lift
    data = hero.save()
    scene.remove(lift)
    scene.remove(block)
    again = scene.add(pycct.Box((1, 1, 0.1)), (0, 0, 1), body="kinematic", id=lift.id)
    back = scene.add_obstacle(pycct.Box((1, 1, 1)), (20, 0, 0), id=np.int64(block.id))
    assert again.id == 1 and back.id == 3 and scene.actor(1) is again and scene.actor(3) is back
    assert scene.actors == [ground, again, last] and scene.obstacles == [back]
    # The character on the actor rides it again.
    hero.restore(data)
    again.move_to((0, 0, 1.5))
    hero.move((0, 0, -0.02), DT)
    assert hero.state.standing_on is again and hero.position[2] == pytest.approx(2.51, abs=0.02)
    assert scene.add(pycct.Sphere(1)).id == 5


@BOTH
def test_an_id_must_be_one_of_the_scene_and_free(pycct):
    scene = pycct.Scene()
    scene.add(pycct.Sphere(1))
    gone = scene.add(pycct.Sphere(1))
    hero = pycct.CharacterController(scene)
    crowd = pycct.Crowd(scene, [(0, 0, 9)])
    scene.remove(gone)
    for id in (0, hero.id, int(crowd.ids[0])):
        with pytest.raises(ValueError, match=f"id must be free, but {id} is in use"):
            scene.add(pycct.Sphere(1), id=id)
    for id in (-1, 4, 10**30, -(10**5000)):
        with pytest.raises(ValueError, match="id must be one that the scene has issued, from 0 to 3"):
            scene.add_obstacle(pycct.Box((1, 1, 1)), id=id)
    for id in (1.0, "1", True, [1]):
        with pytest.raises(TypeError, match="id must be an integer"):
            scene.add(pycct.Sphere(1), id=id)
    assert len(scene) == 1
    assert scene.add(pycct.Sphere(1), id=gone.id).id == 1
    crowd.remove(0)
    assert scene.add(pycct.Sphere(1), id=3).id == 3


def test_moves_do_not_depend_on_the_order_in_which_actors_came_back():
    """Layers hold actors in the order of ids: riding finds a lift by bisection."""
    rng = np.random.default_rng(3)
    scene = Scene()
    lifts = [scene.add(Box((0.9, 0.9, 0.1)), (2 * k, 0, 1), body="kinematic") for k in range(20)]
    heroes = [CharacterController(scene, (2 * k, 0, 2.02)) for k in range(20)]
    for hero in heroes:
        hero.move((0, 0, -0.02), DT)
    for k in rng.permutation(20).tolist():
        scene.remove(lifts[k])
    for k in rng.permutation(20).tolist():
        lifts[k] = scene.add(Box((0.9, 0.9, 0.1)), (2 * k, 0, 1), body="kinematic", id=lifts[k].id)
    assert [a.id for a in scene.actors] == list(range(20))
    for step in range(5):
        for k, lift in enumerate(lifts):
            lift.move_to((2 * k, 0, 1 + 0.1 * (step + 1)))
        for k, hero in enumerate(heroes):
            hero.move((0, 0, -0.02), DT)
            assert hero.state.standing_on is lifts[k]
    # Many new ids in between, and the previous ones again.
    others = [scene.add(Sphere(0.1), (0, 50, k), body="kinematic") for k in range(300)]
    scene.remove(lifts[7])
    heroes[7].move((0, 0, 0), DT)
    lifts[7] = scene.add(Box((0.9, 0.9, 0.1)), lifts[7].position, body="kinematic", id=7)
    scene.remove(others[5])
    heroes[3].move((0, 0, -0.02), DT)
    assert heroes[3].state.standing_on is lifts[3]
    again = pickle.loads(pickle.dumps(scene))
    assert [a.id for a in again.actors] == [a.id for a in scene.actors]


def test_scenes_are_saved_after_an_actor_came_back(tmp_path):
    scene = Scene()
    actors = [scene.add(Sphere(1), (k, 0, 0)) for k in range(4)]
    scene.remove(actors[1])
    scene.add(Sphere(2), id=1)
    scene.save(tmp_path / "level.cooked")
    for twin in (Scene.load(tmp_path / "level.cooked"), pickle.loads(pickle.dumps(scene)), copy.copy(scene)):
        assert [a.id for a in twin.actors] == [0, 1, 2, 3] and twin.actor(1).shape.radius == 2
        assert twin.add(Sphere(1)).id == 4


def test_pickled_controllers_keep_their_ids_in_the_new_scene():
    scene = Scene()
    heroes = [CharacterController(scene, (3 * k, 0, 1), collide=True) for k in range(3)]
    scene.add(Sphere(1), (0, 0, -5))
    again = pickle.loads(pickle.dumps(heroes[1:]))
    assert [h.id for h in again] == [1, 2] and again[0].scene.character(2) is again[1]
    assert again[0].scene.add(Sphere(1)).id == 4
    deep = copy.deepcopy(heroes)
    assert [h.id for h in deep] == [0, 1, 2]
    assert copy.copy(heroes[0]).id == 4 and copy.copy(scene).add(Sphere(1)).id == 5


@BOTH
def test_index_of(pycct):
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    crowd = pycct.Crowd(scene, np.arange(15.0).reshape(5, 3))
    crowd.remove([1, 3])
    assert crowd.ids.tolist() == [1, 3, 5]
    assert crowd.index_of(3) == 1 and type(crowd.index_of(3)) is int
    found = crowd.index_of([5, 1, 5])
    assert found.tolist() == [2, 0, 2] and found.dtype == np.int64
    assert crowd.index_of(crowd.ids).tolist() == [0, 1, 2]
    assert crowd.index_of([]).tolist() == [] and crowd.index_of(np.uint8([5])).tolist() == [2]
    for unknown in (2, [1, 2], [0, 2], -1):
        with pytest.raises(KeyError) as problem:
            crowd.index_of(unknown)
        assert problem.value.args[0] in (0, 2, -1)
    for bad in (1.0, "1", [True], [[1]]):
        with pytest.raises((TypeError, ValueError), match="ids must be"):
            crowd.index_of(bad)


def test_index_of_large_numbers():
    crowd = Crowd(Scene(), [(0, 0, 0)])
    for unknown in (2**63, 2**70, [0, 2**70], np.uint64([2**63])):
        with pytest.raises(KeyError, match=r"9223372036854775808|1180591620717411303424"):
            crowd.index_of(unknown)


def test_no_id_is_issued_beyond_the_largest():
    scene = Scene()
    scene.__setstate__({})
    crowd = Crowd(scene, [(0, 0, 0)])
    data = bytearray(crowd.save())
    from pycct.args import save_format as saves

    body = bytearray(data[saves.HEADER.size :])
    at = saves.CROWD_HEAD.size + 2 * saves.PARAMS.size
    body[at : at + 8] = (LARGEST_ID - 1).to_bytes(8, "little")
    crowd.restore(saves.seal(body, saves.CROWD_MAGIC))
    assert crowd.ids.tolist() == [LARGEST_ID - 1]
    for make in (lambda: scene.add(Sphere(1)), lambda: crowd.add([(0, 0, 0)]), lambda: CharacterController(scene)):
        with pytest.raises(OverflowError, match="no ids left"):
            make()
    assert len(scene) == 0 and len(crowd) == 1 and scene.characters == []


def test_a_crowd_takes_no_id_of_an_actor():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 0), (5, 0, 0)])
    data = crowd.save()
    crowd.remove(1)
    scene.add(Sphere(1), id=1)
    with pytest.raises(ValueError, match="ids that belong to others"):
        crowd.restore(data)
    assert crowd.ids.tolist() == [0]


def test_threads_get_different_ids():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    found = []

    def work():
        crowd = Crowd(scene, [])
        mine = []
        for _ in range(50):
            mine += [scene.add(Sphere(1)).id, *crowd.add([(0, 0, 0)] * 3).tolist(), CharacterController(scene).id]
        found.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ids = [id for mine in found for id in mine]
    assert len(ids) == 1000 and set(ids) == set(range(1, 1001))
