# cython: language_level=3
"""The public contacts of a character: a contact manifold for each touched object."""
from typing import NamedTuple

from libc.stdint cimport int32_t

from pycct.args.values cimport as_not_negative, as_vec3, from_quat, from_vec3
from pycct.character.move_types cimport controller_params, move_scratch
from pycct.character.parameters cimport other_of, z_to
from pycct.geometry.types cimport SHAPE_BOX, SHAPE_CAPSULE, SHAPE_SPHERE, triangle
from pycct.geometry.vec cimport f_max, v3_add, v3_dot, v3_madd, v3_scale, vec3
from pycct.scene.scene cimport Scene, Snapshot
from pycct.shapes.primitives cimport Box, Capsule, Shape, Sphere, Triangle
from pycct.world.candidates cimport (
    GROUP_PLANE,
    GROUP_TRIANGLES,
    OWNER_CONTROLLER,
    candidate_group,
    candidates,
    collider,
)

from pycct.queries.shape_pairs import ContactManifold, capsule_contacts


class Contacts(NamedTuple):
    """Contact of a character with one object: an element of `CharacterController.contacts`.

    Attributes
    ----------
    other : Actor, Obstacle, CharacterController or CrowdMember
        The touched object.
    triangle : int or None
        Index in the mesh or heightfield, in the order of your triangles.
    manifold : ContactManifold
        Points on the other object, normal towards the character.
    id : int
        Id of the touched object. Pickles and deep copies contain it instead of the object, so that
        `other` is None.
    """

    other: object
    triangle: object
    manifold: object
    id: object

    def __copy__(self):
        return self

    def __reduce__(self):
        return type(self), (None, self.triangle, self.manifold, self.id)


cdef object _true_shape(object shape, const collider* item):
    """A solid shape with the scale of its actor."""
    cdef vec3 k = item.scale
    if item.plain:
        return shape
    if item.kind == SHAPE_SPHERE:
        return Sphere(item.radius)
    if item.kind == SHAPE_CAPSULE and item.radius > 0.0:
        return Capsule(item.radius, (<Shape>shape).height_ * k.x)
    if item.kind == SHAPE_BOX:
        return Box((item.a.x * abs(k.x), item.a.y * abs(k.y), item.a.z * abs(k.z)))
    return shape.scaled(from_vec3(k))


cdef double contact_reach(const controller_params* p, object max_distance) except? -1.0:
    cdef double reach = 1.01 * p.contact_offset + 1e-6
    if max_distance is not None:
        reach = as_not_negative(max_distance, "max_distance")
        # A larger distance would not be a query about contacts.
        if reach > p.height + 2.0 * p.radius:
            raise ValueError(f"max_distance must not exceed the character's height "
                             f"{p.height + 2.0 * p.radius}, got {reach}")
    return reach


cdef object _plane_contacts(const controller_params* p, vec3 position, vec3 normal, double offset, double reach):
    """Contacts with a half space, or None: those with the upper face of an endless box."""
    cdef double size = p.height + 2.0 * p.radius + reach, large = 8.0 * size
    # Relative to the character, and no deeper than its size; both only shift the result.
    cdef double level = offset - v3_dot(normal, position)
    cdef double deeper = f_max(level - size, 0.0)
    cdef vec3 point
    if level < -size:
        return None
    found = capsule_contacts(Capsule(p.radius, p.height), ((0.0, 0.0, 0.0), z_to(p.up)), [Box((large, large, large))],
                             [(from_vec3(v3_scale(normal, level - deeper - large)), z_to(normal))], reach)
    if not found:
        return None
    there = found[0][1]
    here = ContactManifold(from_vec3(normal))
    for where, distance in zip(there.points_on_b.tolist(), there.distances.tolist()):
        point = v3_madd(v3_add(as_vec3(where, "point"), position), normal, deeper)
        here.add(from_vec3(point), distance - deeper)
    return here


cdef list contacts_around(Scene scene, Snapshot snap, const controller_params* p, vec3 position,
                          const move_scratch* scratch, double reach, object filter):
    cdef const candidates* c = &scratch.around
    cdef const candidate_group* g
    cdef const triangle* t
    cdef const collider* item
    cdef int32_t i, k
    cdef list found = [], shapes = [], poses = [], planes = []
    for i in range(c.n_groups):
        g = &c.groups[i]
        other = other_of(scene, g.owner, g.id)
        if other is None:
            continue
        if g.kind == GROUP_PLANE:
            m = _plane_contacts(p, position, g.q0, g.radius, reach)
            if m is not None:
                planes.append(((g.owner, g.id, -1), other, m))
        elif g.owner == OWNER_CONTROLLER:
            found.append(((g.owner, g.id, -1), other))
            shapes.append(other.shape)
            # The pose of the query: a crowd may move meanwhile.
            poses.append((from_vec3(v3_scale(v3_add(g.q0, g.q1), 0.5)), z_to(as_vec3(other.up, "up"))))
        elif g.kind == GROUP_TRIANGLES and not g.closed:
            for k in range(g.first, g.first + g.count):
                t = &c.tris[k]
                found.append(((g.owner, g.id, c.source[k]), other))
                shapes.append(Triangle(from_vec3(t.a), from_vec3(t.b), from_vec3(t.c)))
                poses.append(None)
        else:
            item = &snap.fixed.data.items[g.item] if g.layer_index == 0 else &snap.moving.data.items[g.item]
            found.append(((g.owner, g.id, -1), other))
            shapes.append(_true_shape(other.shape, item))
            poses.append((from_vec3(item.position), from_quat(item.rotation)))
    me = Capsule(p.radius, p.height)
    touching = planes + [(*found[n], m) for n, m in capsule_contacts(me, (from_vec3(position), z_to(p.up)), shapes,
                                                                     poses, reach)]
    if filter is not None:
        touching = [row for row in touching if filter(row[1])]
    touching.sort(key=_first)
    return [Contacts(other, key[2] if key[2] >= 0 else None, m, key[1]) for key, other, m in touching]


def _first(row):
    return row[0]
