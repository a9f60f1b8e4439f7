/* Walks through trees of eight children a node, eight boxes at a time.

   The code of the walks is in wide8_walk.h. This file includes it once for each instruction set: SSE2
   and AVX2 on x86-64 (AVX2 only where the processor has it, which w8_start finds out), NEON on
   aarch64, plain C elsewhere. Boxes and the triangles of blocks only rule out: every rounding error is
   on the side of looking closer, so that no answer depends on the instruction set. */
#ifndef PYCCT_WIDE8_H
#define PYCCT_WIDE8_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define W8_LANES 8
#define W8_STACK 480            /* (lanes - 1) * (deepest tree) + 1, and some */

/* The boxes of eight children, by axis and lane. An empty place has an inverted box. */
typedef struct {
    float lo[3][W8_LANES];
    float hi[3][W8_LANES];
    int32_t child[W8_LANES];    /* index of a node, or of the first place of a leaf */
    int32_t count[W8_LANES];    /* 0: a node; otherwise the number of items in the leaf; -1: nothing */
} w8_node;

/* Eight triangles in the order of the leaves, in steps of a grid of their own. */
typedef struct {
    float base[3];
    float per;                  /* steps a metre */
    uint8_t q[9][W8_LANES];     /* coordinate (3 * corner + axis) of each triangle */
} w8_block;

typedef struct {
    float when;
    int32_t node;               /* index of a node, or of the first place of a leaf */
    int32_t count;              /* 0: a node */
} w8_entry;

typedef int (*w8_check)(const void *owner, int32_t place);

/* bvh.pxd declares the same struct as bvh_walk. */
typedef struct {
    const w8_node *nodes;
    w8_check check;             /* NULL: the tree holds no wrong index */
    const void *owner;
    int32_t n_nodes, n_items;
    float enter[3], leave[3];   /* what is subtracted from the planes where the box enters and leaves */
    float inverse[3];           /* 1 / motion */
    int32_t negative[3];        /* the motion goes down that axis */
    int32_t near;               /* no motion: by squared distance */
    int32_t top;
    int32_t left;               /* nodes that a checked walk may still open */
    int32_t run, run_end;       /* places of a leaf that have not been looked at */
    double above[3], below[3];  /* upper and lower corner of the box that moves */
    double factor;              /* what a unit of the tree's frame is worth */
    w8_entry entries[W8_STACK];
} w8_walk;

/* A ray in the frame of a mesh. */
typedef struct {
    double origin[3];
    double margin;              /* m, by which exact triangles may differ from those of the tree's frame */
    double reach;               /* length of the direction along its largest axis */
    float sx, sy;               /* shear that takes the ray to its largest axis */
    int32_t kx, ky, kz;
    float forward;              /* 1 or -1: sign of the direction along the largest axis */
    int32_t front_only;
} w8_ray;

#if defined(__GNUC__)
    #define W8_INLINE static inline __attribute__((always_inline))
    #define W8_FETCH(p) __builtin_prefetch(p)
#else
    #define W8_INLINE static __forceinline
    #define W8_FETCH(p) ((void)(p))
#endif

#if defined(__GNUC__)
    static inline int w8_lowest(unsigned bits) { return __builtin_ctz(bits); }
#else
    static inline int w8_lowest(unsigned bits) {
        int i = 0;
        while (!(bits >> i & 1))
            i++;
        return i;
    }
#endif

/* A float32 that is not less than x (3e38 stands for all that is more): no branch to guess. */
static inline float w8_up(double x) {
    float f;
    x = x < 3e38 ? x : 3e38;
    x = x > -3e38 ? x : -3e38;
    f = (float)x;
    return f + fabsf(f) * 1.2e-7f + 1e-37f;
}

static inline float w8_down(double x) { return -w8_up(-x); }

/* A squared distance that is compared with those of boxes; endless when no float32 can hold it. */
static inline float w8_up2(double x) {
    x = x * (1.0 + 1e-8);
    return x * x < 3e38 ? w8_up(x * x) : INFINITY;
}

/* ------------------------------------------------------------------ plain C */

#define W8_SCALAR 0
#define W8_SSE2 1
#define W8_AVX2 2
#define W8_NEON 3

#if defined(PYCCT_NO_SIMD)
    #define W8_BASE W8_SCALAR
#elif defined(__SSE2__) || defined(_M_X64)
    #include <immintrin.h>
    #define W8_BASE W8_SSE2
    #if defined(__GNUC__) && defined(__x86_64__)
        #define W8_HAS_AVX2 1
    #endif
#elif defined(__aarch64__) || defined(_M_ARM64)
    #include <arm_neon.h>
    #define W8_BASE W8_NEON
#else
    #define W8_BASE W8_SCALAR
#endif
#ifndef W8_HAS_AVX2
    #define W8_HAS_AVX2 0
#endif

