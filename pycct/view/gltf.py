"""Animated glTF 2.0 in one binary file."""
from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct.record import Recording
from pycct.view.meshes import Triangles, capsule
from pycct.view.tracks import Tracks, sample

__all__ = ["COLOURS", "to_glb"]

# Eight hues that stay apart, then level, steep parts of it, and what moves; linear RGB.
COLOURS = ((0.003, 0.159, 0.451), (0.694, 0.114, 0.001), (0.011, 0.255, 0.107), (0.451, 0.003, 0.051),
           (0.198, 0.05, 0.352), (0.254, 0.102, 0.006), (0.539, 0.034, 0.242), (0.005, 0.275, 0.342))
_LEVEL, _STEEP, _MOVING = (0.6, 0.55, 0.45), (0.62, 0.27, 0.24), (0.35, 0.42, 0.55)


class _Buffer:
    """The binary part, with its accessors."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, array: NDArray[Any], target: int | None = None) -> int:
        """Append an array (n,), (n, 3) or (n, 4) of float32; its accessor's number."""
        array = np.ascontiguousarray(array, "<f4")
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": array.nbytes}
        if target is not None:
            view["target"] = target
        self.views.append(view)
        kind = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[1 if array.ndim == 1 else array.shape[1]]
        flat = array.reshape(len(array), -1)
        self.accessors.append({"bufferView": len(self.views) - 1, "componentType": 5126, "count": len(array),
                               "type": kind, "min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()})
        self.data += array.tobytes()
        return len(self.accessors) - 1


def to_glb(recording: Recording | Tracks, path: str | os.PathLike[str], fps: float = 60.0) -> None:
    """Write an animated glTF: the level as a mesh, capsules and moving actors as nodes.

    Parameters
    ----------
    recording : Recording or Tracks
        What to show.
    path : str or path-like
        File to write, with the suffix ``.glb``.
    fps : float
        Ticks per second.

    Notes
    -----
    glTF has y up: the root node turns the z axis there. A character that does not exist at a time
    has the scale 0.
    """
    tracks = recording if isinstance(recording, Tracks) else sample(recording, fps)
    buffer = _Buffer()
    materials = [_material(c) for c in (*COLOURS, _LEVEL, _STEEP, _MOVING)]
    meshes: list[dict[str, Any]] = []
    turn = -(0.5**0.5)
    nodes: list[dict[str, Any]] = [{"name": "pycct", "rotation": [turn, 0, 0, -turn], "children": []}]
    channels: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    times = buffer.add(tracks.times)
    steep = tracks.steep()
    parts = [(tracks.level[~steep], 8), (tracks.level[steep], 9)]
    primitives = [_primitive(buffer, t, m) for t, m in parts if len(t)]
    if primitives:
        meshes.append({"name": "level", "primitives": primitives})
        _node(nodes, {"name": "level", "mesh": 0})

    def animate(node: int, path: str, values: NDArray[Any], interpolation: str = "LINEAR") -> None:
        samplers.append({"input": times, "output": buffer.add(values), "interpolation": interpolation})
        channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})

    def move(name: str, mesh: int, positions: NDArray[Any], rotations: NDArray[Any] | None = None) -> None:
        there = np.isfinite(positions[:, 0])
        known = _filled(positions, there)
        node = _node(nodes, {"name": name, "mesh": mesh, "translation": known[0].tolist()})
        if len(known) > 1:
            animate(node, "translation", known)
            if rotations is not None:
                animate(node, "rotation", _filled(rotations, there))
            if not there.all():
                animate(node, "scale", np.repeat(there[:, None], 3, axis=1), "STEP")

    shapes: dict[tuple[float, float, int], int] = {}
    geometry: dict[tuple[float, float], dict[str, Any]] = {}
    for k, id in enumerate(tracks.ids.tolist()):
        size = (float(tracks.radii[k]), float(tracks.heights[k]))
        key = (*size, k % len(COLOURS))
        if key not in shapes:
            if size not in geometry:
                geometry[size] = _primitive(buffer, capsule(*size), 0)
            meshes.append({"name": f"capsule {size[0]:g} {size[1]:g}",
                           "primitives": [{**geometry[size], "material": key[2]}]})
            shapes[key] = len(meshes) - 1
        move(f"character {id}", shapes[key], tracks.positions[:, k])
    for k, mover in enumerate(tracks.movers):
        meshes.append({"name": f"moving {k}", "primitives": [_primitive(buffer, mover.triangles, 10)]})
        move(f"moving {k}", len(meshes) - 1, mover.positions, mover.rotations)

    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "pycct"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
        "materials": materials, "accessors": buffer.accessors, "bufferViews": buffer.views,
        "buffers": [{"byteLength": len(buffer.data)}],
    }
    if meshes:
        document["meshes"] = meshes
    if not nodes[0]["children"]:
        del nodes[0]["children"]
    if channels:
        document["animations"] = [{"name": "walk", "channels": channels, "samplers": samplers}]
    _write(path, document, buffer.data)


def _write(path: str | os.PathLike[str], document: dict[str, Any], data: bytearray) -> None:
    """Write the two parts of a binary glTF."""
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    size = 12 + 8 + len(text) + 8 + len(data)
    Path(path).write_bytes(b"".join((
        struct.pack("<4sII", b"glTF", 2, size), struct.pack("<I4s", len(text), b"JSON"), text,
        struct.pack("<I4s", len(data), b"BIN\0"), data,
    )))


def _material(colour: tuple[float, float, float]) -> dict[str, Any]:
    return {"pbrMetallicRoughness": {"baseColorFactor": [*colour, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.9},
            "doubleSided": True}


def _node(nodes: list[dict[str, Any]], node: dict[str, Any]) -> int:
    nodes.append(node)
    nodes[0]["children"].append(len(nodes) - 1)
    return len(nodes) - 1


def _primitive(buffer: _Buffer, triangles: Triangles, material: int) -> dict[str, Any]:
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.where(length > 0, normals / np.where(length > 0, length, 1.0), (0.0, 0.0, 1.0))
    return {"attributes": {"POSITION": buffer.add(triangles.reshape(-1, 3), 34962),
                           "NORMAL": buffer.add(np.repeat(normals, 3, axis=0), 34962)}, "material": material}


def _filled(values: NDArray[Any], there: NDArray[np.bool_]) -> NDArray[Any]:
    """Values with each gap filled by the last known one, or the first."""
    at = np.maximum.accumulate(np.where(there, np.arange(len(there)), -1))
    filled: NDArray[Any] = values[np.where(at < 0, int(there.argmax()), at)]
    return filled
