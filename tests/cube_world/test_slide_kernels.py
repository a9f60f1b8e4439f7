"""The primitives of SLIDE 2 to 4, and what RULES 11 corrects in them: each correction one test."""

import math

import numpy as np
import pytest

from pycct.cube_world import controller as sl
from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld

UNIT = ((0, 0, 0), (1, 1, 1))


def up(height):
    return np.array((0.0, height, 0.0))


def distance(p, reach, lo, hi):
    """From the upright segment p .. p + (0, reach, 0) to a box."""
    low = np.array(lo, float) - (0, reach, 0)
    off = np.asarray(p) - np.clip(p, low, hi)
    return math.sqrt(off @ off)


def brute_sweep(p, reach, radius, delta, lo, hi):
    """First fraction at which the distance is the radius, by search; None for none."""
    p, delta = np.asarray(p, float), np.asarray(delta, float)

    def gap(t):
        return distance(p + delta * t, reach, lo, hi) - radius

    # The gap is convex along the motion: find its least value, then where it becomes 0.
    a, b = 0.0, 1.0
    for _ in range(100):
        c, d = a + (b - a) / 3, b - (b - a) / 3
        if gap(c) < gap(d):
            b = d
        else:
            a = c
    least = 0.5 * (a + b)
    if gap(least) > 0.0:
        return None
    a, b = 0.0, least
    for _ in range(60):
        c = 0.5 * (a + b)
        if gap(c) > 0.0:
            a = c
        else:
            b = c
    return b


# ---------------------------------------------------------------- closest points (SLIDE 2.2 to 2.4)

def test_closest_point_on_segment():
    assert sl.closest_point_on_segment((0, 0, 0), (2, 0, 0), (1, 5, 0)) == (1, 0, 0)
    assert sl.closest_point_on_segment((0, 0, 0), (2, 0, 0), (9, 5, 0)) == (2, 0, 0)


def test_closest_point_on_box():
    assert sl.closest_point_on_aabb((3, 0.25, -2), (-1, -1, -1), (1, 1, 1)) == (1, 0.25, -1)
    assert sl.closest_point_on_aabb((0.5, 0.25, -0.5), (-1, -1, -1), (1, 1, 1)) == (0.5, 0.25, -0.5)


def test_a_segment_of_no_length_gives_no_nan():
    # SLIDE 2.2 divides by dot(AB, AB) = 0 for half_height 0.
    assert sl.closest_point_on_segment((1, 2, 3), (1, 2, 3), (9, 9, 9)) == (1, 2, 3)
    on_segment, on_box = sl.closest_points_segment_aabb((3, 0.5, 0.5), (3, 0.5, 0.5), *UNIT)
    assert on_segment == (3, 0.5, 0.5) and on_box == (1, 0.5, 0.5)
    world = CubeWorld()
    world.add((0, 0, 0))
    ball = SweepSlideController(world, (0.5, 3, 0.5), half_height=0)
    for _ in range(60):
        ball.step((0, 0, 0))
    assert ball.grounded and ball.feet[1] == pytest.approx(1.03, abs=1e-6)


def test_segment_box_is_exact_where_alternating_projections_are_not():
    # The four alternating projections of SLIDE 2.4 creep towards the answer here.
    a, b = (1.05, -0.02, -0.03), (1.97, 1.94, 1.55)
    on_segment, on_box = sl.closest_points_segment_aabb(a, b, *UNIT)
    best = min(distance(np.array(a) + (np.array(b) - a) * t, 0, *UNIT) for t in np.linspace(0, 1, 20001))
    assert math.dist(on_segment, on_box) == pytest.approx(best, abs=1e-7)
    seg = np.array([0.5 * (x + y) for x, y in zip(a, b, strict=True)])
    for _ in range(4):
        seg = np.array(sl.closest_point_on_segment(a, b, sl.closest_point_on_aabb(seg, *UNIT)))
    printed = distance(seg, 0, *UNIT)
    assert printed > best + 0.2


# ---------------------------------------------------------------- overlap (SLIDE 2.5)

def test_overlap_pushes_out():
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(500):
        feet, r, h = rng.uniform(-1, 2, 3), rng.uniform(0.05, 0.6), rng.uniform(0, 0.9)
        o = sl.capsule_aabb_overlap(feet, r, h, *UNIT)
        gap = distance(feet + up(r), 2 * h, *UNIT)
        assert o.hit == (gap < r)
        if o.hit:
            seen += 1
            assert math.dist((0, 0, 0), o.normal) == pytest.approx(1)
            out = feet + np.array(o.normal) * (o.depth + 1e-9)
            assert not sl.capsule_aabb_overlap(out, r, h, *UNIT).hit
            if gap > 0:
                assert o.depth == pytest.approx(r - gap)
    assert seen > 100


