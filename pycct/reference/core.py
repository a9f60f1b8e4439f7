"""The CharacterController around the moves, and what it tells of them."""

from contextlib import contextmanager
from dataclasses import replace
from math import sqrt

from pycct._enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Rules
from pycct.reference.convert import (
    FARTHEST,
    as_bits,
    as_bool,
    as_callback,
    as_float,
    as_mode,
    as_not_negative,
    as_place,
    as_positive,
    as_unit,
    as_vec3,
)
from pycct.reference.move import Memory, Move, MoveStats, Params, decompose
from pycct.reference.scene import Scene
from pycct.reference.shapes import Capsule
from pycct.reference.vec import (
    add,
    dot,
    madd,
    scale,
    sub,
)
from pycct.reference.world import (
    ACTOR,
    CONTROLLER,
    OBSTACLE,
    Character,
)

FLAGS = tuple(CollisionFlags(i) for i in range(8))


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
        The character stands on something that moves.

    Returns
    -------
    dict
        up_vector, side_vector, down_vector (tuples of floats, metres), step_offset
        (0 when cancelled by a jump), is_moving_up, has_side_movement.
    """
    d = decompose(
        as_vec3(displacement, "displacement"),
        as_unit(up, "up"),
        as_not_negative(step_offset, "step_offset"),
        as_bool(standing_on_moving, "standing_on_moving"),
    )
    return d._asdict()


def _other(scene, item):
    """The actor, obstacle or controller that an item stands for, or None when it is gone."""
    return scene.character(item.id) if item.owner == CONTROLLER else scene.actor(item.id)


class _Met:
    """Something met, by what it is."""

    def _set_other(self, scene, item):
        other = _other(scene, item)
        self.actor = other if item.owner == ACTOR else None
        self.controller = other if item.owner == CONTROLLER else None
        self.obstacle = other if item.owner == OBSTACLE else None

    @property
    def other(self):
        """The actor, controller or obstacle; None when it is gone."""
        if self.actor is not None:
            return self.actor
        return self.controller if self.controller is not None else self.obstacle


class Hit(_Met):
    """One collision of a move."""

    def __init__(self, scene, record):
        self._set_other(scene, record.item)
        self.dynamic = record.item.owner == ACTOR and record.item.body == "dynamic"
        self.triangle = record.triangle
        self.data = record.item.data_of(record.triangle)
        self.position = record.position
        self.normal = record.normal
        self.direction = record.direction
        self.length = record.length
        self.distance = record.distance
        self.pass_ = record.sweep_pass

    def __repr__(self):
        return (
            f"<Hit: {self.other!r}, triangle {self.triangle}, pass {self.pass_.name}, position {self.position}, "
            f"normal {self.normal}>"
        )


class Ground(_Met):
    """What a character stands on."""

    def __init__(self, scene, contact, params):
        self._set_other(scene, contact.item)
        self.triangle = contact.triangle
        self.data = contact.item.data_of(contact.triangle)
        self.normal = contact.normal
        self.face_normal = contact.face_normal
        self.point = contact.point
        self.distance = contact.distance
        self.walkable = dot(contact.face_normal, params.up) >= params.slope_limit

    def __repr__(self):
        return f"<Ground: {self.other!r}, triangle {self.triangle}, normal {self.normal}, walkable {self.walkable}>"


class State:
    """What a character remembers of its last move."""

    def __init__(self, scene, memory):
        self.standing_on = None
        if memory.touched_actor >= 0:
            self.standing_on = scene.actor(memory.touched_actor)
        elif memory.touched_obstacle >= 0:
            self.standing_on = scene.actor(memory.touched_obstacle)
        elif memory.touched_controller >= 0:
            self.standing_on = scene.character(memory.touched_controller)
        self.on_controller = memory.touch_other_controller
        self.on_obstacle = memory.touch_obstacle
        self.moving_up = memory.is_moving_up
        self.sliding = memory.hit_non_walkable
        self.overlap = memory.overlap
        self.contact_point_height = memory.contact_height
        self.ground_triangle = None if memory.ground is None else memory.ground.triangle
        self.velocity = memory.velocity
        self.platform_delta = memory.platform_delta

    def __repr__(self):
        return (
            f"<State: standing on {self.standing_on!r}, moving_up {self.moving_up}, "
            f"sliding {self.sliding}, overlap {self.overlap:.3g}>"
        )


def _as_slope_limit(value, name):
    x = as_float(value, name)
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"slope_limit must be a cosine from 0 to 1, got {x}")
    return x


def _checked(p):
    """The parameters, when what must hold between them does."""
    lengths = (p.radius, p.height, p.contact_offset, p.invisible_wall_height, p.max_jump_height)
    if max(lengths) > FARTHEST:
        raise ValueError(
            f"radius, height, contact_offset, invisible_wall_height and max_jump_height must not exceed {FARTHEST:g} m"
        )
    if p.step_offset > p.height + 2.0 * p.radius:
        raise ValueError(
            f"step_offset must not exceed the character's height {p.height + 2.0 * p.radius}, got {p.step_offset}"
        )
    return p


def _climbing(value, name):
    return as_mode(value, ClimbingMode, name)


def _non_walkable(value, name):
    return as_mode(value, NonWalkableMode, name)


RULE_SETS = {"physx": Rules.PHYSX, "document": Rules.DOCUMENT}


def _as_rules(value, name):
    if isinstance(value, str):
        if value not in RULE_SETS:
            raise ValueError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
        return RULE_SETS[value]
    if not isinstance(value, Rules):
        raise TypeError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
    return Rules(as_bits(value, name))


def _as_answer(value):
    return as_bits(0 if value is None else value, "the answer of behavior")


def _as_surface(value, name):
    return Behavior(as_bits(value, name))


def _z_to(up):
    """Shortest rotation (x, y, z, w) that turns z to the unit vector up."""
    w = 1.0 + up[2]
    if w < 1e-9:
        return (1.0, 0.0, 0.0, 0.0)
    m = sqrt(up[0] * up[0] + up[1] * up[1] + w * w)
    return (-up[1] / m, up[0] / m, 0.0, w / m)


# How each parameter is converted.
CONVERT = {
    "up": as_unit,
    "radius": as_positive,
    "height": as_not_negative,
    "contact_offset": as_not_negative,
    "step_offset": as_not_negative,
    "slope_limit": _as_slope_limit,
    "invisible_wall_height": as_not_negative,
    "max_jump_height": as_not_negative,
    "climbing_mode": _climbing,
    "non_walkable_mode": _non_walkable,
    "overlap_recovery": as_bool,
    "prevent_vertical_sliding": as_bool,
    "collide": as_bool,
    "layer": as_bits,
    "mask": as_bits,
    "rules": _as_rules,
    "surface": _as_surface,
}


def _parameter(name, doc):
    """A settable parameter of a controller."""

    def set_it(self, value):
        params = _checked(replace(self._params, **{name: CONVERT[name](value, name)}))
        with self._mine():
            self._params = params
            self._publish()

    return property(lambda self: getattr(self._params, name), set_it, doc=doc)


def _callback(name, doc):
    """A settable callback of a controller."""

    def set_it(self, value):
        setattr(self, "_" + name, as_callback(value, name))

    return property(lambda self: getattr(self, "_" + name), set_it, doc=doc)


class CharacterController:
    """A capsule that walks, slides, steps and falls through a scene by PhysX's rules.

    Parameters
    ----------
    scene : Scene
        The world.
    position : (3,) floats
        Centre of the capsule, metres.
    radius : float
        Of the capsule, metres, > 0.
    height : float
        Distance between the centres of its two spheres, metres, >= 0.
    up : (3,) floats
        Up direction, any length but zero; the capsule stands along it.
    step_offset : float
        Highest step that is climbed, metres; at most the character's whole height.
    contact_offset : float
        Gap kept between capsule and world, metres.
    slope_limit : float
        Cosine of the steepest walkable angle, 0 to 1; 0 switches slopes off.
    climbing_mode : {'easy', 'constrained'} or ClimbingMode
        'constrained' never climbs higher than the step offset.
    non_walkable_mode : {'prevent_climbing', 'force_sliding'} or NonWalkableMode
        On slopes that are too steep: stand but do not climb, or slide down.
    rules : {'physx', 'document'} or Rules
        The rule set (RULES 9).
    overlap_recovery : bool
        Move out of static and kinematic shapes found overlapping.
    prevent_vertical_sliding : bool
        Do not slide up or down along ceilings.
    invisible_wall_height : float
        When > 0, triangles too steep to walk on become walls of this height, metres.
    max_jump_height : float
        Widens the volume that is looked up downwards, metres (for invisible walls).
    layer, mask : int
        Bit sets: the layer others see it on, the layers it sees.
    collide : bool
        Meet other controllers that have it too, where each one's layer meets the
        other's mask.
    on_hit : callable, optional
        ``on_hit(hit)`` for each collision of a move, before the move takes effect.
    behavior : callable, optional
        ``behavior(other) -> Behavior``: what may be done on an actor, obstacle or
        controller; the default is the other's own flags.
    filter : callable, optional
        ``filter(other) -> bool``: whether it may be met; asked at most once per thing
        and move, and only about what would be met.
    surface : Behavior
        What other characters may do on this one.
    user_data : object
        Yours.
    """

    def __init__(
        self,
        scene,
        position=(0.0, 0.0, 0.0),
        radius=0.4,
        height=1.0,
        up=(0.0, 0.0, 1.0),
        step_offset=0.5,
        contact_offset=0.01,
        slope_limit=0.707,
        climbing_mode="easy",
        non_walkable_mode="prevent_climbing",
        rules="physx",
        overlap_recovery=True,
        prevent_vertical_sliding=False,
        invisible_wall_height=0.0,
        max_jump_height=0.0,
        layer=1,
        mask=0xFFFFFFFF,
        collide=False,
        on_hit=None,
        behavior=None,
        filter=None,
        surface=Behavior.NONE,
        user_data=None,
    ):
        given = dict(locals())
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        place = as_place(position, "position")
        params = _checked(Params(**{name: convert(given[name], name) for name, convert in CONVERT.items()}))
        self._on_hit = as_callback(on_hit, "on_hit")
        self._behavior = as_callback(behavior, "behavior")
        self._filter = as_callback(filter, "filter")
        self._params = params
        self._scene = scene
        self._proxy = None
        self._removed = self._busy = False
        self._stats = MoveStats()
        self.user_data = user_data
        self._forget(place)
        self._id = scene._enlist(self)

    def _forget(self, position):
        self._memory = Memory(position)
        self._hits = []

    @contextmanager
    def _mine(self):
        """Keep others from using the controller meanwhile."""
        if self._removed:
            raise RuntimeError("the controller has been removed")
        if self._busy:
            raise RuntimeError("the controller is in use by another thread")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _publish(self):
        """Let the proxy follow."""
        if self._proxy is not None:
            self._proxy.move_to(self.position)

    def _as_character(self):
        """How others see it."""
        p = self._params
        half = scale(p.up, 0.5 * p.height)
        ends = (sub(self.position, half), add(self.position, half))
        return Character(self.id, *ends, p.radius, p.layer, p.mask, int(p.surface))

    id = property(lambda self: self._id, doc="Number among the controllers of the scene.")
    scene = property(lambda self: self._scene, doc="The world.")
    up = _parameter("up", "Unit up direction. Settable, any length but zero.")
    radius = _parameter("radius", "Radius of the capsule, metres. Set: the centre stays.")
    height = _parameter("height", "Distance between the sphere centres, metres. Set: the centre stays.")
    step_offset = _parameter("step_offset", "Highest step that is climbed, metres. Settable.")
    contact_offset = _parameter("contact_offset", "Gap kept between capsule and world, metres. Settable.")
    slope_limit = _parameter("slope_limit", "Cosine of the steepest walkable angle; 0 switches slopes off. Settable.")
    climbing_mode = _parameter("climbing_mode", "ClimbingMode. Settable, by name too.")
    non_walkable_mode = _parameter("non_walkable_mode", "NonWalkableMode. Settable, by name too.")
    overlap_recovery = _parameter("overlap_recovery", "Move out of shapes found overlapping. Settable.")
    prevent_vertical_sliding = _parameter("prevent_vertical_sliding", "No sliding along ceilings. Settable.")
    invisible_wall_height = _parameter("invisible_wall_height", "Height of invisible walls, metres; 0: none. Settable.")
    max_jump_height = _parameter("max_jump_height", "How far the look-up reaches down, metres. Settable.")
    layer = _parameter("layer", "Bit set: the layer on which others see the character. Settable.")
    mask = _parameter("mask", "Bit set: the layers that the character sees. Settable.")
    rules = _parameter("rules", "The rule set, as Rules flags. Settable, by name too.")
    collide = _parameter("collide", "Whether it meets other controllers. Settable.")
    surface = _parameter("surface", "What other characters may do on this one (Behavior). Settable.")
    on_hit = _callback("on_hit", "Called with each Hit of a move before the move takes effect. Settable.")
    behavior = _callback("behavior", "Asked what may be done on something, instead of its own flags. Settable.")
    filter = _callback("filter", "Asked whether an actor, obstacle or controller may be met. Settable.")

    def move(self, displacement, dt, *, min_distance=0.0, mask=None, filter=None):
        """Move by a displacement, sliding along what is in the way.

        Parameters
        ----------
        displacement : (3,) floats
            Wanted motion, metres, gravity included.
        dt : float
            Time that passes, seconds, >= 0; for the velocity.
        min_distance : float
            A motion no longer than this is not begun, metres.
        mask : int, optional
            Layers to see in this move; the default is the character's mask.
        filter : callable, optional
            For this move, instead of the character's filter.

        Returns
        -------
        CollisionFlags
            SIDES 1, UP 2, DOWN 4.

        Notes
        -----
        What a callback raises reaches the caller, and the controller stays as it was.
        """
        d = as_place(displacement, "displacement")
        dt = as_not_negative(dt, "dt")
        min_distance = as_not_negative(min_distance, "min_distance")
        mask = self.mask if mask is None else as_bits(mask, "mask")
        filter = self._filter if filter is None else as_callback(filter, "filter")
        with self._mine():
            job = Move(self._params, self._memory, self._scene.items(), self._others(mask), mask)
            if filter is not None:
                job.ask_filter = lambda item: self._asked(filter, item, bool)
            if self._behavior is not None:
                job.ask_behavior = lambda item: self._asked(self._behavior, item, _as_answer)
            job.run(d, dt, min_distance)
            if self._on_hit is not None:
                for record in job.hits:
                    self._on_hit(Hit(self._scene, record))
            self._memory = job.s
            self._hits = job.hits
            self._stats = job.stats
            self._publish()
        return FLAGS[job.s.flags]

    def _others(self, mask):
        """Other controllers that it may meet, where they are now (RULES 8)."""
        if not self.collide:
            return []
        this = self._as_character()
        this.mask = mask
        others = [c._as_character() for c in self._scene.characters if c.collide]
        return [c for c in others if c.meets(this)]

    def _asked(self, callback, item, convert):
        """What a callback says of a thing; 0 of what is gone."""
        other = _other(self._scene, item)
        return 0 if other is None else convert(callback(other))

    @property
    def position(self):
        """Centre of the capsule, metres. Set: moved without forgetting what it stands on."""
        return self._memory.position

    @position.setter
    def position(self, value):
        p = as_place(value, "position")
        with self._mine():
            self._memory = replace(self._memory, position=p)
            self._publish()

    def _foot(self):
        return 0.5 * self.height + self.radius + self.contact_offset

    @property
    def foot_position(self):
        """Half the whole height plus the contact offset below the centre, metres (RULES 1). Settable."""
        return madd(self.position, self.up, -self._foot())

    @foot_position.setter
    def foot_position(self, value):
        self.position = madd(as_place(value, "foot_position"), self.up, self._foot())

    def teleport(self, position):
        """Put the character elsewhere; it forgets what it stands on.

        Parameters
        ----------
        position : (3,) floats
            Centre of the capsule, metres.
        """
        p = as_place(position, "position")
        with self._mine():
            self._forget(p)
            self._publish()

    def remove(self):
        """Take the character out of the scene; it cannot be moved any more."""
        with self._mine():
            self._removed = True
            self._scene._characters.pop(self.id, None)
            if self._proxy is not None and self._proxy.scene is not None:
                self._scene.remove(self._proxy)
            self._proxy = None

    def add_proxy(self, layer=1, user_data=None):
        """Give the character a kinematic capsule actor that follows it after each move (MOVE 3.2.6).

        Questions to the world and other characters see it; its owner never meets it.

        Parameters
        ----------
        layer : int
            Of the actor.
        user_data : object
            Of the actor.

        Returns
        -------
        Actor
        """
        if self._proxy is not None and self._proxy.scene is not None:
            raise RuntimeError("the controller has a proxy already")
        with self._mine():
            place = {"position": self.position, "rotation": _z_to(self.up)}
            self._proxy = self._scene.add(self.shape, **place, body="kinematic", layer=layer, user_data=user_data)
            self._params = replace(self._params, proxy=self._proxy.id)
        return self._proxy

    proxy = property(lambda self: self._proxy, doc="The actor that follows the character, or None.")

    @property
    def shape(self):
        """The capsule (Capsule), its axis along local z."""
        return Capsule(self.radius, self.height)

    @property
    def pose(self):
        """(position, rotation) that puts ``shape`` where the character is."""
        return self.position, _z_to(self.up)

    @property
    def collision_flags(self):
        """Where the last move collided (CollisionFlags)."""
        return FLAGS[self._memory.flags]

    @property
    def hit_sides(self):
        """The last move hit something aside."""
        return CollisionFlags.SIDES in self.collision_flags

    @property
    def hit_up(self):
        """The last move hit something above."""
        return CollisionFlags.UP in self.collision_flags

    @property
    def hit_down(self):
        """The last move hit something below."""
        return CollisionFlags.DOWN in self.collision_flags

    @property
    def velocity(self):
        """What the last move really travelled / dt, m/s; zero when dt was 0."""
        return self._memory.velocity

    @property
    def grounded(self):
        """The last move ended on something below."""
        return self._memory.ground is not None

    @property
    def ground(self):
        """What the last move ended on (Ground), or None."""
        contact = self._memory.ground
        return None if contact is None else Ground(self._scene, contact, self._params)

    @property
    def state(self):
        """What the character remembers of its last move (State)."""
        return State(self._scene, self._memory)

    @property
    def hits(self):
        """Collisions of the last move (list of Hit), in the order in which they happened."""
        return [Hit(self._scene, record) for record in self._hits]

    @property
    def stats(self):
        """What the last move cost (MoveStats)."""
        return replace(self._stats)

    def __repr__(self):
        return f"<{type(self).__name__} at {self.position}, radius {self.radius}, height {self.height}>"
