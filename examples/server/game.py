"""The game that the server runs and that every client predicts with: one level, one way to move."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from protocol import GRAVITY, JUMP, RATE, SPEED, TICKS_PER_INPUT, Input, Shot

from pycct import Box, CollisionFlags, Crowd, Plane, Scene
from pycct.net import Audit, History, Reason

DT = 1 / RATE
REST = 0.91
# From the centre of a player to its eyes, and how far a shot flies, metres.
EYES, RANGE = (0.0, 0.0, 0.6), 100.0
# Inputs of one player that may wait; inputs above which it moves twice a tick; ticks that a shot
# may go back.
LONGEST_QUEUE, LONGEST_WAIT, FARTHEST_BACK = 60, 6, 60
# The network of players is rougher than that of the default, seconds.
BUDGET = 0.5


def level() -> Scene:
    """A floor with walls, kerbs and stairs."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    for x, y, a, b in ((40, 0, 0.5, 40), (-40, 0, 0.5, 40), (0, 40, 40, 0.5), (0, -40, 40, 0.5)):
        scene.add(Box((a, b, 2)), (x, y, 2))
    rng = np.random.default_rng(7)
    for x, y in rng.uniform(-35, 35, (40, 2)).tolist():
        scene.add(Box((1.0, 1.0, 0.15)), (x, y, 0.15))
    for x, y in rng.uniform(-35, 35, (20, 2)).tolist():
        scene.add(Box((2.0, 0.1, 1.5)), (x, y, 1.5))
    return scene


def fall(velocity: float, grounded: bool, jump: bool) -> float:
    """Vertical speed of the next tick, m/s."""
    return (JUMP if jump else -1.0) - GRAVITY * DT if grounded else velocity - GRAVITY * DT


def start(scene: Scene, number: int) -> tuple[float, float, float]:
    """A free place for a new player."""
    rng = np.random.default_rng(number)
    while True:
        x, y = rng.uniform(-35, 35, 2).tolist()
        if not scene.overlap(Box((0.6, 0.6, 0.85)), (x, y, REST)):
            return (x, y, REST)


class Prediction:
    """One character as its own client moves it: the same moves as the server's, to the bit."""

    def __init__(self, scene: Scene, position: tuple[float, float, float]) -> None:
        self.crowd = Crowd(scene, [position])
        self.velocity = 0.0

    def apply(self, x: float, y: float, jump: bool) -> list[tuple[float, float, float]]:
        """Run the ticks of one input; the position after each of them."""
        places = []
        for _ in range(TICKS_PER_INPUT):
            self.velocity = fall(self.velocity, bool(self.crowd.grounded[0]), jump)
            flags = self.crowd.move([(x * DT, y * DT, self.velocity * DT)], DT)
            if flags[0] & CollisionFlags.UP:
                self.velocity = min(self.velocity, 0.0)
            px, py, pz = self.crowd.positions[0].tolist()
            places.append((px, py, pz))
        return places


@dataclass
class Player:
    """What the server keeps of one player."""

    member: int
    velocity: float = 0.0
    queue: list[Input] = field(default_factory=list)
    # Ticks that the first input in the queue has lasted.
    left: int = 0
    # Number of the newest input, and ticks that the player has moved.
    last: int = 0
    acknowledged: int = 0
    refused: list[Reason] = field(default_factory=list)


