# cython: language_level=3
"""Queries for Python: checked arguments, results as objects or arrays."""
from collections import namedtuple
from collections.abc import Mapping

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

from pycct.args.values cimport (
    FARTHEST,
    as_bits,
    as_not_negative,
    as_place,
    as_quat,
    as_unit,
    as_vec3,
    from_vec3,
    raise_status,
    short,
)
from pycct.args.vector_rows cimport row_load, vector_rows, within
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.runtime.thread_pool cimport pool_run_parts, pool_threads
from pycct.convex.polytope cimport convex_shape
from pycct.queries.query_kernels cimport (
    QUERY_PARTS,
    query_shape,
    query_shape_halfspace,
    query_shape_place,
    query_shape_ray,
    query_cast,
    query_closest,
    query_free,
    query_hit,
    query_init,
    query_mark,
    query_note,
    query_ray_all,
    query_scratch,
    query_touch,
    query_touches,
    query_view,
)
from pycct.shapes.primitives cimport Shape, convex_values
from pycct.geometry.types cimport SHAPE_PLANE, STATUS_NOT_FINITE, STATUS_OK
from pycct.geometry.ray cimport direction_of
from pycct.geometry.vec cimport q_rotate, quat, v3, v3_dot, v3_len, v3_load, v3_max_abs, v3_sub, vec3
from pycct.world.candidates cimport collider, triangle_data, triangle_mask

# No object of a scene is farther away than this: longer searches end here.
cdef double REACH = 1e13

# A named tuple takes its module from its caller's frame, which compiled code lacks.
HitArrays = namedtuple(
    "HitArrays", "hit distance time position normal actor controller triangle data mask overlapping", module=__name__)
HitArrays.__doc__ = """Answers of `Scene.raycast_many` and `Scene.sweep_many`, one row per question.

Where ``hit`` is False: distance is the one asked for, time 1, ids and triangles -1, the rest zero.
Columns that ``fields`` leaves out are None. ``actor`` and ``controller`` contain ids; ``data`` is 0
and ``mask`` 0xFFFFFFFF where a triangle has none.
"""
TouchArrays = namedtuple("TouchArrays", "hit first actor controller direction depth", module=__name__)
TouchArrays.__doc__ = """Answers of `Scene.overlap_many` and `Scene.penetration_many`.

``hit`` has one row per question; what question i touches stands in rows ``first[i]`` to
``first[i + 1]`` of the others. ``direction`` and ``depth`` are None for `Scene.overlap_many`, and
so are the columns that ``fields`` leaves out.
"""
ClosestArrays = namedtuple(
    "ClosestArrays", "hit distance point position normal actor controller triangle data mask", module=__name__)
ClosestArrays.__doc__ = """Answers of `Scene.closest_points_many`, one row per question.

Where ``hit`` is False: ids and triangles -1, the rest zero. ``point`` is on the shape, ``position`` on the world.
"""


@cython.final
cdef class View:
    cdef object owner(self, int layer_index, int item):
        if layer_index == 0:
            return self.fixed_owners[item]
        return self.moving_owners[item] if layer_index == 1 else self.character_owners[item]


@cython.final
cdef class SceneHit:
    """The first hit of a ray or a moving shape.

    Attributes
    ----------
    distance : float
        Along the direction, metres; 0 for an overlap at the start.
    time : float
        The same as a share of the requested distance.
    actor : Actor or None
    controller : CharacterController or None
        The object that was hit, in one of both; None in pickles and deep copies.
    triangle : int or None
        Index in the mesh or heightfield, in the order of your triangles.
    data : int or None
        Its ``triangle_data``.
    mask : int or None
        Its ``triangle_mask``.
    overlapping : bool
        Whether the shape touched the object, or the ray was inside it, at the start.
    """

    cdef readonly double distance
    cdef readonly double time
    cdef vec3 position_
    cdef vec3 normal_
    cdef object number          # id of the object, after pickling
    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object triangle
    cdef readonly object data
    cdef readonly object mask
    cdef readonly bint overlapping

    @property
    def position(self):
        """Point of contact, metres."""
        return from_vec3(self.position_)

    @property
    def normal(self):
        """Unit normal out of the object; against the direction for an overlap."""
        return from_vec3(self.normal_)

    @property
    def other(self):
        """The actor or the controller."""
        return self.actor if self.controller is None else self.controller

    @property
    def id(self):
        """Id of the object that was hit, which pickles and deep copies contain instead of it."""
        return self.number if self.other is None else self.other.id

    def __copy__(self):
        return self

    def __reduce__(self):
        return _scene_hit_again, (self.distance, self.time, self.id, self.triangle, self.data, self.mask,
                                  bool(self.overlapping), self.position, self.normal)

    def __repr__(self):
        return (f"<SceneHit: {self.other!r} at distance {self.distance:.6g}, position {self.position}, "
                f"normal {self.normal}, triangle {self.triangle}>")


def _scene_hit_again(distance, time, id, triangle, data, mask, overlapping, position, normal):
    """Return a pickled SceneHit, without the object that was hit."""
    cdef SceneHit r = SceneHit.__new__(SceneHit)
    r.distance, r.time, r.overlapping = distance, time, overlapping
    r.number, r.triangle, r.data, r.mask = id, triangle, data, mask
    r.position_ = as_vec3(position, "position")
    r.normal_ = as_vec3(normal, "normal")
    return r


@cython.final
cdef class Penetration:
    """Penetration of an actor with the shortest exit; unpacks to (actor, direction, depth).

    Attributes
    ----------
    actor : Actor or None
    controller : CharacterController or None
        The object, in one of both; None in pickles and deep copies.
    depth : float
        Length of the exit along the direction, metres.
    """

    cdef object number          # id of the object, after pickling
    cdef readonly object actor
    cdef readonly object controller
    cdef vec3 direction_
    cdef readonly double depth

    @property
    def direction(self):
        """Unit vector that moves the shape out."""
        return from_vec3(self.direction_)

    @property
    def other(self):
        """The actor or the controller."""
        return self.actor if self.controller is None else self.controller

    @property
    def id(self):
        """Id of the object, which pickles and deep copies contain instead of it."""
        return self.number if self.other is None else self.other.id

    def __copy__(self):
        return self

    def __reduce__(self):
        return _penetration_again, (self.id, self.direction, self.depth)

    def __iter__(self):
        return iter((self.other, self.direction, self.depth))

    def __repr__(self):
        return f"<Penetration: {self.other!r}, {self.depth:.6g} along {self.direction}>"


def _penetration_again(id, direction, depth):
    """Return a pickled Penetration, without the object."""
    cdef Penetration r = Penetration.__new__(Penetration)
    r.number, r.depth = id, depth
    r.direction_ = as_vec3(direction, "direction")
    return r


@cython.final
cdef class ClosestPoints:
    """The nearest pair of points of a shape and the scene.

    Attributes
    ----------
    distance : float
        Metres; negative for an overlap, with the length of the exit along the normal.
    actor : Actor or None
    controller : CharacterController or None
        The nearest object, in one of both; None in pickles and deep copies.
    triangle, data, mask : int or None
        As in `SceneHit`.
    """

    cdef object number          # id of the object, after pickling
    cdef readonly double distance
    cdef vec3 point_
    cdef vec3 position_
    cdef vec3 normal_
    cdef readonly object actor
    cdef readonly object controller
    cdef readonly object triangle
    cdef readonly object data
    cdef readonly object mask

    @property
    def point(self):
        """The point on the query shape, metres."""
        return from_vec3(self.point_)

    @property
    def position(self):
        """The point on the scene, metres; ``point - position = distance * normal``."""
        return from_vec3(self.position_)

    @property
    def normal(self):
        """Unit vector from the scene towards the shape."""
        return from_vec3(self.normal_)

    @property
    def other(self):
        """The actor or the controller."""
        return self.actor if self.controller is None else self.controller

    @property
    def id(self):
        """Id of the object, which pickles and deep copies contain instead of it."""
        return self.number if self.other is None else self.other.id

    def __copy__(self):
        return self

    def __reduce__(self):
        return _closest_again, (self.distance, self.point, self.position, self.normal, self.id, self.triangle,
                                self.data, self.mask)

    def __repr__(self):
        return f"<ClosestPoints: {self.other!r} at distance {self.distance:.6g}, {self.point} to {self.position}>"


