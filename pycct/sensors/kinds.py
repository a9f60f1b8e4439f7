"""The kinds of sensors: what each reports, and where its rays begin and lead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pycct.args.plain import as_float, short

# Most rays or cells of one sensor.
MOST_RAYS = 1 << 20
# No ray is longer, m: the farthest point of a scene is nearer.
FARTHEST_REACH = 1e13
FULL_TURN = 2.0 * math.pi
# Pictures with a wider field of view are useless: their pixels stretch without limit.
WIDEST_VIEW = 3.0
RAY_FIELDS = ("distance", "normal", "kind", "id", "triangle", "data")


def _number(value: Any, name: str, least: float, most: float, *, above: bool = False) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a number, not {short(value)}")
    x = as_float(value, name)
    if not least <= x <= most or (above and x == least):
        raise ValueError(f"{name} must be {'>' if above else '>='} {least:g} and <= {most:g}, got {x:g}")
    return x


def _count(value: Any, name: str, least: int = 1) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {short(value)}")
    if not least <= value <= MOST_RAYS:
        raise ValueError(f"{name} must be from {least} to {MOST_RAYS}, got {short(value)}")
    return int(value)


def _bits(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"mask must be an integer, not {short(value)}")
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"mask must fit into 32 bits, got {short(value)}")
    return int(value)


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers, got {short(value)}") from None
    return first, second


def _fields(value: Any, known: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"fields must be names in a list or tuple, not {short(value)}")
    try:
        names = tuple(value)
    except TypeError:
        raise TypeError(f"fields must be names in a list or tuple, not {type(value).__name__}") from None
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"fields must be among {', '.join(known)}, not {short(name)}")
    if not names or len(set(names)) != len(names):
        raise ValueError(f"fields must be at least one name, each once, got {short(names)}")
    return names


def _set(sensor: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(sensor, name, value)


@dataclass(frozen=True)
class Lidar:
    """A fan of rays at right angles to the character's up direction.

    Parameters
    ----------
    rays : int
        Number of rays.
    reach : float
        Length of the rays, metres, >= 0.
    height : float
        Height of the rays above the feet, metres; negative ones are below.
    fov : float
        Angle of the fan, radians, up to a full turn. Rays of a full turn are evenly spaced, and the
        first points ahead. Rays of a smaller fan go from ``-fov / 2`` (right) to ``fov / 2``
        (left), both included; a single ray points ahead. Angles are counter-clockwise, seen from
        above.
    tilts : bool
        Whether the fan follows ``pitch``; otherwise it stays level.
    mask : int
        Layers to see.
    fields : sequence of str
        Arrays to compute, of shape (n, rays): ``"distance"`` (metres; ``reach`` without a hit),
        ``"normal"`` (three numbers each; zero without a hit), ``"kind"`` (`Seen`), ``"id"`` (-1
        without a hit), ``"triangle"`` (index in the mesh or heightfield, -1: none), ``"data"`` (its
        ``triangle_data``, 0: none).
    """

    rays: int
    reach: float
    height: float = 1.0
    fov: float = FULL_TURN
    tilts: bool = False
    mask: int = 0xFFFFFFFF
    fields: Sequence[str] = ("distance",)
    known: ClassVar[tuple[str, ...]] = RAY_FIELDS

    def __post_init__(self) -> None:
        """Check and convert the values."""
        if not isinstance(self.tilts, (bool, np.bool_)):
            raise TypeError(f"tilts must be True or False, not {short(self.tilts)}")
        _set(
            self,
            rays=_count(self.rays, "rays"),
            reach=_number(self.reach, "reach", 0.0, FARTHEST_REACH),
            height=_number(self.height, "height", -1e6, 1e6),
            fov=_number(self.fov, "fov", 0.0, FULL_TURN, above=True),
            tilts=bool(self.tilts),
            mask=_bits(self.mask),
            fields=_fields(self.fields, self.known),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of one character."""
        return (self.rays,)

    @property
    def angles(self) -> list[float]:
        """Angle of each ray, radians, counter-clockwise from ahead."""
        if self.fov >= FULL_TURN:
            return [k * (self.fov / self.rays) for k in range(self.rays)]
        if self.rays == 1:
            return [0.0]
        return [k * (self.fov / (self.rays - 1)) - 0.5 * self.fov for k in range(self.rays)]


