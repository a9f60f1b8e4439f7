# cython: language_level=3
"""One call that moves a team of single controllers."""
import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from pycct.runtime.atomic cimport atomic_add, atomic_exchange, atomic_store
from pycct.character.parameters cimport as_time, parameters_loaded
from pycct.character.state_io cimport (
    cursor,
    field_int32,
    field_int64,
    parameters_bytes,
    state_bytes,
    state_makes_sense,
)
from pycct.args.values cimport FARTHEST, as_bool, as_not_negative, from_vec3, raise_status
from pycct._core cimport CharacterController, tell_together
from pycct.crowd.crowd_step cimport CHUNK, FEW, WORTH_WAKING, few_enough
from pycct.character.frame cimport move_frame, frame_advance
from pycct.character.gathering cimport scratch_free, scratch_init
from pycct.character.move_types cimport (
    candidate_cache,
    controller_params,
    controller_state,
    hit_log,
    hit_record,
    compact_cache,
    move_scratch,
    move_world,
)
from pycct.args.vector_rows cimport as_flags, as_vectors, vector_rows, row_load, within
from pycct.runtime.thread_pool cimport (
    pool_batch,
    pool_begin,
    pool_end,
    pool_ready,
    pool_run_brief,
    pool_threads,
    pool_wake,
    pool_worth_waking,
)
from pycct.runtime.prefetch cimport prefetch
from pycct.scene.scene cimport Scene, Snapshot
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport v3_max_abs, vec3
from pycct.world.candidates cimport OWNER_CONTROLLER, candidates_prefetch, compact_prefetch, broadphase_layer

from pycct.args import save_format as saves


cdef extern from "Python.h":
    # Borrowed reference; counting it would wait for the object's memory.
    void* PyList_GET_ITEM(list items, Py_ssize_t i)


# Controllers of a large team with at most this many triangles keep them expanded.
cdef enum:
    LITTLE = 8


# One row. Controllers that can move in parallel have parameters here.
cdef struct team_job:
    const controller_params* params     # NULL: it collides or has callbacks
    const move_frame* now
    move_frame* trial
    move_scratch* scratch
    compact_cache* compact
    bint* has_little_near
    hit_log* log
    const broadphase_layer* fixed
    const broadphase_layer* moving
    vec3 displacement
    int status


cdef struct team_call:
    team_job* jobs
    uint8_t* flags
    move_scratch* scratches     # one for each thread; NULL: each controller uses its own
    double dt
    double min_distance
    long long odd               # number of failed, too far or warned moves


# How far the call has come with acquiring controllers.
cdef struct team_entry:
    int64_t entered
    int64_t done                # acquired and moved
    bint listened               # a scene has a listener


# Memory for a call.
cdef struct team_memory:
    team_job* jobs
    int64_t n_jobs
    move_scratch* scratches
    int n_scratches
    double pace                 # microseconds of a move in the last call


# Memory of the last call, for the next one.
cdef team_memory shared_memory
cdef long spare_taken = 0
memset(&shared_memory, 0, sizeof(team_memory))


cdef int _reserve(team_memory* memory, int64_t n, int threads) except -1:
    """Reserve memory for that many jobs, and scratch memory for that many threads."""
    cdef void* grown
    cdef int k
    if n > memory.n_jobs:
        grown = realloc(memory.jobs, <size_t>n * sizeof(team_job))
        if grown == NULL:
            raise MemoryError("pycct: out of memory")
        memory.jobs = <team_job*>grown
        memory.n_jobs = n
    if threads > memory.n_scratches:
        grown = realloc(memory.scratches, <size_t>threads * sizeof(move_scratch))
        if grown == NULL:
            raise MemoryError("pycct: out of memory")
        memory.scratches = <move_scratch*>grown
        for k in range(memory.n_scratches, threads):
            scratch_init(&memory.scratches[k])
        memory.n_scratches = threads
    return 0


cdef void _free(team_memory* memory) noexcept:
    cdef int k
    for k in range(memory.n_scratches):
        scratch_free(&memory.scratches[k])
    free(memory.scratches)
    free(memory.jobs)


