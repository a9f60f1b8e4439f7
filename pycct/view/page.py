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

from pycct import Crowd, Scene
from pycct.record import Recording
from pycct.view.gltf import COLOURS
from pycct.view.meshes import capsule, triangles_of
from pycct.view.tracks import Mover, Tracks, level_of, sample

__all__ = ["to_html", "view"]

_LEVEL, _STEEP, _MOVING = (0.80, 0.77, 0.70), (0.81, 0.56, 0.52), (0.55, 0.62, 0.72)


def to_html(
    recording: Recording | Tracks, path: str | os.PathLike[str], fps: float = 60.0, title: str = "pycct"
) -> None:
    """Write a page that shows a recording, with play, pause, step, speed and a timeline.

    The file contains everything it shows and loads nothing, so it opens from a disk and can be
    embedded. It needs a browser with WebGL 2. A click on a character shows its id, place and speed.
    Steep triangles are red.

    Parameters
    ----------
    recording : Recording or Tracks
        What to show.
    path : str or path-like
        File to write.
    fps : float
        Ticks per second.
    title : str
        Title of the page.
    """
    tracks = recording if isinstance(recording, Tracks) else sample(recording, fps)
    data = json.dumps(_content(tracks, title), separators=(",", ":"))
    template = files("pycct.view").joinpath("page.html").read_text(encoding="utf-8")
    # A title cannot end the script it stands in.
    Path(path).write_text(template.replace("/*DATA*/null", data.replace("<", "\\u003c")), encoding="utf-8")


def view(what: Recording | Tracks | Scene, crowd: Crowd | None = None, open_browser: bool = True) -> Path:
    """Show a recording, or a scene with a crowd as they are now, in the browser.

    Parameters
    ----------
    what : Recording, Tracks or Scene
        What to show.
    crowd : Crowd, optional
        With a scene: its characters.
    open_browser : bool
        Whether to open the page. The page is a file; no server is started.

    Returns
    -------
    pathlib.Path
        The page, in the folder for temporary files.
    """
    if isinstance(what, Scene):
        what = _still(what, crowd)
    elif crowd is not None:
        raise TypeError("crowd is for a scene; a recording has its own")
    number, name = tempfile.mkstemp(prefix="pycct-", suffix=".html")
    os.close(number)
    to_html(what, name)
    if open_browser:
        webbrowser.open(Path(name).as_uri())
    return Path(name)


def _still(scene: Scene, crowd: Crowd | None) -> Tracks:
    """A scene and its characters as they are."""
    movers = [Mover(triangles_of(a.shape) * np.array(a.scale), np.array([a.position]), np.array([a.rotation]))
              for a in scene.actors if a.body != "static"]
    heroes = scene.characters
    ids = [h.id for h in heroes]
    places = [h.position for h in heroes]
    radii, heights = [h.radius for h in heroes], [h.height for h in heroes]
    if crowd is not None:
        ids += crowd.ids.tolist()
        places += [tuple(p) for p in crowd.positions.tolist()]
        radii += crowd.get("radius").tolist()
        heights += crowd.get("height").tolist()
    return Tracks(np.zeros(1), level_of(scene), np.array(ids, np.int64), np.array(places, float).reshape(1, -1, 3),
                  np.array(radii), np.array(heights), movers)


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
