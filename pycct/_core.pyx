# cython: language_level=3
"""CharacterController: arguments, callbacks, state and results around the move."""
import copy
import logging
import weakref

import numpy as np

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pycct.character.contacts cimport contact_reach, contacts_around
from pycct.character.parameters cimport (
    SEPARATION_SPEED,
    as_time,
    character_of,
    foot_below,
    gap_to_close,
    other_of,
    parameter_set,
    parameters_check,
    snapped,
    state_forget,
    state_shift,
    z_to,
)
from pycct.character.records cimport ground_of, hit_of, hits_of, state_of, stats_of
from pycct.character.state_io cimport character_hash, controller_bytes, controller_from_bytes, parameters_hash
from pycct.args.values cimport (
    FARTHEST,
    as_behavior,
    as_bits,
    as_bool,
    as_not_negative,
    as_unit,
    as_vec3,
    from_vec3,
    raise_status,
)
from pycct.args.vector_rows cimport as_weights
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.character.frame cimport EPSILON_DISTANCE, WARNED_FAR, WARNED_STUCK, move_frame, frame_advance, mark_warned
from pycct.character.gathering cimport scratch_free, scratch_init
from pycct.character.move cimport decompose, compact_cache_free, move_is_short
from pycct.character.move_types cimport (
    CLIMBING_CONSTRAINED,
    COLLISION_DOWN,
    COLLISION_SIDES,
    COLLISION_UP,
    TRACE_HIT,
    NON_WALKABLE_FORCE_SLIDING,
    STATUS_CACHE_MISS,
    controller_params,
    controller_state,
    decomposition,
    ground_contact,
    hit_log,
    compact_cache,
    move_stats,
    move_world,
    trace_event,
    trace_log,
)
from pycct.character.probes cimport gather_near, probe_below, touches_anything
from pycct.character.recovery cimport unstick
from pycct.spatial.character_grid cimport (
    Neighbours,
    character,
    separation,
    yielder,
    yielder_of,
    yielding_box,
    yielding_push,
    yielding_sum,
    shared_add,
    shared_collect,
    shared_remove,
    shared_update,
)
from pycct.scene.scene cimport Scene, Snapshot
from pycct.shapes.primitives cimport Capsule
from pycct.geometry.types cimport STATUS_NEED_ANSWER
from pycct.geometry.vec cimport aabb, v3, v3_add, v3_is_zero, v3_len, v3_madd, v3_max_abs, v3_sub, vec3
from pycct.world.candidates cimport (
    ASK_FILTER,
    answer,
    book_add,
    capsule_bounds,
)

from pycct.runtime.enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Rules
from pycct.runtime.version import RESULTS_VERSION
from pycct.character.explanation import KINDS, Event, Explanation

cdef tuple FLAGS = tuple([CollisionFlags(i) for i in range(8)])
# Silent until the program configures the log.
cdef object logger = logging.getLogger("pycct")
logger.addHandler(logging.NullHandler())


