# cython: language_level=3
"""Build and walk the tree. See the header.

Built from the top by the surface-area heuristic over bins of the longest centroid
axis; the items themselves are moved, so each level reads memory in order. Two
passes a level: one fills the bins, one parts the items and measures both halves.
"""
from libc.math cimport NAN, fabsf, sqrt
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove, memset

from pycct.runtime.thread_pool cimport pool_run
from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport box_centre, box_half, f_max, f_min, v3_abs, v3_max, v3_max_abs

cdef enum:
    BINS = 16
    FEW_BINS = 8        # for few items: sixteen bins would cost more than they gain
    FEW_ITEMS = 64
    PIECE = 1 << 16     # most items of a part of the tree that one thread builds by itself

# The largest float32; beyond it a box is endless.
cdef float LARGEST = <float>3.4028234e38
# A box is grown by this share of the numbers it was computed from: what decides what to
# look at must never be stricter than the arithmetic that decides what is hit.
cdef double MARGIN = 1e-9


# The lanes of an item.
cdef struct build_item:
    float[4] lo
    float[4] hi


cdef struct build_range:
    int32_t first
    int32_t last        # one past the end
    float[4] lo         # box of the items
    float[4] hi
    float[4] c_lo       # box of their centroids, doubled
    float[4] c_hi


cdef struct build_task:
    build_range items
    int32_t parent      # node to hang the result on
    int32_t side
    int32_t depth


# A part of the tree that is built by itself: its items, and the nodes that it has made.
cdef struct build_piece:
    build_task root
    bvh_node* nodes
    int32_t n_nodes
    int32_t at              # of its first node, in the end


cdef struct build_job:
    build_item* items
    build_piece* pieces
    int32_t n_pieces
    int32_t room_pieces
    bvh_node* top           # nodes above the pieces
    int32_t n_top
    int32_t room_top


cdef struct build_bin:
    float[4] lo
    float[4] hi
    int32_t count


cdef float f32_below(double x) noexcept nogil:
    cdef float f, wrong
    if x > <double>LARGEST:
        return LARGEST
    if x < -<double>LARGEST:
        return -LARGEST * <float>2.0
    f = <float>x
    # If it is too much, two units in the last place (never less than one), or a step off zero: no branch to guess.
    wrong = <float>(<double>f > x)
    return f - fabsf(f) * <float>2.4e-7 * wrong - <float>1e-37 * wrong


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
    for k in range(4):
        lo[k] = <float>3e38
        hi[k] = <float>-3e38


cdef inline void _join(float* lo, float* hi, const float* lo2, const float* hi2) noexcept nogil:
    cdef int k
    for k in range(4):
        lo[k] = lo2[k] if lo2[k] < lo[k] else lo[k]
    for k in range(4):
        hi[k] = hi2[k] if hi2[k] > hi[k] else hi[k]


cdef inline void _take(build_range* r, const build_item* item) noexcept nogil:
    """Grow a range's boxes by an item."""
    cdef float[4] c
    cdef int k
    for k in range(4):
        c[k] = item.lo[k] + item.hi[k]
    _join(r.lo, r.hi, item.lo, item.hi)
    _join(r.c_lo, r.c_hi, c, c)


cdef inline double _half_area(const float* lo, const float* hi) noexcept nogil:
    cdef double x = <double>hi[0] - lo[0]
    cdef double y = <double>hi[1] - lo[1]
    cdef double z = <double>hi[2] - lo[2]
    if x < 0.0:
        return 0.0
    return x * y + y * z + z * x


cdef inline void _start(build_range* r, int32_t first, int32_t last) noexcept nogil:
    r.first = first
    r.last = last
    _empty(r.lo, r.hi)
    _empty(r.c_lo, r.c_hi)


cdef void _halve(const build_item* items, int32_t first, int32_t last, build_range* left,
                 build_range* right) noexcept nogil:
    """Two halves by count, as the items stand."""
    cdef int32_t i, mid = (first + last) >> 1
    _start(left, first, mid)
    _start(right, mid, last)
    for i in range(first, mid):
        _take(left, &items[i])
    for i in range(mid, last):
        _take(right, &items[i])


