"""culverin (Jolt's CharacterVirtual): one character in the scene, one start after another.

culverin is y up. Jolt lifts the capsule by its padding of 2 cm, which replaces the contact offset.
The binding fixes stick-to-floor and similar settings.
"""
import culverin
import numpy as np

from scenes import HEIGHT, RADIUS, STEP_OFFSET

NAME = "culverin"
PADDING = 0.02


def version():
    return culverin.__version__


def _back(p):
    return p[0], -p[2], p[1] + PADDING


class Peer:
    def __init__(self, meshes, positions, displacements, dt):
        velocity = np.stack([displacements[..., 0], displacements[..., 2], -displacements[..., 1]], -1) / dt
        self.dt = dt
        self.velocities = [[tuple(v) for v in course] for course in velocity.tolist()]
        self.starts = [(x, z - PADDING, -y) for x, y, z in positions.tolist()]
        self.meshes = [
            (np.stack([v[:, 0], v[:, 2], -v[:, 1]], -1).astype(np.float32).ravel(), t.ravel()) for v, t in meshes
        ]
        self.world = culverin.PhysicsWorld(settings={"num_threads": 1, "max_bodies": 1024})
        for vertices, triangles in self.meshes:
            self.world.create_mesh_body((0, 0, 0), (0, 0, 0, 1), vertices, triangles)
        self.world.step(0.0)
        self.character = self.world.create_character(
            self.starts[0], height=HEIGHT + 2 * RADIUS, radius=RADIUS, step_height=STEP_OFFSET, max_slope=45.0
        )
        self.world.step(0.0)

    def run(self, clock, record=None):
        move, get, dt = self.character.move, self.character.get_position, self.dt
        for i, start in enumerate(self.starts):
            self.character.set_position(start)
            course = self.velocities[i]
            if record is not None:
                for frame, velocity in enumerate(course):
                    move(velocity, dt)
                    record[frame + 1, i] = _back(get())
                continue
            clock.start()
            for velocity in course:
                move(velocity, dt)
                get()
            clock.stop()
