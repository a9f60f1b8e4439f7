# cython: language_level=3
"""Thread pool: one pool for the process, created on first use.

Pool threads never use Python. A batch is a range of rows, handed out in chunks of at least the
given size. Results must not depend on which thread works on which row.
"""
from libc.stdint cimport int64_t

# Works on rows first to last - 1. Worker 0 is the caller; the others count from 1.
ctypedef void (*pool_task)(void* context, int worker, int64_t first, int64_t last) noexcept nogil

# Most threads of one call.
cdef enum:
    MOST_THREADS = 256


# Checks the argument ``threads``, starts missing threads, and returns how many threads may work,
# the caller included. The caller holds the GIL.
cdef int pool_threads(object threads) except -1
# Number of threads, at most ``threads``, that n rows in chunks of ``chunk`` can occupy.
cdef int pool_worth(int64_t n, int64_t chunk, int threads) noexcept nogil
# Works on rows 0 to n - 1 with at most ``threads`` threads, the caller included, and returns when
# all rows are done. If another caller holds the pool, the calling thread works alone. Each thread
# uses the default floating-point environment. A task must not call this function.
cdef void pool_run(pool_task task, void* context, int64_t n, int64_t chunk, int threads) noexcept nogil
# Like pool_run, for calls that may be too short to wake a thread. ``pace`` is the time of one row
# in microseconds (0: unknown), and the call updates it.
cdef void pool_run_brief(pool_task task, void* context, int64_t n, int64_t chunk, int threads,
                         double* pace) noexcept nogil

# Microseconds of a steady clock.
cdef double clock_now() noexcept nogil
# Like pool_run, in parts of some 30 ms, with Python's signal handlers in between: raises what they
# raise. The caller holds the GIL. In other threads than the main one no handler runs.
cdef int pool_run_parts(pool_task task, void* context, int64_t n, int64_t chunk, int threads) except -1
# Runs the signal handlers after a part of a long call, and returns the rows of the next part.
# ``started``: when the last one, of ``n_rows`` rows, began.
cdef int64_t next_part(int64_t n_rows, double started) except -1


# A batch that starts while the caller still prepares its rows: workers process the rows that are
# ready. Between pool_begin and pool_end the caller must not run foreign code, which could fork.
cdef struct pool_batch:
    pool_task task
    void* context
    int64_t chunk
    long long n                 # number of rows
    long long ready             # rows below this one may be processed
    long long next              # first row that no thread has claimed
    int helpers                 # threads with an offer; -1: another caller holds the pool
    double pace                 # microseconds for one row, as measured by the caller

cdef void pool_begin(pool_batch* b, pool_task task, void* context, int64_t n, int64_t chunk, int threads) noexcept nogil
# Whether n rows of ``pace`` microseconds each are long enough to wake sleeping threads.
cdef bint pool_worth_waking(int64_t n, double pace) noexcept nogil
cdef void pool_wake(pool_batch* b) noexcept nogil
cdef void pool_ready(pool_batch* b, int64_t ready) noexcept nogil
# Ends the batch: it has n rows, at most those of pool_begin, and all are ready.
cdef void pool_end(pool_batch* b, int64_t n) noexcept nogil
