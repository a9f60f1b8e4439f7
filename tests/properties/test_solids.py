"""No sequence of moves takes the centre of a character from outside to inside of a closed solid.

Scenes are drawn: blocks with leaning fronts as one-sided and two-sided meshes and as hulls, boxes,
balls, capsules and a plane. Characters begin beside a solid, in contact or in an overlap, leave it
by little and walk at it again.
"""

import math
import random

import numpy as np
import pytest
from brute import rotate

from pycct import Box, Capsule, CharacterController, ConvexHull, Mesh, Plane, Scene, Sphere

KINDS = ("one-sided", "two-sided", "hull", "box", "ball", "capsule")
# Corners of a block: bit 0 is +z, bit 1 +y, bit 2 +x.
BLOCK = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
BLOCK += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
# A centre this deep is inside; the faces of a drawn solid are exact to rounding.
INSIDE = 1e-6
RADII, HEIGHTS = (0.3, 0.4, 0.5), (0.0, 0.6, 1.2)
STEPS, OFFSETS = (0.0, 0.1, 0.2, 0.3, 0.5), (0.0, 0.01, 0.02, 0.05, 0.1)


class Planes:
    """The part of space below all of some planes."""

    def __init__(self, normals, offsets):
        self.normals, self.offsets = np.array(normals, float), np.array(offsets, float)

    def depth(self, p):
        return (self.offsets - self.normals @ p).min()


class Round:
    """The points within a radius of a segment."""

    def __init__(self, a, b, radius):
        self.a, self.way, self.radius = a, b - a, radius

    def depth(self, p):
        size2 = self.way @ self.way
        t = min(1.0, max(0.0, (p - self.a) @ self.way / size2)) if size2 > 0 else 0.0
        return self.radius - np.linalg.norm(p - self.a - t * self.way)


def turn(rng):
    """About the vertical in half of the cases."""
    q = np.array([rng.gauss(0, 1) for _ in range(4)])
    if rng.random() < 0.5:
        q[:2] = 0
    return tuple(q / np.linalg.norm(q))


def block(rng):
    """Corners of a block whose front leans by up to 60 degrees."""
    half = rng.uniform(0.3, 3), rng.uniform(0.05, 2), rng.uniform(0.3, 3)
    lean = math.tan(math.radians(rng.choice([0, 0, 15, 30, -30, rng.uniform(-60, 60)])))
    signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    v = np.array(signs) * half
    front = v[:, 1] > 0
    v[front, 1] = np.maximum(v[front, 1] + 0.5 * lean * v[front, 2], 0.05 - half[1])
    return v


def planes_of(v):
    a, b, c = (v[[t[k] for t in BLOCK]] for k in range(3))
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    return Planes(n, (n * a).sum(1))


def add_solid(scene, rng, kind, centre):
    """Add a drawn solid to the scene; return its inside."""
    q = turn(rng) if rng.random() < 0.7 else (0.0, 0.0, 0.0, 1.0)
    if kind == "ball":
        scene.add(Sphere(r := rng.uniform(0.2, 2)), position=centre)
        return Round(centre, centre, r)
    if kind == "capsule":
        scene.add(Capsule(r := rng.uniform(0.2, 2), h := rng.uniform(0.2, 3)), position=centre, rotation=q)
        axis = rotate(q, np.array([[0, 0, h / 2]]))[0]
        return Round(centre - axis, centre + axis, r)
    if kind == "box":
        half = np.array([rng.uniform(0.05, 2) for _ in range(3)])
        scene.add(Box(half), position=centre, rotation=q)
        normals = rotate(q, np.concatenate([np.eye(3), -np.eye(3)]))
        return Planes(normals, normals @ centre + np.tile(half, 2))
    v = rotate(q, block(rng)) + centre
    scene.add(ConvexHull(v) if kind == "hull" else Mesh(v, BLOCK, two_sided=kind == "two-sided"))
    return planes_of(v)


def drawn_scene(rng, kinds):
    """Return a scene, the insides of its solids, and the centres of these."""
    scene, solids, centres = Scene(), [], []
    if rng.random() < 0.6:
        scene.add(Plane((0, 0, 1)), position=(0, 0, -1.5))
        solids.append(Planes([(0, 0, 1)], [-1.5]))
    for _ in range(rng.choice([1, 1, 2, 3])):
        centres.append(np.array([rng.uniform(-1.5, 1.5) for _ in range(3)]))
        solids.append(add_solid(scene, rng, rng.choice(kinds), centres[-1]))
    return scene, solids, centres


