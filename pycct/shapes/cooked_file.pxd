# cython: language_level=3
"""Cooked files: the shapes and actors of a scene, to be opened by memory mapping."""
from libc.stdint cimport int64_t


# Records (as `_scene` makes and takes them) to a file, by way of another one that is renamed; user_data: by id.
cdef int write_cooked(object path, list records, int64_t next_id, dict user_data) except -1
# (records, next_id, user_data) from a file. Meshes and heightfields stay in it. Raises OSError, or ValueError that
# names the path.
cdef tuple read_cooked(str path, bint verify)
cdef str path_of(object path)
