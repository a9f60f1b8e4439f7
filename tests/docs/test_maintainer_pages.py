"""Files and functions that the pages for maintainers name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not (DOCS / "architecture.md").exists(), reason="docs/ is not here")

PAGES = sorted(
    p
    for p in [
        DOCS / "architecture.md",
        DOCS / "glossary.md",
        *(DOCS / "decisions").glob("*.md"),
        ROOT / "CONTRIBUTING.md",
        ROOT / "bench" / "PROFILE.md",
    ]
    if p.exists()
)
PLACES = ("pycct/", "tests/", "docs/", "bench/", "tools/", "wheels/")
# A line that defines a name: a function, class, struct or enum of Python or Cython.
DEFINES = r"^\s*(?:async def|cdef|class|cpdef|ctypedef|def)\b[^=\n]*\b{name}\b"


def spans(page):
    """Code spans of a page, blocks left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))


def problem(span):
    """What is wrong with a span such as `pycct/_core.pyx::CharacterController.move`, or None."""
    path, _, names = span.partition("::")
    path = ROOT / path
    if not path.exists():
        return f"{span}: no such file"
    for name in names.split(".") if names else ():
        if not re.search(DEFINES.format(name=re.escape(name)), path.read_text(), re.MULTILINE):
            return f"{span}: no {name} there"
    return None


def test_what_is_missing_is_noticed():
    assert problem("pycct/no_such_file.py") and problem("pycct/_core.pyx::CharacterController.fly")
    assert problem("pycct/_core.pyx::CharacterController.move") is None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_file_and_function_exists(page):
    named = [s for s in spans(page) if s.startswith(PLACES) and not re.search(r"[\s*<{]", s)]
    assert [p for p in map(problem, named) if p] == []


def fast_paths():
    """(fast path, general path, tests) of each row of the table."""
    text = (DOCS / "architecture.md").read_text()
    rows = text[text.index("| fast path |") :].splitlines()[2:]
    for row in rows:
        if not row.startswith("|"):
            break
        yield [re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split(" | ")]


def test_every_fast_path_names_the_test_that_compares_it():
    rows = list(fast_paths())
    assert len(rows) > 15
    for row in rows:
        assert len(row) == 3 and any(s.startswith("tests/") and "::test_" in s for s in row[2]), row


def test_architecture_answers_what_it_promises():
    text = (DOCS / "architecture.md").read_text()
    for heading in ("Layers", "Who owns what", "Locks", "Why a callback restarts a move", "Four questions"):
        assert f"\n## {heading}\n" in text


def test_architecture_lists_every_folder():
    text = (DOCS / "architecture.md").read_text()
    folders = {p.parent.name for p in (ROOT / "pycct").glob("*/__init__.py")}
    assert {f for f in folders if f"| `pycct/{f}/` |" not in text} == set()