cdef inline bint _has_own(const team_call* t, const team_job* j) noexcept nogil:
    """Whether it moves with its own scratch memory, which keeps its candidates expanded.

    Otherwise it uses the thread's memory and expands compact candidates. That is slower by a third
    if everything fits the cache, and faster by a tenth if not.
    """
    return t.scratches == NULL or j.has_little_near[0]


cdef inline void _prefetch_next(const team_call* t, int64_t i, int64_t last) noexcept nogil:
    """Prefetch the data of the next four controllers while one moves.

    Large teams do not fit the cache and would wait a quarter of their time.
    """
    cdef const team_job* j = t.jobs + i
    if i + 4 < last and j[4].params != NULL and t.scratches != NULL:
        prefetch(j[4].compact, sizeof(compact_cache) + sizeof(bint))
    if i + 3 < last and j[3].params != NULL:
        if _has_own(t, &j[3]):
            prefetch(&j[3].scratch.cache, sizeof(candidate_cache))
        elif j[3].compact.near.whole:
            prefetch(j[3].compact.near.block,
                     <size_t>(2 * j[3].compact.near.n_groups + j[3].compact.near.n_spots) * sizeof(int32_t))
    if i + 2 < last and j[2].params != NULL:
        prefetch(j[2].params, sizeof(controller_params))
        prefetch(j[2].now, sizeof(controller_state))
        prefetch(j[2].trial, sizeof(move_frame))
        prefetch(j[2].log, sizeof(hit_log))
        # Indices of another version of the world must not be followed.
        if not _has_own(t, &j[2]) and j[2].compact.fixed_version == j[2].fixed.version:
            compact_prefetch(&j[2].compact.near, j[2].fixed, False)
    if i + 1 < last and j[1].params != NULL:
        if _has_own(t, &j[1]):
            candidates_prefetch(&j[1].scratch.cache.near)
        elif j[1].compact.fixed_version == j[1].fixed.version:
            compact_prefetch(&j[1].compact.near, j[1].fixed, True)
        if j[1].log.records != NULL:
            prefetch(j[1].log.records, sizeof(hit_record))


cdef inline bint _is_odd(const team_job* j) noexcept nogil:
    """Whether the move needs an inspection before it takes effect."""
    return j.status != STATUS_OK or j.trial.pending_warnings != 0 or v3_max_abs(j.trial.state.position) > FARTHEST


cdef void _move_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef team_call* t = <team_call*>context
    cdef team_job* j
    cdef move_world w
    cdef int64_t i
    cdef bint shares
    memset(&w, 0, sizeof(move_world))
    for i in range(first, last):
        _prefetch_next(t, i, last)
        j = &t.jobs[i]
        if j.params == NULL:
            continue
        w.fixed = j.fixed
        w.moving = j.moving
        w.mask = j.params.mask
        # Compact caches cannot store invisible walls.
        shares = not _has_own(t, j) and j.params.invisible_wall_height <= 0.0
        j.status = frame_advance(j.params, j.now, j.trial, &w, &t.scratches[worker] if shares else j.scratch,
                                 j.compact if shares else NULL, j.log, j.displacement, t.dt, t.min_distance)
        if shares:
            j.has_little_near[0] = j.compact.near.whole and j.compact.near.n_spots <= LITTLE
        else:
            j.has_little_near[0] = j.scratch.cache.near.n_tris <= LITTLE
        t.flags[i] = <uint8_t>j.trial.state.flags
        if _is_odd(j):
            atomic_add(&t.odd, 1)


cdef inline void _prefetch_hero(void* hero) noexcept:
    """Prefetch the fields that are used with the GIL."""
    prefetch(hero, <size_t>(<char*>&(<CharacterController>hero).slot - <char*>hero))


cdef inline void _prefetch_turn(void* hero) noexcept:
    """Prefetch the fields that a commit changes."""
    prefetch(hero, <size_t>(<char*>&(<CharacterController>hero).params - <char*>hero))


cdef inline bint _is_plain(CharacterController hero) noexcept:
    """Whether it neither collides nor has callbacks, so that it can move in parallel."""
    return (not hero.params.collide and hero.filter_ is None and hero.behavior_ is None and hero.on_hit_ is None)


