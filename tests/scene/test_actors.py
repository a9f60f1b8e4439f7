"""Adding, moving, hiding and removing actors; the properties of hits."""

import gc
import math
import weakref

import numpy as np
import pytest

from pycct import Behavior, Box, Capsule, CharacterController, CollisionFlags, ConvexHull, Mesh, Plane, Scene, Sphere

DT = 1 / 60
RADIUS, HEIGHT, OFFSET = 0.4, 1.0, 0.01
REST = HEIGHT / 2 + RADIUS + OFFSET


def floor_scene():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    return scene


def hero_in(scene, x=0.0, y=0.0, z=REST, **more):
    return CharacterController(scene, (x, y, z), RADIUS, HEIGHT, contact_offset=OFFSET, **more)


def stops_at(hero):
    """How far along +x a character moves."""
    hero.move((10, 0, -0.01), DT)
    return hero.position[0]


def post(scene, x, **more):
    return scene.add(Box((0.5, 5, 5)), position=(x + 0.5, 0, 5), **more)


# --- ids, lists, user data


def test_ids_count_up_and_are_never_used_again():
    scene = Scene()
    a, b = scene.add(Sphere(1)), scene.add(Sphere(1))
    assert (a.id, b.id) == (0, 1)
    scene.remove(b)
    c = scene.add(Sphere(1))
    assert c.id == 2
    assert scene.actors == [a, c] and len(scene) == 2
    assert scene.actor(0) is a and scene.actor(1) is None and scene.actor(2) is c
    assert a.scene is scene and b.scene is None


def test_properties_of_an_actor():
    scene = Scene()
    shape = Box((1, 2, 3))
    actor = scene.add(
        shape,
        (1, 2, 3),
        (0, 0, 1, 0),
        (1, 2, -1),
        body="kinematic",
        layer=0b10,
        behavior=Behavior.CAN_RIDE,
        user_data={"name": "lift"},
    )
    assert actor.shape is shape
    assert (actor.position, actor.rotation, actor.scale) == ((1, 2, 3), (0, 0, 1, 0), (1, 2, -1))
    assert (actor.body, actor.layer, actor.behavior) == ("kinematic", 2, Behavior.CAN_RIDE)
    assert actor.user_data == {"name": "lift"}
    actor.user_data = 5
    assert actor.user_data == 5
    lo, hi = actor.bounds
    np.testing.assert_allclose(lo, (0, -2, 0), atol=1e-6)
    np.testing.assert_allclose(hi, (2, 6, 6), atol=1e-6)
    assert "Box" in repr(actor) and "kinematic" in repr(actor)


def test_one_shape_may_be_in_many_places_and_scenes():
    shape = Box((0.5, 5, 5))
    one, other = floor_scene(), floor_scene()
    one.add(shape, position=(3.5, 0, 5))
    one.add(shape, position=(5.5, 0, 5))
    other.add(shape, position=(2.5, 0, 5))
    assert stops_at(hero_in(one)) == pytest.approx(3 - RADIUS - OFFSET)
    assert stops_at(hero_in(other)) == pytest.approx(2 - RADIUS - OFFSET)


def test_timestamp_counts_changes_of_static_actors_only():
    scene = Scene()
    seen = [scene.timestamp]

    def changed():
        seen.append(scene.timestamp)
        return seen[-1] > seen[-2]

    wall = scene.add(Box((1, 1, 1)))
    assert changed()
    lift = scene.add(Box((1, 1, 1)), body="kinematic")
    lift.move_to((5, 5, 5))
    scene.remove(lift)
    assert not changed()
    wall.move_to((1, 1, 1))
    assert changed()
    scene.remove(wall)
    assert changed()


def test_removed_actors_keep_nothing_alive():
    class Thing:
        pass

    scene = floor_scene()
    thing = Thing()
    wall = post(scene, 3, user_data=thing)
    hero = hero_in(scene)
    stops_at(hero)
    r = weakref.ref(thing)
    scene.remove(wall)
    hero.move((0, 0, -0.1), DT)
    del wall, thing
    gc.collect()
    assert r() is None


