"""Level files in every format that trimesh writes, their faults, and the commands over them."""

import json
import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pycct
from pycct.__main__ import main
from pycct.cli.walk import walk
from pycct.levels import report_on

trimesh = pytest.importorskip("trimesh")

LEVELS = Path(__file__).resolve().parents[3] / "shared" / "levels"
FORMATS = ["obj", "ply", "stl", "glb", "gltf"]


def street(z=0.0):
    """A floor of 40 by 4 m in 2 m squares, z up."""
    x, y = np.meshgrid(np.arange(21) * 2.0, np.arange(3) * 2.0 - 2, indexing="ij")
    v = np.stack([x, y, np.full(x.shape, z)], -1).reshape(-1, 3)
    i = (np.arange(20)[:, None] * 3 + np.arange(2)).ravel()
    t = np.stack([np.stack([i, i + 3, i + 4], 1), np.stack([i, i + 4, i + 1], 1)], 1).reshape(-1, 3)
    return v, t


def box(lo, hi):
    m = trimesh.creation.box(bounds=[lo, hi])
    return np.asarray(m.vertices), np.asarray(m.faces)


def joined(*parts):
    v, t, n = [], [], 0
    for a, b in parts:
        v.append(a)
        t.append(np.asarray(b) + n)
        n += len(a)
    return np.concatenate(v), np.concatenate(t)


def write(path, v, t):
    """Written by trimesh as it is; z-up data into a y-up format when it is glTF."""
    if path.suffix in (".glb", ".gltf"):
        v = np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1)
    trimesh.Trimesh(v, t, process=False).export(path)
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_keeps_triangles_and_their_order(kind, tmp_path):
    rng = np.random.default_rng(0)
    v, t = street()
    v = v + rng.normal(size=v.shape) * 0.1
    if kind in ("stl", "glb", "gltf"):
        v = v.astype(np.float32).astype(float)
    mesh, report = pycct.load_level(write(tmp_path / f"level.{kind}", v, t))
    assert mesh.triangle_count == len(t) and mesh.triangles.shape == t.shape
    got, want = mesh.vertices[mesh.triangles], v[t]
    # Corners may start elsewhere, triangles may not.
    match = [min(np.abs(np.roll(g, k, 0) - w).max() for k in range(3)) for g, w in zip(got, want, strict=True)]
    assert max(match) < 1e-5
    assert (report.triangles, report.degenerate, report.duplicate, report.flipped) == (len(t), 0, 0, 0)
    assert np.allclose(report.lower, v.min(0), atol=1e-5) and report.warnings == ()
    assert len(mesh.vertices) <= len(v)


def test_node_transforms_and_mirroring(tmp_path):
    v, t = street()
    part = trimesh.Trimesh(np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1), t, process=False)
    scene = trimesh.Scene()
    scene.add_geometry(part, node_name="a", geom_name="g")
    moved = np.eye(4)
    moved[:3, 3] = 0, 5, 0
    scene.add_geometry(part, node_name="b", geom_name="h", transform=moved)
    mirror = np.diag([-1.0, 1, 1, 1])
    scene.add_geometry(part, node_name="c", geom_name="i", transform=mirror)
    scene.export(str(tmp_path / "s.glb"))
    mesh, report = pycct.load_level(tmp_path / "s.glb")
    assert report.triangles == 3 * len(t) and report.upper[2] == 5 and report.lower[0] == -40
    world = pycct.Scene()
    world.add(mesh)
    # All three face up, the mirrored one as well.
    for x, z in ((10, 5), (-10, 0)):
        hit = world.raycast((x, 0.3, 9), (0, 0, -1), 20)
        assert hit.position[2] == z and hit.normal == (0, 0, 1)


