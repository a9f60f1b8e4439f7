"""The moves in the panels of docs/parameters.md end in different places, as the text says."""

from pathlib import Path

import pytest
from scripts import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "parameter_pictures.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not here")


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    return load(SCRIPT)


def feet(place, half=0.91):
    return place[2] - half


# What each picture says, of the places where its panels' moves end.
SAYS = {
    "size": lambda a: a[2] == pytest.approx(1.0),
    "position": lambda kept, forgotten: kept[0] - forgotten[0] == pytest.approx(0.8),
    "radius": lambda thin, thick: thin[0] > 3 and thick[0] < 1.5,
    "height": lambda low, high: low[0] > 3 and high[0] < 1.6,
    "up": lambda floor, wall: floor[2] < 1.3 and wall[2] > 2,
    "step_offset": lambda none, low, high: max(none[0], low[0]) < 0.82 and feet(high) == pytest.approx(1.2),
    "headroom": lambda low, high: low[0] > 3.9 and high[0] < 2.5,
    "contact_offset": lambda near, far: (near[0] - far[0], far[2] - near[2]) == pytest.approx((0.13, 0.13)),
    "slope_limit": lambda low, high: low[0] < 2.6 and feet(low) > 0.9 and feet(high) > 2,
    "climbing_mode": lambda easy, constrained: feet(easy) > 0.69 and feet(constrained) == pytest.approx(0, abs=1e-6),
    "non_walkable_mode": lambda stands, slides: feet(stands) > 2 and feet(slides) < 0.1 and slides[0] < 0.6,
    "rules": lambda physx, robust: physx[0] < 1.3 and robust[0] > 3.9,
    "overlap_recovery": lambda on, off: on[0] == pytest.approx(0.59) and off[0] > 2,
    "prevent_vertical_sliding": lambda slides, stops: slides[0] < 0.2 and stops[0] == pytest.approx(0.6),
    "invisible_wall_height": lambda jumps, held: jumps[0] > 1.2 and feet(jumps) > 0.4 and held[0] < 0.8,
    "max_jump_height": lambda plain, wide: plain[0] == wide[0] and wide[1] < plain[1],
    "mask": lambda sees, passes: sees[0] == pytest.approx(1.51) and passes[0] > 3.9,
    "collide": lambda meets, passes: meets[0] < 1.7 and passes[0] > 2.4,
    "on_hit": lambda end, told: end[0] > 2.7 and {h.pass_.name for h in told} == {"UP", "SIDE", "DOWN"},
    "behavior": lambda stays, rides: stays[0] == pytest.approx(0.6) and rides[0] == pytest.approx(2.6),
    "filter": lambda meets, passes: meets[0] == pytest.approx(1.49) and passes[0] > 3.9,
    "surface": lambda stands, slides: stands[2] > 2.6 and slides[0] > 0.79 and feet(slides) < 0.01,
    "min_distance": lambda every, none: every[0] == pytest.approx(1.0) and none[0] == 0,
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_picture_says(pictures, name):
    figure, ends = pictures.PICTURES[name]()
    pictures.plt.close(figure)
    assert SAYS[name](*ends)


def test_every_picture_is_drawn_and_shown(pictures, tmp_path, monkeypatch):
    page = (DOCS / "parameters.md").read_text()
    assert set(SAYS) == set(pictures.PICTURES)
    for name in pictures.PICTURES:
        assert f"](parameters/{name}.png)" in page and (DOCS / "parameters" / f"{name}.png").exists()
    monkeypatch.setattr("sys.argv", ["parameter_pictures.py", str(tmp_path), "step_offset"])
    pictures.main()
    assert (tmp_path / "step_offset.png").read_bytes()[:4] == b"\x89PNG"
