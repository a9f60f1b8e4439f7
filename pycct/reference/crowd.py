"""Crowds and teams, one character after another in a loop."""

import inspect
import operator
import struct
from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from pycct.args import save_format as saves
from pycct.args.columns import give_column
from pycct.args.plain import check_long_ids
from pycct.crowd.records import GROUND, HITS, STATS, ground_arrays
from pycct.reference.core import (
    CONVERT,
    SEPARATION_SPEED,
    SHORTEST,
    CharacterController,
    Params,
    _checked,
    _memory_of,
    _memory_values,
    _params_of,
    _params_values,
    _tell_together,
    weights_of,
)
from pycct.reference.scene import Scene
from pycct.reference.tolerances import is_below_limit
from pycct.reference.types import ACTOR, CONTROLLER, OBSTACLE
from pycct.reference.values import as_bool, as_float, as_not_negative, as_place, as_unit
from pycct.reference.vec import ZERO, madd
from pycct.reference.worlds import Worlds

ORDERS = ("simultaneous", "sequential")
# Added to the order in saved bytes if the world of each member follows at the end.
SAVES_HOMES = 2
# Added to the order if poses of moving actors follow at the very end.
SAVES_MOVING = 4
PASSES = ("UP", "SIDE", "DOWN", "SENSOR")
# Arrays that moves change, which `get` returns as well.
MOVED_ARRAYS = (
    "positions", "foot_positions", "velocities", "ground_normals", "grounded", "standing_on", "flags", "ids"
)  # fmt: skip
DEFAULTS = {name: p.default for name, p in inspect.signature(CharacterController).parameters.items()}


def _each(value, name, n):
    """Return one value for each of n, or None for one common value."""
    if isinstance(value, np.ndarray):
        if value.ndim == (1 if name == "up" else 0):
            return None
        value = value.tolist()
    elif not isinstance(value, (list, tuple)):
        return None
    elif name == "up" and len(value) == 3 and not isinstance(value[0], (list, tuple, np.ndarray)):
        return None
    if len(value) != n:
        raise ValueError(f"{name} must be one value or {n} of them, one a character, got {len(value)}")
    return list(value)


def _group(value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"group must be an integer, not {value!r}")
    if not 0 <= value < 2**31:
        raise ValueError(f"group must be from 0 to 2**31 - 1, got {value}")
    return int(value)


def _numbers(values, name):
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of numbers") from None
    if array.dtype.kind not in "fiu" and array.size:
        raise TypeError(f"{name} must be an array of floats, not of {array.dtype}")
    return array.astype(np.float64)


def _vectors(values, name, n):
    """Rows of three floats."""
    rows = _numbers(values, name)
    if rows.shape == (0,) and not n:
        rows = rows.reshape(0, 3)
    if rows.ndim != 2 or rows.shape[1] != 3 or (n is not None and len(rows) != n):
        raise ValueError(f"{name} must have shape ({'n' if n is None else n}, 3), got {rows.shape}")
    return [as_place(tuple(as_float(x, name) for x in row), name) for row in rows.tolist()]


def _places(values, n):
    """Return n positions, or one for all."""
    rows = _numbers(values, "positions")
    return _vectors(np.broadcast_to(rows, (n, 3)) if rows.shape == (3,) else rows, "positions", n)


def _time(dt):
    dt = as_not_negative(dt, "dt")
    if 0.0 < dt < SHORTEST:
        raise ValueError(f"dt must be 0 or at least {SHORTEST:g}, got {dt}")
    return dt


def _check_threads(threads):
    try:
        number = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads must be an integer, not {type(threads).__name__}") from None
    if isinstance(threads, bool):
        raise TypeError("threads must be an integer, not bool")
    if number < 1:
        raise ValueError(f"threads must be at least 1, got {number}")


def _check_out(out, n):
    if not isinstance(out, np.ndarray) or out.dtype != np.uint8:
        raise TypeError("out must be a NumPy array of uint8")
    if out.shape != (n,):
        raise ValueError(f"out must have shape ({n},), got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writeable")


def _who(met, kind):
    """The id of the object that was hit if it is of that kind, else -1."""
    return met.id if met.owner == kind else -1


def _costs(controllers, moves):
    """Return the costs of the last moves as an array of `STATS`; zero without a move."""
    costs = np.zeros(len(controllers), STATS)
    for k, hero in enumerate(controllers):
        for name in STATS.names if moves[k] else ():
            costs[name][k] = int(getattr(hero._stats, name))
    return costs


def _active_rows(active, n):
    """Return which characters move as an array of bool with n rows."""
    active = np.asarray(active)
    if active.dtype != np.bool_ and active.size:
        raise TypeError(f"active must be an array of bool, not of {active.dtype}")
    if active.shape != (n,):
        raise ValueError(f"active must have shape ({n},), got {active.shape}")
    return active


