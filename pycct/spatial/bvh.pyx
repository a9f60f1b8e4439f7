# cython: language_level=3
"""Build and walk the tree. See the header.

A binary tree is built from the top by the surface-area heuristic over bins of every axis that
the centroids spread along; the items themselves are moved, so each level reads memory in order.
Then nodes of eight children take in up to three levels each. The walks are in wide8.h.
"""
from libc.math cimport NAN, fabs, fabsf
from libc.stdlib cimport calloc, free, malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memmove, memset

from pycct.runtime.growth cimport one_more
from pycct.runtime.thread_pool cimport pool_run
from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport f_max, v3_abs, v3_max, v3_max_abs, v3_min

cdef extern from "pycct/spatial/wide8.h" nogil:
    ctypedef struct w8_node:
        pass
    ctypedef struct w8_block:
        pass
    ctypedef struct w8_walk:
        pass
    ctypedef struct w8_ray:
        pass
    enum:
        W8_BASE
        W8_AVX2
        W8_STACK
        W8_LANES
    int w8_set
    void w8_start() noexcept
    float w8_up(double x) noexcept
    float w8_down(double x) noexcept
    int w8_next(w8_walk* w, double limit, int32_t* first, int32_t* count) noexcept
    int w8_next_ray(w8_walk* w, const w8_ray* ray, const w8_block* blocks, double limit, int32_t* first,
                    uint32_t* bits) noexcept
    int w8_next_box(w8_walk* w, const w8_block* blocks, double limit, int32_t* first, uint32_t* bits) noexcept
    unsigned w8_mask(const w8_walk* w, const w8_node* node, double limit) noexcept
    int32_t w8_collect(const w8_node* nodes, const float* lo, const float* hi, int32_t* places,
                       int32_t capacity) noexcept

cdef enum:
    BINS = 16
    FEW_BINS = 8        # for few items, where sixteen bins would cost more than they gain
    FEW_ITEMS = 64
    PIECE = 1 << 16     # most items of a subtree that one thread builds
    ALIGNED = 64        # bytes: nodes begin at multiples of them

# The largest float32; a larger box is endless.
cdef float LARGEST = <float>3.4028234e38
# Boxes are grown by this share of the numbers they were computed from, because a rejection must
# never be stricter than the arithmetic of the exact tests.
cdef double MARGIN = 1e-9


# An axis is tried where the centroids spread along it by this share of the widest spread.
cdef float TRIED = 0.2


# A node of the binary tree: the boxes of both children.
cdef struct pair_node:
    float[3] lo0
    float[3] hi0
    float[3] lo1
    float[3] hi1
    int32_t child0      # as in bvh_node
    int32_t child1
    int32_t count0
    int32_t count1


# The lanes of an item.
cdef struct build_item:
    float[4] lo
    float[4] hi


cdef struct build_range:
    int32_t first
    int32_t last        # one past the end
    float[4] lo         # bounds of the items
    float[4] hi
    float[4] c_lo       # bounds of their centroids, doubled
    float[4] c_hi


cdef struct build_task:
    build_range items
    int32_t parent      # parent node of the result
    int32_t side
    int32_t depth


# A subtree that is built separately: its items, and its nodes.
cdef struct build_piece:
    build_task root
    pair_node* nodes
    int32_t n_nodes
    int32_t at              # final index of its first node


cdef struct build_job:
    build_item* items
    build_piece* pieces
    int32_t n_pieces
    int32_t capacity_pieces
    pair_node* top           # nodes above the pieces
    int32_t n_top
    int32_t capacity_top


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
    # If it is too large, two units in the last place (never less than one), or a step off zero: no
    # branch to mispredict.
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
    """Two halves by count, in the current order of items."""
    cdef int32_t i, mid = (first + last) >> 1
    _start(left, first, mid)
    _start(right, mid, last)
    for i in range(first, mid):
        _take(left, &items[i])
    for i in range(mid, last):
        _take(right, &items[i])


cdef inline int32_t _bin_of(const build_item* item, int axis, float base, float scale, int32_t n_bins) noexcept nogil:
    cdef int32_t k = <int32_t>((item.lo[axis] + item.hi[axis] - base) * scale)
    return 0 if k < 0 else (n_bins - 1 if k >= n_bins else k)


