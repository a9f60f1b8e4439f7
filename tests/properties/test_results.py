"""Results of moves and queries: names, comparison, pickling and copying."""

import ast
import copy
import inspect
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pycct
from pycct import reference

MODULES = (pycct, reference)
DT = 1 / 60
ROOT = Path(__file__).resolve().parents[2]
REMAKES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy}


def place(module):
    """A scene, and a character that stands on a mesh with data and leans against a box."""
    scene = module.Scene()
    floor = module.Mesh([(-9, -9, 0), (9, -9, 0), (9, 9, 0), (-9, 9, 0)], [(0, 1, 2), (0, 2, 3)], triangle_data=[7, 8])
    scene.add(floor, user_data="floor")
    scene.add(module.Box((1, 1, 1)), position=(2, 0, 1), user_data="box")
    hero = module.CharacterController(scene, position=(0.4, 0, 0.95), user_data="hero")
    hero.move((0.5, 0, -0.2), DT)
    return scene, hero


def told(module):
    """Answers about one actor or none."""
    scene, hero = place(module)
    yield from hero.hits
    yield from (hero.ground, hero.state, hero.stats)
    yield scene.sweep(module.Sphere(0.3), (-5, 0, 4), (0, 0, -1), 9)
    yield from scene.penetration(module.Sphere(0.6), (2, 0, 2.2))
    if module is reference:
        return
    yield from hero.explain((0.1, 0, 0), DT).events
    yield hero.explain((0.1, 0, 0), DT)
    yield scene.raycast((-5, 0, 4), (0, 0, -1), 9)
    yield scene.closest_points(pycct.Sphere(0.5), (2, 3, 1), 9)
    yield scene.raycast((-5, 0, 4), (0, 0, -1), 9, include="all")
    where = np.array([(-5.0, 0, 4), (2, 0, 4), (99, 0, 4)])
    yield scene.raycast_many(where, (0, 0, -1), 9)
    yield scene.overlap_many(pycct.Sphere(3.5), where)
    yield scene.penetration_many(pycct.Sphere(3.5), where)
    yield scene.closest_points_many(pycct.Sphere(0.5), where, 9)
    box, ball = pycct.Box((1, 1, 1)), pycct.Sphere(0.5)
    yield pycct.distance_between(box, ball, ((0, 0.2, 3), None))
    yield pycct.distance_between_many(box, ball, (where, None))
    yield pycct.contacts_between(box, box, ((0, 0.2, 3), None))
    yield pycct.contacts_between_many(box, ball, (where, None))
    yield pycct.contacts_between(box, box, ((0, 0.2, 3), None))[0]
    yield pycct.decode_feature(0x4003)
    yield from hero.contacts(0.5)
    crowd = pycct.Crowd(scene, [(0, 3, 0.91)])
    yield crowd.probe_ground(0.5)
    yield pycct.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]).tables
    yield from scene.actors


def same(a, b):
    """Whether two answers tell the same; actors by what they are."""
    if a is None or isinstance(a, (bool, int, float, str, bytes)):
        return type(a) is type(b) and a == b
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if type(a).__name__ == "Contacts" and a is not b:
        return type(b) is type(a) and b.other is None and a.other.id == b.id and same(tuple(a)[1:], tuple(b)[1:])
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if type(a).__name__ in ("Actor", "Obstacle", "CharacterController", "CrowdMember"):
        return type(a) is type(b) and a.user_data == b.user_data and a.position == b.position
    names = [n for n in dir(a) if not n.startswith("_") and not callable(getattr(a, n))]
    if type(a).__name__ in ("Hit", "Ground", "SceneHit", "State", "Penetration", "ClosestPoints") and a is not b:
        # They have ids instead of objects.
        objects = ("actor", "controller", "obstacle", "other", "standing_on")
        assert not any(getattr(b, n, None) for n in objects)
        names = [n for n in names if n not in objects]
    assert names
    return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
