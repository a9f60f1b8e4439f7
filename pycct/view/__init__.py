"""Pictures of scenes and characters: animated glTF, and pages for the browser in one file.

The modules of this folder import the public modules of pycct, `pycct.record` and NumPy; live views
also viser. `meshes` turns shapes into triangles, `tracks` samples a recording, `gltf` and `page`
write files. `stage` serves a page, `live` shows recordings and running programs on it, and `play`
walks through a level. The server listens on the loopback interface unless `host` names another
address.

Examples
--------
>>> from pycct.record import replay
>>> from pycct.view import to_glb, to_html
>>> recording = replay("walk.pycctrec")          # doctest: +SKIP
>>> to_glb(recording, "walk.glb")                # doctest: +SKIP
>>> to_html(recording, "walk.html")              # doctest: +SKIP
"""

from __future__ import annotations

from pycct.view.gltf import to_glb
from pycct.view.live import Viewer, view
from pycct.view.page import open_page, to_html
from pycct.view.play import Game
from pycct.view.tracks import Tracks, sample

__all__ = ["Game", "Tracks", "Viewer", "open_page", "sample", "to_glb", "to_html", "view"]
