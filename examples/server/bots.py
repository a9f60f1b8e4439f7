"""Players that walk about, predict themselves, and compare with what the server says.

Run ``python examples/server/bots.py --bots 8 --seconds 10`` while the server runs.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from dataclasses import dataclass, field

import numpy as np
from game import Prediction, level
from protocol import (
    ERROR,
    HIT,
    INPUT_RATE,
    SNAPSHOT,
    SPEED,
    TICKS_PER_INPUT,
    WELCOME,
    Input,
    Shot,
    hello,
    pack_input,
    pack_shot,
    parse_snapshot,
    parse_welcome,
)
from websockets.asyncio.client import ClientConnection, connect

from pycct import Scene


@dataclass
class Bot:
    """What one bot has done and seen."""

    member: int = -1
    # Own positions by the number of ticks that the member has moved.
    places: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    compared: int = 0
    different: int = 0
    hits: int = 0
    errors: list[str] = field(default_factory=list)
    acknowledged: int = 0
    tick: int = 0
    players: int = 0


async def play(url: str, seed: int, seconds: float, scene: Scene | None = None) -> Bot:
    """Join, walk, shoot and leave; what happened."""
    bot = Bot()
    rng = np.random.default_rng(seed)
    async with connect(url, compression=None) as socket:
        await socket.send(hello())
        first = await socket.recv()
        assert isinstance(first, bytes) and first[0] == WELCOME
        bot.member, bot.tick, place = parse_welcome(first)
        bot.places[0] = place
        reader = asyncio.create_task(_listen(socket, bot))
        own = Prediction(scene or level(), place)
        angle = float(rng.uniform(0, 2 * math.pi))
        loop = asyncio.get_running_loop()
        began = loop.time()
        count = int(seconds * INPUT_RATE)
        for number in range(1, count + 1):
            angle += float(rng.normal(0, 0.2))
            # As the server reads it: float32.
            x, y = (float(np.float32(0.999 * SPEED * f(angle))) for f in (math.cos, math.sin))
            jump = bool(rng.random() < 0.05)
            for place in own.apply(x, y, jump):
                bot.places[len(bot.places)] = place
            await socket.send(pack_input(Input(number, x, y, jump, place)))
            if number % 20 == 0:
                await socket.send(pack_shot(Shot(float(bot.tick), (math.cos(angle), math.sin(angle), 0.0))))
            await asyncio.sleep(max(0.0, began + number / INPUT_RATE - loop.time()))
        for _ in range(200):
            if bot.acknowledged == count * TICKS_PER_INPUT:
                break
            await asyncio.sleep(0.05)
        reader.cancel()
    return bot


async def _listen(socket: ClientConnection, bot: Bot) -> None:
    async for data in socket:
        assert isinstance(data, bytes)
        if data[0] == SNAPSHOT:
            snapshot = parse_snapshot(data)
            bot.tick, bot.acknowledged, bot.players = snapshot.tick, snapshot.acknowledged, len(snapshot.players)
            same = snapshot.position == bot.places[snapshot.acknowledged]
            bot.compared += same
            bot.different += not same
        elif data[0] == HIT:
            bot.hits += 1
        elif data[0] == ERROR:
            bot.errors.append(data[1:].decode())


async def crowd(url: str, bots: int, seconds: float) -> list[Bot]:
    """Run many bots at a time; one copy of the level serves all of them."""
    scene = level()
    return list(await asyncio.gather(*(play(url, seed, seconds, scene) for seed in range(bots))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Players for the server.")
    parser.add_argument("--url", default="ws://127.0.0.1:8765")
    parser.add_argument("--bots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    for result in asyncio.run(crowd(arguments.url, arguments.bots, arguments.seconds)):
        print(f"bot {result.member}: {result.acknowledged} ticks, {result.compared} snapshots equal, "
              f"{result.different} different, {result.hits} answers to shots, {len(result.errors)} errors")
