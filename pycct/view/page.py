"""A page for the browser in one file: level, capsules, paths and a timeline."""
from __future__ import annotations

import base64
import json
import os
import tempfile
import webbrowser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Scene
from pycct.record import Recording
from pycct.view.gltf import COLOURS
from pycct.view.meshes import capsule, triangles_of
from pycct.view.tracks import Mover, Tracks, characters_of, level_of, moving_of, sample, slope_limit_of

__all__ = ["open_page", "still", "to_html"]

_LEVEL, _STEEP, _MOVING = (0.80, 0.77, 0.70), (0.81, 0.56, 0.52), (0.55, 0.62, 0.72)


def to_html(
    what: Recording | Tracks | Scene, path: str | os.PathLike[str], fps: float = 60.0, title: str = "pycct"
) -> None:
    """Write a page that shows a recording with a timeline, or a scene as it is now.

    The file contains everything it shows and loads nothing, so it opens from a disk and can be
    embedded. It needs a browser with WebGL 2. A click on a character shows its id, place and speed.
    Steep triangles are red.

    Parameters
    ----------
    what : Recording, Tracks or Scene
        What to show.
    path : str or path-like
        File to write.
    fps : float
        Ticks per second.
    title : str
        Title of the page.
    """
    if isinstance(what, Scene):
        what = still(what)
    tracks = what if isinstance(what, Tracks) else sample(what, fps)
    data = json.dumps(_content(tracks, title), separators=(",", ":"))
    template = files("pycct.view").joinpath("page.html").read_text(encoding="utf-8")
    # A title cannot end the script it stands in.
    Path(path).write_text(template.replace("/*DATA*/null", data.replace("<", "\\u003c")), encoding="utf-8")


def open_page(what: Recording | Tracks | Scene) -> Path:
    """Write a page to the folder for temporary files, and open it in the browser.

    Parameters
    ----------
    what : Recording, Tracks or Scene
        As of `to_html`.

    Returns
    -------
    pathlib.Path
        The page.
    """
    number, name = tempfile.mkstemp(prefix="pycct-", suffix=".html")
    os.close(number)
    to_html(what, name)
    webbrowser.open(Path(name).as_uri())
    return Path(name)


def still(scene: Scene) -> Tracks:
    """A scene and its characters as they are: tracks of one tick."""
    movers = [Mover(triangles_of(a.shape) * np.array(a.scale), np.array([a.position]), np.array([a.rotation]))
              for a in moving_of(scene)]
    now = characters_of(scene.crowds, scene.characters)
    return Tracks(np.zeros(1), level_of(scene), now.ids, now.positions[None], now.radii, now.heights, movers,
                  slope_limit_of(scene.crowds, scene.characters))


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def _content(tracks: Tracks, title: str) -> dict[str, Any]:
    """What the page reads."""
    steep = tracks.steep()
    sizes = sorted(set(zip(tracks.radii.tolist(), tracks.heights.tolist(), strict=True)))
    groups = []
    for radius, height in sizes:
        mine = np.flatnonzero((tracks.radii == radius) & (tracks.heights == height))
        groups.append({"mesh": _packed(capsule(radius, height)), "members": mine.tolist(), "radius": radius,
                       "height": height})
    bounds = np.concatenate([tracks.level.reshape(-1, 3), tracks.positions.reshape(-1, 3), np.zeros((1, 3))])
    # Planes are drawn far out: what matters is where characters are.
    seen = tracks.positions.reshape(-1, 3)
    seen = seen[np.isfinite(seen[:, 0])]
    near = seen if len(seen) else bounds[np.isfinite(bounds[:, 0])]
    return {
        "title": title, "ticks": len(tracks.times), "fps": _rate(tracks.times),
        "level": _packed(tracks.level[~steep]), "steep": _packed(tracks.level[steep]),
        "ids": tracks.ids.tolist(), "positions": _packed(tracks.positions), "groups": groups,
        "movers": [{"mesh": _packed(m.triangles), "positions": _packed(m.positions), "rotations": _packed(m.rotations)}
                   for m in tracks.movers],
        "middle": near.mean(axis=0).tolist(), "size": float(max(np.ptp(near, axis=0).max(), 4.0)),
        "colours": [[round(c ** (1 / 2.2), 3) for c in colour] for colour in COLOURS],
        "ground": _LEVEL, "slope": _STEEP, "moving": _MOVING,
    }


def _rate(times: NDArray[np.float64]) -> float:
    return float(1.0 / (times[1] - times[0])) if len(times) > 1 else 60.0
