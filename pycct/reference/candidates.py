"""Colliders, the candidates near a capsule, and the nearest hit among them.

The core finds candidates with trees. Here one box test visits every shape and every triangle of a
mesh.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pycct.reference.character_grid import Character
from pycct.reference.closest import point_segment, segment_segment, segment_triangle, triangle_normal
from pycct.reference.edges import ALL_CONVEX
from pycct.reference.exits import crosses_face, leave_surface, push_from_hull, push_from_surface
from pycct.reference.overlap import (
    APART,
    overlaps_triangles,
    push_from_capsule,
    push_from_plane,
    push_from_polytope,
    push_from_sphere,
    push_from_triangles,
)
from pycct.reference.shapes import Box, Capsule, ConvexHull, Heightfield, Mesh, Plane, Sphere
from pycct.reference.sweep import (
    Face,
    SweepHit,
    capsule_box,
    cast_capsule,
    cast_open_edges,
    cast_plane,
    cast_sphere,
    cast_triangles,
    triangle_order,
)
from pycct.reference.tolerances import DEPTH_TIE, is_below_limit
from pycct.reference.types import ACTOR, BOX, CAPSULE, OBSTACLE, PLANE, SPHERE, TRIANGLES, USER_GEOMETRY
from pycct.reference.vec import (
    add,
    box_centre,
    box_grow,
    box_half,
    box_overlap,
    box_union,
    dist2,
    dot,
    f_min,
    is_zero,
    lex,
    m3_mul,
    m3_tmul,
    max_abs,
    mul,
    q_is_identity,
    q_matrix,
    q_rotate,
    scale,
    sub,
    vabs,
    vmax,
    vmin,
)

# Shapes of many open triangles.
SURFACES = (Mesh, Heightfield)
# Corners of a box's faces, counter-clockwise from outside; bit 0 is +x, bit 1 +y, bit 2 +z. The
# diagonal leads from the first to the third one (RULES_2 9).
BOX_FACES = ((0, 4, 6, 2), (3, 7, 5, 1), (1, 5, 4, 0), (2, 6, 7, 3), (0, 2, 3, 1), (5, 7, 6, 4))


def capsule_bounds(p0, p1, radius):
    """Bounding box of a capsule."""
    return box_grow((vmin(p0, p1), vmax(p0, p1)), radius)


def triangle_bounds(a, b, c):
    """Bounding box of a triangle."""
    return (vmin(a, vmin(b, c)), vmax(a, vmax(b, c)))


def span(box):
    """Largest coordinate of a box."""
    return max_abs(vmax(vabs(box[0]), vabs(box[1])))


class Placed:
    """One shape in the world."""

    def __init__(self, actor):
        shape = actor.shape
        self.owner = OBSTACLE if actor.is_obstacle else ACTOR
        self.id = actor.id
        self.body = actor.body
        self.layer = actor.layer
        self.behavior = int(actor.behavior)
        self.shape = shape
        self.position = actor.position
        self.rotation = actor.rotation
        # A mirrored box is the same box.
        self.scale = vabs(actor.scale) if isinstance(shape, Box) else actor.scale
        self.matrix = q_matrix(actor.rotation)
        # Neither rotated nor scaled, only translated.
        self.plain = q_is_identity(actor.rotation) and self.scale == (1.0, 1.0, 1.0)
        sx, sy, sz = self.scale
        # RULES 2: a mirroring scale must still yield outward normals.
        self.mirrored = sx * sy * sz < 0.0
        self.kind = TRIANGLES
        self.closed = isinstance(shape, (Box, ConvexHull))  # the triangles bound a solid
        if actor.is_obstacle and isinstance(shape, Box):
            # RULES 2: obstacles are analytic.
            self.kind = BOX
            self.half = mul(shape.half_extents, vabs(self.scale))
        # ... which has no volume: the front and the back of one polygon
        self.flat = isinstance(shape, ConvexHull) and (shape.dimension < 3 or 0.0 in shape.scale)
        self.two_sided = isinstance(shape, SURFACES) and shape.two_sided
        self.q0 = self.q1 = self.position  # ends of a round shape's axis
        self.radius = 0.0
        if isinstance(shape, ConvexHull):
            kx, ky, kz = shape.scale
            if kx * ky * kz < 0.0:
                self.mirrored = not self.mirrored
        if isinstance(shape, Plane):
            self.kind = PLANE
            self.normal = q_rotate(actor.rotation, shape.normal)
            self.offset = shape.offset + dot(self.normal, self.position)
            self.bounds = shape.bounds
            return
        lo, hi = shape.bounds
        if isinstance(shape, (Sphere, Capsule)):
            height = shape.height if isinstance(shape, Capsule) else 0.0
            self.radius = shape.radius * sx
            half = scale(q_rotate(actor.rotation, (0.0, 0.0, 1.0)), 0.5 * height * sx)
            a, b = sub(self.position, half), add(self.position, half)
            self.bounds = capsule_bounds(a, b, self.radius)
            if isinstance(shape, Capsule):
                self.kind = CAPSULE
                self.q0, self.q1 = a, b
            else:
                self.kind = SPHERE
        elif self.plain:
            self.bounds = (add(lo, self.position), add(hi, self.position))
        else:
            centre = self.place_point(box_centre(shape.bounds))
            half = mul(box_half(shape.bounds), vabs(self.scale))
            half = tuple(dot(vabs(row), half) for row in self.matrix)
            self.bounds = (sub(centre, half), add(centre, half))
        # Margin for the rounding of the transformation to the world.
        self.bounds = box_grow(self.bounds, 1e-9 * span(self.bounds))
        self.faces = None  # [(Face, its box)], made when first needed
        if isinstance(shape, ConvexHull) and not self.all_faces():
            # A segment or a point: a capsule without a radius.
            self.kind = CAPSULE
            self.closed = self.flat = False
            corners = [self.place_point(p) for p in shape._corners]
            self.q0 = _farthest(corners, corners[0])
            self.q1 = _farthest(corners, self.q0)

    @property
    def recovered_as(self):
        """Kind of body for recovery."""
        return self.body if self.owner == ACTOR else USER_GEOMETRY

    def place_point(self, local):
        """Transform a point from the shape's frame to the world.

        Every vertex uses this function.
        """
        if self.plain:
            return add(local, self.position)
        return add(m3_mul(self.matrix, mul(local, self.scale)), self.position)

    def unplace_point(self, world):
        """From the world to the shape's frame."""
        v = sub(world, self.position)
        if self.plain:
            return v
        v = m3_tmul(self.matrix, v)
        return (v[0] / self.scale[0], v[1] / self.scale[1], v[2] / self.scale[2])

    def data_of(self, triangle):
        """The user's data of a triangle of a mesh, or None."""
        if triangle is None or not isinstance(self.shape, SURFACES) or self.shape._data is None:
            return None
        return self.shape._data[triangle]

    def convex_bits(self, face):
        """Bits of the convex edges of a triangle in the world (RULES_2 3)."""
        if face.source < 0:
            return ALL_CONVEX
        bits = self.shape.convex_edges()[face.source]
        # A mirrored triangle has its corners in the other order.
        return (bits & 2) | (bits & 1) << 2 | bits >> 2 if self.mirrored else bits

    def inverse_edges(self):
        """Edges of a hull in the world with the inverse of its scale, like PhysX (RULES_2 4)."""
        tables = self.shape._tables
        sides = {(min(u, v), max(u, v)) for f in tables.faces for u, v in zip(f, f[1:] + f[:1], strict=True)}
        factors = mul(self.shape.scale, self.scale)
        edges = []
        for u, v in sorted(sides):
            e = sub(tables.vertices[v], tables.vertices[u])
            e = (e[0] / factors[0], e[1] / factors[1], e[2] / factors[2])
            edges.append(e if self.plain else m3_mul(self.matrix, e))
        return edges

    def all_faces(self):
        """The shape as triangles in the world (RULES 2), each with its box."""
        if self.faces is None:
            faces = list(self._mesh_faces() if isinstance(self.shape, SURFACES) else self._solid_faces())
            self.faces = [(t, triangle_bounds(t.a, t.b, t.c)) for t in faces]
        return self.faces

    def solid_faces(self):
        """The triangles of a box obstacle, for exits only."""
        corners = [add(q_rotate(self.rotation, p), self.position) for p in _box_corners(self.half)]
        faces = []
        for i, j, k, m in BOX_FACES:
            for t in ((corners[i], corners[j], corners[k]), (corners[i], corners[k], corners[m])):
                n = triangle_normal(*t)
                faces.append(Face(*t, n, dot(n, t[0]), -1))
        return faces

    def _mesh_faces(self):
        for source, corners, n in self.shape._faces:
            a, b, c = (self.place_point(p) for p in corners)
            if not self.plain:
                if self.mirrored:
                    b, c = c, b
                n = triangle_normal(a, b, c)
                if is_zero(n):
                    continue
            yield Face(a, b, c, n, dot(n, a), source)

    def _solid_faces(self):
        for a, b, c in self._local_triangles():
            if self.mirrored:
                b, c = c, b
            n = triangle_normal(a, b, c)
            if not is_zero(n):
                yield Face(a, b, c, n, dot(n, a), -1)

    def _local_triangles(self):
        """Triangles of a box, hull or triangle; a hull's faces are fanned."""
        shape = self.shape
        if isinstance(shape, Box):
            corners = [self.place_point(p) for p in _box_corners(shape.half_extents)]
            for i, j, k, m in BOX_FACES:
                yield corners[i], corners[j], corners[k]
                yield corners[i], corners[k], corners[m]
        elif isinstance(shape, ConvexHull):
            corners = [self.place_point(p) for p in shape._corners]
            for i, j, k in shape._tables.triangles:
                yield corners[i], corners[j], corners[k]
        else:
            yield tuple(self.place_point(p) for p in shape.vertices)


