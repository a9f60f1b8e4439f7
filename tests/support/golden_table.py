"""Agreement with PhysX as Markdown tables: ``python tests/support/golden_table.py``.

``--stable FOLDER`` prints the table of the recordings that contain how far PhysX repeats itself.
"""

import argparse
from pathlib import Path

import golden_queries
import goldens
import stable_recordings


def lines(rows):
    """Return Markdown lines with the scores of walks and queries."""
    walks = [r for r in rows if "right" in r]
    queries = [r for r in rows if "right" not in r]
    out = []
    if walks:
        out.append("| recording | moves | as PhysX | same flags | same hits |")
        out.append("|---|---:|---:|---:|---:|")
        for r in walks:
            near = "" if r["near"] == 1e-4 else " (1 mm)"
            out.append(
                f"| {r['name']}{near} | {r['moves']} | {percent(r['right'])} | {percent(r['flags'])} "
                f"| {percent(r['hits'])} |"
            )
    if queries:
        out += ["", "| recording | sweeps | overlaps | penetrations | differ, ours proved right |"]
        out.append("|---|---:|---:|---:|---:|")
        for r in queries:
            out.append(f"| {r['name']} | {r['sweeps']} | {r['overlaps']} | {r['penetrations']} | {r['proved']} |")
    return out


def stable_lines(rows):
    """Return Markdown lines with the scores of recordings that contain PhysX's repeatability."""
    out = ["| recording | moves | as PhysX | stable moves | stable, as PhysX |", "|---|---:|---:|---:|---:|"]
    for r in rows:
        near = "" if r["near"] == 1e-4 else " (1 mm)"
        out.append(
            f"| {r['name']}{near} | {r['moves']} | {percent(r['right'])} | {r['stable']} "
            f"| {percent(r['right_where_stable'])} |"
        )
    return out


def percent(share):
    """Format a share like 99.95 %, rounded down, so that 100 % means every move."""
    return f"{int(share * 10000) / 100:.2f} %"


def judged():
    """Return the names of all recordings in the tables."""
    return [*goldens.WALKS, *goldens.QUERIES]


def main():
    """Compare all recordings that are present and print the tables."""
    parser = argparse.ArgumentParser(description="Agreement with PhysX as Markdown tables.")
    parser.add_argument("--stable", type=Path, metavar="FOLDER", help="only the recordings of this folder")
    folder = parser.parse_args().stable
    if folder is not None:
        print("\n".join(stable_lines([stable_recordings.judge(p) for p in sorted(folder.glob("*.json.gz"))])))
        return
    rows = []
    for name in judged():
        if goldens.path_of(name) is not None:
            rows.append(golden_queries.judge(name) if name.startswith("query_") else goldens.judge(name))
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
