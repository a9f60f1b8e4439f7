# cython: language_level=3
"""Queries for Python: checked arguments, results as objects or arrays."""
from collections import namedtuple

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

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
)
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.convex.hull cimport HullTables
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
    query_scratch,
    query_touch,
    query_touches,
    query_view,
)
from pycct.shapes.primitives cimport ConvexHull, Shape
from pycct.geometry.types cimport (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TRIANGLE,
    STATUS_OK,
)
from pycct.geometry.vec cimport q_rotate, quat, v3, v3_dot, v3_load, vec3
from pycct.world.candidates cimport collider, triangle_data, triangle_mask

from pycct.args.pickling import still_there

# No object of a scene is farther away than this: longer searches end here.
cdef double REACH = 1e13

# A named tuple takes its module from its caller's frame, which compiled code lacks.
HitArrays = namedtuple(
    "HitArrays", "hit distance time position normal actor controller triangle data mask overlapping", module=__name__)
HitArrays.__doc__ = """Answers of `Scene.raycast_many` and `Scene.sweep_many`, one row per question.

Where ``hit`` is False: distance is the one asked for, time 1, ids and triangles -1, the rest zero.
``actor`` and ``controller`` hold ids, ``data`` 0 and ``mask`` 0xFFFFFFFF where a triangle has none.
"""
TouchArrays = namedtuple("TouchArrays", "hit first actor controller direction depth", module=__name__)
TouchArrays.__doc__ = """Answers of `Scene.overlap_many` and `Scene.penetration_many`.

``hit`` has one row per question; what question i touches stands in rows ``first[i]`` to
``first[i + 1]`` of the others. ``direction`` and ``depth`` are None for `Scene.overlap_many`.
"""
ClosestArrays = namedtuple(
    "ClosestArrays", "hit distance point position normal actor controller triangle data mask", module=__name__)
ClosestArrays.__doc__ = """Answers of `Scene.closest_points_many`, one row per question.

Where ``hit`` is False: ids and triangles -1, the rest zero. ``point`` is on the shape, ``position`` on the world.
"""


@cython.final
cdef class View:
    cdef object owner(self, int part, int item):
        if part == 0:
            return self.fixed_owners[item]
        return self.moving_owners[item] if part == 1 else self.character_owners[item]


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
        The object that was hit, in one of both.
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

    def __copy__(self):
        return self

    def __reduce__(self):
        return _scene_hit_again, (self.distance, self.time, still_there(self.actor), still_there(self.controller),
                                  self.triangle, self.data, self.mask, bool(self.overlapping), self.position,
                                  self.normal)

    def __repr__(self):
        return (f"<SceneHit: {self.other!r} at distance {self.distance:.6g}, position {self.position}, "
                f"normal {self.normal}, triangle {self.triangle}>")


def _scene_hit_again(distance, time, actor, controller, triangle, data, mask, overlapping, position, normal):
    """Return a pickled or copied SceneHit."""
    cdef SceneHit r = SceneHit.__new__(SceneHit)
    r.distance, r.time, r.overlapping = distance, time, overlapping
    r.actor, r.controller, r.triangle, r.data, r.mask = actor, controller, triangle, data, mask
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
    depth : float
        Length of the exit along the direction, metres.
    """

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

    def __copy__(self):
        return self

    def __reduce__(self):
        return _penetration_again, (still_there(self.actor), still_there(self.controller), self.direction, self.depth)

    def __iter__(self):
        return iter((self.other, self.direction, self.depth))

    def __repr__(self):
        return f"<Penetration: {self.other!r}, {self.depth:.6g} along {self.direction}>"


def _penetration_again(actor, controller, direction, depth):
    """Return a pickled or copied Penetration."""
    cdef Penetration r = Penetration.__new__(Penetration)
    r.actor, r.controller, r.depth = actor, controller, depth
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
        The nearest object, in one of both.
    triangle, data, mask : int or None
        As in `SceneHit`.
    """

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

    def __copy__(self):
        return self

    def __reduce__(self):
        return _closest_again, (self.distance, self.point, self.position, self.normal, still_there(self.actor),
                                still_there(self.controller), self.triangle, self.data, self.mask)

    def __repr__(self):
        return f"<ClosestPoints: {self.other!r} at distance {self.distance:.6g}, {self.point} to {self.position}>"


