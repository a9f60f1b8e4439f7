"""Numbers of a glTF: buffers, buffer views, accessors (sparse, normalized, with strides), Draco."""
from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct.levels.raw import MOST, Budget, Floats

__all__ = ["DRACO", "MESHOPT", "Accessors", "number_of", "row_of", "rows_of", "unpack_draco"]

DRACO = "KHR_draco_mesh_compression"
MESHOPT = ("EXT_meshopt_compression", "KHR_meshopt_compression")
COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTH = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
# Numbers of an accessor without a bufferView (zeros, sparse changes) for each byte of the file.
EMPTY_PER_BYTE = 16
# Triangles in a byte of Draco data: a flat grid, the best case, has about 30.
DRACO_PER_BYTE = 100

Numbers = NDArray[Any]


def rows_of(tree: dict[str, Any], name: str) -> list[Any]:
    """A list of the description, empty if it is not there."""
    found = tree.get(name, [])
    if not isinstance(found, list):
        raise ValueError(f"its {name} are not a list")
    return found


def row_of(tree: dict[str, Any], name: str, index: Any) -> dict[str, Any]:
    """One object of such a list."""
    rows = rows_of(tree, name)
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(rows):
        raise ValueError(f"it refers to {name}[{index!r:.40}], which is not there")
    if not isinstance(rows[index], dict):
        raise ValueError(f"{name}[{index}] is not an object")
    return rows[index]


def number_of(row: dict[str, Any], key: str, default: int | None = None, least: int = 0) -> int:
    """A whole number of an object."""
    value = row.get(key, default)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{key} must be a whole number of at least {least}, not {value!r:.40}")
    return value


def object_of(row: dict[str, Any], key: str) -> dict[str, Any]:
    """An object in an object, empty if it is not there."""
    found = row.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"{key} is not an object")
    return found


