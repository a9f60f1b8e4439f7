# cython: language_level=3
"""Shapes placed in the world, frozen, with a tree over them: the pictures that moves read."""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pycct.spatial.bvh cimport box32
from pycct.world.candidates cimport broadphase_layer


# Immutable once published, but for parts that nobody looks at any more: those may be brought up to date and
# published again.
cdef class BroadphaseLayer:
    cdef broadphase_layer data
    cdef list owners            # Actor (or character) of each item; keeps the shapes alive
    cdef box32* boxes           # of each item, as the tree has it
    cdef int32_t* slot          # of each item, as _bvh numbers them; -1: endless
    cdef int32_t* above         # of each node
    cdef double area            # of the tree, see bvh_area
    cdef double fresh_area      # when it was built
    cdef int64_t patches        # items moved, added or taken out since then
    # Another version number: whoever remembers the part by it looks again.
    cdef int renew(self) except -1
    # A tree over items that have been filled in.
    cdef int build(self) except -1
    # The same again, without the items at these places (ascending), with room for more and other owners.
    cdef BroadphaseLayer copy_with(self, list gone, Py_ssize_t more, list owners)
    # Items at these places have been filled in anew; those from ``first_new`` on for the first time.
    cdef int apply_changes(self, list places, int32_t first_new) except -1


# Room for an item for each owner, to be filled in before `build`.
cdef BroadphaseLayer layer_for(list owners)
# Whether there is one reference to a part; never on a free-threaded Python, where that cannot be known.
cdef bint layer_is_idle(PyObject* part) noexcept
