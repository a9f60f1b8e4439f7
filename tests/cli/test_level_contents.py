"""Contents of level files: accessors, primitives, nodes, materials, instances, grids."""

import base64
import json
import re
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pycct
from pycct.__main__ import main
from pycct.levels import report_on
from pycct.levels.raw import decomposed

CORNERS = np.array([(0, 0, 0), (4, 0, 0), (0, 0, -4)], "<f4")
FLOATS = {"componentType": 5126, "type": "VEC3"}
COMPONENT = {"i1": 5120, "u1": 5121, "i2": 5122, "u2": 5123, "u4": 5125, "f4": 5126}
TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


class Gltf:
    """A glTF that is put together; arrays become buffer views and accessors."""

    def __init__(self):
        self.blob = b""
        self.tree = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
                     "meshes": [{"primitives": []}], "accessors": [], "bufferViews": []}

    def view(self, data, **more):
        data = bytes(data)
        self.blob += bytes(-len(self.blob) % 4)
        self.tree["bufferViews"].append({"buffer": 0, "byteOffset": len(self.blob), "byteLength": len(data), **more})
        self.blob += data
        return len(self.tree["bufferViews"]) - 1

    def accessor(self, array, **more):
        array = np.asarray(array)
        array = array.reshape(len(array), -1)
        self.tree["accessors"].append({
            "bufferView": self.view(array.tobytes()), "componentType": COMPONENT[array.dtype.str[1:]],
            "count": len(array), "type": TYPES[array.shape[1]], **more})
        return len(self.tree["accessors"]) - 1

    def primitive(self, position=None, mesh=0, **more):
        position = self.accessor(CORNERS) if position is None else position
        self.tree["meshes"][mesh]["primitives"].append({"attributes": {"POSITION": position}, **more})

    def save(self, path):
        blob = self.blob + bytes(-len(self.blob) % 4)
        tree = {**self.tree, "buffers": [{"byteLength": len(blob)}]}
        if path.suffix == ".gltf":
            tree["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(blob).decode()
            path.write_text(json.dumps(tree))
        else:
            text = json.dumps(tree).encode()
            text += b" " * (-len(text) % 4)
            body = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
            path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
        return path


def file_corners(mesh):
    """The corners of each triangle in glTF's axes."""
    v = np.asarray(mesh.vertices)
    return np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1)[mesh.triangles]


@pytest.fixture(params=["gltf", "glb"])
def path(request, tmp_path):
    return tmp_path / f"level.{request.param}"


# --- accessors and primitives -------------------------------------------------------------------

def test_sparse_accessors(path):
    g = Gltf()
    at, values = g.view(np.array([2], "<u2")), g.view(np.array([(0, 2, -4)], "<f4"))
    sparse = {"count": 1, "indices": {"bufferView": at, "componentType": 5123}, "values": {"bufferView": values}}
    g.primitive(g.accessor(CORNERS, sparse=sparse))
    # Without a buffer view it begins with zeros.
    at = g.view(np.array([1, 2], "<u1"))
    sparse = {"count": 2, "indices": {"bufferView": at, "componentType": 5121},
              "values": {"bufferView": g.view(CORNERS[1:])}}
    g.tree["accessors"].append({**FLOATS, "count": 3, "sparse": sparse})
    g.primitive(1)
    mesh, _ = pycct.load_level(g.save(path))
    assert file_corners(mesh).tolist() == [[[0, 0, 0], [4, 0, 0], [0, 2, -4]], CORNERS.tolist()]
    sparse["count"] = 4
    with pytest.raises(ValueError, match="sparse"):
        pycct.load_level(g.save(path))
    sparse["count"] = 2
    at = g.tree["bufferViews"][sparse["indices"]["bufferView"]]["byteOffset"]
    g.blob = g.blob[:at] + b"\3" + g.blob[at + 1:]
    with pytest.raises(ValueError, match="sparse"):
        pycct.load_level(g.save(path))


@pytest.mark.parametrize(("kind", "one"), [("i1", 127), ("u1", 255), ("i2", 32767), ("u2", 65535)])
def test_normalized_accessors(path, kind, one):
    g = Gltf()
    g.tree["extensionsRequired"] = ["KHR_mesh_quantization"]
    signed = kind[0] == "i"
    values = np.array([(0, 0, 0, 0), (one, 0, 0, 0), (0, 0, -one - 1 if signed else one, 0)], "<" + kind)
    view = g.view(values.tobytes(), byteStride=values.itemsize * 4)
    g.tree["accessors"].append({"bufferView": view, "componentType": COMPONENT[kind], "count": 3, "type": "VEC3",
                                "normalized": True})
    g.primitive(0)
    mesh, _ = pycct.load_level(g.save(path))
    assert file_corners(mesh).tolist() == [[[0, 0, 0], [1, 0, 0], [0, 0, -1 if signed else 1]]]
    # Without `normalized` the whole numbers are metres.
    g.tree["accessors"][0]["normalized"] = False
    mesh, _ = pycct.load_level(g.save(path))
    assert file_corners(mesh)[0, 1].tolist() == [one, 0, 0]


def test_lists_strips_and_fans(path):
    g = Gltf()
    v = np.array([(0, 0, 0), (1, 0, 0), (0, 0, -1), (1, 0, -1), (0, 0, -2)], "<f4")
    position = g.accessor(v)
    g.primitive(position, mode=5)
    fan = g.accessor(np.array([0, 1, 3, 2], "<u1"))
    g.primitive(position, mode=6, indices=fan)
    g.primitive(position, mode=1)                            # lines and points are no level
    g.primitive(position, mode=0)
    g.primitive(position, mode=4, indices=g.accessor(np.array([2, 3, 4], "<u4")))
    mesh, report = pycct.load_level(g.save(path))
    want = v[[(0, 1, 2), (1, 3, 2), (2, 3, 4), (1, 3, 0), (3, 2, 0), (2, 3, 4)]]
    assert file_corners(mesh).tolist() == want.tolist()
    assert report.duplicate == 1
    g.primitive(position, mode=7)
    with pytest.raises(ValueError, match="mode 7"):
        pycct.load_level(g.save(path))
    del g.tree["meshes"][0]["primitives"][:]
    g.primitive(position, mode=4, indices=fan)
    with pytest.raises(ValueError, match="4 corners"):
        pycct.load_level(g.save(path))