@pytest.mark.parametrize("cyclic", [False, True])
def test_a_lost_character_leaves_no_ghost(cyclic):
    # The garbage collector clears a reference cycle before the character ends.
    scene = Scene()
    lost = hero_in(scene, 3, collide=True)
    hero = hero_in(scene, collide=True, step_offset=0)
    assert stops_at(hero) == pytest.approx(3 - 2 * RADIUS - OFFSET)
    if cyclic:
        lost.user_data = lost
    del lost
    gc.collect()
    assert scene.characters == [hero]
    hero.teleport((0, 0, REST))
    assert stops_at(hero) == pytest.approx(10)


def test_a_proxy_removed_from_the_scene_is_forgotten():
    scene = Scene()
    hero = hero_in(scene)
    proxy = hero.add_proxy()
    hero.move((1, 0, 0), DT)
    assert proxy.position == hero.position
    scene.remove(proxy)
    hero.move((1, 0, 0), DT)
    assert hero.position[0] == pytest.approx(2) and hero.proxy is None
    assert hero.add_proxy().position == hero.position


# --- layers and masks


@pytest.mark.parametrize(
    ("layer", "mask", "seen"),
    [
        (1, 0xFFFFFFFF, True),
        (1, 1, True),
        (2, 1, False),
        (0b110, 0b011, True),
        (1 << 31, 1 << 31, True),
        (0, 0xFFFFFFFF, False),
    ],
)
@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_a_character_meets_the_layers_of_its_mask(layer, mask, seen, body):
    scene = Scene()
    wall = post(scene, 3, layer=layer, body=body)
    hero = hero_in(scene, mask=mask)
    assert stops_at(hero) == pytest.approx(3 - RADIUS - OFFSET if seen else 10)
    assert [h.actor for h in hero.hits] == ([wall] * len(hero.hits) if seen else [])
    # Queries have a mask, too.
    sees = scene.sweep(Sphere(0.1), (0, 0, 1), (1, 0, 0), 9, mask=mask)
    assert (sees is not None) == seen
    assert (scene.overlap(Sphere(1), (3.5, 0, 1), mask=mask) == [wall]) == seen
    assert ([p.actor for p in scene.penetration(Sphere(1), (3.5, 0, 1), mask=mask)] == [wall]) == seen


def test_layer_and_mask_may_change():
    scene = Scene()
    wall = post(scene, 3)
    hero = hero_in(scene)
    wall.layer = 0b100
    hero.mask = 0b011
    assert stops_at(hero) == 10
    hero.teleport((0, 0, REST))
    hero.mask = 0b110
    assert stops_at(hero) == pytest.approx(3 - RADIUS - OFFSET)
    hero.teleport((0, 0, REST))
    wall.layer = 0b001
    assert stops_at(hero) == 10
    assert (wall.layer, hero.mask) == (0b001, 0b110)


def test_recovery_sees_with_the_same_mask():
    scene = Scene()
    scene.add(Box((1, 1, 1)), layer=2)
    hero = hero_in(scene, mask=1)
    hero.move((0.01, 0, 0), DT)
    assert hero.stats.recoveries == 0 and hero.position[0] == pytest.approx(0.01)


# --- bodies


@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_all_bodies_are_solid(body):
    scene = Scene()
    scene.add(Box((9, 9, 1)), position=(0, 0, -1), body=body)
    post(scene, 3, body=body)
    hero = hero_in(scene)
    assert stops_at(hero) == pytest.approx(3 - RADIUS - OFFSET, abs=1e-6)
    assert hero.flags == CollisionFlags.SIDES | CollisionFlags.DOWN
    assert hero.state.standing_on is scene.actors[0]


@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_recovery_leaves_static_and_kinematic_bodies_but_not_dynamic_ones(body):
    # RULES 5: plain dynamic bodies that overlap are ignored.
    scene = Scene()
    # Riding would lift the character before recovery (RULES_2 6).
    scene.add(Box((9, 9, 1)), position=(0, 0, -1), body=body, behavior=Behavior.USER_DEFINED_RIDE)
    hero = hero_in(scene, z=REST - 0.2)
    hero.move((0, 0, -0.05), DT)
    if body == "dynamic":
        assert hero.stats.recoveries == 0 and hero.position[2] == pytest.approx(REST - 0.25)
    else:
        assert hero.stats.recoveries == 1 and hero.position[2] == pytest.approx(REST)


