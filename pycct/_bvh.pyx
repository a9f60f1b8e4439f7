# cython: language_level=3
"""Build and walk the tree. See the header.

Built from the top by the surface-area heuristic over 16 bins of the longest
centroid axis; the items themselves are moved, so each level reads memory in order.
"""
from libc.stdlib cimport free, malloc, realloc

from pycct._types cimport STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    BINS = 16


cdef struct build_item:
    float[3] lo
    float[3] hi
    int32_t item
    int32_t unused      # keeps the size a power of two


cdef struct build_task:
    int32_t first
    int32_t last        # one past the end
    int32_t parent      # node to hang the result on, -1 for the root
    int32_t side
    int32_t depth


cdef struct build_bin:
    float[3] lo
    float[3] hi
    int32_t count


cdef float f32_below(double x) noexcept nogil:
    cdef float f = <float>x
    if <double>f > x:
        # Two units in the last place (never less than one), or a step off zero.
        f = f - (f if f > 0 else -f) * <float>2.4e-7 - <float>1e-37
    return f


cdef float f32_above(double x) noexcept nogil:
    return -f32_below(-x)


cdef box32 box32_around(aabb b) noexcept nogil:
    cdef box32 r
    r.lo[0] = f32_below(b.lo.x)
    r.lo[1] = f32_below(b.lo.y)
    r.lo[2] = f32_below(b.lo.z)
    r.hi[0] = f32_above(b.hi.x)
    r.hi[1] = f32_above(b.hi.y)
    r.hi[2] = f32_above(b.hi.z)
    return r


cdef inline void _empty(float* lo, float* hi) noexcept nogil:
    cdef int k
    for k in range(3):
        lo[k] = <float>3e38
        hi[k] = <float>-3e38


cdef inline void _join(float* lo, float* hi, const float* lo2, const float* hi2) noexcept nogil:
    cdef int k
    for k in range(3):
        if lo2[k] < lo[k]:
            lo[k] = lo2[k]
        if hi2[k] > hi[k]:
            hi[k] = hi2[k]


cdef inline double _half_area(const float* lo, const float* hi) noexcept nogil:
    cdef double x = <double>hi[0] - lo[0]
    cdef double y = <double>hi[1] - lo[1]
    cdef double z = <double>hi[2] - lo[2]
    if x < 0.0:
        return 0.0
    return x * y + y * z + z * x


cdef int32_t _partition(build_item* items, int32_t first, int32_t last, int depth) noexcept nogil:
    """Reorder items[first:last] and return where the second half starts."""
    cdef build_bin[BINS] bins
    cdef float[3] c_lo
    cdef float[3] c_hi
    cdef float[3] lo
    cdef float[3] hi
    cdef double[BINS] area_right
    cdef int32_t[BINS] count_right
    cdef int32_t i, j, k, n, axis, best, mid = (first + last) >> 1
    cdef float c, scale
    cdef double cost, best_cost
    cdef build_item swap
    for k in range(3):
        c_lo[k] = <float>3e38
        c_hi[k] = <float>-3e38
    for i in range(first, last):
        for k in range(3):
            c = (items[i].lo[k] + items[i].hi[k]) * <float>0.5
            if c < c_lo[k]:
                c_lo[k] = c
            if c > c_hi[k]:
                c_hi[k] = c
    axis = 0
    if c_hi[1] - c_lo[1] > c_hi[0] - c_lo[0]:
        axis = 1
    if c_hi[2] - c_lo[2] > c_hi[axis] - c_lo[axis]:
        axis = 2
    # All in one point, or so deep that the stack must be spared: halve by count.
    if not (c_hi[axis] > c_lo[axis]) or depth > BVH_MAX_DEPTH - 34:
        return mid
    scale = <float>(BINS * 0.9999) / (c_hi[axis] - c_lo[axis])
    for k in range(BINS):
        _empty(bins[k].lo, bins[k].hi)
        bins[k].count = 0
    for i in range(first, last):
        k = <int32_t>(((items[i].lo[axis] + items[i].hi[axis]) * <float>0.5 - c_lo[axis]) * scale)
        if k < 0 or k >= BINS:
            k = 0 if k < 0 else BINS - 1
        bins[k].count += 1
        _join(bins[k].lo, bins[k].hi, items[i].lo, items[i].hi)
    _empty(lo, hi)
    n = 0
    for k in range(BINS - 1, 0, -1):
        n += bins[k].count
        _join(lo, hi, bins[k].lo, bins[k].hi)
        area_right[k] = _half_area(lo, hi)
        count_right[k] = n
    _empty(lo, hi)
    n = 0
    best = -1
    best_cost = 0.0
    for k in range(1, BINS):
        n += bins[k - 1].count
        _join(lo, hi, bins[k - 1].lo, bins[k - 1].hi)
        if n == 0 or count_right[k] == 0:
            continue
        cost = _half_area(lo, hi) * n + area_right[k] * count_right[k]
        if best < 0 or cost < best_cost:
            best = k
            best_cost = cost
    if best < 0:
        return mid
    i = first
    j = last - 1
    while i <= j:
        k = <int32_t>(((items[i].lo[axis] + items[i].hi[axis]) * <float>0.5 - c_lo[axis]) * scale)
        if k < 0 or k >= BINS:
            k = 0 if k < 0 else BINS - 1
        if k < best:
            i += 1
        else:
            swap = items[i]
            items[i] = items[j]
            items[j] = swap
            j -= 1
    if i == first or i == last:
        return mid
    return i


