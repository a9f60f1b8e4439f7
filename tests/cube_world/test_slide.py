"""SweepSlideController: moves, ground, jumps, depenetration, determinism, threads, bad input."""

import logging
import math
import multiprocessing
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pycct.cube_world import controller as sl
from pycct.cube_world import microtests as mt
from pycct.cube_world.controller import SweepSlideController, step_many
from pycct.cube_world.cubes import CubeWorld

DT = 1 / 60


def flat(half=12):
    world = CubeWorld()
    mt.floor(world, half)
    return world


def standing(world=None, feet=(0.5, 0.03, 0.5), **knobs):
    runner = SweepSlideController(world or flat(), feet, **knobs)
    for _ in range(3):
        runner.step((0, 0, 0))
    assert runner.grounded
    return runner


# ---------------------------------------------------------------- structs and defaults

def test_derived_points():
    c = SweepSlideController(CubeWorld(), (1, 2, 3), radius=0.4, half_height=0.5).capsule
    assert c.p0 == (1, 2.4, 3) and c.p1 == (1, 3.4, 3) and c.center == (1, 2.9, 3) and c.height == pytest.approx(1.8)


def test_printed_defaults():
    c = SweepSlideController(CubeWorld(), (0, 0, 0)).config
    assert c["max_bumps"] == 4 and c["max_clip_planes"] == 5 and c["stop_epsilon"] == 0.001 and c["overclip"] == 1.001
    assert c["walkable_normal_y"] == pytest.approx(math.cos(math.radians(45)), abs=1e-15)
    assert c["ground_grace_time"] == 0.1 and c["max_depen_iters"] == 4 and c["min_depen_dist"] == 0.001
    assert c["jitter_frames"] == 30
    assert c["max_depen_clamp"] == 1.0 and c["stuck_frames_limit"] == 10 and c["skin_width"] == pytest.approx(0.03)
    assert c["probe_radius_scale"] == 0.9


@pytest.mark.parametrize(("radius", "skin"), [(0.05, 0.01), (0.1, 0.01), (0.3, 0.03), (1.0, 0.1)])
def test_skin_default(radius, skin):
    assert SweepSlideController(CubeWorld(), (0, 0, 0), radius=radius).skin_width == pytest.approx(skin)


def test_walkable_angle_in_degrees():
    for degrees in (0.0, 10.0, 30.0, 60.0, 89.0):
        c = SweepSlideController(CubeWorld(), (0, 0, 0), max_walkable_angle=degrees).config
        assert c["walkable_normal_y"] == pytest.approx(math.cos(math.radians(degrees)), abs=1e-15)


# ---------------------------------------------------------------- moving

def test_falls_and_rests_at_the_skin():
    runner = SweepSlideController(flat(), (0.5, 10, 0.5))
    heights = [runner.step((0, 0, 0))[1] for _ in range(120)]
    assert heights[-1] == pytest.approx(0.03, abs=1e-6) and heights[-1] == heights[-30]
    assert runner.grounded and runner.velocity == (0, 0, 0)


def test_skin_is_kept_along_the_normal_at_every_angle():
    # A back-off along the motion would leave less than the skin at a grazing angle.
    for angle in (1, 5, 20, 45, 80, 90):
        world = flat()
        mt.wall_x(world, 3)
        runner = standing(world, (2.0, 0.03, -8))
        a = math.radians(angle)
        for _ in range(240):
            runner.step((4 * math.sin(a), 0, 4 * math.cos(a)))
            assert 3 - 0.3 - runner.feet[0] > 0.03 - 1e-9
            if runner.feet[2] > 8:
                break


def test_remaining_motion_is_what_is_left_of_what_was_left():
    # SLIDE 4.3 scales the whole frame's motion by 1 - t of the last bump alone: after two
    # bumps it would go on too far. A U-turn of three walls shows the sum.
    world = flat()
    mt.wall_x(world, 3)
    runner = standing(world, (2.6, 0.03, 0.5))
    start = runner.feet
    runner.step((6, 0, 6))
    pieces = runner.slide_iterations
    assert len(pieces) >= 2 and pieces[0].hit_id != -1
    used = sum(p.t * p.remain for p in pieces)
    assert used <= math.hypot(6, 6) * DT + 1e-9
    assert runner.feet[2] - start[2] == pytest.approx(6 * DT, abs=1e-4)
    first = pieces[0]
    assert pieces[1].remain == pytest.approx(first.remain * (1 - first.t) / math.sqrt(2), rel=1e-2)


