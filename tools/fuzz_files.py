"""Load damaged level files and cooked scenes: each raises an error that names it, or is usable.

    python tools/fuzz_files.py --minutes 10              every kind, by seeds, in several processes
    python tools/fuzz_files.py --kind glb --seed 1234    one file again, in this process
    python tools/fuzz_files.py --kind cooked --atheris --minutes 10
                                                         guided by coverage (needs atheris)

The program reports everything that is not a ValueError with the file name, with kind and seed:
other exceptions, crashes, hangs, unbounded memory. It keeps the file in ``--out``. A seed makes the
same file as long as NumPy and trimesh stay the same.

Any build works. A build with the address sanitizer also reports reads outside of the file. Atheris
needs compiled modules from clang with ``-fsanitize=fuzzer-no-link``.
"""

import argparse
import base64
import faulthandler
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# The source folder may have no compiled modules, or others than those of PYTHONPATH.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
sys.path += [str(ROOT / "tests" / folder) for folder in ("support", "shapes", "properties")]

import test_cooked  # noqa: E402
import test_fuzz_files  # noqa: E402
import worlds  # noqa: E402

import pycct  # noqa: E402
from pycct.shapes import cooked_file as _cooked  # noqa: E402

KINDS = ["cooked", *test_fuzz_files.KINDS, "draco", "png", "asc"]
# The end of a file's name, where it is not that of its kind.
ENDINGS = {"draco": "glb"}
LONGEST = 30            # seconds for one file
MEMORY = 6 << 30        # bytes for one process; the address sanitizer needs more address space
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "") or "asan" in os.environ.get("ASAN_OPTIONS", "")

NUMBERS = [0, 1, -1, 2, 3, 4, 7, 12, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, -2**31, 2**63, 1e9, 1e10, 0.5,
           1e-320, 1e39, 1e308, -1e308, float("nan"), float("inf")]
VALUES = [*NUMBERS, None, True, "", "VEC3", "MAT4", "SCALAR", 5121, 5123, 5125, 5126, "a.bin", "..", "data:;base64,",
          "data:;base64,AAAA", [], {}, [0], [0, 0], {"": 0}, [[[]]]]
KEYS = ["mode", "byteStride", "byteOffset", "count", "bufferView", "sparse", "matrix", "children", "mesh", "indices",
        "extensions", "uri", "targets", "skin", "weights", "min", "max", "normalized", "name", "scale", "rotation",
        "translation", "camera", "KHR_draco_mesh_compression", "extensionsRequired", "extras", "material", "images",
        "EXT_mesh_gpu_instancing", "TRANSLATION", "ROTATION", "values", "componentType", "doubleSided", "scene"]


# --- whole files ----------------------------------------------------------------------------------