@dataclass(frozen=True)
class HeightScan:
    """Heights of what is below a grid of cells around the feet; the grid turns with ``yaw``.

    Parameters
    ----------
    shape : (int, int)
        Cells ahead and aside. Cell (0, 0) is behind to the right, and the middle of the grid is
        above the feet.
    spacing : float or (float, float)
        Distance of the cells ahead and aside, metres, > 0.
    reach : float
        How far below the feet to look, metres, >= 0.
    above : float
        Height above the feet at which the rays begin, metres, >= 0.
    mask : int
        Layers to see.
    fields : sequence of str
        Arrays to compute, of shape ``(n, *shape)``: ``"height"`` (of the hit above the feet,
        metres; ``-reach`` without a hit), and those of `Lidar`.

    Notes
    -----
    The values are those of a ray for each cell, which begins ``above`` the feet and leads down.
    """

    shape: tuple[int, int]
    spacing: float | tuple[float, float]
    reach: float
    above: float = 1.0
    mask: int = 0xFFFFFFFF
    fields: Sequence[str] = ("height",)
    known: ClassVar[tuple[str, ...]] = ("height", *RAY_FIELDS)

    def __post_init__(self) -> None:
        """Check and convert the values."""
        rows, columns = _pair(self.shape, "shape")
        shape = (_count(rows, "shape"), _count(columns, "shape"))
        _count(shape[0] * shape[1], "the number of cells")
        if isinstance(self.spacing, (tuple, list, np.ndarray)) and np.ndim(self.spacing) > 0:
            ahead, aside = _pair(self.spacing, "spacing")
        else:
            ahead = aside = self.spacing
        _set(
            self,
            shape=shape,
            spacing=(_number(ahead, "spacing", 0.0, 1e6, above=True), _number(aside, "spacing", 0.0, 1e6, above=True)),
            reach=_number(self.reach, "reach", 0.0, FARTHEST_REACH),
            above=_number(self.above, "above", 0.0, 1e6),
            mask=_bits(self.mask),
            fields=_fields(self.fields, self.known),
        )

    @property
    def offsets(self) -> list[tuple[float, float]]:
        """Metres ahead and to the left of the feet, of each cell, row by row."""
        (rows, columns), (ahead, aside) = self.shape, self.spacing  # type: ignore[misc]
        return [
            ((i - 0.5 * (rows - 1)) * ahead, (j - 0.5 * (columns - 1)) * aside)
            for i in range(rows)
            for j in range(columns)
        ]


@dataclass(frozen=True)
class DepthGrid:
    """A picture of depths from the eyes, through a pinhole; it turns with ``yaw`` and ``pitch``.

    Parameters
    ----------
    width, height : int
        Pixels. Pixels are square, row 0 is the top, column 0 the left.
    fov : float
        Horizontal angle of view, radians, up to 3.
    reach : float
        Length of the rays, metres, >= 0.
    eye : float
        Height of the eyes above the feet, metres.
    mask : int
        Layers to see.
    fields : sequence of str
        Arrays to compute, of shape (n, height, width): ``"depth"`` (part of the distance along the
        line of sight, metres), and those of `Lidar`.
    """

    width: int
    height: int
    fov: float
    reach: float = 100.0
    eye: float = 1.5
    mask: int = 0xFFFFFFFF
    fields: Sequence[str] = ("depth",)
    known: ClassVar[tuple[str, ...]] = ("depth", *RAY_FIELDS)

    def __post_init__(self) -> None:
        """Check and convert the values."""
        width, height = _count(self.width, "width"), _count(self.height, "height")
        _count(width * height, "the number of pixels")
        _set(
            self,
            width=width,
            height=height,
            fov=_number(self.fov, "fov", 0.0, WIDEST_VIEW, above=True),
            reach=_number(self.reach, "reach", 0.0, FARTHEST_REACH),
            eye=_number(self.eye, "eye", -1e6, 1e6),
            mask=_bits(self.mask),
            fields=_fields(self.fields, self.known),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of one character."""
        return (self.height, self.width)

    @property
    def pixels(self) -> list[tuple[float, float]]:
        """Place of each pixel, row by row: to the left and up, in halves of the picture's width."""
        return [
            (1.0 - (2.0 * j + 1.0) / self.width, (self.height - (2.0 * i + 1.0)) / self.width)
            for i in range(self.height)
            for j in range(self.width)
        ]


@dataclass(frozen=True)
class Neighbours:
    """The nearest members of the same group in the same world, nearest first; ties by id.

    Parameters
    ----------
    k : int
        Number of neighbours.
    radius : float
        Largest distance of the centres, metres, >= 0.
    fields : sequence of str
        Arrays to compute, of shape (n, k): ``"id"`` (-1: nobody), ``"position"`` and ``"velocity"``
        (three numbers each, relative to the member's own, along the axes of the world; zero:
        nobody), ``"distance"`` (of the centres, metres; ``radius``: nobody).
    """

    k: int
    radius: float
    fields: Sequence[str] = ("id", "position", "velocity")
    known: ClassVar[tuple[str, ...]] = ("id", "position", "velocity", "distance")

    def __post_init__(self) -> None:
        """Check and convert the values."""
        _set(
            self,
            k=_count(self.k, "k"),
            radius=_number(self.radius, "radius", 0.0, FARTHEST_REACH),
            fields=_fields(self.fields, self.known),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of one character."""
        return (self.k,)


@dataclass(frozen=True)
class Feet:
    """The ground at the end of the last move.

    Parameters
    ----------
    fields : sequence of str
        Arrays to compute, of shape (n,): ``"normal"`` (three numbers; zero in the air),
        ``"distance"`` (gap below the capsule, metres; 0 in the air), ``"walkable"``, ``"kind"``
        (`Seen`; a static actor, unless it moves), ``"id"`` (of what the character stands on, -1:
        nothing), ``"triangle"`` (-1: none), ``"data"`` (its ``triangle_data``, 0: none).
    """

    fields: Sequence[str] = ("normal", "distance", "walkable", "kind", "id")
    known: ClassVar[tuple[str, ...]] = ("normal", "distance", "walkable", "kind", "id", "triangle", "data")

    def __post_init__(self) -> None:
        """Check the names."""
        _set(self, fields=_fields(self.fields, self.known))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of one character."""
        return ()


KINDS = (Lidar, HeightScan, DepthGrid, Neighbours, Feet)
