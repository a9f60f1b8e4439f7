from typing import NamedTuple

from pycct._core import CharacterController
from pycct._crowd import CrowdMember
from pycct._pairs import ContactManifold
from pycct._scene import Actor, Obstacle

class Contacts(NamedTuple):
    other: Actor | CharacterController | CrowdMember | Obstacle
    triangle: int | None
    manifold: ContactManifold
