"""Episodes of many environments: seeds, levels, steps. The environments are thin layers over it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.args.plain import short
from pycct.rl.levels import Level, generate
from pycct.rl.simulation import Simulation
from pycct.rl.tasks import TASKS, Task

__all__ = ["Episodes", "Outcome"]

# Streams of random numbers below this are those of episodes; tasks have the others.
LEVEL_STREAM = 0

_level = lru_cache(4096)(generate)


class Outcome(NamedTuple):
    """What a step has led to, row by row.

    Attributes
    ----------
    reward : (n, agents) float64
    terminated, truncated, success, left_world : (n,) bool
    """

    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    success: NDArray[np.bool_]
    left_world: NDArray[np.bool_]


class Episodes:
    """A task in `n` environments.

    Parameters
    ----------
    task : str or Task
        One of `TASKS`, or a task of your own.
    n : int
        Environments.
    levels : int or iterable of int
        Seeds of the levels: so many from 0 on, or these. Each episode takes one of them at random.
    threads : int
        How many threads may take part.
    **options
        For the task, when it is named: ``rays``, ``reach``, ``max_steps``, ``size``.
    """

    def __init__(self, task: str | Task, n: int, levels: int | Iterable[int] = 64, threads: int = 1,
                 **options: Any) -> None:
        if isinstance(task, str):
            if task not in TASKS:
                raise ValueError(f"task must be one of {sorted(TASKS)} or a Task, not {short(task)}")
            task = TASKS[task](**options)
        elif not isinstance(task, Task):
            raise TypeError(f"task must be a name or a Task, not {type(task).__name__}")
        elif options:
            raise TypeError(f"{sorted(options)} belong to the task: give them to {type(task).__name__}(...)")
        self.task = task
        self.n = _count(n, "num_envs")
        self.levels = [_level(task.kind, seed, task.size) for seed in _seeds_of_levels(levels)]
        self.sim = Simulation(self.n, self.levels, task.agents, task.collide, _count(threads, "threads"))
        task.attach(self.sim)

    def level_of(self, env: int) -> Level:
        """The level that an environment is in."""
        return self.levels[int(self.sim.level[env])]

    def begin(self, envs: NDArray[np.int64], seeds: NDArray[np.int64] | None) -> None:
        """Begin episodes: the first ones of seeds, or the next ones of the current seeds."""
        if len(envs) == 0:
            return
        sim = self.sim
        if seeds is None:
            sim.episode[envs] += 1
        else:
            sim.seed[envs] = seeds
            sim.episode[envs] = 0
        sim.enter(envs, sim.draw_below(len(self.levels), envs, LEVEL_STREAM))
        self.task.reset(envs)

    def step(self, actions: NDArray[np.float64], active: NDArray[np.bool_]) -> Outcome:
        """Make a step in the active environments.

        Parameters
        ----------
        actions : (n, controlled or agents, 3) float64
        active : (n,) bool
        """
        task, n = self.task, self.n
        if actions.shape[1] < task.agents:
            actions = np.concatenate([actions, task.script()], axis=1)
        self.sim.step(*task.act(np.clip(actions, -1.0, 1.0)), active)
        outcome = Outcome(np.zeros((n, task.agents)), *(np.zeros(n, bool) for _ in range(4)))
        envs = np.flatnonzero(active)
        reward, terminated, success = task.reward(envs)
        left = self.sim.left(envs)
        self.sim.lost += int(left.sum())
        outcome.reward[envs] = reward
        outcome.terminated[envs] = terminated | left
        outcome.truncated[envs] = (self.sim.tick[envs] >= task.max_steps) & ~(terminated | left)
        outcome.success[envs] = success & ~left
        outcome.left_world[envs] = left
        return outcome

    def actions(self, actions: ArrayLike, agents: int, batch: bool) -> NDArray[np.float64]:
        """Check actions and give them the shape (n, agents, 3)."""
        shape = (self.n, 3 * agents) if batch else (3 * agents,)
        try:
            array = np.asarray(actions)
        except (TypeError, ValueError):
            raise TypeError("actions must be an array of numbers") from None
        if array.dtype.kind not in "fiu":
            raise TypeError(f"actions must be an array of numbers, not of {array.dtype}")
        if array.shape != shape:
            raise ValueError(f"actions must have shape {shape}, got {array.shape}")
        array = array.astype(np.float64)
        good = np.isfinite(array)
        if not good.all():
            row = int(np.flatnonzero(~good.reshape(self.n, -1).all(axis=1))[0])
            raise ValueError(f"actions must be finite, row {row} is {array.reshape(self.n, -1)[row].tolist()}")
        return array.reshape(self.n, agents, 3)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {short(value)}")
    return int(value)


def _seeds_of_levels(levels: Any) -> list[int]:
    if isinstance(levels, (bool, str)):
        raise TypeError(f"levels must be an integer or integers, not {short(levels)}")
    if isinstance(levels, (int, np.integer)):
        return list(range(_count(levels, "levels")))
    try:
        seeds = list(levels)
    except TypeError:
        raise TypeError(f"levels must be an integer or integers, not {type(levels).__name__}") from None
    if not seeds:
        raise ValueError("levels must name at least one level")
    return seeds
