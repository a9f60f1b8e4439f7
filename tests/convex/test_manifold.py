"""Contact manifolds: properties of every pair, overlap polygons, and each fix of CONTACT."""
import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from contact_cases import PAIRS, Cases, Solid, matrix, product, quaternion, random_shape, same_thing
from test_distance import mirrored, tolerance

from pycct.convex.outline import expanding_polygon
from pycct.queries.shape_pairs import (
    Contact,
    ContactManifold,
    capsule_contacts,
    contacts_between,
    contacts_between_many,
    distance_between,
)
from pycct.shapes.primitives import Box, Capsule, ConvexHull, Plane, Sphere, Triangle

CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
HALF = math.sqrt(0.5)
ABOUT_X = (HALF, 0, 0, HALF)
ABOUT_Y = (0, HALF, 0, HALF)


def about_z(angle):
    return (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))


def ring(n, radius=1.0, phase=0.0):
    angle = phase + np.arange(n) * 2 * np.pi / n
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def prism(n, height=1.0, radius=1.0, phase=0.0):
    return np.concatenate([np.c_[ring(n, radius, phase), np.full(n, z)] for z in (-height / 2, height / 2)])


def clip(subject, clipper):
    """Sutherland-Hodgman; both counter-clockwise."""
    for a, b in zip(clipper, np.roll(clipper, -1, axis=0), strict=True):
        d = b - a
        out = []
        for p, q in zip(subject, np.roll(subject, -1, axis=0), strict=True):
            sp, sq = d[0] * (p - a)[1] - d[1] * (p - a)[0], d[0] * (q - a)[1] - d[1] * (q - a)[0]
            if sp >= 0:
                out.append(p)
            if (sp > 0 > sq) or (sp < 0 < sq):
                out.append(p + (q - p) * sp / (sp - sq))
        subject = np.array(out).reshape(-1, 2)
        if len(subject) == 0:
            break
    return subject


def area(points):
    """Of a polygon given in order."""
    x, y = points.T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def outline_area(points, normal=(0, 0, 1)):
    """Of the convex hull of points seen along z."""
    loop = expanding_polygon(points, normal)
    return area(np.asarray(points)[loop, :2]) if len(loop) > 2 else 0.0


# ---------------------------------------------------------------- the property

def keep_property(m, r, a, b):
    tol = tolerance(a, b)
    scale = a.size + b.size
    points, normal = m.points_on_b, np.array(m.normal)
    assert 1 <= m.count <= 32
    assert np.isfinite(points).all() and np.isfinite(m.distances).all()
    assert np.abs(normal - r.normal).max() <= 1e-12
    for p, q in zip(points, m.points_on_a, strict=True):
        assert b.off_surface(p) <= 1e-6 * scale + tol
        assert a.off_surface(q) <= 1e-6 * scale + tol
    assert m.distances.min() <= r.distance + 1e-4
    assert m.distances.min() >= r.distance - 2e-7 * scale - tol


def run(seed, n, pairs=PAIRS):
    cases = Cases(seed)
    for i in range(n):
        (sa, a, pa), (sb, b, pb) = cases.pair(*pairs[i % len(pairs)])
        m = contacts_between(sa, sb, pa, pb)
        r = distance_between(sa, sb, pa, pb)
        try:
            keep_property(m, r, a, b)
            if same_thing(sa, pa, sb, pb):
                continue
            other = contacts_between(sb, sa, pb, pa).flip()
            assert other.count == m.count
            assert np.abs(other.points_on_b - m.points_on_b).max() <= tolerance(a, b)
            assert np.array_equal(other.distances, m.distances)
            assert other.normal == m.normal
        except AssertionError as error:
            raise AssertionError(f"pair {i} of seed {seed}: {sa!r} {pa!r} {sb!r} {pb!r}: {r!r}") from error


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_random_and_adversarial_pairs(kinds):
    run(PAIRS.index(kinds), 1334, [kinds])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2020))
def test_a_million_pairs(seed):
    run(seed, 50_000)


