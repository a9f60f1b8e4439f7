"""Signed distances, judged by geometry that owes them nothing.

A distance is proved by its own answer: the two points lie on the shapes, they are that far
apart, and a slab that wide along the normal has one shape on each side. Inside, no face and
no pair of edges gives a smaller depth.
"""
import itertools
import math

import numpy as np
import pytest
from contact_cases import (
    KINDS,
    PAIRS,
    Cases,
    Solid,
    core,
    least_depth,
    matrix,
    product,
    quaternion,
    random_shape,
    same_thing,
)

from pycct.convex.hull import HullTables
from pycct.queries.shape_pairs import (
    Distance,
    capsule_contacts,
    contacts_between,
    contacts_between_many,
    decode_feature,
    distance_between,
    distance_between_many,
)
from pycct.shapes.mesh import Mesh
from pycct.shapes.primitives import Box, Capsule, ConvexHull, Plane, Sphere, Triangle

CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def AT(*position):
    return position, None


def tolerance(a, b):
    """1e-9 of the scale, and the rounding of coordinates far from the origin."""
    return 1e-9 * (a.size + b.size) + 1e-14 * max(np.abs(a.vertices).max(), np.abs(b.vertices).max())


def prove(r, a, b):
    """The answer r is the signed distance of the solids a and b."""
    tol = tolerance(a, b)
    n, p, q = np.array(r.normal), np.array(r.point_a), np.array(r.point_b)
    assert abs(n @ n - 1) < 1e-12
    origin = (a.position + b.position) / 2
    assert abs(-a.reach(-n, origin) - b.reach(n, origin) - r.distance) <= tol       # the slab
    assert np.abs(p - q - r.distance * n).max() <= tol
    assert a.off_surface(p) <= tol
    assert b.off_surface(q) <= tol
    for normal, solid, out in ((r.normal_a, a, -n), (r.normal_b, b, n)):
        normal = np.array(normal)
        assert abs(normal @ normal - 1) < 1e-9
        # A surface normal: nothing of the shape lies in front of the point along it.
        point = p if solid is a else q
        assert solid.reach(normal, point) <= 2e-7 * solid.size + tol
        if solid.radius > 0:
            assert np.abs(normal - out).max() < 1e-12
    if r.distance + a.radius + b.radius < -tol:
        assert abs(least_depth(a, b) + r.distance) <= tol


def run(seed, n, pairs=PAIRS):
    cases = Cases(seed)
    for i in range(n):
        (sa, a, pa), (sb, b, pb) = cases.pair(*pairs[i % len(pairs)])
        r = distance_between(sa, sb, pa, pb)
        try:
            prove(r, a, b)
            if same_thing(sa, pa, sb, pb):
                continue        # the same thing twice: nothing to swap
            s = distance_between(sb, sa, pb, pa)
            assert (s.distance, s.point_a, s.point_b) == (r.distance, r.point_b, r.point_a)
            assert (s.normal_a, s.normal_b) == (r.normal_b, r.normal_a)
            assert (s.feature_a, s.feature_b) == (r.feature_b, r.feature_a)
        except AssertionError as error:
            raise AssertionError(f"pair {i} of seed {seed}: {sa!r} {pa!r} {sb!r} {pb!r}: {r!r}") from error


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_random_and_adversarial_pairs(kinds):
    run(PAIRS.index(kinds), 1334, [kinds])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_a_million_pairs(seed):
    run(seed, 50_000)


def test_rigid_motion_changes_nothing():
    cases = Cases(7)
    for i in range(600):
        (sa, a, pa), (sb, b, pb) = cases.pair(*PAIRS[i % 15])
        r = distance_between(sa, sb, pa, pb)
        q, t = quaternion(cases.rng), cases.rng.normal(size=3) * (a.size + b.size)
        ma, mb = ((matrix(q) @ p[0] + t, product(q, p[1])) for p in (pa, pb))
        s = distance_between(sa, sb, ma, mb)
        assert s.distance == pytest.approx(r.distance, abs=tolerance(a, b) * 2)
        prove(s, Solid(sa).at(ma), Solid(sb).at(mb))


def mirrored(shape, pose):
    """The mirror image in the plane x = 0."""
    (x, y, z), (a, b, c, d) = pose
    pose = ((-x, y, z), (a, -b, -c, d))
    if isinstance(shape, Triangle):
        return Triangle(*[(-p[0], p[1], p[2]) for p in shape.vertices]), pose
    if isinstance(shape, ConvexHull):
        return shape.scaled((-1, 1, 1)), pose
    return shape, pose


