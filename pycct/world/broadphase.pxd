# cython: language_level=3
"""Layers of colliders with a tree: the immutable parts of a snapshot."""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pycct.spatial.bvh cimport box32
from pycct.world.candidates cimport broadphase_layer


# Immutable once published, except for layers without readers, which may be updated and published
# again.
cdef class BroadphaseLayer:
    cdef broadphase_layer data
    cdef list owners            # Actor (or character) of each item; keeps the shapes alive
    cdef box32* boxes           # of each item, as in the tree
    cdef int32_t* slot          # of each item, as bvh numbers them; -1: endless
    cdef int32_t* above         # of each node
    cdef double area            # of the tree, see bvh_area
    cdef double fresh_area      # when it was built
    cdef int64_t patches        # number of items moved, added or removed since then
    # Issues a new version number, so that users of the old one look again.
    cdef int renew(self) except -1
    # Builds a tree over the items.
    cdef int build(self) except -1
    # A copy without the items at these places (ascending), with capacity for more and other owners.
    cdef BroadphaseLayer copy_with(self, list gone, Py_ssize_t more, list owners)
    # Applies changed items at these places; those from ``first_new`` on are new.
    cdef int apply_changes(self, list places, int32_t first_new) except -1


# A layer with an item for each owner, to be filled in before `build`.
cdef BroadphaseLayer layer_for(list owners)
# Whether a layer has a single reference; always False on a free-threaded Python, where that is
# unknown.
cdef bint layer_is_idle(PyObject* layer) noexcept
