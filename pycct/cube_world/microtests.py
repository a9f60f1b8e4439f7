"""Microtests of the sweep/slide controller (SLIDE 7.2, RULES 11), and its determinism check.

``python -m pycct microtests`` prints the table; ``--evidence DIR`` writes the evidence of SLIDE
7.3.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from pycct.cube_world.controller import SweepSlideController
from pycct.cube_world.cubes import CubeWorld

log = logging.getLogger("pycct.slide")

DT = 1.0 / 60.0

Vector = tuple[float, float, float]


@dataclass
class Track:
    """Recording of one runner in one microtest."""

    runner: SweepSlideController
    positions: list[Vector] = field(default_factory=list)
    grounded: list[bool] = field(default_factory=list)
    bumps: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    hooks: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """Closest pair, ground arrow and sweep mark at each position."""
    key: int = 0
    """Index of the position at the key moment."""

    def deltas(self) -> list[float]:
        """Distance moved in each frame, metres."""
        return [math.dist(a, b) for a, b in pairwise(self.positions)]

    def go(self, wish: Sequence[float], frames: int, jump: bool = False) -> None:
        """Step with one wish for some frames and record the positions."""
        for _ in range(frames):
            self.runner.step(wish, DT, jump)
            self.positions.append(self.runner.feet)
            self.grounded.append(self.runner.grounded)
            self.bumps.append(self.runner.bumps)
            self.hooks.append(_hooks(self.runner))

    def first_contact(self) -> int:
        """Index of the first position after a frame with a contact."""
        for i, n in enumerate(self.bumps):
            if n:
                return i + 1
        return len(self.positions) - 1


def _hooks(runner: SweepSlideController) -> tuple[Any, Any, Any]:
    return runner.closest_pair, runner.ground_arrow, runner.sweep_mark


@dataclass
class Outcome:
    """Verdict of one microtest."""

    id: str
    title: str
    setup: str
    expected: str
    measured: str
    passed: bool
    thresholds: dict[str, Any]
    tracks: list[Track]


class _Notes(logging.Handler):
    """Collects the controller's log lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """Collect all log lines of the sweep/slide controller while the block runs."""
    lines: list[str] = []
    handler = _Notes(lines)
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        yield lines
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate


def _start(world: CubeWorld, feet: Sequence[float], lines: list[str], knobs: dict[str, Any], settle: int = 2) -> Track:
    runner = SweepSlideController(world, feet, **knobs)
    for _ in range(settle):
        runner.step((0.0, 0.0, 0.0), DT)
    return Track(runner, positions=[runner.feet], lines=lines, hooks=[_hooks(runner)])


def floor(world: CubeWorld, half: int = 12, y: int = -1) -> None:
    """Add a square floor of cubes whose top is at y + 1."""
    world.add_many([(x, y, z) for x in range(-half, half) for z in range(-half, half)])


def wall_x(world: CubeWorld, x: int, height: int = 4, half: int = 12) -> None:
    """Add a wall of cubes that fills [x, x + 1]."""
    world.add_many([(x, y, z) for y in range(height) for z in range(-half, half)])


def wall_z(world: CubeWorld, z: int, height: int = 4, half: int = 12) -> None:
    """Add a wall of cubes that fills [z, z + 1]."""
    world.add_many([(x, y, z) for y in range(height) for x in range(-half, half)])


def ramp(world: CubeWorld, degrees: float, length: float = 8.0, width: float = 4.0) -> int:
    """Add a box rotated about z whose top rises along +x from the origin's level; return its id."""
    angle = math.radians(degrees)
    thick = 0.5
    # The middle of the lower top edge is at the origin.
    cx = 0.5 * length * math.cos(angle) + thick * math.sin(angle)
    cy = 0.5 * length * math.sin(angle) - thick * math.cos(angle)
    return world.add_box((cx, cy, 0.0), (0.5 * length, thick, 0.5 * width),
                         (0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)))


