"""``replay``: step through a recording, seek, verify and explain."""
from __future__ import annotations

import operator
import os
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pycct import CharacterController, Crowd, Scene, move_many, restore_many, separate
from pycct.args.plain import short
from pycct.explain import Explanation
from pycct.record.blocks import CALLS, KEYFRAME, SCENE, Block, read_block, read_index
from pycct.record.checks import FIELDS, Check, check_of, read_check, state_of
from pycct.record.keyframes import last_displacements, unpack_crowd
from pycct.record.recorder import STRUCTURE
from pycct.record.values import DAMAGED, Reader, Reference, load_cooked

__all__ = ["CROWD_SETTINGS", "Call", "Difference", "Recording", "as_controller", "replay"]

_SCENE_CALLS = {"add", "add_obstacle", "remove", "move_actors", "shift_origin"}
_ACTOR_CALLS = {"move_to"}
_HERO_CALLS = {"move", "teleport", "snap_to_ground", "resize", "unstick", "restore", "remove"}
_CROWD_CALLS = {"separate", "add", "remove", "set", "teleport", "resize", "snap_to_ground", "restore", "extract",
                "insert"}
_ACTOR_SETTINGS = {"layer", "behavior"}
_HERO_SETTINGS = {
    "position", "foot_position", "radius", "height", "up", "step_offset", "contact_offset", "slope_limit",
    "climbing_mode", "non_walkable_mode", "rules", "overlap_recovery", "prevent_vertical_sliding",
    "invisible_wall_height", "max_jump_height", "layer", "mask", "collide", "surface",
}
CROWD_SETTINGS = (
    "radius", "height", "step_offset", "contact_offset", "slope_limit", "climbing_mode", "non_walkable_mode", "rules",
    "overlap_recovery", "prevent_vertical_sliding", "invisible_wall_height", "max_jump_height", "layer", "mask",
    "collide", "surface",
)


def _whole(tick: Any) -> int:
    """Return the number of a tick."""
    try:
        return operator.index(tick)
    except TypeError:
        raise TypeError(f"tick must be an integer, not {type(tick).__name__}") from None


class Difference(NamedTuple):
    """First difference between a recording and its replay.

    Attributes
    ----------
    tick : int
        Tick whose moves end differently, from 0.
    member : int or None
        Id of the first character that differs; None if only the hash of the whole state does.
    field : str
        ``"position"``, ``"velocity"``, ``"flags"``, ``"standing_on"``, ``"members"`` (their number)
        or ``"state"``: parameters, or the memory of the last move. That is compared at keyframes
        and at the end.
    """

    tick: int
    member: int | None
    field: str


class Call(NamedTuple):
    """One entry: a call, or the mark (``"tick"``, ``"end"``) where a tick ends."""

    name: str
    target: Any
    arguments: dict[str, Any]
    check: Check | None = None


def replay(path: str | os.PathLike[str]) -> Recording:
    """Open a recording.

    Parameters
    ----------
    path : str or path-like
        File of `record`; a file whose writer died is read up to the last complete block.

    Returns
    -------
    Recording
        At tick 0.

    Raises
    ------
    ValueError
        The file is damaged, no recording, or one of another results version.
    OSError
        From the system.
    """
    return Recording(path)


