"""Memory of a process, for tests of leaks."""

import os
from pathlib import Path

import pytest

import pycct

# A sanitizer keeps freed memory, to detect later uses.
needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm") or "sanitizer" in pycct.show_config(file=None)["build"],
    reason="needs /proc, and memory that comes back at once",
)


def resident():
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
