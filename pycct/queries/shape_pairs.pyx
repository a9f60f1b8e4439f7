"""Shape against shape: the public functions over the distance and manifold kernels."""
cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from collections import namedtuple

import numpy as np

from pycct.args.values cimport FARTHEST, as_float, as_place, as_quat, as_table, as_vec3, from_vec3, short
from pycct.convex.distance cimport distance_result, shape_distance
from pycct.runtime.fenv cimport fp_enter, fp_leave
from pycct.runtime.thread_pool cimport clock_now, next_part
from pycct.convex.manifold cimport MAX_CONTACTS, flip_manifold, manifold, shape_contacts
from pycct.convex.polytope cimport FEATURE_EDGE, FEATURE_FACE, convex_shape, pose
from pycct.shapes.primitives cimport Capsule, Shape, convex_values
from pycct.geometry.vec cimport v3, v3_load, vec3

# A named tuple takes its module from its caller's frame, which compiled code lacks.
Feature = namedtuple("Feature", "kind number", module=__name__)
Feature.__doc__ = "What a closest point lies on: kind 'vertex', 'edge' or 'face', and its number in the shape."
Contact = namedtuple("Contact", "point distance", module=__name__)
Contact.__doc__ = "One contact: the point on B (m) and the signed distance to A along the normal (m)."
DistanceArrays = namedtuple(
    "DistanceArrays", "near distance point_a point_b normal normal_a normal_b feature_a feature_b", module=__name__)
DistanceArrays.__doc__ = "Results of distance_between_many, one row per pair; rows with near False are zero."
ContactArrays = namedtuple("ContactArrays", "near normal counts points_on_b distances", module=__name__)
ContactArrays.__doc__ = "Results of contacts_between_many; row i has counts[i] contacts, the rest of its 32 are zero."


# Pairs before a batch first looks for Ctrl-C; hulls take up to a millisecond for each.
cdef int64_t FIRST_PAIRS = 16


cdef int convex_of(object shape, str name, convex_shape* out) except -1:
    """Return the plain values of a convex shape, which must outlive them.

    TypeError names the argument.
    """
    if not isinstance(shape, Shape):
        raise TypeError(f"{name} must be a shape, not {type(shape).__name__}")
    if not convex_values(<Shape>shape, out):
        raise TypeError(f"{name} must be a Sphere, Capsule, Box, Triangle or ConvexHull, not {type(shape).__name__}")
    return 0


cdef int pose_of(object value, str name, pose* out) except -1:
    """Return a pose (position, rotation); None is the identity."""
    out.position = v3(0.0, 0.0, 0.0)
    out.rotation.x = out.rotation.y = out.rotation.z = 0.0
    out.rotation.w = 1.0
    if value is None:
        return 0
    try:
        position, rotation = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (position, rotation)") from None
    out.position = as_place(position, name + " position")
    if rotation is not None:
        out.rotation = as_quat(rotation, name + " rotation")
    return 0


cdef double limit_of(object value, str name="max_distance") except? -1.0:
    """Return a distance: any number but NaN; infinity means no limit."""
    if type(value) is float and value == INFINITY:
        return INFINITY
    try:
        if float(value) == INFINITY:
            return INFINITY
    except (TypeError, ValueError, OverflowError):
        pass
    return as_float(value, name)


cdef object feature_tuple(int32_t code):
    if code & FEATURE_FACE:
        return Feature("face", code & 0x3FFF)
    return Feature("edge" if code & FEATURE_EDGE else "vertex", code & 0x3FFF)


def decode_feature(code):
    """Return kind and number of a feature code.

    Parameters
    ----------
    code : int
        A 16-bit feature code: top two bits 0 vertex, 1 edge, 2 face; the rest its number.

    Returns
    -------
    Feature
        ``(kind, number)`` with kind ``'vertex'``, ``'edge'`` or ``'face'``.

    Raises
    ------
    TypeError, ValueError
        If `code` is no feature code.
    """
    if isinstance(code, np.ndarray) and code.ndim > 0 or not hasattr(type(code), "__index__"):
        raise TypeError(f"code must be an integer, not {type(code).__name__}")
    if not 0 <= code < 0xC000:
        raise ValueError(f"code must be from 0 to {0xC000 - 1}, got {short(code)}")
    return feature_tuple(code)


