"""Cooked files load to the bit, share their memory, and never crash when damaged."""

import copy
import gc
import os
import pickle
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import worlds

import pycct
from pycct.shapes import cooked_file as _cooked

DOWN = (0, 0, -1)


def world(rng, copies=2):
    """A scene of everything."""
    scene = worlds.scene_of(worlds.placings(rng, copies=copies))
    for actor in scene.actors[::3]:
        actor.user_data = {"name": f"thing {actor.id}", "list": [1, 2.5, None, True], "odd": float("inf")}
    scene.add(pycct.Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]]))
    scene.remove(scene.actors[4])
    scene.add_obstacle(pycct.Box((0.4, 0.5, 0.6)), (1, 1, 0), worlds.unit(rng), layer=3, user_data=[1])
    scene.add_obstacle(pycct.Capsule(0.4, 0.5), (-1, 1, 0), behavior=pycct.Behavior.CAN_SLIDE)
    ground = pycct.Heightfield(np.zeros((3, 3)) - 3, 8.0)
    scene.add(ground, (-8, -8, 0), layer=1)
    scene.add(ground, (-8, -8, -2), body="kinematic", behavior=pycct.Behavior.CAN_RIDE)
    return scene


def answers(scene, rng, n=300):
    """Bytes of what many questions find."""
    found = []
    start, way = rng.uniform(-6, 6, (n, 3)), rng.normal(size=(n, 3))
    found.append(scene.raycast_many(start, way, 9.0, mask=5))
    for shape in worlds.askers(rng).values():
        found += [scene.sweep_many(shape, start, way, 4.0), scene.overlap_many(shape, start[:50]),
                  scene.penetration_many(shape, start[:50]), scene.closest_points_many(shape, start[:50], 3.0)]
    names = ("hit", "distance", "position", "normal", "actor", "triangle", "data", "mask", "direction", "depth")
    parts = []
    for r in found:
        for name in names:
            if hasattr(r, name):
                parts.append(np.asarray(getattr(r, name)).tobytes())
    assert len(parts) > 60 and any(r.hit.any() for r in found)
    return parts


def walk(scene, rng, n=12, moves=40, **options):
    """States of characters that walk about, after every move."""
    states = []
    for _ in range(n):
        place = rng.uniform((-4, -4, -1), (4, 4, 7))
        hero = pycct.CharacterController(scene, position=place, step_offset=0.4, **options)
        course = rng.normal(size=3) * (0.12, 0.12, 0.0) + (0, 0, -0.08)
        for _ in range(moves):
            hero.move(course + rng.normal(size=3) * 0.02, 1 / 60)
            states.append(hero.save())
        hero.remove()
    return states


def saved(scene, tmp_path, name="scene.cooked", **options):
    path = tmp_path / name
    scene.save(path, **options)
    return path


@pytest.mark.parametrize("seed", range(4))
def test_a_loaded_scene_is_the_same_to_the_bit(tmp_path, seed):
    scene = world(np.random.default_rng(seed))
    path = saved(scene, tmp_path)
    for verify in (False, True):
        loaded = pycct.Scene.load(path, verify=verify)
        assert [a.id for a in loaded.actors] == [a.id for a in scene.actors]
        assert [o.id for o in loaded.obstacles] == [o.id for o in scene.obstacles]
        for one in [*scene.actors, *scene.obstacles]:
            two = loaded.actor(one.id)
            assert type(one) is type(two) and type(one.shape) is type(two.shape)
            for name in ("position", "rotation", "scale", "body", "layer", "behavior", "user_data", "bounds"):
                assert getattr(one, name) == getattr(two, name), name
            assert one.shape.bounds == two.shape.bounds
        questions, ways = np.random.default_rng(seed + 100), np.random.default_rng(seed + 100)
        assert answers(scene, questions) == answers(loaded, ways)
        for options in ({}, {"rules": "robust"}, {"invisible_wall_height": 1.0}):
            assert walk(scene, questions, n=6, **options) == walk(loaded, ways, n=6, **options)
        # A new actor gets a new id; the characters of the walks have used some.
        assert loaded.add(pycct.Box((1, 1, 1))).id > max(a.id for a in [*scene.actors, *scene.obstacles])