def test_up_and_scale(tmp_path):
    v, t = street(3.0)
    turned = {"x": v[:, [2, 0, 1]], "y": np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1), "z": v}
    for up, points in turned.items():
        path = write(tmp_path / f"{up}.ply", points * 100, t)
        mesh, report = pycct.load_level(path, up=up, scale=0.01)
        assert report.lower[2] == pytest.approx(3) and report.upper[2] == pytest.approx(3), up
        assert mesh.triangle_count == len(t)
        world = pycct.Scene()
        world.add(mesh)
        middle = (np.array(report.lower) + report.upper) / 2
        assert world.raycast(middle + np.array((0.1, 0.3, 2)), (0, 0, -1), 9).normal == pytest.approx((0, 0, 1))
        # The other way up: the floor becomes a ceiling, seen from below.
        under, _ = pycct.load_level(path, up="-" + up, scale=0.01)
        world = pycct.Scene()
        world.add(under)
        middle = (np.array(under.bounds[0]) + under.bounds[1]) / 2
        assert world.raycast(middle + np.array((0.1, 0.3, 2)), (0, 0, -1), 9) is None
        assert world.raycast(middle + np.array((0.1, 0.3, -2)), (0, 0, 1), 9) is not None


def test_report_counts_faults():
    v, t = street()
    t = t.copy()
    t[7] = t[7][::-1]                      # flipped
    t = np.concatenate([t, [t[3]], [np.roll(t[4], 1)], [[0, 0, 1]], [[0, 1, 2]]])     # twice, twice, degenerate x 2
    r = report_on(v, t)
    assert (r.triangles, r.degenerate, r.duplicate, r.flipped) == (len(t), 2, 2, 1)
    assert r.largest_edge == pytest.approx(np.hypot(2, 2)) or r.largest_edge == 4
    assert r.smallest_edge == 2 and r.size == (40, 4, 0)
    assert any("face another side" in w for w in r.warnings)
    # A flipped patch counts all of its triangles, though only its rim disagrees.
    v, t = street()
    t[8:28] = t[8:28][:, ::-1]
    assert report_on(v, t).flipped == 20
    closed = report_on(*box((0, 0, 0), (4, 4, 4)))
    assert closed.open_edges == 0 and closed.flipped == 0
    assert "triangles" in str(closed)


@pytest.mark.parametrize(("change", "words"), [
    (lambda v: v * 100, "units"),
    (lambda v: v * 0.01, "units"),
    (lambda v: np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1), "up axis"),
    (lambda v: v * (1, -1, 1), "inside out"),
])
def test_suspicions(change, words):
    v, t = street()
    assert report_on(v, t).warnings == ()
    assert any(words in w for w in report_on(change(v), t).warnings)