def _closest_again(distance, point, position, normal, id, triangle, data, mask):
    """Return pickled ClosestPoints, without the object."""
    cdef ClosestPoints r = ClosestPoints.__new__(ClosestPoints)
    r.distance = distance
    r.point_ = as_vec3(point, "point")
    r.position_ = as_vec3(position, "position")
    r.normal_ = as_vec3(normal, "normal")
    r.number, r.triangle, r.data, r.mask = id, triangle, data, mask
    return r


# ---------------------------------------------------------------- arguments

cdef int _shape_of(object shape, convex_shape* out) except -1:
    """Return the plain values of a query shape; kind SHAPE_PLANE leaves them to the caller."""
    if not isinstance(shape, Shape):
        raise TypeError(f"shape must be a shape, not {type(shape).__name__}")
    if not convex_values(<Shape>shape, out) and (<Shape>shape).kind != SHAPE_PLANE:
        raise TypeError(f"shape must be a Sphere, Capsule, Box, ConvexHull, Triangle or Plane, "
                        f"not {type(shape).__name__}")
    return 0


cdef int _place(query_shape* q, Shape shape, const convex_shape* convex, vec3 position, quat rotation,
                query_scratch* s, bint casts) noexcept nogil:
    cdef vec3 n
    cdef int status
    cdef unsigned long long env
    if convex.kind == SHAPE_PLANE:
        n = q_rotate(rotation, shape.a)
        query_shape_halfspace(q, n, shape.height_ + v3_dot(n, position))
        return STATUS_OK
    env = fp_enter()
    status = query_shape_place(q, convex, position, rotation, s, casts)
    fp_leave(env)
    return status


cdef int _look(View view, uint32_t mask, query_view* v) except -1:
    v.layers[0] = view.fixed
    v.layers[1] = view.moving
    v.layers[2] = view.characters
    v.allowed[0] = v.allowed[1] = v.allowed[2] = NULL
    v.mask = mask
    v.exclude = v.exclude_too = v.group = -1
    v.groups = view.groups
    v.obstacles = False
    v.first_only = view.first_only
    return 0


# Results of a filter: one byte per item of each layer.
cdef class Verdict:
    cdef uint8_t* marks[QUERY_PARTS]

    def __dealloc__(self):
        cdef int k
        for k in range(QUERY_PARTS):
            free(self.marks[k])


cdef Verdict _no_verdict(const query_view* v):
    cdef Verdict r = Verdict.__new__(Verdict)
    cdef int k
    for k in range(QUERY_PARTS):
        if v.layers[k] != NULL:
            r.marks[k] = <uint8_t*>calloc(v.layers[k].n + 1, 1)
            if r.marks[k] == NULL:
                raise MemoryError("pycct: out of memory")
    return r


cdef int _judge(View view, query_view* v, Verdict verdict, object filter) except -1:
    """Call the filter for every marked item, in the order of layers and items."""
    cdef int k
    cdef int32_t i
    for k in range(QUERY_PARTS):
        if v.layers[k] != NULL:
            for i in range(v.layers[k].n):
                if verdict.marks[k][i]:
                    verdict.marks[k][i] = 1 if filter(view.owner(k, i)) else 0
            v.allowed[k] = verdict.marks[k]
    return 0


cdef int _check_filter(object filter) except -1:
    if filter is not None and not callable(filter):
        raise TypeError(f"filter must be callable, not {type(filter).__name__}")
    return 0


cdef double _span_of(object value) except? -1.0:
    """max_distance: infinity means no limit."""
    cdef double d
    if isinstance(value, (float, np.floating)) and value == INFINITY:
        return REACH
    d = as_not_negative(value, "max_distance")
    return d if d < REACH else REACH


