"""The scene: actors and queries."""

import operator
from collections import namedtuple
from contextlib import contextmanager
from threading import RLock
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from pycct.args import save_format as saves
from pycct.reference.candidates import (
    Group,
    Placed,
    WorldHit,
    capsule_bounds,
    cast,
    gather,
    group_overlaps,
    group_push,
    span,
)
from pycct.reference.closest import segment_triangle
from pycct.reference.overlap import MESH_PUSHES
from pycct.reference.ray import all_hits, direction_of, first_hit
from pycct.reference.shapes import Box, Capsule, ConvexHull, Plane, Shape, Sphere
from pycct.reference.sweep import SweepHit, exact_cast, triangle_order
from pycct.reference.types import ACTOR, PLANE
from pycct.reference.values import (
    FARTHEST,
    as_behavior,
    as_bits,
    as_not_negative,
    as_place,
    as_quat,
    as_unit,
    as_vec3,
    short,
)
from pycct.reference.vec import add, box_union, length, madd, max_abs, neg, q_rotate, scale, sub
from pycct.runtime.enums import Behavior

BODIES = ("static", "kinematic", "dynamic")
TriggerEvents = namedtuple("TriggerEvents", "entered left inside")

HitArrays = namedtuple(
    "HitArrays", "hit distance time position normal actor controller triangle data mask overlapping"
)
TouchArrays = namedtuple("TouchArrays", "hit first actor controller direction depth")


class Actor:
    """A shape placed in a scene; created by `Scene.add`."""

    is_obstacle = False

    def __init__(self, scene, shape, position, rotation, scale, body, layer, behavior, user_data, trigger=False):
        self._scene = scene
        self._trigger = trigger
        self._shape = shape
        self._position = position
        self._rotation = rotation
        self._scale = scale
        self._body = body
        self._layer = layer
        self._behavior = behavior
        self._id = -1
        self._placed = None
        self.user_data = user_data

    scene = property(lambda self: self._scene, doc="The scene, or None once the actor has been removed.")
    shape = property(lambda self: self._shape, doc="The shape.")
    id = property(lambda self: self._id, doc="Number of the actor in its scene.")
    position = property(lambda self: self._position, doc="Where the shape's origin is, metres.")
    rotation = property(lambda self: self._rotation, doc="Unit quaternion (x, y, z, w).")
    scale = property(lambda self: self._scale, doc="Factors along the shape's own axes.")
    body = property(lambda self: self._body, doc="'static', 'kinematic' or 'dynamic'.")
    trigger = property(lambda self: self._trigger, doc="Whether it blocks nobody; see `Scene.triggers`.")

    @property
    def behavior(self):
        """Riding and sliding of characters on it (`Behavior`); settable."""
        return Behavior(self._behavior)

    @behavior.setter
    def behavior(self, value):
        self._check_present()
        bits = as_behavior(value, "behavior")
        self._scene._tell(self, "set", behavior=Behavior(bits))
        self._behavior = bits
        self._changed()

    @property
    def layer(self):
        """Bit set; a character sees the actor if it shares a bit with the character's mask.

        Settable.
        """
        return self._layer

    @layer.setter
    def layer(self, value):
        self._check_present()
        bits = as_bits(value, "layer")
        self._scene._tell(self, "set", layer=bits)
        self._layer = bits
        self._changed()

    @property
    def bounds(self):
        """Corners (lo, hi) of the bounding box in the world, metres."""
        return self.placed.bounds

    @property
    def placed(self):
        """The shape in the world."""
        if self._placed is None:
            self._placed = Placed(self)
        return self._placed

    def move_to(self, position, rotation=None):
        """Move the actor; moves and queries that start later see the new pose.

        Parameters
        ----------
        position : (3,) floats
            Metres.
        rotation : (4,) floats, optional
            Unit quaternion (x, y, z, w); the default keeps the rotation.
        """
        p = as_place(position, "position")
        q = self._rotation if rotation is None else as_quat(rotation, "rotation")
        self._check_present()
        self._scene._tell(self, "move_to", position=p, rotation=None if rotation is None else q)
        self._position = p
        self._rotation = q
        self._changed()

    def _changed(self):
        self._placed = None
        self._scene._touch(self)

    def _check_present(self):
        if self._scene is None:
            raise RuntimeError(f"actor {self.id} has been removed from its scene")

    def __reduce__(self):
        # Pickling by id: all actors share one pickled scene.
        if self._scene is None:
            raise TypeError(f"actor {self.id} has been removed from its scene: it cannot be pickled or copied")
        return _actor_of, (self._scene, self.id)

    def __repr__(self):
        where = "removed" if self._scene is None else f"at {self.position}"
        what = f"{self.body} trigger" if self.trigger else self.body
        return f"<Actor {self.id}: {self.shape!r}, {what}, {where}>"