@pytest.mark.parametrize("kind", FORMATS)
def test_truncated_files_are_refused(kind, tmp_path):
    path = write(tmp_path / f"level.{kind}", *street())
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        try:
            _, report = pycct.load_level(path)
        except ValueError as e:
            assert str(path) in str(e)
        else:
            # Text formats end with any line: what is there is what counts.
            assert kind in ("obj", "ply", "stl") and report.triangles < 80
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        pycct.load_level(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_no_level_is_refused(kind, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / f"level.{kind}"
    for junk in (b"hello world, this is no level\n" * 5, rng.bytes(3000), b"\0" * 500, b"{}", b"[1, 2"):
        path.write_bytes(junk)
        with pytest.raises(ValueError, match="level"):
            pycct.load_level(path)


def test_errors_that_say_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError):
        pycct.load_level(tmp_path / "none.obj")
    (tmp_path / "a.obj").mkdir()
    with pytest.raises(IsADirectoryError):
        pycct.load_level(tmp_path / "a.obj")
    (tmp_path / "a.txt").write_text("v 0 0 0")
    with pytest.raises(ValueError, match="not a level file"):
        pycct.load_level(tmp_path / "a.txt")
    path = write(tmp_path / "big.obj", *street())
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_level(path, max_bytes=100)
    for argument, value, error in (("up", "w", ValueError), ("scale", 0, ValueError), ("scale", "1", TypeError),
                                   ("scale", float("nan"), ValueError), ("two_sided", 3, TypeError),
                                   ("max_bytes", "9", TypeError), ("max_bytes", 1e9, TypeError)):
        with pytest.raises(error, match=argument):
            pycct.load_level(path, **{argument: value})
    (tmp_path / "points.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    with pytest.raises(ValueError, match=r"no triangles|cannot be read"):
        pycct.load_level(tmp_path / "points.obj")
    (tmp_path / "index.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n")
    with pytest.raises(ValueError, match=r"index\.obj"):
        pycct.load_level(tmp_path / "index.obj")
    (tmp_path / "nan.obj").write_text("v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(ValueError, match="finite"):
        pycct.load_level(tmp_path / "nan.obj")
    # A buffer that is not there.
    gltf = json.loads(Path(write(tmp_path / "m.gltf", *street())).read_text())
    gltf["buffers"][0]["uri"] = "elsewhere.bin"
    (tmp_path / "m.gltf").write_text(json.dumps(gltf))
    with pytest.raises(ValueError, match=r"m\.gltf"):
        pycct.load_level(tmp_path / "m.gltf")


def gltf_of_two_files(path, uri, **more):
    """A glTF whose bytes are in another file; that other file's bytes."""
    corners = np.array([(0, 0, 0), (4, 0, 0), (4, 0, -4)], "<f4").tobytes()
    tree = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}], "images": [{"uri": "pipe"}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": uri}], **more,
    }
    path.write_text(json.dumps(tree))
    return corners


def test_buffers_are_plain_files_of_the_folder(tmp_path):
    folder = tmp_path / "level"
    (folder / "below").mkdir(parents=True)
    path = folder / "a.gltf"
    if hasattr(os, "mkfifo"):
        # The loader opens no image; opening this one would block for ever.
        os.mkfifo(folder / "pipe")
    for uri, place in (("a.bin", "a.bin"), ("below/a.bin", "below/a.bin"), ("./a%20b.bin", "a b.bin"),
                       ("C:\\work\\c.bin", "c.bin"), ("below/../d.bin", "d.bin")):
        (folder / place).write_bytes(gltf_of_two_files(path, uri))
        mesh, _ = pycct.load_level(path)
        assert mesh.triangle_count == 1
        size = path.stat().st_size + 36
        assert pycct.load_level(path, max_bytes=size)
        with pytest.raises(ValueError, match="max_bytes"):
            pycct.load_level(path, max_bytes=size - 1)
    (tmp_path / "outside.bin").write_bytes(gltf_of_two_files(path, ""))
    for uri in ("../outside.bin", str(tmp_path / "outside.bin"), "below/../../outside.bin", "", ".", "below", "..",
                "a\0b", "pipe", "/dev/zero", "../../../../../../../../dev/zero", "http://localhost/outside.bin"):
        gltf_of_two_files(path, uri)
        with pytest.raises(ValueError, match=r"a\.gltf"):
            pycct.load_level(path)


def test_another_file_is_never_read_instead(tmp_path):
    (tmp_path / "a.bin").write_bytes(gltf_of_two_files(tmp_path / "model.gltf", "a.bin"))
    assert pycct.load_level(tmp_path / "model.gltf")
    (tmp_path / "b.gltf").write_text("{")
    with pytest.raises(ValueError, match=r"b\.gltf"):
        pycct.load_level(tmp_path / "b.gltf")


def test_a_small_file_takes_little_memory(tmp_path):
    path = tmp_path / "a.gltf"
    number = {"componentType": 5126, "type": "VEC3"}
    for change in (
        {"accessors": [{**number, "count": 30_000_000}]},                              # no bytes of their own
        {"accessors": [{**number, "count": 30_000_000, "sparse": {"count": 0}}]},
        {"accessors": [{**number, "bufferView": 0, "count": 10**12}]},
        {"accessors": [{**number, "bufferView": 0, "count": 3}] * 50_000},             # the same ones again
        {"bufferViews": [{"buffer": 0, "byteLength": 2**40}]},
        {"nodes": [{"mesh": 0}] * 30_000, "scenes": [{"nodes": list(range(30_000))}]},
    ):
        (tmp_path / "a.bin").write_bytes(gltf_of_two_files(path, "a.bin"))
        assert pycct.load_level(path, max_bytes=400_000)
        gltf_of_two_files(path, "a.bin", **change)
        with pytest.raises(ValueError, match=r"a\.gltf.*(max_bytes|beyond its buffer)"):
            pycct.load_level(path, max_bytes=400_000)
    # Nor does a GLB.
    text = path.read_bytes()
    glb = tmp_path / "a.glb"
    body = text + b" " * (-len(text) % 4)
    glb.write_bytes(struct.pack("<4sIII4s", b"glTF", 2, 20 + len(body), len(body), b"JSON") + body)
    with pytest.raises(ValueError, match=r"a\.glb.*max_bytes"):
        pycct.load_level(glb, max_bytes=400_000)


@pytest.mark.parametrize("unit", ["{}", "[[]]", '{"a":0}', "0.5", '"ab"', "[0]", '"\u20ac"'])
def test_json_is_refused_before_it_is_parsed(unit, tmp_path):
    """Parsed JSON takes up to 34 times its bytes: the limit of eight holds for it too."""
    path = tmp_path / "a.gltf"
    size = 1_000_000
    for count, refused in ((size // (len(unit.encode()) + 1) - 20, True), (200, False)):
        path.write_text('{"asset":{"version":"2.0"},"extras":[' + ",".join([unit] * count) + "]}", "utf-8")
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"a\.gltf.*max_bytes" if refused else "no triangles"):
            pycct.load_level(path, max_bytes=size)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 3 * size


@pytest.mark.parametrize("corner", [2, 2**31 - 1])
def test_edges_of_ply_are_left_out(corner, tmp_path):
    """trimesh would load the lines instead of the triangles, up to their largest corner."""
    path = write(tmp_path / "a.ply", *street())
    head, rest = path.read_bytes().split(b"end_header\n")
    head += b"element edge 1\nproperty int vertex1\nproperty int vertex2\nend_header\n"
    path.write_bytes(head + rest + struct.pack("<ii", 0, corner))
    mesh, _ = pycct.load_level(path)
    assert mesh.triangle_count == 80


def test_negative_and_polygon_faces_of_obj(tmp_path):
    path = tmp_path / "quad.obj"
    path.write_text("v 0 0 0\nv 4 0 0\nv 4 4 0\nv 0 4 0\nf -4 -3 -2 -1\n")
    mesh, _ = pycct.load_level(path)
    assert mesh.triangle_count == 2


def test_info(tmp_path, capsys):
    path = write(tmp_path / "level.ply", *street())
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "triangles      80" in out and "40" in out
    assert main(["info", str(tmp_path / "none.ply")]) == 1
    assert "none.ply" in capsys.readouterr().err
    assert main(["info", str(path), "--up", "y"]) == 0
    assert "warning" in capsys.readouterr().out


def test_raycast_command(tmp_path, capsys):
    path = write(tmp_path / "level.ply", *street(1.0))
    assert main(["raycast", str(path), "--origin", "3,-1.5,5"]) == 0
    out = capsys.readouterr().out
    assert "distance  4 m" in out and "slope 0.0 degrees" in out and "triangle" in out
    assert main(["raycast", str(path), "--origin", "-3,-1.5,5", "--distance", "9"]) == 0
    assert "nothing within 9 m" in capsys.readouterr().out
    assert main(["raycast", str(path), "--origin", "3,0,5", "--direction", "0,0,0"]) == 2
    for bad in ("1,2", "a,b,c", "nan,0,0", "1e13,0,0"):
        with pytest.raises(SystemExit):
            main(["raycast", str(path), f"--origin={bad}"])


def stopped(parts, start=(2, 0.1, 0.05), towards=(30, 0.1, 0), **more):
    mesh = pycct.Mesh(*joined(*parts))
    return walk(mesh, start, towards, **more)


def test_walk_says_why_it_stopped():
    free = stopped([street()])
    assert free.arrived and free.reason.startswith("arrived") and abs(free.path[-1][0] - 30) < 0.2
    wall = stopped([street(), box((10, -2, 0), (11, 2, 4))])
    assert not wall.arrived and "wall" in wall.reason and abs(wall.path[-1][0] - 9.6) < 0.1
    step = stopped([street(), box((10, -2, 0), (14, 2, 1.2))])
    assert "step" in step.reason and "1.20 m" in step.reason and "offset is 0.5" in step.reason
    low = stopped([street(), box((10, -2, 0), (14, 2, 0.3))])
    assert low.arrived
    ramp = np.array([[10, -2, 0], [14, -2, 7], [14, 2, 7], [10, 2, 0]], float), [[0, 1, 2], [0, 2, 3]]
    slope = stopped([street(), ramp])
    assert "slope" in slope.reason and "60.3" in slope.reason
    lintel = stopped([street(), box((10, -2, 1.2), (11, 2, 5))])
    assert "stopped" in lintel.reason and not lintel.arrived
    v, t = street()
    end = stopped([(v, t)], towards=(60, 0.1, 0), seconds=30)
    assert "ground ends" in end.reason and abs(end.path[-1][2]) > 5
    short = stopped([(v, t)], towards=(40.8, 0.1, 0))
    assert not short.arrived and "ground ends" in short.reason
    nowhere = stopped([street()], start=(-20, 0, 1))
    assert "no ground below" in nowhere.reason
    inside = stopped([street()], start=(2, 0.1, -0.3))
    assert inside.reason.startswith("cannot start") and "0.3" in inside.reason and len(inside.path) == 1
    slow = stopped([street()], seconds=1.0)
    assert "gave up" in slow.reason


@pytest.mark.parametrize("rules", ["physx", "document", "robust"])
def test_walk_command(rules, tmp_path, capsys):
    try:
        pycct.CharacterController(pycct.Scene(), position=(0, 0, 0), rules=rules)
    except ValueError:
        pytest.skip(f"no rule set {rules}")
    path = write(tmp_path / "level.stl", *joined(street(), box((10, -2, 0), (11, 2, 4))))
    plot = tmp_path / "way.png"
    more = ["--plot", str(plot)] if rules == "physx" else []
    if more:
        pytest.importorskip("matplotlib")
    code = main(["walk", str(path), "--start", "2,0,0.1", "--towards", "-1,0,0", "--rules", rules])
    assert code in (0, 3)
    capsys.readouterr()
    assert main(["walk", str(path), "--start", "2,0,0.1", "--towards", "30,0,0", "--rules", rules, *more]) == 3
    assert "stopped by a wall" in capsys.readouterr().out
    assert main(["walk", str(path), "--start", "2,0,0.1", "--towards", "6,0,0"]) == 0
    if more:
        assert plot.read_bytes()[:4] == b"\x89PNG"
        assert main(["walk", str(path), "--start", "2,0,0", "--towards", "6,0,0", "--plot", "/nonexistent/x.png"]) == 1


def test_help_teaches(capsys):
    for command in ("info", "walk", "raycast"):
        with pytest.raises(SystemExit) as e:
            main([command, "--help"])
        assert e.value.code == 0
        out = capsys.readouterr().out
        assert f"python -m pycct {command}" in out and "--up" in out and "examples" in out


def test_without_trimesh_the_error_says_what_to_install(tmp_path):
    path = write(tmp_path / "level.ply", *street())
    code = ("import sys; sys.modules['trimesh'] = None; import pycct\n"
            f"try: pycct.load_level({str(path)!r})\n"
            "except ImportError as e: print(e)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         cwd=Path(pycct.__file__).resolve().parent.parent)
    assert "pip install pycct[levels]" in out.stdout


@pytest.mark.skipif(not LEVELS.exists(), reason="third-party levels are not part of the repository")
@pytest.mark.parametrize(("name", "triangles"), [("dungeon", 10133), ("nav_test", 1612), ("undulating", 5202)])
def test_real_levels(name, triangles, capsys):
    mesh, report = pycct.load_level(LEVELS / f"{name}.obj", up="y")
    assert report.triangles == mesh.triangle_count == triangles
    assert not any("up axis" in w for w in report.warnings)
    _, wrong = pycct.load_level(LEVELS / f"{name}.obj", up="x")
    assert any("up" in w for w in wrong.warnings)
    scene = pycct.Scene()
    scene.add(mesh)
    lo, hi = np.array(report.lower), np.array(report.upper)
    rng = np.random.default_rng(0)
    origins = np.concatenate([rng.uniform(lo[:2], hi[:2], (200, 2)), np.full((200, 1), hi[2] + 1)], 1)
    down = scene.raycast_many(origins, (0, 0, -1), 1000.0)
    assert down.hit.mean() > 0.2
    i = int(np.flatnonzero(down.hit & (down.normal[:, 2] > 0.95))[0])
    start = ",".join(str(x) for x in down.position[i] + (0, 0, 0.1))
    goal = ",".join(str(x) for x in down.position[i] + (3, 0, 0))
    assert main(["walk", str(LEVELS / f"{name}.obj"), "--up", "y", "--start", start, "--towards", goal]) in (0, 3)
    assert capsys.readouterr().out.startswith(("arrived", "stopped", "fell", "gave up", "cannot start"))
