# cython: language_level=3
"""Triangle meshes: conversion, tree, and checks of meshes from files."""
import numpy as np

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

cimport cython

from pycct.args.values cimport as_bool, as_table, raise_status
from pycct.geometry.closest cimport triangle_normal
from pycct.geometry.types cimport SHAPE_MESH, STATUS_NO_MEMORY, STATUS_OK
from pycct.geometry.vec cimport (
    aabb,
    box_of,
    box_union,
    v3_abs,
    v3_is_zero,
    v3_lex,
    v3_load,
    v3_max,
    v3_max_abs,
    v3_min,
    vec3,
)
from pycct.runtime.thread_pool cimport pool_run, pool_threads
from pycct.shapes.primitives cimport Shape, mesh_data
from pycct.shapes.shared_edges cimport mark_shared_edges
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


# The tree's boxes are float32.
cdef double FARTHEST_VERTEX = 1e30
# Triangles of one portion for a thread.
cdef int64_t CHUNK = 8192


cdef object numbers_per_triangle(object values, str name, int32_t n, object dtype):
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
        cdef int32_t[:, ::1] t, leaf_corners
        cdef double[:, ::1] normals
        cdef int32_t[::1] source
        cdef uint8_t[::1] blocks, shared
        cdef const int64_t[::1] data
        cdef const uint32_t[::1] masks
        cdef int status, n_threads = pool_threads(threads)
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
        self.data_array = numbers_per_triangle(triangle_data, "triangle_data", given.shape[0], np.int64)
        self.mask_array = numbers_per_triangle(triangle_mask, "triangle_mask", given.shape[0], np.uint32)
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
        # A mask hides neighbours, so that shared edges mean nothing.
        leaf_shared = None if self.mask_array is not None else np.zeros(indices.shape[0], np.uint8)
        shared = leaf_shared
        v, t, leaf_corners, normals = points, indices, leaf_triangles, leaf_normals
        source, blocks = leaf_source, leaf_blocks
        with nogil:
            status = _build_mesh(&self.data_, &v[0, 0], <int32_t>v.shape[0], &t[0, 0], <int32_t>t.shape[0],
                                 &leaf_corners[0, 0], &normals[0, 0], &source[0], <bvh_block*>&blocks[0], n_threads)
            if status == STATUS_OK and shared is not None:
                status = mark_shared_edges(&self.data_, &shared[0])
        raise_status(status)
        self.vertices_ = (points, indices, leaf_triangles, leaf_normals, leaf_source, leaf_blocks)
        self.shared_ = leaf_shared
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
        n = sum(a.nbytes for a in (*self.vertices_, self.shared_, self.data_array, self.mask_array) if a is not None)
        return n + self.data_.tree.n_nodes * sizeof(bvh_node)

    def __repr__(self):
        return f"Mesh(<{self.data_.n_vertices} vertices, {self.data_.n_given} triangles>)"

    def __reduce__(self):
        return Mesh, (self.vertices, self.triangles, self.two_sided, self.triangle_data, self.triangle_mask)


# A mesh under construction.
cdef struct mesh_job:
    mesh_data* m
    const int32_t* given        # (n, 3)
    bvh_item* items             # one per triangle: its number, and as mark its first corner, -1: without area
    int32_t* leaf_corners               # future arrays of mesh_data
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
            job.leaf_corners[3 * i + k] = given[(start + k) % 3]
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
    cdef const int32_t* leaf_corners
    cdef int64_t i
    cdef int k, n
    for i in range(first, last):
        n = <int>(job.m.n_triangles - BVH_LANES * i)
        n = BVH_LANES if n > BVH_LANES else n
        leaf_corners = job.leaf_corners + 3 * BVH_LANES * <size_t>i
        for k in range(3 * n):
            corners[k] = v3_load(job.m.vertices + 3 * <size_t>leaf_corners[k])
        bvh_fill_block(&job.blocks[i], corners, n)


cdef int _build_mesh(mesh_data* m, const double* v, int32_t n_v, const int32_t* t, int32_t n_t, int32_t* leaf_corners,
                     double* normals, int32_t* source, bvh_block* blocks, int threads) noexcept nogil:
    """Rotate, drop the degenerate, build the tree, store in leaf order."""
    cdef mesh_job job
    cdef vec3 p
    cdef int32_t i, n = 0
    cdef int status
    m.n_vertices = n_v
    m.vertices = v
    m.triangles = leaf_corners
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
    job.leaf_corners = leaf_corners
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


cdef double span_of(aabb bounds) noexcept:
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
    m.tree.span = span_of(bounds)
    m.tree.check = _check_triangle
    m.tree.owner = m
    mesh.kind = SHAPE_MESH
    return mesh


cdef object bytes_at(char* at, Py_ssize_t n):
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
