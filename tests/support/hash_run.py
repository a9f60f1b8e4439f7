"""One fixed run of 100,000 moves with one hash, for every machine, compiler and order.

``python tests/support/hash_run.py`` prints the hash of the imported pycct; ``--how`` makes the run
in another way. All input consists of integers and exact steps, so that no other library can change
it.
"""

import argparse
import hashlib
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pycct

# By results version and number of steps: hash of the paths, and of all results of single
# controllers. A new hash needs a new version, which announces that recordings will differ.
EXPECTED = {
    2: {
        100: ("ff95f1f05463c95878c29ff8b72e700c", "e8837032a6b6975b0c0db877679baf7b"),
        500: ("868e63367c7ec91e71198c137c99a01c", "a5db880fd8b0b6dde2d505d31b1e84bc"),
    },
    3: {
        100: ("848bb0ee102717fabe5eea0dc80aa61d", "3ab99c03b6343dcc47a9240530c22ad0"),
        500: ("4f0653b8f54c4401bdc06f53436b8253", "9d27a11eb2f7bf32d1e7abb3e9806ef2"),
    },
}

ALONE = 160  # characters without collisions
TOGETHER = 40  # characters that collide with each other
STEPS = 500  # 100,000 moves
DT = 1 / 64
HALF = 16


class Numbers:
    """A stream of integers (splitmix64), and fractions of them that a float64 holds exactly."""

    def __init__(self, seed):
        self.state = seed

    def integer(self, least, most):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return least + (z ^ (z >> 31)) % (most - least + 1)

    def share(self, least, most, parts=256):
        """A multiple of 1 / parts."""
        return self.integer(least * parts, most * parts) / parts

    def pick(self, *choices):
        return choices[self.integer(0, len(choices) - 1)]


def terrain(numbers, n=24):
    """Hills over a grid as a mesh: vertices and triangles."""
    step = 2 * HALF / (n - 1)
    points = [(-HALF + i * step, -HALF + j * step, numbers.share(0, 1) / 2) for i in range(n) for j in range(n)]
    faces = []
    for i in range(n - 1):
        for j in range(n - 1):
            a = i * n + j
            faces += [(a, a + n, a + n + 1), (a, a + n + 1, a + 1)]
    return points, faces


TURNS = [(0, 0, 0, 1), (0.5, 0.5, 0.5, 0.5), (0.6, 0, 0, 0.8), (0, 0.28, 0, 0.96), (0, 0, 0.6, 0.8)]


def world(backwards=False):
    """The scene and its lifts. Backwards: triangles and actors in the opposite order."""
    numbers = Numbers(1)
    points, faces = terrain(numbers)
    if backwards:
        faces = [(c, a, b) for a, b, c in reversed(faces)]
    adds = [(pycct.Mesh(points, faces), (0, 0, 0), TURNS[0], {})]
    adds.append((pycct.Plane((0, 0, 1)), (0, 0, -1), TURNS[0], {}))
    adds.append((pycct.Plane((0, 0, -1)), (0, 0, 12), TURNS[0], {}))
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        half = (1 if x else HALF + 2, 1 if y else HALF + 2, 8)
        adds.append((pycct.Box(half), (x * (HALF + 1), y * (HALF + 1), 4), TURNS[0], {}))
    for _ in range(60):
        place = (numbers.share(-14, 14), numbers.share(-14, 14), numbers.share(0, 1))
        kind = numbers.integer(0, 6)
        if kind <= 2:
            shape = pycct.Box([numbers.share(1, 6) / 4 for _ in range(3)])
        elif kind == 3:
            shape = pycct.Sphere(numbers.share(1, 4) / 4)
        elif kind == 4:
            shape = pycct.Capsule(numbers.share(1, 2) / 4, numbers.share(0, 2))
        elif kind == 5:
            shape = pycct.ConvexHull([[numbers.share(-1, 1) for _ in range(3)] for _ in range(12)])
        else:
            heights = [[numbers.share(0, 1) / 2 for _ in range(5)] for _ in range(5)]
            shape = pycct.Heightfield(heights, (0.75, 0.75))
        turn = TURNS[numbers.integer(0, 4)]
        adds.append((shape, place, turn, {"body": numbers.pick("static", "static", "static", "dynamic")}))
    # Stairs.
    for k in range(12):
        adds.append((pycct.Box((0.25, 2, 0.125)), (-3 + k / 2, -8, 0.75 + k / 4), TURNS[0], {}))
    lifts = [((-10 + 4 * k, 9, 1), numbers.pick(0, 1)) for k in range(6)]
    scene = pycct.Scene()
    placed = {}
    jobs = [*(("add", i) for i in range(len(adds))), *(("lift", i) for i in range(6)), *(("post", i) for i in range(4))]
    for what, i in reversed(jobs) if backwards else jobs:
        if what == "add":
            shape, place, turn, more = adds[i]
            scene.add(shape, place, turn, **more)
        elif what == "lift":
            behavior = pycct.Behavior.CAN_RIDE if lifts[i][1] else 0
            placed[i] = scene.add(pycct.Box((1, 1, 0.125)), lifts[i][0], body="kinematic", behavior=behavior)
        else:
            scene.add_obstacle(pycct.Capsule(0.5, 1.5), (-6 + 4 * i, 3, 1))
    return scene, [placed[i] for i in range(6)], [place for place, _ in lifts]


