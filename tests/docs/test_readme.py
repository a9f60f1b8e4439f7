"""What README.md says is so."""

import re
from pathlib import Path

import golden_table
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
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
    text = README.read_text()
    return text[text.index("<!-- golden table -->") : text.index("<!-- end of golden table -->")]


def test_the_table_names_every_recording():
    named = set(re.findall(r"^\| ([a-z_]+[\w.]*)", table(), re.MULTILINE)) - {"recording"}
    assert named == set(golden_table.judged())


def test_the_summary_is_that_of_the_table():
    rows = [row.split("|") for row in table().splitlines() if row.count("%") == 3]
    moves = sum(int(row[2]) for row in rows)
    shares = sorted(float(row[3].strip(" %")) for row in rows)
    summary = re.search(r"<summary>(.*)</summary>", README.read_text())[1].replace("\N{NO-BREAK SPACE}", " ")
    assert f"Of {len(rows)} recordings, {moves // 1000} {moves % 1000:03d} moves" in summary
    assert f"{shares.count(100)} agree in every move" in summary
    assert f"{sum(99.5 <= s < 100 for s in shares)} in at least 99.5 %" in summary
    assert shares[1] >= 99.5 and f"{shares[0]} %" in summary
    assert rows[[r[3].strip() for r in rows].index(f"{shares[0]} %")][1].strip() == "triangle_soup"


def test_the_tables_of_numbers_are_marked():
    # docs/performance.md shows the one between these lines.
    text = README.read_text()
    assert text.index("<!-- speed table -->") < text.index("<!-- end of speed table -->")
    assert "<!-- speed table -->" in (README.parent / "docs" / "performance.md").read_text()