def _closest_again(distance, point, position, normal, actor, controller, triangle, data, mask):
    """Return pickled or copied ClosestPoints."""
    cdef ClosestPoints r = ClosestPoints.__new__(ClosestPoints)
    r.distance = distance
    r.point_ = as_vec3(point, "point")
    r.position_ = as_vec3(position, "position")
    r.normal_ = as_vec3(normal, "normal")
    r.actor, r.controller, r.triangle, r.data, r.mask = actor, controller, triangle, data, mask
    return r


# ---------------------------------------------------------------- arguments

cdef int _shape_of(object shape, convex_shape* out) except -1:
    """Return the plain values of a query shape; kind SHAPE_PLANE leaves them to the caller."""
    cdef Shape s
    cdef HullTables tables
    if not isinstance(shape, Shape):
        raise TypeError(f"shape must be a shape, not {type(shape).__name__}")
    s = <Shape>shape
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
    elif s.kind != SHAPE_PLANE:
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
    v.parts[0] = view.fixed
    v.parts[1] = view.moving
    v.parts[2] = view.characters
    v.allowed[0] = v.allowed[1] = v.allowed[2] = NULL
    v.mask = mask
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
        if v.parts[k] != NULL:
            r.marks[k] = <uint8_t*>calloc(v.parts[k].n + 1, 1)
            if r.marks[k] == NULL:
                raise MemoryError("pycct: out of memory")
    return r


cdef int _judge(View view, query_view* v, Verdict verdict, object filter) except -1:
    """Call the filter for every marked item, in the order of layers and items."""
    cdef int k
    cdef int32_t i
    for k in range(QUERY_PARTS):
        if v.parts[k] != NULL:
            for i in range(v.parts[k].n):
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
    if n >= 0 and given.ndim == 1 and given.shape[0] == columns:
        given = np.broadcast_to(given, (n, columns))
    if given.ndim != 2 or given.shape[1] != columns or (n >= 0 and given.shape[0] != n):
        want = f"({n}, {columns}) or ({columns},)" if n >= 0 else f"(n, {columns})"
        raise ValueError(f"{name} must have shape {want}, got {given.shape}")
    if given.shape[0] > 2**31 - 1:
        raise ValueError(f"{name} can have at most {2**31 - 1} rows")
    array = np.array(given, dtype=np.float64, order="C", copy=True)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


cdef object _places(object values, str name, Py_ssize_t n):
    array = _rows(values, name, 3, n)
    if array.size and np.abs(array).max() > FARTHEST:
        raise ValueError(f"{name} must lie within {FARTHEST:g} m of the origin")
    return array


cdef object _units(object values, str name, Py_ssize_t n):
    """Return directions, normalised as as_unit does."""
    array = _rows(values, name, 3, n)
    m = np.abs(array).max(axis=1, initial=0.0)
    if (m == 0.0).any():
        raise ValueError(f"{name} must not be zero")
    array /= m[:, None]
    m = np.sqrt(array[:, 0] * array[:, 0] + array[:, 1] * array[:, 1] + array[:, 2] * array[:, 2])
    array /= m[:, None]
    return array


cdef object _turns(object values, str name, Py_ssize_t n):
    """Return rotations, normalised as as_quat does."""
    array = _rows(values, name, 4, n)
    m = np.sqrt(array[:, 0] * array[:, 0] + array[:, 1] * array[:, 1] + array[:, 2] * array[:, 2]
                + array[:, 3] * array[:, 3])
    if (np.abs(m - 1.0) > 1e-3).any():
        raise ValueError(f"{name} must be unit quaternions")
    array /= m[:, None]
    return array