def test_shapes_come_back_whole(tmp_path):
    rng = np.random.default_rng(7)
    scene = world(rng)
    loaded = pycct.Scene.load(saved(scene, tmp_path))
    seen = set()
    for a, b in zip(scene.actors, loaded.actors, strict=True):
        one, two = a.shape, b.shape
        seen.add(type(one).__name__)
        for name in ("radius", "height", "half_extents", "normal", "offset", "spacing", "row_axis", "two_sided",
                     "triangle_count", "n_degenerate"):
            assert getattr(one, name, None) == getattr(two, name, None)
        for name in ("vertices", "triangles", "triangle_data", "triangle_mask", "heights", "holes", "diagonal",
                     "scale"):
            x, y = getattr(one, name, None), getattr(two, name, None)
            assert np.array_equal(x, y) and getattr(x, "dtype", None) == getattr(y, "dtype", None)
        if hasattr(one, "mapped"):
            assert not one.mapped and two.mapped
            assert one.nbytes >= two.nbytes
            for name in ("vertices", "triangles", "heights"):
                if hasattr(two, name):
                    assert not getattr(two, name).flags.writeable
    assert len(seen) == 8
    # What was shared still is.
    two = [a.shape for a in loaded.actors if isinstance(a.shape, pycct.Heightfield)][-2:]
    assert two[0] is two[1]


def test_a_plane_keeps_the_bits_of_its_normal(tmp_path):
    rng = np.random.default_rng(3)
    for _ in range(200):
        plane = pycct.Plane(rng.normal(size=3), 1.5)
        assert pickle.loads(pickle.dumps(plane)).normal == plane.normal
        scene = pycct.Scene()
        scene.add(plane)
        assert pycct.Scene.load(saved(scene, tmp_path)).actors[0].shape.normal == plane.normal


def test_a_hull_comes_back_without_being_built(tmp_path):
    rng = np.random.default_rng(5)
    hulls = [pycct.ConvexHull(rng.normal(size=(n, 3))) for n in (4, 9, 40, 120)]
    # Corners of a box, with a few more on its faces, that are in the tables' tolerance only.
    box = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
    hulls.append(pycct.ConvexHull(np.concatenate([box, box * (1, 0.2, 0.3)]) + rng.normal(size=(16, 3)) * 1e-9))
    hulls += [hulls[0].scaled((1, 2, -3)), hulls[0].scaled((1, 0, 1)), pycct.ConvexHull([[1, 2, 3]]),
              pycct.ConvexHull([[1, 2, 3], [4, 4, 4]]), pycct.ConvexHull(rng.normal(size=(9, 3)) * (1, 1, 0))]
    scene = pycct.Scene()
    for k, hull in enumerate(hulls):
        scene.add(hull, (3 * k, 0, 0))
    path = saved(scene, tmp_path)
    loaded = pycct.Scene.load(path)
    for a, b in zip(scene.actors, loaded.actors, strict=True):
        for _ in range(60):
            pose = rng.normal(size=3) * 1.5, worlds.unit(rng)
            for other in worlds.askers(rng).values():
                if isinstance(other, pycct.Plane):
                    continue
                x = pycct.contacts_between(a.shape, other, ((0, 0, 0), (0, 0, 0, 1)), pose)
                y = pycct.contacts_between(b.shape, other, ((0, 0, 0), (0, 0, 0, 1)), pose)
                assert x.normal == y.normal and x.points_on_b.tobytes() == y.points_on_b.tobytes()
                assert x.distances.tobytes() == y.distances.tobytes()
    again = tmp_path / "again"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_saving_what_was_loaded_gives_the_same_file(tmp_path):
    path = saved(world(np.random.default_rng(11)), tmp_path)
    before = path.read_bytes()
    saved(pycct.Scene.load(path), tmp_path, "other")
    assert (tmp_path / "other").read_bytes() == before
    # On itself too.
    scene = pycct.Scene.load(path)
    scene.save(path)
    assert path.read_bytes() == before
    assert answers(scene, np.random.default_rng(1)) == answers(pycct.Scene.load(path), np.random.default_rng(1))


