"""Flags and modes that users name."""

from enum import Enum, IntFlag


class CollisionFlags(IntFlag):
    """Where a move collided (MOVE 1.3)."""

    NONE = 0
    SIDES = 1
    UP = 2
    DOWN = 4


class Behavior(IntFlag):
    """What a character may do on an actor, obstacle or other character (RULES 7.3)."""

    NONE = 0
    CAN_RIDE = 1
    CAN_SLIDE = 2
    USER_DEFINED_RIDE = 4


class ClimbingMode(Enum):
    """How eagerly a capsule climbs (MOVE 3.2.2)."""

    EASY = "easy"
    CONSTRAINED = "constrained"


class NonWalkableMode(Enum):
    """What happens on a slope that is too steep (MOVE 3.2.5)."""

    PREVENT_CLIMBING = "prevent_climbing"
    FORCE_SLIDING = "force_sliding"


class Pass(Enum):
    """The passes of a move (MOVE 6.1)."""

    UP = 0
    SIDE = 1
    DOWN = 2
    SENSOR = 3