def test_mirroring_changes_nothing():
    cases = Cases(8)
    for i in range(600):
        (sa, a, pa), (sb, b, pb) = cases.pair(*PAIRS[i % 15])
        r = distance_between(sa, sb, pa, pb)
        (ma, qa), (mb, qb) = mirrored(sa, pa), mirrored(sb, pb)
        s = distance_between(ma, mb, qa, qb)
        assert s.distance == pytest.approx(r.distance, abs=tolerance(a, b))
        prove(s, Solid(ma).at(qa), Solid(mb).at(qb))


def test_far_from_the_origin_costs_only_the_coordinates():
    far = np.array([3e6, -2e6, 5e6])
    cases = Cases(9)
    for i in range(300):
        (sa, _, pa), (sb, _, pb) = cases.pair(*PAIRS[i % 15])
        exact = far.round() + np.array(pa[0]).round(3), far.round() + np.array(pb[0]).round(3)
        near = distance_between(sa, sb, (exact[0] - far.round(), pa[1]), (exact[1] - far.round(), pb[1]))
        away = distance_between(sa, sb, (exact[0], pa[1]), (exact[1], pb[1]))
        assert away.distance == pytest.approx(near.distance, abs=1e-8)


# ---------------------------------------------------------------- another library

def coal_shape(coal, shape):
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.height)
    if isinstance(shape, Box):
        return coal.Box(*(2 * np.array(shape.half_extents)))
    tables = HullTables(core(shape)[0])
    if tables.dimension < 2:
        return None
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(list(tables.vertices))
    triangles.extend([coal.Triangle(*map(int, t)) for t in tables.triangles])
    return coal.Convex(points, triangles)


def test_separated_pairs_against_coal():
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(11)
    shapes = {k: [random_shape(rng, k) for _ in range(12)] for k in KINDS}
    pools = {k: [(s, c) for s in shapes[k] if (c := coal_shape(coal, s))] for k in KINDS}
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    compared = 0
    for i in range(6000):
        ka, kb = PAIRS[i % 15]
        (a, ca), (b, cb) = pools[ka][rng.integers(len(pools[ka]))], pools[kb][rng.integers(len(pools[kb]))]
        qa, qb = quaternion(rng), quaternion(rng)
        offset = rng.normal(size=3)
        offset *= rng.uniform(0.5, 4) / np.linalg.norm(offset)
        r = distance_between(a, b, (np.zeros(3), qa), (offset, qb))
        if r.distance <= 1e-3:
            continue
        result = coal.DistanceResult()
        ta = coal.Transform3s(matrix(qa), np.zeros(3))
        tb = coal.Transform3s(matrix(qb), offset)
        d = coal.distance(ca, ta, cb, tb, request, result)
        assert r.distance == pytest.approx(d, abs=1e-6)
        compared += 1
    assert compared > 2000


# ---------------------------------------------------------------- features

def test_features_of_a_box():
    box, ball = Box((1, 2, 3)), Sphere(0.5)
    for axis, sign in itertools.product(range(3), (1, -1)):
        p = np.zeros(3)
        p[axis] = sign * 9
        r = distance_between(box, ball, None, (p, None))
        assert decode_feature(r.feature_a) == ("face", axis + (0 if sign > 0 else 3))
        assert r.normal_a == tuple(np.sign(p))
        assert r.distance == 9 - (1, 2, 3)[axis] - 0.5
    for i in range(8):
        sign = np.array([1 if i >> k & 1 else -1 for k in range(3)])
        r = distance_between(box, ball, None, (9 * sign, None))
        assert decode_feature(r.feature_a) == ("vertex", i)
        assert np.allclose(r.normal_a, sign / math.sqrt(3))
        assert r.point_a == tuple(sign * (1.0, 2.0, 3.0))
    seen = set()
    for axis in range(3):
        for signs in itertools.product((-1, 1), repeat=2):
            p = np.insert(9.0 * np.array(signs), axis, 0.0)
            r = distance_between(box, ball, None, (p, None))
            kind, index = decode_feature(r.feature_a)
            assert kind == "edge" and index // 4 == axis
            assert np.allclose(r.normal_a, p / np.linalg.norm(p))
            seen.add(index)
    assert seen == set(range(12))


