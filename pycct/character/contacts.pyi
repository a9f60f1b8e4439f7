from typing import NamedTuple

from pycct._core import CharacterController
from pycct.crowd.crowd import CrowdMember
from pycct.queries.shape_pairs import ContactManifold
from pycct.scene.scene import Actor, Obstacle

class Contacts(NamedTuple):
    other: Actor | CharacterController | CrowdMember | Obstacle | None
    triangle: int | None
    manifold: ContactManifold
    id: int
    def __copy__(self) -> Contacts: ...
