"""Arrays of flow problems."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Amounts, costs, and numbers of tasks or vertices.
Numbers: TypeAlias = NDArray[np.int64]
#: Vertices and arcs of a network.
Handles: TypeAlias = NDArray[np.int32]
