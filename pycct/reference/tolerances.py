"""Tolerances that several modules share, each named for its quantity."""

# Depths of overlaps that differ by no more are equal, metres; a geometric key decides (RULES 7.5).
DEPTH_TIE = 1e-9
# Facings and distances among the candidates of a sweep that differ by no more are equal; also the
# cosine below which a plane is parallel to a motion (RULES 3).
FACING_TIE = 1e-9
# Squared sine below which two directions are parallel: within 1e-9 (RULES 3).
PARALLEL2 = 1e-18
# Rounding of a coordinate, as a share of the largest one.
COORDINATE_ROUNDING = 1e-15
# Metres; shorter motions and corrections are nothing (MOVE 1.2).
EPSILON_DISTANCE = 1e-6
# Metres; a vector is zero when no component is larger (RULES 6).
ALMOST_ZERO = 1e-6
# A gain or loss of motion below this share of the displacement is rounding.
MOTION_SHARE = 1e-6
# A cosine below the slope limit by no more is at the limit, which is walkable (RULES_2 8).
SLOPE_ROUNDING = 1e-6


def is_below_limit(c, slope_limit):
    """Whether the cosine of a slope is below the slope limit (RULES_2 8)."""
    return c < slope_limit - SLOPE_ROUNDING
