"""Another package compiles against the headers of the installed pycct."""

import hashlib
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import pycct

INSTALLED = Path(pycct.__file__).parent
HERE = Path(__file__).parent / "consumer"
DOCUMENTED = ("__init__", "geometry/vec", "geometry/types", "geometry/closest", "geometry/sweep")

SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
setup(
    name="consumer", script_args=["build_ext", "--inplace"],
    ext_modules=cythonize([Extension("consumer", ["consumer.pyx"])]),
)
"""


def has_headers():
    return (Path(sysconfig.get_path("include")) / "Python.h").exists()


def build(folder):
    """Compile the consumer with Cython, setuptools and the installed pycct only."""
    for missing in ("Cython", "setuptools"):
        pytest.importorskip(missing, reason=f"{missing} is needed to compile a consumer")
    compiler = "cl" if sys.platform == "win32" else (sysconfig.get_config_var("CC") or "cc").split()[0]
    if os.environ.get("CC") is None and shutil.which(compiler) is None:
        pytest.skip(f"no C compiler: {compiler} is not here")
    if not has_headers():
        pytest.skip("Python.h is not here")
    shutil.copy(HERE / "consumer.pyx", folder)
    (folder / "setup.py").write_text(SETUP)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYCCT_")} | {"PYTHONPATH": str(INSTALLED.parent)}
    done = subprocess.run([sys.executable, "setup.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("consumer*" + sysconfig.get_config_var("EXT_SUFFIX"))
    return found


@pytest.fixture(scope="module")
def consumer(tmp_path_factory):
    path = build(tmp_path_factory.mktemp("consumer"))
    spec = importlib.util.spec_from_file_location("consumer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_headers_are_installed():
    names = {p.relative_to(INSTALLED).with_suffix("").as_posix() for p in INSTALLED.rglob("*.pxd")}
    assert names >= set(DOCUMENTED)
    # Each compiled module that others cimport from comes with its header.
    modules = {(p.parent.relative_to(INSTALLED) / p.name.split(".")[0]).as_posix()
               for p in INSTALLED.rglob("*") if p.suffix in (".so", ".pyd")}
    assert {"geometry/closest", "geometry/sweep", "geometry/overlap", "world/candidates"} <= names & modules


def test_inline_functions(consumer):
    v = np.array([3.0, 0.0, 4.0])
    consumer.turn(v)
    assert v.tolist() == [3.0 / 5.0, 0.0, 4.0 / 5.0]


def test_exported_functions(consumer):
    axes = np.array([[0, 0, 0, 0, 0, 1], [3, 4, 0, 3, 4, 1], [2, 0, 9, 2, 0, 10]], dtype=float)
    out = np.empty(3)
    consumer.axis_distances(axes, out)
    assert out.tolist() == [0.0, 5.0, math.sqrt(68.0)]
    point = np.empty(3)
    assert consumer.nearest_on_triangle(np.array([-1, -1, 0, 1, -1, 0, 0, 5, 0], dtype=float), point) == 1.0
    assert point.tolist() == [0.0, 0.0, 0.0]


def test_casts_equal_those_of_the_package(consumer):
    low, high = [-1, -1, 0, 1, -1, 0, 0, 5, 0], [-1, -1, 0.25, 1, -1, 0.25, 0, 5, 0.25]
    tris = np.array([low, high], dtype=float)
    assert consumer.drop(tris, 2.0, 0.5, 10.0) == 1.25
    scene = pycct.Scene()
    for corners in tris:
        scene.add(pycct.Triangle(*corners.reshape(3, 3)))
    hit = scene.sweep(pycct.Capsule(0.5, 1.0), (0, 0, 2.5), (0, 0, -1), 10)
    assert consumer.drop(tris, 2.0, 0.5, 10.0) == hit.distance
    assert consumer.drop(tris, 2.0, 0.5, 1.0) is None


def test_exported_constants(consumer):
    assert consumer.touch_point(10.0) == 2.5
    assert consumer.touch_point(1.0) is None


def test_abi_version(consumer):
    from pycct.runtime import build_info as _build

    declared = re.search(r"ABI_VERSION = (\d+)", (INSTALLED / "runtime" / "abi.pxd").read_text())
    assert consumer.compiled_with == _build.ABI_VERSION == int(declared[1])
    assert pycct.show_config(file=None)["abi_version"] == _build.ABI_VERSION


def test_another_abi_is_refused(consumer):
    """At import, before any kernel is called, and in words."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pycct.runtime import build_info as _build\n"
        "_build.ABI_VERSION += int(sys.argv[2])\n"
        "import consumer\n"
    )
    env = os.environ | {"PYTHONPATH": str(INSTALLED.parent)}
    run = [sys.executable, "-c", script, str(Path(consumer.__file__).parent)]
    done = subprocess.run([*run, "0"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*run, "1"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    told = done.stderr.strip().splitlines()[-1]
    n = consumer.compiled_with
    assert told.startswith("ImportError: compiled with pycct headers")
    assert f"ABI version {n}," in told and f"ABI version {n + 1}:" in told and "build the module again" in told


def test_plain_python_is_refused(consumer):
    """Where the compiled modules are missing there is no C-level API."""
    script = ("import sys; sys.path.insert(0, sys.argv[1]); sys.modules['pycct.runtime.build_info'] = None; "
              "import consumer")
    env = os.environ | {"PYTHONPATH": str(INSTALLED.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(consumer.__file__).parent)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 1 and "ImportError: the C-level API of pycct needs its compiled modules" in done.stderr


# What docs/c_api.md promises, by header.
PROMISED = {
    "geometry/vec": ["vec3", "quat", "mat3", "aabb"],
    "geometry/types": ["triangle", "sweep_hit", "hull_data", "shape_kind", "body_kind", "status"],
    "geometry/closest": [
        *("closest_pair", "point_segment", "segment_segment", "point_triangle", "segment_triangle", "segment_box"),
        *("point_box", "triangle_normal", "point_segment_parameter"),
    ],
    "geometry/sweep": [
        *("NO_HIT", "sphere_point", "sphere_segment", "capsule_triangle_time", "capsule_segment_time", "capsule_box"),
    ],
}
# A hash of those declarations, by ABI version: a struct cannot change its layout under a consumer
# unnoticed.
DECLARED = {2: "9064074410a06c1f", 3: "6ad29e04ed5fbf08"}


def declaration(header, name):
    """The declaration of a struct, enum, function or variable, without comments and spacing."""
    text = re.sub(r" *#.*", "", (INSTALLED / f"{header}.pxd").read_text())
    found = re.search(rf"^cdef (?:struct|enum) {name}:\n(?:(?: +.*)?\n)*", text, re.M)
    found = found or re.search(rf"^cdef [\w ]+\b{name}(?:\([^)]*\)[\w ]*)?:?$", text, re.M)
    assert found, f"{header}.pxd has no {name}"
    # Inline or not is the same to a consumer.
    return " ".join(found[0].replace("cdef inline ", "cdef ").removesuffix(":").split())


def test_what_is_promised_stays():
    """An intended change raises ABI_VERSION in pycct/runtime/abi.pxd; added functions do not."""
    from pycct.runtime import build_info as _build

    told = "\n".join(declaration(header, name) for header, names in PROMISED.items() for name in names)
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == DECLARED[_build.ABI_VERSION], told