@pytest.mark.parametrize(("change", "words"), [
    ({"count": 6}, "beyond"),
    ({"count": 90_000_000}, "beyond"),
    ({"count": 0}, "count"),
    ({"count": -1}, "count"),
    ({"count": 2**70}, "max_bytes"),
    ({"count": True}, "count"),
    ({"count": 3.5}, "count"),
    ({"byteOffset": -4}, "byteOffset"),
    ({"byteOffset": 4}, "beyond"),
    ({"componentType": 5124}, "componentType"),
    ({"componentType": [5126]}, "componentType"),
    ({"type": "VEC2"}, "POSITION"),
    ({"type": ["VEC3"]}, "POSITION"),
    ({"bufferView": 9}, "bufferViews"),
    ({"bufferView": None}, "bufferViews"),
])
def test_accessors_that_make_no_sense(path, change, words):
    g = Gltf()
    g.primitive(g.accessor(CORNERS, **change))
    with pytest.raises(ValueError, match=f"level.*{words}"):
        pycct.load_level(g.save(path))


@pytest.mark.parametrize("stride", [-12, 4, 2**40, float("inf")])
def test_strides_that_make_no_sense(path, stride):
    g = Gltf()
    g.primitive()
    g.tree["bufferViews"][0]["byteStride"] = stride
    with pytest.raises(ValueError, match=r"byteStride|beyond"):
        pycct.load_level(g.save(path))


def test_corners_that_are_no_numbers(path):
    for value in (np.nan, np.inf):
        g = Gltf()
        corners = CORNERS.copy()
        corners[1, 1] = value
        g.primitive(g.accessor(corners))
        with pytest.raises(ValueError, match="not finite"):
            pycct.load_level(g.save(path))
        g = Gltf()
        g.primitive()
        for key, vector in (("translation", [0, value, 0]), ("scale", [1, 1, value]), ("matrix", [value] * 16),
                            ("translation", [0, 10**400, 0])):
            g.tree["nodes"] = [{"mesh": 0, key: vector}]
            with pytest.raises(ValueError, match="not finite"):
                pycct.load_level(g.save(path))
            with pytest.raises(ValueError, match="not finite"):
                pycct.levels.load_scene(path)
    # Products that grow beyond all numbers.
    g.tree["nodes"] = [{"mesh": 0, "children": [1], "scale": [1e200] * 3}, {"mesh": 0, "scale": [1e200] * 3}]
    with pytest.raises(ValueError, match="finite"):
        pycct.load_level(g.save(path))


# --- extensions ---------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "words"), [
    ("XY_other_geometry", "XY_other_geometry.*export"),
    ("EXT_meshopt_compression", "EXT_meshopt_compression.*gltfpack"),
    ("KHR_meshopt_compression", "KHR_meshopt_compression.*gltfpack"),
    (7, "7"),
])
def test_required_extensions_that_are_not_read(path, name, words):
    g = Gltf()
    g.primitive()
    g.tree["extensionsUsed"] = g.tree["extensionsRequired"] = [name]
    with pytest.raises(ValueError, match=words):
        pycct.load_level(g.save(path))
    # Used, but not required: the file says the same without it.
    del g.tree["extensionsRequired"]
    assert pycct.load_level(g.save(path))
    # Looks only.
    g.tree["extensionsRequired"] = ["KHR_materials_unlit", "KHR_texture_transform"]
    assert pycct.load_level(g.save(path))


def test_meshopt_without_plain_bytes(tmp_path):
    g = Gltf()
    g.primitive()
    path = g.save(tmp_path / "a.gltf")
    tree = json.loads(path.read_text())
    del tree["buffers"][0]["uri"]
    tree["bufferViews"][0]["extensions"] = {"EXT_meshopt_compression": {"buffer": 0}}
    path.write_text(json.dumps(tree))
    with pytest.raises(ValueError, match=r"EXT_meshopt_compression.*gltfpack"):
        pycct.load_level(path)


def draco(data, vertices, triangles):
    g = Gltf()
    g.tree["extensionsRequired"] = ["KHR_draco_mesh_compression"]
    view = g.view(data)
    g.tree["accessors"] = [{**FLOATS, "count": vertices},
                           {"componentType": 5125, "count": 3 * triangles, "type": "SCALAR"}]
    g.primitive(0, indices=1, extensions={
        "KHR_draco_mesh_compression": {"bufferView": view, "attributes": {"POSITION": 0}}})
    return g