@pytest.mark.parametrize("how", REMAKES)
def test_answers_are_pickled_and_copied(module, how):
    kinds = set()
    for answer in told(module):
        kinds.add(type(answer).__name__)
        assert same(answer, REMAKES[how](answer)), answer
        assert same(answer, copy.copy(answer)), answer
    assert kinds >= {"Hit", "Ground", "State", "MoveStats", "SceneHit", "Penetration"}
    if module is pycct:
        assert kinds >= {"ClosestPoints", "HitArrays", "TouchArrays", "ClosestArrays", "Distance", "DistanceArrays"}
        assert kinds >= {"ContactArrays", "Contact", "Contacts", "Feature", "GroundArrays", "HullTables", "Event"}


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
@pytest.mark.parametrize("how", REMAKES)
def test_the_scene_goes_along_once(module, how):
    scene, hero = place(module)
    actor = scene.actors[0]
    # What leads back to the scene from within it.
    actor.user_data = {"me": actor} if module is pycct else None
    again = REMAKES[how]({"scene": scene, "hero": hero, "hits": hero.hits, "ground": hero.ground, "actor": actor})
    assert again["ground"].actor is None and again["scene"].actor(again["ground"].id) is again["actor"]
    assert {again["scene"].actor(h.id) for h in again["hits"]} <= set(again["scene"].actors)
    assert again["scene"] is not scene and again["hero"].scene is again["scene"]
    assert again["actor"] is again["scene"].actor(actor.id)
    if module is pycct:
        assert again["actor"].user_data["me"] is again["actor"]
    assert copy.copy(actor) is actor


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_answers_about_who_is_gone(module):
    scene, hero = place(module)
    hit, ground = scene.sweep(module.Sphere(0.3), (-5, 0, 4), (0, 0, -1), 9), hero.ground
    floor, _ = scene.actors
    scene.remove(floor)
    assert hit.actor is floor
    if module is pycct:
        twin = pickle.loads(pickle.dumps(hit))
        assert twin.actor is None and twin.other is None and twin.position == hit.position
        assert pickle.loads(pickle.dumps(ground)).other is None
    with pytest.raises(TypeError, match="removed"):
        pickle.dumps(floor)


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_pickled_hits_do_not_contain_the_scene(module):
    scene, hero = place(module)
    scene.add(module.Mesh(*grid(100)), (50, 0, 0))
    answers = [hero.hits[0], hero.ground, scene.sweep(module.Sphere(0.3), (2, 0, 4), (0, 0, -1), 9)]
    answers += scene.penetration(module.Sphere(0.6), (2, 0, 2.2))
    if module is pycct:
        answers.append(scene.closest_points(module.Sphere(0.6), (2, 0, 4)))
        answers += hero.contacts(0.5)
    for answer in answers:
        assert len(pickle.dumps(answer)) < 2000
        assert pickle.loads(pickle.dumps(answer)).id == answer.other.id == answer.id


def grid(n):
    """Vertices and indices of a mesh of n by n squares."""
    vertices = [(x, y, 0) for y in range(n + 1) for x in range(n + 1)]
    corners = [(y * (n + 1) + x, n + 1) for y in range(n) for x in range(n)]
    return vertices, [t for k, m in corners for t in ((k, k + 1, k + m), (k + 1, k + m + 1, k + m))]


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_pickled_states_do_not_contain_the_scene(module):
    scene = module.Scene()
    scene.add(module.Mesh(*grid(100)), (-50, -50, -3))
    lift = scene.add(module.Box((2, 2, 0.5)), body="kinematic")
    hero = module.CharacterController(scene, position=(0, 0, 1.42))
    hero.move((0, 0, -0.1), DT)
    state = hero.state
    assert state.standing_on is lift and state.standing_on_id == lift.id
    twin = pickle.loads(pickle.dumps(state))
    assert len(pickle.dumps(state)) < 2000
    assert twin.standing_on is None and twin.standing_on_id == lift.id and twin.displacement == state.displacement
    hero.teleport((9, 9, 9))
    assert hero.state.standing_on_id is None


def test_members_of_crowds_go_along_with_their_crowd():
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    crowd = pycct.Crowd(scene, [(0, 0, 0.91), (3, 0, 0.91)], collide=True)
    hero = pycct.CharacterController(scene, (3, 1.5, 0.91), collide=True)
    hit = scene.raycast((3, -5, 1), (0, 1, 0), 9, include="characters")
    assert hit.other == crowd.member(crowd.ids[1])
    hero.move((0, -1.2, 0), DT)
    for remake in REMAKES.values():
        # The character comes first, so that in the twin's scene it may take an id of the crowd's.
        other_hero, other_crowd, twin = remake((hero, crowd, crowd.member(crowd.ids[1])))
        assert twin.crowd is other_crowd and twin.index == 1
        assert twin.position == hit.other.position and other_crowd.scene is other_hero.scene
    assert pickle.loads(pickle.dumps(hit)).id == crowd.ids[1]
    member = crowd.member(crowd.ids[1])
    assert copy.copy(member) is member
    crowd.remove(1)
    with pytest.raises(TypeError, match="removed"):
        pickle.dumps(member)