cdef int32_t _best_bin(const build_item* items, int32_t first, int32_t last, int axis, float base, float scale,
                       int32_t n_bins, double* cost) noexcept nogil:
    """The bin that the right half begins with, along one axis, if that costs less than ``cost``;
    -1: none does.
    """
    cdef build_bin[BINS] bins
    cdef float[4] lo
    cdef float[4] hi
    cdef double[BINS] area_right
    cdef int32_t[BINS] count_right
    cdef int32_t i, k, n, best = -1
    cdef double one
    for k in range(n_bins):
        _empty(bins[k].lo, bins[k].hi)
        bins[k].count = 0
    for i in range(first, last):
        k = _bin_of(&items[i], axis, base, scale, n_bins)
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
    for k in range(1, n_bins):
        n += bins[k - 1].count
        _join(lo, hi, bins[k - 1].lo, bins[k - 1].hi)
        if n == 0 or count_right[k] == 0:
            continue
        one = _half_area(lo, hi) * n + area_right[k] * count_right[k]
        if cost[0] < 0.0 or one < cost[0]:
            best = k
            cost[0] = one
    return best


cdef void _partition(build_item* items, const build_range* range_, int depth, build_range* left,
                     build_range* right) noexcept nogil:
    """Reorder the items of a range and measure the two halves."""
    cdef int32_t first = range_.first, last = range_.last
    cdef int32_t i, j, k, axis, widest, best = -1, n_bins, along = 0
    cdef float scale = 0.0, base = 0.0, spread, one
    cdef double cost = -1.0
    cdef build_item swap
    widest = 0
    if range_.c_hi[1] - range_.c_lo[1] > range_.c_hi[0] - range_.c_lo[0]:
        widest = 1
    if range_.c_hi[2] - range_.c_lo[2] > range_.c_hi[widest] - range_.c_lo[widest]:
        widest = 2
    spread = range_.c_hi[widest] - range_.c_lo[widest]
    # All in one point, or so deep that the stack is at risk: halve by count.
    if not spread > 0.0 or depth > BVH_MAX_DEPTH - 34:
        _halve(items, first, last, left, right)
        return
    n_bins = BINS if last - first > FEW_ITEMS else FEW_BINS
    # The widest axis first: the others must be better than it.
    for j in range(3):
        axis = widest if j == 0 else (widest + j) % 3
        if not range_.c_hi[axis] - range_.c_lo[axis] > TRIED * spread:
            continue
        one = <float>(n_bins * 0.9999) / (range_.c_hi[axis] - range_.c_lo[axis])
        # Items so close together that the quotient exceeds float32.
        if not one < LARGEST:
            continue
        k = _best_bin(items, first, last, axis, range_.c_lo[axis], one, n_bins, &cost)
        if k >= 0:
            best, along, scale, base = k, axis, one, range_.c_lo[axis]
    if best < 0:
        _halve(items, first, last, left, right)
        return
    _start(left, first, first)
    _start(right, last, last)
    i = first
    j = last - 1
    while i <= j:
        if _bin_of(&items[i], along, base, scale, n_bins) < best:
            _take(left, &items[i])
            i += 1
        else:
            _take(right, &items[i])
            swap = items[i]
            items[i] = items[j]
            items[j] = swap
            j -= 1
    left.last = right.first = i


cdef inline void _hang(pair_node* node, int32_t side, const build_range* r, int32_t child,
                       int32_t count) noexcept nogil:
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
    """Build all nodes below a root with more items than a leaf, numbered from the root's zero."""
    cdef build_task[2 * BVH_MAX_DEPTH] stack
    cdef build_task t
    cdef build_range left, right
    cdef pair_node* nodes = piece.nodes
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


cdef int _build_top(build_job* job, const build_range* items) noexcept nogil:
    """Partition the items into subtrees, and build the nodes above them."""
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
            p = one_more(job.pieces, sizeof(build_piece), job.n_pieces, &job.capacity_pieces, 16)
            if p == NULL:
                return STATUS_NO_MEMORY
            job.pieces = <build_piece*>p
            job.pieces[job.n_pieces].root = t
            job.n_pieces += 1
            continue
        p = one_more(job.top, sizeof(pair_node), job.n_top, &job.capacity_top, 16)
        if p == NULL:
            return STATUS_NO_MEMORY
        job.top = <pair_node*>p
        if t.parent >= 0:
            _hang(&job.top[t.parent], t.side, &t.items, job.n_top, 0)
        _partition(job.items, &t.items, t.depth, &left, &right)
        stack[top] = _below(&t, &right, job.n_top, 1)
        stack[top + 1] = _below(&t, &left, job.n_top, 0)
        job.n_top += 1
        top += 2
    return STATUS_OK


