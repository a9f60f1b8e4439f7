"""Characters that repeat claimed ways in a copy of a scene, for the audit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Crowd, Scene

__all__ = ["STRIDE", "STRIDES", "Ghosts", "dot", "kinds_of"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]

# Longest move of a repeated way, metres, and most moves.
STRIDE, STRIDES = 0.3, 64
# A small crowd repeats the ways of up to this share of the members, because a call costs time for
# every member of its crowd.
FEW = 1 / 16
# Least size of a small crowd, and its greatest size where each member has several ghosts.
LEAST_FEW, MOST_SPARE = 32, 4096


def dot(a: Doubles, b: Doubles) -> Doubles:
    """Return the scalar product of the rows."""
    out: Doubles = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]
    return out


def kinds_of(parameters: list[NDArray[Any]], n: int) -> Ints:
    """Return a number for each of n members; members with equal numbers have equal parameters."""
    kind = np.zeros(n, np.int64)
    for values in parameters:
        for column in values.reshape(n, -1).T if n else ():
            # Names of rules and modes are objects that exist once.
            codes = np.fromiter(map(id, column.tolist()), np.int64, n) if column.dtype == object else column
            if (codes != codes[0]).any():
                distinct, number = np.unique(codes, return_inverse=True)
                kind = np.unique(kind * len(distinct) + number.reshape(-1), return_inverse=True)[1].reshape(-1)
    return kind


class Ghosts:
    """One ghost for each member of a crowd, and small crowds of spare ones.

    No query of the scene reports a ghost, because ghosts are in layer 0.

    Parameters
    ----------
    world : Scene
        The copy of the scene.
    positions : (n, 3) array of floats
        Any places, metres; each way has its own start.
    parameters : dict of (n, ...) arrays
        Parameters of the members.
    kind : (n,) array of ints
        Members with equal numbers have equal parameters.
    dt : float
        Seconds of one move.
    """

    def __init__(self, world: Scene, positions: Doubles, parameters: dict[str, Any], kind: Ints, dt: float) -> None:
        self.world, self.kind, self.dt = world, kind, dt
        self._positions, self._parameters = positions, parameters
        self._all: Crowd | None = None
        self._few: dict[int, Crowd] = {}

    def walkers(self, rows: Ints) -> tuple[Crowd, Ints]:
        """Return a crowd with a ghost for each of these members, and the indices of the ghosts.

        The rows of the members rise, and so do the indices.
        """
        few = len(rows) <= FEW * len(self.kind)
        if few and len(rows) and (self.kind[rows] == self.kind[rows[0]]).all():
            return self.spare(int(rows[0]), len(rows)), np.arange(len(rows))
        if self._all is None:
            self._all = Crowd(self.world, self._positions, layer=0, **self._parameters)
        return self._all, rows

    def spare(self, row: int, n: int) -> Crowd:
        """Return a crowd of n ghosts or more that have the parameters of one member."""
        kind = int(self.kind[row])
        crowd = self._few.get(kind)
        if crowd is None or len(crowd) < n:
            size = max(LEAST_FEW, 1 << (n - 1).bit_length())
            parameters = {name: column[row] for name, column in self._parameters.items()}
            crowd = Crowd(self.world, np.tile(self._positions[row], (size, 1)), layer=0, **parameters)
            if len(self._few) >= LEAST_FEW:
                self._few.clear()
            self._few[kind] = crowd
        return crowd

    def send(self, crowd: Crowd, at: Ints, start: Doubles, way: Doubles, stride: float = STRIDE) -> Flags:
        """Move ghosts from their starts along their ways; return the flags of their last moves."""
        every, active = np.zeros((len(crowd), 3)), np.zeros(len(crowd), bool)
        # A mask of rising indices costs less than the indices, which must be compared.
        active[at] = True
        crowd.teleport(active, start)
        length = np.sqrt(dot(way, way))
        count = np.clip(np.ceil(length / stride), 1, STRIDES).astype(np.int64)
        every[at] = way / count[:, None]
        flags = crowd.move(every, self.dt, active=active)[at]
        for j in range(1, int(count.max(initial=0))):
            # A call clears the flags of members that it leaves out.
            goes = count > j
            active[at] = goes
            flags[goes] = crowd.move(every, self.dt, active=active)[at[goes]]
        return flags

    def go(self, rows: Ints, start: Doubles, way: Doubles, stride: float = STRIDE) -> tuple[Doubles, Flags]:
        """Return where the ghosts of members end, and the flags of their last moves."""
        if not len(rows):
            return np.zeros((0, 3)), np.zeros(0, np.uint8)
        crowd, at = self.walkers(rows)
        flags = self.send(crowd, at, start, way, stride)
        return crowd.positions[at], flags

    def go_each(self, rows: Ints, starts: Doubles, ways: Doubles, stride: float = STRIDE) -> tuple[Doubles, Flags]:
        """Do the same for m ways of each of n members; starts and ways have shape (m, n, 3)."""
        ends, flags = np.empty_like(starts), np.zeros(starts.shape[:2], np.uint8)
        for kind in np.unique(self.kind[rows]).tolist():
            mine = np.flatnonzero(self.kind[rows] == kind)
            for part in np.array_split(mine, math.ceil(len(mine) * len(starts) / MOST_SPARE)):
                n = len(part) * len(starts)
                crowd = self.spare(int(rows[part[0]]), n)
                there = starts[:, part].reshape(-1, 3), ways[:, part].reshape(-1, 3)
                flags[:, part] = self.send(crowd, np.arange(n), *there, stride).reshape(len(starts), -1)
                ends[:, part] = crowd.positions[:n].reshape(len(starts), -1, 3)
        return ends, flags
