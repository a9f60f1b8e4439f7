"""PLY and STL, read by trimesh."""
from __future__ import annotations

import io
import warnings
from typing import Any, BinaryIO

import numpy as np

from pycct.levels.raw import Budget, RawGeometry, RawLevel, RawNode, RawPlacement, Selection

__all__ = ["read_with_trimesh"]

# Bytes of the header of a PLY.
LONGEST_HEADER = 1 << 20


def read_with_trimesh(f: BinaryIO, kind: str, stem: str, budget: Budget, selection: Selection) -> RawLevel:
    """Read a file; its one node has the name of the file."""
    try:
        import trimesh
    except ImportError:
        raise ImportError("reading level files needs trimesh: pip install pycct[levels]") from None
    source = _checked_ply(f) if kind == "ply" else _checked_stl(f)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Materials would be looked for in other files.
        options: dict[str, Any] = {"skip_materials": True} if kind == "ply" else {}
        scene = trimesh.load_scene(source, file_type=kind, process=False, **options)
    node = RawNode(stem, None, selection.matches(stem))
    placements = []
    for name in scene.graph.nodes_geometry:
        matrix, key = scene.graph[name]
        shape = scene.geometry[key]
        if not hasattr(shape, "faces"):
            continue
        vertices, triangles = np.asarray(shape.vertices, np.float64), np.asarray(shape.faces)
        budget.take(vertices=len(vertices), triangles=len(triangles))
        if triangles.size == 0:
            continue
        if vertices.ndim != 2 or vertices.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
            raise ValueError("it holds something else than triangles")
        if triangles.min() < 0 or triangles.max() >= len(vertices):
            raise ValueError("a triangle names a vertex that is not there; the file is broken or truncated")
        place = None if np.array_equal(matrix, np.eye(4)) else np.asarray(matrix, np.float64)
        placements.append(RawPlacement(RawGeometry(vertices, triangles.astype(np.int32)), 0, place))
    return RawLevel([node], placements, budget)


def _checked_ply(f: BinaryIO) -> BinaryIO:
    """The file with a header that trimesh reads right; ValueError for contents that are no faces.

    trimesh reads a PLY with edges as a path without triangles, and fails at letters beyond ASCII.
    """
    head = []
    elements: dict[str, str] = {}
    changed = False
    size = 0
    for line in f:
        size += len(line)
        plain = line.decode("ascii", errors="replace").replace("\ufffd", "?").encode()
        words = plain.decode().split()
        if len(words) == 3 and "element" in words[0]:
            elements[words[1]] = words[2]
            if words[1] == "edge":
                plain = f"element lines {words[2]}\n".encode()
        changed |= plain != line
        head.append(plain)
        if "end_header" in words:
            break
        if size > LONGEST_HEADER:
            raise ValueError("its header does not end; the file is broken or no level")
    if elements and "face" not in elements:
        if "tristrips" in elements:
            raise ValueError("its triangles are strips (element tristrips), which are not read: export it with faces")
        raise ValueError("it is a point cloud: it holds no element face; make a mesh of its points first")
    if elements.get("face") == "0":
        raise ValueError("it is a point cloud: it holds 0 faces; make a mesh of its points first")
    rest = f.read() if changed else b""
    f.seek(0)
    return io.BytesIO(b"".join([*head, rest])) if changed else f


def _checked_stl(f: BinaryIO) -> BinaryIO:
    """The file, with '?' for letters beyond ASCII in names if it is a text."""
    start = f.read(5)
    f.seek(0)
    if start.lower() != b"solid":
        return f
    data = f.read()
    f.seek(0)
    # A binary file may begin with that word: its length is that of its triangles.
    if len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little"):
        return f
    if data.isascii() or b"\0" in data:
        return f
    return io.BytesIO(data.decode("ascii", errors="replace").replace("\ufffd", "?").encode())
