"""The pitfalls of MOVE 15 and SWEEP B: each test fails where the mistake is made.

Each check runs on the compiled core and on the reference, and must pass on both. A second reference
then contains the mistake of the document's 'wrong' column, and the same check must fail.
"""

import math
from itertools import pairwise
from pathlib import Path

import pytest
import small_worlds as places
from reference_mutants import wrong

import pycct
from pycct import reference

DT, RADIUS, HEIGHT, OFFSET, REST = places.DT, places.RADIUS, places.HEIGHT, places.OFFSET, places.REST
HALF = places.HALF
MODULES = [pycct] if pycct.Scene is reference.Scene else [pycct, reference]


class Api:
    """Scenes and characters of one of the two implementations."""

    def __init__(self, module):
        self.module = module

    def scene(self, *shapes):
        scene = self.module.Scene()
        for kind, *rest in shapes:
            more = rest.pop() if isinstance(rest[-1], dict) else {}
            scene.add(getattr(self.module, kind)(*rest), **more)
        return scene

    def hero(self, scene, x=0.0, y=0.0, z=REST, **more):
        more = {"radius": RADIUS, "height": HEIGHT, "contact_offset": OFFSET, "slope_limit": places.LIMIT, **more}
        return self.module.CharacterController(scene, (x, y, z), **more)


def both_right_and_wrong_noticed(monkeypatch, check, module, *changes):
    for m in MODULES:
        check(Api(m))
    wrong(monkeypatch, module, *changes)
    with pytest.raises(AssertionError):
        check(Api(reference))


FLOOR = ("Plane", (0, 0, 1))


def corners(a, b, c, d):
    return ("Mesh", [a, b, c, d], [(0, 1, 2), (0, 2, 3)])


def slope(degrees, x0=0.0, x1=20.0, width=20.0):
    t = math.tan(math.radians(degrees))
    return corners((x0, -width, 0), (x1, -width, (x1 - x0) * t), (x1, width, (x1 - x0) * t), (x0, width, 0))


# --- MOVE 15.1, SWEEP B.2: the search is longer than the motion by the contact offset


def test_the_sweep_includes_the_contact_offset(monkeypatch):
    def check(api):
        # Half of the last step ends within the contact offset: the sweep finds the wall there.
        hero = api.hero(api.scene(("Box", (1, 5, 5), {"position": (2, 0, 0)})), step_offset=0)
        gap = 1 - RADIUS - OFFSET
        flags = hero.move((gap + 0.5 * OFFSET, 0, 0), DT)
        assert flags & 1 and hero.position[0] == pytest.approx(gap, abs=1e-9)

    both_right_and_wrong_noticed(
        monkeypatch, check, "move", ("direction, left + p.contact_offset, True", "direction, left, True")
    )


# --- SWEEP B.1: a motion stops at the contact offset


def test_the_contact_offset_is_kept(monkeypatch):
    def check(api):
        hero = api.hero(api.scene(FLOOR), z=REST + 1)
        for _ in range(3):
            hero.move((0.1, 0, -0.9), DT)
        assert hero.position == pytest.approx((0.3, 0, REST), abs=1e-9)

    both_right_and_wrong_noticed(
        monkeypatch, check, "move", ("advance = hit.base.distance - p.contact_offset", "advance = hit.base.distance")
    )


def test_nearer_than_the_contact_offset_it_never_goes_backwards(monkeypatch):
    # MOVE 15.1: max(0, distance - offset).
    def check(api):
        hero = api.hero(api.scene(FLOOR), z=REST - 0.5 * OFFSET)
        hero.move((0, 0, -0.1), DT)
        assert hero.position[2] == REST - 0.5 * OFFSET

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "move",
        ("if advance > 0.0:\n                position", "if hit.base.distance > 0.0:\n                position"),
    )


# --- SWEEP B.3: a changed direction is normalised again


