"""PettingZoo environment of a task with several agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from pettingzoo import ParallelEnv

from pycct.args.plain import short
from pycct.rl.episodes import Episodes
from pycct.rl.picture import draw_picture
from pycct.rl.tasks import Task
from pycct.rl.vector import FRAMES, _mode, _seeds, begin_seeded

__all__ = ["CrowdParallelEnv", "parallel_env"]


class CrowdParallelEnv(ParallelEnv[str, NDArray[np.float32], Any]):  # type: ignore[misc]
    """One environment of a task, each of whose agents takes an action a step.

    Parameters
    ----------
    task, levels, threads, render_mode, **options
        As for `CrowdVectorEnv`.
    """

    def __init__(self, task: str | Task = "Pursuit", levels: int | Iterable[int] = 64, threads: int = 1, *,
                 render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = _mode(render_mode)
        self.episodes = Episodes(task, 1, levels, threads, **options)
        self.task = self.episodes.task
        names = getattr(self.task, "NAMES", None)
        self.possible_agents = list(names or (f"agent_{k}" for k in range(self.task.agents)))
        self.agents: list[str] = []
        self.metadata = {
            "name": f"pycct_{type(self.task).__name__.lower()}_v0",
            "render_modes": ["rgb_array"],
            "render_fps": FRAMES,
            "is_parallelizable": True,
        }
        self._observation_spaces = {
            agent: gym.spaces.Box(-1.0, 1.0, (self.task.features,), np.float32) for agent in self.possible_agents
        }
        self._action_spaces = {agent: gym.spaces.Box(-1.0, 1.0, (3,), np.float32) for agent in self.possible_agents}
        self._random: np.random.Generator | None = None

    def observation_space(self, agent: str) -> gym.spaces.Box:
        """Space of what an agent observes."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Box:
        """Space of an agent's actions: walk along x and y, jump where greater than 0.5."""
        return self._action_spaces[agent]

    def _generator(self) -> np.random.Generator:
        if self._random is None:
            self._random = np.random.default_rng()
        return self._random

    def _observations(self) -> dict[str, NDArray[np.float32]]:
        rows = self.task.observe(np.zeros(1, np.int64))[0]
        return {agent: rows[k].copy() for k, agent in enumerate(self.possible_agents)}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """Begin an episode: the first of the seed, or the next one."""
        begin_seeded(self.episodes, np.ones(1, bool), _seeds(seed, 1), self._generator)
        self.agents = list(self.possible_agents)
        level = self.episodes.level_of(0).seed
        return self._observations(), {agent: {"level": level} for agent in self.agents}

    def step(self, actions: dict[str, ArrayLike]) -> tuple[
        dict[str, NDArray[np.float32]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Make a step.

        Parameters
        ----------
        actions : dict
            Of every agent: (3,) numbers, each clipped to -1 to 1.

        Returns
        -------
        observations, rewards, terminations, truncations, infos
            Each a dict by agent.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        if not isinstance(actions, dict) or set(actions) != set(self.agents):
            raise ValueError(f"actions must be a dict with the keys {self.agents}")
        for agent in self.agents:
            if np.shape(actions[agent]) != (3,):
                raise ValueError(f"actions[{short(agent)}] must have shape (3,), got {np.shape(actions[agent])}")
        joined = np.concatenate([np.asarray(actions[agent]) for agent in self.agents])
        out = self.episodes.step(self.episodes.actions(joined, self.task.agents, False), np.ones(1, bool))
        agents = self.agents
        infos = {a: {"success": bool(out.success[0]), "left_world": bool(out.left_world[0])} for a in agents}
        if out.terminated[0] or out.truncated[0]:
            self.agents = []
        return (
            self._observations(),
            {agent: float(out.reward[0, k]) for k, agent in enumerate(agents)},
            dict.fromkeys(agents, bool(out.terminated[0])),
            dict.fromkeys(agents, bool(out.truncated[0])),
            infos,
        )

    def render(self) -> NDArray[np.uint8] | None:
        """A picture from above, (256, 256, 3) uint8; None without a render mode."""
        return None if self.render_mode is None else draw_picture(self.episodes, 0)


def parallel_env(task: str | Task = "Pursuit", **options: Any) -> CrowdParallelEnv:
    """Make a `CrowdParallelEnv`."""
    return CrowdParallelEnv(task, **options)
