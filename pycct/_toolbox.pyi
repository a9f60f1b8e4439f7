import numpy as np
from numpy.typing import NDArray

def triangle_normals(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def flipped_count(neighbours: NDArray[np.int32], agrees: NDArray[np.uint8], n: int) -> int: ...
