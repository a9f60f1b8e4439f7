# cython: language_level=3
"""What a move leaves behind, for Python: hits, ground, state and costs. See the header."""
cimport cython
from libc.stdint cimport int32_t, int64_t

from pycct.args.values cimport as_vec3, from_vec3
from pycct.character.move_types cimport (
    HIT_NON_WALKABLE,
    IS_MOVING_UP,
    TOUCH_OBSTACLE,
    TOUCH_OTHER_CONTROLLER,
    compact_cache,
    controller_params,
    controller_state,
    ground_contact,
    hit_log,
    hit_record,
    move_scratch,
    move_stats,
)
from pycct.character.parameters cimport is_walkable, other_of
from pycct.scene.scene cimport Scene
from pycct.world.candidates cimport OWNER_ACTOR, OWNER_CONTROLLER, OWNER_OBSTACLE

from pycct.runtime.enums import Pass, Region, Rules

# Shares of the axis for the bottom and the top of the capsule (SWEEP 6.3).
cdef double BOTTOM_REGION = 0.1
cdef double TOP_REGION = 0.9


@cython.final
cdef class Hit:
    """One collision of a move.

    Attributes
    ----------
    actor, controller, obstacle : object
        The object that was hit, in one of them; None if it has been removed, and in pickles and
        deep copies.
    triangle : int or None
        Index in the mesh or heightfield, in the order of your triangles.
    data : int or None
        The mesh's ``triangle_data`` of the triangle.
    """

    @property
    def other(self):
        """The actor, controller or obstacle that was hit; None if it has been removed."""
        if self.actor is not None:
            return self.actor
        return self.controller if self.controller is not None else self.obstacle

    @property
    def dynamic(self):
        """True for a dynamic body, which the game may push at ``position`` along ``direction``."""
        return bool(self.r.dynamic)

    @property
    def position(self):
        """Point of contact, metres."""
        return from_vec3(self.r.position)

    @property
    def normal(self):
        """Unit normal, out of the object that was hit."""
        return from_vec3(self.r.normal)

    @property
    def direction(self):
        """Unit direction of the motion at the hit."""
        return from_vec3(self.r.direction)

    @property
    def length(self):
        """Length of the motion that remained, metres."""
        return self.r.length

    @property
    def distance(self):
        """Distance to the hit along the direction, metres."""
        return self.r.distance

    @property
    def time(self):
        """Distance as a share of the remaining motion.

        Slightly above 1 within the contact offset.
        """
        return self.r.distance / self.r.length

    @property
    def region(self):
        """Part of the capsule (Region), by the position on its axis (SWEEP 6.3)."""
        if self.r.along <= BOTTOM_REGION:
            return Region.BOTTOM
        return Region.TOP if self.r.along >= TOP_REGION else Region.SIDE

    @property
    def pass_(self):
        """The pass (Pass) of the move."""
        return Pass(self.r.sweep_pass)

    @property
    def id(self):
        """Id of the object that was hit, which pickles and deep copies contain instead of it."""
        return self.r.id

    def __copy__(self):
        return self

    def __reduce__(self):
        return _hit_again, (self.r.owner, self.r.id, self.triangle, self.data, self.dynamic, self.pass_,
                            self.position, self.normal, self.direction, self.r.length, self.r.distance, self.r.along)

    def __repr__(self):
        return (f"<Hit: {self.other!r}, triangle {self.triangle}, pass {self.pass_.name}, position {self.position}, "
                f"normal {self.normal}>")


def _hit_again(owner, id, triangle, data, dynamic, pass_, position, normal, direction, length, distance, along):
    """Return a pickled Hit, without the object that was hit."""
    cdef Hit h = Hit.__new__(Hit)
    h.r.owner, h.r.id, h.triangle, h.data = owner, id, triangle, data
    h.r.dynamic = dynamic
    h.r.sweep_pass = pass_.value
    h.r.position = as_vec3(position, "position")
    h.r.normal = as_vec3(normal, "normal")
    h.r.direction = as_vec3(direction, "direction")
    h.r.length, h.r.distance, h.r.along = length, distance, along
    return h


