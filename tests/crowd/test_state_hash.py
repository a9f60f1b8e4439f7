"""The hash of a crowd is the sum of its members' hashes."""

import numpy as np
import pytest

import pycct
from pycct import reference

BOTH = pytest.mark.parametrize("package", [pycct, reference], ids=["compiled", "reference"])
DT = 1 / 60


def level(package):
    scene = package.Scene()
    scene.add(package.Plane((0, 0, 1)))
    return scene


@BOTH
def test_the_hash_of_a_crowd_is_the_sum_of_those_of_its_members(package):
    wholes, parts = [], []
    for groups in ([range(9)], [range(4), range(4, 9)], [[k] for k in range(9)]):
        scene = level(package)
        crowds = [package.Crowd(scene, [(k, 0, 1) for k in group]) for group in groups]
        for crowd in crowds:
            crowd.move(np.full((len(crowd), 3), (0.05, 0, -0.2)), DT)
        parts.append(sum(crowd.state_hash() for crowd in crowds) % 2**64)
        wholes.append(crowds)
    assert len(set(parts)) == 1
    scene = level(package)
    heroes = [package.CharacterController(scene, (k, 0, 1)) for k in range(9)]
    for hero in heroes:
        hero.move((0.05, 0, -0.2), DT)
    assert sum(hero.state_hash() for hero in heroes) % 2**64 == parts[0]
    crowd = wholes[0][0]
    before = crowd.state_hash()
    gone = heroes[3].state_hash()
    crowd.remove(3)
    assert (crowd.state_hash() + gone) % 2**64 == before
    assert package.Crowd(scene, []).state_hash() == 0


def changes(package):
    """Ways to change one part of a crowd's state that decides the next move."""
    return {
        "position": lambda crowd: crowd.set(1, position=(1, 0, np.nextafter(1, 2))),
        "negative zero": lambda crowd: crowd.set(1, position=(1, -0.0, 1)),
        "group": lambda crowd: crowd.set(1, group=1),
        "radius": lambda crowd: crowd.set(1, radius=np.nextafter(0.4, 1)),
        "height": lambda crowd: crowd.set(1, height=1.25),
        "up": lambda crowd: crowd.set(1, up=(0, 0.1, 1)),
        "step_offset": lambda crowd: crowd.set(1, step_offset=0.3),
        "contact_offset": lambda crowd: crowd.set(1, contact_offset=0.02),
        "slope_limit": lambda crowd: crowd.set(1, slope_limit=0.5),
        "climbing_mode": lambda crowd: crowd.set(1, climbing_mode="constrained"),
        "non_walkable_mode": lambda crowd: crowd.set(1, non_walkable_mode="force_sliding"),
        "rules": lambda crowd: crowd.set(1, rules="robust"),
        "overlap_recovery": lambda crowd: crowd.set(1, overlap_recovery=False),
        "prevent_vertical_sliding": lambda crowd: crowd.set(1, prevent_vertical_sliding=True),
        "invisible_wall_height": lambda crowd: crowd.set(1, invisible_wall_height=0.5),
        "max_jump_height": lambda crowd: crowd.set(1, max_jump_height=0.5),
        "layer": lambda crowd: crowd.set(1, layer=2),
        "mask": lambda crowd: crowd.set(1, mask=7),
        "collide": lambda crowd: crowd.set(1, collide=True),
        "surface": lambda crowd: crowd.set(1, surface=pycct.Behavior.CAN_SLIDE),
        "memory": lambda crowd: crowd.move(np.full((3, 3), (0, 0, -0.01)), DT),
        "fewer": lambda crowd: crowd.remove(1),
        "more": lambda crowd: crowd.add([(9, 9, 9)]),
    }


@pytest.mark.parametrize("what", changes(pycct))
def test_each_value_that_decides_the_next_move_changes_the_hash(what):
    seen = []
    for package in (pycct, reference):
        crowd = package.Crowd(level(package), [(0, 0, 1), (1, 0, 1), (2, 0, 0.91)])
        first = crowd.state_hash()
        data = crowd.save()
        changes(package)[what](crowd)
        seen.append(crowd.state_hash())
        assert seen[-1] != first
        crowd.restore(data)
        assert crowd.state_hash() == first
    assert seen[0] == seen[1]


@BOTH
def test_the_hash_is_keyed_by_id(package):
    scene = level(package)
    one, other = package.CharacterController(scene, (0, 0, 1)), package.CharacterController(scene, (0, 0, 1))
    assert one.state_hash() != other.state_hash()
    # Two members that exchange their states have other hashes.
    a = package.Crowd(level(package), [(0, 0, 1), (3, 0, 1)])
    b = package.Crowd(level(package), [(3, 0, 1), (0, 0, 1)])
    assert a.ids.tolist() == b.ids.tolist() and a.state_hash() != b.state_hash()


@BOTH
def test_the_hash_of_a_controller(package):
    scene = level(package)
    hero = package.CharacterController(scene, (0, 0, 1))
    first = hero.state_hash()
    assert type(first) is int and 0 <= first < 2**64
    data = hero.save()
    hero.move((0.1, 0, -0.2), DT)
    second = hero.state_hash()
    hero.restore(data)
    assert hero.state_hash() == first != second
    hero.user_data = "x"
    assert hero.state_hash() == first


def test_the_reference_has_the_same_hash():
    rng = np.random.default_rng(1)
    crowds = [
        p.Crowd(level(p), [(k, 0, 1) for k in range(5)], collide=True, group=[0, 0, 1, 1, 2])
        for p in (pycct, reference)
    ]
    for _ in range(5):
        way = rng.uniform(-0.1, 0.1, (5, 3))
        for crowd in crowds:
            crowd.move(way, DT)
        assert crowds[0].state_hash() == crowds[1].state_hash()


def test_an_uninitialised_controller_has_no_hash():
    with pytest.raises(RuntimeError, match="not initialised"):
        pycct.CharacterController.__new__(pycct.CharacterController).state_hash()
