"""Extensions and compiler flags; pyproject.toml contains everything else.

Environment switches
    PYCCT_DEBUG=1     bounds, wraparound and None checks; on Linux the undefined-behaviour sanitizer
    PYCCT_CFLAGS      replaces the default C flags
    PYCCT_LDFLAGS     replaces the default linker flags
    PYCCT_COVERAGE=1  line tracing for coverage of .pyx files
    PYCCT_LINES=1     debuggers and sanitizers report lines of the .pyx instead of the .c

Each set of switches builds in its own folder below build/ and never reuses the objects of another
set. An editable or in-place build always writes to pycct/, so a change of switches needs
``--force`` for build_ext.
"""
import os
import subprocess
import sys
import zlib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("PYCCT_DEBUG") == "1"
COVERAGE = os.environ.get("PYCCT_COVERAGE") == "1"
LINES = DEBUG or os.environ.get("PYCCT_LINES") == "1"

# -ffp-contract=off keeps the bits equal on every processor. -fno-math-errno inlines sqrt.
# -g0 overrides the -g of Python's own flags, which makes a module five times as large.
LDFLAGS = []
# gcc only. The kernels consist of small functions, and gcc stops inlining them early.
INLINING = ["-finline-limit=2000"]
# Moves spend their time in these modules. TUNING inlines more there, disables passes that hoist and
# share values (no registers are left for them), and disables branch guesses, which are wrong for
# most moves. Together 4 to 11 % less time (docs/decisions/0005-gcc-tuning.md).
MOVES = {
    "pycct.character.move", "pycct.character.response", "pycct.crowd.crowd_step", "pycct.geometry.closest",
    "pycct.geometry.sweep", "pycct.spatial.bvh", "pycct.world.candidates",
}
TUNING = [
    "-finline-limit=8000", "--param=large-function-growth=1000", "--param=inline-unit-growth=400",
    "-fno-guess-branch-probability",
    "-fno-gcse", "-fno-tree-pre", "-fno-code-hoisting", "-fno-tree-loop-im", "-fno-tree-vrp",
    "-fno-tree-dominator-opts",
]
# Modules that convert arguments and build results: between two kernels, not inside of one. Their
# speed is that of Python's C API, so that small code is worth more than unrolled loops.
WRAPPERS = {
    "pycct._core", "pycct.args.values", "pycct.args.vector_rows", "pycct.queries.scene_queries",
    "pycct.scene.scene", "pycct.world.broadphase",
}
COLD = {
    "pycct.character.contacts", "pycct.character.parameters", "pycct.character.records",
    "pycct.character.state_io",
    "pycct.convex.outline", "pycct.crowd.crowd", "pycct.crowd.state_io",
    "pycct.cube_world.controller", "pycct.geometry.array_loops", "pycct.queries.shape_pairs",
    "pycct.runtime._cython_shared", "pycct.runtime.build_info", "pycct.runtime.lock",
    "pycct.scene.worlds", "pycct.sensors.sensors", "pycct.shapes.cooked_file",
    "pycct.shapes.heightfield", "pycct.shapes.primitives",
}
if sys.platform == "win32":
    CFLAGS = ["/O2", "/fp:precise"]
