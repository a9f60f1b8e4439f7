"""Records of the sweep/slide controller, and its parts as functions (SLIDE 2 to 7).

`SweepSlideController` returns the records, which are immutable named tuples.
"""

from pycct.cube_world.controller import (
    capsule_aabb_overlap,
    clip_velocity,
    clip_velocity_multi_plane,
    closest_point_on_aabb,
    closest_point_on_segment,
    closest_points_segment_aabb,
    segment_aabb_sweep,
    sweep_capsule_aabb,
)
from pycct.cube_world.records import (
    Candidates,
    DepenIteration,
    GroundResult,
    GroundState,
    OverlapResult,
    SlideCapsule,
    SlideIteration,
    SweepHit,
    SweepMark,
)

__all__ = [
    "Candidates",
    "DepenIteration",
    "GroundResult",
    "GroundState",
    "OverlapResult",
    "SlideCapsule",
    "SlideIteration",
    "SweepHit",
    "SweepMark",
    "capsule_aabb_overlap",
    "clip_velocity",
    "clip_velocity_multi_plane",
    "closest_point_on_aabb",
    "closest_point_on_segment",
    "closest_points_segment_aabb",
    "segment_aabb_sweep",
    "sweep_capsule_aabb",
]
