# cython: language_level=3
"""Controllers of a team, each an object of its own, moved by one call."""
import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pycct._atomic cimport atomic_exchange, atomic_store
from pycct._character cimport as_time
from pycct._convert cimport FARTHEST, as_not_negative, from_vec3, raise_status
from pycct._core cimport CharacterController
from pycct._move cimport (
    candidate_cache,
    controller_params,
    controller_state,
    hit_log,
    hit_record,
    move_controller,
    move_scratch,
    move_stats,
    move_world,
)
from pycct._numbers cimport as_flags, as_vectors, number_rows, row_load, within
from pycct._pool cimport pool_run, pool_threads
from pycct._prefetch cimport prefetch
from pycct._scene cimport Scene, Snapshot
from pycct._vec cimport v3_max_abs, vec3
from pycct._world cimport candidates_prefetch, world_part


cdef extern from "Python.h":
    # Borrowed, and not counted, which would wait for it.
    void* PyList_GET_ITEM(list items, Py_ssize_t i)


# Controllers handed to a thread at a time, and the least for which one is woken, as for crowds.
cdef enum:
    CHUNK = 32
    FEW = 96


# One who meets no other character and asks nobody.
cdef struct team_job:
    const controller_params* params
    const controller_state* state
    controller_state* trial
    move_scratch* scratch
    const world_part* fixed
    const world_part* moving
    int64_t row
    vec3 way
    int status
    move_stats cost


cdef struct team_call:
    team_job* jobs
    int64_t n
    double dt
    double min_distance


# Jobs of the last call, for the next one.
cdef team_job* spare = NULL
cdef int64_t spare_room = 0
cdef long spare_taken = 0


cdef inline void _prefetch_jobs(const team_job* next_, const team_job* one_more) noexcept nogil:
    """Fetch what the next two need while one moves: large teams do not fit a cache, and would wait a quarter of their
    time."""
    prefetch(one_more.params, sizeof(controller_params))
    prefetch(one_more.state, sizeof(controller_state))
    prefetch(one_more.trial, sizeof(controller_state))
    prefetch(&one_more.scratch.cache, sizeof(candidate_cache))
    prefetch(&one_more.scratch.log, sizeof(hit_log))
    candidates_prefetch(&next_.scratch.cache.near)
    if next_.scratch.log.records != NULL:
        prefetch(next_.scratch.log.records, sizeof(hit_record))


cdef void _move_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef team_call* t = <team_call*>context
    cdef team_job* j
    cdef move_world w
    cdef int64_t i
    memset(&w, 0, sizeof(move_world))
    for i in range(first, last):
        if i + 2 < last:
            _prefetch_jobs(&t.jobs[i + 1], &t.jobs[i + 2])
        j = &t.jobs[i]
        w.fixed = j.fixed
        w.moving = j.moving
        w.mask = j.params.mask
        j.trial[0] = j.state[0]
        j.status = move_controller(j.params, j.trial, &w, j.scratch, j.way, t.dt, t.min_distance, &j.cost)


cdef inline void _prefetch_hero(void* hero) noexcept:
    """All of it but what a move needs to itself."""
    prefetch(hero, <size_t>(<char*>&(<CharacterController>hero).scratch - <char*>hero))


cdef inline bint _is_plain(CharacterController hero) noexcept:
    """It meets no other character and asks nobody: it may move at the same time as others."""
    return (not hero.params.collide and hero.filter_ is None and hero.behavior_ is None and hero.on_hit_ is None)


cdef inline int _look_again(const number_rows* ways, int64_t i, vec3* way) except -1:
    """A displacement, checked again: its owner may have changed it since."""
    way[0] = row_load(ways, i)
    if not within(way[0], FARTHEST):
        raise ValueError(f"displacements were changed during the call: row {i} makes no sense")
    return 0


