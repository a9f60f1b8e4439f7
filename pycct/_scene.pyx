# cython: language_level=3
"""The scene: actors under a lock, and the immutable pictures of them that moves read."""
from threading import RLock
from weakref import WeakSet

import numpy as np

cimport cython
from libc.math cimport fabs
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from pycct._ask cimport (
    View,
    ask_closest,
    ask_closest_many,
    ask_raycast,
    ask_raycast_many,
    ask_sweep,
    ask_sweep_many,
    ask_touching,
    ask_touching_many,
)
from pycct._bvh cimport box32, box32_around, bvh_build, bvh_free
from pycct._convert cimport (
    FARTHEST,
    as_bits,
    as_place,
    as_quat,
    as_vec3,
    from_quat,
    from_vec3,
    raise_status,
)
from pycct._hull cimport HullTables
from pycct._neighbours cimport Neighbours
from pycct._shapes cimport Box, Capsule, ConvexHull, Shape
from pycct._types cimport (
    BODY_DYNAMIC,
    BODY_KINEMATIC,
    BODY_STATIC,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    STATUS_OK,
)
from pycct._vec cimport (
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
from pycct._world cimport capsule_bounds, place_point, placed

from pycct._enums import Behavior

BODIES = {"static": BODY_STATIC, "kinematic": BODY_KINEMATIC, "dynamic": BODY_DYNAMIC}
INCLUDES = ("actors", "characters", "all")
BODY_NAMES = {number: name for name, number in BODIES.items()}
cdef uint64_t last_version = 0


@cython.final
cdef class Part:
    def __dealloc__(self):
        free(self.data.items)
        free(self.data.endless)
        bvh_free(&self.data.tree)


cdef Part _publish(list actors):
    """Freeze actors into a part."""
    cdef Part part = Part.__new__(Part)
    cdef Actor actor
    cdef int32_t i = 0
    part.owners = actors
    _reserve(part, len(actors))
    for actor in actors:
        actor.fill(&part.data.items[i])
        i += 1
    _finish(part)
    return part


cdef Part _publish_characters(list characters):
    """Freeze controllers into a part, as the capsules they are now."""
    cdef Part part = Part.__new__(Part)
    cdef placed* p
    cdef vec3 centre, half
    cdef int32_t i
    part.owners = characters
    _reserve(part, len(characters))
    for i in range(len(characters)):
        who = characters[i]
        p = &part.data.items[i]
        centre = as_vec3(who.position, "position")
        half = v3_scale(as_vec3(who.up, "up"), 0.5 * <double>who.height)
        p.kind = SHAPE_CAPSULE
        p.body = BODY_KINEMATIC
        p.layer = who.layer
        p.id = who.id
        p.radius = who.radius
        p.position = centre
        p.rotation.w = 1.0
        p.matrix = q_matrix(p.rotation)
        p.scale = v3(1.0, 1.0, 1.0)
        p.a = v3_sub(centre, half)
        p.b = v3_add(centre, half)
        p.bounds = capsule_bounds(p.a, p.b, p.radius)
        p.bounds = box_grow(p.bounds, 1e-9 * f_span(p.bounds))
    _finish(part)
    return part


cdef int _reserve(Part part, Py_ssize_t n) except -1:
    if n > 2**31 - 1:
        raise ValueError("a scene can hold at most 2**31 - 1 actors")
    if n > 0:
        part.data.items = <placed*>calloc(n, sizeof(placed))
        part.data.endless = <int32_t*>malloc(n * sizeof(int32_t))
        if part.data.items == NULL or part.data.endless == NULL:
            raise MemoryError("pycct: out of memory")
    part.data.n = <int32_t>n
    return 0


cdef int _finish(Part part) except -1:
    """Tree and version."""
    global last_version
    cdef int32_t n = part.data.n, i, bounded = 0, k
    cdef box32* boxes
    cdef int32_t* which
    cdef int status = STATUS_OK
    last_version += 1
    part.data.version = last_version
    if n == 0:
        return 0
    boxes = <box32*>malloc(n * sizeof(box32))
    which = <int32_t*>malloc(n * sizeof(int32_t))
    try:
        if boxes == NULL or which == NULL:
            raise MemoryError("pycct: out of memory")
        for i in range(n):
            if part.data.items[i].kind == SHAPE_PLANE:
                part.data.endless[part.data.n_endless] = i
                part.data.n_endless += 1
            else:
                boxes[bounded] = box32_around(part.data.items[i].bounds)
                which[bounded] = i
                bounded += 1
        with nogil:
            status = bvh_build(&part.data.tree, boxes, bounded)
        raise_status(status)
        for k in range(bounded):
            part.data.tree.order[k] = which[part.data.tree.order[k]]
    finally:
        free(boxes)
        free(which)
    return 0


@cython.final
cdef class Snapshot:
    pass


cdef class Actor:
    """A shape placed in a scene; made by `Scene.add`."""

    def __init__(self):
        raise TypeError("an Actor is made by Scene.add")

    @property
    def scene(self):
        """The scene, or None once the actor has been removed."""
        return self.scene_

    @property
    def position(self):
        """Where the shape's origin is, metres."""
        return from_vec3(self.position_)

    @property
    def rotation(self):
        """Unit quaternion (x, y, z, w)."""
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
    def behavior(self):
        """What characters may do on it (Behavior); settable."""
        return Behavior(self.behavior_)

    @behavior.setter
    def behavior(self, value):
        cdef uint32_t bits = as_bits(value, "behavior")
        cdef Scene scene = self._home()
        with scene.lock:
            self._stay(scene)
            self.behavior_ = bits
            scene.touch(self.body_)

    @property
    def layer(self):
        """Bit set; a character sees the actor when it meets the character's mask. Settable."""
        return self.layer_

    @layer.setter
    def layer(self, value):
        cdef uint32_t bits = as_bits(value, "layer")
        cdef Scene scene = self._home()
        with scene.lock:
            self._stay(scene)
            self.layer_ = bits
            scene.touch(self.body_)

    @property
    def bounds(self):
        """Corners (lo, hi) of the bounding box in the world, metres."""
        cdef placed p
        if self.shape is None:
            raise RuntimeError("an Actor is made by Scene.add")
        self.fill(&p)
        return from_vec3(p.bounds.lo), from_vec3(p.bounds.hi)

    def move_to(self, position, rotation=None):
        """Put the actor elsewhere; moves and questions that begin later see it there.

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
            self.position_ = p
            if rotation is not None:
                self.rotation_ = q
            scene.touch(self.body_)

    cdef Scene _home(self):
        """The scene, to be locked; RuntimeError once removed."""
        cdef Scene scene = self.scene_
        if scene is None:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")
        return scene

    cdef int _stay(self, Scene scene) except -1:
        """With the lock held: it may have been removed while this thread waited."""
        if self.scene_ is not scene:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")
        return 0

    def __repr__(self):
        where = "removed" if self.scene_ is None else f"at {self.position}"
        return f"<{type(self).__name__} {self.id}: {self.shape!r}, {self.body}, {where}>"

    cdef int fill(self, placed* p) except -1:
        """Write the record that moves read."""
        cdef Shape s = self.shape
        cdef vec3 half, centre, k
        cdef aabb b = s.bounds_
        memset(p, 0, sizeof(placed))
        p.kind = s.kind
        p.body = self.body_
        p.layer = self.layer_
        p.behavior = self.behavior_
        p.id = self.id
        p.obstacle = isinstance(self, Obstacle)
        p.position = self.position_
        p.rotation = self.rotation_
        # A box is its own mirror image.
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
        # Rounding on the way to the world.
        p.bounds = box_grow(p.bounds, 1e-9 * f_span(p.bounds))
        return 0


@cython.final
cdef class Obstacle(Actor):
    """A box or capsule that only characters meet; made by `Scene.add_obstacle`."""


cdef double f_span(aabb b) noexcept nogil:
    return v3_max_abs(v3_max(v3_abs(b.lo), v3_abs(b.hi)))


@cython.final
cdef class Edit:
    """Several changes of a scene as one; made by `Scene.edit`."""

    cdef Scene scene
    cdef int depth              # how often it has been entered

    def __init__(self):
        raise TypeError("an Edit is made by Scene.edit")

    def __enter__(self):
        if self.scene is None:
            raise RuntimeError("an Edit is made by Scene.edit")
        self.scene.lock.acquire()
        try:
            if self.scene.editing == 0:
                self.scene.snapshot()
            self.scene.editing += 1
            self.depth += 1
        except BaseException:
            self.scene.lock.release()
            raise
        return self.scene

    def __exit__(self, *problem):
        if self.depth == 0:
            raise RuntimeError("the edit has not been entered")
        self.depth -= 1
        self.scene.editing -= 1
        if self.scene.editing == 0 and self.scene.fixed_dirty:
            self.scene.timestamp += 1
        self.scene.lock.release()
        return False


@cython.final
cdef class Scene:
    """Shapes placed in a world.

    Thread safety: may be read and changed from any thread at any time; a move or
    question in flight goes on with the world as it was when it began.

    Lifetimes: a scene keeps its actors, an actor its shape and its scene, a controller its
    scene; all go when nobody needs them any more. A shape may stand in any number of scenes
    and threads. A removed actor stays readable, its ``scene`` is None and it cannot be moved;
    a character that stood on it falls in its next move. A question or move in flight keeps
    the world that it began with.

    Adding thousands of actors with questions in between publishes the world each time: put
    such changes into one `edit`.
    """

    def __cinit__(self):
        self.lock = RLock()
        self.actors_ = {}
        self.fixed_ = {}
        self.moving_ = {}
        self.editing = 0
        self.neighbours = Neighbours()
        self.characters_ = {}
        self.crowds_ = WeakSet()
        self.next_character = 0
        self.next_id = 0
        self.fixed_dirty = True
        self.moving_dirty = True
        self.current = None
        self.timestamp = 0

    cdef int touch(self, int body) except -1:
        """Note that actors of this kind changed."""
        if body == BODY_STATIC:
            if not self.editing:
                self.timestamp += 1
            self.fixed_dirty = True
        else:
            self.moving_dirty = True
        return 0

    cdef Snapshot snapshot(self):
        """The world as it is now; published by the first reader after a change."""
        cdef Snapshot fresh, old
        if self.editing or not (self.fixed_dirty or self.moving_dirty):
            return self.current
        with self.lock:
            old = self.current
            if self.editing or not (self.fixed_dirty or self.moving_dirty):
                return old
            fresh = Snapshot.__new__(Snapshot)
            if self.fixed_dirty or old is None:
                fresh.fixed = _publish(list(self.fixed_.values()))
                fresh.fixed.data.timestamp = self.timestamp
            else:
                fresh.fixed = old.fixed
            if self.moving_dirty or old is None:
                fresh.moving = _publish(list(self.moving_.values()))
            else:
                fresh.moving = old.moving
            self.current = fresh
            self.fixed_dirty = False
            self.moving_dirty = False
            return fresh

    cdef View view(self, dict options):
        """What a question sees."""
        cdef View v = View.__new__(View)
        cdef Snapshot snap
        cdef Part part
        # The word is a keyword of Cython, so no parameter can have that name.
        what = options.get("include", "actors")
        if len(options) > (1 if "include" in options else 0):
            raise TypeError(f"unexpected keyword argument {next(k for k in options if k != 'include')!r}")
        if not isinstance(what, str) or what not in INCLUDES:
            raise ValueError(f"include must be 'actors', 'characters' or 'all', not {what!r}")
        if what != "characters":
            snap = self.snapshot()
            v.fixed = &snap.fixed.data
            v.moving = &snap.moving.data
            v.fixed_owners = snap.fixed.owners
            v.moving_owners = snap.moving.owners
            v.keep = snap
        if what != "actors":
            part = _publish_characters(self.characters)
            v.characters = &part.data
            v.character_owners = part.owners
            v.keep = (v.keep, part)
        return v

    def edit(self):
        """Make several changes one.

        ``with scene.edit(): ...`` holds the scene: until the block ends, moves and questions
        (of any thread, this one included) see the world as it was before it, and other
        threads' changes wait; then all changes show at once and count as one in `timestamp`.
        Changes made before an exception stay.

        Returns
        -------
        context manager
        """
        cdef Edit edit = Edit.__new__(Edit)
        edit.scene = self
        return edit

    def add(self, shape, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0, 1.0), scale=(1.0, 1.0, 1.0), *,
            body="static", layer=1, behavior=0, user_data=None):
        """Place a shape in the scene.

        Parameters
        ----------
        shape : Shape
            Mesh, Heightfield, Box, Sphere, Capsule, ConvexHull, Plane or Triangle; may be shared.
        position : (3,) floats
            Where the shape's origin goes, metres.
        rotation : (4,) floats
            Unit quaternion (x, y, z, w); normalised when nearly one, else refused.
        scale : (3,) floats
            Factors along the shape's own axes, not zero; negative ones mirror. Spheres
            and capsules take one positive factor three times, planes none.
        body : {'static', 'kinematic', 'dynamic'}
            Kinematic actors carry characters up and down, and with
            ``behavior=Behavior.CAN_RIDE`` aside as well; overlap recovery never pushes a character
            out of a dynamic one.
        layer : int
            Bit set, 32 bits; a character sees the actor when it meets the character's mask.
        behavior : Behavior
            What characters may do on it.
        user_data : object
            Yours.

        Returns
        -------
        Actor
        """
        cdef Actor actor
        cdef vec3 p, s
        cdef quat q
        if not isinstance(shape, Shape):
            raise TypeError(f"shape must be a shape, not {type(shape).__name__}")
        if (<Shape>shape).kind < 0:
            raise ValueError(f"shape was not initialised: call {type(shape).__name__}.__init__")
        p = as_place(position, "position")
        q = as_quat(rotation, "rotation")
        s = as_vec3(scale, "scale")
        if s.x == 0.0 or s.y == 0.0 or s.z == 0.0:
            raise ValueError(f"scale must not be zero on any axis, got {from_vec3(s)}")
        if (<Shape>shape).kind in (SHAPE_SPHERE, SHAPE_CAPSULE) and not (s.x == s.y == s.z and s.x > 0.0):
            raise ValueError(f"scale of a sphere or capsule must be the same positive factor three times, "
                             f"got {from_vec3(s)}")
        if (<Shape>shape).kind == SHAPE_PLANE and not (s.x == s.y == s.z == 1.0):
            raise ValueError(f"scale of a plane must be (1, 1, 1), got {from_vec3(s)}")
        if not isinstance(body, str) or body not in BODIES:
            raise ValueError(f"body must be 'static', 'kinematic' or 'dynamic', not {body!r}")
        actor = Actor.__new__(Actor)
        actor.shape = shape
        actor.position_ = p
        actor.rotation_ = q
        actor.scale_ = s
        actor.body_ = BODIES[body]
        actor.layer_ = as_bits(layer, "layer")
        actor.behavior_ = as_bits(behavior, "behavior")
        actor.user_data = user_data
        self._check_span(actor)
        with self.lock:
            actor.id = self.next_id
            self.next_id += 1
            actor.scene_ = self
            self._keep(actor)
        return actor

    def add_obstacle(self, shape, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0, 1.0), *, layer=1,
                     behavior=Behavior.CAN_RIDE, user_data=None):
        """Place an obstacle: geometry for characters only (RULES 2 and 8).

        It is analytic, so never too steep; it carries who stands on it; overlaps with it
        are ignored; questions to the world do not see it.

        Parameters
        ----------
        shape : Box or Capsule
        position, rotation
            Its pose.
        layer : int
            Bit set; a character sees it when it meets the character's mask.
        behavior : Behavior
            What characters may do on it.
        user_data : object
            Yours.

        Returns
        -------
        Obstacle
            Move it with ``move_to``, take it away with `Scene.remove`.
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
        obstacle.behavior_ = as_bits(behavior, "behavior")
        obstacle.user_data = user_data
        self._check_span(obstacle)
        with self.lock:
            obstacle.id = self.next_id
            self.next_id += 1
            obstacle.scene_ = self
            self._keep(obstacle)
        return obstacle

    cdef int _keep(self, Actor actor) except -1:
        self.actors_[actor.id] = actor
        if actor.body_ == BODY_STATIC:
            self.fixed_[actor.id] = actor
        else:
            self.moving_[actor.id] = actor
        self.touch(actor.body_)
        return 0

    cdef int _check_span(self, Actor actor) except -1:
        cdef placed p
        actor.fill(&p)
        if p.kind == SHAPE_PLANE:
            if not fabs(p.offset) <= 2.0 * FARTHEST:
                raise ValueError(f"shape must pass within {2.0 * FARTHEST:g} m of the origin once placed")
        elif not f_span(p.bounds) <= 2.0 * FARTHEST:
            raise ValueError(f"shape must lie within {2.0 * FARTHEST:g} m of the origin once placed")
        return 0

    def remove(self, actor):
        """Take an actor out of the scene; characters that stand on it fall in their next move."""
        if not isinstance(actor, Actor):
            raise TypeError(f"actor must be an Actor, not {type(actor).__name__}")
        with self.lock:
            if (<Actor>actor).scene_ is not self:
                raise ValueError("actor is not in this scene")
            del self.actors_[(<Actor>actor).id]
            if (<Actor>actor).body_ == BODY_STATIC:
                del self.fixed_[(<Actor>actor).id]
            else:
                del self.moving_[(<Actor>actor).id]
            (<Actor>actor).scene_ = None
            self.touch((<Actor>actor).body_)

    @property
    def actors(self):
        """All actors, in the order of adding; obstacles are not among them."""
        return [a for a in list(self.actors_.values()) if not isinstance(a, Obstacle)]

    @property
    def obstacles(self):
        """All obstacles, in the order of adding."""
        return [a for a in list(self.actors_.values()) if isinstance(a, Obstacle)]

    @property
    def characters(self):
        """The living controllers of this scene, in the order of their making; not those of crowds."""
        found = [r() for r in list(self.characters_.values())]
        return [c for c in found if c is not None]

    def character(self, id):
        """The living controller or member of a crowd of that id, or None."""
        r = self.characters_.get(id)
        if r is not None:
            return r()
        for crowd in list(self.crowds_):
            member = crowd.member(id)
            if member is not None:
                return member
        return None

    @property
    def crowds(self):
        """The living crowds of this scene."""
        return list(self.crowds_)

    def actor(self, id):
        """The actor or obstacle of that id, or None."""
        return self.actors_.get(id)

    def __reduce__(self):
        # Characters are not in it: each takes its scene along, and pickle keeps them one. user_data is state, not
        # an argument, so that it may refer to the scene, and to characters that look for their proxy in it.
        with self.lock:
            return (_scene_again, ([_record_of(a) for a in self.actors_.values()], self.next_id),
                    {a.id: a.user_data for a in self.actors_.values()})

    def __setstate__(self, state):
        """Give actors their user_data, by id."""
        for id, user_data in state.items():
            if id not in self.actors_:
                raise ValueError("state is damaged: its ids make no sense")
            self.actors_[id].user_data = user_data

    def __len__(self):
        return len(self.actors_)

    def __repr__(self):
        return f"<Scene: {len(self.actors_)} actors>"

    def move_actors(self, ids, positions, rotations=None):
        """Put many actors elsewhere at once.

        Parameters
        ----------
        ids : (n,) array of integers
            Ids of actors or obstacles of this scene, each once.
        positions : (n, 3) array of floats
            Metres.
        rotations : (n, 4) array of floats or (4,) floats, optional
            Unit quaternions (x, y, z, w), or one for all; the default keeps each rotation.
        """
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
        if places.shape != (given.shape[0], 3):
            raise ValueError(f"positions must have shape ({given.shape[0]}, 3), got {places.shape}")
        if not np.isfinite(places).all() or (places.size and np.abs(places).max() > FARTHEST):
            raise ValueError(f"positions must be finite and lie within {FARTHEST:g} m of the origin")
        turns = None
        if rotations is not None:
            try:
                turns = np.asarray(rotations, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                raise TypeError("rotations must be an array of finite numbers of shape (n, 4)") from None
            if turns.shape == (4,):
                turns = np.broadcast_to(turns, (given.shape[0], 4))
            if turns.shape != (given.shape[0], 4):
                raise ValueError(f"rotations must have shape ({given.shape[0]}, 4) or (4,), got {turns.shape}")
            turns = [as_quat(row, "rotations") for row in turns.tolist()]
        p = places
        with self.lock:
            actors = [self.actors_.get(k) for k in given.tolist()]
            if None in actors:
                raise ValueError(f"ids must be of actors in this scene, {given[actors.index(None)]} is not")
            if len(set(given.tolist())) != len(actors):
                raise ValueError("ids must be different from one another")
            with self.edit():
                for i in range(len(actors)):
                    actor = actors[i]
                    actor.position_ = v3_load(&p[i, 0])
                    if turns is not None:
                        actor.rotation_ = turns[i]
                    self.touch(actor.body_)

    def shift_origin(self, offset):
        """Move the origin of the coordinates to ``offset``; the world stays where it is.

        Subtracts the offset from the position of every actor, obstacle and character of the
        scene, so that a world that has walked far out keeps its digits. Controllers keep what
        they stand on. Not for a scene whose characters move at the same time in other threads.

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
            try:
                for follower in followers:
                    follower._shift_origin(from_vec3(o))
                    shifted.append(follower)
            except BaseException:
                for follower in shifted:
                    follower._shift_origin(from_vec3(v3_neg(o)))
                raise
            with self.edit():
                for actor in self.actors_.values():
                    actor.position_ = v3_sub(actor.position_, o)
                    self.touch(actor.body_)

    @property
    def triangle_count(self):
        """Triangles of all meshes and heightfields placed in the scene, each placing counted."""
        return sum(a.shape.triangle_count for a in self.actors if hasattr(a.shape, "triangle_count"))

    def raycast(self, origin, direction, distance, mask=0xFFFFFFFF, filter=None, **options):
        """First thing met by a ray.

        Solids (box, sphere, capsule, hull, plane) are solid: a ray that starts inside meets
        them at distance 0. Triangles are met from their front, those of two-sided meshes from
        both sides; a ray cannot slip through between two that share an edge.

        Parameters
        ----------
        origin : (3,) floats
            Metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            How far to look, metres, >= 0.
        mask : int
            Layers to see: of actors, and of triangles that have a mask (SWEEP 3.2).
        filter : callable, optional
            ``filter(actor) -> bool``, asked once about each actor whose bounds the question
            comes near to; those for which it is false are passed over.
        include : {'actors', 'characters', 'all'}
            What to see. Obstacles are never seen.

        Returns
        -------
        SceneHit or None
        """
        return ask_raycast(self.view(options), origin, direction, distance, mask, filter)

    def raycast_many(self, origins, directions, distances, mask=0xFFFFFFFF, filter=None, **options):
        """`raycast` for many rays; the GIL is released once.

        Parameters
        ----------
        origins : (n, 3) array of floats
        directions : (n, 3) array of floats or (3,) floats
        distances : float or (n,) array of floats
        mask, filter, include
            As for `raycast`; a filter is asked once about each actor for the whole batch.

        Returns
        -------
        HitArrays
        """
        return ask_raycast_many(self.view(options), origins, directions, distances, mask, filter)

    def sweep(self, shape, position, direction, distance, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None,
              **options):
        """First thing met by a shape that moves along a straight line.

        Solids are solid: a start inside gives distance 0 (RULES 7.6). Triangles are met from
        their front, those of two-sided meshes from both sides. Exact for every pair of shapes:
        no iteration, and no more than rounding (some 1e-14 of the size; see _polycast for
        boxes, hulls and triangles).

        Parameters
        ----------
        shape : Sphere, Capsule, Box, ConvexHull, Triangle or Plane
            A mesh or heightfield cannot ask.
        position : (3,) floats
            Where the shape's origin starts, metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            How far to look, metres, >= 0.
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
                   filter=None, **options):
        """`sweep` for many motions of one shape; the GIL is released once.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        directions : (n, 3) array of floats or (3,) floats
        distances : float or (n,) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, include
            As for `raycast_many`.

        Returns
        -------
        HitArrays
        """
        return ask_sweep_many(self.view(options), shape, positions, directions, distances, rotations, mask, filter)

    def overlap(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, **options):
        """Actors that a shape touches; triangles count from both sides (RULES 7.6).

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

    def overlap_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, **options):
        """`overlap` for many poses of one shape; the GIL is released once.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, include
            As for `raycast_many`.

        Returns
        -------
        TouchArrays
        """
        return ask_touching_many(self.view(options), shape, positions, rotations, mask, filter, False)

    def penetration(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, **options):
        """Actors that a shape enters, and the shortest way out of each.

        Out of a mesh, heightfield or triangle up to four pushes are added up, each out of the
        triangle that is entered deepest among those on whose front the shape's centre is
        (RULES 7.5): such a way out is short, but may leave a rest when several triangles are
        left at once.

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

    def penetration_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None,
                         **options):
        """`penetration` for many poses of one shape; the GIL is released once.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, include
            As for `raycast_many`.

        Returns
        -------
        TouchArrays
        """
        return ask_touching_many(self.view(options), shape, positions, rotations, mask, filter, True)

    def closest_points(self, shape, position, max_distance=float("inf"), rotation=(0.0, 0.0, 0.0, 1.0),
                       mask=0xFFFFFFFF, filter=None, **options):
        """The nearest pair of points of a shape and the world (SWEEP 2.3).

        Parameters
        ----------
        shape
            As for `sweep`.
        position, rotation
            Pose of the shape.
        max_distance : float
            Nothing farther is found, metres, >= 0.
        mask, filter, include
            As for `raycast`.

        Returns
        -------
        ClosestPoints or None
            Its distance is negative when the shape enters what is nearest; of several such
            the one it enters deepest.
        """
        return ask_closest(self.view(options), shape, position, max_distance, rotation, mask, filter)

    def closest_points_many(self, shape, positions, max_distance=float("inf"), rotations=(0.0, 0.0, 0.0, 1.0),
                            mask=0xFFFFFFFF, filter=None, **options):
        """`closest_points` for many poses of one shape; the GIL is released once.

        Parameters
        ----------
        shape
            As for `sweep`.
        positions : (n, 3) array of floats
        max_distance : float or (n,) array of floats
        rotations : (n, 4) array of floats or (4,) floats
        mask, filter, include
            As for `raycast_many`.

        Returns
        -------
        ClosestArrays
        """
        return ask_closest_many(self.view(options), shape, positions, max_distance, rotations, mask, filter)


