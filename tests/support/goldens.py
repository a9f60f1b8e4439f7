"""Recordings of the real PhysX, replayed: each move starts where PhysX started it.

``play(record)`` returns the input of ``score``. The names of the fields are those of the
recordings: see tests/physx/golden/README.md.
"""

import gzip
import json
import math
from pathlib import Path

import numpy as np

import pycct

HERE = Path(__file__).resolve().parent
OWN = HERE.parent / "physx" / "golden"
# Third-party level geometry is not part of the repository; the tests use it if it is present.
LEVELS = HERE.parents[2] / "shared" / "levels"
THIRD_PARTY = HERE.parents[2] / "shared" / "golden"


def load(path):
    """Read one recording."""
    return json.loads(gzip.decompress(Path(path).read_bytes()))


def read_obj(path):
    """Vertices (float32 values, rotated from y up to z up) and triangles of an OBJ file."""
    vertices, triangles = [], []
    for line in Path(path).read_text().splitlines():
        word = line.split()
        if word and word[0] == "v":
            vertices.append([float(x) for x in word[1:4]])
        elif word and word[0] == "f":
            corner = [int(w.split("/")[0]) for w in word[1:]]
            corner = [c - 1 if c > 0 else len(vertices) + c for c in corner]
            triangles += [[corner[0], corner[k], corner[k + 1]] for k in range(1, len(corner) - 1)]
    v = np.array(vertices, np.float32)
    return np.stack([v[:, 0], -v[:, 2], v[:, 1]], -1), np.array(triangles)


def shape_of(s):
    """The pycct shape of one recorded shape."""
    if s["type"] == "mesh":
        if "obj" in s:
            return pycct.Mesh(*read_obj(LEVELS / s["obj"]))
        return pycct.Mesh(np.array(s["vertices"]).reshape(-1, 3), np.array(s["triangles"]).reshape(-1, 3))
    if s["type"] == "box":
        return pycct.Box(s["half"])
    if s["type"] == "sphere":
        return pycct.Sphere(s["radius"])
    if s["type"] == "capsule":
        return pycct.Capsule(s["radius"], 2 * s["half_height"])
    return pycct.ConvexHull(np.array(s["vertices"]).reshape(-1, 3))


def unit(q):
    """A float32 quaternion, normalised in float64."""
    m = math.sqrt(sum(x * x for x in q))
    return [x / m for x in q]


def scene_of(record):
    """The scene of a recording; actor ids are the indices of its shapes."""
    scene = pycct.Scene()
    for s in record["scene"]["shapes"]:
        scene.add(
            shape_of(s),
            position=s.get("position", (0, 0, 0)),
            rotation=unit(s.get("quat", (0, 0, 0, 1))),
            scale=s.get("scale", (1, 1, 1)),
            body="kinematic" if s.get("kinematic") else "static",
            behavior=s.get("behavior", 0),
        )
    for s in record["scene"].get("obstacles", ()):
        scene.add_obstacle(shape_of(s), position=s["position"], rotation=unit(s.get("quat", (0, 0, 0, 1))))
    return scene


def controller_of(scene, record, index, **extra):
    """The controller of one recorded controller."""
    c = record["scene"]["controllers"][index]
    manager = record["scene"].get("manager", {})
    return pycct.CharacterController(
        scene,
        position=c["position"],
        radius=c["radius"],
        height=c["height"],
        up=record["scene"]["up"],
        contact_offset=c["contact_offset"],
        step_offset=c["step_offset"],
        slope_limit=c["slope_limit"],
        climbing_mode=c["climbing"],
        non_walkable_mode={"prevent": "prevent_climbing", "force_slide": "force_sliding"}[c["non_walkable"]],
        invisible_wall_height=c.get("invisible_wall_height", 0.0),
        max_jump_height=c.get("max_jump_height", 0.0),
        overlap_recovery=manager.get("overlap_recovery", True),
        prevent_vertical_sliding=manager.get("prevent_vertical_sliding", False),
        **extra,
    )


def displacements(record):
    """Array (controller, step, 3) of a recording."""
    moves = record["scene"]["moves"]
    return np.array(moves["disp"]).reshape(len(record["scene"]["controllers"]), moves["n_steps"], 3)


def play(record, **extra):
    """got[k][t] = (to, flags, touched actor, [(actor, triangle), ...])."""
    if record["scene"].get("together"):
        return play_together(record, **extra)
    moves = record["scene"]["moves"]
    asked = displacements(record)
    got = []
    for track in record["trajectories"]:
        scene = scene_of(record)
        hero = controller_of(scene, record, track["controller"], **behavior_of(record), **extra)
        rows = []
        for step, want in enumerate(track["steps"]):
            animate(scene, record, step)
            rows.append(one_move(hero, want, asked[track["controller"], step], moves))
        got.append(rows)
    return got


def play_together(record, **extra):
    """All controllers in one scene, moved in the order of their indices within a step."""
    moves = record["scene"]["moves"]
    asked = displacements(record)
    scene = scene_of(record)
    tracks = record["trajectories"]
    heroes = [
        controller_of(scene, record, t["controller"], collide=True, **behavior_of(record), **extra) for t in tracks
    ]
    got = [[] for _ in tracks]
    for step in range(moves["n_steps"]):
        animate(scene, record, step)
        for hero, track, rows in zip(heroes, tracks, got, strict=True):
            rows.append(one_move(hero, track["steps"][step], asked[track["controller"], step], moves))
    return got


