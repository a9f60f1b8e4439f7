"""What every member of a crowd sees, by a ray for each value. Twin of `pycct.sensors.sensors`."""

from math import sqrt
from types import SimpleNamespace

import numpy as np

from pycct.reference.core import CharacterController, _z_to
from pycct.reference.crowd import Crowd
from pycct.reference.ray import direction_of, first_hit
from pycct.reference.trigonometry import cosine, sine
from pycct.reference.types import ACTOR, CAPSULE, CONTROLLER, OBSTACLE
from pycct.reference.vec import dot, len2, madd, neg, q_rotate, scale, sub
from pycct.runtime.enums import Seen
from pycct.sensors.buffers import (
    checked_angles,
    checked_dtype,
    checked_out,
    checked_sensors,
    columns_of,
    fresh_buffers,
)
from pycct.sensors.kinds import DepthGrid, Feet, HeightScan, Lidar, Neighbours

ZERO = (0.0, 0.0, 0.0)


class _Frame:
    """Axes of a member's look."""

    def __init__(self, hero, yaw, pitch):
        self.up = hero.up
        q = _z_to(hero.up)
        s, c = sine(yaw), cosine(yaw)
        self.ahead = q_rotate(q, (c, s, 0.0))
        self.left = q_rotate(q, (-s, c, 0.0))
        s, c = sine(pitch), cosine(pitch)
        self.view = madd(scale(self.ahead, c), hero.up, s)
        self.top = madd(scale(hero.up, c), self.ahead, -s)
        self.feet = hero.foot_position


def _capsule(hero):
    """A member as others see it."""
    half = 0.5 * hero.height
    return SimpleNamespace(
        id=hero.id, layer=hero.layer, kind=CAPSULE, owner=CONTROLLER, radius=hero.radius, shape=None,
        q0=madd(hero.position, hero.up, -half), q1=madd(hero.position, hero.up, half),
    )  # fmt: skip


class Sensors:
    """What every member of a crowd sees.

    Parameters
    ----------
    crowd : Crowd, or list or tuple of CharacterController
        The characters. Those of a list belong to one group.
    sensors : mapping of str to Lidar, HeightScan, DepthGrid, Neighbours or Feet
        Sensors by name.
    dtype : float64 or float32
        Type of the arrays of lengths and vectors.
    """

    def __init__(self, crowd, sensors, dtype=np.float64):
        if not isinstance(crowd, Crowd):
            if not isinstance(crowd, (list, tuple)) or not all(isinstance(c, CharacterController) for c in crowd):
                raise TypeError(f"crowd must be a Crowd, or a list or tuple of CharacterController, not {crowd!r}")
            if len({id(hero) for hero in crowd}) != len(crowd):
                raise ValueError("crowd must contain each controller once")
            crowd = tuple(crowd)
        self.crowd = crowd
        self.dtype = checked_dtype(dtype)
        self._sensors = checked_sensors(sensors)
        self._columns = columns_of(self._sensors, self.dtype)
        self._buffers = None
        self._n = -1

    @property
    def sensors(self):
        """The sensors by name; a new dict."""
        return dict(self._sensors)

    def __repr__(self):
        return f"<Sensors {', '.join(self._sensors)} of {self.crowd!r}>"

    def look(self, yaw=0.0, pitch=0.0, threads=1, out=None):
        """Compute the values of all sensors for all members.

        Parameters
        ----------
        yaw, pitch : float or (n,) array of floats
            Turn about the up direction and rise of the line of sight, radians.
        threads : int
            Unused here.
        out : mapping of str to arrays, optional
            The caller's arrays for some or all keys.

        Returns
        -------
        dict of str to arrays
            For each sensor ``s`` and each of its fields ``f``, the key ``"s.f"``.
        """
        heroes = self.crowd.controllers if isinstance(self.crowd, Crowd) else list(self.crowd)
        n = len(heroes)
        yaws, pitches = checked_angles(yaw, "yaw", n).tolist(), checked_angles(pitch, "pitch", n).tolist()
        if self._n != n:
            self._buffers, self._n = fresh_buffers(self._columns, n), n
        arrays = checked_out(out, self._columns, self._buffers, n)
        for i, hero in enumerate(heroes):
            mates = [h for h in heroes if h is not hero and h._scene is hero._scene and h._group == hero._group]
            mates.sort(key=lambda h: h.id)
            frame = _Frame(hero, yaws[i], pitches[i])
            for number, (name, sensor) in enumerate(self._sensors.items()):
                values = self._values(sensor, hero, mates, frame)
                for key, column in self._columns.items():
                    if column.sensor == number:
                        arrays[key][i] = np.array(values[key[len(name) + 1 :]]).reshape(column.shape)
        return arrays

    def _values(self, sensor, hero, mates, frame):
        """The fields of one sensor of one member."""
        if isinstance(sensor, Neighbours):
            return _neighbours(sensor, hero, mates)
        if isinstance(sensor, Feet):
            return _ground(hero)
        proxy = None if hero._proxy is None else hero._proxy.id
        items = [(0 if i.body == "static" else 1, i) for i in hero._scene.items() if i.id not in (hero.id, proxy)]
        items += [(2, _capsule(h)) for h in mates]
        rows = []
        for origin, way, ahead, reach in _rays(sensor, frame):
            d = direction_of(way)
            hit = first_hit(items, origin, d, reach, sensor.mask)
            distance = reach if hit is None else hit.distance
            row = _row(hit, distance)
            if isinstance(sensor, HeightScan):
                row["height"] = -sensor.reach if hit is None else sensor.above - distance
            row["depth"] = distance * dot(d, ahead)
            rows.append(row)
        return {name: [row[name] for row in rows] for name in sensor.fields}


