"""Level files: OBJ, PLY, STL and glTF to a `Mesh`, with a report of what is wrong with them.

Reading needs trimesh (``pip install pycct[levels]``). Triangles keep the order of the file, so
that a triangle's index in a hit is its index there; a scene's nodes follow one another, each
with its transform applied.
"""
from __future__ import annotations

import io
import json
import math
import os
import stat
import struct
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.geometry.array_loops import flipped_count, triangle_normals
from pycct.shapes.primitives import Mesh

__all__ = ["LevelReport", "load_level", "report_on"]

Array = NDArray[np.float64]

FORMATS = ("obj", "ply", "stl", "gltf", "glb")

# Rows of the matrix that turns the file's up axis to +z, without mirroring.
AXES = {
    "x": ((0, 1, 0), (0, 0, 1), (1, 0, 0)),
    "y": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "z": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "-x": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
    "-y": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    "-z": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
}

# A file larger than this is refused unless the caller allows it, bytes.
LARGEST_FILE = 1 << 30
# A file may name the same bytes many times over. Honest ones grow eight times at most: an index of a byte takes eight.
UNPACKED = 8
# glTF's accessors without bytes of their own (compressed, or few that differ): numbers for each byte that is there.
EMPTY_PER_BYTE = 16
NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9}      # else 16

# What looks like a mistake of unit or axis: a middle edge this long or a level this small,
# metres; a share of the area; how much more area must face along one axis than the others.
LONG_EDGE = 30.0
SHORT_EDGE = 0.005
SMALL_LEVEL = 1.0
LARGE_LEVEL = 20_000.0
FLOOR_SHARE = 0.2
FLOOR_RATIO = 1.5
# Triangles that face an axis within 45 degrees count as its floor.
FLOOR_COSINE = math.sqrt(0.5)


@dataclass(frozen=True)
class LevelReport:
    """What a level consists of, and what looks wrong about it.

    Attributes
    ----------
    path : str
        The file, or '' for arrays.
    triangles, vertices : int
        As loaded.
    lower, upper : tuple of 3 floats
        Corners of the bounding box, metres, z up.
    degenerate : int
        Triangles without area; they are kept in the numbering and touch nothing.
    duplicate : int
        Triangles that repeat an earlier one (same corners, any order).
    flipped : int
        Fewest triangles to turn over so that neighbours face the same side.
    open_edges : int
        Edges of one triangle only; 0 for a closed surface.
    largest_edge, smallest_edge : float
        Metres; the smallest of those with a length.
    warnings : tuple of str
        Suspected mistakes, in words.
    """

    path: str
    triangles: int
    vertices: int
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]
    degenerate: int
    duplicate: int
    flipped: int
    open_edges: int
    largest_edge: float
    smallest_edge: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def size(self) -> tuple[float, float, float]:
        """Extent along x, y and z, metres."""
        x, y, z = (b - a for a, b in zip(self.lower, self.upper, strict=True))
        return x, y, z

    def __str__(self) -> str:
        def at(v: tuple[float, float, float]) -> str:
            return "(" + ", ".join(f"{x:.6g}" for x in v) + ")"

        lines = [
            self.path or "arrays",
            f"  triangles      {self.triangles}",
            f"  vertices       {self.vertices}",
            f"  bounds         {at(self.lower)} to {at(self.upper)} m",
            f"  size           {at(self.size)} m",
            f"  degenerate     {self.degenerate}",
            f"  duplicate      {self.duplicate}",
            f"  flipped        {self.flipped}",
            f"  open edges     {self.open_edges}",
            f"  largest edge   {self.largest_edge:.6g} m",
            f"  smallest edge  {self.smallest_edge:.6g} m",
        ]
        lines += [f"  warning: {w}" for w in self.warnings]
        return "\n".join(lines)


