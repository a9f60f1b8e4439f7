"""Ways out of meshes and hulls by RULES_2 3 and 4, in the reference."""

import math

import pytest

from pycct import reference
from pycct.reference.candidates import Group, Placed, recovery_push


def push(shape, p0, p1, radius):
    """The push out of one shape at the origin."""
    item = Placed(reference.Scene().add(shape))
    r = recovery_push(Group(item, [t for t, _ in item.all_faces()]), p0, p1, radius, True)
    return tuple(x * r.depth for x in r.dir) if r.overlapping else None


def test_two_walls_push_along_each_axis():
    # A wall at x = 0.3 that faces -x, and a second one 20 degrees off.
    c, s = math.cos(math.radians(20)), math.sin(math.radians(20))
    corners = [(0.3, -3.0, -3.0), (0.3, -3.0, 3.0), (0.3, 3.0, 0.0)]
    corners += [(0.3 * c - y * s, 0.3 * s + y * c, z) for _, y, z in corners]
    walls = reference.Mesh(corners, [(0, 1, 2), (3, 4, 5)])
    x, y, z = push(walls, (0.0, 0.0, -0.5), (0.0, 0.0, 0.5), 0.42)
    assert x == pytest.approx(-0.12, abs=1e-9) and y == pytest.approx(-0.12 * s, abs=1e-9) and abs(z) < 1e-12


def test_a_hull_is_left_along_a_separating_axis():
    half = 0.3
    cube = reference.ConvexHull([(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)])
    assert push(cube, (0.5, 0.5, 0.5), (0.5, 0.5, 1.5), 0.42) == pytest.approx((0, 0, 0.22), abs=1e-9)


def test_the_flags_of_convex_edges():
    # Two triangles that share the edge from (0, 0, 0) to (0, 1, 0): flat, a ridge, a valley.
    for height, convex in ((0.0, False), (-0.5, True), (0.5, False)):
        roof = reference.Mesh([(0, 0, 0), (0, 1, 0), (-1, 0, height), (1, 0, height)], [(0, 1, 2), (1, 0, 3)])
        shared = [i for i in range(3) if {(0, 0, 0), (0, 1, 0)} == {roof._faces[0][1][i], roof._faces[0][1][i - 2]}]
        flags = roof.convex_edges()
        assert bool(flags[0] >> shared[0] & 1) is convex
        assert bin(flags[0]).count("1") == 2 + convex