def _rays(sensor, f):
    """Yield origin, direction of any length, line of sight and length of each ray."""
    if isinstance(sensor, HeightScan):
        down = neg(f.up)
        for ahead, aside in sensor.offsets:
            origin = madd(madd(madd(f.feet, f.ahead, ahead), f.left, aside), f.up, sensor.above)
            yield origin, down, f.ahead, sensor.reach + sensor.above
        return
    if isinstance(sensor, Lidar):
        base = [(cosine(angle), sine(angle), 0.0) for angle in sensor.angles]
    else:
        half = sine(0.5 * sensor.fov) / cosine(0.5 * sensor.fov)
        base = [(1.0, half * left, half * top) for left, top in sensor.pixels]
    tilts = isinstance(sensor, DepthGrid) or sensor.tilts
    ahead, top = (f.view, f.top) if tilts else (f.ahead, f.up)
    origin = madd(f.feet, f.up, sensor.height if isinstance(sensor, Lidar) else sensor.eye)
    for x, y, z in base:
        yield origin, madd(madd(scale(ahead, x), f.left, y), top, z), ahead, sensor.reach


def _row(hit, distance):
    """The fields of one ray."""
    if hit is None:
        return {"distance": distance, "normal": ZERO, "kind": Seen.NOTHING, "id": -1, "triangle": -1, "data": 0}
    triangle = -1 if hit.face is None else hit.face.source
    data = None if triangle < 0 else hit.item.data_of(triangle)
    kind = Seen.CHARACTER if hit.part == 2 else (Seen.MOVING if hit.part == 1 else Seen.STATIC)
    if hit.item.owner == OBSTACLE:
        kind = Seen.OBSTACLE
    return {
        "distance": distance, "normal": hit.normal, "kind": kind, "id": hit.item.id, "triangle": triangle,
        "data": 0 if data is None else data,
    }  # fmt: skip


def _neighbours(sensor, hero, mates):
    near = [(len2(sub(h.position, hero.position)), h.id, h) for h in mates]
    near = sorted(row for row in near if row[0] <= sensor.radius * sensor.radius)[: sensor.k]
    empty = sensor.k - len(near)
    return {
        "id": [number for _, number, _ in near] + [-1] * empty,
        "position": [sub(h.position, hero.position) for _, _, h in near] + [ZERO] * empty,
        "velocity": [sub(h.velocity, hero.velocity) for _, _, h in near] + [ZERO] * empty,
        "distance": [sqrt(d2) for d2, _, _ in near] + [sensor.radius] * empty,
    }


def _ground(hero):
    ground = hero._memory.ground
    if ground is None:
        return {
            "normal": ZERO, "distance": 0.0, "walkable": False, "kind": Seen.NOTHING, "id": -1, "triangle": -1,
            "data": 0,
        }  # fmt: skip
    kind = {ACTOR: Seen.STATIC, CONTROLLER: Seen.CHARACTER, OBSTACLE: Seen.OBSTACLE}[ground.owner]
    if kind == Seen.STATIC:
        actor = hero._scene._actors.get(ground.id)
        if actor is None:
            kind = Seen.NOTHING
        elif actor.body != "static":
            kind = Seen.MOVING
    return {
        "normal": ground.normal, "distance": ground.distance,
        "walkable": dot(ground.face_normal, hero.up) >= hero.slope_limit,
        "kind": kind, "id": ground.id, "triangle": -1 if ground.triangle is None else ground.triangle,
        "data": ground.data or 0,
    }  # fmt: skip
