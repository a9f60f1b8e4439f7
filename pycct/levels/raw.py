"""The contents of a level file before they become shapes, and the two ways to arrange them."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Budget", "Flat", "RawGeometry", "RawLevel", "RawNode", "RawPlacement", "Selection", "flatten", "of_nodes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

# Memory that a file may take, as a multiple of ``max_bytes``. An index of one byte grows
# eight times.
UNPACKED = 8
# Bytes of a vertex, and of a triangle with its node and material.
VERTEX_BYTES = 24
TRIANGLE_BYTES = 20
# Bytes of a name in a table.
NAME_BYTES = 200
# The largest number of vertices and of triangles: indices have 32 bits.
MOST = 2**31 - 1


class Budget:
    """Memory that is left for a file; `take` refuses a file before the memory is used."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.left = UNPACKED * max_bytes

    def take(self, vertices: int = 0, triangles: int = 0, names: int = 0, numbers: int = 0) -> None:
        """Count memory in; numbers have eight bytes."""
        self.left -= VERTEX_BYTES * vertices + TRIANGLE_BYTES * triangles + NAME_BYTES * names + 8 * numbers
        if self.left < 0 or vertices > MOST or triangles > MOST:
            raise ValueError(f"its contents take more than {UNPACKED} times max_bytes={self.max_bytes} in memory")


class Selection:
    """The patterns of ``nodes=``; without patterns every name matches."""

    def __init__(self, patterns: str | Sequence[str] | None) -> None:
        if isinstance(patterns, str):
            patterns = (patterns,)
        elif patterns is not None:
            if not isinstance(patterns, (list, tuple, set, frozenset)):
                raise TypeError(f"nodes must be a str or a list of them, not {type(patterns).__name__}")
            for pattern in patterns:
                if not isinstance(pattern, str):
                    raise TypeError(f"nodes must hold str only, not {type(pattern).__name__}")
            if not patterns:
                raise ValueError("nodes must hold at least one pattern")
        self.patterns: tuple[str, ...] | None = None if patterns is None else tuple(patterns)

    def matches(self, name: str) -> bool:
        """True if a pattern equals the name or matches it."""
        if self.patterns is None:
            return True
        return any(name == p or fnmatchcase(name, p) for p in self.patterns)


@dataclass
class RawNode:
    """One node: its name, its extras, and whether ``nodes=`` selects it."""

    name: str
    extras: Any = None
    selected: bool = True


@dataclass
class RawGeometry:
    """Triangles over one array of vertices.

    `material` contains one index a triangle, or is None without materials. `node` contains one
    index a triangle if the triangles of several nodes share the vertices (OBJ).
    """

    vertices: Floats
    triangles: Ints
    material: Ints | None = None
    node: Ints | None = None


@dataclass
class RawPlacement:
    """One geometry at one place.

    `matrix` is None for the identity. `instance` counts the places of one node.
    """

    geometry: RawGeometry
    node: int
    matrix: Floats | None = None
    instance: int | None = None


@dataclass
class RawLevel:
    """The contents of a file, in its own axes and units."""

    nodes: list[RawNode]
    placements: list[RawPlacement]
    budget: Budget
    materials: list[str] = field(default_factory=list)
    double_sided: list[bool] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Flat:
    """All selected triangles over one array of vertices, each with the index of its node."""

    vertices: Floats
    triangles: Ints
    material: Ints | None
    node: Ints


def is_checked(vertices: Floats, triangles: NDArray[np.integer[Any]]) -> None:
    """Raise ValueError unless every vertex is finite and every corner of a triangle exists."""
    if not np.isfinite(vertices).all():
        raise ValueError("a vertex or node transform is not finite")
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(vertices)):
        raise ValueError("a triangle names a vertex that is not there; the file is broken or truncated")


