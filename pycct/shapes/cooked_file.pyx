# cython: language_level=3, boundscheck=True, wraparound=True
"""Cooked files: the shapes and actors of a scene, for memory mapping.

A file is a header, a table of sections and the sections, each at a multiple of 64 bytes. Numbers
are stored as in memory, so that meshes and heightfields work in place. A file therefore belongs to
machines of its own byte order and word size. The header, the table and the small sections have
checksums that every load checks. Only ``verify=True`` checks those of the large sections. The
reader never trusts mapped data: each tree walk checks its indices (see `bvh_check`), and this
module checks everything else.
"""
import errno
import json
import mmap
import os
import stat
import struct
import zlib

import numpy as np

from libc.stdint cimport int64_t

from pycct.spatial.bvh cimport BVH_LANES, bvh_block, bvh_node
from pycct.args.values cimport from_vec3
from pycct.shapes.heightfield_cells cimport field_data, field_tile_columns
from pycct.convex.hull cimport HullTables, hull_again, hull_record
from pycct.shapes.heightfield cimport Heightfield, field_over, field_sound, tree_nodes, tree_order
from pycct.shapes.mesh cimport FARTHEST_VERTEX, Mesh, mesh_over, mesh_sound
from pycct.shapes.primitives cimport ConvexHull, Shape, hull_over, plane_over
from pycct.geometry.types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HEIGHTFIELD,
    SHAPE_HULL,
    SHAPE_MESH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
)
from pycct.geometry.vec cimport aabb, box_of, v3, vec3

from pycct.args.save_format import LARGEST_ID
from pycct.shapes.primitives import Box, Capsule, Sphere, Triangle
from pycct.runtime.version import RESULTS_VERSION

# The second and third line endings change if a program handles the file as text.
MAGIC = b"pycct\r\n\x1a"
FORMAT = 2
BYTE_ORDER, OTHER_ORDER = 0x01020304, 0x04030201
# Magic, byte order, format, bytes of a pointer, bytes of a tree node; bytes of the file, next id;
# results version, number of sections, checksum of the head (with zero in its place), zero.
HEADER = struct.Struct("=8sIIIIQqIIII")
CHECKSUM_AT = HEADER.size - 8
ALIGN = 64
SECTION = np.dtype([("kind", "u4"), ("index", "u4"), ("offset", "u8"), ("bytes", "u8"), ("checksum", "u4"),
                    ("zero", "u4")])
# Kinds of sections. The first four exist once and are always checked.
ACTORS, SHAPES, HULLS, USER_DATA = range(4)
VERTICES, GIVEN, LEAF, NORMALS, SOURCE, NODES, DATA, MASK, HEIGHTS, CELLS, ORDER, BLOCKS = range(4, 16)
NAMES = ("actors", "shapes", "hulls", "user_data", "vertices", "triangles", "triangles of the leaves", "normals",
         "source", "nodes", "triangle_data", "triangle_mask", "heights", "cells", "order", "blocks")
ACTOR = np.dtype([("id", "i8"), ("shape", "i4"), ("kind", "u4"), ("body", "i4"), ("layer", "u4"),
                  ("behavior", "u4"), ("zero", "u4"), ("position", "f8", 3), ("rotation", "f8", 4),
                  ("scale", "f8", 3)])
# Counts of a hull: its number in the section of hulls. Of a mesh: vertices, triangles given,
# triangles kept, nodes. Of a heightfield: rows, columns, nodes. Numbers define the shape; for a
# mesh they are the bounds, for a heightfield the steps and the bounds.
SHAPE = np.dtype([("kind", "i4"), ("flags", "u4"), ("counts", "i8", 4), ("numbers", "f8", 9)])
TWO_SIDED, HAS_DATA, HAS_MASK, HAS_CELLS, ROWS_ALONG_Y, DIAGONAL = (1 << k for k in range(6))
MOST_SHAPES = 2**31 - 1
MOST = 2**29                # vertices, triangles or samples of one shape
DEEPEST = 100               # nesting of user_data


cdef str path_of(object path):
    return os.fsdecode(path)


cdef int write_cooked(object path, list records, int64_t next_id, dict user_data) except -1:
    sections = _sections_of(records, user_data)
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(f"path must name a regular file: {path}")
    temporary = os.path.join(os.path.dirname(target), f".pycct-{os.urandom(8).hex()}.tmp")
    try:
        file = open(temporary, "xb")
    except OSError as error:
        # The error names the user's path, not the temporary one.
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with file as f:
            _write(f, sections, next_id)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, target)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
    _sync_folder(os.path.dirname(target))
    return 0


