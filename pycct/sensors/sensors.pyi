from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

from pycct._core import CharacterController
from pycct.crowd.crowd import Crowd
from pycct.sensors.kinds import DepthGrid, Feet, HeightScan, Lidar, Neighbours

_Sensor: TypeAlias = Lidar | HeightScan | DepthGrid | Neighbours | Feet

@final
class Sensors:
    def __init__(
        self,
        crowd: Crowd | Sequence[CharacterController],
        sensors: Mapping[str, _Sensor],
        dtype: npt.DTypeLike = ...,
    ) -> None: ...
    @property
    def crowd(self) -> Crowd | tuple[CharacterController, ...]: ...
    @property
    def sensors(self) -> dict[str, _Sensor]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def look(
        self,
        yaw: npt.ArrayLike = 0.0,
        pitch: npt.ArrayLike = 0.0,
        threads: SupportsIndex = 1,
        out: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> dict[str, npt.NDArray[Any]]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
