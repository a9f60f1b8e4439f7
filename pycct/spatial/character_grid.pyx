# cython: language_level=3
"""Spatial hash of characters. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cimport cython

from pycct.runtime.atomic cimport spin_lock, spin_unlock
from pycct.geometry.closest cimport segment_segment
from pycct.runtime.growth cimport one_more
from pycct.runtime.prefetch cimport prefetch
from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport (
    box_grow,
    box_of,
    box_overlap,
    f_min,
    v3,
    v3_abs,
    v3_across,
    v3_add,
    v3_cross,
    v3_dot,
    v3_is_zero,
    v3_len,
    v3_len2,
    v3_madd,
    v3_max,
    v3_min,
    v3_neg,
    v3_reject,
    v3_scale,
    v3_sub,
    v3_unit,
)

# Smallest size of a cell, metres.
cdef double SMALLEST_CELL = 2.0
# Way that a character gives free beyond the contact, as a share of the smaller radius.
cdef double ROOM = 0.3
# A character is ahead of another one if the cosines of both ways to it differ by more.
cdef double AHEAD = 0.3
# A character is in the way of another one that walks towards it within this cosine.
cdef double IN_THE_WAY = 0.5
# A character that got on by less than this share of the way it wanted is stuck.
cdef double STUCK = 0.25
# A horizontal part of a displacement below this share of it is rounding.
cdef double UPRIGHT2 = 1e-12
# A query over more cells tests every character instead.
cdef double MANY_CELLS = 4096.0
# Number of cells of one prefetch.
cdef enum:
    AT_ONCE = 32


cdef void grid_init(neighbour_grid* g) noexcept nogil:
    g.slots = NULL
    g.heads = NULL
    g.n_slots = g.capacity = g.count = g.n_heads = 0
    g.free_slot = -1
    g.cell_size = v3(SMALLEST_CELL, SMALLEST_CELL, SMALLEST_CELL)
    g.largest = v3(0.0, 0.0, 0.0)


cdef void grid_free(neighbour_grid* g) noexcept nogil:
    free(g.slots)
    free(g.heads)
    grid_init(g)


cdef inline int32_t _floor_cell(double x, double size) noexcept nogil:
    cdef double q = x / size
    cdef int32_t i
    # Far from the origin all characters share the outermost cells; the box test decides.
    if q > 1e9:
        q = 1e9
    elif q < -1e9:
        q = -1e9
    i = <int32_t>q
    return i - 1 if q < <double>i else i


cdef inline cell_place _place_of(const neighbour_grid* g, vec3 p) noexcept nogil:
    cdef cell_place c
    c.x = _floor_cell(p.x, g.cell_size.x)
    c.y = _floor_cell(p.y, g.cell_size.y)
    c.z = _floor_cell(p.z, g.cell_size.z)
    return c


cdef inline bint _same_place(cell_place a, cell_place b) noexcept nogil:
    return a.x == b.x and a.y == b.y and a.z == b.z


cdef inline int32_t _bucket(cell_place c, int32_t group, int32_t n) noexcept nogil:
    """Each group has its own cells, because thousands may stand in one place."""
    cdef uint64_t h = <uint64_t>group * 0x9E3779B97F4A7C15u
    h ^= <uint64_t>c.x * 73856093u
    h ^= <uint64_t>c.y * 19349663u
    h ^= <uint64_t>c.z * 83492791u
    h ^= h >> 17
    return <int32_t>(h & <uint64_t>(n - 1))


cdef inline aabb _bounds(const character* c) noexcept nogil:
    return box_grow(box_of(v3_min(c.p0, c.p1), v3_max(c.p0, c.p1)), c.radius)


cdef inline cell_place _cell_of(const neighbour_grid* g, const character* c) noexcept nogil:
    return _place_of(g, v3_scale(v3_add(c.p0, c.p1), 0.5))


cdef inline void _link(neighbour_grid* g, int32_t slot) noexcept nogil:
    cdef cell_place place = _cell_of(g, &g.slots[slot].who)
    cdef int32_t cell = _bucket(place, g.slots[slot].who.group, g.n_heads)
    cdef int32_t first = g.heads[cell]
    g.slots[slot].place = place
    g.slots[slot].cell = cell
    g.slots[slot].next = first
    g.slots[slot].previous = -1
    if first >= 0:
        g.slots[first].previous = slot
    g.heads[cell] = slot


cdef inline void _unlink(neighbour_grid* g, int32_t slot) noexcept nogil:
    cdef int32_t before = g.slots[slot].previous
    cdef int32_t after = g.slots[slot].next
    if before >= 0:
        g.slots[before].next = after
    else:
        g.heads[g.slots[slot].cell] = after
    if after >= 0:
        g.slots[after].previous = before


cdef void _relink(neighbour_grid* g) noexcept nogil:
    cdef int32_t i
    for i in range(g.n_heads):
        g.heads[i] = -1
    for i in range(g.n_slots):
        if g.slots[i].cell >= 0:
            _link(g, i)


cdef inline bint _fit_axis(double half, double* size, double* largest) noexcept nogil:
    """Make cells large enough along one axis; True if they have changed."""
    if half > largest[0]:
        largest[0] = half
        if size[0] < 3.0 * half:
            size[0] = 4.0 * half
            return True
    return False


cdef void _fit(neighbour_grid* g, const character* who) noexcept nogil:
    """Make the cells large enough for a character."""
    cdef vec3 half = v3_scale(v3_abs(v3_sub(who.p1, who.p0)), 0.5)
    cdef bint x = _fit_axis(half.x + who.radius, &g.cell_size.x, &g.largest.x)
    cdef bint y = _fit_axis(half.y + who.radius, &g.cell_size.y, &g.largest.y)
    cdef bint z = _fit_axis(half.z + who.radius, &g.cell_size.z, &g.largest.z)
    if x or y or z:
        _relink(g)


cdef int grid_reserve(neighbour_grid* g, int64_t more) noexcept nogil:
    cdef void* p
    # Fewer ones grow the array by doubling.
    if more <= g.capacity or g.count + more >= 2**30:
        return STATUS_OK
    p = realloc(g.slots, <size_t>(g.n_slots + more) * sizeof(neighbour_slot))
    if p == NULL:
        return STATUS_NO_MEMORY
    g.slots = <neighbour_slot*>p
    g.capacity = g.n_slots + <int32_t>more
    return STATUS_OK


cdef int32_t grid_add(neighbour_grid* g, const character* who) noexcept nogil:
    cdef int32_t slot, capacity
    cdef void* p
    if g.free_slot < 0:
        p = one_more(g.slots, sizeof(neighbour_slot), g.n_slots, &g.capacity, 64)
        if p == NULL:
            return STATUS_NO_MEMORY
        g.slots = <neighbour_slot*>p
        if g.n_slots + 1 > g.n_heads:
            capacity = 4 * g.n_heads if g.n_heads > 0 else 64
            p = malloc(<size_t>capacity * sizeof(int32_t))
            if p == NULL:
                return STATUS_NO_MEMORY
            free(g.heads)
            g.heads = <int32_t*>p
            g.n_heads = capacity
            _relink(g)
        slot = g.n_slots
        g.n_slots += 1
    else:
        slot = g.free_slot
        g.free_slot = g.slots[slot].next
    g.slots[slot].who = who[0]
    g.slots[slot].cell = -1
    _fit(g, who)
    _link(g, slot)
    g.count += 1
    return slot


cdef int grid_update(neighbour_grid* g, int32_t slot, const character* who) noexcept nogil:
    _fit(g, who)
    if who.group == g.slots[slot].who.group and _same_place(_cell_of(g, who), g.slots[slot].place):
        g.slots[slot].who = who[0]
        return STATUS_OK
    _unlink(g, slot)
    g.slots[slot].who = who[0]
    _link(g, slot)
    return STATUS_OK


cdef void grid_remove(neighbour_grid* g, int32_t slot) noexcept nogil:
    _unlink(g, slot)
    g.slots[slot].cell = -1
    g.slots[slot].next = g.free_slot
    g.free_slot = slot
    g.count -= 1


cdef int grid_copy(neighbour_grid* to, const neighbour_grid* g) noexcept nogil:
    cdef void* p
    if to.capacity < g.n_slots:
        # Without spare capacity: the copy writes all slots anyway.
        p = realloc(to.slots, <size_t>g.n_slots * sizeof(neighbour_slot))
        if p == NULL:
            return STATUS_NO_MEMORY
        to.slots = <neighbour_slot*>p
        to.capacity = g.n_slots
    if to.n_heads != g.n_heads:
        p = malloc(<size_t>g.n_heads * sizeof(int32_t)) if g.n_heads > 0 else NULL
        if p == NULL and g.n_heads > 0:
            return STATUS_NO_MEMORY
        free(to.heads)
        to.heads = <int32_t*>p
        to.n_heads = g.n_heads
    if g.n_slots > 0:
        memcpy(to.slots, g.slots, <size_t>g.n_slots * sizeof(neighbour_slot))
        memcpy(to.heads, g.heads, <size_t>g.n_heads * sizeof(int32_t))
    to.n_slots = g.n_slots
    to.free_slot = g.free_slot
    to.count = g.count
    to.cell_size = g.cell_size
    to.largest = g.largest
    return STATUS_OK


cdef bint characters_meet(const character* a, const character* b) noexcept nogil:
    """Layers share a bit with the other's mask, groups are equal, and ids differ."""
    return a.id != b.id and a.group == b.group and (a.layer & b.mask) != 0 and (b.layer & a.mask) != 0


