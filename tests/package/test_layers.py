"""The folders form layers: a file imports from its own folder and from lower ones only."""

import re
from pathlib import Path

import pytest

import pycct

TOP = Path(pycct.__file__).parent
if not (TOP / "_core.pyx").exists():
    pytest.skip("sources are not part of an installed package", allow_module_level=True)

# From the lowest layer to the highest.
LAYERS = ("runtime", "geometry", "args", "spatial", "convex", "shapes", "world", "queries", "scene",
          "character", "_core", "crowd", "sensors")
# Layers beside that order: what they may import.
BESIDE = {
    "cube_world": {"runtime", "geometry", "args"},
    # Both rule sets return the same records, which are plain Python.
    "reference": {"runtime", "args", "character.explanation", "crowd.records", "sensors.kinds",
                  "sensors.buffers"},
}
# Above the facade: they import public modules, and the lower folders that are named here. Rewound
# rays meet capsules by the formula of scene queries.
ABOVE = {
    "cli": {"cube_world", "rl", "net", "record", "view", "sharding"},
    "rl": {"args"}, "net": {"geometry"}, "record": {"args"}, "view": {"record"}, "sharding": {"args"},
}
FACADE = {"__init__", "kernels", "toolbox", "response", "slide", "levels", "explain", "config", "_pure", "__main__"}
IMPORT = re.compile(
    r"^[ ]*(?:from +(pycct[\w.]*) +c?import +(\([^)]*\)|[^\n]*)|c?import +(pycct[\w.]*))", re.M)


def code(path):
    """The text of a file without its docstrings and comments."""
    text = re.sub(r'"""(?:.|\n)*?"""', '""', path.read_text())
    return re.sub(r"#.*", "", text)


def imported(path):
    """Dotted names below pycct that a file imports or cimports, in any way."""
    for source, names, plain in IMPORT.findall(code(path)):
        if plain:
            yield plain.removeprefix("pycct").removeprefix(".")
            continue
        below = source.removeprefix("pycct").removeprefix(".")
        for name in re.findall(r"(\w+)(?: +as +\w+)?", names.strip("()")):
            target = f"{below}.{name}".removeprefix(".")
            if below == "" or (TOP / below.replace(".", "/") / "__init__.py").exists():
                yield target
            else:
                yield below


def layer(dotted):
    """The folder or top-level module of a dotted name; '' for the package itself."""
    first = dotted.split(".")[0]
    known = {p.name for p in TOP.iterdir() if p.is_dir()} | {p.name.split(".")[0] for p in TOP.glob("*.py*")}
    return first if first in known else ""


def module(path):
    return ".".join(path.relative_to(TOP).with_suffix("").parts)


SOURCES = sorted(p for kind in ("*.pyx", "*.pxd", "*.py") for p in TOP.rglob(kind) if "__pycache__" not in p.parts)


def allowed(here, target):
    """Whether a module of one layer may import a dotted name."""
    there = layer(target)
    if here == there:
        return True
    if here in BESIDE:
        return there in BESIDE[here] or target in BESIDE[here]
    if here in LAYERS:
        return there in LAYERS[: LAYERS.index(here)]
    if here in FACADE:
        return there not in ABOVE or here == "__main__"
    return there in FACADE or there == "" or there in ABOVE.get(here, ())


def test_every_folder_has_its_layer_and_says_what_it_is():
    folders = {p.name for p in TOP.iterdir() if p.is_dir() and p.name != "__pycache__"}
    # `levels` is a part of the facade that is too long for one file.
    required = set(LAYERS) - {"_core"} | set(BESIDE) | {"cli", "levels"}
    assert required <= folders <= required | set(ABOVE)
    for folder in folders:
        text = (TOP / folder / "__init__.py").read_text()
        assert re.match(r'""".*[Ii]mport', text, re.S), folder


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_imports_go_down(path):
    here = layer(module(path))
    for target in imported(path):
        assert allowed(here, target), f"{module(path)} imports pycct.{target}"


def test_there_is_no_cycle():
    """Files import one another in one direction; a header and its implementation count as one."""
    graph = {}
    names = {module(p) for p in SOURCES}
    for path in SOURCES:
        here = module(path)
        if here.endswith("__init__"):
            continue
        graph.setdefault(here, set()).update(
            t for t in imported(path) if t in names and t != here and layer(t) not in FACADE)
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " -> ".join([*open_[open_.index(name):], name])
        if name not in done:
            open_.append(name)
            for target in graph.get(name, ()):
                visit(target)
            open_.pop()
            done.add(name)

    for name in graph:
        visit(name)


def test_a_wrong_import_is_noticed(tmp_path):
    bad = tmp_path / "bad.pyx"
    bad.write_text("from pycct.crowd.crowd cimport (\n    Crowd,\n)\nfrom pycct import levels\n# import pycct.cli\n")
    assert list(imported(bad)) == ["crowd.crowd", "levels"]
    assert not allowed("geometry", "crowd.crowd") and not allowed("geometry", "levels")
    assert not allowed("cube_world", "shapes.primitives") and not allowed("levels", "cli.main")
    assert allowed("crowd", "_core") and not allowed("character", "_core") and allowed("cli", "levels")
