"""Batches of moving capsules and their targets, from plain to adversarial. Arrays are (n, 3)."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kernel_oracle as oracle
import numpy as np

from pycct import kernels as k

KINDS = ("triangle", "sphere", "capsule", "box", "plane", "hull", "flat hull")

# A cube of half extents 1 and a regular tetrahedron, closed and outward.
_CORNERS = np.array([[x, y, z] for z in (-1.0, 1) for y in (-1.0, 1) for x in (-1.0, 1)])
CUBE = _CORNERS[[0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7,
                 4, 7, 6]].reshape(12, 3, 3)
TETRAHEDRON = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])[
    [0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2]].reshape(4, 3, 3)


@dataclass
class Cases:
    """One batch.

    distance(P0, P1), of (3, n) arrays, is that of a segment to the target, minus its radius.
    """

    p0: np.ndarray
    p1: np.ndarray
    radius: np.ndarray
    motion: np.ndarray
    target: Any
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray]
    size: np.ndarray        # size of the target
    reach: np.ndarray       # distance from the origin

    @property
    def capsule(self):
        return k.CapsuleAt(self.p0, self.p1, self.radius)

    @property
    def tolerance(self):
        """1e-9 of the sizes, plus 1e-14 of the path for rounding."""
        scale = np.maximum.reduce([self.radius, length(self.p1 - self.p0), self.size])
        return 1e-9 * scale + 1e-14 * np.maximum.reduce([length(self.p0), length(self.motion), self.reach])

    def gap(self, t):
        """Distance between the surfaces after the share t of the motion."""
        at = self.motion.T * t
        return self.distance(self.p0.T + at, self.p1.T + at) - self.radius


def length(v):
    return np.sqrt((v * v).sum(-1))


def unit(v):
    return v / np.maximum(length(v), 1e-300)[..., None]


def no_triangle(a, b, c):
    """Which triangles are thin enough for the rules to ignore them (RULES 3)."""
    longest = np.maximum.reduce([length(b - a), length(c - b), length(a - c)])
    return length(np.cross(b - a, c - a)) <= 1.001e-12 * longest**2


def log_uniform(rng, low, high, n):
    return 10.0 ** rng.uniform(np.log10(low), np.log10(high), n)


def directions(rng, n):
    return unit(rng.normal(size=(n, 3)))


def across(rng, d):
    """Unit vectors perpendicular to d."""
    return unit(np.cross(d, directions(rng, len(d))))


def choose(rng, n, *shares):
    """An index per row, drawn with the given shares."""
    return rng.choice(len(shares), n, p=np.array(shares, float) / sum(shares))


def pick(which, *options):
    return np.choose(which[:, None], options)


def triangles(rng, n):
    """Any shape, (3, n, 3): round ones, slivers down to 1e-9 of their length."""
    v = rng.normal(size=(3, n, 3))
    sliver = rng.random(n) < 0.2
    thin = log_uniform(rng, 1e-9, 1e-1, n)[:, None]
    third = v[0] + (v[1] - v[0]) * rng.uniform(-0.5, 1.5, (n, 1)) + (v[2] - v[0]) * thin
    v[2] = np.where(sliver[:, None], third, v[2])
    return v


def weights_on(rng, n):
    """Barycentric weights on a vertex, an edge or anywhere in a triangle."""
    w = rng.dirichlet((1, 1, 1), n)
    feature = choose(rng, n, 1, 1, 1)
    w[feature == 1, 2] = 0
    w = np.where((feature == 0)[:, None], np.eye(3)[rng.integers(3, size=n)], w)
    return w / w.sum(1)[:, None]


def approaches(rng, n, edge, contact, normal):
    """Capsules that approach a contact: plainly, grazing, or at a slope of down to 1e-9.

    edge: unit directions to be parallel to. -> p0, p1, radius, motion
    """
    radius = log_uniform(rng, 1e-2, 1e1, n)
    tangent = across(rng, normal)
    slope = log_uniform(rng, 1e-9, 1, n)[:, None]
    d = unit(pick(choose(rng, n, 4, 4, 1, 1, 1), directions(rng, n), tangent - normal * slope, tangent, edge,
                  edge - normal * slope))
    axis = pick(choose(rng, n, 6, 2, 2, 2, 1), directions(rng, n), d, edge, tangent, directions(rng, n) * slope + edge)
    axis = axis * (log_uniform(rng, 1e-3, 1e1, n) * (rng.random(n) < 0.9))[:, None]
    # The point of the axis over the contact, and its height.
    share = pick(choose(rng, n, 1, 1, 1), np.zeros((n, 1)), np.ones((n, 1)), rng.random((n, 1)))
    lift = pick(choose(rng, n, 3, 2, 2), np.ones((n, 1)), 1 + rng.normal(size=(n, 1)) * slope,
                rng.normal(size=(n, 1)) * 2)
    back = log_uniform(rng, 1e-3, 1e2, n) * (rng.random(n) < 0.95)
    back = np.where(rng.random(n) < 0.05, 1e6, back)[:, None]
    p0 = contact + normal * radius[:, None] * lift - axis * share - d * back
    return p0, p0 + axis, radius, d * (back + log_uniform(rng, 1e-3, 1e1, n)[:, None])


def snapped(rng, n, *arrays):
    """Snap some rows to a coarse grid, so that shapes meet exactly."""
    grid = pick(choose(rng, n, 3, 1, 1), *(np.full((n, 1), g) for g in (0, 0.25, 1.0)))
    with np.errstate(all="ignore"):
        return [np.where(grid > 0, np.round(a / grid) * grid, a) for a in arrays]


def scaled(rng, n, *arrays):
    """Each row times 1, or times anything from 1e-9 to 1e6."""
    factor = np.where(rng.random(n) < 0.5, 1, log_uniform(rng, 1e-9, 1e6, n))
    return [a * (factor[:, None] if a.ndim == 2 else factor) for a in arrays]


def rotations(rng, n):
    q = np.where(rng.random((n, 1)) < 0.5, rng.normal(size=(n, 4)), np.eye(4)[rng.integers(4, size=n)])
    return unit(q)


def _triangle(rng, n):
    v = triangles(rng, n)
    normal = unit(np.cross(v[1] - v[0], v[2] - v[0]))
    contact = np.einsum("nk,knd->nd", weights_on(rng, n), v)
    p0, p1, radius, motion = approaches(rng, n, unit(v[1] - v[0]), contact,
                                        pick(choose(rng, n, 2, 1), normal, directions(rng, n)))
    p0, p1, motion, *v = snapped(rng, n, p0, p1, motion, *v)
    p0, p1, radius, motion, *v = scaled(rng, n, p0, p1, radius, motion, *v)
    a, b, c = (x.T for x in v)
    size = np.maximum.reduce([length(v[1] - v[0]), length(v[2] - v[0]), length(v[2] - v[1])])
    return Cases(p0, p1, radius, motion, k.TriangleAt(*v),
                 lambda x, y: oracle.segment_triangle(x, y, a, b, c), size, length(v[0]))


def _round(rng, n, sphere):
    q0 = rng.normal(size=(n, 3))
    edge = directions(rng, n)
    span = log_uniform(rng, 1e-3, 10, n) * (rng.random(n) < 0.9) * (not sphere)
    q1 = q0 + edge * span[:, None]
    other = log_uniform(rng, 1e-3, 10, n) * (rng.random(n) < 0.8)
    share = pick(choose(rng, n, 1, 1, 1), np.zeros((n, 1)), np.ones((n, 1)), rng.random((n, 1)))
    normal = pick(choose(rng, n, 2, 1), across(rng, edge), directions(rng, n))
    p0, p1, radius, motion = approaches(rng, n, edge, q0 + (q1 - q0) * share + normal * other[:, None], normal)
    p0, p1, motion, q0, q1 = snapped(rng, n, p0, p1, motion, q0, q1)
    p0, p1, radius, motion, q0, q1, other = scaled(rng, n, p0, p1, radius, motion, q0, q1, other)
    return Cases(p0, p1, radius, motion, k.SphereAt(q0, other) if sphere else k.CapsuleAt(q0, q1, other),
                 lambda x, y: oracle.segment_segment(x, y, q0.T, q1.T) - other,
                 np.maximum(length(q1 - q0), other), length(q0))


def _plane(rng, n):
    normal = pick(choose(rng, n, 1, 1), directions(rng, n), np.eye(3)[rng.integers(3, size=n)])
    offset = rng.normal(size=n)
    p0, p1, radius, motion = approaches(rng, n, across(rng, normal), normal * offset[:, None], normal)
    p0, p1, radius, motion, offset = scaled(rng, n, p0, p1, radius, motion, offset)
    return Cases(p0, p1, radius, motion, k.PlaneAt(normal, offset),
                 lambda x, y: np.minimum(oracle.dot(normal.T, x), oracle.dot(normal.T, y)) - offset,
                 abs(offset), abs(offset))


def _solid(rng, n, surface):
    """surface None: boxes."""
    factor = np.ones(n)
    half = np.ones((n, 3))
    if surface is None:
        half = pick(choose(rng, n, 2, 1, 1), log_uniform(rng, 1e-2, 3, (n, 3)), half,
                    rng.integers(1, 8, (n, 3)) / 4)
    faces = (CUBE if surface is None else surface)[rng.integers(12 if surface is None else len(surface), size=n)]
    faces = faces * half[:, None]
    normal = unit(np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0]))
    contact = np.einsum("nk,nkd->nd", weights_on(rng, n), faces)
    contact = contact * np.where(rng.random(n) < 0.15, rng.random(n), 1)[:, None]
    p0, p1, radius, motion = approaches(rng, n, unit(faces[:, 1] - faces[:, 0]), contact,
                                        pick(choose(rng, n, 2, 1), normal, directions(rng, n)))
    p0, p1, motion = snapped(rng, n, p0, p1, motion)
    if surface is None:
        p0, p1, radius, motion, half, factor = scaled(rng, n, p0, p1, radius, motion, half, factor)
    q = rotations(rng, n)
    position = rng.normal(size=(n, 3)) * (factor * (rng.random(n) < 0.6))[:, None]
    p0, p1 = (oracle.rotate(q.T, p.T).T + position for p in (p0, p1))
    motion = oracle.rotate(q.T, motion.T).T

    def distance(x, y):
        x, y = (oracle.unrotate(q.T, p - position.T) for p in (x, y))
        return oracle.segment_box(x, y, half.T) if surface is None else oracle.segment_polyhedron(x, y, surface)

    target = k.BoxAt(half, position, q) if surface is None else k.HullAt(surface, position, q)
    return Cases(p0, p1, radius, motion, target, distance, length(half), length(position))


def cases(kind, seed, n):
    rng = np.random.default_rng(seed)
    if kind == "triangle":
        return _triangle(rng, n)
    if kind in ("sphere", "capsule"):
        return _round(rng, n, kind == "sphere")
    if kind == "plane":
        return _plane(rng, n)
    if kind == "box":
        return _solid(rng, n, None)
    if kind == "hull":
        return _solid(rng, n, TETRAHEDRON)
    return _solid(rng, n, CUBE * [1, 1, 1e-4])