cdef int32_t _gather(build_job* job, pair_node* nodes) noexcept nogil:
    """The nodes of all pieces, side by side behind those above them; how many."""
    cdef build_piece* piece
    cdef pair_node* node
    cdef int32_t i, k, n = job.n_top
    if job.n_top > 0:
        memcpy(nodes, job.top, <size_t>job.n_top * sizeof(pair_node))
    for i in range(job.n_pieces):
        piece = &job.pieces[i]
        piece.at = n
        memmove(&nodes[piece.at], piece.nodes, <size_t>piece.n_nodes * sizeof(pair_node))
        for k in range(piece.at, piece.at + piece.n_nodes):
            node = &nodes[k]
            if node.count0 == 0:
                node.child0 += piece.at
            if node.count1 == 0:
                node.child1 += piece.at
        n += piece.n_nodes
        if piece.root.parent >= 0:
            _hang(&nodes[piece.root.parent], piece.root.side, &piece.root.items, piece.at, 0)
    return n


# ---------------------------------------------------------------- nodes of eight children

# A child that a node may take in as it is, or open.
cdef struct wide_child:
    const float* lo
    const float* hi
    int32_t child
    int32_t count
    double area


cdef inline wide_child _side_of(const pair_node* pair, int side) noexcept nogil:
    cdef wide_child r
    r.lo = &pair.lo1[0] if side else &pair.lo0[0]
    r.hi = &pair.hi1[0] if side else &pair.hi0[0]
    r.child = pair.child1 if side else pair.child0
    r.count = pair.count1 if side else pair.count0
    r.area = _half_area(r.lo, r.hi)
    return r


cdef inline void _clear(bvh_node* node, int lane) noexcept nogil:
    cdef int k
    for k in range(3):
        node.lo[k][lane] = <float>3e38
        node.hi[k][lane] = <float>-3e38
    node.child[lane] = 0
    node.count[lane] = -1


cdef int _to_open(const wide_child* children, int n, const int32_t* leaves) noexcept nogil:
    """The child that a node of n children opens next, -1: none."""
    cdef int i, best = -1
    # The largest of those that cannot be one node, ...
    for i in range(n):
        if children[i].count == 0 and leaves[children[i].child] > BVH_LANES and (
                best < 0 or children[i].area > children[best].area):
            best = i
    if best >= 0:
        return best
    # ... then the smallest that fits in as a whole, so that it needs no node. Others are nodes that
    # are nearly full.
    for i in range(n):
        if children[i].count == 0 and leaves[children[i].child] - 1 <= BVH_LANES - n and (
                best < 0 or leaves[children[i].child] < leaves[children[best].child]):
            best = i
    return best


cdef int _widen(bvh* tree, const pair_node* pairs, int32_t n_pairs) noexcept nogil:
    """The tree's nodes, from those of a binary tree."""
    cdef wide_child[BVH_LANES] children
    cdef int32_t* leaves
    cdef int32_t[BVH_STACK] stack       # a node and the pair that it begins with; no more of them than a walk has
    cdef int32_t[BVH_STACK] begin
    cdef bvh tight
    cdef bvh_node* node
    cdef int32_t at, pair
    cdef int top = 1, n, i, k, opened
    cdef int status = bvh_reserve(tree, n_pairs)
    if status != STATUS_OK:
        return status
    leaves = <int32_t*>malloc(<size_t>n_pairs * sizeof(int32_t))
    if leaves == NULL:
        free(tree.block)
        tree.block = NULL
        tree.nodes = NULL
        return STATUS_NO_MEMORY
    # Children are numbered after their parents.
    for pair in range(n_pairs - 1, -1, -1):
        leaves[pair] = ((1 if pairs[pair].count0 != 0 else leaves[pairs[pair].child0])
                        + (1 if pairs[pair].count1 != 0 else leaves[pairs[pair].child1]))
    stack[0] = begin[0] = 0
    tree.n_nodes = 1
    while top > 0:
        top -= 1
        at = stack[top]
        pair = begin[top]
        children[0] = _side_of(&pairs[pair], 0)
        children[1] = _side_of(&pairs[pair], 1)
        n = 2
        while n < BVH_LANES:
            opened = _to_open(children, n, leaves)
            if opened < 0:
                break
            pair = children[opened].child
            children[opened] = _side_of(&pairs[pair], 0)
            children[n] = _side_of(&pairs[pair], 1)
            n += 1
        node = &tree.nodes[at]
        for i in range(BVH_LANES):
            if i >= n or children[i].count < 0:
                _clear(node, i)
                continue
            for k in range(3):
                node.lo[k][i] = children[i].lo[k]
                node.hi[k][i] = children[i].hi[k]
            node.child[i] = children[i].child
            node.count[i] = children[i].count
            if children[i].count == 0:
                node.child[i] = stack[top] = tree.n_nodes
                begin[top] = children[i].child
                tree.n_nodes += 1
                top += 1
    free(leaves)
    # Memory for as many as there are.
    tight.block = NULL
    if bvh_reserve(&tight, tree.n_nodes) == STATUS_OK:
        memcpy(tight.nodes, tree.nodes, <size_t>tree.n_nodes * sizeof(bvh_node))
        free(tree.block)
        tree.block = tight.block
        tree.nodes = tight.nodes
    return STATUS_OK


