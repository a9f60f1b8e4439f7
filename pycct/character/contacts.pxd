# cython: language_level=3
"""The public contacts of a character: a contact manifold for each touched object."""
from pycct.character.move_types cimport controller_params, move_scratch
from pycct.geometry.vec cimport vec3
from pycct.scene.scene cimport Scene, Snapshot

# How far contacts() looks, from its argument.
cdef double contact_reach(const controller_params* p, object max_distance) except? -1.0
# Contacts with what gather_near has put into scratch.around.
cdef list contacts_around(Scene scene, Snapshot snap, const controller_params* p, vec3 position,
                          const move_scratch* scratch, double reach, object filter)