class Accessors:
    """The accessors of one file. Memory is taken from the budget before it is used."""

    def __init__(self, tree: dict[str, Any], packed: bytes | None, get: Callable[[str], bytes], size: int,
                 budget: Budget) -> None:
        self.tree = tree
        self.packed = packed
        self.get = get
        self.budget = budget
        self.empty_left = EMPTY_PER_BYTE * size
        self.buffers: dict[int, bytes] = {}
        self.sparse: dict[int, Numbers] = {}
        self.counted: set[int] = set()

    def count(self, index: Any) -> int:
        """The number of elements, without reading them."""
        return number_of(row_of(self.tree, "accessors", index), "count", least=1)

    def reserve(self, index: Any, unpacked: bool = False) -> int:
        """Count what an accessor takes by itself into the budget, once; its number of elements.

        Sparse accessors are copied, others are read where they are used. Accessors of compressed
        meshes have no bytes.
        """
        row = row_of(self.tree, "accessors", index)
        count = number_of(row, "count", least=1)
        if count > MOST:
            raise ValueError(f"accessor {index} has {count} elements: more than a mesh can number (max_bytes)")
        if index not in self.counted:
            self.counted.add(index)
            numbers = count * WIDTH.get(str(row.get("type")), 16)
            if "sparse" in row:
                self.budget.take(numbers=numbers)
            if "bufferView" not in row and not unpacked:
                self.empty_left -= numbers
        return count

    def check_bounds(self, index: Any) -> None:
        """Raise ValueError if an accessor of vectors reaches beyond its bytes."""
        row = row_of(self.tree, "accessors", index)
        if "bufferView" in row:
            self._elements(row, _component(row), number_of(row, "count", least=1), WIDTH.get(str(row.get("type")), 1))

    def is_stored(self) -> None:
        """Raise ValueError if there are far more zeros than bytes."""
        if self.empty_left < 0:
            raise ValueError("its accessors without bytes take far more memory than the file has bytes (max_bytes)")

    def vectors(self, index: Any, what: str, width: int = 3,
                elements: NDArray[np.integer[Any]] | None = None) -> Floats:
        """Vectors as floats: all, or some elements, in time linear in those."""
        row = row_of(self.tree, "accessors", index)
        if WIDTH.get(str(row.get("type"))) != width:
            raise ValueError(f"{what} must be vectors of {width} numbers, not {row.get('type')!r:.40}")
        if "sparse" not in row:
            found = self._read(row, width)
        else:
            if index not in self.sparse:
                self.sparse[index] = self._read(row, width)
            found = self.sparse[index]
        return _as_floats(found if elements is None else found[elements], row.get("normalized", False) is True)

    def indices(self, index: Any) -> NDArray[np.int64]:
        """Indices of vertices."""
        row = row_of(self.tree, "accessors", index)
        if row.get("type") != "SCALAR" or row.get("componentType") not in (5121, 5123, 5125):
            raise ValueError("indices must be unsigned whole numbers")
        return self._read(row, 1).reshape(-1).astype(np.int64)

    def view(self, index: Any) -> tuple[memoryview, int]:
        """The bytes of a buffer view, and its stride (0: one element after the other)."""
        row = row_of(self.tree, "bufferViews", index)
        extensions = object_of(row, "extensions")
        data = self._buffer(row.get("buffer"), next((e for e in MESHOPT if e in extensions), None))
        offset, length = number_of(row, "byteOffset", 0), number_of(row, "byteLength", least=1)
        if offset + length > len(data):
            raise ValueError(f"bufferView {index} reaches beyond its buffer; the file is broken or truncated")
        stride = number_of(row, "byteStride", 0)
        return memoryview(data)[offset:offset + length], stride

    def _buffer(self, index: Any, meshopt: str | None) -> bytes:
        row = row_of(self.tree, "buffers", index)
        if index not in self.buffers:
            uri = row.get("uri")
            if uri is None and index == 0 and self.packed is not None:
                data = self.packed
            elif uri is None and meshopt:
                raise ValueError(f"{meshopt} is not read; {UNPACK_MESHOPT}")
            elif not isinstance(uri, str):
                raise ValueError(f"buffer {index} has no bytes")
            elif uri.startswith("data:"):
                data = _data(uri)
            else:
                data = self.get(uri)
            self.buffers[index] = data
        data = self.buffers[index]
        length = number_of(row, "byteLength", least=1)
        if length > len(data):
            raise ValueError(f"buffer {index} has {len(data)} bytes instead of {length}; the file is truncated")
        return data

    def _read(self, row: dict[str, Any], width: int) -> Numbers:
        """The elements of an accessor, (count, width)."""
        count = number_of(row, "count", least=1)
        kind = _component(row)
        if "bufferView" in row:
            found = self._elements(row, kind, count, width)
        else:
            found = np.broadcast_to(np.zeros((1, width), kind), (count, width))
        if "sparse" not in row:
            return found
        sparse = object_of(row, "sparse")
        n = number_of(sparse, "count")
        if n == 0:
            return found
        if n > count:
            raise ValueError("a sparse accessor changes more elements than it has")
        at = object_of(sparse, "indices")
        if at.get("componentType") not in (5121, 5123, 5125):
            raise ValueError("the indices of a sparse accessor must be unsigned whole numbers")
        where = self._elements(at, _component(at), n, 1).reshape(-1).astype(np.int64)
        if where.max() >= count:
            raise ValueError("a sparse accessor changes an element that is not there")
        found = found.copy()
        found[where] = self._elements(object_of(sparse, "values"), kind, n, width)
        return found

    def _elements(self, row: dict[str, Any], kind: np.dtype[Any], count: int, width: int) -> Numbers:
        """Elements of a buffer view, as they are there."""
        data, stride = self.view(row.get("bufferView"))
        offset = number_of(row, "byteOffset", 0)
        size = kind.itemsize * width
        stride = stride or size
        if stride < size:
            raise ValueError(f"byteStride {stride} is less than the {size} bytes of an element")
        if offset + stride * (count - 1) + size > len(data):
            raise ValueError("an accessor reaches beyond its bufferView; the file is broken or truncated")
        return np.ndarray((count, width), kind, data, offset, (stride, kind.itemsize))


