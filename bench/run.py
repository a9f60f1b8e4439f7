"""Measure pycct beside other character controllers: all in one run, by turns, in the same minutes.

Every peer lives in a process of its own. Round by round each makes all moves of a workload once, in an order that
changes every round, so that a slow minute of the machine meets all of them. Figures are medians over the rounds; the
ratio to culverin is the median of the rounds' ratios of processor time, which a busy machine disturbs least.
"""
from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from scenes import SCENES, write

HERE = Path(__file__).resolve().parent
PEERS = ("pycct", "culverin", "rapier")
BASE = "culverin"


class Process:
    """One peer on one workload."""

    def __init__(self, peer, path):
        self.peer, self.error, self.times = peer, None, []
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "peer.py"), f"peer_{peer}", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.facts = self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            self.error = f"ended with code {self.process.wait()}"
            return {}
        return json.loads(line)

    def run(self):
        if self.error is None:
            self.process.stdin.write("run\n")
            self.process.stdin.flush()
            answer = self._read()
            if self.error is None:
                self.times.append((answer["us"], answer["cpu_us"]))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(path, peers, runs):
    """Rows of one workload: {peer: facts and times}."""
    processes = [Process(peer, path) for peer in peers]
    try:
        for process in processes:
            process.run()
            process.times.clear()  # warm-up
        for k in range(runs):
            turn = k % len(processes)
            for process in processes[turn:] + processes[:turn]:
                process.run()
    finally:
        for process in processes:
            process.close()
    rows = {}
    for process in processes:
        row = dict(process.facts, peer=process.peer)
        if process.error is not None or not process.times:
            row["error"] = process.error or "no run"
        else:
            wall, cpu = (list(column) for column in zip(*process.times, strict=True))
            row.update(
                us_per_move=statistics.median(wall), us_min=min(wall), us_max=max(wall), us_runs=wall,
                cpu_us_per_move=statistics.median(cpu), cpu_us_min=min(cpu), cpu_us_runs=cpu,
            )
        rows[process.peer] = row
    base = rows.get(BASE, {})
    for row in rows.values():
        if "cpu_us_runs" in row and "cpu_us_runs" in base:
            pairs = zip(row["cpu_us_runs"], base["cpu_us_runs"], strict=True)
            row["ratio"] = statistics.median(mine / theirs for mine, theirs in pairs)
    return rows


def table(results):
    columns = f"{'us/move':>8} {'min':>8} {'max':>8} {'cpu us':>8} {'x ' + BASE:>11} {'walked m':>9} {'build s':>8}"
    head = f"{'scene':<9} {'peer':<9} {columns}"
    lines = [head, "-" * len(head)]
    for scene, rows in results.items():
        for peer, row in rows.items():
            if "error" in row:
                lines.append(f"{scene:<9} {peer:<9} failed: {row['error']}")
                continue
            ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
            walked = f"{row['walked_m']:.2f}" + ("" if row["finite"] else " NaN!")
            lines.append(
                f"{scene:<9} {peer:<9} {row['us_per_move']:>8.3f} {row['us_min']:>8.3f} {row['us_max']:>8.3f} "
                f"{row['cpu_us_per_move']:>8.3f} {ratio:>11} {walked:>9} {row['build_s']:>8.3f}"
            )
    return "\n".join(lines)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="rounds (default: %(default)s)")
    parser.add_argument("--scenes", nargs="+", choices=list(SCENES), default=list(SCENES))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="default: %(default)s")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error("--runs must be at least 1")

    results = {}
    for scene in args.scenes:
        print(f"{scene} ...", file=sys.stderr, flush=True)
        path = write(scene, args.out / "scenes")
        if path is None:
            print(f"{scene}: left out, its level files are not here (see bench/README.md)", file=sys.stderr)
            continue
        results[scene] = measure(path, args.peers, args.runs)
    print(table(results))
    report = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": processor(),
        "runs": args.runs,
        "results": results,
    }
    path = args.out / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"\nwritten: {path}")
    return 1 if any("error" in row for rows in results.values() for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
