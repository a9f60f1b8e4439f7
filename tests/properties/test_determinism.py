"""The same hash of one fixed run, however it is made: docs/determinism_table.md."""

import ctypes
import ctypes.util
import platform
import shutil
import subprocess
import sys

import hash_run
import numpy as np
import pytest

import pycct
from pycct.runtime.version import RESULTS_VERSION

EXPECTED = hash_run.EXPECTED[RESULTS_VERSION]
SHORT = 100

WAYS = {
    "single": {},
    "cold": {"cold": True},
    "backwards": {"backwards": True},
    "2 threads": {"threads": 2},
    "8 threads": {"threads": 8},
    "8 threads, cold, backwards": {"threads": 8, "cold": True, "backwards": True},
    **{f"move_many, {n} threads": {"how": "move_many", "threads": n} for n in (1, 2, 8)},
    **{f"crowd, {n} threads": {"how": "crowd", "threads": n} for n in (1, 2, 8)},
    "crowd, backwards": {"how": "crowd", "threads": 2, "backwards": True},
}


def check(steps, how="single", **more):
    batch = {"single": "CharacterController", "move_many": "move_many", "crowd": "Crowd"}[how]
    if not hasattr(pycct, batch):
        pytest.skip(f"no pycct.{batch}")
    paths, told = hash_run.run(how, steps=steps, **more)
    assert paths == EXPECTED[steps][0]
    if how == "single":
        assert told == EXPECTED[steps][1]


def test_the_whole_run():
    """An intended change raises RESULTS_VERSION and adds its hashes to hash_run.EXPECTED."""
    check(hash_run.STEPS)


@pytest.mark.parametrize("way", WAYS)
def test_the_beginning_of_the_run(way):
    check(SHORT, **WAYS[way])


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in WAYS if way != "single"])
def test_the_whole_run_in_every_way(way):
    check(hash_run.STEPS, **WAYS[way])


def test_one_bit_more_gives_another_hash(monkeypatch):
    """The hash sees the smallest change of one displacement."""
    whole = hash_run.displacements

    def changed(seed, count):
        d = whole(seed, count)
        d[40, 7, 0] += 2.0**-40
        return d

    monkeypatch.setattr(hash_run, "displacements", changed)
    paths, told = hash_run.run(steps=SHORT)
    assert paths != EXPECTED[SHORT][0] and told != EXPECTED[SHORT][1]


FLUSH = r"""
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
/* Flush to zero, denormals are zero. */
void flush(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040); }
#elif defined(__aarch64__)
void flush(int on) {
    uint64_t r;
    __asm__ volatile("mrs %0, fpcr" : "=r"(r));
    r = on ? r | (1u << 24) : r & ~(uint64_t)(1u << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(r));
}
#endif
double product(double a, double b) { return a * b; }
"""


@pytest.fixture(scope="module")
def flusher(tmp_path_factory):
    """A library that sets flush-to-zero in its thread, as gcc -ffast-math does."""
    if sys.platform == "win32" or platform.machine() not in ("x86_64", "aarch64", "arm64"):
        pytest.skip("no way to set it here")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("flush")
    (folder / "flush.c").write_text(FLUSH)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", folder / "flush.so", folder / "flush.c"], check=True)
    library = ctypes.CDLL(str(folder / "flush.so"))
    library.product.restype = ctypes.c_double
    library.product.argtypes = [ctypes.c_double, ctypes.c_double]
    yield library
    library.flush(0)


@pytest.mark.parametrize("way", ["single", "2 threads", "move_many, 2 threads", "crowd, 1 threads", "crowd, 2 threads"])
def test_flush_to_zero_left_on_by_others(flusher, way):
    tiny = 2.0**-600, 2.0**-460
    try:
        check(SHORT, in_each_thread=lambda: flusher.flush(1), **WAYS[way])
        # And it is left as it was found.
        assert flusher.product(*tiny) == 0.0
    finally:
        flusher.flush(0)
    assert flusher.product(*tiny) == 2.0**-1060