def one_move(hero, want, displacement, moves):
    """Start where PhysX started, move, and return the result."""
    hero.position = want["from"]
    flags = hero.move(tuple(displacement), moves["dt"], min_distance=moves["min_dist"])
    standing = hero.state.standing_on
    if not isinstance(standing, pycct.Actor) or isinstance(standing, pycct.Obstacle):
        standing = None
    hits = [(h.actor.id, -1 if h.triangle is None else h.triangle) for h in hero.hits if h.actor is not None]
    return hero.position, int(flags), -1 if standing is None else standing.id, hits


def behavior_of(record):
    """The behaviour callback of a recording, as an argument of the controller."""
    said = record["scene"].get("behavior")
    if said is None:
        return {}

    def behavior(other):
        if isinstance(other, pycct.CharacterController):
            return said.get("controllers", 0)
        if isinstance(other, pycct.Obstacle):
            return said.get("obstacles", 0)
        return other.behavior

    return {"behavior": behavior}


def animate(scene, record, step):
    """Set the poses that come before the moves of a step."""
    for event in record["scene"].get("animation", ()):
        if event["step"] == step:
            actor = scene.actor(event["actor"])
            rotation = unit(event["quat"]) if "quat" in event else None
            actor.move_to(event.get("position", actor.position), rotation)


def score(record, got, near=1e-4):
    """Shares of moves: within ``near`` with equal flags, within 0.1 mm, equal flags, equal hits."""
    n = both = close = flags = touched = hits = 0
    worst = []
    for track, rows in zip(record["trajectories"], got, strict=True):
        for step, (want, (to, flag, actor, hit)) in enumerate(zip(track["steps"], rows, strict=True)):
            d = math.dist(to, want["to"])
            n += 1
            both += d <= near and flag == want["flags"]
            close += d <= 1e-4
            flags += flag == want["flags"]
            touched += actor == want["touched_actor"]
            hits += hit == [(h["actor"], h["tri"]) for h in want["hits"] if h["kind"] == "shape"]
            if not (d <= near and flag == want["flags"]):
                worst.append((d, track["controller"], step, flag, want["flags"]))
    worst.sort(reverse=True)
    return {
        "moves": n,
        "right": both / n,
        "within_0_1mm": close / n,
        "flags": flags / n,
        "touched": touched / n,
        "hits": hits / n,
        "worst": worst[:10],
    }


# ---------------------------------------------------------------------------
# What each recording must satisfy


def names():
    """Names of the recordings in the repository."""
    return sorted(p.name[: -len(".json.gz")] for p in OWN.glob("*.json.gz"))


THIRD_PARTY_NAMES = ("level_dungeon", "level_undulating")


def path_of(name):
    """Path of a recording; None if it is third-party and absent."""
    path = (THIRD_PARTY if name in THIRD_PARTY_NAMES else OWN) / f"{name}.json.gz"
    return path if path.exists() and (name not in THIRD_PARTY_NAMES or LEVELS.exists()) else None


def needs(record):
    """Features of a recording beyond a single capsule in a static scene."""
    scene = record["scene"]
    what = set()
    if any(s.get("kinematic") for s in scene["shapes"]) or scene.get("animation"):
        what.add("platforms")
    if any(s.get("behavior") for s in scene["shapes"]) or scene.get("behavior"):
        what.add("behavior")
    if scene.get("obstacles"):
        what.add("obstacles")
    if scene.get("together"):
        what.add("other controllers")
    if any("half_extents" in c for c in scene["controllers"]):
        what.add("box controllers")
    return what


# PhysX computes in float32: far from the origin its triangles are shifted by more than 0.1 mm.
NEAR = {"level_undulating": 1e-3, "far_from_origin": 1e-3}
# Share of moves that must end within NEAR (else 0.1 mm) with the same flags. Recovery from several
# triangles at once depends on the order in which PhysX meets them.
RIGHT = {"triangle_soup": 0.99, "invisible_walls": 0.993}
RIGHT_ELSE = 0.995
SAME_HITS = 0.95


def judge(name):
    """Score of a recorded walk, with its limit."""
    got = score(*(lambda r: (r, play(r)))(load(path_of(name))), near=NEAR.get(name, 1e-4))
    return {"name": name, "near": NEAR.get(name, 1e-4), "bar": RIGHT.get(name, RIGHT_ELSE), **got}


def pose_of(q):
    """Centre, rotation and height of a recorded capsule p0-p1."""
    p0, p1 = np.array(q["p0"]), np.array(q["p1"])
    axis = p1 - p0
    height = float(np.linalg.norm(axis))
    if height < 1e-12:
        return (p0 + p1) / 2, (0.0, 0.0, 0.0, 1.0), 0.0
    z = axis / height
    if 1 + z[2] < 1e-9:
        return (p0 + p1) / 2, (1.0, 0.0, 0.0, 0.0), height
    turn = np.array([-z[1], z[0], 0.0, 1 + z[2]])
    return (p0 + p1) / 2, tuple(turn / np.linalg.norm(turn)), height


QUERIES = [n for n in names() if n.startswith("query_")]
WALKS = [n for n in names() if n not in QUERIES] + list(THIRD_PARTY_NAMES)
