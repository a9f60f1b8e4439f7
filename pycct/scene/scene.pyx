# cython: language_level=3
"""The scene: actors under a lock, and the immutable snapshots of them that moves read."""
import operator
from collections import namedtuple
from weakref import WeakSet

import numpy as np

cimport cython
from cpython.object cimport PyObject
from libc.math cimport fabs
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from pycct.queries.scene_queries cimport (
    View,
    ask_closest,
    ask_closest_many,
    ask_raycast,
    ask_raycast_all,
    ask_raycast_many,
    ask_sweep,
    ask_sweep_many,
    ask_touching,
    ask_touching_many,
    ask_visible,
    ask_visible_many,
)
from pycct.args.values cimport (
    FARTHEST,
    as_behavior,
    as_bits,
    as_bool,
    as_place,
    as_quat,
    as_vec3,
    from_quat,
    from_vec3,
    raise_status,
    short,
)
from pycct.shapes.cooked_file cimport path_of, read_cooked, write_cooked
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.convex.hull cimport HullTables
from pycct.runtime.lock cimport Lock
from pycct.spatial.character_grid cimport Neighbours
from pycct.world.broadphase cimport BroadphaseLayer, layer_for, layer_is_idle
from pycct.shapes.primitives cimport Box, Capsule, ConvexHull, Shape
from pycct.geometry.types cimport (
    BODY_DYNAMIC,
    BODY_KINEMATIC,
    BODY_STATIC,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
)
from pycct.geometry.vec cimport (
    aabb,
    box_centre,
    box_grow,
    box_half,
    box_of,
    q_is_identity,
    q_matrix,
    q_rotate,
    quat,
    v3,
    v3_abs,
    v3_add,
    v3_dot,
    v3_load,
    v3_max,
    v3_max_abs,
    v3_neg,
    v3_scale,
    v3_sub,
)
from pycct.world.candidates cimport (
    candidates,
    candidates_cut,
    candidates_free,
    candidates_gather,
    candidates_init,
    capsule_bounds,
    collider,
    group_overlaps,
    hull_ends,
    hull_has_faces,
    place_point,
)

from pycct.args import save_format as saves
from pycct.args.save_format import LARGEST_ID
from pycct.runtime.enums import Behavior

BODIES = {"static": BODY_STATIC, "kinematic": BODY_KINEMATIC, "dynamic": BODY_DYNAMIC}
INCLUDES = ("actors", "characters", "all")
BODY_NAMES = {number: name for name, number in BODIES.items()}
# Kinds of records of actors.
cdef enum:
    RECORD_ACTOR = 0
    RECORD_OBSTACLE = 1
    RECORD_TRIGGER = 2

# A named tuple takes its module from its caller's frame, which compiled code lacks.
TriggerEvents = namedtuple("TriggerEvents", "entered left inside", module=__name__)
TriggerEvents.__doc__ = """Answer of `Scene.triggers`: three (k, 2) arrays of int64.

A row is (id of a trigger, id of a character). Rows are sorted. ``entered`` and ``left`` contain the
changes since the last call, and ``inside`` contains all pairs that overlap now.
"""


# The garbage collector must not clear these references first; dicts and actors take part in cycles.
@cython.final
@cython.no_gc_clear
cdef class Stage:
    def __cinit__(self):
        self.members = {}
        self.changed = {}
        self.joined = {}
        self.left = {}
        self.back_buffer_delta = {}
        # The first publish builds everything, also without actors.
        self.dirty = self.rebuild_all = True
        self.unordered = False
        self.largest_id = -1

    cdef int join(self, Actor actor) except -1:
        # Layers are in the order of ids. An actor that comes back under its old id is out of order.
        if actor.id < self.largest_id:
            self.unordered = self.rebuild_all = True
        else:
            self.largest_id = actor.id
        self.members[actor.id] = actor
        self.joined[actor.id] = actor
        self.dirty = True
        return 0

    cdef int leave(self, Actor actor) except -1:
        del self.members[actor.id]
        self.changed.pop(actor.id, None)
        if self.joined.pop(actor.id, None) is None:
            self.left[actor.id] = actor
        self.dirty = True
        return 0

    cdef int change(self, Actor actor) except -1:
        self.changed[actor.id] = actor
        self.dirty = True
        return 0

    cdef int publish(self) except -1:
        """Publish the current members as the current layer.

        Allocations may run a finalizer, which may change the scene. The marks are taken before the
        data is read, so that the next publish sees such a change. If the finalizer publishes, this
        function starts again.
        """
        cdef BroadphaseLayer base, layer
        cdef dict changed, joined, left
        while True:
            base = self.current
            changed, joined, left = self.changed, self.joined, self.left
            self.changed, self.joined, self.left = {}, {}, {}
            self.dirty = False
            try:
                layer = self._next(base, changed, joined, left)
            except BaseException:
                self.rebuild_all = self.dirty = True
                raise
            if self.current is base:
                break
            self.rebuild_all = True
        self.current = layer
        return 0

    cdef BroadphaseLayer _next(self, BroadphaseLayer base, dict changed, dict joined, dict left):
        cdef BroadphaseLayer layer, back_buffer
        cdef Actor actor
        cdef list places, gone, owners
        cdef int32_t i, n
        cdef bint idle = self.back_buffer is not None and layer_is_idle(<PyObject*>self.back_buffer)
        back_buffer = self.back_buffer
        self.back_buffer = None
        back_buffer_delta = self.back_buffer_delta
        self.back_buffer_delta = {}
        if base is None or self.rebuild_all or 8 * (len(joined) + len(left)) > len(base.owners) + 64:
            return self._whole()
        for actor in left.values():
            if not _stands_in(base, actor):
                return self._whole()
        if joined or left:
            gone = sorted([(<Actor>actor).place for actor in left.values()])
            owners = base.owners.copy()
            for i in reversed(gone):
                del owners[i]
            n = <int32_t>len(owners)
            owners.extend(joined.values())
            for i in range(max(n, 1), len(owners)):
                if (<Actor>owners[i]).id <= (<Actor>owners[i - 1]).id:
                    return self._whole()
            layer = base.copy_with(gone, len(joined), owners)
            for i in range(gone[0] if gone else n, len(owners)):
                (<Actor>owners[i]).place = i
            places = list(range(n, len(owners)))
        else:
            # Only poses and properties changed: the previous layer can be reused if nothing reads
            # it any more.
            n = base.data.n
            if idle:
                layer = back_buffer
                back_buffer_delta.update(changed)
            else:
                layer = base.copy_with([], 0, base.owners)
                back_buffer_delta = changed
            self.back_buffer = base
            self.back_buffer_delta = changed
            changed = back_buffer_delta
            places = []
        for id, actor in changed.items():
            if id in joined:
                continue
            if not _stands_in(layer, actor):
                return self._whole()
            places.append(actor.place)
        for i in places:
            (<Actor>layer.owners[i]).fill(&layer.data.items[i])
        layer.apply_changes(places, n)
        return layer

    cdef BroadphaseLayer _whole(self):
        cdef BroadphaseLayer layer
        cdef Actor actor
        if self.unordered:
            self.unordered = False
            self.members = dict(sorted(self.members.items()))
        layer = layer_for(list(self.members.values()))
        cdef int32_t i = 0
        self.rebuild_all = False
        self.back_buffer = None
        self.back_buffer_delta = {}
        for actor in layer.owners:
            actor.place = i
            actor.fill(&layer.data.items[i])
            i += 1
        layer.build()
        return layer


cdef inline bint _stands_in(BroadphaseLayer layer, Actor actor):
    return 0 <= actor.place < layer.data.n and layer.owners[actor.place] is actor


cdef void fill_capsule(collider* p, int64_t id, uint32_t layer, double radius, vec3 p0, vec3 p1) noexcept nogil:
    """Write a character as its capsule."""
    memset(p, 0, sizeof(collider))
    p.kind = SHAPE_CAPSULE
    p.body = BODY_KINEMATIC
    p.layer = layer
    p.id = id
    p.radius = radius
    p.position = v3_scale(v3_add(p0, p1), 0.5)
    p.rotation.w = 1.0
    p.matrix = q_matrix(p.rotation)
    p.scale = v3(1.0, 1.0, 1.0)
    p.a = p0
    p.b = p1
    p.bounds = capsule_bounds(p.a, p.b, p.radius)
    p.bounds = box_grow(p.bounds, 1e-9 * f_span(p.bounds))


