"""Characters that walk fixed tours through the demo level, and a summary of their walks.

The policy is simple and deterministic. A character turns towards its next waypoint, jumps if it has
been blocked for half a second (where the tour allows it), and gives the waypoint up after one and a
half.
"""
from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, CollisionFlags, Mesh, Scene
from pycct.cli.demo.level import Level

__all__ = ["DT", "SETTINGS", "TOURS", "Tour", "TourSummary", "Walk", "summarise", "walk"]

DT = 1.0 / 60.0
# 1.8 m tall; the limits are steps of 0.4 m and slopes of 45 degrees.
RADIUS, HEIGHT, CONTACT_OFFSET, STEP_OFFSET, SLOPE_LIMIT = 0.35, 1.1, 0.02, 0.4, math.sqrt(0.5)
HALF_HEIGHT = HEIGHT / 2 + RADIUS
SETTINGS: dict[str, Any] = {
    "radius": RADIUS,
    "height": HEIGHT,
    "contact_offset": CONTACT_OFFSET,
    "step_offset": STEP_OFFSET,
    "slope_limit": SLOPE_LIMIT,
    "climbing_mode": "constrained",
}

GRAVITY = 9.81  # m/s^2
JUMP_SPEED = 4.0  # m/s: 0.8 m high
TERMINAL_SPEED = 30.0  # m/s
SLOWEST, FASTEST = 3.2, 5.0  # m/s
TURN = 0.12  # share of the angle to the desired heading that one frame turns
REACHED = 0.6  # m from a waypoint
HELD_UP = 0.35  # a character below this share of its desired speed is blocked
JUMP_AFTER, GIVE_UP_AFTER = 0.5, 1.5  # s
FALL = STEP_OFFSET  # m: a deeper drop without a jump is a fall
SMALLEST_STEP = 0.05  # m


@dataclass(frozen=True)
class Tour:
    """A round of waypoints.

    Attributes
    ----------
    name : str
        Name in the legend.
    start : tuple of two floats
        Middle of the starting line-up, m.
    waypoints : tuple of (x, y, spread)
        m; walkers of one tour keep a sideways distance of up to `spread`.
    jumps : bool
        Whether characters jump if blocked. A jump can climb a slope that is not walkable, so tours
        that show such slopes have none.
    """

    name: str
    start: tuple[float, float]
    waypoints: tuple[tuple[float, float, float], ...]
    jumps: bool = True


