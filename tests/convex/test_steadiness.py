"""Deepest points are on their shapes, nearly equal axes do not flip, contacts have a cutoff."""

import itertools
import math

import brute
import numpy as np
import pytest
from worlds import unit

import pycct
from pycct import Box, Capsule, ConvexHull, Sphere, Triangle, contacts_between, distance_between
from pycct.queries.shape_pairs import capsule_contacts, contacts_between_many


def turned(axis, angle):
    """The unit quaternion of a turn."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.array([*(axis * math.sin(angle / 2)), math.cos(angle / 2)])


def product(a, b):
    """Two turns as one: b first."""
    x, y, z, w = a
    p, q, r, s = b
    out = np.array([w * p + x * s + y * r - z * q, w * q - x * r + y * s + z * p,
                    w * r + x * q - y * p + z * s, w * s - x * p - y * q - z * r])
    return out / np.linalg.norm(out)


def outside(point, half, position, rotation):
    """How far a point lies outside of a box."""
    back = np.array([*-rotation[:3], rotation[3]])
    return float((np.abs(brute.rotate(back, (np.asarray(point) - position)[None])[0]) - half).max())


def corners_of(half):
    return np.array(list(itertools.product(*[(-h, h) for h in half])))


HERE, STRAIGHT = np.zeros(3), np.array([0, 0, 0, 1.0])


@pytest.mark.parametrize("tilt", [0, 1e-13, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3])
def test_deepest_points_lie_on_both_boxes(tilt):
    """Deepest points of nearly parallel boxes and hulls are on them; the depth separates them."""
    rng = np.random.default_rng(5)
    deep = 0
    for k in range(250):
        ha, hb = rng.uniform(0.2, 3, 3), rng.uniform(0.2, 3, 3)
        base = turned(np.eye(3)[rng.integers(3)], rng.choice([0, math.pi / 4, math.pi / 2, rng.uniform(0, 3)]))
        q = product(base, turned(rng.normal(size=3), tilt))
        place = rng.uniform(-2, 2, 3)
        a, b = Box(ha), Box(hb)
        if k % 4 == 0:
            a, b = ConvexHull(corners_of(ha)), ConvexHull(corners_of(hb))
        d = distance_between(a, b, None, (place, q))
        if d.distance >= 0:
            continue
        deep += 1
        scale = float(2 * (ha.sum() + hb.sum()))
        assert abs(outside(d.point_a, ha, HERE, STRAIGHT)) < 2e-9 * scale
        assert abs(outside(d.point_b, hb, place, q)) < 2e-9 * scale
        assert np.abs(np.subtract(d.point_a, d.point_b) - d.distance * np.array(d.normal)).max() < 1e-12 * scale
        apart = distance_between(a, b, (-d.distance * np.array(d.normal), None), (place, q))
        assert abs(apart.distance) < 1e-9 * scale
        back = distance_between(b, a, (place, q), None)
        assert back.point_a == d.point_b and back.point_b == d.point_a and back.distance == d.distance
    assert deep > 60


def told(a, b, place, q):
    m = contacts_between(Box(a), Box(b), None, (place, q))
    order = np.lexsort(np.round(m.points_on_b, 6).T)
    return np.array(m.normal), m.points_on_b[order], m.distances[order]


def test_a_tilt_by_rounding_changes_no_reference_face():
    """A nudge of 1e-13 does not change which face or axis aligned boxes choose."""
    rng = np.random.default_rng(6)
    compared = 0
    for _ in range(400):
        ha = rng.choice([0.5, 1, 1.5], 3)
        hb = ha if rng.random() < 0.5 else rng.choice([0.5, 1, 1.5], 3)
        first, second = rng.choice([0, 45, 90, 135], 2)
        q = product(turned(np.eye(3)[rng.integers(3)], math.radians(first)),
                    turned(np.eye(3)[rng.integers(3)], math.radians(second)))
        place = rng.choice([0, 0, 0.5, 1, -0.5, -1], 3).astype(float)
        normal, points, distances = told(ha, hb, place, q)
        if np.array_equal(ha, hb) and not place.any() and q[3] == 1:
            continue  # the same box twice: nothing tells the first from the second
        if distance_between(Box(ha), Box(hb), None, (place, q)).distance > -1e-6:
            continue
        compared += 1
        for _ in range(4):
            nudge = rng.choice([0, 1e-13, -1e-13], 3)
            also = told(ha, hb, place + nudge, product(q, turned(rng.normal(size=3), 1e-13)))
            assert np.abs(also[0] - normal).max() < 1e-9
            # A corner that lies exactly on the side of a face may come and go, the others stay.
            few, many = sorted((points, also[1]), key=len)
            assert len(many) - len(few) <= 1
            assert (np.linalg.norm(few[:, None] - many, axis=2).min(1) < 1e-5).all()
            assert also[2].min() == pytest.approx(distances.min(), abs=1e-9)
    assert compared > 100


def test_of_two_faces_at_half_a_right_angle_the_same_one_is_taken():
    """The clipped face of a box on its edge does not depend on rounding."""
    edge = math.sqrt(0.5)
    want = None
    for nudge in (0, 1e-13, -1e-13, 3e-11, -3e-11):
        m = contacts_between(Box((0.5, 0.5, 0.5)), Box((2, 2, 0.5)),
                             ((0, 0, 0.5 + edge - 0.01), turned((1, 0, 0), math.pi / 4 + nudge)), None)
        points = m.points_on_b[np.lexsort(np.round(m.points_on_b, 6).T)]
        want = points if want is None else want
        assert points.shape == want.shape and np.abs(points - want).max() < 1e-6
    # Well off it, the face that looks down more is taken.
    for angle in (math.pi / 4 + 1e-3, math.pi / 4 - 1e-3):
        m = contacts_between(Box((0.5, 0.5, 0.5)), Box((2, 2, 0.5)),
                             ((0, 0, 0.5 + edge - 0.01), turned((1, 0, 0), angle)), None)
        low = m.points_on_b[m.distances > 0.1]
        assert len(low) == 2 and (low[:, 1] > 0).all() == (angle < math.pi / 4)


# --- A cutoff for each contact


def test_contacts_beyond_the_cutoff_are_left_out():
    a, b = Box((1, 1, 1)), Box((2, 2, 1))
    lean = turned((0, 1, 0), 0.2)
    every = contacts_between(a, b, ((0, 0, 2.1), lean), None)
    assert every.count == 4 and every.distances.max() > 0.3
    for cutoff in (every.distances.min() + 1e-12, 0.2, every.distances.max(), math.inf):
        some = contacts_between(a, b, ((0, 0, 2.1), lean), None, max_contact_distance=cutoff)
        kept = every.distances <= cutoff + 1e-9
        assert np.array_equal(some.distances, every.distances[kept])
        assert np.array_equal(some.points_on_b, every.points_on_b[kept]) and some.normal == every.normal
        # The other way round they are the same, on the other shape.
        back = contacts_between(b, a, None, ((0, 0, 2.1), lean), max_contact_distance=cutoff)
        assert back.count == some.count and np.allclose(np.sort(back.distances), np.sort(some.distances), atol=1e-12)
    assert contacts_between(a, b, ((0, 0, 2.1), lean), None, max_contact_distance=every.distances.min() - 1e-6) is None
    assert contacts_between(a, b, ((0, 0, 2.1), lean), None, math.inf, -1) is None


def test_contacts_at_the_cutoff_stay():
    """Four corners at the same height: rounding must not keep some of them only."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        q = unit(rng)
        gap = float(rng.uniform(0, 1))
        up = brute.rotate(q, np.array([[0, 0, 2 + gap]]))[0]
        a, b = Box((1, 1, 1)), Box((2, 2, 1))
        assert contacts_between(a, b, (up, q), (HERE, q), max_contact_distance=gap + 1e-14).count == 4
        assert contacts_between(a, b, (up, q), (HERE, q), max_contact_distance=gap - 1e-6) is None


