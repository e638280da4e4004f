"""A live world in which another system has the last word: whether a task starts where its claim is,
and what becomes of one that is pushed off its machine.

An *overseer* stands for that system. It sees every start and stop in the turn in which it is decided,
before anything else is, so that what it marks (`mark`) holds for the next decision; and it may refuse a
start (`refuse`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from argosy.engines.api import Engine
from argosy.host.protocols import Deliberator
from argosy.host.setup import HostSetup
from argosy.model.errors import UnknownName
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job, index_of, job_of, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry
from argosy.model.tasks import task_numbers
from argosy.model.transactions import RelabelMachine, ResizeMachine
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import (
    LocalCluster,
    StartOrder,
    StopOrder,
    TryResult,
    TryRunner,
)
from argosy.worlds.local.world import LocalWorld

#: How a try ends that was told to stop.
GONE = TryResult(-15, "gone", was_stopped=True)
#: The plug-in that writes claims of tasks that run already.
_BIND = "Bind"


class Overseer(Protocol):
    def fleet(self, entries: tuple[FleetEntry, ...]) -> tuple[FleetEntry, ...]:
        """The fleet of the next host, for one that was asked for."""

    def oversee(self, world: OverruledWorld, orders: Sequence[StartOrder | StopOrder]) -> None:
        """Starts and stops that were just decided."""

    def begin(self, world: OverruledWorld) -> None:
        """A new host has begun, which has no marks yet."""


class OverruledWorld(LocalWorld):
    def __init__(
        self,
        store: LocalStore,
        engines: Mapping[str, type[Engine]],
        processes: TryRunner,
        clock: Callable[[], int],
        overseer: Overseer,
        *,
        cluster: LocalCluster,
        deliberator: Deliberator | None = None,
        began: int = 0,
    ) -> None:
        self._overseer = overseer
        self._numbers: dict[str, int] = {}
        self.explained: dict[str, Explanation] = {}
        super().__init__(
            store,
            engines,
            processes,
            clock,
            cluster=cluster,
            deliberator=deliberator,
            began=began,
        )

    def setup(self, machines: Sequence[Machine], *, is_resumed: bool) -> HostSetup:
        setup = super().setup(machines, is_resumed=is_resumed)
        return replace(setup, is_overruled=True, fleet=self._overseer.fleet(setup.fleet))

    def _begin_life(
        self, machines: Sequence[tuple[Machine, bool]], adopt: Callable[[int], TryResult | bool]
    ) -> None:
        self._numbers = {}
        super()._begin_life(machines, adopt)
        self._overseer.begin(self)

    def settle(self) -> None:
        super().settle()
        while orders := self.machines.unseen():
            self._overseer.oversee(self, orders)
            super().settle()

    def _fold(self) -> None:
        self.projection.dimensions = self.host.view.dimensions
        super()._fold()
        self.explained |= self.projection.explained
        self.projection.explained.clear()

    def take_explained(self) -> dict[str, Explanation]:
        """Jobs that wait or were given up, with the latest explanation, since the last call."""
        explained, self.explained = self.explained, {}
        return explained

    def mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        self.host.mark(attribute, group, sets, is_given=is_given)

    def refuse(self, task: int, incarnation: int, why: Why) -> None:
        """The task does not start where it was to: its scheduler is told, and places it anew."""
        self.host.forget(np.array([task], np.int64), np.array([incarnation], np.int64), why)

    def refuse_try(self, number: int, why: Why) -> None:
        self.settle()
        live = self.tries.get(number)
        if live is not None:
            self.refuse(live.task, live.incarnation, why)
            self.settle()

    def finish(self, number: int, status: int, reason: str) -> None:
        """A task has ended by itself."""
        self.ended(number, TryResult(status, reason))

    def gone(self, number: int) -> None:
        """Nothing is left of a try that was told to stop."""
        self.ended(number, GONE)

    def submit_all(self, jobs: Iterable[Job]) -> None:
        """New jobs, whose ids were never used before."""
        self.settle()
        for job in jobs:
            self.host.submit(job)
            self._added(job, None)

    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int:
        self._fold()
        # Its scheduler may have given it up.
        return 0 if self.is_over(name) else super().cancel(name, indices)

    def is_over(self, name: str) -> bool:
        """Whether a job that was submitted needs nothing any more."""
        return name not in self.projection.by_id and name not in self._new_ids

    def job_seq(self, name: str) -> int | None:
        # Most pods are new, and there may be very many when a server starts.
        known = self.projection
        if not (known.has_forgotten or name in known.by_id or name in self._new_ids):
            return None
        return super().job_seq(name)

    def adopt(
        self,
        jobs: Sequence[tuple[Job, str]],
        by: str,
        instead_of: Sequence[tuple[str, int]] = (),
        replaced: Sequence[tuple[str, int]] = (),
    ) -> list[Refusal | None]:
        """Jobs of one task that run already, each with its machine. Returns why there is no room for
        those for which there is none. Tasks `instead_of` which they are there, by job and index, do not
        start, and tasks that are `replaced` end; nothing is decided until the jobs have their places."""
        for job, _ in jobs:
            self._check_new(job)
        self.settle()
        self._fold()
        for name, index in replaced:
            number = self.projection.by_id[name].number
            self.host.cancel(number, task_numbers(number, [index]))
        for name, index in instead_of:
            row = self.projection.by_id.get(name)
            task = None if row is None else task_number(row.number, index)
            if task is not None and self.host.cell.machine_of(task) is not None:
                self.refuse(task, self.host.runtime.incarnation(task), Why.STALE)
        refusals = []
        for job, machine in jobs:
            refusal = self.host.place(job, self.machine_number(machine), by, _BIND)
            if refusal is None:
                self._added(job, None)
            refusals.append(refusal)
        return refusals

    def claimed_machines(self) -> dict[tuple[str, int], str]:
        """Of tasks that have a machine, by job and index, the machine of each."""
        names, jobs = self.projection.machines, self.host.jobs
        return {
            (jobs.job(job_of(live.task)).id, index_of(live.task)): names[live.machine].name
            for live in self.tries.values()
        }

    def has_machine(self, name: str) -> bool:
        return name in self._names() and self.host.view.is_up(self._names()[name])

    def _names(self) -> dict[str, int]:
        """All machines there ever were, by name."""
        machines = self.projection.machines
        if len(self._numbers) != len(machines):
            self._numbers = {machine.name: number for number, machine in enumerate(machines)}
        return self._numbers

    def machine_number(self, name: str) -> int:
        if not self.has_machine(name):
            raise UnknownName("machine", name, list(self._names()))
        return self._names()[name]

    def free_on(self, name: str) -> Resources:
        view = self.host.view
        free = view.free(np.array([self.machine_number(name)], np.int32))[0].tolist()
        amounts = dict(zip(view.dimensions, free, strict=True))
        return Resources(amounts.pop("cpu"), amounts.pop("memory"), amounts)

    def queued(self) -> dict[str, list[tuple[str, int]]]:
        """What waits in the queues of machines, in the order of starting: jobs and the indices of their
        tasks; -1 for a probe, which may be for any task."""
        found: dict[str, list[tuple[str, int]]] = {}
        names, jobs = self.projection.machines, self.host.jobs
        rows = zip(*(column.tolist() for column in self.host.runtime.queued()), strict=True)
        for job, task, machine in rows:
            entry = jobs.job(job).id, -1 if task < 0 else index_of(task)
            found.setdefault(names[machine].name, []).append(entry)
        return found

    def relabel_machine(self, machine: Machine) -> None:
        number = self.machine_number(machine.name)
        self._change(RelabelMachine(number, machine.attributes, machine.joins))

    def fit_machine(self, name: str, capacity: Resources) -> None:
        """Another capacity, but never less than what runs there: nothing is pushed off."""
        number, view = self.machine_number(name), self.host.view
        numbers = np.array([number], np.int32)
        used = (view.capacity(numbers) - view.free(numbers))[0].tolist()
        held = dict(zip(view.dimensions, used, strict=True))
        amounts = {
            resource: max(amount, held.pop(resource, 0)) for resource, amount in capacity.items()
        } | {resource: amount for resource, amount in held.items() if amount}
        have = zip(view.dimensions, view.capacity(numbers)[0].tolist(), strict=True)
        if {name: amount for name, amount in have if amount} == amounts:
            return
        cpu, memory = amounts.pop("cpu"), amounts.pop("memory")
        self._change(ResizeMachine(number, Resources(cpu, memory, amounts)))
