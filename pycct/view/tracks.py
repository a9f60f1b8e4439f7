"""A recording as what a picture needs: the level, and where everything is at each tick."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, CharacterController, Crowd, Scene
from pycct.record import Recording
from pycct.view.meshes import Triangles, placed, triangles_of

__all__ = ["Mover", "Tracks", "characters_of", "level_of", "moving_of", "sample", "slope_limit_of"]

SLOPE_LIMIT = 0.707


@dataclass
class Mover:
    """An actor that moves.

    Attributes
    ----------
    triangles : ndarray, (k, 3, 3)
        Triangles around its origin, metres.
    positions, rotations : ndarray, (T, 3) and (T, 4)
        Poses; NaN where it does not exist.
    """

    triangles: Triangles
    positions: NDArray[np.float64]
    rotations: NDArray[np.float64]


@dataclass
class Tracks:
    """Where everything is.

    Attributes
    ----------
    times : ndarray, (T,)
        Seconds.
    level : ndarray, (k, 3, 3)
        Triangles of all static actors, metres.
    ids : ndarray, (n,) int
        Characters.
    positions : ndarray, (T, n, 3)
        Capsule centres, metres; NaN where a character does not exist.
    radii, heights : ndarray, (n,)
        Capsules, metres; ``heights`` are distances between the two centres.
    movers : list of Mover
        Kinematic and dynamic actors, and obstacles.
    slope_limit : float
        Cosine; triangles that are steeper have another colour.
    """

    times: NDArray[np.float64]
    level: Triangles
    ids: NDArray[np.int64]
    positions: NDArray[np.float64]
    radii: NDArray[np.float64]
    heights: NDArray[np.float64]
    movers: list[Mover] = field(default_factory=list)
    slope_limit: float = SLOPE_LIMIT

    def steep(self) -> NDArray[np.bool_]:
        """Whether each triangle of the level is too steep to walk on, (k,)."""
        normals = np.cross(self.level[:, 1] - self.level[:, 0], self.level[:, 2] - self.level[:, 0])
        length = np.linalg.norm(normals, axis=1)
        return np.abs(normals[:, 2]) < self.slope_limit * np.maximum(length, 1e-300)


class Characters(NamedTuple):
    """All characters at one time, crowds first: (n,), (n, 3), (n,) and (n,)."""

    ids: NDArray[np.int64]
    positions: NDArray[np.float64]
    radii: NDArray[np.float64]
    heights: NDArray[np.float64]


def characters_of(crowds: Sequence[Crowd], heroes: Sequence[CharacterController]) -> Characters:
    """Copy ids, places and sizes of characters."""
    alone = (np.array([h.id for h in heroes], np.int64), np.array([h.position for h in heroes], float).reshape(-1, 3),
             np.array([h.radius for h in heroes], float), np.array([h.height for h in heroes], float))
    parts = [(c.ids, c.positions, c.get("radius"), c.get("height")) for c in crowds]
    return Characters(*(np.concatenate(column) for column in zip(*parts, alone, strict=True)))


def slope_limit_of(crowds: Sequence[Crowd], heroes: Sequence[CharacterController]) -> float:
    """Slope limit of the first character."""
    limits = [float(c.get("slope_limit")[0]) for c in crowds if len(c)] + [h.slope_limit for h in heroes]
    return limits[0] if limits else SLOPE_LIMIT


def level_of(scene: Scene) -> Triangles:
    """Triangles of all static actors."""
    parts = [placed(a) for a in scene.actors if a.body == "static" and not a.trigger]
    return np.concatenate([np.zeros((0, 3, 3)), *parts])


def moving_of(scene: Scene) -> list[Actor]:
    """Kinematic and dynamic actors, and obstacles."""
    return [*(a for a in scene.actors if a.body != "static" and not a.trigger), *scene.obstacles]


def sample(recording: Recording, fps: float = 60.0) -> Tracks:
    """Replay a recording from its start and note where everything is.

    Parameters
    ----------
    recording : Recording
        At any tick; it is at its end afterwards.
    fps : float
        Ticks per second of the picture.

    Returns
    -------
    Tracks
        The level is that of the start.
    """
    if not fps > 0.0:
        raise ValueError(f"fps must be > 0, got {fps}")
    recording.seek(0)
    level = level_of(recording.scene)
    n_ticks = recording.ticks + 1
    places: dict[int, NDArray[np.float64]] = {}
    sizes: dict[int, tuple[float, float]] = {}
    moving: dict[int, Mover] = {}
    limit = SLOPE_LIMIT
    for tick in range(n_ticks):
        ids, positions = recording.members()
        fresh = [id for id in ids.tolist() if id not in places]
        if fresh:
            now = characters_of(recording.crowds, recording.controllers)
            limit = slope_limit_of(recording.crowds, recording.controllers)
            sizes.update(zip(now.ids.tolist(), zip(now.radii.tolist(), now.heights.tolist(), strict=True), strict=True))
            for id in fresh:
                places[id] = np.full((n_ticks, 3), np.nan)
        for id, place in zip(ids.tolist(), positions, strict=True):
            places[id][tick] = place
        for actor in moving_of(recording.scene):
            mover = moving.get(actor.id)
            if mover is None:
                mover = moving[actor.id] = Mover(triangles_of(actor.shape) * np.array(actor.scale),
                                                 np.full((n_ticks, 3), np.nan), np.full((n_ticks, 4), np.nan))
            mover.positions[tick], mover.rotations[tick] = actor.position, actor.rotation
        recording.step()
    numbers = sorted(places)
    return Tracks(
        np.arange(n_ticks) / fps, level, np.array(numbers, np.int64),
        np.stack([places[i] for i in numbers], axis=1) if numbers else np.zeros((n_ticks, 0, 3)),
        np.array([sizes[i][0] for i in numbers]), np.array([sizes[i][1] for i in numbers]),
        list(moving.values()), limit,
    )
