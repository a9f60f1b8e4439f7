"""What a process takes of memory, for tests that nothing of it is lost."""

import os
from pathlib import Path

import pytest

import pycct

# A sanitizer holds freed memory back, to catch who uses it yet.
needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm") or "sanitizer" in pycct.show_config(file=None)["build"],
    reason="needs /proc, and memory that comes back at once",
)


def resident():
    """Bytes of memory that this process really has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
