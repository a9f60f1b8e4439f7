"""Tasks: where episodes begin, what agents observe, and what earns a reward.

Copy one to make another.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pycct.args.plain import short
from pycct.rl.levels import SPEED
from pycct.rl.simulation import Simulation, length

__all__ = ["TASKS", "Goal", "Maze", "Parkour", "Pursuit", "Task"]

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR = 0.75


class Task:
    """Base of all tasks: reach the goal of a level.

    A task computes with rows: `envs` names environments, and row k of a result belongs to
    environment ``envs[k]``. A row must depend on its own environment only, so compute with
    element-wise operations, and take random numbers from `Simulation.draw`.

    Parameters
    ----------
    rays : int, optional
        Horizontal rays an agent sees with, 0 for none; the default is the task's.
    reach : float, optional
        Of the rays, m.
    max_steps : int, optional
        Steps after which an episode is truncated.
    size : int, optional
        Of the levels, see `pycct.rl.levels.generate`.

    Attributes
    ----------
    kind : str
        Of the levels.
    agents : int
        Characters an environment.
    controlled : int
        How many of them, the first ones, take actions from a Gymnasium environment; `script` moves
        the others.
    collide : bool
        Whether the agents of an environment meet each other.
    sim : Simulation
        Where they are; set by `attach`.
    """

    kind: ClassVar[str] = "rooms"
    agents: ClassVar[int] = 1
    controlled: ClassVar[int] = 1
    collide: ClassVar[bool] = False
    rays: int = 30
    reach: float = 15.0
    max_steps: int = 400
    size: int | None = None
    sim: Simulation

    def __init__(self, *, rays: int | None = None, reach: float | None = None, max_steps: int | None = None,
                 size: int | None = None) -> None:
        for name, value, least in (("rays", rays, 0), ("max_steps", max_steps, 1), ("size", size, 1)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
            if not least <= value <= 2**20:
                raise ValueError(f"{name} must be from {least} to {2**20}, got {short(value)}")
            setattr(self, name, int(value))
        if reach is not None:
            if isinstance(reach, (bool, str)) or not 0.0 < float(reach) < 1e6:
                raise ValueError(f"reach must be greater than 0 and less than 1e6 m, got {short(reach)}")
            self.reach = float(reach)

    @property
    def features(self) -> int:
        """How many numbers one agent observes."""
        return 4 + 4 + 3 + self.rays

    def attach(self, sim: Simulation) -> None:
        """Take a simulation, before the first episode."""
        self.sim = sim
        self.before = np.zeros(sim.n)

    def reset(self, envs: Ints) -> None:
        """Place the agents of environments whose episodes begin, by `Simulation.place`."""
        self.sim.place(envs, self.sim.spots(envs, stream=1, count=self.agents))
        self.before[envs] = self.sim.distance(envs)[:, 0]

    def act(self, actions: Doubles) -> tuple[Doubles, Bools]:
        """Translate actions.

        Parameters
        ----------
        actions : (n, agents, 3) float64
            From -1 to 1.

        Returns
        -------
        walk : (n, agents, 2) float64
            Wanted velocity along x and y in units of the walking speed.
        jump : (n, agents) bool
        """
        return actions[..., :2], actions[..., 2] > 0.5

    def script(self) -> Doubles:
        """Actions of the agents that nobody controls, (n, agents - controlled, 3)."""
        return np.zeros((self.sim.n, self.agents - self.controlled, 3))

    def observe(self, envs: Ints) -> Floats:
        """What agents observe.

        Returns
        -------
        (k, agents, features) float32
            From -1 to 1.
        """
        return np.concatenate([self.body(envs), self.compass(envs), self.bearing(envs), self.lidar(envs)], axis=2)

    def reward(self, envs: Ints) -> tuple[Doubles, Bools, Bools]:
        """What the step that was just made has earned.

        Returns
        -------
        reward : (k, agents) float64
        terminated : (k,) bool
            Whether the episode has ended.
        success : (k,) bool
            Whether it has ended well.
        """
        now = self.sim.distance(envs)[:, 0]
        gained = 0.2 * (self.before[envs] - now) - 0.01
        self.before[envs] = now
        success = self.reached(envs)
        return (gained + 5.0 * success)[:, None], success, success

    # --- parts of observations --------------------------------------------------------------------

    def reached(self, envs: Ints) -> Bools:
        """Whether the first agent is at the goal, (k,) bool."""
        way = self.sim.goal[envs] - self.sim.feet[envs, 0]
        near = way[:, 0] * way[:, 0] + way[:, 1] * way[:, 1] < NEAR * NEAR
        result: Bools = near & (np.abs(way[:, 2]) < 1.0)
        return result

    def body(self, envs: Ints) -> Floats:
        """Velocity and whether the agent stands on something: 4 numbers."""
        velocity = self.sim.velocity[envs] * np.array((1.0 / SPEED, 1.0 / SPEED, 0.1))
        grounded = self.sim.grounded[envs][..., None]
        return _floats(np.concatenate([velocity, grounded], axis=2))

    def compass(self, envs: Ints) -> Floats:
        """Where the way to the goal leaves the agent's cell: direction (2), height, distance."""
        way = self.sim.exits(envs) - self.sim.feet[envs]
        flat = np.sqrt(way[..., 0] * way[..., 0] + way[..., 1] * way[..., 1])
        some = np.maximum(flat, 1e-6)
        parts = [way[..., 0] / some, way[..., 1] / some, way[..., 2] / 3.0, flat / 6.0]
        return _floats(np.stack(parts, axis=2))

    def bearing(self, envs: Ints) -> Floats:
        """From the agent straight to the goal, in units of 20 m: 3 numbers."""
        return _floats((self.sim.goal[envs][:, None] - self.sim.feet[envs]) * 0.05)

    def lidar(self, envs: Ints) -> Floats:
        """Free way in all directions, as a fraction of the reach: as many numbers as rays."""
        if self.rays == 0:
            return np.zeros((len(envs), self.agents, 0), np.float32)
        return self.sim.lidar(envs, self.rays, self.reach)


