"""Levels made from a seed: dungeons, mazes, hills and obstacle courses, each with its solution.

Additions, products and square roots of integers give all coordinates, so that a seed gives the same
bits on every machine. A level is solvable by construction, and `Level.route` returns the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, Box, Mesh, Scene
from pycct.args.plain import short
from pycct.rl.draws import Draws, circle

__all__ = ["GRAVITY", "JUMP_SPEED", "KINDS", "PERIOD", "SPEED", "TICK", "Level", "Mover", "Waypoint", "generate"]

# The character that levels are made for: see `pycct.rl.Simulation`.
TICK = 1.0 / 20.0
SPEED, JUMP_SPEED, GRAVITY = 4.0, 5.0, 10.0

# Ticks after which all moving platforms are where they were.
PERIOD = 128
WALL = 3.0
# Walls of dungeons end here: 2.6 m is the highest ground, and a jump with a step reaches 2 m more.
TOP = 6.0
# Outer walls are higher than characters that stand on each other on an inner wall can climb.
OUTER = 16.0
PIT = 2.25
ROOM = 6.0  # edge of a room
COURSE_PIT = 3.0
LIFT = 2.0

_DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Waypoint(NamedTuple):
    """A place on the way to the goal.

    Attributes
    ----------
    position : tuple of three floats
        Foot of the character, m.
    jump : bool
        Whether the character jumps as it sets out for this place.
    window : tuple of two ints
        The character sets out while ``tick % PERIOD`` is from the first to the second, less one.
    """

    position: tuple[float, float, float]
    jump: bool = False
    window: tuple[int, int] = (0, PERIOD)


@dataclass(frozen=True)
class Mover:
    """A moving platform: a box with its poses.

    Attributes
    ----------
    half : tuple of three floats
        Half extents, m.
    poses : ndarray, (PERIOD, 7) float64
        Position (m) and rotation (unit quaternion x, y, z, w) at each tick.
    """

    half: tuple[float, float, float]
    poses: NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """A generated level.

    The ground plan is a grid of cells. From every cell that a character can stand in, `exits` leads
    to the goal.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    seed : int
    vertices : ndarray, (n, 3) float64
        m.
    triangles : ndarray, (m, 3) int32
        Counterclockwise seen from outside.
    movers : tuple of Mover
    shape : tuple of two ints
        Cells along x and along y; cell (i, j) has the number ``i * shape[1] + j``.
    pitch : float
        Edge of a cell, m. Cell (0, 0) begins at the origin.
    floor : ndarray, (cells,) float64
        Height of each cell's floor, m.
    spots : ndarray, (k, 3) float64
        Places to begin at: feet, m. All of them lie within 0.25 m of free, level ground.
    goal : ndarray, (3,) float64
        Feet, m.
    exits : ndarray, (cells, 3) float64
        Where the way to the goal leaves a cell, m; the goal in its own cell.
    remaining : ndarray, (cells,) float64
        Length of the way from that exit to the goal, m.
    onward : ndarray, (cells,) int64
        The next cell on the way; the goal's own cell leads to itself.
    deadly : ndarray, (cells,) float64
        A character whose feet are lower than this has failed, m; -inf: nowhere.
    course : tuple of Waypoint
        The way where it needs jumps or timing; empty where walking from exit to exit is enough.
    plan : ndarray, (r, 5) float64
        What is seen from above, from bottom to top: x low, y low, x high, y high, z, m.
    """

    kind: str
    seed: int
    vertices: NDArray[np.float64]
    triangles: NDArray[np.int32]
    movers: tuple[Mover, ...]
    shape: tuple[int, int]
    pitch: float
    floor: NDArray[np.float64]
    spots: NDArray[np.float64]
    goal: NDArray[np.float64]
    exits: NDArray[np.float64]
    remaining: NDArray[np.float64]
    onward: NDArray[np.int64]
    deadly: NDArray[np.float64]
    course: tuple[Waypoint, ...]
    plan: NDArray[np.float64]
    _kept: list[Mesh] = field(default_factory=list, repr=False, compare=False)

    def mesh(self) -> Mesh:
        """The triangles as a shape, the same object at every call."""
        if not self._kept:
            self._kept.append(Mesh(self.vertices, self.triangles))
        return self._kept[0]

    def build(self, scene: Scene) -> list[Actor]:
        """Add the level to a scene, with the movers as they are at tick 0.

        Parameters
        ----------
        scene : Scene

        Returns
        -------
        list of Actor
            The static mesh, then one actor a mover.
        """
        actors = [scene.add(self.mesh())]
        for mover in self.movers:
            pose = mover.poses[0].tolist()
            actors.append(scene.add(Box(mover.half), position=pose[:3], rotation=pose[3:], body="kinematic"))
        return actors

    def cell(self, position: Sequence[float] | NDArray[np.float64]) -> int:
        """Number of the cell that contains a place; of the nearest one outside of the grid."""
        i = min(max(int(position[0] // self.pitch), 0), self.shape[0] - 1)
        j = min(max(int(position[1] // self.pitch), 0), self.shape[1] - 1)
        return i * self.shape[1] + j

    def route(self, spot: int = 0) -> tuple[Waypoint, ...]:
        """The solution.

        Parameters
        ----------
        spot : int
            Row of `spots` to begin at.

        Returns
        -------
        tuple of Waypoint
            To be walked in straight lines; the last one is the goal.
        """
        if self.course:
            return self.course
        goal = Waypoint(_point(self.goal))
        cell = self.cell(self.spots[spot])
        way = []
        while self.onward[cell] != cell:
            way.append(Waypoint(_point(self.exits[cell])))
            cell = int(self.onward[cell])
            if self.onward[cell] != cell:
                i, j = divmod(cell, self.shape[1])
                centre = ((i + 0.5) * self.pitch, (j + 0.5) * self.pitch)
                way.append(Waypoint((*centre, float(self.floor[cell]))))
        return (*way, goal)


def _point(values: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z


class _Builder:
    """Collects triangles."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[float, float, float], int] = {}
        self.triangles: list[tuple[int, int, int]] = []
        self.plan: list[tuple[float, float, float, float, float]] = []

    def corner(self, point: tuple[float, float, float]) -> int:
        return self.numbers.setdefault(point, len(self.numbers))

    def face(self, *points: tuple[float, float, float]) -> None:
        """A convex polygon, counterclockwise seen from outside."""
        corners = [self.corner(point) for point in points]
        for k in range(1, len(corners) - 1):
            self.triangles.append((corners[0], corners[k], corners[k + 1]))

    def floor(self, x0: float, y0: float, x1: float, y1: float, z: float) -> None:
        self.face((x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z))
        self.plan.append((x0, y0, x1, y1, z))

    def box(self, low: tuple[float, float, float], high: tuple[float, float, float], bottom: bool = False,
            hidden: str = "") -> None:
        """A box without its lower face, unless ``bottom``, and without the hidden faces.

        ``hidden`` has a letter for each of those: "w" for -x, "e" for +x, "s" for -y, "n" for +y.
        """
        (x0, y0, z0), (x1, y1, z1) = low, high
        self.floor(x0, y0, x1, y1, z1)
        if "s" not in hidden:
            self.face((x0, y0, z0), (x1, y0, z0), (x1, y0, z1), (x0, y0, z1))
        if "e" not in hidden:
            self.face((x1, y0, z0), (x1, y1, z0), (x1, y1, z1), (x1, y0, z1))
        if "n" not in hidden:
            self.face((x1, y1, z0), (x0, y1, z0), (x0, y1, z1), (x1, y1, z1))
        if "w" not in hidden:
            self.face((x0, y1, z0), (x0, y0, z0), (x0, y0, z1), (x0, y1, z1))
        if bottom:
            self.face((x0, y0, z0), (x0, y1, z0), (x1, y1, z0), (x1, y0, z0))

    def block(self, axis: int, along: tuple[float, float], across: tuple[float, float], up: tuple[float, float],
              bottom: bool = False, hidden: tuple[int, ...] = ()) -> None:
        """A box whose first range is along x (axis 0) or y (axis 1).

        ``hidden`` names faces that other solids cover: 0 where ``along`` ends, 1 where ``across``
        begins, 2 where ``across`` ends.
        """
        a, b = (min(along), max(along)), (min(across), max(across))
        x, y = (a, b) if axis == 0 else (b, a)
        far = "e" if along[1] > along[0] else "w"
        names = (far, "s", "n") if axis == 0 else ({"e": "n", "w": "s"}[far], "w", "e")
        self.box((x[0], y[0], up[0]), (x[1], y[1], up[1]), bottom, "".join(names[k] for k in hidden))

    def ramp(self, axis: int, along: tuple[float, float], across: tuple[float, float], up: tuple[float, float]) -> None:
        """A wedge that rises from up[0] at along[0] to up[1] at along[1]."""
        c0, c1 = min(across), max(across)

        def at(a: float, c: float, z: float) -> tuple[float, float, float]:
            return (a, c, z) if axis == 0 else (c, a, z)

        faces = [
            [at(along[0], c0, up[0]), at(along[1], c0, up[1]), at(along[1], c1, up[1]), at(along[0], c1, up[0])],
            [at(along[1], c0, up[0]), at(along[1], c1, up[0]), at(along[1], c1, up[1]), at(along[1], c0, up[1])],
            [at(along[0], c0, up[0]), at(along[1], c0, up[0]), at(along[1], c0, up[1])],
            [at(along[0], c1, up[0]), at(along[1], c1, up[1]), at(along[1], c1, up[0])],
        ]
        # Mirrored once for each change of the axes' order or direction.
        if (along[1] < along[0]) != (axis == 1):
            faces = [points[::-1] for points in faces]
        for points in faces:
            self.face(*points)
        for k in range(4):
            a0 = along[0] + (along[1] - along[0]) * 0.25 * k
            a1 = along[0] + (along[1] - along[0]) * 0.25 * (k + 1)
            (x0, y0, _), (x1, y1, _) = at(min(a0, a1), c0, 0.0), at(max(a0, a1), c1, 0.0)
            self.plan.append((x0, y0, x1, y1, up[0] + (up[1] - up[0]) * 0.25 * (k + 0.5)))

    def ground(self, x0: float, y0: float, step: float, heights: NDArray[np.float64]) -> None:
        """A grid of heights."""
        for i in range(heights.shape[0] - 1):
            for j in range(heights.shape[1] - 1):
                x, y = x0 + i * step, y0 + j * step
                a, b = (x, y, float(heights[i, j])), (x + step, y, float(heights[i + 1, j]))
                c = x + step, y + step, float(heights[i + 1, j + 1])
                d = x, y + step, float(heights[i, j + 1])
                self.face(a, b, c)
                self.face(a, c, d)
                self.plan.append((x, y, x + step, y + step, (a[2] + b[2] + c[2] + d[2]) * 0.25))

    def arrays(self) -> dict[str, Any]:
        order = sorted(range(len(self.plan)), key=lambda k: (self.plan[k][4], k))
        return {
            "vertices": np.array(list(self.numbers), np.float64).reshape(-1, 3),
            "triangles": np.array(self.triangles, np.int32).reshape(-1, 3),
            "plan": np.array([self.plan[k] for k in order], np.float64).reshape(-1, 5),
        }


