"""Shapes: immutable values in their own frame."""

import numpy as np

from pycct.reference.closest import triangle_normal
from pycct.reference.edges import FLAT_FIELD, FLAT_MESH, convex_edges
from pycct.reference.hull import HullTables
from pycct.reference.values import as_bool, as_float, as_not_negative, as_positive, as_table, as_unit, as_vec3
from pycct.reference.vec import box_union, is_zero, lex, mul, neg, vmax, vmin

# Half the side of the box that replaces an endless plane.
ENDLESS = 1e30
# Largest coordinate of a vertex of a mesh or heightfield, metres.
FARTHEST_VERTEX = 1e30


def _convex_edges(shape, flat):
    """Flags of the convex edges of each triangle (RULES_2 3), computed when first needed."""
    if shape._convex is None:
        shape._convex = convex_edges(shape._faces, flat)
    return shape._convex


def _constant(name, doc):
    """A read-only attribute."""
    return property(lambda self: getattr(self, name), doc=doc)


class Shape:
    """Base class of all shapes; it has no instances of its own."""

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
    """A single triangle, solid from the side where its corners run counter-clockwise.

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
    solid : bool
        Raise ValueError for points that all coincide or lie in one line or plane.
    """

    def __init__(self, points, solid=False):
        tables = HullTables(points)
        if solid and tables.dimension < 3:
            how = ("all coincide", "lie on one line", "lie in one plane")[tables.dimension]
            raise ValueError(f"points must span a solid, but they {how}")
        self._set(tables, (1.0, 1.0, 1.0))

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
    def dimension(self):
        """0 point, 1 segment, 2 polygon, 3 solid; a factor of zero counts in `scale`, not here."""
        return self._tables.dimension

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


def _not_empty(values, name):
    """Vertices or triangles of a mesh: at least one."""
    given = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.ndim > 0)
    if given and len(values) == 0:
        raise ValueError(f"{name} must not be empty: a mesh needs at least one triangle")