def _farthest(points, origin):
    """The point that is farthest from another; of equals the first by its coordinates."""
    best = points[0]
    for p in points:
        d, most = dist2(p, origin), dist2(best, origin)
        if d > most or (d == most and lex(p, best) < 0):
            best = p
    return best


def _box_corners(half):
    x, y, z = half
    return [(x if i & 1 else -x, y if i & 2 else -y, z if i & 4 else -z) for i in range(8)]


class WallRule(NamedTuple):
    """Replacement of too steep triangles by invisible walls; height 0: none."""

    height: float
    slope_limit: float
    up: tuple


@dataclass
class Group:
    """The candidates of one shape."""

    item: Placed | Character
    faces: list


class WorldHit(NamedTuple):
    """The nearest hit, and on what."""

    base: SweepHit
    group: Group


def _below(box, walls):
    """The box, extended downwards by the height of walls that may reach into it."""
    drop = scale(walls.up, -walls.height)
    return box_union(box, (add(box[0], drop), add(box[1], drop)))


def _walls_of(t, first, box, walls):
    """A triangle's edges, extruded upwards, facing outwards (RULES 2, RULES_2 7).

    The wall on the edge from ``first``, the corner that the user lists first, has the other
    diagonal.
    """
    rise = scale(walls.up, walls.height)
    for p, q in ((t.a, t.b), (t.b, t.c), (t.c, t.a)):
        if p == first:
            pair = ((p, q, add(p, rise)), (add(p, rise), q, add(q, rise)))
        else:
            pair = ((p, q, add(q, rise)), (p, add(q, rise), add(p, rise)))
        for t in pair:
            if box_overlap(triangle_bounds(*t), box):
                n = triangle_normal(*t)
                if not is_zero(n):
                    yield Face(*t, n, dot(n, t[0]), -1)


