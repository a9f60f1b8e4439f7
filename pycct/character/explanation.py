"""Why a character moved as it did: the passes of one move in words and data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pycct.runtime.enums import CollisionFlags, Pass

KINDS = (
    "ride",
    "pass",
    "free",
    "hit",
    "overlap",
    "done",
    "turned_back",
    "out_of_turns",
    "too_steep_below",
    "too_steep_aside",
    "experiment",
)

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Event:
    """One event of a move.

    Attributes
    ----------
    kind : str
        One of ``explain.KINDS``.
    pass_ : Pass
        The pass it belongs to.
    position : tuple of float
        Where the character was, metres.
    vector : tuple of float
        What the kind says: a motion, a correction, a normal; metres or unit.
    hit : object
        The Hit, for ``kind == "hit"``.
    """

    kind: str
    pass_: Pass
    position: Vector
    vector: Vector
    hit: Any = None

    def __str__(self) -> str:
        return _SAY[self.kind](self)


@dataclass(frozen=True)
class Explanation:
    """What a move does, pass by pass.

    Attributes
    ----------
    displacement : tuple of float
        What was asked, metres.
    start, end : tuple of float
        Position before and after, metres.
    flags : CollisionFlags
        What the move returns.
    events : list of Event
        In the order in which they happen.
    notes : list of str
        Anything that makes the explanation differ from the move that was made.
    """

    displacement: Vector
    start: Vector
    end: Vector
    flags: CollisionFlags
    events: list[Event]
    notes: list[str] = field(default_factory=list)

    @property
    def moved(self) -> Vector:
        """What was really travelled, metres."""
        return (self.end[0] - self.start[0], self.end[1] - self.start[1], self.end[2] - self.start[2])

    def __str__(self) -> str:
        lines = [f"asked {_v(self.displacement)}, moved {_v(self.moved)}, flags {self.flags!r}"]
        lines += [("  " if e.kind in ("pass", "ride", "experiment") else "    ") + str(e) for e in self.events]
        lines += [f"  note: {n}" for n in self.notes]
        return "\n".join(lines)


def _v(v: Vector) -> str:
    return "({:.4g}, {:.4g}, {:.4g})".format(*(x + 0.0 for x in v))


def _length(v: Vector) -> float:
    return float((v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) ** 0.5)


def _hit(e: Event) -> str:
    h = e.hit
    what = repr(h.other)
    if h.triangle is not None:
        what += f", triangle {h.triangle}"
    return f"hits {what} after {h.distance:.4g} m, normal {_v(h.normal)}"


_SAY: dict[str, Callable[[Event], str]] = {
    "ride": lambda e: f"carried by what it stands on: {_v(e.vector)}",
    "pass": lambda e: f"{e.pass_.name} pass: wants {_v(e.vector)}",
    "free": lambda e: f"nothing in the way: goes {_length(e.vector):.4g} m",
    "hit": _hit,
    "overlap": lambda e: f"starts inside something: moved out by {_v(e.vector)}; the pass ends",
    "done": lambda e: f"only {_length(e.vector):.3g} m left: the pass ends",
    "turned_back": lambda e: f"sliding would lead back ({_v(e.vector)}): the pass ends",
    "out_of_turns": lambda e: f"no iterations left; {_length(e.vector):.4g} m not made",
    "too_steep_below": lambda e: f"the triangle below, normal {_v(e.vector)}, is too steep and higher than a step",
    "too_steep_aside": lambda e: f"the triangle aside, normal {_v(e.vector)}, is too steep and met above step height",
    "experiment": lambda e: f"not walkable: back to the start, and again without climbing: wants {_v(e.vector)}",
}
