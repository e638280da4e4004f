"""Who holds what on the machines at one time, computed from a whole journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.constraints import Constraint, PlacementConstraint, TagConstraint
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import of_job, tags_at, tags_of
from argosy.model.constraints.text import format_constraint
from argosy.model.devices import MachineDevices
from argosy.model.jobs import Job, index_of, job_of, task_name
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.wording import listed, listed_names
from argosy.records.holdings import GroupRequests
from argosy.records.state import RunState

#: Where nothing is asked for.
UNLIMITED: Final = 2**31


class Occupancy:
    """The machines at time `at`, after everything that happened then."""

    def __init__(self, state: RunState, at: int) -> None:
        self.dimensions = state.steps.dimensions
        self.jobs: list[Job] = state.steps.jobs
        self.machines, self.takes_claims = _machines(state, at)
        #: Tasks without a machine, by job.
        self.pending = state.pending_at(at)
        claims = state.claims
        # A claim of a task that has not ended lasts until the end of the run.
        open_ = claims.end >= state.until
        held = (claims.begin <= at) & ((claims.end > at) | open_)
        self.tasks = claims.tasks[held]
        self.where = claims.machines[held]
        self.amounts = GroupRequests(self.jobs, self.dimensions).of(self.tasks)
        capacity = [machine.capacity.within(self.dimensions) for machine in self.machines]
        self.capacity = np.array(capacity, np.int64).reshape(-1, len(self.dimensions))
        self.free = self.capacity.copy()
        np.subtract.at(self.free, self.where, self.amounts)
        resource = state.setup.cell.device_resource
        #: The dimension that consists of devices.
        self.devices = self.dimensions.index(resource) if resource in self.dimensions else None
        self._devices: list[MachineDevices] = []
        if self.devices is not None:
            self._devices = self._replayed(state, at, self.devices)
            self.free[:, self.devices] = [each.usable() for each in self._devices]

    def slots(self, machines: NDArray[np.int64], asked: NDArray[np.int64]) -> int:
        """How many tasks that ask for this fit on these machines."""
        wanted = asked > 0
        if self.devices is not None:
            wanted[self.devices] = False
        fits = np.full(len(machines), UNLIMITED, np.int64)
        if wanted.any():
            fits = np.maximum(0, (self.free[np.ix_(machines, wanted)] // asked[wanted]).min(axis=1))
        if self.devices is not None and (amount := int(asked[self.devices])):
            on = [self._devices[at].slots(amount) for at in machines.tolist()]
            fits = np.minimum(fits, np.array(on, np.int64))
        return int(fits[self.takes_claims[machines]].sum())

    def _replayed(self, state: RunState, at: int, dimension: int) -> list[MachineDevices]:
        """Each machine's devices. Which ones tasks were given depends on all that ran there before."""
        claims = state.claims
        amounts = GroupRequests(self.jobs, self.dimensions).of(claims.tasks)[:, dimension]
        machines = [MachineDevices(int(each)) for each in self.capacity[:, dimension]]
        mine = np.flatnonzero((claims.begin <= at) & (amounts > 0))
        steps = [(int(claims.begin[row]), 1, int(row)) for row in mine]
        over = (claims.end[mine] <= at) & (claims.end[mine] < state.until)
        steps += [(int(claims.end[row]), 0, int(row)) for row in mine[over]]
        for _, is_begin, row in sorted(steps):
            machine = machines[int(claims.machines[row])]
            if is_begin:
                machine.hold(row, int(amounts[row]))
            else:
                machine.release(row)
        return machines

    def holders(self, machines: NDArray[np.int64], dimension: int) -> list[str]:
        """The tasks that hold some of a resource on these machines, most of it first."""
        mine = np.flatnonzero(np.isin(self.where, machines) & (self.amounts[:, dimension] > 0))
        order = mine[np.argsort(-self.amounts[mine, dimension], kind="stable")]
        return [self.name_of(int(task)) for task in self.tasks[order].tolist()]

    def on(self, machine: str) -> list[str]:
        """The tasks that run on a machine."""
        numbers = [number for number, each in enumerate(self.machines) if each.name == machine]
        return [self.name_of(task) for task in self.tasks[np.isin(self.where, numbers)].tolist()]

    def name_of(self, task: int) -> str:
        return task_name(self.jobs[job_of(task)].id, index_of(task))

    def broken(self, task: int, operator: tuple[Constraint, ...]) -> Iterator[str]:
        """The constraints that the task violates where it runs, each with how it violates it."""
        job = self.jobs[job_of(task)]
        constraints = (*of_job(job.id, job.constraints), *operator)
        mine = tags_at(job, index_of(task))
        constraints = tuple(c for c in constraints if mine & tags_of(c.rule))
        if not constraints or task not in self.tasks:
            return
        named = frozenset().union(*(tags_of(c.rule) for c in constraints))
        containers: list[Container] = []
        me = -1
        for each, machine in zip(self.tasks.tolist(), self.where.tolist(), strict=True):
            its = self.jobs[job_of(each)]
            if index_of(each) >= its.tasks:
                continue
            tags = tags_at(its, index_of(each))
            if each == task:
                me = len(containers)
            if tags & named or each == task:
                containers.append(Container(tags, self.machines[machine].name))
        meaning = Meaning(self.machines)
        for constraint in constraints:
            if meaning.extent(constraint.rule, containers[me], containers):
                near = self._near(constraint, task, mine)
                yield f"'{format_constraint(constraint)}' is broken there{near}"

    def _near(self, constraint: Constraint, task: int, mine: frozenset[str]) -> str:
        """Which others are too many in the same node set, if the constraint only bounds these."""
        rule = constraint.rule
        if not isinstance(rule, PlacementConstraint):
            return ""
        inside = rule.expression
        if (
            not isinstance(inside, TagConstraint)
            or inside.most is None
            or not mine.issuperset(rule.subject)
        ):
            return ""
        here = self.machines[int(self.where[self.tasks == task][0])]
        sets = {here.name} if rule.group == MACHINE_GROUP else set(here.joins.get(rule.group, ()))
        others = []
        for each, machine in zip(self.tasks.tolist(), self.where.tolist(), strict=True):
            there = self.machines[machine]
            its = {there.name} if rule.group == MACHINE_GROUP else there.joins.get(rule.group, ())
            job = self.jobs[job_of(each)]
            if each == task or index_of(each) >= job.tasks or sets.isdisjoint(its):
                continue
            if tags_at(job, index_of(each)).issuperset(inside.tags):
                others.append(self.name_of(each))
        if len(others) <= inside.most:
            return ""
        are = "is" if len(others) == 1 else "are"
        return f": {listed_names(sorted(others))} {are} in {listed(sorted(sets))} too"


def _machines(state: RunState, at: int) -> tuple[list[Machine], NDArray[np.bool_]]:
    """All machines there ever were, as they were at that time, and whether they took claims."""
    machines = list(state.setup.cell.machines)
    up = [True] * len(machines)
    draining = [False] * len(machines)
    for when, change in state.steps.machine_changes:
        match change:
            case AddMachine(machine):
                machines.append(machine)
                up.append(when <= at)
                draining.append(False)
            case _ if when > at:
                continue
            case RemoveMachine(number):
                up[number] = False
            case ReviveMachine(number):
                up[number], draining[number] = True, False
            case DrainMachine(number, is_draining):
                draining[number] = is_draining
            case ResizeMachine(number, capacity):
                machines[number] = structs.replace(machines[number], capacity=capacity)
            case RelabelMachine(number, attributes, joins):
                machines[number] = structs.replace(
                    machines[number], attributes=attributes, joins=joins
                )
    return machines, np.array(up, np.bool_) & ~np.array(draining, np.bool_)
