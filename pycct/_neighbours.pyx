# cython: language_level=3
"""Characters among characters. See the header."""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cimport cython

from pycct._atomic cimport spin_lock, spin_unlock
from pycct._closest cimport segment_segment
from pycct._types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct._vec cimport (
    box_grow,
    box_of,
    box_overlap,
    f_min,
    v3,
    v3_across,
    v3_add,
    v3_is_zero,
    v3_madd,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_neg,
    v3_reject,
    v3_scale,
    v3_sub,
    v3_unit,
)

# Cells are no smaller than this, metres.
cdef double SMALLEST_CELL = 2.0
# A query over more cells than this looks at every character instead.
cdef double MANY_CELLS = 4096.0


cdef void grid_init(neighbour_grid* g) noexcept nogil:
    g.slots = NULL
    g.heads = NULL
    g.n_slots = g.room = g.count = g.n_heads = 0
    g.free_slot = -1
    g.cell_size = SMALLEST_CELL
    g.largest = 0.0


cdef void grid_free(neighbour_grid* g) noexcept nogil:
    free(g.slots)
    free(g.heads)
    grid_init(g)


cdef inline int64_t _floor_cell(double x, double size) noexcept nogil:
    cdef double q = x / size
    cdef int64_t i
    # Far out all characters share the outermost cells; the box test decides.
    if q > 1e9:
        q = 1e9
    elif q < -1e9:
        q = -1e9
    i = <int64_t>q
    return i - 1 if q < <double>i else i


cdef inline int32_t _bucket(int64_t x, int64_t y, int64_t z, int32_t group, int32_t n) noexcept nogil:
    """Each group has cells of its own: thousands may stand in one place."""
    cdef uint64_t h = <uint64_t>x * 73856093u ^ <uint64_t>group * 0x9E3779B97F4A7C15u
    h ^= <uint64_t>y * 19349663u
    h ^= <uint64_t>z * 83492791u
    h ^= h >> 17
    return <int32_t>(h & <uint64_t>(n - 1))


cdef inline aabb _bounds(const character* c) noexcept nogil:
    return box_grow(box_of(v3_min(c.p0, c.p1), v3_max(c.p0, c.p1)), c.radius)


cdef inline int32_t _bucket_of(const neighbour_grid* g, const character* c) noexcept nogil:
    cdef vec3 p = v3_scale(v3_add(c.p0, c.p1), 0.5)
    return _bucket(_floor_cell(p.x, g.cell_size), _floor_cell(p.y, g.cell_size), _floor_cell(p.z, g.cell_size),
                   c.group, g.n_heads)


cdef inline void _link(neighbour_grid* g, int32_t slot) noexcept nogil:
    cdef int32_t cell = _bucket_of(g, &g.slots[slot].who)
    cdef int32_t first = g.heads[cell]
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


cdef inline double _half_extent(const character* c) noexcept nogil:
    return 0.5 * v3_max_abs(v3_sub(c.p1, c.p0)) + c.radius


cdef void _fit(neighbour_grid* g, const character* who) noexcept nogil:
    """Make the cells large enough for a character."""
    cdef double h = _half_extent(who)
    if h > g.largest:
        g.largest = h
        if g.cell_size < 2.0 * h:
            g.cell_size = 4.0 * h
            _relink(g)


cdef int32_t grid_add(neighbour_grid* g, const character* who) noexcept nogil:
    cdef int32_t slot, room
    cdef void* p
    if g.free_slot < 0:
        if g.n_slots == g.room:
            room = 2 * g.room + 64
            p = realloc(g.slots, <size_t>room * sizeof(neighbour_slot))
            if p == NULL:
                return STATUS_NO_MEMORY
            g.slots = <neighbour_slot*>p
            g.room = room
        if g.n_slots + 1 > g.n_heads:
            room = 4 * g.n_heads if g.n_heads > 0 else 64
            p = malloc(<size_t>room * sizeof(int32_t))
            if p == NULL:
                return STATUS_NO_MEMORY
            free(g.heads)
            g.heads = <int32_t*>p
            g.n_heads = room
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
    if _bucket_of(g, who) == g.slots[slot].cell:
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
    if to.room < g.n_slots:
        p = realloc(to.slots, <size_t>g.room * sizeof(neighbour_slot))
        if p == NULL:
            return STATUS_NO_MEMORY
        to.slots = <neighbour_slot*>p
        to.room = g.room
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
    """Each one's layer meets the other's mask; same group; not the same one."""
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
            # One over the other: a fixed direction, the lower id one way, the higher the other.
            away = v3_across(up)
            if self.id > c.id:
                away = v3_neg(away)
        share = f_min(0.5 * overlap, limit)
        total = v3_madd(total, away, share)
    return total


cdef inline int32_t _take(const character* c, aabb box, const character* self, character* out, int32_t found,
                          int32_t room) noexcept nogil:
    cdef int32_t i
    if not characters_meet(c, self) or not box_overlap(_bounds(c), box):
        return found
    if found < room:
        # Kept in the order of ids: few at a time.
        i = found
        while i > 0 and out[i - 1].id > c.id:
            out[i] = out[i - 1]
            i -= 1
        out[i] = c[0]
    return found + 1


cdef int32_t grid_collect(const neighbour_grid* g, aabb box, const character* self, character* out,
                          int32_t room) noexcept nogil:
    cdef int32_t found = 0, slot, cell
    cdef int64_t x, y, z, x0, x1, y0, y1, z0, z1
    cdef aabb reach
    cdef double cells
    if g.count == 0:
        return 0
    reach = box_grow(box, g.largest)
    x0 = _floor_cell(reach.lo.x, g.cell_size)
    x1 = _floor_cell(reach.hi.x, g.cell_size)
    y0 = _floor_cell(reach.lo.y, g.cell_size)
    y1 = _floor_cell(reach.hi.y, g.cell_size)
    z0 = _floor_cell(reach.lo.z, g.cell_size)
    z1 = _floor_cell(reach.hi.z, g.cell_size)
    cells = (x1 - x0 + 1.0) * (y1 - y0 + 1.0) * (z1 - z0 + 1.0)
    if cells > MANY_CELLS or cells > 2.0 * g.n_slots + 64.0:
        for slot in range(g.n_slots):
            if g.slots[slot].cell >= 0:
                found = _take(&g.slots[slot].who, box, self, out, found, room)
        return found
    for z in range(z0, z1 + 1):
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                cell = _bucket(x, y, z, self.group, g.n_heads)
                slot = g.heads[cell]
                while slot >= 0:
                    # Two cells may share a bucket: take each character in its own cell only.
                    if _in_cell(g, &g.slots[slot].who, x, y, z):
                        found = _take(&g.slots[slot].who, box, self, out, found, room)
                    slot = g.slots[slot].next
    return found


cdef inline bint _in_cell(const neighbour_grid* g, const character* c, int64_t x, int64_t y, int64_t z) noexcept nogil:
    cdef vec3 p = v3_scale(v3_add(c.p0, c.p1), 0.5)
    return (_floor_cell(p.x, g.cell_size) == x and _floor_cell(p.y, g.cell_size) == y
            and _floor_cell(p.z, g.cell_size) == z)


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
                            int32_t room) noexcept nogil:
    cdef int32_t r
    if g.frozen:
        return grid_collect(&g.grid, box, self, out, room)
    spin_lock(&g.lock)
    r = grid_collect(&g.grid, box, self, out, room)
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
