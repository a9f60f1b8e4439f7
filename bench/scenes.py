"""Deterministic workloads: levels, starts and displacements of 256 characters.

The module makes `flat` (2 triangles), `terrain` (80,000) and `dungeon` (18,264: corridors, stairs,
ramps, pillars, low ceilings). `navmesh` (11,745) needs two level files, nav_test.obj and
dungeon.obj, in the folder PYCCT_LEVELS or in ../shared/levels beside the project; without them it
is skipped.

z up, metres, seconds. Geometry and starts are multiples of 1/1024 m and displacements of 2**-20 m,
so that every number is also a float32: peers that compute in float32 get exactly the same level.
"""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np

CHARACTERS, FRAMES, DT, SPEED, DOWN = 256, 120, 0.0166667, 5.0, 0.05
RADIUS, HEIGHT, CONTACT_OFFSET, STEP_OFFSET, SLOPE_LIMIT = 0.4, 1.0, 0.02, 0.4, 0.70710678
MIN_DISTANCE = 1e-4
HALF_HEIGHT = HEIGHT / 2 + RADIUS
CLEARANCE = RADIUS + 0.04


def quantise(values, bits=10):
    scale = float(1 << bits)
    return np.round(np.asarray(values, np.float64) * scale) / scale


# --- distances, to find starts in the clear -------------------------------------------------------


def points_to_triangles(p, a, b, c):
    """Squared distances; `p` is one point, or one point for each triangle."""
    ab, ac, ap, bp, cp = b - a, c - a, p - a, p - b, p - c
    d1, d2, d3, d4, d5, d6 = ((u * v).sum(1) for v in (ap, bp, cp) for u in (ab, ac))
    vc, vb, va = d1 * d4 - d3 * d2, d5 * d2 - d1 * d6, d3 * d6 - d5 * d4
    total = va + vb + vc
    total = np.where(np.abs(total) < 1e-30, 1e-30, total)
    inside = (va >= 0) & (vb >= 0) & (vc >= 0)
    best = np.where(inside, ((p - a - ab * (vb / total)[:, None] - ac * (vc / total)[:, None]) ** 2).sum(1), np.inf)
    for s, e in ((a, b), (b, c), (c, a)):
        d = e - s
        t = np.clip(((p - s) * d).sum(1) / np.maximum((d * d).sum(1), 1e-30), 0, 1)
        best = np.minimum(best, ((p - s - d * t[:, None]) ** 2).sum(1))
    return best


def segment_to_segments(p0, p1, s, e):
    """Squared distances of one segment to many."""
    d1, d2, r = p1 - p0, e - s, p0 - s
    a, f, c, b = (d1 * d1).sum(), (d2 * r).sum(1), r @ d1, d2 @ d1
    ee = np.maximum((d2 * d2).sum(1), 1e-30)
    total = a * ee - b * b
    t1 = np.where(total > 1e-12, np.clip((b * f - c * ee) / np.where(total > 1e-12, total, 1), 0, 1), 0.0)
    t2 = (b * t1 + f) / ee
    t1 = np.where(t2 < 0, np.clip(-c / a, 0, 1), np.where(t2 > 1, np.clip((b - c) / a, 0, 1), t1))
    x = p0 + d1[None] * t1[:, None] - s - d2 * np.clip(t2, 0, 1)[:, None]
    return (x * x).sum(1)


