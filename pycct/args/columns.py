"""Columns of numbers for a caller: of a requested type, or in the caller's own array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def _holds(values: NDArray[Any], kind: np.dtype[Any]) -> bool:
    """Whether a type has a number for every value; lengths may lose digits."""
    if values.dtype.kind not in "iu" or kind.kind not in "iuf":
        return bool(np.can_cast(values.dtype, kind, "same_kind"))
    least, most = (
        (-(2 ** (np.finfo(kind).nmant + 1)), 2 ** (np.finfo(kind).nmant + 1))
        if kind.kind == "f"
        else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    )
    return values.size == 0 or (least <= int(values.min()) and int(values.max()) <= most)


def give_column(values: NDArray[Any], dtype: DTypeLike | None, out: NDArray[Any] | None) -> NDArray[Any]:
    """Return values as a new array of a type, or in ``out``."""
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    if dtype is not None:
        try:
            kind = np.dtype(dtype)
        except (TypeError, ValueError):
            raise TypeError(f"dtype must be a data type, not {type(dtype).__name__}") from None
        if out is not None and kind != out.dtype:
            raise TypeError(f"out must be an array of {kind}, not {out.dtype}")
    else:
        kind = values.dtype if out is None else out.dtype
    if not _holds(values, kind):
        name = "dtype" if out is None else "out"
        raise TypeError(f"{name} must be a type that holds the values of {values.dtype}, not {kind}")
    if out is None:
        return values.astype(kind)
    if out.shape != values.shape:
        raise ValueError(f"out must have shape {values.shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writeable")
    if any(step == 0 and size > 1 for step, size in zip(out.strides, out.shape, strict=True)):
        raise ValueError("out must have a place for each value")
    np.copyto(out, values, casting="unsafe")
    return out
