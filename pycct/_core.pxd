# cython: language_level=3
"""CharacterController around the move."""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t

from pycct.character.frame cimport move_frame
from pycct.character.move_types cimport (
    controller_params,
    controller_state,
    ground_contact,
    hit_log,
    compact_cache,
    move_scratch,
    move_world,
)
from pycct.spatial.character_grid cimport character
from pycct.scene.scene cimport Actor, Scene, Snapshot
from pycct.geometry.vec cimport vec3


cdef enum:
    REMOVED = 1     # the controller is no longer in its scene
    LISTENED = 2    # the scene has a journal


cdef class CharacterController:
    cdef object __weakref__
    cdef readonly Scene scene
    # The fields that a team uses with the GIL are adjacent in memory.
    cdef int busy
    cdef int barred                         # REMOVED, LISTENED: reasons why a move cannot start at once
    cdef move_frame* now                    # current frame; the three frames rotate
    cdef move_frame* before                 # start of the last move, for explain_last
    cdef move_frame* trial                  # a move that has not taken effect yet
    cdef hit_log* log                   # hits of the last committed move
    cdef hit_log* trial_log
    cdef object on_hit_
    cdef object behavior_
    cdef object filter_
    cdef object asked_filter            # filter of the last move, for explain_last
    cdef Actor proxy_
    cdef controller_params params
    cdef int32_t slot                   # in the scene's grid of characters, -1: does not collide
    cdef move_scratch scratch
    # Compact cache for large teams, whose threads own the scratch memory; unused with few
    # candidates.
    cdef compact_cache compact
    cdef bint has_little_near
    cdef move_frame[3] frames
    cdef hit_log[2] logs
    cdef readonly int64_t id            # unique among the actors, obstacles and characters of the scene
    cdef PyObject* neighbours           # those of the scene; a reference that the garbage collector does not clear
    cdef public object user_data
    cdef bint may_enter(self) noexcept
    cdef int enter(self) except -1
    cdef int enter_barred(self) except -1
    cdef int tell(self, str name, dict arguments) except -1
    cdef int become(self, const controller_params* p, const controller_state* st) except -1
    cdef int change(self, dict parameters) except -1
    cdef void leave(self) noexcept
    cdef void forget_near(self) noexcept
    cdef character as_character(self) noexcept
    cdef int publish(self) except -1
    cdef int publish_place(self) except -1
    cdef int lead(self) except -1
    cdef int take_id(self, int64_t id) except -1
    cdef int adopt(self, int64_t id) except -1
    cdef int look_down(self, double reach, ground_contact* found, bint tells) except -1
    cdef int ask(self, object filter, object behavior, bint tells) except -1
    cdef int surround(self, move_world* w, Snapshot snap, uint32_t mask, object filter) except -1
    cdef int warn(self) except -1
    cdef void turn(self, vec3 up) noexcept
    cdef int advance(self, Snapshot snap, vec3 d, double dt, double min_distance, uint32_t bits,
                     object filter) except -1
    cdef void commit(self, object filter) noexcept
    cdef object retrace(self, const controller_state* start, vec3 d, double dt, double min_distance, uint32_t mask,
                        object filter)
    cdef int _set(self, str name, object value) except -1


# Call the listeners of all scenes of these controllers, each with those of its scene as
# ``controllers``.
cdef int tell_together(str name, list heroes, dict arguments) except -1
