"""What the sweep/slide controller tells about itself: plain, immutable records (SLIDE 2 to 7)."""

from __future__ import annotations

from typing import NamedTuple

Vector = tuple[float, float, float]


class SlideCapsule(NamedTuple):
    """An upright capsule, anchored at its feet (SLIDE 1.2, 1.3); metres."""

    feet_pos: Vector
    radius: float
    half_height: float

    @property
    def p0(self) -> Vector:
        """Centre of the lower sphere."""
        x, y, z = self.feet_pos
        return (x, y + self.radius, z)

    @property
    def p1(self) -> Vector:
        """Centre of the upper sphere."""
        x, y, z = self.feet_pos
        return (x, y + self.radius + 2.0 * self.half_height, z)

    @property
    def center(self) -> Vector:
        """Centre of the capsule."""
        x, y, z = self.feet_pos
        return (x, y + self.radius + self.half_height, z)

    @property
    def height(self) -> float:
        """Total height, 2 * radius + 2 * half_height."""
        return 2.0 * self.radius + 2.0 * self.half_height


class OverlapResult(NamedTuple):
    """A capsule against one box (SLIDE 2.5)."""

    hit: bool
    """Closer than the radius."""
    normal: Vector
    """Unit vector that pushes the capsule out; zero without a hit."""
    depth: float
    """Metres to push."""
    point_on_cap: Vector
    """On the capsule's surface, deepest in the box; the nearest point of the axis without a hit."""
    point_on_box: Vector
    """Of the box, nearest to the axis."""
    id: int = -1
    """Of the cube or box, -1 when it has none."""


class SweepHit(NamedTuple):
    """The first contact of a motion (SLIDE 3.4)."""

    t: float
    """Fraction of the motion, 1 when nothing is hit."""
    normal: Vector
    """Unit vector out of what was hit; zero for none."""
    hit_id: int
    """Of the cube or box, -1 for none."""
    distance: float
    """Metres along the motion."""
    point: Vector
    """On the surface of what was hit; without a hit, where the lower sphere centre ends."""


class SlideIteration(NamedTuple):
    """One bump of the last frame's slide (SLIDE 4.3)."""

    t: float
    """Fraction of the remaining motion."""
    normal: Vector
    hit_id: int
    remain: float
    """Metres that were left of the motion before this bump."""
    feet_pos: Vector
    """Where the bump began."""
    delta: Vector
    """The motion that was tried, metres."""


class GroundResult(NamedTuple):
    """What the ground probe found (SLIDE 5.2)."""

    hit: bool
    walkable: bool
    normal: Vector
    distance: float
    """Metres from the capsule's lowest point straight down."""
    hit_id: int


class GroundState(NamedTuple):
    """Standing or not, with grace time (SLIDE 5.3)."""

    is_grounded: bool
    time_since_grounded: float
    """Seconds."""
    ground_normal: Vector


class SweepMark(NamedTuple):
    """The last frame's first sweep, for drawing (SLIDE 3.5)."""

    start: Vector
    end: Vector
    hit_point: Vector | None


class Candidates(NamedTuple):
    """What the broad phase handed to the last frame's first sweep (SLIDE 3.3)."""

    count: int  # type: ignore[assignment]
    first_id: int
    """The lowest, -1 for none."""
    last_id: int


class DepenIteration(NamedTuple):
    """One round of pushes (SLIDE 6.2)."""

    push: Vector
    overlaps: int
