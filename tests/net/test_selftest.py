"""`python -m pycct net selftest`: a server, its players and the network in one process."""

import math

import pytest

from pycct.__main__ import main
from pycct.net import selftest


def test_everything_agrees(capsys):
    code = main("net selftest --players 12 --rtt 150 --jitter 40 --loss 5 --seconds 2".split())
    out = capsys.readouterr().out
    assert code == 0, out
    assert "equal" in out and "0 false and 0 missed flags" in out and "us per tick" in out


def test_the_same_seed_gives_the_same_hashes_whatever_the_network():
    a = selftest.run(6, 30, 0, 0, 2, seed=3)
    b = selftest.run(6, 300, 80, 40, 2, seed=3)
    assert a.client_hash == b.client_hash == a.server_hash == b.server_hash
    assert b.corrected == a.corrected == 6 * 120


@pytest.mark.parametrize(("name", "bad", "error"), [
    ("players", 0, ValueError), ("players", 1.5, TypeError), ("rtt", -1, ValueError), ("rtt", 2000, ValueError),
    ("jitter", math.nan, ValueError), ("loss", 100, ValueError), ("seconds", 1, ValueError), ("seed", -1, ValueError),
])  # fmt: skip
def test_bad_input_is_named(name, bad, error):
    with pytest.raises(error, match=name):
        selftest.run(**{name: bad})
