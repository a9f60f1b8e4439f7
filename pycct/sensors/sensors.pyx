# cython: language_level=3
"""Sensors: arguments and arrays around the kernels."""
import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from pycct._core cimport CharacterController
from pycct.args.values cimport raise_status
from pycct.character.move_types cimport controller_params, controller_state
from pycct.character.parameters cimport foot_below, is_walkable
from pycct.crowd.crowd cimport Crowd
from pycct.geometry.trigonometry cimport cosine, sine
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport v3_madd
from pycct.queries.query_kernels cimport query_free, query_hit, query_init, query_scratch
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.runtime.thread_pool cimport pool_run_parts, pool_threads
from pycct.scene.scene cimport Actor, Scene, Snapshot, fill_capsule
from pycct.sensors.sensor_kernels cimport (
    FIELD_DATA,
    FIELD_DEPTH,
    FIELD_DISTANCE,
    FIELD_HEIGHT,
    FIELD_ID,
    FIELD_KIND,
    FIELD_NORMAL,
    FIELD_POSITION,
    FIELD_TRIANGLE,
    FIELD_VELOCITY,
    FIELD_WALKABLE,
    SCAN_CELLS,
    SEEN_CHARACTER,
    SEEN_MOVING,
    SEEN_NOTHING,
    SEEN_OBSTACLE,
    SEEN_STATIC,
    SENSOR_FAN,
    SENSOR_FEET,
    SENSOR_NEIGHBOURS,
    SENSOR_SCAN,
    sensor_company,
    sensor_job,
    sensor_member,
    sensor_plan,
    sensor_world,
    sensors_look,
)
from pycct.world.broadphase cimport BroadphaseLayer, layer_for
from pycct.world.candidates cimport OWNER_ACTOR, OWNER_CONTROLLER

from pycct.sensors.buffers import (
    as_angles,
    checked_angles,
    checked_dtype,
    checked_out,
    checked_sensors,
    columns_of,
    fresh_buffers,
)
from pycct.sensors.kinds import DepthGrid, HeightScan, Lidar, Neighbours

cdef enum:
    CHUNK = 4       # members of one portion for a thread

cdef dict FIELD_OF = {
    "distance": FIELD_DISTANCE, "height": FIELD_HEIGHT, "depth": FIELD_DEPTH, "normal": FIELD_NORMAL,
    "position": FIELD_POSITION, "velocity": FIELD_VELOCITY, "kind": FIELD_KIND, "id": FIELD_ID,
    "triangle": FIELD_TRIANGLE, "data": FIELD_DATA, "walkable": FIELD_WALKABLE,
}


cdef object _directions(object sensor):
    """Directions of the rays of a lidar or depth grid along ahead, left and top, (n, 3)."""
    cdef double half
    if isinstance(sensor, Lidar):
        return np.array([(cosine(angle), sine(angle), 0.0) for angle in sensor.angles])
    half = sine(0.5 * <double>sensor.fov) / cosine(0.5 * <double>sensor.fov)
    return np.array([(1.0, half * left, half * top) for left, top in sensor.pixels])


cdef void _copy_member(sensor_member* m, const controller_params* p, const controller_state* st) noexcept:
    memset(m, 0, sizeof(sensor_member))
    m.proxy = p.proxy
    m.layer = p.layer
    m.position = st.position
    m.velocity = st.velocity
    m.up = p.up
    m.feet = v3_madd(st.position, p.up, -foot_below(p))
    m.radius = p.radius
    m.height = p.height
    m.ground_id = m.ground_triangle = -1
    if not st.ground.touching:
        return
    m.ground_kind = SEEN_STATIC
    if st.ground.owner != OWNER_ACTOR:
        m.ground_kind = SEEN_CHARACTER if st.ground.owner == OWNER_CONTROLLER else SEEN_OBSTACLE
    m.ground_id = st.ground.id
    m.ground_normal = st.ground.normal
    m.ground_distance = st.ground.distance
    m.walkable = is_walkable(p, &st.ground)
    m.ground_triangle = st.ground.triangle if st.ground.triangle >= 0 else -1
    m.ground_data = st.ground.data if st.ground.has_data else 0


