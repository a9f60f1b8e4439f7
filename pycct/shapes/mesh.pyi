from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycct.shapes.primitives import Shape

@final
class Mesh(Shape):
    def __init__(
        self,
        vertices: ArrayLike,
        triangles: ArrayLike,
        two_sided: bool | np.bool_ = False,
        triangle_data: ArrayLike | None = None,
        triangle_mask: ArrayLike | None = None,
        *,
        threads: SupportsIndex = 1,
    ) -> None: ...
    @property
    def vertices(self) -> NDArray[np.float64]: ...
    @property
    def triangles(self) -> NDArray[np.int32]: ...
    @property
    def triangle_data(self) -> NDArray[np.int64] | None: ...
    @property
    def triangle_mask(self) -> NDArray[np.uint32] | None: ...
    @property
    def two_sided(self) -> bool: ...
    @property
    def triangle_count(self) -> int: ...
    @property
    def n_degenerate(self) -> int: ...
    @property
    def mapped(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