cdef inline void _write_down(team_job* j, CharacterController hero, Snapshot snap, vec3 displacement) noexcept:
    """Fill in the job of an acquired controller."""
    if not _is_plain(hero):
        j.params = NULL
        return
    j.params = &hero.params
    j.now = hero.now
    j.trial = hero.trial
    j.scratch = &hero.scratch
    j.compact = &hero.compact
    j.has_little_near = &hero.has_little_near
    j.log = hero.trial_log
    j.fixed = &snap.fixed.data
    j.moving = &snap.moving.data
    j.displacement = displacement


cdef int64_t _enter_alike(list heroes, const vector_rows* rows, int64_t i, Scene scene, Snapshot snap, team_job* jobs,
                          pool_batch* batch) noexcept:
    """Acquire controllers from i on, while they share one scene and are valid; return the end.

    The pool may already move them meanwhile, so no foreign code runs here and no error is raised.
    """
    cdef CharacterController hero
    cdef int64_t n = len(heroes)
    cdef vec3 displacement
    cdef void* other
    while i < n:
        if i + 6 < n:
            _prefetch_hero(PyList_GET_ITEM(heroes, i + 6))
        other = PyList_GET_ITEM(heroes, i)
        displacement = row_load(rows, i)
        if not isinstance(<object>other, CharacterController) or not within(displacement, FARTHEST):
            break
        hero = <CharacterController>other
        if hero.scene is not scene or not hero.may_enter():
            break
        _write_down(&jobs[i], hero, snap, displacement)
        i += 1
        if batch != NULL and i % CHUNK == 0:
            pool_ready(batch, i)
    return i


cdef inline int _look_again(const vector_rows* rows, int64_t i, vec3* displacement) except -1:
    """Check a displacement again, because its owner may have changed it."""
    displacement[0] = row_load(rows, i)
    if not within(displacement[0], FARTHEST):
        raise ValueError(f"displacements were changed during the call: row {i} makes no sense")
    return 0


cdef int _tell(list heroes, object displacements, double dt, double min_distance) except -1:
    """Call the listeners of the scenes, each with its own controllers."""
    cdef dict rows = {}
    for i, hero in enumerate(heroes):
        if (<CharacterController>hero).scene.journal_ is not None:
            rows.setdefault((<CharacterController>hero).scene, []).append(i)
    for scene, mine in rows.items():
        listener = (<Scene>scene).journal_
        if listener is not None:
            listener(scene, "move_many", {"controllers": [heroes[i] for i in mine],
                                          "displacements": displacements[mine], "dt": dt,
                                          "min_distance": min_distance})
    return 0


cdef int _check(const team_job* j, int64_t row) except -1:
    """Check that the computed move may take effect."""
    raise_status(j.status)
    if v3_max_abs(j.trial.state.position) > FARTHEST:
        raise ValueError(f"displacements must not lead beyond {FARTHEST:g} m, as row {row} does, to "
                         f"{from_vec3(j.trial.state.position)}")
    return 0


cdef int _enter_all(list heroes, const vector_rows* rows, team_call* t, team_memory* memory, dict snaps, int n_threads,
                    team_entry* e) except -1:
    """Acquire all controllers and fill in their jobs; the pool begins to move a large team."""
    cdef CharacterController hero
    cdef Scene scene
    cdef Snapshot snap
    cdef pool_batch batch
    cdef int64_t n = len(heroes)
    cdef bint begun = False
    cdef vec3 displacement
    while e.entered < n:
        # A controller that needs all checks, and similar ones after it.
        other = heroes[e.entered]
        if not isinstance(other, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(other).__name__}")
        hero = <CharacterController>other
        _look_again(rows, e.entered, &displacement)
        if hero.busy and len(set(map(id, heroes))) != n:
            raise ValueError("controllers must be different from one another")
        hero.enter()
        e.entered += 1
        e.listened = e.listened or hero.barred != 0
        scene = hero.scene
        snap = snaps.get(scene)
        if snap is None:
            snap = snaps[scene] = scene.snapshot()
        _write_down(&memory.jobs[e.entered - 1], hero, snap, displacement)
        if e.entered == 1 and n_threads > 1 and (n >= WORTH_WAKING or pool_worth_waking(n, memory.pace)):
            # The workers may start.
            begun = True
            pool_begin(&batch, _move_some, t, n, CHUNK, n_threads)
            pool_wake(&batch)
        e.entered = _enter_alike(heroes, rows, e.entered, scene, snap, memory.jobs, &batch if begun else NULL)
        if begun:
            with nogil:
                pool_end(&batch, e.entered)
            memory.pace = batch.pace
            begun = False
            e.done = e.entered
    return 0


