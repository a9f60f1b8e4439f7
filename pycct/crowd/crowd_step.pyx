# cython: language_level=3
"""The step and the queries of a crowd. See the header."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from pycct.character.parameters cimport (
    SEPARATION_SPEED,
    character_of,
    gap_to_close,
    is_walkable,
    snapped,
)
from pycct.character.state_io cimport character_hash
from pycct.args.values cimport FARTHEST
from pycct.character.gathering cimport scratch_free
from pycct.character.move cimport compact_cache_free, move_controller, move_compact
from pycct.character.move_types cimport hit_record, compact_cache, move_world
from pycct.character.probes cimport probe_below, touches_anything
from pycct.spatial.character_grid cimport (
    character,
    grid_free,
    separation,
    shared_add,
    shared_reserve,
    shared_collect,
    shared_freeze,
    shared_remove,
    shared_update,
    yielder,
    yielder_of,
    yielding_box,
    yielding_push,
    yielding_sum,
)
from pycct.args.vector_rows cimport vector_rows, row_load, within
from pycct.runtime.thread_pool cimport pool_run, pool_run_brief, pool_run_parts
from pycct.runtime.prefetch cimport prefetch
from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport aabb, v3, v3_add, v3_is_zero, v3_len, v3_madd, v3_store, v3_sub, vec3
from pycct.world.candidates cimport (
    OWNER_ACTOR,
    OWNER_CONTROLLER,
    OWNER_OBSTACLE,
    candidates_free,
    candidates_init,
    capsule_bounds,
    compact_prefetch,
)


cdef int64_t most_with_triangles = 2000


cdef inline int _grow(void** p, int64_t n, size_t size) noexcept nogil:
    cdef void* grown = realloc(p[0], <size_t>n * size)
    if grown == NULL:
        return STATUS_NO_MEMORY
    p[0] = grown
    return STATUS_OK


cdef int64_t few_enough() noexcept nogil:
    return most_with_triangles


cdef void set_few_enough(int64_t n) noexcept nogil:
    global most_with_triangles
    most_with_triangles = n


cdef int crowd_reserve(crowd_data* c, int64_t capacity) noexcept nogil:
    cdef int64_t i
    if capacity <= c.capacity:
        return STATUS_OK
    if (_grow(<void**>&c.states, capacity, sizeof(controller_state)) != STATUS_OK
            or _grow(<void**>&c.compact, capacity, sizeof(compact_cache)) != STATUS_OK
            or _grow(<void**>&c.ids, capacity, sizeof(int64_t)) != STATUS_OK
            or _grow(<void**>&c.rows, capacity, sizeof(int32_t)) != STATUS_OK
            or _grow(<void**>&c.groups, capacity, sizeof(int32_t)) != STATUS_OK
            or _grow(<void**>&c.slots, capacity, sizeof(int32_t)) != STATUS_OK):
        return STATUS_NO_MEMORY
    if c.n_worlds > 1 and _grow(<void**>&c.homes, capacity, sizeof(int32_t)) != STATUS_OK:
        return STATUS_NO_MEMORY
    memset(&c.compact[c.capacity], 0, <size_t>(capacity - c.capacity) * sizeof(compact_cache))
    if capacity > most_with_triangles:
        _near_free_all(c)
    elif c.near != NULL or c.capacity == 0:
        if _grow(<void**>&c.near, capacity, sizeof(candidate_cache)) != STATUS_OK:
            return STATUS_NO_MEMORY
        memset(&c.near[c.capacity], 0, <size_t>(capacity - c.capacity) * sizeof(candidate_cache))
        for i in range(c.capacity, capacity):
            candidates_init(&c.near[i].near)
    c.capacity = capacity
    return STATUS_OK


cdef void _near_free_all(crowd_data* c) noexcept nogil:
    cdef int64_t i
    if c.near != NULL:
        for i in range(c.capacity):
            candidates_free(&c.near[i].near)
        free(c.near)
        c.near = NULL


cdef void near_forget(crowd_data* c, int64_t i) noexcept nogil:
    c.compact[i].near.whole = False
    if c.near != NULL:
        c.near[i].valid = False


cdef void near_free(crowd_data* c, int64_t i) noexcept nogil:
    compact_cache_free(&c.compact[i])
    memset(&c.compact[i], 0, sizeof(compact_cache))
    if c.near != NULL:
        candidates_free(&c.near[i].near)
        memset(&c.near[i], 0, sizeof(candidate_cache))
        candidates_init(&c.near[i].near)


cdef void crowd_free(crowd_data* c) noexcept nogil:
    cdef int64_t i
    cdef int32_t k
    for i in range(c.capacity):
        compact_cache_free(&c.compact[i])
    _near_free_all(c)
    free(c.states)
    free(c.compact)
    free(c.ids)
    free(c.rows)
    free(c.groups)
    free(c.slots)
    free(c.homes)
    free(c.table)
    if c.worlds != NULL:
        for k in range(c.n_worlds):
            grid_free(&c.worlds[k].picture.grid)
        free(c.worlds)
    memset(c, 0, sizeof(crowd_data))


cdef void thread_free(crowd_thread* t) noexcept nogil:
    scratch_free(&t.scratch)
    free(t.log.records)
    free(t.hits)
    t.hits = NULL
    t.n_hits = t.capacity_hits = 0


cdef inline character _character(const crowd_data* c, int64_t i) noexcept nogil:
    return character_of(&c.table[c.rows[i]], c.states[i].position, c.ids[i], c.groups[i])


cdef int crowd_publish(crowd_data* c, int64_t i) noexcept nogil:
    cdef character who
    cdef int32_t slot = c.slots[i]
    if not c.table[c.rows[i]].collide:
        crowd_withdraw(c, i)
        return STATUS_OK
    who = _character(c, i)
    if slot >= 0:
        return shared_update(world_of(c, i).neighbours, slot, &who)
    slot = shared_add(world_of(c, i).neighbours, &who)
    if slot < 0:
        return slot
    c.slots[i] = slot
    c.colliding += 1
    return STATUS_OK


cdef void crowd_withdraw(crowd_data* c, int64_t i) noexcept nogil:
    if c.slots[i] >= 0:
        shared_remove(world_of(c, i).neighbours, c.slots[i])
        c.slots[i] = -1
        c.colliding -= 1


cdef int crowd_publish_all(crowd_data* c) noexcept nogil:
    cdef int64_t i, fresh = 0
    cdef int status, worst = STATUS_OK
    if c.homes == NULL:
        for i in range(c.n):
            fresh += c.slots[i] < 0 and c.table[c.rows[i]].collide
        worst = shared_reserve(c.worlds.neighbours, fresh)
    for i in range(c.n):
        if c.slots[i] >= 0 or c.table[c.rows[i]].collide:
            status = crowd_publish(c, i)
            if status != STATUS_OK:
                worst = status
    return worst


cdef int crowd_freeze(crowd_data* c) noexcept nogil:
    cdef int64_t i
    cdef int32_t k
    cdef int status
    if c.homes == NULL:
        return shared_freeze(&c.worlds.picture, c.worlds.neighbours)
    for k in range(c.n_worlds):
        c.worlds[k].is_met = False
    for i in range(c.n):
        if c.slots[i] >= 0:
            c.worlds[c.homes[i]].is_met = True
    for k in range(c.n_worlds):
        if c.worlds[k].is_met:
            status = shared_freeze(&c.worlds[k].picture, c.worlds[k].neighbours)
            if status != STATUS_OK:
                return status
    return STATUS_OK


cdef int _log_hits(crowd_thread* t, const crowd_data* c, int64_t i) noexcept nogil:
    """Record the hits of the current move."""
    cdef int64_t n = t.n_hits + t.log.n, capacity
    cdef const hit_record* r
    cdef hit_row* h
    cdef int32_t k
    if n > t.capacity_hits:
        capacity = 2 * n + 64
        if _grow(<void**>&t.hits, capacity, sizeof(hit_row)) != STATUS_OK:
            return STATUS_NO_MEMORY
        t.capacity_hits = capacity
    for k in range(t.log.n):
        r = &t.log.records[k]
        h = &t.hits[t.n_hits]
        memset(h, 0, sizeof(hit_row))
        h.index = i
        h.id = c.ids[i]
        h.actor = r.id if r.owner == OWNER_ACTOR else -1
        h.controller = r.id if r.owner == OWNER_CONTROLLER else -1
        h.obstacle = r.id if r.owner == OWNER_OBSTACLE else -1
        h.triangle = r.triangle if r.triangle >= 0 else -1
        h.has_data = r.has_data
        h.data = r.data if r.has_data else 0
        h.position = r.position
        h.normal = r.normal
        h.direction = r.direction
        h.length = r.length
        h.distance = r.distance
        h.along = r.along
        h.sweep_pass = <uint8_t>r.sweep_pass
        h.dynamic = r.dynamic
        t.n_hits += 1
    return STATUS_OK


cdef inline void _fail(crowd_thread* t, int64_t i, int status) noexcept nogil:
    if t.failed < 0 or i < t.failed:
        t.failed = i
        t.status = status


cdef inline void _surround(move_world* w, const crowd_data* c, bint silent) noexcept nogil:
    memset(w, 0, sizeof(move_world))
    w.silent = silent
    w.farthest = FARTHEST
    w.fixed = c.worlds.fixed
    w.moving = c.worlds.moving


cdef inline void _enter(move_world* w, const crowd_data* c, int64_t i, bint live) noexcept nogil:
    """Fill in the surroundings of one character. ``live``: it collides with current positions."""
    cdef const controller_params* p = &c.table[c.rows[i]]
    cdef crowd_world* home = world_of(c, i)
    w.mask = p.mask
    if c.homes != NULL:
        w.fixed = home.fixed
        w.moving = home.moving
    w.others = NULL
    if p.collide:
        w.others = home.neighbours if live else &home.picture
        w.self = _character(c, i)


cdef inline int _go(crowd_step* s, crowd_thread* t, const move_world* w, int64_t i, vec3 displacement,
                    controller_state* state, move_stats* cost) noexcept nogil:
    cdef crowd_data* c = s.crowd
    cdef const controller_params* p = &c.table[c.rows[i]]
    cdef int status
    if c.near == NULL:
        return move_compact(p, state, w, &c.compact[i], &t.scratch, displacement, s.dt, s.min_distance, cost)
    t.scratch.cache_override = &c.near[i]
    status = move_controller(p, state, w, &t.scratch, displacement, s.dt, s.min_distance, cost)
    t.scratch.cache_override = NULL
    return status


cdef void _move_one(crowd_step* s, crowd_thread* t, move_world* w, int64_t i, vec3 displacement) noexcept nogil:
    cdef crowd_data* c = s.crowd
    cdef controller_state* state = &c.states[i]
    cdef controller_state before
    cdef move_stats cost
    cdef int status
    if not within(displacement, FARTHEST):
        # Its owner has changed it since the check.
        _fail(t, i, STATUS_OK)
        return
    if s.record_hits:
        before = state[0]
    _enter(w, c, i, s.sequential)
    status = _go(s, t, w, i, displacement, state, &cost)
    if status == STATUS_OK and s.record_hits:
        status = _log_hits(t, c, i)
        if status != STATUS_OK:
            state[0] = before
    if status != STATUS_OK:
        _fail(t, i, status)
        return
    v3_store(&s.positions[3 * i], state.position)
    s.flags[i] = <uint8_t>state.flags
    if s.costs != NULL:
        s.costs[i] = cost
    if c.slots[i] >= 0:
        # A character that already has a grid slot reuses it, so this update cannot fail. With
        # snapshots it may be published at any time.
        crowd_publish(c, i)


cdef inline void _prefetch_next(const crowd_step* s, int64_t i, int64_t last) noexcept nogil:
    """Prefetch the data of the next characters while this one moves.

    With compact caches the prefetch runs four characters ahead: cache, indices of the triangles,
    triangles, corners. It saves a quarter of the time if the characters are scattered over a large
    world.
    """
    cdef const compact_cache* compact = s.crowd.compact + i
    cdef const broadphase_layer* fixed
    if i + 1 < last:
        prefetch(&s.crowd.states[i + 1], sizeof(controller_state))
    if s.crowd.near != NULL or i + 4 >= last:
        return
    prefetch(&compact[4], sizeof(compact_cache))
    if compact[3].near.whole:
        prefetch(compact[3].near.block,
                 <size_t>(2 * compact[3].near.n_groups + compact[3].near.n_spots) * sizeof(int32_t))
    # Indices of another version of the world must not be followed.
    fixed = world_of(s.crowd, i + 2).fixed
    if compact[2].fixed_version == fixed.version:
        compact_prefetch(&compact[2].near, fixed, False)
    fixed = world_of(s.crowd, i + 1).fixed
    if compact[1].fixed_version == fixed.version:
        compact_prefetch(&compact[1].near, fixed, True)


cdef void _step_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Make one step of a range."""
    cdef crowd_step* s = <crowd_step*>context
    cdef move_world w
    cdef int64_t i
    _surround(&w, s.crowd, not s.record_hits)
    for i in range(first, last):
        _prefetch_next(s, i, last)
        if s.active == NULL or s.active[i * s.active_stride]:
            _move_one(s, &s.threads[worker], &w, i, row_load(&s.displacements, i))
        else:
            s.flags[i] = 0
            s.crowd.states[i].asked = v3(0.0, 0.0, 0.0)