def load_level(
    path: str | os.PathLike[str],
    up: str | None = None,
    scale: float = 1.0,
    two_sided: bool = False,
    max_bytes: int = LARGEST_FILE,
) -> tuple[Mesh, LevelReport]:
    """Read a level file.

    Parameters
    ----------
    path : path
        An OBJ, PLY, STL, glTF or GLB file, told by its ending.
    up : {'x', 'y', 'z', '-x', '-y', '-z'}, optional
        The file's axis that points up; turned to z. The default is 'y' for glTF, whose standard
        says so, and 'z' for the others.
    scale : float
        Metres in one unit of the file, > 0.
    two_sided : bool
        As for `Mesh`.
    max_bytes : int
        A larger file is refused, with the buffers that it names counted in. So is one that would
        take more than eight times as much in memory. A server that takes files from strangers
        sets this low.

    Returns
    -------
    mesh : Mesh
        Vertices in metres, z up.
    report : LevelReport

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        As `open` does.
    ValueError
        The file is too large, of no known kind, broken, or holds no triangles; or an argument
        makes no sense.
    ImportError
        trimesh is not installed.

    Notes
    -----
    Of other files only the buffers of a glTF are read, from its folder or below; materials and
    images are not looked at.
    """
    file = Path(path)
    kind = file.suffix.lower().lstrip(".")
    if up is not None and up not in AXES:
        raise ValueError(f"up must be one of {', '.join(AXES)}, not {up!r}")
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"scale must be a number, not {type(scale).__name__}")
    if not 0.0 < scale <= 1e12:
        raise ValueError(f"scale must be > 0 and at most 1e12, got {scale}")
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
        raise TypeError(f"max_bytes must be an int, not {type(max_bytes).__name__}")
    # The errors of a missing or unreadable file are the system's own.
    if file.exists() and not file.is_file() and not file.is_dir():
        raise ValueError(f"{file} is not a file")
    with file.open("rb") as f:
        size = os.fstat(f.fileno()).st_size
    if kind not in FORMATS:
        raise ValueError(f"{file}: not a level file; known endings are .{', .'.join(FORMATS)}")
    if size > max_bytes:
        raise ValueError(f"{file}: {size} bytes are more than max_bytes={max_bytes}")
    if size == 0:
        raise ValueError(f"{file}: the file is empty")
    vertices, triangles = _read(file, kind, max_bytes)
    axes = np.array(AXES[up or ("y" if kind in ("gltf", "glb") else "z")], float)
    vertices = (vertices @ axes.T) * scale + 0.0     # no negative zeros
    vertices, triangles = _welded(vertices, triangles)
    try:
        mesh = Mesh(vertices, triangles, two_sided=two_sided)
    except ValueError as e:
        raise ValueError(f"{file}: {e}") from None
    return mesh, report_on(vertices, triangles, path=str(file))


class _Beside:
    """The files that a level names (glTF's buffers), as trimesh asks for them: plain ones of its folder, bounded."""

    def __init__(self, file: Path, most: int) -> None:
        self.folder = file.parent
        self.left = most

    def place(self, name: str) -> Path:
        """The file of that name; names of other folders are looked for by their end, as exporters leave them."""
        for candidate in (name, unquote(name), os.path.basename(unquote(name).replace("\\", "/"))):
            path = os.path.normpath(candidate.strip())
            if os.path.isabs(path) or os.path.splitdrive(path)[0] or path.split(os.sep)[0] in ("..", "."):
                continue
            try:
                # A pipe or a device would be read without end.
                if stat.S_ISREG((self.folder / path).stat().st_mode):
                    return self.folder / path
            except (OSError, ValueError):
                continue
        raise FileNotFoundError(f"no file {name!r} in its folder")

    def size(self, name: str) -> int:
        """Bytes of a file, 0 if it is not there."""
        try:
            return self.place(name).stat().st_size
        except FileNotFoundError:
            return 0

    def get(self, name: str) -> bytes:
        """What is in it."""
        with self.place(name).open("rb") as f:
            data = f.read(self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("with its buffers it has more than max_bytes")
        return data

    __getitem__ = get


def _read(file: Path, kind: str, max_bytes: int) -> tuple[Array, NDArray[np.int64]]:
    """All triangles of a file, in its own axes and units."""
    try:
        import trimesh
    except ImportError:
        raise ImportError("reading level files needs trimesh: pip install pycct[levels]") from None
    options: dict[str, Any] = {"process": False}
    if kind != "stl":
        # They would be looked for in other files.
        options.update(skip_materials=True)
    if kind == "obj":
        # Otherwise triangles are sorted by material.
        options.update(maintain_order=True, group_material=False, split_objects=False)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), file.open("rb") as f:
            warnings.simplefilter("ignore")
            size = os.fstat(f.fileno()).st_size
            beside = _Beside(file, max_bytes - size)
            if kind in ("gltf", "glb"):
                text = trimesh.util.decode_text(_description(f, kind))
                _check_description(json.loads(text), size, beside, UNPACKED * max_bytes)
                f.seek(0)
            source = _without_edges(f) if kind == "ply" else f
            options.update(file_type=kind, resolver=beside)
            scene = trimesh.load_scene(source, **options)
        parts = []
        for node in scene.graph.nodes_geometry:
            matrix, name = scene.graph[node]
            shape = scene.geometry[name]
            if hasattr(shape, "faces"):
                parts.append((np.asarray(matrix, float), np.asarray(shape.vertices, float), np.asarray(shape.faces)))
    except MemoryError:
        raise
    except Exception as e:  # trimesh raises whatever its parsers do
        raise ValueError(f"{file}: cannot be read as {kind}: {type(e).__name__}: {e}") from e
    if 24 * sum(len(v) + len(t) for _, v, t in parts) > UNPACKED * max_bytes:
        raise ValueError(f"{file}: its nodes repeat more than {UNPACKED} times max_bytes={max_bytes}")
    vertices: list[Array] = []
    triangles: list[NDArray[np.int64]] = []
    count = 0
    for matrix, v, t in parts:
        if t.size == 0:
            continue
        if v.ndim != 2 or v.shape[1] != 3 or t.ndim != 2 or t.shape[1] != 3:
            raise ValueError(f"{file}: cannot be read as {kind}: it holds something else than triangles")
        if not np.isfinite(v).all() or not np.isfinite(matrix).all():
            raise ValueError(f"{file}: a vertex or node transform is not finite")
        if t.min() < 0 or t.max() >= len(v):
            raise ValueError(f"{file}: a triangle names a vertex that is not there; the file is broken or truncated")
        if not np.array_equal(matrix, np.eye(4)):
            v = v @ matrix[:3, :3].T + matrix[:3, 3]
            # A mirroring node turns triangles inside out.
            if np.linalg.det(matrix[:3, :3]) < 0.0:
                t = t[:, ::-1]
        vertices.append(v)
        triangles.append(t.astype(np.int64) + count)
        count += len(v)
    if not triangles:
        raise ValueError(f"{file}: no triangles in it; the file is broken, truncated or no level")
    return np.concatenate(vertices), np.concatenate(triangles)