@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_only_static_slopes_are_too_steep(body):
    # RULES 5: the slope test remembers only a static actor's triangle.
    t = math.tan(math.radians(60))
    ramp = Mesh([(-9, -9, -9 * t), (9, -9, 9 * t), (9, 9, 9 * t), (-9, 9, -9 * t)], [(0, 1, 2), (0, 2, 3)])
    scene = Scene()
    scene.add(ramp, body=body)
    hero = hero_in(scene, z=3, non_walkable_mode="force_sliding")
    for _ in range(6):
        hero.move((0, 0, -0.5), DT)
    assert hero.state.sliding == (body == "static")


# --- moving and removing


@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_the_next_move_and_query_see_move_to(body):
    scene = floor_scene()
    wall = post(scene, 3, body=body)
    hero = hero_in(scene)
    assert stops_at(hero) == pytest.approx(3 - RADIUS - OFFSET)
    wall.move_to((5.5, 0, 5))
    assert stops_at(hero) == pytest.approx(5 - RADIUS - OFFSET)
    # Turned by a right angle, the box is 10 m long along x, with its centre at 12.
    wall.move_to((12, 0, 5), (0, 0, math.sqrt(0.5), math.sqrt(0.5)))
    assert stops_at(hero) == pytest.approx(7 - RADIUS - OFFSET)
    assert wall.rotation == pytest.approx((0, 0, math.sqrt(0.5), math.sqrt(0.5)))
    wall.move_to((13, 0, 5))
    assert wall.rotation == pytest.approx((0, 0, math.sqrt(0.5), math.sqrt(0.5)))
    assert scene.sweep(Sphere(0.5), (0, 0, 2), (1, 0, 0), 99).distance == pytest.approx(7.5)


@pytest.mark.parametrize("body", ["static", "kinematic", "dynamic"])
def test_a_character_on_a_removed_actor_falls(body):
    scene = Scene()
    stage = scene.add(Box((2, 2, 0.1)), position=(0, 0, -0.1), body=body)
    hero = hero_in(scene)
    hero.move((0, 0, -0.1), DT)
    assert hero.grounded and hero.state.standing_on is stage
    scene.remove(stage)
    assert hero.state.standing_on is None
    hero.move((0, 0, -0.1), DT)
    assert not hero.grounded and hero.position[2] == pytest.approx(REST - 0.1)


def test_a_thousand_actors_come_and_go():
    scene = Scene()
    rng = np.random.default_rng(1)
    living = []
    for k in range(1000):
        if living and rng.random() < 0.4:
            scene.remove(living.pop(rng.integers(len(living))))
        else:
            body = ("static", "kinematic", "dynamic")[k % 3]
            living.append(scene.add(Sphere(0.3), position=rng.uniform(-5, 5, 3), body=body))
        if k % 50 == 0:
            want = sorted(a.id for a in living if math.dist(a.position, (0, 0, 0)) < 2.3)
            assert [a.id for a in scene.overlap(Sphere(2), (0, 0, 0))] == want
    assert sorted(a.id for a in scene.actors) == sorted(a.id for a in living)


# --- scale


def rock(seed, n=40):
    """A closed convex surface of triangles that face outwards."""
    hull = ConvexHull(np.random.default_rng(seed).normal(size=(n, 3)))
    v = np.asarray(hull.vertices)
    middle = v.mean(0)
    faces = []
    for i in range(len(v)):
        for j in range(i + 1, len(v)):
            for k in range(j + 1, len(v)):
                n = np.cross(v[j] - v[i], v[k] - v[i])
                side = (v - v[i]) @ n
                if (side < 1e-9).all() or (side > -1e-9).all():
                    faces.append((i, j, k) if (v[i] - middle) @ n > 0 else (i, k, j))
    return v, np.array(faces)