cdef int bvh_reserve(bvh* tree, Py_ssize_t n) noexcept nogil:
    cdef uintptr_t at
    tree.block = malloc(<size_t>n * sizeof(bvh_node) + ALIGNED)
    if tree.block == NULL:
        tree.nodes = NULL
        return STATUS_NO_MEMORY
    at = (<uintptr_t>tree.block + ALIGNED - 1) // ALIGNED * ALIGNED
    tree.nodes = <bvh_node*>at
    return STATUS_OK


cdef double _span_of(const build_range* r) noexcept nogil:
    cdef double span = 0.0
    cdef int k
    for k in range(3):
        span = f_max(span, f_max(fabs(<double>r.lo[k]), fabs(<double>r.hi[k])))
    return span


cdef int bvh_build_items(bvh* tree, bvh_item* given, int32_t n, int threads) noexcept nogil:
    cdef build_item* items = <build_item*>given
    cdef build_job job
    cdef build_range job_range, right
    cdef pair_node* pairs
    cdef pair_node one
    cdef int32_t i
    cdef int status = STATUS_OK
    memset(tree, 0, sizeof(bvh))
    if n <= 0:
        return STATUS_OK
    tree.n_items = n
    _start(&job_range, 0, n)
    for i in range(n):
        _take(&job_range, &items[i])
    tree.span = _span_of(&job_range)
    if n <= BVH_LEAF:
        # The root is a node even if one leaf contains all items.
        _start(&right, n, n)
        _hang(&one, 0, &job_range, 0, n)
        _hang(&one, 1, &right, 0, -1)
        return _widen(tree, &one, 1)
    memset(&job, 0, sizeof(build_job))
    job.items = items
    pairs = NULL
    status = _build_top(&job, &job_range)
    if status == STATUS_OK:
        # Each inner node splits, and leaves have at least one item: a subtree has fewer nodes than
        # items.
        pairs = <pair_node*>malloc((<size_t>n + job.n_top) * sizeof(pair_node))
        if pairs == NULL:
            status = STATUS_NO_MEMORY
    if status == STATUS_OK:
        for i in range(job.n_pieces):
            job.pieces[i].nodes = &pairs[job.n_top + job.pieces[i].root.items.first]
        pool_run(_build_pieces, &job, job.n_pieces, 1, threads)
        status = _widen(tree, pairs, _gather(&job, pairs))
    free(pairs)
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
        memset(tree, 0, sizeof(bvh))
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
    free(tree.block)
    free(tree.order)
    tree.block = NULL
    tree.nodes = NULL
    tree.order = NULL
    tree.n_nodes = 0
    tree.n_items = 0