def same_contacts(m, k, matrix_, shift, tol):
    """k is m moved: the same set of points."""
    assert k.count == m.count
    moved = m.points_on_b @ matrix_.T + shift
    gap = np.linalg.norm(moved[:, None] - k.points_on_b[None], axis=2)
    assert gap.min(axis=0).max() <= tol and gap.min(axis=1).max() <= tol


def test_rigid_motion_and_mirroring_change_nothing():
    """Where no two features tie, the contacts go along with the shapes."""
    cases = Cases(3)
    rng = cases.rng
    flip = np.diag([-1.0, 1, 1])
    done = 0
    while done < 600:
        (sa, a, pa), (sb, b, pb) = cases.pair(*PAIRS[done % 15])
        done += 1
        pa, pb = (pa[0], quaternion(rng)), (pb[0] + rng.normal(size=3) * 0.01 * a.size, quaternion(rng))
        m = contacts_between(sa, sb, pa, pb)
        tol = 1e-7 * (a.size + b.size) + 1e-14 * np.abs(a.vertices).max() + 1e-14 * np.abs(b.vertices).max()
        q, t = quaternion(rng), rng.normal(size=3) * (a.size + b.size)
        move = lambda pose: (matrix(q) @ pose[0] + t, product(q, pose[1]))    # noqa: E731, B023
        k = contacts_between(sa, sb, move(pa), move(pb))
        same_contacts(m, k, matrix(q), t, tol)
        (ma, qa), (mb, qb) = mirrored(sa, pa), mirrored(sb, pb)
        same_contacts(m, contacts_between(ma, mb, qa, qb), flip, np.zeros(3), tol)


# ---------------------------------------------------------------- face on face

@pytest.mark.parametrize("gap", [-0.05, 0.0, 0.1])
def test_box_on_box_has_its_four_corners(gap):
    for half, big in (((0.5, 0.4, 0.3), (2, 2, 0.5)), ((2, 2, 0.5), (0.5, 0.4, 0.3)), ((1, 1, 1), (1, 1, 1))):
        for angle in (0.0, 0.3, math.pi / 4, math.pi / 2):
            if half == big and angle in (0.3, math.pi / 4):
                continue
            top = ((0.0, 0.0, half[2] + big[2] + gap), about_z(angle))
            m = contacts_between(Box(half), Box(big), top)
            assert m.count == 4
            assert m.normal == pytest.approx((0, 0, 1))
            assert np.allclose(m.distances, gap, atol=1e-12)
            small = half if half[0] < big[0] else big
            turn = matrix(about_z(angle))[:2, :2] if small == half else np.eye(2)
            corners = np.array(list(itertools.product((-1, 1), repeat=2))) * small[:2] @ turn.T
            found = m.points_on_b[:, :2]
            assert np.linalg.norm(found[:, None] - corners[None], axis=2).min(axis=0).max() < 1e-12
            assert np.allclose(m.points_on_b[:, 2], big[2])


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("hulls", [False, True])
def test_overlap_of_faces_is_the_true_polygon(seed, hulls):
    """Outline and corners of the overlap of boxes and prisms of 3 to 12 sides, face on face."""
    rng = np.random.default_rng(seed)
    if hulls:
        n, k = rng.integers(3, 13, size=2)
        faces = ring(n, rng.uniform(0.5, 2)), ring(k, rng.uniform(0.5, 2))
        solids = [ConvexHull(np.concatenate([np.c_[f, np.full(len(f), z)] for z in (-0.5, 0.5)])) for f in faces]
    else:
        halves = rng.uniform(0.3, 2, size=(2, 2))
        faces = [np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * h for h in halves]
        solids = [Box((*h, 0.5)) for h in halves]
    angle, shift, gap = rng.uniform(0, 6), rng.uniform(-0.7, 0.7, size=2), rng.uniform(-0.05, 0.05)
    upper = faces[0] @ matrix(about_z(angle))[:2, :2].T + shift
    overlap = clip(upper, faces[1])
    q = quaternion(rng)
    place = lambda p: matrix(q) @ np.array(p)     # noqa: E731
    m = contacts_between(*solids, (place((*shift, 1 + gap)), product(q, np.array(about_z(angle)))), ((0, 0, 0), q))
    assert np.allclose(m.normal, place((0, 0, 1)))
    assert np.allclose(m.distances, gap, atol=1e-9)
    local = m.points_on_b @ matrix(q)
    assert np.allclose(local[:, 2], 0.5, atol=1e-9)
    assert outline_area(local) == pytest.approx(area(overlap), rel=1e-9)
    gaps = np.linalg.norm(local[:, None, :2] - overlap[None], axis=2)
    assert gaps.min(axis=0).max() < 1e-9            # every corner is a contact
    assert gaps.min(axis=1).max() < 1e-9            # and every contact a corner


