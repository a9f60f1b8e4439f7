"""Sensors: what members see, to the bit of the plain twin, whatever the number of threads."""

import copy
import pickle
import threading

import numpy as np
import pytest

import pycct
from pycct import Crowd, DepthGrid, Feet, HeightScan, Lidar, Neighbours, Scene, Seen, Sensors, Worlds, reference
from pycct.reference import sensors as twin

RAYS = ("distance", "normal", "kind", "id", "triangle", "data")
EVERYTHING = {
    "lidar": Lidar(7, 6.0, fields=RAYS),
    "narrow": Lidar(4, 9.0, height=0.4, fov=1.3, tilts=True, mask=5, fields=RAYS),
    "scan": HeightScan((3, 4), (0.7, 0.45), 3.0, fields=("height", *RAYS)),
    "depth": DepthGrid(4, 3, 1.4, reach=12.0, fields=("depth", *RAYS)),
    "near": Neighbours(3, 5.0, fields=("id", "position", "velocity", "distance")),
    "feet": Feet(fields=("normal", "distance", "walkable", "kind", "id", "triangle", "data")),
}


def fill(module, scene, seed):
    """Put every kind of shape into a scene of pycct or of its twin."""
    rng = np.random.default_rng(seed)
    n = 24
    corners = rng.uniform(-5, 5, (n, 1, 3)) + rng.normal(0, 1.2, (n, 3, 3))
    scene.add(
        module.Mesh(
            corners.reshape(-1, 3),
            np.arange(3 * n).reshape(n, 3),
            two_sided=seed % 2 == 0,
            triangle_data=np.arange(n) + 100,
            triangle_mask=np.arange(n) % 3 + 1,
        )
    )
    k = 4
    scene.add(
        module.Heightfield(
            rng.uniform(-0.5, 0.3, (k, k)), 4.0, diagonal=seed % 2, triangle_data=np.arange(2 * (k - 1) ** 2)
        ),
        position=(-6, -6, -0.2),
    )
    turn = (0.0, np.sin(0.3), 0.0, np.cos(0.3))
    scene.add(module.Box((0.6, 0.4, 0.9)), position=(2, 1, 0.3), rotation=turn, scale=(1, 1.5, 0.8))
    scene.add(module.Sphere(0.7), position=(-2, 2, 0.4), layer=4)
    scene.add(module.Capsule(0.3, 1.0), position=(1, -3, 0.5), rotation=turn, scale=(1.2, 1.2, 1.2))
    scene.add(module.ConvexHull(rng.normal(0, 0.8, (9, 3))), position=(-3, -2, 0.5), rotation=turn)
    scene.add(module.ConvexHull([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]), position=(3, 3, 1.2))
    scene.add(module.Triangle((-1, 3, 0), (1, 4, 0), (0, 3, 2)))
    scene.add(module.Plane((0, 0, 1)), position=(0, 0, -0.9))
    scene.add(module.Box((1, 1, 0.1)), position=(-1, 0, 0.1), body="kinematic")
    scene.add(module.Sphere(0.5), position=(4, -1, 0.5), body="dynamic")
    scene.add_obstacle(module.Box((0.3, 0.3, 0.8)), position=(0, 2.5, 0.6), rotation=turn)
    scene.add_obstacle(module.Capsule(0.3, 0.7), position=(-4, 0, 0.6))


def places(seed, n):
    rng = np.random.default_rng(seed + 50)
    return np.column_stack([rng.uniform(-4, 4, (n, 2)), rng.uniform(1.2, 1.8, n)])


def moved(crowd, seed, steps=3):
    rng = np.random.default_rng(seed + 60)
    for _ in range(steps):
        crowd.move(rng.normal(0, 0.1, (len(crowd), 3)) - (0, 0, 0.25), 1 / 30)


def angles(seed, n):
    rng = np.random.default_rng(seed + 70)
    return rng.uniform(-9, 9, n), rng.uniform(-1.2, 1.2, n)


def assert_same(found, expected):
    assert list(found) == list(expected)
    for key, array in found.items():
        assert array.dtype == expected[key].dtype and array.shape == expected[key].shape, key
        # -0.0 and 0.0 are different bits.
        assert array.tobytes() == expected[key].tobytes(), (key, array, expected[key])