cdef void _run_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Make all steps of a range without collisions, one character after another."""
    cdef crowd_step* s = <crowd_step*>context
    cdef move_world w
    cdef vector_rows rows = s.displacements
    cdef int64_t i, k
    _surround(&w, s.crowd, not s.record_hits)
    for i in range(first, last):
        rows.data = s.displacements.data
        for k in range(s.steps):
            _move_one(s, &s.threads[worker], &w, i, row_load(&rows, i))
            v3_store(&s.path[3 * (k * s.crowd.n + i)], s.crowd.states[i].position)
            rows.data += s.step_stride


cdef int64_t _index_of(const crowd_data* c, int64_t id) noexcept nogil:
    """Return the index of a member, -1: none."""
    cdef int64_t lo = 0, hi = c.n - 1, mid
    while lo <= hi:
        mid = (lo + hi) >> 1
        if c.ids[mid] == id:
            return mid
        if c.ids[mid] < id:
            lo = mid + 1
        else:
            hi = mid - 1
    return -1


cdef inline yielder _yielder(const crowd_step* s, int64_t i, vec3 up) noexcept nogil:
    cdef const controller_state* state = &s.crowd.states[i]
    return yielder_of(s.yielding[i], state.asked, v3_sub(state.displacement, state.platform_delta), up)


cdef inline vec3 _yield(const crowd_step* s, int64_t i, const character* me, const character* others, int32_t n,
                        double limit) noexcept nogil:
    """Return the separation of a member by the weights.

    Members of equal weight share an overlap, and the ids decide about the gap beyond. Others share
    every overlap.
    """
    cdef const crowd_data* c = s.crowd
    cdef vec3 up = c.table[c.rows[i]].up, half = v3(0.0, 0.0, 0.0), total = v3(0.0, 0.0, 0.0), push
    cdef yielder mine = _yielder(s, i, up), theirs
    cdef double lengths = 0.0
    cdef int32_t k
    cdef int64_t j
    for k in range(n):
        j = _index_of(c, others[k].id)
        if j < 0 or s.yielding[j] == s.yielding[i]:
            push = separation(me, &others[k], 1, up, limit)
            half = v3_add(half, push)
            if j < 0 or not v3_is_zero(push):
                continue
        theirs = _yielder(s, j, up)
        push = yielding_push(me, &mine, &others[k], &theirs, up, limit)
        total = v3_add(total, push)
        lengths += v3_len(push)
    return v3_add(half, yielding_sum(&mine, total, lengths, limit))


cdef void _separate_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Compute the separation of a range for its next move."""
    cdef crowd_step* s = <crowd_step*>context
    cdef crowd_data* c = s.crowd
    cdef move_scratch* k = &s.threads[worker].scratch
    cdef shared_grid* picture
    cdef double limit = SEPARATION_SPEED * s.dt
    cdef character me
    cdef aabb box
    cdef int64_t i
    cdef int32_t n
    for i in range(first, last):
        if c.slots[i] < 0:
            continue
        me = _character(c, i)
        box = capsule_bounds(me.p0, me.p1, me.radius) if s.yielding == NULL else yielding_box(&me)
        picture = &world_of(c, i).picture
        n = shared_collect(picture, box, &me, k.others, k.capacity_others)
        if n > k.capacity_others:
            if _grow(<void**>&k.others, 2 * <int64_t>n, sizeof(character)) != STATUS_OK:
                _fail(&s.threads[worker], i, STATUS_NO_MEMORY)
                continue
            k.capacity_others = 2 * n
            n = shared_collect(picture, box, &me, k.others, k.capacity_others)
        if s.yielding == NULL:
            c.states[i].separation = separation(&me, k.others, n, c.table[c.rows[i]].up, limit)
        else:
            c.states[i].separation = _yield(s, i, &me, k.others, n, limit)