def t01(knobs: dict[str, Any]) -> Outcome:
    """Respawn fall."""
    world = CubeWorld()
    floor(world)
    with log_lines() as lines:
        track = _start(world, (0.5, 10.0, 0.5), lines, knobs, settle=0)
        track.go((0.0, 0.0, 0.0), 180)
    rest = track.runner.skin_width
    track.key = track.first_contact()
    error = abs(track.positions[-1][1] - rest)
    stable = max(track.deltas()[-30:])
    ok = error < 0.01 and stable < 1e-3 and track.runner.grounded
    return Outcome("T01", "Respawn Fall", "spawn at y=10 over a floor at y=0", "feet rest at the skin, grounded, still",
                   f"y={track.positions[-1][1]:.4f}, delta<={stable:.1e}, grounded={track.runner.grounded}", ok,
                   {"abs(y - skin) <": 0.01, "delta over 30 frames <": 1e-3}, [track])


def t02(knobs: dict[str, Any]) -> Outcome:
    """Corner wedge."""
    world = CubeWorld()
    floor(world)
    wall_x(world, 3)
    wall_z(world, 3)
    worst, jumped, tracks = 0.0, 0.0, []
    for wish in ((4.0, 0.0, 4.0), (4.0, 0.0, 1.5), (1.0, 0.0, 5.0)):
        with log_lines() as lines:
            track = _start(world, (1.5, 0.03, 1.7), lines, knobs)
            track.go(wish, 240)
        deltas = track.deltas()
        # The recording counts from the frame in which the runner has reached both walls.
        reach = 3.0 - track.runner.radius - track.runner.skin_width - 0.01
        track.key = next((i for i, p in enumerate(track.positions) if p[0] > reach and p[2] > reach), len(deltas) - 1)
        worst = max([worst, *deltas[track.key:]])
        jumped = max(jumped, max(deltas) - math.hypot(wish[0], wish[2]) * DT)
        tracks.append(track)
    ok = worst < 0.01 and jumped < 0.01
    return Outcome("T02", "Corner Wedge", "walks into a 90 degree corner, three directions",
                   "slides or stops, no teleport",
                   f"delta after contact<={worst:.1e}, beyond the step {max(jumped, 0.0):.1e}", ok,
                   {"delta after contact <": 0.01, "delta beyond the step <": 0.01}, tracks)


def t03(knobs: dict[str, Any]) -> Outcome:
    """Diagonal slide."""
    world = CubeWorld()
    floor(world)
    wall_x(world, 3)
    with log_lines() as lines:
        track = _start(world, (3.0 - 0.33, 0.03, -9.5), lines, knobs)
        track.go((3.0, 0.0, 3.0), 300)
    track.key = 150
    xs = [p[0] for p in track.positions[1:]]
    mean = sum(xs) / len(xs)
    variance = sum((x - mean) ** 2 for x in xs) / len(xs)
    steps = [b[2] - a[2] for a, b in pairwise(track.positions)]
    rough = max(abs(b - a) for a, b in pairwise(steps))
    travelled = track.positions[-1][2] - track.positions[0][2]
    ok = variance < 0.02 and rough < 0.01 and travelled > 0.9 * 3.0 * 300 * DT
    return Outcome("T03", "Diagonal Slide", "touches a wall of cubes, moves at 45 degrees",
                   "slides along the wall, smoothly",
                   f"x variance={variance:.1e}, change of dz<={rough:.1e}, z travelled={travelled:.2f} m", ok,
                   {"x variance <": 0.02, "change of dz <": 0.01, "z travelled >": 13.5}, [track])


def t04(knobs: dict[str, Any]) -> Outcome:
    """Held input jitter."""
    world = CubeWorld()
    floor(world)
    wall_x(world, 3)
    with log_lines() as lines:
        track = _start(world, (2.0, 0.03, 0.5), lines, knobs)
        track.go((5.0, 0.0, 0.0), 150)
    track.key = track.first_contact()
    held = track.deltas()[track.key:]
    worst = max(held)
    ok = worst < 0.001 and len(held) >= 120
    return Outcome("T04", "Held Input Jitter", "walks against a wall, input held 2 s", "position stable",
                   f"delta<={worst:.1e} over {len(held)} frames", ok, {"delta <": 0.001, "frames >=": 120}, [track])


