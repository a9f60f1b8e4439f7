"""Server, clients and network in one process: hashes, flags and times."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycct import Crowd
from pycct.net.checks import as_count, as_number
from pycct.net.history import History
from pycct.net.simulation import DT, SPEED, STEP, Arena, Clients, Network, Referee
from pycct.net.timeline import Timeline

__all__ = ["Report", "run"]

# Every message repeats the inputs of so many ticks, so that a lost one does no harm.
REPEATED = 24
# Cheats: so much too fast.
CHEATING = 1.1


@dataclass(frozen=True)
class Report:
    """What a self test found.

    Attributes
    ----------
    client_hash, server_hash : int
        `pycct.Crowd.state_hash` of all clients' characters, and of the server's after all
        corrections.
    corrected : int
        Inputs that arrived late and were applied by rollback.
    checks, false_flags, missed : int
        Claims that were checked; honest players that were refused; cheats that were not.
    hits, shots : int
        Shots that met a player in the tick that the shooter saw; shots in all.
    us_timeline, us_audit, us_history : float
        Microseconds per tick.
    """

    client_hash: int
    server_hash: int
    corrected: int
    checks: int
    false_flags: int
    missed: int
    hits: int
    shots: int
    us_timeline: float
    us_audit: float
    us_history: float

    @property
    def ok(self) -> bool:
        """True if the hashes are equal, no flag is wrong, and every shot meets its target."""
        good = self.client_hash == self.server_hash and self.hits == self.shots
        return good and self.false_flags == self.missed == 0


def _roll_back(players: int, ticks: int, seed: int, network: Network) -> tuple[int, int, int, float]:
    """Players send inputs; the server applies those that are late by rollback."""
    arena, there = Arena(seed), Arena(seed)
    starts = arena.starts(players, seed + 1)
    clients = Clients(arena, starts, seed + 2)
    server = Crowd(there.scene, starts, step_offset=STEP)
    timeline = Timeline(server, ticks=120)
    ids = server.ids
    sent: list[NDArray[Any]] = []
    known = np.full(players, -1, np.int64)
    corrected, spent = 0, 0.0

    def take(messages: list[tuple[int, int, Any]]) -> int:
        late: dict[tuple[int, int], Any] = {}
        for newest, player, inputs in messages:
            oldest = newest - len(inputs) + 1
            for tick in range(max(oldest, int(known[player]) + 1), newest + 1):
                late[tick, player] = inputs[tick - oldest]
            known[player] = max(known[player], newest)
        if late:
            keys = np.array(list(late))
            timeline.correct(keys[:, 0], ids[keys[:, 1]], np.array(list(late.values())))
        return sum(tick < timeline.tick for tick, _ in late)

    for tick in range(ticks):
        inputs = clients.inputs()
        sent.append(inputs)
        clients.advance(inputs)
        there.pose(tick + 1)
        started = time.perf_counter()
        corrected += take(network.receive(tick))
        timeline.advance(DT)
        spent += time.perf_counter() - started
        packet = np.stack(sent[-REPEATED:], axis=1)
        network.send(tick, np.arange(players), np.full(players, tick), packet)
    # What is still missing is sent again until it arrives.
    last = np.stack(sent[-120:], axis=1)
    corrected += take([(ticks - 1, player, last[player]) for player in range(players)])
    return clients.crowd.state_hash(), server.state_hash(), corrected, spent / ticks * 1e6


def _audit(players: int, ticks: int, seed: int, network: Network) -> tuple[int, int, int, float]:
    """Every second player cheats from the middle of the run on, straight across an open arena."""
    plain = np.column_stack([np.zeros(players), np.linspace(-15, 15, players), np.full(players, 0.91)])
    clients = Clients(Arena(seed, moving=False, things=0), plain, seed + 4)
    clients.pace[:] = SPEED
    referee = Referee(Arena(seed, moving=False, things=0), plain)
    cheats = np.arange(players) % 2 == 1
    spent = 0.0
    for tick in range(1, ticks + 1):
        if tick == ticks // 2:
            clients.pace[cheats] = SPEED * CHEATING
        clients.advance(clients.inputs())
        if tick % 3 == 0:
            network.send(tick, np.arange(players), np.full(players, tick), clients.claims())
        started = time.perf_counter()
        referee.tick(tick, network.receive(tick))
        spent += time.perf_counter() - started
    flagged = {member for member, _, _ in referee.refused}
    wrong = {m for m, tick, _ in referee.refused if not cheats[m] or tick < ticks // 2}
    missed = len(set(np.flatnonzero(cheats).tolist()) - flagged)
    return referee.checks, len(wrong), missed, spent / ticks * 1e6


def _shoot(players: int, ticks: int, seed: int, delay: float) -> tuple[int, int, float]:
    """Each player shoots at another one, straight down on where it was when the shooter saw it."""
    arena = Arena(seed, things=0, moving=False)
    clients = Clients(arena, arena.starts(players, seed + 1), seed + 6)
    crowd = clients.crowd
    history = History(crowd, ticks=64)
    ids = crowd.ids
    hits = shots = 0
    spent = 0.0
    rng = np.random.default_rng(seed + 7)
    for tick in range(ticks):
        clients.advance(clients.inputs())
        started = time.perf_counter()
        history.store(tick)
        if tick >= 63:
            seen = tick - delay - rng.random(players)
            seen = np.maximum(seen, history.ticks[0])
            targets = rng.permutation(players)
            aims = np.array([history.positions(t, [ids[k]])[0] for t, k in zip(seen, targets, strict=True)])
            answer = history.raycast_many(seen, aims + np.array([0.0, 0.0, 1.5]), (0, 0, -1), 2.0)
            # Another player may stand in the line.
            hits += int((answer.controller >= 0).sum())
            shots += players
        spent += time.perf_counter() - started
    return hits, shots, spent / ticks * 1e6


def run(players: int = 64, rtt: float = 150.0, jitter: float = 40.0, loss: float = 5.0, seconds: float = 5.0,
        seed: int = 0) -> Report:
    """Simulate a server, its players and the network between them.

    Parameters
    ----------
    players : int
        1 to 10,000.
    rtt, jitter : float
        Round trip, and the largest extra delay of a message, milliseconds.
    loss : float
        Messages that are lost, per cent, less than 100.
    seconds : float
        Simulated time, 2 to 3600.
    seed : int
        Of the arena, the players and the network.

    Returns
    -------
    Report
    """
    n = as_count(players, "players", 1, 10_000)
    rtt, jitter = as_number(rtt, "rtt", 0.0), as_number(jitter, "jitter", 0.0)
    loss, seconds = as_number(loss, "loss", 0.0), as_number(seconds, "seconds", 2.0)
    seed = as_count(seed, "seed", 0, 1 << 31)
    if rtt + jitter > 1000.0:
        raise ValueError("rtt and jitter together must be <= 1000")
    if loss >= 100.0 or seconds > 3600.0:
        raise ValueError("loss must be < 100" if loss >= 100.0 else "seconds must be <= 3600")
    ticks = int(seconds / DT)
    client, server, corrected, us_timeline = _roll_back(n, ticks, seed, Network(seed + 8, rtt, jitter, loss))
    checks, wrong, missed, us_audit = _audit(n, ticks, seed, Network(seed + 9, rtt, jitter, loss))
    hits, shots, us_history = _shoot(n, ticks, seed, min((rtt + jitter) / 1000 / DT, 60.0))
    return Report(client, server, corrected, checks, wrong, missed, hits, shots, us_timeline, us_audit, us_history)
