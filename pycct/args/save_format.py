"""The bytes of saved characters: little-endian, versioned, checked."""

import struct
import zlib
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


def seal(body: bytes | bytearray, magic: bytes = MAGIC) -> bytes:
    """Put a header before the bytes of a character or crowd."""
    return HEADER.pack(magic, RESULTS_VERSION, len(body), zlib.crc32(body)) + body


def unseal(data: Any, magic: bytes = MAGIC) -> bytes:
    """Take the header off; ValueError when it does not fit."""
    what = "crowd" if magic == CROWD_MAGIC else "character"
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes from save(), not {type(data).__name__}")
    data = bytes(data)
    if len(data) < HEADER.size or data[:8] != magic:
        raise ValueError(f"data is not a saved {what}")
    _, version, length, crc = HEADER.unpack_from(data)
    if version != RESULTS_VERSION:
        raise ValueError(f"data is of results version {version}, this is {RESULTS_VERSION}: moves would differ")
    body = data[HEADER.size :]
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