cdef vec3 _as_place(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > FARTHEST:
        raise ValueError(f"{name} must not exceed {FARTHEST:g} m, got {from_vec3(v)}")
    return v


cdef int _move_here(const controller_params* p, const move_frame* now, move_frame* next_, const move_world* w,
                    move_scratch* scratch, hit_log* log, vec3 d, double dt, double min_distance) noexcept nogil:
    """Call `frame_advance` in the floating-point environment of moves."""
    cdef unsigned long long env = fp_enter()
    cdef int status = frame_advance(p, now, next_, w, scratch, NULL, log, d, dt, min_distance)
    fp_leave(env)
    return status


cdef object _as_callback(object value, str name):
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


def decompose_movement(displacement, up=(0.0, 0.0, 1.0), step_offset=0.5, standing_on_moving=False):
    """Split a displacement into the three passes (MOVE 4.2, RULES 6).

    Parameters
    ----------
    displacement : (3,) floats
        Metres.
    up : (3,) floats
        Any length but zero.
    step_offset : float
        Metres, >= 0.
    standing_on_moving : bool
        Whether the character stands on a moving platform.

    Returns
    -------
    dict
        up_vector, side_vector, down_vector (tuples of floats, metres), step_offset (0 if a jump
        cancels it), is_moving_up, has_side_movement.
    """
    cdef decomposition d = decompose(as_vec3(displacement, "displacement"), as_unit(up, "up"),
                                     as_not_negative(step_offset, "step_offset"),
                                     as_bool(standing_on_moving, "standing_on_moving"))
    return {
        "up_vector": from_vec3(d.up_vector),
        "side_vector": from_vec3(d.side_vector),
        "down_vector": from_vec3(d.down_vector),
        "step_offset": d.step_offset,
        "is_moving_up": bool(d.is_moving_up),
        "has_side_movement": bool(d.has_side_movement),
    }


cdef class CharacterController:
    """A capsule that walks, slides, climbs steps and falls through a scene by the rules of PhysX.

    Parameters
    ----------
    scene : Scene
        The scene in which the character moves.
    position : (3,) floats
        Centre of the capsule, metres.
    radius : float
        Radius of the capsule, metres, > 0.
    height : float
        Distance between the centres of its two spheres, metres, >= 0.
    up : (3,) floats
        Up direction, any length but zero; the axis of the capsule.
    step_offset : float
        Lift of the UP pass, metres; at most the character's whole height. The character climbs
        steps of this height. Its round bottom also rolls over somewhat higher edges, unless
        climbing is 'constrained'.
    contact_offset : float
        Gap, in metres, that the character keeps from every surface.
    slope_limit : float
        Cosine of the steepest walkable angle, 0 to 1; 0 switches slopes off. With 'physx' the limit
        applies to triangles and planes only, and round shapes, obstacles and other characters are
        walkable everywhere. With 'robust' it applies to them too, by the contact normal.
    climbing_mode : {'easy', 'constrained'} or ClimbingMode
        'constrained' never climbs higher than the step offset. With 'physx' it still climbs round
        shapes, obstacles and other characters.
    non_walkable_mode : {'prevent_climbing', 'force_sliding'} or NonWalkableMode
        On slopes that are too steep: stand without climbing, or slide down.
    rules : {'physx', 'document', 'robust'} or Rules
        The rule set: 'robust' is 'physx' with fixes for known faults, such as sticking at low
        lintels. docs/rules/rule_sets.md lists the differences.
    overlap_recovery : bool
        Move out of static and kinematic shapes in which a pass starts. Motions away from their
        surface are not stopped.
    prevent_vertical_sliding : bool
        Do not slide up or down along ceilings.
    invisible_wall_height : float
        If > 0, walls of this height along their edges replace mesh triangles that are too steep,
        metres (RULES 2). The option suits terrain: a large triangle, for example the wall of a
        room, loses its face, and characters can pass between its edges.
    max_jump_height : float
        Extends the cached volume downwards, metres (for invisible walls).
    layer, mask : int
        Bit sets: the layer on which others see the character, and the layers that it sees.
    collide : bool
        Collide with other controllers that have it too, if the layer of each shares a bit with the
        mask of the other.
    on_hit : callable, optional
        ``on_hit(hit)``, called for each collision of a move before the move takes effect.
    behavior : callable, optional
        ``behavior(other) -> Behavior``: riding and sliding on an actor, obstacle or controller; the
        default is the other's own flags.
    filter : callable, optional
        ``filter(other) -> bool``: whether the character collides with an object. A move calls it at
        most once for each object, and only for objects that it would hit.
    surface : Behavior
        Riding and sliding of other characters on this one.
    user_data : object
        Any object of your own.

    Attributes
    ----------
    id : int
        Number of the character in its scene. Actors, obstacles and characters of a scene share one
        counter, and no id is used twice.

    Notes
    -----
    ``foot_position`` is half the whole height plus the contact offset below the centre, as in PhysX
    (RULES 1).

    Thread safety: a controller belongs to one thread at a time; a second thread that moves it gets
    RuntimeError. Different controllers may share a scene freely. A move releases the GIL, unless
    its candidates are cached and so few that it takes less than half a microsecond.

    Examples
    --------
    >>> from pycct import CharacterController, Plane, Scene
    >>> scene = Scene()
    >>> ground = scene.add(Plane((0, 0, 1)))
    >>> hero = CharacterController(scene, radius=0.4, height=1.0)
    >>> hero.foot_position = (0, 0, 0)
    >>> flags = hero.move((0.05, 0, -0.02), 1 / 60)
    >>> flags.name, hero.grounded, round(hero.position[0], 6)
    ('DOWN', True, 0.05)
    """

    def __cinit__(self, *args, **kwargs):
        scratch_init(&self.scratch)
        memset(self.frames, 0, sizeof(self.frames))
        memset(self.logs, 0, sizeof(self.logs))
        memset(&self.compact, 0, sizeof(compact_cache))
        self.now = &self.frames[0]
        self.before = &self.frames[1]
        self.trial = &self.frames[2]
        self.log = &self.logs[0]
        self.trial_log = &self.logs[1]
        self.busy = 0
        self.barred = 0
        self.neighbours = NULL
        self.slot = -1
        self.id = -1
        self.now.asked_dt = -1.0
        self.forget_near()

    def __dealloc__(self):
        # In a reference cycle the collector has cleared self.scene already.
        if self.neighbours != NULL:
            if self.slot >= 0:
                shared_remove(&(<Neighbours>self.neighbours).shared, self.slot)
            Py_DECREF(<Neighbours>self.neighbours)
        free(self.logs[0].records)
        free(self.logs[1].records)
        compact_cache_free(&self.compact)
        scratch_free(&self.scratch)

    def __init__(self, scene, position=(0.0, 0.0, 0.0), radius=0.4, height=1.0, up=(0.0, 0.0, 1.0), step_offset=0.5,
                 contact_offset=0.01, slope_limit=0.707, climbing_mode="easy", non_walkable_mode="prevent_climbing",
                 rules="physx", overlap_recovery=True, prevent_vertical_sliding=False, invisible_wall_height=0.0,
                 max_jump_height=0.0, layer=1, mask=0xFFFFFFFF, collide=False, on_hit=None, behavior=None,
                 filter=None, surface=Behavior.NONE, user_data=None):
        cdef controller_params p
        cdef vec3 place
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        memset(&p, 0, sizeof(controller_params))
        place = _as_place(position, "position")
        p.proxy = -1
        for name, value in (
                ("radius", radius), ("height", height), ("up", up), ("step_offset", step_offset),
                ("contact_offset", contact_offset), ("slope_limit", slope_limit), ("climbing_mode", climbing_mode),
                ("non_walkable_mode", non_walkable_mode), ("rules", rules), ("collide", collide), ("surface", surface),
                ("overlap_recovery", overlap_recovery), ("prevent_vertical_sliding", prevent_vertical_sliding),
                ("invisible_wall_height", invisible_wall_height), ("max_jump_height", max_jump_height),
                ("layer", layer), ("mask", mask)):
            parameter_set(&p, name, value)
        on_hit = _as_callback(on_hit, "on_hit")
        behavior = _as_callback(behavior, "behavior")
        filter = _as_callback(filter, "filter")
        parameters_check(&p)
        if self.scene is not None:
            raise RuntimeError("a CharacterController is initialised once")
        cdef Scene home = scene
        if home.journal_ is not None:
            with home.lock:
                home.tell(home, "CharacterController", {
                    "position": from_vec3(place), "radius": radius, "height": height, "up": up,
                    "step_offset": step_offset, "contact_offset": contact_offset, "slope_limit": slope_limit,
                    "climbing_mode": climbing_mode, "non_walkable_mode": non_walkable_mode, "rules": rules,
                    "overlap_recovery": overlap_recovery, "prevent_vertical_sliding": prevent_vertical_sliding,
                    "invisible_wall_height": invisible_wall_height, "max_jump_height": max_jump_height,
                    "layer": layer, "mask": mask, "collide": collide, "on_hit": on_hit, "behavior": behavior,
                    "filter": filter, "surface": surface, "user_data": user_data})
        self.scene = scene
        Py_INCREF(self.scene.neighbours)
        self.neighbours = <PyObject*>self.scene.neighbours
        self.params = p
        self.on_hit_ = on_hit
        self.behavior_ = behavior
        self.filter_ = filter
        self.user_data = user_data
        state_forget(&self.now.state, place)
        with self.scene.lock:
            self.id = self.scene.issue(1)
            self.scene.characters_[self.id] = weakref.ref(self, _Unlist(scene, self.id))
            if self.scene.journal_ is not None:
                self.barred = LISTENED
        self.publish()

    cdef void forget_near(self) noexcept:
        """Empty the candidate cache."""
        self.scratch.cache.valid = False
        self.compact.near.whole = False

    cdef character as_character(self) noexcept:
        """Return the character as others collide with it."""
        return character_of(&self.params, self.now.state.position, self.id, 0)

    cdef int publish(self) except -1:
        """Publish the position to other characters, and move the proxy."""
        self.publish_place()
        if self.proxy_ is not None:
            self.lead()
        return 0

    cdef int publish_place(self) except -1:
        """Publish the position to other characters."""
        cdef character c = self.as_character()
        if self.params.collide:
            if self.slot < 0:
                self.slot = shared_add(&self.scene.neighbours.shared, &c)
                if self.slot < 0:
                    raise_status(self.slot)
            else:
                shared_update(&self.scene.neighbours.shared, self.slot, &c)
        elif self.slot >= 0:
            shared_remove(&self.scene.neighbours.shared, self.slot)
            self.slot = -1
        return 0

    def _lost_proxy(self, actor):
        """Called by Scene.remove: drop the proxy if it is that actor."""
        if self.proxy_ is actor:
            self.proxy_ = None
            self.params.proxy = -1
            self.scene.characters_[self.id] = weakref.ref(self, _Unlist(self.scene, self.id))

    cdef int lead(self) except -1:
        """Move the proxy, with size and orientation."""
        cdef Capsule shape
        if self.proxy_.scene_ is None:
            # The program has removed the proxy from the scene.
            self.proxy_ = None
            self.scene.characters_[self.id] = weakref.ref(self, _Unlist(self.scene, self.id))
            return 0
        shape = self.proxy_.shape
        if shape.radius_ != self.params.radius or shape.height_ != self.params.height:
            shape = Capsule(self.params.radius, self.params.height)
            with self.scene.lock, cython.critical_section(self.proxy_):
                self.proxy_.shape = shape
        with self.scene.lock:
            # The owner's change is reported already; that of the proxy follows from it.
            self.scene.quiet += 1
            try:
                self.proxy_.move_to(from_vec3(self.now.state.position), z_to(self.params.up))
            finally:
                self.scene.quiet -= 1
        return 0

    cdef int surround(self, move_world* w, Snapshot snap, uint32_t mask, object filter) except -1:
        """Fill in the surroundings of a move."""
        w.fixed = &snap.fixed.data
        w.moving = &snap.moving.data
        w.others = NULL
        w.self = self.as_character()
        w.self.mask = mask
        if self.params.collide:
            w.others = &self.scene.neighbours.shared
        w.mask = mask
        w.filters = filter is not None
        w.asks_behavior = self.behavior_ is not None
        w.trace = NULL
        w.silent = w.cache_only = False
        # A single move checks its end position before it takes effect.
        w.farthest = 0.0
        return 0

    cdef int warn(self) except -1:
        """Log each warning about the move in ``trial`` once.

        The log handler runs before the move takes effect. It may raise, and a second attempt must
        not raise again.
        """
        cdef uint32_t wrong = self.trial.pending_warnings
        if wrong & WARNED_FAR:
            mark_warned(self.now, self.trial, WARNED_FAR)
            logger.warning("%r moved %g m in one move although only %g m were asked", self,
                           v3_len(v3_sub(self.trial.state.position, self.now.state.position)), v3_len(self.trial.asked))
        if wrong & WARNED_STUCK:
            mark_warned(self.now, self.trial, WARNED_STUCK)
            logger.warning("%r may be stuck: %d moves in a row without the side motion that was asked; "
                           "explain_last() tells why", self, self.trial.stuck_moves)
        return 0

    cdef int ask(self, object filter, object behavior, bint tells) except -1:
        """Call the callback that the move needs; callbacks are those of the start of the move.

        ``tells``: the scene's listener receives the result, because it decides a change.
        """
        cdef answer a = self.scratch.book.pending
        cdef object other = other_of(self.scene, a.owner, a.id)
        a.value = 0
        if other is not None:
            if a.question == ASK_FILTER:
                a.value = 1 if filter is None or filter(other) else 0
            else:
                returned = behavior(other)
                a.value = as_behavior(0 if returned is None else returned, "the answer of behavior")
            if tells and self.scene.journal_ is not None:
                self.tell("answer", {"question": "filter" if a.question == ASK_FILTER else "behavior", "other": other,
                                     "answer": bool(a.value) if a.question == ASK_FILTER else Behavior(a.value)})
        raise_status(book_add(&self.scratch.book, &a))
        return 0

    cdef bint may_enter(self) noexcept:
        """Acquire the controller for this thread if possible; no foreign code runs meanwhile."""
        cdef bint may
        with cython.critical_section(self):
            may = self.scene is not None and not self.barred and not self.busy
            if may:
                self.busy = 1
        return may

    cdef int enter(self) except -1:
        """Acquire the controller for this thread; RuntimeError if another thread has it."""
        if self.may_enter():
            return 0
        return self.enter_barred()

    cdef int enter_barred(self) except -1:
        """Acquire the controller for this thread, with or without a journal of its scene."""
        cdef bint may
        with cython.critical_section(self):
            may = self.scene is not None and not self.barred & REMOVED and not self.busy
            if may:
                self.busy = 1
        if may:
            return 0
        if self.scene is None:
            raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
        if self.barred & REMOVED:
            raise RuntimeError("the controller has been removed")
        raise RuntimeError("the controller is in use: by another thread, or by a callback of its own move")

    def _listened(self, on):
        """Set by Scene.journal: whether there is a listener."""
        with cython.critical_section(self):
            self.barred = self.barred | LISTENED if on else self.barred & ~LISTENED

    cdef int tell(self, str name, dict arguments) except -1:
        """Call the scene's listener."""
        cdef object listener = self.scene.journal_
        if listener is not None:
            listener(self, name, arguments)
        return 0

    cdef void leave(self) noexcept:
        with cython.critical_section(self):
            self.busy = 0

    def move(self, displacement, dt, *, min_distance=0.0, mask=None, filter=None, up=None):
        """Move by a displacement, sliding along obstacles.

        Parameters
        ----------
        displacement : (3,) floats
            Desired motion, metres, gravity included.
        dt : float
            Duration, seconds, >= 0; used only to compute the velocity.
        min_distance : float
            A motion of this length or less does not start, metres.
        mask : int, optional
            Layers to see in this move; the default is the character's mask.
        filter : callable, optional
            Replaces the character's filter in this move.
        up : (3,) floats, optional
            New up direction of the character, from this move on: as if `up` was set before, at
            little cost. Any length but zero.

        Returns
        -------
        CollisionFlags
            SIDES 1, UP 2, DOWN 4.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid; nothing has changed.
        RuntimeError
            If another thread or a callback of its own move uses the controller, or if it has been
            removed.

        Notes
        -----
        An exception in a callback reaches the caller, and the controller stays unchanged.
        """
        cdef vec3 d = _as_place(displacement, "displacement")
        cdef double seconds = as_time(dt), shortest = as_not_negative(min_distance, "min_distance")
        cdef uint32_t bits = self.params.mask if mask is None else as_bits(mask, "mask")
        cdef object asked = self.filter_ if filter is None else _as_callback(filter, "filter")
        cdef vec3 raw, turned, before
        # False without a journal, so that a scene without a listener costs moves nothing.
        cdef bint listened
        if up is not None:
            raw = as_vec3(up, "up")
            turned = as_unit(from_vec3(raw), "up")
        listened = not self.may_enter()
        if listened:
            self.enter_barred()
        try:
            before = self.params.up
            if listened:
                event = {"displacement": from_vec3(d), "dt": seconds, "min_distance": shortest, "mask": mask,
                         "filter": filter}
                if up is not None:
                    event["up"] = from_vec3(raw)
                self.tell("move", event)
            try:
                if up is not None:
                    self.turn(turned)
                self.advance(self.scene.snapshot(), d, seconds, shortest, bits, asked)
            except BaseException:
                if up is not None:
                    self.turn(before)
                raise
            if self.slot >= 0 or self.proxy_ is not None:
                self.publish()
        finally:
            self.leave()
        return FLAGS[self.now.state.flags]

    cdef void turn(self, vec3 up) noexcept:
        """Change the up direction, and keep the candidate cache."""
        with cython.critical_section(self):
            self.params.up = up

    cdef int advance(self, Snapshot snap, vec3 d, double dt, double min_distance, uint32_t bits,
                     object filter) except -1:
        """Move and commit; other characters do not see the new position yet."""
        cdef move_world w
        cdef int status
        # A callback that is set by a callback counts for the next move.
        cdef object on_hit = self.on_hit_, behavior = self.behavior_
        self.surround(&w, snap, bits, filter)
        self.scratch.book.n = 0
        # Releasing and acquiring the GIL would cost more than a short move.
        w.cache_only = move_is_short(&self.now.state, &w, &self.scratch, d)
        while True:
            if w.cache_only:
                status = _move_here(&self.params, self.now, self.trial, &w, &self.scratch, self.trial_log, d, dt,
                                    min_distance)
            else:
                with nogil:
                    status = _move_here(&self.params, self.now, self.trial, &w, &self.scratch, self.trial_log, d, dt,
                                        min_distance)
            if status == STATUS_CACHE_MISS:
                w.cache_only = False
            elif status == STATUS_NEED_ANSWER:
                self.ask(filter, behavior, True)
            else:
                break
        raise_status(status)
        if v3_max_abs(self.trial.state.position) > FARTHEST:
            raise ValueError(f"displacement must not lead beyond {FARTHEST:g} m, to "
                             f"{from_vec3(self.trial.state.position)}")
        if on_hit is not None:
            for hit in hits_of(self.scene, self.trial_log):
                on_hit(hit)
        if self.trial.pending_warnings:
            self.warn()
        self.commit(filter)
        return 0

    cdef void commit(self, object filter) noexcept:
        """Commit the move in ``trial``."""
        cdef move_frame* turn = self.before
        cdef hit_log* log = self.log
        # Readers see the state before or after the move, never in between.
        with cython.critical_section(self):
            self.before = self.now
            self.now = self.trial
            self.trial = turn
            self.log = self.trial_log
            self.trial_log = log
            if self.asked_filter is not filter:
                self.asked_filter = filter

    @property
    def position(self):
        """Centre of the capsule, metres. Setting it keeps the platform."""
        with cython.critical_section(self):
            return from_vec3(self.now.state.position)

    @position.setter
    def position(self, value):
        cdef vec3 p = _as_place(value, "position")
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("set", {"position": from_vec3(p)})
            self.now.state.position = p
            self.publish()
        finally:
            self.leave()

    @property
    def foot_position(self):
        """Half the whole height plus the contact offset below the centre, metres. Settable."""
        return from_vec3(v3_madd(self.now.state.position, self.params.up, -foot_below(&self.params)))

    @foot_position.setter
    def foot_position(self, value):
        cdef vec3 p = _as_place(value, "foot_position")
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("set", {"foot_position": from_vec3(p)})
            self.now.state.position = v3_madd(p, self.params.up, foot_below(&self.params))
            self.publish()
        finally:
            self.leave()

    def _shift_origin(self, offset):
        """Called by Scene.shift_origin: the same place in shifted coordinates.

        The state is kept.
        """
        cdef vec3 o = as_vec3(offset, "offset")
        cdef int32_t i
        self.enter()
        try:
            with cython.critical_section(self):
                state_shift(&self.now.state, o, self.params.up)
                state_shift(&self.before.state, o, self.params.up)
                for i in range(self.log.n):
                    self.log.records[i].position = v3_sub(self.log.records[i].position, o)
            self.publish()
        finally:
            self.leave()

    def teleport(self, position):
        """Move the character to another position; it forgets its platform.

        Parameters
        ----------
        position : (3,) floats
            Centre of the capsule, metres.
        """
        cdef vec3 p = _as_place(position, "position")
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("teleport", {"position": from_vec3(p)})
            with cython.critical_section(self):
                state_forget(&self.now.state, p)
                self.log.n = 0
                self.now.asked_dt = -1.0
            self.now.stuck_moves = 0
            self.publish()
        finally:
            self.leave()

    def probe_ground(self, max_distance):
        """Return the ground below, within a distance (MOVE 12.1).

        Parameters
        ----------
        max_distance : float
            Metres, >= 0.

        Returns
        -------
        Ground or None
            ``distance`` is the gap between capsule and ground; 0 for an overlap.
        """
        cdef ground_contact found
        self.look_down(as_not_negative(max_distance, "max_distance"), &found, False)
        return ground_of(self.scene, &self.params, &found)

    cdef int look_down(self, double reach, ground_contact* found, bint tells) except -1:
        """Find the ground below, within a distance."""
        cdef Snapshot snap
        cdef move_world w
        cdef int status
        cdef unsigned long long env
        self.enter()
        try:
            filter = self.filter_
            snap = self.scene.snapshot()
            self.surround(&w, snap, self.params.mask, filter)
            self.scratch.book.n = 0
            while True:
                with nogil:
                    env = fp_enter()
                    status = probe_below(&self.params, &self.now.state, &w, &self.scratch, reach, found)
                    fp_leave(env)
                if status != STATUS_NEED_ANSWER:
                    break
                self.ask(filter, None, tells)
            raise_status(status)
        finally:
            self.leave()
        return 0

    def snap_to_ground(self, max_distance):
        """Move straight down onto walkable ground within a distance (MOVE 12.2).

        Parameters
        ----------
        max_distance : float
            Metres, >= 0; measured from the capsule.

        Returns
        -------
        bool
            Whether the character moved: down to the contact offset above the ground.
        """
        cdef ground_contact found
        cdef double gap
        cdef double reach = as_not_negative(max_distance, "max_distance")
        if self.scene is not None and self.scene.journal_ is not None:
            self.enter()
            try:
                self.tell("snap_to_ground", {"max_distance": reach})
            finally:
                self.leave()
        self.look_down(reach, &found, True)
        gap = gap_to_close(&self.params, &found)
        if gap < 0.0:
            return False
        self.enter()
        try:
            with cython.critical_section(self):
                snapped(&self.now.state, &self.params, &found, gap)
            self.publish()
        finally:
            self.leave()
        return gap > 0.0

    def can_resize(self, height):
        """Return whether the character fits with another height, with its feet in place.

        Parameters
        ----------
        height : float
            Distance between the sphere centres, metres, >= 0.

        Returns
        -------
        bool
            Also True for less than the current height.
        """
        cdef double h = as_not_negative(height, "height")
        cdef vec3 top, new_top
        cdef bint touches = False
        cdef Snapshot snap
        cdef move_world w
        cdef int status
        cdef unsigned long long env
        if h <= self.params.height:
            return True
        self.enter()
        try:
            filter = self.filter_
            snap = self.scene.snapshot()
            self.surround(&w, snap, self.params.mask, filter)
            self.scratch.book.n = 0
            # Only the added volume is tested; current contacts do not count.
            top = v3_madd(self.now.state.position, self.params.up, 0.5 * self.params.height)
            new_top = v3_madd(top, self.params.up, h - self.params.height)
            while True:
                with nogil:
                    env = fp_enter()
                    status = touches_anything(&self.params, &w, &self.scratch, top, new_top, self.params.radius,
                                              &touches)
                    fp_leave(env)
                if status != STATUS_NEED_ANSWER:
                    break
                self.ask(filter, None, False)
            raise_status(status)
        finally:
            self.leave()
        return not touches

    def resize(self, height):
        """Change the height with the feet in place (RULES 8), without a test for headroom.

        Parameters
        ----------
        height : float
            Distance between the sphere centres, metres, >= 0. `can_resize` tests the headroom.
        """
        cdef controller_params p = self.params
        cdef vec3 place
        p.height = as_not_negative(height, "height")
        parameters_check(&p)
        place = v3_madd(self.now.state.position, p.up, 0.5 * (p.height - self.params.height))
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("resize", {"height": p.height})
            with cython.critical_section(self):
                self.params = p
                self.now.state.position = place
            self.forget_near()
            self.publish()
        finally:
            self.leave()

    def unstick(self, margin=0.1):
        """Move out of all overlaps, with a grown radius (MOVE 14.7).

        Moves never do this by themselves.

        Parameters
        ----------
        margin : float
            Additional distance beyond the contact offset, metres, >= 0.

        Returns
        -------
        bool
            Whether the character moved.
        """
        cdef double more = as_not_negative(margin, "margin")
        cdef controller_state trial
        cdef move_stats cost
        cdef Snapshot snap
        cdef move_world w
        cdef int status
        cdef unsigned long long env
        if more > FARTHEST:
            raise ValueError(f"margin must not exceed {FARTHEST:g} m, got {more}")
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("unstick", {"margin": more})
            filter = self.filter_
            snap = self.scene.snapshot()
            self.surround(&w, snap, self.params.mask, filter)
            self.scratch.book.n = 0
            while True:
                trial = self.now.state
                with nogil:
                    env = fp_enter()
                    status = unstick(&self.params, &trial, &w, &self.scratch, more, &cost)
                    fp_leave(env)
                if status != STATUS_NEED_ANSWER:
                    break
                self.ask(filter, None, True)
            raise_status(status)
            if v3_max_abs(trial.position) > FARTHEST:
                raise ValueError(f"margin must not lead beyond {FARTHEST:g} m, to {from_vec3(trial.position)}")
            with cython.critical_section(self):
                self.now.state = trial
            self.publish()
        finally:
            self.leave()
        return cost.recoveries > 0

    def contacts(self, max_distance=None):
        """Return contact manifolds with everything that the character touches.

        Parameters
        ----------
        max_distance : float, optional
            Largest distance of a surface, metres, 0 to the character's whole height; the default is
            slightly more than the contact offset.

        Returns
        -------
        list of Contacts
            ``other`` (actor, controller, obstacle or member of a crowd), ``triangle`` (index or
            None) and ``manifold`` (ContactManifold: points on the other, normal towards the
            character), in the order of ids and triangles.
        """
        cdef double reach = contact_reach(&self.params, max_distance)
        cdef Snapshot snap
        cdef move_world w
        cdef int status
        cdef unsigned long long env
        self.enter()
        try:
            snap = self.scene.snapshot()
            self.surround(&w, snap, self.params.mask, None)
            with nogil:
                env = fp_enter()
                status = gather_near(&self.params, &self.now.state, &w, &self.scratch, reach)
                fp_leave(env)
            raise_status(status)
            return contacts_around(self.scene, snap, &self.params, self.now.state.position, &self.scratch, reach,
                                   self.filter_)
        finally:
            self.leave()

    def explain(self, displacement, dt, *, min_distance=0.0, mask=None, filter=None):
        """Explain a move pass by pass, without making it.

        Parameters
        ----------
        displacement, dt, min_distance, mask, filter
            As for `move`.

        Returns
        -------
        Explanation
            ``str()`` of it lists hits, positions and reasons for the end of each pass.
        """
        cdef vec3 d = _as_place(displacement, "displacement")
        cdef double seconds = as_not_negative(dt, "dt"), shortest = as_not_negative(min_distance, "min_distance")
        cdef uint32_t bits = self.params.mask if mask is None else as_bits(mask, "mask")
        filter = self.filter_ if filter is None else _as_callback(filter, "filter")
        self.enter()
        try:
            return self.retrace(&self.now.state, d, seconds, shortest, bits, filter)
        finally:
            self.leave()

    def explain_last(self):
        """Repeat the last move in the current scene and explain it.

        Returns
        -------
        Explanation or None
            As of `explain`. Its notes report an end that differs because the scene has changed.
            None before the first move, and after `teleport` or `restore`.
        """
        if self.now.asked_dt < 0.0:
            return None
        self.enter()
        try:
            explanation = self.retrace(&self.before.state, self.now.asked, self.now.asked_dt, self.now.asked_least,
                                       self.now.asked_mask, self.asked_filter)
        finally:
            self.leave()
        # A shift of the origin may change the last digits.
        if v3_len(v3_sub(as_vec3(explanation.end, "end"), self.now.state.position)) > EPSILON_DISTANCE:
            explanation.notes.append("the character is elsewhere now: the scene has changed or it was put there; "
                                     f"it is at {from_vec3(self.now.state.position)}")
        return explanation

    cdef object retrace(self, const controller_state* start, vec3 d, double dt, double min_distance, uint32_t mask,
                        object filter):
        """Repeat a move with a trace and explain it."""
        cdef trace_log trace
        cdef move_scratch scratch
        cdef move_frame now, then
        cdef hit_log log
        cdef Snapshot snap = self.scene.snapshot()
        cdef move_world w
        cdef int status
        cdef int32_t i
        cdef trace_event* e
        cdef object behavior = self.behavior_
        memset(&trace, 0, sizeof(trace_log))
        memset(&now, 0, sizeof(move_frame))
        memset(&log, 0, sizeof(hit_log))
        now.state = start[0]
        scratch_init(&scratch)
        try:
            self.surround(&w, snap, mask, filter)
            w.trace = &trace
            while True:
                with nogil:
                    status = _move_here(&self.params, &now, &then, &w, &scratch, &log, d, dt, min_distance)
                if status != STATUS_NEED_ANSWER:
                    break
                self.scratch.book.pending = scratch.book.pending
                self.scratch.book.n = 0
                self.ask(filter, behavior, False)
                raise_status(book_add(&scratch.book, &self.scratch.book.answers[0]))
            raise_status(status)
            events = []
            for i in range(trace.n):
                e = &trace.events[i]
                hit = hit_of(self.scene, &e.hit) if e.kind == TRACE_HIT else None
                events.append(Event(KINDS[e.kind], Pass(e.sweep_pass), from_vec3(e.position), from_vec3(e.vector),
                                    hit))
            return Explanation(from_vec3(d), from_vec3(start.position), from_vec3(then.state.position),
                               FLAGS[then.state.flags], events)
        finally:
            free(trace.events)
            free(log.records)
            scratch_free(&scratch)

    def state_hash(self):
        """Return a hash of everything that decides the next move.

        `Crowd.state_hash` adds up the same hash over its members. The hash covers id, parameters,
        pose, memory of the last move, and the results version. It does not cover callbacks, the
        proxy and ``user_data``.

        Returns
        -------
        int
            From 0 to 2**64 - 1.
        """
        if self.scene is None:
            raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
        with cython.critical_section(self):
            return character_hash(parameters_hash(&self.params, RESULTS_VERSION), self.id, 0, 0, &self.now.state)

    def save(self):
        """Return the state of the character as bytes for `restore`.

        Returns
        -------
        bytes
            Little-endian; the same on every machine. They do not contain callbacks and user_data,
            and refer to actors by id.
        """
        with cython.critical_section(self):
            return controller_bytes(&self.params, &self.now.state)

    def restore(self, data):
        """Restore a state of `save`; moves then repeat to the bit in an equal scene.

        Parameters
        ----------
        data : bytes
            From `save` of this results version.
        """
        cdef controller_params p
        cdef controller_state st
        controller_from_bytes(&p, &st, data)
        p.proxy = self.params.proxy
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("restore", {"data": data})
            self.become(&p, &st)
        finally:
            self.leave()

    cdef int become(self, const controller_params* p, const controller_state* st) except -1:
        """Set parameters and state, and forget the last move."""
        with cython.critical_section(self):
            self.params = p[0]
            self.now.state = st[0]
            self.log.n = 0
            self.now.asked_dt = -1.0
        self.now.stuck_moves = 0
        self.forget_near()
        return self.publish()

    def __reduce__(self):
        # Objects that may refer to the character (its user_data, a bound method) follow after its
        # creation.
        cdef int64_t proxy = -1
        if self.proxy_ is not None and self.proxy_.scene_ is not None:
            proxy = self.proxy_.id
        extra = getattr(self, "__dict__", None) or None
        return (_rebuild, (type(self), self.scene, CharacterController.save(self), proxy, self.id),
                (self.on_hit_, self.behavior_, self.filter_, self.user_data, extra))

    def __setstate__(self, state):
        on_hit, behavior, filter, self.user_data, extra = state
        self.on_hit_ = _as_callback(on_hit, "on_hit")
        self.behavior_ = _as_callback(behavior, "behavior")
        self.filter_ = _as_callback(filter, "filter")
        if extra is not None:
            self.__dict__.update(extra)

    def __deepcopy__(self, memo):
        scene = copy.deepcopy(self.scene, memo)
        # Copying the scene may have copied this character already.
        if id(self) in memo:
            return memo[id(self)]
        _, (cls, _, data, proxy, number), state = CharacterController.__reduce__(self)
        copied = memo[id(self)] = _rebuild(cls, scene, data, proxy, number)
        copied.__setstate__(copy.deepcopy(state, memo))
        return copied

    cdef int take_id(self, int64_t id) except -1:
        """Give a new controller an old id if the id is free; the controller is not visible yet."""
        with self.scene.lock:
            if not 0 <= id < self.id or self.scene.has_id(id):
                return 0
            self.scene.characters_.pop(self.id, None)
            if self.scene.next_id == self.id + 1:
                self.scene.next_id = self.id
            self.id = id
            self.scene.characters_[id] = weakref.ref(self, _Unlist(self.scene, id))
        return 0

    cdef int adopt(self, int64_t id) except -1:
        """Take the proxy of the copied scene, unless it follows another character."""
        cdef Actor actor = self.scene.actors_.get(id)
        if actor is None:
            return 0
        for other in self.scene.characters:
            if (<CharacterController>other).proxy_ is actor:
                return 0
        self.proxy_ = actor
        self.params.proxy = id
        self.scene.characters_[self.id] = _Keep(self)
        return self.lead()

    def remove(self):
        """Remove the character from the scene; it cannot move any more."""
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("remove", {})
            self.barred |= REMOVED
            if self.slot >= 0:
                shared_remove(&self.scene.neighbours.shared, self.slot)
                self.slot = -1
            self.scene.characters_.pop(self.id, None)
            if self.proxy_ is not None and self.proxy_.scene_ is not None:
                with self.scene.lock:
                    self.scene.quiet += 1
                    try:
                        self.scene.remove(self.proxy_)
                    finally:
                        self.scene.quiet -= 1
            self.proxy_ = None
            scratch_free(&self.scratch)
        finally:
            self.leave()

    def add_proxy(self, layer=1, user_data=None):
        """Add a kinematic capsule actor that follows the character after each move (MOVE 3.2.6).

        Queries and other characters see it; its owner never collides with it. While it is in the
        scene, its owner is too: `remove` removes both.

        Parameters
        ----------
        layer : int
            Layer of the actor.
        user_data : object
            Object of your own on the actor.

        Returns
        -------
        Actor
        """
        if self.proxy_ is not None and self.proxy_.scene_ is not None:
            raise RuntimeError("the controller has a proxy already")
        shape = Capsule(self.params.radius, self.params.height)
        self.enter()
        try:
            layer = as_bits(layer, "layer")
            if self.scene.journal_ is not None:
                self.tell("add_proxy", {"layer": layer, "user_data": user_data})
            with self.scene.lock:
                self.scene.quiet += 1
                try:
                    self.proxy_ = self.scene.add(shape, from_vec3(self.now.state.position), z_to(self.params.up),
                                                 body="kinematic", layer=layer, user_data=user_data)
                finally:
                    self.scene.quiet -= 1
            self.params.proxy = self.proxy_.id
            self.scene.characters_[self.id] = _Keep(self)
            self.forget_near()
        finally:
            self.leave()
        return self.proxy_

    @property
    def proxy(self):
        """The actor that follows the character, or None; also None after `Scene.remove` of it."""
        if self.proxy_ is not None and self.proxy_.scene_ is None:
            return None
        return self.proxy_

    @property
    def shape(self):
        """The capsule (Capsule), its axis along local z."""
        if self.scene is None:
            raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
        return Capsule(self.params.radius, self.params.height)

    @property
    def pose(self):
        """(position, rotation): the pose of ``shape`` at the character."""
        return from_vec3(self.now.state.position), z_to(self.params.up)

    @property
    def flags(self):
        """Collision flags of the last move (CollisionFlags)."""
        return FLAGS[self.now.state.flags]

    @property
    def hit_sides(self):
        """Whether the last move hit something aside."""
        return (self.now.state.flags & COLLISION_SIDES) != 0

    @property
    def hit_up(self):
        """Whether the last move hit something above."""
        return (self.now.state.flags & COLLISION_UP) != 0

    @property
    def hit_down(self):
        """Whether the last move hit something below."""
        return (self.now.state.flags & COLLISION_DOWN) != 0

    @property
    def velocity(self):
        """Motion of the last move / dt, m/s; zero if dt was 0.

        It contains the motion by the platform, but neither overlap recovery nor the separation from
        other characters. ``state.displacement`` is the whole motion.
        """
        return from_vec3(self.now.state.velocity)

    @property
    def grounded(self):
        """Whether the last move ended on ground."""
        return bool(self.now.state.ground.touching)

    @property
    def ground(self):
        """The ground at the end of the last move (Ground), or None."""
        with cython.critical_section(self):
            return ground_of(self.scene, &self.params, &self.now.state.ground)

    @property
    def state(self):
        """State after the last move (State)."""
        if self.scene is None:
            raise RuntimeError("the controller was not initialised: call CharacterController.__init__")
        return state_of(self.scene, &self.now.state)

    @property
    def hits(self):
        """Collisions of the last move (list of Hit), in their order."""
        with cython.critical_section(self):
            return hits_of(self.scene, self.log)

    @property
    def stats(self):
        """Costs of the last move (MoveStats)."""
        return stats_of(&self.now.cost, &self.scratch, &self.compact)

    cdef int _set(self, str name, object value) except -1:
        """Change a parameter."""
        return self.change({name: value})

    cdef int change(self, dict parameters) except -1:
        """Change parameters, and the position if given: all of them or none."""
        cdef controller_params p = self.params
        cdef vec3 place = self.now.state.position
        cdef bint moved = "position" in parameters
        for name, value in parameters.items():
            if name == "position":
                place = _as_place(value, "position")
            else:
                parameter_set(&p, name, value)
        parameters_check(&p)
        self.enter()
        try:
            if self.scene.journal_ is not None:
                self.tell("set", parameters)
            with cython.critical_section(self):
                self.params = p
                if moved:
                    self.now.state.position = place
            self.forget_near()
            self.publish()
        finally:
            self.leave()
        return 0

    def set(self, **parameters):
        """Change several parameters at once: all of them, or none if one is invalid.

        Parameters
        ----------
        **parameters
            As for the constructor, except callbacks and ``user_data``. ``position`` is (3,) floats,
            metres, and keeps the platform. The capsule changes about its centre; `resize` keeps the
            feet in place.

        Raises
        ------
        ValueError, TypeError
            If a value is invalid, or values do not fit together; nothing has changed.

        Examples
        --------
        >>> from pycct import CharacterController, Scene
        >>> hero = CharacterController(Scene())
        >>> hero.set(radius=0.2, height=0.3, step_offset=0.1)
        >>> hero.radius, hero.height, hero.step_offset
        (0.2, 0.3, 0.1)
        """
        self.change(parameters)

    @property
    def radius(self):
        """Radius of the capsule, metres. Setting it keeps the centre."""
        return self.params.radius

    @radius.setter
    def radius(self, value):
        self._set("radius", value)

    @property
    def height(self):
        """Distance between the sphere centres, metres. Setting it keeps the centre."""
        return self.params.height

    @height.setter
    def height(self, value):
        self._set("height", value)

    @property
    def up(self):
        """Unit up direction. Settable, any length but zero."""
        return from_vec3(self.params.up)

    @up.setter
    def up(self, value):
        self._set("up", value)

    @property
    def step_offset(self):
        """Highest step that the character climbs, metres. Settable."""
        return self.params.step_offset

    @step_offset.setter
    def step_offset(self, value):
        self._set("step_offset", value)

    @property
    def contact_offset(self):
        """Gap to every surface, metres. Settable."""
        return self.params.contact_offset

    @contact_offset.setter
    def contact_offset(self, value):
        self._set("contact_offset", value)

    @property
    def slope_limit(self):
        """Cosine of the steepest walkable angle; 0 switches slopes off. Settable."""
        return self.params.slope_limit

    @slope_limit.setter
    def slope_limit(self, value):
        self._set("slope_limit", value)

    @property
    def climbing_mode(self):
        """ClimbingMode. Settable, also by name."""
        return ClimbingMode.CONSTRAINED if self.params.climbing == CLIMBING_CONSTRAINED else ClimbingMode.EASY

    @climbing_mode.setter
    def climbing_mode(self, value):
        self._set("climbing_mode", value)

    @property
    def non_walkable_mode(self):
        """NonWalkableMode. Settable, also by name."""
        if self.params.non_walkable == NON_WALKABLE_FORCE_SLIDING:
            return NonWalkableMode.FORCE_SLIDING
        return NonWalkableMode.PREVENT_CLIMBING

    @non_walkable_mode.setter
    def non_walkable_mode(self, value):
        self._set("non_walkable_mode", value)

    @property
    def rules(self):
        """The rule set, as Rules flags. Settable, also by name."""
        return Rules(self.params.rules)

    @rules.setter
    def rules(self, value):
        self._set("rules", value)

    @property
    def collide(self):
        """Whether the character collides with other controllers. Settable."""
        return bool(self.params.collide)

    @collide.setter
    def collide(self, value):
        self._set("collide", value)

    @property
    def surface(self):
        """Riding and sliding of other characters on this one (Behavior). Settable."""
        return Behavior(self.params.surface)

    @surface.setter
    def surface(self, value):
        self._set("surface", value)

    @property
    def on_hit(self):
        """Called with each Hit of a move before the move takes effect. Settable."""
        return self.on_hit_

    @on_hit.setter
    def on_hit(self, value):
        self.on_hit_ = _as_callback(value, "on_hit")

    @property
    def behavior(self):
        """Returns the Behavior on an object, in place of its own flags. Settable."""
        return self.behavior_

    @behavior.setter
    def behavior(self, value):
        self.behavior_ = _as_callback(value, "behavior")

    @property
    def filter(self):
        """Returns whether the character collides with an object. Settable."""
        return self.filter_

    @filter.setter
    def filter(self, value):
        self.filter_ = _as_callback(value, "filter")

    @property
    def overlap_recovery(self):
        """Move out of overlapping static and kinematic shapes. Settable."""
        return bool(self.params.overlap_recovery)

    @overlap_recovery.setter
    def overlap_recovery(self, value):
        self._set("overlap_recovery", value)

    @property
    def prevent_vertical_sliding(self):
        """Do not slide up or down along ceilings. Settable."""
        return bool(self.params.prevent_vertical_sliding)

    @prevent_vertical_sliding.setter
    def prevent_vertical_sliding(self, value):
        self._set("prevent_vertical_sliding", value)

    @property
    def invisible_wall_height(self):
        """Height of the walls in place of too steep triangles, metres; 0: none. Settable."""
        return self.params.invisible_wall_height

    @invisible_wall_height.setter
    def invisible_wall_height(self, value):
        self._set("invisible_wall_height", value)

    @property
    def max_jump_height(self):
        """Extends the cached volume downwards, metres. Settable."""
        return self.params.max_jump_height

    @max_jump_height.setter
    def max_jump_height(self, value):
        self._set("max_jump_height", value)

    @property
    def layer(self):
        """Bit set: the layer on which others see the character. Settable."""
        return self.params.layer

    @layer.setter
    def layer(self, value):
        self._set("layer", value)

    @property
    def mask(self):
        """Bit set: the layers that the character sees. Settable."""
        return self.params.mask

    @mask.setter
    def mask(self, value):
        self._set("mask", value)

    def __repr__(self):
        return (f"<{type(self).__name__} at {self.position}, radius {self.params.radius}, "
                f"height {self.params.height}>")


def separate(controllers, dt, *, yielding=None):
    """Separate overlapping characters: each moves by half the overlap in its next move (RULES 8).

    The separation is horizontal.

    Parameters
    ----------
    controllers : iterable of CharacterController
        Characters to separate. Only pairs that collide (``collide``, layers and masks) count, and
        the other one of a pair need not be among them. Call the function after all have moved.
    dt : float
        Duration of a step, seconds, >= 0; each of two parts by at most 2 m/s.
    yielding : (n,) array of floats, optional
        One weight per controller, >= 0, as for `Crowd.separate`: of two that come close, one gives
        way and takes the whole separation, at most 4 m/s.

    Notes
    -----
    Characters exactly one above the other separate in a fixed direction, by their ids.
    """
    cdef double limit = SEPARATION_SPEED * as_not_negative(dt, "dt")
    cdef list heroes = [], taken = [], pushes = []
    cdef dict weight_of = {}
    cdef CharacterController hero
    cdef character me
    cdef character* others = NULL
    cdef void* grown
    cdef int32_t n, capacity = 0
    cdef aabb box
    cdef vec3 push
    named = set()
    given = _as_list(controllers, "controllers")
    weights = as_weights(yielding, "yielding", len(given))
    for k, other in enumerate(given):
        if not isinstance(other, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(other).__name__}")
        # A controller that is named twice is separated once.
        if id(other) not in named:
            named.add(id(other))
            heroes.append(other)
            if weights is not None:
                weight_of[(<CharacterController>other).scene, (<CharacterController>other).id] = weights[k], other
    try:
        # All controllers are acquired before the first change, so that the call works for all or
        # none.
        for hero in heroes:
            hero.enter()
            taken.append(hero)
        for hero in heroes:
            push = v3(0.0, 0.0, 0.0)
            if hero.params.collide:
                me = hero.as_character()
                box = capsule_bounds(me.p0, me.p1, me.radius) if weights is None else yielding_box(&me)
                n = shared_collect(&hero.scene.neighbours.shared, box, &me, others, capacity)
                while n > capacity:
                    grown = realloc(others, <size_t>(2 * <int64_t>n) * sizeof(character))
                    if grown == NULL:
                        raise MemoryError("pycct: out of memory")
                    others = <character*>grown
                    capacity = 2 * n
                    n = shared_collect(&hero.scene.neighbours.shared, box, &me, others, capacity)
                if weights is None:
                    push = separation(&me, others, n, hero.params.up, limit)
                else:
                    push = _yield(hero, weight_of, &me, others, n, limit)
            pushes.append(from_vec3(push))
        tell_together("separate", heroes, {"dt": dt} if weights is None else {"dt": dt, "yielding": weight_of})
        for hero, push_xyz in zip(heroes, pushes):
            with cython.critical_section(hero):
                hero.now.state.separation = v3_add(hero.now.state.separation, v3(push_xyz[0], push_xyz[1], push_xyz[2]))
    finally:
        free(others)
        for hero in taken:
            hero.leave()


cdef yielder _yielder(CharacterController hero, double weight, vec3 up) noexcept:
    cdef const controller_state* state = &hero.now.state
    return yielder_of(weight, state.asked, v3_sub(state.displacement, state.platform_delta), up)


cdef vec3 _yield(CharacterController hero, dict weight_of, const character* me, const character* others, int32_t n,
                 double limit):
    """Return the separation of a controller by weights, as of a member of a crowd."""
    cdef vec3 up = hero.params.up, half = v3(0.0, 0.0, 0.0), total = v3(0.0, 0.0, 0.0), push
    cdef double weight = weight_of[hero.scene, hero.id][0]
    cdef yielder mine = _yielder(hero, weight, up), theirs
    cdef CharacterController other
    cdef double lengths = 0.0
    cdef int32_t k
    for k in range(n):
        found = weight_of.get((hero.scene, others[k].id))
        if found is None or found[0] == weight:
            push = separation(me, &others[k], 1, up, limit)
            half = v3_add(half, push)
            if found is None or not v3_is_zero(push):
                continue
        other = found[1]
        theirs = _yielder(other, found[0], up)
        push = yielding_push(me, &mine, &others[k], &theirs, up, limit)
        total = v3_add(total, push)
        lengths += v3_len(push)
    return v3_add(half, yielding_sum(&mine, total, lengths, limit))


cdef int tell_together(str name, list heroes, dict arguments) except -1:
    """Call the listeners of all scenes of these controllers, each with those of its scene."""
    cdef CharacterController hero
    cdef dict by_scene = {}
    for hero in heroes:
        if hero.scene.journal_ is not None:
            by_scene.setdefault(hero.scene, []).append(hero)
    for scene, ones in by_scene.items():
        listener = (<Scene>scene).journal_
        if listener is not None:
            event = {"controllers": ones, **arguments}
            if "yielding" in event:
                weights = event["yielding"]
                event["yielding"] = np.array([weights[scene, (<CharacterController>one).id][0] for one in ones])
            listener(scene, name, event)
    return 0


cdef list _as_list(object value, str name):
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name} must be several, not {type(value).__name__}") from None


def _rebuild(cls, scene, data, proxy, id):
    """Return a pickled or copied controller, with its id if that is free."""
    cdef CharacterController hero = cls.__new__(cls)
    CharacterController.__init__(hero, scene)
    hero.take_id(id)
    CharacterController.restore(hero, data)
    hero.adopt(proxy)
    return hero


class _Unlist:
    """Removes a dead controller from its scene's list, without a reference to either."""

    __slots__ = ("id", "scene")

    def __init__(self, scene, id):
        self.scene = weakref.ref(scene)
        self.id = id

    def __call__(self, _):
        scene = self.scene()
        if scene is not None:
            _unlist(scene, self.id)


class _Keep:
    """Replaces the scene's weak reference: keeps a controller with a proxy alive."""

    __slots__ = ("hero",)

    def __init__(self, hero):
        self.hero = hero

    def __call__(self):
        return self.hero


cdef _unlist(Scene scene, int64_t id):
    scene.characters_.pop(id, None)