TOURS = (
    Tour("stairs, ledges", (-18.0, 5.0), (
        (-20.9, 7.5, 0.3), (-20.9, 11.0, 0.3), (-14.0, 11.0, 1.5), (-8.8, 11.2, 2.0), (-3.0, 11.2, 2.0),
        (1.0, 11.0, 2.0), (4.5, 3.0, 0.8), (1.0, -3.0, 0.8), (-6.0, 4.0, 1.0), (-17.0, 5.0, 1.0),
    )),
    Tour("ramp 30°, kerbs", (-19.0, -12.5), (
        (-20.0, -9.0, 0.8), (-20.0, -2.5, 1.0), (-18.0, 1.5, 1.5), (-7.5, 3.0, 1.0), (-5.5, -2.5, 0.5),
        (-0.5, -2.0, 2.2), (-0.5, 7.5, 2.2), (5.0, 10.0, 1.0), (10.0, 8.0, 1.5), (7.5, -2.5, 1.0),
    )),
    Tour("ramp 40°, balcony", (-15.0, -12.5), (
        (-16.25, -8.5, 0.8), (-16.25, -2.5, 0.8), (-9.5, -2.5, 0.8), (-9.5, 2.0, 1.0), (-17.0, 6.5, 0.8),
        (-20.9, 8.0, 0.3), (-20.9, 11.0, 0.3), (-13.0, 11.0, 1.2), (-12.5, 4.5, 1.5), (-6.0, 2.0, 0.6),
        (-5.6, -6.0, 0.6),
    )),
    Tour("ramps too steep", (-10.5, -12.5), (
        (-12.5, -8.0, 0.8), (-12.5, -2.5, 0.8), (-8.75, -8.0, 0.8), (-8.75, -2.5, 0.8), (-5.2, -8.5, 0.6),
        (-4.9, -3.0, 0.5), (4.0, -3.2, 0.8), (6.8, -11.5, 0.6), (-5.5, -11.8, 1.0),
    ), jumps=False),
    Tour("pillars", (7.3, -9.0), (
        (-4.6, -12.0, 1.0), (-5.0, -8.6, 0.5), (6.4, -12.0, 1.0), (6.4, -9.0, 1.0), (-4.6, -6.4, 0.8),
        (0.0, -14.3, 0.3), (3.3, -6.0, 0.4), (7.0, -4.0, 0.8), (7.5, -13.0, 0.6),
    )),
    Tour("tunnel, gaps", (8.0, -13.0), (
        (9.2, -11.7, 0.4), (18.3, -11.7, 0.4), (19.0, -9.4, 0.4), (9.0, -9.4, 0.4), (19.0, -6.5, 0.6),
        (15.0, -5.75, 0.08), (12.0, -5.75, 0.08), (11.6, -3.75, 0.1), (15.5, -3.75, 0.0), (8.5, -4.5, 0.8),
        (8.0, -12.0, 0.4),
    ), jumps=False),
    Tour("terrain", (8.0, -2.5), (
        (11.0, 4.5, 1.5), (16.5, 9.0, 1.6), (20.0, 12.5, 1.0), (12.0, 12.0, 1.8), (8.5, 7.5, 1.5), (15.0, 1.5, 1.5),
        (20.0, 4.0, 1.2), (13.0, 7.0, 1.5), (9.0, 1.0, 1.2),
    )),
    Tour("kerbs, plaza", (-1.0, -3.5), (
        (-0.5, -1.2, 2.6), (-0.5, 7.6, 2.6), (4.6, 7.0, 0.6), (4.6, -1.2, 0.6), (-0.5, -2.2, 2.6), (-0.5, 4.2, 2.6),
        (-5.6, 4.4, 0.6), (-5.4, -2.0, 0.5),
    )),
)


@dataclass
class Walk:
    """A recorded walk: T frames of n characters.

    Attributes
    ----------
    positions : ndarray, (T + 1, n, 3)
        Capsule centres, m; the first row is the start.
    displacements : ndarray, (T, n, 3)
        Displacements of the moves, m.
    flags : ndarray, (T, n) uint8
        Collision flags.
    grounded, jumped : ndarray, (T, n) bool
        Whether the move ended on ground; whether it started a jump.
    tours : ndarray, (n,) int
        Index into `TOURS`.
    microseconds : ndarray, (T,)
        Mean time of a move in each frame.
    """

    positions: NDArray[np.float64]
    displacements: NDArray[np.float64]
    flags: NDArray[np.uint8]
    grounded: NDArray[np.bool_]
    jumped: NDArray[np.bool_]
    tours: NDArray[np.int64]
    microseconds: NDArray[np.float64]


@dataclass(frozen=True)
class TourSummary:
    """One row of the summary: distances in m, counts over all characters of the tour."""

    name: str
    characters: int
    walked: float
    steps_climbed: int
    jumps: int
    falls: int
    deepest_fall: float


