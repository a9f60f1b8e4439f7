"""The movement part of an authoritative game server, in one file and fully typed.

    python examples/server_tick.py

Players send inputs, and the server moves their characters sixty times a second. A lift goes up and
down, and the first player to touch the coin gets it. At the end the run is repeated from a snapshot
and must return the same bits. ``make lint`` checks this file with ``mypy --strict``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pycct import Actor, Behavior, Box, CharacterController, CollisionFlags, Hit, Plane, Scene, separate

DT = 1 / 60
GRAVITY = 9.81
WORLD, PICKUPS, PLAYERS = 1, 2, 4


@dataclass(frozen=True)
class Input:
    """Input of a client in one tick."""

    walk: tuple[float, float] = (0.0, 0.0)
    jump: bool = False


class Player:
    """A character with a name, a vertical velocity and a purse."""

    def __init__(self, scene: Scene, name: str, feet: tuple[float, float, float]) -> None:
        self.name = name
        self.rise = 0.0
        self.coins = 0
        self.body = CharacterController(
            scene,
            radius=0.35,
            height=1.0,
            step_offset=0.35,
            slope_limit=math.cos(math.radians(50)),
            rules="robust",
            layer=PLAYERS,
            mask=WORLD | PLAYERS,
            collide=True,
            user_data=name,
        )
        self.body.foot_position = feet

    def tick(self, wanted: Input) -> CollisionFlags:
        """Move for one tick."""
        if self.body.grounded:
            self.rise = 5.0 if wanted.jump else -1.0
        self.rise -= GRAVITY * DT
        flags = self.body.move((wanted.walk[0] * DT, wanted.walk[1] * DT, self.rise * DT), DT)
        if flags & CollisionFlags.UP:
            self.rise = min(self.rise, 0.0)
        return flags

    def walls(self) -> list[Hit]:
        """Hits of the last move's side pass."""
        return [hit for hit in self.body.hits if hit.pass_.name == "SIDE"]

    def snapshot(self) -> tuple[bytes, float, int]:
        """Everything that decides the next ticks."""
        return self.body.save(), self.rise, self.coins

    def restore(self, data: tuple[bytes, float, int]) -> None:
        """Go back to a snapshot."""
        body, self.rise, self.coins = data
        self.body.restore(body)


class Game:
    """The scene and its players."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.add(Plane((0, 0, 1)), layer=WORLD)
        for i in range(4):
            self.scene.add(Box((0.5, 2, 0.15 * (i + 1))), position=(4 + i, 0, 0.15 * (i + 1)), layer=WORLD)
        self.lift: Actor = self.scene.add(
            Box((1, 1, 0.1)), position=(0, 5, 0.1), body="kinematic", behavior=Behavior.CAN_RIDE, layer=WORLD
        )
        self.coin: Actor | None = self.scene.add(Box((0.2, 0.2, 0.2)), position=(7.2, 0, 1.6), layer=PICKUPS)
        self.players = [
            Player(self.scene, "anna", (0, 0, 0)),
            Player(self.scene, "bert", (1, 0, 0)),
            Player(self.scene, "cleo", (0, 5, 0.2)),
        ]
        self.ticks = 0

    def tick(self, inputs: dict[str, Input]) -> None:
        """One sixtieth of a second."""
        self.ticks += 1
        height = 0.1 + 1.5 * (1 - math.cos(self.ticks * DT))
        self.lift.move_to((0, 5, height))
        separate([player.body for player in self.players], DT)
        for player in self.players:
            player.tick(inputs.get(player.name, Input()))
            self.collect(player)

    def collect(self, player: Player) -> None:
        """Give the coin to a player that touches it."""
        position, rotation = player.body.pose
        for other in self.scene.overlap(player.body.shape, position, rotation, mask=PICKUPS):
            self.scene.remove(other)
            self.coin = None
            player.coins += 1


def play(game: Game, ticks: int) -> list[tuple[float, float, float]]:
    """Anna and Bert walk to the stairs, Cleo rides the lift; the last positions."""
    inputs = {"anna": Input((3.0, 0.0)), "bert": Input((2.0, 0.0)), "cleo": Input()}
    for _ in range(ticks):
        game.tick(inputs)
    return [player.body.position for player in game.players]


def main() -> None:
    """Play, print, and play again."""
    game = Game()
    play(game, 60)
    saved = [player.snapshot() for player in game.players]
    ticks = game.ticks
    ends = play(game, 240)
    for player in game.players:
        x, y, z = player.body.foot_position
        print(f"{player.name} stands at ({x:.2f}, {y:.2f}, {z:.2f}) and has {player.coins} coin(s)")

    again = Game()
    again.ticks = ticks
    # Restoring needs the same scene: the lift at its old position.
    again.lift.move_to((0, 5, 0.1 + 1.5 * (1 - math.cos(ticks * DT))))
    for player, data in zip(again.players, saved, strict=True):
        player.restore(data)
    print("again, to the bit:", play(again, 240) == ends)


if __name__ == "__main__":
    main()
