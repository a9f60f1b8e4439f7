"""``import pycct`` without compiled modules, or by wish."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pycct
from pycct import reference

SCRIPT = """
import sys
import warnings
# An editable install would lend its compiled modules to the copy without them.
sys.meta_path = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", type(f).__module__)]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import pycct
    import pycct.reference
print([str(w.message) for w in said])
print(pycct.CharacterController is pycct.reference.CharacterController)
scene = pycct.Scene()
scene.add(pycct.Plane((0, 0, 1)))
scene.add(pycct.Box((1, 1, 0.2)), position=(1.5, 0, 0))
hero = pycct.CharacterController(scene, position=(0, 0, 1))
for _ in range(20):
    hero.move((0.07, 0.01, -0.05), 1 / 60)
print(hero.position, int(hero.flags))
"""


def run(path, **extra):
    """Lines that the script prints."""
    env = {k: v for k, v in os.environ.items() if k != "PYCCT_PURE"} | {"PYTHONPATH": str(path)} | extra
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, cwd=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_by_wish():
    root = Path(pycct.__file__).parent.parent
    said, pure, *where = run(root, PYCCT_PURE="1")
    assert pure == "True"
    assert said.count("plain Python") == 1 and "PYCCT_PURE is set" in said
    said, pure, *compiled_where = run(root, PYCCT_PURE="0")
    assert (said, pure) == ("[]", "False")
    assert where == compiled_where


def test_without_compiled_modules(tmp_path):
    copy = tmp_path / "pycct"
    shutil.copytree(Path(pycct.__file__).parent, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    (copy / "_core.pyx").touch()
    said, pure, *_ = run(tmp_path)
    assert pure == "True"
    assert said.count("plain Python") == 1 and "source folder, which is not compiled" in said
    (copy / "_core.pyx").unlink()
    said, pure, *_ = run(tmp_path)
    assert pure == "True"
    assert said.count("plain Python") == 1 and "cannot be imported" in said


# Closest points, contact manifolds, tables of hulls, cooked files.
COMPILED_ONLY = {"closest_points", "closest_points_many", "contacts", "tables", "load", "save", "mapped"}


def objects(module):
    """One object of each public class."""
    scene = module.Scene()
    floor = scene.add(module.Box((5, 5, 1)), position=(0, 0, -1))
    shapes = [
        module.Sphere(1),
        module.Capsule(1, 1),
        module.Box((1, 1, 1)),
        module.Plane((0, 0, 1)),
        module.Triangle((0, 0, 0), (1, 0, 0), (0, 1, 0)),
        module.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
        module.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]),
    ]
    obstacle = scene.add_obstacle(module.Box((1, 1, 1)), position=(9, 0, 0))
    hero = module.CharacterController(scene, position=(0, 0, 1))
    hero.move((0, 0, -0.3), 1 / 60)
    hit = scene.sweep(module.Sphere(0.1), (0, 0, 3), (0, 0, -1), 9)
    (way_out,) = scene.penetration(module.Sphere(0.5), (0, 0, 0.1))
    told = [hero.hits[0], hero.ground, hero.state, hero.stats, hit, way_out]
    return [scene, floor, obstacle, hero, *shapes, *told]


def test_names_are_the_same():
    public = {name for name in pycct.__all__ if name not in pycct._COMPILED and not name.startswith("__")}
    # It tells which of the two serves.
    public.remove("show_config")
    assert public <= set(reference.__all__)
    for theirs, ours in zip(objects(pycct), objects(reference), strict=True):
        assert type(theirs).__name__ == type(ours).__name__
        # These are numbers and tools of the compiled modules.
        missing = (
            {n for n in dir(theirs) if not n.startswith("_")} - set(dir(ours)) - {"kind", "neighbours"} - COMPILED_ONLY
        )
        if isinstance(theirs, pycct.Scene):
            missing -= {"load", "save"}  # cooked files
        assert not missing, ours