class Crowd:
    """Characters of one scene that move together.

    Parameters
    ----------
    scene : Scene or Worlds
        One scene, or many: then each member collides only with objects of its own.
    positions : (n, 3) array of floats
        Centres of the capsules, metres.
    order : {'simultaneous', 'sequential'}
        'simultaneous': each collides with the others at their positions of the start of the step,
        and the next step separates pairs that overlap afterwards (RULES 8). 'sequential': each
        collides with the current positions of the others, in the order of their ids, as in PhysX.
    group : int or (n,) of them
        Characters of different groups never collide; single controllers belong to group 0.
    world : int or (n,) of them
        Index of the world of each member.
    **parameters
        Of `CharacterController`, except callbacks: one value, or a list, tuple or array of one per
        character.
    """

    def __init__(self, scene, positions, *, order="simultaneous", group=0, world=0, **parameters):
        if not isinstance(scene, (Scene, Worlds)):
            raise TypeError(f"scene must be a Scene or Worlds, not {type(scene).__name__}")
        if not isinstance(order, str) or order not in ORDERS:
            raise ValueError(f"order must be one of {sorted(ORDERS)}, not {order!r}")
        self.scene, self.worlds = (None, scene) if isinstance(scene, Worlds) else (scene, None)
        self._scenes = (scene,) if self.worlds is None else scene.scenes
        self.order = order
        places = _vectors(positions, "positions", None)
        # A common value is also the default for characters that are added later.
        self._usual = Params(**{name: convert(DEFAULTS[name], name) for name, convert in CONVERT.items()})
        self._usual_group = 0
        for name, value in parameters.items():
            if name in CONVERT and _each(value, name, len(places)) is None:
                self._usual = replace(self._usual, **{name: CONVERT[name](value, name)})
        if _each(group, "group", len(places)) is None:
            self._usual_group = _group(group)
        self.controllers = []
        self._journal = None
        self._depth = 0
        self._flags = np.zeros(0, np.uint8)
        self._forget_move()
        event = {"scene": scene, "positions": np.array(places).reshape(-1, 3), "order": order, "group": group}
        for home in self._scenes:
            home._tell(home, "Crowd", **event, world=world, **parameters)
        self.add(np.array(places).reshape(-1, 3), group=group, world=world, **parameters)
        for home in self._scenes:
            home._crowds.add(self)

    @property
    def journal(self):
        """``listener(crowd, name, arguments)``, called before changes and moves. Settable."""
        return self._journal

    @journal.setter
    def journal(self, listener):
        if listener is not None and not callable(listener):
            raise TypeError(f"journal must be callable or None, not {type(listener).__name__}")
        self._journal = listener

    @contextmanager
    def _change(self, name, **arguments):
        """Call the listener; nested changes are not reported."""
        if self._journal is not None and self._depth == 0:
            self._journal(self, name, arguments)
        self._depth += 1
        try:
            with ExitStack() as stack:
                for scene in self._scenes:
                    stack.enter_context(scene._quietly())
                yield
        finally:
            self._depth -= 1

    def add(self, positions, *, group=None, world=0, **parameters):
        """Add characters; the defaults are the crowd's own values.

        Parameters
        ----------
        positions : (m, 3) array of floats
            Metres.
        group, world, **parameters
            As for `Crowd`.

        Returns
        -------
        (m,) array of int64
            Their ids.
        """
        places = _vectors(positions, "positions", None)
        for name in parameters:
            if name not in CONVERT:
                raise TypeError(f"unexpected keyword argument {name!r}")
        columns = {name: _each(value, name, len(places)) for name, value in parameters.items()}
        rows = []
        for k in range(len(places)):
            given = {
                name: CONVERT[name](parameters[name] if values is None else values[k], name)
                for name, values in columns.items()
            }
            rows.append(_checked(replace(self._usual, **given)))
        groups = None if group is None else _each(group, "group", len(places))
        if groups is None:
            groups = [self._usual_group if group is None else group] * len(places)
        groups = [_group(g) for g in groups]
        homes = self._homes_for(world, len(places))
        with self._change("add", positions=np.array(places).reshape(-1, 3), group=group, world=world, **parameters):
            # Ids larger than any id of the crowd's scenes.
            first = max(scene._next_id for scene in self._scenes)
            fresh = []
            for k, made in enumerate(zip(places, rows, groups, homes, strict=True)):
                self._scenes[homes[k]]._next_id = first + k
                fresh.append(self._made(*made))
            for scene in self._scenes:
                scene._next_id = first + len(fresh)
        self.controllers += fresh
        self._flags = np.append(self._flags, np.zeros(len(fresh), np.uint8))
        self._forget_move()
        return np.array([hero.id for hero in fresh], np.int64)

    def _forget_move(self):
        """Forget hits and costs of the last move, which do not match the members any more."""
        self._costs = None
        self._uncounted = False
        self._hits = []

    def _homes_for(self, world, n):
        """Return the world of each of n members."""
        most = len(self._scenes) - 1
        values = _each(world, "world", n)
        for value in [world] if values is None else values:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"world must be an integer or integers, not {value!r}")
            if not 0 <= value <= most:
                raise ValueError(f"world must be from 0 to {most}, got {value}")
        return [world] * n if values is None else values

    def _home_of(self, hero):
        return self._scenes.index(hero._scene)

    def _made(self, place, params, group, home):
        hero = CharacterController(self._scenes[home], place)
        hero._params = params
        hero._group = group
        return hero

    def _move_to(self, home, i):
        """Move a member to another world; it forgets its platform."""
        hero, scene = self.controllers[i], self._scenes[home]
        number = scene._next_id
        scene._next_id = hero.id
        fresh = self._made(hero.position, hero._params, hero._group, home)
        scene._next_id = max(number, hero.id + 1)
        hero.remove()
        fresh.user_data = hero.user_data
        self.controllers[i] = fresh
        self._flags[i] = 0

    def _indices(self, values):
        """Return different indices of characters."""
        n = len(self)
        if isinstance(values, slice):
            try:
                return list(range(n)[values])
            except TypeError:
                raise TypeError("indices must be a slice of integers") from None
            except ValueError:
                raise ValueError("indices must be a slice whose step is not 0") from None
        array = np.asarray(values)
        if array.ndim > 1:
            raise ValueError(f"indices must be one integer or have shape (k,), got shape {array.shape}")
        if array.dtype == np.bool_ and array.ndim == 1:
            if len(array) != n:
                raise ValueError(f"indices must have shape ({n},) as a Boolean mask, got ({len(array)},)")
            return np.flatnonzero(array).tolist()
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"indices must be integers, a slice or a Boolean mask, not {array.dtype}")
        numbers = [int(i) for i in np.atleast_1d(array)]
        if not all(-n <= i < n for i in numbers):
            raise ValueError(f"indices must be from {-n} to {n - 1}, got {array.tolist()}")
        numbers = [i + n if i < 0 else i for i in numbers]
        if len(set(numbers)) != len(numbers):
            raise ValueError("indices must be different from one another")
        return numbers

    def remove(self, indices):
        """Remove characters; the others keep their order and ids."""
        gone = self._indices(indices)
        with self._change("remove", indices=np.sort(np.array(gone, np.int64))):
            for i in gone:
                self.controllers[i].remove()
        self.controllers = [c for i, c in enumerate(self.controllers) if i not in gone]
        self._flags = np.delete(self._flags, sorted(gone))
        self._forget_move()

    def move(
        self,
        displacements,
        dt,
        active=None,
        threads=1,
        record_hits=False,
        out=None,
        *,
        min_distance=0.0,
        record_stats=False,
        up=None,
    ):
        """Move all characters, or the active ones.

        Parameters
        ----------
        displacements : (n, 3) array of floats
            Metres.
        dt : float
            Seconds, >= 0.
        active : (n,) array of bool, optional
            Which characters move.
        threads : int
            Unused here.
        record_hits, record_stats : bool
            Store collisions and costs for `hits` and `stats`.
        out : (n,) array of uint8, optional
            Array for the flags.
        min_distance : float
            A motion of this length or less does not start, metres.
        up : (3,) floats or (n, 3) array of floats, optional
            New up directions of the active characters, from this move on.

        Returns
        -------
        (n,) array of uint8
            Collision flags; 0 for inactive characters.
        """
        dt = _time(dt)
        min_distance = as_not_negative(min_distance, "min_distance")
        ways = _vectors(displacements, "displacements", len(self))
        moves = [True] * len(self)
        if active is not None:
            active = _active_rows(active, len(self))
            moves = active.tolist()
        if out is not None:
            _check_out(out, len(self))
        _check_threads(threads)
        record_hits = as_bool(record_hits, "record_hits")
        record_stats = as_bool(record_stats, "record_stats")
        if up is not None:
            self._turn(up, moves)
        with self._change(
            "move", displacements=np.array(ways).reshape(-1, 3), dt=dt, active=active, min_distance=min_distance
        ):
            before = [c._memory for c in self.controllers]
            simultaneous = self.order == "simultaneous"
            began = [c._others(c.mask) for c in self.controllers] if simultaneous else [None] * len(self)
            flags = np.zeros(len(self), np.uint8)
            try:
                for k, hero in enumerate(self.controllers):
                    if moves[k]:
                        flags[k] = hero._advance(ways[k], dt, min_distance, hero.mask, None, began[k])
                    else:
                        hero._memory = replace(hero._memory, asked=ZERO)
            except ValueError:
                for hero, memory in zip(self.controllers, before, strict=True):
                    hero._memory = memory
                raise
        self._flags = flags
        self._record(moves, record_hits, record_stats)
        if simultaneous:
            self._separate(dt)
        if out is None:
            return flags.copy()
        out[:] = flags
        return out

    def _record(self, moves, hits, costs):
        """Store collisions and costs of a move, if requested."""
        self._hits = None
        if hits:
            self._hits = [hero._hits if moves[k] else [] for k, hero in enumerate(self.controllers)]
        self._uncounted = not costs and len(self) > 0
        if costs:
            self._costs = _costs(self.controllers, moves)

    def _turn(self, up, moves):
        """Change the up directions of the active characters."""
        tops = _numbers(up, "up")
        tops = np.broadcast_to(tops, (len(self), 3)) if tops.shape == (3,) else tops
        for row in _vectors(tops, "up", len(self)):
            as_unit(row, "up")
        which = np.flatnonzero(moves)
        if len(which):
            self.set(which, up=tops[which])

    def separate(self, dt, *, yielding=None):
        """Separate overlapping characters in their next move, by half each (RULES 8).

        With ``yielding``, one weight per member, one of two gives way and takes all of it.
        """
        dt = as_not_negative(dt, "dt")
        weights = weights_of(yielding, len(self))
        with self._change("separate", dt=dt, yielding=None if weights is None else np.array(weights)):
            self._separate(dt, weights)

    def _separate(self, dt, weights=None):
        limit = SEPARATION_SPEED * dt
        table = None
        if weights is not None:
            table = {c.id: (w, *c._pace()) for c, w in zip(self.controllers, weights, strict=True)}
        pushes = [c._push(limit, table) if c.collide else c._memory.separation for c in self.controllers]
        for hero, push in zip(self.controllers, pushes, strict=True):
            hero._memory = replace(hero._memory, separation=push)

    def run(self, displacements, dt, threads=1, *, min_distance=0.0):
        """Make T moves.

        Parameters
        ----------
        displacements : (T, n, 3) array of floats
            Metres.
        dt, threads, min_distance
            As for `move`.

        Returns
        -------
        (T, n, 3) array of floats
            Positions after each step, metres.
        """
        ways = _numbers(displacements, "displacements")
        if ways.ndim != 3 or ways.shape[1:] != (len(self), 3):
            raise ValueError(f"displacements must have shape (T, {len(self)}, 3), got {ways.shape}")
        _check_threads(threads)
        for step in ways:
            _vectors(step, "displacements", len(self))
        path = np.empty(ways.shape)
        with self._change(
            "run", displacements=ways, dt=_time(dt), min_distance=as_not_negative(min_distance, "min_distance")
        ):
            for k, step in enumerate(ways):
                self.move(step, dt, min_distance=min_distance)
                path[k] = self.positions
        return path

    @property
    def hits(self):
        """Collisions of the last move, made with ``record_hits=True``: (k,) structured array."""
        if self._hits is None:
            raise RuntimeError("the last move recorded no hits: pass record_hits=True to it")
        found = [(k, self.controllers[k], r) for k, hits in enumerate(self._hits) for r in hits]
        rows = np.zeros(len(found), HITS)
        for row, (k, hero, r) in zip(rows, found, strict=True):
            row["index"], row["id"] = k, hero.id
            row["actor"], row["controller"], row["obstacle"] = (_who(r, kind) for kind in (ACTOR, CONTROLLER, OBSTACLE))
            row["triangle"] = -1 if r.triangle is None else r.triangle
            row["has_data"], row["data"] = r.data is not None, r.data or 0
            row["position"], row["normal"], row["direction"] = r.position, r.normal, r.direction
            row["length"], row["distance"], row["along"] = r.length, r.distance, r.along
            row["pass_"], row["dynamic"] = PASSES.index(r.sweep_pass.name), r.dynamic
        return rows

    @property
    def stats(self):
        """Costs of the last move, made with ``record_stats=True``: (n,) structured array."""
        if self._uncounted:
            raise RuntimeError("the last move recorded no costs: pass record_stats=True to it")
        return np.zeros(len(self), STATS) if self._costs is None else self._costs.copy()

    def teleport(self, indices, positions):
        """Move characters to other positions; they forget their platforms."""
        numbers = self._indices(indices)
        places = _places(positions, len(numbers))
        with self._change("teleport", indices=np.array(numbers, np.int64), positions=np.array(places).reshape(-1, 3)):
            for i, place in zip(numbers, places, strict=True):
                self.controllers[i].teleport(place)
                self._flags[i] = 0

    def set(self, indices, **parameters):
        """Change parameters, also group, world and position: one value, or one per index."""
        numbers = self._indices(indices)
        n = len(numbers)
        groups = places = homes = None
        event = {"indices": np.array(numbers, np.int64), **parameters}
        if "world" in parameters:
            homes = self._homes_for(parameters.pop("world"), n)
        if "group" in parameters:
            group = parameters.pop("group")
            groups = _each(group, "group", n)
            groups = [_group(g) for g in ([group] * n if groups is None else groups)]
        if "position" in parameters:
            places = _places(parameters.pop("position"), n)
        for name in parameters:
            if name not in CONVERT:
                raise TypeError(f"unexpected keyword argument {name!r}")
        columns = {name: _each(value, name, n) for name, value in parameters.items()}
        fresh = []
        for k, i in enumerate(numbers):
            given = {
                name: CONVERT[name](parameters[name] if values is None else values[k], name)
                for name, values in columns.items()
            }
            fresh.append(_checked(replace(self.controllers[i]._params, **given)))
        with self._change("set", **event):
            for k, i in enumerate(numbers):
                if homes is not None and homes[k] != self._home_of(self.controllers[i]):
                    self._move_to(homes[k], i)
                hero = self.controllers[i]
                hero._params = fresh[k]
                if groups is not None:
                    hero._group = groups[k]
                if places is not None:
                    hero._memory = replace(hero._memory, position=places[k])

    def get(self, name, dtype=None, out=None):
        """Values of a parameter or of an array that moves change: (n,) or (n, 3) array."""
        return give_column(self._column_of(name), dtype, out)

    def _column_of(self, name):
        if isinstance(name, str) and name in MOVED_ARRAYS:
            return getattr(self, name)
        if name == "group":
            return np.array([c._group for c in self.controllers], np.int64)
        if name == "world":
            return np.array([self._home_of(c) for c in self.controllers], np.int64)
        if not isinstance(name, str) or name not in CONVERT:
            names = sorted([*CONVERT, *MOVED_ARRAYS])
            raise ValueError(f"name must be 'group', 'world' or one of {names}, not {name!r}")
        values = [getattr(c._params, name) for c in self.controllers]
        if name == "up":
            return np.array(values, np.float64).reshape(-1, 3)
        kind = type(getattr(self._usual, name))
        column = np.empty(len(self), kind if kind in (float, bool, int) else object)
        column[:] = values
        return column

    def resize(self, indices, height):
        """Change heights with the feet in place, without a test for headroom."""
        numbers = self._indices(indices)
        heights = _each(height, "height", len(numbers)) or [height] * len(numbers)
        for i, h in zip(numbers, heights, strict=True):
            # Find invalid values before anything changes.
            _checked(replace(self.controllers[i]._params, height=as_not_negative(h, "height")))
        with self._change("resize", indices=np.array(numbers, np.int64), height=height):
            for i, h in zip(numbers, heights, strict=True):
                self.controllers[i].resize(h)

    def _grounds(self, contacts, reach):
        rows = np.zeros(len(self), GROUND)
        for row, hero, c in zip(rows, self.controllers, contacts, strict=True):
            row["actor"] = row["controller"] = row["obstacle"] = row["triangle"] = -1
            row["distance"] = reach
            if c is None:
                continue
            row["hit"] = True
            row["actor"], row["controller"], row["obstacle"] = (_who(c, kind) for kind in (ACTOR, CONTROLLER, OBSTACLE))
            row["triangle"] = -1 if c.triangle is None else c.triangle
            row["has_data"], row["data"] = c.data is not None, c.data or 0
            row["normal"], row["face_normal"], row["point"] = c.normal, c.face_normal, c.point
            row["distance"] = c.distance
            up = hero._params.up
            n = c.face_normal
            row["walkable"] = not is_below_limit(n[0] * up[0] + n[1] * up[1] + n[2] * up[2], hero.slope_limit)
        return ground_arrays(rows)

    def _below(self, reach):
        grounds = [c.probe_ground(reach) for c in self.controllers]
        return [None if g is None else g._contact for g in grounds]

    def probe_ground(self, max_distance, threads=1):
        """Ground below each character (GroundArrays), see `CharacterController.probe_ground`."""
        reach = as_not_negative(max_distance, "max_distance")
        _check_threads(threads)
        return self._grounds(self._below(reach), reach)

    @property
    def ground(self):
        """The ground of each character at the end of its last move (GroundArrays)."""
        return self._grounds([c._memory.ground for c in self.controllers], 0.0)

    def snap_to_ground(self, max_distance, threads=1):
        """Move characters down onto walkable ground.

        Return which of them moved, (n,) array of bool.
        """
        reach = as_not_negative(max_distance, "max_distance")
        _check_threads(threads)
        contacts = self._below(reach)
        found = self._grounds(contacts, reach)
        done = np.zeros(len(self), bool)
        with self._change("snap_to_ground", max_distance=reach):
            for k, (hero, contact) in enumerate(zip(self.controllers, contacts, strict=True)):
                gap = found.distance[k] - hero.contact_offset
                if not found.hit[k] or not found.walkable[k]:
                    continue
                # A smaller gap is rounding: the character stands there already.
                if gap <= 1e-9:
                    hero._memory = replace(hero._memory, ground=contact)
                else:
                    place = madd(hero.position, hero.up, -float(gap))
                    hero._memory = replace(
                        hero._memory, position=place, ground=replace(contact, distance=hero.contact_offset)
                    )
                    done[k] = True
        return done

    def can_resize(self, height, threads=1, indices=None):
        """Whether each, or each of the chosen ones, fits with that height: array of bool."""
        height = as_not_negative(height, "height")
        numbers = range(len(self)) if indices is None else self._indices(indices)
        _check_threads(threads)
        return np.array([self.controllers[i].can_resize(height) for i in numbers], bool)

    def index_of(self, ids):
        """Indices of the characters with these ids; KeyError for an id without a member."""
        number = {hero.id: k for k, hero in enumerate(self.controllers)}
        array = np.asarray(ids)
        if array.ndim > 1:
            raise ValueError(f"ids must be one integer or have shape (k,), got shape {array.shape}")
        if array.dtype.kind == "O":
            check_long_ids(array)
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"ids must be integers, not {array.dtype}")
        if array.ndim == 0:
            return number[array.item()]
        return np.array([number[id] for id in array.tolist()], np.int64)

    def member(self, id):
        """The character with that id, or None."""
        if isinstance(id, bool) or not hasattr(type(id), "__index__"):
            raise TypeError(f"id must be an integer, not {type(id).__name__}")
        return next((c for c in self.controllers if c.id == id), None)

    def state_hash(self):
        """Sum of the members' hashes modulo 2**64, see `CharacterController.state_hash`."""
        return sum(hero._state_hash(self._home_of(hero)) for hero in self.controllers) % 2**64

    def save(self, *, moving=False):
        """State of the crowd as bytes, also valid for the compiled package.

        moving: also save the moving actors of the scene.
        """
        return self._pack(range(len(self)), as_bool(moving, "moving"))

    def _pack(self, numbers, moving):
        """Bytes of a crowd with only these members."""
        rows = {}
        heroes = [self.controllers[i] for i in numbers]
        for hero in heroes:
            rows.setdefault(saves.PARAMS.pack(*_params_values(hero._params)), len(rows))
        several = len(self._scenes) > 1
        order = ORDERS.index(self.order) + (SAVES_HOMES if several else 0) + (SAVES_MOVING if moving else 0)
        body = saves.CROWD_HEAD.pack(order, len(rows), self._usual_group, len(heroes))
        body += saves.PARAMS.pack(*_params_values(self._usual)) + b"".join(rows)
        for i, hero in zip(numbers, heroes, strict=True):
            row = rows[saves.PARAMS.pack(*_params_values(hero._params))]
            body += saves.CROWD_EACH.pack(hero.id, row, hero._group, int(self._flags[i]))
            body += saves.STATE.pack(*_memory_values(hero._memory))
        if several:
            body += struct.pack(f"<{len(heroes)}i", *(self._home_of(hero) for hero in heroes))
        for scene in self._scenes if moving else ():
            body += scene._moving_bytes()
        return saves.seal(body, saves.CROWD_MAGIC)

    def _parse(self, data):
        """(order, group, default parameters, members, parts about moving actors) of saved bytes."""
        body = saves.unseal(data, saves.CROWD_MAGIC)
        damaged = ValueError("data is damaged: it makes no sense")
        if len(body) < saves.CROWD_HEAD.size + saves.PARAMS.size:
            raise damaged
        order, n_rows, group, n = saves.CROWD_HEAD.unpack_from(body)
        several = len(self._scenes) > 1
        if not 0 <= order < 2 * SAVES_MOVING:
            raise damaged
        if bool(order & SAVES_HOMES) != several:
            raise ValueError("data must come from a crowd with as many worlds as this one")
        moving, order = bool(order & SAVES_MOVING), order & 1
        each = saves.CROWD_EACH.size + saves.STATE.size
        first = saves.CROWD_HEAD.size + saves.PARAMS.size * (1 + n_rows)
        size = first + n * (each + 4 * several)
        if group < 0 or not 0 <= n_rows <= n or size > len(body) or (not moving and size != len(body)):
            raise damaged
        homes = [0] * n
        if several:
            homes = list(struct.unpack_from(f"<{n}i", body, first + n * each))
            if any(home >= len(self._scenes) for home in homes):
                raise ValueError("data must come from a crowd with as many worlds as this one")
            if any(home < 0 for home in homes):
                raise damaged
        params = [
            list(saves.PARAMS.unpack_from(body, saves.CROWD_HEAD.size + saves.PARAMS.size * k))
            for k in range(n_rows + 1)
        ]
        usual, *rows = params
        rows = [_params_of(row) for row in rows]
        found = []
        for k in range(n):
            at = first + k * each
            id, row, its_group, flags = saves.CROWD_EACH.unpack_from(body, at)
            memory = _memory_of(list(saves.STATE.unpack_from(body, at + saves.CROWD_EACH.size)))
            if not 0 <= row < n_rows or its_group < 0 or flags > 7 or id < 0 or (found and id <= found[-1][0]):
                raise damaged
            found.append((id, rows[row], its_group, flags, memory, homes[k]))
        parts = saves.split_moving(body[size:], len(self._scenes)) if moving else []
        return order, group, usual, found, parts

    def _join(self, found):
        """Create controllers with the ids and states of saved members, and reserve those ids."""
        numbers = [scene._next_id for scene in self._scenes]
        fresh = []
        for id, row, its_group, _, memory, home in found:
            self._scenes[home]._next_id = id
            hero = self._made(memory.position, row, its_group, home)
            hero._memory = memory
            fresh.append(hero)
        for scene, number in zip(self._scenes, numbers, strict=True):
            scene._next_id = max([number, *(id + 1 for id, *_ in found)])
        return fresh

    def restore(self, data):
        """Restore a state of `save`, with its ids."""
        order, group, usual, found, parts = self._parse(data)
        mine = {c.id for c in self.controllers}
        for id, _, _, _, _, home in found:
            if id not in mine and self._scenes[home]._has_id(id):
                raise ValueError(f"data has ids that belong to others of this scene, {id} for example")
        carried = [scene._moving_found(rows) for scene, rows in zip(self._scenes, parts, strict=False)]
        with self._change("restore", data=data):
            data_of = {hero.id: hero.user_data for hero in self.controllers}
            for hero in self.controllers:
                hero.remove()
            self.order, self._usual_group = ORDERS[order], group
            self._usual = replace(_usual_of(usual), proxy=-1)
            self.controllers = self._join(found)
            for hero in self.controllers:
                hero.user_data = data_of.get(hero.id)
            self._flags = np.array([flags for _, _, _, flags, _, _ in found], np.uint8)
            self._forget_move()
        for scene, rows in zip(self._scenes, carried, strict=False):
            scene._moving_put(rows)

    def extract(self, ids):
        """Remove members and return them as bytes for `insert`."""
        array = np.asarray(ids)
        gone = sorted(np.atleast_1d(self.index_of(array)).tolist())
        if len(set(gone)) != len(gone):
            raise ValueError("ids must be different from one another")
        with self._change("extract", ids=array):
            data = self._pack(gone, False)
            self.remove(gone)
        return data

    def insert(self, data):
        """Add members with their ids and their whole state; indices of others may change."""
        _, _, _, found, _ = self._parse(data)
        mine = {c.id for c in self.controllers}
        for id, _, _, _, _, home in found:
            if id in mine or self._scenes[home]._has_id(id):
                raise ValueError(f"data has id {id}, which something in this scene has")
        with self._change("insert", data=data):
            flags = dict(zip([c.id for c in self.controllers], self._flags.tolist(), strict=True))
            flags |= {id: its_flags for id, _, _, its_flags, _, _ in found}
            self.controllers = sorted(self.controllers + self._join(found), key=lambda hero: hero.id)
            self._flags = np.array([flags[hero.id] for hero in self.controllers], np.uint8)
            self._forget_move()
        return np.array([id for id, *_ in found], np.int64)

    @property
    def user_data(self):
        """Objects of your own, a list with one entry for each member. Settable."""
        return _UserData(self.controllers)

    @user_data.setter
    def user_data(self, values):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"user_data must be one object for each member, not {type(values).__name__}")
        given = list(values)
        if len(given) != len(self):
            raise ValueError(f"user_data must have {len(self)} entries, one a member, got {len(given)}")
        for hero, value in zip(self.controllers, given, strict=True):
            hero.user_data = value

    def _array(self, values, dtype=np.float64):
        array = np.array(values, dtype)
        array.flags.writeable = False
        return array

    def _rows(self, values):
        array = np.array(values, np.float64).reshape(-1, 3)
        array.flags.writeable = False
        return array

    @property
    def positions(self):
        """Centres of the capsules, (n, 3) array, metres."""
        return self._rows([c.position for c in self.controllers])

    @property
    def foot_positions(self):
        """Foot positions, (n, 3) array, metres."""
        return self._rows([c.foot_position for c in self.controllers])

    @property
    def velocities(self):
        """Motion of the last move / dt, (n, 3) array, m/s, without recovery and separation."""
        return self._rows([c.velocity for c in self.controllers])

    @property
    def displacements(self):
        """Whole motion of the last move, (n, 3) array, metres."""
        return self._rows([c.state.displacement for c in self.controllers])

    @property
    def flags(self):
        """Collision flags of the last move, (n,) array of uint8; 0 for inactive characters."""
        return self._array(self._flags, np.uint8)

    @property
    def grounded(self):
        """Whether each character ended on ground, (n,) array of bool."""
        return self._array([c.grounded for c in self.controllers], bool)

    @property
    def ground_normals(self):
        """Contact normals of the ground, (n, 3) array; zero for characters in the air."""
        grounds = [c.ground for c in self.controllers]
        return self._rows([(0.0, 0.0, 0.0) if g is None else g.normal for g in grounds])

    @property
    def standing_on(self):
        """Ids of the actors or obstacles below the characters, (n,) array; -1: none."""
        memories = [c._memory for c in self.controllers]
        return self._array(
            [m.touched_actor if m.touched_actor >= 0 else m.touched_obstacle for m in memories], np.int64
        )

    @property
    def ids(self):
        """Ids of the characters, (n,) array."""
        return self._array([c.id for c in self.controllers], np.int64)

    def __len__(self):
        return len(self.controllers)

    def __repr__(self):
        return f"<Crowd of {len(self)}>"


