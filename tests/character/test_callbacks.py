"""Callbacks, layers, masks: when a move calls on_hit, behavior and filter, and their limits."""

import contextlib
import gc
import math

import numpy as np
import pytest
from small_worlds import DT, HALF, LIMIT, OFFSET, RADIUS, REST, flat, hero_in, seen, slope, steps, told_of_hits, world

from pycct import (
    Behavior,
    Box,
    Capsule,
    CharacterController,
    CollisionFlags,
    Hit,
    Mesh,
    Pass,
    Plane,
    Scene,
    Sphere,
)

GRAVITY = (0.0, 0.0, -0.02)


def narrow():
    """A floor, a low ceiling and a wall at x = 1."""
    scene = world(flat(), (Box((9, 9, 1)), (0, 0, 2 * HALF + 0.2 + 1)), (Box((1, 9, 9)), (2, 0, 0)))
    return scene, *scene.actors


def cluttered(seed=3):
    rng = np.random.default_rng(seed)
    scene = Scene()
    scene.add(Plane((0, 0, 1)), user_data="floor")
    for k in range(25):
        shape = (Box(rng.uniform(0.1, 0.6, 3)), Sphere(0.4), Capsule(0.3, 0.5))[k % 3]
        body = ("static", "kinematic", "dynamic")[k % 3]
        place = (*rng.uniform(-3, 3, 2), rng.uniform(0, 1.5))
        scene.add(shape, position=place, body=body, layer=1 << (k % 4))
    scene.add_obstacle(Box((0.3, 0.3, 0.3)), position=(1, 1, 0.3))
    scene.add(Mesh([(-3, 2, 0), (3, 2, 0), (3, 4, 1.5), (-3, 4, 1.5)], [(0, 1, 2), (0, 2, 3)]))
    return scene


def wander(seed=4, count=150):
    rng = np.random.default_rng(seed)
    d = rng.normal(size=(count, 3)) * (0.12, 0.12, 0.02) - (0, 0, 0.05)
    d[::19, 2] = 0.3
    return d


def bring_back(hero):
    x, y, z = hero.position
    if max(abs(x), abs(y)) > 4 or z > 6:
        hero.teleport((x % 5 - 2.5, y % 5 - 2.5, 2.5))


# --- on_hit


def test_hits_come_in_the_order_of_the_passes():
    scene, ground, ceiling, wall = narrow()
    told = []
    hero = hero_in(scene, on_hit=told.append)
    assert hero.move((0.9, 0, -0.02), DT) == CollisionFlags(7)
    assert [(h.pass_, h.actor) for h in told] == [(Pass.UP, ceiling), (Pass.SIDE, wall), (Pass.DOWN, ground)]
    assert all(isinstance(h, Hit) for h in told)
    assert [h.position for h in told] == [h.position for h in hero.hits]
    assert told[0].region == "top" and told[2].region == "bottom"
    up, side, down = told
    assert up.direction == pytest.approx((0, 0, 1)) and up.normal == pytest.approx((0, 0, -1))
    assert side.direction == pytest.approx((1, 0, 0)) and side.length == pytest.approx(0.9)
    assert side.distance == pytest.approx(1 - RADIUS) and side.time == pytest.approx((1 - RADIUS) / 0.9)
    assert down.direction == pytest.approx((0, 0, -1)) and down.normal == pytest.approx((0, 0, 1))


def test_on_hit_receives_no_hit_of_the_sensor():
    # RULES 5.
    scene = world(flat(), (Box((1, 5, 5)), (1.8, 0, 5)))
    hero = hero_in(scene, climbing_mode="constrained", on_hit=lambda h: passes.append(h.pass_))
    passes = []
    hero.move((0.01, 0, -0.02), DT)
    assert "SENSOR" in {e.pass_.name for e in hero.explain_last().events}
    assert passes == [Pass.DOWN]


def test_hits_of_the_recovery_sweep_belong_to_the_up_pass():
    # PhysX calls that motion down an UP pass (RULES 6).
    hero = hero_in(world(slope(60, -20, 20)), z=20 * math.tan(math.radians(60)) + 2, non_walkable_mode="force_sliding")
    told = []
    hero.on_hit = told.append
    for _ in range(12):
        told.clear()
        hero.move((0, 0, -0.2), DT)
    assert [h.pass_ for h in told] == [Pass.DOWN, Pass.DOWN, Pass.UP]
    assert told[-1].direction == pytest.approx((0, 0, -1))


