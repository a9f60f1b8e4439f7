# cython: language_level=3
"""The members of a crowd as bytes, and back; joining two sets of members."""
from libc.stdint cimport int32_t, int64_t, uint8_t

from pycct.character.move_types cimport controller_params, controller_state
from pycct.crowd.crowd_step cimport crowd_data


# What a saved crowd contains beside its members.
cdef struct crowd_settings:
    bint sequential
    int32_t group               # of members that are added later
    controller_params params    # of members that are added later

# Parameters as bytes: equal parameters have equal bytes.
cdef bytes params_key(controller_params* p)
# The sealed bytes of the members ``which``, in this order. ``n_rows``: rows of the table;
# ``repeats``: some of them may be equal; ``moving``: a table of moving actors for each world, or
# None.
cdef bytes crowd_bytes(const crowd_data* c, crowd_settings* settings, const int64_t[::1] which,
                       const uint8_t[::1] flags, int32_t n_rows, bint repeats, list moving)
# Read `crowd_bytes` into ``fresh``, whose table gets the rows of the data, and return (flags, ids,
# rows of moving actors or None). ValueError for damaged data; ``fresh`` may then be half filled,
# and the caller frees it.
cdef tuple crowd_from_bytes(object data, crowd_data* fresh, crowd_settings* settings, int32_t n_worlds)
# World of each member, (n,) int32.
cdef object crowd_homes(const crowd_data* c)
# Add the members of ``fresh`` in the order of ids. ``c`` has the capacity, and no id occurs twice.
cdef void crowd_merge(crowd_data* c, const crowd_data* fresh) noexcept
# Keep the memory of a small crowd in ``spare``; free that of a large one. ``old`` is empty then.
cdef void crowd_recycle(crowd_data* old, crowd_data* back_buffer) noexcept
# Smallest number that two ascending arrays have in common, -1: none.
cdef int64_t first_shared(const int64_t[::1] one, const int64_t[::1] two) except? -1
# Replace references to the members ``ids`` (ascending) by the new ids first, first + 1, ...
cdef int rename_platform(controller_state* s, object ids, int64_t first) except -1
