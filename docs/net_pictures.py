"""Draw the timelines of docs/net from what the library computes.

    python docs/net_pictures.py [folder] [name ...]

Writes one picture per page (default: all of them into docs/net).
"""
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle

from pycct import Box, Crowd, Plane, Scene
from pycct.net import History, Timeline
from pycct.net.simulation import REST, SPEED, Arena, Clients, Network, Referee

DT = 1 / 60
BLUE, DARK, RED, GREEN, GREY = "tab:blue", "#0b3c6f", "tab:red", "tab:green", "0.72"


def history():
    """A target walks behind a wall; the shooter sees it 6.5 ticks late.

    Returns the figure and the two hits.
    """
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((0.6, 0.1, 1)), position=(1.2, -0.9, 1))
    crowd = Crowd(scene, [(-1, 0, 0.91), (0.8, -3, 0.91)])
    past = History(crowd, ticks=64)
    places = []
    for tick in range(16):
        crowd.move([(0.12, 0, -0.02), (0, 0, 0)], DT)
        past.store(tick)
        places.append(tuple(crowd.positions[0]))
    target, shooter = crowd.ids.tolist()
    seen = 8.5
    aim = past.positions(seen, [target])[0] - crowd.positions[1]
    now = past.raycast(15, crowd.positions[1], aim, 10, exclude=shooter)
    then = past.raycast(seen, crowd.positions[1], aim, 10, exclude=shooter)

    figure, (above, ax) = plt.subplots(2, 1, figsize=(8, 6), height_ratios=(1, 3.4))
    above.set(xlim=(-0.8, 15.8), ylim=(-1, 1.6), yticks=[], xticks=range(16))
    above.set_xlabel("tick")
    above.plot(range(16), [0] * 16, "o", color=BLUE, markersize=6)
    above.plot([seen], [0], "D", color=RED, markersize=8)
    above.annotate("what the shooter saw: 8.5", (seen, 0), (seen, 0.9), ha="center", color=RED,
                   arrowprops={"arrowstyle": "->", "color": RED})
    above.annotate("the shot arrives", (15, 0), (14.2, 0.9), ha="center", color=DARK,
                   arrowprops={"arrowstyle": "->", "color": DARK})
    for side in ("left", "right", "top"):
        above.spines[side].set_visible(False)

    ax.set_aspect("equal")
    ax.add_patch(Rectangle((0.6, -1.0), 1.2, 0.2, color=GREY))
    for k, (x, y, _z) in enumerate(places):
        ax.add_patch(Circle((x, y), 0.4, fill=False, color=BLUE, alpha=0.25 + 0.5 * k / 15))
    x, y, _z = past.positions(seen, [target])[0]
    ax.add_patch(Circle((x, y), 0.4, color=RED, alpha=0.25))
    ax.add_patch(Circle(tuple(crowd.positions[1, :2]), 0.4, color=DARK, alpha=0.3))
    ax.plot([crowd.positions[1, 0], then.position[0]], [crowd.positions[1, 1], then.position[1]], color=RED)
    ax.plot(*then.position[:2], "x", color=RED)
    ax.text(crowd.positions[1, 0] + 0.5, -3.05, "shooter", color=DARK, va="center")
    ax.text(1.4, -1.15, "wall", ha="center", va="top")
    ax.text(places[0][0], 0.55, "tick 0", ha="center", color=BLUE)
    ax.text(places[-1][0], 0.55, "tick 15", ha="center", color=BLUE)
    ax.text(x, 0.55, "tick 8.5", ha="center", color=RED)
    ax.set(xlim=(-1.8, 2.6), ylim=(-3.6, 0.9), xlabel="x, m", ylabel="y, m")
    figure.tight_layout()
    return figure, (target, now, then)


