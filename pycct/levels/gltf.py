"""glTF and GLB: the nodes of the default scene, their transforms, meshes and materials.

Only geometry is read. Skins, morph targets and animations are not applied; images are not opened.
"""
from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pycct.levels.accessors import (
    DRACO,
    MESHOPT,
    UNPACK_MESHOPT,
    Accessors,
    number_of,
    object_of,
    row_of,
    rows_of,
    unpack_draco,
    vector_of,
)
from pycct.levels.beside import Beside
from pycct.levels.raw import (
    Budget,
    Floats,
    RawGeometry,
    RawLevel,
    RawNode,
    RawPlacement,
    Selection,
    is_checked,
)

__all__ = ["read_gltf"]

INSTANCING = "EXT_mesh_gpu_instancing"
# Extensions that change where triangles are, and are read.
READ = {DRACO, INSTANCING, "KHR_mesh_quantization"}
# Extensions that do not change where triangles are.
LOOKS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "MSFT_texture_", "KHR_lights_", "EXT_lights_", "KHR_xmp",
         "KHR_animation_pointer", "KHR_node_visibility", "EXT_mesh_features", "EXT_structural_metadata",
         "EXT_instance_features", "KHR_techniques_webgl", "KHR_audio", "MSFT_packing_")
TRIANGLES, STRIP, FAN = 4, 5, 6
# Bytes of parsed JSON: an object of few keys, a list, a number with its place, a text.
OBJECT_BYTES, LIST_BYTES, VALUE_BYTES, STRING_BYTES = 190, 80, 40, 64
# A description that takes less than this when parsed is not counted.
FREE_BYTES = 1 << 18

Ints64 = NDArray[np.int64]


