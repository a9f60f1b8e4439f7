# cython: language_level=3
"""What a move leaves behind, for Python: hits, ground, state and costs."""
from libc.stdint cimport int64_t, uint32_t

from pycct.character.move_types cimport (
    compact_cache,
    controller_params,
    controller_state,
    ground_contact,
    hit_log,
    hit_record,
    move_scratch,
    move_stats,
)
from pycct.geometry.vec cimport vec3
from pycct.scene.scene cimport Scene


cdef class Hit:
    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object obstacle
    cdef readonly object triangle
    cdef readonly object data
    cdef hit_record r


cdef class Ground:
    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object obstacle
    cdef readonly object triangle
    cdef readonly object data
    cdef readonly bint walkable
    cdef ground_contact g


cdef class State:
    cdef readonly object standing_on
    cdef readonly object standing_on_id
    cdef readonly bint on_controller
    cdef readonly bint on_obstacle
    cdef readonly bint moving_up
    cdef readonly bint sliding
    cdef readonly double overlap
    cdef readonly double contact_point_height
    cdef readonly object ground_triangle
    cdef vec3 velocity_
    cdef vec3 displacement_
    cdef vec3 platform_delta_


cdef class MoveStats:
    cdef readonly object cache_bounds
    cdef readonly int64_t timestamp
    cdef readonly int64_t static_triangles
    cdef readonly int64_t total_triangles
    cdef readonly int64_t iterations
    cdef readonly int64_t full_updates
    cdef readonly int64_t partial_updates
    cdef readonly int64_t triangles_tested
    cdef readonly int64_t recoveries
    cdef uint32_t fixes_


# The objects that a contact names may be gone; the attributes are None then.
cdef Ground ground_of(Scene scene, const controller_params* p, const ground_contact* g)
cdef Hit hit_of(Scene scene, const hit_record* record)
cdef list hits_of(Scene scene, const hit_log* log)
cdef State state_of(Scene scene, const controller_state* s)
# Costs of a move. The cache is in one of the two others.
cdef MoveStats stats_of(const move_stats* cost, const move_scratch* scratch, const compact_cache* cache)
