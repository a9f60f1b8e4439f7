# cython: language_level=3
"""The sweep/slide controller's arithmetic: sweep, clip, slide, ground, depenetration, step.

No Python object and no allocation below this line. A capsule stands upright, Y up,
and is given by its feet. Sweeps are made with the shell, the capsule grown by the
skin, so that a stop leaves exactly the skin between capsule and surface, whatever the
angle. A capsule whose shell already touches something is only held back from moving
further in: distance to a convex box is convex along a line, so a motion that does not
approach at its start never will.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.cube_world.cubes cimport candidate, cube_grid
from pycct.geometry.vec cimport vec3


cdef enum:
    BUMPS_CAP = 32          # largest max_bumps
    PLANES_CAP = 16         # largest max_clip_planes
    DEPEN_CAP = 32          # largest max_depen_iters
    OVERLAPS_CAP = 64       # overlaps pushed in one iteration; the deepest are kept
    JITTER_CAP = 120        # largest jitter_frames


cdef struct slide_config:
    double radius           # m
    double half_height      # m, half the distance between the sphere centres
    double skin             # m
    int32_t max_bumps
    int32_t max_planes
    double stop_epsilon     # of the step (displacements) and of the speed (components)
    double overclip
    double walkable_y       # least y of a walkable normal
    double grace_time       # s
    double probe_margin     # m beyond the skin that still count as ground
    double probe_scale      # the probe's radius, in radii
    double step_height      # m that a snap reaches down
    double gravity          # m/s2, downwards
    double jump_speed       # m/s
    double max_fall_speed   # m/s
    int32_t max_depen_iters
    double min_depen_dist   # m of overlap that are let be
    double max_depen_clamp  # m, longest push of one iteration
    int32_t stuck_limit     # frames; 0: never depenetrate because of being stuck
    int32_t jitter_frames   # frames whose positions the jitter score is of (SLIDE 4.4)
    double tie_epsilon      # of the step
    bint ccd                # sweep; off: move at once, then push out (for comparison)
    bint flatten_walls      # what is too steep to walk on lifts nobody
    bint merge_faces        # edges between flush cubes are none
    bint hysteresis         # a motion that clipping turns back stops dead


cdef struct slide_hit:
    double t                # fraction of the motion, 1: none
    double distance         # m along the motion
    vec3 normal             # out of what was hit
    vec3 point              # on what was hit
    int64_t id              # -1: none
    bint face               # the normal is one of the box's own


cdef struct bump_record:
    double t                # fraction of the remaining motion
    double remain           # m that were left of the motion before
    vec3 start              # feet
    vec3 delta              # m
    slide_hit hit


cdef struct depen_record:
    vec3 push               # m
    int32_t overlaps


cdef struct ground_result:
    bint hit
    bint walkable
    bint face
    vec3 normal
    double distance         # m from the capsule's surface straight down
    int64_t id


cdef struct slide_trace:        # what the last frame did
    bump_record bumps[BUMPS_CAP]
    depen_record depens[DEPEN_CAP]
    int32_t n_bumps             # iterations run
    int32_t n_hits              # iterations that met something
    bint exhausted              # motion was left when the bumps were used up
    int64_t candidates          # of the frame's first sweep
    int64_t first_id            # -1: none
    int64_t last_id
    int32_t n_depens
    bint depen_ran
    bint depen_pushed
    bint depen_failed           # overlap left after the pushes
    bint depen_reverted         # went back to the last safe position
    bint snapped
    double snap_distance        # m
    bint was_grounded
    vec3 moved                  # m, the whole frame


cdef struct slide_state:
    vec3 feet
    vec3 velocity               # m/s
    vec3 carry                  # m/s, what sliding off a slope adds to the wish until it lands
    uint64_t frame
    bint grounded               # with grace
    bint on_surface             # the last probe found walkable ground
    bint rising                 # in a jump's ascent: no snap, no ground
    bint wedged                 # held between planes none of which is walkable
    double since_grounded       # s
    vec3 ground_normal
    ground_result ground        # the last probe
    bint has_safe
    vec3 last_safe
    int64_t stuck_frames
    uint64_t frames_grounded
    uint64_t frames_airborne
    uint64_t depenetrations
    vec3 recent[JITTER_CAP]     # ring of config.jitter_frames
    int32_t n_recent
    int32_t next_recent


cdef struct slide_runner:
    slide_config config
    slide_state state
    slide_trace trace


cdef struct box_overlap_result:
    bint hit
    vec3 normal
    double depth
    vec3 on_segment
    vec3 on_box


# Entry of start + t * delta into the box [lo, hi], t in [0, limit]; NO_HIT: none. axis:
# which plane was entered last, -1 when it starts inside.
cdef double slab_time(vec3 start, vec3 delta, vec3 lo, vec3 hi, double limit, int* axis) noexcept nogil
# An upright capsule (lower centre p, upper centre p + (0, reach, 0)) against the box
# [lo, hi]; limit and result are distances along the unit vector dir.
cdef double upright_box_time(vec3 p, double reach, double radius, vec3 dir, vec3 lo, vec3 hi, double limit,
                             vec3* normal) noexcept nogil
# Of the box, nearest to the axis of an upright capsule; the middle of a stretch of such points.
cdef vec3 upright_box_point(vec3 p, double reach, vec3 lo, vec3 hi) noexcept nogil
cdef box_overlap_result upright_box_overlap(vec3 p, double reach, double radius, vec3 lo, vec3 hi) noexcept nogil
cdef box_overlap_result candidate_overlap(const cube_grid* g, vec3 p, double reach, double radius,
                                          const candidate* c) noexcept nogil

cdef vec3 clip_velocity(vec3 velocity, vec3 normal, double overbounce, double stop_epsilon) noexcept nogil
cdef vec3 clip_velocity_planes(vec3 velocity, const vec3* planes, int n, double overbounce,
                               double stop_epsilon) noexcept nogil

# A sweep through the grid. counts: three numbers (candidates, lowest id, highest id) or NULL.
cdef bint grid_sweep(const cube_grid* g, vec3 p, double reach, double radius, vec3 delta, double tie, bint merge,
                     slide_hit* hit, int64_t* counts, double true_radius, bint* overlapped) noexcept nogil
cdef void slide_move(const cube_grid* g, slide_runner* r, vec3* velocity, double dt) noexcept nogil
cdef ground_result slide_probe(const cube_grid* g, const slide_config* c, vec3 feet, double distance) noexcept nogil
cdef void slide_depenetrate(const cube_grid* g, slide_runner* r) noexcept nogil
# True when something overlaps deeper than ``slack``.
cdef bint slide_overlaps(const cube_grid* g, const slide_config* c, vec3 feet, double radius,
                         double slack) noexcept nogil
# A status.
cdef int slide_step(const cube_grid* g, slide_runner* r, vec3 wish, double dt, bint jump) noexcept nogil
cdef uint32_t slide_hash(const slide_state* s) noexcept nogil
