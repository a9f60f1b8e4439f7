"""Walk through a level in the browser, and try parameters that act at once."""
from __future__ import annotations

import math
import time
import webbrowser
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Scene
from pycct.toolbox import cosine
from pycct.view.page import still
from pycct.view.stage import Stage
from pycct.view.tracks import moving_of

__all__ = ["Game"]

DT = 1.0 / 60.0
GRAVITY = 9.81
SPEED, JUMP = 4.0, 4.5  # metres per second
ARRIVED = 0.1  # metres
CROUCHED = 0.3  # share of the height
PATIENCE = 1.0  # seconds without progress after which the character gives up
FAR = 1000.0  # metres that a click reaches, and below which a fall ends at the start
EXPLAIN_SECONDS = 0.25
_TRAIL, _TRAILS = 600, 10  # ticks of the path, and between two drawings of it
# Name, attribute, range, step, initial value.
_SLIDERS = (
    ("radius, m", "radius", 0.1, 1.0, 0.01, 0.4),
    ("height, m", "height", 0.0, 2.0, 0.01, 1.0),
    ("step offset, m", "step_offset", 0.0, 1.0, 0.01, 0.5),
    ("slope limit, degrees", "slope_limit", 0.0, 85.0, 1.0, 45.0),
    ("contact offset, m", "contact_offset", 0.001, 0.1, 0.001, 0.01),
)
_RULES = ("physx", "document", "robust")


