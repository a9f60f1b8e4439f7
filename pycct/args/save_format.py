"""Format of saved characters: little-endian, with version and checksum."""

import struct
import zlib
from itertools import pairwise
from typing import Any

from pycct.runtime.version import RESULTS_VERSION

MAGIC = b"pycctCC1"
CROWD_MAGIC = b"pycctCW1"
HEADER = struct.Struct("<8sIII")  # magic, results version, length and CRC-32 of the body
PARAMS = struct.Struct("<10dii3?4I")
STATE = struct.Struct("<45diI3q?iqi?q?")
# Ids of a scene stay below this.
LARGEST_ID = 2**62
BODY = PARAMS.size + STATE.size
# A crowd has a head (order, rows of parameters, next group, number of characters), the parameter
# rows, and for each character its id, row, group, flags and STATE.
CROWD_HEAD = struct.Struct("<iiiq")
CROWD_EACH = struct.Struct("<qiiB")


# Moving actors of a scene: their number, then id, position, rotation, layer and behavior of each,
# in the order of ids.
MOVING_HEAD = struct.Struct("<q")
MOVING = struct.Struct("<q7dII")
# Controllers: their number, and 1 if moving actors follow; then id, parameters and state of each.
TEAM_MAGIC = b"pycctCT1"
TEAM_HEAD = struct.Struct("<qi")
TEAM_ID = struct.Struct("<q")
TEAM_EACH = TEAM_ID.size + PARAMS.size + STATE.size
WHATS = {MAGIC: "character", CROWD_MAGIC: "crowd", TEAM_MAGIC: "team of controllers"}


def split_moving(data: Any, scenes: int) -> list[list[tuple[Any, ...]]]:
    """Return the rows of moving actors of each scene; ValueError for another number of scenes."""
    parts, at = [], 0
    for _ in range(scenes):
        if len(data) - at < MOVING_HEAD.size:
            raise ValueError("data is damaged: invalid table of moving actors")
        (count,) = MOVING_HEAD.unpack_from(data, at)
        at += MOVING_HEAD.size
        if not 0 <= count <= (len(data) - at) // MOVING.size:
            raise ValueError("data is damaged: invalid table of moving actors")
        rows = list(MOVING.iter_unpack(data[at : at + count * MOVING.size]))
        if any(a[0] >= b[0] for a, b in pairwise(rows)):
            raise ValueError("data is damaged: invalid table of moving actors")
        parts.append(rows)
        at += count * MOVING.size
    if at != len(data):
        raise ValueError("data is damaged: invalid table of moving actors")
    return parts


def head_of(data: bytes, magic: bytes) -> bytes:
    """Return the header of data whose body follows the reserved bytes."""
    with memoryview(data)[HEADER.size :] as body:
        return HEADER.pack(magic, RESULTS_VERSION, len(body), zlib.crc32(body))


def seal(body: bytes | bytearray, magic: bytes = MAGIC) -> bytes:
    """Return the body of a character or crowd with its header."""
    return HEADER.pack(magic, RESULTS_VERSION, len(body), zlib.crc32(body)) + body


def unseal(data: Any, magic: bytes = MAGIC) -> memoryview:
    """Check the header and return the body; ValueError if they do not match."""
    what = WHATS[magic]
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes from save(), not {type(data).__name__}")
    if not isinstance(data, bytes):
        data = bytes(data)
    if len(data) < HEADER.size or data[:8] != magic:
        raise ValueError(f"data is not a saved {what}")
    _, version, length, crc = HEADER.unpack_from(data)
    if version != RESULTS_VERSION:
        raise ValueError(
            f"data has results version {version}, but this pycct has {RESULTS_VERSION}: moves would differ"
        )
    body = memoryview(data)[HEADER.size :]
    if length != len(body) or (magic == MAGIC and length != BODY) or zlib.crc32(body) != crc:
        raise ValueError("data is damaged: wrong length or checksum")
    return body


def pack(params: list[Any], state: list[Any]) -> bytes:
    """Return the bytes of a character."""
    return seal(PARAMS.pack(*params) + STATE.pack(*state))


def unpack(data: Any) -> tuple[list[Any], list[Any]]:
    """Return the parameters and state of saved bytes; ValueError if they are damaged."""
    body = unseal(data)
    return list(PARAMS.unpack_from(body)), list(STATE.unpack_from(body, PARAMS.size))