@cython.final
cdef class Distance:
    """Result of `distance_between`; immutable.

    Attributes
    ----------
    distance : float
        Metres; negative for an overlap: moving A by ``-distance * normal`` is then the shortest way
        to separate both shapes.
    point_a, point_b : tuple of 3 floats
        Closest points on the surfaces, world space; ``point_a - point_b = distance * normal``.
        For overlapping shapes the deepest points.
    normal : tuple of 3 floats
        Unit, from B towards A.
    normal_a, normal_b : tuple of 3 floats
        Outward unit surface normals at the points: of the face, or the mean of the faces at an edge
        or corner. Rounded shapes and points use `normal`.
    feature_a, feature_b : int
        Feature codes, see `decode_feature`. Box: vertices by bits (x, y, z positive), edges four
        along each axis, faces +X +Y +Z -X -Y -Z. Triangle: vertices a b c, edges ab bc ca, faces
        front and back. Capsule: vertex 0 low, 1 high, edge 0 between. Hull: its tables; a hull
        flattened by a zero scale: vertices of its tables, edges along its outline, faces 0 towards
        the axis and 1 away.
    """
    cdef distance_result r

    @property
    def distance(self):
        """Signed distance (m)."""
        return self.r.distance

    @property
    def point_a(self):
        """Point on A's surface (m)."""
        return from_vec3(self.r.point_a)

    @property
    def point_b(self):
        """Point on B's surface (m)."""
        return from_vec3(self.r.point_b)

    @property
    def normal(self):
        """Unit vector from B towards A."""
        return from_vec3(self.r.normal)

    @property
    def normal_a(self):
        """Outward normal of A at `point_a`."""
        return from_vec3(self.r.normal_a)

    @property
    def normal_b(self):
        """Outward normal of B at `point_b`."""
        return from_vec3(self.r.normal_b)

    @property
    def feature_a(self):
        """Feature code on A."""
        return self.r.feature_a

    @property
    def feature_b(self):
        """Feature code on B."""
        return self.r.feature_b

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _distance_again, (self.r.distance, self.point_a, self.point_b, self.normal, self.normal_a,
                                 self.normal_b, self.r.feature_a, self.r.feature_b)

    def __repr__(self):
        a, b = decode_feature(self.r.feature_a), decode_feature(self.r.feature_b)
        return (f"Distance({self.r.distance!r}, point_a={self.point_a}, point_b={self.point_b}, "
                f"{a.kind} {a.number} to {b.kind} {b.number})")


def _distance_again(distance, point_a, point_b, normal, normal_a, normal_b, feature_a, feature_b):
    """Return a pickled Distance."""
    cdef Distance d = Distance.__new__(Distance)
    d.r.distance = distance
    d.r.point_a, d.r.point_b = as_vec3(point_a, "point_a"), as_vec3(point_b, "point_b")
    d.r.normal = as_vec3(normal, "normal")
    d.r.normal_a, d.r.normal_b = as_vec3(normal_a, "normal_a"), as_vec3(normal_b, "normal_b")
    d.r.feature_a, d.r.feature_b = feature_a, feature_b
    return d


cdef bint _distance(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb, double limit,
                    distance_result* r) noexcept:
    """Call shape_distance in the floating-point environment of results."""
    cdef unsigned long long env = fp_enter()
    cdef bint near = shape_distance(a, pa, b, pb, limit, r)
    fp_leave(env)
    return near


cdef bint _contacts(const convex_shape* a, const pose* pa, const convex_shape* b, const pose* pb, double limit,
                    double cutoff, manifold* m) noexcept:
    cdef unsigned long long env = fp_enter()
    cdef bint near = shape_contacts(a, pa, b, pb, limit, cutoff, m, NULL)
    fp_leave(env)
    return near


