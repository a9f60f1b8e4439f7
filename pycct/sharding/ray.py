"""Shards as Ray actors: one world on several processes or machines (``pip install pycct[ray]``).

The driver sends inputs and receives hashes. The messages between shards are Ray objects, which go
from actor to actor and not through the driver.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import Crowd, Scene
from pycct.args.plain import short
from pycct.sharding.grid import Grid, Owners, strips
from pycct.sharding.shard import Shard, checked_motions, checked_step

try:
    import ray
except ImportError as e:
    raise ImportError("pycct.sharding.ray needs Ray: pip install pycct[ray]") from e

MASK = (1 << 64) - 1
# Seconds that a shard has to show that it lives, after a tick that failed.
PATIENCE = 10.0


class _Worker:
    """One shard in a process of its own."""

    def __init__(self, scene: str, size: float, cells: Any, index: int, options: dict[str, float]) -> None:
        self.shard = Shard(Scene.load(scene), Grid(size), cells, index, **options)
        self.count = self.shard.owners.count

    def populate(self, data: bytes) -> int:
        self.shard.populate(data)
        return len(self.shard)

    def begin(self, tick: int) -> list[bytes]:
        """Return one message for each shard, empty for this one; Ray makes each an object."""
        out = self.shard.begin(tick)
        return [out.get(k, b"") for k in range(self.count)]

    def finish(self, tick: int, ids: Any, displacements: Any, dt: float, threads: int, moving: Any,
               *inbox: bytes) -> list[Any]:
        """Return the hash, and the messages for the next tick."""
        found = self.shard.finish(tick, [m for m in inbox if m], ids, displacements, dt, threads=threads,
                                  moving=moving)
        return [found, *self.begin(tick + 1)]

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return self.shard.ids, self.shard.positions.copy()

    def raycast_many(self, origins: Any, directions: Any, max_distance: Any) -> tuple[Any, ...]:
        found = self.shard.raycast_many(origins, directions, max_distance)
        return found.hit, found.distance, found.position, found.normal, found.actor, found.controller

    def save(self) -> bytes:
        return self.shard.save()

    def restore(self, data: bytes) -> None:
        self.shard.restore(data)

    def process(self) -> int:
        return os.getpid()


class ShardedCrowd:
    """A crowd whose members live in several processes, with the bits of one `Crowd`.

    Parameters
    ----------
    scene : str or path
        A cooked scene, from `Scene.save`. Each shard opens it by memory mapping.
    crowd : bytes
        The members, from `Crowd.save` of a crowd in that scene.
    shards : int, default 2
        Number of shards.
    cut : Grid
        The cut of the ground plane.
    cells : mapping or sequence of lists, optional
        The shard that owns each cell, as for `Shard`. The default cuts the members' area into
        strips along y.
    max_motion, max_radius : float
        As for `Shard`, metres.
    keyframe : int, default 100
        Ticks between two keyframes. After the loss of a shard at most so many ticks are repeated.
    timeout : float, default 60
        Seconds that one tick may take.

    Raises
    ------
    ValueError, TypeError
        An argument makes no sense.
    TimeoutError
        The shards did not answer within `timeout`. The tick has not happened then: the next call
        replaces shards that still do not answer, and goes on from the last keyframe.
    RuntimeError
        The shards have ended (`close`), or are lost again and again.

    Notes
    -----
    A local Ray is started unless the program is connected to one. `close`, or leaving a ``with``
    block, ends the shards, and Ray too if it was started here.
    """

    def __init__(self, scene: str | os.PathLike[str], crowd: bytes, *, shards: int = 2, cut: Grid,
                 cells: Mapping[tuple[int, int], int] | Sequence[Any] | None = None, max_motion: float = 1.0,
                 max_radius: float = 1.0, keyframe: int = 100, timeout: float = 60.0) -> None:
        count = operator.index(shards)
        if count < 1:
            raise ValueError(f"shards must be at least 1, got {short(count)}")
        if operator.index(keyframe) < 1:
            raise ValueError(f"keyframe must be at least 1, got {short(keyframe)}")
        if not (np.isfinite(timeout) and timeout > 0):
            raise ValueError(f"timeout must be finite and above 0, got {short(timeout)}")
        if not isinstance(cut, Grid):
            raise TypeError(f"cut must be a Grid, not {type(cut).__name__}")
        self._path = os.fspath(scene)
        # Fails here, in words, and not in another process.
        whole = Crowd(Scene.load(self._path), np.empty((0, 3)))
        whole.insert(crowd)
        if cells is None:
            at = cut.cells_of(whole.positions) if len(whole) else np.zeros((1, 2), np.int64)
            low, high = at.min(0), at.max(0) + 1
            high[0] = max(high[0], low[0] + count)
            cells = strips((int(low[0]), int(low[1])), (int(high[0]), int(high[1])), count)
        self._owners = Owners(cells)
        if self._owners.count != count:
            raise ValueError(f"cells must name {count} shards, not {self._owners.count}")
        self._cells, self._cut, self._count = cells, cut, count
        self._options = {"max_motion": max_motion, "max_radius": max_radius}
        Shard(Scene.load(self._path), cut, cells, 0, **self._options)
        self.timeout, self.keyframe = float(timeout), int(keyframe)
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(num_cpus=max(count, 1), include_dashboard=False, log_to_driver=False, configure_logging=False)
        self._actor = ray.remote(num_cpus=1 if self._started else 0, max_restarts=0)(_Worker)
        self._ids = whole.ids.copy()
        self._tick = self._keyframe_tick = 0
        self._settled: int | None = None
        self._inputs: list[list[Any]] = []
        # A tick was begun and not finished everywhere: all shards go back to the keyframe first.
        self._behind = False
        # Messages of the shards for the next tick, a row for each sender.
        self._boxes: list[list[Any]] = []
        self._workers: list[Any] = []
        try:
            # Most callers pass the same ids in every tick.
            self._ids_stored = ray.put(self._ids)
            self._workers = [self._spawn(k) for k in range(count)]
            self._get([w.populate.remote(crowd) for w in self._workers])
            self._begin()
            self._keyframes = self._get([w.save.remote() for w in self._workers])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ShardedCrowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn(self, index: int) -> Any:
        return self._actor.remote(self._path, self._cut.size, self._cells, index, self._options)

    def _get(self, refs: Any, patience: float = np.inf) -> Any:
        seconds = min(self.timeout, patience)
        try:
            return ray.get(refs, timeout=seconds)
        except ray.exceptions.GetTimeoutError:
            raise TimeoutError(f"the shards did not answer within {seconds:g} s") from None
        except ray.exceptions.RayTaskError as problem:
            # What the shard raised, without the trace of its process.
            if isinstance(problem.cause, Exception):
                raise problem.cause from None
            raise

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of all characters, rising."""
        return self._ids

    @property
    def processes(self) -> list[int]:
        """Process ids of the shards."""
        return list(self._again(lambda: self._get([w.process.remote() for w in self._workers])))

    def kill(self, index: int) -> None:
        """End the process of a shard, as a failing machine would; the next call brings it back."""
        k = operator.index(index)
        if not 0 <= k < self._count:
            raise ValueError(f"index must be 0 to {self._count - 1}, got {short(k)}")
        self._check_open()
        ray.kill(self._workers[k])

    def tick(self, ids: ArrayLike, displacements: ArrayLike, dt: float, *, threads: int = 1,
             moving: tuple[Any, ...] | None = None) -> int:
        """Move all characters once.

        Parameters
        ----------
        ids : (m,) array of int
            Ids that `displacements` are for: every character's.
        displacements : (m, 3) array of float
            Metres.
        dt : float
            Seconds.
        threads : int, default 1
            Threads of each shard.
        moving : tuple, optional
            Arguments of `Scene.move_actors`, applied before the move.

        Returns
        -------
        int
            `Crowd.state_hash` of the whole crowd before the move.
        """
        number, way = checked_motions(ids, displacements, self._options["max_motion"])
        seconds, workers = checked_step(dt, threads)
        # Most callers pass `ids` itself, and the comparison is 100 times as fast as the search.
        usual = np.array_equal(number, self._ids)
        if not usual:
            missing = np.setdiff1d(self._ids, number)
            if len(missing):
                raise ValueError(f"ids must contain every character; {missing[0]} is missing")
        self._check_open()
        ids_stored = self._ids_stored if usual else ray.put(number)
        found = self._safely([ids_stored, way, seconds, workers, moving])
        self._settled = None
        return found

    def hash(self) -> int:
        """Return `Crowd.state_hash` of the whole crowd."""
        self._check_open()
        if self._settled is None:
            self._settled = self._safely([None, None, 0.0, 1, None])
        return self._settled

    def positions(self) -> NDArray[np.float64]:
        """Return the positions of all characters, (n, 3), metres, in the order of `ids`."""
        parts = self._again(lambda: self._get([w.state.remote() for w in self._workers]))
        ids = np.concatenate([p[0] for p in parts])
        where = np.concatenate([p[1] for p in parts])
        ordered: NDArray[np.float64] = where[np.argsort(ids)]
        return ordered

    def raycast_many(self, origins: ArrayLike, directions: ArrayLike, max_distance: float) -> dict[str, NDArray[Any]]:
        """Return what rays meet: shapes, and characters of every shard.

        Parameters
        ----------
        origins, directions : (n, 3) arrays of float
            Metres; directions of any length.
        max_distance : float
            Metres.

        Returns
        -------
        dict of arrays
            ``hit``, ``distance`` (m), ``position`` (m), ``normal``, ``actor`` and ``controller``
            (ids, -1: none), one row a ray.
        """
        o, d = np.asarray(origins, float), np.asarray(directions, float)
        if o.ndim != 2 or o.shape[1] != 3 or d.shape != o.shape:
            raise ValueError(f"origins and directions must have shape (n, 3), got {o.shape} and {d.shape}")
        if not (np.isfinite(o).all() and np.isfinite(d).all()):
            raise ValueError("origins and directions must be finite")
        if np.ndim(max_distance) or not (np.isfinite(max_distance) and max_distance >= 0):
            raise ValueError(f"max_distance must be a finite number of at least 0, got {short(max_distance)}")
        self.hash()
        length = np.sqrt((d * d).sum(1, keepdims=True))
        ends = o + d / np.where(length > 0, length, 1) * max_distance
        reach = self._options["max_radius"]
        low, high = np.minimum(o, ends)[:, :2] - reach, np.maximum(o, ends)[:, :2] + reach
        rows = [self._rows_of(k, low, high) for k in range(self._count)]

        def ask() -> Any:
            return self._get([w.raycast_many.remote(o[r], d[r], max_distance)
                              for w, r in zip(self._workers, rows, strict=True)])

        names = ("hit", "distance", "position", "normal", "actor", "controller")
        out: dict[str, NDArray[Any]] = {}
        best = np.full(len(o), np.inf)
        for r, part in zip(rows, self._again(ask), strict=True):
            if not out:
                out = {n: np.zeros((len(o), *a.shape[1:]), a.dtype) for n, a in zip(names, part, strict=True)}
                out["actor"][:] = out["controller"][:] = -1
                out["distance"][:] = np.inf
            nearer = part[0] & (part[1] < best[r])
            best[r[nearer]] = part[1][nearer]
            for n, a in zip(names, part, strict=True):
                out[n][r[nearer]] = a[nearer]
        return out

    def _rows_of(self, k: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rays whose boxes touch a cell of shard k.

        Shapes are in every shard, so one shard answers for them.
        """
        owners = self._owners
        a, b = self._cut.cells_of(low) - owners.low, self._cut.cells_of(high) - owners.low
        a, b = np.clip(a, 0, np.array(owners.table.shape) - 1), np.clip(b, 0, np.array(owners.table.shape) - 1)
        total = np.zeros((owners.table.shape[0] + 1, owners.table.shape[1] + 1), np.int64)
        total[1:, 1:] = (owners.table == k).cumsum(0).cumsum(1)
        inside = (total[b[:, 0] + 1, b[:, 1] + 1] - total[a[:, 0], b[:, 1] + 1] - total[b[:, 0] + 1, a[:, 1]]
                  + total[a[:, 0], a[:, 1]])
        found: NDArray[np.int64] = np.flatnonzero(inside > 0)
        return found

    def _run(self, job: list[Any]) -> int:
        """One tick of all shards; the displacements of the job become a reference."""
        tick = self._tick + 1
        self._behind = True
        if isinstance(job[1], np.ndarray):
            job[1] = ray.put(job[1])
        boxes = self._boxes
        answers = [
            w.finish.options(num_returns=1 + self._count).remote(
                tick, *job, *[boxes[j][k] for j in range(self._count) if j != k])
            for k, w in enumerate(self._workers)]
        found = self._get([a[0] for a in answers])
        self._boxes = [a[1:] for a in answers]
        self._behind = False
        self._tick = tick
        return int(sum(found) & MASK)

    def _begin(self) -> None:
        """Ask for the messages of the next tick, which no tick before has returned."""
        # A single shard has no message to read.
        self._boxes = [w.begin.options(num_returns=self._count).remote(self._tick + 1) for w in self._workers]

    def _safely(self, job: list[Any]) -> int:
        """One tick, repeated from the last keyframe when a shard is lost on the way."""
        found = self._again(lambda: self._run(job))
        self._inputs.append(job)
        if len(self._inputs) >= self.keyframe:
            self._keyframes = self._again(lambda: self._get([w.save.remote() for w in self._workers]))
            self._keyframe_tick = self._tick
            self._inputs = []
        return int(found)

    def _again(self, act: Any, tries: int = 3) -> Any:
        """Call a function of all shards; when some are lost, bring them back and call it again."""
        self._check_open()
        while True:
            try:
                if self._behind:
                    self._revive()
                return act()
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError):
                # A lost machine takes its messages along.
                self._behind = True
                tries -= 1
                if tries < 0:
                    raise RuntimeError("shards were lost again and again") from None

    def _check_open(self) -> None:
        if not self._workers:
            raise RuntimeError("the shards have ended: the ShardedCrowd is closed")

    def _revive(self) -> None:
        """All shards from the last keyframe, and the inputs since: lost ones in new processes."""
        for k in range(self._count):
            try:
                self._get(self._workers[k].process.remote(), PATIENCE)
            except (ray.exceptions.RayActorError, TimeoutError):
                # One that does not answer is as good as lost.
                ray.kill(self._workers[k])
                self._workers[k] = self._spawn(k)
        self._get([w.restore.remote(data) for w, data in zip(self._workers, self._keyframes, strict=True)])
        self._tick = self._keyframe_tick
        self._begin()
        for job in self._inputs:
            self._run(job)
        self._behind = False

    def close(self) -> None:
        """End the shards, and Ray if it was started here; calls after the first do nothing."""
        workers, self._workers = self._workers, []
        if ray.is_initialized():
            for w in workers:
                ray.kill(w)
        if self._started and ray.is_initialized():
            ray.shutdown()
            self._started = False
