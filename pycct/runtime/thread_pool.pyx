# cython: language_level=3
"""Thread pool. See the header."""
import operator
import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from pycct.runtime.atomic cimport (
    atomic_exchange,
    atomic_load,
    atomic_load64,
    atomic_store,
    atomic_store64,
    atomic_swap,
    atomic_swap64,
    cpu_pause,
    cpu_yield,
)


cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    unsigned long PyThread_start_new_thread(void (*f)(void*) noexcept nogil, void* argument) noexcept
    unsigned long PYTHREAD_INVALID_THREAD_ID
    PyThread_type_lock PyThread_allocate_lock() noexcept
    void PyThread_free_lock(PyThread_type_lock lock) noexcept
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait) noexcept
    void PyThread_release_lock(PyThread_type_lock lock) noexcept


cdef extern from "fenv.h" nogil:
    ctypedef struct fenv_t:
        pass
    const fenv_t* FE_DFL_ENV
    int fegetenv(fenv_t* env) noexcept
    int fesetenv(const fenv_t* env) noexcept


cdef extern from * nogil:
    """
    #include <time.h>
    /* Microseconds of the system clock, which may be set at any time. */
    static double pycct_microseconds(void) {
        struct timespec t;
        if (timespec_get(&t, TIME_UTC) != TIME_UTC)
            return 0.0;
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
    }
    #if defined(_WIN32)
        static int pycct_at_fork(void (*child)(void)) { (void)child; return 0; }
        static void pycct_no_signals(void) {}
    #else
        #include <pthread.h>
        #include <signal.h>
        static int pycct_at_fork(void (*child)(void)) { return pthread_atfork(NULL, NULL, child); }
        /* Pool threads block signals, except faults, which belong to the thread that causes them. */
        static void pycct_no_signals(void) {
            sigset_t set;
            sigfillset(&set);
            sigdelset(&set, SIGSEGV); sigdelset(&set, SIGBUS); sigdelset(&set, SIGFPE);
            sigdelset(&set, SIGILL); sigdelset(&set, SIGABRT);
            pthread_sigmask(SIG_SETMASK, &set, NULL);
        }
    #endif
    """
    int at_fork "pycct_at_fork"(void (*child)() noexcept nogil) noexcept
    void no_signals "pycct_no_signals"() noexcept
    double microseconds "pycct_microseconds"() noexcept


# Turns that an idle thread spins before it sleeps: some 50 us, more than Python needs between two
# calls in a loop, and less than a frame.
cdef int SPIN = 1000
# Spin turns between two yields of the core.
cdef int YIELD = 50
# Minimum work, in microseconds, for which a sleeping thread is woken. Waking takes the caller some
# 5 us, and the thread up to 100 us if its core sleeps too.
cdef double WORTH_WAKING = 150.0
# A long call runs in parts, and signal handlers run between them: time of a part in microseconds,
# rows of the first part, and largest ratio of two successive parts.
cdef double PART = 30000.0
cdef int64_t FIRST_PART = 16
cdef int64_t GROWTH = 16
# State of a worker.
cdef enum:
    IDLE = 0        # no work
    OFFERED = 1     # a batch is offered; worker or caller may claim it
    RUNNING = 2     # works on the batch


cdef struct pool_worker:
    PyThread_type_lock wake     # held, except at the moment of waking
    long state
    long asleep
    pool_batch* work
    int number


cdef pool_worker workers[MOST_THREADS - 1]
cdef int n_workers = 0          # only the caller that holds the pool changes it
cdef long taken = 0             # 1 while a caller holds the pool
cdef int spin = SPIN if (os.cpu_count() or 1) > 1 else 0


cdef inline void _wait(int* turns) noexcept nogil:
    """Pause; after n_threads turns yield the core, which the other thread may need."""
    turns[0] += 1
    if turns[0] > 1000:
        cpu_yield()
    else:
        cpu_pause()


cdef bint _take(pool_batch* b, int64_t* first, int64_t* last) noexcept nogil:
    """Claim the next rows as soon as they are ready. Return False if no rows are left.

    The first chunks are large, so that threads seldom work on neighbouring rows. The last ones are
    small, so that no thread waits long for another.
    """
    cdef int turns = 0
    cdef int64_t n, ready, end
    while True:
        n = atomic_load64(&b.n)
        first[0] = atomic_load64(&b.next)
        if first[0] >= n:
            return False
        end = first[0] + (n - first[0]) // (2 * (b.helpers + 1))
        if end < first[0] + b.chunk:
            end = first[0] + b.chunk
        if end > n:
            end = n
        # n may have shrunk since it was read; then fewer rows become ready.
        ready = atomic_load64(&b.ready)
        if ready < end and ready >= first[0] + b.chunk:
            end = ready
        if ready < end:
            _wait(&turns)
        elif atomic_swap64(&b.next, first[0], end):
            last[0] = end
            return True


