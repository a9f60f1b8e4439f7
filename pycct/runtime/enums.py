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
    """Where the rule sets differ: one bit a row of RULES 9, then one bit a fix.

    ``PHYSX`` has none, ``DOCUMENT`` every row, ``ROBUST`` every fix. What the fixes change, and
    the report (R04, ...) that each answers:

    FIX_BACK_FACES
        R04. One-sided triangles let pass who comes from behind, but hold him fast on the way back: an
        overlap with a triangle from behind, or while passing through from there, is no obstacle.
    FIX_OVERHANGS
        R13. A normal that faces down, if only by rounding, is 'too steep' too for a triangle met
        aside: nothing higher than the step offset is climbed in constrained mode.
    FIX_LOWER_STEP
        R18. The way up by the step offset lifts the head into lintels: where what stops the side pass
        is out of the way of a lower capsule, eighths of the step are tried and what gets farthest counts.
    FIX_STEEP_ASIDE
        R20. A too steep triangle met aside that lifts the character is non-walkable also when the way
        down meets nothing.
    FIX_MOVING_SLOPES
        R22. Slopes of kinematic and dynamic bodies are judged as static ones are.
    FIX_STEP_IS_NO_JUMP
        R35. The UP flag tells of real motion upwards, not of the way up by the step offset.
    FIX_KEEP_RIDE
        R38, R40. Who stood on a moving thing, or does not move at all, goes on standing there while the
        gap stays within twice the contact offset.
    FIX_KINEMATIC_RECOVERY
        R38. Kinematic bodies push out whoever a move leaves inside them, also where no pass began inside:
        ``state.overlap`` then tells of a crush.
    FIX_ALMOST_LEVEL
        R20, R32. With an oblique up direction a level displacement rises by rounding, and would count as a
        jump: a rise of less than a millionth is none.
    FIX_STEEP_CLIMB
        R20. A steep slope of small triangles is climbed as if each were a step: the step offset is counted
        from where the character last stood on something walkable.
    """

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
    FIX_BACK_FACES = 1 << 16
    FIX_OVERHANGS = 1 << 17
    FIX_LOWER_STEP = 1 << 18
    FIX_STEEP_ASIDE = 1 << 19
    FIX_MOVING_SLOPES = 1 << 20
    FIX_STEP_IS_NO_JUMP = 1 << 21
    FIX_KEEP_RIDE = 1 << 22
    FIX_KINEMATIC_RECOVERY = 1 << 23
    FIX_ALMOST_LEVEL = 1 << 24
    FIX_STEEP_CLIMB = 1 << 25
    ROBUST = ((1 << 10) - 1) << 16


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