def _line_up(tours: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return starts (n, 3): four abreast, two deep, feet just above the plaza."""
    middle = np.array([t.start for t in TOURS])[tours]
    place = rank % 8
    offset = np.stack([(place % 4 - 1.5) * 0.8, (place // 4 - 0.5) * 0.9], axis=-1)
    height = np.full((len(tours), 1), HALF_HEIGHT + CONTACT_OFFSET)
    return np.concatenate([middle + offset, height], axis=1)


def walk(
    level: Level, characters: int = 64, seconds: float = 20.0, on_frame: Callable[[int], None] | None = None
) -> Walk:
    """Walk characters through the level.

    Parameters
    ----------
    level : Level
        The level.
    characters : int
        Number of characters; they are distributed over the tours.
    seconds : float
        Duration, s.
    on_frame : callable, optional
        Receives the number of completed frames.

    Returns
    -------
    Walk
        The same numbers at every call, except for the times.
    """
    n, frames = characters, max(1, round(seconds / DT))
    index = np.arange(n)
    tours, rank = index % len(TOURS), index // len(TOURS)
    lane = ((rank * 3) % 8 - 3.5) / 3.5  # side by side; neighbours in line differ much in rank
    speed = SLOWEST + (FASTEST - SLOWEST) * ((index * 0.618034) % 1.0)

    may_jump = np.array([t.jumps for t in TOURS])[tours]
    longest = max(len(t.waypoints) for t in TOURS)
    counts = np.array([len(t.waypoints) for t in TOURS])[tours]
    points = np.array([[t.waypoints[k % len(t.waypoints)] for k in range(longest)] for t in TOURS])[tours]

    scene = Scene()
    scene.add(Mesh(level.vertices, level.triangles, triangle_data=level.part))
    positions = np.empty((frames + 1, n, 3))
    positions[0] = _line_up(tours, rank)
    heroes = [CharacterController(scene, position=tuple(p), **SETTINGS) for p in positions[0].tolist()]

    result = _blank(positions, tours)
    goal = np.zeros(n, dtype=np.int64)
    first = points[index, goal, :2] - positions[0, :, :2]
    velocity = first / np.linalg.norm(first, axis=1, keepdims=True) * speed[:, None]
    falling = np.zeros(n)  # vertical speed in the air
    grounded = np.ones(n, dtype=bool)
    held_up = np.zeros(n)

    for frame in range(frames):
        here = positions[frame]
        way = _way(points[index, goal], points[index, (goal - 1) % counts], lane, here)
        distance = np.linalg.norm(way, axis=1)
        velocity += (way / np.maximum(distance, 1e-9)[:, None] * speed[:, None] - velocity) * TURN

        jump = may_jump & grounded & (np.abs(held_up - JUMP_AFTER) < DT / 2)
        falling = np.where(grounded, 0.0, np.maximum(falling - GRAVITY * DT, -TERMINAL_SPEED))
        falling[jump] = JUMP_SPEED
        displacement = result.displacements[frame]
        displacement[:, :2] = velocity * DT
        # On the ground, the downward motion equals the forward motion and so keeps contact on any
        # slope within the limit.
        displacement[:, 2] = np.where(grounded & ~jump, -speed, falling) * DT

        _move_all(heroes, result, frame)
        result.jumped[frame] = jump
        grounded = result.grounded[frame]
        bumped = (result.flags[frame] & int(CollisionFlags.UP)) != 0
        falling = np.where(bumped & (falling > 0), 0.0, falling)

        went = np.linalg.norm(positions[frame + 1, :, :2] - here[:, :2], axis=1)
        held_up = np.where(went < HELD_UP * speed * DT, held_up + DT, 0.0)
        done = (distance < REACHED) | (held_up > GIVE_UP_AFTER)
        held_up[done] = 0.0
        goal = np.where(done, (goal + 1) % counts, goal)
        if on_frame is not None:
            on_frame(frame + 1)
    return result


def _blank(positions: NDArray[np.float64], tours: NDArray[Any]) -> Walk:
    """A walk with room for the results of all frames."""
    frames, n = len(positions) - 1, len(tours)
    return Walk(
        positions=positions,
        displacements=np.empty((frames, n, 3)),
        flags=np.zeros((frames, n), dtype=np.uint8),
        grounded=np.zeros((frames, n), dtype=bool),
        jumped=np.zeros((frames, n), dtype=bool),
        tours=tours,
        microseconds=np.empty(frames),
    )


def _way(
    waypoint: NDArray[np.float64], before: NDArray[np.float64], lane: NDArray[Any], here: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Horizontal vectors (n, 2) from positions to waypoints, each on its lane beside the line."""
    ahead = waypoint[:, :2] - before[:, :2]
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    beside = np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1) * (lane * waypoint[:, 2])[:, None]
    way: NDArray[np.float64] = waypoint[:, :2] + beside - here[:, :2]
    return way


