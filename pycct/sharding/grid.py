"""The cut of the ground plane into cells, and the owner of each cell."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.args.plain import short

# Cells along an axis that a table may span: the table of owners has this many entries squared at
# most.
MOST_CELLS = 4096
# Numbers of cells and shards stay below: sums and differences of them fit into 64 bits.
FARTHEST_CELL = 2**60


class Grid:
    """Square cells of the ground plane (x and y) and the shard that owns each.

    Parameters
    ----------
    size : float
        Side of a cell, metres, > 0.

    Notes
    -----
    Cell (i, j) covers ``i * size <= x < (i + 1) * size``, and y likewise. A position on a border
    belongs to the cell above it.
    """

    def __init__(self, size: float) -> None:
        if isinstance(size, bool) or not isinstance(size, (int, float, np.floating, np.integer)):
            raise TypeError(f"size must be a number, not {type(size).__name__}")
        if not (np.isfinite(size) and size > 0):
            raise ValueError(f"size must be finite and above 0, got {short(size)}")
        self.size = float(size)

    def __repr__(self) -> str:
        return f"Grid({self.size:g})"

    def cells_of(self, positions: ArrayLike) -> NDArray[np.int64]:
        """Return the cells of positions.

        Parameters
        ----------
        positions : (n, 3) or (n, 2) array of floats
            Metres.

        Returns
        -------
        (n, 2) array of int64
        """
        p = np.asarray(positions, float)
        if p.ndim != 2 or p.shape[1] < 2:
            raise ValueError(f"positions must have shape (n, 3), got {p.shape}")
        if np.isnan(p[:, :2]).any():
            raise ValueError("positions must not be NaN")
        with np.errstate(over="ignore"):
            at = np.floor(p[:, :2] / self.size)
        return np.clip(at, -FARTHEST_CELL, FARTHEST_CELL).astype(np.int64)


class Owners:
    """The shard that owns each cell, as a table.

    Parameters
    ----------
    cells : mapping of (i, j) to int, or sequence of sequences of (i, j)
        The owner of each cell, or one list of cells for each shard. A cell outside of the table
        belongs to the owner of the nearest cell of the table's rectangle.
    """

    def __init__(self, cells: Mapping[tuple[int, int], int] | Sequence[Any]) -> None:
        pairs: list[tuple[int, int, int]] = []
        if isinstance(cells, Mapping):
            items = list(cells.items())
        elif isinstance(cells, Sequence) and not isinstance(cells, str):
            items = [(cell, k) for k, group in enumerate(cells) for cell in group]
        else:
            raise TypeError(f"cells must map (i, j) to a shard, not be a {type(cells).__name__}")
        for cell, owner in items:
            try:
                i, j = (operator.index(c) for c in cell)
                k = operator.index(owner)
            except (TypeError, ValueError):
                raise TypeError(f"cells must contain pairs of integers, got {short(cell)}") from None
            if not 0 <= k < FARTHEST_CELL:
                raise ValueError(f"cells must name shards from 0 on, got {short(k)}")
            if max(abs(i), abs(j)) > FARTHEST_CELL:
                raise ValueError(f"cells must be within 2**60 of the origin, got {short(cell)}")
            pairs.append((i, j, k))
        if not pairs:
            raise ValueError("cells must not be empty")
        table = np.array(pairs, np.int64)
        self.low = table[:, :2].min(0)
        span = table[:, :2].max(0) - self.low + 1
        if span.max() > MOST_CELLS:
            raise ValueError(f"cells must span at most {MOST_CELLS} cells along an axis, got {span.max()}")
        self.table = np.full(tuple(span), -1, np.int64)
        at = table[:, :2] - self.low
        if len(np.unique(at[:, 0] * span[1] + at[:, 1])) != len(at):
            raise ValueError("cells must name each cell once")
        self.table[at[:, 0], at[:, 1]] = table[:, 2]
        if (self.table < 0).any():
            raise ValueError("cells must fill a rectangle")
        self.count = int(table[:, 2].max()) + 1

    def of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owners of cells, shape (n, 2)."""
        at = np.clip(cells - self.low, 0, np.array(self.table.shape) - 1)
        return self.table[at[:, 0], at[:, 1]]


def strips(low: tuple[int, int], high: tuple[int, int], shards: int) -> list[list[tuple[int, int]]]:
    """Return the cells from `low` to before `high` as strips along y, a list for each shard."""
    width = high[0] - low[0]
    return [[(low[0] + i, j) for i in range(width * k // shards, width * (k + 1) // shards)
             for j in range(low[1], high[1])] for k in range(shards)]
