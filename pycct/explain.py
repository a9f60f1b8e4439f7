"""Why a character moved as it did: the passes of one move in words and data."""

from pycct.character.explanation import KINDS, Event, Explanation, Vector

__all__ = ["KINDS", "Event", "Explanation", "Vector"]
