"""``record``: write what happens to a scene and its characters."""
from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd, Scene
from pycct.record.blocks import CALLS, DONE, KEYFRAME, SCENE, Writer
from pycct.record.checks import Copies, check_from, pack_check, room_of, saved_state, state_of
from pycct.record.keyframes import last_displacements, pack_crowd
from pycct.record.values import encode, encode_text, pack_rows, save_cooked

__all__ = ["MOVES_BETWEEN_KEYFRAMES", "STRUCTURE", "record"]

MOVES_BETWEEN_KEYFRAMES = 30_000
# A keyframe has 20 to 45 bytes for each character: fewer ticks between two would make the file
# larger.
_TICKS_BETWEEN_KEYFRAMES = 7
_FEWEST_MOVES = 5_000  # between keyframes of few characters: they replay within 50 ms
_BLOCK_BYTES = 1 << 20  # of what waits in memory to be encoded: four times what is written
_ROWS = 4096  # of copies that are converted in one go: they fit into a cache
_STATE_BYTES = 65  # a member's row of `Copies`
_BLOCK_SECONDS = 1.0
# Calls after which the scene, or the ids that it issues next, differ from the scene block.
STRUCTURE = {
    "add", "add_obstacle", "remove", "shift_origin", "CharacterController", "insert", "extract", "restore",
    "restore_many",
}
_FLOAT = np.dtype(float)


def _head_of_a_move(number: int, dt: float, min_distance: float) -> bytes:
    return b"V" + struct.pack("<Bdd", number, dt, min_distance)


class _Displacements:
    """Copies of the displacements of one crowd, for some moves."""

    def __init__(self, n: int, moves: int) -> None:
        self.rows = np.empty((moves, n, 3))
        self.used, self.n, self.moves = 0, n, moves
        self.view, self.size = room_of(self.rows)

    def add(self, rows: Any) -> int:
        """Copy the displacements of a move; return the index of its row."""
        k, size = self.used, self.size
        fits = isinstance(rows, np.ndarray) and rows.dtype == _FLOAT and rows.nbytes == size
        if fits and rows.flags.c_contiguous and size:
            self.view[k * size : (k + 1) * size] = rows.data.cast("B")
        else:
            self.rows[k] = rows
        self.used = k + 1
        return k


class _State(NamedTuple):
    """The state before a tick: tag, rows in copies, and at keyframes all bytes of ``save``."""

    tag: bytes
    parts: list[tuple[Copies, int]]
    saved: list[bytes] | None


class _Move(NamedTuple):
    """A move of a crowd: its head, and its row in copied displacements."""

    number: int
    head: bytes
    displacements: _Displacements
    row: int


class _Plain(NamedTuple):
    """What the ticks of the only crowd have in common while nothing else happens."""

    copies: Copies
    displacements: _Displacements
    pace: tuple[float, float]
    head: bytes
    fields: tuple[NDArray[Any], ...]
    rooms: list[tuple[memoryview, int, memoryview]]


# A tick of the only crowd: the state before it with its row, and its move with its head and row. A
# plain tuple, because making a named one takes three times as long.
_Tick = tuple[Copies, int, bytes, _Displacements, int]


