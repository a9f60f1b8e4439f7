"""A small world, its clients and a network in one process, for tests and documentation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Actor, Behavior, Box, CollisionFlags, ConvexHull, Crowd, Plane, Scene

__all__ = ["Arena", "Clients", "Network", "Referee"]

from pycct.net.audit import Audit, Reason

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DT = 1 / 60
SPEED, JUMP, GRAVITY = 5.0, 4.5, 9.81
STEP = 0.5
REST = 0.91
# Half the side of the arena, metres.
SIDE = 40.0


def wave(tick: int, period: int) -> float:
    """A wave from 0 to 1 and back, along straight lines."""
    t = tick % period
    return 2.0 * min(t, period - t) / period


class Arena:
    """A square floor with obstacles, and lifts, ferries and doors that move with the tick.

    The obstacles are walls of 10 cm, kerbs, ledges, ramps, pillars and stairs.

    Parameters
    ----------
    seed : int
    moving : bool
        Whether there are lifts, ferries and doors.
    things : int
        Number of walls, kerbs, ledges, ramps, pillars and stairs.
    """

    def __init__(self, seed: int = 0, moving: bool = True, things: int = 60) -> None:
        rng = np.random.default_rng(seed)
        self.scene = scene = Scene()
        scene.add(Plane((0, 0, 1)))
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            scene.add(Box((0.5 + SIDE * (y != 0), 0.5 + SIDE * (x != 0), 4)), position=(x * SIDE, y * SIDE, 4))
        ramp = ConvexHull([(-2, -1, 0), (-2, 1, 0), (2, -1, 0), (2, 1, 0), (2, -1, 2), (2, 1, 2)])
        for _ in range(things):
            x, y = rng.uniform(-SIDE + 4, SIDE - 4, 2)
            kind = rng.integers(0, 6)
            turned = (0.0, 0.0, 0.6, 0.8) if rng.random() < 0.3 else (0.0, 0.0, 0.0, 1.0)
            if kind == 0:
                scene.add(Box((rng.uniform(1, 3), 0.05, 1.5)), (x, y, 1.5), turned)
            elif kind == 1:
                scene.add(Box((1.5, 1.0, 0.15)), (x, y, 0.15), turned)
            elif kind == 2:
                scene.add(Box((1.0, 1.5, 0.375)), (x, y, 0.375), turned)
            elif kind == 3:
                scene.add(ramp, (x, y, 0), turned)
            elif kind == 4:
                scene.add(Box((0.4, 0.4, 2)), (x, y, 2), turned)
            else:
                for k in range(4):
                    scene.add(Box((0.2, 1.0, 0.125 * (k + 1))), (x + 0.4 * k, y, 0.125 * (k + 1)))
        self.movers: list[Actor] = []
        self.tracks: list[tuple[Doubles, Doubles, int]] = []
        if moving:
            for _ in range(4):
                x, y = rng.uniform(-SIDE + 6, SIDE - 6, 2)
                self._mover(Box((1.5, 1.5, 0.1)), (x, y, 0.1), (x, y, 2.1), 240)
                x, y = rng.uniform(-SIDE + 8, SIDE - 8, 2)
                self._mover(Box((1.5, 1.5, 0.1)), (x - 3, y, 0.1), (x + 3, y, 0.1), 360)
                x, y = rng.uniform(-SIDE + 8, SIDE - 8, 2)
                self._mover(Box((0.1, 1.0, 1.2)), (x, y, 1.2), (x, y + 2, 1.2), 180)
        self.pose(0)

    def _mover(self, shape: Box, a: Any, b: Any, period: int) -> None:
        self.movers.append(self.scene.add(shape, a, body="kinematic", behavior=Behavior.CAN_RIDE))
        self.tracks.append((np.array(a), np.array(b), period))

    def pose(self, tick: int) -> None:
        """Put lifts, ferries and doors where they are at a tick."""
        if self.movers:
            places = [a + (b - a) * wave(tick, period) for a, b, period in self.tracks]
            self.scene.move_actors([m.id for m in self.movers], places)

    def starts(self, n: int, seed: int = 1) -> Doubles:
        """Places on the floor that are clear, (n, 3)."""
        rng = np.random.default_rng(seed)
        found: list[Doubles] = []
        while len(found) < n:
            p = np.append(rng.uniform(-SIDE + 2, SIDE - 2, 2), REST)
            if not [a for a in self.scene.overlap(Box((1.0, 1.0, 0.85)), p) if a not in self.movers]:
                found.append(p)
        return np.array(found)


class Clients:
    """Players on their machines: each predicts its own character in a copy of the arena.

    Parameters
    ----------
    arena : Arena
        The clients' copy.
    starts : (n, 3) array of floats
    seed : int
    """

    def __init__(self, arena: Arena, starts: Doubles, seed: int = 2, **parameters: Any) -> None:
        self.arena = arena
        self.crowd = Crowd(arena.scene, starts, step_offset=STEP, **parameters)
        self.rng = np.random.default_rng(seed)
        n = len(starts)
        self.velocity = np.zeros(n)
        self.heading = self._unit(self.rng.normal(size=(n, 2)))
        self.pace = np.where(self.rng.random(n) < 0.7, SPEED, self.rng.uniform(0, SPEED, n))
        self.tick = 0

    @staticmethod
    def _unit(v: Doubles) -> Doubles:
        out: Doubles = v / np.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1])[:, None]
        return out

    def inputs(self) -> Doubles:
        """Displacements of the next tick, (n, 3), metres."""
        n = len(self.velocity)
        self.heading = self._unit(self.heading + 0.08 * self.rng.normal(size=(n, 2)))
        turn = self.rng.random(n) < 0.01
        self.heading[turn] = self._unit(self.rng.normal(size=(int(turn.sum()), 2)))
        jumps = self.rng.random(n) < 0.02
        self.velocity = np.where(self.crowd.grounded, np.where(jumps, JUMP, -1.0), self.velocity) - GRAVITY * DT
        return np.column_stack([self.heading * (self.pace * DT)[:, None], self.velocity * DT])

    def advance(self, inputs: Doubles) -> None:
        """One tick."""
        self.tick += 1
        self.arena.pose(self.tick)
        flags = self.crowd.move(inputs, DT)
        up = (flags & int(CollisionFlags.UP)) != 0
        self.velocity[up] = np.minimum(self.velocity[up], 0.0)

    def claims(self) -> Doubles:
        """Positions as they are sent: whole millimetres in float32."""
        return np.round(self.crowd.positions, 3).astype(np.float32).astype(np.float64)


class Network:
    """Messages that arrive late, in another order, or not at all.

    Parameters
    ----------
    seed : int
    rtt, jitter : float
        Milliseconds; half of the first and a uniform part of the second delay each message.
    loss : float
        Per cent.
    """

    def __init__(self, seed: int = 3, rtt: float = 150.0, jitter: float = 40.0, loss: float = 5.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.base, self.jitter, self.loss = rtt / 2000 / DT, jitter / 1000 / DT, loss / 100
        self.queue: dict[int, list[tuple[int, int, Any]]] = {}

    def send(self, now: float, senders: Ints, tick: Ints, payload: NDArray[Any]) -> None:
        """Put one message per sender under way at a time, in ticks."""
        n = len(senders)
        delay = self.base + self.jitter * self.rng.random(n)
        lost = self.rng.random(n) < self.loss
        for k in np.flatnonzero(~lost).tolist():
            self.queue.setdefault(int(np.ceil(now + delay[k])), []).append((int(tick[k]), int(senders[k]), payload[k]))

    def receive(self, now: int) -> list[tuple[int, int, Any]]:
        """Return messages (tick, sender, payload) that arrive at a tick, ordered by their ticks."""
        return sorted(self.queue.pop(now, []), key=lambda message: message[:2])


class Referee:
    """A server that trusts the clients' positions as far as `Audit` lets it.

    Parameters
    ----------
    arena : Arena
        The server's copy.
    starts : (n, 3) array of floats
    parameters : dict
        Of `Crowd`.
    **options
        Of `Audit`.
    """

    def __init__(self, arena: Arena, starts: Doubles, parameters: dict[str, Any] | None = None, **options: Any) -> None:
        self.arena = arena
        self.crowd = Crowd(arena.scene, starts, step_offset=STEP, **(parameters or {}))
        self.audit = Audit(self.crowd, SPEED, JUMP, GRAVITY, **options)
        self.last = np.full(len(starts), -1, np.int64)
        self.checks = 0
        # Refused claims: member, client's tick, reason.
        self.refused: list[tuple[int, int, Reason]] = []

    def tick(self, now: int, messages: list[tuple[int, int, Any]]) -> None:
        """Take the messages of one tick; a message that a newer one has overtaken is dropped."""
        self.arena.pose(now)
        self.audit.store(now)
        ids = self.crowd.ids
        while messages:
            batch: dict[int, tuple[int, int, Any]] = {}
            rest = []
            for message in messages:
                if message[1] in batch:
                    rest.append(message)
                elif message[0] > self.last[message[1]]:
                    batch[message[1]] = message
            messages = rest
            if not batch:
                continue
            who = np.array(list(batch), np.int64)
            ticks = np.array([m[0] for m in batch.values()], np.int64)
            verdicts = self.audit.check(ids[who], ticks, np.array([m[2] for m in batch.values()]))
            self.audit.accept(ids[who])
            self.last[who] = ticks
            self.checks += len(who)
            for k in np.flatnonzero(~verdicts.ok).tolist():
                self.refused.append((int(who[k]), int(ticks[k]), Reason(int(verdicts.reason[k]))))
