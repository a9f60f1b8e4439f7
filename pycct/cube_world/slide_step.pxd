# cython: language_level=3
"""The sweep/slide controller's arithmetic: sweep, clip, slide, ground, depenetration, step.

The functions use no Python object and allocate no memory. A capsule is upright (Y up) and given by
its feet. Sweeps use the shell, the capsule grown by the skin, so that a stop leaves exactly the
skin between capsule and surface, at any angle. A capsule whose shell already touches a box is only
blocked from moving further in: the distance to a convex box is convex along a line, so a motion
that does not approach at its start never will.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.cube_world.cubes cimport candidate, cube_grid
from pycct.geometry.vec cimport vec3


cdef enum:
    BUMPS_CAP = 32          # largest max_bumps
    PLANES_CAP = 16         # largest max_clip_planes
    DEPEN_CAP = 32          # largest max_depen_iters
    OVERLAPS_CAP = 64       # overlaps of one iteration; the deepest are kept
    JITTER_CAP = 120        # largest jitter_frames


cdef struct slide_config:
    double radius           # m
    double half_height      # m, half the distance between the sphere centres
    double skin             # m
    int32_t max_bumps
    int32_t max_planes
    double stop_epsilon     # of the step (displacements) and of the speed (components)
    double overclip
    double walkable_y       # smallest y of a walkable normal
    double grace_time       # s
    double probe_margin     # m beyond the skin that count as ground
    double probe_scale      # the probe's radius, in radii
    double step_height      # m, longest snap down
    double gravity          # m/s2, downwards
    double jump_speed       # m/s
    double max_fall_speed   # m/s
    int32_t max_depen_iters
    double min_depen_dist   # m, overlaps up to this depth are ignored
    double max_depen_clamp  # m, longest push of one iteration
    int32_t stuck_limit     # frames; 0: never depenetrate because of being stuck
    int32_t jitter_frames   # frames of the jitter score (SLIDE 4.4)
    double tie_epsilon      # of the step
    bint ccd                # sweep; off: move first, then push out (for comparison)
    bint flatten_walls      # surfaces too steep to walk on do not lift
    bint merge_faces        # edges between flush cubes do not count
    bint hysteresis         # the motion stops if clipping has turned it back


cdef struct slide_hit:
    double t                # fraction of the motion, 1: none
    double distance         # m along the motion
    vec3 normal             # out of the box that was hit
    vec3 point              # on the surface
    int64_t id              # -1: none
    bint face               # the normal is one of the box's own


cdef struct bump_record:
    double t                # fraction of the remaining motion
    double remain           # m that remained of the motion before
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


cdef struct slide_trace:        # record of the last frame
    bump_record bumps[BUMPS_CAP]
    depen_record depens[DEPEN_CAP]
    int32_t n_bumps             # iterations run
    int32_t n_hits              # iterations with a hit
    bint exhausted              # motion remained when the bumps were used up
    int64_t candidates          # of the frame's first sweep
    int64_t first_id            # -1: none
    int64_t last_id
    int32_t n_depens
    bint depen_ran
    bint depen_pushed
    bint depen_failed           # overlap left after the pushes
    bint depen_reverted         # returned to the last safe position
    bint snapped
    double snap_distance        # m
    bint was_grounded
    vec3 moved                  # m, the whole frame


cdef struct slide_state:
    vec3 feet
    vec3 velocity               # m/s
    vec3 carry                  # m/s, added to the wish after sliding off a slope, until landing
    uint64_t frame
    bint grounded               # with grace
    bint on_surface             # the last probe found walkable ground
    bint rising                 # rising in a jump: no snap, no ground
    bint wedged                 # stopped between planes that are not walkable
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


# Entry of start + t * delta into the box [lo, hi], t in [0, limit]; NO_HIT: none. axis: plane that
# was entered last, -1 for a start inside.
cdef double slab_time(vec3 start, vec3 delta, vec3 lo, vec3 hi, double limit, int* axis) noexcept nogil
# An upright capsule (lower centre p, upper centre p + (0, reach, 0)) against the box [lo, hi];
# limit and result are distances along the unit vector dir.
cdef double upright_box_time(vec3 p, double reach, double radius, vec3 dir, vec3 lo, vec3 hi, double limit,
                             vec3* normal) noexcept nogil
# Point of the box nearest to the axis of an upright capsule; the middle of an interval of such
# points.
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
# True if an overlap is deeper than ``slack``.
cdef bint slide_overlaps(const cube_grid* g, const slide_config* c, vec3 feet, double radius,
                         double slack) noexcept nogil
# Returns a status.
cdef int slide_step(const cube_grid* g, slide_runner* r, vec3 wish, double dt, bint jump) noexcept nogil
cdef uint32_t slide_hash(const slide_state* s) noexcept nogil