def test_escape_counts_the_whole_segment():
    # The nearest point of the axis alone would say: 0.1 + r up. But the axis reaches 1.2 m deeper.
    o = sl.capsule_aabb_overlap((0.5, -0.6, 0.5), 0.3, 0.6, *UNIT)
    out = np.array((0.5, -0.6, 0.5)) + np.array(o.normal) * (o.depth + 1e-9)
    assert o.hit and not sl.capsule_aabb_overlap(out, 0.3, 0.6, *UNIT).hit
    assert o.depth == pytest.approx(0.5 + 0.3)


def test_points_of_an_overlap():
    o = sl.capsule_aabb_overlap((1.2, 0.1, 0.5), 0.3, 0.2, *UNIT)
    assert o.hit and o.normal == (1, 0, 0) and o.depth == pytest.approx(0.1)
    assert o.point_on_cap[0] == pytest.approx(0.9) and o.point_on_box[0] == 1
    assert 0.4 <= o.point_on_box[1] <= 0.8


# ---------------------------------------------------------------- slab test (SLIDE 3.5)

def test_slab():
    assert sl.segment_aabb_sweep((-1, 0.5, 0.5), (4, 0, 0), *UNIT) == (0.25, (-1, 0, 0))
    assert sl.segment_aabb_sweep((0.5, 3, 0.5), (0, -4, 0), *UNIT) == (0.5, (0, 1, 0))
    assert sl.segment_aabb_sweep((-1, 0.5, 0.5), (0.9, 0, 0), *UNIT) is None
    assert sl.segment_aabb_sweep((-1, 5, 0.5), (4, 0, 0), *UNIT) is None


def test_slab_without_motion_along_an_axis():
    # SLIDE 3.5 multiplies by 1e8 * sign(0) = 0 there: every box then seems to be entered at t 0.
    assert sl.segment_aabb_sweep((-1, 7, 0.5), (4, 0, 0), *UNIT) is None
    assert sl.segment_aabb_sweep((-1, 1, 0.5), (4, 0, 0), *UNIT) == (0.25, (-1, 0, 0))
    assert sl.segment_aabb_sweep((0.5, 0.5, 0.5), (0, 0, 0), *UNIT) is None
    t, normal = sl.segment_aabb_sweep((-1, 0.5, 0.5), (4, 1e-320, -0.0), *UNIT)
    assert t == 0.25 and normal == (-1, 0, 0)


def test_slab_inside_and_leaving():
    assert sl.segment_aabb_sweep((0.5, 0.5, 0.25), (0, 0, 9), *UNIT) == (0, (0, 0, -1))
    assert sl.segment_aabb_sweep((1, 0.5, 0.5), (1, 0, 0), *UNIT) is None
    assert sl.segment_aabb_sweep((1, 0.5, 0.5), (-1, 0, 0), *UNIT) == (0, (1, 0, 0))


def test_slab_agrees_with_sampling():
    rng = np.random.default_rng(8)
    for _ in range(300):
        p, d = rng.uniform(-2, 3, 3), rng.uniform(-4, 4, 3)
        t = np.linspace(0, 1, 4001)
        inside = ((p + np.outer(t, d) >= 0) & (p + np.outer(t, d) <= 1)).all(axis=1)
        found = sl.segment_aabb_sweep(p, d, *UNIT)
        if inside.any():
            assert found is not None and found[0] == pytest.approx(t[inside.argmax()], abs=3e-4)
        elif found is not None:
            # It may clip a corner between two samples.
            q = p + d * found[0]
            assert (q > -1e-9).all() and (q < 1 + 1e-9).all()


# ---------------------------------------------------------------- sweep (SLIDE 3.4)

def test_sweep_agrees_with_brute_force():
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(700):
        r, h = rng.uniform(0.05, 0.8), rng.choice([0.0, rng.uniform(0, 1)])
        feet = rng.uniform(-3, 4, 3)
        target = rng.uniform(-0.6, 1.6, 3) - (0, h, 0)
        delta = (target - feet) * rng.uniform(0.5, 1.5)
        for axis in range(3):
            if rng.random() < 0.2:
                delta[axis] = 0
        p = feet + up(r)
        if distance(p, 2 * h, *UNIT) < r or not delta.any():
            continue
        got = sl.sweep_capsule_aabb(feet, r, h, delta, *UNIT)
        want = brute_sweep(p, 2 * h, r, delta, *UNIT)
        if want is None:
            # Passing by within rounding may go either way.
            assert got.hit_id == -1 or distance(p + delta * got.t, 2 * h, *UNIT) == pytest.approx(r, abs=1e-9)
            continue
        if got.hit_id == -1:
            # A graze that dips by less than rounding is no hit.
            least = min(distance(p + delta * t, 2 * h, *UNIT) for t in np.linspace(0, 1, 2001))
            assert least > r - 1e-6
            continue
        hits += 1
        assert got.t == pytest.approx(want, abs=1e-7)
        assert distance(p + delta * got.t, 2 * h, *UNIT) == pytest.approx(r, abs=1e-9)
        assert np.dot(got.normal, delta) < 0
        assert math.dist(got.point, np.clip(got.point, *UNIT)) < 1e-9
    assert hits > 230


