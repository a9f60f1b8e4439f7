# cython: language_level=3, cdivision=True
"""Loops over kernels of pycct without the GIL, as another package writes them."""
from pycct cimport ABI_VERSION, check_abi

# Before anything else: what follows trusts the layout of structs.
check_abi()

from libc.math cimport sqrt

from pycct.geometry.closest cimport closest_pair, segment_segment, segment_triangle, triangle_normal
from pycct.geometry.sweep cimport NO_HIT, capsule_triangle_time, sphere_point
from pycct.geometry.types cimport triangle
from pycct.geometry.vec cimport v3, v3_dot, v3_load, v3_store, v3_unit, vec3

compiled_with = <int>ABI_VERSION


def turn(double[::1] v):
    """A vector made a unit vector, by inline functions."""
    v3_store(&v[0], v3_unit(v3_load(&v[0])))


def axis_distances(const double[:, ::1] axes, double[::1] out):
    """Distance of each axis (six numbers) from the first, by an exported function."""
    cdef Py_ssize_t i
    cdef vec3 p0, p1
    with nogil:
        p0 = v3_load(&axes[0, 0])
        p1 = v3_load(&axes[0, 3])
        for i in range(axes.shape[0]):
            out[i] = sqrt(segment_segment(p0, p1, v3_load(&axes[i, 0]), v3_load(&axes[i, 3])).dist2)


def nearest_on_triangle(const double[::1] corners, double[::1] out):
    """Point of a triangle nearest to the z axis from 1 to 2."""
    cdef vec3 a = v3_load(&corners[0]), b = v3_load(&corners[3]), c = v3_load(&corners[6])
    cdef closest_pair found
    with nogil:
        found = segment_triangle(v3(0.0, 0.0, 1.0), v3(0.0, 0.0, 2.0), a, b, c, triangle_normal(a, b, c))
        v3_store(&out[0], found.on_b)
    return found.dist2


def drop(const double[:, ::1] corners, double height, double radius, double limit):
    """Fall of an upright capsule onto triangles (nine numbers each); None beyond the limit."""
    cdef triangle t
    cdef Py_ssize_t i
    cdef double nearest = limit, distance
    with nogil:
        for i in range(corners.shape[0]):
            t.a = v3_load(&corners[i, 0])
            t.b = v3_load(&corners[i, 3])
            t.c = v3_load(&corners[i, 6])
            t.n = triangle_normal(t.a, t.b, t.c)
            t.d = v3_dot(t.n, t.a)
            distance = capsule_triangle_time(v3(0.0, 0.0, height), v3(0.0, 0.0, height + 1.0), radius,
                                             v3(0.0, 0.0, -1.0), &t, nearest)
            if distance < nearest:
                nearest = distance
    return nearest if nearest < limit else None


def touch_point(double limit):
    """A sphere that falls from 3 m onto the origin: distance, or None for NO_HIT."""
    cdef double t = sphere_point(v3(0.0, 0.0, 3.0), v3(0.0, 0.0, -1.0), 0.5, v3(0.0, 0.0, 0.0), limit)
    return None if t == NO_HIT else t