cdef vec3 separation(const character* self, const character* others, int32_t n, vec3 up, double limit) noexcept nogil:
    cdef vec3 total = v3(0.0, 0.0, 0.0), away
    cdef double overlap, distance, share
    cdef const character* c
    cdef int32_t i
    for i in range(n):
        c = &others[i]
        overlap = self.radius + c.radius
        distance = segment_segment(self.p0, self.p1, c.p0, c.p1).dist2
        if distance >= overlap * overlap:
            continue
        overlap -= sqrt(distance)
        away = v3_unit(v3_reject(v3_sub(v3_add(self.p0, self.p1), v3_add(c.p0, c.p1)), up))
        if v3_is_zero(away):
            # One above the other: a fixed direction, the lower id one way, the higher the other.
            away = v3_across(up)
            if self.id > c.id:
                away = v3_neg(away)
        share = 0.5 * f_min(overlap, limit)
        total = v3_madd(total, away, share)
    return total


cdef yielder yielder_of(double weight, vec3 asked, vec3 motion, vec3 up) noexcept nogil:
    cdef yielder r
    cdef vec3 heading = v3_reject(asked, up)
    r.weight = weight
    r.heading = v3(0.0, 0.0, 0.0)
    r.stuck = False
    if v3_len2(heading) > UPRIGHT2 * v3_len2(asked):
        r.heading = v3_unit(heading)
        r.stuck = v3_dot(r.heading, motion) < STUCK * v3_dot(r.heading, heading)
    return r


