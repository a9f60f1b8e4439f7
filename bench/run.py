"""Measure pycct beside other character controllers, in turn, within the same minutes.

Every peer runs in its own process. In each round every peer makes all moves of a workload once, in
an order that changes every round, so that a slow minute of the machine affects all of them. Figures
are medians over the rounds. Two columns compare with culverin, each as the median of the rounds'
ratios: wall-clock time (times as fast) and processor time, which other programs disturb least and
which adds up all threads.
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
PEERS = ("pycct", "crowd", "crowd2", "culverin", "rapier")
BASE = "culverin"
LABELS = {
    "pycct": "pycct, single moves",
    "crowd": "pycct, Crowd",
    "crowd2": "pycct, Crowd, 2 threads",
    "culverin": "culverin (Jolt)",
    "rapier": "rapier3d",
}
WIDE = len("times as fast as " + BASE)


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
                self.facts["peak_mib"] = answer["peak_mib"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(path, peers, runs):
    """Return rows of one workload: {peer: facts and times}."""
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
            pairs = zip(row["us_runs"], base["us_runs"], strict=True)
            row["times_as_fast"] = statistics.median(theirs / mine for mine, theirs in pairs)
    return rows


def number(row, name, form):
    """Format a figure of a row, or a dash."""
    return "-" if row.get(name) is None else format(row[name], form)


def table(results):
    columns = (
        f"{'threads':>7} {'us/move':>8} {'min':>8} {'max':>8} {'times as fast as ' + BASE:>{WIDE}} "
        f"{'cpu us':>8} {'cpu x ' + BASE:>14} {'walked m':>9} {'build s':>8} {'peak MiB':>9}"
    )
    head = f"{'scene':<9} {'peer':<9} {columns}"
    lines = [head, "-" * len(head)]
    for scene, rows in results.items():
        for peer, row in rows.items():
            if "error" in row:
                lines.append(f"{scene:<9} {peer:<9} failed: {row['error']}")
                continue
            walked = f"{row['walked_m']:.2f}" + ("" if row["finite"] else " NaN!")
            lines.append(
                f"{scene:<9} {peer:<9} {row['threads']:>7} {row['us_per_move']:>8.3f} {row['us_min']:>8.3f} "
                f"{row['us_max']:>8.3f} {number(row, 'times_as_fast', '.2f'):>{WIDE}} {row['cpu_us_per_move']:>8.3f} "
                f"{number(row, 'ratio', '.2f'):>14} {walked:>9} {row['build_s']:>8.3f} "
                f"{number(row, 'peak_mib', '.0f'):>9}"
            )
    return "\n".join(lines)


def plot(results, path):
    """Plot us per move as bars, one group for each scene.

    Return the path, or None without matplotlib.
    """
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    scenes = list(results)
    peers = list(dict.fromkeys(peer for rows in results.values() for peer in rows))
    figure, axes = pyplot.subplots(figsize=(2.5 + 1.9 * len(scenes), 4.5), layout="constrained")
    width = 0.8 / len(peers)
    for k, peer in enumerate(peers):
        rows = [results[scene].get(peer, {}) for scene in scenes]
        at = [j + (k + 0.5) * width - 0.4 for j in range(len(scenes))]
        heights = [row.get("us_per_move", 0.0) for row in rows]
        least = [h - row.get("us_min", h) for h, row in zip(heights, rows, strict=True)]
        most = [row.get("us_max", h) - h for h, row in zip(heights, rows, strict=True)]
        bars = axes.bar(at, heights, width, yerr=(least, most), capsize=2, error_kw={"lw": 0.8}, label=LABELS[peer])
        axes.bar_label(bars, [f"{h:.2f}" if h else "failed" for h in heights], fontsize=7, padding=2)
    axes.set_xticks(range(len(scenes)), scenes)
    axes.set_ylabel("us per move (median; whiskers: least and most)")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


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
    picture = plot(results, args.out / "results.png") if results else None
    print(f"\nwritten: {path}" + (f", {picture}" if picture else "; no plot, matplotlib is not here"))
    return 1 if any("error" in row for rows in results.values() for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