cdef object _rows(object values, str name, int columns, Py_ssize_t n):
    """Return a contiguous float64 array (n, columns); one row serves all. n < 0: any n."""
    given = np.asarray(values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an array of real numbers, not {given.dtype}")
    if n <= 0 and given.ndim == 1 and given.shape[0] == 0:
        given = np.empty((0, columns))
    if n >= 0 and given.ndim == 1 and given.shape[0] == columns:
        given = np.broadcast_to(given, (n, columns))
    if given.ndim != 2 or given.shape[1] != columns or (n >= 0 and given.shape[0] != n):
        want = f"({n}, {columns}) or ({columns},)" if n >= 0 else f"(n, {columns})"
        raise ValueError(f"{name} must have shape {want}, got {given.shape}")
    if given.shape[0] > 2**31 - 1:
        raise ValueError(f"{name} can have at most {2**31 - 1} rows")
    array = np.array(given, dtype=np.float64, order="C", copy=True)
    _check_each(np.isfinite(array).all(axis=1), array, f"{name} must be finite")
    return array


cdef int _check_each(object good, object rows, str text) except -1:
    """ValueError that names the first row that is not good."""
    if not good.all():
        k = np.unravel_index(int(good.argmin()), good.shape)
        row = int(k[0]) if len(k) == 1 else tuple(map(int, k))
        raise ValueError(f"{text}, row {row} is {short(rows[k].tolist())}")
    return 0


cdef object _places(object values, str name, Py_ssize_t n):
    array = _rows(values, name, 3, n)
    _check_each((np.abs(array) <= FARTHEST).all(axis=1), array, f"{name} must lie within {FARTHEST:g} m of the origin")
    return array


cdef object _turns(object values, str name, Py_ssize_t n):
    """Return rotations, normalised as as_quat does: n of them, or one for all rows."""
    given = np.asarray(values)
    array = _rows(given[None], name, 4, 1) if given.shape == (4,) else _rows(given, name, 4, n)
    m = np.sqrt(array[:, 0] * array[:, 0] + array[:, 1] * array[:, 1] + array[:, 2] * array[:, 2]
                + array[:, 3] * array[:, 3])
    _check_each(np.abs(m - 1.0) <= 1e-3, array, f"{name} must be unit quaternions")
    array /= m[:, None]
    return array


cdef object _by_row(object given, str name, tuple shape):
    """Numbers of all rows: one, one a row, or one for all rows of each origin."""
    if given.shape == () or given.shape == shape:
        return given
    if len(shape) == 2 and given.shape == shape[:1]:
        return np.broadcast_to(given[:, None], shape)
    origins = f" or {shape[:1]}" if len(shape) == 2 else ""
    raise ValueError(f"{name} must be one number or have shape {shape}{origins}, got {given.shape}")


cdef object _lengths(object values, str name, tuple shape, bint endless):
    """Lengths as an array of one, which stands for all, or of one a row."""
    given = np.asarray(values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number or an array of numbers, not {given.dtype}")
    given = _by_row(given, name, shape)
    array = np.array(given, dtype=np.float64, copy=True)
    if array.ndim == 0:
        if not array >= 0.0 or not endless and array == INFINITY:
            raise ValueError(f"{name} must be {'' if endless else 'finite and '}>= 0, got {array}")
    elif endless:
        _check_each(array >= 0.0, array, f"{name} must be >= 0")
    else:
        _check_each((array >= 0.0) & (array < INFINITY), array, f"{name} must be finite and >= 0")
    return array.reshape(-1)


# ---------------------------------------------------------------- single queries

cdef SceneHit _scene_hit(View view, const query_view* v, const query_hit* h, double reach):
    cdef SceneHit r = SceneHit.__new__(SceneHit)
    cdef const collider* p = &v.layers[h.layer_index].items[h.item]
    cdef int64_t data
    r.distance = h.distance
    r.time = h.distance / reach if reach > 0.0 else 0.0
    r.position_ = h.point
    r.normal_ = h.normal
    r.overlapping = h.overlapping
    if h.layer_index == 2:
        r.controller = view.owner(2, h.item)
    else:
        r.actor = view.owner(h.layer_index, h.item)
    if h.tri >= 0:
        r.triangle = h.tri
        if triangle_data(p, h.tri, &data):
            r.data = data
        if (p.mesh != NULL and p.mesh.mask != NULL) or (p.field != NULL and p.field.mask != NULL):
            r.mask = triangle_mask(p, h.tri)
    return r


cdef object _cast(View view, query_view* v, query_shape* q, vec3 d, double reach, query_scratch* s, object filter):
    cdef query_hit hit
    cdef Verdict verdict
    cdef int status
    cdef unsigned long long env
    cdef double limit = reach if reach < REACH else REACH
    if filter is not None:
        verdict = _no_verdict(v)
        with nogil:
            env = fp_enter()
            query_mark(v, q, d, limit, False, verdict.marks)
            fp_leave(env)
        _judge(view, v, verdict, filter)
    with nogil:
        env = fp_enter()
        status = query_cast(v, q, d, limit, s, &hit)
        fp_leave(env)
    raise_status(status)
    return _scene_hit(view, v, &hit, reach) if hit.found else None


cdef object ask_raycast(View view, object origin, object direction, object distance, object mask, object filter):
    cdef vec3 o = as_place(origin, "origin"), d = as_unit(direction, "direction")
    cdef double reach = as_not_negative(distance, "distance")
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    cdef query_hit hit
    cdef int status
    cdef unsigned long long env
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_shape_ray(&q, o)
    query_init(&s)
    try:
        if filter is not None:
            return _cast(view, &v, &q, d, reach, &s, filter)
        # Releasing the GIL would cost a tenth of a ray.
        env = fp_enter()
        status = query_cast(&v, &q, d, reach if reach < REACH else REACH, &s, &hit)
        fp_leave(env)
        raise_status(status)
        return _scene_hit(view, &v, &hit, reach) if hit.found else None
    finally:
        query_free(&s)


cdef tuple _two(object exclude):
    """The argument ``exclude`` of a line of sight: ids of one object or of two."""
    if exclude is None:
        return None, None
    if not isinstance(exclude, tuple):
        return exclude, None
    if len(exclude) > 2:
        raise ValueError(f"exclude must have at most two ids, got {len(exclude)}")
    return (exclude + (None, None))[:2]


cdef int64_t _id_of(object value) except -2:
    if value is None:
        return -1
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"exclude must be an id or a tuple of two, not {short(value)}")
    if not -1 <= value < 2**63:
        raise ValueError(f"exclude must be from -1 to 2**63 - 1, got {short(value)}")
    return value


cdef object ask_visible(View view, object a, object b, object mask, object filter, object exclude):
    cdef vec3 p = as_place(a, "a"), d = v3_sub(as_place(b, "b"), p)
    cdef double reach = v3_len(d)
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    _check_filter(filter)
    view.first_only = True
    _look(view, as_bits(mask, "mask"), &v)
    one, other = _two(exclude)
    v.exclude, v.exclude_too = _id_of(one), _id_of(other)
    query_shape_ray(&q, p)
    query_init(&s)
    try:
        return _cast(view, &v, &q, direction_of(d) if reach > 0.0 else v3(0.0, 0.0, 1.0), reach, &s, filter) is None
    finally:
        query_free(&s)


cdef list ask_raycast_all(View view, object origin, object direction, object distance, object mask, object filter):
    cdef vec3 o = as_place(origin, "origin"), d = as_unit(direction, "direction")
    cdef double reach = as_not_negative(distance, "distance"), limit = reach if reach < REACH else REACH
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    cdef Verdict verdict
    cdef list found = []
    cdef int32_t i
    cdef int status
    cdef unsigned long long env
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_shape_ray(&q, o)
    query_init(&s)
    try:
        if filter is not None:
            verdict = _no_verdict(&v)
            with nogil:
                env = fp_enter()
                query_mark(&v, &q, d, limit, False, verdict.marks)
                fp_leave(env)
            _judge(view, &v, verdict, filter)
        with nogil:
            env = fp_enter()
            status = query_ray_all(&v, &q, d, limit, &s)
            fp_leave(env)
        raise_status(status)
        for i in range(s.n_hits):
            found.append(_scene_hit(view, &v, &s.hits[i], reach))
    finally:
        query_free(&s)
    return found


cdef object ask_sweep(View view, object shape, object position, object direction, object distance, object rotation,
                      object mask, object filter):
    cdef convex_shape convex
    cdef vec3 p, d
    cdef quat r
    cdef double reach
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    _shape_of(shape, &convex)
    p = as_place(position, "position")
    d = as_unit(direction, "direction")
    reach = as_not_negative(distance, "distance")
    r = as_quat(rotation, "rotation")
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_init(&s)
    try:
        raise_status(_place(&q, shape, &convex, p, r, &s, True))
        return _cast(view, &v, &q, d, reach, &s, filter)
    finally:
        query_free(&s)


cdef list ask_touching(View view, object shape, object position, object rotation, object mask, object filter,
                       bint ways_out):
    cdef convex_shape convex
    cdef vec3 p
    cdef quat r
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    cdef Verdict verdict
    cdef Penetration one
    cdef int32_t i
    cdef int status
    cdef unsigned long long env
    cdef list found = []
    _shape_of(shape, &convex)
    p = as_place(position, "position")
    r = as_quat(rotation, "rotation")
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_init(&s)
    try:
        raise_status(_place(&q, shape, &convex, p, r, &s, False))
        if filter is not None:
            verdict = _no_verdict(&v)
            env = fp_enter()
            query_mark(&v, &q, v3(0.0, 0.0, 0.0), 0.0, False, verdict.marks)
            fp_leave(env)
            _judge(view, &v, verdict, filter)
        with nogil:
            env = fp_enter()
            status = query_touches(&v, &q, ways_out, &s)
            fp_leave(env)
        raise_status(status)
        for i in range(s.n_touches):
            if not ways_out:
                found.append(view.owner(s.touches[i].layer_index, s.touches[i].item))
                continue
            one = Penetration.__new__(Penetration)
            if s.touches[i].layer_index == 2:
                one.controller = view.owner(2, s.touches[i].item)
            else:
                one.actor = view.owner(s.touches[i].layer_index, s.touches[i].item)
            one.direction_ = s.touches[i].direction
            one.depth = s.touches[i].depth
            found.append(one)
    finally:
        query_free(&s)
    if len(found) > 1:
        found.sort(key=_order_of_touch if ways_out else _order_of_owner)
    return found


def _order_of_owner(owner):
    # Ids of characters sort after those of actors.
    return hasattr(owner, "radius"), owner.id


def _order_of_touch(Penetration one):
    return (False, one.actor.id) if one.controller is None else (True, one.controller.id)


cdef object ask_closest(View view, object shape, object position, object max_distance, object rotation, object mask,
                        object filter):
    cdef convex_shape convex
    cdef vec3 p
    cdef quat r
    cdef double reach
    cdef query_view v
    cdef query_shape q
    cdef query_scratch s
    cdef Verdict verdict
    cdef query_hit h
    cdef SceneHit hit
    cdef ClosestPoints c
    cdef int status
    cdef unsigned long long env
    _shape_of(shape, &convex)
    p = as_place(position, "position")
    reach = _span_of(max_distance)
    r = as_quat(rotation, "rotation")
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_init(&s)
    try:
        raise_status(_place(&q, shape, &convex, p, r, &s, False))
        if filter is not None:
            verdict = _no_verdict(&v)
            env = fp_enter()
            query_mark(&v, &q, v3(0.0, 0.0, 0.0), reach, True, verdict.marks)
            fp_leave(env)
            _judge(view, &v, verdict, filter)
        with nogil:
            env = fp_enter()
            status = query_closest(&v, &q, reach, &s, &h)
            fp_leave(env)
        raise_status(status)
        if not h.found:
            return None
        hit = _scene_hit(view, &v, &h, 0.0)
        c = ClosestPoints.__new__(ClosestPoints)
        c.distance = h.distance
        c.point_ = h.own_point
        c.position_ = h.point
        c.normal_ = h.normal
        c.actor, c.controller, c.triangle, c.data, c.mask = hit.actor, hit.controller, hit.triangle, hit.data, hit.mask
        return c
    finally:
        query_free(&s)


# ---------------------------------------------------------------- many at once

# Columns of answers, in the order of HitArrays.
cdef enum:
    HIT = 0
    DISTANCE
    TIME
    POSITION
    NORMAL
    ACTOR
    CONTROLLER
    TRIANGLE
    DATA
    MASK
    OVERLAPPING
    POINT
    COLUMNS

cdef tuple COLUMN_NAMES = HitArrays._fields + ("point",)
cdef dict COLUMN_OF = {name: k for k, name in enumerate(COLUMN_NAMES)}
cdef tuple COLUMN_TYPES = tuple(map(np.dtype, (np.bool_, "f8", "f8", "f8", "f8", "i8", "i8", "i4", "i8", "u4", np.bool_,
                                               "f8")))
cdef object FLOAT32 = np.dtype("f4"), FLOAT64 = np.dtype("f8")
# Attributes of modules and types take longer to read.
cdef object new_array = np.empty, new_tuple = tuple.__new__, np_ndarray = np.ndarray

# Rows of a batch that one thread takes at a time, and rows for which more than one is worth it.
cdef enum:
    ROWS = 64
    MANY_ROWS = 256


# Where the answers of one column go; of a column of vectors the numbers are ``inner`` bytes apart.
cdef struct column:
    char* data              # NULL: not requested
    Py_ssize_t stride
    Py_ssize_t inner
    bint single             # float32


cdef inline void _put_float(const column* c, Py_ssize_t i, double x) noexcept nogil:
    if c.data != NULL:
        if c.single:
            (<float*>(c.data + i * c.stride))[0] = <float>x
        else:
            (<double*>(c.data + i * c.stride))[0] = x


cdef inline void _put_vector(const column* c, Py_ssize_t i, vec3 v) noexcept nogil:
    cdef char* p = c.data + i * c.stride
    if c.data != NULL:
        if c.single:
            (<float*>p)[0] = <float>v.x
            (<float*>(p + c.inner))[0] = <float>v.y
            (<float*>(p + 2 * c.inner))[0] = <float>v.z
        else:
            (<double*>p)[0] = v.x
            (<double*>(p + c.inner))[0] = v.y
            (<double*>(p + 2 * c.inner))[0] = v.z


cdef inline void _put_byte(const column* c, Py_ssize_t i, bint x) noexcept nogil:
    if c.data != NULL:
        (<uint8_t*>(c.data + i * c.stride))[0] = 1 if x else 0


cdef inline void _put_long(const column* c, Py_ssize_t i, int64_t x) noexcept nogil:
    if c.data != NULL:
        (<int64_t*>(c.data + i * c.stride))[0] = x


cdef inline void _put_int(const column* c, Py_ssize_t i, uint32_t x) noexcept nogil:
    if c.data != NULL:
        (<uint32_t*>(c.data + i * c.stride))[0] = x


cdef void _put(const column* c, Py_ssize_t i, const query_view* v, const query_hit* h, double reach,
               bint closest) noexcept nogil:
    """One row of answers; every column is written, whatever was met."""
    cdef const collider* p = NULL
    cdef int64_t data = 0
    cdef uint32_t mask = 0xFFFFFFFF
    cdef int32_t tri = -1
    cdef double none = 0.0 if closest else reach
    if h.found:
        p = &v.layers[h.layer_index].items[h.item]
        if h.tri >= 0:
            tri = h.tri
            triangle_data(p, tri, &data)
            mask = triangle_mask(p, tri)
    _put_byte(&c[HIT], i, h.found)
    _put_byte(&c[OVERLAPPING], i, h.found and h.overlapping)
    _put_float(&c[DISTANCE], i, h.distance if h.found else none)
    if c[TIME].data != NULL:
        _put_float(&c[TIME], i, 1.0 if not h.found else (h.distance / reach if reach > 0.0 else 0.0))
    _put_vector(&c[POSITION], i, h.point)
    _put_vector(&c[NORMAL], i, h.normal)
    _put_vector(&c[POINT], i, h.own_point)
    _put_long(&c[ACTOR], i, p.id if h.found and h.layer_index != 2 else -1)
    _put_long(&c[CONTROLLER], i, p.id if h.found and h.layer_index == 2 else -1)
    _put_int(&c[TRIANGLE], i, <uint32_t>tri)
    _put_long(&c[DATA], i, data)
    _put_int(&c[MASK], i, mask)


@cython.final
cdef class Answers:
    """The arrays that a batch fills: its own, or the caller's."""

    cdef list arrays                # by column; None: not requested
    cdef column[COLUMNS] columns
    cdef Py_buffer[COLUMNS] buffers
    cdef int n_buffers
    cdef list given                 # (first byte, last byte, name) of the caller's

    def __cinit__(self):
        memset(self.columns, 0, sizeof(self.columns))
        self.arrays = [None] * COLUMNS
        self.given = []

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_buffers):
            PyBuffer_Release(&self.buffers[k])

    cdef int make(self, tuple names, object fields, object out, tuple shape) except -1:
        """Columns for ``fields`` (None: all of ``names``, or those of ``out``)."""
        cdef int k
        if out is None and fields is None:
            full = shape + (3,)
            for name in names:
                k = COLUMN_OF[name]
                self.arrays[k] = new_array(full if k == POSITION or k == NORMAL or k == POINT else shape,
                                           COLUMN_TYPES[k])
                self._open(k, len(shape))
            return 0
        columns = names
        given = {}
        if out is not None:
            given = _given(names, out)
            columns = tuple(given)
        if fields is not None:
            columns = _wanted(names, fields)
        for name in given:
            if name not in columns:
                raise ValueError(f"out has an array for {short(name)}, which is not one of fields")
        for name in columns:
            k = COLUMN_OF[name]
            full = shape + (3,) if k == POSITION or k == NORMAL or k == POINT else shape
            array = given.get(name)
            if array is None:
                array = new_array(full, COLUMN_TYPES[k])
            else:
                self._take(name, array, k, full)
            self.arrays[k] = array
        self.given.sort()
        for k in range(1, len(self.given)):
            if self.given[k][0] <= self.given[k - 1][1]:
                raise ValueError(f"out must not hold overlapping arrays: {short(self.given[k - 1][2])} and "
                                 f"{short(self.given[k][2])} share memory")
        # Nothing can be refused any more.
        for name in columns:
            self._open(COLUMN_OF[name], len(shape))
        return 0

    cdef int _take(self, str name, object array, int k, tuple full) except -1:
        """Check one of the caller's arrays."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"out[{short(name)}] must be a NumPy array, not {type(array).__name__}")
        kinds = (FLOAT64, FLOAT32) if COLUMN_TYPES[k] == FLOAT64 else (COLUMN_TYPES[k],)
        if array.dtype not in kinds or not array.dtype.isnative:
            raise TypeError(f"out[{short(name)}] must be an array of {' or '.join(map(str, kinds))}, not {array.dtype}")
        if array.shape != full:
            raise ValueError(f"out[{short(name)}] must have shape {full}, got {array.shape}")
        if not array.flags.writeable or not array.flags.aligned:
            raise ValueError(f"out[{short(name)}] must be writeable and aligned")
        if not array.flags.c_contiguous and (len(full) > (2 if k == POSITION or k == NORMAL or k == POINT else 1)
                                             or 0 in array.strides):
            raise ValueError(f"out[{short(name)}] must be contiguous")
        if array.size:
            first, end = np.lib.array_utils.byte_bounds(array)
            self.given.append((first, end - 1, name))
        return 0

    cdef int apart(self, object array, str name) except -1:
        """Refuse an input that shares memory with an output."""
        if self.given and array.size:
            first, end = np.lib.array_utils.byte_bounds(array)
            for low, high, other in self.given:
                if low < end and first <= high:
                    raise ValueError(f"out[{short(other)}] must not share memory with {name}")
        return 0

    cdef int _open(self, int k, int dimensions) except -1:
        cdef Py_buffer* b = &self.buffers[self.n_buffers]
        cdef column* c = &self.columns[k]
        PyObject_GetBuffer(self.arrays[k], b, PyBUF_WRITABLE | PyBUF_STRIDES)
        self.n_buffers += 1
        c.data = <char*>b.buf
        c.stride = b.strides[dimensions - 1]
        c.inner = b.strides[dimensions] if b.ndim > dimensions else 0
        c.single = k in (DISTANCE, TIME, POSITION, NORMAL, POINT) and b.itemsize == 4
        return 0


cdef dict _given(tuple names, object out):
    """The argument ``out``: arrays by name."""
    if isinstance(out, (HitArrays, ClosestArrays, TouchArrays)):
        out = out._asdict()
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a mapping of names to arrays, not {type(out).__name__}")
    given = {}
    for name, array in out.items():
        if not isinstance(name, str) or name not in names:
            raise ValueError(f"out must hold arrays for {', '.join(names)}, not {short(name)}")
        if array is not None:
            given[name] = array
    return given


cdef tuple _wanted(tuple names, object fields):
    if isinstance(fields, (str, bytes)):
        raise TypeError(f"fields must be names in a list or tuple, not {short(fields)}")
    try:
        columns = tuple(fields)
    except TypeError:
        raise TypeError(f"fields must be names in a list or tuple, not {type(fields).__name__}") from None
    for name in columns:
        if not isinstance(name, str) or name not in names:
            raise ValueError(f"fields must be among {', '.join(names)}, not {short(name)}")
    return columns


cdef quat _quat_row(const double* r) noexcept nogil:
    cdef quat q
    q.x = r[0]
    q.y = r[1]
    q.z = r[2]
    q.w = r[3]
    return q


# Kinds of batches.
cdef enum:
    DO_RAY = 0
    DO_SWEEP = 1
    DO_CLOSEST = 2


# A batch as its threads see it. Numbers that stand for all rows have a stride of 0.
cdef struct batch_job:
    int what
    bint marks_only         # with a filter: only find out about whom to ask
    query_view view
    uint8_t* marks[QUERY_PARTS]
    query_scratch* scratch  # of each thread
    int* status             # of each thread
    Py_ssize_t fan          # rows that share a position
    vector_rows positions
    vector_rows directions
    const double* rotations
    Py_ssize_t rotation_step
    const double* reach
    Py_ssize_t reach_step
    const uint32_t* masks   # NULL: that of the view
    const int64_t* exclude
    Py_ssize_t exclude_step
    const int64_t* exclude_too
    Py_ssize_t exclude_too_step
    const int64_t* groups
    Py_ssize_t group_step
    convex_shape convex
    vec3 plane
    double offset
    column columns[COLUMNS]


cdef inline vec3 _unit(vec3 v) noexcept nogil:
    """A direction as as_unit makes it."""
    cdef double m = v3_max_abs(v)
    v = v3(v.x / m, v.y / m, v.z / m)
    m = v3_len(v)
    return v3(v.x / m, v.y / m, v.z / m)


cdef void _answer_rows(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef batch_job* b = <batch_job*>context
    cdef query_view v = b.view
    cdef query_scratch* s = &b.scratch[worker]
    cdef query_shape q
    cdef query_hit h
    cdef vec3 p = v3(0.0, 0.0, 0.0), d = p, n
    cdef double reach, limit
    cdef Py_ssize_t i, fan = -1
    cdef quat r
    cdef int status = b.status[worker]
    if status != STATUS_OK:
        return
    if b.what != DO_RAY:
        r = _quat_row(b.rotations)
    for i in range(first, last):
        if b.fan == 1:
            p = row_load(&b.positions, i)
        elif fan < 0 or not fan * b.fan <= i < (fan + 1) * b.fan:
            fan = i // b.fan
            p = row_load(&b.positions, fan)
        reach = b.reach[i * b.reach_step]
        limit = reach if reach < REACH else REACH
        if b.what != DO_CLOSEST:
            d = row_load(&b.directions, i)
        # Somebody may have written into the caller's arrays since they were checked.
        if not (within(p, FARTHEST) and within(d, INFINITY) and limit >= 0.0
                and (b.what == DO_CLOSEST or v3_max_abs(d) > 0.0)):
            b.status[worker] = STATUS_NOT_FINITE
            return
        if b.what != DO_CLOSEST:
            d = _unit(d)
        if b.masks != NULL:
            v.mask = b.masks[i]
        if b.exclude != NULL:
            v.exclude = b.exclude[i * b.exclude_step]
        if b.exclude_too != NULL:
            v.exclude_too = b.exclude_too[i * b.exclude_too_step]
        if b.groups != NULL:
            v.group = b.groups[i * b.group_step]
        if b.what == DO_RAY:
            query_shape_ray(&q, p)
        else:
            if b.rotation_step > 0:
                r = _quat_row(b.rotations + i * b.rotation_step)
            if b.convex.kind == SHAPE_PLANE:
                n = q_rotate(r, b.plane)
                query_shape_halfspace(&q, n, b.offset + v3_dot(n, p))
            else:
                status = query_shape_place(&q, &b.convex, p, r, s, b.what == DO_SWEEP and not b.marks_only)
        if status == STATUS_OK:
            if b.marks_only:
                query_mark(&v, &q, d, limit, b.what == DO_CLOSEST, b.marks)
                continue
            if b.what == DO_CLOSEST:
                status = query_closest(&v, &q, limit, s, &h)
            else:
                status = query_cast(&v, &q, d, limit, s, &h)
        if status != STATUS_OK:
            b.status[worker] = status
            return
        _put(b.columns, i, &v, &h, reach, b.what == DO_CLOSEST)


cdef object _vectors(object values, str name, double limit, bint one_row):
    """An array of float64 or float32 of shape (..., 3), checked; read where it is."""
    given = values if type(values) is np.ndarray else np.asarray(values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an array of real numbers, not {given.dtype}")
    if given.ndim == 1 and given.shape[0] == 0:
        # An empty list has no rows and no columns.
        given = np.empty((0, 3))
    if given.ndim not in (1, 2, 3) or given.shape[given.ndim - 1] != 3 or (given.ndim == 1 and not one_row):
        raise ValueError(f"{name} must have shape (n, 3), got {given.shape}")
    if given.dtype is not FLOAT64 and (given.dtype != FLOAT32 or not given.dtype.isnative) or not given.flags.aligned:
        given = given.astype(np.float64)
    return given


cdef int _read(object array, vector_rows* rows, Py_buffer* b) except -1:
    """Rows of three of an array of one or two dimensions."""
    PyObject_GetBuffer(array, b, PyBUF_STRIDES)
    rows.data = <const char*>b.buf
    rows.single = b.itemsize == 4
    rows.inner = b.strides[b.ndim - 1]
    rows.stride = b.strides[0] if b.ndim == 2 else 0
    return 0


cdef bint _plain_rows(object array, vector_rows* rows, Py_buffer* b) except -1:
    """Read an aligned array of float64 or float32 of shape (n, 3) or (3,); False: it is none."""
    cdef Py_ssize_t size
    if type(array) is not np_ndarray:
        return False
    try:
        PyObject_GetBuffer(array, b, PyBUF_STRIDES | PyBUF_FORMAT)
    except (BufferError, ValueError):
        return False
    size = b.itemsize
    # Other byte orders have a prefix.
    if (1 <= b.ndim <= 2 and b.shape[b.ndim - 1] == 3 and b.format[1] == 0
            and (b.format[0] == c"d" or b.format[0] == c"f")
            and <size_t>b.buf % <size_t>size == 0 and b.strides[0] % size == 0 and b.strides[b.ndim - 1] % size == 0):
        rows.data = <const char*>b.buf
        rows.single = size == 4
        rows.inner = b.strides[b.ndim - 1]
        rows.stride = b.strides[0] if b.ndim == 2 else 0
        return True
    PyBuffer_Release(b)
    return False


cdef int _check_rows(const vector_rows* rows, Py_ssize_t n, str name, bint places) except -1:
    """Finite places within FARTHEST, or finite directions that are not zero."""
    cdef Py_ssize_t i, bad = -1
    cdef vec3 v
    cdef double m
    with nogil:
        for i in range(n):
            v = row_load(rows, i)
            m = v3_max_abs(v)
            # Not a number in one place could hide behind a larger number in another.
            if not (v.x - v.x == 0.0 and v.y - v.y == 0.0 and v.z - v.z == 0.0) or (
                    m > FARTHEST if places else m == 0.0):
                bad = i
                break
    if bad < 0:
        return 0
    v = row_load(rows, bad)
    if not (v.x - v.x == 0.0 and v.y - v.y == 0.0 and v.z - v.z == 0.0):
        raise ValueError(f"{name} must be finite, row {bad} is {from_vec3(v)}")
    if places:
        raise ValueError(f"{name} must lie within {FARTHEST:g} m of the origin, row {bad} is {from_vec3(v)}")
    raise ValueError(f"{name} must not be zero, row {bad} is")


cdef object _row_numbers(object values, str name, tuple shape, object dtype, object lowest, object highest):
    """One integer for each row, or None."""
    given = np.asarray(values)
    if given.dtype.kind not in "iu" and (given.size or given.ndim == 0):
        raise TypeError(f"{name} must be an integer or an array of integers, not {given.dtype}")
    given = _by_row(given, name, shape)
    if given.size and not (lowest <= int(given.min()) and int(given.max()) <= highest):
        if given.ndim == 0:
            raise ValueError(f"{name} must be from {lowest} to {highest}, got {given}")
        _check_each((given >= lowest) & (given <= highest), given,
                    f"{name} must hold numbers from {lowest} to {highest}")
    # A copy: the caller's arrays for the answers may share memory with it.
    return np.array(given, dtype, order="C").reshape(-1)


cdef class Batch:
    """Checked arguments of a batch; ``job`` points into arrays that live as long as this object."""

    cdef batch_job job
    cdef Py_buffer[2] buffers
    cdef int n_buffers
    cdef list keep
    cdef double length          # of all rows
    cdef tuple shape            # of the answers
    cdef Py_ssize_t n
    cdef View view

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_buffers):
            PyBuffer_Release(&self.buffers[k])

    cdef int take(self, View view, int what, object shape, object positions, object directions, object lengths,
                  object rotations, object mask, dict options, Answers out, tuple names) except -1:
        cdef batch_job* b = &self.job
        cdef str where = "origins" if what == DO_RAY else "positions"
        memset(b, 0, sizeof(batch_job))
        self.keep = []
        self.view = view
        b.what = what
        b.fan = 1
        if what != DO_RAY:
            _shape_of(shape, &b.convex)
            b.plane = (<Shape>shape).a
            b.offset = (<Shape>shape).height_
        if what != DO_CLOSEST and directions is None:
            raise TypeError("directions must be an array of real numbers, not None")
        p, d = positions, directions
        if what != DO_CLOSEST and self._plain(p, d):
            return self._go_on(where, lengths, rotations, mask, options, out, names, p, d)
        p = _vectors(positions, where, FARTHEST, False)
        if directions is None:
            if p.ndim != 2:
                raise ValueError(f"{where} must have shape (n, 3), got {p.shape}")
            self.shape = (p.shape[0],)
        else:
            d = _vectors(directions, "directions", INFINITY, True)
            self._shape_up(p, d, where)
            if len(self.shape) == 2:
                full = self.shape + (3,)
                d = np.ascontiguousarray(np.broadcast_to(d, full)).reshape(-1, 3)
                if p.ndim == 2 or p.shape[1] == 1:
                    b.fan = self.shape[1]
                    if p.shape[0] != self.shape[0]:
                        p = np.broadcast_to(p, (self.shape[0],) + p.shape[1:])
                    p = p.reshape(-1, 3)
                else:
                    p = np.ascontiguousarray(np.broadcast_to(p, full)).reshape(-1, 3)
        self.n = self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)
        if self.n > 2**31 - 1:
            raise ValueError(f"{where} can have at most {2**31 - 1} rows")
        _read(p, &b.positions, &self.buffers[0])
        self.n_buffers = 1
        _check_rows(&b.positions, p.shape[0] if self.n else 0, where, True)
        if directions is not None:
            _read(d, &b.directions, &self.buffers[1])
            self.n_buffers = 2
            _check_rows(&b.directions, 0 if self.n == 0 else (self.n if d.ndim == 2 else 1), "directions", False)
        return self._go_on(where, lengths, rotations, mask, options, out, names, p, d)

    cdef bint _plain(self, object p, object d) except -1:
        """Read arrays of positions and directions of the usual form; False: nothing is read."""
        cdef batch_job* b = &self.job
        cdef Py_ssize_t n
        if not _plain_rows(p, &b.positions, &self.buffers[0]):
            return False
        self.n_buffers = 1
        n = self.buffers[0].shape[0]
        if self.buffers[0].ndim == 2 and n <= 2**31 - 1 and _plain_rows(d, &b.directions, &self.buffers[1]):
            self.n_buffers = 2
            if self.buffers[1].ndim == 1 or self.buffers[1].shape[0] == n:
                self.n = n
                self.shape = (n,)
                _check_rows(&b.positions, n, "origins" if b.what == DO_RAY else "positions", True)
                _check_rows(&b.directions, min(n, 1) if self.buffers[1].ndim == 1 else n, "directions", False)
                return True
        while self.n_buffers > 0:
            self.n_buffers -= 1
            PyBuffer_Release(&self.buffers[self.n_buffers])
        return False

    cdef int _go_on(self, str where, object lengths, object rotations, object mask, dict options, Answers out,
                    tuple names, object p, object d) except -1:
        """Take the other arguments of rows that have been read."""
        cdef batch_job* b = &self.job
        cdef const double[::1] reach
        cdef const double[:, ::1] turned
        cdef const uint32_t[::1] masks
        cdef int what = b.what
        cdef View view = self.view
        name = "max_distance" if what == DO_CLOSEST else "distances"
        if type(lengths) is float and 0.0 <= lengths < INFINITY:
            self.length = lengths
            b.reach = &self.length
        else:
            given = _lengths(lengths, name, self.shape, what == DO_CLOSEST)
            self.keep.append(given)
            b.reach_step = 1 if given.shape[0] > 1 else 0
            if given.shape[0]:
                reach = given
                b.reach = &reach[0]
        if what != DO_RAY:
            given = _turns(rotations, "rotations", self.n)
            self.keep.append(given)
            b.rotation_step = 4 if given.shape[0] > 1 else 0
            if given.shape[0]:
                turned = given
                b.rotations = &turned[0, 0]
        if type(mask) is not int and (isinstance(mask, (list, tuple))
                                      or isinstance(mask, np_ndarray) and mask.ndim > 0):
            _look(view, 0, &b.view)
            given = _row_numbers(mask, "mask", self.shape, np.uint32, 0, 0xFFFFFFFF)
            self.keep.append(given)
            if self.n:
                masks = given
                b.masks = &masks[0]
        else:
            _look(view, as_bits(mask, "mask"), &b.view)
        b.exclude = self.id_rows(options.get("exclude"), "exclude", 2**63 - 1, &b.exclude_step)
        b.exclude_too = self.id_rows(options.get("exclude_too"), "exclude", 2**63 - 1, &b.exclude_too_step)
        b.groups = self.id_rows(options.get("group"), "group", 2**31 - 1, &b.group_step)
        out.make(names, options.get("fields"), options.get("out"), self.shape)
        out.apart(p, where)
        if d is not None:
            out.apart(d, "directions")
        b.columns = out.columns
        return 0

    cdef const int64_t* id_rows(self, object values, str name, object highest, Py_ssize_t* step) except? NULL:
        """Integers from -1 for all rows, one of them or one a row; NULL for None."""
        cdef const int64_t[::1] numbers
        if values is None:
            return NULL
        given = _row_numbers(values, name, self.shape, np.int64, -1, highest)
        self.keep.append(given)
        step[0] = 1 if given.shape[0] > 1 else 0
        if not given.shape[0]:
            return NULL
        numbers = given
        return &numbers[0]

    cdef int _shape_up(self, object p, object d, str where) except -1:
        """The shape of the answers: (n,), or (n, k) when there are k directions for each place."""
        if d.ndim == 1 and p.ndim == 2 or d.ndim == 2 and p.ndim == 2 and d.shape == p.shape:
            self.shape = (p.shape[0],)
            return 0
        if p.ndim == 2 and d.ndim == 2:
            # All places have these directions.
            self.shape = (p.shape[0], d.shape[0])
            return 0
        try:
            full = np.broadcast_shapes((p.shape[0], 1, 3) if p.ndim == 2 else p.shape, d.shape)
        except ValueError:
            raise ValueError(f"directions of shape {d.shape} do not fit {where} of shape {p.shape}") from None
        self.shape = full[:2]
        return 0

    cdef int run(self, object filter, object threads) except -1:
        cdef batch_job* b = &self.job
        cdef Verdict verdict
        cdef int n_threads = 1 if threads is None else pool_threads(threads)
        cdef int k, turn, turns = 1, status = STATUS_OK
        cdef query_scratch own
        cdef int own_status = STATUS_OK
        _check_filter(filter)
        if self.n == 0:
            return 0
        if self.n < MANY_ROWS:
            n_threads = 1
        if filter is not None:
            verdict = _no_verdict(&b.view)
            b.marks = verdict.marks
            turns = 2
        b.scratch, b.status = &own, &own_status
        if n_threads > 1:
            b.scratch = <query_scratch*>malloc(n_threads * sizeof(query_scratch))
            b.status = <int*>malloc(n_threads * sizeof(int))
            if b.scratch == NULL or b.status == NULL:
                free(b.scratch)
                free(b.status)
                raise MemoryError("pycct: out of memory")
        for k in range(n_threads):
            query_init(&b.scratch[k])
            b.status[k] = STATUS_OK
        try:
            # With a filter, the first turn only finds out whom to ask about.
            for turn in range(turns):
                b.marks_only = turn < turns - 1
                pool_run_parts(_answer_rows, b, self.n, ROWS, 1 if b.marks_only else n_threads)
                for k in range(n_threads):
                    if b.status[k] != STATUS_OK:
                        status = b.status[k]
                if status == STATUS_NOT_FINITE:
                    raise RuntimeError("an array was changed by another thread while it was read")
                raise_status(status)
                if b.marks_only:
                    _judge(self.view, &b.view, verdict, filter)
        finally:
            for k in range(n_threads):
                query_free(&b.scratch[k])
            if n_threads > 1:
                free(b.scratch)
                free(b.status)
        return 0


cdef tuple CLOSEST_FIELDS = ClosestArrays._fields, HIT_FIELDS = HitArrays._fields
cdef dict FIELDS_OF = {"overlap_many": TouchArrays._fields[:4], "penetration_many": TouchArrays._fields,
                       "closest_points_many": CLOSEST_FIELDS, "raycast_many": HIT_FIELDS, "sweep_many": HIT_FIELDS}


def fields_of(method, fields, out):
    """Return the names of the columns to compute: ``fields``, or those of ``out``, or all."""
    names = FIELDS_OF[method]
    if fields is not None:
        return _wanted(names, fields)
    return names if out is None else tuple(_given(names, out))


def put_answers(method, answers, fields, out, inputs):
    """Write joined answers into the caller's arrays; for batches over worlds."""
    cdef Answers own = Answers.__new__(Answers)
    cdef Py_ssize_t n = inputs[0][1].shape[0]
    found = answers._asdict()
    if isinstance(answers, TouchArrays):
        given = _touch_fields(fields, out, method == "penetration_many", n)[1]
        for name, array in given.items():
            if array.shape[0] < found[name].shape[0]:
                raise ValueError(f"out[{short(name)}] must have at least {found[name].shape[0]} rows, "
                                 f"got {array.shape[0]}")
            given[name] = array[:found[name].shape[0]]
    else:
        shape = [a.shape[:-1] if name in ("position", "normal", "point") else a.shape
                 for name, a in found.items() if a is not None]
        own.make(FIELDS_OF[method], fields, out, shape[0] if shape else (n,))
        for name, array in inputs:
            own.apart(array, name)
        given = _given(FIELDS_OF[method], out)
    for name, array in given.items():
        np.copyto(array, found[name], casting="same_kind")
        found[name] = array
    return type(answers)(**found)


