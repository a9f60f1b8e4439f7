# cython: language_level=3
"""Which of many boxes touch one, four at a time.

Boxes stand in blocks of BLOCK floats for four of them: lo x of all four, lo y, lo z, hi x, hi y, hi z. There are only
comparisons: the same answer with or without vector instructions.
"""
from libc.stdint cimport int32_t


cdef extern from * nogil:
    """
    #ifndef PYCCT_LANES
    #define PYCCT_LANES
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static inline int pycct_lanes(const float *b, const float *lo, const float *hi) {
        __m128 x = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(b), _mm_set1_ps(hi[0])),
                              _mm_cmpge_ps(_mm_loadu_ps(b + 12), _mm_set1_ps(lo[0])));
        __m128 y = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(b + 4), _mm_set1_ps(hi[1])),
                              _mm_cmpge_ps(_mm_loadu_ps(b + 16), _mm_set1_ps(lo[1])));
        __m128 z = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(b + 8), _mm_set1_ps(hi[2])),
                              _mm_cmpge_ps(_mm_loadu_ps(b + 20), _mm_set1_ps(lo[2])));
        return _mm_movemask_ps(_mm_and_ps(_mm_and_ps(x, y), z));
    }
    #else
    static inline int pycct_lanes(const float *b, const float *lo, const float *hi) {
        int mask = 0, i;
        for (i = 0; i < 4; i++)
            mask |= ((b[i] <= hi[0]) & (b[i + 12] >= lo[0]) & (b[i + 4] <= hi[1]) & (b[i + 16] >= lo[1])
                     & (b[i + 8] <= hi[2]) & (b[i + 20] >= lo[2])) << i;
        return mask;
    }
    #endif
    #endif
    """
    # A bit for each of the four boxes of a block that touches the box from lo to hi.
    int lanes_touching "pycct_lanes"(const float* block, const float* lo, const float* hi) noexcept


cdef enum:
    LANES = 4
    BLOCK = 24


cdef inline double lanes_slack(double size) noexcept nogil:
    """By how much a box must be larger than what it stands for: more than its numbers, so large, round to float32."""
    return 2.5e-7 * size


cdef inline size_t lanes_floats(int32_t boxes) noexcept nogil:
    """How many floats that many boxes take up, a block begun counts as a whole one."""
    return (<size_t>boxes + LANES - 1) // LANES * BLOCK


cdef inline float* lanes_place(float* blocks, int32_t i) noexcept nogil:
    """Where the first number of box i stands; each other LANES farther on."""
    return blocks + (i // LANES) * <Py_ssize_t>BLOCK + i % LANES


cdef inline int32_t lanes_pick(const float* blocks, int32_t boxes, const float* lo, const float* hi,
                               int32_t* picked) noexcept nogil:
    """Note, in order, the boxes that touch the one from lo to hi; returns how many they are.

    ``picked`` needs room for LANES more than there are boxes."""
    cdef int32_t i = 0, n = 0
    cdef int mask
    while i < boxes:
        mask = lanes_touching(blocks, lo, hi)
        if mask != 0:
            # Always written, counted when it touches: no branch to guess.
            picked[n] = i
            n += mask & 1
            picked[n] = i + 1
            n += (mask >> 1) & 1
            picked[n] = i + 2
            n += (mask >> 2) & 1
            picked[n] = i + 3
            n += mask >> 3
        blocks += BLOCK
        i += LANES
    # What lies behind the last box touches by chance.
    while n > 0 and picked[n - 1] >= boxes:
        n -= 1
    return n
