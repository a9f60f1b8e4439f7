"""CharacterController: arguments, callbacks, state and results around the moves."""

import logging
import struct
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import sqrt

import numpy as np

from pycct.args import save_format as saves
from pycct.character.explanation import Event, Explanation
from pycct.reference.character_grid import Character, separation, yielding_separation
from pycct.reference.move import GroundContact, Memory, Move, MoveStats, Params, decompose
from pycct.reference.scene import Scene
from pycct.reference.shapes import Capsule
from pycct.reference.tolerances import EPSILON_DISTANCE, is_below_limit
from pycct.reference.types import ACTOR, CONTROLLER, OBSTACLE
from pycct.reference.values import (
    FARTHEST,
    as_behavior,
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
from pycct.reference.vec import (
    ZERO,
    add,
    box_overlap,
    dot,
    length,
    madd,
    max_abs,
    reject,
    scale,
    sub,
)
from pycct.runtime.enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Region, Rules
from pycct.runtime.version import RESULTS_VERSION

FLAGS = tuple(CollisionFlags(i) for i in range(8))
# Silent until the program configures the log.
logger = logging.getLogger("pycct")
logger.addHandler(logging.NullHandler())
# Shares of the axis for the bottom and the top of the capsule (SWEEP 6.3).
BOTTOM_REGION = 0.1
TOP_REGION = 0.9
# Largest speed of two characters that are separated, m/s (RULES 8, RULES_2 2).
SEPARATION_SPEED = 4.0
# Consecutive moves without the desired side motion after which a character is stuck (MOVE 14.7).
STUCK_MOVES = 10
# A shorter dt would make the velocity overflow, seconds.
SHORTEST = 1e-100


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
    d = decompose(
        as_vec3(displacement, "displacement"),
        as_unit(up, "up"),
        as_not_negative(step_offset, "step_offset"),
        as_bool(standing_on_moving, "standing_on_moving"),
    )
    return d._asdict()


def _other(scene, owner, id):
    """The actor, obstacle or controller with that id, or None if it has been removed."""
    return scene.character(id) if owner == CONTROLLER else scene.actor(id)


class _Met:
    """An object that was hit, by its kind."""

    def _set_other(self, scene, met):
        self.id = met.id
        other = _other(scene, met.owner, met.id)
        self.actor = other if met.owner == ACTOR else None
        self.controller = other if met.owner == CONTROLLER else None
        self.obstacle = other if met.owner == OBSTACLE else None

    def __getstate__(self):
        # Pickles contain the id instead of the object.
        return {**self.__dict__, "actor": None, "controller": None, "obstacle": None}

    @property
    def other(self):
        """The actor, controller or obstacle; None if it has been removed."""
        if self.actor is not None:
            return self.actor
        return self.controller if self.controller is not None else self.obstacle


class Hit(_Met):
    """One collision of a move."""

    def __init__(self, scene, record):
        self._set_other(scene, record)
        self.dynamic = record.dynamic
        self.triangle = record.triangle
        self.data = record.data
        self.position = record.position
        self.normal = record.normal
        self.direction = record.direction
        self.length = record.length
        self.distance = record.distance
        self.time = record.distance / record.length
        # SWEEP 6.3: by the position on the axis; 6.2 never returns SIDE for a large radius.
        self.region = Region.TOP if record.along >= TOP_REGION else Region.SIDE
        if record.along <= BOTTOM_REGION:
            self.region = Region.BOTTOM
        self.pass_ = record.sweep_pass

    def __repr__(self):
        return (
            f"<Hit: {self.other!r}, triangle {self.triangle}, pass {self.pass_.name}, position {self.position}, "
            f"normal {self.normal}>"
        )


class Ground(_Met):
    """The ground below a character."""

    def __init__(self, scene, contact, params):
        self._set_other(scene, contact)
        self._contact = contact
        self.triangle = contact.triangle
        self.data = contact.data
        self.normal = contact.normal
        self.face_normal = contact.face_normal
        self.point = contact.point
        self.distance = contact.distance
        self.walkable = not is_below_limit(dot(contact.face_normal, params.up), params.slope_limit)

    def __repr__(self):
        return f"<Ground: {self.other!r}, triangle {self.triangle}, normal {self.normal}, walkable {self.walkable}>"


class State:
    """State of a character after its last move."""

    def __init__(self, scene, memory):
        ids = [i for i in (memory.touched_actor, memory.touched_obstacle, memory.touched_controller) if i >= 0]
        self.standing_on_id = ids[0] if ids else None
        self.standing_on = None
        if max(memory.touched_actor, memory.touched_obstacle) >= 0:
            self.standing_on = scene.actor(self.standing_on_id)
        elif ids:
            self.standing_on = scene.character(self.standing_on_id)
        self.on_controller = memory.touch_other_controller
        self.on_obstacle = memory.touch_obstacle
        self.moving_up = memory.is_moving_up
        self.sliding = memory.hit_non_walkable
        self.overlap = memory.overlap
        self.contact_point_height = memory.contact_height
        self.ground_triangle = None if memory.ground is None else memory.ground.triangle
        self.velocity = memory.velocity
        self.displacement = memory.displacement
        self.platform_delta = memory.platform_delta

    def __getstate__(self):
        # Pickles contain the id instead of the object.
        return {**self.__dict__, "standing_on": None}

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
    """Return the parameters if they fit together."""
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


RULE_SETS = {"physx": Rules.PHYSX, "document": Rules.DOCUMENT, "robust": Rules.ROBUST}


def _as_rules(value, name):
    if isinstance(value, str):
        if value not in RULE_SETS:
            raise ValueError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
        return RULE_SETS[value]
    if not isinstance(value, Rules):
        raise TypeError(f"rules must be one of {sorted(RULE_SETS)} or Rules flags, not {value!r}")
    return Rules(as_bits(value, name))


def _as_answer(value):
    return as_behavior(0 if value is None else value, "the answer of behavior")


def _as_surface(value, name):
    return Behavior(as_behavior(value, name))


def _z_to(up):
    """Shortest rotation (x, y, z, w) from z to the unit vector up."""
    w = 1.0 + up[2]
    if w < 1e-9:
        return (1.0, 0.0, 0.0, 0.0)
    m = sqrt(up[0] * up[0] + up[1] * up[1] + w * w)
    return (-up[1] / m, up[0] / m, 0.0, w / m)


# Conversion of each parameter.
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


# Numbers of modes and kinds in a save.
CLIMBING = tuple(ClimbingMode)
NON_WALKABLE = tuple(NonWalkableMode)
OWNERS = (ACTOR, CONTROLLER, OBSTACLE)
# Bits of a save.
MARKS = (
    "validate_triangle_down",
    "validate_triangle_side",
    "touch_other_controller",
    "touch_obstacle",
    "normalize_response",
    "walk_experiment",
    "hit_non_walkable",
    "is_moving_up",
    "passes_back_face",
    "climbs_steep",
)


def _params_values(p):
    """All parameters, in the order of saves.PARAMS."""
    modes = [CLIMBING.index(p.climbing_mode), NON_WALKABLE.index(p.non_walkable_mode)]
    lengths = [p.radius, p.height, p.contact_offset, p.step_offset, p.slope_limit, p.invisible_wall_height]
    switches = [p.overlap_recovery, p.prevent_vertical_sliding, p.collide]
    bits = [p.layer, p.mask, int(p.rules), int(p.surface)]
    return [*p.up, *lengths, p.max_jump_height, *modes, *switches, *bits]


def _params_of(v):
    """The inverse, with the checks of the constructor."""
    up = (v[0], v[1], v[2])
    if not 0.999999 <= length(up) <= 1.000001 or v[10] not in (0, 1) or v[11] not in (0, 1):
        raise ValueError("data is damaged: its parameters make no sense")
    return _checked(
        Params(
            up=up,
            radius=as_positive(v[3], "data: radius"),
            height=as_not_negative(v[4], "data: height"),
            contact_offset=as_not_negative(v[5], "data: contact_offset"),
            step_offset=as_not_negative(v[6], "data: step_offset"),
            slope_limit=_as_slope_limit(v[7], "data: slope_limit"),
            invisible_wall_height=as_not_negative(v[8], "data: invisible_wall_height"),
            max_jump_height=as_not_negative(v[9], "data: max_jump_height"),
            climbing_mode=CLIMBING[v[10]],
            non_walkable_mode=NON_WALKABLE[v[11]],
            overlap_recovery=v[12],
            prevent_vertical_sliding=v[13],
            collide=v[14],
            layer=v[15],
            mask=v[16],
            rules=Rules(v[17]),
            surface=Behavior(v[18]),
        )
    )


def _shifted(m, offset, up):
    """The same memory in coordinates whose origin is shifted by the offset."""
    rise = dot(offset, up)
    return replace(
        m,
        position=sub(m.position, offset),
        touched_point=sub(m.touched_point, offset),
        touched_min=m.touched_min - rise,
        touched_max=m.touched_max - rise,
        contact_height=m.contact_height - rise,
        ground=m.ground and replace(m.ground, point=sub(m.ground.point, offset)),
    )


def _memory_values(m):
    """All state of a controller, in the order of saves.STATE."""
    g = m.ground or GroundContact(ZERO, ZERO, ACTOR, -1, None, None, False, ZERO, 0.0)
    values = []
    for v in (m.position, m.velocity, m.displacement, m.asked, m.touched_point, m.touched_local, m.platform_delta):
        values += v
    for v in (m.separation, m.down_normal, m.side_normal, g.normal, g.point, g.face_normal):
        values += v
    values += [m.touched_min, m.touched_max, m.contact_height, m.overlap, g.distance, m.steep_climb, m.flags]
    marks = 0
    for k, name in enumerate(MARKS):
        marks |= getattr(m, name) << k
    values += [marks, m.touched_actor, m.touched_obstacle, m.touched_controller]
    triangle = -1 if g.triangle is None else g.triangle
    return [
        *values, m.ground is not None, OWNERS.index(g.owner), g.id, triangle, g.data is not None, g.data or 0,
        g.has_face,
    ]  # fmt: skip


def _memory_of(v):
    """The inverse."""
    for x in v[:45]:
        as_float(x, "data")
    vectors = [tuple(v[i : i + 3]) for i in range(0, 39, 3)]
    as_place(vectors[0], "data: position")
    touched_min, touched_max, contact_height, overlap, distance, steep_climb, flags, marks = v[39:47]
    actor, obstacle, controller, touching, owner, number, triangle, has_data, data, has_face = v[47:57]
    if not 0 <= flags <= 7 or not 0 <= owner <= 2:
        raise ValueError("data is damaged: its state makes no sense")
    ground = None
    if touching:
        triangle = triangle if triangle >= 0 else None
        data = data if has_data else None
        face = (has_face, vectors[12])
        ground = GroundContact(vectors[10], vectors[11], OWNERS[owner], number, triangle, data, *face, distance)
    return Memory(
        position=vectors[0],
        velocity=vectors[1],
        flags=flags,
        **{name: bool(marks >> k & 1) for k, name in enumerate(MARKS)},
        touched_actor=actor,
        touched_obstacle=obstacle,
        touched_controller=controller,
        displacement=vectors[2],
        asked=vectors[3],
        touched_point=vectors[4],
        touched_local=vectors[5],
        platform_delta=vectors[6],
        separation=vectors[7],
        down_normal=vectors[8],
        side_normal=vectors[9],
        touched_min=touched_min,
        touched_max=touched_max,
        contact_height=contact_height,
        overlap=overlap,
        steep_climb=steep_climb,
        ground=ground,
    )


def _mix(h, x):
    """One-to-one in each argument (the finaliser of splitmix64)."""
    h = ((h ^ x) + 0x9E3779B97F4A7C15) % 2**64
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB % 2**64
    return h ^ (h >> 31)


def _mix_bytes(h, data):
    """Mix bytes into a hash, eight at a time, padded with zeros."""
    data += bytes(8 - len(data) % 8)
    for word in struct.unpack(f"<{len(data) // 8}Q", data):
        h = _mix(h, word)
    return h


def _tell_together(name, heroes, **arguments):
    """Call the listeners of all scenes of these controllers, each with those of its scene."""
    scenes = []
    for hero in heroes:
        if hero.scene not in scenes:
            scenes.append(hero.scene)
    for scene in scenes:
        ones = [h for h in heroes if h.scene is scene]
        event = {"controllers": ones, **arguments}
        if "yielding" in event:
            event["yielding"] = np.array([event["yielding"][scene, h.id][0] for h in ones])
        scene._tell(scene, name, **event)


def weights_of(values, n):
    """The yielding weights as floats, or None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "fiu":
        raise TypeError(f"yielding must be an array of floats, not of {array.dtype}")
    array = array.astype(np.float64)
    if array.shape != (n,):
        raise ValueError(f"yielding must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array) & (array >= 0.0)).all():
        raise ValueError("yielding must be finite and not negative")
    return array.tolist()


def yielding_of(heroes, weights):
    """By scene and id: the weight, the wanted displacement and the motion of each."""
    return {(h.scene, h.id): (w, *h._pace()) for h, w in zip(heroes, weights, strict=True)}


def separate(controllers, dt, *, yielding=None):
    """Separate overlapping characters: each moves by half the overlap in its next move.

    The separation is horizontal (RULES 8).

    Parameters
    ----------
    controllers : iterable of CharacterController
        Characters to separate. Only pairs that collide (``collide``, layers and masks) count, and
        the other one of a pair need not be among them. Call the function after all have moved.
    dt : float
        Duration of a step, seconds, >= 0; each of two parts by at most 2 m/s.
    yielding : (n,) array of floats, optional
        One weight per controller, >= 0: of two that come close, one gives way and takes the whole
        separation.

    Notes
    -----
    Characters exactly one above the other separate in a fixed direction, by their ids.
    """
    limit = SEPARATION_SPEED * as_not_negative(dt, "dt")
    try:
        named = list(controllers)
    except TypeError:
        raise TypeError(f"controllers must be several, not {type(controllers).__name__}") from None
    heroes, weights = [], []
    given = weights_of(yielding, len(named))
    for k, hero in enumerate(named):
        if not isinstance(hero, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(hero).__name__}")
        # A controller that is named twice is separated once.
        if not any(hero is other for other in heroes):
            heroes.append(hero)
            weights.append(None if given is None else given[k])
    table = None if given is None else yielding_of(heroes, weights)
    # All controllers are acquired before the first change, so that the call works for all or none.
    with ExitStack() as stack:
        for hero in heroes:
            stack.enter_context(hero._mine())
        _tell_together("separate", heroes, dt=dt, **({} if table is None else {"yielding": table}))
        for hero in heroes:
            own = table and {i: one for (scene, i), one in table.items() if scene is hero.scene}
            if hero.collide:
                hero._memory = replace(hero._memory, separation=add(hero._memory.separation, hero._push(limit, own)))


def _rebuild(cls, scene, data, number, on_hit, behavior, filter, user_data):
    """Return a pickled or copied controller, with its id if that is free."""
    hero = cls.__new__(cls)
    CharacterController.__init__(hero, scene, on_hit=on_hit, behavior=behavior, filter=filter, user_data=user_data)
    hero._take_id(number)
    CharacterController.restore(hero, data)
    return hero


def _parameter(name, doc):
    """A settable parameter of a controller."""

    def set_it(self, value):
        self._change({name: value})

    return property(lambda self: getattr(self._params, name), set_it, doc=doc)


def _callback(name, doc):
    """A settable callback of a controller."""

    def set_it(self, value):
        setattr(self, "_" + name, as_callback(value, name))

    return property(lambda self: getattr(self, "_" + name), set_it, doc=doc)


class CharacterController:
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
        Highest step that the character climbs, metres; at most the character's whole height.
    contact_offset : float
        Gap, in metres, that the character keeps from every surface.
    slope_limit : float
        Cosine of the steepest walkable angle, 0 to 1; 0 switches slopes off.
    climbing_mode : {'easy', 'constrained'} or ClimbingMode
        'constrained' never climbs higher than the step offset.
    non_walkable_mode : {'prevent_climbing', 'force_sliding'} or NonWalkableMode
        On slopes that are too steep: stand without climbing, or slide down.
    rules : {'physx', 'document', 'robust'} or Rules
        The rule set (RULES 9).
    overlap_recovery : bool
        Move out of overlapping static and kinematic shapes.
    prevent_vertical_sliding : bool
        Do not slide up or down along ceilings.
    invisible_wall_height : float
        If > 0, walls of this height replace triangles that are too steep, metres.
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
        event = {name: value for name, value in given.items() if name not in ("self", "scene", "position")}
        scene._tell(scene, "CharacterController", position=place, **event)
        self._params = params
        self._scene = scene
        self._proxy = None
        self._removed = self._busy = False
        self._telling = False  # results of callbacks decide a change
        self._group = 0  # see Crowd
        self._stats = MoveStats()
        self._warned = set()
        self.user_data = user_data
        self._forget(place)
        self._id = scene._enlist(self)

    def _forget(self, position):
        self._memory = Memory(position)
        self._hits = []
        self._last = None  # start and arguments of the last move
        self._stuck_moves = 0

    @contextmanager
    def _mine(self):
        """Keep others from using the controller meanwhile."""
        if self._removed:
            raise RuntimeError("the controller has been removed")
        if self._busy:
            raise RuntimeError("the controller is in use: by another thread, or by a callback of its own move")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _tell(self, name, **arguments):
        """Call the scene's listener."""
        self._scene._tell(self, name, **arguments)

    @contextmanager
    def _answers_told(self):
        """The listener receives results of callbacks meanwhile."""
        self._telling = True
        try:
            yield
        finally:
            self._telling = False

    def _change(self, parameters):
        """Change parameters, and the position if given: all of them or none."""
        for name in parameters:
            if name not in CONVERT and name != "position":
                raise TypeError(f"unexpected keyword argument {name!r}")
        place = self._memory.position
        if "position" in parameters:
            place = as_place(parameters["position"], "position")
        fresh = {name: CONVERT[name](value, name) for name, value in parameters.items() if name != "position"}
        params = _checked(replace(self._params, **fresh))
        with self._mine():
            self._tell("set", **parameters)
            self._params = params
            self._memory = replace(self._memory, position=place)
            self._publish()

    def set(self, **parameters):
        """Change several parameters at once, ``position`` too.

        All of them, or none if one is invalid.
        """
        self._change(parameters)

    def _publish(self):
        """Move the proxy."""
        if self._proxy is not None and self._proxy.scene is None:
            # The program has removed the proxy from the scene.
            self._proxy = None
            self._scene._with_proxy.pop(self.id, None)
        if self._proxy is not None:
            if self._proxy.shape.radius != self.radius or self._proxy.shape.height != self.height:
                self._proxy._shape = self.shape
            with self._scene._quietly():
                self._proxy.move_to(self.position, _z_to(self.up))

    def _as_character(self):
        """The character as others see it."""
        p = self._params
        half = scale(p.up, 0.5 * p.height)
        ends = (sub(self.position, half), add(self.position, half))
        return Character(self.id, *ends, p.radius, p.layer, p.mask, int(p.surface), self._group)

    id = property(lambda self: self._id, doc="Number among the actors, obstacles and characters of the scene.")
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
            New up direction of the character, from this move on. Any length but zero.

        Returns
        -------
        CollisionFlags
            SIDES 1, UP 2, DOWN 4.

        Notes
        -----
        An exception in a callback reaches the caller, and the controller stays unchanged.
        """
        d = as_place(displacement, "displacement")
        dt = as_not_negative(dt, "dt")
        if 0.0 < dt < SHORTEST:
            raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {dt}")
        min_distance = as_not_negative(min_distance, "min_distance")
        bits = self.mask if mask is None else as_bits(mask, "mask")
        chosen = self._filter if filter is None else as_callback(filter, "filter")
        turned, before = None if up is None else as_unit(up, "up"), self.up
        event = {} if up is None else {"up": as_vec3(up, "up")}
        with self._mine():
            self._tell("move", displacement=d, dt=dt, min_distance=min_distance, mask=mask, filter=filter, **event)
        try:
            if up is not None:
                self._params = replace(self._params, up=turned)
            return self._advance(d, dt, min_distance, bits, chosen)
        except BaseException:
            self._params = replace(self._params, up=before)
            raise

    def _advance(self, d, dt, min_distance, mask, filter, others=None):
        """Make a move; ``others``: other controllers, if not at their current positions."""
        with self._mine(), self._answers_told():
            before = self._memory
            # A callback that is set by a callback counts for the next move.
            on_hit = self._on_hit
            job = self._job(before, mask, filter)
            if others is not None:
                job.others = others
            job.run(d, dt, min_distance)
            if max_abs(job.s.position) > FARTHEST:
                raise ValueError(f"displacement must not lead beyond {FARTHEST:g} m, to {job.s.position}")
            if on_hit is not None:
                for record in job.hits:
                    on_hit(Hit(self._scene, record))
            if job.stats.iterations > 0:
                self._watch(d, job)
            self._last = (before, d, dt, min_distance, mask, filter)
            self._memory = job.s
            self._hits = job.hits
            self._stats = job.stats
            self._stats.timestamp = self._scene.timestamp
            self._publish()
        return FLAGS[job.s.flags]

    def _job(self, memory, mask, filter):
        """A move before its start."""
        job = Move(self._params, memory, self._scene.items(), self._others(mask), mask)
        if filter is not None:
            job.ask_filter = lambda item: self._asked(filter, item, bool)
        behavior = self._behavior
        if behavior is not None:
            job.ask_behavior = lambda item: self._asked(behavior, item, _as_answer)
        return job

    def _watch(self, displacement, job):
        """Log each warning about a move once (MOVE 14.5 and 14.7 as RULES corrects them).

        Change nothing.
        """
        before, after = self._memory, job.s
        moved = sub(after.position, before.position)
        asked_aside = reject(displacement, self.up)
        if job.stats.recoveries == 0 and "far" not in self._warned:
            bound = 2.0 * length(displacement) + length(before.separation) + self.step_offset
            bound = bound + 2.0 * length(after.platform_delta)
            if length(moved) > bound:
                self._warned.add("far")
                text = "%r moved %g m in one move although only %g m were asked"
                logger.warning(text, self, length(moved), length(displacement))
        if length(asked_aside) > EPSILON_DISTANCE and length(reject(moved, self.up)) < EPSILON_DISTANCE:
            self._stuck_moves += 1
            if self._stuck_moves > STUCK_MOVES and "stuck" not in self._warned:
                self._warned.add("stuck")
                text = "%r may be stuck: %d moves in a row without the side motion that was asked; "
                logger.warning(text + "explain_last() tells why", self, self._stuck_moves)
        else:
            self._stuck_moves = 0

    def _others(self, mask):
        """Other controllers that it may collide with, at their current positions (RULES 8)."""
        if not self.collide:
            return []
        this = self._as_character()
        this.mask = mask
        others = [c._as_character() for c in self._scene.characters if c.collide]
        return [c for c in others if c.meets(this)]

    def _pace(self):
        """Return the wanted displacement, and the motion without that of a platform."""
        m = self._memory
        return m.asked, sub(m.displacement, m.platform_delta)

    def _push(self, limit, weight_of=None):
        """Half of its separation from all others (RULES 8), or what it gives way by weights."""
        this = self._as_character()
        if weight_of is not None:
            return yielding_separation(this, self._others(self.mask), self.up, limit, weight_of)
        others = [c for c in self._others(self.mask) if box_overlap(c.bounds, this.bounds)]
        return separation(this, others, self.up, limit)

    def _asked(self, callback, item, convert):
        """Result of a callback about an object; 0 if the object has been removed."""
        other = _other(self._scene, item.owner, item.id)
        if other is None:
            return 0
        answer = convert(callback(other))
        if self._telling:
            question = "filter" if convert is bool else "behavior"
            converted = answer if convert is bool else Behavior(answer)
            self._tell("answer", question=question, other=other, answer=converted)
        return answer

    @property
    def position(self):
        """Centre of the capsule, metres. Setting it keeps the platform."""
        return self._memory.position

    @position.setter
    def position(self, value):
        p = as_place(value, "position")
        with self._mine():
            self._tell("set", position=p)
            self._memory = replace(self._memory, position=p)
            self._publish()

    def _foot(self):
        return 0.5 * self.height + self.radius + self.contact_offset

    @property
    def foot_position(self):
        """Half the whole height plus the contact offset below the centre, metres (RULES 1).

        Settable.
        """
        return madd(self.position, self.up, -self._foot())

    @foot_position.setter
    def foot_position(self, value):
        p = as_place(value, "foot_position")
        with self._mine():
            self._tell("set", foot_position=p)
            self._memory = replace(self._memory, position=madd(p, self.up, self._foot()))
            self._publish()

    def _shift_origin(self, o):
        """The same place in shifted coordinates; the state is kept."""
        with self._mine():
            self._memory = _shifted(self._memory, o, self.up)
            if self._last is not None:
                before, *asked = self._last
                self._last = (_shifted(before, o, self.up), *asked)
            self._hits = [h._replace(position=sub(h.position, o)) for h in self._hits]
            self._publish()

    def teleport(self, position):
        """Move the character to another position; it forgets its platform.

        Parameters
        ----------
        position : (3,) floats
            Centre of the capsule, metres.
        """
        p = as_place(position, "position")
        with self._mine():
            self._tell("teleport", position=p)
            self._forget(p)
            self._publish()

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
        reach = as_not_negative(max_distance, "max_distance")
        with self._mine():
            contact = self._job(self._memory, self.mask, self._filter).probe_below(reach)
        return None if contact is None else Ground(self._scene, contact, self._params)

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
        reach = as_not_negative(max_distance, "max_distance")
        with self._mine():
            self._tell("snap_to_ground", max_distance=reach)
        with self._answers_told():
            ground = CharacterController.probe_ground(self, reach)
        if ground is None or not ground.walkable:
            return False
        gap = ground.distance - self.contact_offset
        with self._mine():
            # A smaller gap is rounding: the character stands there already.
            if gap <= 1e-9:
                self._memory = replace(self._memory, ground=ground._contact)
                self._publish()
                return False
            place = madd(self.position, self.up, -gap)
            contact = replace(ground._contact, distance=self.contact_offset)
            self._memory = replace(self._memory, position=place, ground=contact)
            self._publish()
        return True

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
        h = as_not_negative(height, "height")
        if h <= self.height:
            return True
        with self._mine():
            # Only the added volume is tested; current contacts do not count.
            top = madd(self.position, self.up, 0.5 * self.height)
            new_top = madd(top, self.up, h - self.height)
            job = self._job(self._memory, self.mask, self._filter)
            return not job.touches_anything(top, new_top, self.radius)

    def resize(self, height):
        """Change the height with the feet in place (RULES 8), without a test for headroom.

        Parameters
        ----------
        height : float
            Distance between the sphere centres, metres, >= 0. `can_resize` tests the headroom.
        """
        params = _checked(replace(self._params, height=as_not_negative(height, "height")))
        place = madd(self.position, self.up, 0.5 * (params.height - self.height))
        with self._mine():
            self._tell("resize", height=params.height)
            self._params = params
            self._memory = replace(self._memory, position=place)
            self._publish()

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
        more = as_not_negative(margin, "margin")
        if more > FARTHEST:
            raise ValueError(f"margin must not exceed {FARTHEST:g} m, got {more}")
        with self._mine(), self._answers_told():
            self._tell("unstick", margin=more)
            job = self._job(self._memory, self.mask, self._filter)
            job.unstick(more)
            if max_abs(job.s.position) > FARTHEST:
                raise ValueError(f"margin must not lead beyond {FARTHEST:g} m, to {job.s.position}")
            self._memory = job.s
            self._publish()
        return job.stats.recoveries > 0

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
        d = as_place(displacement, "displacement")
        dt = as_not_negative(dt, "dt")
        min_distance = as_not_negative(min_distance, "min_distance")
        mask = self.mask if mask is None else as_bits(mask, "mask")
        filter = self._filter if filter is None else as_callback(filter, "filter")
        with self._mine():
            return self._retrace(self._memory, d, dt, min_distance, mask, filter)

    def explain_last(self):
        """Repeat the last move in the current scene and explain it; None before the first move.

        Returns
        -------
        Explanation or None
            Its notes report an end that differs because the scene has changed.
        """
        if self._last is None:
            return None
        with self._mine():
            explanation = self._retrace(*self._last)
        # A shift of the origin may change the last digits.
        if length(sub(explanation.end, self.position)) > EPSILON_DISTANCE:
            explanation.notes.append(
                f"the character is elsewhere now: the scene has changed or it was put there; it is at {self.position}"
            )
        return explanation

    def _retrace(self, memory, d, dt, min_distance, mask, filter):
        """Repeat a move and explain it."""
        job = self._job(memory, mask, filter)
        job.run(d, dt, min_distance)
        events = [
            Event(kind, sweep_pass, position, vector, None if hit is None else Hit(self._scene, hit))
            for kind, sweep_pass, position, vector, hit in job.trace
        ]
        return Explanation(d, memory.position, job.s.position, FLAGS[job.s.flags], events)

    def state_hash(self):
        """64 bits over id, group, parameters and memory: everything that decides the next move."""
        return self._state_hash(0)

    def _state_hash(self, home):
        h = _mix_bytes(RESULTS_VERSION, saves.PARAMS.pack(*_params_values(self._params)))
        return _mix_bytes(
            _mix(_mix(h, self.id), self._group | home << 32), saves.STATE.pack(*_memory_values(self._memory))
        )

    def save(self):
        """Return the state of the character as bytes for `restore`.

        Returns
        -------
        bytes
            Also valid for the compiled package. They do not contain callbacks and user_data, and
            refer to actors by id.
        """
        return saves.pack(_params_values(self._params), _memory_values(self._memory))

    def restore(self, data):
        """Restore a state of `save`; moves then repeat to the bit in an equal scene.

        Parameters
        ----------
        data : bytes
            From `save` of this results version.
        """
        params, memory = saves.unpack(data)
        params = replace(_params_of(params), proxy=self._params.proxy)
        memory = _memory_of(memory)
        with self._mine():
            self._tell("restore", data=data)
            self._params = params
            self._forget(memory.position)
            self._memory = memory
            self._publish()

    def __reduce__(self):
        callbacks = (self._on_hit, self._behavior, self._filter)
        return _rebuild, (type(self), self._scene, CharacterController.save(self), self.id, *callbacks, self.user_data)

    def _take_id(self, number):
        """Give a new controller an old id if the id is free; the controller is not visible yet."""
        scene = self._scene
        if number >= self.id or scene._has_id(number):
            return
        scene._characters.pop(self.id)
        if scene._next_id == self.id + 1:
            scene._next_id = self.id
        self._id = number
        scene._characters[number] = self

    def remove(self):
        """Remove the character from the scene; it cannot move any more."""
        with self._mine():
            self._tell("remove")
            self._removed = True
            self._scene._characters.pop(self.id, None)
            self._scene._with_proxy.pop(self.id, None)
            if self._proxy is not None and self._proxy.scene is not None:
                with self._scene._quietly():
                    self._scene.remove(self._proxy)
            self._proxy = None

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
        if self._proxy is not None and self._proxy.scene is not None:
            raise RuntimeError("the controller has a proxy already")
        with self._mine():
            place = {"position": self.position, "rotation": _z_to(self.up)}
            layer = as_bits(layer, "layer")
            self._tell("add_proxy", layer=layer, user_data=user_data)
            with self._scene._quietly():
                self._proxy = self._scene.add(self.shape, **place, body="kinematic", layer=layer, user_data=user_data)
            self._params = replace(self._params, proxy=self._proxy.id)
            self._scene._with_proxy[self.id] = self
        return self._proxy

    proxy = property(lambda self: self._proxy, doc="The actor that follows the character, or None.")

    @property
    def shape(self):
        """The capsule (Capsule), its axis along local z."""
        return Capsule(self.radius, self.height)

    @property
    def pose(self):
        """(position, rotation): the pose of ``shape`` at the character."""
        return self.position, _z_to(self.up)

    @property
    def flags(self):
        """Collision flags of the last move (CollisionFlags)."""
        return FLAGS[self._memory.flags]

    @property
    def hit_sides(self):
        """Whether the last move hit something aside."""
        return CollisionFlags.SIDES in self.flags

    @property
    def hit_up(self):
        """Whether the last move hit something above."""
        return CollisionFlags.UP in self.flags

    @property
    def hit_down(self):
        """Whether the last move hit something below."""
        return CollisionFlags.DOWN in self.flags

    @property
    def velocity(self):
        """Motion of the last move / dt, m/s, without recovery and separation; zero if dt was 0."""
        return self._memory.velocity

    @property
    def grounded(self):
        """Whether the last move ended on ground."""
        return self._memory.ground is not None

    @property
    def ground(self):
        """The ground at the end of the last move (Ground), or None."""
        contact = self._memory.ground
        return None if contact is None else Ground(self._scene, contact, self._params)

    @property
    def state(self):
        """State after the last move (State)."""
        return State(self._scene, self._memory)

    @property
    def hits(self):
        """Collisions of the last move (list of Hit), in their order."""
        return [Hit(self._scene, record) for record in self._hits]

    @property
    def stats(self):
        """Costs of the last move (MoveStats)."""
        return replace(self._stats)

    def __repr__(self):
        return f"<{type(self).__name__} at {self.position}, radius {self.radius}, height {self.height}>"
