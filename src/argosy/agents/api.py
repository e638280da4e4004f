"""The interfaces of plug-ins: each is a class with a `name`, made without arguments, and one method.

    Sorting      the order of a scheduler's queue
    Strategy     which machines an agent draws next
    Filter       which of them may take the task
    Score        how suitable each of them is, from 0 to 100
    ClaimCheck   whether a machine, as it is now, still takes the task
    Binding      how a claim is written to the cell

Plug-ins see many machines at once, as columns, and answer with columns. Filters, scores and checks keep
no state. A strategy may: each agent has its own, and several requests share it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Refusal
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray, Transaction

PluginUse: TypeAlias = Literal["filter", "score"]
#: The range of a score.
LEAST, MOST = 0, 100


class Requirements(msgspec.Struct, frozen=True, gc=False):
    """What a task asks of its machine."""

    request: Resources
    requires: dict[str, str] = {}
    #: For plug-ins: see `TaskGroup.demands`.
    demands: dict[str, str] = {}


class SiteFacts(Protocol):
    """Attributes of machines, distances between places, and where jobs and volumes are."""

    def labels(self, key: str, machines: MachineArray) -> Sequence[str]:
        """The value of the attribute on each machine; empty where it has none."""

    def delay(self, one: str, other: str) -> int | None:
        """How long a message takes from one place to another, in microseconds; None if unknown."""

    def cluster_of(self, machine: int) -> str:
        """The cluster of a machine; empty if it is in none."""

    def places_of(self, job: str) -> Collection[str]:
        """The places of the clusters in which tasks of the job have a machine, as far as known."""

    def volume_homes(self, volume: str) -> Collection[int]:
        """Machines that have a volume of this name, as far as known."""


def amounts_in(request: Resources, dimensions: tuple[str, ...]) -> tuple[int, ...] | None:
    """The request in the order of the dimensions; None if it names a resource that is not among
    them."""
    if not request.extras:
        return request.vector(dimensions)
    if any(amount and name not in dimensions for name, amount in request.items()):
        return None
    return request.within(dimensions)


class Nodes(msgspec.Struct, frozen=True, gc=False):
    """Machines as columns: rows of `capacity` and `free` belong to `machines`, and have one amount per
    dimension."""

    machines: MachineArray
    capacity: NDArray[np.int64]
    free: NDArray[np.int64]
    dimensions: tuple[str, ...]
    source: SiteFacts
    #: Where each machine is: the place of its cluster. One place stands for all.
    places: tuple[str, ...] = ("",)

    def __len__(self) -> int:
        return len(self.machines)

    def labels(self, key: str) -> Sequence[str]:
        """The value of an attribute on each machine; empty where it has none."""
        return self.source.labels(key, self.machines)

    def amounts(self, request: Resources) -> NDArray[np.int64] | None:
        """The request in the order of the dimensions; None if it names a resource that no machine
        has."""
        amounts = amounts_in(request, self.dimensions)
        return None if amounts is None else np.array(amounts, np.int64)

    @staticmethod
    def joined(parts: Sequence[Nodes]) -> Nodes:
        """All parts together, of which there must be at least one."""
        first = parts[0]
        places: tuple[str, ...] = first.places
        if len(places) != 1 or any(part.places != places for part in parts):
            places = tuple(place for part in parts for place in part.each_place())
        return Nodes(
            np.concatenate([part.machines for part in parts]),
            np.concatenate([part.capacity for part in parts]),
            np.concatenate([part.free for part in parts]),
            first.dimensions,
            first.source,
            places,
        )

    def each_place(self) -> tuple[str, ...]:
        """The place of each machine."""
        return self.places * len(self) if len(self.places) == 1 else self.places

    def only(self, kept: NDArray[np.bool_]) -> Nodes:
        places = self.places
        if len(places) != 1:
            places = tuple(place for place, keep in zip(places, kept, strict=True) if keep)
        return Nodes(
            self.machines[kept],
            self.capacity[kept],
            self.free[kept],
            self.dimensions,
            self.source,
            places,
        )


@runtime_checkable
class Sorting(Protocol):
    name: ClassVar[str]

    def rank(self, job: Job, submitted: int) -> tuple[int, ...]:
        """Tasks of jobs with smaller ranks come first; equal ones in order of arrival. All ranks of one
        plug-in have the same length."""


@runtime_checkable
class Strategy(Protocol):
    name: ClassVar[str]

    def draw(
        self, task: Requirements, machines: MachineArray, count: int, random: Random
    ) -> MachineArray:
        """Up to `count` different ones of `machines`, which are in ascending order."""

    def learn(self, task: Requirements, drawn: MachineArray, fits: NDArray[np.bool_]) -> None:
        """Which of the machines drawn passed the filters."""


@runtime_checkable
class Filter(Protocol):
    name: ClassVar[str]

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        """Per machine, whether it may take the task."""


@runtime_checkable
class NamesReasons(Protocol):
    """Optional, for a filter: its reasons, as in `Explanation.ruled_out`. Otherwise its name is one."""

    def reasons(self, task: Requirements, dropped: Nodes) -> dict[str, int]: ...


@runtime_checkable
class Conditional(Protocol):
    """Optional, for a filter or a score that matters only to some tasks."""

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        """If not, the plug-in is not asked: all machines pass, or have the highest score."""


@runtime_checkable
class Score(Protocol):
    name: ClassVar[str]

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        """Per machine, how suitable it is: from 0 to 100, the higher the better."""


@runtime_checkable
class ClaimCheck(Protocol):
    name: ClassVar[str]

    def conflict(self, task: Requirements, node: Nodes) -> Refusal | None:
        """Why the one machine in `node`, as it is now, does not take the task; None if it does."""


@runtime_checkable
class Binding(Protocol):
    name: ClassVar[str]

    def bind(self, transaction: Transaction) -> Transaction:
        """The transaction that writes the claim to the cell."""
