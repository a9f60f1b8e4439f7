"""A recording as what a picture needs: the level, and where everything is at each tick."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pycct import Scene
from pycct.record import Recording
from pycct.view.meshes import Triangles, placed, triangles_of

__all__ = ["Mover", "Tracks", "sample"]

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


def level_of(scene: Scene) -> Triangles:
    """Triangles of all static actors."""
    parts = [placed(a) for a in scene.actors if a.body == "static"]
    return np.concatenate([np.zeros((0, 3, 3)), *parts])


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
            for crowd in recording.crowds:
                radius, height = crowd.get("radius"), crowd.get("height")
                limit = float(crowd.get("slope_limit")[0]) if len(crowd) else limit
                sizes.update((int(i), (float(radius[k]), float(height[k]))) for k, i in enumerate(crowd.ids))
            for hero in recording.controllers:
                sizes[hero.id] = (hero.radius, hero.height)
                limit = hero.slope_limit
            for id in fresh:
                places[id] = np.full((n_ticks, 3), np.nan)
        for id, place in zip(ids.tolist(), positions, strict=True):
            places[id][tick] = place
        for actor in recording.scene.actors:
            if actor.body == "static":
                continue
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
