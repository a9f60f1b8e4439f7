# cython: language_level=3
"""Shapes: immutable values, which many scenes and threads may share."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport fabs
from libc.stdlib cimport calloc, free, malloc

cimport cython

from pycct.spatial.bvh cimport (
    BVH_LANES,
    box32,
    box32_around,
    bvh_block,
    bvh_build_items,
    bvh_fill_block,
    bvh_free,
    bvh_item,
    bvh_node,
    bvh_verify,
)
from pycct.geometry.closest cimport triangle_normal
from pycct.args.values cimport (
    as_bool,
    as_float,
    as_not_negative,
    as_positive,
    as_table,
    as_unit,
    as_vec3,
    from_vec3,
    raise_status,
)
from pycct.shapes.heightfield_cells cimport (
    field_build,
    field_check_tile,
    field_data,
    field_sample,
    field_tile_columns,
)
from pycct.convex.hull cimport HullTables, build_hull, hull_again, hull_record
from pycct.runtime.thread_pool cimport pool_run, pool_threads
from pycct.geometry.types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HEIGHTFIELD,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
    STATUS_NO_MEMORY,
    STATUS_OK,
)
from pycct.geometry.vec cimport (
    box_of,
    box_union,
    v3,
    v3_abs,
    v3_dot,
    v3_is_zero,
    v3_lex,
    v3_load,
    v3_max,
    v3_max_abs,
    v3_min,
    v3_mul,
    v3_neg,
)

# Half the side of the box that replaces an endless plane.
cdef double ENDLESS = 1e30
# The tree's boxes are float32.
cdef double FARTHEST_VERTEX = 1e30
# Triangles of one portion for a thread.
cdef int64_t CHUNK = 8192


cdef object _numbers(object values, str name, int32_t n, object dtype):
    """Return one integer per triangle, copied; None stays None."""
    if values is None:
        return None
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of integers of shape ({n},)") from None
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an array of integers, not {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {given.shape}")
    limits = np.iinfo(dtype)
    if n and not (limits.min <= int(given.min()) and int(given.max()) <= limits.max):
        raise ValueError(f"{name} must hold numbers from {limits.min} to {limits.max}, "
                         f"got {given.min()} to {given.max()}")
    array = np.array(given, dtype=dtype, order="C", copy=True)
    array.flags.writeable = False
    return array


cdef int _not_empty(object values, str name) except -1:
    """Check that a mesh has at least one vertex or triangle."""
    given = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.ndim > 0)
    if given and len(values) == 0:
        raise ValueError(f"{name} must not be empty: a mesh needs at least one triangle")
    return 0


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


@cython.final
cdef class Mesh(Shape):
    """A triangle mesh; its tree is built once, without the GIL.

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
        Layers of each triangle, 32 bits. A query or character sees a triangle if its mask shares a
        bit with the actor's layer and with the triangle's (SWEEP 3.2).
    threads : int
        Largest number of threads that build the tree; the tree is the same for any number.

    Examples
    --------
    A floor of two triangles with a number each:

    >>> from pycct import Mesh
    >>> corners = [(0, 0, 0), (4, 0, 0), (4, 4, 0), (0, 4, 0)]
    >>> floor = Mesh(corners, [(0, 1, 2), (0, 2, 3)], triangle_data=[10, 11])
    >>> floor.triangle_count, floor.bounds
    (2, ((0.0, 0.0, 0.0), (4.0, 4.0, 0.0)))
    """

    def __init__(self, vertices, triangles, two_sided=False, triangle_data=None, triangle_mask=None, *, threads=1):
        cdef double[:, ::1] v
        cdef int32_t[:, ::1] t, kept
        cdef double[:, ::1] normals
        cdef int32_t[::1] source
        cdef uint8_t[::1] blocks
        cdef const int64_t[::1] data
        cdef const uint32_t[::1] masks
        cdef int status, many = pool_threads(threads)
        self.fresh()
        _not_empty(vertices, "vertices")
        _not_empty(triangles, "triangles")
        points = as_table(vertices, "vertices", 3, 1)
        try:
            given = np.asarray(triangles)
        except (TypeError, ValueError, OverflowError):
            raise TypeError("triangles must be an array of integers of shape (m, 3)") from None
        if given.dtype.kind not in "iu":
            raise TypeError(f"triangles must be an array of integers, not {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 3:
            raise ValueError(f"triangles must have shape (m, 3), got {given.shape}")
        _not_empty(given, "triangles")
        if given.shape[0] > 2**29 or points.shape[0] > 2**29:
            raise ValueError("a mesh can have at most 2**29 vertices and triangles")
        if int(given.min()) < 0 or int(given.max()) >= points.shape[0]:
            raise ValueError(f"triangles must hold indices from 0 to {points.shape[0] - 1}, "
                             f"got {given.min()} to {given.max()}")
        if np.abs(points).max() > FARTHEST_VERTEX:
            raise ValueError(f"vertices must lie within {FARTHEST_VERTEX:g} m of the origin")
        self.data_.two_sided = as_bool(two_sided, "two_sided")
        self.data_array = _numbers(triangle_data, "triangle_data", given.shape[0], np.int64)
        self.mask_array = _numbers(triangle_mask, "triangle_mask", given.shape[0], np.uint32)
        if self.data_array is not None:
            data = self.data_array
            self.data_.data = &data[0]
        if self.mask_array is not None:
            masks = self.mask_array
            self.data_.mask = &masks[0]
        indices = np.array(given, dtype=np.int32, order="C", copy=True)
        self.data_.n_given = indices.shape[0]
        leaf_triangles = np.empty_like(indices)
        leaf_normals = np.empty((indices.shape[0], 3))
        leaf_source = np.empty(indices.shape[0], np.int32)
        leaf_blocks = np.empty((indices.shape[0] + BVH_LANES - 1) // BVH_LANES * sizeof(bvh_block), np.uint8)
        v, t, kept, normals, source, blocks = points, indices, leaf_triangles, leaf_normals, leaf_source, leaf_blocks
        with nogil:
            status = _build_mesh(&self.data_, &v[0, 0], <int32_t>v.shape[0], &t[0, 0], <int32_t>t.shape[0],
                                 &kept[0, 0], &normals[0, 0], &source[0], <bvh_block*>&blocks[0], many)
        raise_status(status)
        self.vertices_ = (points, indices, leaf_triangles, leaf_normals, leaf_source, leaf_blocks)
        for array in self.vertices_:
            array.flags.writeable = False
        self.bounds_ = self.data_.bounds
        self.kind = SHAPE_MESH

    def __dealloc__(self):
        if not self.borrowed:
            bvh_free(&self.data_.tree)

    cdef const mesh_data* mesh(self) noexcept:
        return &self.data_

    @property
    def vertices(self):
        """Vertices of the input, read-only (n, 3) array, metres."""
        return self.vertices_[0]

    @property
    def triangles(self):
        """Triangles of the input, read-only (m, 3) array of vertex indices."""
        return self.vertices_[1]

    @property
    def triangle_data(self):
        """Number of each triangle, or None."""
        return None if self.data_array is None else self.data_array.copy()

    @property
    def triangle_mask(self):
        """Layers of each triangle, or None."""
        return None if self.mask_array is None else self.mask_array.copy()

    @property
    def two_sided(self):
        """Whether triangles are solid from both sides."""
        return bool(self.data_.two_sided)

    @property
    def triangle_count(self):
        """Number of triangles of the input."""
        return self.data_.n_given

    @property
    def n_degenerate(self):
        """Number of triangles without area, which touch nothing."""
        return self.data_.n_given - self.data_.n_triangles

    @property
    def mapped(self):
        """Whether the mesh is mapped from a file of `Scene.load`, whose pages processes share."""
        return bool(self.borrowed)

    @property
    def nbytes(self):
        """Bytes of geometry and tree."""
        n = sum(a.nbytes for a in (*self.vertices_, self.data_array, self.mask_array) if a is not None)
        return n + self.data_.tree.n_nodes * sizeof(bvh_node)

    def __repr__(self):
        return f"Mesh(<{self.data_.n_vertices} vertices, {self.data_.n_given} triangles>)"

    def __reduce__(self):
        return Mesh, (self.vertices, self.triangles, self.two_sided, self.triangle_data, self.triangle_mask)


@cython.final
cdef class Heightfield(Shape):
    """A terrain over a grid of heights; its triangles are made on demand.

    Local z points up. Sample (i, j), in row i and column j, is at ``(i * spacing[0], j *
    spacing[1], heights[i, j])`` if ``row_axis`` is 'x' (rows follow one another along x), and at
    ``(j * spacing[0], i * spacing[1], heights[i, j])`` if it is 'y' (the layout of an image). The
    origin is sample (0, 0).

    Cell (i, j) is between the samples (i, j) and (i + 1, j + 1). Its number is ``i * (columns - 1)
    + j``, and its triangles are ``2 * number`` and ``2 * number + 1``. With diagonal 0 the cell is
    cut from (i, j) to (i + 1, j + 1), and the first triangle is the one with sample (i + 1, j).
    With diagonal 1 it is cut from (i + 1, j) to (i, j + 1), and the first triangle is the one with
    sample (i, j). Triangles face up and are solid from above only, unless two-sided.

    Parameters
    ----------
    heights : (rows, columns) array of floats
        Metres, at least 2 by 2; copied.
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

    Examples
    --------
    >>> from pycct import Heightfield, Scene
    >>> hill = Heightfield([[0, 0, 0], [0, 1, 0], [0, 0, 0]], spacing=2.0)
    >>> scene = Scene()
    >>> actor = scene.add(hill)
    >>> hit = scene.raycast((2, 2, 5), (0, 0, -1), 10)
    >>> round(hit.distance, 6), hill.triangle_count
    (4.0, 8)
    """

    def __init__(self, heights, spacing=1.0, *, row_axis="x", diagonal=0, holes=None, two_sided=False,
                 triangle_data=None, triangle_mask=None):
        cdef double[:, ::1] h
        cdef const uint8_t[:, ::1] c
        cdef const int64_t[::1] data
        cdef const uint32_t[::1] masks
        cdef int status
        self.fresh()
        try:
            given = np.asarray(heights)
        except (TypeError, ValueError, OverflowError):
            raise TypeError("heights must be an array of real numbers of shape (rows, columns)") from None
        if given.dtype.kind not in "fiu":
            raise TypeError(f"heights must be an array of real numbers, not {given.dtype}")
        if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 2:
            raise ValueError(f"heights must have shape (rows, columns), 2 by 2 at least, got {given.shape}")
        if given.shape[0] * given.shape[1] > 2**29:
            raise ValueError("heights can have at most 2**29 samples")
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
        dx = as_positive(dx, "spacing")
        dy = as_positive(dy, "spacing")
        if dx * max(table.shape) > FARTHEST_VERTEX or dy * max(table.shape) > FARTHEST_VERTEX:
            raise ValueError(f"spacing must keep the samples within {FARTHEST_VERTEX:g} m of the origin")
        shape = (table.shape[0] - 1, table.shape[1] - 1)
        cut = np.asarray(diagonal)
        if cut.dtype.kind not in "iub":
            raise TypeError(f"diagonal must be 0 or 1, or an array of those, not {cut.dtype}")
        if cut.shape not in ((), shape):
            raise ValueError(f"diagonal must be one number or have shape {shape}, got {cut.shape}")
        if not np.isin(cut, (0, 1)).all():
            raise ValueError("diagonal must be 0 or 1 for each cell")
        self.data_.rows, self.data_.columns = table.shape
        self.data_.rows_along_y = row_axis == "y"
        self.data_.row_step, self.data_.column_step = (dy, dx) if row_axis == "y" else (dx, dy)
        self.data_.two_sided = as_bool(two_sided, "two_sided")
        if holes is not None:
            gone = np.asarray(holes)
            if gone.dtype.kind != "b":
                raise TypeError(f"holes must be an array of bool, not {gone.dtype}")
            if gone.shape != shape:
                raise ValueError(f"holes must have shape {shape}, got {gone.shape}")
        if cut.shape == () and holes is None:
            self.data_.diagonal = int(cut)
        else:
            cells = np.zeros(shape, np.uint8)
            cells |= cut.astype(np.uint8)
            if holes is not None:
                cells |= gone.astype(np.uint8) << np.uint8(1)
            cells.flags.writeable = False
            self.cells_ = cells
            c = cells
            self.data_.cells = &c[0, 0]
        self.data_array = _numbers(triangle_data, "triangle_data", 2 * shape[0] * shape[1], np.int64)
        self.mask_array = _numbers(triangle_mask, "triangle_mask", 2 * shape[0] * shape[1], np.uint32)
        if self.data_array is not None:
            data = self.data_array
            self.data_.data = &data[0]
        if self.mask_array is not None:
            masks = self.mask_array
            self.data_.mask = &masks[0]
        h = table
        self.data_.heights = &h[0, 0]
        with nogil:
            status = field_build(&self.data_)
        raise_status(status)
        table.flags.writeable = False
        self.heights_ = table
        self.bounds_ = self.data_.bounds
        self.kind = SHAPE_HEIGHTFIELD

    def __dealloc__(self):
        if not self.borrowed:
            bvh_free(&self.data_.tree)

    cdef const field_data* field(self) noexcept:
        return &self.data_

    @property
    def heights(self):
        """Heights of the input, read-only (rows, columns) array, metres."""
        return self.heights_

    @property
    def spacing(self):
        """Distance of the samples along x and along y, metres."""
        if self.data_.rows_along_y:
            return self.data_.column_step, self.data_.row_step
        return self.data_.row_step, self.data_.column_step

    @property
    def triangle_count(self):
        """Two per cell, holes included."""
        return 2 * (self.data_.rows - 1) * (self.data_.columns - 1)

    @property
    def row_axis(self):
        """'x' or 'y': axis along which the rows follow one another."""
        return "y" if self.data_.rows_along_y else "x"

    @property
    def diagonal(self):
        """0 or 1, or one of them per cell."""
        return self.data_.diagonal if self.cells_ is None else self.cells_ & np.uint8(1)

    @property
    def holes(self):
        """Cells without triangles, (rows - 1, columns - 1) array of bool."""
        if self.cells_ is None:
            return np.zeros((self.data_.rows - 1, self.data_.columns - 1), bool)
        return (self.cells_ & np.uint8(2)) != 0

    @property
    def two_sided(self):
        """Whether triangles are solid from both sides."""
        return bool(self.data_.two_sided)

    @property
    def triangle_data(self):
        """Number of each triangle, or None."""
        return None if self.data_array is None else self.data_array.copy()

    @property
    def triangle_mask(self):
        """Layers of each triangle, or None."""
        return None if self.mask_array is None else self.mask_array.copy()

    @property
    def mapped(self):
        """Whether the heightfield is mapped from a file of `Scene.load`, as for `Mesh`."""
        return bool(self.borrowed)

    @property
    def nbytes(self):
        """Bytes of heights, tables and tree."""
        n = sum(a.nbytes for a in (self.heights_, self.cells_, self.data_array, self.mask_array) if a is not None)
        return n + self.data_.tree.n_nodes * sizeof(bvh_node) + self.data_.tree.n_items * sizeof(int32_t)

    def sample(self, x, y):
        """Height and normal of the surface above places of the field's own frame.

        Parameters
        ----------
        x, y : float, or (...) arrays of floats of one shape
            Metres from sample (0, 0).

        Returns
        -------
        height : float or (...) array of float64
            Metres: on the triangle above the place; NaN outside of the field and in holes.
        normal : (float, float, float) or (..., 3) array of float64
            Of that triangle, upwards; zero outside of the field and in holes.

        Raises
        ------
        TypeError, ValueError
            For arrays that are not of numbers, not finite, or do not fit each other.
        """
        cdef const double[::1] xs, ys
        cdef double[::1] h
        cdef double[:, ::1] n
        cdef double low
        cdef vec3 up
        cdef Py_ssize_t i, count
        given = []
        for name, value in (("x", x), ("y", y)):
            array = np.asarray(value)
            if array.dtype.kind not in "fiu":
                raise TypeError(f"{name} must be a number or an array of numbers, not {array.dtype}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite")
            given.append(array)
        try:
            shape = np.broadcast_shapes(given[0].shape, given[1].shape)
        except ValueError:
            raise ValueError(f"x and y must have one shape, got {given[0].shape} and {given[1].shape}") from None
        flat = [np.ascontiguousarray(np.broadcast_to(array, shape), np.float64).reshape(-1) for array in given]
        xs, ys = flat
        count = xs.shape[0]
        heights, normals = np.full(count, np.nan), np.zeros((count, 3))
        h, n = heights, normals
        with nogil:
            for i in range(count):
                if field_sample(&self.data_, xs[i], ys[i], &low, &up):
                    h[i] = low
                    n[i, 0], n[i, 1], n[i, 2] = up.x, up.y, up.z
        if shape == ():
            return float(heights[0]), tuple(normals[0].tolist())
        return heights.reshape(shape), normals.reshape(shape + (3,))

    def to_mesh(self):
        """The same surface as a `Mesh` with the same numbering; holes are triangles without area.

        Returns
        -------
        Mesh
        """
        rows, columns = self.data_.rows, self.data_.columns
        i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
        dx, dy = self.spacing
        x, y = (j, i) if self.data_.rows_along_y else (i, j)
        points = np.stack([x * dx, y * dy, self.heights_], -1).reshape(-1, 3)
        first = (i[:-1, :-1] * columns + j[:-1, :-1])
        corner = np.stack([first, first + columns, first + columns + 1, first + 1], -1)
        cut = np.broadcast_to(np.asarray(self.diagonal, dtype=bool), first.shape)[..., None]
        one = np.where(cut, corner[..., [0, 1, 3]], corner[..., [0, 1, 2]])
        two = np.where(cut, corner[..., [1, 2, 3]], corner[..., [0, 2, 3]])
        if self.data_.rows_along_y:
            one, two = one[..., ::-1], two[..., ::-1]
        gone = self.holes[..., None]
        one, two = np.where(gone, first[..., None], one), np.where(gone, first[..., None], two)
        triangles = np.stack([one, two], 2).reshape(-1, 3)
        return Mesh(points, triangles, self.two_sided, self.data_array, self.mask_array)

    def __repr__(self):
        return f"Heightfield(<{self.data_.rows} x {self.data_.columns} samples>, {self.spacing})"

    def __reduce__(self):
        options = {"row_axis": self.row_axis, "diagonal": self.diagonal, "two_sided": self.two_sided,
                   "holes": None if self.cells_ is None else self.holes, "triangle_data": self.triangle_data,
                   "triangle_mask": self.triangle_mask}
        return _heightfield, (np.asarray(self.heights_), self.spacing, options)


def _heightfield(heights, spacing, options):
    return Heightfield(heights, spacing, **options)


# A mesh under construction.
cdef struct mesh_job:
    mesh_data* m
    const int32_t* given        # (n, 3)
    bvh_item* items             # one per triangle: its number, and as mark its first corner, -1: without area
    int32_t* kept               # future arrays of mesh_data
    double* normals
    int32_t* source
    bvh_block* blocks


cdef void _prepare(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Find the first corner and the bounds of each triangle."""
    cdef mesh_job* job = <mesh_job*>context
    cdef vec3[3] p
    cdef box32 box
    cdef int64_t i
    cdef int32_t k, start
    for i in range(first, last):
        for k in range(3):
            p[k] = v3_load(job.m.vertices + 3 * <size_t>job.given[3 * i + k])
        start = 0
        if v3_lex(p[1], p[start]) < 0:
            start = 1
        if v3_lex(p[2], p[start]) < 0:
            start = 2
        if v3_is_zero(triangle_normal(p[start], p[(start + 1) % 3], p[(start + 2) % 3])):
            job.items[i].mark = -1
            continue
        box = box32_around(box_of(v3_min(p[0], v3_min(p[1], p[2])), v3_max(p[0], v3_max(p[1], p[2]))))
        for k in range(3):
            job.items[i].lo[k] = box.lo[k]
            job.items[i].hi[k] = box.hi[k]
        job.items[i].number = <int32_t>i
        job.items[i].mark = start


