"""Sweeps against an oracle that knows only distances, and by the rules."""
import kernel_oracle as oracle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_cases import CUBE, KINDS, Cases, cases, length, no_triangle, unit

from pycct import kernels as k

LONG = np.longdouble
# The oracle looks at every face of a solid.
ROWS = {"box": 6000, "hull": 3000, "flat hull": 1500}


def edge_on(case):
    """A plane that contains motion and axis is never hit (RULES 2); nor is a degenerate one."""
    if not isinstance(case.target, k.TriangleAt):
        return np.zeros(len(case.p0), bool)
    a, b, c = (np.asarray(v, LONG) for v in case.target)
    n = unit(np.cross(b - a, c - a))
    axis = case.p1 - case.p0
    return no_triangle(a, b, c) | ((abs((n * case.motion).sum(1)) <= 1.01e-9 * length(case.motion))
                                   & (abs((n * axis).sum(1)) <= 1.01e-9 * length(axis)))


def check_first_contact(case, found, steps=56):
    """The heart of the matter: contact where it is said to be, none before, none missed."""
    tolerance = case.tolerance
    judged = ~edge_on(case)
    start = case.gap(np.zeros(len(case.p0)))
    swept = found.hit & ~found.overlapping

    def none(bad):
        assert not (bad & judged).any(), np.flatnonzero(bad & judged)[:5]

    none(found.overlapping & (start > tolerance))
    none(~found.overlapping & (start < -tolerance))
    assert (found.hit | ~found.overlapping).all()
    time = np.where(swept, found.time, 1.0)
    smallest, _ = oracle.smallest_on_path(case.gap, time, steps)
    none(swept & (abs(case.gap(time)) > tolerance))
    none(~found.overlapping & (smallest < -tolerance))
    return swept


def check_normal_and_point(case, found, swept):
    time = np.where(swept, found.time, 0.0)
    at = case.motion.T * time
    ends = case.p0.T + at, case.p1.T + at
    assert (abs(length(found.normal[found.hit & (length(case.motion) > 0)]) - 1) < 1e-12).all()
    gone = abs(oracle.point_segment(found.point.T, *ends) - case.radius) > case.tolerance
    assert not (gone & swept).any()
    # From the point along the normal by the radius lies the axis; a triangle touched
    # from so near that there is no direction shows its own normal (RULES 3).
    lost = oracle.point_segment((found.point + found.normal * case.radius[:, None]).T, *ends) > case.tolerance
    if isinstance(case.target, k.TriangleAt):
        lost &= case.radius > 1.1e-3
    assert not (lost & swept).any()


@pytest.mark.parametrize("kind", KINDS)
def test_contact_is_first_and_exact(kind):
    case = cases(kind, 1, ROWS.get(kind, 20_000))
    found = k.sweep_many(case.capsule, case.motion, case.target)
    swept = check_first_contact(case, found)
    assert swept.mean() > 0.2 and (~found.hit).mean() > 0.1
    if "hull" not in kind:
        check_normal_and_point(case, found, swept)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_contact_is_first_and_exact_a_million_times(kind, part):
    # Hulls are triangles to the kernels: a tenth will do.
    for seed in range(100 + part, 105 if "hull" in kind else 150, 5):
        case = cases(kind, seed, 20_000)
        found = k.sweep_many(case.capsule, case.motion, case.target)
        swept = check_first_contact(case, found)
        if "hull" not in kind:
            check_normal_and_point(case, found, swept)


def test_hull_normal_and_point_belong_to_a_face_touched_at_once():
    case = cases("hull", 2, 8000)
    found = k.sweep_many(case.capsule, case.motion, case.target)
    swept = found.hit & ~found.overlapping
    at = case.motion.T * np.where(swept, found.time, 0.0)
    away = oracle.point_segment(found.point.T, case.p0.T + at, case.p1.T + at) - case.radius
    window = 1e-3 * np.maximum(1, found.distance)
    assert (abs(length(found.normal[swept]) - 1) < 1e-12).all()
    assert (away[swept] > -case.tolerance[swept]).all() and (away[swept] <= 1.01 * window[swept]).all()


def moved(case, place, turn):
    """The same scene elsewhere: turn for directions, place for points."""
    t = case.target
    if isinstance(t, k.TriangleAt):
        t = k.TriangleAt(*(place(v) for v in t))
    elif isinstance(t, k.SphereAt):
        t = k.SphereAt(place(t.centre), t.radius)
    else:
        t = k.CapsuleAt(place(t.p0), place(t.p1), t.radius)
    return k.sweep_many(k.CapsuleAt(place(case.p0), place(case.p1), case.radius), turn(case.motion), t)