def cooked_files():
    """Return the bytes of scenes with all, many and no shapes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene"
        found = []
        for seed in range(3):
            test_cooked.world(np.random.default_rng(seed), copies=1).save(path)
            found.append(path.read_bytes())
        pycct.Scene().save(path)
        found.append(path.read_bytes())
        scene = pycct.Scene()
        v, t = worlds.soup(np.random.default_rng(3), n=500, span=6.0)
        scene.add(pycct.Mesh(v, t, True))
        scene.save(path)
        return [*found, path.read_bytes()]


def binary_ply(order, quads):
    """Return a binary PLY: two triangles or a quad, in either byte order."""
    corners = np.array([(0, 0, 0), (4, 0, 0), (4, 4, 1), (0, 4, 1)], order + "f4")
    faces = [(0, 1, 2, 3)] if quads else [(0, 1, 2), (0, 2, 3)]
    rows = b"".join(struct.pack(f"{order}B{len(f)}i", len(f), *f) for f in faces)
    name = "big" if order == ">" else "little"
    head = (f"ply\nformat binary_{name}_endian 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
            f"property float z\nelement face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n")
    return head.encode() + corners.tobytes() + rows


ASCII_PLY = b"""ply
format ascii 1.0
comment TextureFile a.png
element vertex 4
property double x
property double y
property double z
property uchar red
element face 2
property list uchar int vertex_indices
property list uchar float texcoord
element edge 1
property int vertex1
property int vertex2
end_header
0 0 0 1
4 0 0 2
4 4 1 3
0 4 1 4
3 0 1 2 6 0 0 1 0 1 1
3 0 2 3 6 0 0 1 1 0 1
0 1
"""
OBJ = b"""# of everything
mtllib a.mtl
o one
v 0 0 0
v 4 0 0 1.0
v 4 4 1 0.1 0.2 0.3
v 0 4 1
v 2 6 1
vt 0 0
vt 1 0 0
vn 0 0 1
g floor
usemtl a
f 1 2 3 4
f 1/1 2/2 3/1
f 1//1 2//1 4//1
f -1/1/1 -2/2/1 -3/1/1
o two
s 1
l 1 2
f 3/1 4/2 5/1 1/1 2/2
"""
ASCII_STL = b"""solid a
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 4 0 0
vertex 4 4 1
endloop
endfacet
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 4 4 1
vertex 0 4 1
endloop
endfacet
endsolid a
"""


def scene_tree():
    """A glTF of everything that is read, and its bytes."""
    corners = np.array([(0, 0, 0), (4, 0, 0), (4, 1, 4), (0, 1, 4)], "<f4")
    padded = np.zeros((4, 4), "<f4")
    padded[:, :3] = corners
    index = np.array([0, 1, 2, 0, 2, 3], "<u2")
    strip = np.array([0, 1, 3, 2], "<u1")
    short = np.array([(0, 0, 0), (32767, 0, 0), (0, 0, -32768), (0, 1, 2)], "<i2")
    places = np.array([(0, 0, 0), (9, 0, 9)], "<f4")
    blob = (corners.tobytes() + padded.tobytes() + index.tobytes() + strip.tobytes() + short.tobytes()
            + places.tobytes())
    views = [(0, 48), (48, 64), (112, 12), (124, 4), (128, 24), (152, 24), (124, 2), (0, 24)]
    tree = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0, 3, 4]}, {"nodes": [3]}],
        "extensionsRequired": ["EXT_mesh_gpu_instancing", "KHR_mesh_quantization"],
        "nodes": [
            {"children": [1, 2], "translation": [0, 0.5, 0], "rotation": [0, 0.6, 0, 0.8]},
            {"mesh": 0, "scale": [-1, 1, 1]},
            {"mesh": 1, "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 3, 0, 1, 1]},
            {"mesh": 0, "name": "again", "extras": {"a": [1]}},
            {"mesh": 2, "name": "UCX_trees", "extensions": {"EXT_mesh_gpu_instancing": {
                "attributes": {"TRANSLATION": 6, "SCALE": 6}}}},
        ],
        "meshes": [
            {"primitives": [{"attributes": {"POSITION": 0}, "indices": 2, "mode": 4, "material": 0}], "name": "a"},
            {"primitives": [{"attributes": {"POSITION": 1}, "indices": 3, "mode": 5},
                            {"attributes": {"POSITION": 0, "_EXTRA": 4}, "mode": 0}]},
            {"primitives": [{"attributes": {"POSITION": 5}, "mode": 6, "indices": 3, "material": 1},
                            {"attributes": {"POSITION": 7}, "mode": 5}]},
        ],
        "materials": [{"name": "both", "doubleSided": True},
                      {"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}],
        "images": [{"uri": "a.png"}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3", "min": [0, 0, 0], "max": [4, 1, 4]},
            {"bufferView": 1, "componentType": 5126, "count": 4, "type": "VEC3", "byteOffset": 0},
            {"bufferView": 2, "componentType": 5123, "count": 6, "type": "SCALAR"},
            {"bufferView": 3, "componentType": 5121, "count": 4, "type": "SCALAR"},
            {"componentType": 5126, "count": 4, "type": "VEC3", "sparse": {"count": 0}},
            {"bufferView": 4, "componentType": 5122, "count": 4, "type": "VEC3", "normalized": True},
            {"bufferView": 5, "componentType": 5126, "count": 2, "type": "VEC3"},
            {"componentType": 5126, "count": 4, "type": "VEC3", "sparse": {
                "count": 2, "indices": {"bufferView": 6, "componentType": 5121}, "values": {"bufferView": 7}}},
        ],
        "bufferViews": [{"buffer": 0, "byteOffset": a, "byteLength": n} for a, n in views],
        "buffers": [{"byteLength": len(blob)}],
    }
    tree["bufferViews"][1]["byteStride"] = 16
    return tree, blob


GRID = b"""ncols 4
nrows 3
xllcorner 10.5
yllcorner -3
cellsize 2
NODATA_value -9999
1 2 3 4
5 -9999 7 8
9 10 nan 12.5
"""


def picture(kind):
    """A picture of grey values."""
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray((np.arange(30).reshape(5, 6) * 7).astype(kind)).save(data, "PNG")
    return data.getvalue()


def draco_tree(in_order):
    """A glTF with Draco data, and its bytes."""
    import DracoPy

    v = np.array([(x, (x * y) % 3 / 4, -y) for x in range(5) for y in range(5)], float)
    t = [f for i in range(4) for j in range(4) for a in [5 * i + j] for f in [(a, a + 5, a + 6), (a, a + 6, a + 1)]]
    blob = DracoPy.encode(v, np.array(t), preserve_order=in_order)
    return {
        "asset": {"version": "2.0"}, "extensionsRequired": ["KHR_draco_mesh_compression"],
        "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "extensions": {
            "KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}}}]}],
        "accessors": [{"componentType": 5126, "count": len(v), "type": "VEC3"},
                      {"componentType": 5125, "count": 3 * len(t), "type": "SCALAR"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(blob)}], "buffers": [{"byteLength": len(blob)}],
    }, blob


def packed(tree, blob):
    """Return a GLB."""
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    blob += bytes(-len(blob) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def written(tree, blob):
    """Return a glTF with embedded bytes."""
    if isinstance(tree.get("buffers"), list) and tree["buffers"] and isinstance(tree["buffers"][0], dict):
        tree["buffers"][0].setdefault("uri", "data:;base64," + base64.b64encode(blob).decode())
    return json.dumps(tree).encode()


def whole(kind):
    """Return valid files of a kind."""
    if kind == "cooked":
        return cooked_files()
    if kind == "draco":
        return [packed(*draco_tree(True)), packed(*draco_tree(False))]
    if kind == "asc":
        return [GRID, GRID.replace(b"corner", b"center").replace(b"nan", b"7")]
    if kind == "png":
        return [picture(np.uint8), picture(np.uint16)]
    more = {
        "obj": [OBJ],
        "ply": [ASCII_PLY, binary_ply("<", True), binary_ply(">", False)],
        "stl": [ASCII_STL],
        "glb": [packed(*scene_tree())],
        "gltf": [written(*scene_tree())],
    }
    return [test_fuzz_files.whole(kind), *more[kind]]


# --- damage ---------------------------------------------------------------------------------------

def sealed(raw):
    """Correct every checksum of a cooked file, as far as its table allows."""
    for k, s in enumerate(test_cooked.sections(raw)):
        if s["offset"] + s["bytes"] <= len(raw):
            part = bytes(raw[s["offset"]:s["offset"] + s["bytes"]])
            struct.pack_into("=I", raw, _cooked.HEADER.size + k * _cooked.SECTION.itemsize + 24, zlib.crc32(part))
    return bytes(test_cooked.head_again(raw))


def damaged_cooked(rng, raw):
    """Damage numbers anywhere, mostly with corrected checksums, which the reader passes."""
    table = [s for s in test_cooked.sections(raw) if s["bytes"] >= 8]
    if not table:
        return test_fuzz_files.damaged(rng, raw)
    if len(table) == len(test_cooked.sections(raw)) and rng.random() < 0.2:
        return test_cooked.poke(np.random.default_rng(rng.randrange(2**32)), raw)
    changed = bytearray(raw)
    records = {_cooked.ACTORS: _cooked.ACTOR, _cooked.SHAPES: _cooked.SHAPE}
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        s = rng.choice(table)
        if s["kind"] in records and rng.random() < 0.8:
            # Damage one number of one record.
            kind = records[s["kind"]]
            rows = np.frombuffer(changed, kind, s["bytes"] // kind.itemsize, s["offset"])
            name = rng.choice(kind.names)
            values = rows[name].reshape(len(rows), -1)
            row, column = rng.randrange(values.shape[0]), rng.randrange(values.shape[1])
            if values.dtype.kind == "f":
                values[row, column] = rng.choice([*NUMBERS, values[row, column] * 1.5, -values[row, column]])
            else:
                least, most = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
                value = rng.choice([-1, 0, 1, 2, 3, 5, 8, 255, 2**31 - 1, least, most,
                                    int(values[row, column]) + 1, int(values[row, column]) - 1])
                values[row, column] = min(max(value, int(least)), int(most))
        elif rng.random() < 0.7:
            kind = rng.choice(["i4", "f8", "f4", "u1"])
            part = np.frombuffer(changed, kind, s["bytes"] // np.dtype(kind).itemsize, s["offset"])
            for _ in range(rng.choice([1, 1, 5, 50])):
                at = rng.randrange(len(part))
                if kind[0] == "f":
                    with np.errstate(all="ignore"):
                        part[at] = rng.choice([*NUMBERS, part[rng.randrange(len(part))]])
                else:
                    part[at] = rng.choice([0, 1, 2, 100, int(part[rng.randrange(len(part))]), np.iinfo(kind).max,
                                           np.iinfo(kind).min])
        else:
            # Copy one range over another.
            n = rng.randrange(1, min(200, s["bytes"]) + 1)
            here, there = (s["offset"] + rng.randrange(s["bytes"] - n + 1) for _ in "ab")
            changed[here:here + n] = changed[there:there + n]
    return sealed(changed) if rng.random() < 0.9 else bytes(changed)


def places(tree):
    """Yield every (container, key) of a tree."""
    found = []
    stack = [tree]
    while stack:
        part = stack.pop()
        for key in part if isinstance(part, dict) else range(len(part)):
            found.append((part, key))
            if isinstance(part[key], (dict, list)):
                stack.append(part[key])
    return found


def damaged_tree(rng, tree):
    """Change, delete, duplicate and misplace values of a tree, and make reference cycles."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        where = places(tree)
        part, key = rng.choice(where)
        what = rng.randrange(7)
        if what == 0:
            part[key] = rng.choice(VALUES)
        elif what == 1:
            del part[key]
            if not tree:
                return tree
        elif what == 2 and isinstance(part, dict):
            part[rng.choice(KEYS)] = rng.choice(VALUES)
        elif what == 3:
            other, name = rng.choice(where)
            part[key] = json.loads(json.dumps(other.get(name) if isinstance(other, dict) else
                                              other[name] if name < len(other) else None))
        elif what == 4 and isinstance(part, list):
            part.extend([part[key]] * rng.choice([1, 3, 40]))
        elif what == 5 and isinstance(tree.get("nodes"), list) and tree["nodes"]:
            # Cycles, and nodes with many parents.
            node = rng.choice(tree["nodes"])
            if isinstance(node, dict):
                node["children"] = [rng.randrange(len(tree["nodes"]) + 1) for _ in range(rng.choice([1, 2, 4]))]
        elif isinstance(part[key], (int, float)) and not isinstance(part[key], bool):
            part[key] = rng.choice([part[key] + 1, part[key] - 1, part[key] * 2, -part[key], *NUMBERS])
    return tree


