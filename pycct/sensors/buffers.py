"""The arrays that sensors fill: their names, shapes and types, and checks of the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pycct.args.plain import short
from pycct.sensors.kinds import KINDS

# Largest angle, radians: beyond it a turn loses a millionth.
LARGEST_ANGLE = 1e6
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Type of each field that is no float, and the fields of three numbers.
_TYPES: dict[str, np.dtype[Any]] = {
    "kind": np.dtype(np.uint8), "id": np.dtype(np.int64), "triangle": np.dtype(np.int32),
    "data": np.dtype(np.int64), "walkable": np.dtype(np.bool_),
}  # fmt: skip
_VECTORS = ("normal", "position", "velocity")


class Column(NamedTuple):
    """One array: number of its sensor, name of its field, shape for a member, possible types."""

    sensor: int
    field: str
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]


def checked_sensors(sensors: Any) -> dict[str, Any]:
    """Return the sensors by name."""
    if not isinstance(sensors, Mapping):
        raise TypeError(f"sensors must be a mapping of names to sensors, not {type(sensors).__name__}")
    found = dict(sensors)
    for name, sensor in found.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"sensors must have names that are not empty, not {short(name)}")
        if not isinstance(sensor, KINDS):
            kinds = ", ".join(kind.__name__ for kind in KINDS)
            raise TypeError(f"sensors[{short(name)}] must be one of {kinds}, not {type(sensor).__name__}")
    return found


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the type of floats."""
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"dtype must be float64 or float32, not {short(dtype)}") from None
    if found not in _FLOATS or not found.isnative:
        raise ValueError(f"dtype must be float64 or float32, not {short(dtype)}")
    return found


def columns_of(sensors: Mapping[str, Any], dtype: np.dtype[Any]) -> dict[str, Column]:
    """Return the arrays by key: name of the sensor, a dot, name of the field."""
    found: dict[str, Column] = {}
    types: tuple[np.dtype[Any], ...]
    for number, (name, sensor) in enumerate(sensors.items()):
        for field in sensor.fields:
            shape = sensor.shape + ((3,) if field in _VECTORS else ())
            # The first type is that of the sensors' own arrays.
            types = (_TYPES[field],) if field in _TYPES else (dtype, *(t for t in _FLOATS if t != dtype))
            key = f"{name}.{field}"
            if key in found:
                raise ValueError(f"sensors must not give two arrays the name {short(key)}")
            found[key] = Column(number, field, shape, types)
    return found


def fresh_buffers(columns: Mapping[str, Column], n: int) -> dict[str, npt.NDArray[Any]]:
    """Return new arrays for n members."""
    return {key: np.zeros((n, *column.shape), column.dtypes[0]) for key, column in columns.items()}


def as_angles(value: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of numbers of any shape."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be one number or one number for each member") from None
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number or an array of numbers, not {given.dtype}")
    return given


def checked_angles(value: Any, name: str, n: int) -> npt.NDArray[np.float64]:
    """Return one angle for each member, (n,) float64."""
    given = as_angles(value, name)
    if given.shape not in ((), (n,)):
        raise ValueError(f"{name} must be one number or have shape ({n},), got {given.shape}")
    angles = np.array(np.broadcast_to(given, (n,)), np.float64)
    if not (np.abs(angles) <= LARGEST_ANGLE).all():
        raise ValueError(f"{name} must be finite and from -{LARGEST_ANGLE:g} to {LARGEST_ANGLE:g} radians")
    return angles


def checked_out(
    out: Any, columns: Mapping[str, Column], buffers: Mapping[str, npt.NDArray[Any]], n: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays to fill: those of ``out``, and the sensors' own for the rest."""
    if out is None:
        return dict(buffers)
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a mapping of names to arrays, not {type(out).__name__}")
    found = dict(buffers)
    for key, array in out.items():
        if key not in columns:
            raise ValueError(f"out must have arrays for {', '.join(columns)}, not {short(key)}")
        column = columns[key]
        if not isinstance(array, np.ndarray):
            raise TypeError(f"out[{short(key)}] must be a NumPy array, not {type(array).__name__}")
        if array.dtype not in column.dtypes or not array.dtype.isnative:
            raise TypeError(f"out[{short(key)}] must be of {' or '.join(map(str, column.dtypes))}, not {array.dtype}")
        if array.shape != (n, *column.shape):
            raise ValueError(f"out[{short(key)}] must have shape {(n, *column.shape)}, got {array.shape}")
        if not array.flags.writeable:
            raise ValueError(f"out[{short(key)}] must be writeable")
        if not array.flags.c_contiguous or not array.flags.aligned:
            raise ValueError(f"out[{short(key)}] must be contiguous and aligned")
        found[key] = array
    spans = sorted((*np.lib.array_utils.byte_bounds(array), key) for key, array in found.items() if array.size)
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ValueError(f"out must not share memory between arrays: {short(one)} and {short(other)} do")
    return found