class Soup:
    """Triangles, prepared for the search for starts."""

    def __init__(self, vertices, triangles):
        self.a, self.b, self.c = (vertices[triangles[:, k]] for k in range(3))
        self.low = np.minimum(np.minimum(self.a, self.b), self.c)
        self.high = np.maximum(np.maximum(self.a, self.b), self.c)
        n = np.cross(self.b - self.a, self.c - self.a)
        length = np.linalg.norm(n, axis=1)
        self.normal = n / np.maximum(length, 1e-30)[:, None]
        self.area = 0.5 * length

    def clearance(self, centre, reach=1.0):
        """Distance from the axis of an upright capsule to the nearest triangle.

        Inf beyond reach.
        """
        half_axis = np.array([0, 0, HEIGHT / 2])
        p0, p1 = centre - half_axis, centre + half_axis
        near = np.all((self.low <= p1 + reach) & (self.high >= p0 - reach), axis=1)
        if not near.any():
            return np.inf
        a, b, c, n = self.a[near], self.b[near], self.c[near], self.normal[near]
        best = np.minimum(points_to_triangles(p0, a, b, c), points_to_triangles(p1, a, b, c))
        for s, e in ((a, b), (b, c), (c, a)):
            best = np.minimum(best, segment_to_segments(p0, p1, s, e))
        above, below = ((p0 - a) * n).sum(1), ((p1 - a) * n).sum(1)
        crossed = above * below < 0
        if crossed.any():
            t = above / np.where(crossed, above - below, 1.0)
            pierced = points_to_triangles(p0 + (p1 - p0) * t[:, None], a, b, c)
            best = np.where(crossed & (pierced < 1e-12), 0, best)
        return float(np.sqrt(best.min()))

    def column(self, x, y):
        """Heights and vertical parts of the normals of all surfaces above and below (x, y)."""
        i = np.flatnonzero(
            (self.low[:, 0] <= x) & (self.high[:, 0] >= x) & (self.low[:, 1] <= y) & (self.high[:, 1] >= y)
        )
        p = np.array([x, y, 0.0])

        def turn(s, e):
            return (e[i, 0] - s[i, 0]) * (p[1] - s[i, 1]) - (e[i, 1] - s[i, 1]) * (p[0] - s[i, 0])

        w = [turn(self.a, self.b), turn(self.b, self.c), turn(self.c, self.a)]
        n = self.normal[i]
        hit = (np.min(w, axis=0) >= 0) | (np.max(w, axis=0) <= 0)
        hit &= np.abs(n[:, 2]) > 1e-6
        a, n = self.a[i][hit], n[hit]
        return a[:, 2] - (n[:, 0] * (x - a[:, 0]) + n[:, 1] * (y - a[:, 1])) / n[:, 2], n[:, 2]


# --- starts and displacements ---------------------------------------------------------------------


def displacements(rng):
    """Displacements (CHARACTERS, FRAMES, 3).

    5 m/s on a turning and weaving course, and 5 cm down.
    """
    heading = rng.uniform(0, 2 * np.pi, CHARACTERS)
    rate = rng.uniform(-0.6, 0.6, CHARACTERS)
    amplitude = rng.uniform(0.0, 0.4, CHARACTERS)
    frequency = rng.uniform(0.2, 0.6, CHARACTERS)
    t = np.arange(FRAMES) * DT
    course = heading[:, None] + rate[:, None] * t + amplitude[:, None] * np.sin(2 * np.pi * frequency[:, None] * t)
    d = np.empty((CHARACTERS, FRAMES, 3))
    d[..., 0], d[..., 1], d[..., 2] = np.cos(course) * SPEED * DT, np.sin(course) * SPEED * DT, -DOWN
    return quantise(d, 20)


def starts(rng, soup, pick, count=CHARACTERS, gap=(0.06, 0.25), forbid=None):
    """Centres of capsules a little above a surface, without contacts.

    pick(rng): (x, y, z, normal z).
    """
    found = []
    for _ in range(400 * count):
        spot = pick(rng)
        if spot is None:
            continue
        x, y, z, upright = spot
        centre = quantise([x, y, z + HALF_HEIGHT + RADIUS * (1 / upright - 1) + rng.uniform(*gap)])
        if (forbid is not None and forbid(centre)) or soup.clearance(centre) < CLEARANCE:
            continue
        found.append(centre)
        if len(found) == count:
            return np.array(found)
    raise RuntimeError("cannot place the characters")


# --- the four workloads: (meshes, positions, displacements) ---------------------------------------


