# cython: language_level=3
"""The scene: actors under a lock, and the immutable snapshots of them that moves read."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pycct.queries.scene_queries cimport View
from pycct.runtime.lock cimport Lock
from pycct.spatial.character_grid cimport Neighbours
from pycct.world.broadphase cimport BroadphaseLayer
from pycct.shapes.primitives cimport Shape
from pycct.geometry.vec cimport quat, vec3
from pycct.world.candidates cimport collider


# Writes a character as its capsule, for queries.
cdef void fill_capsule(collider* p, int64_t id, uint32_t layer, double radius, vec3 p0, vec3 p1) noexcept nogil


# Data that one move or query reads.
cdef class Snapshot:
    cdef BroadphaseLayer fixed         # static actors
    cdef BroadphaseLayer moving        # kinematic and dynamic actors


# The actors of one layer, and the changes since its last publication. The scene's lock protects it.
cdef class Stage:
    cdef dict members       # id -> Actor, in the order of adding
    cdef dict changed       # members whose pose or properties have changed
    cdef dict joined        # new members
    cdef dict left          # removed members
    cdef bint dirty         # true if there are changes
    cdef bint unordered     # the members are not in the order of their ids
    cdef int64_t largest_id  # of all members so far
    cdef bint rebuild_all         # publish everything, because the changes are not known
    cdef BroadphaseLayer current
    cdef BroadphaseLayer back_buffer         # the previous layer, and the changes from it to the current one
    cdef dict back_buffer_delta
    cdef int join(self, Actor actor) except -1
    cdef int leave(self, Actor actor) except -1
    cdef int change(self, Actor actor) except -1
    cdef int publish(self) except -1
    cdef BroadphaseLayer _next(self, BroadphaseLayer base, dict changed, dict joined, dict left)
    cdef BroadphaseLayer _whole(self)


cdef class Actor:
    cdef object __weakref__
    cdef Scene scene_           # None once removed
    cdef readonly Shape shape
    cdef readonly int64_t id
    cdef int body_
    cdef uint32_t layer_
    cdef uint32_t behavior_
    cdef vec3 position_
    cdef quat rotation_
    cdef vec3 scale_
    cdef bint trigger_          # it blocks nobody
    cdef int32_t place          # index in the current layer of its stage
    cdef public object user_data
    cdef int fill(self, collider* p) except -1
    cdef Scene _home(self)
    cdef int _stay(self, Scene scene) except -1


# 'User' geometry: analytic, always walkable, invisible to queries.
cdef class Obstacle(Actor):
    pass


cdef class Scene:
    cdef object __weakref__
    cdef Lock lock              # held during changes and publications
    cdef dict actors_           # id -> Actor, in the order of adding
    cdef Stage fixed            # static actors
    cdef Stage moving           # kinematic and dynamic actors
    cdef Stage volumes          # triggers
    cdef set inside             # (trigger, character) ids at the last call of triggers
    cdef int editing            # depth of nested edits
    cdef int64_t next_id        # one counter for actors, obstacles and characters
    cdef bint unordered         # the actors are not in the order of their ids
    cdef readonly Neighbours neighbours     # grid of colliding characters
    cdef dict characters_       # id -> weak reference to a CharacterController
    cdef object crowds_         # weak set of Crowds
    cdef object journal_        # receives changes before they take effect, or None
    cdef int quiet              # depth of changes that are part of another one
    cdef Snapshot current
    cdef uint64_t changes       # number of changes
    cdef uint64_t published     # changes that the current snapshot contains at least
    cdef readonly uint64_t timestamp    # number of changes of static actors
    cdef int count_edits(self, int change) except -1
    cdef Snapshot snapshot(self)
    cdef bytes moving_bytes(self)
    cdef list moving_found(self, object rows)
    cdef int moving_put(self, list found) except -1
    cdef int tell(self, object target, str name, dict arguments) except -1
    cdef View view(self, dict options)
    cdef int64_t issue(self, int64_t n) except -1
    cdef bint has_id(self, int64_t id) except -1
    cdef int64_t free_id(self, object value) except -1
    cdef dict in_order(self)
    cdef int _keep(self, Actor actor) except -1
    cdef int _check_span(self, Actor actor) except -1
    cdef Stage stage(self, Actor actor)
    cdef int note(self, Actor actor) except -1
    cdef int touch(self, Actor actor) except -1