def test_the_direction_of_a_sweep_is_a_unit_vector(monkeypatch):
    def check(api):
        # With another length than 1, the distance would be a share instead of metres.
        hero = api.hero(api.scene(("Box", (1, 5, 5), {"position": (6, 0, 0)})), step_offset=0)
        hero.move((20, 0.5, 0), DT)
        (first, *_) = hero.hits
        assert math.dist(first.direction, (0, 0, 0)) == pytest.approx(1, abs=1e-12)
        assert hero.position[0] == pytest.approx(5 - RADIUS - OFFSET, abs=1e-3)

    both_right_and_wrong_noticed(
        monkeypatch, check, "move", ("direction = scale(remaining, 1.0 / left)", "direction = scale(remaining, 1.0)")
    )


# --- SWEEP B.4: the depth is in metres of the world, for any scale


@pytest.mark.parametrize("k", [0.25, 4.0])
def test_depth_is_scaled_to_the_world(monkeypatch, k):
    def check(api):
        for kind, args in (("Box", ((3 / k, 3 / k, 3 / k),)), ("Sphere", (3 / k,))):
            scene = api.scene((kind, *args, {"position": (0, 0, -3), "scale": (k, k, k)}))
            hero = api.hero(scene, z=REST - 0.3)
            hero.move((0, 0, -0.05), DT)
            assert hero.stats.recoveries == 1
            assert hero.position[2] == pytest.approx(REST, abs=1e-9)

    # The depth as it would be in the shape's own frame.
    right = "def group_push(g, p0, p1, radius):\n"
    local = (
        "def group_push(g, p0, p1, radius):\n"
        "    push = _world_push(g, p0, p1, radius)\n"
        "    return push._replace(depth=push.depth / g.item.scale[0])\n\n\n"
        "def _world_push(g, p0, p1, radius):\n"
    )
    both_right_and_wrong_noticed(monkeypatch, check, "candidates", (right, local))


# --- SWEEP B.5: the motion culls faces, not the world's up


def test_faces_are_culled_by_the_motion(monkeypatch):
    def check(api):
        # A ceiling faces down: a test against the world's up would cull it.
        ceiling = corners((-5, 5, 3), (5, 5, 3), (5, -5, 3), (-5, -5, 3))
        hero = api.hero(api.scene(ceiling), z=1)
        assert hero.move((0, 0, 5), DT) == 2
        assert hero.position[2] == pytest.approx(3 - REST, abs=1e-9)
        # A ceiling does not stop a character that leaves through its back.
        hero = api.hero(api.scene(ceiling), z=5)
        assert hero.move((0, 0, -5), DT) == 0

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "sweep",
        ("        if nd > 0.0:\n            # RULES 2: two", "        if t.n[2] < 0.0:\n            # RULES 2: two"),
    )


# --- MOVE 15.2, SWEEP B.6: ten iterations


def vault(radius=3.0, degrees=8, first=100, last=-10):
    """The inside of a round wall, of flat facets."""
    points = [
        (radius * math.cos(math.radians(a)), radius * math.sin(math.radians(a)))
        for a in range(first, last - 1, -degrees)
    ]
    return [corners((*p, -3), (*q, -3), (*q, 3), (*p, 3)) for p, q in pairwise(points)]


def test_ten_iterations(monkeypatch):
    def check(api):
        # Each facet turns the motion by 8 degrees: it ends at the middle unless the iterations run
        # out.
        hero = api.hero(api.scene(*vault()), x=1.6, step_offset=0)
        assert hero.move((0, 9.0, 0), DT) == 1
        assert 4 < len(hero.hits) < 10
        assert abs(hero.position[0]) < 0.1

    both_right_and_wrong_noticed(monkeypatch, check, "move", ("MAX_ITERATIONS = 10", "MAX_ITERATIONS = 4"))


def test_at_most_ten_iterations(monkeypatch):
    def check(api):
        # With finer facets, the tenth collision is the last.
        hero = api.hero(api.scene(*vault(degrees=2)), x=1.2, step_offset=0)
        assert hero.move((0, 9.0, 0), DT) == 1
        assert len(hero.hits) == 10 and hero.stats.iterations == 10

    both_right_and_wrong_noticed(monkeypatch, check, "move", ("MAX_ITERATIONS = 10", "MAX_ITERATIONS = 100"))


