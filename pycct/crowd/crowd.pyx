# cython: language_level=3
"""Crowd: arguments, parameters, arrays and bytes around the step."""
import copy

import numpy as np

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from pycct.runtime.atomic cimport cpu_yield
from pycct.character.contacts cimport contact_reach, contacts_around
from pycct.character.parameters cimport (
    as_time,
    character_of,
    foot_below,
    parameter_get,
    parameter_set,
    parameters_check,
    state_forget,
    state_shift,
    z_to,
)
from pycct.character.state_io cimport parameters_hash
from pycct.args.values cimport FARTHEST, as_bool, as_not_negative, as_vec3, from_vec3, raise_status, short
from pycct.crowd.crowd_step cimport (
    crowd_can_resize,
    crowd_data,
    crowd_free,
    crowd_freeze,
    crowd_hash,
    crowd_move,
    crowd_probe,
    crowd_publish,
    crowd_publish_all,
    crowd_question,
    crowd_reserve,
    crowd_separate,
    crowd_step,
    crowd_thread,
    crowd_withdraw,
    crowd_world,
    few_enough,
    ground_row,
    ground_row_fill,
    hit_row,
    near_forget,
    near_free,
    set_few_enough,
    thread_free,
)
from pycct.crowd.state_io cimport (
    crowd_bytes,
    crowd_from_bytes,
    crowd_homes,
    crowd_merge,
    crowd_recycle,
    crowd_settings,
    first_shared,
    params_key,
    rename_platform,
)
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.character.gathering cimport scratch_init
from pycct.character.move_types cimport (
    STATUS_TOO_FAR,
    candidate_cache,
    controller_params,
    controller_state,
    compact_cache,
    move_stats,
    move_world,
)
from pycct.character.probes cimport gather_near
from pycct.spatial.character_grid cimport Neighbours, grid_init
from pycct.args.vector_rows cimport (
    as_flags,
    as_ids,
    as_numbers,
    as_vectors,
    as_weights,
    row_load,
    rows_check,
    vector_rows,
)
from pycct.runtime.thread_pool cimport clock_now, next_part, pool_threads, pool_worth
from pycct.scene.scene cimport Scene, Snapshot
from pycct.scene.worlds cimport Worlds
from pycct.shapes.primitives cimport Capsule
from pycct.geometry.ray cimport direction_of
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport v3, v3_load, v3_madd, v3_max_abs, v3_store, v3_sub, vec3

from pycct.args.columns import give_column
from pycct.crowd.records import GROUND, HITS, STATS, ground_arrays
from pycct.runtime.enums import Behavior, CollisionFlags
from pycct.runtime.version import RESULTS_VERSION

if HITS.itemsize != sizeof(hit_row) or GROUND.itemsize != sizeof(ground_row) or STATS.itemsize != sizeof(move_stats):
    raise ImportError("pycct: the records of crowds are laid out otherwise than the compiled modules have them")

cdef dict ORDERS = {"simultaneous": False, "sequential": True}
# The defaults of CharacterController.
cdef dict DEFAULTS = {
    "radius": 0.4, "height": 1.0, "up": (0.0, 0.0, 1.0), "step_offset": 0.5, "contact_offset": 0.01,
    "slope_limit": 0.707, "climbing_mode": "easy", "non_walkable_mode": "prevent_climbing", "rules": "physx",
    "overlap_recovery": True, "prevent_vertical_sliding": False, "invisible_wall_height": 0.0, "max_jump_height": 0.0,
    "layer": 1, "mask": 0xFFFFFFFF, "collide": False, "surface": Behavior.NONE,
}
# Arrays that are created on request: (columns, type).
cdef dict SHOWN = {
    "foot_positions": (3, np.float64), "velocities": (3, np.float64), "displacements": (3, np.float64),
    "ground_normals": (3, np.float64),
    "grounded": (1, bool), "standing_on": (1, np.int64), "_places": (3, np.float64),
}
# Arrays that moves change, which `get` returns as well.
cdef tuple MOVED_ARRAYS = ("positions", "foot_positions", "velocities", "ground_normals", "grounded", "standing_on",
                           "flags", "ids")
# Displacements and positions below this rarely lead beyond FARTHEST; only far platforms and
# recovery can.
cdef double NEAR = 1e11
# A run of at most this many moves is made in one part: some 0.1 s.
cdef int64_t SHORT_RUN = 10_000


cdef int64_t _as_group(object value) except -1:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"group must be an integer, not {short(value)}")
    if not 0 <= value < 2**31:
        raise ValueError(f"group must be from 0 to 2**31 - 1, got {short(value)}")
    return value


cdef list _each(object value, str name, Py_ssize_t n):
    """Return one value for each of n, or None for one common value."""
    if isinstance(value, np.ndarray):
        if value.ndim == (1 if name == "up" else 0):
            return None
        value = value.tolist()
    elif not isinstance(value, (list, tuple)) or (name == "up" and len(value) == 3
                                                  and not isinstance(value[0], (list, tuple, np.ndarray))):
        return None
    if len(value) != n:
        raise ValueError(f"{name} must be one value or {n} of them, one a character, got {len(value)}")
    return list(value)


cdef move_stats* _cleared_costs(Crowd crowd, int64_t n) except? NULL:
    """Return the array of the costs of a move, all zero; NULL for an empty crowd."""
    cdef uint8_t[::1] rows
    if crowd.costs_ is None:
        crowd.costs_ = np.zeros(n, STATS)
    else:
        crowd.costs_[:] = 0
    if n == 0:
        return NULL
    rows = crowd.costs_.view(np.uint8)
    return <move_stats*>&rows[0]


cdef object _active_rows(object active, int64_t n):
    """Return which characters move as an array of bool with n rows."""
    active = np.asarray(active)
    if active.dtype != np.bool_ and active.size:
        raise TypeError(f"active must be an array of bool, not of {active.dtype}")
    if active.shape != (n,):
        raise ValueError(f"active must have shape ({n},), got {active.shape}")
    return active


cdef int _take_active(crowd_step* s, const uint8_t[:] moves) except -1:
    """Point a step at the bytes that tell which characters move."""
    s.active = &moves[0]
    s.active_stride = moves.strides[0]
    return 0


cdef object _flags_in(object flags, object out):
    """Return the flags of a move, in the caller's array if there is one."""
    if out is None:
        return flags.copy()
    np.copyto(out, flags)
    return out


cdef dict _turned_rows(object up, object active, int64_t n):
    """Arguments of `Crowd.set` for the up directions of a move."""
    which = np.arange(n) if active is None else np.flatnonzero(active)
    return {"indices": which, "up": np.array(up)[which]}


cdef inline int64_t _first_part(int64_t n, int64_t ticks) noexcept nogil:
    """Number of ticks of a run before signal handlers are called: all ticks of a short run."""
    return ticks if n * ticks <= SHORT_RUN else 1


cdef int _set_row(controller_params* p, dict columns, dict common, Py_ssize_t k) except -1:
    """Set the parameters of row k; a column without values has one value in ``common``."""
    try:
        for name, values in columns.items():
            parameter_set(p, name, common[name] if values is None else values[k])
        parameters_check(p)
    except (TypeError, ValueError) as problem:
        if all([values is None for values in columns.values()]):
            raise
        raise type(problem)(f"{problem}, row {k}") from None
    return 0


@cython.final
cdef class CrowdMember:
    """One character of a crowd, in hits, filters and contacts.

    Attributes
    ----------
    crowd : Crowd
    id : int
        Stable; the index in the crowd changes when others are removed.

    Notes
    -----
    Thread safety: ``position``, ``velocity``, ``displacement``, ``flags`` and ``pose`` raise
    RuntimeError while another thread moves the crowd.
    """

    cdef readonly Crowd crowd
    cdef readonly int64_t id

    def __init__(self):
        raise TypeError("a CrowdMember is made by Crowd.member")

    @property
    def index(self):
        """Index in the arrays of the crowd; -1 once it has been removed."""
        if self.crowd is None:
            raise RuntimeError("a CrowdMember is made by Crowd.member")
        return self.crowd.find(self.id)

    cdef int64_t _here(self) except -1:
        cdef int64_t i
        if self.crowd is None:
            raise RuntimeError("a CrowdMember is made by Crowd.member")
        i = self.crowd.find(self.id)
        if i < 0:
            raise RuntimeError(f"character {self.id} has been removed from its crowd")
        return i

    cdef const controller_params* params(self) except NULL:
        cdef int64_t i = self._here()
        return &self.crowd.c.table[self.crowd.c.rows[i]]

    cdef const controller_state* state(self) except NULL:
        cdef int64_t i = self._here()
        if self.crowd.busy:
            raise RuntimeError("the crowd is in use: by another thread, or by a call that asks for this")
        return &self.crowd.c.states[i]

    @property
    def position(self):
        """Centre of the capsule, metres."""
        return from_vec3(self.state().position)

    @property
    def velocity(self):
        """Motion of the last move / dt, m/s, without recovery and separation."""
        return from_vec3(self.state().velocity)

    @property
    def displacement(self):
        """Whole motion of the last move, metres."""
        return from_vec3(self.state().displacement)

    @property
    def up(self):
        """Unit up direction."""
        return from_vec3(self.params().up)

    @property
    def radius(self):
        """Radius of the capsule, metres."""
        return self.params().radius

    @property
    def height(self):
        """Distance between the sphere centres, metres."""
        return self.params().height

    @property
    def layer(self):
        """Bit set: the layer on which others see the character."""
        return self.params().layer

    @property
    def mask(self):
        """Bit set: the layers that the character sees."""
        return self.params().mask

    @property
    def group(self):
        """Characters of different groups never collide."""
        cdef int64_t i = self._here()
        return self.crowd.c.groups[i]

    @property
    def world(self):
        """Index of the character's world; 0 for a crowd of one scene."""
        cdef int64_t i = self._here()
        return 0 if self.crowd.c.homes == NULL else self.crowd.c.homes[i]

    @property
    def scene(self):
        """The scene of the character."""
        return self.crowd.scenes_[self.world]

    @property
    def surface(self):
        """Riding and sliding of other characters on this one (Behavior)."""
        return Behavior(self.params().surface)

    @property
    def user_data(self):
        """Any object of your own: the entry of `Crowd.user_data`. Settable."""
        cdef int64_t i = self._here()
        return self.crowd.own_data()[i]

    @user_data.setter
    def user_data(self, value):
        cdef int64_t i = self._here()
        self.crowd.own_data()[i] = value

    @property
    def flags(self):
        """Collision flags of the last move (CollisionFlags)."""
        return CollisionFlags(self.state().flags)

    @property
    def shape(self):
        """The capsule (Capsule), its axis along local z."""
        cdef const controller_params* p = self.params()
        return Capsule(p.radius, p.height)

    @property
    def pose(self):
        """(position, rotation): the pose of ``shape`` at the character."""
        return from_vec3(self.state().position), z_to(self.params().up)

    def __eq__(self, other):
        if not isinstance(other, CrowdMember):
            return NotImplemented
        return self.crowd is (<CrowdMember>other).crowd and self.id == (<CrowdMember>other).id

    def __hash__(self):
        return hash((id(self.crowd), self.id))

    def __copy__(self):
        return self

    def __reduce__(self):
        # By index: a crowd that is copied within its scene has other ids.
        i = -1 if self.crowd is None else self.crowd.find(self.id)
        if i < 0:
            raise TypeError(f"character {self.id} has been removed from its crowd: it cannot be pickled or copied")
        return _member_at, (self.crowd, i)

    def __repr__(self):
        return f"<CrowdMember {self.id}>"


