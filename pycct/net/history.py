"""Where everybody was: a ring of past ticks that answers rays, sweeps and overlaps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import Actor, Crowd, HitArrays, Scene, Shape
from pycct.net.checks import as_bits, as_count, as_number, as_rows, as_tick, as_units, as_whole
from pycct.net.rewind import offer_members

__all__ = ["History", "RewindHit"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ALL = 0xFFFFFFFF
UNROTATED = (0.0, 0.0, 0.0, 1.0)
# Cells of a grid for each member, and the least size of a cell, metres.
CELLS_PER_MEMBER, LEAST_CELL = 2, 0.5
# Boxes and lines are widened by this share of a cell, so that rounding misses no cell.
SLACK = 1e-6
# Members outside of this share of all are kept out of the grid; a member that is far away would
# make its cells large.
CORE = (2.0, 98.0)
# Columns of a row of parameters.
RADIUS, HEIGHT, UP, LAYER, GROUP = 0, 1, slice(2, 5), 5, 6
# What PARAMETERS holds beyond this and twice what is in use is given back.
SPARE_ROWS = 4096


class RewindHit(NamedTuple):
    """What a query of a past tick met first.

    Attributes
    ----------
    distance : float
        Way to the contact, metres.
    time : float
        `distance` as a fraction of the distance of the query.
    position, normal : (3,) tuple of floats
        Contact point, metres, and unit normal of what was met.
    actor, controller : int
        Id of the actor or of the member of the crowd; the other one is -1. Either may have been
        removed since.
    triangle, data, mask : int
        Index, ``triangle_data`` and ``triangle_mask`` of the triangle of a mesh; -1, 0 and all bits
        for other shapes.
    overlapping : bool
        True if the query started inside a solid.
    """

    distance: float
    time: float
    position: tuple[float, float, float]
    normal: tuple[float, float, float]
    actor: int
    controller: int
    triangle: int
    data: int
    mask: int
    overlapping: bool


class _Movers(NamedTuple):
    """Kinematic and dynamic actors of one tick, sorted by id."""

    ids: Ints
    positions: Doubles
    rotations: Doubles
    reach: Doubles          # radius of a ball about the position that holds the actor at any rotation, m
    layers: Ints
    twins: list[Actor]      # their copies in the scene that queries use


NO_MOVERS = _Movers(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64), [])


class _Moments(NamedTuple):
    """Rows of ticks: between two stored ticks, or at one (`share` 0, both slots alike)."""

    ticks: Doubles
    slot: Ints
    after: Ints
    share: Doubles

    def of(self, rows: NDArray[Any]) -> _Moments:
        return _Moments(*(column[rows] for column in self))


def _dot(a: Doubles, b: Doubles) -> Doubles:
    """Products of rows, summed in the order of the kernels."""
    out: Doubles = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]
    return out


def _spans(counts: Ints) -> tuple[Ints, Ints]:
    """Row of each item and number of the item in its row, for rows with so many items."""
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - first[rows]


def between_rotations(a: Doubles, b: Doubles, share: float) -> Doubles:
    """Interpolate (n, 4) unit quaternions linearly, the short way, and normalise them."""
    if share == 0.0:
        return a
    dot = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2] + a[:, 3] * b[:, 3]
    q = a + (np.where(dot[:, None] < 0.0, -b, b) - a) * share
    x, y, z, w = q.T
    size = np.sqrt(x * x + y * y + z * z + w * w)
    out: Doubles = q / size[:, None]
    return out


class History:
    """The ring of past ticks of a crowd and of the moving actors of its scene.

    A query of a past tick sees the members where they were then, kinematic and dynamic actors where
    they were then, and static actors where they are now. At a stored tick the answer has the bits
    of the same query of the scene with ``include="all"``, made when that tick was stored. Between
    two stored ticks, positions are interpolated linearly and rotations by normalised linear
    interpolation. Members and actors that were absent at either of the two are absent; radii,
    heights, layers and groups are those of the earlier one.

    Parameters
    ----------
    crowd : Crowd
        A crowd of one scene.
    ticks : int
        Stored ticks that are kept, 2 to 65,536; the oldest makes room for the newest.

    Notes
    -----
    A sweep or overlap with members whose ``up`` is not a coordinate axis may differ in the last
    bits from that of the scene.

    A stored tick takes 36 bytes for each member and 56 bytes for each member whose parameters have
    changed. The first query of a tick builds its index. A member that is teleported between two
    ticks is interpolated all the same.

    Single controllers and members of other crowds of the scene are not seen.
    """

    def __init__(self, crowd: Crowd, ticks: int = 64) -> None:
        if not isinstance(crowd, Crowd):
            raise TypeError(f"crowd must be a Crowd, not {type(crowd).__name__}")
        if crowd.worlds is not None:
            raise ValueError("crowd must have one scene, not Worlds")
        self._size = as_count(ticks, "ticks", 2, 65536)
        self._crowd, self._scene = crowd, crowd.scene
        # Numbers of the stored ticks from the oldest to the newest, and the slot of the oldest.
        self._numbers: list[int] = []
        self._first = 0
        self._count = np.zeros(self._size, np.int64)
        self._room(0)
        self._rows = np.zeros((0, 7))
        self._now = self._rows
        self._used = 0
        # Radius of a ball that holds any member that is stored, metres.
        self._largest = 0.0
        self._movers: list[_Movers] = [NO_MOVERS] * self._size
        self._stamp: tuple[int, int] | None = None
        self._actors: list[Actor] = []
        self._others: list[Actor] = []
        # Copies of the moving actors, and of the static ones while there are moving ones.
        self._stage = Scene()
        self._twins: dict[tuple[int, int], Actor] = {}
        self._parked: list[Actor] = []
        self._posed: float | None = None
        self._walls: Scene = self._scene
        self._wall_ids: Ints | None = None
        self._wall_stamp: tuple[int, int] | None = None
        # Grids: of a tick (0) and of the way to the next one (1).
        self._built = np.zeros((2, self._size), bool)
        self._grid = np.zeros((2, self._size, 5))                   # low x, low y, cells per metre, columns, rows
        self._starts = np.zeros((2, self._size, 2), np.int32)
        self._entries = np.zeros((2, self._size, 0, 2), np.int32)   # members of the first and of the second tick
        self._outside = np.zeros((2, self._size, 2), np.int64)      # range of entries of members outside of the grid

    # --- storing ----------------------------------------------------------------------------------

    @property
    def crowd(self) -> Crowd:
        """The crowd whose ticks are stored."""
        return self._crowd

    @property
    def ticks(self) -> list[int]:
        """Stored ticks, from the oldest to the newest."""
        return list(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """Memory of the stored ticks and of their indexes, bytes."""
        ring = self._ids.nbytes + self._places.nbytes + self._row.nbytes + self._rows.nbytes
        return ring + self._starts.nbytes + self._entries.nbytes + self._grid.nbytes

    def store(self, tick: int) -> None:
        """Store where all members and moving actors are.

        Parameters
        ----------
        tick : int
            Number of this tick, greater than that of the newest stored tick.

        Raises
        ------
        ValueError
            If ticks run backwards. `forget` makes room for ticks that are run again.
        """
        number = as_tick(tick)
        if self._numbers and number <= self._numbers[-1]:
            raise ValueError(f"tick must be greater than the newest stored tick {self._numbers[-1]}, got {number}")
        crowd = self._crowd
        ids, places = crowd.ids, crowd.positions
        now = np.empty((len(crowd), 7))
        for column, name in ((RADIUS, "radius"), (HEIGHT, "height"), (UP, "up"), (LAYER, "layer"), (GROUP, "group")):
            now[:, column] = crowd.get(name)
        movers = self._look()
        n = len(ids)
        if n > self._ids.shape[1]:
            self._room(max(n, 2 * self._ids.shape[1]))
        newest = (self._first + len(self._numbers) - 1) % self._size
        if len(self._numbers) == self._size:
            slot = self._first
            self._first = (slot + 1) % self._size
            del self._numbers[0]
        else:
            slot = (newest + 1) % self._size if self._numbers else self._first
        before = self._ids[newest, : self._count[newest]] if self._numbers else np.zeros(0, np.int64)
        self._row[slot, :n] = self._parameters(ids, now, before, newest)
        self._ids[slot, :n] = ids
        self._places[slot, :n] = places
        self._count[slot] = n
        self._movers[slot] = movers
        self._built[:, slot] = False
        self._built[1, newest] = False
        self._numbers.append(number)
        self._now, self._posed = now, None

    def forget(self, tick: int) -> None:
        """Forget all stored ticks from a tick on, so that they can be stored again.

        Parameters
        ----------
        tick : int
            First tick to forget; a later one than the newest stored tick forgets nothing.
        """
        number = as_tick(tick)
        kept = int(np.searchsorted(self._numbers, number)) if self._numbers else 0
        if kept == len(self._numbers):
            return
        del self._numbers[kept:]
        # The next tick is compared with no other one.
        self._posed = None
        self._now = np.full_like(self._now, np.nan)

    def _room(self, n: int) -> None:
        """Make room for so many members a tick."""
        def grown(name: str, *shape: int, dtype: Any = np.float64) -> None:
            array = np.zeros((self._size, n, *shape), dtype)
            old = getattr(self, name, array[:, :0])
            array[:, : old.shape[1]] = old
            setattr(self, name, array)

        self._ids: Ints
        self._places: Doubles
        self._row: NDArray[np.int32]
        grown("_ids", dtype=np.int64)
        grown("_places", 3)
        grown("_row", dtype=np.int32)

    def _parameters(self, ids: Ints, now: Doubles, before: Ints, newest: int) -> NDArray[np.int32]:
        """Rows of parameters of all members; new rows for those that have changed or are new."""
        if len(ids) == len(before) == len(self._now) and np.array_equal(ids, before):
            row = self._row[newest, : len(ids)].copy()
            changed = (now != self._now).any(axis=1)
        else:
            order = np.argsort(before, kind="stable")
            at = np.searchsorted(before, ids, sorter=order)
            at = order[np.minimum(at, len(order) - 1)] if len(order) else np.zeros(len(ids), np.int64)
            known = before[at] == ids if len(order) else np.zeros(len(ids), bool)
            row = np.where(known, self._row[newest, at], 0).astype(np.int32)
            old = self._now[at] if len(self._now) == len(before) and len(order) else np.full_like(now, np.nan)
            changed = ~known | (now != old).any(axis=1)
        count = int(changed.sum())
        if count:
            distinct, which = np.unique(now[changed], axis=0, return_inverse=True)
            if self._used + len(distinct) > len(self._rows):
                self._compact(row, len(distinct))
            row[changed] = self._used + which.reshape(-1)
            reach = float((distinct[:, RADIUS] + 0.5 * distinct[:, HEIGHT]).max())
            self._largest = max(self._largest, reach * (1.0 + 1e-6))
            self._rows[self._used: self._used + len(distinct)] = distinct
            self._used += len(distinct)
        return row

    def _compact(self, row: NDArray[np.int32], more: int) -> None:
        """Drop rows of parameters that no stored tick uses, and make room for more."""
        used = np.zeros(self._used, bool)
        used[row[row < self._used]] = True
        for slot in self._slots():
            used[self._row[slot, : self._count[slot]]] = True
        if used.sum() * 2 + SPARE_ROWS < self._used:
            number = (np.cumsum(used) - 1).astype(np.int32)
            row[:] = number[row]
            for slot in self._slots():
                self._row[slot, : self._count[slot]] = number[self._row[slot, : self._count[slot]]]
            self._rows = self._rows[: self._used][used]
            self._used = len(self._rows)
            reach = self._rows[:, RADIUS] + 0.5 * self._rows[:, HEIGHT]
            self._largest = float(reach.max(initial=0.0)) * (1.0 + 1e-6)
        grown = np.zeros((max(self._used + more, 2 * self._used, 16), 7))
        grown[: self._used] = self._rows[: self._used]
        self._rows = grown

    def _slots(self) -> list[int]:
        return [(self._first + k) % self._size for k in range(len(self._numbers))]

    def _look(self) -> _Movers:
        """Moving actors of the scene as they are now."""
        scene = self._scene
        # Static actors are those of before, and their number and all others of before make up the
        # whole scene.
        stamp = (scene.timestamp, len(scene))
        if stamp != self._stamp or any(a.scene is not scene for a in self._others):
            moving = [a for a in scene.actors if a.body != "static" and not a.trigger]
            self._stamp, self._others = stamp, [*moving, *scene.obstacles]
            self._actors = sorted(moving, key=lambda a: a.id)
        actors = self._actors
        if not actors:
            return NO_MOVERS
        twins, reach = [], []
        for actor in actors:
            key = (actor.id, id(actor.shape))
            twin = self._twins.get(key)
            if twin is None or twin.scale != actor.scale or twin.shape is not actor.shape:
                twin = self._stage.add(actor.shape, actor.position, actor.rotation, actor.scale,
                                       body="kinematic", layer=0)
                self._twins[key] = twin
            twins.append(twin)
            low, high = np.array(actor.bounds)
            far = np.maximum(np.abs(low - actor.position), np.abs(high - actor.position))
            reach.append(float(np.sqrt((far * far).sum())) * (1.0 + 1e-9))
        if len(self._twins) > 2 * len(actors) + 64:
            self._drop_twins(twins)
        return _Movers(
            np.array([a.id for a in actors], np.int64), np.array([a.position for a in actors]),
            np.array([a.rotation for a in actors]), np.array(reach),
            np.array([a.layer for a in actors], np.int64), twins,
        )

    def _drop_twins(self, now: list[Actor]) -> None:
        """Remove copies of actors that no stored tick names."""
        wanted = {twin.id for slot in self._slots() for twin in self._movers[slot].twins} | {t.id for t in now}
        with self._stage.edit():
            for twin in self._parked:
                twin.layer = 0
            for key, twin in list(self._twins.items()):
                if twin.id not in wanted:
                    self._stage.remove(twin)
                    del self._twins[key]
        self._parked, self._posed = [], None

    # --- moments ----------------------------------------------------------------------------------

    def _moments(self, ticks: Doubles, name: str) -> _Moments:
        """Slots and shares of ticks; those that are not stored are an error."""
        if not self._numbers:
            raise ValueError(f"{name} must be a stored tick, and no tick is stored")
        numbers = np.array(self._numbers, np.float64)
        low, high = numbers[0], numbers[-1]
        wrong = ~((ticks >= low) & (ticks <= high))
        if wrong.any():
            row = int(np.argmax(wrong))
            where = f", row {row} is {ticks[row]:g}" if name == "ticks" else f", got {ticks[row]:g}"
            raise ValueError(f"{name} must be from {low:.0f} to {high:.0f}{where}")
        k = np.searchsorted(numbers, ticks, side="right") - 1
        after = np.minimum(k + 1, len(numbers) - 1)
        gap = np.where(after > k, numbers[after] - numbers[k], 1.0)
        share = (ticks - numbers[k]) / gap
        after = np.where(share > 0.0, after, k)
        return _Moments(ticks, (self._first + k) % self._size, (self._first + after) % self._size, share)

    def _moment(self, tick: Any) -> _Moments:
        return self._moments(np.array([as_number(tick, "tick")]), "tick")

    def _both(self, slot: int, after: int) -> tuple[Ints, Ints]:
        """Indices in both ticks of the members that are in both."""
        ids, others = self._ids[slot, : self._count[slot]], self._ids[after, : self._count[after]]
        if slot == after or np.array_equal(ids, others):
            every = np.arange(len(ids))
            return every, every
        _, a, b = np.intersect1d(ids, others, assume_unique=True, return_indices=True)
        order = np.argsort(a)
        return a[order], b[order]

    def ids(self, tick: float) -> Ints:
        """Ids of the members at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.

        Returns
        -------
        (k,) ndarray of int64
        """
        m = self._moment(tick)
        a, _ = self._both(int(m.slot[0]), int(m.after[0]))
        return self._ids[m.slot[0], a]

    def positions(self, tick: float, ids: ArrayLike | None = None) -> Doubles:
        """Positions of the members at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.
        ids : (k,) array of ints, optional
            Members; by default those that `ids` returns for this tick.

        Returns
        -------
        (k, 3) ndarray of float64
            Centres, metres; NaN for a member that was absent at this tick.

        Raises
        ------
        KeyError
            If no stored tick contains an id.
        """
        m = self._moment(tick)
        slot, after, share = int(m.slot[0]), int(m.after[0]), float(m.share[0])
        a, b = self._both(slot, after)
        start = self._places[slot, a]
        places = start if share == 0.0 else start + (self._places[after, b] - start) * share
        if ids is None:
            return places
        wanted = as_whole(ids, "ids")
        there = self._ids[slot, a]
        order = np.argsort(there)
        at = np.searchsorted(there, wanted, sorter=order)
        out = np.full((len(wanted), 3), np.nan)
        if len(order):
            at = order[np.minimum(at, len(order) - 1)]
            found = there[at] == wanted
            out[found] = places[at[found]]
        else:
            found = np.zeros(len(wanted), bool)
        for number in wanted[~found].tolist():
            if not any((self._ids[s, : self._count[s]] == number).any() for s in self._slots()):
                raise KeyError(f"ids: no stored tick has a member {number}")
        return out

    def poses(self, tick: float) -> tuple[Ints, Doubles, Doubles]:
        """Poses of the kinematic and dynamic actors at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.

        Returns
        -------
        ids : (k,) ndarray of int64
        positions : (k, 3) ndarray of float64
            Metres.
        rotations : (k, 4) ndarray of float64
            Unit quaternions x, y, z, w.
        """
        m = self._moment(tick)
        actors, a, b = self._both_actors(int(m.slot[0]), int(m.after[0]))
        return self._poses(actors, self._movers[m.after[0]], a, b, float(m.share[0]))

    def _both_actors(self, slot: int, after: int) -> tuple[_Movers, Ints, Ints]:
        """Moving actors of a tick and the indices, in both ticks, of those that are in both."""
        one, two = self._movers[slot], self._movers[after]
        if one is two or (len(one.ids) == len(two.ids) and all(map(_same, one.twins, two.twins))):
            every = np.arange(len(one.ids))
            return one, every, every
        _, a, b = np.intersect1d(one.ids, two.ids, assume_unique=True, return_indices=True)
        same = np.array([one.twins[i] is two.twins[j] for i, j in zip(a.tolist(), b.tolist(), strict=True)], bool)
        return one, a[same], b[same]

    @staticmethod
    def _poses(one: _Movers, two: _Movers, a: Ints, b: Ints, share: float) -> tuple[Ints, Doubles, Doubles]:
        start = one.positions[a]
        places = start if share == 0.0 else start + (two.positions[b] - start) * share
        return one.ids[a], places, between_rotations(one.rotations[a], two.rotations[b], share)

    # --- walls and moving actors ------------------------------------------------------------------

    def _static(self) -> tuple[Scene, Ints | None]:
        """Return a scene of the static actors, and their ids by the ids of their copies."""
        scene = self._scene
        # A scene of static actors only serves as it is; their number tells whether a moving one has
        # come.
        stamp = (scene.timestamp, len(scene) if self._walls is scene else -1)
        if stamp != self._wall_stamp:
            fixed = [a for a in scene.actors if a.body == "static" and not a.trigger]
            if len(fixed) == len(scene):
                self._walls, self._wall_ids = scene, None
            else:
                self._walls = Scene()
                with self._walls.edit():
                    made = [self._walls.add(a.shape, a.position, a.rotation, a.scale, layer=a.layer) for a in fixed]
                # The last element answers -1, no actor.
                self._wall_ids = np.full(max((t.id for t in made), default=-1) + 2, -1, np.int64)
                self._wall_ids[[t.id for t in made]] = [a.id for a in fixed]
            self._wall_stamp = (scene.timestamp, len(scene) if self._walls is scene else -1)
        return self._walls, self._wall_ids

    def _pose_actors(self, tick: float, slot: int, after: int, share: float) -> dict[int, int]:
        """Move the copies of moving actors to their past poses.

        Return ids by those of the copies.
        """
        one, a, b = self._both_actors(slot, after)
        chosen = [one.twins[i] for i in a.tolist()]
        if self._posed != tick:
            _, places, rotations = self._poses(one, self._movers[after], a, b, share)
            with self._stage.edit():
                for twin in self._parked:
                    twin.layer = 0
                if chosen:
                    self._stage.move_actors([twin.id for twin in chosen], places, rotations)
                for twin, layer in zip(chosen, one.layers[a].tolist(), strict=True):
                    twin.layer = layer
            self._parked, self._posed = chosen, tick
        return dict(zip([twin.id for twin in chosen], one.ids[a].tolist(), strict=True))

    # --- rays -------------------------------------------------------------------------------------

    def raycast(
        self,
        tick: float,
        origin: ArrayLike,
        direction: ArrayLike,
        distance: float,
        mask: int = ALL,
        *,
        exclude: int = -1,
        group: int | None = None,
    ) -> RewindHit | None:
        """What a ray would have met first at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.
        origin, direction : (3,) floats
            Start of the ray, metres; direction of any length but zero.
        distance : float
            Length of the ray, metres, >= 0.
        mask : int
            Layers that are seen, as for `pycct.Scene.raycast`.
        exclude : int
            Id of a member that is not seen: the shooter.
        group : int, optional
            Members of other groups are not seen; by default members of all groups are.

        Returns
        -------
        RewindHit or None

        Raises
        ------
        ValueError
            If the tick is outside of the stored ones, or an argument is not finite.
        """
        moment, start = self._moment(tick), as_rows(origin, "origin", 1)
        given, way = as_rows(direction, "direction", 1), as_units(direction, "direction", 1)
        reach = np.array([as_number(distance, "distance", 0.0)])
        bits, out = as_bits(mask, "mask"), as_whole(exclude, "exclude", 1)
        return _first(self._rays(moment, start, given, way, reach, bits, out, _group(group)))

    def raycast_many(
        self,
        ticks: ArrayLike,
        origins: ArrayLike,
        directions: ArrayLike,
        distances: ArrayLike,
        mask: int = ALL,
        *,
        exclude: ArrayLike = -1,
        group: int | None = None,
    ) -> HitArrays:
        """`raycast` for many rays, each at its own tick.

        Parameters
        ----------
        ticks : float or (n,) array of floats
        origins : (n, 3) array of floats
        directions : (n, 3) array of floats or (3,) floats
        distances : float or (n,) array of floats
        mask : int
        exclude : int or (n,) array of ints
            Id of the member that each ray does not see; -1 for none.
        group : int, optional

        Returns
        -------
        HitArrays
        """
        start = as_rows(origins, "origins")
        n = len(start)
        moments = self._moments(as_rows(ticks, "ticks", n, 0), "ticks")
        given, d = as_rows(directions, "directions", n), as_units(directions, "directions", n)
        reach = as_rows(distances, "distances", n, 0)
        if (reach < 0.0).any():
            raise ValueError(f"distances must be >= 0, row {int(np.argmax(reach < 0.0))} is not")
        return self._rays(moments, start, given, d, reach, as_bits(mask, "mask"), as_whole(exclude, "exclude", n),
                          _group(group))

    def _rays(self, m: _Moments, origin: Doubles, given: Doubles, direction: Doubles, reach: Doubles, mask: int,
              exclude: Ints, group: int | None) -> HitArrays:
        # A scene normalises directions itself; a unit vector that is normalised again may change
        # its last bit.
        walls, names = self._static()
        hits = walls.raycast_many(origin, given, reach, mask)
        if names is not None:
            hits = hits._replace(actor=names[hits.actor])
        self._ray_actors(hits, m, origin, given, direction, reach, mask)
        self._ray_members(hits, m, origin, direction, reach, mask, exclude, group)
        return hits

    def _ray_actors(self, hits: HitArrays, m: _Moments, origin: Doubles, given: Doubles, direction: Doubles,
                    reach: Doubles, mask: int) -> None:
        """Offer the moving actors to rays."""
        if not self._twins:
            return
        key = m.slot * self._size + m.after
        for pair in np.unique(key).tolist():
            slot, after = divmod(pair, self._size)
            one, a, b = self._both_actors(slot, after)
            if not len(a):
                continue
            two = self._movers[after]
            ball = np.maximum(one.reach[a], two.reach[b])[:, None]
            low = np.minimum(one.positions[a], two.positions[b]) - ball
            high = np.maximum(one.positions[a], two.positions[b]) + ball
            rows = np.flatnonzero(key == pair)
            near = rows[_boxes_near(low, high, origin[rows], direction[rows], hits.distance[rows]).any(axis=1)]
            for tick in np.unique(m.ticks[near]).tolist():
                at = near[m.ticks[near] == tick]
                ids = self._pose_actors(tick, slot, after, float(m.share[at[0]]))
                found = self._stage.raycast_many(origin[at], given[at], reach[at], mask)
                better = _better(found, hits, at, direction)
                _take(hits, found, at, better)
                hits.actor[at[better]] = [ids[k] for k in found.actor[better].tolist()]

    def _ray_members(self, hits: HitArrays, m: _Moments, origin: Doubles, direction: Doubles, reach: Doubles,
                     mask: int, exclude: Ints, group: int | None) -> None:
        """Offer the members to rays."""
        self._index((m.after != m.slot).astype(np.int64), m.slot, m.after)
        offer_members(
            hits, (m.slot, m.after, m.share, np.argsort(m.slot, kind="stable")), (origin, direction, reach, exclude),
            (self._ids, self._places, self._row, self._rows),
            (self._grid, self._starts, self._entries, self._outside), self._largest, mask, group,
        )

    # --- grids ------------------------------------------------------------------------------------

    def _index(self, kind: Ints, slot: Ints, after: Ints) -> None:
        """Build the grids that are missing."""
        missing = np.flatnonzero(~self._built[kind, slot])
        if len(missing):
            for k, s, t in {(int(kind[i]), int(slot[i]), int(after[i])) for i in missing}:
                self._build(k, s, t)

    def _build(self, kind: int, slot: int, after: int) -> None:
        a, b = self._both(slot, after)
        n = len(a)
        shape = self._rows[self._row[slot, a]]
        ball = shape[:, RADIUS] + 0.5 * shape[:, HEIGHT] * np.sqrt((shape[:, UP] ** 2)[:, :2].sum(axis=1))
        one, two = self._places[slot, a, :2], self._places[after, b, :2]
        low, high = np.minimum(one, two) - ball[:, None], np.maximum(one, two) + ball[:, None]
        centre = 0.5 * (low + high)
        if n:
            core = np.percentile(centre, CORE, axis=0)
            room = 0.5 * (core[1] - core[0]) + 8.0
            inner = ((low >= core[0] - room) & (high <= core[1] + room)).all(axis=1)
        else:
            inner = np.zeros(0, bool)
        members = np.flatnonzero(inner)
        if len(members):
            corner, far = low[members].min(axis=0), high[members].max(axis=0)
            width = far - corner
            size = max(float(np.sqrt(width[0] * width[1] / (CELLS_PER_MEMBER * len(members)))),
                       float(np.median(high[members] - low[members])), LEAST_CELL)
            rate = 1.0 / size
            shape_ = np.maximum(np.floor(width * rate).astype(np.int64) + 1, 1)
        else:
            corner, rate, shape_ = np.zeros(2), 1.0, np.ones(2, np.int64)
        limit = shape_ - 1
        first = np.clip(np.floor((low[members] - corner) * rate - SLACK), 0, limit).astype(np.int64)
        last = np.clip(np.floor((high[members] - corner) * rate + SLACK), 0, limit).astype(np.int64)
        wide = last - first + 1
        row, item = _spans(wide[:, 0] * wide[:, 1])
        x, y = first[row, 0] + item // wide[row, 1], first[row, 1] + item % wide[row, 1]
        cell = x * shape_[1] + y
        order = np.argsort(cell, kind="stable")
        chosen = members[row[order]]
        outer = np.flatnonzero(~inner)
        every = np.concatenate([chosen, outer])
        cells = int(shape_[0] * shape_[1])
        self._starts = _widened(self._starts, cells + 1)
        self._entries = _widened(self._entries, len(every))
        self._starts[kind, slot, : cells + 1] = np.searchsorted(cell[order], np.arange(cells + 1))
        self._entries[kind, slot, : len(every), 0] = a[every]
        self._entries[kind, slot, : len(every), 1] = b[every]
        self._outside[kind, slot] = len(chosen), len(every)
        self._grid[kind, slot] = (*corner, rate, *shape_)
        self._built[kind, slot] = True

    # --- shapes -----------------------------------------------------------------------------------

    def sweep(
        self,
        tick: float,
        shape: Shape,
        position: ArrayLike,
        direction: ArrayLike,
        distance: float,
        rotation: ArrayLike = UNROTATED,
        mask: int = ALL,
        *,
        exclude: int = -1,
        group: int | None = None,
    ) -> RewindHit | None:
        """What a moving shape would have met first at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.
        shape : Sphere, Capsule, Box, ConvexHull, Triangle or Plane
        position, direction : (3,) floats
            Start of the shape, metres; direction of any length but zero.
        distance : float
            Length of the way, metres, >= 0.
        rotation : (4,) floats
            Unit quaternion x, y, z, w.
        mask, exclude, group
            As for `raycast`.

        Returns
        -------
        RewindHit or None
        """
        m = self._moment(tick)
        place = as_rows(position, "position", 1)
        reach = np.array([as_number(distance, "distance", 0.0)])
        bits, out, only = as_bits(mask, "mask"), as_whole(exclude, "exclude", 1), _group(group)
        given, way = as_rows(direction, "direction", 1), as_units(direction, "direction", 1)
        turn = as_rows(rotation, "rotation", 1, 4)
        walls, names = self._static()
        hits = walls.sweep_many(shape, place, given, reach, turn, bits)
        if names is not None:
            hits = hits._replace(actor=names[hits.actor])
        row = np.zeros(1, np.int64)
        for scene, ids, who, _ in self._then(m, int(out[0]), only):
            found = scene.sweep_many(shape, place, given, reach, turn, bits, include=who)
            field = found.controller if who == "characters" else found.actor
            field[found.hit] = [ids[k] for k in field[found.hit].tolist()]
            if _better(found, hits, row, way)[0]:
                hits = found
        return _first(hits)

    def overlap(
        self,
        tick: float,
        shape: Shape,
        position: ArrayLike,
        rotation: ArrayLike = UNROTATED,
        mask: int = ALL,
        *,
        exclude: int = -1,
        group: int | None = None,
    ) -> tuple[Ints, Ints]:
        """What a shape would have overlapped at a tick.

        Parameters
        ----------
        tick : float
            A stored tick, or any number between two of them.
        shape : Sphere, Capsule, Box, ConvexHull, Triangle or Plane
        position : (3,) floats
            Metres.
        rotation : (4,) floats
            Unit quaternion x, y, z, w.
        mask, exclude, group
            As for `raycast`.

        Returns
        -------
        actors, controllers : (k,) ndarray of int64
            Ids of actors and of members of the crowd, each in ascending order.
        """
        m = self._moment(tick)
        place, turn = as_rows(position, "position", 1), as_rows(rotation, "rotation", 1, 4)
        bits, out, only = as_bits(mask, "mask"), as_whole(exclude, "exclude", 1), _group(group)
        walls, names = self._static()
        touched = walls.overlap_many(shape, place, turn, bits).actor
        actors = (touched if names is None else names[touched]).tolist()
        members: list[int] = []
        for scene, ids, who, _ in self._then(m, int(out[0]), only):
            found = scene.overlap_many(shape, place, turn, bits, include=who)
            if who == "characters":
                members += [ids[k] for k in found.controller.tolist()]
            else:
                actors += [ids[k] for k in found.actor.tolist()]
        return np.array(sorted(actors), np.int64), np.array(sorted(members), np.int64)

    def _then(self, m: _Moments, exclude: int, group: int | None) -> list[tuple[Scene, dict[int, int], Any, Crowd]]:
        """Return the scenes of actors and of members at a moment, their ids, and the crowd."""
        slot, after, share = int(m.slot[0]), int(m.after[0]), float(m.share[0])
        scenes: list[tuple[Scene, dict[int, int], Any, Crowd]] = []
        actors = self._pose_actors(float(m.ticks[0]), slot, after, share)
        if actors:
            scenes.append((self._stage, actors, "actors", self._crowd))
        a, b = self._both(slot, after)
        shape = self._rows[self._row[slot, a]]
        keep = self._ids[slot, a] != exclude
        if group is not None:
            keep &= shape[:, GROUP] == group
        a, b, shape = a[keep], b[keep], shape[keep]
        if len(a):
            start = self._places[slot, a]
            places = start if share == 0.0 else start + (self._places[after, b] - start) * share
            scene = Scene()
            crowd = Crowd(scene, places, radius=shape[:, RADIUS], height=shape[:, HEIGHT], up=shape[:, UP],
                          layer=shape[:, LAYER].astype(np.int64), step_offset=0.0)
            scenes.append((scene, dict(zip(crowd.ids.tolist(), self._ids[slot, a].tolist(), strict=True)),
                           "characters", crowd))
        return scenes


def _same(a: Actor, b: Actor) -> bool:
    return a is b


def _group(value: int | None) -> int | None:
    return None if value is None else as_count(value, "group", -(1 << 31), (1 << 31) - 1)


def _first(hits: HitArrays) -> RewindHit | None:
    """The row of a batch of one."""
    if not hits.hit[0]:
        return None
    x, y, z = hits.position[0].tolist()
    u, v, w = hits.normal[0].tolist()
    return RewindHit(
        float(hits.distance[0]), float(hits.time[0]), (x, y, z), (u, v, w), int(hits.actor[0]), int(hits.controller[0]),
        int(hits.triangle[0]), int(hits.data[0]), int(hits.mask[0]), bool(hits.overlapping[0]),
    )


def _better(found: HitArrays, hits: HitArrays, at: Ints, direction: Doubles) -> Bools:
    """Return which hits are met before those at their rows.

    A nearer hit is met first, then an overlap, then the surface that faces the ray.
    """
    facing = np.abs(_dot(found.normal, direction[at])) > np.abs(_dot(hits.normal[at], direction[at]))
    inside = found.overlapping.astype(np.int8) - hits.overlapping[at].astype(np.int8)
    tie = (found.distance == hits.distance[at]) & ((inside > 0) | ((inside == 0) & facing))
    out: Bools = found.hit & (~hits.hit[at] | (found.distance < hits.distance[at]) | tie)
    return out


def _take(hits: HitArrays, found: HitArrays, at: Ints, better: Bools) -> None:
    """Put the better hits into their rows."""
    old: Any
    new: Any
    for old, new in zip(hits, found, strict=True):
        old[at[better]] = new[better]


def _boxes_near(low: Doubles, high: Doubles, origin: Doubles, direction: Doubles, reach: Doubles) -> Bools:
    """Whether each ray (n) may meet each box (m)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = 1.0 / direction[:, None, :]
        one, two = (low - origin[:, None, :]) * rate, (high - origin[:, None, :]) * rate
    level = direction[:, None, :] == 0.0
    within = (low <= origin[:, None, :]) & (origin[:, None, :] <= high)
    enter = np.where(level, np.where(within, -np.inf, np.inf), np.minimum(one, two)).max(axis=2)
    leave = np.where(level, np.where(within, np.inf, -np.inf), np.maximum(one, two)).min(axis=2)
    slack = 1e-9 * (1.0 + np.abs(enter))
    slack[~np.isfinite(slack)] = 0.0
    out: Bools = (np.maximum(enter, 0.0) <= np.minimum(leave, reach[:, None]) + slack)
    return out


def _widened(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Make room for n items along the third axis."""
    if n <= array.shape[2]:
        return array
    grown = np.zeros((*array.shape[:2], max(n, array.shape[2] * 3 // 2), *array.shape[3:]), array.dtype)
    grown[:, :, : array.shape[2]] = array
    return grown
