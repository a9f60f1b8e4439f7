from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

def expanding_polygon(points: ArrayLike, normal: ArrayLike, capacity: SupportsIndex = 255) -> NDArray[np.int32]: ...
