"""Messages between clients and the server: fixed sizes, little endian, every field checked."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VERSION = 1
SPEED, JUMP, GRAVITY = 5.0, 4.5, 9.81
# Ticks per second; ticks that one input lasts; inputs and snapshots per second.
RATE, TICKS_PER_INPUT, INPUT_RATE, SNAPSHOT_RATE = 60, 2, 30, 20
LARGEST_MESSAGE = 64

HELLO, INPUT, SHOT = 1, 2, 3
WELCOME, SNAPSHOT, HIT, ERROR = 128, 129, 130, 131

_HELLO = struct.Struct("<BB")
_INPUT = struct.Struct("<BIffBfff")
_SHOT = struct.Struct("<Bdfff")
_WELCOME = struct.Struct("<Bqqddd")
_SNAPSHOT = struct.Struct("<BqIdddH")
_PLAYER = np.dtype([("member", "<i8"), ("position", "<f4", 3)])
_HIT = struct.Struct("<Bqd")


class BadMessage(ValueError):
    """A message that breaks the protocol."""


class Input(NamedTuple):
    """What a player does for two ticks, and where its client believes it to be afterwards."""

    number: int
    x: float
    y: float
    jump: bool
    claim: tuple[float, float, float]


class Shot(NamedTuple):
    """A ray from the eyes of a player, at the tick that it sees."""

    tick: float
    direction: tuple[float, float, float]


class Snapshot(NamedTuple):
    """The world as the server sends it: own position in full, all positions rounded to float32.

    ``players`` has the fields ``member`` and ``position`` and one row per player.
    """

    tick: int
    acknowledged: int
    position: tuple[float, float, float]
    players: NDArray[np.void]


def hello() -> bytes:
    """The first message of a client."""
    return _HELLO.pack(HELLO, VERSION)


def pack_input(value: Input) -> bytes:
    """An input as bytes."""
    return _INPUT.pack(INPUT, value.number, value.x, value.y, value.jump, *value.claim)


def pack_shot(value: Shot) -> bytes:
    """A shot as bytes."""
    return _SHOT.pack(SHOT, value.tick, *value.direction)


def _fields(layout: struct.Struct, data: bytes) -> tuple[float, ...]:
    if len(data) != layout.size:
        raise BadMessage(f"a message of type {data[0]} has {layout.size} bytes, got {len(data)}")
    fields: tuple[float, ...] = layout.unpack(data)[1:]
    if not all(math.isfinite(field) for field in fields):
        raise BadMessage("numbers must be finite")
    return fields


def parse(data: object) -> Input | Shot | None:
    """Parse a message of a client; None is a greeting.

    Raises
    ------
    BadMessage
        If size, type, version or a number is wrong.
    """
    if not isinstance(data, bytes) or not 1 <= len(data) <= LARGEST_MESSAGE:
        raise BadMessage(f"messages are 1 to {LARGEST_MESSAGE} bytes")
    kind = data[0]
    if kind == HELLO:
        if _fields(_HELLO, data)[0] != VERSION:
            raise BadMessage(f"the server speaks version {VERSION}")
        return None
    if kind == INPUT:
        number, x, y, jump, *claim = _fields(_INPUT, data)
        if x * x + y * y > (SPEED * (1.0 + 1e-6)) ** 2:
            raise BadMessage(f"inputs must not exceed {SPEED:g} m/s")
        if jump not in (0, 1):
            raise BadMessage("jump must be 0 or 1")
        return Input(int(number), x, y, bool(jump), (claim[0], claim[1], claim[2]))
    if kind == SHOT:
        tick, dx, dy, dz = _fields(_SHOT, data)
        if dx == dy == dz == 0.0:
            raise BadMessage("a direction must not be zero")
        return Shot(tick, (dx, dy, dz))
    raise BadMessage(f"there is no type {kind}")


def pack_welcome(member: int, tick: int, position: tuple[float, float, float]) -> bytes:
    """The answer to a greeting."""
    return _WELCOME.pack(WELCOME, member, tick, *position)


def parse_welcome(data: bytes) -> tuple[int, int, tuple[float, float, float]]:
    """Member, tick and position of a new player."""
    _, member, tick, x, y, z = _WELCOME.unpack(data)
    return member, tick, (x, y, z)


def pack_players(ids: NDArray[np.int64], positions: NDArray[np.float64]) -> bytes:
    """The part of a snapshot that all players receive."""
    players = np.empty(len(ids), _PLAYER)
    players["member"], players["position"] = ids, positions
    return players.tobytes()


def pack_snapshot(tick: int, acknowledged: int, own: list[float], count: int, players: bytes) -> bytes:
    """A snapshot for one player."""
    return _SNAPSHOT.pack(SNAPSHOT, tick, acknowledged, *own, count) + players


def parse_snapshot(data: bytes) -> Snapshot:
    """A snapshot from bytes."""
    _, tick, acknowledged, x, y, z, count = _SNAPSHOT.unpack_from(data)
    players = np.frombuffer(data, _PLAYER, count, _SNAPSHOT.size)
    return Snapshot(tick, acknowledged, (x, y, z), players)


def pack_hit(member: int, distance: float) -> bytes:
    """What a shot has met: a member, or -1."""
    return _HIT.pack(HIT, member, distance)


def pack_error(text: str) -> bytes:
    """Why a message is refused."""
    return bytes([ERROR]) + text.encode()[:200]
