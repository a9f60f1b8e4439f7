"""The movement rules in plain Python: slow, readable, and equal to the compiled package to the bit.

To be read beside the documents: each step cites its rule. Everything is brute force behind one box
test; there are no trees. The rooms are those of the compiled package: ``vec``, ``closest``,
``sweep``, ``overlap``, ``outline``, ``hull``, ``convert``, ``shapes``, ``neighbours``, ``world``,
``ray``, ``scene``, ``response``, ``move``, ``core``, ``crowd``, ``worlds``, ``sensors``.

Not here: most questions about many things at once or by other shapes than spheres and
capsules, contact manifolds, the cube world, level files, threads.
"""

from pycct.crowd.records import GroundArrays
from pycct.reference.core import CharacterController, Ground, Hit, State, decompose_movement, separate
from pycct.reference.crowd import Crowd, move_many, restore_many, save_many
from pycct.reference.move import MoveStats
from pycct.reference.scene import Actor, Obstacle, Penetration, Scene, SceneHit
from pycct.reference.sensors import Sensors
from pycct.reference.shapes import Box, Capsule, ConvexHull, Heightfield, Mesh, Plane, Shape, Sphere, Triangle
from pycct.reference.worlds import Worlds
from pycct.runtime.enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Region, Rules, Seen
from pycct.runtime.version import RESULTS_VERSION
from pycct.sensors.kinds import DepthGrid, Feet, HeightScan, Lidar, Neighbours

__all__ = [
    "RESULTS_VERSION",
    "Actor",
    "Behavior",
    "Box",
    "Capsule",
    "CharacterController",
    "ClimbingMode",
    "CollisionFlags",
    "ConvexHull",
    "Crowd",
    "DepthGrid",
    "Feet",
    "Ground",
    "GroundArrays",
    "HeightScan",
    "Heightfield",
    "Hit",
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
    "Triangle",
    "Worlds",
    "decompose_movement",
    "move_many",
    "restore_many",
    "save_many",
    "separate",
]