def test_a_loaded_scene_can_be_changed_copied_and_pickled(tmp_path):
    rng = np.random.default_rng(12)
    path = saved(world(rng), tmp_path)
    loaded = pycct.Scene.load(path)
    for again in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert answers(again, np.random.default_rng(2)) == answers(loaded, np.random.default_rng(2))
    mesh = next(a.shape for a in loaded.actors if isinstance(a.shape, pycct.Mesh))
    again = pickle.loads(pickle.dumps(mesh))
    assert mesh.mapped and not again.mapped and np.array_equal(again.triangles, mesh.triangles)
    # The same changes in a scene that was not loaded.
    plain = pickle.loads(pickle.dumps(loaded))
    for scene in (loaded, plain):
        scene.add(pycct.Sphere(1.0), (1, 2, 0))
        scene.remove(scene.actors[0])
        scene.actors[3].move_to((0.5, 0.5, 0.5))
        scene.shift_origin((1, 0, 0))
    assert answers(loaded, np.random.default_rng(3)) == answers(plain, np.random.default_rng(3))
    assert walk(loaded, np.random.default_rng(4)) == walk(plain, np.random.default_rng(4))


def test_the_file_stays_mapped_as_long_as_a_mesh_is_used(tmp_path):
    path = saved(world(np.random.default_rng(13)), tmp_path)
    mesh = next(a.shape for a in pycct.Scene.load(path).actors if isinstance(a.shape, pycct.Mesh))
    path.unlink()
    gc.collect()
    scene = pycct.Scene()
    scene.add(mesh)
    plain = pycct.Scene()
    plain.add(pickle.loads(pickle.dumps(mesh)))
    assert answers(scene, np.random.default_rng(5)) == answers(plain, np.random.default_rng(5))
    points = mesh.vertices
    del mesh, scene
    gc.collect()
    assert np.isfinite(points).all()


def test_a_worker_keeps_the_file_that_it_has_loaded(tmp_path):
    one, two = world(np.random.default_rng(20)), world(np.random.default_rng(21))
    path = saved(one, tmp_path)
    worker = pycct.Scene.load(path)
    two.save(path)
    assert answers(worker, np.random.default_rng(6)) == answers(one, np.random.default_rng(6))
    assert answers(pycct.Scene.load(path), np.random.default_rng(6)) == answers(two, np.random.default_rng(6))
    # Nothing else is left in the folder.
    assert os.listdir(tmp_path) == ["scene.cooked"]


def test_characters_and_their_proxies_stay_behind(tmp_path):
    scene = pycct.Scene()
    scene.add(pycct.Box((5, 5, 1)), (0, 0, -1))
    hero = pycct.CharacterController(scene, position=(0, 0, 2))
    proxy = hero.add_proxy(user_data=object())
    crate = scene.add(pycct.Box((1, 1, 1)), (3, 0, 1))
    loaded = pycct.Scene.load(saved(scene, tmp_path))
    assert loaded.characters == [] and loaded.actor(proxy.id) is None
    assert [a.id for a in loaded.actors] == [0, crate.id]
    assert loaded.add(pycct.Box((1, 1, 1))).id == crate.id + 1


def test_an_empty_scene(tmp_path):
    loaded = pycct.Scene.load(saved(pycct.Scene(), tmp_path), verify=True)
    assert len(loaded) == 0 and loaded.raycast((0, 0, 0), DOWN, 9) is None