@pytest.mark.parametrize("kind", ["triangle", "sphere", "capsule"])
@pytest.mark.parametrize("how", ["turned", "mirrored", "elsewhere", "ends swapped"])
def test_rigid_motion_and_mirroring_change_nothing(kind, how):
    case = cases(kind, 3, 6000)
    if how == "ends swapped":
        again = k.sweep_many(k.CapsuleAt(case.p1, case.p0, case.radius), case.motion, case.target)
    else:
        q, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))
        q = {"turned": q * np.sign(np.linalg.det(q)), "mirrored": -q * np.sign(np.linalg.det(q)),
             "elsewhere": np.eye(3)}[how]
        shift = (how == "elsewhere") * case.size[:, None] * [100.0, -30, 7]
        again = moved(case, lambda x: x @ q.T + shift, lambda x: x @ q.T)
        case.reach = case.reach + length(np.broadcast_to(shift, case.p0.shape))
    # Judged where the scene was: times may differ where the approach is shallow, contact may not.
    check_first_contact(case, again)
    steep = k.sweep_many(case.capsule, case.motion, case.target)
    same = steep.hit & again.hit & ~steep.overlapping & ~again.overlapping
    straight = np.where(same, abs((steep.normal * unit(case.motion)).sum(1)), 0) > 0.1
    assert straight.mean() > 0.1
    assert (abs(steep.distance - again.distance)[straight] < 20 * case.tolerance[straight]).all()


def test_order_and_winding_of_vertices_change_no_bit():
    case = cases("triangle", 5, 6000)
    a, b, c = case.target
    first = k.sweep_many(case.capsule, case.motion, case.target)
    for turned in ((b, c, a), (c, a, b)):
        for x, y in zip(first, k.sweep_many(case.capsule, case.motion, k.TriangleAt(*turned)), strict=True):
            assert np.array_equal(x, y, equal_nan=True)
    case.target = k.TriangleAt(a, c, b)
    check_first_contact(case, k.sweep_many(case.capsule, case.motion, case.target))


def test_scalar_and_batch_give_the_same_bits():
    for kind in KINDS:
        case = cases(kind, 6, 50)
        found = k.sweep_many(case.capsule, case.motion, case.target)
        for i in range(50):
            target = type(case.target)(*(v if f == "triangles" else v[i] for f, v in
                                         zip(case.target._fields, case.target, strict=True)))
            one = k.sweep(k.CapsuleAt(case.p0[i], case.p1[i], case.radius[i]), case.motion[i], target)
            assert (one is not None) == found.hit[i]
            if one is not None:
                assert one == (found.time[i], found.distance[i], tuple(found.normal[i]), tuple(found.point[i]),
                               found.overlapping[i])


# Quarters and eighths meet exactly, tenths nearly, tiny numbers spoil both.
NUMBERS = st.one_of(st.integers(-16, 16).map(lambda i: i / 4), st.sampled_from([0.1, -0.3, 1e-9, -1e-9, 1e-12, 0.7]),
                    st.floats(-4, 4, allow_subnormal=False))
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
RADII = st.one_of(st.sampled_from([0.25, 0.5, 1.0, 0.3]), st.floats(1e-3, 3))


CAPSULES = st.tuples(VECTORS, VECTORS, RADII, VECTORS)


def check_rows(rows, target_of, distance_of):
    """rows: (p0, p1, radius, motion, *what the target is made of) each."""
    columns = [np.array(column, float) for column in zip(*rows, strict=True)]
    made = columns[4:]
    size = np.maximum.reduce([abs(x).reshape(len(rows), -1).max(1) for x in made])
    case = Cases(*columns[:4], target_of(*made), distance_of(*made), size, size)
    check_first_contact(case, k.sweep_many(case.capsule, case.motion, case.target), steps=42)


def joined(*parts):
    """Lists of rows: a capsule in motion and the parts of a target."""
    return st.lists(st.tuples(CAPSULES, st.tuples(*parts)).map(lambda x: x[0] + x[1]), min_size=30, max_size=30)