class _UserData(list):
    """User data of the members, which an assignment to an entry changes."""

    def __init__(self, heroes):
        super().__init__(hero.user_data for hero in heroes)
        self._heroes = heroes

    def __setitem__(self, index, value):
        super().__setitem__(index, value)
        for hero, own in zip(self._heroes, self, strict=False):
            hero.user_data = own


def _usual_of(values):
    """Parameters for later characters, which need not fit together."""
    height = values[4]
    params = _params_of([*values[:4], max(height, values[6]), *values[5:]])
    return replace(params, height=height)


def move_many(controllers, displacements, dt, threads=1, out=None, *, min_distance=0.0):
    """Move many controllers, one after another.

    Parameters
    ----------
    controllers : list or tuple of CharacterController
        Different ones.
    displacements : (n, 3) array of floats
        Metres.
    dt : float
        Seconds, >= 0.
    threads : int
        Unused here.
    out : (n,) array of uint8, optional
        Array for the flags.
    min_distance : float
        A motion of this length or less does not start, metres.

    Returns
    -------
    (n,) array of uint8
        Collision flags.
    """
    dt = _time(dt)
    min_distance = as_not_negative(min_distance, "min_distance")
    if not isinstance(controllers, (list, tuple)):
        raise TypeError(f"controllers must be a list or tuple, not {type(controllers).__name__}")
    for hero in controllers:
        if not isinstance(hero, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(hero).__name__}")
    if len({id(hero) for hero in controllers}) != len(controllers):
        raise ValueError("controllers must be different from one another")
    ways = _vectors(displacements, "displacements", len(controllers))
    _check_threads(threads)
    if out is None:
        out = np.zeros(len(controllers), np.uint8)
    else:
        _check_out(out, len(controllers))
    for scene in {id(hero.scene): hero.scene for hero in controllers}.values():
        mine = [k for k, hero in enumerate(controllers) if hero.scene is scene]
        event = {"controllers": [controllers[k] for k in mine], "displacements": np.array([ways[k] for k in mine])}
        scene._tell(scene, "move_many", **event, dt=dt, min_distance=min_distance)
    for k, (hero, way) in enumerate(zip(controllers, ways, strict=True)):
        with hero.scene._quietly():
            out[k] = CharacterController.move(hero, way, dt, min_distance=min_distance)
    return out


