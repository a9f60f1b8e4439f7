# cython: language_level=3
"""Many scenes for the members of one crowd, and batches over them."""
import copy

import numpy as np

cimport cython
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pycct.args.values cimport as_bits, as_not_negative, raise_status, short
from pycct.args.vector_rows cimport as_vectors, vector_rows, row_load
from pycct.geometry.types cimport STATUS_OK
from pycct.geometry.vec cimport v3_max_abs, vec3
from pycct.queries.query_kernels cimport (
    query_shape,
    query_shape_ray,
    query_cast,
    query_free,
    query_hit,
    query_init,
    query_scratch,
    query_view,
)
from pycct.runtime.thread_pool cimport pool_run_parts, pool_threads
from pycct.scene.scene cimport Scene, Snapshot

from pycct.queries.scene_queries import TouchArrays, fields_of, put_answers


cdef enum:
    CHUNK = 8       # origins of one portion for a thread


# Arguments of batches, and how many dimensions each has when it has one value a row; 0: one for
# all.
cdef dict ROWS = {
    "raycast_many": (("origins", 2), ("directions", 2), ("distances", 1)),
    "sweep_many": (("shape", 0), ("positions", 2), ("directions", 2), ("distances", 1), ("rotations", 2)),
    "closest_points_many": (("shape", 0), ("positions", 2), ("max_distance", 1), ("rotations", 2)),
    "overlap_many": (("shape", 0), ("positions", 2), ("rotations", 2)),
    "penetration_many": (("shape", 0), ("positions", 2), ("rotations", 2)),
}


# Batches that return TouchArrays.
cdef tuple TOUCHES = ("overlap_many", "penetration_many")


cdef object _touches(list answers, object order, tuple names):
    """Join columns of TouchArrays of groups of rows; ``order`` contains their rows."""
    counts = np.concatenate([np.diff(answer.first) for answer in answers])
    ends = np.cumsum(counts)
    n_of_row, start_of_row = np.empty_like(counts), np.empty_like(counts)
    n_of_row[order], start_of_row[order] = counts, ends - counts
    first = np.concatenate([[0], np.cumsum(n_of_row)])
    total = int(counts.sum())
    source = np.repeat(start_of_row - first[:len(counts)], n_of_row) + np.arange(total)
    columns = [None if answers[0][k] is None else np.concatenate([answer[k] for answer in answers])[source]
               for k in range(2, len(answers[0]))]
    return TouchArrays(n_of_row > 0 if "hit" in names else None, first.astype(np.int64) if "first" in names else None,
                       *columns)


cdef object _joined(list answers, object order):
    """Join HitArrays or ClosestArrays of groups of rows; ``order`` contains their rows."""
    found = []
    for columns in zip(*answers):
        if columns[0] is None:
            found.append(None)
            continue
        joined = np.concatenate(columns)
        column = np.empty_like(joined)
        column[order] = joined
        found.append(column)
    return type(answers[0])(*found)


# Rays of a batch: from each origin in each direction.
cdef struct ray_batch:
    query_view* views       # of each world
    vector_rows origins
    const int32_t* homes    # world of each origin
    const double* directions
    int64_t n_directions
    double reach
    query_scratch* scratch  # of each thread
    int* status             # of each thread
    double* distances       # (origins, directions)


cdef object _unit_rows(const vector_rows* rows, Py_ssize_t n):
    """Return directions divided by their lengths, as `Scene.raycast` divides them."""
    units = np.empty((n, 3))
    cdef double[:, ::1] d = units
    cdef vec3 v
    cdef double m
    cdef Py_ssize_t i
    for i in range(n):
        v = row_load(rows, i)
        m = v3_max_abs(v)
        if m == 0.0:
            raise ValueError(f"directions must not be zero, row {i} is")
        d[i, 0], d[i, 1], d[i, 2] = v.x / m, v.y / m, v.z / m
        m = sqrt(d[i, 0] * d[i, 0] + d[i, 1] * d[i, 1] + d[i, 2] * d[i, 2])
        d[i, 0] /= m
        d[i, 1] /= m
        d[i, 2] /= m
    return units


