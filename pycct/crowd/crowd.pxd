# cython: language_level=3
"""The Crowd around its step."""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from pycct.crowd.crowd_step cimport crowd_data, crowd_question, crowd_step, crowd_thread
from pycct.crowd.state_io cimport crowd_settings
from pycct.character.move_types cimport controller_params
from pycct.args.vector_rows cimport vector_rows
from pycct.scene.scene cimport Scene
from pycct.scene.worlds cimport Worlds


cdef class Crowd:
    cdef object __weakref__
    cdef readonly Scene scene           # None if its members belong to several scenes
    cdef readonly Worlds worlds         # None if its members belong to one scene
    cdef tuple scenes_
    cdef crowd_data c
    cdef crowd_data back_buffer               # memory for the next restore, without members
    cdef crowd_settings settings
    cdef bint repeats           # rows of the table may be equal
    cdef dict known             # bytes of parameters -> row of the table
    cdef int32_t n_rows
    cdef int32_t capacity_rows
    cdef crowd_thread* threads
    cdef int n_threads
    cdef PyObject** neighbours  # grid of each scene; references that the garbage collector does not clear
    cdef object ids_            # (n,) int64
    cdef object positions_      # (n, 3)
    cdef double* places_at      # memory of positions_
    cdef object flags_          # (n,) uint8
    cdef object costs_          # (n,) STATS, or None
    cdef bint unrecorded        # the last move did not record its hits
    cdef bint uncounted         # the last move did not record its costs
    cdef list user_data_        # objects of the program, one a member
    cdef dict shown             # name -> array that moves keep up to date, once it has been requested
    cdef bint has_places        # shown["_places"], for queries of any thread, has been filled in
    cdef dict views             # name -> read-only view of the same array
    cdef object journal_        # receives changes before they take effect, or None
    # 1: in use; 2: also changing the data that queries of other threads read; 3: its listener runs
    # and may read; 4: it reads.
    cdef int busy
    cdef unsigned long owner    # thread that uses the crowd
    cdef int readers            # number of queries that read now
    cdef int enter(self, bint reads=*) except -1
    cdef int tell(self, str name, dict arguments) except -1
    cdef int alone(self) except -1
    cdef void leave(self) noexcept
    cdef int32_t row_of(self, controller_params* p) except -1
    cdef int tidy(self) except -1
    cdef list rows_for(self, dict parameters, Py_ssize_t n)
    cdef int grow(self, int64_t capacity) except -1
    cdef int fresh_arrays(self) except -1
    cdef list own_data(self)
    cdef list data_of(self, object before)
    cdef object blank(self, str name)
    cdef int refresh(self) except -1
    cdef int refill(self) except -1
    cdef int fill(self, str name, object array) except -1
    cdef object view(self, str name)
    cdef object view_of(self, str name)
    cdef object column_of(self, object name)
    cdef int publish(self) except -1
    cdef object up_rows(self, object up, Py_ssize_t n, vector_rows* rows)
    cdef int turn(self, const vector_rows* tops, const uint8_t[:] moves) except -1
    cdef int ready(self, object threads, int64_t work) except -1
    cdef int settle_in(self) except -1
    cdef int move_out(self) except -1
    cdef object look(self)
    cdef int64_t issue_ids(self, int64_t n) except -1
    cdef list homes_for(self, object world, Py_ssize_t n)
    cdef int surround(self, crowd_step* s, double dt, double min_distance) except -1
    cdef int go(self, crowd_step* s, int threads, bint far, object heard=*) except -1
    cdef int go_on(self, crowd_step* s, int threads, object heard, PyObject** stopped) except -1
    cdef int blame(self) except -1
    cdef int ask(self, crowd_question* q, int threads, bint resizes) except -1
    cdef int64_t find(self, int64_t id) noexcept
    cdef object indices(self, object value)
    cdef object places(self, object positions, Py_ssize_t n, vector_rows* rows)
    cdef int changed(self, int64_t[::1] which) except -1
    cdef bint far(self, const vector_rows* rows, int64_t n) noexcept
    cdef bint check_displacements(self, vector_rows rows, Py_ssize_t step, object array) except -1
    cdef tuple look_down(self, object max_distance, object threads, bint snaps)
    cdef int load(self, object data, bint renames) except -1
    cdef bytes pack(self, const int64_t[::1] which, bint moving)
    cdef int take_rows(self, crowd_data* fresh) except -1
    cdef int take_out(self, object indices) except -1
    cdef int reserve_ids(self, object ids) except -1
    cdef int64_t taken(self, object ids, Scene scene) except -2
    cdef object rows_of(self, const int64_t[::1] numbers)
    cdef object ids_in(self, Scene scene)
