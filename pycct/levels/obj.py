"""OBJ: vertices, faces, and the names of objects, groups and materials.

The file is read in blocks of some megabytes, each with array operations, so that time is linear in
the file and memory is little more than the result. Material files are not opened.
"""
from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pycct.levels.raw import (
    Budget,
    Floats,
    Ints,
    RawGeometry,
    RawLevel,
    RawNode,
    RawPlacement,
    Selection,
    is_checked,
    joined,
)

__all__ = ["read_obj"]

# Bytes read at once; the longest line, bytes.
BLOCK = 2 << 20
LONGEST_LINE = 4 << 20
# Digits of an index: more would not be a vertex of any file.
DIGITS = 10

Array = NDArray[np.int64]

# A remark behind numbers; elsewhere '#' may be part of a name.
REMARK = re.compile(rb"(?m)^([ \t]*[vf][ \t][^#\n]*)#[^\n]*")


@dataclass
class _Names:
    """A table of names in the order in which they are first used."""

    budget: Budget
    numbers: dict[tuple[bytes, ...], int] = field(default_factory=dict)

    def number(self, *name: bytes) -> int:
        """The index of a name."""
        found = self.numbers.get(name)
        if found is None:
            self.budget.take(names=1, numbers=sum(map(len, name)))
            found = self.numbers[name] = len(self.numbers)
        return found


@dataclass
class _State:
    """What one block hands to the next."""

    budget: Budget
    nodes: _Names
    materials: _Names
    count: int = 0
    object: bytes = b""
    group: bytes = b""
    material: bytes | None = None
    vertices: list[Floats] = field(default_factory=list)
    triangles: list[Ints] = field(default_factory=list)
    node: list[Ints] = field(default_factory=list)
    surface: list[Ints] = field(default_factory=list)


def read_obj(f: BinaryIO, stem: str, budget: Budget, selection: Selection) -> RawLevel:
    """Read a file.

    An ``o`` line begins an object, a ``g`` line a group of it. Each pair of them is a node, called
    ``object/group`` or by the one name that there is. A pattern selects a node by its object, its
    group or both.
    """
    state = _State(budget, _Names(budget), _Names(budget))
    for block in _blocks(f):
        _read_block(block, state)
    if not state.triangles:
        raise ValueError("no triangles in it; the file is broken, truncated or no level")
    vertices: Floats = joined(state.vertices) if state.vertices else np.empty((0, 3))
    state.vertices.clear()
    shape = RawGeometry(vertices, joined(state.triangles), joined(state.surface), joined(state.node))
    is_checked(vertices, shape.triangles)
    nodes = []
    for parts in state.nodes.numbers:
        names = [text_of(part) for part in parts if part]
        name = "/".join(names) or stem
        nodes.append(RawNode(name, None, any(map(selection.matches, {name, *names}))))
    materials = [text_of(name) for (name,) in state.materials.numbers]
    return RawLevel(nodes, [RawPlacement(shape, -1)], budget, materials, [False] * len(materials))


def text_of(name: bytes) -> str:
    """A name: UTF-8, or else Latin-1, in which every byte is a letter."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _blocks(f: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole lines that end with a newline, without remarks behind numbers."""
    start = f.read(1 << 16)
    f.seek(0)
    if b"\r" in start and b"\n" not in start:
        # Lines that end as on old Macs.
        f = io.BytesIO(f.read().replace(b"\r", b"\n"))
    if start.startswith(b"\xef\xbb\xbf"):
        f.seek(3)
    while True:
        parts = [f.read(BLOCK)]
        if not parts[0]:
            return
        length = 0
        # A backslash at the end continues the line; it may be the last byte of a block.
        while not parts[-1].endswith(b"\n") or (parts[-2:] and b"".join(parts[-2:]).endswith((b"\\\n", b"\\\r\n"))):
            more = f.readline(LONGEST_LINE)
            if not more:
                break
            parts.append(more)
            length += len(more)
            if length > LONGEST_LINE:
                raise ValueError(f"one of its lines is longer than {LONGEST_LINE} bytes")
        block = b"".join([*parts, b"\n"])
        if b"\\" in block:
            block = block.replace(b"\\\r\n", b"  ").replace(b"\\\n", b"  ")
        yield REMARK.sub(rb"\1", block) if b"#" in block else block