def _team_of(controllers):
    if not isinstance(controllers, (list, tuple)):
        raise TypeError(f"controllers must be a list or tuple, not {type(controllers).__name__}")
    for hero in controllers:
        if not isinstance(hero, CharacterController):
            raise TypeError(f"controllers must be CharacterControllers, not {type(hero).__name__}")
    if len({id(hero) for hero in controllers}) != len(controllers):
        raise ValueError("controllers must be different from one another")
    return list(controllers)


def _scene_of(heroes):
    scenes = {id(hero.scene): hero.scene for hero in heroes}
    if len(scenes) > 1:
        raise ValueError("controllers must be of one scene when moving actors are saved with them")
    if not scenes:
        raise ValueError("controllers must not be empty when moving actors are saved with them")
    return heroes[0].scene


def save_many(controllers, *, moving=False):
    """State of these controllers as bytes, with moving actors of their scene if requested."""
    heroes = _team_of(controllers)
    moving = as_bool(moving, "moving")
    body = saves.TEAM_HEAD.pack(len(heroes), moving)
    for hero in heroes:
        body += saves.TEAM_ID.pack(hero.id) + saves.PARAMS.pack(*_params_values(hero._params))
        body += saves.STATE.pack(*_memory_values(hero._memory))
    if moving:
        body += _scene_of(heroes)._moving_bytes()
    return saves.seal(body, saves.TEAM_MAGIC)


