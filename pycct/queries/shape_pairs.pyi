from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, SupportsIndex, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.shapes.primitives import Box, Capsule, ConvexHull, Shape, Sphere, Triangle

_Vec = tuple[float, float, float]
_VecLike = Sequence[float] | NDArray[np.floating]
_Pose = tuple[_VecLike, _VecLike | None] | None
_Convex = Sphere | Capsule | Box | Triangle | ConvexHull
_Poses = tuple[ArrayLike, ArrayLike | None] | None

class Feature(NamedTuple):
    kind: Literal["vertex", "edge", "face"]
    number: int

class Contact(NamedTuple):
    point: _Vec
    distance: float

class DistanceArrays(NamedTuple):
    near: NDArray[np.bool_]
    distance: NDArray[np.float64]
    point_a: NDArray[np.float64]
    point_b: NDArray[np.float64]
    normal: NDArray[np.float64]
    normal_a: NDArray[np.float64]
    normal_b: NDArray[np.float64]
    feature_a: NDArray[np.uint16]
    feature_b: NDArray[np.uint16]

class ContactArrays(NamedTuple):
    near: NDArray[np.bool_]
    normal: NDArray[np.float64]
    counts: NDArray[np.int32]
    points_on_b: NDArray[np.float64]
    distances: NDArray[np.float64]

@final
class Distance:
    @property
    def distance(self) -> float: ...
    @property
    def point_a(self) -> _Vec: ...
    @property
    def point_b(self) -> _Vec: ...
    @property
    def normal(self) -> _Vec: ...
    @property
    def normal_a(self) -> _Vec: ...
    @property
    def normal_b(self) -> _Vec: ...
    @property
    def feature_a(self) -> int: ...
    @property
    def feature_b(self) -> int: ...
    def __copy__(self) -> Distance: ...
    def __deepcopy__(self, memo: object) -> Distance: ...

@final
class ContactManifold:
    def __init__(self, normal: _VecLike) -> None: ...
    @property
    def normal(self) -> _Vec: ...
    @property
    def count(self) -> int: ...
    @property
    def points_on_b(self) -> NDArray[np.float64]: ...
    @property
    def points_on_a(self) -> NDArray[np.float64]: ...
    @property
    def distances(self) -> NDArray[np.float64]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex, /) -> Contact: ...
    def __setitem__(self, index: SupportsIndex, contact: tuple[_VecLike, float], /) -> None: ...
    def add(self, point: _VecLike, distance: float) -> None: ...
    def remove(self, index: SupportsIndex) -> None: ...
    def flip(self) -> ContactManifold: ...
    def copy(self) -> ContactManifold: ...
    def __copy__(self) -> ContactManifold: ...
    def __deepcopy__(self, memo: object) -> ContactManifold: ...

def decode_feature(code: int) -> Feature: ...

# None comes of max_distance and max_contact_distance alone.
@overload
def distance_between(a: _Convex, b: _Convex, pose_a: _Pose = None, pose_b: _Pose = None) -> Distance: ...
@overload
def distance_between(
    a: _Convex, b: _Convex, pose_a: _Pose = None, pose_b: _Pose = None, max_distance: float = ...
) -> Distance | None: ...
@overload
def contacts_between(a: _Convex, b: _Convex, pose_a: _Pose = None, pose_b: _Pose = None) -> ContactManifold: ...
@overload
def contacts_between(
    a: _Convex,
    b: _Convex,
    pose_a: _Pose = None,
    pose_b: _Pose = None,
    max_distance: float = ...,
    max_contact_distance: float = ...,
) -> ContactManifold | None: ...
def capsule_contacts(
    capsule: Capsule,
    pose_capsule: _Pose,
    shapes: Iterable[Shape],
    poses: Iterable[_Pose],
    max_distance: float = 0.0,
    max_contact_distance: float = ...,
) -> list[tuple[int, ContactManifold]]: ...
def distance_between_many(
    a: _Convex | Iterable[_Convex],
    b: _Convex | Iterable[_Convex],
    poses_a: _Poses = None,
    poses_b: _Poses = None,
    max_distance: float = ...,
) -> DistanceArrays: ...
def contacts_between_many(
    a: _Convex | Iterable[_Convex],
    b: _Convex | Iterable[_Convex],
    poses_a: _Poses = None,
    poses_b: _Poses = None,
    max_distance: float = ...,
    max_contact_distance: float = ...,
) -> ContactArrays: ...
def _run_kernels(
    a: _Convex | Iterable[_Convex],
    b: _Convex | Iterable[_Convex],
    poses_a: _Poses,
    poses_b: _Poses,
    repeat: int,
    contacts: bool,
    max_distance: float = ...,
) -> float: ...
