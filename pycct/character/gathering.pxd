# cython: language_level=3
"""Shared by the parts of a move.

The job, moving candidates, and the contact that the state keeps.
"""
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from pycct.character.move_types cimport (
    controller_params,
    controller_state,
    ground_contact,
    move_job,
    move_scratch,
    move_stats,
    move_world,
)
from pycct.geometry.aabb4 cimport aabb4_slack
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport aabb, v3, v3_dot, v3_max_abs, v3_scale, vec3
from pycct.world.candidates cimport (
    GROUP_PLANE,
    candidate_group,
    candidates,
    collider,
    triangle_data,
    wall_rule,
    world_hit,
)


# Sets up and frees the scratch memory.
cdef void scratch_init(move_scratch* s) noexcept nogil
cdef void scratch_free(move_scratch* s) noexcept nogil
# Removes the proxy of the character from the groups after ``first``.
cdef void drop_proxy(candidates* c, int32_t first, int64_t proxy) noexcept nogil
# Adds other controllers in a box to the candidates.
cdef int gather_others(move_job* m, candidates* c, aabb box) noexcept nogil
# Adds kinematic and dynamic actors, obstacles and other controllers in a box to the candidates.
cdef int gather_moving(move_job* m, candidates* c, aabb box, const wall_rule* walls) noexcept nogil


cdef inline bint has_fix(move_job* m, uint32_t bit) noexcept nogil:
    """Whether a fix is on. Callers ask where the fix makes a difference, which is recorded."""
    if not m.p.rules & bit:
        return False
    m.stats.fixes |= bit
    return True


cdef inline vec3 half_of(const controller_params* p) noexcept nogil:
    """Half the box of a resting capsule with its contact offset."""
    cdef double k = p.radius + p.contact_offset
    return v3(k + fabs(p.up.x) * 0.5 * p.height, k + fabs(p.up.y) * 0.5 * p.height, k + fabs(p.up.z) * 0.5 * p.height)


cdef inline void begin_job(move_job* m, const controller_params* p, controller_state* state, const move_world* world,
                           move_scratch* scratch, move_stats* stats) noexcept nogil:
    memset(stats, 0, sizeof(move_stats))
    m.p = p
    m.half = half_of(p)
    m.s = state
    m.far = v3_max_abs(m.s.position) + v3_max_abs(m.half)
    m.above = 0.5 * p.height + p.radius + p.contact_offset + aabb4_slack(2.0 * m.far)
    m.side = v3(0.0, 0.0, 0.0)
    m.standing_on_moving = m.passing = m.lintel = m.moving_below = m.moving_aside = m.carried = False
    m.pushed_out = m.starts_free = False
    m.n_unseen = 0
    m.round_below = m.round_aside = False
    m.status = STATUS_OK
    m.passed = 0
    m.step = p.step_offset
    m.world = world
    m.scratch = scratch
    m.stats = stats
    m.half_axis = v3_scale(p.up, 0.5 * p.height)
    m.first_query = True
    m.cache = scratch.cache_override if scratch.cache_override != NULL else &scratch.cache
    scratch.book.needs_answer = False
    m.cache.near.filter = scratch.around.filter = &scratch.book if world.filters else NULL
    if world.trace != NULL:
        world.trace.n = 0


cdef inline vec3 face_met(const candidates* c, const world_hit* hit, const candidate_group* g,
                          vec3 direction) noexcept nogil:
    """The normal of the triangle that was hit, on the side of the motion.

    Without a triangle the contact's.
    """
    cdef vec3 n
    if hit.base.tri < 0:
        return hit.base.normal
    n = c.tris[hit.base.tri].n
    return v3_scale(n, -1.0) if g.two_sided and v3_dot(n, direction) > 0.0 else n


cdef inline vec3 turned_against(vec3 face, vec3 direction) noexcept nogil:
    """A normal against the motion: only an open edge of a one-sided triangle is met from behind."""
    return v3_scale(face, -1.0) if v3_dot(face, direction) > 0.0 else face


cdef inline void set_ground(ground_contact* ground, const candidates* c, const world_hit* hit,
                            const candidate_group* g, const collider* item, vec3 face) noexcept nogil:
    """Record the ground of a character, from the candidates ``c``."""
    ground.touching = True
    ground.normal = hit.base.normal
    ground.point = hit.base.point
    ground.owner = g.owner
    ground.id = g.id
    ground.triangle = c.source[hit.base.tri] if hit.base.tri >= 0 else -1
    ground.data = 0
    ground.has_data = triangle_data(item, ground.triangle, &ground.data)
    ground.has_face = hit.base.tri >= 0 or g.kind == GROUP_PLANE
    ground.face_normal = face
    ground.distance = hit.base.distance
