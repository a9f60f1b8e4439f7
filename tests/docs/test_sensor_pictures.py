"""The pictures of docs/sensors show what their words say."""

from pathlib import Path

import numpy as np
import pytest
from scripts import load

from pycct import Seen

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "sensor_pictures.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not here")


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    return load(SCRIPT)


SAYS = {
    "lidar": lambda met: met[Seen.NOTHING] == 0 and all(met[kind] > 0 for kind in Seen if kind != Seen.NOTHING),
    "height_scan": lambda low, high: abs(low) < 1e-9 and high > 0.5,
    "depth_grid": lambda depth: depth.min() < 6.0 and depth.max() > 25.0 and np.isfinite(depth).all(),
    "neighbours": lambda found, ids: (found[:, 0] >= 0).mean() > 0.8 and not (found == ids[:, None]).any(),
    "feet": lambda kinds: {Seen.STATIC, Seen.MOVING} <= set(kinds),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_picture_says(pictures, name):
    figure, said = pictures.PICTURES[name]()
    pictures.plt.close(figure)
    assert SAYS[name](*said)
    assert set(SAYS) == set(pictures.PICTURES)
    assert (DOCS / "sensors" / f"{name}.png").exists()
