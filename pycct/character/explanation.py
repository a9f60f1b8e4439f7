"""Explanation of one move: its passes and events, as text and as data."""

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
        The pass in which the event happens.
    position : tuple of float
        Position of the character at the event, metres.
    vector : tuple of float
        A motion or correction in metres, or a unit normal, depending on ``kind``.
    hit : object
        The Hit, for ``kind == "hit"``.
    """

    kind: str
    pass_: Pass
    position: Vector
    vector: Vector
    hit: Any = None

    def __str__(self) -> str:
        return _TEXTS[self.kind](self)


@dataclass(frozen=True)
class Explanation:
    """The events of one move, pass by pass.

    Attributes
    ----------
    displacement : tuple of float
        Displacement of the move, metres.
    start, end : tuple of float
        Position before and after, metres.
    flags : CollisionFlags
        Collision flags that the move returns.
    events : list of Event
        Events in the order in which they happen.
    notes : list of str
        Reasons why the explanation may differ from the move that was made.
    """

    displacement: Vector
    start: Vector
    end: Vector
    flags: CollisionFlags
    events: list[Event]
    notes: list[str] = field(default_factory=list)

    @property
    def moved(self) -> Vector:
        """Vector from ``start`` to ``end``, metres."""
        a, b = self.start, self.end
        return (b[0] - a[0], b[1] - a[1], b[2] - a[2])

    def __str__(self) -> str:
        lines = [f"displacement {_v(self.displacement)}, moved {_v(self.moved)}, flags {self.flags!r}"]
        headings = ("pass", "ride", "experiment")
        lines += [("  " if e.kind in headings else "    ") + str(e) for e in self.events]
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


_TEXTS: dict[str, Callable[[Event], str]] = {
    "ride": lambda e: f"carried by the platform: {_v(e.vector)}",
    "pass": lambda e: f"{e.pass_.name} pass: motion {_v(e.vector)}",
    "free": lambda e: f"no contact: moves {_length(e.vector):.4g} m",
    "hit": _hit,
    "overlap": lambda e: f"starts in an overlap: recovery moves it by {_v(e.vector)}; the pass ends",
    "done": lambda e: f"{_length(e.vector):.3g} m remain: the pass ends",
    "turned_back": lambda e: f"the slide would point backwards ({_v(e.vector)}): the pass ends",
    "out_of_turns": lambda e: f"iteration limit of the pass: {_length(e.vector):.4g} m remain",
    "too_steep_below": lambda e: (
        f"the triangle below, normal {_v(e.vector)}, is too steep and higher than the step offset"
    ),
    "too_steep_aside": lambda e: (
        f"the triangle aside, normal {_v(e.vector)}, is too steep and higher than the step offset"
    ),
    "experiment": lambda e: (
        f"not walkable: walk experiment from the start, without climbing: motion {_v(e.vector)}"
    ),
}
