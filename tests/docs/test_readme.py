"""The examples of README.md run, and its figures match the tables."""

import re
from pathlib import Path

import golden_table
import pytest
import stable_recordings

README = Path(__file__).resolve().parents[2] / "README.md"
AGREEMENT = README.parent / "docs" / "physx_agreement.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="README.md is not here")


def test_the_examples_run(capsys):
    code, many = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    scope = {}
    exec(compile(code, "README.md", "exec"), scope)
    hero = scope["hero"]
    assert hero.position == pytest.approx((3, 0, 0.91 + 0.3), abs=1e-6)
    assert hero.grounded and hero.ground.actor is scope["scene"].actors[1]
    assert str(hero.position) in capsys.readouterr().out
    exec(compile(many, "README.md", "exec"), scope)
    crowd, walkers = scope["crowd"], scope["walkers"]
    assert len(crowd) == 1000 and crowd.grounded.mean() > 0.99 and hex(crowd.state_hash()) in capsys.readouterr().out
    assert all(w.position[0] == pytest.approx(0.05) for w in walkers)


def table():
    text = AGREEMENT.read_text()
    return text[text.index("<!-- golden table -->") : text.index("<!-- end of golden table -->")]


def test_the_table_names_every_recording():
    named = set(re.findall(r"^\| ([a-z_]+[\w.]*)", table(), re.MULTILINE)) - {"recording"}
    assert named == set(golden_table.judged())


def test_the_totals_are_those_of_the_table():
    rows = [row.split("|") for row in table().splitlines() if row.count("%") == 3]
    queries = [row.split("|") for row in table().splitlines() if row.startswith("| query_")]
    moves = f"{sum(int(row[2]) for row in rows):,}"
    shares = sorted(float(row[3].strip(" %")) for row in rows)
    text = " ".join(AGREEMENT.read_text().split())
    assert f"{len(rows)} recordings contain {moves} moves" in text
    assert f"{shares.count(100)} recordings agree in every move" in text
    assert f"{sum(99.5 <= s < 100 for s in shares)} in at least 99.5 %" in text
    assert shares[1] >= 99.5 and f"`triangle_soup`, in {shares[0]} %" in text
    assert rows[[r[3].strip() for r in rows].index(f"{shares[0]} %")][1].strip() == "triangle_soup"
    readme = README.read_text()
    n_queries = f"{sum(int(cell) for row in queries for cell in row[2:5]):,}"
    assert f"{moves} recorded moves" in readme and f"{n_queries} recorded queries" in readme


def test_the_table_of_stable_moves_names_every_recording_and_its_totals():
    text = AGREEMENT.read_text()
    part = text[text.index("<!-- stable table -->") : text.index("<!-- end of stable table -->")]
    rows = [row.split("|") for row in part.splitlines() if row.count("%") == 2]
    assert sorted(row[1].split()[0] for row in rows) == stable_recordings.names()
    moves, stable = (f"{sum(int(row[column]) for row in rows):,}" for column in (2, 4))
    good = sum(float(row[5].strip(" %")) >= 99.5 for row in rows)
    text, readme = (" ".join(t.split()) for t in (text, README.read_text()))
    assert f"{len(rows)} recordings contain {moves} moves, and {stable} moves are stable. {good} recordings" in text
    assert f"{len(rows)} more recordings contain {moves} moves; {good} of them agree" in readme


def test_the_speed_table_is_marked():
    # docs/performance.md includes the lines between these marks.
    text = README.read_text()
    assert text.index("<!-- speed table -->") < text.index("<!-- end of speed table -->")
    assert "<!-- speed table -->" in (README.parent / "docs" / "performance.md").read_text()
