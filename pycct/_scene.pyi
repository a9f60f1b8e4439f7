from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

from typing_extensions import disjoint_base

from pycct._core import CharacterController
from pycct._enums import Behavior
from pycct._shapes import Box, Capsule, Shape, Sphere, _Number, _Point, _Vector

_Quaternion: TypeAlias = tuple[float, float, float, float]
_Filter: TypeAlias = Callable[[Actor], object]

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
    def body(self) -> str: ...
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

@final
class SceneHit:
    @property
    def distance(self) -> float: ...
    @property
    def time(self) -> float: ...
    @property
    def actor(self) -> Actor | None: ...
    @property
    def triangle(self) -> int | None: ...
    @property
    def data(self) -> int | None: ...
    @property
    def overlapping(self) -> bool: ...
    @property
    def position(self) -> _Point: ...
    @property
    def normal(self) -> _Point: ...

@final
class Penetration:
    @property
    def actor(self) -> Actor: ...
    @property
    def depth(self) -> float: ...
    @property
    def direction(self) -> _Point: ...
    def __iter__(self) -> Iterator[Any]: ...

@final
class Scene:
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
        body: str = "static",
        layer: int = 1,
        behavior: int = 0,
        user_data: Any = None,
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
    ) -> Obstacle: ...
    def remove(self, actor: Actor) -> None: ...
    @property
    def actors(self) -> list[Actor]: ...
    @property
    def obstacles(self) -> list[Obstacle]: ...
    @property
    def characters(self) -> list[CharacterController]: ...
    def character(self, id: int) -> CharacterController | None: ...
    def actor(self, id: int) -> Actor | None: ...
    def sweep(
        self,
        shape: Sphere | Capsule,
        position: _Vector,
        direction: _Vector,
        distance: _Number,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
    ) -> SceneHit | None: ...
    def overlap(
        self,
        shape: Sphere | Capsule,
        position: _Vector,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
    ) -> list[Actor]: ...
    def penetration(
        self,
        shape: Sphere | Capsule,
        position: _Vector,
        rotation: _Vector = (0.0, 0.0, 0.0, 1.0),
        mask: int = 0xFFFFFFFF,
        filter: _Filter | None = None,
    ) -> list[Penetration]: ...
