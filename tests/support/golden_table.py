"""The table of how near PhysX we are, as Markdown: ``python tests/support/golden_table.py``."""

import golden_queries
import goldens


def lines(rows):
    """Markdown lines of the scores of walks and questions."""
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


def percent(share):
    """99.95 %, rounded down, so that 100 % means all."""
    return f"{int(share * 10000) / 100:.2f} %"


def judged():
    """Names of all recordings that the table tells of."""
    return [*goldens.WALKS, *goldens.QUERIES]


def main():
    """Judge all recordings that are there and print the table."""
    rows = []
    for name in judged():
        if goldens.path_of(name) is not None:
            rows.append(golden_queries.judge(name) if name.startswith("query_") else goldens.judge(name))
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
