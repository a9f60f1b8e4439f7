"""Many environments in one crowd: where their characters are, how they move, what they see.

A row of any array depends on the seed of its own environment, the number of its episode and its own
actions, never on the other rows. All numbers come from sums, products, comparisons and square roots
of single rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, Crowd, Scene, Worlds
from pycct.rl.draws import circle, draw_below, draw_uniform
from pycct.rl.levels import GRAVITY, JUMP_SPEED, PERIOD, SPEED, TICK, Level

__all__ = ["Simulation"]

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RADIUS, HEIGHT, STEP_OFFSET, CONTACT_OFFSET = 0.3, 1.0, 0.4, 0.01
# From the centre of a capsule to its feet.
FOOT = 0.5 * HEIGHT + RADIUS + CONTACT_OFFSET
# Speed at which a character on the ground is held down, m/s: it follows ramps and stairs downwards.
PRESS = 3.0
# A character this far below everything has left its world, m.
ABYSS = 8.0
UP = 2


class Simulation:
    """The characters of `n` environments, and the levels that they are in.

    Parameters
    ----------
    n : int
        Environments.
    levels : sequence of Level
        What episodes take place in.
    agents : int
        Characters an environment.
    collide : bool
        Whether the characters of an environment meet each other.
    threads : int
        How many threads may take part; results do not depend on it.

    Attributes
    ----------
    n, agents : int
    seed : (n,) int64
        Of each environment; -1 before the first episode.
    episode : (n,) int64
        Number of the episode, from 0 for each new seed.
    level : (n,) int64
        Index into ``levels``.
    tick : (n,) int64
        Moves since the episode began.
    feet, velocity : (n, agents, 3) float64
        m, m/s.
    goal : (n, 3) float64
        m.
    grounded : (n, agents) bool
    lost : int
        Characters that have fallen out of their worlds so far.
    """

    def __init__(self, n: int, levels: Sequence[Level], agents: int = 1, collide: bool = False,
                 threads: int = 1) -> None:
        self.n, self.agents, self.threads = n, agents, threads
        self.levels = tuple(levels)
        self.seed = np.full(n, -1, np.int64)
        self.episode = np.zeros(n, np.int64)
        self.level = np.zeros(n, np.int64)
        self.tick = np.zeros(n, np.int64)
        self.goal = np.zeros((n, 3))
        self.fall = np.zeros((n, agents))
        # Of the level of each environment: cells per metre, the last cell along x and y, the first
        # row of its cells.
        self._scale = np.ones((n, 1))
        self._last = np.zeros((n, 1, 2), np.int64)
        self._row = np.zeros((n, 1), np.int64)
        self.lost = 0
        self._cell: Ints | None = None
        self._everybody = np.arange(n * agents).reshape(n, agents)
        self._tables()
        # Platforms stand differently in each environment, so that each needs a scene of its own
        # then.
        self._own_scenes = any(level.movers for level in self.levels)
        self._actors: list[list[Actor]] = [[] for _ in range(n)]
        count = n if self._own_scenes else len(self.levels)
        scenes = [Scene() for _ in range(count)]
        if self._own_scenes:
            self._tracks()
        else:
            for scene, level in zip(scenes, self.levels, strict=True):
                level.build(scene)
        self.worlds = Worlds(scenes)
        # Until an episode begins, all are high above their worlds.
        start = np.zeros((n * agents, 3))
        start[:, 2] = 1000.0
        self.crowd = Crowd(
            self.worlds, start, world=np.repeat(np.arange(n) if self._own_scenes else self.level, agents),
            radius=RADIUS, height=HEIGHT, step_offset=STEP_OFFSET, contact_offset=CONTACT_OFFSET, rules="robust",
            collide=collide, group=np.repeat(np.arange(n), agents),
        )
        self._read()

    def _tables(self) -> None:
        """What is looked up by level and cell, for all levels in one array each."""
        sizes = [len(level.floor) for level in self.levels]
        self._first = np.cumsum([0, *sizes[:-1]])
        self._shape = np.array([level.shape for level in self.levels], np.int64)
        self._scales = np.array([1.0 / level.pitch for level in self.levels])
        self._exits = np.concatenate([level.exits for level in self.levels])
        self._remaining = np.concatenate([level.remaining for level in self.levels])
        self._deadly = np.concatenate([level.deadly for level in self.levels])
        self._goals = np.array([level.goal for level in self.levels])
        self._lowest = np.array([level.vertices[:, 2].min() - ABYSS for level in self.levels])
        self._n_spots = np.array([len(level.spots) for level in self.levels], np.int64)
        self._first_spot = np.cumsum([0, *self._n_spots[:-1].tolist()])
        self._spots = np.concatenate([level.spots for level in self.levels])

    def _tracks(self) -> None:
        """Store poses by level, mover and tick, and the ids of each environment's movers."""
        most = max(len(level.movers) for level in self.levels)
        self._poses = np.zeros((len(self.levels), most, PERIOD, 7))
        self._n_movers = np.array([len(level.movers) for level in self.levels], np.int64)
        for k, level in enumerate(self.levels):
            for m, mover in enumerate(level.movers):
                self._poses[k, m] = mover.poses
        self._movers = np.full((self.n, most), -1, np.int64)

    # --- looking up -------------------------------------------------------------------------------

    @property
    def cell(self) -> Ints:
        """Return the cell of each character, (n, agents): a row of the table of all cells."""
        if self._cell is None:
            # A cast cuts off what follows the point, and what is negative is outside of the level.
            along = self.feet[..., :2] * self._scale[..., None]
            place = np.minimum(np.maximum(along, 0.0).astype(np.int64), self._last)
            self._cell = self._row + place[..., 0] * (self._last[..., 1] + 1) + place[..., 1]
        return self._cell

    def exits(self, envs: Ints) -> Doubles:
        """Return where the way to the goal leaves the cells of characters, (k, agents, 3), m.

        In the cell of the goal, this is the goal.
        """
        return self._exits[self.cell[envs]]

    def distance(self, envs: Ints) -> Doubles:
        """Return the length of the way to the goal along the exits of cells, (k, agents), m."""
        cell = self.cell[envs]
        return length(self._exits[cell] - self.feet[envs]) + self._remaining[cell]

    def deadly(self, envs: Ints) -> Bools:
        """Whether the feet of characters are in a pit that ends their episode, (k, agents)."""
        result: Bools = self.feet[envs, :, 2] < self._deadly[self.cell[envs]]
        return result

    def draw(self, envs: Ints, stream: int) -> Doubles:
        """A random number from 0 to 1 an environment: of its seed, its episode and the stream."""
        return draw_uniform(self.seed[envs], self.episode[envs], stream)

    def draw_below(self, n: int | Ints, envs: Ints, stream: int) -> Ints:
        """Return a random integer from 0 to `n` - 1 by seed, episode and stream."""
        return draw_below(n, self.seed[envs], self.episode[envs], stream)

    # --- episodes ---------------------------------------------------------------------------------

    def enter(self, envs: Ints, levels: Ints) -> None:
        """Begin episodes in these levels: clocks at zero, platforms at their start.

        A call of `place` follows.

        Parameters
        ----------
        envs : (k,) int64
        levels : (k,) int64
            Indices into ``levels``.
        """
        self.level[envs] = levels
        self.tick[envs] = 0
        self.goal[envs] = self._goals[levels]
        self._scale[envs, 0] = self._scales[levels]
        self._last[envs, 0] = self._shape[levels] - 1
        self._row[envs, 0] = self._first[levels]
        if self._own_scenes:
            for env in envs.tolist():
                scene, actors = self.worlds.scenes[env], self._actors[env]
                with scene.edit():
                    for actor in actors:
                        scene.remove(actor)
                    actors[:] = self.levels[self.level[env]].build(scene)
                self._movers[env] = -1
                self._movers[env, :len(actors) - 1] = [actor.id for actor in actors[1:]]

    def spots(self, envs: Ints, stream: int, count: int = 1) -> Doubles:
        """Return random, different starts of the feet, (k, count, 3), m, away from the goal."""
        level = self.level[envs]
        n, first = self._n_spots[level], self._first_spot[level]
        offset = self.draw_below(n, envs, stream)
        found = np.empty((len(envs), count, 3))
        for k in range(count):
            found[:, k] = self._spots[first + (offset + k * np.maximum(n // max(count, 1), 1)) % n]
            near = length(found[:, k] - self.goal[envs]) < 1.0
            found[near, k] = self._spots[(first + (offset + k * np.maximum(n // max(count, 1), 1) + 1) % n)[near]]
        for k in range(count):
            found[:, k, 0] += 0.5 * self.draw(envs, stream + 16 + 2 * k) - 0.25
            found[:, k, 1] += 0.5 * self.draw(envs, stream + 17 + 2 * k) - 0.25
        found[..., 2] += 0.125
        return found

    def place(self, envs: Ints, feet: Doubles) -> None:
        """Put the characters of environments somewhere, at rest.

        Parameters
        ----------
        envs : (k,) int64
        feet : (k, agents, 3) float64
            m.
        """
        who = self._everybody[envs].ravel()
        centres = feet.reshape(-1, 3) + np.array((0.0, 0.0, FOOT))
        world = np.repeat(envs if self._own_scenes else self.level[envs], self.agents)
        self.crowd.teleport(who, centres)
        self.crowd.set(who, world=world, position=centres)
        self.fall[envs] = 0.0
        self._read()
        self.velocity[envs] = 0.0
        self.grounded[envs] = False

    # --- moves ------------------------------------------------------------------------------------

    def step(self, walk: Doubles, jump: Bools, active: Bools) -> None:
        """Move by one tick.

        Parameters
        ----------
        walk : (n, agents, 2) float64
            Wanted velocity along x and y, in units of the walking speed; vectors longer than 1 are
            shortened.
        jump : (n, agents) bool
            Whether a character that stands on something jumps.
        active : (n,) bool
            The environments that move.
        """
        size = np.sqrt(walk[..., 0] * walk[..., 0] + walk[..., 1] * walk[..., 1])
        wish = np.empty((self.n, self.agents, 3))
        wish[..., :2] = walk * (SPEED * TICK / np.maximum(size, 1.0))[..., None]
        grounded = self.grounded & (self.fall <= 0.0)
        fall = np.where(grounded, 0.0, self.fall - GRAVITY * TICK)
        fall = np.where(grounded & jump, JUMP_SPEED, fall)
        wish[..., 2] = np.where(grounded & ~jump, -PRESS, fall) * TICK
        self.tick[active] += 1
        if self._own_scenes:
            self._move_platforms(active)
        everybody = np.repeat(active, self.agents)
        flags = self.crowd.move(wish.reshape(-1, 3), TICK, everybody, self.threads).reshape(self.n, self.agents)
        fall = np.where((flags & UP) != 0, np.minimum(fall, 0.0), fall)
        still = ~active
        self.fall = np.where(still[:, None], self.fall, fall)
        self._read()

    def _move_platforms(self, active: Bools) -> None:
        envs = np.flatnonzero(active & (self._n_movers[self.level] > 0))
        if len(envs) == 0:
            return
        ids = self._movers[envs]
        row, mover = np.nonzero(ids >= 0)
        env = envs[row]
        poses = self._poses[self.level[env], mover, self.tick[env] % PERIOD]
        self.worlds.move_actors(env, ids[row, mover], poses[:, :3], poses[:, 3:])

    def _read(self) -> None:
        shape = (self.n, self.agents)
        self.feet = self.crowd.positions.reshape(*shape, 3) - np.array((0.0, 0.0, FOOT))
        self.velocity = self.crowd.velocities.reshape(*shape, 3).copy()
        self.grounded = self.crowd.grounded.reshape(shape).copy()
        self._cell = None

    def left(self, envs: Ints) -> Bools:
        """Whether a character of each environment has fallen out of its world, (k,) bool."""
        out: Bools = (self.feet[envs, :, 2] < self._lowest[self.level[envs]][:, None]).any(axis=1)
        return out

    # --- senses -----------------------------------------------------------------------------------

    def lidar(self, envs: Ints, rays: int, reach: float, height: float = 0.5) -> NDArray[np.float32]:
        """Free way in horizontal directions, as a fraction of the reach.

        Parameters
        ----------
        envs : (k,) int64
        rays : int
            Directions, evenly spaced; the first is +x, the next is to its left.
        reach : float
            m.
        height : float
            Of the rays above the feet, m.

        Returns
        -------
        (k, agents, rays) float32
            1 where nothing is met.
        """
        directions = np.zeros((rays, 3))
        directions[:, :2] = circle(rays)
        origins = self.feet[envs].reshape(-1, 3) + np.array((0.0, 0.0, height))
        free = self._cast(envs, origins, directions, reach)
        return (free / reach).astype(np.float32).reshape(len(envs), self.agents, rays)

    def drops(self, envs: Ints, offsets: Doubles, above: float, reach: float) -> NDArray[np.float32]:
        """Height of what is below places around the characters, relative to their feet, m.

        Parameters
        ----------
        envs : (k,) int64
        offsets : (m, 2) float64
            Along x and y, m.
        above : float
            Height above the feet from which to look down, m.
        reach : float
            How far to look down, m.

        Returns
        -------
        (k, agents, m) float32
            ``above - reach`` where there is nothing.
        """
        steps = np.zeros((len(offsets), 3))
        steps[:, :2] = offsets
        steps[:, 2] = above
        origins = (self.feet[envs].reshape(-1, 1, 3) + steps).reshape(-1, 3)
        free = self._cast(envs, origins, np.array([(0.0, 0.0, -1.0)]), reach)
        return (above - free).astype(np.float32).reshape(len(envs), self.agents, len(offsets))

    def _cast(self, envs: Ints, origins: Doubles, directions: Doubles, reach: float) -> Doubles:
        world = envs if self._own_scenes else self.level[envs]
        rows = np.repeat(world, len(origins) // max(len(envs), 1))
        return self.worlds.ray_distances(origins, directions, reach, world=rows, threads=self.threads)


def length(vectors: Doubles) -> Doubles:
    """Lengths of vectors (..., 3)."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    return np.asarray(np.sqrt(x * x + y * y + z * z))
