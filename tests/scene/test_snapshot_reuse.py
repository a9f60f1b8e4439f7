"""Fitted trees and reused snapshot memory, each tested in two ways."""

import numpy as np
import pytest
import worlds

import pycct

DOWN = (0, 0, -1)


def spheres(rng, n, span=20.0, body="kinematic"):
    """A scene of spheres, and their positions."""
    scene = pycct.Scene()
    places = rng.uniform(-span, span, (n, 3))
    actors = [scene.add(pycct.Sphere(0.5), tuple(p), body=body) for p in places]
    return scene, actors, places


def rays_down(scene, places):
    """The hit of a ray from above each position."""
    got = scene.raycast_many(places + np.array((0, 0, 0.501)), np.tile(DOWN, (len(places), 1)), 0.01)
    return got.actor


@pytest.mark.parametrize("share", [1.0, 0.5, 0.16, 0.14, 0.02])
@pytest.mark.parametrize("body", ["static", "kinematic"])
def test_moved_actors_are_found_at_their_new_place_only(share, body):
    """Rays find actors that moved all at once (boxes fitted upwards) and one by one."""
    rng = np.random.default_rng(3)
    scene, actors, places = spheres(rng, 300, body=body)
    assert (rays_down(scene, places) >= 0).all()
    for round_ in range(12):
        some = rng.permutation(300)[: int(300 * share)]
        before = places[some].copy()
        # Far out and back in: boxes grow and shrink.
        places[some] = rng.uniform(-20, 20, (len(some), 3)) * (8 if round_ % 3 == 1 else 1)
        scene.move_actors([actors[k].id for k in some], places[some])
        found = rays_down(scene, places)
        assert found.tolist() == [nearest_above(places, p) for p in places]
        gone = [nearest_above(places, p) for p in before]
        assert rays_down(scene, before).tolist() == gone


def nearest_above(places, p):
    """The sphere within a centimetre of the top of a sphere at p, from a ray above it, or -1."""
    top = p + np.array((0, 0, 0.501))
    aside = np.hypot(*(places[:, :2] - top[:2]).T)
    near = aside < 0.5
    depth = np.full(len(places), np.inf)
    depth[near] = top[2] - (places[near, 2] + np.sqrt(0.25 - aside[near] ** 2))
    inside = np.linalg.norm(places - top, axis=1) < 0.5
    depth[inside] = 0.0
    depth[depth < 0] = np.inf
    k = int(np.argmin(depth))
    return k if depth[k] <= 0.01 else -1


def test_moved_actors_block_and_carry_a_character_where_they_are():
    """Fitted boxes: a character stands on moved actors, and falls where they were."""
    rng = np.random.default_rng(4)
    scene = pycct.Scene()
    slabs = [scene.add(pycct.Box((1, 1, 0.1)), (4 * k, 0, -0.1), body="kinematic") for k in range(200)]
    for _ in range(6):
        heights = rng.uniform(-30, 30, 200)
        # Each actor at its own height, all in one change.
        scene.move_actors([s.id for s in slabs], np.column_stack([4.0 * np.arange(200), np.zeros(200), heights - 0.1]))
        for k in rng.integers(0, 200, 12):
            hero = pycct.CharacterController(scene, radius=0.3, height=1.2, contact_offset=0.02)
            hero.foot_position = (4.0 * k, 0, heights[k] + 0.1)
            for _ in range(8):
                hero.move((0, 0, -0.05), 1 / 60)
            assert hero.grounded and hero.foot_position[2] == pytest.approx(heights[k], abs=1e-6)
            ground = hero.ground.actor
            assert ground is slabs[k]
            hero.remove()


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_reused_snapshot_has_every_change_since(looks):
    """Changes alternate between two snapshots: each must receive those of the other."""
    rng = np.random.default_rng(5)
    scene, actors, places = spheres(rng, 120)
    for step in range(60):
        # Another actor each time, so that a lost change shows at once and remains.
        for _ in range(looks):
            k = int(rng.integers(120))
            places[k] = rng.uniform(-20, 20, 3)
            actors[k].move_to(places[k])
            if rng.random() < 0.7:
                scene.raycast((0, 0, 99), DOWN, 1)
        if step % 2:
            j = int(rng.integers(120))
            actors[j].layer = 1 + step % 2
        near = scene.closest_points_many(pycct.Sphere(0.1), places, 0.0)
        assert near.hit.all()
        found = scene.overlap_many(pycct.Sphere(0.1), places)
        for k in range(120):
            want = np.flatnonzero(np.linalg.norm(places - places[k], axis=1) < 0.6).tolist()
            assert found.actor[found.first[k] : found.first[k + 1]].tolist() == want


def test_a_snapshot_with_a_reader_is_not_reused():
    """A filter changes the scene again and again: the query keeps its snapshot."""
    rng = np.random.default_rng(6)
    scene, actors, places = spheres(rng, 60, span=4.0)
    centre = (0.0, 0.0, 0.0)
    want = np.flatnonzero(np.linalg.norm(places, axis=1) < 3.5).tolist()
    moved = []

    def meddle(actor):
        # Two changes with a query between: both other snapshots are used.
        for _ in range(2):
            k = len(moved) % 60
            actors[k].move_to(tuple(rng.uniform(50, 60, 3)))
            moved.append(k)
            scene.raycast((0, 0, 99), DOWN, 1)
        return True

    assert [a.id for a in scene.overlap(pycct.Sphere(3.0), centre, filter=meddle)] == want
    assert len(moved) > 40
    left = sorted(set(range(60)) - set(moved))
    now = [k for k in left if np.linalg.norm(places[k]) < 3.5]
    assert [a.id for a in scene.overlap(pycct.Sphere(3.0), centre)] == now


def test_a_mixed_scene_is_the_same_after_any_number_of_changes():
    """After many small changes of any kind, results equal those of a new scene."""
    rng = np.random.default_rng(7)
    placed = worlds.placings(rng, copies=2)
    scene = worlds.scene_of(placed)
    movable = [k for k, p in enumerate(placed) if not isinstance(p["shape"], pycct.Plane)]
    for _ in range(30):
        for k in rng.permutation(movable)[:3].tolist():
            placed[k]["position"] = tuple(rng.uniform(-5, 5, 3))
            scene.actor(k).move_to(placed[k]["position"])
        start, way = rng.uniform(-7, 7, (40, 3)), rng.normal(size=(40, 3))
        fresh = worlds.scene_of(placed)
        a, b = scene.raycast_many(start, way, 9.0), fresh.raycast_many(start, way, 9.0)
        assert np.array_equal(a.actor, b.actor) and np.array_equal(a.distance, b.distance)
        a, b = (s.sweep_many(pycct.Sphere(0.4), start, way, 4.0) for s in (scene, fresh))
        assert np.array_equal(a.actor, b.actor) and np.array_equal(a.distance, b.distance)
