# cython: language_level=3
"""Corners of a box's faces."""


cdef extern from * nogil:
    """
    #ifndef PYCCT_BOX_FACES
    #define PYCCT_BOX_FACES
    static const int pycct_box_faces[6][4] = {
        {0, 4, 6, 2}, {3, 7, 5, 1}, {1, 5, 4, 0}, {2, 6, 7, 3}, {0, 2, 3, 1}, {5, 7, 6, 4}
    };
    #endif
    """
    # Counter-clockwise from outside; bit 0 of a corner is +x, bit 1 +y, bit 2 +z. A face's two
    # triangles are its corners (0, 1, 2) and (0, 2, 3): its diagonal leads from the first to the
    # third one (RULES_2 9).
    const int[6][4] BOX_FACES "pycct_box_faces"
