"""glTF and pages: other readers and a real browser show what was recorded."""

import json
import math
import struct

import numpy as np
import pytest

from pycct import Box, Capsule, CharacterController, ConvexHull, Crowd, Heightfield, Plane, Scene, Sphere, Triangle
from pycct.cli.main import main
from pycct.record import replay
from pycct.view import open_page, sample, to_glb, to_html
from pycct.view.meshes import capsule, triangles_of
from pycct.view.page import still

DT = 1 / 60


def volume(triangles):
    return float(np.einsum("ij,ij->i", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() / 6)


def test_shapes_become_closed_meshes_of_their_size():
    assert volume(triangles_of(Box((1, 2, 3)))) == pytest.approx(48)
    assert 0.9 * 4 / 3 * math.pi < volume(triangles_of(Sphere(1.0))) < 4 / 3 * math.pi
    exact = math.pi * 0.4**2 * 1.0 + 4 / 3 * math.pi * 0.4**3
    assert 0.9 * exact < volume(capsule(0.4, 1.0)) < exact
    assert volume(triangles_of(ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]))) == pytest.approx(1 / 6)
    assert len(triangles_of(Heightfield(np.zeros((3, 3))))) == 8
    assert len(triangles_of(Triangle((0, 0, 0), (1, 0, 0), (0, 1, 0)))) == 1
    assert triangles_of(Plane((0, 0, 1), 2.0))[..., 2] == pytest.approx(2.0)
    assert volume(triangles_of(Capsule(0.4, 1.0))) > 0


def test_a_glb_is_read_by_others(recorded, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    recording = replay(recorded)
    tracks = sample(recording)
    to_glb(tracks, tmp_path / "a.glb")
    data = (tmp_path / "a.glb").read_bytes()
    magic, version, size, length, kind = struct.unpack("<4sIII4s", data[:20])
    assert (magic, version, size, kind) == (b"glTF", 2, len(data), b"JSON")
    document = json.loads(data[20 : 20 + length])
    assert len(document["animations"][0]["channels"]) == 3 + 2 + 2
    assert document["animations"][0]["samplers"][-1]["input"] == 0
    binary = data[28 + length :]
    names = [node["name"] for node in document["nodes"]]
    late = names.index(f"character {tracks.ids[-1]}")
    assert [c["target"]["path"] for c in document["animations"][0]["channels"] if c["target"]["node"] == late] == [
        "translation", "scale"]
    first = names.index(f"character {tracks.ids[0]}")
    channel = next(c for c in document["animations"][0]["channels"] if c["target"]["node"] == first)
    output = document["accessors"][document["animations"][0]["samplers"][channel["sampler"]]["output"]]
    seen = document["bufferViews"][output["bufferView"]]
    walked = np.frombuffer(binary, "<f4", 3 * output["count"], seen["byteOffset"]).reshape(-1, 3)
    assert np.array_equal(walked, tracks.positions[:, 0].astype("f4"))
    scene = trimesh.load(tmp_path / "a.glb")
    low, high = scene.bounds
    assert high == pytest.approx((9, 2.01, 9)) and low == pytest.approx((-9, 0, -9), abs=0.2)


def test_commands_write_pages(recorded, tmp_path, capsys):
    assert main(["replay", str(recorded), "--glb", str(tmp_path / "b.glb"), "--html", str(tmp_path / "b.html")]) == 0
    assert main(["view", str(recorded), "--out", str(tmp_path / "c.html")]) == 0
    (tmp_path / "level.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert main(["view", str(tmp_path / "level.obj"), "--out", str(tmp_path / "d.html")]) == 0
    for name in ("b", "c", "d"):
        text = (tmp_path / f"{name}.html").read_text()
        assert text.startswith("<!DOCTYPE html>") and "/*DATA*/null" not in text
        assert "http" not in text
    assert main(["view", str(tmp_path / "none.scene")]) == 1
    capsys.readouterr()


def test_a_title_cannot_leave_the_script(recorded, tmp_path):
    to_html(replay(recorded), tmp_path / "a.html", title="</script><script>alert(1)</script>")
    assert (tmp_path / "a.html").read_text().count("</script>") == 1


def test_a_page_of_a_scene_shows_it_as_it_is(tmp_path):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add_obstacle(Box((1, 1, 1)), (5, 5, 1))
    characters = [CharacterController(scene, position=(3, 0, 0.91)), Crowd(scene, [(0, 0, 0.91)])]
    to_html(scene, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert '"ticks":1' in text
    tracks = still(scene)
    assert tracks.ids.tolist() == [characters[1].ids[0], characters[0].id]
    assert tracks.positions.tolist() == [[[0, 0, 0.91], [3, 0, 0.91]]]
    assert [m.positions.tolist() for m in tracks.movers] == [[[5, 5, 1]]]


def test_open_page_opens_a_file(recorded, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = open_page(replay(recorded))
    assert opened == [page.as_uri()]
    page.unlink()


def test_a_page_works_in_a_browser(recorded, tmp_path, browser):
    to_html(replay(recorded), tmp_path / "a.html")
    page = browser.new_page(viewport={"width": 480, "height": 320})
    problems = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.goto((tmp_path / "a.html").as_uri())
    page.wait_for_function("document.getElementById('tick').textContent !== ''")
    assert not problems
    colours = page.evaluate("""() => { const c = document.getElementById('view'), gl = c.getContext('webgl2');
        const p = new Uint8Array(4 * c.width * c.height);
        gl.readPixels(0, 0, c.width, c.height, gl.RGBA, gl.UNSIGNED_BYTE, p);
        return new Set(new Uint32Array(p.buffer)).size; }""")
    assert colours > 10
    picture = page.screenshot()
    page.fill("#time", "29")
    page.wait_for_function("document.getElementById('tick').textContent === 'tick 29 of 30'")
    assert page.screenshot() != picture
    page.click("#step")
    page.wait_for_function("document.getElementById('tick').textContent === 'tick 30 of 30'")
    page.click("#play")
    page.wait_for_function("document.getElementById('tick').textContent === 'tick 30 of 30' && "
                           "document.getElementById('play').textContent === 'Play'")
    where = page.evaluate("""() => { const m = camera(), p = places.subarray(3 * 30 * n, 3 * 30 * n + 3);
        const o = [0, 1, 3].map(r => m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r]);
        return [(o[0] / o[2] + 1) / 2 * canvas.clientWidth, (1 - o[1] / o[2]) / 2 * canvas.clientHeight]; }""")
    page.mouse.click(*where)
    page.wait_for_function("document.getElementById('info').textContent.startsWith('character')")
    assert not problems
    page.close()
