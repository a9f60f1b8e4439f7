"""Gymnasium and PettingZoo environments: interface, autoreset, seeds, independence, bad input."""
import numpy as np
import pytest

gym = pytest.importorskip("gymnasium", reason="the extra rl is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

import pycct.rl  # noqa: E402
from pycct.rl import TASKS, CrowdEnv, CrowdVectorEnv, Goal  # noqa: E402

NAMES = sorted(TASKS)
# Short episodes and few rays: many resets in few steps.
SMALL = {"levels": 3, "rays": 4, "max_steps": 7}


def actions_of(seed, steps, n, width):
    """(steps, n, width) actions that walk about and jump now and then."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (steps, n, width)).astype(np.float32)


def same(left, right):
    """Whether two infos are equal: the same keys, equal arrays."""
    assert set(left) == set(right)
    for key, value in left.items():
        if isinstance(value, dict):
            same(value, right[key])
        elif value.dtype == object:
            for a, b in zip(value, right[key], strict=True):
                assert (a is None) == (b is None)
                assert a is None or np.array_equal(a, b)
        else:
            assert np.array_equal(value, right[key]), key
            assert value.dtype == right[key].dtype, key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("error")
def test_check_env(name):
    env = gym.make(f"pycct/{name}-v0", levels=2, rays=4, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=False)
    assert env.spec.id == f"pycct/{name}-v0"
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_make_vec(name):
    envs = gym.make_vec(f"pycct/{name}-v0", num_envs=5, levels=2, threads=2, rays=4)
    assert isinstance(envs.unwrapped, CrowdVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, info = envs.reset(seed=3)
    assert observations in envs.observation_space
    assert observations.dtype == np.float32
    assert set(info["level"].tolist()) <= {0, 1}
    assert envs.action_space.shape == (5, *envs.single_action_space.shape)
    for _ in range(5):
        observations, rewards, terminations, truncations, info = envs.step(envs.action_space.sample())
        assert observations in envs.observation_space
        assert rewards.shape == terminations.shape == truncations.shape == (5,)
        assert rewards.dtype == np.float64
        assert terminations.dtype == truncations.dtype == np.bool_
    envs.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", NAMES)
def test_autoreset_equals_single_environments(name, mode):
    n = 4
    many = CrowdVectorEnv(name, n, autoreset_mode=mode, threads=2, **SMALL)
    single = SyncVectorEnv([lambda: CrowdEnv(name, **SMALL)] * n, autoreset_mode=AutoresetMode(mode))
    (a, info_a), (b, info_b) = many.reset(seed=11), single.reset(seed=11)
    assert np.array_equal(a, b)
    same(info_a, info_b)
    ends = 0
    for actions in actions_of(5, 24, n, many.single_action_space.shape[0]):
        left, right = many.step(actions), single.step(actions)
        for a, b in zip(left[:4], right[:4], strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
        same(left[4], right[4])
        ends += int((left[2] | left[3]).sum())
    assert ends > n


@pytest.mark.parametrize("name", NAMES)
def test_disabled_autoreset_equals_single_environments(name):
    n = 4
    many = CrowdVectorEnv(name, n, autoreset_mode="Disabled", **SMALL)
    single = SyncVectorEnv([lambda: CrowdEnv(name, **SMALL)] * n, autoreset_mode=AutoresetMode.DISABLED)
    many.reset(seed=2)
    single.reset(seed=2)
    # From now on not all episodes end at once.
    early = np.array([False, True, False, True])
    for k, actions in enumerate(actions_of(6, 20, n, many.single_action_space.shape[0])):
        left, right = many.step(actions), single.step(actions)
        for a, b in zip(left[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
        same(left[4], right[4])
        done = left[2] | left[3]
        mask = done | early if k == 3 else done
        if not mask.any():
            continue
        if done.any():
            with pytest.raises(gym.error.ResetNeeded):
                many.step(actions)
        a, info_a = many.reset(options={"reset_mask": mask.copy()})
        b, info_b = single.reset(options={"reset_mask": mask.copy()})
        assert np.array_equal(a, b)
        same(info_a, info_b)


@pytest.mark.parametrize("name", NAMES)
def test_rows_depend_on_their_own_seed_alone(name):
    steps, width = 20, TASKS[name].controlled * 3
    actions = actions_of(7, steps, 9, width)
    options = {"levels": 3, "rays": 4, "max_steps": 11, "autoreset_mode": "SameStep"}

    def run(n, first, threads):
        envs = CrowdVectorEnv(name, n, threads=threads, **options)
        rows = [envs.reset(seed=100 + first)[0]]
        for k in range(steps):
            observations, rewards, *_ = envs.step(actions[k, first : first + n])
            rows.append(np.column_stack([observations, rewards]))
        return rows

    whole = run(9, 0, 1)
    for n, first, threads in ((9, 0, 2), (4, 3, 1), (1, 8, 2)):
        for a, b in zip(whole, run(n, first, threads), strict=True):
            assert np.array_equal(a[first : first + n], b)


def test_episodes_follow_from_seed_and_number():
    envs = CrowdVectorEnv("Goal", 3, **SMALL)
    first = envs.reset(seed=5)[0]
    second = envs.reset()[0]
    assert not np.array_equal(first, second)
    assert np.array_equal(envs.reset(seed=5)[0], first)
    assert np.array_equal(envs.reset()[0], second)
    assert np.array_equal(envs.reset(seed=[7, 6, 5])[0][2], first[0])
    mixed = envs.reset(seed=[5, None, 7])[0]
    assert np.array_equal(mixed[0], first[0])
    assert np.array_equal(mixed[2], first[2])


def test_without_a_seed_each_environment_has_its_own():
    envs = CrowdVectorEnv("Goal", 6, **SMALL)
    envs.reset()
    assert len(set(envs.episodes.sim.seed.tolist())) == 6
    assert (envs.episodes.sim.seed >= 0).all()


def test_levels_are_named_by_seed():
    envs = CrowdVectorEnv("Maze", 8, levels=[40, 41], rays=0)
    _, info = envs.reset(seed=0)
    assert set(info["level"].tolist()) <= {40, 41}


def test_render():
    envs = CrowdVectorEnv("Parkour", 2, levels=2, rays=0, render_mode="rgb_array")
    envs.reset(seed=1)
    pictures = envs.render()
    assert len(pictures) == 2
    assert all(p.shape == (256, 256, 3) and p.dtype == np.uint8 and p.std() > 5 for p in pictures)
    assert CrowdVectorEnv("Goal", 1, levels=1, rays=0).render() is None
    with pytest.raises(ValueError, match="render_mode"):
        CrowdEnv("Goal", render_mode="human")


@pytest.mark.parametrize("wrong, problem, word", [
    (np.zeros((3, 3)), ValueError, "shape"),
    (np.zeros((2, 4)), ValueError, "shape"),
    (np.zeros(3), ValueError, "shape"),
    (np.full((2, 3), np.nan), ValueError, "row 0"),
    (np.array([(0, 0, 0), (0, np.inf, 0)]), ValueError, "row 1"),
    (np.full((2, 3), "a"), TypeError, "numbers"),
    (None, TypeError, "numbers"),
])
def test_wrong_actions(wrong, problem, word):
    envs = CrowdVectorEnv("Goal", 2, levels=1, rays=0)
    envs.reset(seed=0)
    before = envs.episodes.sim.feet.copy()
    with pytest.raises(problem, match=f"actions.*{word}"):
        envs.step(wrong)
    assert np.array_equal(before, envs.episodes.sim.feet)


@pytest.mark.parametrize("wrong, problem, word", [
    (np.zeros((1, 3)), ValueError, "shape"),
    (np.zeros(4), ValueError, "shape"),
    (1.0, ValueError, "shape"),
    (np.array([0, 0, -np.inf]), ValueError, "finite"),
    ("walk", TypeError, "numbers"),
])
def test_wrong_actions_of_one_environment(wrong, problem, word):
    env = CrowdEnv("Goal", levels=1, rays=0)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(3))
    env.reset(seed=0)
    with pytest.raises(problem, match=f"actions.*{word}"):
        env.step(wrong)


@pytest.mark.parametrize("options, problem, word", [
    ({"task": "Goals"}, ValueError, "task"),
    ({"task": 3}, TypeError, "task"),
    ({"task": Goal(), "rays": 3}, TypeError, "rays"),
    ({"levels": 0}, ValueError, "levels"),
    ({"levels": []}, ValueError, "levels"),
    ({"levels": "dungeon"}, TypeError, "levels"),
    ({"levels": 1.5}, TypeError, "levels"),
    ({"levels": [-1]}, ValueError, "seed"),
    ({"num_envs": 0}, ValueError, "num_envs"),
    ({"num_envs": 2.0}, TypeError, "num_envs"),
    ({"threads": 0}, ValueError, "threads"),
    ({"rays": -1}, ValueError, "rays"),
    ({"rays": 2.5}, TypeError, "rays"),
    ({"reach": float("nan")}, ValueError, "reach"),
    ({"max_steps": 0}, ValueError, "max_steps"),
    ({"size": 1}, ValueError, "size"),
    ({"autoreset_mode": "never"}, ValueError, "never"),
    ({"colour": 3}, TypeError, "colour"),
])
def test_wrong_options(options, problem, word):
    with pytest.raises(problem, match=word):
        CrowdVectorEnv(**{"num_envs": 2, "levels": 1, **options})


def test_wrong_seeds_and_masks():
    envs = CrowdVectorEnv("Goal", 3, levels=1, rays=0)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros((3, 3)))
    for seed, problem in (([1, 2], ValueError), (-1, ValueError), (2**63, ValueError), (1.5, TypeError),
                          ("a", ValueError), ([1, 2, True], TypeError)):
        with pytest.raises(problem, match="seed"):
            envs.reset(seed=seed)
    for mask, problem in (([True] * 3, TypeError), (np.ones(3), TypeError), (np.ones(2, bool), ValueError),
                          (np.zeros(3, bool), ValueError)):
        with pytest.raises(problem, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})


def test_unknown_names_are_errors():
    with pytest.raises(gym.error.Error):
        gym.make("pycct/Goals-v0")
    with pytest.raises(AttributeError, match="nothing"):
        pycct.rl.nothing


def test_parallel_env():
    pytest.importorskip("pettingzoo", reason="the extra rl is not installed")
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    from pycct.rl import parallel_env

    parallel_api_test(parallel_env(levels=2, rays=4, max_steps=50), num_cycles=200)
    parallel_seed_test(lambda: parallel_env(levels=2, rays=4), num_cycles=10)
    env = parallel_env(levels=1, rays=0)
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset(seed=1)
    with pytest.raises(ValueError, match="keys"):
        env.step({"evader": np.zeros(3)})
    with pytest.raises(ValueError, match="shape"):
        env.step({agent: np.zeros(2) for agent in env.agents})
    with pytest.raises(ValueError, match="finite"):
        env.step({agent: np.full(3, np.nan) for agent in env.agents})


def test_parallel_env_is_that_of_gymnasium():
    pytest.importorskip("pettingzoo", reason="the extra rl is not installed")
    from pycct.rl import parallel_env

    several, single = parallel_env(levels=3, rays=4), CrowdEnv("Pursuit", levels=3, rays=4)
    observations, _ = several.reset(seed=9)
    joined, _ = single.reset(seed=9)
    for actions in actions_of(3, 15, 1, 9):
        # The evader of the Gymnasium environment moves by the script.
        moves = {a: actions[0, 3 * k : 3 * k + 3] for k, a in enumerate(several.agents[:3])}
        moves["evader"] = several.task.script()[0, 0]
        observations, rewards, *_ = several.step(moves)
        joined, reward, *_ = single.step(actions[0])
        assert np.array_equal(joined, np.concatenate([observations[f"pursuer_{k}"] for k in range(3)]))
        assert reward == sum(rewards[f"pursuer_{k}"] for k in range(3))


def nearest_spot(level, feet):
    return int(np.argmin(((level.spots - feet) ** 2).sum(axis=1)))


@pytest.mark.parametrize("name", ["Goal", "Maze", "Parkour"])
def test_the_solution_of_the_level_solves_the_environment(name):
    """Actions along the route reach the goal; rewards add up to the distance and the prize."""
    for seed in range(4):
        env = CrowdEnv(name, levels=20, rays=0, max_steps=3000)
        env.reset(seed=seed)
        sim, level = env.episodes.sim, env.episodes.level_of(0)
        way = float(sim.distance(np.zeros(1, np.int64))[0, 0])
        route = list(level.route(nearest_spot(level, sim.feet[0, 0])))
        waiting, total, steps, ended = True, 0.0, 0, False
        while not ended:
            x, y, _ = sim.feet[0, 0].tolist()
            target = route[0]
            dx, dy = target.position[0] - x, target.position[1] - y
            jump = False
            if waiting and sim.grounded[0, 0]:
                first, end = target.window
                waiting = (sim.tick[0] - first) % 128 >= end - first
                jump = not waiting and target.jump
            near = dx * dx + dy * dy < 0.15**2 and abs(sim.feet[0, 0, 2] - target.position[2]) < 0.6
            if not waiting and not jump and near and sim.grounded[0, 0] and len(route) > 1:
                route.pop(0)
                waiting = True
                continue
            walk = (0.0, 0.0) if waiting else (5.0 * dx, 5.0 * dy)
            length = max(float(np.hypot(*walk)), 1.0)
            _, reward, terminated, truncated, info = env.step((walk[0] / length, walk[1] / length, float(jump)))
            total += reward
            steps += 1
            ended = terminated or truncated
        assert terminated
        assert info["success"]
        left = float(sim.distance(np.zeros(1, np.int64))[0, 0])
        assert abs(total - (0.2 * (way - left) - 0.01 * steps + 5.0)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nobody_falls_out_of_a_world(name):
    """A quarter of a million steps of each task, by actions that persist for a while."""
    n, steps = 500, 500
    envs = CrowdVectorEnv(name, n, levels=100, threads=2, rays=0, autoreset_mode="SameStep")
    envs.reset(seed=1)
    rng = np.random.default_rng(4)
    width = envs.single_action_space.shape[0]
    for k in range(steps):
        if k % 10 == 0:
            actions = rng.uniform(-1.5, 1.5, (n, width))
        _, _, _, _, info = envs.step(actions)
        assert not info["left_world"].any() if "left_world" in info else True
    assert envs.lost == 0
