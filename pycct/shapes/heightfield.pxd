# cython: language_level=3
"""Heightfields."""
from pycct.shapes.heightfield_cells cimport field_data
from pycct.shapes.primitives cimport Shape


cdef class Heightfield(Shape):
    cdef field_data data_
    cdef object heights_        # arrays that data_ points into
    cdef object cells_
    cdef object data_array
    cdef object mask_array
    cdef object nodes_          # as in Mesh
    cdef object order_
    cdef bint borrowed


# For files: a heightfield over external arrays with unchecked contents. Their shapes and types must
# be right, and the bounds finite.
cdef Heightfield field_over(object heights, object cells, object nodes, object order, object data, object mask,
                            field_data field)
# Checks all indices and numbers of such a heightfield; reads everything.
cdef bint field_sound(Heightfield field) except -1
# Bytes of a tree's nodes, and its order, as read-only arrays that live as long as the shape.
cdef object tree_nodes(Shape shape)
cdef object tree_order(Heightfield shape)