cdef void bvh_fill_block(bvh_block* block, const vec3* corners, int n) noexcept nogil:
    cdef vec3 lo = corners[0], hi = corners[0]
    cdef double[3] at
    cdef double largest
    cdef const vec3* p
    cdef int i, k, c
    for i in range(1, 3 * n):
        lo = v3_min(lo, corners[i])
        hi = v3_max(hi, corners[i])
    block.base[0] = f32_below(lo.x)
    block.base[1] = f32_below(lo.y)
    block.base[2] = f32_below(lo.z)
    largest = f_max(hi.x - block.base[0], f_max(hi.y - block.base[1], hi.z - block.base[2]))
    # A step is never shorter than 1e-30 m, and the last one lies in range.
    block.per = <float>(254.5 / f_max(largest, 1e-25))
    for i in range(BVH_LANES):
        for c in range(3):
            p = &corners[3 * (i if i < n else n - 1) + c]
            at[0] = p.x - block.base[0]
            at[1] = p.y - block.base[1]
            at[2] = p.z - block.base[2]
            for k in range(3):
                block.steps[3 * c + k][i] = <uint8_t>(at[k] * block.per + 0.5)


# ---------------------------------------------------------------- walks

cdef inline bint _leaf_inside(const bvh* tree, int32_t first, int32_t count) noexcept nogil:
    return 0 <= first < tree.n_items and count <= tree.n_items - first


cdef inline bint _node_inside(const bvh* tree, int32_t parent, int32_t child) noexcept nogil:
    # Children are numbered after their parents, so a path has no cycle.
    return parent < child < tree.n_nodes


cdef inline bint _touch(const bvh_node* node, int lane, const box32* b) noexcept nogil:
    cdef int k
    for k in range(3):
        if not (node.lo[k][lane] <= b.hi[k] and node.hi[k][lane] >= b.lo[k]):
            return False
    return True


cdef int32_t _collect_checked(const bvh* tree, const box32* box, int32_t* places, int32_t capacity) noexcept nogil:
    """`bvh_collect` in an untrusted tree."""
    cdef int32_t[BVH_STACK] stack
    cdef int top = 1, lane
    cdef int32_t found = 0, left = tree.n_nodes, i, at, child, count
    cdef const bvh_node* node
    stack[0] = 0
    while top > 0 and left > 0:
        top -= 1
        left -= 1
        at = stack[top]
        node = &tree.nodes[at]
        for lane in range(BVH_LANES):
            child, count = node.child[lane], node.count[lane]
            if count < 0 or not _touch(node, lane, box):
                continue
            if count == 0:
                if _node_inside(tree, at, child) and top < BVH_STACK:
                    stack[top] = child
                    top += 1
            elif _leaf_inside(tree, child, count):
                for i in range(child, child + count):
                    # Leaves with shared items must not exhaust the memory.
                    if found < tree.n_items and tree.check(tree.owner, i):
                        if found < capacity:
                            places[found] = i
                        found += 1
    return found


cdef int bvh_verify(const bvh* tree) noexcept nogil:
    cdef int32_t[BVH_STACK] stack
    cdef int top = 1, lane
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
        for lane in range(BVH_LANES):
            child, count = node.child[lane], node.count[lane]
            if count < 0:
                continue
            if count == 0:
                if left <= 0 or top == BVH_STACK or not _node_inside(tree, at, child):
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


cdef int32_t bvh_collect(const bvh* tree, const box32* box, int32_t* places, int32_t capacity) noexcept nogil:
    if tree.n_nodes == 0:
        return 0
    if tree.check != NULL:
        return _collect_checked(tree, box, places, capacity)
    return w8_collect(<const w8_node*>tree.nodes, box.lo, box.hi, places, capacity)


cdef inline double _inverse(double d) noexcept nogil:
    # A slower motion across an axis counts as none, so that the products stay finite.
    return 1e30 if -1e-30 < d < 1e-30 else 1.0 / d


cdef inline void _walk_from(bvh_walk* w, const bvh* tree, aabb box) noexcept nogil:
    cdef double slack
    w.nodes = tree.nodes
    w.check = tree.check
    w.owner = tree.owner
    w.n_nodes = w.left = tree.n_nodes
    w.n_items = tree.n_items
    w.run = w.run_end = 0
    w.top = 0
    w.factor = 1.0
    if tree.n_nodes == 0:
        return
    slack = MARGIN * f_max(v3_max_abs(v3_max(v3_abs(box.lo), v3_abs(box.hi))), tree.span)
    w.above[0] = box.hi.x + slack
    w.above[1] = box.hi.y + slack
    w.above[2] = box.hi.z + slack
    w.below[0] = box.lo.x - slack
    w.below[1] = box.lo.y - slack
    w.below[2] = box.lo.z - slack
    w.entries[0].node = 0
    w.entries[0].count = 0
    w.entries[0].when = 0.0
    w.top = 1


