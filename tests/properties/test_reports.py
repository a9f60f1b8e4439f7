"""Faults that users of other controllers reported, as scenes with what is right.

Each report (R01, R02, ...) runs with ``robust``, and with ``physx`` where PhysX passes; static
scenes with their triangles in other orders, with boxes as real boxes, and in other frames.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import reports
from reports import (
    C0,
    HAS_SNAP,
    LABS,
    RIDES,
    about,
    box,
    floor,
    gap,
    grid,
    ledge,
    long_floor,
    mesh,
    quad,
    ramp,
    rest,
    stairs,
)

import pycct
from pycct import Box, Capsule, CollisionFlags, Mesh, Rules, Scene, Triangle

UP = int(CollisionFlags.UP)
CO = C0["co"]
# Labs of a run without the slow tests.
FAST = ("robust-given", "robust-reversed", "robust-rotated", "robust-boxes", "robust-askew-boxes", "physx-given")


def report(physx=True):
    """Run for each lab; physx False: PhysX fails there."""
    labs = [x for x in LABS if physx or x.rules == "robust"]
    return pytest.mark.parametrize(
        "lab", [pytest.param(x, id=x.name, marks=() if x.name in FAST else pytest.mark.slow) for x in labs]
    )


# --- A. Internal edges, seams, ghost contacts

FLAT = {
    "box": lambda: box((-15, -15, -1), (15, 15, 0)),
    "two triangles": lambda: floor(0, 15),
    "grid": lambda: grid((-15, -15), (15, 15), (30, 30)),
}


@report()
@pytest.mark.parametrize("ground", FLAT)
@pytest.mark.parametrize("down", [0.0333, 3.0])
def test_r01_a_flat_floor_never_kicks(lab, ground, down):
    scene = lab.scene(FLAT[ground]())
    tall = {"r": 0.35, "h": 2.2, "co": 0.01, "so": 0.0}
    z = rest(lab, scene, (0, -14, 0.01), **tall)
    assert -0.001 <= z <= 0.02
    w = lab.walker(scene, (0, -14, 0.01), **tall)
    got = w.walk([(0, 0.3 if k < 90 else -0.3, -down) for k in range(180)], 1 / 30)
    assert np.abs(got.steps[:, 0]).max() < 0.001
    assert np.abs(np.abs(got.steps[:, 1]) - 0.3).max() < 0.001
    assert np.abs(got.feet[:, 2] - z).max() < 0.002


@report()
@pytest.mark.parametrize("co,slant", [(0.01, 45), (0.01, 80), (0.05, 20)])
def test_r02_a_wall_of_flush_pieces_is_one_wall(lab, co, slant):
    scene = lab.scene(floor(), *(box((3, i, -1), (4, i + 1, 3)) for i in range(-6, 14)))
    a = math.radians(slant)
    d = 0.05 * math.sin(a), 0.05 * math.cos(a)
    frames = int(14.9 / max(d[1], 0.045))
    got = lab.walker(scene, (2, -5, co), co=co).walk([(*d, -0.02)] * frames)
    assert got.end[1] + 5 >= 0.98 * d[1] * frames
    assert 2.65 < got.end[0] and got.feet[:, 0].max() <= 2.7 + 0.001


def spoiled(part, flip, degenerate=True):
    """With zero-area triangles and slivers in its planes, and every second triangle turned over."""
    v, t = part.vertices, part.triangles.copy()
    more, n = [], len(v)
    if degenerate:
        for i in range(50):
            a, b, c = v[t[i % len(t)]]
            edge = (b - a) / np.linalg.norm(b - a)
            across = np.cross(np.cross(edge, c - a), edge)
            sliver = a + 1e-6 * across / np.linalg.norm(across)
            v = np.concatenate([v, [a, a, b, a, (a + b) / 2, b, a, a + edge, sliver]])
            more += [(n, n + 1, n + 2), (n + 3, n + 4, n + 5), (n + 6, n + 7, n + 8)]
            n += 9
    if flip:
        t[::2] = t[::2, ::-1]
    t = np.concatenate([t, np.array(more, int).reshape(-1, 3)])
    return mesh(v, t, two_sided=flip)


def joined(parts):
    """One mesh of many."""
    v, t, n = [], [], 0
    for p in parts:
        v.append(p.vertices)
        t.append(p.triangles + n)
        n += len(p.vertices)
    return mesh(np.concatenate(v), np.concatenate(t))


BAD_GROUNDS = {
    "grid": lambda: (grid((-15, -15), (15, 15), (30, 30)), (0, -4, CO), (0.03, 0.1, -0.05)),
    "stairs": lambda: (joined([floor(), *stairs(10)]), (0, 0, CO), (0.04, 0, -0.05)),
}


@report()
@pytest.mark.parametrize("ground", BAD_GROUNDS)
@pytest.mark.parametrize("flip", [False, True])
def test_r04_bad_triangles_change_nothing(lab, ground, flip):
    clean, foot, d = BAD_GROUNDS[ground]()
    paths = []
    for part in (clean, spoiled(clean, flip)):
        paths.append(lab.walker(lab.scene(part), foot).walk([d] * 170).feet)
    assert np.isfinite(paths[1]).all()
    assert np.abs(paths[1] - paths[0]).max() < 0.001
    assert np.linalg.norm(paths[0][-1] - foot) > 4


@report(physx=False)
@pytest.mark.parametrize("frames", [1, 5, 9, 12, 15])
@pytest.mark.parametrize("heading", [0, 30])
def test_r04_a_one_sided_wall_lets_back_who_came_from_behind(lab, frames, heading):
    # Seen from +x only; the character comes from -x and is never all the way through.
    wall = quad((0.5, -9, -1), (0.5, 9, -1), (0.5, 9, 4), (0.5, -9, 4))
    w = lab.walker(lab.scene(floor(), wall), (0, 0, CO))
    a = math.radians(heading)
    d = np.array([0.05 * math.cos(a), 0.05 * math.sin(a), -0.02])
    there = w.walk([d] * frames)
    assert abs(there.end[0] - 0.05 * math.cos(a) * frames) < 1e-6
    back = w.walk([(-d[0], -d[1], -0.02)] * frames)
    assert np.abs(back.end[:2]).max() < 1e-6
    # From its front it is a wall.
    front = lab.walker(lab.scene(floor(), wall), (2, 0, CO)).walk([(-0.05, 0, -0.02)] * 60)
    assert 0.79 < front.end[0] < 0.83


@report(physx=False)
@pytest.mark.parametrize("ground", BAD_GROUNDS)
def test_r04_flipped_faces_do_not_trap(lab, ground):
    clean, foot, d = BAD_GROUNDS[ground]()
    part = spoiled(clean, True)
    part = mesh(part.vertices, part.triangles)  # one-sided
    scene = lab.scene(part)
    for frames in range(5, 60, 9):
        w = lab.walker(scene, foot)
        there = w.walk([d] * frames)
        last = there.steps[-1]
        back = w.walk([(-d[0], -d[1], d[2])]).steps[0]
        if np.linalg.norm(last[:2]) > 0.9 * math.hypot(d[0], d[1]):
            assert -back[:2] @ np.array(d[:2]) >= 0.5 * (d[0] ** 2 + d[1] ** 2), frames
        assert np.isfinite(there.feet).all()


@report()
@pytest.mark.parametrize("co", [0.0, 0.001])
@pytest.mark.parametrize("r", [0.3, 0.37])
def test_r05_exact_touch_freezes_nobody(lab, co, r):
    scene = lab.scene(box((1, -3, 0), (4, 3, 3)))
    tight = {"co": co, "so": 0.0, "r": r}

    def run(foot, d, n):
        return lab.walker(scene, foot, **tight).walk([d] * n)

    side = (1 - r, -1, 0.5)
    assert run(side, (0, 0.05, 0), 20).end[1] >= -0.01
    assert run(side, (-0.05, 0, 0), 20).end[0] <= 1 - r - 0.99
    got = run(side, (0.05, 0.05, 0), 20)
    assert got.end[1] >= -0.01 and got.feet[:, 0].max() <= 1 - r + 0.0005
    corner = (1 - r / math.sqrt(2), -3 - r / math.sqrt(2), 0.5)
    assert run(corner, (0.05, -0.05, 0), 20).end[0] >= corner[0] + 0.91
    assert corner[0] - run(corner, (-0.05, 0, 0), 10).end[0] >= 0.49
    # The corner is solid.
    assert run(corner, (0.05, 0.05, 0), 40).end[0] < 1


# --- B. Walls, corners, crevices


@report()
@pytest.mark.parametrize("hz", [60, 240, 1000])
def test_r07_sliding_speed_along_a_wall(lab, hz):
    scene = lab.scene(floor(0, 60), box((1, -50, -1), (2, 50, 4)))
    for degrees in (0.5, 2, 10, 40, 80):
        a = math.radians(degrees)
        want = 5 * math.cos(a) / hz
        got = lab.walker(scene, (0.68, -2, CO)).walk([(5 * math.sin(a) / hz, want, -9.81 * 5 / hz**2)] * 120, 1 / hz)
        assert np.abs(got.steps[5:, 1] / want - 1).max() <= 0.02, degrees
        assert got.feet[:, 0].max() <= 0.701


@report()
def test_r08_pressing_into_a_wall_does_not_stop_a_fall(lab):
    scene = lab.scene(box((1, -5, -20), (2, 5, 20)))
    got = lab.walker(scene, (0.685, 0, 10)).walk([(0.05, 0, -0.1)] * 80)
    assert abs(got.end[2] - 2.0) <= 0.02
    assert got.end[0] <= 0.7001


@report()
def test_r08_rubbing_a_box_does_not_cut_a_jump(lab):
    scene = lab.scene(floor(), box((1, -5, 0), (5, 5, 1.5)))
    got = lab.walker(scene, (0.68, 0, CO)).walk([(0.05, 0, 0.06 - 0.0027 * k) for k in range(40)])
    assert got.top >= 0.69


@report()
def test_r08_nor_in_a_corner(lab):
    scene = lab.scene(floor(), box((1, -5, 0), (2, 5, 4)), box((-5, 1, 0), (5, 2, 4)))
    rise = np.array([0.07 - 0.0027 * (k % 60) for k in range(240)])
    got = lab.walker(scene, (0.5, 0.5, CO)).walk([(0.05, 0.05, z) for z in rise])
    assert got.top >= 0.95
    assert np.abs(got.steps[:, 2] - rise)[rise > 0].max() <= 0.001


def pit(degrees=60.0, half=1.5):
    z = -half * math.tan(math.radians(degrees))
    c = [(-half, -half, 0), (half, -half, 0), (half, half, 0), (-half, half, 0), (0, 0, z)]
    return mesh(c, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])


@report()
@pytest.mark.parametrize("degrees", [50, 60, 70])
def test_r11_a_pit_of_steep_faces(lab, degrees):
    scene = lab.scene(pit(degrees))
    w = lab.walker(scene, (0, 0, -0.5))
    fall = w.walk([(0, 0, -0.05)] * 120)
    assert np.linalg.norm(fall.steps[-30:], axis=1).max() < 0.001
    bottom = fall.end[2]
    rise = w.walk([(0, 0, 0.05)] * 20)
    assert abs(rise.end[2] - bottom - 1.0) <= 0.02
    w.walk([(0, 0, -0.05)] * 60)
    stir = w.walk([(0.03 * math.cos(k), 0.03 * math.sin(k), -0.05) for k in range(100)])
    assert stir.top <= bottom + 0.02


@report()
def test_r11_a_groove_of_steep_faces(lab):
    t = 1.5 * math.tan(math.radians(60))
    scene = lab.scene(
        quad((0, -6, 0), (1.5, -6, t), (1.5, 6, t), (0, 6, 0)), quad((0, -6, 0), (0, 6, 0), (-1.5, 6, t), (-1.5, -6, t))
    )
    got = lab.walker(scene, (0, -4, 0.6)).walk([(0, 0.05, -0.05)] * 120)
    assert got.end[1] + 4 >= 5.7
    assert got.feet[:, 2].min() > 0


@report()
def test_r12_a_very_dense_mesh_lets_go(lab):
    ball = reports.sphere(0.5, (2.0, 0.0, 1.0), 150, 150)
    scene = lab.scene(floor(), ball)
    w = lab.walker(scene, (1, 0.02, CO))
    got = w.walk([(0.05, 0, 0.08 - 0.00272 * k) for k in range(60)] + [(0, 0, -0.08)] * 40)
    assert got.top > 0.9
    assert got.end[2] < rest(lab, lab.scene(floor()), (0, 0, CO)) + 0.02


# --- C. Steps


@report(physx=False)
@pytest.mark.parametrize("shift", [(0, 0, 0), (1000, 1000, 0), (20000, -20000, 500)])
@pytest.mark.parametrize("e", [0, 1e-7, -1e-7, -1e-3, -0.05, -0.3])
def test_r13_nothing_higher_than_the_step_offset_is_climbed(lab, shift, e):
    lab = replace(lab, shift=tuple(np.add(lab.shift, shift)))
    big = {"r": 0.45, "h": 0.9, "co": 0.05}
    for so, height, heading in (
        (0.45, 0.8, 0.0),
        (0.45, 0.8, 0.02),
        (0.0, 0.2, 0.0),
        (0.0, 0.05, 0.0),
        (0.2, 0.3, 0.01),
    ):
        scene = lab.scene(floor(), ledge(height, e))
        z = rest(lab, scene, (0, 0, 0.05), so=so, **big)
        got = lab.walker(scene, (0, 0, 0.05), so=so, **big).walk([(0.05, heading, -0.05)] * 200)
        if height > 0.05:
            assert got.top <= z + 0.05, (so, height)
            assert got.end[0] < 1
        if height == 0.8:
            assert got.end[0] <= 1 - 0.45 + 0.02


@report(physx=False)
@pytest.mark.parametrize("lean", [0, 3, 15])
def test_r13_nor_are_moving_or_leaning_blocks(lab, lean):
    turn = about((0, 1, 0), -lean)
    corner = reports.brute.rotate(turn, np.array([(-2.0, 0, 1.5)]))[0]
    for so, height in ((0.45, 0.8), (0.0, 0.2)):
        scene = lab.scene(floor())
        lab.add(scene, reports.block((2, 6, 1.5), tuple((1, 0, height) - corner), turn), body="kinematic")
        z = rest(lab, lab.scene(floor()), (0, 0, CO), so=so)
        for v in (0.01, 0.05, 0.2):
            got = lab.walker(scene, (0, 0, CO), so=so).walk([(v, 0.01, -0.05)] * int(3 / v))
            assert got.top <= z + 0.05


@report()
@pytest.mark.parametrize(
    "so,height,passes",
    [(0.3, 0.2, True), (0.3, 0.4, False), (0.3, 0.7, False), (0.5, 0.4, True), (0.5, 0.7, False), (0.0, 0.2, False)],
)
def test_r14_the_round_bottom_rolls_over_no_high_step(lab, so, height, passes):
    scene = lab.scene(floor(), box((1, -5, 0), (6, 5, height)))
    wide = {"r": 0.6, "h": 0.6, "so": so}
    z = rest(lab, scene, (-2, 0, CO), **wide)
    got = lab.walker(scene, (-0.5, 0, CO), **wide).walk([(0.05, 0, -0.05)] * 120)
    if passes:
        assert got.end[0] > 4 and abs(got.end[2] - height - z) < 0.01
    else:
        assert got.top < z + 0.02 and got.end[0] < 1


def climbs(lab, d, frames, dt, extra=(), start=(0, 0, CO), **more):
    """Walk up ten steps; the walk."""
    scene = lab.scene(floor(), *stairs(10), *extra)
    z = rest(lab, lab.scene(floor()), (0, 0, CO), **more)
    got = lab.walker(scene, start, **more).walk([d] * frames, dt)
    c = {**C0, **more}
    reach = c["r"] + c["co"] + abs(d[0])
    for foot in got.feet:
        treads = min(10, max(0, math.floor((foot[0] + reach - 1) / 0.4) + 1))
        assert foot[2] <= 0.2 * treads + 0.06
    assert abs(got.end[2] - 2.0 - z) <= 0.01
    return got


@report()
def test_r16_stairs_at_any_frame_rate(lab):
    times = []
    for hz in (30, 60, 200, 1000):
        got = climbs(lab, (2 / hz, 0, -2 / hz), int(3.5 * hz), 1 / hz)
        times.append(np.argmax(got.feet[:, 2] > 1.99) / hz)
    assert max(times) <= 1.05 * min(times)


@report()
@pytest.mark.parametrize("r,so", [(0.1, 0.3), (0.1, 0.8), (0.5, 0.3), (0.2, 0.25)])
def test_r16_stairs_for_thin_and_thick(lab, r, so):
    climbs(lab, (2 / 60, 0, -2 / 60), 210, 1 / 60, r=r, so=so)


@report()
def test_r16_stairs_along_a_wall_and_askew(lab):
    climbs(lab, (0.03, 0.01, -0.03), 240, 1 / 60, extra=[box((-2, 0.4, 0), (8, 2, 5))])
    climbs(lab, (0.025, 0.008, -0.03), 240, 1 / 60, start=(-0.5, -1.5, CO))


@report()
@pytest.mark.parametrize("r,so", [(0.12, 0.8), (0.3, 0.4)])
def test_r16_over_a_half_sunk_log(lab, r, so):
    scene = lab.scene(floor(), reports.log(0.3, 2.0, 3.0))
    got = lab.walker(scene, (0, 0, CO), r=r, so=so).walk([(0.05, 0, -0.05)] * 80)
    assert got.end[0] > 3


@report(physx=False)
@pytest.mark.parametrize(
    "c,height",
    [
        ({"r": 0.3, "h": 1.1, "co": 0.08, "so": 0.5}, 2.0),
        ({"r": 0.35, "h": 1.1, "co": 0.08, "so": 0.6}, 2.0),
        ({"r": 0.35, "h": 1.1, "co": 0.01, "so": 0.6}, 2.0),
        ({"so": 0.35}, 1.85),
        ({"so": 1.0}, 2.1),
        ({"so": 0.3}, 1.83),
    ],
)
@pytest.mark.parametrize("mode", ["constrained", "easy"])
def test_r18_doors_are_passable_whatever_the_step_offset(lab, c, height, mode):
    scene = lab.scene(*gap(height))
    foot = (0, 0, c.get("co", CO))
    z = rest(lab, scene, foot, **c)
    for y, v in ((0.0, (0.05, 0.0)), (-0.1, (0.05, 0.003)), (0.0, (0.01, 0.0)), (0.1, (0.2, 0))):
        got = lab.walker(scene, (0, y, foot[2]), climbing_mode=mode, **c).walk([(*v, -0.02)] * int(5 / v[0]))
        assert got.end[0] > 4.5, v
        assert got.top <= z + 0.02
    # A lintel as low as the head stops.
    shut = lab.scene(*gap(1.6))
    assert lab.walker(shut, foot, climbing_mode=mode, **c).walk([(0.05, 0, -0.02)] * 100).end[0] < 1


@report(physx=False)
@pytest.mark.parametrize("underside", [2.85, 2.9, 3.0])
@pytest.mark.parametrize("so", [0.3, 0.25, 0.45])
def test_r18_stairs_below_a_low_ceiling(lab, underside, so):
    scene = lab.scene(floor(), *stairs(5, 0.3), box((1.8, -2, underside), (5, 2, underside + 1)))
    low = {"co": 0.01, "so": so}
    z = rest(lab, lab.scene(floor()), (0, 0, 0.01), **low)
    got = lab.walker(scene, (0, 0, 0.01), **low).walk([(0.03, 0, -0.02)] * 140)
    assert got.end[0] > 3.5 and abs(got.end[2] - 1.0 - z) <= 0.01


@report()
def test_r19_treads_do_not_catch_who_walks_down(lab):
    scene = lab.scene(floor(), *stairs(10))
    z = rest(lab, lab.scene(floor()), (0, 0, CO))
    w = lab.walker(scene, (7, 0, 2 + z))
    d = [(-0.0333, 0, -0.0333)] * 180
    grounded, feet = [], [w.foot]
    for v in d:
        w.move(v)
        if HAS_SNAP:
            w.hero.snap_to_ground(0.3 * lab.scale)
        grounded.append(w.hero.grounded)
        feet.append(w.foot)
    steps = np.diff(feet, axis=0)
    assert (-steps[:, 0]).min() >= 0.98 * 0.0333
    if HAS_SNAP:
        assert np.mean(grounded) >= 0.95
    assert abs(feet[-1][0] - 1.006) < 0.02 and feet[-1][2] < 0.3


@report()
@pytest.mark.parametrize("snap", [False] + [True] * HAS_SNAP)
def test_r19_nothing_snaps_who_falls(lab, snap):
    w = lab.walker(lab.scene(floor()), (0, 0, 1))
    was = False
    for k in range(40):
        z = w.foot[2]
        w.move((0, 0, -0.0027 * k))
        if snap and was:
            w.hero.snap_to_ground(0.3 * lab.scale)
        assert was or z - w.foot[2] <= 0.0027 * k + 0.002
        was = w.hero.grounded
    assert was and w.foot[2] < 0.03


# --- D. Slopes and ledges

STEEP_WALKS = {
    "straight": [(0.05, 0, -0.01)] * 150,
    "wiggle": [(0.05, 0.05 * (-1) ** k, -0.01) for k in range(150)],
    "diagonal": [(0.02, 0.05, -0.01)] * 150,
    "no gravity": [(0.05, 0, 0)] * 150,
    "no gravity, askew": [(0.03, 0.03, 0)] * 150,
    "tiny": [(0.002, 0, -0.0001)] * 500,
    "slow": [(0.01, 0, -0.0003)] * 300,
}


@report(physx=False)
@pytest.mark.parametrize("how", STEEP_WALKS)
@pytest.mark.parametrize("so", [0.0, 0.3])
@pytest.mark.parametrize("degrees", [50, 60, 75])
def test_r20_slopes_over_the_limit_are_not_climbed(lab, how, so, degrees):
    scene = lab.scene(long_floor(), ramp(1, degrees, 6.0))
    z = rest(lab, scene, (0, -5, CO), so=so)
    start = (0, -5, CO) if how != "tiny" else (0.6, -5, CO)
    got = lab.walker(scene, start, so=so).walk(STEEP_WALKS[how])
    assert got.top <= z + 0.06 + so
    if how == "diagonal":
        assert got.end[1] + 5 >= 0.98 * 7.5
    # What is not too steep is climbed.
    mild = lab.scene(long_floor(), ramp(1, 30, 6.0))
    assert lab.walker(mild, start, so=so).walk(STEEP_WALKS[how]).top > (0.5 if how != "tiny" else 0.2)


BODIES = {
    "mesh": lambda lab, scene, **kind: lab.add(scene, ramp(1, 60, 6.0), **kind),
    "box": lambda lab, scene, **kind: lab.add(scene, reports.block((4, 3, 0.5), *tilted(60)), **kind),
}


def tilted(degrees):
    """Centre and turn of a box (4, 3, .5) whose top face rises from (1, ., 0) toward +x."""
    a = math.radians(degrees)
    along, normal = np.array([math.cos(a), 0, math.sin(a)]), np.array([-math.sin(a), 0, math.cos(a)])
    return tuple(np.array([1, 0, 0]) + 3.5 * along - 0.5 * normal), about((0, 1, 0), -degrees)


@report(physx=False)
@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("body", ["static", "kinematic"])
def test_r22_who_is_forced_slides(lab, what, body):
    scene = lab.scene(floor())
    BODIES[what](lab, scene, body=body)
    foot = (3, 0, 2 * math.tan(math.radians(60)) + 0.6)
    w = lab.walker(scene, foot, so=0.0, non_walkable_mode="force_sliding")
    got = w.walk([(0, 0, -0.08)] * 120)
    assert got.end[2] < 0.05
    assert got.steps[:, 2].max() <= 1e-9
    # Who is only kept from climbing does not jitter.
    w = lab.walker(scene, foot, so=0.0)
    w.walk([(0, 0, -0.08)] * 60)
    still = w.walk([(0, 0, -0.08)] * 60)
    assert still.steps[:, 2].max() <= 1e-6


@report(physx=False)
@pytest.mark.parametrize("what", BODIES)
def test_r22_moving_slopes_are_not_climbed_either(lab, what):
    scene = lab.scene(floor())
    BODIES[what](lab, scene, body="kinematic")
    for so in (0.0, 0.3):
        got = lab.walker(scene, (0, 0, CO), so=so).walk([(0.05, 0, -0.01)] * 150)
        assert got.top <= 0.03 + 0.06 + so


@report()
@pytest.mark.parametrize("degrees", [10, 30, 44])
def test_r23_nobody_creeps_down_a_walkable_slope(lab, degrees):
    scene = lab.scene(ramp(-10, degrees, 40.0))
    z = 10 * math.tan(math.radians(degrees))
    w = lab.walker(scene, (0, 0, z + 0.3))
    w.walk([(0, 0, -0.05)] * 60)
    got = w.walk([(0, 0, -0.02)] * 1500 + [(0, 0, -0.16)] * 1500)
    assert np.linalg.norm(got.end - got.feet[0]) < 0.01
    assert np.linalg.norm(got.steps, axis=1).max() < 1e-4
    assert got.end[2] > z - 0.3


def bumps(length, a):
    return grid(
        (-1.5, -1.5),
        (5.5, 1.5),
        (70, 30),
        lambda x, y: a * np.sin(2 * math.pi * x / length + 0.3) * np.cos(2 * math.pi * y / length),
    )


@report()
@pytest.mark.parametrize("length,a", [(0.3, 0.03), (0.6, 0.05), (0.3, 0.06)])
@pytest.mark.parametrize("co", [0.03, 0.1])
def test_r25_bumpy_ground_stops_nobody(lab, length, a, co):
    part = bumps(length, a)
    w = lab.walker(lab.scene(part), (0, 0, a + 0.2), so=0.0, sl=50.0, co=co)
    w.walk([(0, 0, -0.05)] * 20)
    x = w.foot[0]
    for _ in range(79):
        w.move((0.05, 0, -0.05))
        assert reports.clearance(part, w) >= -0.001
    assert w.foot[0] - x >= 3.2


@report()
def test_r26_ledges_hold_nobody_back(lab):
    scene = lab.scene(box((-5, -5, -1), (0, 5, 0)), floor(-2))
    got = lab.walker(scene, (-1, 0, CO)).walk([(0.03, 0, -0.05)] * 120)
    assert 0.0285 <= got.steps[:, 0].min() and got.steps[:, 0].max() <= 0.0301
    assert got.end[2] < -1.9
    falls = []
    for d in (0.1, 0.2, 0.25, 0.29):
        got = lab.walker(scene, (d, 0, 0.1)).walk([(0, 0, -0.05)] * 200)
        assert got.steps[:, 2].max() <= 1e-9
        assert np.abs(got.steps[:, :2]).max() <= 0.06
        falls.append(got.end[2] < -1.9)
        assert falls[-1] or np.linalg.norm(got.steps[60:], axis=1).max() < 1e-4
    assert falls == sorted(falls)


# --- E. Sweeps: tunnelling, precision, wrong depth


def test_r28_a_sweep_that_others_miss():
    a, b, c = (
        (7.33294010, 26.9337997, 79.6109009),
        (7.61456013, 27.3008995, 80.2574005),
        (7.33294010, 26.9337997, 80.2574005),
    )
    d = np.array([-0.929564953, -0.367584974, -0.0281119142])
    facing = np.cross(np.subtract(b, a), np.subtract(c, a)) @ d < 0
    for shape in (Triangle(a, b, c), Triangle(a, c, b), Mesh([a, b, c], [(0, 1, 2), (0, 2, 1)])):
        scene = Scene()
        scene.add(shape)
        hit = scene.sweep(Capsule(0.265350759, 2 * 0.340350509), (7.74110079, 27.2595482, 80.8543167), d, 0.149537891)
        if isinstance(shape, Triangle) and np.array_equal(shape.vertices[1], b) != facing:
            assert hit is None  # from behind, a one-sided triangle is not there
            continue
        assert abs(hit.distance - 0.0944) <= 0.0005
        assert abs(hit.position[2] - 80.2574005) < 1e-6


def test_r28_an_axis_in_the_plane_overlaps():
    scene = Scene()
    scene.add(Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2), (0, 2, 1)]))
    lying = about((0, 1, 0), 90)
    assert scene.overlap(Capsule(0.3, 2.0), (0, 0, 0), rotation=lying)
    hit = scene.sweep(Capsule(0.3, 2.0), (0, 0, 0), (-1, 0, 0), 1.0, rotation=lying)
    assert hit is not None and hit.distance == 0.0


@report()
@pytest.mark.parametrize("tilt", [0.0, 0.01])
def test_r28_edges_in_the_plane_of_the_fall(lab, tilt):
    rise = 2 * math.tan(math.radians(tilt))
    part = mesh([(0, -1, 0), (2, -1, rise), (2, 1, rise), (0, 1, 0)], [(0, 1, 2), (0, 2, 3)])
    scene = lab.scene(part)
    for x in np.arange(-0.29, -0.095, 0.01):
        w = lab.walker(scene, (x, 0, 1))
        near = math.inf
        for _ in range(60):
            w.move((0, 0, -0.05))
            near = min(near, reports.clearance(part, w))
        assert -1e-6 < near <= CO + 1e-6, x
        if -x < 0.3 * math.sin(math.radians(45)) - 0.001:
            assert w.foot[2] > -0.2


@report()
def test_r28_a_shelf_at_the_chest_blocks(lab):
    scene = lab.scene(box((0.2, -1, 1.3), (1, 1, 1.4)))
    got = lab.walker(scene, (-0.5, 0, 0)).walk([(0.5, 0, 0)])
    assert -0.2 < got.end[0] <= 0.2 - 0.3 + 0.001


@pytest.mark.parametrize("rules", ["robust", "physx"])
@pytest.mark.parametrize("far", [1000.0, 5000.0, 20000.0, 586507.0])
def test_r30_far_from_the_origin(rules, far):
    home, away = (reports.Lab(rules, shift=s) for s in ((0, 0, 0), (far, -far, far / 40)))

    def runs(lab):
        yield lab.walker(lab.scene(FLAT["grid"]()), (0, -14, CO)).walk([(0, 0.3, -0.0333)] * 90)
        wall = lab.scene(floor(), box((1, -50, -1), (2, 50, 4)))
        for a in (0.5, 10, 80):
            s, c = math.sin(math.radians(a)), math.cos(math.radians(a))
            yield lab.walker(wall, (0.68, -2, CO)).walk([(s / 12, c / 12, -9.81 * 5 / 3600)] * 120)
        yield lab.walker(lab.scene(floor(), *stairs(10)), (0, 0, CO)).walk([(2 / 60, 0, -2 / 60)] * 210)

    for a, b in zip(runs(home), runs(away), strict=True):
        assert np.abs(a.feet - b.feet).max() < 0.005
        assert np.linalg.norm(b.end - b.feet[0]) > 0.3


@report()
def test_r31_speed_goes_through_no_wall(lab):
    scene = lab.scene(floor(0, 500), box((2, -5, 0), (2.01, 5, 5)))
    for v in (0.1, 5, 50):
        got = lab.walker(scene, (0, 0, CO)).walk([(v, 0, -0.05)] * 40)
        assert 1.6 < got.end[0] and got.feet[:, 0].max() <= 1.701
    got = lab.walker(scene, (0, 0, CO)).walk([(0.1 * k, 0, -0.05) for k in range(600)])
    assert got.feet[:, 0].max() <= 1.701
    fall = lab.walker(scene, (0, 0, 100)).walk([(0, 0, -120)] * 2)
    assert abs(fall.end[2] - CO) <= 0.01


@report()
def test_r31_one_long_move_over_hills(lab):
    part = grid((0, -3), (40, 3), (40, 6), lambda x, y: 1.2 * np.sin(x / 4) + 0.3 * np.sin(x))
    scene = lab.scene(part)
    w = lab.walker(scene, (1, 0, 1.2))
    w.walk([(0, 0, -0.05)] * 40)
    w.move((18, 0, -0.1))
    assert reports.clearance(part, w) >= -1e-9
    for _ in range(360):
        w.move((0.05, 0, -0.05))
        assert reports.clearance(part, w) >= -1e-9


def up_stairs(lab):
    return lab.walker(lab.scene(floor(), *stairs(10)), (0, 0, CO)).walk([(2 / 60, 0, -2 / 60)] * 180).feet


@pytest.mark.parametrize("rules", ["robust", "physx"])
def test_r32_scale_and_up(rules):
    base = up_stairs(reports.Lab(rules))
    assert base[-1][2] > 1.9
    for s in (0.01, 0.05, 3, 50):
        assert np.abs(up_stairs(reports.Lab(rules, scale=s)) - base).max() < 0.01, s
    for q in (about((1, 0, 0), 90), about((1, 0, 0), 180), about((1, 2, 3), 77)):
        for way in ("given", "boxes"):
            assert np.abs(up_stairs(reports.Lab(rules, way, turn=q)) - base).max() < 0.001


@pytest.mark.parametrize("rules", ["robust", "physx"])
@pytest.mark.parametrize("mirror", [(-1, 1, 1), (1, -1, 1)])
def test_r32_mirrored(rules, mirror):
    lab = reports.Lab(rules)
    base = up_stairs(lab)
    scene = Scene()
    for p in (floor(), *stairs(10)):
        scene.add(Mesh(p.vertices, p.triangles), scale=mirror)
    got = lab.walker(scene, (0, 0, CO)).walk([(2 / 60 * mirror[0], 0, -2 / 60)] * 180).feet
    assert np.abs(got * mirror - base).max() < 0.001


@pytest.mark.parametrize("rules", ["robust", "physx"])
@pytest.mark.parametrize("unit", ["mesh", "box"])
def test_r32_uneven_scale(rules, unit):
    lab = reports.Lab(rules)
    base = up_stairs(lab)
    cube = box((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))
    scene = lab.scene(floor())
    for p in stairs(10):
        shape = Box((0.5, 0.5, 0.5)) if unit == "box" else Mesh(cube.vertices, cube.triangles)
        scene.add(shape, position=p.centre, scale=2 * np.array(p.half))
    got = lab.walker(scene, (0, 0, CO)).walk([(2 / 60, 0, -2 / 60)] * 180).feet
    assert np.abs(got - base).max() < 0.001


# --- F. Small moves, ceilings, odd input


@report()
def test_r34_the_path_does_not_depend_on_the_frame_rate(lab):
    top = 1 / math.tan(math.radians(30))
    wall = reports.block((0.5, 6, 3), (11.5, 3, 3), about((0, 0, 1), 45))
    scene = lab.scene(
        quad((-20, -20, 0), (1, -20, 0), (1, 20, 0), (-20, 20, 0)),
        ramp(1, 30, 2.0),
        quad((1 + top, -20, 1), (30, -20, 1), (30, 20, 1), (1 + top, 20, 1)),
        *(box((5 + 0.4 * i, -20, 0), (30, 20, 1 + 0.2 * (i + 1))) for i in range(4)),
        wall,
    )
    ends, tops = [], []
    for hz in (30, 60, 144, 240, 1000):
        w = lab.walker(scene, (0, 0, CO))
        v, high = 0.0, 0.0
        for _ in range(3 * hz):
            v -= 9.81 / hz
            w.move((5 / hz, 0, v / hz), 1 / hz)
            if w.hero.grounded:
                v = 0.0
            high = max(high, w.foot[2])
        ends.append(w.foot)
        tops.append(high)
    assert np.ptp(ends, axis=0).max() < 0.05
    assert np.ptp(tops) < 0.02
    assert 1.79 < ends[0][2] < 1.83


@report(physx=False)
@pytest.mark.parametrize("hz", [60, 30, 240])
@pytest.mark.parametrize("so", [0.3, 0.5])
def test_r35_a_ceiling_is_reported_when_it_stops_a_jump(lab, hz, so):
    scene = lab.scene(floor(), box((-20, -20, 2.2), (20, 20, 3)))
    w = lab.walker(scene, (0, 0, CO), so=so)
    w.move((0, 0, -0.01), 1 / hz)
    v, path, told, blocked = 4.0, [w.foot[2]], [], []
    for _ in range(int(0.4 * hz) + 1):
        v -= 9.81 / hz
        z = w.foot[2]
        flags = w.move((1.2 / hz, 0, v / hz), 1 / hz)
        told.append(bool(flags & UP))
        blocked.append(v > 0 and w.foot[2] - z < v / hz - 1e-6)
        path.append(w.foot[2])
        if w.hero.hit_up or w.hero.grounded:
            v = 0.0
    assert abs(max(path) - 0.38) <= 0.002
    assert told == blocked and any(told)
    assert sum(z > 0.379 for z in path) <= 2 * max(1, hz / 60)
    assert path[-1] < 0.03


@report()
def test_r37_nan_and_almost_nothing(lab):
    a = math.radians(2)
    for lean in (a, -a):
        wall = quad((1, -5, 0), (1, 5, 0), (1 + 4 * math.tan(lean), 5, 4), (1 + 4 * math.tan(lean), -5, 4))
        wall = mesh(wall.vertices, wall.triangles[:, ::-1])
        w = lab.walker(lab.scene(floor(), wall), (0.5, 0, CO))
        w.walk([(0, 0, -0.02)] * 5)
        start = w.foot
        w.walk([(0, 0, 0)] * 10 + [(1e-30, 0, 0)] + [(1e-12, -1e-12, -1e-12)] * 1000)
        assert np.abs(w.foot - start).max() < 1e-6
        w.walk([(0.05 * math.cos(lean), 0, -0.05 * math.sin(lean))] * 20)
        got = w.walk([(0.05 if k % 2 == 0 else 1e-9, 1e-12, 0.07 - 0.0027 * k) for k in range(60)], 0.0)
        assert np.isfinite(got.feet).all()
        before = w.hero.position, w.hero.velocity, w.hero.flags, w.hero.grounded
        for bad in (math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError):
                w.hero.move((bad, 0, 0), 1 / 60)
        assert before == (w.hero.position, w.hero.velocity, w.hero.flags, w.hero.grounded)
        x = w.foot[0]
        w.move((-0.05, 0, 0))
        assert abs(x - w.foot[0] - 0.05) < 1e-6


# --- G. Moving things, other characters, API

DECK = reports.block((1.5, 1.5, 0.1), (0, 0, -0.1))


def lift_rides(lab, d, speed=0.04, settle=True, snap=False, wanted="lift"):
    """Three times up and down; (foot - top of the lift, on it, rising) of each frame."""
    scene = Scene()
    lift = lab.add(scene, DECK, **RIDES)
    w = lab.walker(scene, (0, 0, CO))
    if settle:
        w.walk([(0, 0, -0.02)] * 3)
    rows, z = [], 0.0
    for k in range(360):
        rising = k % 120 < 60
        z += speed if rising else -speed
        lab.move_to(lift, (0, 0, z - 0.1))
        w.move(d)
        if snap:
            w.hero.snap_to_ground(0.3 * lab.scale)
        rows.append((w.foot[2] - z, abs(w.foot[0]) < 1.4, rising))
    return rows


@report(physx=False)
@pytest.mark.parametrize("d", [(0, 0, 0), (0, 0, -0.02), (0.01, 0, -0.02), (0.003, 0.001, 0)])
@pytest.mark.parametrize("speed", [0.04, 0.004, 0.15])
@pytest.mark.parametrize("settle", [True, False])
def test_r38_a_lift_carries_who_stands(lab, d, speed, settle):
    rows = [r for r in lift_rides(lab, d, speed, settle) if r[1]]
    assert len(rows) > 120
    late = 0
    for above, _, rising in rows:
        assert above >= -0.001
        late = late + 1 if above > CO + 0.02 else 0
        assert late == 0 if rising else late <= 30
    if HAS_SNAP:
        for above, _, _ in (r for r in lift_rides(lab, d, speed, settle, snap=True) if r[1]):
            assert -0.001 <= above <= CO + 0.02


@report(physx=False)
@pytest.mark.parametrize("d", [(0, 0, 0), (0.002, 0, 0)])
def test_r38_so_does_an_obstacle(lab, d):
    scene = Scene()
    lift = scene.add_obstacle(
        Box(np.array((1.5, 1.5, 0.1)) * lab.scale), position=lab.out((0, 0, -0.1)), rotation=lab.turn
    )
    w = lab.walker(scene, (0, 0, CO), so=0.0)
    w.walk([(0, 0, -0.02)] * 3)
    z = 0.0
    for k in range(160):
        z += 0.04 if k % 80 < 40 else -0.04
        lab.move_to(lift, (0, 0, z - 0.1))
        w.move(d)
        assert -0.001 <= w.foot[2] - z <= CO + 0.02


@report(physx=False)
def test_r38_one_may_jump_off_a_lift_going_down(lab):
    scene = Scene()
    lift = lab.add(scene, DECK, **RIDES)
    w = lab.walker(scene, (0, 0, CO))
    w.walk([(0, 0, -0.02)] * 3)
    z = 0.0
    for _ in range(20):
        z -= 0.05
        lab.move_to(lift, (0, 0, z - 0.1))
        w.move((0, 0, -0.01))
    start = w.foot[2] - z
    assert abs(start) < CO + 0.02
    v = 3.0
    for _ in range(10):
        z -= 0.05
        lab.move_to(lift, (0, 0, z - 0.1))
        w.move((0, 0, (v - 9.81 / 120) / 60))
        v -= 9.81 / 60
    assert w.foot[2] - z >= 0.33


def disc(radius=4.0, around=48):
    a = 2 * math.pi * np.arange(around) / around
    v = np.concatenate([[(0, 0, 0)], np.stack([radius * np.cos(a), radius * np.sin(a), 0 * a], -1)])
    return mesh(v, [(0, 1 + i, 1 + (i + 1) % around) for i in range(around)])


@report()
@pytest.mark.parametrize("tilt,drift", [(0, 0.0), (10, 0.0), (0, 0.02)])
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_r39_a_turntable_keeps_its_rider(lab, tilt, drift, rate):
    scene = Scene()
    table = lab.add(scene, disc(), **RIDES)
    axis = np.array([math.sin(math.radians(tilt)), 0, math.cos(math.radians(tilt))])
    lean = about((0, 1, 0), tilt)
    lab.move_to(table, (0, 0, 0), lean)
    w = lab.walker(scene, (0, 2, CO + 0.01))
    w.walk([(0, 0, -0.02)] * 5)
    angle0 = math.degrees(math.atan2(w.foot[1], w.foot[0]))
    frames = round(2 * math.pi / rate)
    for k in range(1, frames + 1):
        centre = (drift * k, 0, 0)
        lab.move_to(table, centre, reports.times(about(axis, math.degrees(rate * k)), lean))
        w.move((0, 0, -0.02))
    p = w.foot - np.array(centre)
    away = np.linalg.norm(p - (p @ axis) * axis)
    assert abs(away - 2.0) <= 0.02
    turned = math.degrees(math.atan2(p[1], p[0])) - angle0 - math.degrees(rate * frames)
    assert abs((turned + 180) % 360 - 180) <= math.degrees(0.02)


@report()
def test_r40_a_wall_that_brushes_drags_nobody(lab):
    scene = lab.scene(floor())
    wall = lab.add(scene, reports.block((0.5, 20, 2), (0.82, 0, 2)), **RIDES)
    w = lab.walker(scene, (0, 0, CO))
    for k in range(1, 61):
        lab.move_to(wall, (0.82, 0.05 * k, 2))
        w.move((0, 0, -0.02))
    assert abs(w.foot[1]) < 0.01


@report(physx=False)
@pytest.mark.parametrize("d", [(0, 0, 0), (0, 0, -0.02)])
@pytest.mark.parametrize("v", [(0.05, 0, 0), (0.02, -0.03, 0), (0.05, 0.01, 0.02)])
def test_r40_a_tram_keeps_its_rider(lab, d, v):
    scene = Scene()
    deck = lab.add(scene, reports.block((2, 2, 0.1), (0, 0, -0.1)), **RIDES)
    w = lab.walker(scene, (0, 0, CO))
    w.walk([d] * 2)
    offset = w.foot
    for k in range(1, 901):
        lab.move_to(deck, np.array((0, 0, -0.1)) + np.array(v) * k)
        w.move(d)
    assert np.abs(w.foot - np.array(v) * 900 - offset).max() < 0.011


@report()
def test_r40_a_kinematic_wall_is_a_wall(lab):
    scene = lab.scene(floor(0, 60))
    lab.add(scene, reports.block((0.5, 50, 2.5), (1.5, 0, 1.5)), **RIDES)
    for degrees in (0.5, 10, 80):
        a = math.radians(degrees)
        want = 5 * math.cos(a) / 60
        got = lab.walker(scene, (0.68, -2, CO)).walk([(5 * math.sin(a) / 60, want, -9.81 * 5 / 3600)] * 120)
        assert np.abs(got.steps[5:, 1] / want - 1).max() <= 0.02


@report()
@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_r42_support_removed(lab, body):
    for inside in (False, True):
        scene = Scene()
        seat = lab.add(scene, reports.block((1, 1, 0.5), (0, 0, -0.5)), body=body)
        w = lab.walker(scene, (0, 0, CO))
        w.walk([(0, 0, -0.05)] * 10)
        assert w.hero.state.standing_on is seat
        if inside:

            def drop(hit, scene=scene):
                if hit.actor is not None and hit.actor in scene.actors:
                    scene.remove(hit.actor)

            w.hero.on_hit = drop
            w.move((0, 0, -0.05))
        else:
            scene.remove(seat)
        got = w.walk([(0, 0, -0.05)] * 30)
        assert (-got.steps[:, 2]).min() >= 0.045
        assert w.hero.state.standing_on is None and not w.hero.grounded


@report()
@pytest.mark.parametrize("how", ["layer", "mask", "filter", "move filter", "removed"])
@pytest.mark.parametrize("body", ["static", "kinematic"])
def test_r42_a_wall_switched_off_lets_through(lab, how, body):
    scene = lab.scene(floor())
    wall = lab.add(scene, reports.block((0.5, 5, 2), (1.5, 0, 2)), body=body, layer=2)
    w = lab.walker(scene, (0.5, 0, CO))
    d = (0.05, 0, -0.02)
    w.walk([d] * 10)
    assert w.foot[0] < 0.701
    if how == "layer":
        wall.layer = 4
        w.hero.mask = 0xFFFFFFFF & ~4
    elif how == "mask":
        w.hero.mask = 1
    elif how == "filter":
        w.hero.filter = lambda other: other is not wall
    elif how == "removed":
        scene.remove(wall)
    x = w.foot[0]
    if how == "move filter":
        w.hero.move(tuple(lab.along(d)), 1 / 60, filter=lambda other: other is not wall)
    else:
        w.move(d)
    assert w.foot[0] - x >= 0.95 * 0.05
    # What is put in the way blocks at once.
    x = w.foot[0]
    lab.add(scene, reports.block((0.5, 5, 2), (x + 0.3 + CO + 0.5, 0, 2)), body=body)
    w.hero.filter = lambda other: other is not wall
    w.move(d)
    assert w.foot[0] - x < 0.001


@pytest.mark.skipif(not hasattr(pycct.CharacterController, "can_resize"), reason="no resize")
@report()
def test_r43_crouch_and_stand(lab):
    scene = lab.scene(floor(), box((1, -3, 1.2), (4, 3, 2)))
    w = lab.walker(scene, (0, 0, CO))
    k = lab.scale

    def foot():
        return lab.back(w.hero.foot_position)[2]

    def walk(n):
        for _ in range(n):
            w.move((0.05, 0, -0.02))

    walk(60)
    assert lab.back(w.hero.position)[0] < 1
    z = foot()
    w.hero.resize(0.3 * k)
    assert abs(foot() - z) < 0.001
    walk(40)
    assert 1 < lab.back(w.hero.position)[0] < 3.7
    assert not w.hero.can_resize(1.2 * k)
    head = lab.back(w.hero.position)[2] + 0.15 + 0.3
    assert head <= 1.2 + 0.001
    walk(60)
    assert lab.back(w.hero.position)[0] > 4.4
    assert w.hero.can_resize(1.2 * k)
    z = foot()
    w.hero.resize(1.2 * k)
    for _ in range(100):
        w.hero.resize(0.3 * k)
        w.hero.resize(1.2 * k)
        assert foot() > -0.03
    assert abs(foot() - z) < 0.001


def crowd_run(rules, n, frames, order, keep=None):
    """Positions (frames, n, 3) of characters each on its own; order of adding the bodies."""
    parts = [bumps(0.3, 0.06), *stairs(10, end=5.5)]
    scene = Scene()
    for i in order(len(parts)):
        scene.add(Mesh(parts[i].vertices, parts[i].triangles))
    rng = np.random.default_rng(46)
    start = rng.uniform((-1, -1, 0.5), (0.5, 1, 1), (n, 3))
    d = np.concatenate([rng.uniform(-0.03, 0.05, (frames, n, 1)), rng.uniform(-0.03, 0.03, (frames, n, 1))], 2)
    d = np.concatenate([d, np.full((frames, n, 1), -0.04)], 2)
    lab = reports.Lab(rules)
    walkers = [lab.walker(scene, p) for p in start]
    if keep is not None:
        first, places = keep
        for w, p in zip(walkers, places, strict=True):
            w.hero.position = p
        d = d[first:]
    rows = []
    for row in d:
        for w, v in zip(walkers, row, strict=True):
            w.hero.move(tuple(v), 1 / 60)
        rows.append([w.hero.position for w in walkers])
    return np.array(rows)


@pytest.mark.parametrize("rules", ["robust", "physx"])
@pytest.mark.parametrize("n", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_r46_the_same_twice_in_any_order_and_after_a_restore(rules, n):
    a = crowd_run(rules, n, 300, range)
    assert np.array_equal(a, crowd_run(rules, n, 300, range))
    assert np.array_equal(a, crowd_run(rules, n, 300, lambda m: reversed(range(m))))
    again = crowd_run(rules, n, 300, range, keep=(150, a[149]))
    assert np.array_equal(a[150:], again)
    assert np.linalg.norm(a[-1] - a[0], axis=1).mean() > 0.5


# --- Fixes


def test_sets_of_fixes():
    lab = reports.Lab()
    w = lab.walker(lab.scene(floor()), (0, 0, CO))
    assert w.hero.rules == Rules.ROBUST
    w.move((0.01, 0, -0.01))
    assert w.hero.stats.fixes == Rules.PHYSX
    assert Rules.ROBUST & Rules.DOCUMENT == 0