def _move_all(heroes: list[CharacterController], result: Walk, frame: int) -> None:
    """Make the moves of a frame, and store what they return and how long they take."""
    moves = result.displacements[frame].tolist()
    began = time.perf_counter_ns()
    flags = [hero.move(move, DT) for hero, move in zip(heroes, moves, strict=True)]
    result.microseconds[frame] = (time.perf_counter_ns() - began) / 1e3 / len(heroes)
    result.positions[frame + 1] = [hero.position for hero in heroes]
    result.flags[frame] = flags
    result.grounded[frame] = [hero.grounded for hero in heroes]


def _standing_on(level: Level, feet: NDArray[np.float64]) -> NDArray[np.float64]:
    """Height of the step (or of the plaza) under feet (n, 3); NaN over other ground.

    The feet rise before the centre is over the next step, because the round end of the capsule
    rolls over the edge.
    """
    x0, x1, y0, y1, z = level.treads.T
    x, y, foot = feet[:, 0, None], feet[:, 1, None], feet[:, 2, None]
    above = foot - np.append(z, 0.0)
    near = (above > -0.1) & (above < STEP_OFFSET + 0.05)
    near[:, :-1] &= (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    top = np.where(near, np.append(z, 0.0), -np.inf).max(axis=1)
    return np.where(np.isfinite(top), top, np.nan)


def falls_and_steps(walked: Walk, level: Level) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Find falls and climbed steps.

    Parameters
    ----------
    walked : Walk
        Paths.
    level : Level
        The level with its treads.

    Returns
    -------
    falls : ndarray, (k, 5)
        Character, frame of the landing, depth (m), and the position (x, y) where the ground was
        lost: drops deeper than a step that no jump started.
    steps : ndarray, (n,) int
        Treads and kerbs that each character climbed on foot.
    """
    frames, n = walked.grounded.shape
    feet = walked.positions - [0, 0, HALF_HEIGHT]
    last_foot = feet[0].copy()
    last_tread = _standing_on(level, feet[0])
    jumping = np.zeros(n, dtype=bool)
    steps = np.zeros(n, dtype=np.int64)
    falls: list[tuple[float, ...]] = []
    for frame in range(frames):
        jumping |= walked.jumped[frame]
        grounded, foot = walked.grounded[frame], feet[frame + 1]
        depth = last_foot[:, 2] - foot[:, 2]
        for i in np.flatnonzero(grounded & ~jumping & (depth > FALL)):
            falls.append((float(i), float(frame), *(float(v) for v in (depth[i], *last_foot[i, :2]))))
        tread = np.where(grounded, _standing_on(level, foot), np.nan)
        rise = tread - last_tread
        steps += ~jumping & (rise > SMALLEST_STEP) & (rise <= STEP_OFFSET)
        # Off the treads, the last one is kept only in the air, so that a ramp does not count as a
        # step.
        last_tread = np.where(grounded, tread, last_tread)
        last_foot[grounded] = foot[grounded]
        jumping &= ~grounded
    return np.array(falls).reshape(-1, 5), steps


def summarise(walked: Walk, level: Level) -> list[TourSummary]:
    """Summarise each tour.

    Parameters
    ----------
    walked : Walk
        Paths.
    level : Level
        Level of the walk.

    Returns
    -------
    list of TourSummary
        One for each tour, then one over all.
    """
    falls, steps = falls_and_steps(walked, level)
    legs = np.linalg.norm(np.diff(walked.positions[..., :2], axis=0), axis=2).sum(axis=0)
    jumps = walked.jumped.sum(axis=0)

    def row(name: str, chosen: NDArray[np.bool_]) -> TourSummary:
        theirs = falls[chosen[falls[:, 0].astype(int)]]
        return TourSummary(
            name,
            int(chosen.sum()),
            float(legs[chosen].sum()),
            int(steps[chosen].sum()),
            int(jumps[chosen].sum()),
            len(theirs),
            float(theirs[:, 2].max(initial=0.0)),
        )

    rows = [row(tour.name, walked.tours == k) for k, tour in enumerate(TOURS) if (walked.tours == k).any()]
    return [*rows, row("all", np.ones(len(legs), dtype=bool))]