cdef object _lengths(object values, str name, Py_ssize_t n, bint endless):
    given = np.asarray(values)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number or an array of numbers, not {given.dtype}")
    if given.shape not in ((), (n,)):
        raise ValueError(f"{name} must be one number or have shape ({n},), got {given.shape}")
    array = np.array(np.broadcast_to(given, (n,)), dtype=np.float64, copy=True)
    if endless:
        if np.isnan(array).any() or (array < 0.0).any():
            raise ValueError(f"{name} must be >= 0")
    elif not np.isfinite(array).all() or (array < 0.0).any():
        raise ValueError(f"{name} must be finite and >= 0")
    return array


# ---------------------------------------------------------------- single queries

cdef SceneHit _scene_hit(View view, const query_view* v, const query_hit* h, double reach):
    cdef SceneHit r = SceneHit.__new__(SceneHit)
    cdef const collider* p = &v.parts[h.part].items[h.item]
    cdef int64_t data
    r.distance = h.distance
    r.time = h.distance / reach if reach > 0.0 else 0.0
    r.position_ = h.point
    r.normal_ = h.normal
    r.overlapping = h.overlapping
    if h.part == 2:
        r.controller = view.owner(2, h.item)
    else:
        r.actor = view.owner(h.part, h.item)
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
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    query_shape_ray(&q, o)
    query_init(&s)
    try:
        return _cast(view, &v, &q, d, reach, &s, filter)
    finally:
        query_free(&s)


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
                found.append(view.owner(s.touches[i].part, s.touches[i].item))
                continue
            one = Penetration.__new__(Penetration)
            if s.touches[i].part == 2:
                one.controller = view.owner(2, s.touches[i].item)
            else:
                one.actor = view.owner(s.touches[i].part, s.touches[i].item)
            one.direction_ = s.touches[i].direction
            one.depth = s.touches[i].depth
            found.append(one)
    finally:
        query_free(&s)
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

# Columns that all results share.
cdef class Columns:
    cdef object hit, distance, position, normal, point, actor, controller, triangle, data, mask, overlapping
    cdef uint8_t[::1] hit_
    cdef uint8_t[::1] overlapping_
    cdef double[::1] distance_
    cdef double[:, ::1] position_
    cdef double[:, ::1] normal_
    cdef double[:, ::1] point_
    cdef int64_t[::1] actor_
    cdef int64_t[::1] controller_
    cdef int32_t[::1] triangle_
    cdef int64_t[::1] data_
    cdef uint32_t[::1] mask_

    def __cinit__(self, Py_ssize_t n):
        self.hit = np.zeros(n, bool)
        self.overlapping = np.zeros(n, bool)
        self.distance = np.zeros(n)
        self.position = np.zeros((n, 3))
        self.normal = np.zeros((n, 3))
        self.point = np.zeros((n, 3))
        self.actor = np.full(n, -1, np.int64)
        self.controller = np.full(n, -1, np.int64)
        self.triangle = np.full(n, -1, np.int32)
        self.data = np.zeros(n, np.int64)
        self.mask = np.full(n, 0xFFFFFFFF, np.uint32)
        self.hit_ = self.hit.view(np.uint8)
        self.overlapping_ = self.overlapping.view(np.uint8)
        self.distance_ = self.distance
        self.position_ = self.position
        self.normal_ = self.normal
        self.point_ = self.point
        self.actor_ = self.actor
        self.controller_ = self.controller
        self.triangle_ = self.triangle
        self.data_ = self.data
        self.mask_ = self.mask

    cdef void put(self, Py_ssize_t i, const query_view* v, const query_hit* h) noexcept nogil:
        cdef const collider* p
        if not h.found:
            return
        p = &v.parts[h.part].items[h.item]
        self.hit_[i] = 1
        self.overlapping_[i] = 1 if h.overlapping else 0
        self.distance_[i] = h.distance
        self.position_[i, 0], self.position_[i, 1], self.position_[i, 2] = h.point.x, h.point.y, h.point.z
        self.normal_[i, 0], self.normal_[i, 1], self.normal_[i, 2] = h.normal.x, h.normal.y, h.normal.z
        self.point_[i, 0], self.point_[i, 1], self.point_[i, 2] = h.own_point.x, h.own_point.y, h.own_point.z
        if h.part == 2:
            self.controller_[i] = p.id
        else:
            self.actor_[i] = p.id
        if h.tri >= 0:
            self.triangle_[i] = h.tri
            triangle_data(p, h.tri, &self.data_[i])
            self.mask_[i] = triangle_mask(p, h.tri)


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