cdef object _batch(View view, int what, object shape, object positions, object directions, object lengths,
                   object rotations, object mask, object filter, dict options):
    cdef Answers out = Answers.__new__(Answers)
    cdef Batch batch = Batch.__new__(Batch)
    cdef list a
    names = CLOSEST_FIELDS if what == DO_CLOSEST else HIT_FIELDS
    batch.take(view, what, shape, positions, directions, lengths, rotations, mask, options, out, names)
    batch.run(filter, options.get("threads"))
    a = out.arrays
    if what == DO_CLOSEST:
        return ClosestArrays(a[HIT], a[DISTANCE], a[POINT], a[POSITION], a[NORMAL], a[ACTOR], a[CONTROLLER],
                             a[TRIANGLE], a[DATA], a[MASK])
    # Its own constructor is a function in Python.
    return new_tuple(HitArrays, (a[HIT], a[DISTANCE], a[TIME], a[POSITION], a[NORMAL], a[ACTOR], a[CONTROLLER],
                                 a[TRIANGLE], a[DATA], a[MASK], a[OVERLAPPING]))


cdef object ask_raycast_many(View view, object origins, object directions, object distances, object mask,
                             object filter, dict options):
    return _batch(view, DO_RAY, None, origins, directions, distances, None, mask, filter, options)