def test_triangles_face_to_face():
    a = np.array([(-1.0, -1), (2, -0.5), (0.2, 1.5)])
    b = np.array([(-0.5, -1.2), (1.5, 0.8), (-1, 1)])
    flat = [Triangle(*np.c_[p, np.zeros(3)]) for p in (a, b)]
    for up, order in ((1, flat), (-1, flat)):
        m = contacts_between(*order, ((0, 0, 0.1 * up), None))
        assert np.allclose(m.distances, 0.1) and m.normal == (0, 0, up)
        assert outline_area(m.points_on_b) == pytest.approx(area(clip(a, b)), rel=1e-9)


@pytest.mark.parametrize("n, k", [(40, 40), (100, 127), (127, 127)])
def test_more_than_32_keep_the_outline_and_the_deepest(n, k):
    a, b = ConvexHull(prism(n)), ConvexHull(prism(k, phase=0.01))
    overlap = clip(ring(n), ring(k, phase=0.01))
    assert len(overlap) > 32
    m = contacts_between(a, b, ((0, 0, 0.99), None))
    assert m.count == 32
    best = overlap[expanding_polygon(np.c_[overlap, np.zeros(len(overlap))], (0, 0, 1), 32)]
    assert outline_area(m.points_on_b) == pytest.approx(area(best), rel=1e-3)
    assert area(best) > 0.98 * area(overlap)
    # Tilted: one side is deepest, and stays.
    tilt = (math.sin(0.002), 0, 0, math.cos(0.002))
    pose = ((0.01, 0.02, 0.995), tilt)
    m = contacts_between(a, b, pose)
    r = distance_between(a, b, pose)
    assert m.count <= 32
    assert m.distances.min() == pytest.approx(r.distance, abs=1e-4)


def test_two_255_gons():
    """Flat polygons of the most corners: some 510 contacts before the choice."""
    a = ConvexHull(np.c_[ring(255), np.zeros(255)])
    b = ConvexHull(np.c_[ring(255, phase=0.5 * 2 * np.pi / 255), np.zeros(255)])
    m = contacts_between(a, b, ((0, 0, 0.1), None))
    assert m.count == 32 and np.allclose(m.distances, 0.1)
    assert outline_area(m.points_on_b) > 0.98 * np.pi


# ---------------------------------------------------------------- counts pair by pair

@pytest.mark.parametrize("other", [Sphere(1), Capsule(1, 2), Box((1, 1, 1)), ConvexHull(CUBE),
                                   Triangle((-1, -1, 1), (2, -1, 1), (-1, 2, 1))])
def test_a_sphere_has_one_contact(other):
    m = contacts_between(Sphere(0.5), other, ((0, 0.2, 3), None))
    r = distance_between(Sphere(0.5), other, ((0, 0.2, 3), None))
    assert m.count == 1 and m[0].point == pytest.approx(r.point_b) and m[0].distance == r.distance
    assert m.normal == r.normal


def test_capsules_have_one_contact():
    m = contacts_between(Capsule(0.5, 2), Capsule(0.5, 2), ((0.9, 0, 0), None))
    assert m.count == 1 and m[0].distance == pytest.approx(-0.1)


