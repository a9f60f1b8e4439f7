"""Input that makes no sense: a clear error that names the argument, and nothing has changed."""

import copy
import math
import threading

import numpy as np
import pytest

import pycct
from pycct import (
    Actor,
    Box,
    Capsule,
    CharacterController,
    ConvexHull,
    Mesh,
    Plane,
    Scene,
    Shape,
    Sphere,
    Triangle,
    reference,
)

MODULES = (pycct, reference)
NAN, INF = math.nan, math.inf
TETRA = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
FACES = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]

# What is no vector of three finite numbers, and how it is refused.
NOT_VECTORS = [
    (None, TypeError),
    (1.0, TypeError),
    ("abc", TypeError),
    (b"abc", TypeError),
    ({1: 2, 3: 4, 5: 6}, TypeError),
    ({1, 2, 3}, TypeError),
    ((1, 2), ValueError),
    ((1, 2, 3, 4), ValueError),
    ((), ValueError),
    (np.zeros(2), ValueError),
    (np.zeros((3, 3)), TypeError),
    (np.zeros((3, 1)), TypeError),
    (np.zeros((1, 3)), ValueError),
    (np.array(1.0), TypeError),
    ((1, 2, "3"), TypeError),
    ((1, 2, None), TypeError),
    ((1, 2, 1j), TypeError),
    (np.array([1, 2, 3j]), TypeError),
    (np.array([1, 2, 3j], np.complex64), TypeError),
    (np.array(["1", "2", "3"]), TypeError),
    ((1, 2, NAN), ValueError),
    ((INF, 2, 3), ValueError),
    ((1, -INF, 3), ValueError),
    (np.array([1, 2, np.nan], np.float32), ValueError),
    ((1, 2, 10**400), ValueError),
    ((1.0, 2.0, 1e13), ValueError),
]
# What is no finite number.
NOT_NUMBERS = [
    (None, TypeError),
    ("1", TypeError),
    (b"1", TypeError),
    ((1,), TypeError),
    ([1.0], TypeError),
    (1j, TypeError),
    (np.complex128(1), TypeError),
    (object(), TypeError),
    (np.zeros(1), TypeError),
    (NAN, ValueError),
    (INF, ValueError),
    (-INF, ValueError),
    (np.float32("nan"), ValueError),
    (10**400, ValueError),
]


def label(value):
    """Name of a value, the same in every process."""
    return repr(value).split(" at 0x")[0]


def seen(hero):
    """All of a character that a failed call must leave alone."""
    names = (
        "position foot_position velocity radius height up step_offset contact_offset slope_limit climbing_mode "
        "non_walkable_mode rules overlap_recovery prevent_vertical_sliding invisible_wall_height max_jump_height "
        "layer mask flags grounded user_data"
    )
    hits = [(h.position, h.normal, h.triangle, h.actor.id) for h in hero.hits]
    state = hero.state
    return (
        [getattr(hero, n) for n in names.split()],
        hits,
        (state.standing_on, state.overlap, state.sliding, state.moving_up, hero.ground and hero.ground.point),
    )


@pytest.fixture
def scene():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Mesh(TETRA, FACES, triangle_data=[5, 6, 7, 8]), position=(2, 0, 0))
    return scene


@pytest.fixture
def hero(scene):
    hero = CharacterController(scene, (0, 0, 1), user_data="mine")
    hero.move((0.1, 0, -0.5), 1 / 60)
    assert hero.grounded and hero.hits
    return hero


def refuses(error, name, call, *arguments, **more):
    with pytest.raises(error, match=name):
        call(*arguments, **more)


# --- moves


@pytest.mark.parametrize(("value", "error"), NOT_VECTORS, ids=label)
def test_displacement(hero, value, error):
    before = seen(hero)
    refuses(error, "displacement", hero.move, value, 1 / 60)
    assert seen(hero) == before


@pytest.mark.parametrize("name", ["dt", "min_distance"])
@pytest.mark.parametrize(("value", "error"), [*NOT_NUMBERS, (-1, ValueError), (-1e-300, ValueError)], ids=label)
def test_numbers_of_a_move(hero, name, value, error):
    before = seen(hero)
    arguments = {"dt": 1 / 60, name: value}
    refuses(error, name, hero.move, (0.1, 0, 0), **arguments)
    assert seen(hero) == before