TOKEN = re.compile(rb"-?\d[\d.eE+-]*")


def damaged_text(rng, data):
    """Replace numbers of a text."""
    found = list(TOKEN.finditer(data))
    if not found:
        return data
    for m in sorted(rng.sample(found, min(len(found), rng.choice([1, 1, 2, 5]))), key=lambda m: -m.start()):
        value = rng.choice([*NUMBERS, "", "1/1", "1//1", "-", "0x10", "1e400", "9" * 30, "9" * 5000, "\u0663", "\0"])
        data = data[:m.start()] + str(value).encode() + data[m.end():]
    return data


def damaged(kind, rng, files):
    """Return a damaged copy of one of the files."""
    data = rng.choice(files)
    if kind == "cooked":
        return damaged_cooked(rng, data)
    for _ in range(rng.choice([1, 1, 2])):
        what = rng.random()
        if kind in ("glb", "gltf", "draco") and what < 0.6:
            tree, blob = draco_tree(rng.random() < 0.5) if kind == "draco" else scene_tree()
            if kind != "draco" or rng.random() < 0.3:
                tree = damaged_tree(rng, tree)
            if rng.random() < (0.9 if kind == "draco" else 0.2):
                blob = test_fuzz_files.damaged(rng, blob)
            data = packed(tree, blob) if kind != "gltf" else written(tree, blob) if isinstance(tree, dict) else b"[]"
        elif what < 0.7:
            data = damaged_text(rng, data)
        elif what < 0.8:
            other = rng.choice(files)
            data = data[:rng.randrange(len(data) + 1)] + other[rng.randrange(len(other)):]
        else:
            data = test_fuzz_files.damaged(rng, data)
    return data


