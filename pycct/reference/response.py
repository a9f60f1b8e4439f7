"""What becomes of a motion after a collision."""

from pycct.reference.vec import ZERO, cross, dot, length, madd, scale, sub, unit

# Two unit normals whose cross product is shorter are parallel (MOVE 1.2, 14.3).
EPSILON_NORMAL = 1e-5


def collision_response(target, position, direction, normal, bump, friction, normalize):
    """The new target (MOVE 8.2): what is left, reflected and split into a bounce and a slide."""
    reflected = unit(madd(direction, normal, -2.0 * dot(direction, normal)))
    normal_part = scale(normal, dot(reflected, normal))
    tangent_part = sub(reflected, normal_part)
    amplitude = length(sub(target, position))
    result = position
    if bump != 0.0:
        result = madd(result, unit(normal_part) if normalize else normal_part, bump * amplitude)
    if friction != 0.0:
        result = madd(result, unit(tangent_part) if normalize else tangent_part, friction * amplitude)
    return result


def slide_response(motion, normal):
    """The motion without its part along the unit normal (MOVE 8.3); unused by rule sets."""
    return sub(motion, scale(normal, dot(motion, normal)))


def crease_response(motion, first, second):
    """The motion along the crease of two planes (MOVE 8.4); zero if parallel (MOVE 14.3)."""
    crease = cross(first, second)
    m = length(crease)
    if m < EPSILON_NORMAL:
        return ZERO
    crease = scale(crease, 1.0 / m)
    # Its sign does not matter: the projection turns it with the motion.
    return scale(crease, dot(motion, crease))
