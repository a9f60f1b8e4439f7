"""Every row of a table of the porting pages has an example that runs: test_docs runs them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "porting").glob("*.md"))
pytestmark = pytest.mark.skipif(not PAGES, reason="docs/ is not here")


def rows(page):
    """First name of the other engine in each row of the page's tables."""
    for line in page.read_text().splitlines():
        cells = line.split("|")
        names = re.findall(r"`([^`]+)`", cells[1]) if len(cells) > 2 else []
        if names and page.stem != "index":
            yield names[0]


def commented(page):
    """Comments at the ends of the lines of executed examples."""
    code = "".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    return [line.rsplit("  # ", 1)[1].strip() for line in code.splitlines() if "  # " in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_has_an_example(page):
    found = commented(page)
    missing = [name for name in rows(page) if not any(name == c or name.startswith(c) for c in found)]
    assert not missing
    if page.stem != "index":
        assert len(list(rows(page))) > 10