def crowds(seed, n, **parameters):
    """The same crowd in pycct and in its twin."""
    made = []
    for module in (pycct, reference):
        scene = module.Scene()
        fill(module, scene, seed)
        crowd = module.Crowd(scene, places(seed, n), group=np.arange(n) % 2, **parameters)
        moved(crowd, seed)
        made.append(crowd)
    return made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("up", [(0, 0, 1), (0.2, -0.3, 0.9), (0, 0, -1)])
def test_the_plain_twin_sees_the_same(seed, up):
    n = 7
    ours, theirs = crowds(seed, n, up=up, contact_offset=0.02)
    yaw, pitch = angles(seed, n)
    expected = reference.Sensors(theirs, EVERYTHING).look(yaw, pitch)
    assert_same(Sensors(ours, EVERYTHING).look(yaw, pitch), expected)
    assert_same(Sensors(ours, EVERYTHING).look(yaw, pitch, threads=2), expected)
    # The scenes leave nothing out.
    assert {Seen.STATIC, Seen.CHARACTER} <= set(expected["depth.kind"].ravel()) | set(expected["lidar.kind"].ravel())


def test_every_kind_of_object_is_seen():
    seen = set()
    for seed in range(6):
        crowd, _ = crowds(seed, 6)
        seen |= set(Sensors(crowd, {"depth": DepthGrid(12, 8, 2.0, fields=["kind"])}).look()["depth.kind"].ravel())
    assert seen == set(Seen)


def test_the_twin_sees_the_same_in_many_worlds():
    n, made = 8, []
    for module in (pycct, reference):
        scenes = [module.Scene() for _ in range(3)]
        for k, scene in enumerate(scenes):
            fill(module, scene, k)
        crowd = module.Crowd(
            module.Worlds(scenes), places(1, n), world=np.arange(n) % 3, group=[0, 0, 0, 0, 0, 0, 1, 1]
        )
        moved(crowd, 1)
        made.append(module.Sensors(crowd, EVERYTHING).look(0.3, 0.1))
    assert_same(*made)


def test_the_twin_sees_the_same_with_single_controllers():
    n, made = 6, []
    for module in (pycct, reference):
        scenes = [module.Scene(), module.Scene()]
        for k, scene in enumerate(scenes):
            fill(module, scene, k)
        heroes = [module.CharacterController(scenes[i % 2], place, radius=0.3) for i, place in enumerate(places(2, n))]
        heroes[0].add_proxy()
        for _ in range(3):
            for i, hero in enumerate(heroes):
                hero.move((0.1 * i - 0.2, 0.05, -0.3), 1 / 30)
        made.append(module.Sensors(heroes[::-1], EVERYTHING).look(0.3, 0.1))
    assert_same(*made)


def big_scene():
    """A terrain with things on it, too large for the twin."""
    rng = np.random.default_rng(8)
    scene = Scene()
    k = 41
    x, y = np.meshgrid(np.linspace(-20, 20, k), np.linspace(-20, 20, k), indexing="ij")
    vertices = np.column_stack([x.ravel(), y.ravel(), rng.uniform(-0.6, 0.4, k * k)])
    cell = np.arange(k * k).reshape(k, k)
    a, b, c, d = (m.ravel() for m in (cell[:-1, :-1], cell[1:, :-1], cell[1:, 1:], cell[:-1, 1:]))
    triangles = np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    scene.add(pycct.Mesh(vertices, triangles, triangle_data=np.arange(len(triangles))))
    scene.add(pycct.Heightfield(rng.uniform(0, 1.5, (12, 12)), 0.9), position=(3, 3, 0.1), rotation=(0, 0, 0.6, 0.8))
    for _ in range(60):
        box = pycct.Box(rng.uniform(0.2, 0.9, 3))
        q = rng.normal(size=4)
        scene.add(
            box,
            position=(*rng.uniform(-12, 12, 2), 0.8),
            rotation=q / np.sqrt((q * q).sum()),
            body=("static", "kinematic")[int(rng.integers(2))],
        )
    ring = np.linspace(0, 2 * np.pi, 25)[:-1]
    hull = pycct.ConvexHull(np.column_stack([np.cos(ring), np.sin(ring), 0.3 * np.sin(3 * ring)]))
    for _ in range(10):
        scene.add(hull, position=(*rng.uniform(-12, 12, 2), 0.5))
    return scene