@pytest.mark.skipif(not sys.platform.startswith("linux") or platform.machine() != "x86_64",
                    reason="knows the rounding modes of x86-64")
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00])
def test_the_world_is_built_as_if_numbers_were_rounded_to_the_nearest(mode):
    libm = ctypes.CDLL(ctypes.util.find_library("m"))

    def walk(mode):
        rng = np.random.default_rng(1)
        scene = pycct.Scene()
        scene.add(pycct.Plane((0, 0, 1)))
        scene.add(pycct.Box((1, 1, 0.2)), (0, 9, 0.3), (0.6, 0, 0, 0.8), body="kinematic")
        for p in rng.uniform(-12, 12, (60, 2)):
            scene.add(pycct.Box((0.5, 0.5, 0.3)), (*p, 0.3))
        heroes = [pycct.CharacterController(scene, (*rng.uniform(-12, 12, 2), 0.95)) for _ in range(300)]
        way = rng.normal(0, 0.2, (300, 3))
        assert libm.fesetround(mode) == 0
        try:
            pycct.move_many(heroes, way, 1 / 60)
        finally:
            libm.fesetround(0)
        return [hero.save() for hero in heroes]

    assert walk(mode) == walk(0)


def tiny_questions(before, after):
    """Results in a world so small that squares of lengths are denormal; its numbers are not."""
    t = 2.0**-530
    scene = pycct.Scene()
    scene.add(pycct.Box((t, t, t)))
    scene.add(pycct.Mesh([[0, 0, 0], [t, 0, 0], [0, t, t]], [[0, 1, 2]]), (8 * t, 0, 0))
    scene.add(pycct.Triangle((0, 0, 0), (t, 0, 0), (0, t, t)), (0, 8 * t, 0))
    scene.add(pycct.Sphere(t), (0, 0, 8 * t))
    small = {"radius": t, "height": t, "step_offset": 0, "contact_offset": t}
    heroes = [pycct.CharacterController(scene, (8 * t, 8 * t, 0), **small)]
    crowd = pycct.Crowd(scene, [(-8 * t, 8 * t, 0)], **small)
    rng = np.random.default_rng(0)
    start = np.ldexp(rng.integers(-9 * 256, 9 * 256, (200, 3)).astype(float), -538)
    way = rng.integers(-9, 9, (200, 3)) / 8 + np.array([0, 0, 1 / 16])
    shapes = [pycct.Sphere(t), pycct.Capsule(t, t), pycct.Box((t, t, t))]
    shapes.append(pycct.Triangle((0, 0, 0), (t, 0, 0), (0, t, t)))
    one, many, plain = [], [], {"include": "all"}
    before()
    try:
        many.append(scene.raycast_many(start, way, 8 * t, **plain))
        for p, d in zip(start.tolist(), way.tolist(), strict=True):
            one.append(scene.raycast(p, d, 8 * t, **plain))
        for shape in shapes:
            many += [scene.sweep_many(shape, start, way, 8 * t, **plain),
                     scene.closest_points_many(shape, start, 9 * t, **plain),
                     scene.penetration_many(shape, start, **plain), scene.overlap_many(shape, start, **plain)]
            for p, d in zip(start[:60].tolist(), way[:60].tolist(), strict=True):
                one.append(scene.sweep(shape, p, d, 8 * t, **plain))
                one.append(scene.closest_points(shape, p, 9 * t, **plain))
                one += scene.penetration(shape, p, **plain)
                one.append(scene.closest_points(shape, p, 9 * t, **plain, filter=lambda who: True))
        one += [heroes[0].probe_ground(9 * t), heroes[0].can_resize(2 * t)]
        for who in (heroes[0].contacts(t), *crowd.contacts(t)):
            one += [(c.other.id, c.manifold.normal, c.manifold.points_on_b.tobytes(), c.manifold.distances.tobytes())
                    for c in who]
        pose = (0, t, t), (0, 0, 0, 1)
        for a in shapes:
            for b in shapes:
                r, m = pycct.distance_between(a, b, pose), pycct.contacts_between(a, b, pose)
                one.append((r.distance, r.point_a, r.point_b, r.normal, m.normal, m.points_on_b.tobytes()))
    finally:
        after()
    names = ("distance", "depth", "position", "normal", "direction", "point", "on_shape", "on_actor")
    told = [[getattr(x, name) for name in names if hasattr(x, name)] or x for x in one]
    arrays = [(name, getattr(r, name).tobytes()) for r in many for name in dir(r)
              if isinstance(getattr(r, name), np.ndarray)]
    assert sum(r.hit.any() for r in many if hasattr(r, "hit")) > 8
    return told, arrays


def test_questions_where_flush_to_zero_was_left_on(flusher):
    """The same bits, and it is left on."""
    tiny = 2.0**-600, 2.0**-460

    def still_on():
        assert flusher.product(*tiny) == 0.0

    want = tiny_questions(lambda: None, lambda: None)
    try:
        got = tiny_questions(lambda: flusher.flush(1), lambda: (still_on(), flusher.flush(0)))
    finally:
        flusher.flush(0)
    assert got == want
    assert flusher.product(*tiny) == 2.0**-1060