@cython.final
cdef class CharacterOwners:
    """Owners of the characters of a query: controllers, then members of crowds."""

    cdef list controllers
    cdef list crowds            # (first item, ids, crowd)

    def __getitem__(self, item):
        if item < len(self.controllers):
            return self.controllers[item]
        for first, ids, crowd in reversed(self.crowds):
            if item >= first:
                return crowd._member_of(int(ids[item - first]))
        raise IndexError(item)


cdef BroadphaseLayer _publish_characters(Scene scene, list characters, list crowds, CharacterOwners owners,
                                         View view):
    """Build a layer of controllers and members of crowds, as their current capsules."""
    cdef BroadphaseLayer layer
    cdef vec3 centre, half
    cdef double[:, ::1] ends
    cdef double[::1] radii
    cdef uint32_t[::1] layers
    cdef int64_t[::1] ids
    cdef int32_t[::1] groups
    cdef int32_t i, n = <int32_t>len(characters)
    cdef Py_ssize_t k
    rows = [crowd._capsules(scene) for crowd in crowds]
    layer = layer_for(characters + [None] * sum([len(row[0]) for row in rows]))
    # Single controllers belong to group 0.
    groups = np.concatenate([np.zeros(n, np.int32), *[row[4] for row in rows]])
    view.groups = &groups[0] if groups.shape[0] > 0 else NULL
    view.keep = (view.keep, layer, groups)
    owners.controllers = characters
    owners.crowds = []
    for i in range(n):
        who = characters[i]
        centre = as_vec3(who.position, "position")
        half = v3_scale(as_vec3(who.up, "up"), 0.5 * <double>who.height)
        fill_capsule(&layer.data.items[i], who.id, who.layer, who.radius, v3_sub(centre, half), v3_add(centre, half))
    for crowd, row in zip(crowds, rows):
        ids, layers, radii, ends = row[:4]
        owners.crowds.append((n, row[0], crowd))
        for k in range(ids.shape[0]):
            fill_capsule(&layer.data.items[n + k], ids[k], layers[k], radii[k], v3_load(&ends[k, 0]),
                         v3_load(&ends[k, 3]))
        n += <int32_t>ids.shape[0]
    layer.build()
    return layer


cdef set _pairs_inside(Scene scene, list characters, list rows):
    """Return the (trigger, character) ids that overlap; ``rows``: capsules of crowds.

    The caller holds the lock of the scene.
    """
    cdef set pairs = set()
    cdef vec3 centre, half
    cdef double[:, ::1] ends
    cdef double[::1] radii
    cdef uint32_t[::1] masks
    cdef int64_t[::1] ids
    cdef Py_ssize_t k
    cdef BroadphaseLayer layer
    cdef candidates c
    cdef unsigned long long env
    if scene.volumes.dirty or scene.volumes.current is None:
        env = fp_enter()
        try:
            scene.volumes.publish()
        finally:
            fp_leave(env)
    layer = scene.volumes.current
    if layer.data.n == 0:
        return pairs
    candidates_init(&c)
    try:
        for who in characters:
            centre = as_vec3(who.position, "position")
            half = v3_scale(as_vec3(who.up, "up"), 0.5 * <double>who.height)
            _add_pairs(&c, layer, who.id, who.mask, who.radius, v3_sub(centre, half), v3_add(centre, half), pairs)
        for row in rows:
            ids, _, radii, ends, _, masks = row
            for k in range(ids.shape[0]):
                _add_pairs(&c, layer, ids[k], masks[k], radii[k], v3_load(&ends[k, 0]), v3_load(&ends[k, 3]), pairs)
    finally:
        candidates_free(&c)
    return pairs


cdef int _add_pairs(candidates* c, BroadphaseLayer layer, int64_t id, uint32_t mask, double radius, vec3 p0, vec3 p1,
                    set pairs) except -1:
    """Add the triggers that one capsule overlaps."""
    cdef unsigned long long env = fp_enter()
    cdef int status
    cdef int32_t i
    try:
        candidates_cut(c, 0, 0)
        status = candidates_gather(c, &layer.data, 0, capsule_bounds(p0, p1, radius), mask, NULL)
        raise_status(status)
        for i in range(c.n_groups):
            if group_overlaps(c, &c.groups[i], p0, p1, radius):
                pairs.add((c.groups[i].id, id))
    finally:
        fp_leave(env)
    return 0


cdef object _rows_of_pairs(set pairs):
    """Return sorted pairs as a (k, 2) array."""
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


@cython.final
cdef class Snapshot:
    pass


cdef class Actor:
    """A shape placed in a scene; created by `Scene.add`.

    Attributes
    ----------
    id : int
        Number of the actor in its scene. Actors, obstacles and characters of a scene share one
        counter, and no id is used twice.
    shape : Shape
        The shape.
    """

    def __init__(self):
        raise TypeError("an Actor is made by Scene.add")

    @property
    def scene(self):
        """The scene, or None once the actor has been removed."""
        with cython.critical_section(self):
            return self.scene_

    @property
    def position(self):
        """Position of the shape's origin, metres."""
        with cython.critical_section(self):
            return from_vec3(self.position_)

    @property
    def rotation(self):
        """Unit quaternion (x, y, z, w)."""
        with cython.critical_section(self):
            return from_quat(self.rotation_)

    @property
    def scale(self):
        """Factors along the shape's own axes."""
        return from_vec3(self.scale_)

    @property
    def body(self):
        """'static', 'kinematic' or 'dynamic'."""
        return BODY_NAMES[self.body_]

    @property
    def trigger(self):
        """Whether it blocks nobody, and `Scene.triggers` reports who is inside."""
        return bool(self.trigger_)

    @property
    def behavior(self):
        """Riding and sliding of characters on it (`Behavior`); settable."""
        cdef uint32_t bits
        with cython.critical_section(self):
            bits = self.behavior_
        return Behavior(bits)

    @behavior.setter
    def behavior(self, value):
        cdef uint32_t bits = as_behavior(value, "behavior")
        cdef Scene scene = self._home()
        with scene.lock:
            self._stay(scene)
            if scene.journal_ is not None:
                scene.tell(self, "set", {"behavior": Behavior(bits)})
            with cython.critical_section(self):
                self.behavior_ = bits
            scene.touch(self)

    @property
    def layer(self):
        """Bit set, settable.

        A character collides with the actor if the layer shares a bit with the character's mask.
        """
        with cython.critical_section(self):
            return self.layer_

    @layer.setter
    def layer(self, value):
        cdef uint32_t bits = as_bits(value, "layer")
        cdef Scene scene = self._home()
        with scene.lock:
            self._stay(scene)
            if scene.journal_ is not None:
                scene.tell(self, "set", {"layer": bits})
            with cython.critical_section(self):
                self.layer_ = bits
            scene.touch(self)

    @property
    def bounds(self):
        """Corners (lo, hi) of the bounding box in the world, metres."""
        cdef collider p
        if self.shape is None:
            raise RuntimeError("an Actor is made by Scene.add")
        with cython.critical_section(self):
            self.fill(&p)
        return from_vec3(p.bounds.lo), from_vec3(p.bounds.hi)

    def move_to(self, position, rotation=None):
        """Move the actor; moves and queries that start later see the new pose.

        Parameters
        ----------
        position : (3,) floats
            Metres.
        rotation : (4,) floats, optional
            Unit quaternion (x, y, z, w); the default keeps the rotation.
        """
        cdef vec3 p = as_place(position, "position")
        cdef quat q
        cdef Scene scene = self._home()
        if rotation is not None:
            q = as_quat(rotation, "rotation")
        with scene.lock:
            self._stay(scene)
            if scene.journal_ is not None:
                scene.tell(self, "move_to", {"position": from_vec3(p),
                                             "rotation": None if rotation is None else from_quat(q)})
            # Readers of the attributes do not take the lock.
            with cython.critical_section(self):
                self.position_ = p
                if rotation is not None:
                    self.rotation_ = q
            scene.touch(self)

    cdef Scene _home(self):
        """Return the scene, to be locked; RuntimeError once removed."""
        cdef Scene scene
        with cython.critical_section(self):
            scene = self.scene_
        if scene is None:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")
        return scene

    cdef int _stay(self, Scene scene) except -1:
        """Check with the lock that the actor was not removed while this thread waited."""
        if self.scene_ is not scene:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")
        return 0

    def __reduce__(self):
        # Pickling by id: all actors share one pickled scene.
        scene = self.scene
        if scene is None:
            raise TypeError(f"actor {self.id} has been removed from its scene: it cannot be pickled or copied")
        return _actor_of, (scene, self.id)

    def __repr__(self):
        where = "removed" if self.scene_ is None else f"at {self.position}"
        what = f"{self.body} trigger" if self.trigger_ else self.body
        return f"<{type(self).__name__} {self.id}: {self.shape!r}, {what}, {where}>"

    cdef int fill(self, collider* p) except -1:
        """Write the collider that moves read."""
        cdef Shape s = self.shape
        cdef vec3 half, centre, k
        cdef aabb b = s.bounds_
        memset(p, 0, sizeof(collider))
        p.kind = s.kind
        p.body = self.body_
        p.layer = self.layer_
        p.behavior = self.behavior_
        p.id = self.id
        p.obstacle = isinstance(self, Obstacle)
        p.position = self.position_
        p.rotation = self.rotation_
        # A mirrored box is the same box.
        p.scale = v3_abs(self.scale_) if s.kind == SHAPE_BOX else self.scale_
        p.matrix = q_matrix(self.rotation_)
        p.plain = q_is_identity(self.rotation_) and p.scale.x == 1.0 and p.scale.y == 1.0 and p.scale.z == 1.0
        p.mirrored = p.scale.x * p.scale.y * p.scale.z < 0.0
        p.mesh = s.mesh()
        p.field = s.field()
        p.hull = s.hull()
        p.a = s.a
        p.b = s.b
        p.c = s.c
        p.hull_scale = v3(1.0, 1.0, 1.0)
        if s.kind == SHAPE_HULL:
            p.hull_scale = (<ConvexHull>s).scale_
            p.extra = &(<HullTables>(<ConvexHull>s).tables).extra
            k = p.hull_scale
            if k.x * k.y * k.z < 0.0:
                p.mirrored = not p.mirrored
            if not hull_has_faces(p):
                # A segment or a point: a capsule without a radius, whose bounds are those of the
                # hull.
                hull_ends(p, &p.a, &p.b)
                p.kind = SHAPE_CAPSULE
        if s.kind == SHAPE_PLANE:
            p.a = q_rotate(self.rotation_, s.a)
            p.offset = s.height_ + v3_dot(p.a, self.position_)
            p.bounds = b
            return 0
        if s.kind == SHAPE_SPHERE or s.kind == SHAPE_CAPSULE:
            p.radius = s.radius_ * self.scale_.x
            half = v3_scale(q_rotate(self.rotation_, v3(0.0, 0.0, 1.0)), 0.5 * s.height_ * self.scale_.x)
            p.a = v3_sub(self.position_, half)
            p.b = v3_add(self.position_, half)
            p.bounds = capsule_bounds(p.a, p.b, p.radius)
        elif p.plain:
            p.bounds = box_of(v3_add(b.lo, p.position), v3_add(b.hi, p.position))
        else:
            centre = place_point(p, box_centre(b))
            half = box_half(b)
            half = v3(half.x * fabs(p.scale.x), half.y * fabs(p.scale.y), half.z * fabs(p.scale.z))
            half = v3(v3_dot(v3_abs(p.matrix.r0), half), v3_dot(v3_abs(p.matrix.r1), half),
                      v3_dot(v3_abs(p.matrix.r2), half))
            p.bounds = box_of(v3_sub(centre, half), v3_add(centre, half))
        # Margin for the rounding of the transformation to the world.
        p.bounds = box_grow(p.bounds, 1e-9 * f_span(p.bounds))
        return 0