@cython.final
cdef class Ground:
    """The ground below a character.

    Attributes
    ----------
    actor, controller, obstacle : object
        The object below, in one of them; None if it has been removed, and in pickles and deep
        copies.
    triangle : int or None
        Index in the mesh or heightfield, in the order of your triangles.
    data : int or None
        The mesh's ``triangle_data`` of the triangle.
    walkable : bool
        Whether the slope is within the limit, by the triangle's normal if there is one.
    """

    @property
    def normal(self):
        """Unit contact normal."""
        return from_vec3(self.g.normal)

    @property
    def face_normal(self):
        """Unit normal of the triangle below; the contact normal without a triangle."""
        return from_vec3(self.g.face_normal)

    @property
    def point(self):
        """Point of contact, metres."""
        return from_vec3(self.g.point)

    @property
    def distance(self):
        """Gap between the capsule and the ground, metres."""
        return self.g.distance

    @property
    def other(self):
        """The actor, controller or obstacle; None if it has been removed."""
        if self.actor is not None:
            return self.actor
        return self.controller if self.controller is not None else self.obstacle

    @property
    def id(self):
        """Id of the object below. Pickles and deep copies contain it instead of the object."""
        return self.g.id

    def __copy__(self):
        return self

    def __reduce__(self):
        return _ground_again, (self.g.owner, self.g.id, self.triangle, self.data, bool(self.walkable), self.normal,
                               self.face_normal, self.point, self.distance)

    def __repr__(self):
        return (f"<Ground: {self.other!r}, triangle {self.triangle}, normal {self.normal}, "
                f"walkable {bool(self.walkable)}>")


def _ground_again(owner, id, triangle, data, walkable, normal, face_normal, point, distance):
    """Return a pickled Ground, without the object below."""
    cdef Ground r = Ground.__new__(Ground)
    r.g.owner, r.g.id, r.triangle, r.data = owner, id, triangle, data
    r.walkable = walkable
    r.g.normal = as_vec3(normal, "normal")
    r.g.face_normal = as_vec3(face_normal, "face_normal")
    r.g.point = as_vec3(point, "point")
    r.g.distance = distance
    return r


@cython.final
cdef class State:
    """State of a character after its last move.

    Attributes
    ----------
    standing_on : Actor, Obstacle, CharacterController or None
        The object on which the move ended, stored for riding; None in pickles and deep copies.
    standing_on_id : int or None
        Id of that object, which pickles and deep copies contain instead of it.
    on_controller, on_obstacle : bool
        Whether that object is another character or an obstacle.
    moving_up : bool
        Whether the displacement pointed up.
    sliding : bool
        Whether the move ended on ground that is too steep to walk on. False in front of a steep
        slope without contact from above; `CharacterController.explain_last` explains such a stop.
    overlap : float
        Depth that remains after recovery, metres. It covers only overlaps at the start of a pass;
        ``scene.penetration(hero.shape, *hero.pose)`` returns all overlaps.
    contact_point_height : float
        Height of the last contact of any pass along up, metres.
    ground_triangle : int or None
        Index of the triangle below, in the order of your triangles.
    """

    @property
    def velocity(self):
        """Motion of the last move / dt, m/s, without recovery and separation."""
        return from_vec3(self.velocity_)

    @property
    def displacement(self):
        """Whole motion of the last move, metres: platform, recovery and separation included."""
        return from_vec3(self.displacement_)

    @property
    def platform_delta(self):
        """Motion by the platform, metres."""
        return from_vec3(self.platform_delta_)

    def __copy__(self):
        return self

    def __reduce__(self):
        return _state_again, (self.standing_on_id, bool(self.on_controller), bool(self.on_obstacle),
                              bool(self.moving_up), bool(self.sliding), self.overlap, self.contact_point_height,
                              self.ground_triangle, self.velocity, self.displacement, self.platform_delta)

    def __repr__(self):
        return (f"<State: standing on {self.standing_on!r}, moving_up {bool(self.moving_up)}, "
                f"sliding {bool(self.sliding)}, overlap {self.overlap:.3g}>")


def _state_again(standing_on_id, on_controller, on_obstacle, moving_up, sliding, overlap, contact_point_height,
                 ground_triangle, velocity, displacement, platform_delta):
    """Return a pickled State, without the object that the character stood on."""
    cdef State r = State.__new__(State)
    r.standing_on_id, r.ground_triangle = standing_on_id, ground_triangle
    r.on_controller, r.on_obstacle, r.moving_up, r.sliding = on_controller, on_obstacle, moving_up, sliding
    r.overlap, r.contact_point_height = overlap, contact_point_height
    r.velocity_ = as_vec3(velocity, "velocity")
    r.displacement_ = as_vec3(displacement, "displacement")
    r.platform_delta_ = as_vec3(platform_delta, "platform_delta")
    return r


@cython.final
cdef class MoveStats:
    """Costs of the last move, and contents of its candidate cache (SWEEP 11.1).

    Attributes
    ----------
    iterations, full_updates, partial_updates, triangles_tested, recoveries : int
        Counts of the last move.
    cache_bounds : tuple of two (3,) floats, or None
        Corners (lo, hi) of the cached volume; None for an empty cache.
    timestamp : int
        `Scene.timestamp` of the static geometry in the cache.
    static_triangles, total_triangles : int
        Numbers of triangles in the cache.
    """

    @property
    def fixes(self):
        """The fixes (Rules) that changed the move; none means the same bits as ``physx``."""
        return Rules(self.fixes_)

    def __copy__(self):
        return self

    def __reduce__(self):
        return _stats_again, (self.cache_bounds, self.timestamp, self.static_triangles, self.total_triangles,
                              self.iterations, self.full_updates, self.partial_updates, self.triangles_tested,
                              self.recoveries, self.fixes_)

    def __repr__(self):
        return (f"<MoveStats: {self.iterations} iterations, {self.full_updates} full and {self.partial_updates} "
                f"partial updates, {self.triangles_tested} triangles tested, {self.recoveries} recoveries>")


