"""Random and adversarial pairs of convex shapes, and their geometry in plain NumPy.

The module does not call the code for distances or manifolds, which the tests compare with it.
"""
import itertools

import numpy as np

from pycct.convex.hull import HullTables
from pycct.shapes.primitives import Box, Capsule, ConvexHull, Sphere, Triangle

KINDS = ("sphere", "capsule", "box", "triangle", "hull")
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))

RIGHT_ANGLES = [np.array(q) / np.linalg.norm(q) for q in [
    (0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0),
    (1, 1, 1, 1), (0, 1, 1, 0), (1, 0, 1, 0)]]


def quaternion(rng):
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def matrix(q):
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def product(p, q):
    """The rotation q followed by the rotation p."""
    v = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.append(v, p[3] * q[3] - p[:3] @ q[:3])


def core(shape):
    """Corners of the core, in the shape's frame, and the radius around it."""
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, Capsule):
        return np.array([(0, 0, -shape.height / 2), (0, 0, shape.height / 2)]), shape.radius
    if isinstance(shape, Box):
        return np.array(list(itertools.product((-1, 1), repeat=3))) * shape.half_extents, 0.0
    if isinstance(shape, Triangle):
        return np.array(shape.vertices), 0.0
    return shape.vertices, 0.0


def same_thing(a, pose_a, b, pose_b):
    """Whether both shapes and poses are equal, so that a swap changes nothing visible."""
    return (type(a) is type(b) and np.array_equal(core(a)[0], core(b)[0]) and core(a)[1] == core(b)[1]
            and np.array_equal(pose_a[0], pose_b[0]) and np.array_equal(pose_a[1], pose_b[1]))


class Solid:
    """A shape: corners, faces and edges, found from the corners alone.

    `at` places it in the world.
    """

    def __init__(self, shape):
        local, self.radius = core(shape)
        t = HullTables(local)
        self.dimension = t.dimension
        self.corners = t.vertices
        self.normals = t.planes[:, :3]
        self.edges = self.corners[t.edges[:, 1]] - self.corners[t.edges[:, 0]]
        self.size = t.extent + 2 * self.radius
        self.position = np.zeros(3)
        self.offsets = t.planes[:, 3]
        self.rim = np.zeros((0, 3))
        self.rim_at = np.zeros((0, 3))
        if t.dimension == 2:
            self.rim_at = self.corners[list(t.faces[0])]
            rim = np.cross(np.roll(self.rim_at, -1, axis=0) - self.rim_at, self.normals[0])
            self.rim = rim / np.linalg.norm(rim, axis=1)[:, None]

    def at(self, pose):
        position, rotation = pose
        other = object.__new__(Solid)
        r = matrix(rotation).T
        other.dimension, other.radius, other.size, other.offsets = self.dimension, self.radius, self.size, self.offsets
        other.position = np.asarray(position, dtype=float)
        # Corners are relative to the position, so that distance from the origin costs no digits.
        other.corners, other.normals, other.edges = self.corners @ r, self.normals @ r, self.edges @ r
        other.rim, other.rim_at = self.rim @ r, self.rim_at @ r
        return other

    @property
    def vertices(self):
        return self.corners + self.position

    def reach(self, n, origin):
        """Largest extent along n from a point, radius included."""
        return (self.corners @ n).max() + (self.position - origin) @ n + self.radius

    def core_excess(self, p):
        """Distance of p outside of the core, 0 inside; a lower bound beside edges of polytopes."""
        p = p - self.position
        if self.dimension == 3:
            return max(0.0, (self.normals @ p - self.offsets).max())
        if self.dimension == 0:
            return np.linalg.norm(p - self.corners[0])
        if self.dimension == 1:
            a, d = self.corners[0], self.edges[0]
            return np.linalg.norm(p - a - np.clip((p - a) @ d / (d @ d), 0, 1) * d)
        return max(abs(self.normals[0] @ p - self.offsets[0]), ((p - self.rim_at) * self.rim).sum(axis=1).max())

    def off_surface(self, p):
        """Distance of p from the surface of rounded shapes; distance outside of polytopes."""
        if self.radius > 0:
            return abs(self.core_excess(p) - self.radius)
        return self.core_excess(p)


