# cython: language_level=3
"""The C-level API: what a Cython module that cimports from an installed pycct asks first. See docs/c_api.md."""
from pycct.runtime.abi cimport ABI_VERSION


cdef inline int check_abi() except -1:
    """Raise ImportError unless the pycct imported now was built with the headers that the caller was compiled with."""
    try:
        from pycct.runtime.build_info import ABI_VERSION as found
    except ImportError as e:
        raise ImportError(f"the C-level API of pycct needs its compiled modules: {e}") from e
    if found != ABI_VERSION:
        raise ImportError(f"compiled with pycct headers of ABI version {ABI_VERSION}, but the installed pycct has "
                          f"ABI version {found}: build the module again with the installed pycct")
    return 0
