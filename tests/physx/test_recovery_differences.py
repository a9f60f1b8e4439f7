"""How often the protection of surfaces replaces PhysX's way out (docs/rules/recovery.md)."""

import goldens
import pytest
import stable_recordings

import pycct
from pycct import reference
from pycct.reference import candidates, exits
from pycct.reference.move import Move

# Of the repository's part of each recording: pushes out of surfaces, pushes by RULES 7.5 instead,
# recoveries that started again, pushes of at most 1e-5 m, pushes along normals only.
COUNTS = {
    "soup_deep": (366, 5, 0, 0, 3),
    "terrain_overlap": (78, 0, 0, 0, 0),
    "heightfield_overlap": (28, 0, 0, 0, 0),
    "thin_walls": (477, 0, 0, 0, 0),
    "overlap_many": (74, 5, 4, 0, 6),
    "few_shapes_overlap": (42, 3, 0, 0, 0),
    "teleports": (15, 1, 0, 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_how_often_the_protection_decides(name, monkeypatch):
    seen = [0, 0, 0, 0, 0]
    push_from_surface = exits.push_from_surface
    push_along_normals = exits.push_along_normals
    recover, recover_in_rounds = Move.recover, Move.recover_in_rounds
    after_rounds = [0]

    def count_push(*arguments):
        push = push_from_surface(*arguments)
        seen[0] += push.overlapping
        # Only RULES 7.5 names a triangle that decides.
        seen[1] += push.face is not None
        return push

    def count_again(self, position, by_depth):
        seen[2] += by_depth
        position = recover_in_rounds(self, position, by_depth)
        after_rounds[0] = self.stats.recoveries
        return position

    def count_small(self, position):
        position = recover(self, position)
        seen[3] += self.stats.recoveries - after_rounds[0]
        return position

    def count_normals(*arguments):
        seen[4] += 1
        return push_along_normals(*arguments)

    monkeypatch.setattr(candidates, "push_from_surface", count_push)
    monkeypatch.setattr(exits, "push_along_normals", count_normals)
    monkeypatch.setattr(Move, "recover", count_small)
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
