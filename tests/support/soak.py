"""Endurance: random closed scenes, characters and moves; every move is checked.

``python tests/support/soak.py --minutes 3`` runs until the time is over and prints the number of
moves; ``--seed N`` repeats one scene. A violation names its seed, which `test_soak.KEPT` keeps once
fixed.

Conditions after every move
    finite
        Position and velocity are finite.
    inside
        No part of the capsule is beyond the six planes of the scene, nor deeper than the contact
        offset in a static front side, if the move started free and no moving body has pushed the
        character.
    not too far
        The motion is at most the displacement, plus step offset, ride, separation and recovery.
    bounded
        The number of iterations is bounded.
    remembered
        The platform exists, and the ground normal is a unit vector.
"""

import argparse
import math
import random
import sys
import time

import numpy as np

import pycct

SIZE = 8.0  # half the width of a scene, metres
DT = 1 / 60
MOVES = 400  # moves for each character and scene
# Rounding of sweeps and of the queries that check them, metres.
SLACK = 1e-6
# Ten iterations in each of three passes and a sensor, twice with the walk experiment; 'robust'
# divides steps.
MOST_ITERATIONS = {False: 64, True: 256}
STATIC, MOVING = 1, 2  # layers


class Violation(AssertionError):
    """A violated condition."""


def closed(scene, up):
    """Six planes that face inwards."""
    for axis in range(3):
        for side in (-1.0, 1.0):
            normal = [0.0] * 3
            normal[axis] = side
            scene.add(pycct.Plane(normal, -SIZE), layer=STATIC)


def turn(rng):
    q = [rng.gauss(0, 1) for _ in range(4)]
    length = math.sqrt(sum(x * x for x in q))
    return [x / length for x in q]


def place(rng, size=SIZE):
    return [rng.uniform(-size, size) for _ in range(3)]


def grid_mesh(rng, height, n, two_sided=False):
    """A mesh over the ground with heights from a function."""
    step = 2 * SIZE / (n - 1)
    xs = [-SIZE + i * step for i in range(n)]
    points = [(x, y, height(x, y)) for x in xs for y in xs]
    faces = []
    for i in range(n - 1):
        for j in range(n - 1):
            a = i * n + j
            if rng.random() < 0.5:
                faces += [(a, a + n, a + n + 1), (a, a + n + 1, a + 1)]
            else:
                faces += [(a, a + n, a + 1), (a + n, a + n + 1, a + 1)]
    return pycct.Mesh(points, faces, two_sided)


def cave(rng, scene):
    """Rough ground, and a rough ceiling that may reach it."""
    rough = rng.choice([0.2, 0.6, 1.5])
    floor = grid_mesh(rng, lambda x, y: rng.uniform(0, rough) - 3, 16, True)
    scene.add(floor, layer=STATIC)
    roof = grid_mesh(rng, lambda x, y: rng.uniform(0, 2 * rough) - 2, 16, True)
    scene.add(roof, layer=STATIC)


def bowl(rng, scene):
    """Terrain that rises towards the sides."""
    steep, rough = rng.choice([0.02, 0.08, 0.2]), rng.choice([0.0, 0.1, 0.4])
    n = 20
    heights = np.array(
        [
            [steep * ((i - 10) ** 2 + (j - 10) ** 2) * 0.7 + rng.uniform(0, rough) - 6 for j in range(n)]
            for i in range(n)
        ]
    )
    field = pycct.Heightfield(np.minimum(heights, 7), (2 * SIZE / (n - 1),) * 2, two_sided=True)
    scene.add(field, (-SIZE, -SIZE, 0), layer=STATIC)


def maze(rng, scene):
    """Upright walls, stairs and low lintels on a floor."""
    scene.add(pycct.Box((SIZE, SIZE, 0.5)), (0, 0, -SIZE), layer=STATIC)
    for _ in range(40):
        half = rng.choice([(0.1, 1.5, 1.5), (1.5, 0.1, 1.5), (1.0, 1.0, rng.uniform(0.02, 0.4)), (2, 0.3, 0.1)])
        x, y, _ = place(rng)
        z = rng.choice([-SIZE + 0.5 + half[2], -SIZE + 0.5 + rng.uniform(0.2, 2.0)])
        scene.add(pycct.Box(half), (round(x), round(y), z), layer=STATIC)


def soup(rng, scene):
    """Random two-sided triangles."""
    n = rng.choice([30, 120])
    points, faces = [], []
    for k in range(n):
        c = place(rng)
        points += [[x + rng.gauss(0, 1.2) for x in c] for _ in range(3)]
        faces.append((3 * k, 3 * k + 1, 3 * k + 2))
    scene.add(pycct.Mesh(points, faces, True), layer=STATIC)


def solids(rng, scene):
    """Random boxes, balls, capsules and hulls."""
    for _ in range(50):
        kind = rng.randrange(4)
        if kind == 0:
            shape = pycct.Box([rng.uniform(0.05, 1.5) for _ in range(3)])
        elif kind == 1:
            shape = pycct.Sphere(rng.uniform(0.1, 1))
        elif kind == 2:
            shape = pycct.Capsule(rng.uniform(0.1, 0.6), rng.uniform(0, 2))
        else:
            shape = pycct.ConvexHull([place(rng, 1.0) for _ in range(rng.choice([4, 8, 20]))])
        scene.add(shape, place(rng), turn(rng), layer=STATIC)


WORLDS = {f.__name__: f for f in (cave, bowl, maze, soup, solids)}


