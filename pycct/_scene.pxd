# cython: language_level=3
"""The scene: actors under a lock, and the immutable pictures of them that moves read."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pycct._ask cimport View
from pycct._neighbours cimport Neighbours
from pycct._shapes cimport Shape
from pycct._vec cimport quat, vec3
from pycct._world cimport placed, world_part


# Shapes placed in the world, frozen; owns the memory and keeps the shapes alive.
cdef class Part:
    cdef world_part data
    cdef list owners        # Actor (or character) of each item


# What one move or question sees.
cdef class Snapshot:
    cdef Part fixed         # static actors
    cdef Part moving        # kinematic and dynamic actors


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
    cdef public object user_data
    cdef int fill(self, placed* p) except -1
    cdef Scene _home(self)
    cdef int _stay(self, Scene scene) except -1


# 'User' geometry: analytic, never too steep, not part of questions to the world.
cdef class Obstacle(Actor):
    pass


cdef class Scene:
    cdef object __weakref__
    cdef object lock            # held by whoever changes or publishes
    cdef dict actors_           # id -> Actor, in the order of adding
    cdef dict fixed_            # the static ones
    cdef dict moving_           # the others
    cdef int editing            # depth of nested edits
    cdef int64_t next_id
    cdef readonly Neighbours neighbours     # characters that others meet
    cdef dict characters_       # id -> weak reference to a CharacterController
    cdef object crowds_         # weak set of Crowds
    cdef int64_t next_character     # of controllers and crowds alike
    cdef bint fixed_dirty
    cdef bint moving_dirty
    cdef Snapshot current
    cdef readonly uint64_t timestamp    # counts changes of static actors
    cdef Snapshot snapshot(self)
    cdef View view(self, dict options)
    cdef int _keep(self, Actor actor) except -1
    cdef int _check_span(self, Actor actor) except -1
    cdef int touch(self, int body) except -1
