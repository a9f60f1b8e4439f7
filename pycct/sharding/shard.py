"""A shard: the characters of some cells, and read-only copies of their neighbours."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct import Crowd, Scene
from pycct.args.plain import short
from pycct.sharding.grid import Grid, Owners

# Of a message: its mark, tick, bytes of the members that change hands, bytes of the ghosts.
MESSAGE = struct.Struct("<8sqqq")
MARK = b"pycctSH1"
# Of a keyframe: its mark, tick, seconds of the last move, bytes of the members.
KEYFRAME = struct.Struct("<8sqdq")
KEYFRAME_MARK = b"pycctSK1"


class Shard:
    """The part of a world that one process owns.

    Parameters
    ----------
    scene : Scene
        The scene of this process. All shards have the same scene, with the same ids.
    cut : Grid
        The cut of the ground plane.
    cells : mapping of (i, j) to int, or sequence of lists of (i, j)
        The shard that owns each cell; the cells fill a rectangle. A position outside of it belongs
        to the nearest cell.
    index : int, default 0
        The shard that this one is.
    max_motion : float, default 1.0
        Longest motion of a character in one tick, across up, metres: displacement, ride, recovery
        and separation together.
    max_radius : float, default 1.0
        Largest radius plus contact offset of a character, metres. For a character whose up is not
        z, add the parts of half its height and of its step offset along x or y.

    Notes
    -----
    One tick of all shards is `begin`, an exchange of messages, and `finish`. The state after
    `finish` has the same bits as that of one ``Crowd(order="simultaneous")`` that moves all
    characters, for any cut. A crowd separates its members at the end of a move; a shard does so at
    the start of the next `finish`, from the new poses of its neighbours' characters. `hash` at that
    point, summed over the shards modulo 2**64, equals `Crowd.state_hash` of the whole crowd.

    A shard is used by one thread at a time.
    """

    def __init__(self, scene: Scene, cut: Grid, cells: Mapping[tuple[int, int], int] | Sequence[Any],
                 index: int = 0, *, max_motion: float = 1.0, max_radius: float = 1.0) -> None:
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        if not isinstance(cut, Grid):
            raise TypeError(f"cut must be a Grid, not {type(cut).__name__}")
        self.cut = cut
        self.owners = Owners(cells)
        self.index = operator.index(index)
        if not 0 <= self.index < self.owners.count:
            raise ValueError(f"index must be that of a shard in cells, 0 to {self.owners.count - 1}, "
                             f"got {short(index)}")
        for name, value in (("max_motion", max_motion), ("max_radius", max_radius)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and above 0, got {short(value)}")
        self.max_motion, self.max_radius = float(max_motion), float(max_radius)
        # One character moves towards another that stays where it was: both radii and one motion.
        # The SENSOR pass looks a radius ahead, even where the motion is shorter.
        self.halo = max(self.max_motion, self.max_radius) + 2.0 * self.max_radius
        if 2.0 * self.halo > cut.size:
            raise ValueError(f"cut must have cells of at least {2.0 * self.halo:g} m for a halo of {self.halo:g} m, "
                             f"not {cut.size:g}")
        self.scene = scene
        self.crowd = Crowd(scene, np.empty((0, 3)))
        self.ghosts = Crowd(scene, np.empty((0, 3)))
        self.tick = 0
        self._dt = 0.0
        self._leavers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Return the number of characters that this shard owns."""
        return len(self.crowd)

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the characters that this shard owns, rising."""
        return self.crowd.ids

    @property
    def positions(self) -> NDArray[np.float64]:
        """Positions of the characters that this shard owns, (n, 3), metres, by id."""
        return self.crowd.positions

    def populate(self, data: bytes) -> None:
        """Take the characters in this shard's cells out of a saved crowd.

        Parameters
        ----------
        data : bytes
            From `Crowd.save` or `Crowd.extract`; characters elsewhere are left out.
        """
        new = self.crowd.insert(data)
        at = self.crowd.index_of(new)
        try:
            self._check(at)
        except ValueError:
            self.crowd.remove(at)
            raise
        elsewhere = self.owners.of(self.cut.cells_of(self.crowd.positions[at])) != self.index
        if elsewhere.any():
            self.crowd.remove(at[elsewhere])

    def _check(self, at: NDArray[np.int64]) -> None:
        """ValueError if a character reaches farther along x or y than ``max_radius``."""
        if not len(at):
            return
        radius, offset, height, step = (np.asarray(self.crowd.get(name))[at]
                                        for name in ("radius", "contact_offset", "height", "step_offset"))
        # The axis of a character whose up is not z, and its steps, extend along the ground plane.
        across = np.abs(np.asarray(self.crowd.get("up"))[at, :2]).max(1)
        size = radius + offset + across * (0.5 * height + step)
        too_large = np.flatnonzero(size > self.max_radius)
        if len(too_large):
            k = too_large[0]
            what = "radius and contact offset" if across[k] == 0.0 else "radius, contact offset, half height and step"
            raise ValueError(f"character {self.crowd.ids[at[k]]} has a {what} of {size[k]:g} m along the ground, "
                             f"but max_radius is {self.max_radius:g} m")

    def begin(self, tick: int) -> dict[int, bytes]:
        """Pack what the other shards need for a tick.

        Parameters
        ----------
        tick : int
            The number of the tick, one above the last one.

        Returns
        -------
        dict of int to bytes
            A message for each shard that gets characters or ghosts from this one. Characters that
            left this shard's cells stay in it until `finish`.
        """
        if operator.index(tick) != self.tick + 1:
            raise ValueError(f"tick must be {self.tick + 1}, got {short(tick)}")
        if self._leavers is not None:
            raise RuntimeError("begin was called twice without finish")
        ids, positions = self.crowd.ids, self.crowd.positions
        owner, rows = self._near_borders(positions)
        near: dict[int, NDArray[np.bool_]] = {}
        # The halo is at most half a cell, so that the corners of its box touch every cell it
        # touches.
        for dx in (-self.halo, self.halo):
            for dy in (-self.halo, self.halo):
                there = self.owners.of(self.cut.cells_of(positions[rows, :2] + (dx, dy)))
                for k in np.flatnonzero(np.bincount(there)).tolist():
                    seen = near.setdefault(k, np.zeros(len(ids), bool))
                    seen[rows[there == k]] = True
        packed: dict[int, tuple[bytes, bytes]] = {}
        foreign = np.flatnonzero(np.bincount(owner[owner != self.index])).tolist()
        for k in sorted({*near, *foreign} - {self.index}):
            seen = near.get(k, np.zeros(len(ids), bool)) & (owner != k)
            ghosts = self.crowd.extract(ids[seen], keep=True) if seen.any() else b""
            packed[k] = (b"", ghosts)
        # Who leaves and is still near stays here as a ghost.
        stays_near = near.get(self.index, np.zeros(len(ids), bool)) & (owner != self.index)
        own_ghosts = self.crowd.extract(ids[stays_near], keep=True) if stays_near.any() else b""
        for k in packed:
            leaves = ids[owner == k]
            if len(leaves):
                packed[k] = (self.crowd.extract(leaves, keep=True), packed[k][1])
        self._own_ghosts = own_ghosts
        self._leavers = ids[owner != self.index]
        return {k: MESSAGE.pack(MARK, tick, len(a), len(b)) + a + b for k, (a, b) in packed.items() if a or b}

    def _near_borders(self, positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the owners of positions, and the rows whose halo may touch another cell."""
        cells = self.cut.cells_of(positions)
        owner = self.owners.of(cells)
        # One millionth of a cell covers the rounding of the division.
        part, reach = positions[:, :2] / self.cut.size - cells, self.halo / self.cut.size + 1e-6
        border = (part < reach) | (part > 1.0 - reach)
        return owner, np.flatnonzero(border[:, 0] | border[:, 1] | (owner != self.index))

    def finish(self, tick: int, inbox: Sequence[bytes], ids: ArrayLike | None = None,
               displacements: ArrayLike | None = None, dt: float = 0.0, *, threads: int = 1,
               moving: tuple[Any, ...] | None = None) -> int:
        """Take what the other shards sent, separate, and move.

        Parameters
        ----------
        tick : int
            The tick that `begin` was called with.
        inbox : sequence of bytes
            The messages of the other shards for this tick, in any order.
        ids : (m,) array of int, optional
            Ids that `displacements` are for; every character of this shard is among them. Without
            ids nobody moves.
        displacements : (m, 3) array of float, optional
            Metres.
        dt : float
            Seconds.
        threads : int, default 1
            Threads for the move; the result does not depend on it.
        moving : tuple, optional
            Arguments of `Scene.move_actors`, which is called before the move. All shards get the
            same.

        Returns
        -------
        int
            The hash of this shard's characters before the move. The sum over all shards, modulo
            2**64, is `Crowd.state_hash` of the whole crowd.

        Raises
        ------
        ValueError
            A message is damaged or of another tick, a displacement is missing or longer than
            ``max_motion``, or another argument makes no sense. Nothing has changed then, and the
            call can be repeated.
        RuntimeError
            A character moved farther than ``max_motion``; the message names it. The shard is of no
            use then: restore a keyframe and allow longer motions.
        """
        if self._leavers is None or operator.index(tick) != self.tick + 1:
            raise ValueError(f"tick must be {self.tick + 1}, and begin comes first; got {short(tick)}")
        tick = operator.index(tick)
        parts = [_opened(data, tick) for data in inbox]
        asked = None if ids is None else self._checked(ids, displacements)
        seconds, workers = checked_step(dt, threads)
        leaving = self.crowd.extract(self._leavers) if len(self._leavers) else b""
        arrived = np.empty(0, np.int64)
        try:
            arrived = self._take(parts)
            way = None if asked is None else self._own_rows(*asked)
            if moving is not None:
                self.scene.move_actors(*moving)
        except BaseException:
            # As before the call, so that it can be repeated with other arguments.
            self._drop_ghosts()
            self.crowd.remove(self.crowd.index_of(arrived))
            if leaving:
                self.crowd.insert(leaving)
            raise
        self._leavers = None
        self.tick = tick
        if self._dt > 0.0:
            self.crowd.separate(self._dt)
        found = self.crowd.state_hash()
        if way is None:
            self._dt = 0.0
            return found
        before = self.crowd.positions.copy()
        if len(self.crowd):
            self.crowd.move(way, seconds, threads=workers)
            far = _beyond(self.crowd.positions - before, self.max_motion)
            if len(far):
                k = int(far[0])
                raise RuntimeError(f"character {self.crowd.ids[k]} moved "
                                   f"{np.abs(self.crowd.positions[k] - before[k])[:2].max():g} m along an axis, "
                                   f"but max_motion is {self.max_motion:g} m")
        self._dt = seconds
        return found

    def _take(self, parts: list[tuple[bytes, bytes]]) -> NDArray[np.int64]:
        """Insert the members and ghosts of all messages, or none; return the ids of the members."""
        arrived: list[NDArray[np.int64]] = []
        self._drop_ghosts()
        try:
            for data, _ in parts:
                if data:
                    arrived.append(self.crowd.insert(data))
                    self._check(self.crowd.index_of(arrived[-1]))
            for data in [*(ghosts for _, ghosts in parts), self._own_ghosts]:
                if data:
                    self.ghosts.insert(data)
        except BaseException as e:
            self._drop_ghosts()
            for ids in arrived:
                self.crowd.remove(self.crowd.index_of(ids))
            if isinstance(e, ValueError):
                raise ValueError(f"inbox contains a damaged message, or one twice: {e}") from e
            raise
        return np.concatenate([np.empty(0, np.int64), *arrived])

    def _drop_ghosts(self) -> None:
        if len(self.ghosts):
            self.ghosts.remove(np.arange(len(self.ghosts)))

    def _checked(self, ids: ArrayLike,
                 displacements: ArrayLike | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return checked_motions(ids, displacements, self.max_motion)

    def _own_rows(self, number: NDArray[np.int64], way: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of this shard's characters, by id."""
        own = self.crowd.ids
        if not (number[1:] > number[:-1]).all():
            order = np.argsort(number, kind="stable")
            number, way = number[order], way[order]
        at = np.minimum(np.searchsorted(number, own), max(len(number) - 1, 0))
        known = number[at] == own if len(number) else np.zeros(len(own), bool)
        if not known.all():
            raise ValueError(f"ids must contain every character of the shard; {own[~known][0]} is missing")
        return way[at] if len(own) else np.empty((0, 3))

    def raycast_many(self, origins: ArrayLike, directions: ArrayLike, max_distance: Any) -> Any:
        """`Scene.raycast_many` over this shard's shapes, characters and ghosts."""
        return self.scene.raycast_many(origins, directions, max_distance, include="all")

    def save(self) -> bytes:
        """Return a keyframe: this shard's characters between two ticks, and moving actors."""
        body = self.crowd.save(moving=True)
        return KEYFRAME.pack(KEYFRAME_MARK, self.tick, self._dt, len(body)) + body

    def restore(self, data: bytes) -> None:
        """Go back to a keyframe from `save`; ValueError when it is damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        data = bytes(data)
        if len(data) < KEYFRAME.size or data[:8] != KEYFRAME_MARK:
            raise ValueError("data is not a saved shard")
        _, tick, dt, size = KEYFRAME.unpack_from(data)
        if size != len(data) - KEYFRAME.size:
            raise ValueError("data is damaged: its length is wrong")
        # A member of the keyframe may be a ghost now.
        ghosts = self.ghosts.save()
        self._drop_ghosts()
        try:
            self.crowd.restore(data[KEYFRAME.size:])
        except BaseException:
            self.ghosts.insert(ghosts)
            raise
        self.tick, self._dt, self._leavers = tick, dt, None


def checked_motions(ids: ArrayLike, displacements: ArrayLike | None,
                    max_motion: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return ids and displacements of one tick, of any owner's characters."""
    number = np.asarray(ids)
    way = np.asarray(displacements, float)
    if number.ndim != 1 or (number.size and number.dtype.kind not in "iu"):
        raise ValueError("ids must be a list of integers")
    if way.shape != (len(number), 3):
        raise ValueError(f"displacements must have shape ({len(number)}, 3), got {way.shape}")
    if not np.isfinite(way).all():
        raise ValueError("displacements must be finite")
    far = _beyond(way, max_motion)
    if len(far):
        length = np.abs(way[far, :2]).max(1)
        k = int(np.argmax(length))
        raise ValueError(f"displacements of character {number[far[k]]} reach {length[k]:g} m, but max_motion is "
                         f"{max_motion:g} m")
    return number.astype(np.int64, copy=False), way


def _beyond(way: NDArray[np.float64], most: float) -> NDArray[np.int64]:
    """Return the rows that are longer than `most` along x or y."""
    rows: NDArray[np.int64] = np.flatnonzero((np.abs(way[:, 0]) > most) | (np.abs(way[:, 1]) > most))
    return rows


def checked_step(dt: Any, threads: Any) -> tuple[float, int]:
    """Duration and number of threads of a tick."""
    if isinstance(dt, bool) or not isinstance(dt, (int, float, np.floating, np.integer)):
        raise TypeError(f"dt must be a number, not {type(dt).__name__}")
    if not (np.isfinite(dt) and dt >= 0):
        raise ValueError(f"dt must be finite and at least 0, got {short(dt)}")
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"threads must be an integer, not {type(threads).__name__}")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {short(threads)}")
    return float(dt), int(threads)


def _opened(data: Any, tick: int) -> tuple[bytes, bytes]:
    """Members and ghosts of a message."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"inbox must contain bytes, not {type(data).__name__}")
    raw = bytes(data)
    if len(raw) < MESSAGE.size or raw[:8] != MARK:
        raise ValueError("inbox contains something that is no message of a shard")
    _, of, a, b = MESSAGE.unpack_from(raw)
    if of != tick:
        raise ValueError(f"inbox contains a message of tick {of}, not {tick}")
    if a < 0 or b < 0 or len(raw) != MESSAGE.size + a + b:
        raise ValueError("inbox contains a damaged message: its length is wrong")
    return raw[MESSAGE.size:MESSAGE.size + a], raw[MESSAGE.size + a:]