def test_a_sliver_too_thin_for_the_rules():
    # Its cross product is 0.67e-12 of its longest edge squared.
    row = ((0.0, 1.25, 0.0), (0.0, 0.0, 0.0), 2.2, (0.0, 0.0, 0.0), (1e-12, 0.0, -0.3), (0.0, 0.0, 0.7862437634110018),
           (0.0, 0.0, 0.0))
    assert k.sweep(k.CapsuleAt(*row[:3]), row[3], k.TriangleAt(*row[4:])) is None
    check_rows([row], k.TriangleAt, lambda a, b, c: lambda x, y: oracle.segment_triangle(x, y, a.T, b.T, c.T))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(joined(VECTORS, VECTORS, VECTORS))
def test_any_triangle(rows):
    check_rows(rows, k.TriangleAt, lambda a, b, c: lambda x, y: oracle.segment_triangle(x, y, a.T, b.T, c.T))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(joined(VECTORS, VECTORS, RADII))
def test_any_capsule(rows):
    check_rows(rows, k.CapsuleAt, lambda a, b, r: lambda x, y: oracle.segment_segment(x, y, a.T, b.T) - r)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(joined(st.tuples(RADII, RADII, RADII)))
def test_any_box(rows):
    check_rows(rows, k.BoxAt, lambda half: lambda x, y: oracle.segment_box(x, y, half.T))


# Exact scenes.

def test_top_edge_of_a_thin_upright_triangle_is_hit():
    axis = np.array([0, 0, 0.340350509])
    centre = np.array([7.74110079, 27.2595482, 80.8543167])
    hit = k.sweep(k.CapsuleAt(centre - axis, centre + axis, 0.265350759),
                  np.array([-0.929564953, -0.367584974, -0.0281119142]) * 0.149537891,
                  k.TriangleAt((7.33294010, 26.9337997, 79.6109009), (7.61456013, 27.3008995, 80.2574005),
                               (7.33294010, 26.9337997, 80.2574005)))
    assert hit is not None and not hit.overlapping
    assert hit.distance == pytest.approx(0.0944, abs=5e-4)
    assert hit.point[2] == pytest.approx(80.2574005, abs=1e-9)


def test_capsule_lying_on_a_triangle_overlaps_at_the_start():
    hit = k.sweep(k.CapsuleAt((-1, 0, 0), (1, 0, 0), 0.3), (-1, 0, 0), k.TriangleAt((0, 0, 0), (1, 0, 0), (0, 1, 0)))
    assert hit is not None and hit.overlapping and hit.distance == 0 and hit.normal == (1, 0, 0)


FLOOR = k.TriangleAt((0, 0, 0), (4, 0, 0), (0, 4, 0))


@pytest.mark.parametrize("slope", [1e-3, 1e-5, 1e-6, 1e-7, 3e-8])
@pytest.mark.parametrize("beside", [0, 1e-12, 1e-9, 1e-6])
def test_sphere_sinking_shallowly_over_an_edge_does_not_slip_in(slope, beside):
    # It comes to the floor's height just before the edge.
    start = np.array([0.5, -0.5, 0.3 + slope * (0.5 - beside)])
    hit = k.sweep(k.CapsuleAt(start, start, 0.3), np.array([0, 1, -slope]) * 3, FLOOR)
    assert hit is not None
    depth = 0.3 - (start[2] - slope * 3 * hit.time)
    assert abs(3 * hit.time - 0.5) < 1e-3 and depth < 1e-9


@pytest.mark.parametrize("slope", [1e-3, 1e-5, 1e-6, 1e-7, 3e-8])
def test_sphere_sinking_shallowly_along_a_wire_does_not_slip_past_its_end(slope):
    wire = k.CapsuleAt((0, 0, 0), (4, 0, 0), 0)
    for beside in (0, 1e-12, 1e-9, 1e-6):
        start = np.array([-0.5, 0, 0.3 + slope * (0.5 - beside)])
        hit = k.sweep(k.CapsuleAt(start, start, 0.3), np.array([1, 0, -slope]) * 3, wire)
        assert hit is not None and abs(3 * hit.time - 0.5) < 1e-3


@pytest.mark.parametrize("target", [k.BoxAt((4, 4, 4), (0, 0, -4.0)), k.HullAt(CUBE * 4, (0, 0, -4.0)), FLOOR,
                                    k.PlaneAt((0, 0, 1), 0)])
@pytest.mark.parametrize("error", [0, 1e-16, -1e-16, 2e-16])
def test_what_rests_does_not_fall_through(target, error):
    hit = k.sweep(k.CapsuleAt((1, 1, 0.3 + error), (1, 1, 1.3), 0.3), (0.5, 0.25, -1), target)
    assert hit is not None and hit.time < 1e-12


