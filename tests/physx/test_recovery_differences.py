"""How often the protection of surfaces replaces PhysX's way out (docs/rules/recovery.md)."""

import goldens
import pytest
import stable_recordings

import pycct
from pycct import reference
from pycct.reference import candidates, exits
from pycct.reference.move import Move

# Of the repository's part of each recording: pushes out of surfaces, pushes by RULES 7.5 instead,
# recoveries that started again.
COUNTS = {
    "soup_deep": (366, 5, 0),
    "terrain_overlap": (78, 0, 0),
    "heightfield_overlap": (28, 0, 0),
    "thin_walls": (477, 0, 0),
    "overlap_many": (74, 5, 4),
    "few_shapes_overlap": (42, 3, 0),
    "teleports": (15, 1, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_how_often_the_protection_decides(name, monkeypatch):
    seen = [0, 0, 0]
    push_from_surface = exits.push_from_surface
    recover_in_rounds = Move.recover_in_rounds

    def count_push(*arguments):
        push = push_from_surface(*arguments)
        seen[0] += push.overlapping
        # Only RULES 7.5 names a triangle that decides.
        seen[1] += push.face is not None
        return push

    def count_again(self, position, by_depth):
        seen[2] += by_depth
        return recover_in_rounds(self, position, by_depth)

    monkeypatch.setattr(candidates, "push_from_surface", count_push)
    monkeypatch.setattr(Move, "recover_in_rounds", count_again)
    monkeypatch.setattr(goldens, "pycct", reference)
    stable_recordings.play(goldens.load(stable_recordings.OWN / f"{name}.json.gz"))
    assert tuple(seen) == COUNTS[name]


@pytest.mark.parametrize("package", [pycct, reference])
def test_the_walk_experiment_leaves_a_surface_again(package, monkeypatch):
    # Up out of the floor and aside out of a box; the box ends the first attempt as a steep slope.
    monkeypatch.setattr(goldens, "pycct", package)
    record = goldens.load(goldens.path_of("start_overlapping"))
    track, moves = record["trajectories"][4], record["scene"]["moves"]
    hero = stable_recordings.Player(record, [track["controller"]]).heroes[0]
    to, flags, *_ = goldens.one_move(
        hero, track["steps"][0], goldens.displacements(record)[track["controller"], 0], moves
    )
    assert to == pytest.approx(track["steps"][0]["to"], abs=1e-4)
    assert flags == track["steps"][0]["flags"]
