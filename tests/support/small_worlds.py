"""Small scenes and characters for tests: floors, slopes, walls."""

import math

import numpy as np

from pycct import CharacterController, Mesh, Plane, Scene

DT = 1 / 60
RADIUS, HEIGHT, OFFSET = 0.4, 1.0, 0.01
HALF = HEIGHT / 2 + RADIUS
REST = HALF + OFFSET  # height of the resting centre above the floor
LIMIT = math.cos(math.radians(45))


def quad(a, b, c, d, **more):
    """Two triangles; corners counter-clockwise seen from the front."""
    return Mesh([a, b, c, d], [(0, 1, 2), (0, 2, 3)], **more)


def flat(size=50, z=0.0, **more):
    return quad((-size, -size, z), (size, -size, z), (size, size, z), (-size, size, z), **more)


def slope(degrees, x0=0.0, x1=20.0, width=20.0):
    """Rises along +x from (x0, 0)."""
    t = math.tan(math.radians(degrees))
    return quad((x0, -width, 0), (x1, -width, (x1 - x0) * t), (x1, width, (x1 - x0) * t), (x0, width, 0))


def wall_at(x, low=-5.0, high=5.0, width=20.0):
    """One sheet, with its front towards -x."""
    return quad((x, width, low), (x, -width, low), (x, -width, high), (x, width, high))


def world(*shapes):
    """A scene of shapes, each alone or with its position."""
    scene = Scene()
    for s in shapes:
        if isinstance(s, tuple):
            scene.add(s[0], position=s[1])
        else:
            scene.add(s)
    return scene


def floor():
    return world(Plane((0, 0, 1)))


def hero_in(scene, x=0.0, y=0.0, z=REST, **more):
    more = {"contact_offset": OFFSET, "slope_limit": LIMIT, **more}
    return CharacterController(scene, (x, y, z), RADIUS, HEIGHT, **more)


def steps(hero, displacement, count):
    """Flags of several equal moves."""
    return [hero.move(displacement, DT) for _ in range(count)]


def about_z(angle):
    return (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))


def about_y(angle):
    return (0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2))


def told_of_hits(hero):
    """All comparable values of the hits of the last move."""
    return [
        (h.other, h.triangle, h.data, h.position, h.normal, h.direction, h.length, h.distance, h.pass_, h.region)
        for h in hero.hits
    ]


def seen(hero):
    """All observable values of a character, and its save."""
    state, ground = hero.state, hero.ground
    return (
        hero.save(),
        hero.position,
        hero.flags,
        hero.velocity,
        told_of_hits(hero),
        ground and (ground.normal, ground.point, ground.distance, ground.walkable, ground.triangle),
        (state.standing_on, state.overlap, state.sliding, state.moving_up, state.platform_delta),
        repr(hero.stats),
    )


def near(a, b, within=1e-9):
    return bool(np.abs(np.subtract(a, b)).max() <= within)
