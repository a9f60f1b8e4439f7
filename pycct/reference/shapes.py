"""Shapes: immutable values in their own frame."""

import numpy as np

from pycct.reference.closest import triangle_normal
from pycct.reference.convert import as_bool, as_float, as_not_negative, as_positive, as_table, as_unit, as_vec3
from pycct.reference.hull import HullTables
from pycct.reference.vec import box_union, is_zero, lex, mul, neg, vmax, vmin

# Half the side of the box that stands for an endless plane.
ENDLESS = 1e30


def _constant(name, doc):
    """A read-only attribute."""
    return property(lambda self: getattr(self, name), doc=doc)


class Shape:
    """Base of all shapes; not made directly."""

    def __init__(self):
        if type(self) is Shape:
            raise TypeError("Shape is a base class: use Mesh, Box, Sphere, Capsule, ConvexHull, Plane or Triangle")

    bounds = _constant("_bounds", "Corners (lo, hi) of the bounding box in the shape's own frame, metres.")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Sphere(Shape):
    """A sphere about the origin.

    Parameters
    ----------
    radius : float
        Metres, > 0.
    """

    def __init__(self, radius):
        r = self._radius = as_positive(radius, "radius")
        self._bounds = ((-r, -r, -r), (r, r, r))

    radius = _constant("_radius", "Radius, metres.")

    def __repr__(self):
        return f"Sphere({self.radius!r})"


class Capsule(Shape):
    """A capsule about the origin, its axis along local z.

    Parameters
    ----------
    radius : float
        Metres, > 0.
    height : float
        Distance between the centres of its two spheres, metres, >= 0.
    """

    def __init__(self, radius, height):
        r = self._radius = as_positive(radius, "radius")
        h = self._height = as_not_negative(height, "height")
        self._bounds = ((-r, -r, -r - 0.5 * h), (r, r, r + 0.5 * h))

    radius = _constant("_radius", "Radius, metres.")
    height = _constant("_height", "Distance between the sphere centres, metres.")

    def __repr__(self):
        return f"Capsule({self.radius!r}, {self.height!r})"


class Box(Shape):
    """A solid box about the origin.

    Parameters
    ----------
    half_extents : (3,) floats
        Half the length of each side, metres, each > 0.
    """

    def __init__(self, half_extents):
        h = self._half = as_vec3(half_extents, "half_extents")
        if not (h[0] > 0.0 and h[1] > 0.0 and h[2] > 0.0):
            raise ValueError(f"half_extents must be > 0, got {h}")
        self._bounds = (neg(h), h)

    half_extents = _constant("_half", "Half the length of each side, metres.")

    def __repr__(self):
        return f"Box({self.half_extents!r})"


class Triangle(Shape):
    """A single triangle, seen from the side where its corners run counter-clockwise.

    Parameters
    ----------
    a, b, c : (3,) floats
        Corners, metres. A triangle without area is allowed and touches nothing.
    """

    def __init__(self, a, b, c):
        a, b, c = self._vertices = (as_vec3(a, "a"), as_vec3(b, "b"), as_vec3(c, "c"))
        self._bounds = (vmin(a, vmin(b, c)), vmax(a, vmax(b, c)))

    vertices = _constant("_vertices", "The three corners, metres.")

    def __repr__(self):
        return "Triangle({!r}, {!r}, {!r})".format(*self.vertices)


class Plane(Shape):
    """The half space below a plane: all points p with dot(normal, p) <= offset are inside.

    Parameters
    ----------
    normal : (3,) floats
        Points out of the solid; any length but zero.
    offset : float
        Distance of the plane from the origin along the normal, metres.
    """

    def __init__(self, normal, offset=0.0):
        self._normal = as_unit(normal, "normal")
        self._offset = as_float(offset, "offset")
        self._bounds = ((-ENDLESS, -ENDLESS, -ENDLESS), (ENDLESS, ENDLESS, ENDLESS))

    normal = _constant("_normal", "Unit normal, out of the solid.")
    offset = _constant("_offset", "Distance of the plane from the origin along the normal, metres.")

    def __repr__(self):
        return f"Plane({self.normal!r}, {self.offset!r})"