cdef int _commit_all(list heroes, const vector_rows* rows, team_call* t, team_job* jobs, dict snaps,
                     uint8_t[::1] flags, list moved) except -1:
    """Let computed moves take effect, and move the controllers that cannot move in parallel.

    ``moved`` receives the controllers whose proxies follow.
    """
    cdef CharacterController hero
    cdef team_job* j
    cdef int64_t n = len(heroes), i
    cdef vec3 displacement
    # Before any move takes effect.
    if t.odd > 0:
        for i in range(n):
            if jobs[i].params != NULL:
                _check(&jobs[i], i)
    for i in range(n):
        if jobs[i].params != NULL:
            continue
        hero = <CharacterController>heroes[i]
        _look_again(rows, i, &displacement)
        hero.advance(snaps[hero.scene], displacement, t.dt, t.min_distance, hero.params.mask, hero.filter_)
        flags[i] = <uint8_t>hero.now.state.flags
        moved.append(hero)
        hero.publish_place()
    if t.odd > 0:
        for i in range(n):
            j = &jobs[i]
            if j.params != NULL and j.trial.pending_warnings:
                (<CharacterController>heroes[i]).warn()
    for i in range(n):
        if i + 6 < n:
            _prefetch_turn(PyList_GET_ITEM(heroes, i + 6))
        if jobs[i].params == NULL:
            continue
        hero = <CharacterController>heroes[i]
        hero.commit(None)
        if hero.proxy_ is not None:
            moved.append(hero)
    return 0


cdef int _move_team(list heroes, const vector_rows* rows, object displacements, team_call* t, uint8_t[::1] flags,
                    int n_threads) except -1:
    """Move controllers with checked arguments, and release them in any case."""
    cdef list moved = []
    cdef dict snaps = {}
    cdef CharacterController hero
    cdef team_entry e
    cdef team_memory own
    cdef team_memory* memory = &own
    cdef int64_t n = len(heroes), i
    cdef bint large
    t.flags = &flags[0] if n > 0 else NULL
    t.odd = 0
    memset(&e, 0, sizeof(team_entry))
    memset(&own, 0, sizeof(team_memory))
    try:
        if not atomic_exchange(&spare_taken, 1):
            memory = &shared_memory
        large = n > few_enough()
        _reserve(memory, n, n_threads if large else 0)
        t.jobs = memory.jobs
        t.scratches = memory.scratches if large else NULL
        _enter_all(heroes, rows, t, memory, snaps, n_threads, &e)
        if e.done < n:
            t.jobs = memory.jobs + e.done
            t.flags += e.done
            with nogil:
                pool_run_brief(_move_some, t, n - e.done, CHUNK, n_threads, &memory.pace)
        if e.listened:
            _tell(heroes, displacements, t.dt, t.min_distance)
        _commit_all(heroes, rows, t, memory.jobs, snaps, flags, moved)
    finally:
        try:
            for hero in moved:
                if hero.proxy_ is not None:
                    hero.lead()
        finally:
            for i in range(e.entered):
                (<CharacterController>heroes[i]).leave()
            if memory == &shared_memory:
                atomic_store(&spare_taken, 0)
            else:
                _free(memory)
    return 0