ONE_NUMBER = [np.zeros(1), np.ones((1, 1)), np.ones(1, np.float32), np.ones(1, int), np.ones((1, 1, 1)), np.zeros(0)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
@pytest.mark.parametrize("value", ONE_NUMBER, ids=lambda v: f"{v.dtype}{v.shape}")
def test_an_array_of_one_number_is_no_number(module, value):
    """Whatever NumPy makes of it: older ones take the one element."""
    scene = module.Scene()
    hero = module.CharacterController(scene, (0, 0, 1))
    for name, call in (
        ("radius", lambda: module.Sphere(value)),
        ("height", lambda: module.Capsule(1, value)),
        ("dt", lambda: hero.move((0, 0, 0), value)),
        ("margin", lambda: hero.unstick(value)),
        ("max_distance", lambda: hero.probe_ground(value)),
        ("slope_limit", lambda: module.CharacterController(scene, slope_limit=value)),
        ("dt", lambda: module.Crowd(scene, [(0, 0, 0)]).move([(0, 0, 0)], value)),
        ("distance", lambda: scene.raycast((0, 0, 0), (0, 0, 1), value)),
    ):
        if module is reference and not hasattr(scene, "raycast") and name == "distance":
            continue
        with pytest.raises(TypeError, match=f"{name} must be a number, not an array of shape"):
            call()
    # One of no dimensions is one.
    assert module.Sphere(np.array(0.5)).radius == module.Sphere(np.float64(0.5)).radius == 0.5
    hero.move((0, 0, 1), np.array(0.5, np.float32))
    assert hero.velocity == (0, 0, 2)


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_unstick_leads_no_farther_than_a_scene_goes(module):
    scene = module.Scene()
    scene.add(module.Plane((0, 0, 1)))
    hero = module.CharacterController(scene, (0, 0, 0.5))
    before = hero.position, hero.velocity, hero.state.overlap
    for value in (1.0000001e12, 2e12, 1e300):
        refuses(ValueError, "margin must not exceed", hero.unstick, value)
    # It is itself no farther, but leads there.
    refuses(ValueError, "margin must not lead beyond", hero.unstick, 1e12)
    assert (hero.position, hero.velocity, hero.state.overlap) == before
    assert hero.unstick(1e11)
    assert hero.position == pytest.approx((0, 0, 1e11 + 0.91), abs=1e-3)


def test_a_time_so_short_that_velocity_would_overflow(hero):
    before = seen(hero)
    refuses(ValueError, "dt", hero.move, (1, 0, 0), 1e-310)
    assert seen(hero) == before
    hero.move((1, 0, 0), 1e-9)
    assert all(math.isfinite(x) for x in hero.velocity)
    hero.move((1, 0, 0), 0)
    assert hero.velocity == (0, 0, 0)


def test_a_vector_may_be_any_sequence_of_three_numbers(hero):
    place = hero.position
    for value in (
        (0.1, 0, 0),
        [0.1, 0, 0],
        np.array([0.1, 0, 0]),
        np.array([0.1, 0, 0], np.float64)[::1],
        np.array([0.1, 9, 0, 9, 0])[::2],
        iter((0.1, 0.0, 0.0)),
        memoryview(np.array([0.1, 0, 0])),
    ):
        hero.position = place
        hero.move(value, 1 / 60)
        assert hero.position == pytest.approx((place[0] + 0.1, 0, place[2]), abs=1e-9)


# --- the controller's numbers


BAD_PARAMETERS = [
    ("radius", 0, ValueError),
    ("radius", -0.1, ValueError),
    ("radius", 1e13, ValueError),
    ("height", -1e-9, ValueError),
    ("height", 1e13, ValueError),
    ("contact_offset", -0.01, ValueError),
    ("contact_offset", 1e13, ValueError),
    ("step_offset", -0.01, ValueError),
    ("step_offset", 1.8 + 1e-6, ValueError),
    ("slope_limit", -1e-9, ValueError),
    ("slope_limit", 1 + 1e-9, ValueError),
    ("slope_limit", 45, ValueError),
    ("invisible_wall_height", -1, ValueError),
    ("max_jump_height", -1, ValueError),
    ("up", (0, 0, 0), ValueError),
    ("climbing_mode", "Easy", ValueError),
    ("climbing_mode", 1, ValueError),
    ("climbing_mode", pycct.NonWalkableMode.FORCE_SLIDING, ValueError),
    ("non_walkable_mode", "slide", ValueError),
    ("non_walkable_mode", None, ValueError),
    ("overlap_recovery", 1, TypeError),
    ("overlap_recovery", "yes", TypeError),
    ("prevent_vertical_sliding", None, TypeError),
    ("layer", -1, ValueError),
    ("layer", 1 << 32, ValueError),
    ("layer", 1.5, TypeError),
    ("layer", "1", TypeError),
    ("layer", NAN, TypeError),
    ("mask", -1, ValueError),
    ("mask", None, TypeError),
]
NUMBERS = (
    "radius",
    "height",
    "contact_offset",
    "step_offset",
    "slope_limit",
    "invisible_wall_height",
    "max_jump_height",
)
BAD_PARAMETERS += [(name, value, error) for name in NUMBERS for value, error in NOT_NUMBERS]
BAD_PARAMETERS += [("up", value, error) for value, error in NOT_VECTORS if repr(value) != repr((1.0, 2.0, 1e13))]
BAD_PARAMETERS += [("position", value, error) for value, error in NOT_VECTORS]


@pytest.mark.parametrize(("name", "value", "error"), BAD_PARAMETERS, ids=label)
def test_parameters(scene, hero, name, value, error):
    # The bound of the step offset depends on the size, so any of the three may be named.
    refuses(error, name, CharacterController, scene, **{name: value})
    before = seen(hero)
    refuses(error, name, setattr, hero, name, value)
    assert seen(hero) == before


def test_a_size_that_the_step_offset_no_longer_fits(hero):
    before = seen(hero)
    for name, value in (("height", 0.0), ("radius", 0.1)):
        hero.step_offset = 1.7
        refuses(ValueError, "step_offset", setattr, hero, name, value)
        hero.step_offset = 0.5
    assert seen(hero) == before


@pytest.mark.parametrize(("value", "error"), NOT_VECTORS, ids=label)
def test_places(hero, value, error):
    before = seen(hero)
    refuses(error, "foot_position", setattr, hero, "foot_position", value)
    refuses(error, "position", hero.teleport, value)
    assert seen(hero) == before


def test_the_scene_must_be_one(scene):
    for value in (None, "scene", object(), Scene):
        refuses(TypeError, "scene", CharacterController, value)


def test_unknown_rules(scene):
    refuses((ValueError, TypeError), "rules", CharacterController, scene, rules="quake")


def test_unknown_arguments_and_attributes(scene, hero):
    with pytest.raises(TypeError):
        CharacterController(scene, speed=3)
    with pytest.raises(AttributeError):
        hero.speed = 3
    with pytest.raises(AttributeError):
        hero.scene = Scene()
    with pytest.raises(AttributeError):
        hero.velocity = (0, 0, 0)


# --- shapes


@pytest.mark.parametrize(
    ("vertices", "triangles", "error", "name"),
    [
        ([], [], ValueError, "vertices must not be empty: a mesh needs at least one triangle"),
        (np.zeros((0, 3)), np.zeros((0, 3), int), ValueError, "vertices must not be empty: a mesh needs"),
        (TETRA, [], ValueError, "triangles must not be empty: a mesh needs at least one triangle"),
        (TETRA, np.zeros((0, 3), int), ValueError, "triangles must not be empty: a mesh needs"),
        (TETRA, np.array(5), ValueError, "triangles"),
        (np.zeros((4, 2)), FACES, ValueError, "vertices"),
        (np.zeros(12), FACES, ValueError, "vertices"),
        (np.zeros((2, 2, 3)), FACES, ValueError, "vertices"),
        ([[0, 0, 0], [1, 0]], FACES, TypeError, "vertices"),
        ([["a", "b", "c"]] * 4, FACES, TypeError, "vertices"),
        (np.zeros((4, 3), complex), FACES, TypeError, "vertices"),
        (np.zeros((4, 3), object), FACES, TypeError, "vertices"),
        (None, FACES, (TypeError, ValueError), "vertices"),
        ([*TETRA[:3], (0, 0, NAN)], FACES, ValueError, "vertices"),
        ([*TETRA[:3], (0, INF, 0)], FACES, ValueError, "vertices"),
        ([*TETRA[:3], (0, 0, 10**400)], FACES, ValueError, "vertices"),
        (TETRA, [(0, 1, 4)], ValueError, "triangles"),
        (TETRA, [(0, 1, -1)], ValueError, "triangles"),
        (TETRA, [(0, 1, 2**31)], ValueError, "triangles"),
        (TETRA, np.array([(0, 1, 2**63)], np.uint64), ValueError, "triangles"),
        (TETRA, [(0, 1, 10**30)], TypeError, "triangles"),
        (TETRA, [(0, 1)], ValueError, "triangles"),
        (TETRA, [(0, 1, 2), (1, 2)], TypeError, "triangles"),
        (TETRA, [0, 1, 2], ValueError, "triangles"),
        (TETRA, [(0.0, 1.0, 2.0)], TypeError, "triangles"),
        (TETRA, [(True, False, True)], TypeError, "triangles"),
        (TETRA, "abc", TypeError, "triangles"),
        (TETRA, None, TypeError, "triangles"),
    ],
    ids=label,
)
@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_meshes(module, vertices, triangles, error, name):
    refuses(error, name, module.Mesh, vertices, triangles)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"two_sided": 1}, TypeError),
        ({"two_sided": None}, TypeError),
        ({"triangle_data": [1, 2]}, ValueError),
        ({"triangle_data": [[1, 2, 3, 4]]}, ValueError),
        ({"triangle_data": [1.0, 2.0, 3.0, 4.0]}, TypeError),
        ({"triangle_data": ["a"] * 4}, TypeError),
        ({"triangle_data": [1, 2, [3], 4]}, TypeError),
        ({"triangle_data": 5}, ValueError),
        ({"triangle_data": np.array([2**63] * 4, np.uint64)}, ValueError),
    ],
    ids=label,
)
def test_extras_of_meshes(more, error):
    refuses(error, next(iter(more)), Mesh, TETRA, FACES, **more)


