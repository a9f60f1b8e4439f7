"""The movement core: doSweepTest, moveCharacter, move; and the CharacterController around them.

Rule numbers are those of RULES and its documents. A move works on a copy of the
state, which is kept only when the move ends well.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import NamedTuple

from pycct._enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Rules
from pycct.reference.closest import point_segment_parameter
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
from pycct.reference.scene import Scene
from pycct.reference.shapes import Capsule
from pycct.reference.sweep import capsule_cast
from pycct.reference.vec import (
    ZERO,
    add,
    along,
    box_grow,
    box_half,
    box_inside,
    box_overlap,
    box_union,
    dot,
    f_max,
    f_min,
    is_finite,
    is_zero,
    length,
    madd,
    max_abs,
    reject,
    scale,
    sub,
    unit,
    vmax,
    vmin,
)
from pycct.reference.world import (
    ACTOR,
    CONTROLLER,
    OBSTACLE,
    USER_GEOMETRY,
    Character,
    Group,
    WallRule,
    capsule_bounds,
    cast,
    deepest,
    gather,
    group_push,
)

# Collision iterations of a pass that slides (MOVE 1.1; PhysX's MAX_ITER).
MAX_ITERATIONS = 10
# Further iterations after the first DOWN collision with something to slide on (MOVE 7.2.3k).
SLIDE_ITERATIONS = 9
# The cached volume is the temporal box times this (MOVE 1.1 VOLUME_GROWTH) ...
VOLUME_GROWTH = 1.5
# ... shifted along the side motion by this share of the growth (RULES 4).
VOLUME_SHIFT = 0.9
# A side vector is zero when no component is larger (RULES 6; MOVE 1.2 EPSILON_DISTANCE).
ALMOST_ZERO = 1e-6
# A pass stops when its direction turns by a right angle or more from where it set
# out; the margin settles what float32 leaves to chance (RULES 5).
TURNED_BACK = 1e-6
# A sum of pushes no longer than this is nothing (MOVE 9.2.3 EPSILON_DISTANCE).
EPSILON_DISTANCE = 1e-6
# Corrections of one overlap recovery (RULES 7.5).
MAX_RECOVERIES = 4
# Bodies that overlap recovery moves out of (MOVE 9.3).
RECOVERS = ("static", "kinematic")
EVERYTHING = ("static", "kinematic", "dynamic", USER_GEOMETRY)

FLAGS = tuple(CollisionFlags(i) for i in range(8))


@dataclass(frozen=True)
class Params:
    """What a controller is; lengths in metres."""

    up: tuple  # unit
    radius: float
    height: float  # distance between the sphere centres
    contact_offset: float
    step_offset: float
    slope_limit: float  # cosine; 0: slopes are not handled
    invisible_wall_height: float
    max_jump_height: float
    climbing_mode: ClimbingMode
    non_walkable_mode: NonWalkableMode
    overlap_recovery: bool
    prevent_vertical_sliding: bool
    collide: bool  # meets other controllers
    layer: int
    mask: int
    rules: Rules
    surface: Behavior  # what others may do on it
    proxy: int = -1  # id of the actor that follows it, which it never meets; -1: none


@dataclass(frozen=True)
class GroundContact:
    """What the last DOWN pass found below."""

    normal: tuple  # contact normal
    point: tuple
    item: object
    triangle: int | None  # as the user numbered it
    face_normal: tuple  # a triangle's normal decides whether it is walkable
    distance: float  # gap between the capsule and it


@dataclass(frozen=True)
class Memory:
    """What a controller carries from move to move (PhysX's SweptVolume and STF flags)."""

    position: tuple  # centre of the capsule
    velocity: tuple = ZERO  # what was really travelled / dt
    flags: int = 0  # CollisionFlags of the last move
    validate_triangle_down: bool = False
    validate_triangle_side: bool = False
    touch_other_controller: bool = False
    touch_obstacle: bool = False
    normalize_response: bool = False
    walk_experiment: bool = False
    hit_non_walkable: bool = False
    is_moving_up: bool = False
    touched_actor: int = -1  # what the last pass down ended on, -1: nothing
    touched_obstacle: int = -1
    touched_controller: int = -1
    touched_point: tuple = ZERO  # in the world
    touched_local: tuple = ZERO  # in the frame of the shape or obstacle
    platform_delta: tuple = ZERO  # how far that carried the character in the last move
    separation: tuple = ZERO  # to be added to the next displacement (RULES 8)
    down_normal: tuple = ZERO  # of the triangle below (MOVE contactNormalDownPass)
    side_normal: tuple = ZERO  # of the triangle aside (MOVE contactNormalSidePass)
    touched_min: float = 0.0  # lowest and highest point of the triangle below, along up
    touched_max: float = 0.0
    contact_height: float = 0.0  # along up, of the last contact of any pass
    overlap: float = 0.0  # depth left after overlap recovery
    ground: GroundContact | None = None


class Decomposition(NamedTuple):
    """A displacement, split into the three passes (MOVE 2.4)."""

    up_vector: tuple
    side_vector: tuple
    down_vector: tuple
    step_offset: float
    is_moving_up: bool
    has_side_movement: bool


def decompose(displacement, up, step_offset, standing_on_moving):
    """MOVE 4.2 with RULES 6."""
    rise = dot(displacement, up)
    vertical = scale(up, rise)
    side_vector = sub(displacement, vertical)
    is_moving_up = rise > 0.0
    up_vector = vertical if is_moving_up else ZERO
    down_vector = ZERO if is_moving_up else vertical
    has_side_movement = standing_on_moving or max_abs(side_vector) > ALMOST_ZERO
    # RULES 6: a jump has no step, unless from something that moves.
    if is_moving_up and not standing_on_moving:
        step_offset = 0.0
    if has_side_movement:
        up_vector = madd(up_vector, up, step_offset)
    return Decomposition(up_vector, side_vector, down_vector, step_offset, is_moving_up, has_side_movement)


def temporal_box(p, centre, direction):
    """All that a motion may touch (RULES 4)."""
    k = p.radius + p.contact_offset
    half = tuple(k + abs(u) * 0.5 * p.height for u in p.up)
    end = add(centre, direction)
    box = (sub(vmin(centre, end), half), add(vmax(centre, end), half))
    if p.max_jump_height > 0.0:
        # RULES 9 row 10: downwards; upwards by the letter of MOVE 15.7.
        low = madd(centre, p.up, p.max_jump_height if Rules.JUMP_VOLUME_UP in p.rules else -p.max_jump_height)
        box = box_union(box, (sub(low, half), add(low, half)))
    return box


def cached_volume(temporal, side):
    """The box for which candidates are fetched, so that the next motions find them there (RULES 4)."""
    growth = scale(box_half(temporal), VOLUME_GROWTH - 1.0)
    shift = scale(side, VOLUME_SHIFT * abs(dot(side, growth)))
    box = (add(sub(temporal[0], growth), shift), add(add(temporal[1], growth), shift))
    return box_union(box, temporal)


def collision_response(target, position, direction, normal, bump, friction, normalize):
    """The new target after a collision (MOVE 8.2): the reflected motion's part along the surface."""
    reflected = unit(madd(direction, normal, -2.0 * dot(direction, normal)))
    normal_part = scale(normal, dot(reflected, normal))
    tangent_part = sub(reflected, normal_part)
    amplitude = length(sub(target, position))
    result = position
    if bump != 0.0:
        result = madd(result, unit(normal_part) if normalize else normal_part, bump * amplitude)
    if friction != 0.0:
        result = madd(result, unit(tangent_part) if normalize else tangent_part, friction * amplitude)
    return result


def too_steep(p, normal):
    """A normal that faces down is not too steep (RULES 6); by the letter of MOVE 10.1 it is (RULES 9 row 4)."""
    c = dot(normal, p.up)
    return c < p.slope_limit and (c >= 0.0 or Rules.STEEP_FACING_DOWN in p.rules)


class HitRecord(NamedTuple):
    """One collision of a move."""

    sweep_pass: Pass
    item: object
    triangle: int | None
    position: tuple
    normal: tuple
    direction: tuple
    length: float  # of the motion that was left
    distance: float  # at which it was hit
    along: float  # place on the axis, 0 bottom to 1 top (SWEEP 6.3)


@dataclass
class MoveStats:
    """What the last move cost."""

    iterations: int = 0
    full_updates: int = 0
    partial_updates: int = 0
    triangles_tested: int = 0
    recoveries: int = 0


@dataclass
class Move:
    """One move of one controller: all that it reads and writes."""

    p: Params
    s: Memory
    items: list  # shapes in the world
    others: list = field(default_factory=list)  # other controllers (Character) that it may meet
    mask: int = 0xFFFFFFFF  # layers to see in this move
    ask_filter: object = None  # item -> may it be met?
    ask_behavior: object = None  # item -> what may be done there?
    answers: dict = field(default_factory=dict)  # what callbacks said during this move
    hits: list = field(default_factory=list)
    stats: MoveStats = field(default_factory=MoveStats)
    side: tuple = ZERO  # unit side direction of this moveCharacter, or zero
    standing_on_moving: bool = False
    candidates: list = field(default_factory=list)
    bounds: tuple | None = None  # of the box that the candidates were fetched for

    def set(self, **changes):
        """Change the memory."""
        self.s = replace(self.s, **changes)

    # --- candidates -----------------------------------------------------------

    def update_candidates(self, temporal):
        """Make sure that all shapes that touch the temporal box are at hand (RULES 4, SWEEP 11)."""
        if self.bounds is not None and box_inside(temporal, self.bounds):
            return
        walls = WallRule(self.p.invisible_wall_height, self.p.slope_limit, self.p.up)
        self.bounds = cached_volume(temporal, self.side)
        self.candidates = self.look_up(self.bounds, walls)
        self.stats.full_updates += 1

    def look_up(self, box, walls=None):
        """Shapes, obstacles and other controllers in a box."""
        # MOVE 3.2.6: the actor that follows the character is never met by it.
        items = [i for i in self.items if i.owner != ACTOR or i.id != self.p.proxy]
        groups = gather(items, box, self.mask, walls)
        # RULES 8: other controllers are capsules at their current positions.
        return groups + [Group(other, []) for other in self.others if box_overlap(other.bounds, box)]

    def may_meet(self, item):
        """Ask the user's filter, once per thing and move."""
        if self.ask_filter is None:
            return True
        key = ("filter", item.owner, item.id)
        if key not in self.answers:
            self.answers[key] = self.ask_filter(item)
        return self.answers[key]

    def behavior_of(self, item):
        """What may be done on a thing: its own flags, or what the user's callback says (RULES 5, 7.3)."""
        if self.ask_behavior is None:
            return item.behavior
        key = ("behavior", item.owner, item.id)
        if key not in self.answers:
            self.answers[key] = self.ask_behavior(item)
        return self.answers[key]

    def ends(self, position):
        """Sphere centres of the capsule at a position, the lower first (SWEEP 1.2)."""
        half_axis = scale(self.p.up, 0.5 * self.p.height)
        return sub(position, half_axis), add(position, half_axis)

    # --- overlap recovery -----------------------------------------------------

    def recovers(self):
        """What overlap recovery moves out of."""
        if not self.p.overlap_recovery:
            return ()
        # RULES 9 row 12.
        return (*RECOVERS, USER_GEOMETRY) if Rules.RECOVER_USER_GEOMETRY in self.p.rules else RECOVERS

    def around(self, position, radius):
        """All that recovery may have to leave, looked up anew; the mesh itself, never its walls (RULES 2)."""
        # Leaving a mesh takes several pushes: look that far around.
        return self.look_up(box_grow(capsule_bounds(*self.ends(position), radius), radius))

    def recover_at_once(self, position):
        """One sum over all overlaps (RULES 9 row 5, MOVE 9.2): the new position."""
        p = self.p
        total = ZERO
        for g in self.around(position, p.radius + p.contact_offset):
            if g.item.recovered_as not in self.recovers():
                continue
            push = group_push(g, *self.ends(position), p.radius)
            if not push.overlapping or not self.may_meet(g.item):
                continue
            total = madd(total, push.dir, push.depth + p.contact_offset)
            self.stats.recoveries += 1
        return add(position, total) if length(total) > EPSILON_DISTANCE else position

    def recover(self, position):
        """Out of what is overlapped deepest, up to four times (RULES 7.5): the new position."""
        radius = self.p.radius + self.p.contact_offset
        self.set(overlap=0.0)
        if Rules.RECOVERY_SUM in self.p.rules:
            position = self.recover_at_once(position)
        else:
            for _ in range(MAX_RECOVERIES):
                around = self.around(position, radius)
                push = deepest(around, *self.ends(position), radius, self.recovers(), self.may_meet)
                if not push.overlapping:
                    return position
                position = madd(position, push.dir, push.depth)
                self.stats.recoveries += 1
        # What is left: more than nothing means that the character is crushed.
        around = self.around(position, radius)
        push = deepest(around, *self.ends(position), self.p.radius, self.recovers(), self.may_meet)
        if push.overlapping:
            self.set(overlap=push.depth)
        return position

    # --- doSweepTest ----------------------------------------------------------

    def sweep_test(self, direction, iterations, min_distance, sweep_pass):
        """Move along, slide where something is in the way: doSweepTest (MOVE 7.2, RULES 5).

        Returns (a motion was tried, number of collisions).
        """
        p = self.p
        # RULES 5: no direction, nothing moved and nothing forgotten.
        if is_zero(direction):
            return False, 0
        # RULES 5: a pass that sets out forgets what the one before touched.
        self.set(
            validate_triangle_down=False,
            touch_other_controller=False,
            touch_obstacle=False,
            touched_actor=-1,
            touched_obstacle=-1,
            touched_controller=-1,
        )
        moved = False
        collisions = 0
        position = self.s.position
        asked = length(direction)
        target = add(position, direction)
        while iterations > 0:
            iterations -= 1
            way = sub(target, position)
            self.update_candidates(temporal_box(p, position, way))
            # MOVE 7.2.3: stop when there is little left to go, or the way turned back.
            left = length(way)
            if left <= min_distance:
                break
            way = scale(way, 1.0 / left)
            if dot(way, direction) <= TURNED_BACK * asked:
                break
            moved = True
            self.stats.iterations += 1
            # RULES 5: the search is longer than the way by the contact offset.
            culls_parallel = Rules.CULL_PARALLEL in p.rules
            ends = self.ends(position)
            q = capsule_cast(*ends, p.radius, way, left + p.contact_offset, True, True, culls_parallel)
            hit = cast(self.candidates, q, self.recovers(), self.may_meet)
            if hit is None:
                position = target
                break
            if hit.base.overlapping:
                # RULES 5, 7.5: the pass ends with overlap recovery, which counts as a collision.
                position = self.recover(position)
                collisions += 1
                break
            upright, sliding = self.note_hit(hit, sweep_pass, position, way, left)
            # RULES 5: more iterations where it may slide on what it stands on.
            if sliding and collisions == 0:
                iterations += SLIDE_ITERATIONS
            collisions += 1
            self.set(contact_height=dot(hit.base.point, p.up))
            # RULES 5: never backwards.
            if hit.base.distance > p.contact_offset:
                position = madd(position, way, hit.base.distance - p.contact_offset)
            # RULES 5: ceilings of prevent_vertical_sliding, and the walk experiment unless
            # force-sliding, answer with the horizontal part of the normal only.
            normal = hit.base.normal
            forced = p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING
            if upright or (self.s.walk_experiment and not forced):
                normal = unit(reject(normal, p.up))
            target = collision_response(target, position, way, normal, 0.0, 1.0, self.s.normalize_response)
        self.set(position=position)
        return moved, collisions

    def note_hit(self, hit, sweep_pass, position, way, left):
        """Remember what was hit (RULES 5).

        Returns (the response must leave out the normal's vertical part, it may slide).
        """
        p = self.p
        base, item, face = hit.base, hit.group.item, hit.base.face
        triangle = face.source if face is not None and face.source >= 0 else None
        face_normal = base.normal
        if face is not None:
            # RULES 2: a two-sided triangle's normal is turned against the motion.
            face_normal = scale(face.n, -1.0) if item.two_sided and dot(face.n, way) > 0.0 else face.n
        static_face = item.owner == ACTOR and item.body == "static" and face is not None
        upright = sliding = False
        if sweep_pass is Pass.DOWN:
            sliding = self.behavior_of(item) & Behavior.CAN_SLIDE != 0
            self.note_below(item, base.point)
            if static_face:
                heights = [dot(v, p.up) for v in (face.a, face.b, face.c)]
                self.set(
                    validate_triangle_down=True,
                    down_normal=face_normal,
                    touched_min=min(heights),
                    touched_max=max(heights),
                )
            gap = f_min(base.distance, p.contact_offset)
            self.set(ground=GroundContact(base.normal, base.point, item, triangle, face_normal, gap))
        elif sweep_pass is Pass.SIDE or sweep_pass is Pass.SENSOR:
            if static_face:
                self.set(validate_triangle_side=True, side_normal=face_normal)
                upright = p.prevent_vertical_sliding and dot(face_normal, p.up) < 0.0
        if sweep_pass is not Pass.SENSOR:
            # RULES 5: hits are reported in every pass but the sensor.
            axis = madd(position, way, base.distance)
            place = point_segment_parameter(base.point, *self.ends(axis))
            record = (sweep_pass, item, triangle, base.point, base.normal, way, left, base.distance, place)
            self.hits.append(HitRecord(*record))
        return upright, sliding

    def note_below(self, item, point):
        """Remember what a DOWN pass met (RULES 5, MOVE 13)."""
        if item.owner == ACTOR:
            self.set(touch_other_controller=False, touch_obstacle=False, touched_actor=item.id)
            self.set(touched_point=point, touched_local=item.unplace_point(point))
        elif item.owner == OBSTACLE:
            self.set(touch_obstacle=True, touched_obstacle=item.id)
            if self.s.touched_actor < 0:
                self.set(touched_point=point, touched_local=item.unplace_point(point))
        else:
            self.set(touch_other_controller=True, touched_controller=item.id)

    # --- moveCharacter --------------------------------------------------------

    def move_character(self, displacement, min_distance):
        """The passes up, aside and down: moveCharacter (MOVE 6.2, RULES 6). Returns collision flags."""
        p = self.p
        up = p.up
        flags = 0
        rise = dot(displacement, up)
        start_height = dot(self.s.position, up)
        bottom = start_height - (0.5 * p.height + p.radius)
        experiment = self.s.walk_experiment
        forced = p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING
        constrained = p.climbing_mode is ClimbingMode.CONSTRAINED
        d = decompose(displacement, up, p.step_offset, self.standing_on_moving)
        step_offset = d.step_offset
        # RULES 9 row 6: unit vectors in the response, during the whole experiment.
        normalize = experiment and Rules.NORMALIZE_EXPERIMENT in p.rules
        self.set(hit_non_walkable=False, is_moving_up=d.is_moving_up, normalize_response=normalize, ground=None)
        self.side = unit(d.side_vector)
        # One query for the whole move, the step included (MOVE 5.2).
        self.update_candidates(temporal_box(p, self.s.position, displacement))

        # UP pass (MOVE 6.2.3), not in the walk experiment.
        if not experiment:
            single = p.prevent_vertical_sliding or max_abs(d.side_vector) > ALMOST_ZERO
            moved, collisions = self.sweep_test(d.up_vector, 1 if single else MAX_ITERATIONS, min_distance, Pass.UP)
            if moved and collisions > 0:
                flags |= CollisionFlags.UP
                # RULES 6: the step cannot be higher than what was really gained.
                gained = dot(self.s.position, up) - start_height
                step_offset = f_min(step_offset, gained)

        # SIDE pass (MOVE 6.2.4).
        self.set(validate_triangle_side=False)
        moved, collisions = self.sweep_test(d.side_vector, MAX_ITERATIONS, min_distance, Pass.SIDE)
        if moved and collisions > 0:
            flags |= CollisionFlags.SIDES

        # RULES 9 row 3, MOVE 10.4: a slope aside, too steep and climbed higher than the step.
        def climbed_too_steep():
            return (
                p.slope_limit > 0.0
                and constrained
                and self.s.validate_triangle_side
                and too_steep(p, self.s.side_normal)
                and self.s.contact_height > bottom + step_offset
            )

        check_at_once = Rules.SIDE_CHECK_AT_ONCE in p.rules
        if check_at_once and climbed_too_steep():
            self.set(hit_non_walkable=True)
            if not experiment:
                return flags

        # SENSOR (MOVE 6.2.5 as RULES 6 has it): only looks; it may set the side normal.
        # RULES 9 row 2: by the letter it is always sent, and decides itself.
        decides = Rules.SENSOR_DECIDES in p.rules
        if constrained and (decides or not self.s.validate_triangle_side):
            if length(d.side_vector) < p.radius:
                saved = self.s.position
                ahead = scale(unit(d.side_vector), p.radius)
                _, collisions = self.sweep_test(ahead, 1, min_distance, Pass.SENSOR)
                self.set(position=saved)
                if decides and collisions > 0 and climbed_too_steep():
                    self.set(hit_non_walkable=True)

        # DOWN pass (MOVE 6.2.6): takes back the step, outside of the walk experiment (RULES 9 row 7).
        down = d.down_vector
        if d.has_side_movement and (not experiment or Rules.STEP_BACK_IN_EXPERIMENT in p.rules):
            down = madd(down, up, -step_offset)
        iterations = MAX_ITERATIONS if experiment and forced else 1
        moved, collisions = self.sweep_test(down, iterations, min_distance, Pass.DOWN)
        on_user_geometry = self.s.touch_other_controller or self.s.touch_obstacle
        if moved and collisions > 0:
            if rise <= 0.0:
                flags |= CollisionFlags.DOWN
            # RULES 6: a side triangle too steep, climbed higher than the step allows.
            if not on_user_geometry and not check_at_once and climbed_too_steep():
                self.set(hit_non_walkable=True)
                if not experiment:
                    return flags

        # RULES 6: the triangle below is too steep and reaches higher than a step (MOVE 10.4).
        if (
            p.slope_limit > 0.0
            and not on_user_geometry
            and self.s.validate_triangle_down
            and rise <= 0.0
            and self.s.touched_max - bottom > p.step_offset
            and too_steep(p, self.s.down_normal)
        ):
            self.set(hit_non_walkable=True)
            # RULES 9 row 9: by the letter the recovery sweep comes after the rerun, see run.
            if not experiment or Rules.RECOVERY_SWEEP_AFTER in p.rules:
                return flags
            # The recovery sweep (RULES 6): back down what was gained.
            self.set(normalize_response=True)
            gained = dot(self.s.position, up) - start_height
            recover = f_max(0.0, gained) + abs(rise)
            if recover < min_distance:
                min_distance = recover / MAX_ITERATIONS
            # PhysX calls this motion down an UP pass; hits are reported as such.
            self.sweep_test(scale(up, -recover), MAX_ITERATIONS, min_distance, Pass.UP)
            self.set(normalize_response=normalize)
        return flags

    # --- riding ---------------------------------------------------------------

    def find(self, owner, id):
        """A remembered thing, if it may still be met (RULES 7.2)."""
        for item in self.items:
            if item.owner == owner and item.id == id:
                return item if item.layer & self.mask and self.may_meet(item) else None
        return None

    def look_below(self):
        """What stands below the centre, no farther than half the height: moving things only (RULES 7.2)."""
        p = self.p
        down = scale(p.up, -1.0)
        reach = 0.5 * p.height + p.radius
        start = self.s.position
        items = [i for i in self.items if i.body != "static" and (i.owner != ACTOR or i.id != p.proxy)]
        groups = gather(items, capsule_bounds(start, madd(start, down, reach), 0.0), self.mask)
        ray = capsule_cast(start, start, 0.0, down, reach, False, True)
        hit = cast(groups, ray, EVERYTHING, self.may_meet)
        if hit is None:
            return None
        item = hit.group.item
        self.set(touched_point=hit.base.point, touched_local=item.unplace_point(hit.base.point))
        if item.owner == OBSTACLE:
            self.set(touched_obstacle=item.id)
        else:
            self.set(touched_actor=item.id)
        return item

    def ride(self, displacement):
        """Be carried by what one stands on (RULES 7.2 and 7.3, MOVE 13); the displacement left to make."""
        p = self.p
        self.set(platform_delta=ZERO)
        self.standing_on_moving = False
        item = None
        if self.s.touched_actor >= 0:
            item = self.find(ACTOR, self.s.touched_actor)
            if item is None:
                self.set(touched_actor=-1)
        if self.s.touched_actor < 0 and self.s.touched_obstacle >= 0:
            item = self.find(OBSTACLE, self.s.touched_obstacle)
            if item is None:
                self.set(touched_obstacle=-1)
        if item is None:
            item = self.look_below()
        # RULES 7.2: static shapes carry nobody.
        if item is None or item.body == "static":
            return displacement
        behavior = self.behavior_of(item)
        now = item.place_point(self.s.touched_local)
        delta = sub(now, self.s.touched_point)
        self.set(touched_point=now)
        if Rules.RIDE_WHOLE in p.rules:
            # RULES 9 row 11: the whole of it at once, whatever the flags.
            self.set(position=add(self.s.position, delta), platform_delta=delta)
            self.standing_on_moving = max_abs(delta) > ALMOST_ZERO
            return displacement
        if behavior & Behavior.USER_DEFINED_RIDE or max_abs(delta) <= ALMOST_ZERO:
            return displacement
        self.standing_on_moving = True
        vertical = along(delta, p.up)
        self.set(platform_delta=vertical)
        # RULES 7.3: up at once, down as part of the displacement.
        if dot(delta, p.up) > 0.0:
            self.set(position=add(self.s.position, vertical))
        else:
            displacement = add(displacement, vertical)
        if behavior & Behavior.CAN_RIDE:
            displacement = add(displacement, sub(delta, vertical))
            self.set(platform_delta=delta)
        return displacement

    # --- move -----------------------------------------------------------------

    def run(self, displacement, dt, min_distance):
        """Controller::move (MOVE 3.2, RULES 7)."""
        p = self.p
        start = self.s.position
        # RULES 7.1: the separation from other controllers is added.
        displacement = add(displacement, self.s.separation)
        self.set(overlap=0.0, separation=ZERO)
        displacement = self.ride(displacement)
        carried = self.s.position
        whole = displacement
        flags = self.move_character(displacement, min_distance)
        if self.s.hit_non_walkable:
            # Once more from where it stood after riding, as the walk experiment (MOVE 3.2.5, RULES 7.4).
            self.set(walk_experiment=True, position=carried)
            if p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING:
                displacement = along(whole, p.up)
                if Rules.FORCE_SLIDE_HORIZONTAL in p.rules:
                    # RULES 9 row 1.
                    displacement = sub(whole, displacement)
            flags = self.move_character(displacement, min_distance)
            # RULES 9 row 9: the recovery sweep by the letter of MOVE 11.2.5.
            after = Rules.RECOVERY_SWEEP_AFTER in p.rules
            if after and self.s.validate_triangle_down and too_steep(p, self.s.down_normal):
                gained = dot(self.s.position, p.up) - dot(carried, p.up)
                recover = f_max(0.0, gained) + abs(dot(whole, p.up))
                self.sweep_test(scale(p.up, -recover), MAX_ITERATIONS, min_distance, Pass.UP)
            self.set(walk_experiment=False, normalize_response=False)
        # RULES 9: a position that is not finite is never stored.
        if not is_finite(self.s.position):
            raise FloatingPointError("the computed position is not finite; nothing was changed")
        velocity = scale(sub(self.s.position, start), 1.0 / dt) if dt > 0.0 else ZERO
        self.set(flags=flags, velocity=velocity)


# ---------------------------------------------------------------------------
# The public side


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
            "radius, height, contact_offset, invisible_wall_height and max_jump_height "
            f"must not exceed {FARTHEST:g} m"
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
