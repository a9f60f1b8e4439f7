"""Some worlds of the endurance run (soak.py), and proof that its checks see what they are for."""

import pytest
import soak

# Seeds of worlds in which a move once did what it must not.
KEPT = [3517]


@pytest.mark.parametrize("seed", [*range(12), *KEPT])
def test_a_world(seed):
    world = soak.World(seed)
    assert world.run() == soak.MOVES * len(world.heroes)


@pytest.mark.slow
def test_three_minutes():
    moves, worlds, violations = soak.soak(180, first=100)
    print(f"{moves} moves in {worlds} worlds")
    assert violations == [] and moves > 100_000


def test_every_kind_of_world_comes_up():
    assert {soak.World(seed).kind for seed in range(40)} == set(soak.WORLDS)


class Liar:
    """Tells the checks something else than the character would."""

    def __init__(self, hero, said):
        self.hero = hero
        self.said = said

    def __getattr__(self, name):
        return self.said[name] if name in self.said else getattr(self.hero, name)

    def move(self, d, dt):
        self.hero.move(d, dt)
        self.hero.position = self.said.get("ends", self.hero.position)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"velocity": (0.0, float("nan"), 0.0)}, "not finite"),
        ({"ends": (0.0, 0.0, soak.SIZE + 0.01)}, "outside"),
        ({"ends": (0.0, 0.0, -soak.SIZE + 0.1)}, "deep"),
        ({"ends": (1.0, 0.0, 0.0)}, "went"),
    ],
)
def test_the_checks_see(said, told):
    scene = soak.pycct.Scene()
    world = soak.World.__new__(soak.World)
    world.scene, world.lifts, world.together, world.heroes, world.moves = scene, [], False, [], 0
    soak.closed(scene, (0, 0, 1))
    hero = soak.pycct.CharacterController(scene, (0, 0, 0), radius=0.3, height=0.6, step_offset=0.1)
    world.move(hero, (0.01, 0, 0))
    with pytest.raises(soak.Violation, match=told):
        world.move(Liar(hero, said), (0.01, 0, 0))