#if W8_BASE == W8_SSE2
typedef struct { __m128 a, b; } w8_b;
#define W8_V w8_b
#define W8_F(name) w8_##name##_base
#define W8_TARGET
W8_INLINE w8_b w8_make_base(__m128 a, __m128 b) { w8_b r; r.a = a; r.b = b; return r; }
W8_INLINE w8_b w8_load_base(const float *p) { return w8_make_base(_mm_loadu_ps(p), _mm_loadu_ps(p + 4)); }
W8_INLINE void w8_store_base(float *p, w8_b x) { _mm_storeu_ps(p, x.a); _mm_storeu_ps(p + 4, x.b); }
W8_INLINE w8_b w8_set_base(float x) { return w8_make_base(_mm_set1_ps(x), _mm_set1_ps(x)); }
W8_INLINE w8_b w8_add_base(w8_b x, w8_b y) { return w8_make_base(_mm_add_ps(x.a, y.a), _mm_add_ps(x.b, y.b)); }
W8_INLINE w8_b w8_sub_base(w8_b x, w8_b y) { return w8_make_base(_mm_sub_ps(x.a, y.a), _mm_sub_ps(x.b, y.b)); }
W8_INLINE w8_b w8_mul_base(w8_b x, w8_b y) { return w8_make_base(_mm_mul_ps(x.a, y.a), _mm_mul_ps(x.b, y.b)); }
W8_INLINE w8_b w8_min_base(w8_b x, w8_b y) { return w8_make_base(_mm_min_ps(x.a, y.a), _mm_min_ps(x.b, y.b)); }
W8_INLINE w8_b w8_max_base(w8_b x, w8_b y) { return w8_make_base(_mm_max_ps(x.a, y.a), _mm_max_ps(x.b, y.b)); }
W8_INLINE unsigned w8_le_base(w8_b x, w8_b y) {
    return (unsigned)_mm_movemask_ps(_mm_cmple_ps(x.a, y.a)) | (unsigned)_mm_movemask_ps(_mm_cmple_ps(x.b, y.b)) << 4;
}
W8_INLINE w8_b w8_steps_base(const uint8_t *p) {
    __m128i zero = _mm_setzero_si128(), x = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p), zero);
    return w8_make_base(_mm_cvtepi32_ps(_mm_unpacklo_epi16(x, zero)), _mm_cvtepi32_ps(_mm_unpackhi_epi16(x, zero)));
}
#include "wide8_walk.h"
#elif W8_BASE == W8_NEON
typedef struct { float32x4_t a, b; } w8_b;
#define W8_V w8_b
#define W8_F(name) w8_##name##_base
#define W8_TARGET
W8_INLINE w8_b w8_make_base(float32x4_t a, float32x4_t b) { w8_b r; r.a = a; r.b = b; return r; }
W8_INLINE w8_b w8_load_base(const float *p) { return w8_make_base(vld1q_f32(p), vld1q_f32(p + 4)); }
W8_INLINE void w8_store_base(float *p, w8_b x) { vst1q_f32(p, x.a); vst1q_f32(p + 4, x.b); }
W8_INLINE w8_b w8_set_base(float x) { return w8_make_base(vdupq_n_f32(x), vdupq_n_f32(x)); }
W8_INLINE w8_b w8_add_base(w8_b x, w8_b y) { return w8_make_base(vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)); }
W8_INLINE w8_b w8_sub_base(w8_b x, w8_b y) { return w8_make_base(vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b)); }
W8_INLINE w8_b w8_mul_base(w8_b x, w8_b y) { return w8_make_base(vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)); }
W8_INLINE w8_b w8_min_base(w8_b x, w8_b y) { return w8_make_base(vminq_f32(x.a, y.a), vminq_f32(x.b, y.b)); }
W8_INLINE w8_b w8_max_base(w8_b x, w8_b y) { return w8_make_base(vmaxq_f32(x.a, y.a), vmaxq_f32(x.b, y.b)); }
W8_INLINE unsigned w8_le_base(w8_b x, w8_b y) {
    static const uint32_t weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint32x4_t a = vandq_u32(vcleq_f32(x.a, y.a), vld1q_u32(weights));
    uint32x4_t b = vandq_u32(vcleq_f32(x.b, y.b), vld1q_u32(weights + 4));
    return vaddvq_u32(vorrq_u32(a, b));
}
W8_INLINE w8_b w8_steps_base(const uint8_t *p) {
    uint16x8_t x = vmovl_u8(vld1_u8(p));
    return w8_make_base(vcvtq_f32_u32(vmovl_u16(vget_low_u16(x))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(x))));
}
#include "wide8_walk.h"
#else
typedef struct { float v[8]; } w8_b;
#define W8_V w8_b
#define W8_F(name) w8_##name##_base
#define W8_TARGET
#define W8_EACH(expression) w8_b r; int i; for (i = 0; i < 8; i++) r.v[i] = (expression); return r
W8_INLINE w8_b w8_load_base(const float *p) { W8_EACH(p[i]); }
W8_INLINE void w8_store_base(float *p, w8_b x) { memcpy(p, x.v, sizeof x.v); }
W8_INLINE w8_b w8_set_base(float x) { W8_EACH(x); }
W8_INLINE w8_b w8_add_base(w8_b x, w8_b y) { W8_EACH(x.v[i] + y.v[i]); }
W8_INLINE w8_b w8_sub_base(w8_b x, w8_b y) { W8_EACH(x.v[i] - y.v[i]); }
W8_INLINE w8_b w8_mul_base(w8_b x, w8_b y) { W8_EACH(x.v[i] * y.v[i]); }
W8_INLINE w8_b w8_min_base(w8_b x, w8_b y) { W8_EACH(x.v[i] < y.v[i] ? x.v[i] : y.v[i]); }
W8_INLINE w8_b w8_max_base(w8_b x, w8_b y) { W8_EACH(x.v[i] > y.v[i] ? x.v[i] : y.v[i]); }
W8_INLINE unsigned w8_le_base(w8_b x, w8_b y) {
    unsigned bits = 0;
    int i;
    for (i = 0; i < 8; i++)
        bits |= (unsigned)(x.v[i] <= y.v[i]) << i;
    return bits;
}
W8_INLINE w8_b w8_steps_base(const uint8_t *p) { W8_EACH((float)p[i]); }
#include "wide8_walk.h"
#endif