def _actor_of(scene, id):
    """Return a pickled or copied actor."""
    return scene.actor(id)


class Obstacle(Actor):
    """A box or capsule that only characters collide with; created by `Scene.add_obstacle`."""

    is_obstacle = True


def _as_id(value):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"id must be an integer, not {type(value).__name__}")
    return operator.index(value)


class SceneHit:
    """Result of a query."""

    def __init__(self, scene, hit, reach):
        item, face = hit.group.item, hit.base.face
        self.distance = hit.base.distance
        self.time = hit.base.distance / reach if reach > 0.0 else 0.0
        self.position = hit.base.point
        self.normal = hit.base.normal
        self.overlapping = hit.base.overlapping
        self.id = item.id
        self.actor = scene.actor(item.id)
        self.controller = None
        self.triangle = face.source if face is not None and face.source >= 0 else None
        self.data = item.data_of(self.triangle)
        layers = None if self.triangle is None else item.shape._mask
        self.mask = None if layers is None else layers[self.triangle]

    @property
    def other(self):
        """The actor."""
        return self.actor

    def __getstate__(self):
        # Pickles contain the id instead of the object.
        return {**self.__dict__, "actor": None}

    def __repr__(self):
        return (
            f"<SceneHit: {self.actor!r} at distance {self.distance:.6g}, position {self.position}, "
            f"normal {self.normal}, triangle {self.triangle}>"
        )


class Penetration:
    """An actor that a shape penetrates, and the shortest exit."""

    def __init__(self, actor, direction, depth):
        self.actor = actor
        self.controller = None
        self.id = actor.id
        self.direction = direction
        self.depth = depth

    @property
    def other(self):
        """The actor."""
        return self.actor

    def __getstate__(self):
        # Pickles contain the id instead of the object.
        return {**self.__dict__, "actor": None}

    def __iter__(self):
        return iter((self.actor, self.direction, self.depth))

    def __repr__(self):
        return f"<Penetration: {self.actor!r}, {self.depth:.6g} along {self.direction}>"


def _round_shape(shape, position, rotation):
    """(p0, p1, radius) of a sphere or capsule in the world."""
    if not isinstance(shape, (Sphere, Capsule)):
        raise TypeError(f"shape must be a Sphere or Capsule, not {type(shape).__name__}")
    centre = as_place(position, "position")
    q = as_quat(rotation, "rotation")
    height = shape.height if isinstance(shape, Capsule) else 0.0
    low, high = q_rotate(q, (0.0, 0.0, -0.5 * height)), q_rotate(q, (0.0, 0.0, 0.5 * height))
    return add(low, centre), add(high, centre), shape.radius


def _true_contact(hit, p0, p1):
    """Contact of the axis with the nearest face of a hull.

    Queries prefer no triangle (RULES 7.6).
    """
    best = winner = None
    for t in hit.group.faces:
        near = segment_triangle(p0, p1, t.a, t.b, t.c, t.n)
        if best is None or near.dist2 < best.dist2 or (near.dist2 == best.dist2 and triangle_order(t, winner) < 0):
            best, winner = near, t
    n = sub(best.on_a, best.on_b)
    m = length(n)
    # A capsule too thin for a direction: the face's own normal stays.
    normal = scale(n, 1.0 / m) if m > 0.0 else hit.base.normal
    return WorldHit(hit.base._replace(point=best.on_b, normal=normal), hit.group)


def _pairs(places, directions):
    """Rows of places and directions, and the shape of the answers: (n,) or (n, k)."""
    p, d = np.asarray(places, np.float64), np.asarray(directions, np.float64)
    shape = p.shape[:1]
    if p.ndim == 3 or d.ndim == 3 or (d.ndim == 2 and d.shape != p.shape):
        shape = np.broadcast_shapes(p.shape if p.ndim == 3 else (len(p), 1, 3), d.shape)[:2]
        p = p if p.ndim == 3 else p[:, None]
    return *(np.broadcast_to(x, (*shape, 3)).reshape(-1, 3).tolist() for x in (p, d)), shape


def _each_row(values, shape, kind):
    """One number for each row, from one for all, for each origin or for each row."""
    given = np.asarray(values)
    if len(shape) == 2 and given.shape == shape[:1]:
        given = given[:, None]
    return [kind(x) for x in np.broadcast_to(given, shape).reshape(-1)]


def _without(id, filter):
    """A filter that also passes over an actor."""
    if id < 0:
        return filter
    return lambda actor: actor.id != id and (filter is None or filter(actor))