@pytest.mark.parametrize("in_order", [True, False])
def test_draco(path, in_order):
    DracoPy = pytest.importorskip("DracoPy")
    v = np.array([(x, (x * y) % 3, -y) for x in range(9) for y in range(9)], float)
    t = [f for i in range(8) for j in range(8) for a in [9 * i + j] for f in [(a, a + 9, a + 10), (a, a + 10, a + 1)]]
    data = DracoPy.encode(v, np.array(t), preserve_order=in_order, quantization_bits=16)
    g = draco(data, len(v), len(t))
    mesh, report = pycct.load_level(g.save(path))
    assert report.triangles == len(t) and report.flipped == 0
    got = file_corners(mesh)
    if in_order:
        assert np.abs(got - v[t]).max() < 1e-3

    def rows(corners):
        return sorted(min(tuple(map(tuple, np.roll(c, k, 0))) for k in range(3)) for c in corners.round(2).tolist())

    assert np.abs(np.array(rows(got)) - rows(v[t])).max() < 0.011
    # Data that hold more than their accessors say, and data that end early.
    for counts in ((len(v) - 1, len(t)), (len(v), len(t) - 1)):
        with pytest.raises(ValueError, match="KHR_draco_mesh_compression"):
            pycct.load_level(draco(data, *counts).save(path))
    for end in (0, 4, 11, 14, 30, len(data) // 2):
        with pytest.raises(ValueError, match=r"KHR_draco_mesh_compression|byteLength"):
            pycct.load_level(draco(data[:end], len(v), len(t)).save(path))
    # A count that takes far more memory than there is.
    huge = data[:11 if in_order else 12] + b"\xff\xff\xff\xff\x07\xff\xff\xff\xff\x07" + data[13 if in_order else 14:]
    for counts in ((len(v), len(t)), (2**31 - 1, 2**31 - 1)):
        with pytest.raises(ValueError, match=r"KHR_draco_mesh_compression|max_bytes"):
            pycct.load_level(draco(huge, *counts).save(path))


def test_draco_without_its_package_is_refused_by_name(tmp_path):
    path = draco(b"DRACO\2\2\1\1\0\0\0" + bytes(20), 3, 1).save(tmp_path / "a.glb")
    code = ("import sys; sys.modules['DracoPy'] = None; import pycct\n"
            f"try: pycct.load_level({str(path)!r})\n"
            "except ValueError as e: print(e)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         cwd=Path(pycct.__file__).resolve().parent.parent)
    assert "KHR_draco_mesh_compression" in out.stdout and "pip install pycct[draco]" in out.stdout
    assert "gltf-transform" in out.stdout


def test_instances(path):
    g = Gltf()
    g.tree["extensionsRequired"] = ["EXT_mesh_gpu_instancing"]
    g.primitive()
    place = {"TRANSLATION": g.accessor(np.array([(0, 0, 0), (10, 0, 0)], "<f4")),
             "ROTATION": g.accessor(np.array([(0, 0, 0, 127), (0, 127, 0, 0)], "<i1"), normalized=True),
             "SCALE": g.accessor(np.array([(1, 1, 1), (2, 1, 1)], "<f4")), "_ID": 99}
    g.tree["nodes"] = [{"mesh": 0, "name": "tree", "translation": [0, 3, 0],
                        "extensions": {"EXT_mesh_gpu_instancing": {"attributes": place}}}]
    mesh, report = pycct.load_level(g.save(path))
    # The second one is turned around by half a turn and twice as long.
    want = [[[0, 3, 0], [4, 3, 0], [0, 3, -4]], [[10, 3, 0], [2, 3, 0], [10, 3, 4]]]
    assert np.abs(file_corners(mesh) - want).max() < 1e-12
    assert report.nodes == ("tree",) and report.triangle_node.tolist() == [0, 0]
    scene = pycct.load_scene(path)
    one, two = scene.actors
    assert one.shape is two.shape and [a.user_data["instance"] for a in scene.actors] == [0, 1]
    assert two.position == (10, 0, 3) and two.user_data["name"] == "tree"
    del place["SCALE"]
    place["TRANSLATION"] = g.accessor(np.zeros((3, 3), "<f4"))
    with pytest.raises(ValueError, match="EXT_mesh_gpu_instancing"):
        pycct.load_level(g.save(path))


# --- nodes --------------------------------------------------------------------------------------

def test_the_default_scene_is_read(path):
    g = Gltf()
    g.primitive()
    g.tree["nodes"] = [{"mesh": 0}, {"mesh": 0, "translation": [100, 0, 0]}]
    g.tree["scenes"] = [{"nodes": [0]}, {"nodes": [1]}]
    for scene, x in ((0, 4), (1, 104)):
        g.tree["scene"] = scene
        _, report = pycct.load_level(g.save(path))
        assert report.triangles == 1 and report.upper[0] == x
        assert "2 scenes" in report.warnings[0]
    del g.tree["scene"]
    assert pycct.load_level(g.save(path))[1].upper[0] == 4
    # Without scenes: all nodes that are nobody's children, and theirs.
    del g.tree["scenes"]
    assert pycct.load_level(g.save(path))[1].triangles == 2
    g.tree["scenes"], g.tree["scene"] = [{"nodes": [0]}], 3
    with pytest.raises(ValueError, match="scenes"):
        pycct.load_level(g.save(path))


@pytest.mark.parametrize(("nodes", "roots"), [
    ([{"mesh": 0, "children": [0]}], [0]),
    ([{"mesh": 0, "children": [1]}, {"mesh": 0, "children": [0]}], [0]),
    ([{"mesh": 0, "children": [2]}, {"mesh": 0, "children": [2]}, {"mesh": 0}], [0, 1]),
    ([{"mesh": 0, "children": [1, 1]}, {"mesh": 0}], [0]),
    ([{"mesh": 0}], [0, 0]),
])
def test_circles_of_nodes(path, nodes, roots):
    g = Gltf()
    g.primitive()
    g.tree["nodes"], g.tree["scenes"] = nodes, [{"nodes": roots}]
    with pytest.raises(ValueError, match="circle"):
        pycct.load_level(g.save(path))
    with pytest.raises(ValueError, match="circle"):
        pycct.load_scene(path)


def test_deep_trees_of_nodes(path):
    g = Gltf()
    g.primitive()
    n = 20_000
    g.tree["nodes"] = [{"children": [k + 1], "translation": [0, 1, 0], "name": "n" * 20} for k in range(n)]
    g.tree["nodes"].append({"mesh": 0})
    _, report = pycct.load_level(g.save(path), nodes="n*")
    assert report.upper[2] == n
    # JSON itself nested as deeply.
    path.with_suffix(".gltf").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="cannot be read"):
        pycct.load_level(path.with_suffix(".gltf"))


def several(g):
    """Three nodes in another order than they hang together."""
    g.primitive()
    g.tree["nodes"] = [
        {"mesh": 0, "name": "floor-col", "translation": [0, 2, 0]},
        {"mesh": 0, "name": "UCX_wall", "extras": {"kind": "wall", "tags": [1, "a"]}, "translation": [0, 1, 0]},
        {"name": "group", "children": [0], "translation": [10, 0, 0]},
        {"mesh": 0, "translation": [0, 3, 0], "name": "a[1]"},
    ]
    g.tree["scenes"] = [{"nodes": [3, 2, 1]}]
    return g


def test_triangles_keep_the_order_of_the_file(path):
    mesh, report = pycct.load_level(several(Gltf()).save(path))
    assert report.nodes == ("floor-col", "UCX_wall", "a[1]")
    assert report.triangle_node.tolist() == [0, 1, 2] and report.triangle_node.dtype == np.int32
    assert file_corners(mesh)[:, 0, :2].tolist() == [[10, 2], [0, 1], [0, 3]]


@pytest.mark.parametrize(("pattern", "found"), [
    ("*-col", [10]), ("UCX_*", [0]), (["*-col", "UCX_*"], [10, 0]), ("group", [10]), ("a[1]", [0]), ("*", [10, 0, 0]),
    (("floor-col",), [10]),
])
def test_patterns_of_nodes(path, pattern, found):
    several(Gltf()).save(path)
    mesh, report = pycct.load_level(path, nodes=pattern)
    assert file_corners(mesh)[:, 0, 0].tolist() == found and len(report.nodes) == len(found)
    assert len(pycct.load_scene(path, nodes=pattern)) == len(found)


def test_patterns_that_make_no_sense(path):
    several(Gltf()).save(path)
    for load in (pycct.load_level, pycct.load_scene):
        with pytest.raises(ValueError, match=r"nodes='ucx_.*floor-col"):
            load(path, nodes="ucx_*")
        for value, error in ((3, TypeError), ([3], TypeError), ([], ValueError), (b"a", TypeError)):
            with pytest.raises(error, match="nodes"):
                load(path, nodes=value)


def test_a_scene_of_nodes(path, tmp_path):
    g = several(Gltf())
    turn = [0, np.sqrt(0.5), 0, np.sqrt(0.5)]
    g.tree["nodes"] += [{"mesh": 0, "scale": [-2, 1, 3], "rotation": turn, "translation": [1, 2, 3]},
                        {"children": [6], "scale": [1, 1, 3], "rotation": [0, 0.1, 0, 1]},
                        {"mesh": 0, "rotation": turn, "name": "sheared"}]
    g.tree["nodes"][6]["rotation"] = [0, 0.3, 0, 1]
    g.tree["scenes"][0]["nodes"] += [4, 5]
    for options in ({}, {"up": "-x", "scale": 0.5}):
        mesh, report = pycct.load_level(g.save(path), **options)
        scene = pycct.load_scene(path, **options)
        assert [a.user_data["name"] for a in scene.actors] == [*report.nodes]
        assert [a.user_data["node"] for a in scene.actors] == [0, 1, 3, 4, 6]
        assert scene.actors[1].user_data["extras"] == {"kind": "wall", "tags": [1, "a"]}
        assert scene.actors[0].user_data["extras"] is None and scene.actors[0].body == "static"
        # All but the sheared one share a mesh.
        assert len({id(a.shape) for a in scene.actors}) == 2
        # A ray from above and below meets the same in both.
        whole = pycct.Scene()
        whole.add(mesh)
        rng = np.random.default_rng(0)
        lower, upper = np.array(report.lower) - 1, np.array(report.upper) + 1
        origins = rng.uniform(lower, upper, (2000, 3))
        directions = rng.normal(size=(2000, 3))
        a, b = whole.raycast_many(origins, directions, 99.0), scene.raycast_many(origins, directions, 99.0)
        assert (a.hit == b.hit).all() and a.hit.sum() > 50
        assert np.abs(a.position[a.hit] - b.position[a.hit]).max() < 1e-9
        assert np.abs(a.normal[a.hit] - b.normal[a.hit]).max() < 1e-9
    # user_data survives saving.
    scene.save(tmp_path / "cooked")
    again = pycct.Scene.load(tmp_path / "cooked")
    assert [a.user_data for a in again.actors] == [a.user_data for a in scene.actors]


def test_matrices_come_apart_and_together():
    rng = np.random.default_rng(0)
    for k in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        scale = rng.uniform(0.1, 9, 3) * rng.choice([-1, 1], 3)
        matrix = np.eye(4)
        matrix[:3, :3] = turn * scale
        if k < 10:
            matrix[:3, :3] = [np.diag(s) for s in ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1), (-1, 1, 1),
                                                   (1, 1, -1), (-1, -1, -1), (2, 2, 2), (1, -1, 1), (3, 1, 2))][k]
        _, (x, y, z, w), s = decomposed(matrix)
        back = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                         [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                         [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]) * s
        assert np.abs(back - matrix[:3, :3]).max() < 1e-12
    sheared = np.eye(4)
    sheared[0, 1] = 0.5
    flat = np.diag([1.0, 0, 1, 1])
    assert decomposed(sheared) is None and decomposed(flat) is None and decomposed(np.zeros((4, 4))) is None


