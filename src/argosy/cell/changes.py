"""Machine changes: all are checked before the first is made, then made in order.

A change may bring new resources, node groups and node sets: the check finds them, and the cell grows
before the first change is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from argosy._core import Cell as NativeCell
from argosy.cell.names import Names
from argosy.model.errors import ModelError
from argosy.model.machines import MACHINE_GROUP
from argosy.model.resources import MOST_DIMENSIONS, Resources
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)

#: Bound on the total capacity of all machines in a dimension, so that no native sum overflows.
_MOST_IN_ALL: Final = 2**62
#: As in the native core.
_MOST_SETS: Final = 2**24


class Growth:
    """Names in machine changes that are new to the cell, in order of mention."""

    def __init__(self, columns: NativeCell, names: Names) -> None:
        self._columns = columns
        self._names = names
        self.dimensions: list[str] = []
        #: New sets by group.
        self.sets: dict[str, dict[str, None]] = {}

    def vector(self, capacity: Resources, machine: str) -> list[int]:
        """Amounts by dimension, including new ones."""
        amounts = dict(capacity.items())
        known = self._names.known.dimensions
        for name, amount in amounts.items():
            if amount and name not in known and name not in self.dimensions:
                self._require_room(name, machine)
                self.dimensions.append(name)
        return [amounts.get(name, 0) for name in (*known, *self.dimensions)]

    def _require_room(self, name: str, machine: str) -> None:
        known = (*self._names.known.dimensions, *self.dimensions)
        if len(known) >= MOST_DIMENSIONS:
            raise ModelError(
                f"{machine}: {name!r} would be one resource too many",
                expected=f"at most {MOST_DIMENSIONS}: there are {', '.join(known)}",
            )

    def join(self, joins: Mapping[str, tuple[str, ...]], machine: str) -> None:
        groups = self._names.known.groups
        for group, sets in joins.items():
            if group == MACHINE_GROUP:
                raise ModelError(
                    f"{machine}: joins sets of the node group {MACHINE_GROUP!r}",
                    hint="every machine is a set of its own in that group; leave it out",
                )
            old = groups[group].sets if group in groups else {}
            new = dict.fromkeys(name for name in sets if name not in old)
            if new or group not in groups:
                self.sets.setdefault(group, {}).update(new)
        fresh = sum(map(len, self.sets.values()))
        if len(self._names.sets) + fresh > _MOST_SETS:
            raise ModelError(f"{machine}: more than 2^24 node sets")

    def make(self) -> bool:
        """Makes the cell grow; returns whether there are new dimensions."""
        if self.sets:
            self._names.add_sets(self.sets)
            self._columns.add_sets(sum(map(len, self.sets.values())))
        if self.dimensions:
            for resource in self._names.add_dimensions(self.dimensions):
                self._columns.grow(resource)
        return bool(self.dimensions)


def check_changes(columns: NativeCell, names: Names, changes: Sequence[MachineChange]) -> Growth:
    """Raises `ModelError` unless all of `changes` can be made one after another."""
    growth = Growth(columns, names)
    machines = columns.machines
    in_all = columns.capacity_ever()
    resized: dict[int, Sequence[int]] = {}
    fresh: set[str] = set()
    for change in changes:
        match change:
            case AddMachine(machine):
                if machine.name in fresh or machine.name in names.machine_numbers:
                    raise ModelError(
                        f"there is a machine {machine.name!r} already",
                        hint="names are unique; a removed machine comes back with ReviveMachine",
                    )
                fresh.add(machine.name)
                title = f"machine {machine.name}"
                growth.join(machine.joins, title)
                resized[machines] = growth.vector(machine.capacity, title)
                in_all = _sum(in_all, resized[machines], 1)
                machines += 1
            case ResizeMachine(number, capacity):
                _require(number, machines)
                old = resized.get(number)
                if old is None:
                    old = columns.capacity(np.array([number], np.int32))[0].tolist()
                resized[number] = growth.vector(capacity, f"machine {number}")
                in_all = _sum(_sum(in_all, old, -1), resized[number], 1)
            case RelabelMachine(number, _, joins):
                _require(number, machines)
                growth.join(joins, f"machine {number}")
            case DrainMachine(number) | RemoveMachine(number) | ReviveMachine(number):
                _require(number, machines)
        if max(in_all) > _MOST_IN_ALL:
            raise ModelError("the machines' capacities add up to more than 2^62")
    return growth


def _sum(amounts: Sequence[int], others: Sequence[int], sign: int) -> list[int]:
    """The sum per dimension; missing ones count as 0."""
    length = max(len(amounts), len(others))
    padded = [*amounts, *(0,) * (length - len(amounts))]
    for at, other in enumerate(others):
        padded[at] += sign * other
    return padded


def make_changes(
    columns: NativeCell, names: Names, changes: Sequence[MachineChange]
) -> tuple[int, ...]:
    """Makes checked changes in a cell that has grown; returns the numbers of the machines added."""
    first = columns.machines
    dimensions = names.known.dimensions
    for kind, run in groupby(changes, type):
        if kind is AddMachine:
            _add(columns, names, [change for change in run if isinstance(change, AddMachine)])
            continue
        for change in run:
            match change:
                case DrainMachine(number, draining):
                    columns.drain(number, draining)
                case RemoveMachine(number):
                    columns.remove_machine(number)
                case ReviveMachine(number):
                    columns.revive(number)
                case ResizeMachine(number, capacity):
                    columns.resize(number, capacity.vector(dimensions))
                case RelabelMachine(number, attributes, joins):
                    labels = names.sets_joined(joins), names.attributes_had(attributes)
                    if columns.relabel(number, *labels):
                        names.change().labels_version += 1
    return tuple(range(first, columns.machines))


def _add(columns: NativeCell, names: Names, changes: list[AddMachine]) -> None:
    machines = [change.machine for change in changes]
    dimensions = names.known.dimensions
    columns.add_machines(
        np.array([machine.capacity.vector(dimensions) for machine in machines], np.int64),
        [names.sets_joined(machine.joins) for machine in machines],
        [names.attributes_had(machine.attributes) for machine in machines],
    )
    for machine in machines:
        names.add_machine(machine.name)


def _require(number: int, machines: int) -> None:
    if not 0 <= number < machines:
        raise ModelError(
            f"there is no machine {number}",
            expected=f"0 to {machines - 1}" if machines else "none yet: the cell is empty",
        )
