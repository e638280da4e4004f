"""Parts of a placement problem: machines, node groups, running and new containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.machines import MACHINE_GROUP


class Family(msgspec.Struct, frozen=True):
    """A node group: the sets of machine n are ``sets_of[first_set[n]:first_set[n + 1]]``."""

    name: str
    sets: int
    first_set: NDArray[np.int32]
    sets_of: NDArray[np.int32]
    #: The set of each machine (`sets` if it is in none), if no machine is in two; otherwise empty.
    set_of: NDArray[np.int32]

    @property
    def overlaps(self) -> bool:
        return len(self.set_of) != len(self.first_set) - 1

    def sets_with(self, machine: int) -> tuple[int, ...]:
        """The sets that the machine is in."""
        first, last = int(self.first_set[machine]), int(self.first_set[machine + 1])
        return tuple(self.sets_of[first:last].tolist())

    def sum(self, per_machine: NDArray[np.int32]) -> NDArray[np.int32]:
        """Totals per set, followed by the total of machines outside all sets (if no sets overlap)."""
        if not self.overlaps:
            if self.name == MACHINE_GROUP:
                return np.append(per_machine, np.int32(0))
            summed = np.bincount(self.set_of, per_machine, self.sets + 1)
            return summed.astype(np.int32)
        repeated = np.repeat(per_machine, np.diff(self.first_set))
        summed = np.bincount(self.sets_of, repeated, self.sets + 1)
        return summed.astype(np.int32)

    @staticmethod
    def machines(count: int) -> Family:
        own = np.arange(count, dtype=np.int32)
        return Family(MACHINE_GROUP, count, np.arange(count + 1, dtype=np.int32), own, own)

    @staticmethod
    def of(name: str, joins: Sequence[Sequence[int]], sets: int) -> Family:
        """Builds a family from the set numbers of each machine."""
        lengths = np.array([len(mine) for mine in joins], np.int32)
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        flat = np.array([each for mine in joins for each in mine], np.int32)
        if len(lengths) and lengths.max() > 1:
            return Family(name, sets, first, flat, np.empty(0, np.int32))
        single = np.full(len(joins), sets, np.int32)
        single[lengths == 1] = flat
        return Family(name, sets, first, flat, single)


class PlacementCluster(msgspec.Struct, frozen=True):
    """Machines: free room and capacity (one row each), node groups and static tags."""

    free: NDArray[np.int64]
    capacity: NDArray[np.int64]
    #: By name; the group `machine` may be left out.
    families: Mapping[str, Family] = {}
    #: Kinds of static tags, each with the machines that have them.
    static: Sequence[tuple[frozenset[str], NDArray[np.bool_]]] = ()

    @property
    def machines(self) -> int:
        return len(self.free)


class ContainerKind(msgspec.Struct, frozen=True):
    """Identical new containers: their application (a number), tags, request and count."""

    app: int
    tags: frozenset[str]
    request: NDArray[np.int64]
    count: int
    #: The machines they may go to; None means all.
    allowed: NDArray[np.bool_] | None = None
    #: For a running container that may move: its machine. The cluster does not include it.
    origin: int = -1
    #: That of their application; a higher one goes first.
    precedence: int = 0


class Running(msgspec.Struct, frozen=True):
    """Running containers with the same tags: how many are on each machine."""

    tags: frozenset[str]
    counts: NDArray[np.int32]
