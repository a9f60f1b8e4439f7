"""The pictures of docs/net show what their words say."""

from pathlib import Path

import pytest
from scripts import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "net_pictures.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not here")


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    return load(SCRIPT)


SAYS = {
    "audit": lambda honest, slow, fast: (
        honest[0.0] > 0 and honest[0.002] == 0 and slow[0.002] == fast[0.002] == 0 and slow[0.1] > 0.5),
    "timeline": lambda before, after, corrected: after == corrected and before[0] < 1.7 < corrected[0],
    "history": lambda target, now, then: now is None and then.controller == target,
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_picture_says(pictures, name):
    figure, said = pictures.PICTURES[name]()
    pictures.plt.close(figure)
    assert SAYS[name](*said)
    assert set(SAYS) == set(pictures.PICTURES)
    assert (DOCS / "net" / f"{name}.png").exists()