#if W8_HAS_AVX2
#undef W8_V
#undef W8_F
#undef W8_TARGET
#define W8_V __m256
#define W8_F(name) w8_##name##_avx2
#define W8_TARGET __attribute__((target("avx2")))
W8_INLINE W8_TARGET __m256 w8_load_avx2(const float *p) { return _mm256_loadu_ps(p); }
W8_INLINE W8_TARGET void w8_store_avx2(float *p, __m256 x) { _mm256_storeu_ps(p, x); }
W8_INLINE W8_TARGET __m256 w8_set_avx2(float x) { return _mm256_set1_ps(x); }
W8_INLINE W8_TARGET __m256 w8_add_avx2(__m256 x, __m256 y) { return _mm256_add_ps(x, y); }
W8_INLINE W8_TARGET __m256 w8_sub_avx2(__m256 x, __m256 y) { return _mm256_sub_ps(x, y); }
W8_INLINE W8_TARGET __m256 w8_mul_avx2(__m256 x, __m256 y) { return _mm256_mul_ps(x, y); }
W8_INLINE W8_TARGET __m256 w8_min_avx2(__m256 x, __m256 y) { return _mm256_min_ps(x, y); }
W8_INLINE W8_TARGET __m256 w8_max_avx2(__m256 x, __m256 y) { return _mm256_max_ps(x, y); }
W8_INLINE W8_TARGET unsigned w8_le_avx2(__m256 x, __m256 y) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_LE_OQ));
}
W8_INLINE W8_TARGET __m256 w8_steps_avx2(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
#include "wide8_walk.h"
#endif

/* ------------------------------------------------------------------ which one runs */

/* W8_AVX2, or W8_BASE. */
static int w8_set = W8_BASE;

static void w8_start(void) {
#if W8_HAS_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        w8_set = W8_AVX2;
#endif
}

static inline int w8_next(w8_walk *w, double limit, int32_t *first, int32_t *count) {
#if W8_HAS_AVX2
    if (w8_set == W8_AVX2)
        return w8_walk_next_avx2(w, limit, first, count);
#endif
    return w8_walk_next_base(w, limit, first, count);
}

static inline int w8_next_ray(w8_walk *w, const w8_ray *ray, const w8_block *blocks, double limit, int32_t *first,
                              uint32_t *bits) {
#if W8_HAS_AVX2
    if (w8_set == W8_AVX2)
        return w8_walk_ray_avx2(w, ray, blocks, limit, first, bits);
#endif
    return w8_walk_ray_base(w, ray, blocks, limit, first, bits);
}

static inline int w8_next_box(w8_walk *w, const w8_block *blocks, double limit, int32_t *first, uint32_t *bits) {
#if W8_HAS_AVX2
    if (w8_set == W8_AVX2)
        return w8_walk_box_avx2(w, blocks, limit, first, bits);
#endif
    return w8_walk_box_base(w, blocks, limit, first, bits);
}

static inline unsigned w8_mask(const w8_walk *w, const w8_node *node, double limit) {
#if W8_HAS_AVX2
    if (w8_set == W8_AVX2)
        return w8_walk_mask_avx2(w, node, limit);
#endif
    return w8_walk_mask_base(w, node, limit);
}

static inline int32_t w8_collect(const w8_node *nodes, const float *lo, const float *hi, int32_t *places,
                                 int32_t capacity) {
#if W8_HAS_AVX2
    if (w8_set == W8_AVX2)
        return w8_collect_avx2(nodes, lo, hi, places, capacity);
#endif
    return w8_collect_base(nodes, lo, hi, places, capacity);
}

#endif