def test_a_mesh_owns_its_arrays():
    v, t, d = np.array(TETRA, float), np.array(FACES), np.array([5, 6, 7, 8])
    mesh = Mesh(v, t, triangle_data=d)
    v[:], t[:], d[:] = 99, 0, 0
    assert mesh.vertices.tolist() == [list(map(float, p)) for p in TETRA]
    assert mesh.triangles.tolist() == [list(f) for f in FACES]
    assert mesh.triangle_data.tolist() == [5, 6, 7, 8]
    for array in (mesh.vertices, mesh.triangles):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    mesh.triangle_data[:] = 0
    assert mesh.triangle_data.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize(("value", "error"), [*NOT_NUMBERS, (0, ValueError), (-1, ValueError)], ids=label)
def test_radii(value, error):
    refuses(error, "radius", Sphere, value)
    refuses(error, "radius", Capsule, value, 1)
    if value != 0 or value is None:
        refuses(error, "height", Capsule, 1, value)


@pytest.mark.parametrize(("value", "error"), NOT_VECTORS[:-1], ids=label)
def test_vectors_of_shapes(value, error):
    refuses(error, "half_extents", Box, value)
    refuses(error, "normal", Plane, value)
    refuses(error, "a must", Triangle, value, (1, 0, 0), (0, 1, 0))
    refuses(error, "c must", Triangle, (1, 0, 0), (0, 1, 0), value)
    refuses(error, "scale", ConvexHull(TETRA).scaled, value)


