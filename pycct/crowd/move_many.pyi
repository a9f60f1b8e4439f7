from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from pycct._core import CharacterController
from pycct.shapes.primitives import _Number

def move_many(
    controllers: Sequence[CharacterController],
    displacements: npt.ArrayLike,
    dt: _Number,
    threads: SupportsIndex = 1,
    out: npt.NDArray[np.uint8] | None = None,
    *,
    min_distance: _Number = 0.0,
) -> npt.NDArray[np.uint8]: ...
def save_many(controllers: Sequence[CharacterController], *, moving: bool = False) -> bytes: ...
def restore_many(controllers: Sequence[CharacterController], data: bytes | bytearray | memoryview) -> None: ...
