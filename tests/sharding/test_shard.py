"""Shards: the bits of one crowd for any cut, with transfers, lifts and jams; messages; errors."""

from functools import partial

import numpy as np
import pytest
import worlds

from pycct import Box, Crowd, Mesh, Plane, Scene
from pycct.sharding import Grid, Shard
from pycct.sharding.grid import Owners, strips

MASK = (1 << 64) - 1
DT = 1 / 32


def town(lift=True):
    """Ground, hills, walls and a lift across the border x = 0."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    v, t = worlds.soup(np.random.default_rng(5), n=60, span=12.0)
    scene.add(Mesh(v * (1, 1, 0.1), t))
    for k in range(-3, 4):
        scene.add(Box((0.3, 1.5, 1.0)), (4.0 * k, 3.0, 1.0))
    actor = scene.add(Box((2, 2, 0.1)), (0, 0, 0.1), body="kinematic", behavior=1) if lift else None
    return scene, actor


def lift_at(actor, tick):
    """Arguments of move_actors for a lift that moves around the origin, and up and down."""
    return [actor.id], [(2.0 * np.interp(tick % 40, (0, 20, 40), (-1, 1, -1)), 0.0,
                         np.interp(tick % 24, (0, 12, 24), (0.1, 1.6, 0.1)))]


def people(rng, n, span, **more):
    at = rng.uniform(-span, span, (n, 3)) * (1, 1, 0) + (0, 0, 1.3)
    return dict(positions=at, radius=rng.choice([0.3, 0.4, 0.5], n), collide=True, step_offset=0.3) | more


def cluster(cells, shards, data, **more):
    out = []
    for k in range(shards):
        scene, actor = town()
        shard = Shard(scene, Grid(8.0), cells, k, **({"max_motion": 1.5} | more))
        shard.populate(data)
        out.append((shard, actor))
    return out


def tick_all(team, tick, ids, way, moving=True):
    """Move all shards by one tick; return the sum of their hashes before it."""
    boxes = [shard.begin(tick) for shard, _ in team]
    total = 0
    for k, (shard, actor) in enumerate(team):
        inbox = [box[k] for box in boxes if k in box]
        total += shard.finish(tick, inbox[::-1], ids, way, DT, threads=1 + k % 2,
                              moving=lift_at(actor, tick) if moving else None)
    return total & MASK


def random_cut(rng, shards):
    """Cells from (-3, -3) to (2, 2) with random owners; every shard owns at least one."""
    owner = rng.integers(0, shards, 36)
    owner[:shards] = np.arange(shards)
    return {(int(k) // 6 - 3, int(k) % 6 - 3): int(o) for k, o in enumerate(rng.permutation(owner))}


def check_run(seed, ticks, n=60, span=9.0, shards=3, **more):
    rng = np.random.default_rng(seed)
    scene, actor = town()
    whole = Crowd(scene, **people(rng, n, span, **more))
    team = cluster(random_cut(rng, shards), shards, whole.save())
    ids = whole.ids.copy()
    assert sum(len(s) for s, _ in team) == n
    handed = 0
    home = {int(i): k for k, (s, _) in enumerate(team) for i in s.ids}
    way = np.zeros((n, 3))
    for tick in range(1, ticks + 1):
        if tick % 8 == 1:
            heading = rng.normal(size=(n, 2))
            # Half of the members push towards the corner of four cells.
            heading[::2] = -whole.positions[::2, :2]
            heading *= rng.uniform(0.0, 0.3, (n, 1)) / np.maximum(np.hypot(*heading.T)[:, None], 1e-9)
            way = np.column_stack([heading, np.full(n, -0.1)])
        assert tick_all(team, tick, ids, way) == whole.state_hash(), tick
        scene.move_actors(*lift_at(actor, tick))
        whole.move(way, DT, threads=2)
        now = {int(i): k for k, (s, _) in enumerate(team) for i in s.ids}
        handed += sum(home[i] != now[i] for i in home)
        home = now
    at = {int(i): tuple(p) for s, _ in team for i, p in zip(s.ids, s.positions, strict=True)}
    assert [at[int(i)] for i in ids] == [tuple(p) for p in whole.positions]
    return handed


@pytest.mark.parametrize("seed", range(4))
def test_shards_have_the_bits_of_one_crowd(seed):
    assert check_run(seed, 60) > 20


@pytest.mark.parametrize("more", [
    {"rules": "robust"}, {"climbing_mode": "constrained"},
    {"rules": "robust", "climbing_mode": "constrained", "non_walkable_mode": "force_sliding"},
], ids=str)
def test_shards_of_other_parameters_have_the_bits_of_one_crowd(more):
    assert check_run(50, 60, **more) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_shards_have_the_bits_of_one_crowd_at_length(seed):
    """100,000 ticks in all."""
    rng = np.random.default_rng(seed)
    assert check_run(seed, 2500, n=int(rng.integers(4, 16)), shards=int(rng.integers(2, 4))) > 0


def test_a_jam_across_a_border():
    """Characters stacked around the corner of four cells of different shards."""
    rng = np.random.default_rng(1)
    at = np.array([(0.5 * x, 0.5 * y, 1.2 + 1.9 * z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (0, 1)])
    scene, actor = town()
    whole = Crowd(scene, at, radius=0.4, collide=True)
    team = cluster({(i, j): (i + 1) * 2 + j + 1 for i in (-1, 0) for j in (-1, 0)}, 4, whole.save())
    for tick in range(1, 60):
        way = np.column_stack([-0.1 * whole.positions[:, :2] + rng.normal(size=(18, 2)) * 0.02, np.full(18, -0.1)])
        assert tick_all(team, tick, whole.ids, way) == whole.state_hash()
        scene.move_actors(*lift_at(actor, tick))
        whole.move(way, DT)


def test_without_the_ghosts_the_bits_differ():
    rng = np.random.default_rng(3)
    scene, _ = town()
    whole = Crowd(scene, **people(rng, 60, 4.0))
    team = cluster(random_cut(rng, 3), 3, whole.save())
    way = np.column_stack([-0.1 * whole.positions[:, :2], np.full(60, -0.1)])
    same = True
    for tick in range(1, 20):
        for shard, _ in team:
            shard.halo = 0.0
        same = same and tick_all(team, tick, whole.ids, way, moving=False) == whole.state_hash()
        whole.move(way, DT)
    assert not same


def test_a_restored_keyframe_continues_with_the_same_hash():
    rng = np.random.default_rng(7)
    scene, _ = town()
    whole = Crowd(scene, **people(rng, 40, 6.0))
    cells = strips((-2, -2), (2, 2), 2)
    team = cluster(cells, 2, whole.save())
    ways = rng.normal(size=(30, 40, 3)) * (0.1, 0.1, 0) - (0, 0, 0.1)
    kept, hashes = None, []
    for tick in range(1, 31):
        if tick == 11:
            kept = [s.save() for s, _ in team]
        hashes.append(tick_all(team, tick, whole.ids, ways[tick - 1]))
    again = cluster(cells, 2, whole.save())
    for (shard, _), data in zip(again, kept, strict=True):
        shard.restore(data)
    assert [tick_all(again, t, whole.ids, ways[t - 1]) for t in range(11, 31)] == hashes[10:]


def one(**more):
    scene, _ = town()
    return Shard(scene, Grid(8.0), strips((-2, -2), (2, 2), 2), 0, **more)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="scene"):
        Shard(None, Grid(8.0), [[(0, 0)]])
    with pytest.raises(TypeError, match="cut"):
        Shard(Scene(), 8.0, [[(0, 0)]])
    for size in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="size"):
            Grid(size)
    with pytest.raises(TypeError, match="size"):
        Grid("8")
    with pytest.raises(ValueError, match="index"):
        Shard(Scene(), Grid(8.0), [[(0, 0)]], 1)
    with pytest.raises(ValueError, match="max_motion"):
        one(max_motion=0)
    with pytest.raises(ValueError, match="cells of at least"):
        one(max_motion=9.0)
    for cells, word in (({}, "empty"), ([[(0, 0)], [(0, 0)]], "once"), ([[(0, 0), (1, 1)]], "rectangle"),
                        ({(0, 0): -1}, "from 0"), ({(0, 0): 0, (10**6, 0): 0}, "span")):
        with pytest.raises(ValueError, match=word):
            Owners(cells)
    with pytest.raises(TypeError, match="cells"):
        Owners("abc")
    with pytest.raises(TypeError, match="integers"):
        Owners([[(0.5, 0)]])


def test_ticks_come_in_order():
    shard = one()
    with pytest.raises(ValueError, match="tick must be 1"):
        shard.begin(2)
    with pytest.raises(ValueError, match="begin comes first"):
        shard.finish(1, [])
    shard.begin(1)
    with pytest.raises(RuntimeError, match="twice"):
        shard.begin(1)
    for data, word in ((b"", "no message"), (b"x" * 40, "no message")):
        with pytest.raises(ValueError, match=word):
            shard.finish(1, [data])
    with pytest.raises(TypeError, match="inbox"):
        shard.finish(1, ["text"])
    assert shard.finish(1, []) == 0 and shard.tick == 1
    with pytest.raises(ValueError, match="damaged"):
        shard.restore(shard.save()[:-1])
    with pytest.raises(ValueError, match="saved shard"):
        shard.restore(b"nothing")


def test_displacements_are_checked_before_anybody_moves():
    rng = np.random.default_rng(2)
    scene, _ = town()
    whole = Crowd(scene, **people(rng, 10, 6.0))
    shard = one(max_motion=0.5)
    shard.populate(whole.save())
    ids, n = whole.ids, len(whole)
    shard.begin(1)
    for bad, word in ((np.full((n, 3), np.nan), "finite"), (np.full((n, 3), 2.0), r"displacements of character \d+"),
                      (np.zeros((n, 2)), "shape")):
        before = shard.positions.copy()
        with pytest.raises(ValueError, match=word):
            shard.finish(1, [], ids, bad, DT)
        assert (shard.positions == before).all()
    with pytest.raises(ValueError, match="is missing"):
        shard.finish(1, [], ids[:0], np.zeros((0, 3)), DT)


def test_a_motion_longer_than_the_halo_allows_is_named():
    """A fast lift carries a character farther than a displacement may."""
    scene = Scene()
    lift = scene.add(Box((2, 2, 0.1)), (1, 1, -0.1), body="kinematic", behavior=1)
    shard = Shard(scene, Grid(16.0), [[(0, 0)]], max_motion=0.5)
    shard.populate(Crowd(scene_copy(), [(1, 1, 0.92)], collide=True).save())
    for tick, x in ((1, 1.0), (2, 1.0), (3, 3.0)):
        shard.begin(tick)
        lifts = [lift.id], [(x, 1, -0.1)]
        run = partial(shard.finish, tick, [], shard.ids, [(0, 0, -0.02)], DT, moving=lifts)
        if tick < 3:
            run()
        else:
            with pytest.raises(RuntimeError, match=r"character \d+ moved"):
                run()


def scene_copy():
    scene = Scene()
    scene.add(Box((2, 2, 0.1)), (1, 1, -0.1), body="kinematic", behavior=1)
    return scene


def test_too_large_characters_are_refused():
    scene, _ = town()
    shard = one(max_radius=0.4)
    with pytest.raises(ValueError, match="max_radius"):
        shard.populate(Crowd(scene, [(-4, 0, 2)], radius=0.6).save())
    assert len(shard) == 0


# --- Hostile use


def test_a_finish_that_is_refused_can_be_repeated():
    """Whatever is wrong with a call, nothing has changed, and the right call has the right bits."""
    rng = np.random.default_rng(11)
    scene, actor = town()
    whole = Crowd(scene, **people(rng, 40, 6.0))
    team = cluster({(-1, -1): 0, (-1, 0): 1, (0, -1): 1, (0, 0): 0}, 2, whole.save())
    ids, n = whole.ids, len(whole)
    refused = 0
    for tick in range(1, 30):
        way = np.column_stack([-0.05 * whole.positions[:, :2] + rng.normal(size=(n, 2)) * 0.2, np.full(n, -0.1)])
        boxes = [shard.begin(tick) for shard, _ in team]
        total = 0
        for k, (shard, lift) in enumerate(team):
            inbox = [box[k] for box in boxes if k in box]
            good = dict(tick=tick, inbox=inbox, ids=ids, displacements=way, dt=DT, threads=1,
                        moving=lift_at(lift, tick))
            before = shard.ids.copy(), shard.positions.copy()
            mine = ids[shard.owners.of(shard.cut.cells_of(whole.positions)) == k]
            for bad in ({"dt": float("nan")}, {"dt": -1.0}, {"dt": "x"}, {"threads": 0}, {"threads": 1.5},
                        {"ids": ids[1:], "displacements": way[1:]}, {"ids": ids[:1], "displacements": way[:1]},
                        {"displacements": way * np.nan}, {"displacements": way + 9}, {"moving": ([10**9], [(0, 0, 0)])},
                        {"moving": (1, 2, 3, 4)}, {"inbox": [*inbox, b"x"]}, {"inbox": [m[:-1] for m in inbox] + [b""]},
                        {"inbox": [*inbox, *inbox]} if inbox else {"dt": None},
                        {"inbox": [m[:60] + bytes(len(m) - 60) for m in inbox] + [b"y"]}):
                if "ids" in bad and set(mine) <= set(bad["ids"].tolist()):
                    continue
                with pytest.raises((ValueError, TypeError, KeyError)):
                    shard.finish(**{**good, **bad})
                refused += 1
                assert (shard.ids == before[0]).all() and (shard.positions == before[1]).all()
            total += shard.finish(**good)
        assert total & MASK == whole.state_hash(), tick
        scene.move_actors(*lift_at(actor, tick))
        whole.move(way, DT)
    assert refused > 500


def test_a_damaged_message_is_refused_as_a_whole():
    """A damaged message raises ValueError; the shard goes on with the right one."""
    rng = np.random.default_rng(12)
    scene, _ = town(lift=False)
    whole = Crowd(scene, **people(rng, 40, 5.0))
    cells = {(-1, -1): 0, (-1, 0): 1, (0, -1): 1, (0, 0): 0}
    team = [Shard(town(lift=False)[0], Grid(8.0), cells, k, max_motion=1.5) for k in range(2)]
    for shard in team:
        shard.populate(whole.save())
    way = np.column_stack([-0.1 * whole.positions[:, :2], np.full(40, -0.1)])
    caught = 0
    for tick in range(1, 12):
        boxes = [shard.begin(tick) for shard in team]
        total = 0
        for k, shard in enumerate(team):
            inbox = [box[k] for box in boxes if k in box]
            for message in inbox:
                for at in rng.integers(0, 200, 20):
                    if at >= len(message):
                        continue
                    bad = bytearray(message)
                    bad[at] ^= 255
                    held = shard.ids.copy()
                    spare = Crowd(town(lift=False)[0], np.empty((0, 3)))
                    try:
                        for part in (shard_parts(bytes(bad))):
                            if part:
                                spare.insert(part)
                    except (ValueError, TypeError):
                        with pytest.raises((ValueError, TypeError)):
                            shard.finish(tick, [bytes(bad)], whole.ids, way, DT)
                        caught += 1
                        assert (shard.ids == held).all()
            total += shard.finish(tick, inbox, whole.ids, way, DT)
        assert total & MASK == whole.state_hash(), tick
        whole.move(way, DT)
    assert caught > 50


def shard_parts(message):
    from pycct.sharding.shard import MESSAGE

    _, _, a, b = MESSAGE.unpack_from(message)
    if a < 0 or b < 0 or MESSAGE.size + a + b != len(message):
        raise ValueError
    return message[MESSAGE.size:MESSAGE.size + a], message[MESSAGE.size + a:]


@pytest.mark.parametrize("centre", [(0.0, 0.0), (-1e7, 3e7), (1e11, -9e11), (-8.0, 8.0), (1e-9, -1e-9)])
def test_far_and_negative_places_have_the_bits_of_one_crowd(centre):
    """Characters walk around a corner of cells, far out, outside of the table, and on borders."""
    rng = np.random.default_rng(13)
    size = 16.0
    low = [int(np.floor(c / size)) - 1 for c in centre]
    cells = {(low[0] + i, low[1] + j): (i + 2 * j) % 3 for i in range(3) for j in range(2)}

    def flat():
        scene = Scene()
        scene.add(Plane((0, 0, 1)))
        return scene

    corner = np.array([np.round(c / size) * size for c in centre])
    places = np.column_stack([corner + rng.uniform(-14, 14, (40, 2)), np.full(40, 1.3)])
    places[:8, :2] = corner + np.array([(0, 0), (0, 4), (4, 0), (0, -4), (-4, 0), (8, 8), (-40, 40), (60, -3)])
    whole = Crowd(flat(), places, radius=0.4, collide=True)
    team = [Shard(flat(), Grid(size), cells, k, max_motion=1.5) for k in range(3)]
    for shard in team:
        shard.populate(whole.save())
    assert sum(map(len, team)) == 40
    for tick in range(1, 40):
        way = np.column_stack([0.1 * np.sign(corner - whole.positions[:, :2]) + rng.normal(size=(40, 2)) * 0.1,
                               np.full(40, -0.1)])
        boxes = [shard.begin(tick) for shard in team]
        total = sum(shard.finish(tick, [b[k] for b in boxes if k in b], whole.ids, way, DT)
                    for k, shard in enumerate(team))
        assert total & MASK == whole.state_hash(), tick
        whole.move(way, DT)


def test_characters_whose_axis_lies_in_the_ground_plane():
    """Characters stand on one another along y, across a border: the halo covers their length."""
    def hall():
        scene = Scene()
        scene.add(Plane((0, 1, 0), -2.3))
        return scene

    at = [(0.3 * k, y, 0.1 * k) for k in range(4) for y in (-1.1, 1.5)]
    whole = Crowd(hall(), at, radius=0.1, height=2.0, collide=True, up=(0, 1, 0), step_offset=0.1)
    cells = {(0, -1): 0, (0, 0): 1}
    with pytest.raises(ValueError, match=r"half height and step of 1\.\d+ m along the ground, but max_radius"):
        Shard(hall(), Grid(9.0), cells, 0, max_radius=1.0).populate(whole.save())
    team = [Shard(hall(), Grid(9.0), cells, k, max_radius=1.3) for k in range(2)]
    for shard in team:
        shard.populate(whole.save())
    assert [len(shard) for shard in team] == [4, 4]
    way = np.tile((0.0, -0.05, 0.0), (8, 1))
    for tick in range(1, 60):
        boxes = [shard.begin(tick) for shard in team]
        total = sum(shard.finish(tick, [box[k] for box in boxes if k in box], whole.ids, way, DT)
                    for k, shard in enumerate(team))
        assert total & MASK == whole.state_hash(), tick
        whole.move(way, DT)


def test_nobody_anywhere():
    """Shards without characters, and shards without cells, exchange nothing and have the hash 0."""
    team = cluster({(0, 0): 0, (1, 0): 3}, 4, Crowd(town()[0], np.empty((0, 3))).save())
    for tick in range(1, 4):
        assert [shard.begin(tick) for shard, _ in team] == [{}] * 4
        assert [shard.finish(tick, [], [], np.empty((0, 3)), DT) for shard, _ in team] == [0] * 4
    again = cluster({(0, 0): 0, (1, 0): 3}, 4, Crowd(town()[0], np.empty((0, 3))).save())
    for (shard, _), (new, _) in zip(team, again, strict=True):
        new.restore(shard.save())
        assert new.tick == 3 and len(new) == 0


def test_a_keyframe_between_begin_and_finish_is_that_before_begin():
    """Characters that leave a shard belong to it until `finish`."""
    rng = np.random.default_rng(15)
    scene, _ = town()
    whole = Crowd(scene, **people(rng, 40, 6.0))
    cells = strips((-2, -2), (2, 2), 2)
    team = cluster(cells, 2, whole.save())
    ids, left = whole.ids, 0
    for tick in range(1, 21):
        way = rng.uniform(-1, 1, (40, 3)) * (0.9, 0.2, 0) - (0, 0, 0.1)
        before = [shard.save() for shard, _ in team]
        again = cluster(cells, 2, whole.save())
        for (shard, _), (other, _) in zip(team, again, strict=True):
            shard.begin(tick)
            assert shard.save() == before[shard.index]
            owners = shard.owners.of(shard.cut.cells_of(shard.positions))
            left += int((owners != shard.index).sum())
            other.restore(shard.save())
            shard.restore(before[shard.index])
        assert tick_all(team, tick, ids, way, False) == tick_all(again, tick, ids, way, False)
        assert [s.save() for s, _ in team] == [s.save() for s, _ in again]
    assert left > 10


def test_a_refused_keyframe_changes_nothing():
    rng = np.random.default_rng(14)
    scene, _ = town()
    whole = Crowd(scene, **people(rng, 40, 6.0))
    cells = strips((-2, -2), (2, 2), 2)
    team = cluster(cells, 2, whole.save())
    ways = rng.normal(size=(20, 40, 3)) * (0.1, 0.1, 0) - (0, 0, 0.1)
    right = cluster(cells, 2, whole.save())
    for tick in range(1, 21):
        for shard, _ in team:
            data = shard.save()
            for bad in (data[:-1], data[:40] + bytes(len(data) - 40), b"", data + b"x"):
                with pytest.raises(ValueError):
                    shard.restore(bad)
            with pytest.raises(TypeError, match="data"):
                shard.restore(7)
        assert tick_all(team, tick, whole.ids, ways[tick - 1]) == tick_all(right, tick, whole.ids, ways[tick - 1])


def test_cells_beyond_all_numbers():
    for cells in ({(2**70, 0): 0}, {(0, -(2**63)): 0}, {(0, 0): 2**64}, {(2**62, 0): 0, (-(2**62), 0): 0},
                  {(0, 0): True + 2**61}):
        with pytest.raises(ValueError, match="cells"):
            Owners(cells)
    with pytest.raises(ValueError, match="positions"):
        Grid(1.0).cells_of([(float("nan"), 0, 0)])
    assert Grid(1e-9).cells_of([(1e300, -1e300, 0)]).tolist() == [[2**60, -(2**60)]]