def _hit_arrays(hits, lengths, shape, fields):
    """Hits of rows as columns."""

    def column(value, none, kind, *size):
        rows = [none if hit is None else value(hit) for hit in hits]
        return np.array(rows, kind).reshape(*shape, *size)

    nowhere = (0.0, 0.0, 0.0)
    reach = np.array(lengths, np.float64).reshape(shape)
    met = column(lambda h: True, False, bool)
    columns = {
        "hit": met,
        "distance": np.where(met, column(lambda h: h.distance, 0.0, np.float64), reach),
        "time": column(lambda h: h.time, 1.0, np.float64),
        "position": column(lambda h: h.position, nowhere, np.float64, 3),
        "normal": column(lambda h: h.normal, nowhere, np.float64, 3),
        "actor": column(lambda h: h.id, -1, np.int64),
        "controller": np.full(shape, -1, np.int64),
        "triangle": column(lambda h: -1 if h.triangle is None else h.triangle, -1, np.int32),
        "data": column(lambda h: 0 if h.data is None else h.data, 0, np.int64),
        "mask": column(lambda h: 0xFFFFFFFF if h.mask is None else h.mask, 0xFFFFFFFF, np.uint32),
        "overlapping": column(lambda h: h.overlapping, False, bool),
    }
    wanted = columns if fields is None else fields
    return HitArrays(*[columns[name] if name in wanted else None for name in HitArrays._fields])


def _spans(found):
    """Whether each row has touches, and where those of each row begin and end."""
    counts = np.array([len(row) for row in found], np.int64)
    return counts > 0, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _owners(actors):
    """Ids of actors, and of controllers: none."""
    return np.array([a.id for a in actors], np.int64), np.full(len(actors), -1, np.int64)


