"""Gymnasium environments: many in one object, and one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from pycct.args.plain import short
from pycct.rl.episodes import Episodes
from pycct.rl.picture import draw_picture
from pycct.rl.tasks import Task

__all__ = ["CrowdEnv", "CrowdVectorEnv"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FRAMES = 20


def _spaces(task: Task) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    n = task.controlled
    return (
        gym.spaces.Box(-1.0, 1.0, (n * task.features,), np.float32),
        gym.spaces.Box(-1.0, 1.0, (n * 3,), np.float32),
    )


def _observe(episodes: Episodes, envs: Ints) -> Floats:
    task = episodes.task
    return np.ascontiguousarray(task.observe(envs)[:, : task.controlled].reshape(len(envs), -1))


def _shared_reward(episodes: Episodes, reward: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the rewards of the agents that are controlled, added from the first to the last."""
    total = reward[:, 0].copy()
    for agent in range(1, episodes.task.controlled):
        total += reward[:, agent]
    return total


class CrowdVectorEnv(gym.vector.VectorEnv[Floats, Any, Any]):
    """Many environments of a task in one crowd: a step is a few calls, whatever their number.

    Parameters
    ----------
    task : str or Task
        'Goal', 'Maze', 'Parkour', 'Pursuit', or a `Task` of your own.
    num_envs : int
    levels : int or iterable of int
        Seeds of the levels: so many from 0 on, or these.
    threads : int
        How many threads may take part; the results are the same for any number.
    autoreset_mode : AutoresetMode or str
        When an environment whose episode has ended begins the next one: in the next step, in the
        same step (``final_obs``, ``final_info``), or by ``reset(options={"reset_mask": ...})``.
    render_mode : {None, 'rgb_array'}
    **options
        For a task that is named: ``rays``, ``reach``, ``max_steps``, ``size``.

    Notes
    -----
    Environment i of ``reset(seed=s)`` has the seed ``s + i``. Its episodes depend, to the bit, on
    that seed, on their number, on ``levels`` and on its own actions.

    ``info`` has ``success`` and ``left_world`` after a step, ``level`` (its seed) after a reset,
    each with its mask.
    """

    def __init__(self, task: str | Task = "Goal", num_envs: int = 1, levels: int | Iterable[int] = 64,
                 threads: int = 1, *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
                 render_mode: str | None = None, **options: Any) -> None:
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.render_mode = _mode(render_mode)
        self.episodes = Episodes(task, num_envs, levels, threads, **options)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": FRAMES, "autoreset_mode": self.autoreset_mode}
        self.num_envs = self.episodes.n
        self.single_observation_space, self.single_action_space = _spaces(self.episodes.task)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._done = np.zeros(self.num_envs, bool)
        self._all = np.arange(self.num_envs)
        self._seeds = np.array([level.seed for level in self.episodes.levels], np.int64)

    @property
    def lost(self) -> int:
        """Characters that have fallen out of their worlds so far."""
        return self.episodes.sim.lost

    def reset(self, *, seed: int | Sequence[int | None] | None = None,
              options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin episodes.

        Parameters
        ----------
        seed : int, sequence of int or None, or None
            Environment i gets ``seed + i``, or its own of the sequence. None: the next episode of
            the seed that it has, or a random seed.
        options : dict, optional
            ``reset_mask``: (num_envs,) bool, the environments that begin anew; the others go on.

        Returns
        -------
        observations : (num_envs, ...) float32
        info : dict
        """
        mask = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            mask = options["reset_mask"]
            if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
                raise TypeError("options['reset_mask'] must be an array of bool")
            if mask.shape != (self.num_envs,):
                raise ValueError(f"options['reset_mask'] must have shape ({self.num_envs},), got {mask.shape}")
            if not mask.any():
                raise ValueError("options['reset_mask'] must be True somewhere")
        begin_seeded(self.episodes, mask, _seeds(seed, self.num_envs), lambda: super(CrowdVectorEnv, self).np_random)
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
        self._done[mask] = False
        return _observe(self.episodes, self._all), self._level_info({}, mask)

    def step(self, actions: ArrayLike) -> tuple[Floats, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Make a step in all environments.

        Parameters
        ----------
        actions : (num_envs, ...) array of numbers
            Each clipped to -1 to 1. ValueError names a row that is not finite.

        Returns
        -------
        observations, rewards, terminations, truncations, info
        """
        episodes, n = self.episodes, self.num_envs
        moves = episodes.actions(actions, episodes.task.controlled, True)
        if (episodes.sim.seed < 0).any():
            raise gym.error.ResetNeeded("step needs episodes: call reset first")
        active = np.ones(n, bool)
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            active = ~self._done
        elif self.autoreset_mode is AutoresetMode.DISABLED and self._done.any():
            raise gym.error.ResetNeeded(
                f"the episode of environment {int(np.flatnonzero(self._done)[0])} has ended: reset it by reset_mask"
            )
        out = episodes.step(moves, active)
        rewards = _shared_reward(episodes, out.reward)
        info: dict[str, Any] = {}
        done = out.terminated | out.truncated
        fresh = ~active
        reported = active
        if self.autoreset_mode is AutoresetMode.SAME_STEP and done.any():
            fresh, reported = done, ~done
            final = np.full(n, None, object)
            for env, row in zip(np.flatnonzero(done).tolist(), _observe(episodes, np.flatnonzero(done)), strict=True):
                final[env] = row
            last = self._step_info({}, done, out.success, out.left_world)
            info.update(final_obs=final, _final_obs=done.copy(), final_info=last, _final_info=done.copy())
        episodes.begin(np.flatnonzero(fresh), None)
        info = self._step_info(info, reported, out.success, out.left_world)
        info = self._level_info(info, fresh)
        self._done = done
        return _observe(episodes, self._all), rewards, out.terminated, out.truncated, info

    def _step_info(self, info: dict[str, Any], rows: Bools, success: Bools, left: Bools) -> dict[str, Any]:
        if rows.any():
            info.update(success=success & rows, _success=rows.copy(), left_world=left & rows, _left_world=rows.copy())
        return info

    def _level_info(self, info: dict[str, Any], rows: Bools) -> dict[str, Any]:
        if rows.any():
            info.update(level=np.where(rows, self._seeds[self.episodes.sim.level], 0), _level=rows.copy())
        return info

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return pictures of the environments from above, (256, 256, 3) uint8, or None.

        None is the result without a render mode.
        """
        if self.render_mode is None:
            return None
        return tuple(draw_picture(self.episodes, env) for env in range(self.num_envs))


class CrowdEnv(gym.Env[Any, Any]):
    """One environment of a task. The parameters are those of `CrowdVectorEnv`.

    Notes
    -----
    Its episodes are, to the bit, those of an environment of `CrowdVectorEnv` with the same seed.
    ``reset()`` without a seed begins the next episode of the seed that it has.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FRAMES}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, task: str | Task = "Goal", levels: int | Iterable[int] = 64, threads: int = 1, *,
                 render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = _mode(render_mode)
        self.episodes = Episodes(task, 1, levels, threads, **options)
        self.observation_space, self.action_space = _spaces(self.episodes.task)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode: the first of the seed, or the next one.

        Returns
        -------
        observation : float32 array
        info : dict
            ``level``: the seed of the level.
        """
        super().reset(seed=seed)
        begin_seeded(self.episodes, np.ones(1, bool), _seeds(seed, 1), lambda: self.np_random)
        return _observe(self.episodes, np.zeros(1, np.int64))[0], {"level": self.episodes.level_of(0).seed}

    def step(self, action: ArrayLike) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Make a step.

        Parameters
        ----------
        action : array of numbers
            Each clipped to -1 to 1; ValueError unless they are finite.

        Returns
        -------
        observation, reward, terminated, truncated, info
        """
        episodes = self.episodes
        moves = episodes.actions(action, episodes.task.controlled, False)
        if episodes.sim.seed[0] < 0:
            raise gym.error.ResetNeeded("step needs an episode: call reset first")
        out = episodes.step(moves, np.ones(1, bool))
        reward = _shared_reward(episodes, out.reward)
        info = {"success": bool(out.success[0]), "left_world": bool(out.left_world[0])}
        observation = _observe(episodes, np.zeros(1, np.int64))[0]
        return observation, float(reward[0]), bool(out.terminated[0]), bool(out.truncated[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """A picture from above, (256, 256, 3) uint8; None without a render mode."""
        return None if self.render_mode is None else draw_picture(self.episodes, 0)


def _mode(render_mode: str | None) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode must be None or 'rgb_array', not {short(render_mode)}")
    return render_mode


def _seeds(seed: Any, n: int) -> list[int | None]:
    """A seed, or None, for each environment."""
    if seed is None:
        return [None] * n
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        seeds: list[Any] = [int(seed) + i for i in range(n)]
    else:
        try:
            seeds = list(seed)
        except TypeError:
            raise TypeError(f"seed must be an integer, integers or None, not {type(seed).__name__}") from None
    if len(seeds) != n:
        raise ValueError(f"seed must be one integer or {n} of them, got {len(seeds)}")
    for value in seeds:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"seed must be an integer, not {short(value)}")
        if not 0 <= value < 2**63:
            raise ValueError(f"seed must be from 0 to 2**63 - 1, got {short(value)}")
    return seeds


def begin_seeded(episodes: Episodes, mask: Bools, seeds: list[int | None], random: Any) -> None:
    """Begin episodes: of a seed, or else the next one of the old seed, or else of a random seed."""
    mine = [value for value, chosen in zip(seeds, mask.tolist(), strict=True) if chosen]
    envs = np.flatnonzero(mask)
    given = np.array([value is not None for value in mine], bool)
    old = ~given & (episodes.sim.seed[envs] >= 0)
    episodes.begin(envs[old], None)
    numbers = np.zeros(len(envs), np.int64)
    numbers[given] = np.array([value for value in mine if value is not None], np.int64)
    blank = ~given & ~old
    if blank.any():
        numbers[blank] = random().integers(0, 2**62, int(blank.sum()))
    episodes.begin(envs[~old], numbers[~old])
