"""Crowds that converge: more neighbours than any buffer held before, equal to the reference."""

import math

import numpy as np
import pytest

import pycct
from pycct import reference


def floor(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    return scene


def star(n, reach):
    """Positions on a circle, and the displacements from there to almost its centre."""
    turn = np.arange(n) * (2 * math.pi / n)
    around = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(n)])
    places = around * reach + (0, 0, 0.91)
    ways = around * (0.02 + 0.001 * np.arange(n)[:, None] - reach) - (0, 0, 0.02)
    return places, ways


@pytest.mark.parametrize("n", [3, 20])
def test_a_step_that_brings_many_together_separates_all_of_them(n):
    """No move meets another character; afterwards all are at one place, and all pairs count."""
    crowds = []
    places, ways = star(n, 60.0)
    for module in (pycct, reference):
        crowd = module.Crowd(floor(module), places, radius=0.3, height=1.2, contact_offset=0.01, collide=True,
                             order="simultaneous")
        crowd.move(ways, 1 / 60)
        together = np.array(crowd.positions)
        crowd.move(np.zeros((n, 3)), 1 / 60)
        crowds.append((crowd, together))
    assert np.array_equal(crowds[0][1], crowds[1][1])
    assert np.array_equal(crowds[0][0].positions, crowds[1][0].positions)
    # All characters were within reach of each other.
    together = crowds[0][1]
    assert np.linalg.norm(together[:, None] - together, axis=2).max() < 0.6
    for _ in range(4):
        for crowd, _ in crowds:
            crowd.move(np.tile((0, 0, -0.02), (n, 1)), 1 / 60)
    assert np.array_equal(crowds[0][0].positions, crowds[1][0].positions)


@pytest.mark.parametrize("threads", [1, 2])
def test_first_separation_of_a_crowd_that_never_moved(threads):
    """Call `separate` before any move, when no neighbours have been collected."""
    n = 30
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.uniform(-0.1, 0.1, (n, 2)), np.full(n, 0.91)])
    crowd = pycct.Crowd(floor(pycct), places, radius=0.3, height=1.2, collide=True)
    slow = reference.Crowd(floor(reference), places, radius=0.3, height=1.2, collide=True)
    for one in (crowd, slow):
        one.separate(1 / 60)
    crowd.move(np.zeros((n, 3)), 1 / 60, threads=threads)
    slow.move(np.zeros((n, 3)), 1 / 60)
    assert np.array_equal(crowd.positions, slow.positions)


def test_single_controllers_separate_from_more_than_they_ever_met():
    n = 25
    places, _ = star(n, 0.25)
    scenes = [floor(module) for module in (pycct, reference)]
    teams = [[module.CharacterController(scene, tuple(p), 0.3, 1.2, collide=True) for p in places]
             for module, scene in zip((pycct, reference), scenes, strict=True)]
    for module, team in zip((pycct, reference), teams, strict=True):
        module.separate(team, 1 / 60)
        for hero in team:
            hero.move((0, 0, 0), 1 / 60)
    assert [h.position for h in teams[0]] == [h.position for h in teams[1]]


def test_hits_and_answers_beyond_their_first_buffers():
    """One move with more hits and callback answers than the first buffers contain."""
    told = []
    for module in (pycct, reference):
        scene = floor(module)
        for k in range(50):
            # A funnel of many leaning slabs: each iteration of each pass meets another slab.
            turn = k * 2.4
            scene.add(module.Box((0.05, 0.4, 2)), position=(0.75 * math.cos(turn), 0.75 * math.sin(turn), 1),
                      rotation=(0, 0, math.sin(turn / 2), math.cos(turn / 2)), body="kinematic")
        asked = []
        hero = module.CharacterController(
            scene, position=(0, 0, 1), radius=0.3, height=1.2, contact_offset=0.02, rules="robust",
            filter=lambda other, asked=asked: asked.append(other.id) or other.id % 3 != 1, behavior=lambda other: 2)
        rows = []
        for k in range(12):
            way = (3 * math.cos(k), 3 * math.sin(k), -0.1)
            explained = hero.explain(way, 1 / 60)
            hero.move(way, 1 / 60)
            rows.append((hero.position, [(h.position, h.normal, h.distance) for h in hero.hits], len(explained.events)))
        told.append((rows, len(set(asked))))
    assert told[0][0] == told[1][0]
    most = max(len(hits) for _, hits, _ in told[0][0])
    assert most > 4 and told[0][1] > 16, (most, told[0][1])


def test_an_explanation_beyond_its_first_buffer():
    """A lintel makes a character try every lower step: more events than the buffer contains."""
    told = []
    for module in (pycct, reference):
        scene = floor(module)
        scene.add(module.Box((0.2, 3, 0.5)), position=(1, 0, 2.35))
        hero = module.CharacterController(scene, position=(0.45, 0, 0.92), radius=0.3, height=1.2, contact_offset=0.02,
                                          step_offset=0.6, rules="robust")
        explained = hero.explain((0.4, 0, -0.02), 1 / 60)
        told.append([(e.kind, e.position, e.vector) for e in explained.events])
    assert told[0] == told[1]
    assert len(told[0]) > 32
