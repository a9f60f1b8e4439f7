# cython: language_level=3
"""The scene: actors under a lock, and the immutable pictures of them that moves read."""
from threading import RLock

cimport cython
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from pycct._bvh cimport box32, box32_around, bvh_build, bvh_free
from pycct._convert cimport as_not_negative, as_quat, as_unit, as_vec3, from_quat, from_vec3, raise_status
from pycct._hull cimport HullTables
from pycct._neighbours cimport Neighbours
from pycct._overlap cimport push_out
from pycct._shapes cimport Box, Capsule, ConvexHull, Shape, Sphere
from pycct._sweep cimport capsule_cast, capsule_cast_of
from pycct._types cimport (
    BODY_DYNAMIC,
    BODY_KINEMATIC,
    BODY_STATIC,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    STATUS_NO_MEMORY,
    STATUS_OK,
)
from pycct._vec cimport (
    aabb,
    box_centre,
    box_grow,
    box_half,
    box_of,
    box_union,
    m3_mul,
    q_is_identity,
    q_matrix,
    q_rotate,
    quat,
    v3,
    v3_abs,
    v3_add,
    v3_dot,
    v3_is_zero,
    v3_madd,
    v3_max,
    v3_min,
    v3_max_abs,
    v3_neg,
    v3_scale,
    v3_sub,
)
from pycct._world cimport (
    candidates,
    candidates_cast,
    candidates_free,
    candidates_gather,
    candidates_init,
    capsule_bounds,
    group_overlaps,
    group_push,
    place_point,
    world_hit,
)

from pycct._enums import Behavior

BODIES = {"static": BODY_STATIC, "kinematic": BODY_KINEMATIC, "dynamic": BODY_DYNAMIC}
BODY_NAMES = {number: name for name, number in BODIES.items()}
cdef uint32_t ALL_LAYERS = 0xFFFFFFFF
# A coordinate in a scene may not be larger than this, metres: beyond it, float64
# itself resolves no better than a millimetre.
cdef double FARTHEST = 1e12

cdef uint64_t last_version = 0


cdef uint32_t as_bits(object value, str name) except? 0:
    try:
        bits = int(value)
        if bits != value:
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if not 0 <= bits <= 0xFFFFFFFF:
        raise ValueError(f"{name} must fit into 32 bits, got {bits}")
    return <uint32_t>bits


cdef vec3 as_place(object value, str name) except *:
    """A position within the farthest allowed distance."""
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > FARTHEST:
        raise ValueError(f"{name} must lie within {FARTHEST:g} m of the origin, got {from_vec3(v)}")
    return v


@cython.final
cdef class Part:
    def __dealloc__(self):
        free(self.data.items)
        free(self.data.endless)
        bvh_free(&self.data.tree)


cdef Part _publish(list actors):
    """Freeze actors into a part."""
    global last_version
    cdef Part part = Part.__new__(Part)
    cdef int32_t n = len(actors), i, bounded = 0, k
    cdef Actor actor
    cdef box32* boxes
    cdef int32_t* which
    cdef int status = STATUS_OK
    part.shapes = []
    last_version += 1
    part.data.version = last_version
    if n == 0:
        return part
    part.data.items = <placed*>calloc(n, sizeof(placed))
    part.data.endless = <int32_t*>malloc(n * sizeof(int32_t))
    boxes = <box32*>malloc(n * sizeof(box32))
    which = <int32_t*>malloc(n * sizeof(int32_t))
    try:
        if part.data.items == NULL or part.data.endless == NULL or boxes == NULL or which == NULL:
            raise MemoryError("pycct: out of memory")
        for i in range(n):
            actor = actors[i]
            part.shapes.append(actor.shape)
            actor.fill(&part.data.items[i])
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
        part.data.n = n
    finally:
        free(boxes)
        free(which)
    return part


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
        self._change()
        with self.scene_.lock:
            self.behavior_ = bits
            self.scene_.touch(self.body_)

    @property
    def layer(self):
        """Bit set; a character sees the actor when it meets the character's mask. Settable."""
        return self.layer_

    @layer.setter
    def layer(self, value):
        cdef uint32_t bits = as_bits(value, "layer")
        self._change()
        with self.scene_.lock:
            self.layer_ = bits
            self.scene_.touch(self.body_)

    @property
    def bounds(self):
        """Corners (lo, hi) of the bounding box in the world, metres."""
        cdef placed p
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
        cdef quat q = self.rotation_ if rotation is None else as_quat(rotation, "rotation")
        self._change()
        with self.scene_.lock:
            self.position_ = p
            self.rotation_ = q
            self.scene_.touch(self.body_)

    def _change(self):
        if self.scene_ is None:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")

    def __repr__(self):
        where = "removed" if self.scene_ is None else f"at {self.position}"
        return f"<Actor {self.id}: {self.shape!r}, {self.body}, {where}>"

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
        p.scale = self.scale_
        p.matrix = q_matrix(self.rotation_)
        p.plain = (q_is_identity(self.rotation_) and self.scale_.x == 1.0 and self.scale_.y == 1.0
                   and self.scale_.z == 1.0)
        p.mirrored = self.scale_.x * self.scale_.y * self.scale_.z < 0.0
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
cdef class SceneHit:
    """What a question to the world found."""

    cdef readonly double distance
    cdef readonly double time
    cdef vec3 position_
    cdef vec3 normal_
    cdef readonly object actor
    cdef readonly object triangle
    cdef readonly object data
    cdef readonly bint overlapping

    @property
    def position(self):
        """Point of contact, metres."""
        return from_vec3(self.position_)

    @property
    def normal(self):
        """Unit normal out of what was hit; against the direction when overlapping."""
        return from_vec3(self.normal_)

    def __repr__(self):
        return (f"<SceneHit: {self.actor!r} at distance {self.distance:.6g}, position {self.position}, "
                f"normal {self.normal}, triangle {self.triangle}>")