@pytest.mark.parametrize("floor", [Box((2, 2, 1)), ConvexHull(CUBE * (2, 2, 1)), ConvexHull(prism(9, 2.0, 3.0)),
                                   Triangle((-9, -9, 1), (9, -9, 1), (0, 9, 1)),
                                   ConvexHull(CUBE * (2, 2, 5)).scaled((1, 1, 0))])
def test_a_lying_capsule_has_two(floor):
    top = 0.0 if isinstance(floor, ConvexHull) and floor.scale[2] == 0 else 1.0
    m = contacts_between(Capsule(0.5, 1), floor, ((0, 0, top + 0.48), ABOUT_X))
    assert m.count == 2
    assert np.allclose(m.distances, -0.02)
    assert np.allclose(sorted(m.points_on_b.tolist()), [(0, -0.5, top), (0, 0.5, top)], atol=1e-12)


DIMENSIONS = {3: (1, 1, 1), 2: (1, 1, 0), 1: (0, 1, 0), 0: (0, 0, 0)}


@pytest.mark.parametrize("da, db", list(itertools.product(range(4), repeat=2)))
def test_hulls_of_every_dimension(da, db):
    """A cube flattened to a square, a line, a point, above another: 4 x 4 combinations."""
    a, b = ConvexHull(CUBE).scaled(DIMENSIONS[da]), ConvexHull(CUBE * (2, 2, 1)).scaled(DIMENSIONS[db])
    top = 1.0 if db == 3 else 0.0
    m = contacts_between(a, b, ((0, 0, top + (1.0 if da == 3 else 0.0) + 0.25), None))
    assert m.normal == pytest.approx((0, 0, 1)) and np.allclose(m.distances, 0.25)
    pairs = {0: 1, 1: 1 if db < 2 else 2, 2: 4, 3: 4}
    expected = 1 if 0 in (da, db) else (pairs[da] if db >= 2 else (1 if da == 1 else 2))
    assert m.count == expected
    assert np.allclose(m.points_on_b[:, 2], top)


# ---------------------------------------------------------------- corrected mistakes

def test_clipping_against_more_than_four_edges_uses_them_all():
    """A capsule across an octagon: edges after the fourth clip both of its ends."""
    floor = ConvexHull(prism(8, 2.0))
    inner = math.cos(math.pi / 8)
    for k in range(8):
        angle = (k + 0.5) * math.pi / 4
        q = product(np.array(about_z(angle)), np.array(ABOUT_Y))
        m = contacts_between(Capsule(0.1, 6), floor, ((0, 0, 1.1), q))
        assert m.count == 2
        along = m.points_on_b[:, :2] @ (math.cos(angle), math.sin(angle))
        assert sorted(along) == pytest.approx([-inner, inner])
        # Shifted along itself: one end on the face, the other still clipped.
        shift = 3.5 * np.array([math.cos(angle), math.sin(angle), 0])
        m = contacts_between(Capsule(0.1, 6), floor, (np.add(shift, (0, 0, 1.1)), q))
        along = m.points_on_b[:, :2] @ (math.cos(angle), math.sin(angle))
        assert sorted(along) == pytest.approx([0.5, inner])


def test_edges_of_a_hull_face_outwards():
    """Wholly above the face nothing is clipped; beside it everything is."""
    floor = ConvexHull(prism(8, 2.0))
    m = contacts_between(Capsule(0.1, 0.5), floor, ((0.2, 0.1, 1.1), ABOUT_X))
    assert m.count == 2 and np.ptp(m.points_on_b[:, 1]) == pytest.approx(0.5)
    solid = Solid(floor)
    for x in (1.05, 1.5, 3):
        m = contacts_between(Capsule(0.1, 0.5), floor, ((x, 0, 1.1), ABOUT_X))
        assert all(solid.core_excess(p) < 1e-12 for p in m.points_on_b)
    # Along the diagonal of the normal only the edge is met, from a skew axis at one point.
    m = contacts_between(Capsule(0.1, 0.5), floor, ((3, 3, 3), (0, 0, 0, 1)))
    assert m.count == 1


