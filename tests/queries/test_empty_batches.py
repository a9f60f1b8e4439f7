"""Batches without rows, errors that name a row, and long values in messages."""

import numpy as np
import pytest

import pycct
from pycct import Box, Crowd, Plane, Scene, Sphere, Worlds, kernels, reference

HUGE = 10**5000
BALL = Sphere(1)


def place():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((1, 1, 1)), body="kinematic")
    return scene


CALLS = {
    "move_actors": lambda s: s.move_actors([], []),
    "move_actors with rotations": lambda s: s.move_actors([], [], []),
    "raycast_many": lambda s: s.raycast_many([], [], []),
    "raycast_many, one direction": lambda s: s.raycast_many([], (0, 0, 1), 1, mask=[], exclude=[]),
    "visible_many": lambda s: s.visible_many([], []),
    "visible_many, one point": lambda s: s.visible_many([], (0, 0, 1)),
    "visible_many, one origin": lambda s: s.visible_many((0, 0, 1), []),
    "sweep_many": lambda s: s.sweep_many(BALL, [], [], []),
    "sweep_many with rotations": lambda s: s.sweep_many(BALL, [], (0, 0, 1), 1, []),
    "overlap_many": lambda s: s.overlap_many(BALL, []),
    "penetration_many": lambda s: s.penetration_many(BALL, [], [], exclude=[]),
    "closest_points_many": lambda s: s.closest_points_many(BALL, [], []),
    "distance_between_many": lambda s: pycct.distance_between_many(BALL, BALL, ([], None)),
    "distance_between_many, shapes": lambda s: pycct.distance_between_many([], BALL),
    "contacts_between_many": lambda s: pycct.contacts_between_many(BALL, BALL, ([], []), ([], [])),
    "move_many": lambda s: pycct.move_many([], [], 1 / 60),
    "separate": lambda s: pycct.separate([], 1 / 60),
    "restore_many": lambda s: pycct.restore_many([], pycct.save_many([])),
    "worlds.move_actors": lambda s: Worlds([s]).move_actors([], [], [], []),
    "worlds.raycast_many": lambda s: Worlds([s]).raycast_many([], [], [], world=[]),
    "kernels.point_segment_many": lambda s: kernels.point_segment_many([], (0, 0, 0), (0, 0, 1)),
}
OF_CROWDS = {
    "move": lambda c: c.move([], 1 / 60, active=[]),
    "run": lambda c: c.run([], 1 / 60),
    "add": lambda c: c.add([]),
    "remove": lambda c: c.remove([]),
    "set": lambda c: c.set([], radius=[], position=[]),
    "teleport": lambda c: c.teleport([], []),
    "resize": lambda c: c.resize([], []),
    "contacts": lambda c: c.contacts(0.1, []),
    "index_of": lambda c: c.index_of([]),
    "insert": lambda c: c.insert(c.extract([])),
    "separate": lambda c: c.separate(1 / 60, yielding=[]),
    "snap_to_ground": lambda c: c.snap_to_ground(1),
    "restore": lambda c: c.restore(c.save(moving=True)),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_empty_list_is_an_empty_batch(name):
    answer = CALLS[name](place())
    if hasattr(answer, "_fields"):
        assert all(column is None or len(column) in (0, 1) for column in answer)
    elif isinstance(answer, np.ndarray):
        assert answer.size == 0


@pytest.mark.parametrize("name", OF_CROWDS)
def test_crowds_without_members(name):
    crowd = Crowd(place(), [])
    OF_CROWDS[name](crowd)
    assert len(crowd) == 0 and crowd.state_hash() == 0


def test_a_run_without_ticks_changes_nothing():
    crowd = Crowd(place(), [(0, 0, 5)])
    before = crowd.state_hash()
    assert crowd.run([], 1 / 60).shape == (0, 1, 3) and crowd.state_hash() == before


def test_the_reference_takes_empty_lists():
    scene = reference.Scene()
    scene.move_actors([], [])
    scene.move_actors([], [], [])


WRONG = np.zeros((3, 3))
WRONG[1] = np.nan
TURNS = [(0, 0, 0, 1), (0, 0, 0, 9), (0, 0, 0, 1)]
FAR = [(0, 0, 0), (1e13, 0, 0)]
ONES = np.ones((3, 3))
ROWS = {
    "origins": lambda s: s.raycast_many(WRONG, (0, 0, 1), 1),
    "directions": lambda s: s.raycast_many(ONES, [(0, 0, 1), (0, 0, 0), (0, 0, 1)], 1),
    "distances": lambda s: s.raycast_many(ONES, (0, 0, 1), [1, -1, 1]),
    "mask": lambda s: s.raycast_many(ONES, (0, 0, 1), 1, mask=[1, -1, 1]),
    "exclude": lambda s: s.overlap_many(BALL, ONES, exclude=np.array([-1, -7, 2])),
    "a": lambda s: s.visible_many(WRONG, (0, 0, 1)),
    "b": lambda s: s.visible_many(ONES, WRONG),
    "positions": lambda s: s.sweep_many(BALL, WRONG, (0, 0, 1), 1),
    "rotations": lambda s: s.sweep_many(BALL, ONES, (0, 0, 1), 1, TURNS),
    "positions ": lambda s: s.overlap_many(BALL, WRONG),
    "positions  ": lambda s: s.penetration_many(BALL, FAR),
    "rotations ": lambda s: s.overlap_many(BALL, ONES, TURNS),
    "max_distance": lambda s: s.closest_points_many(BALL, ONES, [1, -1, 1]),
    "poses_a positions": lambda s: pycct.distance_between_many(BALL, BALL, (WRONG, None)),
    "poses_a positions ": lambda s: pycct.distance_between_many(BALL, BALL, (FAR, None)),
    "poses_b rotations": lambda s: pycct.contacts_between_many(BALL, BALL, None, (ONES, TURNS)),
    "displacements": lambda s: Crowd(s, ONES).move(WRONG, 1),
    "radius": lambda s: Crowd(s, ONES, radius=[1, -1, 1]),
    "height": lambda s: Crowd(s, ONES).set([0, 1, 2], height=[1, -1, 1]),
    "yielding": lambda s: Crowd(s, ONES).separate(1, yielding=[1, -1, 1]),
}


@pytest.mark.parametrize("name", ROWS)
def test_errors_name_the_argument_and_the_row(name):
    with pytest.raises(ValueError, match=rf"^{name.strip()} .*row 1\b"):
        ROWS[name](place())


def test_lists_of_masks_serve_as_arrays():
    scene = place()
    up = [(0, 0, 5)] * 2
    assert scene.raycast_many(up, (0, 0, -1), 9, mask=[1, 2]).hit.tolist() == [True, False]
    assert scene.raycast_many(up, (0, 0, -1), 9, mask=np.array([1, 2])).hit.tolist() == [True, False]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.add(BALL, body="x" * 9999),
        lambda s: s.raycast((0, 0, 0), (0, 0, 1), 1, include="x" * 9999),
        lambda s: s.raycast_many(ONES, (0, 0, 1), 1, fields=["x" * 9999]),
        lambda s: s.raycast_many(ONES, (0, 0, 1), 1, fields="x" * 9999),
        lambda s: s.visible((0, 0, 0), (1, 1, 1), exclude="x" * 9999),
        lambda s: s.visible((0, 0, 0), (1, 1, 1), exclude=HUGE),
        lambda s: Crowd(s, ONES, rules=["physx", "x" * 9999, "physx"]),
        lambda s: Crowd(s, ONES).index_of([HUGE]),
        lambda s: Crowd(s, ONES).set(0, mask=HUGE),
        lambda s: s.add(BALL, id=HUGE),
        lambda s: s.add(BALL, trigger="x" * 9999),
    ],
)
def test_long_values_are_cut_in_messages(call):
    with pytest.raises((ValueError, TypeError, KeyError)) as error:
        call(place())
    assert len(str(error.value)) < 300
