"""``python -m pycct net``: what serves authoritative servers."""

from __future__ import annotations

import argparse

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the options of this command."""
    parser = subparsers.add_parser("net", help="simulate a server, its players and the network")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser(
        "selftest",
        help="rollback, validation and rewind queries in one process",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Simulates players, a server and the network between them in one process. Prints the hashes of\n"
        "clients and server, false and missed flags, and microseconds per tick. The exit code is 0 if the hashes\n"
        "are equal and no flag is wrong, else 1.",
        epilog="examples:\n  python -m pycct net selftest --players 64 --rtt 150 --jitter 40 --loss 5",
    )
    test.add_argument("--players", type=int, default=64, metavar="N", help="default: 64")
    test.add_argument("--rtt", type=float, default=150.0, metavar="MS", help="round trip; default: 150")
    test.add_argument("--jitter", type=float, default=40.0, metavar="MS", help="largest extra delay; default: 40")
    test.add_argument("--loss", type=float, default=5.0, metavar="PERCENT", help="lost messages; default: 5")
    test.add_argument("--seconds", type=float, default=5.0, metavar="S", help="simulated time; default: 5")
    test.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")


def run(args: argparse.Namespace) -> int:
    """Run the self test and print its report.

    Parameters
    ----------
    args : argparse.Namespace
        ``action``, ``players``, ``rtt``, ``jitter``, ``loss``, ``seconds``, ``seed``.

    Returns
    -------
    int
        Exit code: 0, or 1 when something is wrong.
    """
    from pycct.net import selftest

    report = selftest.run(args.players, args.rtt, args.jitter, args.loss, args.seconds, args.seed)
    same = "equal" if report.client_hash == report.server_hash else "DIFFERENT"
    print(f"rollback  clients {report.client_hash:016x}  server {report.server_hash:016x}  {same}")
    print(f"          {report.corrected} late inputs, {report.us_timeline:.0f} us per tick")
    print(f"audit     {report.checks} claims, {report.false_flags} false and {report.missed} missed flags, "
          f"{report.us_audit:.0f} us per tick")
    print(f"rewind    {report.hits} of {report.shots} shots hit, {report.us_history:.0f} us per tick")
    return 0 if report.ok else 1
