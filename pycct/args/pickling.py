"""What the answers of moves and questions have in common."""

from typing import Any


def still_there(other: Any) -> Any:
    """Who an answer tells of, for its copy: None when they have been removed since, or nobody was told of."""
    if other is None:
        return None
    # A member of a crowd has its scene from there.
    scene = getattr(other, "crowd", other).scene
    if scene is None:
        return None
    # Characters have ids of their own.
    found = scene.character(other.id) if hasattr(type(other), "radius") else scene.actor(other.id)
    return other if found == other else None