def test_the_cutoff_comes_before_the_choice_of_32():
    """Contacts of a leaning disk of 60 corners within the cutoff equal those of a smaller disk."""
    ring = [(math.cos(k * math.pi / 30), math.sin(k * math.pi / 30), z) for k in range(60) for z in (-0.1, 0.1)]
    disk, floor = ConvexHull(ring), Box((3, 3, 1))
    pose = ((0, 0, 1.05), turned((0, 1, 0), 0.01))
    every = contacts_between(disk, floor, pose, None)
    assert every.count == 32
    some = contacts_between(disk, floor, pose, None, max_contact_distance=-0.055)
    assert 2 < some.count < 32 and (some.distances <= -0.055 + 1e-7).all()
    # More of the deep ones than the choice of 32 among all of them kept.
    assert some.count > (every.distances <= -0.055).sum()


def test_cutoff_of_batches_and_of_capsules():
    a, b = Box((1, 1, 1)), Box((2, 2, 1))
    rng = np.random.default_rng(8)
    places = np.column_stack([rng.uniform(-1, 1, (20, 2)), rng.uniform(1.5, 2.6, 20)])
    turns = unit(rng, 20)
    many = contacts_between_many(a, b, (places, turns), None, max_contact_distance=0.05)
    for k in range(20):
        one = contacts_between(a, b, (places[k], turns[k]), None, max_contact_distance=0.05)
        assert bool(many.near[k]) == (one is not None)
        n = 0 if one is None else one.count
        assert many.counts[k] == n and np.array_equal(many.distances[k][:n], [] if one is None else one.distances)
    lying = ((0, 0, 1.6), turned((0, 1, 0), math.pi / 2 - 0.1))
    capsule = Capsule(0.5, 1.8)
    ((_, m),) = capsule_contacts(capsule, lying, [b], [None], 1.0)
    ((_, cut),) = capsule_contacts(capsule, lying, [b], [None], 1.0, 0.1)
    assert m.count == 2 and cut.count == 1 and cut.distances[0] == m.distances.min()
    assert capsule_contacts(capsule, lying, [b], [None], 1.0, -0.5) == []