SCALES = [(2, 2, 2), (1, 2, 0.5), (-1, 1, 1), (0.7, -1.5, 2), (-1, -1, 1), (-0.5, -2, -1.2)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["mesh", "hull", "box"])
def test_scale_is_the_same_as_scaled_vertices(kind, scale):
    # SWEEP 12.3: a normal transforms otherwise than a direction; a mirror turns the winding.
    rng = np.random.default_rng(abs(hash((kind, scale))) % 1000)
    v, t = rock(3)
    baked = v * scale
    flip = np.prod(scale) < 0
    shapes = {
        "mesh": (Mesh(v, t), Mesh(baked, t[:, ::-1] if flip else t)),
        "hull": (ConvexHull(v), ConvexHull(baked)),
        "box": (Box((1, 0.5, 0.7)), Box(tuple(abs(a * b) for a, b in zip((1, 0.5, 0.7), scale, strict=True)))),
    }[kind]
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    a, b = Scene(), Scene()
    a.add(shapes[0], position=(0.3, -0.2, 0.1), rotation=q, scale=scale)
    b.add(shapes[1], position=(0.3, -0.2, 0.1), rotation=q)
    met = 0
    for _ in range(200):
        start = rng.normal(size=3)
        start *= 6 / np.linalg.norm(start)
        way = rng.normal(size=3) * 0.8 - start
        h, g = (s.sweep(Capsule(0.2, 0.6), start, way, 9, rotation=q) for s in (a, b))
        assert (h is None) == (g is None)
        if h is not None:
            met += 1
            assert h.distance == pytest.approx(g.distance, abs=1e-9)
            np.testing.assert_allclose(h.position, g.position, atol=1e-6)
            np.testing.assert_allclose(h.normal, g.normal, atol=1e-6)
            assert np.dot(h.normal, way) < 0
    assert met > 50
    for k in range(6):
        heroes = [hero_in(s, *(rng.normal(size=2) * 0), 4) for s in (a, b)]
        d = rng.normal(size=(40, 3)) * 0.1 + (0.05 * k - 0.1, 0, -0.15)
        for row in d:
            flags = [h.move(row, DT) for h in heroes]
            assert flags[0] == flags[1]
            np.testing.assert_allclose(heroes[0].position, heroes[1].position, atol=1e-7)
            heroes[1].position = heroes[0].position


@pytest.mark.parametrize("scale", SCALES)
def test_a_scaled_normal_is_the_inverse_transpose(scale):
    # SWEEP 12.3 and 12.4, against the matrix.
    v, t = rock(5)
    scene = Scene()
    scene.add(Mesh(v, t), scale=scale)
    rng = np.random.default_rng(2)
    checked = 0
    for _ in range(100):
        start = rng.normal(size=3)
        start *= 9 / np.linalg.norm(start)
        hit = scene.sweep(Sphere(1e-3), start, -start, 9)
        if hit is None:
            continue
        corners = v[t[hit.triangle]]
        n = np.cross(corners[1] - corners[0], corners[2] - corners[0]) / scale
        n /= np.linalg.norm(n)
        # On a face, not on an edge, the contact normal is the face's.
        if np.dot(hit.normal, n) > 1 - 1e-6:
            np.testing.assert_allclose(hit.normal, n, atol=1e-6)
            checked += 1
    assert checked > 60


def test_spheres_and_capsules_scale_evenly():
    scene = Scene()
    scene.add(Sphere(1), scale=(2, 2, 2))
    scene.add(Capsule(0.5, 2), position=(0, 10, 0), scale=(2, 2, 2))
    assert scene.sweep(Sphere(0.5), (9, 0, 0), (-1, 0, 0), 9).distance == pytest.approx(9 - 2.5)
    assert scene.sweep(Sphere(0.5), (0, 10, 9), (0, 0, -1), 9).distance == pytest.approx(9 - 3.5)


# --- properties of hits


def test_triangle_and_data_of_hits_and_ground():
    v = [(0, 0, 0), (9, 0, 0), (9, 9, 0), (0, 9, 0)]
    for order in ([0, 1], [1, 0]):
        t = np.array([(0, 1, 2), (0, 2, 3)])[order]
        data = np.array([70, -(2**62)])[order]
        scene = Scene()
        floor = scene.add(Mesh(v, t, triangle_data=data), user_data="grass")
        hero = hero_in(scene, 6, 2)
        hero.move((0, 0, -0.1), DT)
        hit = hero.hits[-1]
        assert t[hit.triangle].tolist() == [0, 1, 2] and hit.data == 70
        assert (hero.ground.triangle, hero.ground.data) == (hit.triangle, 70)
        assert hit.actor is hero.ground.actor is floor and hit.actor.user_data == "grass"
        hero.foot_position = (2, 6, 0)
        hero.move((0, 0, -0.1), DT)
        assert hero.ground.data == -(2**62)
        found = scene.sweep(Sphere(0.1), (6, 2, 3), (0, 0, -1), 9)
        assert (found.triangle, found.data, found.actor) == (hit.triangle, 70, floor)