@cython.final
cdef class Obstacle(Actor):
    """A box or capsule that only characters collide with; created by `Scene.add_obstacle`."""


cdef double f_span(aabb b) noexcept nogil:
    return v3_max_abs(v3_max(v3_abs(b.lo), v3_abs(b.hi)))


@cython.final
cdef class Edit:
    """Context manager for several changes as one; created by `Scene.edit`."""

    cdef Scene scene
    cdef int depth              # number of nested entries

    def __init__(self):
        raise TypeError("an Edit is made by Scene.edit")

    def __enter__(self):
        if self.scene is None:
            raise RuntimeError("an Edit is made by Scene.edit")
        self.scene.lock.take()
        try:
            if self.scene.journal_ is not None:
                self.scene.tell(self.scene, "edit", {})
            if self.scene.editing == 0:
                self.scene.snapshot()
            self.scene.count_edits(1)
            self.depth += 1
        except BaseException:
            self.scene.lock.give(1)
            raise
        return self.scene

    def __exit__(self, *problem):
        if self.depth == 0:
            raise RuntimeError("the edit has not been entered")
        if not self.scene.lock.mine():
            raise RuntimeError("the edit has been entered in another thread")
        try:
            if self.scene.journal_ is not None:
                self.scene.tell(self.scene, "end_edit", {})
        finally:
            self._end(1)
        return False

    def __del__(self):
        # An abandoned edit must not hold the scene for ever.
        if self.scene is not None and self.depth > 0:
            self._end(self.depth)

    cdef int _end(self, int times) except -1:
        self.depth -= times
        self.scene.count_edits(-times)
        self.scene.lock.give(times)
        return 0