def test_more_of_shapes():
    for half in ((0, 1, 1), (1, -1, 1), (1, 1, -0.0)):
        refuses(ValueError, "half_extents", Box, half)
    refuses(ValueError, "normal", Plane, (0, 0, 0))
    for value, error in NOT_NUMBERS:
        refuses(error, "offset", Plane, (0, 0, 1), value)


# --- placing


BAD_PLACES = [("position", value, error) for value, error in NOT_VECTORS]
BAD_PLACES += [("scale", value, error) for value, error in NOT_VECTORS[:-1]]
BAD_PLACES += [
    ("scale", (0, 1, 1), ValueError),
    ("scale", (1, 1, -0.0), ValueError),
    ("rotation", (0, 0, 0, 0), ValueError),
    ("rotation", (0, 0, 0, 1.01), ValueError),
    ("rotation", (0, 0, 0.5, 0.5), ValueError),
    ("rotation", (0, 0, 1), ValueError),
    ("rotation", (0, 0, 0, NAN), ValueError),
    ("rotation", (0, INF, 0, 1), ValueError),
    ("rotation", (1e200, 1e200, 0, 0), ValueError),
    ("rotation", None, TypeError),
    ("rotation", "0001", TypeError),
    ("rotation", 1, TypeError),
    ("body", "rigid", ValueError),
    ("body", None, ValueError),
    ("body", 0, ValueError),
    ("body", ["static"], ValueError),
    ("layer", -1, ValueError),
    ("layer", 1 << 32, ValueError),
    ("layer", 0.5, TypeError),
    ("behavior", -1, ValueError),
    ("behavior", "ride", TypeError),
]


@pytest.mark.parametrize(("name", "value", "error"), BAD_PLACES, ids=label)
def test_add(scene, name, value, error):
    before = scene.actors, scene.timestamp
    refuses(error, name, scene.add, Box((1, 1, 1)), **{name: value})
    assert (scene.actors, scene.timestamp) == before