def drawn_hero(scene, rng, rules):
    radius, height = rng.choice(RADII), rng.choice(HEIGHTS)
    more = {"climbing_mode": "constrained"} if rng.random() < 0.3 else {}
    more |= {"non_walkable_mode": "force_sliding"} if rng.random() < 0.3 else {}
    more |= {"slope_limit": 0.0} if rng.random() < 0.2 else {}
    step, offset = min(rng.choice(STEPS), height + 2 * radius), rng.choice(OFFSETS)
    return CharacterController(
        scene, radius=radius, height=height, step_offset=step, contact_offset=offset, rules=rules, **more
    )


def depth(solids, p):
    return max(s.depth(np.asarray(p)) for s in solids)


def beside(rng, hero, scene, solids):
    """A place outside: free, in contact, or in an overlap of up to 0.9 of the radius; or None."""
    p, target = (np.array([rng.uniform(-k, k) for _ in range(3)]) for k in (4, 1))
    if depth(solids, p) > -0.01 or any(x.depth > 0 for x in scene.penetration(hero.shape, p, hero.pose[1])):
        return None
    way = (target - p) / np.linalg.norm(target - p)
    hit = scene.sweep(hero.shape, p, way, 10)
    if hit is not None and rng.random() < 0.7:
        p = p + way * (hit.distance + rng.choice([-0.02, 0, 0.0005, 0.002, 0.01, 0.1, 0.5, 0.9]) * hero.radius)
    return p if depth(solids, p) < -0.01 else None


def drawn_displacement(rng, hero, centres, leaves):
    """A short way away from a solid, or a longer one at it, or any other."""
    speed, fall = rng.choice([0.01, 0.05, 0.1, 0.3, 0.6]), rng.choice([0, 0, -0.02, -0.05, -0.2, 0.02, 0.1])
    if rng.random() < 0.4:
        a = rng.uniform(0, 2 * math.pi)
        return speed * math.cos(a), speed * math.sin(a), fall
    way = rng.choice(centres) - hero.position
    way = (-way if leaves else way) + [rng.gauss(0, 0.6 if leaves else 0.3) for _ in range(3)]
    if rng.random() < 0.6:
        way[2] = 0
    way *= speed * (rng.choice([0.002, 0.02, 0.2]) if leaves else 1) / (np.linalg.norm(way) + 1e-9)
    way[2] += rng.choice([0, fall])
    return tuple(way)


def entries(rules, seed, n_moves, kinds=KINDS):
    """Make about ``n_moves`` moves; return the moves that took a centre into a solid."""
    rng = random.Random(seed)
    made, found = 0, []
    while made < n_moves:
        scene, solids, centres = drawn_scene(rng, kinds)
        hero = drawn_hero(scene, rng, rules)
        for _ in range(6):
            start = beside(rng, hero, scene, solids)
            if start is None:
                continue
            hero.teleport(tuple(start))
            for leg in range(6):
                leaves = leg % 2 == 0
                d = drawn_displacement(rng, hero, centres, leaves)
                for _ in range(rng.choice([1, 1, 2, 3] if leaves else [3, 10, 25, 40])):
                    before = hero.position
                    hero.move(d, 1 / 60)
                    made += 1
                    if (deep := depth(solids, hero.position)) > INSIDE:
                        found.append((before, d, hero.position, deep))
                        break
                if found and found[-1][2] == hero.position:
                    break
    return found


@pytest.mark.parametrize("kinds", [KINDS, ("one-sided",)], ids=["all", "one-sided"])
@pytest.mark.parametrize("rules", ["robust", "physx", "document"])
def test_no_centre_enters_a_solid(rules, kinds):
    assert entries(rules, 5, 15000, kinds) == []


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [KINDS, ("one-sided",)], ids=["all", "one-sided"])
@pytest.mark.parametrize("rules", ["robust", "physx"])
def test_no_centre_enters_a_solid_in_a_million_moves(rules, kinds):
    assert entries(rules, 6, 500_000, kinds) == []