@cython.final
@cython.no_gc_clear
cdef class Scene:
    """A world of placed shapes.

    Thread safety: any thread may read and change a scene at any time. A move or query in flight
    reads the snapshot of its start.

    Lifetimes: a scene keeps its actors, an actor its shape and its scene, and a controller its
    scene. A shape may be used in any number of scenes and threads. A removed actor stays readable;
    its ``scene`` is None and it cannot move. A character on a removed actor falls in its next move.
    A query or move in flight keeps its snapshot.

    If thousands of actors are added with queries in between, each query publishes a snapshot. Put
    such changes into one `edit`.

    Attributes
    ----------
    timestamp : int
        Number of changes of static actors; it invalidates the caches of characters.

    Examples
    --------
    >>> from pycct import Box, Plane, Scene, Sphere
    >>> scene = Scene()
    >>> ground = scene.add(Plane((0, 0, 1)))
    >>> crate = scene.add(Box((0.5, 0.5, 0.5)), position=(2, 0, 0.5), user_data="crate")
    >>> hit = scene.sweep(Sphere(0.3), (0, 0, 0.5), (1, 0, 0), 10)
    >>> hit.actor.user_data, round(hit.distance, 6), hit.normal
    ('crate', 1.2, (-1.0, 0.0, 0.0))
    >>> scene.remove(crate)
    >>> len(scene)
    1
    """

    def __cinit__(self):
        self.lock = Lock()
        self.actors_ = {}
        self.fixed = Stage()
        self.moving = Stage()
        self.volumes = Stage()
        self.inside = set()
        self.editing = 0
        self.neighbours = Neighbours()
        self.characters_ = {}
        self.crowds_ = WeakSet()
        self.next_id = 0
        self.unordered = False
        self.quiet = 0
        self.current = None
        self.changes = 1
        self.published = 0
        self.timestamp = 0

    def __init__(self):
        pass

    @property
    def journal(self):
        """Listener that receives every change of the scene and every move call, or None. Settable.

        ``listener(target, name, arguments)`` is called before the change takes effect, when all
        arguments have been checked; what it raises reaches the caller, and nothing has changed.

        * ``target``: the `Scene`, an `Actor`, `Obstacle` or `CharacterController`.
        * ``name``: the method of the target that was called (``"add"``, ``"move_to"``, ``"move"``,
          ``"teleport"``, ``"restore"``, ...); ``"set"`` for attributes; ``"edit"`` and
          ``"end_edit"`` for the two ends of an `edit`; ``"CharacterController"`` and ``"Crowd"``,
          with the scene as target, for what is made; ``"move_many"``, ``"separate"`` and
          ``"restore_many"`` for those functions; ``"answer"`` for what a ``filter`` or ``behavior``
          callback of a controller answers during a change (``question``, ``other``, ``answer``).
        * ``arguments``: a dict of what was passed, by parameter or attribute. Arrays belong to the
          caller: copy what you keep.

        Changes of a crowd's members go to `Crowd.journal`. The listener does not receive
        consequences of a change (a proxy that follows its owner) or the collection of a controller:
        call its ``remove``.

        The listener runs in the thread of the change, with the scene held for changes of the
        scene: it may read, but must not change anything, nor wait for other threads. Changes
        of controllers in several threads call it at the same time.
        """
        return self.journal_

    @journal.setter
    def journal(self, listener):
        if listener is not None and not callable(listener):
            raise TypeError(f"journal must be callable or None, not {type(listener).__name__}")
        with self.lock:
            self.journal_ = listener
            # Controllers look at their own mark only, so that moves cost nothing more without a
            # listener.
            for hero in self.characters:
                hero._listened(listener is not None)

    cdef int tell(self, object target, str name, dict arguments) except -1:
        """Call the listener, unless this change is part of another one. Hold the lock."""
        cdef object listener = self.journal_
        if listener is not None and self.quiet == 0:
            listener(target, name, arguments)
        return 0

    cdef Stage stage(self, Actor actor):
        if actor.trigger_:
            return self.volumes
        return self.fixed if actor.body_ == BODY_STATIC else self.moving

    cdef int note(self, Actor actor) except -1:
        """Count a change. The caller holds the lock; readers of the count do not."""
        # Moves and queries do not read triggers.
        if actor.trigger_:
            return 0
        with cython.critical_section(self):
            self.changes += 1
            if actor.body_ == BODY_STATIC and not self.editing:
                self.timestamp += 1
        return 0

    cdef int touch(self, Actor actor) except -1:
        """Record that an actor has changed."""
        self.stage(actor).change(actor)
        return self.note(actor)

    cdef int count_edits(self, int change) except -1:
        """Count the start or end of an edit; the caller holds the lock."""
        with cython.critical_section(self):
            self.editing += change
            if self.editing == 0 and change < 0 and self.fixed.dirty:
                self.timestamp += 1
        return 0

    cdef Snapshot snapshot(self):
        """Return the current snapshot.

        The first reader after a change publishes it while others wait.
        """
        cdef Snapshot fresh
        cdef uint64_t count, now
        cdef unsigned long long env
        cdef bint good
        # Critical sections are free under the GIL. Without it, a thread that replaces the snapshot
        # could free it between another thread's read of the pointer and its new reference.
        with cython.critical_section(self):
            fresh = self.current
            good = self.editing != 0 or self.published == self.changes
        if good:
            return fresh
        with self.lock:
            # The lock excludes other writers. A finalizer may request the first snapshot during its
            # construction.
            if self.current is not None and (self.editing or self.published == self.changes):
                return self.current
            count, now = self.changes, self.timestamp
            # The snapshot has the same bits, whichever thread reads first.
            env = fp_enter()
            try:
                if self.fixed.dirty or self.fixed.current is None:
                    self.fixed.publish()
                    self.fixed.current.data.timestamp = now
                if self.moving.dirty or self.moving.current is None:
                    self.moving.publish()
            finally:
                fp_leave(env)
            fresh = Snapshot.__new__(Snapshot)
            fresh.fixed = self.fixed.current
            fresh.moving = self.moving.current
            with cython.critical_section(self):
                self.current = fresh
                # A finalizer may have published more.
                if count > self.published:
                    self.published = count
            return fresh

    cdef View view(self, dict options):
        """Return the data that a query reads."""
        cdef View v = View.__new__(View)
        cdef Snapshot snap
        cdef BroadphaseLayer layer
        what = "actors"
        if len(options) > 0:
            # ``include`` is a keyword of Cython, so no parameter can have that name.
            what = options.get("include", "actors")
            if len(options) > (1 if "include" in options else 0):
                raise TypeError(f"unexpected keyword argument {short(next(k for k in options if k != 'include'))}")
            if not isinstance(what, str) or what not in INCLUDES:
                raise ValueError(f"include must be 'actors', 'characters' or 'all', not {short(what)}")
        if what != "characters":
            snap = self.snapshot()
            v.fixed = &snap.fixed.data
            v.moving = &snap.moving.data
            v.fixed_owners = snap.fixed.owners
            v.moving_owners = snap.moving.owners
            v.keep = snap
        if what != "actors":
            owners = CharacterOwners.__new__(CharacterOwners)
            layer = _publish_characters(self, self.characters, self.crowds, owners, v)
            v.characters = &layer.data
            v.character_owners = owners
        return v

    def edit(self):
        """Publish several changes as one.

        ``with scene.edit(): ...`` holds the scene. Until the block ends, moves and queries of any
        thread see the snapshot from before, and changes of other threads wait. Then all changes
        appear at once and count as one in `timestamp`. Changes before an exception stay. An
        abandoned edit (entered by hand, or in a generator that never continues) ends when it is
        collected.

        Returns
        -------
        context manager
        """
        cdef Edit edit = Edit.__new__(Edit)
        edit.scene = self
        return edit

    def add(self, shape, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0, 1.0), scale=(1.0, 1.0, 1.0), *,
            body="static", layer=1, behavior=0, user_data=None, id=None, trigger=False):
        """Place a shape in the scene.

        Parameters
        ----------
        shape : Shape
            Mesh, Heightfield, Box, Sphere, Capsule, ConvexHull, Plane or Triangle; may be shared.
        position : (3,) floats
            Position of the shape's origin, metres.
        rotation : (4,) floats
            Unit quaternion (x, y, z, w), normalised; ValueError if its length differs from 1 by
            more than 1e-3.
        scale : (3,) floats
            Factors along the shape's own axes, not zero; negative ones mirror. Spheres and capsules
            need three equal positive factors, and planes accept none.
        body : {'static', 'kinematic', 'dynamic'}
            Kinematic and dynamic actors carry characters up and down, and with
            ``behavior=Behavior.CAN_RIDE`` aside as well. Recovery never moves a character out of a
            dynamic actor.
        layer : int
            Bit set, 32 bits; a character collides with the actor if it shares a bit with the
            character's mask.
        behavior : Behavior
            Riding and sliding of characters on it.
        user_data : object
            Any object of your own.
        id : int, optional
            Id of a removed actor of this scene that is free now, which restores the actor under its
            old id. The default is a new id.
        trigger : bool
            True for a volume that blocks nobody: moves, queries and sensors ignore it, and
            `triggers` reports which characters enter and leave it. ``behavior`` has no effect then.
            ``body`` only says whether ``save(moving=True)`` of a crowd contains its pose.

        Returns
        -------
        Actor

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid, or ``id`` is in use or was never issued; nothing has changed.
        """
        cdef Actor actor = _new_actor(shape, position, rotation, scale, body, layer, behavior, trigger)
        actor.user_data = user_data
        self._check_span(actor)
        with self.lock:
            if id is not None:
                actor.id = self.free_id(id)
            if self.journal_ is not None:
                self.tell(self, "add", {
                    "shape": shape, "position": from_vec3(actor.position_), "rotation": from_quat(actor.rotation_),
                    "scale": from_vec3(actor.scale_), "body": body, "layer": actor.layer_,
                    "behavior": Behavior(actor.behavior_), "user_data": user_data,
                    "id": None if id is None else actor.id, "trigger": bool(trigger)})
            if id is None:
                actor.id = self.issue(1)
            actor.scene_ = self
            self._keep(actor)
        return actor

    def add_obstacle(self, shape, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0, 1.0), *, layer=1,
                     behavior=Behavior.CAN_RIDE, user_data=None, id=None):
        """Place an obstacle: geometry for characters only (RULES 2 and 8).

        An obstacle is analytic and so always walkable. It carries characters that stand on it.
        Recovery ignores it, and queries do not see it.

        Parameters
        ----------
        shape : Box or Capsule
        position, rotation
            Its pose.
        layer : int
            Bit set; a character collides with it if it shares a bit with the character's mask.
        behavior : Behavior
            Riding and sliding of characters on it.
        user_data : object
            Any object of your own.
        id : int, optional
            As for `add`.

        Returns
        -------
        Obstacle
            ``move_to`` moves it, and `Scene.remove` removes it.
        """
        cdef Obstacle obstacle
        if not isinstance(shape, (Box, Capsule)):
            raise TypeError(f"shape of an obstacle must be a Box or Capsule, not {type(shape).__name__}")
        if (<Shape>shape).kind < 0:
            raise ValueError(f"shape was not initialised: call {type(shape).__name__}.__init__")
        obstacle = Obstacle.__new__(Obstacle)
        obstacle.shape = shape
        obstacle.position_ = as_place(position, "position")
        obstacle.rotation_ = as_quat(rotation, "rotation")
        obstacle.scale_ = v3(1.0, 1.0, 1.0)
        obstacle.body_ = BODY_KINEMATIC
        obstacle.layer_ = as_bits(layer, "layer")
        obstacle.behavior_ = as_behavior(behavior, "behavior")
        obstacle.user_data = user_data
        self._check_span(obstacle)
        with self.lock:
            if id is not None:
                obstacle.id = self.free_id(id)
            if self.journal_ is not None:
                self.tell(self, "add_obstacle", {
                    "shape": shape, "position": from_vec3(obstacle.position_),
                    "rotation": from_quat(obstacle.rotation_),
                    "layer": obstacle.layer_,
                    "behavior": Behavior(obstacle.behavior_), "user_data": user_data,
                    "id": None if id is None else obstacle.id})
            if id is None:
                obstacle.id = self.issue(1)
            obstacle.scene_ = self
            self._keep(obstacle)
        return obstacle

    cdef int64_t issue(self, int64_t n) except -1:
        """The first of n new ids, which follow one another. Hold the lock."""
        cdef int64_t first = self.next_id
        if n > LARGEST_ID - first:
            raise OverflowError("the scene has no ids left")
        self.next_id = first + n
        return first

    cdef bint has_id(self, int64_t id) except -1:
        """Whether an actor, an obstacle or a character has the id. Hold the lock."""
        return id in self.actors_ or self.character(id) is not None

    cdef int64_t free_id(self, object value) except -1:
        """An id of before that nothing has now. Hold the lock."""
        cdef int64_t id
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"id must be an integer, not {type(value).__name__}")
        if not 0 <= value < self.next_id:
            raise ValueError(f"id must be one that the scene has issued, from 0 to {self.next_id - 1}, "
                             f"got {short(value)}")
        id = value
        if self.has_id(id):
            raise ValueError(f"id must be free, but {id} is in use")
        return id

    cdef dict in_order(self):
        """The actors by id, in the order of ids. Hold the lock."""
        if self.unordered:
            self.actors_ = dict(sorted(self.actors_.items()))
            self.unordered = False
        return self.actors_

    cdef int _keep(self, Actor actor) except -1:
        if actor.id + 1 < self.next_id:
            self.unordered = True
        self.actors_[actor.id] = actor
        self.stage(actor).join(actor)
        return self.note(actor)

    cdef int _check_span(self, Actor actor) except -1:
        cdef collider p
        actor.fill(&p)
        if p.kind == SHAPE_PLANE:
            if not fabs(p.offset) <= 2.0 * FARTHEST:
                raise ValueError(f"shape must pass within {2.0 * FARTHEST:g} m of the origin once placed")
        elif not f_span(p.bounds) <= 2.0 * FARTHEST:
            raise ValueError(f"shape must lie within {2.0 * FARTHEST:g} m of the origin once placed")
        return 0

    def remove(self, actor):
        """Remove an actor; characters that stand on it fall in their next move."""
        if not isinstance(actor, Actor):
            raise TypeError(f"actor must be an Actor, not {type(actor).__name__}")
        with self.lock:
            if (<Actor>actor).scene_ is not self:
                raise ValueError("actor is not in this scene")
            if self.journal_ is not None:
                self.tell(self, "remove", {"actor": actor})
            del self.actors_[(<Actor>actor).id]
            self.stage(actor).leave(actor)
            with cython.critical_section(actor):
                (<Actor>actor).scene_ = None
            self.note(actor)
            # A proxy whose owner removes it is removed quietly.
            if not self.quiet and (<Actor>actor).body_ == BODY_KINEMATIC:
                for follower in self.characters:
                    follower._lost_proxy(actor)

    @property
    def actors(self):
        """All actors, in the order of their ids; with triggers, without obstacles."""
        with self.lock:
            return [a for a in self.in_order().values() if not isinstance(a, Obstacle)]

    @property
    def obstacles(self):
        """All obstacles, in the order of their ids."""
        with self.lock:
            return [a for a in self.in_order().values() if isinstance(a, Obstacle)]

    @property
    def characters(self):
        """The living controllers of this scene, in the order of creation.

        Without members of crowds.
        """
        found = [r() for r in list(self.characters_.values())]
        return [c for c in found if c is not None]

    def character(self, id):
        """The living controller or member of a crowd with that id, or None."""
        r = self.characters_.get(_as_id(id))
        if r is not None:
            return r()
        for crowd in list(self.crowds_):
            member = crowd.member(id)
            if member is not None and member.scene is self:
                return member
        return None

    def triggers(self):
        """Return which characters entered and left triggers since the last call.

        A trigger is an actor of ``add(..., trigger=True)``. A character is inside while its capsule
        overlaps the trigger's shape and its ``mask`` shares a bit with the trigger's ``layer``.
        Controllers and members of crowds count. Solids are solid; meshes, heightfields and
        triangles count where the capsule touches their surface.

        The method compares the poses of this moment with those of the last call, so one call a tick
        finds every change. The first call reports everything inside as entered. A character or a
        trigger that was removed while one was inside the other counts as leaving. The result does
        not depend on threads or on the order of adding and moving.

        Returns
        -------
        TriggerEvents
            entered, left, inside: (k, 2) arrays of int64, rows (id of the trigger, id of the
            character) in ascending order.

        Notes
        -----
        Positions between two calls do not count: a character whose motion of one tick is longer
        than its own size can pass a thin trigger unseen. Copies, pickles and saved scenes contain
        the triggers, and start as before the first call.

        Examples
        --------
        >>> from pycct import Box, CharacterController, Plane, Scene
        >>> scene = Scene()
        >>> ground = scene.add(Plane((0, 0, 1)))
        >>> zone = scene.add(Box((1, 1, 1)), position=(3, 0, 1), trigger=True)
        >>> hero = CharacterController(scene, position=(0, 0, 0.91))
        >>> (zone.id, hero.id)
        (1, 2)
        >>> for _ in range(20):
        ...     flags = hero.move((0.1, 0, 0), 1 / 60)
        >>> scene.triggers().entered.tolist()
        [[1, 2]]
        >>> hero.teleport((0, 0, 0.91))
        >>> scene.triggers().left.tolist()
        [[1, 2]]
        """
        cdef set now, before
        # Capsules come first: a crowd that moves in another thread may wait for the lock.
        characters = self.characters
        rows = [crowd._capsules(self) for crowd in self.crowds]
        with self.lock:
            now = _pairs_inside(self, characters, rows)
            before = self.inside
            self.inside = now
        return TriggerEvents(_rows_of_pairs(now - before), _rows_of_pairs(before - now), _rows_of_pairs(now))

    @property
    def crowds(self):
        """The living crowds of this scene."""
        return list(self.crowds_)

    def actor(self, id):
        """The actor or obstacle with that id, or None."""
        return self.actors_.get(_as_id(id))

    def __reduce__(self):
        # The state does not contain characters: each pickles its scene, and pickle shares it.
        # user_data is state, not an argument, because it may refer to the scene and to characters
        # that search their proxy in it.
        with self.lock:
            return (_scene_again, ([_record_of(a) for a in self.in_order().values()], self.next_id),
                    {a.id: a.user_data for a in self.actors_.values()})

    def __setstate__(self, state):
        """Set the user_data of actors, by id."""
        for id, user_data in state.items():
            if id not in self.actors_:
                raise ValueError("state is damaged: its ids make no sense")
            self.actors_[id].user_data = user_data

    def save(self, path, *, user_data=True):
        """Write the scene to a file that `load` opens at once, whatever its size.

        The file contains everything that moves and queries use: actors and obstacles with their
        ids, and shapes with their trees, triangle data and masks. It contains no characters and no
        proxies (`CharacterController.save` and ``add_proxy`` restore them).

        `save` writes a temporary file in the same folder, flushes it to disk and renames it.
        Programs that have loaded the old file keep it unchanged, and no program opens half a file.
        (Windows does not rename over a file in use.)

        Parameters
        ----------
        path : str or path-like
            The file.
        user_data : bool
            Whether to save the ``user_data`` of actors. It must then consist of None, bool, int,
            float, str, lists, and dicts with str keys; anything else is a TypeError, and nothing is
            written.

        Raises
        ------
        OSError
            From the system.
        TypeError, ValueError
            If ``user_data`` cannot be saved, or ``path`` is no regular file.

        Notes
        -----
        The file belongs to machines of this byte order and word size and to this results version.
        """
        cdef str name = path_of(path)
        user_data = as_bool(user_data, "user_data")
        with self.lock:
            proxies = [id(c.proxy) for c in self.characters]
            actors = [a for a in self.in_order().values() if id(a) not in proxies]
            records = [_record_of(a) for a in actors]
            following = self.next_id
        write_cooked(name, records, following, {a.id: a.user_data for a in actors} if user_data else {})

    @staticmethod
    def load(path, verify=False):
        """Return the scene of a file from `save`, opened by memory mapping.

        Meshes and heightfields stay in the file: the system reads only the pages that moves and
        queries touch, and processes that load the same file share them. Otherwise the scene is like
        any other: moves and queries return the bits of the saved scene, and it may be changed,
        pickled and saved. The file stays mapped while a mesh or heightfield of it is in use. It
        must not be changed in place (`save` never does that) or truncated: a read beyond its end
        stops the process.

        Parameters
        ----------
        path : str or path-like
            The file.
        verify : bool
            Read everything, compare all checksums and check every index. Without it, only the
            structure of the file is checked. Geometry that was damaged on disk then leads to wrong
            results or a FloatingPointError, nothing worse.

        Returns
        -------
        Scene

        Raises
        ------
        OSError
            From the system, for example for a missing file or a folder.
        ValueError
            With the path: the file is no cooked scene, is truncated or damaged, or has another byte
            order, word size, format or results version.
        """
        cdef str name = path_of(path)
        verify = as_bool(verify, "verify")
        records, following, user_data = read_cooked(name, verify)
        try:
            scene = _scene_again(records, following)
            scene.__setstate__(user_data)
        except (ValueError, TypeError, OverflowError) as problem:
            raise ValueError(f"{name}: damaged: {problem}") from problem
        return scene

    def __len__(self):
        return len(self.actors_)

    def __repr__(self):
        return f"<Scene: {len(self.actors_)} actors>"

    cdef bytes moving_bytes(self):
        """Poses, layers and behaviors of moving actors and obstacles by id, but for proxies."""
        cdef Actor a
        cdef vec3 p
        cdef quat q
        with self.lock:
            if self.moving.unordered:
                self.moving.unordered = False
                self.moving.members = dict(sorted(self.moving.members.items()))
            proxies = {id(c.proxy) for c in self.characters}
            records = []
            members = self.moving.members
            volumes = {k: a for k, a in self.volumes.members.items() if (<Actor>a).body_ != BODY_STATIC}
            if volumes:
                members = dict(sorted((members | volumes).items()))
            for a in members.values():
                if id(a) not in proxies:
                    p, q = a.position_, a.rotation_
                    records.append(saves.MOVING.pack(a.id, p.x, p.y, p.z, q.x, q.y, q.z, q.w, a.layer_, a.behavior_))
            return saves.MOVING_HEAD.pack(len(records)) + b"".join(records)

    cdef list moving_found(self, object rows):
        """The actors of saved rows with what they shall be; ValueError when one is missing.

        Hold the lock.
        """
        cdef list found = []
        cdef Actor actor
        for id, x, y, z, qx, qy, qz, qw, layer, behavior in rows:
            actor = self.actors_.get(id)
            if actor is None or actor.body_ == BODY_STATIC:
                raise ValueError(f"data moves actor {id}, but the scene has no moving actor of that id")
            place = as_place((x, y, z), "data: position")
            as_quat((qx, qy, qz, qw), "data: rotation")
            found.append((actor, from_vec3(place), (qx, qy, qz, qw), layer, behavior))
        return found

    cdef int moving_put(self, list found) except -1:
        """Put actors to where `moving_found` has them; those that are gone by now stay gone."""
        cdef Actor actor
        cdef quat q
        with self.lock:
            if self.journal_ is not None and found:
                self.tell(self, "move_actors", {"ids": np.array([a.id for a, *_ in found], np.int64),
                                                "positions": np.array([row[1] for row in found]),
                                                "rotations": np.array([row[2] for row in found])})
                for other, _, _, layer, behavior in found:
                    if other.layer != layer or other.behavior != behavior:
                        self.tell(other, "set", {"layer": layer, "behavior": Behavior(behavior)})
            self.quiet += 1
            try:
                with self.edit():
                    for actor, place, turn, layer, behavior in found:
                        if actor.scene_ is not self:
                            continue
                        q.x, q.y, q.z, q.w = turn
                        with cython.critical_section(actor):
                            actor.position_ = as_vec3(place, "position")
                            actor.rotation_ = q
                            actor.layer_ = layer
                            actor.behavior_ = behavior
                        self.touch(actor)
            finally:
                self.quiet -= 1
        return 0

    def move_actors(self, ids, positions, rotations=None):
        """Move many actors in one call.

        Parameters
        ----------
        ids : (n,) array of integers
            Ids of actors or obstacles of this scene, each once.
        positions : (n, 3) array of floats
            Metres.
        rotations : (n, 4) array of floats or (4,) floats, optional
            Unit quaternions (x, y, z, w), or one for all; the default keeps each rotation.
        """
        cdef quat q
        cdef double[:, ::1] p
        cdef Actor actor
        cdef list actors
        cdef Py_ssize_t i
        given = np.asarray(ids)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError("ids must be a one-dimensional array of integers")
        try:
            places = np.array(positions, dtype=np.float64, order="C", copy=True)
        except (TypeError, ValueError, OverflowError):
            raise TypeError("positions must be an array of finite numbers of shape (n, 3)") from None
        if places.shape == (0,):
            places = places.reshape(0, 3)
        if places.shape != (given.shape[0], 3):
            raise ValueError(f"positions must have shape ({given.shape[0]}, 3), got {places.shape}")
        if not np.isfinite(places).all() or (places.size and np.abs(places).max() > FARTHEST):
            good = (np.abs(places) <= FARTHEST).all(axis=1)
            raise ValueError(f"positions must be finite and lie within {FARTHEST:g} m of the origin, "
                             f"row {good.argmin()} is {tuple(places[good.argmin()].tolist())}")
        turns = None
        if rotations is not None:
            try:
                turns = np.asarray(rotations, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                raise TypeError("rotations must be an array of finite numbers of shape (n, 4)") from None
            if turns.shape == (4,):
                turns = np.broadcast_to(turns, (given.shape[0], 4))
            elif turns.shape == (0,):
                turns = turns.reshape(0, 4)
            if turns.shape != (given.shape[0], 4):
                raise ValueError(f"rotations must have shape ({given.shape[0]}, 4) or (4,), got {turns.shape}")
            turns = [from_quat(as_quat(row, f"rotations, row {k},")) for k, row in enumerate(turns.tolist())]
        p = places
        with self.lock:
            actors = [self.actors_.get(k) for k in given.tolist()]
            if None in actors:
                raise ValueError(f"ids must be of actors in this scene, {given[actors.index(None)]} is not")
            if len(set(given.tolist())) != len(actors):
                raise ValueError("ids must be different from one another")
            if self.journal_ is not None:
                self.tell(self, "move_actors", {
                    "ids": given, "positions": places,
                    "rotations": None if turns is None else np.array(turns, np.float64).reshape(-1, 4)})
            self.quiet += 1
            try:
                with self.edit():
                    for i in range(len(actors)):
                        actor = actors[i]
                        with cython.critical_section(actor):
                            actor.position_ = v3_load(&p[i, 0])
                            if turns is not None:
                                q = actor.rotation_
                                q.x, q.y, q.z, q.w = turns[i]
                                actor.rotation_ = q
                        self.touch(actor)
            finally:
                self.quiet -= 1

    def shift_origin(self, offset):
        """Move the origin of the coordinates to ``offset``; the scene itself stays in place.

        The method subtracts the offset from the position of every actor, obstacle and character, so
        that coordinates far from the origin become small again. Controllers keep their platforms.
        No other thread may move characters of the scene meanwhile.

        Parameters
        ----------
        offset : (3,) floats
            The new origin in the old coordinates, metres.
        """
        cdef vec3 o = as_place(offset, "offset"), p
        cdef Actor actor
        with self.lock:
            for actor in self.actors_.values():
                if v3_max_abs(v3_sub(actor.position_, o)) > FARTHEST:
                    raise ValueError(f"offset must leave every actor within {FARTHEST:g} m of the origin")
            followers = self.characters
            for follower in followers:
                p = v3_sub(as_vec3(follower.position, "position"), o)
                if v3_max_abs(p) > FARTHEST:
                    raise ValueError(f"offset must leave every character within {FARTHEST:g} m of the origin")
            crowds = self.crowds
            for crowd in crowds:
                crowd._check_shift(from_vec3(o))
            followers += crowds
            shifted = []
            if self.journal_ is not None:
                self.tell(self, "shift_origin", {"offset": from_vec3(o)})
            self.quiet += 1
            try:
                for follower in followers:
                    follower._shift_origin(from_vec3(o))
                    shifted.append(follower)
            except BaseException:
                for follower in shifted:
                    follower._shift_origin(from_vec3(v3_neg(o)))
                self.quiet -= 1
                raise
            try:
                with self.edit():
                    for actor in self.actors_.values():
                        with cython.critical_section(actor):
                            actor.position_ = v3_sub(actor.position_, o)
                        self.touch(actor)
            finally:
                self.quiet -= 1

    @property
    def triangle_count(self):
        """Number of triangles of all placed meshes and heightfields."""
        return sum(a.shape.triangle_count for a in self.actors if hasattr(a.shape, "triangle_count"))

    def raycast(self, origin, direction, distance, mask=0xFFFFFFFF, filter=None, **options):
        """Return the first hit of a ray.

        Solids (box, sphere, capsule, hull, plane) are solid: a ray that starts inside hits them at
        distance 0. Triangles are hit from their front, those of two-sided meshes from both sides. A
        ray cannot pass between two triangles that share an edge.

        Parameters
        ----------
        origin : (3,) floats
            Metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            Length of the ray, metres, >= 0.
        mask : int
            Layers to see: of actors, and of triangles with a mask (SWEEP 3.2).
        filter : callable, optional
            ``filter(actor) -> bool``, called once for each actor whose bounds the query comes near.
            Actors with a false result are skipped.
        include : {'actors', 'characters', 'all'}
            Objects to see; members of crowds are returned as `CrowdMember`. Queries never see
            obstacles.

        Returns
        -------
        SceneHit or None
        """
        return ask_raycast(self.view(options), origin, direction, distance, mask, filter)

    def raycast_all(self, origin, direction, distance, mask=0xFFFFFFFF, filter=None, **options):
        """Return all hits along a ray, the nearest first.

        Every triangle of a mesh or heightfield that the ray meets is one hit: from its front, or
        from both sides if the surface is two-sided. Other shapes are solid and are hit once, where
        the ray enters them, or at distance 0 if it starts inside.

        Parameters
        ----------
        origin, direction, distance
            As for `raycast`.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        list of SceneHit
            Hits at the same distance are in an order that does not depend on the order of adding.
            A ray through a shared edge hits both triangles.

        Examples
        --------
        >>> from pycct import Scene, Sphere
        >>> scene = Scene()
        >>> balls = [scene.add(Sphere(0.5), (x, 0, 0)) for x in (2, 4)]
        >>> [hit.distance for hit in scene.raycast_all((0, 0, 0), (1, 0, 0), 10)]
        [1.5, 3.5]
        """
        return ask_raycast_all(self.view(options), origin, direction, distance, mask, filter)

    def raycast_many(self, origins, directions, distances, mask=0xFFFFFFFF, filter=None, *, threads=1, fields=None,
                     out=None, exclude=None, group=None, **options):
        """`raycast` for many rays, with one release of the GIL.

        Parameters
        ----------
        origins : (n, 3) array of floats
        directions : (n, 3) array of floats, (3,) floats, (n, k, 3) or (k, 3) array of floats
            With (n, k, 3) or (k, 3), each origin has k rays, and every column has shape (n, k). As
            many directions as origins are one for each origin; ``origins[:, None]`` casts all of
            them from each.
        distances : float, or (n,) or (n, k) array of floats
        mask : int, or (n,) or (n, k) array of integers
            As for `raycast`, for all rows, for each origin or for each ray.
        filter, include
            As for `raycast`; a filter is called once for each actor and batch.
        threads : int
            How many threads may take part. The results are the same for any number.
        fields : sequence of str, optional
            Names of the columns to compute; the others are None. The default is all of them, or
            those that `out` has.
        out : mapping of names to arrays, optional
            Arrays of the caller that receive the columns: float32 or float64 for lengths and
            vectors, otherwise of the column's own type. An earlier result serves as well.
        exclude : int or array of integers, optional
            Id of an actor or character that each row passes over; -1 for none. One for all rows,
            for each origin or for each ray.
        group : int or array of integers, optional
            Group of crowd members whose characters each row sees; those of other groups are passed
            over. Single controllers belong to group 0. -1 and None see all. Actors belong to no
            group.

        Returns
        -------
        HitArrays

        Raises
        ------
        TypeError, ValueError
            For a value that cannot be used; the message names the argument, and `out` keeps its
            values.
        """
        return ask_raycast_many(self.view(options), origins, directions, distances, mask, filter,
                                {"threads": threads, "fields": fields, "out": out, "exclude": exclude, "group": group})

    def visible(self, a, b, mask=0xFFFFFFFF, filter=None, *, exclude=None, **options):
        """Return whether nothing is on the line between two points.

        The line is the ray of `raycast` from ``a`` to ``b``: it is blocked by solids that contain
        ``a``, and by one-sided triangles that face ``a``.

        Parameters
        ----------
        a, b : (3,) floats
            Metres.
        mask, filter, include
            As for `raycast`.
        exclude : int or tuple of two ints, optional
            Ids of actors or characters that do not block the line, such as those at its ends.

        Returns
        -------
        bool
        """
        return ask_visible(self.view(options), a, b, mask, filter, exclude)

    def visible_many(self, a, b, mask=0xFFFFFFFF, filter=None, *, threads=1, out=None, exclude=None, group=None,
                     **options):
        """`visible` for many lines, with one release of the GIL.

        Parameters
        ----------
        a : (n, 3) array of floats or (3,) floats
        b : (n, 3) array of floats, (3,) floats or (n, k, 3) array of floats
            With (n, k, 3), each point of ``a`` has k lines.
        mask, filter, threads, group, include
            As for `raycast_many`.
        out : array of bool, optional
            The caller's array for the result.
        exclude : int or array of integers, or tuple of two of them, optional
            Ids of actors or characters that do not block the lines; -1 for none.

        Returns
        -------
        (n,) or (n, k) array of bool
            ``out``, if given.

        Raises
        ------
        TypeError, ValueError
            As for `raycast_many`.
        """
        return ask_visible_many(self.view(options), a, b, mask, filter, threads, out, exclude, group)

    def sweep(self, shape, position, direction, distance, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None,
              **options):
        """Return the first hit of a shape that moves along a straight line.

        Solids are solid: a start inside returns distance 0 (RULES 7.6). Triangles are hit from
        their front, those of two-sided meshes from both sides. The result is exact for every pair
        of shapes: the method does not iterate, and its error is rounding only (some 1e-14 of the
        size; see `pycct.convex.polytope_cast` for boxes, hulls and triangles).

        Parameters
        ----------
        shape : Sphere, Capsule, Box, ConvexHull, Triangle or Plane
            Meshes and heightfields are not allowed.
        position : (3,) floats
            Start of the shape's origin, metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            Length of the motion, metres, >= 0.
        rotation : (4,) floats
            Unit quaternion; a capsule's axis is its z.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        SceneHit or None
        """
        return ask_sweep(self.view(options), shape, position, direction, distance, rotation, mask, filter)

    def sweep_many(self, shape, positions, directions, distances, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF,
                   filter=None, *, threads=1, fields=None, out=None, exclude=None, group=None, **options):
        """`sweep` for many motions of one shape, with one release of the GIL.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        directions : (n, 3) array of floats or (3,) floats
        distances : float or (n,) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, threads, fields, out, exclude, group, include
            As for `raycast_many`.

        Returns
        -------
        HitArrays
        """
        return ask_sweep_many(self.view(options), shape, positions, directions, distances, rotations, mask, filter,
                              {"threads": threads, "fields": fields, "out": out, "exclude": exclude, "group": group})

    def overlap(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, **options):
        """Return the actors that a shape touches; triangles count from both sides (RULES 7.6).

        Parameters
        ----------
        shape
            As for `sweep`.
        position, rotation
            Pose of the shape.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        list of Actor
            In the order of their ids; characters after them.
        """
        return ask_touching(self.view(options), shape, position, rotation, mask, filter, False)

    def overlap_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *,
                     threads=1, fields=None, out=None, exclude=None, group=None, **options):
        """`overlap` for many poses of one shape, with one release of the GIL.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, threads, fields, exclude, group, include
            As for `raycast_many`.
        out : mapping of names to arrays, optional
            As for `raycast_many`. Columns with a row for each touch need as many rows as there are
            touches, or more; the result contains views of the rows that were written.

        Returns
        -------
        TouchArrays
        """
        return ask_touching_many(self.view(options), shape, positions, rotations, mask, filter, False,
                                 {"threads": threads, "fields": fields, "out": out, "exclude": exclude, "group": group})

    def penetration(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, **options):
        """Return the actors that a shape penetrates, with the shortest exit from each.

        The exit from a mesh, heightfield or triangle is the sum of up to four pushes. Each one
        leaves the deepest triangle among those whose front faces the shape's centre (RULES 7.5).
        Such an exit is short but may leave a remainder if several triangles overlap at once.

        Parameters
        ----------
        shape
            As for `sweep`.
        position, rotation
            Pose of the shape.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        list of Penetration
            actor, direction (moves the shape out), depth in metres; in the order of ids.
        """
        return ask_touching(self.view(options), shape, position, rotation, mask, filter, True)

    def penetration_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *,
                         threads=1, fields=None, out=None, exclude=None, group=None, **options):
        """`penetration` for many poses of one shape, with one release of the GIL.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, threads, fields, exclude, group, include
            As for `raycast_many`.
        out : mapping of names to arrays, optional
            As for `raycast_many`. Columns with a row for each touch need as many rows as there are
            touches, or more; the result contains views of the rows that were written.

        Returns
        -------
        TouchArrays
        """
        return ask_touching_many(self.view(options), shape, positions, rotations, mask, filter, True,
                                 {"threads": threads, "fields": fields, "out": out, "exclude": exclude, "group": group})

    def closest_points(self, shape, position, max_distance=float("inf"), rotation=(0.0, 0.0, 0.0, 1.0),
                       mask=0xFFFFFFFF, filter=None, **options):
        """Return the nearest pair of points of a shape and the scene (SWEEP 2.3).

        Parameters
        ----------
        shape
            As for `sweep`.
        position, rotation
            Pose of the shape.
        max_distance : float
            Longest distance of the search, metres, >= 0.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        ClosestPoints or None
            The distance is negative for an overlap; among several overlaps the deepest one is
            returned.
        """
        return ask_closest(self.view(options), shape, position, max_distance, rotation, mask, filter)

    def closest_points_many(self, shape, positions, max_distance=float("inf"), rotations=(0.0, 0.0, 0.0, 1.0),
                            mask=0xFFFFFFFF, filter=None, *, threads=1, fields=None, out=None, exclude=None,
                            group=None, **options):
        """`closest_points` for many poses of one shape, with one release of the GIL.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        max_distance : float or (n,) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, threads, fields, out, exclude, group, include
            As for `raycast_many`.

        Returns
        -------
        ClosestArrays
        """
        return ask_closest_many(self.view(options), shape, positions, max_distance, rotations, mask, filter,
                                {"threads": threads, "fields": fields, "out": out, "exclude": exclude, "group": group})


