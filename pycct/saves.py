"""The bytes of a saved character: little-endian, versioned, checked."""

import struct
import zlib
from typing import Any

from pycct._version import RESULTS_VERSION

MAGIC = b"pycctCC1"
HEADER = struct.Struct("<8sIII")  # magic, results version, length of what follows, its CRC-32
PARAMS = struct.Struct("<10dii3?4I")
STATE = struct.Struct("<39diI3q?iqi?q?")


def pack(params: list[Any], state: list[Any]) -> bytes:
    """Bytes of a character from its values."""
    body = PARAMS.pack(*params) + STATE.pack(*state)
    return HEADER.pack(MAGIC, RESULTS_VERSION, len(body), zlib.crc32(body)) + body


def unpack(data: Any) -> tuple[list[Any], list[Any]]:
    """Values of a character from its bytes; ValueError when they are not."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes from save(), not {type(data).__name__}")
    data = bytes(data)
    if len(data) < HEADER.size or data[:8] != MAGIC:
        raise ValueError("data is not a saved character")
    _, version, length, crc = HEADER.unpack_from(data)
    if version != RESULTS_VERSION:
        raise ValueError(f"data is of results version {version}, this is {RESULTS_VERSION}: moves would differ")
    body = data[HEADER.size :]
    if length != len(body) or length != PARAMS.size + STATE.size or zlib.crc32(body) != crc:
        raise ValueError("data is damaged: length or checksum is wrong")
    return list(PARAMS.unpack_from(body)), list(STATE.unpack_from(body, PARAMS.size))
