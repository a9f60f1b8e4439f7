"""The toolbox: formulas against their definitions, corrected mistakes, one and many."""

import math
from fractions import Fraction

import numpy as np
import pytest
import worlds

from pycct import Region, toolbox
from pycct.kernels import BoxAt, CapsuleAt, PlaneAt, SphereAt, TriangleAt, sweep

RNG = np.random.default_rng(0)


def test_capsule_from_feet_and_back():
    c = toolbox.capsule_from_feet((1, 2, 3), 0.4, 1.8)
    assert c == CapsuleAt((1, 2, 3.4), (1, 2, 3.4 + (1.8 - 0.8)), 0.4)
    assert toolbox.capsule_feet(c) == pytest.approx((1, 2, 3)) and toolbox.capsule_head(c) == pytest.approx((1, 2, 4.8))
    assert toolbox.capsule_height(c) == pytest.approx(1.0) and toolbox.capsule_total_height(c) == pytest.approx(1.8)
    assert toolbox.capsule_half_height(c) == pytest.approx(0.9)
    assert toolbox.capsule_centre(c) == pytest.approx((1, 2, 3.9))
    assert toolbox.capsule_direction(c) == (0, 0, 1) and toolbox.capsule_axis(c) == pytest.approx((0, 0, 1))
    assert toolbox.capsule_bounds(c) == (pytest.approx((0.6, 1.6, 3)), pytest.approx((1.4, 2.4, 4.8)))
    # Too low for its radius: a sphere, not a capsule inside out.
    ball = toolbox.capsule_from_feet((0, 0, 0), 0.5, 0.3)
    assert ball.p0 == ball.p1 == (0, 0, 0.5) and toolbox.capsule_direction(ball) == (0, 0, 0)
    side = toolbox.capsule_from_feet((0, 0, 0), 0.5, 2, up=(0, 3, 0))
    assert side.p1 == (0, 1.5, 0) and toolbox.capsule_feet(side, (0, 1, 0)) == (0, 0, 0)
    about = toolbox.capsule_from_centre((0, 0, 0), 0.5, 2)
    assert about.p0 == (0, 0, -1) and about.p1 == (0, 0, 1)


def test_capsules_many_at_once():
    feet, r, h = RNG.normal(size=(7, 3)), RNG.uniform(0.1, 1, 7), RNG.uniform(0, 4, 7)
    many = toolbox.capsule_from_feet(feet, r, h)
    for i in range(7):
        one = toolbox.capsule_from_feet(feet[i], r[i], h[i])
        assert one.p0 == tuple(many.p0[i]) and one.p1 == tuple(many.p1[i])
        for f in (toolbox.capsule_bounds, toolbox.capsule_feet, toolbox.capsule_total_height,
                  toolbox.capsule_direction):
            whole, part = f(many), f(one)
            if f is toolbox.capsule_bounds:
                assert (tuple(whole[0][i]), tuple(whole[1][i])) == part
            else:
                assert np.array_equal(np.asarray(whole[i]), np.asarray(part))


def test_swept_bounds_hold_the_motion_and_the_inflation():
    c = CapsuleAt((0, 0, 0), (0, 0, 1), 0.5)
    lo, hi = toolbox.swept_bounds(c, (0, 2, 0), 3)
    assert lo == pytest.approx((-0.505, -0.505, -0.505)) and hi == pytest.approx((0.505, 3.505, 1.505))
    lo, hi = toolbox.swept_bounds(CapsuleAt((0, 0, 0), (0, 0, 1), 0.01), (0, 1, 0), 0)
    assert lo == pytest.approx((-0.011, -0.011, -0.011))
    lo, hi = toolbox.swept_bounds(c, (0, 1, 0), 3, inflation=0)
    assert hi == (0.5, 3.5, 1.5)


def test_vertical_window_grows_both_ways():
    c = CapsuleAt((0, 0, 0.5), (0, 0, 1.5), 0.5)
    assert toolbox.vertical_window(c, (1, 0, 0), 9) == pytest.approx((-0.05, 2.05))
    assert toolbox.vertical_window(c, (0, 0, 1), 3) == pytest.approx((-0.05, 5.05))
    # SWEEP 3.3 takes only the step off: a floor 5 m below a fast fall would be missed.
    lo, hi = toolbox.vertical_window(c, (0, 0, -1), 6)
    assert lo <= -5 and lo == pytest.approx(-6.55) and hi == pytest.approx(2.05)
    assert toolbox.vertical_window(c, (0, 0, -1), 1, step_down=0.2, epsilon=0)[0] == pytest.approx(-1.2)
    floor = [[[0, 0, -5], [1, 0, -5], [0, 1, -5]], [[0, 0, -9], [1, 0, -9], [0, 1, -7]]]
    assert toolbox.filter_by_window(floor, (lo, hi)).tolist() == [True, False]
    y_up = CapsuleAt((0, 0.5, 0), (0, 1.5, 0), 0.5)
    assert toolbox.vertical_window(y_up, (0, -1, 0), 6, up=(0, 1, 0))[0] == pytest.approx(-6.55)


