# cython: language_level=3
"""Memory that will be needed soon, brought nearer meanwhile. Changes speed, never a result."""


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
        /* They seldom begin where a line does. */
        if (n > 0)
            PYCCT_PREFETCH_LINE((const char *)p + n - 1);
    }
    #endif
    """
    # The n bytes from p on.
    void prefetch "pycct_prefetch"(const void* p, size_t n) noexcept
