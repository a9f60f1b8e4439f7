# cython: language_level=3
"""Layers of colliders with a tree. See the header.

Publishing costs only what has changed: an unused layer is reused, its changed items are filled in,
and the boxes above them are refitted. The tree is rebuilt when it is so much worse that walks would
slow down, and only after enough changes that the rebuild costs no more than they do.
"""
from cpython.object cimport PyObject
from libc.math cimport isnan
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cython

from pycct.spatial.bvh cimport (
    box32,
    box32_around,
    bvh_area,
    bvh_build,
    bvh_free,
    bvh_insert,
    bvh_link,
    bvh_reserve,
    bvh_node,
    bvh_refit,
    bvh_refit_slot,
    bvh_remove,
)
from pycct.args.values cimport raise_status
from pycct.geometry.types cimport SHAPE_PLANE, STATUS_NO_MEMORY
from pycct.world.candidates cimport collider, broadphase_layer

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define PYCCT_ONE_REFERENCE(o) 0
    #else
    #define PYCCT_ONE_REFERENCE(o) (Py_REFCNT(o) == 1)
    #endif
    """
    bint one_reference "PYCCT_ONE_REFERENCE"(PyObject* o) noexcept

cdef uint64_t last_version = 0
# Held for one addition: on a free-threaded build two scenes may publish at once.
cdef object counting = object()

# The tree is rebuilt if the sum of its areas has grown by this factor, and after changes to this
# share of its items.
cdef double WORN = 1.5
cdef double PATCHED_SHARE = 0.5
# From this share on, refitting all boxes costs less than their paths to the root.
cdef double REBUILD_SHARE = 0.15


cdef bint layer_is_idle(PyObject* layer) noexcept:
    return one_reference(layer)


@cython.final
cdef class BroadphaseLayer:
    def __dealloc__(self):
        free(self.data.items)
        free(self.data.endless)
        free(self.boxes)
        free(self.slot)
        free(self.above)
        bvh_free(&self.data.tree)

    cdef int renew(self) except -1:
        """Issue a new version number, so that users of the old one look again."""
        global last_version
        with cython.critical_section(counting):
            last_version += 1
            self.data.version = last_version
        return 0

    cdef int build(self) except -1:
        cdef int32_t n = self.data.n, bounded = 0, k
        cdef broadphase_layer* data = &self.data
        cdef box32* own = self.boxes
        cdef int32_t* slot = self.slot
        cdef box32* boxes = NULL
        cdef int32_t* which = NULL
        cdef int status = 0
        self.renew()
        if n == 0:
            return 0
        boxes = <box32*>malloc(n * sizeof(box32))
        which = <int32_t*>malloc(n * sizeof(int32_t))
        bvh_free(&self.data.tree)
        if boxes == NULL or which == NULL:
            status = STATUS_NO_MEMORY
        else:
            with nogil:
                bounded = _boxes_of(data, own, slot, boxes, which)
                status = bvh_build(&data.tree, boxes, bounded)
        free(boxes)
        if status == 0:
            for k in range(bounded):
                self.data.tree.order[k] = which[self.data.tree.order[k]]
            free(self.above)
            self.above = <int32_t*>malloc(_least_one(self.data.tree.n_nodes) * sizeof(int32_t))
            if self.above == NULL:
                status = STATUS_NO_MEMORY
        free(which)
        raise_status(status)
        bvh_link(&self.data.tree, self.above, self.slot)
        self.area = self.fresh_area = bvh_area(&self.data.tree)
        self.patches = 0
        return 0

    cdef BroadphaseLayer copy_with(self, list gone, Py_ssize_t more, list owners):
        cdef BroadphaseLayer layer = BroadphaseLayer.__new__(BroadphaseLayer)
        cdef int32_t n = self.data.n, left = n - <int32_t>len(gone), total = left + <int32_t>more
        cdef int32_t i, k, start, run, to
        cdef int32_t* remap
        layer.owners = owners
        _reserve(layer, total)
        layer.data.timestamp = self.data.timestamp
        _copy_tree(layer, self, more)
        layer.area, layer.fresh_area, layer.patches = self.area, self.fresh_area, self.patches + len(gone)
        if not gone:
            _copy_items(layer, self, 0, 0, n)
            if n > 0:
                memcpy(layer.data.endless, self.data.endless, self.data.n_endless * sizeof(int32_t))
            layer.data.n_endless = self.data.n_endless
            layer.renew()
            return layer
        # Remove the items from the copied tree before they are renumbered.
        remap = <int32_t*>malloc(_least_one(n) * sizeof(int32_t))
        if remap == NULL:
            raise MemoryError("pycct: out of memory")
        try:
            start = to = 0
            for i in gone + [n]:
                run = i - start
                _copy_items(layer, self, to, start, run)
                for k in range(run):
                    remap[start + k] = to + k
                if i < n:
                    remap[i] = -1
                to += run
                start = i + 1
            _take_out(layer, self, gone)
            for k in range(layer.data.tree.n_items):
                i = layer.data.tree.order[k]
                layer.data.tree.order[k] = remap[i] if i >= 0 else -1
            for k in range(self.data.n_endless):
                i = remap[self.data.endless[k]]
                if i >= 0:
                    layer.data.endless[layer.data.n_endless] = i
                    layer.data.n_endless += 1
        finally:
            free(remap)
        # Leaves were split and merged, so the items' slots are read from the tree.
        bvh_link(&layer.data.tree, layer.above, layer.slot)
        layer.renew()
        return layer

    cdef int apply_changes(self, list places, int32_t first_new) except -1:
        cdef int32_t i, k
        cdef int32_t n_changes = <int32_t>len(places)
        cdef bint all_at_once = n_changes > REBUILD_SHARE * self.data.n
        cdef bint again = self.data.tree.n_nodes == 0
        cdef double growth
        self.renew()
        for k in range(n_changes):
            i = places[k]
            if self.data.items[i].kind == SHAPE_PLANE:
                if i >= first_new:
                    self.slot[i] = -1
                    self.data.endless[self.data.n_endless] = i
                    self.data.n_endless += 1
                continue
            self.boxes[i] = box32_around(self.data.items[i].bounds)
            if again:
                continue
            if i >= first_new:
                growth = bvh_insert(&self.data.tree, self.boxes, self.above, self.slot, i)
                if isnan(growth):
                    again = True
                else:
                    self.area += growth
            elif not all_at_once:
                self.area += bvh_refit_slot(&self.data.tree, self.boxes, self.above, self.slot[i])
        self.patches += n_changes
        if all_at_once and not again:
            bvh_refit(&self.data.tree, self.boxes)
            self.area = bvh_area(&self.data.tree)
        # Added and removed items leave empty places and nodes behind.
        again |= self.data.tree.n_items > 1.5 * self.data.n + 64 or self.data.tree.n_nodes > 1.25 * self.data.n + 64
        if again or (self.area > WORN * self.fresh_area and self.patches > PATCHED_SHARE * self.data.n):
            self.build()
        return 0


cdef int32_t _boxes_of(broadphase_layer* data, box32* own, int32_t* slot, box32* boxes, int32_t* which) noexcept nogil:
    """Collect the boxes of bounded items, and their indices; return their number."""
    cdef int32_t i, bounded = 0
    data.n_endless = 0
    for i in range(data.n):
        slot[i] = -1
        if data.items[i].kind == SHAPE_PLANE:
            data.endless[data.n_endless] = i
            data.n_endless += 1
        else:
            own[i] = boxes[bounded] = box32_around(data.items[i].bounds)
            which[bounded] = i
            bounded += 1
    return bounded


cdef inline Py_ssize_t _least_one(Py_ssize_t n) noexcept nogil:
    return n if n > 0 else 1


cdef BroadphaseLayer layer_for(list owners):
    cdef BroadphaseLayer layer = BroadphaseLayer.__new__(BroadphaseLayer)
    layer.owners = owners
    _reserve(layer, len(owners))
    return layer


cdef int _reserve(BroadphaseLayer layer, Py_ssize_t n) except -1:
    if n > 2**31 - 1:
        raise ValueError("a scene can hold at most 2**31 - 1 actors")
    layer.data.n = <int32_t>n
    if n > 0:
        layer.data.items = <collider*>malloc(n * sizeof(collider))
        layer.data.endless = <int32_t*>malloc(n * sizeof(int32_t))
        layer.boxes = <box32*>malloc(n * sizeof(box32))
        layer.slot = <int32_t*>malloc(n * sizeof(int32_t))
        if layer.data.items == NULL or layer.data.endless == NULL or layer.boxes == NULL or layer.slot == NULL:
            raise MemoryError("pycct: out of memory")
    return 0


cdef int _copy_tree(BroadphaseLayer layer, BroadphaseLayer old, Py_ssize_t more) except -1:
    """Copy the tree of another layer, with capacity for more items."""
    cdef Py_ssize_t nodes = old.data.tree.n_nodes, places = old.data.tree.n_items
    bvh_reserve(&layer.data.tree, _least_one(nodes + more))
    layer.data.tree.order = <int32_t*>malloc(_least_one(places + more) * sizeof(int32_t))
    layer.above = <int32_t*>malloc(_least_one(nodes + more) * sizeof(int32_t))
    if layer.data.tree.nodes == NULL or layer.data.tree.order == NULL or layer.above == NULL:
        raise MemoryError("pycct: out of memory")
    layer.data.tree.n_nodes = <int32_t>nodes
    layer.data.tree.n_items = <int32_t>places
    layer.data.tree.span = old.data.tree.span
    if nodes > 0:
        memcpy(layer.data.tree.nodes, old.data.tree.nodes, nodes * sizeof(bvh_node))
        memcpy(layer.data.tree.order, old.data.tree.order, places * sizeof(int32_t))
        memcpy(layer.above, old.above, nodes * sizeof(int32_t))
    return 0


cdef void _copy_items(BroadphaseLayer layer, BroadphaseLayer old, int32_t to, int32_t start, int32_t n) noexcept:
    if n > 0:
        memcpy(&layer.data.items[to], &old.data.items[start], n * sizeof(collider))
        memcpy(&layer.boxes[to], &old.boxes[start], n * sizeof(box32))
        memcpy(&layer.slot[to], &old.slot[start], n * sizeof(int32_t))


cdef int _take_out(BroadphaseLayer layer, BroadphaseLayer old, list gone) except -1:
    """Remove items from the copied tree by their old numbers."""
    cdef int32_t n = old.data.n, i
    cdef int32_t* slot = <int32_t*>malloc(n * sizeof(int32_t))
    if slot == NULL:
        raise MemoryError("pycct: out of memory")
    memcpy(slot, old.slot, n * sizeof(int32_t))
    for i in gone:
        if slot[i] >= 0:
            layer.area += bvh_remove(&layer.data.tree, old.boxes, layer.above, slot, i)
    free(slot)
    return 0