cdef void bvh_walk_start(bvh_walk* w, const bvh* tree, aabb box, vec3 motion) noexcept nogil:
    cdef double[3] inverse
    cdef int k
    _walk_from(w, tree, box)
    w.near = False
    inverse[0] = _inverse(motion.x)
    inverse[1] = _inverse(motion.y)
    inverse[2] = _inverse(motion.z)
    for k in range(3):
        w.inverse[k] = <float>inverse[k]
        w.negative[k] = inverse[k] < 0.0
        # The box enters with its upper corner where it goes up.
        if inverse[k] < 0.0:
            w.enter[k] = w8_down(w.below[k])
            w.leave[k] = w8_up(w.above[k])
        else:
            w.enter[k] = w8_up(w.above[k])
            w.leave[k] = w8_down(w.below[k])


cdef void bvh_walk_near(bvh_walk* w, const bvh* tree, aabb box, double factor) noexcept nogil:
    cdef int k
    _walk_from(w, tree, box)
    w.near = True
    w.factor = factor
    for k in range(3):
        w.enter[k] = w8_up(w.above[k])
        w.leave[k] = w8_down(w.below[k])


cdef bint bvh_walk_next(bvh_walk* w, double limit, int32_t* first, int32_t* count) noexcept nogil:
    return w8_next(<w8_walk*>w, limit, first, count)


cdef bint bvh_walk_ray(bvh_walk* w, const bvh_ray* r, const bvh_block* blocks, double limit, int32_t* first,
                       uint32_t* bits) noexcept nogil:
    return w8_next_ray(<w8_walk*>w, <const w8_ray*>r, <const w8_block*>blocks, limit, first, bits)


cdef bint bvh_walk_boxes(bvh_walk* w, const bvh_block* blocks, double limit, int32_t* first,
                         uint32_t* bits) noexcept nogil:
    return w8_next_box(<w8_walk*>w, <const w8_block*>blocks, limit, first, bits)


cdef uint32_t bvh_walk_mask(const bvh_walk* w, const bvh_node* node, double limit) noexcept nogil:
    return w8_mask(<const w8_walk*>w, <const w8_node*>node, limit)


cdef void bvh_walk_ray_start(bvh_walk* w, bvh_ray* r, const bvh* tree, vec3 origin, vec3 dir, double slack,
                             bint front_only) noexcept nogil:
    cdef vec3 m = v3_abs(dir)
    cdef double size = v3_max_abs(origin), margin = MARGIN * f_max(size, tree.span), one
    # Twice, for the rounding of the origin in the tree's frame and of the boxes; and for that of a
    # float32.
    cdef double grown = 2.1 * margin + 1.5e-7 * size + 1e-37, enter, leave
    cdef double[3] o
    cdef double[3] d
    cdef int k, kx, ky, kz
    o[0], o[1], o[2] = origin.x, origin.y, origin.z
    d[0], d[1], d[2] = dir.x, dir.y, dir.z
    w.nodes = tree.nodes
    w.check = tree.check
    w.owner = tree.owner
    w.n_nodes = w.left = tree.n_nodes
    w.n_items = tree.n_items
    w.run = w.run_end = 0
    w.factor = 1.0
    w.near = False
    w.entries[0].node = 0
    w.entries[0].count = 0
    w.entries[0].when = 0.0
    w.top = 1 if tree.n_nodes > 0 else 0
    for k in range(3):
        one = _inverse(d[k])
        w.inverse[k] = <float>one
        w.negative[k] = one < 0.0
        # The point enters with its upper corner where it goes up.
        enter, leave = (o[k] - grown, o[k] + grown) if one < 0.0 else (o[k] + grown, o[k] - grown)
        if size < 1e37:
            w.enter[k], w.leave[k] = <float>enter, <float>leave
        elif one < 0.0:
            w.enter[k], w.leave[k] = w8_down(enter), w8_up(leave)
        else:
            w.enter[k], w.leave[k] = w8_up(enter), w8_down(leave)
        r.origin[k] = o[k]
    r.margin = margin + slack
    kz = 0 if m.x >= m.y and m.x >= m.z else (1 if m.y >= m.z else 2)
    kx = kz + 1 if kz < 2 else 0
    ky = 3 - kx - kz
    # Seen along the ray, corners keep their sense of rotation.
    r.kx = ky if d[kz] < 0.0 else kx
    r.ky = kx if d[kz] < 0.0 else ky
    r.kz = kz
    r.forward = -1.0 if d[kz] < 0.0 else 1.0
    r.reach = fabs(d[kz])
    r.sx = <float>(d[r.kx] / d[kz])
    r.sy = <float>(d[r.ky] / d[kz])
    r.front_only = front_only