def test_rolling_along_an_edge_is_no_hit():
    for x in np.linspace(-2, 6, 41):
        assert k.sweep(k.CapsuleAt((x, -0.3, 0), (x, -0.3, 1), 0.3), (1, 0, 0), FLOOR) is None
        assert k.sweep(k.CapsuleAt((x, 1, 0.3), (x, 1, 1.3), 0.3), (1, 0, 0), FLOOR) is None


def test_contacts_a_billionth_of_a_metre_wide_have_unit_normals():
    tiny = 1e-10
    for target in (k.SphereAt((0, 0, 0), tiny), k.CapsuleAt((0, 0, 0), (tiny, 0, 0), tiny),
                   k.BoxAt((tiny, tiny, tiny))):
        hit = k.sweep(k.CapsuleAt((0, 0, 5 * tiny), (0, 0, 9 * tiny), tiny), (0, 0, -9 * tiny), target)
        assert hit is not None and hit.normal == pytest.approx((0, 0, 1))


@pytest.mark.parametrize("aspect", [1e-3, 1e-6, 1e-9, 1e-11])
def test_slivers_keep_their_plane(aspect):
    rng = np.random.default_rng(9)
    for _ in range(50):
        u, v = unit(rng.normal(size=(2, 3)))
        v = unit(v - u * (u @ v))
        n = np.cross(u, v)
        triangle = k.TriangleAt(-u, u, u * rng.uniform(-1, 1) + v * aspect)
        hit = k.sweep(k.CapsuleAt(n + u, n - u, 0.5), -n, triangle)
        assert hit is not None and hit.distance == pytest.approx(0.5, abs=1e-12)
        assert hit.normal @ n == pytest.approx(1, abs=1e-9)


# Slivers a few 1e-9 as wide as long, almost but not quite edge-on: p0, p1, radius, motion, corners.
NEARLY_EDGE_ON = [
    ((0.010070484786738403, -0.03810742235533326, 0.024090759957191142),
     (0.010725720299686641, -0.037712193827594304, 0.023984797214822603), 0.03671863350694008,
     (-0.00035430352045891694, 0.004208386435413264, 0.00697462670529363),
     (-0.009947759329729442, -0.00797723697511185, 0.0140106145705319),
     (0.012222336969258308, 0.005395442537715521, 0.01042533239947691),
     (0.011245652694675224, 0.004806320845085698, 0.01058327896135064)),
    ((-1.2474308149890167e-06, -9.523346159762067e-07, 1.5843752864366673e-07),
     (-1.2317650103826388e-06, -9.342762711729514e-07, 1.4867138586191795e-07), 2.824523288849042e-07,
     (2.0125343810283602e-06, 2.3198961492357817e-06, -1.254624234895639e-06),
     (-1.8621351762643782e-07, 4.123064400106935e-07, -9.527162408237576e-07),
     (-8.640868973700944e-07, 3.4385366171659026e-08, 6.80343472386925e-08),
     (-1.823329227860503e-07, 4.1446991255947117e-07, -9.585596871036826e-07)),
    ((-0.06667125059009113, -0.941096464798409, -0.09124861724642146),
     (-0.05075914507948481, -0.9196946765868825, -0.07647077456497345), 1.3472217945306548,
     (-0.3931695120758817, -0.2762841543063614, -0.1599037537579751),
     (-1.2673832621167633, -1.4613409636864754, -2.066786603678444),
     (1.1962459455982064, 1.8522412960654944, 0.22122769039249623),
     (-0.7239074310844082, -0.7303656986722891, -1.5620513211380822)),
]


def test_slivers_that_are_nearly_edge_on_are_met():
    check_rows(NEARLY_EDGE_ON, k.TriangleAt, lambda a, b, c: lambda x, y: oracle.segment_triangle(x, y, a.T, b.T, c.T))
    for p0, p1, radius, motion, *corners in NEARLY_EDGE_ON:
        assert k.sweep(k.CapsuleAt(p0, p1, radius), motion, k.TriangleAt(*corners)) is not None


# RULES 2 and 3.