def test_on_hit_runs_before_the_move_takes_effect():
    scene = world(flat())
    during = []
    hero = hero_in(scene, z=2, on_hit=lambda hit: during.append(seen(hero)))
    hero.move((0.1, 0, -0.5), DT)
    before = seen(hero)
    hero.move((0.1, 0, -5), DT)
    assert during == [before] and seen(hero) != before


def test_on_hit_receives_each_hit_once_however_often_the_move_restarts():
    scene = cluttered()
    told, plain = [], []
    hero = hero_in(scene, z=3, on_hit=told.append, filter=lambda other: True, behavior=lambda other: 0)
    twin = hero_in(scene, z=3, on_hit=plain.append)
    for d in wander():
        for h in (hero, twin):
            bring_back(h)
            h.move(d, DT)
        assert len(told) == len(plain) == len(hero.hits)
        assert [h.position for h in told] == [h.position for h in plain]
        told.clear(), plain.clear()


def test_hits_that_are_kept_outlive_the_move_and_the_actor():
    kept = []
    scene, *_ = narrow()
    hero = hero_in(scene, on_hit=kept.append)
    hero.move((0.9, 0, -0.02), DT)
    old = [(h.actor, h.position, h.normal, h.pass_) for h in kept]
    for actor in scene.actors:
        scene.remove(actor)
    hero.on_hit = None
    steps(hero, (1, 1, -1), 5)
    hero.remove()
    del hero
    gc.collect()
    assert [(h.actor, h.position, h.normal, h.pass_) for h in kept] == old


# --- exceptions


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "at"), [("on_hit", 0), ("on_hit", 1), ("on_hit", 2), ("filter", 0), ("filter", 2), ("behavior", 0)]
)
@pytest.mark.parametrize("error", [OwnError, KeyboardInterrupt, RecursionError])
def test_an_exception_leaves_the_character_as_it_was_to_the_bit(name, at, error):
    def run(fails):
        scene, *_ = narrow()
        hero = hero_in(scene)
        calls = [0]

        def callback(other):
            calls[0] += 1
            if fails and calls[0] == at + 1:
                raise error
            return 1

        failed, path = 0, []
        for k in range(30):
            if k % 5 == 0:
                hero.teleport((0.1 * (k % 3), 0.2 * k, REST))
            d = (0.9 - 0.3 * (k % 5), 0.01 * k, 0.5 if k % 4 == 3 else -0.02)
            setattr(hero, name, callback)
            calls[0] = 0
            before = seen(hero)
            if fails:
                with contextlib.suppress(error):
                    hero.move(d, DT)
                if calls[0] > at:
                    failed += 1
                    assert seen(hero) == before
                    calls[0] = -100
                    hero.move(d, DT)
            else:
                hero.move(d, DT)
            setattr(hero, name, None)
            path.append(seen(hero)[:4])
        return failed, [[*p[:4]] for p in path]

    failed, path = run(True)
    # The next move is as if the failed one had not happened.
    other = run(False)[1]
    assert failed > 3 and [p[1:4] for p in path] == [p[1:4] for p in other]
    assert [p[0] for p in path] == [p[0] for p in other]


def test_an_answer_without_a_truth_value_is_an_error():
    class Neither:
        def __bool__(self):
            raise OwnError

    hero = hero_in(world(flat()), filter=lambda other: Neither())
    before = seen(hero)
    for call in (
        lambda: hero.move(GRAVITY, DT),
        lambda: hero.probe_ground(1),
        lambda: hero.snap_to_ground(1),
        lambda: hero.explain(GRAVITY, DT),
    ):
        with pytest.raises(OwnError):
            call()
        assert seen(hero) == before
    hero.filter = lambda other: []
    hero.move(GRAVITY, DT)
    assert not hero.grounded