def test_flat_nodes_hold_triangles_without_area(path):
    g = Gltf()
    g.primitive()
    g.tree["nodes"] = [{"mesh": 0, "scale": [1, 1, 0]}]
    assert pycct.load_level(g.save(path))[1].degenerate == 1
    assert pycct.load_scene(path).triangle_count == 1


# --- materials ----------------------------------------------------------------------------------

def test_materials_of_gltf(path):
    g = Gltf()
    position = g.accessor(CORNERS)
    g.tree["materials"] = [{"name": "brick"}, {}, {"name": "wood"}]
    g.primitive(position, material=2)
    g.primitive(position, material=0)
    mesh, report = pycct.load_level(g.save(path))
    assert report.materials == ("brick", "material 1", "wood") and mesh.triangle_data.tolist() == [2, 0]
    assert pycct.load_scene(path).actors[0].user_data["materials"] == ["brick", "wood"]
    assert pycct.load_scene(path).actors[0].shape.triangle_data.tolist() == [1, 0]
    g.primitive(position)
    mesh, report = pycct.load_level(g.save(path))
    assert report.materials[-1] == "" and mesh.triangle_data.tolist() == [2, 0, 3]
    g.tree["meshes"][0]["primitives"][0]["material"] = 3
    with pytest.raises(ValueError, match="materials"):
        pycct.load_level(g.save(path))
    del g.tree["materials"], g.tree["meshes"][0]["primitives"][:2]
    mesh, report = pycct.load_level(g.save(path))
    assert report.materials == () and mesh.triangle_data is None


def test_double_sided_materials(path):
    g = Gltf()
    g.tree["materials"] = [{"doubleSided": True}, {"name": "front"}]
    g.primitive(material=0)
    g.save(path)
    assert pycct.load_level(path)[0].two_sided and pycct.load_scene(path).actors[0].shape.two_sided
    assert not pycct.load_level(path, two_sided=False)[0].two_sided
    # With other triangles beside them, only those are met from both sides.
    far = CORNERS + np.array([10, 0, 0], "<f4")
    g.primitive(g.accessor(far), material=1)
    mesh, report = pycct.load_level(g.save(path))
    assert not mesh.two_sided and mesh.triangle_count == report.triangles == 3
    assert mesh.triangle_data.tolist() == [0, 1, 0] and report.triangle_node.tolist() == [0, 0, 0]
    assert (report.duplicate, report.flipped) == (0, 0)
    whole = pycct.Scene()
    whole.add(mesh)
    for scene in (whole, pycct.load_scene(path)):
        for x, z, found in ((1, 5, True), (1, -5, True), (11, 5, True), (11, -5, False)):
            hit = scene.raycast((x, 1, z), (0, 0, -np.sign(z)), 9)
            assert (hit is not None) == found
            assert hit is None or hit.normal == (0, 0, np.sign(z))
    assert pycct.load_level(path, two_sided=True)[0].triangle_count == 2


