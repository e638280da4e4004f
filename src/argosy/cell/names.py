"""Names of machines, node sets, attributes, tags and schedulers, and the core's numbers for them.

One `Names` is shared by a cell and all its snapshots. It only grows, and a number once given keeps
its meaning, so a snapshot stays frozen by not looking beyond its own machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.model.errors import ModelError, did_you_mean
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.transactions import OPERATOR, Wants


class Names:
    """Numbers are dense and given in the order of first mention."""

    def __init__(self, dimensions: tuple[str, ...], groups: Mapping[str, Sequence[str]]) -> None:
        self.dimensions = dimensions
        self.machines: list[str] = []
        self.machine_numbers: dict[str, int] = {}
        #: Set names in the order of their numbers; a group's sets are neighbours.
        self.sets: list[str] = []
        #: Per group, the number of each of its sets.
        self.groups: dict[str, dict[str, int]] = {}
        self._group_of_set: list[str] = []
        self._attributes: dict[tuple[str, str], int] = {}
        self._tags: dict[str, int] = {}
        #: Tags in the order of their numbers.
        self.tags: list[str] = []
        #: The operator is number 0: the native core exempts it.
        self.schedulers = {OPERATOR: 0}
        #: What schedulers last said they want; the core has no use for it.
        self.wants: dict[str, Wants] = {}
        #: Jobs with constraints that are not over, and how often one came or went.
        self.applications: dict[int, Job] = {}
        self.applications_version = 0
        for group, sets in groups.items():
            if group == MACHINE_GROUP:
                raise ModelError(
                    f"node group {MACHINE_GROUP!r} is given",
                    hint="every machine is a set of its own in that group; leave it out",
                )
            first = len(self.sets)
            self.groups[group] = {name: first + at for at, name in enumerate(sets)}
            if len(self.groups[group]) != len(sets):
                twice = next(name for at, name in enumerate(sets) if name in sets[:at])
                raise ModelError(f"node group {group!r} names the set {twice!r} twice")
            self.sets.extend(sets)
            self._group_of_set.extend([group] * len(sets))

    def group(self, name: str) -> dict[str, int]:
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
        sets = self.group(group)
        try:
            return sets[name]
        except KeyError:
            raise ModelError(
                f"node group {group!r} has no set {name!r}", hint=did_you_mean(name, sets)
            ) from None

    def sets_in(self, numbers: Sequence[int], group: str) -> tuple[str, ...]:
        self.group(group)
        return tuple(self.sets[at] for at in numbers if self._group_of_set[at] == group)

    def sets_joined(self, machine: Machine) -> list[int]:
        try:
            return [
                number
                for group, sets in machine.joins.items()
                for number in dict.fromkeys(self.set_number(group, name) for name in sets)
            ]
        except ModelError as error:
            raise error.located(field=f"machine {machine.name}") from None

    def add_machine(self, name: str) -> None:
        self.machine_numbers[name] = len(self.machines)
        self.machines.append(name)

    def attribute(self, key: str, value: str) -> int:
        return self._attributes.setdefault((key, value), len(self._attributes))

    def known_attribute(self, key: str, value: str) -> int | None:
        return self._attributes.get((key, value))

    def attributes(self) -> tuple[tuple[str, str], ...]:
        """Every attribute that some machine has, with its value."""
        return tuple(self._attributes)

    def tag(self, name: str) -> int:
        number = self._tags.get(name)
        if number is None:
            number = self._tags[name] = len(self._tags)
            self.tags.append(name)
        return number