def test_a_quaternion_nearly_of_unit_length_is_normalised(scene):
    actor = scene.add(Box((1, 1, 1)), rotation=(0, 0, 0.7071, 0.7071))
    assert sum(x * x for x in actor.rotation) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("shape", [Sphere(1), Capsule(1, 1)], ids=label)
@pytest.mark.parametrize("scale", [(1, 1, 2), (2, 1, 1), (-1, -1, -1), (-1, 1, 1)])
def test_uneven_and_mirroring_scale_on_round_shapes(scene, shape, scale):
    before = scene.actors, scene.timestamp
    refuses(ValueError, "scale", scene.add, shape, scale=scale)
    assert (scene.actors, scene.timestamp) == before
    assert scene.add(shape, scale=(2, 2, 2)).scale == (2, 2, 2)


def test_a_plane_cannot_be_scaled(scene):
    refuses(ValueError, "scale", scene.add, Plane((0, 0, 1)), scale=(2, 2, 2))


@pytest.mark.parametrize("value", [None, "box", object(), Box, TETRA], ids=label)
def test_what_is_no_shape(scene, value):
    refuses(TypeError, "shape", scene.add, value)


def test_a_shape_too_far_out(scene):
    refuses(ValueError, "shape", scene.add, Box((2e12, 1, 1)), scale=(2, 1, 1))
    refuses(ValueError, "shape", scene.add, Mesh(np.array(TETRA) * 1e13, FACES))
    refuses(ValueError, "shape", scene.add, Plane((0, 0, 1), 1e308))
    refuses(ValueError, "shape", scene.add, Box((1, 1, 1)), scale=(1e300, 1, 1))
    assert len(scene.actors) == 2


def test_actors(scene):
    actor = scene.actors[1]
    before = actor.position, actor.rotation, actor.layer, actor.behavior, scene.timestamp
    for value, error in NOT_VECTORS:
        refuses(error, "position", actor.move_to, value)
    refuses(ValueError, "rotation", actor.move_to, (0, 0, 0), (0, 0, 0, 2))
    for name, value, error in (("layer", -1, ValueError), ("layer", "a", TypeError), ("behavior", 1 << 32, ValueError)):
        refuses(error, name, setattr, actor, name, value)
    assert (actor.position, actor.rotation, actor.layer, actor.behavior, scene.timestamp) == before
    with pytest.raises(AttributeError):
        actor.position = (0, 0, 0)
    with pytest.raises(TypeError):
        Actor()


@pytest.mark.parametrize("ask", ["sweep", "overlap", "penetration"])
def test_questions(scene, ask):
    rest = ((0, 0, -1), 5) if ask == "sweep" else ()
    question = getattr(scene, ask)
    question(Sphere(1), (0, 0, 3), *rest)
    for shape in (None, "sphere", object(), Sphere):
        refuses(TypeError, "shape", question, shape, (0, 0, 3), *rest)
    for value, error in NOT_VECTORS:
        refuses(error, "position", question, Sphere(1), value, *rest)
    for value, error in (((0, 0, 0, 2), ValueError), (None, TypeError), ((0, 0, 1), ValueError)):
        refuses(error, "rotation", question, Sphere(1), (0, 0, 3), *rest, rotation=value)
    for value, error in ((-1, ValueError), ("a", TypeError)):
        refuses(error, "mask", question, Sphere(1), (0, 0, 3), *rest, mask=value)
    if ask == "sweep":
        refuses(ValueError, "direction", question, Sphere(1), (0, 0, 3), (0, 0, 0), 5)
        for value, error in NOT_VECTORS[:-1]:
            refuses(error, "direction", question, Sphere(1), (0, 0, 3), value, 5)
        for value, error in [*NOT_NUMBERS, (-1, ValueError)]:
            refuses(error, "distance", question, Sphere(1), (0, 0, 3), (0, 0, -1), value)


def test_an_error_in_a_filter_comes_through_and_harms_nothing(scene):
    def angry(actor):
        raise KeyError("mine")

    for ask, rest in (("sweep", ((0, 0, -1), 5)), ("overlap", ()), ("penetration", ())):
        with pytest.raises(KeyError, match="mine"):
            getattr(scene, ask)(Sphere(1), (0, 0, 0.5), *rest, filter=angry)
        assert getattr(scene, ask)(Sphere(1), (0, 0, 0.5), *rest)
        with pytest.raises(TypeError):
            getattr(scene, ask)(Sphere(1), (0, 0, 0.5), *rest, filter=3)


