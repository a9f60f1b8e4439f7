# cython: language_level=3
"""Prefetching of memory into the cache. It changes speed, never a result."""


cdef extern from * nogil:
    """
    #ifndef PYCCT_PREFETCH
    #define PYCCT_PREFETCH
    #include <stddef.h>
    #if defined(__GNUC__)
        #define PYCCT_PREFETCH_LINE(p) __builtin_prefetch(p)
    #elif defined(_M_X64)
        #include <xmmintrin.h>
        #define PYCCT_PREFETCH_LINE(p) _mm_prefetch((const char *)(p), _MM_HINT_T0)
    #else
        #define PYCCT_PREFETCH_LINE(p) ((void)(p))
    #endif
    static inline void pycct_prefetch(const void *p, size_t n) {
        size_t k;
        for (k = 0; k < n; k += 64)
            PYCCT_PREFETCH_LINE((const char *)p + k);
        /* The range seldom starts at the start of a cache line. */
        if (n > 0)
            PYCCT_PREFETCH_LINE((const char *)p + n - 1);
    }
    #endif
    """
    # Prefetches n bytes from p.
    void prefetch "pycct_prefetch"(const void* p, size_t n) noexcept