cdef object _points(object values, str name):
    """Places as float64, of one, two or three dimensions."""
    array = np.asarray(_vectors(values, name, FARTHEST, True), np.float64)
    rows = array.reshape(1, 3) if array.ndim == 1 else array
    _check_each(np.isfinite(rows).all(axis=-1), rows, f"{name} must be finite")
    _check_each((np.abs(rows) <= FARTHEST).all(axis=-1), rows, f"{name} must lie within {FARTHEST:g} m of the origin")
    return array


cdef object ask_visible_many(View view, object a, object b, object mask, object filter, object threads, object out,
                             object exclude, object group):
    p, q = _points(a, "a"), _points(b, "b")
    if p.ndim == 3:
        raise ValueError(f"a must have shape (n, 3) or (3,), got {p.shape}")
    if p.ndim == 1:
        p = np.broadcast_to(p, (q.shape[0] if q.ndim > 1 else 1, 3))
    try:
        d = q - (p[:, None] if q.ndim == 3 else p)
    except ValueError:
        d = None
    if d is None or d.shape[0] != p.shape[0]:
        raise ValueError(f"b of shape {q.shape} does not fit a of shape {p.shape}")
    # The length and the direction are those of a single line.
    reach = np.sqrt(d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1] + d[..., 2] * d[..., 2])
    d[reach == 0.0] = (0.0, 0.0, 1.0)
    view.first_only = True
    one, other = _two(exclude)
    options = {"threads": threads, "fields": ["hit"], "exclude": one, "exclude_too": other,
               "group": group}
    if out is not None:
        options["out"] = {"hit": out}
    hit = _batch(view, DO_RAY, None, p, d, reach, None, mask, filter, options).hit
    return np.logical_not(hit, out=hit)


