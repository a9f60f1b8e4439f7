"""Explanations of moves: ``Explanation``, its events, and their kinds."""

from pycct.character.explanation import KINDS, Event, Explanation, Vector

__all__ = ["KINDS", "Event", "Explanation", "Vector"]