def _sync_folder(folder):
    """Flush a rename to disk, where the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _write(f, sections, next_id):
    table = np.zeros(len(sections), SECTION)
    at = HEADER.size + table.nbytes
    for row, (kind, index, pieces) in zip(table, sections):
        at += -at % ALIGN
        f.seek(at)
        checksum = 0
        size = 0
        for piece in pieces:
            raw = memoryview(piece).cast("B")
            f.write(raw)
            checksum = zlib.crc32(raw, checksum)
            size += raw.nbytes
        row["kind"], row["index"], row["offset"], row["bytes"], row["checksum"] = kind, index, at, size, checksum
        at += size
    # The last section may be empty, and then the file ends before it.
    f.truncate(at)
    head = [MAGIC, BYTE_ORDER, FORMAT, sizeof(void*), sizeof(bvh_node), at, next_id, RESULTS_VERSION, len(table), 0, 0]
    head[-2] = zlib.crc32(table.tobytes(), zlib.crc32(HEADER.pack(*head)))
    f.seek(0)
    f.write(HEADER.pack(*head))
    f.write(table.tobytes())


def _sections_of(records, user_data):
    """Yield (kind, index, buffers) of each section."""
    shapes = {}
    actors = np.zeros(len(records), ACTOR)
    for row, (number, record, shape, position, rotation, scale, body, layer, behavior) in zip(actors, records):
        place = shapes.setdefault(id(shape), (len(shapes), shape))[0]
        row["id"], row["shape"], row["kind"], row["body"] = number, place, record, body
        row["layer"], row["behavior"] = layer, behavior
        row["position"], row["rotation"], row["scale"] = position, rotation, scale
    rows = np.zeros(len(shapes), SHAPE)
    hulls = {}
    large = []
    for place, shape in shapes.values():
        large += [(kind, place, [array]) for kind, array in _describe(shape, rows[place:place + 1], hulls)]
    small = [
        (ACTORS, 0, [actors.view(np.uint8)]),
        (SHAPES, 0, [rows.view(np.uint8)]),
        (HULLS, 0, [_pack_hull(tables) for _, tables in hulls.values()]),
        (USER_DATA, 0, [_pack_user_data(user_data)]),
    ]
    return small + large


cdef list _describe(Shape shape, object row, dict hulls):
    """Fill a shape's row; return its large arrays as (kind, array)."""
    cdef const field_data* f
    cdef aabb b
    cdef int flags = 0
    numbers = ()
    counts = ()
    arrays = []
    if shape.kind == SHAPE_SPHERE:
        numbers = (shape.radius_,)
    elif shape.kind == SHAPE_CAPSULE:
        numbers = (shape.radius_, shape.height_)
    elif shape.kind == SHAPE_BOX:
        numbers = from_vec3(shape.a)
    elif shape.kind == SHAPE_TRIANGLE:
        numbers = from_vec3(shape.a) + from_vec3(shape.b) + from_vec3(shape.c)
    elif shape.kind == SHAPE_PLANE:
        numbers = from_vec3(shape.a) + (shape.height_,)
    elif shape.kind == SHAPE_HULL:
        tables = (<ConvexHull>shape).tables
        counts = (hulls.setdefault(id(tables), (len(hulls), tables))[0],)
        numbers = from_vec3((<ConvexHull>shape).scale_)
    elif shape.kind == SHAPE_MESH:
        mesh = <Mesh>shape
        b = mesh.data_.bounds
        flags = TWO_SIDED * (mesh.data_.two_sided != 0)
        nodes = tree_nodes(mesh)
        counts = (mesh.data_.n_vertices, mesh.data_.n_given, mesh.data_.n_triangles, mesh.data_.tree.n_nodes)
        numbers = from_vec3(b.lo) + from_vec3(b.hi)
        n_triangles = mesh.data_.n_triangles
        points, given, leaf, normals, source, blocks = mesh.vertices_
        arrays = [(VERTICES, points), (GIVEN, given), (LEAF, leaf[:n_triangles]), (NORMALS, normals[:n_triangles]),
                  (SOURCE, source[:n_triangles]), (NODES, nodes), (BLOCKS, blocks[:_block_bytes(n_triangles)])]
        extra = (mesh.data_array, mesh.mask_array)
    else:
        field = <Heightfield>shape
        f = &field.data_
        flags = (TWO_SIDED * (f.two_sided != 0) | ROWS_ALONG_Y * (f.rows_along_y != 0) | DIAGONAL * (f.diagonal & 1)
                 | HAS_CELLS * (field.cells_ is not None))
        nodes = tree_nodes(field)
        counts = (f.rows, f.columns, f.tree.n_nodes)
        numbers = (f.row_step, f.column_step) + from_vec3(f.bounds.lo) + from_vec3(f.bounds.hi)
        arrays = [(HEIGHTS, field.heights_), (NODES, nodes), (ORDER, tree_order(field))]
        if field.cells_ is not None:
            arrays.append((CELLS, field.cells_))
        extra = (field.data_array, field.mask_array)
    if shape.kind == SHAPE_MESH or shape.kind == SHAPE_HEIGHTFIELD:
        for kind, flag, array in zip((DATA, MASK), (HAS_DATA, HAS_MASK), extra):
            if array is not None:
                flags |= flag
                arrays.append((kind, array))
    row["kind"], row["flags"] = shape.kind, flags
    row["counts"][0, :len(counts)] = counts
    row["numbers"][0, :len(numbers)] = numbers
    # Empty arrays have no section.
    return [(kind, array) for kind, array in arrays if array.nbytes]