# --- use ------------------------------------------------------------------------------------------

def use_cooked(path, rng):
    """Load, query, move, change, save and load again; return whether the file loaded."""
    for verify in (True, False):
        try:
            scene = pycct.Scene.load(path, verify=verify)
        except ValueError as problem:
            if str(path) not in str(problem):
                raise AssertionError("the file is not named") from problem
            continue
        numbers = np.random.default_rng(rng.randrange(2**32))
        test_cooked.try_all(scene, numbers, 8)
        with scene.edit():
            for actor in scene.actors[:3]:
                actor.move_to((0.5, 0, 0))
                actor.shape.bounds, actor.bounds, repr(actor)
        test_cooked.try_all(scene, numbers, 3)
        again = path.with_suffix(".again")
        scene.save(again, user_data=False)
        for actor in scene.actors[:2]:
            scene.remove(actor)
        try:
            pycct.Scene.load(again, verify=True)
        except ValueError:
            if verify:
                raise
        if verify:
            return True
    return False


def use_level(path, rng):
    """Load and walk on the level; return whether it loaded."""
    options = dict(up=rng.choice([None, None, "x", "-y"]), scale=rng.choice([1.0, 1.0, 0.01]),
                   two_sided=rng.choice([None, None, True]), nodes=rng.choice([*[None] * 6, "*a*", ["UCX_*", "one"]]))
    loaded = test_fuzz_files.load(path, **options)
    try:
        scene = pycct.load_scene(path, **options)
    except ValueError as problem:
        if str(path) not in str(problem):
            raise AssertionError("the file is not named") from problem
        return loaded
    scene.raycast((1.3, 1.2, 9), (0, 0, -1), 20)
    for actor in scene.actors:
        repr(actor.user_data)
    return True