cdef aabb yielding_box(const character* self) noexcept nogil:
    return box_grow(_bounds(self), ROOM * self.radius)


cdef vec3 yielding_sum(const yielder* me, vec3 total, double lengths, double limit) noexcept nogil:
    cdef double size
    cdef vec3 push = v3_madd(total, me.heading, v3_len(total) - lengths)
    size = v3_len(push)
    return v3_scale(push, limit / size) if size > limit else push


cdef vec3 yielding_push(const character* self, const yielder* me, const character* other, const yielder* them,
                        vec3 up, double limit) noexcept nogil:
    cdef double touch = self.radius + other.radius
    cdef double reach = touch + ROOM * f_min(self.radius, other.radius)
    cdef double distance2, missing, ahead, facing
    cdef vec3 apart, away, side
    distance2 = segment_segment(self.p0, self.p1, other.p0, other.p1).dist2
    if distance2 >= reach * reach:
        return v3(0.0, 0.0, 0.0)
    apart = v3_reject(v3_sub(v3_add(self.p0, self.p1), v3_add(other.p0, other.p1)), up)
    # Characters that stand on one another need no room aside. ``apart`` is twice as long.
    missing = (reach if v3_len2(apart) >= 2.0 * distance2 else touch) - sqrt(distance2)
    if missing <= 0.0:
        return v3(0.0, 0.0, 0.0)
    away = v3_unit(apart)
    if v3_is_zero(away):
        away = v3_across(up)
        if self.id > other.id:
            away = v3_neg(away)
    # Only of two that walk, one can be ahead of the other.
    ahead = 0.0
    if not (v3_is_zero(me.heading) or v3_is_zero(them.heading)):
        ahead = -(v3_dot(me.heading, away) + v3_dot(them.heading, away))
    if ahead < -AHEAD or (ahead <= AHEAD and (me.weight < them.weight or (
            me.weight == them.weight and self.id < other.id))):
        return v3(0.0, 0.0, 0.0)
    facing = v3_dot(them.heading, away)
    if facing > IN_THE_WAY and v3_dot(me.heading, them.heading) <= 0.0:
        # Back along the way of the other one, it would stay in front of it: it steps aside.
        away = v3_unit(v3_madd(away, them.heading, -facing))
        if v3_is_zero(away):
            away = v3_cross(up, them.heading)
    elif them.stuck and ahead > AHEAD:
        # Straight back, a queue would form behind one that does not get on: it goes around.
        side = v3_unit(v3_madd(away, me.heading, -v3_dot(me.heading, away)))
        if v3_is_zero(side):
            side = v3_cross(up, me.heading)
        away = v3_add(away, side)
    return v3_scale(away, f_min(missing, limit))