# --- MOVE 15.3, SWEEP B.7: the sensor comes after the SIDE pass


PASSES_START = "        if not r.experiment:\n            self.up_pass(r)\n"
SENSOR = "        self.sensor(r)\n"


def sensor_first():
    """Return the source of the passes, and the same with the sensor before the UP pass."""
    text = (Path(reference.__file__).parent / "move.py").read_text()
    passes = text[text.index(PASSES_START) : text.index(SENSOR)]
    return (passes + SENSOR, SENSOR + passes)


def test_the_sensor_comes_after_the_side_pass(monkeypatch):
    def check(api):
        # A step is a little higher than the step offset, and small moves approach it. The SIDE pass
        # moves over its edge, so only the sensor meets its face. Constrained climbing does not
        # climb it.
        scene = api.scene(FLOOR, ("Box", (2, 5, 0.2), {"position": (3, 0, 0.2)}))
        hero = api.hero(scene, x=0.3, climbing_mode="constrained", step_offset=0.3)
        for _ in range(60):
            hero.move((0.02, 0, -0.02), DT)
        assert hero.position[2] == pytest.approx(REST, abs=1e-6)

    both_right_and_wrong_noticed(monkeypatch, check, "move", sensor_first())


# --- MOVE 15.4, SWEEP B.8: the height of the contact counts


HIGHER = "and self.s.contact_height > r.bottom + r.step_offset"
HEIGHT_COUNTS = f"            and Rules.SIDE_CHECK_AT_ONCE not in p.rules\n            {HIGHER}\n"


def test_a_steep_face_met_higher_than_the_step_is_not_walkable(monkeypatch):
    def check(api):
        scene = api.scene(FLOOR, ("Box", (2, 5, 0.2), {"position": (3, 0, 0.2)}))
        hero = api.hero(scene, 0.3, climbing_mode="constrained", step_offset=0.3)
        for _ in range(60):
            hero.move((0.02, 0, -0.02), DT)
        assert hero.position[2] == pytest.approx(REST, abs=1e-6)

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "move",
        (HEIGHT_COUNTS, HEIGHT_COUNTS.replace(HIGHER, "and False")),
    )


def test_a_steep_face_is_no_hindrance_where_the_ground_is_low(monkeypatch):
    def check(api):
        # A character touches a wall on the way up a step: the wall is too steep, but its bottom is
        # low.
        scene = api.scene(
            FLOOR,
            ("Box", (9, 1, 9), {"position": (0, 1 + RADIUS + OFFSET, 0)}),
            ("Box", (2, 5, 0.1), {"position": (3, 0, 0.1)}),
        )
        hero = api.hero(scene, climbing_mode="constrained", step_offset=0.3)
        for _ in range(60):
            assert hero.move((0.03, 0.03, -0.02), DT) & 1
        assert hero.position[0] == pytest.approx(1.8, abs=1e-6)
        assert hero.position[2] == pytest.approx(REST + 0.2, abs=1e-6)

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "move",
        (HEIGHT_COUNTS, HEIGHT_COUNTS.replace(HIGHER, "")),
    )


# --- MOVE 15.5, SWEEP B.9: iterations of the DOWN pass


def slid(api, degrees=60, fall=0.2, mode="force_sliding", **more):
    """How far along x one move takes a character that slides down a slope by its weight."""
    t = math.tan(math.radians(degrees))
    hero = api.hero(api.scene(slope(degrees, -20, 20)), z=20 * t + 2, non_walkable_mode=mode, **more)
    for _ in range(12):
        before = hero.position
        hero.move((0, 0, -fall), DT)
    assert hero.state.sliding
    return before[0] - hero.position[0]


# With 'force_sliding', the DOWN pass slides the component along the slope. The recovery sweep,
# whose response gives unit vectors, slides the whole fall once more (RULES 6).
SLID = (math.sin(math.radians(60)) + 1) * 0.2 * math.cos(math.radians(60))


