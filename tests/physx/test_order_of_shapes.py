"""How often PhysX's own order of static shapes decides (docs/rules/recovery.md, RULES_2 10)."""

import itertools
import math

import goldens
import pytest
import stable_recordings

from pycct import reference
from pycct.reference.candidates import is_near, recovery_push
from pycct.reference.exits import REACH
from pycct.reference.move import MAX_RECOVERIES, Move
from pycct.reference.types import ACTOR
from pycct.reference.vec import madd

# Of the recordings in the repository: stable moves that end elsewhere than in PhysX, and those of
# them that some order of the static shapes explains.
COUNTS = {
    "few_shapes_overlap": (11, 5),
    "min_distance": (2, 2),
    "overlap_many": (15, 6),
    "start_overlapping": (5, 1),
    "spiral_stairs": (1, 1),
    "teleports": (4, 3),
}
# More shapes have too many orders.
MOST_SHAPES = 5


class Orders:
    """Replaces the order of recovery of ``Move`` by a chosen one."""

    def __init__(self):
        self.rank = None  # of static shapes by id; None: the order of the library
        self.near = []  # ids of static shapes near a recovery, overlapped ones first
        self.own = Move.recover_in_rounds

    def shapes_near(self, move, position):
        """The shapes of a round: static ones, then moving ones."""
        radius = move.p.radius + move.p.contact_offset
        near = [
            g.item
            for g in move.around(position, radius)
            if g.item.recovered_as in move.recovers() and is_near(g, *move.ends(position), REACH * radius)
        ]
        static = [i for i in near if i.owner == ACTOR and i.body == "static"]
        return static, [i for i in near if i not in static]

    def push(self, move, item, position, by_depth):
        """The way out of one shape, or None."""
        radius = move.p.radius + move.p.contact_offset
        for g in move.around(position, radius):
            if (g.item.owner, g.item.id) == (item.owner, item.id):
                push = recovery_push(g, *move.ends(position), radius, not move.pushed_out, by_depth)
                if push.depth > 0.0 and move.may_meet(item):
                    return push
        return None

    def recover_in_rounds(self, move, position, by_depth):
        """RULES_2 10 by the letter, in the chosen order."""
        if self.rank is None:
            static, _ = self.shapes_near(move, position)
            touched = [self.push(move, i, position, by_depth) is not None for i in static]
            self.near += [i.id for _, i in sorted(zip(touched, static, strict=True), key=lambda pair: not pair[0])]
            return self.own(move, position, by_depth)
        left, overlapped = MAX_RECOVERIES, True
        while overlapped and left > 0:
            overlapped = False
            static, moving = self.shapes_near(move, position)
            for item in sorted(static, key=lambda i: (self.rank.get(i.id, math.inf), i.id)) + moving:
                push = self.push(move, item, position, by_depth) if left > 0 else None
                overlapped = push is not None
                if overlapped:
                    position = madd(position, push.dir, push.depth)
                    left -= 1
                    move.pushed_out = True
                    move.stats.recoveries += 1
        return position


def count_explained(record, different, orders):
    """Number of (trajectory, step) that end as in PhysX in some order of the static shapes."""
    moves, asked = record["scene"]["moves"], goldens.displacements(record)
    near = stable_recordings.limit_of(record["scene"]["name"])
    explained = 0

    def agrees(hero, want, displacement):
        hero.position = want["from"]
        flags = hero.move(displacement, moves["dt"], min_distance=moves["min_dist"])
        return math.dist(hero.position, want["to"]) <= near and int(flags) == want["flags"]

    for k in sorted({k for k, _ in different}):
        track = record["trajectories"][k]
        player = stable_recordings.Player(record, [track["controller"]])
        hero = player.heroes[0]
        for step in range(1 + max(t for j, t in different if j == k)):
            player.before(step)
            want, displacement = track["steps"][step], asked[track["controller"], step]
            before = hero.save()
            orders.near = []
            as_physx = agrees(hero, want, displacement)
            if (k, step) in different:
                assert not as_physx
                after = hero.save()
                for order in itertools.permutations(list(dict.fromkeys(orders.near))[:MOST_SHAPES]):
                    hero.restore(before)
                    orders.rank = {shape: i for i, shape in enumerate(order)}
                    found = agrees(hero, want, displacement)
                    orders.rank = None
                    if found:
                        explained += 1
                        break
                hero.restore(after)
            hero.position = want["to"]
    return explained


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "overlap_many" else ()) for name in COUNTS]
)
def test_how_often_an_order_of_static_shapes_decides(name, monkeypatch):
    if name in goldens.names():
        record = goldens.load(goldens.path_of(name))
        got, near = goldens.play(record), 1e-4
        different = {
            (k, t)
            for k, track in enumerate(record["trajectories"])
            for t, want in enumerate(track["steps"])
            if not math.dist(got[k][t][0], want["to"]) <= near or got[k][t][1] != want["flags"]
        }
    else:
        record = goldens.load(stable_recordings.OWN / f"{name}.json.gz")
        different = {(k, t) for _, k, t in stable_recordings.differences(record, stable_recordings.play(record))}
    orders = Orders()
    monkeypatch.setattr(Move, "recover_in_rounds", lambda *arguments: orders.recover_in_rounds(*arguments))
    monkeypatch.setattr(goldens, "pycct", reference)
    assert (len(different), count_explained(record, different, orders)) == COUNTS[name]
