"""Scenes and walkers for the reports.

Each scene is described once, in plain numbers with z up. The tests play it with other triangle
orders, scales, positions and up directions. Tests use the scene's own numbers, and a Lab converts
them.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cache

import brute
import numpy as np

import pycct
from pycct import Behavior, Box, CharacterController, Mesh, Scene

WAYS = ("given", "reversed", "rotated", "boxes")
# Walls of a box as triangles; bit 0 of a corner is +x, bit 1 +y, bit 2 +z.
BOX_FACES = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))


def about(axis, degrees):
    """Unit quaternion (x, y, z, w)."""
    a = np.asarray(axis, float)
    a = a / np.linalg.norm(a)
    half = math.radians(degrees) / 2
    return (*(math.sin(half) * a), math.cos(half))


def times(p, q):
    """Quaternion product: first q, then p."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return (
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
        pw * qw - px * qx - py * qy - pz * qz,
    )


STILL = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Part:
    """Triangles, or a box about ``centre`` rotated by ``turn``."""

    vertices: np.ndarray
    triangles: np.ndarray
    half: tuple | None = None
    centre: tuple = (0.0, 0.0, 0.0)
    turn: tuple = STILL
    two_sided: bool = False


def mesh(vertices, triangles, two_sided=False):
    return Part(np.array(vertices, float), np.array(triangles, int), two_sided=two_sided)


def quad(a, b, c, d):
    """Corners counter-clockwise, seen from the front."""
    return mesh([a, b, c, d], [(0, 1, 2), (0, 2, 3)])


def floor(z=0.0, half=20.0):
    return quad((-half, -half, z), (half, -half, z), (half, half, z), (-half, half, z))


def block(half, centre, turn=STILL):
    """A box of those half extents."""
    corners = np.array([[h if i >> k & 1 else -h for k, h in enumerate(half)] for i in range(8)])
    tris = [t for a, b, c, d in BOX_FACES for t in ((a, b, c), (a, c, d))]
    return Part(brute.rotate(turn, corners) + centre, np.array(tris), tuple(half), tuple(centre), turn)


def box(lo, hi):
    lo, hi = np.array(lo, float), np.array(hi, float)
    return block((hi - lo) / 2, (hi + lo) / 2)


def ramp(x0, degrees, length=20.0, half_width=20.0):
    """Rises toward +x from (x0, 0)."""
    x1 = x0 + length * math.cos(math.radians(degrees))
    z1 = length * math.sin(math.radians(degrees))
    return quad((x0, -half_width, 0), (x1, -half_width, z1), (x1, half_width, z1), (x0, half_width, 0))


def stairs(n, tread=0.4, rise=0.2, x0=1.0, end=8.0):
    return [box((x0 + tread * i, -2, 0), (end, 2, rise * (i + 1))) for i in range(n)]


def grid(lo, hi, cells, height=lambda x, y: 0.0 * x):
    """A height field as triangles: cells (nx, ny) over lo..hi."""
    xs, ys = (np.linspace(lo[k], hi[k], cells[k] + 1) for k in range(2))
    x, y = np.meshgrid(xs, ys, indexing="ij")
    v = np.stack([x, y, height(x, y)], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(cells[0]), np.arange(cells[1]), indexing="ij")
    a = (i * (cells[1] + 1) + j).ravel()
    b, c, d = a + cells[1] + 1, a + cells[1] + 2, a + 1
    return mesh(v, np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]))


@cache
def sphere(radius, centre, around, rings):
    """A sphere of triangles."""
    v = [(0, 0, -1.0)]
    for i in range(1, rings):
        t = math.pi * i / rings
        v += [
            (
                math.sin(t) * math.cos(2 * math.pi * j / around),
                math.sin(t) * math.sin(2 * math.pi * j / around),
                -math.cos(t),
            )
            for j in range(around)
        ]
    v.append((0, 0, 1.0))
    t = [(0, 1 + (j + 1) % around, 1 + j) for j in range(around)]
    for i in range(rings - 2):
        for j in range(around):
            a, b = 1 + i * around + j, 1 + i * around + (j + 1) % around
            t += [(a, b, b + around), (a, b + around, a + around)]
    last = 1 + (rings - 2) * around
    t += [(last + j, last + (j + 1) % around, len(v) - 1) for j in range(around)]
    return mesh(np.array(v) * radius + centre, t)


