# cython: language_level=3
"""Tolerances that several modules share, each named for its quantity.

They are C constants, so that the compiler folds them. The comment names the rule that sets the
value.
"""


cdef extern from * nogil:
    """
    #ifndef PYCCT_TOLERANCES
    #define PYCCT_TOLERANCES
    #define PYCCT_DEPTH_TIE 1e-9
    #define PYCCT_FACING_TIE 1e-9
    #define PYCCT_PARALLEL2 1e-18
    #define PYCCT_COORDINATE_ROUNDING 1e-15
    #define PYCCT_EPSILON_DISTANCE 1e-6
    #define PYCCT_ALMOST_ZERO 1e-6
    #define PYCCT_MOTION_SHARE 1e-6
    #define PYCCT_SLOPE_ROUNDING 1e-6
    #endif
    """
    # Depths of overlaps that differ by no more are equal, metres; a geometric key decides (RULES
    # 7.5).
    const double DEPTH_TIE "PYCCT_DEPTH_TIE"
    # Facings and distances among the candidates of a sweep that differ by no more are equal; also
    # the cosine below which a plane is parallel to a motion (RULES 3).
    const double FACING_TIE "PYCCT_FACING_TIE"
    # Squared sine below which two directions are parallel: within 1e-9 (RULES 3).
    const double PARALLEL2 "PYCCT_PARALLEL2"
    # Rounding of a coordinate, as a share of the largest one.
    const double COORDINATE_ROUNDING "PYCCT_COORDINATE_ROUNDING"
    # Metres; shorter motions and corrections are nothing (MOVE 1.2).
    const double EPSILON_DISTANCE "PYCCT_EPSILON_DISTANCE"
    # Metres; a vector is zero when no component is larger (RULES 6).
    const double ALMOST_ZERO "PYCCT_ALMOST_ZERO"
    # A gain or loss of motion below this share of the displacement is rounding.
    const double MOTION_SHARE "PYCCT_MOTION_SHARE"
    # A cosine below the slope limit by no more is at the limit, which is walkable (RULES_2 8).
    const double SLOPE_ROUNDING "PYCCT_SLOPE_ROUNDING"


cdef inline bint is_below_limit(double c, double slope_limit) noexcept nogil:
    """Whether the cosine of a slope is below the slope limit (RULES_2 8)."""
    return c < slope_limit - SLOPE_ROUNDING