def test_materials_and_nodes_of_obj(tmp_path):
    path = tmp_path / "level.obj"
    path.write_text("v 0 0 0\nv 4 0 0\nv 0 4 0\nv 4 4 0\nf 1 2 3\no hall\nusemtl brick\nf 2 4 3\ng roof\n"
                    "usemtl wood\nf 1 2 3\nf 2 4 3\no hall\nusemtl brick\nf 1 2 3\no none\ng UCX_a\nf 1 2 4 3\n")
    mesh, report = pycct.load_level(path)
    assert report.nodes == ("level", "hall", "hall/roof", "none/UCX_a")
    assert report.triangle_node.tolist() == [0, 1, 2, 2, 1, 3, 3]
    assert report.materials == ("brick", "wood", "") and mesh.triangle_data.tolist() == [2, 0, 1, 1, 0, 0, 0]
    for pattern, n in (("hall", 4), ("roof", 2), ("hall/roof", 2), ("UCX_*", 2), ("level", 1), ("*", 7)):
        assert pycct.load_level(path, nodes=pattern)[0].triangle_count == n
    scene = pycct.load_scene(path)
    assert [a.user_data["name"] for a in scene.actors] == list(report.nodes)
    assert [a.shape.triangle_count for a in scene.actors] == [1, 2, 2, 2]
    assert [len(a.shape.vertices) for a in scene.actors] == [3, 4, 4, 4]
    assert scene.actors[0].user_data["materials"] == [""]


# --- OBJ ----------------------------------------------------------------------------------------

def test_obj_as_it_is_found(tmp_path, monkeypatch):
    """Comments, tabs, ends of lines, weights, colours, all kinds of indices, any block length."""
    path = tmp_path / "level.obj"
    text = ("\ufeff# f 1 2 3\n  v 0 0 0 # corner\nv\t4 0 0 1.0\nv 4 4 0 .1 .2 .3\nv 0 4e0 0\n\n"
            "vt 0 0\nvn 0 0 1\nf 1/1/1 2/1/1\t3/1/1\nf -4//-1 -2//1 -1//-1 # f 9\no a # b\nf +1 2 \\\n 3 4\nv 9 9 9 \n"
            "v 10 9 9\nl 1 2\np 1\nf 1 2\nf -1 -2 1\nusemtl\nf 1 2 3")
    want = [(0, 1, 2), (0, 2, 3), (0, 1, 2), (0, 2, 3), (5, 4, 0), (0, 1, 2)]
    v = [(0, 0, 0), (4, 0, 0), (4, 4, 0), (0, 4, 0), (9, 9, 9), (10, 9, 9)]
    for end in ("\n", "\r\n", "\r"):
        path.write_text(text, encoding="utf-8", newline=end)
        for block in (1, 7, 50, 1 << 20):
            monkeypatch.setattr("pycct.levels.obj.BLOCK", block)
            mesh, report = pycct.load_level(path)
            assert mesh.triangles.tolist() == [list(f) for f in want], (end, block)
            assert np.array_equal(mesh.vertices, v)
            assert report.nodes == ("level", "a # b")


def test_obj_numbers_are_the_nearest_ones(tmp_path):
    rng = np.random.default_rng(0)
    v = rng.normal(size=(300, 3)) * 10.0 ** rng.integers(-20, 6, (300, 1))
    path = tmp_path / "a.obj"
    path.write_text("".join("v {!r} {!r} {!r}\n".format(*row) for row in v.tolist()) + "f 1 2 3\n")
    assert np.array_equal(pycct.load_level(path)[0].vertices, v)


@pytest.mark.parametrize("face", ["f 0 1 2", "f 1 2 9", "f -9 1 2", "f 1 2 99999999999999999999", "f 1 2 x",
                                  "f 1 2 3.5", "f 1 2 --3", "f / 2 3", "f 1 2 3\nv 1 2", "f 1 2 3\nv 1 2 x",
                                  "f 1 2 3\nv 1-2 3 4", "f 1 2 3\nv 1 2 3\nv 1-2 3 4\nv 1 x 3", "f 1 2 3\nv nan 1 1",
                                  "f 1 2 3\nv 1 1 1e999", "f 1 2 3\nv" + " 1" * 9, "f 1 2 -", "f 1 2 4294967297"])
def test_broken_obj(tmp_path, face):
    path = tmp_path / "broken.obj"
    path.write_text(f"v 0 0 0\nv 4 0 0\nv 0 4 0\n{face}\n")
    with pytest.raises(ValueError, match=r"broken\.obj"):
        pycct.load_level(path)
    with pytest.raises(ValueError, match=r"broken\.obj"):
        pycct.load_scene(path)


def test_names_in_latin_1(tmp_path):
    path = tmp_path / "level.obj"
    text = "o Stra\xdfe\nusemtl Gr\xfcn\nv 0 0 0\nv 4 0 0\nv 0 4 0\nf 1 2 3\n"
    for encoding in ("latin-1", "utf-8"):
        path.write_bytes(text.encode(encoding))
        _, report = pycct.load_level(path, nodes="Stra\xdfe")
        assert report.nodes == ("Stra\xdfe",) and report.materials == ("Gr\xfcn",)
    g = Gltf()
    g.primitive()
    g.tree["nodes"][0]["name"] = "Stra\xdfe"
    path = g.save(tmp_path / "level.gltf")
    path.write_bytes(json.dumps(json.loads(path.read_text()), ensure_ascii=False).encode("latin-1"))
    assert pycct.load_level(path)[1].nodes == ("Stra\xdfe",)
    pytest.importorskip("trimesh")
    path = tmp_path / "level.ply"
    path.write_bytes("ply\nformat ascii 1.0\ncomment Stra\xdfe\nelement vertex 3\nproperty float x\nproperty float y\n"
                     "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
                     "0 0 0\n4 0 0\n0 4 0\n3 0 1 2\n".encode("latin-1"))
    assert pycct.load_level(path)[1].triangles == 1
    path = tmp_path / "level.stl"
    path.write_bytes("solid Stra\xdfe\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 4 0 0\nvertex 0 4 0\n"
                     "endloop\nendfacet\nendsolid Stra\xdfe\n".encode("latin-1"))
    assert pycct.load_level(path)[1].triangles == 1


def test_names_do_not_reach_the_terminal_as_they_are(tmp_path, capsys):
    g = Gltf()
    g.primitive()
    g.tree["nodes"][0]["name"] = "a\x1b[2J\nb\ud800"
    assert main(["info", str(g.save(tmp_path / "a.glb"))]) == 0
    assert "a?[2J?b?" in capsys.readouterr().out


# --- PLY ----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("elements", "words"), [
    ("", "point cloud"),
    ("element face 0\nproperty list uchar int vertex_indices\n", "point cloud"),
    ("element tristrips 1\nproperty list int int vertex_indices\n", "strips.*faces"),
])
def test_ply_without_faces(tmp_path, elements, words):
    pytest.importorskip("trimesh")
    path = tmp_path / "level.ply"
    path.write_text("ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
                    + elements + "end_header\n0 0 0\n4 0 0\n0 4 0\n" + ("4 0 1 2 -1\n" if "strips" in words else ""))
    with pytest.raises(ValueError, match=words):
        pycct.load_level(path)