cdef inline void _hang(bvh* tree, const build_task* t, const float* lo, const float* hi, int32_t child,
                       int32_t count) noexcept nogil:
    cdef bvh_node* node
    cdef int k
    if t.parent < 0:
        return
    node = &tree.nodes[t.parent]
    if t.side == 0:
        node.child0 = child
        node.count0 = count
        for k in range(3):
            node.lo0[k] = lo[k]
            node.hi0[k] = hi[k]
    else:
        node.child1 = child
        node.count1 = count
        for k in range(3):
            node.lo1[k] = lo[k]
            node.hi1[k] = hi[k]


cdef int bvh_build(bvh* tree, const box32* boxes, int32_t n) noexcept nogil:
    cdef build_item* items
    cdef build_task[2 * BVH_MAX_DEPTH] stack
    cdef build_task t
    cdef float[3] lo
    cdef float[3] hi
    cdef int32_t i, k, mid, node, room
    cdef int top = 0
    cdef bvh_node* smaller
    tree.n_nodes = 0
    tree.n_items = n
    tree.nodes = NULL
    tree.order = NULL
    if n <= 0:
        return STATUS_OK
    # Each inner node splits; leaves hold one item or more.
    room = n if n > 1 else 1
    items = <build_item*>malloc(<size_t>n * sizeof(build_item))
    tree.nodes = <bvh_node*>malloc(<size_t>room * sizeof(bvh_node))
    tree.order = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
    if items == NULL or tree.nodes == NULL or tree.order == NULL:
        free(items)
        bvh_free(tree)
        return STATUS_NO_MEMORY
    for i in range(n):
        for k in range(3):
            items[i].lo[k] = boxes[i].lo[k]
            items[i].hi[k] = boxes[i].hi[k]
        items[i].item = i
        items[i].unused = 0
    # The root is a node even when everything fits into one leaf.
    _empty(tree.nodes[0].lo0, tree.nodes[0].hi0)
    _empty(tree.nodes[0].lo1, tree.nodes[0].hi1)
    tree.nodes[0].child0 = tree.nodes[0].child1 = 0
    tree.nodes[0].count0 = tree.nodes[0].count1 = -1
    tree.n_nodes = 1
    if n <= BVH_LEAF:
        t.first, t.last, t.parent, t.side, t.depth = 0, n, 0, 0, 1
        stack[0] = t
        top = 1
    else:
        mid = _partition(items, 0, n, 0)
        t.first, t.last, t.parent, t.side, t.depth = 0, mid, 0, 0, 1
        stack[0] = t
        t.first, t.last, t.side = mid, n, 1
        stack[1] = t
        top = 2
    while top > 0:
        top -= 1
        t = stack[top]
        _empty(lo, hi)
        for i in range(t.first, t.last):
            _join(lo, hi, items[i].lo, items[i].hi)
        if t.last - t.first <= BVH_LEAF:
            _hang(tree, &t, lo, hi, t.first, t.last - t.first)
            continue
        node = tree.n_nodes
        tree.n_nodes += 1
        _hang(tree, &t, lo, hi, node, 0)
        mid = _partition(items, t.first, t.last, t.depth)
        stack[top].first = mid
        stack[top].last = t.last
        stack[top].parent = node
        stack[top].side = 1
        stack[top].depth = t.depth + 1
        top += 1
        stack[top].first = t.first
        stack[top].last = mid
        stack[top].parent = node
        stack[top].side = 0
        stack[top].depth = t.depth + 1
        top += 1
    for i in range(n):
        tree.order[i] = items[i].item
    free(items)
    smaller = <bvh_node*>realloc(tree.nodes, <size_t>tree.n_nodes * sizeof(bvh_node))
    if smaller != NULL:
        tree.nodes = smaller
    return STATUS_OK


cdef void bvh_free(bvh* tree) noexcept nogil:
    free(tree.nodes)
    free(tree.order)
    tree.nodes = NULL
    tree.order = NULL
    tree.n_nodes = 0
    tree.n_items = 0


cdef inline bint _touch(const float* lo, const float* hi, const box32* b) noexcept nogil:
    return ((lo[0] <= b.hi[0]) & (hi[0] >= b.lo[0]) & (lo[1] <= b.hi[1]) & (hi[1] >= b.lo[1])
            & (lo[2] <= b.hi[2]) & (hi[2] >= b.lo[2]))


cdef int32_t bvh_collect(const bvh* tree, const box32* box, int32_t* places, int32_t room) noexcept nogil:
    cdef int32_t[2 * BVH_MAX_DEPTH] stack
    cdef int top = 0
    cdef int32_t found = 0, i
    cdef const bvh_node* node
    if tree.n_nodes == 0:
        return 0
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        node = &tree.nodes[stack[top]]
        if node.count1 >= 0 and _touch(node.lo1, node.hi1, box):
            if node.count1 > 0:
                for i in range(node.child1, node.child1 + node.count1):
                    if found < room:
                        places[found] = i
                    found += 1
            else:
                stack[top] = node.child1
                top += 1
        if node.count0 >= 0 and _touch(node.lo0, node.hi0, box):
            if node.count0 > 0:
                for i in range(node.child0, node.child0 + node.count0):
                    if found < room:
                        places[found] = i
                    found += 1
            else:
                stack[top] = node.child0
                top += 1
    return found
