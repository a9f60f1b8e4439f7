# cython: language_level=3
"""The C-level API: what a Cython module that cimports from an installed pycct asks first. See docs/c_api.md."""


cdef enum:
    # Raised whenever a struct, an enum or the meaning of a function in the documented headers changes, so that a module
    # compiled with the old headers would go wrong. New functions alone do not raise it.
    ABI_VERSION = 1


cdef inline int check_abi() except -1:
    """Raise ImportError unless the pycct imported now was built with the headers that the caller was compiled with."""
    try:
        from pycct._build import ABI_VERSION as found
    except ImportError as e:
        raise ImportError(f"the C-level API of pycct needs its compiled modules: {e}") from e
    if found != ABI_VERSION:
        raise ImportError(f"compiled with pycct headers of ABI version {ABI_VERSION}, but the installed pycct has "
                          f"ABI version {found}: build the module again with the installed pycct")
    return 0