@cache
def log(radius, x, half_length, around=48):
    """A cylinder along y through (x, 0, 0), without ends."""
    a = 2 * math.pi * np.arange(around) / around
    ring = np.stack([x + radius * np.sin(a), 0 * a, radius * np.cos(a)], -1)
    v = np.concatenate([ring, ring])
    v[:around, 1] -= half_length
    v[around:, 1] += half_length
    t = []
    for j in range(around):
        k = (j + 1) % around
        t += [(j, k, around + k), (j, around + k, around + j)]
    return mesh(v, t)


@dataclass(frozen=True)
class Lab:
    """Conversion between scene numbers and world numbers."""

    rules: str = "robust"
    way: str = "given"
    scale: float = 1.0
    turn: tuple = STILL
    shift: tuple = (0.0, 0.0, 0.0)
    name: str = ""

    def out(self, p):
        """Points of the scene in the world."""
        return self.along(p) + np.array(self.shift)

    def along(self, v):
        """Vectors of the scene in the world."""
        v = np.asarray(v, float) * self.scale
        return v if self.turn == STILL else brute.rotate(self.turn, v)

    def back(self, p):
        """Points of the world in the scene."""
        x, y, z, w = self.turn
        p = np.asarray(p, float) - np.array(self.shift)
        return (p if self.turn == STILL else brute.rotate((-x, -y, -z, w), p)) / self.scale

    def add(self, scene, part, **kind):
        """Add one part to the scene; return the actor."""
        if part.half is not None and self.way == "boxes":
            return scene.add(
                Box(np.array(part.half) * self.scale),
                position=self.out(part.centre),
                rotation=times(self.turn, part.turn),
                **kind,
            )
        t = part.triangles
        if self.way == "reversed":
            t = t[::-1]
        elif self.way == "rotated":
            t = np.array([np.roll(x, 1 + i % 2) for i, x in enumerate(t)])
        if kind.get("body", "static") == "static":
            return scene.add(Mesh(self.out(part.vertices), t, two_sided=part.two_sided), **kind)
        # Moving parts have their position in their pose.
        local = np.asarray(part.vertices) - part.centre
        local = brute.rotate((-part.turn[0], -part.turn[1], -part.turn[2], part.turn[3]), local) * self.scale
        return scene.add(
            Mesh(local, t, two_sided=part.two_sided),
            position=self.out(part.centre),
            rotation=times(self.turn, part.turn),
            **kind,
        )

    def scene(self, *parts):
        scene = Scene()
        for p in parts:
            self.add(scene, p)
        return scene

    def move_to(self, actor, centre, turn=STILL):
        actor.move_to(self.out(centre), times(self.turn, turn))

    def walker(self, scene, foot, **more):
        return Walker(self, scene, foot, **more)


@dataclass
class Walk:
    """Result of some moves: feet[0] is the start."""

    feet: np.ndarray
    flags: list = field(default_factory=list)
    grounded: list = field(default_factory=list)
    fixes: int = 0

    @property
    def steps(self):
        return np.diff(self.feet, axis=0)

    @property
    def end(self):
        return self.feet[-1]

    @property
    def top(self):
        return self.feet[:, 2].max()


# The capsule of the reports.
C0 = {"r": 0.3, "h": 1.2, "co": 0.02, "so": 0.3, "sl": 45.0}


