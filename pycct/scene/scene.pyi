from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

from pycct._core import CharacterController
from pycct.crowd.crowd import Crowd, CrowdMember
from pycct.queries.scene_queries import ClosestArrays, ClosestPoints, HitArrays, Penetration, SceneHit, TouchArrays
from pycct.runtime.enums import Behavior
from pycct.shapes.primitives import Box, Capsule, Shape, _Number, _Point, _Vector

_Quaternion: TypeAlias = tuple[float, float, float, float]
_Filter: TypeAlias = Callable[[Any], object]
_Journal: TypeAlias = Callable[[Any, str, dict[str, Any]], object]
_Body: TypeAlias = Literal["static", "kinematic", "dynamic"]
_Include: TypeAlias = Literal["actors", "characters", "all"]

@disjoint_base
class Actor:
    user_data: Any
    @property
    def id(self) -> int: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def scene(self) -> Scene | None: ...
    @property
    def position(self) -> _Point: ...
    @property
    def rotation(self) -> _Quaternion: ...
    @property
    def scale(self) -> _Point: ...
    @property
    def body(self) -> _Body: ...
    @property
    def trigger(self) -> bool: ...
    @property
    def behavior(self) -> Behavior: ...
    @behavior.setter
    def behavior(self, value: int) -> None: ...
    @property
    def layer(self) -> int: ...
    @layer.setter
    def layer(self, value: int) -> None: ...
    @property
    def bounds(self) -> tuple[_Point, _Point]: ...
    def move_to(self, position: _Vector, rotation: _Vector | None = None) -> None: ...

@final
class Obstacle(Actor): ...

class TriggerEvents(NamedTuple):
    entered: NDArray[np.int64]
    left: NDArray[np.int64]
    inside: NDArray[np.int64]

@final
class Edit:
    def __init__(self) -> None: ...
    def __enter__(self) -> Scene: ...
    def __exit__(self, *problem: object) -> bool: ...

@final
class Scene:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    def add(
        self,
        shape: Shape,
        position: _Vector = (0.0, 0.0, 0.0),
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        scale: _Vector = (1.0, 1.0, 1.0),
        *,
        body: _Body = "static",
        layer: int = 1,
        behavior: int = 0,
        user_data: Any = None,
        id: SupportsIndex | None = None,
        trigger: bool = False,
    ) -> Actor: ...
    def add_obstacle(
        self,
        shape: Box | Capsule,
        position: _Vector = (0.0, 0.0, 0.0),
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        *,
        layer: int = 1,
        behavior: int = ...,
        user_data: Any = None,
        id: SupportsIndex | None = None,
    ) -> Obstacle: ...
    def remove(self, actor: Actor) -> None: ...
    @property
    def actors(self) -> list[Actor]: ...
    @property
    def obstacles(self) -> list[Obstacle]: ...
    @property
    def characters(self) -> list[CharacterController]: ...
    def triggers(self) -> TriggerEvents: ...
    @property
    def crowds(self) -> list[Crowd]: ...
    def character(self, id: int) -> CharacterController | CrowdMember | None: ...
    def actor(self, id: int) -> Actor | None: ...
    @property
    def journal(self) -> _Journal | None: ...
    @journal.setter
    def journal(self, listener: _Journal | None) -> None: ...
    def edit(self) -> Edit: ...
    def move_actors(self, ids: ArrayLike, positions: ArrayLike, rotations: ArrayLike | None = None) -> None: ...
    def shift_origin(self, offset: _Vector) -> None: ...
    def save(self, path: str | bytes | PathLike[Any], *, user_data: bool = True) -> None: ...
    @staticmethod
    def load(path: str | bytes | PathLike[Any], verify: bool = False) -> Scene: ...
    @property
    def triangle_count(self) -> int: ...
    def raycast(
        self,
        origin: _Vector,
        direction: _Vector,
        distance: _Number,
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> SceneHit | None: ...
    def raycast_all(
        self,
        origin: _Vector,
        direction: _Vector,
        distance: _Number,
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> list[SceneHit]: ...
    def raycast_many(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        distances: ArrayLike,
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: HitArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> HitArrays: ...
    def visible(
        self,
        a: _Vector,
        b: _Vector,
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        exclude: int | tuple[int, int] | None = None,
        include: _Include = "actors",
    ) -> bool: ...
    def visible_many(
        self,
        a: ArrayLike,
        b: ArrayLike,
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        out: NDArray[np.bool_] | None = None,
        exclude: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> NDArray[np.bool_]: ...
    def sweep(
        self,
        shape: Shape,
        position: _Vector,
        direction: _Vector,
        distance: _Number,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> SceneHit | None: ...
    def sweep_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        directions: ArrayLike,
        distances: ArrayLike,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: HitArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> HitArrays: ...
    def overlap(
        self,
        shape: Shape,
        position: _Vector,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> list[Any]: ...
    def overlap_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: TouchArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> TouchArrays: ...
    def penetration(
        self,
        shape: Shape,
        position: _Vector,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> list[Penetration]: ...
    def penetration_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: TouchArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> TouchArrays: ...
    def closest_points(
        self,
        shape: Shape,
        position: _Vector,
        max_distance: _Number = ...,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        include: _Include = "actors",
    ) -> ClosestPoints | None: ...
    def closest_points_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        max_distance: ArrayLike = ...,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: ClosestArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> ClosestArrays: ...
