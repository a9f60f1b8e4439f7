"""The recordings that the site embeds show what docs/recordings.md says."""

from pathlib import Path

import pytest
from scripts import load

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "embedded_recordings.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not here")


@pytest.fixture(scope="module")
def scenes():
    return load(SCRIPT)


def test_robust_comes_nearer_to_the_lintel(scenes):
    positions = scenes.lintel().positions
    physx, document, robust = positions[-1]
    assert physx[0] == document[0]
    # The lintel is in the direction of -x.
    assert round(physx[0] - robust[0], 2) == 0.13
    assert positions[-1][:, 1] - positions[-2][:, 1] == pytest.approx([0.004] * 3)


def test_most_of_the_crowd_leaves_the_room(scenes):
    positions = scenes.room().positions
    assert positions.shape[1] == 63
    assert (positions[-1][:, 0] > 5.2).sum() > 50


def test_the_site_gets_a_page_of_each(scenes, tmp_path):
    page = SCRIPT.with_name("recordings.md").read_text()
    for name in scenes.PAGES:
        assert f'src="_recordings/{name}.html"' in page
    scenes.PAGES = {"lintel": scenes.lintel}
    scenes.write_all(tmp_path / "deep")
    assert (tmp_path / "deep" / "lintel.html").stat().st_size > 10_000