def _first_given(item, t):
    """The corner of a triangle that the user lists first; of a heightfield, the smallest one."""
    if not isinstance(item.shape, Mesh):
        return t.a
    return item.place_point(tuple(item.shape.vertices[item.shape.triangles[t.source][0]].tolist()))


def _near_faces(item, box, mask, walls):
    """Triangles of a mesh that touch the box; steep ones as walls, if requested."""
    layers = item.shape._mask
    # SWEEP 3.2: a triangle may have its own layers.
    faces = [x for x in item.all_faces() if layers is None or layers[x[0].source] & mask]
    if walls is None or walls.height <= 0.0:
        return [t for t, bounds in faces if box_overlap(bounds, box)]
    near = []
    reach = _below(box, walls)
    for t, bounds in faces:
        if not box_overlap(bounds, reach):
            continue
        rise = dot(t.n, walls.up)
        if item.two_sided and rise < 0.0:
            rise = -rise
            n = scale(t.n, -1.0)
            t = Face(t.a, t.c, t.b, n, dot(n, t.a), t.source)
        if rise >= 0.0 and is_below_limit(rise, walls.slope_limit):
            near += _walls_of(t, _first_given(item, t), box, walls)
        elif box_overlap(bounds, box):
            near.append(t)
    return near


def gather(items, box, mask, walls=None):
    """Candidates of the shapes that touch the box on the layers of the mask (RULES 4)."""
    reach = box if walls is None or walls.height <= 0.0 else _below(box, walls)
    groups = []
    for item in items:
        if not item.layer & mask or not box_overlap(item.bounds, reach):
            continue
        faces = []
        if item.kind == TRIANGLES:
            if isinstance(item.shape, SURFACES):
                faces = _near_faces(item, box, mask, walls)
            else:
                faces = [t for t, _ in item.all_faces()]
            if not faces:
                continue
        groups.append(Group(item, faces))
    return groups


