"""Sine, cosine and arc by polynomials: the same bits on every machine, which libm does not give.

`pycct.geometry.trigonometry` contains the same operations in the same order.
"""

# pi / 2 in three parts. The first two have 33 bits, so that multiples up to 2^20 are exact.
QUARTER_1 = 1.5707963267341256
QUARTER_2 = 6.077100506303966e-11
QUARTER_3 = 2.0222662487959506e-21
TWO_OVER_PI = 0.6366197723675814
# Larger angles are first reduced by multiples of TURN, radians.
LARGEST = 1e6
TURN = 6.283185307179586
# pi and pi / 2: a double, and what is missing to the next 53 bits.
PI_HIGH = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
HALF_HIGH = 1.5707963267948966
HALF_LOW = 6.123233995736766e-17
# Arcs of 0, 1/4, 1/2, 3/4 and 1, in the same way.
ARC_HIGH = (0.0, 0.24497866312686414, 0.4636476090008061, 0.6435011087932844, 0.7853981633974483)
ARC_LOW = (0.0, 1.0698755618734451e-17, 2.2698777452961687e-17, 1.5834785051444286e-17, 3.061616997868383e-17)
# `arc` scales larger and smaller coordinates, so that no product overflows or loses bits.
HUGE = 1e300
TINY = 1e-290
BY = 1.1102230246251565e-16


def _remainder(x):
    """Return x modulo TURN, exactly: a long division with subtractions of halves."""
    left, multiple = abs(x), TURN
    while multiple <= 0.5 * left:
        multiple *= 2.0
    while multiple >= TURN:
        if left >= multiple:
            left -= multiple
        multiple *= 0.5
    return -left if x < 0.0 else left


def _sine_near(x, tail):
    """Sine of x + tail within pi / 4: the series of Taylor up to x^17."""
    z = x * x
    r = z * (
        0.008333333333333333
        + z
        * (
            -0.0001984126984126984
            + z
            * (
                2.7557319223985893e-06
                + z
                * (
                    -2.505210838544172e-08
                    + z * (1.6059043836821613e-10 + z * (-7.647163731819816e-13 + z * 2.8114572543455206e-15))
                )
            )
        )
    )
    return x + (z * x * (r - 0.16666666666666666) + tail * (1.0 - 0.5 * z))


def _cosine_near(x, tail):
    """Cosine of x + tail within pi / 4: the series of Taylor up to x^18."""
    z = x * x
    half = 0.5 * z
    w = 1.0 - half
    r = z * (
        0.041666666666666664
        + z
        * (
            -0.001388888888888889
            + z
            * (
                2.48015873015873e-05
                + z
                * (
                    -2.755731922398589e-07
                    + z
                    * (
                        2.08767569878681e-09
                        + z * (-1.1470745597729725e-11 + z * (4.779477332387385e-14 - z * 1.5619206968586225e-16))
                    )
                )
            )
        )
    )
    return w + (((1.0 - w) - half) + (z * r - x * tail))


def _turned(x, ahead):
    """Sine of x + ahead quarters of a turn."""
    if not abs(x) <= LARGEST:
        if x - x != 0.0:
            return x - x
        x = _remainder(x)
    n = int(x * TWO_OVER_PI + (0.5 if x >= 0.0 else -0.5))
    near = x - n * QUARTER_1
    product = n * QUARTER_2
    rest = near - product
    product = n * QUARTER_3 - ((near - rest) - product)
    high = rest - product
    low = (rest - high) - product
    n = (n + ahead) & 3
    if n & 1:
        near = _cosine_near(high, low)
    else:
        near = _sine_near(high, low)
    return -near if n & 2 else near


def sine(x):
    """Sine of an angle in radians, the same bits on every machine.

    The error is below 1e-15 up to 1e6 radians. Larger angles are first taken modulo the double
    that is closest to 2 pi.
    """
    return _turned(x, 0)


def cosine(x):
    """Cosine of an angle in radians, with the accuracy of `sine`."""
    return _turned(x, 1)


def arc(y, x):
    """Angle of the point (x, y) in radians, -pi to pi, the same bits on every machine.

    The error is below 1e-15. The origin has angle 0, and -0.0 counts as 0.0. The angle of NaN or
    infinity is NaN.
    """
    a, b = abs(x), abs(y)
    if a - a != 0.0 or b - b != 0.0:
        return (a - a) + (b - b)
    longer, shorter = (a, b) if a >= b else (b, a)
    if longer == 0.0:
        return 0.0
    if longer > HUGE:
        longer *= BY
        shorter *= BY
    elif longer < TINY:
        longer /= BY
        shorter /= BY
    k = int(4.0 * (shorter / longer) + 0.5)
    share = 0.25 * k
    t = (shorter - share * longer) / (longer + share * shorter)
    z = t * t
    # The series of Taylor up to t^21, |t| <= 1/8.
    series = z * (
        -0.3333333333333333
        + z
        * (
            0.2
            + z
            * (
                -0.14285714285714285
                + z
                * (
                    0.1111111111111111
                    + z
                    * (
                        -0.09090909090909091
                        + z
                        * (
                            0.07692307692307693
                            + z
                            * (
                                -0.06666666666666667
                                + z * (0.058823529411764705 + z * (-0.05263157894736842 + z * 0.047619047619047616))
                            )
                        )
                    )
                )
            )
        )
    )
    high = ARC_HIGH[k]
    low = ARC_LOW[k] + (t + t * series)
    if b > a:
        low = HALF_LOW - low
        high = HALF_HIGH - high
    if x < 0.0:
        low = PI_LOW - low
        high = PI_HIGH - high
    high += low
    return -high if y < 0.0 else high
