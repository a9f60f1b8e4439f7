# cython: language_level=3
"""A static tree over boxes: build and walk.

Boxes are float32 and only decide what to look at, so they are always rounded
outwards; whoever walks the tree tests the exact geometry afterwards. The tree
depends on the order of its items, what a walk finds does not.

A tree that came from a file may hold anything: a walk through one that has a ``check``
looks at every index before it follows it, stops after as many nodes as there are, and
passes over places that the check refuses.
"""
from libc.stdint cimport int32_t

from pycct.geometry.vec cimport aabb, vec3

cdef enum:
    BVH_LEAF = 4            # most items in a leaf
    BVH_MAX_DEPTH = 60      # a walk needs one stack entry a level


# One cache line: the boxes of both children.
cdef struct bvh_node:
    float[3] lo0
    float[3] hi0
    float[3] lo1
    float[3] hi1
    int32_t child0      # index of a node, or of the first item of a leaf
    int32_t child1
    int32_t count0      # 0: a node; otherwise the number of items in the leaf; -1: nothing
    int32_t count1


# Whether what stands at a place of the leaves can be used.
ctypedef bint (*bvh_check)(const void* owner, int32_t place) noexcept nogil


cdef struct bvh:
    int32_t n_nodes
    int32_t n_items
    bvh_node* nodes
    int32_t* order      # item at each place of the leaves
    bvh_check check     # NULL: the tree was built here and holds no wrong index
    const void* owner   # what the check is told


cdef struct box32:
    float[3] lo
    float[3] hi


# A box to build over: four lanes each, so that the compiler can take them at once; those left over are the caller's.
cdef struct bvh_item:
    float[3] lo
    int32_t number
    float[3] hi
    int32_t mark


cdef float f32_below(double x) noexcept nogil
cdef float f32_above(double x) noexcept nogil
cdef box32 box32_around(aabb b) noexcept nogil

# Build over n boxes. Returns a status; on success the caller owns nodes and order
# (bvh_free).
cdef int bvh_build(bvh* tree, const box32* boxes, int32_t n) noexcept nogil
# The same over items, which come to stand in the order of the leaves; there is no ``order``. The tree is the same for
# any number of threads.
cdef int bvh_build_items(bvh* tree, bvh_item* items, int32_t n, int threads) noexcept nogil
cdef void bvh_free(bvh* tree) noexcept nogil
# Whether a walk can meet each item, once: indices in range, no deeper than a walk's stack,
# and nothing that the check refuses: 1, else 0; STATUS_NO_MEMORY.
cdef int bvh_verify(const bvh* tree) noexcept nogil

# Places (positions in ``order``) of the items in leaves that the box touches, at
# most ``room``; returns how many there are in all.
cdef int32_t bvh_collect(const bvh* tree, const box32* box, int32_t* places, int32_t room) noexcept nogil


cdef struct walk_entry:
    double when
    int32_t node        # index of a node, or of the first item of a leaf
    int32_t count       # 0: a node


# A box on its way through the tree: leaves come roughly in the order in which they are met.
cdef struct bvh_walk:
    const bvh* tree
    vec3 origin
    vec3 half
    vec3 inverse        # 1 / motion
    bint near           # no motion: by distance
    double factor       # what a unit of the tree's frame is worth
    int32_t top
    int32_t left            # nodes that a checked walk may still open
    walk_entry[2 * BVH_MAX_DEPTH] entries


# The box moves by motion * t, t >= 0; motion 0 asks for what the box touches.
cdef void bvh_walk_start(bvh_walk* w, const bvh* tree, aabb box, vec3 motion) noexcept nogil
# The next leaf that the box can touch by ``limit`` (which may shrink from call to
# call): its places in ``order``. False: there are no more.
cdef bint bvh_walk_next(bvh_walk* w, double limit, int32_t* first, int32_t* count) noexcept nogil
# Leaves by their distance from the box instead: ``limit`` of bvh_walk_next is then a distance, in
# units of which the tree's frame has ``factor`` (at least) each.
cdef void bvh_walk_near(bvh_walk* w, const bvh* tree, aabb box, double factor) noexcept nogil


# --- trees that change -----------------------------------------------------------------
# A slot is 2 * node + side: where a leaf or a node hangs. ``above`` holds the slot that each node hangs on (-1: the
# root), ``slot`` the slot of each item (as ``order`` numbers them; others are left alone), ``boxes`` the box of each.

cdef void bvh_link(const bvh* tree, int32_t* above, int32_t* slot) noexcept nogil
# Sum of the half areas of all boxes: how much a walk has to open.
cdef double bvh_area(const bvh* tree) noexcept nogil
# Fit all boxes to those of the items.
cdef void bvh_refit(bvh* tree, const box32* boxes) noexcept nogil
# Fit those on the way from a slot to the root; returns by how much the sum of areas grew.
cdef double bvh_refit_slot(bvh* tree, const box32* boxes, const int32_t* above, int32_t slot) noexcept nogil
# Take an item out, or add one at the end of ``order``; there must be room for a place and a node. They return the
# growth of the sum of areas; bvh_insert NAN, and nothing has changed, when the tree is too deep there.
cdef double bvh_remove(bvh* tree, const box32* boxes, const int32_t* above, int32_t* slot, int32_t item) noexcept nogil
cdef double bvh_insert(bvh* tree, const box32* boxes, int32_t* above, int32_t* slot, int32_t item) noexcept nogil
