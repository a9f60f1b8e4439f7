# cython: language_level=3
"""Shapes: immutable values. A scene places them; many scenes and threads may share one."""
import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

cimport cython

from pycct._bvh cimport box32, box32_around, bvh_build, bvh_free
from pycct._closest cimport triangle_normal
from pycct._convert cimport as_positive, as_not_negative, as_float, as_table, as_unit, as_vec3, from_vec3, raise_status
from pycct._hull cimport HullTables, build_hull
from pycct._types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
    STATUS_NO_MEMORY,
    STATUS_OK,
)
from pycct._vec cimport box_of, box_union, v3, v3_is_zero, v3_lex, v3_load, v3_max, v3_min, v3_mul, v3_neg

# Half the side of the box that stands for an endless plane.
cdef double ENDLESS = 1e30


cdef class Shape:
    """Base of all shapes; not made directly."""

    def __cinit__(self):
        # No shape yet: a scene refuses what skipped its __init__.
        self.kind = -1

    def __init__(self):
        if type(self) is Shape:
            raise TypeError("Shape is a base class: use Mesh, Box, Sphere, Capsule, ConvexHull, Plane or Triangle")

    cdef int fresh(self) except -1:
        """A shape is immutable: scenes hold pointers into it."""
        if self.kind >= 0:
            raise TypeError(f"{type(self).__name__} is immutable: __init__ cannot be called again")
        return 0

    cdef const hull_data* hull(self) noexcept:
        return NULL

    cdef const mesh_data* mesh(self) noexcept:
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
        cdef double r = as_positive(radius, "radius")
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
        cdef double r = as_positive(radius, "radius")
        cdef double h = as_not_negative(height, "height")
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
        cdef vec3 h = as_vec3(half_extents, "half_extents")
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
    """A single triangle, seen from the side where its corners run counter-clockwise.

    Parameters
    ----------
    a, b, c : (3,) floats
        Corners, metres. A triangle without area is allowed and touches nothing.
    """

    def __init__(self, a, b, c):
        self.fresh()
        self.a = as_vec3(a, "a")
        self.b = as_vec3(b, "b")
        self.c = as_vec3(c, "c")
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
        self.a = as_unit(normal, "normal")
        self.height_ = as_float(offset, "offset")
        self.kind = SHAPE_PLANE
        self.bounds_ = box_of(v3(-ENDLESS, -ENDLESS, -ENDLESS), v3(ENDLESS, ENDLESS, ENDLESS))

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
        return Plane, (from_vec3(self.a), self.height_)


@cython.final
cdef class ConvexHull(Shape):
    """The convex hull of some points.

    Parameters
    ----------
    points : (n, 3) array of floats
        Metres. The hull may have at most 255 vertices.
    """

    def __init__(self, points):
        self.fresh()
        self._set(build_hull(points), v3(1.0, 1.0, 1.0))

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
        return other

    @property
    def scale(self):
        """Factors along the axes."""
        return from_vec3(self.scale_)

    @property
    def vertices(self):
        """Vertices of the hull, scaled, (n, 3) array, metres."""
        cdef const hull_data* h = self.hull()
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
        return f"ConvexHull(<{self.hull().n_vertices} vertices>)"

    def __reduce__(self):
        return _scaled_hull, (np.asarray(ConvexHull.vertices.__get__(self._unscaled())), from_vec3(self.scale_))

    def _unscaled(self):
        cdef ConvexHull other = ConvexHull.__new__(ConvexHull)
        other._set(self.tables, v3(1.0, 1.0, 1.0))
        return other


def _scaled_hull(points, scale):
    return ConvexHull(points).scaled(scale)