# ---------------------------------------------------------------- trees that change

cdef inline double _lane_area(const bvh_node* node, int lane) noexcept nogil:
    cdef double x = <double>node.hi[0][lane] - node.lo[0][lane]
    cdef double y = <double>node.hi[1][lane] - node.lo[1][lane]
    cdef double z = <double>node.hi[2][lane] - node.lo[2][lane]
    if x < 0.0:
        return 0.0
    return x * y + y * z + z * x


cdef void bvh_link(const bvh* tree, int32_t* above, int32_t* slot) noexcept nogil:
    cdef const bvh_node* node
    cdef int32_t i, k, lane, child, count
    if tree.n_nodes > 0:
        above[0] = -1
    for i in range(tree.n_nodes):
        node = &tree.nodes[i]
        for lane in range(BVH_LANES):
            child, count = node.child[lane], node.count[lane]
            if count == 0:
                above[child] = BVH_LANES * i + lane
            for k in range(child, child + count):
                slot[tree.order[k]] = BVH_LANES * i + lane


cdef double bvh_area(const bvh* tree) noexcept nogil:
    cdef double area = 0.0
    cdef int32_t i, lane
    for i in range(tree.n_nodes):
        for lane in range(BVH_LANES):
            area += _lane_area(&tree.nodes[i], lane)
    return area


cdef void _fit(bvh* tree, const box32* boxes, int32_t i, int32_t lane) noexcept nogil:
    """Fit the box of one slot to its leaf or node."""
    cdef bvh_node* node = &tree.nodes[i]
    cdef int32_t child = node.child[lane], count = node.count[lane]
    cdef const bvh_node* below
    cdef const box32* box
    cdef float[3] lo
    cdef float[3] hi
    cdef int32_t j
    cdef int k
    for k in range(3):
        lo[k] = <float>3e38
        hi[k] = <float>-3e38
    if count == 0:
        below = &tree.nodes[child]
        for k in range(3):
            # Empty places have inverted boxes.
            for j in range(BVH_LANES):
                lo[k] = below.lo[k][j] if below.lo[k][j] < lo[k] else lo[k]
                hi[k] = below.hi[k][j] if below.hi[k][j] > hi[k] else hi[k]
    for j in range(child, child + count):
        box = &boxes[tree.order[j]]
        for k in range(3):
            lo[k] = box.lo[k] if box.lo[k] < lo[k] else lo[k]
            hi[k] = box.hi[k] if box.hi[k] > hi[k] else hi[k]
            tree.span = f_max(tree.span, f_max(-<double>box.lo[k], <double>box.hi[k]))
    for k in range(3):
        node.lo[k][lane] = lo[k]
        node.hi[k][lane] = hi[k]


cdef void bvh_refit(bvh* tree, const box32* boxes) noexcept nogil:
    # Children are numbered after their parents.
    cdef int32_t i, lane
    for i in range(tree.n_nodes - 1, -1, -1):
        for lane in range(BVH_LANES):
            _fit(tree, boxes, i, lane)