@cython.final
cdef class Sensors:
    """What every member of a crowd sees.

    Parameters
    ----------
    crowd : Crowd, or list or tuple of CharacterController
        The characters. Those of a list belong to one group.
    sensors : mapping of str to Lidar, HeightScan, DepthGrid, Neighbours or Feet
        Sensors by name; each member has all of them.
    dtype : float64 or float32
        Type of the arrays of lengths and vectors.

    Attributes
    ----------
    crowd : Crowd or tuple of CharacterController
    dtype : numpy.dtype

    Notes
    -----
    Rays meet static actors, moving actors, obstacles, and members of the same group in the same
    world; never the member itself, its proxy actor, or other groups. A ray returns the hit that
    `Scene.raycast` returns for the same objects.

    The results are the same for any number of threads. They are part of the promise of
    `RESULTS_VERSION`.

    Thread safety: `look` uses the crowd as `Crowd.move` does. It reads snapshots of its start.

    Examples
    --------
    >>> from pycct import Box, Crowd, Lidar, Plane, Scene, Sensors
    >>> scene = Scene()
    >>> actors = [scene.add(Plane((0, 0, 1))), scene.add(Box((0.5, 5, 1)), position=(4, 0, 1))]
    >>> crowd = Crowd(scene, [(0, 0, 0.91), (0, 2, 0.91)])
    >>> sensors = Sensors(crowd, {"lidar": Lidar(4, 10.0)})
    >>> sensors.look()["lidar.distance"].round(6).tolist()
    [[3.5, 1.6, 10.0, 10.0], [3.5, 10.0, 10.0, 1.6]]
    """

    cdef object __weakref__
    cdef readonly object crowd
    cdef dict sensors_
    cdef readonly object dtype
    cdef dict columns           # of all arrays, by key
    cdef dict buffers
    cdef Py_ssize_t n_rows      # of the buffers; -1: none yet
    cdef list keep              # arrays that the plans point to
    cdef sensor_plan* plans
    cdef int32_t n_plans
    cdef bint casts             # a sensor has rays
    cdef bint scans             # a sensor is a height scan
    cdef bint wants_kind        # of the ground
    cdef sensor_member* members
    cdef int64_t capacity

    def __cinit__(self, *args, **kwargs):
        self.n_rows = -1

    def __dealloc__(self):
        free(self.plans)
        free(self.members)

    def __init__(self, crowd, sensors, dtype=np.float64):
        if self.columns is not None:
            raise RuntimeError("Sensors are initialised once")
        if not isinstance(crowd, Crowd):
            if not isinstance(crowd, (list, tuple)):
                raise TypeError(f"crowd must be a Crowd, or a list or tuple of CharacterController, "
                                f"not {type(crowd).__name__}")
            crowd = tuple(crowd)
            for hero in crowd:
                if not isinstance(hero, CharacterController):
                    raise TypeError(f"crowd must contain CharacterController only, not {type(hero).__name__}")
            if len({id(hero) for hero in crowd}) != len(crowd):
                raise ValueError("crowd must contain each controller once")
        self.dtype = checked_dtype(dtype)
        found = checked_sensors(sensors)
        columns = columns_of(found, self.dtype)
        free(self.plans)
        self.plans = <sensor_plan*>calloc(len(found) + 1, sizeof(sensor_plan))
        if self.plans == NULL:
            raise MemoryError("pycct: out of memory")
        self.n_plans = <int32_t>len(found)
        self.keep = []
        for k, sensor in enumerate(found.values()):
            self.plan(&self.plans[<int32_t>k], sensor)
        self.crowd, self.sensors_, self.columns = crowd, found, columns

    cdef int plan(self, sensor_plan* p, object sensor) except -1:
        """Write what a sensor does as plain values."""
        cdef const double[:, ::1] base
        p.reach = sensor.radius if isinstance(sensor, Neighbours) else 0.0
        if isinstance(sensor, (Lidar, DepthGrid, HeightScan)):
            self.casts = True
            p.mask = sensor.mask
            p.reach = sensor.reach
            if isinstance(sensor, HeightScan):
                p.what = SENSOR_SCAN
                p.height = sensor.above
                p.none = -p.reach
                p.reach += p.height
                p.cells_ahead, p.cells_aside = sensor.shape
                p.step_ahead, p.step_aside = sensor.spacing
                self.scans = True
                array = np.array(sensor.offsets)
            else:
                p.what = SENSOR_FAN
                p.height = sensor.height if isinstance(sensor, Lidar) else sensor.eye
                p.tilts = sensor.tilts if isinstance(sensor, Lidar) else True
                array = _directions(sensor)
            self.keep.append(array)
            base = array
            p.base = &base[0, 0]
            p.n = <int32_t>array.shape[0]
        elif isinstance(sensor, Neighbours):
            p.what = SENSOR_NEIGHBOURS
            p.n = sensor.k
        else:
            p.what = SENSOR_FEET
            p.n = 1
            self.wants_kind = self.wants_kind or "kind" in sensor.fields
        return 0

    @property
    def sensors(self):
        """The sensors by name; a new dict."""
        return dict(self.sensors_)

    def __repr__(self):
        return f"<Sensors {', '.join(self.sensors_ or ())} of {self.crowd!r}>"

    def __reduce__(self):
        return Sensors, (self.crowd if isinstance(self.crowd, Crowd) else list(self.crowd), self.sensors_, self.dtype)

    def look(self, yaw=0.0, pitch=0.0, threads=1, out=None):
        """Compute the values of all sensors for all members.

        Parameters
        ----------
        yaw : float or (n,) array of floats
            Turn about the up direction, radians: 0 looks along +x, counter-clockwise seen from
            above. With another up direction, the axes are turned by the shortest rotation from +z
            to it.
        pitch : float or (n,) array of floats
            Rise of the line of sight, radians; positive looks up.
        threads : int
            Largest number of threads, the calling one included.
        out : mapping of str to arrays, optional
            The caller's arrays for some or all keys: contiguous, of float64 or float32 for lengths
            and vectors, otherwise of the type of the sensors' own array.

        Returns
        -------
        dict of str to arrays
            For each sensor ``s`` and each of its fields ``f``, the key ``"s.f"``. The arrays have a
            row for each member. The next call overwrites them, unless they are the caller's; when
            the number of members changes, new ones are created.

        Raises
        ------
        TypeError, ValueError
            For an argument that cannot be used; no array has changed.
        RuntimeError
            If another thread uses the crowd or a controller.
        """
        cdef Crowd crowd = None
        cdef CharacterController hero
        cdef Py_ssize_t entered = 0
        if self.columns is None:
            raise RuntimeError("the Sensors were not initialised: call Sensors.__init__")
        # Conversions can run foreign code, so they come first.
        yaw, pitch = as_angles(yaw, "yaw"), as_angles(pitch, "pitch")
        if isinstance(self.crowd, Crowd):
            crowd = self.crowd
            crowd.enter(True)
            try:
                return self.look_on(crowd, yaw, pitch, pool_threads(threads), out)
            finally:
                crowd.leave()
        try:
            for hero in self.crowd:
                hero.enter()
                entered += 1
            return self.look_on(None, yaw, pitch, pool_threads(threads), out)
        finally:
            for hero in self.crowd[:entered]:
                hero.leave()

    cdef object look_on(self, Crowd crowd, object yaw, object pitch, int threads, object out):
        """Look, with the characters acquired."""
        cdef int64_t n = len(self.crowd) if crowd is None else crowd.c.n
        cdef sensor_job job
        cdef int k
        cdef int status = STATUS_OK
        yaws, pitches = checked_angles(yaw, "yaw", n), checked_angles(pitch, "pitch", n)
        if self.n_rows != n:
            self.buffers = fresh_buffers(self.columns, n)
            self.n_rows = n
        arrays = checked_out(out, self.columns, self.buffers, n)
        if n == 0 or self.n_plans == 0:
            return arrays
        memset(&job, 0, sizeof(sensor_job))
        try:
            job.scratch = <query_scratch*>calloc(threads, sizeof(query_scratch))
            job.status = <int*>calloc(threads, sizeof(int))
            if self.scans:
                job.hits = <query_hit*>malloc(<size_t>threads * SCAN_CELLS * sizeof(query_hit))
            if job.scratch == NULL or job.status == NULL or (self.scans and job.hits == NULL):
                raise MemoryError("pycct: out of memory")
            for k in range(threads):
                query_init(&job.scratch[k])
            # Named variables keep layers and snapshots alive during the call.
            scenes, groups = self.copy_members(crowd, n, yaws, pitches)
            _snapshots = self.open_worlds(&job, scenes)
            _layers = self.gather_companies(&job, n, groups)
            self.open_columns(arrays)
            job.members = self.members
            job.plans = self.plans
            job.n_plans = self.n_plans
            pool_run_parts(sensors_look, &job, n, CHUNK, threads)
            for k in range(threads):
                if job.status[k] != STATUS_OK:
                    status = job.status[k]
        finally:
            if job.scratch != NULL:
                for k in range(threads):
                    query_free(&job.scratch[k])
            free(job.scratch)
            free(job.status)
            free(job.hits)
            free(<void*>job.worlds)
            free(<void*>job.companies)
        raise_status(status)
        return arrays

    cdef tuple copy_members(self, Crowd crowd, int64_t n, const double[::1] yaws, const double[::1] pitches):
        """Copy what the kernels read; return the scenes and the group of each member."""
        cdef int64_t[::1] group
        cdef CharacterController hero
        cdef Scene scene
        cdef Actor actor
        cdef sensor_member* m
        cdef void* grown
        cdef int64_t i
        if n > self.capacity:
            grown = realloc(self.members, <size_t>n * sizeof(sensor_member))
            if grown == NULL:
                raise MemoryError("pycct: out of memory")
            self.members = <sensor_member*>grown
            self.capacity = n
        groups = np.zeros(n, np.int64)
        group = groups
        homes = {}
        if crowd is not None:
            scenes = list(crowd.scenes_)
            for i in range(n):
                m = &self.members[i]
                _copy_member(m, &crowd.c.table[crowd.c.rows[i]], &crowd.c.states[i])
                m.id = crowd.c.ids[i]
                m.world = 0 if crowd.c.homes == NULL else crowd.c.homes[i]
                group[i] = crowd.c.groups[i]
        else:
            scenes = []
            for i in range(n):
                hero = self.crowd[i]
                m = &self.members[i]
                _copy_member(m, &hero.params, &hero.now.state)
                m.id = hero.id
                if hero.scene not in homes:
                    homes[hero.scene] = len(scenes)
                    scenes.append(hero.scene)
                m.world = homes[hero.scene]
        for i in range(n):
            m = &self.members[i]
            m.yaw, m.pitch = yaws[i], pitches[i]
            if self.wants_kind and m.ground_kind == SEEN_STATIC:
                scene = scenes[m.world]
                actor = scene.actors_.get(m.ground_id)
                if actor is None:
                    m.ground_kind = SEEN_NOTHING
                elif actor.body_ != 0:
                    m.ground_kind = SEEN_MOVING
        return scenes, groups

    cdef list open_worlds(self, sensor_job* job, list scenes):
        """Take a snapshot of each scene; return them."""
        cdef sensor_world* worlds = <sensor_world*>calloc(len(scenes), sizeof(sensor_world))
        cdef Scene scene
        cdef Snapshot snap
        cdef Py_ssize_t k
        cdef list held = []
        if worlds == NULL:
            raise MemoryError("pycct: out of memory")
        job.worlds = worlds
        for k in range(len(scenes)):
            scene = scenes[k]
            snap = scene.snapshot()
            worlds[k].fixed = &snap.fixed.data
            worlds[k].moving = &snap.moving.data
            held.append(snap)
        return held

    cdef list gather_companies(self, sensor_job* job, int64_t n, object groups):
        """Sort the members by world, group and id; return arrays and layers to keep alive."""
        cdef sensor_company* companies
        cdef BroadphaseLayer layer
        cdef const sensor_member* m
        cdef int32_t[::1] who
        cdef int64_t[::1] first
        cdef int64_t[:, ::1] keys
        cdef int64_t i
        cdef int32_t k
        cdef unsigned long long env
        table = np.empty((3, n), np.int64)
        keys = table
        for i in range(n):
            keys[0, i], keys[2, i] = self.members[i].id, self.members[i].world
        table[1] = groups
        order = np.lexsort(table)
        sorted_keys = table[1:, order]
        new = np.ones(n, bool)
        new[1:] = (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)
        starts = np.append(np.flatnonzero(new), n).astype(np.int64)
        numbers = order.astype(np.int32)
        who, first = numbers, starts
        held = [numbers]
        companies = <sensor_company*>calloc(starts.shape[0], sizeof(sensor_company))
        if companies == NULL:
            raise MemoryError("pycct: out of memory")
        job.companies = companies
        for k in range(first.shape[0] - 1):
            companies[k].who = &who[first[k]]
            companies[k].n = <int32_t>(first[k + 1] - first[k])
            for i in range(companies[k].n):
                self.members[companies[k].who[i]].company = k
            # A member alone sees no other member.
            if not self.casts or companies[k].n < 2:
                continue
            layer = layer_for([None] * companies[k].n)
            env = fp_enter()
            for i in range(companies[k].n):
                m = &self.members[companies[k].who[i]]
                fill_capsule(&layer.data.items[i], m.id, m.layer, m.radius,
                             v3_madd(m.position, m.up, -0.5 * m.height), v3_madd(m.position, m.up, 0.5 * m.height))
            try:
                layer.build()
            finally:
                fp_leave(env)
            companies[k].layer = &layer.data
            held.append(layer)
        return held

    cdef int open_columns(self, dict arrays) except -1:
        """Point the plans at the arrays; checks have passed."""
        cdef char[::1] raw
        cdef sensor_plan* p
        cdef int k
        for key, column in self.columns.items():
            p = &self.plans[<int>column.sensor]
            k = FIELD_OF[column.field]
            array = arrays[key]
            raw = array.reshape(-1).view(np.int8)
            p.columns[k].data = &raw[0]
            p.columns[k].single = array.dtype.itemsize == 4
        return 0