def t05(knobs: dict[str, Any]) -> Outcome:
    """Deep overlap."""
    world = CubeWorld()
    cube = world.add((0, 0, 0))
    rounds, failed, n, tracks = 0, 0, 0, []
    for i in range(5):
        for j in range(7):
            for k in range(5):
                feet = (0.1 + 0.2 * i, -1.4 + 0.4 * j, 0.13 + 0.2 * k)
                with log_lines() as lines:
                    track = _start(world, feet, lines, knobs, settle=0)
                n += 1
                rounds = max(rounds, len(track.runner.depen_iterations))
                overlapping = any(o.id == cube for o in track.runner.overlaps())
                failed += overlapping
                if (i, j, k) == (2, 3, 2) or overlapping:
                    track.positions.insert(0, feet)
                    track.hooks.insert(0, (None, None, None))
                    track.key = 1
                    tracks.append(track)
    ok = failed == 0 and rounds < 10
    return Outcome("T05", "Deep Overlap", f"spawns inside a cube, {n} places", "pushed out cleanly",
                   f"still overlapping: {failed}, iterations<={rounds}", ok,
                   {"overlap": False, "iterations <": 10}, tracks)


def t06(knobs: dict[str, Any]) -> Outcome:
    """High-speed tunnel."""
    world = CubeWorld()
    floor(world, 30)
    wall_x(world, 20, half=3)
    most, tracks = -1e9, []
    for offset in range(12):
        with log_lines() as lines:
            track = _start(world, (0.31 + 0.14 * offset, 0.03, 0.5), lines, knobs)
            track.go((100.0, 0.0, 0.0), 40)
        track.key = track.first_contact()
        most = max([most, *(p[0] for p in track.positions)])
        tracks.append(track)
    limit = 20.0 - tracks[0].runner.radius
    return Outcome("T06", "High-Speed Tunnel", "100 m/s towards a wall at x=20, twelve starts", "stops at the wall",
                   f"x<={most:.4f} (wall - radius = {limit:.4f})", most < limit, {"x <": limit}, tracks[:1])


def t07(knobs: dict[str, Any]) -> Outcome:
    """Slope limit."""
    results: list[str] = []
    tracks, ok = [], True
    for degrees in (44.0, 46.0):
        world = CubeWorld()
        floor(world)
        ramp(world, degrees)
        with log_lines() as lines:
            track = _start(world, (-1.0, 0.03, 0.0), lines, knobs)
            track.go((3.0, 0.0, 0.0), 90)
        track.key = len(track.positions) - 1
        climbed = track.positions[-1][1] - track.positions[0][1]
        # A second runner starts on the slope without a wish; its first frame finds the ground.
        angle = math.radians(degrees)
        skin, radius = track.runner.skin_width, track.runner.radius
        up = 3.0 * math.sin(angle) + (radius + skin) * math.cos(angle) - radius + 1e-4
        along = 3.0 * math.cos(angle) - (radius + skin) * math.sin(angle)
        with log_lines() as lines:
            put = _start(world, (along, up, 0.0), results, knobs, settle=0)
            probe = put.runner.probe_ground()
            put.go((0.0, 0.0, 0.0), 30)
        measured = math.degrees(math.acos(min(1.0, probe.normal[1])))
        slid = put.positions[1][1] - put.positions[-1][1]
        if degrees < 45.0:
            ok = ok and climbed > 1.0 and track.runner.grounded and probe.walkable and slid < 1e-3
        else:
            ok = ok and climbed < 0.1 and not probe.walkable and slid > 0.5
        ok = ok and probe.hit and abs(measured - degrees) < 0.1
        results.append(f"{degrees:.0f}: climbed {climbed:.2f} m, slid {slid:.2f} m, angle {measured:.2f}")
        tracks += [track, put]
    return Outcome("T07", "Slope Limit", "ramps of 44 and 46 degrees", "climbs 44, slides off 46, angle correct",
                   "; ".join(results), ok,
                   {"abs(angle - ramp) <": 0.1, "44 climbed >": 1.0, "46 climbed <": 0.1, "46 slid >": 0.5}, tracks)