def test_regions_both_ways():
    c = CapsuleAt((0, 0, 0), (0, 0, 10), 1)
    ends = {-1.0: Region.BOTTOM, 0.5: Region.BOTTOM, 5.0: Region.SIDE, 9.5: Region.TOP, 11.0: Region.TOP}
    for z, region in ends.items():
        assert toolbox.classify_region(c, (1, 0, z)) is region
    points = np.array([[1, 0, z] for z in ends])
    assert toolbox.classify_region(c, points).tolist() == list(ends.values())
    assert toolbox.classify_region(CapsuleAt((0, 0, 0), (0, 0, 0), 1), (1, 0, 0)) is Region.SPHERE
    # A stout capsule never has a side by this rule; the parameter tells it all the same.
    stout = CapsuleAt((0, 0, 0), (0, 0, 1), 0.6)
    assert toolbox.classify_region(stout, (0.6, 0, 0.5)) is not Region.SIDE
    assert toolbox.classify_parameter(toolbox.axis_parameter(stout, (0.6, 0, 0.5))) is Region.SIDE
    assert [toolbox.classify_parameter(t) for t in (-1, 0.1, 0.5, 0.9, 2)] == [
        Region.BOTTOM, Region.BOTTOM, Region.SIDE, Region.TOP, Region.TOP]
    assert toolbox.classify_parameter([0.2, 0.95], bottom=0.3).tolist() == [Region.BOTTOM, Region.TOP]
    with pytest.raises(ValueError, match="bottom"):
        toolbox.classify_parameter(0.5, bottom=0.9, top=0.1)


def test_normals_are_turned_as_each_rule_says():
    assert toolbox.orient_for_sweep((0, 0, 1), (0, 0, 2)) == (0, 0, -1)
    assert toolbox.orient_for_sweep((0, 0, 1), (1, 0, 0)) == (0, 0, 1)
    assert toolbox.orient_for_ground((0.6, 0, -0.8)) == (-0.6, 0, 0.8)
    # A wall that leans over stays that way.
    assert toolbox.orient_for_wall((-0.6, 0, -0.8), (1, 0, 0)) == (-0.6, 0, -0.8)
    # Near the end of a long axis the centre lies behind the wall that the end is in front of.
    c = CapsuleAt((0, 0, 0), (10, 0, 0), 0.5)
    assert np.dot((-1, 0, 0.01), np.subtract((5, 0, 0), (0.2, 0, -0.3))) < 0
    assert toolbox.orient_for_overlap((-0.6, 0, 0.8), c, (0.2, 0, -0.3)) == (-0.6, 0, 0.8)
    assert toolbox.orient_for_overlap((0, 0, -1), c, (3, 0, -0.3)) == (0, 0, 1)
    assert toolbox.orient_for_overlap((0, 0, -1), c, (3, 0, 0)) == (0, 0, -1)
    many = toolbox.orient_for_sweep([[0, 0, 1], [0, 0, -1]], (0, 0, 1))
    assert many.tolist() == [[0, 0, -1], [0, 0, -1]]


@pytest.mark.parametrize("target", [
    TriangleAt((2, -3, -3), (2, 3, -3), (2, 0, 4)),
    SphereAt((2.5, 0.2, 0.3), 0.7),
    CapsuleAt((2.5, -1, 0.2), (2.5, 1, 0.9), 0.4),
    BoxAt((0.5, 0.4, 0.3), (2.5, 0, 0.2), tuple(worlds.unit(np.random.default_rng(1)))),
    PlaneAt((-1, 0, 0), -2),
])
def test_contact_point_lies_on_target_and_capsule(target):
    c, motion = CapsuleAt((0, 0, 0), (0.2, 0.1, 0.8), 0.3), (4, 0.2, 0.1)
    if isinstance(target, TriangleAt):
        target = TriangleAt(target.a, target.c, target.b)
    hit = sweep(c, motion, target)
    point = toolbox.sweep_contact_point(c, motion, hit.time, target)
    assert point == pytest.approx(hit.point, abs=1e-9)
    moved = [np.add(p, np.multiply(motion, hit.time)) for p in (c.p0, c.p1)]
    gap = math.dist(toolbox.closest_on_segment(point, *moved), point)
    assert gap == pytest.approx(c.radius, abs=1e-9)