cdef object ask_sweep_many(View view, object shape, object positions, object directions, object distances,
                           object rotations, object mask, object filter, dict options):
    return _batch(view, DO_SWEEP, shape, positions, directions, distances, rotations, mask, filter, options)


cdef object ask_closest_many(View view, object shape, object positions, object max_distance, object rotations,
                             object mask, object filter, dict options):
    return _batch(view, DO_CLOSEST, shape, positions, None, max_distance, rotations, mask, filter, options)


# Where the touches of a row are: in the list of one thread.
cdef struct touch_span:
    int32_t worker
    int32_t first
    int32_t count


# A batch of overlaps or penetrations as its threads see it.
cdef struct touch_job:
    query_view view
    bint ways_out
    bint marks_only
    uint8_t* marks[QUERY_PARTS]
    const double* positions
    const double* rotations
    Py_ssize_t rotation_step
    const uint32_t* masks   # NULL: that of the view
    const int64_t* exclude  # NULL: nobody
    Py_ssize_t exclude_step
    const int64_t* groups   # NULL: all
    Py_ssize_t group_step
    convex_shape convex
    vec3 plane
    double offset
    query_scratch* scratch  # of each thread
    query_scratch* found    # touches of each thread
    int* status
    touch_span* spans       # of each row


cdef void _touch_rows(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef touch_job* b = <touch_job*>context
    cdef query_view v = b.view
    cdef query_scratch* s = &b.scratch[worker]
    cdef query_shape q
    cdef vec3 n
    cdef quat r
    cdef Py_ssize_t i
    cdef int status = b.status[worker]
    if status != STATUS_OK:
        return
    r = _quat_row(b.rotations)
    for i in range(first, last):
        if b.rotation_step > 0:
            r = _quat_row(b.rotations + i * b.rotation_step)
        if b.convex.kind == SHAPE_PLANE:
            n = q_rotate(r, b.plane)
            query_shape_halfspace(&q, n, b.offset + v3_dot(n, v3_load(b.positions + 3 * i)))
        else:
            status = query_shape_place(&q, &b.convex, v3_load(b.positions + 3 * i), r, s, False)
        if b.masks != NULL:
            v.mask = b.masks[i]
        if b.exclude != NULL:
            v.exclude = b.exclude[i * b.exclude_step]
        if b.groups != NULL:
            v.group = b.groups[i * b.group_step]
        if b.marks_only and status == STATUS_OK:
            query_mark(&v, &q, v3(0.0, 0.0, 0.0), 0.0, False, b.marks)
            continue
        if status == STATUS_OK:
            status = query_touches(&v, &q, b.ways_out, s)
        b.spans[i].worker = worker
        b.spans[i].first = b.found[worker].n_touches
        b.spans[i].count = s.n_touches
        if status == STATUS_OK:
            status = _collect(&b.found[worker], s, &v)
        if status != STATUS_OK:
            b.status[worker] = status
            return


cdef object _touch_out(tuple names, object out, Py_ssize_t n):
    """The caller's arrays for touches by name, checked as far as the number of touches allows."""
    given = _given(names, out)
    spans = []
    for name, array in given.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"out[{short(name)}] must be a NumPy array, not {type(array).__name__}")
        kinds = (FLOAT64, FLOAT32) if name in ("direction", "depth") else (TOUCH_TYPES[name],)
        if array.dtype not in kinds:
            raise TypeError(f"out[{short(name)}] must be an array of {' or '.join(map(str, kinds))}, not {array.dtype}")
        if name in ("hit", "first"):
            want = (n + 1,) if name == "first" else (n,)
            if array.shape != want:
                raise ValueError(f"out[{short(name)}] must have shape {want}, got {array.shape}")
        elif array.shape[1:] != ((3,) if name == "direction" else ()) or array.ndim == 0:
            raise ValueError(f"out[{short(name)}] must have shape {'(k, 3)' if name == 'direction' else '(k,)'}, "
                             f"got {array.shape}")
        if not array.flags.writeable or 0 in array.strides and array.size > 1:
            raise ValueError(f"out[{short(name)}] must be writeable, with a place for each value")
        if array.size:
            first, end = np.lib.array_utils.byte_bounds(array)
            spans.append((first, end - 1, name))
    spans.sort()
    for k in range(1, len(spans)):
        if spans[k][0] <= spans[k - 1][1]:
            raise ValueError(f"out must not hold overlapping arrays: {short(spans[k - 1][2])} and "
                             f"{short(spans[k][2])} share memory")
    return given