cdef tuple _record_of(Actor a):
    """What makes an actor again."""
    return (a.id, isinstance(a, Obstacle), a.shape, from_vec3(a.position_), from_quat(a.rotation_),
            from_vec3(a.scale_), a.body_, a.layer_, a.behavior_)


def _scene_again(records, next_id):
    """A pickled or copied scene; its actors keep their ids and, to the bit, their places."""
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
    id, obstacle, shape, position, rotation, scale, body, layer, behavior = record
    cdef Actor actor = Obstacle.__new__(Obstacle) if obstacle else Actor.__new__(Actor)
    cdef vec3 k = as_vec3(scale, "scale")
    if not isinstance(shape, Shape) or (<Shape>shape).kind < 0 or body not in BODY_NAMES or k.x * k.y * k.z == 0.0:
        raise ValueError("state is damaged: it is not that of a scene")
    as_quat(rotation, "rotation")
    actor.shape = shape
    actor.position_ = as_place(position, "position")
    actor.rotation_.x, actor.rotation_.y, actor.rotation_.z, actor.rotation_.w = rotation
    actor.scale_ = k
    actor.body_ = body
    actor.layer_ = as_bits(layer, "layer")
    actor.behavior_ = as_bits(behavior, "behavior")
    actor.id = id
    return actor
