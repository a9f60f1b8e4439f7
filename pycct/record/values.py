"""Arguments of calls as bytes, and back. No value is evaluated or unpickled.

A value is a byte that names its type, followed by its content. Shapes are stored as cooked scenes,
everything of a scene by its id, and callbacks by a mark.
"""
from __future__ import annotations

import enum
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, Behavior, CharacterController, Crowd, Rules, Scene, Shape

__all__ = ["CALLBACK", "Reader", "Reference", "encode", "load_cooked", "pack_rows", "save_cooked"]

_ENUMS: dict[str, type[enum.IntFlag]] = {"Behavior": Behavior, "Rules": Rules}
_TYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_DEEPEST = 16
DAMAGED = "the recording is damaged: its content makes no sense"


class Reference(tuple[str, int]):
    """Something of the scene: its kind and its id, or the number of a crowd."""

    __slots__ = ()


class _Callback:
    """Marks a callback, whose answers are recorded instead."""


CALLBACK = _Callback()


def save_cooked(scene: Scene) -> bytes:
    """Write a scene as the bytes of a cooked file."""
    with tempfile.TemporaryDirectory(prefix="pycct-") as folder:
        path = Path(folder) / "scene"
        scene.save(path, user_data=False)
        return path.read_bytes()


def load_cooked(data: bytes) -> Scene:
    """Load a scene from the bytes of a cooked file; ValueError if they are damaged."""
    with tempfile.TemporaryDirectory(prefix="pycct-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "scene"
        path.write_bytes(data)
        return Scene.load(path, verify=True)


def _size(out: bytearray, tag: bytes, n: int) -> None:
    out += tag + struct.pack("<I", n)


def encode(out: bytearray, value: Any, crowds: list[Crowd]) -> None:
    """Append a value."""
    if value is None:
        out += b"N"
    elif value is True or value is False or isinstance(value, np.bool_):
        out += b"+" if value else b"-"
    elif isinstance(value, enum.IntFlag):
        encode_text(out, b"e", type(value).__name__)
        out += struct.pack("<q", int(value))
    elif isinstance(value, enum.Enum):
        # Parameters take the name of a mode as well.
        encode(out, value.value, crowds)
    elif isinstance(value, int | np.integer):
        out += b"i" + struct.pack("<q", int(value))
    elif isinstance(value, float | np.floating):
        out += b"d" + struct.pack("<d", float(value))
    elif isinstance(value, str):
        encode_text(out, b"s", value)
    elif isinstance(value, bytes | bytearray | memoryview):
        _size(out, b"b", len(bytes(value)))
        out += bytes(value)
    elif isinstance(value, np.ndarray):
        if value.dtype.newbyteorder("<").str not in _TYPES:
            encode(out, value.tolist(), crowds)
            return
        kind = value.dtype.newbyteorder("<")
        out += b"a" + struct.pack("<BB", _TYPES.index(kind.str), value.ndim)
        out += struct.pack(f"<{value.ndim}Q", *value.shape)
        out += np.ascontiguousarray(value, kind).tobytes()
    elif isinstance(value, list | tuple):
        _size(out, b"l" if isinstance(value, list) else b"t", len(value))
        for one in value:
            encode(out, one, crowds)
    elif isinstance(value, dict):
        _size(out, b"m", len(value))
        for key, one in value.items():
            encode_text(out, b"", str(key))
            encode(out, one, crowds)
    elif isinstance(value, Shape):
        holder = Scene()
        holder.add(value)
        data = save_cooked(holder)
        _size(out, b"S", len(data))
        out += data
    elif isinstance(value, Crowd):
        out += b"C" + struct.pack("<q", crowds.index(value))
    elif isinstance(value, Actor):
        out += b"A" + struct.pack("<q", value.id)
    elif isinstance(value, CharacterController):
        out += b"H" + struct.pack("<q", value.id)
    elif isinstance(value, Scene):
        out += b"W"
    elif hasattr(value, "crowd") and hasattr(value, "id"):
        out += b"M" + struct.pack("<q", value.id)
    elif callable(value):
        out += b"c"
    else:
        raise TypeError(f"a recording cannot hold a value of type {type(value).__name__}")


def encode_text(out: bytearray, tag: bytes, text: str) -> None:
    """Append a string."""
    data = text.encode("utf-8", "surrogatepass")
    _size(out, tag, len(data))
    out += data


def pack_rows(rows: NDArray[np.float64], last: NDArray[np.float64] | None) -> list[bytes]:
    """Pack displacements (ticks, n, 3): of each tick, the rows that differ from those before it.

    ``last`` are the displacements before the first tick.
    """
    bits = rows.view(np.uint64)
    changed = np.ones(rows.shape[:2], bool)
    if last is not None and last.shape == rows.shape[1:]:
        changed[0] = (bits[0] != last.view(np.uint64)).any(axis=1)
    differs = bits[1:] != bits[:-1]
    np.logical_or(differs[..., 0], differs[..., 1], out=changed[1:])
    changed[1:] |= differs[..., 2]
    masks = np.packbits(changed, axis=1)
    packed = []
    for k, m in enumerate(changed.sum(axis=1).tolist()):
        fresh = np.ascontiguousarray(rows[k] if m == rows.shape[1] else rows[k][changed[k]], "<f8")
        # Bytes of equal weight lie together: exponents and signs compress well.
        packed.append(b"".join((struct.pack("<II", rows.shape[1], m), masks[k].tobytes(),
                                fresh.view(np.uint8).reshape(-1, 8).T.tobytes())))
    return packed


class Reader:
    """Reads values one after another; ValueError where the bytes make no sense."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self.at >= len(self.data)

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        if n > len(self.data) - self.at:
            raise ValueError(DAMAGED)
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str) -> Any:
        """One number of a `struct` format."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        """A string."""
        try:
            return self.take(self.number("<I")).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ValueError(DAMAGED) from None

    def value(self, depth: int = 0) -> Any:
        """A value of any type."""
        if depth > _DEEPEST:
            raise ValueError(DAMAGED)
        tag = self.take(1)
        if tag in _SIMPLE:
            return _SIMPLE[tag]
        if tag in (b"C", b"A", b"H", b"M"):
            return Reference((tag.decode(), self.number("<q")))
        if tag == b"W":
            return Reference(("W", 0))
        if tag == b"i":
            return self.number("<q")
        if tag == b"d":
            return self.number("<d")
        if tag == b"s":
            return self.text()
        if tag == b"b":
            return self.take(self.number("<I"))
        if tag == b"e":
            return self._enum()
        if tag == b"a":
            return self._array()
        if tag in (b"l", b"t"):
            values = [self.value(depth + 1) for _ in range(self._count())]
            return values if tag == b"l" else tuple(values)
        if tag == b"m":
            return {self.text(): self.value(depth + 1) for _ in range(self._count())}
        if tag == b"S":
            actors = load_cooked(self.take(self.number("<I"))).actors
            if len(actors) != 1:
                raise ValueError(DAMAGED)
            return actors[0].shape
        raise ValueError(DAMAGED)

    def _count(self) -> int:
        n = int(self.number("<I"))
        # Each element takes a byte at least.
        if n > len(self.data) - self.at:
            raise ValueError(DAMAGED)
        return n

    def _enum(self) -> Any:
        name, number = self.text(), self.number("<q")
        try:
            return _ENUMS[name](number)
        except (KeyError, ValueError):
            raise ValueError(DAMAGED) from None

    def _array(self) -> NDArray[Any]:
        kind, ndim = self.number("<B"), self.number("<B")
        if kind >= len(_TYPES) or ndim > 3:
            raise ValueError(DAMAGED)
        shape = [self.number("<Q") for _ in range(ndim)]
        n = 1
        for size in shape:
            n *= size
        dtype = np.dtype(_TYPES[kind])
        if n * dtype.itemsize > len(self.data):
            raise ValueError(DAMAGED)
        return np.frombuffer(self.take(n * dtype.itemsize), dtype).reshape(shape).copy()

    def rows(self, last: NDArray[np.float64] | None, strict: bool = True) -> NDArray[np.float64]:
        """An array of `pack_rows`; without ``strict``, missing rows are zero."""
        n, m = self.number("<I"), self.number("<I")
        changed = np.unpackbits(np.frombuffer(self.take((n + 7) // 8), np.uint8), count=n).view(bool)
        fresh = np.frombuffer(self.take(24 * m), np.uint8).reshape(8, -1).T.copy().view("<f8").reshape(-1, 3)
        if np.count_nonzero(changed) != m or (strict and m < n and (last is None or len(last) != n)):
            raise ValueError(DAMAGED)
        rows = np.zeros((n, 3)) if last is None or len(last) != n else last.copy()
        rows[changed] = fresh
        return rows


_SIMPLE: dict[bytes, Any] = {b"N": None, b"+": True, b"-": False, b"c": CALLBACK}