def test_box_corners_project_onto_a_hull_face_away_from_the_origin():
    """The side planes' distance counts with the right sign: a face far off the hull's origin."""
    for offset in ((0, 0, 0), (7, 3, 0), (-5, 4, 2)):
        floor = ConvexHull(prism(6, 2.0, 3.0) + offset)
        box = Box((0.5, 0.5, 0.5))
        at = np.add(offset, (0.3, 0.2, 1.5))
        m = contacts_between(box, floor, (at, None))
        assert m.count == 4 and np.allclose(m.points_on_b[:, 2], offset[2] + 1)
        # The other way round: the hull's face inside a large box face.
        m = contacts_between(floor, Box((20, 20, 1)), ((0, 0, 2), None))
        assert m.count == 6


@pytest.mark.parametrize("axis, sign", list(itertools.product(range(3), (1, -1))))
def test_all_six_faces_of_a_box(axis, sign):
    half = np.array([1.0, 2.0, 3.0])
    n = np.zeros(3)
    n[axis] = sign
    turn = [(0, -HALF, 0, HALF), (HALF, 0, 0, HALF), (0, 0, 0, 1)][axis]
    m = contacts_between(Box((0.3, 0.2, 0.1)), Box(half), (n * (half[axis] + 0.15), turn))
    assert m.normal == pytest.approx(tuple(n)) and m.count == 4
    assert np.allclose(m.points_on_b @ n, half[axis]) and np.allclose(m.distances, 0.05)
    u, v = [k for k in range(3) if k != axis]
    assert np.ptp(m.points_on_b[:, u]) * np.ptp(m.points_on_b[:, v]) == pytest.approx(0.6 * 0.4)
    along = [(0, 0, 0, 1), (HALF, 0, 0, HALF), (0, HALF, 0, HALF)][(axis + 1) % 3 if axis != 2 else 1]
    m = contacts_between(Capsule(0.25, 1), Box(half), (n * (half[axis] + 0.25), along))
    if abs(matrix(along)[axis, 2]) < 0.5:
        assert m.count == 2 and np.allclose(m.distances, 0, atol=1e-12)


def test_box_against_turned_triangle_edge():
    """Edge on edge with both turned: the normal is at right angles to both edges, in the world."""
    rng = np.random.default_rng(0)
    box = Box((1, 1, 1))
    for _ in range(50):
        q = quaternion(rng)
        r = matrix(q)
        # The box's edge along local z at (1, 1); the triangle's edge crosses it, its plane stands
        # away.
        out = r @ (HALF, HALF, 0)
        along = r @ (np.array([HALF, -HALF, 0]) * math.sin(0.4) + np.array([0, 0, 1]) * math.cos(0.4))
        point = r @ (1, 1, 0.2) + 0.1 * out
        triangle = Triangle(point - along, point + along, point + 2 * out)
        m = contacts_between(triangle, box, None, ((0, 0, 0), q))
        assert np.allclose(m.normal, out) and m.distances.min() == pytest.approx(0.1)
        edge_a, edge_b = r @ (0, 0, 1), along
        assert abs(np.array(m.normal) @ edge_a) < 1e-12 and abs(np.array(m.normal) @ edge_b) < 1e-12


def test_capsule_contacts_compare_and_lie_on_the_surface():
    """The comparison includes the radius: no third contact, and points on the surface."""
    box, capsule, pose = Box((2, 2, 1)), Capsule(0.5, 1), ((0, 0, 1.5), ABOUT_X)
    m = contacts_between(capsule, box, pose)
    assert m.count == 2 and np.allclose(m.points_on_b[:, 2], 1)
    m = contacts_between(box, capsule, None, ((0, 0, 1.7), ABOUT_X))
    assert m.count == 2 and m.normal == pytest.approx((0, 0, -1))
    assert np.allclose(m.points_on_b[:, 2], 1.2) and np.allclose(m.distances, 0.2)


