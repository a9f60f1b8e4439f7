# cython: language_level=3
"""Rows of three numbers in an array of the caller. See the header."""
import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset

from pycct.args.values cimport FARTHEST
from pycct.geometry.vec cimport v3, vec3

from pycct.args.plain import check_long_ids


cdef vec3 row_load(const vector_rows* r, int64_t i) noexcept nogil:
    cdef const char* p = r.data + i * r.stride
    if r.single:
        return v3((<const float*>p)[0], (<const float*>(p + r.inner))[0], (<const float*>(p + 2 * r.inner))[0])
    return v3((<const double*>p)[0], (<const double*>(p + r.inner))[0], (<const double*>(p + 2 * r.inner))[0])


cdef int64_t rows_check(const vector_rows* r, int64_t n, double limit) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if not within(row_load(r, i), limit):
            return i
    return -1


cdef object as_numbers(object value, str name):
    array = value if type(value) is np.ndarray else None
    if array is None:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{name} must be an array of numbers") from None
    kind = array.dtype.kind
    if kind not in "fiu" and array.size:
        raise TypeError(f"{name} must be an array of floats, not of {array.dtype}")
    if kind != "f" or not array.dtype.isnative or array.dtype.itemsize not in (4, 8) or not array.flags.aligned:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return array


cdef object as_vectors(object value, str name, Py_ssize_t n, vector_rows* rows):
    cdef const double[:, :] d
    cdef const float[:, :] f
    cdef int64_t bad
    array = as_numbers(value, name)
    if array.ndim != 2 or array.shape[1] != 3 or (n >= 0 and array.shape[0] != n):
        if not (array.ndim == 1 and array.shape[0] == 0 and n <= 0):
            raise ValueError(f"{name} must have shape ({'n' if n < 0 else n}, 3), got {array.shape}")
        array = array.reshape(0, 3)
    memset(rows, 0, sizeof(vector_rows))
    if array.shape[0] == 0:
        return array
    if array.dtype.itemsize == 8:
        d = array
        rows.data, rows.stride, rows.inner = <const char*>&d[0, 0], d.strides[0], d.strides[1]
    else:
        f = array
        rows.data, rows.stride, rows.inner = <const char*>&f[0, 0], f.strides[0], f.strides[1]
        rows.single = True
    bad = rows_check(rows, array.shape[0], FARTHEST)
    if bad >= 0:
        raise ValueError(f"{name} must be finite and not exceed {FARTHEST:g} m, "
                         f"row {bad} is {tuple(array[bad].tolist())}")
    return array


cdef object as_weights(object value, str name, Py_ssize_t n):
    if value is None:
        return None
    array = np.array(as_numbers(value, name), np.float64, order="C")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array) & (array >= 0.0)).all():
        bad = int((np.isfinite(array) & (array >= 0.0)).argmin())
        raise ValueError(f"{name} must be finite and not negative, row {bad} is {array[bad]}")
    return array


cdef object as_ids(object value):
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError("ids must be an integer or an array of integers") from None
    if array.ndim > 1:
        raise ValueError(f"ids must be one integer or have shape (k,), got shape {array.shape}")
    if array.dtype.kind == "O":
        check_long_ids(array)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"ids must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise KeyError(int(array.max()))
    return np.ascontiguousarray(array, np.int64) if array.ndim else np.array(array, np.int64)


cdef int as_flags(object out, Py_ssize_t n) except -1:
    if not isinstance(out, np.ndarray) or out.dtype != np.uint8:
        raise TypeError("out must be a NumPy array of uint8")
    if out.shape != (n,):
        raise ValueError(f"out must have shape ({n},), got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writeable")
    return 0
