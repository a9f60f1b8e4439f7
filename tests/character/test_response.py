"""The motion after a collision: MOVE 8.2 to 8.4, 14.2, 14.3."""

import math

import numpy as np
import pytest
from small_worlds import DT, OFFSET, RADIUS, hero_in, quad, world

from pycct.reference import response as reference
from pycct.reference.values import as_unit
from pycct.response import respond, slide, slide_crease


def unit(rng):
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def test_respond_slides_with_the_reflected_directions_part_along_the_surface():
    # MOVE 8.2: bump 0, friction 1.
    rng = np.random.default_rng(1)
    for _ in range(200):
        n, d, position = unit(rng), unit(rng), rng.normal(size=3)
        left = rng.uniform(0.1, 3)
        got = np.subtract(respond(position + d * left, position, d, n), position)
        assert got == pytest.approx(left * (d - n * np.dot(d, n)), abs=1e-12)
        assert np.dot(got, n) == pytest.approx(0, abs=1e-12)


def test_bump_and_friction_split_the_motion():
    n, d = np.array((0.0, 0.0, 1.0)), np.array((0.6, 0.0, -0.8))
    target = 5 * d
    assert respond(target, (0, 0, 0), d, n, bump=1.0, friction=0.0) == pytest.approx((0, 0, 4))
    assert respond(target, (0, 0, 0), d, n, bump=1.0) == pytest.approx((3, 0, 4))
    assert respond(target, (0, 0, 0), d, n, bump=0.5, friction=0.5) == pytest.approx((1.5, 0, 2))
    assert respond(target, (0, 0, 0), d, n, bump=0.0, friction=0.0) == (0, 0, 0)


def test_a_normalized_response_keeps_the_whole_length():
    # MOVE 15.6.
    d = np.array((0.6, 0.0, -0.8))
    assert respond(5 * d, (0, 0, 0), d, (0, 0, 1), normalize=True) == pytest.approx((5, 0, 0))
    assert respond(5 * d, (0, 0, 0), d, (0, 0, 1), 1.0, 1.0, True) == pytest.approx((5, 0, 5))
    # A head-on hit leaves no component along the surface that could get a length.
    assert respond((0, 0, -5), (0, 0, 0), (0, 0, -1), (0, 0, 1), normalize=True) == (0, 0, 0)


def test_a_move_responds_as_respond_does():
    # The second hit's direction is the direction that respond() returns after the first.
    a = math.radians(70)
    x, y = 9 * math.sin(a), 3 - 9 * math.cos(a)
    walls = (
        quad((1, 9, -9), (1, -9, -9), (1, -9, 9), (1, 9, 9)),
        quad((-9, 3, -9), (x, y, -9), (x, y, 9), (-9, 3, 9)),
    )
    hero = hero_in(world(*walls), step_offset=0)
    d = np.array((4.0, 5.0, 0.0))
    hero.move(d, DT)
    first, second, *_ = hero.hits
    stopped = np.array((0, 0, hero.position[2])) + np.array(first.direction) * (first.distance - OFFSET)
    target = respond(np.array((0, 0, hero.position[2])) + d, stopped, first.direction, first.normal)
    way = np.subtract(target, stopped)
    assert second.direction == pytest.approx(tuple(way / np.linalg.norm(way)), abs=1e-12)
    assert second.length == pytest.approx(np.linalg.norm(way)) and RADIUS > 0


def test_slide_removes_the_component_into_the_plane():
    rng = np.random.default_rng(2)
    for _ in range(100):
        v, n = rng.normal(size=3), unit(rng)
        got = slide(v, 3 * n)
        assert np.dot(got, n) == pytest.approx(0, abs=1e-12)
        assert np.cross(np.subtract(v, got), n) == pytest.approx((0, 0, 0), abs=1e-12)


def test_slide_crease_follows_the_line_of_two_planes():
    rng = np.random.default_rng(3)
    for _ in range(100):
        v, a, b = rng.normal(size=3), unit(rng), unit(rng)
        got = np.array(slide_crease(v, a, b))
        assert np.dot(got, a) == pytest.approx(0, abs=1e-12) and np.dot(got, b) == pytest.approx(0, abs=1e-12)
        # MOVE 8.4.3: the result points along the motion for either order of the planes.
        assert np.dot(got, v) >= 0
        assert got == pytest.approx(slide_crease(v, b, a), abs=1e-12)
        line = np.cross(a, b)
        assert np.linalg.norm(got) == pytest.approx(abs(np.dot(v, line)) / np.linalg.norm(line))


@pytest.mark.parametrize("second", [(0, 0, 1), (0, 0, -1), (1e-7, 0, 1), (0, 1e-6, -1)])
def test_parallel_planes_block_the_motion(second):
    # MOVE 14.3.
    assert slide_crease((1, 2, 3), (0, 0, 1), second) == (0, 0, 0)
    assert slide_crease((1, 2, 3), (0, 0, 1), (1e-3, 0, 1)) != (0, 0, 0)


def test_a_normal_of_no_length_leads_straight_on():
    # RULES 1: without its vertical component, a floor's normal is zero (MOVE 14.2 would use up).
    target = reference.collision_response((3, 0, -4), (0, 0, 0), (0.6, 0, -0.8), (0.0, 0.0, 0.0), 0.0, 1.0, False)
    assert target == pytest.approx((3, 0, -4))


def test_the_reference_gives_the_same_bits():
    rng = np.random.default_rng(4)
    for k in range(300):
        t, p, v = (tuple(map(float, rng.normal(size=3))) for _ in range(3))
        d, n, m = (tuple(map(float, unit(rng))) for _ in range(3))
        more = (float(k % 3), float(k % 2), k % 5 == 0)
        got = respond(t, p, d, n, *more), slide(v, n), slide_crease(v, n, m)
        d, n, m = (as_unit(u, "u") for u in (d, n, m))
        assert got == (
            reference.collision_response(t, p, d, n, *more),
            reference.slide_response(v, n),
            reference.crease_response(v, n, m),
        )


@pytest.mark.parametrize("bad", [(0, 0, 0), (math.nan, 0, 0), (1, 2), "abc", None, 3])
def test_bad_input_is_named(bad):
    for call, name in (
        (lambda: slide((1, 0, 0), bad), "normal"),
        (lambda: slide_crease((1, 0, 0), bad, (0, 0, 1)), "first"),
        (lambda: slide_crease((1, 0, 0), (0, 0, 1), bad), "second"),
        (lambda: respond((1, 0, 0), (0, 0, 0), bad, (0, 0, 1)), "direction"),
        (lambda: respond((1, 0, 0), (0, 0, 0), (1, 0, 0), bad), "normal"),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            call()
    if bad != (0, 0, 0):
        with pytest.raises((ValueError, TypeError), match="motion"):
            slide(bad, (0, 0, 1))
        with pytest.raises((ValueError, TypeError), match="target"):
            respond(bad, (0, 0, 0), (1, 0, 0), (0, 0, 1))
    for name in ("bump", "friction"):
        with pytest.raises((ValueError, TypeError), match=name):
            respond((1, 0, 0), (0, 0, 0), (1, 0, 0), (0, 0, 1), **{name: -1})