def test_user_data(tmp_path):
    scene = pycct.Scene()
    plain = {"a": [1, -2.5, 1e300, 2**80, True, None, "\ud800 äöü", {"b": {}}], "nan": 1.0}
    box = scene.add(pycct.Box((1, 1, 1)), user_data=plain)
    assert pycct.Scene.load(saved(scene, tmp_path)).actors[0].user_data == plain
    before = (tmp_path / "scene.cooked").read_bytes()
    deep = []
    for _ in range(200):
        deep = [deep]
    endless = []
    endless.append(endless)
    for bad, error in ((object(), TypeError), ((1, 2), TypeError), ({1: 2}, TypeError), (np.float64(1), TypeError),
                       (b"x", TypeError), ([{"a": {1}}], TypeError), (deep, ValueError), (endless, ValueError),
                       (pycct.Behavior.CAN_RIDE, TypeError), (10**5000, ValueError)):
        box.user_data = bad
        with pytest.raises(error, match="user_data"):
            scene.save(tmp_path / "scene.cooked")
        assert (tmp_path / "scene.cooked").read_bytes() == before and os.listdir(tmp_path) == ["scene.cooked"]
        assert pycct.Scene.load(saved(scene, tmp_path, "without", user_data=False)).actors[0].user_data is None
        (tmp_path / "without").unlink()


def test_bad_places(tmp_path):
    scene = pycct.Scene()
    for bad in (None, 3, 1.5, scene):
        with pytest.raises(TypeError):
            scene.save(bad)
        with pytest.raises(TypeError):
            pycct.Scene.load(bad)
    with pytest.raises(FileNotFoundError):
        pycct.Scene.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError) as failed:
        scene.save(tmp_path / "none" / "scene")
    assert failed.value.filename == str(tmp_path / "none" / "scene")
    for call in (scene.save, pycct.Scene.load):
        with pytest.raises(IsADirectoryError):
            call(tmp_path)
        with pytest.raises(ValueError):
            call("a\0b")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        for call in (scene.save, pycct.Scene.load):
            with pytest.raises(ValueError, match="pipe"):
                call(tmp_path / "pipe")
        (tmp_path / "pipe").unlink()
    with pytest.raises(TypeError, match="verify"):
        pycct.Scene.load(saved(scene, tmp_path), verify=1)
    with pytest.raises(TypeError, match="user_data"):
        scene.save(tmp_path / "x", user_data=None)
    assert os.listdir(tmp_path) == ["scene.cooked"]
    # str, bytes and paths alike.
    scene.save(str(tmp_path / "scene.cooked"))
    assert len(pycct.Scene.load(os.fsencode(tmp_path / "scene.cooked"))) == 0


@pytest.mark.skipif(not hasattr(os, "symlink") or sys.platform == "win32", reason="symbolic links")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    os.symlink(tmp_path / "there" / "file", tmp_path / "link")
    pycct.Scene().save(tmp_path / "link")
    assert os.path.islink(tmp_path / "link") and (tmp_path / "there" / "file").is_file()


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere, and Windows asks else")
def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "there").mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        pycct.Scene().save(tmp_path / "there" / "file")


def head_again(raw):
    """Put right the checksum of a head that was changed on purpose."""
    n = struct.unpack_from("=I", raw, _cooked.CHECKSUM_AT - 4)[0]
    last = min(len(raw), _cooked.HEADER.size + n * _cooked.SECTION.itemsize)
    struct.pack_into("=I", raw, _cooked.CHECKSUM_AT, 0)
    struct.pack_into("=I", raw, _cooked.CHECKSUM_AT, zlib.crc32(bytes(raw[:last])))
    return raw


def refused(path, raw, match):
    path.write_bytes(raw)
    for verify in (False, True):
        with pytest.raises(ValueError, match=match) as caught:
            pycct.Scene.load(path, verify=verify)
        assert str(path) in str(caught.value)