class Recording:
    """A recording that is replayed; `replay` opens it.

    Attributes
    ----------
    ticks, moves : int
        Ticks in the file; moves up to its last block.
    tick : int
        Ticks that have been replayed.
    scene : Scene
        Scene at this tick. Seeking may put another one in its place.
    crowds : list of Crowd
        Crowds at this tick.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.file = open(path, "rb")
        try:
            self.index = read_index(self.file)
            self.keyframes = [i for i, b in enumerate(self.index) if b.kind == KEYFRAME]
            if [b.kind for b in self.index[:2]] != [SCENE, KEYFRAME]:
                raise ValueError("the recording is damaged: it does not begin with a scene and a keyframe")
            self.threads = 1
            self.record_hits = False
            self.scene = Scene()
            self.crowds: list[Crowd] = []
            self.heroes: dict[int, CharacterController] = {}
            self.loaded: int | None = None
            self.last: dict[int, NDArray[np.float64]] = {}
            self.calls: Iterator[Call] = iter(())
            self.ahead: list[Call] = []
            self.edits: list[Any] = []
            self.check: Check | None = None
            self.ended = False
            self.ticks = self._count()
            self.moves = self.index[-1].moves
            self.tick = -1
            self.seek(0)
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @property
    def crowd(self) -> Crowd:
        """The only crowd; ValueError if there are none or several."""
        if len(self.crowds) != 1:
            raise ValueError(f"the recording has {len(self.crowds)} crowds")
        return self.crowds[0]

    @property
    def controllers(self) -> list[CharacterController]:
        """Controllers at this tick, by id."""
        return [self.heroes[i] for i in sorted(self.heroes)]

    def members(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ids (n,) and positions (n, 3), metres, of all characters at this tick: crowds first."""
        heroes = self.controllers
        ids = [np.array(c.ids) for c in self.crowds] + [np.array([h.id for h in heroes], np.int64)]
        places = [np.array(c.positions) for c in self.crowds] + [state_of(heroes)[0]]
        return np.concatenate(ids), np.concatenate(places)

    def step(self, threads: int = 1) -> bool:
        """Replay one tick.

        Parameters
        ----------
        threads : int
            Threads that move crowds; the result does not depend on it.

        Returns
        -------
        bool
            False at the end of the recording, where nothing happens.
        """
        if self.tick >= self.ticks:
            return False
        self.threads = threads
        for call in self._entries():
            if call.name in ("tick", "end"):
                self.tick += 1
                self.check = call.check
                return True
            self._apply(call)
        raise ValueError(DAMAGED)

    def seek(self, tick: int, threads: int = 1) -> None:
        """Go to a tick, forwards or backwards, from the nearest keyframe.

        Parameters
        ----------
        tick : int
            From 0 to `ticks`.
        threads : int
            Threads that move crowds.
        """
        if not 0 <= _whole(tick) <= self.ticks:
            raise ValueError(f"tick must be from 0 to {self.ticks}, got {short(tick)}")
        best = max((i for i in self.keyframes if self.index[i].tick <= tick), key=lambda i: (self.index[i].tick, i))
        if not self.index[best].tick <= self.tick <= tick:
            self._load(best)
        while self.tick < tick:
            self.step(threads)

    def verify(self, threads: int = 1) -> Difference | None:
        """Replay everything and compare.

        Parameters
        ----------
        threads : int
            Threads that move crowds.

        Returns
        -------
        Difference or None
            The first difference, None if all bits are the same.
        """
        self.tick = -1
        self.seek(0)
        while True:
            if self.check is not None:
                difference = self._difference(self.check)
                if difference is not None:
                    return difference
            if not self.step(threads):
                return None

    def explain(self, tick: int, id: int) -> Explanation:
        """Explain the first move of a character in a tick.

        Parameters
        ----------
        tick : int
            From 0 to ``ticks - 1``.
        id : int
            Character that moves.

        Returns
        -------
        Explanation
            A member of a crowd is explained as a controller of its parameters at its place, without
            the memory of its last move; a note says so.

        Raises
        ------
        ValueError
            There is no such tick.
        KeyError
            The character does not move in it.
        """
        if not 0 <= _whole(tick) < self.ticks:
            raise ValueError(f"tick must be from 0 to {self.ticks - 1}, got {short(tick)}")
        self.seek(tick)
        # The scene is left between two ticks: the next seek loads a keyframe.
        self.tick = -1
        for call in self._entries():
            if call.name in ("tick", "end"):
                break
            found = self._explained(call, id)
            if found is not None:
                return found
            self._apply(call)
        raise KeyError(f"no character {id} moves in tick {tick}")

    def calls_of(self, first: int, last: int) -> Iterator[tuple[int, Call]]:
        """Yield ticks and their calls from tick ``first`` to before ``last``, and replay them."""
        self.seek(first)
        while self.tick < last:
            for call in self._entries():
                if call.name in ("tick", "end"):
                    self.tick += 1
                    self.check = call.check
                    break
                yield self.tick, call
                self._apply(call)
            else:
                raise ValueError(DAMAGED)

    # Reading

    def _count(self) -> int:
        """Ticks of the file."""
        blocks = [i for i, b in enumerate(self.index) if b.kind == CALLS]
        end = self.index[-1].tick
        if not blocks:
            return end
        block = self.index[blocks[-1]]
        reader = Reader(read_block(self.file, block))
        names = [call.name for call in _calls(reader, {}, strict=False)]
        ticks, ended = names.count("tick"), "end" in names
        if len(blocks) == 1:
            return max(ticks - 1 + (ended and ticks > 0), 0)
        return max(block.tick + ticks + ended, end)

    @staticmethod
    def _last_displacements(keyframe: Any) -> dict[int, NDArray[np.float64]]:
        """Those of each crowd, which the first displacements after a keyframe are compared with."""
        try:
            return {k: last_displacements(unpack_crowd(data)) for k, data in enumerate(keyframe["crowds"])}
        except (TypeError, KeyError):
            raise ValueError(DAMAGED) from None

    def _stream(self, start: int) -> Iterator[Call]:
        """All calls from a block on."""
        for block in self.index[start:]:
            if block.kind == KEYFRAME:
                self.last = self._last_displacements(Reader(read_block(self.file, block)).value())
            elif block.kind == CALLS:
                yield from _calls(Reader(read_block(self.file, block)), self.last)

    def _entries(self) -> Iterator[Call]:
        """Yield the calls; each move comes with the answers that its callbacks gave."""
        while True:
            call = self.ahead.pop() if self.ahead else next(self.calls, None)
            if call is None:
                return
            if call.name in ("move", "move_many", "unstick", "snap_to_ground") and not isinstance(call.target, Crowd):
                answers: dict[tuple[int, str, int], Any] = {}
                while (after := next(self.calls, None)) is not None:
                    if after.name != "answer":
                        self.ahead.append(after)
                        break
                    given = after.arguments
                    try:
                        answers[after.target[1], given["question"], given["other"][1]] = given["answer"]
                    except (KeyError, TypeError, IndexError):
                        raise ValueError(DAMAGED) from None
                call = call._replace(arguments={**call.arguments, "answers": answers})
            yield call

    def _block_before(self, at: int) -> int:
        return max((i for i, b in enumerate(self.index[:at]) if b.kind == SCENE), default=0)

    def _load(self, at: int) -> None:
        """Become what a keyframe holds."""
        block: Block = self.index[at]
        reader = Reader(read_block(self.file, block))
        value = reader.value()
        home = self._block_before(at)
        try:
            ids, heroes, moving = value["ids"], value["heroes"], value["moving"]
            crowds = [unpack_crowd(data) for data in value["crowds"]]
            last = {k: last_displacements(data) for k, data in enumerate(crowds)}
            reuse = self.loaded == home and not self.edits and len(crowds) == len(self.crowds)
            if not (reuse and ids == sorted(self.heroes)):
                self.loaded = None
                self.crowds, self.heroes, self.edits = [], {}, []
                self.scene = load_cooked(read_block(self.file, self.index[home]))
                rebuild = CharacterController(Scene()).__reduce__()[0]
                for id, data in zip(ids, heroes, strict=True):
                    self.heroes[id] = rebuild(CharacterController, self.scene, data, -1, id)
                self.crowds = [Crowd(self.scene, np.zeros((0, 3))) for _ in crowds]
            for crowd, data in zip(self.crowds, crowds, strict=True):
                crowd.restore(data)
            if ids:
                restore_many(self.controllers, moving)
        except (TypeError, KeyError, AttributeError, OverflowError):
            raise ValueError(DAMAGED) from None
        self.loaded = home
        self.last = last
        self.ahead = []
        self.calls = self._stream(at + 1)
        self.tick = block.tick
        self.check = None
        if at == self.keyframes[0]:
            # What happens before the first tick belongs to it.
            for call in self._entries():
                if call.name in ("tick", "end"):
                    self.check = call.check
                    break
                self._apply(call)

    # Replaying

    def _found(self, value: Any) -> Any:
        if isinstance(value, Reference):
            kind, number = value
            if kind == "W":
                return self.scene
            if kind == "C":
                return self.crowds[number]
            if kind == "H":
                return self.heroes[number]
            return self.scene.actor(number) if kind == "A" else self.scene.character(number)
        if isinstance(value, list):
            return [self._found(v) for v in value]
        return value

    def _apply(self, call: Call) -> None:
        """Do what was recorded."""
        try:
            self._do(call)
        except ValueError as problem:
            # The recorded move was refused as well, and changed nothing.
            if call.name not in ("move", "move_many") or "must not lead beyond" not in str(problem):
                raise
        except (TypeError, KeyError, AttributeError, IndexError, OverflowError) as problem:
            raise ValueError(f"{DAMAGED} ({call.name}: {problem})") from None
        if call.name in STRUCTURE or (call.name == "set" and getattr(self._found(call.target), "body", "") == "static"):
            self.loaded = None

    def _do(self, call: Call) -> None:
        name = call.name
        target = self._found(call.target)
        arguments = {key: self._found(value) for key, value in call.arguments.items()}
        answers = arguments.pop("answers", {})
        if isinstance(target, Crowd):
            if name == "move":
                target.move(threads=self.threads, record_hits=self.record_hits, **arguments)
            elif name in _CROWD_CALLS:
                getattr(target, name)(**arguments)
            else:
                raise KeyError(name)
        elif isinstance(target, Scene):
            self._on_scene(target, name, arguments, answers)
        elif isinstance(target, CharacterController):
            if name == "set" and set(arguments) <= _HERO_SETTINGS:
                if len(arguments) > 1:
                    target.set(**arguments)
                for key, value in arguments.items() if len(arguments) == 1 else ():
                    setattr(target, key, value)
            elif name in _HERO_CALLS:
                self._answering([target], answers)
                # A filter of this move only.
                if arguments.pop("filter", None) is not None:
                    arguments["filter"] = target.filter
                getattr(target, name)(**arguments)
                if name == "remove":
                    del self.heroes[target.id]
            else:
                raise KeyError(name)
        elif name == "set" and set(arguments) <= _ACTOR_SETTINGS:
            for key, value in arguments.items():
                setattr(target, key, value)
        elif name in _ACTOR_CALLS:
            getattr(target, name)(**arguments)
        else:
            raise KeyError(name)

    def _on_scene(self, scene: Scene, name: str, arguments: dict[str, Any], answers: dict[Any, Any]) -> None:
        if name == "edit":
            self.edits.append(scene.edit())
            self.edits[-1].__enter__()
        elif name == "end_edit":
            self.edits.pop().__exit__(None, None, None)
        elif name == "CharacterController":
            for key in ("filter", "behavior"):
                arguments.pop(key, None)
            hero = CharacterController(scene, **arguments)
            self.heroes[hero.id] = hero
        elif name == "move_many":
            self._answering(arguments["controllers"], answers)
            move_many(threads=self.threads, **arguments)
        elif name == "separate":
            separate(**arguments)
        elif name == "restore_many":
            restore_many(**arguments)
        elif name in _SCENE_CALLS:
            getattr(scene, name)(**arguments)
        else:
            raise KeyError(name)

    @staticmethod
    def _answering(heroes: list[CharacterController], answers: dict[tuple[int, str, int], Any]) -> None:
        """Let callbacks give the recorded answers."""
        for hero in heroes:
            mine = {key[1:]: value for key, value in answers.items() if key[0] == hero.id}
            filters = {other: value for (question, other), value in mine.items() if question == "filter"}
            modes = {other: value for (question, other), value in mine.items() if question == "behavior"}
            hero.filter = (lambda other, known=filters: known.get(other.id, True)) if filters else None
            hero.behavior = (lambda other, known=modes: known.get(other.id)) if modes else None

    def _explained(self, call: Call, id: int) -> Explanation | None:
        target = self._found(call.target)
        arguments = call.arguments
        if call.name == "move" and isinstance(target, Crowd):
            if id not in target.ids:
                return None
            row = target.index_of(id)
            active = arguments["active"]
            if active is not None and not active[row]:
                return None
            hero = as_controller(target, row)
            self.loaded = None
            found = hero.explain(arguments["displacements"][row], arguments["dt"],
                                 min_distance=arguments["min_distance"])
            found.notes.append("the member is explained as a new controller at its place")
            return found
        if call.name == "move" and isinstance(target, CharacterController) and target.id == id:
            self._answering([target], arguments["answers"])
            if "up" in arguments:
                self.loaded = None
                target.up = arguments["up"]
            given = {key: arguments[key] for key in ("min_distance", "mask")}
            return target.explain(arguments["displacement"], arguments["dt"], **given)
        if call.name == "move_many":
            heroes = self._found(arguments["controllers"])
            for k, hero in enumerate(heroes):
                if hero.id == id:
                    self._answering([hero], arguments["answers"])
                    return hero.explain(arguments["displacements"][k], arguments["dt"],
                                        min_distance=arguments["min_distance"])
        return None

    def _difference(self, check: Check) -> Difference | None:
        """Compare the state with what was recorded for it."""
        heroes = self.controllers
        mine = check_of(self.crowds, heroes, check.state is not None)
        if mine.hash == check.hash and mine.state == check.state:
            return None
        tick = max(self.tick - 1, 0)
        ids = [np.array(c.ids) for c in self.crowds] + ([np.array([h.id for h in heroes])] if heroes else [])
        if [len(p[0]) for p in mine.parts] != [len(p[0]) for p in check.parts]:
            return Difference(tick, None, "members")
        for numbers, now, then in zip(ids, mine.parts, check.parts, strict=True):
            wrong = np.stack([a != b for a, b in zip(now, then, strict=True)])
            if wrong.any():
                member = int(wrong.any(axis=0).argmax())
                return Difference(tick, int(numbers[member]), FIELDS[int(wrong[:, member].argmax())])
        return Difference(tick, None, "state")


