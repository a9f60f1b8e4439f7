from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.queries.scene_queries import ClosestArrays, HitArrays, TouchArrays
from pycct.scene.scene import Scene, _Filter, _Include
from pycct.shapes.primitives import Shape, _Number

@final
class Worlds:
    scenes: tuple[Scene, ...]
    def __init__(self, scenes: Iterable[Scene]) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Scene: ...
    def __reduce__(self) -> tuple[type[Worlds], tuple[list[Scene]]]: ...
    def __copy__(self) -> Worlds: ...
    def __deepcopy__(self, memo: dict[int, object]) -> Worlds: ...
    def move_actors(
        self, world: ArrayLike, ids: ArrayLike, positions: ArrayLike, rotations: ArrayLike | None = None
    ) -> None: ...
    def raycast_many(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        distances: ArrayLike,
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        world: ArrayLike,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: HitArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> HitArrays: ...
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
        world: ArrayLike,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: HitArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> HitArrays: ...
    def closest_points_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        max_distance: ArrayLike = ...,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        world: ArrayLike,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: ClosestArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> ClosestArrays: ...
    def overlap_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        world: ArrayLike,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: TouchArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> TouchArrays: ...
    def penetration_many(
        self,
        shape: Shape,
        positions: ArrayLike,
        rotations: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        mask: ArrayLike = 0xFFFFFFFF,
        filter: _Filter | None = None,
        *,
        world: ArrayLike,
        threads: int = 1,
        fields: Iterable[str] | None = None,
        out: TouchArrays | Mapping[str, NDArray[Any]] | None = None,
        exclude: ArrayLike | None = None,
        group: ArrayLike | None = None,
        include: _Include = "actors",
    ) -> TouchArrays: ...
    def ray_distances(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        reach: _Number,
        *,
        world: ArrayLike,
        mask: int = 0xFFFFFFFF,
        threads: SupportsIndex = 1,
    ) -> NDArray[np.float64]: ...