def tuning(numbers):
    """Arguments of one character."""
    return {
        "position": (numbers.share(-12, 12), numbers.share(-12, 12), numbers.share(4, 8)),
        "radius": numbers.pick(0.25, 0.3, 0.4, 0.5),
        "height": numbers.pick(0.0, 0.5, 1.0, 1.1),
        "step_offset": numbers.pick(0.0, 0.25, 0.3, 0.5),
        "contact_offset": numbers.pick(0.01, 0.015625, 0.05),
        "slope_limit": numbers.pick(0.707, 0.9, 0.0, 0.5),
        "climbing_mode": numbers.pick("easy", "constrained"),
        "non_walkable_mode": numbers.pick("prevent_climbing", "force_sliding"),
        "rules": numbers.pick("physx", "physx", "robust", "document"),
        "prevent_vertical_sliding": numbers.pick(False, False, True),
        "invisible_wall_height": numbers.pick(0.0, 0.0, 0.0, 0.5),
    }


def displacements(seed, count):
    """(STEPS, count, 3): each wanders, falls, jumps, dashes, and sometimes moves almost nothing."""
    numbers = Numbers(seed)
    d = np.zeros((STEPS, count, 3))
    heading = [(0, 0)] * count
    for t in range(STEPS):
        for i in range(count):
            if t % 16 == i % 16:
                heading[i] = (numbers.share(-1, 1) / 8, numbers.share(-1, 1) / 8)
            x, y = heading[i]
            z = -numbers.share(1, 3) / 32
            what = numbers.integer(0, 63)
            if what == 0:
                z = 0.25
            elif what == 1:
                x, y = 16 * x, 16 * y
            elif what == 2:
                # Denormal: flush-to-zero would make it zero.
                x, y, z = x * 2.0**-1060, y * 2.0**-1060, z
            elif what == 3:
                x, y, z = 2.0**-1070, 0.0, 0.0
            d[t, i] = x, y, z
    return d


def move_lifts(lifts, places, t):
    for k, (lift, (x, y, z)) in enumerate(zip(lifts, places, strict=True)):
        swing = abs((t + 17 * k) % 128 - 64) / 64
        lift.move_to((x + (swing if k % 2 else 0), y, z + swing * (k % 3)))


def number_bytes(*values):
    return struct.pack(f"<{len(values)}d", *values)


