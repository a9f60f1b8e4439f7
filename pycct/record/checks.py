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
    """Hash of the whole state, and for each crowd (and for all controllers) one array a field."""

    hash: int
    parts: list[tuple[NDArray[Any], ...]]


def _folded(rows: NDArray[np.float64], shift: int, dtype: str) -> NDArray[Any]:
    bits = (np.ascontiguousarray(rows).view(np.uint64).reshape(-1, 3) * _MIX).sum(axis=1, dtype=np.uint64)
    return (bits >> np.uint64(shift)).astype(dtype)


def state_of(heroes: Sequence[CharacterController]) -> tuple[NDArray[Any], ...]:
    """Positions, velocities, flags and ids of what is stood on, of controllers."""
    n = len(heroes)
    standing = [h.state.standing_on for h in heroes]
    return (
        np.array([h.position for h in heroes], float).reshape(n, 3),
        np.array([h.velocity for h in heroes], float).reshape(n, 3),
        np.array([int(h.collision_flags) for h in heroes], np.uint8),
        np.array([-1 if s is None else s.id for s in standing], np.int64),
    )


def check_of(crowds: Sequence[Crowd], heroes: Sequence[CharacterController]) -> Check:
    """Compute what is kept of the current state."""
    total = 0
    parts: list[tuple[NDArray[Any], ...]] = []
    for crowd in crowds:
        total += crowd.state_hash()
        parts.append((crowd.positions, crowd.velocities, crowd.flags, crowd.standing_on))
    if heroes:
        total += sum(h.state_hash() for h in heroes)
        parts.append(state_of(heroes))
    return Check(total & _ALL, [
        (_folded(p, 48, "<u2"), _folded(v, 56, "|u1"), f.astype("|u1"), (s & 0xFF).astype("|u1"))
        for p, v, f, s in parts
    ])


def pack_check(out: bytearray, check: Check) -> None:
    """Append a check."""
    out += struct.pack("<QB", check.hash, len(check.parts))
    for part in check.parts:
        out += struct.pack("<I", len(part[0]))
        for field in part:
            out += field.tobytes()


def read_check(reader: Reader) -> Check:
    """Read a check."""
    number, n_parts = reader.number("<Q"), reader.number("<B")
    parts = []
    for _ in range(n_parts):
        n = reader.number("<I")
        parts.append(tuple(np.frombuffer(reader.take(n * np.dtype(t).itemsize), t) for t in _TYPES))
    return Check(number, parts)