def _floats(values: NDArray[np.float64]) -> Floats:
    return np.maximum(np.minimum(values, 1.0), -1.0).astype(np.float32)


class Goal(Task):
    """Reach a point in a dungeon of rooms, stairs, ramps and bridges.

    Observation: `body` (4), `compass` (4), `bearing` (3), `lidar`. Reward: 0.2 for each metre of
    the way to the goal, -0.01 for each step, 5 at the goal.
    """


class Maze(Task):
    """Reach a point in a maze, without a compass.

    Observation: `body` (4), `bearing` (3), `lidar`. Reward: as for `Goal`.
    """

    kind = "maze"
    max_steps = 600

    @property
    def features(self) -> int:
        """How many numbers one agent observes."""
        return 4 + 3 + self.rays

    def observe(self, envs: Ints) -> Floats:
        """What agents observe: see the class."""
        return np.concatenate([self.body(envs), self.bearing(envs), self.lidar(envs)], axis=2)


class Parkour(Task):
    """Run an obstacle course: gaps, ledges, lifts, rotating platforms, low ceilings.

    A fall into a pit ends the episode. Observation: `body` (4), `compass` (4), `bearing` (3), a
    scan of the heights around and ahead (33), `lidar`. Reward: as for `Goal`, and -1 for a fall.
    """

    kind = "parkour"
    max_steps = 800
    rays = 8
    # 11 places along x, from 1 m behind to 4 m ahead, in 3 rows.
    SCAN: ClassVar[Doubles] = np.array([(0.5 * i, 1.0 * j) for j in (-1, 0, 1) for i in range(-2, 9)])

    @property
    def features(self) -> int:
        """How many numbers one agent observes."""
        return 4 + 4 + 3 + len(self.SCAN) + self.rays

    def observe(self, envs: Ints) -> Floats:
        """What agents observe: see the class."""
        heights = self.sim.drops(envs, self.SCAN, 1.75, 4.75) / np.float32(3.0)
        parts = [self.body(envs), self.compass(envs), self.bearing(envs), heights, self.lidar(envs)]
        return np.concatenate(parts, axis=2)

    def reward(self, envs: Ints) -> tuple[Doubles, Bools, Bools]:
        """What the step has earned: see the class."""
        gained, _, success = super().reward(envs)
        fell = self.sim.deadly(envs)[:, 0] & ~success
        return gained - fell[:, None], success | fell, success


