"""Checks: a hash of the state of each tick, and a few bits for each member."""
from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd, save_many
from pycct.record.values import Reader

__all__ = ["FIELDS", "Check", "Copies", "check_from", "check_of", "pack_check", "read_check", "room_of", "saved_state",
           "state_of"]

FIELDS = ("position", "velocity", "flags", "standing_on")
_TYPES = ("<u2", "|u1", "|u1", "|u1")
# Odd numbers without pattern: three coordinates become one hash.
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_ALL = (1 << 64) - 1
# Of a check: its hash and the number of its parts.
_HEAD = struct.Struct("<QB")


class Check(NamedTuple):
    """What is kept of a state.

    Attributes
    ----------
    hash : int
        Hash of all bits of ids, positions, velocities, flags, and ids of what is stood on.
    parts : list of tuple of ndarray
        For each crowd, and for all controllers, one array a field.
    state : int or None
        Checksum of all bytes of ``save``: at keyframes only, because saving costs as much as a
        move.
    """

    hash: int
    parts: list[tuple[NDArray[Any], ...]]
    state: int | None


def _mixed(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A hash of each row of (..., 3)."""
    bits = rows.view(np.uint64)
    mixed: NDArray[np.uint64] = bits[..., 0] * _MIX[0]
    mixed += bits[..., 1] * _MIX[1]
    mixed += bits[..., 2] * _MIX[2]
    return mixed


def room_of(array: NDArray[Any]) -> tuple[memoryview, int]:
    """Return the bytes of an array and the number of bytes of each row.

    Rows are filled through this view. NumPy releases the GIL in copies of more than 500 numbers,
    and the thread that moves would wait for the writer's thread, longer than the copy takes.
    """
    size = array.nbytes // len(array)
    # A view cannot be cast when it is empty.
    return (array.data.cast("B") if size else memoryview(b"")), size


class Copies:
    """Copies of what checks read, of one crowd or of all controllers, for some ticks.

    The arrays have a row for each tick, so that NumPy converts all ticks in one go.

    Parameters
    ----------
    ids : ndarray, (n,)
        Ids of the characters.
    ticks : int
        Room, in ticks.
    """

    def __init__(self, ids: NDArray[np.int64], ticks: int) -> None:
        n = len(ids)
        self.ids = ids
        self.positions = np.empty((ticks, n, 3))
        self.velocities = np.empty((ticks, n, 3))
        self.flags = np.empty((ticks, n), np.uint8)
        self.standing = np.empty((ticks, n), np.int64)
        self.used, self.ticks = 0, ticks
        self.rooms = [room_of(a) for a in (self.positions, self.velocities, self.flags, self.standing)]

    def add(self, *fields: NDArray[Any]) -> int:
        """Copy the state of a tick; return the index of its row.

        ``fields`` are positions, velocities, flags and ids of what is stood on, of the same types
        as the copies.
        """
        k = self.used
        for (view, size), field in zip(self.rooms, fields, strict=True):
            if size:
                view[k * size : (k + 1) * size] = field.data.cast("B")
        self.used = k + 1
        return k

    def packed(self, tag: bytes) -> list[bytes]:
        """Return what `pack_check` appends for each tick alone, behind a tag."""
        hashes, kept = self.converted()
        front = tag + _HEAD.pack(0, 1) + b"\x00" + struct.pack("<I", len(self.ids))
        size = len(front)
        out = np.empty((self.used, size + len(self.ids) * sum(np.dtype(t).itemsize for t in _TYPES)), np.uint8)
        out[:, :size] = np.frombuffer(front, np.uint8)
        out[:, len(tag) : len(tag) + 8] = np.array(hashes, "<u8").view(np.uint8).reshape(-1, 8)
        for field in kept:
            bits = field.view(np.uint8)
            out[:, size : size + bits.shape[1]] = bits
            size += bits.shape[1]
        width = out.shape[1]
        data = out.tobytes()
        return [data[k * width : (k + 1) * width] for k in range(self.used)]

    def converted(self) -> tuple[list[int], tuple[NDArray[Any], ...]]:
        """Return the hash of each tick, and the kept bits of each field, (ticks, n)."""
        used = self.used
        flags, standing = self.flags[:used], self.standing[:used]
        place, pace = _mixed(self.positions[:used]), _mixed(self.velocities[:used])
        kept = ((place >> np.uint64(48)).astype("<u2"), (pace >> np.uint64(56)).astype("|u1"), flags.copy(),
                (standing & 0xFF).astype("|u1"))
        rest = standing.view(np.uint64) * np.uint64(256)
        rest += flags
        rest *= _MIX[1]
        pace *= _MIX[0]
        place += pace
        place += rest
        place *= self.ids.view(np.uint64) * _MIX[2] + np.uint64(1)
        return place.sum(axis=1, dtype=np.uint64).tolist(), kept


def state_of(heroes: Sequence[CharacterController]) -> tuple[NDArray[Any], ...]:
    """Positions, velocities, flags and ids of what is stood on, of controllers."""
    n = len(heroes)
    standing = [h.state.standing_on for h in heroes]
    return (
        np.array([h.position for h in heroes], float).reshape(n, 3),
        np.array([h.velocity for h in heroes], float).reshape(n, 3),
        np.array([int(h.flags) for h in heroes], np.uint8),
        np.array([-1 if s is None else s.id for s in standing], np.int64),
    )


def saved_state(crowds: Sequence[Crowd], heroes: Sequence[CharacterController]) -> list[bytes]:
    """Everything that decides the next moves: of each crowd, then of all controllers."""
    saved = [c.save(moving=True) for c in crowds]
    if heroes:
        saved.append(save_many(heroes, moving=True))
    return saved


def check_from(parts: Sequence[tuple[list[int], tuple[NDArray[Any], ...], int]], saved: list[bytes] | None) -> Check:
    """Return the check of converted copies.

    ``parts`` contains what `Copies.converted` returned, and the row of the tick.
    """
    total = sum([hashes[row] for hashes, _, row in parts]) & _ALL
    state = None
    if saved is not None:
        state = 0
        for data in saved:
            state = zlib.crc32(data, state)
    return Check(total, [tuple([field[row] for field in kept]) for _, kept, row in parts], state)


def check_of(crowds: Sequence[Crowd], heroes: Sequence[CharacterController], whole: bool) -> Check:
    """Return the check of the current state; ``whole`` adds the checksum of everything."""
    parts: list[Copies] = []
    for crowd in crowds:
        parts.append(Copies(crowd.ids, 1))
        parts[-1].add(crowd.positions, crowd.velocities, crowd.flags, crowd.standing_on)
    if heroes:
        parts.append(Copies(np.array([h.id for h in heroes], np.int64), 1))
        parts[-1].add(*state_of(heroes))
    return check_from([(*part.converted(), 0) for part in parts], saved_state(crowds, heroes) if whole else None)


def pack_check(out: bytearray, check: Check) -> None:
    """Append a check."""
    out += _HEAD.pack(check.hash, len(check.parts))
    out += b"\x00" if check.state is None else struct.pack("<BQ", 1, check.state)
    for part in check.parts:
        out += struct.pack("<I", len(part[0]))
        for field in part:
            out += field.tobytes()


def read_check(reader: Reader) -> Check:
    """Read a check."""
    number, n_parts = reader.number("<Q"), reader.number("<B")
    state = reader.number("<Q") if reader.take(1) == b"\x01" else None
    parts: list[tuple[NDArray[Any], ...]] = []
    for _ in range(n_parts):
        n = reader.number("<I")
        parts.append(tuple(np.frombuffer(reader.take(n * np.dtype(t).itemsize), t) for t in _TYPES))
    return Check(number, parts, state)
