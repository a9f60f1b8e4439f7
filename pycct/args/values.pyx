# cython: language_level=3
"""Conversion of Python arguments to C values. Errors name the argument."""
import numpy as np

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport sqrt
from libc.stdint cimport uint32_t

from pycct.geometry.types cimport STATUS_NO_MEMORY, STATUS_NOT_FINITE
from pycct.geometry.vec cimport v3, v3_finite, v3_len, v3_max_abs

# An attribute of a module takes longer to read.
cdef object np_ndarray = np.ndarray

# Largest deviation of a quaternion's length from 1.
cdef double NEAR_UNIT = 1e-3
cdef double FARTHEST = 1e12
# All bits of Behavior.
cdef uint32_t ALL_BEHAVIOR = 7
# Most characters of a value in an error message.
cdef int LONGEST_VALUE = 80


cdef str short(object value):
    cdef str text
    if isinstance(value, int) and value.bit_length() > 256:
        # Python does not convert very long integers to text.
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE - 3] + "..."


cdef bint as_bool(object value, str name) except -1:
    if value is True or value is False:
        return value
    # NumPy's type has one of these names.
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {short(value)}")


cdef double as_float(object value, str name) except? -1.0:
    cdef double x
    if type(value) is float:
        x = <double>value
    else:
        # NumPy drops the imaginary part of a complex number with only a warning.
        if isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
            raise TypeError(f"{name} must be a number, not {type(value).__name__}")
        # Older NumPy converts a one-element array to a number with only a warning.
        if isinstance(value, np.ndarray) and value.ndim > 0:
            raise TypeError(f"{name} must be a number, not an array of shape {value.shape}")
        try:
            x = value
        except OverflowError:
            raise ValueError(f"{name} must be finite, got {short(value)}") from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None
    if x - x != 0.0:
        raise ValueError(f"{name} must be finite, got {x}")
    return x


cdef double as_positive(object value, str name) except? -1.0:
    cdef double x = as_float(value, name)
    if not x > 0.0:
        raise ValueError(f"{name} must be > 0, got {x}")
    return x


cdef double as_not_negative(object value, str name) except? -1.0:
    cdef double x = as_float(value, name)
    if not x >= 0.0:
        raise ValueError(f"{name} must be >= 0, got {x}")
    return x


cdef bint _read_array(object value, vec3* v) except -1:
    """Read an array of three float64 or float32 in place; False for any other array."""
    cdef Py_buffer b
    cdef const char* p
    cdef Py_ssize_t step
    cdef char kind = 0
    try:
        PyObject_GetBuffer(value, &b, PyBUF_STRIDES | PyBUF_FORMAT)
    except (BufferError, ValueError):
        # Dates, for example, have no buffer.
        return False
    # Other byte orders have a prefix.
    if b.ndim == 1 and b.shape[0] == 3 and b.format[1] == 0:
        kind = b.format[0]
        p, step = <const char*>b.buf, b.strides[0]
        if kind == b"d":
            v[0] = v3((<const double*>p)[0], (<const double*>(p + step))[0], (<const double*>(p + 2 * step))[0])
        elif kind == b"f":
            v[0] = v3((<const float*>p)[0], (<const float*>(p + step))[0], (<const float*>(p + 2 * step))[0])
    PyBuffer_Release(&b)
    return kind == b"d" or kind == b"f"


cdef vec3 as_vec3(object value, str name) except *:
    cdef vec3 v
    cdef object x, y, z
    cdef tuple t
    if type(value) is tuple:
        t = <tuple>value
        if len(t) != 3:
            raise ValueError(f"{name} must be three numbers, got {len(t)}")
        x, y, z = t[0], t[1], t[2]
    elif type(value) is np_ndarray and _read_array(value, &v):
        if not v3_finite(v):
            raise ValueError(f"{name} must be finite, got {from_vec3(v)}")
        return v
    else:
        if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)):
            raise TypeError(f"{name} must be three numbers, not {type(value).__name__}")
        try:
            t = tuple(value)
        except TypeError:
            raise TypeError(f"{name} must be three numbers, not {type(value).__name__}") from None
        if len(t) != 3:
            raise ValueError(f"{name} must be three numbers, got {len(t)}")
        x, y, z = t[0], t[1], t[2]
    if type(x) is float and type(y) is float and type(z) is float:
        v = v3(<double>x, <double>y, <double>z)
        if not v3_finite(v):
            raise ValueError(f"{name} must be finite, got {short(t)}")
        return v
    return v3(as_float(x, name), as_float(y, name), as_float(z, name))


