"""rapier3d: KinematicCharacterController.move_shape, one character after another.

The caller stores the position.
"""
import math

import rapier3d

from scenes import CONTACT_OFFSET, HEIGHT, RADIUS, SLOPE_LIMIT, STEP_OFFSET

NAME = "rapier3d"
SNAP = 0.4  # m, so that it follows slopes and stairs as the others do


def version():
    return rapier3d.__version__


class Peer:
    def __init__(self, meshes, positions, displacements, dt):
        self.dt = dt
        self.starts = [tuple(p) for p in positions.tolist()]
        self.moves = [[tuple(d) for d in course] for course in displacements.tolist()]
        self.world = rapier3d.PhysicsWorld(gravity=(0, 0, -9.81))
        self.world.set_num_threads(1)
        for vertices, triangles in meshes:
            self.world.add_collider(rapier3d.Collider.trimesh(vertices, triangles))
        self.world.step()
        self.world.update_query_pipeline()
        absolute = rapier3d.CharacterLength.absolute
        self.controller = rapier3d.KinematicCharacterController(
            up=(0, 0, 1),
            offset=absolute(CONTACT_OFFSET),
            slide=True,
            autostep=rapier3d.CharacterAutostep(
                max_height=absolute(STEP_OFFSET), min_width=absolute(0.2), include_dynamic_bodies=False
            ),
            max_slope_climb_angle=math.acos(SLOPE_LIMIT),
            min_slope_slide_angle=math.acos(SLOPE_LIMIT),
            snap_to_ground=absolute(SNAP),
        )
        self.shape = rapier3d.SharedShape.capsule_z(HEIGHT / 2, RADIUS)

    def run(self, clock, record=None):
        move, place, dt = self.controller.move_shape, rapier3d.Isometry3.from_translation, self.dt
        query, shape = self.world.query_pipeline, self.shape
        for i, (x, y, z) in enumerate(self.starts):
            clock.start()
            for frame, displacement in enumerate(self.moves[i]):
                t = move(dt, None, None, query, shape, place(x, y, z), displacement).translation
                x, y, z = x + t.x, y + t.y, z + t.z
                if record is not None:
                    record[frame + 1, i] = x, y, z
            clock.stop()
