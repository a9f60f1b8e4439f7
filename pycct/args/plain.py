"""Conversion of arguments in plain Python, for modules that must work without compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

# Letters of a value in an error message.
LONGEST_VALUE = 80


def short(value: Any) -> str:
    """Repr of a value for an error message."""
    if isinstance(value, int) and value.bit_length() > 256:
        # Python refuses to write out very long integers.
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def check_long_ids(array: np.ndarray[Any, Any]) -> None:
    """KeyError if an array of Python integers has one beyond 64 bits, which no object has as id."""
    numbers = array.reshape(-1).tolist()
    if all(type(number) is int for number in numbers):
        for number in numbers:
            if not -(2**63) <= number < 2**63:
                raise KeyError(number if number.bit_length() <= 256 else short(number))


def as_float(value: Any, name: str) -> float:
    """Return a finite float."""
    if isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    # Older NumPy converts a one-element array to a number with only a warning.
    if isinstance(value, np.ndarray) and value.ndim > 0:
        raise TypeError(f"{name} must be a number, not an array of shape {value.shape}")
    try:
        x = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite, got {short(value)}") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None
    if x - x != 0.0:
        raise ValueError(f"{name} must be finite, got {x}")
    return x
