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
from pycct.sharding.grid import Grid, Owners, strips
from pycct.sharding.shard import Shard

try:
    import ray
except ImportError as e:
    raise ImportError("pycct.sharding.ray needs Ray: pip install pycct[ray]") from e

MASK = (1 << 64) - 1


class _Worker:
    """One shard in a process of its own."""

    def __init__(self, scene: str, size: float, cells: Any, index: int, options: dict[str, float]) -> None:
        self.shard = Shard(Scene.load(scene), Grid(size), cells, index, **options)
        self.count = self.shard.owners.count

    def populate(self, data: bytes) -> int:
        self.shard.populate(data)
        return len(self.shard)

    def begin(self, tick: int) -> Any:
        """Return one message for each shard, empty for this one; Ray makes each an object."""
        out = self.shard.begin(tick)
        messages = [out.get(k, b"") for k in range(self.count)]
        return messages if self.count > 1 else messages[0]

    def finish(self, tick: int, ids: Any, displacements: Any, dt: float, threads: int, moving: Any,
               *inbox: bytes) -> int:
        return self.shard.finish(tick, [m for m in inbox if m], ids, displacements, dt, threads=threads, moving=moving)

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
        The shards did not answer within `timeout`.

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
            raise ValueError(f"shards must be at least 1, got {count}")
        if operator.index(keyframe) < 1:
            raise ValueError(f"keyframe must be at least 1, got {keyframe}")
        if not (np.isfinite(timeout) and timeout > 0):
            raise ValueError(f"timeout must be finite and above 0, got {timeout!r:.60}")
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
        self._tick = 0
        self._settled: int | None = None
        self._inputs: list[tuple[Any, ...]] = []
        self._workers = [self._spawn(k) for k in range(count)]
        self._get([w.populate.remote(crowd) for w in self._workers])
        self._keyframes = self._get([w.save.remote() for w in self._workers])

    def __enter__(self) -> ShardedCrowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn(self, index: int) -> Any:
        return self._actor.remote(self._path, self._cut.size, self._cells, index, self._options)

    def _get(self, refs: Any) -> Any:
        try:
            return ray.get(refs, timeout=self.timeout)
        except ray.exceptions.GetTimeoutError:
            raise TimeoutError(f"the shards did not answer within {self.timeout:g} s") from None

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of all characters, rising."""
        return self._ids

    @property
    def processes(self) -> list[int]:
        """Process ids of the shards."""
        return list(self._get([w.process.remote() for w in self._workers]))

    def kill(self, index: int) -> None:
        """End the process of a shard, as a failing machine would; the next call brings it back."""
        ray.kill(self._workers[operator.index(index)])

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
        number, way = np.asarray(ids), np.asarray(displacements, float)
        if way.shape != (len(number), 3) or not np.isfinite(way).all():
            raise ValueError("displacements must be finite, one row for each id")
        # Most callers pass `ids` itself, and the comparison is 100 times as fast as the search.
        if not np.array_equal(number, self._ids):
            missing = np.setdiff1d(self._ids, number)
            if len(missing):
                raise ValueError(f"ids must contain every character; {missing[0]} is missing")
        refs = ray.put(number), ray.put(way)
        found = self._safely((*refs, float(dt), int(threads), moving))
        self._settled = None
        return found

    def hash(self) -> int:
        """Return `Crowd.state_hash` of the whole crowd."""
        if self._settled is None:
            self._settled = self._safely((None, None, 0.0, 1, None))
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

    def _run(self, job: tuple[Any, ...]) -> int:
        """One tick of all shards."""
        tick = self._tick + 1
        boxes = [w.begin.options(num_returns=self._count).remote(tick) for w in self._workers]
        if self._count == 1:
            boxes = [[box] for box in boxes]
        found = self._get([
            w.finish.remote(tick, *job, *[boxes[j][k] for j in range(self._count) if j != k])
            for k, w in enumerate(self._workers)])
        self._tick = tick
        return int(sum(found) & MASK)

    def _safely(self, job: tuple[Any, ...]) -> int:
        """One tick, repeated from the last keyframe when a shard is lost on the way."""
        found = self._again(lambda: self._run(job))
        self._inputs.append(job)
        if len(self._inputs) >= self.keyframe:
            self._keyframes = self._again(lambda: self._get([w.save.remote() for w in self._workers]))
            self._inputs = []
        return int(found)

    def _again(self, act: Any, tries: int = 3) -> Any:
        while True:
            try:
                return act()
            except ray.exceptions.RayActorError:
                tries -= 1
                if tries < 0:
                    raise RuntimeError("shards were lost again and again") from None
                self._revive()

    def _revive(self) -> None:
        """All shards from the last keyframe, and the inputs since: lost ones in new processes."""
        for k in range(self._count):
            try:
                self._get(self._workers[k].process.remote())
            except ray.exceptions.RayActorError:
                self._workers[k] = self._spawn(k)
        self._get([w.restore.remote(data) for w, data in zip(self._workers, self._keyframes, strict=True)])
        self._tick -= len(self._inputs)
        for job in self._inputs:
            self._run(job)

    def close(self) -> None:
        """End the shards, and Ray if it was started here; calls after the first do nothing."""
        for w in self._workers:
            ray.kill(w)
        self._workers = []
        if self._started and ray.is_initialized():
            ray.shutdown()
            self._started = False
