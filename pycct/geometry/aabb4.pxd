# cython: language_level=3
"""Which of many boxes are near one, four at a time.

Boxes stand in blocks of BLOCK floats for four of them: lo x of all four, lo y, lo z, hi x, hi y, hi z. Each is computed
as it would be alone: the same answers with or without vector instructions.
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
    # A bit for each of the four boxes of a block that is no farther from the box from lo to hi than the root of reach2.
    int _lanes "pycct_lanes"(const float* block, const float* lo, const float* hi, float reach2) noexcept
    # The lowest bit that is set; there must be one.
    int lowest_bit "pycct_lowest"(uint64_t bits) noexcept


cdef enum:
    LANES = 4
    BLOCK = 24
    # Boxes are looked at by so many, and there is room for so many, however few there are: without a branch to guess.
    STRIDE = 8


# Where something comes by, up to ``reach2`` squared away.
cdef struct aabb4_box:
    float[3] lo
    float[3] hi
    float reach2


cdef inline double aabb4_slack(double size) noexcept nogil:
    """By how much a box must be larger than what it stands for: more than its numbers, so large, round to float32."""
    return 2.5e-7 * size


cdef inline float aabb4_reach2(double reach) noexcept nogil:
    """The square of a reach, and what differences, squares and sums lose as float32."""
    return <float>(reach * reach * 1.000002 + 1e-30)


cdef inline size_t aabb4_floats(int32_t boxes) noexcept nogil:
    """How many floats that many boxes take up."""
    return (<size_t>boxes + STRIDE - 1) // STRIDE * (STRIDE // LANES * BLOCK)


cdef inline float* aabb4_place(float* blocks, int32_t i) noexcept nogil:
    """Where the first number of box i stands; each other LANES farther on."""
    return blocks + (i // LANES) * <Py_ssize_t>BLOCK + i % LANES


cdef inline uint64_t aabb4_overlap_mask(const float* blocks, int32_t first, int32_t boxes,
                                        const aabb4_box* way) noexcept nogil:
    """A bit for each of up to 64 boxes from ``first`` on, a multiple of 64, that is near."""
    cdef uint64_t bits = 0
    cdef const float* b = blocks + first // LANES * <Py_ssize_t>BLOCK
    cdef int32_t left = boxes - first if boxes - first < 64 else 64, i = 0
    while i < left:
        bits |= <uint64_t>(_lanes(b, way.lo, way.hi, way.reach2)
                           | _lanes(b + BLOCK, way.lo, way.hi, way.reach2) << LANES) << i
        b += STRIDE // LANES * BLOCK
        i += STRIDE
    # What stands behind the last box is near by chance.
    return bits & (<uint64_t>-1 >> (64 - left))
