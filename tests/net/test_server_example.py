"""examples/server: bots play, bad messages disturb nobody, shutdown is clean."""

import asyncio
import struct
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "server"
if not FOLDER.exists():
    pytest.skip("examples/ is not here", allow_module_level=True)
websockets = pytest.importorskip("websockets")
NAMES = ("protocol", "game", "server", "bots")


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(FOLDER))
    try:
        import bots
        import game
        import protocol
        import server

        yield {"bots": bots, "game": game, "protocol": protocol, "server": server}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


def serve(example, client):
    """Run a coroutine function of a URL against a server; its result and the server."""

    async def both():
        server = example["server"].Server()
        port = await server.start()
        try:
            return await asyncio.wait_for(client(f"ws://127.0.0.1:{port}"), 60), server
        finally:
            await server.stop()

    result, server = asyncio.run(both())
    assert server.failure is None and not server.thread.is_alive()
    return result, server


def test_the_state_of_every_bot_equals_the_replay_of_the_server(example):
    bots, server = serve(example, lambda url: example["bots"].crowd(url, 8, 2.0))
    assert len({bot.member for bot in bots}) == 8
    for bot in bots:
        assert bot.errors == [] and bot.different == 0 and bot.compared > 5
        assert bot.acknowledged == 120 and bot.hits > 0 and bot.players >= 2
    # All have left.
    assert server.game.players == {} and len(server.game.crowd) == len(server.game.claims) == 0


def bad_messages(protocol):
    nan = float("nan")
    good = protocol.Input(1, 1.0, 0.0, False, (0.0, 0.0, 0.0))
    yield b""
    yield b"\x09"
    yield bytes([protocol.HELLO, 99])
    yield protocol.pack_input(good)[:-1]
    yield protocol.pack_input(good._replace(x=nan))
    yield protocol.pack_input(good._replace(x=100.0))
    yield protocol.pack_input(good._replace(claim=(0.0, float("inf"), 0.0)))
    yield struct.pack("<BIffBfff", protocol.INPUT, 1, 0, 0, 7, 0, 0, 0)
    yield protocol.pack_shot(protocol.Shot(nan, (1.0, 0.0, 0.0)))
    yield protocol.pack_shot(protocol.Shot(1.0, (0.0, 0.0, 0.0)))
    yield "text"


def test_bad_messages_are_named(example):
    protocol = example["protocol"]
    for data in bad_messages(protocol):
        with pytest.raises(protocol.BadMessage):
            protocol.parse(data)
    good = protocol.Input(3, 1.5, -2.0, True, (1.0, 2.0, 3.0))
    assert protocol.parse(protocol.pack_input(good)) == good and protocol.parse(protocol.hello()) is None


def test_a_client_that_misbehaves_disturbs_nobody(example):
    protocol, bots = example["protocol"], example["bots"]

    async def disturb(url):
        from websockets.asyncio.client import connect
        from websockets.exceptions import ConnectionClosed

        closed = []
        for data in [*bad_messages(protocol), b"x" * 5000]:
            async with connect(url, compression=None) as socket:
                try:
                    await socket.send(protocol.hello())
                    for _ in range(4):
                        await socket.send(data)
                    while True:
                        await socket.recv()
                except ConnectionClosed:
                    closed.append(data)
        # Too many at once, an input out of order, an input of one that has not said hello.
        async with connect(url, compression=None) as socket:
            try:
                await socket.send(protocol.hello())
                for _ in range(200):
                    await socket.send(protocol.pack_input(protocol.Input(9, 0.0, 0.0, False, (0.0, 0.0, 0.0))))
                errors = [data async for data in socket if data[0] == protocol.ERROR]
            except ConnectionClosed:
                errors = []
        async with connect(url, compression=None) as socket:
            await socket.send(protocol.pack_shot(protocol.Shot(1.0, (1.0, 0.0, 0.0))))
            assert (await socket.recv())[1:] == b"say hello first"
        return closed, errors

    async def together(url):
        return await asyncio.gather(bots.play(url, 1, 2.0), disturb(url))

    (bot, (closed, errors)), server = serve(example, together)
    assert bot.errors == [] and bot.different == 0 and bot.acknowledged == 120
    assert len(closed) == 12 and any(b"too many messages" in data or b"must come next" in data for data in errors)
    assert len(server.game.crowd) == 0


def test_a_server_that_has_lost_time_catches_up(example):
    protocol, module = example["protocol"], example["game"]
    game = module.Game()
    late, other = game.join(), game.join()
    place = tuple(game.crowd.positions[0].tolist())
    own = module.Prediction(module.level(), place)
    places = [place]
    for number in range(1, 41):
        places += own.apply(2.0, 1.0, number % 7 == 0)
        assert game.put(late.member, protocol.Input(number, 2.0, 1.0, number % 7 == 0, places[-1])) == ""
    before = game.crowd.positions[1].tolist()
    for tick in range(1, 41):
        game.advance()
        assert tuple(game.crowd.positions[0].tolist()) == places[late.acknowledged]
        assert late.acknowledged >= tick
    assert late.acknowledged > 68 and len(late.queue) <= module.LONGEST_WAIT
    assert other.acknowledged == 0 and game.crowd.positions[1].tolist() == before


def test_a_shot_is_judged_in_the_past(example):
    protocol, game = example["protocol"], example["game"].Game()
    shooter, target = game.join(), game.join()
    game.crowd.teleport([0, 1], [(0, 38, 0.91), (5, 38, 0.91)])
    game.claims.teleport([0, 1], [(0, 38, 0.91), (5, 38, 0.91)])
    game.advance()
    seen = float(game.tick)
    for number in range(1, 31):
        game.put(target.member, protocol.Input(number, 0.0, -4.0, False, (5.0, 38.0 - 4 * number / 30, 0.91)))
        game.advance()
        game.advance()
    ticks = seen, float(game.tick), -1e300, 1e300
    then, now, before, later = game.shoot([(shooter.member, protocol.Shot(tick, (1.0, 0.0, -0.1))) for tick in ticks])
    # Now the shot flies past where the target was, to the floor.
    assert then[0] == target.member and 4.0 < then[1] < 5.0 and now[0] == -1 and now[1] > 5.0
    assert before[0] == target.member and later == now
    assert game.shoot([(shooter.member, protocol.Shot(seen, (0.0, 0.0, 1.0)))]) == [(-1, 0.0)]
    assert game.put(target.member, protocol.Input(99, 0.0, 0.0, False, (0.0, 0.0, 0.0))) == "input 31 must come next"