def restore_many(controllers, data):
    """Restore the states of `save_many`, all of them or none."""
    heroes = _team_of(controllers)
    body = saves.unseal(data, saves.TEAM_MAGIC)
    damaged = ValueError("data is damaged: it makes no sense")
    if len(body) < saves.TEAM_HEAD.size:
        raise damaged
    n, moving = saves.TEAM_HEAD.unpack_from(body)
    size = saves.TEAM_HEAD.size + n * saves.TEAM_EACH
    if n < 0 or moving not in (0, 1) or size > len(body) or (not moving and size != len(body)):
        raise damaged
    if n != len(heroes):
        raise ValueError(f"data is of {n} controllers, but controllers are {len(heroes)}")
    found, number = [], {}
    for k, hero in enumerate(heroes):
        at = saves.TEAM_HEAD.size + k * saves.TEAM_EACH
        (id_,) = saves.TEAM_ID.unpack_from(body, at)
        params = _params_of(list(saves.PARAMS.unpack_from(body, at + saves.TEAM_ID.size)))
        memory = _memory_of(list(saves.STATE.unpack_from(body, at + saves.TEAM_ID.size + saves.PARAMS.size)))
        if id_ in number:
            raise damaged
        number[id_] = hero.id
        found.append((hero, params, memory))
    rows = _scene_of(heroes)._moving_found(saves.split_moving(body[size:], 1)[0]) if moving else []
    with ExitStack() as stack:
        for hero in heroes:
            stack.enter_context(hero._mine())
        _tell_together("restore_many", heroes, data=data)
        for hero, params, memory in found:
            memory = replace(
                memory, touched_controller=number.get(memory.touched_controller, memory.touched_controller)
            )
            if memory.ground is not None and memory.ground.owner == CONTROLLER:
                ground = replace(memory.ground, id=number.get(memory.ground.id, memory.ground.id))
                memory = replace(memory, ground=ground)
            hero._params = replace(params, proxy=hero._params.proxy)
            hero._forget(memory.position)
            hero._memory = memory
            hero._publish()
        if moving:
            heroes[0].scene._moving_put(rows)
