"""One move: doSweepTest, moveCharacter, riding, move.

Rule numbers are those of RULES and its documents. A move works on a copy of the state, which is
kept only if the move succeeds.
"""

from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import NamedTuple

from pycct.reference.candidates import (
    Group,
    WallRule,
    capsule_bounds,
    cast,
    deepest,
    deepest_group,
    gather,
    group_order,
    group_overlaps,
    group_push,
    is_crossed,
    is_near,
    recovery_push,
    shortest,
)
from pycct.reference.closest import point_segment_parameter
from pycct.reference.exits import NO_PUSH, REACH
from pycct.reference.response import collision_response
from pycct.reference.sweep import capsule_cast, capsule_triangle_time, is_behind_nearest
from pycct.reference.tolerances import ALMOST_ZERO, COORDINATE_ROUNDING, EPSILON_DISTANCE, MOTION_SHARE, is_below_limit
from pycct.reference.types import ACTOR, BOX, OBSTACLE, PLANE, TRIANGLES, USER_GEOMETRY
from pycct.reference.vec import (
    ZERO,
    add,
    along,
    box_grow,
    box_half,
    box_inside,
    box_overlap,
    box_union,
    cross,
    dot,
    f_max,
    f_min,
    is_finite,
    is_zero,
    length,
    madd,
    max_abs,
    q_unrotate,
    reject,
    scale,
    sub,
    unit,
    vmax,
    vmin,
)
from pycct.runtime.enums import Behavior, ClimbingMode, CollisionFlags, NonWalkableMode, Pass, Rules

# Collision iterations of a pass that slides (MOVE 1.1; PhysX's MAX_ITER).
MAX_ITERATIONS = 10
# Further iterations after the first DOWN collision with something to slide on (MOVE 7.2.3k).
SLIDE_ITERATIONS = 9
# The cached volume is the temporal box times this factor, across up and along it (MOVE 1.1
# VOLUME_GROWTH and RULES 4 have 1.5; the cache changes no result).
VOLUME_GROWTH = 2.5
VOLUME_GROWTH_UP = 1.7
# Shift along the side motion, as a share of the growth (RULES 4).
VOLUME_SHIFT = 0.9
# A pass ends if its direction turns by a right angle or more from its start. The margin decides
# cases that are random in float32 (RULES 5).
TURNED_BACK = 1e-6
# Top of a plane, metres: higher than any step. A finite number, because states are saved (RULES_2
# 1).
ENDLESS = 1e100
# Number of parts of the step offset in FIX_LOWER_STEP.
STEP_PARTS = 8
# Largest gap that FIX_KEEP_RIDE counts as standing: this many contact offsets, but at least this
# share of the radius.
STANDING_GAP = 2.0
STANDING_SHARE = 1e-3
# An exit that rises more than this, as a cosine, leads up from a character below.
FROM_BELOW = 0.5
# A face whose normal rises or falls by less is upright: it lifts nobody.
NEARLY_UPRIGHT = 0.05
# A motion that sinks into a plane by a smaller share of its length follows it.
INTO_PLANE = 1e-6
# Corrections of one recovery (RULES 7.5).
MAX_RECOVERIES = 4
# Bodies that recovery moves out of (MOVE 9.3).
RECOVERS = ("static", "kinematic")
EVERYTHING = ("static", "kinematic", "dynamic", USER_GEOMETRY)


@dataclass(frozen=True)
class Params:
    """Parameters of a controller; lengths in metres."""

    up: tuple  # unit
    radius: float
    height: float  # distance between the sphere centres
    contact_offset: float
    step_offset: float
    slope_limit: float  # cosine; 0: no slope limit
    invisible_wall_height: float
    max_jump_height: float
    climbing_mode: ClimbingMode
    non_walkable_mode: NonWalkableMode
    overlap_recovery: bool
    prevent_vertical_sliding: bool
    collide: bool  # collides with other controllers
    layer: int
    mask: int
    rules: Rules
    surface: Behavior  # riding and sliding of others on it
    proxy: int = -1  # id of its proxy actor, which it never collides with; -1: none


@dataclass(frozen=True)
class GroundContact:
    """Ground of the last DOWN pass."""

    normal: tuple  # contact normal
    point: tuple
    owner: str  # ACTOR, CONTROLLER or OBSTACLE
    id: int
    triangle: int | None  # in the order of the user's triangles
    data: int | None  # the user's data of that triangle
    has_face: bool
    face_normal: tuple  # a face's normal decides whether it is walkable
    distance: float  # gap between the capsule and it


@dataclass(frozen=True)
class Memory:
    """State that a controller keeps between moves (PhysX's SweptVolume and STF flags)."""

    position: tuple  # centre of the capsule
    velocity: tuple = ZERO  # motion / dt, without recovery and separation
    displacement: tuple = ZERO  # whole motion of the last move
    asked: tuple = ZERO  # displacement argument of the last move; zero without a move
    flags: int = 0  # CollisionFlags of the last move
    validate_triangle_down: bool = False
    validate_triangle_side: bool = False
    touch_other_controller: bool = False
    touch_obstacle: bool = False
    normalize_response: bool = False
    walk_experiment: bool = False
    hit_non_walkable: bool = False
    is_moving_up: bool = False
    passes_back_face: bool = False  # not from PhysX: see FIX_BACK_FACES
    climbs_steep: bool = False  # not from PhysX: see FIX_STEEP_CLIMB
    steep_climb: float = 0.0  # climb on too steep triangles so far: see FIX_STEEP_CLIMB
    touched_actor: int = -1  # ground of the last DOWN pass, -1: none
    touched_obstacle: int = -1
    touched_controller: int = -1
    touched_point: tuple = ZERO  # in the world
    touched_local: tuple = ZERO  # in the frame of the shape or obstacle
    platform_delta: tuple = ZERO  # motion by the platform in the last move
    separation: tuple = ZERO  # added to the next displacement (RULES 8)
    down_normal: tuple = ZERO  # of the triangle below (MOVE contactNormalDownPass)
    side_normal: tuple = ZERO  # of the triangle aside (MOVE contactNormalSidePass)
    touched_min: float = 0.0  # lowest and highest point of the triangle below, along up
    touched_max: float = 0.0
    contact_height: float = 0.0  # along up, of the last contact of any pass
    overlap: float = 0.0  # depth that remains after recovery
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
    # RULES 6: a jump has no step, unless from a moving platform.
    if is_moving_up and not standing_on_moving:
        step_offset = 0.0
    if has_side_movement:
        up_vector = madd(up_vector, up, step_offset)
    return Decomposition(up_vector, side_vector, down_vector, step_offset, is_moving_up, has_side_movement)


def temporal_box(p, centre, direction):
    """Bounds of everything that a motion may touch (RULES 4)."""
    k = p.radius + p.contact_offset
    half = tuple(k + abs(u) * 0.5 * p.height for u in p.up)
    end = add(centre, direction)
    box = (sub(vmin(centre, end), half), add(vmax(centre, end), half))
    if p.max_jump_height > 0.0:
        # RULES 9 row 10: downwards; upwards by the letter of MOVE 15.7.
        low = madd(centre, p.up, p.max_jump_height if Rules.JUMP_VOLUME_UP in p.rules else -p.max_jump_height)
        box = box_union(box, (sub(low, half), add(low, half)))
    return box


def cached_volume(temporal, side, up):
    """The box of the candidate cache, which serves the next motions too (RULES 4)."""
    across, along = VOLUME_GROWTH - 1.0, VOLUME_GROWTH_UP - VOLUME_GROWTH
    growth = tuple(h * (across + along * abs(u)) for h, u in zip(box_half(temporal), up, strict=True))
    shift = scale(side, VOLUME_SHIFT * abs(dot(side, growth)))
    box = (add(sub(temporal[0], growth), shift), add(add(temporal[1], growth), shift))
    return box_union(box, temporal)


