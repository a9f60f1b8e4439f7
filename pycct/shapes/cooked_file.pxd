# cython: language_level=3
"""Cooked files: the shapes and actors of a scene, for memory mapping."""
from libc.stdint cimport int64_t


# Writes the records of a scene to a temporary file and renames it to path. user_data: by id.
cdef int write_cooked(object path, list records, int64_t next_id, dict user_data) except -1
# Returns (records, next_id, user_data) of a file. Meshes and heightfields stay in the file. Raises
# OSError, or ValueError with the path.
cdef tuple read_cooked(str path, bint verify)
cdef str path_of(object path)
