"""Many characters, one after another in a loop."""

import numpy as np

from pycct.reference.convert import as_bool, as_float, as_not_negative, as_place
from pycct.reference.core import SHORTEST, CharacterController, separate
from pycct.reference.scene import Scene

ORDERS = ("simultaneous", "sequential")


def _each(value, n):
    """One value for each of n characters: an array or list of n, or the same one for all."""
    if isinstance(value, (list, np.ndarray)) and len(value) == n:
        return list(value)
    return [value] * n


class Crowd:
    """Characters of one scene, moved together.

    Parameters
    ----------
    scene : Scene
        The world.
    positions : (n, 3) array of floats
        Centres of the capsules, metres.
    collide : bool
        The characters meet one another.
    order : {'simultaneous', 'sequential'}
        Each sees the others where the step began, and those that then overlap are pushed
        apart in the next step (RULES 8); or each sees the others where they are, in the order
        of their ids, as in PhysX.
    **parameters
        Of `CharacterController`: one value, or a list or array of one per character.
    """

    def __init__(self, scene, positions, *, collide=False, order="simultaneous", **parameters):
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        if order not in ORDERS:
            raise ValueError(f"order must be one of {sorted(ORDERS)}, not {order!r}")
        self.scene = scene
        self.order = order
        self._collide = as_bool(collide, "collide")
        self._parameters = parameters
        self.controllers = []
        self._flags = np.zeros(0, np.uint8)
        self.add(positions)

    def add(self, positions, **parameters):
        """Add characters; their parameters are the crowd's, but for those that are given.

        Parameters
        ----------
        positions : (m, 3) array of floats
            Metres.
        **parameters
            As for `Crowd`.

        Returns
        -------
        list of int
            Their ids.
        """
        places = self._vectors(positions, "positions", None)
        given = self._parameters | parameters
        columns = {name: _each(value, len(places)) for name, value in given.items()}
        fresh = [
            CharacterController(
                self.scene, place, collide=self._collide, **{name: values[k] for name, values in columns.items()}
            )
            for k, place in enumerate(places)
        ]
        self.controllers += fresh
        self._flags = np.append(self._flags, np.zeros(len(fresh), np.uint8))
        return [hero.id for hero in fresh]

    def remove(self, indices):
        """Take characters out; the others keep their order and ids."""
        gone = {int(i) for i in np.atleast_1d(indices)}
        for i in gone:
            self.controllers[i].remove()
        self.controllers = [c for i, c in enumerate(self.controllers) if i not in gone]
        self._flags = np.delete(self._flags, sorted(gone))

    def move(self, displacements, dt, active=None, *, min_distance=0.0):
        """Move all characters, or those that are active.

        Parameters
        ----------
        displacements : (n, 3) array of floats
            Metres.
        dt : float
            Seconds, >= 0.
        active : (n,) array of bool, optional
            Who moves.
        min_distance : float
            A motion no longer than this is not begun, metres.

        Returns
        -------
        (n,) array of uint8
            Collision flags; 0 for those that did not move.
        """
        ways = self._vectors(displacements, "displacements", len(self))
        dt = as_not_negative(dt, "dt")
        if 0.0 < dt < SHORTEST:
            raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {dt}")
        min_distance = as_not_negative(min_distance, "min_distance")
        moves = [True] * len(self) if active is None else [bool(x) for x in np.asarray(active)]
        if len(moves) != len(self):
            raise ValueError(f"active must have shape ({len(self)},), got ({len(moves)},)")
        simultaneous = self.order == "simultaneous"
        began = [c._others(c.mask) for c in self.controllers] if simultaneous else [None] * len(self)
        self._flags = np.zeros(len(self), np.uint8)
        for k, hero in enumerate(self.controllers):
            if moves[k]:
                self._flags[k] = hero._advance(ways[k], dt, min_distance, hero.mask, hero.filter, began[k])
        if simultaneous and self._collide:
            separate(self.controllers, dt)
        return self._flags.copy()

    def run(self, displacements, dt):
        """Move T times.

        Parameters
        ----------
        displacements : (T, n, 3) array of floats
            Metres.
        dt : float
            Seconds, >= 0.

        Returns
        -------
        (T, n, 3) array of floats
            Positions after each step, metres.
        """
        path = []
        for step in displacements:
            self.move(step, dt)
            path.append(self.positions)
        return np.array(path).reshape(len(path), len(self), 3)

    def teleport(self, indices, positions):
        """Put characters elsewhere; they forget what they stand on."""
        numbers = [int(i) for i in np.atleast_1d(indices)]
        for i, place in zip(numbers, self._vectors(positions, "positions", len(numbers)), strict=True):
            self.controllers[i].teleport(place)

    def set(self, indices, **parameters):
        """Set parameters of characters: one value, or a list or array of one per index."""
        numbers = [int(i) for i in np.atleast_1d(indices)]
        for name, value in parameters.items():
            for i, x in zip(numbers, _each(value, len(numbers)), strict=True):
                setattr(self.controllers[i], name, x)

    def probe_ground(self, max_distance):
        """What is below each character (list of Ground or None), see `CharacterController.probe_ground`."""
        return [c.probe_ground(max_distance) for c in self.controllers]

    def snap_to_ground(self, max_distance):
        """Whether each was moved down onto walkable ground, (n,) array of bool."""
        return np.array([c.snap_to_ground(max_distance) for c in self.controllers], bool)

    def can_resize(self, height):
        """Whether each has room to become that high, (n,) array of bool."""
        return np.array([c.can_resize(height) for c in self.controllers], bool)

    def _vectors(self, values, name, n):
        """Rows of three floats."""
        rows = np.array(values, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 3 or (n is not None and len(rows) != n):
            raise ValueError(f"{name} must have shape ({'n' if n is None else n}, 3), got {rows.shape}")
        return [as_place(tuple(as_float(x, name) for x in row), name) for row in rows.tolist()]

    def _array(self, values, dtype=np.float64):
        return np.array(values, dtype)

    @property
    def positions(self):
        """Centres of the capsules, (n, 3) array, metres."""
        return self._array([c.position for c in self.controllers]).reshape(-1, 3)

    @property
    def foot_positions(self):
        """Foot positions, (n, 3) array, metres."""
        return self._array([c.foot_position for c in self.controllers]).reshape(-1, 3)

    @property
    def velocities(self):
        """What was really travelled / dt, (n, 3) array, m/s."""
        return self._array([c.velocity for c in self.controllers]).reshape(-1, 3)

    @property
    def flags(self):
        """Collision flags of the last move, (n,) array of uint8."""
        return self._flags.copy()

    @property
    def grounded(self):
        """Who ended on something below, (n,) array of bool."""
        return self._array([c.grounded for c in self.controllers], bool)

    @property
    def ground_normals(self):
        """Normals of what is below, (n, 3) array; zero for who is not grounded."""
        grounds = [c.ground for c in self.controllers]
        return self._array([(0.0, 0.0, 0.0) if g is None else g.normal for g in grounds]).reshape(-1, 3)

    @property
    def standing_on(self):
        """Ids of the actors that carry the characters, (n,) array; -1: none."""
        return self._array([c._memory.touched_actor for c in self.controllers], np.int64)

    @property
    def ids(self):
        """Ids of the characters, (n,) array."""
        return self._array([c.id for c in self.controllers], np.int64)

    def __len__(self):
        return len(self.controllers)

    def __repr__(self):
        return f"<Crowd of {len(self)}>"
