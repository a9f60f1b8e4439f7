"""Shared by all tests: the hypothesis profile, and the table of recordings at the end of a run."""

import gc
import os

import golden_table
import pytest
from hypothesis import settings

ROWS = {}

# Every run uses the same examples, so that only changes of the code change results. PYCCT_EXPLORE=1
# (make fuzz) searches for new ones, which become tests of their own.
settings.register_profile("repeat", derandomize=True, database=None)
if os.environ.get("PYCCT_EXPLORE") != "1":
    settings.load_profile("repeat")


# Tests of minutes run first, so that the last process does not end with one of them.
LONGEST = ("test_three_minutes", "test_threads_move_while_others_change_the_world_for_a_minute",
           "test_controllers_leave_memory_flat")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: getattr(item, "originalname", item.name) not in LONGEST)


def pytest_collection_finish(session):
    """Freeze the objects of imports and parameters: some tests collect garbage often."""
    gc.collect()
    gc.freeze()


class Rows:
    """Sends the score of a recording to the end of the run, also from another process."""

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
