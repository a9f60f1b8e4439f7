# cython: language_level=3
"""Queries for Python: checked arguments, results as objects or arrays."""
from libc.stdint cimport int32_t

from pycct.geometry.vec cimport vec3
from pycct.world.candidates cimport broadphase_layer


# Data of a query: up to three layers, and the owners of their items.
cdef class View:
    cdef const broadphase_layer* fixed        # NULL: not included
    cdef const broadphase_layer* moving
    cdef const broadphase_layer* characters
    cdef list fixed_owners              # Actor of each item
    cdef list moving_owners
    cdef const int32_t* groups          # of each character
    cdef object character_owners        # controller or member of a crowd of each item
    cdef object keep                    # keeps the layers alive
    cdef bint first_only                # only whether there is a hit matters
    cdef object owner(self, int layer_index, int item)


# Bodies of the Scene methods of the same names.
cdef object ask_raycast(View view, object origin, object direction, object distance, object mask, object filter)
cdef list ask_raycast_all(View view, object origin, object direction, object distance, object mask, object filter)
cdef object ask_raycast_many(View view, object origins, object directions, object distances, object mask,
                             object filter, dict options)
cdef object ask_visible(View view, object a, object b, object mask, object filter, object exclude)
cdef object ask_visible_many(View view, object a, object b, object mask, object filter, object threads, object out,
                             object exclude, object group)
cdef object ask_sweep(View view, object shape, object position, object direction, object distance, object rotation,
                      object mask, object filter)
cdef object ask_sweep_many(View view, object shape, object positions, object directions, object distances,
                           object rotations, object mask, object filter, dict options)
cdef list ask_touching(View view, object shape, object position, object rotation, object mask, object filter,
                       bint ways_out)
cdef object ask_touching_many(View view, object shape, object positions, object rotations, object mask,
                              object filter, bint ways_out, dict options)
cdef object ask_closest(View view, object shape, object position, object max_distance, object rotation, object mask,
                        object filter)
cdef object ask_closest_many(View view, object shape, object positions, object max_distance, object rotations,
                             object mask, object filter, dict options)
