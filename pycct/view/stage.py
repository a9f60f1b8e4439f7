"""A page in the browser that a program draws on, served by viser."""
from __future__ import annotations

import contextlib
import html
import io
import math
import queue
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Actor
from pycct.view.gltf import COLOURS
from pycct.view.guard import guarded
from pycct.view.meshes import Triangles, capsule, triangles_of

__all__ = ["Stage"]

_LEVEL, _STEEP, _MOVING, _CHOSEN, _HIT = (204, 196, 178), (206, 143, 133), (140, 158, 184), (250, 200, 0), (20, 20, 20)
_ARROW = 0.5  # metres
# Requests of pages that wait: more are dropped, so that no page can fill the memory.
_WAITING = 1000


def _viser() -> Any:
    try:
        import viser
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "viser":
            raise
        raise ModuleNotFoundError(
            "live views need viser: pip install viser, or pip install 'pycct[view]'; "
            "pycct.view.to_html writes a page without it", name="viser") from None
    return viser


class Stage:
    """A server, the drawing on its pages, and the requests of these pages.

    One thread calls the methods. A page sends numbers and the names of widgets; they wait in a
    queue until `requests` returns them, and no other effect is possible.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        First port to try; the next free one is used.

    Attributes
    ----------
    address : str
        What to open in the browser.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8080) -> None:
        base: Any = _viser().ViserServer

        class Server(base):  # type: ignore[misc]
            def request_share_url(self, verbose: bool = True) -> None:
                """Do nothing: a page can ask for a tunnel to the public network."""

        # A host that is not one of this machine fails here; viser would try other ports.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.bind((host, 0))
        # viser prints a box and its thread a line.
        with contextlib.redirect_stdout(io.StringIO()), guarded(host) as guards:
            self.server = Server(host=host, port=port, verbose=False)
        if not guards:
            self.server.stop()
            raise RuntimeError("this version of viser serves pages in a way that cannot be guarded against other sites")
        name = "localhost" if host in ("0.0.0.0", "::", "127.0.0.1") else f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{self.server.get_port()}"
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        # Without a graphics card, shadows and an environment cost most of a frame.
        self.server.scene.configure_default_lights(cast_shadow=False)
        self.server.scene.configure_environment_map(None)
        self.server.scene.add_light_ambient("/light", intensity=1.0)
        self._waiting: queue.Queue[tuple[str, Any]] = queue.Queue(_WAITING)
        self._groups: list[tuple[NDArray[np.intp], Any]] = []
        self._drawn: tuple[bytes, ...] = ()
        self._ids: NDArray[np.int64] = np.zeros(0, np.int64)
        self._chosen: int | None = None
        self._movers: dict[int, Any] = {}
        self._arrows: Any = None
        self._paths: Any = None
        self._hit = b""

    def close(self) -> None:
        """Stop the server."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # Requests

    def _ask(self, name: str, value: Any = None) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait((name, value))

    def requests(self) -> Iterator[tuple[str, Any]]:
        """Names of widgets that were used, with their values, in order."""
        while True:
            try:
                yield self._waiting.get_nowait()
            except queue.Empty:
                return

    def button(self, name: str) -> Any:
        """Add a button."""
        button = self.server.gui.add_button(name)
        button.on_click(lambda event: self._ask(name))
        return button

    def slider(self, name: str, low: float, high: float, step: float, value: float) -> Any:
        """Add a slider; only finite numbers in its range are requests."""
        slider = self.server.gui.add_slider(name, low, high, step, value)

        def changed(event: Any) -> None:
            # A change by the program is one of no page.
            wanted = event.target.value
            if event.client is not None and isinstance(wanted, int | float) and math.isfinite(wanted):
                self._ask(name, min(max(wanted, low), high))

        slider.on_update(changed)
        return slider

    def choice(self, name: str, options: Sequence[str], value: str) -> Any:
        """Add a list to choose from; only its options are requests."""
        choice = self.server.gui.add_dropdown(name, tuple(options), initial_value=value)

        def changed(event: Any) -> None:
            wanted = event.target.value
            if event.client is not None and wanted in options:
                self._ask(name, wanted)

        choice.on_update(changed)
        return choice

    def text(self) -> Any:
        """Add a text, to be set with `write`."""
        return self.server.gui.add_html("")

    @staticmethod
    def write(text: Any, lines: str) -> None:
        """Set a text; it is shown as it is, without any mark-up."""
        content = f'<pre style="white-space:pre-wrap;font-size:11px;padding:0 8px">{html.escape(lines)}</pre>'
        if text.content != content:
            text.content = content

    def on_ground(self) -> None:
        """Make clicks on the level requests, with origin and direction of the ray."""
        for name, modifier in (("ground", None), ("ground with shift", "shift")):

            def clicked(event: Any, name: str = name) -> None:
                ray = np.array([event.ray_origin, event.ray_direction], float)
                if ray.shape == (2, 3) and np.isfinite(ray).all():
                    self._ask(name, ray)

            self.server.scene.on_click(modifier=modifier)(clicked)

    # Drawing

    def level(self, triangles: Triangles, steep: NDArray[np.bool_]) -> None:
        """Draw the level; steep triangles have another colour."""
        for name, part, colour in (("/level", triangles[~steep], _LEVEL), ("/steep", triangles[steep], _STEEP)):
            if len(part):
                self.server.scene.add_mesh_simple(name, part.reshape(-1, 3), np.arange(3 * len(part)).reshape(-1, 3),
                                                  color=colour, flat_shading=True, side="double",
                                                  cast_shadow=False, receive_shadow=False)
            else:
                self.server.scene.remove_by_name(name)

    def look_at(self, places: NDArray[np.float64]) -> None:
        """Point the camera of new pages at places (n, 3), metres."""
        places = places[np.isfinite(places).all(axis=1)]
        if not len(places):
            places = np.zeros((1, 3))
        middle = places.mean(axis=0)
        far = max(float(np.ptp(places, axis=0).max()), 4.0)
        self.server.initial_camera.look_at = tuple(middle)
        self.server.initial_camera.position = tuple(middle + far * np.array([0.6, -0.9, 0.8]))

    def movers(self, actors: Sequence[Actor]) -> None:
        """Draw moving actors where they are."""
        for id in self._movers.keys() - {a.id for a in actors}:
            self._movers.pop(id).remove()
        for actor in actors:
            handle = self._movers.get(actor.id)
            if handle is None:
                triangles = triangles_of(actor.shape) * np.array(actor.scale)
                handle = self._movers[actor.id] = self.server.scene.add_mesh_simple(
                    f"/moving/{actor.id}", triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3),
                    color=_MOVING, flat_shading=True, side="double")
            x, y, z, w = actor.rotation
            if not np.array_equal(handle.position, actor.position):
                handle.position = actor.position
            if not np.array_equal(handle.wxyz, (w, x, y, z)):
                handle.wxyz = (w, x, y, z)

    def poses(self, poses: Sequence[tuple[int, Any, Any]]) -> None:
        """Put moving actors that are drawn at other poses: (id, position, rotation)."""
        for id, position, (x, y, z, w) in poses:
            handle = self._movers.get(id)
            if handle is not None:
                handle.position, handle.wxyz = position, (w, x, y, z)

    def characters(self, ids: NDArray[np.int64], positions: NDArray[np.float64], radii: NDArray[np.float64],
                   heights: NDArray[np.float64], chosen: int | None = None) -> None:
        """Draw characters: one batch of capsules for each size."""
        drawn = (ids.tobytes(), radii.tobytes(), heights.tobytes())
        if drawn != self._drawn:
            for _, handle in self._groups:
                handle.remove()
            self._drawn, self._ids = drawn, ids.copy()
            sizes, group = np.unique(np.stack([radii, heights], axis=1), axis=0, return_inverse=True)
            self._groups = [self._group(k, size, np.flatnonzero(group.ravel() == k), positions)
                            for k, size in enumerate(sizes.tolist())]
        elif chosen != self._chosen:
            for rows, handle in self._groups:
                handle.batched_colors = self._colours(rows, chosen)
        self._chosen = chosen
        for rows, handle in self._groups:
            places = positions[rows].astype(np.float32)
            if not np.array_equal(places, handle.batched_positions):
                handle.batched_positions = places

    def _colours(self, rows: NDArray[np.intp], chosen: int | None) -> NDArray[np.uint8]:
        hues = (255 * np.array(COLOURS) ** (1 / 2.2)).astype(np.uint8)
        colours: NDArray[np.uint8] = hues[self._ids[rows] % len(hues)]
        colours[self._ids[rows] == chosen] = _CHOSEN
        return colours

    def _group(self, number: int, size: list[float], rows: NDArray[np.intp], positions: NDArray[np.float64]) -> Any:
        triangles = capsule(*size)
        turns = np.tile(np.array([1.0, 0, 0, 0], np.float32), (len(rows), 1))
        handle = self.server.scene.add_batched_meshes_simple(
            f"/characters/{number}", triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3), turns,
            positions[rows].astype(np.float32), batched_colors=self._colours(rows, self._chosen), lod="off",
            flat_shading=True, cast_shadow=False, receive_shadow=False)
        ids = self._ids[rows].tolist()

        def clicked(event: Any) -> None:
            instance = event.instance_index
            if isinstance(instance, int) and 0 <= instance < len(ids):
                self._ask("character", ids[instance])

        handle.on_click(clicked)
        return rows, handle

    def hits(self, positions: NDArray[np.float64], normals: NDArray[np.float64]) -> None:
        """Draw hits (n, 3) as arrows along their normals."""
        drawn = positions.tobytes() + normals.tobytes()
        if drawn == self._hit:
            return
        self._hit = drawn
        if self._arrows is not None:
            self._arrows.remove()
            self._arrows = None
        if len(positions):
            self._arrows = self.server.scene.add_arrows(
                "/hits", np.stack([positions, positions + _ARROW * normals], axis=1), _HIT)

    def paths(self, tracks: NDArray[np.float64]) -> None:
        """Draw the paths of characters: positions (T, n, 3), NaN where one does not exist."""
        lines = np.stack([tracks[:-1], tracks[1:]], axis=2).reshape(-1, 2, 3)
        lines = lines[np.isfinite(lines).all(axis=(1, 2))]
        if self._paths is not None:
            self._paths.remove()
            self._paths = None
        if len(lines):
            self._paths = self.server.scene.add_line_segments("/paths", lines.astype(np.float32), (90, 90, 110))
