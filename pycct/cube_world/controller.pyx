# cython: language_level=3
"""The sweep/slide controller: arguments, results, errors, log lines.

slide_step does the arithmetic.
"""
import logging

import numpy as np

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from pycct.geometry.closest cimport closest_pair, point_segment, segment_box
from pycct.args.values cimport as_bool, as_float, as_vec3, from_vec3, raise_status, short
from pycct.runtime.thread_pool cimport pool_run, pool_threads
from pycct.cube_world.cubes cimport CubeWorld, _Grid, candidate, cube_grid, grid_visit
from pycct.cube_world.slide_step cimport (
    BUMPS_CAP,
    DEPEN_CAP,
    JITTER_CAP,
    PLANES_CAP,
    box_overlap_result,
    candidate_overlap,
    clip_velocity as kernel_clip_velocity,
    clip_velocity_planes,
    ground_result,
    grid_sweep,
    slab_time,
    slide_config,
    slide_depenetrate,
    slide_hash,
    slide_hit,
    slide_move,
    slide_probe,
    slide_runner,
    slide_state,
    slide_step,
    upright_box_overlap,
    upright_box_point,
    upright_box_time,
)
from pycct.geometry.sweep cimport NO_HIT
from pycct.geometry.vec cimport (
    aabb,
    box_centre,
    box_half,
    box_of,
    f_clamp,
    v3,
    v3_add,
    v3_dot,
    v3_finite,
    v3_is_zero,
    v3_len,
    v3_load,
    v3_madd,
    v3_max_abs,
    v3_scale,
    v3_store,
    v3_sub,
    vec3,
)

from pycct.cube_world.records import (
    Candidates,
    DepenIteration,
    GroundResult,
    GroundState,
    OverlapResult,
    SlideCapsule,
    SlideIteration,
    SweepHit,
    SweepMark,
)

log = logging.getLogger("pycct.slide")

# Largest coordinate of a runner (m), largest speed (m/s), longest step (s).
cdef double PLACE_LIMIT = 1e6
cdef double SPEED_LIMIT = 1e6
cdef double DT_LIMIT = 10.0
# Runners that a thread of step_many takes at a time.
cdef int64_t STEP_CHUNK = 4


cdef double _ranged(object value, str name, double lo, double hi) except? -1.0:
    cdef double x = as_float(value, name)
    if not lo <= x <= hi:
        raise ValueError(f"{name} must lie within {lo:g} and {hi:g}, got {x:g}")
    return x


cdef int _counted(object value, str name, int lo, int hi) except? -1:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    value = value.__index__()
    if not lo <= value <= hi:
        raise ValueError(f"{name} must lie within {lo} and {hi}, got {short(value)}")
    return value