def too_steep(p, normal):
    """A normal that faces down is not too steep (RULES 6); by MOVE 10.1 it is (RULES 9 row 4)."""
    c = dot(normal, p.up)
    return is_below_limit(c, p.slope_limit) and (c >= 0.0 or Rules.STEEP_FACING_DOWN in p.rules)


def facing(hit, direction):
    """Normal of the face that was hit; a two-sided face opposes the motion (RULES 2)."""
    face = hit.base.face
    if face is None:
        return hit.base.normal
    turns = hit.group.item.two_sided or hit.base.by_rim
    return scale(face.n, -1.0) if turns and dot(face.n, direction) > 0.0 else face.n


def has_face(hit):
    """Whether a face was hit: a triangle, or a plane (RULES_2 1)."""
    return hit.base.face is not None or hit.group.item.kind == PLANE


def face_heights(hit, up):
    """Lowest and highest point of the face that was hit, along up."""
    face = hit.base.face
    if face is None:
        # RULES_2 1: a plane is one face without an end.
        return -ENDLESS, ENDLESS
    heights = [dot(v, up) for v in (face.a, face.b, face.c)]
    return min(heights), max(heights)


def round_top(item, up):
    """Highest point of a shape without faces, along up."""
    if item.kind == BOX:
        u = q_unrotate(item.rotation, up)
        half = abs(u[0]) * item.half[0] + abs(u[1]) * item.half[1] + abs(u[2]) * item.half[2]
        return dot(item.position, up) + half
    return f_max(dot(item.q0, up), dot(item.q1, up)) + item.radius


def ground_contact(item, point, normal, face, face_normal, distance):
    """Return the ground."""
    triangle = face.source if face is not None and face.source >= 0 else None
    data = item.data_of(triangle)
    faced = face is not None or item.kind == PLANE
    return GroundContact(normal, point, item.owner, item.id, triangle, data, faced, face_normal, distance)


class HitRecord(NamedTuple):
    """One collision of a move."""

    sweep_pass: Pass
    owner: str  # ACTOR, CONTROLLER or OBSTACLE
    id: int
    dynamic: bool  # a dynamic body, which the game may push
    triangle: int | None
    data: int | None
    position: tuple
    normal: tuple
    direction: tuple
    length: float  # of the remaining motion
    distance: float  # distance to the hit
    along: float  # position on the axis, 0 bottom to 1 top (SWEEP 6.3)


@dataclass
class MoveStats:
    """Costs of the last move, and its cached volume (SWEEP 11.1)."""

    iterations: int = 0
    full_updates: int = 0
    partial_updates: int = 0
    triangles_tested: int = 0
    recoveries: int = 0
    cache_bounds: tuple | None = None  # corners (lo, hi) of the volume
    timestamp: int = 0  # Scene.timestamp of the cached volume
    static_triangles: int = 0
    total_triangles: int = 0
    fixes: Rules = Rules.PHYSX  # fixes that made a difference; none: the move has the bits of PhysX's rules


@dataclass
class PassRun:
    """The passes of one displacement: its parts, the start, and what the passes have found."""

    d: Decomposition
    rise: float  # of the displacement, along up
    start: tuple
    start_height: float
    bottom: float  # height of the lowest point at the start
    step_offset: float  # the step, no higher than the UP pass has lifted
    min_distance: float
    experiment: bool
    forced: bool
    constrained: bool
    normalize: bool
    flags: int = 0
    meets_below: bool = False
    on_user_geometry: bool = False


