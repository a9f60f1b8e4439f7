"""Recordings that the site embeds. ``make docs`` makes them with this version of the library."""

import sys
import tempfile
from pathlib import Path

import numpy as np

from pycct import Box, Crowd, Mesh, Scene
from pycct.cli.demo.level import build_level
from pycct.cli.demo.walkers import DT, HEIGHT, RADIUS, SLOPE_LIMIT, walk
from pycct.record import record, replay
from pycct.view import Tracks, sample, to_html


def demo(seconds=8.0):
    """The demo: 64 characters in its level."""
    level = build_level()
    walked = walk(level, 64, seconds)
    frames, n = walked.positions.shape[:2]
    return Tracks(np.arange(frames) * DT, level.vertices[level.triangles], np.arange(n), walked.positions,
                  np.full(n, RADIUS), np.full(n, HEIGHT), slope_limit=SLOPE_LIMIT)


def _recorded(scene, crowd, ticks, wish):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        with record(path, scene, crowd):
            for _ in range(ticks):
                crowd.move(wish(crowd), DT)
        with replay(path) as recording:
            return sample(recording)


def lintel(ticks=240):
    """One character of each rule set walks against a lintel."""
    scene = Scene()
    scene.add(Mesh([(-4, -4, 0), (4, -4, 0), (4, 4, 0), (-4, 4, 0)], [(0, 1, 2), (0, 2, 3)]))
    scene.add(Box((0.2, 4, 0.5)), (-1, 0, 2.2))
    crowd = Crowd(scene, [(2, y, 0.91) for y in (-2, 0, 2)], rules=["physx", "document", "robust"])
    return _recorded(scene, crowd, ticks, lambda crowd: np.tile((-0.03, 0.004, -0.03), (3, 1)))


def room(ticks=480):
    """A crowd leaves a room through its door."""
    scene = Scene()
    scene.add(Mesh([(-6, -6, 0), (14, -6, 0), (14, 6, 0), (-6, 6, 0)], [(0, 1, 2), (0, 2, 3)]))
    for half, place in (((0.1, 2.5, 1), (5, -3.5, 1)), ((0.1, 2.5, 1), (5, 3.5, 1)), ((5.5, 0.1, 1), (-0.5, -6, 1)),
                        ((5.5, 0.1, 1), (-0.5, 6, 1)), ((0.1, 6, 1), (-6, 0, 1))):
        scene.add(Box(half), place)
    start = [(x, y, 0.76) for x in np.arange(-5.0, 4.0, 1.3) for y in np.arange(-4.8, 5.0, 1.2)]
    crowd = Crowd(scene, start, radius=0.25, height=1.0, collide=True)

    def wish(crowd):
        here = crowd.positions
        goal = np.where((here[:, 0] < 5.2)[:, None], (5.6, 0.0), (13.0, 0.0)) - here[:, :2]
        goal[:, 1] += np.where(here[:, 0] < 5.2, 0.0, here[:, 1])
        far = np.maximum(np.linalg.norm(goal, axis=1, keepdims=True), 1e-9)
        return np.hstack([goal / far * 0.04, np.full((len(here), 1), -0.03)])

    return _recorded(scene, crowd, ticks, wish)


PAGES = {"demo": demo, "lintel": lintel, "room": room}


def write_all(folder):
    """Write every page into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        to_html(make(), folder / f"{name}.html", title=name)


if __name__ == "__main__":
    write_all(sys.argv[1])
