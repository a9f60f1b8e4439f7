from collections.abc import Iterator
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pycct._core import CharacterController
from pycct.crowd.crowd import CrowdMember
from pycct.scene.scene import Actor
from pycct.shapes.primitives import _Point

class HitArrays(NamedTuple):
    hit: NDArray[np.bool_]
    distance: NDArray[np.float64]
    time: NDArray[np.float64]
    position: NDArray[np.float64]
    normal: NDArray[np.float64]
    actor: NDArray[np.int64]
    controller: NDArray[np.int64]
    triangle: NDArray[np.int32]
    data: NDArray[np.int64]
    mask: NDArray[np.uint32]
    overlapping: NDArray[np.bool_]

class TouchArrays(NamedTuple):
    hit: NDArray[np.bool_]
    first: NDArray[np.int64]
    actor: NDArray[np.int64]
    controller: NDArray[np.int64]
    direction: NDArray[np.float64] | None
    depth: NDArray[np.float64] | None

class ClosestArrays(NamedTuple):
    hit: NDArray[np.bool_]
    distance: NDArray[np.float64]
    point: NDArray[np.float64]
    position: NDArray[np.float64]
    normal: NDArray[np.float64]
    actor: NDArray[np.int64]
    controller: NDArray[np.int64]
    triangle: NDArray[np.int32]
    data: NDArray[np.int64]
    mask: NDArray[np.uint32]

@final
class SceneHit:
    @property
    def id(self) -> int: ...
    @property
    def distance(self) -> float: ...
    @property
    def time(self) -> float: ...
    @property
    def actor(self) -> Actor | None: ...
    @property
    def controller(self) -> CharacterController | CrowdMember | None: ...
    @property
    def other(self) -> Actor | CharacterController | CrowdMember | None: ...
    @property
    def triangle(self) -> int | None: ...
    @property
    def data(self) -> int | None: ...
    @property
    def mask(self) -> int | None: ...
    @property
    def overlapping(self) -> bool: ...
    @property
    def position(self) -> _Point: ...
    @property
    def normal(self) -> _Point: ...
    def __copy__(self) -> SceneHit: ...

@final
class Penetration:
    @property
    def id(self) -> int: ...
    @property
    def actor(self) -> Actor | None: ...
    @property
    def controller(self) -> CharacterController | CrowdMember | None: ...
    @property
    def other(self) -> Actor | CharacterController | CrowdMember | None: ...
    @property
    def depth(self) -> float: ...
    @property
    def direction(self) -> _Point: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __copy__(self) -> Penetration: ...

@final
class ClosestPoints:
    @property
    def id(self) -> int: ...
    @property
    def distance(self) -> float: ...
    @property
    def actor(self) -> Actor | None: ...
    @property
    def controller(self) -> CharacterController | CrowdMember | None: ...
    @property
    def other(self) -> Actor | CharacterController | CrowdMember | None: ...
    @property
    def triangle(self) -> int | None: ...
    @property
    def data(self) -> int | None: ...
    @property
    def mask(self) -> int | None: ...
    @property
    def point(self) -> _Point: ...
    @property
    def position(self) -> _Point: ...
    @property
    def normal(self) -> _Point: ...
    def __copy__(self) -> ClosestPoints: ...