@dataclass
class Move:
    """One move of one controller: all data that it reads and writes."""

    p: Params
    s: Memory
    items: list  # shapes in the world
    others: list = field(default_factory=list)  # other controllers (Character) that it may collide with
    mask: int = 0xFFFFFFFF  # layers to see in this move
    ask_filter: object = None  # item -> does the character collide with it?
    ask_behavior: object = None  # item -> riding and sliding on it
    answers: dict = field(default_factory=dict)  # results of callbacks during this move
    trace: list = field(default_factory=list)  # (kind, pass, position, vector, hit) for explanations
    hits: list = field(default_factory=list)
    stats: MoveStats = field(default_factory=MoveStats)
    side: tuple = ZERO  # unit side direction of this moveCharacter, or zero
    standing_on_moving: bool = False
    step: float = 0.0  # the step offset of this moveCharacter
    lifted: float = 0.0  # lift of the UP pass
    # Data of the fixes.
    passing: bool = False  # the move started inside one-sided triangles, coming from behind
    passed: bool = False  # one of its sweeps did
    lintel: bool = False  # a lower capsule would miss the hit of the SIDE pass
    raised: float = 0.0  # height that too steep triangles added to the SIDE pass
    moving_below: tuple | None = None  # (normal, top) of a moving body's triangle below
    moving_aside: tuple | None = None  # its normal, aside
    round_below: tuple | None = None  # (contact normal, top) of what has no faces, below
    round_aside: tuple | None = None  # its contact normal, aside
    longest: float = 0.0  # length of the motion that forced sliding may take
    pushed_out: bool = False  # overlap recovery has moved the character in this move
    carried: bool = False  # it stood on a moving platform at the start of the move
    recovered: tuple = ZERO  # motion by overlap recovery
    candidates: list = field(default_factory=list)
    bounds: tuple | None = None  # box of the candidates

    def set(self, **changes):
        """Change the memory."""
        self.s = replace(self.s, **changes)

    def fix(self, bit):
        """Whether a fix is on. Callers ask where the fix makes a difference, which is recorded."""
        if bit not in self.p.rules:
            return False
        self.stats.fixes |= bit
        return True

    def tell(self, kind, sweep_pass, position, vector, hit=None):
        """Trace an event (kinds: see pycct.explain)."""
        self.trace.append((kind, sweep_pass, position, vector, hit))

    # --- candidates -----------------------------------------------------------

    def update_candidates(self, temporal):
        """Gather all shapes that touch the temporal box (RULES 4, SWEEP 11)."""
        if self.bounds is not None and box_inside(temporal, self.bounds):
            return
        walls = WallRule(self.p.invisible_wall_height, self.p.slope_limit, self.p.up)
        self.bounds = cached_volume(temporal, self.side, self.p.up)
        self.candidates = self.look_up(self.bounds, walls)
        self.stats.full_updates += 1
        self.stats.cache_bounds = self.bounds
        self.stats.total_triangles = sum(len(g.faces) for g in self.candidates)
        self.stats.static_triangles = sum(len(g.faces) for g in self.candidates if g.item.body == "static")

    def look_up(self, box, walls=None):
        """Shapes, obstacles and other controllers in a box."""
        # MOVE 3.2.6: the character never collides with its own proxy.
        items = [i for i in self.items if i.owner != ACTOR or i.id != self.p.proxy]
        groups = gather(items, box, self.mask, walls)
        # RULES 8: other controllers are capsules at their current positions.
        return groups + [Group(other, []) for other in self.others if box_overlap(other.bounds, box)]

    def may_meet(self, item):
        """Call the user's filter, once for each object and move."""
        if self.ask_filter is None:
            return True
        key = ("filter", item.owner, item.id)
        if key not in self.answers:
            self.answers[key] = self.ask_filter(item)
        return self.answers[key]

    def behavior_of(self, item):
        """Riding and sliding on an object.

        Its own flags, or the result of the callback (RULES 5, 7.3).
        """
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
        """Bodies that recovery moves out of."""
        if not self.p.overlap_recovery:
            return ()
        # RULES 9 row 12.
        return (*RECOVERS, USER_GEOMETRY) if Rules.RECOVER_USER_GEOMETRY in self.p.rules else RECOVERS

    def around(self, position, radius):
        """Candidates of recovery, looked up again; the mesh itself, never its walls (RULES 2)."""
        # An exit from a mesh takes several pushes, so the box is larger.
        return self.look_up(box_grow(capsule_bounds(*self.ends(position), radius), radius))

    def recover_at_once(self, position):
        """One sum over all overlaps (RULES 9 row 5, MOVE 9.2): the new position."""
        p = self.p
        pushes = []
        for g in self.around(position, p.radius + p.contact_offset):
            if g.item.recovered_as in self.recovers():
                push = group_push(g, *self.ends(position), p.radius)
                if push.overlapping:
                    pushes.append((g, push))
        # The order of storage must not change the last bits of the sum.
        pushes.sort(key=cmp_to_key(lambda a, b: group_order(a[0], a[1].face, b[0], b[1].face)))
        total = ZERO
        for g, push in pushes:
            if self.may_meet(g.item):
                total = madd(total, push.dir, push.depth + p.contact_offset)
                self.stats.recoveries += 1
        return add(position, total) if length(total) > EPSILON_DISTANCE else position

    def next_push(self, position, static, done, by_depth):
        """The shortest way out among the shapes that still come in a half of a round (RULES_2 10).

        Returns ((group, push), free): None without an overlap, and whether a shape is near and
        does not overlap.
        """
        radius = self.p.radius + self.p.contact_offset
        p0, p1 = self.ends(position)
        pushes = []
        free = False
        for g in self.around(position, radius):
            item = g.item
            if (item.owner == ACTOR and item.body == "static") is not static or (item.owner, item.id) in done:
                continue
            if item.recovered_as in self.recovers() and is_near(g, p0, p1, REACH * radius):
                push = recovery_push(g, p0, p1, radius, not self.pushed_out, by_depth)
                overlaps = push.depth > 0.0
                free = free or not overlaps
                if overlaps and self.may_meet(item):
                    pushes.append((g, push))
        return shortest(pushes, p0, p1, REACH * radius), free

    def is_held(self, position):
        """Whether the axis crosses the inside of a face that recovery moves out of."""
        around = self.around(position, self.p.radius + self.p.contact_offset)
        around = [g for g in around if g.item.recovered_as in self.recovers()]
        return any(is_crossed(g, *self.ends(position)) and self.may_meet(g.item) for g in around)

    def recover_in_rounds(self, position, by_depth):
        """Rounds over all near shapes (RULES_2 10): the new position.

        Static ones come first, and each overlapped one pushes at once.
        """
        left = MAX_RECOVERIES
        overlapped = True  # the last shape of the round
        while overlapped and left > 0:
            overlapped = False
            for static in (True, False):
                done = set()
                while left > 0:
                    found, free = self.next_push(position, static, done, by_depth)
                    if found is None:
                        overlapped = overlapped and not free
                        break
                    group, push = found
                    overlapped = True
                    done.add((group.item.owner, group.item.id))
                    position = madd(position, push.dir, push.depth)
                    left -= 1
                    self.pushed_out = True
                    self.stats.recoveries += 1
        return position

    def recover(self, position):
        """Out of overlaps: the new position.

        By up to four pushes (RULES_2 10), or by one sum (RULES 9 row 5).
        """
        radius = self.p.radius + self.p.contact_offset
        self.set(overlap=0.0)
        start, before, first = position, self.stats.recoveries, not self.pushed_out
        if Rules.RECOVERY_SUM in self.p.rules:
            position = self.recover_at_once(position)
        else:
            position = self.recover_in_rounds(start, False)
            if first and self.pushed_out and self.is_held(position):
                # The ways of PhysX lead along the surface (RULES_2 3).
                self.pushed_out = False
                self.stats.recoveries = before
                position = self.recover_in_rounds(start, True)
        left = MAX_RECOVERIES if self.stats.recoveries == before else 0
        while True:
            around = self.around(position, radius)
            push = deepest(around, *self.ends(position), self.p.radius, self.recovers(), self.may_meet)
            if not push.overlapping:
                return position
            if left == 0 or push.depth > NO_PUSH:
                # Any remaining depth means that the character is crushed.
                self.set(overlap=push.depth)
                return position
            # PhysX takes this for no overlap, but sweeps begin inside.
            left -= 1
            self.pushed_out = True
            self.stats.recoveries += 1
            position = madd(position, push.dir, push.depth)

    # --- doSweepTest ----------------------------------------------------------

    def sweep_test(self, displacement, iterations, min_distance, sweep_pass):
        """Move along, and slide along obstacles: doSweepTest (MOVE 7.2, RULES 5).

        Returns (a motion was tried, number of collisions).
        """
        p = self.p
        # RULES 5: without a displacement nothing moves and nothing is forgotten.
        if is_zero(displacement):
            return False, 0
        self.forget_contacts()
        moved, collisions = False, 0
        position = self.s.position
        asked = length(displacement)
        on_steep = False  # a too steep triangle deflected this motion
        planes = []  # normals of what stopped it without an advance
        target = add(position, displacement)
        self.tell("pass", sweep_pass, position, displacement)
        while iterations > 0:
            iterations -= 1
            remaining = sub(target, position)
            self.update_candidates(temporal_box(p, position, remaining))
            # MOVE 7.2.3: stop if the remaining motion is short or has turned back.
            left = length(remaining)
            if left <= min_distance:
                self.tell("done", sweep_pass, position, remaining)
                break
            direction = scale(remaining, 1.0 / left)
            if dot(direction, displacement) <= TURNED_BACK * asked:
                self.tell("turned_back", sweep_pass, position, direction)
                break
            moved = True
            self.stats.iterations += 1
            q, hit = self.search(position, direction, left)
            if sweep_pass is Pass.SIDE and Rules.FIX_CREASES in p.rules and dot(direction, p.up) < -INTO_PLANE:
                found = self.onto_floor(position, direction, left, hit, target, planes)
                if found is not None:
                    position, target, planes = found
                    continue
            if hit is None:
                self.tell("free", sweep_pass, position, sub(target, position))
                if on_steep:
                    self.raised += f_max(0.0, dot(sub(target, position), p.up))
                position = target
                break
            if hit.base.overlapping:
                # RULES 5, 7.5: the pass ends with recovery, which counts as a collision.
                position = self.recover_in_pass(position, sweep_pass)
                collisions += 1
                break
            upright, sliding = self.note_hit(hit, sweep_pass, position, direction, left)
            was_on_steep = on_steep
            if sweep_pass is Pass.SIDE:
                on_steep = self.is_steep_hit(hit, direction)
                self.note_lintel(q, hit)
            # RULES 5: more iterations if the character may slide on the ground.
            if sliding and collisions == 0:
                iterations += SLIDE_ITERATIONS
            collisions += 1
            self.set(contact_height=dot(hit.base.point, p.up))
            # RULES 5: never backwards.
            advance = hit.base.distance - p.contact_offset
            if sweep_pass is Pass.SIDE and Rules.FIX_CREASES in p.rules and advance > 0.0:
                advance = self.above_floor(direction, hit, advance)
            if advance > 0.0:
                position = madd(position, direction, advance)
                if was_on_steep:
                    self.raised += f_max(0.0, dot(direction, p.up) * advance)
            normal = self.response_normal(hit.base.normal, upright)
            before = sub(target, position)
            target = collision_response(target, position, direction, normal, 0.0, 1.0, self.s.normalize_response)
            if sweep_pass is Pass.SIDE and Rules.FIX_CREASES in p.rules:
                if advance > 0.0:
                    planes = []
                target = self.along_crease(planes, normal, position, before, target)
                planes.append(normal)
            if iterations == 0:
                self.tell("out_of_turns", sweep_pass, position, sub(target, position))
        self.set(position=position)
        return moved, collisions

    def forget_contacts(self):
        """RULES 5: a pass that starts forgets the contacts of the one before."""
        self.set(
            validate_triangle_down=False,
            touch_other_controller=False,
            touch_obstacle=False,
            touched_actor=-1,
            touched_obstacle=-1,
            touched_controller=-1,
        )
        self.moving_below = self.round_below = None

    def search(self, position, direction, left):
        """Cast the capsule along a motion: the query, and the first hit or None."""
        p = self.p
        # RULES 5: the search is longer than the motion by the contact offset.
        q = capsule_cast(*self.ends(position), p.radius, direction, left + p.contact_offset, True, True)
        if Rules.CULL_PARALLEL in p.rules:
            q = q._replace(culls_parallel=True)
        if Rules.FIX_SHEET_EDGES in p.rules:
            q = q._replace(meets_rims=True, meets_back_rims=True)
        if Rules.FIX_BACK_FACES in p.rules:
            q = q._replace(passed=set(), passing=self.passing)
        hit = cast(self.candidates, q, self.recovers(), self.may_meet)
        if Rules.FIX_BACK_FACES in p.rules and q.passed:
            self.passed = self.passed or self.passing or self.came_from_behind(q)
            if self.passed and not self.passing and hit is not None and hit.base.overlapping:
                # The motion before this one came through from behind: this one passes all.
                self.passing = True
                q = q._replace(passing=True)
                hit = cast(self.candidates, q, self.recovers(), self.may_meet)
            if "overlap" in q.passed:
                self.fix(Rules.FIX_BACK_FACES)
        return q, hit

    def recover_in_pass(self, position, sweep_pass):
        """Recover from the overlap that ends a pass."""
        out = self.recover(position)
        self.recovered = add(self.recovered, sub(out, position))
        self.tell("overlap", sweep_pass, position, sub(out, position))
        return out

    def note_lintel(self, q, hit):
        """FIX_LOWER_STEP: note whether the lift made the character meet a lintel."""
        if Rules.FIX_LOWER_STEP in self.p.rules and self.lifted > 0.0 and not self.lintel:
            self.lintel = self.is_lintel(q, hit)

    def onto_floor(self, position, direction, left, hit, target, planes):
        """FIX_CREASES: meet the floor below a sinking motion before the hit.

        Returns the new position, target and planes, or None without such a floor.
        """
        if hit is not None and hit.base.overlapping:
            return None
        advance = left if hit is None else f_min(left, hit.base.distance - self.p.contact_offset)
        floor = self.lowers_onto_floor(position, direction, advance) if advance > 0.0 else None
        if floor is None:
            return None
        advance, normal = floor
        position = madd(position, direction, advance)
        before = sub(target, position)
        target = collision_response(target, position, direction, normal, 0.0, 1.0, self.s.normalize_response)
        if advance > 0.0:
            planes = []
        target = self.along_crease(planes, normal, position, before, target)
        return position, target, [*planes, normal]

    def response_normal(self, normal, upright):
        """RULES 5: the normal that a response uses.

        Ceilings of prevent_vertical_sliding, and the walk experiment without force-sliding, respond
        with its horizontal part only.
        """
        forced = self.p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING
        if upright or (self.s.walk_experiment and not forced):
            return unit(reject(normal, self.p.up))
        return normal

    def came_from_behind(self, q):
        """FIX_BACK_FACES: whether it is behind the nearest one-sided triangle that it overlaps."""
        groups = [g for g in self.candidates if g.item.kind == TRIANGLES]
        return is_behind_nearest(q, [t for g in groups if not (g.item.closed or g.item.two_sided) for t in g.faces])

    def note_hit(self, hit, sweep_pass, position, direction, left):
        """Record a hit (RULES 5).

        Returns (the response must leave out the normal's vertical part, the character may slide).
        """
        p = self.p
        if hit.base.by_rim:
            self.fix(Rules.FIX_SHEET_EDGES)
        base, item, face = hit.base, hit.group.item, hit.base.face
        triangle = face.source if face is not None and face.source >= 0 else None
        face_normal = facing(hit, direction)
        static_face = item.owner == ACTOR and item.body == "static" and has_face(hit)
        upright = sliding = False
        if sweep_pass is Pass.DOWN:
            sliding = self.behavior_of(item) & Behavior.CAN_SLIDE != 0
            self.note_below(item, base.point)
            if static_face:
                low, high = face_heights(hit, p.up)
                self.set(validate_triangle_down=True, down_normal=face_normal, touched_min=low, touched_max=high)
            elif item.owner == ACTOR and has_face(hit):
                self.moving_below = (face_normal, face_heights(hit, p.up)[1])
            elif not has_face(hit):
                self.round_below = (base.normal, round_top(item, p.up))
            gap = f_min(base.distance, p.contact_offset)
            self.set(ground=ground_contact(item, base.point, base.normal, face, face_normal, gap))
        elif sweep_pass is Pass.SIDE or sweep_pass is Pass.SENSOR:
            if static_face:
                self.set(validate_triangle_side=True, side_normal=face_normal)
                upright = p.prevent_vertical_sliding and dot(face_normal, p.up) < 0.0
            elif item.owner == ACTOR and has_face(hit):
                self.moving_aside = face_normal
            elif not has_face(hit):
                self.round_aside = base.normal
        axis = madd(position, direction, base.distance)
        record = HitRecord(
            sweep_pass,
            item.owner,
            item.id,
            item.owner == ACTOR and item.body == "dynamic",
            triangle,
            item.data_of(triangle),
            base.point,
            base.normal,
            direction,
            left,
            base.distance,
            point_segment_parameter(base.point, *self.ends(axis)),
        )
        # RULES 5: hits are reported in every pass but the sensor.
        if sweep_pass is not Pass.SENSOR:
            self.hits.append(record)
        self.tell("hit", sweep_pass, position, direction, record)
        return upright, sliding

    def note_below(self, item, point):
        """Record the contact of a DOWN pass (RULES 5, MOVE 13)."""
        if item.owner == ACTOR:
            self.set(touch_other_controller=False, touch_obstacle=False, touched_actor=item.id)
            self.set(touched_point=point, touched_local=item.unplace_point(point))
        elif item.owner == OBSTACLE:
            self.set(touch_obstacle=True, touched_obstacle=item.id)
            if self.s.touched_actor < 0:
                self.set(touched_point=point, touched_local=item.unplace_point(point))
        else:
            self.set(touch_other_controller=True, touched_controller=item.id)

    def along_crease(self, planes, normal, position, before, target):
        """FIX_CREASES: the new target if a response goes into a plane that was met before.

        ``before`` is the remaining motion before the response to ``normal``.
        """
        remaining = sub(target, position)
        size = length(remaining)
        for plane in planes:
            if dot(remaining, plane) < -INTO_PLANE * size and self.fix(Rules.FIX_CREASES):
                crease = unit(cross(plane, normal))
                remaining = scale(crease, dot(before, crease))
                size = length(remaining)
                # A third plane ends the motion.
                if any(dot(remaining, other) < -INTO_PLANE * size for other in planes if other != plane):
                    remaining = ZERO
                return add(position, remaining)
        return target

    # --- fixes: what they look at ---------------------------------------------

    def is_steep_hit(self, hit, direction):
        """Whether the hit face of an actor is too steep to walk on, on any body."""
        rise = dot(facing(hit, direction), self.p.up)
        if not has_face(hit):
            return Rules.FIX_ROUND_SLOPES in self.p.rules and is_below_limit(rise, self.p.slope_limit)
        # An upright face lifts nobody; its edge does, and may be that of a step.
        return abs(rise) > NEARLY_UPRIGHT and is_below_limit(rise, self.p.slope_limit)

    def is_lintel(self, q, hit):
        """Whether a capsule without the lift of the UP pass would miss the hit of the SIDE pass.

        A triangle that stops it with and without the lift stops it with each lower one too: heights
        and distances of contact form a convex set.
        """
        above = dot(sub(hit.base.point, madd(q.p0, q.dir, hit.base.distance)), self.p.up)
        if above <= self.p.height - self.lifted:
            # Lowering brings a capsule no farther from a point that is not above its upper sphere
            # centre.
            return False
        drop = -self.lifted
        low = q._replace(
            p0=madd(q.p0, self.p.up, drop),
            p1=madd(q.p1, self.p.up, drop),
            limit=hit.base.distance + MOTION_SHARE * (hit.base.distance + self.p.radius),
            passed=None if q.passed is None else set(),
        )
        if hit.base.face is None:
            return cast([hit.group], low, EVERYTHING) is None

        def stops(c, face):
            return capsule_triangle_time(c.p0, c.p1, c.radius, c.dir, face, low.limit) <= low.limit

        if stops(low, hit.base.face):
            return False
        other = cast(self.candidates, low, EVERYTHING, self.may_meet)
        if other is None or other.base.overlapping or other.base.face is None:
            return True
        return not stops(q, other.base.face)

    def steep_aside(self):
        """Whether a triangle aside is too steep to climb."""
        p = self.p
        if self.s.validate_triangle_side:
            if too_steep(p, self.s.side_normal):
                return True
            if dot(self.s.side_normal, p.up) < 0.0 and self.fix(Rules.FIX_OVERHANGS):
                return True
        if self.moving_aside is not None and is_below_limit(dot(self.moving_aside, p.up), p.slope_limit):
            if self.fix(Rules.FIX_MOVING_SLOPES):
                return True
        if self.round_aside is not None and is_below_limit(dot(self.round_aside, p.up), p.slope_limit):
            return self.fix(Rules.FIX_ROUND_SLOPES)
        return False

    def round_is_steep(self, bottom):
        """Whether a shape without faces below is too steep, and higher than a step."""
        if self.round_below is None:
            return False
        normal, top = self.round_below
        return top - bottom > self.p.step_offset and too_steep(self.p, normal)

    def steep_below(self, bottom):
        """Whether the ground is too steep, and higher than a step."""
        p = self.p
        if self.s.validate_triangle_down and self.s.touched_max - bottom > p.step_offset:
            if too_steep(p, self.s.down_normal):
                return True
        if self.moving_below is not None:
            normal, top = self.moving_below
            if top - bottom > p.step_offset and too_steep(p, normal) and self.fix(Rules.FIX_MOVING_SLOPES):
                return True
        if self.round_is_steep(bottom) and self.fix(Rules.FIX_ROUND_SLOPES):
            return True
        if self.s.climbs_steep and self.s.steep_climb > 0.0:
            # Higher than a step above the last walkable ground.
            bottom -= self.s.steep_climb
            fixed = self.s.validate_triangle_down and self.s.touched_max - bottom > p.step_offset
            if fixed and too_steep(p, self.s.down_normal):
                return self.fix(Rules.FIX_STEEP_CLIMB)
            if Rules.FIX_MOVING_SLOPES in p.rules and self.moving_below is not None:
                normal, top = self.moving_below
                if top - bottom > p.step_offset and too_steep(p, normal):
                    return self.fix(Rules.FIX_STEEP_CLIMB)
            if Rules.FIX_ROUND_SLOPES in p.rules and self.round_is_steep(bottom):
                return self.fix(Rules.FIX_STEEP_CLIMB)
        return False

    def count_steep_climb(self, gained, jumps):
        """FIX_STEEP_CLIMB: the climb of the last moves without walkable ground."""
        ground = self.s.ground
        steep = False
        if ground is not None:
            c = dot(ground.face_normal, self.p.up)
            faced = ground.has_face or Rules.FIX_ROUND_SLOPES in self.p.rules
            steep = faced and c >= 0.0 and is_below_limit(c, self.p.slope_limit)
        if jumps or (ground is not None and not steep):
            self.set(climbs_steep=False, steep_climb=0.0)
        elif ground is not None or self.s.climbs_steep:
            self.set(climbs_steep=True, steep_climb=f_max(0.0, self.s.steep_climb + gained))

    def level(self, displacement):
        """FIX_ALMOST_LEVEL: remove a rise that is only rounding."""
        rise = dot(displacement, self.p.up)
        size = length(displacement)
        if 0.0 < rise <= MOTION_SHARE * size and self.fix(Rules.FIX_ALMOST_LEVEL):
            # Slightly more than the rise, because this sum is rounded too.
            return madd(displacement, self.p.up, -2.0 * rise - COORDINATE_ROUNDING * size)
        return displacement

    # --- moveCharacter --------------------------------------------------------

    def move_character(self, displacement, min_distance):
        """The passes up, aside and down: moveCharacter (MOVE 6.2, RULES 6).

        Returns collision flags.
        """
        p = self.p
        r = self.begin_passes(displacement, min_distance)
        if not r.experiment:
            self.up_pass(r)
        self.side_pass(r)
        if Rules.SIDE_CHECK_AT_ONCE in p.rules and self.climbed_too_steep(r):
            self.set(hit_non_walkable=True)
            if not r.experiment:
                return r.flags
        self.sensor(r)
        self.down_pass(r)
        if self.is_too_steep_aside(r):
            self.set(hit_non_walkable=True)
            self.tell("too_steep_aside", Pass.DOWN, self.s.position, self.s.side_normal)
            if not r.experiment:
                return r.flags
        if self.is_too_steep_below(r):
            self.set(hit_non_walkable=True)
            self.tell("too_steep_below", Pass.DOWN, self.s.position, self.s.down_normal)
            # RULES 9 row 9: by the letter the recovery sweep comes after the rerun, see run.
            if r.experiment and Rules.RECOVERY_SWEEP_AFTER not in p.rules:
                self.recovery_sweep(r)
        elif self.is_lifted_by_steep_aside(r):
            self.set(hit_non_walkable=True)
            self.tell("too_steep_aside", Pass.SIDE, self.s.position, self.s.side_normal)
        return r.flags

    def begin_passes(self, displacement, min_distance):
        """Decompose the displacement, and look up all candidates of the passes."""
        p = self.p
        up = p.up
        start = self.s.position
        height = dot(start, up)
        experiment = self.s.walk_experiment
        d = decompose(displacement, up, self.step, self.standing_on_moving)
        self.lifted = self.raised = 0.0
        self.lintel = False
        self.moving_below = self.moving_aside = None
        self.round_below = self.round_aside = None
        # RULES 9 row 6: unit vectors in the response, during the whole experiment.
        normalize = experiment and Rules.NORMALIZE_EXPERIMENT in p.rules
        self.set(hit_non_walkable=False, is_moving_up=d.is_moving_up, normalize_response=normalize, ground=None)
        self.side = unit(d.side_vector)
        # One query for the whole move, including the step (MOVE 5.2).
        self.update_candidates(temporal_box(p, start, displacement))
        return PassRun(
            d=d,
            rise=dot(displacement, up),
            start=start,
            start_height=height,
            bottom=height - (0.5 * p.height + p.radius),
            step_offset=d.step_offset,
            min_distance=min_distance,
            experiment=experiment,
            forced=p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING,
            constrained=p.climbing_mode is ClimbingMode.CONSTRAINED,
            normalize=normalize,
        )

    def up_pass(self, r):
        """The UP pass (MOVE 6.2.3), which the walk experiment omits."""
        p, d = self.p, r.d
        single = p.prevent_vertical_sliding or max_abs(d.side_vector) > ALMOST_ZERO
        moved, collisions = self.sweep_test(d.up_vector, 1 if single else MAX_ITERATIONS, r.min_distance, Pass.UP)
        gained = dot(self.s.position, p.up) - r.start_height
        if moved and collisions > 0:
            r.flags |= CollisionFlags.UP
            # RULES 6: the step cannot be higher than the height that was gained.
            r.step_offset = f_min(r.step_offset, gained)
            if not (r.rise > 0.0 and gained < r.rise * (1.0 - MOTION_SHARE)) and self.fix(Rules.FIX_STEP_IS_NO_JUMP):
                r.flags &= ~CollisionFlags.UP
        self.lifted = gained

    def side_pass(self, r):
        """The SIDE pass (MOVE 6.2.4)."""
        self.set(validate_triangle_side=False)
        moved, collisions = self.sweep_test(r.d.side_vector, MAX_ITERATIONS, r.min_distance, Pass.SIDE)
        if moved and collisions > 0:
            r.flags |= CollisionFlags.SIDES

    def climbed_too_steep(self, r):
        """RULES 9 row 3, MOVE 10.4: whether a climb aside is too steep and higher than the step."""
        p = self.p
        return (
            p.slope_limit > 0.0
            and r.constrained
            and self.s.validate_triangle_side
            and too_steep(p, self.s.side_normal)
            and self.s.contact_height > r.bottom + r.step_offset
        )

    def sensor(self, r):
        """The SENSOR (MOVE 6.2.5 as RULES 6 has it): only tests, and may set the side normal.

        RULES 9 row 2: by the letter it always sweeps and decides itself.
        """
        p = self.p
        decides = Rules.SENSOR_DECIDES in p.rules
        if r.constrained and (decides or not self.s.validate_triangle_side):
            if length(r.d.side_vector) < p.radius:
                saved, recovered = self.s.position, self.recovered
                ahead = scale(unit(r.d.side_vector), p.radius)
                _, collisions = self.sweep_test(ahead, 1, r.min_distance, Pass.SENSOR)
                self.set(position=saved)
                self.recovered = recovered
                if decides and collisions > 0 and self.climbed_too_steep(r):
                    self.set(hit_non_walkable=True)

    def down_pass(self, r):
        """The DOWN pass (MOVE 6.2.6).

        It takes back the step, outside of the walk experiment (RULES 9 row 7).
        """
        p = self.p
        experiment, forced = r.experiment, r.forced
        down = r.d.down_vector
        if r.d.has_side_movement and (not experiment or Rules.STEP_BACK_IN_EXPERIMENT in p.rules):
            down = madd(down, p.up, -r.step_offset)
        iterations = MAX_ITERATIONS if experiment and forced else 1
        moved, collisions = self.sweep_test(down, iterations, r.min_distance, Pass.DOWN)
        r.meets_below = moved and collisions > 0
        r.on_user_geometry = self.s.touch_other_controller or self.s.touch_obstacle
        if r.meets_below and r.rise <= 0.0:
            r.flags |= CollisionFlags.DOWN

    def is_too_steep_aside(self, r):
        """RULES 6: whether a side triangle is too steep, and the climb higher than the step."""
        p = self.p
        return (
            r.meets_below
            and (not r.on_user_geometry or Rules.FIX_ROUND_SLOPES in p.rules)
            and p.slope_limit > 0.0
            and r.constrained
            and Rules.SIDE_CHECK_AT_ONCE not in p.rules
            and self.s.contact_height > r.bottom + r.step_offset
            and self.steep_aside()
            and (not r.on_user_geometry or self.fix(Rules.FIX_ROUND_SLOPES))
        )

    def is_too_steep_below(self, r):
        """RULES 6, MOVE 10.4: whether the triangle below is too steep and higher than a step."""
        if self.p.slope_limit <= 0.0 or r.rise > 0.0:
            return False
        if not r.on_user_geometry:
            return self.steep_below(r.bottom)
        return self.round_is_steep(r.bottom) and self.fix(Rules.FIX_ROUND_SLOPES)

    def recovery_sweep(self, r):
        """The recovery sweep (RULES 6): back down by the gained height."""
        up = self.p.up
        min_distance = r.min_distance
        self.set(normalize_response=True)
        gained = dot(self.s.position, up) - r.start_height
        recover = f_max(0.0, gained) + abs(r.rise)
        if r.forced:
            left = f_max(0.0, self.longest - length(sub(self.s.position, r.start)))
            if recover > left * (1.0 + MOTION_SHARE) and self.fix(Rules.FIX_SLIDE_LENGTH):
                recover = left
        if recover < min_distance:
            min_distance = recover / MAX_ITERATIONS
        # PhysX calls this motion down an UP pass, and hits are reported as such.
        self.sweep_test(scale(up, -recover), MAX_ITERATIONS, min_distance, Pass.UP)
        self.set(normalize_response=r.normalize)

    def is_lifted_by_steep_aside(self, r):
        """FIX_STEEP_ASIDE: whether a steep triangle aside lifted the character, over no ground."""
        aside = MOTION_SHARE * length(r.d.side_vector)
        return (
            self.raised > aside
            and self.s.ground is None
            and not r.experiment
            and self.p.slope_limit > 0.0
            and r.rise <= 0.0
            and dot(self.s.position, self.p.up) - r.start_height > aside
            and self.fix(Rules.FIX_STEEP_ASIDE)
        )

    # --- fixes: what they do --------------------------------------------------

    def straight_way(self, start, side, longest):
        """FIX_LOWER_STEP: the free distance aside to the first hit, at most ``longest``."""
        p = self.p
        self.update_candidates(temporal_box(p, start, scale(side, longest)))
        q = capsule_cast(*self.ends(start), p.radius, side, longest + p.contact_offset, True, True)
        if Rules.FIX_SHEET_EDGES in p.rules:
            q = q._replace(meets_rims=True, meets_back_rims=True)
        if Rules.FIX_BACK_FACES in p.rules:
            q = q._replace(passed=set(), passing=self.passing)
        hit = cast(self.candidates, q, self.recovers(), self.may_meet)
        if hit is None:
            return longest
        return f_min(longest, f_max(0.0, hit.base.distance - p.contact_offset))

    def lower_step(self, before, displacement, min_distance, flags):
        """FIX_LOWER_STEP: moveCharacter again with eighths of the step offset, after a lintel.

        Only where the straight motion leads farther than the move so far. The farthest one wins;
        among equal ones the highest step. Returns collision flags.
        """
        lifted = self.lifted
        side = unit(reject(displacement, self.p.up))
        asked = dot(displacement, side)
        best = dot(sub(self.s.position, before.position), side)
        best_state, hits, recovered = self.s, self.hits, self.recovered
        for eighths in range(STEP_PARTS - 1, -1, -1):
            if best >= asked * (1.0 - MOTION_SHARE):
                break
            self.step = self.p.step_offset * eighths / STEP_PARTS
            tested = self.straight_way(madd(before.position, self.p.up, f_min(lifted, self.step)), side, asked)
            if tested <= best + asked * MOTION_SHARE:
                continue
            self.s, self.hits, self.recovered = before, [], ZERO
            self.pushed_out = False
            again = self.move_character(displacement, min_distance)
            now = dot(sub(self.s.position, before.position), side)
            if self.s.hit_non_walkable or now <= best + asked * MOTION_SHARE:
                continue
            if not self.find_overlap(EVERYTHING)[1].overlapping and self.fix(Rules.FIX_LOWER_STEP):
                best, flags = now, again
                best_state, hits, recovered = self.s, self.hits, self.recovered
        self.s, self.hits, self.recovered = best_state, hits, recovered
        self.step = self.p.step_offset
        return flags

    def find_overlap(self, kinds):
        """The group of the deepest overlap with some kinds of bodies, and the exit from it.

        A touch is no overlap.
        """
        around = self.around(self.s.position, self.p.radius)
        radius = self.p.radius * (1.0 - MOTION_SHARE)
        return deepest_group(around, *self.ends(self.s.position), radius, kinds, self.may_meet)

    def leave_overlaps(self):
        """FIX_KINEMATIC_RECOVERY and FIX_STATIC_RECOVERY: out of bodies in which the move ends.

        The depth that remains in anything is stored.
        """
        rules = self.p.rules
        # A character that comes through triangles from behind stays inside until it is through.
        reports = Rules.FIX_STATIC_RECOVERY in rules and not self.passed
        kinds = ()
        if self.p.overlap_recovery:
            kinds += ("kinematic",) if Rules.FIX_KINEMATIC_RECOVERY in rules else ()
            kinds += ("static",) if reports else ()
        if not self.find_overlap(EVERYTHING if reports else kinds)[1].overlapping:
            return
        if Rules.FIX_KINEMATIC_RECOVERY in rules:
            self.rise_from_below()
        group, push = self.find_overlap(kinds)
        if push.overlapping:
            static = group.item.body == "static"
            self.fix(Rules.FIX_STATIC_RECOVERY if static else Rules.FIX_KINEMATIC_RECOVERY)
            position = self.recover(self.s.position)
            self.recovered = add(self.recovered, sub(position, self.s.position))
            self.set(position=position)
        if reports:
            _, push = self.find_overlap(EVERYTHING)
            depth = push.depth + self.p.radius * MOTION_SHARE
            if push.overlapping and depth > self.s.overlap and self.fix(Rules.FIX_STATIC_RECOVERY):
                self.set(overlap=depth)

    def rise_from_below(self):
        """FIX_KINEMATIC_RECOVERY: move up from characters below, at most to what is above."""
        p = self.p
        p0, p1 = self.ends(self.s.position)
        radius = p.radius * (1.0 - MOTION_SHARE)
        box = capsule_bounds(p0, p1, radius)
        rise = 0.0
        for other in self.others:
            if not box_overlap(other.bounds, box):
                continue
            push = group_push(Group(other, []), p0, p1, radius)
            steep = dot(push.dir, p.up)
            # A character beside this one is left to the separation.
            if push.overlapping and steep >= FROM_BELOW and self.may_meet(other):
                # The distance grows at least as fast as at the start of the way.
                rise = f_max(rise, push.depth / steep)
        if rise <= 0.0 or not self.fix(Rules.FIX_KINEMATIC_RECOVERY):
            return
        reach = rise + p.contact_offset
        fixed = [i for i in self.items if i.body == "static"]
        groups = gather(fixed, capsule_bounds(p0, madd(p1, p.up, reach), p.radius), self.mask)
        hit = cast(groups, capsule_cast(p0, p1, p.radius, p.up, reach, True, True), RECOVERS, self.may_meet)
        if hit is not None:
            rise = f_min(rise, f_max(0.0, hit.base.distance - p.contact_offset))
        self.set(position=madd(self.s.position, p.up, rise))

    def above_floor(self, direction, hit, advance):
        """FIX_CREASES: the advance of a motion that something overhead turned down onto a floor.

        The contact offset along the motion is less than the contact offset above the floor.
        """
        sinks = -dot(direction, hit.base.normal)
        if dot(direction, self.p.up) >= 0.0 or dot(hit.base.normal, self.p.up) <= 0.0 or sinks <= 0.0:
            return advance
        above = hit.base.distance - self.p.contact_offset / sinks
        return f_max(0.0, above) if above < advance and self.fix(Rules.FIX_CREASES) else advance

    def lowers_onto_floor(self, position, direction, advance):
        """FIX_CREASES: the floor that a motion down would end less than the contact offset above.

        Returns the advance and the normal, or None.
        """
        p = self.p
        sinks = -dot(direction, p.up)
        drop = sinks * advance
        down = scale(p.up, -1.0)
        q = capsule_cast(*self.ends(position), p.radius, down, drop + p.contact_offset, True, True)
        if Rules.FIX_SHEET_EDGES in p.rules:
            q = q._replace(meets_rims=True, meets_back_rims=True)
        if Rules.FIX_BACK_FACES in p.rules:
            q = q._replace(passed=set(), passing=self.passing)
        hit = cast(self.candidates, q, self.recovers(), self.may_meet)
        if hit is None or hit.base.overlapping:
            return None
        if hit.base.distance - p.contact_offset >= drop * (1.0 - MOTION_SHARE) or not self.fix(Rules.FIX_CREASES):
            return None
        return f_max(0.0, hit.base.distance - p.contact_offset) / sinks, hit.base.normal

    def keep_ride(self):
        """FIX_KEEP_RIDE: keep a moving platform that the DOWN pass just missed."""
        p = self.p
        down = scale(p.up, -1.0)
        reach = f_max(STANDING_GAP * p.contact_offset, STANDING_SHARE * p.radius)
        low, high = self.ends(self.s.position)
        groups = gather(self.moving(), capsule_bounds(madd(low, down, reach), high, p.radius), self.mask)
        q = capsule_cast(low, high, p.radius, down, reach, True, True)
        meets = Rules.FIX_SHEET_EDGES in p.rules
        q = q._replace(meets_rims=meets, meets_back_rims=meets)
        hit = cast(groups, q, (), self.may_meet)
        if hit is None:
            return
        self.fix(Rules.FIX_KEEP_RIDE)
        item, base = hit.group.item, hit.base
        self.set(touched_point=base.point, touched_local=item.unplace_point(base.point))
        if item.owner == OBSTACLE:
            self.set(touched_obstacle=item.id, touch_obstacle=True)
        else:
            self.set(touched_actor=item.id)
        gap = f_min(base.distance, p.contact_offset)
        self.set(ground=ground_contact(item, base.point, base.normal, base.face, facing(hit, down), gap))

    # --- riding ---------------------------------------------------------------

    def find(self, owner, id):
        """A stored object, if the character can still collide with it (RULES 7.2)."""
        for item in self.items:
            if item.owner == owner and item.id == id:
                return item if item.layer & self.mask and self.may_meet(item) else None
        return None

    def moving(self):
        """Shapes and obstacles that may move, without the character's proxy."""
        return [i for i in self.items if i.body != "static" and (i.owner != ACTOR or i.id != self.p.proxy)]

    def ray_below(self, groups, ray):
        """The first of the groups that a ray meets, and where: distance and point; or None."""
        # Solids are solid: the centre may be inside.
        around = None
        for g in groups:
            solid = g.item.closed or g.item.kind == BOX
            if solid and group_overlaps(g, ray.p0, ray.p0, 0.0) and self.may_meet(g.item):
                if around is None or group_order(g, None, around, None) < 0:
                    around = g
        if around is not None:
            return around.item, 0.0, ray.p0
        hit = cast(groups, ray, EVERYTHING, self.may_meet)
        return None if hit is None else (hit.group.item, hit.base.distance, hit.base.point)

    def look_below(self):
        """The moving body below the centre, within half the height (RULES 7.2).

        Returns it and its distance, or None.
        """
        p = self.p
        down = scale(p.up, -1.0)
        reach = 0.5 * p.height + p.radius
        start = self.s.position
        groups = gather(self.moving(), capsule_bounds(start, madd(start, down, reach), 0.0), self.mask)
        ray = capsule_cast(start, start, 0.0, down, reach, False, True)
        # RULES_2 6: a shape comes before an obstacle.
        found = self.ray_below([g for g in groups if g.item.owner == ACTOR], ray)
        if found is None:
            found = self.ray_below([g for g in groups if g.item.owner == OBSTACLE], ray)
        if found is None:
            return None
        item, distance, point = found
        self.remember(item, point)
        return item, distance

    def remember(self, item, point):
        """Remember a moving thing that the ray met (RULES 7.2)."""
        self.set(touched_point=point, touched_local=item.unplace_point(point))
        if item.owner == OBSTACLE:
            self.set(touched_obstacle=item.id)
        else:
            self.set(touched_actor=item.id)

    def changes_obstacle(self, item):
        """Whether another obstacle is nearest below, now that the known one moved (RULES_2 11)."""
        p = self.p
        down = scale(p.up, -1.0)
        reach = 0.5 * p.height + p.radius
        start = self.s.position
        groups = gather(self.moving(), capsule_bounds(start, madd(start, down, reach), 0.0), self.mask)
        ray = capsule_cast(start, start, 0.0, down, reach, False, True)
        found = self.ray_below([g for g in groups if g.item.owner == OBSTACLE], ray)
        if found is None or found[0].id == item.id:
            return False
        self.remember(found[0], found[2])
        return True

    def ride(self, displacement):
        """Move with the platform (RULES 7.2 and 7.3, MOVE 13).

        Return the remaining displacement.
        """
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
        lift = None
        if item is None:
            below = self.look_below()
            if below is not None:
                item, distance = below
                # RULES_2 6: the feet go up to what the ray met.
                lift = scale(p.up, 0.5 * p.height + p.radius - distance)
        # RULES 7.2: static shapes carry no characters.
        if item is None or item.body == "static":
            return displacement
        self.carried = True
        now = item.place_point(self.s.touched_local)
        delta = sub(now, self.s.touched_point)
        moves = item.owner == OBSTACLE and lift is None and max_abs(delta) > ALMOST_ZERO
        if moves and Rules.RIDE_WHOLE not in p.rules and self.changes_obstacle(item):
            return displacement
        behavior = self.behavior_of(item)
        self.set(touched_point=now)
        if Rules.RIDE_WHOLE in p.rules:
            # RULES 9 row 11: the whole motion at once, with any flags.
            self.set(position=add(self.s.position, delta), platform_delta=delta)
            self.standing_on_moving = max_abs(delta) > ALMOST_ZERO
            return displacement
        if lift is not None:
            delta = lift
        if behavior & Behavior.USER_DEFINED_RIDE or max_abs(delta) <= ALMOST_ZERO:
            return displacement
        self.standing_on_moving = True
        vertical = along(delta, p.up)
        self.set(platform_delta=vertical)
        # RULES 7.3: up directly, down as part of the displacement.
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
        first = self.s
        start = first.position
        self.step = p.step_offset
        self.passing = self.s.passes_back_face
        # RULES 7.1: the separation from other controllers is added.
        asked = displacement
        displacement = add(displacement, self.s.separation)
        self.set(overlap=0.0, separation=ZERO)
        displacement = self.level(displacement)
        rise = dot(displacement, p.up)
        if self.s.touched_controller >= 0 and self.others and Rules.FIX_KINEMATIC_RECOVERY in p.rules:
            self.rise_from_below()
        displacement = self.level(self.ride(displacement))
        carried = self.s.position
        total = displacement
        if not is_zero(self.s.platform_delta):
            self.tell("ride", Pass.UP, start, self.s.platform_delta)
        before = self.s
        flags = self.move_character(displacement, min_distance)
        if self.lintel and not self.s.hit_non_walkable:
            flags = self.lower_step(before, displacement, min_distance, flags)
        if self.s.hit_non_walkable:
            # The move starts again after the ride, as the walk experiment (MOVE 3.2.5, RULES 7.4).
            self.set(walk_experiment=True, position=carried)
            self.recovered = ZERO
            self.pushed_out = False
            self.longest = length(total)
            if p.non_walkable_mode is NonWalkableMode.FORCE_SLIDING:
                displacement = along(total, p.up)
                if Rules.FORCE_SLIDE_HORIZONTAL in p.rules:
                    # RULES 9 row 1.
                    displacement = sub(total, displacement)
            self.tell("experiment", Pass.UP, carried, displacement)
            flags = self.move_character(displacement, min_distance)
            # RULES 9 row 9: the recovery sweep by the letter of MOVE 11.2.5.
            after = Rules.RECOVERY_SWEEP_AFTER in p.rules
            if after and self.s.validate_triangle_down and too_steep(p, self.s.down_normal):
                gained = dot(self.s.position, p.up) - dot(carried, p.up)
                recover = f_max(0.0, gained) + abs(dot(total, p.up))
                self.sweep_test(scale(p.up, -recover), MAX_ITERATIONS, min_distance, Pass.UP)
            self.set(walk_experiment=False, normalize_response=False)
        if Rules.FIX_STEEP_CLIMB in p.rules:
            self.count_steep_climb(dot(sub(self.s.position, carried), p.up), rise > 0.0)
        if Rules.FIX_BACK_FACES in p.rules:
            if self.passing and not self.passed:
                # Still inside one-sided triangles that none of its passes looked at.
                group, push = self.find_overlap(RECOVERS)
                if push.overlapping:
                    item = group.item
                    self.passed = item.kind == TRIANGLES and not item.closed and not item.two_sided
            self.set(passes_back_face=self.passed)
        moves = any(i.body != "static" for i in self.items)
        idle = self.stats.iterations == 0
        if Rules.FIX_STATIC_RECOVERY in p.rules or (Rules.FIX_KINEMATIC_RECOVERY in p.rules and (moves or self.others)):
            self.leave_overlaps()
        if moves:
            touches = max(self.s.touched_actor, self.s.touched_obstacle, self.s.touched_controller) >= 0
            lost = self.s.ground is None and not touches
            looks = self.carried or idle or self.stats.recoveries > 0
            if Rules.FIX_KEEP_RIDE in p.rules and rise <= 0.0 and lost and looks:
                self.keep_ride()
        # RULES 9: a position that is not finite is never stored.
        if not is_finite(self.s.position):
            raise FloatingPointError("the computed position is not finite; nothing was changed")
        touches = max(self.s.touched_actor, self.s.touched_obstacle, self.s.touched_controller) >= 0
        if self.stats.iterations == 0 and self.s.ground is None and touches:
            # No pass started: the ground is unchanged.
            self.set(ground=first.ground)
        total = sub(self.s.position, start)
        own = self.own_motion(total, asked, first.separation)
        velocity = scale(own, 1.0 / dt) if dt > 0.0 else ZERO
        self.set(flags=flags, displacement=total, asked=asked, velocity=velocity)

    def own_motion(self, total, asked, separation):
        """The motion without recovery and separation.

        A wall may block a separation. Its length counts as far as the motion along it exceeds that
        of the displacement and the platform.
        """
        own = sub(total, self.recovered) if self.recovered != ZERO else total
        if is_zero(separation):
            return own
        size = length(separation)
        direction = scale(separation, 1.0 / size)
        gained = dot(sub(sub(own, asked), self.s.platform_delta), direction)
        return madd(own, direction, -f_max(0.0, f_min(gained, 2.0 * size - gained)))

    # --- questions ------------------------------------------------------------

    def probe_below(self, reach):
        """Ground of the character within ``reach`` (MOVE 12.1): GroundContact or None."""
        p = self.p
        down = scale(p.up, -1.0)
        low, high = self.ends(self.s.position)
        here = capsule_bounds(low, high, p.radius)
        groups = self.look_up(box_union(here, capsule_bounds(madd(low, down, reach), high, p.radius)))
        q = capsule_cast(low, high, p.radius, down, reach, True, True)
        meets = Rules.FIX_SHEET_EDGES in p.rules
        q = q._replace(meets_rims=meets, meets_back_rims=meets)
        hit = cast(groups, q, EVERYTHING, self.may_meet)
        if hit is None:
            return None
        item, base = hit.group.item, hit.base
        normal = p.up if base.overlapping else base.normal
        face_normal = normal if base.face is None else facing(hit, down)
        return ground_contact(item, base.point, normal, base.face, face_normal, base.distance)

    def touches_anything(self, p0, p1, radius):
        """Whether the segment, grown by the radius, touches an object of its layers."""
        groups = self.look_up(capsule_bounds(p0, p1, radius))
        return any(group_overlaps(g, p0, p1, radius) and self.may_meet(g.item) for g in groups)

    def unstick(self, margin):
        """Recovery with a radius grown by ``margin`` (RULES 7.5), on request."""
        self.p = replace(self.p, contact_offset=self.p.contact_offset + margin, overlap_recovery=True)
        position = self.recover(self.s.position)
        if not is_finite(position):
            raise FloatingPointError("the computed position is not finite; nothing was changed")
        self.set(position=position)
