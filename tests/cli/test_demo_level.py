"""The demo level has closed solids, floors without holes, and passages of the named sizes."""
import math

import numpy as np
import pytest

from pycct.cli.demo.level import RISER, STEPS, TREAD, WALL_HEIGHT, build_level

STEP_OFFSET, SLOPE_LIMIT = 0.4, math.sqrt(0.5)
RADIUS, TOTAL_HEIGHT = 0.35, 1.8


@pytest.fixture(scope="module")
def level():
    return build_level()


@pytest.fixture(scope="module")
def raster(level):
    return level.raster(0.1)


def solids(level):
    for solid in np.unique(level.solid):
        yield level.triangles[level.solid == solid]


def test_same_numbers_every_time(level):
    again = build_level()
    assert np.array_equal(level.vertices, again.vertices)
    assert np.array_equal(level.triangles, again.triangles)


def test_coordinates_are_multiples_of_a_thousand_and_twenty_fourth(level):
    scaled = level.vertices * 1024
    assert np.array_equal(scaled, np.round(scaled))


def test_indices_are_in_range_and_every_vertex_is_used(level):
    assert np.array_equal(np.unique(level.triangles), np.arange(len(level.vertices)))


def test_no_degenerate_triangle(level):
    a, b, c = (level.vertices[level.triangles[:, k]] for k in range(3))
    doubled_area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    longest = np.max([np.linalg.norm(edge, axis=1) for edge in (b - a, c - b, a - c)], axis=0)
    assert np.all(doubled_area > 1e-3 * longest**2)


def test_every_solid_is_closed(level):
    for triangles in solids(level):
        edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        assert len(np.unique(edges, axis=0)) == len(edges), "an edge is used twice in one direction"
        assert {tuple(e) for e in edges} == {tuple(e) for e in edges[:, ::-1]}, "an edge has no partner"


def test_every_solid_is_wound_outwards(level):
    for triangles in solids(level):
        a, b, c = (level.vertices[triangles[:, k]] for k in range(3))
        centre = level.vertices[np.unique(triangles)].mean(axis=0)
        volume = np.einsum("ij,ij->i", a - centre, np.cross(b - centre, c - centre)).sum() / 6
        assert volume > 1e-3


def test_floors_have_no_hole(level, raster):
    x, y, z, upright = raster
    assert len(x) * 0.1 == pytest.approx(45) and len(y) * 0.1 == pytest.approx(31)
    assert not np.isnan(z).any()
    assert z.min() > -2 and z.max() < WALL_HEIGHT + 1.5
    assert np.all(upright > 0)


def test_terrain_meets_the_plaza_without_a_step(level):
    terrain = level.corners("terrain").reshape(-1, 3)
    low, high = terrain.min(axis=0), terrain.max(axis=0)
    border = (terrain[:, 2] > low[2]) & (
        np.any(terrain[:, :2] == low[:2], axis=1) | np.any(terrain[:, :2] == high[:2], axis=1)
    )
    assert border.sum() > 100
    assert np.all(terrain[border, 2] == 0)


def test_walls_go_all_round(raster):
    _, _, z, _ = raster
    for edge in (z[0], z[-1], z[:, 0], z[:, -1]):
        assert np.all(edge == WALL_HEIGHT)


def test_terrain_has_ground_to_walk_and_ground_too_steep(level):
    upright = level.normals()[(level.part == level.part_names.index("terrain")) & (level.normals()[:, 2] > 0.01), 2]
    steep = np.mean(upright < SLOPE_LIMIT)
    assert 0.01 < steep < 0.3


@pytest.mark.parametrize("degrees", [30, 40, 50, 60])
def test_ramps_have_the_slope_they_are_named_after(level, degrees):
    upright = level.normals()[level.part == level.part_names.index(f"ramp {degrees}"), 2]
    slope = np.degrees(np.arccos(upright[(upright > 0.01) & (upright < 0.99)]))
    assert len(slope) == 2
    assert slope == pytest.approx(degrees, abs=0.05)


def test_ramps_end_flush_with_the_deck(level):
    deck = level.corners("deck").reshape(-1, 3)
    for degrees in (30, 40, 50, 60):
        ramp = level.corners(f"ramp {degrees}").reshape(-1, 3)
        top = ramp[ramp[:, 2] == ramp[:, 2].max()]
        assert np.all(top[:, 2] == deck[:, 2].max())
        assert np.all(top[:, 1] == deck[:, 1].min())


