"""Prose has at most 100 columns, and pages, comments and docstrings avoid vague words."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs" / "index.md").exists(), reason="docs/ is not here")
COLUMNS = 100
# Everyday words in place of a term: "stored", "queried", "nearby", "expanded" say what happens.
VAGUE = re.compile(r"\b(told|asked|asks|asker|at hand|lent|laid out|lays out|whoever|of which)\b", re.IGNORECASE)
SKIPPED = {"build", "docs-out", "demo-out", "bench-out", "wheelhouse", "node_modules"}
# Folders whose comments and docstrings are still to be rewritten. The list only shrinks.
EXEMPT = ("tests/docs/test_text.py",)


def files(*suffixes):
    """Return the tracked kinds of files outside of build folders and hidden folders."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") or part in SKIPPED for part in parts)
        if path.suffix in suffixes and not hidden and not any(p.endswith(".egg-info") for p in parts):
            found.append(path)
    return found


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def prose_of_a_page(text):
    """Yield number and text of each line outside of code, tables and lone links."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith("|") and " " in line.strip():
            yield number, line


def prose_of_a_source(text):
    """Yield number and text of each line of a comment or docstring of Python or Cython."""
    inside = ""                 # "doc" in a docstring, "other" in another string
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        ends = line.count('"""') % 2
        if inside:
            if inside == "doc":
                yield number, line
            inside = "" if ends else inside
        elif re.match(r'\s*[rR]?"""', line) and not before.endswith(("(", "=", ",", "+", "nogil:", "*:")):
            yield number, line
            inside = "doc" if ends else ""
        elif ends:
            inside = "other"
        elif re.match(r"\s*#(?!!)", line):
            yield number, line
        elif "#" in line and (comment := re.search(r"  # (.*)$", line)):
            yield number, comment[1]
        before = line.rstrip() or before


def too_long(lines):
    return [(number, line) for number, line in lines if len(line) > COLUMNS]


def vague(lines):
    return [(number, line) for number, line in lines if VAGUE.search(line)]


@pytest.mark.parametrize("page", files(".md"), ids=name_of)
def test_a_page_is_wrapped_and_has_no_vague_words(page):
    lines = list(prose_of_a_page(page.read_text()))
    assert not too_long(lines)
    assert not vague(lines)


SOURCES = [p for p in files(".py", ".pyx", ".pxd", ".pyi") if not name_of(p).startswith(EXEMPT)]


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_comments_and_docstrings_are_wrapped_and_have_no_vague_words(source):
    with tokenize.open(source) as file:
        lines = list(prose_of_a_source(file.read()))
    assert not too_long(lines)
    assert not vague(lines)


def test_the_docstring_of_a_module_is_whole():
    """The toolbox kept the last line of its docstring only."""
    sources = [p for p in SOURCES if name_of(p).startswith("pycct/") and p.suffix == ".py"]
    first = {name_of(p): ast.get_docstring(ast.parse(p.read_text(encoding="utf-8"))) for p in sources}
    names = ("glTF",)
    assert [name for name, text in first.items() if text and text[0].islower() and not text.startswith(names)] == []


def test_the_checks_find_what_they_look_for():
    page = "short\n" + "long " * 21 + "\n```\n" + "x" * 120 + "\n```\n| " + "cell " * 30 + "|\nWhat is told\n"
    lines = list(prose_of_a_page(page))
    assert [n for n, _ in too_long(lines)] == [2] and [n for n, _ in vague(lines)] == [7]
    source = f'x = 1  # asked for\n# {"y " * 60}\nz = "asked"\n"""One\n\n{"w " * 60}\n"""\n'
    lines = list(prose_of_a_source(source))
    assert [n for n, _ in too_long(lines)] == [2, 6] and [n for n, _ in vague(lines)] == [1]