def test_exceptions_in_queries_of_the_character():
    def angry(other):
        raise OwnError

    scene = world(flat(), (Box((5, 5, 0.5)), (0, 0, 2 * HALF + 0.3 + 0.5)))
    hero = hero_in(scene, filter=angry)
    before = seen(hero)
    for call in (
        lambda: hero.probe_ground(1),
        lambda: hero.snap_to_ground(1),
        lambda: hero.can_resize(3),
        lambda: hero.explain((0, 0, -1), DT),
    ):
        with pytest.raises(OwnError):
            call()
        assert seen(hero) == before
    hero.filter = None
    hero.position = (0, 0, REST - 0.2)
    hero.filter = angry
    before = seen(hero)
    with pytest.raises(OwnError):
        hero.unstick()
    assert seen(hero) == before


# --- what callbacks may do


@pytest.mark.parametrize("name", ["on_hit", "filter", "behavior"])
def test_a_callback_may_change_and_query_the_scene(name):
    # The move keeps the snapshot of its start; the next move sees the changes.
    def go(meddles):
        scene = cluttered()
        hero = hero_in(scene, z=3)
        calls = [0]

        def callback(other):
            calls[0] += 1
            if meddles and calls[0] == 1:
                movable = [a for a in scene.actors if a.user_data != "floor"]
                for a in movable[:5]:
                    scene.remove(a)
                for a in movable[5:]:
                    a.move_to((50, 50, 50))
                    a.layer = 0
                    a.behavior = Behavior.CAN_SLIDE
                for k in range(30):
                    scene.add(Sphere(0.5), position=(0.1 * k, 0, 1))
                scene.add_obstacle(Capsule(0.5, 1), position=(0, 0, 1))
                assert scene.overlap(Sphere(0.5), (1, 0, 1))
                assert scene.sweep(Sphere(0.1), (0, 0, 9), (0, 0, -1), 20, filter=lambda a: a.user_data == "floor")
            return 1 if name == "filter" else 0

        setattr(hero, name, callback)
        return hero, calls

    for k, d in enumerate(wander(count=40)):
        plain, _ = go(False)
        busy, calls = go(True)
        start = (0.1 * (k % 10), 0.05 * k, 1.4)
        for hero in (plain, busy):
            hero.teleport(start)
        d = (*d[:2], -0.6)
        plain.move(d, DT)
        busy.move(d, DT)
        if name != "filter" and calls[0]:
            assert busy.position == plain.position and busy.flags == plain.flags
        assert all(math.isfinite(c) for c in busy.position)
        busy.move((0, 0, -0.01), DT)


def test_an_actor_removed_before_the_filter_sees_it_is_left_out():
    # The filter receives no actor that has been removed: it counts as left out.
    scene = world((Box((1, 5, 5)), (2, 0, 0)), (Box((1, 5, 5)), (2.5, 0, 0)))
    near, far = scene.actors

    asked = []

    def clear(other):
        asked.append(other)
        if far in scene.actors:
            scene.remove(far)
        return other is not near

    hero = hero_in(scene, step_offset=0, filter=clear)
    hero.move((5, 0, 0), DT)
    assert near in asked
    assert hero.position[0] == pytest.approx(1.5 - RADIUS - OFFSET if far in asked else 5)
    hero.teleport((0, 0, REST))
    hero.move((5, 0, 0), DT)
    assert hero.position[0] == pytest.approx(5)


@pytest.mark.parametrize("name", ["on_hit", "filter", "behavior"])
def test_a_callback_cannot_use_its_own_character_but_read_it(name):
    scene = world(flat())
    hero = hero_in(scene)
    hero.move(GRAVITY, DT)
    during = {}

    def callback(other):
        for call in (
            lambda: hero.move((0, 0, 0), DT),
            lambda: hero.probe_ground(1),
            lambda: hero.snap_to_ground(1),
            lambda: hero.resize(2),
            lambda: hero.can_resize(2),
            lambda: hero.unstick(),
            lambda: hero.explain((0, 0, -1), DT),
            lambda: hero.explain_last(),
            lambda: hero.restore(kept),
            lambda: hero.teleport((0, 0, 0)),
            lambda: hero.add_proxy(),
            lambda: hero.remove(),
            lambda: setattr(hero, "position", (0, 0, 0)),
            lambda: setattr(hero, "foot_position", (0, 0, 0)),
            lambda: setattr(hero, "mask", 0),
            lambda: setattr(hero, "step_offset", 0.1),
            lambda: setattr(hero, "rules", "document"),
        ):
            with pytest.raises(RuntimeError, match="use"):
                call()
        during["seen"] = seen(hero)
        return 1

    kept = hero.save()
    before = seen(hero)
    setattr(hero, name, callback)
    assert hero.move((0.1, 0, -0.02), DT) == CollisionFlags.DOWN
    assert during["seen"] == before
    assert hero.position == pytest.approx((0.1, 0, REST))