def as_controller(crowd: Crowd, row: int) -> CharacterController:
    """A new controller in the place of a member, which leaves the crowd."""
    settings = {name: crowd.get(name).tolist()[row] for name in CROWD_SETTINGS}
    up, place = crowd.get("up")[row].tolist(), crowd.positions[row].tolist()
    crowd.remove([row])
    return CharacterController(crowd.scene, position=place, up=up, **settings)


def _calls(reader: Reader, last: dict[int, NDArray[np.float64]], strict: bool = True) -> Iterator[Call]:
    """The calls of a block. Without ``strict``, displacements need not be complete."""
    while not reader.done:
        tag = reader.take(1)
        if tag in (b"T", b"E"):
            check = read_check(reader) if reader.take(1) == b"\x01" else None
            yield Call("tick" if tag == b"T" else "end", None, {}, check)
        elif tag == b"V":
            number, dt, least = struct.unpack("<Bdd", reader.take(17))
            active = reader.value()
            rows = reader.rows(last.get(number), strict)
            last[number] = rows
            yield Call("move", Reference(("C", number)),
                       {"displacements": rows, "dt": dt, "min_distance": least, "active": active})
        elif tag == b"X":
            target, name, arguments = reader.value(), reader.text(), reader.value()
            if not isinstance(target, Reference) or not isinstance(arguments, dict):
                raise ValueError(DAMAGED)
            yield Call(name, target, arguments)
        else:
            raise ValueError(DAMAGED)
