"""Extensions and compiler flags; everything else stands in pyproject.toml.

Environment switches
    PYCCT_DEBUG=1     bounds, wraparound and None checks on, for tests
    PYCCT_CFLAGS      replaces the default C flags
    PYCCT_LDFLAGS     linker flags
    PYCCT_COVERAGE=1  line tracing for coverage of .pyx files
"""
import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("PYCCT_DEBUG") == "1"
COVERAGE = os.environ.get("PYCCT_COVERAGE") == "1"

# -ffp-contract=off: the same bits on every processor. -fno-math-errno: sqrt inline.
if sys.platform == "win32":
    CFLAGS = ["/O2", "/fp:precise"]
else:
    CFLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
    CFLAGS += ["-Wno-unused-function", "-Wno-unreachable-code"]
if "PYCCT_CFLAGS" in os.environ:
    CFLAGS = os.environ["PYCCT_CFLAGS"].split()
LDFLAGS = os.environ.get("PYCCT_LDFLAGS", "").split()

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": DEBUG,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
    "linetrace": COVERAGE,
}
MACROS = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else []

extensions = [
    Extension(
        "pycct." + path.stem,
        [str(path)],
        extra_compile_args=CFLAGS,
        extra_link_args=LDFLAGS,
        define_macros=MACROS,
    )
    for path in sorted(Path("pycct").glob("*.pyx"))
]

setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives=DIRECTIVES,
        build_dir=None if COVERAGE else "build/cython",
        emit_linenums=DEBUG,
        nthreads=0,
    )
)
