"""Choice between the compiled modules and the plain Python reference for ``import pycct``."""

import os
import warnings
from pathlib import Path


def why_pure() -> str:
    """Return the reason to use the reference; empty if the compiled modules are used."""
    if os.environ.get("PYCCT_PURE", "0") not in ("", "0"):
        return "PYCCT_PURE is set"
    try:
        import pycct._core  # noqa: F401
    except ImportError as e:
        here = Path(__file__).parent
        if (here / "_core.pyx").exists() and not [*here.glob("_core.*.so"), *here.glob("_core.*.pyd")]:
            return (
                "this is the source folder, which is not compiled: start Python in another folder to "
                "use the installed pycct"
            )
        return f"the compiled modules cannot be imported: {e}"
    return ""


REASON = why_pure()
PURE = bool(REASON)

if PURE:
    warnings.warn(f"pycct runs in plain Python, hundreds of times slower ({REASON})", RuntimeWarning, stacklevel=3)
