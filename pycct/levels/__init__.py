"""Level files: a `Mesh` or `Scene` from OBJ, PLY, STL and glTF, a `Heightfield` from PNG and grids.

OBJ and glTF have readers of their own, bounded in time and memory. PLY and STL need trimesh, PNG
needs Pillow (``pip install pycct[levels]``), Draco needs DracoPy (``pycct[draco]``). The folder
imports shapes, the scene and the triangle kernels only.
"""

from pycct.levels.files import AXES as AXES
from pycct.levels.files import FORMATS as FORMATS
from pycct.levels.grids import load_heightfield
from pycct.levels.load import load_level, load_scene
from pycct.levels.report import LevelReport, report_on

__all__ = ["LevelReport", "load_heightfield", "load_level", "load_scene", "report_on"]
