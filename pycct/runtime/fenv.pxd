# cython: language_level=3
"""The floating-point environment of all results: round to nearest, denormals kept, exceptions
masked.

Another library may have left its own environment in a thread. Each call takes some nanoseconds and
writes the register only if it differs. Compilers do not order arithmetic and changes of the
environment. The arithmetic between both calls must therefore be in a function of another module,
which the compiler cannot inline.
"""


cdef extern from * nogil:
    """
    #ifndef PYCCT_FENV
    #define PYCCT_FENV
    #if defined(__x86_64__) || defined(_M_X64)
        #include <immintrin.h>
        /* The low six bits are status flags only. */
        static inline unsigned long long pycct_fp_enter(void) {
            unsigned int was = _mm_getcsr();
            if ((was & 0xffc0u) != 0x1f80u) _mm_setcsr(0x1f80u);
            return was;
        }
        static inline void pycct_fp_leave(unsigned long long was) {
            if ((was & 0xffc0u) != 0x1f80u) _mm_setcsr((unsigned int)was);
        }
    #elif defined(__aarch64__)
        static inline unsigned long long pycct_fp_enter(void) {
            unsigned long long was, plain = 0;
            __asm__ __volatile__("mrs %0, fpcr" : "=r"(was) : : "memory");
            if (was != 0) __asm__ __volatile__("msr fpcr, %0" : : "r"(plain) : "memory");
            return was;
        }
        static inline void pycct_fp_leave(unsigned long long was) {
            if (was != 0) __asm__ __volatile__("msr fpcr, %0" : : "r"(was) : "memory");
        }
    #elif defined(_M_ARM64)
        #include <intrin.h>
        #define PYCCT_FPCR ARM64_SYSREG(3, 3, 4, 4, 0)
        static unsigned long long pycct_fp_enter(void) {
            unsigned long long was = (unsigned long long)_ReadStatusReg(PYCCT_FPCR);
            if (was != 0) _WriteStatusReg(PYCCT_FPCR, 0);
            return was;
        }
        static void pycct_fp_leave(unsigned long long was) {
            if (was != 0) _WriteStatusReg(PYCCT_FPCR, (long long)was);
        }
    #else
        static unsigned long long pycct_fp_enter(void) { return 0; }
        static void pycct_fp_leave(unsigned long long was) { (void)was; }
    #endif
    #endif
    """
    # Sets the environment and returns the old one, for fp_leave.
    unsigned long long fp_enter "pycct_fp_enter"() noexcept
    void fp_leave "pycct_fp_leave"(unsigned long long was) noexcept