class World:
    """One closed scene with its characters and moving bodies."""

    def __init__(self, seed):
        self.seed = seed
        rng = self.rng = random.Random(seed)
        self.scene = pycct.Scene()
        self.kind = rng.choice(sorted(WORLDS))
        self.up = (0, 0, 1)
        closed(self.scene, self.up)
        WORLDS[self.kind](rng, self.scene)
        self.lifts = []
        if rng.random() < 0.4:
            for _ in range(rng.choice([1, 4, 8])):
                at = place(rng, SIZE - 2)
                lift = self.scene.add(
                    pycct.Box((1, 1, 0.1)), at, body="kinematic", behavior=rng.choice([0, 1]), layer=MOVING
                )
                self.lifts.append((lift, at, place(rng, 0.7), rng.uniform(0.5, 3)))
        self.together = rng.random() < 0.3
        self.heroes = [self.hero() for _ in range(rng.choice([1, 4, 12]))]
        self.moves = 0

    def hero(self):
        rng = self.rng
        radius = rng.choice([0.2, 0.35, 0.5])
        height = rng.choice([0.0, 0.5, 1.1])
        whole = height + 2 * radius
        for _ in range(50):
            hero = pycct.CharacterController(
                self.scene,
                place(rng, SIZE - 1.5),
                radius,
                height,
                step_offset=min(whole, rng.choice([0.0, 0.1, 0.3, 0.5])),
                contact_offset=rng.choice([0.001, 0.01, 0.05]),
                slope_limit=rng.choice([0.707, 0.707, 0.9, 0.0]),
                climbing_mode=rng.choice(["easy", "constrained"]),
                non_walkable_mode=rng.choice(["prevent_climbing", "force_sliding"]),
                rules=rng.choice(["physx", "physx", "robust", "document"]),
                prevent_vertical_sliding=rng.random() < 0.2,
                overlap_recovery=rng.random() < 0.9,
                collide=self.together,
                mask=STATIC | MOVING,
            )
            # Start free, where space allows.
            if self.depth(hero) <= 0.0:
                break
        return hero

    def depth(self, hero):
        """Depth in static shapes, metres."""
        found = self.scene.penetration(hero.shape, *hero.pose, mask=STATIC)
        return max((p.depth for p in found), default=0.0)

    def step(self, t):
        rng = self.rng
        for lift, at, swing, pace in self.lifts:
            s = math.sin(t * pace / 20)
            lift.move_to([a + s * b for a, b in zip(at, swing, strict=True)])
        for hero in self.heroes:
            speed = rng.choice([0.0, 0.02, 0.08, 0.08, 0.3])
            angle = rng.uniform(0, 2 * math.pi) if t % 20 == 0 else getattr(hero, "user_data", None) or 0.0
            hero.user_data = angle
            d = (speed * math.cos(angle), speed * math.sin(angle), rng.choice([-0.1, -0.1, -0.02, 0.0, 0.15, -0.6]))
            self.move(hero, d)
        if self.together and t % 3 == 0:
            pycct.separate(self.heroes, DT)

    def move(self, hero, d):
        # Without recovery, a move ignores shapes in which it starts, however shallow the overlap.
        free = self.depth(hero) <= (hero.contact_offset + SLACK if hero.overlap_recovery else 0.0)
        before = hero.position
        separated = 4.0 * DT * len(self.heroes) if self.together else 0.0
        hero.move(d, DT)
        self.moves += 1
        after, stats, state = hero.position, hero.stats, hero.state
        if not all(map(math.isfinite, (*after, *hero.velocity))):
            raise Violation(f"not finite: {after} {hero.velocity}")
        pushed = bool(self.lifts) or stats.recoveries > 0
        if free and not pushed:
            if max(map(abs, after)) > SIZE + SLACK:
                raise Violation(f"outside: {after}, from {before} by {d}")
            deep = self.depth(hero)
            if deep > hero.contact_offset + SLACK:
                raise Violation(f"{deep} deep at {after}, from {before} by {d}")
        far = math.dist(before, after)
        reach = 2 * math.hypot(*d) + hero.step_offset + 2 * math.hypot(*state.platform_delta) + separated + SLACK
        if stats.recoveries == 0 and far > reach:
            raise Violation(f"went {far}, no more than {reach} was asked: from {before} by {d}")
        if stats.iterations > MOST_ITERATIONS[bool(hero.rules & pycct.Rules.ROBUST & ~pycct.Rules.PHYSX)]:
            raise Violation(f"{stats.iterations} iterations: from {before} by {d}")
        ground = hero.ground
        if ground is not None and abs(math.hypot(*ground.normal) - 1.0) > 1e-9:
            raise Violation(f"ground's normal {ground.normal}")

    def run(self):
        for t in range(MOVES):
            for h in self.heroes:
                # A crushed or stuck character moves elsewhere, where it has more to do.
                if self.rng.random() < 0.002:
                    h.teleport(self.hero().position)
            self.step(t)
        return self.moves


def soak(seconds, first=0, told=print):
    """Run scenes of ascending seeds until the time is over.

    Return moves and violations (seed, text).
    """
    end = time.monotonic() + seconds
    moves, violations, seed = 0, [], first
    while time.monotonic() < end:
        world = None
        try:
            world = World(seed)
            world.run()
        except Violation as e:
            violations.append((seed, f"{world.kind}: {e}"))
            told(f"seed {seed}: {violations[-1][1]}")
        moves += world.moves
        seed += 1
    return moves, seed - first, violations


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--first", type=int, default=0, help="seed of the first world")
    parser.add_argument("--seed", type=int, help="this world only")
    args = parser.parse_args()
    if args.seed is not None:
        print(World(args.seed).run(), "moves")
        return 0
    moves, worlds, violations = soak(60 * args.minutes, args.first)
    print(f"{moves} moves in {worlds} worlds, {len(violations)} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
