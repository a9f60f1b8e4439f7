# cython: language_level=3
"""A static tree of boxes: build and walk.

Boxes are float32 and only reject items, so they are always rounded outwards; callers then test the
exact geometry. The tree depends on the order of its items, but the results of a walk do not.

A tree from a file may contain anything. A walk through a tree with a ``check`` tests every index
before it follows it, stops after as many nodes as the tree has, and skips places that the check
rejects.
"""
from libc.stdint cimport int32_t, uint8_t, uint32_t

from pycct.geometry.vec cimport aabb, vec3

cdef enum:
    BVH_LANES = 8           # children of a node
    BVH_LEAF = 4            # most items in a leaf
    BVH_MAX_DEPTH = 60      # a walk needs seven stack entries a level
    BVH_STACK = 480


# Four cache lines: the boxes of eight children, by axis and lane, so that one instruction takes all
# of them. wide8.h declares the same struct. An empty place has an inverted box.
cdef struct bvh_node:
    float[3][BVH_LANES] lo
    float[3][BVH_LANES] hi
    int32_t[BVH_LANES] child    # index of a node, or of the first item of a leaf
    int32_t[BVH_LANES] count    # 0: a node; otherwise the number of items in the leaf; -1: nothing


# Whether the item at a place of the leaves is usable.
ctypedef bint (*bvh_check)(const void* owner, int32_t place) noexcept nogil


cdef struct bvh:
    int32_t n_nodes
    int32_t n_items
    bvh_node* nodes     # at a multiple of 64 bytes inside of ``block``, or in a file
    void* block         # memory of the nodes; NULL: it is not the tree's own
    double span         # no box reaches farther from the origin along an axis
    int32_t* order      # item at each place of the leaves
    bvh_check check     # NULL: the tree was built here and contains no wrong index
    const void* owner   # argument of the check


cdef struct box32:
    float[3] lo
    float[3] hi


# A box for the build, with four lanes for each corner so that the compiler can vectorise. The
# caller may use the unused lanes.
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
# The same over items, which are moved into the order of the leaves; there is no ``order``. The tree
# is the same for any number of threads.
cdef int bvh_build_items(bvh* tree, bvh_item* items, int32_t n, int threads) noexcept nogil
cdef void bvh_free(bvh* tree) noexcept nogil
# Memory for n nodes; a status.
cdef int bvh_reserve(bvh* tree, Py_ssize_t n) noexcept nogil
# Whether a walk can reach each item once: indices in range, no deeper than a walk's stack, and no
# place that the check rejects: 1, else 0; STATUS_NO_MEMORY.
cdef int bvh_verify(const bvh* tree) noexcept nogil

# Places (positions in ``order``) of the items in leaves that the box touches, at most ``room``;
# returns the total number.
cdef int32_t bvh_collect(const bvh* tree, const box32* box, int32_t* places, int32_t capacity) noexcept nogil


# Eight triangles in the order of the leaves, in steps of a grid of their own. They only rule out.
cdef struct bvh_block:
    float[3] base
    float per                           # steps a metre
    uint8_t[9][BVH_LANES] steps         # coordinate (3 * corner + axis) of each triangle


cdef struct walk_entry:
    float when
    int32_t node        # index of a node, or of the first item of a leaf
    int32_t count       # 0: a node


# State of a walk with a moving box: leaves come roughly in the order of contact.
cdef struct bvh_walk:
    const bvh_node* nodes
    bvh_check check
    const void* owner
    int32_t n_nodes
    int32_t n_items
    float[3] enter          # what is subtracted from the planes where the box enters and leaves
    float[3] leave
    float[3] inverse        # 1 / motion
    int32_t[3] negative     # the motion goes down that axis
    int32_t near            # no motion: by squared distance
    int32_t top
    int32_t left            # number of nodes that a checked walk may still open
    int32_t run             # places of a leaf that have not been looked at
    int32_t run_end
    double[3] above         # upper and lower corner of the box
    double[3] below
    double factor           # length of a unit of the tree's frame
    walk_entry[BVH_STACK] entries


# A ray in the frame of a mesh.
cdef struct bvh_ray:
    double[3] origin
    double margin           # m, by which exact triangles may differ from those of the tree's frame
    double reach            # length of the direction along its largest axis
    float sx                # shear that takes the ray to its largest axis
    float sy
    int32_t kx
    int32_t ky
    int32_t kz
    float forward           # 1 or -1: sign of the direction along the largest axis
    int32_t front_only


# The box moves by motion * t, t >= 0; a zero motion finds the items that the box touches.
cdef void bvh_walk_start(bvh_walk* w, const bvh* tree, aabb box, vec3 motion) noexcept nogil
# The next leaf that the box can touch by ``limit`` (which may shrink between calls): its places in
# ``order``. False: no leaf remains.
cdef bint bvh_walk_next(bvh_walk* w, double limit, int32_t* first, int32_t* count) noexcept nogil
# Leaves by their distance from the box: ``limit`` of bvh_walk_next is then a distance, in units of
# which the tree's frame has ``factor`` (at least) each.
cdef void bvh_walk_near(bvh_walk* w, const bvh* tree, aabb box, double factor) noexcept nogil
# A walk with a ray, for `bvh_walk_ray`; ``slack``: by how much the world's triangles may be off, in
# units of the tree's frame.
cdef void bvh_walk_ray_start(bvh_walk* w, bvh_ray* r, const bvh* tree, vec3 origin, vec3 dir, double slack,
                             bint front_only) noexcept nogil
# The next triangles that the ray, or the moving box, may meet by ``limit``: place ``first`` + i for
# each bit i.
cdef bint bvh_walk_ray(bvh_walk* w, const bvh_ray* r, const bvh_block* blocks, double limit, int32_t* first,
                       uint32_t* bits) noexcept nogil
cdef bint bvh_walk_boxes(bvh_walk* w, const bvh_block* blocks, double limit, int32_t* first,
                         uint32_t* bits) noexcept nogil
# A bit for each box of a node that is in no tree: what the moving box may touch by ``limit``.
cdef uint32_t bvh_walk_mask(const bvh_walk* w, const bvh_node* node, double limit) noexcept nogil
# Fill a block with n triangles of three corners each; what is left of it is filled with the last
# one.
cdef void bvh_fill_block(bvh_block* block, const vec3* corners, int n) noexcept nogil


# --- trees that change ---
# A slot is BVH_LANES * node + lane: where a leaf or a node hangs. ``above`` holds the slot that
# each node hangs on (-1: the root), ``slot`` the slot of each item (as ``order`` numbers them;
# others do not change), ``boxes`` the box of each.

cdef void bvh_link(const bvh* tree, int32_t* above, int32_t* slot) noexcept nogil
# Sum of the half areas of all boxes, a measure for the cost of a walk.
cdef double bvh_area(const bvh* tree) noexcept nogil
# Fit all boxes to those of the items.
cdef void bvh_refit(bvh* tree, const box32* boxes) noexcept nogil
# Refits the boxes from a slot to the root; returns the growth of the sum of areas.
cdef double bvh_refit_slot(bvh* tree, const box32* boxes, const int32_t* above, int32_t slot) noexcept nogil
# Remove an item, or add one at the end of ``order``; there must be capacity for a place and a node.
# They return the growth of the sum of areas. bvh_insert returns NAN, with nothing changed, if the
# tree is too deep there.
cdef double bvh_remove(bvh* tree, const box32* boxes, const int32_t* above, int32_t* slot, int32_t item) noexcept nogil
cdef double bvh_insert(bvh* tree, const box32* boxes, int32_t* above, int32_t* slot, int32_t item) noexcept nogil