HULL_HEAD = struct.Struct("=iiiid")     # dimension, vertices, faces, corners, extent


cdef bytes _pack_hull(HullTables tables):
    dimension, vertices, planes, starts, corners, extent = hull_record(tables)
    head = HULL_HEAD.pack(dimension, len(vertices), len(planes), len(corners), extent)
    return b"".join((head, vertices.tobytes(), planes.tobytes(), starts.tobytes(), corners.tobytes()))


cdef list _unpack_hulls(object raw):
    cdef Py_ssize_t at = 0
    hulls = []
    while at < raw.nbytes:
        if at + HULL_HEAD.size > raw.nbytes:
            raise ValueError("hulls are truncated")
        dimension, n, faces, corners, extent = HULL_HEAD.unpack_from(raw, at)
        at += HULL_HEAD.size
        if not (1 <= n <= 255 and 0 <= faces <= 1024 and 0 <= corners <= 4096):
            raise ValueError("a hull has impossible counts")
        arrays = []
        for dtype, shape in (("f8", (n, 3)), ("f8", (faces, 4)), ("i4", (faces + 1,)), ("i4", (corners,))):
            size = int(np.prod(shape)) * int(dtype[1])
            if at + size > raw.nbytes:
                raise ValueError("hulls are truncated")
            arrays.append(np.frombuffer(raw[at:at + size], dtype).reshape(shape).copy())
            at += size
        vertices, planes, starts, loops = arrays
        hulls.append(hull_again(dimension, vertices, planes, starts, loops, extent))
    return hulls


cdef bytes _pack_user_data(dict user_data):
    packed = {}
    for number, value in user_data.items():
        if value is not None:
            _check_plain(value, number, 0)
            packed[number] = value
    try:
        return json.dumps(list(packed.items()), separators=(",", ":")).encode()
    except ValueError as problem:       # an integer of thousands of digits
        raise ValueError(f"user_data cannot be saved: {problem}") from None


