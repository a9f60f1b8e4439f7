"""`load_heightfield`: a terrain from a PNG or an ASCII grid."""
from __future__ import annotations

import math
import os
import struct
import warnings
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pycct.levels.files import LARGEST_FILE, check_number, check_size, open_file
from pycct.levels.raw import Budget
from pycct.shapes.heightfield import Heightfield

__all__ = ["load_heightfield"]

Floats = NDArray[np.float64]

# Bytes of the head of an ASCII grid.
LONGEST_HEAD = 4096


def load_heightfield(
    path: str | os.PathLike[str],
    spacing: float | None = None,
    *,
    height_scale: float = 1.0,
    height_offset: float = 0.0,
    two_sided: bool = False,
    max_bytes: int = LARGEST_FILE,
) -> tuple[Heightfield, tuple[float, float, float]]:
    r"""Read a terrain from a picture or an ASCII grid, with x to the east, y to the north and z up.

    Parameters
    ----------
    path : path
        A ``.png`` with one grey value of 8 or 16 bits for each sample, or an ``.asc`` (Esri ASCII
        grid). The first row is the northernmost.
    spacing : float, optional
        Metres between samples, > 0. The default is 1 for a picture and the file's cell size for a
        grid.
    height_scale : float
        Metres in one grey value or in one unit of the grid, not 0.
    height_offset : float
        Metres added to every height.
    two_sided : bool
        As for `Heightfield`.
    max_bytes : int
        A larger file is refused, and one that takes more than eight times as much in memory,
        before it is unpacked.

    Returns
    -------
    heightfield : Heightfield
        Rows run along y, the southernmost first. Cells with a sample without data are holes.
    position : tuple of 3 floats
        Where the southwestern sample lies: ``scene.add(heightfield, position)``. It is the corner
        that a grid names, in the file's coordinates, and the origin for a picture.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        As `open` does.
    ValueError
        The file is too large, of no known kind, broken, or has other colours than grey; or an
        argument makes no sense.
    ImportError
        Pillow is not installed; pictures need it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pycct.levels import load_heightfield
    >>> text = "ncols 3\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\n1 2 3\n4 5 6\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "hill.asc"
    ...     _ = path.write_text(text)
    ...     hill, position = load_heightfield(path)
    >>> hill.heights.tolist(), hill.spacing, position
    ([[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]], (5.0, 5.0), (12.5, 22.5, 0.0))
    """
    step = None if spacing is None else check_number(spacing, "spacing")
    _check_heights(height_scale, height_offset)
    budget = Budget(check_size(max_bytes))
    file, kind, f, _ = open_file(path, ("png", "asc"), max_bytes)
    with f:
        try:
            grid = _read_png(f, budget) if kind == "png" else _read_grid(f, budget)
            heights = grid.values[::-1] * height_scale + height_offset
            holes = None
            if grid.empty.any():
                empty = grid.empty[::-1]
                holes = empty[1:, 1:] | empty[:-1, 1:] | empty[1:, :-1] | empty[:-1, :-1]
                heights[empty] = 0.0
            field = Heightfield(heights, step or grid.cell, row_axis="y", holes=holes, two_sided=two_sided)
        except (MemoryError, ImportError):
            raise
        except (ValueError, OSError, SyntaxError, EOFError, struct.error, OverflowError) as e:
            raise ValueError(f"{file}: cannot be read as {kind}: {e}") from e
    return field, (grid.x, grid.y, 0.0)


@dataclass
class _Grid:
    """Values (northernmost row first), missing ones, cell size, southwestern sample."""

    values: Floats
    empty: NDArray[np.bool_]
    cell: float = 1.0
    x: float = 0.0
    y: float = 0.0