def compacted(vertices: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """Without the vertices that no triangle uses; linear in the triangles, not in the vertices."""
    used, corners = np.unique(triangles, return_inverse=True)
    return vertices[used], corners.reshape(-1, 3).astype(np.int32)


def transformed(vertices: Floats, triangles: Ints, matrix: Floats | None) -> tuple[Floats, Ints]:
    """At their place; a mirroring matrix does not turn triangles inside out."""
    if matrix is None:
        return vertices, triangles
    linear = matrix[:3, :3]
    with np.errstate(all="ignore"):
        vertices = vertices @ linear.T + matrix[:3, 3]
        mirrored = float(np.linalg.det(linear)) < 0.0
    return vertices, triangles[:, ::-1] if mirrored else triangles


def of_nodes(level: RawLevel) -> list[RawPlacement]:
    """The selected placements, one node each."""
    found = []
    for place in level.placements:
        shape = place.geometry
        if shape.node is None:
            if level.nodes[place.node].selected and len(shape.triangles):
                found.append(place)
            continue
        order = np.argsort(shape.node, kind="stable")
        nodes = shape.node[order]
        for part in np.split(order, np.flatnonzero(nodes[1:] != nodes[:-1]) + 1) if len(nodes) else ():
            node = int(shape.node[part[0]])
            if level.nodes[node].selected:
                level.budget.take(vertices=min(len(shape.vertices), 3 * len(part)), triangles=len(part))
                vertices, triangles = compacted(shape.vertices, shape.triangles[part])
                material = None if shape.material is None else shape.material[part]
                found.append(RawPlacement(RawGeometry(vertices, triangles, material), node, place.matrix))
    return found


def flatten(level: RawLevel) -> Flat:
    """All selected triangles, each with the vertices at its place."""
    whole = all(n.selected for n in level.nodes)
    vertices: list[Floats] = []
    triangles: list[Ints] = []
    materials: list[Ints] = []
    nodes: list[Ints] = []
    count = 0
    for place in level.placements:
        shape = place.geometry
        v, t, node, material = shape.vertices, shape.triangles, shape.node, shape.material
        if node is None:
            if not level.nodes[place.node].selected:
                continue
            node = np.full(len(t), place.node, np.int32)
        elif not whole:
            keep = np.array([n.selected for n in level.nodes], bool)[node]
            t, node = t[keep], node[keep]
            material = None if material is None else material[keep]
            v, t = compacted(v, t)
        if not len(t):
            continue
        v, t = transformed(v, t, place.matrix)
        if count + len(v) > MOST:
            raise ValueError("it has more vertices than a mesh can number")
        vertices.append(v)
        triangles.append(t + np.int32(count) if count else t)
        nodes.append(node)
        materials.append(np.full(len(t), -1, np.int32) if material is None else material)
        count += len(v)
    if not triangles:
        raise ValueError("no triangles in it; the file is broken, truncated or no level")
    return Flat(
        joined(vertices), joined(triangles), joined(materials) if level.materials else None, joined(nodes))


def joined(parts: list[Any]) -> Any:
    """One array of several, without a copy of a single one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def decomposed(matrix: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Position, quaternion (x, y, z, w) and scale of a matrix; None if it shears or flattens."""
    linear = matrix[:3, :3]
    with np.errstate(all="ignore"):
        scale = np.sqrt((linear * linear).sum(0))
        if not np.isfinite(scale).all() or not (scale > 1e-9 * scale.max()).all() or scale.max() == 0.0:
            return None
        turn = linear / scale
        if np.abs(turn.T @ turn - np.eye(3)).max() > 1e-6:
            return None
    if np.linalg.det(turn) < 0.0:
        scale[0] = -scale[0]
        turn[:, 0] = -turn[:, 0]
    return matrix[:3, 3].copy(), quaternion(turn), scale


def quaternion(turn: Floats) -> Floats:
    """The quaternion (x, y, z, w) of a rotation matrix, from its largest part."""
    m = turn.tolist()
    trace = m[0][0] + m[1][1] + m[2][2]
    if trace > 0.0:
        s = 2.0 * math.sqrt(1.0 + trace)
        q = [(m[2][1] - m[1][2]) / s, (m[0][2] - m[2][0]) / s, (m[1][0] - m[0][1]) / s, 0.25 * s]
    else:
        i = max(range(3), key=lambda k: m[k][k])
        j, k = (i + 1) % 3, (i + 2) % 3
        s = 2.0 * math.sqrt(max(0.0, 1.0 + m[i][i] - m[j][j] - m[k][k]))
        q = [0.0, 0.0, 0.0, (m[k][j] - m[j][k]) / s]
        q[i], q[j], q[k] = 0.25 * s, (m[j][i] + m[i][j]) / s, (m[k][i] + m[i][k]) / s
    found = np.array(q)
    return found / math.sqrt(float((found * found).sum()))