def distance_between(a, b, pose_a=None, pose_b=None, max_distance=INFINITY):
    """Return the signed distance of two convex shapes.

    Parameters
    ----------
    a, b : Sphere, Capsule, Box, Triangle or ConvexHull
        The shapes.
    pose_a, pose_b : (position, rotation), optional
        Their poses: metres and a quaternion (x, y, z, w). The default is the origin.
    max_distance : float, default infinity
        Metres; a more distant pair returns None, sooner.

    Returns
    -------
    Distance or None
        Exact for separated, touching, overlapping and contained shapes, also for degenerate ones (a
        triangle without area, a hull scaled by zero).

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; the message names it.

    Notes
    -----
    Swapped arguments return the swapped result, to the bit. RULES 10.

    Examples
    --------
    >>> from pycct import Box, Sphere, distance_between
    >>> r = distance_between(Sphere(1.0), Box((1, 1, 1)), ((0, 0, 3), None))
    >>> r.distance, r.point_b
    (1.0, (0.0, 0.0, 1.0))
    """
    cdef convex_shape sa, sb
    cdef pose pa, pb
    cdef Distance out
    convex_of(a, "a", &sa)
    convex_of(b, "b", &sb)
    pose_of(pose_a, "pose_a", &pa)
    pose_of(pose_b, "pose_b", &pb)
    cdef double limit = limit_of(max_distance)
    out = Distance.__new__(Distance)
    if not _distance(&sa, &pa, &sb, &pb, limit, &out.r):
        return None
    return out


@cython.final
cdef class ContactManifold:
    """Up to 32 contacts that share one normal.

    Each contact is a point on B and the signed distance along the normal to A: ``point + distance *
    normal`` is on A.

    Parameters
    ----------
    normal : sequence of 3 floats
        Unit vector from B towards A.

    Raises
    ------
    ValueError
        If `normal` is not a unit vector.
    """
    cdef manifold m

    def __init__(self, normal):
        cdef vec3 n = as_vec3(normal, "normal")
        cdef double l2 = n.x * n.x + n.y * n.y + n.z * n.z
        if not 0.999 < l2 < 1.001:
            raise ValueError("normal must be a unit vector")
        self.m.normal = n
        self.m.count = 0

    @property
    def normal(self):
        """Unit vector from B towards A."""
        return from_vec3(self.m.normal)

    @property
    def count(self):
        """Number of contacts, 0 to 32."""
        return self.m.count

    @property
    def points_on_b(self):
        """Points on B (m), (count, 3) float64, a copy."""
        out = np.empty((self.m.count, 3))
        cdef double[:, ::1] view = out
        cdef int32_t i
        for i in range(self.m.count):
            view[i, 0] = self.m.points[i].x
            view[i, 1] = self.m.points[i].y
            view[i, 2] = self.m.points[i].z
        return out

    @property
    def points_on_a(self):
        """Points on A, computed from the contacts (m), (count, 3) float64."""
        return self.points_on_b + self.distances[:, None] * np.array(self.normal)

    @property
    def distances(self):
        """Signed distances along the normal (m), (count,) float64, a copy."""
        out = np.empty(self.m.count)
        cdef double[::1] view = out
        cdef int32_t i
        for i in range(self.m.count):
            view[i] = self.m.distances[i]
        return out

    cdef int _check(self, index) except -1:
        cdef Py_ssize_t i
        try:
            i = index
        except TypeError:
            raise TypeError(f"index must be an integer, not {type(index).__name__}") from None
        except OverflowError:
            i = -1
        if not 0 <= i < self.m.count:
            raise IndexError(f"index must be from 0 to {self.m.count - 1}, got {short(index)}")
        return <int>i

    def __len__(self):
        return self.m.count

    def __getitem__(self, index):
        cdef int i = self._check(index)
        return Contact(from_vec3(self.m.points[i]), self.m.distances[i])

    def __setitem__(self, index, contact):
        cdef int i = self._check(index)
        try:
            point, distance = contact
        except (TypeError, ValueError):
            raise ValueError("contact must be a pair (point, distance)") from None
        cdef vec3 p = as_vec3(point, "point")
        cdef double d = as_float(distance, "distance")
        self.m.points[i] = p
        self.m.distances[i] = d

    def add(self, point, distance):
        """Append a contact.

        Parameters
        ----------
        point : sequence of 3 floats
            Point on B (m).
        distance : float
            Signed distance to A along the normal (m).

        Raises
        ------
        ValueError
            If there are 32 already, or a number is not finite.
        """
        cdef vec3 p = as_vec3(point, "point")
        cdef double d = as_float(distance, "distance")
        if self.m.count >= MAX_CONTACTS:
            raise ValueError("a manifold holds at most 32 contacts")
        self.m.points[self.m.count] = p
        self.m.distances[self.m.count] = d
        self.m.count += 1

    def remove(self, index):
        """Remove a contact; the last one takes its index.

        Raises
        ------
        IndexError
            If there is no such contact.
        """
        cdef int i = self._check(index)
        self.m.count -= 1
        self.m.points[i] = self.m.points[self.m.count]
        self.m.distances[i] = self.m.distances[self.m.count]

    def flip(self):
        """Exchange A and B in place: points move to A, and the normal is reversed. Returns self."""
        flip_manifold(&self.m)
        return self

    def copy(self):
        """Return a separate manifold with the same contacts."""
        cdef ContactManifold other = ContactManifold.__new__(ContactManifold)
        other.m = self.m
        return other

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _manifold_from, (self.normal, self.points_on_b.tolist(), self.distances.tolist())

    def __repr__(self):
        return f"ContactManifold(normal={self.normal}, count={self.m.count})"