def test_upright_sweep_is_the_general_one():
    # A cube and the same cube turned by 90 degrees go through different kernels.
    rng = np.random.default_rng(6)
    quarter = (0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
    hits = 0
    for _ in range(600):
        cells = {tuple(int(v) for v in rng.integers(-2, 3, 3)) for _ in range(5)}
        cubes, boxes = CubeWorld(), CubeWorld()
        for c in cells:
            cubes.add(c)
            boxes.add_box(np.array(c) + 0.5, (0.5, 0.5, 0.5), quarter)
        feet = rng.uniform(-4, 5, 3) * (1, 1, 1)
        delta = rng.uniform(-1, 1, 3) * 6
        a = SweepSlideController(cubes, feet, merge_faces=False)
        b = SweepSlideController(boxes, feet, merge_faces=False)
        if a.feet != tuple(feet) or b.feet != tuple(feet):
            continue
        x, y = a.sweep(delta), b.sweep(delta)
        assert (x.hit_id == -1) == (y.hit_id == -1)
        assert x.t == pytest.approx(y.t, abs=1e-9)
        hits += x.hit_id != -1
    assert hits > 60


def test_no_cube_passes_between_the_sphere_centres():
    # SLIDE 3.4 sweeps only P0 and P1: a cube at the height of a tall capsule's middle slips
    # through.
    hit = sl.sweep_capsule_aabb((-3, -2, 0.5), 0.3, 2.2, (6, 0, 0), *UNIT)
    assert hit.hit_id == 0 and hit.t == pytest.approx(2.7 / 6) and hit.normal == (-1, 0, 0)


def test_edges_and_corners_are_round():
    # A box grown by the radius is too big there: this motion passes the corner in free air.
    feet, delta = (-0.21, 0.5, -3.0), (0, 0, 2.79)
    assert distance(np.array(feet) + delta + (0, 0.3, 0), 0.4, *UNIT) > 0.29
    grown = sl.segment_aabb_sweep((-0.21, 0.8, -3), delta, (-0.3, -0.3, -0.3), (1.3, 1.3, 1.3))
    assert grown is not None
    assert sl.sweep_capsule_aabb(feet, 0.29, 0.2, delta, *UNIT).hit_id == -1


def test_going_away_from_a_touch_is_no_hit():
    # Exactly touching the face x = 1 (in binary fractions).
    for delta in ((1, 0, 0), (0, 0, 1), (0, 1, 0), (1e-9, 0, 3)):
        assert sl.sweep_capsule_aabb((1.25, 0, 0.5), 0.25, 0.25, delta, *UNIT).hit_id == -1
    into = sl.sweep_capsule_aabb((1.25, 0, 0.5), 0.25, 0.25, (-1, 0, 0), *UNIT)
    assert into.hit_id == 0 and into.t == 0 and into.normal == (1, 0, 0)


def test_a_miss_wins_no_tie():
    # SLIDE 4.3 lets a miss (t 1, id -1) win against a hit at t = 1 by its lower id.
    world = CubeWorld()
    world.add((2, 0, 0))
    runner = SweepSlideController(world, (0, 0, 0.5))
    hit = runner.sweep((2 - 0.33 + 1e-13, 0, 0))
    assert hit.hit_id != -1 and hit.t == pytest.approx(1)
    assert runner.sweep((1.5, 0, 0)).hit_id == -1 and runner.sweep((1.5, 0, 0)).t == 1.0


def test_ties_go_to_the_lower_id():
    for order in ((0, 1), (1, 0)):
        world = CubeWorld()
        ids = [None, None]
        for i in order:
            ids[i] = world.add((3, 0, i))
        hit = SweepSlideController(world, (0, 0.5, 1.0)).sweep((5, 0, 0))
        assert hit.hit_id == min(ids)


def test_ties_are_relative_to_the_smallest():
    # Three boxes, each 0.8 of the tie behind the one before: only the first two tie.
    world = CubeWorld()
    step = 10.0
    ids = [world.add_box((3.5 + 0.8e-6 * step * k, y, 0.5), (0.5, 0.1, 0.5)) for k, y in enumerate((0.6, 0.9, 1.2))]
    hit = SweepSlideController(world, (0, 0.1, 0.5)).sweep((step, 0, 0))
    assert hit.hit_id == min(ids[:2])
    assert hit.distance == pytest.approx(3 - 0.33, abs=1e-12)


def test_long_sweeps_end_and_find():
    world = CubeWorld()
    far = world.add((500000, 0, 0))
    world.add((-500000, 3, 500000))
    runner = SweepSlideController(world, (0, 0, 0.5))
    hit = runner.sweep((1e6, 0, 0))
    assert hit.hit_id == far and hit.distance == pytest.approx(500000 - 0.33)
    assert runner.sweep((0, 1e6, 0)).hit_id == -1
    assert runner.sweep((-1e6, 0, 1e-300)).hit_id == -1


# ---------------------------------------------------------------- clipping (SLIDE 4.2, 4.4)

def test_clip_velocity():
    assert sl.clip_velocity((3, -2, 0), (0, 1, 0), 1.0) == (3, 0, 0)
    x, y, z = sl.clip_velocity((3, -2, 0), (0, 1, 0))
    assert (x, z) == (3, 0) and y == pytest.approx(0.002)
    assert sl.clip_velocity((3, 0.0005, -0.0005), (1, 0, 0), 1.0) == (0, 0, 0)


def test_clip_velocity_keeps_the_climb_of_a_gentle_ramp():
    # Dropping the small component would drive the motion into the ramp again, in every bump.
    n = np.array((-0.0006, 1, 0)) / math.hypot(0.0006, 1)
    out = sl.clip_velocity((1, 0, 0), n)
    assert np.dot(out, n) >= -1e-12


def test_flush_cubes_have_no_crease():
    # SLIDE 4.4 normalises cross(n, n) = 0.
    out = sl.clip_velocity_multi_plane((1, -1, 0), [(0, 1, 0), (0, 1, 0)])
    assert all(math.isfinite(v) for v in out) and out[0] == 1
    out = sl.clip_velocity_multi_plane((1, 0, 0), [(-1, 0, 0), (1, 0, 0), (-1, 0, 0)])
    assert all(math.isfinite(v) for v in out)


def test_obtuse_corner_goes_on_along_the_second_wall():
    # Two walls at 135 degrees. SLIDE 4.4 takes the crease (upright: no motion) before it has
    # tried the second plane.
    a = (-1, 0, 0)
    b = (-math.sqrt(0.5), 0, -math.sqrt(0.5))
    v = (2.0, 0, -0.5)
    out = np.array(sl.clip_velocity_multi_plane(v, [b, a], 1.0))
    assert np.dot(out, a) >= -1e-9 and np.dot(out, b) >= -1e-9
    assert np.linalg.norm(out) == pytest.approx(0.5, abs=1e-3)


def test_clipping_starts_from_the_original_velocity():
    # Clipping the result of the first plane by the second loses speed along the crease.
    a, b = (-1, 0, 0), (0, 0, -1)
    assert sl.clip_velocity_multi_plane((1, 3, 1), [a, b]) == pytest.approx((0, 3, 0))


def test_three_planes_stop():
    assert sl.clip_velocity_multi_plane((1, -1, 1), [(-1, 0, 0), (0, 0, -1), (0, 1, 0)]) == (0, 0, 0)


def test_never_into_a_plane():
    rng = np.random.default_rng(9)
    for _ in range(500):
        planes = rng.normal(size=(rng.integers(1, 6), 3))
        planes /= np.linalg.norm(planes, axis=1)[:, None]
        v = rng.normal(size=3) * 5
        out = np.array(sl.clip_velocity_multi_plane(v, planes))
        assert (planes @ out > -1e-6).all() and np.linalg.norm(out) <= np.linalg.norm(v) * 1.01


# ---------------------------------------------------------------- bad input

@pytest.mark.parametrize("call", [
    lambda: sl.closest_point_on_segment((0, 0), (1, 1, 1), (0, 0, 0)),
    lambda: sl.closest_point_on_aabb((0, 0, 0), (1, 1, 1), (0, 0, 0)),
    lambda: sl.segment_aabb_sweep((0, 0, 0), (1, 0, float("nan")), *UNIT),
    lambda: sl.segment_aabb_sweep((0, 0, 0), (1, 0, 1e300), *UNIT),
    lambda: sl.clip_velocity((1, 0, 0), (0, 2, 0)),
    lambda: sl.clip_velocity((1, 0, 0), (0, 0, 0)),
    lambda: sl.clip_velocity((1, 0, 0), (0, 1, 0), 0.5),
    lambda: sl.clip_velocity_multi_plane((1, 0, 0), [(0, 1, 0)] * 17),
    lambda: sl.capsule_aabb_overlap((0, 0, 0), 0, 1, *UNIT),
    lambda: sl.capsule_aabb_overlap((0, 0, 0), 1, -1, *UNIT),
    lambda: sl.sweep_capsule_aabb((0, 0, 0), float("inf"), 1, (1, 0, 0), *UNIT),
])
def test_primitives_refuse_nonsense(call):
    with pytest.raises(ValueError):
        call()
