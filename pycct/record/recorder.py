"""``record``: write what happens to a scene and its characters."""
from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd, Scene, save_many
from pycct.record.blocks import CALLS, DONE, KEYFRAME, SCENE, Writer
from pycct.record.checks import check_of, pack_check
from pycct.record.values import encode, encode_text, pack_rows, save_cooked

__all__ = ["MOVES_BETWEEN_KEYFRAMES", "STRUCTURE", "record"]

MOVES_BETWEEN_KEYFRAMES = 30_000
_BLOCK_BYTES = 1 << 16
_BLOCK_SECONDS = 1.0
# Calls after which the scene, or the ids that it issues next, differ from the scene block.
STRUCTURE = {"add", "add_obstacle", "remove", "shift_origin", "CharacterController", "insert", "extract", "restore",
              "restore_many"}


class record:
    """Record a scene and its characters while a block runs.

    The file holds the scene as a cooked file, then every change and every move before it takes effect, a hash of the
    state for each tick, and keyframes. A thread of its own compresses and writes. A crowd's ``move`` is a tick; of
    controllers, a tick ends when one that has moved in it moves again.

    Parameters
    ----------
    path : str or path-like
        File to write. An existing file is replaced.
    scene : Scene
        Scene of the characters. Its journal must be free.
    characters : Crowd, CharacterController, or an iterable of them
        All characters of the scene.

    Raises
    ------
    ValueError
        A character of the scene is missing, belongs to another scene or has a proxy, or a journal is in use.
    TypeError
        An argument is of another type, or a crowd has many worlds.

    Notes
    -----
    ``user_data`` is not recorded. Answers of ``filter`` and ``behavior`` callbacks are, so that a replay needs no
    callback. A move that an exception of ``on_hit`` undoes is repeated all the same: `Recording.verify` names it as
    the first difference. `Crowd.run` is recorded as one tick for each of its moves, without keyframes between them.
    While a recording runs, a crowd of the scene cannot be made, nor a proxy: the call raises ValueError.

    Examples
    --------
    >>> with record("walk.pycctrec", scene, crowd):     # doctest: +SKIP
    ...     crowd.move(displacements, 1 / 60)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        scene: Scene,
        characters: Crowd | CharacterController | Iterable[Crowd | CharacterController],
    ) -> None:
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {type(scene).__name__}")
        ones = [characters] if isinstance(characters, Crowd | CharacterController) else list(characters)
        for one in ones:
            if not isinstance(one, Crowd | CharacterController):
                raise TypeError(f"characters must be crowds or controllers, not {type(one).__name__}")
            if isinstance(one, Crowd) and one.worlds is not None:
                raise TypeError("characters must not be a crowd of many worlds")
            if one.scene is not scene:
                raise ValueError("characters must belong to the scene")
        self.path = path
        self.scene = scene
        self.crowds = [one for one in ones if isinstance(one, Crowd)]
        self.heroes = {one.id: one for one in ones if isinstance(one, CharacterController)}
        if not ones:
            raise ValueError("characters must not be empty")
        if len({id(one) for one in ones}) != len(ones):
            raise ValueError("characters must be different from one another")
        missing = [h for h in scene.characters if h.id not in self.heroes]
        if missing or any(not any(c is mine for mine in self.crowds) for c in scene.crowds):
            raise ValueError("characters must contain all characters of the scene")
        if any(h.proxy is not None for h in self.heroes.values()):
            raise ValueError("characters must not have a proxy")
        self.lock = threading.RLock()
        self.writer: Writer | None = None
        self.tick = self.moves = self.since_keyframe = 0
        self.moved: set[Any] = set()
        self.out = bytearray()
        self.first_tick = self.first_move = 0
        self.written = time.monotonic()
        self.last: dict[int, NDArray[np.float64]] = {}
        self.dirty = True
        self.editing = 0

    def __enter__(self) -> record:
        if self.writer is not None:
            raise RuntimeError("a recording is entered once")
        if self.scene.journal is not None or any(c.journal is not None for c in self.crowds):
            raise ValueError("scene and characters must not have a journal yet")
        self.writer = Writer(self.path)
        try:
            self._keyframe()
            self.scene.journal = self._listen
            for k, crowd in enumerate(self.crowds):
                crowd.journal = lambda target, name, arguments, k=k: self._listen(target, name, arguments, k)
        except BaseException:
            self._let_go()
            self.writer.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.writer is not None
        self._let_go()
        with self.lock:
            try:
                self._state(b"E", True)
                self._flush()
                self.writer.append(DONE, self.tick, self.moves, b"")
            finally:
                self.writer.close()

    def _let_go(self) -> None:
        self.scene.journal = None
        for crowd in self.crowds:
            crowd.journal = None

    def _alive(self) -> list[CharacterController]:
        """All controllers of the scene, by id; they are held, so that none is collected unrecorded."""
        alive = self.scene.characters
        self.heroes = {h.id: h for h in alive}
        return [self.heroes[i] for i in sorted(self.heroes)]

    def _listen(self, target: Any, name: str, arguments: dict[str, Any], number: int = -1) -> None:
        with self.lock:
            if name in ("Crowd", "add_proxy"):
                raise ValueError(f"{name}: a recording of this scene runs, which cannot hold it")
            movers, n = self._movers(target, name, arguments, number)
            if name == "run":
                self._run(arguments, number)
                return
            if movers:
                self._begin(movers, n)
            if name == "move" and number >= 0:
                self._crowd_move(number, arguments["displacements"], arguments)
            elif not (number >= 0 and name == "shift_origin"):
                self._call(target, name, arguments)
            if name in STRUCTURE or (name == "set" and getattr(target, "body", "") == "static"):
                self.dirty = True
            self.editing += (name == "edit") - (name == "end_edit")

    def _movers(
        self, target: Any, name: str, arguments: dict[str, Any], number: int
    ) -> tuple[set[Any], int]:
        """What moves in this call, and how many moves that is."""
        if name == "move":
            if number < 0:
                return {target.id}, 1
            active = arguments.get("active")
            return {("crowd", number)}, len(self.crowds[number]) if active is None else int(np.count_nonzero(active))
        if name == "move_many":
            ids = {h.id for h in arguments["controllers"]}
            return ids, len(ids)
        return set(), 0

    def _begin(self, movers: set[Any], n: int) -> None:
        """Begin a tick, unless these movers belong to the one that runs."""
        if self.tick == 0 or self.moved & movers:
            key = self.since_keyframe + n > MOVES_BETWEEN_KEYFRAMES and not self.editing and self.since_keyframe > 0
            self._state(b"T", key or self.tick == 0)
            if key:
                self._keyframe_here()
            elif len(self.out) > _BLOCK_BYTES or time.monotonic() - self.written > _BLOCK_SECONDS:
                self._flush()
            self.moved = set()
            self.tick += 1
        self.moved |= movers
        self.moves += n
        self.since_keyframe += n

    def _state(self, tag: bytes, whole: bool) -> None:
        """Append what is kept of the state before a tick."""
        self.out += tag + b"\x01"
        pack_check(self.out, check_of(self.crowds, self._alive(), whole))

    def _keyframe_here(self) -> None:
        self._flush()
        self._keyframe()

    def _flush(self) -> None:
        """Hand the calls so far to the writer: they begin where the last block ended, and end at a tick."""
        assert self.writer is not None
        if self.out:
            self.writer.append(CALLS, self.first_tick, self.first_move, bytes(self.out))
        self.out = bytearray()
        self.first_tick, self.first_move = self.tick, self.moves
        self.written = time.monotonic()

    def _keyframe(self) -> None:
        """Append everything that decides the moves from here on."""
        assert self.writer is not None
        heroes = self._alive()
        if self.dirty:
            self.writer.append(SCENE, self.tick, self.moves, save_cooked(self.scene))
            self.dirty = False
        out = bytearray()
        encode(out, {
            "crowds": [c.save(moving=True) for c in self.crowds],
            "ids": [h.id for h in heroes],
            "heroes": [h.save() for h in heroes],
            "moving": save_many(heroes, moving=True) if heroes else b"",
        }, self.crowds)
        self.writer.append(KEYFRAME, self.tick, self.moves, bytes(out))
        self.since_keyframe = 0
        self.last = {}

    def _crowd_move(self, number: int, rows: Any, arguments: dict[str, Any]) -> None:
        rows = np.array(rows, np.float64).reshape(-1, 3)
        self.out += b"V" + struct.pack("<Bdd", number, arguments["dt"], arguments["min_distance"])
        active = arguments.get("active")
        encode(self.out, None if active is None else np.asarray(active), self.crowds)
        pack_rows(self.out, rows, self.last.get(number))
        self.last[number] = rows

    def _run(self, arguments: dict[str, Any], number: int) -> None:
        """Append the moves of a run as one tick each; only the last one has a check."""
        for k, rows in enumerate(np.asarray(arguments["displacements"])):
            if k == 0:
                self._begin({("crowd", number)}, len(rows))
            else:
                self.out += b"T\x00"
                self.tick += 1
                self.moves += len(rows)
                self.since_keyframe += len(rows)
            self._crowd_move(number, rows, arguments)

    def _call(self, target: Any, name: str, arguments: dict[str, Any]) -> None:
        out = bytearray(b"X")
        encode(out, target, self.crowds)
        encode_text(out, b"", name)
        arguments = {key: value for key, value in arguments.items() if key not in ("user_data", "on_hit")}
        encode(out, arguments, self.crowds)
        self.out += out
