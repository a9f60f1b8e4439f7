"""Recorded queries of PhysX, compared with pycct; brute force decides about differences.

PhysX computes in float32. If several shapes are touched at once, it returns the one that it met
first. If two answers differ by more than the limit, ``brute`` must show that the answer of pycct is
the true one; it is independent of the library.
"""

import math

import brute
import goldens
import numpy as np

import pycct

DISTANCE = 1e-4  # limit for the distance of a sweep and the depth of a penetration, metres
NORMAL = 1e-3  # limit for a normal
TOUCHING = 1e-5  # an overlap may differ this near to touching, metres
EXACT = 1e-6  # accuracy with which brute force must confirm our own answer


class World:
    """The shapes of a recording for brute force."""

    def __init__(self, record):
        self.shapes = []
        for s in record["scene"]["shapes"]:
            place = (s.get("position", (0, 0, 0)), goldens.unit(s.get("quat", (0, 0, 0, 1))))
            tris = None
            if s["type"] == "mesh":
                tris = brute.triangles_of(goldens.shape_of(s), *place, s.get("scale", (1, 1, 1)))
            elif s["type"] == "convex":
                tris = brute.hull_triangles(np.array(s["vertices"]).reshape(-1, 3))
                tris = brute.rotate(place[1], tris) + np.asarray(place[0])
            self.shapes.append((s, place, tris))

    def pair(self, actor, p0, p1, direction=None):
        """Distance of the axis to one shape, axis point, shape point.

        With a direction, triangles seen from behind do not count (RULES 2)."""
        s, place, tris = self.shapes[actor]
        if tris is not None:
            if direction is not None:
                n = np.cross(tris[:, 1] - tris[:, 0], tris[:, 2] - tris[:, 0])
                tris = tris[n @ direction <= 0]
            if not len(tris):
                return math.inf, None, None
            d, p, q = brute.segment_triangles(p0, p1, tris)
            k = int(d.argmin())
            return d[k], p[k], q[k]
        if s["type"] == "box":
            return brute.segment_box(p0, p1, s["half"], *place)
        half = np.array([0, 0, s.get("half_height", 0.0)])
        q0, q1 = (brute.rotate(place[1], k * half) + np.asarray(place[0]) for k in (-1, 1))
        d, p, q = brute.segment_segment(p0, p1, q0, q1)
        away = p - q
        return d - s["radius"], p, q + away * (s["radius"] / max(float(np.linalg.norm(away)), 1e-300))

    def clearance(self, q, times):
        """Gap between the capsule, at each of these distances along its path, and the nearest
        shape.
        """
        d = np.array(q["dir"])
        way = np.atleast_1d(times)[:, None] * d
        p0, p1 = np.array(q["p0"]) + way, np.array(q["p1"]) + way
        gaps = np.full(len(way), np.inf)
        for actor, (_, _, tris) in enumerate(self.shapes):
            if tris is None:
                found = np.array([self.pair(actor, a, b)[0] for a, b in zip(p0, p1, strict=True)])
            else:
                found = front_gaps(p0, p1, tris, d, q["radius"])
            gaps = np.minimum(gaps, found)
        return gaps - q["radius"]


def front_gaps(p0, p1, tris, direction, radius):
    """Distance of each axis to the nearest triangle not seen from behind.

    Inf beyond the radius and 1 m.
    """
    tris = tris[np.cross(tris[:, 1] - tris[:, 0], tris[:, 2] - tris[:, 0]) @ direction <= 0]
    middle = tris.mean(1)
    reach = np.linalg.norm(tris - middle[:, None], axis=2).max(1) + np.linalg.norm(p1[0] - p0[0]) / 2 + radius + 1
    time, which = np.nonzero(np.linalg.norm(((p0 + p1) / 2)[:, None] - middle, axis=2) <= reach)
    gaps = np.full(len(p0), np.inf)
    if len(time):
        np.minimum.at(gaps, time, brute.segment_triangles(p0[time], p1[time], tris[which])[0])
    return gaps


def prove_sweep(world, q, hit):
    """Prove that the capsule touches at our distance, and nowhere before."""
    end = q["distance"] if hit is None else hit.distance
    # The gap opens fast near the end, so the samples are denser there.
    times = end * (1 - np.concatenate([[0], np.logspace(-6, -2, 20), np.linspace(0, 1, 40)[1:]]))
    gaps = world.clearance(q, times)
    assert (gaps > -EXACT).all(), (q, hit, gaps)
    if hit is not None:
        assert gaps[0] < EXACT, (q, hit, gaps[0])


def prove_normal(world, q, hit):
    """Prove that our normal points from the true closest point to the axis."""
    d = np.array(q["dir"]) * hit.distance
    _, p, s = world.pair(hit.actor.id, np.array(q["p0"]) + d, np.array(q["p1"]) + d, np.array(q["dir"]))
    true = (p - s) / np.linalg.norm(p - s)
    assert math.dist(true, hit.normal) < NORMAL, (q, hit, true)


def judge(name):
    """Compare all answers of a recording; count queries, agreements and proofs."""
    record = goldens.load(goldens.path_of(name))
    scene = goldens.scene_of(record)
    world = World(record)
    count = dict.fromkeys(("sweeps", "overlaps", "penetrations", "proved", "depths", "depths_wrong", "touching"), 0)
    for q, want in zip(record["scene"]["queries"], record["results"], strict=True):
        centre, turn, height = goldens.pose_of(q)
        shape = pycct.Capsule(q["radius"], height)
        if q["op"] == "sweep":
            count["sweeps"] += 1
            hit = scene.sweep(shape, centre, q["dir"], q["distance"], rotation=turn)
            if (hit is not None) != want["hit"] or (hit and abs(hit.distance - want["distance"]) > DISTANCE):
                prove_sweep(world, q, hit)
                count["proved"] += 1
            elif hit and math.dist(hit.normal, want["normal"]) > NORMAL:
                prove_normal(world, q, hit)
                count["proved"] += 1
            continue
        if q["op"] == "overlap":
            count["overlaps"] += 1
            got = {a.id for a in scene.overlap(shape, centre, rotation=turn)}
            asked = set(want["overlaps"])
        else:
            count["penetrations"] += 1
            found = {x.actor.id: x for x in scene.penetration(shape, centre, rotation=turn)}
            answer = {x["actor"]: x for x in want["overlaps"]}
            got, asked = set(found), set(answer)
            for k in got & asked:
                count["depths"] += 1
                count["depths_wrong"] += abs(found[k].depth - answer[k]["depth"]) > DISTANCE
        for k in got ^ asked:
            gap = world.pair(k, np.array(q["p0"]), np.array(q["p1"]))[0] - q["radius"]
            if q["op"] == "penetration" and abs(gap) > TOUCHING:
                assert (gap < 0) == (k in got), (q, k, gap)
                count["proved"] += 1
            else:
                assert abs(gap) <= TOUCHING, (q, k, gap)
                count["touching"] += 1
    return {"name": name, **count}