def _numbers(values, name, n, dtype):
    """One integer per triangle, as a list; None stays None."""
    if values is None:
        return None
    given = _as_array(values, name, f"({n},)")
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an array of integers, not {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    limits = np.iinfo(dtype)
    if n and not (limits.min <= int(given.min()) and int(given.max()) <= limits.max):
        raise ValueError(
            f"{name} must hold numbers from {limits.min} to {limits.max}, got {given.min()} to {given.max()}"
        )
    return [int(x) for x in given]


def _table(name, dtype, doc):
    """A read-only attribute, given as a fresh array."""

    def get(self):
        values = getattr(self, name)
        return None if values is None else np.array(values, dtype)

    return property(get, doc=doc)


def _smallest_first(a, b, c):
    """The corners, rotated so that the lexicographically smallest comes first."""
    p = (a, b, c)
    first = 0
    if lex(p[1], p[first]) < 0:
        first = 1
    if lex(p[2], p[first]) < 0:
        first = 2
    return (p[first], p[(first + 1) % 3], p[(first + 2) % 3])


class Mesh(Shape):
    """A triangle mesh.

    Parameters
    ----------
    vertices : (n, 3) array of floats
        Metres; copied.
    triangles : (m, 3) array of integers
        Vertex indices, counter-clockwise seen from outside; copied. A triangle without area keeps
        its index but touches nothing.
    two_sided : bool
        Whether triangles are solid from both sides; the default is the front only.
    triangle_data : (m,) array of integers, optional
        One number per triangle (surface, material), returned in hits; 64 bits.
    triangle_mask : (m,) array of integers, optional
        Layers of each triangle, 32 bits. A character collides with a triangle if its mask shares a
        bit with the actor's layer and with the triangle's (SWEEP 3.2).
    """

    def __init__(self, vertices, triangles, two_sided=False, triangle_data=None, triangle_mask=None):
        _not_empty(vertices, "vertices")
        _not_empty(triangles, "triangles")
        points = as_table(vertices, "vertices", 3)
        given = _as_array(triangles, "triangles", "(m, 3)")
        if given.dtype.kind not in "iu":
            raise TypeError(f"triangles must be an array of integers, not {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 3:
            raise ValueError(f"triangles must have shape (m, 3), got {given.shape}")
        _not_empty(given, "triangles")
        if given.shape[0] > 2**29 or points.shape[0] > 2**29:
            raise ValueError("a mesh can have at most 2**29 vertices and triangles")
        if int(given.min()) < 0 or int(given.max()) >= points.shape[0]:
            raise ValueError(
                f"triangles must hold indices from 0 to {points.shape[0] - 1}, got {given.min()} to {given.max()}"
            )
        self._two_sided = as_bool(two_sided, "two_sided")
        if np.abs(points).max() > FARTHEST_VERTEX:
            raise ValueError(f"vertices must lie within {FARTHEST_VERTEX:g} m of the origin")
        self._data = _numbers(triangle_data, "triangle_data", given.shape[0], np.int64)
        self._mask = _numbers(triangle_mask, "triangle_mask", given.shape[0], np.uint32)
        indices = np.array(given, dtype=np.int32, order="C", copy=True)
        points.flags.writeable = indices.flags.writeable = False
        self._vertices = points
        self._triangles = indices
        v = [tuple(p) for p in points.tolist()]
        self._bounds = (v[0], v[0])
        for p in v:
            self._bounds = box_union(self._bounds, (p, p))
        # (number, corners, unit normal), with the lexicographically smallest corner first. The
        # user's order of corners therefore changes no bit of any result.
        self._faces = []
        for i, (a, b, c) in enumerate(indices.tolist()):
            p = _smallest_first(v[a], v[b], v[c])
            n = triangle_normal(*p)
            # RULES 3: a degenerate triangle never produces a contact.
            if not is_zero(n):
                self._faces.append((i, p, n))

    _convex = None

    def convex_edges(self):
        """Bits of the convex edges of a triangle, by its number."""
        return _convex_edges(self, FLAT_MESH)

    vertices = _constant("_vertices", "Vertices as given, read-only (n, 3) array, metres.")
    triangles = _constant("_triangles", "Triangles as given, read-only (m, 3) array of vertex indices.")
    two_sided = _constant("_two_sided", "True when triangles are met from both sides.")

    triangle_data = _table("_data", np.int64, "Number of each triangle, or None.")
    triangle_mask = _table("_mask", np.uint32, "Layers of each triangle, or None.")

    @property
    def triangle_count(self):
        """Number of triangles of the input."""
        return len(self._triangles)

    @property
    def n_degenerate(self):
        """Number of triangles without area, which touch nothing."""
        return len(self._triangles) - len(self._faces)

    @property
    def nbytes(self):
        """Bytes of the arrays; there is no tree."""
        return self._vertices.nbytes + self._triangles.nbytes

    def __repr__(self):
        return f"Mesh(<{len(self._vertices)} vertices, {len(self._triangles)} triangles>)"


class Heightfield(Shape):
    """A terrain over a grid of heights; local z points up.

    Sample (i, j), in row i and column j, is at ``(i * spacing[0], j * spacing[1], heights[i, j])``
    if
    ``row_axis`` is 'x', and at ``(j * spacing[0], i * spacing[1], heights[i, j])`` if it is 'y'.
    Cell (i, j) is between the samples (i, j) and (i + 1, j + 1). Its number is ``i * (columns - 1)
    + j``, and its triangles are ``2 * number`` and ``2 * number + 1``. With diagonal 0 the cell is
    cut from (i, j) to (i + 1, j + 1), and the first triangle is the one with sample (i + 1, j).
    With diagonal 1 it is cut from (i + 1, j) to (i, j + 1), and the first triangle is the one with
    sample (i, j).

    Parameters
    ----------
    heights : (rows, columns) array of floats
        Metres, at least 2 by 2.
    spacing : float or (2,) floats
        Distance of the samples along x and along y, metres, > 0.
    row_axis : {'x', 'y'}
        Axis along which the rows follow one another.
    diagonal : {0, 1} or (rows - 1, columns - 1) array of those
        Diagonal of each cell.
    holes : (rows - 1, columns - 1) array of bool, optional
        Cells without triangles; the numbering does not change.
    two_sided : bool
        Whether triangles are solid from both sides.
    triangle_data, triangle_mask : (2 * cells,) arrays of integers, optional
        As for `Mesh`.
    """

    def __init__(
        self,
        heights,
        spacing=1.0,
        *,
        row_axis="x",
        diagonal=0,
        holes=None,
        two_sided=False,
        triangle_data=None,
        triangle_mask=None,
    ):
        given = np.asarray(heights)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"heights must be an array of real numbers, not {given.dtype}")
        if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 2:
            raise ValueError(f"heights must have shape (rows, columns), 2 by 2 at least, got {given.shape}")
        table = np.array(given, dtype=np.float64, order="C", copy=True)
        if not np.isfinite(table).all() or np.abs(table).max() > FARTHEST_VERTEX:
            raise ValueError(f"heights must be finite and within {FARTHEST_VERTEX:g} m")
        if row_axis not in ("x", "y"):
            raise ValueError(f"row_axis must be 'x' or 'y', not {row_axis!r}")
        try:
            dx, dy = spacing
        except TypeError:
            dx = dy = spacing
        except ValueError:
            raise ValueError(f"spacing must be one or two numbers, got {spacing!r}") from None
        self._spacing = (as_positive(dx, "spacing"), as_positive(dy, "spacing"))
        if max(self._spacing) * max(table.shape) > FARTHEST_VERTEX:
            raise ValueError(f"spacing must keep the samples within {FARTHEST_VERTEX:g} m of the origin")
        rows, columns = table.shape
        shape = (rows - 1, columns - 1)
        cut = np.asarray(diagonal)
        if cut.dtype.kind not in "iub":
            raise TypeError(f"diagonal must be 0 or 1, or an array of those, not {cut.dtype}")
        if cut.shape not in ((), shape):
            raise ValueError(f"diagonal must be one number or have shape {shape}, got {cut.shape}")
        if not np.isin(cut, (0, 1)).all():
            raise ValueError("diagonal must be 0 or 1 for each cell")
        gone = np.zeros(shape, bool) if holes is None else np.asarray(holes)
        if gone.dtype.kind != "b":
            raise TypeError(f"holes must be an array of bool, not {gone.dtype}")
        if gone.shape != shape:
            raise ValueError(f"holes must have shape {shape}, got {gone.shape}")
        self._two_sided = as_bool(two_sided, "two_sided")
        self._data = _numbers(triangle_data, "triangle_data", 2 * shape[0] * shape[1], np.int64)
        self._mask = _numbers(triangle_mask, "triangle_mask", 2 * shape[0] * shape[1], np.uint32)
        table.flags.writeable = False
        self._heights = table
        self._row_axis = row_axis
        self._diagonal = int(cut) if cut.shape == () and holes is None else np.broadcast_to(cut, shape) + np.uint8(0)
        self._holes = gone.copy()
        self._set_faces(table.tolist(), np.broadcast_to(cut, shape).tolist(), gone.tolist())

    def _set_faces(self, heights, cut, holes):
        """Triangles as (number, corners, unit normal), counter-clockwise seen from above."""
        dx, dy = self._spacing
        along_y = self._row_axis == "y"

        def point(i, j):
            return (j * dx, i * dy, heights[i][j]) if along_y else (i * dx, j * dy, heights[i][j])

        rows, columns = len(heights), len(heights[0])
        self._bounds = (point(0, 0), point(0, 0))
        for i in range(rows):
            for j in range(columns):
                p = point(i, j)
                self._bounds = box_union(self._bounds, (p, p))
        self._faces = []
        for i in range(rows - 1):
            for j in range(columns - 1):
                if holes[i][j]:
                    continue
                a, b, c, d = point(i, j), point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)
                pair = ((a, b, d), (b, c, d)) if cut[i][j] else ((a, b, c), (a, c, d))
                for which, (p, q, r) in enumerate(pair):
                    corners = _smallest_first(p, r, q) if along_y else _smallest_first(p, q, r)
                    number = 2 * (i * (columns - 1) + j) + which
                    self._faces.append((number, corners, triangle_normal(*corners)))

    def sample(self, x, y):
        """Height and normal of the surface above places of the field's own frame.

        Parameters
        ----------
        x, y : float, or arrays of floats of one shape
            Metres from sample (0, 0).

        Returns
        -------
        height : float or array
            Metres; NaN outside of the field and in holes.
        normal : (3,) floats or (..., 3) array
            Upwards; zero outside of the field and in holes.
        """
        xs, ys = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
            raise ValueError("x and y must be finite")
        if xs.shape == ():
            return self._sample(float(xs), float(ys))
        found = [self._sample(*place) for place in zip(xs.ravel().tolist(), ys.ravel().tolist(), strict=True)]
        heights = np.array([height for height, _ in found], np.float64).reshape(xs.shape)
        return heights, np.array([normal for _, normal in found], np.float64).reshape((*xs.shape, 3))

    def _sample(self, x, y):
        along_y = self._row_axis == "y"
        heights = self._heights
        rows, columns = heights.shape
        dx, dy = self._spacing
        (row, row_step), (column, column_step) = ((y, dy), (x, dx)) if along_y else ((x, dx), (y, dy))
        nothing = (np.nan, (0.0, 0.0, 0.0))
        if not (0.0 <= row <= (rows - 1) * row_step and 0.0 <= column <= (columns - 1) * column_step):
            return nothing
        # The last cell that begins at or below the place.
        i = max(k for k in range(rows - 1) if k == 0 or k * row_step <= row)
        j = max(k for k in range(columns - 1) if k == 0 or k * column_step <= column)
        if self._holes[i, j]:
            return nothing
        u, v = (row - i * row_step) / row_step, (column - j * column_step) / column_step
        h00, h01, h10, h11 = (float(heights[i + a, j + b]) for a in (0, 1) for b in (0, 1))
        if np.broadcast_to(self._diagonal, self._holes.shape)[i, j]:
            which = 1 if u + v > 1.0 else 0
            if which == 0:
                height = h00 + u * (h10 - h00) + v * (h01 - h00)
            else:
                height = h11 + (1.0 - u) * (h01 - h11) + (1.0 - v) * (h10 - h11)
        else:
            which = 0 if u >= v else 1
            if which == 0:
                height = h00 + u * (h10 - h00) + v * (h11 - h10)
            else:
                height = h00 + v * (h01 - h00) + u * (h11 - h01)
        number = 2 * (i * (columns - 1) + j) + which
        return height, next(normal for n, _, normal in self._faces if n == number)
    _convex = None

    def convex_edges(self):
        """Bits of the convex edges of a triangle, by its number."""
        return _convex_edges(self, FLAT_FIELD)

    heights = _constant("_heights", "Heights as given, read-only (rows, columns) array, metres.")
    spacing = _constant("_spacing", "Distance of the samples along x and along y, metres.")
    row_axis = _constant("_row_axis", "'x' or 'y': along which axis rows follow one another.")
    diagonal = _constant("_diagonal", "0 or 1, or one of them per cell.")
    two_sided = _constant("_two_sided", "True when triangles are met from both sides.")
    triangle_data = _table("_data", np.int64, "Number of each triangle, or None.")
    triangle_mask = _table("_mask", np.uint32, "Layers of each triangle, or None.")

    @property
    def holes(self):
        """Cells without triangles, (rows - 1, columns - 1) array of bool."""
        return self._holes.copy()

    @property
    def triangle_count(self):
        """Two per cell, holes included."""
        return 2 * self._holes.size

    @property
    def nbytes(self):
        """Bytes of the array; there is no tree."""
        return self._heights.nbytes

    def __repr__(self):
        rows, columns = self._heights.shape
        return f"Heightfield(<{rows} x {columns} samples>, {self.spacing})"