def told(hero):
    """All observable values of a character, except ids, which depend on the order of adding."""
    s, g = hero.state, hero.ground
    yield number_bytes(*hero.position, *hero.velocity, *s.platform_delta, s.overlap, s.contact_point_height)
    yield bytes([int(hero.flags), s.sliding, s.moving_up, s.on_obstacle, s.on_controller, g is not None])
    if g is not None:
        yield number_bytes(*g.normal, *g.point, *g.face_normal, g.distance)
    for h in hero.hits:
        yield number_bytes(*h.position, *h.normal, *h.direction, h.length, h.distance)


def move_together(heroes, displacements, t, cold, paths, all_told):
    """Move characters that see the current positions of the others, one after the other."""
    for i, h in enumerate(heroes):
        if cold:
            h.restore(h.save())
        f = h.move(displacements[i], DT)
        paths.update(number_bytes(*h.position) + bytes([int(f)]))
        if t % 5 == 4:
            for part in told(h):
                all_told.update(part)
    if t % 7 == 6:
        pycct.separate(heroes, DT)


def run(how="single", threads=1, cold=False, backwards=False, in_each_thread=None, steps=STEPS):
    """Make the moves.

    Parameters
    ----------
    how : {'single', 'move_many', 'crowd'}
        Moves of single controllers, or in batches. Colliding characters move one by one in any
        case.
    threads : int
    cold : bool
        Empty all caches before each move.
    backwards : bool
        Add triangles and actors in the opposite order.
    in_each_thread : callable, optional
        Called in each thread before its first move, the calling thread included.
    steps : int
        Fewer steps than all: the start of the same run.

    Returns
    -------
    tuple of str
        Hash of the paths, for every way of moving; hash of all results of single controllers, '' in
        batches.
    """
    paths, all_told = hashlib.sha256(), hashlib.sha256()
    scene, lifts, places = world(backwards)
    numbers = Numbers(2)
    tunings = [tuning(numbers) for _ in range(ALONE)]
    asked = displacements(3, ALONE)
    if how == "crowd":
        columns = {k: [t[k] for t in tunings] for k in tunings[0]}
        crowd = pycct.Crowd(scene, columns.pop("position"), **columns)
    else:
        heroes = [pycct.CharacterController(scene, **t) for t in tunings]
    flags = [0] * ALONE

    def move_share(share):
        for i in share:
            if cold:
                heroes[i].restore(heroes[i].save())
            flags[i] = int(heroes[i].move(asked[t, i], DT))

    shares = [range(k, ALONE, threads) for k in range(threads)]
    setup = in_each_thread or (lambda: None)
    together = [tuning(numbers) for _ in range(TOGETHER)]
    asked_together = displacements(4, TOGETHER)
    # The setup comes after the input, which must not depend on it.
    setup()
    with ThreadPoolExecutor(threads, initializer=setup) as pool:
        for t in range(steps):
            move_lifts(lifts, places, t)
            if how == "crowd":
                flags = crowd.move(asked[t], DT, threads=threads)
                where = np.ascontiguousarray(crowd.positions, dtype="<f8").tobytes()
            else:
                if how == "move_many":
                    flags = pycct.move_many(heroes, asked[t], DT, threads=threads)
                elif threads == 1:
                    move_share(shares[0])
                else:
                    list(pool.map(move_share, shares))
                where = b"".join(number_bytes(*h.position) for h in heroes)
            paths.update(where)
            paths.update(bytes(int(f) for f in flags))
            if how != "crowd" and t % 5 == 4:
                for h in heroes:
                    for part in told(h):
                        all_told.update(part)

    heroes = [pycct.CharacterController(scene, collide=True, **t) for t in together]
    for t in range(steps):
        move_lifts(lifts, places, t)
        move_together(heroes, asked_together[t], t, cold, paths, all_told)
    return paths.hexdigest()[:32], all_told.hexdigest()[:32] if how == "single" else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--how", default="single", choices=["single", "move_many", "crowd"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    paths, seen = run(args.how, args.threads, args.cold, args.backwards, steps=args.steps)
    print(paths, seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
