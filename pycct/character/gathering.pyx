# cython: language_level=3
"""See the header."""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pycct.character.move_types cimport move_job, move_scratch
from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport aabb
from pycct.spatial.character_grid cimport character, shared_collect
from pycct.world.candidates cimport (
    OWNER_ACTOR,
    book_free,
    candidates,
    candidates_add_character,
    candidates_free,
    candidates_gather,
    candidates_init,
    candidates_set_groups,
    wall_rule,
)


cdef void scratch_init(move_scratch* s) noexcept nogil:
    memset(s, 0, sizeof(move_scratch))
    candidates_init(&s.cache.near)
    candidates_init(&s.around)


cdef void scratch_free(move_scratch* s) noexcept nogil:
    candidates_free(&s.cache.near)
    candidates_free(&s.around)
    free(s.others)
    book_free(&s.book)
    scratch_init(s)


cdef void drop_proxy(candidates* c, int32_t first, int64_t proxy) noexcept nogil:
    """The character never collides with its own proxy."""
    cdef int32_t i, n = first
    for i in range(first, c.n_groups):
        if c.groups[i].owner != OWNER_ACTOR or c.groups[i].id != proxy:
            c.groups[n] = c.groups[i]
            n += 1
    candidates_set_groups(c, n)


cdef int gather_others(move_job* m, candidates* c, aabb box) noexcept nogil:
    """Other controllers in the box, in the order of their ids (RULES 8)."""
    cdef move_scratch* k = m.scratch
    cdef int32_t n, i
    cdef void* p
    cdef int status
    if m.world.others == NULL:
        return STATUS_OK
    n = shared_collect(m.world.others, box, &m.world.self, k.others, k.capacity_others)
    while n > k.capacity_others:
        # Spare capacity: others may arrive while the lock is open.
        p = realloc(k.others, <size_t>(2 * <int64_t>n) * sizeof(character))
        if p == NULL:
            return STATUS_NO_MEMORY
        k.others = <character*>p
        k.capacity_others = 2 * n
        n = shared_collect(m.world.others, box, &m.world.self, k.others, k.capacity_others)
    for i in range(n):
        status = candidates_add_character(c, &k.others[i], i)
        if status != STATUS_OK:
            return status
    return STATUS_OK


cdef int gather_moving(move_job* m, candidates* c, aabb box, const wall_rule* walls) noexcept nogil:
    """Kinematic and dynamic actors, obstacles, other controllers."""
    cdef int32_t first = c.n_groups
    cdef int status = candidates_gather(c, m.world.moving, 1, box, m.world.mask, walls)
    if status != STATUS_OK:
        return status
    if m.p.proxy >= 0:
        drop_proxy(c, first, m.p.proxy)
    return gather_others(m, c, box)
