"""Shared by all tests: the table of recordings at the end of a run."""

import golden_table
import pytest

ROWS = pytest.StashKey()


def pytest_configure(config):
    config.stash[ROWS] = {}


@pytest.fixture
def golden_rows(request):
    """Scores by recording, printed at the end of the run."""
    return request.config.stash[ROWS]


def pytest_terminal_summary(terminalreporter, config):
    rows = list(config.stash[ROWS].values())
    if rows:
        terminalreporter.section("recordings of PhysX")
        for line in golden_table.lines(rows):
            terminalreporter.write_line(line)
