"""Arguments to arrays and numbers: errors name the argument."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["as_bits", "as_count", "as_number", "as_rows", "as_tick", "as_units", "as_whole"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

# Ticks and ids fit in 53 bits, so that a fractional tick counts them exactly.
LARGEST = 1 << 53


def as_count(value: Any, name: str, least: int = 1, most: int = LARGEST) -> int:
    """Convert an integer of a range."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not a Boolean")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}")
    return number


def as_tick(value: Any, name: str = "tick") -> int:
    """Convert the number of a whole tick."""
    return as_count(value, name, -LARGEST, LARGEST)


def as_bits(value: Any, name: str) -> int:
    """Convert a bit set of 32 bits."""
    return as_count(value, name, 0, 0xFFFFFFFF)


def as_number(value: Any, name: str, least: float = -math.inf, above: float = -math.inf) -> float:
    """Convert a finite number that is at least `least` and greater than `above`."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite")
    if number < least:
        raise ValueError(f"{name} must be >= {least:g}")
    if number <= above:
        raise ValueError(f"{name} must be > {above:g}")
    return number


def _numbers(value: ArrayLike, name: str, kinds: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of numbers") from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.float64)
    elif array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be an array of {'numbers' if 'f' in kinds else 'integers'}")
    return array


def as_rows(value: ArrayLike, name: str, n: int | None = None, width: int = 3, finite: bool = True) -> Doubles:
    """Convert to (n, width) float64; width 0 stands for (n,).

    One row serves all n. If n is None, any number of rows is valid.
    """
    array = _numbers(value, name, "fiu").astype(np.float64)
    tail = (width,) if width else ()
    if array.shape == tail and n is not None:
        array = np.broadcast_to(array, (n, *tail))
    if array.size == 0 and array.ndim == 1 and width and n in (None, 0):
        array = array.reshape(0, width)
    good = array.ndim == 1 + len(tail) and array.shape[1:] == tail and n in (None, array.shape[0])
    if not good:
        first = "n" if n is None else n
        want = f"({first}, {width})" if width else f"({first},)"
        raise ValueError(f"{name} must have shape {want}, got {array.shape}")
    if finite and not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array.reshape(array.shape[0], -1)).all(axis=1)))
        raise ValueError(f"{name} must be finite, row {row} is not")
    return np.ascontiguousarray(array)


def as_whole(value: ArrayLike, name: str, n: int | None = None) -> Ints:
    """Convert to (n,) int64 of ids or ticks; one integer serves all n."""
    array = _numbers(value, name, "iu")
    if array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.ndim == 0 and n is not None:
        array = np.broadcast_to(array, (n,))
    if array.ndim != 1 or n not in (None, array.shape[0]):
        raise ValueError(f"{name} must have shape ({'n' if n is None else n},), got {array.shape}")
    if array.size and (array.max() > LARGEST or array.min() < -LARGEST):
        raise ValueError(f"{name} must be from {-LARGEST} to {LARGEST}")
    return array.astype(np.int64)


def as_units(value: ArrayLike, name: str, n: int) -> Doubles:
    """Convert to (n, 3) unit vectors, with the bits that queries of a scene give them."""
    array = as_rows(value, name, n).copy()
    size = np.abs(array).max(axis=1, initial=0.0)
    if (size == 0.0).any():
        raise ValueError(f"{name} must not be zero, row {int(np.argmin(size))} is")
    array /= size[:, None]
    x, y, z = array.T
    array /= np.sqrt(x * x + y * y + z * z)[:, None]
    return array