cdef object _touch_arrays(const touch_job* b, Py_ssize_t n, tuple columns, dict out):
    """The requested columns of the touches of all threads, in the order of the rows."""
    cdef Py_ssize_t i, at = 0
    cdef int32_t k
    cdef int64_t[::1] first, actor, controller
    cdef double[:, ::1] direction
    cdef double[::1] depth
    cdef const query_touch* t
    cdef int64_t id_
    cdef bint with_owner = "actor" in columns or "controller" in columns
    cdef bint with_exits = "direction" in columns or "depth" in columns
    starts = np.zeros(n + 1, np.int64)
    first = starts
    for i in range(n):
        at += b.spans[i].count
        first[i + 1] = at
    for name, array in out.items():
        if name not in ("hit", "first") and array.shape[0] < at:
            raise ValueError(f"out[{short(name)}] must have at least {at} rows, got {array.shape[0]}")
    made = {"hit": np.diff(starts) > 0, "first": starts}
    if with_owner:
        made["actor"], made["controller"] = np.full(at, -1, np.int64), np.full(at, -1, np.int64)
        actor, controller = made["actor"], made["controller"]
    if with_exits:
        made["direction"], made["depth"] = np.zeros((at, 3)), np.zeros(at)
        direction, depth = made["direction"], made["depth"]
    at = 0
    for i in range(n if with_owner or with_exits else 0):
        for k in range(b.spans[i].count):
            t = &b.found[b.spans[i].worker].touches[b.spans[i].first + k]
            if with_owner:
                id_ = b.view.layers[t.layer_index].items[t.item].id
                if t.layer_index == 2:
                    controller[at] = id_
                else:
                    actor[at] = id_
            if with_exits:
                direction[at, 0] = t.direction.x
                direction[at, 1] = t.direction.y
                direction[at, 2] = t.direction.z
                depth[at] = t.depth
            at += 1
    for name, array in out.items():
        place = array[:made[name].shape[0]]
        np.copyto(place, made[name], casting="same_kind")
        made[name] = place
    return TouchArrays(*[made[name] if name in columns else None for name in TouchArrays._fields])


