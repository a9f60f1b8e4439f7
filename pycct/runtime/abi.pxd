# cython: language_level=3
"""Version of the C-level API."""


cdef enum:
    # Raised whenever a struct, an enum or the meaning of a function in the documented headers
    # changes, so that a module compiled with the old headers would go wrong. New functions alone do
    # not raise it.
    ABI_VERSION = 3
