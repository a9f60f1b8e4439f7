"""Live views: a recording with a timeline, or the scene of a running program."""
from __future__ import annotations

import threading
import time
import webbrowser
from collections import deque
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd, Scene
from pycct.record import Recording, replay
from pycct.record.player import as_controller
from pycct.record.values import load_cooked, save_cooked
from pycct.view.page import still
from pycct.view.stage import Stage
from pycct.view.tracks import Characters, characters_of, moving_of, sample

__all__ = ["SPEEDS", "RecordingViewer", "SceneViewer", "Viewer", "view"]

SPEEDS = {"0.1x": 0.1, "0.5x": 0.5, "1x": 1.0, "4x": 4.0}
PATH_MOVES = 500_000  # a longer recording is not replayed for its paths: they grow while it is played
_TRAIL = 600  # ticks of a path that grows
_TRAILS = 10  # ticks between two drawings of it
_EXPLAIN_SECONDS = 0.25
_HISTORY = 1200  # ticks of a running program that its timeline holds
_HISTORY_MOVES = 1_000_000  # ... and moves of all characters together: 24 MB
_POSE = 16  # a pose of a moving actor takes as much memory as so many moves


def _hits(crowds: list[Crowd], heroes: list[CharacterController], id: int) -> NDArray[np.float64]:
    """Positions and normals of the hits of a character's last move, (n, 2, 3)."""
    for crowd in crowds:
        try:
            hits = crowd.hits
        except RuntimeError:
            # Its last move did not record them.
            continue
        hits = hits[hits["id"] == id]
        if len(hits):
            return np.stack([hits["position"], hits["normal"]], axis=1)
    found = [(hit.position, hit.normal) for h in heroes if h.id == id for hit in h.hits]
    return np.array(found, float).reshape(-1, 2, 3)


def _words(scene: Scene, id: int) -> str:
    """The state of a character."""
    who = scene.character(id)
    if who is None:
        return f"character {id} does not exist"
    ground: Any = None
    if isinstance(who, CharacterController):
        ground = who.state.standing_on
    else:
        number = int(who.crowd.standing_on[who.index])
        ground = None if number < 0 else scene.actor(number) or scene.character(number)
    x, y, z = who.position
    speed = float(np.linalg.norm(who.velocity))
    return (f"character {id}\nat ({x:.3f}, {y:.3f}, {z:.3f}) m, {speed:.2f} m/s\n{who.flags!r}\n"
            f"stands on {ground}\nradius {who.radius:g} m, height {who.height:g} m")


