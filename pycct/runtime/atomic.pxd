# cython: language_level=3
"""Words that threads share without a lock, and a spin lock made of one."""


cdef extern from * nogil:
    """
    #ifndef PYCCT_ATOMIC
    #define PYCCT_ATOMIC
    #if defined(_MSC_VER)
        #include <intrin.h>
        #include <windows.h>
        static long pycct_load(long *p) { return _InterlockedOr(p, 0); }
        static void pycct_store(long *p, long x) { _InterlockedExchange(p, x); }
        static long pycct_exchange(long *p, long x) { return _InterlockedExchange(p, x); }
        static int pycct_swap(long *p, long from, long to) {
            return _InterlockedCompareExchange(p, to, from) == from;
        }
        static long long pycct_add(long long *p, long long x) { return _InterlockedExchangeAdd64(p, x); }
        static long long pycct_load64(long long *p) { return _InterlockedOr64(p, 0); }
        static void pycct_store64(long long *p, long long x) { _InterlockedExchange64(p, x); }
        static int pycct_swap64(long long *p, long long from, long long to) {
            return _InterlockedCompareExchange64(p, to, from) == from;
        }
        static void pycct_pause(void) { YieldProcessor(); }
        static void pycct_yield(void) { SwitchToThread(); }
    #else
        #include <sched.h>
        static inline long pycct_load(long *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
        static inline void pycct_store(long *p, long x) { __atomic_store_n(p, x, __ATOMIC_SEQ_CST); }
        static inline long pycct_exchange(long *p, long x) { return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST); }
        static inline int pycct_swap(long *p, long from, long to) {
            return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        static inline long long pycct_add(long long *p, long long x) {
            return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST);
        }
        static inline long long pycct_load64(long long *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
        static inline void pycct_store64(long long *p, long long x) { __atomic_store_n(p, x, __ATOMIC_SEQ_CST); }
        static inline int pycct_swap64(long long *p, long long from, long long to) {
            return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        static inline void pycct_pause(void) {
        #if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
        #elif defined(__aarch64__)
            __asm__ __volatile__("yield");
        #endif
        }
        static inline void pycct_yield(void) { sched_yield(); }
    #endif
    static inline void pycct_spin_lock(long *lock) {
        int turns = 0;
        while (pycct_exchange(lock, 1)) {
            pycct_pause();
            /* The holder may have lost its core. */
            if (++turns > 100) { pycct_yield(); turns = 0; }
        }
    }
    static inline void pycct_spin_unlock(long *lock) { pycct_store(lock, 0); }
    #endif
    """
    long atomic_load "pycct_load"(long* p) noexcept
    void atomic_store "pycct_store"(long* p, long x) noexcept
    long atomic_exchange "pycct_exchange"(long* p, long x) noexcept
    # Compare and swap: True if the value was ``old`` and is now ``new``.
    bint atomic_swap "pycct_swap"(long* p, long old, long new) noexcept
    # Returns the value before the addition.
    long long atomic_add "pycct_add"(long long* p, long long x) noexcept
    long long atomic_load64 "pycct_load64"(long long* p) noexcept
    void atomic_store64 "pycct_store64"(long long* p, long long x) noexcept
    bint atomic_swap64 "pycct_swap64"(long long* p, long long old, long long new) noexcept
    void cpu_pause "pycct_pause"() noexcept
    void cpu_yield "pycct_yield"() noexcept
    void spin_lock "pycct_spin_lock"(long* lock) noexcept
    void spin_unlock "pycct_spin_unlock"(long* lock) noexcept
