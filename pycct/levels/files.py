"""Level files on disk: what may be opened, and by which reader."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pycct.args.plain import short
from pycct.levels.beside import Beside
from pycct.levels.gltf import read_gltf
from pycct.levels.obj import read_obj
from pycct.levels.raw import Budget, RawLevel, Selection
from pycct.levels.tables import read_with_trimesh

__all__ = ["AXES", "FORMATS", "LARGEST_FILE", "check_number", "check_size", "open_file", "read_raw"]

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


def check_number(value: object, name: str, most: float = 1e12) -> float:
    """A finite number above zero; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not 0.0 < value <= most:
        raise ValueError(f"{name} must be > 0 and at most {most:g}, got {short(value)}")
    return float(value)


def check_size(max_bytes: object) -> int:
    """The argument ``max_bytes``; TypeError otherwise."""
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
        raise TypeError(f"max_bytes must be an int, not {type(max_bytes).__name__}")
    return max_bytes


def open_file(path: str | os.PathLike[str], known: Sequence[str], max_bytes: int) -> tuple[Path, str, BinaryIO, int]:
    """A plain file with one of these endings, opened; its path, ending and size."""
    file = Path(path)
    kind = file.suffix.lower().lstrip(".")
    # The errors of a missing or unreadable file are the system's own. A pipe would be waited for.
    if file.exists() and not file.is_file() and not file.is_dir():
        raise ValueError(f"{file} is not a file")
    f = file.open("rb")
    size = os.fstat(f.fileno()).st_size
    problem = None
    if kind not in known:
        problem = f"not a level file; known endings are .{', .'.join(known)}"
    elif size > max_bytes:
        problem = f"{size} bytes are more than max_bytes={max_bytes}"
    elif size == 0:
        problem = "the file is empty"
    if problem:
        f.close()
        raise ValueError(f"{file}: {problem}")
    return file, kind, f, size


def read_raw(path: str | os.PathLike[str], nodes: str | Sequence[str] | None, max_bytes: int,
             flat: bool) -> tuple[Path, str, RawLevel]:
    """Return path, ending and contents of a file; `flat` counts each place of a mesh."""
    selection = Selection(nodes)
    file, kind, f, size = open_file(path, FORMATS, max_bytes)
    budget = Budget(max_bytes)
    with f:
        try:
            if kind == "obj":
                level = read_obj(f, file.stem, budget, selection)
            elif kind in ("ply", "stl"):
                level = read_with_trimesh(f, kind, file.stem, budget, selection)
            else:
                level = read_gltf(f, kind == "glb", Beside(file, max_bytes - size), size, budget, selection, flat)
        except (MemoryError, ImportError):
            raise
        except ValueError as e:
            raise ValueError(f"{file}: cannot be read as {kind}: {e}") from e
        except Exception as e:                               # trimesh raises whatever its parsers do
            raise ValueError(f"{file}: cannot be read as {kind}: {type(e).__name__}: {e}") from e
    if selection.patterns is not None and not any(n.selected for n in level.nodes):
        names = [n.name[:60] for n in level.nodes[:20]]
        raise ValueError(f"{file}: no node matches nodes={nodes!r}; its nodes are {', '.join(map(repr, names))}"
                         + (f" and {len(level.nodes) - 20} more" if len(level.nodes) > 20 else ""))
    return file, kind, level