def test_an_error_in_a_callback_comes_through_and_leaves_all_as_it_was(scene, hero):
    def angry(what):
        raise KeyError("mine")

    for name in ("on_hit", "filter", "behavior"):
        hero.teleport((0, 0, 1))
        hero.move((0.1, 0, -0.5), 1 / 60)
        before = seen(hero)
        setattr(hero, name, angry)
        with pytest.raises(KeyError, match="mine"):
            hero.move((0.1, 0.1, -0.5), 1 / 60)
        assert seen(hero) == before
        setattr(hero, name, None)
        hero.move((0.1, 0, -0.5), 1 / 60)
    for name in ("on_hit", "filter", "behavior"):
        before = seen(hero)
        refuses(TypeError, name, setattr, hero, name, 3)
        refuses(TypeError, name, CharacterController, scene, **{name: 3})
        assert seen(hero) == before and getattr(hero, name) is None


def test_a_callback_cannot_touch_the_move_that_called_it(scene, hero):
    said = []

    def meddle(other):
        for call in (
            lambda: hero.move((0, 0, 0), 1),
            lambda: hero.remove(),
            lambda: hero.teleport((0, 0, 0)),
            lambda: setattr(hero, "radius", 1),
        ):
            with pytest.raises(RuntimeError, match="use"):
                call()
            said.append(1)
        return True

    for name in ("on_hit", "filter", "behavior"):
        setattr(hero, name, meddle)
        hero.move((0.1, 0, -0.5), 1 / 60)
        setattr(hero, name, None)
    assert len(said) >= 12


@pytest.mark.parametrize(
    ("value", "error"), [("x", TypeError), (-1, ValueError), (1.5, TypeError), (1 << 40, ValueError)]
)
def test_what_is_no_behavior(hero, value, error):
    hero.teleport((0, 0, 1))
    before = seen(hero)
    hero.behavior = lambda other: value
    refuses(error, "behavior", hero.move, (0.1, 0, -0.5), 1 / 60)
    hero.behavior = None
    assert seen(hero) == before


# --- what is no longer there, and what never was


def test_removed_actors(scene):
    actor = scene.actors[1]
    scene.remove(actor)
    refuses(ValueError, "actor", scene.remove, actor)
    for call in (
        lambda: actor.move_to((0, 0, 0)),
        lambda: setattr(actor, "layer", 1),
        lambda: setattr(actor, "behavior", 1),
    ):
        with pytest.raises(RuntimeError, match="removed"):
            call()
    assert actor.scene is None and actor.bounds and repr(actor)
    for value in (None, 1, "actor", Box((1, 1, 1))):
        refuses(TypeError, "actor", scene.remove, value)
    other = Scene()
    foreign = other.add(Box((1, 1, 1)))
    refuses(ValueError, "actor", scene.remove, foreign)
    assert other.actors == [foreign]


def test_hits_and_ground_outlive_their_actor(scene, hero):
    floor = scene.actors[0]
    hit, ground, state = hero.hits[0], hero.ground, hero.state
    scene.remove(floor)
    assert hit.actor is ground.actor is state.standing_on is floor
    assert hero.state.standing_on is None
    assert hero.hits[0].actor is None and hero.ground.actor is None
    hero.move((0, 0, -1), 1 / 60)
    assert not hero.grounded


def test_removed_controllers(hero):
    hero.remove()
    for call in (
        lambda: hero.move((0, 0, 0), 1),
        lambda: setattr(hero, "position", (0, 0, 0)),
        lambda: setattr(hero, "foot_position", (0, 0, 0)),
        lambda: hero.teleport((0, 0, 0)),
        lambda: setattr(hero, "radius", 1),
        lambda: setattr(hero, "mask", 1),
        lambda: hero.remove(),
    ):
        with pytest.raises(RuntimeError, match="removed"):
            call()
    # What it was last remains to be read.
    assert len(hero.hits) == 1 and hero.grounded and hero.position and repr(hero)