def least_depth(a, b):
    """Depth of two overlapping solids, from every face and every pair of edges."""
    axes = [a.normals, -a.normals, b.normals, -b.normals]
    if len(a.edges) and len(b.edges):
        n = np.cross(a.edges[:, None], b.edges[None]).reshape(-1, 3)
        length = np.linalg.norm(n, axis=1)
        keep = length > 1e-9 * length.max()
        n = n[keep] / length[keep][:, None]
        axes += [n, -n]
    axes = np.concatenate(axes)
    shift = b.position - a.position
    width = (b.corners @ axes.T).max(axis=0) + shift @ axes.T - (a.corners @ axes.T).min(axis=0)
    return width.min() + a.radius + b.radius


def random_shape(rng, kind, size=1.0):
    if kind == "sphere":
        return Sphere(size * rng.uniform(0.1, 1))
    if kind == "capsule":
        return Capsule(size * rng.uniform(0.1, 1), size * rng.choice([0.0, rng.uniform(0.1, 2), 2.0]))
    if kind == "box":
        return Box(size * rng.choice([1.0, rng.uniform(0.01, 1)], size=3) * rng.uniform(0.1, 1))
    if kind == "triangle":
        p = size * rng.uniform(-1, 1, size=(3, 3))
        k = rng.integers(8)
        if k == 0:
            p[2] = p[0] + (p[1] - p[0]) * rng.uniform(-1, 2)      # no area
        elif k == 1:
            p[2] = p[1] = p[0]
        elif k == 2:
            p = size * np.eye(3)[rng.permutation(3)]
        return Triangle(*p)
    k = rng.integers(6)
    if k == 0:
        points = np.array(list(itertools.product((-1, 1), repeat=3))) * rng.uniform(0.1, 1, size=3)
    elif k == 1:
        m = rng.integers(3, 9)
        angle = np.arange(m) * 2 * np.pi / m
        points = np.concatenate([np.c_[np.cos(angle), np.sin(angle), np.full(m, z)] for z in (-0.5, 0.5)])
    elif k == 2:
        points = rng.normal(size=(rng.integers(1, 4), 3))
    else:
        points = rng.normal(size=(rng.integers(4, 33), 3))
        points /= np.linalg.norm(points, axis=1)[:, None]
    hull = ConvexHull(size * points)
    k = rng.integers(6)
    if k == 0:
        hull = hull.scaled(rng.uniform(0.2, 2, size=3) * rng.choice([-1, 1], size=3))
    elif k == 1:
        hull = hull.scaled(rng.uniform(0.2, 2, size=3) * rng.choice([0, 1], size=3))
    return hull


class Cases:
    """Endless supply of pairs from a pool of shapes.

    Apart, grazing, deep, aligned, tiny and huge.
    """

    def __init__(self, seed, n_shapes=10):
        self.rng = np.random.default_rng(seed)
        self.pool = {}
        for kind in KINDS:
            for size in (1.0, 1e-3, 1e3):
                for factor in (1.0, 0.01, 100.0):
                    shapes = [random_shape(self.rng, kind, size * factor) for _ in range(n_shapes)]
                    self.pool[kind, size, factor] = [(s, Solid(s)) for s in shapes]

    def pair(self, kind_a, kind_b):
        """Two (shape, solid, pose)."""
        rng = self.rng
        size = (1.0, 1.0, 1.0, 1e-3, 1e3)[rng.integers(5)]
        factor = (1.0, 1.0, 1.0, 1.0, 0.01, 100.0)[rng.integers(6)]
        if rng.random() < 0.5:
            kind_a, kind_b = kind_b, kind_a
        pool_a, pool_b = self.pool[kind_a, size, 1.0], self.pool[kind_b, size, factor]
        a, solid_a = pool_a[rng.integers(len(pool_a))]
        b, solid_b = pool_b[rng.integers(len(pool_b))]
        aligned = rng.random() < 0.3
        qa = RIGHT_ANGLES[rng.integers(10)] if aligned else quaternion(rng)
        qb = RIGHT_ANGLES[rng.integers(10)] if aligned else quaternion(rng)
        if rng.random() < 0.1:
            qb = qa
        where = rng.uniform(-10, 10, size=3) * size
        offset = rng.normal(size=3)
        offset *= (0.0, 0.1, 0.5, 1.0, 2.0)[rng.integers(5)] * size * max(1.0, factor) / np.linalg.norm(offset)
        if aligned and rng.random() < 0.5:
            # Face on face, edge on edge, corner on corner: whole multiples of the sizes.
            half = np.array(a.half_extents if isinstance(a, Box) else [size] * 3)
            offset = half * rng.integers(-2, 3, size=3)
        pa, pb = (where, qa), (where + offset, qb)
        return (a, solid_a.at(pa), pa), (b, solid_b.at(pb), pb)