cdef object _batch(View view, int what, object shape, object positions, object directions, object lengths,
                   object rotations, uint32_t mask, object filter):
    cdef Py_ssize_t n = positions.shape[0], i
    cdef Columns out = Columns(n)
    cdef double[:, ::1] p = positions
    cdef double[:, ::1] d = positions if directions is None else directions
    cdef double[:, ::1] r = np.zeros((n, 4)) if rotations is None else rotations
    cdef double[::1] reach = lengths
    cdef convex_shape convex
    cdef Shape s_ = shape
    cdef query_view v
    cdef query_scratch s
    cdef query_hit h
    cdef query_shape q
    cdef Verdict verdict
    cdef int status = STATUS_OK, turn, turns = 1
    cdef unsigned long long env
    cdef double limit
    cdef vec3 dir = v3(0.0, 0.0, 0.0)
    _check_filter(filter)
    _look(view, mask, &v)
    if what != DO_RAY:
        _shape_of(shape, &convex)
    if filter is not None:
        verdict = _no_verdict(&v)
        turns = 2
    if n == 0:
        return out
    query_init(&s)
    try:
        # With a filter, the first round only finds the objects for the filter.
        for turn in range(turns):
            with nogil:
                env = fp_enter()
                for i in range(n):
                    limit = reach[i] if reach[i] < REACH else REACH
                    if what != DO_CLOSEST:
                        dir = v3_load(&d[i, 0])
                    if what == DO_RAY:
                        query_shape_ray(&q, v3_load(&p[i, 0]))
                    else:
                        status = _place(&q, s_, &convex, v3_load(&p[i, 0]), _quat_row(&r[i, 0]), &s,
                                        what == DO_SWEEP and turn == turns - 1)
                        if status != STATUS_OK:
                            break
                    if turn < turns - 1:
                        query_mark(&v, &q, dir, limit, what == DO_CLOSEST, verdict.marks)
                        continue
                    if what == DO_CLOSEST:
                        status = query_closest(&v, &q, limit, &s, &h)
                    else:
                        status = query_cast(&v, &q, dir, limit, &s, &h)
                    if status != STATUS_OK:
                        break
                    out.put(i, &v, &h)
                fp_leave(env)
            raise_status(status)
            if turn < turns - 1:
                _judge(view, &v, verdict, filter)
    finally:
        query_free(&s)
    return out


cdef object _hits(Columns c, object reach):
    time = np.ones(len(reach))
    np.divide(c.distance, reach, out=time, where=reach > 0.0)
    time[c.hit & (reach == 0.0)] = 0.0
    time[~c.hit] = 1.0
    distance = np.where(c.hit, c.distance, reach)
    return HitArrays(c.hit, distance, time, c.position, c.normal, c.actor, c.controller, c.triangle, c.data, c.mask,
                     c.overlapping)


cdef object ask_raycast_many(View view, object origins, object directions, object distances, object mask,
                             object filter):
    o = _places(origins, "origins", -1)
    d = _units(directions, "directions", o.shape[0])
    reach = _lengths(distances, "distances", o.shape[0], False)
    return _hits(_batch(view, DO_RAY, None, o, d, reach, None, as_bits(mask, "mask"), filter), reach)


cdef object ask_sweep_many(View view, object shape, object positions, object directions, object distances,
                           object rotations, object mask, object filter):
    cdef convex_shape convex
    _shape_of(shape, &convex)
    p = _places(positions, "positions", -1)
    d = _units(directions, "directions", p.shape[0])
    reach = _lengths(distances, "distances", p.shape[0], False)
    r = _turns(rotations, "rotations", p.shape[0])
    return _hits(_batch(view, DO_SWEEP, shape, p, d, reach, r, as_bits(mask, "mask"), filter), reach)