def test_objects_that_were_never_initialised():
    scene = Scene()
    for kind in (Sphere, Capsule, Box, Triangle, Plane, ConvexHull, Mesh, Shape):
        raw = kind.__new__(kind)
        refuses(ValueError, "initialised", scene.add, raw)
        repr(raw)
    with pytest.raises(RuntimeError):
        ConvexHull.__new__(ConvexHull).scaled((1, 1, 1))
    with pytest.raises(RuntimeError):
        Actor.__new__(Actor).bounds
    refuses(ValueError, "actor", scene.remove, Actor.__new__(Actor))
    assert scene.actors == []
    raw = Scene.__new__(Scene)
    assert raw.sweep(Sphere(1), (0, 0, 0), (1, 0, 0), 1) is None
    raw.add(Box((1, 1, 1)))
    hero = CharacterController.__new__(CharacterController)
    for call in (lambda: hero.move((1, 0, 0), 1), lambda: hero.teleport((1, 0, 0)), lambda: setattr(hero, "radius", 1)):
        with pytest.raises(RuntimeError, match="initialised"):
            call()
    repr(hero)


def test_shapes_are_immutable():
    # Scenes hold pointers into them.
    shapes = [
        (Sphere(1), (2,)),
        (Capsule(1, 1), (2, 2)),
        (Box((1, 1, 1)), ((2, 2, 2),)),
        (Triangle(*TETRA[:3]), TETRA[:3]),
        (Plane((0, 0, 1)), ((1, 0, 0),)),
        (ConvexHull(TETRA), (TETRA,)),
        (Mesh(TETRA, FACES), (TETRA, FACES)),
    ]
    for shape, arguments in shapes:
        before = repr(shape), shape.bounds
        with pytest.raises(TypeError, match="immutable"):
            shape.__init__(*arguments)
        assert (repr(shape), shape.bounds) == before
        with pytest.raises(AttributeError):
            shape.radius = 3
        assert copy.copy(shape) is shape and copy.deepcopy(shape) is shape


def test_a_scene_keeps_its_actors_when_initialised_again(scene):
    scene.__init__()
    assert len(scene.actors) == 2


def test_a_mesh_that_failed_cannot_be_placed(scene):
    mesh = Mesh.__new__(Mesh)
    with pytest.raises(ValueError, match="triangles"):
        mesh.__init__(TETRA, [(0, 1, 9)])
    refuses(ValueError, "shape", scene.add, mesh)
    mesh.__init__(TETRA, FACES)
    scene.add(mesh)


# --- subclasses


def test_subclasses():
    class Player(CharacterController):
        def __init__(self, scene, name):
            super().__init__(scene, (0, 0, 5), radius=0.3, height=0.9)
            self.name = name

        @property
        def position(self):
            return "elsewhere"

        def move(self, displacement, dt):
            return super().move(tuple(2 * x for x in displacement), dt)

    scene = Scene()
    player = Player(scene, "Ada")
    player.move((1, 0, 0), 1)
    assert player.position == "elsewhere"
    assert super(Player, player).position == (2, 0, 5)
    assert player.name == "Ada"
    assert "Player" in repr(player)

    class Forgetful(CharacterController):
        def __init__(self, scene):
            pass

    with pytest.raises(RuntimeError, match="initialised"):
        Forgetful(scene).move((0, 0, 0), 1)

    class Weird(Shape):
        def __init__(self):
            pass

    with pytest.raises((TypeError, ValueError), match="shape"):
        scene.add(Weird())
    assert scene.actors == []


def test_a_displacement_that_calls_back_sees_a_whole_character(hero):
    class Meddling:
        def __iter__(self):
            hero.teleport((5, 0, 3))
            return iter((0.1, 0.0, 0.0))

    hero.move(Meddling(), 1 / 60)
    assert hero.position == pytest.approx((5.1, 0, 3))

    class Removing:
        def __iter__(self):
            hero.remove()
            return iter((0.1, 0.0, 0.0))

    with pytest.raises(RuntimeError, match="removed"):
        hero.move(Removing(), 1 / 60)


# --- threads


def heavy_world():
    """A character whose every move takes long enough to be caught in the middle."""
    n = 600
    x, y = np.meshgrid(np.arange(n) * 1.0, np.arange(n) * 1.0, indexing="ij")
    z = np.random.default_rng(0).normal(size=x.shape) * 0.2
    i = np.arange(n * n).reshape(n, n)
    q = np.stack([i[:-1, :-1], i[1:, :-1], i[1:, 1:], i[:-1, 1:]], -1).reshape(-1, 4)
    scene = Scene()
    scene.add(Mesh(np.stack([x, y, z], -1).reshape(-1, 3), np.concatenate([q[:, [0, 1, 2]], q[:, [0, 2, 3]]])))
    return CharacterController(scene, (300, 300, 3))


