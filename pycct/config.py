"""What this pycct is and what it runs on: the first thing to look at, and to send along with a question."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any, TextIO

from pycct._pure import PURE, REASON
from pycct.runtime.version import RESULTS_VERSION, __version__

__all__ = ["show_config"]

_STDOUT: Any = object()


def _gil() -> str:
    """'on', 'off', or 'on (free-threaded build)' when something has switched it on."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "off"
    return "on (free-threaded build)" if "free-threading" in sys.version else "on"


def _threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def show_config(file: TextIO | None = _STDOUT) -> dict[str, Any]:
    """Print what this pycct is and what it runs on.

    Parameters
    ----------
    file : text file, optional
        Where to print; the default is standard output, None prints nothing.

    Returns
    -------
    dict
        - ``version``, ``results_version`` (raised whenever the same input may give other bits);
        - ``build``: 'compiled', 'compiled with checks' or 'plain Python', and ``why_plain`` (empty when compiled);
        - ``instruction_set`` and ``compiler`` of the compiled modules, ``abi_version`` of their C-level API; None in
          plain Python;
        - ``threads``: processors that this process may use; ``gil``: 'on' or 'off';
        - ``python``, ``numpy``, ``platform``.
    """
    import numpy

    if file is _STDOUT:
        file = sys.stdout
    if file is not None and not hasattr(file, "write"):
        raise TypeError(f"file must be a text file or None, not {type(file).__name__}")
    found: dict[str, Any] = {"version": __version__, "results_version": RESULTS_VERSION}
    if PURE:
        found |= {"build": "plain Python", "why_plain": REASON}
        found |= dict.fromkeys(("instruction_set", "compiler", "abi_version"))
    else:
        from pycct.runtime import build_info as _build

        extras = [text for text, so in (("checks", _build.CHECKS_BOUNDS), ("a sanitizer", _build.SANITIZED)) if so]
        found |= {
            "build": "compiled" + (f" with {' and '.join(extras)}" if extras else ""),
            "why_plain": "",
            "instruction_set": _build.INSTRUCTION_SET,
            "compiler": _build.COMPILER,
            "abi_version": _build.ABI_VERSION,
        }
    found |= {
        "threads": _threads(),
        "gil": _gil(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": numpy.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }
    if file is not None:
        width = max(map(len, found))
        told = "".join(f"{name:{width}}  {value}\n" for name, value in found.items() if value not in ("", None))
        file.write(told)
    return found
