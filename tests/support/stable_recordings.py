"""Recordings of PhysX that contain how far PhysX itself repeats each move.

``judge(path)`` replays one recording. A move counts if PhysX is stable in it: repeated from starts
that differ by 1e-6 m, it ended at the same place with the same flags. The format is that of
tests/physx/golden_stable/README.md; ``goldens.pycct`` is the package that moves.
"""

import math
from pathlib import Path

import goldens
import numpy as np

HERE = Path(__file__).resolve().parent
OWN = HERE.parent / "physx" / "golden_stable"
# The whole recordings are too large for the repository; the tests use them if they are present.
WHOLE = HERE.parents[2] / "shared" / "golden2"
# PhysX computes in float32, which has no more than 1 mm in these.
COARSE = {"huge_triangles": 1e-3, "very_fast": 1e-3}
# Share of the stable moves of a whole recording that must end within the limit with the same flags.
# docs/physx_agreement.md names the cause of each exception.
RIGHT = {
    "crowd_separated_heights": 0.9088,
    "dense_mesh": 0.9656,
    "few_shapes_overlap": 0.944,
    "filters": 0.982,
    "heightfield_overlap": 0.9939,
    "lifted_by_the_ray": 0.9855,
    "obstacles_rising": 0.9885,
    "overlap_many": 0.9563,
    "soup_deep": 0.9639,
    "teleports": 0.9871,
    "terrain_overlap": 0.9879,
    "tiny_moves": 0.9299,
    "very_fast": 0.9893,
}
RIGHT_ELSE = 0.995
# Moves of the repository's part that may differ.
MAY_DIFFER = {
    "crowd_jam": 2,
    "crowd_on_platform": 2,
    "crowd_separated_heights": 20,
    "dense_mesh": 12,
    "few_shapes_overlap": 11,
    "filters": 14,
    "heightfield_overlap": 1,
    "invisible_walls_high": 1,
    "lifted_by_the_ray": 15,
    "low_ceilings_no_slide": 2,
    "mixed_world": 2,
    "obstacles_rising": 6,
    "overlap_many": 15,
    "platform_behavior_2": 1,
    "slope_limit_0.999": 1,
    "soup_deep": 7,
    "spiral_stairs": 1,
    "teleports": 4,
    "terrain_overlap": 3,
    "thin_walls": 1,
    "tiny_moves": 92,
    "very_fast": 2,
}
NON_WALKABLE = {"prevent": "prevent_climbing", "force_slide": "force_sliding"}


def names():
    """Names of the recordings."""
    return sorted(p.name[: -len(".json.gz")] for p in OWN.glob("*.json.gz"))


def limit_of(name):
    """Largest distance from PhysX's end of a move, metres."""
    return COARSE.get(name, 1e-4)


def is_stable(track, step, near):
    """Whether PhysX repeats a move from starts that differ slightly."""
    want = track["steps"][step]
    if "stable" in want:
        return want["stable"]
    motion = np.subtract(want["to"], want["from"])
    for to, flags, start in track["noise"][step]:
        if math.dist(np.subtract(to, start), motion) > near or flags != want["flags"]:
            return False
    return True


def shape_of(s):
    """The pycct shape of one recorded shape."""
    pycct = goldens.pycct
    if s["type"] == "plane":
        return pycct.Plane(s["normal"], s.get("offset", 0.0))
    if s["type"] == "heightfield":
        rows, columns = s["rows"], s["columns"]
        extra = {}
        if "diagonal" in s:
            extra["diagonal"] = np.array(s["diagonal"]).reshape(rows - 1, columns - 1)
        if "holes" in s:
            extra["holes"] = np.array(s["holes"], bool).reshape(rows - 1, columns - 1)
        heights = np.array(s["heights"], float).reshape(rows, columns) * s["height_scale"]
        return pycct.Heightfield(heights, (s["row_scale"], s["column_scale"]), **extra)
    return goldens.shape_of(s)


