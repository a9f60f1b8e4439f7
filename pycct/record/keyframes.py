"""Saved crowds in a form that compresses well, for keyframes."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycct.args.save_format import CROWD_EACH, CROWD_HEAD, HEADER, PARAMS, STATE

__all__ = ["last_displacements", "pack_crowd", "unpack_crowd"]

# Doubles at the beginning of STATE (see pycct/character/state_io.pyx).
_DOUBLES = 45
_POSITION, _VELOCITY, _DISPLACEMENT, _WANTED = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)
_TOUCHED_POINT, _TOUCHED_LOCAL, _GROUND_POINT = slice(12, 15), slice(15, 18), slice(33, 36)
# What a value mostly equals: on static ground the touched points are one point below the position.
# Each value is stored as the bits that differ. Reading goes through the pairs in this order, and
# writing in the opposite order.
_LIKELY = (
    (_TOUCHED_POINT, _POSITION),
    (_TOUCHED_LOCAL, _TOUCHED_POINT),
    (_GROUND_POINT, _TOUCHED_POINT),
    (_DISPLACEMENT, _WANTED),
)


def _place(data: bytes) -> tuple[int, int, int]:
    """Where the records of the members begin and end in a saved crowd, and their number."""
    if len(data) < HEADER.size + CROWD_HEAD.size:
        raise ValueError("data is damaged: it is no saved crowd")
    _, rows, _, members = CROWD_HEAD.unpack_from(data, HEADER.size)
    first = HEADER.size + CROWD_HEAD.size + (1 + rows) * PARAMS.size
    last = first + members * (CROWD_EACH.size + STATE.size)
    if not (rows >= 0 and first <= last <= len(data)):
        raise ValueError("data is damaged: it is no saved crowd")
    return first, last, members


def _likely_velocity(doubles: NDArray[np.uint64], rate: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Bits of the velocities of members that nothing but their displacement has moved."""
    with np.errstate(all="ignore"):
        return (np.ascontiguousarray(doubles[:, _DISPLACEMENT]).view(np.float64) * rate).view(np.uint64)


def _rate_of(doubles: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The likely 1 / dt of the last move, as an array of one."""
    velocity, displacement = (
        np.ascontiguousarray(doubles[:, part]).view(np.float64) for part in (_VELOCITY, _DISPLACEMENT)
    )
    if not displacement.any():
        return np.zeros(1)
    longest = np.abs(displacement).argmax()
    with np.errstate(all="ignore"):
        rate = velocity.flat[longest] / displacement.flat[longest]
        # The quotient of two rounded numbers may be a neighbour.
        guesses = [rate, np.nextafter(rate, 0.0), np.nextafter(rate, np.inf)]
        same = [np.count_nonzero(displacement * guess == velocity) for guess in guesses]
    return np.array([guesses[int(np.argmax(same))]])


def pack_crowd(data: bytes) -> bytes:
    """Return a saved crowd in a form that zlib compresses to a third.

    The doubles of each member become the bits in which they differ from a likely value. Then the
    first bytes of all members come first, because they are alike.
    """
    first, last, members = _place(data)
    if members == 0:
        return data
    records = np.frombuffer(data, np.uint8, last - first, first).reshape(members, -1).copy()
    head = CROWD_EACH.size
    doubles = np.ascontiguousarray(records[:, head : head + 8 * _DOUBLES]).view("<u8").astype(np.uint64)
    rate = _rate_of(doubles)
    doubles[:, _VELOCITY] ^= _likely_velocity(doubles, rate)
    for value, likely in reversed(_LIKELY):
        doubles[:, value] ^= doubles[:, likely]
    records[:, head : head + 8 * _DOUBLES] = doubles.astype("<u8").view(np.uint8)
    return b"".join((data[:first], records.T.tobytes(), data[last:], rate.astype("<f8").tobytes()))


def unpack_crowd(data: bytes) -> bytes:
    """Return the saved crowd of `pack_crowd`; ValueError for damaged bytes."""
    first, last, members = _place(data)
    if members == 0:
        return data
    if len(data) < last + 8:
        raise ValueError("data is damaged: it is no saved crowd")
    rate = np.frombuffer(data, "<f8", 1, len(data) - 8).astype(np.float64)
    records = np.array(np.frombuffer(data, np.uint8, last - first, first).reshape(-1, members).T, order="C")
    head = CROWD_EACH.size
    doubles = np.ascontiguousarray(records[:, head : head + 8 * _DOUBLES]).view("<u8").astype(np.uint64)
    for value, likely in _LIKELY:
        doubles[:, value] ^= doubles[:, likely]
    doubles[:, _VELOCITY] ^= _likely_velocity(doubles, rate)
    records[:, head : head + 8 * _DOUBLES] = doubles.astype("<u8").view(np.uint8)
    return b"".join((data[:first], records.tobytes(), data[last:-8]))


def last_displacements(data: bytes) -> NDArray[np.float64]:
    """Displacement arguments (n, 3), metres, of the last move of each member of a saved crowd."""
    first, last, members = _place(data)
    records = np.frombuffer(data, np.uint8, last - first, first).reshape(members, CROWD_EACH.size + STATE.size)
    start = CROWD_EACH.size + 8 * _WANTED.start
    return np.ascontiguousarray(records[:, start : start + 24]).view("<f8").astype(np.float64)
