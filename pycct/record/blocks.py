"""The file format: a head, then compressed blocks that are only ever appended.

Each block has a head of its own with a checksum over everything, so a file whose writer died is
readable up to the last complete block.
"""
from __future__ import annotations

import os
import queue
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from pycct import RESULTS_VERSION

__all__ = ["CALLS", "DONE", "KEYFRAME", "LARGEST", "SCENE", "Block", "Writer", "read_block", "read_index"]

MAGIC = b"pycctrec"
FORMAT = 2  # 1: keyframes without transposed crowds
HEAD = struct.Struct("<8sIII")
# Kind, size as bytes, size compressed, first tick, moves before the block, checksum of the
# compressed bytes, and checksum of these fields.
BLOCK = struct.Struct("<4sIIQQII")
# A recording that was closed ends with an empty block, DONE.
SCENE, KEYFRAME, CALLS, DONE = b"SCNE", b"KEYF", b"CALL", b"DONE"
LARGEST = 1 << 30  # bytes of one block: a damaged size never allocates more
_QUEUED = 64  # blocks that wait for the writer thread before the program waits for it


@dataclass(frozen=True)
class Block:
    """Where a block is in the file."""

    kind: bytes
    at: int
    size: int
    compressed: int
    tick: int
    moves: int
    checksum: int


class Writer:
    """Append blocks from a thread of its own, which also encodes and compresses them.

    Parameters
    ----------
    path : str or path-like
        File to write.
    encode : callable
        Kind and content of a block -> its bytes; called by the thread, in the order of the blocks.
    """

    def __init__(self, path: str | os.PathLike[str], encode: Callable[[bytes, Any], bytes]) -> None:
        self.encode = encode
        self.file = open(path, "wb")
        head = HEAD.pack(MAGIC, FORMAT, RESULTS_VERSION, 0)[:-4]
        self.file.write(head + struct.pack("<I", zlib.crc32(head)))
        self.problem: BaseException | None = None
        self.waiting: queue.Queue[tuple[bytes, int, int, Any] | None] = queue.Queue(_QUEUED)
        self.thread = threading.Thread(target=self._work, name="pycct-record", daemon=True)
        self.thread.start()

    def append(self, kind: bytes, tick: int, moves: int, data: Any) -> None:
        """Hand a block to the thread; what went wrong there earlier is raised here."""
        if self.problem is not None:
            raise self.problem
        self.waiting.put((kind, tick, moves, data))

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.waiting.put(None)
        self.thread.join()
        self.file.close()
        if self.problem is not None:
            raise self.problem

    def _work(self) -> None:
        while (entry := self.waiting.get()) is not None:
            if self.problem is not None:
                continue
            try:
                kind, tick, moves, content = entry
                data = self.encode(kind, content)
                if len(data) > LARGEST:
                    raise ValueError(f"a block of a recording must not exceed {LARGEST} bytes, got {len(data)}")
                packed = zlib.compress(data, 1)
                head = BLOCK.pack(kind, len(data), len(packed), tick, moves, zlib.crc32(packed), 0)[:-4]
                self.file.write(head + struct.pack("<I", zlib.crc32(head)) + packed)
                self.file.flush()
            except BaseException as problem:
                self.problem = problem


def read_index(file: BinaryIO) -> list[Block]:
    """Read the heads of all complete blocks.

    Raises
    ------
    ValueError
        The file is no recording, or is one of another format or results version.
    """
    head = file.read(HEAD.size)
    if len(head) < HEAD.size or head[:8] != MAGIC:
        raise ValueError("the file is not a recording of pycct")
    _, version, results, checksum = HEAD.unpack(head)
    if zlib.crc32(head[:-4]) != checksum:
        raise ValueError("the recording is damaged: its head makes no sense")
    if version != FORMAT:
        raise ValueError(f"the recording has format {version}, but this pycct reads format {FORMAT}")
    if results != RESULTS_VERSION:
        raise ValueError(f"the recording is of results version {results}, but this pycct has {RESULTS_VERSION}: "
                         f"moves would not repeat to the bit")
    end = file.seek(0, os.SEEK_END)
    at = HEAD.size
    index: list[Block] = []
    while at + BLOCK.size <= end:
        file.seek(at)
        head = file.read(BLOCK.size)
        kind, size, compressed, tick, moves, checksum, own = BLOCK.unpack(head)
        # A block that the end of the file cuts is one that was being written.
        if zlib.crc32(head[:-4]) != own or kind not in (SCENE, KEYFRAME, CALLS, DONE) or size > LARGEST:
            raise ValueError(f"the recording is damaged: the block at byte {at} makes no sense")
        at += BLOCK.size
        if at + compressed > end:
            break
        if index and (tick < index[-1].tick or moves < index[-1].moves):
            raise ValueError("the recording is damaged: its ticks do not rise")
        index.append(Block(kind, at, size, compressed, tick, moves, checksum))
        at += compressed
    return index


def read_block(file: BinaryIO, block: Block) -> bytes:
    """Read and expand one block; ValueError if it is damaged."""
    file.seek(block.at)
    packed = file.read(block.compressed)
    damaged = ValueError(f"the recording is damaged: the block at byte {block.at} makes no sense")
    if len(packed) != block.compressed or zlib.crc32(packed) != block.checksum:
        raise damaged
    expand = zlib.decompressobj()
    try:
        data = expand.decompress(packed, block.size + 1)
    except zlib.error:
        raise damaged from None
    if len(data) != block.size or not expand.eof:
        raise damaged
    return data