def flat():
    rng = np.random.default_rng(1002)
    vertices = np.array([[-100, -100, 0], [100, -100, 0], [100, 100, 0], [-100, 100, 0]], float)
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    positions = starts(rng, Soup(vertices, triangles), lambda r: (*r.uniform(-85, 85, 2), 0.0, 1.0))
    return [(vertices, triangles)], positions, displacements(rng)


def terrain():
    rng = np.random.default_rng(1001)
    n, k = 200, 2 * np.pi
    grid = np.arange(n + 1) - n / 2.0
    x, y = np.meshgrid(grid, grid, indexing="ij")
    z = (
        4.0 * np.sin(k * x / 41) * np.cos(k * y / 37 + 0.7)
        + 1.6 * np.sin(k * x / 17 + 1.1) * np.sin(k * y / 19 + 0.3)
        + 0.35 * np.sin(k * x / 6.1 + k * y / 7.3)
        + 3.0 * np.tanh(1.2 * np.sin(k * (x * 0.8 + y * 0.6) / 53))
    )
    vertices = quantise(np.stack([x, y, z], -1).reshape(-1, 3))
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    a = (i * (n + 1) + j).ravel()
    b, c, d = a + n + 1, a + n + 2, a + 1
    # The two triangles of a cell are adjacent in the list.
    triangles = np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], 1).reshape(-1, 3)
    soup = Soup(vertices, triangles)

    def pick(r):
        px, py = r.uniform(-85, 85, 2)
        height, upright = soup.column(px, py)
        return px, py, float(height.max()), float(upright[height.argmax()])

    positions = starts(rng, soup, pick)
    return [(vertices, triangles)], positions, displacements(rng)


class Boxes:
    """A level of boxes."""

    TRIANGLES = np.array(
        [
            [0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4],
            [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6], [3, 0, 4], [3, 4, 7],
        ]
    )
    CORNERS = np.array(
        [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], float
    )

    def __init__(self):
        self.items = []  # centre, half extents, rotation

    def upright(self, low, high):
        low, high = np.asarray(low, float), np.asarray(high, float)
        self.items.append(((low + high) / 2, (high - low) / 2, np.eye(3)))

    def turned(self, centre, half, rotation):
        self.items.append((np.asarray(centre, float), np.asarray(half, float), rotation))

    def mesh(self):
        vertices = np.concatenate([c + (self.CORNERS * h) @ r.T for c, h, r in self.items])
        return quantise(vertices), np.concatenate([self.TRIANGLES + 8 * i for i in range(len(self.items))])

    def arrays(self):
        return tuple(np.array(column) for column in zip(*self.items, strict=True))


class Tile:
    """Builder of boxes in an 8 m square, rotated by quarter turns."""

    def __init__(self, boxes, x, y, quarter):
        c, s = [(1, 0), (0, 1), (-1, 0), (0, -1)][quarter]
        self.boxes, self.at = boxes, np.array([x, y, 0.0])
        self.rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])

    def box(self, low, high):
        p = np.array([low, high], float) @ self.rotation.T + self.at
        self.boxes.upright(p.min(0), p.max(0))

    def ramp(self, u, v0, v1, rise, sense):
        """Add a board at 30 degrees whose top rises (sense 1) or falls (-1) from (u, 0).

        Return its length.
        """
        angle, thick = np.radians(30.0), 0.5
        c, s = np.cos(angle), np.sin(angle)
        tilt = np.array([[c, 0, -s * sense], [0, 1, 0], [s * sense, 0, c]])
        run = rise / np.tan(angle)
        centre = np.array([u + run / 2, (v0 + v1) / 2, rise / 2]) - tilt @ np.array([0, 0, 1.0]) * thick / 2
        half = [rise / s / 2, (v1 - v0) / 2, thick / 2]
        self.boxes.turned(self.rotation @ centre + self.at, half, self.rotation @ tilt)
        return run


def _corridor(tile, _rng):  # 2 m wide, 2.25 m high
    tile.box([-4, 1, 0], [4, 1.5, 2.25])
    tile.box([-4, -1.5, 0], [4, -1, 2.25])
    tile.box([-4, -1.5, 2.25], [4, 1.5, 2.5])
    tile.box([-0.5, 2.5, 0], [0.5, 4, 3])