@pytest.mark.parametrize("speed", [0.06, 0.01, 1e-3, 1e-4, 1e-6])
def test_slow_characters_move(speed):
    # SLIDE 4.3 stops below a displacement of 0.001, that is below 0.06 m/s.
    runner = standing()
    for _ in range(60):
        runner.step((speed, 0, 0))
    assert runner.feet[0] - 0.5 == pytest.approx(speed, rel=1e-6)


def test_slow_characters_slide():
    world = flat()
    mt.wall_x(world, 3)
    runner = standing(world, (3 - 0.33, 0.03, 0.5))
    for _ in range(60):
        runner.step((1e-3, 0, 1e-3))
    assert runner.feet[2] - 0.5 == pytest.approx(1e-3, rel=1e-2)


def test_frame_rate_does_not_change_the_height_of_a_jump():
    tops = []
    for rate in (20, 60, 240):
        runner = standing()
        top = 0
        runner.step((0, 1, 0), 1 / rate)
        for _ in range(2 * rate):
            top = max(top, runner.step((0, 0, 0), 1 / rate)[1])
        tops.append(top - 0.03)
        assert runner.grounded
    assert tops == pytest.approx([7**2 / 40] * 3, abs=0.03)


def test_jumps_onto_a_cube():
    world = flat()
    world.add((2, 0, 0))
    runner = standing(world)
    runner.step((3, 0, 0), DT, jump=True)
    for _ in range(60):
        runner.step((3 if runner.feet[0] < 2.5 else 0, 0, 0))
    assert runner.grounded and runner.feet[1] == pytest.approx(1.03, abs=1e-4)


def test_walls_cannot_be_walked_up():
    world = flat()
    world.add((2, 0, 0))
    runner = standing(world)
    for _ in range(120):
        runner.step((5, 0, 0))
    assert runner.feet[1] == pytest.approx(0.03, abs=1e-4) and runner.feet[0] < 1.7


def test_ceiling_stops_a_jump():
    world = flat()
    mt.floor(world, 12, 2)
    runner = standing(world)
    top = 0
    runner.step((0, 1, 0))
    for _ in range(60):
        top = max(top, runner.step((0, 0, 0))[1])
    assert top <= 2 - 1.8 - 0.03 + 1e-9 and runner.grounded


def test_walks_up_and_down_a_ramp_at_its_own_speed():
    world = flat()
    mt.ramp(world, 30)
    runner = standing(world, (-1, 0.03, 0))
    for _ in range(80):
        runner.step((3, 0, 0))
    assert runner.feet[1] > 0.8 and math.hypot(*runner.delta) == pytest.approx(3 * DT, rel=1e-6)
    for _ in range(60):
        runner.step((-3, 0, 0))
        assert runner.grounded and runner.on_surface
    assert runner.feet[1] < 0.3


def test_stands_still_on_a_walkable_ramp():
    world = CubeWorld()
    mt.ramp(world, 40)
    runner = SweepSlideController(world, (2.0, 2.2, 0))
    for _ in range(30):
        runner.step((0, 0, 0))
    here = runner.feet
    for _ in range(120):
        runner.step((0, 0, 0))
    assert runner.grounded and runner.feet == here


# ---------------------------------------------------------------- ground

def test_grounded_at_skin_distance():
    # The printed probe, 0.9 r from the centre and skin + 0.01 long, ends 0.1 r short of a
    # floor at skin distance.
    runner = standing()
    ground = runner.probe_ground()
    assert ground.hit and ground.walkable and ground.normal == (0, 1, 0)
    assert ground.distance == pytest.approx(0.03, abs=1e-6)
    assert runner.ground.distance == pytest.approx(0.03, abs=1e-6)


def test_snap_goes_down_by_the_gap_alone():
    # The printed snap would go 0.1 r too far.
    world = flat()
    world.add_box((-5, 0.1, 0), (5, 0.1, 3))
    runner = standing(world, (-0.1, 0.23, 0))
    for _ in range(30):
        runner.step((4, 0, 0))
        assert runner.grounded
        assert runner.feet[1] >= 0.03 - 1e-9
    assert runner.feet[1] == pytest.approx(0.03, abs=1e-6)


@pytest.mark.parametrize(("height", "snaps"), [(0.1, True), (0.45, True), (0.8, False), (2.0, False)])
def test_step_height_bounds_the_snap(height, snaps):
    world = flat()
    world.add_box((-5, 0.5 * height, 0), (5, 0.5 * height, 3))
    runner = standing(world, (-0.5, height + 0.03, 0))
    states = []
    for _ in range(60):
        runner.step((4, 0, 0))
        states.append(runner.grounded)
    assert all(states) == snaps and runner.feet[1] == pytest.approx(0.03, abs=1e-4)


def test_no_snap_while_rising():
    runner = standing(step_height=5.0)
    runner.step((0, 1, 0))
    heights = [runner.step((0, 0, 0))[1] for _ in range(15)]
    assert heights == sorted(heights) and heights[-1] > 1.0


