"""How many ticks of examples/server end within their period.

    python bench/bench_server.py --bots 200 --seconds 60

The server runs in this process and the bots in others, on the loopback interface. The bots have the
lower priority, because they stand for other machines. The extra ``server`` is needed.
"""
from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "server"
sys.path.insert(0, str(FOLDER))


async def measure(bots, seconds, processes):
    from protocol import RATE
    from server import Server

    server = Server()
    port = await server.start()
    share = [len(part) for part in np.array_split(np.arange(bots), processes)]
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, FOLDER / "bots.py", "--url", f"ws://127.0.0.1:{port}", "--bots", str(n), "--seconds",
            str(seconds), stdout=subprocess.PIPE, env=os.environ)
        for n in share if n
    ]
    if hasattr(os, "setpriority"):
        for process in running:
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
    lines = b"".join([(await process.communicate())[0] for process in running]).decode().splitlines()
    await server.stop()
    took = np.array(server.took) * 1e3
    print(f"{bots} bots, {seconds:g} s, {len(took)} ticks: {100 * (1 - server.late / len(took)):.2f} % end within "
          f"their period of {1e3 / RATE:.2f} ms")
    print("ms per tick: median {:.2f}, 99 % {:.2f}, 99.9 % {:.2f}, most {:.2f}".format(
        *np.percentile(took, (50, 99, 99.9)), took.max()))
    computed = np.array(server.computed) * 1e3
    print("processor time of the game thread, ms per tick: median {:.2f}, 99.9 % {:.2f}".format(
        *np.percentile(computed, (50, 99.9))))
    wrong = [line for line in lines if " 0 different" not in line or " 0 errors" not in line]
    print(f"{len(lines)} bots have ended, {len(wrong)} with a difference or an error")
    for line in wrong[:5]:
        print(line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bots", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.bots, arguments.seconds, arguments.processes))