def group_order(g, g_face, h, h_face):
    """Order of two hits by geometry, so that no result depends on the order of adding shapes."""
    a, b = g.item, h.item
    if a.kind != b.kind:
        return -1 if a.kind < b.kind else 1
    k = 0
    if a.kind == TRIANGLES:
        k = triangle_order(g_face or g.faces[0], h_face or h.faces[0])
    elif a.kind == BOX:
        k = lex(a.position, b.position) or lex(a.half, b.half)
    elif a.kind == PLANE:
        k = lex(a.normal, b.normal) or (a.offset > b.offset) - (a.offset < b.offset)
    else:
        k = lex(a.q0, b.q0) or lex(a.q1, b.q1) or (a.radius > b.radius) - (a.radius < b.radius)
    return k or (a.id > b.id) - (a.id < b.id)


def _smallest(g, p0, p1, reach):
    """The smallest triangle by its corners among those within reach of the axis, or None."""
    best = None
    for t in g.faces:
        if best is not None and triangle_order(t, best) >= 0:
            continue
        if g.item.closed or segment_triangle(p0, p1, t.a, t.b, t.c, t.n).dist2 < reach * reach:
            best = t
    return best


def place_order(g, h, p0, p1, reach):
    """Order of two groups by their geometry near the axis."""
    a, b = g.item, h.item
    if a.kind != TRIANGLES or b.kind != TRIANGLES:
        return group_order(g, None, h, None)
    k = lex(a.bounds[0], b.bounds[0]) or lex(a.bounds[1], b.bounds[1])
    return k or group_order(g, _smallest(g, p0, p1, reach), h, _smallest(h, p0, p1, reach))


def anything(item):
    """No filter: everything collides."""
    return True


def cast(groups, q, recovers, may_meet=anything):
    """The nearest hit, or None; overlaps outside of ``recovers`` are ignored (RULES 3, 5)."""
    best = None
    for g in groups:
        item = g.item
        keeps = item.recovered_as in recovers
        if item.kind == TRIANGLES:
            # A solid has its own exit, which needs no triangle seen from its front.
            own = q._replace(passed=None, keeps_parallel=False) if item.closed else q
            one = cast_triangles(own, g.faces, item.two_sided, not keeps)
            if q.meets_back_rims and not (q.passing or item.closed or item.two_sided or (one and one.overlapping)):
                edge = cast_open_edges(q, g.faces)
                if edge and not (one and one.distance <= edge.distance):
                    one = edge
        elif item.kind == SPHERE:
            one = cast_sphere(q, item.q0, item.radius)
        elif item.kind == CAPSULE:
            one = cast_capsule(q, item.q0, item.q1, item.radius)
        elif item.kind == BOX:
            one = capsule_box(q.p0, q.p1, q.radius, q.dir, item.half, item.position, item.rotation, q.limit)
        else:
            one = cast_plane(q, item.normal, item.offset)
        if one is None or (one.overlapping and not keeps):
            continue
        if best is not None:
            # RULES 3: among shapes the smallest distance wins, an overlap before a touch.
            if one.distance > best.base.distance:
                continue
            if one.distance == best.base.distance:
                if one.overlapping != best.base.overlapping:
                    if best.base.overlapping:
                        continue
                elif group_order(g, one.face, best.group, best.base.face) > 0:
                    continue
        # The filter runs only for objects that the character would hit.
        if may_meet(item):
            best = WorldHit(one, g)
    return best


def group_push(g, p0, p1, radius):
    """The shortest exit from one shape's true geometry (RULES 7.5)."""
    item = g.item
    if item.kind == SPHERE:
        return push_from_sphere(p0, p1, radius, item.q0, item.radius)
    if item.kind == CAPSULE:
        return push_from_capsule(p0, p1, radius, item.q0, item.q1, item.radius)
    if item.kind == PLANE:
        return push_from_plane(p0, p1, radius, item.normal, item.offset)
    if item.kind == BOX:
        return push_from_polytope(p0, p1, radius, item.solid_faces())
    if item.closed:
        return push_from_polytope(p0, p1, radius, g.faces, item.flat)
    return push_from_triangles(p0, p1, radius, g.faces, item.two_sided)


