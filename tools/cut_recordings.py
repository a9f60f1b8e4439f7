#!/usr/bin/env python3
"""Cut the large recordings of PhysX to the size that the repository keeps.

``tools/cut_recordings.py SOURCE TARGET`` reads every recording of SOURCE and writes a part of at
most 200 moves to TARGET. The part contains the trajectory in which the installed pycct differs
most, and others that are spread evenly. A recording whose controllers collide keeps all of them,
and fewer steps. Hits are left out, and PhysX's repeated moves become one flag: whether the move is
stable.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import goldens
import stable_recordings

# Moves of one recording.
MOST = 200
# Meshes with more triangles lose those farther than this from every move, metres.
LARGE_MESH = 400
REACH = 1.5


def chosen(record, wrong):
    """(indices of the trajectories, first step, last step) of the part."""
    n_tracks = len(record["trajectories"])
    n_steps = record["scene"]["moves"]["n_steps"]
    per_track = np.zeros(n_tracks, int)
    per_step = np.zeros(n_steps, int)
    for _, track, step in wrong:
        per_track[track] += 1
        per_step[step] += 1
    if record["scene"].get("together"):
        length = min(n_steps, MOST // n_tracks)
        sums = np.convolve(per_step, np.ones(length, int), "valid")
        first = int(sums.argmax()) if sums.max() > 0 else (n_steps - length) // 2
        return list(range(n_tracks)), first, first + length
    count = min(n_tracks, max(1, MOST // n_steps))
    worst = int(per_track.argmax())
    spread = [int(k) for k in (worst + np.arange(count) * n_tracks / count) % n_tracks]
    return sorted(set(spread)), 0, n_steps


def part_of(record, tracks, first, last):
    """The part of a recording, in the same format."""
    scene = dict(record["scene"])
    indices = [record["trajectories"][k]["controller"] for k in tracks]
    moves = dict(scene["moves"])
    asked = goldens.displacements(record)[indices, first:last]
    moves["disp"], moves["n_steps"] = [float(x) for x in asked.ravel()], last - first
    scene["moves"] = moves
    scene["controllers"] = [scene["controllers"][i] for i in indices]
    scene["shapes"] = [dict(s) for s in scene["shapes"]]
    for s in scene["shapes"]:
        for key in ("from_step", "until_step"):
            if key in s:
                s[key] = max(0, s[key] - first)
    if "animation" in scene:
        for event in (e for e in scene["animation"] if e["step"] < first):
            scene["shapes"][event["actor"]].update({k: event[k] for k in ("position", "quat") if k in event})
        scene["animation"] = [dict(e, step=e["step"] - first) for e in scene["animation"] if first <= e["step"] < last]
    if "events" in scene:
        assert first == 0
        events = [dict(e) for e in scene["events"] if e["step"] < last and e.get("controller", indices[0]) in indices]
        for event in events:
            if "controller" in event:
                event["controller"] = indices.index(event["controller"])
        scene["events"] = events
    near = stable_recordings.limit_of(scene["name"])
    trajectories = []
    for k, index in enumerate(tracks):
        track = record["trajectories"][index]
        steps = []
        for t in range(first, last):
            want = {key: track["steps"][t][key] for key in ("from", "to", "flags", "touched_actor")}
            want["stable"] = stable_recordings.is_stable(track, t, near)
            # The first step of a later window lacks what the steps before left in the state.
            want["counts"] = t > first or first == 0
            steps.append(want)
        trajectories.append({"controller": k, "steps": steps})
    clip_meshes(scene, trajectories, asked)
    return {"scene": scene, "trajectories": trajectories}


def clip_meshes(scene, trajectories, asked):
    """Leave out the triangles of large meshes that no move comes near."""
    boxes = []
    for track, displacements in zip(trajectories, asked, strict=True):
        c = scene["controllers"][track["controller"]]
        size = c["radius"] + 0.5 * c["height"] + REACH
        for step, displacement in zip(track["steps"], displacements, strict=True):
            ends = np.array([step["from"], step["to"], np.add(step["from"], displacement)])
            boxes.append((ends.min(0) - size, ends.max(0) + size))
    lo, hi = (np.array(x) for x in zip(*boxes, strict=True))
    for s in scene["shapes"]:
        if s["type"] != "mesh" or len(s["triangles"]) <= 3 * LARGE_MESH or s.get("kinematic") or s.get("dynamic"):
            continue
        v = np.array(s["vertices"]).reshape(-1, 3)
        t = np.array(s["triangles"]).reshape(-1, 3)
        world = v * s.get("scale", (1, 1, 1))
        if "quat" in s:
            q, w = np.array(s["quat"][:3]), s["quat"][3]
            world = world + 2 * np.cross(q, np.cross(q, world) + w * world)
        world = world + s.get("position", (0, 0, 0))
        corners = world[t]
        low, high = corners.min(1), corners.max(1)
        kept = np.array([((a <= hi) & (b >= lo)).all(1).any() for a, b in zip(low, high, strict=True)])
        used, t = np.unique(t[kept], return_inverse=True)
        s["vertices"] = [float(x) for x in v[used].ravel()]
        s["triangles"] = [int(x) for x in t.ravel()]


def main():
    """Cut all recordings of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.source.glob("*.json.gz")):
        record = goldens.load(path)
        wrong = stable_recordings.differences(record, stable_recordings.play(record))
        part = part_of(record, *chosen(record, wrong))
        text = json.dumps(part, separators=(",", ":")).encode()
        data = gzip.compress(text, 9, mtime=0)
        (options.target / path.name).write_bytes(data)
        count = sum(len(t["steps"]) for t in part["trajectories"])
        print(f"{path.name} {count} moves {len(data)} bytes", flush=True)


if __name__ == "__main__":
    main()