def test_features_of_a_triangle():
    triangle, ball = Triangle((0, 0, 0), (4, 0, 0), (0, 4, 0)), Sphere(0.1)
    for p, feature in [((1, 1, 2), ("face", 0)), ((1, 1, -2), ("face", 1)), ((2, -1, 0), ("edge", 0)),
                       ((3, 3, 0), ("edge", 1)), ((-1, 2, 0), ("edge", 2)), ((-1, -1, 0), ("vertex", 0)),
                       ((6, 0, 0), ("vertex", 1)), ((0, 6, 1), ("vertex", 2))]:
        r = distance_between(triangle, ball, None, (p, None))
        assert decode_feature(r.feature_a) == feature
        if feature[0] == "face":
            assert r.normal_a == (0, 0, 1 if feature[1] == 0 else -1)


def test_features_of_a_capsule_and_a_hull():
    capsule, ball = Capsule(0.5, 2), Sphere(0.1)
    for z, feature in ((-3, ("vertex", 0)), (3, ("vertex", 1)), (0.3, ("edge", 0))):
        assert decode_feature(distance_between(capsule, ball, None, AT(2, 0, z)).feature_a) == feature
    hull = ConvexHull(CUBE)
    tables = HullTables(CUBE)
    for f, (*n, _) in enumerate(tables.planes):
        assert decode_feature(distance_between(hull, ball, None, (3 * np.array(n), None)).feature_a) == ("face", f)
    for v, p in enumerate(tables.vertices):
        assert decode_feature(distance_between(hull, ball, None, (3 * p, None)).feature_a) == ("vertex", v)
    for e, (u, v) in enumerate(tables.edges):
        p = 1.5 * (tables.vertices[u] + tables.vertices[v])
        assert decode_feature(distance_between(hull, ball, None, (p, None)).feature_a) == ("edge", e)


@pytest.mark.parametrize("scale, dimension", [
    ((1, 1, 1), 3), ((1, -2, 0.5), 3), ((1, 1, 0), 2), ((0, -1, 1), 2), ((1, 0, 1), 2), ((1, 0, 0), 1), ((0, 0, 0), 0)])
def test_scaled_hulls_share_tables_and_keep_their_numbers(scale, dimension):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(20, 3))
    hull = ConvexHull(points)
    flat = hull.scaled(scale)
    again = ConvexHull(hull.vertices * scale)
    for _ in range(200):
        p, q = rng.normal(size=3) * 3, quaternion(rng)
        r = distance_between(flat, Box((0.3, 0.2, 0.1)), None, (p, q))
        s = distance_between(again, Box((0.3, 0.2, 0.1)), None, (p, q))
        assert r.distance == pytest.approx(s.distance, abs=1e-12)
        kind, index = decode_feature(r.feature_a)
        if kind == "vertex" and dimension > 0:
            assert np.allclose(flat.vertices[index], r.point_a, atol=1e-12)
        if dimension < 3 and kind == "face":
            assert index in (0, 1) and dimension == 2
            normal = np.zeros(3)
            normal[list(scale).index(0)] = 1 if index == 0 else -1
            assert np.allclose(r.normal_a, normal)


# ---------------------------------------------------------------- touching, contained, coincident

def test_touching_shapes():
    for a, b, p in [(Box((1, 1, 1)), Box((1, 1, 1)), (2, 0, 0)), (Box((1, 1, 1)), Box((1, 1, 1)), (2, 2, 0)),
                    (Box((1, 1, 1)), Box((1, 1, 1)), (2, 2, 2)), (Sphere(1), Box((1, 1, 1)), (0, 0, 2)),
                    (ConvexHull(CUBE), Box((1, 1, 1)), (0, 2, 0.5)), (Sphere(1), Sphere(2), (3, 0, 0)),
                    (Capsule(1, 2), Box((1, 1, 1)), (0, 2, 0))]:
        r = distance_between(a, b, None, (p, None))
        assert abs(r.distance) < 1e-12
        assert np.isfinite(r.normal).all() and np.linalg.norm(r.normal) == pytest.approx(1)
        # From the surfaces: a normal that parts the two.
        moved = distance_between(a, b, (0.1 * np.array(r.normal), None), (p, None))
        assert moved.distance == pytest.approx(0.1, abs=1e-9)