@pytest.mark.parametrize("name", ["on_hit", "filter", "behavior"])
def test_a_callback_may_move_other_characters(name):
    scene = world(flat())
    other = hero_in(scene, 3, collide=True)

    def callback(what):
        other.move((0, 0.1, -0.02), DT)
        return 1

    hero = hero_in(scene, collide=True)
    setattr(hero, name, callback)
    for _ in range(10):
        hero.move((0.01, 0, -0.02), DT)
    assert hero.position == pytest.approx((0.1, 0, REST)) and other.position[1] >= 1.0 - 1e-9

    # Two callbacks that move each other's character: each call succeeds in turn, the innermost
    # raises.
    refused = []

    def back(what):
        try:
            hero.move((0, 0, -1), DT)
        except RuntimeError:
            refused.append(1)
        return 1

    setattr(other, name, back)
    hero.move((0.01, 0, -0.02), DT)
    assert refused and hero.position == pytest.approx((0.11, 0, REST))


@pytest.mark.parametrize("name", ["on_hit", "filter", "behavior"])
@pytest.mark.parametrize("to", [None, "another"])
def test_a_callback_set_by_a_callback_is_for_the_next_move(name, to):
    scene, *_ = narrow()
    first, second = [], []

    def callback(other):
        first.append(other)
        setattr(hero, name, None if to is None else lambda o: second.append(o) or 1)
        return 1

    hero = hero_in(scene)
    setattr(hero, name, callback)
    hero.move((0.9, 0, -0.02), DT)
    assert first and not second
    count = len(first)
    hero.move((0.9, 0, -0.02), DT)
    assert len(first) == count and bool(second) == (to is not None)


def test_a_character_lost_during_its_own_move_ends_well():
    scene = world(flat())
    holder = {}

    def let_go(hit):
        holder.clear()
        gc.collect()

    holder["hero"] = hero_in(scene, on_hit=let_go)
    assert holder["hero"].move(GRAVITY, DT) == CollisionFlags.DOWN
    gc.collect()
    assert scene.characters == []


def test_deep_nesting_ends_with_an_error_not_a_crash():
    scene = world(flat())
    depth = [0]

    def deeper(hit):
        depth[0] += 1
        hero_in(scene, on_hit=deeper).move(GRAVITY, DT)

    hero = hero_in(scene, on_hit=deeper)
    with pytest.raises(RecursionError):
        hero.move(GRAVITY, DT)
    assert depth[0] > 20
    hero.on_hit = None
    assert hero.move(GRAVITY, DT) == CollisionFlags.DOWN


# --- the filter


def test_the_filter_runs_once_per_candidate_and_move_and_only_for_hits():
    scene = cluttered()
    for k in range(4):
        hero_in(scene, 0.5 * k, -1, collide=True)
    far = scene.add(Sphere(1), position=(200, 0, 0))
    asked = []

    def note(other):
        asked.append(other)
        return len(asked) % 3 > 0

    hero = hero_in(scene, z=3, collide=True, filter=note, climbing_mode="constrained")
    total = 0
    for d in wander(count=200):
        bring_back(hero)
        asked.clear()
        hero.move(d, DT)
        assert len(asked) == len(set(map(id, asked)))
        assert far not in asked and hero not in asked
        total += len(asked)
    assert total > 50


def test_a_filter_that_lets_all_pass_changes_no_bit():
    a, b = hero_in(cluttered(), z=3), hero_in(cluttered(), z=3, filter=lambda other: True)
    for d in wander(count=300):
        for h in (a, b):
            bring_back(h)
            h.move(d, DT)
        assert a.save() == b.save()
        assert [h[3:] for h in told_of_hits(a)] == [h[3:] for h in told_of_hits(b)]


