"""Public flags and modes."""

from enum import Enum, IntEnum, IntFlag


class CollisionFlags(IntFlag):
    """Directions in which a move collided (MOVE 1.3)."""

    NONE = 0
    SIDES = 1
    UP = 2
    DOWN = 4


class Behavior(IntFlag):
    """Riding and sliding on an actor, obstacle or other character (RULES 7.3)."""

    NONE = 0
    CAN_RIDE = 1
    CAN_SLIDE = 2
    USER_DEFINED_RIDE = 4


class Rules(IntFlag):
    """Differences between the rule sets: one bit for each row of RULES 9, and one for each fix.

    ``PHYSX`` has no bits, ``DOCUMENT`` every row, ``ROBUST`` every fix. Each fix, and the report
    (R04, ...) that it answers:

    FIX_BACK_FACES
        R04. A character passes one-sided triangles from behind, but they stop it on the way back.
        With the fix, an overlap from behind, or while passing from behind, is no obstacle.
    FIX_OVERHANGS
        R13. With the fix, a triangle met aside is also too steep if its normal faces down, even by
        rounding. In constrained mode, the character climbs nothing higher than the step offset.
    FIX_LOWER_STEP
        R18. The UP pass lifts the head into lintels. With the fix, if a lower capsule would pass
        the obstacle of the side pass, the move tries eighths of the step and keeps the farthest
        one.
    FIX_STEEP_ASIDE
        R20. With the fix, a too steep triangle met aside that lifts the character is non-walkable
        even if the DOWN pass meets nothing. Upright faces do not count.
    FIX_MOVING_SLOPES
        R22. With the fix, the slope limit applies to kinematic and dynamic bodies as to static
        ones.
    FIX_STEP_IS_NO_JUMP
        R35. With the fix, the UP flag reports upward displacements only, not the lift by the step
        offset.
    FIX_KEEP_RIDE
        R38, R40. With the fix, a character keeps its moving platform, or its ground without a
        motion, while the gap is at most twice the contact offset.
    FIX_KINEMATIC_RECOVERY
        R38. With the fix, recovery also moves a character out of kinematic bodies in which no pass
        started. ``state.overlap`` then reports a crush. It moves up from characters that rise into
        it.
    FIX_ALMOST_LEVEL
        R20, R32. With an oblique up direction, rounding can turn a level displacement into a jump.
        With the fix, a rise of less than a millionth of the displacement is no jump.
    FIX_STEEP_CLIMB
        R20. A character climbs a steep slope of small triangles as a series of steps. With the fix,
        the step offset counts from the last walkable ground.
    FIX_SHEET_EDGES
        If motion and axis of a character are in the plane of a sheet, PhysX lets it walk into the
        sheet, and recovery lifts it again and again. With the fix, the edge of the sheet stops it.
    FIX_ROUND_SLOPES
        R21, R74. Spheres, capsules, obstacles and characters have no triangles, so no slope of
        theirs is too steep. With the fix, their contact normals decide, up to their tops.
    FIX_SLIDE_LENGTH
        Forced sliding moves a character up to twice its displacement. With the fix, the way is no
        longer than the displacement.
    FIX_CREASES
        R70. Between a floor and a wall that leans over it, single responses turn a motion back and
        forth, and the character stops. With the fix, it continues along the crease.
    FIX_STATIC_RECOVERY
        R83. A move that meets nothing can end inside a static body. With the fix, recovery runs
        then too, and ``state.overlap`` reports the depth that remains in any object.
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
    FIX_SHEET_EDGES = 1 << 26
    FIX_ROUND_SLOPES = 1 << 27
    FIX_SLIDE_LENGTH = 1 << 28
    FIX_CREASES = 1 << 29
    FIX_STATIC_RECOVERY = 1 << 30
    ROBUST = ((1 << 15) - 1) << 16


class ClimbingMode(Enum):
    """Climbing of edges higher than the step offset (MOVE 3.2.2)."""

    EASY = "easy"
    CONSTRAINED = "constrained"


class NonWalkableMode(Enum):
    """Behavior on a slope that is too steep (MOVE 3.2.5)."""

    PREVENT_CLIMBING = "prevent_climbing"
    FORCE_SLIDING = "force_sliding"


class Pass(Enum):
    """The passes of a move (MOVE 6.1)."""

    UP = 0
    SIDE = 1
    DOWN = 2
    SENSOR = 3


class Region(str, Enum):
    """Part of a capsule with a contact (SWEEP 6).

    A member is equal to its value: ``hit.region == "side"``.
    """

    SPHERE = "sphere"
    BOTTOM = "bottom"
    SIDE = "side"
    TOP = "top"


class Seen(IntEnum):
    """Kind of object that a sensor met."""

    NOTHING = 0
    STATIC = 1
    MOVING = 2
    OBSTACLE = 3
    CHARACTER = 4