def _read_block(block: bytes, state: _State) -> None:
    """Add the vertices and triangles of one block."""
    text = np.frombuffer(block, np.uint8)
    full = text > 32
    edges = np.flatnonzero(full[1:] != full[:-1]).astype(np.int64) + 1
    if full[0]:
        edges = np.r_[0, edges]
    begin, end = edges[::2], edges[1::2]                    # of words; a block ends with a newline
    lines = np.flatnonzero(text == 10)
    first = np.r_[0, np.searchsorted(begin, lines)]          # the first word of each line, and one more
    words = np.diff(first)
    first = first[:-1]
    some = words > 0
    first, words = first[some], words[some]
    if not len(first):
        return
    single = end[first] - begin[first] == 1
    letter = text[begin[first]]
    is_vertex = single & (letter == ord("v"))
    is_face = single & (letter == ord("f"))
    is_name = (single & ((letter == ord("o")) | (letter == ord("g")))) | (letter == ord("u"))
    before = state.count + np.cumsum(is_vertex)
    _add_vertices(text, first[is_vertex], words[is_vertex], begin, end, state)
    faces = np.flatnonzero(is_face & (words > 3))
    node, surface = _names_of(block, np.flatnonzero(is_name), faces, first, words, begin, end, state)
    if not len(faces):
        return
    corners = words[faces] - 1
    state.budget.take(triangles=int(corners.sum()) - 2 * len(faces))
    line = np.repeat(np.arange(len(faces)), corners)
    start = np.cumsum(corners) - corners
    word = first[faces][line] + 1 + np.arange(len(line)) - start[line]
    value = _indices(text, begin[word], end[word])
    value = np.where(value < 0, value + before[faces][line], value - 1)
    if value.min() < 0 or value.max() >= 2**31:
        raise ValueError("a triangle names a vertex that is not there; the file is broken or truncated")
    index = value.astype(np.int32)
    if (corners == 3).all():
        triangles, owner = index.reshape(-1, 3), np.arange(len(faces))
    else:
        # A polygon is a fan around its first corner.
        owner = np.repeat(np.arange(len(faces)), corners - 2)
        nth = np.arange(len(owner)) - (np.cumsum(corners - 2) - (corners - 2))[owner]
        at = start[owner]
        triangles = np.stack([index[at], index[at + nth + 1], index[at + nth + 2]], 1)
    state.triangles.append(triangles)
    state.node.append(node[owner])
    state.surface.append(surface[owner])


def _add_vertices(text: NDArray[np.uint8], first: Array, words: Array, begin: Array, end: Array,
                  state: _State) -> None:
    """Add the first three numbers of each line ``v``."""
    if not len(first):
        return
    if words.min() < 4 or words.max() > 8:
        raise ValueError("a line v does not hold three to seven numbers; the file is broken or truncated")
    state.budget.take(vertices=len(first))
    if (words == words[0]).all() and int(first[-1]) - int(first[0]) == int(words[0]) * (len(first) - 1):
        # They follow one another: one stretch of text.
        piece = text[begin[first[0]]:end[first[-1] + words[-1] - 1]].copy()
        piece[begin[first] - begin[first[0]]] = 32
        found = _numbers(piece.tobytes(), len(first) * (int(words[0]) - 1)).reshape(len(first), -1)[:, :3]
    else:
        # The text from the first number to the third of each line.
        a, b = begin[first + 1], end[first + 3] + 1
        mark = np.zeros(len(text) + 1, np.int8)
        mark[a] = 1
        mark[b] -= 1
        inside = np.cumsum(mark[:-1], dtype=np.int8).view(bool)
        found = _numbers(text[inside].tobytes(), 3 * len(first)).reshape(-1, 3)
    state.vertices.append(np.ascontiguousarray(found))
    state.count += len(first)


def _numbers(text: bytes, count: int) -> Floats:
    """That many numbers of a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")                   # NumPy warns where it stops early
            found = np.fromstring(text, np.float64, sep=" ")
    except (DeprecationWarning, ValueError):
        found = np.empty(0)
    if len(found) != count:
        raise ValueError("a coordinate is not a number; the file is broken or truncated")
    return found


def _indices(text: NDArray[np.uint8], begin: Array, end: Array) -> Array:
    """The number before the first slash of each word."""
    sign = text[begin]
    negative = sign == ord("-")
    at = begin + (negative | (sign == ord("+")))
    value = np.zeros(len(at), np.int64)
    going = np.ones(len(at), bool)
    digit = text[at] - 48                                    # wraps around below '0'
    if (digit > 9).any():
        raise ValueError("a corner of a face is not a number; the file is broken or truncated")
    for _ in range(DIGITS):
        np.copyto(value, value * 10 + digit, where=going)
        at = np.where(going, at + 1, at)
        following = text[at]                                 # a newline at the latest
        digit = following - 48
        going &= digit <= 9
        if not going.any():
            break
    if going.any() or not ((at == end) | (following == ord("/"))).all():
        raise ValueError("a corner of a face is not a number; the file is broken or truncated")
    if not value.all():
        raise ValueError("a triangle names vertex 0, but OBJ counts from 1; the file is broken or truncated")
    return np.where(negative, -value, value)


def _names_of(block: bytes, named: Array, faces: Array, first: Array, words: Array, begin: Array, end: Array,
              state: _State) -> tuple[Ints, Ints]:
    """Node and material of each face; a name without faces gets no number."""
    nodes: list[int] = []
    materials: list[int] = []
    lengths: list[int] = []

    def hold(count: int) -> None:
        nodes.append(state.nodes.number(state.object, state.group))
        materials.append(-1 if state.material is None else state.materials.number(state.material))
        lengths.append(count)

    done = 0
    for line, before in zip(named.tolist(), np.searchsorted(faces, named).tolist(), strict=True):
        if before > done:
            hold(before - done)
            done = before
        word, n = int(first[line]), int(words[line])
        key = block[int(begin[word]):int(end[word])]
        name = block[int(begin[word + 1]):int(end[word + n - 1])] if n > 1 else b""
        if key == b"o":
            state.object, state.group = name, b""
        elif key == b"g":
            state.group = name
        elif key == b"usemtl":
            state.material = name
    if len(faces) > done:
        hold(len(faces) - done)
    return np.repeat(np.array(nodes, np.int32), lengths), np.repeat(np.array(materials, np.int32), lengths)