def _component(row: dict[str, Any]) -> np.dtype[Any]:
    kind = row.get("componentType")
    if isinstance(kind, bool) or not isinstance(kind, int) or kind not in COMPONENTS:
        raise ValueError(f"no componentType {kind!r:.40} is known")
    return np.dtype(COMPONENTS[kind])


def _as_floats(found: Numbers, normalized: bool) -> Floats:
    """As floats; normalized whole numbers span 0 to 1, or -1 to 1."""
    kind = found.dtype
    values = np.ascontiguousarray(found, np.float64)
    if normalized and kind.kind in "iu":
        values = values / float(np.iinfo(kind).max)
        if kind.kind == "i":
            np.maximum(values, -1.0, out=values)
    return values


def _data(uri: str) -> bytes:
    """The bytes of a ``data:`` address."""
    head, comma, text = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        raise ValueError("a buffer's data is not written in base64")
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError) as e:
        raise ValueError(f"a buffer's data cannot be read: {e}") from None


# --- compression --------------------------------------------------------------------------------

UNPACK_MESHOPT = "unpack the file with `gltfpack -noq -i packed.glb -o plain.glb` (0.22 or newer), or export it without"
UNPACK_DRACO = ("install DracoPy (pip install pycct[draco]), "
                "or unpack the file with `gltf-transform cp packed.glb plain.glb`")


def draco_counts(data: bytes) -> tuple[int, int]:
    """Vertices and triangles that a Draco mesh announces."""
    if len(data) < 14 or data[:5] != b"DRACO":
        raise ValueError(f"{DRACO}: no Draco data where it should be")
    if data[5:7] != b"\2\2" or data[7] != 1 or data[8] > 1:
        raise ValueError(f"{DRACO}: only meshes of version 2.2 are read; {UNPACK_DRACO.partition(', or ')[2]}")
    if data[9] or data[10]:
        raise ValueError(f"{DRACO}: data with flags or metadata is not read; {UNPACK_DRACO.partition(', or ')[2]}")
    # Sequential data begin with the triangles; edgebreaker data with one more byte and vertices.
    at = 11 + data[8]
    first, at = _varint(data, at)
    second, _ = _varint(data, at)
    return (first, second) if data[8] else (second, first)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for k in range(5):
        if at + k >= len(data):
            break
        value |= (data[at + k] & 127) << 7 * k
        if not data[at + k] & 128:
            return value, at + k + 1
    raise ValueError(f"{DRACO}: its data is broken or truncated")


def unpack_draco(data: bytes, vertices: int, triangles: int) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices and triangles of a Draco mesh that has at most as many as its accessors say."""
    try:
        import DracoPy
    except ImportError:
        raise ValueError(f"{DRACO} is not read; {UNPACK_DRACO}") from None
    n, m = draco_counts(data)
    if n > vertices or m > triangles:
        raise ValueError(f"{DRACO}: its data has {n} vertices and {m} triangles, "
                         f"its accessors have {vertices} and {triangles}")
    if m > DRACO_PER_BYTE * len(data):
        raise ValueError(f"{DRACO}: {len(data)} bytes cannot hold {m} triangles; its data is broken or truncated")
    try:
        mesh = DracoPy.decode(data)
        points = np.array(mesh.points, np.float64).reshape(-1, 3)
        faces = np.array(mesh.faces, np.int64).reshape(-1, 3)
    except MemoryError:
        raise
    except Exception as e:                                   # whatever its decoder raises
        raise ValueError(f"{DRACO}: its data cannot be read: {type(e).__name__}: {e}") from e
    return points, faces


def vector_of(row: dict[str, Any], key: str, default: tuple[float, ...]) -> list[float]:
    """Numbers of an object, all of them finite."""
    value = row.get(key, default)
    if not isinstance(value, (list, tuple)) or len(value) != len(default):
        raise ValueError(f"{key} must be {len(default)} numbers")
    if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in value):
        raise ValueError(f"{key} must be {len(default)} numbers")
    try:
        found = [float(x) for x in value]
    except OverflowError:
        found = [math.inf]
    if not all(map(math.isfinite, found)):
        raise ValueError(f"{key}: a vertex or node transform is not finite")
    return found
