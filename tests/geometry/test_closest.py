"""Closest points against an oracle in longer arithmetic, on figures of every size and shape."""
import kernel_oracle as oracle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_cases import choose, directions, length, log_uniform, pick, scaled, snapped, triangles, unit, weights_on

from pycct import kernels as k

# Where a long double is no longer than a double, the oracle is as good as the kernels and still
# judges.
LONG = np.longdouble

KERNELS = {
    "point_segment": (k.point_segment, k.point_segment_many, oracle.point_segment),
    "segment_segment": (k.segment_segment, k.segment_segment_many, oracle.segment_segment),
    "point_triangle": (k.point_triangle, k.point_triangle_many, oracle.point_triangle),
    "segment_triangle": (k.segment_triangle, k.segment_triangle_many, oracle.segment_triangle),
    "segment_box": (k.segment_box, k.segment_box_many, oracle.segment_box),
}
COUNT = {"point_segment": 3, "segment_segment": 4, "point_triangle": 4, "segment_triangle": 5, "segment_box": 3}


def segments(rng, n, like):
    """Any, of no length, and parallel to given directions within 0 to 1e-2."""
    tilt = log_uniform(rng, 1e-12, 1e-2, n)[:, None] * directions(rng, n)
    d = pick(choose(rng, n, 4, 2, 2, 1), directions(rng, n), unit(like), unit(like) + tilt, np.zeros((n, 3)))
    return d * log_uniform(rng, 1e-3, 1e2, n)[:, None]


def figures(name, seed, n):
    """Points of two figures that cross, touch, nearly touch, or lie apart: a list of (n, 3)."""
    rng = np.random.default_rng(seed)
    if name.endswith("box"):
        half = pick(choose(rng, n, 2, 1, 1), log_uniform(rng, 1e-6, 10, (n, 3)), np.ones((n, 3)),
                    rng.integers(0, 4, (n, 3)) / 4)
        d = segments(rng, n, np.eye(3)[rng.integers(3, size=n)])
        p = half * pick(choose(rng, n, 2, 1, 1), rng.uniform(-2, 2, (n, 3)), rng.integers(-1, 2, (n, 3)),
                        rng.uniform(-1, 1, (n, 3)))
        p = p - d * rng.uniform(-0.5, 1.5, (n, 1))
        first = snapped(rng, n, p, p + d)
        return scaled(rng, n, *first, half)
    if name.endswith("triangle"):
        v = triangles(rng, n)
        # Of no area: in one line, or a single point.
        v[2] = pick(choose(rng, n, 8, 1, 1), v[2], v[0] + (v[1] - v[0]) * rng.uniform(-1, 2, (n, 1)), v[0])
        v[1] = np.where(rng.random((n, 1)) < 0.02, v[0], v[1])
    else:
        v = rng.normal(size=(2, n, 3))
        v[1] = v[0] + segments(rng, n, v[1] - v[0])
    w = weights_on(rng, n)[:, :len(v)]
    contact = np.einsum("nk,knd->nd", w / np.maximum(w.sum(1), 1e-300)[:, None], v)
    contact = contact + directions(rng, n) * pick(choose(rng, n, 1, 1, 1), np.zeros((n, 1)),
                                                  log_uniform(rng, 1e-12, 1, n)[:, None],
                                                  log_uniform(rng, 1, 1e4, n)[:, None])
    if name.startswith("point"):
        first = [contact]
    else:
        d = segments(rng, n, v[1] - v[0])
        start = contact - d * pick(choose(rng, n, 1, 1, 2), np.zeros((n, 1)), np.ones((n, 1)),
                                   rng.uniform(-0.2, 1.2, (n, 1)))
        first = [start, start + d]
    return scaled(rng, n, *snapped(rng, n, *first, *v))


def scale_of(points):
    points = np.array(points)
    return abs(points - points[0]).max((0, 2)) + 1e-6 * abs(points).max((0, 2))


def check(name, points):
    _, many, distance = KERNELS[name]
    found = many(*points)
    scale = scale_of([*points, -points[2]] if name.endswith("box") else points)
    true = distance(*(np.asarray(p, LONG).T for p in points))
    assert (abs(found.distance - true) <= 1e-9 * scale).all(), np.flatnonzero(abs(found.distance - true) > 1e-9 * scale)
    # The points are where they are said to be, on the figures and that far apart.
    assert (abs(length(found.point_a - found.point_b) - found.distance) <= 1e-15 * scale).all()
    for x in (found.s, found.t):
        assert ((x >= 0) & (x <= 1)).all()
    if name.startswith("point"):
        assert np.array_equal(found.point_a, points[0])
        second = points[1:]
    else:
        on = points[0] + (points[1] - points[0]) * found.s[:, None]
        assert (length(found.point_a - on) <= 1e-12 * scale).all()
        second = points[2:]
    if name.endswith("segment"):
        on = second[0] + (second[1] - second[0]) * found.t[:, None]
        assert (length(found.point_b - on) <= 1e-12 * scale).all()
    elif name.endswith("triangle"):
        off = oracle.point_triangle(*(np.asarray(p, LONG).T for p in (found.point_b, *second)))
        assert (off <= 1e-9 * scale).all()
    else:
        assert (abs(found.point_b) <= second[0]).all()