@pytest.mark.parametrize("module", MODULES, ids=["compiled", "reference"])
def test_every_answer_names_the_other(module):
    scene, hero = place(module)
    told = [hero.ground, scene.sweep(module.Sphere(0.3), (2, 0, 4), (0, 0, -1), 9), *hero.hits]
    told += scene.penetration(module.Sphere(0.6), (2, 0, 2.2))
    if module is pycct:
        told.append(scene.closest_points(pycct.Sphere(0.5), (2, 3, 1), 9))
        hit = scene.raycast((hero.position[0], -5, 1), (0, 1, 0), 9, include="characters")
        assert hit.other is hit.controller is hero
    for answer in told:
        assert answer.other is answer.actor is not None


def test_what_the_reference_pages_name_can_be_imported():
    if not (ROOT / "docs" / "index.md").exists():
        pytest.skip("docs/ is not here")
    named = 0
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        inside = "pycct"
        for kind, what in re.findall(r"^\.\. ([\w:]+)::\s+(\S+)", page.read_text(), re.MULTILINE):
            if kind in ("currentmodule", "automodule"):
                inside = what
            if kind not in ("autoclass", "autofunction", "autodata", "py:class", "automodule"):
                continue
            path = what if what.startswith("pycct") else f"{inside}.{what}"
            assert not any(part.startswith("_") for part in path.split(".")), path
            thing = __import__(path.split(".")[0])
            for part in path.split(".")[1:]:
                if not hasattr(thing, part):
                    __import__(f"{thing.__name__}.{part}")
                thing = getattr(thing, part)
            named += 1
    assert named > 60


def returned(stub):
    """Names of classes in the annotations of what a stub's public functions return."""
    for node in ast.walk(ast.parse(stub.read_text())):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.returns is not None:
            yield from (n.id for n in ast.walk(node.returns) if isinstance(n, ast.Name))


def test_classes_that_public_calls_return_can_be_imported():
    import pycct.slide

    folder = Path(pycct.__file__).parent
    defined = {}
    for stub in (*folder.rglob("*.pyi"), folder / "cube_world" / "records.py", folder / "crowd" / "records.py"):
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name] = stub.relative_to(folder).as_posix()
    names = {n for stub in folder.rglob("*.pyi") for n in returned(stub)} & set(defined)
    # Made to stand behind `with`.
    names -= {"Edit"}
    assert {"Contacts", "HitArrays", "GroundResult"} <= names
    for name in names:
        home = pycct.slide if defined[name] == "cube_world/records.py" else pycct
        assert name in home.__all__, name
        assert inspect.isclass(getattr(home, name))


def checked(tmp_path, program):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(pycct.__file__).parent.parent), "PATH": ""},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_type_checker_refuses_names_that_are_not_there(tmp_path):
    said = checked(tmp_path, "import pycct\npycct.Nonsense\npycct.Scene()\n")
    assert re.findall(r"program.py:(\d+): error", said) == ["2"], said
    assert 'Module has no attribute "Nonsense"' in said


@pytest.mark.slow
def test_answers_that_are_never_none_are_typed_so(tmp_path):
    said = checked(
        tmp_path,
        """\
        import pycct
        a, b = pycct.Sphere(1), pycct.Box((1, 1, 1))
        pycct.distance_between(a, b).distance
        pycct.contacts_between(a, b, ((0, 0, 3), None)).count
        pycct.distance_between(a, b, max_distance=0.5).distance
        pycct.contacts_between(a, b, None, None, 0.5).count
        scene = pycct.Scene()
        hit = scene.raycast((0, 0, 9), (0, 0, -1), 99)
        if hit is not None and hit.other is not None:
            hit.other.layer
        """,
    )
    assert re.findall(r"program.py:(\d+): error", said) == ["5", "6"], said


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        pycct.Nonsense


def test_the_results_version_is_that_of_the_configuration():
    assert pycct.show_config(file=None)["results_version"] == pycct.RESULTS_VERSION >= 1