@pytest.mark.parametrize("angle", [0.02, 0.1, 0.4, 0.8])
def test_tilted_capsule_is_met_on_its_true_surface(angle):
    capsule = Capsule(0.5, 1.5)
    q = (math.sin(math.pi / 4 - angle / 2), 0, 0, math.cos(math.pi / 4 - angle / 2))
    pose = ((0, 0, 2.0), q)
    solid = Solid(capsule).at(pose)
    for floor in (Box((3, 3, 0.5)), ConvexHull(prism(7, 1.0, 4.0)), Triangle((-9, -9, 0.5), (9, -9, 0.5), (0, 9, 0.5))):
        m = contacts_between(capsule, floor, pose)
        assert m.count == 2
        for p in m.points_on_a:
            assert solid.off_surface(p) < 1e-12
        assert np.allclose(m.points_on_b[:, 2], 0.5)


def test_faces_of_a_scaled_hull_are_compared_in_its_own_shape():
    """A scale of 8 along x turns a slope of 60 degrees into 12, and the box contacts that face."""
    wedge = np.array([(x, y, z) for x, z in ((-1, 0), (1, 0), (0, math.sqrt(3))) for y in (-1, 1)])
    hull = ConvexHull(wedge).scaled((8, 1, 1))
    n = np.array([math.sqrt(3), 0, 8]) / math.sqrt(67)
    angle = math.atan2(n[0], n[2])
    q = (0, math.sin(angle / 2), 0, math.cos(angle / 2))
    at = np.array([4, 0, math.sqrt(3) / 2]) + 0.26 * n
    m = contacts_between(Box((0.5, 0.5, 0.25)), hull, (at, q))
    assert np.allclose(m.normal, n) and m.count == 4
    assert np.allclose(m.distances, 0.01, atol=1e-9)
    assert np.allclose(m.points_on_b @ n, np.array([4, 0, math.sqrt(3) / 2]) @ n)


def test_parallel_edges_have_a_normal():
    a = Box((1, 1, 1))
    m = contacts_between(a, a, ((0, 3, 3), None))
    assert np.allclose(m.normal, (0, HALF, HALF)) and np.isfinite(m.points_on_b).all()
    m = contacts_between(a, ConvexHull(CUBE), ((0, 2, 2), None))
    assert np.isfinite(m.normal).all() and np.linalg.norm(m.normal) == pytest.approx(1)


def test_touching_boxes_take_a_normal_from_the_surfaces():
    a = Box((1, 1, 1))
    m = contacts_between(a, a, ((2, 0.5, 0), None))
    assert m.normal == pytest.approx((1, 0, 0)) and m.count == 4
    m = contacts_between(a, a, ((2, 2, 2), None))
    assert min(m.normal) >= 0 and m.count >= 1


def test_a_standing_triangle_falls_back_to_its_edges_or_a_point():
    """Nearly parallel to the normal: the role is reversed, or the closest pair stands alone."""
    blade = Triangle((-0.5, 0, 0), (0.5, 0, 0), (0, 0, 1))
    m = contacts_between(blade, Box((2, 2, 1)), ((0, 0, 1.1), None))
    assert m.normal == pytest.approx((0, 0, 1))
    lowest = m.points_on_b[np.isclose(m.distances, 0.1)]
    assert {tuple(np.round(p, 9)) for p in lowest} >= {(-0.5, 0, 1), (0.5, 0, 1)}
    m = contacts_between(blade, blade, ((0, 0, 1.5), about_z(math.pi / 2)), ((0, 0, 0), (1, 0, 0, 0)))
    assert m.count == 1


def test_polygon_builder_returns_true_indices():
    """The second corner is looked up, not copied: indices of a square with points in it."""
    square = np.array([(0.1, 0, 5), (-1, -1, 0), (0, 0.2, 1), (1, -1, 0), (1, 1, 3), (0, -1, 0), (-1, 1, 0), (1, 0, 9)])
    loop = expanding_polygon(square, (0, 0, 2))
    assert sorted(loop) == [1, 3, 4, 6]
    assert area(square[loop, :2]) == 4
    start = list(loop).index(1)
    assert list(np.roll(loop, -start)) == [1, 3, 4, 6]       # counter-clockwise
    assert sorted(expanding_polygon(square, (0, 0, -1))) == [1, 3, 4, 6]


