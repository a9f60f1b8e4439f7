"""Copying and pickling of the results of moves and queries."""

from typing import Any


def still_there(other: Any) -> Any:
    """Return the object that a result refers to, or None if it is None or has been removed."""
    if other is None:
        return None
    # A member of a crowd has no scene attribute; its crowd has.
    scene = getattr(other, "crowd", other).scene
    if scene is None:
        return None
    # Characters and actors have separate ids.
    found = scene.character(other.id) if hasattr(type(other), "radius") else scene.actor(other.id)
    return other if found == other else None