def read_gltf(f: BinaryIO, packed: bool, beside: Beside, size: int, budget: Budget, selection: Selection,
              flat: bool) -> RawLevel:
    """Read a file of that size; `flat` counts each place of a mesh into the budget."""
    text, chunk = _chunks(f.read()) if packed else (f.read(), None)
    budget.take(numbers=max(_parsed_bytes(text) - FREE_BYTES, 0) // 8)
    tree = json.loads(_decoded(text))
    if not isinstance(tree, dict):
        raise ValueError("no object at its top")
    _check_asset(tree)
    for row in rows_of(tree, "buffers"):
        uri = row.get("uri") if isinstance(row, dict) else None
        if isinstance(uri, str) and not uri.startswith("data:"):
            size += beside.size(uri)
    accessors = Accessors(tree, chunk, beside.get, size, budget)
    return _Reader(tree, accessors, budget, selection, flat).read()


def _parsed_bytes(text: bytes) -> int:
    """An upper bound of the memory that parsed JSON takes, from counts of its punctuation."""
    sizes = {b"{": OBJECT_BYTES, b"[": LIST_BYTES, b",": VALUE_BYTES, b'"': STRING_BYTES // 2}
    # Python stores one to four bytes for each character.
    return sum(n * text.count(mark) for mark, n in sizes.items()) + len(text) * (1 if text.isascii() else 4)


def _decoded(text: bytes) -> str:
    """Decode JSON as UTF-8, the encoding of glTF, or as Latin-1, which some exporters use."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _chunks(data: bytes) -> tuple[bytes, bytes | None]:
    """The description and the bytes of a GLB."""
    if len(data) < 20 or data[:4] != b"glTF":
        raise ValueError("it is no GLB; the file is broken or truncated, or no level")
    version, length = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise ValueError(f"only glTF 2.0 is read, this is version {version}")
    if length > len(data):
        raise ValueError(f"it has {len(data)} bytes instead of {length}; the file is truncated")
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= length:
        n, kind = struct.unpack_from("<I4s", data, at)
        if at + 8 + n > length:
            raise ValueError("one of its chunks is truncated")
        found.setdefault(kind, data[at + 8:at + 8 + n] if kind in (b"JSON", b"BIN\0") else b"")
        at += 8 + n + (-n) % 4
    if b"JSON" not in found:
        raise ValueError("it has no description; the file is broken or no level")
    return found[b"JSON"], found.get(b"BIN\0")


def _check_asset(tree: dict[str, Any]) -> None:
    """Refuse other versions, and extensions that change geometry in unknown ways."""
    version = object_of(tree, "asset").get("version", "2.0")
    if not isinstance(version, str) or not version.startswith("2."):
        raise ValueError(f"only glTF 2.0 is read, this is version {version!r:.40}")
    for name in rows_of(tree, "extensionsRequired"):
        if name in MESHOPT:
            raise ValueError(f"it requires the extension {name}, which is not read; {UNPACK_MESHOPT}")
        if not isinstance(name, str) or (name not in READ and not name.startswith(LOOKS)):
            raise ValueError(f"it requires the extension {name!r:.80}, which is not read; export the file without it, "
                             "or have `gltf-transform cp` or Blender write it anew")


class _Reader:
    """One file."""

    def __init__(self, tree: dict[str, Any], accessors: Accessors, budget: Budget, selection: Selection,
                 flat: bool) -> None:
        self.tree = tree
        self.accessors = accessors
        self.budget = budget
        self.selection = selection
        self.flat = flat
        self.reserved: set[int] = set()
        self.geometries: dict[int, RawGeometry] = {}
        self.notes: list[str] = []

    def read(self) -> RawLevel:
        nodes, matrices = self._walk()
        used = sorted(matrices)
        for index in used:
            self._reserve(row_of(self.tree, "nodes", index))
        self.accessors.is_stored()
        placements = []
        for index in used:
            placements += self._placed(index, matrices[index])
        materials = rows_of(self.tree, "materials")
        names, both = [], []
        self.budget.take(names=len(materials))
        for k, row in enumerate(materials):
            known = isinstance(row, dict)
            names.append(_name(row, f"material {k}") if known else f"material {k}")
            both.append(known and row.get("doubleSided") is True)
        return RawLevel(nodes, placements, self.budget, names, both, self.notes)

    def _roots(self) -> list[Any]:
        """Return the root nodes of the default scene, or of the file if it has no scenes."""
        nodes, scenes = rows_of(self.tree, "nodes"), rows_of(self.tree, "scenes")
        if not scenes:
            children = {c for row in nodes if isinstance(row, dict) and isinstance(row.get("children"), list)
                        for c in row["children"] if isinstance(c, int)}
            return [k for k in range(len(nodes)) if k not in children]
        default = self.tree.get("scene", 0)
        if len(scenes) > 1:
            self.notes.append(f"it holds {len(scenes)} scenes: only the default one ({default}) is read")
        return rows_of(row_of(self.tree, "scenes", default), "nodes")

    def _walk(self) -> tuple[list[RawNode], dict[int, Floats | None]]:
        """Return all nodes, and the matrices of selected nodes with a mesh."""
        rows = rows_of(self.tree, "nodes")
        self.budget.take(names=len(rows))
        nodes = [RawNode("", None, False) for _ in rows]
        matrices: dict[int, Floats | None] = {}
        stack: list[tuple[Any, Floats | None, bool]] = [(k, None, False) for k in self._roots()]
        seen: set[int] = set()
        while stack:
            index, above, selected = stack.pop()
            row = row_of(self.tree, "nodes", index)
            if index in seen:
                raise ValueError(f"node {index} is in a circle, or a child of two nodes")
            seen.add(index)
            matrix = _local(row)
            if above is not None:
                matrix = above if matrix is None else _product(above, matrix)
            name = _name(row, "")
            if "mesh" in row:
                name = name or _name(row_of(self.tree, "meshes", row["mesh"]), "")
            name = name or f"node {index}"
            selected = selected or self.selection.matches(name)
            nodes[index] = RawNode(name, row.get("extras"), selected)
            if "mesh" in row and selected:
                if matrix is not None and not np.isfinite(matrix).all():
                    raise ValueError("a vertex or node transform is not finite")
                matrices[index] = matrix
            stack += [(k, matrix, selected) for k in rows_of(row, "children")]
        return nodes, matrices

    # --- memory ---

    def _reserve(self, row: dict[str, Any]) -> None:
        """Count into the budget what a node with a mesh will take."""
        vertices = triangles = 0
        mesh = row_of(self.tree, "meshes", row["mesh"])
        for primitive in rows_of(mesh, "primitives"):
            if not _is_surface(primitive):
                continue
            unpacked = DRACO in object_of(primitive, "extensions")
            n = self.accessors.reserve(object_of(primitive, "attributes").get("POSITION"), unpacked)
            indices = primitive.get("indices")
            m = n if indices is None else self.accessors.reserve(indices, unpacked)
            vertices += min(n, m)
            triangles += m // 3 if _mode(primitive) == TRIANGLES else m
            if unpacked:
                # What the decoder takes.
                self.budget.take(numbers=12 * (m // 3 + n))
        copies = 1
        for index in self._instancing(row).values():
            copies = self.accessors.reserve(index)
        # Only a flat level repeats a mesh.
        times = copies if self.flat else int(row["mesh"] not in self.reserved)
        self.reserved.add(row["mesh"])
        self.budget.take(vertices=vertices * times, triangles=triangles * times, numbers=32 * copies)

    # --- places ---

    def _placed(self, index: int, matrix: Floats | None) -> list[RawPlacement]:
        """A node's mesh, once or once for each instance."""
        row = row_of(self.tree, "nodes", index)
        shape = self._geometry(row["mesh"])
        if not len(shape.triangles):
            return []
        attributes = self._instancing(row)
        if not attributes:
            return [RawPlacement(shape, index, matrix)]
        found = []
        for k, local in enumerate(self._instances(attributes)):
            place = local if matrix is None else _product(matrix, local)
            if not np.isfinite(place).all():
                raise ValueError("a vertex or node transform is not finite")
            found.append(RawPlacement(shape, index, place, k))
        return found

    def _instancing(self, row: dict[str, Any]) -> dict[str, Any]:
        """The accessors of instances: TRANSLATION, ROTATION, SCALE."""
        extension = object_of(object_of(row, "extensions"), INSTANCING)
        attributes = object_of(extension, "attributes")
        return {k: v for k, v in attributes.items() if k in ("TRANSLATION", "ROTATION", "SCALE")}

    def _instances(self, attributes: dict[str, Any]) -> list[Floats]:
        """The matrices of instances."""
        count = self.accessors.count(next(iter(attributes.values())))
        parts = {}
        for name, index in attributes.items():
            parts[name] = self.accessors.vectors(index, f"{INSTANCING} {name}", 4 if name == "ROTATION" else 3)
            if len(parts[name]) != count:
                raise ValueError(f"{INSTANCING}: its attributes differ in length")
            if not np.isfinite(parts[name]).all():
                raise ValueError("a vertex or node transform is not finite")
        found = []
        for k in range(count):
            found.append(_composed(*(parts[name][k].tolist() if name in parts else default for name, default in (
                ("TRANSLATION", [0.0] * 3), ("ROTATION", [0.0, 0.0, 0.0, 1.0]), ("SCALE", [1.0] * 3)))))
        return found

    # --- triangles ---

    def _geometry(self, index: int) -> RawGeometry:
        """The triangles of a mesh, in the order of its primitives; read once."""
        if index in self.geometries:
            return self.geometries[index]
        blocks: dict[int, Floats | None] = {}
        corners: dict[int, list[Ints64]] = {}
        order: list[tuple[int, int]] = []
        materials = []
        for k, primitive in enumerate(rows_of(row_of(self.tree, "meshes", index), "primitives")):
            if not _is_surface(primitive):
                continue
            key, blocks[key], triangles = self._primitive(k, primitive)
            order.append((key, len(corners.setdefault(key, []))))
            corners[key].append(triangles)
            material = primitive.get("material", -1)
            if material != -1:
                row_of(self.tree, "materials", material)
            materials.append(np.full(len(triangles), material, np.int32))
        found = self.geometries[index] = self._assembled(blocks, corners, order, materials)
        return found

    def _primitive(self, k: int, primitive: dict[str, Any]) -> tuple[Any, Floats | None, Ints64]:
        """Return the accessor of the vertices (below zero: a key), unpacked vertices, triangles."""
        position: Any = object_of(primitive, "attributes").get("POSITION")
        count = self.accessors.count(position)
        extension = object_of(primitive, "extensions")
        if DRACO in extension:
            data, _ = self.accessors.view(object_of(extension, DRACO).get("bufferView"))
            indices = primitive.get("indices")
            most = count if indices is None else self.accessors.count(indices)
            vertices, triangles = unpack_draco(bytes(data), count, most // 3)
            return -1 - k, vertices, triangles
        self.accessors.check_bounds(position)
        indices = primitive.get("indices")
        corners = np.arange(count, dtype=np.int64) if indices is None else self.accessors.indices(indices)
        return position, None, _triangles(corners, _mode(primitive))

    def _assembled(self, blocks: dict[int, Floats | None], corners: dict[int, list[Ints64]],
                   order: list[tuple[int, int]], materials: list[NDArray[np.int32]]) -> RawGeometry:
        """Join primitives to one geometry, with each used vertex once."""
        if not order:
            return RawGeometry(np.empty((0, 3)), np.empty((0, 3), np.int32))
        count = 0
        placed: dict[int, list[NDArray[np.int32]]] = {}
        vertices = []
        for key, block in blocks.items():
            parts = corners[key]
            triangles: NDArray[Any] = np.concatenate(parts)
            present = self.accessors.count(key) if block is None else len(block)
            if triangles.size and (triangles.min() < 0 or triangles.max() >= present):
                raise ValueError("a triangle names a vertex that is not there; the file is broken or truncated")
            used = None
            if triangles.size < present:
                used, triangles = np.unique(triangles, return_inverse=True)
                triangles = triangles.reshape(-1, 3)
            if block is None:
                block = self.accessors.vectors(key, "POSITION", elements=used)
            elif used is not None:
                block = block[used]
            is_checked(block, triangles)
            cuts = np.cumsum([len(p) for p in parts])[:-1]
            placed[key] = np.split((triangles + count).astype(np.int32), cuts)
            vertices.append(block)
            count += len(block)
        return RawGeometry(
            np.concatenate(vertices),
            np.concatenate([placed[key][n] for key, n in order]),
            np.concatenate(materials),
        )


def _mode(primitive: dict[str, Any]) -> int:
    return number_of(primitive, "mode", TRIANGLES)


def _is_surface(primitive: Any) -> bool:
    """True for triangles, strips and fans; points and lines are left out."""
    if not isinstance(primitive, dict):
        raise ValueError("a primitive is not an object")
    mode = _mode(primitive)
    if mode > FAN:
        raise ValueError(f"a primitive has mode {mode}, which glTF does not know")
    return mode >= TRIANGLES and "POSITION" in object_of(primitive, "attributes")


def _triangles(corners: Ints64, mode: int) -> Ints64:
    """Triangles of a list, a strip or a fan."""
    if mode == TRIANGLES:
        if len(corners) % 3:
            raise ValueError(f"a list of triangles has {len(corners)} corners; the file is broken or truncated")
        return corners.reshape(-1, 3)
    n = max(len(corners) - 2, 0)
    i = np.arange(n)
    if mode == STRIP:
        return np.stack([corners[i], corners[i + 1 + i % 2], corners[i + 2 - i % 2]], 1)
    return np.stack([corners[i + 1], corners[i + 2], np.broadcast_to(corners[:1], (n,))], 1)


def _name(row: dict[str, Any], default: str) -> str:
    name = row.get("name")
    return name if isinstance(name, str) and name else default


def _local(row: dict[str, Any]) -> Floats | None:
    """The matrix of a node, or None for the identity."""
    if "matrix" in row:
        numbers = vector_of(row, "matrix", (0.0,) * 16)
        matrix = np.array(numbers).reshape(4, 4).T
        # Exporters round: the last row need not be exact.
        if np.abs(matrix[3] - (0.0, 0.0, 0.0, 1.0)).max() > 1e-5:
            raise ValueError("the matrix of a node is no affine transform")
        matrix[3] = 0.0, 0.0, 0.0, 1.0
        return None if np.array_equal(matrix, np.eye(4)) else matrix
    if not {"translation", "rotation", "scale"} & row.keys():
        return None
    return _composed(vector_of(row, "translation", (0.0, 0.0, 0.0)), vector_of(row, "rotation", (0.0, 0.0, 0.0, 1.0)),
                     vector_of(row, "scale", (1.0, 1.0, 1.0)))


def _product(above: Floats, local: Floats) -> Floats:
    with np.errstate(all="ignore"):                          # its result is checked
        return above @ local


def _composed(translation: list[float], rotation: list[float], scale: list[float]) -> Floats:
    """A matrix of translation, quaternion (x, y, z, w) and scale."""
    x, y, z, w = rotation
    length2 = x * x + y * y + z * z + w * w
    if not 1e-12 < length2 < 1e12:
        raise ValueError("the rotation of a node is no quaternion")
    k = 2.0 / length2
    a, b, c = scale
    px, py, pz = translation
    return np.array([
        [(1.0 - k * (y * y + z * z)) * a, k * (x * y - z * w) * b, k * (x * z + y * w) * c, px],
        [k * (x * y + z * w) * a, (1.0 - k * (x * x + z * z)) * b, k * (y * z - x * w) * c, py],
        [k * (x * z - y * w) * a, k * (y * z + x * w) * b, (1.0 - k * (x * x + y * y)) * c, pz],
        [0.0, 0.0, 0.0, 1.0],
    ])
