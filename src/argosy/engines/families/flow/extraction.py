"""Placements from the flow (computed by the roster in the core)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.solvers.flow.arrays import Numbers

if TYPE_CHECKING:
    from argosy.engines.families.flow.graph import Graph

Rows = NDArray[np.int64]


class Placements(msgspec.Struct, frozen=True):
    """The changes that the flow asks for."""

    #: Tasks with a new machine, and the cost of the first arc of their path. Some run elsewhere.
    rows: Rows
    machines: Numbers
    costs: Numbers
    #: Tasks that lose their machine.
    leaving: Rows


def extract(graph: Graph) -> Placements:
    return Placements(*graph.roster.extract())