def _check_heights(height_scale: object, height_offset: object) -> None:
    """TypeError or ValueError for an argument that makes no sense."""
    for name, value in (("height_scale", height_scale), ("height_offset", height_offset)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number, not {type(value).__name__}")
        if not abs(value) <= 1e12 or (name == "height_scale" and value == 0.0):
            raise ValueError(f"{name} must be finite{' and not 0' if name == 'height_scale' else ''}, got {value}")


def _read_png(f: BinaryIO, budget: Budget) -> _Grid:
    """The grey values of a picture."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("reading heights from pictures needs Pillow: pip install pycct[levels]") from None
    head = f.read(26)
    if len(head) < 26 or head[:8] != b"\x89PNG\r\n\x1a\n" or head[12:16] != b"IHDR":
        raise ValueError("it is no PNG; the file is broken or truncated")
    width, height, depth, colour = struct.unpack_from(">IIBB", head, 16)
    if colour != 0 or depth not in (8, 16):
        raise ValueError(f"only grey values of 8 or 16 bits are read, these are of {depth} bits "
                         f"with PNG colour type {colour}")
    if width < 2 or height < 2:
        raise ValueError(f"a heightfield has at least 2 by 2 samples, this has {height} by {width}")
    # Grey values, and heights twice.
    budget.take(numbers=3 * width * height)
    f.seek(0)
    with warnings.catch_warnings():
        # The size is bounded already.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(f, formats=("PNG",)) as picture:
                values = np.asarray(picture)
        except Image.DecompressionBombError as e:
            raise ValueError(str(e)) from None
    if values.shape != (height, width):
        raise ValueError("its size is not what its head says")
    return _Grid(values.astype(np.float64), np.zeros((1, 1), bool))


def _read_grid(f: BinaryIO, budget: Budget) -> _Grid:
    """The values of an ASCII grid."""
    head: dict[str, float] = {}
    at = 0
    while at < LONGEST_HEAD:
        line = f.readline(LONGEST_HEAD)
        words = line.split()
        if len(words) != 2 or not words[0][:1].isalpha() or words[0].lower() in (b"nan", b"inf", b"infinity"):
            break
        at = f.tell()
        head[words[0].decode("ascii", errors="replace").lower()] = float(words[1])
    for name in ("ncols", "nrows", "cellsize"):
        if not head.get(name, 0.0) > 0.0 or not math.isfinite(head[name]):
            raise ValueError(f"its head has no {name} > 0")
    if head["ncols"] != int(head["ncols"]) or head["nrows"] != int(head["nrows"]):
        raise ValueError("ncols and nrows must be whole numbers")
    columns, rows = int(head["ncols"]), int(head["nrows"])
    if columns < 2 or rows < 2:
        raise ValueError(f"a heightfield has at least 2 by 2 samples, this has {rows} by {columns}")
    f.seek(0, os.SEEK_END)
    # A value takes two bytes at least.
    if rows * columns > (f.tell() - at + 1) // 2:
        raise ValueError(f"it has fewer values than {rows} by {columns}; the file is truncated")
    budget.take(numbers=3 * rows * columns)
    f.seek(at)
    with warnings.catch_warnings():
        warnings.simplefilter("error")                       # NumPy warns where it stops early
        try:
            values = np.fromstring(f.read().replace(b",", b"."), np.float64, sep=" ")
        except DeprecationWarning:
            raise ValueError("a value is not a number; the file is broken or truncated") from None
    if len(values) != rows * columns:
        raise ValueError(f"it has {len(values)} values instead of {rows} by {columns}; the file is truncated")
    values = values.reshape(rows, columns)
    empty = ~np.isfinite(values) | (values == head.get("nodata_value", -9999.0))
    if empty.all():
        raise ValueError("no sample has data")
    cell = head["cellsize"]
    # A corner is that of the southwestern cell around a sample; a centre is the sample.
    x, y = (head.get(a + "llcenter", head.get(a + "llcorner", -0.5 * cell) + 0.5 * cell) for a in "xy")
    if not (abs(x) < 1e12 and abs(y) < 1e12):
        raise ValueError("its corner is not finite")
    return _Grid(values, empty, cell, x, y)