def test_grace_time_gives_one_jump_only():
    world = flat()
    world.add_box((-5, 2.5, 0), (5, 2.5, 3))
    runner = standing(world, (-0.1, 5.03, 0))
    while runner.on_surface:
        runner.step((4, 0, 0))
    assert runner.grounded and not runner.on_surface
    runner.step((4, 1, 0))
    assert runner.rising and not runner.grounded
    speeds = []
    while runner.feet[1] > 1.0:
        runner.step((4, 1, 0))
        speeds.append(runner.velocity[1])
    assert speeds == sorted(speeds, reverse=True)


def test_no_second_jump_in_the_grace_time_at_high_rates():
    runner = standing()
    runner.step((0, 1, 0), 1 / 1000)
    speeds = [runner.velocity[1]]
    for _ in range(300):
        runner.step((0, 1, 0), 1 / 1000)
        speeds.append(runner.velocity[1])
    assert speeds == sorted(speeds, reverse=True)


def test_grounded_ends_after_the_grace_time():
    world = flat()
    floor_ids = world.ids()
    runner = standing(world)
    for i in floor_ids:
        world.remove(i)
    grounded = []
    for _ in range(12):
        runner.step((0, 0, 0))
        grounded.append(runner.grounded)
    assert grounded.count(True) == 6 and not grounded[-1] and runner.ground_state.time_since_grounded > 0.1


def test_wedged_between_edges_it_can_jump_out():
    world = CubeWorld()
    world.add_box((-5.25, 0.5, 0), (5, 0.5, 5))
    world.add_box((5.25, 0.5, 0), (5, 0.5, 5))
    runner = SweepSlideController(world, (0, 2, 0))
    for _ in range(90):
        runner.step((0, 0, 0))
    assert runner.wedged and not runner.on_surface and runner.feet[1] > 0.5
    runner.step((0, 1, 0))
    for _ in range(60):
        runner.step((3, 0, 0))
    assert runner.grounded and runner.feet[0] > 0.5 and runner.feet[1] == pytest.approx(1.03, abs=1e-4)


def test_no_jump_off_a_ceiling_corner():
    world = flat()
    mt.floor(world, 12, 2)
    mt.wall_x(world, 3)
    mt.wall_z(world, 3)
    runner = standing(world, (2.6, 0.03, 2.6))
    low = []
    for _ in range(120):
        runner.step((5, 1, 5))
        low.append(runner.feet[1])
    # It hops under the ceiling instead of hanging there.
    assert min(low[30:]) < 0.04


# ---------------------------------------------------------------- depenetration

def test_spawn_inside_is_pushed_out():
    world = CubeWorld()
    world.add((0, 0, 0))
    runner = SweepSlideController(world, (0.4, -0.5, 0.45))
    assert runner.overlaps() == [] and runner.depenetrations == 1 and 0 < len(runner.depen_iterations) < 10


def test_two_cubes_side_by_side_push_once():
    # SLIDE 6.2 adds both pushes up: twice the depth.
    world = CubeWorld()
    world.add((0, -1, 0))
    world.add((1, -1, 0))
    runner = SweepSlideController(world, (1.0, -0.1, 0.5))
    assert runner.feet[0] == 1.0 and runner.feet[2] == 0.5
    assert runner.feet[1] == pytest.approx(0.03, abs=1e-5)


@pytest.mark.parametrize("depth", [1e-12, 1e-6, 0.0004, 0.001])
def test_shallow_overlaps_are_no_failure(depth):
    # SLIDE 6: 0 to 0.001 is never pushed yet counts as failed, and teleports.
    world = flat()
    runner = standing(world, (5.5, 0.03, 0.5))
    assert runner.teleport((0.5, -depth, 0.5))
    assert not runner.depen_failed and runner.feet[0] == 0.5 and abs(runner.feet[1]) < 0.04
    assert runner.penetration <= 1e-9


def test_the_last_safe_position_starts_unset():
    # SLIDE 6.3 would send a runner that fails at spawn to (0, 0, 0).
    world = CubeWorld()
    world.add_array(np.ones((40, 40, 40), bool), (100, 100, 100))
    runner = SweepSlideController(world, (120.2, 119.3, 120.4))
    assert runner.last_safe_position is None and runner.depen_failed
    assert math.dist(runner.feet, (120.2, 119.3, 120.4)) < 1e-9


