"""Whether ``import pycct`` serves the compiled modules or the reference in plain Python."""

import os
import warnings


def why_pure() -> str:
    """Say why the reference has to serve; empty when the compiled modules do."""
    if os.environ.get("PYCCT_PURE", "0") not in ("", "0"):
        return "PYCCT_PURE is set"
    try:
        import pycct._core  # noqa: F401
    except ImportError as e:
        return f"the compiled modules cannot be imported: {e}"
    return ""


REASON = why_pure()
PURE = bool(REASON)

if PURE:
    warnings.warn(f"pycct runs in plain Python, hundreds of times slower ({REASON})", RuntimeWarning, stacklevel=3)