def test_foreign_files(tmp_path):
    path = saved(world(np.random.default_rng(14)), tmp_path)
    raw = path.read_bytes()
    refused(path, b"", "not a cooked scene")
    refused(path, b"x", "not a cooked scene")
    refused(path, b"solid cube\n" * 100, "not a cooked scene")
    refused(path, bytes(5000), "not a cooked scene")
    refused(path, raw.replace(b"\r\n", b"\n", 1), "not a cooked scene")
    fields = list(_cooked.HEADER.unpack_from(raw))
    for at, value, match in ((1, 0x04030201, "byte order"), (1, 5, "byte order"),
                             (2, 1, "format 1"), (2, 3, "format 3"),
                             (3, 4, "word size"), (4, 60, "word size"), (5, fields[5] + 1, "should have"),
                             (5, fields[5] - 1, "should have"), (7, 99, "results version 99"),
                             (8, 0, "missing actors"), (8, 2**32 - 1, "truncated"), (6, -1, "ids"), (6, 1, "ids"),
                             (6, 2**62 + 1, "ids")):
        changed = list(fields)
        changed[at] = value
        refused(path, bytes(head_again(bytearray(_cooked.HEADER.pack(*changed) + raw[_cooked.HEADER.size:]))), match)
    # A machine of the other byte order writes all of it the other way round.
    other = struct.Struct(">" + _cooked.HEADER.format[1:]) if sys.byteorder == "little" else struct.Struct(
        "<" + _cooked.HEADER.format[1:])
    refused(path, other.pack(*fields) + raw[_cooked.HEADER.size:], "byte order")


def test_a_file_that_was_cut(tmp_path):
    path = saved(world(np.random.default_rng(15), copies=1), tmp_path)
    raw = path.read_bytes()
    for n in [*range(0, 400, 7), *np.linspace(400, len(raw) - 1, 150).astype(int)]:
        refused(path, raw[:n], "cooked scene|should have|truncated")
    refused(path, raw + b"\0", "should have")


def sections(raw):
    n = struct.unpack_from("=I", raw, _cooked.CHECKSUM_AT - 4)[0]
    rows = np.frombuffer(raw, _cooked.SECTION, n, _cooked.HEADER.size).tolist()
    return [dict(zip(_cooked.SECTION.names, row, strict=True)) for row in rows]


def test_damage_is_found(tmp_path):
    path = saved(world(np.random.default_rng(16), copies=1), tmp_path)
    raw = path.read_bytes()
    table = sections(raw)
    rng = np.random.default_rng(17)
    # The head and what is small: always.
    small = [range(_cooked.HEADER.size + len(table) * _cooked.SECTION.itemsize)]
    small += [range(s["offset"], s["offset"] + s["bytes"]) for s in table if s["kind"] <= _cooked.USER_DATA]
    for where in small:
        for at in rng.choice(where, min(120, len(where)), replace=False):
            changed = bytearray(raw)
            changed[at] ^= 1 << rng.integers(8)
            refused(path, bytes(changed), "cooked|damaged")
    # `verify` reads the rest.
    for s in table[4:]:
        changed = bytearray(raw)
        changed[s["offset"] + int(rng.integers(s["bytes"]))] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        pycct.Scene.load(path)
        with pytest.raises(ValueError, match="checksum"):
            pycct.Scene.load(path, verify=True)


