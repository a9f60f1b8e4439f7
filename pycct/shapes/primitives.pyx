# cython: language_level=3
"""Shapes: immutable values, which many scenes and threads may share."""
import numpy as np

from libc.stdint cimport int32_t
from libc.math cimport fabs

cimport cython

from pycct.args.values cimport as_float, as_not_negative, as_positive, as_unit, as_vec3, from_vec3
from pycct.shapes.heightfield_cells cimport field_data
from pycct.convex.hull cimport HullTables, build_hull, hull_again, hull_record
from pycct.geometry.types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
)
from pycct.geometry.vec cimport (
    box_of,
    box_union,
    v3,
    v3_dot,
    v3_load,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_mul,
    v3_neg,
)

# Half the side of the box that replaces an endless plane.
cdef double ENDLESS = 1e30

# Largest size of a shape, metres: twice the farthest position in a scene. Beyond it, squares of
# squares would overflow.
cdef double LARGEST = 2e12


cdef double _sized(double x, str name) except? -1.0:
    if x > LARGEST:
        raise ValueError(f"{name} must not exceed {LARGEST:g} m, got {x}")
    return x


cdef vec3 _placed(object value, str name) except *:
    cdef vec3 v = as_vec3(value, name)
    _sized(v3_max_abs(v), name)
    return v


cdef class Shape:
    """Base class of all shapes; it has no instances of its own.

    Attributes
    ----------
    kind : int
        Number of the kind of shape; for fast comparison only.
    """

    def __cinit__(self):
        # No shape yet: a scene rejects an object without __init__.
        self.kind = -1

    def __init__(self):
        if type(self) is Shape:
            raise TypeError("Shape is a base class: use Mesh, Heightfield, Box, Sphere, Capsule, ConvexHull, Plane "
                            "or Triangle")

    cdef int fresh(self) except -1:
        """Raise if the shape is initialised already: scenes have pointers into it."""
        if self.kind >= 0:
            raise TypeError(f"{type(self).__name__} is immutable: __init__ cannot be called again")
        return 0

    cdef const hull_data* hull(self) noexcept:
        return NULL

    cdef const mesh_data* mesh(self) noexcept:
        return NULL

    cdef const field_data* field(self) noexcept:
        return NULL

    @property
    def bounds(self):
        """Corners (lo, hi) of the bounding box in the shape's own frame, metres."""
        return from_vec3(self.bounds_.lo), from_vec3(self.bounds_.hi)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


@cython.final
cdef class Sphere(Shape):
    """A sphere about the origin.

    Parameters
    ----------
    radius : float
        Metres, > 0.
    """

    def __init__(self, radius):
        cdef double r = _sized(as_positive(radius, "radius"), "radius")
        self.fresh()
        self.kind = SHAPE_SPHERE
        self.radius_ = r
        self.bounds_ = box_of(v3(-r, -r, -r), v3(r, r, r))

    @property
    def radius(self):
        """Radius, metres."""
        return self.radius_

    def __repr__(self):
        return f"Sphere({self.radius_!r})"

    def __reduce__(self):
        return Sphere, (self.radius_,)


@cython.final
cdef class Capsule(Shape):
    """A capsule about the origin, its axis along local z.

    Parameters
    ----------
    radius : float
        Metres, > 0.
    height : float
        Distance between the centres of its two spheres, metres, >= 0.
    """

    def __init__(self, radius, height):
        cdef double r = _sized(as_positive(radius, "radius"), "radius")
        cdef double h = _sized(as_not_negative(height, "height"), "height")
        self.fresh()
        self.kind = SHAPE_CAPSULE
        self.radius_ = r
        self.height_ = h
        self.bounds_ = box_of(v3(-r, -r, -r - 0.5 * h), v3(r, r, r + 0.5 * h))

    @property
    def radius(self):
        """Radius, metres."""
        return self.radius_

    @property
    def height(self):
        """Distance between the sphere centres, metres."""
        return self.height_

    def __repr__(self):
        return f"Capsule({self.radius_!r}, {self.height_!r})"

    def __reduce__(self):
        return Capsule, (self.radius_, self.height_)


