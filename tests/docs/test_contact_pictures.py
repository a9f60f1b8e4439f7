"""The script behind the pictures in docs/contacts.md draws what the library answers."""
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "contact_pictures.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="docs are not part of an installed package")
def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("contact_pictures", SCRIPT)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert pictures.draw("capsule", "box", tmp_path / "a.png") == 2
    assert pictures.draw("sphere", "hull", tmp_path / "b.png") == 1
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    page = (SCRIPT.parent / "contacts.md").read_text()
    for a in pictures.KINDS:
        for b in pictures.KINDS[pictures.KINDS.index(a):]:
            name = f"contacts/{a}_{b}.png"
            assert name in page and (SCRIPT.parent / name).exists()