def test_wrong_indices_are_found_behind_right_checksums(tmp_path):
    scene = pycct.Scene()
    v, t = worlds.soup(np.random.default_rng(18), n=60)
    scene.add(pycct.Mesh(v, t, triangle_mask=np.ones(60, int)))
    scene.add(pycct.Heightfield(np.zeros((20, 20)), holes=np.zeros((19, 19), bool)))
    path = saved(scene, tmp_path)
    raw = path.read_bytes()
    pycct.Scene.load(path, verify=True)
    for k, s in enumerate(sections(raw)):
        kinds = {_cooked.VERTICES: ("f8", [np.nan, np.inf, 1e9]), _cooked.GIVEN: ("i4", [-1, 180, 2**31 - 1]),
                 _cooked.LEAF: ("i4", [-1, 180, 2**31 - 1]), _cooked.NORMALS: ("f8", [np.nan, 2.0]),
                 _cooked.SOURCE: ("i4", [-1, 60, "twice"]), _cooked.NODES: ("i4", [-2**31, -1, 0, 10**6, 2**31 - 1]),
                 _cooked.HEIGHTS: ("f8", [np.nan, 1e9]), _cooked.CELLS: ("u1", [4]),
                 _cooked.ORDER: ("i4", [-1, 25])}
        if s["kind"] not in kinds:
            continue
        dtype, values = kinds[s["kind"]]
        for value in values:
            changed = bytearray(raw)
            part = np.frombuffer(changed, dtype, s["bytes"] // np.dtype(dtype).itemsize, s["offset"])
            # In a node: a child that is not the first place.
            at = 5
            if s["kind"] == _cooked.NODES:
                at = 48 + int(np.flatnonzero((part[48:56] > 0) & (part[56:64] >= 0))[0])
            part[at] = part[6] if value == "twice" else value
            row = _cooked.HEADER.size + k * _cooked.SECTION.itemsize
            struct.pack_into("=I", changed, row + 24, zlib.crc32(part.tobytes()))
            path.write_bytes(head_again(changed))
            pycct.Scene.load(path)
            with pytest.raises(ValueError, match=r"damaged: a (mesh|heightfield) has wrong"):
                pycct.Scene.load(path, verify=True)


def poke(rng, raw):
    """A copy with random damage, its head put right half the time."""
    changed = bytearray(raw)
    table = sections(raw)
    kind = rng.integers(5)
    if kind == 0:       # here and there
        for at in rng.integers(0, len(raw), rng.integers(1, 40)):
            changed[at] ^= 1 << rng.integers(8)
    elif kind == 1:     # whole stretches of what is large
        for _ in range(rng.integers(1, 5)):
            s = table[rng.integers(4, len(table))]
            start = s["offset"] + int(rng.integers(s["bytes"]))
            n = min(int(rng.integers(1, 400)), s["offset"] + s["bytes"] - start)
            changed[start:start + n] = rng.bytes(n) if rng.random() < 0.7 else b"\xff" * n
    elif kind == 2:     # numbers of nodes and indices that nearly make sense
        for _ in range(rng.integers(1, 60)):
            s = table[rng.integers(4, len(table))]
            part = np.frombuffer(changed, "i4", s["bytes"] // 4, s["offset"])
            if len(part):
                part[rng.integers(len(part))] = rng.choice([-1, 0, 1, 2, 3, 5, 1000, 2**31 - 1, -2**31])
            part = np.frombuffer(changed, "f8", s["bytes"] // 8, s["offset"])
            if len(part):
                part[rng.integers(len(part))] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e-320, 0.0])
    elif kind == 3:     # the table
        part = np.frombuffer(changed, "i8", len(table) * _cooked.SECTION.itemsize // 8, _cooked.HEADER.size)
        for at in rng.integers(0, len(part), rng.integers(1, 6)):
            part[at] = rng.choice([0, 1, 64, 128, len(raw), -2**63, 2**63 - 1, -1, part[rng.integers(len(part))]])
    else:               # records of shapes and actors, behind right checksums
        k = rng.integers(4)
        s = table[k]
        for _ in range(rng.integers(1, 4)):
            at = s["offset"] + 4 * int(rng.integers(s["bytes"] // 4))
            struct.pack_into("=i", changed, at, int(rng.choice([-1, 0, 1, 2, 7, 255, 2**31 - 1, -2**31])))
        row = _cooked.HEADER.size + int(k) * _cooked.SECTION.itemsize
        struct.pack_into("=I", changed, row + 24, zlib.crc32(bytes(changed[s["offset"]:s["offset"] + s["bytes"]])))
    if rng.random() < 0.3:
        changed = changed[:rng.integers(len(changed))]
    return bytes(head_again(changed)) if rng.random() < 0.7 and len(changed) >= 64 else bytes(changed)


def try_all(scene, rng, n):
    """Ask and move, whatever comes of it."""
    start, way = rng.uniform(-6, 6, (n, 3)), rng.normal(size=(n, 3))
    scene.raycast_many(start, way, 9.0, mask=5)
    for shape in worlds.askers(rng).values():
        scene.sweep_many(shape, start, way, 4.0)
        scene.overlap_many(shape, start)
        scene.penetration_many(shape, start)
        scene.closest_points_many(shape, start, 3.0)
        scene.closest_points_many(shape, start[:2])
    for options in ({}, {"rules": "robust"}, {"invisible_wall_height": 1.0}):
        hero = pycct.CharacterController(scene, position=start[0], step_offset=0.4, **options)
        for k in range(n):
            if k % 20 == 0:
                hero.teleport(start[k])
            try:
                hero.move(way[k] * 0.2, 1 / 60)
                hero.ground, hero.hits
                hero.probe_ground(1.0)
                hero.contacts()
            except FloatingPointError:
                hero.teleport(start[k])


def fuzz(tmp_path, seed, rounds, n):
    rng = np.random.default_rng(seed)
    path = saved(world(rng, copies=1), tmp_path)
    raw = path.read_bytes()
    loaded = 0
    for _ in range(rounds):
        path.write_bytes(poke(rng, raw))
        try:
            scene = pycct.Scene.load(path, verify=rng.random() < 0.1)
        except ValueError as problem:
            assert str(path) in str(problem)
            continue
        loaded += 1
        try_all(scene, rng, n)
        for actor in scene.actors:
            if hasattr(actor.shape, "mapped"):
                try:
                    pickle.loads(pickle.dumps(actor.shape))
                except ValueError:
                    pass
    return loaded


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_errors_or_wrong_answers_and_no_more(tmp_path, seed):
    assert fuzz(tmp_path, seed, 60, 30) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_damaged_files(tmp_path, seed):
    assert fuzz(tmp_path, seed, 600, 60) > 100


def test_nodes_that_lead_in_circles_and_everywhere(tmp_path):
    scene = pycct.Scene()
    v, t = worlds.soup(np.random.default_rng(30), n=3000, span=20.0)
    scene.add(pycct.Mesh(v, t))
    path = saved(scene, tmp_path)
    raw = path.read_bytes()
    s = next(s for s in sections(raw) if s["kind"] == _cooked.NODES)
    rng = np.random.default_rng(31)
    for way in ("self", "next", "random", "leaves"):
        changed = bytearray(raw)
        nodes = np.frombuffer(changed, "i4", s["bytes"] // 4, s["offset"]).reshape(-1, 64)
        boxes = np.frombuffer(changed, "f4", s["bytes"] // 4, s["offset"]).reshape(-1, 64)
        child, count = nodes[:, 48:56], nodes[:, 56:]
        boxes[:, :24] = -1e9
        boxes[:, 24:48] = 1e9
        each = np.arange(len(nodes))[:, None]
        if way == "self":
            child[:] = each
            count[:] = 0
        elif way == "next":
            # As many ways to the last node as can be counted.
            child[:] = np.minimum(each + 1 + np.arange(8), len(nodes) - 1)
            count[:] = 0
        elif way == "random":
            child[:] = rng.integers(-5, len(nodes) + 5, child.shape)
            count[:] = rng.integers(-1, 2, count.shape)
        else:
            count[:] = rng.integers(1, 3000, count.shape)
            child[:] = rng.integers(0, 3000, child.shape)
        path.write_bytes(changed)
        try_all(pycct.Scene.load(path), rng, 20)


def test_processes_share_the_pages(tmp_path):
    if not os.path.exists("/proc/self/smaps"):
        pytest.skip("needs /proc")
    scene = pycct.Scene()
    v, t = worlds.soup(np.random.default_rng(40), n=60_000, span=50.0)
    scene.add(pycct.Mesh(v, t))
    path = saved(scene, tmp_path)
    script = (
        "import sys, pycct, numpy as np\n"
        "scene = pycct.Scene.load(sys.argv[1])\n"
        "n = scene.raycast_many(np.random.default_rng(0).uniform(-50, 50, (5000, 3)), (0, 0, -1), 100.0).hit.sum()\n"
        "inside, dirty = False, 0\n"
        "for line in open('/proc/self/smaps'):\n"
        "    if '-' in line.split()[0]:\n"
        "        inside = sys.argv[1] in line\n"
        "    elif inside and line.startswith('Private_Dirty'):\n"
        "        dirty += int(line.split()[1])\n"
        "print(n, dirty)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    hits, dirty = map(int, done.stdout.split())
    assert hits > 1000 and dirty == 0
