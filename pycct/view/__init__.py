"""Pictures of scenes and characters: animated glTF, and pages for the browser in one file.

The modules of this folder import the public modules of pycct, `pycct.record` and NumPy only.
`meshes` turns shapes into triangles, `tracks` samples a recording, `gltf` and `page` write files.
Nothing here listens on a network: a page is one file that the browser opens.

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
from pycct.view.page import to_html, view
from pycct.view.tracks import Tracks, sample

__all__ = ["Tracks", "sample", "to_glb", "to_html", "view"]
