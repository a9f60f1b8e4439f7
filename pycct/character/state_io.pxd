# cython: language_level=3
"""Bytes and hashes of parameters and states, for saves of characters, teams and crowds."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pycct.character.move_types cimport controller_params, controller_state


# Bytes of a struct, field by field in one order, little-endian; both ways.
cdef struct cursor:
    uint8_t* at
    bint loads              # from the bytes into the struct

cdef void field_double(cursor* c, double* x) noexcept nogil
cdef void field_int32(cursor* c, int32_t* x) noexcept nogil
cdef void field_int64(cursor* c, int64_t* x) noexcept nogil

# In the order of saves.PARAMS and saves.STATE.
cdef void parameters_bytes(cursor* c, controller_params* p) noexcept nogil
cdef void state_bytes(cursor* c, controller_state* s) noexcept nogil

# Mix a word into a hash: one-to-one in each argument, so that a change of one word always shows
# (the finaliser of splitmix64).
cdef uint64_t mix64(uint64_t h, uint64_t x) noexcept nogil
# Hash of the saved bytes of parameters.
cdef uint64_t parameters_hash(const controller_params* p, uint64_t version) noexcept nogil
# Hash of a character: of its id, its group, its world, its parameters (by their hash) and the saved
# bytes of its state.
cdef uint64_t character_hash(uint64_t parameters, int64_t id, int32_t group, int32_t home,
                             const controller_state* s) noexcept nogil
# Whether a character can have a state from bytes.
cdef bint state_makes_sense(const controller_state* s) noexcept nogil

# The sealed bytes of one character, and back; ValueError if they are damaged.
cdef bytes controller_bytes(controller_params* p, controller_state* st)
cdef int controller_from_bytes(controller_params* p, controller_state* st, object data) except -1