@cython.final
cdef class Penetration:
    """An actor that a shape enters, and the shortest way out."""

    cdef readonly object actor
    cdef vec3 direction_
    cdef readonly double depth

    @property
    def direction(self):
        """Unit vector that moves the shape out."""
        return from_vec3(self.direction_)

    def __iter__(self):
        return iter((self.actor, self.direction, self.depth))

    def __repr__(self):
        return f"<Penetration: {self.actor!r}, {self.depth:.6g} along {self.direction}>"


@cython.final
cdef class Scene:
    """Shapes placed in a world.

    Thread safety: may be read and changed from any thread at any time; a move or
    question in flight goes on with the world as it was when it began.
    """

    def __init__(self):
        self.lock = RLock()
        self.actors_ = {}
        self.neighbours = Neighbours()
        self.characters_ = {}
        self.next_character = 0
        self.next_id = 0
        self.fixed_dirty = True
        self.moving_dirty = True
        self.current = None
        self.timestamp = 0

    cdef int touch(self, int body) except -1:
        """Note that actors of this kind changed."""
        if body == BODY_STATIC:
            self.fixed_dirty = True
            self.timestamp += 1
        else:
            self.moving_dirty = True
        return 0

    cdef Snapshot snapshot(self):
        """The world as it is now; published by the first reader after a change."""
        cdef Snapshot fresh, old
        cdef Actor actor
        if not self.fixed_dirty and not self.moving_dirty:
            return self.current
        with self.lock:
            old = self.current
            if not self.fixed_dirty and not self.moving_dirty:
                return old
            fresh = Snapshot.__new__(Snapshot)
            if self.fixed_dirty or old is None:
                fresh.fixed = _publish([a for a in self.actors_.values() if (<Actor>a).body_ == BODY_STATIC])
            else:
                fresh.fixed = old.fixed
            if self.moving_dirty or old is None:
                fresh.moving = _publish([a for a in self.actors_.values() if (<Actor>a).body_ != BODY_STATIC])
            else:
                fresh.moving = old.moving
            self.current = fresh
            self.fixed_dirty = False
            self.moving_dirty = False
            return fresh

    def add(self, shape, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0, 1.0), scale=(1.0, 1.0, 1.0), *,
            body="static", layer=1, behavior=0, user_data=None):
        """Place a shape in the scene.

        Parameters
        ----------
        shape : Shape
            Mesh, Box, Sphere, Capsule, ConvexHull, Plane or Triangle; may be shared.
        position : (3,) floats
            Where the shape's origin goes, metres.
        rotation : (4,) floats
            Unit quaternion (x, y, z, w); normalised when nearly one, else refused.
        scale : (3,) floats
            Factors along the shape's own axes, not zero; negative ones mirror. Spheres
            and capsules take one positive factor three times, planes none.
        body : {'static', 'kinematic', 'dynamic'}
            Kinematic actors carry characters; overlap recovery never pushes a character
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
            raise ValueError("shape was never initialised")
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
            self.actors_[actor.id] = actor
            self.touch(actor.body_)
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
            self.actors_[obstacle.id] = obstacle
            self.touch(BODY_KINEMATIC)
        return obstacle

    def _check_span(self, Actor actor):
        cdef placed p
        actor.fill(&p)
        if p.kind != SHAPE_PLANE and not f_span(p.bounds) <= 2.0 * FARTHEST:
            raise ValueError(f"shape must lie within {2.0 * FARTHEST:g} m of the origin once placed")

    def remove(self, actor):
        """Take an actor out of the scene; characters that stand on it fall in their next move."""
        if not isinstance(actor, Actor):
            raise TypeError(f"actor must be an Actor, not {type(actor).__name__}")
        with self.lock:
            if (<Actor>actor).scene_ is not self:
                raise ValueError("actor is not in this scene")
            del self.actors_[(<Actor>actor).id]
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
        """The living controllers of this scene, in the order of their making."""
        found = [r() for r in list(self.characters_.values())]
        return [c for c in found if c is not None]

    def character(self, id):
        """The living controller of that id, or None."""
        r = self.characters_.get(id)
        return None if r is None else r()

    def actor(self, id):
        """The actor or obstacle of that id, or None."""
        return self.actors_.get(id)

    def __len__(self):
        return len(self.actors_)

    def __repr__(self):
        return f"<Scene: {len(self.actors_)} actors>"

    def sweep(self, shape, position, direction, distance, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """First thing met by a shape that moves along a straight line.

        Boxes and hulls are solid: a start inside gives distance 0 (RULES 7.6).
        Triangles are met from their front, two-sided meshes from both sides.

        Parameters
        ----------
        shape : Sphere or Capsule
        position : (3,) floats
            Centre at the start, metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            How far to look, metres, >= 0.
        rotation : (4,) floats
            Unit quaternion; a capsule's axis is its z.
        mask : int
            Layers to see.
        filter : callable, optional
            ``filter(actor) -> bool``; actors for which it is false are passed over.

        Returns
        -------
        SceneHit or None
        """
        cdef vec3 p0, p1, d
        cdef double radius, reach = as_not_negative(distance, "distance")
        cdef uint32_t bits = as_bits(mask, "mask")
        cdef candidates c
        cdef capsule_cast q
        cdef world_hit hit, one
        cdef bint found = False
        cdef int32_t i
        cdef int status
        cdef Snapshot snap
        _round_shape(shape, position, rotation, &p0, &p1, &radius)
        d = as_unit(direction, "direction")
        snap = self.snapshot()
        candidates_init(&c)
        try:
            with nogil:
                status = _gather(snap, &c, box_union(capsule_bounds(p0, p1, radius), capsule_bounds(
                    v3_madd(p0, d, reach), v3_madd(p1, d, reach), radius)), bits)
            raise_status(status)
            if filter is not None:
                _drop(self, &c, filter)
            with nogil:
                q = capsule_cast_of(p0, p1, radius, d, reach, False, True)
                found = candidates_cast(&c, &q, 7, &hit)
                if found and not hit.base.overlapping or not found:
                    # Solids count inside as well, where no triangle is near.
                    for i in range(c.n_groups):
                        if c.groups[i].closed and group_overlaps(&c, &c.groups[i], p0, p1, radius):
                            one.group = i
                            one.base.distance = 0.0
                            one.base.overlapping = True
                            one.base.normal = v3_neg(d)
                            one.base.point = v3_scale(v3_add(p0, p1), 0.5)
                            one.base.tri = -1
                            if not found or hit.base.distance > 0.0 or c.groups[i].id < c.groups[hit.group].id:
                                hit = one
                                found = True
            if not found:
                return None
            return _scene_hit(self, snap, &c, &hit, reach)
        finally:
            candidates_free(&c)

    def overlap(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """Actors that a shape touches; triangles count from both sides (RULES 7.6).

        Parameters
        ----------
        shape : Sphere or Capsule
        position, rotation
            Pose of the shape.
        mask : int
            Layers to see.
        filter : callable, optional
            ``filter(actor) -> bool``.

        Returns
        -------
        list of Actor
            In the order of their ids.
        """
        return [hit.actor for hit in self._touching(shape, position, rotation, mask, filter, False)]

    def penetration(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """Actors that a shape enters, and the shortest way out of each.

        Parameters
        ----------
        shape : Sphere or Capsule
        position, rotation
            Pose of the shape.
        mask : int
            Layers to see.
        filter : callable, optional
            ``filter(actor) -> bool``.

        Returns
        -------
        list of Penetration
            actor, direction (moves the shape out), depth in metres; in the order of ids.
        """
        return self._touching(shape, position, rotation, mask, filter, True)

    def _touching(self, shape, position, rotation, mask, filter, bint ways_out):
        cdef vec3 p0, p1
        cdef double radius
        cdef uint32_t bits = as_bits(mask, "mask")
        cdef candidates c
        cdef int32_t i
        cdef int status
        cdef bint touches
        cdef push_out push
        cdef Snapshot snap
        cdef Penetration r
        cdef list found = []
        _round_shape(shape, position, rotation, &p0, &p1, &radius)
        snap = self.snapshot()
        candidates_init(&c)
        try:
            with nogil:
                status = _gather(snap, &c, capsule_bounds(p0, p1, radius), bits)
            raise_status(status)
            if filter is not None:
                _drop(self, &c, filter)
            for i in range(c.n_groups):
                with nogil:
                    if ways_out:
                        push = group_push(&c, &c.groups[i], p0, p1, radius)
                        touches = push.overlapping
                    else:
                        touches = group_overlaps(&c, &c.groups[i], p0, p1, radius)
                if touches:
                    r = Penetration.__new__(Penetration)
                    r.actor = self.actors_.get(c.groups[i].id)
                    r.direction_ = push.dir
                    r.depth = push.depth
                    if r.actor is not None:
                        found.append(r)
        finally:
            candidates_free(&c)
        found.sort(key=_id_of_hit)
        return found


def _id_of_hit(Penetration hit):
    return (<Actor>hit.actor).id


cdef const placed* _item(Snapshot snap, int32_t part, int32_t item) noexcept nogil:
    return &snap.fixed.data.items[item] if part == 0 else &snap.moving.data.items[item]


cdef int _gather(Snapshot snap, candidates* c, aabb box, uint32_t mask) noexcept nogil:
    cdef int status = candidates_gather(c, &snap.fixed.data, 0, box, mask, NULL)
    if status == STATUS_OK:
        status = candidates_gather(c, &snap.moving.data, 1, box, mask, NULL)
    return status


cdef int _round_shape(object shape, object position, object rotation, vec3* p0, vec3* p1, double* radius) except -1:
    """The capsule that a sphere or capsule is, in the world."""
    cdef vec3 centre, half
    cdef quat q
    if not isinstance(shape, (Sphere, Capsule)):
        raise TypeError(f"shape must be a Sphere or Capsule, not {type(shape).__name__}")
    centre = as_place(position, "position")
    q = as_quat(rotation, "rotation")
    half = v3_scale(q_rotate(q, v3(0.0, 0.0, 1.0)), 0.5 * (<Shape>shape).height_)
    p0[0] = v3_sub(centre, half)
    p1[0] = v3_add(centre, half)
    radius[0] = (<Shape>shape).radius_
    return 0


cdef SceneHit _scene_hit(Scene scene, Snapshot snap, candidates* c, world_hit* hit, double reach):
    cdef SceneHit r = SceneHit.__new__(SceneHit)
    cdef const placed* p = _item(snap, c.groups[hit.group].part, c.groups[hit.group].item)
    cdef int32_t tri = c.source[hit.base.tri] if hit.base.tri >= 0 else -1
    r.distance = hit.base.distance
    r.time = hit.base.distance / reach if reach > 0.0 else 0.0
    r.position_ = hit.base.point
    r.normal_ = hit.base.normal
    r.overlapping = hit.base.overlapping
    r.actor = scene.actors_.get(c.groups[hit.group].id)
    r.triangle = tri if tri >= 0 else None
    r.data = None
    if tri >= 0 and p.kind == SHAPE_MESH and p.mesh.data != NULL:
        r.data = p.mesh.data[tri]
    return r


cdef int _drop(Scene scene, candidates* c, object filter) except -1:
    """Keep only the groups whose actor the filter accepts."""
    cdef int32_t i, n = 0
    for i in range(c.n_groups):
        actor = scene.actors_.get(c.groups[i].id)
        if actor is not None and filter(actor):
            c.groups[n] = c.groups[i]
            n += 1
    c.n_groups = n
    return 0
