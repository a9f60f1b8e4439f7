"""Overlap and the shortest way out."""
import kernel_oracle as oracle
import numpy as np
import pytest
from kernel_cases import CUBE, KINDS, cases, choose, directions, length, no_triangle, pick, unit

from pycct import kernels as k

ROWS = {"hull": 8000, "flat hull": 4000}


def check_overlap_and_way_out(case, seed):
    rng = np.random.default_rng(seed)
    n = len(case.p0)
    gap = case.gap(np.zeros(n))
    tolerance = case.tolerance
    overlapping = k.overlap_many(case.capsule, case.target)
    out = k.penetration_many(case.capsule, case.target)
    real = np.ones(n, bool)
    if isinstance(case.target, k.TriangleAt):
        a, b, c = (np.asarray(v, np.longdouble) for v in case.target)
        real = ~no_triangle(a, b, c)
    assert not (overlapping & (gap > tolerance)).any()
    assert not (real & ~overlapping & (gap < -tolerance)).any()
    sure = real & (abs(gap) > tolerance)
    assert (out.overlapping == overlapping)[sure].all()

    def after(push, rows):
        push = push.T
        return (case.distance(case.p0.T + push, case.p1.T + push) - case.radius)[rows]

    hit = out.overlapping
    push = out.direction * out.depth[:, None]
    assert hit.mean() > 0.2
    assert (abs(length(out.direction[hit]) - 1) < 1e-12).all() and (out.depth[hit] >= 0).all()
    assert not out.direction[~hit].any() and not out.depth[~hit].any()
    # It frees, and by no more than it must.
    assert (abs(after(push, hit)) <= tolerance[hit]).all()
    # No shorter push frees, whichever way: some at random, some near the one found.
    for spread in (None, 1e-1, 1e-3):
        way = directions(rng, n) if spread is None else unit(out.direction + spread * directions(rng, n))
        shorter = np.maximum(out.depth - 10 * tolerance, 0)[:, None]
        assert (after(way * shorter, hit) < tolerance[hit]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_way_out_frees_and_is_the_shortest(kind):
    check_overlap_and_way_out(cases(kind, 11, ROWS.get(kind, 20_000)), 12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_way_out_frees_and_is_the_shortest_a_million_times(kind):
    for seed in range(200, 210 if "hull" in kind else 250):
        check_overlap_and_way_out(cases(kind, seed, 20_000), seed)


def deep(seed, n):
    """Capsules whose axes pass through centres: ends, centres and lengths coincide."""
    rng = np.random.default_rng(seed)
    axis = pick(choose(rng, n, 1, 1, 1), directions(rng, n), np.eye(3)[rng.integers(3, size=n)], np.zeros((n, 3)))
    axis = axis * pick(choose(rng, n, 1, 1, 1), np.full((n, 1), 2.0), np.full((n, 1), 1e-11), rng.random((n, 1)))
    at = pick(choose(rng, n, 1, 1, 1), np.zeros((n, 3)), rng.integers(-4, 5, (n, 3)) / 4, rng.normal(size=(n, 3)))
    share = pick(choose(rng, n, 1, 1), np.full((n, 1), 0.5), rng.random((n, 1)))
    p0 = at - axis * share
    return k.CapsuleAt(p0, p0 + axis, np.full(n, 0.5))


@pytest.mark.parametrize(("target", "distance"), [
    (k.SphereAt((0, 0, 0), 1), lambda x, y: oracle.point_segment(np.zeros((3, 1)), x, y) - 1),
    (k.CapsuleAt((-1, 0, 0), (1, 0, 0), 1),
     lambda x, y: oracle.segment_segment(x, y, np.array([[-1.0], [0], [0]]), np.array([[1.0], [0], [0]])) - 1),
    (k.BoxAt((1, 1, 1)), lambda x, y: oracle.segment_box(x, y, np.ones((3, x.shape[1])))),
    (k.HullAt(CUBE), lambda x, y: oracle.segment_polyhedron(x, y, CUBE)),
    (k.TriangleAt((0, 0, 0), (1, 0, 0), (0, 1, 0)),
     lambda x, y: oracle.segment_triangle(x, y, *np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])[..., None])),
])
def test_way_out_from_the_very_middle(target, distance):
    capsule = deep(13, 3000)
    out = k.penetration_many(capsule, target)
    push = (out.direction * out.depth[:, None]).T
    before = distance(capsule.p0.T, capsule.p1.T) - capsule.radius
    after = distance(capsule.p0.T + push, capsule.p1.T + push) - capsule.radius
    assert (out.overlapping == (before < 0))[abs(before) > 1e-12].all()
    assert (abs(after[out.overlapping]) < 1e-9).all()


def test_the_way_out_of_a_triangle_is_on_the_side_of_the_centre():
    triangle = k.TriangleAt((-9, -9, 0), (9, -9, 0), (0, 9, 0))
    for shift, way in ((0.1, 1), (-0.1, -1), (0, 1)):
        out = k.penetration(k.CapsuleAt((0, 0, shift - 1), (0, 0, shift + 1), 0.5), triangle)
        assert out is not None and out.direction == (0, 0, way)
        assert out.depth == pytest.approx(1.5 - abs(shift), abs=1e-12)


def test_a_touch_is_no_overlap():
    capsule = k.CapsuleAt((0, 0, 1.5), (0, 0, 3), 0.5)
    for target in (k.SphereAt((0, 0, 0), 1), k.CapsuleAt((0, 0, 0), (0, 0, -3), 1), k.BoxAt((1, 1, 1)), k.HullAt(CUBE),
                   k.PlaneAt((0, 0, 1), 1), k.TriangleAt((-1, -1, 1), (1, -1, 1), (0, 1, 1))):
        assert not k.overlap(capsule, target) and k.penetration(capsule, target) is None
        lower = k.CapsuleAt((0, 0, 1.4375), (0, 0, 3), 0.5)
        assert k.overlap(lower, target) and k.penetration(lower, target) == ((0, 0, 1), 0.0625)


def test_bad_arguments_are_named():
    capsule = k.CapsuleAt((0, 0, 0), (0, 0, 1), 0.5)
    for call in (k.overlap, k.penetration, k.overlap_many, k.penetration_many):
        with pytest.raises(ValueError, match=r"^capsule\.radius: must be above 0"):
            call(capsule._replace(radius=-1), k.SphereAt((0, 0, 0), 1))
        with pytest.raises(ValueError, match=r"^target\.centre: must be finite"):
            call(capsule, k.SphereAt((0, 0, np.inf), 1))
        with pytest.raises(TypeError, match=r"^target: expected one of"):
            call(capsule, "sphere")
