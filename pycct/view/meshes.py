"""Shapes as triangles."""
from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, Box, Capsule, ConvexHull, Heightfield, Mesh, Plane, Shape, Sphere, Triangle

__all__ = ["Triangles", "capsule", "placed", "triangles_of", "turned"]

# (k, 3, 3): corners of each triangle, metres.
Triangles = NDArray[np.float64]
PLANE_HALF = 50.0  # metres of a plane that are drawn to each side
_AROUND, _RINGS = 16, 6


def triangles_of(shape: Shape) -> Triangles:
    """Triangles of a shape before it is placed."""
    if isinstance(shape, Mesh):
        return np.asarray(shape.vertices, float)[np.asarray(shape.triangles)]
    if isinstance(shape, Heightfield):
        return triangles_of(shape.to_mesh())
    if isinstance(shape, Box):
        return _box(shape.half_extents)
    if isinstance(shape, Plane):
        return _plane(shape)
    if isinstance(shape, Triangle):
        return np.array([shape.vertices], float)
    if isinstance(shape, Sphere):
        return capsule(shape.radius, 0.0)
    if isinstance(shape, Capsule):
        return capsule(shape.radius, shape.height)
    if isinstance(shape, ConvexHull):
        return np.asarray(shape.vertices, float)[np.asarray(shape.tables.triangles)]
    raise TypeError(f"shape must be a shape of pycct, not {type(shape).__name__}")


def capsule(radius: float, height: float) -> Triangles:
    """A capsule around the origin along z; ``height`` is the distance between its two centres."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, 2 * _RINGS)
    rings = [(radius * math.cos(a), radius * math.sin(a) + math.copysign(height / 2, a)) for a in angles]
    turn = np.linspace(0.0, 2 * math.pi, _AROUND + 1)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    out = []
    for (r0, z0), (r1, z1) in pairwise(rings):
        for a, b in pairwise(circle):
            p, q = (*(r0 * a), z0), (*(r0 * b), z0)
            s, t = (*(r1 * b), z1), (*(r1 * a), z1)
            out += [(p, q, s), (p, s, t)]
    found = np.array(out)
    area = np.linalg.norm(np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0]), axis=1)
    return found[area > 1e-12 * max(radius, 1e-6) ** 2]


def turned(rotation: tuple[float, ...]) -> NDArray[np.float64]:
    """The matrix of a quaternion (x, y, z, w)."""
    x, y, z, w = rotation
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])


def placed(actor: Actor) -> Triangles:
    """Triangles of an actor where it is."""
    return triangles_of(actor.shape) * np.array(actor.scale) @ turned(actor.rotation).T + np.array(actor.position)


def _quads(corners: NDArray[np.float64], faces: list[tuple[int, int, int, int]]) -> Triangles:
    return np.array([corners[list(t)] for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])


def _box(half: tuple[float, float, float]) -> Triangles:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(half)
    return _quads(corners, [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])


def _plane(plane: Plane) -> Triangles:
    n = np.array(plane.normal)
    aside = np.cross(n, (1.0, 0.0, 0.0) if abs(n[0]) < 0.9 else (0.0, 1.0, 0.0))
    aside *= PLANE_HALF / np.linalg.norm(aside)
    ahead = np.cross(n, aside)
    middle = n * plane.offset
    corners = np.array([middle - aside - ahead, middle + aside - ahead, middle + aside + ahead, middle - aside + ahead])
    return _quads(corners, [(0, 1, 2, 3)])