def _manifold_from(normal, points, distances):
    """Undo `ContactManifold.__reduce__`."""
    m = ContactManifold(normal)
    for point, distance in zip(points, distances, strict=True):
        m.add(point, distance)
    return m


def contacts_between(a, b, pose_a=None, pose_b=None, max_distance=INFINITY, max_contact_distance=INFINITY):
    """Return the contacts of two convex shapes: up to 32 points with one normal.

    Parameters
    ----------
    a, b : Sphere, Capsule, Box, Triangle or ConvexHull
        The shapes.
    pose_a, pose_b : (position, rotation), optional
        Their poses: metres and a quaternion (x, y, z, w). The default is the origin.
    max_distance : float, default infinity
        Metres; a more distant pair returns None.
    max_contact_distance : float, default infinity
        Metres; contacts farther apart along the normal are left out. A pair that is itself
        farther apart gives None.

    Returns
    -------
    ContactManifold or None
        Spheres, and pairs of capsules, have one contact: the closest pair. Faces on faces have the
        corners of their overlap. The closest pair is among the contacts unless one is within 1e-4
        of its distance. If there are more than 32 contacts, the deepest one and those that span the
        largest area are kept.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; the message names it.

    Notes
    -----
    The order of arguments only decides which shape contains the points: ``contacts_between(b, a)``
    is the flipped manifold, for spheres and capsules up to rounding. CONTACT with the corrections
    of RULES 10.

    Examples
    --------
    >>> from pycct import Box, contacts_between
    >>> m = contacts_between(Box((1, 1, 1)), Box((2, 2, 1)), ((0, 0, 2), None))
    >>> m.count, m.normal, set(m.distances.tolist())
    (4, (0.0, 0.0, 1.0), {0.0})
    """
    cdef convex_shape sa, sb
    cdef pose pa, pb
    cdef ContactManifold out
    convex_of(a, "a", &sa)
    convex_of(b, "b", &sb)
    pose_of(pose_a, "pose_a", &pa)
    pose_of(pose_b, "pose_b", &pb)
    cdef double limit = limit_of(max_distance), cutoff = limit_of(max_contact_distance, "max_contact_distance")
    out = ContactManifold.__new__(ContactManifold)
    if not _contacts(&sa, &pa, &sb, &pb, limit, cutoff, &out.m):
        return None
    return out


