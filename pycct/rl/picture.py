"""Pictures of environments from above, drawn with NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycct.rl.episodes import Episodes
from pycct.rl.levels import WALL

__all__ = ["draw_picture"]

SIZE = 256
COLOURS = ((220, 60, 50), (240, 150, 40), (200, 80, 200), (40, 110, 230))
GOAL = (40, 180, 70)
MOVER = (150, 120, 200)


def draw_picture(episodes: Episodes, env: int) -> NDArray[np.uint8]:
    """Draw an environment: higher is brighter, the goal green, the agents round.

    Parameters
    ----------
    episodes : Episodes
    env : int

    Returns
    -------
    (256, 256, 3) uint8
    """
    level, sim = episodes.level_of(env), episodes.sim
    plan = level.plan
    low, high = plan[:, :2].min(axis=0), plan[:, 2:4].max(axis=0)
    scale = (SIZE - 8) / float((high - low).max())
    shift = (SIZE - (high - low) * scale) * 0.5 - low * scale
    # The highest walls are no brighter than others.
    bottom, top = float(plan[:, 4].min()), min(float(plan[:, 4].max()), float(level.floor.max()) + WALL)
    picture = np.full((SIZE, SIZE, 3), 24, np.uint8)

    def pixel(x: float, y: float) -> tuple[int, int]:
        # Row 0 is at the top of a picture.
        return SIZE - int(np.rint(y * scale + shift[1])), int(np.rint(x * scale + shift[0]))

    for x0, y0, x1, y1, z in plan.tolist():
        (r1, c0), (r0, c1) = pixel(x0, y0), pixel(x1, y1)
        shade = 60 + int(180 * (min(z, top) - bottom) / max(top - bottom, 1e-9))
        picture[max(r0, 0) : max(r1, r0 + 1), max(c0, 0) : max(c1, c0 + 1)] = shade
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    for mover in level.movers:
        pose = mover.poses[int(sim.tick[env]) % len(mover.poses)]
        r, c = pixel(float(pose[0]), float(pose[1]))
        # The rotation about z of a unit quaternion (0, 0, s, w).
        cosine, sine = 1.0 - 2.0 * float(pose[5]) ** 2, 2.0 * float(pose[5]) * float(pose[6])
        u, v = columns - c, r - rows
        inside = np.abs(cosine * u + sine * v) <= mover.half[0] * scale
        inside &= np.abs(cosine * v - sine * u) <= mover.half[1] * scale
        picture[inside] = MOVER
    r, c = pixel(float(level.goal[0]), float(level.goal[1]))
    picture[(rows - r) ** 2 + (columns - c) ** 2 <= (0.75 * scale) ** 2] = GOAL
    for agent in range(sim.agents):
        r, c = pixel(float(sim.feet[env, agent, 0]), float(sim.feet[env, agent, 1]))
        size = max(0.4 * scale, 2.0)
        picture[(rows - r) ** 2 + (columns - c) ** 2 <= size * size] = COLOURS[agent % len(COLOURS)]
    return picture
