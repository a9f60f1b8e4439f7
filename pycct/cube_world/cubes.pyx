# cython: language_level=3
"""A world of unit cubes and free boxes. See the header."""
import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from pycct.args.values cimport as_quat, as_vec3, from_quat, from_vec3, short
from pycct.geometry.vec cimport (
    aabb,
    box_of,
    box_overlap,
    box_union,
    f_clamp,
    f_max,
    mat3,
    q_is_identity,
    q_matrix,
    v3,
    v3_abs,
    v3_add,
    v3_dot,
    v3_max,
    v3_min,
    v3_sub,
    vec3,
)

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static __inline int pycct_lowest_bit(unsigned long long b) {
        unsigned long i; _BitScanForward64(&i, b); return (int)i; }
    #define pycct_bit_count(b) ((int)__popcnt64(b))
    #else
    static inline int pycct_lowest_bit(unsigned long long b) { return __builtin_ctzll(b); }
    static inline int pycct_bit_count(unsigned long long b) { return __builtin_popcountll(b); }
    #endif
    """
    int pycct_lowest_bit(uint64_t b) noexcept nogil
    int pycct_bit_count(uint64_t b) noexcept nogil

# Bricks run from -BRICK_LIMIT to BRICK_LIMIT - 1: 18 bits an axis.
cdef int64_t BRICK_LIMIT = CELL_LIMIT // 4
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15ULL

# The cells of a brick with a coordinate in first..last, for each axis.
cdef uint64_t[4][4] X_BITS, Y_BITS, Z_BITS


cdef void _fill_masks() noexcept:
    cdef int first, last, x, y, z
    cdef uint64_t bit
    memset(X_BITS, 0, sizeof(X_BITS))
    memset(Y_BITS, 0, sizeof(Y_BITS))
    memset(Z_BITS, 0, sizeof(Z_BITS))
    for first in range(4):
        for last in range(first, 4):
            for x in range(4):
                for y in range(4):
                    for z in range(4):
                        bit = <uint64_t>1 << (x << 4 | y << 2 | z)
                        if first <= x <= last:
                            X_BITS[first][last] |= bit
                        if first <= y <= last:
                            Y_BITS[first][last] |= bit
                        if first <= z <= last:
                            Z_BITS[first][last] |= bit


_fill_masks()


cdef inline uint64_t _brick_key(int64_t bx, int64_t by, int64_t bz) noexcept nogil:
    return (<uint64_t>(bx + BRICK_LIMIT) << 36 | <uint64_t>(by + BRICK_LIMIT) << 18 | <uint64_t>(bz + BRICK_LIMIT)) + 1


cdef inline brick* _find_brick(const cube_grid* g, uint64_t key) noexcept nogil:
    """Return the slot of the key, or its future empty slot. The table is never full."""
    cdef uint64_t i = (key * GOLDEN) >> g.shift
    cdef uint64_t last = <uint64_t>g.n_slots - 1
    while g.bricks[i].key != 0 and g.bricks[i].key != key:
        i = (i + 1) & last
    return &g.bricks[i]


cdef bint grid_solid(const cube_grid* g, int64_t x, int64_t y, int64_t z) noexcept nogil:
    cdef int bit
    if (g.n_slots == 0 or x < -CELL_LIMIT or x >= CELL_LIMIT or y < -CELL_LIMIT or y >= CELL_LIMIT
            or z < -CELL_LIMIT or z >= CELL_LIMIT):
        return False
    bit = <int>((x & 3) << 4 | (y & 3) << 2 | (z & 3))
    return (_find_brick(g, _brick_key(x >> 2, y >> 2, z >> 2)).bits >> bit) & 1


cdef inline void _visit_brick(uint64_t bits, int64_t bx, int64_t by, int64_t bz, visitor visit,
                              void* context) noexcept nogil:
    cdef candidate c
    cdef int bit
    cdef int64_t x, y, z
    c.box = NULL
    while bits:
        bit = pycct_lowest_bit(bits)
        bits &= bits - 1
        x = (bx << 2) + (bit >> 4)
        y = (by << 2) + (bit >> 2 & 3)
        z = (bz << 2) + (bit & 3)
        c.id = cell_id(x, y, z)
        c.lo = v3(<double>x, <double>y, <double>z)
        c.hi = v3(<double>(x + 1), <double>(y + 1), <double>(z + 1))
        visit(context, &c)


cdef inline int64_t _first_cell(double lo) noexcept nogil:
    """Return the first cell that reaches lo; cell i is [i, i + 1]."""
    cdef int64_t i
    lo = f_clamp(lo, -CELL_LIMIT, CELL_LIMIT)
    i = floor_int(lo)
    # The cell below touches if lo is exactly on the border.
    if <double>i == lo and i > -CELL_LIMIT:
        i -= 1
    return i


cdef inline int64_t _last_cell(double hi) noexcept nogil:
    return floor_int(f_clamp(hi, -CELL_LIMIT - 1, CELL_LIMIT - 1))


cdef inline uint64_t _span_bits(int64_t b, int64_t c0, int64_t c1, uint64_t[4][4] bits) noexcept nogil:
    """Return the cells of brick b on one axis within c0..c1."""
    cdef int64_t first = c0 - (b << 2)
    cdef int64_t last = c1 - (b << 2)
    return bits[0 if first < 0 else first][3 if last > 3 else last]


cdef void _visit_cubes(const cube_grid* g, aabb span, visitor visit, void* context) noexcept nogil:
    cdef int64_t x0 = _first_cell(span.lo.x), x1 = _last_cell(span.hi.x)
    cdef int64_t y0 = _first_cell(span.lo.y), y1 = _last_cell(span.hi.y)
    cdef int64_t z0 = _first_cell(span.lo.z), z1 = _last_cell(span.hi.z)
    cdef int64_t bx, by, bz, i
    cdef uint64_t key, mask_x, mask_xy, bits
    if x1 < x0 or y1 < y0 or z1 < z0 or g.n_slots == 0:
        return
    # 18 bits an axis: the product fits.
    if ((x1 >> 2) - (x0 >> 2) + 1) * ((y1 >> 2) - (y0 >> 2) + 1) * ((z1 >> 2) - (z0 >> 2) + 1) > g.n_slots:
        for i in range(g.n_slots):
            bits = g.bricks[i].bits
            if bits == 0:
                continue
            key = g.bricks[i].key - 1
            bx = <int64_t>(key >> 36) - BRICK_LIMIT
            by = <int64_t>(key >> 18 & 0x3FFFF) - BRICK_LIMIT
            bz = <int64_t>(key & 0x3FFFF) - BRICK_LIMIT
            if (bx < x0 >> 2 or bx > x1 >> 2 or by < y0 >> 2 or by > y1 >> 2 or bz < z0 >> 2 or bz > z1 >> 2):
                continue
            bits &= _span_bits(bx, x0, x1, X_BITS) & _span_bits(by, y0, y1, Y_BITS) & _span_bits(bz, z0, z1, Z_BITS)
            _visit_brick(bits, bx, by, bz, visit, context)
        return
    for bx in range(x0 >> 2, (x1 >> 2) + 1):
        mask_x = _span_bits(bx, x0, x1, X_BITS)
        for by in range(y0 >> 2, (y1 >> 2) + 1):
            mask_xy = mask_x & _span_bits(by, y0, y1, Y_BITS)
            for bz in range(z0 >> 2, (z1 >> 2) + 1):
                bits = _find_brick(g, _brick_key(bx, by, bz)).bits
                bits &= mask_xy & _span_bits(bz, z0, z1, Z_BITS)
                _visit_brick(bits, bx, by, bz, visit, context)


cdef inline uint64_t _mix(uint64_t x) noexcept nogil:
    """Return a bijective mix of all bits (splitmix64's finisher)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef inline int64_t _box_bucket(const cube_grid* g, int32_t level, int64_t x, int64_t y, int64_t z) noexcept nogil:
    cdef uint64_t h = _mix(<uint64_t>x * GOLDEN + <uint64_t>level)
    h = _mix(h ^ <uint64_t>y)
    h = _mix(h ^ <uint64_t>z)
    return <int64_t>(h & <uint64_t>(g.n_buckets - 1))


cdef inline int64_t _level_cell(double x, int32_t level) noexcept nogil:
    # Division by a power of two is exact.
    return floor_int(x / <double>(<int64_t>1 << level))


cdef inline int64_t _bucket_of(const cube_grid* g, const free_box* b) noexcept nogil:
    return _box_bucket(g, b.level, _level_cell(b.centre.x, b.level), _level_cell(b.centre.y, b.level),
                       _level_cell(b.centre.z, b.level))


cdef inline void _visit_box(const free_box* b, aabb span, visitor visit, void* context) noexcept nogil:
    cdef candidate c
    if box_overlap(b.bounds, span):
        c.id = b.id
        c.lo = b.bounds.lo
        c.hi = b.bounds.hi
        c.box = b
        visit(context, &c)


cdef void _visit_boxes(const cube_grid* g, aabb span, visitor visit, void* context) noexcept nogil:
    cdef int32_t level, i
    cdef int64_t x, y, z, x0, x1, y0, y1, z0, z1
    cdef double reach
    cdef const free_box* b
    for level in range(BOX_LEVELS):
        if g.level_count[level] == 0:
            continue
        # A box of this level is within half a cell of its centre.
        reach = 0.5 * <double>(<int64_t>1 << level)
        x0 = _level_cell(span.lo.x - reach, level)
        x1 = _level_cell(span.hi.x + reach, level)
        y0 = _level_cell(span.lo.y - reach, level)
        y1 = _level_cell(span.hi.y + reach, level)
        z0 = _level_cell(span.lo.z - reach, level)
        z1 = _level_cell(span.hi.z + reach, level)
        if (x1 - x0 + 1) * (y1 - y0 + 1) * (z1 - z0 + 1) > g.n_boxes:
            for i in range(g.n_boxes):
                if g.boxes[i].level == level:
                    _visit_box(&g.boxes[i], span, visit, context)
            continue
        for x in range(x0, x1 + 1):
            for y in range(y0, y1 + 1):
                for z in range(z0, z1 + 1):
                    i = g.buckets[_box_bucket(g, level, x, y, z)]
                    while i >= 0:
                        b = &g.boxes[i]
                        i = b.next
                        # Other cells and levels may share the bucket.
                        if (b.level == level and _level_cell(b.centre.x, level) == x
                                and _level_cell(b.centre.y, level) == y and _level_cell(b.centre.z, level) == z):
                            _visit_box(b, span, visit, context)


cdef void grid_visit(const cube_grid* g, aabb span, visitor visit, void* context) noexcept nogil:
    # The clipped span keeps every coordinate below within the integer range.
    span = box_of(v3_max(span.lo, g.bounds.lo), v3_min(span.hi, g.bounds.hi))
    if span.lo.x > span.hi.x or span.lo.y > span.hi.y or span.lo.z > span.hi.z:
        return
    _visit_cubes(g, span, visit, context)
    if g.n_boxes:
        _visit_boxes(g, span, visit, context)


cdef inline aabb _nothing() noexcept nogil:
    return box_of(v3(1e300, 1e300, 1e300), v3(-1e300, -1e300, -1e300))


cdef int _grid_reserve(cube_grid* g, int64_t n) noexcept nogil:
    """Reserve n more bricks; return -1 without memory, with nothing changed."""
    cdef int64_t slots = g.n_slots if g.n_slots else 64
    cdef int64_t i, live = 0
    cdef brick* old = g.bricks
    cdef int64_t n_old = g.n_slots
    cdef brick* fresh
    cdef brick* place
    if g.n_slots and (g.n_used + n) * 2 <= g.n_slots:
        return 0
    # Bricks without cubes are dropped.
    for i in range(n_old):
        if old[i].bits:
            live += 1
    while (live + n) * 2 > slots:
        slots *= 2
    fresh = <brick*>calloc(slots, sizeof(brick))
    if fresh == NULL:
        return -1
    g.bricks = fresh
    g.n_slots = slots
    g.shift = 64
    while slots > 1:
        slots >>= 1
        g.shift -= 1
    g.n_used = live
    for i in range(n_old):
        if old[i].bits:
            place = _find_brick(g, old[i].key)
            place[0] = old[i]
    free(old)
    return 0


cdef inline void _grid_put(cube_grid* g, int64_t bx, int64_t by, int64_t bz, uint64_t bits) noexcept nogil:
    """Add cubes to one brick; the caller has reserved it."""
    cdef uint64_t key = _brick_key(bx, by, bz)
    cdef brick* b = _find_brick(g, key)
    if b.key == 0:
        b.key = key
        g.n_used += 1
    g.n_cubes += pycct_bit_count(bits & ~b.bits)
    b.bits |= bits


cdef inline void _grid_take(cube_grid* g, int64_t bx, int64_t by, int64_t bz, uint64_t bits) noexcept nogil:
    cdef brick* b
    if g.n_slots == 0:
        return
    b = _find_brick(g, _brick_key(bx, by, bz))
    g.n_cubes -= pycct_bit_count(bits & b.bits)
    b.bits &= ~bits


cdef int _grid_reserve_boxes(cube_grid* g, int32_t n) noexcept nogil:
    cdef int64_t capacity = g.box_capacity if g.box_capacity else 16
    cdef int64_t i
    cdef free_box* fresh
    cdef int32_t* buckets
    if g.n_boxes + n <= g.box_capacity:
        return 0
    while capacity < g.n_boxes + n:
        capacity *= 2
    fresh = <free_box*>malloc(capacity * sizeof(free_box))
    buckets = <int32_t*>malloc(capacity * sizeof(int32_t))
    if fresh == NULL or buckets == NULL:
        free(fresh)
        free(buckets)
        return -1
    if g.n_boxes:
        memcpy(fresh, g.boxes, g.n_boxes * sizeof(free_box))
    free(g.boxes)
    free(g.buckets)
    g.boxes = fresh
    g.buckets = buckets
    g.box_capacity = <int32_t>capacity
    g.n_buckets = capacity
    for i in range(capacity):
        buckets[i] = -1
    for i in range(g.n_boxes):
        _link(g, <int32_t>i)
    return 0


cdef void _link(cube_grid* g, int32_t i) noexcept nogil:
    cdef int64_t k = _bucket_of(g, &g.boxes[i])
    g.boxes[i].next = g.buckets[k]
    g.buckets[k] = i


cdef void _unlink(cube_grid* g, int32_t i) noexcept nogil:
    cdef int32_t* at = &g.buckets[_bucket_of(g, &g.boxes[i])]
    while at[0] != i:
        at = &g.boxes[at[0]].next
    at[0] = g.boxes[i].next


cdef uint64_t _digest(double x, uint64_t h) noexcept nogil:
    cdef uint64_t bits
    x = x + 0.0     # -0.0 becomes 0.0
    memcpy(&bits, &x, 8)
    return _mix(h ^ bits) + GOLDEN


cdef int64_t _box_id(const free_box* b) noexcept nogil:
    """Return a number from the geometry alone, above every cell's."""
    cdef uint64_t h = GOLDEN
    h = _digest(b.centre.x, h)
    h = _digest(b.centre.y, h)
    h = _digest(b.centre.z, h)
    h = _digest(b.half.x, h)
    h = _digest(b.half.y, h)
    h = _digest(b.half.z, h)
    h = _digest(b.rotation.x, h)
    h = _digest(b.rotation.y, h)
    h = _digest(b.rotation.z, h)
    h = _digest(b.rotation.w, h)
    return <int64_t>((<uint64_t>1 << 62) | (_mix(h) >> 2))


cdef inline bint _same_box(const free_box* a, const free_box* b) noexcept nogil:
    return (a.centre.x == b.centre.x and a.centre.y == b.centre.y and a.centre.z == b.centre.z
            and a.half.x == b.half.x and a.half.y == b.half.y and a.half.z == b.half.z
            and a.rotation.x == b.rotation.x and a.rotation.y == b.rotation.y
            and a.rotation.z == b.rotation.z and a.rotation.w == b.rotation.w)


cdef struct _id_list:
    int64_t* ids
    int64_t n
    int64_t capacity


cdef void _collect(void* context, const candidate* c) noexcept nogil:
    cdef _id_list* found = <_id_list*>context
    if found.n < found.capacity:
        found.ids[found.n] = c.id
    found.n += 1


cdef (int64_t, int64_t, int64_t) _cell_argument(object cell, str name) except *:
    cdef int64_t[3] c
    cdef int i
    if isinstance(cell, (str, bytes, bytearray, dict, set, frozenset)):
        raise TypeError(f"{name} must be three integers, not {type(cell).__name__}")
    try:
        cell = tuple(cell)
    except TypeError:
        raise TypeError(f"{name} must be three integers, not {type(cell).__name__}") from None
    if len(cell) != 3:
        raise ValueError(f"{name} must be three integers, got {len(cell)}")
    for i in range(3):
        value = cell[i]
        if hasattr(value, "__index__"):
            value = value.__index__()
        elif isinstance(value, (float, np.floating)) and value == value and value - value == 0 and int(value) == value:
            value = int(value)
        else:
            raise TypeError(f"{name} must be three integers, got {short(cell)}")
        if not -CELL_LIMIT <= value < CELL_LIMIT:
            raise ValueError(f"{name} must lie within {-CELL_LIMIT} and {CELL_LIMIT - 1}, got {short(value)}")
        c[i] = value
    return c[0], c[1], c[2]


cdef object _id_argument(object id):
    if isinstance(id, bool) or not hasattr(id, "__index__"):
        raise TypeError(f"id must be an integer, not {type(id).__name__}")
    return id.__index__()


cdef tuple _cell_of(int64_t id):
    return ((id >> 40) - CELL_LIMIT, (id >> 20 & 0xFFFFF) - CELL_LIMIT, (id & 0xFFFFF) - CELL_LIMIT)


cdef class _Grid:
    def __cinit__(self):
        self.data.bounds = _nothing()

    def __dealloc__(self):
        free(self.data.bricks)
        free(self.data.boxes)
        free(self.data.buckets)


cdef _Grid _clone(_Grid grid):
    cdef _Grid fresh = _Grid.__new__(_Grid)
    cdef cube_grid* g = &fresh.data
    cdef cube_grid* old = &grid.data
    if old.n_slots:
        g.bricks = <brick*>malloc(old.n_slots * sizeof(brick))
        if g.bricks == NULL:
            raise MemoryError()
        memcpy(g.bricks, old.bricks, old.n_slots * sizeof(brick))
    if old.box_capacity:
        g.boxes = <free_box*>malloc(old.box_capacity * sizeof(free_box))
        g.buckets = <int32_t*>malloc(old.n_buckets * sizeof(int32_t))
        if g.boxes == NULL or g.buckets == NULL:
            raise MemoryError()
        memcpy(g.boxes, old.boxes, old.n_boxes * sizeof(free_box))
        memcpy(g.buckets, old.buckets, old.n_buckets * sizeof(int32_t))
    g.n_slots = old.n_slots
    g.shift = old.shift
    g.n_used = old.n_used
    g.n_cubes = old.n_cubes
    g.n_boxes = old.n_boxes
    g.box_capacity = old.box_capacity
    g.n_buckets = old.n_buckets
    memcpy(g.level_count, old.level_count, sizeof(old.level_count))
    g.bounds = old.bounds
    return fresh


@cython.final
cdef class CubeWorld:
    """Unit cubes on an integer grid, and free boxes, for `SweepSlideController`.

    The cube of cell (i, j, k) fills [i, i + 1] x [j, j + 1] x [k, k + 1], in metres, Y up (SLIDE
    1.1). Cells run from -524288 to 524287 on each axis. Free boxes may have any size up to 2**19 m
    and any rotation.

    Attributes
    ----------
    revision : int
        Number of changes of the world.

    Notes
    -----
    A cube's id is a number made of its cell, and a box's id is a digest of its geometry. Both are
    the same in every process and for every order of insertion, and the lower id is the
    lexicographically smaller cell. All ids are >= 0, and ids of boxes are above those of cubes.

    Memory: 16 bytes for each occupied brick of 4 x 4 x 4 cells, in a table at most half full: at
    most 64 bytes for a cube that is alone in its brick, about half a byte for one in a solid chunk.

    **Thread safety.** Any thread may read and change a world. A move in flight reads the snapshot
    of its start.

    Examples
    --------
    >>> from pycct import CubeWorld
    >>> world = CubeWorld()
    >>> cube = world.add((0, 0, 0))
    >>> world.cell(cube), len(world)
    ((0, 0, 0), 1)
    >>> world.query((-1, -1, -1), (2, 2, 2)) == [cube]
    True
    """

    def __cinit__(self):
        self._grid = _Grid()
        self._box_index = {}
        self.revision = 0

    cdef _Grid acquire(self):
        cdef _Grid grid
        with cython.critical_section(self):
            grid = self._grid
            grid.users += 1
        return grid

    cdef void release(self, _Grid grid) noexcept:
        with cython.critical_section(self):
            grid.users -= 1

    cdef int _make_writable(self) except -1:
        """Copy the grid if moves still read it."""
        if self._grid.users:
            self._grid = _clone(self._grid)
        return 0

    def add(self, cell):
        """Make a cell solid.

        Parameters
        ----------
        cell : sequence of 3 int
            Integer cell (x, y, z).

        Returns
        -------
        int
            The cube's id. Adding a cube again changes nothing and returns the same id.

        Raises
        ------
        TypeError, ValueError
            If the cell is not three integers in range.
        """
        cdef int64_t x, y, z
        x, y, z = _cell_argument(cell, "cell")
        with cython.critical_section(self):
            self._make_writable()
            if _grid_reserve(&self._grid.data, 1) < 0:
                raise MemoryError()
            self._put(x, y, z)
            self.revision += 1
        return cell_id(x, y, z)

    cdef void _put(self, int64_t x, int64_t y, int64_t z) noexcept:
        cdef cube_grid* g = &self._grid.data
        _grid_put(g, x >> 2, y >> 2, z >> 2, <uint64_t>1 << ((x & 3) << 4 | (y & 3) << 2 | (z & 3)))
        g.bounds = box_union(g.bounds, box_of(v3(x, y, z), v3(x + 1, y + 1, z + 1)))

    def add_many(self, cells):
        """Make many cells solid.

        Parameters
        ----------
        cells : array_like of int, shape (n, 3)

        Returns
        -------
        ndarray of int64, shape (n,)
            The ids, in the order given.
        """
        table = np.asarray(cells)
        if table.size == 0:
            table = np.zeros((0, 3), np.int64)
        if table.dtype.kind not in "iu":
            raise TypeError("cells must be integers of shape (n, 3)")
        if table.ndim != 2 or table.shape[1] != 3:
            raise ValueError(f"cells must have shape (n, 3), got {table.shape}")
        if table.size and not (table.min() >= -CELL_LIMIT and table.max() < CELL_LIMIT):
            raise ValueError(f"cells must lie within {-CELL_LIMIT} and {CELL_LIMIT - 1}")
        table = np.ascontiguousarray(table, dtype=np.int64)
        bricks = (table >> 2) + BRICK_LIMIT
        needed = np.unique(bricks[:, 0] << 36 | bricks[:, 1] << 18 | bricks[:, 2])
        ids = (table[:, 0] + CELL_LIMIT << 40) | (table[:, 1] + CELL_LIMIT << 20) | (table[:, 2] + CELL_LIMIT)
        cdef const int64_t[:, ::1] rows = table
        cdef const int64_t[::1] keys = needed
        cdef int64_t i, missing = 0
        with cython.critical_section(self):
            self._make_writable()
            for i in range(keys.shape[0]):
                if (self._grid.data.n_slots == 0
                        or _find_brick(&self._grid.data, <uint64_t>keys[i] + 1).key == 0):
                    missing += 1
            if _grid_reserve(&self._grid.data, missing) < 0:
                raise MemoryError()
            for i in range(rows.shape[0]):
                self._put(rows[i, 0], rows[i, 1], rows[i, 2])
            self.revision += 1
        return ids

    def add_array(self, occupancy, origin=(0, 0, 0)):
        """Add every cube of an occupancy array, for example a chunk of a voxel game.

        Parameters
        ----------
        occupancy : array_like, shape (nx, ny, nz)
            Booleans or numbers; a value other than zero is solid. Axes are x, y (up), z.
        origin : sequence of 3 int
            The cell of ``occupancy[0, 0, 0]``.

        Returns
        -------
        int
            Number of new cubes.
        """
        return self._array(occupancy, origin, True)

    def remove_array(self, occupancy, origin=(0, 0, 0)):
        """Remove every cube of an occupancy array; the counterpart of `add_array`.

        Returns
        -------
        int
            Number of removed cubes.
        """
        return self._array(occupancy, origin, False)

    cdef object _array(self, occupancy, origin, bint adding):
        cdef int64_t ox, oy, oz, nx, ny, nz
        cdef int64_t bx, by, bz, x, y, z, x0, x1, y0, y1, z0, z1, missing = 0, before
        cdef int step
        cdef uint64_t bits
        ox, oy, oz = _cell_argument(origin, "origin")
        array = np.asarray(occupancy)
        if array.dtype.kind not in "biuf":
            raise TypeError("occupancy must be an array of booleans or numbers")
        if array.ndim != 3:
            raise ValueError(f"occupancy must have three axes, got shape {array.shape}")
        nx, ny, nz = array.shape
        if ox + nx > CELL_LIMIT or oy + ny > CELL_LIMIT or oz + nz > CELL_LIMIT:
            raise ValueError(f"occupancy reaches beyond cell {CELL_LIMIT - 1}")
        if array.size == 0:
            return 0
        solid = np.ascontiguousarray(array != 0).view(np.uint8)
        cdef const uint8_t[:, :, ::1] cells = solid
        with cython.critical_section(self):
            self._make_writable()
            before = self._grid.data.n_cubes
            # The first round counts new bricks, and the second round writes them.
            for step in range(2 if adding else 1):
                for bx in range(ox >> 2, ((ox + nx - 1) >> 2) + 1):
                    x0 = max(bx << 2, ox)
                    x1 = min((bx << 2) + 4, ox + nx)
                    for by in range(oy >> 2, ((oy + ny - 1) >> 2) + 1):
                        y0 = max(by << 2, oy)
                        y1 = min((by << 2) + 4, oy + ny)
                        for bz in range(oz >> 2, ((oz + nz - 1) >> 2) + 1):
                            z0 = max(bz << 2, oz)
                            z1 = min((bz << 2) + 4, oz + nz)
                            bits = 0
                            for x in range(x0, x1):
                                for y in range(y0, y1):
                                    for z in range(z0, z1):
                                        if cells[x - ox, y - oy, z - oz]:
                                            bits |= <uint64_t>1 << ((x & 3) << 4 | (y & 3) << 2 | (z & 3))
                            if bits == 0:
                                continue
                            if not adding:
                                _grid_take(&self._grid.data, bx, by, bz, bits)
                            elif step == 1:
                                _grid_put(&self._grid.data, bx, by, bz, bits)
                            elif (self._grid.data.n_slots == 0
                                  or _find_brick(&self._grid.data, _brick_key(bx, by, bz)).key == 0):
                                missing += 1
                if adding and step == 0 and _grid_reserve(&self._grid.data, missing) < 0:
                    raise MemoryError()
            if adding and self._grid.data.n_cubes > before:
                self._grid.data.bounds = box_union(self._grid.data.bounds,
                                                   box_of(v3(ox, oy, oz), v3(ox + nx, oy + ny, oz + nz)))
            self.revision += 1
            return self._grid.data.n_cubes - before if adding else before - self._grid.data.n_cubes

    def add_box(self, centre, half_extents, rotation=(0.0, 0.0, 0.0, 1.0)):
        """Add a free box.

        Parameters
        ----------
        centre : sequence of 3 float
            Metres, each within +-524288.
        half_extents : sequence of 3 float
            Metres, from 1e-6 to 262144.
        rotation : sequence of 4 float
            Unit quaternion (x, y, z, w).

        Returns
        -------
        int
            The box's id. Adding an equal box again changes nothing and returns the same id.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid; nothing has changed then.
        """
        cdef free_box b
        b.centre = as_vec3(centre, "centre")
        b.half = as_vec3(half_extents, "half_extents")
        b.rotation = as_quat(rotation, "rotation")
        if not (-CELL_LIMIT <= b.centre.x <= CELL_LIMIT and -CELL_LIMIT <= b.centre.y <= CELL_LIMIT
                and -CELL_LIMIT <= b.centre.z <= CELL_LIMIT):
            raise ValueError(f"centre must lie within +-{CELL_LIMIT} m, got {from_vec3(b.centre)}")
        if not (1e-6 <= b.half.x <= CELL_LIMIT // 2 and 1e-6 <= b.half.y <= CELL_LIMIT // 2
                and 1e-6 <= b.half.z <= CELL_LIMIT // 2):
            raise ValueError(f"half_extents must lie within 1e-6 and {CELL_LIMIT // 2} m, got {from_vec3(b.half)}")
        return self._insert_box(b)

    cdef int64_t _insert_box(self, free_box b) except -1:
        """Add a box with a valid centre, half extents and rotation."""
        cdef mat3 m
        cdef vec3 reach = b.half
        cdef double size
        cdef cube_grid* g
        b.turned = not q_is_identity(b.rotation)
        if b.turned:
            m = q_matrix(b.rotation)
            reach = v3(v3_dot(v3_abs(m.r0), b.half), v3_dot(v3_abs(m.r1), b.half), v3_dot(v3_abs(m.r2), b.half))
        else:
            b.rotation.w = 1.0
        b.bounds = box_of(v3_sub(b.centre, reach), v3_add(b.centre, reach))
        size = 2.0 * f_max(reach.x, f_max(reach.y, reach.z))
        b.level = 0
        while <double>(<int64_t>1 << b.level) < size and b.level < BOX_LEVELS - 1:
            b.level += 1
        b.id = _box_id(&b)
        with cython.critical_section(self):
            # Two boxes with one digest are improbable but must not go wrong.
            while b.id in self._box_index:
                if _same_box(&b, &self._grid.data.boxes[<int32_t>self._box_index[b.id]]):
                    return b.id
                b.id += 1
            self._make_writable()
            g = &self._grid.data
            if g.n_boxes >= 1 << 30 or _grid_reserve_boxes(g, 1) < 0:
                raise MemoryError()
            self._box_index[b.id] = g.n_boxes
            g.boxes[g.n_boxes] = b
            _link(g, g.n_boxes)
            g.n_boxes += 1
            g.level_count[b.level] += 1
            g.bounds = box_union(g.bounds, b.bounds)
            self.revision += 1
        return b.id

    def remove(self, id):
        """Remove a cube or a box by its id.

        Raises
        ------
        KeyError
            If no cube or box has the id.
        """
        cdef int64_t number, x, y, z
        cdef int32_t i, last
        cdef cube_grid* g
        id = _id_argument(id)
        with cython.critical_section(self):
            if not self._has(id):
                raise KeyError(id)
            self._make_writable()
            g = &self._grid.data
            number = id
            if is_cell_id(number):
                x, y, z = _cell_of(number)
                _grid_take(g, x >> 2, y >> 2, z >> 2, <uint64_t>1 << ((x & 3) << 4 | (y & 3) << 2 | (z & 3)))
            else:
                i = self._box_index.pop(id)
                last = g.n_boxes - 1
                g.level_count[g.boxes[i].level] -= 1
                _unlink(g, i)
                if i != last:
                    _unlink(g, last)
                    g.boxes[i] = g.boxes[last]
                    _link(g, i)
                    self._box_index[g.boxes[i].id] = i
                g.n_boxes = last
            self.revision += 1

    def clear(self):
        """Remove everything."""
        with cython.critical_section(self):
            self._grid = _Grid()
            self._box_index = {}
            self.revision += 1

    cdef bint _has(self, id) except -1:
        cdef int64_t number, x, y, z
        if id in self._box_index:
            return True
        if not 0 <= id < 1 << 60:
            return False
        number = id
        x, y, z = _cell_of(number)
        return grid_solid(&self._grid.data, x, y, z)

    def __contains__(self, id):
        id = _id_argument(id)
        with cython.critical_section(self):
            return self._has(id)

    def __len__(self):
        with cython.critical_section(self):
            return self._grid.data.n_cubes + self._grid.data.n_boxes

    @property
    def n_cubes(self):
        """Number of cubes."""
        with cython.critical_section(self):
            return self._grid.data.n_cubes

    @property
    def n_boxes(self):
        """Number of free boxes."""
        with cython.critical_section(self):
            return self._grid.data.n_boxes

    @property
    def nbytes(self):
        """Bytes of memory of cubes and boxes."""
        with cython.critical_section(self):
            return (self._grid.data.n_slots * sizeof(brick) + self._grid.data.box_capacity * sizeof(free_box)
                    + self._grid.data.n_buckets * sizeof(int32_t))

    def solid(self, cell):
        """Whether a cell contains a cube."""
        cdef int64_t x, y, z
        x, y, z = _cell_argument(cell, "cell")
        with cython.critical_section(self):
            return grid_solid(&self._grid.data, x, y, z)

    def cell(self, id):
        """The cell of a cube's id.

        Raises
        ------
        KeyError
            If no cube of this world has the id.
        """
        id = _id_argument(id)
        with cython.critical_section(self):
            if id >= 1 << 60 or not self._has(id):
                raise KeyError(id)
            return _cell_of(id)

    def box(self, id):
        """Centre, half extents and rotation of a cube or a box, by its id.

        Returns
        -------
        tuple
            (centre, half_extents, rotation), metres and a quaternion (x, y, z, w).

        Raises
        ------
        KeyError
            If no cube or box has the id.
        """
        cdef const free_box* b
        id = _id_argument(id)
        with cython.critical_section(self):
            if not self._has(id):
                raise KeyError(id)
            if id < 1 << 60:
                x, y, z = _cell_of(id)
                return (x + 0.5, y + 0.5, z + 0.5), (0.5, 0.5, 0.5), (0.0, 0.0, 0.0, 1.0)
            b = &self._grid.data.boxes[<int32_t>self._box_index[id]]
            return from_vec3(b.centre), from_vec3(b.half), from_quat(b.rotation)

    def query(self, lo, hi):
        """The ids of all cubes and boxes whose bounds touch a box (SLIDE 3.1, 3.3).

        Parameters
        ----------
        lo, hi : sequence of 3 float
            Corners, metres, lo <= hi.

        Returns
        -------
        list of int
            Sorted, without duplicates.
        """
        cdef aabb span = box_of(as_vec3(lo, "lo"), as_vec3(hi, "hi"))
        cdef _id_list found
        cdef _Grid grid
        if not (span.lo.x <= span.hi.x and span.lo.y <= span.hi.y and span.lo.z <= span.hi.z):
            raise ValueError("lo must not exceed hi")
        grid = self.acquire()
        found.ids = NULL
        try:
            with nogil:
                found.n = 0
                found.capacity = 0
                grid_visit(&grid.data, span, _collect, &found)
                found.capacity = found.n
                if found.n:
                    found.ids = <int64_t*>malloc(found.n * sizeof(int64_t))
                if found.ids != NULL:
                    found.n = 0
                    grid_visit(&grid.data, span, _collect, &found)
            if found.n and found.ids == NULL:
                raise MemoryError()
            return sorted([found.ids[i] for i in range(found.n)])
        finally:
            free(found.ids)
            self.release(grid)

    def ids(self):
        """The ids of all cubes and boxes, sorted."""
        return self.query((-1e7, -1e7, -1e7), (1e7, 1e7, 1e7))

    def __repr__(self):
        return f"CubeWorld({self.n_cubes} cubes, {self.n_boxes} boxes)"

    def __reduce__(self):
        cells = []
        boxes = []
        for id in self.ids():
            if id < 1 << 60:
                cells.append(_cell_of(id))
            else:
                boxes.append(self.box(id))
        return _rebuild, (np.array(cells, dtype=np.int32).reshape(-1, 3), boxes)


def _rebuild(cells, boxes):
    cdef CubeWorld world = CubeWorld()
    cdef free_box b
    if len(cells):
        world.add_many(cells)
    for centre, half, rotation in boxes:
        # add_box would normalise the rotation again, which could change its bits and so the id.
        b.centre = as_vec3(centre, "centre")
        b.half = as_vec3(half, "half_extents")
        b.rotation.x, b.rotation.y, b.rotation.z, b.rotation.w = rotation
        world._insert_box(b)
    return world
