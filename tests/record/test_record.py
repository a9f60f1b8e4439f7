"""Recordings replay to the bit; damaged ones raise ValueError."""

import io
import random
import signal
import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest

import pycct
from pycct import Behavior, Box, Capsule, CharacterController, Crowd, Plane, Scene, move_many, separate
from pycct.args import save_format
from pycct.record import blocks, record, recorder, replay
from pycct.record.keyframes import pack_crowd, unpack_crowd

DT = 1 / 60


def hall():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((0.2, 5, 1)), (3, 0, 1))
    lift = scene.add(Box((1, 1, 0.1)), (-3, 0, 0.1), body="kinematic", behavior=Behavior.CAN_RIDE)
    return scene, lift


def grid(n):
    k = np.arange(n)
    return np.c_[k % 8 - 4.0, k // 8 - 2.0, np.full(n, 1.0)]


def busy_crowd(path, ticks=60, n=24):
    """Record a crowd among all kinds of changes; return its bytes at each tick and at the end."""
    scene, lift = hall()
    crowd = Crowd(scene, grid(n), radius=0.3, collide=True)
    rng = np.random.default_rng(3)
    states = []
    with record(path, scene, crowd):
        for tick in range(ticks):
            if tick % 5 == 0:
                wish = rng.uniform(-0.06, 0.06, (len(crowd), 3)) - (0, 0, 0.05)
            lift.move_to((-3, 0, 0.1 + 0.01 * tick))
            if tick == 7:
                crowd.teleport([1], [(0, 4, 1)])
            if tick == 11:
                post = scene.add_obstacle(Capsule(0.3, 1.0), (0, 2, 0.8))
                crowd.set([2, 3], radius=0.25, rules="robust")
            if tick == 13:
                crowd.add([(6, 6, 1)])
                wish = np.vstack([wish, (0.01, 0, -0.05)])
            if tick == 17:
                crowd.remove([0])
                wish = wish[1:]
            if tick == 20:
                scene.remove(post)
            active = np.arange(len(crowd)) % 3 > 0 if tick % 4 == 1 else None
            states.append(crowd.save(moving=True))
            crowd.move(np.where(np.ones(len(crowd), bool)[:, None] if active is None else active[:, None], wish, 0),
                       DT, active=active)
        states.append(crowd.save(moving=True))
    return states


def busy_team(path, ticks=30):
    scene, lift = hall()
    refused = scene.add(Box((0.5, 0.5, 0.5)), (1, 1.2, 0.5))
    heroes = [CharacterController(scene, (k, 0.2 * k, 1.0), collide=True) for k in range(3)]
    heroes[0].filter = lambda other: other is not refused
    heroes[1].behavior = lambda other: Behavior.CAN_SLIDE
    states = []
    with record(path, scene, heroes):
        for tick in range(ticks):
            with scene.edit():
                lift.move_to((-3, 0, 0.1 + 0.01 * tick))
            states.append([h.save() for h in heroes])
            for hero in heroes[:2]:
                hero.move((0.05, 0.03, -0.05), DT, mask=3)
            separate(heroes, DT)
            move_many(heroes[2:], [(0.05, 0.0, -0.04)] * (len(heroes) - 2), DT)
            if tick == 9:
                heroes.append(CharacterController(scene, (-3, 0, 1.5), radius=0.2))
                heroes[0].radius = 0.3
                heroes[0].set(height=0.9, position=(0, 2, 1.2))
    return states


def test_a_crowd_replays_to_the_bit_and_seeks(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOVES_BETWEEN_KEYFRAMES", 300)
    monkeypatch.setattr(recorder, "_BLOCK_BYTES", 2000)
    states = busy_crowd(tmp_path / "r")
    recording = replay(tmp_path / "r")
    assert recording.ticks == len(states) - 1 and len(recording.keyframes) > 3
    assert recording.verify() is None and recording.verify(threads=2) is None
    order = list(range(len(states)))
    random.Random(1).shuffle(order)
    for tick in order[:25]:
        recording.seek(tick)
        assert recording.crowd.save(moving=True) == states[tick], tick
    assert not [recording.seek(recording.ticks), recording.step()][1]
    with pytest.raises(ValueError, match="tick must be"):
        recording.seek(recording.ticks + 1)


def test_a_team_with_callbacks_replays_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOVES_BETWEEN_KEYFRAMES", 20)
    states = busy_team(tmp_path / "r")
    recording = replay(tmp_path / "r")
    assert recording.verify() is None
    for tick in (0, 5, 9, 12, 28, 3):
        recording.seek(tick)
        assert [h.save() for h in recording.controllers] == states[tick], tick


@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_plain_ticks_are_written_as_all_others(tmp_path, monkeypatch, n):
    """The shortcut for ticks of the only crowd writes the same bytes, whatever array it gets."""
    files = []
    monkeypatch.setattr(recorder, "_BLOCK_SECONDS", 1e9)
    monkeypatch.setattr(recorder, "_BLOCK_BYTES", 200_000)
    monkeypatch.setattr(recorder, "_FEWEST_MOVES", 2_500)
    shortcut = recorder.record._plain_tick
    for plain in (True, False):
        taken = []

        def tried(self, *arguments, plain=plain, taken=taken):
            if plain:
                taken.append(shortcut(self, *arguments))
            return plain and taken[-1]

        monkeypatch.setattr(recorder.record, "_plain_tick", tried)
        rng = np.random.default_rng(n)
        scene, lift = hall()
        crowd = Crowd(scene, grid(n)[:, :3] if n else np.empty((0, 3)), radius=0.3)
        with record(tmp_path / "r", scene, crowd):
            for tick in range(60):
                if tick % 3 == 0:
                    wish = rng.uniform(-0.06, 0.06, (n, 3)) - (0, 0, 0.05)
                rows = (wish, wish.tolist() if n else wish, np.asfortranarray(wish), wish.astype("f4"),
                        np.repeat(wish, 2, axis=0)[::2])[tick % 5]
                if tick % 7 == 0:
                    lift.move_to((-3, 0, 0.1 + 0.01 * tick))
                crowd.move(rows, DT if tick % 11 else DT / 2, active=np.arange(n) % 2 == 0 if tick % 13 == 5 else None)
        files.append((tmp_path / "r").read_bytes())
        assert taken.count(True) > (15 if n else -1) if plain else not taken
        assert replay(tmp_path / "r").verify() is None
    assert files[0] == files[1]


def test_a_run_is_as_many_ticks(tmp_path):
    scene, _ = hall()
    crowd = Crowd(scene, grid(8))
    with record(tmp_path / "r", scene, crowd):
        crowd.run(np.full((20, 8, 3), (0.02, 0, -0.05)), DT)
        crowd.move(np.zeros((8, 3)), DT)
    recording = replay(tmp_path / "r")
    assert recording.ticks == 21 and recording.verify() is None
    assert scene.journal is None and crowd.journal is None


def test_a_recording_of_an_interrupted_run_replays(tmp_path):
    scene, _ = hall()
    crowd = Crowd(scene, grid(8))

    def stop(number, frame):
        # A handler that raises within the recorder would leave ticks that are not made.
        while frame is not None:
            if "pycct/record" in frame.f_code.co_filename:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                return
            frame = frame.f_back
        raise InterruptedError("stop")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with record(tmp_path / "r", scene, crowd):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(InterruptedError) as error:
                crowd.run(np.broadcast_to((0.002, 0, -0.05), (200_000, 8, 3)), DT)
            signal.setitimer(signal.ITIMER_REAL, 0)
            crowd.move(np.zeros((8, 3)), DT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    recording = replay(tmp_path / "r")
    assert recording.ticks == error.value.ticks + 1 and recording.verify() is None
    recording.seek(recording.ticks)
    assert recording.crowds[0].save() == crowd.save()


def test_triggers_and_yielding_are_recorded(tmp_path):
    scene, _ = hall()
    crowd = Crowd(scene, [(0.5 * k, 0, 0.91) for k in range(4)], collide=True)
    with record(tmp_path / "r", scene, crowd):
        zone = scene.add(Box((1, 1, 1)), (1, 0, 1), trigger=True)
        for k in range(10):
            crowd.move(np.full((4, 3), (0.01, 0, -0.05)), DT)
            crowd.separate(DT, yielding=np.arange(4.0) if k % 2 else None)
            assert len(scene.triggers().inside) > 0
        zone.move_to((9, 9, 9))
    recording = replay(tmp_path / "r")
    assert recording.verify() is None
    recording.seek(recording.ticks)
    assert recording.crowds[0].save() == crowd.save()
    assert [a.trigger for a in recording.scene.actors] == [a.trigger for a in scene.actors]
    assert recording.scene.actor(zone.id).trigger and len(recording.scene.triggers().inside) == 0


def test_no_keyframe_is_farther_away_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOVES_BETWEEN_KEYFRAMES", 100)
    busy_crowd(tmp_path / "r", ticks=30, n=24)
    moves = [b.moves for b in replay(tmp_path / "r").index if b.kind in (blocks.KEYFRAME, blocks.DONE)]
    assert len(moves) > 7 and max(b - a for a, b in pairwise(moves)) <= 100


def test_a_refused_move_is_refused_again(tmp_path):
    scene = Scene()
    hero = CharacterController(scene, (1e6, 0, 0))
    with record(tmp_path / "r", scene, hero):
        for way in ((1, 0, 0), (9e11, 0, 0), (9e11, 0, 0), (1, 0, 0)):
            try:
                hero.move(way, DT)
            except ValueError as problem:
                refused = str(problem)
    assert "beyond" in refused
    with replay(tmp_path / "r") as recording:
        assert recording.ticks == 4 and recording.verify() is None
        assert recording.controllers[0].save() == hero.save()


def test_a_difference_is_named(tmp_path):
    busy_crowd(tmp_path / "r", ticks=20)
    recording = replay(tmp_path / "r")
    plain = recording._apply

    def wrong(call):
        if recording.tick == 12 and call.name == "move":
            call.arguments["displacements"][5] += (0.01, 0, 0)
        plain(call)

    recording._apply = wrong
    difference = recording.verify()
    assert difference.tick == 12 and difference.field == "position"
    assert difference.member == recording.crowd.ids[5]


def test_explanations(tmp_path):
    scene, _ = hall()
    crowd = Crowd(scene, [(2.2, 0, 0.91), (0, 3, 0.91)])
    with record(tmp_path / "c", scene, crowd):
        for _ in range(10):
            crowd.move([(0.1, 0, -0.01), (0, 0, -0.01)], DT)
    recording = replay(tmp_path / "c")
    explanation = recording.explain(5, crowd.ids[0])
    assert "hits <Actor 1" in str(explanation)
    recording.seek(6)
    assert explanation.end == pytest.approx(recording.crowd.positions[0].tolist())
    with pytest.raises(KeyError, match="999"):
        recording.explain(5, 999)
    states = busy_team(tmp_path / "t")
    assert len(states) and replay(tmp_path / "t").explain(3, 4).flags >= 0


def test_what_cannot_be_recorded_is_refused(tmp_path):
    scene, _ = hall()
    crowd = Crowd(scene, grid(3))
    hero = CharacterController(scene, (9, 9, 1))
    for ones, problem in (([], "empty"), (crowd, "all characters"), ([crowd, crowd, hero], "different")):
        with pytest.raises(ValueError, match=problem):
            record(tmp_path / "r", scene, ones)
    with pytest.raises(TypeError, match="characters must be"):
        record(tmp_path / "r", scene, [3])
    with record(tmp_path / "r", scene, [crowd, hero]):
        with pytest.raises(ValueError, match="cannot hold"):
            hero.add_proxy()
        with pytest.raises(ValueError, match="cannot hold"):
            Crowd(scene, grid(2))
        with pytest.raises(ValueError, match="journal"), record(tmp_path / "s", scene, [crowd, hero]):
            pass
    assert hero.proxy is None and replay(tmp_path / "r").ticks == 0


def test_a_cut_file_is_readable_up_to_the_last_block(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "_BLOCK_BYTES", 1500)
    states = busy_crowd(tmp_path / "r")
    data = (tmp_path / "r").read_bytes()
    last = 0
    for part in (0.5, 0.7, 0.9, 0.999):
        (tmp_path / "cut").write_bytes(data[: int(len(data) * part)])
        with replay(tmp_path / "cut") as recording:
            assert last <= recording.ticks < len(states)
            last = recording.ticks
            recording.seek(recording.ticks)
            assert recording.crowd.save(moving=True) == states[last]
    assert last > 20


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "r"
    path.write_bytes(b"not a recording at all, but text")
    with pytest.raises(ValueError, match="not a recording"):
        replay(path)
    for form, results, problem in ((9, pycct.RESULTS_VERSION, "format 9"), (blocks.FORMAT, 999, "results version 999")):
        head = struct.pack("<8sII", blocks.MAGIC, form, results)
        path.write_bytes(head + struct.pack("<I", zlib.crc32(head)))
        with pytest.raises(ValueError, match=problem):
            replay(path)


def test_damaged_files_raise_valueerror(tmp_path):
    """Bytes that were changed are noticed; so is content that was sealed again after a change."""
    busy_crowd(tmp_path / "r", ticks=12, n=6)
    data = (tmp_path / "r").read_bytes()
    rng = random.Random(5)
    path = tmp_path / "bad"
    for _ in range(60):
        bad = bytearray(data)
        at = rng.randrange(len(bad))
        bad[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"recording|format|results"), replay(path) as recording:
            recording.verify()
    index = blocks.read_index(io.BytesIO(data))
    raised = 0
    for _ in range(120):
        out = bytearray(data[: blocks.HEAD.size])
        chosen = rng.randrange(len(index) - 1)
        for k, block in enumerate(index):
            content = bytearray(blocks.read_block(io.BytesIO(data), block))
            if k == chosen:
                content[rng.randrange(min(len(content), 3000))] = rng.randrange(256)
            packed = zlib.compress(bytes(content))
            head = blocks.BLOCK.pack(block.kind, len(content), len(packed), block.tick, block.moves,
                                     zlib.crc32(packed), 0)[:-4]
            out += head + struct.pack("<I", zlib.crc32(head)) + packed
        path.write_bytes(out)
        try:
            with replay(path) as recording:
                raised += recording.verify() is not None
        except ValueError:
            raised += 1
    assert raised > 60


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("members", [0, 1, 40])
def test_saved_crowds_are_packed_without_loss(members, moving):
    scene, lift = hall()
    crowd = Crowd(scene, grid(members), radius=0.3, collide=True)
    rng = np.random.default_rng(members)
    for tick in range(30):
        lift.move_to((-3, 0, 0.1 + 0.01 * tick))
        crowd.move(rng.normal(scale=0.05, size=(members, 3)), DT)
        data = crowd.save(moving=moving)
        assert unpack_crowd(pack_crowd(data)) == data


def test_packed_crowds_are_smaller():
    crowd = Crowd(hall()[0], grid(40), radius=0.3)
    rng = np.random.default_rng(1)
    for _ in range(9):
        crowd.move(rng.normal(scale=0.05, size=(40, 3)) * (1, 1, 0) - (0, 0, 0.1), DT)
    data = crowd.save()
    assert len(zlib.compress(pack_crowd(data), 1)) < 0.8 * len(zlib.compress(data, 1))


@pytest.mark.parametrize("rows, members", [(-1, 1), (1, -1), (1, 2**40), (2**30, 1)])
def test_damaged_packed_crowds_are_refused(rows, members):
    data = bytearray(pack_crowd(Crowd(hall()[0], grid(1)).save()))
    save_format.CROWD_HEAD.pack_into(data, save_format.HEADER.size, 0, rows, 0, members)
    for bad in (bytes(data), b"pycct", bytes(data[:-9])):
        with pytest.raises(ValueError, match="damaged"):
            unpack_crowd(bad)