class _Encoder:
    """Turns entries into bytes, in the writer's thread.

    A keyframe is a dict. An entry of calls is bytes, a tick, a state or a move. The copies of many
    ticks are converted in one go: NumPy then releases the GIL for most of the work.
    """

    def __init__(self) -> None:
        self.last: dict[int, NDArray[np.float64]] = {}

    def __call__(self, kind: bytes, content: Any) -> bytes:
        if kind == KEYFRAME:
            # A seek knows these displacements, too.
            self.last = {k: last_displacements(data) for k, data in enumerate(content["crowds"])}
            key = bytearray()
            encode(key, content | {"crowds": [pack_crowd(data) for data in content["crowds"]]}, [])
            return bytes(key)
        if kind != CALLS:
            return bytes(content)
        converted: dict[Copies, Any] = {}
        checks: dict[Copies, list[bytes]] = {}
        packed: dict[_Displacements, list[bytes]] = {}
        out = bytearray()
        for entry in content:
            if type(entry) is tuple:
                copies, row, head, displacements, move = entry
                if copies not in checks:
                    checks[copies] = copies.packed(b"T\x01")
                out += checks[copies][row]
                out += head
                out += self._moves(0, displacements, packed)[move]
            elif isinstance(entry, _State):
                for copies, _ in entry.parts:
                    if copies not in converted:
                        converted[copies] = copies.converted()
                out += entry.tag
                pack_check(out, check_from([(*converted[c], row) for c, row in entry.parts], entry.saved))
            elif isinstance(entry, _Move):
                out += entry.head
                out += self._moves(entry.number, entry.displacements, packed)[entry.row]
            else:
                out += entry
        return bytes(out)

    def _moves(self, number: int, copied: _Displacements, packed: dict[_Displacements, list[bytes]]) -> list[bytes]:
        """The packed displacements of a crowd, all moves of a copy in one go."""
        found = packed.get(copied)
        if found is None:
            rows = copied.rows[: copied.used]
            found = packed[copied] = pack_rows(rows, self.last.get(number))
            self.last[number] = rows[-1]
        return found


