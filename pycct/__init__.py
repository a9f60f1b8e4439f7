"""Kinematic character controller: capsules that walk, slide, climb steps and fall by PhysX rules.

Scenes
    `Scene`, `Actor`, `Obstacle`; the shapes `Mesh`, `Heightfield`, `Box`, `Sphere`, `Capsule`,
    `ConvexHull`, `Plane`, `Triangle`; `load_level`, `load_scene`, `load_heightfield`. The queries
    of a scene are `raycast`, `sweep`, `overlap`, `penetration` and `closest_points`, each with a
    ``_many`` twin.
Characters
    `CharacterController` with its `Hit`, `Ground`, `State` and `Contacts`; `separate`; the modes
    `ClimbingMode`, `NonWalkableMode`, `Behavior`, `Rules`; the results `CollisionFlags`, `Pass`,
    `Region`.
Many characters
    `Crowd` with `CrowdMember` and `GroundArrays`; `Worlds`, many scenes for one crowd; `move_many`,
    `save_many`, `restore_many`.
Sensors
    `Sensors` of a crowd: `Lidar`, `HeightScan`, `DepthGrid`, `Neighbours`, `Feet`; `Seen`.
Shape against shape
    `distance_between`, `contacts_between`, each with a ``_many`` twin; `ContactManifold`;
    `HullTables`.
Cube worlds
    `CubeWorld`, `SweepSlideController`, `step_many`; `pycct.slide` with their records.
This build
    `show_config`, `RESULTS_VERSION`.
Geometry
    `pycct.kernels`, `pycct.toolbox`, `decompose_movement`, `expanding_polygon`.
Plain Python twin
    `pycct.reference`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pycct._pure import PURE
from pycct.config import show_config
from pycct.crowd.records import GroundArrays
from pycct.runtime.enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Region, Rules, Seen
from pycct.runtime.version import RESULTS_VERSION, __version__
from pycct.sensors.kinds import DepthGrid, Feet, HeightScan, Lidar, Neighbours

if TYPE_CHECKING:
    from pycct import kernels as kernels
    from pycct import toolbox as toolbox
    from pycct.cube_world.controller import SweepSlideController, step_many
    from pycct.cube_world.cubes import CubeWorld
    from pycct.levels import LevelReport, load_heightfield, load_level, load_scene

if TYPE_CHECKING or not PURE:
    from pycct._core import CharacterController, decompose_movement, separate
    from pycct.character.contacts import Contacts
    from pycct.character.records import Ground, Hit, MoveStats, State
    from pycct.convex.hull import HullTables
    from pycct.convex.outline import expanding_polygon
    from pycct.crowd.crowd import Crowd, CrowdMember
    from pycct.crowd.move_many import move_many, restore_many, save_many
    from pycct.queries.scene_queries import ClosestArrays, ClosestPoints, HitArrays, Penetration, SceneHit, TouchArrays
    from pycct.queries.shape_pairs import (
        Contact,
        ContactArrays,
        ContactManifold,
        Distance,
        DistanceArrays,
        Feature,
        capsule_contacts,
        contacts_between,
        contacts_between_many,
        decode_feature,
        distance_between,
        distance_between_many,
    )
    from pycct.scene.scene import Actor, Obstacle, Scene, TriggerEvents
    from pycct.scene.worlds import Worlds
    from pycct.sensors.sensors import Sensors
    from pycct.shapes.heightfield import Heightfield
    from pycct.shapes.mesh import Mesh
    from pycct.shapes.primitives import Box, Capsule, ConvexHull, Plane, Shape, Sphere, Triangle
else:
    from pycct.reference import (
        Actor,
        Box,
        Capsule,
        CharacterController,
        ConvexHull,
        Crowd,
        Ground,
        Heightfield,
        Hit,
        Mesh,
        MoveStats,
        Obstacle,
        Penetration,
        Plane,
        Scene,
        SceneHit,
        Sensors,
        Shape,
        Sphere,
        State,
        Triangle,
        Worlds,
        decompose_movement,
        move_many,
        restore_many,
        save_many,
        separate,
    )

__all__ = [
    "RESULTS_VERSION",
    "Actor",
    "Behavior",
    "Box",
    "Capsule",
    "CharacterController",
    "ClimbingMode",
    "ClosestArrays",
    "ClosestPoints",
    "CollisionFlags",
    "Contact",
    "ContactArrays",
    "ContactManifold",
    "Contacts",
    "ConvexHull",
    "Crowd",
    "CrowdMember",
    "CubeWorld",
    "DepthGrid",
    "Distance",
    "DistanceArrays",
    "Feature",
    "Feet",
    "Ground",
    "GroundArrays",
    "HeightScan",
    "Heightfield",
    "Hit",
    "HitArrays",
    "HullTables",
    "LevelReport",
    "Lidar",
    "Mesh",
    "MoveStats",
    "Neighbours",
    "NonWalkableMode",
    "Obstacle",
    "Pass",
    "Penetration",
    "Plane",
    "Region",
    "Rules",
    "Scene",
    "SceneHit",
    "Seen",
    "Sensors",
    "Shape",
    "Sphere",
    "State",
    "SweepSlideController",
    "TouchArrays",
    "Triangle",
    "TriggerEvents",
    "Worlds",
    "__version__",
    "capsule_contacts",
    "contacts_between",
    "contacts_between_many",
    "decode_feature",
    "decompose_movement",
    "distance_between",
    "distance_between_many",
    "expanding_polygon",
    "load_heightfield",
    "load_level",
    "load_scene",
    "move_many",
    "restore_many",
    "save_many",
    "separate",
    "show_config",
    "step_many",
]

# Names that the reference does not have.
_COMPILED = {
    "ClosestArrays",
    "ClosestPoints",
    "Contact",
    "ContactArrays",
    "ContactManifold",
    "Contacts",
    "CrowdMember",
    "CubeWorld",
    "Distance",
    "DistanceArrays",
    "Feature",
    "HitArrays",
    "HullTables",
    "LevelReport",
    "SweepSlideController",
    "TouchArrays",
    "TriggerEvents",
    "capsule_contacts",
    "contacts_between",
    "contacts_between_many",
    "decode_feature",
    "distance_between",
    "distance_between_many",
    "expanding_polygon",
    "load_heightfield",
    "load_level",
    "load_scene",
    "step_many",
}
# A third of the time of an import, for names that most programs do not use: loaded on first use.
_LAZY = {
    "CubeWorld": "pycct.cube_world.cubes",
    "LevelReport": "pycct.levels",
    "SweepSlideController": "pycct.cube_world.controller",
    "kernels": "pycct.kernels",
    "load_heightfield": "pycct.levels",
    "load_level": "pycct.levels",
    "load_scene": "pycct.levels",
    "step_many": "pycct.cube_world.controller",
    "toolbox": "pycct.toolbox",
}
if PURE:
    __all__[:] = [name for name in __all__ if name not in _COMPILED]


# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _LAZY and not PURE:
            module = import_module(_LAZY[name])
            value = module if _LAZY[name] == f"pycct.{name}" else getattr(module, name)
            globals()[name] = value
            return value
        if name in _COMPILED:
            raise AttributeError(f"pycct.{name} needs the compiled modules; this is the plain Python reference")
        raise AttributeError(f"module 'pycct' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
