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