def capsule_contacts(capsule, pose_capsule, shapes, poses, max_distance=0.0, max_contact_distance=INFINITY):
    """Return manifolds of one capsule with every shape that it touches.

    Parameters
    ----------
    capsule : Capsule
        The capsule, shape A of every pair.
    pose_capsule : (position, rotation)
        Its pose; None: at the origin, axis along z.
    shapes : sequence of shapes
        Convex shapes.
    poses : sequence of (position, rotation)
        One for each of them.
    max_distance : float, default 0
        Metres; shapes up to this distance count as touched (a controller's contact offset).
    max_contact_distance : float, default infinity
        Metres; contacts farther apart along the normal are left out. A pair that is itself
        farther apart is not touched.

    Returns
    -------
    list of (int, ContactManifold)
        Index into `shapes` and the contacts, points on the shape, normal towards the capsule, in
        the order of `shapes`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; the message names it.
    """
    cdef convex_shape sa, sb
    cdef pose pa, pb
    cdef ContactManifold m
    if not isinstance(capsule, Capsule):
        raise TypeError(f"capsule must be a Capsule, not {type(capsule).__name__}")
    convex_of(capsule, "capsule", &sa)
    pose_of(pose_capsule, "pose_capsule", &pa)
    cdef double limit = limit_of(max_distance), cutoff = limit_of(max_contact_distance, "max_contact_distance")
    shapes, poses = list(shapes), list(poses)
    if len(shapes) != len(poses):
        raise ValueError(f"poses must be as many as shapes, {len(shapes)}, got {len(poses)}")
    out = []
    for i, shape in enumerate(shapes):
        convex_of(shape, f"shapes[{i}]", &sb)
        pose_of(poses[i], f"poses[{i}]", &pb)
        m = ContactManifold.__new__(ContactManifold)
        if _contacts(&sa, &pa, &sb, &pb, limit, cutoff, &m.m):
            out.append((i, m))
    return out


@cython.final
cdef class _Side:
    """One side of a batch: shapes and poses as plain values."""
    cdef convex_shape* shapes
    cdef Py_ssize_t n_shapes        # 1 or n
    cdef double[:, ::1] positions   # 1 or n rows
    cdef double[:, ::1] rotations
    cdef object keep

    def __cinit__(self):
        self.shapes = NULL

    def __dealloc__(self):
        free(self.shapes)

    cdef inline const convex_shape* shape(self, Py_ssize_t i) noexcept nogil:
        return &self.shapes[i if self.n_shapes > 1 else 0]

    cdef inline pose placed(self, Py_ssize_t i) noexcept nogil:
        cdef pose p
        cdef const double* q
        p.position = v3_load(&self.positions[i if self.positions.shape[0] > 1 else 0, 0])
        q = &self.rotations[i if self.rotations.shape[0] > 1 else 0, 0]
        p.rotation.x = q[0]
        p.rotation.y = q[1]
        p.rotation.z = q[2]
        p.rotation.w = q[3]
        return p


cdef object _table_of(object rows, int columns):
    """Return rows as a table; an empty list has no rows."""
    given = np.asarray(rows)
    return np.empty((0, columns)) if given.shape == (0,) else np.atleast_2d(given)


cdef _Side _side(object shapes, object poses, str name):
    cdef _Side s = _Side()
    cdef Py_ssize_t i
    if isinstance(shapes, Shape):
        shapes = [shapes]
    else:
        try:
            shapes = list(shapes)
        except TypeError:
            raise TypeError(f"{name} must be a shape or a sequence of shapes, not {type(shapes).__name__}") from None
    s.keep = shapes
    s.n_shapes = len(shapes)
    s.shapes = <convex_shape*>malloc((s.n_shapes + 1) * sizeof(convex_shape))
    if s.shapes == NULL:
        raise MemoryError
    for i in range(s.n_shapes):
        convex_of(shapes[i], name if s.n_shapes == 1 else f"{name}[{i}]", &s.shapes[i])
    label = f"poses_{name}"
    if poses is None:
        poses = ((0.0, 0.0, 0.0), None)
    try:
        positions, rotations = poses
    except (TypeError, ValueError):
        raise ValueError(f"{label} must be a pair (positions, rotations)") from None
    places = as_table(_table_of(positions, 3), label + " positions", 3, 0)
    good = (np.abs(places) <= FARTHEST).all(axis=1)
    if not good.all():
        raise ValueError(f"{label} positions must lie within {FARTHEST:g} m of the origin, row {good.argmin()} is "
                         f"{tuple(places[good.argmin()].tolist())}")
    s.positions = places
    if rotations is None:
        rotations = (0.0, 0.0, 0.0, 1.0)
    turned = as_table(_table_of(rotations, 4), label + " rotations", 4, 0)
    length = np.sqrt((turned * turned).sum(axis=1))
    good = np.abs(length - 1.0) <= 1e-3
    if not good.all():
        raise ValueError(f"{label} rotations must be unit quaternions, row {good.argmin()} is "
                         f"{tuple(turned[good.argmin()].tolist())}")
    # A length of exactly 1 keeps its bits, as for one pose.
    s.rotations = np.where(length[:, None] == 1.0, turned, turned / length[:, None])
    return s


