"""Characters among characters (RULES 8).

The core finds them by a spatial hash; here all are looked at.
"""

from math import sqrt

from pycct.reference.closest import segment_segment
from pycct.reference.types import CAPSULE, CONTROLLER, USER_GEOMETRY
from pycct.reference.vec import ZERO, across, add, box_grow, f_min, is_zero, madd, neg, reject, sub, unit, vmax, vmin


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