cdef void _partition(build_item* items, const build_range* whole, int depth, build_range* left,
                     build_range* right) noexcept nogil:
    """Reorder the items of a range and measure the two halves."""
    cdef build_bin[BINS] bins
    cdef float[4] lo
    cdef float[4] hi
    cdef double[BINS] area_right
    cdef int32_t[BINS] count_right
    cdef int32_t first = whole.first, last = whole.last
    cdef int32_t i, j, k, n, axis, best, n_bins
    cdef float scale, base
    cdef double cost, best_cost
    cdef build_item swap
    axis = 0
    if whole.c_hi[1] - whole.c_lo[1] > whole.c_hi[0] - whole.c_lo[0]:
        axis = 1
    if whole.c_hi[2] - whole.c_lo[2] > whole.c_hi[axis] - whole.c_lo[axis]:
        axis = 2
    # All in one point, or so deep that the stack must be spared: halve by count.
    if not (whole.c_hi[axis] > whole.c_lo[axis]) or depth > BVH_MAX_DEPTH - 34:
        _halve(items, first, last, left, right)
        return
    n_bins = BINS if last - first > FEW_ITEMS else FEW_BINS
    base = whole.c_lo[axis]
    scale = <float>(n_bins * 0.9999) / (whole.c_hi[axis] - base)
    # Items so close together that the quotient leaves the range of float32.
    if not scale < LARGEST:
        _halve(items, first, last, left, right)
        return
    for k in range(n_bins):
        _empty(bins[k].lo, bins[k].hi)
        bins[k].count = 0
    for i in range(first, last):
        k = <int32_t>((items[i].lo[axis] + items[i].hi[axis] - base) * scale)
        k = 0 if k < 0 else (n_bins - 1 if k >= n_bins else k)
        bins[k].count += 1
        _join(bins[k].lo, bins[k].hi, items[i].lo, items[i].hi)
    _empty(lo, hi)
    n = 0
    for k in range(n_bins - 1, 0, -1):
        n += bins[k].count
        _join(lo, hi, bins[k].lo, bins[k].hi)
        area_right[k] = _half_area(lo, hi)
        count_right[k] = n
    _empty(lo, hi)
    n = 0
    best = -1
    best_cost = 0.0
    for k in range(1, n_bins):
        n += bins[k - 1].count
        _join(lo, hi, bins[k - 1].lo, bins[k - 1].hi)
        if n == 0 or count_right[k] == 0:
            continue
        cost = _half_area(lo, hi) * n + area_right[k] * count_right[k]
        if best < 0 or cost < best_cost:
            best = k
            best_cost = cost
    if best < 0:
        _halve(items, first, last, left, right)
        return
    _start(left, first, first)
    _start(right, last, last)
    i = first
    j = last - 1
    while i <= j:
        k = <int32_t>((items[i].lo[axis] + items[i].hi[axis] - base) * scale)
        k = 0 if k < 0 else (n_bins - 1 if k >= n_bins else k)
        if k < best:
            _take(left, &items[i])
            i += 1
        else:
            _take(right, &items[i])
            swap = items[i]
            items[i] = items[j]
            items[j] = swap
            j -= 1
    left.last = right.first = i


cdef inline void _hang(bvh_node* node, int32_t side, const build_range* r, int32_t child, int32_t count) noexcept nogil:
    cdef int k
    if side == 0:
        node.child0 = child
        node.count0 = count
        for k in range(3):
            node.lo0[k] = r.lo[k]
            node.hi0[k] = r.hi[k]
    else:
        node.child1 = child
        node.count1 = count
        for k in range(3):
            node.lo1[k] = r.lo[k]
            node.hi1[k] = r.hi[k]


cdef inline build_task _below(const build_task* t, const build_range* items, int32_t parent,
                              int32_t side) noexcept nogil:
    cdef build_task r
    r.items = items[0]
    r.parent = parent
    r.side = side
    r.depth = t.depth + 1
    return r


cdef inline int32_t _count(const build_task* t) noexcept nogil:
    return t.items.last - t.items.first


