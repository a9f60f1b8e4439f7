"""Kinematic character controller: a capsule that walks, slides, steps and falls by PhysX's rules."""

from pycct._ask import ClosestArrays, ClosestPoints, HitArrays, Penetration, SceneHit, TouchArrays
from pycct._core import CharacterController, Ground, Hit, MoveStats, State, decompose_movement, separate
from pycct._enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Region, Rules
from pycct._scene import Actor, Obstacle, Scene
from pycct._shapes import Box, Capsule, ConvexHull, Heightfield, Mesh, Plane, Shape, Sphere, Triangle
from pycct._version import __version__
from pycct.levels import LevelReport, load_level

__all__ = [
    "Actor",
    "Behavior",
    "Box",
    "Capsule",
    "CharacterController",
    "ClimbingMode",
    "ClosestArrays",
    "ClosestPoints",
    "CollisionFlags",
    "ConvexHull",
    "Ground",
    "Heightfield",
    "Hit",
    "HitArrays",
    "LevelReport",
    "Mesh",
    "MoveStats",
    "NonWalkableMode",
    "Obstacle",
    "Pass",
    "Penetration",
    "Plane",
    "Region",
    "Rules",
    "Scene",
    "SceneHit",
    "Shape",
    "Sphere",
    "State",
    "TouchArrays",
    "Triangle",
    "__version__",
    "decompose_movement",
    "load_level",
    "separate",
]
