"""The bytes of saved characters: little-endian, versioned, checked."""

import struct
import zlib
from itertools import pairwise
from typing import Any

from pycct.runtime.version import RESULTS_VERSION

MAGIC = b"pycctCC1"
CROWD_MAGIC = b"pycctCW1"
HEADER = struct.Struct("<8sIII")  # magic, results version, length of what follows, its CRC-32
PARAMS = struct.Struct("<10dii3?4I")
STATE = struct.Struct("<39diI3q?iqi?q?")
# Ids of a scene stay below this.
LARGEST_ID = 2**62
BODY = PARAMS.size + STATE.size
# A crowd: order, rows of parameters, group of those to come, number of characters; their parameters, the rows; and of
# each character id, row, group, flags and its STATE.
CROWD_HEAD = struct.Struct("<iiiq")
CROWD_EACH = struct.Struct("<qiiB")


# Moving actors of a scene: how many; id, position, rotation, layer, behavior of each, in the order of ids.
MOVING_HEAD = struct.Struct("<q")
MOVING = struct.Struct("<q7dII")
# Controllers: how many, and 1 when moving actors follow; id, parameters and state of each.
TEAM_MAGIC = b"pycctCT1"
TEAM_HEAD = struct.Struct("<qi")
TEAM_ID = struct.Struct("<q")
TEAM_EACH = TEAM_ID.size + PARAMS.size + STATE.size
WHATS = {MAGIC: "character", CROWD_MAGIC: "crowd", TEAM_MAGIC: "team of controllers"}


def split_moving(data: Any, scenes: int) -> list[list[tuple[Any, ...]]]:
    """Rows of moving actors of each scene; ValueError when the bytes are not those of so many scenes."""
    parts, at = [], 0
    for _ in range(scenes):
        if len(data) - at < MOVING_HEAD.size:
            raise ValueError("data is damaged: it makes no sense")
        (count,) = MOVING_HEAD.unpack_from(data, at)
        at += MOVING_HEAD.size
        if not 0 <= count <= (len(data) - at) // MOVING.size:
            raise ValueError("data is damaged: it makes no sense")
        rows = list(MOVING.iter_unpack(data[at : at + count * MOVING.size]))
        if any(a[0] >= b[0] for a, b in pairwise(rows)):
            raise ValueError("data is damaged: it makes no sense")
        parts.append(rows)
        at += count * MOVING.size
    if at != len(data):
        raise ValueError("data is damaged: it makes no sense")
    return parts


def seal_in_place(body: bytearray, magic: bytes) -> bytes:
    """Fill in the header that the bytes have room for."""
    view = memoryview(body)[HEADER.size :]
    HEADER.pack_into(body, 0, magic, RESULTS_VERSION, len(view), zlib.crc32(view))
    view.release()
    return bytes(body)


def seal(body: bytes | bytearray, magic: bytes = MAGIC) -> bytes:
    """Put a header before the bytes of a character or crowd."""
    return HEADER.pack(magic, RESULTS_VERSION, len(body), zlib.crc32(body)) + body


def unseal(data: Any, magic: bytes = MAGIC) -> memoryview:
    """Take the header off; ValueError when it does not fit."""
    what = WHATS[magic]
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes from save(), not {type(data).__name__}")
    if not isinstance(data, bytes):
        data = bytes(data)
    if len(data) < HEADER.size or data[:8] != magic:
        raise ValueError(f"data is not a saved {what}")
    _, version, length, crc = HEADER.unpack_from(data)
    if version != RESULTS_VERSION:
        raise ValueError(f"data is of results version {version}, this is {RESULTS_VERSION}: moves would differ")
    body = memoryview(data)[HEADER.size :]
    if length != len(body) or (magic == MAGIC and length != BODY) or zlib.crc32(body) != crc:
        raise ValueError("data is damaged: length or checksum is wrong")
    return body


def pack(params: list[Any], state: list[Any]) -> bytes:
    """Bytes of a character from its values."""
    return seal(PARAMS.pack(*params) + STATE.pack(*state))


def unpack(data: Any) -> tuple[list[Any], list[Any]]:
    """Values of a character from its bytes; ValueError when they are not."""
    body = unseal(data)
    return list(PARAMS.unpack_from(body)), list(STATE.unpack_from(body, PARAMS.size))
