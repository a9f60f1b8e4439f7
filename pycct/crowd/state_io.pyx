# cython: language_level=3
"""The members of a crowd as bytes, and back. See the header."""
import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pycct.args.values cimport raise_status
from pycct.character.move_types cimport candidate_cache, compact_cache, controller_params, controller_state
from pycct.character.parameters cimport parameters_loaded
from pycct.character.state_io cimport (
    cursor,
    field_int32,
    field_int64,
    parameters_bytes,
    state_bytes,
    state_makes_sense,
)
from pycct.crowd.crowd_step cimport crowd_data, crowd_free, crowd_reserve, near_forget
from pycct.world.candidates cimport OWNER_CONTROLLER

from pycct.args import save_format as saves

# Bytes of a saved crowd: order, rows of the table, default group, number of characters ...
cdef int SAVE_HEAD = saves.CROWD_HEAD.size
# Added to the order if the world of each member follows at the end.
cdef int SAVES_HOMES = 2
# Added to the order if poses of moving actors follow at the very end.
cdef int SAVES_MOVING = 4
# Bytes of each character: id, row, group, flags.
cdef int SAVE_EACH = saves.CROWD_EACH.size
# A crowd of at most this capacity keeps the memory of its former state for the next restore.
cdef int64_t LARGEST_SPARE = 4096


cdef bytes params_key(controller_params* p):
    cdef uint8_t buffer[128]
    cdef cursor cur
    cur.at = buffer
    cur.loads = False
    parameters_bytes(&cur, p)
    return <bytes>(<char*>buffer)[:cur.at - buffer]


cdef list _used_rows(const crowd_data* c, const int64_t[::1] which, int32_t[::1] number, bint repeats):
    """Return the rows of the table that the members use, in the order of use, equal ones once.

    ``number`` receives the new number of each row; it contains -1 everywhere.
    """
    cdef Py_ssize_t m
    cdef int32_t k
    cdef dict seen = {}
    cdef list rows = []
    for m in range(which.shape[0]):
        k = c.rows[which[m]]
        if number[k] >= 0:
            continue
        if repeats:
            key = params_key(&c.table[k])
            if key in seen:
                number[k] = seen[key]
                continue
            seen[key] = len(rows)
        number[k] = <int32_t>len(rows)
        rows.append(k)
    return rows


cdef bytes crowd_bytes(const crowd_data* c, crowd_settings* settings, const int64_t[::1] which,
                       const uint8_t[::1] flags, int32_t n_rows, bint repeats, list moving):
    cdef cursor cur
    cdef int64_t i, n = which.shape[0]
    cdef Py_ssize_t m
    cdef int32_t k, order
    cdef size_t size
    cdef bint several = c.n_worlds > 1
    cdef int32_t[::1] number = np.full(n_rows, -1, np.int32)
    # Rows in the order of use: equal crowds have equal bytes, whatever their history.
    rows = _used_rows(c, which, number, repeats)
    n_rows = <int32_t>len(rows)
    size = SAVE_HEAD + <size_t>(1 + n_rows) * <size_t>saves.PARAMS.size
    size += <size_t>n * <size_t>(SAVE_EACH + saves.STATE.size)
    if several:
        size += <size_t>n * sizeof(int32_t)
    if moving is not None:
        size += sum(map(len, moving))
    if size > 0xFFFFFFFFu:
        raise ValueError("a crowd of more than 4 GiB cannot be saved")
    data = PyBytes_FromStringAndSize(NULL, saves.HEADER.size + size)
    cur.at = <uint8_t*>PyBytes_AS_STRING(data) + <Py_ssize_t>saves.HEADER.size
    cur.loads = False
    order = settings.sequential + (SAVES_HOMES if several else 0) + (SAVES_MOVING if moving is not None else 0)
    field_int32(&cur, &order)
    field_int32(&cur, &n_rows)
    field_int32(&cur, &settings.group)
    field_int64(&cur, &n)
    parameters_bytes(&cur, &settings.params)
    for row in rows:
        parameters_bytes(&cur, &c.table[<int32_t>row])
    for m in range(n):
        i = which[m]
        field_int64(&cur, &c.ids[i])
        k = number[c.rows[i]]
        field_int32(&cur, &k)
        field_int32(&cur, &c.groups[i])
        cur.at[0] = flags[i]
        cur.at += 1
        state_bytes(&cur, &c.states[i])
    if several:
        for m in range(n):
            field_int32(&cur, &c.homes[which[m]])
    if moving is not None:
        for table in moving:
            memcpy(cur.at, PyBytes_AS_STRING(table), <size_t>len(table))
            cur.at += <Py_ssize_t>len(table)
    head = saves.head_of(data, saves.CROWD_MAGIC)
    # Nothing else has the bytes yet.
    memcpy(PyBytes_AS_STRING(data), PyBytes_AS_STRING(head), <size_t>len(head))
    return data