def test_iterations_of_the_down_pass(monkeypatch):
    def check(api):
        assert slid(api) == pytest.approx(SLID, abs=1e-9)
        assert slid(api, mode="prevent_climbing") == pytest.approx(0, abs=1e-12)

    both_right_and_wrong_noticed(
        monkeypatch, check, "move", ("iterations = MAX_ITERATIONS if experiment and forced else 1", "iterations = 1")
    )


def test_the_way_down_just_finds_the_ground(monkeypatch):
    def check(api):
        # On a walkable slope the DOWN pass does not slide: one iteration.
        hero = api.hero(api.scene(slope(30, -20, 20)), z=20 * math.tan(math.radians(30)) + REST + 0.2)
        for _ in range(20):
            hero.move((0, 0, -0.1), DT)
        assert hero.position[0] == 0.0

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "move",
        ("iterations = MAX_ITERATIONS if experiment and forced else 1", "iterations = MAX_ITERATIONS"),
    )


# --- MOVE 15.6: normalised response in the walk experiment (`document`), in the recovery sweep
# (RULES 9 row 6)


def test_the_recovery_sweep_responds_with_unit_vectors(monkeypatch):
    def check(api):
        assert slid(api) == pytest.approx(SLID, abs=1e-9)

    both_right_and_wrong_noticed(
        monkeypatch, check, "move", ("        self.set(normalize_response=True)\n", "        pass\n")
    )


def test_in_document_the_whole_experiment_responds_with_unit_vectors(monkeypatch):
    def check(api):
        letter = api.module.Rules.NORMALIZE_EXPERIMENT
        t = math.tan(math.radians(60))
        hero = api.hero(api.scene(slope(60, -20, 20)), z=20 * t + 2, non_walkable_mode="force_sliding", rules=letter)
        for _ in range(12):
            before = hero.position
            hero.move((0, 0, -0.2), DT)
        assert before[0] - hero.position[0] == pytest.approx(2 * 0.2 * math.cos(math.radians(60)), abs=1e-9)

    both_right_and_wrong_noticed(
        monkeypatch,
        check,
        "move",
        ("normalize = experiment and Rules.NORMALIZE_EXPERIMENT in p.rules", "normalize = False"),
    )


# --- MOVE 15.7: the temporal box contains start and end, with the radius and offset on each axis


@pytest.mark.parametrize("toward", [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1)])
def test_the_temporal_box_contains_start_and_end(monkeypatch, toward):
    def check(api):
        for far in (3.0, 40.0):
            place = [far * c for c in toward]
            scene = api.scene(("Box", (1, 1, 1), {"position": place}))
            hero = api.hero(scene, z=0, step_offset=0)
            hero.move([2 * c for c in place], DT)
            half = HALF if toward[2] else RADIUS
            assert hero.flags
            assert math.dist(hero.position, (0, 0, 0)) == pytest.approx(far - 1 - half - OFFSET, abs=1e-6)

    right = "box = (sub(vmin(centre, end), half), add(vmax(centre, end), half))"
    # The document's wrong column combines the start's low end with the end's high end, or omits the
    # end.
    low_to_high = "box = (sub(centre, half), add(end, half))"
    start_only = "box = (sub(centre, half), add(centre, half))"
    with monkeypatch.context() as first:
        both_right_and_wrong_noticed(first, check, "move", (right, start_only))
    if min(toward) < 0:
        both_right_and_wrong_noticed(monkeypatch, check, "move", (right, low_to_high))


def test_the_temporal_box_contains_radius_offset_and_height(monkeypatch):
    def check(api):
        # Beams beside the motion, which touch only the sides of the capsule.
        for beam, d in (((0, RADIUS + 0.199, 0), (0.2, 0, 0)), ((0, 0, HALF + 0.199), (0.2, 0, 0))):
            scene = api.scene(("Box", (0.2, 0.2, 0.2), {"position": (0.6 + RADIUS, beam[1], beam[2])}))
            hero = api.hero(scene, z=0, step_offset=0)
            for _ in range(4):
                hero.move(d, DT)
            assert hero.hits

    right = "half = tuple(k + abs(u) * 0.5 * p.height for u in p.up)"
    both_right_and_wrong_noticed(monkeypatch, check, "move", (right, "half = tuple(0.0 for u in p.up)"))
