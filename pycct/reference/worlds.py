"""Many scenes for the members of one crowd. Twin of `pycct.scene.worlds`."""

import copy

import numpy as np

from pycct.reference.scene import Scene


class Worlds:
    """Many independent scenes for one crowd: each member lives in one of them.

    Parameters
    ----------
    scenes : iterable of Scene
        At least one; each once.

    Attributes
    ----------
    scenes : tuple of Scene
    """

    def __init__(self, scenes):
        if isinstance(scenes, Scene):
            raise TypeError("scenes must be an iterable of Scene: for one scene make the Crowd with it")
        try:
            found = tuple(scenes)
        except TypeError:
            raise TypeError(f"scenes must be an iterable of Scene, not {type(scenes).__name__}") from None
        for scene in found:
            if not isinstance(scene, Scene):
                raise TypeError(f"scenes must contain Scene objects only, not {type(scene).__name__}")
        if not found:
            raise ValueError("scenes must contain at least one Scene")
        if len({id(scene) for scene in found}) != len(found):
            raise ValueError("scenes must be different from one another")
        self.scenes = found

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        return self.scenes[index]

    def __repr__(self):
        return f"<Worlds of {len(self)} scenes>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return Worlds([copy.deepcopy(scene, memo) for scene in self.scenes])

    def move_actors(self, world, ids, positions, rotations=None):
        """Put actors of many worlds elsewhere in one call.

        Parameters
        ----------
        world : int or (n,) array of integers
            Index of the world of each actor.
        ids, positions, rotations
            As for `Scene.move_actors`.
        """
        given = np.asarray(ids)
        n = given.shape[0]
        homes = np.broadcast_to(np.asarray(world), (n,))
        places = np.asarray(positions)
        turns = None if rotations is None else np.broadcast_to(np.asarray(rotations), (n, 4))
        for home in sorted(set(homes.tolist())):
            rows = homes == home
            self.scenes[home].move_actors(given[rows], places[rows], None if turns is None else turns[rows])
