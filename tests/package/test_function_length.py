"""No function is longer than 80 lines outside of the modules that setup.py tunes."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "setup.py").exists() or not (ROOT / "pycct" / "_core.pyx").exists():
    pytest.skip("sources are not part of an installed package", allow_module_level=True)

LONGEST = 80
FOLDERS = ("pycct", "tests", "bench", "tools", "docs", "examples", "wheels")
HEADER = re.compile(r"( *)(?:async +def|def|cdef|cpdef)\b(?! +(?:class|struct|enum|union|extern)\b)[^=#]*?(\w+)\(")


def tuned():
    """Paths of the modules for which gcc gets the flags of moves."""
    text = (ROOT / "setup.py").read_text()
    names = re.search(r"^MOVES = (\{.*?\})", text, re.M | re.S)[1]
    return {name.replace(".", "/") for name in ast.literal_eval(names)}


def functions_of_python(text):
    """Yield name and number of lines of each function and method."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def functions_of_cython(text):
    """Yield name and number of lines of each function and method."""
    lines = text.splitlines()
    for first, line in enumerate(lines):
        header = HEADER.match(line)
        if not header:
            continue
        end = first
        while end + 1 < len(lines) and not re.search(r":(\s*#.*)?$", lines[end]):
            end += 1
        last = end
        for number in range(end + 1, len(lines)):
            inside = lines[number].strip()
            if inside and not lines[number].startswith(header[1] + " "):
                break
            last = number if inside else last
        yield header[2], last - first + 1


def functions(path):
    text = path.read_text()
    return functions_of_python(text) if path.suffix == ".py" else functions_of_cython(text)


def too_long():
    """Names such as ``pycct/explain.py::explain`` of the functions above the limit."""
    exempt = tuned()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT)
            if path.suffix in {".py", ".pyx", ".pxd"} and str(name.with_suffix("")) not in exempt:
                yield from (f"{name}::{f}" for f, n in functions(path) if n > LONGEST)


def test_no_function_is_too_long():
    assert set(too_long()) == set()


CYTHON = """cdef class A:
    cdef int f(self,
               int x) except -1:
        return 1


def g():
    pass

x = f(1)
"""
PYTHON = "def f():\n    x = 1\n    return x\n\n\nclass B:\n    def g(self):\n        pass\n"


def test_lines_are_counted():
    assert list(functions_of_cython(CYTHON)) == [("f", 3), ("g", 2)]
    assert list(functions_of_python(PYTHON)) == [("f", 3), ("g", 2)]
    assert "pycct/geometry/sweep" in tuned()
    assert max(n for _, n in functions(ROOT / "pycct" / "geometry" / "sweep.pyx")) > LONGEST