cdef vec3 _placed(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > PLACE_LIMIT:
        raise ValueError(f"{name} must lie within +-{PLACE_LIMIT:g} m, got {from_vec3(v)}")
    return v


cdef vec3 _speed(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > SPEED_LIMIT:
        raise ValueError(f"{name} must lie within +-{SPEED_LIMIT:g} m/s, got {from_vec3(v)}")
    return v


cdef double _duration(object value) except? -1.0:
    cdef double x = as_float(value, "dt")
    if not 0.0 < x <= DT_LIMIT:
        raise ValueError(f"dt must be > 0 and at most {DT_LIMIT:g} s, got {x}")
    return x


cdef double _cosine(double degrees) noexcept:
    """Cosine by its series, so that every machine returns the same bits, unlike the C library."""
    cdef double x, term = 1.0, total = 1.0
    cdef int k
    if degrees == 45.0:
        return sqrt(0.5)
    x = degrees * 0.017453292519943295
    x = x * x
    for k in range(1, 16):
        term *= -x / ((2 * k - 1) * (2 * k))
        total += term
    return total


KNOBS = {
    "radius": 0.3,
    "half_height": 0.6,
    "skin_width": None,
    "max_bumps": 4,
    "max_clip_planes": 5,
    "stop_epsilon": 0.001,
    "overclip": 1.001,
    "max_walkable_angle": None,
    "walkable_normal_y": None,
    "ground_grace_time": 0.1,
    "ground_probe_margin": 0.01,
    "probe_radius_scale": 0.9,
    "step_height": 0.5,
    "gravity": 20.0,
    "jump_speed": 7.0,
    "max_fall_speed": 60.0,
    "max_depen_iters": 4,
    "min_depen_dist": 0.001,
    "max_depen_clamp": 1.0,
    "stuck_frames_limit": 10,
    "jitter_frames": 30,
    "tie_epsilon": 1e-6,
    "ccd": True,
    "flatten_walls": True,
    "merge_faces": True,
    "hysteresis": True,
}


cdef slide_config _configured(dict k) except *:
    cdef slide_config c
    c.radius = _ranged(k["radius"], "radius", 1e-3, 1e3)
    c.half_height = _ranged(k["half_height"], "half_height", 0.0, 1e3)
    if k["skin_width"] is None:
        c.skin = 0.1 * c.radius if 0.1 * c.radius > 0.01 else 0.01
    else:
        c.skin = _ranged(k["skin_width"], "skin_width", 0.0, 100.0)
    c.max_bumps = _counted(k["max_bumps"], "max_bumps", 1, BUMPS_CAP)
    c.max_planes = _counted(k["max_clip_planes"], "max_clip_planes", 1, PLANES_CAP)
    c.stop_epsilon = _ranged(k["stop_epsilon"], "stop_epsilon", 0.0, 0.5)
    c.overclip = _ranged(k["overclip"], "overclip", 1.0, 2.0)
    if k["walkable_normal_y"] is not None:
        if k["max_walkable_angle"] is not None:
            raise ValueError("give max_walkable_angle or walkable_normal_y, not both")
        c.walkable_y = _ranged(k["walkable_normal_y"], "walkable_normal_y", 1e-3, 1.0)
    elif k["max_walkable_angle"] is not None:
        c.walkable_y = _cosine(_ranged(k["max_walkable_angle"], "max_walkable_angle", 0.0, 89.9))
    else:
        c.walkable_y = _cosine(45.0)
    c.grace_time = _ranged(k["ground_grace_time"], "ground_grace_time", 0.0, 1e6)
    c.probe_margin = _ranged(k["ground_probe_margin"], "ground_probe_margin", 0.0, 100.0)
    c.probe_scale = _ranged(k["probe_radius_scale"], "probe_radius_scale", 0.01, 1.0)
    c.step_height = _ranged(k["step_height"], "step_height", 0.0, 1e3)
    c.gravity = _ranged(k["gravity"], "gravity", 0.0, 1e6)
    c.jump_speed = _ranged(k["jump_speed"], "jump_speed", 0.0, 1e6)
    c.max_fall_speed = _ranged(k["max_fall_speed"], "max_fall_speed", 0.0, 1e6)
    c.max_depen_iters = _counted(k["max_depen_iters"], "max_depen_iters", 0, DEPEN_CAP)
    c.min_depen_dist = _ranged(k["min_depen_dist"], "min_depen_dist", 0.0, 1.0)
    c.max_depen_clamp = _ranged(k["max_depen_clamp"], "max_depen_clamp", 1e-3, 1e6)
    c.stuck_limit = 0 if k["stuck_frames_limit"] is None else _counted(
        k["stuck_frames_limit"], "stuck_frames_limit", 0, 1000000)
    c.jitter_frames = _counted(k["jitter_frames"], "jitter_frames", 2, JITTER_CAP)
    c.tie_epsilon = _ranged(k["tie_epsilon"], "tie_epsilon", 0.0, 0.01)
    c.ccd = as_bool(k["ccd"], "ccd")
    c.flatten_walls = as_bool(k["flatten_walls"], "flatten_walls")
    c.merge_faces = as_bool(k["merge_faces"], "merge_faces")
    c.hysteresis = as_bool(k["hysteresis"], "hysteresis")
    return c


cdef object _overlap_record(box_overlap_result r, double radius, int64_t id):
    return OverlapResult(bool(r.hit), from_vec3(r.normal), r.depth,
                         from_vec3(v3_madd(r.on_segment, r.normal, -radius)), from_vec3(r.on_box), id)


cdef object _hit_record(slide_hit h):
    return SweepHit(h.t, from_vec3(h.normal), h.id, h.distance, from_vec3(h.point))


cdef struct _near_context:
    const cube_grid* g
    vec3 p
    double reach
    double radius
    double nearest2
    int64_t nearest_id
    vec3 on_segment
    vec3 on_box
    int64_t* ids
    int64_t n
    int64_t capacity


cdef void _near_visit(void* context, const candidate* c) noexcept nogil:
    cdef _near_context* s = <_near_context*>context
    cdef box_overlap_result r = candidate_overlap(s.g, s.p, s.reach, s.radius, c)
    cdef vec3 off = v3_sub(r.on_segment, r.on_box)
    cdef double d2 = v3_dot(off, off)
    if d2 < s.nearest2 or (d2 == s.nearest2 and c.id < s.nearest_id):
        s.nearest2 = d2
        s.nearest_id = c.id
        s.on_segment = r.on_segment
        s.on_box = r.on_box
    if r.hit:
        if s.n < s.capacity:
            s.ids[s.n] = c.id
        s.n += 1


cdef struct _one_context:
    const cube_grid* g
    vec3 p
    double reach
    double radius
    int64_t id
    box_overlap_result result


cdef void _one_visit(void* context, const candidate* c) noexcept nogil:
    cdef _one_context* s = <_one_context*>context
    if c.id == s.id:
        s.result = candidate_overlap(s.g, s.p, s.reach, s.radius, c)


@cython.final
cdef class SweepSlideController:
    """A character that sweeps and slides through a `CubeWorld` (SLIDE; RULES 11).

    Y is up, and the anchor is the feet: the lowest point of an upright capsule. `step` alone makes
    a playable character, which walks, slides, falls, lands, snaps down steps and jumps.

    Parameters
    ----------
    world : CubeWorld
    feet : sequence of 3 float
        Spawn position, metres. Depenetration resolves an overlap there at once, to skin distance
        where space allows.
    radius, half_height : float
        Metres; half_height is half the distance between the sphere centres, and 0 makes a sphere.
        The total height is 2 * radius + 2 * half_height.
    skin_width : float, optional
        Gap to every surface, along its normal (SLIDE 1.4), metres. The default is
        ``max(0.01, 0.1 * radius)``: 0.03 for a radius of 0.3.
    max_bumps : int, default 4
        Slide iterations in one frame (SLIDE 4.1).
    max_clip_planes : int, default 5
        Most clipping planes of one frame.
    stop_epsilon : float, default 0.001
        A remaining motion below this share of the step is dropped. A velocity component below this
        share of the speed (at most 0.001 m/s) is dropped.
    overclip : float, default 1.001
        Factor of the motion into a plane that clipping removes.
    max_walkable_angle : float, default 45
        Steepest ground to stand on, degrees.
    walkable_normal_y : float, default 0.7071
        Cosine of that angle; pass one of the two.
    ground_grace_time : float, default 0.1
        Time for which the character counts as grounded after it has left the ground, seconds.
    ground_probe_margin : float, default 0.01
        Largest distance of the ground beyond the skin, metres.
    probe_radius_scale : float, default 0.9
        Radius of the ground probe, in radii.
    step_height : float, default 0.5
        Longest snap down to the ground when the character walks off a step, metres. 0 allows only
        the gap of the probe margin. The character does not climb steps; it jumps.
    gravity : float, default 20
        m/s2, downwards.
    jump_speed : float, default 7
        m/s. A jump is ``jump_speed**2 / (2 * gravity)`` high: 1.225 m, one cube.
    max_fall_speed : float, default 60
        m/s.
    max_depen_iters : int, default 4
        Rounds of one depenetration (SLIDE 6.2).
    min_depen_dist : float, default 0.001
        Overlaps up to this depth are neither resolved nor failures, metres.
    max_depen_clamp : float, default 1
        Longest push of one round, metres.
    stuck_frames_limit : int or None, default 10
        Depenetrate after more than this many frames with a wish but without motion; 0 or None:
        never.
    jitter_frames : int, default 30
        Number of positions in the variance of `jitter_score`; at most 120.
    tie_epsilon : float, default 1e-6
        Hits within this share of the motion count as simultaneous: the lower id wins.
    ccd : bool, default True
        Sweep. False moves first and pushes out afterwards, for comparison: it tunnels.
    flatten_walls : bool, default True
        Surfaces too steep to walk on stop a character without lifting it.
    merge_faces : bool, default True
        Adjacent cubes form one face, so no character snags on the edge between them, even closer
        than the skin.
    hysteresis : bool, default True
        The motion stops if clipping has turned it back against the wish.
    user_data : object, optional

    Raises
    ------
    TypeError, ValueError
        With the name of the argument.

    Notes
    -----
    The same arguments return the same bits, for any order of insertion into the world, any thread
    and any process; see `position_hash`.

    **Thread safety.** A runner belongs to one thread at a time; a second thread gets RuntimeError
    while it moves. `step` releases the GIL. Many runners may share a world, and the world may
    change meanwhile.

    Examples
    --------
    >>> from pycct import CubeWorld, SweepSlideController
    >>> world = CubeWorld()
    >>> for x in range(-2, 3):
    ...     for z in range(-2, 3):
    ...         _ = world.add((x, -1, z))
    >>> runner = SweepSlideController(world, feet=(0.5, 2.0, 0.5))
    >>> for _ in range(60):
    ...     _ = runner.step((0, 0, 0), 1 / 60)
    >>> runner.grounded, round(runner.feet[1], 3)
    (True, 0.03)
    """

    def __init__(self, CubeWorld world not None, feet, radius=0.3, half_height=0.6, *, skin_width=None, max_bumps=4,
                 max_clip_planes=5, stop_epsilon=0.001, overclip=1.001, max_walkable_angle=None,
                 walkable_normal_y=None, ground_grace_time=0.1, ground_probe_margin=0.01, probe_radius_scale=0.9,
                 step_height=0.5, gravity=20.0, jump_speed=7.0, max_fall_speed=60.0, max_depen_iters=4,
                 min_depen_dist=0.001, max_depen_clamp=1.0, stuck_frames_limit=10, jitter_frames=30,
                 tie_epsilon=1e-6, ccd=True, flatten_walls=True, merge_faces=True, hysteresis=True, user_data=None):
        cdef slide_config c = _configured({
            "radius": radius, "half_height": half_height, "skin_width": skin_width, "max_bumps": max_bumps,
            "max_clip_planes": max_clip_planes, "stop_epsilon": stop_epsilon, "overclip": overclip,
            "max_walkable_angle": max_walkable_angle, "walkable_normal_y": walkable_normal_y,
            "ground_grace_time": ground_grace_time, "ground_probe_margin": ground_probe_margin,
            "probe_radius_scale": probe_radius_scale, "step_height": step_height, "gravity": gravity,
            "jump_speed": jump_speed, "max_fall_speed": max_fall_speed, "max_depen_iters": max_depen_iters,
            "min_depen_dist": min_depen_dist, "max_depen_clamp": max_depen_clamp,
            "stuck_frames_limit": stuck_frames_limit, "jitter_frames": jitter_frames,
            "tie_epsilon": tie_epsilon, "ccd": ccd,
            "flatten_walls": flatten_walls, "merge_faces": merge_faces, "hysteresis": hysteresis})
        cdef vec3 at = _placed(feet, "feet")
        self._enter()
        try:
            memset(&self.data, 0, sizeof(self.data))
            self.data.config = c
            self.data.state.feet = at
            self.data.state.since_grounded = c.grace_time
            self.data.state.ground.id = -1
            self.data.trace.first_id = self.data.trace.last_id = -1
            self.world = world
            self.user_data = user_data
            self._warned = False
            self._place(at, True)
        finally:
            self._leave()
        self._emit_depen()

    cdef int _enter(self) except -1:
        with cython.critical_section(self):
            if self._busy:
                raise RuntimeError("this runner is in use by another thread")
            self._busy = True
        return 0

    cdef void _leave(self) noexcept:
        with cython.critical_section(self):
            self._busy = False

    cdef int _check(self) except -1:
        """Check before a read that no thread is writing and that the object is initialised."""
        if self._busy:
            raise RuntimeError("this runner is in use by another thread")
        if self.world is None:
            raise RuntimeError("this runner was not initialised")
        return 0

    cdef int _place(self, vec3 feet, bint spawning) except -1:
        """Place the runner and resolve overlaps. The caller has entered the runner."""
        cdef _Grid grid
        cdef slide_state* s = &self.data.state
        s.feet = feet
        s.velocity = v3(0.0, 0.0, 0.0)
        s.carry = v3(0.0, 0.0, 0.0)
        s.grounded = False
        s.on_surface = False
        s.rising = False
        s.wedged = False
        s.since_grounded = self.data.config.grace_time
        s.stuck_frames = 0
        self.data.trace.n_depens = 0
        self.data.trace.depen_pushed = False
        grid = self.world.acquire()
        with nogil:
            slide_depenetrate(&grid.data, &self.data)
        self.world.release(grid)
        s.recent[0] = s.feet
        s.n_recent = 1
        s.next_recent = 1
        return 0

    # ------------------------------------------------------------ moving

    def step(self, wish_velocity, dt=1.0 / 60.0, jump=False):
        """Step one frame: move, slide, fall, land, snap.

        Parameters
        ----------
        wish_velocity : sequence of 3 float
            m/s. x and z are the desired velocity on the ground and in the air. y > 0 requests a
            jump, and any other y is ignored. On the ground the wish is turned along the slope, at
            its own speed.
        dt : float, default 1/60
            Seconds, > 0 and at most 10.
        jump : bool, default False
            Another way to request a jump. The runner jumps if it is grounded or within the grace
            time, which a jump ends. If held, it jumps again on landing.

        Returns
        -------
        tuple of 3 float
            The feet.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid; nothing has changed then.
        RuntimeError
            If another thread uses this runner.
        """
        cdef vec3 wish = _speed(wish_velocity, "wish_velocity")
        cdef double seconds = _duration(dt)
        cdef bint leap = as_bool(jump, "jump")
        cdef _Grid grid
        cdef int code
        cdef vec3 feet
        if self.world is None:
            raise RuntimeError("this runner was not initialised")
        self._enter()
        grid = self.world.acquire()
        with nogil:
            code = slide_step(&grid.data, &self.data, wish, seconds, leap)
        self.world.release(grid)
        feet = self.data.state.feet
        self._leave()
        raise_status(code)
        self._emit()
        return from_vec3(feet)

    def run(self, wish_velocities, dt=1.0 / 60.0, jump=None):
        """Step many frames in one call, with one release of the GIL; only the last frame is logged.

        Parameters
        ----------
        wish_velocities : array_like, shape (n, 3)
            m/s, one row for each frame.
        dt : float, default 1/60
            Seconds.
        jump : array_like of bool, shape (n,), optional

        Returns
        -------
        positions : ndarray, shape (n, 3)
            The feet after each frame.
        hashes : ndarray of uint32, shape (n,)
            `position_hash` after each frame.
        """
        cdef double[:, ::1] wishes = _wish_table(wish_velocities, -1)
        cdef double seconds = _duration(dt)
        cdef Py_ssize_t n = wishes.shape[0], i
        cdef const uint8_t[::1] leaps = _jump_table(jump, n)
        positions = np.empty((n, 3))
        hashes = np.empty(n, dtype=np.uint32)
        cdef double[:, ::1] out = positions
        cdef uint32_t[::1] marks = hashes
        cdef _Grid grid
        cdef int code = 0
        self._check()
        self._enter()
        grid = self.world.acquire()
        with nogil:
            for i in range(n):
                code = slide_step(&grid.data, &self.data, v3_load(&wishes[i, 0]), seconds, leaps[i])
                if code < 0:
                    break
                v3_store(&out[i, 0], self.data.state.feet)
                marks[i] = slide_hash(&self.data.state)
        self.world.release(grid)
        self._leave()
        raise_status(code)
        if n:
            self._emit()
        return positions, hashes

    def sweep_and_slide(self, velocity, dt=1.0 / 60.0):
        """Slide without gravity, ground, snap and frame count (SLIDE 4.3).

        Parameters
        ----------
        velocity : sequence of 3 float
            m/s.
        dt : float, default 1/60
            Seconds.

        Returns
        -------
        tuple of 3 float
            The velocity after clipping, m/s; the feet have moved.
        """
        cdef vec3 v = _speed(velocity, "velocity")
        cdef double seconds = _duration(dt)
        cdef _Grid grid
        cdef vec3 start
        self._check()
        self._enter()
        start = self.data.state.feet
        self.data.trace.n_bumps = 0
        self.data.trace.n_hits = 0
        self.data.trace.exhausted = False
        self.data.trace.n_depens = 0
        self.data.trace.depen_pushed = False
        grid = self.world.acquire()
        with nogil:
            slide_move(&grid.data, &self.data, &v, seconds)
        self.world.release(grid)
        self.data.trace.moved = v3_sub(self.data.state.feet, start)
        self._leave()
        return from_vec3(v)

    def teleport(self, feet):
        """Move to another position, at rest, and resolve overlaps there (SLIDE 6.1).

        Returns
        -------
        bool
            False if an overlap remained there. The runner is then back at its last safe position,
            or stays if there is none.
        """
        self._check()
        cdef vec3 at = _placed(feet, "feet")
        self._enter()
        try:
            self._place(at, False)
        finally:
            self._leave()
        self._emit_depen()
        return not self.data.trace.depen_failed

    def depenetrate(self):
        """Resolve overlaps, or return to the last safe position (SLIDE 6.2, 6.3).

        Returns
        -------
        bool
            Whether the runner is free, here or at its last safe position.
        """
        cdef _Grid grid
        self._check()
        self._enter()
        self.data.trace.n_depens = 0
        self.data.trace.depen_pushed = False
        grid = self.world.acquire()
        with nogil:
            slide_depenetrate(&grid.data, &self.data)
        self.world.release(grid)
        self._leave()
        self._emit_depen()
        return bool(not self.data.trace.depen_failed or self.data.trace.depen_reverted)

    def configure(self, **knobs):
        """Change constructor arguments (all but world, feet, user_data) of an existing runner.

        The feet stay. `depenetrate` resolves overlaps of a runner that has grown.

        Raises
        ------
        TypeError, ValueError
            For an unknown name or an invalid value; nothing has changed then.
        """
        for name in knobs:
            if name not in KNOBS:
                raise TypeError(f"configure() has no argument {short(name)}")
        present = self.config
        if "max_walkable_angle" in knobs:
            present["walkable_normal_y"] = None
        if "radius" in knobs and "skin_width" not in knobs and self._default_skin():
            present["skin_width"] = None
        present.update(knobs)
        cdef slide_config c = _configured(present)
        self._enter()
        if c.jitter_frames != self.data.config.jitter_frames:
            self.data.state.n_recent = self.data.state.next_recent = 0
        self.data.config = c
        self._leave()

    def _default_skin(self):
        r = 0.1 * self.data.config.radius
        return self.data.config.skin == (r if r > 0.01 else 0.01)

    @property
    def config(self):
        """Every knob and its current value, as a new dict."""
        self._check()
        cdef slide_config c = self.data.config
        return {
            "radius": c.radius, "half_height": c.half_height, "skin_width": c.skin, "max_bumps": c.max_bumps,
            "max_clip_planes": c.max_planes, "stop_epsilon": c.stop_epsilon, "overclip": c.overclip,
            "max_walkable_angle": None, "walkable_normal_y": c.walkable_y, "ground_grace_time": c.grace_time,
            "ground_probe_margin": c.probe_margin, "probe_radius_scale": c.probe_scale,
            "step_height": c.step_height, "gravity": c.gravity, "jump_speed": c.jump_speed,
            "max_fall_speed": c.max_fall_speed, "max_depen_iters": c.max_depen_iters,
            "min_depen_dist": c.min_depen_dist, "max_depen_clamp": c.max_depen_clamp,
            "stuck_frames_limit": c.stuck_limit, "jitter_frames": c.jitter_frames, "tie_epsilon": c.tie_epsilon,
            "ccd": bool(c.ccd), "flatten_walls": bool(c.flatten_walls), "merge_faces": bool(c.merge_faces),
            "hysteresis": bool(c.hysteresis)}

    # ------------------------------------------------------------ state

    @property
    def feet(self):
        """The anchor: lowest point of the capsule, metres."""
        self._check()
        return from_vec3(self.data.state.feet)

    @property
    def velocity(self):
        """m/s. Settable: x and z last until the next wish; y > 0 starts a rise like a jump."""
        self._check()
        return from_vec3(self.data.state.velocity)

    @velocity.setter
    def velocity(self, value):
        cdef vec3 v = _speed(value, "velocity")
        self._check()
        self.data.state.velocity = v
        self.data.state.carry = v3(0.0, 0.0, 0.0)
        if v.y > 0.0:
            self.data.state.rising = True
            self.data.state.grounded = False
            self.data.state.on_surface = False
            self.data.state.since_grounded = self.data.config.grace_time
        else:
            self.data.state.rising = False

    @property
    def radius(self):
        """Metres."""
        self._check()
        return self.data.config.radius

    @property
    def half_height(self):
        """Half the distance between the sphere centres, metres."""
        self._check()
        return self.data.config.half_height

    @property
    def skin_width(self):
        """Gap to every surface, metres."""
        self._check()
        return self.data.config.skin

    @property
    def capsule(self):
        """The capsule with its derived points: `SlideCapsule` (p0, p1, center)."""
        self._check()
        return SlideCapsule(from_vec3(self.data.state.feet), self.data.config.radius, self.data.config.half_height)

    @property
    def grounded(self):
        """On walkable ground, or off it for less than the grace time."""
        self._check()
        return bool(self.data.state.grounded)

    @property
    def on_surface(self):
        """On walkable ground now, without grace time."""
        self._check()
        return bool(self.data.state.on_surface)

    @property
    def rising(self):
        """Rising in a jump or after an upward velocity."""
        self._check()
        return bool(self.data.state.rising)

    @property
    def wedged(self):
        """Stopped between surfaces that are not walkable; the runner may jump from there."""
        self._check()
        return bool(self.data.state.wedged)

    @property
    def ground(self):
        """Result of the last probe: `GroundResult`."""
        self._check()
        cdef ground_result r = self.data.state.ground
        return GroundResult(bool(r.hit), bool(r.walkable), from_vec3(r.normal), r.distance, r.id)

    @property
    def ground_state(self):
        """`GroundState`: grounded, seconds since, normal of the last ground."""
        self._check()
        return GroundState(bool(self.data.state.grounded), self.data.state.since_grounded,
                           from_vec3(self.data.state.ground_normal))

    @property
    def last_safe_position(self):
        """Position for failed depenetrations, None if there is none yet."""
        self._check()
        return from_vec3(self.data.state.last_safe) if self.data.state.has_safe else None

    @property
    def frame(self):
        """Number of steps."""
        self._check()
        return self.data.state.frame

    def probe_ground(self, distance=None):
        """Search for ground straight below (SLIDE 5.2).

        Parameters
        ----------
        distance : float, optional
            Length of the probe, metres. The default is that of a step: skin and margin, along the
            steepest walkable normal.

        Returns
        -------
        GroundResult
            Its distance counts straight down from the capsule's own surface: at rest it is the skin
            on a level floor, and the skin / normal y on a slope.
        """
        cdef double reach
        cdef _Grid grid
        cdef ground_result r
        self._check()
        if distance is None:
            reach = (self.data.config.skin + self.data.config.probe_margin) / self.data.config.walkable_y
        else:
            reach = _ranged(distance, "distance", 0.0, 1e6)
        grid = self.world.acquire()
        r = slide_probe(&grid.data, &self.data.config, self.data.state.feet, reach)
        self.world.release(grid)
        return GroundResult(bool(r.hit), bool(r.walkable), from_vec3(r.normal), r.distance, r.id)

    def sweep(self, delta):
        """First contact of the capsule, grown by the skin, along a motion; nothing changes.

        Parameters
        ----------
        delta : sequence of 3 float
            Metres.

        Returns
        -------
        SweepHit
        """
        cdef vec3 d = _placed(delta, "delta")
        cdef vec3 p
        cdef slide_hit hit
        cdef _Grid grid
        self._check()
        p = self.data.state.feet
        p.y += self.data.config.radius
        grid = self.world.acquire()
        grid_sweep(&grid.data, p, 2.0 * self.data.config.half_height,
                   self.data.config.radius + self.data.config.skin, d, self.data.config.tie_epsilon,
                   self.data.config.merge_faces, &hit, NULL, 0.0, NULL)
        self.world.release(grid)
        return _hit_record(hit)

    cdef list _touching(self, double extra, void* context):
        """Ids within the radius plus extra, and the nearest of all tested boxes."""
        cdef _near_context* near = <_near_context*>context
        cdef _Grid grid
        cdef vec3 feet = self.data.state.feet
        cdef double radius = self.data.config.radius + extra
        cdef aabb span
        near.p = v3(feet.x, feet.y + self.data.config.radius, feet.z)
        near.reach = 2.0 * self.data.config.half_height
        near.radius = radius
        near.nearest2 = 1e300
        near.nearest_id = -1
        near.ids = NULL
        near.n = near.capacity = 0
        span = box_of(v3(feet.x - radius, near.p.y - radius, feet.z - radius),
                      v3(feet.x + radius, near.p.y + near.reach + radius, feet.z + radius))
        grid = self.world.acquire()
        try:
            near.g = &grid.data
            grid_visit(&grid.data, span, _near_visit, near)
            if near.n == 0:
                return []
            near.ids = <int64_t*>PyMem_Malloc(near.n * sizeof(int64_t))
            if near.ids == NULL:
                raise MemoryError()
            near.capacity = near.n
            near.n = 0
            grid_visit(&grid.data, span, _near_visit, near)
            return sorted([near.ids[i] for i in range(near.n)])
        finally:
            PyMem_Free(near.ids)
            self.world.release(grid)

    @property
    def contacts(self):
        """Ids of touched boxes: within the skin and a millimetre; sorted."""
        cdef _near_context near
        self._check()
        return self._touching(self.data.config.skin + 0.001, &near)

    def overlaps(self):
        """Overlaps of the capsule itself: a list of `OverlapResult`, by id."""
        cdef _near_context near
        cdef _one_context one
        cdef _Grid grid
        cdef vec3 p
        self._check()
        found = []
        ids = self._touching(0.0, &near)
        p = near.p
        grid = self.world.acquire()
        one.g = &grid.data
        one.p = p
        one.reach = near.reach
        one.radius = near.radius
        for id in ids:
            one.id = id
            one.result.hit = False
            grid_visit(&grid.data, box_of(v3(p.x - one.radius, p.y - one.radius, p.z - one.radius),
                                          v3(p.x + one.radius, p.y + one.reach + one.radius, p.z + one.radius)),
                       _one_visit, &one)
            if one.result.hit:
                found.append(_overlap_record(one.result, one.radius, id))
        self.world.release(grid)
        return found

    # ------------------------------------------------------------ diagnostics

    @property
    def closest_pair(self):
        """The nearest box within a metre: (point on the axis, point on the box, id), or None (SLIDE
        2.4).
        """
        cdef _near_context near
        self._check()
        self._touching(1.0, &near)
        if near.nearest_id < 0:
            return None
        return from_vec3(near.on_segment), from_vec3(near.on_box), near.nearest_id

    @property
    def sweep_mark(self):
        """The first sweep of the last frame: `SweepMark` (start, end, hit point), or None."""
        self._check()
        if self.data.trace.n_bumps == 0:
            return None
        b = self.data.trace.bumps[0]
        return SweepMark(from_vec3(b.start), from_vec3(v3_add(b.start, b.delta)),
                         from_vec3(b.hit.point) if b.hit.id >= 0 else None)

    @property
    def ground_arrow(self):
        """From the feet one metre along the ground normal: (start, end), or None off the ground."""
        self._check()
        if not self.data.state.on_surface:
            return None
        return (from_vec3(self.data.state.feet),
                from_vec3(v3_add(self.data.state.feet, self.data.state.ground_normal)))

    @property
    def slide_iterations(self):
        """Bumps of the last frame: a tuple of `SlideIteration`."""
        self._check()
        return tuple([
            SlideIteration(self.data.trace.bumps[i].t, from_vec3(self.data.trace.bumps[i].hit.normal),
                           self.data.trace.bumps[i].hit.id, self.data.trace.bumps[i].remain,
                           from_vec3(self.data.trace.bumps[i].start), from_vec3(self.data.trace.bumps[i].delta))
            for i in range(self.data.trace.n_bumps)])

    @property
    def bumps(self):
        """Number of hits of the last frame's slide."""
        self._check()
        return self.data.trace.n_hits

    @property
    def bumps_exhausted(self):
        """Whether motion remained when the last frame's bumps were used up."""
        self._check()
        return bool(self.data.trace.exhausted)

    @property
    def candidates(self):
        """`Candidates` of the last frame's first sweep: count, lowest and highest id."""
        self._check()
        return Candidates(self.data.trace.candidates, self.data.trace.first_id, self.data.trace.last_id)

    @property
    def depen_triggered_this_frame(self):
        """Whether the last frame (or spawn, teleport) depenetrated or returned to safety."""
        self._check()
        return bool(self.data.trace.depen_pushed or self.data.trace.depen_reverted)

    @property
    def depen_failed(self):
        """Whether the last depenetration left an overlap."""
        self._check()
        return bool(self.data.trace.depen_failed)

    @property
    def depen_iterations(self):
        """The last depenetration of this frame: a tuple of `DepenIteration`."""
        self._check()
        return tuple([DepenIteration(from_vec3(self.data.trace.depens[i].push), self.data.trace.depens[i].overlaps)
                      for i in range(self.data.trace.n_depens)])

    @property
    def depenetrations(self):
        """Number of depenetrations and returns since the start."""
        self._check()
        return self.data.state.depenetrations

    @property
    def snap_distance(self):
        """Length of the last frame's snap down, metres."""
        self._check()
        return self.data.trace.snap_distance

    @property
    def stuck_frames(self):
        """Frames in a row with a wish but without motion."""
        self._check()
        return self.data.state.stuck_frames

    @property
    def frames_grounded(self):
        """Number of grounded frames."""
        self._check()
        return self.data.state.frames_grounded

    @property
    def frames_airborne(self):
        """Number of frames in the air."""
        self._check()
        return self.data.state.frames_airborne

    @property
    def delta(self):
        """The last frame's motion, metres."""
        self._check()
        return from_vec3(self.data.trace.moved)

    @property
    def penetration(self):
        """Depth of the deepest overlap of the capsule, metres; 0 without one."""
        return max([o.depth for o in self.overlaps()], default=0.0)

    @property
    def jitter_score(self):
        """Variance of the position over the last ``jitter_frames`` (30) frames, m2 (SLIDE 4.4)."""
        self._check()
        cdef vec3 mean = v3(0.0, 0.0, 0.0), off
        cdef double total = 0.0
        cdef int32_t i, n = self.data.state.n_recent
        if n == 0:
            return 0.0
        for i in range(n):
            mean = v3_add(mean, self.data.state.recent[i])
        mean = v3_scale(mean, 1.0 / n)
        for i in range(n):
            off = v3_sub(self.data.state.recent[i], mean)
            total += v3_dot(off, off)
        return total / n

    def position_hash(self):
        """32-bit digest of the frame number and the feet's bits (SLIDE 1.5)."""
        self._check()
        return slide_hash(&self.data.state)

    def hud(self):
        """The debug block of SLIDE 7.1: a heading and six lines with live values."""
        self._check()
        cdef slide_state* s = &self.data.state
        cdef vec3 n = s.ground_normal if s.grounded else v3(0.0, 0.0, 0.0)
        cdef vec3 slide_normal = v3(0.0, 0.0, 0.0)
        cdef double t = 1.0
        cdef int i
        for i in range(self.data.trace.n_bumps):
            if self.data.trace.bumps[i].hit.id >= 0:
                t = self.data.trace.bumps[i].t
                slide_normal = self.data.trace.bumps[i].hit.normal
        angle = np.degrees(np.arccos(min(1.0, max(-1.0, n.y)))) if s.grounded else 0.0
        pos = f"({s.feet.x:.3f}, {s.feet.y:.3f}, {s.feet.z:.3f})"
        vel = f"({s.velocity.x:.1f}, {s.velocity.y:.1f}, {s.velocity.z:.1f})"
        rows = [
            "=== Capsule CC Debug ===",
            f"Pos: {pos}   Delta: {v3_len(self.data.trace.moved):.4f}",
            f"Vel: {vel}   Speed: {v3_len(s.velocity):.2f}",
            f"Grounded: {'YES' if s.grounded else 'NO'}   NormalY: {n.y:.3f}   Angle: {angle:.1f}°",
            f"Contacts: {len(self.contacts)}   Pen: {self.penetration:.3f}   "
            f"DepenIter: {self.data.trace.n_depens}",
            f"Slide: {self.data.trace.n_hits}/{self.data.config.max_bumps}   t={t:.3f}   "
            f"SlideNormal: ({slide_normal.x:.2g},{slide_normal.y:.2g},{slide_normal.z:.2g})",
            f"Frame: {s.frame}   Hash: 0x{slide_hash(s):08X}",
        ]
        return "\n".join(rows)

    # ------------------------------------------------------------ log lines

    cdef void _emit_ground(self):
        if bool(self.data.trace.was_grounded) != bool(self.data.state.grounded):
            log.info("[GROUND] %s -> %s, normalY=%.3f", "GROUNDED" if self.data.trace.was_grounded else "AIR",
                     "GROUNDED" if self.data.state.grounded else "AIR", self.data.state.ground_normal.y)

    cdef void _emit_depen(self):
        cdef int i
        if not (self.data.trace.depen_pushed or self.data.trace.depen_failed):
            return
        for i in range(self.data.trace.n_depens):
            push = self.data.trace.depens[i].push
            log.info("[DEPEN] iter=%d, push=(%.3f,%.3f,%.3f), overlaps=%d", i, push.x, push.y, push.z,
                     self.data.trace.depens[i].overlaps)
        if self.data.trace.depen_reverted:
            log.warning("[DEPEN] FAILED - reverting to safe position")
        elif self.data.trace.depen_failed:
            log.warning("[DEPEN] FAILED - no safe position")
        log.info("[DEPEN] done, iters=%d, overlap=%s", self.data.trace.n_depens,
                 bool(self.data.trace.depen_failed and not self.data.trace.depen_reverted))

    cdef void _emit(self):
        cdef int i
        if log.isEnabledFor(logging.DEBUG):
            log.debug("[CANDIDATES] count=%d first=%d last=%d", self.data.trace.candidates, self.data.trace.first_id,
                      self.data.trace.last_id)
            for i in range(self.data.trace.n_bumps):
                b = self.data.trace.bumps[i]
                log.debug("[Slide %d] t=%.4f normal=(%.2f,%.2f,%.2f) remain=%.4f", i, b.t, b.hit.normal.x,
                          b.hit.normal.y, b.hit.normal.z, b.remain)
            if self.data.trace.snapped:
                log.debug("[SNAP] Snapped down by %.3f", self.data.trace.snap_distance)
            log.debug("[HASH] frame=%d 0x%08X", self.data.state.frame, slide_hash(&self.data.state))
        if self.data.trace.exhausted:
            # A runner warns once, so that a narrow place does not fill the log.
            log.log(logging.DEBUG if self._warned else logging.WARNING, "[Slide] hit max iterations (%d)",
                    self.data.config.max_bumps)
            self._warned = True
        self._emit_ground()
        if self.data.trace.depen_ran:
            self._emit_depen()

    def __repr__(self):
        if self.world is None:
            return "SweepSlideController()"
        return f"SweepSlideController(feet={self.feet}, grounded={self.grounded})"

    def __reduce__(self):
        raise TypeError("a SweepSlideController cannot be pickled; save() gives its state as bytes")

    def save(self):
        """State of the runner without its world and user_data, as bytes for `restore`."""
        self._check()
        return STATE_MARK + (<const char*>&self.data.config)[:sizeof(slide_config)] + (
            <const char*>&self.data.state)[:sizeof(slide_state)]

    def restore(self, data):
        """Restore a saved state; the runs that follow have the same bits.

        Raises
        ------
        TypeError, ValueError
            If the data is not from `save` of the same version; nothing has changed then.
        """
        cdef slide_state s
        cdef slide_config c
        cdef const unsigned char[::1] raw
        cdef int i
        cdef bint fine
        if not isinstance(data, (bytes, bytearray)):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        data = bytes(data)
        if len(data) != <Py_ssize_t>(len(STATE_MARK) + sizeof(c) + sizeof(s)) or not data.startswith(STATE_MARK):
            raise ValueError("data is not a saved runner of this version")
        raw = data
        memcpy(&c, &raw[len(STATE_MARK)], sizeof(c))
        memcpy(&s, &raw[len(STATE_MARK) + sizeof(c)], sizeof(s))
        fine = (2 <= c.jitter_frames <= JITTER_CAP and 0 <= s.n_recent <= c.jitter_frames
                and 0 <= s.next_recent < c.jitter_frames and s.stuck_frames >= 0
                and 1 <= c.max_bumps <= BUMPS_CAP and 1 <= c.max_planes <= PLANES_CAP
                and 0 <= c.max_depen_iters <= DEPEN_CAP and c.stuck_limit >= 0
                and 1e-3 <= c.radius <= 1e3 and 0.0 <= c.half_height <= 1e3 and 0.0 <= c.skin <= 100.0
                and 0.0 <= c.step_height <= 1e3 and 0.0 <= c.probe_margin <= 100.0 and 0.01 <= c.probe_scale <= 1.0
                and 1e-3 <= c.walkable_y <= 1.0 and 0.0 <= c.tie_epsilon <= 0.01
                and v3_finite(s.feet) and v3_finite(s.velocity) and v3_finite(s.carry) and v3_finite(s.last_safe)
                and v3_max_abs(s.feet) <= 1e12 and v3_max_abs(s.velocity) <= 1e12
                and v3_max_abs(s.carry) <= 1e12
                and v3_max_abs(s.last_safe) <= 1e12 and v3_max_abs(s.ground_normal) <= 2.0
                and s.since_grounded - s.since_grounded == 0.0)
        for i in range(JITTER_CAP):
            fine = fine and v3_finite(s.recent[i]) and v3_max_abs(s.recent[i]) <= 1e12
        if not fine:
            raise ValueError("data is damaged")
        # Damaged bytes must not leave flags other than 0 or 1.
        s.grounded = s.grounded != 0
        s.on_surface = s.on_surface != 0
        s.rising = s.rising != 0
        s.wedged = s.wedged != 0
        s.has_safe = s.has_safe != 0
        self._check()
        self._enter()
        self.data.config = c
        self.data.state = s
        self.data.trace.n_bumps = 0
        self.data.trace.n_hits = 0
        self.data.trace.n_depens = 0
        self._leave()


STATE_MARK = b"pycct-slide-1\0"


# ---------------------------------------------------------------- many runners

cdef object _wish_table(object value, Py_ssize_t n):
    try:
        table = np.asarray(value)
    except (TypeError, ValueError):
        raise TypeError("wish_velocities must be an array of numbers of shape (n, 3)") from None
    if table.dtype.kind not in "fiu":
        raise TypeError("wish_velocities must be an array of real numbers of shape (n, 3)")
    if table.ndim != 2 or table.shape[1] != 3:
        raise ValueError(f"wish_velocities must have shape (n, 3), got {table.shape}")
    if n >= 0 and table.shape[0] != n:
        raise ValueError(f"wish_velocities must have {n} rows, got {table.shape[0]}")
    table = np.array(table, dtype=np.float64, order="C")
    if not (np.abs(table) <= SPEED_LIMIT).all():
        raise ValueError(f"wish_velocities must be finite and within +-{SPEED_LIMIT:g} m/s")
    return table


cdef object _jump_table(object value, Py_ssize_t n):
    if value is None:
        return np.zeros(n, dtype=np.uint8)
    table = np.asarray(value)
    if table.dtype.kind != "b":
        raise TypeError("jump must be an array of booleans")
    if table.shape != (n,):
        raise ValueError(f"jump must have shape ({n},), got {table.shape}")
    return np.array(table, dtype=np.uint8, order="C")


cdef struct _job:
    const cube_grid* grid
    slide_runner* runner
    int code


# What the threads of one call of step_many share.
cdef struct _team_step:
    _job* jobs
    const double* wishes        # three numbers a runner, m/s
    const uint8_t* leaps
    double dt


cdef void _run_jobs(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef _team_step* s = <_team_step*>context
    cdef int64_t i
    for i in range(first, last):
        s.jobs[i].code = slide_step(s.jobs[i].grid, s.jobs[i].runner, v3_load(&s.wishes[3 * i]), s.dt, s.leaps[i])


cdef list _checked_runners(object runners):
    """The runners as a list, each at most once."""
    cdef list checked = list(runners)
    for r in checked:
        if not isinstance(r, SweepSlideController):
            raise TypeError(f"runners must be SweepSlideController objects, not {type(r).__name__}")
        if (<SweepSlideController>r).world is None:
            raise RuntimeError("this runner was not initialised")
    if len({id(r) for r in checked}) != len(checked):
        raise ValueError("runners must not contain a runner twice")
    return checked


def step_many(runners, wish_velocities, dt=1.0 / 60.0, jump=None, threads=1):
    """Step many runners by one frame, with one release of the GIL.

    Parameters
    ----------
    runners : sequence of SweepSlideController
        Each at most once. They may have different worlds and do not collide with each other.
    wish_velocities : array_like, shape (n, 3)
        m/s.
    dt : float, default 1/60
        Seconds.
    jump : array_like of bool, shape (n,), optional
    threads : int, default 1
        Number of threads; the result does not depend on it.

    Returns
    -------
    ndarray, shape (n, 3)
        The feet.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; no runner has moved then.
    RuntimeError
        If another thread uses a runner; no runner has moved then.
    """
    cdef list all_runners = _checked_runners(runners)
    cdef Py_ssize_t n = len(all_runners), i, entered = 0
    cdef double[:, ::1] wishes = _wish_table(wish_velocities if n else np.zeros((0, 3)), n)
    cdef const uint8_t[::1] leaps = _jump_table(jump, n)
    cdef double seconds = _duration(dt)
    cdef SweepSlideController r
    cdef _job* jobs
    cdef _team_step team
    cdef list grids = []
    cdef _Grid grid
    cdef int code = 0, workers = pool_threads(threads)
    out = np.empty((n, 3))
    if n == 0:
        return out
    cdef double[:, ::1] feet = out
    jobs = <_job*>PyMem_Malloc(n * sizeof(_job))
    if jobs == NULL:
        raise MemoryError()
    try:
        for i in range(n):
            r = all_runners[i]
            r._enter()
            entered += 1
            grid = r.world.acquire()
            grids.append(grid)
            jobs[i].grid = &grid.data
            jobs[i].runner = &r.data
            jobs[i].code = 0
        team = _team_step(jobs, &wishes[0, 0], &leaps[0], seconds)
        with nogil:
            pool_run(_run_jobs, &team, n, STEP_CHUNK, workers)
        for i in range(n):
            v3_store(&feet[i, 0], (<SweepSlideController>all_runners[i]).data.state.feet)
            if jobs[i].code < 0:
                code = jobs[i].code
    finally:
        for i in range(entered):
            r = all_runners[i]
            if i < len(grids):
                r.world.release(<_Grid>grids[i])
            r._leave()
        PyMem_Free(jobs)
    for r in all_runners:
        r._emit()
    raise_status(code)
    return out


# ---------------------------------------------------------------- primitives

cdef aabb _box_argument(lo, hi) except *:
    cdef aabb b = box_of(_placed(lo, "box_min"), _placed(hi, "box_max"))
    if not (b.lo.x <= b.hi.x and b.lo.y <= b.hi.y and b.lo.z <= b.hi.z):
        raise ValueError("box_min must not exceed box_max")
    return b


def closest_point_on_segment(a, b, p):
    """The point of the segment a b nearest to p; a if both are one point (SLIDE 2.2)."""
    return from_vec3(point_segment(_placed(p, "p"), _placed(a, "a"), _placed(b, "b")).on_b)


def closest_point_on_aabb(p, box_min, box_max):
    """The point of a box nearest to p (SLIDE 2.3)."""
    cdef aabb b = _box_argument(box_min, box_max)
    cdef vec3 q = _placed(p, "p")
    return f_clamp(q.x, b.lo.x, b.hi.x), f_clamp(q.y, b.lo.y, b.hi.y), f_clamp(q.z, b.lo.z, b.hi.z)


def closest_points_segment_aabb(a, b, box_min, box_max):
    """Exact closest points of a segment and a box (SLIDE 2.4, without its iteration).

    Returns
    -------
    tuple
        (point on the segment, point on the box), metres.
    """
    cdef aabb box = _box_argument(box_min, box_max)
    cdef vec3 c = box_centre(box)
    cdef closest_pair near = segment_box(v3_sub(_placed(a, "a"), c), v3_sub(_placed(b, "b"), c), box_half(box))
    return from_vec3(v3_add(near.on_a, c)), from_vec3(v3_add(near.on_b, c))


def segment_aabb_sweep(start, delta, box_min, box_max):
    """The slab test: entry of the segment from start to start + delta into a box (SLIDE 3.5).

    Returns
    -------
    tuple or None
        (t, normal): t in [0, 1], and the axis normal of the face that was entered last. A start
        inside returns t 0 and the face that was passed last before. None without a hit, for a start
        on the surface that moves away, and without motion.
    """
    cdef aabb b = _box_argument(box_min, box_max)
    cdef vec3 p = _placed(start, "start")
    cdef vec3 d = _placed(delta, "delta")
    cdef int axis, i
    cdef double t, latest = -1e300, near
    cdef double[3] motion
    cdef double[3] at
    cdef double[3] lo
    cdef double[3] hi
    if v3_is_zero(d):
        return None
    t = slab_time(p, d, b.lo, b.hi, 1.0, &axis)
    if t >= NO_HIT:
        return None
    v3_store(motion, d)
    v3_store(at, p)
    v3_store(lo, b.lo)
    v3_store(hi, b.hi)
    if axis < 0:
        for i in range(3):
            if motion[i] != 0.0:
                near = ((lo[i] if motion[i] > 0.0 else hi[i]) - at[i]) / motion[i]
                if near > latest:
                    latest = near
                    axis = i
    normal = [0.0, 0.0, 0.0]
    normal[axis] = -1.0 if motion[axis] > 0.0 else 1.0
    return t, tuple(normal)


def clip_velocity(velocity, normal, overbounce=1.001, stop_epsilon=0.001):
    """Remove the part of a velocity that points into a plane (SLIDE 4.2).

    Parameters
    ----------
    velocity : sequence of 3 float
        m/s.
    normal : sequence of 3 float
        Unit normal of the plane.
    overbounce : float, default 1.001
    stop_epsilon : float, default 0.001
        Components below this become 0, unless that would turn the result into the plane.

    Returns
    -------
    tuple of 3 float
    """
    cdef vec3 n = _normal(normal, "normal")
    return from_vec3(kernel_clip_velocity(_speed(velocity, "velocity"), n, _ranged(overbounce, "overbounce", 1.0, 2.0),
                                          _ranged(stop_epsilon, "stop_epsilon", 0.0, 1e6)))


cdef vec3 _normal(value, str name) except *:
    cdef vec3 n = as_vec3(value, name)
    cdef double m = v3_len(n)
    if not 0.999 <= m <= 1.001:
        raise ValueError(f"{name} must be a unit vector, its length is {m:g}")
    return v3_scale(n, 1.0 / m)


def clip_velocity_multi_plane(velocity, planes, overbounce=1.001, stop_epsilon=0.001):
    """Clip a velocity against several planes (SLIDE 4.4, RULES 11).

    Single planes come first, then creases.

    Parameters
    ----------
    velocity : sequence of 3 float
        m/s.
    planes : sequence of normals
        At most 16 unit normals.

    Returns
    -------
    tuple of 3 float
        Zero if every direction is blocked.
    """
    cdef vec3[PLANES_CAP] normals
    cdef int n = 0
    cdef vec3 v = _speed(velocity, "velocity")
    planes = list(planes)
    if len(planes) > PLANES_CAP:
        raise ValueError(f"planes must be at most {PLANES_CAP}, got {len(planes)}")
    for p in planes:
        normals[n] = _normal(p, "planes")
        n += 1
    return from_vec3(clip_velocity_planes(v, normals, n, _ranged(overbounce, "overbounce", 1.0, 2.0),
                                          _ranged(stop_epsilon, "stop_epsilon", 0.0, 1e6)))


def capsule_aabb_overlap(feet, radius, half_height, box_min, box_max):
    """Overlap of an upright capsule and a box (SLIDE 2.5): `OverlapResult`.

    If the axis enters the box, the exit is along the coordinate axis with the shortest way for the
    whole segment.
    """
    cdef aabb b = _box_argument(box_min, box_max)
    cdef vec3 p = _placed(feet, "feet")
    cdef double r = _ranged(radius, "radius", 1e-3, 1e3)
    cdef double h = _ranged(half_height, "half_height", 0.0, 1e3)
    p.y += r
    return _overlap_record(upright_box_overlap(p, 2.0 * h, r, b.lo, b.hi), r, -1)


def sweep_capsule_aabb(feet, radius, half_height, delta, box_min, box_max):
    """First contact of an upright capsule with a box, exact (SLIDE 3.4, RULES 11): `SweepHit`.

    An overlap at the start blocks a motion further in, at t 0, and allows a motion out.
    """
    cdef aabb b = _box_argument(box_min, box_max)
    cdef vec3 p = _placed(feet, "feet")
    cdef vec3 d = _placed(delta, "delta")
    cdef double r = _ranged(radius, "radius", 1e-3, 1e3)
    cdef double h = _ranged(half_height, "half_height", 0.0, 1e3)
    cdef double length = v3_len(d), t
    cdef vec3 normal
    p.y += r
    if length == 0.0:
        return SweepHit(1.0, (0.0, 0.0, 0.0), -1, 0.0, from_vec3(p))
    t = upright_box_time(p, 2.0 * h, r, v3(d.x / length, d.y / length, d.z / length), b.lo, b.hi, length, &normal)
    if t >= NO_HIT:
        return SweepHit(1.0, (0.0, 0.0, 0.0), -1, length, from_vec3(v3_add(p, d)))
    return SweepHit(t / length, from_vec3(normal), 0, t,
                    from_vec3(upright_box_point(v3_madd(p, d, t / length), 2.0 * h, b.lo, b.hi)))
