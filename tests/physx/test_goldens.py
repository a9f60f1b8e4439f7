"""Does what the real PhysX did, move by move and question by question (tests/physx/golden/README.md)."""

import golden_queries
import goldens
import pytest

QUERIES, WALKS = goldens.QUERIES, goldens.WALKS


def test_no_recording_is_left_out():
    assert len(WALKS) == 56 and len(QUERIES) == 6
    needed = {n: goldens.needs(goldens.load(goldens.path_of(n))) for n in goldens.names()}
    # All that is recorded is really asked for by some recording.
    assert set().union(*needed.values()) == {"platforms", "behavior", "obstacles", "other controllers"}


@pytest.mark.parametrize("name", WALKS)
def test_walk(name, golden_rows):
    if goldens.path_of(name) is None:
        pytest.skip(f"{name}: third-party geometry is not part of the repository")
    row = goldens.judge(name)
    golden_rows[name] = row
    assert row["moves"] > 0
    assert row["right"] >= row["bar"], row
    assert row["hits"] >= goldens.SAME_HITS, row


@pytest.mark.parametrize("name", QUERIES)
def test_query(name, golden_rows):
    # Wherever the answers differ by more than the bar, judge() itself asserts by brute
    # force that ours is the true one.
    row = golden_queries.judge(name)
    golden_rows[name] = row
    assert row["sweeps"] > 0 and row["overlaps"] > 0 and row["penetrations"] > 0
    # A triangle mesh has no one way out: no bar for its depth, nor for a hull's, where
    # PhysX stops short of the exact one.
    if name in ("query_spheres", "query_capsules", "query_boxes"):
        assert row["depths"] > 50
        assert row["depths_wrong"] == 0, row
    # Few answers may need a proof, else the judge would no longer be PhysX.
    # Of a mesh PhysX names the most opposed triangle within a thousandth of the way, pycct the first one.
    share = 0.03 if name == "query_mesh" else 0.015
    assert row["proved"] <= share * (row["sweeps"] + row["overlaps"] + row["penetrations"]), row