cdef vec3 as_unit(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    cdef double m = v3_max_abs(v)
    if m == 0.0:
        raise ValueError(f"{name} must not be zero")
    # Scaled first, so that huge and tiny vectors keep their direction.
    v = v3(v.x / m, v.y / m, v.z / m)
    m = v3_len(v)
    # A unit vector keeps its bits.
    if m != 1.0:
        v = v3(v.x / m, v.y / m, v.z / m)
    return v


cdef vec3 as_place(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    if v3_max_abs(v) > FARTHEST:
        raise ValueError(f"{name} must be within {FARTHEST:g} m of the origin, got {from_vec3(v)}")
    return v


cdef uint32_t as_bits(object value, str name) except? 0:
    if type(value) is int and 0 <= value <= 0xFFFFFFFF:
        return <uint32_t>value
    # A float that happens to be whole is no bit set.
    if not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an integer, not {short(value)}")
    try:
        bits = value.__index__()
    except Exception:
        raise TypeError(f"{name} must be an integer, not {short(value)}") from None
    if not 0 <= bits <= 0xFFFFFFFF:
        raise ValueError(f"{name} must fit into 32 bits, got {short(bits)}")
    return <uint32_t>bits


cdef uint32_t as_behavior(object value, str name) except? 0:
    cdef uint32_t bits = as_bits(value, name)
    if bits > ALL_BEHAVIOR:
        raise ValueError(f"{name} must be Behavior flags, from 0 to {ALL_BEHAVIOR}, got {bits}")
    return bits


cdef quat as_quat(object value, str name) except *:
    cdef quat q
    cdef double m
    cdef tuple t
    if type(value) is tuple:
        t = <tuple>value
    else:
        if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)):
            raise TypeError(f"{name} must be a quaternion (x, y, z, w), not {type(value).__name__}")
        try:
            t = tuple(value)
        except TypeError:
            raise TypeError(f"{name} must be a quaternion (x, y, z, w), not {type(value).__name__}") from None
    if len(t) != 4:
        raise ValueError(f"{name} must be a quaternion (x, y, z, w), got {len(t)} numbers")
    q.x = as_float(t[0], name)
    q.y = as_float(t[1], name)
    q.z = as_float(t[2], name)
    q.w = as_float(t[3], name)
    m = sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
    if not (1.0 - NEAR_UNIT <= m <= 1.0 + NEAR_UNIT):
        raise ValueError(f"{name} must be a unit quaternion, but its length is {m}")
    if m != 1.0:
        q.x /= m
        q.y /= m
        q.z /= m
        q.w /= m
    return q


cdef object as_table(object value, str name, int columns, int min_rows):
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
    if array.shape[0] < min_rows:
        raise ValueError(f"{name} must have at least {min_rows} rows, got {array.shape[0]}")
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        raise ValueError(f"{name} must be finite, row {good.argmin()} is {tuple(array[good.argmin()].tolist())}")
    return array


cdef tuple from_vec3(vec3 v):
    return (v.x, v.y, v.z)


cdef tuple from_quat(quat q):
    return (q.x, q.y, q.z, q.w)


cdef int raise_status(int code) except -1:
    """Raise the exception of a negative status. No other function raises it."""
    if code >= 0:
        return 0
    if code == STATUS_NO_MEMORY:
        raise MemoryError("pycct: out of memory")
    if code == STATUS_NOT_FINITE:
        raise FloatingPointError("the computed position is not finite; nothing was changed")
    raise RuntimeError(f"pycct: internal error {code}")