def test_culling_drops_triangles_that_look_along_the_motion_and_no_others():
    case = cases("triangle", 7, 20_000)
    a, b, c = (np.asarray(v, LONG) for v in case.target)
    n = np.cross(b - a, c - a)
    along = (unit(n) * unit(case.motion)).sum(1)
    unsure = 1.01e-9
    axis = case.p1 - case.p0
    parallel = length(np.cross(axis, case.motion)) <= 1.01e-9 * length(axis) * length(case.motion)
    free = k.sweep_many(case.capsule, case.motion, case.target)
    culled = k.sweep_many(case.capsule, case.motion, case.target, cull=True)
    back = along > unsure
    assert not culled.hit[back].any() and free.hit[back].any()
    front = (along < -unsure) & ~parallel
    for x, y in zip(free, culled, strict=True):
        assert np.array_equal(x[front], y[front], equal_nan=True)


def test_triangle_behind_the_leading_sphere_is_ignored_only_by_more_than_the_slack():
    capsule = k.CapsuleAt((0.3, 1, 0), (0.3, 1, 2), 0.5)
    for height, seen in ((1.4981, True), (1.4979, False)):
        wall = k.TriangleAt((0, 0, height), (0, 2, height), (0, 1, -4))
        assert k.overlap(capsule, wall)
        assert (k.sweep(capsule, (0, 0, 1), wall, cull=True) is not None) is seen
        assert k.sweep(capsule, (0, 0, 1), wall) is not None
        # Not parallel: seen.
        assert k.sweep(capsule, (0.1, 0, 1), wall, cull=True) is not None


def test_triangle_parallel_to_the_motion_is_kept_but_not_run_into_edge_on():
    wall = k.TriangleAt((0, 0, 0), (0, 2, 0), (0, 1, -3))
    for cull in (True, False):
        # A vertical capsule falls on the top edge: axis and motion lie in the plane.
        assert k.sweep(k.CapsuleAt((0, 1, 1), (0, 1, 2), 0.3), (0, 0, -3), wall, cull=cull) is None
        # It overlaps at the start: seen.
        hit = k.sweep(k.CapsuleAt((0.1, 1, 0.1), (0.1, 1, 2), 0.3), (0, 0, -3), wall, cull=cull)
        assert hit is not None and hit.overlapping
        # A leaning one meets it.
        assert k.sweep(k.CapsuleAt((0, 1, 1), (0.1, 1, 2), 0.3), (0, 0, -3), wall, cull=cull) is not None


def test_degenerate_triangles_are_never_touched():
    for triangle in (((0, 0, 0), (1, 0, 0), (2, 0, 0)), ((0, 0, 0), (0, 0, 0), (1, 0, 0)), ((0, 0, 0),) * 3,
                     ((0, 0, 0), (1, 0, 0), (0.5, 5e-13, 0))):
        target = k.TriangleAt(*triangle)
        capsule = k.CapsuleAt((0.5, 0, 2), (0.5, 0, 3), 0.5)
        assert k.sweep(capsule, (0, 0, -4), target) is None
        assert k.sweep(capsule, (0, 0, -4), target, cull=True) is None
        inside = k.CapsuleAt((0.5, 0, 0), (0.5, 0, 3), 0.5)
        assert k.sweep(inside, (0, 0, -4), target) is None
        assert not k.overlap(inside, target) and k.penetration(inside, target) is None


def test_plane_is_a_half_space():
    floor = k.PlaneAt((0, 0, 1), 1)
    hit = k.sweep(k.CapsuleAt((0, 0, 5), (1, 0, 4), 0.5), (0, 0, -10), floor)
    assert hit == (0.25, 2.5, (0, 0, 1), (1, 0, 1), False)
    assert k.sweep(k.CapsuleAt((0, 0, -5), (1, 0, -4), 0.5), (0, 0, -10), floor).overlapping
    assert k.sweep(k.CapsuleAt((0, 0, -5), (1, 0, -4), 0.5), (0, 0, 10), floor, cull=True) is None


def test_no_motion_finds_only_an_overlap():
    near, inside = (0, 0, 2.0), (0, 0, 1.0)
    for target in (k.SphereAt((0, 0, 0), 1), k.BoxAt((1, 1, 1)), k.PlaneAt((0, 0, 1), 1), k.HullAt(CUBE),
                   k.TriangleAt((-1, -1, 1), (1, -1, 1), (0, 1, 1)), k.CapsuleAt((0, 0, 0), (0, 0, -1), 1)):
        assert k.sweep(k.CapsuleAt(near, near, 1), (0, 0, 0), target) is None
        hit = k.sweep(k.CapsuleAt(inside, inside, 1), (0, 0, 0), target)
        assert hit is not None and hit.overlapping and hit.time == 0 and np.isfinite(hit.point).all()


# What is no question.

CAPSULE = k.CapsuleAt((0, 0, 0), (0, 0, 1), 0.5)


