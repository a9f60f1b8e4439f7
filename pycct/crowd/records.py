"""NumPy types of the records of crowds."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_VECTOR = ("<f8", (3,))

# A collision of a move, as returned by `Crowd.hits`.
HITS = np.dtype(
    [
        ("index", "<i8"),  # index of the character in the crowd
        ("id", "<i8"),  # id of the character
        ("actor", "<i8"),  # the object that was hit: one of these three ids, the others are -1
        ("controller", "<i8"),
        ("obstacle", "<i8"),
        ("triangle", "<i8"),  # in the order of your triangles, -1: none
        ("data", "<i8"),  # the mesh's triangle_data of the triangle
        ("position", *_VECTOR),
        ("normal", *_VECTOR),
        ("direction", *_VECTOR),
        ("length", "<f8"),
        ("distance", "<f8"),
        ("along", "<f8"),  # position on the axis, 0 bottom to 1 top
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

# Costs of a move, as returned by `Crowd.stats`.
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
    """The ground below each of n characters.

    Where ``hit`` is False, distance is the distance of the search, ids and triangles are -1, and
    the rest is zero.
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
    """Return the columns of GROUND rows."""
    return GroundArrays(*(rows[name] for name in GroundArrays._fields))