cdef int crowd_separate(crowd_step* s, int threads) noexcept nogil:
    cdef int status = crowd_freeze(s.crowd)
    if status == STATUS_OK:
        pool_run(_separate_some, s, s.crowd.n, 4 * CHUNK, threads if s.crowd.n >= WORTH_WAKING else 1)
    return status


cdef inline void _step_all(crowd_step* s, int threads) noexcept nogil:
    if s.crowd.n >= WORTH_WAKING:
        pool_run(_step_some, s, s.crowd.n, CHUNK, threads)
    else:
        pool_run_brief(_step_some, s, s.crowd.n, CHUNK, threads, &s.crowd.pace)


cdef int _step(crowd_step* s, int threads) noexcept nogil:
    cdef crowd_data* c = s.crowd
    cdef int status
    if c.colliding == 0:
        _step_all(s, threads)
        return STATUS_OK
    if s.sequential:
        pool_run(_step_some, s, c.n, c.n, 1)
        return STATUS_OK
    status = crowd_freeze(c)
    if status != STATUS_OK:
        return status
    _step_all(s, threads)
    return crowd_separate(s, threads)


cdef int crowd_move(crowd_step* s, int threads) noexcept nogil:
    cdef crowd_data* c = s.crowd
    cdef int64_t k, chunk
    cdef int status
    if c.n * (s.steps if s.path != NULL else 1) < FEW:
        threads = 1
    if s.path == NULL:
        return _step(s, threads)
    if c.colliding == 0:
        chunk = CHUNK // s.steps if s.steps > 0 else CHUNK
        pool_run(_run_some, s, c.n, chunk if chunk > 1 else 1, threads)
        return STATUS_OK
    for k in range(s.steps):
        status = _step(s, threads)
        if status != STATUS_OK:
            return status
        memcpy(&s.path[3 * k * c.n], s.positions, <size_t>c.n * 3 * sizeof(double))
        s.displacements.data += s.step_stride
    return STATUS_OK