def test_depths():
    assert toolbox.penetration_depth(0.5, (0, 0, 0), (0, 0, -0.2)) == pytest.approx(0.3)
    assert toolbox.penetration_depth(0.5, (0, 0, 0), (0, 0, -2)) == 0
    assert toolbox.overlap_contact_point((1, 2, 3)) == (1, 2, 3)
    # SWEEP's one factor says 0.2 * 3 for every direction, and -0.4 when mirrored.
    assert toolbox.scale_depth(0.2, (0, 0, 1), (3, 3, -2)) == pytest.approx(0.4)
    assert toolbox.scale_depth(0.2, (1, 0, 0), (3, 3, -2)) == pytest.approx(0.6)
    assert toolbox.scale_depth(0.2, (0, 1, 0), 2) == pytest.approx(0.4)


def test_frames_against_the_matrix():
    for scale in ((1, 1, 1), (2, 2, 2), (0.5, 3, 1.2), (-0.5, 3, 1.2), (-1, -2, -3)):
        frame = toolbox.Transform(RNG.normal(size=3), worlds.unit(RNG), scale)
        m = frame.matrix()
        a, n = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
        n /= np.linalg.norm(n, axis=1)[:, None]
        assert np.allclose(frame.point_to_world(a), a @ m[:3, :3].T + m[:3, 3])
        assert np.allclose(frame.point_to_local(frame.point_to_world(a)), a)
        assert np.allclose(frame.direction_to_world(a), a @ m[:3, :3].T)
        assert np.allclose(frame.direction_to_local(frame.direction_to_world(a)), a)
        want = n @ np.linalg.inv(m[:3, :3])
        want /= np.linalg.norm(want, axis=1)[:, None]
        assert np.allclose(frame.normal_to_world(n), want)
        assert np.allclose(frame.normal_to_local(frame.normal_to_world(n)), n)
        # A normal stays normal to what it was normal to; a direction does not.
        across = np.cross(n, a)
        assert np.allclose((frame.normal_to_world(n) * frame.direction_to_world(across)).sum(1), 0)
        assert frame.point_to_world(a[0]) == tuple(np.asarray(frame.point_to_world(a))[0])
    uneven = toolbox.Transform(scale=(1, 1, 4))
    assert not np.allclose(uneven.normal_to_world((0.6, 0, 0.8)),
                           np.array(uneven.direction_to_world((0.6, 0, 0.8))) / math.hypot(0.6, 3.2))
    for bad, name in (((1, 0, 1), "scale"), ((1, np.nan, 1), "scale")):
        with pytest.raises(ValueError, match=name):
            toolbox.Transform(scale=bad).matrix()
    with pytest.raises(ValueError, match="rotation"):
        toolbox.Transform(rotation=(0, 0, 0, 2)).matrix()


def test_wow_axes():
    assert toolbox.wow_to_world((1, 0, 0)) == (0, 1, 0)     # north
    assert toolbox.wow_to_world((0, 1, 0)) == (-1, 0, 0)    # west
    v = RNG.normal(size=(6, 3))
    assert np.array_equal(toolbox.world_to_wow(toolbox.wow_to_world(v)), v)


def test_triangles():
    a, b, c = (0, 0, 0), (2, 0, 0), (0, 2, 0)
    assert toolbox.triangle_normal(a, b, c) == (0, 0, 1)
    assert toolbox.triangle_normal(a, b, (1, 0, 0)) == (0, 0, 0)
    assert toolbox.triangle_normal(a, b, (1, 0, 0), degenerate=(0, 0, 1)) == (0, 0, 1)
    assert toolbox.point_in_triangle((0.5, 0.5, 3), a, b, c) is True
    assert toolbox.point_in_triangle((1, 1, 0), a, b, c) is True
    assert toolbox.point_in_triangle((1.1, 1, 0), a, b, c) is False
    # SWEEP A.1 divides by zero here.
    assert toolbox.point_in_triangle((0.5, 0, 0), a, b, (1, 0, 0)) is False
    assert toolbox.plane_distance((5, 5, -3), a, b, c) == -3
    p = RNG.normal(size=(50, 3))
    inside = toolbox.point_in_triangle(p, a, b, c)
    assert inside.tolist() == [bool(x >= 0 and y >= 0 and x + y <= 2) for x, y, _ in p]
    # Ten micrometres: SWEEP A.2 and A.3 compare squares with a length.
    assert toolbox.closest_on_segment((3e-6, 1, 0), a, (1e-5, 0, 0)) == (3e-6, 0, 0)
    assert toolbox.closest_on_segment((3, 1, 0), a, a) == a
    assert toolbox.triangle_normal(a, (1e-5, 0, 0), (0, 1e-5, 0)) == (0, 0, 1)


