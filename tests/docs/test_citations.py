"""Every rule that a source, a test or a page cites is described in docs/rules."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "rules"
pytestmark = pytest.mark.skipif(not RULES.exists(), reason="docs/ is not here")

FOLDERS = ("pycct", "tests", "docs", "bench", "examples", "tools")
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".md", ".rst"}
NAMES = "MOVE|SWEEP|CHAR|CONTACT|SLIDE|RULES_2|RULES"
# 7.2.3g, B.4, T03, or 9 row 4.
SECTION = r"(?:\d+(?:\.\d+)*[a-z]?|[A-C](?:\.\d+)?|T\d\d)\b(?:,? rows? \d+(?:(?:, | and )\d+)*)?"
LINK = r"(?:, | and | or |, and | to |; | ?[-\u2013] ?)"
CITATION = re.compile(rf"\b({NAMES})(?:'s)? ({SECTION}(?:{LINK}{SECTION})*)")
# The start of a comment line, in the middle of a sentence that goes on there.
NEW_LINE = re.compile(r"\s*\n[ \t]*(?:#:?|\*|>)?[ \t]*")


def cited_in(text):
    """Ids that a text cites.

    "RULES 5 and 7.3" gives "RULES 5" and "RULES 7.3"; "MOVE 8.2 to 8.4" gives three ids.
    """
    for match in CITATION.finditer(NEW_LINE.sub(" ", text)):
        name = match[1]
        parts = re.findall(rf"({LINK})?({SECTION})", match[2])
        last = ""
        for link, part in parts:
            if last and (link.strip() in ("to", "-", "\u2013")):
                yield from (f"{name} {section}" for section in between(last, part))
            section, _, rows = part.partition(" row")
            section = section.rstrip(",")
            for row in re.findall(r"\d+", rows):
                yield f"{name} {section} row {row}"
            if not rows:
                yield f"{name} {section}"
            last = section


def between(first, last):
    """Sections between two of one chapter: 8.3 for 8.2 and 8.4."""
    head, _, low = first.rpartition(".")
    tail, _, high = last.rpartition(".")
    if head != tail or not low.isdigit() or not high.isdigit():
        return []
    return [f"{head}.{number}".lstrip(".") for number in range(int(low) + 1, int(high))]


def anchor_of(citation):
    """The label of a rule: MOVE 7.2.3g has (rule-move-7-2-3g)=."""
    name, _, section = citation.partition(" ")
    name = {"RULES_2": "rules2"}.get(name, name.lower())
    return f"rule-{name}-{re.sub('[ .]', '-', section.lower())}"


@cache
def anchors():
    """Labels of the pages, each with its page."""
    found = {}
    for page in sorted(RULES.glob("*.md")):
        for label in re.findall(r"^\((rule-[\w-]+)\)=$", page.read_text(), re.MULTILINE):
            assert label not in found, f"{label} is in {found[label]} and in {page.name}"
            found[label] = page.name
    return found


def sources():
    """Files that may cite a rule."""
    for folder in FOLDERS:
        yield from sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES and p != Path(__file__))
    yield from sorted(ROOT.glob("*.md"))


def test_citations_are_recognised():
    text = """RULES 5 and 7.3; see MOVE
    # 7.2.3g. (MOVE 8.2 to 8.4, 14.2; RULES 9 row 4) SLIDE T03, RULES_2 3a, SWEEP B.4 and RULES 9
    # rows 2 and 12."""
    assert list(cited_in(text)) == [
        "RULES 5", "RULES 7.3", "MOVE 7.2.3g", "MOVE 8.2", "MOVE 8.3", "MOVE 8.4", "MOVE 14.2", "RULES 9 row 4",
        "SLIDE T03", "RULES_2 3a", "SWEEP B.4", "RULES 9 row 2", "RULES 9 row 12",
    ]  # fmt: skip
    assert not list(cited_in("CAN_SLIDE, 0.0 and CAN_SLIDE 1; a MOVE and SLIDE, 3"))


def test_an_unknown_rule_is_noticed():
    assert anchor_of("MOVE 99.9") not in anchors()
    assert anchor_of("MOVE 7.2.3g") in anchors()


