"""Sine, cosine and arc: accuracy, equal bits of both packages, special values."""

import hashlib
import math
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from pycct import toolbox
from pycct.reference import trigonometry as reference

trigonometry = pytest.importorskip("pycct.geometry.trigonometry")

BIGGEST = 1.7976931348623157e308


def angles(n=4000):
    rng = np.random.default_rng(3)
    near = [k * math.pi / 4 + d for k in range(-40, 41) for d in (-1e-9, -1e-16, 0.0, 1e-16, 1e-9)]
    wide = (rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-18, 6, n)).tolist()
    return [0.0, -0.0, 5e-324, *near, *wide, *rng.uniform(-7, 7, n).tolist()]


def exact_sine(x):
    """Sine with forty digits."""
    getcontext().prec = 90
    x = Decimal(x)
    # pi by the formula of Machin.
    pi = 4 * (4 * exact_arc(Decimal(1) / 5) - exact_arc(Decimal(1) / 239))
    x -= (x / (2 * pi)).to_integral_value() * 2 * pi
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -60:
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def exact_arc(x):
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -80:
        total += term / k
        term *= -x * x
        k += 2
    return total


def test_sine_and_cosine_are_exact_within_an_ulp():
    for x in angles(60)[::3]:
        truth = exact_sine(x)
        assert abs(Decimal(trigonometry.sine(x)) - truth) <= Decimal("1.1") * Decimal(math.ulp(float(truth)))
    for x in angles():
        assert abs(trigonometry.sine(x) - math.sin(x)) <= 2.3e-16
        assert abs(trigonometry.cosine(x) - math.cos(x)) <= 2.3e-16
        assert -1.0 <= trigonometry.sine(x) <= 1.0


def test_arcs_are_exact_within_two_ulps():
    rng = np.random.default_rng(5)
    for a in rng.uniform(-math.pi, math.pi, 3000):
        for size in (1.0, 1e-3, 1e9, 1e305, 1e-305):
            y, x = size * math.sin(a), size * math.cos(a)
            assert abs(trigonometry.arc(y, x) - math.atan2(y, x)) <= 2 * math.ulp(a)
    assert trigonometry.arc(1, 0) == math.pi / 2 and trigonometry.arc(-1, 0) == -math.pi / 2
    assert trigonometry.arc(0, -1) == math.pi and trigonometry.arc(0, 0) == trigonometry.arc(0, 5) == 0
    assert trigonometry.arc(BIGGEST, BIGGEST) == trigonometry.arc(5e-324, 5e-324) == math.pi / 4


def test_both_packages_have_the_same_bits():
    rng = np.random.default_rng(7)
    every = [*angles(), 1e6, -1e6, 1e6 + 1, 1e17, -1e300, BIGGEST]
    for x in every:
        for name in ("sine", "cosine"):
            ours, theirs = getattr(trigonometry, name)(x), getattr(reference, name)(x)
            assert struct.pack("d", ours) == struct.pack("d", theirs), (name, x)
    points = rng.normal(size=(3000, 2)) * 10.0 ** rng.uniform(-310, 305, (3000, 2))
    for y, x in [*points.tolist(), (0.0, -1.0), (-0.0, -1.0), (1.0, 1.0), (3.0, 4.0)]:
        assert struct.pack("d", trigonometry.arc(y, x)) == struct.pack("d", reference.arc(y, x)), (y, x)


def test_every_machine_has_these_bits():
    rows = [trigonometry.sine(0.001 * k) for k in range(-9000, 9001)]
    rows += [trigonometry.cosine(0.001 * k) for k in range(-9000, 9001)]
    rows += [trigonometry.arc(0.01 * k, 1.0 - 0.003 * k) for k in range(-900, 901)]
    assert hashlib.sha256(struct.pack(f"<{len(rows)}d", *rows)).hexdigest()[:16] == "551fb9a68fda8f76"


@pytest.mark.parametrize("module", [trigonometry, reference], ids=["compiled", "reference"])
def test_large_angles_and_no_numbers(module):
    for bad in (math.inf, -math.inf, math.nan):
        assert math.isnan(module.sine(bad)) and math.isnan(module.cosine(bad))
    turn = Fraction(2 * math.pi)
    for x in (1e7, -3e12, 1e22, 1e300, BIGGEST):
        left = Fraction(x) % turn if x > 0 else -(Fraction(-x) % turn)
        assert module.sine(x) == module.sine(float(left)) and module.cosine(x) == module.cosine(float(left))
        assert abs(module.sine(x) ** 2 + module.cosine(x) ** 2 - 1) < 1e-15


def test_the_toolbox_has_them_and_names_bad_angles():
    for x in (0, 0.5, -3.0, 1e7, 1e300):
        assert toolbox.sine(x) == trigonometry.sine(x) and toolbox.cosine(x) == trigonometry.cosine(x)
        assert toolbox.arc(x, 2.0) == trigonometry.arc(x, 2.0)
    for bad, error in ((10**5000, ValueError), (math.nan, ValueError), (-math.inf, ValueError), ("a", TypeError),
                       (None, TypeError), (1j, TypeError), ([1.0], TypeError)):
        for call in (toolbox.sine, toolbox.cosine, lambda x: toolbox.arc(0.0, x)):
            with pytest.raises(error, match=r"^x must be"):
                call(bad)
        with pytest.raises(error, match=r"^y must be"):
            toolbox.arc(bad, 0.0)


def test_the_arc_of_no_number_is_none():
    """NaN as the number of a row of a table would read any memory."""
    bad = (math.nan, math.inf, -math.inf)
    for y, x in [(b, g) for b in bad for g in (*bad, 0.0, 1.0)] + [(g, b) for b in bad for g in (0.0, -1.0)]:
        assert math.isnan(trigonometry.arc(y, x)) and math.isnan(reference.arc(y, x))
