# cython: language_level=3
"""Tests which of many boxes are near one box, four at a time.

Boxes are stored in blocks of BLOCK floats for four of them: lo x of all four, lo y, lo z, hi x, hi
y, hi z. Each box is computed separately, so results are equal with and without vector instructions.
"""
from libc.stdint cimport int32_t, uint64_t


cdef extern from * nogil:
    """
    #ifndef PYCCT_LANES
    #define PYCCT_LANES
    #include <stdint.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static inline int pycct_lanes(const float *b, const float *lo, const float *hi, float reach2) {
        __m128 x = _mm_max_ps(_mm_sub_ps(_mm_loadu_ps(b), _mm_set1_ps(hi[0])),
                              _mm_sub_ps(_mm_set1_ps(lo[0]), _mm_loadu_ps(b + 12)));
        __m128 y = _mm_max_ps(_mm_sub_ps(_mm_loadu_ps(b + 4), _mm_set1_ps(hi[1])),
                              _mm_sub_ps(_mm_set1_ps(lo[1]), _mm_loadu_ps(b + 16)));
        __m128 z = _mm_max_ps(_mm_sub_ps(_mm_loadu_ps(b + 8), _mm_set1_ps(hi[2])),
                              _mm_sub_ps(_mm_set1_ps(lo[2]), _mm_loadu_ps(b + 20)));
        x = _mm_max_ps(x, _mm_setzero_ps());
        y = _mm_max_ps(y, _mm_setzero_ps());
        z = _mm_max_ps(z, _mm_setzero_ps());
        x = _mm_add_ps(_mm_add_ps(_mm_mul_ps(x, x), _mm_mul_ps(y, y)), _mm_mul_ps(z, z));
        return _mm_movemask_ps(_mm_cmple_ps(x, _mm_set1_ps(reach2)));
    }
    #else
    static inline float pycct_gap(float a, float b) {
        float gap = a > b ? a : b;
        return gap > 0.0f ? gap : 0.0f;
    }
    static inline int pycct_lanes(const float *b, const float *lo, const float *hi, float reach2) {
        int mask = 0, i;
        for (i = 0; i < 4; i++, b++) {
            float x = pycct_gap(b[0] - hi[0], lo[0] - b[12]), y = pycct_gap(b[4] - hi[1], lo[1] - b[16]);
            float z = pycct_gap(b[8] - hi[2], lo[2] - b[20]);
            mask |= (x * x + y * y + z * z <= reach2) << i;
        }
        return mask;
    }
    #endif
    #if defined(__GNUC__)
    static inline int pycct_lowest(uint64_t bits) { return __builtin_ctzll(bits); }
    #elif defined(_M_X64) || defined(_M_ARM64)
    #include <intrin.h>
    static inline int pycct_lowest(uint64_t bits) {
        unsigned long i;
        _BitScanForward64(&i, bits);
        return (int)i;
    }
    #else
    static inline int pycct_lowest(uint64_t bits) {
        int i = 0;
        while (!(bits >> i & 1))
            i++;
        return i;
    }
    #endif
    #endif
    """
    # One bit for each of the four boxes of a block: set if its squared distance from the box (lo,
    # hi) is at most reach2.
    int _lanes "pycct_lanes"(const float* block, const float* lo, const float* hi, float reach2) noexcept
    # Index of the lowest set bit; at least one bit must be set.
    int lowest_bit "pycct_lowest"(uint64_t bits) noexcept


cdef enum:
    LANES = 4
    BLOCK = 24
    # Boxes are tested in strides of this many, and blocks always have room for whole strides. The
    # loop then needs no unpredictable branch.
    STRIDE = 8


# Query box, and the square of its reach.
cdef struct aabb4_box:
    float[3] lo
    float[3] hi
    float reach2


cdef inline double aabb4_slack(double size) noexcept nogil:
    """Margin of a box of the given size, more than the rounding of its coordinates to float32."""
    return 2.5e-7 * size


cdef inline float aabb4_reach2(double reach) noexcept nogil:
    """Return the square of a reach, plus the rounding errors of the distance in float32."""
    return <float>(reach * reach * 1.000002 + 1e-30)


cdef inline size_t aabb4_floats(int32_t boxes) noexcept nogil:
    """Return the number of floats for that many boxes."""
    return (<size_t>boxes + STRIDE - 1) // STRIDE * (STRIDE // LANES * BLOCK)


cdef inline float* aabb4_place(float* blocks, int32_t i) noexcept nogil:
    """Return the address of the first number of box i; the others follow at distances of LANES."""
    return blocks + (i // LANES) * <Py_ssize_t>BLOCK + i % LANES


cdef inline uint64_t aabb4_overlap_mask(const float* blocks, int32_t first, int32_t boxes,
                                        const aabb4_box* query) noexcept nogil:
    """Return a mask of the near boxes among up to 64, from ``first`` (a multiple of 64)."""
    cdef uint64_t bits = 0
    cdef const float* b = blocks + first // LANES * <Py_ssize_t>BLOCK
    cdef int32_t left = boxes - first if boxes - first < 64 else 64, i = 0
    while i < left:
        bits |= <uint64_t>(_lanes(b, query.lo, query.hi, query.reach2)
                           | _lanes(b + BLOCK, query.lo, query.hi, query.reach2) << LANES) << i
        b += STRIDE // LANES * BLOCK
        i += STRIDE
    # The floats after the last box are undefined, so their bits are cleared.
    return bits & (<uint64_t>-1 >> (64 - left))