class Game:
    """The authoritative state: moved by one thread only."""

    def __init__(self) -> None:
        self.scene = level()
        self.crowd = Crowd(self.scene, np.zeros((0, 3)))
        self.history = History(self.crowd, ticks=FARTHEST_BACK + 4)
        # What clients claim, in a scene of its own: a second opinion about each of them.
        self.claims = Crowd(level(), np.zeros((0, 3)))
        self.audit = Audit(self.claims, SPEED, JUMP, GRAVITY, budget=BUDGET)
        self.claimants: dict[int, int] = {}
        self.players: dict[int, Player] = {}
        self.tick = 0
        self.audit.store(0)
        self.history.store(0)

    def join(self) -> Player:
        """Add a player."""
        place = start(self.scene, len(self.claimants) + 1)
        member = int(self.crowd.add([place])[0])
        self.claimants[member] = int(self.claims.add([place])[0])
        self.players[member] = Player(member)
        return self.players[member]

    def leave(self, member: int) -> None:
        """Remove a player."""
        del self.players[member]
        self.crowd.remove(self.crowd.index_of([member]))
        self.claims.remove(self.claims.index_of([self.claimants[member]]))

    def put(self, member: int, value: Input) -> str:
        """Queue an input; an error in words, or nothing."""
        player = self.players[member]
        if value.number != player.last + 1:
            return f"input {player.last + 1} must come next"
        if len(player.queue) >= LONGEST_QUEUE:
            return "too many inputs are waiting"
        player.last = value.number
        player.queue.append(value)
        return ""

    def shoot(self, shots: list[tuple[int, Shot]]) -> list[tuple[int, float]]:
        """What each shot of a member has met in the tick that its shooter saw.

        One call judges all shots of a tick: many players may fire at the same time.
        Member and distance per shot. The member is -1 for a shot that met a wall or nothing, and
        the distance is 0 for one that met nothing.
        """
        members = [member for member, _ in shots]
        seen = np.clip([shot.tick for _, shot in shots], max(self.history.ticks[0], self.tick - FARTHEST_BACK),
                       self.history.ticks[-1])
        eyes = self.crowd.positions[self.crowd.index_of(members)] + EYES
        hits = self.history.raycast_many(seen, eyes, [shot.direction for _, shot in shots], RANGE, exclude=members)
        return list(zip(hits.controller.tolist(), np.where(hits.hit, hits.distance, 0.0).tolist(), strict=True))

    def advance(self) -> None:
        """One tick: everybody whose input is there moves.

        A server that has lost time finds more inputs than it can wait for. Their players move
        twice, or each of their later inputs would wait as long.
        """
        self.tick += 1
        self.audit.store(self.tick)
        players = [self.players[member] for member in self.crowd.ids.tolist()]
        self._move(players, 0)
        self._move(players, LONGEST_WAIT)
        self.history.store(self.tick)

    def _move(self, players: list[Player], waiting: int) -> None:
        """Move those of all players, in the order of the crowd, who have more inputs waiting."""
        active = np.array([len(player.queue) > waiting for player in players], bool)
        if not active.any():
            return
        displacements = np.zeros((len(active), 3))
        grounded = self.crowd.grounded.tolist()
        done: list[Input] = []
        who: list[Player] = []
        for k in np.flatnonzero(active).tolist():
            player = players[k]
            value = player.queue[0]
            player.velocity = fall(player.velocity, grounded[k], value.jump)
            displacements[k] = value.x * DT, value.y * DT, player.velocity * DT
            player.left += 1
            player.acknowledged += 1
            if player.left == TICKS_PER_INPUT:
                player.left = 0
                done.append(player.queue.pop(0))
                who.append(player)
        flags = self.crowd.move(displacements, DT, active=active)
        for k in np.flatnonzero(active & ((flags & int(CollisionFlags.UP)) != 0)).tolist():
            players[k].velocity = min(players[k].velocity, 0.0)
        if done:
            self._judge(who, done)

    def _judge(self, who: list[Player], done: list[Input]) -> None:
        ids = np.array([self.claimants[player.member] for player in who])
        ticks = np.array([value.number * TICKS_PER_INPUT for value in done])
        claims: NDArray[np.float64] = np.array([value.claim for value in done], np.float64)
        verdicts = self.audit.check(ids, ticks, claims)
        self.audit.accept(ids)
        for player, reason in zip(who, verdicts.reason.tolist(), strict=True):
            if reason:
                player.refused.append(Reason(reason))
