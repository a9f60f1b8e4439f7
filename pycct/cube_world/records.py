"""Records of the sweep/slide controller: plain, immutable named tuples (SLIDE 2 to 7)."""

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
    """Overlap of a capsule and one box (SLIDE 2.5)."""

    hit: bool
    """Whether the distance is less than the radius."""
    normal: Vector
    """Unit vector out of the box; zero without a hit."""
    depth: float
    """Length of the exit, metres."""
    point_on_cap: Vector
    """Point of the capsule's surface, deepest in the box.

    Without a hit, the nearest point of the axis.
    """
    point_on_box: Vector
    """Point of the box, nearest to the axis."""
    id: int = -1
    """Id of the cube or box, -1 if it has none."""


class SweepHit(NamedTuple):
    """The first contact of a motion (SLIDE 3.4)."""

    t: float
    """Fraction of the motion, 1 without a hit."""
    normal: Vector
    """Unit vector out of the cube or box; zero without a hit."""
    hit_id: int
    """Id of the cube or box, -1 without a hit."""
    distance: float
    """Distance along the motion, metres."""
    point: Vector
    """Point of the surface; without a hit, the final centre of the lower sphere."""


class SlideIteration(NamedTuple):
    """One bump of the last frame's slide (SLIDE 4.3)."""

    t: float
    """Fraction of the remaining motion."""
    normal: Vector
    hit_id: int
    remain: float
    """Length of the motion that remained before this bump, metres."""
    feet_pos: Vector
    """Position of the feet before this bump."""
    delta: Vector
    """The motion of this bump, metres."""


class GroundResult(NamedTuple):
    """Result of the ground probe (SLIDE 5.2)."""

    hit: bool
    walkable: bool
    normal: Vector
    distance: float
    """Distance straight down from the capsule's lowest point, metres."""
    hit_id: int


class GroundState(NamedTuple):
    """Ground state with grace time (SLIDE 5.3)."""

    is_grounded: bool
    time_since_grounded: float
    """Time since the last ground, seconds."""
    ground_normal: Vector


class SweepMark(NamedTuple):
    """The last frame's first sweep, for drawing (SLIDE 3.5)."""

    start: Vector
    end: Vector
    hit_point: Vector | None


class Candidates(NamedTuple):
    """Broadphase candidates of the last frame's first sweep (SLIDE 3.3)."""

    count: int  # type: ignore[assignment]
    first_id: int
    """The lowest id, -1 for none."""
    last_id: int


class DepenIteration(NamedTuple):
    """One round of depenetration (SLIDE 6.2)."""

    push: Vector
    overlaps: int
