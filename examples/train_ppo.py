"""Train an agent to find its way through unknown dungeons, with PPO of stable-baselines3.

    pip install "pycct[rl,train]"
    python examples/train_ppo.py                     # ten minutes on two cores
    python examples/train_ppo.py --minutes 2 --seed 1
    python examples/train_ppo.py --short             # some seconds: a test of all parts

The agent learns in 256 dungeons and is tested in 200 others. The program writes the learning curve
to
``ppo_goal.csv`` and, with matplotlib, draws it to ``ppo_goal.png``.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from pycct.rl import CrowdVectorEnv

TEST_LEVELS = range(1_000_000, 1_000_200)


class Adapter(VecEnv):
    """A `CrowdVectorEnv` with the interface of stable-baselines3.

    That interface has its own reset, a step in two halves, and a list of infos.
    """

    def __init__(self, envs: CrowdVectorEnv, seed: int) -> None:
        if envs.metadata["autoreset_mode"].value != "SameStep":
            raise ValueError("envs must have the autoreset mode SameStep")
        self.envs = envs
        self.first_seed = seed
        self.render_mode = envs.render_mode
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Start the first episodes of all seeds."""
        return self.envs.reset(seed=self.first_seed)[0]

    def step_async(self, actions: Any) -> None:
        """Store the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Make the step."""
        observations, rewards, terminated, truncated, info = self.envs.step(self.actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(done).tolist():
            infos[env] = {
                "terminal_observation": info["final_obs"][env],
                "TimeLimit.truncated": bool(truncated[env]),
                "success": bool(info["final_info"]["success"][env]),
            }
        return observations, rewards.astype(np.float32), done, infos

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environments, once for each."""
        return [getattr(self.envs, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """The environments are one object and have no attributes of their own."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """The environments are one object and have no methods of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No environment is wrapped."""
        return [False] * self.num_envs


class Curve(BaseCallback):
    """Stop when the time is up, and record the share of successful episodes."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.begun = time.monotonic()
        self.rows: list[tuple[float, int, float]] = []
        self.ended = self.good = 0
        self.counted = 0

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "success" in info:
                self.ended += 1
                self.good += info["success"]
        return time.monotonic() - self.begun < self.seconds

    def _on_rollout_end(self) -> None:
        # So many steps that every environment has ended an episode, else short ones would count
        # more.
        window = self.training_env.num_envs * self.training_env.get_attr("episodes")[0].task.max_steps
        if self.num_timesteps - self.counted >= window:
            self.counted = self.num_timesteps
            spent = time.monotonic() - self.begun
            self.rows.append((round(spent, 1), self.num_timesteps, self.good / self.ended))
            print(f"{spent:6.0f} s  {self.num_timesteps:9d} steps  success {self.good / self.ended:.2f}", flush=True)
            self.ended = self.good = 0


def score(model: PPO, rays: int, levels: range, seed: int) -> float:
    """Return the share of solved levels, one episode each, without noise in the actions."""
    reached = np.zeros(len(levels), bool)
    for k in range(0, len(levels), 50):
        some = levels[k : k + 50]
        # One environment for each level.
        parts = [CrowdVectorEnv("Goal", 1, levels=[level], rays=rays, autoreset_mode="Disabled") for level in some]
        observations = np.concatenate([envs.reset(seed=seed)[0] for envs in parts])
        running = np.ones(len(some), bool)
        while running.any():
            actions, _ = model.predict(observations, deterministic=True)
            for i in np.flatnonzero(running).tolist():
                seen, _, terminated, truncated, info = parts[i].step(actions[i : i + 1])
                observations[i] = seen[0]
                running[i] = not (terminated[0] or truncated[0])
                reached[k + i] = info["success"][0]
    return float(reached.mean())


def main() -> None:
    """Train, test, write the curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="time to train for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--levels", type=int, default=256)
    parser.add_argument("--rays", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--short", action="store_true", help="a few steps only")
    parser.add_argument("--out", type=Path, default=Path("ppo_goal"), help="files to write, without an ending")
    given = parser.parse_args()
    if given.short:
        given.envs, given.levels = 16, 8
    torch.set_num_threads(given.threads)
    envs = Adapter(
        CrowdVectorEnv(
            "Goal", given.envs, levels=given.levels, rays=given.rays, threads=given.threads, autoreset_mode="SameStep",
        ),
        1000 * given.seed,
    )
    model = PPO(
        "MlpPolicy", envs, seed=given.seed, n_steps=16 if given.short else 64, batch_size=256 if given.short else 4096,
        n_epochs=2 if given.short else 5, gamma=0.99, gae_lambda=0.95, learning_rate=1e-3, ent_coef=0.002,
        policy_kwargs={"net_arch": [64, 64], "log_std_init": -0.5}, device="cpu",
    )
    curve = Curve(3.0 if given.short else 60.0 * given.minutes)
    model.learn(10**9 if not given.short else 1024, callback=curve)
    reached = score(model, given.rays, TEST_LEVELS[: 4 if given.short else 200], 10**9)
    print(f"success on {4 if given.short else 200} unseen levels: {100 * reached:.1f} %")
    with open(given.out.with_suffix(".csv"), "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seconds", "steps", "success"])
        rows.writerows(curve.rows)
    draw(curve.rows, given.out.with_suffix(".png"))


def draw(rows: list[tuple[float, int, float]], path: Path) -> None:
    """Draw the learning curve."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure((6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([row[0] / 60 for row in rows], [100 * row[2] for row in rows])
    axes.set(xlabel="minutes on two cores", ylabel="episodes that reach the goal, %", ylim=(0, 100))
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