cdef void _store(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """Store the data of moves in the order of the leaves."""
    cdef mesh_job* job = <mesh_job*>context
    cdef vec3[3] p
    cdef vec3 normal
    cdef const int32_t* given
    cdef int64_t i
    cdef int32_t k, start
    for i in range(first, last):
        given = job.given + 3 * <size_t>job.items[i].number
        start = job.items[i].mark
        for k in range(3):
            job.kept[3 * i + k] = given[(start + k) % 3]
            p[k] = v3_load(job.m.vertices + 3 * <size_t>given[(start + k) % 3])
        job.source[i] = job.items[i].number
        normal = triangle_normal(p[0], p[1], p[2])
        job.normals[3 * i] = normal.x
        job.normals[3 * i + 1] = normal.y
        job.normals[3 * i + 2] = normal.z


cdef void _store_blocks(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    """The same triangles again, as blocks."""
    cdef mesh_job* job = <mesh_job*>context
    cdef vec3[3 * BVH_LANES] corners
    cdef const int32_t* kept
    cdef int64_t i
    cdef int k, n
    for i in range(first, last):
        n = <int>(job.m.n_triangles - BVH_LANES * i)
        n = BVH_LANES if n > BVH_LANES else n
        kept = job.kept + 3 * BVH_LANES * <size_t>i
        for k in range(3 * n):
            corners[k] = v3_load(job.m.vertices + 3 * <size_t>kept[k])
        bvh_fill_block(&job.blocks[i], corners, n)


cdef int _build_mesh(mesh_data* m, const double* v, int32_t n_v, const int32_t* t, int32_t n_t, int32_t* kept,
                     double* normals, int32_t* source, bvh_block* blocks, int threads) noexcept nogil:
    """Rotate, drop the degenerate, build the tree, store in leaf order."""
    cdef mesh_job job
    cdef vec3 p
    cdef int32_t i, n = 0
    cdef int status
    m.n_vertices = n_v
    m.vertices = v
    m.triangles = kept
    m.normals = normals
    m.source = source
    m.given = t
    m.blocks = blocks
    m.bounds = box_of(v3_load(v), v3_load(v))
    for i in range(n_v):
        p = v3_load(v + 3 * <size_t>i)
        m.bounds = box_union(m.bounds, box_of(p, p))
    job.m = m
    job.given = t
    job.kept = kept
    job.normals = normals
    job.source = source
    job.blocks = blocks
    job.items = <bvh_item*>malloc(<size_t>n_t * sizeof(bvh_item))
    if job.items == NULL:
        return STATUS_NO_MEMORY
    pool_run(_prepare, &job, n_t, CHUNK, threads)
    for i in range(n_t):
        if job.items[i].mark >= 0:
            if n < i:
                job.items[n] = job.items[i]
            n += 1
    status = bvh_build_items(&m.tree, job.items, n, threads)
    if status == STATUS_OK:
        m.n_triangles = n
        pool_run(_store, &job, n, CHUNK, threads)
        pool_run(_store_blocks, &job, (n + BVH_LANES - 1) // BVH_LANES, CHUNK // BVH_LANES, threads)
    free(job.items)
    return status


cdef inline bint _vertex_ok(const mesh_data* m, int32_t i) noexcept nogil:
    cdef const double* v
    if not 0 <= i < m.n_vertices:
        return False
    v = m.vertices + 3 * <Py_ssize_t>i
    # NaN is not inside.
    return ((m.bounds.lo.x <= v[0]) & (v[0] <= m.bounds.hi.x) & (m.bounds.lo.y <= v[1]) & (v[1] <= m.bounds.hi.y)
            & (m.bounds.lo.z <= v[2]) & (v[2] <= m.bounds.hi.z))


cdef bint _check_triangle(const void* mesh, int32_t place) noexcept nogil:
    """The bvh_check of a mesh's tree: reject triangles with invalid data."""
    cdef const mesh_data* m = <const mesh_data*>mesh
    cdef const int32_t* t = m.triangles + 3 * <Py_ssize_t>place
    cdef const double* n = m.normals + 3 * <Py_ssize_t>place
    return (0 <= m.source[place] < m.n_given and _vertex_ok(m, t[0]) and _vertex_ok(m, t[1]) and _vertex_ok(m, t[2])
            and fabs(n[0] * n[0] + n[1] * n[1] + n[2] * n[2] - 1.0) < 1e-9)


cdef double _span_of(aabb bounds) noexcept:
    """No box of a tree over these bounds reaches farther out."""
    return 1.000001 * v3_max_abs(v3_max(v3_abs(bounds.lo), v3_abs(bounds.hi))) + 1e-30


cdef Mesh mesh_over(tuple arrays, object nodes, object data, object mask, bint two_sided, aabb bounds):
    cdef Mesh mesh = Mesh.__new__(Mesh)
    cdef mesh_data* m = &mesh.data_
    cdef const double[:, ::1] v = arrays[0], normals = arrays[3]
    cdef const int32_t[:, ::1] leaf = arrays[2], given = arrays[1]
    cdef const int32_t[::1] source = arrays[4]
    cdef const uint8_t[::1] bytes_
    cdef const uint8_t[::1] blocks
    cdef const int64_t[::1] d
    cdef const uint32_t[::1] k
    mesh.borrowed = True
    mesh.vertices_ = arrays
    mesh.nodes_ = nodes
    mesh.data_array = data
    mesh.mask_array = mask
    m.n_vertices = <int32_t>v.shape[0]
    m.n_given = <int32_t>len(arrays[1])
    m.n_triangles = m.tree.n_items = <int32_t>leaf.shape[0]
    m.two_sided = two_sided
    m.bounds = mesh.bounds_ = bounds
    m.vertices = &v[0, 0]
    if m.n_triangles > 0:
        bytes_ = nodes
        blocks = arrays[5]
        m.blocks = <const bvh_block*>&blocks[0]
        m.triangles = &leaf[0, 0]
        m.normals = &normals[0, 0]
        m.source = &source[0]
        m.given = &given[0, 0]
        m.tree.nodes = <bvh_node*>&bytes_[0]
        m.tree.n_nodes = <int32_t>(bytes_.shape[0] // sizeof(bvh_node))
    if data is not None:
        d = data
        m.data = &d[0]
    if mask is not None:
        k = mask
        m.mask = &k[0]
    m.tree.span = _span_of(bounds)
    m.tree.check = _check_triangle
    m.tree.owner = m
    mesh.kind = SHAPE_MESH
    return mesh


cdef Heightfield field_over(object heights, object cells, object nodes, object order, object data, object mask,
                            field_data field):
    cdef Heightfield made = Heightfield.__new__(Heightfield)
    cdef field_data* f = &made.data_
    cdef const double[:, ::1] h = heights
    cdef const uint8_t[:, ::1] c
    cdef const uint8_t[::1] bytes_ = nodes
    cdef const int32_t[::1] places = order
    cdef const int64_t[::1] d
    cdef const uint32_t[::1] k
    made.borrowed = True
    made.heights_ = heights
    made.cells_ = cells
    made.nodes_ = nodes
    made.order_ = order
    made.data_array = data
    made.mask_array = mask
    f[0] = field
    f.tile_columns = field_tile_columns(f.columns)
    f.heights = &h[0, 0]
    f.cells = NULL
    f.data = NULL
    f.mask = NULL
    if cells is not None:
        c = cells
        f.cells = &c[0, 0]
    if data is not None:
        d = data
        f.data = &d[0]
    if mask is not None:
        k = mask
        f.mask = &k[0]
    f.checked = True
    f.tree.n_nodes = <int32_t>(bytes_.shape[0] // sizeof(bvh_node))
    f.tree.n_items = <int32_t>places.shape[0]
    f.tree.nodes = <bvh_node*>&bytes_[0]
    f.tree.order = <int32_t*>&places[0]
    f.tree.span = _span_of(f.bounds)
    f.tree.check = field_check_tile
    f.tree.owner = f
    made.bounds_ = f.bounds
    made.kind = SHAPE_HEIGHTFIELD
    return made


cdef object tree_nodes(Shape shape):
    cdef const bvh_node* nodes
    cdef int32_t n
    if shape.kind == SHAPE_MESH:
        nodes, n = (<Mesh>shape).data_.tree.nodes, (<Mesh>shape).data_.tree.n_nodes
    else:
        nodes, n = (<Heightfield>shape).data_.tree.nodes, (<Heightfield>shape).data_.tree.n_nodes
    return _bytes_at(<char*>nodes, n * <Py_ssize_t>sizeof(bvh_node))


cdef object tree_order(Heightfield shape):
    return _bytes_at(<char*>shape.data_.tree.order, shape.data_.tree.n_items * <Py_ssize_t>sizeof(int32_t))


cdef object _bytes_at(char* at, Py_ssize_t n):
    return PyMemoryView_FromMemory(at, n, PyBUF_READ) if n > 0 else memoryview(b"")


cdef bint mesh_sound(Mesh mesh) except -1:
    cdef const mesh_data* m = &mesh.data_
    cdef const int32_t[:, ::1] given = mesh.vertices_[1]
    cdef const int32_t[::1] source = mesh.vertices_[4]
    cdef Py_ssize_t i, k
    cdef int sound = 1
    cdef char* seen = NULL
    with nogil:
        for i in range(given.shape[0]):
            for k in range(3):
                if not _vertex_ok(m, given[i, k]):
                    sound = 0
        if sound == 1:
            sound = bvh_verify(&m.tree)
        if sound == 1:
            seen = <char*>calloc(m.n_given, 1)
            if seen == NULL:
                sound = STATUS_NO_MEMORY
            else:
                for i in range(source.shape[0]):
                    if seen[source[i]]:
                        sound = 0
                    seen[source[i]] = 1
                free(seen)
    raise_status(sound)
    return sound == 1 and np.isfinite(mesh.vertices_[0]).all()


cdef bint field_sound(Heightfield field) except -1:
    cdef const field_data* f = &field.data_
    cdef const double[:, ::1] h = field.heights_
    cdef Py_ssize_t i, j
    cdef int sound
    with nogil:
        sound = bvh_verify(&f.tree)
        for i in range(h.shape[0]):
            for j in range(h.shape[1]):
                if not f.bounds.lo.z <= h[i, j] <= f.bounds.hi.z:
                    sound = 0 if sound > 0 else sound
    raise_status(sound)
    return sound == 1 and (field.cells_ is None or int(field.cells_.max()) <= 3)


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
