"""Level files that are damaged: an error that names the file, or a level; never anything else."""

import random

import numpy as np
import pytest

import pycct

trimesh = pytest.importorskip("trimesh")

KINDS = ["obj", "ply", "stl", "glb", "gltf"]
# What looks like a number, a count or an end.
PIECES = [
    b"\0",
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"-1",
    b"1e400",
    b"nan",
    b"999999999999",
    b"\n",
    b" ",
    b"{",
    b'"',
    b"f 1 2 3\n",
]


def whole(kind):
    """A small level in that format."""
    v = np.array([(x, y, (x * y) % 3 / 4) for x in range(5) for y in range(5)], float)
    t = [f for i in range(4) for j in range(4) for a in [5 * i + j] for f in [(a, a + 5, a + 6), (a, a + 6, a + 1)]]
    data = trimesh.Trimesh(v, t, process=False).export(file_type=kind)
    if isinstance(data, dict):
        # gltf: a description and its buffers, made one file.
        import base64
        import json

        tree = json.loads(next(d for n, d in data.items() if n.endswith(".gltf")))
        for b in tree["buffers"]:
            b["uri"] = "data:application/octet-stream;base64," + base64.b64encode(data[b["uri"]]).decode()
        data = json.dumps(tree).encode()
    return data.encode() if isinstance(data, str) else data


def damaged(rng, data):
    """Bytes changed, cut out, doubled, moved."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) or 1)
        what = rng.randrange(6)
        if what == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            del data[at : at + rng.choice([1, 4, 40])]
        elif what == 2:
            piece = rng.choice(PIECES)
            data[at : at + len(piece)] = piece
        elif what == 3:
            data[at:at] = rng.choice(PIECES)
        elif what == 4:
            data[at:at] = data[at : at + 30]
        else:
            del data[at:]
    return bytes(data)


def load(path, **options):
    """Load a file and use what it gave; whether there was a level in it."""
    try:
        mesh, report = pycct.load_level(path, **options)
    except ValueError as e:
        assert str(path) in str(e)
        return False
    assert mesh.triangle_count == report.triangles and str(report)
    scene = pycct.Scene()
    try:
        scene.add(mesh)
    except ValueError as e:
        assert "within" in str(e)
        return True
    hero = pycct.CharacterController(scene, (2, 2, 3), step_offset=0.3)
    for k in range(6):
        hero.move((0.3, 0.1, -1 if k else 0.5), 1 / 60)
    assert np.isfinite(hero.position).all()
    scene.raycast((1.3, 1.2, 9), (0, 0, -1), 20)
    scene.overlap(pycct.Box((1, 1, 1)), (1, 1, 0))
    return True


def rounds(tmp_path, kind, seed, count):
    rng = random.Random(seed)
    path = tmp_path / f"level.{kind}"
    data = whole(kind)
    path.write_bytes(data)
    assert load(path)
    loaded = 0
    for _ in range(count):
        path.write_bytes(damaged(rng, data))
        loaded += load(path)
    return loaded


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_levels(tmp_path, kind):
    assert rounds(tmp_path, kind, 1, 60) < 60


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_damaged_levels(tmp_path, kind, seed):
    assert rounds(tmp_path, kind, seed, 1500) < 1500
