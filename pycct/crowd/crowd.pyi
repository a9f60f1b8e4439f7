from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from pycct._core import _Climbing, _NonWalkable, _RuleSet
from pycct.character.contacts import Contacts
from pycct.crowd.records import GroundArrays
from pycct.runtime.enums import Behavior, CollisionFlags
from pycct.scene.scene import Scene, _Journal, _Quaternion
from pycct.scene.worlds import Worlds
from pycct.shapes.primitives import Capsule, _Number, _Point, _Vector

_Array: TypeAlias = npt.ArrayLike
_Doubles: TypeAlias = npt.NDArray[np.float64]
_Indices: TypeAlias = npt.ArrayLike | slice
_Ids: TypeAlias = npt.NDArray[np.int64]
_Bools: TypeAlias = npt.NDArray[np.bool_]
_Flags: TypeAlias = npt.NDArray[np.uint8]
# One value, or one a character.
_Each: TypeAlias = _Number | Sequence[_Number] | npt.NDArray[Any]
_Bits: TypeAlias = int | Sequence[int] | npt.NDArray[Any]
_Switch: TypeAlias = bool | Sequence[bool] | npt.NDArray[Any]
_Mode: TypeAlias = _Climbing | Sequence[_Climbing]
_Walk: TypeAlias = _NonWalkable | Sequence[_NonWalkable]
_Rules: TypeAlias = _RuleSet | Sequence[_RuleSet]

