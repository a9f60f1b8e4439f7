"""Without the GIL, and in subinterpreters: it works, or says why it does not."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pycct
from pycct import Box, CharacterController, Plane, Scene

ROOT = Path(pycct.__file__).parent.parent
FREE = hasattr(sys, "_is_gil_enabled") and "free-threading" in sys.version


def run(script, *args, **more):
    env = {k: v for k, v in os.environ.items() if k != "PYTHON_GIL"} | {"PYTHONPATH": str(ROOT)} | more
    return subprocess.run([sys.executable, "-c", script, *args], env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(not FREE, reason="a build with the GIL")
def test_importing_leaves_the_gil_off():
    """A module without the free-threading flag would enable the GIL for the whole process."""
    script = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "import importlib, pathlib, pycct\n"
        "top = pathlib.Path(pycct.__file__).parent\n"
        "parts = [(*p.parent.relative_to(top.parent).parts, p.name.split('.')[0]) for p in top.rglob('*.so')]\n"
        "names = {'.'.join(part) for part in parts}\n"
        "for name in sorted(names): importlib.import_module(name)\n"
        "print(len(names), sys._is_gil_enabled(), pycct.show_config(file=None)['gil'])"
    )
    done = run(script)
    assert done.returncode == 0, done.stderr
    count, gil, told = done.stdout.split()
    assert int(count) > 20
    assert (gil, told) == ("False", "off")


def test_every_module_declares_it():
    """On a build with the GIL too: one place turns the declaration on for all."""
    sources = list(Path(pycct.__file__).parent.rglob("*.pyx"))
    if not sources:
        pytest.skip("sources are not part of an installed package")
    setup = (ROOT / "setup.py").read_text()
    assert re.search(r'"freethreading_compatible": True', setup)
    assert not [p.name for p in sources if "freethreading_compatible" in p.read_text()]


def at_once(crew):
    """Let threads run to their end."""
    for t in crew:
        t.start()
    for t in crew:
        t.join()


def hammer(threads, *jobs, rounds):
    """Run jobs over and over in threads; what went wrong."""
    wrong = []
    start = threading.Barrier(threads * len(jobs))

    def work(job):
        start.wait()
        try:
            for k in range(rounds):
                job(k)
        except BaseException as e:
            wrong.append(repr(e))

    at_once([threading.Thread(target=work, args=(job,)) for job in jobs for _ in range(threads)])
    return wrong


def test_pictures_replaced_while_others_take_them():
    """Each write throws away the picture that readers are just taking."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    lift = scene.add(Box((1, 1, 0.1)), position=(0, 0, 1), body="kinematic")

    def write(k):
        lift.move_to((0, 0, 1 + k % 7))

    def read(k):
        hit = scene.raycast((0, 0, 20), (0, 0, -1), 30)
        assert hit.actor is lift and round(20 - hit.distance - 1.1, 9) in range(7)

    assert hammer(2, write, read, rounds=2000) == []


def test_whoever_changes_the_world_sees_the_change():
    """Also while another thread is just making the picture that shows it."""
    scene = Scene()
    for i in range(300):
        scene.add(Box((0.1, 0.1, 0.1)), position=(i % 20, i // 20, -5), body=("static", "kinematic")[i % 2])
    wrong = []

    def work(number):
        own = scene.add(Box((0.4, 0.4, 0.5)), position=(10.0 * number, 50, 0), body="kinematic")
        for k in range(400):
            z = k % 9
            own.move_to((10 * number, 50, z))
            hit = scene.raycast((10 * number, 50, 20), (0, 0, -1), 40)
            if hit is None or abs(20 - hit.distance - 0.5 - z) > 1e-9:
                wrong.append((number, k, hit))
            if k % 7 == number:
                # Enough that the picture is made as a whole.
                more = [scene.add(Box((0.1, 0.1, 0.1)), position=(i, 0, -9), body="kinematic") for i in range(60)]
                with scene.edit():
                    for actor in more:
                        scene.remove(actor)

    at_once([threading.Thread(target=work, args=(i,)) for i in range(4)])
    assert wrong == []


def test_a_place_is_never_half_of_one_and_half_of_another():
    scene = Scene()
    lift = scene.add(Box((1, 1, 1)), position=(0, 0, 0), body="kinematic")

    def write(k):
        lift.move_to((k, k, k), (0, 0, 0, 1))

    def read(k):
        x, y, z = lift.position
        assert x == y == z
        (lo, _, _), (hi, _, _) = lift.bounds
        assert 1.9 < hi - lo < 2.1

    assert hammer(2, write, read, rounds=3000) == []


def test_actors_come_and_go_while_others_look():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))

    def come_and_go(k):
        scene.remove(scene.add(Box((1, 1, 1)), position=(k % 5, 0, 0), body=("static", "kinematic")[k & 1]))

    def look(k):
        assert all(a.id >= 0 for a in scene.actors)
        for a in scene.overlap(pycct.Sphere(0.5), (k % 5, 0, 0.2)):
            assert a.scene in (scene, None)

    assert hammer(2, come_and_go, look, rounds=700) == []
    assert len(scene.actors) == 1


def test_scenes_published_at_once_do_not_mix_up_what_is_cached():
    """Snapshot versions count over all scenes, and candidate caches compare them."""
    wrong = []

    def work(number):
        scene = Scene()
        floor = scene.add(Box((5, 5, 1)), position=(0, 0, -1), body="kinematic")
        hero = CharacterController(scene, position=(0, 0, 3))
        for k in range(600):
            z = -1 - (k % 3)
            floor.move_to((0, 0, z))
            hero.teleport((0, 0, 3))
            hero.move((0, 0, -9), 1 / 60)
            if abs(hero.foot_position[2] - (z + 1)) > 1e-9:
                wrong.append((number, k, hero.foot_position))

    at_once([threading.Thread(target=work, args=(i,)) for i in range(4)])
    assert wrong == []


SUBINTERPRETER = """
import sys
try:
    import _interpreters as sub
except ImportError:
    import _xxsubinterpreters as sub
if "first" in sys.argv:
    import pycct
try:
    new = sub.create(*{"legacy": ("legacy",), "isolated": ("isolated",)}[sys.argv[1]])
except TypeError:
    new = sub.create(isolated=sys.argv[1] == "isolated")
said = sub.run_string(new, '''
import warnings
warnings.simplefilter("ignore")
try:
    import pycct
    scene = pycct.Scene()
    scene.add(pycct.Plane((0, 0, 1)))
    hero = pycct.CharacterController(scene, position=(0, 0, 1))
    hero.move((0, 0, -9), 1 / 60)
    print("works", hero.foot_position[2], flush=True)
except ImportError as e:
    print("refused:", " ".join(str(e).split()), flush=True)
''')
assert said is None, said
print("alive")
"""


@pytest.mark.parametrize("kind", ["legacy", "isolated"])
@pytest.mark.parametrize("order", ["alone", "first"])
def test_a_subinterpreter_works_or_refuses(kind, order):
    """The first interpreter can import the package; a second one gets a clear error."""
    for module in ("_interpreters", "_xxsubinterpreters"):
        try:
            __import__(module)
            break
        except ImportError:
            pass
    else:
        pytest.skip("no subinterpreters here")
    done = run(SUBINTERPRETER, kind, order)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    said, alive = done.stdout.splitlines()
    assert alive == "alive"
    if said.startswith("works"):
        assert abs(float(said.split()[1])) < 1e-9
    else:
        # NumPy may be the one that refuses.
        assert re.match(r"refused: .*(interpreter|more than once per process)", said), said
