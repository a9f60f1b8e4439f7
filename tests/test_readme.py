"""What README.md says is so."""

import re
from pathlib import Path

import golden_table
import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="README.md is not here")


def test_the_examples_run(capsys):
    code, more, many = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    scope = {}
    exec(compile(code, "README.md", "exec"), scope)
    hero = scope["hero"]
    assert hero.position == pytest.approx((3, 0, 0.91 + 0.3), abs=1e-6)
    assert hero.grounded and hero.ground.actor is scope["scene"].actors[1]
    assert str(hero.position) in capsys.readouterr().out
    exec(compile(more, "README.md", "exec"), scope)
    assert hero.position == pytest.approx((0.5, 6, 0.91 + 0.5), abs=1e-6)
    said = capsys.readouterr().out
    assert "DOWN <Actor" in said and "carried by what it stands on" in said
    exec(compile(many, "README.md", "exec"), scope)
    crowd, walkers = scope["crowd"], scope["walkers"]
    assert len(crowd) == 1000 and crowd.grounded.mean() > 0.99 and hex(crowd.state_hash()) in capsys.readouterr().out
    assert all(w.position[0] == pytest.approx(0.05) for w in walkers)


def test_the_table_names_every_recording():
    text = README.read_text()
    table = text[text.index("<!-- golden table -->") : text.index("<!-- end of golden table -->")]
    named = set(re.findall(r"^\| ([a-z_]+[\w.]*)", table, re.MULTILINE)) - {"recording"}
    assert named == set(golden_table.judged())


def test_the_links_lead_somewhere():
    text = README.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (README.parent / target).exists(), target
    titles = {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in titles