cdef Py_ssize_t _pairs(_Side a, _Side b) except -1:
    """Return the number of pairs: every argument has one row, or this many."""
    cdef Py_ssize_t n = max(a.n_shapes, a.positions.shape[0], a.rotations.shape[0],
                            b.n_shapes, b.positions.shape[0], b.rotations.shape[0])
    if n == 1:
        # No rows, if an argument has none.
        n = min(a.n_shapes, a.positions.shape[0], a.rotations.shape[0],
                b.n_shapes, b.positions.shape[0], b.rotations.shape[0])
    for name, m in (("a", a.n_shapes), ("poses_a positions", a.positions.shape[0]),
                    ("poses_a rotations", a.rotations.shape[0]), ("b", b.n_shapes),
                    ("poses_b positions", b.positions.shape[0]), ("poses_b rotations", b.rotations.shape[0])):
        if m != 1 and m != n:
            raise ValueError(f"{name} must have 1 or {n} rows, got {m}")
    return n


cdef inline void _store(double* p, vec3 v) noexcept nogil:
    p[0] = v.x
    p[1] = v.y
    p[2] = v.z


def distance_between_many(a, b, poses_a=None, poses_b=None, max_distance=INFINITY):
    """`distance_between` for many pairs in one call, without the GIL.

    Parameters
    ----------
    a, b : shape or sequence of n shapes
        One shape for all pairs, or one for each.
    poses_a, poses_b : (positions, rotations), optional
        Arrays (n, 3) in metres and (n, 4) quaternions; a single row serves all, and rotations may
        be None.
    max_distance : float, default infinity
        Metres; more distant pairs have ``near`` False.

    Returns
    -------
    DistanceArrays
        Arrays of n rows: near (bool), distance, point_a, point_b, normal, normal_a, normal_b,
        feature_a, feature_b (uint16). The same bits as single calls.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; the message names it.
    """
    cdef _Side sa = _side(a, poses_a, "a"), sb = _side(b, poses_b, "b")
    cdef Py_ssize_t n = _pairs(sa, sb), i
    cdef double limit = limit_of(max_distance)
    near = np.zeros(n, dtype=np.bool_)
    distance = np.zeros(n)
    vectors = np.zeros((5, n, 3))
    features = np.zeros((2, n), dtype=np.uint16)
    cdef unsigned char[::1] v_near = near.view(np.uint8)
    cdef double[::1] v_distance = distance
    cdef double[:, :, ::1] v = vectors
    cdef unsigned short[:, ::1] f = features
    cdef distance_result r
    cdef pose pa, pb
    cdef unsigned long long env
    cdef Py_ssize_t done = 0, last = 0
    cdef int64_t n_rows = FIRST_PAIRS
    cdef double started
    while done < n:
        last = min(n, done + n_rows)
        started = clock_now()
        with nogil:
            env = fp_enter()
            for i in range(done, last):
                pa = sa.placed(i)
                pb = sb.placed(i)
                if shape_distance(sa.shape(i), &pa, sb.shape(i), &pb, limit, &r):
                    v_near[i] = 1
                    v_distance[i] = r.distance
                    _store(&v[0, i, 0], r.point_a)
                    _store(&v[1, i, 0], r.point_b)
                    _store(&v[2, i, 0], r.normal)
                    _store(&v[3, i, 0], r.normal_a)
                    _store(&v[4, i, 0], r.normal_b)
                    f[0, i] = <unsigned short>r.feature_a
                    f[1, i] = <unsigned short>r.feature_b
            fp_leave(env)
        done = last
        if done < n:
            n_rows = next_part(n_rows, started)
    return DistanceArrays(near, distance, *vectors, *features)