def audit(n=16, ticks=60):
    """Refused honest members and missed cheats over the tolerance.

    Returns the figure and both shares.
    """
    tolerances = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1)
    starts = np.column_stack([np.full(n, -30.0), np.linspace(-30, 30, n), np.full(n, REST)])
    shares = {"honest members refused": [], "1 % too fast, missed": [], "10 % too fast, missed": []}
    for tolerance in tolerances:
        for factor, name in zip((1.0, 1.01, 1.1), shares, strict=True):
            clients = Clients(Arena(things=0, moving=False), starts)
            clients.pace[:] = SPEED * factor
            referee = Referee(Arena(things=0, moving=False), starts, tolerance=tolerance)
            network = Network()
            for tick in range(1, ticks + 1):
                clients.advance(clients.inputs())
                if tick % 3 == 0:
                    network.send(tick, np.arange(n), np.full(n, tick), clients.claims())
                referee.tick(tick, network.receive(tick))
            share = len({member for member, _, _ in referee.refused}) / n
            shares[name].append(share if factor == 1.0 else 1.0 - share)
    figure, (above, ax) = plt.subplots(2, 1, figsize=(8, 6), height_ratios=(1, 3))
    above.set(xlim=(-0.8, 24.8), ylim=(-1.2, 1.6), yticks=[0, 1], yticklabels=["client", "server"])
    for k, tick in enumerate(range(0, 19, 3)):
        arrives = tick + 5 + (0.3, 1.9, 0.9, 0, 2.2, 1.1, 0.4)[k]
        if k == 3:
            above.annotate("lost", (tick, 0), (tick + 1.2, 0.5), color=RED,
                           arrowprops={"arrowstyle": "-", "color": RED})
        else:
            above.annotate("", (arrives, 1), (tick, 0), arrowprops={"arrowstyle": "->", "color": BLUE})
    above.set_xlabel("tick")
    for (name, values), colour in zip(shares.items(), (GREEN, RED, DARK), strict=True):
        ax.plot(range(len(tolerances)), [100 * v for v in values], "o-", color=colour, label=name)
    ax.axvline(tolerances.index(0.002), color=GREY, linestyle=":")
    ax.set(xticks=range(len(tolerances)), xticklabels=[f"{1000 * t:g}" for t in tolerances],
           xlabel="tolerance, mm (dotted: the default)", ylabel=f"members in {ticks / 60:g} s, %")
    ax.legend(frameon=False)
    figure.tight_layout()
    return figure, tuple(dict(zip(tolerances, values, strict=True)) for values in shares.values())


def timeline():
    """A late turn: where a member was, and where it is after the correction.

    Returns the figure and both ends.
    """
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((0.2, 0.7, 1)), position=(2.2, 0.4, 1))
    crowd = Crowd(scene, [(0, 0, 0.91)])
    past = Timeline(crowd, ticks=64)
    before, after = [], []
    for tick in range(24):
        past.input(tick, crowd.ids, [(0.09, 0, -0.02)])
        past.advance(DT)
        before.append(tuple(crowd.positions[0]))
    late, turned = 8, (0.06, -0.09, -0.02)
    past.correct(range(late, 24), np.repeat(crowd.ids, 16), [turned] * 8 + [(0.09, 0, -0.02)] * 8)
    again = Crowd(scene, [(0, 0, 0.91)])
    for tick in range(24):
        again.move([turned if late <= tick < late + 8 else (0.09, 0, -0.02)], DT)
        after.append(tuple(again.positions[0]))

    figure, (above, ax) = plt.subplots(2, 1, figsize=(8, 5.4), height_ratios=(1, 2.4))
    above.set(xlim=(-0.8, 24.8), ylim=(-1, 1.6), yticks=[], xticks=range(0, 24, 2))
    above.set_xlabel("tick")
    above.plot(range(24), [0] * 24, "o", color=BLUE, markersize=5)
    above.annotate("", (late, 0.15), (23, 0.15), arrowprops={"arrowstyle": "->", "color": RED,
                                                              "connectionstyle": "arc3,rad=0.25"})
    above.text(15.5, 0.5, "restore tick 8, run 16 ticks again", color=RED, ha="center")
    for side in ("left", "right", "top"):
        above.spines[side].set_visible(False)
    ax.set_aspect("equal")
    ax.add_patch(Rectangle((2.0, -0.3), 0.4, 1.4, color=GREY))
    for places, colour in ((before, BLUE), (after, RED)):
        ax.plot(*np.array(places)[:, :2].T, ".-", color=colour, alpha=0.6)
        ax.add_patch(Circle(places[-1][:2], 0.4, color=colour, alpha=0.25))
    ax.text(0.0, 0.5, "without the late input", color=BLUE)
    ax.text(0.9, -0.9, "with it", color=RED, ha="right")
    ax.set(xlim=(-0.6, 3.4), ylim=(-1.5, 1.5), xlabel="x, m", ylabel="y, m")
    figure.tight_layout()
    return figure, (before[-1], after[-1], tuple(crowd.positions[0]))


PICTURES = {"history": history, "audit": audit, "timeline": timeline}


def main():
    """Draw all, or those that are named."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "net"
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PICTURES:
        figure, _ = PICTURES[name]()
        figure.savefig(folder / f"{name}.png", dpi=90, bbox_inches="tight", pad_inches=0.08,
                       metadata={"Software": None})
        plt.close(figure)
        print(name)


if __name__ == "__main__":
    main()