class Scene:
    """A world of placed shapes."""

    def __init__(self):
        self.lock = RLock()
        self._actors = {}  # id -> Actor, in the order of ids
        self._inside = set()  # (trigger, character) ids at the last call of triggers
        self._next_id = 0
        self._characters = WeakValueDictionary()  # id -> CharacterController
        self._crowds = WeakSet()
        self._with_proxy = {}  # characters with a proxy here: kept alive
        self._timestamp = 0
        self._editing = 0  # depth of nested edits
        self._before = []  # snapshot that moves see meanwhile
        self._dirty = False  # a static actor has changed meanwhile
        self._journal = None
        self._quiet = 0  # depth of changes that are part of another one

    def add(
        self,
        shape,
        position=(0.0, 0.0, 0.0),
        rotation=(0.0, 0.0, 0.0, 1.0),
        scale=(1.0, 1.0, 1.0),
        *,
        body="static",
        layer=1,
        behavior=0,
        user_data=None,
        id=None,
        trigger=False,
    ):
        """Place a shape in the scene.

        Parameters
        ----------
        shape : Shape
            Mesh, Box, Sphere, Capsule, ConvexHull, Plane or Triangle; may be shared.
        position : (3,) floats
            Position of the shape's origin, metres.
        rotation : (4,) floats
            Unit quaternion (x, y, z, w), normalised; ValueError if its length differs from 1 by
            more than 1e-3.
        scale : (3,) floats
            Factors along the shape's own axes, not zero; negative ones mirror. Spheres and capsules
            need three equal positive factors, and planes accept none.
        body : {'static', 'kinematic', 'dynamic'}
            Kinematic actors carry characters; recovery never moves a character out of a dynamic
            one.
        layer : int
            Bit set, 32 bits; a character sees the actor if it shares a bit with the character's
            mask.
        behavior : Behavior
            Riding and sliding of characters on it.
        user_data : object
            Any object of your own.
        id : int, optional
            Id of a removed actor of this scene that is free now.
        trigger : bool
            True for a volume that blocks nobody; see `triggers`.

        Returns
        -------
        Actor
        """
        if not isinstance(shape, Shape):
            raise TypeError(f"shape must be a shape, not {type(shape).__name__}")
        p = as_place(position, "position")
        q = as_quat(rotation, "rotation")
        s = as_vec3(scale, "scale")
        if 0.0 in s:
            raise ValueError(f"scale must not be zero on any axis, got {s}")
        if isinstance(shape, (Sphere, Capsule)) and not (s[0] == s[1] == s[2] and s[0] > 0.0):
            raise ValueError(f"scale of a sphere or capsule must be the same positive factor three times, got {s}")
        if isinstance(shape, Plane) and s != (1.0, 1.0, 1.0):
            raise ValueError(f"scale of a plane must be (1, 1, 1), got {s}")
        if not isinstance(body, str) or body not in BODIES:
            raise ValueError(f"body must be 'static', 'kinematic' or 'dynamic', not {body!r}")
        if not isinstance(trigger, (bool, np.bool_)):
            raise TypeError(f"trigger must be True or False, not {short(trigger)}")
        layer = as_bits(layer, "layer")
        behavior = as_behavior(behavior, "behavior")
        actor = Actor(self, shape, p, q, s, body, layer, behavior, user_data, bool(trigger))
        return self._place(actor, id)

    def add_obstacle(
        self,
        shape,
        position=(0.0, 0.0, 0.0),
        rotation=(0.0, 0.0, 0.0, 1.0),
        *,
        layer=1,
        behavior=Behavior.CAN_RIDE,
        user_data=None,
        id=None,
    ):
        """Place an obstacle: geometry for characters only (RULES 2 and 8).

        An obstacle is analytic and so always walkable. It carries characters that stand on it.
        Recovery ignores it, and queries do not see it.

        Parameters
        ----------
        shape : Box or Capsule
        position, rotation
            Its pose.
        layer : int
            Bit set; a character sees it if it shares a bit with the character's mask.
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
        if not isinstance(shape, (Box, Capsule)):
            raise TypeError(f"shape of an obstacle must be a Box or Capsule, not {type(shape).__name__}")
        p = as_place(position, "position")
        q = as_quat(rotation, "rotation")
        one = (1.0, 1.0, 1.0)
        layer = as_bits(layer, "layer")
        behavior = as_behavior(behavior, "behavior")
        return self._place(Obstacle(self, shape, p, q, one, "kinematic", layer, behavior, user_data), id)

    def _issue(self):
        """A new id, of an actor, an obstacle or a character."""
        number = self._next_id
        self._next_id += 1
        return number

    def _has_id(self, number):
        return number in self._actors or self.character(number) is not None

    def _free_id(self, value):
        """An old id that is free now."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"id must be an integer, not {type(value).__name__}")
        if not 0 <= value < self._next_id:
            raise ValueError(
                f"id must be one that the scene has issued, from 0 to {self._next_id - 1}, got {short(value)}"
            )
        if self._has_id(int(value)):
            raise ValueError(f"id must be free, but {value} is in use")
        return int(value)

    def _place(self, actor, id):
        if isinstance(actor.shape, Plane):
            if not abs(actor.placed.offset) <= 2.0 * FARTHEST:
                raise ValueError(f"shape must pass within {2.0 * FARTHEST:g} m of the origin once placed")
        elif not span(actor.placed.bounds) <= 2.0 * FARTHEST:
            raise ValueError(f"shape must lie within {2.0 * FARTHEST:g} m of the origin once placed")
        with self.lock:
            if id is not None:
                id = self._free_id(id)
            event = {"shape": actor.shape, "position": actor.position, "rotation": actor.rotation}
            if not actor.is_obstacle:
                event |= {"scale": actor.scale, "body": actor.body}
            event |= {"layer": actor.layer, "behavior": actor.behavior, "user_data": actor.user_data, "id": id}
            if not actor.is_obstacle:
                event["trigger"] = actor.trigger
            self._tell(self, "add_obstacle" if actor.is_obstacle else "add", **event)
            actor._id = self._issue() if id is None else id
            actor._placed = None
            self._actors[actor.id] = actor
            self._actors = dict(sorted(self._actors.items()))
            self._touch(actor)
        return actor

    def _touch(self, actor):
        """Record that an actor has changed."""
        if actor.trigger:
            return
        if actor.body == "static":
            if self._editing:
                self._dirty = True
            else:
                self._timestamp += 1

    @property
    def journal(self):
        """``listener(target, name, arguments)``, called before changes and moves. Settable."""
        return self._journal

    @journal.setter
    def journal(self, listener):
        if listener is not None and not callable(listener):
            raise TypeError(f"journal must be callable or None, not {type(listener).__name__}")
        self._journal = listener

    def _tell(self, target, name, **arguments):
        """Call the listener, unless this change is part of another one."""
        if self._journal is not None and self._quiet == 0:
            self._journal(target, name, arguments)

    @contextmanager
    def _quietly(self):
        """Changes inside are part of a change that is reported already."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    timestamp = property(lambda self: self._timestamp, doc="Counts changes of static actors.")

    def _enlist(self, character):
        """Number a new controller."""
        with self.lock:
            number = self._issue()
            self._characters[number] = character
        return number

    @contextmanager
    def edit(self):
        """Publish several changes as one.

        ``with scene.edit(): ...``: until the block ends, moves and queries see the snapshot from
        before. Then all changes appear at once and count as one in `timestamp`.
        """
        with self.lock:
            self._tell(self, "edit")
            if self._editing == 0:
                self._before = self.items()
                self._dirty = False
            self._editing += 1
            try:
                yield self
            finally:
                self._tell(self, "end_edit")
                self._editing -= 1
                if self._editing == 0 and self._dirty:
                    self._timestamp += 1

    def _moving_bytes(self):
        """Poses, layers and behaviors of moving actors and obstacles by id, without proxies."""
        proxies = {id(c.proxy) for c in self.characters}
        kept = [a for a in self._actors.values() if a.body != "static" and id(a) not in proxies]
        rows = [saves.MOVING.pack(a.id, *a.position, *a.rotation, a.layer, int(a.behavior)) for a in kept]
        return saves.MOVING_HEAD.pack(len(rows)) + b"".join(rows)

    def _moving_found(self, rows):
        """The actors of saved rows with their saved values; ValueError if one has been removed."""
        found = []
        for id, x, y, z, qx, qy, qz, qw, layer, behavior in rows:
            actor = self._actors.get(id)
            if actor is None or actor.body == "static":
                raise ValueError(f"data moves actor {id}, but the scene has no moving actor of that id")
            place = as_place((x, y, z), "data: position")
            as_quat((qx, qy, qz, qw), "data: rotation")
            found.append((actor, place, (qx, qy, qz, qw), layer, behavior))
        return found

    def _moving_put(self, found):
        """Apply the values of `_moving_found`."""
        if found:
            ids, places = np.array([a.id for a, *_ in found], np.int64), np.array([row[1] for row in found])
            turns = np.array([row[2] for row in found])
            self._tell(self, "move_actors", ids=ids, positions=places, rotations=turns)
        for actor, _, _, layer, behavior in found:
            if (actor.layer, actor.behavior) != (layer, behavior):
                self._tell(actor, "set", layer=layer, behavior=Behavior(behavior))
        with self._quietly(), self.edit():
            for actor, place, turn, layer, behavior in found:
                actor._position, actor._rotation, actor._layer, actor._behavior = place, turn, layer, behavior
                actor._changed()

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
        given = np.asarray(ids)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError("ids must be a one-dimensional array of integers")
        n = given.shape[0]
        places = np.array(positions, dtype=np.float64)
        if places.shape == (0,):
            places = places.reshape(0, 3)
        if places.shape != (n, 3):
            raise ValueError(f"positions must have shape ({n}, 3), got {places.shape}")
        places = [as_place(p, "positions") for p in places.tolist()]
        turns = [None] * n
        if rotations is not None:
            turns = np.asarray(rotations, dtype=np.float64)
            if turns.shape == (4,):
                turns = np.broadcast_to(turns, (n, 4))
            elif turns.shape == (0,):
                turns = turns.reshape(0, 4)
            if turns.shape != (n, 4):
                raise ValueError(f"rotations must have shape ({n}, 4) or (4,), got {turns.shape}")
            turns = [as_quat(row, "rotations") for row in turns.tolist()]
        with self.lock:
            actors = [self._actors.get(k) for k in given.tolist()]
            if None in actors:
                raise ValueError(f"ids must be of actors in this scene, {given[actors.index(None)]} is not")
            if len(set(given.tolist())) != n:
                raise ValueError("ids must be different from one another")
            given_turns = None if rotations is None else np.array(turns, np.float64).reshape(-1, 4)
            event = {"ids": given, "positions": np.array(places, np.float64).reshape(-1, 3), "rotations": given_turns}
            self._tell(self, "move_actors", **event)
            with self._quietly(), self.edit():
                for actor, place, turn in zip(actors, places, turns, strict=True):
                    actor._position = place
                    actor._rotation = actor._rotation if turn is None else turn
                    actor._changed()

    def shift_origin(self, offset):
        """Move the origin of the coordinates to ``offset``; the scene itself stays in place.

        Parameters
        ----------
        offset : (3,) floats
            The new origin in the old coordinates, metres; it is subtracted from the position of
            every actor, obstacle and character. Controllers keep their platforms.
        """
        o = as_place(offset, "offset")
        with self.lock:
            actors, followers = list(self._actors.values()), self.characters
            for who in [*actors, *followers]:
                if max_abs(sub(who.position, o)) > FARTHEST:
                    raise ValueError(f"offset must leave everything within {FARTHEST:g} m of the origin")
            self._tell(self, "shift_origin", offset=o)
            for crowd in self.crowds:
                if crowd._journal is not None:
                    crowd._journal(crowd, "shift_origin", {"offset": o})
            with self._quietly(), self.edit():
                for actor in actors:
                    actor._position = sub(actor._position, o)
                    actor._changed()
                for follower in followers:
                    follower._shift_origin(o)

    def remove(self, actor):
        """Remove an actor; characters that stand on it fall in their next move."""
        if not isinstance(actor, Actor):
            raise TypeError(f"actor must be an Actor, not {type(actor).__name__}")
        with self.lock:
            if actor.scene is not self:
                raise ValueError("actor is not in this scene")
            self._tell(self, "remove", actor=actor)
            del self._actors[actor.id]
            actor._scene = None
            self._touch(actor)

    @property
    def actors(self):
        """All actors, in the order of their ids; with triggers, without obstacles."""
        return [a for a in list(self._actors.values()) if not a.is_obstacle]

    @property
    def obstacles(self):
        """All obstacles, in the order of their ids."""
        return [a for a in list(self._actors.values()) if a.is_obstacle]

    @property
    def characters(self):
        """The living controllers of this scene, in the order of creation."""
        return list(self._characters.values())

    @property
    def crowds(self):
        """The living crowds of this scene."""
        return list(self._crowds)

    def character(self, id):
        """The living controller with that id, or None."""
        return self._characters.get(_as_id(id))

    def actor(self, id):
        """The actor or obstacle with that id, or None."""
        return self._actors.get(_as_id(id))

    def items(self):
        """All current shapes, or those before an edit; with obstacles."""
        if self._editing:
            return self._before
        return [a.placed for a in list(self._actors.values()) if not a.trigger]

    def triggers(self):
        """Return which characters entered and left triggers since the last call (TriggerEvents)."""
        volumes = [a.placed for a in self._actors.values() if a.trigger]
        now = set()
        for hero in self.characters:
            half = madd((0.0, 0.0, 0.0), hero.up, 0.5 * hero.height)
            p0, p1 = sub(hero.position, half), add(hero.position, half)
            for group in gather(volumes, capsule_bounds(p0, p1, hero.radius), hero.mask):
                if group_overlaps(group, p0, p1, hero.radius):
                    now.add((group.item.id, hero.id))
        before, self._inside = self._inside, now
        rows = [np.array(sorted(pairs), np.int64).reshape(-1, 2) for pairs in (now - before, before - now, now)]
        return TriggerEvents(*rows)

    @property
    def triangle_count(self):
        """Number of triangles of all placed meshes and heightfields."""
        return sum(a.shape.triangle_count for a in self.actors if hasattr(a.shape, "triangle_count"))

    def __reduce__(self):
        # The state does not contain characters: each pickles its scene, and pickle shares it.
        with self.lock:
            records = [
                (a.id, a.is_obstacle, a.shape, a.position, a.rotation, a.scale, a.body, a.layer, int(a.behavior),
                 a.user_data, a.trigger)
                for a in self._actors.values()
            ]  # fmt: skip
            return _scene_again, (records, self._next_id)

    def __len__(self):
        return len(self._actors)

    def __repr__(self):
        return f"<Scene: {len(self._actors)} actors>"

    def _rayed(self, filter, exclude=()):
        """(0 static or 1 moving, item) of what a ray may meet."""
        items = [i for i in self.items() if i.owner == ACTOR and i.id not in exclude]
        if filter is not None:
            items = [i for i in items if filter(self.actor(i.id))]
        return [(0 if i.body == "static" else 1, i) for i in items]

    def _ray_hit(self, hit, reach):
        base = SweepHit(hit.distance, hit.overlapping, hit.normal, hit.point, hit.face)
        return SceneHit(self, WorldHit(base, Group(hit.item, [])), reach)

    def raycast(self, origin, direction, distance, mask=0xFFFFFFFF, filter=None):
        """Return the first hit of a ray.

        Parameters
        ----------
        origin : (3,) floats
            Metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            Length of the ray, metres, >= 0.
        mask : int
            Layers to see, of actors and of triangles with a mask.
        filter : callable, optional
            ``filter(actor) -> bool``; actors with a false result are skipped.

        Returns
        -------
        SceneHit or None
        """
        o, d = as_place(origin, "origin"), as_unit(direction, "direction")
        reach = as_not_negative(distance, "distance")
        hit = first_hit(self._rayed(filter), o, d, reach, as_bits(mask, "mask"))
        return None if hit is None else self._ray_hit(hit, reach)

    def raycast_all(self, origin, direction, distance, mask=0xFFFFFFFF, filter=None):
        """Return all hits along a ray, the nearest first.

        Parameters
        ----------
        origin, direction, distance, mask, filter
            As for `raycast`.

        Returns
        -------
        list of SceneHit
        """
        o, d = as_place(origin, "origin"), as_unit(direction, "direction")
        reach = as_not_negative(distance, "distance")
        hits = all_hits(self._rayed(filter), o, d, reach, as_bits(mask, "mask"))
        return [self._ray_hit(hit, reach) for hit in hits]

    def visible(self, a, b, mask=0xFFFFFFFF, filter=None, *, exclude=None):
        """Return whether nothing is on the line between two points.

        Parameters
        ----------
        a, b : (3,) floats
            Metres.
        mask, filter
            As for `raycast`.
        exclude : int or tuple of two ints, optional
            Ids of actors that do not block the line.

        Returns
        -------
        bool
        """
        p, q = as_place(a, "a"), as_place(b, "b")
        d = sub(q, p)
        reach = length(d)
        gone = exclude if isinstance(exclude, tuple) else (exclude,)
        way = direction_of(d) if reach > 0.0 else (0.0, 0.0, 1.0)
        return first_hit(self._rayed(filter, gone), p, way, reach, as_bits(mask, "mask")) is None

    def visible_many(self, a, b, mask=0xFFFFFFFF, filter=None, *, exclude=None):
        """`visible` for many lines: (n,) or (n, k) array of bool.

        Parameters
        ----------
        a : (n, 3) array of floats
        b : (n, 3) or (n, k, 3) array of floats
        mask, filter, exclude
            As for `visible`.

        Returns
        -------
        array of bool
        """
        b = np.asarray(b, np.float64)
        pairs = np.broadcast_arrays(np.asarray(a, np.float64)[:, None] if b.ndim == 3 else a, b)
        p, q = (x.reshape(-1, 3).tolist() for x in pairs)
        seen = [self.visible(x, y, mask, filter, exclude=exclude) for x, y in zip(p, q, strict=True)]
        return np.array(seen, bool).reshape(pairs[0].shape[:-1])

    def raycast_many(self, origins, directions, distances, mask=0xFFFFFFFF, filter=None, *, exclude=None, fields=None):
        """`raycast` for many rays, one after another.

        Parameters
        ----------
        origins : (n, 3) array of floats
        directions : (n, 3), (3,), (n, k, 3) or (k, 3) array of floats
        distances, mask, exclude
            One value, or one for each origin or row; ids of actors to pass over, -1 for none.
        filter
            As for `raycast`.
        fields : sequence of str, optional
            Columns to return; the others are None.

        Returns
        -------
        HitArrays
        """
        o, d, shape = _pairs(origins, directions)
        hits, lengths = [], _each_row(distances, shape, float)
        for p, v, reach, bits, gone in zip(
            o, d, lengths, _each_row(mask, shape, int), _each_row(-1 if exclude is None else exclude, shape, int),
            strict=True,
        ):  # fmt: skip
            hits.append(self.raycast(p, v, reach, bits, _without(gone, filter)))
        return _hit_arrays(hits, lengths, shape, fields)

    def sweep_many(
        self, shape, positions, directions, distances, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None,
        *, exclude=None, fields=None,
    ):  # fmt: skip
        """`sweep` for many motions of one shape, one after another.

        Parameters
        ----------
        shape : Sphere or Capsule
        positions, directions, distances, mask, filter, exclude, fields
            As for `raycast_many`.
        rotations : (n, 4) or (4,) floats
            Unit quaternions.

        Returns
        -------
        HitArrays
        """
        o, d, rows = _pairs(positions, directions)
        hits, lengths = [], _each_row(distances, rows, float)
        turns = np.broadcast_to(np.asarray(rotations, np.float64), (len(o), 4)).tolist()
        for p, v, reach, turn, bits, gone in zip(
            o, d, lengths, turns, _each_row(mask, rows, int), _each_row(-1 if exclude is None else exclude, rows, int),
            strict=True,
        ):  # fmt: skip
            hits.append(self.sweep(shape, p, v, reach, turn, bits, _without(gone, filter)))
        return _hit_arrays(hits, lengths, rows, fields)

    def overlap_many(
        self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *, exclude=None
    ):
        """`overlap` for many poses of one shape, one after another.

        Parameters
        ----------
        shape, positions, rotations, mask, filter, exclude
            As for `sweep_many`.

        Returns
        -------
        TouchArrays
        """
        found = self._touching(self.overlap, shape, positions, rotations, mask, filter, exclude)
        return TouchArrays(*_spans(found), *_owners([a for row in found for a in row]), None, None)

    def penetration_many(
        self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *, exclude=None
    ):
        """`penetration` for many poses of one shape, one after another.

        Parameters
        ----------
        shape, positions, rotations, mask, filter, exclude
            As for `sweep_many`.

        Returns
        -------
        TouchArrays
        """
        found = self._touching(self.penetration, shape, positions, rotations, mask, filter, exclude)
        ways = [one for row in found for one in row]
        return TouchArrays(
            *_spans(found), *_owners([one.actor for one in ways]),
            np.array([one.direction for one in ways], np.float64).reshape(-1, 3),
            np.array([one.depth for one in ways], np.float64),
        )  # fmt: skip

    def _touching(self, ask, shape, positions, rotations, mask, filter, exclude):
        places = np.asarray(positions, np.float64)
        rows = places.shape[:1]
        turns = np.broadcast_to(np.asarray(rotations, np.float64), (len(places), 4)).tolist()
        return [
            ask(shape, p, turn, bits, _without(gone, filter))
            for p, turn, bits, gone in zip(
                places.tolist(), turns, _each_row(mask, rows, int),
                _each_row(-1 if exclude is None else exclude, rows, int), strict=True,
            )
        ]  # fmt: skip

    def sweep(self, shape, position, direction, distance, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """Return the first hit of a shape that moves along a straight line.

        Boxes, hulls and planes are solid: a start inside returns distance 0 (RULES 7.6). Triangles
        are hit from their front, two-sided meshes from both sides.

        Parameters
        ----------
        shape : Sphere or Capsule
        position : (3,) floats
            Centre at the start, metres.
        direction : (3,) floats
            Any length but zero.
        distance : float
            Length of the motion, metres, >= 0.
        rotation : (4,) floats
            Unit quaternion; a capsule's axis is its z.
        mask : int
            Layers to see.
        filter : callable, optional
            ``filter(actor) -> bool``; actors with a false result are skipped.

        Returns
        -------
        SceneHit or None
        """
        reach = as_not_negative(distance, "distance")
        mask = as_bits(mask, "mask")
        p0, p1, radius = _round_shape(shape, position, rotation)
        d = as_unit(direction, "direction")
        end = capsule_bounds(madd(p0, d, reach), madd(p1, d, reach), radius)
        groups = self._seen(box_union(capsule_bounds(p0, p1, radius), end), mask, filter)
        # RULES 7.6: the rule of what lies behind the leading sphere is one of moves.
        hit = cast(groups, exact_cast(p0, p1, radius, d, reach), BODIES)
        if hit is None or not hit.base.overlapping:
            # Solids also count inside, far from their triangles.
            for g in groups:
                if (g.item.kind == PLANE or g.item.closed) and group_overlaps(g, p0, p1, radius):
                    middle = scale(add(p0, p1), 0.5)
                    inside = WorldHit(SweepHit(0.0, True, neg(d), middle, None), g)
                    if hit is None or hit.base.distance > 0.0 or g.item.id < hit.group.item.id:
                        hit = inside
        if hit is None:
            return None
        if not hit.base.overlapping and hit.group.faces and isinstance(hit.group.item.shape, ConvexHull):
            way = hit.base.distance
            hit = _true_contact(hit, madd(p0, d, way), madd(p1, d, way))
        return SceneHit(self, hit, reach)

    def overlap(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """Return the actors that a shape touches; triangles count from both sides (RULES 7.6).

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
        mask = as_bits(mask, "mask")
        p0, p1, radius = _round_shape(shape, position, rotation)
        groups = self._seen(capsule_bounds(p0, p1, radius), mask, filter)
        return [self.actor(g.item.id) for g in groups if group_overlaps(g, p0, p1, radius)]

    def penetration(self, shape, position, rotation=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None):
        """Return the actors that a shape penetrates, with the shortest exit from each.

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
        mask = as_bits(mask, "mask")
        p0, p1, radius = _round_shape(shape, position, rotation)
        # Each of the pushes out of a mesh is no longer than the radius and half of the axis.
        reach = radius + MESH_PUSHES * (radius + 0.5 * length(sub(p1, p0)))
        groups = self._seen(capsule_bounds(p0, p1, reach), mask, filter)
        pushes = [(self.actor(g.item.id), group_push(g, p0, p1, radius)) for g in groups]
        return [Penetration(actor, push.dir, push.depth) for actor, push in pushes if push.overlapping]

    def _seen(self, box, mask, filter):
        """Candidates in a box that the filter accepts."""
        groups = gather([i for i in self.items() if i.owner == ACTOR], box, mask)
        return [g for g in groups if filter is None or filter(self.actor(g.item.id))]


def _scene_again(records, next_id):
    """Return a pickled or copied scene; its actors keep their ids and, to the bit, their poses."""
    scene = Scene()
    for number, is_obstacle, *what in records:
        actor = (Obstacle if is_obstacle else Actor)(scene, *what)
        actor._id = number
        scene._actors[number] = actor
    scene._next_id = next_id
    return scene