def use_terrain(path, rng):
    """Load and look at it from above; whether it loaded."""
    try:
        field, position = pycct.load_heightfield(path, rng.choice([None, 2.0]), height_scale=rng.choice([1.0, -0.01]))
        scene = pycct.Scene()
        scene.add(field, position)
    except ValueError as problem:
        if str(path) not in str(problem) and "within" not in str(problem):
            raise AssertionError("the file is not named") from problem
        return False
    scene.raycast((position[0] + 1.3, position[1] + 1.2, 1000), (0, 0, -1), 2000)
    return True


def use(kind, path, rng):
    """Load and use a file; return whether it loaded."""
    uses = {"cooked": use_cooked, "png": use_terrain, "asc": use_terrain}
    return uses.get(kind, use_level)(path, rng)


def file_of(kind, seed, files):
    """Return the damaged file of a seed, and the random generator for its use."""
    rng = random.Random(f"{kind} {seed}")
    return damaged(kind, rng, files), rng


def prepare():
    """Silence warnings and limit memory."""
    warnings.simplefilter("ignore")
    if not SANITIZED:
        try:
            import resource
        except ImportError:
            return
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


# --- by seeds -------------------------------------------------------------------------------------

def work(kinds, first, step, until, out):
    """Try seeds in one process until the time is over. Each seed is recorded before its trial."""
    prepare()
    files = {kind: whole(kind) for kind in kinds}
    done = dict.fromkeys(kinds, 0)
    loaded = dict.fromkeys(kinds, 0)
    seed = first
    with tempfile.TemporaryDirectory() as folder:
        while time.time() < until:
            for kind in kinds:
                print(f"try {kind} {seed}", flush=True)
                data, rng = file_of(kind, seed, files[kind])
                path = Path(folder) / f"file.{ENDINGS.get(kind, kind)}"
                path.write_bytes(data)
                faulthandler.dump_traceback_later(LONGEST, exit=True)
                try:
                    loaded[kind] += use(kind, path, rng)
                except BaseException as problem:
                    (out / f"{kind}-{seed}.{kind}").write_bytes(data)
                    text = "".join(traceback.format_exception(problem))
                    print("found " + json.dumps([kind, seed, f"{type(problem).__name__}: {problem}"[:300], text]))
                    if isinstance(problem, KeyboardInterrupt):
                        raise
                faulthandler.cancel_dump_traceback_later()
                done[kind] += 1
            seed += step
    print("done " + json.dumps([done, loaded]))


