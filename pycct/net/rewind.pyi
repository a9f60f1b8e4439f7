from typing import Any

from pycct import HitArrays

__all__ = ["offer_members"]

def offer_members(
    hits: HitArrays,
    moments: tuple[Any, ...],
    rays: tuple[Any, ...],
    members: tuple[Any, ...],
    grids: tuple[Any, ...],
    largest: float,
    mask: int,
    group: int | None,
) -> None: ...
