"""docs/conformance.md contains every section, and each function and test that it names exists."""

import importlib
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="docs/ is not here")


def numbered(chapters):
    """(1, 3), (2, 0) -> 1.1, 1.2, 1.3, 2."""
    return [f"{c}.{i}" for c, n in chapters for i in range(1, n + 1)] + [str(c) for c, n in chapters if n == 0]


# Chapters of each document, with the number of their sections (0: not divided).
SECTIONS = {
    "MOVE": numbered([(1, 3), (2, 5), (3, 2), (4, 3), (5, 3), (6, 3), (7, 3), (8, 4), (9, 3), (10, 4), (11, 2), (12, 2),
                      (13, 3), (14, 7), (15, 7), ("A", 3), ("B", 0), ("C", 0)]),
    "SWEEP": numbered([(1, 3), (2, 3), (3, 3), (4, 4), (5, 3), (6, 4), (7, 4), (8, 2), (9, 2), (10, 3), (11, 3),
                       (12, 5), ("A", 4), ("B", 9)]),
    "CHAR": numbered([(i, 0) for i in range(1, 15)]),
    "CONTACT": numbered([(i, 0) for i in range(1, 17)]),
    "SLIDE": numbered([(1, 5), (2, 5), (3, 5), (4, 4), (5, 4), (6, 3), (7, 4), (8, 0)]),
}
# Sections that tell of notation, not of rules.
NO_RULES = {("MOVE", "B")}


def rows():
    """(document, sections, words, functions, tests) of each row of the tables."""
    document = None
    for line in PAGE.read_text().splitlines() if PAGE.exists() else []:
        if line.startswith("## "):
            document = line[3:].strip()
        elif document in SECTIONS and line.startswith("| ") and not line.startswith("| section"):
            cells = [c.strip() for c in line.strip("|").split("|")]
            assert len(cells) == 4, line
            functions, tests = (re.findall(r"`([^`]+)`", cell) for cell in cells[2:])
            yield document, cells[0].split(", "), cells[1], functions, tests


ROWS = list(rows())


@pytest.mark.parametrize("document", SECTIONS)
def test_every_section_is_there_once_in_order(document):
    assert [s for d, sections, *_ in ROWS if d == document for s in sections] == in_order(SECTIONS[document])


def in_order(sections):
    """Numbers by number, then letters."""
    def key(section):
        chapter, _, part = section.partition(".")
        return (chapter.isalpha(), int(chapter) if chapter.isdigit() else 0, chapter, int(part or 0))

    return sorted(sections, key=key)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}-{r[1][0]}")
def test_every_row_says_what_where_and_how_it_is_tested(row):
    document, sections, words, functions, tests = row
    assert words
    if (document, sections[0]) not in NO_RULES:
        assert functions and tests


def compiled(name):
    """Whether a .pyx of the package defines it; None when there is no such file."""
    module, _, function = name.rpartition(".")
    source = HERE.parents[1] / "pycct" / (module.replace(".", "/") + ".pyx")
    if not source.exists():
        return None
    return re.search(rf"^(cp|c)?def .*\b{re.escape(function)}\(", source.read_text(), re.MULTILINE) is not None


def found(name):
    """Whether pycct has it: as an attribute of modules and classes."""
    parts = ["pycct", *name.split(".")]
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row[3]}))
def test_every_function_exists(name):
    if not found(name):
        there = compiled(name)
        if there is None and not (HERE.parents[1] / "pycct" / "_core.pyx").exists():
            pytest.skip("sources are not here")
        assert there, f"pycct.{name}"


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row[4]} | set(
    re.findall(r"`([a-z_]+::\w+)`", PAGE.read_text() if PAGE.exists() else ""))))
def test_every_test_exists(name):
    file, _, test = name.partition("::")
    (source,) = HERE.parent.rglob(f"test_{file}.py")
    assert re.search(rf"^    ?def test_{test}\(|^def test_{test}\(", source.read_text(), re.MULTILINE), name


def test_what_is_missing_is_noticed():
    assert not found("toolbox.no_such_thing") and not found("CharacterController.fly")
    assert compiled("character.move.no_such_thing") in (False, None)