def test_contained_shapes():
    r = distance_between(Sphere(0.1), Box((1, 2, 3)), AT(0.5, 0, 0))
    assert r.distance == pytest.approx(-0.6) and r.normal == (1, 0, 0)
    r = distance_between(Box((0.1, 0.1, 0.1)), ConvexHull(CUBE), AT(0, -0.5, 0))
    assert r.distance == pytest.approx(-0.6) and np.allclose(r.normal, (0, -1, 0))
    r = distance_between(Box((1, 1, 1)), Box((1, 1, 1)))
    assert r.distance == -2


def test_coincident_points_and_lines_have_a_direction():
    for a, b in [(Sphere(1), Sphere(1)), (Sphere(1), Capsule(1, 2)), (Capsule(1, 2), Capsule(0.5, 3))]:
        r = distance_between(a, b)
        assert r.distance == pytest.approx(-a.radius - b.radius)
        moved = distance_between(a, b, (-r.distance * np.array(r.normal), None))
        assert moved.distance == pytest.approx(0, abs=1e-12)
    crossed = (0, 0, 0), (math.sqrt(0.5), 0, 0, math.sqrt(0.5))
    r = distance_between(Capsule(1, 2), Capsule(1, 2), None, crossed)
    assert r.distance == pytest.approx(-2) and abs(r.normal[0]) == pytest.approx(1)


def test_flat_shapes_have_no_depth():
    triangle = Triangle((0, 0, 0), (1, 0, 0), (0, 1, 0))
    assert distance_between(triangle, triangle).distance == 0
    r = distance_between(triangle, Triangle((0.2, 0.2, -1), (0.2, 0.2, 1), (2, 2, 0)))
    assert r.distance < 0
    r = distance_between(Sphere(0.25), triangle, AT(0.2, 0.2, 0))
    assert r.distance == -0.25 and r.normal in ((0, 0, 1), (0, 0, -1))


def test_tied_box_axes_go_y_z_x():
    box, ball = Box((1, 1, 1)), Sphere(0.5)
    assert distance_between(ball, box).normal in ((0, 1, 0), (0, -1, 0))
    assert distance_between(ball, Box((1, 2, 1))).normal in ((0, 0, 1), (0, 0, -1))
    assert distance_between(ball, Box((1, 2, 3))).normal in ((1, 0, 0), (-1, 0, 0))


# ---------------------------------------------------------------- the call

def test_max_distance():
    a, b = Box((1, 1, 1)), Box((1, 1, 1))
    assert distance_between(a, b, None, AT(3, 0, 0), max_distance=0.9) is None
    assert distance_between(a, b, None, AT(3, 0, 0), max_distance=1.0).distance == 1
    assert distance_between(a, b, None, AT(1, 0, 0), max_distance=-2) is None
    cases = Cases(5)
    for i in range(600):
        (sa, a, pa), (sb, b, pb) = cases.pair(*PAIRS[i % 15])
        r = distance_between(sa, sb, pa, pb)
        gap = tolerance(a, b)
        assert distance_between(sa, sb, pa, pb, max_distance=r.distance - gap) is None
        s = distance_between(sa, sb, pa, pb, max_distance=r.distance + gap)
        assert (s.distance, s.point_a) == (r.distance, r.point_a)


def test_many_gives_the_same_bits():
    cases = Cases(6)
    rows = [cases.pair(*PAIRS[i % 15]) for i in range(300)]
    a, b = [r[0][0] for r in rows], [r[1][0] for r in rows]
    pa = np.array([r[0][2][0] for r in rows]), np.array([r[0][2][1] for r in rows])
    pb = np.array([r[1][2][0] for r in rows]), np.array([r[1][2][1] for r in rows])
    out = distance_between_many(a, b, pa, pb, max_distance=1.0)
    for i in range(300):
        r = distance_between(a[i], b[i], (pa[0][i], pa[1][i]), (pb[0][i], pb[1][i]), max_distance=1.0)
        assert out.near[i] == (r is not None)
        if r is not None:
            assert out.distance[i] == r.distance
            for name in ("point_a", "point_b", "normal", "normal_a", "normal_b"):
                assert tuple(getattr(out, name)[i]) == getattr(r, name)
            assert (out.feature_a[i], out.feature_b[i]) == (r.feature_a, r.feature_b)
    one = distance_between_many(Sphere(1), Box((1, 1, 1)), (np.array([[0, 0, 3.0], [0, 4, 0]]), None))
    assert one.distance.tolist() == [1, 2]
    with pytest.raises(ValueError, match="rows"):
        distance_between_many([Sphere(1)] * 2, Sphere(1), (np.zeros((3, 3)), None))


