# cython: language_level=3
"""Version check of the C-level API, for Cython modules that cimport pycct. See docs/c_api.md."""
from pycct.runtime.abi cimport ABI_VERSION


cdef inline int check_abi() except -1:
    """Raise ImportError if the caller was compiled with other headers than the imported pycct."""
    try:
        from pycct.runtime.build_info import ABI_VERSION as found
    except ImportError as e:
        raise ImportError(f"the C-level API of pycct needs its compiled modules: {e}") from e
    if found != ABI_VERSION:
        raise ImportError(f"compiled with pycct headers of ABI version {ABI_VERSION}, but the installed pycct has "
                          f"ABI version {found}: build the module again with the installed pycct")
    return 0