def _without_edges(f: BinaryIO) -> BinaryIO:
    """A PLY whose edges are called something else: trimesh makes a path of them and forgets the triangles."""
    head = []
    found = False
    for line in f:
        words = line.decode(errors="replace").split()
        if len(words) == 3 and "element" in words[0] and words[1] == "edge":
            line = f"element lines {words[2]}\n".encode()
            found = True
        head.append(line)
        if "end_header" in words:
            break
    rest = f.read() if found else b""
    f.seek(0)
    return io.BytesIO(b"".join([*head, rest])) if found else f


def _description(f: BinaryIO, kind: str) -> bytes:
    """A glTF's text."""
    if kind == "gltf":
        return f.read()
    head = f.read(20)
    return f.read(struct.unpack_from("<I", head, 12)[0]) if len(head) == 20 else b""


def _check_description(tree: Any, size: int, beside: _Beside, most: int) -> None:
    """Refuse a glTF that makes much out of little: views of the same bytes, arrays that have none.

    What is no dict, list or int where it should be is left to trimesh, which makes nothing of it.
    """
    def rows(name: str) -> list[dict[str, Any]]:
        found = tree.get(name)
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    def number(row: dict[str, Any], name: str) -> int:
        value = row.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    if not isinstance(tree, dict):
        raise ValueError("no object at its top")
    there = size + sum(beside.size(b["uri"]) for b in rows("buffers")
                       if isinstance(b.get("uri"), str) and not b["uri"].startswith("data:"))
    viewed = sum(number(row, "byteLength") for row in rows("bufferViews"))
    counted = empty = 0
    for row in rows("accessors"):
        numbers = number(row, "count") * NUMBERS.get(str(row.get("type")), 16)
        counted += 8 * numbers
        if "bufferView" not in row:
            empty += numbers
    if viewed + counted > most or empty > EMPTY_PER_BYTE * there:
        raise ValueError("it would take far more memory than it has bytes (max_bytes)")