def test_shapes_without_triangles_and_data_report_none():
    scene = floor_scene()
    for shape in (Box((1, 1, 1)), Sphere(1), Capsule(1, 1), ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])):
        actor = scene.add(shape, position=(3, 0, 1))
        hero = hero_in(scene, step_offset=0)
        hero.move((5, 0, -0.01), DT)
        hit = next(h for h in hero.hits if h.actor is actor)
        assert hit.triangle is None and hit.data is None
        scene.remove(actor)


def test_a_mesh_without_data_has_none():
    scene = Scene()
    scene.add(Mesh([(-9, -9, 0), (9, -9, 0), (0, 9, 0)], [(0, 1, 2)]))
    hero = hero_in(scene)
    hero.move((0, 0, -0.1), DT)
    assert hero.ground.triangle == 0 and hero.ground.data is None


# --- queries


def test_a_start_inside_a_solid_is_distance_zero():
    # RULES 7.6
    scene = Scene()
    for shape in (Box((2, 2, 2)), ConvexHull(2 * rock(1)[0]), Sphere(2), Capsule(2, 1)):
        actor = scene.add(shape)
        hit = scene.sweep(Sphere(0.1), (0, 0, 0), (0, 0, 1), 9)
        assert hit.distance == 0 and hit.overlapping and hit.actor is actor
        assert hit.normal == (0, 0, -1)
        assert scene.overlap(Sphere(0.1), (0, 0, 0)) == [actor]
        (way_out,) = scene.penetration(Sphere(0.1), (0, 0, 0))
        assert way_out.actor is actor and way_out.depth > 0.5
        assert scene.overlap(Sphere(0.1), tuple(1.001 * way_out.depth * x for x in way_out.direction)) == []
        scene.remove(actor)


def test_overlap_is_two_sided_and_sweeps_see_fronts():
    scene = Scene()
    floor = scene.add(Mesh([(-9, -9, 0), (9, -9, 0), (0, 9, 0)], [(0, 1, 2)]))
    for z in (0.3, -0.3):
        assert scene.overlap(Sphere(0.5), (0, 0, z)) == [floor]
    assert scene.sweep(Sphere(0.5), (0, 0, 3), (0, 0, -1), 9).distance == pytest.approx(2.5)
    assert scene.sweep(Sphere(0.5), (0, 0, -3), (0, 0, 1), 9) is None


def test_nearest_of_many_and_the_filter():
    scene = Scene()
    walls = [post(scene, x) for x in (7, 3, 5)]
    hit = scene.sweep(Sphere(0.5), (0, 0, 5), (2, 0, 0), 8)
    assert hit.actor is walls[1] and hit.distance == pytest.approx(2.5) and hit.time == pytest.approx(2.5 / 8)
    hit = scene.sweep(Sphere(0.5), (0, 0, 5), (1, 0, 0), 8, filter=lambda a: a is not walls[1])
    assert hit.actor is walls[2]
    assert scene.sweep(Sphere(0.5), (0, 0, 5), (1, 0, 0), 2.4) is None
    assert scene.overlap(Sphere(3), (5, 0, 5)) == walls
    assert scene.overlap(Sphere(3), (5, 0, 5), filter=lambda a: a.id != 1) == [walls[0], walls[2]]


def test_empty_scene():
    scene = Scene()
    assert scene.sweep(Sphere(1), (0, 0, 0), (1, 0, 0), 9) is None
    assert scene.overlap(Sphere(1), (0, 0, 0)) == scene.penetration(Sphere(1), (0, 0, 0)) == []
    assert scene.actors == [] and len(scene) == 0 and repr(scene)