@pytest.mark.parametrize("folder", [*FOLDERS, "."])
def test_every_citation_has_a_rule(folder):
    files = [p for p in sources() if p.relative_to(ROOT).parts[0] == folder or (folder == "." and p.parent == ROOT)]
    missing = [
        f"{p.relative_to(ROOT)}: {citation}"
        for p in files
        for citation in cited_in(p.read_text())
        if anchor_of(citation) not in anchors()
    ]
    assert not missing, "\n".join(missing)


def test_sources_are_read():
    # Folders that were renamed would leave the test above nothing to look at.
    cited = {c for p in sources() if p.relative_to(ROOT).parts[0] == "pycct" for c in cited_in(p.read_text())}
    assert len(cited) > 100


@pytest.mark.parametrize("page", sorted(RULES.glob("*.md")), ids=lambda p: p.stem)
def test_every_anchor_can_be_found_by_its_id(page):
    # A reader searches for "MOVE 7.2.3g", not for the label.
    text = page.read_text()
    written = {anchor_of(c) for c in cited_in(text)}
    own = {label for label, name in anchors().items() if name == page.name}
    assert not {label for label in own - written if label.count("-") > 1}


def test_every_section_of_the_conformance_page_has_a_rule():
    document = None
    missing = []
    for line in (ROOT / "docs" / "conformance.md").read_text().splitlines():
        if line.startswith("## "):
            document = line[3:].strip()
        elif re.match(r"\| [\dABC]", line) and document in NAMES.split("|"):
            missing += [
                f"{document} {s}"
                for s in line.split("|")[1].strip().split(", ")
                if anchor_of(f"{document} {s}") not in anchors()
            ]
    assert not missing


def named_tests(page):
    """(file, test) of each test that a page names: `tests/x/test_y.py`: `test_a`, `test_b`; ..."""
    for block in re.findall(r"^- \*\*Tests:\*\* (.*?)(?=^\S|\Z)", page.read_text() + "\n", re.MULTILINE | re.DOTALL):
        file = None
        for name in re.findall(r"`([^`]+)`", block):
            if name.endswith(".py"):
                file = name
            else:
                assert file, f"{page.name}: {name} has no file"
                yield file, name


@pytest.mark.parametrize("page", sorted(RULES.glob("*.md")), ids=lambda p: p.stem)
def test_every_test_that_a_page_names_exists(page):
    missing = []
    for file, name in named_tests(page):
        source = ROOT / file
        if not source.exists() or not re.search(rf"^ {{0,4}}def {name}\(", source.read_text(), re.MULTILINE):
            missing.append(f"{file}::{name}")
    assert not missing


def test_most_rules_name_their_tests():
    assert sum(len(list(named_tests(page))) for page in RULES.glob("*.md")) > 200


def sections():
    """(page, heading, text) of each section that describes rules."""
    for page in sorted(RULES.glob("*.md")):
        for part in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]:
            heading, _, text = part.partition("\n")
            if "Cited as" in text:
                yield page.stem, heading, text


@pytest.mark.parametrize("section", list(sections()), ids=lambda s: f"{s[0]}: {s[1]}")
def test_every_section_states_inputs_rule_sets_and_tests(section):
    _, _, text = section
    assert "**Inputs:**" in text or "| source |" in text
    if "**Inputs:**" in text:
        assert "**Rule sets:**" in text
        # A rule that this version does not follow yet, or never, has no test.
        assert "**Tests:**" in text or "**Status:**" in text or "**Rule sets:** none" in text


def stated_constants():
    """(page, name, value) of each named constant: `MAX_ITERATIONS` 10."""
    for page in sorted(RULES.glob("*.md")):
        for name, value in re.findall(r"`([A-Z][A-Z_0-9]{3,})`\s(\d[\d.]*(?:e-?\d+)?)", page.read_text()):
            yield page.stem, name, float(value.rstrip("."))


def test_constants_have_the_values_that_the_pages_state():
    text = "\n".join(p.read_text() for p in (ROOT / "pycct").rglob("*.py*") if p.suffix in SUFFIXES)
    stated = list(stated_constants())
    assert len(stated) > 12
    for page, name, value in stated:
        values = {float(v) for v in re.findall(rf"\b{name} = (\d[\d.]*(?:e-?\d+)?)\b", text)}
        assert value in values, f"{page}: {name} is {value}, the sources have {values}"
