"""What an agent knows of its machines, for tests of its steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from argosy.agents.cache import NodesCache
from argosy.agents.facts import CellFacts
from argosy.cell import View
from argosy.model.machines import Cluster
from argosy.testing.builders import GIB


def a_cache(
    view: View,
    name: str = "",
    *,
    refresh: int = 0,
    changes: Callable[[], int] | None = None,
    shard: tuple[int, int] = (0, 1),
) -> NodesCache:
    return NodesCache(Cluster(name, "rome"), view, CellFacts(view), refresh, changes, shard)


def amounts(cpu: int, memory: int = GIB) -> NDArray[np.int64]:
    return np.array([cpu, memory], np.int64)