def test_teleport_into_solid_goes_back_to_the_last_safe_position():
    world = flat()
    world.add_array(np.ones((40, 40, 40), bool), (100, 0, 100))
    runner = standing(world)
    for _ in range(30):
        runner.step((1, 0, 0))
    safe = runner.last_safe_position
    assert safe is not None and math.dist(safe, runner.feet) < 0.05
    assert not runner.teleport((120.2, 19.3, 120.4))
    assert runner.feet == safe and runner.depen_triggered_this_frame
    assert runner.teleport((5, 3, 5)) and runner.feet == (5, 3, 5) and not runner.grounded


def test_deep_in_a_floor_of_cubes_the_way_out_is_up():
    # Each cube alone would rather be left sideways, into the next one.
    world = CubeWorld()
    world.add_array(np.ones((21, 3, 21), bool), (-10, -3, -10))
    for depth in (0.2, 0.5, 0.9):
        for x in (0.02, 0.5, 0.97):
            runner = SweepSlideController(world, (x, -depth, 0.4))
            assert runner.overlaps() == []
            assert runner.feet == pytest.approx((x, 0.03, 0.4), abs=1e-5)


@pytest.mark.parametrize("turn", [0.0, 0.3])
def test_nobody_is_pushed_through_the_floor(turn):
    # Down would be the shortest way out of the box, into the floor and through it.
    world = flat()
    runner = standing(world)
    world.add_box((0.5, 2.2, 0.5), (2.0, 2.2, 2.0), (0, math.sin(turn), 0, math.cos(turn)))
    runner.configure(max_depen_iters=10)
    assert runner.depenetrate()
    assert runner.overlaps() == [] and runner.feet[1] > 0 and math.dist(runner.feet, (0.5, 0.03, 0.5)) > 2


# ---------------------------------------------------------------- diagnostics

def test_hud_has_the_printed_fields():
    world = flat()
    mt.wall_x(world, 3)
    runner = standing(world, (2.5, 0.03, 0.5))
    for _ in range(20):
        runner.step((3, 0, 1))
    lines = runner.hud().splitlines()
    assert lines[0] == "=== Capsule CC Debug ===" and len(lines) == 7
    words = ["Pos: (", "Delta: ", "Vel: (", "Speed: ", "Grounded: YES", "NormalY: 1.000",
             "Angle: 0.0°", f"Contacts: {len(runner.contacts)}",
             "Pen: 0.000", "DepenIter: 0", "Slide: 1/4", "t=", "SlideNormal: (-1,0,0)", "Frame: 23", "Hash: 0x"]
    text = "\n".join(lines)
    assert len(runner.contacts) >= 2
    assert [w for w in words if w not in text] == []
    x, y, z = runner.feet
    assert f"Pos: ({x:.3f}, {y:.3f}, {z:.3f})" in text and f"0x{runner.position_hash():08X}" in text


def test_log_lines(caplog):
    caplog.set_level(logging.DEBUG, "pycct.slide")
    world = flat()
    mt.wall_x(world, 3)
    world.add_box((-5, 0.1, 0), (4, 0.1, 3))
    runner = SweepSlideController(world, (-1.5, 1.0, 0.5))
    for _ in range(80):
        runner.step((4, 0, 1))
    world.add_box((2.6, 1.0, runner.feet[2]), (0.2, 0.5, 0.2))
    runner.depenetrate()
    text = "\n".join(r.getMessage() for r in caplog.records)
    assert "[GROUND] AIR -> GROUNDED, normalY=1.000" in text
    assert "[SNAP] Snapped down by 0." in text
    assert "[Slide 0] t=" in text and " normal=(-1.00,0.00,0.00) remain=0." in text
    assert "[DEPEN] iter=0, push=(" in text and "overlaps=1" in text and "[DEPEN] done, iters=" in text
    assert "[CANDIDATES] count=" in text and "[HASH] frame=80 0x" in text


def test_log_warns_of_used_up_bumps_once(caplog):
    caplog.set_level(logging.INFO, "pycct.slide")
    world = flat()
    mt.wall_x(world, 3)
    runner = standing(world, (2.6, 0.03, 0.5), max_bumps=1)
    for _ in range(10):
        runner.step((5, 0, 5))
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert runner.bumps_exhausted and [w.getMessage() for w in warnings] == ["[Slide] hit max iterations (1)"]


def test_log_of_a_failed_depenetration(caplog):
    caplog.set_level(logging.INFO, "pycct.slide")
    world = flat()
    world.add_array(np.ones((40, 40, 40), bool), (100, 0, 100))
    runner = standing(world)
    runner.teleport((120, 20, 120))
    assert "[DEPEN] FAILED - reverting to safe position" in [r.getMessage() for r in caplog.records]