def t08(knobs: dict[str, Any]) -> Outcome:
    """Step down."""
    lost, rest, tracks = 0, 0.0, []
    for speed in (1.0, 2.0, 3.0, 4.5, 6.0):
        world = CubeWorld()
        floor(world)
        world.add_box((-5.0, 0.15, 0.0), (5.0, 0.15, 3.0))
        with log_lines() as lines:
            track = _start(world, (-1.0, 0.33, 0.0), lines, knobs)
            track.go((speed, 0.0, 0.0), round(120 / speed) + 20)
        track.key = next((i for i, p in enumerate(track.positions) if p[1] < 0.2), len(track.positions) - 1)
        lost += track.grounded[1:].count(False)
        rest = max(rest, abs(track.positions[-1][1] - track.runner.skin_width))
        tracks.append(track)
    ok = lost == 0 and rest < 0.01
    return Outcome("T08", "Step-Down", "walks off a ledge of 0.3, five speeds", "snaps to the ground",
                   f"frames not grounded: {lost}, abs(y - skin)<={rest:.1e}", ok,
                   {"frames not grounded": 0, "abs(y - skin) <": 0.01}, tracks[2:3])


def t09(knobs: dict[str, Any]) -> Outcome:
    """Multi-cube corner."""
    world = CubeWorld()
    floor(world)
    cubes = {world.add(c) for c in ((1, 0, 0), (0, 0, 1), (1, 0, 1))}
    with log_lines() as lines:
        track = _start(world, (0.4, 0.03, 0.45), lines, knobs)
        track.go((4.0, 0.0, 3.0), 180)
    both = next((i for i, n in enumerate(track.bumps) if n >= 2), 0)
    track.key = both + 1
    worst = max(track.deltas()[both + 1:])
    touched = len(cubes.intersection(track.runner.contacts))
    ok = touched >= 2 and worst < 0.01
    return Outcome("T09", "Multi-Cube Corner", "pushes into the corner of three cubes", "stable, no explosion",
                   f"contacts={touched}, delta<={worst:.1e}", ok, {"contacts >=": 2, "delta <": 0.01}, [track])


def t10(knobs: dict[str, Any]) -> Outcome:
    """Edge graze."""
    world = CubeWorld()
    floor(world)
    world.add_many([(2, 0, z) for z in range(-12, 12)])
    speed = 4.0
    most, least, tracks = 0.0, 1e9, []
    # Beside the row, exactly at radius and at skin distance, and on top along its edge.
    radius, skin = 0.3, 0.03
    starts = [(2.0 - radius - gap, 0.03) for gap in (0.0, 1e-9, 1e-4, 0.5 * skin, skin, skin + 1e-9)]
    starts += [(2.0 + inside, 1.03) for inside in (0.0, 0.1, 0.3)]
    for x, y in starts:
        with log_lines() as lines:
            track = _start(world, (x, y, -9.5), lines, knobs)
            track.go((0.0, 0.0, speed), 270)
        most = max([most, *track.deltas()])
        least = min(least, track.positions[-1][2] - track.positions[0][2])
        track.key = 135
        tracks.append(track)
    limit = 2.0 * speed * DT
    ok = most <= limit and least > 0.95 * speed * 270 * DT
    return Outcome("T10", "Edge Graze", "moves along the edge of a row of cubes, nine offsets", "smooth movement",
                   f"delta<={most:.4f} (2 x normal = {limit:.4f}), z travelled>={least:.2f} m", ok,
                   {"delta <=": limit, "z travelled >": 17.1}, [tracks[0], tracks[7]])


MICROTESTS: tuple[Callable[[dict[str, Any]], Outcome], ...] = (t01, t02, t03, t04, t05, t06, t07, t08, t09, t10)


