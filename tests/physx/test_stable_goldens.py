"""Every recorded move that PhysX repeats ends at its position (golden_stable/README.md)."""

import pytest
import stable_recordings

NAMES = stable_recordings.names()


def test_no_recording_is_left_out():
    assert len(NAMES) == 73
    assert set(stable_recordings.MAY_DIFFER) | set(stable_recordings.RIGHT) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_part(name):
    row = stable_recordings.judge(stable_recordings.OWN / f"{name}.json.gz")
    assert 0 < row["moves"] <= 200 and row["stable"] > 80
    assert row["differ"] <= stable_recordings.MAY_DIFFER.get(name, 0), row


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_whole(name):
    path = stable_recordings.WHOLE / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("only a part of each recording is in the repository")
    row = stable_recordings.judge(path)
    assert row["right_where_stable"] >= stable_recordings.RIGHT.get(name, stable_recordings.RIGHT_ELSE), row