cdef double bvh_refit_slot(bvh* tree, const box32* boxes, const int32_t* above, int32_t slot) noexcept nogil:
    cdef double growth = 0.0
    cdef float[6] before
    cdef bvh_node* node
    cdef int32_t lane
    cdef bint same
    cdef int k
    while slot >= 0:
        node = &tree.nodes[slot // BVH_LANES]
        lane = slot % BVH_LANES
        growth -= _lane_area(node, lane)
        for k in range(3):
            before[k] = node.lo[k][lane]
            before[3 + k] = node.hi[k][lane]
        _fit(tree, boxes, slot // BVH_LANES, lane)
        growth += _lane_area(node, lane)
        same = True
        for k in range(3):
            same &= before[k] == node.lo[k][lane] and before[3 + k] == node.hi[k][lane]
        if same:
            break
        slot = above[slot // BVH_LANES]
    return growth


cdef double bvh_remove(bvh* tree, const box32* boxes, const int32_t* above, int32_t* slot, int32_t item) noexcept nogil:
    cdef int32_t s = slot[item]
    cdef bvh_node* node = &tree.nodes[s // BVH_LANES]
    cdef int32_t lane = s % BVH_LANES
    cdef int32_t first = node.child[lane], count = node.count[lane]
    cdef int32_t j = first
    while tree.order[j] != item:
        j += 1
    tree.order[j] = tree.order[first + count - 1]
    tree.order[first + count - 1] = -1
    node.count[lane] = count - 1 if count > 1 else -1
    if count == 1:
        node.child[lane] = 0
    slot[item] = -1
    return bvh_refit_slot(tree, boxes, above, s)


cdef double _growth_of(const bvh_node* node, int lane, const box32* box) noexcept nogil:
    """By how much the area of a place grows when it takes a box in."""
    cdef float[3] lo
    cdef float[3] hi
    cdef int k
    for k in range(3):
        lo[k] = node.lo[k][lane] if node.lo[k][lane] < box.lo[k] else box.lo[k]
        hi[k] = node.hi[k][lane] if node.hi[k][lane] > box.hi[k] else box.hi[k]
    return _half_area(lo, hi) - _lane_area(node, lane)


cdef double bvh_insert(bvh* tree, const box32* boxes, int32_t* above, int32_t* slot, int32_t item) noexcept nogil:
    cdef const box32* box = &boxes[item]
    cdef int32_t at = 0, depth = 1, child, count, j, k, lane, empty
    cdef double growth, lowest_cost
    cdef bvh_node* node
    cdef bvh_node* fresh
    while True:
        node = &tree.nodes[at]
        # Where the box grows least.
        lowest_cost = 0.0
        lane = empty = -1
        for k in range(BVH_LANES):
            if node.count[k] < 0:
                if empty < 0:
                    empty = k
                continue
            growth = _growth_of(node, k, box)
            if lane < 0 or growth < lowest_cost:
                lane = k
                lowest_cost = growth
        if lane < 0 or node.count[lane] > 0:
            break
        at = node.child[lane]
        depth += 1
        if depth > BVH_MAX_DEPTH - 4:
            return NAN
    tree.order[tree.n_items] = item
    growth = 0.0
    if empty >= 0:
        # Beside the leaf that is nearest.
        lane = empty
    else:
        child, count = node.child[lane], node.count[lane]
        fresh = &tree.nodes[tree.n_nodes]
        for k in range(BVH_LANES):
            _clear(fresh, k)
        fresh.child[0], fresh.count[0] = child, count
        for j in range(3):
            fresh.lo[j][0] = node.lo[j][lane]
            fresh.hi[j][0] = node.hi[j][lane]
        growth = _lane_area(fresh, 0)
        above[tree.n_nodes] = BVH_LANES * at + lane
        for j in range(child, child + count):
            slot[tree.order[j]] = BVH_LANES * tree.n_nodes
        node.child[lane], node.count[lane] = tree.n_nodes, 0
        at = tree.n_nodes
        lane = 1
        node = fresh
        tree.n_nodes += 1
    node.child[lane], node.count[lane] = tree.n_items, 1
    slot[item] = BVH_LANES * at + lane
    tree.n_items += 1
    return growth + bvh_refit_slot(tree, boxes, above, slot[item])


# ---------------------------------------------------------------- instruction sets

def instruction_set():
    """Name of the instruction set that walks through trees use: 'avx2' or 'base'."""
    return "avx2" if w8_set == W8_AVX2 else "base"


def use_instruction_set(name):
    """Make walks use another instruction set, for tests: 'base', or 'best' for what the processor
    has.
    """
    global w8_set
    if name == "best":
        w8_start()
    elif name == "base":
        w8_set = W8_BASE
    else:
        raise ValueError(f"name must be 'base' or 'best', not {name!r}")


w8_start()
if W8_STACK != BVH_STACK or W8_LANES != BVH_LANES or sizeof(bvh_walk) != sizeof(w8_walk):
    raise ImportError("pycct: wide8.h and bvh.pxd disagree")
if sizeof(bvh_node) != sizeof(w8_node) or sizeof(bvh_block) != sizeof(w8_block) or sizeof(bvh_ray) != sizeof(w8_ray):
    raise ImportError("pycct: wide8.h and bvh.pxd disagree")