def test_an_empty_list_of_shapes_is_an_empty_batch():
    assert distance_between_many([], Sphere(1)).distance.shape == (0,)


@pytest.mark.parametrize("call, error, words", [
    (lambda: distance_between(1, Sphere(1)), TypeError, "a must"),
    (lambda: distance_between(Sphere(1), None), TypeError, "b must"),
    (lambda: distance_between(Plane((0, 0, 1)), Sphere(1)), TypeError, "a must"),
    (lambda: distance_between(Sphere(1), Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])), TypeError, "b must"),
    (lambda: distance_between(Sphere(1), Sphere(1), 3), ValueError, "pose_a"),
    (lambda: distance_between(Sphere(1), Sphere(1), None, ((0, 0), None)), ValueError, "pose_b position"),
    (lambda: distance_between(Sphere(1), Sphere(1), ((0, 0, math.nan), None)), ValueError, "pose_a position"),
    (lambda: distance_between(Sphere(1), Sphere(1), ((0, 0, 0), (0, 0, 0, 2))), ValueError, "pose_a rotation"),
    (lambda: distance_between(Sphere(1), Sphere(1), max_distance=math.nan), ValueError, "max_distance"),
    (lambda: distance_between(Sphere(1), Sphere(1), max_distance="x"), TypeError, "max_distance"),
    (lambda: distance_between_many(Sphere(1), 7), TypeError, "b must"),
    (lambda: distance_between_many(Sphere(1), Sphere(1), (np.zeros((2, 2)), None)), ValueError, "poses_a positions"),
    (lambda: distance_between_many(Sphere(1), Sphere(1), None, (np.zeros(3), np.ones(4))), ValueError, "poses_b"),
    (lambda: decode_feature(0xC000), ValueError, "code"),
    (lambda: capsule_contacts(Sphere(1), None, [], []), TypeError, "capsule"),
    (lambda: capsule_contacts(Capsule(1, 1), None, [Sphere(1)], []), ValueError, "poses"),
    (lambda: capsule_contacts(Capsule(1, 1), None, [3], [None]), TypeError, "shapes"),
])
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_answer_is_readable_and_immutable():
    r = distance_between(Sphere(1.0), Box((1, 1, 1)), ((0, 0, 3), None))
    assert isinstance(r, Distance) and "face 2" in repr(r)
    assert r.normal == (0, 0, 1)
    with pytest.raises(AttributeError):
        r.distance = 3


def test_points_of_nearly_parallel_edges_are_as_deep_as_is_said():
    box = ConvexHull(list(itertools.product((-1, 1), (-0.5, 0.5), (-0.5, 0.5))))
    slab = Box((0.5, 0.5, 0.001))
    cases = [(box, Triangle((2, -1, 0), (0, 0, 0), (-2, 2, 0)), ((-0.5, 0, 0), (0, 3.659e-10, 0, 1)))]
    turn = np.sin(5e-10)
    cases += [(Triangle((-2, -2, 0), (1, 2, 0), (0, 2, 0)), slab, (None, q)) for q in
              ((turn, 0, 0, 1), (0, turn, 0, 1), (0, 0, turn, 1))]
    rng = np.random.default_rng(11)
    for _ in range(4000):
        corners = rng.integers(-2, 3, (3, 3)) * [1, 1, 0]
        if abs(np.cross(corners[1] - corners[0], corners[2] - corners[0])[2]) > 0:
            at = tuple(rng.integers(-2, 3, 3) / 4)
            cases.append((box, Triangle(*map(tuple, corners.astype(float))), (at, (*rng.normal(size=3) * 1e-9, 1))))
    for a, b, (at, q) in cases:
        r = distance_between(a, b, (at or (0, 0, 0), q))
        assert np.allclose(np.subtract(r.point_a, r.point_b), np.multiply(r.distance, r.normal), rtol=0, atol=1e-7)


@pytest.mark.parametrize("far", [1.1e12, 1e154, 1e308])
def test_poses_beyond_the_world_are_refused(far):
    for function in (distance_between, contacts_between):
        with pytest.raises(ValueError, match="pose_b position must be within"):
            function(Sphere(1), Box((1, 1, 1)), None, ((far, 0, 0), None))
    for function in (distance_between_many, contacts_between_many):
        with pytest.raises(ValueError, match="poses_a positions must lie within"):
            function(Sphere(1), Box((1, 1, 1)), ([(0, 0, 0), (0, -far, 0)], None))
