"""pycct: the same characters and moves as one crowd, 120 calls of ``Crowd.move`` and ``positions``.

The characters do not collide, as in the other peers.
"""
import numpy as np

import pycct
from pycct import Crowd, Mesh, Scene
from scenes import CONTACT_OFFSET, HEIGHT, MIN_DISTANCE, RADIUS, SLOPE_LIMIT, STEP_OFFSET

NAME = "pycct crowd"


def version():
    return pycct.__version__


class Peer:
    THREADS = 1

    def __init__(self, meshes, positions, displacements, dt):
        self.scene = Scene()
        for vertices, triangles in meshes:
            self.scene.add(Mesh(vertices, triangles))
        self.dt = dt
        self.starts = positions
        self.moves = np.ascontiguousarray(displacements.swapaxes(0, 1))
        self.crowd = Crowd(
            self.scene, positions, radius=RADIUS, height=HEIGHT, contact_offset=CONTACT_OFFSET, step_offset=STEP_OFFSET,
            slope_limit=SLOPE_LIMIT,
        )

    def run(self, clock, record=None):
        crowd, move, dt, threads = self.crowd, self.crowd.move, self.dt, self.THREADS
        crowd.teleport(np.arange(len(crowd)), self.starts)
        if record is not None:
            for frame, displacements in enumerate(self.moves):
                move(displacements, dt, threads=threads, min_distance=MIN_DISTANCE)
                record[frame + 1] = crowd.positions
            return
        clock.start()
        for displacements in self.moves:
            move(displacements, dt, threads=threads, min_distance=MIN_DISTANCE)
            crowd.positions  # noqa: B018  read it, as a game would
        clock.stop()