cdef void ground_row_fill(ground_row* r, const controller_params* p, const ground_contact* g,
                          double distance) noexcept nogil:
    memset(r, 0, sizeof(ground_row))
    r.actor = r.controller = r.obstacle = r.triangle = -1
    r.distance = distance
    if not g.touching:
        return
    r.hit = 1
    r.actor = g.id if g.owner == OWNER_ACTOR else -1
    r.controller = g.id if g.owner == OWNER_CONTROLLER else -1
    r.obstacle = g.id if g.owner == OWNER_OBSTACLE else -1
    r.triangle = g.triangle if g.triangle >= 0 else -1
    r.has_data = g.has_data
    r.data = g.data if g.has_data else 0
    r.normal = g.normal
    r.face_normal = g.face_normal
    r.point = g.point
    r.distance = g.distance
    r.walkable = is_walkable(p, g)


cdef void _probe_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef crowd_question* q = <crowd_question*>context
    cdef crowd_data* c = q.crowd
    cdef crowd_thread* t = &q.threads[worker]
    cdef move_world w
    cdef ground_contact found
    cdef double gap
    cdef int64_t i
    cdef int status
    _surround(&w, q.crowd, True)
    for i in range(first, last):
        _enter(&w, c, i, False)
        status = probe_below(&c.table[c.rows[i]], &c.states[i], &w, &t.scratch, q.reach, &found)
        if status != STATUS_OK:
            _fail(t, i, status)
            continue
        ground_row_fill(&q.ground[i], &c.table[c.rows[i]], &found, q.reach)
        gap = gap_to_close(&c.table[c.rows[i]], &found)
        if q.snaps and gap >= 0.0:
            snapped(&c.states[i], &c.table[c.rows[i]], &found, gap)
            q.answers[i] = gap > 0.0