def contacts_between_many(a, b, poses_a=None, poses_b=None, max_distance=INFINITY, max_contact_distance=INFINITY):
    """`contacts_between` for many pairs in one call, without the GIL.

    Parameters
    ----------
    a, b : shape or sequence of n shapes
        One shape for all pairs, or one for each.
    poses_a, poses_b : (positions, rotations), optional
        Arrays (n, 3) in metres and (n, 4) quaternions; a single row serves all, and rotations may
        be None.
    max_distance : float, default infinity
        Metres; more distant pairs have ``near`` False and no contacts.
    max_contact_distance : float, default infinity
        Metres; contacts farther apart along the normal are left out. A pair that is itself
        farther apart has none.

    Returns
    -------
    ContactArrays
        near (n,) bool, normal (n, 3), counts (n,) int32, points_on_b (n, 32, 3), distances (n, 32).
        The same bits as single calls.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; the message names it.
    """
    cdef _Side sa = _side(a, poses_a, "a"), sb = _side(b, poses_b, "b")
    cdef Py_ssize_t n = _pairs(sa, sb), i
    cdef int32_t k
    cdef double limit = limit_of(max_distance), cutoff = limit_of(max_contact_distance, "max_contact_distance")
    near = np.zeros(n, dtype=np.bool_)
    normal = np.zeros((n, 3))
    count = np.zeros(n, dtype=np.int32)
    points = np.zeros((n, MAX_CONTACTS, 3))
    distances = np.zeros((n, MAX_CONTACTS))
    cdef unsigned char[::1] v_near = near.view(np.uint8)
    cdef double[:, ::1] v_normal = normal
    cdef int32_t[::1] v_count = count
    cdef double[:, :, ::1] v_points = points
    cdef double[:, ::1] v_distances = distances
    cdef manifold m
    cdef pose pa, pb
    cdef unsigned long long env
    cdef Py_ssize_t done = 0, last = 0
    cdef int64_t n_rows = FIRST_PAIRS
    cdef double started
    while done < n:
        last = min(n, done + n_rows)
        started = clock_now()
        with nogil:
            env = fp_enter()
            for i in range(done, last):
                pa = sa.placed(i)
                pb = sb.placed(i)
                if shape_contacts(sa.shape(i), &pa, sb.shape(i), &pb, limit, cutoff, &m, NULL):
                    v_near[i] = 1
                    v_count[i] = m.count
                    _store(&v_normal[i, 0], m.normal)
                    for k in range(m.count):
                        _store(&v_points[i, k, 0], m.points[k])
                        v_distances[i, k] = m.distances[k]
            fp_leave(env)
        done = last
        if done < n:
            n_rows = next_part(n_rows, started)
    return ContactArrays(near, normal, count, points, distances)


def _run_kernels(a, b, poses_a, poses_b, int repeat, bint contacts, max_distance=INFINITY):
    """For benchmarks: run the kernels over the pairs `repeat` times.

    Return the sum of the distances.
    """
    cdef _Side sa = _side(a, poses_a, "a"), sb = _side(b, poses_b, "b")
    cdef Py_ssize_t n = _pairs(sa, sb), i
    cdef double limit = limit_of(max_distance), total = 0.0
    cdef int _
    cdef manifold m
    cdef distance_result r
    cdef pose pa, pb
    with nogil:
        for _ in range(repeat):
            for i in range(n):
                pa = sa.placed(i)
                pb = sb.placed(i)
                if contacts:
                    if shape_contacts(sa.shape(i), &pa, sb.shape(i), &pb, limit, INFINITY, &m, NULL):
                        total += m.distances[0]
                elif shape_distance(sa.shape(i), &pa, sb.shape(i), &pb, limit, &r):
                    total += r.distance
    return total