def move_many(controllers, displacements, dt, threads=1, out=None, *, min_distance=0.0):
    """Move many controllers in one call, with one release of the GIL.

    Parameters
    ----------
    controllers : list or tuple of CharacterController
        Different ones, of one scene or of several.
    displacements : (n, 3) array of floats
        Desired motions, metres, gravity included.
    dt : float
        Duration, seconds, >= 0.
    threads : int
        Largest number of threads, the calling one included. The results are the same for any
        number, and small teams use fewer.
    out : (n,) array of uint8, optional
        Array for the flags; without it a new array is created.
    min_distance : float
        A motion of this length or less does not start, metres.

    Returns
    -------
    (n,) array of uint8
        CollisionFlags. ``out``, if given.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; nothing has changed. If a callback or another thread makes
        ``out`` read-only during the call, all have moved.
    RuntimeError
        If another thread uses one of the controllers, or one has been removed; nothing has changed.

    Notes
    -----
    All moves read the snapshot of the start of the call. Proxies follow after all moves.

    Controllers that collide or have callbacks move first, one after another in the given order, in
    the calling thread: each collides with the current positions of those before it. An exception in
    a callback, or a position beyond the limits, reaches the caller; controllers that have moved
    stay moved, and the others have not moved.

    All other controllers move in parallel. If one of these moves fails, none takes effect. None
    takes effect either if a handler of the logger 'pycct' raises; it receives each warning once.
    """
    cdef vector_rows rows
    cdef team_call t
    cdef list heroes
    cdef int64_t n
    cdef int n_threads
    cdef uint8_t[::1] flags
    t.dt = as_time(dt)
    t.min_distance = as_not_negative(min_distance, "min_distance")
    if not isinstance(controllers, (list, tuple)):
        raise TypeError(f"controllers must be a list or tuple, not {type(controllers).__name__}")
    # A private list, which no other code changes.
    heroes = list(controllers)
    n = len(heroes)
    _held = as_vectors(displacements, "displacements", n, &rows)
    n_threads = pool_threads(threads)
    if n < FEW:
        n_threads = 1
    if out is not None:
        as_flags(out, n)
    result = np.zeros(n, np.uint8)
    flags = result
    _move_team(heroes, &rows, _held, &t, flags, n_threads)
    if out is None:
        return result
    np.copyto(out, result)
    return out


cdef list _team_of(object controllers):
    """Return a private list of different controllers."""
    cdef list heroes
    if not isinstance(controllers, (list, tuple)):
        raise TypeError(f"controllers must be a list or tuple, not {type(controllers).__name__}")
    heroes = list(controllers)
    for other in heroes:
        if not isinstance(other, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(other).__name__}")
        if (<CharacterController>other).scene is None:
            raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
    if len(set(map(id, heroes))) != len(heroes):
        raise ValueError("controllers must be different from one another")
    return heroes


cdef Scene _scene_of(list heroes):
    """Return the one scene of these controllers."""
    cdef Scene scene = None
    for hero in heroes:
        if scene is not None and (<CharacterController>hero).scene is not scene:
            raise ValueError("controllers must be of one scene when moving actors are saved with them")
        scene = (<CharacterController>hero).scene
    if scene is None:
        raise ValueError("controllers must not be empty when moving actors are saved with them")
    return scene


def save_many(controllers, *, moving=False):
    """Return the state of these controllers as bytes for `restore_many`.

    Parameters
    ----------
    controllers : list or tuple of CharacterController
        Different ones.
    moving : bool
        Also save the kinematic and dynamic actors and the obstacles of the scene: poses, layers and
        behaviors, by id. All controllers must then belong to one scene. Shapes and proxies of
        controllers are not saved.

    Returns
    -------
    bytes
        Little-endian; the same on every machine. They contain no callbacks and no ``user_data``.
    """
    cdef list heroes = _team_of(controllers)
    cdef CharacterController hero
    cdef cursor cur
    cdef int64_t n = len(heroes)
    cdef int32_t carries = as_bool(moving, "moving")
    carried = _scene_of(heroes).moving_bytes() if carries else b""
    if saves.TEAM_HEAD.size + n * saves.TEAM_EACH + len(carried) > 0xFFFFFFFF:
        raise ValueError("controllers that take more than 4 GiB cannot be saved")
    data = PyBytes_FromStringAndSize(
        NULL, saves.HEADER.size + saves.TEAM_HEAD.size + <Py_ssize_t>n * saves.TEAM_EACH + len(carried))
    cur.at = <uint8_t*>PyBytes_AS_STRING(data) + <Py_ssize_t>saves.HEADER.size
    cur.loads = False
    field_int64(&cur, &n)
    field_int32(&cur, &carries)
    for hero in heroes:
        with cython.critical_section(hero):
            field_int64(&cur, &hero.id)
            parameters_bytes(&cur, &hero.params)
            state_bytes(&cur, &hero.now.state)
    memcpy(cur.at, PyBytes_AS_STRING(carried), <size_t>len(carried))
    head = saves.head_of(data, saves.TEAM_MAGIC)
    # Nothing else has the bytes yet.
    memcpy(PyBytes_AS_STRING(data), PyBytes_AS_STRING(head), <size_t>len(head))
    return data