def _tree(draws: Draws, nx: int, ny: int, extra: tuple[int, int]) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """A random spanning tree over a grid of cells.

    Returns the parent of each cell, in the order of visits, and all open edges. ``extra`` is the
    chance, as a fraction, that an edge outside of the tree is open too.
    """
    first = draws.below(nx * ny)
    parent = {first: first}
    stack = [first]
    while stack:
        # Mostly the last one: long ways; sometimes another: branches.
        at = len(stack) - 1 if draws.chance(3, 4) else draws.below(len(stack))
        i, j = divmod(stack[at], ny)
        free = [(i + di) * ny + j + dj for di, dj in _DIRECTIONS if 0 <= i + di < nx and 0 <= j + dj < ny]
        free = [cell for cell in free if cell not in parent]
        if not free:
            stack.pop(at)
            continue
        chosen = draws.one_of(free)
        parent[chosen] = stack[at]
        stack.append(chosen)
    edges = {(min(a, b), max(a, b)) for a, b in parent.items() if a != b}
    for cell in range(nx * ny):
        for other in ((cell + ny) if cell // ny + 1 < nx else -1, cell + 1 if cell % ny + 1 < ny else -1):
            if other >= 0 and draws.chance(*extra):
                edges.add((cell, other))
    return parent, edges


def _ways(goal: int, middle: NDArray[np.float64], exits: dict[tuple[int, int], tuple[float, float, float]],
          target: NDArray[np.float64]) -> dict[str, Any]:
    """Fields of a level that lead to the goal, by a breadth-first search from it."""
    n = len(middle)
    onward = np.full(n, -1, np.int64)
    points = np.zeros((n, 3))
    remaining = np.zeros(n)
    onward[goal], points[goal] = goal, target
    queue = [goal]
    for cell in queue:
        for (a, b), point in sorted(exits.items()):
            other = b if a == cell else a if b == cell else -1
            if other < 0 or onward[other] >= 0:
                continue
            onward[other], points[other] = cell, point
            x, y, z = (points[cell] - points[other]).tolist()
            remaining[other] = remaining[cell] + float(np.sqrt(x * x + y * y + z * z))
            queue.append(other)
    return {"onward": onward, "exits": points, "remaining": remaining, "goal": target}


def rooms(seed: int, size: int = 3) -> Level:
    """A dungeon: rooms of 6 m with doors, stairs, ramps, bridges, pillars and rough ground.

    Parameters
    ----------
    seed : int
    size : int
        Rooms along each axis, 2 to 8.

    Returns
    -------
    Level
    """
    draws = Draws(0x4006, seed)
    b = _Builder()
    n = size * size
    parent, edges = _tree(draws, size, size, (1, 6))
    level = [0] * n
    for cell, before in parent.items():
        if cell != before:
            level[cell] = min(max(level[before] + draws.one_of((0, 0, 1, -1)), 0), 2)
    edges = {(p, q) for p, q in edges if abs(level[p] - level[q]) <= 1}
    # (axis, side) of each opening.
    doors: dict[int, list[tuple[int, int]]] = {cell: [] for cell in range(n)}
    strips: set[int] = set()
    for p, q in sorted(edges):
        axis = 0 if q - p == size else 1
        doors[p].append((axis, 1))
        doors[q].append((axis, -1))
        if level[p] != level[q]:
            strips.add(p if level[p] < level[q] else q)

    low, middle = _cells(b, draws, size, level, doors, strips)
    exits = _walls(b, draws, size, level, edges, low)
    goal = draws.below(n)
    return Level(
        kind="rooms", seed=seed, movers=(), shape=(size, size), pitch=ROOM, floor=middle[:, 2].copy(),
        spots=middle, deadly=np.full(n, -np.inf), course=(), **_ways(goal, middle, exits, middle[goal].copy()),
        **b.arrays(),
    )


def _cells(
    b: _Builder, draws: Draws, size: int, level: list[int], doors: dict[int, list[tuple[int, int]]], strips: set[int]
) -> tuple[list[float], NDArray[np.float64]]:
    """Add bridges, rough ground, floors and pillars; return depth and middle of each room."""
    low = [float(z) for z in level]
    middle = np.zeros((size * size, 3))
    for cell in range(size * size):
        i, j = divmod(cell, size)
        x, y, z = (i + 0.5) * ROOM, (j + 0.5) * ROOM, float(level[cell])
        middle[cell] = x, y, z
        straight = len(doors[cell]) == 2 and doors[cell][0][0] == doors[cell][1][0]
        style = draws.below(4)
        if straight and cell not in strips and style < 3:
            _bridge(b, draws, doors[cell][0][0], (x, y), z)
            low[cell] = z - PIT
        elif cell not in strips and style >= 2:
            heights = np.zeros((5, 5))
            for k in range(1, 4):
                for m in range(1, 4):
                    heights[k, m] = draws.below(4) * 0.1875
            b.ground(x - 3.0, y - 3.0, 1.5, z + heights)
            middle[cell, 2] = z + float(heights[2, 2])
        else:
            b.floor(x - 3.0, y - 3.0, x + 3.0, y + 3.0, z)
            for _ in range(draws.below(3)):
                half = draws.one_of((0.375, 0.5))
                px, py = x + draws.one_of((-1.75, 1.75)), y + draws.one_of((-1.75, 1.75))
                b.box((px - half, py - half, z - 0.25), (px + half, py + half, TOP))
    return low, middle


def _walls(
    b: _Builder, draws: Draws, size: int, level: list[int], edges: set[tuple[int, int]], low: list[float]
) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Add walls with doors, lintels and steps; return the point of each door by its two rooms."""
    exits: dict[tuple[int, int], tuple[float, float, float]] = {}
    for axis in (0, 1):
        for line in range(size + 1):
            for k in range(size):
                q = line * size + k if axis == 0 else k * size + line
                p = q - size if axis == 0 else q - 1
                across = (k * ROOM, (k + 1) * ROOM)
                at = line * ROOM
                sides = [cell for cell, inside in ((p, line > 0), (q, line < size)) if inside]
                base = min(low[cell] for cell in sides) - 0.25
                top = TOP if len(sides) == 2 else OUTER
                thick = (at - 0.25, at + 0.25)
                if (p, q) not in edges or len(sides) < 2:
                    # Other walls cover its ends.
                    b.block(axis, thick, across, (base, top), hidden=(1, 2))
                    continue
                centre = (k + 0.5) * ROOM
                gap = draws.one_of((0.75, 0.875, 1.0))
                b.block(axis, thick, (across[0], centre - gap), (base, top), hidden=(1,))
                b.block(axis, thick, (centre + gap, across[1]), (base, top), hidden=(2,))
                if draws.chance(2, 3):
                    lintel = max(level[p], level[q]) + 2.25
                    b.block(axis, thick, (centre - gap, centre + gap), (lintel, top), True, (1, 2))
                if base < min(level[p], level[q]) - 0.25:
                    b.block(axis, thick, (centre - gap, centre + gap), (base, float(min(level[p], level[q]))),
                            hidden=(1, 2))
                if level[p] != level[q]:
                    _strip(b, draws, axis, at, -1 if level[p] < level[q] else 1, centre,
                           float(min(level[p], level[q])))
                point = (at, centre) if axis == 0 else (centre, at)
                exits[p, q] = (*point, float(max(level[p], level[q])))
    return exits


def _strip(b: _Builder, draws: Draws, axis: int, at: float, side: int, centre: float, z: float) -> None:
    """Stairs or a ramp, 1 m up over 2 m, to an opening from the side of it that is lower."""
    across = (centre - 1.0, centre + 1.0)
    if draws.chance(1, 2):
        b.ramp(axis, (at + side * 2.0, at), across, (z, z + 1.0))
        return
    for k in range(4):
        b.block(axis, (at + side * (2.0 - 0.5 * k), at + side * (1.5 - 0.5 * k)), across,
                (z - 0.25, z + 0.25 * (k + 1)), hidden=(0,) if k < 3 else ())


def _bridge(b: _Builder, draws: Draws, axis: int, centre: tuple[float, float], z: float) -> None:
    """A pit with a bridge across it, and a ramp along the bridge that leads out of it."""
    along, across = (centre[0], centre[1]) if axis == 0 else (centre[1], centre[0])
    b.floor(centre[0] - 3.0, centre[1] - 3.0, centre[0] + 3.0, centre[1] + 3.0, z - PIT)
    b.block(axis, (along - 3.0, along + 3.0), (across - 0.625, across + 0.625), (z - 0.25, z), bottom=True)
    side, end = draws.one_of((-1, 1)), draws.one_of((-1, 1))
    rim = (across + side * 0.625, across + side * 1.875)
    b.ramp(axis, (along - end * 2.75, along + end * 1.75), rim, (z - PIT, z))
    b.block(axis, (along + end * 1.75, along + end * 2.75), rim, (z - PIT - 0.25, z))


def maze(seed: int, size: int = 6) -> Level:
    """A maze of corridors of 2.5 m, with floors of two heights that a step leads over.

    Parameters
    ----------
    seed : int
    size : int
        Cells along each axis, 2 to 16.

    Returns
    -------
    Level
    """
    draws = Draws(0x3A2E, seed)
    b = _Builder()
    pitch = 2.5
    n = size * size
    _, edges = _tree(draws, size, size, (1, 12))
    height = [0.25 * draws.below(2) for _ in range(n)]
    side = size * pitch
    b.floor(0.0, 0.0, side, side, 0.0)
    middle = np.zeros((n, 3))
    for cell in range(n):
        i, j = divmod(cell, size)
        middle[cell] = (i + 0.5) * pitch, (j + 0.5) * pitch, height[cell]
        if height[cell] > 0.0 and (j == 0 or height[cell - 1] == 0.0):
            # One box for a row of raised cells.
            last = j
            while last + 1 < size and height[i * size + last + 1] > 0.0:
                last += 1
            b.box((i * pitch, j * pitch, -0.25), ((i + 1) * pitch, (last + 1) * pitch, 0.25))
    for axis in (0, 1):
        for line in range(size + 1):
            run = 0
            for k in range(size + 1):
                q = line * size + k if axis == 0 else k * size + line
                p = q - size if axis == 0 else q - 1
                if k < size and (p, q) not in edges:
                    run += 1
                elif run:
                    b.block(axis, (line * pitch - 0.125, line * pitch + 0.125),
                            ((k - run) * pitch - 0.125, k * pitch + 0.125),
                            (-0.25, WALL if 0 < line < size else OUTER))
                    run = 0
    exits = {}
    for p, q in edges:
        x, y, _ = ((middle[p] + middle[q]) * 0.5).tolist()
        exits[p, q] = (x, y, max(height[p], height[q]))
    goal = draws.below(n)
    return Level(
        kind="maze", seed=seed, movers=(), shape=(size, size), pitch=pitch, floor=middle[:, 2].copy(), spots=middle,
        deadly=np.full(n, -np.inf), course=(), **_ways(goal, middle, exits, middle[goal].copy()), **b.arrays(),
    )


def terrain(seed: int, size: int = 12) -> Level:
    """Open hills that can be walked over everywhere, between four walls.

    Parameters
    ----------
    seed : int
    size : int
        Squares of 2 m along each axis, 4 to 32.

    Returns
    -------
    Level
    """
    draws = Draws(0x7E44, seed)
    b = _Builder()
    step = 2.0
    side = size * step
    # Hills over random centres, each a product of parabolas: no slope is steeper than 30 degrees.
    heights = np.zeros((size + 1, size + 1))
    for _ in range(4):
        ci, cj, h = draws.below(size + 1), draws.below(size + 1), draws.one_of((-1.0, 0.75, 1.0, 1.5))
        reach = draws.one_of((3, 4, 5))
        for i in range(max(ci - reach, 0), min(ci + reach, size) + 1):
            for j in range(max(cj - reach, 0), min(cj + reach, size) + 1):
                u, v = (i - ci) ** 2 / reach**2, (j - cj) ** 2 / reach**2
                heights[i, j] += h * (1.0 - u) * (1.0 - v)
    # Slopes add up where hills meet: all heights shrink until no edge of 2 m rises by more than 7/8
    # m.
    heights = np.round(heights * 64.0) / 64.0
    while max(np.abs(np.diff(heights, axis=0)).max(), np.abs(np.diff(heights, axis=1)).max()) > 0.875:
        heights = np.round(heights * 48.0) / 64.0
    b.ground(0.0, 0.0, step, heights)
    low, high = float(heights.min()) - 0.25, float(heights.max()) + OUTER
    for axis in (0, 1):
        for at in (-0.125, side + 0.125):
            b.block(axis, (at - 0.25, at + 0.25), (-0.375, side + 0.375), (low, high))
    inner = [(i, j) for i in range(2, size - 1) for j in range(2, size - 1)]
    chosen = draws.shuffled(inner)[:9]
    spots = np.array([(i * step, j * step, heights[i, j]) for i, j in chosen], np.float64)
    goal = spots[0]
    return Level(
        kind="terrain", seed=seed, movers=(), shape=(1, 1), pitch=side, floor=np.array([float(heights.min())]),
        spots=spots[1:], goal=goal, exits=goal[None].copy(), remaining=np.zeros(1), onward=np.zeros(1, np.int64),
        deadly=np.full(1, -np.inf), course=(), **b.arrays(),
    )


# What a part of a course may be.
PARTS = ("gap", "ledge", "drop", "lift", "rotor", "low", "stairs")


class _Course:
    """The parts of an obstacle course, from the start on along x.

    Attributes
    ----------
    z : float
        Height of the floor at the end of the parts so far.
    begun : float
        Where the floor begins that has no end yet, x.
    floors : list of tuple
        Stretches of floor: x from, x to, z.
    """

    PITCH, HALF, CENTRE = 6.0, 2.0, 3.0

    def __init__(self, b: _Builder, draws: Draws) -> None:
        self.b, self.draws = b, draws
        self.z = self.begun = 0.0
        self.floors: list[tuple[float, float, float]] = []
        self.course: list[Waypoint] = []
        self.movers: list[Mover] = []
        self.y = (self.CENTRE - self.HALF, self.CENTRE + self.HALF)

    def gap(self, x: float) -> None:
        width = self.draws.one_of((1.5, 1.75, 2.0, 2.25))
        self._end(x + 2.0, x + 2.0 + width)
        self._to(x + 1.75)
        self._to(self.begun + 0.75, jump=True)

    def ledge(self, x: float) -> None:
        self._end(x + 3.0, x + 3.0)
        self._to(x + 2.0)
        self.z += self.draws.one_of((0.75, 0.875, 1.0))
        self._to(x + 4.25, jump=True)

    def drop(self, x: float) -> None:
        self._end(x + 3.0, x + 3.0)
        self._to(x + 2.0)
        self.z -= self.draws.one_of((0.75, 1.0, 1.5))
        self._to(x + 4.25)

    def lift(self, x: float) -> None:
        self._end(x + 2.0, x + 4.0)
        offset = self.draws.below(PERIOD)
        # 32 ticks below, 32 up, 32 above, 32 down.
        clocks = [(t + offset) % PERIOD for t in range(PERIOD)]
        rise = [min(max(48 - abs(clock - 80), 0), 32) / 32.0 * LIFT for clock in clocks]
        tall = (LIFT + COURSE_PIT) * 0.5
        poses = np.zeros((PERIOD, 7))
        poses[:] = x + 3.0, self.CENTRE, 0.0, 0.0, 0.0, 0.0, 1.0
        poses[:, 2] = self.z - tall + np.array(rise)
        self.movers.append(Mover((1.0, self.HALF, tall), poses))
        below, above = (PERIOD - offset) % PERIOD, (PERIOD - offset + 64) % PERIOD
        self._to(x + 1.25)
        self._to(x + 3.0, window=(below, below + 16))
        self.z += LIFT
        self._to(x + 5.0, window=(above, above + 16))

    def rotor(self, x: float) -> None:
        self._end(x + 1.0, x + 5.0)
        turns = self.draws.one_of((1, -1))
        poses = np.zeros((PERIOD, 7))
        for t in range(PERIOD):
            sine, cosine = _sin_cos(t)
            poses[t] = x + 3.0, self.CENTRE, self.z - 0.25, 0.0, 0.0, turns * sine, cosine
        self.movers.append(Mover((1.25, 1.25, 0.25), poses))
        self._to(x + 0.75)
        self._to(x + 3.0, jump=True)
        self._to(x + 5.5, jump=True)

    def low(self, x: float) -> None:
        z = self.z
        self.b.block(0, (x + 2.0, x + 4.0), self.y, (z + 2.0, z + 3.0), bottom=True)
        self.b.block(0, (x + 2.75, x + 3.25), self.y, (z - 0.25, z + 0.25))
        self._to(x + 5.0)

    def stairs(self, x: float) -> None:
        self._end(x + 2.0, x + 4.0)
        for step in range(4):
            self.floors.append((x + 2.0 + 0.5 * step, x + 2.5 + 0.5 * step, self.z + 0.25 * (step + 1)))
        self.z += 1.0
        self._to(x + 5.0)

    def build(self, end: float) -> None:
        """Add the floors to the triangles, and the walls around everything."""
        self.floors.append((self.begun, end, self.z))
        b, y = self.b, self.y
        low, high = min(f[2] for f in self.floors) - COURSE_PIT, max(f[2] for f in self.floors) + OUTER
        b.floor(0.0, y[0], end, y[1], low)
        for x0, x1, top in self.floors:
            b.block(0, (x0, x1), y, (low, top))
        b.face((end, y[0], low), (0.0, y[0], low), (0.0, y[0], high), (end, y[0], high))
        b.face((0.0, y[1], low), (end, y[1], low), (end, y[1], high), (0.0, y[1], high))
        b.face((0.0, y[0], low), (0.0, y[1], low), (0.0, y[1], high), (0.0, y[0], high))
        b.face((end, y[1], low), (end, y[0], low), (end, y[0], high), (end, y[1], high))

    def _end(self, x: float, next_x: float) -> None:
        """End the floor at x; the next one begins at ``next_x``."""
        self.floors.append((self.begun, x, self.z))
        self.begun = next_x

    def _to(self, x: float, jump: bool = False, window: tuple[int, int] = (0, PERIOD)) -> None:
        """Lead the solution to x."""
        self.course.append(Waypoint((x, self.CENTRE, self.z), jump=jump, window=window))


def parkour(seed: int, size: int = 6) -> Level:
    """An obstacle course: gaps, ledges, drops, lifts, rotating platforms, low ceilings, stairs.

    Parameters
    ----------
    seed : int
    size : int
        Parts of 6 m between the start and the goal, 1 to 32.

    Returns
    -------
    Level
        With a `course`: the solution jumps, and waits for lifts.
    """
    draws = Draws(0x9A4C, seed)
    b = _Builder()
    made = _Course(b, draws)
    pitch, centre = made.PITCH, made.CENTRE
    n = size + 2
    floor, deadly, exits = np.zeros(n), np.zeros(n), np.zeros((n, 3))
    parts = [draws.one_of(PARTS) for _ in range(size)]
    for k in range(1, n - 1):
        floor[k] = made.z
        getattr(made, parts[k - 1])(k * pitch)
        exits[k] = k * pitch + pitch, centre, made.z
        deadly[k] = (made.z if parts[k - 1] == "drop" else floor[k]) - 1.5
    made.build(n * pitch)
    floor[n - 1] = made.z
    goal = np.array([(n - 0.5) * pitch, centre, made.z])
    exits[0] = pitch, centre, 0.0
    exits[n - 1] = goal
    deadly[0], deadly[n - 1] = -1.5, made.z - 1.5
    made.course.append(Waypoint(_point(goal)))

    remaining = np.zeros(n)
    for k in range(n - 2, -1, -1):
        u, v, w = (exits[k + 1] - exits[k]).tolist()
        remaining[k] = remaining[k + 1] + float(np.sqrt(u * u + v * v + w * w))
    onward = np.minimum(np.arange(1, n + 1), n - 1)
    return Level(
        kind="parkour", seed=seed, movers=tuple(made.movers), shape=(n, 1), pitch=pitch, floor=floor,
        spots=np.array([(3.0, centre, 0.0)]), goal=goal, exits=exits, remaining=remaining, onward=onward,
        deadly=deadly, course=tuple(made.course), **b.arrays(),
    )


def _sin_cos(tick: int) -> tuple[float, float]:
    """Sine and cosine of half the angle of a platform that turns once a period."""
    x, y = circle(2 * PERIOD)[tick].tolist()
    return y, x


KINDS: dict[str, tuple[Callable[[int, int], Level], int, int, int]] = {
    # Generator, its usual size, the least and the greatest.
    "rooms": (rooms, 3, 2, 8),
    "maze": (maze, 6, 2, 16),
    "terrain": (terrain, 12, 4, 32),
    "parkour": (parkour, 6, 1, 32),
}


def generate(kind: str, seed: int, size: int | None = None) -> Level:
    """Make a level.

    Parameters
    ----------
    kind : {'rooms', 'maze', 'terrain', 'parkour'}
    seed : int
        0 to 2**63 - 1.
    size : int, optional
        How large: see the generators of this module.

    Returns
    -------
    Level
        A function of the arguments alone, to the bit.

    Raises
    ------
    ValueError, TypeError
        An argument makes no sense.

    Examples
    --------
    >>> from pycct.rl.levels import generate
    >>> level = generate("rooms", seed=7)
    >>> level.shape, len(level.triangles) < 500, len(level.route()) > 0
    ((3, 3), True, True)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {sorted(KINDS)}, not {short(kind)}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed must be an integer, not {type(seed).__name__}")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be from 0 to 2**63 - 1, got {short(seed)}")
    make, usual, least, most = KINDS[kind]
    if size is None:
        size = usual
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise TypeError(f"size must be an integer, not {type(size).__name__}")
    if not least <= size <= most:
        raise ValueError(f"size of {short(kind)} must be from {least} to {most}, got {short(size)}")
    return make(int(seed), int(size))