def test_proof_hooks_are_data():
    world = flat()
    mt.wall_x(world, 3)
    runner = standing(world, (2.5, 0.03, 0.5))
    for _ in range(60):
        runner.step((3, 0, 0))
    on_axis, on_box, id = runner.closest_pair
    assert id in world and math.dist(on_axis, on_box) == pytest.approx(0.33, abs=1e-4)
    mark = runner.sweep_mark
    assert mark.end[0] - mark.start[0] == pytest.approx(0.05) and mark.hit_point[0] == 3.0
    assert runner.ground_arrow == (runner.feet, (runner.feet[0], runner.feet[1] + 1, runner.feet[2]))
    c = runner.candidates
    assert c.count >= 2 and c.first_id <= c.last_id and c.first_id in world and c.last_id in world
    assert runner.frames_grounded + runner.frames_airborne == runner.frame == 63
    assert not runner.depen_triggered_this_frame and runner.stuck_frames > 10 and runner.bumps == 1
    assert runner.jitter_score < 1e-6 and len(runner.contacts) >= 2


def test_jitter_score_is_the_variance_of_thirty_positions():
    runner = standing()
    feet = [runner.step((2, 0, 1)) for _ in range(50)][-30:]
    assert runner.jitter_score == pytest.approx(np.var(np.array(feet), axis=0).sum(), rel=1e-9)
    runner.configure(jitter_frames=7)
    assert runner.jitter_score == 0
    feet = [runner.step((2, 0, i % 3)) for i in range(20)][-7:]
    assert runner.jitter_score == pytest.approx(np.var(np.array(feet), axis=0).sum(), rel=1e-9)


def test_idle_is_not_stuck():
    runner = standing()
    for _ in range(50):
        runner.step((0, 0, 0))
    assert runner.stuck_frames == 0


def test_candidates_are_counted_once():
    # A motion of 40 m is looked at in pieces.
    world = CubeWorld()
    world.add_many([(x, -1, 0) for x in range(100)])
    runner = standing(world, (1.5, 0.03, 0.5))
    runner.step((2400, 0, 0))
    assert runner.candidates.count == len(world.query((1.2 - 0.04, -0.1, 0.2), (41.8 + 0.04, 1.9, 0.8)))


# ---------------------------------------------------------------- determinism

def test_hash_is_of_frame_and_position():
    runner = standing()
    a = runner.position_hash()
    runner.step((0, 0, 0))
    assert runner.position_hash() != a
    first, second = standing(), standing()
    first.step((1, 0, 0))
    second.step((1 + 1e-15, 0, 0))
    assert (first.position_hash() == second.position_hash()) == (first.feet == second.feet)


def test_same_hashes_again_in_any_order_thread_and_process():
    expected = mt.run_test_sequence(7, 300)
    assert len(expected) == 300 and len(set(expected)) > 290
    for shuffle in (1, 2):
        assert mt.run_test_sequence(7, 300, shuffle) == expected
    out = []
    thread = threading.Thread(target=lambda: out.append(mt.run_test_sequence(7, 300)))
    thread.start()
    thread.join()
    assert out == [expected]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(mt.run_test_sequence, (7, 300)) == expected
    assert mt.run_test_sequence(8, 300) != expected


def test_known_hashes():
    # The same bits on every machine; a change of behaviour shows here.
    assert mt.run_test_sequence(1, boxes=0)[::150] == KNOWN


KNOWN = [2120201723, 1282910438, 82218383, 4137658197]


def test_verify_determinism(caplog):
    assert mt.verify_determinism(3)
    counter = iter(range(10))
    assert not mt.verify_determinism(3, lambda seed: [17, next(counter)])
    assert "[DETERMINISM] FAILED: 0x00000000 vs 0x00000001" in [r.getMessage() for r in caplog.records]


def test_run_is_a_loop_of_steps():
    wishes = np.random.default_rng(0).uniform(-5, 5, (200, 3))
    wishes[:, 1] = 0
    jumps = np.arange(200) % 40 == 0
    world = flat()
    a, b = SweepSlideController(world, (0.5, 1, 0.5)), SweepSlideController(world, (0.5, 1, 0.5))
    positions, hashes = a.run(wishes, DT, jumps)
    for i in range(200):
        assert b.step(wishes[i], DT, bool(jumps[i])) == tuple(positions[i])
        assert b.position_hash() == hashes[i]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_step_many_is_a_loop_of_steps(threads):
    rng = np.random.default_rng(1)
    worlds = [flat(), flat(6)]
    worlds[1].add_array(rng.random((12, 3, 12)) < 0.2, (-6, 0, -6))
    many = [SweepSlideController(worlds[i % 2], (0.1 * i - 2, 5, 0.5)) for i in range(37)]
    one = [SweepSlideController(worlds[i % 2], (0.1 * i - 2, 5, 0.5)) for i in range(37)]
    for _ in range(60):
        wishes = rng.uniform(-5, 5, (37, 3))
        wishes[:, 1] = 0
        jumps = rng.random(37) < 0.1
        out = step_many(many, wishes, DT, jumps, threads=threads)
        for i, runner in enumerate(one):
            assert runner.step(wishes[i], DT, bool(jumps[i])) == tuple(out[i])
    assert step_many([], [], DT).shape == (0, 3)