def _places(vertices: Array) -> NDArray[np.int64]:
    """A number for each vertex, the same for those in the same place."""
    order = np.lexsort(vertices.T[::-1])
    rows = vertices[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    place = np.empty(len(rows), np.int64)
    place[order] = np.cumsum(new) - 1
    return place


def _welded(vertices: Array, triangles: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Without repeated vertices, when every triangle brings its own (STL); triangles keep their order."""
    if len(vertices) <= 1.5 * len(triangles):
        return vertices, triangles
    place = _places(vertices)
    first = np.full(int(place.max()) + 1, -1, np.int64)
    first[place[::-1]] = np.arange(len(vertices))[::-1]
    return vertices[first], place[triangles]


def report_on(vertices: ArrayLike, triangles: ArrayLike, path: str = "") -> LevelReport:
    """Look over a mesh (z up, metres).

    Parameters
    ----------
    vertices : (n, 3) array of floats
    triangles : (m, 3) array of integers
    path : str
        To be named in the report.

    Returns
    -------
    LevelReport
    """
    v = np.ascontiguousarray(vertices, dtype=np.float64)
    t = np.ascontiguousarray(triangles, dtype=np.int64)
    if v.ndim != 2 or v.shape[1] != 3 or len(v) == 0:
        raise ValueError(f"vertices must have shape (n, 3), got {v.shape}")
    if t.ndim != 2 or t.shape[1] != 3 or len(t) == 0:
        raise ValueError(f"triangles must have shape (m, 3), got {t.shape}")
    if t.min() < 0 or t.max() >= len(v):
        raise ValueError(f"triangles must hold indices from 0 to {len(v) - 1}")
    place = _places(v)[t]
    a, b, c = (np.ascontiguousarray(v[t[:, k]]) for k in range(3))
    normals = triangle_normals(a, b, c)
    flat = ~normals.any(axis=1)
    edges = np.sqrt(np.stack([((b - a) ** 2).sum(1), ((c - b) ** 2).sum(1), ((a - c) ** 2).sum(1)], 1))
    real = edges[edges > 0.0]
    solid = place[~flat]
    _, first = np.unique(np.sort(solid, axis=1), axis=0, return_index=True)
    duplicate = len(solid) - len(first)
    flipped, open_edges = _neighbourhood(solid[np.sort(first)])
    area = 0.5 * np.sqrt((np.cross(b - a, c - a) ** 2).sum(1))
    used = v[np.unique(t)]
    lower, upper = used.min(0), used.max(0)
    return LevelReport(
        path=path,
        triangles=len(t),
        vertices=len(v),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        degenerate=int(flat.sum()),
        duplicate=duplicate,
        flipped=flipped,
        open_edges=open_edges,
        largest_edge=float(real.max()) if real.size else 0.0,
        smallest_edge=float(real.min()) if real.size else 0.0,
        warnings=tuple(_suspicions(upper - lower, real, normals, area, flipped, len(t))),
    )


def _neighbourhood(corners: NDArray[np.int64]) -> tuple[int, int]:
    """Flipped triangles and open edges; corners by place."""
    n = len(corners)
    if n == 0:
        return 0, 0
    start = corners.reshape(-1)
    end = corners[:, [1, 2, 0]].reshape(-1)
    owner = np.repeat(np.arange(n, dtype=np.int64), 3)
    forward = start < end
    key = np.where(forward, start, end) * (int(corners.max()) + 1) + np.where(forward, end, start)
    order = np.argsort(key, kind="stable")
    key, owner, forward = key[order], owner[order], forward[order]
    runs = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    counts = np.diff(np.r_[runs, len(key)])
    two = runs[counts == 2]
    # Edges of three triangles and more do not say who of them is turned over.
    pairs = np.stack([owner[two], owner[two + 1]], 1).astype(np.int32)
    agrees = (forward[two] != forward[two + 1]).astype(np.uint8)
    apart = pairs[:, 0] != pairs[:, 1]
    pairs, agrees = np.ascontiguousarray(pairs[apart]), np.ascontiguousarray(agrees[apart])
    return int(flipped_count(pairs, agrees, n)), int((counts == 1).sum())


def _suspicions(size: Array, edges: Array, normals: Array, area: Array, flipped: int, n: int) -> list[str]:
    found = []
    middle = float(np.median(edges)) if edges.size else 0.0
    longest = float(size.max())
    if middle > LONG_EDGE or longest > LARGE_LEVEL:
        found.append(f"very large: {longest:.6g} m across, middle edge {middle:.6g} m; "
                     "are its units centimetres or millimetres (scale=0.01, 0.001)?")
    elif longest < SMALL_LEVEL or (0.0 < middle < SHORT_EDGE):
        found.append(f"very small: {longest:.6g} m across, middle edge {middle:.6g} m; "
                     "is one of its units more than a metre (scale)?")
    total = float(area.sum())
    if total > 0.0:
        share = {}
        for axis, name in enumerate("xyz"):
            for sign, text in ((1.0, name), (-1.0, "-" + name)):
                share[text] = float(area[sign * normals[:, axis] > FLOOR_COSINE].sum()) / total
        flat = {k: share[k] + share["-" + k] for k in "xyz"}
        other = max("xy", key=lambda k: flat[k])
        third = "x" if other == "y" else "y"
        # Walls face two axes alike; floor and ceiling face one.
        if flat[other] > FLOOR_RATIO * max(flat["z"], flat[third]):
            name = other if share[other] >= share["-" + other] else "-" + other
            found.append(f"most of its area faces along {other}, not up: is its up axis another (up={name!r})?")
        elif share["-z"] > FLOOR_SHARE and share["-z"] > 2.0 * share["z"]:
            found.append("more of its area faces down than up: are its triangles inside out?")
    if flipped > 0:
        found.append(f"{flipped} of {n} triangles face another side than their neighbours: "
                     "characters fall or walk through them from behind")
    return found
