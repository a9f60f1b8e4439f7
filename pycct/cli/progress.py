"""A progress bar on standard error, only on terminals."""
from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

WIDTH = 32
INTERVAL = 0.1  # seconds between two updates


class Progress:
    """Bar for a known number of steps; use it as a context manager.

    Parameters
    ----------
    total : int
        Number of steps.
    label : str
        Text before the bar.
    stream : text stream, optional
        Stream to draw on; the default is standard error. Only terminals show the bar.
    """

    def __init__(self, total: int, label: str, stream: TextIO | None = None) -> None:
        self.total = max(1, total)
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty()
        self.started = time.monotonic()
        self.drawn = float("-inf")

    def update(self, done: int) -> None:
        """Show the number of completed steps."""
        now = time.monotonic()
        if not self.shown or (now - self.drawn < INTERVAL and done < self.total):
            return
        self.drawn = now
        share = min(1.0, done / self.total)
        bar = "#" * round(WIDTH * share)
        passed = now - self.started
        self.stream.write(f"\r{self.label} [{bar:<{WIDTH}}] {share:4.0%} {passed:5.1f} s")
        self.stream.flush()

    def __enter__(self) -> Progress:
        self.update(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self.stream.write("\n")
            self.stream.flush()