@pytest.mark.parametrize("seed", range(4))
def test_left_out_is_the_same_as_not_there(seed):
    # In all passes, recovery and riding alike.
    rng = np.random.default_rng(seed)
    full, part = cluttered(seed), cluttered(seed)
    out = {a.id for a in [*full.actors, *full.obstacles] if a.id > 0 and rng.random() < 0.5}
    for i in out:
        part.remove(part.actor(i))
    a = hero_in(full, z=3, filter=lambda other: other.id not in out, climbing_mode="constrained", step_offset=0.3)
    b = hero_in(part, z=3, climbing_mode="constrained", step_offset=0.3)
    for d in wander(seed, 250):
        for h in (a, b):
            bring_back(h)
            h.move(d, DT)
        assert a.save() == b.save()
        for reach in (0.05, 2.0):
            p, q = a.probe_ground(reach), b.probe_ground(reach)
            assert (p and (p.point, p.normal, (p.actor or p.obstacle).id)) == (
                q and (q.point, q.normal, (q.actor or q.obstacle).id)
            )
        assert a.can_resize(1.8) == b.can_resize(1.8)


def test_the_filter_holds_in_every_pass_and_query():
    scene = world(
        (Box((5, 5, 0.5)), (0, 0, -0.5)),  # floor
        (Box((5, 5, 0.5)), (0, 0, 2 * HALF + 0.3 + 0.5)),  # ceiling
        (Box((0.5, 5, 5)), (1.5, 0, 0)),  # wall
    )
    floor, ceiling, wall = scene.actors
    hero = hero_in(scene)

    def all_but(one):
        return lambda other: other is not one

    # UP
    assert hero.move((0, 0, 1), DT, filter=all_but(ceiling)) == 0
    hero.teleport((0, 0, REST))
    # SIDE
    assert hero.move((2, 0, -0.01), DT, filter=all_but(wall)) == CollisionFlags.UP | CollisionFlags.DOWN
    hero.teleport((0, 0, REST))
    # DOWN
    assert hero.move((0, 0, -0.2), DT, filter=all_but(floor)) == 0
    # Recovery
    assert hero.move((0, 0, -0.2), DT, filter=all_but(floor)) == 0 and hero.stats.recoveries == 0
    hero.move((0, 0, -0.001), DT)
    assert hero.stats.recoveries > 0
    # SENSOR
    hero.teleport((0.3, 0, REST))
    hero.climbing_mode = "constrained"
    told = hero.explain((0.01, 0, -0.01), DT)
    assert any(e.kind == "hit" and e.pass_ is Pass.SENSOR for e in told.events)
    told = hero.explain((0.01, 0, -0.01), DT, filter=all_but(wall))
    assert not any(e.kind == "hit" and e.pass_ is Pass.SENSOR for e in told.events)
    # Queries of the character
    hero.teleport((0, 0, REST))
    hero.filter = all_but(floor)
    assert hero.probe_ground(1) is None and not hero.snap_to_ground(1)
    hero.filter = all_but(ceiling)
    assert hero.can_resize(3)
    hero.filter = None
    assert not hero.can_resize(3) and hero.probe_ground(1).actor is floor


def test_unstick_calls_the_filter():
    scene = world((Box((5, 5, 0.5)), (0, 0, -0.5)))
    hero = hero_in(scene, z=REST - 0.2, filter=lambda other: False)
    assert not hero.unstick() and hero.position[2] == REST - 0.2
    hero.filter = None
    assert hero.unstick() and hero.position[2] > REST


# --- behavior


def test_behavior_runs_once_per_actor_and_move_and_only_in_the_down_pass():
    scene, ground, *_ = narrow()
    asked = []
    hero = hero_in(scene, behavior=lambda other: asked.append(other))
    hero.move((0.9, 0, -0.02), DT)
    # None counts as no behavior.
    assert asked == [ground] and hero.grounded
    lift = scene.add(Box((0.3, 0.3, 0.05)), position=(0, 0, 0.06), body="kinematic")
    hero.teleport((0, 0, REST + 0.3))
    steps(hero, (0, 0, -0.05), 10)
    for k in range(3):
        asked.clear()
        lift.move_to((0, 0, 0.06 + 0.01 * k))
        hero.move((0, 0, -0.01), DT)
        # The move calls behavior when the character rides, and knows the answer when it lands.
        assert asked.count(lift) == 1


