"""pycct: one CharacterController, one start after another, `move()` and `position` from Python."""
import pycct
from pycct import CharacterController, Mesh, Scene
from scenes import CONTACT_OFFSET, HEIGHT, MIN_DISTANCE, RADIUS, SLOPE_LIMIT, STEP_OFFSET

NAME = "pycct"


def version():
    return pycct.__version__


class Peer:
    def __init__(self, meshes, positions, displacements, dt):
        self.scene = Scene()
        for vertices, triangles in meshes:
            self.scene.add(Mesh(vertices, triangles))
        self.dt = dt
        self.starts = [tuple(p) for p in positions.tolist()]
        self.moves = [[tuple(d) for d in course] for course in displacements.tolist()]

    def run(self, clock, record=None):
        hero = CharacterController(
            self.scene, position=self.starts[0], radius=RADIUS, height=HEIGHT, contact_offset=CONTACT_OFFSET,
            step_offset=STEP_OFFSET, slope_limit=SLOPE_LIMIT,
        )
        move, dt, min_distance = hero.move, self.dt, MIN_DISTANCE
        for i, start in enumerate(self.starts):
            hero.teleport(start)
            course = self.moves[i]
            if record is not None:
                for frame, displacement in enumerate(course):
                    move(displacement, dt, min_distance=min_distance)
                    record[frame + 1, i] = hero.position
                continue
            clock.start()
            for displacement in course:
                move(displacement, dt, min_distance=min_distance)
                hero.position  # noqa: B018  read it, as a game would
            clock.stop()