@cython.final
cdef class Mesh(Shape):
    """A triangle mesh; its tree is built once, without the GIL.

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
        cdef double[:, ::1] v
        cdef int32_t[:, ::1] t, kept
        cdef double[:, ::1] normals
        cdef int32_t[::1] source
        cdef int64_t[::1] data
        cdef int status
        self.fresh()
        points = as_table(vertices, "vertices", 3, 1)
        try:
            given = np.asarray(triangles)
        except (TypeError, ValueError, OverflowError):
            raise TypeError("triangles must be an array of integers of shape (m, 3)") from None
        if given.dtype.kind not in "iu":
            raise TypeError(f"triangles must be an array of integers, not {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 3:
            raise ValueError(f"triangles must have shape (m, 3), got {given.shape}")
        if given.shape[0] == 0:
            raise ValueError("triangles must not be empty")
        if given.shape[0] > 2**29 or points.shape[0] > 2**29:
            raise ValueError("a mesh can have at most 2**29 vertices and triangles")
        if int(given.min()) < 0 or int(given.max()) >= points.shape[0]:
            raise ValueError(f"triangles must hold indices from 0 to {points.shape[0] - 1}, "
                             f"got {given.min()} to {given.max()}")
        if not isinstance(two_sided, (bool, np.bool_)):
            raise TypeError(f"two_sided must be True or False, not {type(two_sided).__name__}")
        if triangle_data is not None:
            try:
                extra = np.asarray(triangle_data)
            except (TypeError, ValueError, OverflowError):
                raise TypeError("triangle_data must be an array of integers of shape (m,)") from None
            if extra.dtype.kind not in "iu":
                raise TypeError(f"triangle_data must be an array of integers, not {extra.dtype}")
            if extra.shape != (given.shape[0],):
                raise ValueError(f"triangle_data must have shape ({given.shape[0]},), got {extra.shape}")
            if int(extra.max()) > 2**63 - 1:
                raise ValueError(f"triangle_data must fit into 64 bits with sign, got {extra.max()}")
            self.data_array = np.array(extra, dtype=np.int64, order="C", copy=True)
            data = self.data_array
            self.data_.data = &data[0]
        indices = np.array(given, dtype=np.int32, order="C", copy=True)
        self.given = indices.shape[0]
        leaf_triangles = np.empty_like(indices)
        leaf_normals = np.empty((indices.shape[0], 3))
        leaf_source = np.empty(indices.shape[0], np.int32)
        v, t, kept, normals, source = points, indices, leaf_triangles, leaf_normals, leaf_source
        self.data_.two_sided = bool(two_sided)
        with nogil:
            status = _build_mesh(&self.data_, &v[0, 0], <int32_t>v.shape[0], &t[0, 0], <int32_t>t.shape[0],
                                 &kept[0, 0], &normals[0, 0], &source[0])
        raise_status(status)
        for array in (points, indices, leaf_triangles, leaf_normals, leaf_source):
            array.flags.writeable = False
        self.vertices_ = (points, indices, leaf_triangles, leaf_normals, leaf_source)
        self.bounds_ = self.data_.bounds
        self.kind = SHAPE_MESH

    def __dealloc__(self):
        bvh_free(&self.data_.tree)

    cdef const mesh_data* mesh(self) noexcept:
        return &self.data_

    @property
    def vertices(self):
        """Vertices as given, read-only (n, 3) array, metres."""
        return self.vertices_[0]

    @property
    def triangles(self):
        """Triangles as given, read-only (m, 3) array of vertex indices."""
        return self.vertices_[1]

    @property
    def triangle_data(self):
        """Number of each triangle, or None."""
        return None if self.data_array is None else self.data_array.copy()

    @property
    def two_sided(self):
        """True when triangles are met from both sides."""
        return bool(self.data_.two_sided)

    @property
    def n_degenerate(self):
        """How many of the given triangles have no area and touch nothing."""
        return self.given - self.data_.n_triangles

    @property
    def nbytes(self):
        """Bytes held: geometry and tree."""
        n = sum(a.nbytes for a in self.vertices_) + (0 if self.data_array is None else self.data_array.nbytes)
        return n + self.data_.tree.n_nodes * 64

    def __repr__(self):
        return f"Mesh(<{self.data_.n_vertices} vertices, {self.given} triangles>)"

    def __reduce__(self):
        return Mesh, (self.vertices, self.triangles, self.two_sided, self.triangle_data)


cdef int _build_mesh(mesh_data* m, const double* v, int32_t n_v, const int32_t* t, int32_t n_t,
                     int32_t* kept, double* normals, int32_t* source) noexcept nogil:
    """Rotate, drop the degenerate, build the tree, store in leaf order."""
    cdef int32_t i, j, k, n = 0, first
    cdef int32_t* rotated
    cdef int32_t* origin
    cdef box32* boxes
    cdef vec3[3] p
    cdef vec3 normal
    cdef int status
    m.n_vertices = n_v
    m.vertices = v
    m.triangles = kept
    m.normals = normals
    m.source = source
    m.bounds = box_of(v3_load(v), v3_load(v))
    for i in range(n_v):
        p[0] = v3_load(v + 3 * i)
        m.bounds = box_union(m.bounds, box_of(p[0], p[0]))
    rotated = <int32_t*>malloc(<size_t>n_t * 3 * sizeof(int32_t))
    origin = <int32_t*>malloc(<size_t>n_t * sizeof(int32_t))
    boxes = <box32*>malloc(<size_t>n_t * sizeof(box32))
    status = STATUS_OK
    if rotated == NULL or origin == NULL or boxes == NULL:
        status = STATUS_NO_MEMORY
    else:
        for i in range(n_t):
            for k in range(3):
                p[k] = v3_load(v + 3 * <size_t>t[3 * i + k])
            first = 0
            if v3_lex(p[1], p[first]) < 0:
                first = 1
            if v3_lex(p[2], p[first]) < 0:
                first = 2
            normal = triangle_normal(p[first], p[(first + 1) % 3], p[(first + 2) % 3])
            if v3_is_zero(normal):
                continue
            for k in range(3):
                rotated[3 * n + k] = t[3 * i + (first + k) % 3]
            origin[n] = i
            boxes[n] = box32_around(box_of(v3_min(p[0], v3_min(p[1], p[2])), v3_max(p[0], v3_max(p[1], p[2]))))
            n += 1
        status = bvh_build(&m.tree, boxes, n)
    if status == STATUS_OK:
        m.n_triangles = n
        for i in range(n):
            j = m.tree.order[i]
            for k in range(3):
                kept[3 * i + k] = rotated[3 * j + k]
                p[k] = v3_load(v + 3 * <size_t>rotated[3 * j + k])
            source[i] = origin[j]
            normal = triangle_normal(p[0], p[1], p[2])
            normals[3 * i] = normal.x
            normals[3 * i + 1] = normal.y
            normals[3 * i + 2] = normal.z
        # The triangles now stand in leaf order: no need to look it up.
        free(m.tree.order)
        m.tree.order = NULL
    free(rotated)
    free(origin)
    free(boxes)
    return status