cdef Actor _new_actor(shape, position, rotation, scale, body, layer, behavior, trigger):
    """Return an actor without a scene and an id, after all checks of single arguments."""
    cdef Actor actor = Actor.__new__(Actor)
    if not isinstance(shape, Shape):
        raise TypeError(f"shape must be a shape, not {type(shape).__name__}")
    if (<Shape>shape).kind < 0:
        raise ValueError(f"shape was not initialised: call {type(shape).__name__}.__init__")
    actor.shape = shape
    actor.position_ = as_place(position, "position")
    actor.rotation_ = as_quat(rotation, "rotation")
    actor.scale_ = as_vec3(scale, "scale")
    _check_scale(shape, actor.scale_)
    if not isinstance(body, str) or body not in BODIES:
        raise ValueError(f"body must be 'static', 'kinematic' or 'dynamic', not {short(body)}")
    actor.body_ = BODIES[body]
    if not isinstance(trigger, (bool, np.bool_)):
        raise TypeError(f"trigger must be True or False, not {short(trigger)}")
    actor.trigger_ = trigger
    actor.layer_ = as_bits(layer, "layer")
    actor.behavior_ = as_behavior(behavior, "behavior")
    return actor


cdef object _as_id(object value):
    """Return an id; TypeError for anything but an integer."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"id must be an integer, not {type(value).__name__}")
    try:
        return operator.index(value)
    except TypeError:
        # An array of several numbers.
        raise TypeError(f"id must be an integer, not {type(value).__name__}") from None


cdef int _check_scale(Shape shape, vec3 s) except -1:
    if s.x == 0.0 or s.y == 0.0 or s.z == 0.0:
        raise ValueError(f"scale must not be zero on any axis, got {from_vec3(s)}")
    if shape.kind in (SHAPE_SPHERE, SHAPE_CAPSULE) and not (s.x == s.y == s.z and s.x > 0.0):
        raise ValueError(f"scale of a sphere or capsule must be the same positive factor three times, "
                         f"got {from_vec3(s)}")
    if shape.kind == SHAPE_PLANE and not (s.x == s.y == s.z == 1.0):
        raise ValueError(f"scale of a plane must be (1, 1, 1), got {from_vec3(s)}")
    return 0


cdef tuple _record_of(Actor a):
    """Return the values from which an actor can be created again."""
    kind = RECORD_TRIGGER if a.trigger_ else RECORD_OBSTACLE if isinstance(a, Obstacle) else RECORD_ACTOR
    return (a.id, kind, a.shape, from_vec3(a.position_), from_quat(a.rotation_),
            from_vec3(a.scale_), a.body_, a.layer_, a.behavior_)


def _actor_of(Scene scene not None, id):
    """Return a pickled or copied actor."""
    actor = scene.actor(id)
    if actor is None:
        raise ValueError(f"state is damaged: the scene has no actor {id}")
    return actor


def _scene_again(records, next_id):
    """Return a pickled or copied scene; its actors keep their ids and, to the bit, their poses."""
    cdef Scene scene = Scene()
    cdef list actors = [_actor_again(r) for r in records]
    ids = [(<Actor>a).id for a in actors]
    if sorted(set(ids)) != ids or ids and not 0 <= min(ids) <= max(ids) < next_id:
        raise ValueError("state is damaged: its ids make no sense")
    for actor in actors:
        scene._check_span(actor)
    with scene.lock:
        for actor in actors:
            (<Actor>actor).scene_ = scene
            scene._keep(actor)
        scene.next_id = next_id
    return scene


cdef Actor _actor_again(record):
    id, kind, shape, position, rotation, scale, body, layer, behavior = record
    cdef Actor actor = Obstacle.__new__(Obstacle) if kind == RECORD_OBSTACLE else Actor.__new__(Actor)
    cdef vec3 k = as_vec3(scale, "scale")
    if (not isinstance(shape, Shape) or (<Shape>shape).kind < 0 or body not in BODY_NAMES
            or kind not in (RECORD_ACTOR, RECORD_OBSTACLE, RECORD_TRIGGER)
            or kind == RECORD_OBSTACLE and not isinstance(shape, (Box, Capsule))):
        raise ValueError("state is damaged: it is not that of a scene")
    _check_scale(shape, k)
    as_quat(rotation, "rotation")
    actor.trigger_ = kind == RECORD_TRIGGER
    actor.shape = shape
    actor.position_ = as_place(position, "position")
    actor.rotation_.x, actor.rotation_.y, actor.rotation_.z, actor.rotation_.w = rotation
    actor.scale_ = k
    actor.body_ = body
    actor.layer_ = as_bits(layer, "layer")
    actor.behavior_ = as_behavior(behavior, "behavior")
    actor.id = id
    return actor