cdef int _read_table(cursor* cur, crowd_data* fresh, crowd_settings* settings, int32_t n_rows) except -1:
    """Read the parameters of members that are added later, and the rows of the table."""
    cdef controller_params fits
    cdef int32_t k
    settings.params.proxy = -1
    parameters_bytes(cur, &settings.params)
    # Each value is valid; values for later characters need not fit together, because they may
    # change.
    fits = settings.params
    if fits.step_offset > fits.height:
        fits.height = fits.step_offset
    parameters_loaded(&fits)
    fresh.table = <controller_params*>calloc(n_rows + 1, sizeof(controller_params))
    if fresh.table == NULL:
        raise MemoryError("pycct: out of memory")
    for k in range(n_rows):
        fresh.table[k].proxy = -1
        parameters_bytes(cur, &fresh.table[k])
        parameters_loaded(&fresh.table[k])
    return 0


cdef int _read_members(cursor* cur, crowd_data* fresh, int64_t n, int32_t n_rows, int64_t[::1] ids,
                       uint8_t[::1] flags) except -1:
    """Read n members; False if one of them makes no sense or their ids do not ascend."""
    cdef int64_t i
    cdef bint good = True
    for i in range(n):
        memset(&fresh.states[i], 0, sizeof(controller_state))
        field_int64(cur, &fresh.ids[i])
        field_int32(cur, &fresh.rows[i])
        field_int32(cur, &fresh.groups[i])
        flags[i] = cur.at[0]
        cur.at += 1
        state_bytes(cur, &fresh.states[i])
        fresh.slots[i] = -1
        ids[i] = fresh.ids[i]
        good = (good and 0 <= fresh.rows[i] < n_rows and fresh.groups[i] >= 0 and flags[i] <= 7
                and 0 <= fresh.ids[i] < 1LL << 62 and (i == 0 or fresh.ids[i] > fresh.ids[i - 1])
                and state_makes_sense(&fresh.states[i]))
    return good


cdef tuple crowd_from_bytes(object data, crowd_data* fresh, crowd_settings* settings, int32_t n_worlds):
    cdef const uint8_t[::1] body
    cdef cursor cur
    cdef int32_t order = 0, n_rows = 0
    cdef int64_t n = 0, i, size
    cdef bint good, several = n_worlds > 1, moving
    body = saves.unseal(data, saves.CROWD_MAGIC)
    damaged = ValueError("data is damaged: it makes no sense")
    if body.shape[0] < SAVE_HEAD + <Py_ssize_t>saves.PARAMS.size:
        raise damaged
    cur.at = <uint8_t*>&body[0]
    cur.loads = True
    field_int32(&cur, &order)
    field_int32(&cur, &n_rows)
    field_int32(&cur, &settings.group)
    field_int64(&cur, &n)
    if 0 <= order < 2 * SAVES_MOVING and ((order & SAVES_HOMES) != 0) != several:
        raise ValueError("data must come from a crowd with as many worlds as this one")
    moving = 0 <= order < 2 * SAVES_MOVING and (order & SAVES_MOVING) != 0
    order -= (SAVES_HOMES if several else 0) + (SAVES_MOVING if moving else 0)
    if order not in (0, 1) or settings.group < 0 or not 0 <= n_rows <= n or not 0 <= n <= body.shape[0]:
        raise damaged
    settings.sequential = order == 1
    size = (SAVE_HEAD + (1 + <int64_t>n_rows) * <int64_t>saves.PARAMS.size
            + n * (SAVE_EACH + <int64_t>saves.STATE.size + (<int64_t>sizeof(int32_t) if several else 0)))
    if size > body.shape[0] or not moving and size != body.shape[0]:
        raise damaged
    _read_table(&cur, fresh, settings, n_rows)
    fresh.n_worlds = n_worlds
    raise_status(crowd_reserve(fresh, n))
    flags = np.zeros(n, np.uint8)
    ids = np.empty(n, np.int64)
    good = _read_members(&cur, fresh, n, n_rows, ids, flags)
    if several:
        for i in range(n):
            field_int32(&cur, &fresh.homes[i])
            good = good and 0 <= fresh.homes[i]
            if good and fresh.homes[i] >= n_worlds:
                raise ValueError("data must come from a crowd with as many worlds as this one")
    if not good:
        raise damaged
    fresh.n = n
    return flags, ids, saves.split_moving(body[size:], n_worlds) if moving else None


