"""``shrink``: reduce a recording to a test of a few lines."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pycct import Box, Capsule, ConvexHull, Crowd, Heightfield, Mesh, Plane, Rules, Scene, Shape, Sphere, Triangle
from pycct.record.player import CROWD_SETTINGS, Recording, replay

__all__ = ["Case", "shrink"]

_T = TypeVar("_T")
Predicate = Callable[[Scene, Crowd], object]


@dataclass(frozen=True)
class Case:
    """A scene, characters and their moves without anything hidden: what a test can write down.

    Attributes
    ----------
    actors : list of dict
        Arguments of `Scene.add`.
    members : list of dict
        Position and parameters of each character.
    order : str
        Order of the crowd.
    ticks : list of (dict, (n, 3) array, float)
        Of each tick: places of moving actors by their number in ``actors``, displacements, and dt.
    """

    actors: list[dict[str, Any]]
    members: list[dict[str, Any]]
    order: str
    ticks: list[tuple[dict[int, tuple[Any, Any]], NDArray[np.float64], float]]

    def play(self, predicate: Predicate) -> tuple[int, list[list[float]]] | None:
        """Ticks until the predicate holds, and the positions then; None if it never does."""
        scene = Scene()
        actors = [scene.add(**a) for a in self.actors]
        crowd = Crowd(scene, np.zeros((0, 3)), order=self.order)  # type: ignore[arg-type]
        for member in self.members:
            crowd.add([member["position"]], **{k: v for k, v in member.items() if k != "position"})
        for tick, (places, rows, dt) in enumerate(self.ticks):
            for k, (position, rotation) in places.items():
                actors[k].move_to(position, rotation)
            crowd.move(rows, dt)
            if predicate(scene, crowd):
                return tick + 1, crowd.positions.tolist()
        return None


def shrink(
    path: str | os.PathLike[str],
    predicate: Callable[[Scene, Crowd], object],
    out: str | os.PathLike[str],
) -> Case:
    """Reduce a recording while a predicate holds, and write what is left as a test in Python.

    Ticks, members, actors and triangles of meshes are left out as long as the predicate holds after
    some tick of the rest. The test builds the scene from literal numbers, makes the moves, and
    asserts the final positions.

    Parameters
    ----------
    path : str or path-like
        Recording.
    predicate : callable
        ``predicate(scene, crowd)`` is called after each tick and returns whether what is sought has
        happened. All characters are members of the crowd, controllers too, in the order of their
        ids.
    out : str or path-like
        Test file to write.

    Returns
    -------
    Case
        What is left.

    Raises
    ------
    ValueError
        The recording is damaged, or the predicate never holds when its moves are repeated. Members
        that come later, teleports and changed settings of the recording are not repeated: only
        moves and moving actors are.
    """
    with replay(path) as recording:
        starts = sorted({0, *(max(0, recording.ticks - 2**k) for k in range(40))}, reverse=True)
        for start in starts:
            case = _case(recording, start)
            held = case.play(predicate)
            if held is not None:
                break
        else:
            raise ValueError("predicate must hold after a tick of the recording, but it never does")
    case = replace(case, ticks=case.ticks[: held[0]])

    def holds(candidate: Case) -> bool:
        return candidate.play(predicate) is not None

    def with_members(keep: Sequence[int]) -> Case:
        return replace(case, members=[case.members[i] for i in keep],
                       ticks=[(places, rows[list(keep)], dt) for places, rows, dt in case.ticks])

    def with_actors(keep: Sequence[int]) -> Case:
        number = {old: new for new, old in enumerate(keep)}
        return replace(case, actors=[case.actors[i] for i in keep], ticks=[
            ({number[k]: p for k, p in places.items() if k in number}, rows, dt) for places, rows, dt in case.ticks])

    kept = _fewest(list(range(len(case.members))), lambda keep: bool(keep) and holds(with_members(keep)))
    case = with_members(kept)
    kept = _fewest(list(range(len(case.actors))), lambda keep: holds(with_actors(keep)))
    case = with_actors(kept)
    for k, actor in enumerate(case.actors):
        shape = actor["shape"]
        if isinstance(shape, Mesh):
            case = _fewer_triangles(case, k, shape, holds)
    held = case.play(predicate)
    assert held is not None
    case = replace(case, ticks=case.ticks[: held[0]])
    Path(out).write_text(_as_test(case, held[1]), encoding="utf-8")
    return case


def _fewer_triangles(case: Case, k: int, mesh: Mesh, holds: Callable[[Case], bool]) -> Case:
    def made(keep: Sequence[int]) -> Case:
        actor = {**case.actors[k], "shape": _part(mesh, keep)}
        return replace(case, actors=[*case.actors[:k], actor, *case.actors[k + 1 :]])

    return made(_fewest(list(range(mesh.triangle_count)), lambda keep: bool(keep) and holds(made(keep))))


def _fewest(items: list[_T], holds: Callable[[list[_T]], bool]) -> list[_T]:
    """Items that cannot be left out, by delta debugging: halves first, then smaller parts."""
    size = max(1, len(items) // 2)
    while items:
        at = 0
        while at < len(items):
            rest = items[:at] + items[at + size :]
            if holds(rest):
                items = rest
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return items


def _part(mesh: Mesh, keep: Sequence[int]) -> Mesh:
    triangles = np.asarray(mesh.triangles)[list(keep)]
    used, again = np.unique(triangles, return_inverse=True)
    data, mask = mesh.triangle_data, mesh.triangle_mask
    return Mesh(np.asarray(mesh.vertices)[used], again.reshape(-1, 3), mesh.two_sided,
                None if data is None else data[list(keep)], None if mask is None else mask[list(keep)])


def _case(recording: Recording, start: int) -> Case:
    """What a recording does from a tick on."""
    recording.seek(start)
    scene = recording.scene
    actors = [a for a in scene.actors if not a.trigger]
    number = {a.id: k for k, a in enumerate(actors)}
    described = [
        {"shape": a.shape, "position": a.position, "rotation": a.rotation, "scale": a.scale, "body": a.body,
         "layer": a.layer, "behavior": int(a.behavior)}
        for a in actors
    ]
    moving = [a for a in actors if a.body != "static"]
    members: list[tuple[int, dict[str, Any]]] = []
    for crowd in recording.crowds:
        columns = {name: crowd.get(name).tolist() for name in (*CROWD_SETTINGS, "group", "up")}
        for row, id in enumerate(crowd.ids.tolist()):
            members.append((id, {"position": tuple(crowd.positions[row].tolist()),
                                 **{name: _plain(column[row]) for name, column in columns.items()}}))
    for hero in recording.controllers:
        members.append((hero.id, {"position": hero.position, "up": hero.up,
                                  **{name: _plain(getattr(hero, name)) for name in CROWD_SETTINGS}}))
    members.sort(key=lambda m: m[0])
    row_of = {id: row for row, (id, _) in enumerate(members)}
    ticks = []
    order = recording.crowds[0].order if len(recording.crowds) == 1 else "sequential"
    places = {a.id: (a.position, a.rotation) for a in moving}
    rows, dt, now = np.zeros((len(members), 3)), 0.0, start

    def close() -> None:
        moved = {}
        for actor in moving:
            if actor.scene is not None and places[actor.id] != (actor.position, actor.rotation):
                places[actor.id] = (actor.position, actor.rotation)
                moved[number[actor.id]] = places[actor.id]
        ticks.append((moved, rows, dt))

    for tick, call in recording.calls_of(start, recording.ticks):
        if tick != now:
            close()
            rows, now = np.zeros((len(members), 3)), tick
        given = call.arguments
        if call.name == "move" and "displacements" in given:
            crowd = recording.crowds[call.target[1]]
            active = given["active"]
            for row, id in enumerate(crowd.ids.tolist()):
                if id in row_of and (active is None or active[row]):
                    rows[row_of[id]] += given["displacements"][row]
        elif call.name == "move" and call.target[1] in row_of:
            rows[row_of[call.target[1]]] += given["displacement"]
        elif call.name == "move_many":
            for one, way in zip(given["controllers"], given["displacements"], strict=True):
                if one[1] in row_of:
                    rows[row_of[one[1]]] += way
        if "dt" in given:
            dt = given["dt"]
    if recording.ticks > start:
        close()
    return Case(described, [m for _, m in members], order, ticks)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, Enum) and not isinstance(value, int):
        return value.value
    return value if isinstance(value, float | bool | Rules) else int(value)


def _literal(arguments: dict[str, Any], without: str) -> str:
    return ", ".join(f"{key}=Rules({int(value)})" if isinstance(value, Rules) else f"{key}={value!r}"
                     for key, value in arguments.items() if key != without)


def _shape(shape: Shape) -> str:
    """A shape as an expression."""
    if isinstance(shape, Mesh):
        more = ", two_sided=True" if shape.two_sided else ""
        for name in ("triangle_data", "triangle_mask"):
            values = getattr(shape, name)
            more += "" if values is None else f", {name}={values.tolist()!r}"
        return f"Mesh({np.asarray(shape.vertices).tolist()!r}, {np.asarray(shape.triangles).tolist()!r}{more})"
    if isinstance(shape, Heightfield):
        diagonal = shape.diagonal if isinstance(shape.diagonal, int) else shape.diagonal.tolist()
        return (f"Heightfield({shape.heights.tolist()!r}, {shape.spacing!r}, row_axis={shape.row_axis!r}, "
                f"diagonal={diagonal!r}, holes={shape.holes.tolist()!r}, two_sided={shape.two_sided!r})")
    if isinstance(shape, ConvexHull):
        return f"ConvexHull({shape.vertices.tolist()!r})"
    if isinstance(shape, Triangle):
        return f"Triangle{shape.vertices!r}"
    if isinstance(shape, Plane):
        return f"Plane({shape.normal!r}, {shape.offset!r})"
    if isinstance(shape, Box):
        return f"Box({shape.half_extents!r})"
    if isinstance(shape, Capsule):
        return f"Capsule({shape.radius!r}, {shape.height!r})"
    assert isinstance(shape, Sphere)
    return f"Sphere({shape.radius!r})"


def _as_test(case: Case, end: list[list[float]]) -> str:
    """A test file that needs pycct only."""
    names = sorted({type(a["shape"]).__name__ for a in case.actors} | {"Crowd", "Rules", "Scene"})
    lines = ['"""A recording, reduced to what its predicate needs."""', "", f"from pycct import {', '.join(names)}", "",
             "", "def test_recording():", "    scene = Scene()"]
    for k, actor in enumerate(case.actors):
        lines.append(f"    actor_{k} = scene.add({_shape(actor['shape'])}, {_literal(actor, 'shape')})")
    lines.append(f"    crowd = Crowd(scene, [], order={case.order!r})")
    for member in case.members:
        lines.append(f"    crowd.add([{member['position']!r}], {_literal(member, 'position')})")
    for places, rows, dt in case.ticks:
        for k, (position, rotation) in places.items():
            lines.append(f"    actor_{k}.move_to({position!r}, {rotation!r})")
        lines.append(f"    crowd.move({rows.tolist()!r}, {dt!r})")
    lines.append(f"    assert crowd.positions.tolist() == {end!r}")
    used = {f"actor_{k}" for places, *_ in case.ticks for k in places}
    text = "\n".join(lines) + "\n"
    for k in range(len(case.actors)):
        if f"actor_{k}" not in used:
            text = text.replace(f"    actor_{k} = scene.add(", "    scene.add(")
    return text
