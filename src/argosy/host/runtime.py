"""Builds the cell and the native runtime of a host from its setup."""

from __future__ import annotations

from typing import Final

from argosy._core import QueueOrder, QueueRules, TaskRuntime
from argosy.cell import Cell
from argosy.host.protocols import Links
from argosy.host.setup import HostSetup
from argosy.model.random import Random
from argosy.model.resources import dimensions_of
from argosy.model.transactions import OPERATOR, AddMachine, Transaction

_ORDERS: Final = {
    "fcfs": QueueOrder.FCFS,
    "shortest-first": QueueOrder.SHORTEST_FIRST,
    "shortest-remaining": QueueOrder.SHORTEST_REMAINING,
}


def build_cell(setup: HostSetup) -> Cell:
    """The cell, audited if the setup asks for it, with all machines and dimensions of the setup."""
    machines = setup.cell.machines
    cell = Cell(
        dimensions_of([machine.capacity for machine in machines]),
        {group.name: group.sets for group in setup.cell.groups},
        audited=setup.audit,
        devices=setup.cell.device_resource,
    )
    cell.commit(Transaction(OPERATOR, machines=tuple(AddMachine(machine) for machine in machines)))
    return cell


def build_runtime(setup: HostSetup, cell: Cell, links: Links, *, replayed: bool) -> TaskRuntime:
    model, steal = setup.machines, setup.machines.steal
    rules = QueueRules(
        order=_ORDERS[model.queue],
        slack=model.slack,
        limit=model.limit,
        start_delay=model.start_delay,
        long_above=model.long_above,
        steal_attempts=steal.attempts if steal else 0,
        steal_from=int(steal.after * len(setup.cell.machines)) if steal else 0,
        steal_limit=steal.most if steal else 0,
        steal_seed=Random(setup.seed).child("stealing").bits(),
    )
    runtime = TaskRuntime(cell.native, rules, record_tasks=setup.output.tasks, replayed=replayed)
    runtime.set_hop(links.plain_hop)
    runtime.set_round_trip(links.round_trip)
    return runtime