@pytest.mark.parametrize("name", KERNELS)
def test_closest_points(name):
    check(name, figures(name, 1, 20_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_closest_points_a_million_times(name):
    for seed in range(300, 350):
        check(name, figures(name, seed, 20_000))


@pytest.mark.parametrize("name", ["point_segment", "segment_segment", "point_triangle", "segment_triangle"])
@pytest.mark.parametrize("how", ["turned", "mirrored", "elsewhere"])
def test_rigid_motion_and_mirroring_change_nothing(name, how):
    points = figures(name, 2, 20_000)
    q, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    q = q * np.sign(np.linalg.det(q)) * {"turned": 1, "mirrored": -1, "elsewhere": 1}[how]
    scale = scale_of(points)
    if how == "elsewhere":
        moved = [p + scale[:, None] * [1000.0, -300, 77] for p in points]
        scale = scale_of(moved)
    else:
        moved = [p @ q.T for p in points]
    many = KERNELS[name][1]
    assert (abs(many(*points).distance - many(*moved).distance) <= 1e-9 * scale).all()


@pytest.mark.parametrize("name", KERNELS)
def test_order_of_points_changes_nothing(name):
    points = figures(name, 4, 20_000)
    many = KERNELS[name][1]
    scale = scale_of(points)
    base = many(*points).distance
    orders = {"point_segment": [(0, 2, 1)], "segment_segment": [(1, 0, 2, 3), (2, 3, 0, 1), (0, 1, 3, 2)],
              "point_triangle": [(0, 2, 3, 1), (0, 1, 3, 2)],
              "segment_triangle": [(1, 0, 2, 3, 4), (0, 1, 3, 4, 2), (0, 1, 2, 4, 3)], "segment_box": [(1, 0, 2)]}
    for order in orders[name]:
        assert (abs(base - many(*(points[i] for i in order)).distance) <= 1e-9 * scale).all()


@pytest.mark.parametrize("name", KERNELS)
def test_scalar_and_batch_give_the_same_bits(name):
    one, many, _ = KERNELS[name]
    points = figures(name, 5, 200)
    found = many(*points)
    for i in range(200):
        r = one(*(p[i] for p in points))
        assert r == (found.distance[i], tuple(found.point_a[i]), tuple(found.point_b[i]), found.s[i], found.t[i])


NUMBERS = st.one_of(st.integers(-16, 16).map(lambda i: i / 4), st.sampled_from([0.1, -0.3, 1e-9, -1e-9, 1e-12, 1e6]),
                    # Below 1e-100 m the squares that a distance is made of vanish.
                    st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: x if abs(x) > 1e-100 else 0.0))
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_figures(name, data):
    rows = data.draw(st.lists(st.tuples(*[VECTORS] * COUNT[name]), min_size=20, max_size=20))
    points = list(np.moveaxis(np.array(rows), 1, 0))
    if name.endswith("box"):
        points[2] = abs(points[2])
    check(name, points)


def test_plain_answers():
    assert k.point_segment((1, 2, 0), (0, 0, 0), (4, 0, 0)) == (2, (1, 2, 0), (1, 0, 0), 0, 0.25)
    assert k.segment_segment((0, 0, 1), (2, 0, 1), (1, -1, 0), (1, 3, 0)) == (1, (1, 0, 1), (1, 0, 0), 0.5, 0.25)
    assert k.point_triangle((1, 1, 3), (0, 0, 0), (4, 0, 0), (0, 4, 0)) == (3, (1, 1, 3), (1, 1, 0), 0, 0)
    assert k.segment_triangle((1, 1, 3), (1, 1, -1), (0, 0, 0), (4, 0, 0), (0, 4, 0)).s == 0.75
    assert k.segment_box((3, 0, 0), (5, 0, 0), (1, 2, 3)) == (2, (3, 0, 0), (1, 0, 0), 0, 0)
    assert k.segment_box((-9, 0.5, 0), (9, 0.5, 0), (1, 2, 3)).distance == 0


def test_nearly_parallel_segments_that_cross():
    for angle in (1e-4, 1e-6, 1e-7, 1e-8, 1e-9):
        for middle in (0.1, 0.5, 0.73):
            d = np.array([1, angle, 0])
            r = k.segment_segment((-0.5, 0, 0), (0.5, 0, 0), -d * middle, d * (1 - middle))
            assert r.distance < 1e-12


# Segments that graze an edge of a box or lie in a face of it, within 1e-8: p0, p1, half extents. In
# the last the segment crosses two planes at parameters that are one and the same double.
GRAZING = [
    ((-19.55660114078648, 5.737575412066055e-06, 22.871558951730968),
     (65.09659376779966, -5.710107211075745e-06, 22.871555228442006), (22.871557085619553,) * 3),
    ((3.1766183997281326e-07, -2.251297337904986e-06, -3.5244447886869783e-14),
     (3.176618509511219e-07, 2.747579232423516e-07, 1.491849664096868e-14),
     (3.176618476861648e-07, 4.764927715292472e-07, 0.0)),
    ((2.708698418366254e-08, -0.2500000199297172, -2.2956265147801953),
     (-9.417835894997769e-09, -0.24999999307066434, 1.808929651199564), (0.25, 0.25, 0.75)),
    ((0.009459672535669383, -0.7501515936869454, -9.955691376506757e-07),
     (0.00945967065183549, 0.492443456240627, -1.0023426003884824e-06),
     (0.009459670676642072, 0.4760807937242124, 1.0022534064995702e-06)),
    ((-6.967668265372047e-09, -0.29312786119805934, -0.8178515830828555),
     (1.6781804885676495e-09, -0.29312785184047396, 1.2881669293487312),
     (0.0, 0.29312785365680427, 0.8793835609704128)),
]


@pytest.mark.parametrize("row", range(len(GRAZING)))
def test_segments_that_graze_an_edge_of_a_box(row):
    p0, p1, half = np.array(GRAZING[row])[:, None]
    check("segment_box", [p0, p1, half])
    check("segment_box", [p1, p0, half])


def test_point_beyond_the_sharp_end_of_a_sliver_is_not_on_it():
    points = np.array([[1.956379404440998e-09, 7.683640010431329e-09, 1.0186441310198468e-07],
                       [-7.16386142914087e-09, 5.03478097137498e-09, 4.01400334319785e-08],
                       [-6.276014481857322e-10, 6.9331553288178615e-09, 8.437643026053607e-08],
                       [-2.1822363154190147e-08, 7.774035500475076e-10, -5.906643925058313e-08],
                       [-2.7523670633422097e-08, -8.78469545226313e-10, -9.765200618519969e-08]])[:, None]
    check("segment_triangle", list(points))
    rng = np.random.default_rng(11)
    for _ in range(20):
        a, e = rng.normal(size=(2, 3))
        b = a + e + rng.normal(size=3) * 1e-10
        # Some 1e-9 beyond the end at a, in the line of both long edges.
        p = a - e * rng.uniform(1e-9, 1e-8, (200, 1))
        ends = [np.broadcast_to(v, p.shape) for v in (a, a + e, b)]
        check("point_triangle", [p, *ends])
        check("segment_triangle", [p + np.cross(e, rng.normal(size=3)), p - np.cross(e, rng.normal(size=3)), *ends])


def test_empty_batches():
    assert k.segment_segment_many(np.zeros((0, 3)), (0, 0, 0), (1, 0, 0), (2, 0, 0)).point_a.shape == (0, 3)


@pytest.mark.parametrize(("error", "name", "call"), [
    (ValueError, "p", lambda: k.point_segment((0, 0), (0, 0, 0), (1, 0, 0))),
    (ValueError, "q1", lambda: k.segment_segment((0, 0, 0), (0, 0, 1), (0, 0, 0), (np.nan, 0, 0))),
    (TypeError, "c", lambda: k.point_triangle((0, 0, 0), (0, 0, 0), (1, 0, 0), "xyz")),
    (ValueError, "b", lambda: k.segment_triangle_many((0, 0, 0), (0, 0, 1), (0, 0, 0), np.zeros((2, 4)), (0, 1, 0))),
    (ValueError, "p1", lambda: k.segment_triangle_many(np.zeros((2, 3)), np.zeros((3, 3)), *np.eye(3))),
    (ValueError, "half_extents", lambda: k.segment_box((0, 0, 0), (0, 0, 1), (1, -1, 1))),
    (ValueError, "half_extents", lambda: k.segment_box((0, 0, 0), (0, 0, 1), (1, np.inf, 1))),
])
def test_bad_arguments_are_named(error, name, call):
    with pytest.raises(error, match=f"^{name}: "):
        call()
