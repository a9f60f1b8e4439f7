"""Inputs that arrive late: go back, apply them, and run forward again to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import Crowd
from pycct.net.checks import as_count, as_number, as_rows, as_tick, as_whole

__all__ = ["Timeline"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]


# Ticks that run again between two states that are saved. A save costs as much as a tick, so that
# saving every tick would double the cost of a correction. With rare saves, the next correction
# would begin far back.
SPACING = 4


class _Tick(NamedTuple):
    """A tick that has been run."""

    # The members before their move; None: run again from an earlier tick.
    state: bytes | None
    # Poses, layers and behaviors of moving actors and obstacles during the move.
    poses: bytes
    dt: float
    inputs: Doubles
    ids: Ints


class Timeline:
    """The last ticks of a crowd, and the inputs that made them.

    Each tick, move the platforms, give the inputs, and `advance`. An input that arrives late goes
    to `correct`, which restores the crowd and all kinematic and dynamic actors and obstacles to
    that tick, applies the input, and runs forward again. The result has the bits that it would have
    if the input had been in time.

    Parameters
    ----------
    crowd : Crowd
        A crowd of one scene.
    ticks : int
        Ticks that can be corrected, 1 to 65,536.
    start : int
        Number of the first tick.
    default : (3,) floats
        Displacement of a member that has no input for a tick, metres.
    before : callable, optional
        ``before(crowd, tick, dt)`` is called before each move, again when a tick runs again: for
        `Crowd.separate` and other changes that are a part of every tick.
    threads : int
        As for `Crowd.move`.

    Notes
    -----
    A correction reaches back to the last tick before which members came, left, or were changed by
    anything but `advance` and `before`: older ticks are dropped then. Static actors are not
    restored.
    """

    def __init__(
        self,
        crowd: Crowd,
        ticks: int = 120,
        *,
        start: int = 0,
        default: ArrayLike = (0.0, 0.0, 0.0),
        before: Callable[[Crowd, int, float], object] | None = None,
        threads: int = 1,
    ) -> None:
        if not isinstance(crowd, Crowd):
            raise TypeError(f"crowd must be a Crowd, not {type(crowd).__name__}")
        if crowd.worlds is not None:
            raise ValueError("crowd must have one scene, not Worlds")
        if before is not None and not callable(before):
            raise TypeError("before must be callable")
        self._crowd = crowd
        self._size = as_count(ticks, "ticks", 1, 65536)
        self._tick = as_tick(start, "start")
        self._default = as_rows(default, "default", 1)[0]
        self._before = before
        self._threads = as_count(threads, "threads", 0, 4096)
        self._past: dict[int, _Tick] = {}
        # Inputs of ticks to come: by tick and member.
        self._waiting: dict[int, dict[int, Doubles]] = {}
        # A crowd without members: its state consists of the moving actors and obstacles alone.
        self._actors = Crowd(crowd.scene, np.empty((0, 3)))
        self._hash = crowd.state_hash()

    @property
    def crowd(self) -> Crowd:
        """The crowd that is moved."""
        return self._crowd

    @property
    def tick(self) -> int:
        """Number of the tick that the next `advance` runs."""
        return self._tick

    @property
    def ticks(self) -> list[int]:
        """Ticks that can be corrected, from the oldest to the newest."""
        return list(range(self._oldest, self._tick))

    @property
    def _oldest(self) -> int:
        """The oldest tick that can be corrected; older ones only lead to it."""
        return max(next(iter(self._past), self._tick), self._tick - self._size)

    def input(self, tick: int, ids: ArrayLike, displacements: ArrayLike) -> None:
        """Give inputs for a tick that has not been run.

        Parameters
        ----------
        tick : int
            The next tick or a later one.
        ids : (n,) array of ints
            Members, each once; an input for the same tick and member replaces the one before.
        displacements : (n, 3) array of floats
            Metres.

        Raises
        ------
        ValueError
            If the tick has been run (`correct` is for those), or lies more than `ticks` ahead.
        KeyError
            If an id is unknown.
        """
        number = as_tick(tick)
        if number < self._tick:
            raise ValueError(f"tick must be >= {self._tick}, the next one; correct() is for ticks that have been run")
        self._ahead(number)
        wanted, moves = self._rows(ids, displacements)
        self._find(wanted, self._crowd.ids)
        self._wait(number, wanted, moves)

    def _ahead(self, number: int) -> None:
        if number > self._tick + self._size:
            raise ValueError(f"tick must be <= {self._tick + self._size}, got {number}")

    def _wait(self, number: int, wanted: Ints, moves: Doubles) -> None:
        waiting = self._waiting.setdefault(number, {})
        for member, move in zip(wanted.tolist(), moves, strict=True):
            waiting[member] = move

    def advance(self, dt: float) -> NDArray[np.uint8]:
        """Run the next tick with the inputs that have arrived.

        Parameters
        ----------
        dt : float
            Seconds of this tick, > 0.

        Returns
        -------
        (n,) ndarray of uint8
            Collision flags, as `Crowd.move` returns them.
        """
        seconds = as_number(dt, "dt", above=0.0)
        crowd = self._crowd
        if crowd.state_hash() != self._hash:
            # Something else has changed the crowd: what is older cannot be run again.
            self._past.clear()
        ids = crowd.ids.copy()
        inputs = np.tile(self._default, (len(ids), 1))
        waiting = self._waiting.get(self._tick, {})
        if waiting:
            members = np.fromiter(waiting, np.int64, len(waiting))
            there = np.isin(members, ids)
            inputs[self._find(members[there], ids)] = np.array(list(waiting.values()))[there]
        past = _Tick(crowd.save(), self._actors.save(moving=True), seconds, inputs, ids)
        flags = self._run(self._tick, seconds, inputs)
        self._past[self._tick] = past
        self._waiting.pop(self._tick, None)
        self._tick += 1
        self._drop()
        self._hash = crowd.state_hash()
        return flags

    def _drop(self) -> None:
        """Drop the ticks that nothing can be corrected from."""
        start = self._start(self._oldest)
        for number in range(next(iter(self._past)), start):
            del self._past[number]

    def _start(self, tick: int) -> int:
        """Number of the newest saved tick that leads to a tick that has been run."""
        while self._past[tick].state is None:
            tick -= 1
        return tick

    def _run(self, tick: int, dt: float, inputs: Doubles) -> NDArray[np.uint8]:
        if self._before is not None:
            self._before(self._crowd, tick, dt)
        return self._crowd.move(inputs, dt, threads=self._threads)

    def correct(self, tick: ArrayLike, ids: ArrayLike, displacements: ArrayLike) -> Ints:
        """Apply inputs that have arrived late, and run forward again.

        Parameters
        ----------
        tick : int or (n,) array of ints
            Tick of each input. Inputs of ticks that have not been run wait for them.
        ids : (n,) array of ints
            Members.
        displacements : (n, 3) array of floats
            Metres.

        Returns
        -------
        (k,) ndarray of int64
            Ids of the members whose position is another one now.

        Raises
        ------
        ValueError
            If a tick is older than `ticks` holds. Nothing has changed then.
        KeyError
            If an id is unknown.
        """
        crowd = self._crowd
        wanted, moves = self._rows(ids, displacements, different=False)
        numbers = as_whole(tick, "tick", len(wanted))
        if len(set(zip(numbers.tolist(), wanted.tolist(), strict=True))) != len(wanted):
            raise ValueError("ids must be different from one another in each tick")
        late = numbers < self._tick
        oldest = self._oldest
        missing = late & (numbers < oldest)
        if missing.any():
            raise ValueError(f"tick must be >= {oldest}, the oldest one that is kept, got {int(numbers[missing][0])}")
        if len(wanted):
            self._ahead(int(numbers.max()))
        for number in set(numbers.tolist()):
            self._find(wanted[numbers == number], self._past[number].ids if number < self._tick else crowd.ids)
        if late.any() and crowd.state_hash() != self._hash:
            raise ValueError("tick: the crowd has been changed since it was advanced")

        for number in set(numbers[~late].tolist()):
            mine = numbers == number
            self._wait(number, wanted[mine], moves[mine])
        if not late.any():
            return np.zeros(0, np.int64)
        kept, first = dict(self._past), self._tick
        for number in set(numbers[late].tolist()):
            mine = numbers == number
            past = self._past[number]
            inputs = past.inputs.copy()
            inputs[self._find(wanted[mine], past.ids)] = moves[mine]
            if not np.array_equal(inputs, past.inputs):
                first = min(first, number)
                self._past[number] = past._replace(inputs=inputs)
        if first == self._tick:
            return np.zeros(0, np.int64)
        ended, members, poses = crowd.positions.copy(), crowd.save(), self._actors.save(moving=True)
        try:
            self._again(first, poses)
        except BaseException:
            self._past = kept
            crowd.restore(members)
            self._actors.restore(poses)
            raise
        return crowd.ids[(crowd.positions != ended).any(axis=1)]

    def _again(self, first: int, poses: bytes) -> None:
        """Run forward from a tick that has been run, with its inputs as they are now.

        The moving actors go where they were in each tick, and then back to `poses`: they may have
        been moved for the next tick already.
        """
        crowd = self._crowd
        start = self._start(first)
        state, now, saved = self._past[start].state, poses, start
        assert state is not None
        crowd.restore(state)
        for number in range(start, self._tick):
            past = self._past[number]
            if past.poses != now:
                now = past.poses
                self._actors.restore(now)
            if number == saved + SPACING:
                self._past[number], saved = past._replace(state=crowd.save()), number
            elif number > first:
                self._past[number] = past._replace(state=None)
            self._run(number, past.dt, past.inputs)
            if self._before is not None:
                now = self._actors.save(moving=True)
        if now != poses:
            self._actors.restore(poses)
        self._hash = crowd.state_hash()

    def _rows(self, ids: ArrayLike, displacements: ArrayLike, different: bool = True) -> tuple[Ints, Doubles]:
        wanted = as_whole(ids, "ids")
        if different and len(np.unique(wanted)) != len(wanted):
            raise ValueError("ids must be different from one another")
        return wanted, as_rows(displacements, "displacements", len(wanted))

    @staticmethod
    def _find(wanted: Ints, ids: Ints) -> Ints:
        """Indices of members; an unknown one is a KeyError."""
        order = np.argsort(ids)
        at = np.searchsorted(ids, wanted, sorter=order)
        found = order[np.minimum(at, len(ids) - 1)] if len(ids) else np.zeros(len(wanted), np.int64)
        good = ids[found] == wanted if len(ids) else np.zeros(len(wanted), bool)
        if not good.all():
            raise KeyError(f"ids: the crowd has no member {int(wanted[~good][0])}")
        return found