cdef dict TOUCH_TYPES = {"hit": np.dtype(np.bool_), "first": np.dtype("i8"), "actor": np.dtype("i8"),
                         "controller": np.dtype("i8")}


cdef tuple _touch_fields(object fields, object out, bint ways_out, Py_ssize_t n):
    """Names of the requested columns, and the caller's arrays."""
    names = TouchArrays._fields if ways_out else TouchArrays._fields[:4]
    given = {} if out is None else _touch_out(names, out, n)
    columns = tuple(given) if given and fields is None else names
    if fields is not None:
        columns = _wanted(names, fields)
    for name in given:
        if name not in columns:
            raise ValueError(f"out has an array for {short(name)}, which is not one of fields")
    return columns, given


cdef object ask_touching_many(View view, object shape, object positions, object rotations, object mask,
                              object filter, bint ways_out, dict options):
    cdef touch_job b
    cdef const double[:, ::1] p
    cdef const double[:, ::1] r
    cdef const uint32_t[::1] masks
    cdef const int64_t[::1] ids, groups
    cdef Py_ssize_t n
    cdef Verdict verdict = None
    cdef int n_threads
    memset(&b, 0, sizeof(touch_job))
    _shape_of(shape, &b.convex)
    b.plane = (<Shape>shape).a
    b.offset = (<Shape>shape).height_
    places = _places(positions, "positions", -1)
    n = places.shape[0]
    turned = _turns(rotations, "rotations", n)
    _check_filter(filter)
    if isinstance(mask, np.ndarray) and mask.ndim > 0:
        _look(view, 0, &b.view)
        row_masks = _row_numbers(mask, "mask", (n,), np.uint32, 0, 0xFFFFFFFF)
        if n:
            masks = row_masks
            b.masks = &masks[0]
    else:
        _look(view, as_bits(mask, "mask"), &b.view)
    exclude, group = options.get("exclude"), options.get("group")
    if exclude is not None:
        row_ids = _row_numbers(exclude, "exclude", (n,), np.int64, -1, 2**63 - 1)
        b.exclude_step = 1 if row_ids.shape[0] > 1 else 0
        if row_ids.shape[0]:
            ids = row_ids
            b.exclude = &ids[0]
    if group is not None:
        row_groups = _row_numbers(group, "group", (n,), np.int64, -1, 2**31 - 1)
        b.group_step = 1 if row_groups.shape[0] > 1 else 0
        if row_groups.shape[0]:
            groups = row_groups
            b.groups = &groups[0]
    columns, out = _touch_fields(options.get("fields"), options.get("out"), ways_out, n)
    threads = options.get("threads")
    n_threads = 1 if threads is None else pool_threads(threads)
    if n < MANY_ROWS:
        n_threads = 1
    if n:
        p, r = places, turned
        b.positions, b.rotations = &p[0, 0], &r[0, 0]
        b.rotation_step = 4 if turned.shape[0] > 1 else 0
    b.ways_out = ways_out
    # The first object decides whether there is one.
    b.view.first_only = not ways_out and all([name == "hit" for name in columns])
    if filter is not None:
        verdict = _no_verdict(&b.view)
        b.marks = verdict.marks
    try:
        _touch_memory(&b, n, n_threads)
        _touch_turns(view, &b, verdict, filter, n, n_threads)
        return _touch_arrays(&b, n, columns, out)
    finally:
        if b.scratch != NULL:
            for k in range(2 * n_threads):
                query_free(&b.scratch[k])
        free(b.scratch)
        free(b.status)
        free(b.spans)


cdef int _touch_memory(touch_job* b, Py_ssize_t n, int n_threads) except -1:
    """Memory of all threads; the caller frees it."""
    cdef int k
    b.scratch = <query_scratch*>malloc(2 * n_threads * sizeof(query_scratch))
    if b.scratch != NULL:
        for k in range(2 * n_threads):
            query_init(&b.scratch[k])
        b.found = b.scratch + n_threads
    b.status = <int*>calloc(n_threads, sizeof(int))
    b.spans = <touch_span*>malloc(<size_t>(n + 1) * sizeof(touch_span))
    if b.scratch == NULL or b.status == NULL or b.spans == NULL:
        raise MemoryError("pycct: out of memory")
    return 0


cdef int _touch_turns(View view, touch_job* b, Verdict verdict, object filter, Py_ssize_t n, int n_threads) except -1:
    """Run all rows; with a filter, a first turn only finds out whom to ask about."""
    cdef int turn, turns = 1 if filter is None else 2, k, status = STATUS_OK
    for turn in range(turns):
        b.marks_only = turn < turns - 1
        pool_run_parts(_touch_rows, b, n, ROWS, 1 if b.marks_only else n_threads)
        for k in range(n_threads):
            if b.status[k] != STATUS_OK:
                status = b.status[k]
        raise_status(status)
        if b.marks_only:
            _judge(view, &b.view, verdict, filter)
    return 0


cdef inline bint _touch_before(const query_view* v, const query_touch* x, const query_touch* y) noexcept nogil:
    if (x.layer_index == 2) != (y.layer_index == 2):
        return y.layer_index == 2
    return v.layers[x.layer_index].items[x.item].id < v.layers[y.layer_index].items[y.item].id


cdef int _collect(query_scratch* into, query_scratch* s, const query_view* v) noexcept nogil:
    """Append the touches of one query, actors by id and then characters by id."""
    cdef int32_t i, j
    cdef query_touch t
    for i in range(1, s.n_touches):
        t = s.touches[i]
        j = i - 1
        while j >= 0 and _touch_before(v, &t, &s.touches[j]):
            s.touches[j + 1] = s.touches[j]
            j -= 1
        s.touches[j + 1] = t
    for i in range(s.n_touches):
        j = query_note(into, &s.touches[i])
        if j != STATUS_OK:
            return j
    return STATUS_OK