@pytest.mark.parametrize(("error", "name", "capsule", "motion", "target"), [
    (TypeError, "capsule", ((0, 0, 0), (0, 0, 1), 0.5), (1, 0, 0), FLOOR),
    (TypeError, "target", CAPSULE, (1, 0, 0), ((0, 0, 0), (1, 0, 0), (0, 1, 0))),
    (ValueError, "capsule.radius", CAPSULE._replace(radius=0), (1, 0, 0), FLOOR),
    (ValueError, "capsule.radius", CAPSULE._replace(radius=[0.5]), (1, 0, 0), FLOOR),
    (ValueError, "capsule.p0", CAPSULE._replace(p0=(0, np.nan, 0)), (1, 0, 0), FLOOR),
    (ValueError, "capsule.p1", CAPSULE._replace(p1=(0, 0)), (1, 0, 0), FLOOR),
    (ValueError, "motion", CAPSULE, (np.inf, 0, 0), FLOOR),
    (ValueError, "motion", CAPSULE, [(1, 0, 0)], FLOOR),
    (TypeError, "motion", CAPSULE, ("1", "0", "0"), FLOOR),
    (TypeError, "motion", CAPSULE, None, FLOOR),
    (TypeError, "motion", CAPSULE, (1j, 0, 0), FLOOR),
    (ValueError, "motion", CAPSULE, ((1, 0), 0, 0), FLOOR),
    (ValueError, "target.a", CAPSULE, (1, 0, 0), FLOOR._replace(a=(0, 0, 0, 0))),
    (ValueError, "target.radius", CAPSULE, (1, 0, 0), k.SphereAt((0, 0, 0), -1)),
    (ValueError, "target.half_extents", CAPSULE, (1, 0, 0), k.BoxAt((1, 0, 1))),
    (ValueError, "target.rotation", CAPSULE, (1, 0, 0), k.BoxAt((1, 1, 1), rotation=(0, 0, 0, 2))),
    (ValueError, "target.rotation", CAPSULE, (1, 0, 0), k.BoxAt((1, 1, 1), rotation=(0, 0, 0, 0))),
    (ValueError, "target.normal", CAPSULE, (1, 0, 0), k.PlaneAt((0, 0, 0), 1)),
    (ValueError, "target.triangles", CAPSULE, (1, 0, 0), k.HullAt(CUBE[:3])),
    (ValueError, "target.triangles", CAPSULE, (1, 0, 0), k.HullAt(np.zeros((4, 3)))),
])
def test_bad_arguments_are_named(error, name, capsule, motion, target):
    with pytest.raises(error, match=f"^{name}: "):
        k.sweep(capsule, motion, target)


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match=r"^motion: has 3 rows"):
        k.sweep_many(CAPSULE._replace(p0=np.zeros((2, 3))), np.ones((3, 3)), FLOOR)
    with pytest.raises(ValueError, match=r"^target\.b: expected \(3,\) or \(n, 3\)"):
        k.sweep_many(CAPSULE, (1, 0, 0), FLOOR._replace(b=np.zeros((2, 2, 3))))
    with pytest.raises(ValueError, match=r"^capsule\.radius: must be above 0"):
        k.sweep_many(CAPSULE._replace(radius=[0.5, -1]), (1, 0, 0), FLOOR)
    with pytest.raises(ValueError, match=r"^motion: must be finite"):
        k.sweep_many(CAPSULE, [(1, 0, 0), (np.nan, 0, 0)], FLOOR)


def test_batches_take_any_layout_and_repeat_what_is_given_once():
    motion = np.array([[0, 0, -2.0], [0, 0, -3], [1, 0, 0]])
    capsule = k.CapsuleAt((1, 1, 1.5), (1, 1, 2.5), 0.5)
    plain = k.sweep_many(capsule, motion, FLOOR)
    assert plain.hit.tolist() == [True, True, False]
    assert plain.time.tolist()[:2] == [0.5, 1 / 3] and np.isnan(plain.time[2])
    for other in (motion.astype(np.float32), np.asfortranarray(motion), np.repeat(motion, 2, 0)[::2],
                  motion.astype(int)):
        for x, y in zip(plain, k.sweep_many(capsule, other, FLOOR), strict=True):
            assert np.array_equal(x, y, equal_nan=True)
    none = k.sweep_many(capsule, np.zeros((0, 3)), FLOOR)
    assert none.hit.shape == (0,) and none.normal.shape == (0, 3)