@pytest.mark.parametrize("aspect", [1e-2, 1e-5, 1e-9, 1e-11])
def test_normal_of_a_sliver_has_all_its_digits(aspect):
    rng = np.random.default_rng(5)
    a, e, w = rng.normal(size=(3, 200, 3))
    w = np.cross(e, w / np.linalg.norm(np.cross(e, w), axis=1)[:, None])
    b = a + e
    c = a + e * rng.uniform(0, 1, (200, 1)) + w * aspect
    found = np.asarray(toolbox.triangle_normal(a, b, c))
    for i in range(200):
        x, y, z = ([Fraction(float(v)) for v in p[i]] for p in (a, b, c))
        u, v = [q - p for p, q in zip(x, y, strict=True)], [q - p for p, q in zip(x, z, strict=True)]
        n = np.array([float(u[1] * v[2] - u[2] * v[1]), float(u[2] * v[0] - u[0] * v[2]),
                      float(u[0] * v[1] - u[1] * v[0])])
        assert abs(found[i] - n / np.linalg.norm(n)).max() < 1e-13


def test_tolerances():
    assert toolbox.same_distance(1, 1 + 9e-7) is True and toolbox.same_distance(1, 1 + 2e-6) is False
    assert toolbox.is_normal((0, 0, 1 + 9e-6)) is True and toolbox.is_normal((0, 0, 1.1)) is False
    assert toolbox.is_parallel((0, 0, 1), (0, 0.01, -5)) is True and toolbox.is_parallel((0, 0, 1), (0, 1, 1)) is False
    assert toolbox.is_perpendicular((0, 0, 1), (1, 0, 5e-4)) is True
    assert toolbox.is_perpendicular((0, 0, 1), (1, 0, 0.1)) is False
    assert toolbox.is_facing((0, 0, 1), (0, 1, -1)) is True and toolbox.is_facing((0, 0, 1), (0, 1, -5e-5)) is False


@pytest.mark.parametrize(("call", "error", "name"), [
    (lambda: toolbox.capsule_from_feet((0, 0), 1, 1), ValueError, "feet"),
    (lambda: toolbox.capsule_from_feet((0, 0, 0), 0, 1), ValueError, "radius"),
    (lambda: toolbox.capsule_from_feet((0, 0, 0), 1, -1), ValueError, "total_height"),
    (lambda: toolbox.capsule_from_feet((0, 0, 0), 1, 1, (0, 0, 0)), ValueError, "up"),
    (lambda: toolbox.capsule_from_feet((0, 0, np.inf), 1, 1), ValueError, "feet"),
    (lambda: toolbox.capsule_from_feet("abc", 1, 1), TypeError, "feet"),
    (lambda: toolbox.capsule_height((0, 0, 1)), ValueError, "p0"),
    (lambda: toolbox.capsule_height(3), TypeError, "capsule"),
    (lambda: toolbox.swept_bounds(CapsuleAt((0, 0, 0), (0, 0, 1), 1), (0, 0, 0), 1), ValueError, "direction"),
    (lambda: toolbox.filter_by_window([[0, 0, 0]], (0, 1)), ValueError, "triangles"),
    (lambda: toolbox.orient_for_sweep([[0, 0, 1]] * 2, (0, 0)), ValueError, "direction"),
    (lambda: toolbox.sweep_contact_point(CapsuleAt((0, 0, 0), (0, 0, 1), 1), (1, 0, 0), 0, "wall"), TypeError,
     "target"),
    (lambda: toolbox.point_in_triangle([[0, 0, 0]] * 2, [[0, 0, 0]] * 3, (1, 0, 0), (0, 1, 0)), ValueError, "rows"),
])
def test_bad_input(call, error, name):
    with pytest.raises(error, match=name):
        call()