class Pursuit(Task):
    """Three pursuers catch an evader in a dungeon.

    A Gymnasium environment controls the pursuers, and the evader runs away from the nearest one. A
    PettingZoo environment controls all four. Observation of an agent: `body` (4), whether it is the
    evader (1), position and velocity of the three others relative to it (18), `lidar`. Reward of a
    pursuer: 0.1 for each metre nearer to the evader, -0.01 for each step, 5 for the catch. Reward
    of the evader: 0.01 for each step, -5 when it is caught.
    """

    agents = 4
    controlled = 3
    collide = True
    max_steps = 300
    rays = 16
    NAMES: ClassVar[tuple[str, ...]] = ("pursuer_0", "pursuer_1", "pursuer_2", "evader")
    CATCH: ClassVar[float] = 0.9

    @property
    def features(self) -> int:
        """How many numbers one agent observes."""
        return 4 + 1 + 6 * (self.agents - 1) + self.rays

    def attach(self, sim: Simulation) -> None:
        """Take a simulation."""
        super().attach(sim)
        self.gaps = np.zeros((sim.n, self.agents - 1))

    def reset(self, envs: Ints) -> None:
        """Place all in different rooms."""
        super().reset(envs)
        self.gaps[envs] = self._gaps(envs)

    def _gaps(self, envs: Ints) -> Doubles:
        feet = self.sim.feet[envs]
        return length(feet[:, :-1] - feet[:, -1:])

    def script(self) -> Doubles:
        """The evader runs straight away from the nearest pursuer."""
        feet = self.sim.feet
        rows = np.arange(self.sim.n)
        nearest = np.argmin(length(feet[:, :-1] - feet[:, -1:]), axis=1)
        away = feet[:, -1] - feet[rows, nearest]
        flat = np.sqrt(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1])
        actions = np.zeros((self.sim.n, 1, 3))
        actions[:, 0, :2] = away[:, :2] / np.maximum(flat, 1e-6)[:, None]
        return actions

    def observe(self, envs: Ints) -> Floats:
        """What agents observe: see the class."""
        feet, velocity = self.sim.feet[envs], self.sim.velocity[envs]
        parts = [self.body(envs), np.zeros((len(envs), self.agents, 1), np.float32)]
        parts[1][:, -1] = 1.0
        # The others in the order of their numbers, without the agent itself.
        others = np.array([[k for k in range(self.agents) if k != me] for me in range(self.agents)])
        for k in range(self.agents - 1):
            parts.append(_floats((feet[:, others[:, k]] - feet) / 20.0))
            parts.append(_floats((velocity[:, others[:, k]] - velocity) / (2.0 * SPEED)))
        return np.concatenate([*parts, self.lidar(envs)], axis=2)

    def reward(self, envs: Ints) -> tuple[Doubles, Bools, Bools]:
        """What the step has earned: see the class."""
        gaps = self._gaps(envs)
        caught: Bools = np.asarray((gaps < self.CATCH).any(axis=1))
        reward = np.empty((len(envs), self.agents))
        reward[:, :-1] = 0.1 * (self.gaps[envs] - gaps) - 0.01 + 5.0 * caught[:, None]
        reward[:, -1] = 0.01 - 5.0 * caught
        self.gaps[envs] = gaps
        return reward, caught, caught


TASKS: dict[str, type[Task]] = {"Goal": Goal, "Maze": Maze, "Parkour": Parkour, "Pursuit": Pursuit}
