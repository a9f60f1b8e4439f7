"""Records of many characters, as NumPy types."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_VECTOR = ("<f8", (3,))

# A collision of a move, as `Crowd.hits` tells it.
HITS = np.dtype(
    [
        ("index", "<i8"),  # of the character in the crowd
        ("id", "<i8"),  # of the character
        ("actor", "<i8"),  # what was hit: one of these three, the others are -1
        ("controller", "<i8"),
        ("obstacle", "<i8"),
        ("triangle", "<i8"),  # as you numbered it, -1: none
        ("data", "<i8"),  # the number that the mesh has for the triangle
        ("position", *_VECTOR),
        ("normal", *_VECTOR),
        ("direction", *_VECTOR),
        ("length", "<f8"),
        ("distance", "<f8"),
        ("along", "<f8"),  # place on the axis, 0 bottom to 1 top
        ("pass_", "u1"),  # Pass
        ("dynamic", "?"),
        ("has_data", "?"),
    ],
    align=True,
)

GROUND = np.dtype(
    [
        ("actor", "<i8"),
        ("controller", "<i8"),
        ("obstacle", "<i8"),
        ("triangle", "<i8"),
        ("data", "<i8"),
        ("normal", *_VECTOR),
        ("face_normal", *_VECTOR),
        ("point", *_VECTOR),
        ("distance", "<f8"),
        ("hit", "?"),
        ("walkable", "?"),
        ("has_data", "?"),
    ],
    align=True,
)

# What a move cost, as `Crowd.stats` tells it.
STATS = np.dtype(
    [
        ("iterations", "<i8"),
        ("full_updates", "<i8"),
        ("partial_updates", "<i8"),
        ("triangles_tested", "<i8"),
        ("recoveries", "<i8"),
        ("fixes", "<u4"),  # Rules
    ],
    align=True,
)


class GroundArrays(NamedTuple):
    """What is below each of n characters.

    Where ``hit`` is False: distance is the one asked for, ids and triangles -1, the rest zero.
    """

    hit: npt.NDArray[np.bool_]
    distance: npt.NDArray[np.float64]
    point: npt.NDArray[np.float64]
    normal: npt.NDArray[np.float64]
    face_normal: npt.NDArray[np.float64]
    walkable: npt.NDArray[np.bool_]
    actor: npt.NDArray[np.int64]
    controller: npt.NDArray[np.int64]
    obstacle: npt.NDArray[np.int64]
    triangle: npt.NDArray[np.int64]
    data: npt.NDArray[np.int64]
    has_data: npt.NDArray[np.bool_]


def ground_arrays(rows: npt.NDArray[Any]) -> GroundArrays:
    """Columns of GROUND rows."""
    return GroundArrays(*(rows[name] for name in GroundArrays._fields))