def in_a_child(queue):
    runners = [standing(feet=(i + 0.5, 0.03, 0.5)) for i in range(4)]
    queue.put(step_many(runners, np.ones((4, 3)), threads=2).tolist())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    in_a_child(queue)
    expected = queue.get(timeout=60)
    child = context.Process(target=in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0


def test_save_and_restore_go_on_with_the_same_bits():
    rng = np.random.default_rng(3)
    wishes = rng.uniform(-5, 5, (300, 3))
    wishes[:, 1] = 0
    world = flat()
    runner = SweepSlideController(world, (0.5, 3, 0.5))
    runner.run(wishes[:100])
    data = runner.save()
    score, expected = runner.jitter_score, runner.run(wishes[100:])[1]
    runner.restore(data)
    assert runner.jitter_score == score and (runner.run(wishes[100:])[1] == expected).all()
    other = SweepSlideController(world, (9, 9, 9), radius=0.5)
    other.restore(data)
    assert (other.run(wishes[100:])[1] == expected).all()


# ---------------------------------------------------------------- microtests

@pytest.mark.parametrize("test", mt.MICROTESTS, ids=lambda f: f.__name__.upper())
def test_microtest(test):
    outcome = test({})
    assert outcome.passed, outcome.measured


def test_microtests_can_fail():
    assert not mt.t06({"ccd": False}).passed
    assert not mt.t08({"ground_grace_time": 0.0, "step_height": 0.0}).passed
    assert not mt.t07({"max_walkable_angle": 30.0}).passed
    assert not mt.t01({"gravity": 0.0}).passed


def test_command_line(capsys, monkeypatch):
    from pycct.cli.main import main

    assert main(["microtests", "T01", "t04"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["id", "setup", "expected", "measured", "pass"]
    assert out.count("pass\n") == 3 and "T04" in out and "T02" not in out
    assert main(["microtests", "T99"]) == 2
    monkeypatch.setattr(mt, "MICROTESTS", (lambda knobs, t01=mt.t01: t01({"gravity": 0.0}),))
    mt.MICROTESTS[0].__name__ = "t01"
    assert main(["microtests"]) == 1 and "FAIL" in capsys.readouterr().out


def test_command_line_as_a_module():
    done = subprocess.run([sys.executable, "-m", "pycct", "microtests", "T05"], capture_output=True, text=True)
    assert done.returncode == 0 and "T05" in done.stdout


def test_evidence(tmp_path):
    pytest.importorskip("matplotlib")
    from pycct.cube_world.report import write_evidence

    outcomes = mt.run_microtests(["T04", "T08"])
    names = {p.name for p in write_evidence(outcomes, tmp_path / "new" / "folder")}
    assert names == {f"{t}{end}" for t in ("T04", "T08") for end in ("-setup.png", "-key.png", ".log", ".json")}
    folder = tmp_path / "new" / "folder"
    assert (folder / "T04-key.png").read_bytes()[:4] == b"\x89PNG"
    assert "[SNAP]" in (folder / "T08.log").read_text() and '"passed": true' in (folder / "T08.json").read_text()


# ---------------------------------------------------------------- threads and bad input

def busy_thread(runner, frames=300000):
    """A thread that keeps a runner busy, and counts how often it was refused itself."""
    wishes = np.zeros((frames, 3))
    wishes[:, 0] = np.where(np.arange(frames) // 50 % 2, 3, -3)
    refused = []

    def long_run():
        while True:
            try:
                runner.run(wishes)
                return
            except RuntimeError as error:
                refused.append(str(error))
                # Else both could take turns in refusing one another.
                time.sleep(1e-4)

    thread = threading.Thread(target=long_run)
    thread.start()
    return thread, refused


def test_a_second_thread_is_refused():
    runner = SweepSlideController(flat(), (0.5, 3, 0.5))
    uses = (lambda: runner.feet, lambda: runner.hud(), lambda: runner.teleport((0, 1, 0)),
            lambda: runner.step((0, 0, 0)),
            lambda: step_many([runner], [(0, 0, 0)]), lambda: runner.configure(gravity=1.0), lambda: runner.save())
    thread, _ = busy_thread(runner)
    refused = [0] * len(uses)
    while thread.is_alive() and not all(refused):
        for i, use in enumerate(uses):
            try:
                use()
            except RuntimeError as error:
                assert "another thread" in str(error)
                refused[i] += 1
            # Lets the other one begin.
            time.sleep(1e-4)
    thread.join()
    assert all(refused)
    runner.step((0, 0, 0))


def test_step_many_gives_all_runners_back_when_one_is_taken():
    world = flat()
    free, taken = standing(world), standing(world, (3.5, 0.03, 0.5))
    thread, _ = busy_thread(taken)
    refused = False
    while thread.is_alive() and not refused:
        try:
            step_many([free, taken], np.zeros((2, 3)))
        except RuntimeError:
            refused = True
        time.sleep(1e-4)
    assert refused
    free.step((0, 0, 0))
    thread.join()


@pytest.mark.parametrize(("name", "value"), [
    ("radius", 0), ("radius", -1), ("radius", float("nan")), ("radius", 1e9), ("radius", "x"), ("half_height", -0.1),
    ("half_height", float("inf")), ("skin_width", -0.01), ("max_bumps", 0), ("max_bumps", 33), ("max_bumps", 2.5),
    ("max_bumps", True), ("max_clip_planes", 0), ("max_clip_planes", 17), ("stop_epsilon", -1), ("overclip", 0.9),
    ("overclip", 5), ("max_walkable_angle", 91), ("max_walkable_angle", -1), ("walkable_normal_y", 0),
    ("walkable_normal_y", 1.1), ("ground_grace_time", -1), ("ground_probe_margin", -1), ("probe_radius_scale", 0),
    ("probe_radius_scale", 1.5), ("step_height", -1), ("gravity", -1), ("gravity", float("inf")), ("jump_speed", -1),
    ("max_fall_speed", -1), ("max_depen_iters", -1), ("max_depen_iters", 1000), ("min_depen_dist", -1),
    ("jitter_frames", 1), ("jitter_frames", 121), ("max_depen_clamp", 0), ("stuck_frames_limit", -1),
    ("tie_epsilon", 1), ("ccd", 1), ("flatten_walls", "yes"),
    ("merge_faces", None), ("hysteresis", 0),
])
def test_bad_knobs_are_refused(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        SweepSlideController(CubeWorld(), (0, 0, 0), **{name: value})
    runner = SweepSlideController(CubeWorld(), (0, 0, 0))
    before = runner.config
    with pytest.raises((TypeError, ValueError), match=name):
        runner.configure(**{"gravity": 3.0, name: value})
    assert runner.config == before


def test_configure():
    runner = standing()
    runner.configure(gravity=5.0, max_walkable_angle=60.0, radius=0.4)
    c = runner.config
    assert c["gravity"] == 5.0 and c["walkable_normal_y"] == pytest.approx(0.5)
    assert c["skin_width"] == pytest.approx(0.04)
    with pytest.raises(TypeError, match="nonsense"):
        runner.configure(nonsense=1)
    with pytest.raises(ValueError, match="not both"):
        runner.configure(max_walkable_angle=30.0, walkable_normal_y=0.5)


@pytest.mark.parametrize("wish", [(1, 2), (1, 2, 3, 4), (0, 0, float("nan")), (float("inf"), 0, 0), (1e9, 0, 0), "abc",
                                  None, 5, {1, 2, 3}, (1, "2", 3), [[1, 2, 3]]])
def test_bad_wishes_are_refused(wish):
    runner = standing()
    before = runner.save()
    with pytest.raises((TypeError, ValueError), match="wish_velocity"):
        runner.step(wish)
    assert runner.save() == before


@pytest.mark.parametrize("jump", [1, None, "yes", np.array([True, False])])
def test_bad_jumps_are_refused(jump):
    with pytest.raises(TypeError, match="jump"):
        standing().step((0, 0, 0), DT, jump)


@pytest.mark.parametrize("dt", [0, -1, 11, float("nan"), float("inf"), "x", None])
def test_bad_durations_are_refused(dt):
    runner = standing()
    with pytest.raises((TypeError, ValueError), match="dt"):
        runner.step((0, 0, 0), dt)
    with pytest.raises((TypeError, ValueError), match="dt"):
        step_many([runner], [(0, 0, 0)], dt)


def test_bad_batches_are_refused():
    runner, other = standing(), standing()
    before = runner.save()
    for wishes in ([(0, 0)], [(0, 0, 0)] * 2, (0, 0, 0), [(0, 0, float("nan"))], [(0, 0, 1e9)]):
        with pytest.raises(ValueError, match="wish_velocities"):
            step_many([runner], wishes)
    with pytest.raises(TypeError, match="wish_velocities"):
        step_many([runner], [("a", "b", "c")])
    with pytest.raises(ValueError, match="twice"):
        step_many([runner, other, runner], np.zeros((3, 3)))
    with pytest.raises(TypeError, match="runners"):
        step_many([runner, "x"], np.zeros((2, 3)))
    with pytest.raises(ValueError, match="jump"):
        step_many([runner], np.zeros((1, 3)), DT, [True, False])
    with pytest.raises(TypeError, match="jump"):
        step_many([runner], np.zeros((1, 3)), DT, [1.0])
    with pytest.raises(ValueError, match="threads"):
        step_many([runner], np.zeros((1, 3)), DT, threads=0)
    assert runner.save() == before


def test_bad_places_are_refused():
    for bad in ((0, 0), (0, 0, float("nan")), (1e7, 0, 0)):
        with pytest.raises(ValueError, match="feet"):
            SweepSlideController(CubeWorld(), bad)
        runner = standing()
        with pytest.raises(ValueError, match="feet"):
            runner.teleport(bad)
        assert runner.grounded
    with pytest.raises(TypeError, match="world"):
        SweepSlideController(None, (0, 0, 0))
    with pytest.raises(TypeError, match="world"):
        SweepSlideController("world", (0, 0, 0))


def test_damaged_saves_are_refused():
    runner = standing()
    data = runner.save()
    for bad in (b"", data[:-1], data + b"x", b"x" + data[1:], "text", 5):
        with pytest.raises((TypeError, ValueError), match="data"):
            runner.restore(bad)
    rng = np.random.default_rng(0)
    for _ in range(500):
        raw = bytearray(data)
        for _ in range(rng.integers(1, 9)):
            raw[rng.integers(len(raw))] = rng.integers(256)
        try:
            runner.restore(bytes(raw))
        except ValueError:
            continue
        # Whatever it is now, it must not crash or hang.
        for _ in range(3):
            try:
                runner.step((1, 0, 0))
                runner.hud()
            except FloatingPointError:
                pass
        runner.restore(data)


def test_a_runner_that_was_never_initialised():
    bare = SweepSlideController.__new__(SweepSlideController)
    for use in (lambda: bare.step((0, 0, 0)), lambda: bare.feet, lambda: bare.hud(), lambda: bare.save(),
                lambda: bare.run(np.zeros((1, 3))), lambda: bare.teleport((0, 0, 0)),
                lambda: step_many([bare], [(0, 0, 0)])):
        with pytest.raises(RuntimeError):
            use()
    assert "SweepSlideController" in repr(bare)


@pytest.mark.parametrize("size", [(1e-3, 0.0), (1e-3, 1e-3), (0.05, 0.0), (2.0, 3.0), (30.0, 0.0), (0.3, 500.0)])
def test_sizes_from_a_millimetre_to_a_tower(size):
    world = flat(40)
    runner = SweepSlideController(world, (0.5, 2.0, 0.5), radius=size[0], half_height=size[1])
    for _ in range(90):
        runner.step((0.5, 0, 0.2))
    assert runner.grounded and runner.feet[1] == pytest.approx(runner.skin_width, abs=1e-5)
    assert runner.feet[0] > 0.6


@pytest.mark.parametrize("speed", [1e-300, 1e-12, 1e5, 1e6])
def test_extreme_speeds(speed):
    world = flat()
    mt.wall_x(world, 5)
    runner = standing(world)
    runner.step((speed, 0, 0))
    runner.step((speed, 0, 0), 10.0)
    assert all(math.isfinite(v) for v in runner.feet) and runner.feet[0] < 5 - 0.3
    runner.velocity = (0, 1e6, 0)
    for _ in range(20):
        runner.step((0, 0, 0), 10.0)
    assert all(math.isfinite(v) for v in runner.feet)


def test_far_from_the_origin():
    world = CubeWorld()
    world.add_many([(524200 + x, -524000, -524200 + z) for x in range(8) for z in range(8)])
    runner = SweepSlideController(world, (524203, -523997, -524197))
    for _ in range(120):
        runner.step((0.3, 0, 0.1))
    assert runner.grounded and runner.feet[1] == pytest.approx(-523999 + 0.03, abs=1e-6)


def test_falling_forever_ends_nowhere():
    runner = SweepSlideController(CubeWorld(), (0, 0, 0))
    for _ in range(1000):
        runner.step((1, 0, 0), 10.0)
    assert runner.feet[1] < -500000 and not runner.grounded


def test_names():
    assert {n for n in dir(sl) if n.startswith(("closest_", "clip_", "segment_", "sweep_", "capsule_"))} == {
        "closest_point_on_segment", "closest_point_on_aabb", "closest_points_segment_aabb", "segment_aabb_sweep",
        "clip_velocity", "clip_velocity_multi_plane", "capsule_aabb_overlap", "sweep_capsule_aabb"}
