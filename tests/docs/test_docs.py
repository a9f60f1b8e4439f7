"""The pages of docs/ and the examples in docstrings say what is so."""

import doctest
import fnmatch
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pycct

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs" / "index.md").exists(), reason="docs/ is not here")
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md") if (ROOT / name).exists()]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# In the way of the package's own modules only.
INTERNAL = {"Scene.neighbours"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def has(name):
    """Whether pycct has a name, as in Scene.load, or in rl.CrowdVectorEnv, which needs an extra."""
    thing = pycct
    try:
        if name.startswith("rl."):
            importlib.import_module("pycct.rl")
        for part in name.split("."):
            thing = getattr(thing, part, None)
    except ImportError:
        return False
    return thing is not None


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def run_examples(text, scope, where):
    """Sessions in a text against what they print."""
    test = doctest.DocTestParser().get_doctest(text, scope, where, where, 0)
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    scope.update(test.globs)
    return len(test.examples)


@pytest.mark.parametrize("page", [p for p in TEXTS + PAGES if FENCE.search(p.read_text())], ids=name_of)
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "page"}
    text = page.read_text()
    skipping = False
    for needed, heading, kind, code in re.findall(rf"^<!-- needs (\S+) -->$|^(#+ )|{FENCE.pattern}", text, FENCE.flags):
        if needed or heading:
            skipping = bool(needed) and not has(needed)
        elif skipping:
            continue
        elif kind == "python":
            exec(compile(code, name_of(page), "exec"), scope)
        else:
            assert run_examples(code, scope, name_of(page)) > 0


def anchors(path):
    """Targets of links into a page."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", TEXTS + PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def test_every_page_is_in_the_contents():
    contents = (ROOT / "docs" / "index.md").read_text()
    for page in [*PAGES, *(ROOT / "docs").rglob("*.rst")]:
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        patterns = [line for line in contents.splitlines() if re.fullmatch(r"[\w/*\[\]]+", line)]
        assert name == "index" or any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name


def test_the_readme_leads_to_every_page():
    text = (ROOT / "README.md").read_text()
    # Included from elsewhere, or led to by another page.
    others = {"index", "changelog", "contributing", "security", "install", "wheels", "determinism_table"}
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem in others or f"](docs/{page.name})" in text, page.name


def public():
    """All that pycct names, once."""
    things = {name: getattr(pycct, name) for name in pycct.__all__}
    for module in (pycct.kernels, pycct.toolbox):
        things |= {f"{module.__name__[6:]}.{name}": getattr(module, name) for name in module.__all__}
    return things


def test_every_public_name_is_in_the_reference():
    text = "\n".join(p.read_text() for p in (ROOT / "docs" / "api").glob("*.rst"))
    listed = set(re.findall(r"auto(?:class|function|data):: (?:pycct\.)?(\S+)", text))
    whole = set(re.findall(r"automodule:: pycct\.(\S+)\n\s+:members:$", text, re.MULTILINE))
    missing = {n for n in public() if n not in listed and n.split(".")[0] not in whole and not n.startswith("__")}
    assert not missing


def documented():
    """Public functions, classes and their members with their docstrings."""
    for name, thing in public().items():
        if inspect.isclass(thing) or callable(thing):
            yield name, thing.__doc__
        if inspect.isclass(thing):
            for key, value in vars(thing).items():
                if not key.startswith("_") and not isinstance(value, int | str):
                    # Fields have no docstring of their own: the class lists them as attributes.
                    listed = re.search(rf"^\s*([\w, ]+, )?{key}(, [\w, ]+)? : .*$", thing.__doc__ or "", re.MULTILINE)
                    yield f"{name}.{key}", value.__doc__ or (listed and listed[0])


def test_everything_public_has_a_docstring():
    without = [name for name, text in documented() if not (text or "").strip() and name not in INTERNAL]
    assert not without


def test_examples_in_docstrings_run():
    ran = 0
    for name, text in documented():
        if text and ">>>" in text:
            ran += run_examples(inspect.cleandoc(text), {}, name)
    assert ran > 10


def test_parameters_page_tells_of_every_argument():
    text = (ROOT / "docs" / "parameters.md").read_text()
    titles = set(re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    named = {name.strip() for title in titles for name in title.split(",")}
    signature = pycct.CharacterController.__doc__.split(")\n")[0]
    arguments = set(re.findall(r"[(,] ?(\w+)(?==|,|\))", signature))
    assert len(arguments) > 20 and arguments <= named, arguments - named


def test_the_typed_example_runs():
    done = subprocess.run([sys.executable, ROOT / "examples" / "server_tick.py"], capture_output=True, text=True,
                          check=True, timeout=120)
    assert "has 1 coin(s)" in done.stdout and done.stdout.endswith("again, to the bit: True\n")
