# cython: language_level=3
"""Structs and enums of a move: parameters, state, surroundings, scratch memory, results."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.geometry.types cimport triangle
from pycct.geometry.vec cimport aabb, vec3
from pycct.spatial.character_grid cimport character, shared_grid
from pycct.world.candidates cimport (
    broadphase_layer,
    callback_answers,
    candidates,
    compact_candidates,
)


cdef enum collision_flag:       # MOVE 1.3
    COLLISION_SIDES = 1
    COLLISION_UP = 2
    COLLISION_DOWN = 4


cdef enum climbing_mode:
    CLIMBING_EASY = 0
    CLIMBING_CONSTRAINED = 1


cdef enum non_walkable_mode:
    NON_WALKABLE_PREVENT_CLIMBING = 0
    NON_WALKABLE_FORCE_SLIDING = 1


cdef enum sweep_pass:           # MOVE 6.1
    PASS_UP = 0
    PASS_SIDE = 1
    PASS_DOWN = 2
    PASS_SENSOR = 3


cdef enum state_mark:           # PhysX's STF flags
    VALIDATE_TRIANGLE_DOWN = 1
    VALIDATE_TRIANGLE_SIDE = 2
    TOUCH_OTHER_CONTROLLER = 4
    TOUCH_OBSTACLE = 8
    NORMALIZE_RESPONSE = 16
    WALK_EXPERIMENT = 32
    HIT_NON_WALKABLE = 64
    IS_MOVING_UP = 128
    PASSES_BACK_FACE = 256      # not from PhysX: see FIX_BACK_FACES
    CLIMBS_STEEP = 512          # not from PhysX: see FIX_STEEP_CLIMB


# Differences of the rule sets, one bit for each row of RULES 9 ('document' sets it).
cdef enum rule_bit:
    RULE_FORCE_SLIDE_HORIZONTAL = 1 << 0    # row 1
    RULE_SENSOR_DECIDES = 1 << 1            # row 2
    RULE_SIDE_CHECK_AT_ONCE = 1 << 2        # row 3
    RULE_STEEP_FACING_DOWN = 1 << 3         # row 4
    RULE_RECOVERY_SUM = 1 << 4              # row 5
    RULE_NORMALIZE_EXPERIMENT = 1 << 5      # row 6
    RULE_STEP_BACK_IN_EXPERIMENT = 1 << 6   # row 7
    RULE_CULL_PARALLEL = 1 << 7             # row 8
    RULE_RECOVERY_SWEEP_AFTER = 1 << 8      # row 9
    RULE_JUMP_VOLUME_UP = 1 << 9            # row 10
    RULE_RIDE_WHOLE = 1 << 10               # row 11
    RULE_RECOVER_USER_GEOMETRY = 1 << 11    # row 12
    RULE_FLAGS_BY_COLLISION = 1 << 12       # row 13
    ANY_RULE = (1 << 16) - 1


# Fixes of 'robust', one bit each, with the reported fault. move_stats.fixes records the fixes that
# made a difference; without any, the move has the bits of PhysX's rules.
cdef enum fix_bit:
    FIX_BACK_FACES = 1 << 16               # held behind a one-sided wall
    FIX_OVERHANGS = 1 << 17                # climbs walls that lean over, even by rounding
    FIX_LOWER_STEP = 1 << 18               # the step offset lifts the head into lintels
    FIX_STEEP_ASIDE = 1 << 19              # climbs steep slopes without touching them from above
    FIX_MOVING_SLOPES = 1 << 20            # slopes of kinematic and dynamic bodies count as flat
    FIX_STEP_IS_NO_JUMP = 1 << 21          # the lift of the step reports ceilings
    FIX_KEEP_RIDE = 1 << 22                # a resting character loses its lift
    FIX_KINEMATIC_RECOVERY = 1 << 23       # bodies move into characters in their way
    FIX_ALMOST_LEVEL = 1 << 24             # a rise by rounding cancels steps and slopes
    FIX_STEEP_CLIMB = 1 << 25              # climbs steep slopes of triangles smaller than a step
    FIX_SHEET_EDGES = 1 << 26              # walks into a sheet from the side, and is lifted out of it
    FIX_ROUND_SLOPES = 1 << 27             # no slope of a shape without triangles is too steep
    FIX_SLIDE_LENGTH = 1 << 28             # forced sliding exceeds the displacement
    FIX_CREASES = 1 << 29                  # stops where it could follow the crease of two planes
    FIX_STATIC_RECOVERY = 1 << 30          # ends inside static bodies without a report


cdef struct controller_params:
    vec3 up                     # unit
    double radius               # m, > 0
    double height               # m, distance between the sphere centres, >= 0
    double contact_offset       # m, >= 0
    double step_offset          # m, >= 0
    double slope_limit          # cosine; 0: no slope limit
    double invisible_wall_height
    double max_jump_height
    int32_t climbing            # climbing_mode
    int32_t non_walkable        # non_walkable_mode
    bint overlap_recovery
    bint prevent_vertical_sliding
    bint collide                # collides with other controllers
    uint32_t layer
    uint32_t mask
    uint32_t rules              # rule_bit, fix_bit
    uint32_t surface            # riding and sliding of others on it (behavior bits)
    int64_t proxy               # id of its proxy actor, which it never collides with; -1: none


# Ground of the last DOWN pass.
cdef struct ground_contact:
    bint touching
    vec3 normal                 # contact normal
    vec3 point
    int32_t owner               # owner_kind
    int64_t id                  # of the actor, controller or obstacle
    int32_t triangle            # in the order of the user's triangles, -1: none
    bint has_data
    int64_t data
    bint has_face               # a face's normal decides whether it is walkable
    vec3 face_normal
    double distance             # gap between the capsule and it, m


cdef struct controller_state:
    vec3 position               # centre of the capsule
    vec3 velocity               # motion / dt, without recovery and separation
    vec3 displacement           # whole motion of the last move
    vec3 asked                  # displacement argument of the last move; zero without a move
    int32_t flags               # collision_flag bits of the last move
    uint32_t marks              # state_mark bits
    int64_t touched_actor       # ground of the last DOWN pass, -1: none
    int64_t touched_obstacle
    int64_t touched_controller
    vec3 touched_point          # in the world
    vec3 touched_local          # in the frame of the shape or obstacle
    vec3 platform_delta         # motion by the platform in the last move
    vec3 separation             # added to the next displacement (RULES 8)
    vec3 down_normal            # of the triangle below (MOVE contactNormalDownPass)
    vec3 side_normal            # of the triangle aside (MOVE contactNormalSidePass)
    double touched_min          # lowest and highest point of the triangle below, along up
    double touched_max
    double contact_height       # along up, of the last contact of any pass
    double overlap              # depth that remains after recovery, m
    double steep_climb          # climb on too steep triangles so far, m: see FIX_STEEP_CLIMB
    ground_contact ground


cdef struct hit_record:
    int32_t owner               # owner_kind
    int32_t sweep_pass
    int64_t id
    bint dynamic                # a dynamic body, which the game may push
    int32_t triangle
    bint has_data
    int64_t data
    vec3 position
    vec3 normal
    vec3 direction
    double length               # of the remaining motion, m
    double distance             # distance to the hit, m
    double along                # position on the axis, 0 bottom to 1 top (SWEEP 6.3)


cdef struct hit_log:
    hit_record* records
    int32_t n
    int32_t capacity


cdef struct move_stats:
    int64_t iterations
    int64_t full_updates
    int64_t partial_updates
    int64_t triangles_tested
    int64_t recoveries
    uint32_t fixes              # fix_bits that made a difference


# A place where a capsule overlaps no static triangle whose front its centre faces, other than by
# rounding. A known place saves tests for overlaps, and never changes a result.
cdef struct free_place:
    vec3 position
    vec3 half_axis
    double radius               # 0: nothing is known
    uint64_t version            # of the static layer
    uint32_t mask


# Candidates that are kept between moves. A cache never changes a result.
cdef struct candidate_cache:
    candidates near
    bint valid
    aabb bounds
    uint64_t fixed_version
    uint64_t timestamp          # of the scene whose static part it contains
    uint64_t moving_version
    uint32_t mask
    bint has_safe_region        # ``safe_region`` is valid: the region of the character's centre whose box
    vec3 half                   # of half size ``half`` needs no new candidates
    aabb safe_region
    bint open_above             # no candidate can be hit on the way straight up,
    vec3 up                     # for this up direction
    double top                  # no candidate is higher along it; huge: unknown
    # The last look, from which nearby up directions follow:
    vec3 looked_up              # its up direction
    vec3 looked_from            # a point near the candidates
    double looked_top           # height of the highest candidate above it; huge: unknown
    double looked_radius        # distance of the farthest corner from it, m
    double least_rise           # least cosine of a normal with the up direction; -2: unknown
    int32_t fixed_groups        # number of static groups
    int32_t fixed_tris
    free_place free             # the end of the last move


# A candidate cache of indices, for a character that shares scratch memory with others. It stores no
# ``free_place``, which would take a tenth of the memory of a member.
cdef struct compact_cache:
    compact_candidates near
    int32_t[4] hints
    aabb bounds
    uint64_t fixed_version
    uint64_t timestamp
    uint32_t mask


# One for each controller, or one for each thread of a crowd (see move_compact).
cdef struct move_scratch:
    candidate_cache cache
    candidate_cache* cache_override       # not NULL: replaces the cache
    bint expand_each_move               # the cache is expanded for each move
    candidates around           # for recovery and the ground probe
    hit_log* log                # receives the hits; belongs to its owner
    character* others           # near controllers
    int32_t capacity_others
    callback_answers book            # results of callbacks during this move


# MOVE 2.4
cdef struct decomposition:
    vec3 up_vector
    vec3 side_vector
    vec3 down_vector
    double step_offset
    bint is_moving_up
    bint has_side_movement


# Events of a traced move, for explanations.
cdef enum trace_kind:
    TRACE_RIDE = 0              # vector: motion by the platform
    TRACE_PASS = 1              # a pass starts; vector: its motion
    TRACE_FREE = 2              # no contact; vector: the motion
    TRACE_HIT = 3               # record: index in the hit log, -1 for the sensor
    TRACE_OVERLAP = 4           # overlap recovery; vector: the correction
    TRACE_DONE = 5              # the remaining motion is too short
    TRACE_TURNED_BACK = 6       # the response points backwards
    TRACE_OUT_OF_TURNS = 7      # iteration limit
    TRACE_TOO_STEEP_BELOW = 8   # the triangle below is not walkable
    TRACE_TOO_STEEP_ASIDE = 9   # the triangle aside is not walkable, and the contact is higher than the step
    TRACE_EXPERIMENT = 10       # the move starts again as the walk experiment; vector: its displacement


cdef struct trace_event:
    int32_t kind
    int32_t sweep_pass
    int32_t record
    vec3 position               # position of the character
    vec3 vector
    hit_record hit              # for TRACE_HIT


cdef struct trace_log:
    trace_event* events
    int32_t n
    int32_t capacity


cdef enum:
    STATUS_CACHE_MISS = 2      # no error: with cache_only; start again without it
    STATUS_TOO_FAR = 3          # no error: with a farthest position


# Surroundings of one move.
cdef struct move_world:
    const broadphase_layer* fixed
    const broadphase_layer* moving
    shared_grid* others         # NULL: does not collide with controllers
    character self              # the character as others see it
    uint32_t mask               # layers to see in this move
    bint filters                # the answers decide about collisions
    bint asks_behavior          # the answers decide about riding and sliding
    trace_log* trace            # NULL: no trace
    bint silent                 # hits are not requested
    bint cache_only                  # make no lookup; end with STATUS_CACHE_MISS instead
    double farthest             # largest component of a position, else STATUS_TOO_FAR; 0: no limit


# Bits of Behavior (pycct/runtime/enums.py).
cdef enum behavior_bit:
    CAN_RIDE = 1
    CAN_SLIDE = 2
    USER_DEFINED_RIDE = 4


# Most triangles that a move tests again at its end.
cdef enum:
    MAX_UNSEEN = 12


# All data of one move.
cdef struct move_job:
    const controller_params* p
    controller_state* s
    const move_world* world
    move_scratch* scratch
    candidate_cache* cache
    move_stats* stats
    vec3 half_axis              # from the centre to the upper sphere
    vec3 side                   # side motion of this moveCharacter, or zero
    bint first_query            # true before the first query of this move, which must look up moving actors
    vec3 half                   # half the box of the capsule, with its contact offset
    double far                  # distance of the start from the origin, plus the size, m
    double above                # a centre this far above a candidate, along up, is out of its reach
    bint standing_on_moving
    int status
    double step                 # the step offset of this moveCharacter
    double lifted               # lift of the UP pass, m
    # Data of the fixes.
    bint passing                # the move started inside one-sided triangles, coming from behind
    bint passed                 # one of its sweeps did
    bint lintel                 # a lower capsule would miss the hit of the SIDE pass
    double raised               # height that too steep triangles added to the SIDE pass, m
    bint moving_below           # a triangle of a moving body is below: its normal and top
    vec3 below_normal
    double below_max
    bint moving_aside           # a triangle of a moving body is aside
    bint round_below            # a shape without faces is below: its contact normal and top
    bint round_aside            # such a shape is aside: its contact normal
    vec3 round_below_normal
    vec3 round_aside_normal
    double round_max
    double longest              # length of the motion that forced sliding may take
    vec3 aside_normal
    bint starts_free            # the start is a free_place
    int32_t n_unseen            # number of cached triangles that the end may overlap; -1: any may
    int32_t[MAX_UNSEEN] unseen
    bint pushed_out             # overlap recovery has moved the character in this move
    bint carried                # it stood on a moving platform at the start of the move
    vec3 recovered              # motion by overlap recovery