else:
    CFLAGS = ["-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
    CFLAGS += ["-Wno-unused-function", "-Wno-unreachable-code"]
    # -g1 adds lines to sanitizer reports. -g2 adds variables and doubles the compile time.
    CFLAGS += ["-O1", "-g1"] if DEBUG else ["-O3", "-g0"]
    if DEBUG and sys.platform == "linux":
        SANITIZE = ["-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
        CFLAGS += SANITIZE
        LDFLAGS += SANITIZE
if DEBUG or "PYCCT_CFLAGS" in os.environ:
    INLINING = TUNING = []
if "PYCCT_CFLAGS" in os.environ:
    CFLAGS = os.environ["PYCCT_CFLAGS"].split()
if "PYCCT_LDFLAGS" in os.environ:
    LDFLAGS = os.environ["PYCCT_LDFLAGS"].split()

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": DEBUG,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
    # The generated __setstate__ does not check its input, so classes define pickling themselves.
    "auto_pickle": False,
    "freethreading_compatible": True,
    "linetrace": COVERAGE,
}
MACROS = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else []
if DEBUG:
    MACROS.append(("PYCCT_CHECKS", "1"))


def cython_base() -> str:
    """Return the folder of generated C: ``build``, ``build/debug``. Flags do not change it."""
    parts = ["build"]
    if DEBUG:
        parts.append("debug")
    if COVERAGE:
        parts.append("coverage")
    if LINES and not DEBUG:
        parts.append("lines")
    return "/".join(parts)


def build_base() -> str:
    """Return the build folder of these switches, such as ``build/debug``."""
    own_flags = os.environ.get("PYCCT_CFLAGS", ""), os.environ.get("PYCCT_LDFLAGS", "")
    if any(own_flags):
        return f"{cython_base()}/flags-{zlib.crc32(repr(own_flags).encode()):08x}"
    return cython_base()


def is_gcc(command: list[str]) -> bool:
    """Return whether a compiler is gcc; other compilers define __GNUC__ too."""
    try:
        macros = subprocess.run([*command, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True).stdout
    except OSError:
        return False
    names = {line.split()[1] for line in macros.splitlines() if line.startswith("#define ")}
    return "__GNUC__" in names and not names & {"__clang__", "__INTEL_COMPILER", "__NVCOMPILER"}


def flags_of(name: str) -> list[str]:
    """What gcc gets for one module beside the common flags."""
    if not INLINING:
        return []
    if name in MOVES:
        return TUNING
    if name in WRAPPERS:
        return ["-O2"]
    return ["-Os"] if name in COLD else INLINING


class BuildExt(build_ext):
    """Build extensions with tuned gcc flags and without run paths.

    Some Pythons (pyenv's) add a run path to every module. An extension does not link against
    libpython, so the path would only put the builder's folder into the wheel.
    """

    def build_extensions(self):  # noqa: D102
        if hasattr(self.compiler, "linker_so"):
            self.compiler.linker_so = [a for a in self.compiler.linker_so if not a.startswith("-Wl,-rpath")]
        if is_gcc(getattr(self.compiler, "compiler_so", None) or []):
            for extension in self.extensions:
                extension.extra_compile_args = extension.extra_compile_args + flags_of(extension.name)
        super().build_extensions()


JOBS = min(4, os.cpu_count() or 1)
# Cython's processes must start by fork; a spawned process would run this file again.
TRANSLATORS = JOBS if sys.platform == "linux" and sys.version_info < (3, 14) else 0

# Cython's helpers, once for all modules instead of a copy in each.
SHARED_UTILITY = "pycct.runtime._cython_shared"

extensions = [
    Extension(
        ".".join(path.with_suffix("").parts),
        [str(path)],
        # Headers of C are found from the root; each is of the module beside it.
        include_dirs=["."] if list(path.parent.glob("*.h")) else [],
        depends=sorted(map(str, path.parent.glob("*.h"))),
        extra_compile_args=CFLAGS,
        extra_link_args=LDFLAGS,
        define_macros=MACROS,
    )
    for path in sorted(Path("pycct").rglob("*.pyx"))
] + [
    Extension(
        SHARED_UTILITY,
        ["pycct/runtime/_cython_shared.c"],
        extra_compile_args=CFLAGS,
        extra_link_args=LDFLAGS,
        define_macros=MACROS,
    )
]
# A renamed module would silently lose its flags, and 4 to 11 % of its speed.
unknown = (MOVES | WRAPPERS | COLD) - {extension.name for extension in extensions}
if unknown:
    raise SystemExit(f"setup.py names modules that do not exist: {sorted(unknown)}")

# Metadata and the sdist need no C, and Cython takes a minute.
if {"build", "build_ext", "bdist_wheel", "editable_wheel", "develop", "install"} & set(sys.argv):
    extensions = cythonize(
        extensions,
        compiler_directives=DIRECTIVES,
        # The coverage plugin needs each .c beside its .pyx.
        build_dir=None if COVERAGE else cython_base() + "/cython",
        emit_linenums=LINES,
        shared_utility_qualified_name=SHARED_UTILITY,
        nthreads=TRANSLATORS,
    )

setup(
    ext_modules=extensions,
    cmdclass={"build_ext": BuildExt},
    options={"build": {"build_base": build_base()}, "build_ext": {"parallel": JOBS}},
)