# --- masks


def test_mask_and_filter_of_one_call_are_for_that_call():
    scene = Scene()
    wall = scene.add(Box((0.5, 5, 5)), position=(2, 0, 0), layer=2)
    hero = hero_in(scene, step_offset=0, mask=1)
    asked = []
    hero.filter = lambda other: asked.append(other) or True

    def stops(**more):
        hero.teleport((0, 0, REST))
        hero.move((4, 0, 0), DT, **more)
        return hero.position[0] < 2

    assert not stops() and asked == []
    assert stops(mask=2) and asked == [wall]
    assert hero.mask == 1 and not stops()
    assert not stops(mask=2, filter=lambda other: False)
    assert stops(mask=0xFFFFFFFF, filter=lambda other: True)
    # The call's filter replaces the character's.
    hero.filter = lambda other: False
    assert stops(mask=2, filter=lambda other: True) and not stops(mask=2)
    for bad in (-1, 1 << 32):
        with pytest.raises(ValueError, match="mask"):
            hero.move((0, 0, 0), DT, mask=bad)
    for bad in ("x", 1.5):
        with pytest.raises(TypeError, match="mask"):
            hero.move((0, 0, 0), DT, mask=bad)
    with pytest.raises(TypeError, match="filter"):
        hero.move((0, 0, 0), DT, filter=1)


def test_no_cache_is_stale():
    # Layers, masks, filters, flags and poses may change between any two moves. Each move equals
    # that of a character with a cold cache.
    rng = np.random.default_rng(9)
    scene = cluttered()
    hero = hero_in(scene, z=3)
    for k, d in enumerate(wander(9, 250)):
        bring_back(hero)
        actors = [a for a in scene.actors if a.user_data != "floor"]
        one = actors[int(rng.integers(len(actors)))]
        change = k % 9
        if change == 0:
            one.layer = int(rng.integers(16))
        elif change == 1:
            hero.mask = int(rng.integers(16)) | 1
        elif change == 2:
            hero.filter = (lambda i: lambda other: other.id % 5 != i)(int(rng.integers(5)))
        elif change == 3:
            one.move_to((*rng.uniform(-3, 3, 2), rng.uniform(0, 1)))
        elif change == 4:
            hero.filter = None
        elif change == 5:
            one.behavior = int(rng.integers(4))
        elif change == 6:
            scene.remove(one)
            scene.add(Sphere(0.5), position=(*rng.uniform(-3, 3, 2), 0.3))
        elif change == 7:
            hero.step_offset = float(rng.uniform(0, 0.8))
            hero.slope_limit = float(rng.uniform(0, 1))
        elif change == 8:
            hero.radius = float(rng.uniform(0.3, 0.5))
        cold = CharacterController(scene, filter=hero.filter, behavior=hero.behavior)
        cold.restore(hero.save())
        assert hero.move(d, DT) == cold.move(d, DT)
        assert hero.save() == cold.save()
        cold.remove()


def test_parameters_may_be_set_between_any_two_moves():
    hero = hero_in(world(flat()))
    hero.move(GRAVITY, DT)
    for name, value in (
        ("step_offset", 0.1),
        ("contact_offset", 0.05),
        ("slope_limit", 0.5),
        ("climbing_mode", "constrained"),
        ("non_walkable_mode", "force_sliding"),
        ("invisible_wall_height", 1.0),
        ("max_jump_height", 2.0),
        ("prevent_vertical_sliding", True),
        ("overlap_recovery", False),
        ("collide", True),
        ("layer", 4),
        ("mask", 9),
        ("radius", 0.3),
        ("height", 0.5),
    ):
        setattr(hero, name, value)
        now = getattr(hero, name)
        assert getattr(now, "value", now) == value
    # The new mask shows the floor, and the new size applies.
    steps(hero, (0, 0, -0.1), 10)
    assert hero.position[2] == pytest.approx(0.25 + 0.3 + 0.05, abs=1e-9)
    assert hero.slope_limit != LIMIT
