"""Environments for learning: many levels in one crowd, registered with Gymnasium.

The names are ``pycct/Goal-v0`` and so on.

What lives here imports the public modules of pycct only. `levels`, `draws`, `simulation`, `tasks`
and `episodes` need NumPy; `vector` needs gymnasium, and `parallel` pettingzoo, which the extra
``rl`` installs: ``pip install pycct[rl]``.

Examples
--------
>>> import gymnasium, pycct.rl    # doctest: +SKIP
>>> envs = gymnasium.make_vec("pycct/Goal-v0", num_envs=64, levels=16)    # doctest: +SKIP
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pycct.rl.episodes import Episodes, Outcome
from pycct.rl.levels import Level, Mover, Waypoint, generate
from pycct.rl.simulation import Simulation
from pycct.rl.tasks import TASKS, Goal, Maze, Parkour, Pursuit, Task

if TYPE_CHECKING:
    from pycct.rl.parallel import CrowdParallelEnv, parallel_env
    from pycct.rl.vector import CrowdEnv, CrowdVectorEnv

__all__ = [
    "TASKS",
    "CrowdEnv",
    "CrowdParallelEnv",
    "CrowdVectorEnv",
    "Episodes",
    "Goal",
    "Level",
    "Maze",
    "Mover",
    "Outcome",
    "Parkour",
    "Pursuit",
    "Simulation",
    "Task",
    "Waypoint",
    "generate",
    "parallel_env",
    "register",
]

_ELSEWHERE = {
    "CrowdEnv": "vector", "CrowdVectorEnv": "vector", "CrowdParallelEnv": "parallel", "parallel_env": "parallel",
}


def register() -> None:
    """Register all tasks with Gymnasium, unless they are registered.

    Importing `pycct.rl` calls this where Gymnasium is installed.
    """
    import gymnasium

    for name in TASKS:
        if f"pycct/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"pycct/{name}-v0",
                entry_point="pycct.rl.vector:CrowdEnv",
                vector_entry_point="pycct.rl.vector:CrowdVectorEnv",
                kwargs={"task": name},
            )


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'pycct.rl' has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(f"pycct.rl.{_ELSEWHERE[name]}")
    except ModuleNotFoundError as problem:
        if problem.name not in ("gymnasium", "pettingzoo"):
            raise
        raise ImportError(f"pycct.rl.{name} needs {problem.name}: pip install pycct[rl]") from problem
    return getattr(module, name)


if find_spec("gymnasium") is not None:
    register()
