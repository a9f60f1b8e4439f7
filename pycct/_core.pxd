# cython: language_level=3
"""The CharacterController around the move."""
from libc.stdint cimport int32_t, int64_t

from pycct._move cimport controller_params, controller_state, hit_log, move_scratch, move_stats
from pycct._neighbours cimport character
from pycct._scene cimport Actor, Scene


cdef class CharacterController:
    cdef object __weakref__
    cdef readonly Scene scene
    cdef controller_params params
    cdef controller_state st
    cdef move_scratch scratch
    cdef move_stats last
    cdef hit_log log            # of the last move that took effect
    cdef public object user_data
    cdef object on_hit_
    cdef object behavior_
    cdef object filter_
    cdef Actor proxy_
    cdef readonly int64_t id    # among the controllers of the scene
    cdef int32_t slot           # in the scene's neighbours, -1: others do not meet it
    cdef int busy
    cdef bint removed
    cdef int enter(self) except -1
    cdef void leave(self) noexcept
    cdef character as_character(self) noexcept
    cdef int publish(self) except -1
    cdef int ask(self, object filter) except -1
    cdef double _foot(self) noexcept
    cdef int _set(self, controller_params p) except -1