def run_microtests(ids: Sequence[str] | None = None, knobs: dict[str, Any] | None = None) -> list[Outcome]:
    """Run the microtests.

    Parameters
    ----------
    ids : sequence of str, optional
        Microtests to run, "T01" to "T10"; the default is all.
    knobs : dict, optional
        Constructor arguments of `SweepSlideController` that differ from the defaults.

    Returns
    -------
    list of Outcome
    """
    wanted = None if ids is None else {i.upper() for i in ids}
    known = {f.__name__.upper(): f for f in MICROTESTS}
    if wanted is not None and not wanted <= set(known):
        raise ValueError(f"ids must be T01 to T10, got {', '.join(sorted(wanted - set(known)))}")
    return [f(dict(knobs or {})) for name, f in known.items() if wanted is None or name in wanted]


def table(outcomes: Sequence[Outcome]) -> str:
    """Format the outcomes as text, one row each."""
    head = ("id", "setup", "expected", "measured", "pass")
    rows = [(o.id, o.setup, o.expected, o.measured, "pass" if o.passed else "FAIL") for o in outcomes]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(5)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in [head, *rows])


# ---------------------------------------------------------------- determinism

def run_test_sequence(seed: int, frames: int = 600, shuffle: int = 0, boxes: int = 6) -> list[int]:
    """Step through a random field of cubes and boxes with random input.

    Parameters
    ----------
    seed : int
        Determines world and input.
    frames : int, default 600
    shuffle : int, default 0
        Determines the order of insertion into the world, which must not change the result.
    boxes : int, default 6
        Number of rotated boxes in the field.

    Returns
    -------
    list of int
        `SweepSlideController.position_hash` after each frame.
    """
    dice = random.Random(seed)
    world = CubeWorld()
    adds: list[Callable[[], Any]] = []
    for x in range(-8, 8):
        for z in range(-8, 8):
            adds.append(partial(world.add, (x, -1, z)))
            for y in range(4):
                if dice.random() < 0.2:
                    adds.append(partial(world.add, (x, y, z)))
    for _ in range(boxes):
        centre = [dice.uniform(-8, 8), dice.uniform(0, 3), dice.uniform(-8, 8)]
        half = [dice.uniform(0.2, 1.5) for _ in range(3)]
        axis = [dice.uniform(-1, 1) for _ in range(4)]
        norm = math.sqrt(sum(a * a for a in axis))
        adds.append(partial(world.add_box, centre, half, [a / norm for a in axis]))
    random.Random(shuffle).shuffle(adds)
    for add in adds:
        add()
    runner = SweepSlideController(world, (0.5, 6.0, 0.5))
    hashes = []
    wish = (0.0, 0.0, 0.0)
    for frame in range(frames):
        if frame % 15 == 0:
            wish = (dice.uniform(-6, 6), 0.0, dice.uniform(-6, 6))
        runner.step(wish, DT, dice.random() < 0.05)
        hashes.append(runner.position_hash())
    return hashes


def verify_determinism(seed: int = 1, sequence: Callable[[int], Sequence[int]] | None = None) -> bool:
    """Run the same input twice and compare the hash of every frame (SLIDE 7.4).

    Parameters
    ----------
    seed : int, default 1
    sequence : callable, optional
        Takes the seed and returns a list of hashes. The default is `run_test_sequence`; its second
        run inserts in another order.

    Returns
    -------
    bool
        Whether all hashes agree. Otherwise the log contains ``[DETERMINISM] FAILED: 0x... vs
        0x...`` with the hashes of the first frame that differs.
    """
    if sequence is None:
        first: Sequence[int] = run_test_sequence(seed)
        second: Sequence[int] = run_test_sequence(seed, shuffle=1)
    else:
        first, second = sequence(seed), sequence(seed)
    for a, b in zip(first, second, strict=False):
        if a != b:
            log.error("[DETERMINISM] FAILED: 0x%08X vs 0x%08X", a, b)
            return False
    if len(first) != len(second):
        log.error("[DETERMINISM] FAILED: %d frames vs %d", len(first), len(second))
        return False
    return True
