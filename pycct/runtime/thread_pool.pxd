# cython: language_level=3
"""Threads that wait for work: one pool for the process, made on first use.

They never touch Python. Work is a range of numbers handed out in chunks, of the size
told or more, so what comes out must not depend on who does which.
"""
from libc.stdint cimport int64_t

# Does numbers first to last - 1; worker 0 is the caller, the others count up from 1.
ctypedef void (*pool_task)(void* context, int worker, int64_t first, int64_t last) noexcept nogil

# No call has more threads than this.
cdef enum:
    MOST_THREADS = 256


# Checks the argument ``threads`` and starts threads that are missing; returns how many may work at once, the caller
# among them. Hold the GIL.
cdef int pool_threads(object threads) except -1
# How many of ``threads`` a call of n pieces is worth, in chunks of ``chunk``.
cdef int pool_worth(int64_t n, int64_t chunk, int threads) noexcept nogil
# Does 0 to n - 1 on at most so many threads, the caller's among them, and returns when all is done. When another
# caller has the pool, the caller's thread does all. Each thread computes with the default floating-point
# environment meanwhile. Not from within a task.
cdef void pool_run(pool_task task, void* context, int64_t n, int64_t chunk, int threads) noexcept nogil
# The same where there may be too little to do to wake anybody for it: ``pace`` tells, and learns, how many microseconds
# each number takes; 0: nobody knows.
cdef void pool_run_brief(pool_task task, void* context, int64_t n, int64_t chunk, int threads,
                         double* pace) noexcept nogil


# The same while the caller still writes down what is to be done: the others do what is ready. From pool_begin to
# pool_end the caller runs nobody else's code, which might fork.
cdef struct pool_batch:
    pool_task task
    void* context
    int64_t chunk
    long long n                 # there are no more numbers
    long long ready             # those below may be done
    long long next              # first number that nobody has taken
    int helpers                 # threads that were offered it, -1: somebody else has the pool
    double pace                 # microseconds that each number takes, as the caller has found

cdef void pool_begin(pool_batch* b, pool_task task, void* context, int64_t n, int64_t chunk, int threads) noexcept nogil
# For those who sleep, and whether n numbers are worth it that take so many microseconds each.
cdef bint pool_worth_waking(int64_t n, double pace) noexcept nogil
cdef void pool_wake(pool_batch* b) noexcept nogil
cdef void pool_ready(pool_batch* b, int64_t ready) noexcept nogil
# There are n of them, no more than pool_begin was told, and all are ready.
cdef void pool_end(pool_batch* b, int64_t n) noexcept nogil
