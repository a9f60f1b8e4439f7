"""Trees with eight children per node: instruction set and blocks change no result."""
import numpy as np
import pytest
import worlds

import pycct
from pycct.spatial.bvh import instruction_set, use_instruction_set


@pytest.fixture
def base():
    use_instruction_set("base")
    assert instruction_set() == "base"
    yield
    use_instruction_set("best")


def sphere(rings=40, sides=60):
    """A closed surface that faces inwards, and its edges."""
    lat = np.linspace(0, np.pi, rings + 1)[1:-1]
    lon = np.arange(sides) * 2 * np.pi / sides
    ring = np.stack([np.outer(np.sin(lat), np.cos(lon)), np.outer(np.sin(lat), np.sin(lon)),
                     np.outer(np.cos(lat), np.ones(sides))], -1)
    v = np.concatenate([ring.reshape(-1, 3), [[0, 0, 1], [0, 0, -1]]])
    north, south = len(v) - 2, len(v) - 1
    t = []
    for j in range(sides):
        k = (j + 1) % sides
        t.append((north, k, j))
        t.append((south, (rings - 2) * sides + j, (rings - 2) * sides + k))
        for i in range(rings - 2):
            a, b = i * sides + j, i * sides + k
            t += [(a, b, b + sides), (a, b + sides, a + sides)]
    t = np.array(t)
    edges = np.unique(np.sort(np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]]), axis=1), axis=0)
    return v, t, edges


@pytest.mark.parametrize(("size", "place"), [(1.0, 0.0), (1e-3, 0.0), (50.0, 1e5), (1e4, 1e7), (1e-2, 1e6)])
def test_rays_at_edges_and_corners_never_pass(size, place):
    rng = np.random.default_rng(1)
    v, t, edges = sphere()
    scene = pycct.Scene()
    scene.add(pycct.Mesh(v * size, t), position=(place, -place, place))
    seen = pycct.Scene()
    seen.add(pycct.Mesh(v * size + np.array([place, -place, place]), t))
    shares = rng.random((len(edges), 1))
    aims = np.concatenate([v, v[edges[:, 0]] + (v[edges[:, 1]] - v[edges[:, 0]]) * shares, v[edges].mean(1)])
    for _ in range(3):
        origins = rng.uniform(-0.3, 0.3, (len(aims), 3))
        where = origins * size + np.array([place, -place, place])
        for one in (scene, seen):
            assert one.raycast_many(where, aims - origins, 3.0 * size).hit.all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_millions_of_rays_at_edges_and_corners_never_pass(seed):
    rng = np.random.default_rng(seed)
    v, t, edges = sphere(60, 90)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    v = v @ turn.T * rng.uniform(0.1, 50, 3)
    size = np.abs(v).max(0)
    scene = pycct.Scene()
    scene.add(pycct.Mesh(v, t))
    for _ in range(20):
        shares = rng.random((len(edges), 1))
        aims = np.concatenate([v, v[edges[:, 0]] + (v[edges[:, 1]] - v[edges[:, 0]]) * shares])
        origins = rng.uniform(-0.2, 0.2, (len(aims), 3)) * size
        assert scene.raycast_many(origins, aims - origins, 1e4).hit.all()


def crowded(rng):
    """Meshes in every pose, a heightfield, spheres and boxes."""
    scene = pycct.Scene()
    for k, scale in enumerate([(1, 1, 1), (2, 0.5, 1.3), (-1, 1, 1), (-0.7, -2, 1)]):
        v, t = worlds.soup(rng, n=400, span=10.0)
        q = rng.normal(size=4)
        scene.add(pycct.Mesh(v, t, two_sided=bool(k & 1)), tuple(rng.normal(size=3) * 8),
                  tuple(q / np.linalg.norm(q)), scale)
    scene.add(pycct.Heightfield(rng.normal(size=(30, 25)), 0.9), (-10, -12, -3))
    for k in range(60):
        scene.add(pycct.Sphere(0.5) if k % 2 else pycct.Box((0.4, 0.5, 0.6)), tuple(rng.uniform(-15, 15, 3)))
    return scene