def test_stairs_climb_evenly_to_the_balcony(level, raster):
    x, y, z, _ = raster
    stairs = next(f for f in level.features if f.name == "stairs")
    middle = (stairs.low[1] + stairs.high[1]) / 2
    xs = stairs.low[0] + TREAD * (np.arange(STEPS) + 0.5)
    heights = z[np.searchsorted(y, middle), np.searchsorted(x, xs) - 1]
    assert heights == pytest.approx(RISER * np.arange(1, STEPS + 1))
    assert RISER < STEP_OFFSET
    balcony = next(f for f in level.features if f.name == "balcony")
    assert balcony.low[0] == stairs.high[0]


def test_kerbs_are_lower_and_higher_than_a_step(level):
    kerbs = np.unique(level.corners("kerbs").reshape(-1, 3)[:, 2])
    assert np.sum((kerbs > 0) & (kerbs < STEP_OFFSET)) == 2
    assert np.sum(kerbs > STEP_OFFSET) == 1


def test_ledges_are_higher_than_a_step(level):
    heights = np.unique(level.corners("ledges").reshape(-1, 3)[:, 2])
    assert np.all(np.diff([*heights, RISER * STEPS]) > STEP_OFFSET)


def overlapping(level, low, high):
    """Solids whose box meets the open box from low to high; every solid near a passage is a box."""
    found = set()
    for solid in np.unique(level.solid):
        corners = level.vertices[level.triangles[level.solid == solid]].reshape(-1, 3)
        if np.all(corners.min(axis=0) < high) and np.all(corners.max(axis=0) > low):
            found.add(solid)
    return found


def test_there_are_passages_that_fit_and_that_do_not(level):
    size = {p.name: np.subtract(p.high, p.low) for p in level.passages}
    assert size["tunnel 2 m"][2] == 2.0 > TOTAL_HEIGHT
    assert size["tunnel 2 m"][1] > 2 * RADIUS
    assert size["too low 1.5 m"][2] == 1.5 < TOTAL_HEIGHT
    assert size["gap 1 m"][1] == 1.0 > 2 * RADIUS
    assert size["gap 0.5 m"][1] == 0.5 < 2 * RADIUS


def test_passages_are_empty_and_exactly_as_wide_and_high_as_named(level):
    assert len(level.passages) == 4
    for passage in level.passages:
        low, high = np.array(passage.low), np.array(passage.high)
        assert not overlapping(level, low, high), passage.name
        across = 1 - passage.along
        for axis, side in ((across, 0), (across, 1), (2, 0), *([(2, 1)] if passage.roofed else [])):
            wider_low, wider_high = low.copy(), high.copy()
            (wider_low if side == 0 else wider_high)[axis] += (-1e-3, 1e-3)[side]
            assert overlapping(level, wider_low, wider_high), (passage.name, axis, side)


def test_roofs_and_side_walls_run_the_whole_length(level):
    for passage in level.passages:
        for share in (0.001, 0.25, 0.5, 0.75, 0.999):
            low, high = np.array(passage.low), np.array(passage.high)
            at = low[0] + share * (high[0] - low[0])
            low[0], high[0] = at - 1e-4, at + 1e-4
            low[1] -= 1e-3
            high[1] += 1e-3
            assert len(overlapping(level, low, high)) >= 2, passage.name


def test_features_lie_inside_the_walls_and_cover_their_parts(level):
    names = [f.name for f in level.features]
    assert len(set(names)) == len(names)
    for feature in level.features:
        assert -22 <= feature.low[0] < feature.high[0] <= 22
        assert -15 <= feature.low[1] < feature.high[1] <= 15
    for part in ("stairs", "balcony", "ledges", "kerbs", "pillars", "deck", "terrain"):
        feature = next(f for f in level.features if f.name == part)
        assert feature.contains(level.corners(part)).all(), part


def test_raster_sees_through_what_is_left_out(level):
    x, y, z, _ = level.raster(0.25, leave_out=("roof",))
    tunnel = next(p for p in level.passages if p.roofed)
    i, j = np.searchsorted(x, tunnel.low[0] + 1), np.searchsorted(y, (tunnel.low[1] + tunnel.high[1]) / 2)
    assert z[j, i] == 0
    assert level.raster(0.25)[2][j, i] == 2.5


def test_wavefront_text_gives_the_triangles_back(level):
    vertices, faces = [], []
    for line in level.wavefront().splitlines():
        kind, *rest = line.split()
        if kind == "v":
            vertices.append([float(word) for word in rest])
        elif kind == "f":
            faces.append([int(word) - 1 for word in rest])
    # Ten digits hold a multiple of 1/1024 below 100 exactly enough to find it again.
    assert np.array_equal(np.round(np.array(vertices) * 1024) / 1024, level.vertices)
    assert sorted(map(tuple, faces)) == sorted(map(tuple, level.triangles.tolist()))
