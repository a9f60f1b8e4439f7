"""Random numbers from integers, and points of a circle: the same bits everywhere, in any batch."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Draws", "circle", "draw_below", "draw_bits", "draw_uniform"]

_T = TypeVar("_T")
_MASK = 0xFFFFFFFFFFFFFFFF
_STEP, _A, _B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mixed(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * _A) & _MASK
    x = ((x ^ (x >> 27)) * _B) & _MASK
    return x ^ (x >> 31)


def draw_bits(*keys: ArrayLike) -> NDArray[np.uint64]:
    """Hash integers to 64 random bits.

    Parameters
    ----------
    *keys : array_like of integers
        Broadcast against each other. A result depends on the keys of its own element only.

    Returns
    -------
    ndarray of uint64
    """
    arrays = np.broadcast_arrays(*[np.asarray(key).astype(np.uint64) for key in keys])
    h = np.zeros(np.shape(arrays[0]), np.uint64)
    # NumPy warns about the overflow of scalars, which is meant here, but not about that of arrays.
    flat = [np.atleast_1d(array) for array in arrays]
    bits = np.atleast_1d(h)
    for array in flat:
        bits = (bits ^ array) + np.uint64(_STEP)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(_A)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(_B)
        bits = bits ^ (bits >> np.uint64(31))
    return bits.reshape(h.shape)


def draw_uniform(*keys: ArrayLike) -> NDArray[np.float64]:
    """Hash integers to numbers from 0 (included) to 1 (excluded), multiples of 2**-53."""
    return (draw_bits(*keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_below(n: ArrayLike, *keys: ArrayLike) -> NDArray[np.int64]:
    """Hash integers to an integer from 0 to `n` - 1; `n` is one number or an array, 1 to 2**32."""
    high = draw_bits(*keys) >> np.uint64(32)
    return ((high * np.asarray(n).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


class Draws:
    """A stream of random numbers for code that draws one after another.

    Parameters
    ----------
    *keys : int
        Equal keys give equal streams.
    """

    def __init__(self, *keys: int) -> None:
        state = 0
        for key in keys:
            state = _mixed(((state ^ (key & _MASK)) + _STEP) & _MASK)
        self._state = state

    def below(self, n: int) -> int:
        """The next integer from 0 to `n` - 1."""
        self._state = (self._state + _STEP) & _MASK
        return ((_mixed(self._state) >> 32) * n) >> 32

    def one_of(self, values: list[_T] | tuple[_T, ...]) -> _T:
        """One element, each with the same chance."""
        return values[self.below(len(values))]

    def chance(self, numerator: int, denominator: int) -> bool:
        """True in `numerator` of `denominator` cases."""
        return self.below(denominator) < numerator

    def shuffled(self, values: list[_T]) -> list[_T]:
        """The elements in a random order, as a new list."""
        values = list(values)
        for i in range(len(values) - 1, 0, -1):
            k = self.below(i + 1)
            values[i], values[k] = values[k], values[i]
        return values


@lru_cache(64)
def circle(n: int) -> NDArray[np.float64]:
    """Unit vectors that divide a turn into `n` equal parts, (n, 2).

    The first is (1, 0), the next is to its left. Sums, products and square roots of Python floats
    give them, and no function of the C library does.
    """
    points = np.empty((n, 2))
    for k in range(n):
        # The nearest eighth of a turn, and the rest: an angle of at most an eighth of a turn.
        quarter = (8 * k + n) // (2 * n)
        t = (4 * k - quarter * n) / n * 1.5707963267948966
        sine = cosine = 0.0
        for m in range(10, 0, -1):
            sine = (1.0 + sine) * (-t * t / ((2 * m) * (2 * m + 1)))
            cosine = (1.0 + cosine) * (-t * t / ((2 * m - 1) * (2 * m)))
        sine, cosine = t * (1.0 + sine), 1.0 + cosine
        length = float(np.sqrt(sine * sine + cosine * cosine))
        x, y = cosine / length, sine / length
        points[k] = ((x, y), (-y, x), (-x, -y), (y, -x))[quarter % 4]
    points.flags.writeable = False
    return points