def run(kinds, seconds, jobs, first, out):
    """Run processes that try seeds, and replace those that died; return the number of findings."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"seeds from {first}", flush=True)
    until = time.time() + seconds
    findings = {}
    total = dict.fromkeys(kinds, 0)
    good = dict.fromkeys(kinds, 0)

    def start(number, seed):
        log = open(out / f"worker-{number}.log", "w+")
        command = [sys.executable, "-X", "faulthandler", __file__, "--work", str(seed), str(jobs), str(until),
                   "--out", str(out), "--kind", *kinds]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ), log

    def tell(kind, seed, what, text):
        # Findings with the same innermost lines count as one.
        key = kind, tuple(re.findall(r'File "([^"]+)", line (\d+)', text)[-1:]), what.split(":")[0]
        findings.setdefault(key, []).append(seed)
        if len(findings[key]) == 1:
            print(f"--- {kind}, seed {seed}: {what}\n{text}", flush=True)

    crew = {number: start(number, first + number) for number in range(jobs)}
    while crew:
        time.sleep(0.2)
        for number, (process, log) in list(crew.items()):
            if process.poll() is None:
                continue
            log.seek(0)
            lines = log.read().splitlines()
            log.close()
            del crew[number]
            last = None
            for line in lines:
                word, _, rest = line.partition(" ")
                if word == "try":
                    last = rest.split()
                elif word == "found":
                    tell(*json.loads(rest))
                elif word == "done":
                    for sums, more in zip((total, good), json.loads(rest), strict=True):
                        for kind in kinds:
                            sums[kind] += more[kind]
            if process.returncode == 0:
                continue
            at = max((k for k, line in enumerate(lines) if line.startswith("try ")), default=-1)
            text = "\n".join(lines[at + 1:])
            if last is None:
                print(f"cannot start: {text}", flush=True)
                return 1
            kind, seed = last[0], int(last[1])
            (out / f"{kind}-{seed}.{kind}").write_bytes(file_of(kind, seed, whole(kind))[0])
            what = "a hang" if "Timeout (" in text else f"died with {process.returncode}"
            tell(kind, seed, what, text[-6000:])
            counted = sum(line.startswith("try ") for line in lines)
            for k in kinds:
                total[k] += counted // len(kinds)
            if time.time() < until:
                crew[number] = start(number, seed + jobs)
    for kind in kinds:
        print(f"{kind}: {total[kind]} files, {good[kind]} of them loaded")
    for (kind, _, what), seeds in findings.items():
        print(f"FOUND {kind}: {what}: {len(seeds)} times, seeds {seeds[:8]}; files in {out}")
    return len(findings)


# --- guided by coverage ---------------------------------------------------------------------------

def guided(kind, seconds, out):
    """Let libFuzzer search for new coverage.

    It stops at the first finding and keeps the file in `out`.
    """
    import atheris

    prepare()
    files = whole(kind)
    # Damaged files in the corpus shorten the search.
    files += [file_of(kind, seed, files)[0] for seed in range(200)]
    folder = tempfile.mkdtemp()
    path = Path(folder) / f"file.{ENDINGS.get(kind, kind)}"

    def one(data):
        if kind == "cooked":
            # With random bytes almost no input would pass the checksums.
            try:
                data = sealed(bytearray(data))
            except (ValueError, struct.error):
                pass
        path.write_bytes(data)
        use(kind, path, random.Random(0))

    out.mkdir(parents=True, exist_ok=True)
    corpus = Path(folder) / "corpus"
    corpus.mkdir()
    for k, data in enumerate(files):
        (corpus / str(k)).write_bytes(data)
    options = [f"-max_total_time={int(seconds)}", f"-timeout={LONGEST}", f"-artifact_prefix={out}/{kind}-",
               f"-max_len={max(map(len, files)) * 2}", "-rss_limit_mb=8000"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, help="try this one only, here")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="where files that were found are kept")
    parser.add_argument("--atheris", action="store_true", help="guided by coverage; one kind")
    parser.add_argument("--file", type=Path, help="try this file, of the first kind")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        first, step, until = int(given.work[0]), int(given.work[1]), float(given.work[2])
        work(given.kind, first, step, until, given.out)
    elif given.seed is not None or given.file:
        prepare()
        for kind in given.kind[:1] if given.file else given.kind:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"file.{ENDINGS.get(kind, kind)}"
                if given.file:
                    data, rng = given.file.read_bytes(), random.Random(0)
                else:
                    data, rng = file_of(kind, given.seed, whole(kind))
                path.write_bytes(data)
                print(kind, "loaded" if use(kind, path, rng) else "refused")
    elif given.atheris:
        guided(given.kind[0], given.minutes * 60, given.out)
    else:
        sys.exit(run(given.kind, given.minutes * 60, given.jobs, given.first, given.out) > 0)


if __name__ == "__main__":
    main()
