"""Kinematic character controller: a capsule that walks, slides, steps and falls by PhysX's rules."""

from typing import TYPE_CHECKING

from pycct._enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Rules
from pycct._pure import PURE
from pycct._version import __version__

if TYPE_CHECKING or not PURE:
    from pycct._core import CharacterController, Ground, Hit, MoveStats, State, decompose_movement, separate
    from pycct._scene import Actor, Obstacle, Penetration, Scene, SceneHit
    from pycct._shapes import Box, Capsule, ConvexHull, Mesh, Plane, Shape, Sphere, Triangle
else:
    from pycct.reference import (
        Actor,
        Box,
        Capsule,
        CharacterController,
        ConvexHull,
        Ground,
        Hit,
        Mesh,
        MoveStats,
        Obstacle,
        Penetration,
        Plane,
        Scene,
        SceneHit,
        Shape,
        Sphere,
        State,
        Triangle,
        decompose_movement,
        separate,
    )

__all__ = [
    "Actor",
    "Behavior",
    "Box",
    "Capsule",
    "CharacterController",
    "ClimbingMode",
    "CollisionFlags",
    "ConvexHull",
    "Ground",
    "Hit",
    "Mesh",
    "MoveStats",
    "NonWalkableMode",
    "Obstacle",
    "Pass",
    "Penetration",
    "Plane",
    "Rules",
    "Scene",
    "SceneHit",
    "Shape",
    "Sphere",
    "State",
    "Triangle",
    "__version__",
    "decompose_movement",
    "separate",
]