# A saved controller.
cdef struct team_member:
    int64_t id
    controller_params params
    controller_state state


def restore_many(controllers, data):
    """Restore the states of `save_many`, all of them or none.

    Parameters
    ----------
    controllers : list or tuple of CharacterController
        The same number as saved, in the same order. They keep their ids. A controller that stood on
        another one of them stands on the one in its place.
    data : bytes
        From `save_many` of this results version. Saved moving actors are restored too.

    Raises
    ------
    ValueError
        If the data is damaged or of another number of controllers, or moves an actor that has been
        removed; nothing has changed.
    RuntimeError
        If another thread uses one of the controllers, or one has been removed; nothing has changed.
    """
    cdef list heroes = _team_of(controllers), found = [], taken = []
    cdef const uint8_t[::1] body = saves.unseal(data, saves.TEAM_MAGIC)
    cdef CharacterController hero
    cdef Scene scene = None
    cdef cursor cur
    cdef team_member* all_of_them = NULL
    cdef team_member* one
    cdef int64_t n = 0, k, size
    cdef int32_t carries = 0
    cdef dict number = {}
    damaged = ValueError("data is damaged: it makes no sense")
    if body.shape[0] < saves.TEAM_HEAD.size:
        raise damaged
    cur.at = <uint8_t*>&body[0]
    cur.loads = True
    field_int64(&cur, &n)
    field_int32(&cur, &carries)
    if not 0 <= n <= body.shape[0] or carries not in (0, 1):
        raise damaged
    size = <int64_t>saves.TEAM_HEAD.size + n * <int64_t>saves.TEAM_EACH
    if size > body.shape[0] or not carries and size != body.shape[0]:
        raise damaged
    if n != len(heroes):
        raise ValueError(f"data is of {n} controllers, but controllers are {len(heroes)}")
    all_of_them = <team_member*>malloc(<size_t>(n + 1) * sizeof(team_member))
    if all_of_them == NULL:
        raise MemoryError("pycct: out of memory")
    try:
        for k in range(n):
            one = &all_of_them[k]
            memset(one, 0, sizeof(team_member))
            field_int64(&cur, &one.id)
            parameters_bytes(&cur, &one.params)
            state_bytes(&cur, &one.state)
            parameters_loaded(&one.params)
            if not state_makes_sense(&one.state) or one.id in number:
                raise damaged
            number[one.id] = (<CharacterController>heroes[k]).id
        if carries:
            scene = _scene_of(heroes)
            moving = saves.split_moving(body[size:], 1)
            with scene.lock:
                found = scene.moving_found(moving[0])
        for hero in heroes:
            hero.enter()
            taken.append(hero)
        tell_together("restore_many", heroes, {"data": data})
        for k in range(n):
            hero = heroes[k]
            one = &all_of_them[k]
            one.params.proxy = hero.params.proxy
            one.state.touched_controller = number.get(one.state.touched_controller, one.state.touched_controller)
            if one.state.ground.touching and one.state.ground.owner == OWNER_CONTROLLER:
                one.state.ground.id = number.get(one.state.ground.id, one.state.ground.id)
            hero.become(&one.params, &one.state)
        if scene is not None:
            scene.moving_put(found)
    finally:
        free(all_of_them)
        for hero in taken:
            hero.leave()