@cython.final
cdef class Box(Shape):
    """A solid box about the origin.

    Parameters
    ----------
    half_extents : (3,) floats
        Half the length of each side, metres, each > 0.
    """

    def __init__(self, half_extents):
        cdef vec3 h = _placed(half_extents, "half_extents")
        if not (h.x > 0.0 and h.y > 0.0 and h.z > 0.0):
            raise ValueError(f"half_extents must be > 0, got {from_vec3(h)}")
        self.fresh()
        self.kind = SHAPE_BOX
        self.a = h
        self.bounds_ = box_of(v3_neg(h), h)

    @property
    def half_extents(self):
        """Half the length of each side, metres."""
        return from_vec3(self.a)

    def __repr__(self):
        return f"Box({from_vec3(self.a)!r})"

    def __reduce__(self):
        return Box, (from_vec3(self.a),)


@cython.final
cdef class Triangle(Shape):
    """A single triangle, solid from the side where its corners run counter-clockwise.

    Parameters
    ----------
    a, b, c : (3,) floats
        Corners, metres. A triangle without area is allowed and touches nothing.
    """

    def __init__(self, a, b, c):
        self.fresh()
        self.a = _placed(a, "a")
        self.b = _placed(b, "b")
        self.c = _placed(c, "c")
        self.kind = SHAPE_TRIANGLE
        self.bounds_ = box_of(v3_min(self.a, v3_min(self.b, self.c)), v3_max(self.a, v3_max(self.b, self.c)))

    @property
    def vertices(self):
        """The three corners, metres."""
        return from_vec3(self.a), from_vec3(self.b), from_vec3(self.c)

    def __repr__(self):
        return "Triangle({!r}, {!r}, {!r})".format(*self.vertices)

    def __reduce__(self):
        return Triangle, self.vertices


@cython.final
cdef class Plane(Shape):
    """The half space below a plane: all points p with dot(normal, p) <= offset are inside.

    Parameters
    ----------
    normal : (3,) floats
        Points out of the solid; any length but zero.
    offset : float
        Distance of the plane from the origin along the normal, metres.
    """

    def __init__(self, normal, offset=0.0):
        self.fresh()
        self._set(as_unit(normal, "normal"), as_float(offset, "offset"))

    cdef int _set(self, vec3 normal, double offset) except -1:
        self.a = normal
        self.height_ = offset
        self.kind = SHAPE_PLANE
        self.bounds_ = box_of(v3(-ENDLESS, -ENDLESS, -ENDLESS), v3(ENDLESS, ENDLESS, ENDLESS))
        return 0

    @property
    def normal(self):
        """Unit normal, out of the solid."""
        return from_vec3(self.a)

    @property
    def offset(self):
        """Distance of the plane from the origin along the normal, metres."""
        return self.height_

    def __repr__(self):
        return f"Plane({from_vec3(self.a)!r}, {self.height_!r})"

    def __reduce__(self):
        return _plane_again, (from_vec3(self.a), self.height_)


def _plane_again(normal, offset):
    """Return a pickled plane without normalising its normal again."""
    return plane_over(as_vec3(normal, "normal"), as_float(offset, "offset"))


cdef Plane plane_over(vec3 normal, double offset):
    cdef Plane plane = Plane.__new__(Plane)
    if not fabs(v3_dot(normal, normal) - 1.0) < 1e-9:
        raise ValueError("normal must be a unit vector")
    plane._set(normal, offset)
    return plane