def _stairs(tile, _rng):  # 8 steps of 0.25 m, a platform, a ramp down
    for s in range(8):
        tile.box([-4 + 0.375 * s, -2, 0], [-4 + 0.375 * (s + 1), 2, 0.25 * (s + 1)])
    tile.box([-1, -2, 0], [0.5, 2, 2.0])
    tile.ramp(0.5, -2, 2, 2.0, -1)


def _pillars(tile, rng):
    for a in (-2.5, 0, 2.5):
        for b in (-2.5, 0, 2.5):
            w = 0.25 + 0.125 * int(rng.integers(3))
            tile.box([a - w, b - w, 0], [a + w, b + w, 3])


def _low(tile, _rng):  # ceilings: one high enough, one too low; a kerb
    tile.box([-3, -3, 2.0], [3, 0, 2.25])
    tile.box([-3, 0, 1.625], [3, 3, 2.25])
    for a, b in ((-3, -3), (3, -3), (-3, 3), (3, 3)):
        tile.box([a - 0.25, b - 0.25, 0], [a + 0.25, b + 0.25, 2.25])
    tile.box([-1.5, -2.5, 0], [-0.5, -1.0, 0.25])


def _ramp(tile, _rng):  # ramp up, a platform, steps down
    end = -4 + tile.ramp(-4, -1.5, 1.5, 1.5, 1)
    tile.box([end, -1.5, 0], [end + 1.5, 1.5, 1.5])
    for s in range(5):
        tile.box([end + 1.5 + 0.5 * s, -1.5, 0], [end + 2.0 + 0.5 * s, 1.5, 1.5 - 0.25 * (s + 1)])
    tile.box([-4, 3.5, 0], [4, 3.75, 3])


def _room(tile, _rng):  # two doors, two crates
    for y in (-4, 3.75):
        tile.box([-4, y, 0], [-1, y + 0.25, 3])
        tile.box([1, y, 0], [4, y + 0.25, 3])
    tile.box([-4, -4, 0], [-3.75, 4, 3])
    tile.box([3.75, -4, 0], [4, 4, 3])
    tile.box([-1, -4, 2.125], [1, -3.75, 3])
    tile.box([-1, 3.75, 2.125], [1, 4, 3])
    tile.box([-2, -0.5, 0], [-1, 0.5, 0.375])
    tile.box([1, 0, 0], [2, 1, 0.75])


def dungeon():
    rng = np.random.default_rng(1003)
    boxes, side, size = Boxes(), 13, 8.0
    half = side * size / 2
    kinds = [_corridor, _stairs, _pillars, _low, _ramp, _room]
    for i in range(side):
        for j in range(side):
            x, y = -half + (i + 0.5) * size, -half + (j + 0.5) * size
            boxes.upright([x - 4, y - 4, -1], [x + 4, y + 4, 0])
            tile = Tile(boxes, x, y, int(rng.integers(4)))
            kinds[int(rng.integers(len(kinds)))](tile, rng)
    for low, high in (
        ([-half - 1, -half - 1, -1], [-half, half + 1, 5]),
        ([half, -half - 1, -1], [half + 1, half + 1, 5]),
        ([-half, -half - 1, -1], [half, -half, 5]),
        ([-half, half, -1], [half, half + 1, 5]),
    ):
        boxes.upright(low, high)
    vertices, triangles = boxes.mesh()
    soup = Soup(vertices, triangles)

    def pick(r):
        x, y = r.uniform(-half + 1, half - 1, 2)
        z, upright = soup.column(x, y)
        good = (upright > 0.75) & (z > -0.01) & (z < 2.05)
        if not good.any():
            return None
        k = r.choice(np.nonzero(good)[0])
        return x, y, float(z[k]), float(upright[k])

    box_centre, box_half, box_rotation = boxes.arrays()

    def buried(centre):
        points = centre + np.array([[0, 0, 0], [0, 0, -0.5], [0, 0, 0.5]])
        local = np.einsum("bji,pbj->pbi", box_rotation, points[:, None] - box_centre)
        return bool(np.any(np.all(np.abs(local) <= box_half + 0.02, axis=2)))

    positions = starts(rng, soup, pick, gap=(0.05, 0.12), forbid=buried)
    return [(vertices, triangles)], positions, displacements(rng)