class Viewer:
    """A page in the browser; `view` makes one.

    Attributes
    ----------
    address : str
        What to open in the browser.
    """

    def __init__(self, host: str, port: int, open_browser: bool) -> None:
        self.stage = Stage(host, port)
        self.address = self.stage.address
        self.chosen: int | None = None
        print(f"pycct: open {self.address} in the browser", flush=True)
        if open_browser:
            webbrowser.open(self.address)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server."""
        self.stage.close()

    def wait(self) -> None:
        """Return when the user interrupts the program (Ctrl+C), and close the view."""
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            self.close()

    def _begin(self, scene: Scene) -> None:
        """Draw the level."""
        now = still(scene)
        self.stage.level(now.level, now.steep())
        self.stage.look_at(now.positions[0] if len(now.ids) else now.level.reshape(-1, 3))

    def _draw(self, scene: Scene, now: Characters) -> None:
        """Draw what moves."""
        self.stage.characters(*now, self.chosen)
        self.stage.movers(moving_of(scene))


class RecordingViewer(Viewer):
    """A recording with a timeline. A thread of its own replays it."""

    def __init__(self, recording: Recording, fps: float, host: str, port: int, open_browser: bool) -> None:
        self.recording = replay(recording.path)
        # Explaining leaves a recording between two ticks.
        self.explainer = replay(recording.path)
        super().__init__(host, port, False)
        self.fps, self.speed, self.playing, self.ahead = fps, 1.0, False, 0.0
        stage, ticks = self.stage, self.recording.ticks
        self.play = stage.button("Play")
        stage.button("Back")
        stage.button("Step")
        self.slider = stage.slider("tick", 0, max(ticks, 1), 1, 0)
        stage.choice("speed", list(SPEEDS), "1x")
        self.text = stage.text()
        stage.write(self.text, "Click on a character.")
        self._begin(self.recording.scene)
        self.whole = self.recording.moves <= PATH_MOVES
        if self.whole:
            stage.paths(sample(self.recording, fps).positions)
        self.trail: deque[NDArray[np.float64]] = deque(maxlen=_TRAIL)
        self.shown = -1
        self._show(0)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, name="pycct-view", daemon=True)
        self.thread.start()
        if open_browser:
            webbrowser.open(self.address)

    def close(self) -> None:
        """Stop the server and the thread, and close the file."""
        self.stopped.set()
        self.thread.join()
        super().close()
        self.recording.close()
        self.explainer.close()

    def _run(self) -> None:
        before = time.monotonic()
        while not self.stopped.wait(1 / 60):
            now = time.monotonic()
            # A slow machine plays slowly: it does not jump.
            passed, before = min(now - before, 0.1), now
            try:
                for name, value in self.stage.requests():
                    self._request(name, value)
                if self.playing:
                    self.ahead += passed * self.fps * self.speed
                    whole = int(self.ahead)
                    self.ahead -= whole
                    if whole:
                        self._show(min(self.shown + whole, self.recording.ticks))
                    if self.shown == self.recording.ticks:
                        self._toggle(False)
            except ValueError as problem:
                self._toggle(False)
                self.stage.write(self.text, str(problem))

    def _request(self, name: str, value: Any) -> None:
        if name == "Play":
            if not self.playing and self.shown == self.recording.ticks:
                self._show(0)
            self._toggle(not self.playing)
        elif name == "speed":
            self.speed = SPEEDS[value]
        else:
            if name == "character":
                self.chosen = value
            self._toggle(False)
            wanted = {"tick": value, "Back": self.shown - 1, "Step": self.shown + 1}.get(name, self.shown)
            self._show(min(max(int(wanted), 0), self.recording.ticks))

    def _toggle(self, playing: bool) -> None:
        stopped = self.playing and not playing
        self.playing, self.ahead = playing, 0.0
        self.play.label = "Pause" if playing else "Play"
        if stopped:
            self._explain()

    def _show(self, tick: int) -> None:
        recording = self.recording
        if tick != self.shown:
            # Hits are those of a move: the last tick is replayed.
            if tick == 0 or recording.tick != tick:
                recording.seek(max(tick - 1, 0))
                if tick > 0:
                    recording.record_hits = True
                    recording.step()
                    recording.record_hits = False
            self._grow(tick)
            self.shown = tick
            self.slider.value = tick
        with self.stage.server.atomic():
            self._draw(recording.scene, characters_of(recording.crowds, recording.controllers))
            hits = np.zeros((0, 2, 3))
            if self.chosen is not None and tick > 0:
                hits = _hits(recording.crowds, recording.controllers, self.chosen)
            self.stage.hits(hits[:, 0], hits[:, 1])
        self._explain()

    def _grow(self, tick: int) -> None:
        """Add to the paths of a recording that is too long to replay for them."""
        positions = self.recording.members()[1]
        if self.whole:
            return
        if not 0 < tick - self.shown <= _TRAILS or (self.trail and self.trail[-1].shape != positions.shape):
            self.trail.clear()
        self.trail.append(positions)
        if len(self.trail) > 1 and tick % _TRAILS == 0:
            self.stage.paths(np.stack(list(self.trail)))

    def _explain(self) -> None:
        """Show the state of the chosen character, and why it moved so when nothing plays."""
        if self.chosen is None:
            return
        lines = [f"tick {self.shown} of {self.recording.ticks}", _words(self.recording.scene, self.chosen)]
        if not self.playing and self.shown > 0:
            try:
                lines += ["", str(self.explainer.explain(self.shown - 1, self.chosen))]
            except KeyError as problem:
                lines += ["", problem.args[0]]
        self.stage.write(self.text, "\n".join(lines))


class _Moment(NamedTuple):
    """A tick of a running program: what is drawn of it, and the explanation shown then."""

    known: Characters
    poses: list[tuple[int, Any, Any]]
    explained: str


class SceneViewer(Viewer):
    """The scene of a running program, which calls `update` after its moves.

    A timeline holds the last ticks. Pausing it stops the picture, not the program.
    """

    def __init__(self, scene: Scene, crowd: Crowd | None, host: str, port: int, open_browser: bool) -> None:
        if crowd is not None and (crowd.scene is not scene or crowd.worlds is not None):
            raise ValueError("crowd must belong to the scene and have one world")
        super().__init__(host, port, open_browser)
        self.scene = scene
        self.play = self.stage.button("Pause")
        for name in ("Back", "Step", "Now"):
            self.stage.button(name)
        self.slider = self.stage.slider("ticks ago", 0, _HISTORY - 1, 1, 0)
        self.stage.choice("speed", list(SPEEDS), "1x")
        self.text = self.stage.text()
        self.stage.write(self.text, "Click on a character.")
        self.explained = ""
        self.due = self.drawn = 0.0
        self.static: list[int] | None = None
        self.trail: deque[NDArray[np.float64]] = deque(maxlen=_TRAIL)
        self.updates = 0
        # The tick that is shown, None: the present; and whether the past is played.
        self.shown: int | None = None
        self.playing, self.speed, self.ahead = False, 1.0, 0.0
        self.history: deque[_Moment] = deque(maxlen=_HISTORY)
        self.mine = [c for c in scene.crowds if c.journal is None and c.worlds is None]
        for c in self.mine:
            c.journal = self._listen
        self.update()

    def close(self) -> None:
        """Stop the server, and leave the journals of the crowds."""
        for crowd in self.mine:
            if crowd.journal == self._listen:
                crowd.journal = None
        self.mine = []
        super().close()

    def wait(self) -> None:
        """Serve the timeline until the user interrupts the program (Ctrl+C); close the view."""
        try:
            while True:
                self._answer()
                self._serve()
                time.sleep(1 / 60)
        except KeyboardInterrupt:
            self.close()

    def update(self) -> None:
        """Draw the present; call it after each tick. It draws at most 60 times a second."""
        # A request refers to the tick on the page, which is the one before.
        self._answer()
        known = characters_of(self.scene.crowds, self.scene.characters)
        last = self.history[-1].known if self.history else known
        # Ticks share what rarely changes.
        shared = {name: getattr(last, name) for name in ("ids", "radii", "heights")
                  if np.array_equal(getattr(last, name), getattr(known, name))}
        known = known._replace(**shared)
        poses = [(a.id, a.position, a.rotation) for a in moving_of(self.scene)]
        if self.history and poses == self.history[-1].poses:
            poses = self.history[-1].poses
        each = len(known.ids) + _POSE * len(poses)
        while len(self.history) > 1 and (len(self.history) + 1) * each > _HISTORY_MOVES:
            self.history.popleft()
        self.history.append(_Moment(known, poses, self.explained))
        self.updates += 1
        self._serve()

    def _answer(self) -> None:
        """Carry out the requests of the page."""
        for name, value in self.stage.requests():
            self._request(name, value)

    def _serve(self) -> None:
        """Draw, at most 60 times a second."""
        now = time.monotonic()
        passed = now - self.drawn
        if passed < 1 / 60:
            return
        self.drawn = now
        if self.playing and self.shown is not None:
            self.ahead += min(passed, 0.1) * 60 * self.speed
            self._go(self.shown + int(self.ahead), playing=True)
            self.ahead -= int(self.ahead)
        if self.shown is None:
            self._draw_present(now)
        else:
            # What is older than the history is gone.
            self.shown = max(self.shown, self.updates - len(self.history) + 1)
            self._draw_past(self.shown)
        ago = 0 if self.shown is None else self.updates - self.shown
        if self.slider.value != ago:
            self.slider.value = ago

    def _request(self, name: str, value: Any) -> None:
        here = self.updates if self.shown is None else self.shown
        if name == "character":
            self.chosen, self.explained, self.due = value, "", 0.0
        elif name == "speed":
            self.speed = SPEEDS[value]
        elif name == "Now":
            self._go(None)
        elif name == "Pause":
            self._go(here, playing=self.shown is not None and not self.playing)
        elif name == "ticks ago":
            self._go(self.updates - int(value) if value >= 1 else None)
        else:
            self._go(here + (1 if name == "Step" else -1))

    def _go(self, tick: int | None, playing: bool = False) -> None:
        """Show a tick of the history, None: the present, which is also where playing ends."""
        if tick is not None and playing and tick >= self.updates:
            tick = None
        self.shown = None if tick is None else min(max(tick, self.updates - len(self.history) + 1), self.updates)
        self.playing = playing and self.shown is not None
        self.play.label = "Pause" if self.shown is None or self.playing else "Play"
        if not self.playing:
            self.ahead = 0.0

    def _draw_present(self, now: float) -> None:
        crowds, heroes = self.scene.crowds, self.scene.characters
        known = self.history[-1].known
        static = [a.id for a in self.scene.actors if a.body == "static" and not a.trigger]
        if static != self.static:
            self._begin(self.scene)
            self.static = static
        if self.trail and self.trail[-1].shape != known.positions.shape:
            self.trail.clear()
        self.trail.append(known.positions)
        with self.stage.server.atomic():
            self._draw(self.scene, known)
            if self.updates % _TRAILS == 0:
                self.stage.paths(np.stack(list(self.trail)))
            if self.chosen is not None:
                hits = _hits(crowds, heroes, self.chosen)
                self.stage.hits(hits[:, 0], hits[:, 1])
                self._explain(heroes, now)

    def _draw_past(self, tick: int) -> None:
        moment = self.history[tick - self.updates - 1]
        with self.stage.server.atomic():
            self.stage.characters(*moment.known, self.chosen)
            self.stage.poses(moment.poses)
            self.stage.hits(np.zeros((0, 3)), np.zeros((0, 3)))
        lines = [f"{self.updates - tick} ticks ago"]
        at = np.flatnonzero(moment.known.ids == self.chosen)
        if len(at):
            x, y, z = moment.known.positions[at[0]]
            lines += [f"character {self.chosen}\nat ({x:.3f}, {y:.3f}, {z:.3f}) m", "", moment.explained]
        self.stage.write(self.text, "\n".join(lines))

    def _explain(self, heroes: list[CharacterController], now: float) -> None:
        assert self.chosen is not None
        for hero in heroes:
            if hero.id == self.chosen and now >= self.due:
                self.explained = str(hero.explain_last() or "")
                self.due = now + _EXPLAIN_SECONDS
        who = self.scene.character(self.chosen)
        missing = who is not None and not isinstance(who, CharacterController) and who.crowd not in self.mine
        note = "no explanation: the journal of the crowd is in use" if missing else self.explained
        self.stage.write(self.text, f"{_words(self.scene, self.chosen)}\n\n{note}")

    def _listen(self, target: Any, name: str, arguments: dict[str, Any]) -> None:
        """Explain the coming move of the chosen member of a crowd, on a copy of everything."""
        if name != "move" or self.chosen is None or time.monotonic() < self.due:
            return
        self.due = time.monotonic() + _EXPLAIN_SECONDS
        if self.chosen not in target.ids:
            return
        row = target.index_of(self.chosen)
        active = arguments.get("active")
        if active is not None and not np.asarray(active)[row]:
            return
        copy = load_cooked(save_cooked(self.scene))
        crowd = Crowd(copy, np.zeros((0, 3)))
        crowd.restore(target.save(moving=True))
        hero = as_controller(crowd, row)
        self.explained = str(hero.explain(np.asarray(arguments["displacements"]).reshape(-1, 3)[row], arguments["dt"],
                                          min_distance=arguments["min_distance"]))


def view(
    what: Recording | Scene, crowd: Crowd | None = None, *, fps: float = 60.0, host: str = "127.0.0.1",
    port: int = 8080, open_browser: bool = True,
) -> Viewer:
    """Show a recording, or the scene of a running program, in the browser.

    The page shows the level (steep triangles are red), moving actors, characters and their paths. A
    click on a character shows its state, its hits as arrows, and the explanation of its move. A
    timeline has play, pause, step and speed: of a recording all its ticks, of a running program the
    last 1,200. It needs viser (``pycct[view]``).

    Parameters
    ----------
    what : Recording or Scene
        What to show. A scene is drawn when the program calls ``update()`` of the result.
    crowd : Crowd, optional
        A crowd of the scene. All crowds and controllers of the scene are shown, with or without it.
    fps : float
        Ticks per second of a recording.
    host : str
        Address to listen on. The default accepts connections of this machine only.
    port : int
        First port to try; the next free one is used.
    open_browser : bool
        Whether to open the page. Its address is printed in any case.

    Returns
    -------
    Viewer
        With ``address``, ``wait()``, ``close()``, and ``update()`` for a scene. It is a context
        manager that closes itself.

    Raises
    ------
    ModuleNotFoundError
        viser is missing.
    OSError
        The host is no address of this machine.
    ValueError
        The crowd belongs to another scene or has many worlds, or ``fps`` is not positive.

    Notes
    -----
    A page sends numbers and the names of widgets; nothing of it is evaluated. Pages of other sites
    cannot connect. The explanation of a
    crowd's member uses the crowd's journal; while a recording runs, the page has no explanation.
    """
    if not fps > 0.0:
        raise ValueError(f"fps must be > 0, got {fps}")
    if isinstance(what, Scene):
        return SceneViewer(what, crowd, host, port, open_browser)
    if crowd is not None:
        raise TypeError("crowd is for a scene; a recording has its own")
    if not isinstance(what, Recording):
        raise TypeError(f"what must be a Recording or a Scene, not {type(what).__name__}")
    return RecordingViewer(what, fps, host, port, open_browser)