@pytest.mark.parametrize("bad", [math.nan, "far", None])
def test_a_cutoff_that_is_no_number(bad):
    a = Sphere(1)
    for call in (lambda: contacts_between(a, a, max_contact_distance=bad),
                 lambda: contacts_between_many(a, a, max_contact_distance=bad),
                 lambda: capsule_contacts(Capsule(1, 1), None, [a], [None], max_contact_distance=bad)):
        with pytest.raises((TypeError, ValueError), match="max_contact_distance"):
            call()


# --- The sides of flat shapes


def flat_shapes():
    """Shapes without volume in the plane z = 0, seen from above counter-clockwise."""
    square = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
    return [Triangle((-2, -1, 0), (2, -1, 0), (0, 2, 0)), ConvexHull(square),
            ConvexHull(corners_of((1, 1, 1))).scaled((1, 1, 0)), ConvexHull(corners_of((1, 1, 1))).scaled((-1, 1, 0))]


@pytest.mark.parametrize("other", [Sphere(0.2), Capsule(0.2, 0.5), Box((0.2, 0.3, 0.1)),
                                   ConvexHull(np.random.default_rng(1).normal(size=(9, 3)) * 0.2),
                                   Triangle((0, 0, 0.2), (0.1, 0, -0.3), (0, 0.1, 0.2))],
                         ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("flip", [False, True])
def test_the_normal_of_a_flat_shape_faces_the_other(other, flip):
    """Apart and overlapping, above and below, first and second, turned any way."""
    rng = np.random.default_rng(9)
    for flat, side, high, k in itertools.product(flat_shapes(), (1, -1), (0.9, 0.02), range(3)):
        q = STRAIGHT if k == 0 else unit(rng)
        spin = STRAIGHT if k == 0 else unit(rng)
        centre = brute.rotate(q, np.array([[0.1, 0.05, side * high]]))[0]
        up = brute.rotate(q, np.array([[0, 0, float(side)]]))[0]
        pose, flat_pose = (centre, spin), (HERE, q)
        d = distance_between(flat, other, flat_pose, pose) if flip else distance_between(other, flat, pose, flat_pose)
        own = d.normal_a if flip else d.normal_b
        towards = -np.array(d.normal) if flip else np.array(d.normal)
        if d.distance > 0:
            assert np.abs(own - up).max() < 1e-9 and np.abs(towards - up).max() < 1e-9
            feature = pycct.decode_feature(d.feature_a if flip else d.feature_b)
            assert feature.kind == "face"
            # Front and back by the order of corners: of triangles 0 is the front.
            if isinstance(flat, Triangle):
                assert feature.number == (0 if side > 0 else 1)
        elif feature_kind(d, flip) == "face":
            assert np.array(own) @ towards > 0.999


def feature_kind(d, first):
    return pycct.decode_feature(d.feature_a if first else d.feature_b).kind
