"""Conversion of Python arguments to floats and tuples. Errors name the argument."""

import operator
from math import sqrt

import numpy as np

from pycct.args.plain import as_float, short
from pycct.reference.vec import length, max_abs

# Largest deviation of a quaternion's length from 1.
NEAR_UNIT = 1e-3
# Largest coordinate of a scene, metres. Beyond it, float64 resolves no better than a millimetre.
FARTHEST = 1e12


def as_positive(value, name):
    """Return a finite float > 0."""
    x = as_float(value, name)
    if not x > 0.0:
        raise ValueError(f"{name} must be > 0, got {x}")
    return x


def as_not_negative(value, name):
    """Return a finite float >= 0."""
    x = as_float(value, name)
    if not x >= 0.0:
        raise ValueError(f"{name} must be >= 0, got {x}")
    return x


def _as_numbers(value, name, n, what):
    if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)):
        raise TypeError(f"{name} must be {what}, not {type(value).__name__}")
    try:
        numbers = tuple(value)
    except TypeError:
        raise TypeError(f"{name} must be {what}, not {type(value).__name__}") from None
    if len(numbers) != n:
        raise ValueError(f"{name} must be {what}, got {len(numbers)} numbers")
    return tuple(as_float(x, name) for x in numbers)


def as_vec3(value, name):
    """Return three finite floats."""
    return _as_numbers(value, name, 3, "three numbers")


def as_place(value, name):
    """Return a position within FARTHEST of the origin."""
    v = as_vec3(value, name)
    if max_abs(v) > FARTHEST:
        raise ValueError(f"{name} must lie within {FARTHEST:g} m of the origin, got {v}")
    return v


def as_unit(value, name):
    """Return the unit vector of a vector of any length but zero."""
    v = as_vec3(value, name)
    m = max_abs(v)
    if m == 0.0:
        raise ValueError(f"{name} must not be zero")
    # Scaled first, so that huge and tiny vectors keep their direction.
    v = (v[0] / m, v[1] / m, v[2] / m)
    m = length(v)
    # A unit vector keeps its bits.
    if m != 1.0:
        v = (v[0] / m, v[1] / m, v[2] / m)
    return v


def as_quat(value, name):
    """Return a unit quaternion (x, y, z, w), normalised if its length is within NEAR_UNIT of 1."""
    x, y, z, w = _as_numbers(value, name, 4, "a quaternion (x, y, z, w)")
    m = sqrt(x * x + y * y + z * z + w * w)
    if not 1.0 - NEAR_UNIT <= m <= 1.0 + NEAR_UNIT:
        raise ValueError(f"{name} must be a unit quaternion, its length is {m}")
    if m != 1.0:
        return (x / m, y / m, z / m, w / m)
    return (x, y, z, w)


def as_bool(value, name):
    """Return True or False; NumPy's values are accepted."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {short(value)}")


def as_bits(value, name):
    """Return a set of 32 bits."""
    try:
        bits = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if not 0 <= bits <= 0xFFFFFFFF:
        raise ValueError(f"{name} must fit into 32 bits, got {bits}")
    return bits


def as_behavior(value, name):
    """Return bits of Behavior."""
    bits = as_bits(value, name)
    if bits > 7:
        raise ValueError(f"{name} must be Behavior flags, from 0 to 7, got {bits}")
    return bits


def as_mode(value, enum, name):
    """Return a member of an enum, given as member or by name."""
    if isinstance(value, enum):
        return value
    names = sorted(m.value for m in enum)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name} must be one of {names}, not {value!r}")
    return enum(value)


def as_table(value, name, columns):
    """Return a fresh (n, columns) float64 array of finite numbers, n >= 1."""
    try:
        # A complex array would lose its imaginary part with only a warning.
        if np.iscomplexobj(value):
            raise TypeError
        array = np.array(value, dtype=np.float64, order="C", copy=True)
    except OverflowError:
        raise ValueError(f"{name} must be finite") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers of shape (n, {columns})") from None
    if np.asarray(value).dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an array of real numbers of shape (n, {columns})")
    if array.ndim != 2 or array.shape[1] != columns:
        raise ValueError(f"{name} must have shape (n, {columns}), got {array.shape}")
    if array.shape[0] < 1:
        raise ValueError(f"{name} must have at least 1 rows, got {array.shape[0]}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def as_callback(value, name):
    """Return a callable or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value