class ConvexHull(Shape):
    """The convex hull of some points.

    Parameters
    ----------
    points : (n, 3) array of floats
        Metres. The hull may have at most 255 vertices.
    """

    def __init__(self, points):
        self._set(HullTables(points), (1.0, 1.0, 1.0))

    def _set(self, tables, scale):
        self._tables = tables
        self._scale = scale
        self._corners = [mul(v, scale) for v in tables.vertices]
        self._bounds = (self._corners[0], self._corners[0])
        for p in self._corners:
            self._bounds = box_union(self._bounds, (p, p))

    def scaled(self, scale):
        """The same hull scaled along its axes; the tables are shared.

        Parameters
        ----------
        scale : (3,) floats
            Zero flattens the hull, a negative factor mirrors it.

        Returns
        -------
        ConvexHull
        """
        other = ConvexHull.__new__(ConvexHull)
        other._set(self._tables, mul(self._scale, as_vec3(scale, "scale")))
        return other

    scale = _constant("_scale", "Factors along the axes.")

    @property
    def vertices(self):
        """Vertices of the hull, scaled, (n, 3) array, metres."""
        return np.array(self._corners)

    def __repr__(self):
        return f"ConvexHull(<{len(self._corners)} vertices>)"


def _as_array(value, name, shape):
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of integers of shape {shape}") from None


class Mesh(Shape):
    """A triangle mesh.

    Parameters
    ----------
    vertices : (n, 3) array of floats
        Metres; copied.
    triangles : (m, 3) array of integers
        Vertex indices, counter-clockwise seen from outside; copied. A triangle without
        area is kept in the numbering but touches nothing.
    two_sided : bool
        Triangles are met from both sides; the default is from their front only.
    triangle_data : (m,) array of integers, optional
        One number per triangle (surface, material), returned in hits.
    """

    def __init__(self, vertices, triangles, two_sided=False, triangle_data=None):
        points = as_table(vertices, "vertices", 3)
        given = _as_array(triangles, "triangles", "(m, 3)")
        if given.dtype.kind not in "iu":
            raise TypeError(f"triangles must be an array of integers, not {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 3:
            raise ValueError(f"triangles must have shape (m, 3), got {given.shape}")
        if given.shape[0] == 0:
            raise ValueError("triangles must not be empty")
        if given.shape[0] > 2**29 or points.shape[0] > 2**29:
            raise ValueError("a mesh can have at most 2**29 vertices and triangles")
        if int(given.min()) < 0 or int(given.max()) >= points.shape[0]:
            raise ValueError(
                f"triangles must hold indices from 0 to {points.shape[0] - 1}, got {given.min()} to {given.max()}"
            )
        self._two_sided = as_bool(two_sided, "two_sided")
        self._data = None
        if triangle_data is not None:
            extra = _as_array(triangle_data, "triangle_data", "(m,)")
            if extra.dtype.kind not in "iu":
                raise TypeError(f"triangle_data must be an array of integers, not {extra.dtype}")
            if extra.shape != (given.shape[0],):
                raise ValueError(f"triangle_data must have shape ({given.shape[0]},), got {extra.shape}")
            if int(extra.max()) > 2**63 - 1:
                raise ValueError(f"triangle_data must fit into 64 bits with sign, got {extra.max()}")
            self._data = [int(x) for x in extra]
        indices = np.array(given, dtype=np.int32, order="C", copy=True)
        points.flags.writeable = indices.flags.writeable = False
        self._vertices = points
        self._triangles = indices
        v = [tuple(p) for p in points.tolist()]
        self._bounds = (v[0], v[0])
        for p in v:
            self._bounds = box_union(self._bounds, (p, p))
        # (number, corners, unit normal), the lexicographically smallest corner first: the
        # order in which the user lists them then cannot change a bit of any result.
        self._faces = []
        for i, (a, b, c) in enumerate(indices.tolist()):
            p = (v[a], v[b], v[c])
            first = 0
            if lex(p[1], p[first]) < 0:
                first = 1
            if lex(p[2], p[first]) < 0:
                first = 2
            p = (p[first], p[(first + 1) % 3], p[(first + 2) % 3])
            n = triangle_normal(*p)
            # RULES 3: a degenerate triangle never produces a contact.
            if not is_zero(n):
                self._faces.append((i, p, n))

    vertices = _constant("_vertices", "Vertices as given, read-only (n, 3) array, metres.")
    triangles = _constant("_triangles", "Triangles as given, read-only (m, 3) array of vertex indices.")
    two_sided = _constant("_two_sided", "True when triangles are met from both sides.")

    @property
    def triangle_data(self):
        """Number of each triangle, or None."""
        return None if self._data is None else np.array(self._data, np.int64)

    @property
    def n_degenerate(self):
        """How many of the given triangles have no area and touch nothing."""
        return len(self._triangles) - len(self._faces)

    @property
    def nbytes(self):
        """Bytes of the arrays; there is no tree."""
        return self._vertices.nbytes + self._triangles.nbytes + (0 if self._data is None else 8 * len(self._data))

    def __repr__(self):
        return f"Mesh(<{len(self._vertices)} vertices, {len(self._triangles)} triangles>)"
