"""What a recording keeps of each tick to find differences: a hash of everything, and a few bits for each member."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd
from pycct.record.values import Reader

__all__ = ["FIELDS", "Check", "check_of", "pack_check", "read_check", "state_of"]

FIELDS = ("position", "velocity", "flags", "standing_on")
_TYPES = ("<u2", "|u1", "|u1", "|u1")
# Odd numbers without pattern: three coordinates become one hash.
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_ALL = (1 << 64) - 1


class Check(NamedTuple):
    """What is kept of a state.

    Attributes
    ----------
    hash : int
        Hash of all bits of ids, positions, velocities, flags, and ids of what is stood on.
    parts : list of tuple of ndarray
        For each crowd, and for all controllers, one array a field.
    state : int or None
        Sum of ``state_hash`` of all: at keyframes only, because it costs more than a move.
    """

    hash: int
    parts: list[tuple[NDArray[Any], ...]]
    state: int | None


def _mixed(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A hash of each row."""
    mixed: NDArray[np.uint64] = np.ascontiguousarray(rows).view(np.uint64).reshape(-1, 3) @ _MIX
    return mixed


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


def check_of(crowds: Sequence[Crowd], heroes: Sequence[CharacterController], whole: bool) -> Check:
    """Compute what is kept of the current state; ``whole`` also computes the sum of ``state_hash``."""
    total = 0
    parts: list[tuple[NDArray[Any], ...]] = []
    states = [(c.ids, c.positions, c.velocities, c.flags, c.standing_on) for c in crowds]
    if heroes:
        states.append((np.array([h.id for h in heroes], np.int64), *state_of(heroes)))  # type: ignore[arg-type]
    for ids, positions, velocities, flags, standing in states:
        place, pace = _mixed(positions), _mixed(velocities)
        rest = standing.view(np.uint64) * np.uint64(256) + flags
        every = (place + pace * _MIX[0] + rest * _MIX[1]) * (ids.view(np.uint64) * _MIX[2] + np.uint64(1))
        total += int(every.sum(dtype=np.uint64))
        parts.append(((place >> np.uint64(48)).astype("<u2"), (pace >> np.uint64(56)).astype("|u1"),
                      flags.astype("|u1"), (standing & 0xFF).astype("|u1")))
    state = None
    if whole:
        state = (sum(c.state_hash() for c in crowds) + sum(h.state_hash() for h in heroes)) & _ALL
    return Check(total & _ALL, parts, state)


def pack_check(out: bytearray, check: Check) -> None:
    """Append a check."""
    out += struct.pack("<QB", check.hash, len(check.parts))
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