cdef void _work(pool_batch* b, int number) noexcept nogil:
    cdef fenv_t before
    cdef int64_t first, last
    cdef double started = 0.0
    fegetenv(&before)
    fesetenv(FE_DFL_ENV)
    while _take(b, &first, &last):
        if number == 0 and b.pace == 0.0:
            started = microseconds()
        b.task(b.context, number, first, last)
        if started > 0.0:
            b.pace = (microseconds() - started) / <double>(last - first)
            started = 0.0
    fesetenv(&before)


cdef void _worker_main(void* argument) noexcept nogil:
    """Main function of a pool thread."""
    cdef pool_worker* me = <pool_worker*>argument
    cdef int turns
    no_signals()
    while True:
        turns = 0
        while atomic_load(&me.state) != OFFERED:
            if turns < spin:
                turns += 1
                # The caller or another process may need this core.
                if turns % YIELD == 0:
                    cpu_yield()
                else:
                    cpu_pause()
                continue
            atomic_store(&me.asleep, 1)
            # The caller stores OFFERED and then reads ``asleep``. This thread stores ``asleep`` and
            # then reads the state. So at least one of both sees the other's store.
            if atomic_load(&me.state) == OFFERED and atomic_exchange(&me.asleep, 0) == 1:
                break
            PyThread_acquire_lock(me.wake, 1)
            turns = 0
        if atomic_swap(&me.state, OFFERED, RUNNING):
            _work(me.work, me.number)
            atomic_store(&me.state, IDLE)


cdef void _after_fork() noexcept nogil:
    """Reset the pool in a forked child, which has none of its threads."""
    global n_workers
    n_workers = 0
    atomic_store(&taken, 0)


cdef int pool_threads(object threads) except -1:
    global n_workers
    cdef int n_threads
    cdef pool_worker* w
    try:
        number = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads must be an integer, not {type(threads).__name__}") from None
    if isinstance(threads, bool):
        raise TypeError("threads must be an integer, not bool")
    if number < 1:
        raise ValueError("threads must be at least 1" + (f", got {number}" if number > -1000 else ""))
    n_threads = <int>min(number, MOST_THREADS)
    if n_threads == 1 or n_threads - 1 <= n_workers or atomic_exchange(&taken, 1):
        return n_threads
    while n_workers < n_threads - 1:
        w = &workers[n_workers]
        w.state = IDLE
        w.asleep = 0
        w.work = NULL
        w.number = n_workers + 1
        w.wake = PyThread_allocate_lock()
        if w.wake == NULL:
            break
        PyThread_acquire_lock(w.wake, 1)
        if PyThread_start_new_thread(_worker_main, w) == PYTHREAD_INVALID_THREAD_ID:
            # The system has no more threads; the existing ones suffice.
            PyThread_release_lock(w.wake)
            PyThread_free_lock(w.wake)
            break
        n_workers += 1
    atomic_store(&taken, 0)
    return n_threads


cdef int pool_worth(int64_t n, int64_t chunk, int threads) noexcept nogil:
    cdef int64_t chunks = (n + chunk - 1) // chunk
    return <int>chunks if chunks < threads else threads


cdef bint pool_worth_waking(int64_t n, double pace) noexcept nogil:
    return pace * <double>n >= WORTH_WAKING


cdef bint _any_awake(int helpers) noexcept nogil:
    """Return whether one of the first helpers is awake."""
    cdef int i
    for i in range(min(helpers, n_workers)):
        if atomic_load(&workers[i].asleep) == 0:
            return True
    return False


cdef void pool_begin(pool_batch* b, pool_task task, void* context, int64_t n, int64_t chunk,
                     int threads) noexcept nogil:
    cdef pool_worker* w
    cdef int helpers = pool_worth(n, chunk, threads) - 1, i
    b.task = task
    b.context = context
    b.n = n
    b.chunk = chunk
    b.next = b.ready = 0
    b.pace = 0.0
    b.helpers = -1
    if helpers < 1 or atomic_exchange(&taken, 1):
        return
    if helpers > n_workers:
        helpers = n_workers
    b.helpers = helpers
    for i in range(helpers):
        w = &workers[i]
        w.work = b
        atomic_store(&w.state, OFFERED)


cdef void pool_wake(pool_batch* b) noexcept nogil:
    cdef int i
    for i in range(b.helpers):
        if atomic_exchange(&workers[i].asleep, 0):
            PyThread_release_lock(workers[i].wake)


cdef void pool_ready(pool_batch* b, int64_t ready) noexcept nogil:
    atomic_store64(&b.ready, ready)