cdef int crowd_probe(crowd_question* q, int threads) except -1:
    if q.crowd.n < WORTH_WAKING:
        threads = 1
    if not q.snaps:
        return pool_run_parts(_probe_some, q, q.crowd.n, CHUNK, threads)
    # All members or none are snapped.
    with nogil:
        pool_run(_probe_some, q, q.crowd.n, CHUNK, threads)
    return 0


cdef void _can_resize_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef crowd_question* q = <crowd_question*>context
    cdef crowd_data* c = q.crowd
    cdef crowd_thread* t = &q.threads[worker]
    cdef const controller_params* p
    cdef move_world w
    cdef vec3 top
    cdef bint touches
    cdef int64_t i
    cdef int status
    _surround(&w, q.crowd, True)
    for i in range(first, last):
        p = &c.table[c.rows[i]]
        touches = False
        if q.reach > p.height:
            # Only the added volume is tested; current contacts do not count.
            _enter(&w, c, i, False)
            top = v3_madd(c.states[i].position, p.up, 0.5 * p.height)
            status = touches_anything(p, &w, &t.scratch, top, v3_madd(top, p.up, q.reach - p.height), p.radius,
                                      &touches)
            if status != STATUS_OK:
                _fail(t, i, status)
        q.answers[i] = not touches


cdef int crowd_can_resize(crowd_question* q, int threads) except -1:
    return pool_run_parts(_can_resize_some, q, q.crowd.n, CHUNK, threads if q.crowd.n >= WORTH_WAKING else 1)


cdef uint64_t crowd_hash(const crowd_data* c, const uint64_t* of_rows) noexcept nogil:
    cdef uint64_t total = 0
    cdef int64_t i
    cdef int32_t home
    for i in range(c.n):
        home = 0 if c.homes == NULL else c.homes[i]
        total += character_hash(of_rows[c.rows[i]], c.ids[i], c.groups[i], home, &c.states[i])
    return total