def recovery_push(g, p0, p1, radius, first, by_depth=False):
    """The way out of one shape as PhysX takes it (RULES_2 3 and 4).

    ``first``: see push_from_surface. ``by_depth``: out of surfaces by RULES 7.5.
    """
    item = g.item
    if item.kind != TRIANGLES or isinstance(item.shape, Box) or item.flat:
        return group_push(g, p0, p1, radius)
    if item.closed:
        return push_from_hull(p0, p1, radius, g.faces, item.inverse_edges())
    if by_depth:
        return leave_surface(p0, p1, radius, g.faces, item.two_sided)
    return push_from_surface(p0, p1, radius, g.faces, [item.convex_bits(t) for t in g.faces], item.two_sided, first)


def is_surface(g):
    """Whether a shape is a mesh, heightfield or triangle."""
    return g.item.kind == TRIANGLES and not g.item.closed


def is_crossed(g, p0, p1):
    """Whether the axis crosses the inside of a face of a surface."""
    return is_surface(g) and any(crosses_face(p0, p1, t, g.item.two_sided) for t in g.faces)


def is_near(g, p0, p1, reach):
    """Whether a shape counts in a round of recovery: within reach of the axis (RULES_2 10)."""
    item = g.item
    if item.kind == SPHERE:
        return point_segment(item.q0, p0, p1).dist2 < (reach + item.radius) * (reach + item.radius)
    if item.kind == CAPSULE:
        return segment_segment(p0, p1, item.q0, item.q1).dist2 < (reach + item.radius) * (reach + item.radius)
    if item.kind == PLANE:
        return f_min(dot(item.normal, p0), dot(item.normal, p1)) - item.offset < reach
    if item.kind == BOX or item.closed:
        faces = item.solid_faces() if item.kind == BOX else g.faces
        return all(f_min(dot(t.n, p0), dot(t.n, p1)) - t.d < reach for t in faces)
    return overlaps_triangles(p0, p1, reach, g.faces)


def shortest(pushes, p0, p1, reach):
    """The shortest of some (group, push), or None; surfaces come before solids (RULES_2 10).

    Ways out equal within 1e-9 go by geometry.
    """
    pushes = [(g, push) for g, push in pushes if is_surface(g)] or pushes
    least = min((push.depth for _, push in pushes), default=0.0)
    best = None
    for g, push in pushes:
        if push.depth <= least + DEPTH_TIE and (best is None or place_order(g, best[0], p0, p1, reach) < 0):
            best = (g, push)
    return best


def group_overlaps(g, p0, p1, radius):
    """True if the capsule touches the shape (RULES 7.6).

    Solids are solid, and triangles count from both sides.
    """
    item = g.item
    both = radius + item.radius
    if item.kind == SPHERE:
        return point_segment(item.q0, p0, p1).dist2 < both * both
    if item.kind == CAPSULE:
        return segment_segment(p0, p1, item.q0, item.q1).dist2 < both * both
    if item.kind == TRIANGLES and not item.closed:
        return overlaps_triangles(p0, p1, radius, g.faces)
    return group_push(g, p0, p1, radius).overlapping


def deepest_group(groups, p0, p1, radius, recovers, may_meet=anything):
    """The group of the deepest overlap and the exit from it (RULES 7.5), or None and no overlap."""
    pushes = [(g, group_push(g, p0, p1, radius)) for g in groups if g.item.recovered_as in recovers]
    pushes = [(g, push) for g, push in pushes if push.overlapping]
    depth = 0.0
    for g, push in pushes:
        if push.depth > depth and may_meet(g.item):
            depth = push.depth
    if depth <= 0.0:
        return None, APART
    best = None
    for g, push in pushes:
        if push.depth >= depth - DEPTH_TIE and may_meet(g.item):
            if best is None or group_order(g, push.face, best[0], best[1].face) < 0:
                best = (g, push)
    return best


def deepest(groups, p0, p1, radius, recovers, may_meet=anything):
    """The exit from the deepest overlap (RULES 7.5)."""
    return deepest_group(groups, p0, p1, radius, recovers, may_meet)[1]