def test_polygon_builder_keeps_the_largest_outline():
    rng = np.random.default_rng(2)
    for n in (5, 50, 400):
        points = np.c_[rng.normal(size=(n, 2)), rng.normal(size=n)]
        full = area(points[expanding_polygon(points, (0, 0, 1), 500), :2])
        last = 0.0
        for capacity in (3, 4, 6, 8, 12, 20, 32):
            loop = expanding_polygon(points, (0, 0, 1), capacity)
            assert len(loop) <= capacity and len(set(loop)) == len(loop)
            a = area(points[loop, :2])
            assert last - 1e-12 <= a <= full + 1e-12
            last = a
        assert last > 0.97 * full
        order = rng.permutation(n)
        again = expanding_polygon(points[order], (0, 0, 1), 12)
        assert np.array_equal(points[order][again], points[expanding_polygon(points, (0, 0, 1), 12)])


@pytest.mark.parametrize("points, normal, capacity, word", [
    ([], (0, 0, 1), 4, "points"), ([[1, 2]], (0, 0, 1), 4, "points"), ([[0, 0, math.inf]], (0, 0, 1), 4, "points"),
    (CUBE, (0, 0, 0), 4, "normal"), (CUBE, (0, 1), 4, "normal"), (CUBE, (0, 0, math.nan), 4, "normal"),
    (CUBE, (0, 0, 1), 1, "capacity")])
def test_polygon_builder_names_bad_arguments(points, normal, capacity, word):
    with pytest.raises(ValueError, match=word):
        expanding_polygon(points, normal, capacity)


def test_polygon_builder_on_lines_and_points():
    assert list(expanding_polygon([(1, 2, 3)] * 3, (0, 0, 1))) == [0]
    assert len(expanding_polygon([(0, 0, 0), (1, 1, 5), (2, 2, 1)], (0, 0, 1))) == 2
    assert len(expanding_polygon([(0, 0, 0), (0, 0, 5)], (0, 0, 1))) == 1


# ---------------------------------------------------------------- the edge of float64

@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_never_nan_whatever_the_sizes(kinds):
    """From 1e-9 to 1e9 m, one of them far smaller, thinner or flatter than the other."""
    rng = np.random.default_rng(PAIRS.index(kinds))
    shapes = {k: [random_shape(rng, k, 10.0 ** rng.uniform(-9, 9)) for _ in range(40)] for k in set(kinds)}
    for hulls in [shapes.get("hull", [])]:
        for i in range(len(hulls)):
            hulls[i] = hulls[i].scaled(10.0 ** rng.uniform(-12, 3, size=3))
    for _ in range(400):
        a, b = (shapes[k][rng.integers(40)] for k in kinds)
        offset = rng.normal(size=3) * 10.0 ** rng.uniform(-12, 9) * rng.integers(2)
        pb = (offset, quaternion(rng) if rng.random() < 0.5 else (0, 0, 0, 1))
        r = distance_between(a, b, None, pb)
        m = contacts_between(a, b, None, pb)
        assert math.isfinite(r.distance) and np.isfinite([r.point_a, r.point_b, r.normal_a, r.normal_b]).all()
        assert np.linalg.norm(r.normal) == pytest.approx(1)
        assert 1 <= m.count <= 32
        assert np.isfinite(m.points_on_b).all() and np.isfinite(m.distances).all() and np.isfinite(m.normal).all()


# ---------------------------------------------------------------- the manifold itself

