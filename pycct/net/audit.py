"""Validation of claimed movement: repeated moves, or positions that can be reached."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import Actor, ClimbingMode, CollisionFlags, Crowd, Scene
from pycct.net.checks import as_number, as_rows, as_tick, as_whole
from pycct.net.ghosts import STRIDE, STRIDES, Ghosts, dot, kinds_of

__all__ = ["Audit", "Reason", "Verdicts"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DOWN = int(CollisionFlags.DOWN)
PARAMETERS = (
    "radius", "height", "up", "step_offset", "contact_offset", "slope_limit", "climbing_mode", "non_walkable_mode",
    "rules", "overlap_recovery", "prevent_vertical_sliding", "invisible_wall_height", "max_jump_height", "mask",
)
# Excess distance from which a claim counts as a teleport, metres.
TELEPORT = 0.5
# How near a repeated way of USUAL ticks must come to the claim, and how far below a claim the
# ground may be, metres.
NEAR, SKIN = 0.05, 0.02
# Limit of that distance for any number of ticks, metres. It is less than the radius of a character,
# so that no claim passes a wall.
NEAREST = 0.15
USUAL = 3
# How far beside the straight way something may have been touched, metres.
BESIDE = (0.0, 0.1, -0.1, 0.2, -0.2)
AROUND = (
    *((x, y) for x in (0.0, 0.1, -0.1) for y in (0.0, 0.1, -0.1)), (0.2, 0.0), (-0.2, 0.0), (0.0, 0.2),
    # Small offsets find an edge that the capsule barely touches.
    (0.01, 0.0), (-0.01, 0.0), (0.03, 0.0), (-0.03, 0.0),
)
# Excess speed of a fall that gravity alone does not explain, m/s.
SUDDEN = 0.25
# How near a platform must come to shove or hold a character, metres.
TOUCH = 0.1
# Longest move of the first attempt, metres.
LONG_STRIDE = 0.6
# Excess way that is forgiven, in tolerances: both ends of a way are rounded.
FORGIVEN = 2.0
# How far down the ground under a flight is looked for, metres.
DEEP = 4.0
# Longest disagreement of two honest clocks, as a share of the time that passes.
DRIFT = 0.001
# Ways that the search tries: the detour as a share of the widest one that the speed allows, the
# share of the highest jump, the share that is walked before it, and whether the rest is flown.
WAYS = tuple(
    (share, lift, walked, flies)
    for share in (0.0, 1.0, -1.0, 0.5, -0.5)
    for walked in (0.0, 0.5)
    for lift, flies in ((0.0, False), (1.0, True), (0.5, True), (1.0, False))
)
# Most ticks that one claim may cover.
LONGEST = 600
# A walk that ends this near to its claim on the ground, and farther from moving things, is possible
# whatever those do, metres.
CLEAR = 0.5
# Pairs of claims and moving things that are compared at most; beyond that all are near.
MOST_PAIRS = 1 << 20
# Claims farther from moving things do not depend on their poses, metres.
FAR = DEEP + 1.0
# Ticks whose platforms are kept.
KEPT = 256


class Reason(IntEnum):
    """Reason of a refused claim; `NONE` for an accepted one."""

    NONE = 0
    SPEED = 1
    BLOCKED = 2
    FLIGHT = 3
    STEP = 4
    TELEPORT = 5
    TIME = 6


WORDS = {
    Reason.NONE: "is possible",
    Reason.SPEED: "moves faster than {speed:g} m/s: {error:.4g} m too far in {ticks} ticks",
    Reason.BLOCKED: "passes through something: the way ends {error:.4g} m before the claim",
    Reason.FLIGHT: "is {error:.4g} m higher than a jump or fall can be after {ticks} ticks",
    Reason.STEP: "climbs a step that is too high: the way ends {error:.4g} m from the claim",
    Reason.TELEPORT: "is {error:.4g} m farther than {speed:g} m/s allow in {ticks} ticks",
    Reason.TIME: "has a tick that the client's clock cannot have reached, or that is not new: {error:.4g} m are gained",
}


class Verdicts(NamedTuple):
    """Results of `Audit.check`, one row per claim.

    Attributes
    ----------
    ok : (n,) bool
        True if the claim is possible.
    error : (n,) float64
        By how much the claim is wrong, metres; 0 where it is possible, inf where it is not finite.
    reason : (n,) int8
        `Reason` of each claim.
    position : (n, 3) float64
        The claim where it is possible; elsewhere a possible position near to it.
    """

    ok: Bools
    error: Doubles
    reason: NDArray[np.int8]
    position: Doubles


class _Motion(NamedTuple):
    """Ways of claims, a row per claim."""

    start: Doubles
    up: Doubles
    # Of the way: upwards, and across up, m.
    high: Doubles
    flat: Doubles
    # Excess way of this and former claims, m.
    debt: Doubles
    # True if no speed is exceeded and the way is not too long to repeat.
    fair: Bools


class _Platforms(NamedTuple):
    """Platforms, doors and obstacles at one tick, in the order of their ids."""

    ids: Ints
    places: Doubles
    turns: Doubles
    bounds: Doubles

    def poses(self, ids: Ints) -> Doubles:
        """Return positions and rotations, (n, 7); nan for a platform that did not exist."""
        at, here = _positions_of(ids, self.ids)
        out = np.full((len(ids), 7), np.nan)
        out[here, :3], out[here, 3:] = self.places[at], self.turns[at]
        return out


class _Batch(NamedTuple):
    """Results of one call of `check`, for `accept` and `explain`."""

    error: Doubles
    reason: NDArray[np.int8]
    claim: Doubles
    position: Doubles
    tick: Ints
    ticks: Ints
    lead: Doubles
    # State of the members if they are accepted.
    state: dict[str, NDArray[Any]]
    inputs: Doubles | None


@dataclass
class _Claims:
    """Claims of one call of `_reach`, and the results so far, a row per claim."""

    rows: Ints                  # of the members
    claim: Doubles
    n: Ints                     # ticks since the last accepted claim
    tick: int                   # of the claims
    up: Doubles
    before: Bools               # the member was on the ground
    still: Doubles              # last accepted position
    supported: Bools            # the claim is on the ground
    ground: Ints                # id of the platform below the claim, -1: none
    carry: Doubles              # way of the platform that the member stood on
    start: Doubles              # last accepted position, carried by a platform
    lift: Doubles               # upward speed of that platform, m/s
    high: Doubles               # of the way from start to claim: upwards, m
    flat: Doubles               # and across up, m
    far: Doubles                # length of `flat`, m
    verdict: NDArray[np.int8]
    miss: Doubles               # error, m
    debt: Doubles               # excess way of this and former claims, m
    allow: Doubles              # greatest rise, m
    landed: Bools               # the member may have touched the ground on the way
    end: Doubles                # end of the repeated way


@dataclass
class _Result:
    """Arrays that `check` fills, a row per claim."""

    error: Doubles
    reason: NDArray[np.int8]
    position: Doubles
    out: dict[str, NDArray[Any]]

    def columns(self) -> list[NDArray[Any]]:
        """Return all arrays."""
        return [self.error, self.reason, self.position, *self.out.values()]


def _positions_of(wanted: Ints, ids: Ints) -> tuple[Ints, Bools]:
    """Return the indices of wanted ids among rising ids, of those that occur, and which occur."""
    at = np.searchsorted(ids, wanted)
    here = at < len(ids)
    here[here] = ids[at[here]] == wanted[here]
    return at[here], here


def _cross(a: Doubles, b: Doubles) -> Doubles:
    """Return the cross product of rows; `numpy.cross` costs ten times as much for few rows."""
    (x, y, z), (u, v, w) = a.T, b.T
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=1)


def _turned(q: Doubles, v: Doubles) -> Doubles:
    """Rotate vectors (n, 3) by unit quaternions (n, 4)."""
    t = 2.0 * _cross(q[:, :3], v)
    out: Doubles = v + q[:, 3:] * t + _cross(q[:, :3], t)
    return out


class Audit:
    """Validation of the movement that clients claim.

    Without inputs, `check` decides whether a claimed position can be reached from the last accepted
    one: at most `speed` along the ground, by a way that the world does not block, with steps,
    slopes and platforms, by jumps and falls that `jump` and `gravity` allow, at a tick that the
    client's clock can have reached. With inputs, `check` repeats the moves.

    `check` changes nothing. `accept` commits what it found.

    Parameters
    ----------
    crowd : Crowd
        The server's characters, in one scene.
    speed : float
        Greatest speed along the ground, m/s.
    jump : float
        Greatest upward speed of a jump, m/s.
    gravity : float
        m/s^2.
    tolerance : float
        Error that is forgiven, metres: rounding of claims. The default is for claims in whole
        millimetres.
    budget : float
        How far a client's clock may seem to run ahead, seconds: jitter of the network.
    dt : float
        Seconds of one tick.
    fall : float
        Greatest downward speed of the game, m/s.

    Notes
    -----
    `check` compares a claim with the world of the claim's tick as far as kinematic actors and
    obstacles are concerned; `store` notes where they are. Other characters do not block a claim. A
    character in the air must gain `gravity` downwards until it reaches `fall`.
    """

    def __init__(
        self,
        crowd: Crowd,
        speed: float,
        jump: float,
        gravity: float = 9.81,
        tolerance: float = 0.002,
        budget: float = 0.06,
        *,
        dt: float = 1 / 60,
        fall: float = 50.0,
    ) -> None:
        if not isinstance(crowd, Crowd):
            raise TypeError(f"crowd must be a Crowd, not {type(crowd).__name__}")
        if crowd.worlds is not None:
            raise ValueError("crowd must have one scene, not Worlds")
        self._crowd, self._scene = crowd, crowd.scene
        self._speed = as_number(speed, "speed", above=0.0)
        self._jump = as_number(jump, "jump", 0.0)
        self._gravity = as_number(gravity, "gravity", above=0.0)
        self._tolerance = as_number(tolerance, "tolerance", 0.0)
        self._budget = as_number(budget, "budget", 0.0)
        self._dt = as_number(dt, "dt", above=0.0)
        self._fall = as_number(fall, "fall", above=0.0)
        self._now: int | None = None
        # Platforms by tick.
        self._past: dict[int, _Platforms] = {}
        self._stamp: tuple[int, int] | None = None
        self._others: list[Actor] = []
        # The static actors; and these with the platforms of a tick.
        self._still, self._world, self._world_stamp = Scene(), Scene(), -1
        self._twins: dict[int, tuple[Actor, Actor]] = {}
        self._names: dict[int, int] = {}
        self._posed: int | None = None
        self._ids = np.zeros(0, np.int64)
        self._state: dict[str, NDArray[Any]] = {}
        self._sizes: dict[str, NDArray[Any]] = {}
        self._up = self._gap = self._easy = np.zeros(0)
        # Number of the batch that holds the last check of each member that has not been accepted,
        # and the row in that batch.
        self._batches: dict[int, _Batch] = {}
        self._batch_of = self._row_of = np.zeros(0, np.int64)
        # Characters that repeat ways, in both scenes; the ones in use.
        self._pair: tuple[Ghosts, Ghosts] | None = None
        self._ghosts: Ghosts
        self._sync()

    @property
    def crowd(self) -> Crowd:
        """The crowd whose members are checked."""
        return self._crowd

    # --- the server's side ------------------------------------------------------------------------

    def store(self, tick: int) -> None:
        """Begin a server tick: set the server's clock and store the poses of moving things.

        These are the kinematic and dynamic actors and the obstacles.

        Parameters
        ----------
        tick : int
            Number of this tick, greater than the one before.
        """
        number = as_tick(tick)
        if self._now is not None and number <= self._now:
            raise ValueError(f"tick must be greater than the newest stored tick {self._now}, got {number}")
        scene = self._scene
        stamp = (scene.timestamp, len(scene))
        if stamp != self._stamp or any(a.scene is not scene for a in self._others):
            self._stamp = stamp
            others = [*(a for a in scene.actors if a.body != "static" and not a.trigger), *scene.obstacles]
            self._others = sorted(others, key=lambda a: a.id)
        self._past[number] = _Platforms(
            np.array([a.id for a in self._others], np.int64),
            np.array([a.position for a in self._others]).reshape(-1, 3),
            np.array([a.rotation for a in self._others]).reshape(-1, 4),
            np.array([a.bounds for a in self._others]).reshape(-1, 2, 3),
        )
        if self._now is None:
            self._state["joined"][:] = number
        while len(self._past) > KEPT:
            del self._past[next(iter(self._past))]
        self._now = number
        self._posed = None

    def _sync(self) -> None:
        """Follow the members of the crowd and the static actors of the scene."""
        crowd, scene = self._crowd, self._scene
        if scene.timestamp != self._world_stamp:
            self._still, self._world = Scene(), Scene()
            for world in (self._still, self._world):
                with world.edit():
                    for a in scene.actors:
                        if a.body == "static" and not a.trigger:
                            world.add(a.shape, a.position, a.rotation, a.scale, layer=a.layer, behavior=a.behavior)
            self._world_stamp = scene.timestamp
            self._twins, self._names, self._posed, self._pair = {}, {}, None, None
            if self._state:
                self._state["clear"][:] = 0.0
        ids = crowd.ids
        if not self._state or not np.array_equal(ids, self._ids):
            old, before = self._state, self._ids
            n = len(ids)
            state: dict[str, NDArray[Any]] = {
                "position": crowd.positions.copy(), "tick": np.zeros(n, np.int64), "fresh": np.ones(n, bool),
                "supported": np.ones(n, bool), "ground": np.full(n, -1, np.int64), "rise": np.full(n, self._jump),
                "debt": np.zeros(n), "pace": np.zeros(n), "lead": np.full(n, np.nan), "since": np.zeros(n, np.int64),
                "clear": np.zeros(n),
                "joined": np.full(n, 0 if self._now is None else self._now, np.int64),
            }
            _, mine, theirs = np.intersect1d(ids, before, assume_unique=True, return_indices=True)
            for name, column in state.items():
                if name in old:
                    column[mine] = old[name][theirs]
            cases = np.full((2, n), -1, np.int64)
            cases[:, mine] = self._batch_of[theirs], self._row_of[theirs]
            self._batch_of, self._row_of = cases
            self._state, self._ids, self._pair = state, ids.copy(), None
            self._order = np.argsort(self._ids)
            self._forget_batches()
        if self._pair is None or any(not np.array_equal(crowd.get(k), v) for k, v in self._sizes.items()):
            parameters: dict[str, Any] = {name: crowd.get(name) for name in PARAMETERS}
            kind = kinds_of(list(parameters.values()), len(ids))
            still, posed = (Ghosts(world, self._state["position"].copy(), parameters, kind, self._dt)
                            for world in (self._still, self._world))
            self._pair, self._ghosts = (still, posed), posed
            self._sizes = {name: parameters[name] for name in ("radius", "height", "step_offset")}
            self._up, self._gap = parameters["up"], parameters["contact_offset"]
            # The round bottom of a capsule climbs more than the step offset, unless that is
            # constrained.
            self._easy = np.array([mode is ClimbingMode.EASY for mode in parameters["climbing_mode"]], np.float64)

    def _rows(self, ids: ArrayLike) -> tuple[Ints, Ints]:
        self._sync()
        wanted = as_whole(ids, "ids")
        at = np.searchsorted(self._ids, wanted, sorter=self._order)
        found = np.zeros(len(wanted), bool)
        rows = np.zeros(len(wanted), np.int64)
        if len(self._ids):
            rows = self._order[np.minimum(at, len(self._ids) - 1)]
            found = self._ids[rows] == wanted
        if not found.all():
            raise KeyError(f"ids: the crowd has no member {int(wanted[~found][0])}")
        seen = np.zeros(len(self._ids), bool)
        seen[rows] = True
        if np.count_nonzero(seen) != len(wanted):
            raise ValueError("ids must be different from one another")
        return wanted, rows

    def _forget_batches(self) -> None:
        """Drop the batches that no member waits for."""
        if self._batches:
            self._batches = {number: batch for number, batch in self._batches.items()
                             if (self._batch_of == number).any()}

    # --- checking ---------------------------------------------------------------------------------

    def check(self, ids: ArrayLike, ticks: ArrayLike, claimed_positions: ArrayLike, inputs: ArrayLike | None = None
              ) -> Verdicts:
        """Judge claims; nothing but what `accept` and `explain` read is changed.

        Parameters
        ----------
        ids : (n,) array of ints
            Members, each once.
        ticks : int or (n,) array of ints
            The client's tick of each claim.
        claimed_positions : (n, 3) array of floats
            Centres, metres. A claim that is not finite gets a verdict like any other.
        inputs : (n, 3) or (n, k, 3) array of floats, optional
            Displacements of the k ticks since the last accepted claim, metres. With them the moves
            are repeated in the scene as it is now.

        Returns
        -------
        Verdicts

        Raises
        ------
        KeyError
            If an id is unknown.
        ValueError
            If a shape is wrong or no tick is stored.
        """
        wanted, rows = self._rows(ids)
        n = len(wanted)
        clock = as_whole(ticks, "ticks", n)
        claims = as_rows(claimed_positions, "claimed_positions", n, finite=False)
        moves = None if inputs is None else self._inputs(inputs, n)
        if self._now is None:
            raise ValueError("ticks: store the server's tick first")
        s = self._state
        passed, late, wrong = self._clocks(rows, clock, moves)
        found = _Result(
            np.where(wrong, np.maximum(late, 1e-9) * self._speed, 0.0),
            np.where(wrong, Reason.TIME, Reason.NONE).astype(np.int8), s["position"][rows],
            {
                "supported": s["supported"][rows], "ground": s["ground"][rows], "debt": np.zeros(n),
                "pace": np.zeros(n), "rise": np.minimum(s["rise"][rows], 0.0), "clear": np.zeros(n),
            },
        )
        x, y, z = np.abs(claims).T < 1e15
        lost = ~(wrong | (x & y & z))
        found.error[lost], found.reason[lost] = np.inf, Reason.TELEPORT
        good = np.flatnonzero(~wrong & ~lost)
        # Rows that rise can be given as a mask, which costs less than indices.
        good = good[np.argsort(rows[good])]
        if moves is not None:
            self._repeat(rows, claims, moves, good, found.error, found.reason, found.position, found.out)
        else:
            self._judge(rows, claims, passed, clock, good, found)
        ok = found.reason == Reason.NONE
        lead = np.where(s["fresh"][rows], (clock - self._now).astype(np.float64), s["lead"][rows])
        batch = _Batch(found.error, found.reason, claims, found.position, clock, passed, lead, found.out, moves)
        number = max(self._batches, default=-1) + 1
        self._batch_of[rows], self._row_of[rows] = number, np.arange(n)
        self._batches[number] = batch
        self._forget_batches()
        # The caller may write into what it is given.
        return Verdicts(ok, found.error.copy(), found.reason.copy(), found.position.copy())

    def _clocks(self, rows: Ints, clock: Ints, moves: Doubles | None) -> tuple[Ints, Doubles, Bools]:
        """Compare the clients' clocks with the server's.

        Returns the ticks that each claim covers, by how many seconds it is early, and which claims
        are refused for that.
        """
        s, now = self._state, self._now
        assert now is not None
        fresh = s["fresh"][rows]
        # A new member may have moved since the server knows of it.
        first = np.maximum(1, now - s["joined"][rows] + math.ceil(self._budget / self._dt))
        passed = np.where(fresh, first if moves is None else moves.shape[1], clock - s["tick"][rows])
        lead = np.where(fresh, (clock - now).astype(np.float64), s["lead"][rows])
        ahead = (clock - now) - lead - DRIFT * np.where(fresh, 0, now - s["since"][rows])
        late = np.where(passed < 1, (1 - passed) * self._dt, ahead * self._dt - self._budget)
        wrong = (passed < 1) | (late > 1e-9)
        if moves is not None:
            wrong |= passed != moves.shape[1]
            late = np.where(passed != moves.shape[1], np.maximum(late, self._dt), late)
        return np.minimum(passed, LONGEST), late, wrong

    def _judge(self, rows: Ints, claims: Doubles, passed: Ints, clock: Ints, good: Ints, found: _Result) -> None:
        """Judge claims without inputs, those of one tick at a time where platforms matter."""
        now = self._now
        assert now is not None
        if not len(good):
            return
        assert self._pair is not None
        close, near = self._near_movers(rows[good], claims[good], passed[good])
        found.reason[good] = -1
        self._ghosts = self._pair[0]
        self._walk_clear(rows, claims, passed, good[~close], found)
        self._fly_clear(rows, claims, passed, good[~close & (found.reason[good] < 0)], found)
        self._ghosts = self._pair[1]
        left = good[found.reason[good] < 0]
        worlds = np.full(len(rows), self._posed if self._posed is not None else now)
        if near.any():
            k = good[near & (found.reason[good] < 0)]
            distinct, which = np.unique(clock[k], return_inverse=True)
            worlds[k] = np.array([self._nearest(t) for t in distinct.tolist()], np.int64)[which.reshape(-1)]
        for tick in np.unique(worlds[left]).tolist():
            k = left[worlds[left] == tick]
            self._reach(rows[k], k, claims[k], passed[k], tick, tick, found)
            if self._twins:
                # A platform that was somewhere else at the beginning may explain the way.
                bad = k[found.reason[k] != Reason.NONE]
                old = np.array([self._nearest(t) for t in self._state["tick"][rows[bad]].tolist()], np.int64)
                for world in np.unique(old).tolist():
                    self._again(rows, bad[old == world], claims, passed, world, tick, found)

    def _near_movers(self, rows: Ints, claims: Doubles, passed: Ints) -> tuple[Bools, Bools]:
        """Return which members may touch moving things, and whose verdicts may depend on them."""
        s, n, now = self._state, len(rows), self._now
        assert now is not None
        if not self._others and not self._twins:
            return np.zeros(n, bool), np.zeros(n, bool)
        since = int(s["tick"][rows].min(initial=now))
        boxes = [past.bounds for tick, past in self._past.items() if tick >= since - 1 or tick == now]
        if any(len(box) != len(boxes[0]) for box in boxes) or len(boxes[0]) * n > MOST_PAIRS:
            return np.ones(n, bool), np.ones(n, bool)
        low, high = np.min([b[:, 0] for b in boxes], axis=0), np.max([b[:, 1] for b in boxes], axis=0)
        up, place = self._up[rows], s["position"][rows]
        # The ground below a flight counts as well.
        measured = dot(claims - place, up) / (passed * self._dt)
        depth = np.where(s["supported"][rows], 0.0, self._fall_depth(rows, measured, passed))
        # One row per axis: a reduction over three neighbours is slow.
        drop, places, ends = (np.ascontiguousarray(a.T) for a in (up * depth[:, None], place, claims))
        size = self._sizes["radius"][rows] + 0.5 * self._sizes["height"][rows] * np.abs(np.ascontiguousarray(up.T))
        least = np.minimum(places, ends) - np.maximum(drop, 0.0) - size
        most = np.maximum(places, ends) - np.minimum(drop, 0.0) + size
        gap = np.full(n, np.inf)
        for lo, hi in zip(low, high, strict=True):
            gap = np.minimum(gap, np.maximum(lo[:, None] - most, least - hi[:, None]).max(axis=0))
        rides = s["ground"][rows] >= 0
        # A way round a corner is as long as the way itself at most.
        detour = self._speed * self._dt * LONGEST
        way = np.minimum((most - least).max(axis=0), detour)
        return (gap <= CLEAR) | rides, (gap <= FAR + way) | rides

    def _motion(self, mine: Ints, claims: Doubles, n: Ints) -> _Motion:
        """Return ways from the last accepted positions, for members that no platform carries."""
        s, up = self._state, self._up[mine]
        start = s["position"][mine]
        d = claims - start
        high = dot(d, up)
        flat = d - up * high[:, None]
        far = np.sqrt(dot(flat, flat))
        debt = np.maximum(s["debt"][mine] + far - self._speed * self._dt * n, 0.0)
        sunk = -high - (self._fall * self._dt * n + self._tolerance) - far
        fair = (debt <= FORGIVEN * self._tolerance) & (sunk <= 0.0) & (far - high <= STRIDE * STRIDES)
        return _Motion(start, up, high, flat, debt, fair)

    def _walk_clear(self, rows: Ints, claims: Doubles, passed: Ints, k: Ints, found: _Result) -> None:
        """Accept claims of members that walk on still ground, with one move each.

        The walk ends on the ground at the claim, so that the claim is on the ground as well.
        """
        s, tol = self._state, self._tolerance
        k = k[s["supported"][rows[k]]]
        m = self._motion(rows[k], claims[k], passed[k])
        way = m.flat + m.up * (np.minimum(m.high, 0.0) - SKIN)[:, None]
        walks = np.flatnonzero(m.fair)
        end, flags = self._ghosts.go(rows[k[walks]], m.start[walks], way[walks], LONG_STRIDE)
        gap = end - claims[k[walks]]
        off = dot(gap, m.up[walks])
        beside = gap - m.up[walks] * off[:, None]
        fine = walks[((flags & DOWN) != 0) & (dot(beside, beside) <= tol * tol) & (np.abs(off) <= SKIN)]
        at, out = k[fine], found.out
        found.reason[at] = Reason.NONE
        found.position[at] = claims[at]
        out["supported"][at], out["ground"][at], out["rise"][at], out["clear"][at] = True, -1, self._jump, 0.0
        out["debt"][at], out["pace"][at] = m.debt[fine], m.high[fine] / (passed[at] * self._dt)

    def _fly_clear(self, rows: Ints, claims: Doubles, passed: Ints, k: Ints, found: _Result) -> None:
        """Accept jumps, falls and landings whose straight way is free, with two moves each."""
        s, tol = self._state, self._tolerance
        m = self._motion(rows[k], claims[k], passed[k])
        allow = self._allowed(s["supported"][rows[k]], s["rise"][rows[k]], np.zeros(len(k)), passed[k])
        f = np.flatnonzero(m.fair & (m.high <= allow + tol))
        way = m.flat[f] + m.up[f] * np.minimum(m.high[f], np.maximum(allow[f], 0.0))[:, None]
        end, _ = self._ghosts.go(rows[k[f]], m.start[f], way, LONG_STRIDE)
        gap = end - claims[k[f]]
        free = dot(gap, gap) <= self._near(passed[k[f]]) ** 2
        f, at = f[free], k[f[free]]
        mine, n, high = rows[at], passed[at], m.high[f]
        before, measured = s["supported"][mine], high / (n * self._dt)

        # How deep the air below the claim is; the next claim needs it, at its usual time.
        depth = self._fall_depth(mine, measured, n)
        deeper = depth + self._fall_depth(mine, measured - self._gravity * self._dt * n, np.maximum(n, USUAL))
        below, flags = self._ghosts.go(mine, claims[at], -m.up[f] * deeper[:, None], math.inf)
        touches = (flags & DOWN) != 0
        clear = np.where(touches, dot(claims[at] - below, m.up[f]), deeper)
        supported = touches & (clear <= self._skin(mine))
        landed = clear < depth
        unknown = np.flatnonzero(~before & ~supported & ~landed & (s["clear"][mine] < depth))
        deep = -m.up[f[unknown]] * depth[unknown, None]
        _, flags = self._ghosts.go(mine[unknown], m.start[f[unknown]], deep, math.inf)
        landed[unknown] = (flags & DOWN) != 0

        found.reason[at], out = Reason.NONE, found.out
        found.position[at] = claims[at]
        out["supported"][at], out["ground"][at], out["clear"][at] = supported, -1, clear
        out["debt"][at], out["pace"][at] = m.debt[f], measured
        out["rise"][at] = self._next_rise(
            before | landed, supported, s["rise"][mine], measured, np.zeros(len(at)), n)

    def _near(self, n: Ints) -> Doubles:
        """Return how near a repeated way of n ticks must come to its claim."""
        out: Doubles = np.minimum(NEAR * np.maximum(n / USUAL, 1.0), NEAREST) + self._tolerance
        return out

    def _skin(self, rows: Ints) -> Doubles:
        """Return how far below a claim the ground of a member that stands may be."""
        out: Doubles = self._gap[rows] + SKIN + self._tolerance
        return out

    def _allowed(self, before: Bools, rise: Doubles, lift: Doubles, n: Ints) -> Doubles:
        """Return the greatest rise in n ticks, from the ground or in the air."""
        return np.where(before, self._ballistic(self._jump + lift, n.astype(np.float64)), self._falling(rise, n))

    def _fall_depth(self, rows: Ints, measured: Doubles, n: Ints) -> Doubles:
        """Return how deep the ground may be that a flight has touched between two claims."""
        down = np.maximum(-np.minimum(self._state["pace"][rows], measured), 0.0)
        out: Doubles = (down + self._gravity * self._dt * n) * self._dt * n + self._gap[rows] + SKIN
        return out

    def _next_rise(self, jumps: Bools, supported: Bools, rise: Doubles, measured: Doubles, lift: Doubles, n: Ints
                   ) -> Doubles:
        """Return the greatest upward speed after a claim."""
        g, dt = self._gravity, self._dt
        fallen = measured - g * dt * 0.5 * (n + 1) + self._tolerance / (n * dt)
        out = np.where(jumps, self._jump + lift, np.minimum(rise - g * dt * n, fallen))
        return np.maximum(np.where(supported, self._jump, out), -self._fall)

    def _inputs(self, inputs: ArrayLike, n: int) -> Doubles:
        moves = np.asarray(inputs)
        if moves.dtype.kind not in "fiu":
            raise TypeError("inputs must be an array of numbers")
        if moves.ndim == 2:
            moves = moves[:, None, :]
        if moves.ndim != 3 or moves.shape[0] != n or moves.shape[1] < 1 or moves.shape[2] != 3:
            raise ValueError(f"inputs must have shape ({n}, 3) or ({n}, k, 3), got {np.shape(inputs)}")
        return moves.astype(np.float64)

    # --- with inputs ------------------------------------------------------------------------------

    def _repeat(self, rows: Ints, claims: Doubles, moves: Doubles, good: Ints, error: Doubles, reason: NDArray[np.int8],
                position: Doubles, out: dict[str, NDArray[Any]]) -> None:
        """Repeat moves in the crowd itself, and put everything back."""
        s, crowd, dt = self._state, self._crowd, self._dt
        up = self._up[rows]
        allowed = self._speed * dt * (1.0 + 1e-9) + 1e-12
        rise = s["rise"][rows].copy()
        supported = s["supported"][rows].copy()
        finite = np.asarray(np.isfinite(moves).all(axis=(1, 2)), bool)
        error[good[~finite[good]]], reason[good[~finite[good]]] = np.inf, Reason.TELEPORT
        good = good[finite[good]]
        saved = crowd.save()
        try:
            every = np.zeros((len(crowd), 3))
            for j in range(moves.shape[1]):
                d = moves[:, j]
                climb = np.where(finite, dot(np.where(finite[:, None], d, 0.0), up), 0.0)
                along = np.where(finite[:, None], d, 0.0) - up * climb[:, None]
                with np.errstate(over="ignore"):
                    far = np.sqrt(dot(along, along)) - allowed
                high = climb - np.where(supported, self._jump, rise) * dt - 1e-9
                low = -climb - self._fall * dt - 1e-9
                for over, why in ((far, Reason.SPEED), (high, Reason.FLIGHT), (low, Reason.TELEPORT)):
                    bad = good[(over[good] > 0.0) & (reason[good] == Reason.NONE)]
                    error[bad], reason[bad] = over[bad], why
                # A cheat is not repeated.
                goes = good[reason[good] == Reason.NONE]
                active = np.zeros(len(crowd), bool)
                active[rows[goes]] = True
                every[:] = 0.0
                every[rows[goes]] = d[goes]
                crowd.move(every, dt, active=active)
                supported = crowd.grounded[rows].copy()
                rise = np.where(supported, self._jump, climb / dt - self._gravity * dt)
                rise = np.maximum(rise, -self._fall)
            position[good] = crowd.positions[rows[good]]
        finally:
            crowd.restore(saved)
        bad = good[reason[good] != Reason.NONE]
        position[bad] = s["position"][rows[bad]]
        good = good[reason[good] == Reason.NONE]
        gap = claims[good] - position[good]
        miss = np.sqrt(dot(gap, gap))
        off = good[miss > self._tolerance]
        error[off] = miss[miss > self._tolerance]
        reason[off] = np.where(error[off] > TELEPORT, Reason.TELEPORT, Reason.BLOCKED)
        out["supported"], out["rise"] = supported, rise
        out["ground"] = s["ground"][rows]

    # --- without inputs ---------------------------------------------------------------------------

    def _pose(self, tick: int) -> None:
        """Move the copies of moving things to their poses at a tick, or the nearest stored one."""
        tick = self._nearest(tick)
        if self._posed == tick:
            return
        ids, places, turns, _ = self._past[tick]
        wanted = set(ids.tolist())
        originals = {a.id: a for a in self._others}
        with self._world.edit():
            for number in [k for k in self._twins if k not in wanted]:
                twin, _ = self._twins.pop(number)
                self._world.remove(twin)
                del self._names[twin.id]
            for number, place, turn in zip(ids.tolist(), places.tolist(), turns.tolist(), strict=True):
                actor = originals.get(number)
                kept = self._twins.get(number)
                if kept is not None and actor is not None and kept[1] is not actor:
                    self._world.remove(kept[0])
                    del self._names[kept[0].id]
                    kept = None
                if kept is None:
                    if actor is None:
                        # It has been removed since.
                        continue
                    twin = self._copy(actor, place, turn)
                    self._twins[number] = (twin, actor)
                    self._names[twin.id] = number
                else:
                    twin = kept[0]
                    twin.move_to(place, turn)
        self._posed = tick

    def _copy(self, actor: Actor, place: Any, turn: Any) -> Actor:
        shape: Any = actor.shape
        if actor in self._scene.obstacles:
            return self._world.add_obstacle(shape, place, turn, layer=actor.layer, behavior=actor.behavior)
        return self._world.add(shape, place, turn, actor.scale, body="kinematic", layer=actor.layer,
                               behavior=actor.behavior)

    def _nearest(self, tick: int) -> int:
        first, last = next(iter(self._past)), self._now
        assert last is not None
        tick = min(max(tick, first), last)
        while tick not in self._past:
            tick -= 1
        return tick

    def _carried(self, ground: Ints, place: Doubles, then: Ints, tick: int, back: bool = False) -> Doubles:
        """Return the ways that platforms carry places between two ticks.

        With `back`, the places are those at the second tick.
        """
        out = np.zeros_like(place)
        rides = np.flatnonzero(ground >= 0)
        if not len(rides):
            return out
        # Poses then and now of the platform of each rider.
        poses = np.full((2, len(rides), 7), np.nan)
        poses[1] = self._past[self._nearest(tick)].poses(ground[rides])
        for old in np.unique(then[rides]).tolist():
            k = then[rides] == old
            poses[0, k] = self._past[self._nearest(old)].poses(ground[rides[k]])
        known = ~np.isnan(poses).any(axis=(0, 2))
        k, (a, b) = rides[known], poses[::-1, known] if back else poses[:, known]
        local = _turned(a[:, 3:] * (-1.0, -1.0, -1.0, 1.0), place[k] - a[:, :3])
        way = _turned(b[:, 3:], local) + b[:, :3] - place[k]
        out[k] = -way if back else way
        return out

    def _home(self, rows: Ints, start: Doubles, claim: Doubles, n: Ints) -> tuple[Doubles, Bools]:
        """Repeat ways tick by tick, and aim each step at the claim.

        Ghosts walk on the ground and fall in the air. A fall may climb a step, or touch an edge.
        Returns the ends that are nearest to the claims, and which ghosts touched the ground on the
        way there.
        """
        s, up, dt = self._state, self._up[rows], self._dt
        best, end, landed = np.full(len(rows), np.inf), start.copy(), np.zeros(len(rows), bool)
        crowd, at = self._ghosts.walkers(rows)
        every, active = np.zeros((len(crowd), 3)), np.zeros(len(crowd), bool)
        # The greatest speed of the fall that is known, and the measured one.
        for v in (s["rise"][rows], np.minimum(s["rise"][rows], s["pace"][rows] - self._gravity * dt)):
            active[at] = True
            crowd.teleport(active, start)
            ground, touched, there = s["supported"][rows], np.zeros(len(rows), bool), start
            for j in range(min(int(n.max(initial=0)), STRIDES)):
                goes, left = n > j, np.maximum(n - j, 1)
                rest = claim - there
                flat = (rest - up * dot(rest, up)[:, None]) / left[:, None]
                length = np.sqrt(dot(flat, flat))
                flat *= np.minimum(self._speed * dt / np.where(length > 0.0, length, 1.0), 1.0)[:, None]
                drop = np.where(ground, -SKIN, np.maximum(v, -self._fall) * dt)
                every[at], active[at] = flat + up * drop[:, None], goes
                ground = (crowd.move(every, dt, active=active)[at] & DOWN) != 0
                touched |= goes & ground
                v = np.where(ground, 0.0, v - self._gravity * dt)
                there = crowd.positions[at]
            gap = there - claim
            nearer = dot(gap, gap) < best
            best[nearer], end[nearer], landed[nearer] = dot(gap, gap)[nearer], there[nearer], touched[nearer]
        return end, landed

    def _ballistic(self, v: Doubles, n: Doubles) -> Doubles:
        """Return the greatest height within n ticks that begin with speed v."""
        dt, g = self._dt, self._gravity
        top = np.clip(np.floor(v / (g * dt)) + 1.0, 0.0, np.maximum(n, 0.0))
        out: Doubles = np.maximum(v * dt * top - 0.5 * g * dt * dt * top * (top - 1.0), 0.0)
        return out

    def _falling(self, v: Doubles, n: Ints) -> Doubles:
        """Return the height after n ticks that begin with speed v."""
        dt, g = self._dt, self._gravity
        out: Doubles = np.maximum(v * dt * n - 0.5 * g * dt * dt * n * (n - 1.0), -self._fall * dt * n)
        return out

    def _again(self, rows: Ints, k: Ints, claims: Doubles, passed: Ints, world: int, tick: int,
               found: _Result) -> None:
        """Judge refused claims in the world of an earlier tick, and accept those possible there."""
        copies = [column[k].copy() for column in found.columns()]
        self._reach(rows[k], k, claims[k], passed[k], world, tick, found)
        still = found.reason[k] != Reason.NONE
        for column, copy in zip(found.columns(), copies, strict=True):
            column[k[still]] = copy[still]

    def _reach(self, rows: Ints, k: Ints, claim: Doubles, n: Ints, world: int, tick: int, found: _Result) -> None:
        """Judge the claims of one tick in the world of that or another one."""
        self._pose(world)
        c = self._begin(rows, claim, n, tick)
        self._judge_speed(c)
        self._judge_height(c)
        self._judge_way(c)
        self._finish(c, k, found)

    def _begin(self, rows: Ints, claim: Doubles, n: Ints, tick: int) -> _Claims:
        """Find the ground below claims, and the ways that platforms have carried members."""
        s, m = self._state, len(rows)
        up, still = self._up[rows], s["position"][rows]
        crowd, at = self._ghosts.walkers(rows)
        flags = self._ghosts.send(crowd, at, claim, -up * self._skin(rows)[:, None])
        supported = (flags & DOWN) != 0
        ground = np.full(m, -1, np.int64)
        if self._names:
            below = crowd.standing_on[at]
            for twin, number in self._names.items():
                ground[supported & (below == twin)] = number

        # A platform carries for the whole way or for a part of it. It may be the one below the last
        # accepted position or the one below the claim.
        start, lift = still.copy(), np.zeros(m)
        left, then = s["ground"][rows], s["tick"][rows]
        ways = [self._carried(left, still, then, tick), self._carried(ground, claim, then, tick, True)]
        for way in ways:
            rides = (way != 0.0).any(axis=1)
            if rides.any():
                square = np.where(rides, dot(way, way), 1.0)
                share = np.clip(dot(claim - still, way) / square, 0.0, 1.0)
                other = still + way * share[:, None]
                nearer = rides & (dot(claim - other, claim - other) < dot(claim - start, claim - start))
                start[nearer] = other[nearer]
                lift = np.maximum(lift, np.where(rides, dot(way, up) / (n * self._dt), 0.0))
        d = claim - start
        high = dot(d, up)
        flat = d - up * high[:, None]
        return _Claims(
            rows, claim, n, tick, up, s["supported"][rows], still, supported, ground, ways[0], start, lift, high, flat,
            np.sqrt(dot(flat, flat)), np.zeros(m, np.int8), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m, bool),
            start.copy(),
        )

    def _judge_speed(self, c: _Claims) -> None:
        """Judge the speed along the ground; slow claims pay back the excess of fast ones."""
        s, most = self._state, FORGIVEN * self._tolerance
        over = c.far - self._speed * self._dt * c.n
        c.debt = np.maximum(s["debt"][c.rows] + over, 0.0)
        fast = c.debt > most
        if fast.any():
            f = np.flatnonzero(fast)
            over[f] -= self._pushed(c.rows[f], c.start[f], c.claim[f], c.flat[f], c.far[f], s["rise"][c.rows[f]],
                                    c.n[f], c.tick)
            over[f[self._squeezed(c.rows[f], c.claim[f], c.n[f], c.tick)]] = -np.inf
            c.debt = np.maximum(s["debt"][c.rows] + over, 0.0)
            fast = c.debt > most
        why = np.where(over > TELEPORT, Reason.TELEPORT, Reason.SPEED)
        c.verdict[fast], c.miss[fast] = why[fast], c.debt[fast]

    def _judge_height(self, c: _Claims) -> None:
        """Judge jumps and falls."""
        tol, v, fast = self._tolerance, self._state["rise"][c.rows], c.verdict != Reason.NONE
        jump = self._jump + c.lift
        c.allow = self._allowed(c.before, v, c.lift, c.n)
        flown = ~c.supported & (c.high > c.allow + tol) & ~fast
        if flown.any():
            f = np.flatnonzero(flown)
            c.allow[f], c.landed[f] = self._landing(
                c.rows[f], c.start[f], c.claim[f], c.up[f], c.high[f], v[f], jump[f], c.n[f], c.before[f], c.allow[f])
            flown = ~c.supported & (c.high > c.allow + tol) & ~fast
        if flown.any():
            # An edge that is passed lifts or holds what slides along it.
            f = np.flatnonzero(flown)
            there, _ = self._ghosts.go(c.rows[f], c.start[f], c.flat[f] + c.up[f] * c.allow[f][:, None])
            gap = there - c.claim[f]
            shoved = self._shoved(c.rows[f], c.start[f], c.claim[f], c.tick)
            flown[f] = (dot(gap, gap) > (NEAR + tol) ** 2) & (c.high[f] > c.allow[f] + tol + shoved)
            f = f[flown[f]]
            there, touched = self._home(c.rows[f], c.start[f], c.claim[f], c.n[f])
            gap = there - c.claim[f]
            flown[f] = dot(gap, gap) > (NEAR + tol) ** 2
            c.landed[f] |= touched & ~flown[f]
        c.verdict[flown], c.miss[flown] = Reason.FLIGHT, (c.high - c.allow)[flown]
        # Faster down than the game falls.
        sunk = -c.high - (self._fall * self._dt * c.n + tol) - c.far
        deep = (sunk > 0.0) & (c.verdict == Reason.NONE)
        c.verdict[deep], c.miss[deep] = Reason.TELEPORT, sunk[deep]

    def _judge_way(self, c: _Claims) -> None:
        """Repeat the way, and look for other ways where it ends elsewhere."""
        near = self._near(c.n)
        best = np.full(len(c.rows), np.inf)
        left = np.flatnonzero(c.verdict == Reason.NONE)
        walks = c.before & c.supported
        for other in (False, True):
            if len(left):
                self._try(c.rows, left, c.start, c.flat, c.high, c.allow, c.claim, walks[left] != other, best, c.end)
                left = left[best[left] > near[left]]
        if len(left):
            starts = (c.start, c.still, c.still + c.carry)
            self._search(c.rows, left, starts, c.claim, c.n, np.maximum(c.allow, 0.0), best, c.end, near)
            left = left[best[left] > near[left]]
        if len(left):
            there, _ = self._home(c.rows[left], c.start[left], c.claim[left], c.n[left])
            self._note(left, there, c.claim, best, c.end)
            left = left[best[left] > near[left]]
        if len(left):
            shoved = self._shoved(c.rows[left], c.start[left], c.claim[left], c.tick)
            left = left[best[left] > near[left] + shoved]
        if len(left):
            left = left[~self._squeezed(c.rows[left], c.claim[left], c.n[left], c.tick)]
        if len(left):
            step = c.supported[left] & (c.high[left] > 0.5 * self._sizes["step_offset"][c.rows[left]])
            c.verdict[left] = np.where(step, Reason.STEP, Reason.BLOCKED)
            c.miss[left] = best[left]

    def _finish(self, c: _Claims, k: Ints, found: _Result) -> None:
        """Store verdicts, and the state of the members if they are accepted."""
        s = self._state
        # A fall that may have ended between the two claims does not limit the speed at the second
        # one.
        measured = c.high / (c.n * self._dt)
        air = np.flatnonzero(~c.before & ~c.supported & ~c.landed & (c.verdict == Reason.NONE))
        if len(air):
            down = -c.up[air] * self._fall_depth(c.rows[air], measured[air], c.n[air])[:, None]
            places = np.stack([c.start[air], c.claim[air]])
            _, flags = self._ghosts.go_each(c.rows[air], places, np.stack([down, down]), math.inf)
            c.landed[air] = ((flags & DOWN) != 0).any(axis=0)

        v, ok = s["rise"][c.rows], c.verdict == Reason.NONE
        # A ceiling that comes down pushes a character, which then falls more slowly than it was
        # pushed.
        own = measured.copy()
        sudden = measured < v - self._gravity * self._dt * (c.n - 1) - SUDDEN
        f = np.flatnonzero(~c.before & ~c.supported & ~c.landed & ok & sudden)
        if len(f):
            own[f[self._shoved(c.rows[f], c.start[f], c.claim[f], c.tick) > 0.0]] = np.inf
        blocked = np.isin(c.verdict, (Reason.BLOCKED, Reason.STEP))
        found.error[k], found.reason[k] = c.miss, c.verdict
        found.position[k] = np.where(ok[:, None], c.claim, np.where(blocked[:, None], c.end, c.still))
        rise = self._next_rise(c.before | c.landed, c.supported, v, own, c.lift, c.n)
        out = found.out
        out["supported"][k] = np.where(ok, c.supported, c.before)
        out["ground"][k] = np.where(ok, c.ground, -1)
        out["rise"][k] = np.where(ok, rise, np.minimum(v, 0.0))
        out["debt"][k] = np.where(ok, c.debt, 0.0)
        out["pace"][k] = np.where(ok, measured, 0.0)
        out["clear"][k] = 0.0

    def _pushed(self, rows: Ints, start: Doubles, claim: Doubles, flat: Doubles, far: Doubles, v: Doubles, n: Ints,
                tick: int) -> Doubles:
        """Return how much farther than by their speed members may have come.

        An edge pushes what slides off it, and a moving wall pushes what is in front of it.
        """
        up = self._up[rows]
        limit = np.minimum(self._speed * self._dt * n, far)
        ahead = flat / np.where(far > 0.0, far, 1.0)[:, None]
        side = _cross(up, ahead)
        drop = np.minimum(self._falling(v, n), -SKIN)
        way = ahead * limit[:, None]
        ways = np.stack([way + up * (drop * share)[:, None] for share in (1.0, 2.0) for _ in BESIDE])
        places = np.stack([start + side * x for x in BESIDE] * 2)
        there, _ = self._ghosts.go_each(rows, places, ways)
        extra = np.maximum((((there - places) * ahead).sum(axis=2) - limit).max(axis=0), 0.0)
        # A fall may have ended on a platform that carries.
        s = self._state
        fallen = np.where(s["supported"][rows], 0.0, self._fall_depth(rows, s["pace"][rows], n))
        return np.maximum(extra, self._shoved(rows, start, claim, tick, fallen))

    def _shoved(self, rows: Ints, start: Doubles, claim: Doubles, tick: int, drop: Doubles | None = None) -> Doubles:
        """Return how far platforms at or near a way have moved since the last claim.

        A way may lead through places that are as far below its ends as `drop` says.
        """
        then = self._state["tick"][rows]
        room = self._sizes["radius"][rows, None] + 0.5 * self._sizes["height"][rows, None] * np.abs(self._up[rows])
        least, most = np.minimum(start, claim) - room, np.maximum(start, claim) + room
        if drop is not None:
            deep = self._up[rows] * drop[:, None]
            least, most = least - np.maximum(deep, 0.0), most - np.minimum(deep, 0.0)
        out = np.zeros(len(rows))
        for mine, way, bounds in self._moved(then, tick):
            low, high = np.fmin.reduce(bounds[:, :, 0]), np.fmax.reduce(bounds[:, :, 1])
            outside = np.maximum(np.maximum(low - most[mine, None], least[mine, None] - high), 0.0)
            close = (outside * outside).sum(axis=2) <= TOUCH * TOUCH
            out[mine] = np.where(close, way, 0.0).max(axis=1)
        return out

    def _moved(self, then: Ints, tick: int) -> Iterator[tuple[Ints, Doubles, Doubles]]:
        """Yield the platforms that have moved between each earlier tick and a later one.

        Returns the indices of an earlier tick in `then`, the way of each platform, and the bounds
        of the platforms at all ticks, (ticks, platforms, 2, 3).
        """
        numbers = np.array(sorted(self._twins), np.int64)
        for old in np.unique(then).tolist() if len(numbers) else ():
            first, last = self._nearest(old), self._nearest(tick)
            past = [platforms for t, platforms in self._past.items() if first <= t <= last]
            track = np.full((len(past), len(numbers), 3), np.nan)
            bounds = np.full((len(past), len(numbers), 2, 3), np.nan)
            for t, platforms in enumerate(past):
                at, here = _positions_of(numbers, platforms.ids)
                track[t, here], bounds[t, here] = platforms.places[at], platforms.bounds[at]
            steps = np.nan_to_num(np.diff(track, axis=0))
            # A platform that turns back has moved all the same.
            way = np.sqrt((steps * steps).sum(axis=2)).sum(axis=0)
            moved = np.flatnonzero(way > 0.0)
            if len(moved):
                yield np.flatnonzero(then == old), way[moved], bounds[:, moved]

    def _squeezed(self, rows: Ints, claim: Doubles, n: Ints, tick: int) -> Bools:
        """Return which members were inside of a moving platform, and are at it now.

        Overlap recovery pushes such a member out at any side, at any speed.
        """
        out, place, up = np.zeros(len(rows), bool), self._state["position"][rows], self._up[rows]
        half = np.abs(up) * (0.5 * self._sizes["height"][rows] + self._sizes["radius"][rows] - TOUCH)[:, None]
        room = np.abs(up) * 0.5 * self._sizes["height"][rows, None] + self._sizes["radius"][rows, None] + NEAR
        reach = room + (self._speed * self._dt * n)[:, None]
        for mine, _, bounds in self._moved(self._state["tick"][rows], tick):
            low, high = bounds[:, None, :, 0], bounds[:, None, :, 1]
            p, h = place[mine, None], half[mine, None]
            inside = ((p + h > low) & (p - h < high)).all(axis=3)
            q, r = claim[mine, None], reach[mine, None]
            beside = ((q + r >= low) & (q - r <= high)).all(axis=3)
            out[mine] = (inside.any(axis=0) & beside.any(axis=0)).any(axis=1)
        return out

    def _landing(self, rows: Ints, start: Doubles, claim: Doubles, up: Doubles, high: Doubles, v: Doubles,
                 jump: Doubles, n: Ints, before: Bools, allow: Doubles) -> tuple[Doubles, Bools]:
        """Return the greatest rise of members that may land on the way, and which may land."""
        step = self._sizes["step_offset"][rows]
        d = claim - start
        flat = d - up * dot(d, up)[:, None]
        size = np.sqrt(dot(flat, flat))
        side = _cross(up, flat) / np.where(size > 0.0, size, 1.0)[:, None]
        ahead = _cross(side, up)
        # The way itself, and ledges beside it that a step may have led to.
        along = [start + flat * share for share in (0.0, 0.5, 1.0)]
        places = [p + up * high[:, None] * share for p, share in zip(along, (0.0, 0.5, 1.0), strict=True)]
        beside = [p + side * x + ahead * y + up * step[:, None] for p in along for x, y in AROUND]
        deep = [np.full(len(rows), DEEP)] * len(places) + [DEEP + step] * len(beside)
        downs = np.stack([-up * depth[:, None] for depth in deep])
        end, flags = self._ghosts.go_each(rows, np.stack(places + beside), downs, math.inf)
        level = ((end - start) * up).sum(axis=2)
        found = (flags & DOWN) != 0
        found[len(places):] &= level[len(places):] <= step + SKIN
        # Ticks until a fall has come down to the ground; none for those who stood.
        fallen = np.where(before, 0.0, np.full(level.shape, np.inf))
        for ticks in range(int(n[~before].max(initial=-1)) + 1):
            down = self._falling(v, np.full(len(n), ticks)) <= level + self._gap[rows] + SKIN
            fallen[down & np.isinf(fallen)] = ticks
        good = found & (fallen <= n)
        rise = level + self._ballistic(jump, np.where(good, n - fallen, 0.0))
        allow = np.maximum(allow, np.where(good, rise, -np.inf).max(axis=0))
        # Up a step first, then a jump.
        ways = [flat * share + side * x - up * SKIN for x in BESIDE for share in (1 / 3, 2 / 3, 1.0)]
        end, _ = self._ghosts.go_each(rows, np.stack([start] * len(ways)), np.stack(ways))
        rise = ((end - start) * up).sum(axis=2).max(axis=0) + self._ballistic(jump, n.astype(np.float64))
        return np.where(before, np.maximum(allow, rise), allow), good.any(axis=0)

    def _try(self, rows: Ints, k: Ints, start: Doubles, flat: Doubles, high: Doubles, allow: Doubles, claim: Doubles,
             walks: Bools, best: Doubles, end: Doubles) -> None:
        """Repeat ways in one go, along the ground or straight, and no higher than jumps go."""
        climb = np.where(walks, np.minimum(high[k], 0.0) - SKIN, np.minimum(high[k], np.maximum(allow[k], 0.0)))
        way = flat[k] + self._up[rows[k]] * climb[:, None]
        self._note(k, self._ghosts.go(rows[k], start[k], way)[0], claim, best, end)

    @staticmethod
    def _note(k: Ints, there: Doubles, claim: Doubles, best: Doubles, end: Doubles) -> None:
        gap = there - claim[k]
        miss = np.sqrt(dot(gap, gap))
        better = miss < best[k]
        best[k[better]], end[k[better]] = miss[better], there[better]

    def _search(self, rows: Ints, k: Ints, starts: tuple[Doubles, ...], claim: Doubles, n: Ints, allow: Doubles,
                best: Doubles, end: Doubles, near: Doubles) -> None:
        """Look for other ways: above, and round corners, no longer than the speed allows."""
        for start in starts:
            for share, lift, walked, flies in WAYS:
                k = k[best[k] > near[k]]
                if not len(k):
                    return
                r, up, p, q = rows[k], self._up[rows[k]], start[k], claim[k]
                d = q - p
                flat = d - up * dot(d, up)[:, None]
                half = 0.5 * np.sqrt(dot(flat, flat))
                reach = 0.5 * self._speed * self._dt * n[k]
                wide = np.sqrt(np.maximum(reach * reach - half * half, 0.0)) * share
                side = _cross(up, flat)
                length = np.sqrt(dot(side, side))
                side = side / np.where(length > 0.0, length, 1.0)[:, None]
                # A way upwards, however little, climbs no steps.
                slope = up * (1e-4 if flies else -SKIN)
                rise = allow[k] * lift * (1.0 if flies else self._easy[r])
                if walked:
                    p, _ = self._ghosts.go(r, p, walked * flat - up * SKIN)
                if lift:
                    p, _ = self._ghosts.go(r, p, up * rise[:, None])
                if share:
                    p, _ = self._ghosts.go(r, p, (0.5 - walked) * flat + side * wide[:, None] + slope)
                rest = q - p
                rest -= up * dot(rest, up)[:, None]
                p, _ = self._ghosts.go(r, p, rest + slope)
                p, _ = self._ghosts.go(r, p, up * dot(q - p, up)[:, None])
                self._note(k, p, claim, best, end)

    # --- afterwards -------------------------------------------------------------------------------

    def accept(self, ids: ArrayLike) -> None:
        """Commit the last verdicts: members go to the position of their verdict.

        A member with a possible claim goes to the claim, and repeated moves are made. A member
        whose claim was refused goes to the corrected position. The server must send that to the
        client.

        Parameters
        ----------
        ids : (n,) array of ints
            Members that have been checked since they were accepted last.
        """
        wanted, rows = self._rows(ids)
        numbers = self._batch_of[rows]
        if (numbers < 0).any():
            raise ValueError(f"ids: {int(wanted[numbers < 0][0])} has not been checked since it was accepted")
        for number in list(self._batches):
            mine = rows[numbers == number]
            self._commit(self._batches[number], mine, self._row_of[mine])
        self._batch_of[rows] = -1
        self._forget_batches()

    def _commit(self, batch: _Batch, mine: Ints, at: Ints) -> None:
        """Take the verdicts in rows of a batch for members."""
        s, crowd = self._state, self._crowd
        kept = batch.reason[at] != Reason.TIME
        at, mine = at[kept], mine[kept]
        new = s["fresh"][mine]
        s["lead"][mine[new]], s["since"][mine[new]] = batch.lead[at[new]], self._now
        s["fresh"][mine] = False
        s["position"][mine], s["tick"][mine] = batch.position[at], batch.tick[at]
        for name, column in batch.state.items():
            s[name][mine] = column[at]
        again = np.zeros(len(at), bool)
        if batch.inputs is not None:
            again = np.isin(batch.reason[at], (Reason.NONE, Reason.BLOCKED))
        if not again.all():
            goes = np.zeros(len(crowd), bool)
            goes[mine[~again]] = True
            crowd.teleport(goes, s["position"][goes])
        if batch.inputs is not None and again.any():
            active, every = np.zeros(len(crowd), bool), np.zeros((len(crowd), 3))
            active[mine[again]] = True
            for j in range(batch.inputs.shape[1]):
                every[mine[again]] = batch.inputs[at[again], j]
                crowd.move(every, self._dt, active=active)

    def explain(self, id: int) -> str:
        """Return why the last claim of a member was refused, in words and numbers.

        Parameters
        ----------
        id : int
            A member that has been checked and not accepted since.

        Returns
        -------
        str
        """
        number = as_tick(id, "id")
        self._sync()
        row = np.flatnonzero(self._ids == number)
        if not len(row) or self._batch_of[row[0]] < 0:
            raise KeyError(f"id: {number} has not been checked since it was accepted")
        batch, i = self._batches[int(self._batch_of[row[0]])], int(self._row_of[row[0]])
        reason = Reason(int(batch.reason[i]))
        words = WORDS[reason].format(speed=self._speed, error=float(batch.error[i]), ticks=int(batch.ticks[i]))
        x, y, z = batch.claim[i].tolist()
        text = f"member {number}, tick {int(batch.tick[i])}: the claim ({x:.4f}, {y:.4f}, {z:.4f}) {words}"
        if reason:
            x, y, z = batch.position[i].tolist()
            text += f"; corrected to ({x:.4f}, {y:.4f}, {z:.4f})"
        return text
