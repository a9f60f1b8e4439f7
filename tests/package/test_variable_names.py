"""Compiled sources name values by terms of the field, not by everyday words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "setup.py").exists() or not (ROOT / "pycct" / "_core.pyx").exists():
    pytest.skip("sources are not part of an installed package", allow_module_level=True)

# An everyday word, and examples of what to write instead.
WORDS = {
    "asker": "query_shape",
    "kept": "compact, cache",
    "lanes": "mask",
    "least": "lowest, smallest, min_distance",
    "lent": "cache_override",
    "many": "n_threads, count",
    "moment": "move_frame",
    "part": "layer, section",
    "room": "capacity",
    "said": "issued_warnings",
    "told": "flags, reports",
    "wanted": "asked, columns",
    "way": "direction, displacement, motion",
    "ways": "displacements, rows",
}
NAME = re.compile(r"\b(" + "|".join(WORDS) + r")\b")
TEXT = re.compile(r'""".*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*', re.S)


def everyday_names(source):
    """Return (line, word) of each everyday word in code; strings and comments do not count."""
    code = TEXT.sub(lambda found: "\n" * found[0].count("\n"), source)
    return [(n, found[1]) for n, line in enumerate(code.split("\n"), 1) for found in NAME.finditer(line)]


@pytest.mark.parametrize("path", sorted((ROOT / "pycct").rglob("*.p[yx][xd]")), ids=lambda path: path.name)
def test_names_are_terms_of_the_field(path):
    assert not everyday_names(path.read_text())


def test_everyday_words_are_found():
    source = 'cdef vec3 way  # the way\nx = "many"\n"""\nleast\n"""\ny = s.part\n'
    assert everyday_names(source) == [(1, "way"), (6, "part")]