def test_add_index_and_remove():
    m = ContactManifold((0, 0, 1))
    assert m.count == len(m) == 0 and m.points_on_b.shape == (0, 3)
    for k in range(32):
        m.add((k, 0, 0), -k)
    assert m.count == 32 and m[5] == Contact((5.0, 0.0, 0.0), -5.0)
    with pytest.raises(ValueError, match="32"):
        m.add((0, 0, 0), 0)
    assert m.count == 32
    m.remove(3)
    assert m.count == 31 and m[3].distance == -31           # the last took its place
    m.remove(30)
    assert m.count == 30
    m[2] = ((9, 9, 9), 1.5)
    assert m[2] == ((9, 9, 9), 1.5)
    for bad in (30, -1, 10**30):
        with pytest.raises(IndexError, match="index"):
            m[bad]
        with pytest.raises(IndexError, match="index"):
            m.remove(bad)
    with pytest.raises(TypeError, match="index"):
        m["x"]
    with pytest.raises(ValueError, match="distance"):
        m.add((0, 0, 0), math.nan)
    with pytest.raises(ValueError, match="normal"):
        ContactManifold((0, 0, 0))


def test_flip_moves_the_points_to_a():
    pose = ((0.1, 0.2, 1.9), None)
    m = contacts_between(Box((1, 1, 1)), Box((1, 1, 1)), pose)
    on_a, on_b, normal = m.points_on_a, m.points_on_b, np.array(m.normal)
    assert m.flip() is m
    assert np.array_equal(m.points_on_b, on_a) and m.normal == tuple(-normal)
    m.flip()
    assert np.allclose(m.points_on_b, on_b)


def test_copies_are_separate():
    m = contacts_between(Box((1, 1, 1)), Box((1, 1, 1)), ((0, 0, 1.9), None))
    for k in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m)), m.copy()):
        assert np.array_equal(k.points_on_b, m.points_on_b) and k.normal == m.normal
        k.remove(0)
        assert k.count == 3 and m.count == 4


def test_many_gives_the_same_bits():
    cases = Cases(6)
    rows = [cases.pair(*PAIRS[i % 15]) for i in range(300)]
    a, b = [r[0][0] for r in rows], [r[1][0] for r in rows]
    pa = np.array([r[0][2][0] for r in rows]), np.array([r[0][2][1] for r in rows])
    pb = np.array([r[1][2][0] for r in rows]), np.array([r[1][2][1] for r in rows])
    out = contacts_between_many(a, b, pa, pb, max_distance=0.5)
    for i in range(300):
        m = contacts_between(a[i], b[i], (pa[0][i], pa[1][i]), (pb[0][i], pb[1][i]), max_distance=0.5)
        assert out.near[i] == (m is not None)
        assert out.counts[i] == (0 if m is None else m.count)
        if m is not None:
            assert tuple(out.normal[i]) == m.normal
            assert np.array_equal(out.points_on_b[i, :m.count], m.points_on_b)
            assert np.array_equal(out.distances[i, :m.count], m.distances)
            assert not out.points_on_b[i, m.count:].any()


def test_a_capsule_with_what_it_stands_on_and_leans_against():
    shapes = [Box((5, 5, 1)), Box((1, 5, 5)), Sphere(1), Triangle((-1, -1, 0), (1, -1, 0), (0, 1, 0))]
    poses = [((0, 0, -1), None), ((1.5, 0, 0), None), ((0, 9, 0), None), None]
    found = capsule_contacts(Capsule(0.49, 1.0), ((0, 0, 1.0), None), shapes, poses, max_distance=0.02)
    assert [i for i, _ in found] == [0, 1, 3]
    (_, floor), (_, wall), (_, triangle) = found
    assert floor.normal == pytest.approx((0, 0, 1)) and floor.distances.min() == pytest.approx(0.01)
    assert wall.normal == pytest.approx((-1, 0, 0)) and wall.count == 2 and np.allclose(wall.points_on_b[:, 0], 0.5)
    assert triangle.normal == pytest.approx((0, 0, 1))


def test_contacts_need_convex_shapes():
    with pytest.raises(TypeError, match="b must"):
        contacts_between(Sphere(1), Plane((0, 0, 1)))
    assert contacts_between(Sphere(1), Sphere(1), ((5, 0, 0), None), max_distance=1) is None
