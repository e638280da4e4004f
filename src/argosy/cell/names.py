"""Names of machines, resources, node sets, attributes, tags and schedulers, and their numbers.

A cell and all its views share one `Names`. A number never changes its meaning. What must not change
under a snapshot is in `Known`, which is copied before the first change after a snapshot.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell.search import DOWN, FILTERED
from argosy.model.errors import ModelError, did_you_mean
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP
from argosy.model.resources import BASE_DIMENSIONS, Resources
from argosy.model.transactions import OPERATOR, Wants

_NOBODY: Final[NDArray[np.int32]] = np.empty(0, np.int32)


class Group:
    """The sets of one node group: replaced, never changed."""

    __slots__ = ("numbers", "sets")

    def __init__(self, sets: dict[str, int]) -> None:
        self.sets = sets
        self.numbers = np.array(list(sets.values()), np.int32) if sets else _NOBODY


class Known:
    """What is known at one moment."""

    __slots__ = (
        "applications",
        "applications_version",
        "attributes",
        "dimensions",
        "groups",
        "labels_version",
        "ruled_out",
        "wants",
    )

    def __init__(self, dimensions: tuple[str, ...]) -> None:
        self.groups: dict[str, Group] = {}
        #: Number of attributes; they are numbered in order of appearance.
        self.attributes = 0
        #: How often labels of existing machines have changed.
        self.labels_version = 0
        #: The latest wants announced by schedulers; the core does not use them.
        self.wants: dict[str, Wants] = {}
        #: Jobs with constraints that are not over; how often one was added or removed.
        self.applications: dict[int, Job] = {}
        self.applications_version = 0
        self.set_dimensions(dimensions)

    def set_dimensions(self, dimensions: tuple[str, ...]) -> None:
        self.dimensions = dimensions
        #: Names of the counters in which the core counts excluded machines.
        self.ruled_out = (*dimensions, FILTERED, DOWN)

    def copied(self) -> Known:
        twin = copy.copy(self)
        twin.groups = self.groups.copy()
        twin.wants = self.wants.copy()
        twin.applications = self.applications.copy()
        return twin

    def group(self, name: str) -> Group:
        try:
            return self.groups[name]
        except KeyError:
            known = [MACHINE_GROUP, *self.groups]
            raise ModelError(
                f"unknown node group {name!r}",
                expected="one of " + ", ".join(known),
                hint=did_you_mean(name, known),
            ) from None

    def set_number(self, group: str, name: str) -> int:
        sets = self.group(group).sets
        try:
            return sets[name]
        except KeyError:
            raise ModelError(
                f"node group {group!r} has no set {name!r}", hint=did_you_mean(name, sets)
            ) from None


class Names:
    """Numbers are dense, in order of first mention."""

    def __init__(self, dimensions: tuple[str, ...]) -> None:
        self.known = Known(dimensions)
        self._is_shared = False
        self.machines: list[str] = []
        self.machine_numbers: dict[str, int] = {}
        #: Names and groups of node sets, by number.
        self.sets: list[str] = []
        self._group_of_set: list[str] = []
        self._attributes: dict[tuple[str, str], int] = {}
        self._tags: dict[str, int] = {}
        #: Tags by number.
        self.tags: list[str] = []
        #: The operator is number 0, which the native core exempts from limits.
        self.schedulers = {OPERATOR: 0}
        #: Resources added after the cell was made, by number; requests may name them before any machine
        #: has them.
        self._apart: dict[str, int] = {}
        #: Known shapes: most tasks of a workload ask for the same few.
        self.shapes: dict[tuple[int, int, int, tuple[str, ...]], int] = {}

    def share(self) -> Known:
        """What is known now, as a value that will not change."""
        self._is_shared = True
        return self.known

    def change(self) -> Known:
        """What is known now, for the caller to change."""
        if self._is_shared:
            self.known = self.known.copied()
            self._is_shared = False
        return self.known

    def amounts(self, request: Resources) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
        """The request by dimension, and the part of it for resources that no machine has, by number."""
        dimensions = self.known.dimensions
        if not request.extras and dimensions[:2] == BASE_DIMENSIONS:
            return (request.cpu, request.memory, *(0,) * (len(dimensions) - 2)), []
        amounts = dict(request.items())
        vector = tuple(amounts.pop(name, 0) for name in dimensions)
        apart = [
            (self._apart.setdefault(name, len(self._apart)), amount)
            for name, amount in amounts.items()
            if amount
        ]
        return vector, apart

    def add_dimensions(self, new: Sequence[str]) -> list[int]:
        """Adds dimensions; returns the numbers under which requests refer to them."""
        self.change().set_dimensions((*self.known.dimensions, *new))
        return [self._apart.setdefault(name, len(self._apart)) for name in new]

    def resource(self, number: int) -> str:
        """The name of a resource added after the cell was made."""
        return next(islice(self._apart, number, None))

    def add_sets(self, new: Mapping[str, Iterable[str]]) -> None:
        """Adds sets by group; groups may be new too."""
        groups = self.change().groups
        for group, names in new.items():
            sets = dict(groups[group].sets) if group in groups else {}
            for name in names:
                sets[name] = len(self.sets)
                self.sets.append(name)
                self._group_of_set.append(group)
            groups[group] = Group(sets)

    def sets_in(self, numbers: Sequence[int], group: str) -> tuple[str, ...]:
        return tuple(self.sets[at] for at in numbers if self._group_of_set[at] == group)

    def sets_joined(self, joins: dict[str, tuple[str, ...]]) -> list[int]:
        """The numbers of sets, all of which are known."""
        known = self.known
        return [
            number
            for group, sets in joins.items()
            for number in dict.fromkeys(known.set_number(group, name) for name in sets)
        ]

    def add_machine(self, name: str) -> None:
        self.machine_numbers[name] = len(self.machines)
        self.machines.append(name)

    def attributes_had(self, attributes: dict[str, str]) -> list[int]:
        numbers = [self._attribute(key, value) for key, value in attributes.items()]
        if len(self._attributes) > self.known.attributes:
            self.change().attributes = len(self._attributes)
        return numbers

    def _attribute(self, key: str, value: str) -> int:
        return self._attributes.setdefault((key, value), len(self._attributes))

    def known_attribute(self, key: str, value: str) -> int | None:
        return self._attributes.get((key, value))

    def attributes(self, count: int) -> tuple[tuple[str, str], ...]:
        """The first `count` attributes of machines, with their values."""
        return tuple(islice(self._attributes, count))

    def tag(self, name: str) -> int:
        number = self._tags.get(name)
        if number is None:
            number = self._tags[name] = len(self._tags)
            self.tags.append(name)
        return number
