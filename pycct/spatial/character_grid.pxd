# cython: language_level=3
"""Spatial hash of moving characters (capsules)."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.geometry.vec cimport aabb, vec3


# A character as others see it.
cdef struct character:
    int64_t id
    vec3 p0             # lower and upper sphere centre
    vec3 p1
    double radius
    uint32_t layer
    uint32_t mask
    uint32_t behavior   # riding and sliding of others on it
    int32_t group       # characters of different groups never collide


# What decides which one of two characters gives way.
cdef struct yielder:
    double weight       # the larger one gives way
    vec3 heading            # unit direction in which it wants to go, horizontal; zero: it stays
    bint stuck          # it hardly got on along its way in the last move


# Number of a cell along each axis.
cdef struct cell_place:
    int32_t x
    int32_t y
    int32_t z


cdef struct neighbour_slot:
    character who
    cell_place place
    int32_t cell        # index in heads, -1: free slot
    int32_t next
    int32_t previous    # -1: first of its cell


# Not locked: for one thread at a time, or for readers only.
cdef struct neighbour_grid:
    neighbour_slot* slots
    int32_t n_slots             # used and free
    int32_t capacity
    int32_t free_slot           # first free slot (linked by next), -1: none
    int32_t count               # used
    int32_t* heads              # first slot of each cell
    int32_t n_heads             # power of two
    vec3 cell_size
    vec3 largest                # largest half extents of all characters so far


cdef void grid_init(neighbour_grid* g) noexcept nogil
cdef void grid_free(neighbour_grid* g) noexcept nogil
# Returns the slot of the new character, or a negative status.
# Memory for many more characters, without spare.
cdef int grid_reserve(neighbour_grid* g, int64_t more) noexcept nogil
cdef int32_t grid_add(neighbour_grid* g, const character* who) noexcept nogil
cdef int grid_update(neighbour_grid* g, int32_t slot, const character* who) noexcept nogil
cdef void grid_remove(neighbour_grid* g, int32_t slot) noexcept nogil
# The same characters in the same slots; allocates only if ``to`` is too small.
cdef int grid_copy(neighbour_grid* to, const neighbour_grid* g) noexcept nogil
# Characters whose boxes touch ``box`` and that ``self`` can collide with, in the order of ids;
# writes at most ``room`` of them and returns their number.
cdef int32_t grid_collect(const neighbour_grid* g, aabb box, const character* self, character* out,
                          int32_t capacity) noexcept nogil
# Half of the horizontal separation of a character from all overlapping others; two of them
# separate by at most ``limit`` together (RULES 8, RULES_2 2).
cdef vec3 separation(const character* self, const character* others, int32_t n, vec3 up, double limit) noexcept nogil
# Push of a character away from another one by their weights, or ids if they are equal. The one that
# gives way gets all of it, at most ``limit``; it leaves a gap beyond the contact.
cdef vec3 yielding_push(const character* self, const yielder* me, const character* other, const yielder* them,
                        vec3 up, double limit) noexcept nogil
# Its arguments are the displacement argument of the last move and the resulting motion, without
# that of a platform.
cdef yielder yielder_of(double weight, vec3 asked, vec3 motion, vec3 up) noexcept nogil
# The box in which others can push a character that yields.
cdef aabb yielding_box(const character* self) noexcept nogil
# The separation of a character from its pushes: ``total`` is their sum, ``lengths`` the sum of
# their lengths. Where they oppose each other, the character goes back; not longer than ``limit``.
cdef vec3 yielding_sum(const yielder* me, vec3 total, double lengths, double limit) noexcept nogil
cdef bint characters_meet(const character* a, const character* b) noexcept nogil


# The grid of a scene's characters, which many threads use: behind a spin lock, held for one short
# walk. A frozen grid is an unlocked snapshot for readers only.
cdef struct shared_grid:
    neighbour_grid grid
    long lock
    uint64_t version        # counts changes; a frozen grid has the number of its source
    bint frozen


cdef int shared_reserve(shared_grid* g, int64_t more) noexcept nogil
cdef int32_t shared_add(shared_grid* g, const character* who) noexcept nogil
cdef int shared_update(shared_grid* g, int32_t slot, const character* who) noexcept nogil
cdef void shared_remove(shared_grid* g, int32_t slot) noexcept nogil
cdef int32_t shared_collect(shared_grid* g, aabb box, const character* self, character* out,
                            int32_t capacity) noexcept nogil


# Makes ``to`` a snapshot of ``g``, unless it is one already.
cdef int shared_freeze(shared_grid* to, shared_grid* g) noexcept nogil


# Owns the memory.
cdef class Neighbours:
    cdef shared_grid shared
