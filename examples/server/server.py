"""An authoritative server over websockets.

    pip install "pycct[server]"
    python examples/server/server.py --port 8765

The game runs 60 ticks per second in a thread of its own; the network runs in asyncio. Both exchange
messages through queues only. ``bots.py`` connects players.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from game import Game
from protocol import (
    INPUT_RATE,
    LARGEST_MESSAGE,
    RATE,
    SNAPSHOT_RATE,
    BadMessage,
    Input,
    Shot,
    pack_error,
    pack_hit,
    pack_players,
    pack_snapshot,
    pack_welcome,
    parse,
)
from websockets.asyncio.server import Server as WebServer
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

# Messages that may wait for a slow client; bursts of messages that are allowed; bad messages until
# the end.
LONGEST_OUTBOX, BURST, PATIENCE = 32, 60, 3
# Longest time that the network may keep Python's lock from the game thread, seconds. The default of
# 5 ms is a third of a tick, and a tick may wait several times.
SWITCH_INTERVAL = 0.0005
# Messages per second of one client: inputs, and some shots.
MESSAGE_RATE = 2 * INPUT_RATE


@dataclass(eq=False)
class Client:
    """A connection."""

    outbox: asyncio.Queue[bytes | None]
    member: int = -1
    allowance: float = BURST
    seen: float = field(default_factory=time.monotonic)

    def may_send(self) -> bool:
        """Count a message against the rate."""
        now = time.monotonic()
        self.allowance = min(BURST, self.allowance + (now - self.seen) * MESSAGE_RATE) - 1.0
        self.seen = now
        return self.allowance >= 0.0


class Server:
    """The game thread and the connections."""

    def __init__(self) -> None:
        self.game = Game()
        self.events: queue.SimpleQueue[tuple[Client, Any]] = queue.SimpleQueue()
        self.clients: dict[int, Client] = {}
        self.stopping = threading.Event()
        # Seconds that each tick took, seconds of processor time of its thread, and the number of
        # ticks that ended after their period.
        self.took: list[float] = []
        self.computed: list[float] = []
        self.late = 0
        self.failure: BaseException | None = None
        # Messages of this tick. One call hands all of them to the network, because a call for each
        # message would wake the network that often.
        self.pending: list[tuple[asyncio.Queue[bytes | None], bytes]] = []
        # Shots of this tick.
        self.shots: list[tuple[Client, Shot]] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.web: WebServer | None = None
        self.thread = threading.Thread(target=self._run, name="game", daemon=True)

    # --- the game thread --------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self.stopping.is_set():
                began, computed = time.monotonic(), time.thread_time()
                self._tick()
                self._flush()
                ended = time.monotonic()
                self.took.append(ended - began)
                self.computed.append(time.thread_time() - computed)
                due += 1 / RATE
                self.late += ended > due
                if ended < due:
                    time.sleep(due - ended)
                elif ended > due + 0.25:
                    # Too far behind to catch up.
                    due = ended
            # Those who have left at the end.
            self._handle_all()
        except BaseException as problem:
            self.failure = problem
            raise

    def _handle_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(*self.events.get_nowait())

    def _tick(self) -> None:
        self._handle_all()
        self._judge_shots()
        game = self.game
        game.advance()
        if game.tick % (RATE // SNAPSHOT_RATE) == 0 and self.clients:
            ids, places = game.crowd.ids, game.crowd.positions
            everybody = pack_players(ids, places)
            for member, place in zip(ids.tolist(), places.tolist(), strict=True):
                player = game.players[member]
                self._send(self.clients[member],
                           pack_snapshot(game.tick, player.acknowledged, place, len(ids), everybody))

    def _handle(self, client: Client, event: Any) -> None:
        if event == "join":
            player = self.game.join()
            client.member = player.member
            self.clients[player.member] = client
            x, y, z = self.game.crowd.positions[-1].tolist()
            self._send(client, pack_welcome(player.member, self.game.tick, (x, y, z)))
        elif event == "leave":
            if self.clients.pop(client.member, None) is not None:
                self.game.leave(client.member)
        elif client.member not in self.clients:
            self._send(client, pack_error("say hello first"))
        elif isinstance(event, Input):
            problem = self.game.put(client.member, event)
            if problem:
                self._send(client, pack_error(problem))
        elif isinstance(event, Shot):
            self.shots.append((client, event))

    def _judge_shots(self) -> None:
        """Answer the shots of this tick."""
        shots = [(client, shot) for client, shot in self.shots if client.member in self.clients]
        self.shots = []
        if shots:
            met = self.game.shoot([(client.member, shot) for client, shot in shots])
            for (client, _), (member, distance) in zip(shots, met, strict=True):
                self._send(client, pack_hit(member, distance))

    def _send(self, client: Client, data: bytes) -> None:
        self.pending.append((client.outbox, data))

    def _flush(self) -> None:
        if self.loop is not None and self.pending:
            # The loop may have been closed.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(_put_all, self.pending)
        self.pending = []

    # --- the network ------------------------------------------------------------------------------

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Begin to serve; the port."""
        self.loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.web = await serve(self._connection, host, port, max_size=LARGEST_MESSAGE, compression=None)
        self.thread.start()
        return int(next(iter(self.web.sockets)).getsockname()[1])

    async def stop(self) -> None:
        """Close all connections, then end the game thread."""
        if self.web is not None:
            self.web.close()
            await self.web.wait_closed()
        self.stopping.set()
        await asyncio.to_thread(self.thread.join)

    async def _connection(self, socket: ServerConnection) -> None:
        client = Client(asyncio.Queue(LONGEST_OUTBOX))
        writer = asyncio.create_task(_write(socket, client.outbox))
        greeted, bad = False, 0
        try:
            async for data in socket:
                if not client.may_send():
                    _put(client.outbox, pack_error("too many messages"))
                    break
                try:
                    message = parse(data)
                    if message is None and greeted:
                        raise BadMessage("one hello is enough")
                except BadMessage as problem:
                    _put(client.outbox, pack_error(str(problem)))
                    bad += 1
                    if bad >= PATIENCE:
                        break
                    continue
                greeted = True if message is None else greeted
                self.events.put((client, "join" if message is None else message))
        except ConnectionClosed:
            pass
        finally:
            self.events.put((client, "leave"))
            _put(client.outbox, None)
            with contextlib.suppress(ConnectionClosed):
                await writer
            await socket.close()


def _put(outbox: asyncio.Queue[bytes | None], data: bytes | None) -> None:
    """Append a message; a client that is too slow loses its oldest one."""
    if outbox.full():
        outbox.get_nowait()
    outbox.put_nowait(data)


def _put_all(messages: list[tuple[asyncio.Queue[bytes | None], bytes]]) -> None:
    for outbox, data in messages:
        _put(outbox, data)


async def _write(socket: ServerConnection, outbox: asyncio.Queue[bytes | None]) -> None:
    while (data := await outbox.get()) is not None:
        await socket.send(data)


async def main(host: str, port: int) -> None:
    """Serve until the thread of the game fails, or the task is cancelled."""
    server = Server()
    print(f"serving on ws://{host}:{await server.start(host, port)}")
    try:
        while server.failure is None:
            await asyncio.sleep(1.0)
    finally:
        await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An authoritative server over websockets.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765)
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(arguments.host, arguments.port))