class Game:
    """One character in a level, with a page.

    A click on the ground sets a goal, a click with Shift puts the character there. Buttons jump and
    crouch. Sliders set parameters between two ticks. The page shows the explanation of the last
    move in words.

    Parameters
    ----------
    scene : Scene
        The level.
    start : (3,) floats
        Position of the feet, metres.
    host, port, open_browser
        As of `view`.

    Attributes
    ----------
    address : str
        What to open in the browser.
    character : CharacterController
        The character.
    """

    def __init__(self, scene: Scene, start: Sequence[float], host: str = "127.0.0.1", port: int = 8080,
                 open_browser: bool = True) -> None:
        self.scene = scene
        self.start = (float(start[0]), float(start[1]), float(start[2]))
        self.settings: dict[str, Any] = {attribute: value for _, attribute, *_, value in _SLIDERS}
        self.settings["slope_limit"] = cosine(math.radians(self.settings["slope_limit"]))
        self.settings["rules"] = "physx"
        self.character = CharacterController(scene, **self.settings)
        self.character.foot_position = self.start
        self.goal: NDArray[np.float64] | None = None
        self.fall = 0.0
        self.crouching = False
        self.best, self.waited = math.inf, 0.0
        self.status = "Click on the ground to walk there. Shift and a click put the character there."
        self.explained = ""
        self.due = 0.0
        self.trail: deque[tuple[float, float, float]] = deque(maxlen=_TRAIL)
        self.ticks = 0
        self.stage = Stage(host, port)
        self.address = self.stage.address
        self._page()
        print(f"pycct: open {self.address} in the browser", flush=True)
        if open_browser:
            webbrowser.open(self.address)

    def _page(self) -> None:
        stage = self.stage
        stage.on_ground()
        stage.button("Jump")
        self.crouch = stage.button("Crouch")
        stage.button("Back to the start")
        for name, _, low, high, step, value in _SLIDERS:
            stage.slider(name, low, high, step, value)
        stage.choice("rules", _RULES, "physx")
        self.text = stage.text()
        place = np.array([self.start])
        stage.look_at(np.concatenate([place - 4.0, place + 4.0]))
        self._level()
        self._draw()

    def close(self) -> None:
        """Stop the server."""
        self.stage.close()

    def run(self, seconds: float = math.inf) -> None:
        """Play until the user interrupts the program (Ctrl+C), or for some seconds."""
        end = time.monotonic() + seconds
        due = time.monotonic()
        try:
            while due < end:
                self.tick()
                due = max(due + DT, time.monotonic() - DT)
                time.sleep(max(due - time.monotonic(), 0.0))
        except KeyboardInterrupt:
            pass

    def tick(self) -> None:
        """Do what pages requested, move the character by one tick, and draw."""
        for name, value in self.stage.requests():
            try:
                self._request(name, value)
            except ValueError as problem:
                self.status = str(problem)
        self._move()
        self.ticks += 1
        self._draw()

    # Requests

    def _request(self, name: str, value: Any) -> None:
        hero = self.character
        if name in ("ground", "ground with shift"):
            hit = self.scene.raycast(tuple(value[0]), tuple(value[1]), FAR)
            if hit is not None:
                self._go(hit.position, put=name != "ground")
        elif name == "Jump":
            if hero.grounded:
                self.fall = JUMP
        elif name == "Crouch":
            self._crouch()
        elif name == "Back to the start":
            self._put(self.start)
        elif name == "rules":
            hero.rules = self.settings["rules"] = value
        else:
            for label, attribute, *_ in _SLIDERS:
                if name == label:
                    self._set(attribute, float(value))

    def _go(self, place: Sequence[float], put: bool) -> None:
        if put:
            self._put(place)
        else:
            self.goal, self.best, self.waited = np.array(place, float), math.inf, 0.0
            self.status = "walks to ({:.2f}, {:.2f}, {:.2f})".format(*place)

    def _put(self, place: Sequence[float]) -> None:
        x, y, z = place
        self.goal, self.fall = None, 0.0
        self.character.foot_position = (x, y, z + self.character.contact_offset)
        self.trail.clear()
        self.status = "put at ({:.2f}, {:.2f}, {:.2f})".format(*place)

    def _crouch(self) -> None:
        """Crouch, or stand up if there is room."""
        hero = self.character
        height = self.settings["height"] * (1.0 if self.crouching else CROUCHED)
        if not hero.can_resize(height):
            self.status = "no room to stand up"
            return
        hero.resize(height)
        self.crouching = not self.crouching
        self.crouch.label = "Stand up" if self.crouching else "Crouch"

    def _set(self, attribute: str, value: float) -> None:
        """Set a parameter; the feet stay where they are."""
        hero = self.character
        if attribute == "slope_limit":
            value = cosine(math.radians(value))
        feet = hero.foot_position
        crouching = self.crouching and attribute == "height"
        setattr(hero, attribute, value * CROUCHED if crouching else value)
        hero.foot_position = feet
        self.settings[attribute] = value
        self.status = f"{attribute} is {value:.4g}"
        if attribute == "slope_limit":
            self._level()

    # Moves

    def _move(self) -> None:
        hero = self.character
        along = np.zeros(2)
        walks = self.goal is not None
        if self.goal is not None:
            along = self.goal[:2] - hero.foot_position[:2]
            distance = float(np.linalg.norm(along))
            along *= min(SPEED * DT / distance, 1.0) if distance > 0.0 else 0.0
            self._progress(distance)
        self.fall -= GRAVITY * DT
        hero.move((along[0], along[1], self.fall * DT), DT)
        if (hero.hit_down and self.fall < 0.0) or (hero.hit_up and self.fall > 0.0):
            self.fall = 0.0
        self.trail.append(hero.position)
        if hero.foot_position[2] < self.start[2] - FAR:
            self._put(self.start)
        now = time.monotonic()
        ended = walks and self.goal is None
        if ended or ((walks or not hero.grounded) and now >= self.due):
            self.explained, self.due = str(hero.explain_last()), now + EXPLAIN_SECONDS

    def _progress(self, distance: float) -> None:
        """Drop the goal once it is reached, or if the character comes no nearer to it."""
        if distance < self.best - 0.05 * SPEED * DT:
            self.best, self.waited = distance, 0.0
        else:
            self.waited += DT
        if distance < ARRIVED or self.waited > PATIENCE:
            self.status = "arrived" if distance < ARRIVED else f"stopped {distance:.2f} m before the goal"
            self.goal = None

    # Drawing

    def _level(self) -> None:
        now = still(self.scene)
        self.stage.level(now.level, now.steep())

    def _draw(self) -> None:
        hero, stage = self.character, self.stage
        with stage.server.atomic():
            stage.characters(np.array([hero.id]), np.array([hero.position]), np.array([hero.radius]),
                             np.array([hero.height]))
            stage.movers(moving_of(self.scene))
            if self.ticks % _TRAILS == 0 and self.trail and self.trail[0] != self.trail[-1]:
                stage.paths(np.array(self.trail).reshape(-1, 1, 3))
            # Standing still, it hits the ground in each tick.
            hits = hero.hits if self.goal is not None else []
            stage.hits(np.array([h.position for h in hits]).reshape(-1, 3),
                       np.array([h.normal for h in hits]).reshape(-1, 3))
        stage.write(self.text, "\n".join((self.status, "", self.parameters(), "", self.explained)))

    def parameters(self) -> str:
        """The parameters of the character as arguments of `CharacterController`."""
        return ", ".join(f"{name}={value!r}" if isinstance(value, str) else f"{name}={value:.4g}"
                         for name, value in self.settings.items())
