"""`load_level` and `load_scene`: a level file as one mesh, or as a scene of actors."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct.args.plain import short
from pycct.levels.files import AXES, LARGEST_FILE, check_number, check_size, read_raw
from pycct.levels.raw import (
    Floats,
    Ints,
    RawGeometry,
    RawLevel,
    RawPlacement,
    decomposed,
    flatten,
    is_checked,
    of_nodes,
    transformed,
)
from pycct.levels.report import LevelReport, inspected, places_of
from pycct.scene.scene import Scene
from pycct.shapes.mesh import Mesh

__all__ = ["load_level", "load_scene"]


def load_level(
    path: str | os.PathLike[str],
    up: str | None = None,
    scale: float = 1.0,
    two_sided: bool | None = None,
    max_bytes: int = LARGEST_FILE,
    *,
    nodes: str | Sequence[str] | None = None,
) -> tuple[Mesh, LevelReport]:
    """Read a level file as one mesh.

    Parameters
    ----------
    path : path
        An OBJ, PLY, STL, glTF or GLB file; the ending names the format.
    up : {'x', 'y', 'z', '-x', '-y', '-z'}, optional
        The file's axis that points up; turned to z. The default is 'y' for glTF, whose standard
        says so, and 'z' for the others.
    scale : float
        Metres in one unit of the file, > 0.
    two_sided : bool, optional
        As for `Mesh`. The default follows the file: a glTF material may be ``doubleSided``. If
        only some materials are, a reversed copy of each of their triangles is added after all
        other triangles.
    max_bytes : int
        A larger file is refused, with the buffers that it names counted in. So is one that would
        take more than eight times as much in memory, before it is unpacked. A server that takes
        files from strangers sets this low.
    nodes : str or list of str, optional
        Names or patterns (``"*-col"``, ``"UCX_*"``) of the nodes to read, as `fnmatch.fnmatchcase`
        understands them; the default is all. A glTF node brings its children along. The nodes of
        an OBJ are its objects and groups; a PLY or STL is one node with the name of the file.

    Returns
    -------
    mesh : Mesh
        Vertices in metres, z up. Triangles keep the order of the file. `Mesh.triangle_data` is
        the index of each triangle's material in `LevelReport.materials`, or None without
        materials.
    report : LevelReport
        `LevelReport.triangle_node` maps each triangle to a name in `LevelReport.nodes`.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        As `open` does.
    ValueError
        The file is too large, of no known kind, broken, holds no triangles, or requires a glTF
        extension that is not read; no node matches; or an argument makes no sense.
    ImportError
        trimesh is not installed; PLY and STL need it.

    Notes
    -----
    The default scene of a glTF is read. Of other files only the buffers of a glTF are read, from
    its folder or below; material files and images are not opened.
    """
    axes, factor = _checked(up, scale, two_sided)
    file, kind, level = read_raw(path, nodes, check_size(max_bytes), True)
    try:
        flat = flatten(level)
        is_checked(flat.vertices, flat.triangles)
        turn = axes[up or _default_up(kind)]
        vertices, triangles = _welded(_turned(flat.vertices, turn, factor), flat.triangles)
        sides, copied = _sides(level, flat.material, two_sided)
        data, table = _table(level, flat.material)
        report = inspected(vertices, triangles, str(file), turn, sides)
        node, names = _named(level, flat.node)
        if copied is not None:
            triangles = np.concatenate([triangles, triangles[copied][:, ::-1]])
            data = None if data is None else np.concatenate([data, data[copied]])
            node = np.concatenate([node, node[copied]])
        mesh = Mesh(vertices, triangles, two_sided=sides, triangle_data=data)
    except ValueError as e:
        raise ValueError(f"{file}: {e}") from None
    return mesh, replace(report, triangles=len(triangles), warnings=(*level.notes, *report.warnings), nodes=names,
                         materials=table, triangle_node=node)


def load_scene(
    path: str | os.PathLike[str],
    up: str | None = None,
    scale: float = 1.0,
    two_sided: bool | None = None,
    max_bytes: int = LARGEST_FILE,
    *,
    nodes: str | Sequence[str] | None = None,
) -> Scene:
    """Read a level file as a scene with one static actor for each node that has triangles.

    Parameters
    ----------
    path, up, scale, two_sided, max_bytes, nodes
        As for `load_level`.

    Returns
    -------
    Scene
        Actors in the order of the file's nodes. `Actor.user_data` is a dict:

        ``"name"`` : str
            The node's name.
        ``"node"`` : int
            The node's index in the file.
        ``"instance"`` : int or None
            The number of the instance of a node with ``EXT_mesh_gpu_instancing``.
        ``"extras"`` : object
            The node's ``extras`` (custom properties), or None.
        ``"materials"`` : list of str
            Names that `Mesh.triangle_data` refers to.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, ValueError, ImportError
        As `load_level` does.

    Notes
    -----
    Nodes of the same glTF mesh share one `Mesh`. A node with a shearing transform gets a mesh of
    its own, with the transform applied.
    """
    axes, factor = _checked(up, scale, two_sided)
    file, kind, level = read_raw(path, nodes, check_size(max_bytes), False)
    turn = axes[up or _default_up(kind)]
    scene = Scene()
    made: dict[int, tuple[Mesh, list[str]]] = {}
    try:
        with scene.edit():
            for place in of_nodes(level):
                _add_actor(scene, level, place, turn, factor, two_sided, made)
        if not len(scene):
            raise ValueError("no triangles in it; the file is broken, truncated or no level")
    except ValueError as e:
        raise ValueError(f"{file}: {e}") from None
    return scene


def _add_actor(scene: Scene, level: RawLevel, place: RawPlacement, turn: Floats, factor: float,
               two_sided: bool | None, made: dict[int, tuple[Mesh, list[str]]]) -> None:
    """Add the actor of one placement; `made` holds the meshes by geometry."""
    level.budget.take(names=2)
    shape = place.geometry
    pose: tuple[Any, Any, Any] | None = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0)
    if place.matrix is not None:
        matrix = place.matrix.copy()
        matrix[:3, :3] = turn @ matrix[:3, :3] @ turn.T
        matrix[:3, 3] = factor * (turn @ matrix[:3, 3])
        pose = decomposed(matrix)
    if pose is None:
        level.budget.take(vertices=len(shape.vertices), triangles=len(shape.triangles))
        vertices, triangles = transformed(shape.vertices, shape.triangles, place.matrix)
        mesh, table = _mesh_of(level, RawGeometry(vertices, triangles, shape.material), turn, factor, two_sided)
        pose = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0)
    else:
        if id(shape) not in made:
            level.budget.take(names=10)
            made[id(shape)] = _mesh_of(level, shape, turn, factor, two_sided)
        mesh, table = made[id(shape)]
    node = level.nodes[place.node]
    user_data = {"name": node.name, "node": place.node, "instance": place.instance, "extras": node.extras,
                 "materials": list(table)}
    position, rotation, scale = pose
    scene.add(mesh, position, rotation, scale, user_data=user_data)


def _mesh_of(level: RawLevel, shape: RawGeometry, turn: Floats, factor: float,
             two_sided: bool | None) -> tuple[Mesh, list[str]]:
    """The mesh of a geometry, with a table of the materials that it uses."""
    is_checked(shape.vertices, shape.triangles)
    vertices, triangles = _welded(_turned(shape.vertices, turn, factor), shape.triangles)
    material = shape.material if level.materials else None
    data, table = None, []
    sides, copied = _sides(level, material, two_sided)
    if material is not None:
        used, data = np.unique(material, return_inverse=True)
        table = [level.materials[k] if k >= 0 else "" for k in used.tolist()]
    if copied is not None:
        triangles = np.concatenate([triangles, triangles[copied][:, ::-1]])
        data = None if data is None else np.concatenate([data, data[copied]])
    return Mesh(vertices, triangles, two_sided=sides, triangle_data=data), table


def _checked(up: str | None, scale: float, two_sided: bool | None) -> tuple[dict[str, Floats], float]:
    """Return the rotations to z and the scale; ValueError or TypeError for a bad argument."""
    if up is not None and (not isinstance(up, str) or up not in AXES):
        raise ValueError(f"up must be one of {', '.join(AXES)}, not {short(up)}")
    factor = check_number(scale, "scale")
    if two_sided is not None and not isinstance(two_sided, (bool, np.bool_)):
        raise TypeError(f"two_sided must be a bool or None, not {type(two_sided).__name__}")
    return {name: np.array(rows, float) for name, rows in AXES.items()}, factor


def _default_up(kind: str) -> str:
    return "y" if kind in ("gltf", "glb") else "z"


def _turned(vertices: Floats, turn: Floats, factor: float) -> Floats:
    """Vertices with z up, in metres, without negative zeros."""
    found = np.empty(vertices.shape)
    for k, row in enumerate(turn.tolist()):
        source = max(range(3), key=lambda c: abs(row[c]))
        with np.errstate(over="ignore"):
            np.multiply(vertices[:, source], row[source] * factor, out=found[:, k])
    found += 0.0
    return found


def _sides(level: RawLevel, material: Ints | None, two_sided: bool | None) -> tuple[bool, NDArray[np.int64] | None]:
    """Whether all triangles are two-sided; the triangles that are, if only some are."""
    if two_sided is not None:
        return bool(two_sided), None
    if material is None or not any(level.double_sided):
        return False, None
    # A triangle without a material has index -1.
    both = np.array([*level.double_sided, False])[material]
    if both.all():
        return True, None
    return False, np.flatnonzero(both) if both.any() else None


def _table(level: RawLevel, material: Ints | None) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Material indices and their names; the last name is '' if a triangle has no material."""
    if material is None:
        return None, ()
    none = material < 0
    if not none.any():
        return material.astype(np.int64), tuple(level.materials)
    return np.where(none, len(level.materials), material).astype(np.int64), (*level.materials, "")


def _named(level: RawLevel, node: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Nodes with triangles, in the order of the file, and the index among them of each triangle."""
    used, index = np.unique(node, return_inverse=True)
    return index.astype(np.int32), tuple(level.nodes[k].name for k in used.tolist())


def _welded(vertices: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """Merge equal vertices if every triangle brings its own (STL); triangles keep their order."""
    if len(vertices) <= 1.5 * len(triangles):
        return vertices, triangles
    place = places_of(vertices)
    first = np.empty(int(place.max()) + 1, np.int64)
    first[place[::-1]] = np.arange(len(vertices))[::-1]
    return vertices[first], place[triangles]