cdef inline int32_t _take(const character* c, aabb box, const character* self, character* out, int32_t found,
                          int32_t capacity) noexcept nogil:
    cdef int32_t i
    if not characters_meet(c, self) or not box_overlap(_bounds(c), box):
        return found
    if found < capacity:
        # Kept in the order of ids: few at a time.
        i = found
        while i > 0 and out[i - 1].id > c.id:
            out[i] = out[i - 1]
            i -= 1
        out[i] = c[0]
    return found + 1


cdef inline int32_t _take_cell(const neighbour_grid* g, int32_t slot, cell_place c, aabb box, const character* self,
                               character* out, int32_t found, int32_t capacity) noexcept nogil:
    while slot >= 0:
        # Two cells may share a bucket: take each character in its own cell only.
        if _same_place(g.slots[slot].place, c):
            found = _take(&g.slots[slot].who, box, self, out, found, capacity)
        slot = g.slots[slot].next
    return found


cdef int32_t grid_collect(const neighbour_grid* g, aabb box, const character* self, character* out,
                          int32_t capacity) noexcept nogil:
    cdef int32_t found = 0, slot, n = 0, k
    cdef cell_place c, lo, hi
    cdef cell_place[AT_ONCE] places
    cdef int32_t[AT_ONCE] firsts
    cdef double cells
    if g.count == 0:
        return 0
    lo = _place_of(g, v3_sub(box.lo, g.largest))
    hi = _place_of(g, v3_add(box.hi, g.largest))
    cells = (<double>hi.x - lo.x + 1.0) * (<double>hi.y - lo.y + 1.0) * (<double>hi.z - lo.z + 1.0)
    if cells > MANY_CELLS or cells > 2.0 * g.n_slots + 64.0:
        for slot in range(g.n_slots):
            if g.slots[slot].cell >= 0:
                found = _take(&g.slots[slot].who, box, self, out, found, capacity)
        return found
    for c.z in range(lo.z, hi.z + 1):
        for c.y in range(lo.y, hi.y + 1):
            for c.x in range(lo.x, hi.x + 1):
                slot = g.heads[_bucket(c, self.group, g.n_heads)]
                if slot < 0:
                    continue
                # All are fetched before the first is waited for.
                prefetch(&g.slots[slot], sizeof(neighbour_slot))
                places[n] = c
                firsts[n] = slot
                n += 1
                if n == AT_ONCE:
                    for k in range(n):
                        found = _take_cell(g, firsts[k], places[k], box, self, out, found, capacity)
                    n = 0
    for k in range(n):
        found = _take_cell(g, firsts[k], places[k], box, self, out, found, capacity)
    return found


cdef int shared_reserve(shared_grid* g, int64_t more) noexcept nogil:
    cdef int r
    spin_lock(&g.lock)
    r = grid_reserve(&g.grid, more)
    spin_unlock(&g.lock)
    return r


cdef int32_t shared_add(shared_grid* g, const character* who) noexcept nogil:
    cdef int32_t r
    spin_lock(&g.lock)
    g.version += 1
    r = grid_add(&g.grid, who)
    spin_unlock(&g.lock)
    return r


cdef int shared_update(shared_grid* g, int32_t slot, const character* who) noexcept nogil:
    cdef int r
    spin_lock(&g.lock)
    g.version += 1
    r = grid_update(&g.grid, slot, who)
    spin_unlock(&g.lock)
    return r


cdef void shared_remove(shared_grid* g, int32_t slot) noexcept nogil:
    spin_lock(&g.lock)
    g.version += 1
    grid_remove(&g.grid, slot)
    spin_unlock(&g.lock)


cdef int32_t shared_collect(shared_grid* g, aabb box, const character* self, character* out,
                            int32_t capacity) noexcept nogil:
    cdef int32_t r
    if g.frozen:
        return grid_collect(&g.grid, box, self, out, capacity)
    spin_lock(&g.lock)
    r = grid_collect(&g.grid, box, self, out, capacity)
    spin_unlock(&g.lock)
    return r


cdef int shared_freeze(shared_grid* to, shared_grid* g) noexcept nogil:
    cdef int status = STATUS_OK
    spin_lock(&g.lock)
    if not to.frozen or to.version != g.version:
        to.frozen = True
        to.version = g.version
        status = grid_copy(&to.grid, &g.grid)
        if status != STATUS_OK:
            to.frozen = False
    spin_unlock(&g.lock)
    return status


@cython.final
cdef class Neighbours:
    def __cinit__(self):
        grid_init(&self.shared.grid)
        self.shared.lock = 0
        self.shared.version = 0
        self.shared.frozen = False

    def __dealloc__(self):
        grid_free(&self.shared.grid)