cdef void _build_piece(build_item* items, build_piece* piece) noexcept nogil:
    """All nodes below a root that has more items than a leaf; they are numbered from the root's zero."""
    cdef build_task[2 * BVH_MAX_DEPTH] stack
    cdef build_task t
    cdef build_range left, right
    cdef bvh_node* nodes = piece.nodes
    cdef int32_t node
    cdef int top = 1
    stack[0] = piece.root
    stack[0].parent = -1
    piece.n_nodes = 0
    while top > 0:
        top -= 1
        t = stack[top]
        if _count(&t) <= BVH_LEAF:
            _hang(&nodes[t.parent], t.side, &t.items, t.items.first, _count(&t))
            continue
        node = piece.n_nodes
        piece.n_nodes += 1
        if t.parent >= 0:
            _hang(&nodes[t.parent], t.side, &t.items, node, 0)
        _partition(items, &t.items, t.depth, &left, &right)
        stack[top] = _below(&t, &right, node, 1)
        stack[top + 1] = _below(&t, &left, node, 0)
        top += 2


cdef void _build_pieces(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef build_job* job = <build_job*>context
    cdef int64_t i
    for i in range(first, last):
        _build_piece(job.items, &job.pieces[i])


cdef void* _one_more(void* rows, size_t size, int32_t n, int32_t* room) noexcept nogil:
    """The rows with room for one more, or NULL, and they are as they were."""
    cdef int32_t more
    cdef void* p
    if n < room[0]:
        return rows
    more = 2 * room[0] + 16
    p = realloc(rows, more * size)
    if p != NULL:
        room[0] = more
    return p


cdef int _build_top(build_job* job, const build_range* items) noexcept nogil:
    """Part the items into pieces, and make the nodes above them."""
    cdef build_task[2 * BVH_MAX_DEPTH] stack
    cdef build_task t
    cdef build_range left, right
    cdef void* p
    cdef int top = 1
    stack[0].items = items[0]
    stack[0].parent, stack[0].side, stack[0].depth = -1, 0, 0
    while top > 0:
        top -= 1
        t = stack[top]
        if _count(&t) <= BVH_LEAF:
            _hang(&job.top[t.parent], t.side, &t.items, t.items.first, _count(&t))
            continue
        if _count(&t) <= PIECE:
            p = _one_more(job.pieces, sizeof(build_piece), job.n_pieces, &job.room_pieces)
            if p == NULL:
                return STATUS_NO_MEMORY
            job.pieces = <build_piece*>p
            job.pieces[job.n_pieces].root = t
            job.n_pieces += 1
            continue
        p = _one_more(job.top, sizeof(bvh_node), job.n_top, &job.room_top)
        if p == NULL:
            return STATUS_NO_MEMORY
        job.top = <bvh_node*>p
        if t.parent >= 0:
            _hang(&job.top[t.parent], t.side, &t.items, job.n_top, 0)
        _partition(job.items, &t.items, t.depth, &left, &right)
        stack[top] = _below(&t, &right, job.n_top, 1)
        stack[top + 1] = _below(&t, &left, job.n_top, 0)
        job.n_top += 1
        top += 2
    return STATUS_OK


cdef void _gather(build_job* job, bvh* tree) noexcept nogil:
    """The nodes of all pieces, side by side behind those above them."""
    cdef build_piece* piece
    cdef bvh_node* node
    cdef int32_t i, k
    tree.n_nodes = job.n_top
    if job.n_top > 0:
        memcpy(tree.nodes, job.top, <size_t>job.n_top * sizeof(bvh_node))
    for i in range(job.n_pieces):
        piece = &job.pieces[i]
        piece.at = tree.n_nodes
        memmove(&tree.nodes[piece.at], piece.nodes, <size_t>piece.n_nodes * sizeof(bvh_node))
        for k in range(piece.at, piece.at + piece.n_nodes):
            node = &tree.nodes[k]
            if node.count0 == 0:
                node.child0 += piece.at
            if node.count1 == 0:
                node.child1 += piece.at
        tree.n_nodes += piece.n_nodes
        if piece.root.parent >= 0:
            _hang(&tree.nodes[piece.root.parent], piece.root.side, &piece.root.items, piece.at, 0)


cdef int bvh_build_items(bvh* tree, bvh_item* given, int32_t n, int threads) noexcept nogil:
    cdef build_item* items = <build_item*>given
    cdef build_job job
    cdef build_range whole, right
    cdef bvh_node* smaller
    cdef int32_t i
    cdef int status = STATUS_OK
    tree.n_nodes = 0
    tree.n_items = n
    tree.nodes = NULL
    tree.order = NULL
    tree.check = NULL
    tree.owner = NULL
    if n <= 0:
        tree.n_items = 0
        return STATUS_OK
    _start(&whole, 0, n)
    for i in range(n):
        _take(&whole, &items[i])
    if n <= BVH_LEAF:
        # The root is a node even when everything fits into one leaf.
        tree.nodes = <bvh_node*>malloc(sizeof(bvh_node))
        if tree.nodes == NULL:
            return STATUS_NO_MEMORY
        tree.n_nodes = 1
        _start(&right, n, n)
        _hang(&tree.nodes[0], 0, &whole, 0, n)
        _hang(&tree.nodes[0], 1, &right, 0, -1)
        return STATUS_OK
    memset(&job, 0, sizeof(build_job))
    job.items = items
    status = _build_top(&job, &whole)
    if status == STATUS_OK:
        # Each inner node splits, and leaves hold one item or more: a piece has fewer nodes than items.
        tree.nodes = <bvh_node*>malloc((<size_t>n + job.n_top) * sizeof(bvh_node))
        if tree.nodes == NULL:
            status = STATUS_NO_MEMORY
    if status == STATUS_OK:
        for i in range(job.n_pieces):
            job.pieces[i].nodes = &tree.nodes[job.n_top + job.pieces[i].root.items.first]
        pool_run(_build_pieces, &job, job.n_pieces, 1, threads)
        _gather(&job, tree)
        smaller = <bvh_node*>realloc(tree.nodes, <size_t>tree.n_nodes * sizeof(bvh_node))
        if smaller != NULL:
            tree.nodes = smaller
    free(job.pieces)
    free(job.top)
    return status


cdef int bvh_build(bvh* tree, const box32* boxes, int32_t n) noexcept nogil:
    cdef bvh_item* items = <bvh_item*>malloc(<size_t>(n if n > 0 else 1) * sizeof(bvh_item))
    cdef int32_t* order = <int32_t*>malloc(<size_t>(n if n > 0 else 1) * sizeof(int32_t))
    cdef int32_t i
    cdef int k
    cdef int status = STATUS_NO_MEMORY
    if items != NULL and order != NULL:
        for i in range(n):
            for k in range(3):
                items[i].lo[k] = boxes[i].lo[k]
                items[i].hi[k] = boxes[i].hi[k]
            items[i].number = i
            items[i].mark = 0
        status = bvh_build_items(tree, items, n, 1)
    else:
        tree.nodes = NULL
        tree.n_nodes = tree.n_items = 0
    if status == STATUS_OK:
        for i in range(n):
            order[i] = items[i].number
        tree.order = order
    else:
        free(order)
        tree.order = NULL
    free(items)
    return status


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


cdef inline bint _leaf_inside(const bvh* tree, int32_t first, int32_t count) noexcept nogil:
    return 0 <= first < tree.n_items and count <= tree.n_items - first


cdef inline bint _node_inside(const bvh* tree, int32_t parent, int32_t child) noexcept nogil:
    # Children are numbered after their parents: no way leads in a circle.
    return parent < child < tree.n_nodes


cdef int32_t _collect_checked(const bvh* tree, const box32* box, int32_t* places, int32_t room) noexcept nogil:
    """`bvh_collect` in a tree that may hold anything."""
    cdef int32_t[2 * BVH_MAX_DEPTH] stack
    cdef int top = 1, side
    cdef int32_t found = 0, left = tree.n_nodes, i, at, child, count
    cdef const bvh_node* node
    stack[0] = 0
    while top > 0 and left > 0:
        top -= 1
        left -= 1
        at = stack[top]
        node = &tree.nodes[at]
        # The second child first, as in the walk that trusts.
        for side in range(2):
            if side == 0:
                child, count = node.child1, node.count1
                if not (count >= 0 and _touch(node.lo1, node.hi1, box)):
                    continue
            else:
                child, count = node.child0, node.count0
                if not (count >= 0 and _touch(node.lo0, node.hi0, box)):
                    continue
            if count == 0:
                if _node_inside(tree, at, child) and top < 2 * BVH_MAX_DEPTH:
                    stack[top] = child
                    top += 1
            elif _leaf_inside(tree, child, count):
                for i in range(child, child + count):
                    # Leaves that share items must not fill the memory.
                    if found < tree.n_items and tree.check(tree.owner, i):
                        if found < room:
                            places[found] = i
                        found += 1
    return found


cdef int bvh_verify(const bvh* tree) noexcept nogil:
    cdef int32_t[2 * BVH_MAX_DEPTH] stack
    cdef int top = 1, side
    cdef int32_t found = 0, left = tree.n_nodes, i, at, child, count
    cdef const bvh_node* node
    cdef char* seen
    cdef int sound = 1
    if tree.n_items == 0:
        return 1
    seen = <char*>calloc(tree.n_items, 1)
    if seen == NULL:
        return STATUS_NO_MEMORY
    stack[0] = 0
    while top > 0 and sound:
        top -= 1
        left -= 1
        at = stack[top]
        node = &tree.nodes[at]
        for side in range(2):
            child = node.child1 if side == 0 else node.child0
            count = node.count1 if side == 0 else node.count0
            if count < 0:
                continue
            if count == 0:
                if left <= 0 or top == 2 * BVH_MAX_DEPTH or not _node_inside(tree, at, child):
                    sound = 0
                    break
                stack[top] = child
                top += 1
                continue
            if not _leaf_inside(tree, child, count):
                sound = 0
                break
            for i in range(child, child + count):
                if seen[i] or (tree.check != NULL and not tree.check(tree.owner, i)):
                    sound = 0
                    break
                seen[i] = 1
                found += 1
    free(seen)
    return sound and found == tree.n_items and left == 0


cdef inline int32_t _open(const float* lo, const float* hi, int32_t child, int32_t count, const box32* box,
                          int32_t* stack, int* top, int32_t* places, int32_t found, int32_t room) noexcept nogil:
    """Push a child that the box touches, or note the places of a leaf; returns how many places there are by now."""
    cdef bint touched = (count >= 0) & _touch(lo, hi, box)
    cdef int32_t i
    # Written in any case, counted if touched: there is nothing to guess.
    stack[top[0]] = child
    top[0] += touched & (count == 0)
    if count > BVH_LEAF or found > room - BVH_LEAF:
        if touched:
            for i in range(count):
                if found + i < room:
                    places[found + i] = child + i
    else:
        for i in range(BVH_LEAF):
            places[found + i] = child + i
    return found + touched * count


cdef int32_t bvh_collect(const bvh* tree, const box32* box, int32_t* places, int32_t room) noexcept nogil:
    cdef int32_t[2 * BVH_MAX_DEPTH] stack
    cdef int top = 1
    cdef int32_t found = 0
    cdef const bvh_node* node
    if tree.n_nodes == 0:
        return 0
    if tree.check != NULL:
        return _collect_checked(tree, box, places, room)
    stack[0] = 0
    while top > 0:
        top -= 1
        node = &tree.nodes[stack[top]]
        found = _open(node.lo1, node.hi1, node.child1, node.count1, box, stack, &top, places, found, room)
        found = _open(node.lo0, node.hi0, node.child0, node.count0, box, stack, &top, places, found, room)
    return found


cdef inline double _apart(double lo, double hi, double origin, double half) noexcept nogil:
    return f_max(0.0, f_max(lo - half - origin, origin - half - hi))


cdef inline double _entry(const bvh_walk* w, const float* lo, const float* hi) noexcept nogil:
    """When the moving box first touches a node's box; negative: from the start; 1e300: never."""
    cdef double x, y, z
    if w.near:
        x = _apart(lo[0], hi[0], w.origin.x, w.half.x)
        y = _apart(lo[1], hi[1], w.origin.y, w.half.y)
        z = _apart(lo[2], hi[2], w.origin.z, w.half.z)
        return w.factor * sqrt(x * x + y * y + z * z) * (1.0 - MARGIN)
    cdef double a = (<double>lo[0] - w.half.x - w.origin.x) * w.inverse.x
    cdef double b = (<double>hi[0] + w.half.x - w.origin.x) * w.inverse.x
    cdef double enter = a if a < b else b
    cdef double leave = b if a < b else a
    a = (<double>lo[1] - w.half.y - w.origin.y) * w.inverse.y
    b = (<double>hi[1] + w.half.y - w.origin.y) * w.inverse.y
    enter = f_max(enter, a if a < b else b)
    leave = f_min(leave, b if a < b else a)
    a = (<double>lo[2] - w.half.z - w.origin.z) * w.inverse.z
    b = (<double>hi[2] + w.half.z - w.origin.z) * w.inverse.z
    enter = f_max(enter, a if a < b else b)
    leave = f_min(leave, b if a < b else a)
    return enter if enter <= leave and leave >= 0.0 else 1e300


cdef inline double _inverse(double d) noexcept nogil:
    # A motion this slow across an axis counts as none: the products stay finite.
    return 1e30 if -1e-30 < d < 1e-30 else 1.0 / d


cdef void _walk_from(bvh_walk* w, const bvh* tree, aabb box) noexcept nogil:
    cdef const bvh_node* root
    cdef double span
    cdef int k
    w.tree = tree
    w.top = 0
    w.left = tree.n_nodes
    w.near = False
    w.factor = 1.0
    if tree.n_nodes == 0:
        return
    w.origin = box_centre(box)
    root = &tree.nodes[0]
    span = v3_max_abs(v3_max(v3_abs(box.lo), v3_abs(box.hi)))
    for k in range(3):
        if root.count0 >= 0:
            span = f_max(span, f_max(-<double>root.lo0[k], <double>root.hi0[k]))
        if root.count1 >= 0:
            span = f_max(span, f_max(-<double>root.lo1[k], <double>root.hi1[k]))
    w.half = box_half(box)
    w.half.x += MARGIN * span
    w.half.y += MARGIN * span
    w.half.z += MARGIN * span
    w.entries[0].node = 0
    w.entries[0].count = 0
    w.entries[0].when = 0.0
    w.top = 1


cdef void bvh_walk_start(bvh_walk* w, const bvh* tree, aabb box, vec3 motion) noexcept nogil:
    _walk_from(w, tree, box)
    w.inverse.x = _inverse(motion.x)
    w.inverse.y = _inverse(motion.y)
    w.inverse.z = _inverse(motion.z)


cdef void bvh_walk_near(bvh_walk* w, const bvh* tree, aabb box, double factor) noexcept nogil:
    _walk_from(w, tree, box)
    w.near = True
    w.factor = factor


cdef bint _next_run(bvh_walk* w, walk_entry e, int32_t* first, int32_t* count) noexcept nogil:
    """The places of a leaf that can be used, as far as they stand side by side; the rest goes back on the stack."""
    cdef const bvh* tree = w.tree
    cdef int32_t last
    if not _leaf_inside(tree, e.node, e.count):
        return False
    last = e.node + e.count
    while e.node < last and not tree.check(tree.owner, e.node):
        e.node += 1
    if e.node == last:
        return False
    first[0] = e.node
    while e.node < last and tree.check(tree.owner, e.node):
        e.node += 1
    count[0] = e.node - first[0]
    if e.node < last:
        e.count = last - e.node
        w.entries[w.top] = e
        w.top += 1
    return True


cdef inline bint _may_push(const bvh_walk* w, int32_t parent, const walk_entry* e) noexcept nogil:
    if w.top == 2 * BVH_MAX_DEPTH:
        return False
    return e.count > 0 or (e.count == 0 and _node_inside(w.tree, parent, e.node))


cdef inline bint _next(bvh_walk* w, double limit, int32_t* first, int32_t* count, bint checked) noexcept nogil:
    cdef const bvh_node* node
    cdef walk_entry e, near, far
    cdef int32_t at
    while w.top > 0:
        w.top -= 1
        e = w.entries[w.top]
        if e.when > limit:
            continue
        if e.count > 0:
            if checked:
                if _next_run(w, e, first, count):
                    return True
                continue
            first[0] = e.node
            count[0] = e.count
            return True
        at = e.node
        if checked:
            if w.left == 0:
                return False
            w.left -= 1
        node = &w.tree.nodes[at]
        near.node = node.child0
        near.count = node.count0
        near.when = _entry(w, node.lo0, node.hi0) if node.count0 >= 0 else 1e300
        far.node = node.child1
        far.count = node.count1
        far.when = _entry(w, node.lo1, node.hi1) if node.count1 >= 0 else 1e300
        if far.when < near.when:
            e = near
            near = far
            far = e
        if far.when <= limit and (not checked or _may_push(w, at, &far)):
            w.entries[w.top] = far
            w.top += 1
        if near.when <= limit and (not checked or _may_push(w, at, &near)):
            w.entries[w.top] = near
            w.top += 1
    return False


cdef bint bvh_walk_next(bvh_walk* w, double limit, int32_t* first, int32_t* count) noexcept nogil:
    # Twice, so that a walk that trusts does not ask at each node.
    if w.tree.check != NULL:
        return _next(w, limit, first, count, True)
    return _next(w, limit, first, count, False)


cdef inline float* _slot_lo(bvh_node* node, int32_t side) noexcept nogil:
    return &node.lo1[0] if side else &node.lo0[0]


cdef inline float* _slot_hi(bvh_node* node, int32_t side) noexcept nogil:
    return &node.hi1[0] if side else &node.hi0[0]


cdef void bvh_link(const bvh* tree, int32_t* above, int32_t* slot) noexcept nogil:
    cdef const bvh_node* node
    cdef int32_t i, k, side, child, count
    if tree.n_nodes > 0:
        above[0] = -1
    for i in range(tree.n_nodes):
        node = &tree.nodes[i]
        for side in range(2):
            child = node.child1 if side else node.child0
            count = node.count1 if side else node.count0
            if count == 0:
                above[child] = 2 * i + side
            for k in range(child, child + count):
                slot[tree.order[k]] = 2 * i + side


cdef double bvh_area(const bvh* tree) noexcept nogil:
    cdef double area = 0.0
    cdef int32_t i
    for i in range(tree.n_nodes):
        area += _half_area(tree.nodes[i].lo0, tree.nodes[i].hi0) + _half_area(tree.nodes[i].lo1, tree.nodes[i].hi1)
    return area


cdef void _fit(bvh* tree, const box32* boxes, int32_t i, int32_t side) noexcept nogil:
    """The box of one slot, from what hangs there."""
    cdef bvh_node* node = &tree.nodes[i]
    cdef float* lo = _slot_lo(node, side)
    cdef float* hi = _slot_hi(node, side)
    cdef int32_t child = node.child1 if side else node.child0
    cdef int32_t count = node.count1 if side else node.count0
    cdef const bvh_node* below
    cdef const box32* box
    cdef int32_t j
    cdef int k
    for k in range(3):
        lo[k] = <float>3e38
        hi[k] = <float>-3e38
    if count == 0:
        below = &tree.nodes[child]
        for k in range(3):
            lo[k] = below.lo0[k] if below.lo0[k] < below.lo1[k] else below.lo1[k]
            hi[k] = below.hi0[k] if below.hi0[k] > below.hi1[k] else below.hi1[k]
    for j in range(child, child + count):
        box = &boxes[tree.order[j]]
        for k in range(3):
            lo[k] = box.lo[k] if box.lo[k] < lo[k] else lo[k]
            hi[k] = box.hi[k] if box.hi[k] > hi[k] else hi[k]


cdef void bvh_refit(bvh* tree, const box32* boxes) noexcept nogil:
    # Children are numbered after their parents.
    cdef int32_t i
    for i in range(tree.n_nodes - 1, -1, -1):
        _fit(tree, boxes, i, 0)
        _fit(tree, boxes, i, 1)


cdef double bvh_refit_slot(bvh* tree, const box32* boxes, const int32_t* above, int32_t slot) noexcept nogil:
    cdef double growth = 0.0
    cdef float[6] before
    cdef float* lo
    cdef float* hi
    cdef bint same
    cdef int k
    while slot >= 0:
        lo = _slot_lo(&tree.nodes[slot >> 1], slot & 1)
        hi = _slot_hi(&tree.nodes[slot >> 1], slot & 1)
        growth -= _half_area(lo, hi)
        for k in range(3):
            before[k] = lo[k]
            before[3 + k] = hi[k]
        _fit(tree, boxes, slot >> 1, slot & 1)
        growth += _half_area(lo, hi)
        same = True
        for k in range(3):
            same &= before[k] == lo[k] and before[3 + k] == hi[k]
        if same:
            break
        slot = above[slot >> 1]
    return growth


cdef double bvh_remove(bvh* tree, const box32* boxes, const int32_t* above, int32_t* slot, int32_t item) noexcept nogil:
    cdef int32_t s = slot[item]
    cdef bvh_node* node = &tree.nodes[s >> 1]
    cdef int32_t first = node.child1 if s & 1 else node.child0
    cdef int32_t count = node.count1 if s & 1 else node.count0
    cdef int32_t j = first
    while tree.order[j] != item:
        j += 1
    tree.order[j] = tree.order[first + count - 1]
    tree.order[first + count - 1] = -1
    count = count - 1 if count > 1 else -1
    if s & 1:
        node.count1 = count
    else:
        node.count0 = count
    if count < 0:
        if s & 1:
            node.child1 = 0
        else:
            node.child0 = 0
    slot[item] = -1
    return bvh_refit_slot(tree, boxes, above, s)


cdef double bvh_insert(bvh* tree, const box32* boxes, int32_t* above, int32_t* slot, int32_t item) noexcept nogil:
    cdef const box32* box = &boxes[item]
    cdef int32_t at = 0, side = 0, depth = 1, child, count, j, k
    cdef float[3] lo
    cdef float[3] hi
    cdef float* near_lo
    cdef float* near_hi
    cdef double growth, least
    cdef bvh_node* node
    cdef bvh_node* fresh
    while True:
        node = &tree.nodes[at]
        # Where the box grows least; what is empty has no box to grow.
        least = 0.0
        side = -1
        for k in range(2):
            near_lo = _slot_lo(node, k)
            near_hi = _slot_hi(node, k)
            count = node.count1 if k else node.count0
            growth = 0.0
            if count >= 0:
                for j in range(3):
                    lo[j] = near_lo[j] if near_lo[j] < box.lo[j] else box.lo[j]
                    hi[j] = near_hi[j] if near_hi[j] > box.hi[j] else box.hi[j]
                growth = _half_area(lo, hi) - _half_area(near_lo, near_hi)
            if side < 0 or growth < least:
                side = k
                least = growth
        child = node.child1 if side else node.child0
        count = node.count1 if side else node.count0
        if count != 0:
            break
        at = child
        depth += 1
        if depth > BVH_MAX_DEPTH - 4:
            return NAN
    tree.order[tree.n_items] = item
    if count < 0:
        child, count = tree.n_items, 1
    else:
        fresh = &tree.nodes[tree.n_nodes]
        fresh.child0, fresh.count0 = child, count
        fresh.child1, fresh.count1 = tree.n_items, 1
        for j in range(3):
            fresh.lo0[j] = _slot_lo(node, side)[j]
            fresh.hi0[j] = _slot_hi(node, side)[j]
            # As good as empty: the sum of areas grows from there.
            fresh.lo1[j] = <float>3e38
            fresh.hi1[j] = <float>-3e38
        above[tree.n_nodes] = 2 * at + side
        for j in range(child, child + count):
            slot[tree.order[j]] = 2 * tree.n_nodes
        child, count = tree.n_nodes, 0
        tree.n_nodes += 1
    if side:
        node.child1, node.count1 = child, count
    else:
        node.child0, node.count0 = child, count
    slot[item] = 2 * at + side if count > 0 else 2 * child + 1
    tree.n_items += 1
    growth = 0.0 if count > 0 else _half_area(fresh.lo0, fresh.hi0)
    return growth + bvh_refit_slot(tree, boxes, above, slot[item])