cdef void pool_end(pool_batch* b, int64_t n) noexcept nogil:
    cdef pool_worker* w
    cdef int i, turns
    # n first: a thread that reads the final ``ready`` must also read the final n.
    atomic_store64(&b.n, n)
    atomic_store64(&b.ready, n)
    if b.helpers < 0:
        b.helpers = 0
        b.chunk = n if n > 0 else 1
        _work(b, 0)
        return
    _work(b, 0)
    for i in range(b.helpers):
        w = &workers[i]
        # A helper that has not started yet is not needed any more.
        if atomic_swap(&w.state, OFFERED, IDLE):
            continue
        turns = 0
        while atomic_load(&w.state) != IDLE:
            _wait(&turns)
    atomic_store(&taken, 0)


cdef void pool_run(pool_task task, void* context, int64_t n, int64_t chunk, int threads) noexcept nogil:
    cdef pool_batch b
    pool_begin(&b, task, context, n, chunk, threads)
    pool_wake(&b)
    pool_end(&b, n)


cdef double clock_now() noexcept nogil:
    return microseconds()


cdef int64_t next_part(int64_t n_rows, double started) except -1:
    cdef double took = microseconds() - started, target = <double>n_rows * PART
    PyErr_CheckSignals()
    if target >= <double>(GROWTH * n_rows) * took:
        return GROWTH * n_rows
    return <int64_t>(target / took) + 1


cdef struct shifted:
    pool_task task
    void* context
    int64_t first


cdef void _shifted(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Work on rows of a part."""
    cdef shifted* s = <shifted*>context
    s.task(s.context, worker, s.first + first, s.first + last)


cdef int pool_run_parts(pool_task task, void* context, int64_t n, int64_t chunk, int threads) except -1:
    cdef shifted s
    cdef int64_t n_rows = FIRST_PART
    cdef double started
    s.task, s.context, s.first = task, context, 0
    while s.first < n:
        if n_rows > n - s.first:
            n_rows = n - s.first
        started = clock_now()
        with nogil:
            pool_run(_shifted, &s, n_rows, chunk, threads)
        s.first += n_rows
        if s.first < n:
            n_rows = next_part(n_rows, started)
    return 0


cdef void pool_run_brief(pool_task task, void* context, int64_t n, int64_t chunk, int threads,
                         double* pace) noexcept nogil:
    cdef pool_batch b
    cdef bint is_long = pool_worth_waking(n, pace[0])
    pool_begin(&b, task, context, n, chunk, threads if is_long or _any_awake(threads - 1) else 1)
    if is_long:
        pool_wake(&b)
    pool_end(&b, n)
    pace[0] = b.pace


cdef struct counting:
    double* sums
    double rest
    long long ready


cdef void _count(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef counting* c = <counting*>context
    cdef int64_t i
    for i in range(first, last):
        # rest * 0.5 is subnormal; flush-to-zero would make it 0.
        c.sums[i] = <double>i + (1.0 if c.rest * 0.5 > 0.0 and i < atomic_load64(&c.ready) else 0.0)


def _selftest(n, chunk, threads, pace=None):
    """For tests: return i + 1 for each of n rows (i if subnormals are lost) and the number of
    workers.

    pace: microseconds for each row; a short call then wakes no sleeping thread.
    """
    cdef counting c
    cdef int64_t total = n, n_rows = chunk
    cdef int n_threads = pool_threads(threads)
    cdef double expected = 0.0 if pace is None else pace
    cdef bint short_tasks = pace is not None
    cdef double[::1] sums
    import numpy as np

    out = np.zeros(n)
    sums = out
    c.sums = &sums[0] if n else NULL
    c.rest = 1e-310
    c.ready = total
    with nogil:
        if short_tasks:
            pool_run_brief(_count, &c, total, n_rows, n_threads, &expected)
        else:
            pool_run(_count, &c, total, n_rows, n_threads)
    return out, n_workers


def _selftest_ready(n, end, chunk, threads):
    """For tests: like _selftest for the first ``end`` of n rows, which become ready one by one."""
    cdef counting c
    cdef pool_batch b
    cdef int64_t total = n, last = end, n_rows = chunk, i = 0
    cdef int n_threads = pool_threads(threads), _turn
    cdef double[::1] sums
    import numpy as np

    out = np.zeros(n)
    sums = out
    c.sums = &sums[0] if n else NULL
    c.rest = 1e-310
    c.ready = 0
    pool_begin(&b, _count, &c, total, n_rows, n_threads)
    while i < last:
        for _turn in range(100):
            cpu_pause()
        i += 1
        atomic_store64(&c.ready, i)
        pool_ready(&b, i)
    with nogil:
        pool_end(&b, last)
    return out


if at_fork(_after_fork) != 0:
    raise MemoryError("pycct: out of memory")