def _stats_again(cache_bounds, timestamp, static_triangles, total_triangles, iterations, full_updates, partial_updates,
                 triangles_tested, recoveries, fixes):
    """Return a pickled or copied MoveStats."""
    cdef MoveStats r = MoveStats.__new__(MoveStats)
    r.cache_bounds, r.timestamp = cache_bounds, timestamp
    r.static_triangles, r.total_triangles = static_triangles, total_triangles
    r.iterations, r.full_updates, r.partial_updates = iterations, full_updates, partial_updates
    r.triangles_tested, r.recoveries, r.fixes_ = triangles_tested, recoveries, fixes
    return r


cdef Ground ground_of(Scene scene, const controller_params* p, const ground_contact* g):
    cdef Ground r
    if not g.touching:
        return None
    r = Ground.__new__(Ground)
    r.g = g[0]
    other = other_of(scene, g.owner, g.id)
    r.actor = other if g.owner == OWNER_ACTOR else None
    r.controller = other if g.owner == OWNER_CONTROLLER else None
    r.obstacle = other if g.owner == OWNER_OBSTACLE else None
    r.triangle = g.triangle if g.triangle >= 0 else None
    r.data = g.data if g.has_data else None
    r.walkable = is_walkable(p, g)
    return r


cdef Hit hit_of(Scene scene, const hit_record* record):
    cdef Hit h = Hit.__new__(Hit)
    h.r = record[0]
    other = other_of(scene, h.r.owner, h.r.id)
    h.actor = other if h.r.owner == OWNER_ACTOR else None
    h.controller = other if h.r.owner == OWNER_CONTROLLER else None
    h.obstacle = other if h.r.owner == OWNER_OBSTACLE else None
    h.triangle = h.r.triangle if h.r.triangle >= 0 else None
    h.data = h.r.data if h.r.has_data else None
    return h


cdef list hits_of(Scene scene, const hit_log* log):
    cdef int32_t i
    return [hit_of(scene, &log.records[i]) for i in range(log.n)]


cdef State state_of(Scene scene, const controller_state* s):
    cdef State r = State.__new__(State)
    r.standing_on = r.standing_on_id = None
    if s.touched_actor >= 0:
        r.standing_on_id = s.touched_actor
    elif s.touched_obstacle >= 0:
        r.standing_on_id = s.touched_obstacle
    elif s.touched_controller >= 0:
        r.standing_on_id = s.touched_controller
    if r.standing_on_id is not None:
        r.standing_on = (scene.character(r.standing_on_id) if s.touched_actor < 0
                         and s.touched_obstacle < 0 else scene.actor(r.standing_on_id))
    r.on_controller = (s.marks & TOUCH_OTHER_CONTROLLER) != 0
    r.on_obstacle = (s.marks & TOUCH_OBSTACLE) != 0
    r.moving_up = (s.marks & IS_MOVING_UP) != 0
    r.sliding = (s.marks & HIT_NON_WALKABLE) != 0
    r.overlap = s.overlap
    r.contact_point_height = s.contact_height
    r.ground_triangle = None
    if s.ground.touching and s.ground.triangle >= 0:
        r.ground_triangle = s.ground.triangle
    r.velocity_ = s.velocity
    r.displacement_ = s.displacement
    r.platform_delta_ = s.platform_delta
    return r


cdef MoveStats stats_of(const move_stats* cost, const move_scratch* scratch, const compact_cache* cache):
    cdef MoveStats r = MoveStats.__new__(MoveStats)
    r.iterations = cost.iterations
    r.full_updates = cost.full_updates
    r.partial_updates = cost.partial_updates
    r.triangles_tested = cost.triangles_tested
    r.recoveries = cost.recoveries
    r.fixes_ = cost.fixes
    if scratch.cache.valid:
        r.cache_bounds = (from_vec3(scratch.cache.bounds.lo), from_vec3(scratch.cache.bounds.hi))
        r.timestamp = <int64_t>scratch.cache.timestamp
        r.static_triangles = scratch.cache.fixed_tris
        r.total_triangles = scratch.cache.near.n_tris
    elif cache.near.whole:
        r.cache_bounds = (from_vec3(cache.bounds.lo), from_vec3(cache.bounds.hi))
        r.timestamp = <int64_t>cache.timestamp
        r.static_triangles = r.total_triangles = cache.near.n_spots
    return r
