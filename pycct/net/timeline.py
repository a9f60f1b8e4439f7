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


class _Tick(NamedTuple):
    """A tick that has been run."""

    # The crowd before its move, and moving actors where they were during the move.
    state: bytes
    # The same without the members: poses alone, or nothing if no actor has moved since the tick before.
    poses: Doubles
    dt: float
    inputs: Doubles
    ids: Ints


class Timeline:
    """The last ticks of a crowd, and the inputs that made them.

    Each tick, move the platforms, give the inputs, and `advance`. An input that arrives late goes to `correct`, which
    restores the crowd and all kinematic and dynamic actors and obstacles to that tick, applies the input, and runs
    forward again. The result has the bits that it would have if the input had been in time.

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
        ``before(crowd, tick, dt)`` is called before each move, again when a tick runs again: for `Crowd.separate`
        and other changes that are a part of every tick.
    threads : int
        As for `Crowd.move`.

    Notes
    -----
    A correction reaches back to the last tick before which members came, left, or were changed by anything but
    `advance` and `before`: older ticks are dropped then. Static actors are not restored.
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
        return list(self._past)

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
            order = np.argsort(ids)
            for member, move in waiting.items():
                at = int(np.searchsorted(ids, member, sorter=order))
                if at < len(ids) and ids[order[at]] == member:
                    inputs[order[at]] = move
        state = crowd.save(moving=True)
        flags = self._run(self._tick, seconds, inputs)
        self._past[self._tick] = _Tick(state, self._poses(), seconds, inputs, ids)
        self._waiting.pop(self._tick, None)
        if len(self._past) > self._size:
            del self._past[next(iter(self._past))]
        self._tick += 1
        self._hash = crowd.state_hash()
        return flags

    def _run(self, tick: int, dt: float, inputs: Doubles) -> NDArray[np.uint8]:
        if self._before is not None:
            self._before(self._crowd, tick, dt)
        return self._crowd.move(inputs, dt, threads=self._threads)

    def _poses(self) -> Doubles:
        """Poses of all that may move, to tell whether anything has."""
        scene = self._crowd.scene
        others = [*(a for a in scene.actors if a.body != "static"), *scene.obstacles]
        return np.array([(a.id, *a.position, *a.rotation) for a in others]).reshape(-1, 8)

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
        if len(np.unique(np.column_stack([numbers, wanted]), axis=0)) != len(wanted):
            raise ValueError("ids must be different from one another in each tick")
        late = numbers < self._tick
        missing = np.array([n not in self._past for n in numbers.tolist()], bool) & late
        if missing.any():
            oldest = next(iter(self._past), self._tick)
            raise ValueError(f"tick must be >= {oldest}, the oldest one that is kept, got {int(numbers[missing][0])}")
        if len(wanted):
            self._ahead(int(numbers.max()))
        for number in np.unique(numbers).tolist():
            self._find(wanted[numbers == number], self._past[number].ids if number < self._tick else crowd.ids)
        if late.any() and crowd.state_hash() != self._hash:
            raise ValueError("tick: the crowd has been changed since it was advanced")

        for number in np.unique(numbers[~late]).tolist():
            mine = numbers == number
            self._wait(number, wanted[mine], moves[mine])
        if not late.any():
            return np.zeros(0, np.int64)
        kept, members = dict(self._past), crowd.save(moving=True)
        changed = False
        first = self._tick
        for number in np.unique(numbers[late]).tolist():
            mine = numbers == number
            past = self._past[number]
            inputs = past.inputs.copy()
            inputs[self._find(wanted[mine], past.ids)] = moves[mine]
            if not np.array_equal(inputs, past.inputs):
                changed, first = True, min(first, number)
                self._past[number] = past._replace(inputs=inputs)
        if not changed:
            return np.zeros(0, np.int64)
        ended = crowd.positions.copy()
        try:
            poses = self._poses()
            self._again(first)
            if not np.array_equal(poses, self._poses()):
                # Platforms may have been moved for the next tick already.
                self._keep_members(members)
        except BaseException:
            crowd.restore(members)
            self._past = kept
            raise
        return crowd.ids[(crowd.positions != ended).any(axis=1)]

    def _again(self, first: int) -> None:
        """Run forward from a tick that has been run, with its inputs as they are now."""
        crowd = self._crowd
        crowd.restore(self._past[first].state)
        poses = self._past[first].poses
        for number in range(first, self._tick):
            past = self._past[number]
            if number > first:
                if not np.array_equal(past.poses, poses):
                    # Platforms go where they were; members stay where they are now.
                    self._keep_members(past.state)
                    poses = past.poses
                self._past[number] = past._replace(state=crowd.save(moving=True))
            self._run(number, past.dt, past.inputs)
        self._hash = crowd.state_hash()

    def _keep_members(self, state: bytes) -> None:
        """Restore the moving actors of a state only."""
        members = self._crowd.save()
        self._crowd.restore(state)
        self._crowd.restore(members)

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