def test_a_second_thread_on_one_controller_gets_an_error():
    hero = heavy_world()
    stop, caught = threading.Event(), []

    def run():
        while not stop.is_set():
            try:
                hero.radius = 0.4  # forget the candidates: the move must gather them anew
                hero.move((250, 250, -1), 1 / 60)
                hero.teleport((300, 300, 3))
            except RuntimeError as error:
                caught.append(str(error))
                stop.set()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads:
        t.start()
    stopped = stop.wait(30)
    stop.set()
    for t in threads:
        t.join()
    assert stopped and "another thread" in caught[0]
    # Nothing is torn: it still moves.
    hero.teleport((300, 300, 3))
    hero.move((0, 0, -9), 1 / 60)
    assert hero.grounded


def test_many_controllers_share_a_scene_that_changes():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    walls = [scene.add(Box((0.1, 5, 5)), position=(k + 0.5, 0, 0), body="kinematic") for k in range(3)]
    errors = []

    def run(k):
        try:
            hero = CharacterController(scene, (0, 30 * (k + 1), 0.91))
            for _ in range(400):
                hero.move((0.05, 0, -0.05), 1 / 60)
            assert hero.position == pytest.approx((20, 30 * (k + 1), 0.91), abs=1e-6)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for k in range(200):
        walls[k % 3].move_to((k % 7, 0, 0))
        if k % 10 == 0:
            scene.remove(scene.add(Sphere(1), position=(0, -50, 0)))
    for t in threads:
        t.join()
    assert errors == []


def test_no_shape_is_larger_than_a_scene():
    # Squares of squares of its size would overflow and come back as NaN.
    for make, name in (
        (lambda x: Sphere(x), "radius"),
        (lambda x: Capsule(1, x), "height"),
        (lambda x: Box((1, x, 1)), "half_extents"),
        (lambda x: Triangle((0, 0, 0), (x, 0, 0), (0, 1, 0)), "b"),
        (lambda x: ConvexHull([(0, 0, 0), (x, 0, 0), (0, 1, 0), (0, 0, 1)]), "points"),
        (lambda x: ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]).scaled((x, 1, 1)), "scale"),
    ):
        make(1e12)
        for x in (3e12, 1e150, 1e300):
            with pytest.raises(ValueError, match=name):
                make(x)


@pytest.mark.parametrize("module", MODULES)
def test_arrays_of_three_are_read_as_tuples_are(module):
    hero = module.CharacterController(module.Scene())
    wide = np.zeros((3, 4))
    wide[:, 1] = (1.5, -2.5, 3.25)
    single = np.array([1.5, -2.5, 3.25], np.float32)
    for array in (
        wide[:, 1].copy(), wide[:, 1], wide[::-1, 1][::-1], single, single.astype(">f8"), single.astype(">f4"),
        single.astype(object), single.astype(np.longdouble), single.astype(np.float16),
        np.frombuffer(b"x" + single.astype(float).tobytes(), np.uint8)[1:].view(float),
    ):  # fmt: skip
        hero.position = (0, 0, 0)
        hero.position = array
        assert hero.position == (1.5, -2.5, 3.25)
    hero.position = np.array([1, -2, 3])
    assert hero.position == (1.0, -2.0, 3.0)
    hero.position = np.array([True, False, True])
    assert hero.position == (1.0, 0.0, 1.0)
    for array in (np.array(["2020"] * 3, "M8[D]"), np.zeros(3, [("a", "f8")]), single.astype(complex)):
        with pytest.raises(TypeError, match="position"):
            hero.position = array
    assert hero.position == (1.0, 0.0, 1.0)


def test_values_of_many_numbers_are_no_ids_codes_or_names():
    scene = pycct.Scene()
    crowd = pycct.Crowd(scene, [(0, 0, 1)])
    several = np.arange(6).reshape(2, 3)
    for ask, name in (
        (scene.actor, "id"), (scene.character, "id"), (crowd.member, "id"), (pycct.decode_feature, "code"),
        (crowd.get, "name"), (lambda value: pycct.Heightfield(np.zeros((3, 3)), row_axis=value), "row_axis"),
        (lambda value: pycct.Worlds([scene]).raycast_many([(0, 0, 1)], (0, 0, -1), 9.0, world=value), "world"),
        (lambda value: pycct.ConvexHull([(value, 0, 0)]), "points"),
    ):  # fmt: skip
        for value in (several, [1, [2]], 10**5000, "x" * 100_000):
            if name == "id" and isinstance(value, int):
                assert ask(value) is None
                continue
            with pytest.raises((TypeError, ValueError)) as error:
                ask(value)
            assert len(str(error.value)) < 600 and name in str(error.value), (name, str(error.value)[:300])