class Walker:
    """A character in the scene's numbers; ``foot`` is the lowest point of the capsule."""

    def __init__(self, lab, scene, foot, climbing_mode="constrained", **more):
        c = {**C0, **{k: more.pop(k) for k in list(more) if k in C0}}
        self.lab = lab
        self.c = c
        k = lab.scale
        self.half = c["h"] / 2 + c["r"]
        self.hero = CharacterController(
            scene,
            lab.out(np.add(foot, (0, 0, self.half))),
            c["r"] * k,
            c["h"] * k,
            up=lab.along((0, 0, 1)),
            step_offset=c["so"] * k,
            contact_offset=c["co"] * k,
            slope_limit=math.cos(math.radians(c["sl"])),
            climbing_mode=climbing_mode,
            rules=more.pop("rules", lab.rules),
            **more,
        )

    @property
    def foot(self):
        return np.subtract(self.lab.back(self.hero.position), (0, 0, self.half))

    def move(self, displacement, dt=1 / 60):
        return self.hero.move(tuple(self.lab.along(displacement)), dt)

    def walk(self, displacements, dt=1 / 60, before=None):
        """Make one move for each displacement; ``before(k)`` runs first."""
        d = self.lab.along(np.atleast_2d(np.array(list(displacements), float)))
        places, flags, grounded, fixes = [self.hero.position], [], [], 0
        for k, v in enumerate(d):
            if before is not None:
                before(k)
            flags.append(int(self.hero.move(tuple(v), dt)))
            places.append(self.hero.position)
            grounded.append(self.hero.grounded)
            fixes |= int(self.hero.stats.fixes)
        return Walk(self.lab.back(np.array(places)) - (0, 0, self.half), flags, grounded, fixes)


def rest(lab, scene, foot, **more):
    """Height of the feet after falling for 30 frames."""
    w = lab.walker(scene, foot, **more)
    got = w.walk([(0, 0, -0.05)] * 30)
    assert got.grounded[-1]
    return got.end[2]


def clearance(part, walker):
    """Gap between the lower sphere and the triangles of a part, in the scene's numbers."""
    centre = np.add(walker.foot, (0, 0, walker.c["r"]))
    tris = part.vertices[part.triangles]
    reach = walker.c["r"] + 0.5
    tris = tris[(tris.min(1) < centre + reach).all(1) & (tris.max(1) > centre - reach).all(1)]
    if not len(tris):
        return math.inf
    q = brute.nearest_on_triangles(np.tile(centre, (len(tris), 1)), tris)
    return np.linalg.norm(q - centre, axis=1).min() - walker.c["r"]


def _labs():
    yield from (Lab("robust", way, name=f"robust-{way}") for way in WAYS)
    yield from (Lab("physx", way, name=f"physx-{way}") for way in WAYS)
    one = Lab("robust")
    yield replace(one, turn=about((0, 0, 1), 37), name="robust-turned")
    yield replace(one, turn=about((1, 0, 0), -90), name="robust-y-up")
    yield replace(one, way="boxes", turn=about((1, 2, 3), 77), name="robust-askew-boxes")
    yield replace(one, scale=0.1, name="robust-small")
    yield replace(one, scale=10.0, way="boxes", name="robust-large-boxes")
    yield replace(one, shift=(20000.0, -20000.0, 500.0), name="robust-far")


LABS = tuple(_labs())
RIDES = {"body": "kinematic", "behavior": Behavior.CAN_RIDE}
HAS_SNAP = hasattr(pycct.CharacterController, "snap_to_ground")


def ledge(height, e, x=1.0):
    """A step whose front leans back (e > 0) or over (e < 0) by e."""
    return mesh(
        [(x, -20, 0), (x, 20, 0), (x + e, 20, height), (x + e, -20, height), (6, 20, height), (6, -20, height)],
        [(0, 3, 2), (0, 2, 1), (3, 5, 4), (3, 4, 2)],
    )


def gap(height, x0=1.0, x1=3.0, half=0.5):
    """A doorway: two blocks and a lintel."""
    return [
        floor(),
        box((x0, half, 0), (x1, 5, 4)),
        box((x0, -5, 0), (x1, -half, 4)),
        box((x0, -half, height), (x1, half, 4)),
    ]


def long_floor():
    return quad((-9, -30, 0), (1, -30, 0), (1, 30, 0), (-9, 30, 0))