class record:
    """Record a scene and its characters while a block runs.

    The file holds the scene as a cooked file, then every change and every move before it takes
    effect, a hash of the state for each tick, and keyframes. A thread of its own compresses and
    writes. A crowd's ``move`` is a tick; of controllers, a tick ends when one that has moved in it
    moves again.

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
        A character of the scene is missing, belongs to another scene or has a proxy, or a journal
        is in use.
    TypeError
        An argument is of another type, or a crowd has many worlds.

    Notes
    -----
    ``user_data`` is not recorded. Answers of ``filter`` and ``behavior`` callbacks are, so that a
    replay needs no callback. A move that an exception of ``on_hit`` undoes is repeated all the
    same: `Recording.verify` names it as the first difference. `Crowd.run` is recorded as one tick
    for each of its moves, without keyframes between them. While a recording runs, a crowd of the
    scene cannot be made, nor a proxy: the call raises ValueError.

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
        self.moved: set[int] = set()
        self.entries: list[bytes | bytearray | _Tick | _State | _Move] = []
        self.waiting = 0
        # What is filled now: of crowds by their number, of controllers -1.
        self.copies: dict[int, Copies] = {}
        self.displacements: dict[int, _Displacements] = {}
        self.first_tick = self.first_move = 0
        self.written = time.monotonic()
        self.dirty = True
        self.editing = 0
        self.most = 0
        self.plain: _Plain | None = None

    def __enter__(self) -> record:
        if self.writer is not None:
            raise RuntimeError("a recording is entered once")
        if self.scene.journal is not None or any(c.journal is not None for c in self.crowds):
            raise ValueError("scene and characters must not have a journal yet")
        self.writer = Writer(self.path, _Encoder())
        try:
            heroes = self._alive()
            self._keyframe(heroes, saved_state(self.crowds, heroes))
            self.scene.journal = self._listen
            for k, crowd in enumerate(self.crowds):
                crowd.journal = lambda target, name, arguments, k=k: self._crowd_listen(target, name, arguments, k)
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
                heroes = self._alive()
                self._state(b"E\x01", heroes, saved_state(self.crowds, heroes))
                self._flush()
                self.writer.append(DONE, self.tick, self.moves, b"")
            finally:
                self.writer.close()

    def _let_go(self) -> None:
        self.scene.journal = None
        for crowd in self.crowds:
            crowd.journal = None

    def _alive(self) -> list[CharacterController]:
        """Return all controllers by id, and hold them, so that none is collected unrecorded."""
        alive = self.scene.characters
        if not alive:
            self.heroes = {}
            return []
        self.heroes = {h.id: h for h in alive}
        return [self.heroes[i] for i in sorted(self.heroes)]

    def _crowd_listen(self, target: Any, name: str, arguments: dict[str, Any], number: int) -> None:
        if name == "move":
            # The usual call.
            with self.lock:
                if self._plain_tick(target, arguments):
                    return
                active = arguments["active"]
                self._begin({~number}, len(target) if active is None else int(np.count_nonzero(active)))
                self._crowd_move(number, arguments["displacements"], arguments)
                self._expect_plain_ticks(target, arguments)
        else:
            self._listen(target, name, arguments, number)

    def _plain_tick(self, crowd: Crowd, arguments: dict[str, Any]) -> bool:
        """Append a tick like the last one, unless a block, a keyframe or a new copy begins with it.

        It appends what `_begin` and `_crowd_move` would, in a fraction of the time.
        """
        plain = self.plain
        if plain is None:
            return False
        copies, moves, n = plain.copies, plain.displacements, plain.displacements.n
        row, rows = copies.used, arguments["displacements"]
        if (
            row == copies.ticks
            or moves.used == moves.moves
            or arguments["active"] is not None
            or (arguments["dt"], arguments["min_distance"]) != plain.pace
            or crowd.ids is not copies.ids
            or crowd.positions is not plain.fields[0]
            or crowd.velocities is not plain.fields[1]
            or crowd.flags is not plain.fields[2]
            or crowd.standing_on is not plain.fields[3]
            or self.since_keyframe + n > self.most
            or self.waiting + _STATE_BYTES * n > _BLOCK_BYTES
            or time.monotonic() - self.written > _BLOCK_SECONDS
        ):
            return False
        for view, size, source in plain.rooms:
            view[row * size : (row + 1) * size] = source
        copies.used = row + 1
        self.entries.append((copies, row, plain.head, moves, moves.add(rows)))
        self.waiting += (_STATE_BYTES + 24) * n + len(plain.head)
        self.tick += 1
        self.moves += n
        self.since_keyframe += n
        return True

    def _expect_plain_ticks(self, crowd: Crowd, arguments: dict[str, Any]) -> None:
        """Prepare for ticks like this one; every other call ends them."""
        copies = self.copies.get(0)
        if copies is None or len(self.crowds) != 1 or self.heroes or arguments["active"] is not None or not len(crowd):
            return
        pace = arguments["dt"], arguments["min_distance"]
        fields: tuple[NDArray[Any], ...] = (crowd.positions, crowd.velocities, crowd.flags, crowd.standing_on)
        # The crowd keeps its arrays until its members change, so that views of them stay valid.
        rooms = [(view, size, field.data.cast("B")) for (view, size), field in zip(copies.rooms, fields, strict=True)]
        head = _head_of_a_move(0, *pace) + b"N"
        self.plain = _Plain(copies, self.displacements[0], pace, head, fields, rooms)

    def _listen(self, target: Any, name: str, arguments: dict[str, Any], number: int = -1) -> None:
        with self.lock:
            self.plain = None
            if name in ("Crowd", "add_proxy"):
                raise ValueError(f"{name}: a recording of this scene runs, which cannot hold it")
            if name == "run":
                self._run(arguments, number)
                return
            if name == "move":
                self._begin({target.id}, 1)
            elif name == "move_many":
                ids = {h.id for h in arguments["controllers"]}
                self._begin(ids, len(ids))
            if not (number >= 0 and name == "shift_origin"):
                self._call(target, name, arguments)
            if name in STRUCTURE or (name == "set" and getattr(target, "body", "") == "static"):
                self.dirty = True
            self.editing += (name == "edit") - (name == "end_edit")

    def _begin(self, movers: set[int], n: int) -> None:
        """Begin a tick, unless the current one lacks these movers: ids, and ~number of a crowd."""
        self.plain = None
        if self.tick == 0 or not self.moved.isdisjoint(movers):
            heroes = self._alive()
            most = _TICKS_BETWEEN_KEYFRAMES * (len(heroes) + sum([len(c) for c in self.crowds]))
            self.most = min(max(most, _FEWEST_MOVES), MOVES_BETWEEN_KEYFRAMES)
            key = self.since_keyframe + n > self.most and not self.editing and self.since_keyframe > 0
            saved = saved_state(self.crowds, heroes) if key or self.tick == 0 else None
            self._state(b"T\x01", heroes, saved)
            if saved is not None and key:
                self._flush()
                self._keyframe(heroes, saved)
            elif self.waiting > _BLOCK_BYTES or time.monotonic() - self.written > _BLOCK_SECONDS:
                self._flush()
            self.moved = set()
            self.tick += 1
        self.moved |= movers
        self.moves += n
        self.since_keyframe += n

    def _state(self, tag: bytes, heroes: list[CharacterController], saved: list[bytes] | None) -> None:
        """Append what is kept of the state before a tick."""
        parts = []
        for number, crowd in enumerate(self.crowds):
            copies = self.copies.get(number)
            # A crowd whose members change makes a new array of their ids.
            if copies is None or copies.used == copies.ticks or copies.ids is not crowd.ids:
                copies = self.copies[number] = Copies(crowd.ids, max(_ROWS // max(len(crowd), 1), 1))
            parts.append((copies, copies.add(crowd.positions, crowd.velocities, crowd.flags, crowd.standing_on)))
            self.waiting += _STATE_BYTES * len(crowd)
        if heroes:
            ids = np.array([h.id for h in heroes], np.int64)
            copies = self.copies.get(-1)
            if copies is None or copies.used == copies.ticks or not np.array_equal(copies.ids, ids):
                copies = self.copies[-1] = Copies(ids, max(_ROWS // len(heroes), 1))
            parts.append((copies, copies.add(*state_of(heroes))))
            self.waiting += _STATE_BYTES * len(heroes)
        self.entries.append(_State(tag, parts, saved))

    def _flush(self) -> None:
        """Hand the calls since the last block to the writer; the new block ends at a tick."""
        assert self.writer is not None
        if self.entries:
            self.writer.append(CALLS, self.first_tick, self.first_move, self.entries)
        self.entries, self.waiting, self.copies, self.displacements = [], 0, {}, {}
        self.first_tick, self.first_move = self.tick, self.moves
        self.written = time.monotonic()

    def _keyframe(self, heroes: list[CharacterController], saved: list[bytes]) -> None:
        """Append everything that decides the moves from here on."""
        assert self.writer is not None
        if self.dirty:
            self.writer.append(SCENE, self.tick, self.moves, save_cooked(self.scene))
            self.dirty = False
        self.writer.append(KEYFRAME, self.tick, self.moves, {
            "crowds": saved[: len(self.crowds)],
            "ids": [h.id for h in heroes],
            "heroes": [h.save() for h in heroes],
            "moving": saved[-1] if heroes else b"",
        })
        self.since_keyframe = 0

    def _crowd_move(self, number: int, rows: Any, arguments: dict[str, Any]) -> None:
        head = _head_of_a_move(number, arguments["dt"], arguments["min_distance"])
        active = arguments.get("active")
        # A run has none.
        if active is None:
            head += b"N"
        else:
            mask = bytearray()
            encode(mask, np.asarray(active), self.crowds)
            head += mask
        n = len(self.crowds[number])
        copied = self.displacements.get(number)
        if copied is None or copied.used == copied.moves or copied.n != n:
            copied = self.displacements[number] = _Displacements(n, max(_ROWS // max(n, 1), 1))
        row = copied.add(rows)
        self.entries.append(_Move(number, head, copied, row))
        self.waiting += 24 * n + len(head)

    def _run(self, arguments: dict[str, Any], number: int) -> None:
        """Append the moves of a run as one tick each; only the last one has a check."""
        for k, rows in enumerate(np.asarray(arguments["displacements"])):
            if k == 0:
                self._begin({~number}, len(rows))
            else:
                self.entries.append(b"T\x00")
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
        self.entries.append(out)
        self.waiting += len(out)
