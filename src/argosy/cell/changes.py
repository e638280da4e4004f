"""Machine changes: checked as a whole before the first is made, then made in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np

from argosy._core import Cell as Columns
from argosy.cell.names import Names
from argosy.model.errors import ModelError
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)

#: Bound on the sum of all machines' capacities in a dimension, so that no native sum overflows.
_MOST_IN_ALL: Final = 2**62


def check_changes(columns: Columns, names: Names, changes: Sequence[MachineChange]) -> None:
    """Raise `ModelError` unless all of `changes` can be made one after another."""
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
                names.sets_joined(machine)
                vector = machine.capacity.vector(names.dimensions)
                resized[machines] = vector
                machines += 1
                in_all = [all_ + new for all_, new in zip(in_all, vector, strict=True)]
            case ResizeMachine(number, capacity):
                _require(number, machines)
                vector = capacity.vector(names.dimensions)
                old = resized.get(number)
                if old is None:
                    old = columns.capacity(np.array([number], np.int32))[0].tolist()
                resized[number] = vector
                in_all = [
                    all_ - before + new
                    for all_, before, new in zip(in_all, old, vector, strict=True)
                ]
            case DrainMachine(number) | RemoveMachine(number) | ReviveMachine(number):
                _require(number, machines)
        if max(in_all) > _MOST_IN_ALL:
            raise ModelError("the machines' capacities add up to more than 2^62")


def make_changes(
    columns: Columns, names: Names, changes: Sequence[MachineChange]
) -> tuple[int, ...]:
    """Make changes that were checked; the numbers of the machines added."""
    first = columns.machines
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
                    columns.resize(number, capacity.vector(names.dimensions))
    return tuple(range(first, columns.machines))


def _add(columns: Columns, names: Names, changes: list[AddMachine]) -> None:
    machines = [change.machine for change in changes]
    columns.add_machines(
        np.array([machine.capacity.vector(names.dimensions) for machine in machines], np.int64),
        [names.sets_joined(machine) for machine in machines],
        [
            [names.attribute(key, value) for key, value in machine.attributes.items()]
            for machine in machines
        ],
    )
    for machine in machines:
        names.add_machine(machine.name)


def _require(number: int, machines: int) -> None:
    if not 0 <= number < machines:
        raise ModelError(
            f"there is no machine {number}",
            expected=f"0 to {machines - 1}" if machines else "none yet: the cell is empty",
        )