cdef void _cast_some(void* context, int worker, int64_t first, int64_t last) noexcept nogil:
    cdef ray_batch* b = <ray_batch*>context
    cdef query_hit hit
    cdef query_shape ray
    cdef const vec3* directions = <const vec3*>b.directions
    cdef int64_t i, k
    cdef int status
    for i in range(first, last):
        query_shape_ray(&ray, row_load(&b.origins, i))
        for k in range(b.n_directions):
            status = query_cast(&b.views[b.homes[i]], &ray, directions[k], b.reach, &b.scratch[worker], &hit)
            if status != STATUS_OK:
                b.status[worker] = status
                return
            b.distances[i * b.n_directions + k] = hit.distance if hit.found else b.reach


@cython.final
cdef class Worlds:
    """Many independent scenes for one crowd: each member belongs to one of them.

    Parameters
    ----------
    scenes : iterable of Scene
        At least one; each once. Scenes may share shapes, and a scene of a few actors costs
        microseconds.

    Attributes
    ----------
    scenes : tuple of Scene

    Notes
    -----
    A member of ``Crowd(worlds, positions, world=indices)`` collides only with the actors, obstacles
    and characters of the scene of its index. One call moves all members, on several threads, and
    the bits are those of a separate crowd in each scene. `Crowd.set` moves members to other worlds.

    Thread safety: as for `Scene`; a batch reads snapshots of its start.

    Examples
    --------
    >>> from pycct import Box, Crowd, Plane, Scene, Worlds
    >>> scenes = [Scene() for _ in range(3)]
    >>> grounds = [scene.add(Plane((0, 0, 1))) for scene in scenes]
    >>> wall = scenes[1].add(Box((0.1, 5, 2)), position=(1, 0, 2))
    >>> crowd = Crowd(Worlds(scenes), [(0, 0, 0.91)] * 3, world=[0, 1, 2])
    >>> for _ in range(60):
    ...     flags = crowd.move([(0.05, 0, -0.02)] * 3, 1 / 60)
    >>> crowd.positions[:, 0].round(2).tolist()
    [3.0, 0.49, 3.0]
    """

    def __init__(self, scenes):
        if isinstance(scenes, Scene):
            raise TypeError("scenes must be an iterable of Scene: for one scene make the Crowd with it")
        try:
            found = tuple(scenes)
        except TypeError:
            raise TypeError(f"scenes must be an iterable of Scene, not {type(scenes).__name__}") from None
        for scene in found:
            if not isinstance(scene, Scene):
                raise TypeError(f"scenes must contain Scene objects only, not {type(scene).__name__}")
        if not found:
            raise ValueError("scenes must contain at least one Scene")
        if len({id(scene) for scene in found}) != len(found):
            raise ValueError("scenes must be different from one another")
        if self.scenes is not None:
            raise RuntimeError("Worlds are initialised once")
        self.scenes = found

    def __len__(self):
        return len(self.scenes or ())

    def __getitem__(self, index):
        return self.scenes[index]

    def __repr__(self):
        return f"<Worlds of {len(self)} scenes>"

    def __reduce__(self):
        return Worlds, (list(self.scenes),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return Worlds([copy.deepcopy(scene, memo) for scene in self.scenes])

    cdef object indices(self, object world, Py_ssize_t n):
        """The argument ``world``: (n,) int32."""
        try:
            array = np.asarray(world)
        except ValueError:
            raise ValueError("world must be one integer or one for each row") from None
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError("world must be an integer or an array of integers")
        if array.shape not in ((), (n,)):
            raise ValueError(f"world must be one integer or have shape ({n},), got {array.shape}")
        if array.size and not (0 <= int(array.min()) and int(array.max()) < len(self)):
            raise ValueError(f"world must be from 0 to {len(self) - 1}, got {int(array.min())} to {int(array.max())}")
        return np.array(np.broadcast_to(array, (n,)), np.int32)

    def move_actors(self, world, ids, positions, rotations=None):
        """Move actors of many worlds in one call.

        Parameters
        ----------
        world : (n,) array of integers
            Index of the world of each actor.
        ids : (n,) array of integers
            Ids of actors or obstacles in those worlds, each once.
        positions : (n, 3) array of floats
            Metres.
        rotations : (n, 4) array of floats or (4,) floats, optional
            Unit quaternions (x, y, z, w), or one for all; the default keeps each rotation.

        Raises
        ------
        ValueError, TypeError
            For an invalid world, id or pose. The worlds before it have changed.
        """
        given = np.asarray(ids)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError("ids must be a one-dimensional array of integers")
        n = given.shape[0]
        homes = self.indices(world, n)
        places = np.asarray(positions)
        if places.shape == (0,):
            places = np.empty((0, 3))
        if places.shape != (n, 3):
            raise ValueError(f"positions must have shape ({n}, 3), got {places.shape}")
        turns = None if rotations is None else np.asarray(rotations)
        if turns is not None and turns.shape == (0,):
            turns = np.empty((0, 4))
        if turns is not None and turns.shape not in ((n, 4), (4,)):
            raise ValueError(f"rotations must have shape ({n}, 4) or (4,), got {turns.shape}")
        order = np.argsort(homes, kind="stable")
        starts = np.flatnonzero(np.diff(homes[order], prepend=-1)).tolist()
        for first, last in zip(starts, [*starts[1:], n]):
            rows = order[first:last]
            turn = turns if turns is None or turns.ndim == 1 else turns[rows]
            self.scenes[homes[rows[0]]].move_actors(given[rows], places[rows], turn)

    def raycast_many(self, origins, directions, distances, mask=0xFFFFFFFF, filter=None, *, world, **options):
        """Cast many rays, each in its own world.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each ray.
        origins, directions, distances, mask, filter, **options
            As for `Scene.raycast_many`.

        Returns
        -------
        HitArrays
            Ids are those of the row's own world.
        """
        return self._ask("raycast_many", (origins, directions, distances), world, mask, filter, options)

    def sweep_many(self, shape, positions, directions, distances, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF,
                   filter=None, *, world, **options):
        """Sweep a shape many times, each in its own world.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each sweep.
        shape, positions, directions, distances, rotations, mask, filter, **options
            As for `Scene.sweep_many`.

        Returns
        -------
        HitArrays
            Ids are those of the row's own world.
        """
        return self._ask("sweep_many", (shape, positions, directions, distances, rotations), world, mask, filter,
                         options)

    def closest_points_many(self, shape, positions, max_distance=float("inf"), rotations=(0.0, 0.0, 0.0, 1.0),
                            mask=0xFFFFFFFF, filter=None, *, world, **options):
        """Find the closest points of a shape at many places, each in its own world.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each place.
        shape, positions, max_distance, rotations, mask, filter, **options
            As for `Scene.closest_points_many`.

        Returns
        -------
        ClosestArrays
            Ids are those of the row's own world.
        """
        return self._ask("closest_points_many", (shape, positions, max_distance, rotations), world, mask, filter,
                         options)

    def overlap_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *, world,
                     **options):
        """Find what a shape overlaps at many places, each in its own world.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each place.
        shape, positions, rotations, mask, filter, **options
            As for `Scene.overlap_many`.

        Returns
        -------
        TouchArrays
            Ids are those of the row's own world.
        """
        return self._ask("overlap_many", (shape, positions, rotations), world, mask, filter, options)

    def penetration_many(self, shape, positions, rotations=(0.0, 0.0, 0.0, 1.0), mask=0xFFFFFFFF, filter=None, *,
                         world, **options):
        """Find what a shape overlaps at many places, and how far along the exit, each in its own
        world.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each place.
        shape, positions, rotations, mask, filter, **options
            As for `Scene.penetration_many`.

        Returns
        -------
        TouchArrays
            Ids are those of the row's own world.
        """
        return self._ask("penetration_many", (shape, positions, rotations), world, mask, filter, options)

    def _ask(self, method, values, world, mask, filter, options):
        """A batch of queries: the scene of each world answers its rows, in the order of worlds."""
        for name in options:
            if name not in ("include", "threads", "fields", "out", "exclude", "group"):
                raise TypeError(f"unexpected keyword argument {short(name)}")
        out, fields = options.pop("out", None), options.get("fields")
        columns = fields_of(method, fields, out)
        # The numbers of touches of the rows are needed to join the answers.
        options["fields"] = {*columns, "first"} if method in TOUCHES else columns
        given = [value if dimensions == 0 else np.asarray(value)
                 for value, (name, dimensions) in zip(values, ROWS[method])]
        places = given[0 if method == "raycast_many" else 1]
        n = places.shape[0] if places.ndim in (2, 3) else 0
        homes = self.indices(world, n)
        by_row = []
        for value, (name, dimensions) in zip(given, ROWS[method]):
            # One value for all has one dimension less than one value a row.
            sliced = dimensions > 0 and n > 0 and value.ndim >= dimensions
            if name == "directions" and value.ndim >= 2 and value.shape[0] != n:
                # All places have these directions, in worlds with as many places too.
                sliced = False
                if value.ndim == 2:
                    given[1 if method == "raycast_many" else 2] = value[None]
            by_row.append(sliced)
            if sliced and value.shape[0] != n:
                raise ValueError(f"{name} must have one row, or one for each of {n}, got shape {value.shape}")
        order = np.argsort(homes, kind="stable")
        starts = np.flatnonzero(np.diff(homes[order], prepend=-1)).tolist()
        each = {name: np.asarray(value) for name, value in (("mask", mask), ("exclude", options.get("exclude")),
                                                            ("group", options.get("group"))) if np.ndim(value) > 0}
        for name, value in each.items():
            if value.shape[0] != n:
                raise ValueError(f"{name} must be one number or have one for each of {n} rows, got shape "
                                 f"{value.shape}")
        answers = []
        # Without rows the first scene checks the arguments.
        for first, last in zip(starts or [0], [*starts[1:], n]):
            rows = order[first:last]
            scene = self.scenes[homes[rows[0]] if n > 0 else 0]
            some = [value[rows] if sliced else value for value, sliced in zip(given, by_row)]
            chosen = {name: value[rows] for name, value in each.items()}
            answers.append(getattr(scene, method)(*some, chosen.pop("mask", mask), filter, **{**options, **chosen}))
        joined = _touches(answers, order, columns) if method in TOUCHES else _joined(answers, order)
        if out is None:
            return joined
        arrays = [(name, value) for value, (name, dimensions) in zip(given, ROWS[method]) if dimensions > 0]
        return put_answers(method, joined, fields, out, arrays)

    def ray_distances(self, origins, directions, reach, *, world, mask=0xFFFFFFFF, threads=1):
        """Return the distances to the first actor along rays: from each origin in each direction.

        Parameters
        ----------
        origins : (n, 3) array of floats
            Metres.
        directions : (k, 3) array of floats
            Of any length but zero.
        reach : float
            Length of the rays, metres, >= 0.
        world : int or (n,) array of integers
            Index of the world of each origin.
        mask : int
            Layers to see.
        threads : int
            Largest number of threads; the results are the same for any number.

        Returns
        -------
        (n, k) array of float64
            Metres; ``reach`` without a hit. The distances are those of `Scene.raycast`.
        """
        cdef ray_batch b
        cdef vector_rows rows
        cdef const int32_t[::1] homes
        cdef double[:, ::1] d, out
        cdef Scene scene
        cdef Snapshot snap
        cdef Py_ssize_t n, i, n_worlds = len(self)
        cdef int n_threads, k, status = STATUS_OK
        memset(&b, 0, sizeof(ray_batch))
        b.reach = as_not_negative(reach, "reach")
        bits = as_bits(mask, "mask")
        # Named variables keep the arrays alive during the call.
        _origins = as_vectors(origins, "origins", -1, &b.origins)
        n = len(_origins)
        _directions = as_vectors(directions, "directions", -1, &rows)
        b.n_directions = len(_directions)
        d = _unit_rows(&rows, b.n_directions)
        homes = self.indices(world, n)
        n_threads = pool_threads(threads)
        distances = np.empty((n, b.n_directions))
        if distances.size == 0:
            return distances
        out = distances
        b.homes = &homes[0]
        b.directions = &d[0, 0]
        b.distances = &out[0, 0]
        held = []
        try:
            b.views = <query_view*>calloc(n_worlds, sizeof(query_view))
            b.scratch = <query_scratch*>calloc(n_threads, sizeof(query_scratch))
            b.status = <int*>calloc(n_threads, sizeof(int))
            if b.views == NULL or b.scratch == NULL or b.status == NULL:
                raise MemoryError("pycct: out of memory")
            for i in range(n_worlds):
                scene = self.scenes[i]
                snap = scene.snapshot()
                held.append(snap)
                b.views[i].layers[0] = &snap.fixed.data
                b.views[i].layers[1] = &snap.moving.data
                b.views[i].mask = bits
                b.views[i].exclude = b.views[i].exclude_too = b.views[i].group = -1
            for k in range(n_threads):
                query_init(&b.scratch[k])
            pool_run_parts(_cast_some, &b, n, CHUNK, n_threads)
            for k in range(n_threads):
                if b.status[k] != STATUS_OK:
                    status = b.status[k]
        finally:
            if b.scratch != NULL:
                for k in range(n_threads):
                    query_free(&b.scratch[k])
            free(b.scratch)
            free(b.status)
            free(b.views)
        raise_status(status)
        return distances