def answers(scene, rng, n=300):
    p, d = rng.uniform(-18, 18, (n, 3)), rng.normal(size=(n, 3))
    found = [*scene.raycast_many(p, d, 60.0)]
    for shape in (pycct.Sphere(0.4), pycct.Capsule(0.3, 1.0), pycct.Box((0.3, 0.4, 0.2))):
        found += [*scene.sweep_many(shape, p, d, 6.0), *scene.closest_points_many(shape, p, 5.0)]
        found += [x for x in scene.penetration_many(shape, p)]
    return [np.asarray(x) for x in found]


def test_every_instruction_set_gives_the_same_bits(base):
    first = answers(crowded(np.random.default_rng(4)), np.random.default_rng(5))
    use_instruction_set("best")
    again = answers(crowded(np.random.default_rng(4)), np.random.default_rng(5))
    for x, y in zip(first, again, strict=True):
        assert x.tobytes() == y.tobytes()


def test_an_unknown_instruction_set_is_refused():
    before = instruction_set()
    with pytest.raises(ValueError, match="name must be"):
        use_instruction_set("mmx")
    assert instruction_set() == before


def test_rays_and_casts_equal_a_test_of_each_triangle():
    """The blocks rule out no relevant triangle: thin, huge and tiny ones, far away."""
    rng = np.random.default_rng(6)
    n = 240
    size = 10.0 ** rng.uniform(-3, 2, (n, 1, 1))
    v = (rng.normal(size=(n, 3, 3)) * size * rng.choice([1.0, 1e-3], (n, 3, 1)) + rng.normal(size=(n, 1, 3)) * 5
         + rng.choice([0.0, 1e4], (1, 1, 3)))
    scene, alone = pycct.Scene(), pycct.Scene()
    scene.add(pycct.Mesh(v.reshape(-1, 3), np.arange(3 * n).reshape(n, 3), two_sided=True))
    for one in v:
        alone.add(pycct.Mesh(one, [(0, 1, 2)], two_sided=True))
    corners = v.reshape(-1, 3)[rng.integers(0, 3 * n, 2000)]
    origins = corners + rng.normal(size=(2000, 3)) * 10.0 ** rng.uniform(-3, 2, (2000, 1))
    aims = corners + rng.normal(size=(2000, 3)) * 10.0 ** rng.uniform(-9, 0, (2000, 1))
    one, each = (s.raycast_many(origins, aims - origins, 1e3) for s in (scene, alone))
    assert one.hit.sum() > 500
    for name in ("hit", "distance", "position", "normal"):
        assert getattr(one, name).tobytes() == getattr(each, name).tobytes(), name
    for shape in (pycct.Sphere(0.2), pycct.Box((0.1, 0.2, 0.3))):
        one, each = (s.closest_points_many(shape, origins[:400], 50.0) for s in (scene, alone))
        for name in ("hit", "distance"):
            assert getattr(one, name).tobytes() == getattr(each, name).tobytes(), name
        one, each = (s.overlap_many(shape, origins[:400]) for s in (scene, alone))
        assert one.hit.tobytes() == each.hit.tobytes()


def test_actors_come_and_go_and_every_one_is_found():
    rng = np.random.default_rng(8)
    scene = pycct.Scene()
    present = {}
    for _ in range(600):
        if present and rng.random() < 0.4:
            scene.remove(present.pop(int(rng.choice(list(present)))))
        else:
            actor = scene.add(pycct.Sphere(0.3), tuple(rng.uniform(-10, 10, 3)),
                              body="kinematic" if rng.random() < 0.5 else "static")
            present[actor.id] = actor
        if present and rng.random() < 0.5:
            one = present[int(rng.choice(list(present)))]
            if one.body == "kinematic":
                one.move_to(tuple(rng.uniform(-10, 10, 3)))
        where = rng.uniform(-10, 10, (4, 3))
        touched = scene.overlap_many(pycct.Sphere(1.5), where)
        for k, p in enumerate(where):
            near = {i for i, a in present.items() if np.linalg.norm(np.subtract(a.position, p)) < 1.8}
            assert set(touched.actor[touched.first[k]:touched.first[k + 1]].tolist()) == near
