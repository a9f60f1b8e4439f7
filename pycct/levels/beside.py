"""The files beside a level that it names."""
from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote

__all__ = ["Beside"]


class Beside:
    """The files that a level names (glTF's buffers): plain ones of its folder, bounded."""

    def __init__(self, file: Path, most: int) -> None:
        self.folder = file.parent
        self.left = most

    def place(self, name: str) -> Path:
        """Return the file of that name; a path that leads elsewhere is reduced to its last part."""
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
        raise ValueError(f"no file {name!r:.200} in its folder")

    def size(self, name: str) -> int:
        """Bytes of a file, 0 if it is not there."""
        try:
            return self.place(name).stat().st_size
        except ValueError:
            return 0

    def get(self, name: str) -> bytes:
        """The bytes of a file."""
        with self.place(name).open("rb") as f:
            data = f.read(self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("with its buffers it has more than max_bytes")
        return data
