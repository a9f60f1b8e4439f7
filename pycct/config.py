"""Configuration of this pycct and its system, for reports."""

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
    """Return 'on', 'off', or 'on (free-threaded build)' if a module has enabled it."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "off"
    return "on (free-threaded build)" if "free-threading" in sys.version else "on"


def _threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def show_config(file: TextIO | None = _STDOUT) -> dict[str, Any]:
    """Print and return the configuration of this pycct and its system.

    Parameters
    ----------
    file : text file, optional
        File to print to; the default is standard output. None prints nothing.

    Returns
    -------
    dict
        - ``version``, and ``results_version``, which goes up with each change of results;
        - ``build``: 'compiled', 'compiled with checks' or 'plain Python';
        - ``why_plain``: the reason for plain Python, empty if compiled;
        - ``instruction_set`` and ``compiler`` of the compiled modules, and ``abi_version`` of their
          C-level API; None in plain Python;
        - ``threads``: number of processors that this process may use;
        - ``gil``: 'on' or 'off';
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

        options = (("checks", _build.CHECKS_BOUNDS), ("a sanitizer", _build.SANITIZED))
        extras = [text for text, enabled in options if enabled]
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
        lines = (f"{k:{width}}  {v}\n" for k, v in found.items() if v not in ("", None))
        file.write("".join(lines))
    return found
