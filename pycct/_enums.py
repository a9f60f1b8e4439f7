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


class Rules(IntFlag):
    """Where the rule sets differ: one bit a row of RULES 9. ``PHYSX`` has none, ``DOCUMENT`` all."""

    PHYSX = 0
    FORCE_SLIDE_HORIZONTAL = 1 << 0
    SENSOR_DECIDES = 1 << 1
    SIDE_CHECK_AT_ONCE = 1 << 2
    STEEP_FACING_DOWN = 1 << 3
    RECOVERY_SUM = 1 << 4
    NORMALIZE_EXPERIMENT = 1 << 5
    STEP_BACK_IN_EXPERIMENT = 1 << 6
    CULL_PARALLEL = 1 << 7
    RECOVERY_SWEEP_AFTER = 1 << 8
    JUMP_VOLUME_UP = 1 << 9
    RIDE_WHOLE = 1 << 10
    RECOVER_USER_GEOMETRY = 1 << 11
    FLAGS_BY_COLLISION = 1 << 12
    DOCUMENT = (1 << 13) - 1


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


class Region(str, Enum):
    """Part of a capsule that a contact is on (SWEEP 6); equal to its value, as in ``hit.region == Region.SIDE``."""

    SPHERE = "sphere"
    BOTTOM = "bottom"
    SIDE = "side"
    TOP = "top"