def test_a_ply_or_stl_is_one_node(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "rock.stl"
    path.write_text("solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 4 0 0\nvertex 0 4 0\nendloop\n"
                    "endfacet\nendsolid a\n")
    assert pycct.load_level(path, nodes="ro*")[1].nodes == ("rock",)
    assert pycct.load_scene(path).actors[0].user_data["name"] == "rock"
    with pytest.raises(ValueError, match="rock"):
        pycct.load_level(path, nodes="tree")


# --- memory -------------------------------------------------------------------------------------

def peak(path, **options):
    tracemalloc.start()
    try:
        pycct.load_level(path, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_as_groups_times_vertices(tmp_path):
    """20,000 vertices and 1,200 groups once took 2 GB."""
    n, k = 20_000, 1200
    path = tmp_path / "many.obj"
    path.write_text("".join(f"v {i % 100} {i // 100} 0\n" for i in range(n))
                    + "".join(f"g g{j}\nusemtl m{j}\nf {j + 1} {j + 2} {j + 102}\n" for j in range(k)))
    size = path.stat().st_size
    assert peak(path) < 30e6
    _, report = pycct.load_level(path, max_bytes=size)       # an honest file is not refused
    assert len(report.materials) == len(report.nodes) == k
    g = Gltf()
    position = g.accessor(np.array([(i % 100, 0, -(i // 100)) for i in range(n)], "<f4"))
    index = g.accessor(np.array([[j, j + 1, j + 101] for j in range(k)], "<u4").reshape(-1))
    for j in range(k):
        g.tree["accessors"].append({**g.tree["accessors"][index], "count": 3, "byteOffset": 12 * j})
        g.primitive(position, indices=index + 1 + j)
    path = g.save(tmp_path / "many.glb")
    assert peak(path) < 30e6
    mesh, _ = pycct.load_level(path, max_bytes=path.stat().st_size)
    assert mesh.triangle_count == k and len(mesh.vertices) < 2 * k
    # As many meshes with a node each.
    g.tree["meshes"] = [{"primitives": [p]} for p in g.tree["meshes"][0]["primitives"]]
    g.tree["nodes"] = [{"mesh": j, "translation": [0, j, 0]} for j in range(k)]
    g.tree["scenes"] = [{"nodes": list(range(k))}]
    g.save(path)
    assert peak(path) < 30e6
    assert len(pycct.load_scene(path)) == k


def test_accessors_are_read_where_they_are_used(tmp_path):
    """Reading once unpacked and kept each of many accessors over the same bytes."""
    g = Gltf()
    g.accessor(np.zeros((10_000, 3), "<f4"))
    first = g.accessor(np.array([0, 1, 2], "<u1"))
    for _ in range(2000):
        g.tree["accessors"].append(g.tree["accessors"][0])
        g.primitive(len(g.tree["accessors"]) - 1, indices=first)
    path = g.save(tmp_path / "a.glb")
    assert peak(path) < 30e6
    # A corner that nobody uses is not there; one that somebody uses is.
    g = Gltf()
    corners = np.concatenate([CORNERS, np.full((9, 3), np.nan, "<f4")])
    g.primitive(g.accessor(corners), indices=g.accessor(np.array([0, 1, 2], "<u1")))
    assert len(pycct.load_level(g.save(path))[0].vertices) == 3
    g.primitive(0, indices=g.accessor(np.array([0, 1, 3], "<u1")))
    with pytest.raises(ValueError, match="finite"):
        pycct.load_level(g.save(path))
    g.primitive(0, indices=g.accessor(np.array([0, 1, 12], "<u1")))
    with pytest.raises(ValueError, match="not there"):
        pycct.load_level(g.save(path))


def test_the_last_row_of_a_matrix_may_be_rounded(path):
    g = Gltf()
    g.primitive()
    matrix = np.eye(4)
    matrix[3] += (0, 1e-7, 0, -1e-7)
    g.tree["nodes"] = [{"mesh": 0, "matrix": matrix.T.reshape(-1).tolist()}]
    assert np.array_equal(file_corners(pycct.load_level(g.save(path))[0])[0], CORNERS)
    matrix[3, 0] = 0.1
    g.tree["nodes"] = [{"mesh": 0, "matrix": matrix.T.reshape(-1).tolist()}]
    with pytest.raises(ValueError, match="affine"):
        pycct.load_level(g.save(path))


def test_too_much_is_refused_before_it_is_unpacked(tmp_path):
    """A mesh of 50,000 triangles, repeated 3,000 times."""
    g = Gltf()
    x, z = np.meshgrid(np.arange(159.0), np.arange(159.0))
    position = g.accessor(np.stack([x, 0 * x, z], -1).reshape(-1, 3).astype("<f4"))
    a = (np.arange(158)[:, None] * 159 + np.arange(158)).reshape(-1)
    index = np.stack([a, a + 159, a + 160, a, a + 160, a + 1], 1).astype("<u2").reshape(-1)
    g.primitive(position, indices=g.accessor(index))
    g.tree["nodes"] = [{"mesh": 0} for _ in range(3000)]
    g.tree["scenes"] = [{"nodes": list(range(3000))}]
    path = g.save(tmp_path / "forest.glb")
    tracemalloc.start()
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_level(path, max_bytes=2 * path.stat().st_size)
    assert tracemalloc.get_traced_memory()[1] < 5 * path.stat().st_size
    tracemalloc.stop()
    # A scene holds the mesh once.
    scene = pycct.load_scene(path, max_bytes=2 * path.stat().st_size)
    assert len(scene) == 3000 and len({id(a.shape) for a in scene.actors}) == 1
    # Instances without number.
    g.tree["nodes"] = [{"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": 2}}}}]
    g.tree["scenes"] = [{"nodes": [0]}]
    g.tree["accessors"].append({**FLOATS, "count": 100_000_000})
    for load in (pycct.load_level, pycct.load_scene):
        with pytest.raises(ValueError, match="max_bytes"):
            load(g.save(path))


def test_polygons_and_names_of_obj_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "a.obj"
    path.write_text("v 0 0 0\nv 4 0 0\nv 0 4 0\nf" + " 1" * 100_000 + "\n")
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_level(path, max_bytes=path.stat().st_size)
    assert pycct.load_level(path)[1].degenerate == 99_998
    path.write_text("v 0 0 0\nv 4 0 0\nv 0 4 0\n" + "".join(f"o {k}\nf 1 1 1\n" for k in range(10_000)))
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_level(path, max_bytes=path.stat().st_size)
    monkeypatch.setattr("pycct.levels.obj.LONGEST_LINE", 1000)
    monkeypatch.setattr("pycct.levels.obj.BLOCK", 100)
    path.write_text("v 0 0 0\nv 4 0 0\nv 0 4 0\nf 1 2 3" + " \\\n 3" * 1000)
    with pytest.raises(ValueError, match="longer"):
        pycct.load_level(path)


# --- reports ------------------------------------------------------------------------------------

def box(lower, upper):
    (x, y, z), (a, b, c) = lower, upper
    v = np.array([(i, j, k) for i in (x, a) for j in (y, b) for k in (z, c)], float)
    t = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4),
         (1, 5, 7), (1, 7, 3)]
    return v, np.array(t)


def town(axis, sign):
    """A slab with towers on it, closed, standing along an axis of the file."""
    v, t = box((0, 0, 0), (40, 30, 1))
    for k in range(4):
        a, b = box((5 + 8 * k, 9, 1), (8 + 8 * k, 12, 6 + k))
        v, t = np.concatenate([v, a]), np.concatenate([t, b + len(v)])
    turn = {"x": ((0, 0, 1), (1, 0, 0), (0, 1, 0)), "y": ((1, 0, 0), (0, 0, 1), (0, -1, 0)), "z": np.eye(3)}[axis]
    v = v @ np.array(turn).T
    if sign < 0:
        # Half a turn around another axis.
        v = v * np.where(np.arange(3) == (("xyz".index(axis) + 1) % 3), 1, -1)
    return v, t


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_up_axis_and_its_sign(tmp_path, axis, sign):
    v, t = town(axis, sign)
    name = axis if sign > 0 else "-" + axis
    assert any(f"up={name!r}" in w for w in report_on(v, t).warnings)
    path = tmp_path / "town.obj"
    path.write_text("".join("v {} {} {}\n".format(*p) for p in v) + "".join("f {} {} {}\n".format(*f) for f in t + 1))
    assert f"up={name!r}" in pycct.load_level(path)[1].warnings[0]
    assert pycct.load_level(path, up=name)[1].warnings == ()
    # The suggestion is in the file's axes, whatever it was turned by.
    for up in ({"x", "y", "-x", "-y", "-z"} - {axis, "-" + axis}):
        assert f"up={name!r}" in pycct.load_level(path, up=up)[1].warnings[0]


def test_a_box_that_stands_on_y():
    v, t = box((0, 0, 0), (20, 1, 20))
    assert "up='y'" in report_on(v, t).warnings[0]


def test_sheets_say_which_way_is_up():
    v = np.array([(0, 0, 0), (9, 0, 0), (9, 0, -9), (0, 0, -9)], float)
    t = np.array([(0, 1, 2), (0, 2, 3)])
    assert "up='y'" in report_on(v, t).warnings[0]
    assert "up='-y'" in report_on(v, t[:, ::-1]).warnings[0]


def test_two_sided_is_recommended(tmp_path):
    v, t = box((0, 0, 0), (20, 20, 1))
    t[3] = t[3][::-1]
    warnings = report_on(v, t).warnings
    assert any("two_sided=True" in w and "1 of 12" in w for w in warnings)
    assert any("two_sided=True" in w for w in report_on(v[:, [0, 1, 2]] * (1, 1, -1), box((0,) * 3, (1,) * 3)[1][8:10])
               .warnings)
    path = tmp_path / "a.obj"
    path.write_text("".join("v {} {} {}\n".format(*p) for p in v) + "".join("f {} {} {}\n".format(*f) for f in t + 1))
    assert any("two_sided=True" in w for w in pycct.load_level(path)[1].warnings)
    assert pycct.load_level(path, two_sided=True)[1].warnings == ()


def test_millimetres_are_noticed():
    """A wardrobe of 1 by 2 m, finely tessellated: no edge is long, and it is no terrain."""
    v, t = box((0, 0, 0), (1000, 900, 2000))
    for _ in range(5):
        n = len(v)
        corners = v[t]
        v = np.concatenate([v, (corners + np.roll(corners, -1, 1)).reshape(-1, 3) / 2])
        m = (n + 3 * np.arange(len(t))[:, None] + (0, 1, 2))
        a, b, c = t.T
        p, q, r = m.T
        t = np.concatenate([np.stack(f, 1) for f in ((a, p, r), (p, b, q), (r, q, c), (p, q, r))])
    warnings = report_on(v, t).warnings
    assert "millimetres" in warnings[0] and "scale=0.001: 2 m" in warnings[0]
    assert report_on(v * 0.001, t).warnings == ()
    # Mountains in metres.
    x, y = np.meshgrid(np.arange(0, 4000.0, 20), np.arange(0, 4000.0, 20))
    peaks = np.stack([x, y, 400 + 400 * np.sin(x / 700) * np.cos(y / 500)], -1).reshape(-1, 3)
    i = (np.arange(199)[:, None] * 200 + np.arange(199)).reshape(-1)
    assert report_on(peaks, np.concatenate([np.stack([i, i + 1, i + 201], 1), np.stack([i, i + 201, i + 200], 1)])
                     ).warnings == ()


def test_many_vertices_in_one_place_are_one(monkeypatch):
    """A hash sorts places; places with the same hash are compared themselves."""
    from pycct.levels import report

    rng = np.random.default_rng(0)
    v = rng.integers(0, 4, (500, 3)).astype(float)
    v[::7] *= -1                                             # negative zeros

    def check():
        place = report.places_of(v)
        same = (v[:, None] == v[None]).all(-1)
        assert ((place[:, None] == place[None]) == same).all()
        first = [int(np.flatnonzero(place == k)[0]) for k in range(place.max() + 1)]
        assert first == sorted(first)

    check()
    monkeypatch.setattr(report, "FACTORS", (0, 0, 0))
    check()


def test_info_of_several_files_and_cooked_scenes(tmp_path, capsys):
    g = several(Gltf())
    g.tree["materials"] = [{"name": "brick"}]
    level = g.save(tmp_path / "a.glb")
    other = g.save(tmp_path / "b.gltf")
    v, t = box((0, 0, 0), (20, 20, 1))
    t[3] = t[3][::-1]
    scene = pycct.load_scene(level)
    scene.add(pycct.Box((1, 1, 1)))
    scene.add(pycct.Mesh(v, t))
    scene.save(tmp_path / "cooked.scene")
    assert main(["info", str(level), str(tmp_path / "cooked.scene"), str(other)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"a\.glb\n  triangles      3\n", out) and "b.gltf" in out
    assert "nodes          3: floor-col, UCX_wall, a[1]" in out and "materials      2: brick" in out
    assert "cooked scene\n  actors         5, 1 Box, 4 Mesh\n" in out and "triangles      15" in out
    assert "1 of 12 triangles of the mesh of actor 4" in out
    # The others are reported although one cannot be read.
    (tmp_path / "text.txt").write_text("hello")
    assert main(["info", str(tmp_path / "text.txt"), str(level), str(tmp_path), str(tmp_path / "none")]) == 1
    out, problem = capsys.readouterr()
    assert "a.glb" in out and "nor a cooked scene" in problem and "none" in problem
    assert main(["info", str(level), "--nodes", "UCX_*", "--two-sided"]) == 0
    assert "triangles      1\n" in capsys.readouterr().out
    assert main(["info", str(level), "--nodes", "nothing"]) == 1
    assert "no node matches" in capsys.readouterr().err


# --- heightfields -------------------------------------------------------------------------------

GRID = "ncols 4\nnrows 3\nxllcorner 100\nyllcorner 200\ncellsize 10\nNODATA_value -1\n"


def test_ascii_grids(tmp_path):
    path = tmp_path / "hill.asc"
    path.write_text(GRID + "1 2 3 4\n5 6 7 -1\n9 10 11 12\n")
    field, position = pycct.load_heightfield(path, height_scale=2.0, height_offset=1.0)
    assert field.heights[:, 0].tolist() == [19, 11, 3] and field.spacing == (10, 10) and field.row_axis == "y"
    assert field.holes.tolist() == [[False, False, True], [False, False, True]]
    assert position == (105, 205, 0)
    scene = pycct.Scene()
    scene.add(field, position)
    # The northwestern sample is 1 in the file.
    assert scene.raycast((105, 225, 99), (0, 0, -1), 200).position[2] == pytest.approx(3)
    assert scene.raycast((106, 224, 99), (0, 0, -1), 200) is not None
    assert scene.raycast((132, 217, 99), (0, 0, -1), 200) is None
    # A centre instead of a corner, capitals, commas, the default for missing data, a spacing.
    path.write_text("NCOLS 2\nNROWS 2\nXLLCENTER 7\nYLLCENTER 8\nCELLSIZE 1\n1,5 2\n-9999 nan\n")
    field, position = pycct.load_heightfield(path, 3.0, two_sided=True)
    assert position == (7, 8, 0) and field.spacing == (3, 3) and field.two_sided and field.holes.all()
    assert field.heights[1].tolist() == [1.5, 2]


@pytest.mark.parametrize("text", [
    GRID + "1 2 3 4\n5 6 7 8\n9 10 11\n", GRID + "1 2 3 4\n5 6 7 8\n9 10 11 12 13\n", GRID + "1 2 3 x\n" * 3,
    GRID.replace("4", "1000000000"), GRID.replace("4", "4.5") + "1 " * 12, GRID.replace("4", "1") + "1 1 1",
    GRID.replace("10", "-10", 1).replace("cellsize 10", "cellsize 0") + "1 " * 12, "hello", "\0" * 100,
    GRID.replace("cellsize 10", "cellsize nan") + "1 " * 12, GRID + "-1 " * 12, GRID + "1e300 " * 12, GRID,
    GRID.replace("100", "1e300") + "1 " * 12, GRID.replace("ncols", "xcols") + "1 " * 12, "ncols 1e999\n",
    GRID.replace("ncols 4", "ncols inf") + "1 " * 12, GRID.replace("-1", "x") + "1 " * 12,
])
def test_broken_grids(tmp_path, text):
    path = tmp_path / "hill.asc"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"hill\.asc"):
        pycct.load_heightfield(path)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_pictures(tmp_path, kind):
    Image = pytest.importorskip("PIL.Image")
    path = tmp_path / "hill.png"
    values = np.arange(12, dtype=kind).reshape(3, 4) * (1 if kind is np.uint8 else 5000)
    Image.fromarray(values).save(path)
    field, position = pycct.load_heightfield(path, 2.0, height_scale=0.5, height_offset=-1.0)
    assert field.heights.tolist() == (values[::-1] * 0.5 - 1.0).tolist() and position == (0, 0, 0)
    assert field.spacing == (2, 2) and not field.holes.any()
    assert pycct.load_heightfield(path)[0].spacing == (1, 1)
    data = path.read_bytes()
    for end in (1, 20, 30, 45):
        path.write_bytes(data[:end])
        with pytest.raises(ValueError, match=r"hill\.png"):
            pycct.load_heightfield(path)
    # A size that takes more memory than the file has bytes.
    path.write_bytes(data[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + data[24:])
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_heightfield(path)
    path.write_bytes(data[:16] + struct.pack(">II", 20_000, 20_000) + data[24:])
    with pytest.raises(ValueError, match=r"hill\.png"):
        pycct.load_heightfield(path)
    with pytest.raises(ValueError, match="max_bytes"):
        pycct.load_heightfield(path, max_bytes=10_000)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(path)
    with pytest.raises(ValueError, match="grey"):
        pycct.load_heightfield(path)
    Image.fromarray(np.zeros((1, 4), np.uint8)).save(path)
    with pytest.raises(ValueError, match="2 by 2"):
        pycct.load_heightfield(path)


def test_arguments_of_heightfields(tmp_path):
    path = tmp_path / "hill.asc"
    path.write_text(GRID + "1 " * 12)
    for argument, value, error in (("spacing", 0, ValueError), ("spacing", "1", TypeError),
                                   ("height_scale", 0, ValueError), ("height_scale", np.nan, ValueError),
                                   ("height_scale", None, TypeError), ("height_offset", np.inf, ValueError),
                                   ("height_offset", True, TypeError), ("max_bytes", 9.0, TypeError),
                                   ("max_bytes", 9, ValueError), ("two_sided", 3, TypeError)):
        with pytest.raises(error, match=argument):
            pycct.load_heightfield(path, **{argument: value})
    with pytest.raises(ValueError, match=r"\.png, \.asc"):
        pycct.load_heightfield(tmp_path.joinpath("a.obj").write_text("x") and tmp_path / "a.obj")
    with pytest.raises(FileNotFoundError):
        pycct.load_heightfield(tmp_path / "none.asc")


def test_pictures_without_pillow(tmp_path):
    path = tmp_path / "hill.png"
    path.write_bytes(b"\x89PNG")
    code = ("import sys; sys.modules['PIL'] = None; import pycct\n"
            f"try: pycct.load_heightfield({str(path)!r})\n"
            "except ImportError as e: print(e)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         cwd=Path(pycct.__file__).resolve().parent.parent)
    assert "pip install pycct[levels]" in out.stdout