cdef object crowd_homes(const crowd_data* c):
    cdef int32_t[::1] homes
    cdef int64_t i
    array = np.zeros(c.n, np.int32)
    if c.homes != NULL:
        homes = array
        for i in range(c.n):
            homes[i] = c.homes[i]
    return array


cdef void crowd_merge(crowd_data* c, const crowd_data* fresh) noexcept:
    cdef int64_t i = c.n - 1, k = fresh.n - 1, to = c.n + fresh.n - 1
    cdef compact_cache swap_compact
    cdef candidate_cache swap_near
    # From the end, so that no member is overwritten.
    while k >= 0:
        if i >= 0 and c.ids[i] > fresh.ids[k]:
            swap_compact = c.compact[to]
            c.compact[to] = c.compact[i]
            c.compact[i] = swap_compact
            if c.near != NULL:
                swap_near = c.near[to]
                c.near[to] = c.near[i]
                c.near[i] = swap_near
            c.states[to] = c.states[i]
            c.ids[to] = c.ids[i]
            c.rows[to] = c.rows[i]
            c.groups[to] = c.groups[i]
            c.slots[to] = c.slots[i]
            if c.homes != NULL:
                c.homes[to] = c.homes[i]
            i -= 1
        else:
            near_forget(c, to)
            c.states[to] = fresh.states[k]
            c.ids[to] = fresh.ids[k]
            c.rows[to] = fresh.rows[k]
            c.groups[to] = fresh.groups[k]
            c.slots[to] = -1
            if c.homes != NULL:
                c.homes[to] = fresh.homes[k]
            k -= 1
        to -= 1
    c.n += fresh.n


cdef void crowd_recycle(crowd_data* old, crowd_data* back_buffer) noexcept:
    cdef int64_t i
    if not 0 < old.capacity <= LARGEST_SPARE:
        crowd_free(old)
        return
    crowd_free(back_buffer)
    back_buffer[0] = old[0]
    memset(old, 0, sizeof(crowd_data))
    free(back_buffer.table)
    back_buffer.table = NULL
    back_buffer.n = back_buffer.colliding = 0
    for i in range(back_buffer.capacity):
        near_forget(back_buffer, i)


cdef int64_t first_shared(const int64_t[::1] one, const int64_t[::1] two) except? -1:
    cdef Py_ssize_t i = 0, k = 0
    while i < one.shape[0] and k < two.shape[0]:
        if one[i] == two[k]:
            return one[i]
        if one[i] < two[k]:
            i += 1
        else:
            k += 1
    return -1


cdef int rename_platform(controller_state* s, object ids, int64_t first) except -1:
    cdef int64_t k
    if s.touched_controller >= 0:
        k = np.searchsorted(ids, s.touched_controller)
        if k < len(ids) and ids[k] == s.touched_controller:
            s.touched_controller = first + k
    if s.ground.touching and s.ground.owner == OWNER_CONTROLLER:
        k = np.searchsorted(ids, s.ground.id)
        if k < len(ids) and ids[k] == s.ground.id:
            s.ground.id = first + k
    return 0