@final
class CrowdMember:
    @property
    def crowd(self) -> Crowd: ...
    @property
    def id(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def position(self) -> _Point: ...
    @property
    def velocity(self) -> _Point: ...
    @property
    def displacement(self) -> _Point: ...
    @property
    def up(self) -> _Point: ...
    @property
    def radius(self) -> float: ...
    @property
    def height(self) -> float: ...
    @property
    def layer(self) -> int: ...
    @property
    def mask(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def world(self) -> int: ...
    @property
    def scene(self) -> Scene: ...
    @property
    def surface(self) -> Behavior: ...
    @property
    def user_data(self) -> Any: ...
    @user_data.setter
    def user_data(self, value: Any) -> None: ...
    @property
    def flags(self) -> CollisionFlags: ...
    @property
    def shape(self) -> Capsule: ...
    @property
    def pose(self) -> tuple[_Point, _Quaternion]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> CrowdMember: ...

@disjoint_base
class Crowd:
    def __init__(
        self,
        scene: Scene | Worlds,
        positions: _Array,
        *,
        order: Literal["simultaneous", "sequential"] = "simultaneous",
        group: _Bits = 0,
        world: _Bits = 0,
        radius: _Each = ...,
        height: _Each = ...,
        up: _Vector | Sequence[_Vector] = ...,
        step_offset: _Each = ...,
        contact_offset: _Each = ...,
        slope_limit: _Each = ...,
        climbing_mode: _Mode = ...,
        non_walkable_mode: _Walk = ...,
        rules: _Rules = ...,
        overlap_recovery: _Switch = ...,
        prevent_vertical_sliding: _Switch = ...,
        invisible_wall_height: _Each = ...,
        max_jump_height: _Each = ...,
        layer: _Bits = ...,
        mask: _Bits = ...,
        collide: _Switch = ...,
        surface: _Bits = ...,
    ) -> None: ...
    @property
    def scene(self) -> Scene: ...
    @property
    def worlds(self) -> Worlds | None: ...
    @property
    def order(self) -> Literal["simultaneous", "sequential"]: ...
    @property
    def positions(self) -> _Doubles: ...
    @property
    def foot_positions(self) -> _Doubles: ...
    @property
    def velocities(self) -> _Doubles: ...
    @property
    def displacements(self) -> _Doubles: ...
    @property
    def flags(self) -> _Flags: ...
    @property
    def grounded(self) -> _Bools: ...
    @property
    def ground_normals(self) -> _Doubles: ...
    @property
    def standing_on(self) -> _Ids: ...
    @property
    def ids(self) -> _Ids: ...
    @property
    def user_data(self) -> list[Any]: ...
    @user_data.setter
    def user_data(self, values: Iterable[Any]) -> None: ...
    @property
    def journal(self) -> _Journal | None: ...
    @journal.setter
    def journal(self, listener: _Journal | None) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def index_of(self, ids: Sequence[int] | _Ids) -> _Ids: ...  # type: ignore[overload-overlap]
    @overload
    def index_of(self, ids: SupportsIndex) -> int: ...
    def member(self, id: int) -> CrowdMember | None: ...
    def add(
        self,
        positions: _Array,
        *,
        group: _Bits | None = None,
        world: _Bits = 0,
        radius: _Each = ...,
        height: _Each = ...,
        up: _Vector | Sequence[_Vector] = ...,
        step_offset: _Each = ...,
        contact_offset: _Each = ...,
        slope_limit: _Each = ...,
        climbing_mode: _Mode = ...,
        non_walkable_mode: _Walk = ...,
        rules: _Rules = ...,
        overlap_recovery: _Switch = ...,
        prevent_vertical_sliding: _Switch = ...,
        invisible_wall_height: _Each = ...,
        max_jump_height: _Each = ...,
        layer: _Bits = ...,
        mask: _Bits = ...,
        collide: _Switch = ...,
        surface: _Bits = ...,
    ) -> _Ids: ...
    def remove(self, indices: _Indices) -> None: ...
    def teleport(self, indices: _Indices, positions: _Array) -> None: ...
    def set(
        self,
        indices: _Indices,
        *,
        group: _Bits = ...,
        world: _Bits = ...,
        position: _Array = ...,
        radius: _Each = ...,
        height: _Each = ...,
        up: _Vector | Sequence[_Vector] = ...,
        step_offset: _Each = ...,
        contact_offset: _Each = ...,
        slope_limit: _Each = ...,
        climbing_mode: _Mode = ...,
        non_walkable_mode: _Walk = ...,
        rules: _Rules = ...,
        overlap_recovery: _Switch = ...,
        prevent_vertical_sliding: _Switch = ...,
        invisible_wall_height: _Each = ...,
        max_jump_height: _Each = ...,
        layer: _Bits = ...,
        mask: _Bits = ...,
        collide: _Switch = ...,
        surface: _Bits = ...,
    ) -> None: ...
    def get(
        self, name: str, dtype: npt.DTypeLike | None = None, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]: ...
    def move(
        self,
        displacements: _Array,
        dt: _Number,
        active: _Array | None = None,
        threads: SupportsIndex = 1,
        record_hits: bool = False,
        out: _Flags | None = None,
        *,
        min_distance: _Number = 0.0,
        record_stats: bool = False,
        up: _Array | None = None,
    ) -> _Flags: ...
    def run(
        self, displacements: _Array, dt: _Number, threads: SupportsIndex = 1, *, min_distance: _Number = 0.0
    ) -> _Doubles: ...
    def separate(self, dt: _Number, *, yielding: npt.ArrayLike | None = None) -> None: ...
    @property
    def hits(self) -> npt.NDArray[np.void]: ...
    @property
    def stats(self) -> npt.NDArray[np.void]: ...
    def probe_ground(self, max_distance: _Number, threads: SupportsIndex = 1) -> GroundArrays: ...
    def snap_to_ground(self, max_distance: _Number, threads: SupportsIndex = 1) -> _Bools: ...
    @property
    def ground(self) -> GroundArrays: ...
    def can_resize(self, height: _Number, threads: SupportsIndex = 1, indices: _Indices | None = None) -> _Bools: ...
    def resize(self, indices: _Indices, height: _Each) -> None: ...
    def contacts(
        self, max_distance: _Number | None = None, indices: _Indices | None = None
    ) -> list[list[Contacts]]: ...
    def state_hash(self) -> int: ...
    def save(self, *, moving: bool = False) -> bytes: ...
    def extract(self, ids: _Array, *, keep: bool = False) -> bytes: ...
    def insert(self, data: bytes | bytearray | memoryview) -> _Ids: ...
    def restore(self, data: bytes | bytearray | memoryview) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[list[Any], dict[str, Any] | None]) -> None: ...
    def __copy__(self) -> Crowd: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Crowd: ...