def rays_of(sensor, crowd, yaw, pitch):
    """Origins (n, k, 3), directions (n, k, 3) and length of the rays of a sensor, from the twin."""
    rows = []
    for i, place in enumerate(crowd.positions.tolist()):
        hero = reference.CharacterController(
            reference.Scene(), place, up=tuple(crowd.get("up")[i]), contact_offset=float(crowd.get("contact_offset")[i])
        )
        rows.append(list(twin._rays(sensor, twin._Frame(hero, yaw[i], pitch[i]))))
    origins, ways = (np.array([[ray[k] for ray in row] for row in rows]) for k in (0, 1))
    return origins, ways, rows[0][0][3]


@pytest.mark.parametrize("up", [(0, 0, 1), (0.3, 0.1, 0.8)])
@pytest.mark.parametrize(
    "sensor",
    [
        Lidar(33, 15.0, fields=RAYS),
        DepthGrid(16, 9, 1.5, 60.0, fields=RAYS),
        HeightScan((11, 11), 0.2, 3.0, above=2.0, fields=RAYS),
        HeightScan((9, 14), (0.9, 0.5), 2.0, fields=RAYS),
        HeightScan((1, 1), 1.0, 2.0, fields=RAYS),
    ],
    ids=["lidar", "depth", "scan", "wide scan", "one cell"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_each_ray_is_a_raycast(up, sensor, turned):
    n = 120
    rng = np.random.default_rng(3)
    scene = big_scene()
    crowd = Crowd(scene, np.column_stack([rng.uniform(-14, 14, (n, 2)), rng.uniform(0.5, 2.5, n)]), up=up)
    yaw = rng.uniform(-4, 4, n) if turned else np.zeros(n)
    pitch = rng.uniform(-1, 1, n) if turned else np.zeros(n)
    seen = Sensors(crowd, {"s": sensor}).look(yaw, pitch, threads=2)
    origins, ways, reach = rays_of(sensor, crowd, yaw, pitch)
    k = origins.shape[1]
    expected = scene.raycast_many(
        origins.reshape(-1, 3), ways.reshape(-1, 3), reach, include="all", exclude=np.repeat(crowd.ids, k)
    )
    assert expected.hit.mean() > 0.1
    for name in ("distance", "normal", "triangle", "data"):
        column = getattr(expected, name)
        assert seen[f"s.{name}"].reshape(column.shape).tobytes() == column.tobytes(), name
    who = np.where(expected.controller >= 0, expected.controller, expected.actor)
    assert (seen["s.id"].ravel() == who).all()


def test_more_objects_and_cells_than_one_look_up_finds():
    """Lists of near objects and grids have a largest size; beyond it, rays are cast one by one."""
    n = 300
    rng = np.random.default_rng(5)
    scene = big_scene()
    for _ in range(300):
        scene.add(pycct.Sphere(0.1), position=(*rng.uniform(-3, 3, 2), rng.uniform(0, 1)), body="kinematic")
    crowd = Crowd(scene, np.column_stack([rng.uniform(-6, 6, (n, 2)), rng.uniform(0.5, 2.5, n)]))
    for sensor, some in ((Lidar(8, 15.0, fields=RAYS), n), (HeightScan((33, 32), 0.2, 2.0, fields=RAYS), 20),
                         (HeightScan((8, 8), 0.9, 2.0, fields=RAYS), 60)):
        seen = Sensors(crowd, {"s": sensor}).look(0.5)
        origins, ways, reach = rays_of(sensor, crowd, np.full(n, 0.5), np.zeros(n))
        k = origins.shape[1]
        expected = scene.raycast_many(origins[:some].reshape(-1, 3), ways[:some].reshape(-1, 3), reach,
                                      include="all", exclude=np.repeat(crowd.ids[:some], k))
        for name in ("distance", "normal", "triangle"):
            column = getattr(expected, name)
            assert seen[f"s.{name}"][:some].reshape(column.shape).tobytes() == column.tobytes(), name


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_scans_meet_slivers_upright_triangles_and_edges_below_cells(two_sided, offset):
    """The grid skips cells outside of a triangle; edges exactly below cells still count."""
    n = 1500
    rng = np.random.default_rng(8)
    corners = rng.integers(-32, 33, (n, 3, 3)) / 8.0 * (1, 1, 0.25)
    corners[: n // 4, 2] = corners[: n // 4, 0] + rng.normal(0, 1e-9, (n // 4, 3))
    corners[n // 4 : n // 2, 2, :2] = corners[n // 4 : n // 2, 1, :2]
    corners[n // 2 : 3 * n // 4] *= (0.1, 0.1, 1)
    corners[n // 2 : 3 * n // 4] += rng.integers(-32, 33, (n // 4, 1, 3)) / 8.0 * (1, 1, 0.25)
    corners += (offset, 0, 0)
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    corners = corners[(area * area).sum(1) > 1e-24]
    scene = Scene()
    scene.add(pycct.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), two_sided=two_sided))
    members = rng.integers(-16, 17, (60, 3)) / 8.0 * (1, 1, 0) + (offset, 0, 2.0)
    crowd = Crowd(scene, members, contact_offset=0.125)
    for yaw in (0.0, 0.7):
        sensor = HeightScan((9, 7), 0.125, 3.0, above=2.0, fields=RAYS)
        seen = Sensors(crowd, {"s": sensor}).look(yaw)
        origins, ways, reach = rays_of(sensor, crowd, np.full(60, yaw), np.zeros(60))
        expected = scene.raycast_many(origins.reshape(-1, 3), ways.reshape(-1, 3), reach, include="all",
                                      exclude=np.repeat(crowd.ids, origins.shape[1]))
        assert 0.2 < expected.hit.mean()
        for name in ("distance", "normal", "triangle"):
            column = getattr(expected, name)
            assert seen[f"s.{name}"].reshape(column.shape).tobytes() == column.tobytes(), name


def test_fields_types_and_memory():
    crowd, _ = crowds(1, 5)
    sensors = Sensors(crowd, EVERYTHING)
    first = sensors.look(0.2)
    kept = {key: array.copy() for key, array in first.items()}
    again = sensors.look(0.2, threads=2)
    assert all(again[key] is first[key] for key in first)
    assert_same(again, kept)
    small = Sensors(crowd, EVERYTHING, dtype=np.float32).look(0.2)
    for key, array in kept.items():
        expected = array.astype(np.float32) if array.dtype == np.float64 else array
        assert small[key].dtype == expected.dtype and small[key].tobytes() == expected.tobytes()
    out = {"lidar.distance": np.zeros((5, 7), np.float32), "near.id": np.zeros((5, 3), np.int64)}
    mixed = sensors.look(0.2, out=out)
    assert mixed["lidar.distance"] is out["lidar.distance"] and mixed["near.id"] is out["near.id"]
    assert (out["lidar.distance"] == kept["lidar.distance"].astype(np.float32)).all()
    assert mixed["scan.height"] is first["scan.height"]
    only = Sensors(crowd, {"a": Lidar(7, 6.0, fields=["id"])}).look(0.2)
    assert list(only) == ["a.id"] and (only["a.id"] == kept["lidar.id"]).all()


def test_arrays_follow_the_number_of_members():
    crowd, _ = crowds(1, 5)
    sensors = Sensors(crowd, EVERYTHING)
    before = sensors.look()["lidar.distance"]
    crowd.remove([1, 2])
    after = sensors.look()["lidar.distance"]
    assert before.shape == (5, 7) and after.shape == (3, 7)
    crowd.remove([0, 1, 2])
    assert sensors.look()["lidar.distance"].shape == (0, 7)
    assert Sensors([], EVERYTHING).look()["feet.normal"].shape == (0, 3)
    assert Sensors(crowd, {}).look() == {}


def test_members_see_their_own_group_only_and_never_themselves():
    scene = Scene()
    crowd = Crowd(scene, [(0, 0, 1), (2, 0, 1), (0, 2, 1), (-2, 0, 1)], group=[0, 0, 1, 0])
    sensors = Sensors(crowd, {"lidar": Lidar(4, 9.0, fields=["id", "kind"]), "near": Neighbours(3, 9.0)})
    a, b, _, d = crowd.ids.tolist()
    seen = sensors.look()
    assert seen["lidar.id"].tolist() == [[b, -1, d, -1], [-1, -1, a, -1], [-1, -1, -1, -1], [a, -1, -1, -1]]
    assert set(seen["lidar.kind"].ravel().tolist()) == {Seen.NOTHING, Seen.CHARACTER}
    assert seen["near.id"].tolist() == [[b, d, -1], [a, d, -1], [-1, -1, -1], [a, b, -1]]
    # Another crowd, and single controllers, are no members.
    pycct.CharacterController(scene, (0, -2, 1))
    Crowd(scene, [(0, -1, 1)])
    assert sensors.look()["lidar.id"].tolist()[0] == [b, -1, d, -1]


def test_a_layer_outside_of_the_mask_is_not_seen():
    crowd = Crowd(Scene(), [(0, 0, 1), (2, 0, 1)], layer=[1, 4])
    seen = Sensors(crowd, {"a": Lidar(1, 9.0, mask=1), "b": Lidar(1, 9.0, mask=4)}).look([0, np.pi])
    assert seen["a.distance"].tolist()[0] == [9.0] and seen["a.distance"].tolist()[1] != [9.0]
    assert seen["b.distance"].tolist()[0] != [9.0] and seen["b.distance"].tolist()[1] == [9.0]


def test_yaw_and_pitch_turn_counter_clockwise_and_up():
    scene = Scene()
    wall = scene.add(pycct.Box((9, 0.5, 9)), position=(0, 9.5, 0))
    crowd = Crowd(scene, [(0, 0, 0)])
    sensors = Sensors(
        crowd,
        {
            "lidar": Lidar(1, 20.0, fields=["distance", "id"]),
            "tilted": Lidar(1, 20.0, tilts=True, fields=["id"]),
            "depth": DepthGrid(1, 1, 1.0, fields=["depth", "distance"]),
        },
    )
    assert sensors.look()["lidar.id"].item() == -1
    seen = sensors.look(yaw=np.pi / 2)
    assert seen["lidar.id"].item() == wall.id and seen["lidar.distance"].item() == pytest.approx(9.0)
    assert seen["depth.depth"].item() == pytest.approx(9.0)
    # A pinhole sees the left of the picture in column 0 and the top in row 0.
    picture = Sensors(crowd, {"d": DepthGrid(5, 3, 1.5, fields=["id"])})
    aside = picture.look(yaw=np.pi / 2 - 0.9)["d.id"][0]
    assert (aside[:, 0] == wall.id).all() and (aside[:, -1] == -1).all()
    above = picture.look(yaw=np.pi / 2, pitch=0.9)["d.id"][0]
    assert (above[0] == -1).all() and (above[-1] == wall.id).all()
    steep = sensors.look(yaw=np.pi / 2, pitch=1.2)
    assert steep["tilted.id"].item() == -1 and steep["lidar.id"].item() == wall.id


def test_a_scan_is_relative_to_the_feet_and_turns():
    scene = Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    scene.add(pycct.Box((0.5, 0.5, 0.25)), position=(0, 2, 0.25))
    crowd = Crowd(scene, [(0, 0, 1.91)], radius=0.4, height=1.0, contact_offset=0.01)
    scan = Sensors(crowd, {"s": HeightScan((3, 3), 2.0, 2.0)})
    assert scan.look()["s.height"][0].round(9).tolist() == [[-1] * 3, [-1, -1, -0.5], [-1] * 3]
    assert scan.look(np.pi / 2)["s.height"][0].round(9).tolist() == [[-1] * 3, [-1] * 3, [-1, -0.5, -1]]
    short = Sensors(crowd, {"s": HeightScan((1, 1), 2.0, 0.5)}).look()["s.height"]
    assert short.item() == -0.5


def test_neighbours_are_the_nearest_and_ties_go_by_id():
    n = 60
    rng = np.random.default_rng(4)
    # Whole numbers: many distances are equal.
    crowd = Crowd(Scene(), rng.integers(0, 6, (n, 3)).astype(float), group=rng.integers(0, 2, n))
    moved(crowd, 4, 1)
    crowd.teleport(np.arange(n), rng.integers(0, 6, (n, 3)).astype(float))
    group, p, v = crowd.get("group"), crowd.positions.copy(), crowd.velocities.copy()
    for k, radius in ((1, 9.0), (5, 3.0), (40, 4.0)):
        seen = Sensors(crowd, {"n": Neighbours(k, radius, fields=Neighbours.known)}).look(threads=2)
        for i in range(n):
            far = ((p - p[i]) ** 2).sum(axis=1)
            mates = [j for j in range(n) if j != i and group[j] == group[i] and far[j] <= radius * radius]
            mates = sorted(mates, key=lambda j: (far[j], crowd.ids[j]))[:k]
            m = len(mates)
            assert seen["n.id"][i].tolist() == crowd.ids[mates].tolist() + [-1] * (k - m)
            assert (seen["n.position"][i, :m] == p[mates] - p[i]).all() and not seen["n.position"][i, m:].any()
            assert (seen["n.velocity"][i, :m] == v[mates] - v[i]).all() and not seen["n.velocity"][i, m:].any()
            assert (seen["n.distance"][i, m:] == radius).all()


def test_feet_are_the_ground_of_the_last_move():
    scene = Scene()
    ground = scene.add(pycct.Plane((0, 0, 1)))
    lift = scene.add(pycct.Box((1, 1, 0.1)), position=(5, 0, 0.4), body="kinematic")
    crate = scene.add_obstacle(pycct.Box((1, 1, 0.25)), position=(-5, 0, 0.25))
    crowd = Crowd(scene, [(0, 0, 1), (5, 0, 1.5), (-5, 0, 1.5), (0, 9, 9)])
    sensors = Sensors(crowd, {"feet": Feet()})
    assert sensors.look()["feet.id"].tolist() == [-1] * 4
    for _ in range(8):
        crowd.move([(0, 0, -0.1)] * 4, 1 / 60)
    seen, told = sensors.look(), crowd.ground
    assert seen["feet.id"].tolist() == [ground.id, lift.id, crate.id, -1]
    assert seen["feet.kind"].tolist() == [Seen.STATIC, Seen.MOVING, Seen.OBSTACLE, Seen.NOTHING]
    assert (seen["feet.normal"] == told.normal).all() and (seen["feet.distance"] == told.distance).all()
    assert (seen["feet.walkable"] == told.walkable).all()
    scene.remove(lift)
    assert sensors.look()["feet.kind"].tolist()[1] == Seen.NOTHING


def test_a_look_sees_one_snapshot():
    """Two walls change places in one edit; every member of a look sees the same arrangement."""
    scene = Scene()
    near, far = (2.0, 0.0, 0.0), (0.0, 0.0, 500.0)
    walls = [
        scene.add(pycct.Box((0.5, 400, 5)), position=near, body="kinematic"),
        scene.add(pycct.Box((0.5, 400, 5)), position=far, body="kinematic"),
    ]
    crowd = Crowd(scene, [(0, 2.0 * k, 0) for k in range(150)])
    sensors = Sensors(crowd, {"l": Lidar(1, 9.0, fields=["id"])})
    stop = threading.Event()

    def swap():
        turn = 0
        while not stop.is_set():
            turn += 1
            with scene.edit():
                for k, wall in enumerate(walls):
                    wall.move_to(near if (k + turn) % 2 else far)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = set()
        for _ in range(300):
            ids = set(sensors.look(threads=2)["l.id"].ravel().tolist())
            assert len(ids) == 1 and ids <= {wall.id for wall in walls}
            found |= ids
    finally:
        stop.set()
        thread.join()
    assert len(found) == 2


def test_another_thread_gets_an_error_not_a_wrong_answer():
    crowd, _ = crowds(1, 3)
    sensors = Sensors(crowd, EVERYTHING)
    refused = []

    def listener(target, name, arguments):
        def look():
            try:
                sensors.look()
            except RuntimeError as error:
                refused.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    crowd.journal = listener
    crowd.move(np.zeros((3, 3)), 1 / 60)
    assert len(refused) == 1
    hero = pycct.CharacterController(Scene(), (0, 0, 1))
    watch = Sensors([hero], EVERYTHING)
    hero.remove()
    with pytest.raises(RuntimeError, match="removed"):
        watch.look()


def test_copies_and_pickles():
    crowd, _ = crowds(2, 4)
    sensors = Sensors(crowd, EVERYTHING, dtype="f4")
    expected = sensors.look(0.4)
    kept = {key: array.copy() for key, array in expected.items() if not key.endswith(".id")}
    for other in (copy.deepcopy(sensors), pickle.loads(pickle.dumps(sensors))):
        assert other.sensors == EVERYTHING and other.dtype == np.float32 and other.crowd is not crowd
        again = other.look(0.4)
        assert all(again[key].tobytes() == array.tobytes() for key, array in kept.items())
    assert "lidar" in repr(sensors) and sensors.crowd is crowd


WRONG_SENSORS = [
    (lambda: Lidar(0, 1.0), ValueError, "rays"),
    (lambda: Lidar(2.5, 1.0), TypeError, "rays"),
    (lambda: Lidar(True, 1.0), TypeError, "rays"),
    (lambda: Lidar(2**21, 1.0), ValueError, "rays"),
    (lambda: Lidar(3, -1.0), ValueError, "reach"),
    (lambda: Lidar(3, np.nan), ValueError, "reach"),
    (lambda: Lidar(3, "far"), TypeError, "reach"),
    (lambda: Lidar(3, 1.0, np.inf), ValueError, "height"),
    (lambda: Lidar(3, 1.0, fov=0.0), ValueError, "fov"),
    (lambda: Lidar(3, 1.0, fov=7.0), ValueError, "fov"),
    (lambda: Lidar(3, 1.0, tilts=1), TypeError, "tilts"),
    (lambda: Lidar(3, 1.0, mask=-1), ValueError, "mask"),
    (lambda: Lidar(3, 1.0, mask=1.5), TypeError, "mask"),
    (lambda: Lidar(3, 1.0, fields=["height"]), ValueError, "fields"),
    (lambda: Lidar(3, 1.0, fields="distance"), TypeError, "fields"),
    (lambda: Lidar(3, 1.0, fields=3), TypeError, "fields"),
    (lambda: Lidar(3, 1.0, fields=[]), ValueError, "fields"),
    (lambda: Lidar(3, 1.0, fields=["id", "id"]), ValueError, "fields"),
    (lambda: HeightScan(3, 1.0, 1.0), ValueError, "shape"),
    (lambda: HeightScan((3, 0), 1.0, 1.0), ValueError, "shape"),
    (lambda: HeightScan((2000, 2000), 1.0, 1.0), ValueError, "cells"),
    (lambda: HeightScan((3, 3), 0.0, 1.0), ValueError, "spacing"),
    (lambda: HeightScan((3, 3), (1.0, 2.0, 3.0), 1.0), ValueError, "spacing"),
    (lambda: HeightScan((3, 3), 1.0, -1.0), ValueError, "reach"),
    (lambda: HeightScan((3, 3), 1.0, 1.0, above=-0.1), ValueError, "above"),
    (lambda: DepthGrid(0, 3, 1.0), ValueError, "width"),
    (lambda: DepthGrid(3, 3, 3.1), ValueError, "fov"),
    (lambda: DepthGrid(3, 3, 1.0, eye=np.nan), ValueError, "eye"),
    (lambda: DepthGrid(2000, 2000, 1.0), ValueError, "pixels"),
    (lambda: Neighbours(0, 1.0), ValueError, "k"),
    (lambda: Neighbours(3, -1.0), ValueError, "radius"),
    (lambda: Neighbours(3, 1.0, fields=["normal"]), ValueError, "fields"),
    (lambda: Feet(fields=["depth"]), ValueError, "fields"),
]


@pytest.mark.parametrize("number", range(len(WRONG_SENSORS)))
def test_wrong_sensors(number):
    make, error, name = WRONG_SENSORS[number]
    with pytest.raises(error, match=name):
        make()


def test_wrong_arguments_change_nothing():
    crowd, _ = crowds(1, 4)
    good = {"l": Lidar(3, 5.0, fields=["distance", "normal", "kind"]), "n": Neighbours(2, 5.0)}
    for sensors, error in (
        ([], TypeError),
        ({"": Feet()}, TypeError),
        ({1: Feet()}, TypeError),
        ({"a": "lidar"}, TypeError),
        ({"a": Lidar}, TypeError),
    ):
        with pytest.raises(error, match="sensors"):
            Sensors(crowd, sensors)
    for dtype, error in ((np.int32, ValueError), ("f2", ValueError), (">f8", ValueError), ("what", TypeError)):
        with pytest.raises(error, match="dtype"):
            Sensors(crowd, good, dtype=dtype)
    hero = pycct.CharacterController(crowd.scene, (0, 0, 9))
    for who, error in ((crowd.scene, TypeError), ([1], TypeError), ([hero, hero], ValueError), (hero, TypeError)):
        with pytest.raises(error, match="crowd"):
            Sensors(who, good)
    watch = Sensors(crowd, good)
    kept = {key: array.copy() for key, array in watch.look().items()}
    frozen = np.zeros((4, 3))
    frozen.flags.writeable = False
    wide = np.zeros((4, 6))
    shared = np.zeros(40)
    for options, error, name in (
        ({"yaw": [0.0] * 3}, ValueError, "yaw"),
        ({"yaw": np.nan}, ValueError, "yaw"),
        ({"yaw": "left"}, TypeError, "yaw"),
        ({"yaw": 1e7}, ValueError, "yaw"),
        ({"pitch": np.inf}, ValueError, "pitch"),
        ({"pitch": [[0.0] * 4]}, ValueError, "pitch"),
        ({"yaw": 1j}, TypeError, "yaw"),
        ({"yaw": None}, TypeError, "yaw"),
        ({"threads": 0}, ValueError, "threads"),
        ({"threads": "two"}, TypeError, "threads"),
        ({"out": [frozen]}, TypeError, "out"),
        ({"out": {"l": frozen}}, ValueError, "l.distance"),
        ({"out": {"l.id": frozen}}, ValueError, "l.id"),
        ({"out": {"l.distance": frozen}}, ValueError, "writeable"),
        ({"out": {"l.distance": np.zeros((3, 3))}}, ValueError, "shape"),
        ({"out": {"l.distance": np.zeros((4, 3), np.int64)}}, TypeError, "l.distance"),
        ({"out": {"l.distance": np.zeros((4, 3), ">f8")}}, TypeError, "l.distance"),
        ({"out": {"l.kind": np.zeros((4, 3))}}, TypeError, "l.kind"),
        ({"out": {"l.distance": [[0.0] * 3] * 4}}, TypeError, "l.distance"),
        ({"out": {"l.distance": wide[:, ::2]}}, ValueError, "contiguous"),
        (
            {"out": {"l.distance": shared[:12].reshape(4, 3), "l.normal": shared[4:].reshape(4, 3, 3)}},
            ValueError,
            "share",
        ),
        (
            {
                "out": {
                    "l.normal": np.zeros(36),
                }
            },
            ValueError,
            "shape",
        ),
    ):
        with pytest.raises(error, match=name):
            watch.look(**options)
    for name in ("yaw", "pitch"):
        for odd in ([1, 2, [3]], ["a"], None, 10**400):
            with pytest.raises((ValueError, TypeError), match=name):
                watch.look(**{name: odd})
    # The arrays of the last look, given for another field, are still in use.
    last = watch.look()
    with pytest.raises(ValueError, match="share"):
        watch.look(out={"n.position": last["n.velocity"]})
    for key, array in kept.items():
        assert last[key].tobytes() == array.tobytes()
    with pytest.raises(RuntimeError, match="once"):
        watch.__init__(crowd, good)
    with pytest.raises(RuntimeError, match="not initialised"):
        Sensors.__new__(Sensors).look()


def test_worlds_and_a_scene_give_the_same():
    scenes = [Scene(), Scene()]
    for k, scene in enumerate(scenes):
        fill(pycct, scene, k)
    n = 40
    crowd = Crowd(Worlds(scenes), places(5, n), world=np.arange(n) % 2)
    seen = Sensors(crowd, {"l": Lidar(16, 9.0)}).look(0.1, threads=2)["l.distance"]
    for k, scene in enumerate(scenes):
        alone = Crowd(scene, crowd.positions[k::2])
        assert (Sensors(alone, {"l": Lidar(16, 9.0)}).look(0.1)["l.distance"] == seen[k::2]).all()


LONG = [10**5000, "x" * 100_000, b"y" * 10_000, [10**5000] * 3, ["z" * 100_000], np.zeros((3, 3, 3)), object()]


@pytest.mark.parametrize("value", LONG, ids=range(len(LONG)))
def test_messages_are_short_and_name_the_argument(value):
    crowd = pycct.Crowd(pycct.Scene(), [(0, 0, 1)])
    eyes = pycct.Sensors(crowd, {"eye": pycct.Lidar(4, 3.0)})
    plain = [
        (pycct.Lidar, {"rays": 4, "reach": 3.0}, ("height", "fov", "tilts", "mask", "fields")),
        (pycct.HeightScan, {"shape": (2, 2), "spacing": 0.5, "reach": 1.0}, ("above", "mask", "fields")),
        (pycct.DepthGrid, {"width": 2, "height": 2, "fov": 1.0}, ("reach", "eye", "mask", "fields")),
        (pycct.Neighbours, {"k": 2, "radius": 1.0}, ("fields",)),
        (pycct.Feet, {}, ("fields",)),
        (lambda **more: pycct.Sensors(crowd, **{"sensors": {"eye": pycct.Feet()}, **more}), {}, ("sensors", "dtype")),
        (eyes.look, {}, ("yaw", "pitch", "out")),
    ]
    calls = [(make, {**good, name: value}, name) for make, good, more in plain for name in (*good, *more)]
    calls += [(lambda value: pycct.Sensors(crowd, {value: pycct.Feet()}), {"value": value}, "sensors")]
    calls += [(lambda value: eyes.look(out={value: 1}), {"value": value}, "out")]
    for make, arguments, name in calls:
        if name in ("sensors", "out") and isinstance(value, (list, np.ndarray)) and "value" in arguments:
            continue
        if name == "sensors" and isinstance(value, str) and "value" in arguments:
            continue
        with pytest.raises((TypeError, ValueError)) as error:
            make(**arguments)
        assert len(str(error.value)) < 300 and name in str(error.value), name
