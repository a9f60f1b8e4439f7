# cython: language_level=3
"""Python class of the sweep/slide controller."""
from pycct.cube_world.cubes cimport CubeWorld
from pycct.cube_world.slide_step cimport slide_runner
from pycct.geometry.vec cimport vec3


cdef class SweepSlideController:
    cdef slide_runner data
    cdef readonly CubeWorld world
    cdef public object user_data
    cdef bint _busy                 # a thread is in a call that changes the data
    cdef bint _warned               # the log has warned about used-up bumps
    cdef object __weakref__

    cdef int _enter(self) except -1
    cdef void _leave(self) noexcept
    cdef int _check(self) except -1
    cdef int _place(self, vec3 feet, bint spawning) except -1
    cdef void _emit_ground(self)
    cdef void _emit_depen(self)
    cdef void _emit(self)
    cdef list _touching(self, double extra, void* near)
