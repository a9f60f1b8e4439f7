# cython: language_level=3
"""Collision responses. See the header."""
from pycct.args.values cimport as_not_negative, as_unit, as_vec3, from_vec3
from pycct.geometry.vec cimport v3, v3_cross, v3_dot, v3_len, v3_madd, v3_reject, v3_scale, v3_sub, v3_unit

# A shorter cross product of unit normals means parallel planes (MOVE 1.2 EPSILON_NORMAL).
cdef double EPSILON_NORMAL = 1e-5


cdef vec3 collision_response(vec3 target, vec3 position, vec3 direction, vec3 normal, double bump, double friction,
                             bint normalize) noexcept nogil:
    """The new target after a collision (MOVE 8.2)."""
    cdef vec3 reflected = v3_unit(v3_madd(direction, normal, -2.0 * v3_dot(direction, normal)))
    cdef vec3 along = v3_scale(normal, v3_dot(reflected, normal))
    cdef vec3 across = v3_sub(reflected, along)
    cdef double amplitude = v3_len(v3_sub(target, position))
    cdef vec3 r = position
    if bump != 0.0:
        r = v3_madd(r, v3_unit(along) if normalize else along, bump * amplitude)
    if friction != 0.0:
        r = v3_madd(r, v3_unit(across) if normalize else across, friction * amplitude)
    return r


cdef vec3 slide_response(vec3 motion, vec3 normal) noexcept nogil:
    return v3_reject(motion, normal)


cdef vec3 crease_response(vec3 motion, vec3 first, vec3 second) noexcept nogil:
    cdef vec3 crease = v3_cross(first, second)
    cdef double m = v3_len(crease)
    if m < EPSILON_NORMAL:
        return v3(0.0, 0.0, 0.0)
    crease = v3_scale(crease, 1.0 / m)
    # The sign of the crease does not matter: the projection follows the motion.
    return v3_scale(crease, v3_dot(motion, crease))


def slide(motion, normal):
    """Return a motion without its part along the normal of a plane (MOVE 8.3).

    No rule set uses it in a move: PhysX reflects and splits (MOVE 8.2), which keeps the length of
    the reflected direction's tangent instead.

    Parameters
    ----------
    motion : (3,) floats
        Metres.
    normal : (3,) floats
        Any length but zero.

    Returns
    -------
    tuple of float
    """
    return from_vec3(slide_response(as_vec3(motion, "motion"), as_unit(normal, "normal")))


def slide_crease(motion, first, second):
    """Return a motion along the crease of two planes (MOVE 8.4).

    No rule set uses it in a move: PhysX handles one plane after the other.

    Parameters
    ----------
    motion : (3,) floats
        Metres.
    first, second : (3,) floats
        Normals of the planes, any length but zero.

    Returns
    -------
    tuple of float
        Zero for parallel planes, which block the way (MOVE 14.3).
    """
    return from_vec3(crease_response(as_vec3(motion, "motion"), as_unit(first, "first"), as_unit(second, "second")))


def respond(target, position, direction, normal, bump=0.0, friction=1.0, normalize=False):
    """Return the new target of a motion after a collision, as moves compute it (MOVE 8.2).

    Parameters
    ----------
    target, position : (3,) floats
        Original end of the motion, and the position of the collision, metres.
    direction : (3,) floats
        Direction of the motion, any length but zero.
    normal : (3,) floats
        Normal of the surface, any length but zero.
    bump, friction : float
        Factors of the bounce and of the slide, >= 0; moves use 0 and 1.
    normalize : bool
        Normalise both parts first.

    Returns
    -------
    tuple of float
    """
    return from_vec3(collision_response(
        as_vec3(target, "target"), as_vec3(position, "position"), as_unit(direction, "direction"),
        as_unit(normal, "normal"), as_not_negative(bump, "bump"), as_not_negative(friction, "friction"),
        bool(normalize)))