@cython.final
cdef class ConvexHull(Shape):
    """The convex hull of some points.

    Parameters
    ----------
    points : (n, 3) array of floats
        Metres. The hull may have at most 255 vertices.
    solid : bool, default False
        Raise ValueError for points that span no solid. Otherwise they make a polygon, a segment or
        a point, which works like any hull, from both sides.

    Attributes
    ----------
    tables : HullTables
        Corners, edges, faces and their neighbours: of the hull at scale 1, shared by all its
        scales.

    Raises
    ------
    ValueError
        If `points` is empty, not (n, 3), not finite, too large or has more than 255 corners; with
        `solid`, if all points coincide or lie in one line or plane.

    Examples
    --------
    >>> from pycct import ConvexHull
    >>> hull = ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)], solid=True)
    >>> len(hull.vertices), hull.dimension, hull.tables.faces[0]
    (4, 3, (0, 1, 2))
    """

    def __init__(self, points, solid=False):
        cdef HullTables tables = build_hull(points)
        if solid and tables.data.dimension < 3:
            how = ("all coincide", "lie on one line", "lie in one plane")[tables.data.dimension]
            raise ValueError(f"points must span a solid, but they {how}")
        self.fresh()
        self._set(tables, v3(1.0, 1.0, 1.0))
        _sized(v3_max_abs(v3_max(v3_neg(self.bounds_.lo), self.bounds_.hi)), "points")

    cdef int _set(self, HullTables tables, vec3 scale) except -1:
        cdef int32_t i
        cdef vec3 p
        self.tables = tables
        self.scale_ = scale
        p = v3_mul(v3_load(tables.data.vertices), scale)
        self.bounds_ = box_of(p, p)
        for i in range(tables.data.n_vertices):
            p = v3_mul(v3_load(tables.data.vertices + 3 * i), scale)
            self.bounds_ = box_union(self.bounds_, box_of(p, p))
        self.kind = SHAPE_HULL
        return 0

    cdef const hull_data* hull(self) noexcept:
        return NULL if self.tables is None else &(<HullTables>self.tables).data

    cdef const hull_data* _tables(self) except NULL:
        if self.tables is None:
            raise RuntimeError("the ConvexHull was never initialised")
        return &(<HullTables>self.tables).data

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
        cdef vec3 s = as_vec3(scale, "scale")
        cdef ConvexHull other = ConvexHull.__new__(ConvexHull)
        if self.tables is None:
            raise RuntimeError("the hull was not initialised: call ConvexHull.__init__")
        other._set(self.tables, v3_mul(self.scale_, s))
        _sized(v3_max_abs(v3_max(v3_neg(other.bounds_.lo), other.bounds_.hi)), "scale")
        return other

    @property
    def scale(self):
        """Factors along the axes."""
        return from_vec3(self.scale_)

    @property
    def dimension(self):
        """0 point, 1 segment, 2 polygon, 3 solid; a factor of zero counts in `scale`, not here."""
        return self._tables().dimension

    @property
    def vertices(self):
        """Vertices of the hull, scaled, (n, 3) array, metres."""
        cdef const hull_data* h = self._tables()
        cdef double[:, ::1] out
        cdef int32_t i
        cdef vec3 p
        result = np.empty((h.n_vertices, 3))
        out = result
        for i in range(h.n_vertices):
            p = v3_mul(v3_load(h.vertices + 3 * i), self.scale_)
            out[i, 0], out[i, 1], out[i, 2] = p.x, p.y, p.z
        return result

    def __repr__(self):
        return f"ConvexHull(<{0 if self.tables is None else self._tables().n_vertices} vertices>)"

    def __reduce__(self):
        # By its tables: a hull of its corners alone could have other faces.
        self._tables()
        return _hull_of_record, (hull_record(self.tables), from_vec3(self.scale_))


def _hull_of_record(record, scale):
    dimension, vertices, planes, starts, corners, extent = record
    return hull_over(hull_again(dimension, vertices, planes, starts, corners, extent), as_vec3(scale, "scale"))


cdef ConvexHull hull_over(HullTables tables, vec3 scale):
    cdef ConvexHull hull = ConvexHull.__new__(ConvexHull)
    hull._set(tables, scale)
    _sized(v3_max_abs(v3_max(v3_neg(hull.bounds_.lo), hull.bounds_.hi)), "points")
    return hull


cdef bint convex_values(Shape s, convex_shape* out) noexcept:
    cdef HullTables tables
    out.kind = s.kind
    out.radius = 0.0
    out.a = out.b = out.c = v3(0.0, 0.0, 0.0)
    out.hull = NULL
    out.extra = NULL
    if s.kind == SHAPE_SPHERE:
        out.radius = s.radius_
    elif s.kind == SHAPE_CAPSULE:
        out.radius = s.radius_
        out.a = v3(0.0, 0.0, -0.5 * s.height_)
        out.b = v3(0.0, 0.0, 0.5 * s.height_)
    elif s.kind == SHAPE_BOX:
        out.a = s.a
    elif s.kind == SHAPE_TRIANGLE:
        out.a, out.b, out.c = s.a, s.b, s.c
    elif s.kind == SHAPE_HULL:
        tables = <HullTables>(<ConvexHull>s).tables
        out.a = (<ConvexHull>s).scale_
        out.hull = &tables.data
        out.extra = &tables.extra
    else:
        return False
    return True
