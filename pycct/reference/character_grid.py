"""Characters among characters (RULES 8).

The core finds them by a spatial hash; here all are looked at.
"""

from math import sqrt

from pycct.reference.closest import segment_segment
from pycct.reference.types import CAPSULE, CONTROLLER, USER_GEOMETRY
from pycct.reference.vec import (
    ZERO,
    across,
    add,
    box_grow,
    box_overlap,
    cross,
    dot,
    f_min,
    is_zero,
    length,
    madd,
    neg,
    reject,
    scale,
    sub,
    unit,
    vmax,
    vmin,
)


class Character:
    """Another controller, as a controller sees it: a capsule without triangles (RULES 8)."""

    owner = CONTROLLER
    kind = CAPSULE
    body = "kinematic"
    recovered_as = USER_GEOMETRY
    closed = two_sided = False

    def __init__(self, id, p0, p1, radius, layer, mask, behavior, group):
        self.id = id
        self.q0 = p0
        self.q1 = p1
        self.radius = radius
        self.layer = layer
        self.mask = mask
        self.behavior = behavior  # what others may do on it
        self.group = group
        self.bounds = box_grow((vmin(p0, p1), vmax(p0, p1)), radius)

    def meets(self, other):
        """Each one's layer meets the other's mask; same group; not the same one (RULES 8)."""
        if self.id == other.id or self.group != other.group:
            return False
        return self.layer & other.mask != 0 and other.layer & self.mask != 0

    def data_of(self, triangle):
        """No triangle, no number."""
        return None


# Way that a character gives free beyond the contact, as a share of the smaller radius.
ROOM = 0.3
# A character is ahead of another one if the cosines of both ways to it differ by more.
AHEAD = 0.3
# A character is in the way of another one that walks towards it within this cosine.
IN_THE_WAY = 0.5
# A character that got on by less than this share of the way it wanted is stuck.
STUCK = 0.25
# A horizontal part of a displacement below this share of it is rounding.
UPRIGHT2 = 1e-12


def heading_of(asked, motion, up):
    """The unit direction in which a character wants to go, and whether it hardly got on.

    The direction is horizontal; zero: it stays. ``motion``: that of the last move, without that of
    a platform.
    """
    heading = reject(asked, up)
    if not dot(heading, heading) > UPRIGHT2 * dot(asked, asked):
        return ZERO, False
    direction = unit(heading)
    return direction, dot(direction, motion) < STUCK * dot(direction, heading)


def yielding_push(this, me, other, them, up, limit):
    """Push away from another one by weights, or ids if they are equal.

    ``me``, ``them``: (weight, way, stuck).
    """
    touch = this.radius + other.radius
    reach = touch + ROOM * f_min(this.radius, other.radius)
    distance2 = segment_segment(this.q0, this.q1, other.q0, other.q1).dist2
    if distance2 >= reach * reach:
        return ZERO
    apart = reject(sub(add(this.q0, this.q1), add(other.q0, other.q1)), up)
    # Characters that stand on one another need no room aside. ``apart`` is twice as long.
    missing = (reach if dot(apart, apart) >= 2.0 * distance2 else touch) - sqrt(distance2)
    if missing <= 0.0:
        return ZERO
    away = unit(apart)
    if is_zero(away):
        away = across(up)
        if this.id > other.id:
            away = neg(away)
    # Only of two that walk, one can be ahead of the other.
    ahead = 0.0
    if not (is_zero(me[1]) or is_zero(them[1])):
        ahead = -(dot(me[1], away) + dot(them[1], away))
    if ahead < -AHEAD or (ahead <= AHEAD and (me[0] < them[0] or (me[0] == them[0] and this.id < other.id))):
        return ZERO
    facing = dot(them[1], away)
    if facing > IN_THE_WAY and dot(me[1], them[1]) <= 0.0:
        # Back along the way of the other one, it would stay in front of it: it steps aside.
        away = unit(madd(away, them[1], -facing))
        if is_zero(away):
            away = cross(up, them[1])
    elif them[2] and ahead > AHEAD:
        # Straight back, a queue would form behind one that does not get on: it goes around.
        side = unit(madd(away, me[1], -dot(me[1], away)))
        if is_zero(side):
            side = cross(up, me[1])
        away = add(away, side)
    return scale(away, f_min(missing, limit))


def yielding_separation(this, others, up, limit, weight_of):
    """Separation by weights.

    Members of equal weight share an overlap, and the ids decide about the gap beyond. Others share
    every overlap.

    ``weight_of``: by id the weight, the wanted displacement and the motion.
    """
    weight, asked, motion = weight_of[this.id]
    me = (weight, *heading_of(asked, motion, up))
    half = total = ZERO
    lengths = 0.0
    for c in others:
        if not box_overlap(c.bounds, box_grow(this.bounds, ROOM * this.radius)):
            continue
        if c.id not in weight_of or weight_of[c.id][0] == weight:
            push = separation(this, [c], up, limit)
            half = add(half, push)
            if c.id not in weight_of or not is_zero(push):
                continue
        them = (weight_of[c.id][0], *heading_of(*weight_of[c.id][1:], up))
        push = yielding_push(this, me, c, them, up, limit)
        total = add(total, push)
        lengths += length(push)
    # Where pushes oppose each other, it goes back.
    total = madd(total, me[1], length(total) - lengths)
    size = length(total)
    return add(half, scale(total, limit / size) if size > limit else total)


def separation(this, others, up, limit):
    """Horizontal separation of a character from others, half the overlap each (RULES 8)."""
    total = ZERO
    for c in others:
        overlap = this.radius + c.radius
        distance2 = segment_segment(this.q0, this.q1, c.q0, c.q1).dist2
        if distance2 >= overlap * overlap:
            continue
        overlap -= sqrt(distance2)
        away = unit(reject(sub(add(this.q0, this.q1), add(c.q0, c.q1)), up))
        if is_zero(away):
            # One over the other: a fixed direction, the lower id one way, the higher the other.
            away = across(up)
            if this.id > c.id:
                away = neg(away)
        total = madd(total, away, 0.5 * f_min(overlap, limit))
    return total