def levels_folder():
    """Folder with the third-party levels, or None."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "levels"
    folder = Path(os.environ["PYCCT_LEVELS"]) if "PYCCT_LEVELS" in os.environ else beside
    return folder if all((folder / name).is_file() for name in ("nav_test.obj", "dungeon.obj")) else None


def _read_obj(path):
    """Return vertices, rotated to z up, and the triangles that keep an area when quantised."""
    vertices, triangles = [], []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word = line.split()
        if word[:1] == ["v"]:
            vertices.append([float(x) for x in word[1:4]])
        elif word[:1] == ["f"]:
            i = [int(x.split("/")[0]) for x in word[1:]]
            i = [k - 1 if k > 0 else len(vertices) + k for k in i]
            triangles += [[i[0], i[m], i[m + 1]] for m in range(1, len(i) - 1)]
    v = np.array(vertices)
    v, t = quantise(np.stack([v[:, 0], -v[:, 2], v[:, 1]], -1)), np.array(triangles)
    return v, t[Soup(v, t).area > 1e-6]


def navmesh():
    folder = levels_folder()
    if folder is None:
        return None
    rng = np.random.default_rng(1004)
    first, second = _read_obj(folder / "nav_test.obj"), _read_obj(folder / "dungeon.obj")
    # Side by side, at a whole number of metres.
    shift = np.ceil(first[0][:, 0].max() - second[0][:, 0].min() + 20)
    meshes = [first, (second[0] + [shift, 0, 0], second[1])]
    positions = []
    for vertices, triangles in meshes:
        soup = Soup(vertices, triangles)
        weight = np.where(soup.normal[:, 2] > 0.8, soup.area, 0)
        weight = weight / weight.sum()
        low, high = vertices[:, :2].min(0) + 2, vertices[:, :2].max(0) - 2

        def pick(r, soup=soup, weight=weight, low=low, high=high):
            k = int(r.choice(len(weight), p=weight))
            u, v = r.uniform(size=2)
            if u + v > 1:
                u, v = 1 - u, 1 - v
            p = soup.a[k] + u * (soup.b[k] - soup.a[k]) + v * (soup.c[k] - soup.a[k])
            if (p[:2] < low).any() or (p[:2] > high).any():
                return None
            return p[0], p[1], p[2], soup.normal[k, 2]

        positions.append(starts(rng, soup, pick, count=CHARACTERS // 2, gap=(0.05, 0.12)))
    return meshes, np.concatenate(positions), displacements(rng)


SCENES = {"flat": flat, "terrain": terrain, "dungeon": dungeon, "navmesh": navmesh}


def write(name, folder):
    """Store one workload as folder/name.npz; return None if its level files are missing."""
    made = SCENES[name]()
    if made is None:
        return None
    meshes, positions, moves = made
    arrays = {"positions": positions, "displacements": moves, "dt": DT, "meshes": len(meshes)}
    for k, (vertices, triangles) in enumerate(meshes):
        if not np.array_equal(vertices, vertices.astype(np.float32)):
            raise AssertionError(f"{name}: a vertex is no float32")
        arrays[f"vertices{k}"] = vertices.astype(np.float32)
        arrays[f"triangles{k}"] = triangles.astype(np.uint32)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    return path


def load(path):
    """Return (meshes, positions (n, 3), displacements (n, T, 3), dt)."""
    with np.load(path) as z:
        meshes = [(z[f"vertices{k}"], z[f"triangles{k}"]) for k in range(int(z["meshes"]))]
        return meshes, z["positions"], z["displacements"], float(z["dt"])
