"""Shared by all tests: the table of recordings at the end of a run."""

import golden_table
import pytest

ROWS = {}


class Rows:
    """Sends the score of a recording to the end of the run, from another process too."""

    def __init__(self, node):
        self.node = node

    def __setitem__(self, name, row):
        self.node.user_properties.append(("recording", [name, dict(row)]))


@pytest.fixture
def golden_rows(request):
    """Scores by recording, printed at the end of the run."""
    return Rows(request.node)


def pytest_runtest_logreport(report):
    if report.when == "call":
        for key, value in report.user_properties:
            if key == "recording":
                ROWS[value[0]] = value[1]


def pytest_terminal_summary(terminalreporter):
    if ROWS:
        terminalreporter.section("recordings of PhysX")
        for line in golden_table.lines([ROWS[name] for name in sorted(ROWS)]):
            terminalreporter.write_line(line)