cdef object ask_closest_many(View view, object shape, object positions, object max_distance, object rotations,
                             object mask, object filter):
    cdef convex_shape convex
    cdef Columns c
    _shape_of(shape, &convex)
    p = _places(positions, "positions", -1)
    reach = _lengths(max_distance, "max_distance", p.shape[0], True)
    r = _turns(rotations, "rotations", p.shape[0])
    c = _batch(view, DO_CLOSEST, shape, p, None, reach, r, as_bits(mask, "mask"), filter)
    return ClosestArrays(c.hit, c.distance, c.point, c.position, c.normal, c.actor, c.controller, c.triangle,
                         c.data, c.mask)


cdef object ask_touching_many(View view, object shape, object positions, object rotations, object mask,
                              object filter, bint ways_out):
    cdef convex_shape convex
    cdef double[:, ::1] p
    cdef double[:, ::1] r
    cdef Py_ssize_t n, i
    cdef int32_t k
    cdef int64_t[::1] first, actor, controller
    cdef double[:, ::1] direction
    cdef double[::1] depth
    cdef query_view v
    cdef query_scratch s, all_
    cdef query_shape q
    cdef Verdict verdict
    cdef const collider* item
    cdef int status = STATUS_OK, turn, turns = 1
    cdef unsigned long long env
    cdef Shape s_
    _shape_of(shape, &convex)
    s_ = shape
    places = _places(positions, "positions", -1)
    n = places.shape[0]
    turned = _turns(rotations, "rotations", n)
    _check_filter(filter)
    _look(view, as_bits(mask, "mask"), &v)
    p, r = places, turned
    starts = np.zeros(n + 1, np.int64)
    first = starts
    if filter is not None:
        verdict = _no_verdict(&v)
        turns = 2
    query_init(&s)
    query_init(&all_)
    try:
        for turn in range(turns):
            with nogil:
                env = fp_enter()
                for i in range(n):
                    status = _place(&q, s_, &convex, v3_load(&p[i, 0]), _quat_row(&r[i, 0]), &s, False)
                    if status != STATUS_OK:
                        break
                    if turn < turns - 1:
                        query_mark(&v, &q, v3(0.0, 0.0, 0.0), 0.0, False, verdict.marks)
                        continue
                    status = query_touches(&v, &q, ways_out, &s)
                    if status == STATUS_OK:
                        status = _collect(&all_, &s, &v)
                    if status != STATUS_OK:
                        break
                    first[i + 1] = all_.n_touches
                fp_leave(env)
            raise_status(status)
            if turn < turns - 1:
                _judge(view, &v, verdict, filter)
        actors = np.full(all_.n_touches, -1, np.int64)
        controllers = np.full(all_.n_touches, -1, np.int64)
        directions = np.zeros((all_.n_touches, 3))
        depths = np.zeros(all_.n_touches)
        actor, controller, direction, depth = actors, controllers, directions, depths
        for k in range(all_.n_touches):
            item = &v.parts[all_.touches[k].part].items[all_.touches[k].item]
            if all_.touches[k].part == 2:
                controller[k] = item.id
            else:
                actor[k] = item.id
            direction[k, 0] = all_.touches[k].direction.x
            direction[k, 1] = all_.touches[k].direction.y
            direction[k, 2] = all_.touches[k].direction.z
            depth[k] = all_.touches[k].depth
    finally:
        query_free(&s)
        query_free(&all_)
    hit = np.diff(starts) > 0
    return TouchArrays(hit, starts, actors, controllers, directions if ways_out else None,
                       depths if ways_out else None)


cdef inline bint _touch_before(const query_view* v, const query_touch* x, const query_touch* y) noexcept nogil:
    if (x.part == 2) != (y.part == 2):
        return y.part == 2
    return v.parts[x.part].items[x.item].id < v.parts[y.part].items[y.item].id


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