class Player:
    """A recorded scene with some of its controllers, ready for the first step."""

    def __init__(self, record, indices, shapes=None, **extra):
        self.record = record
        self.indices = indices
        self.shapes = {} if shapes is None else shapes
        self.scene = goldens.pycct.Scene()
        self.actors = [None] * len(record["scene"]["shapes"])
        self.show(0)
        self.obstacles = [
            self.scene.add_obstacle(
                goldens.shape_of(s), position=s["position"], **({"rotation": s["quat"]} if "quat" in s else {})
            )
            for s in record["scene"].get("obstacles", ())
        ]
        self.heroes = [self.controller(i, **extra) for i in indices]

    def controller(self, index, **extra):
        """One recorded controller."""
        scene = self.record["scene"]
        if scene.get("filters"):
            c = scene["controllers"][index]
            extra = {"layer": c.get("layer", 1), "mask": c.get("mask", 0xFFFFFFFF)} | extra
        extra = goldens.behavior_of(self.record) | extra
        together = bool(scene.get("together"))
        return goldens.controller_of(self.scene, self.record, index, collide=together, **extra)

    def show(self, step):
        """Add and remove the shapes that come or go before a step."""
        for i, s in enumerate(self.record["scene"]["shapes"]):
            present = s.get("from_step", 0) <= step < s.get("until_step", 1 << 30)
            if present and self.actors[i] is None:
                self.actors[i] = self.add(i, s)
            elif not present and self.actors[i] is not None:
                self.scene.remove(self.actors[i])
                self.actors[i] = None

    def add(self, i, s):
        """Add one recorded shape."""
        if i not in self.shapes:
            self.shapes[i] = shape_of(s)
        pose = {}
        if s["type"] != "plane":
            names = (("position", "position"), ("quat", "rotation"), ("scale", "scale"))
            pose = {argument: s[name] for name, argument in names if name in s}
        body = "kinematic" if s.get("kinematic") else "dynamic" if s.get("dynamic") else "static"
        layer = {"layer": s["layer"]} if "layer" in s else {}
        return self.scene.add(self.shapes[i], body=body, behavior=s.get("behavior", 0), **pose, **layer)

    def before(self, step):
        """Do what comes before the moves of a step."""
        self.show(step)
        for event in self.record["scene"].get("animation", ()):
            if event["step"] == step:
                actor = self.actors[event["actor"]]
                actor.move_to(event.get("position", actor.position), event.get("quat", actor.rotation))
        for event in self.record["scene"].get("events", ()):
            if event["step"] != step:
                continue
            if "obstacle" in event:
                obstacle = self.obstacles[event["obstacle"]]
                obstacle.move_to(event.get("position", obstacle.position), event.get("quat", obstacle.rotation))
            if event.get("controller") in self.indices:
                self.change(self.heroes[self.indices.index(event["controller"])], event)

    def change(self, hero, event):
        """Change the parameters of a controller."""
        if "resize" in event:
            hero.resize(event["resize"])
        for key in ("up", "step_offset", "contact_offset", "slope_limit", "radius", "height", "mask"):
            if key in event:
                setattr(hero, key, event[key])
        if "climbing" in event:
            hero.climbing_mode = event["climbing"]
        if "non_walkable" in event:
            hero.non_walkable_mode = NON_WALKABLE[event["non_walkable"]]


def play(record, **extra):
    """got[k][t] = (to, flags, touched shape) of each recorded move."""
    scene = record["scene"]
    tracks = record["trajectories"]
    asked = goldens.displacements(record)
    moves = scene["moves"]
    got = [[] for _ in tracks]
    shapes = {}
    groups = [range(len(tracks))] if scene.get("together") else [[k] for k in range(len(tracks))]
    for group in groups:
        player = Player(record, [tracks[k]["controller"] for k in group], shapes, **extra)
        for step in range(moves["n_steps"]):
            player.before(step)
            index = {id(actor): i for i, actor in enumerate(player.actors) if actor is not None}
            for hero, k in zip(player.heroes, group, strict=True):
                hero.position = tracks[k]["steps"][step]["from"]
            for hero, k in zip(player.heroes, group, strict=True):
                displacement = asked[tracks[k]["controller"], step]
                flags = hero.move(displacement, moves["dt"], min_distance=moves["min_dist"])
                got[k].append((hero.position, int(flags), index.get(id(hero.state.standing_on), -1)))
                hero.position = tracks[k]["steps"][step]["to"]
            if scene.get("separate"):
                goldens.pycct.separate(player.heroes, moves["dt"])
    return got


def counted(record):
    """(trajectory, step, recorded move) of each move that counts."""
    near = limit_of(record["scene"]["name"])
    for k, track in enumerate(record["trajectories"]):
        for t, want in enumerate(track["steps"]):
            if want.get("counts", True) and is_stable(track, t, near):
                yield k, t, want


def differences(record, got):
    """(distance, trajectory, step) of each stable move that ends elsewhere or with other flags."""
    near = limit_of(record["scene"]["name"])
    found = []
    for k, t, want in counted(record):
        to, flags, _ = got[k][t]
        distance = math.dist(to, want["to"])
        if not distance <= near or flags != want["flags"]:
            found.append((distance, k, t))
    return sorted(found, reverse=True)


def judge(path, **extra):
    """Score of one recording."""
    record = goldens.load(path)
    name = record["scene"]["name"]
    got = play(record, **extra)
    wrong = differences(record, got)
    steps = [(k, t, want) for k, track in enumerate(record["trajectories"]) for t, want in enumerate(track["steps"])]
    n = sum(1 for _ in counted(record))
    near = limit_of(name)
    return {
        "name": name,
        "near": near,
        "moves": len(steps),
        "stable": n,
        "differ": len(wrong),
        "right_where_stable": 1 - len(wrong) / n,
        "right": sum(
            math.dist(got[k][t][0], w["to"]) <= near and got[k][t][1] == w["flags"] for k, t, w in steps
        )
        / len(steps),
        "worst": wrong[:10],
    }