cdef int _check_plain(object value, object number, int depth) except -1:
    """Accept only values that load as they were saved."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is float or kind is str:
        return 0
    if kind is not list and kind is not dict:
        raise TypeError(f"user_data of actor {number} must be made of None, bool, int, float, str, lists and dicts to "
                        f"be saved, not {kind.__name__}; user_data=False leaves it out")
    if depth >= DEEPEST:
        raise ValueError(f"user_data of actor {number} must not be nested deeper than {DEEPEST} to be saved")
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise TypeError(f"user_data of actor {number} must have str keys to be saved, "
                                f"not {type(key).__name__}; user_data=False leaves it out")
        value = list(value.values())
    for entry in value:
        _check_plain(entry, number, depth + 1)
    return 0


cdef tuple read_cooked(str path, bint verify):
    # Opening a pipe would block.
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path}: not a regular file")
    with open(path, "rb") as f:
        if os.fstat(f.fileno()).st_size < HEADER.size:
            raise ValueError(f"{path}: not a cooked scene: it has {os.fstat(f.fileno()).st_size} bytes")
        mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _read(memoryview(mapped), verify)
    except (ValueError, TypeError, OverflowError) as problem:
        raise ValueError(f"{path}: {problem}") from problem


cdef tuple _read(object raw, bint verify):
    if len(raw) < HEADER.size:
        raise ValueError("not a cooked scene")
    (magic, order, version, word, node, size, next_id, results, n, checksum, _) = HEADER.unpack_from(raw)
    if magic != MAGIC:
        raise ValueError("not a cooked scene")
    if order == OTHER_ORDER:
        raise ValueError("cooked on a machine of the other byte order")
    if order != BYTE_ORDER:
        raise ValueError("damaged: no byte order")
    if version != FORMAT:
        raise ValueError(f"the cooked scene has format {version}, but this pycct reads format {FORMAT}: cook it again")
    if word != sizeof(void*) or node != sizeof(bvh_node):
        raise ValueError("cooked on a machine of another word size")
    if results != RESULTS_VERSION:
        raise ValueError(f"cooked with results version {results}, but this pycct has {RESULTS_VERSION}: cook it again")
    if size != len(raw):
        raise ValueError(f"damaged: it should have {size} bytes and has {len(raw)}")
    last = HEADER.size + n * SECTION.itemsize
    if last > len(raw):
        raise ValueError("damaged: its table is truncated")
    head = bytearray(raw[:HEADER.size])
    head[CHECKSUM_AT:CHECKSUM_AT + 4] = bytes(4)
    if zlib.crc32(raw[HEADER.size:last], zlib.crc32(head)) != checksum:
        raise ValueError("damaged: wrong checksum of the head")
    sections = {}
    for kind, index, offset, length, crc, _ in np.frombuffer(raw[HEADER.size:last], SECTION).tolist():
        if kind > BLOCKS or offset % ALIGN or offset < last or length > size or offset > size - length:
            raise ValueError("damaged: a section is outside of the file")
        if (kind, index) in sections:
            raise ValueError("damaged: a section occurs twice")
        section = raw[offset:offset + length]
        if (verify or kind <= USER_DATA) and zlib.crc32(section) != crc:
            raise ValueError(f"damaged: wrong checksum of {NAMES[kind]}")
        sections[kind, index] = section
    actors = _table(sections, ACTORS, ACTOR)
    rows = _table(sections, SHAPES, SHAPE)
    hulls = _unpack_hulls(_take(sections, HULLS, 0))
    user_data = _unpack_user_data(bytes(_take(sections, USER_DATA, 0)))
    shapes = [_shape(k, row, hulls, sections, verify) for k, row in enumerate(rows)]
    if sections:
        raise ValueError("damaged: unknown section")
    if not 0 <= next_id <= LARGEST_ID:
        raise ValueError("damaged: invalid ids")
    records = []
    for number, place, record, body, layer, behavior, _, position, rotation, scale in actors.tolist():
        if not 0 <= place < len(shapes):
            raise ValueError("damaged: an actor has no shape")
        records.append((number, record, shapes[place], tuple(position), tuple(rotation), tuple(scale), body,
                        layer, behavior))
    return records, next_id, user_data


cdef object _take(dict sections, int kind, object index):
    section = sections.pop((kind, index), None)
    if section is None:
        raise ValueError(f"damaged: missing {NAMES[kind]}")
    return section


cdef object _table(dict sections, int kind, object dtype):
    section = _take(sections, kind, 0)
    if len(section) % dtype.itemsize:
        raise ValueError(f"damaged: {NAMES[kind]} are truncated")
    # frombuffer raises for zero bytes.
    return np.frombuffer(section, dtype) if len(section) else np.empty(0, dtype)


cdef object _array(dict sections, int kind, object index, object dtype, object shape):
    """Return a large section as an array."""
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(shape, dtype)
    section = _take(sections, kind, index)
    if len(section) != size:
        raise ValueError(f"damaged: {NAMES[kind]} have {len(section)} bytes instead of {size}")
    return np.frombuffer(section, dtype).reshape(shape)


cdef dict _unpack_user_data(bytes raw):
    try:
        pairs = json.loads(raw)
        user_data = dict(pairs)
    except (RecursionError, TypeError, ValueError):
        raise ValueError("damaged: invalid user_data") from None
    if not all(type(number) is int for number in user_data):
        raise ValueError("damaged: invalid user_data")
    return user_data


cdef vec3 _vector(object numbers, int at) except *:
    return v3(numbers[at], numbers[at + 1], numbers[at + 2])


cdef aabb _bounds(object numbers, int at) except *:
    cdef vec3 lo = _vector(numbers, at), hi = _vector(numbers, at + 3)
    # NaN fails every comparison.
    for k in range(at, at + 3):
        if not -FARTHEST_VERTEX <= numbers[k] <= numbers[k + 3] <= FARTHEST_VERTEX:
            raise ValueError("damaged: a shape has impossible bounds")
    return box_of(lo, hi)


cdef Shape _shape(object index, object row, list hulls, dict sections, bint verify):
    cdef int kind = row["kind"]
    counts = row["counts"].tolist()
    numbers = row["numbers"].tolist()
    if kind == SHAPE_SPHERE:
        return Sphere(numbers[0])
    if kind == SHAPE_CAPSULE:
        return Capsule(numbers[0], numbers[1])
    if kind == SHAPE_BOX:
        return Box(numbers[:3])
    if kind == SHAPE_TRIANGLE:
        return Triangle(numbers[:3], numbers[3:6], numbers[6:9])
    if kind == SHAPE_PLANE:
        if not np.isfinite(numbers[3]):
            raise ValueError("damaged: a plane has no offset")
        return plane_over(_vector(numbers, 0), numbers[3])
    if kind == SHAPE_HULL:
        if not 0 <= counts[0] < len(hulls) or not np.isfinite(numbers[:3]).all():
            raise ValueError("damaged: a hull has no tables")
        return hull_over(hulls[counts[0]], _vector(numbers, 0))
    if kind == SHAPE_MESH:
        return _mesh(index, int(row["flags"]), counts, numbers, sections, verify)
    if kind == SHAPE_HEIGHTFIELD:
        return _field(index, int(row["flags"]), counts, numbers, sections, verify)
    raise ValueError("damaged: a shape has an unknown kind")


cdef tuple _extras(dict sections, object index, int flags, object n):
    data = _array(sections, DATA, index, np.int64, (n,)) if flags & HAS_DATA else None
    mask = _array(sections, MASK, index, np.uint32, (n,)) if flags & HAS_MASK else None
    return data, mask


cdef Py_ssize_t _block_bytes(Py_ssize_t triangles) except -1:
    return (triangles + BVH_LANES - 1) // BVH_LANES * <Py_ssize_t>sizeof(bvh_block)


cdef Mesh _mesh(object index, int flags, list counts, list numbers, dict sections, bint verify):
    n_vertices, n_given, n_compact, n_nodes = counts
    if not (1 <= n_vertices <= MOST and 0 <= n_compact <= n_given and 1 <= n_given <= MOST
            and (1 <= n_nodes <= n_compact or n_nodes == n_compact == 0)):
        raise ValueError("damaged: a mesh has impossible counts")
    arrays = (
        _array(sections, VERTICES, index, np.float64, (n_vertices, 3)),
        _array(sections, GIVEN, index, np.int32, (n_given, 3)),
        _array(sections, LEAF, index, np.int32, (n_compact, 3)),
        _array(sections, NORMALS, index, np.float64, (n_compact, 3)),
        _array(sections, SOURCE, index, np.int32, (n_compact,)),
        _array(sections, BLOCKS, index, np.uint8, (_block_bytes(n_compact),)),
    )
    nodes = _array(sections, NODES, index, np.uint8, (n_nodes * <Py_ssize_t>sizeof(bvh_node),))
    data, mask = _extras(sections, index, flags, n_given)
    mesh = mesh_over(arrays, nodes, data, mask, flags & TWO_SIDED, _bounds(numbers, 0))
    if verify and not mesh_sound(mesh):
        raise ValueError("damaged: a mesh has wrong indices")
    return mesh


cdef Heightfield _field(object index, int flags, list counts, list numbers, dict sections, bint verify):
    cdef field_data f
    rows, columns, n_nodes, _ = counts
    if not (2 <= rows <= MOST and 2 <= columns <= MOST and rows * columns <= MOST):
        raise ValueError("damaged: a heightfield has impossible counts")
    if not (all(0.0 < x * max(rows, columns) <= FARTHEST_VERTEX for x in numbers[:2])):
        raise ValueError("damaged: a heightfield has impossible steps")
    f.rows, f.columns = rows, columns
    f.rows_along_y = (flags & ROWS_ALONG_Y) != 0
    f.two_sided = (flags & TWO_SIDED) != 0
    f.diagonal = (flags & DIAGONAL) != 0
    f.row_step, f.column_step = numbers[0], numbers[1]
    f.bounds = _bounds(numbers, 2)
    n_tiles = field_tile_columns(rows) * field_tile_columns(columns)
    if not 1 <= n_nodes <= n_tiles:
        raise ValueError("damaged: a heightfield has impossible counts")
    cells = None
    if flags & HAS_CELLS:
        cells = _array(sections, CELLS, index, np.uint8, (rows - 1, columns - 1))
    data, mask = _extras(sections, index, flags, 2 * (rows - 1) * (columns - 1))
    field = field_over(
        _array(sections, HEIGHTS, index, np.float64, (rows, columns)), cells,
        _array(sections, NODES, index, np.uint8, (n_nodes * <Py_ssize_t>sizeof(bvh_node),)),
        _array(sections, ORDER, index, np.int32, (n_tiles,)), data, mask, f)
    if verify and not field_sound(field):
        raise ValueError("damaged: a heightfield has wrong heights or indices")
    return field
