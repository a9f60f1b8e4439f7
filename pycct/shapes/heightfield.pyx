# cython: language_level=3
"""Heightfields: conversion, tree, samples, and checks of heightfields from files."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t

cimport cython

from pycct.args.values cimport as_bool, as_positive, raise_status, short
from pycct.geometry.types cimport SHAPE_HEIGHTFIELD, SHAPE_MESH
from pycct.geometry.vec cimport vec3
from pycct.shapes.heightfield_cells cimport (
    field_build,
    field_check_tile,
    field_data,
    field_sample,
    field_tile_columns,
)
from pycct.shapes.mesh cimport FARTHEST_VERTEX, Mesh, bytes_at, numbers_per_triangle, span_of
from pycct.shapes.primitives cimport Shape
from pycct.spatial.bvh cimport bvh_free, bvh_node, bvh_verify


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
        if not isinstance(row_axis, str) or row_axis not in ("x", "y"):
            raise ValueError(f"row_axis must be 'x' or 'y', not {short(row_axis)}")
        try:
            dx, dy = spacing
        except TypeError:
            dx = dy = spacing
        except ValueError:
            raise ValueError(f"spacing must be one or two numbers, got {short(spacing)}") from None
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
        self.data_array = numbers_per_triangle(triangle_data, "triangle_data", 2 * shape[0] * shape[1], np.int64)
        self.mask_array = numbers_per_triangle(triangle_mask, "triangle_mask", 2 * shape[0] * shape[1], np.uint32)
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
    f.tree.span = span_of(f.bounds)
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
    return bytes_at(<char*>nodes, n * <Py_ssize_t>sizeof(bvh_node))


cdef object tree_order(Heightfield shape):
    return bytes_at(<char*>shape.data_.tree.order, shape.data_.tree.n_items * <Py_ssize_t>sizeof(int32_t))


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