def move_many(controllers, displacements, dt, threads=1, out=None, *, min_distance=0.0):
    """Move many controllers: one call, one release of the GIL.

    Parameters
    ----------
    controllers : list or tuple of CharacterController
        Different ones; of one scene or of several.
    displacements : (n, 3) array of floats
        Wanted motions, metres, gravity included.
    dt : float
        Time that passes, seconds, >= 0.
    threads : int
        How many threads may take part, this one among them; the results are the same for any
        number. Small teams are done by fewer.
    out : (n,) array of uint8, optional
        Where to write the flags; without it a new array is made.
    min_distance : float
        A motion no longer than this is not begun, metres.

    Returns
    -------
    (n,) array of uint8
        CollisionFlags. ``out``, when given.

    Raises
    ------
    ValueError, TypeError
        An argument makes no sense; nothing has changed.
    RuntimeError
        Another thread uses one of the controllers, or it has been removed; nothing has changed.

    Notes
    -----
    All move in the world as it is when the call begins; proxies follow when all have moved.

    Controllers that collide or have callbacks are moved first, one after another in the order
    given, by the calling thread: each meets those before it where they are now. What a callback
    raises reaches the caller; who was moved before stays moved, the others have not moved. All
    the others move at the same time, or, when one of them cannot, not at all.
    """
    global spare, spare_room
    cdef number_rows ways
    cdef double time = as_time(dt), least = as_not_negative(min_distance, "min_distance")
    cdef list heroes, slow = [], moved = []
    cdef dict snaps = {}
    cdef CharacterController hero
    cdef Scene scene = None
    cdef Snapshot snap = None
    cdef team_call t
    cdef team_job* j
    cdef team_job* jobs = NULL
    cdef void* grown
    cdef int64_t n, i, taken = 0, room = 0
    cdef bint borrowed = False
    cdef vec3 way
    cdef int many
    cdef uint8_t[::1] flags
    if not isinstance(controllers, (list, tuple)):
        raise TypeError(f"controllers must be a list or tuple, not {type(controllers).__name__}")
    # A list of our own: nobody else changes it.
    heroes = list(controllers)
    n = len(heroes)
    _held = as_vectors(displacements, "displacements", n, &ways)
    many = pool_threads(threads)
    if out is not None:
        as_flags(out, n)
    told = np.zeros(n, np.uint8)
    flags = told
    t.n = 0
    t.dt = time
    t.min_distance = least
    try:
        if not atomic_exchange(&spare_taken, 1):
            borrowed = True
            jobs = spare
            room = spare_room
        if room < n:
            grown = realloc(jobs, <size_t>n * sizeof(team_job))
            if grown == NULL:
                raise MemoryError("pycct: out of memory")
            jobs = <team_job*>grown
            room = n
            if borrowed:
                spare = jobs
                spare_room = room
        for i in range(n):
            if i + 6 < n:
                _prefetch_hero(PyList_GET_ITEM(heroes, i + 6))
            other = heroes[i]
            if not isinstance(other, CharacterController):
                raise TypeError(f"controllers must be CharacterControllers, not {type(other).__name__}")
            hero = <CharacterController>other
            if hero.busy and len(set(map(id, heroes))) != n:
                raise ValueError("controllers must be different from one another")
            hero.enter()
            taken += 1
            if hero.scene is not scene:
                scene = hero.scene
                snap = snaps.get(scene)
                if snap is None:
                    snap = snaps[scene] = scene.snapshot()
            if not _is_plain(hero):
                slow.append(i)
                continue
            j = &jobs[t.n]
            t.n += 1
            j.params = &hero.params
            j.state = hero.st
            j.trial = hero.trial
            j.scratch = &hero.scratch
            j.fixed = &snap.fixed.data
            j.moving = &snap.moving.data
            j.row = i
            _look_again(&ways, i, &j.way)
        for i in slow:
            hero = <CharacterController>heroes[i]
            _look_again(&ways, i, &way)
            hero.advance(snaps[hero.scene], way, time, least, hero.params.mask, hero.filter_)
            flags[i] = <uint8_t>hero.st.flags
            moved.append(hero)
            hero.publish_place()
        t.jobs = jobs
        if t.n < FEW:
            many = 1
        with nogil:
            pool_run(_move_some, &t, t.n, CHUNK, many)
        for i in range(t.n):
            if i + 6 < t.n:
                prefetch(jobs[i + 6].trial, 64)
                prefetch(jobs[i + 6].state, sizeof(vec3))
            raise_status(jobs[i].status)
            if v3_max_abs(jobs[i].trial.position) > FARTHEST:
                raise ValueError(f"displacements must not lead beyond {FARTHEST:g} m, as row {jobs[i].row} does, to "
                                 f"{from_vec3(jobs[i].trial.position)}")
            (<CharacterController>heroes[jobs[i].row]).watch(jobs[i].way, &jobs[i].cost)
        for i in range(t.n):
            if i + 6 < t.n:
                _prefetch_hero(PyList_GET_ITEM(heroes, jobs[i + 6].row))
            j = &jobs[i]
            hero = <CharacterController>heroes[j.row]
            hero.commit(&j.cost, j.way, time, least, hero.params.mask, None)
            flags[j.row] = <uint8_t>j.trial.flags
            if hero.proxy_ is not None:
                moved.append(hero)
    finally:
        try:
            for hero in moved:
                if hero.proxy_ is not None:
                    hero.lead()
        finally:
            for i in range(taken):
                (<CharacterController>heroes[i]).leave()
            if borrowed:
                atomic_store(&spare_taken, 0)
            else:
                free(jobs)
    if out is None:
        return told
    np.copyto(out, told)
    return out
