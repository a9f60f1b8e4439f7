# cython: language_level=3
"""Sensors without Python: the rays, cells and searches of a range of members.

A thread reads the members and the layers of their worlds, and writes rows of its own members only.
Results therefore do not depend on threads and ranges.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t

from pycct.geometry.vec cimport vec3
from pycct.queries.query_kernels cimport query_hit, query_scratch
from pycct.world.candidates cimport broadphase_layer


cdef enum seen_kind:            # as runtime.enums.Seen
    SEEN_NOTHING = 0
    SEEN_STATIC = 1
    SEEN_MOVING = 2
    SEEN_OBSTACLE = 3
    SEEN_CHARACTER = 4


cdef enum:
    SCAN_CELLS = 1024           # larger grids cast a ray for each cell


cdef enum sensor_what:
    SENSOR_FAN = 0              # rays from one point: lidar, depth grid
    SENSOR_SCAN = 1             # rays down from a grid
    SENSOR_NEIGHBOURS = 2
    SENSOR_FEET = 3


# Arrays of a sensor.
cdef enum:
    FIELD_DISTANCE = 0
    FIELD_HEIGHT
    FIELD_DEPTH
    FIELD_NORMAL
    FIELD_POSITION
    FIELD_VELOCITY
    FIELD_KIND
    FIELD_ID
    FIELD_TRIANGLE
    FIELD_DATA
    FIELD_WALKABLE
    SENSOR_FIELDS


# A contiguous array: ``n`` values of each member.
cdef struct sensor_column:
    char* data                  # NULL: not requested
    bint single                 # float32


cdef struct sensor_plan:
    int what                    # sensor_what
    int32_t n                   # rays, cells or neighbours of each member
    const double* base          # fan: (n, 3) directions along ahead, left, top; scan: (n, 2) offsets
    double height               # m, where rays begin above the feet
    double reach                # m, length of the rays, or radius of the search
    double none                 # m, value of a height, where nothing is
    bint tilts                  # the fan follows pitch
    int32_t cells_ahead         # scan: size and spacing (m) of the grid
    int32_t cells_aside
    double step_ahead
    double step_aside
    uint32_t mask
    sensor_column[SENSOR_FIELDS] columns


# A member, copied when the look begins.
cdef struct sensor_member:
    int64_t id
    int64_t proxy               # id of its own proxy actor, -1: none
    int32_t world
    int32_t company             # of the members of its group in its world
    uint32_t layer
    vec3 position
    vec3 velocity
    vec3 up
    vec3 feet
    double radius
    double height
    double yaw
    double pitch
    # Ground of the last move.
    int32_t ground_kind         # seen_kind
    int64_t ground_id
    vec3 ground_normal
    double ground_distance
    bint walkable
    int32_t ground_triangle
    int64_t ground_data


# Members of one group in one world, in the order of their ids.
cdef struct sensor_company:
    const int32_t* who          # indices of members
    int32_t n
    const broadphase_layer* layer       # their capsules; NULL: nobody needs them


# Layers of a world.
cdef struct sensor_world:
    const broadphase_layer* fixed
    const broadphase_layer* moving


cdef struct sensor_job:
    const sensor_member* members
    const sensor_company* companies
    const sensor_world* worlds
    const sensor_plan* plans
    int32_t n_plans
    query_scratch* scratch      # of each thread
    query_hit* hits             # SCAN_CELLS of each thread, NULL: no sensor needs them
    int* status                 # of each thread


# Fill the rows of members (a pool_task; the context is a sensor_job).
cdef void sensors_look(void* context, int worker, int64_t first, int64_t last) noexcept nogil