def _member_at(Crowd crowd not None, index):
    """Return a pickled or copied CrowdMember."""
    if not 0 <= index < crowd.c.n:
        raise ValueError(f"state is damaged: the crowd has no character {index}")
    return crowd._member_of(crowd.c.ids[index])


cdef class Crowd:
    """Characters that move together, by the same function as `CharacterController.move`.

    Parameters
    ----------
    scene : Scene or Worlds
        One scene, or many: then each member collides only with objects of its own.
    positions : (n, 3) array of floats
        Centres of the capsules, metres.
    order : {'simultaneous', 'sequential'}
        For colliding characters. 'simultaneous': each collides with the others at their positions
        of the start of the step. The next move separates pairs that overlap afterwards, by half the
        overlap each (RULES 8). 'sequential': the characters move one after another in the order of
        their ids, and each collides with the current positions of the others, as in PhysX and with
        single controllers.
    group : int or (n,) of them, 0 to 2**31 - 1
        Characters of different groups never collide: thousands of separate worlds in one scene.
        Single controllers belong to group 0.
    world : int or (n,) of them
        Index of the world of each member.
    radius, height, up, step_offset, contact_offset, slope_limit, climbing_mode, \
non_walkable_mode, rules, overlap_recovery, prevent_vertical_sliding, \
invisible_wall_height, max_jump_height, layer, mask, collide, surface
        As for `CharacterController`: one value, or a list, tuple or array of one per character
        (``up``: (3,) or (n, 3)).

    Attributes
    ----------
    scene : Scene or None
        None if the members belong to many worlds.
    worlds : Worlds or None
        None if the members belong to one scene.

    Notes
    -----
    A crowd has no callbacks (``filter``, ``behavior``, ``on_hit``), so no Python code runs during a
    move. Layers, masks and the ``behavior`` of actors replace them, and ``record_hits`` stores the
    hits.

    Without colliding characters, or with ``order="sequential"``, a crowd returns the bits of n
    single controllers that are created and moved in the same order. In any order the bits are the
    same for any number of threads.

    Colliding characters collide with single controllers with ``collide=True`` of the same scene,
    and with characters of other crowds. A move uses their positions of its start ('simultaneous')
    or their current ones ('sequential').

    ``positions``, ``flags`` and the other arrays are views that the next move overwrites, so copy
    what you keep. `add`, `remove` and `restore` create new ones.

    Equal characters share their parameters, threads own the scratch memory, and caches of crowds of
    more than 2,000 store indices instead of triangles: less than 1 KiB a character.

    Thread safety: a crowd belongs to one thread at a time; a second thread gets RuntimeError. Moves
    release the GIL, and the threads of ``threads=n`` never need it.

    Examples
    --------
    >>> import numpy as np
    >>> from pycct import Crowd, Plane, Scene
    >>> scene = Scene()
    >>> ground = scene.add(Plane((0, 0, 1)))
    >>> crowd = Crowd(scene, [(0, 0, 0.91), (3, 0, 0.91)], radius=0.4)
    >>> flags = crowd.move(np.full((2, 3), (0.05, 0, -0.02)), 1 / 60)
    >>> flags.tolist(), crowd.grounded.tolist(), crowd.positions[:, 0].round(6).tolist()
    ([4, 4], [True, True], [0.05, 3.05])
    """

    def __cinit__(self, *args, **kwargs):
        memset(&self.c, 0, sizeof(crowd_data))
        memset(&self.settings, 0, sizeof(crowd_settings))
        self.threads = NULL
        self.n_threads = 0
        self.n_rows = self.capacity_rows = 0
        self.neighbours = NULL
        self.known = {}
        self.shown = {}
        self.views = {}
        self.user_data_ = []
        self.busy = 0

    def __dealloc__(self):
        cdef int k
        # In a reference cycle the collector has cleared self.scene already.
        self.move_out()
        for k in range(self.n_threads):
            thread_free(&self.threads[k])
        free(self.threads)
        crowd_free(&self.c)
        crowd_free(&self.back_buffer)

    cdef int settle_in(self) except -1:
        """Create the worlds of the crowd's scenes, each with a reference to the scene's grid."""
        cdef int32_t n = <int32_t>len(self.scenes_), k
        cdef Scene scene
        self.c.worlds = <crowd_world*>calloc(n, sizeof(crowd_world))
        self.neighbours = <PyObject**>calloc(n, sizeof(PyObject*))
        if self.c.worlds == NULL or self.neighbours == NULL:
            raise MemoryError("pycct: out of memory")
        self.c.n_worlds = n
        for k in range(n):
            scene = self.scenes_[k]
            grid_init(&self.c.worlds[k].picture.grid)
            Py_INCREF(scene.neighbours)
            self.neighbours[k] = <PyObject*>scene.neighbours
            self.c.worlds[k].neighbours = &scene.neighbours.shared
        return 0

    cdef int move_out(self) except -1:
        """Remove all members from the grids and release the references to them."""
        cdef int64_t i
        cdef int32_t k
        if self.neighbours == NULL:
            return 0
        for i in range(self.c.n):
            crowd_withdraw(&self.c, i)
        for k in range(self.c.n_worlds):
            if self.neighbours[k] != NULL:
                Py_DECREF(<Neighbours>self.neighbours[k])
        free(self.neighbours)
        self.neighbours = NULL
        return 0

    def __init__(self, scene, positions, *, order="simultaneous", group=0, world=0, **parameters):
        cdef vector_rows rows
        cdef Scene home
        if not isinstance(scene, (Scene, Worlds)):
            raise TypeError(f"scene must be a Scene or Worlds, not {type(scene).__name__}")
        if not isinstance(order, str) or order not in ORDERS:
            raise ValueError(f"order must be one of {sorted(ORDERS)}, not {short(order)}")
        if self.scenes_ is not None:
            raise RuntimeError("a Crowd is initialised once")
        places = as_vectors(positions, "positions", -1, &rows)
        self.settings.params.proxy = -1
        for name, value in DEFAULTS.items():
            parameter_set(&self.settings.params, name, value)
        # A common value is also the default for characters that are added later.
        for name, value in parameters.items():
            if _each(value, name, len(places)) is None:
                parameter_set(&self.settings.params, name, value)
        if _each(group, "group", len(places)) is None:
            self.settings.group = <int32_t>_as_group(group)
        self.settings.sequential = ORDERS[order]
        if isinstance(scene, Worlds):
            self.worlds = scene
            self.scenes_ = self.worlds.scenes
        else:
            self.scene = scene
            self.scenes_ = (scene,)
        try:
            self.settle_in()
            self.fresh_arrays()
            for home in self.scenes_:
                if home.journal_ is not None:
                    with home.lock:
                        home.tell(home, "Crowd", {"scene": scene, "positions": places, "order": order,
                                                  "group": group, "world": world, **parameters})
            self.add(places, group=group, world=world, **parameters)
        except BaseException:
            self.move_out()
            crowd_free(&self.c)
            self.known.clear()
            self.n_rows = self.capacity_rows = 0
            self.scene = self.worlds = self.scenes_ = None
            raise
        for home in self.scenes_:
            (<Scene>home).crowds_.add(self)

    cdef int enter(self, bint reads=False) except -1:
        """Acquire the crowd for this thread; RuntimeError if another thread has it.

        Its listener may read.
        """
        cdef unsigned long me = <unsigned long>PyThread_get_thread_ident()
        with cython.critical_section(self):
            if self.scenes_ is None:
                raise RuntimeError("the crowd was not initialised: call Crowd.__init__")
            if self.busy == 3 and self.owner == me:
                if not reads:
                    raise RuntimeError("the crowd's listener must not change the crowd")
                self.busy = 4
                return 0
            if self.busy:
                raise RuntimeError("the crowd is in use by another thread")
            self.busy = 1
            self.owner = me
        return 0

    cdef int tell(self, str name, dict arguments) except -1:
        """Call the listener, which may read meanwhile."""
        cdef object listener = self.journal_
        if listener is None:
            return 0
        with cython.critical_section(self):
            self.busy = 3
        try:
            listener(self, name, arguments)
        finally:
            with cython.critical_section(self):
                self.busy = 1
        return 0

    @property
    def journal(self):
        """Listener that receives every change of the members and every move call, or None.
        Settable.

        ``listener(crowd, name, arguments)`` is called before the change takes effect, as that of
        `Scene.journal`: ``name`` is the method (``"move"``, ``"run"``, ``"add"``, ``"remove"``,
        ``"set"``, ``"teleport"``, ``"resize"``, ``"separate"``, ``"snap_to_ground"``,
        ``"restore"``, ``"extract"``, ``"insert"``, ``"shift_origin"`` of the scene), ``arguments``
        a dict. The listener may read the crowd, `save` and `state_hash` included, but must not
        change it. What it raises reaches the caller, and nothing has changed. A long `run` calls it
        several times, each time with the next ticks.
        """
        return self.journal_

    @journal.setter
    def journal(self, listener):
        if listener is not None and not callable(listener):
            raise TypeError(f"journal must be callable or None, not {type(listener).__name__}")
        self.enter()
        self.journal_ = listener
        self.leave()

    cdef int alone(self) except -1:
        """Wait for all readers of the data, and block new ones until the crowd is released."""
        cdef int readers
        while True:
            # Under the GIL there are no readers, and this costs nothing.
            with cython.critical_section(self):
                self.busy = 2
                readers = self.readers
            if readers == 0:
                return 0
            with nogil:
                cpu_yield()

    cdef void leave(self) noexcept:
        with cython.critical_section(self):
            self.busy = 3 if self.busy == 4 else 0

    # --- parameters -------------------------------------------------------------------------------

    cdef int32_t row_of(self, controller_params* p) except -1:
        """Return the row of the table with these parameters."""
        cdef int32_t row, wider
        cdef void* grown
        key = params_key(p)
        found = self.known.get(key)
        if found is not None:
            return found
        if self.n_rows == self.capacity_rows:
            self.alone()
            wider = 2 * self.capacity_rows + 4
            grown = realloc(self.c.table, <size_t>wider * sizeof(controller_params))
            if grown == NULL:
                raise MemoryError("pycct: out of memory")
            self.c.table = <controller_params*>grown
            self.capacity_rows = wider
        row = self.n_rows
        self.c.table[row] = p[0]
        self.known[key] = row
        self.n_rows += 1
        return row

    cdef int tidy(self) except -1:
        """Drop unused parameter rows if there are many."""
        cdef controller_params* old
        cdef int64_t i
        if self.n_rows <= 2 * self.c.n + 64:
            return 0
        old = <controller_params*>malloc(<size_t>self.n_rows * sizeof(controller_params))
        if old == NULL:
            # The next call tries again.
            return 0
        memcpy(old, self.c.table, <size_t>self.n_rows * sizeof(controller_params))
        self.alone()
        try:
            self.known.clear()
            self.n_rows = 0
            for i in range(self.c.n):
                self.c.rows[i] = self.row_of(&old[self.c.rows[i]])
        finally:
            free(old)
        return 0

    cdef list rows_for(self, dict parameters, Py_ssize_t n):
        """Return rows of the table for n new characters."""
        cdef controller_params p = self.settings.params, q
        cdef Py_ssize_t k
        cdef dict columns = {}
        for name, value in parameters.items():
            values = _each(value, name, n)
            if values is None:
                parameter_set(&p, name, value)
            else:
                columns[name] = values
        rows = []
        if not columns:
            if n == 0:
                return rows
            parameters_check(&p)
            return [self.row_of(&p)] * n
        for k in range(n):
            q = p
            _set_row(&q, columns, {}, k)
            rows.append(self.row_of(&q))
        if n == 0:
            for name in columns:
                if name not in DEFAULTS:
                    raise TypeError(f"unexpected keyword argument {short(name)}")
        return rows

    # --- memory -----------------------------------------------------------------------------------

    cdef int grow(self, int64_t n) except -1:
        """Reserve memory for n characters."""
        cdef int64_t capacity = self.c.capacity
        self.alone()
        if n > capacity:
            # The first capacity is exact; later ones grow by a factor.
            raise_status(crowd_reserve(&self.c, n if capacity == 0 else n + n // 4))
        return 0

    cdef int fresh_arrays(self) except -1:
        """Create arrays for the current number of characters; holders of the old ones keep them."""
        cdef int64_t[::1] ids
        cdef int64_t i
        cdef int k
        cdef Py_ssize_t n = self.c.n
        self.views.clear()
        before = self.ids_
        ids = self.ids_ = np.empty(n, np.int64)
        for i in range(n):
            ids[i] = self.c.ids[i]
        self.own_data()[:] = self.data_of(before)
        self.positions_ = np.empty((n, 3))
        self.flags_ = np.zeros(n, np.uint8)
        self.costs_ = None
        self.unrecorded = self.uncounted = False
        for k in range(self.n_threads):
            self.threads[k].n_hits = 0
        self.has_places = False
        for name in list(self.shown):
            self.shown[name] = self.blank(name)
        return self.refresh()

    cdef list own_data(self):
        """Return the list of user data. The program may have changed its length."""
        cdef list data = self.user_data_
        cdef Py_ssize_t n = 0 if self.ids_ is None else len(self.ids_)
        if len(data) > n:
            del data[n:]
        elif len(data) < n:
            data.extend([None] * (n - len(data)))
        return data

    cdef list data_of(self, object before):
        """Return the user data of all members; ``before``: ids of the entries of the list."""
        cdef list data = self.user_data_
        if before is None or data.count(None) == len(data):
            return [None] * self.c.n
        owners = dict(zip(before.tolist(), data))
        return [owners.get(id) for id in self.ids_.tolist()]

    cdef object blank(self, str name):
        columns, kind = SHOWN[name]
        return np.zeros((self.c.n, columns) if columns > 1 else self.c.n, kind)

    cdef int refresh(self) except -1:
        """Fill the arrays with the current positions; flags stay those of the last move."""
        cdef double[:, ::1] positions = self.positions_
        cdef int64_t i
        self.places_at = &positions[0, 0] if self.c.n > 0 else NULL
        for i in range(self.c.n):
            v3_store(&self.places_at[3 * i], self.c.states[i].position)
        return self.refill()

    cdef int refill(self) except -1:
        for name, array in list(self.shown.items()):
            self.fill(name, array)
        return 0

    cdef int fill(self, str name, object array) except -1:
        cdef const controller_state* st = self.c.states
        cdef const controller_params* p
        cdef double[:, ::1] v
        cdef uint8_t[::1] b
        cdef int64_t[::1] w
        cdef int64_t i, n = self.c.n
        if name == "grounded":
            b = array.view(np.uint8)
            for i in range(n):
                b[i] = st[i].ground.touching
        elif name == "standing_on":
            w = array
            for i in range(n):
                w[i] = st[i].touched_actor if st[i].touched_actor >= 0 else st[i].touched_obstacle
        else:
            v = array
            if name == "_places":
                self.alone()
                for i in range(n):
                    v3_store(&v[i, 0], st[i].position)
                self.has_places = True
            elif name == "velocities":
                for i in range(n):
                    v3_store(&v[i, 0], st[i].velocity)
            elif name == "displacements":
                for i in range(n):
                    v3_store(&v[i, 0], st[i].displacement)
            elif name == "ground_normals":
                for i in range(n):
                    v3_store(&v[i, 0], st[i].ground.normal if st[i].ground.touching else v3(0.0, 0.0, 0.0))
            else:
                for i in range(n):
                    p = &self.c.table[self.c.rows[i]]
                    v3_store(&v[i, 0], v3_madd(st[i].position, p.up, -foot_below(p)))
        return 0

    cdef object view(self, str name):
        """Return a read-only view that moves keep up to date."""
        self.enter(True)
        try:
            return self.view_of(name)
        finally:
            self.leave()

    cdef object view_of(self, str name):
        """`view`, with the crowd acquired."""
        view = self.views.get(name)
        if view is None:
            if name == "positions":
                array = self.positions_
            elif name == "flags":
                array = self.flags_
            elif name == "ids":
                array = self.ids_
            else:
                array = self.blank(name)
                self.fill(name, array)
                self.shown[name] = array
            view = array.view()
            view.flags.writeable = False
            self.views[name] = view
        return view

    @property
    def positions(self):
        """Centres of the capsules, (n, 3) float64, metres."""
        return self.view("positions")

    @property
    def foot_positions(self):
        """Half the whole height plus the contact offset below the centres, (n, 3) float64, metres.
        """
        return self.view("foot_positions")

    @property
    def velocities(self):
        """Motion of the last move / dt, (n, 3) float64, m/s, without recovery and separation.

        Inactive characters keep the previous one.
        """
        return self.view("velocities")

    @property
    def displacements(self):
        """Whole motion of the last move, (n, 3) float64, metres.

        It includes platforms, recovery and separation. Inactive characters keep the previous one.
        """
        return self.view("displacements")

    @property
    def flags(self):
        """Collision flags of the last move (CollisionFlags), (n,) uint8.

        0 for inactive characters.
        """
        return self.view("flags")

    @property
    def grounded(self):
        """Whether each character ended on ground, (n,) bool."""
        return self.view("grounded")

    @property
    def ground_normals(self):
        """Contact normals of the ground, (n, 3) float64; zero for characters in the air."""
        return self.view("ground_normals")

    @property
    def standing_on(self):
        """Ids of the actors or obstacles below the characters, (n,) int64; -1: none."""
        return self.view("standing_on")

    @property
    def ids(self):
        """Ids of the characters, (n,) int64, ascending: stable, and never used twice in a scene."""
        return self.view("ids")

    @property
    def user_data(self):
        """Objects of your own, a list with one entry for each member. Settable.

        `add` and `insert` append None for new members, and `remove` deletes entries. `save` does
        not contain the list; pickles and copies do.
        """
        return self.own_data()

    @user_data.setter
    def user_data(self, values):
        if isinstance(values, (str, bytes)):
            raise TypeError(f"user_data must be one object for each member, not {type(values).__name__}")
        try:
            given = list(values)
        except TypeError:
            raise TypeError(f"user_data must be one object for each member, not {type(values).__name__}") from None
        if len(given) != self.c.n:
            raise ValueError(f"user_data must have {self.c.n} entries, one a member, got {len(given)}")
        self.own_data()[:] = given

    @property
    def order(self):
        """Order of colliding characters: 'simultaneous' or 'sequential'."""
        return "sequential" if self.settings.sequential else "simultaneous"

    def __len__(self):
        return self.c.n

    def __repr__(self):
        return f"<{type(self).__name__} of {self.c.n}>"

    cdef int64_t find(self, int64_t id) noexcept:
        """Return the index of the character with that id, -1: none."""
        cdef int64_t lo = 0, hi = self.c.n - 1, mid
        while lo <= hi:
            mid = (lo + hi) >> 1
            if self.c.ids[mid] == id:
                return mid
            if self.c.ids[mid] < id:
                lo = mid + 1
            else:
                hi = mid - 1
        return -1

    def index_of(self, ids):
        """Indices of characters in the arrays of the crowd.

        Parameters
        ----------
        ids : int or (k,) array of ints
            Ids of members.

        Returns
        -------
        int or (k,) array of int64
            One index for one id.

        Raises
        ------
        KeyError
            An id belongs to no member; the error contains it.
        TypeError, ValueError
            ``ids`` is neither an integer nor a one-dimensional array of integers.
        """
        array = as_ids(ids)
        self.enter(True)
        try:
            found = self.rows_of(array.reshape(-1))
            return found if array.ndim == 1 else int(found[0])
        finally:
            self.leave()

    cdef object rows_of(self, const int64_t[::1] numbers):
        """Return the indices of these ids; KeyError for an id without a member."""
        cdef int64_t[::1] rows
        cdef Py_ssize_t k
        found = np.empty(numbers.shape[0], np.int64)
        rows = found
        for k in range(numbers.shape[0]):
            rows[k] = self.find(numbers[k])
            if rows[k] < 0:
                raise KeyError(numbers[k])
        return found

    def member(self, id):
        """The character with that id (CrowdMember), or None."""
        cdef int64_t number
        if isinstance(id, bool) or not hasattr(type(id), "__index__"):
            raise TypeError(f"id must be an integer, not {type(id).__name__}")
        try:
            number = id.__index__()
        except OverflowError:
            return None
        except TypeError:
            # An array of several numbers.
            raise TypeError(f"id must be an integer, not {type(id).__name__}") from None
        return self._member_of(number) if self.find(number) >= 0 else None

    def _member_of(self, id):
        """The character with that id, even if it has been removed."""
        cdef CrowdMember m = CrowdMember.__new__(CrowdMember)
        m.crowd = self
        m.id = id
        return m

    def _capsules(self, Scene scene):
        """Ids, layers, radii, axes, groups and masks of a scene's members.

        Any thread may call it.
        """
        cdef double[:, ::1] places, axes
        cdef int64_t[::1] numbers
        cdef uint32_t[::1] bits, sees
        cdef int32_t[::1] teams
        cdef double[::1] sizes
        cdef const controller_params* p
        cdef Py_ssize_t i, n
        cdef bint mine, good
        while True:
            # Arrays come first: another thread may run during their allocation.
            n = self.c.n
            ids, layers, radii, ends = np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n), np.empty((n, 6))
            groups = np.empty(n, np.int32)
            masks = np.empty(n, np.uint32)
            array = self.shown.get("_places")
            if array is None:
                # The first query: from now on moves keep the array up to date, also the move in
                # flight.
                array = self.blank("_places")
                self.has_places = False
                self.shown["_places"] = array
            numbers, bits, sizes, axes, places, teams, sees = ids, layers, radii, ends, array, groups, masks
            with cython.critical_section(self):
                # A query from within the crowd's own call sees the state of that call.
                mine = not self.busy or self.owner == <unsigned long>PyThread_get_thread_ident()
                good = (n == self.c.n == places.shape[0] and self.shown["_places"] is array
                        and (mine or (self.has_places and self.busy != 2)))
                if good:
                    self.readers += 1
                    if not self.has_places:
                        # No other thread can start a move here.
                        for i in range(n):
                            v3_store(&places[i, 0], self.c.states[i].position)
                        self.has_places = True
            if good:
                break
            with nogil:
                cpu_yield()
        for i in range(n):
            p = &self.c.table[self.c.rows[i]]
            numbers[i] = self.c.ids[i]
            bits[i] = p.layer
            sees[i] = p.mask
            sizes[i] = p.radius
            teams[i] = self.c.groups[i]
            v3_store(&axes[i, 0], v3_madd(v3_load(&places[i, 0]), p.up, -0.5 * p.height))
            v3_store(&axes[i, 3], v3_madd(v3_load(&places[i, 0]), p.up, 0.5 * p.height))
        here = None
        if self.worlds is not None:
            home = self.scenes_.index(scene)
            here = np.array([self.c.homes[i] == home for i in range(n)], bool)
        with cython.critical_section(self):
            self.readers -= 1
        if here is not None:
            return ids[here], layers[here], radii[here], ends[here], groups[here], masks[here]
        return ids, layers, radii, ends, groups, masks

    cdef object indices(self, object value):
        """Return different indices of characters, (k,) int64."""
        if isinstance(value, slice):
            try:
                return np.arange(self.c.n, dtype=np.int64)[value].copy()
            except TypeError:
                raise TypeError("indices must be a slice of integers") from None
            except ValueError:
                raise ValueError("indices must be a slice whose step is not 0") from None
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError("indices must be an array of integers") from None
        if array.ndim > 1:
            raise ValueError(f"indices must be one integer or have shape (k,), got shape {array.shape}")
        if array.dtype == np.bool_ and array.ndim == 1:
            if len(array) != self.c.n:
                raise ValueError(f"indices must have shape ({self.c.n},) as a Boolean mask, got ({len(array)},)")
            return np.flatnonzero(array).astype(np.int64)
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"indices must be integers, a slice or a Boolean mask, not {array.dtype}")
        if array.size and not (-self.c.n <= int(array.min()) and int(array.max()) < self.c.n):
            raise ValueError(f"indices must be from {-self.c.n} to {self.c.n - 1}, got {short(array.tolist())}")
        array = np.array(array, np.int64, ndmin=1)
        array[array < 0] += self.c.n
        if len(np.unique(array)) != len(array):
            raise ValueError("indices must be different from one another")
        return array

    # --- who is in it -----------------------------------------------------------------------------

    cdef list homes_for(self, object world, Py_ssize_t n):
        """Return the world of each of n members."""
        cdef Py_ssize_t last = len(self.scenes_) - 1
        values = _each(world, "world", n)
        for value in [world] if values is None else values:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"world must be an integer or integers, not {short(value)}")
            if not 0 <= value <= last:
                raise ValueError(f"world must be from 0 to {last}, got {short(value)}")
        return [world] * n if values is None else values

    cdef int64_t issue_ids(self, int64_t n) except -1:
        """Return the first of n ids that are larger than any id of the crowd's scenes."""
        cdef int64_t first = 0
        cdef Scene scene
        cdef bint late = True
        while late:
            for scene in self.scenes_:
                with scene.lock:
                    first = max(first, scene.next_id)
            late = False
            for scene in self.scenes_:
                with scene.lock:
                    # Another thread may have issued ids meanwhile. The ids taken so far stay unused
                    # then.
                    late = late or scene.next_id > first
                    if not late:
                        scene.next_id = first
                        scene.issue(n)
        return first

    def add(self, positions, *, group=None, world=0, **parameters):
        """Add characters.

        Parameters
        ----------
        positions : (m, 3) array of floats
            Centres of the capsules, metres.
        world : int or (m,) of them
            As for `Crowd`.
        group, **parameters
            As for `Crowd`. The default is the crowd's own value, if that was one value for all;
            otherwise the default of `Crowd`.

        Returns
        -------
        (m,) array of int64
            Their ids, larger than all previous ones.
        """
        cdef vector_rows places
        cdef int64_t[::1] ids
        cdef int64_t first, i, m, n
        cdef list rows, groups, homes
        self.enter()
        try:
            array = as_vectors(positions, "positions", -1, &places)
            m = len(array)
            n = self.c.n
            rows = self.rows_for(parameters, m)
            groups = None if group is None else _each(group, "group", m)
            if groups is None:
                groups = [self.settings.group if group is None else _as_group(group)] * m
            else:
                groups = [_as_group(g) for g in groups]
            homes = self.homes_for(world, m)
            if self.journal_ is not None:
                self.tell("add", {"positions": array, "group": group, "world": world, **parameters})
            self.grow(n + m)
            fresh = np.empty(m, np.int64)
            ids = fresh
            first = self.issue_ids(m)
            for i in range(m):
                state_forget(&self.c.states[n + i], row_load(&places, i))
                near_forget(&self.c, n + i)
                ids[i] = self.c.ids[n + i] = first + i
                self.c.rows[n + i] = rows[i]
                self.c.groups[n + i] = groups[i]
                self.c.slots[n + i] = -1
                if self.c.homes != NULL:
                    self.c.homes[n + i] = homes[i]
            self.c.n = n + m
            self.tidy()
            flags = self.flags_
            self.fresh_arrays()
            self.flags_[:n] = flags
            self.publish()
            return fresh
        finally:
            self.leave()

    cdef int publish(self) except -1:
        """Publish the positions of all members."""
        raise_status(crowd_publish_all(&self.c))
        return 0

    def remove(self, indices):
        """Remove characters; the others keep their order and their ids.

        Parameters
        ----------
        indices : int, slice, (k,) array of ints or (n,) array of bool
            As NumPy indexes; negative numbers count from the end.
        """
        self.enter()
        try:
            array = np.sort(self.indices(indices))
            if self.journal_ is not None:
                self.tell("remove", {"indices": array})
            self.take_out(array)
        finally:
            self.leave()

    cdef int take_out(self, object indices) except -1:
        """Remove the members of these ascending indices."""
        cdef crowd_data* c = &self.c
        cdef const int64_t[::1] gone = indices
        cdef int64_t i, n_left = 0
        cdef Py_ssize_t k = 0
        cdef compact_cache swap_compact
        cdef candidate_cache swap
        self.alone()
        for i in range(c.n):
            if k < gone.shape[0] and gone[k] == i:
                k += 1
                crowd_withdraw(c, i)
                near_free(c, i)
                continue
            if n_left != i:
                swap_compact = c.compact[n_left]
                c.compact[n_left] = c.compact[i]
                c.compact[i] = swap_compact
                if c.near != NULL:
                    swap = c.near[n_left]
                    c.near[n_left] = c.near[i]
                    c.near[i] = swap
                c.states[n_left] = c.states[i]
                c.ids[n_left] = c.ids[i]
                c.rows[n_left] = c.rows[i]
                c.groups[n_left] = c.groups[i]
                c.slots[n_left] = c.slots[i]
                if c.homes != NULL:
                    c.homes[n_left] = c.homes[i]
            n_left += 1
        c.n = n_left
        self.tidy()
        flags = np.delete(self.flags_, indices)
        self.fresh_arrays()
        self.flags_[:] = flags
        return 0

    def teleport(self, indices, positions):
        """Move characters to other positions; they forget their platforms.

        Parameters
        ----------
        indices : int, slice, (k,) array of ints or (n,) array of bool
            As NumPy indexes; negative numbers count from the end.
        positions : (k, 3) array of floats or (3,) floats
            Centres of the capsules, metres; one for all if (3,).
        """
        cdef vector_rows places
        cdef int64_t[::1] which
        cdef uint8_t[::1] flags
        cdef Py_ssize_t k
        self.enter()
        try:
            which = self.indices(indices)
            # The variable keeps the array alive until its rows have been read.
            _held = self.places(positions, which.shape[0], &places)
            if self.journal_ is not None:
                self.tell("teleport", {"indices": np.asarray(which), "positions": _held})
            flags = self.flags_
            for k in range(which.shape[0]):
                state_forget(&self.c.states[which[k]], row_load(&places, k))
                flags[which[k]] = 0
                if self.c.slots[which[k]] >= 0:
                    crowd_publish(&self.c, which[k])
            self.refresh()
        finally:
            self.leave()

    cdef object places(self, object positions, Py_ssize_t n, vector_rows* rows):
        """Return n positions, or one for all."""
        array = as_numbers(positions, "positions")
        if array.shape == (3,):
            array = np.broadcast_to(array, (n, 3))
        return as_vectors(array, "positions", n, rows)

    def set(self, indices, **parameters):
        """Change parameters of characters.

        Parameters
        ----------
        indices : int, slice, (k,) array of ints or (n,) array of bool
            As NumPy indexes; negative numbers count from the end.
        **parameters
            As for `Crowd`, also ``group`` and ``world``: one value, or one per index. Members of
            another world forget their platforms, as after `teleport`. ``position`` is (3,) or (k,
            3), metres, and keeps the platform, unlike `teleport`. Capsules change about their
            centres; `resize` keeps the feet in place.
        """
        cdef vector_rows places
        cdef int64_t[::1] which
        cdef controller_params p
        cdef Py_ssize_t k, n
        cdef int64_t i
        cdef dict columns = {}, changed = {}
        cdef list rows = None, groups = None, homes = None
        cdef uint8_t[::1] flags
        cdef bint moved = False
        self.enter()
        try:
            which = self.indices(indices)
            n = which.shape[0]
            event = {"indices": np.asarray(which), **parameters}
            if "group" in parameters:
                group = parameters.pop("group")
                groups = _each(group, "group", n)
                groups = [_as_group(group)] * n if groups is None else [_as_group(g) for g in groups]
            if "world" in parameters:
                homes = self.homes_for(parameters.pop("world"), n)
            if "position" in parameters:
                _held = self.places(parameters.pop("position"), n, &places)
                moved = True
            for name, value in parameters.items():
                columns[name] = _each(value, name, n)
                if n == 0:
                    p = self.settings.params
                    if columns[name] is None:
                        parameter_set(&p, name, value)
            if parameters:
                rows = []
                for k in range(n):
                    i = which[k]
                    # Equal rows with equal changes stay equal.
                    row = changed.get(self.c.rows[i])
                    if row is None:
                        p = self.c.table[self.c.rows[i]]
                        _set_row(&p, columns, parameters, k)
                        row = self.row_of(&p)
                        if not any([values is not None for values in columns.values()]):
                            changed[self.c.rows[i]] = row
                    rows.append(row)
            if self.journal_ is not None:
                self.tell("set", event)
            self.alone()
            flags = self.flags_
            for k in range(n):
                i = which[k]
                if homes is not None and self.c.homes != NULL and self.c.homes[i] != <int32_t>homes[k]:
                    crowd_withdraw(&self.c, i)
                    self.c.homes[i] = homes[k]
                    state_forget(&self.c.states[i], self.c.states[i].position)
                    near_forget(&self.c, i)
                    flags[i] = 0
                if rows is not None:
                    self.c.rows[i] = rows[k]
                    near_forget(&self.c, i)
                if groups is not None:
                    self.c.groups[i] = groups[k]
                if moved:
                    self.c.states[i].position = row_load(&places, k)
            self.changed(which)
        finally:
            self.leave()

    cdef int changed(self, int64_t[::1] which) except -1:
        """Publish changed characters and update the arrays."""
        cdef Py_ssize_t k
        cdef int status, worst = STATUS_OK
        for k in range(which.shape[0]):
            status = crowd_publish(&self.c, which[k])
            if status != STATUS_OK:
                worst = status
        self.tidy()
        self.refresh()
        raise_status(worst)
        return 0

    def get(self, name, dtype=None, out=None):
        """Values of a parameter.

        Parameters
        ----------
        name : str
            Of a parameter of `Crowd`, ``group`` or ``world``; or of an array that moves change:
            ``positions``, ``foot_positions``, ``velocities``, ``ground_normals``, ``grounded``,
            ``standing_on``, ``flags`` or ``ids``.
        dtype : data type, optional
            Type of the new array, such as ``"float32"``. A number does not become an integer, and
            an integer does not lose bits.
        out : array, optional
            The caller's array for the values, with any strides, of any such type.

        Returns
        -------
        (n,) array, (n, 3) for vectors
            ``out``, if given; otherwise new. Without ``dtype``, modes and rules are objects.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid; ``out`` has not changed.
        """
        self.enter(True)
        try:
            return give_column(self.column_of(name), dtype, out)
        finally:
            self.leave()

    cdef object column_of(self, object name):
        """Values of a parameter, or a view of an array that moves change."""
        cdef int64_t[::1] each
        cdef int64_t i
        if not isinstance(name, str):
            raise ValueError(f"name must be that of a parameter, not {short(name)}")
        if name in MOVED_ARRAYS:
            return self.view_of(name)
        numbers = np.zeros(self.c.n, np.int64)
        each = numbers
        if name == "group":
            for i in range(self.c.n):
                each[i] = self.c.groups[i]
            return numbers
        if name == "world":
            if self.c.homes != NULL:
                for i in range(self.c.n):
                    each[i] = self.c.homes[i]
            return numbers
        if name not in DEFAULTS:
            raise ValueError(f"name must be 'group', 'world' or one of {sorted([*DEFAULTS, *MOVED_ARRAYS])}, "
                             f"not {short(name)}")
        for i in range(self.c.n):
            each[i] = self.c.rows[i]
        values = [parameter_get(&self.c.table[i], name) for i in range(self.n_rows)]
        kind = type(parameter_get(&self.settings.params, name))
        if name == "up":
            return np.array(values, np.float64).reshape(-1, 3)[numbers]
        column = np.empty(self.n_rows, kind if kind in (float, bool, int) else object)
        column[:] = values
        return column[numbers]

    # --- moves ------------------------------------------------------------------------------------

    cdef int ready(self, object threads, int64_t work) except -1:
        """Return the threads for that many characters, and reserve their memory."""
        cdef int n_threads = pool_worth(work, 1, pool_threads(threads)), k
        cdef void* grown
        if n_threads < 1:
            n_threads = 1
        if n_threads > self.n_threads:
            grown = realloc(self.threads, <size_t>n_threads * sizeof(crowd_thread))
            if grown == NULL:
                raise MemoryError("pycct: out of memory")
            self.threads = <crowd_thread*>grown
            memset(&self.threads[self.n_threads], 0, <size_t>(n_threads - self.n_threads) * sizeof(crowd_thread))
            for k in range(self.n_threads, n_threads):
                scratch_init(&self.threads[k].scratch)
            self.n_threads = n_threads
        for k in range(self.n_threads):
            self.threads[k].scratch.log = &self.threads[k].log
            self.threads[k].failed = -1
            self.threads[k].status = STATUS_OK
        return n_threads

    cdef object look(self):
        """Take snapshots of all worlds for one call. The returned object must outlive it."""
        cdef Scene scene
        cdef Snapshot snap
        cdef int32_t k
        cdef list held
        if self.c.n_worlds == 1:
            scene = self.scenes_[0]
            snap = scene.snapshot()
            self.c.worlds.fixed = &snap.fixed.data
            self.c.worlds.moving = &snap.moving.data
            return snap
        held = []
        for k in range(self.c.n_worlds):
            scene = self.scenes_[k]
            snap = scene.snapshot()
            self.c.worlds[k].fixed = &snap.fixed.data
            self.c.worlds[k].moving = &snap.moving.data
            held.append(snap)
        return held

    cdef int surround(self, crowd_step* s, double dt, double min_distance) except -1:
        """Fill in everything of a step except the displacements."""
        cdef uint8_t[::1] flags = self.flags_
        memset(s, 0, sizeof(crowd_step))
        s.crowd = &self.c
        s.threads = self.threads
        s.sequential = self.settings.sequential
        s.dt = dt
        s.min_distance = min_distance
        if self.c.n > 0:
            s.positions = self.places_at
            s.flags = &flags[0]
        return 0

    cdef int go(self, crowd_step* s, int threads, bint far, object heard=None) except -1:
        """Move, and raise if a move failed.

        If positions may exceed the limits, nothing changes then.
        """
        cdef controller_state* before = NULL
        cdef int status, k
        cdef bint undone = False
        cdef PyObject* stopped = NULL
        for k in range(self.n_threads):
            self.threads[k].n_hits = 0
        self.unrecorded = not s.record_hits
        self.uncounted = s.costs == NULL and self.c.n > 0
        if far:
            before = <controller_state*>malloc(<size_t>self.c.n * sizeof(controller_state))
            if before == NULL:
                raise MemoryError("pycct: out of memory")
            memcpy(before, self.c.states, <size_t>self.c.n * sizeof(controller_state))
            flags = self.flags_.copy()
        try:
            if s.path == NULL:
                with nogil:
                    status = crowd_move(s, threads)
            else:
                status = self.go_on(s, threads, heard, &stopped)
            for k in range(self.n_threads):
                undone = undone or (far and self.threads[k].failed >= 0)
            if undone:
                memcpy(self.c.states, before, <size_t>self.c.n * sizeof(controller_state))
                self.flags_[:] = flags
                for k in range(self.n_threads):
                    self.threads[k].n_hits = 0
                self.publish()
                self.refresh()
            else:
                self.refill()
        finally:
            free(before)
        interruption = None
        if stopped != NULL:
            interruption = <object>stopped
            Py_DECREF(interruption)
        self.blame()
        raise_status(status)
        if interruption is not None:
            raise interruption
        return 0

    cdef int go_on(self, crowd_step* s, int threads, object heard, PyObject** stopped) except -1:
        """Make many steps in parts, and call Python's signal handlers between parts.

        ``heard``: arguments for the journal, which receives each part after the first one. If a
        handler or the journal raises, ``stopped`` is the exception, a new reference, with
        ``ticks``.
        """
        cdef int64_t total = s.steps, done = 0, n_ticks = _first_part(self.c.n, s.steps)
        cdef const char* first_row = s.displacements.data
        cdef double* path = s.path
        cdef double started
        cdef int status = STATUS_OK, k
        cdef bint failed = False
        while done < total and not failed:
            s.steps = min(n_ticks, total - done)
            s.displacements.data = first_row + done * s.step_stride
            s.path = path + 3 * self.c.n * done
            started = clock_now()
            with nogil:
                status = crowd_move(s, threads)
            done += s.steps
            failed = status != STATUS_OK
            for k in range(self.n_threads):
                failed = failed or self.threads[k].failed >= 0
            if failed or done == total:
                break
            try:
                n_ticks = next_part(s.steps, started)
                if heard is not None:
                    self.refill()
                    self.tell("run", {**heard, "displacements": heard["displacements"][done:done + n_ticks]})
            except BaseException as problem:
                try:
                    problem.ticks = done
                except AttributeError:
                    pass
                Py_INCREF(problem)
                stopped[0] = <PyObject*>problem
                break
        return status

    cdef int blame(self) except -1:
        """Raise for the first character whose move failed."""
        cdef int64_t first = -1
        cdef int k, status = STATUS_OK
        for k in range(self.n_threads):
            if self.threads[k].failed >= 0 and (first < 0 or self.threads[k].failed < first):
                first = self.threads[k].failed
                status = self.threads[k].status
        if first < 0:
            return 0
        if status == STATUS_TOO_FAR:
            raise ValueError(f"displacements must not lead beyond {FARTHEST:g} m, as row {first} does")
        raise_status(status)
        raise ValueError(f"displacements were changed during the move: row {first} makes no sense")

    cdef bint far(self, const vector_rows* rows, int64_t n) noexcept:
        """Return whether a character may end beyond the farthest position."""
        cdef vector_rows places
        places.data = <const char*>self.places_at
        places.stride = 3 * sizeof(double)
        places.inner = sizeof(double)
        places.single = False
        return rows_check(rows, n, NEAR) >= 0 or rows_check(&places, n, NEAR) >= 0

    def move(self, displacements, dt, active=None, threads=1, record_hits=False, out=None, *, min_distance=0.0,
             record_stats=False, up=None):
        """Move all characters, or the active ones.

        Parameters
        ----------
        displacements : (n, 3) array of floats
            Desired motions, metres, gravity included. float64 and float32 of any strides are read
            in place; others are converted first.
        dt : float
            Duration, seconds, >= 0; for velocities and separation.
        active : (n,) array of bool, optional
            Which characters move; the others stay, and others collide with them there.
        threads : int
            Largest number of threads, the calling one included. The results are the same for any
            number. Small crowds use fewer, because waking a thread costs more than their moves.
            Colliding 'sequential' crowds use one.
        record_hits : bool
            Store collisions for `hits`, which raises RuntimeError without them.
        out : (n,) array of uint8, optional
            Array for the flags, with any strides. Without it a new array is created.
        min_distance : float
            A motion of this length or less does not start, metres.
        record_stats : bool
            Store the costs of the moves for `stats`, which raises RuntimeError without them.
        up : (3,) floats or (n, 3) array of floats, optional
            New up directions of the active characters, from this move on: as if `set` was called
            before, at little cost. Any length but zero.

        Returns
        -------
        (n,) array of uint8
            CollisionFlags; 0 for inactive characters. ``out``, if given.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid; nothing has changed. If another thread changes the
            displacements during the call, the valid rows have moved. If ``out`` becomes read-only
            during the call, all rows have moved.
        RuntimeError
            If another thread uses the crowd.
        """
        cdef crowd_step s
        cdef vector_rows rows, tops
        cdef double seconds = as_time(dt), shortest = as_not_negative(min_distance, "min_distance")
        cdef bint records = as_bool(record_hits, "record_hits"), counts = as_bool(record_stats, "record_stats")
        cdef int64_t n
        cdef int n_threads
        self.enter()
        try:
            n = self.c.n
            # The variable keeps the array alive during the move.
            _held = as_vectors(displacements, "displacements", n, &rows)
            if active is not None:
                active = _active_rows(active, n)
            if out is not None:
                as_flags(out, n)
            if up is not None:
                up = self.up_rows(up, n, &tops)
            if self.journal_ is not None:
                pool_threads(threads)
                if up is not None:
                    self.tell("set", _turned_rows(up, active, n))
                self.tell("move", {"displacements": _held, "dt": seconds, "active": active, "min_distance": shortest})
            n_threads = self.ready(threads, n)
            if up is not None and n > 0:
                self.turn(&tops, None if active is None else active.view(np.uint8))
            _snapshots = self.look()
            self.surround(&s, seconds, shortest)
            s.displacements = rows
            s.record_hits = records
            if active is not None and n > 0:
                _take_active(&s, active.view(np.uint8))
            if counts:
                s.costs = _cleared_costs(self, n)
            self.go(&s, n_threads, self.far(&rows, n))
            return _flags_in(self.flags_, out)
        finally:
            self.leave()

    cdef object up_rows(self, object up, Py_ssize_t n, vector_rows* rows):
        """Return up directions of any length but zero, one a member."""
        cdef Py_ssize_t i
        array = as_numbers(up, "up")
        if array.shape == (3,):
            array = np.broadcast_to(array, (n, 3))
        array = as_vectors(array, "up", n, rows)
        for i in range(n):
            if v3_max_abs(row_load(rows, i)) == 0.0:
                raise ValueError(f"up must not be zero, row {i} is")
        return array

    cdef int turn(self, const vector_rows* tops, const uint8_t[:] moves) except -1:
        """Change up directions, and keep the candidate caches."""
        cdef controller_params* grown
        cdef int64_t i, n = self.c.n
        cdef int status, worst = STATUS_OK
        cdef bint own = self.n_rows >= n
        for i in range(n):
            own = own and self.c.rows[i] == i
        self.alone()
        # Each member gets a row of its own. Rows can be equal from now on, so that none is known.
        if not own:
            grown = <controller_params*>malloc(<size_t>(n + 4) * sizeof(controller_params))
            if grown == NULL:
                raise MemoryError("pycct: out of memory")
            for i in range(n):
                grown[i] = self.c.table[self.c.rows[i]]
                self.c.rows[i] = <int32_t>i
            free(self.c.table)
            self.c.table = grown
            self.n_rows, self.capacity_rows = <int32_t>n, <int32_t>n + 4
        self.known.clear()
        self.repeats = True
        for i in range(n):
            if moves is not None and not moves[i]:
                continue
            self.c.table[i].up = direction_of(row_load(tops, i))
            if self.c.slots[i] >= 0:
                status = crowd_publish(&self.c, i)
                if status != STATUS_OK:
                    worst = status
        raise_status(worst)
        return 0

    cdef bint check_displacements(self, vector_rows rows, Py_ssize_t step, object array) except -1:
        """Check the rows of all ticks; return whether a character may end beyond the limits."""
        cdef Py_ssize_t k
        cdef int64_t bad
        cdef bint far = False
        for k in range(array.shape[0]):
            bad = rows_check(&rows, self.c.n, FARTHEST)
            if bad >= 0:
                raise ValueError(f"displacements must be finite and not exceed {FARTHEST:g} m, "
                                 f"row ({k}, {bad}) is {tuple(array[k, bad].tolist())}")
            far = far or self.far(&rows, self.c.n)
            rows.data += step
        return far

    def run(self, displacements, dt, threads=1, *, min_distance=0.0):
        """Make T moves in the current scene.

        Parameters
        ----------
        displacements : (T, n, 3) array of floats
            Metres.
        dt : float
            Duration of each move, seconds, >= 0.
        threads, min_distance
            As for `move`.

        Returns
        -------
        (T, n, 3) array of float64
            Positions after each move, metres; equal to those of T calls of `move`.

        Raises
        ------
        KeyboardInterrupt, or what another signal handler raises
            In the main thread, within 0.3 s unless one tick takes longer. The crowd keeps the whole
            ticks that were made; the attribute ``ticks`` of the exception is their number. A
            journal has received exactly these ticks, unless the handler raised within it.
        """
        cdef crowd_step s
        cdef vector_rows rows
        cdef const double[:, :, :] d
        cdef const float[:, :, :] f
        cdef double[:, :, ::1] path
        cdef double seconds = as_time(dt), shortest = as_not_negative(min_distance, "min_distance")
        cdef Py_ssize_t step = 0
        cdef int64_t n
        cdef int n_threads
        cdef bint far
        self.enter()
        try:
            n = self.c.n
            array = as_numbers(displacements, "displacements")
            if array.ndim == 1 and array.shape[0] == 0:
                array = np.empty((0, n, 3))
            if array.ndim != 3 or array.shape[1] != n or array.shape[2] != 3:
                raise ValueError(f"displacements must have shape (T, {n}, 3), got {array.shape}")
            n_threads = self.ready(threads, n)
            out = np.empty((array.shape[0], n, 3))
            if out.size == 0:
                return out
            memset(&rows, 0, sizeof(vector_rows))
            if array.dtype.itemsize == 8:
                d = array
                rows.data, step = <const char*>&d[0, 0, 0], d.strides[0]
                rows.stride, rows.inner = d.strides[1], d.strides[2]
            else:
                f = array
                rows.data, step = <const char*>&f[0, 0, 0], f.strides[0]
                rows.stride, rows.inner = f.strides[1], f.strides[2]
                rows.single = True
            _snapshots = self.look()
            self.surround(&s, seconds, shortest)
            s.displacements = rows
            far = self.check_displacements(rows, step, array)
            heard = None
            if self.journal_ is not None:
                heard = {"displacements": array, "dt": seconds, "min_distance": shortest}
                self.tell("run", {**heard, "displacements": array[:_first_part(n, array.shape[0])]})
                _snapshots = self.look()
                self.surround(&s, seconds, shortest)
                s.displacements = rows
            path = out
            s.steps = array.shape[0]
            s.step_stride = step
            s.path = &path[0, 0, 0]
            # Many small displacements can also add up to a long way.
            self.go(&s, n_threads, far or array.shape[0] > 1, heard)
            return out
        finally:
            self.leave()

    def separate(self, dt, *, yielding=None):
        """Separate overlapping characters, by half the overlap each in the next move (RULES 8).

        The separation is horizontal. A 'simultaneous' crowd does this by itself after each move,
        and a call of this method replaces it. Only colliding pairs count.

        Parameters
        ----------
        dt : float
            Duration of a step, seconds, >= 0; each of two parts by at most 2 m/s.
        yielding : (n,) array of floats, optional
            One weight per member, >= 0. Of two members that come close, the one with the larger
            weight gives way: it takes the whole separation, and the other takes none. If both walk
            and one is ahead of the other, the one behind gives way, whatever the weights are. A
            member that the other walks towards steps aside. A gap of 0.3 times the smaller radius
            counts as close. Members of equal weight share an overlap by half each; if they are only
            close, the one with the larger id gives way. Characters outside of the crowd separate
            as without weights.

        Notes
        -----
        With ``yielding``, one moves away by at most 4 m/s. In a door, one of two members side by
        side steps back and the other passes, so that no arch of members blocks the door for ever.
        A member between others that it yields to steps back along its way, and a member behind one
        that hardly got on in its last move steps aside as well as back.
        The result does not depend on the order of members or on threads.
        """
        cdef crowd_step s
        cdef double seconds = as_not_negative(dt, "dt")
        cdef double[::1] weights
        cdef int status
        self.enter()
        try:
            held = as_weights(yielding, "yielding", self.c.n)
            if self.journal_ is not None:
                self.tell("separate", {"dt": seconds, "yielding": held})
            self.ready(1, 1)
            _snapshots = self.look()
            self.surround(&s, seconds, 0.0)
            if held is not None and self.c.n > 0:
                weights = held
                s.yielding = &weights[0]
            with nogil:
                status = crowd_separate(&s, 1)
            raise_status(status)
            self.blame()
        finally:
            self.leave()

    @property
    def hits(self):
        """Collisions of the last move, which needs ``record_hits=True``.

        The array is new; it is empty before the first move, and after characters were added or
        removed.

        Returns
        -------
        (k,) structured array
            index (of the character), id (of the character), actor, controller, obstacle (id of the
            object that was hit, the other two -1), triangle (-1: none), data, has_data, dynamic,
            position (m), normal (out of the object), direction (of the motion), length (of the
            remaining motion, m), distance (m), along (position on the capsule's axis, 0 bottom to 1
            top), ``pass_`` (Pass). Sorted by index, then in the order of the collisions.

        Raises
        ------
        RuntimeError
            The last move did not record hits.
        """
        cdef uint8_t[::1] raw
        cdef int64_t total = 0, at = 0
        cdef int k
        self.enter(True)
        try:
            if self.unrecorded:
                raise RuntimeError("the last move recorded no hits: pass record_hits=True to it")
            for k in range(self.n_threads):
                total += self.threads[k].n_hits
            rows = np.zeros(total, HITS)
            if total > 0:
                raw = rows.view(np.uint8)
                for k in range(self.n_threads):
                    if self.threads[k].n_hits > 0:
                        memcpy(&raw[at * sizeof(hit_row)], self.threads[k].hits,
                               <size_t>self.threads[k].n_hits * sizeof(hit_row))
                        at += self.threads[k].n_hits
            return rows[np.argsort(rows["index"], kind="stable")]
        finally:
            self.leave()

    @property
    def stats(self):
        """Costs of the last move, which needs ``record_stats=True``.

        The array is new; it is zero before the first move, and after characters were added or
        removed.

        Returns
        -------
        (n,) structured array
            iterations, full_updates, partial_updates, triangles_tested, recoveries, fixes (Rules);
            zero for inactive characters.

        Raises
        ------
        RuntimeError
            The last move did not record costs.
        """
        self.enter(True)
        try:
            if self.uncounted:
                raise RuntimeError("the last move recorded no costs: pass record_stats=True to it")
            rows = np.zeros(self.c.n, STATS)
            if self.costs_ is not None:
                # As bytes, because NumPy does not copy the gaps between fields.
                rows.view(np.uint8)[:] = self.costs_.view(np.uint8)
            return rows
        finally:
            self.leave()

    # --- questions --------------------------------------------------------------------------------

    cdef int ask(self, crowd_question* q, int threads, bint resizes) except -1:
        cdef int status = STATUS_OK
        _snapshots = self.look()
        q.threads = self.threads
        with nogil:
            if q.crowd.colliding > 0:
                status = crowd_freeze(&self.c)
        raise_status(status)
        if resizes:
            crowd_can_resize(q, threads)
        else:
            crowd_probe(q, threads)
        self.blame()
        return 0

    def probe_ground(self, max_distance, threads=1):
        """Return the ground below each character, within a distance (MOVE 12.1).

        Parameters
        ----------
        max_distance : float
            Metres, >= 0.
        threads : int
            As for `move`.

        Returns
        -------
        GroundArrays
            hit, distance (gap between capsule and ground, m), point, normal, face_normal, walkable,
            actor, controller, obstacle (id, the others -1), triangle, data, has_data. Where ``hit``
            is False, distance is ``max_distance``, ids and triangles are -1, and the rest is zero.
        """
        return ground_arrays(self.look_down(max_distance, threads, False)[0])

    def snap_to_ground(self, max_distance, threads=1):
        """Move straight down onto walkable ground within a distance (MOVE 12.2).

        All characters use the positions of the others at the start of the call.

        Parameters
        ----------
        max_distance : float
            Metres, >= 0; measured from the capsule.
        threads : int
            As for `move`.

        Returns
        -------
        (n,) array of bool
            Whether each character moved: down to the contact offset above the ground.
        """
        return self.look_down(max_distance, threads, True)[1]

    cdef tuple look_down(self, object max_distance, object threads, bint snaps):
        cdef crowd_question q
        cdef uint8_t[::1] raw, moved
        cdef int n_threads
        memset(&q, 0, sizeof(crowd_question))
        q.crowd = &self.c
        q.reach = as_not_negative(max_distance, "max_distance")
        q.snaps = snaps
        self.enter(not snaps)
        try:
            if snaps and self.journal_ is not None:
                pool_threads(threads)
                self.tell("snap_to_ground", {"max_distance": q.reach})
            n_threads = self.ready(threads, self.c.n)
            rows = np.zeros(self.c.n, GROUND)
            done = np.zeros(self.c.n, bool)
            if self.c.n > 0:
                raw = rows.view(np.uint8)
                moved = done.view(np.uint8)
                q.ground = <ground_row*>&raw[0]
                q.answers = &moved[0]
                self.ask(&q, n_threads, False)
            if snaps:
                self.publish()
                self.refresh()
            return rows, done
        finally:
            self.leave()

    @property
    def ground(self):
        """The ground of each character at the end of its last move.

        Returns
        -------
        GroundArrays
            As from `probe_ground`; distance 0 where ``hit`` is False.
        """
        cdef uint8_t[::1] raw
        cdef ground_row* r
        cdef int64_t i
        self.enter(True)
        try:
            rows = np.zeros(self.c.n, GROUND)
            if self.c.n > 0:
                raw = rows.view(np.uint8)
                r = <ground_row*>&raw[0]
                for i in range(self.c.n):
                    ground_row_fill(&r[i], &self.c.table[self.c.rows[i]], &self.c.states[i].ground, 0.0)
            return ground_arrays(rows)
        finally:
            self.leave()

    def can_resize(self, height, threads=1, indices=None):
        """Return whether characters fit with another height, with their feet in place.

        Parameters
        ----------
        height : float
            Distance between the sphere centres, metres, >= 0.
        threads : int
            As for `move`.
        indices : int, slice, (k,) array of ints or (n,) array of bool, optional
            The characters, as NumPy indexes, each once; the default is all.

        Returns
        -------
        (n,) or (k,) array of bool
            Also True for less than the current height.
        """
        cdef crowd_question q
        cdef crowd_data some
        cdef uint8_t[::1] fits
        cdef int64_t[::1] which
        cdef Py_ssize_t k
        cdef int n_threads
        memset(&q, 0, sizeof(crowd_question))
        memset(&some, 0, sizeof(crowd_data))
        q.crowd = &self.c
        q.reach = as_not_negative(height, "height")
        self.enter(True)
        try:
            if indices is not None:
                # The chosen members form a temporary crowd in the same world.
                which = self.indices(indices)
                some.n_worlds = self.c.n_worlds
                raise_status(crowd_reserve(&some, which.shape[0]))
                some.n = which.shape[0]
                some.table = self.c.table
                some.colliding = self.c.colliding
                some.worlds = self.c.worlds
                for k in range(some.n):
                    some.states[k] = self.c.states[which[k]]
                    some.ids[k] = self.c.ids[which[k]]
                    some.rows[k] = self.c.rows[which[k]]
                    some.groups[k] = self.c.groups[which[k]]
                    if some.homes != NULL:
                        some.homes[k] = self.c.homes[which[k]]
                q.crowd = &some
            n_threads = self.ready(threads, q.crowd.n)
            answers = np.ones(q.crowd.n, bool)
            if q.crowd.n > 0:
                fits = answers.view(np.uint8)
                q.answers = &fits[0]
                self.ask(&q, n_threads, True)
            return answers
        finally:
            some.table = NULL
            some.worlds = NULL
            crowd_free(&some)
            self.leave()

    def resize(self, indices, height):
        """Change heights with the feet in place (RULES 8), without a test for headroom.

        Parameters
        ----------
        indices : int, slice, (k,) array of ints or (n,) array of bool
            As NumPy indexes; negative numbers count from the end.
        height : float or (k,) of them
            Distance between the sphere centres, metres, >= 0. `can_resize` tests the headroom.
        """
        cdef int64_t[::1] which
        cdef controller_params p
        cdef Py_ssize_t k
        cdef int64_t i
        cdef list rows = []
        self.enter()
        try:
            which = self.indices(indices)
            heights = _each(height, "height", which.shape[0])
            for k in range(which.shape[0]):
                p = self.c.table[self.c.rows[which[k]]]
                parameter_set(&p, "height", height if heights is None else heights[k])
                parameters_check(&p)
                rows.append(self.row_of(&p))
            if self.journal_ is not None:
                self.tell("resize", {"indices": np.asarray(which), "height": height})
            self.alone()
            for k in range(which.shape[0]):
                i = which[k]
                p = self.c.table[self.c.rows[i]]
                self.c.rows[i] = rows[k]
                near_forget(&self.c, i)
                self.c.states[i].position = v3_madd(self.c.states[i].position, p.up,
                                                    0.5 * (self.c.table[self.c.rows[i]].height - p.height))
            self.changed(which)
        finally:
            self.leave()

    def contacts(self, max_distance=None, indices=None):
        """Return contact manifolds with everything that the characters touch.

        Parameters
        ----------
        max_distance : float, optional
            As for `CharacterController.contacts`.
        indices : int, slice, (k,) array of ints or (n,) array of bool, optional
            The characters, as NumPy indexes, each once; the default is all.

        Returns
        -------
        list of lists of Contacts
            For each character the result of `CharacterController.contacts`: other, triangle,
            manifold; planes and members of crowds are included.
        """
        cdef int64_t[::1] which
        cdef move_world w
        cdef const controller_params* p
        cdef double reach
        cdef Snapshot snap
        cdef Py_ssize_t k
        cdef int64_t i
        cdef int32_t home
        cdef int status
        cdef unsigned long long env
        cdef list found = []
        self.enter(True)
        try:
            self.ready(1, 1)
            which = np.arange(self.c.n) if indices is None else self.indices(indices)
            held = self.look()
            memset(&w, 0, sizeof(move_world))
            raise_status(crowd_freeze(&self.c))
            for k in range(which.shape[0]):
                i = which[k]
                home = 0 if self.c.homes == NULL else self.c.homes[i]
                snap = held if self.c.n_worlds == 1 else held[home]
                w.fixed = &snap.fixed.data
                w.moving = &snap.moving.data
                p = &self.c.table[self.c.rows[i]]
                reach = contact_reach(p, max_distance)
                w.mask = p.mask
                w.others = &self.c.worlds[home].picture if p.collide else NULL
                w.self = character_of(p, self.c.states[i].position, self.c.ids[i], self.c.groups[i])
                with nogil:
                    env = fp_enter()
                    status = gather_near(p, &self.c.states[i], &w, &self.threads[0].scratch, reach)
                    fp_leave(env)
                raise_status(status)
                PyErr_CheckSignals()
                found.append(contacts_around(self.scenes_[home], snap, p, self.c.states[i].position,
                                             &self.threads[0].scratch, reach, None))
            return found
        finally:
            self.leave()

    # --- bytes ------------------------------------------------------------------------------------

    def state_hash(self):
        """Return a hash of everything that decides the next moves of the members.

        The hash is the sum, modulo 2**64, of one hash for each member: of its id, group,
        parameters, pose and memory of the last move (RULES 8), and of the results version. Hashes
        of parts of a crowd add up to that of the whole, in any order. An empty crowd has hash 0.

        Two machines that made the same moves get the same hash. A different bit in one member
        changes it.

        Returns
        -------
        int
            From 0 to 2**64 - 1.
        """
        cdef uint64_t[::1] of_rows
        cdef int32_t k
        self.enter(True)
        try:
            if self.c.n == 0:
                return 0
            of_rows = np.empty(self.n_rows, np.uint64)
            for k in range(self.n_rows):
                of_rows[k] = parameters_hash(&self.c.table[k], RESULTS_VERSION)
            return crowd_hash(&self.c, &of_rows[0])
        finally:
            self.leave()

    def _check_shift(self, offset):
        """Called by Scene.shift_origin: check that all members stay within the limits."""
        cdef vec3 o = as_vec3(offset, "offset")
        cdef int64_t i
        if self.worlds is not None:
            raise ValueError("a scene cannot shift its origin while a crowd of several worlds lives in it")
        for i in range(self.c.n):
            if v3_max_abs(v3_sub(self.c.states[i].position, o)) > FARTHEST:
                raise ValueError(f"offset must leave every character within {FARTHEST:g} m of the origin")

    def _shift_origin(self, offset):
        """Called by Scene.shift_origin: the same places in shifted coordinates.

        The state is kept.
        """
        cdef vec3 o = as_vec3(offset, "offset")
        cdef int64_t i
        cdef int k
        self.enter()
        try:
            if self.journal_ is not None:
                self.tell("shift_origin", {"offset": from_vec3(o)})
            for i in range(self.c.n):
                state_shift(&self.c.states[i], o, self.c.table[self.c.rows[i]].up)
            for k in range(self.n_threads):
                for i in range(self.threads[k].n_hits):
                    self.threads[k].hits[i].position = v3_sub(self.threads[k].hits[i].position, o)
            self.publish()
            self.refresh()
        finally:
            self.leave()

    def save(self, *, moving=False):
        """Return the state of the crowd as bytes for `restore`.

        Parameters
        ----------
        moving : bool
            Also save the kinematic and dynamic actors and the obstacles of the scene: poses, layers
            and behaviors, by id. Shapes and proxies of controllers are not saved.

        Returns
        -------
        bytes
            Little-endian; the same on every machine. They refer to actors by id.
        """
        cdef bint with_moving = as_bool(moving, "moving")
        self.enter(True)
        try:
            return self.pack(np.arange(self.c.n), with_moving)
        finally:
            self.leave()

    cdef bytes pack(self, const int64_t[::1] which, bint moving):
        """Return the bytes of a crowd with only these members, in the order of their indices."""
        carried = [(<Scene>scene).moving_bytes() for scene in self.scenes_] if moving else None
        return crowd_bytes(&self.c, &self.settings, which, self.flags_, self.n_rows, self.repeats, carried)

    def restore(self, data):
        """Restore a state of `save`; moves then repeat to the bit in an equal scene.

        Removed characters return with their ids, and added ones disappear. Data from
        ``save(moving=True)`` also restores the moving actors and obstacles of the scene; actors
        that were added since stay.

        Parameters
        ----------
        data : bytes
            From `save` of this results version.

        Raises
        ------
        ValueError
            If the data is damaged, if one of its ids belongs to an actor, an obstacle or another
            character of this scene, or if it moves an actor that has been removed (``Scene.add(...,
            id=)`` restores it). Nothing has changed then.
        """
        self.load(data, False)

    cdef int take_rows(self, crowd_data* fresh) except -1:
        """Merge rows by their contents into the crowd's table."""
        cdef int32_t k, n_rows = 0
        cdef int64_t i
        for i in range(fresh.n):
            n_rows = max(n_rows, fresh.rows[i] + 1)
        for k in range(n_rows):
            fresh.table[k].proxy = self.row_of(&fresh.table[k])
        for i in range(fresh.n):
            fresh.rows[i] = <int32_t>fresh.table[fresh.rows[i]].proxy
        free(fresh.table)
        fresh.table = NULL
        return 0

    cdef int load(self, object data, bint renames) except -1:
        """``renames``: issue new ids if ids are in use."""
        cdef crowd_data fresh
        cdef crowd_data old
        cdef crowd_settings settings
        cdef int64_t i, first, n
        cdef int32_t k
        cdef bint renamed = False
        cdef int status
        cdef Scene scene
        cdef list carried = []
        memset(&fresh, 0, sizeof(crowd_data))
        memset(&settings, 0, sizeof(crowd_settings))
        self.enter()
        try:
            fresh = self.back_buffer
            memset(&self.back_buffer, 0, sizeof(crowd_data))
            flags, ids, moving = crowd_from_bytes(data, &fresh, &settings, self.c.n_worlds)
            n = fresh.n
            homes = crowd_homes(&fresh)
            for k in range(self.c.n_worlds):
                scene = self.scenes_[k]
                mine = ids if self.c.n_worlds == 1 else ids[homes == k]
                with scene.lock:
                    taken = self.taken(mine, scene)
                    if taken >= 0:
                        if not renames:
                            raise ValueError(f"data has ids that belong to others of this scene, {taken} for example")
                        renamed = True
                    if moving is not None:
                        carried.append(scene.moving_found(moving[k]))
            if self.journal_ is not None:
                self.tell("restore", {"data": data})
            self.take_rows(&fresh)
            if renamed:
                first = self.issue_ids(n)
                for i in range(n):
                    rename_platform(&fresh.states[i], ids, first)
                    fresh.ids[i] = first + i
            else:
                self.reserve_ids(ids)
            fresh.table = self.c.table
            self.alone()
            for i in range(self.c.n):
                crowd_withdraw(&self.c, i)
            fresh.worlds = self.c.worlds
            old = self.c
            old.table = NULL
            old.worlds = NULL
            self.c = fresh
            fresh = old
            self.settings = settings
            self.tidy()
            self.fresh_arrays()
            self.flags_[:] = flags
            status = crowd_publish_all(&self.c)
            for k in range(len(carried)):
                scene = self.scenes_[k]
                scene.moving_put(carried[k])
            raise_status(status)
        finally:
            crowd_recycle(&fresh, &self.back_buffer)
            self.leave()
        return 0

    def extract(self, ids, *, keep=False):
        """Remove members and return them as bytes for `insert` of this or another crowd.

        Parameters
        ----------
        ids : int or (k,) array of ints
            Ids of members, each once.
        keep : bool, default False
            Return the bytes and leave the members where they are.

        Returns
        -------
        bytes
            As from `save` of a crowd of these members: ids, parameters, groups, poses and memory.

        Raises
        ------
        KeyError
            An id belongs to no member; nothing has changed.
        """
        array = as_ids(ids)
        self.enter()
        try:
            which = np.unique(self.rows_of(array.reshape(-1)))
            if len(which) != array.size:
                raise ValueError("ids must be different from one another")
            if keep:
                return self.pack(which, False)
            if self.journal_ is not None:
                self.tell("extract", {"ids": array})
            data = self.pack(which, False)
            self.take_out(which)
            return data
        finally:
            self.leave()

    def insert(self, data):
        """Add members with their ids and their whole state; indices of others may change.

        Parameters
        ----------
        data : bytes
            From `extract` or `save` of this results version. Order, moving actors and defaults of
            the other crowd are ignored.

        Returns
        -------
        (m,) array of int64
            Ids of the new members, ascending.

        Raises
        ------
        ValueError
            If the data is damaged, or an object of the scene has one of its ids, for example a
            member of this crowd; nothing has changed.
        """
        cdef crowd_data fresh
        cdef crowd_settings settings
        cdef Scene scene
        cdef int32_t k
        cdef int64_t taken
        memset(&fresh, 0, sizeof(crowd_data))
        memset(&settings, 0, sizeof(crowd_settings))
        self.enter()
        try:
            flags, ids, _ = crowd_from_bytes(data, &fresh, &settings, self.c.n_worlds)
            homes = crowd_homes(&fresh)
            taken = first_shared(ids, self.ids_)
            for k in range(self.c.n_worlds):
                scene = self.scenes_[k]
                with scene.lock:
                    if taken < 0:
                        taken = self.taken(ids if self.c.n_worlds == 1 else ids[homes == k], scene)
            if taken >= 0:
                raise ValueError(f"data has id {taken}, which something in this scene has")
            if self.journal_ is not None:
                self.tell("insert", {"data": data})
            self.take_rows(&fresh)
            self.reserve_ids(ids)
            self.grow(self.c.n + fresh.n)
            crowd_merge(&self.c, &fresh)
            flags = np.insert(self.flags_, np.searchsorted(self.ids_, ids), flags)
            self.tidy()
            self.fresh_arrays()
            self.flags_[:] = flags
            self.publish()
            return ids
        finally:
            crowd_free(&fresh)
            self.leave()

    cdef int reserve_ids(self, object ids) except -1:
        """Keep the scenes of the crowd from issuing one of these ascending ids."""
        cdef Scene scene
        cdef int64_t last
        if len(ids):
            last = ids[-1]
            for scene in self.scenes_:
                with scene.lock:
                    if scene.next_id <= last:
                        scene.next_id = last + 1
        return 0

    cdef int64_t taken(self, object ids, Scene scene) except -2:
        """Return one of these ids that another object of a scene has, -1: none.

        The caller holds its lock.
        """
        # A restore usually returns the members that are there, whose ids nothing else has.
        if len(ids) == 0 or self.c.n_worlds == 1 and np.array_equal(ids, self.ids_):
            return -1
        for others in (scene.characters_, scene.actors_):
            if others:
                for k in ids.tolist():
                    if k in others:
                        return k
        for crowd in list(scene.crowds_):
            if crowd is not self:
                k = first_shared(ids, (<Crowd>crowd).ids_in(scene))
                if k >= 0:
                    return k
        return -1

    cdef object ids_in(self, Scene scene):
        """Return the ids of the members of a scene."""
        cdef int64_t i
        if self.worlds is None:
            return self.ids_
        home = self.scenes_.index(scene)
        return self.ids_[[i for i in range(self.c.n) if self.c.homes[i] == home]]

    def __reduce__(self):
        home = self.scene if self.worlds is None else self.worlds
        # Objects that may refer to the crowd follow after its creation.
        return _rebuild, (type(self), home, Crowd.save(self)), (list(self.own_data()), getattr(self, "__dict__", None))

    def __setstate__(self, state):
        data, extra = state
        Crowd.user_data.__set__(self, data)
        if extra:
            self.__dict__.update(extra)

    def __copy__(self):
        copied = _rebuild(type(self), self.scene if self.worlds is None else self.worlds, Crowd.save(self))
        (<Crowd>copied).own_data()[:] = self.own_data()
        getattr(copied, "__dict__", {}).update(getattr(self, "__dict__", {}))
        return copied

    def __deepcopy__(self, memo):
        home = copy.deepcopy(self.scene if self.worlds is None else self.worlds, memo)
        copied = memo[id(self)] = _rebuild(type(self), home, Crowd.save(self))
        (<Crowd>copied).own_data()[:] = copy.deepcopy(self.own_data(), memo)
        if hasattr(self, "__dict__"):
            copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied


def _rebuild(cls, scene, data):
    """Return a pickled or copied crowd."""
    cdef Crowd crowd = cls.__new__(cls)
    Crowd.__init__(crowd, scene, np.empty((0, 3)))
    crowd.load(data, True)
    return crowd


def _keep_triangles(largest):
    """For tests: set the largest size of crowds that keep triangles, and return the old one."""
    cdef int64_t before = few_enough()
    set_few_enough(largest)
    return before
